"""Training curves: theta itself, not its perturbed members, played on every training record now and then."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acerl_np.kernels.random import CURVE
from acerl_np.problem.instance import Instance
from acerl_np.simulation.arena import Arena, stream_keys

CURVE_COLUMNS = ("generation", "decisions", "instance", "makespan", "tardiness", "satisfied")


@dataclass(frozen=True, slots=True, eq=False)
class CurvePoint:
    """How theta did on the training records after a generation.

    Attributes
    ----------
    generation : int
        Finished generations; 0 before the first.
    decisions : int
        Decisions that training had taken by then; those of the looks themselves do not count.
    makespan, tardiness : ndarray(float64, (n_instances,)), s
        Means over the trials; nan where one did not finish.
    satisfied : ndarray(float64, (n_instances,))
        Share of the trials with a tardiness below the limit.
    """

    generation: int
    decisions: int
    makespan: np.ndarray
    tardiness: np.ndarray
    satisfied: np.ndarray

    def beats(self, other: CurvePoint) -> bool:
        """Whether more trials keep the limit, or as many with a smaller mean makespan."""
        own, rival = self.satisfied.mean(), other.satisfied.mean()
        if own != rival:
            return bool(own > rival)
        # nan, an unfinished trial, beats nothing.
        return bool(self.makespan.mean() < other.makespan.mean())


class Observer:
    """Plays theta on all training records, with the same draws at every look.

    The draws are keyed by (seed, the record's content, trial) under a purpose of their own, so a
    generation chosen by its looks is not chosen on the trials that judge it.

    Parameters
    ----------
    instances : sequence of Instance
        The rows of the arena's problem.
    arena : Arena
        For one shared network.
    seed, trials : int
    cost_limit : float
        xi, s.
    """

    def __init__(
        self,
        instances: Sequence[Instance],
        arena: Arena,
        *,
        seed: int,
        trials: int,
        cost_limit: float,
    ) -> None:
        self.arena = arena
        self.cost_limit = cost_limit
        self.rows = np.repeat(np.arange(len(instances)), trials)
        self.keys = stream_keys(instances, trials, seed, purpose=CURVE)
        self.shape = (len(instances), trials)

    def look(self, theta: np.ndarray, generation: int, decisions: int) -> CurvePoint:
        """Return how `theta` does now."""
        makespan, tardiness, _ = self.arena.play_policy(theta, self.rows, self.keys, False)
        makespan, tardiness = makespan.reshape(self.shape), tardiness.reshape(self.shape)
        return CurvePoint(
            generation,
            decisions,
            makespan.mean(axis=1),
            tardiness.mean(axis=1),
            (tardiness < self.cost_limit).mean(axis=1),
        )


def format_curves(points: Sequence[CurvePoint], names: Sequence[str]) -> str:
    """Return points as CSV, one line per point and record."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CURVE_COLUMNS)
    for point in points:
        values = (point.makespan.tolist(), point.tardiness.tolist(), point.satisfied.tolist())
        for name, makespan, tardiness, satisfied in zip(names, *values, strict=True):
            rounded = [round(value, 4) for value in (makespan, tardiness, satisfied)]
            writer.writerow([point.generation, point.decisions, name, *rounded])
    return text.getvalue()
