"""Static plans: a fixed order of vehicles and a fixed rule for each, by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from acerl_np.kernels.deciding.deciders import PlanDecider
from acerl_np.kernels.ground.state import Problem
from acerl_np.policies.files import AnyPolicy, Places, Prepared
from acerl_np.policies.origin import Origin
from acerl_np.policies.rules import find_policy_name
from acerl_np.policies.static_search import PositionPlan, count_plans, find_static
from acerl_np.problem.goal import Goal, find_goal
from acerl_np.problem.instance import Instance, find_layout, list_instances
from acerl_np.problem.interface import PAPER_RULES
from acerl_np.problem.layout import Layout
from acerl_np.problem.packing import pack_json, unpack_json, unpacking
from acerl_np.simulation.arena import stream_keys
from acerl_np.support.errors import InputError, PolicyError, describe, list_some, make_printable
from acerl_np.support.fields import refuse
from acerl_np.support.files import MAX_TEXT_BYTES
from acerl_np.support.numbers import Whole, check_seed

STATIC_TRIALS = 100
"""Episodes of each record that a plan is sought on where vehicles break down at random."""

SECONDS_PER_TASK = 0.4e-6
"""Seconds of a core that a plan takes for a task."""

IN_TRAFFIC = 40.0
"""How many times as long a task takes where vehicles meet: 20 to 80 by `benchmarks/traffic.py`."""

SHOWN = 8
"""Most vehicles that an error names."""


@dataclass(frozen=True)
class StaticPlan(AnyPolicy):
    """A fixed order of vehicles and a fixed rule for each: the first free one acts by its rule.

    Attributes
    ----------
    order : tuple of str
        Ids of the vehicles, the preferred one first.
    rules : dict of str
        "FCFS", "EDD", "NVF" or "STD" of each vehicle, by its id.
    origin : Origin or None
        Floors, fleets and records that it was fitted on.

    Raises
    ------
    PolicyError
        If a vehicle stands twice, or not each has one of these rules.

    See Also
    --------
    fit_static : Fits one.
    evaluate_policy : Judges it.

    Examples
    --------
    >>> import acerl_np
    >>> plan = acerl_np.StaticPlan(("v1", "v0"), {"v0": "EDD", "v1": "STD"})
    >>> plan.describe()
    'v1 STD, v0 EDD'
    """

    form: ClassVar[str] = "static"
    kinds: ClassVar[Mapping[str, tuple[str, int]]] = {"plan": ("u", 1)}
    # Vehicles go by their ids, in whatever order a layout lists them.
    ordered: ClassVar[bool] = False
    recalls = False

    order: tuple[str, ...]
    rules: Mapping[str, str]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        order = tuple(self.order)
        if not order or not all(isinstance(name, str) for name in order):
            refuse("order", self.order, "ids of vehicles", PolicyError)
        if len(set(order)) < len(order):
            twice = next(name for name in order if order.count(name) > 1)
            raise PolicyError(f"order: '{describe(twice)}' again; expected each vehicle once")
        if not isinstance(self.rules, Mapping) or set(self.rules) != set(order):
            raise PolicyError("rules: expected one for each vehicle of the order")
        rules = {name: find_policy_name(str(self.rules[name]), PAPER_RULES) for name in order}
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "rules", rules)

    def describe(self) -> str:
        """Return the plan in words, such as "v1 STD, v2 STD, v0 EDD"."""
        return ", ".join(f"{make_printable(name)} {self.rules[name]}" for name in self.order)

    def positions(self, layout: Layout) -> PositionPlan:
        """Return the plan by the vehicles' positions in a layout that `check_layout` takes."""
        index = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
        rules = [0] * len(index)
        for name, rule in self.rules.items():
            rules[index[name]] = PAPER_RULES.index(rule)
        return PositionPlan(tuple(index[name] for name in self.order), tuple(rules))

    def _prepare(self, problem: Problem, places: Places, greedy: bool) -> Prepared:
        found = [self.positions(find_layout(place)) for place in places]
        orders, rules = np.array([found], np.int64).transpose(2, 0, 1, 3).copy()
        return problem, lambda: PlanDecider(orders, rules)

    def _find_misfit(self, layout: Layout) -> str | None:
        fleet = [vehicle.id for vehicle in layout.vehicles]
        missing = [f"'{describe(vehicle)}'" for vehicle in self.order if vehicle not in fleet]
        others = [f"'{describe(vehicle)}'" for vehicle in fleet if vehicle not in self.rules]
        parts = [f"lacks {list_some(missing, SHOWN)}"] if missing else []
        parts += [f"has {list_some(others, SHOWN)} besides"] if others else []
        if not parts:
            return None
        return f"{' and '.join(parts)}; this static plan goes by the vehicles' ids"

    def _pack(self) -> dict[str, np.ndarray]:
        return {"plan": pack_json([[name, self.rules[name]] for name in self.order])}

    @classmethod
    def _unpack(cls, arrays: Mapping[str, np.ndarray], origin: Origin | None) -> Self:
        array = arrays["plan"]
        if not 0 < array.size <= MAX_TEXT_BYTES:
            found = f"{array.dtype} of shape {array.shape}"
            refuse("plan", found, "a static plan", PolicyError)
        with unpacking(PolicyError, "plan", "; expected a static plan"):
            plan: Any = [(name, rule) for name, rule in unpack_json(array)]
            return cls(tuple(name for name, _ in plan), dict(plan), origin)


