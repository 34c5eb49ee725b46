"""What every training here has: its records, looks at what it has learned, a history, and files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic

import numpy as np

from acerl_np.kernels.core.random import CURVE
from acerl_np.kernels.core.state import Problem
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.network import Policy
from acerl_np.problem import packing
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance, check_names, list_instances
from acerl_np.simulation.arena import play_list, stream_keys
from acerl_np.support.errors import InputError
from acerl_np.support.fields import check_seed
from acerl_np.support.files import FilePath, write_arrays, write_atomically
from acerl_np.support.sharing import CopiedWhole, Exclusive, exclusive
from acerl_np.support.workers import Workers
from acerl_np.training.history import CurvePoint, Line, format_curves, format_history, pack_columns

FORMAT = 4
"""Of checkpoints."""


def pack(parts: Mapping[str, Any], before: str = "") -> dict[str, np.ndarray]:
    """Return nested arrays side by side: `before`, and the names on the way to each, joined by dots."""
    found: dict[str, np.ndarray] = {}
    for name, part in parts.items():
        own = pack(part, f"{before}{name}.") if isinstance(part, Mapping) else {before + name: part}
        found.update(own)
    return found


class Trainer(CopiedWhole, ABC, Generic[Line]):
    """A training: steps that each add a line to the history, and looks at the policy now and then.

    A look plays every training record, with the same draws each time. They are keyed by (seed, the record's
    content, trial) under a purpose of their own, so a generation chosen by its looks is not chosen on the
    trials that judge it. One thread at a time may use it: `SharingError` refuses another one.
    """

    kind: ClassVar[str]
    """Of its checkpoints."""
    columns: ClassVar[Sequence[str]]
    """Of its history."""
    _problem: Problem
    """The training records."""
    goal: Goal
    """The objective and the limit."""

    def __init__(
        self, instances: Instance | Sequence[Instance], seed: Any, trials: int, workers: Workers
    ) -> None:
        self.instances = list_instances(instances)
        self.seed = check_seed(seed)
        if not self.instances:
            raise InputError("no instances; expected at least one")
        check_names(self.instances)
        self.history: list[Line] = []
        self.curve: list[CurvePoint] = []
        self._seconds = 0.0
        self._workers = workers
        self._use = Exclusive("trainer")
        self._rows = np.repeat(np.arange(len(self.instances)), trials)
        self._keys = stream_keys(self.instances, trials, self.seed, purpose=CURVE)

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the training is over."""

    @abstractmethod
    def step(self) -> Line:
        """Train to the next line of the history."""

    @property
    @abstractmethod
    def _when(self) -> tuple[int, int]:
        """Generations, or lines of the history, and decisions so far."""

    @abstractmethod
    def _is_due(self) -> bool:
        """Whether it is time for a look."""

    @abstractmethod
    def _show(self) -> Policy | IndexPolicy | AgentPair:
        """Return the policy that a look shows."""

    @abstractmethod
    def _pack(self) -> dict[str, Any]:
        """Return all that has been learned as nested arrays of a checkpoint."""

    @abstractmethod
    def _describe(self) -> dict[str, Any]:
        """Return the settings of a checkpoint, as plain values."""

    def _pack_lines(self) -> dict[str, np.ndarray]:
        """Return the history as arrays of a checkpoint."""
        counts = pack_columns(self.history, ["counts"], len(self.instances), kind=np.int64)
        return {"history": pack_columns(self.history, self.columns), "counts": counts[:, 0]}

    def _take_lines(self, history: list[Line]) -> None:
        """Go on from a history."""
        self.history = history
        self._seconds = history[-1].seconds if history else 0.0  # type: ignore[attr-defined]

    def _evaluate_checkpoint(self) -> CurvePoint:
        """Return how the policy does; the look of now if there is one."""
        if self.curve and (self.curve[-1].generation, self.curve[-1].decisions) == self._when:
            return self.curve[-1]
        problem, make = self._show().prepare(self._problem, self.instances)
        played = self.goal.weigh(play_list(problem, make, self._rows, self._keys, self._workers))
        own = played.makespan, played.tardiness, played.cost < self.goal.cost_limit, played.value
        means = (values.reshape(len(self.instances), -1).mean(axis=1) for values in own)
        return CurvePoint(*self._when, *means)

    def _observe(self) -> None:
        """Look at the policy if a look is due."""
        if self._is_due():
            self._keep(self._evaluate_checkpoint())

    def _keep(self, latest: CurvePoint) -> None:
        self.curve = [*self.curve, latest]  # copies of this trainer share the old list

    def run(self, callback: Callable[[Line], object] | None = None) -> None:
        """Train to the end.

        Parameters
        ----------
        callback : callable, optional
            Called with every line of the history; training stops early if what it returns is true, so a
            callback that only looks returns nothing.
        """
        while not self.done:
            record = self.step()
            if callback is not None and callback(record):
                return

    @property
    def _names(self) -> list[str]:
        return [instance.name for instance in self.instances]

    def write_history(self, path: FilePath) -> None:
        """Write `history` as CSV, atomically.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        write_atomically(path, format_history(self.history, self._names, self.columns).encode())

    @exclusive
    def write_curves(self, path: FilePath) -> None:
        """Write `curve` as CSV, one line per look and record, the present policy last; atomically.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        points = list(self.curve)
        if points and points[-1] is not (latest := self._evaluate_checkpoint()):
            points.append(latest)
        text = format_curves(points, self._names, self.goal)
        write_atomically(path, text.encode())

    @exclusive
    def save(self, path: FilePath) -> None:
        """Write a checkpoint that `resume` continues from, atomically.

        Raises
        ------
        StorageError
            If the file cannot be written; an older checkpoint stays as it was.
        """
        parts = {
            "kind": self.kind,
            "format": FORMAT,
            "settings": packing.pack_json(self._describe()),
            "instances": packing.pack_instances(self.instances),
        }
        write_arrays(path, {**parts, **pack(self._pack(), "state.")})
