"""How far and how long a vehicle drives: routes, speed limits, and the way on after a halt in mid-edge."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def find_slowdown(problem, row, a, b):
    """Return by how many seconds speed limits slow the route from a to b; `row` as of a fleet."""
    return problem.slowdown[np.int64(row), a, b] if row >= 0.0 else 0.0


@inner_kernel
def measure_way(problem, i, v, a, b):
    """Return the metres of vehicle v from site a to site b, and the seconds that speed limits add."""
    metres = problem.distance[problem.instance[i].layout, a, b]
    return metres, find_slowdown(problem, problem.fleet[i, v].slowdown, a, b)


@S.unless_auxiliary(False)
def is_cut_off(problem, i, task):
    """Whether a task waits aside: its pickup and delivery, or it and all that may carry it, are apart."""
    if not problem.instance[i].lacks_ways:
        return False
    distance, ends = problem.distance[problem.instance[i].layout], problem.ends[i, task]
    if distance[ends.pickup, ends.delivery] == np.inf:
        return True
    for v in range(problem.instance[i].n_vehicles):
        start = problem.start_site[i, v]
        if S.may_carry(problem, i, v, task) and distance[start, ends.pickup] < np.inf:
            return False
    return True


@inner_kernel
def find_pace(problem, i, v, a, b):
    """Return the speed, m/s, of vehicle v of instance i on the edge from a to b."""
    speed = problem.fleet[i, v].speed
    if problem.fleet[i, v].slowdown < 0.0:
        return speed
    return min(speed, problem.edge_speed[problem.instance[i].layout, a, b])


@inner_kernel
def slow_part(problem, i, v, a, b, metres):
    """Return by how many seconds a speed limit slows vehicle v on `metres` of the edge from a to b."""
    if problem.fleet[i, v].slowdown < 0.0:
        return 0.0
    return metres / find_pace(problem, i, v, a, b) - metres / problem.fleet[i, v].speed


@S.unless_auxiliary(False)
def may_turn(state, b, v):
    """Whether vehicle v drives, queues or charges, and may turn to a task."""
    return state.vehicle[b, v].stand_site >= 0


@inner_kernel
def find_stand(state, b, v):
    """Return the site from which vehicle v sets out: the next one if it drives and is free, else its own."""
    stands = may_turn(state, b, v)
    return state.vehicle[b, v].stand_site if stands else state.vehicle[b, v].site


@S.unless_auxiliary(0.0)
def find_delay(state, b, v):
    """Return in how many seconds a free vehicle is where it sets out."""
    if not may_turn(state, b, v):
        return 0.0
    return np.float64(state.vehicle[b, v].stand_tick - state.episode[b].time)


@S.unless_auxiliary(0.0)
def find_rest(state, b, v):
    """Return how many metres a free vehicle still drives to where it sets out."""
    # Where distances are cut, it may be there before its pace says so.
    if find_delay(state, b, v) == 0.0:
        return 0.0
    now, vehicle = np.float64(state.episode[b].time), state.vehicle[b, v]
    return max(0.0, vehicle.stand_reached - now) * vehicle.stand_pace


@inner_kernel
def find_approach(problem, state, b, v, pickup):
    """Return how a free vehicle comes from where it stands to a site; one that drives, from its next site.

    From mid-edge it turns back or goes on, whichever is shorter, or quicker where routes are the quickest.

    Returns
    -------
    tuple of (float, float, bool)
        Metres, seconds that speed limits add, and whether it turns back.
    """
    i = state.episode[b].instance
    edge_length = problem.edge_length[problem.instance[i].layout]
    site = find_stand(state, b, v)
    ahead = state.vehicle[b, v].halted_towards
    done = state.vehicle[b, v].halted_at
    metres, slowdown = measure_way(problem, i, v, site, pickup)
    if ahead < 0:
        return metres, slowdown, False
    if done == 0.0:
        return S.round_sum(metres), slowdown, False
    rest = edge_length[site, ahead] - done
    beyond, slow_onward = measure_way(problem, i, v, ahead, pickup)
    onward = S.round_sum(rest + beyond)
    slow_onward = slow_part(problem, i, v, site, ahead, rest) + slow_onward
    if edge_length[ahead, site] == np.inf:
        return onward, slow_onward, False
    back = S.round_sum(done + metres)
    slow_back = slow_part(problem, i, v, ahead, site, done) + slowdown
    turns = back <= onward
    if problem.instance[i].quickest:
        speed = problem.fleet[i, v].speed
        turns = S.round_sum(back / speed + slow_back) <= S.round_sum(onward / speed + slow_onward)
    return (back, slow_back, True) if turns else (onward, slow_onward, False)


@inner_kernel
def time_way(problem, state, b, v, site, pickup):
    """Return the seconds of vehicle v from a site, -1 for where it is free, to a pickup."""
    i = state.episode[b].instance
    speed = problem.fleet[i, v].speed
    if site < 0:
        metres, slowdown, _ = find_approach(problem, state, b, v, pickup)
        return find_delay(state, b, v) + (metres / speed + slowdown)
    metres, slowdown = measure_way(problem, i, v, site, pickup)
    return metres / speed + slowdown


@inner_kernel
def time_loaded(problem, i, v, task):
    """Return the seconds of vehicle v from the pickup of a task to its delivery, handling included."""
    ends = problem.ends[i, task]
    metres, slowdown = measure_way(problem, i, v, ends.pickup, ends.delivery)
    return metres / problem.fleet[i, v].speed + slowdown + problem.record[i, task].handling


@inner_kernel
def count_trip(problem, i, v, task, metres, slowdown, truncates):
    """Return the ticks of vehicle v to a pickup, by so many metres and slowed down, and to the delivery.

    `truncates`: whether the whole way is cut to whole metres where the layout says so, as of one that has not
    halted within an edge.
    """
    ends, speed = problem.ends[i, task], problem.fleet[i, v].speed
    to_pickup = S.count_ticks(metres / speed + slowdown)
    loaded, slow_loaded = measure_way(problem, i, v, ends.pickup, ends.delivery)
    metres += loaded
    if truncates:
        metres = S.measure_distance(metres, problem.instance[i].truncates)
    slowdown += slow_loaded
    # Without a limit the sum is that of the two times alone, to the last bit.
    handling = problem.record[i, task].handling
    duration = max(np.int64(1), S.count_ticks(metres / speed + slowdown + handling))
    return min(to_pickup, duration), duration


@inner_kernel
def count_move(problem, i, v, metres, slowdown, truncates):
    """Return the ticks of vehicle v on a way without a task, as `count_trip` counts those of one."""
    if truncates:
        metres = S.measure_distance(metres, problem.instance[i].truncates)
    return max(np.int64(1), S.count_ticks(metres / problem.fleet[i, v].speed + slowdown))


@inner_kernel
def count_way(problem, i, v, a, b):
    """Return the ticks of vehicle v without a load from site a to site b, `NEVER` where no way leads."""
    metres, slowdown = measure_way(problem, i, v, a, b)
    if metres == np.inf:
        return S.NEVER
    return S.count_ticks(metres / problem.fleet[i, v].speed + slowdown)
