"""What the compared learners share: task, rewards, draws of actions, and state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.kernels.core.random import ACTION, fill_uniforms, make_key
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance
from studies.rivals.episodes import Ended, Seen
from studies.rivals.losses import sample_actions
from studies.rivals.networks import Perceptron, Start
from studies.rivals.perceptron import allocate_inputs, list_inputs
from studies.rivals.settings import RivalSettings

BASELINE_TRIALS = 30
ROUND = 10_000
"""Steps of a line of the history."""


@dataclass(frozen=True)
class Task:
    """What is to be learned: sizes, draws, and the unit of rewards."""

    n_features: int
    n_vehicles: int
    n_rules: int
    seed: int
    unit: float
    """What the objective is divided by."""
    n_tasks: float
    """Mean number of tasks of a training record."""
    cost_unit: float
    """What the cost is divided by: what of it weighs as much as a unit of the objective."""

    @property
    def n_actions(self) -> int:
        """Number of actions, legal or not."""
        return self.n_vehicles * self.n_rules

    def draw(self, purpose: np.int64, n: int, count: int) -> np.ndarray:
        """Return `n` uniform numbers in [0, 1) for round number `count` of actions, or of batches."""
        drawn = np.empty(n)
        fill_uniforms(make_key(self.seed, purpose, count), drawn)
        return drawn


def measure_unit(instances: Sequence[Instance], goal: Goal) -> float:
    """Return the mean objective of MIX on the training records, its makespan, s: the unit of rewards."""
    playing = Playing(BASELINE_TRIALS, goal=goal, threads=1)
    trials = play_policy("MIX", list(instances), playing)
    mean = float(np.nanmean(trials.value)) if np.isfinite(trials.value).any() else 0.0
    return mean if mean > 0.0 else 1.0


def reward_outcome(
    settings: RivalSettings, task: Task, ended: Ended
) -> tuple[np.ndarray, np.ndarray]:
    """Return reward and cost of a step, float64 (B,): zero but where an episode is over.

    The reward is scale * (shift - objective / unit), the cost scale * cost / its unit, so that a multiplier
    of 1 weighs a second of tardiness as one of makespan.
    """
    scale = settings.reward_scale
    reward = np.where(ended.over, scale * (settings.reward_shift - ended.value / task.unit), 0.0)
    return reward, scale * ended.cost / task.cost_unit


class RivalAlgorithm(ABC):
    """An algorithm: it acts, remembers what came of it, and learns."""

    settings_class: ClassVar[type[RivalSettings]]
    interval = 1
    """Steps of every episode between two updates."""
    multiplier: float
    """Weight of the cost in the reward: the setting of that name, 0 where there is none."""
    memory: Any
    """What `remember` adds steps to."""
    actor: Perceptron
    """Its first outputs are the logits of the actions."""

    def __init__(self, task: Task, settings: Any) -> None:
        self.task, self.settings = task, settings
        self.multiplier = getattr(settings, "multiplier", 0.0)
        self._zeros = np.zeros(settings.episodes, np.int64)
        self._inputs = allocate_inputs(settings.episodes, task.n_features)
        self._every = np.arange(settings.episodes)
        self._rounds = 0
        self._updates = 0

    def make_network(
        self, n_out: int, n_rows: int, number: int, start: Start = "torch"
    ) -> Perceptron:
        """Return a network with so many outputs, for batches of at most so many rows.

        Each number has a stream of its own for the first parameters.
        """
        sizes = [self.task.n_features, *self.settings.hidden, n_out]
        seed = (self.task.seed + number * 2**56) % 2**63
        return Perceptron(sizes, n_rows=n_rows, seed=seed, start=start)

    def sample(
        self, network: Perceptron, mask: np.ndarray, uniforms: np.ndarray, first: np.ndarray
    ) -> np.ndarray:
        """Draw an action for each episode, of the logits from its first one on, where the mask allows it."""
        actions = np.zeros(len(self._every), np.int64)
        logits = network.forward(self._inputs, self._every)
        sample_actions(logits, first, mask, uniforms, actions)
        return actions

    def act(self, seen: Seen) -> np.ndarray:
        """Draw the actions to take from the policy, ndarray(int64, (B,))."""
        list_inputs(seen.observation, self._inputs)
        uniforms = self.task.draw(ACTION, len(self._every), self._rounds)
        return self.sample(self.actor, seen.mask, uniforms, self._zeros)

    def reward(self, seen: Seen, ended: Ended, now: Seen) -> np.ndarray:
        """Return the reward of a step, less the multiplier times its cost."""
        reward, cost = reward_outcome(self.settings, self.task, ended)
        return reward - self.multiplier * cost

    def remember(self, seen: Seen, actions: np.ndarray, ended: Ended, now: Seen) -> None:
        """Take in a step: what was seen, what was done, what it ended, and what is seen now."""
        self._rounds += 1
        self.memory.add(seen, actions, self.reward(seen, ended, now), ended.over, now)

    @abstractmethod
    def update(self) -> None:
        """Learn from what is remembered."""

    @property
    @abstractmethod
    def networks(self) -> dict[str, Perceptron]:
        """The networks that learn, by their names in a checkpoint."""

    def make_policy(self, shape: dict[str, Any]) -> Policy | AgentPair:
        """Return the policy so far; `shape` is what `Policy` takes beside its parameters."""
        return Policy(self.actor.read_parameters(self.task.n_actions), **shape)

    def pack(self) -> dict[str, Any]:
        """Return all that it has learned and remembers as arrays of a checkpoint."""
        counts = np.array([self._rounds, self._updates], np.int64)
        networks = {name: network.pack() for name, network in self.networks.items()}
        return {"learner": {"counts": counts}, **networks}

    def restore(self, found: dict[str, Any]) -> None:
        """Take over what `pack` returned; a `CheckpointError` where no training has such numbers."""
        self._rounds, self._updates = found["learner"]["counts"].tolist()
        for name, network in self.networks.items():
            network.restore(found[name])
