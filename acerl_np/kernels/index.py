"""Index policies: one small function scores every pair of an idle vehicle and a waiting task.

A pair is described by features in units of the floor, so that one function serves any floor and fleet:
times are divided by the time that a vehicle takes for the mean distance between two sites.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels import state as S
from acerl_np.kernels.events import has_choice
from acerl_np.kernels.network import draw_softmax
from acerl_np.kernels.random import draw_uniform
from acerl_np.kernels.state import (
    count_idle,
    count_ticks,
    find_due,
    find_priority,
    is_offered,
    may_carry,
)
from acerl_np.kernels.ways import find_approach, find_slowdown
from acerl_np.support.compiled import inner_kernel

F = np.float32

N_INDEX_FEATURES = 26
(
    APPROACH,
    LOADED,
    SLACK,
    URGENCY,
    LATENESS,
    WAITING,
    OTHER_SOONEST,
    OTHER_LATENESS,
    NEXT_PICKUP,
    MEAN_PICKUP,
    NEXT_SLACK,
    EARLIER_DUE,
    CROWD_APPROACH,
    CROWD_SLACK,
    CROWD,
    IDLE_SHARE,
    BREAKS,
    WASTED,
    MARGIN,
    MARGIN_LOADED,
    LAST_APPROACH,
    LAST_LOADED,
    LAST_OVERSHOOT,
    ARRIVED_APPROACH,
    TIME_APPROACH,
    TIME_SLACK,
) = range(N_INDEX_FEATURES)

MOST_OTHERS = 32
"""Waiting tasks, the first in pool order, that a task is compared with: a decision among n tasks takes
time in proportion to n, not to its square."""

FAR = 4.0
"""Units of time at which features that may grow without end are cut."""


class Index(NamedTuple):
    """Index functions of one shape, one in each row.

    The parameters of a row: a weight per feature that is used; then, with hidden units, the weights of the
    first layer, input-major, its biases, and the units' output weights; then a bias per vehicle if
    vehicles are told apart. A score is the linear part plus that of the hidden units (ReLU).

    Attributes
    ----------
    parameters : ndarray(float32, (N, n_parameters))
    used : ndarray(int32, (n_used,)), features, ascending
    n_hidden : int
    n_names : int, vehicles that are told apart, 0 for none
    knows_breakdowns, knows_rest : bool
        Whether listed breakdowns, and the number and times of tasks, are looked at.
    """

    parameters: np.ndarray
    used: np.ndarray
    n_hidden: int
    n_names: int
    knows_breakdowns: bool
    knows_rest: bool


class Pairs(NamedTuple):
    """Scratch of one decision, and the pairs that it is between.

    Attributes
    ----------
    n : ndarray(int64, (1,)), number of pairs
    vehicle, position : ndarray(int32, (V * M,)), idle vehicle, and position of the task in the pool
    score : ndarray(float64, (V * M,))
    weight : ndarray(float64, (V * M,)), scratch of a draw
    soonest, second : ndarray(float64, (M,)), s until a vehicle is at a task's pickup: the first, the next
    first, after : ndarray(int64, (M,)), the vehicles that are there first and next, -1 for none
    nearest, mean : ndarray(float64, (M,)), m from a task's delivery to the other pickups
    tightest : ndarray(float64, (M,)), least slack of the other tasks begun at a task's delivery at time 0
    earlier : ndarray(float64, (M,)), share of the other tasks that are due earlier
    approach : ndarray(float64, (M,)), s from a vehicle to the pickups
    x : ndarray(float32, (N_INDEX_FEATURES,)), features of one pair
    hidden : ndarray(float32, (n_hidden,))
    """

    n: np.ndarray
    vehicle: np.ndarray
    position: np.ndarray
    score: np.ndarray
    weight: np.ndarray
    soonest: np.ndarray
    second: np.ndarray
    first: np.ndarray
    after: np.ndarray
    nearest: np.ndarray
    mean: np.ndarray
    tightest: np.ndarray
    earlier: np.ndarray
    approach: np.ndarray
    x: np.ndarray
    hidden: np.ndarray


def allocate_pairs(n_vehicles: int, n_tasks: int, n_hidden: int) -> Pairs:
    """Return room for every pair of so many vehicles and tasks."""
    n = n_vehicles * n_tasks
    return Pairs(
        n=np.zeros(1, np.int64),
        vehicle=np.empty(n, np.int32),
        position=np.empty(n, np.int32),
        score=np.empty(n),
        weight=np.empty(n),
        soonest=np.empty(n_tasks),
        second=np.empty(n_tasks),
        first=np.empty(n_tasks, np.int64),
        after=np.empty(n_tasks, np.int64),
        nearest=np.empty(n_tasks),
        mean=np.empty(n_tasks),
        tightest=np.empty(n_tasks),
        earlier=np.empty(n_tasks),
        approach=np.empty(n_tasks),
        x=np.zeros(N_INDEX_FEATURES, np.float32),
        hidden=np.empty(n_hidden, np.float32),
    )


@inner_kernel
def time_approach(problem, state, b, v, pickup):
    """Return the seconds that an idle or broken vehicle needs from where it truly stands to a pickup."""
    metres, slowdown, _ = find_approach(problem, state, b, v, pickup)
    return metres / problem.fleet[state.episode[b, S.EPISODE_INSTANCE], v, S.FLEET_SPEED] + slowdown


@inner_kernel
def find_soonest(problem, state, b, index, pairs):
    """Find which vehicle that may carry it could fetch each waiting task first, and how soon the next could.

    Returns
    -------
    tuple of (float, float, int)
        Ticks at which the working vehicles that finish last and next to last do so, and the last one.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    distance = problem.distance[problem.instance[i, S.INSTANCE_LAYOUT]]
    now = np.float64(state.episode[b, S.EPISODE_TIME])
    size = state.episode[b, S.EPISODE_POOL_SIZE]
    for k in range(size):
        pairs.soonest[k] = np.inf
        pairs.second[k] = np.inf
        pairs.first[k] = -1
        pairs.after[k] = -1
    last, before, last_vehicle = now, now, -1
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        status = state.vehicle[b, v, S.VEHICLE_STATUS]
        if status == S.BROKEN and not (
            index.knows_breakdowns and problem.fleet[i, v, S.FLEET_MEAN_UPTIME] == 0.0
        ):
            continue  # nobody knows how long the repair will take
        wait = 0.0
        if status != S.IDLE:
            free = np.float64(state.vehicle[b, v, S.VEHICLE_EVENT_TICK])
            wait = max(0.0, free - now)
            if status == S.WORKING:
                if free > last:
                    last, before, last_vehicle = free, last, v
                else:
                    before = max(before, free)
        speed = problem.fleet[i, v, S.FLEET_SPEED]
        row = problem.fleet[i, v, S.FLEET_SLOWDOWN]
        for k in range(size):
            if not may_carry(problem, i, v, state.pool[b, k]):
                continue
            pickup = problem.ends[i, state.pool[b, k], S.ENDS_PICKUP]
            if status == S.WORKING:
                site = problem.ends[i, state.vehicle[b, v, S.VEHICLE_TASK], S.ENDS_DELIVERY]
                seconds = distance[site, pickup] / speed + find_slowdown(problem, row, site, pickup)
            else:
                seconds = time_approach(problem, state, b, v, pickup)
            there = wait + seconds
            if there < pairs.soonest[k]:
                pairs.second[k] = pairs.soonest[k]
                pairs.after[k] = pairs.first[k]
                pairs.soonest[k] = there
                pairs.first[k] = v
            elif there < pairs.second[k]:
                pairs.second[k] = there
                pairs.after[k] = v
    return last, before, last_vehicle


