"""What the members of a generation play: training records as they are, or drawn anew."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from acerl_np.evolution import InstanceSampler
from acerl_np.evolution.sampler import check_ids
from acerl_np.kernels.core.state import Problem
from acerl_np.kernels.learning.update import Noise
from acerl_np.kernels.rollout.variation import draw_records
from acerl_np.problem.tables import allocate_variants, count_records
from acerl_np.training.config import Config

Members: TypeAlias = tuple[int, int]
"""A range of members, first and last + 1."""
MemberSpec: TypeAlias = tuple[Any, ...]
"""What a parametrisation needs of a search to let a range of members play, as plain values."""


class AssignedRecords(NamedTuple):
    """The records of a generation."""

    problem: Problem
    rows: np.ndarray
    """int64 (population, K): rows of the problem that each member plays."""
    records: np.ndarray
    """The training record that each of them was made of."""
    drawn: np.ndarray | None
    """The training records that the problem has variants of; None if it has the records themselves."""


ENOUGH_GENERATIONS = 150
"""Generations that a budget is divided into where the configuration leaves it open."""

FEWEST, MOST = 2, 32
"""Records that a member plays then."""


def count_records_per_member(problem: Problem, config: Config) -> int:
    """Return K, the records that each member of a generation plays."""
    if config.records_per_member is not None:
        return config.records_per_member
    tasks = float(problem.instance["n_tasks"][: count_records(problem)].mean())
    budget = config.decisions or config.generations * config.population * tasks * FEWEST
    each = budget / (ENOUGH_GENERATIONS * config.population * tasks)
    return int(min(max(round(each), FEWEST), MOST))


class TrainingRecords:
    """Deals the training records, or variants of them, to the members of each generation."""

    def __init__(self, problem: Problem, config: Config) -> None:
        self.problem, self.config = problem, config
        self._varies = config.perturb > 0 or config.synthetic > 0.0
        self.each = count_records_per_member(problem, config)
        self._n = count_records(problem)
        n = self.each if self.each > 1 else self._n
        # Of each variant a row for each stage of the record that has most.
        most = 1 + int(np.bincount(problem.instance["record"][self._n :], minlength=1).max())
        self._drawn = allocate_variants(problem, n * most) if self._varies else problem
        self._key = np.empty(4, np.uint32)

    def assign(self, sampler: InstanceSampler, noise: Noise) -> AssignedRecords:
        """Return what the members of a generation play (Algorithm 1, line 9)."""
        n = self._n
        if self.each == 1:
            # The paper's way: a record for each member. All members of a record play the same variant.
            dealt = check_ids(sampler.assign_members(noise), noise.population, n)
            records = rows = dealt[:, np.newaxis]
            drawn = np.arange(n)
        else:
            drawn = check_ids(sampler.assign(self.each, noise.generation), self.each, n)
            everyone = (noise.population, 1)
            records = np.tile(drawn, everyone)
            rows = np.tile(np.arange(self.each), everyone) if self._varies else records
        return self.repeat(drawn if self._varies else None, rows, records, noise)

    def repeat(
        self, drawn: np.ndarray | None, rows: np.ndarray, records: np.ndarray, noise: Noise
    ) -> AssignedRecords:
        """Return what has been dealt before, elsewhere: the variants are drawn as they were there."""
        if drawn is None:
            return AssignedRecords(self.problem, rows, records, None)
        draw_records(
            self.problem,
            self._drawn,
            drawn.astype(np.int64),
            self.config.perturb,
            self.config.synthetic,
            noise.seed,
            noise.generation,
            self._key,
        )
        return AssignedRecords(self._drawn, rows, records, drawn)
