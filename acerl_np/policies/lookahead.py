"""Lookahead: before each decision, try the promising assignments on sampled futures of the day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.random import LOOKAHEAD
from acerl_np.kernels.dispatching.deciders import Decider, IndexDecider, RuleDecider
from acerl_np.kernels.dispatching.index import allocate_pairs
from acerl_np.kernels.dispatching.own import OwnDecider
from acerl_np.kernels.learning.update import fill_stream
from acerl_np.kernels.rollout import futures as F
from acerl_np.policies.files import (
    BasePolicy,
    Places,
    Prepared,
    as_decider,
    pack_policy,
    unpack_policy,
)
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.network import Policy
from acerl_np.policies.origin import Origin, add_prefix, take_prefixed
from acerl_np.policies.own import OwnRule
from acerl_np.policies.rules import RulePolicy
from acerl_np.problem import packing
from acerl_np.problem.goal import Goal, find_goal
from acerl_np.problem.instance import Instance, find_layout, list_instances
from acerl_np.problem.interface import POOL, find_rules, find_slots, number_rules
from acerl_np.problem.layout import Layout
from acerl_np.problem.tables import allocate_variants, build_problem, empty_problem
from acerl_np.support.errors import InputError, PolicyError, describe
from acerl_np.support.fields import Field, Whole, check_seed

Weights = Literal["match", "even"]

Base = Policy | IndexPolicy | RulePolicy | OwnRule

MAX_FUTURES = 100_000
OPTIONS = (
    "futures", "seed", "weights", "bases", "candidates", "penalty", "margin", "horizon",
)  # fmt: skip

WHOLE = 100
"""Tasks of a record up to which a future is all of the episode, unless a horizon is given."""

FUTURES = Field(int, 0, MAX_FUTURES)
BASES, CANDIDATES = Field(int, 1, 64), Field(int, 1, 1_000)
WEIGHTS, PENALTY = Field(get_args(Weights)), Field(float, 0, 1e9)
HORIZON = Field(float, 0, above=True, optional=True, expected="seconds above 0, or infinity")

BASE_NOISE = 0.5
"""Noise of the copies of an index policy that serve as further bases, in shares of its weights' size."""