@inner_kernel
def compare_tasks(problem, state, b, pairs):
    """Find for each waiting task how well another one would follow it, and how many are due earlier.

    The others are the first `MOST_OTHERS` of the pool.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    distance = problem.distance[problem.instance[i, S.INSTANCE_LAYOUT]]
    seconds = problem.unit[i, S.UNIT_SECONDS] / problem.unit[i, S.UNIT_METRES]
    row = problem.unit[i, S.UNIT_SLOWDOWN]
    size = state.episode[b, S.EPISODE_POOL_SIZE]
    most = min(size, MOST_OTHERS)
    for k in range(most):
        # The time by which each task must be begun at its pickup; `approach` serves as scratch.
        task = state.pool[b, k]
        pickup, delivery = (
            problem.ends[i, task, S.ENDS_PICKUP],
            problem.ends[i, task, S.ENDS_DELIVERY],
        )
        loaded = distance[pickup, delivery] * seconds
        loaded += find_slowdown(problem, row, pickup, delivery)
        latest = find_due(problem, i, task) - problem.record[i, task, S.RECORD_HANDLING]
        pairs.approach[k] = latest - loaded
    for k in range(size):
        task = state.pool[b, k]
        due = find_due(problem, i, task)
        delivery = problem.ends[i, task, S.ENDS_DELIVERY]
        nearest, total, tightest = np.inf, 0.0, np.inf
        earlier, n = 0, 0
        for j in range(most):
            if j == k:
                continue
            n += 1
            other = state.pool[b, j]
            pickup = problem.ends[i, other, S.ENDS_PICKUP]
            metres = distance[delivery, pickup]
            nearest = min(nearest, metres)
            total += metres
            way = metres * seconds + find_slowdown(problem, row, delivery, pickup)
            tightest = min(tightest, pairs.approach[j] - way)
            earlier += 1 if find_due(problem, i, other) < due else 0
        pairs.nearest[k] = nearest if n > 0 else 0.0
        pairs.mean[k] = total / max(1, n)
        pairs.tightest[k] = tightest
        pairs.earlier[k] = earlier / max(1, n)


@inner_kernel
def clip(x, low, high):
    """Return x cut to the range from low to high."""
    return min(max(x, low), high)


@inner_kernel
def find_shared(problem, state, b, index, pairs):
    """Find what all pairs of a decision share; return how many vehicles are idle, and how many busy."""
    busy = find_soonest(problem, state, b, index, pairs)
    compare_tasks(problem, state, b, pairs)
    return count_idle(problem, state, b), busy


@inner_kernel
def time_approaches(problem, state, b, v, pairs):
    """Write how long vehicle v takes to the pickup of each waiting task into `pairs.approach`, s."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    for k in range(state.episode[b, S.EPISODE_POOL_SIZE]):
        pickup = problem.ends[i, state.pool[b, k], S.ENDS_PICKUP]
        pairs.approach[k] = time_approach(problem, state, b, v, pickup)


