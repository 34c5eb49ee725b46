"""Static plans: a fixed order of vehicles and a fixed rule for each, and the search for the best one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from acerl_np.kernels.random import SEARCH, derive_key, draw_uniform
from acerl_np.kernels.rules import N_RULES
from acerl_np.problem.instance import Instance, list_instances
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import play_by_plan
from acerl_np.support.errors import InputError
from acerl_np.support.workers import Workers

RULE_NAMES = ("FCFS", "EDD", "NVF", "STD")

MAX_CANDIDATES = 50_000
"""Most static plans that are tried one by one; larger fleets are searched locally."""

MAX_EPISODES = 200_000
"""Episodes whose tables are held at a time while static plans are tried."""


@dataclass(frozen=True)
class StaticPlan:
    """A fixed order of vehicles and a fixed rule for each: the first free one acts by its rule.

    Attributes
    ----------
    order : tuple of int
        Vehicles, the preferred one first.
    rules : tuple of int
        Rule of each vehicle, by vehicle.
    """

    order: tuple[int, ...]
    rules: tuple[int, ...]

    def describe(self, vehicles: Sequence[str] | None = None) -> str:
        """Return the plan in words, such as "v1 STD, v2 STD, v0 EDD".

        Parameters
        ----------
        vehicles : sequence of str, optional
            Ids of the vehicles; by default "v" and their positions from 0.
        """
        names = vehicles or [f"v{v}" for v in range(len(self.order))]
        return ", ".join(f"{names[v]} {RULE_NAMES[self.rules[v]]}" for v in self.order)


@dataclass(frozen=True)
class StaticResult:
    """The best static plan and what it achieves on each instance.

    Attributes
    ----------
    plan : StaticPlan
    makespan, tardiness : ndarray(float64, (n_instances,)), s
    candidates : int
        Plans that were tried.
    """

    plan: StaticPlan
    makespan: np.ndarray
    tardiness: np.ndarray
    candidates: int


def play_static(
    plans: Sequence[StaticPlan],
    instances: Sequence[Instance],
    *,
    keys: np.ndarray | None = None,
    horizon: float | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Play every instance by every plan.

    Parameters
    ----------
    plans : sequence of StaticPlan
    instances : sequence of Instance
        One may stand there several times, with different keys.
    keys : ndarray(uint32, (n_instances, 4)), optional
        Streams of the random breakdowns; by default all the same one.
    horizon : float, optional
        s after which an episode is stopped, finished or not; by default as `build_problem` says.
    threads : int, optional

    Returns
    -------
    makespan, tardiness : ndarray(float64, (n_plans, n_instances)), s
        nan where an episode did not finish.
    """
    pool = list({id(instance): instance for instance in instances}.values())
    position = {id(instance): k for k, instance in enumerate(pool)}
    rows = np.array([position[id(instance)] for instance in instances], np.int64)
    problem = build_problem(pool, horizon=horizon)
    n_vehicles = problem.fleet.shape[1]
    orders = np.zeros((len(plans), n_vehicles), np.int32)
    rules = np.zeros((len(plans), n_vehicles), np.int32)
    for k, plan in enumerate(plans):
        orders[k, : len(plan.order)] = plan.order
        rules[k, : len(plan.rules)] = plan.rules
    n = len(instances)
    if keys is None:
        keys = np.zeros((n, 4), np.uint32)
    makespan, tardiness = np.empty((len(plans), n)), np.empty((len(plans), n))
    at_once = max(1, MAX_EPISODES // n)
    workers = Workers(threads)
    try:
        for first in range(0, len(plans), at_once):
            some = slice(first, first + at_once)
            count = len(orders[some])
            played = play_by_plan(
                problem,
                np.tile(rows, count),
                np.repeat(orders[some], n, axis=0),
                np.repeat(rules[some], n, axis=0),
                np.tile(keys, (count, 1)),
                workers,
            )
            makespan[some], tardiness[some] = (values.reshape(count, n) for values in played[:2])
    finally:
        workers.close()
    return makespan, tardiness


def find_static(
    instances: Instance | Sequence[Instance],
    *,
    cost_limit: float = 50.0,
    within_limit: bool = False,
    seed: int = 0,
    keys: np.ndarray | None = None,
    horizon: float | None = None,
    threads: int | None = None,
) -> StaticResult | None:
    """Find the static plan of smallest mean makespan over the instances.

    All plans are tried where there are at most `MAX_CANDIDATES` (384 on DMH); for larger fleets a
    local search changes one rule or swaps two vehicles as long as that helps.

    Parameters
    ----------
    instances : Instance or sequence of Instance
    cost_limit : float
        s.
    within_limit : bool
        Only plans that keep the tardiness of every instance below the limit.
    seed : int
        Of the local search.
    keys : ndarray(uint32, (n_instances, 4)), optional
        Streams of the random breakdowns, as `play_static`.
    horizon : float, optional
        s after which an episode is stopped, finished or not; by default as `build_problem` says.
    threads : int, optional

    Returns
    -------
    StaticResult or None
        None if no plan that was tried is within the limit.
    """
    chosen = list_instances(instances)
    if not chosen:
        raise InputError("no instances; expected at least one")
    n_vehicles = max(len(instance.layout.vehicles) for instance in chosen)

    def score(plans: Sequence[StaticPlan]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        makespan, tardiness = play_static(
            plans, chosen, keys=keys, horizon=horizon, threads=threads
        )
        value = makespan.mean(axis=1)
        value[np.isnan(value)] = np.inf  # some episode did not finish
        if within_limit:
            # An excess outweighs any makespan, so that a local search first finds a way in.
            value = value + 1e9 * np.maximum(0.0, tardiness - cost_limit).sum(axis=1)
            value[(tardiness >= cost_limit).any(axis=1)] += 1e9
        return value, makespan, tardiness

    if math.factorial(n_vehicles) * N_RULES**n_vehicles <= MAX_CANDIDATES:
        plans = [
            StaticPlan(order, rules)
            for order in itertools.permutations(range(n_vehicles))
            for rules in itertools.product(range(N_RULES), repeat=n_vehicles)
        ]
        value, makespan, tardiness = score(plans)
        tried = len(plans)
    else:
        plans, value, makespan, tardiness, tried = _search_static(n_vehicles, score, seed)
    best = int(value.argmin())
    if within_limit and (tardiness[best] >= cost_limit).any():
        return None
    return StaticResult(plans[best], makespan[best], tardiness[best], tried)


def _search_static(
    n_vehicles: int,
    score: Callable[[Sequence[StaticPlan]], tuple[np.ndarray, np.ndarray, np.ndarray]],
    seed: int,
) -> tuple[list[StaticPlan], np.ndarray, np.ndarray, np.ndarray, int]:
    key = np.empty(4, np.uint32)
    derive_key(seed, SEARCH, n_vehicles, 0, key)
    order = tuple(range(n_vehicles))
    plans = [StaticPlan(order, (rule,) * n_vehicles) for rule in range(N_RULES)]
    value, makespan, tardiness = score(plans)
    best = int(value.argmin())
    plan, found = plans[best], value[best]
    kept = makespan[best], tardiness[best]
    tried = len(plans)
    batch, idle, draw = 64, 0, 0
    while tried < MAX_CANDIDATES // 10 and idle < 6:
        neighbours = []
        for _ in range(batch):
            a, b = (int(draw_uniform(key, draw, k) * n_vehicles) for k in (0, 1))
            kind = draw_uniform(key, draw, 2)
            draw += 1
            if kind < 0.5:
                rules = list(plan.rules)
                rules[a] = int(draw_uniform(key, draw, 3) * N_RULES)
                neighbours.append(StaticPlan(plan.order, tuple(rules)))
            else:
                swapped = list(plan.order)
                swapped[a], swapped[b] = swapped[b], swapped[a]
                neighbours.append(StaticPlan(tuple(swapped), plan.rules))
        value, makespan, tardiness = score(neighbours)
        tried += batch
        best = int(value.argmin())
        idle += 1
        if value[best] < found:
            plan, found, idle = neighbours[best], value[best], 0
            kept = makespan[best], tardiness[best]
    return [plan], np.array([found]), kept[0][None], kept[1][None], tried
