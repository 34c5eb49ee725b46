"""How far and how long a vehicle drives: routes, speed limits, and the way on after a halt in mid-edge."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels import state as S
from acerl_np.kernels.state import round_sum
from acerl_np.support.compiled import inner_kernel


@inner_kernel
def find_slowdown(problem, row, a, b):
    """Return by how many seconds speed limits slow the route from a to b; `row` as FLEET_SLOWDOWN has it."""
    return problem.slowdown[np.int64(row), a, b] if row >= 0.0 else 0.0


@inner_kernel
def find_pace(problem, i, v, a, b):
    """Return the speed, m/s, of vehicle v of instance i on the edge from a to b."""
    speed = problem.fleet[i, v, S.FLEET_SPEED]
    if problem.fleet[i, v, S.FLEET_SLOWDOWN] < 0.0:
        return speed
    return min(speed, problem.edge_speed[problem.instance[i, S.INSTANCE_LAYOUT], a, b])


@inner_kernel
def slow_part(problem, i, v, a, b, metres):
    """Return by how many seconds a speed limit slows vehicle v on `metres` of the edge from a to b."""
    if problem.fleet[i, v, S.FLEET_SLOWDOWN] < 0.0:
        return 0.0
    return metres / find_pace(problem, i, v, a, b) - metres / problem.fleet[i, v, S.FLEET_SPEED]


@inner_kernel
def find_approach(problem, state, b, v, pickup):
    """Return how a vehicle that does not work comes from where it truly stands to a pickup.

    From mid-edge it turns back or goes on, whichever is shorter, or quicker where routes are the quickest.

    Returns
    -------
    tuple of (float, float, bool)
        Metres, seconds that speed limits add, and whether it turns back.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    layout = problem.instance[i, S.INSTANCE_LAYOUT]
    row = problem.fleet[i, v, S.FLEET_SLOWDOWN]
    site = state.vehicle[b, v, S.VEHICLE_SITE]
    ahead = state.vehicle[b, v, S.VEHICLE_HALTED_TOWARDS]
    done = state.place[b, v, S.PLACE_HALTED_AT]
    metres = problem.distance[layout, site, pickup]
    if ahead < 0:
        return metres, find_slowdown(problem, row, site, pickup), False
    if done == 0.0:
        return round_sum(metres), find_slowdown(problem, row, site, pickup), False
    rest = problem.edge_length[layout, site, ahead] - done
    onward = round_sum(rest + problem.distance[layout, ahead, pickup])
    slow_onward = slow_part(problem, i, v, site, ahead, rest)
    slow_onward += find_slowdown(problem, row, ahead, pickup)
    if problem.edge_length[layout, ahead, site] == np.inf:
        return onward, slow_onward, False
    back = round_sum(done + metres)
    slow_back = slow_part(problem, i, v, ahead, site, done)
    slow_back += find_slowdown(problem, row, site, pickup)
    turns = back <= onward
    if problem.instance[i, S.INSTANCE_QUICKEST]:
        speed = problem.fleet[i, v, S.FLEET_SPEED]
        turns = round_sum(back / speed + slow_back) <= round_sum(onward / speed + slow_onward)
    return (back, slow_back, True) if turns else (onward, slow_onward, False)