class Lookahead(BasePolicy):
    """A policy that looks ahead: it plays a base policy to the end of sampled futures, and takes the best.

    At a decision, the assignments that the base likes best are each followed by the base's own decisions
    on the same futures; the least mean of objective and penalty wins. A future is what is known now, with
    the tasks and breakdowns of a historical record still to come; never the true future, nor a record with
    the judged one's own content. On long records a future holds what arrives within a horizon, and is played
    until that is done: a decision takes no longer late in the day than early. Compare rollout policies
    (Bertsekas, Tsitsiklis and Wu, "Rollout algorithms for combinatorial optimization", Journal of Heuristics
    3 (1997) 245-262).

    Parameters
    ----------
    policy : Policy, IndexPolicy or str
        The base: a policy of any form or a rule's name.
    history : sequence of Instance, optional
        Historical records, whose sites are on the floors that are played; by default the records that the
        policy was trained on, if its file has them.
    futures : int
        N, futures per decision. 0: the tasks that have arrived are played to their end, once, and planned
        breakdowns are met; no history is looked at.
    seed : int
        Key of the draws.
    weights : {"match", "even"}
        "match": a record weighs by how well it agrees with the tasks that have arrived so far; one that
        agrees gives its remaining tasks, moved by at most the largest deviation seen. "even": all alike.
    bases : int
        With more than 1: the policy and noised copies of it; the best pair of assignment and base wins. Index
        policies only.
    candidates : int
        Assignments of each base that are tried, the best by its score.
    objective : str or Goal
        What the policy is to make small, by default the makespan.
    cost_limit : float, optional
        On the mean tardiness, s; by default 50 where the objective is the makespan, else none.
    penalty, margin : float
        A future counts its objective and `penalty` times the cost beyond the limit less `margin`, s; other
        measures than times count as `Goal.scale` says.
    horizon : float, optional
        s of arrivals that a future holds; then its value is that of the tasks that are open by then alone, it
        is played no further than who is the best is unclear, and the base's own choice is kept unless another
        is better by more than its standard error. By default all of the episode on records of up to 100
        tasks, as with infinity; else 900 s, or three mean trips of each vehicle per task that waits for it
        if that is longer.

    Raises
    ------
    PolicyError
        If the policy is unknown, has no records and none are given, or cannot have several bases.
    InputError
        If an option is unusable.

    See Also
    --------
    IndexPolicy : A base.
    rule : A base of your own.
    Dispatcher : Keeps its budget.

    Examples
    --------
    >>> import acerl_np
    >>> history = acerl_np.load_suite("dmh-train")
    >>> ahead = acerl_np.Lookahead("STD", history=history[1:], futures=4)
    >>> acerl_np.evaluate_policy(ahead, history[0], trials=1).makespan.shape
    (1, 1)
    """

    def __init__(
        self,
        policy: Policy | IndexPolicy | OwnRule | str,
        *,
        history: Instance | Sequence[Instance] | None = None,
        futures: int = 32,
        seed: Whole = 0,
        weights: Weights = "match",
        bases: int = 1,
        candidates: int = 5,
        objective: str | Goal = "makespan",
        cost_limit: float | None = None,
        penalty: float = 5.0,
        margin: float = 10.0,
        horizon: float | None = None,
    ) -> None:
        base = as_decider(policy, history or ()) if isinstance(policy, str) else policy
        if not isinstance(base, Policy | IndexPolicy | OwnRule | RulePolicy):
            raise PolicyError(
                f"policy: read {describe(policy)}; a lookahead's base must be compiled: expected a trained "
                "policy, a rule's name, or a function with @acerl_np.rule"
            )
        self.policy: Base = base
        self.rules = find_rules(self.policy)
        self.commitment, self.max_changes = self.policy.commitment, self.policy.max_changes
        self.recalls = self.policy.recalls
        self.origin: Origin | None = self.policy.origin
        if history is None and futures:
            kept = self.origin.history if self.origin is not None else None
            if not kept:
                name = policy if isinstance(policy, str) else "the policy"
                raise PolicyError(
                    f"lookahead: {name} has no records of its own; expected history= (--futures RECORDS)"
                )
            history = kept
        self.futures: int = FUTURES.read("futures", futures, InputError)
        self.bases: int = BASES.read("bases", bases, InputError)
        self.candidates: int = CANDIDATES.read("candidates", candidates, InputError)
        self.history = tuple(list_instances(history)) if futures else ()
        self._moved: tuple[Layout, list[Instance]] | None = None
        if futures and not self.history:
            raise InputError("history: no records; expected at least one")
        self.weights: Weights = WEIGHTS.read("weights", weights, InputError)
        self.penalty: float = PENALTY.read("penalty", penalty, InputError)
        self.margin: float = PENALTY.read("margin", margin, InputError)
        if bases > 1 and not isinstance(base, IndexPolicy):
            raise PolicyError(f"bases: read {bases}; expected 1, or an index policy as the base")
        self.seed = check_seed(seed)
        self.goal = find_goal(objective, cost_limit)
        self.goal.refuse_own("a lookahead", PolicyError)
        self.horizon = HORIZON.read("horizon", horizon, InputError)

    @property
    def portable(self) -> bool:
        """Whether it serves any floor and fleet, as its base does."""
        return bool(getattr(self.policy, "portable", False))

    @property
    def slots(self) -> str:
        """The slots of its base; an `AttributeError` where that sees none."""
        return self.policy.slots  # type: ignore[union-attr]

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The tasks that have slots of its base; an `AttributeError` where that sees none."""
        return self.policy.task_ids  # type: ignore[union-attr]

    def __repr__(self) -> str:
        if not self.futures:
            return f"Lookahead({self.policy!r}, known tasks)"
        return (
            f"Lookahead({self.policy!r}, {len(self.history)} records, {self.futures} futures, "
            f"{self.weights}{f', {self.bases} bases' if self.bases > 1 else ''})"
        )

    def check_layout(self, layout: Layout, name: str) -> None:
        """Refuse a floor and fleet that the base cannot serve, or that lacks sites of the history.

        Parameters
        ----------
        layout : Layout
        name : str
            What the message calls it.

        Raises
        ------
        PolicyError
        """
        self.policy.check_layout(layout, name)
        super().check_layout(layout, name)

    def _find_misfit(self, layout: Layout) -> str | None:
        for record in self.history:
            for ends in (record.pickup, record.delivery):
                for site in np.unique(ends).tolist():
                    own = record.layout.sites[site].id
                    if own not in layout.site_index:
                        return (
                            f"has no site '{own}', which the historical record {record.name} names"
                        )
        return None

    def _prepare(self, problem: S.Problem, places: Places, greedy: bool) -> Prepared:
        layout = find_layout(places[0])
        for place in places:
            own = find_layout(place)
            if (own.floor_hash, own.fleet_hash) != (layout.floor_hash, layout.fleet_hash):
                raise PolicyError(
                    f"{place.name}: another floor or fleet than {places[0].name}'s; expected the "
                    "same for all records of a lookahead"
                )
        history = self._move_history(layout)
        same, apart = find_same(places, history), find_apart(places, history)
        # Without a history each place has a row of its own, in which nothing comes.
        excluded = same | apart if history else ~np.eye(len(places), dtype=np.bool_)
        if excluded.all(axis=1).any():
            k = int(excluded.all(axis=1).argmax())
            where = " in its part of the floor" if apart[k].any() else ""
            raise PolicyError(
                f"{places[k].name}: no historical record but itself{where}; expected other ones"
            )
        # The base is greedy while it looks ahead.
        problem = self.policy.prepare(problem, places, True)[0]
        if history:
            slots = find_slots(self, history) if hasattr(self, "task_ids") else POOL
            tables = build_problem(history, n_vehicles=problem.fleet.shape[1], slots=slots)
        else:
            tables = empty_problem(problem, [find_layout(place) for place in places])
        horizon = self._find_horizons(places)
        return problem, lambda: self._allocate(problem, tables, excluded, horizon, layout)

    def _find_horizons(self, places: Places) -> np.ndarray:
        """Return what `Ahead` holds of the horizon for each instance, ndarray(float64)."""
        if self.horizon is not None:
            return np.full(len(places), self.horizon)
        longest = max((record.n_tasks for record in self.history), default=0)
        # Without futures no horizon cuts anything off; it says that tasks that are done do not matter, of
        # which a live day has any number.
        most, live = (0.0, 0.0) if self.futures else (F.LEAST_REACH, np.inf)
        sizes = [place.n_tasks if isinstance(place, Instance) else live for place in places]
        return np.array([most if max(longest, size) > WHOLE else np.inf for size in sizes])

    def _move_history(self, layout: Layout) -> list[Instance]:
        """Return the history on a floor; that of the last one is kept, as `choose` asks at every decision."""
        moved = self._moved  # another thread may replace it
        if moved is None or moved[0] is not layout:
            moved = layout, [move_record(record, layout) for record in self.history]
            self._moved = moved
        return moved[1]

    def _make_base(self, future: S.Problem, layout: Layout) -> Decider:
        """Return what decides in futures: the base, and noised copies of it as further ones."""
        base = self.policy
        # Tasks of a future keep the slots that they were drawn with.
        decider: Decider = base.prepare(future, [layout], True)[1]()
        if isinstance(base, IndexPolicy) and isinstance(decider, IndexDecider):
            parameters = [base.index.parameters]
            size = float(np.sqrt(np.mean(np.square(base.theta))))
            for k in range(1, self.bases):
                noise = np.empty(len(base.theta), np.float32)
                fill_stream(self.seed, LOOKAHEAD, k, 0, noise)
                copy = base.replace(base.theta + BASE_NOISE * size * noise)
                parameters.append(copy.index.parameters)
            indices = decider.indices._replace(parameters=np.concatenate(parameters))
            decider = decider._replace(indices=indices)
        return decider

    def _allocate(
        self,
        problem: S.Problem,
        history: S.Problem,
        excluded: np.ndarray,
        horizon: np.ndarray,
        layout: Layout,
    ) -> F.Ahead:
        n_tasks = problem.record.shape[1] + history.record.shape[1]
        n_breakdowns = history.breakdown.shape[2]
        future = allocate_variants(problem, 1, n_tasks, n_breakdowns)
        goal = self.goal
        future = future._replace(goal=goal.make_table(), class_weight=goal.make_class_weights())
        n_history = len(history.instance)
        # Room for more candidates than there can be pairs would be in vain.
        most = min(self.candidates, problem.record.shape[1] * problem.fleet.shape[1])
        decider = self._make_base(future, layout)
        pairs = decider.pairs if isinstance(decider, IndexDecider) else None
        rows = (self.bases, most)
        past = np.zeros(F.N_PAST_FIELDS)
        past[F.PAST_SEEN] = -1.0
        return F.Ahead(
            decider=decider,
            pairs=allocate_pairs(0, 0) if pairs is None else pairs,
            ranks_pairs=pairs is not None,
            rules=number_rules(self.rules),
            draws=_may_draw(decider),
            history=history,
            excluded=excluded,
            n_futures=max(1, self.futures),
            future=future,
            states=S.allocate_state(future, 2),
            seed=self.seed,
            key=np.empty(4, np.uint32),
            matches=self.weights == "match" and self.futures > 0,
            cost_limit=goal.cost_limit,
            penalty=self.penalty * goal.scale / goal.cost_scale,
            margin=self.margin * goal.cost_scale,
            horizon=horizon,
            trip=_measure_trip(history) if self.futures else 0.0,
            reach=np.full(1, np.inf),
            past=past,
            seen_ends=np.empty(0, S.ENDS),
            seen_record=np.empty(0, S.RECORD),
            agreement=np.zeros(n_history),
            deviation=np.zeros(n_history),
            weight=np.zeros(n_history),
            matched=np.zeros((n_history, history.record.shape[1]), np.bool_),
            candidate=np.zeros((*rows, 2), np.int64),
            n_candidates=np.zeros(self.bases, np.int64),
            total=np.zeros(rows),
            square=np.zeros(rows),
            n_seen=np.zeros(rows, np.int64),
            is_behind=np.zeros(rows, np.bool_),
            progress=np.zeros(F.N_PROGRESS_FIELDS, np.int64),
            known=np.zeros(n_history, np.bool_),
            value=np.zeros((n_history, *rows)),
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what `from_arrays` needs, as plain arrays: the base, the history and the options."""
        rule = self.policy.name if isinstance(self.policy, RulePolicy) else None
        base = {} if isinstance(self.policy, RulePolicy) else pack_policy(self.policy)
        options = {name: getattr(self, name) for name in OPTIONS}
        options["rule"] = rule
        options["goal"] = self.goal.to_dict()
        return {
            **add_prefix("base.", base),
            "history": packing.pack_instances(self.history),
            "options": packing.pack_json(options),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Lookahead:
        """Build a lookahead from `to_arrays`.

        Raises
        ------
        PolicyError
            If an array is missing, or holds something else.
        """
        with packing.unpacking(PolicyError, "lookahead", "; expected what to_arrays returned"):
            options = packing.unpack_json(arrays["options"])
            rule = options.pop("rule")
            options["objective"] = Goal.from_dict(options.pop("goal"))
            history = packing.unpack_instances(arrays["history"])
            policy: Any = rule or unpack_policy(take_prefixed("base.", arrays))
            return cls(policy, history=history, **options)


def _measure_trip(history: S.Problem) -> float:
    """Return the mean time of a trip in the history, s: a mean way to the pickup, loaded way, handling."""
    n_tasks = history.instance["n_tasks"][:, np.newaxis]
    tasks = history.record[np.arange(history.record.shape[1]) < n_tasks]
    unit = history.unit[0]
    units = 1.0 + tasks["loaded"].mean() / unit["metres"]
    return float(units * unit["seconds"] + tasks["handling"].mean())


def move_record(record: Instance, layout: Layout) -> Instance:
    """Return a historical record on a floor: its tasks by their sites' ids, the breakdowns of its vehicles.

    Vehicles that the record's own fleet does not have break down by no list.
    """
    own = {vehicle.id: vehicle.breakdowns for vehicle in record.layout.vehicles}
    listed = {vehicle.id: own.get(vehicle.id, ()) for vehicle in layout.vehicles}
    rows = record.rows()
    places = [f"historical record {record.name}: task '{row['task']}'" for row in rows]
    return Instance.from_rows(
        record.name,
        layout.with_breakdowns(listed).with_closures(()),
        rows,
        places,
        epoch=record.epoch,
    )


def _may_draw(decider: Decider) -> bool:
    """Whether what decides may draw: rules do, and functions of users."""
    if isinstance(decider, IndexDecider):
        return len(decider.indices.own) > 0
    return isinstance(decider, RuleDecider | OwnDecider)


def find_same(places: Places, history: Sequence[Instance]) -> np.ndarray:
    """Return which historical records have an instance's own tasks, whatever their names (ndarray(bool))."""

    def read(instance: Instance) -> list[tuple[Any, ...]]:
        ids = [site.id for site in instance.layout.sites]
        columns = (instance.arrival, instance.expiry, instance.demand, instance.processing)
        pickup, delivery = (
            [ids[site] for site in ends] for ends in (instance.pickup, instance.delivery)
        )
        # Tasks of one arrival may stand in any order.
        return sorted(zip(pickup, delivery, *(column.tolist() for column in columns), strict=True))

    known = [read(record) for record in history]
    own = [read(place) if isinstance(place, Instance) else None for place in places]
    same = [mine == other for mine in own for other in known]
    return np.array(same, np.bool_).reshape(len(own), len(known))


def find_apart(places: Places, history: Sequence[Instance]) -> np.ndarray:
    """Return which historical records lie in another part of an instance's floor (ndarray(bool)).

    No vehicle could serve tasks of both in any order. A record that can be served lies in one such
    part, so its first task tells which; of a layout alone the day's first task will (`live.decision`).
    """
    first = np.array([record.pickup[0] for record in history], np.int64)
    apart = np.zeros((len(places), len(history)), np.bool_)
    for k, place in enumerate(places):
        if isinstance(place, Instance):
            apart[k] = are_apart(place.layout.routes.distance, int(place.pickup[0]), first)
    return apart


def are_apart(distance: np.ndarray, site: int, others: np.ndarray) -> np.ndarray:
    """Return which sites lie in another part of the floor (ndarray(bool)): there or back no way leads."""
    return np.asarray(np.isinf(distance[site, others]) | np.isinf(distance[others, site]))