@inner_kernel
def write_features(problem, state, b, index, v, k, n_idle, busy, pairs):
    """Write the features of the pair of vehicle v and the task at position k of the pool into `pairs.x`.

    Parameters
    ----------
    n_idle : int, idle vehicles
    busy : tuple of (float, float, int), from `find_soonest`
    pairs : Pairs, input: what `find_soonest` and `compare_tasks` found, and `approach`. Output: `x`.
    """
    i = state.episode[b, S.EPISODE_INSTANCE]
    layout = problem.instance[i, S.INSTANCE_LAYOUT]
    now = np.float64(state.episode[b, S.EPISODE_TIME])
    size = state.episode[b, S.EPISODE_POOL_SIZE]
    n_vehicles = problem.instance[i, S.INSTANCE_N_VEHICLES]
    per_second = 1.0 / problem.unit[i, S.UNIT_SECONDS]
    per_metre = 1.0 / problem.unit[i, S.UNIT_METRES]
    x = pairs.x
    task = state.pool[b, k]
    pickup, delivery = problem.ends[i, task, S.ENDS_PICKUP], problem.ends[i, task, S.ENDS_DELIVERY]
    due = find_due(problem, i, task)
    approach = pairs.approach[k]
    metres = problem.distance[layout, pickup, delivery]
    handling = problem.record[i, task, S.RECORD_HANDLING]
    row = problem.fleet[i, v, S.FLEET_SLOWDOWN]
    speed = problem.fleet[i, v, S.FLEET_SPEED]
    loaded = metres / speed + find_slowdown(problem, row, pickup, delivery) + handling
    finish = now + approach + loaded
    slack = (due - finish) * per_second
    a, c = approach * per_second, loaded * per_second
    eased = clip(slack, 0.0, FAR)
    x[APPROACH] = a
    x[LOADED] = c
    x[SLACK] = eased
    x[URGENCY] = clip(1.0 - slack, 0.0, 1.0)
    x[LATENESS] = max(0.0, -slack)
    x[WAITING] = (now - state.waiting_since[b, task]) * per_second

    is_first = pairs.first[k] == v
    other = pairs.second[k] if is_first else pairs.soonest[k]
    rival = pairs.after[k] if is_first else pairs.first[k]
    its_loaded = 0.0
    if rival >= 0:
        row = problem.fleet[i, rival, S.FLEET_SLOWDOWN]
        its_loaded = metres / problem.fleet[i, rival, S.FLEET_SPEED] + handling
        its_loaded += find_slowdown(problem, row, pickup, delivery)
    x[OTHER_SOONEST] = min(other * per_second, FAR)
    x[OTHER_LATENESS] = clip((now + other + its_loaded - due) * per_second, 0.0, FAR)

    x[NEXT_PICKUP] = pairs.nearest[k] * per_metre
    x[MEAN_PICKUP] = pairs.mean[k] * per_metre
    x[NEXT_SLACK] = clip((pairs.tightest[k] - finish) * per_second, -FAR, FAR)
    x[EARLIER_DUE] = pairs.earlier[k]

    crowd = min(1.0, 0.5 * size / n_vehicles)
    x[CROWD_APPROACH] = crowd * a
    x[CROWD_SLACK] = crowd * eased
    x[CROWD] = crowd
    x[IDLE_SHARE] = n_idle / n_vehicles
    if index.knows_breakdowns:
        margin = FAR
        following = state.vehicle[b, v, S.VEHICLE_NEXT_BREAKDOWN]
        x[BREAKS] = F(0.0)
        x[WASTED] = F(0.0)
        if following < problem.breakdown.shape[2]:
            tick = problem.breakdown[i, v, following, S.BREAKDOWN_TICK]
            if tick < S.NEVER:
                # At the tick of its finish a vehicle breaks down before it has delivered.
                ends = state.episode[b, S.EPISODE_TIME] + count_ticks(approach + loaded)
                breaks = tick <= ends
                x[BREAKS] = F(1.0) if breaks else F(0.0)
                x[WASTED] = (np.float64(tick) - now) * per_second if breaks else 0.0
                margin = clip((np.float64(tick) - finish) * per_second, 0.0, FAR)
        x[MARGIN] = margin
        x[MARGIN_LOADED] = min(margin, 1.0) * c
    if index.knows_rest:
        n_tasks = problem.instance[i, S.INSTANCE_N_TASKS]
        arrived = state.episode[b, S.EPISODE_N_ARRIVED] / n_tasks
        last, before, last_vehicle = busy
        over = 1.0 if arrived == 1.0 else 0.0
        end = before if last_vehicle == v else last
        x[LAST_APPROACH] = over * a
        x[LAST_LOADED] = over * c
        x[LAST_OVERSHOOT] = over * clip((finish - end) * per_second, 0.0, FAR)
        x[ARRIVED_APPROACH] = arrived * a
        last_arrival = problem.record[i, n_tasks - 1, S.RECORD_ARRIVAL]
        fraction = min(1.0, now / last_arrival) if last_arrival > 0.0 else 1.0
        x[TIME_APPROACH] = fraction * a
        x[TIME_SLACK] = fraction * eased


