"""The best schedule found for a future that is known: how much there is to win.

A hindsight reference is a schedule that a clairvoyant dispatcher could follow: the simulator is
deterministic, so its action sequence can be replayed. It is the best that was found, not a proven
bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from acerl_np.evaluation.references import Reference
from acerl_np.kernels.rules import N_RULES
from acerl_np.kernels.search import anneal_actions, search_beam
from acerl_np.kernels.state import allocate_state
from acerl_np.problem.instance import Instance
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.errors import InputError
from acerl_np.support.workers import count_cores

BEAMS = ((40.0, 0.05), (20.0, 0.05))
"""(approach in m per 60 m of mean loaded way, delay weight) of each beam, see `estimate_rest`."""

BEAM_WIDTH = 40_000
ANNEALING_CHAINS = 16
ANNEALING_STEPS = 20_000


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
