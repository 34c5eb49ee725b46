"""Training of a compared learner: episodes, what it remembers, updates; history, curve, checkpoints."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from acerl_np.evaluation.jobs import ROOMS
from acerl_np.evaluation.seeds import SeedTask
from acerl_np.evolution.sampler import make_sampler
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy
from acerl_np.problem.bundled import load_instance
from acerl_np.problem.instance import Instance
from acerl_np.problem.tables import build_problem
from acerl_np.support.errors import CheckpointError, ConfigError, refuse
from acerl_np.support.fields import Field, Whole, is_real
from acerl_np.support.sharing import exclusive, transactional
from acerl_np.support.trust import read_kept, trusting
from acerl_np.support.workers import Workers
from acerl_np.training.checkpoint import (
    load_checkpoint,
    refuse_end,
    refuse_unusable,
    unpack,
    unpack_curve,
    unpack_lines,
)
from acerl_np.training.history import pack_curve
from acerl_np.training.parametrisations import describe_network
from acerl_np.training.trainer import Trainer
from studies.rivals.episodes import HISTORY_COLUMNS, Ended, Round, TrainingEpisodes, sum_up
from studies.rivals.learner import ROUND, RivalAlgorithm, Task, measure_unit
from studies.rivals.ppo import MAPPO, PPO, RCPOM
from studies.rivals.sac import LSAC, SAC
from studies.rivals.settings import RivalSettings

LEARNERS: dict[str, type[RivalAlgorithm]] = {
    "ppo": PPO,
    "sac": SAC,
    "lsac": LSAC,
    "rcpom": RCPOM,
    "mappo": MAPPO,
}
ALGORITHMS = (*LEARNERS, *(f"a{name}" for name in LEARNERS))
"""An "a" before a name: the adaptive instance sampler deals the records, not chance."""

STEPS = 1_000_000
MAX_STEPS = 10**12


def find_learner(algorithm: str) -> tuple[type[RivalAlgorithm], bool]:
    """Return an algorithm's class, and whether records are dealt adaptively; refuse what is none."""
    name = Field(ALGORITHMS).read("algorithm", algorithm)
    adaptive = name not in LEARNERS
    return LEARNERS[name[1:] if adaptive else name], adaptive


