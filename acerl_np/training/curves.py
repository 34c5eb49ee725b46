"""Training curves: theta itself, not its perturbed members, played on every training record now and then."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acerl_np.kernels.random import CURVE
from acerl_np.problem.instance import Instance
from acerl_np.simulation.arena import stream_keys
from acerl_np.support.errors import CheckpointError
from acerl_np.training.checkpoint import check_array, check_parameters
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

    Parameters
    ----------
    instances : sequence of Instance
        The rows of the form's problem.
    form : Form
        Plays theta.
    config : Config
    seed : int

    Attributes
    ----------
    points : list of CurvePoint
        Before the first generation, and after every `curve_every`.
    """

    def __init__(
        self, instances: Sequence[Instance], form: Form, config: Config, seed: int
    ) -> None:
        self.form = form
        self.config = config
        self.points: list[CurvePoint] = []
        self._rows = np.repeat(np.arange(len(instances)), config.curve_trials)
        self._keys = stream_keys(instances, config.curve_trials, seed, purpose=CURVE)
        self._shape = (len(instances), config.curve_trials)
        self._best: CurvePoint | None = None
        self._best_theta = np.empty(0, np.float32)

    def observe(self, theta: np.ndarray, generation: int, decisions: int) -> None:
        """Look at theta if a look is due."""
        every = self.config.curve_every
        if every == 0 or generation % every:
            return
        if not self.points or self.points[-1].generation != generation:
            self.points.append(self.look(theta, generation, decisions))
            self._keep(theta)

    def look(self, theta: np.ndarray, generation: int, decisions: int) -> CurvePoint:
        """Return how `theta` does; the look of this generation if there is one."""
        if self.points and self.points[-1].generation == generation:
            return self.points[-1]
        played = self.form.look(theta, self._rows, self._keys)
        makespan, tardiness = (
            values.reshape(self._shape) for values in (played.makespan, played.tardiness)
        )
        return CurvePoint(
            generation,
            decisions,
            makespan.mean(axis=1),
            tardiness.mean(axis=1),
            (tardiness < self.config.cost_limit).mean(axis=1),
        )

    def choose(self, theta: np.ndarray, generation: int, decisions: int) -> np.ndarray:
        """Return the parameters of the policy: theta, or those of the best look so far."""
        if self._best is None:
            return theta
        latest = self.look(theta, generation, decisions)
        return theta if latest.beats(self._best) else self._best_theta

    def _keep(self, theta: np.ndarray) -> None:
        latest = self.points[-1]
        if self.config.outcome == "best" and (self._best is None or latest.beats(self._best)):
            self._best, self._best_theta = latest, theta.copy()

    def pack(self) -> dict[str, np.ndarray]:
        """Return the looks as arrays of a checkpoint, and the best one's theta."""
        when = [(point.generation, point.decisions) for point in self.points]
        columns = {
            f"curve.{name}": np.array([getattr(point, name) for point in self.points], np.float64)
            for name in VALUES
        }
        return {
            "curve.when": np.array(when, np.int64).reshape(-1, 2),
            **{name: array.reshape(-1, self._shape[0]) for name, array in columns.items()},
            "curve.best_theta": self._best_theta,
        }

    def restore(self, arrays: dict[str, np.ndarray], generation: int, n_parameters: int) -> None:
        """Take over the looks that `pack` made arrays of.

        Raises
        ------
        CheckpointError
            If an array has another shape or kind, or numbers that no look has.
        """
        every = self.config.curve_every
        due = list(range(0, generation + 1, every)) if every else []
        when, columns = arrays["curve.when"], [arrays[f"curve.{name}"] for name in VALUES]
        check_array("curve.when", when, (len(when), 2), "i")
        # A stop between a step and its look leaves the last one out; the next step makes it up.
        if when[:, 0].tolist() not in (due, due[:-1]):
            raise CheckpointError(
                f"curve.when: read generations {when[:5, 0].tolist()}; expected {due[:5]}"
            )
        for name, array in zip(VALUES, columns, strict=True):
            shape = (len(when), self._shape[0])
            # The means of episodes that were stopped are nan.
            check_array(f"curve.{name}", array, shape, "f", finite=False)
            check_array(
                f"curve.{name}", np.nan_to_num(array, posinf=np.inf, neginf=-np.inf), shape, "f"
            )
        kept = n_parameters if self.config.outcome == "best" and len(when) else 0
        check_parameters("curve.best_theta", arrays["curve.best_theta"], (kept,))
        for (look, taken), *means in zip(when.tolist(), *columns, strict=True):
            self.points.append(CurvePoint(look, taken, *means))
            self._keep(arrays["curve.best_theta"])


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
