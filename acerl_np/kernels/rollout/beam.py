"""A beam over the partial schedules of an episode whose future is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import rules
from acerl_np.kernels.episode import events
from acerl_np.kernels.motion import commitment, offers
from acerl_np.kernels.rollout import batch, search
from acerl_np.support.compiled import inner_kernel, kernel

PLACES = 4
"""Places of the table of hashes for each row of a beam: at a quarter full a probe or two suffice."""


N_LASTING, N_WHOLE, HALTED_AT, EDGE_OFFSET = map(
    (S.VEHICLE.names or ()).index, ("hidden", "halted_at", "halted_at", "edge_offset")
)
"""Fields of a vehicle that come first: they matter whether it works or not, the others on its way."""


class Guide(NamedTuple):
    """How a beam estimates what a partial schedule will cost, see `estimate_rest`.

    Attributes
    ----------
    approach : float, m, empty way that each task not yet assigned is expected to take
    delay_weight : float, what a second of delay counts
    most_delay : float, s, mean delay from which a partial schedule is given up
    """

    approach: float
    delay_weight: float
    most_delay: float


class Beam(NamedTuple):
    """Scratch of a beam: W partial schedules a level, their children C.

    Attributes
    ----------
    parents, children : State, W rows each, and one more to try an action in
    origin, taken : ndarray(int64, (n_levels, W)), row in the level before, and action, of each that stayed
    estimates : ndarray(float64, (C,))
    hashes : ndarray(uint64, (C,))
    child_of, child_action : ndarray(int64, (C,)), parent and action of each child
    table : ndarray(uint64, (PLACES * W,)), hashes of the level, 0 where a place is free
    """

    parents: S.State
    children: S.State
    origin: np.ndarray
    taken: np.ndarray
    estimates: np.ndarray
    hashes: np.ndarray
    child_of: np.ndarray
    child_action: np.ndarray
    table: np.ndarray


def allocate_beam(problem: S.Problem, width: int, n_levels: int) -> Beam:
    """Return a `Beam` of `width` rows with room for every child that a level can have."""
    n_vehicles, n_tasks = problem.fleet.shape[1], problem.record.shape[1]
    # A vehicle's rules pick different tasks, or the same one, which counts once.
    n_children = width * n_vehicles * min(rules.N_RULES, n_tasks)
    return Beam(
        parents=S.allocate_state(problem, width + 1),
        children=S.allocate_state(problem, width + 1),
        origin=np.empty((n_levels, width), np.int64),
        taken=np.empty((n_levels, width), np.int64),
        estimates=np.empty(n_children),
        hashes=np.empty(n_children, np.uint64),
        child_of=np.empty(n_children, np.int64),
        child_action=np.empty(n_children, np.int64),
        table=np.empty(PLACES * width, np.uint64),
    )


@inner_kernel
def find_end(state, b, v):
    """Return the tick at which vehicle v is idle again, of one that keeps its load after its delivery."""
    return np.float64(state.vehicle[b, v].event_tick + state.vehicle[b, v].left)


@inner_kernel
def estimate_rest(problem, state, b, guide, most_delay):
    """Estimate how much a partial schedule will cost; smaller is better, inf if it will be too late.

    The vehicles' clocks, plus the loaded way and the approach of every task not yet assigned, at 1 m/s,
    plus the weight of the delay that is certain or likely by now.
    """
    i = state.episode[b].instance
    distance = problem.distance[problem.instance[i].layout]
    now = np.float64(state.episode[b].time)
    estimate, delay = 0.0, 0.0
    for v in range(problem.instance[i].n_vehicles):
        idle = state.vehicle[b, v].status == S.IDLE
        estimate += now if idle else find_end(state, b, v)
    for task in range(problem.instance[i].n_tasks):
        ends = problem.ends[i, task]
        rest = distance[ends.pickup, ends.delivery] + guide.approach
        if task >= state.episode[b].n_arrived:
            estimate += rest
            continue
        v = state.task[b, task].vehicle
        if v < 0:
            estimate += rest
            finish = now + rest
        elif state.vehicle[b, v].task == task:
            finish = find_end(state, b, v)
        else:
            finish = np.float64(state.task[b, task].finish)
        delay += max(0.0, finish - S.find_due(problem, state, b, task))
    return np.inf if delay >= most_delay else estimate + guide.delay_weight * delay


@inner_kernel
def mix_hash(h, x):
    """Mix the integer x into the hash h (the finaliser of splitmix64)."""
    z = np.uint64(h) ^ np.uint64(x)
    z = np.uint64(z * np.uint64(0x9E3779B97F4A7C15))
    z = np.uint64((z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    return np.uint64(z ^ (z >> np.uint64(27)))


@inner_kernel
def hash_row(problem, state, b):
    """Hash what decides the rest of an episode: clock, waiting tasks, vehicles.

    The waiting tasks count in pool order, which settles the rules' ties. Since when they wait does not
    count: no rule that is an action asks. Breakdowns are listed ones. Some fields are left over from before:
    they keep apart what is the same, but make nothing the same that differs.
    """
    n_waiting = state.episode[b].pool_size
    h = mix_hash(np.uint64(1), state.episode[b].time)
    h = mix_hash(h, n_waiting)
    for k in range(n_waiting):
        h = mix_hash(h, state.pool[b, k])
    for v in range(problem.instance[state.episode[b].instance].n_vehicles):
        vehicle, words = state.vehicle[b, v], state.vehicle[b, v : v + 1].view(np.int64)
        if vehicle.halted_towards >= 0:
            h = mix_hash(h, words[HALTED_AT])
        breaks = vehicle.breakdown_at <= vehicle.event_tick
        n_fields = N_LASTING
        if (vehicle.status == S.WORKING and breaks) or vehicle.left > 0:
            # Where it will halt follows from where it is.
            n_fields = N_WHOLE
            h = mix_hash(h, words[EDGE_OFFSET])
        for k in range(n_fields):
            h = mix_hash(h, words[k])
    return h


@inner_kernel
def is_new(table, h):
    """Enter h into an open-addressing table; return False if it stands there already."""
    size = np.uint64(len(table))
    place = h % size
    while table[place] != np.uint64(0):
        if table[place] == h:
            return False
        place = (place + np.uint64(1)) % size
    table[place] = h
    return True


@inner_kernel
def keep_sequence(beam, level, b, action, found):
    """Write the actions that led to row b of a level, and the last one, to `found`."""
    found.actions[:] = -1
    found.actions[level] = action
    row = b
    for back in range(level - 1, -1, -1):
        found.actions[back] = beam.taken[back, row]
        row = beam.origin[back, row]


@inner_kernel
def expand_parent(problem, beam, parents, children, level, b, n, guide, cost_limit, found):
    """Try every action of parent b; append the children to the n of before, return their number.

    A child whose episode is over is no child: it may be the best found.
    """
    i = parents.episode[b].instance
    most_delay = guide.most_delay * problem.instance[i].n_tasks
    trial = beam.origin.shape[1]
    for v in range(problem.instance[i].n_vehicles):
        if not offers.has_choice(problem, parents, b, v):
            continue
        for rule in range(rules.N_RULES):
            position = rules.select_task(problem, parents, b, v, rule)
            repeated = 0
            for other in range(rule):
                repeated += rules.select_task(problem, parents, b, v, other) == position
            if repeated:
                continue
            S.copy_row(parents, b, children, trial)
            commitment.assign_task(problem, children, trial, v, position)
            events.advance_events(problem, children, trial)
            action = v * rules.N_RULES + rule
            if children.episode[trial].phase != S.RUNNING:
                if search.is_better(found, children.outcome[trial], cost_limit):
                    search.copy_outcome(children.outcome[trial], found)
                    keep_sequence(beam, level, b, action, found)
                continue
            estimate = estimate_rest(problem, children, trial, guide, most_delay)
            if estimate < np.inf:
                beam.estimates[n] = estimate
                beam.hashes[n] = hash_row(problem, children, trial)
                beam.child_of[n] = b
                beam.child_action[n] = action
                n += 1
    return n


@inner_kernel
def select_children(problem, beam, parents, children, level, order):
    """Make rows of the first different children in `order`; return their number, at most W."""
    width = beam.origin.shape[1]
    beam.table[:] = np.uint64(0)
    n = 0
    for k in order:
        if n == width:
            break
        if is_new(beam.table, beam.hashes[k]):
            b, action = beam.child_of[k], beam.child_action[k]
            S.copy_row(parents, b, children, n)
            batch.apply_rule(problem, children, n, action // rules.N_RULES, action % rules.N_RULES)
            beam.origin[level, n] = b
            beam.taken[level, n] = action
            n += 1
    return n


@kernel
def search_beam(problem, beam, instance, guide, cost_limit, found):
    """Search the best action sequence of one instance by a beam over partial schedules.

    All partial schedules of a level have taken the same number of decisions. Of those that agree in
    `hash_row` the one of smallest estimate stays; of the rest the W best.

    Parameters
    ----------
    beam : Beam, from `allocate_beam`: the children of a level must fit
    instance : int, row of `problem`
    cost_limit : float, the cost of a kept sequence is below it where that is within reach
    found : Found, output, as long as the beam has levels
    """
    search.clear_found(found)
    parents, children = beam.parents, beam.children
    events.start_episode(problem, parents, 0, instance)
    n = 1
    for level in range(len(beam.origin)):
        n_children = 0
        for b in range(n):
            n_children = expand_parent(
                problem, beam, parents, children, level, b, n_children, guide, cost_limit, found
            )
        order = np.argsort(beam.estimates[:n_children], kind="mergesort")
        n = select_children(problem, beam, parents, children, level, order)
        if n == 0:
            return
        parents, children = children, parents  # of the next level