class RivalTrainer(Trainer[Round]):
    """Trains one of the learners that the paper compares with.

    A trainer can be pickled and copied between two steps: the copy goes on to the same bytes.

    Parameters
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    instances : Instance or sequence of Instance
        The training records.
    steps : int
        Decisions to train, in all episodes together; training ends with the update that reaches them.
    seed : int
    settings : RivalSettings or mapping, optional
        Settings of the algorithm that are not its defaults.

    Attributes
    ----------
    history : list of Round
    curve : list of CurvePoint
        Looks at the policy, on all training records with the same draws each time.

    Raises
    ------
    ConfigError
        If there is no such algorithm or setting, or a number is unusable.
    InputError
        If there is no instance, or two share a name.
    """

    kind = "rival checkpoint"
    columns = HISTORY_COLUMNS

    def __init__(
        self,
        algorithm: str,
        instances: Instance | Sequence[Instance],
        *,
        steps: int = STEPS,
        seed: Whole = 0,
        settings: RivalSettings | Mapping[str, Any] | None = None,
    ) -> None:
        learner, adaptive = find_learner(algorithm)
        own_class = learner.settings_class
        if not isinstance(settings, RivalSettings):
            settings = own_class.from_dict(settings or {})
        if type(settings) is not own_class:
            expected = f"{own_class.__name__} for {algorithm}"
            refuse("settings", type(settings).__name__, expected, ConfigError)
        own: Any = settings  # of the algorithm's own class
        super().__init__(instances, seed, own.look_trials, Workers(1))
        for instance in self.instances:
            instance.check_servable()  # an episode that cannot end has no reward
        self.algorithm, self.settings = algorithm, own
        self.steps = _check_steps(steps)
        goal = self.goal = own.goal
        self._shape = describe_network(self.instances, own)
        sampler = make_sampler("ais" if adaptive else "random", len(self.instances), self.seed)
        self.episodes = TrainingEpisodes(self.instances, own, sampler, self.seed)
        sim = self.episodes.sim
        unit = measure_unit(self.instances, goal)
        cost_unit = unit * goal.cost_scale / goal.scale
        n_tasks = float(np.mean([instance.n_tasks for instance in self.instances]))
        sizes = sim.n_features, sim.n_actions // len(sim.rules), len(sim.rules)
        task = Task(*sizes, self.seed, unit, n_tasks, cost_unit)
        self.learner = learner(task, own)
        self.taken = 0
        scaling = self._shape["scaling"]
        self._problem = build_problem(self.instances, scaling=scaling, goal=goal)

    @property
    def done(self) -> bool:
        """Whether all steps are taken."""
        return self.taken >= self.steps

    @property
    def policy(self) -> Policy | AgentPair:
        """The policy as trained so far; it samples its actions unless told otherwise."""
        return self.learner.make_policy(self._shape)

    def _show(self) -> Policy | AgentPair:
        return self.policy

    @property
    def _when(self) -> tuple[int, int]:
        return len(self.history), self.taken

    def _is_due(self) -> bool:
        every = self.settings.look_every
        return every > 0 and (
            not self.curve or self.taken // every > self.curve[-1].decisions // every
        )

    def _draft(self) -> Self:
        """Return a trainer for a step: it shares with this one what no step changes."""
        lasting = self.instances, self._problem, self._workers, self._keys, self._rows, self._use
        return copy.deepcopy(self, {id(x): x for x in (*lasting, *self.history, *self.curve)})

    @exclusive
    @transactional
    def step(self) -> Round:
        """Train to the next line of the history: for ten thousand steps, or to the next look.

        An interrupted step is not taken at all.

        Returns
        -------
        Round
        """
        self._observe()
        started = time.perf_counter()
        learner, episodes = self.learner, self.episodes
        every = self.settings.look_every or ROUND
        target = min(*((self.taken // n + 1) * n for n in (ROUND, every)), self.steps)
        ended: list[Ended] = []
        seen = episodes.see()
        while self.taken < target:
            for _ in range(learner.interval):
                actions = learner.act(seen)
                happened = episodes.step(actions)
                now = episodes.see()
                learner.remember(seen, actions, happened, now)
                seen = now
                self.taken += len(actions)
                ended.append(happened)
            learner.update()
        self._seconds += time.perf_counter() - started
        record = Round(
            steps=self.taken,
            seconds=self._seconds,
            multiplier=learner.multiplier,
            **sum_up(ended, self.goal.cost_limit, len(self.instances)),
        )
        self.history = [*self.history, record]
        self._observe()
        return record

    def _describe(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "steps": self.steps,
            "seed": self.seed,
            "taken": self.taken,
            "settings": self.settings.to_dict(),
        }

    def _pack(self) -> dict[str, Any]:
        when, looks = pack_curve(self.curve, len(self.instances))
        return {
            **self._pack_lines(),
            "curve.when": when,
            "curve": looks,
            **self.episodes.pack(),
            **self.learner.pack(),
        }

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], *, steps: int | None = None, trust: bool = False
    ) -> RivalTrainer:
        """Restore a run from its checkpoint; it ends in the same bytes as without a stop.

        Parameters
        ----------
        path : path-like
        steps : int, optional
            Train up to so many steps instead of what the checkpoint says.
        trust : bool
            Import functions that it names, see `load_policy`.

        Raises
        ------
        CheckpointError
            If the file is not a usable checkpoint, or has more steps than asked for.
        ConfigError
            If `steps` is no usable number.
        """
        stored, instances, arrays = load_checkpoint(path, cls.kind)
        with refuse_unusable(path), trusting(trust):
            settings = {k: read_kept(x, k) for k, x in stored["settings"].items()}
            own = {"steps": stored["steps"], "seed": stored["seed"], "settings": settings}
            trainer = cls(stored["algorithm"], instances, **own)
            trainer.settings.check_whole(stored["settings"])
            trainer._restore(int(stored["taken"]), arrays)
        if steps is not None:
            trainer.steps = _check_steps(steps)
            # The last update goes beyond the number that it was trained to.
            if trainer.taken > trainer.steps != stored["steps"]:
                refuse_end(path, trainer.taken, "steps", steps)
        return trainer

    def _restore(self, taken: int, arrays: dict[str, np.ndarray]) -> None:
        words = Field(int, 0, 2 * MAX_STEPS, expected="a number of steps")
        self.taken = words.read("taken", taken, CheckpointError)
        found = unpack(self._pack(), arrays, unknown=("history", "curve"))
        self._take_lines(unpack_lines(Round, self.columns, found["history"], found["counts"]))
        self.curve = unpack_curve(found["curve.when"], found["curve"])
        self.episodes.restore(found)
        self.learner.restore(found)


def _check_steps(steps: Any) -> int:
    whole = int(steps) if is_real(steps) and float(steps).is_integer() else steps
    return int(Field(int, 1, MAX_STEPS).read("steps", whole))


def train(
    algorithm: str,
    instances: Instance | Sequence[Instance],
    *,
    steps: int = STEPS,
    seed: Whole = 0,
    settings: RivalSettings | Mapping[str, Any] | None = None,
    callback: Callable[[Round], object] | None = None,
) -> Policy | AgentPair:
    """Train one of the learners that the paper compares with, and return its policy.

    Parameters
    ----------
    algorithm : str
        "ppo", "sac", "lsac", "rcpom" or "mappo", with an "a" before it for the adaptive instance sampler.
    instances : Instance or sequence of Instance
        The training records.
    steps : int
        Decisions to train, in all episodes together.
    seed : int
        The same seed gives the same policy.
    settings : mapping, optional
        Settings that are not the defaults, by name: see `studies.rivals.settings`.
    callback : callable, optional
        Called with every line of the history; training stops early if it returns True.

    Returns
    -------
    Policy or AgentPair
        As `evaluate_policy`, `Dispatcher` and `save` take it.

    Raises
    ------
    ConfigError
        If there is no such algorithm or setting, or a number is unusable.
    InputError
        If there is no instance, or two share a name.

    See Also
    --------
    RivalTrainer : Step by step.
    ALGORITHMS : Their names.

    Examples
    --------
    >>> import acerl_np
    >>> from studies import rivals
    >>> agent = rivals.train("ppo", acerl_np.load_suite("dmh-train"), steps=2_000)
    >>> agent
    Policy(219-128-128-12, 46,220 parameters)
    """
    trainer = RivalTrainer(algorithm, instances, steps=steps, seed=seed, settings=settings)
    trainer.run(callback)
    return trainer.policy


def warm_up() -> None:
    """Compile the kernels of all learners, or load what an earlier process compiled."""
    for name in ("ppo", "sac", "mappo"):
        settings: dict[str, object] = {"hidden": (2,), "batch": 2, "episodes": 2}
        if name != "sac":
            settings["collect"] = 4
        train(name, load_instance("DMH-01"), steps=4, settings=settings)


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
    horizon: ClassVar[float | None] = None
    """When episodes are stopped: never."""

    def resolve(self, _: Sequence[Instance] = ()) -> RivalSettings:
        """Return these settings, and defaults for the others, whatever the records."""
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
        return {
            "algorithm": self.algorithm,
            "steps": self.steps,
            "settings": self.resolve().to_dict(),
        }


@dataclass(frozen=True)
class RivalSeedTask(SeedTask):
    """A training of a compared learner with one seed; `config` is a `RivalConfig`."""

    config: Any

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