def fit_static(
    instances: Instance | Sequence[Instance],
    cost_limit: float | None = None,
    within_limit: bool = False,
    *,
    objective: str | Goal = "makespan",
    seed: Whole = 0,
    trials: int = STATIC_TRIALS,
    horizon: float | None = None,
    threads: int | None = None,
) -> StaticPlan:
    """Fit a static plan on training records: that of the smallest mean makespan, or other objective.

    Parameters
    ----------
    instances : Instance or sequence of Instance
        The training records, of one fleet.
    cost_limit : float, optional
        s; by default 50 where the objective is the makespan, else none.
    within_limit : bool
        Only plans that keep the tardiness of every record below the limit.
    objective : str or Goal
        Such as "late+0.05*tardiness", see `Goal`.
    seed : int
        Of random breakdowns, and of the local search for large fleets.
    trials : int
        Episodes of each record where vehicles break down at random.
    horizon : float, optional
        s after which an episode is stopped, finished or not; by default as `build_problem` says.
    threads : int, optional
        By default one per core.

    Returns
    -------
    StaticPlan
        Its origin keeps the records.

    Raises
    ------
    InputError
        If there is no record, or an option is unusable.
    PolicyError
        If the records' fleets have different vehicles, or no plan that was tried is within the limit.

    See Also
    --------
    StaticPlan : What comes back.

    Examples
    --------
    >>> import acerl_np
    >>> plan = acerl_np.fit_static(acerl_np.load_suite("dmh-train"))
    >>> plan.describe()
    'v1 STD, v2 STD, v0 STD'
    """
    goal = find_goal(objective, cost_limit)
    chosen = list_instances(instances)
    for instance in chosen:
        if instance.layout.commitment == "pickup":
            raise PolicyError(
                f"{instance.name}: tasks change hands; expected commitment 'assignment'"
            )
    seed = check_seed(seed)
    aligned = _align_fleets(chosen)
    episodes = _count_episodes(chosen, trials)
    found = find_static(
        [instance for instance in aligned for _ in range(episodes)],
        goal=goal,
        within_limit=within_limit,
        seed=seed,
        keys=stream_keys(aligned, episodes, seed),
        horizon=horizon,
        threads=threads,
    )
    if found is None:
        raise PolicyError(
            f"no static plan that was tried keeps {goal.cost} of every record below "
            f"{goal.cost_limit:g}{goal.cost_unit and f' {goal.cost_unit}'}; "
            "expected a larger cost_limit, or within_limit=False"
        )
    fleet = [vehicle.id for vehicle in aligned[0].layout.vehicles]
    return StaticPlan(
        tuple(fleet[v] for v in found.plan.order),
        {name: PAPER_RULES[found.plan.rules[v]] for v, name in enumerate(fleet)},
        Origin.of(chosen, goal=goal),
    )


def estimate_static(instances: Sequence[Instance]) -> float:
    """Return about how many seconds of a core `fit_static` takes."""
    n_tasks = sum(instance.n_tasks for instance in instances)
    n_vehicles = max(len(instance.layout.vehicles) for instance in instances)
    episodes = _count_episodes(instances, STATIC_TRIALS)
    seconds = SECONDS_PER_TASK * find_slowness(instances)
    return seconds * count_plans(n_vehicles) * episodes * n_tasks


def find_slowness(instances: Sequence[Instance]) -> float:
    """Return how many times as long playing takes as where nobody meets."""
    meets = any(instance.layout.traffic is not None for instance in instances)
    return IN_TRAFFIC if meets else 1.0


def _count_episodes(instances: Sequence[Instance], trials: int) -> int:
    """Return how many episodes of each record a plan is sought on."""
    return trials if any(item.layout.has_random_breakdowns for item in instances) else 1


def _align_fleets(instances: Iterable[Instance]) -> list[Instance]:
    """Return the instances with their vehicles in the first one's order."""
    aligned: list[Instance] = []
    for instance in instances:
        fleet = {vehicle.id: vehicle for vehicle in instance.layout.vehicles}
        first = (aligned or [instance])[0]
        order = [vehicle.id for vehicle in first.layout.vehicles]
        if fleet.keys() != set(order):
            raise PolicyError(
                f"{instance.name}: vehicles {list_some(list(fleet), SHOWN)}; "
                f"expected those of {first.name} ({list_some(order, SHOWN)}): a static plan is for one fleet"
            )
        if list(fleet) != order:
            vehicles = tuple(fleet[name] for name in order)
            instance = replace(instance, layout=replace(instance.layout, vehicles=vehicles))
        aligned.append(instance)
    if not aligned:
        raise InputError("no instances; expected at least one")
    return aligned
