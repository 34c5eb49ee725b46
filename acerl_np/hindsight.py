"""Two yardsticks: the best static plan, and the best schedule found for a future that is known.

A hindsight reference is a schedule that a clairvoyant dispatcher could follow: the simulator is
deterministic, so its action sequence can be replayed. It is the best that was found, not a proven
bound.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from acerl_np.checks import is_whole
from acerl_np.errors import InputError, describe
from acerl_np.kernels.random import SEARCH, derive_key, draw_uniform
from acerl_np.kernels.rules import N_RULES
from acerl_np.kernels.search import anneal_actions, search_beam
from acerl_np.kernels.state import allocate_state
from acerl_np.problem.instance import Instance, instances_folder, list_instances
from acerl_np.problem.tables import build_problem
from acerl_np.rollout import play_by_plan
from acerl_np.simulator import Simulator
from acerl_np.storage import read_text, write_atomically
from acerl_np.workers import Workers, count_cores

RULE_NAMES = ("FCFS", "EDD", "NVF", "STD")

MAX_CANDIDATES = 50_000
"""Most static plans that are tried one by one; larger fleets are searched locally."""

MAX_EPISODES = 200_000
"""Episodes whose tables are held at a time while static plans are tried."""

BEAMS = ((40.0, 0.05), (20.0, 0.05))
"""(approach in m per 60 m of mean loaded way, delay weight) of each beam, see `estimate_rest`."""

BEAM_WIDTH = 40_000
ANNEALING_CHAINS = 16
ANNEALING_STEPS = 20_000


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
    n_vehicles = problem.vehicle.shape[1]
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


@dataclass(frozen=True)
class Reference:
    """The best action sequence found for an instance whose future is known.

    Attributes
    ----------
    instance : str
    content_hash : str
        Of the instance.
    cost_limit : float
        s; the tardiness is below it.
    makespan, tardiness : float, s
    actions : tuple of int
        vehicle * 4 + rule, one per decision.
    """

    instance: str
    content_hash: str
    cost_limit: float
    makespan: float
    tardiness: float
    actions: tuple[int, ...]


def replay(instance: Instance, actions: Sequence[int]) -> tuple[float, float]:
    """Play an action sequence and return makespan and tardiness.

    Raises
    ------
    InputError
        If an action is illegal, or the sequence is too short or too long.
    """
    simulator = Simulator(instance)
    for k, action in enumerate(actions):
        if simulator.done[0]:
            raise InputError(f"{instance.name}: over after {k} decisions; read {len(actions)}")
        simulator.step([action])
    if not simulator.done[0]:
        raise InputError(f"{instance.name}: not over after {len(actions)} decisions; expected more")
    return float(simulator.makespan[0]), float(simulator.tardiness[0])


def check_future(instance: Instance) -> None:
    """Refuse an instance whose future is not known.

    Raises
    ------
    InputError
        If vehicles break down at random.
    """
    if instance.layout.has_random_breakdowns:
        raise InputError(
            f"{instance.name}: vehicles break down at random, so the future is not known; "
            "expected listed breakdowns only (--random-breakdowns none)"
        )


def find_hindsight(
    instance: Instance, *, cost_limit: float = 50.0, effort: float = 1.0, seed: int = 0
) -> Reference | None:
    """Search the best action sequence of an instance whose future is known.

    Beams over partial schedules, then annealing of whole sequences; the same arguments give the same
    sequence. The result is verified by replay.

    Parameters
    ----------
    instance : Instance
    cost_limit : float
        s; the tardiness of the sequence is below it.
    effort : float
        Factor on the work; 1 takes about seven seconds of a core for a DMH record or a larger one.
    seed : int

    Returns
    -------
    Reference or None
        None if no sequence below the limit was found.

    Raises
    ------
    InputError
        If vehicles break down at random: then no future is known.
    """
    check_future(instance)
    problem = build_problem([instance])
    n_vehicles = len(instance.layout.vehicles)
    n_breakdowns = sum(len(vehicle.breakdowns) for vehicle in instance.layout.vehicles)
    n_levels = instance.n_tasks + n_breakdowns
    # The work of a level grows with the fleet and the record, and so does the number of levels. What is
    # smaller than a DMH record has fewer schedules, too, and gets no more.
    size = max(1.0, (instance.n_tasks / 30.0) ** 2 * (n_vehicles / 3.0))
    width = max(8, int(effort * BEAM_WIDTH / size))
    n_children = width * min(N_RULES * n_vehicles, 12)
    states = [allocate_state(problem, width + 1) for _ in range(2)]
    scratch = (
        np.empty((n_levels, width), np.int32),
        np.empty((n_levels, width), np.int32),
        np.empty(n_children),
        np.empty(n_children, np.uint64),
        np.empty(n_children, np.int32),
        np.empty(n_children, np.int32),
        np.empty(4 * width, np.uint64),
    )
    best: tuple[float, float, tuple[int, ...]] = (math.inf, math.inf, ())
    actions = np.empty(n_levels, np.int32)
    outcome = np.empty(2)

    def keep() -> None:
        nonlocal best
        if math.isfinite(outcome[0]) and (outcome[0], outcome[1]) < best[:2]:
            sequence = tuple(int(action) for action in actions if action >= 0)
            best = (float(outcome[0]), float(outcome[1]), sequence)

    for approach, delay_weight in BEAMS:
        search_beam(
            problem, *states, 0, cost_limit, approach, delay_weight, *scratch, actions, outcome
        )
        keep()
    del states, scratch
    state = allocate_state(problem, 1)
    content = int.from_bytes(bytes.fromhex(instance.content_hash[:16]), signed=True)
    steps = max(200, int(effort * ANNEALING_STEPS / size))
    for chain in range(ANNEALING_CHAINS):
        anneal_actions(problem, state, 0, seed, content, chain, steps, cost_limit, actions, outcome)
        keep()
    if not best[2]:
        return None
    makespan, tardiness = replay(instance, best[2])
    if (makespan, tardiness) != best[:2]:
        raise InputError(
            f"{instance.name}: the replay gives {makespan}, {tardiness}, not {best[:2]}"
        )
    return Reference(instance.name, instance.content_hash, cost_limit, makespan, tardiness, best[2])


def find_references(
    instances: Sequence[Instance],
    *,
    cost_limit: float = 50.0,
    effort: float = 1.0,
    seed: int = 0,
    threads: int | None = None,
    callback: Callable[[Instance, Reference | None], object] | None = None,
) -> list[Reference | None]:
    """Search references of several instances, one per core at a time.

    Parameters
    ----------
    instances : sequence of Instance
    cost_limit, effort, seed
        As `find_hindsight`.
    threads : int, optional
    callback : callable, optional
        Called with each instance and its reference, in order.

    Returns
    -------
    list of Reference or None
    """

    def search(instance: Instance) -> Reference | None:
        return find_hindsight(instance, cost_limit=cost_limit, effort=effort, seed=seed)

    found = []
    with ThreadPoolExecutor(threads or count_cores()) as executor:
        for instance, reference in zip(instances, executor.map(search, instances), strict=True):
            found.append(reference)
            if callback is not None:
                callback(instance, reference)
    return found


def save_references(path: str | os.PathLike[str], references: Sequence[Reference]) -> None:
    """Write references as JSON, atomically.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    lines = [
        json.dumps(
            {
                "instance": item.instance,
                "content_hash": item.content_hash,
                "cost_limit": item.cost_limit,
                "makespan": item.makespan,
                "tardiness": round(item.tardiness, 9),
                "actions": list(item.actions),
            }
        )
        for item in references
    ]
    text = '{"format": 1, "references": [\n' + ",\n".join(lines) + "\n]}\n"
    write_atomically(path, text.encode())


