"""Training curves: theta itself, not its perturbed members, played on every training record now and then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acerl_np.kernels.random import CURVE
from acerl_np.kernels.state import Outcome
from acerl_np.problem.instance import Instance
from acerl_np.simulation.arena import stream_keys
from acerl_np.support.errors import CheckpointError
from acerl_np.support.report import render_csv
from acerl_np.training.checkpoint import check_parameters
from acerl_np.training.config import Config
from acerl_np.training.forms import Form

CURVE_COLUMNS = ("generation", "decisions", "instance", "makespan", "tardiness", "satisfied")
VALUES = CURVE_COLUMNS[3:]


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

    @classmethod
    def of(
        cls, generation: int, decisions: int, played: Outcome, n_instances: int, cost_limit: float
    ) -> CurvePoint:
        """Return the point of episodes that were played instance by instance, as many of each."""
        makespan = played.makespan.reshape(n_instances, -1)
        tardiness = played.tardiness.reshape(n_instances, -1)
        kept = (tardiness < cost_limit).mean(axis=1)
        return cls(generation, decisions, makespan.mean(axis=1), tardiness.mean(axis=1), kept)

    def beats(self, other: CurvePoint) -> bool:
        """Whether more trials keep the limit, or as many with a smaller mean makespan."""
        own, rival = self.satisfied.mean(), other.satisfied.mean()
        if own != rival:
            return bool(own > rival)
        # nan, an unfinished trial, is the longest day of all.
        mine, theirs = (np.nan_to_num(x.makespan.mean(), nan=np.inf) for x in (self, other))
        return bool(mine < theirs)


class Curve:
    """Looks at theta: every so many generations, on all training records, with the same draws each time.

    The draws are keyed by (seed, the record's content, trial) under a purpose of their own, so a
    generation chosen by its looks is not chosen on the trials that judge it.

    The instances are the rows of the form's problem. `points` has a look before the first generation, and one
    after every `curve_every`.
    """

    def __init__(
        self, instances: Sequence[Instance], form: Form, config: Config, seed: int
    ) -> None:
        self.form = form
        self.config = config
        self.points: list[CurvePoint] = []
        self._rows = np.repeat(np.arange(len(instances)), config.curve_trials)
        self._keys = stream_keys(instances, config.curve_trials, seed, purpose=CURVE)
        self._n = len(instances)
        self._best: CurvePoint | None = None
        self._best_theta = np.empty(0, np.float32)

    def observe(self, theta: np.ndarray, generation: int, decisions: int) -> None:
        """Look at theta if a look is due."""
        every = self.config.curve_every
        if every == 0 or generation % every:
            return
        if not self.points or self.points[-1].generation != generation:
            self._keep(self.look(theta, generation, decisions), theta.copy())

    def look(self, theta: np.ndarray, generation: int, decisions: int) -> CurvePoint:
        """Return how `theta` does; the look of this generation if there is one."""
        if self.points and self.points[-1].generation == generation:
            return self.points[-1]
        played = self.form.look(theta, self._rows, self._keys)
        return CurvePoint.of(generation, decisions, played, self._n, self.config.cost_limit)

    def choose(self, theta: np.ndarray, generation: int, decisions: int) -> np.ndarray:
        """Return the parameters of the policy: theta, or those of the best look so far."""
        if self._best is None:
            return theta
        latest = self.look(theta, generation, decisions)
        return theta if latest.beats(self._best) else self._best_theta

    def _keep(self, latest: CurvePoint, theta: np.ndarray) -> None:
        # A new list: copies of this curve share the old one.
        self.points = [*self.points, latest]
        if self.config.outcome == "best" and (self._best is None or latest.beats(self._best)):
            self._best, self._best_theta = latest, theta

    def pack(self) -> dict[str, np.ndarray]:
        """Return the looks as arrays of a checkpoint, and the best one's theta."""
        when, looks = pack_curve(self.points, self._n)
        columns = {name: looks[:, k].copy() for k, name in enumerate(VALUES)}
        return {"when": when, **columns, "best_theta": self._best_theta}

    def restore(self, found: Mapping[str, np.ndarray], generation: int, n_parameters: int) -> None:
        """Take over the looks that `pack` made arrays of; a `CheckpointError` where none has made these."""
        every = self.config.curve_every
        due = list(range(0, generation + 1, every)) if every else []
        when, best_theta = found["when"], found["best_theta"]
        # A stop between a step and its look may have left the last one out; the next step makes it up.
        if when[:, 0].tolist() not in (due, due[:-1]):
            raise CheckpointError(
                f"curve.when: read generations {when[:5, 0].tolist()}; expected {due[:5]}"
            )
        kept = n_parameters if self.config.outcome == "best" and len(when) else 0
        if best_theta.shape != (kept,):
            raise CheckpointError(
                f"curve.best_theta: read shape {best_theta.shape}; expected ({kept},)"
            )
        check_parameters("curve.best_theta", best_theta)
        for point in unpack_curve(when, np.stack([found[name] for name in VALUES], axis=1)):
            self._keep(point, best_theta)


def pack_curve(points: Sequence[CurvePoint], n_instances: int) -> tuple[np.ndarray, np.ndarray]:
    """Return generation and decisions of points, int64 (n, 2), and `VALUES`, float64 (n, 3, n_instances)."""
    when = [(point.generation, point.decisions) for point in points]
    looks = [[getattr(point, name) for name in VALUES] for point in points]
    shape = (-1, len(VALUES), n_instances)
    return np.array(when, np.int64).reshape(-1, 2), np.array(looks, np.float64).reshape(shape)


def unpack_curve(when: np.ndarray, looks: np.ndarray) -> list[CurvePoint]:
    """Return the points that `pack_curve` made arrays of."""
    return [CurvePoint(*own, *look) for own, look in zip(when.tolist(), looks, strict=True)]


def format_curves(points: Sequence[CurvePoint], names: Sequence[str]) -> str:
    """Return points as CSV, one line per point and record."""
    lines: list[Sequence[Any]] = [CURVE_COLUMNS]
    for point in points:
        values = np.stack([getattr(point, name) for name in VALUES], axis=1).tolist()
        for name, own in zip(names, values, strict=True):
            rounded = [round(value, 4) for value in own]
            lines.append([point.generation, point.decisions, name, *rounded])
    return render_csv(lines)
