"""The best schedule found for a future that is known: how much there is to win.

A clairvoyant dispatcher could follow it. It is the best that was found, not a proven bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial

import numpy as np

from acerl_np.evaluation.references import Reference
from acerl_np.kernels.annealing import Style, anneal_actions
from acerl_np.kernels.beam import Guide, allocate_beam, search_beam
from acerl_np.kernels.random import SEARCH, derive_key
from acerl_np.kernels.rules import N_RULES
from acerl_np.kernels.search import Found, allocate_found
from acerl_np.kernels.state import allocate_state
from acerl_np.policies.static_search import find_static
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.errors import InputError
from acerl_np.support.numbers import Whole
from acerl_np.support.team import Team, lead
from acerl_np.support.workers import count_cores

BEAMS = (Guide(approach=40.0, delay_weight=0.05), Guide(approach=20.0, delay_weight=0.05))
"""Beams that are searched one after the other: they err differently."""

STYLES = (Style(most_changes=6.0, mean_weight=0.1), Style(most_changes=4.0, mean_weight=0.3))
"""How annealing chains move in turn; no style was best on all of the bundled records."""

BEAM_WIDTH = 40_000
ANNEALING_CHAINS = 16
ANNEALING_STEPS = 20_000
"""Partial schedules of a level, chains and steps of a chain at effort 1: about seven seconds of a core for a
DMH record."""


def replay(instance: Instance, actions: Sequence[int]) -> tuple[float, float]:
    """Play an action sequence and return makespan and tardiness; it must end with the episode."""
    simulator = Simulator(instance)
    for k, action in enumerate(actions):
        if simulator.done[0]:
            raise InputError(f"{instance.name}: over after {k} decisions; read {len(actions)}")
        simulator.step([action])
    if not simulator.done[0]:
        raise InputError(f"{instance.name}: not over after {len(actions)} decisions; expected more")
    return float(simulator.makespan[0]), float(simulator.tardiness[0])


def check_future(instance: Instance) -> None:
    """Refuse an instance whose vehicles break down at random: its future is not known."""
    if instance.layout.has_random_breakdowns:
        raise InputError(
            f"{instance.name}: vehicles break down at random, so the future is not known; "
            "expected listed breakdowns only (--random-breakdowns none)"
        )


def measure_size(instance: Instance) -> float:
    """Return how many times the work of a DMH record (30 tasks, 3 vehicles) the same search would be.

    The work of a level grows with the fleet and the record, and so does the number of levels. What is
    smaller has fewer schedules, too, and counts as one.
    """
    return max(1.0, (instance.n_tasks / 30) ** 2 * (len(instance.layout.vehicles) / 3))


def _search(instance: Instance, cost_limit: float, effort: float, seed: Whole) -> Iterator[Found]:
    """Yield what each search finds, in one `Found` that the next search writes over."""
    problem = build_problem([instance])
    n_breakdowns = sum(len(vehicle.breakdowns) for vehicle in instance.layout.vehicles)
    # Each task is assigned once, and once more after a breakdown on its way.
    n_levels = instance.n_tasks + n_breakdowns
    size = measure_size(instance)
    found = allocate_found(n_levels)
    beam = allocate_beam(problem, max(8, int(effort * BEAM_WIDTH / size)), n_levels)
    for guide in BEAMS:
        search_beam(problem, beam, 0, guide, cost_limit, found)
        yield found
    del beam
    state = allocate_state(problem, 1)
    content = int.from_bytes(bytes.fromhex(instance.content_hash[:16]), signed=True)
    steps = max(200, int(effort * ANNEALING_STEPS / size))
    key = np.empty(4, np.uint32)
    for chain in range(ANNEALING_CHAINS):
        derive_key(seed, SEARCH, content, chain, key)
        style = STYLES[chain % len(STYLES)]
        anneal_actions(problem, state, 0, key, style, steps, cost_limit, found)
        yield found


def follow_static(instance: Instance, cost_limit: float) -> tuple[float, float, tuple[int, ...]]:
    """Return makespan, tardiness and actions of the best static plan, inf and none if there is none."""
    goal = Goal(cost_limit=cost_limit)
    found = find_static(instance, goal=goal, within_limit=True, threads=1)
    if found is None or not np.isfinite(found.makespan[0]):
        return math.inf, math.inf, ()
    simulator = Simulator(instance)
    actions = []
    while not simulator.done[0]:
        legal = simulator.action_mask[0]
        own = (v * N_RULES + found.plan.rules[v] for v in found.plan.order)
        actions.append(next(action for action in own if legal[action]))
        simulator.step([actions[-1]])
    return float(simulator.makespan[0]), float(simulator.tardiness[0]), tuple(actions)


def find_hindsight(
    instance: Instance, *, cost_limit: float = 50.0, effort: float = 1.0, seed: Whole = 0
) -> Reference | None:
    """Search the best action sequence of an instance with a tardiness below the limit, None if there is none.

    Beams over partial schedules, then annealing of whole sequences, beside the best static plan for this
    record, so that none is better; the same arguments give the same sequence. `effort` is a factor on the
    work: 1 takes about seven seconds of a core for a DMH record or a larger one.
    """
    check_future(instance)
    best = follow_static(instance, cost_limit)
    for found in _search(instance, cost_limit, effort, seed):
        makespan, tardiness = (float(x) for x in found.outcome)
        if math.isfinite(makespan) and (makespan, tardiness) < best[:2]:
            best = (makespan, tardiness, tuple(int(x) for x in found.actions if x >= 0))
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
    seed: Whole = 0,
    threads: int | None = None,
    callback: Callable[[Instance, Reference | None], object] | None = None,
    executor: Executor | Team | None = None,
) -> list[Reference | None]:
    """Search references of several instances as `find_hindsight`, one per core or worker at a time.

    `callback` is called with each instance and its reference, as they are found. The workers of `executor`
    search, by default threads; no result depends on it.
    """
    search = partial(find_hindsight, cost_limit=cost_limit, effort=effort, seed=seed)
    found: list[Reference | None] = [None] * len(instances)
    with lead(executor, threads or count_cores()) as team:
        for k, reference in team.run(search, instances):
            found[k] = reference
            if callback is not None:
                callback(instances[k], reference)
    return found