def load_references(path: str | os.PathLike[str]) -> list[Reference]:
    """Read references that `save_references` wrote.

    Raises
    ------
    InputError
        If the file is missing or holds no references; the message names the field.
    """
    text = read_text(path, InputError)

    def is_score(value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and 0.0 <= value <= 1e12

    kinds: dict[str, tuple[str, Callable[[Any], bool]]] = {
        "instance": ("a text", lambda value: isinstance(value, str)),
        "content_hash": ("a text", lambda value: isinstance(value, str)),
        "cost_limit": ("a number of seconds", is_score),
        "makespan": ("a number of seconds", is_score),
        "tardiness": ("a number of seconds", is_score),
        "actions": (
            "a list of whole numbers",
            lambda value: isinstance(value, list) and all(map(is_whole, value)),
        ),
    }

    def check(data: Any, key: str, place: str, expected: str, fits: Callable[[Any], bool]) -> Any:
        found = "nothing"
        if isinstance(data, dict) and key in data:
            if fits(data[key]):
                return data[key]
            found = describe(data[key])
        raise InputError(
            f"{path}: holds no references: {place}{key}: read {found}; expected {expected}"
        )

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = error.msg.lower() if isinstance(error, json.JSONDecodeError) else str(error)
        place = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(
            f"{path}: holds no references: {place}not JSON: {reason[:200]}; expected a file written by "
            "acerl-np hindsight --out"
        ) from error
    check(data, "format", "", "1, the format of this version", lambda value: value == 1)
    items = check(data, "references", "", "a list", lambda value: isinstance(value, list))
    found = []
    for k, item in enumerate(items):
        values = {key: check(item, key, f"references[{k}].", *kind) for key, kind in kinds.items()}
        values["actions"] = tuple(values["actions"])
        found.append(Reference(**values))
    return found


@cache
def bundled_references() -> dict[str, Reference]:
    """Return the bundled references by content hash of their instances."""
    found: dict[str, Reference] = {}
    for path in sorted(Path(instances_folder()).glob("*/hindsight.json")):
        found.update({item.content_hash: item for item in load_references(path)})
    return found
