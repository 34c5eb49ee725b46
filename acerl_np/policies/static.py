"""Static plans, a fixed order of vehicles and a rule for each: the search for the best, many at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from acerl_np.kernels.deciding.deciders import PlanDecider
from acerl_np.kernels.deciding.rules import N_RULES
from acerl_np.kernels.ground.random import SEARCH, draw_uniform, make_key
from acerl_np.kernels.ground.state import Outcome, Problem
from acerl_np.policies.files import BasePolicy, Places, Prepared
from acerl_np.problem.choices import PAPER_RULES
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance, list_instances
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import play_list
from acerl_np.support.errors import InputError
from acerl_np.support.numbers import Whole
from acerl_np.support.workers import Workers

MAX_CANDIDATES = 50_000
"""Most static plans that are tried one by one; larger fleets are searched locally."""

MAX_EPISODES = 200_000
"""Episodes whose tables are held at a time while static plans are tried."""


class PositionPlan(NamedTuple):
    """A static plan by positions, for instances whose fleets stand in one order.

    Attributes
    ----------
    order : tuple of int, vehicles, the preferred one first
    rules : tuple of int, rule of each vehicle, by vehicle
    """

    order: tuple[int, ...]
    rules: tuple[int, ...]

    def describe(self, vehicles: Sequence[str] | None = None) -> str:
        """Return the plan in words, such as "v1 STD, v2 STD, v0 EDD"; by ids if they are given."""
        names = vehicles or [f"v{v}" for v in range(len(self.order))]
        return ", ".join(f"{names[v]} {PAPER_RULES[self.rules[v]]}" for v in self.order)


class PlanPolicy(BasePolicy):
    """A static plan as a policy: the first free vehicle in its order acts by its rule."""

    origin = None
    recalls = False

    def __init__(self, plan: PositionPlan) -> None:
        self.plan = plan

    def _prepare(self, problem: Problem, places: Places, greedy: bool) -> Prepared:
        tables = np.tile(np.array(self.plan, np.int64)[:, None, None], (1, 1, len(places), 1))
        return problem, lambda: PlanDecider(*tables.copy())


@dataclass(frozen=True)
class StaticResult:
    """The best static plan and what it achieves on each instance.

    Attributes
    ----------
    plan : PositionPlan
    makespan, tardiness : ndarray(float64, (n_instances,)), s, nan where an episode did not finish
    value, cost : ndarray(float64, (n_instances,)), what the goal minimises and what it limits
    decisions : ndarray(int64, (n_instances,))
    candidates : int, plans that were tried
    """

    plan: PositionPlan
    makespan: np.ndarray
    tardiness: np.ndarray
    value: np.ndarray
    cost: np.ndarray
    decisions: np.ndarray
    candidates: int


def play_static(
    plans: Sequence[PositionPlan],
    problem: Problem,
    rows: np.ndarray,
    keys: np.ndarray,
    workers: Workers,
) -> Outcome:
    """Play every episode of a list by every plan, as `play_list` does by one decider.

    The arrays of what is returned are (n_plans, n_episodes).
    """
    n_vehicles, n = problem.fleet.shape[1], len(rows)
    at_once = max(1, MAX_EPISODES // n)
    tables = np.zeros((2, len(plans), 1, n_vehicles), np.int64)
    for k, plan in enumerate(plans):
        tables[:, k, 0, : len(plan.order)] = plan
    parts = []
    for first in range(0, len(plans), at_once):
        orders, rules = tables[:, first : first + at_once].copy()
        count = len(orders)
        played = play_list(
            problem,
            partial(PlanDecider, orders, rules),
            np.tile(rows, count),
            np.tile(keys, (count, 1)),
            workers,
            rows=np.repeat(np.arange(count), n),
        )
        parts.append(played)
    return Outcome(*(np.concatenate(x).reshape(-1, n) for x in zip(*parts, strict=True)))


def find_static(
    instances: Instance | Sequence[Instance],
    *,
    goal: Goal = PAPER,
    within_limit: bool = False,
    seed: Whole = 0,
    keys: np.ndarray | None = None,
    horizon: float | None = None,
    threads: int | None = None,
) -> StaticResult | None:
    """Find the static plan of the smallest mean objective over the instances: in hindsight, a bound.

    All plans are tried where there are at most `MAX_CANDIDATES` (384 on DMH); for larger fleets a
    local search changes one rule or swaps two vehicles as long as that helps. None if no plan that was
    tried is within the limit.
    """
    chosen = list_instances(instances)
    if not chosen:
        raise InputError("no instances; expected at least one")
    n_vehicles = max(len(instance.layout.vehicles) for instance in chosen)
    streams = np.zeros((len(chosen), 4), np.uint32) if keys is None else keys
    different = list({id(instance): instance for instance in chosen}.values())
    position = {id(instance): k for k, instance in enumerate(different)}
    rows = np.array([position[id(instance)] for instance in chosen], np.int64)
    problem = build_problem(different, horizon=horizon, goal=goal)
    workers = Workers(threads)

    def find_best(plans: Sequence[PositionPlan]) -> tuple[float, StaticResult]:
        played = goal.weigh(play_static(plans, problem, rows, streams, workers))
        value, cost = played.value.mean(axis=1), played.cost
        if within_limit:
            # An excess outweighs any objective, so that a local search first finds a way in.
            value = value + 1e9 * np.maximum(0.0, cost - goal.cost_limit).sum(axis=1)
            value[(cost >= goal.cost_limit).any(axis=1)] += 1e9
        value[np.isnan(value)] = np.inf  # some episode did not finish
        k = int(value.argmin())
        names = ("makespan", "tardiness", "value", "cost", "decisions")
        figures = {name: getattr(played, name)[k] for name in names}
        result = StaticResult(plan=plans[k], candidates=len(plans), **figures)
        return float(value[k]), result

    try:
        if math.factorial(n_vehicles) * N_RULES**n_vehicles <= MAX_CANDIDATES:
            orders = itertools.permutations(range(n_vehicles))
            rules = itertools.product(range(N_RULES), repeat=n_vehicles)
            best = find_best(
                list(itertools.starmap(PositionPlan, itertools.product(orders, rules)))
            )[1]
        else:
            best = _search_static(n_vehicles, find_best, seed)
    finally:
        workers.close()
    if within_limit and not (best.cost < goal.cost_limit).all():
        return None
    return best


def _search_static(
    n_vehicles: int,
    find_best: Callable[[Sequence[PositionPlan]], tuple[float, StaticResult]],
    seed: Whole,
) -> StaticResult:
    """Change one rule or swap two vehicles of the best plan so far until that helps no more."""
    key = make_key(seed, SEARCH, n_vehicles)
    every = tuple(range(n_vehicles))
    value, best = find_best([PositionPlan(every, (rule,) * n_vehicles) for rule in range(N_RULES)])
    tried = best.candidates
    batch, idle, draw = 64, 0, 0
    while tried < MAX_CANDIDATES // 10 and idle < 6:
        neighbours = []
        for _ in range(batch):
            a, b = (int(draw_uniform(key, draw, k) * n_vehicles) for k in (0, 1))
            order, rules = map(list, best.plan)
            if draw_uniform(key, draw, 2) < 0.5:
                rules[a] = int(draw_uniform(key, draw, 3) * N_RULES)
            else:
                order[a], order[b] = order[b], order[a]
            neighbours.append(PositionPlan(tuple(order), tuple(rules)))
            draw += 1
        new_value, new = find_best(neighbours)
        tried += batch
        idle += 1
        if new_value < value:
            value, best, idle = new_value, new, 0
    return replace(best, candidates=tried)
