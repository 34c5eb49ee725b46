"""What an `Evolution` was told of a generation, and what it has done so far, as values that never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.arguments import read_floats
from acerl_np.evolution.records import Best
from acerl_np.evolution.stop import Record
from acerl_np.evolution.violations import Tolerance
from acerl_np.support.fields import refuse, take_arrays


class Told(NamedTuple):
    """A generation's returns and costs.

    Attributes
    ----------
    returns, costs : ndarray(float64, (population,))
    ranked : ndarray(float64, (population,))
        The costs that are ranked: of constraints, their violation beyond the tolerance.
    tolerance : Tolerance
        After this generation.
    good, feasible : ndarray(bool, (population,))
        Members that did not fail, and those of them that keep the limit.
    """

    returns: np.ndarray
    costs: np.ndarray
    ranked: np.ndarray
    tolerance: Tolerance
    good: np.ndarray
    feasible: np.ndarray


def read_told(
    returns: ArrayLike, costs: ArrayLike | None, population: int, limit: float, tolerance: Tolerance
) -> Told:
    """Return what was told of a generation, checked, with one cost per member."""
    members = (population,)
    j_r = read_floats("returns", returns, members)
    j_c = np.full(members, min(0.0, limit)) if costs is None else read_floats("costs", costs)
    ranked = j_c
    if j_c.ndim == 2:
        m = len(tolerance.scales) or j_c.shape[1]
        if j_c.shape != (*members, m) or m == 0:
            refuse("costs", f"shape {j_c.shape}", f"{(*members, m or 1)}")
        if limit != 0.0:
            refuse("costs", "a matrix", f"cost_limit 0 with it, not {limit:g}")
        positive = np.maximum(0.0, j_c)
        with np.errstate(over="ignore"):
            ranked, tolerance = tolerance.relax(positive)
            j_c = positive.sum(axis=1)
    elif j_c.shape != members:
        refuse("costs", f"shape {j_c.shape}", f"{members}")
    good = np.isfinite(j_r) & np.isfinite(ranked) & np.isfinite(j_c)
    return Told(j_r, j_c, ranked, tolerance, good, good & (j_c <= limit))


class Progress(NamedTuple):
    """The outcome of all generations that were told.

    Attributes
    ----------
    best, closest : Best, optional
        The best feasible member, and the one of the least cost.
    evaluations, restarts : int
    failed : int
        Members of the last generation whose return or cost was not finite.
    record : Record
        Since the last restart.
    tolerance : Tolerance
        Of the constraints, since the last restart.
    """

    best: Best | None = None
    closest: Best | None = None
    evaluations: int = 0
    restarts: int = 0
    failed: int = 0
    record: Record = Record()
    tolerance: Tolerance = Tolerance()

    def add(
        self, told: Told, members: np.ndarray, ids: np.ndarray, generation: int, limit: float
    ) -> Progress:
        """Return the progress after a generation: its members as they were evaluated, their instances."""

        def make(k: int) -> Best:
            return_, cost = float(told.returns[k]), float(told.costs[k])
            return Best(members[k].copy(), return_, cost, int(ids[k]), generation)

        best, closest, record = self.best, self.closest, self.record
        if told.good.any():
            first = least = int(np.argmin(np.where(told.good, told.costs, np.inf)))
            if told.feasible.any():
                first = int(np.argmax(np.where(told.feasible, told.returns, -np.inf)))
                if best is None or told.returns[first] > best.return_:
                    best = make(first)
            if closest is None or told.costs[least] < closest.cost:
                closest = make(least)
            excess = np.maximum(0.0, told.costs - limit)
            record = record.add(told.returns, excess, told.good, first)
        n = len(told.good)
        failed = n - int(told.good.sum())
        return Progress(
            best, closest, self.evaluations + n, self.restarts, failed, record, told.tolerance
        )

    def pack(self, n: int) -> dict[str, np.ndarray]:
        """Return all as arrays, of a search for n parameters."""
        return {
            "evaluations": np.array(self.evaluations, np.int64),
            "restarts": np.array(self.restarts, np.int64),
            "failed": np.array(self.failed, np.int64),
            **_pack_member("best", self.best, n),
            **_pack_member("closest", self.closest, n),
            "history": self.record.rows.copy(),
            "spans": self.record.spans.copy(),
            "scales": self.tolerance.scales.copy(),
            "level": np.array(self.tolerance.level),
        }

    @classmethod
    def unpack(cls, read: dict[str, np.ndarray]) -> Progress:
        """Return what `pack` packed."""
        return cls(
            _unpack_member("best", read),
            _unpack_member("closest", read),
            int(read["evaluations"]),
            int(read["restarts"]),
            int(read["failed"]),
            Record(read["history"], read["spans"]),
            Tolerance(read["scales"], float(read["level"])),
        )


def _pack_member(name: str, member: Best | None, n: int) -> dict[str, np.ndarray]:
    if member is None:
        member = Best(np.full(n, np.nan), np.nan, np.nan, -1, -1)
    return {
        f"{name}.parameters": member.parameters.copy(),
        f"{name}.values": np.array([member.return_, member.cost], np.float64),
        f"{name}.source": np.array([member.instance, member.generation], np.int64),
    }


def _unpack_member(name: str, read: dict[str, np.ndarray]) -> Best | None:
    instance, generation = read[f"{name}.source"].tolist()
    if generation <= 0:
        return None
    return_, cost = read[f"{name}.values"].tolist()
    return Best(read[f"{name}.parameters"], return_, cost, instance, generation)


COUNTS = ("generation", "failed", "evaluations", "restarts", "sampler.count")
LEAST = {"population": 2, **dict.fromkeys((*COUNTS, "level", "spans", "scales"), 0)}
FINITE = ("mean", "start", "history", "scales")


def check_mapping(state: object) -> None:
    """Refuse what has no named arrays, as the path of a file."""
    if not isinstance(state, Mapping):
        refuse("state", state, "what get_state returned, or numpy.load of its file")


def read_state(state: Mapping[str, ArrayLike], own: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a state's arrays, checked against those of the search that is to take them.

    Raises
    ------
    InputError
        If an array is missing or has another shape, an option differs, or a value cannot be.
    """
    check_mapping(state)
    for key, mine in own.items():
        if key.startswith("option."):
            [array] = take_arrays(state, {key: mine}, "state: ").values()
            for where in np.argwhere(array != mine):
                k = tuple(where)
                name = key.removeprefix("option.") + "".join(f"[{i}]" for i in k)
                refuse(f"state: {name}", array[k], f"{mine[k]}, as given here")
    read = take_arrays(state, own, "state: ", growing=("history", "scales"))
    # What no search can have reached.
    wrong = [name for name, least in LEAST.items() if not (read[name] >= least).all()]
    wrong += [name for name in FINITE if not np.isfinite(read[name]).all()]
    wrong += [name for name in read if name.startswith("sampler.") and np.isnan(read[name]).any()]
    wrong += [name for name in ("best", "closest") if not _is_member(name, read)]
    low, high = read["option.bounds[0]"], read["option.bounds[1]"]
    outside = ((read["mean"] < low) | (read["mean"] > high)).any()
    if outside and read["option.adapt"] == "none" and not read["option.integers"].any():
        wrong.append("mean")
    if read["failed"] > read["population"]:
        wrong.append("failed")
    for name in wrong:
        refuse(f"state: {name}", "values that no search reaches", "what get_state returned")
    return read


def _is_member(name: str, read: dict[str, np.ndarray]) -> bool:
    instance, since = read[f"{name}.source"].tolist()
    values = np.append(read[f"{name}.parameters"], read[f"{name}.values"])
    known = 0 <= instance < read["option.n_instances"] and 0 < since <= read["generation"]
    return (instance, since) == (-1, -1) or bool(known and np.isfinite(values).all())
