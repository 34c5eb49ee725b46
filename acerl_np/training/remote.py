"""One training split over workers: ranges of members go out with the search's state, outcomes come back.

Neither noise nor a member's parameters of a network travel: a worker makes both from the state and the keys,
so any number and kind of workers gives the same bytes. The update is taken where the training runs.
"""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evolution.search import Search
from acerl_np.kernels.core.state import Outcome, allocate_outcome
from acerl_np.kernels.learning.update import Noise
from acerl_np.problem.instance import Instance
from acerl_np.support.team import Team
from acerl_np.support.workers import Workers
from acerl_np.training.config import Config
from acerl_np.training.parametrisations import Parametrisation, make_parametrisation
from acerl_np.training.records import AssignedRecords, TrainingRecords

KEPT = 4
"""Trainings whose tables a worker keeps."""

WORTH = 0.2
"""Seconds of a generation below which a split costs more than it gains (docs/scaling.md)."""

LOOKED_AT = 5
"""Generations after which that is said, once."""

AHEAD, LIGHT = 2, 400_000
"""Ranges for each worker, so that a quick one waits less for a slow one, and bytes of a search's state up to
which they are worth their way; else there is one."""


class Order(NamedTuple):
    """A range of members to play, first and last + 1, of a search whose state `describe` told."""

    world: bytes
    """The training records and the options, pickled."""
    state: tuple[Any, ...]
    noise: Noise
    drawn: np.ndarray | None
    """As `AssignedRecords`."""
    rows: np.ndarray
    """int32 (population, K)."""
    members: tuple[int, int]


def open_world(world: bytes) -> tuple[Parametrisation, TrainingRecords]:
    """Return what a worker keeps of a training."""
    instances, config = pickle.loads(world)
    form = make_parametrisation(instances, config, Workers(1))
    return form, TrainingRecords(form.problem, config)


class _Kept(threading.local):
    """The latest worlds; each thread has its own, as one draws its records anew each generation."""

    def __init__(self) -> None:
        self.find = lru_cache(KEPT)(open_world)


_KEPT = _Kept()


def play_order(order: Order) -> Outcome:
    """Play a range of members."""
    form, records = _KEPT.find(order.world)
    rows = order.rows.astype(np.int64)
    dealt = records.repeat(order.drawn, rows, rows, order.noise)
    return form.play(order.state, order.noise, dealt, order.members)


class Split:
    """Plays the generations of a training on the workers of a team."""

    def __init__(
        self, team: Team, form: Parametrisation, instances: list[Instance], config: Config
    ) -> None:
        self.team = team
        self.parametrisation = form
        self.world = pickle.dumps((instances, config))
        self._seconds: list[float] = []

    def play(self, search: Search[Any], noise: Noise, dealt: AssignedRecords) -> Outcome:
        """Let every member play its records; a `WorkerError` if workers are lost or fail."""
        started = time.perf_counter()
        population, each = dealt.rows.shape
        ahead = AHEAD if search.mean.nbytes <= LIGHT else 1
        n_ranges = min(population // noise.group_size, ahead * self.team.n_workers)
        ranges = list(pairwise(population * k // n_ranges for k in range(n_ranges + 1)))
        rows = dealt.rows.astype(np.int32)
        states = self.parametrisation.describe(search, ranges)
        orders = [
            Order(self.world, state, noise, dealt.drawn, rows, members)
            for state, members in zip(states, ranges, strict=True)
        ]
        outcome = allocate_outcome(population * each)
        for k, found in self.team.run(play_order, orders):
            first, last = ranges[k]
            for whole, part in zip(outcome, found, strict=True):
                whole[first * each : last * each] = part
        self._seconds.append(time.perf_counter() - started)
        # The first one starts the workers.
        if len(self._seconds) == LOOKED_AT and min(self._seconds[1:]) < WORTH:
            warnings.warn(
                f"a generation takes {min(self._seconds[1:]):.3f} s: below {WORTH} s its split over workers "
                "costs more than it gains; train without an executor, or several seeds at a time",
                RuntimeWarning,
                stacklevel=6,
            )
        return outcome
