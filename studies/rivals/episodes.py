"""Training episodes in lockstep: each that is over makes room for one on the record dealt next.

And a line per ten thousand steps of what they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evolution.records import summarise
from acerl_np.evolution.sampler import InstanceSampler
from acerl_np.problem.instance import Instance
from acerl_np.problem.interface import find_scaling
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.errors import CheckpointError, refuse


class Seen(NamedTuple):
    """What B episodes show at their decisions."""

    observation: np.ndarray
    mask: np.ndarray
    waiting: np.ndarray
    """Number of tasks that wait."""


class Ended(NamedTuple):
    """Which episodes a step ended, and how.

    An episode that cannot end counts as if everything were done, and late, at twice the second at which it
    stood still, or what weighs as much as that.
    """

    over: np.ndarray
    """bool (B,)."""
    value: np.ndarray
    cost: np.ndarray
    """What the goal minimises and what it limits, (B,), 0 where an episode goes on."""
    records: np.ndarray
    """Training records of the episodes that are over, in their order."""
    finished: np.ndarray
    """Whether all tasks of these were served."""


class TrainingEpisodes:
    """B episodes in lockstep that never run out, as a learner's settings say.

    The sampler deals the training records, and is told each finished episode's return, minus the objective;
    the seed is that of random breakdowns.
    """

    def __init__(
        self, instances: Sequence[Instance], settings: Any, sampler: InstanceSampler, seed: int
    ) -> None:
        goal, n_episodes = settings.goal, settings.episodes
        self.sampler = sampler
        self._seed = seed
        self.sim = Simulator(
            instances,
            n_episodes=n_episodes,
            scaling=find_scaling(list(instances)),
            slots=settings.slots,
            goal=goal,
            rules=settings.rules,
        )
        self._worst = 2.0 * np.array([goal.scale, goal.cost_scale])
        self._rounds = 0
        self._n_started = 0
        self._numbers = np.zeros(n_episodes, np.int64)
        self._actions: list[list[int]] = [[] for _ in range(n_episodes)]
        self._start(np.arange(n_episodes))

    def see(self) -> Seen:
        """Return what the episodes show now."""
        waiting = self.sim.state.episode["pool_size"].copy()
        return Seen(self.sim.observation, self.sim.action_mask, waiting)

    def step(self, actions: np.ndarray) -> Ended:
        """Take a decision (int64 (B,)) in every episode; start another where one is over by it."""
        self.sim.step(actions)
        for own, action in zip(self._actions, actions.tolist(), strict=True):
            own.append(action)
        over = self.sim.done
        rows = np.flatnonzero(over)
        value, cost = np.zeros((2, len(actions)))
        if not len(rows):
            return Ended(over, value, cost, rows, over[rows])
        finished = np.isfinite(self.sim.makespan[rows])
        worst = self._worst[:, np.newaxis] * self.sim.time[rows]
        value[rows] = np.where(finished, self.sim.value[rows], worst[0])
        cost[rows] = np.where(finished, self.sim.cost[rows], worst[1])
        records = self.sim.choices[rows]
        self.sampler.update(records, np.where(finished, -value[rows], np.nan))
        self._start(rows)
        return Ended(over, value, cost, records, finished)

    def _start(self, rows: np.ndarray) -> None:
        dealt = self.sampler.assign(len(rows), self._rounds)
        self._rounds += 1
        self._numbers[rows] = self._n_started + np.arange(len(rows))
        self._n_started += len(rows)
        for row in rows.tolist():
            self._actions[row] = []
        self._restart(rows, dealt)

    def _restart(self, rows: np.ndarray, dealt: np.ndarray) -> None:
        seeds = [self._seed + 2**32 * int(number) for number in self._numbers[rows]]
        self.sim.restart(rows, dealt, seeds=seeds)

    def pack(self) -> dict[str, Any]:
        """Return what `restore` needs: the records, and the actions that were taken since they began."""
        own = {
            "counts": np.array([self._rounds, self._n_started], np.int64),
            "numbers": self._numbers,
            "records": self.sim.choices,
            "lengths": np.array([len(own) for own in self._actions], np.int64),
            "actions": np.array([x for own in self._actions for x in own], np.int64),
        }
        return {"episodes": own, "sampler": self.sampler.get_state()}

    def restore(self, found: dict[str, Any]) -> None:
        """Play the episodes of `pack` up to where they were; an `InputError` if there are none such."""
        own = found["episodes"]
        lengths, actions = own["lengths"], own["actions"]
        if len(actions) != lengths.sum():
            refuse("episodes.actions", len(actions), str(lengths.sum()), CheckpointError)
        self._rounds, self._n_started = own["counts"].tolist()
        self._numbers = own["numbers"].astype(np.int64)
        taken = np.split(actions, np.cumsum(lengths)[:-1])
        self._restart(np.arange(len(lengths)), own["records"])
        for step in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > step)
            if self.sim.done[rows].any():
                raise CheckpointError("episodes.actions: read more than an episode takes")
            self.sim.step(np.array([taken[row][step] for row in rows]), episodes=rows)
        if self.sim.done.any():
            raise CheckpointError("episodes.actions: read an episode that is over")
        self._actions = [array.tolist() for array in taken]
        self.sampler.set_state(found["sampler"])


@dataclass(frozen=True, slots=True)
class Round:
    """What some ten thousand steps did.

    Attributes
    ----------
    steps : int
        Decisions taken since training began.
    seconds : float
        Time spent training since it began.
    episodes : int
        Episodes that ended in these steps.
    return_mean, return_std, cost_mean : float
        Of those that finished: minus the objective, and the cost; nan if none did.
    satisfied : float
        Share of the episodes with a cost below the limit.
    multiplier : float
        Weight of the tardiness in the reward, 0 where there is none.
    failed : int
        Episodes that could not end.
    counts : tuple of int
        Episodes of each training record.
    """

    steps: int
    seconds: float
    episodes: int
    return_mean: float
    return_std: float
    cost_mean: float
    satisfied: float
    multiplier: float
    failed: int
    counts: tuple[int, ...]


HISTORY_COLUMNS = tuple(item.name for item in fields(Round))[:-1]
"""All but the counts, which the columns of the training records hold."""


def sum_up(ended: Sequence[Ended], cost_limit: float, n_records: int) -> dict[str, Any]:
    """Return what a line says of the episodes that ended in the steps since the last one."""
    over, value, cost, records, finished = map(np.concatenate, zip(*ended, strict=True))
    value, cost = value[over], cost[over]
    return {
        "episodes": len(value),
        "counts": tuple(np.bincount(records, minlength=n_records).tolist()),
        **summarise(-value, cost, finished, finished & (cost < cost_limit)),
    }
