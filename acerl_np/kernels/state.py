"""The arrays that kernels work on: what never changes (`Problem`) and one row per episode (`State`).

Sizes: I instances, L layouts, S sites, V vehicles of the largest fleet, M tasks of the longest
record, K breakdowns, B episodes. Rows of smaller instances are padded and the padding is never read.
Times are seconds, ticks whole seconds, lengths metres.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.compiled import inlined_kernel, inner_kernel

NEVER = np.int64(2**62)
"""A tick that is never reached."""

IDLE, WORKING, BROKEN = 0, 1, 2
TO_PICKUP, TO_DELIVERY, ARRIVED = 0, 1, 2
RUNNING, FINISHED, STUCK = 0, 1, 2

SCALES = 12
"""Feature constants of an instance: (mid, half) of distance, waiting, expiry, demand and total
distance, then the divisors of speed and capacity."""


class Problem(NamedTuple):
    """Tables of all layouts and instances; kernels only read them.

    Attributes
    ----------
    distance : ndarray(float64, (L, S, S)), m, shortest-path lengths, inf where there is no way
    edge_length : ndarray(float64, (L, S, S)), m, inf where there is no edge
    next_site : ndarray(int32, (L, S, S)), the site after a on the default route from a to b
    named_route : ndarray(int32, (L, S, S)), index of the second site of the named route in
        `route_sites`, -1 where the default route is taken
    route_sites : ndarray(int32, (n,)), the named routes one after the other
    layout : ndarray(int32, (I,)), the instance's layout
    truncate : ndarray(bool, (I,)), whether distances are truncated to whole metres
    n_tasks, n_vehicles : ndarray(int32, (I,))
    pickup, delivery : ndarray(int32, (I, M)), sites
    arrival, expiry, handling, demand : ndarray(float64, (I, M)), s, s, s, units of load
    arrival_tick : ndarray(int64, (I, M)), non-decreasing along a row
    task_distance : ndarray(float64, (I, M)), m, pickup to delivery as rules measure it
    speed : ndarray(float64, (I, V)), m/s
    capacity : ndarray(float64, (I, V)), 0 is unlimited
    start_site : ndarray(int32, (I, V))
    breakdown_tick, repair_ticks : ndarray(int64, (I, V, K)), by time, `NEVER` after the last
    scaling : ndarray(float64, (I, 12)), see `SCALES`
    task_slots : ndarray(int32, (1,)), waiting tasks that the network sees
    """

    distance: np.ndarray
    edge_length: np.ndarray
    next_site: np.ndarray
    named_route: np.ndarray
    route_sites: np.ndarray
    layout: np.ndarray
    truncate: np.ndarray
    n_tasks: np.ndarray
    n_vehicles: np.ndarray
    pickup: np.ndarray
    delivery: np.ndarray
    arrival: np.ndarray
    expiry: np.ndarray
    handling: np.ndarray
    demand: np.ndarray
    arrival_tick: np.ndarray
    task_distance: np.ndarray
    speed: np.ndarray
    capacity: np.ndarray
    start_site: np.ndarray
    breakdown_tick: np.ndarray
    repair_ticks: np.ndarray
    scaling: np.ndarray
    task_slots: np.ndarray


class State(NamedTuple):
    """Episodes in progress, one row each; kernels modify them in place.

    Attributes
    ----------
    instance : ndarray(int32, (B,)), row of `Problem`
    status : ndarray(int8, (B,)), RUNNING, FINISHED or STUCK
    time : ndarray(int64, (B,)), tick
    n_arrived, n_finished, n_decisions : ndarray(int32, (B,))
    makespan, tardiness : ndarray(float64, (B,)), s, nan until finished
    pool_size : ndarray(int32, (B,))
    pool : ndarray(int32, (B, M)), waiting tasks in pool order
    waiting_since : ndarray(float64, (B, M)), s, per task
    task_vehicle : ndarray(int32, (B, M)), -1 while unassigned
    task_start, task_finish : ndarray(int64, (B, M)), ticks of the last assignment and of the finish
    vehicle_status : ndarray(int8, (B, V)), IDLE, WORKING or BROKEN
    vehicle_site : ndarray(int32, (B, V)), the last visited site as rules and observation see it
    vehicle_task : ndarray(int32, (B, V)), -1 when not working
    event_tick : ndarray(int64, (B, V)), finish of a working, repair of a broken vehicle
    next_breakdown : ndarray(int32, (B, V)), index into `Problem.breakdown_tick`
    halted_towards : ndarray(int32, (B, V)), next site of a vehicle that stands in mid-edge, else -1
    halted_at : ndarray(float64, (B, V)), m that it stands past `vehicle_site`
    leg : ndarray(int8, (B, V)), TO_PICKUP, TO_DELIVERY or ARRIVED
    edge_from, edge_to : ndarray(int32, (B, V)), the edge that a working vehicle is on
    edge_tick, edge_end_tick : ndarray(int64, (B, V)), when it entered and when it leaves that edge
    edge_offset : ndarray(float64, (B, V)), m past `edge_from` at `edge_tick`
    route_index : ndarray(int32, (B, V)), index of `edge_to` in `Problem.route_sites`, or -1
    hidden : ndarray(bool, (B, V)), first trip after a halt in mid-edge: `vehicle_site` stays
    reversed : ndarray(bool, (B, V)), on that trip's first edge, and it is driven backwards
    """

    instance: np.ndarray
    status: np.ndarray
    time: np.ndarray
    n_arrived: np.ndarray
    n_finished: np.ndarray
    n_decisions: np.ndarray
    makespan: np.ndarray
    tardiness: np.ndarray
    pool_size: np.ndarray
    pool: np.ndarray
    waiting_since: np.ndarray
    task_vehicle: np.ndarray
    task_start: np.ndarray
    task_finish: np.ndarray
    vehicle_status: np.ndarray
    vehicle_site: np.ndarray
    vehicle_task: np.ndarray
    event_tick: np.ndarray
    next_breakdown: np.ndarray
    halted_towards: np.ndarray
    halted_at: np.ndarray
    leg: np.ndarray
    edge_from: np.ndarray
    edge_to: np.ndarray
    edge_tick: np.ndarray
    edge_end_tick: np.ndarray
    edge_offset: np.ndarray
    route_index: np.ndarray
    hidden: np.ndarray
    reversed: np.ndarray


def allocate_state(problem: Problem, n_episodes: int) -> State:
    """Return a `State` of `n_episodes` rows for any instance of `problem`; nothing is started yet."""
    n_tasks = problem.pickup.shape[1]
    n_vehicles = problem.speed.shape[1]

    def episodes(dtype: type) -> np.ndarray:
        return np.zeros(n_episodes, dtype)

    def tasks(dtype: type) -> np.ndarray:
        return np.zeros((n_episodes, n_tasks), dtype)

    def vehicles(dtype: type) -> np.ndarray:
        return np.zeros((n_episodes, n_vehicles), dtype)

    return State(
        instance=episodes(np.int32),
        status=episodes(np.int8),
        time=episodes(np.int64),
        n_arrived=episodes(np.int32),
        n_finished=episodes(np.int32),
        n_decisions=episodes(np.int32),
        makespan=episodes(np.float64),
        tardiness=episodes(np.float64),
        pool_size=episodes(np.int32),
        pool=tasks(np.int32),
        waiting_since=tasks(np.float64),
        task_vehicle=tasks(np.int32),
        task_start=tasks(np.int64),
        task_finish=tasks(np.int64),
        vehicle_status=vehicles(np.int8),
        vehicle_site=vehicles(np.int32),
        vehicle_task=vehicles(np.int32),
        event_tick=vehicles(np.int64),
        next_breakdown=vehicles(np.int32),
        halted_towards=vehicles(np.int32),
        halted_at=vehicles(np.float64),
        leg=vehicles(np.int8),
        edge_from=vehicles(np.int32),
        edge_to=vehicles(np.int32),
        edge_tick=vehicles(np.int64),
        edge_end_tick=vehicles(np.int64),
        edge_offset=vehicles(np.float64),
        route_index=vehicles(np.int32),
        hidden=vehicles(np.bool_),
        reversed=vehicles(np.bool_),
    )


@inlined_kernel
def round_sum(x):
    """Round to 1e-9, so that the noise of a floating-point sum moves neither a tick nor a tie."""
    return np.floor(x * 1e9 + 0.5) * 1e-9


@inlined_kernel
def measure_distance(metres, truncate):
    """Return a distance as the rules and the observation see it: rounded, and cut if so asked."""
    # The product above may end just below a whole number; half a unit of 1e-9 mends that.
    return np.floor(metres + 0.5e-9) if truncate else round_sum(metres)


@inlined_kernel
def count_ticks(seconds):
    """Return the whole ticks that `seconds` take, the last one begun."""
    return np.int64(np.ceil(seconds - 0.5e-9))


@inlined_kernel
def may_carry(problem, i, v, task):
    """Whether vehicle v of instance i has the capacity for `task`."""
    capacity = problem.capacity[i, v]
    return capacity == 0.0 or problem.demand[i, task] <= capacity


@inner_kernel
def copy_row(source, i, target, j):
    """Copy row i of the State `source` to row j of the State `target`."""
    target.instance[j] = source.instance[i]
    target.status[j] = source.status[i]
    target.time[j] = source.time[i]
    target.n_arrived[j] = source.n_arrived[i]
    target.n_finished[j] = source.n_finished[i]
    target.n_decisions[j] = source.n_decisions[i]
    target.makespan[j] = source.makespan[i]
    target.tardiness[j] = source.tardiness[i]
    target.pool_size[j] = source.pool_size[i]
    for task in range(source.pool.shape[1]):
        target.pool[j, task] = source.pool[i, task]
        target.waiting_since[j, task] = source.waiting_since[i, task]
        target.task_vehicle[j, task] = source.task_vehicle[i, task]
        target.task_start[j, task] = source.task_start[i, task]
        target.task_finish[j, task] = source.task_finish[i, task]
    for v in range(source.leg.shape[1]):
        target.vehicle_status[j, v] = source.vehicle_status[i, v]
        target.vehicle_site[j, v] = source.vehicle_site[i, v]
        target.vehicle_task[j, v] = source.vehicle_task[i, v]
        target.event_tick[j, v] = source.event_tick[i, v]
        target.next_breakdown[j, v] = source.next_breakdown[i, v]
        target.halted_towards[j, v] = source.halted_towards[i, v]
        target.halted_at[j, v] = source.halted_at[i, v]
        target.leg[j, v] = source.leg[i, v]
        target.edge_from[j, v] = source.edge_from[i, v]
        target.edge_to[j, v] = source.edge_to[i, v]
        target.edge_tick[j, v] = source.edge_tick[i, v]
        target.edge_end_tick[j, v] = source.edge_end_tick[i, v]
        target.edge_offset[j, v] = source.edge_offset[i, v]
        target.route_index[j, v] = source.route_index[i, v]
        target.hidden[j, v] = source.hidden[i, v]
        target.reversed[j, v] = source.reversed[i, v]
