"""What an `Evolution` was told of its generations, what came of them, and whether it is over.

All are values that never change.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.arguments import read_floats
from acerl_np.evolution.covariance import Covariance, FullCovariance, take_arrays
from acerl_np.evolution.lagrangian import Memory
from acerl_np.evolution.records import Best, Stops
from acerl_np.evolution.search import Search
from acerl_np.support.errors import refuse
from acerl_np.support.fields import Field

SHARE = 0.5
"""Of a generation's members, those that the next tolerance lets pass."""
SHRINK = 0.98
"""Factor on the tolerance: of a generation at most; of each member at least, until `SHARE` are feasible."""
REACH = 2.0
"""Of the tolerance, at most, over the distance between those members' violations."""
STIFFEN, SOFTEN = 4.0, 0.9
"""Factors on the stiffness of penalties after a generation that all violates one constraint, and another."""
LOST = 0.5
"""Standard deviations by which all violate it; those around an equality do by less."""

MOST = 2_000
"""Generations that are remembered, and the first."""
SMALL = np.array([1e-3, 1e-9])
"""Spreads of returns and of excesses below which the tolerance of stopping is relative to them."""


class Tolerance(NamedTuple):
    """What counts as feasible for now: the level that a member's violation may have.

    A member's violation is v = sqrt(sum_j (max(0, g_j) / s_j)^2), where the scale s_j is the median of the
    first positive violations. A plain sum has ridges where two constraints meet, which members follow slowly.
    Members are ranked by max(0, v - e). In each generation the level e becomes the least of

    - `SHRINK` e, infinite at first;
    - q, the `SHARE` quantile of v, so it ends at 0 once so many members are feasible;
    - `REACH` (q - least v): a cloud that settles where it violates more than it varies, as in a corner of
      the bounds, is to move on;

    but while q is above 0 at least `SHRINK` e for each member: on a road that stays wide for a while, returns
    tell the parts of an equality that are worth following.

    Without a level, a search for equalities falls onto the first points that keep them, too flat to follow
    them to the optimum. The level is that of the epsilon-constrained method (Takahama and Sakai, CEC 2006;
    with an evolution strategy Hellwig and Beyer, CEC 2018); the rules are this package's.
    """

    scales: np.ndarray = np.zeros(0)
    """s_j, (n_constraints,); empty before the first generation."""
    level: float = math.inf
    """e."""
    stiffness: float = 1.0
    """Factor on the penalties of `acerl_np.evolution.lagrangian`, which ranks once e is 0."""

    def relax(self, positive: np.ndarray) -> tuple[np.ndarray, Tolerance]:
        """Return the members' costs beyond the level, and the tolerance after them.

        `positive` is max(0, g), (population, n_constraints), nan or infinite where a member failed.
        """
        scales = (self.scales if len(self.scales) else np.zeros(positive.shape[1])).copy()
        for j in np.flatnonzero(scales == 0.0):
            column = positive[:, j]
            violated = np.sort(column[np.isfinite(column) & (column > 0.0)])
            if len(violated):
                scales[j] = violated[len(violated) // 2]
        # Before a violation there is nothing to divide: any scale will do.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            shares = positive / np.where(scales > 0.0, scales, 1.0)
            # Squares of very small or large shares would be 0 or infinite.
            most = shares.max(axis=1)
            unit = np.where(most > 0.0, most, 1.0)
            violations = most * np.sqrt(np.square(shares / unit[:, np.newaxis]).sum(axis=1))
            lost = bool((positive.min(axis=0) > LOST * positive.std(axis=0)).any())
        known = np.sort(violations[np.isfinite(violations)])
        level = SHRINK * self.level
        if len(known):
            middle = float(known[int(SHARE * (len(known) - 1))])
            bound = min(middle, REACH * (middle - float(known[0])))
            if middle > 0.0 and self.level < math.inf:
                bound = max(bound, SHRINK ** len(positive) * self.level)
            level = min(level, bound)
        stiffness = min(max(1.0, self.stiffness * (STIFFEN if lost else SOFTEN)), 1e9)
        return np.maximum(0.0, violations - level), Tolerance(scales, level, stiffness)


class Record(NamedTuple):
    """The last generations, at most `MOST`, the newest last."""

    rows: np.ndarray = np.empty((0, 4))
    """Return and excess of the best member, and their medians."""
    spans: np.ndarray = np.full(2, np.inf)
    """Range of the returns and of the excesses of the last generation; infinite before one."""

    def add(self, returns: np.ndarray, excess: np.ndarray, good: np.ndarray, first: int) -> Record:
        """Return the record after a generation, of which `first` is the best member."""
        ordered, beyond = np.sort(returns[good]), np.sort(excess[good])
        middle = len(ordered) // 2
        row = returns[first], excess[first], ordered[middle], beyond[middle]
        spans = np.array([ordered[-1] - ordered[0], beyond[-1] - beyond[0]])
        kept = np.concatenate((self.rows[:1], self.rows[1:][2 - MOST :]))
        return Record(np.concatenate((kept, [row])), spans)

    def is_flat(self, tolerance: float, generations: int, *, whole: bool) -> bool:
        """Whether returns and excesses have ranged within the tolerance; of whole numbers the best ones.

        The tolerance shrinks with the largest distance of a best member from its generation's median, where
        that is below `SMALL`.
        """
        if len(self.rows) < generations or tolerance == 0.0:
            return False
        with np.errstate(over="ignore"):
            seen = np.abs(self.rows[:, :2] - self.rows[:, 2:]).max(axis=0)
            least = tolerance * np.minimum(1.0, seen / SMALL)
            spans = np.ptp(self.rows[-generations:, :2], axis=0)
        return bool((spans <= least).all() and (whole or (self.spans <= least).all()))

    def stagnates(self, least: float) -> bool:
        """Whether neither the best nor the median members have become better of late."""
        if len(self.rows) < least:
            return False
        count = max(math.ceil(least), len(self.rows) // 5)
        third = math.ceil(0.3 * count)
        rows = self.rows[-count:]
        early, late = (np.sort(x, axis=0)[third // 2] for x in (rows[:third], rows[-third:]))
        better = np.array([1.0, -1.0, 1.0, -1.0])  # a larger return, a smaller excess
        return not (better * late > better * early).any()


class EvaluatedGeneration(NamedTuple):
    """A generation's returns and costs, (population,)."""

    returns: np.ndarray
    costs: np.ndarray
    scored: np.ndarray
    """The returns that are ranked: the least of the others for a member outside the constraints with nan."""
    ranked: np.ndarray
    """The costs that are ranked: of constraints, their violation beyond the tolerance."""
    tolerance: Tolerance
    """After this generation."""
    good: np.ndarray
    """Members that did not fail: their return and their cost are finite."""
    seen: np.ndarray
    """These, and members outside the constraints with nan as return, which rank by their cost."""
    feasible: np.ndarray
    """Members that did not fail and keep the limit."""
    constraints: np.ndarray | None
    """(population, n_constraints), if they were told."""


def read_columns(name: str, values: ArrayLike, population: int) -> np.ndarray:
    """Return one number, or several, of each member: (population,) or (population, n)."""
    array = read_floats(name, values)
    if array.ndim not in (1, 2) or len(array) != population or not array.size:
        expected = f"({population},) or ({population}, n), a row for each member"
        refuse(name, f"shape {array.shape}", expected)
    return array


def bound_equalities(
    costs: ArrayLike | None, equalities: ArrayLike, n: int, tolerance: float, whole: bool
) -> np.ndarray:
    """Return constraints g <= 0 of n members, and equalities h = 0 as such: abs(h) <= tolerance.

    As two inequalities each, since abs(h) has no slope at 0, which a Lagrangian needs; but as one where
    parameters are whole numbers, which rarely keep both.
    """
    h, most = read_columns("equalities", equalities, n), Field(float, 0.0)
    free = [] if costs is None else [read_columns("costs", costs, n)]
    sides = [np.abs(h)] if whole else [h, -h]
    return np.column_stack([*free, *(side - most.read("tolerance", tolerance) for side in sides)])


def read_told(
    returns: ArrayLike, costs: ArrayLike | None, n: int, limit: float, tolerance: Tolerance
) -> EvaluatedGeneration:
    """Return what was told of a generation of n members, checked, with one cost per member."""
    j_r = read_floats("returns", returns, (n,))
    j_c = np.full(n, min(0.0, limit)) if costs is None else read_columns("costs", costs, n)
    ranked, g = j_c, j_c if j_c.ndim == 2 else None
    if g is not None:
        if len(tolerance.scales) not in (0, g.shape[1]):
            refuse("costs", f"shape {g.shape}", f"({n}, {len(tolerance.scales)}), as before")
        if limit != 0.0:
            refuse("costs", "a matrix", f"cost_limit 0 with it, not {limit:g}")
        positive = np.maximum(0.0, j_c)
        with np.errstate(over="ignore"):
            ranked, tolerance = tolerance.relax(positive)
            j_c = positive.sum(axis=1)
    known = np.isfinite(ranked) & np.isfinite(j_c)
    good, within = known & np.isfinite(j_r), j_c <= limit
    seen = good | (known & np.isnan(j_r) & ~within)
    scored = np.where(seen & ~good, j_r[good].min() if good.any() else 0.0, j_r)
    return EvaluatedGeneration(j_r, j_c, scored, ranked, tolerance, good, seen, good & within, g)


COUNTS = ("evaluations", "restarts", "failed")
GROWING = ("rows", "scales", "injected", *Memory._fields)


class Progress(NamedTuple):
    """The outcome of all generations that were told; record, tolerance, memory since the last restart."""

    best: Best | None = None
    closest: Best | None = None
    evaluations: int = 0
    restarts: int = 0
    failed: int = 0
    record: Record = Record()
    tolerance: Tolerance = Tolerance()
    memory: Memory = Memory()

    def add(
        self,
        told: EvaluatedGeneration,
        members: np.ndarray,
        ids: np.ndarray,
        generation: int,
        limit: float,
    ) -> Progress:
        """Return the progress after a generation: its members as they were evaluated, their instances."""

        def make(k: int) -> Best:
            return_, cost = float(told.returns[k]), float(told.costs[k])
            return Best(members[k].copy(), return_, cost, int(ids[k]), generation)

        best, closest, record = self.best, self.closest, self.record
        if told.seen.any():
            first = least = int(np.argmin(np.where(told.seen, told.costs, np.inf)))
            if told.feasible.any():
                first = int(np.argmax(np.where(told.feasible, told.returns, -np.inf)))
                if best is None or told.returns[first] > best.return_:
                    best = make(first)
            if closest is None or told.costs[least] < closest.cost:
                closest = make(least)
            excess = np.maximum(0.0, told.costs - limit)
            record = record.add(told.scored, excess, told.seen, first)
        n = len(told.good)
        failed = n - int(told.good.sum())
        counts = self.evaluations + n, self.restarts, failed
        return Progress(best, closest, *counts, record, told.tolerance)

    def pack(self, n: int) -> dict[str, np.ndarray]:
        """Return all as arrays, of a search for n parameters."""
        packed = {name: np.array(getattr(self, name), np.int64) for name in COUNTS}
        for name, one in (("best", self.best), ("closest", self.closest)):
            packed[name] = np.full(n + 4, np.nan)
            if one:
                source = one.return_, one.cost, one.instance, one.generation
                packed[name] = np.append(one.parameters, source)
        rest = self.record._asdict() | self.tolerance._asdict() | self.memory._asdict()
        return {**packed, **{name: np.array(value) for name, value in rest.items()}}

    @classmethod
    def unpack(cls, read: dict[str, np.ndarray]) -> Progress:
        """Return what `pack` packed."""
        found: dict[str, Any] = {name: int(read[name]) for name in COUNTS}
        for name in ("best", "closest"):
            return_, cost, *source = read[name][-4:].tolist()
            if source[1] > 0:
                found[name] = Best(read[name][:-4], return_, cost, *map(int, source))
        record = Record(read["rows"], read["spans"])
        tolerance = Tolerance(read["scales"], float(read["level"]), float(read["stiffness"]))
        memory = Memory(read["recent"], read["guess"])
        return cls(**found, record=record, tolerance=tolerance, memory=memory)


def sign_state(state: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the checksum of a state's arrays but for its options, in the order of their names."""
    names = sorted(name for name in state if not name.startswith(("option.", "checksum")))
    return np.array(zlib.crc32(b"".join(state[name].tobytes() for name in names)))


def check_mapping(state: object) -> None:
    """Refuse what has no named arrays, as the path of a file."""
    if not isinstance(state, Mapping):
        refuse("state", state, "what get_state returned, or numpy.load of its file")


def read_state(state: Mapping[str, ArrayLike], own: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a state's arrays, checked against those of the search that is to take them.

    An `InputError` names an array that is missing or has another shape, an option that differs, or a value
    that cannot be.
    """
    check_mapping(state)
    for key, mine in own.items():
        if key.startswith("option."):
            [array] = take_arrays(state, {key: mine}, "state: ").values()
            for where in np.argwhere(array != mine):
                k = tuple(where)
                name = key.removeprefix("option.") + "".join(f"[{i}]" for i in k)
                refuse(f"state: {name}", array[k], f"{mine[k]}, as given here")
    read = take_arrays(state, own, "state: ", growing=GROWING)
    if read["checksum"] != sign_state(read):
        refuse("state", "arrays that are not of one state", "what get_state returned")
    return read


def find_reasons(limits: Stops, search: Search[Any], outcome: Progress) -> dict[str, float]:
    """Return the limits that a search with a `PerParameter` or a `Covariance` has reached.

    As `Evolution.stop` does.
    """
    n, distribution, sigma, mean = search.mean.size, search.distribution, search.sigma, search.mean
    some, record = 30 * n / search.population, outcome.record
    whole = search.box is not None and bool(search.box.whole.any())
    best = -math.inf if outcome.best is None else outcome.best.return_
    reached = {
        "maxfevals": outcome.evaluations + search.population > limits.maxfevals,
        "target": best >= limits.target,
        "tolfun": record.is_flat(limits.tolfun, 10 + math.ceil(some), whole=whole),
        "tolstagnation": record.stagnates(max(limits.tolstagnation, 120 + some)),
    }
    longest = sigma / distribution.first
    if isinstance(distribution, Covariance):
        # Of a given covariance sigma is large at once, of a floor on sigma the matrix: only both tell growth.
        state, grown = distribution.state, min(distribution.state.size, float(longest.max()))
        reached["tolfacupx"] = grown > limits.tolfacupx
        reached["unsettled"] = search.held and grown > 1.0
        longest = np.maximum(longest, state.size * np.abs(state.shape_path))
    reached["tolx"] = bool((longest < limits.tolx).all())
    reached["noeffectcoord"] = bool((mean + 0.2 * sigma == mean).any())
    if isinstance(distribution, FullCovariance):
        steps = 0.1 * distribution.list_axes(search.generation)
        reached["noeffectaxis"] = bool((mean + steps == mean).all(axis=1).any())
        reached["conditioncov"] = distribution.condition > limits.conditioncov
    values = {"noeffectcoord": 0.2, "noeffectaxis": 0.1, "unsettled": 1.0, **asdict(limits)}
    return {name: values[name] for name, is_so in reached.items() if is_so}