@inner_kernel
def score_pair(index, row, v, x, hidden):
    """Return the index of a pair by the function in a row of `index`."""
    parameters = index.parameters[row]
    n = len(index.used)
    score = F(0.0)
    for k in range(n):
        score += parameters[k] * x[index.used[k]]
    width = index.n_hidden
    position = n
    if width > 0:
        bias = parameters[n + n * width :]
        for j in range(width):
            hidden[j] = bias[j]
        for k in range(n):
            value = x[index.used[k]]
            weights = parameters[n + k * width :]
            for j in range(width):
                hidden[j] += value * weights[j]
        output = parameters[n + (n + 1) * width :]
        for j in range(width):
            score += output[j] * max(F(0.0), hidden[j])
        position += (n + 2) * width
    if v < index.n_names:
        score += parameters[position + v]
    return np.float64(score)


@inner_kernel
def score_pairs(problem, state, b, index, row, pairs):
    """Score every pair of episode b that is possible; list them by vehicle, then by place in the pool."""
    i = state.episode[b, S.EPISODE_INSTANCE]
    size = state.episode[b, S.EPISODE_POOL_SIZE]
    n_idle, busy = find_shared(problem, state, b, index, pairs)
    n = 0
    for v in range(problem.instance[i, S.INSTANCE_N_VEHICLES]):
        if not has_choice(problem, state, b, v):
            continue
        time_approaches(problem, state, b, v, pairs)
        priority = find_priority(problem, state, b, v)
        for k in range(size):
            if is_offered(problem, i, v, state.pool[b, k], priority):
                write_features(problem, state, b, index, v, k, n_idle, busy, pairs)
                pairs.vehicle[n] = v
                pairs.position[n] = k
                pairs.score[n] = score_pair(index, row, v, pairs.x, pairs.hidden)
                n += 1
    pairs.n[0] = n


@inner_kernel
def choose_pair(problem, state, b, index, row, greedy, key, decision, pairs):
    """Return vehicle and pool position of the pair of largest score, or one drawn from the softmax.

    The first of equals wins. Draw (decision, 0) of the stream of `key` samples; -1 twice without a pair.
    """
    score_pairs(problem, state, b, index, row, pairs)
    n = pairs.n[0]
    if n == 0:
        return np.int64(-1), np.int64(-1)
    best = 0
    for k in range(1, n):
        if pairs.score[k] > pairs.score[best]:
            best = k
    if not greedy:
        for k in range(n):
            pairs.weight[k] = pairs.score[k]
        best = draw_softmax(pairs.weight, n, draw_uniform(key, decision, np.int64(0)))
    return np.int64(pairs.vehicle[best]), np.int64(pairs.position[best])
