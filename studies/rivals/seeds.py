"""How a compared learner is trained, as data, and its training with one seed as a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acerl_np.evaluation.jobs import ROOMS
from acerl_np.evaluation.seeds import SeedTask
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance
from studies.rivals.settings import RivalSettings
from studies.rivals.training import RivalTrainer, find_learner


@dataclass(frozen=True)
class RivalConfig:
    """How a compared learner is trained.

    Attributes
    ----------
    algorithm : str
        One of `rivals.ALGORITHMS`.
    steps : int
    settings : dict
        Those that are not the defaults.
    """

    algorithm: str
    steps: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def fill(self) -> RivalSettings:
        """Return these settings, and defaults for the others."""
        return find_learner(self.algorithm)[0].settings_class.from_dict(self.settings)

    @property
    def rooms(self) -> tuple[Path, ...]:
        """Folders of the code that trains so."""
        return *ROOMS, Path(__file__).parent

    def start(self, instances: list[Instance], seed: int) -> RivalTrainer:
        """Return a training that has not begun."""
        settings = self.settings
        return RivalTrainer(
            self.algorithm, instances, steps=self.steps, seed=seed, settings=settings
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all that decides a training, as plain values."""
        return {"algorithm": self.algorithm, "steps": self.steps, "settings": self.fill().to_dict()}


@dataclass(frozen=True)
class RivalSeedTask(SeedTask):
    """A training of a compared learner with one seed; `config` is a `RivalConfig`."""

    config: Any

    @property
    def goal(self) -> Goal:
        """What it is trained for."""
        goal: Goal = self.config.fill().goal
        return goal

    @property
    def horizon(self) -> float | None:
        """When episodes are stopped: never."""
        return None

    @property
    def rooms(self) -> tuple[Path, ...]:
        """Folders of the code that decides the result."""
        rooms: tuple[Path, ...] = self.config.rooms
        return rooms

    def start(self) -> RivalTrainer:
        """Return the training, which has not begun."""
        trainer: RivalTrainer = self.config.start(list(self.instances), self.seed)
        return trainer

    def describe(self) -> dict[str, Any]:
        """Return how it trains, for config.json."""
        told: dict[str, Any] = self.config.to_dict()
        return told
