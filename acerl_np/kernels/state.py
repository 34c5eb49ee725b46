"""The arrays that kernels work on: what never changes (`Problem`) and one row per episode (`State`).

Sizes: I instances, L layouts, S sites, V vehicles of the largest fleet, M tasks of the longest
record, K breakdowns, B episodes. Rows of smaller instances are padded and the padding is never read.
Times are seconds, ticks whole seconds, lengths metres.

Fields of one kind share an array, and the last index names the field: what is read together lies in
one cache line, and a call passes few arrays (numba passes each as seven words or more).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.support.compiled import inner_kernel

NEVER = np.int64(2**62)
"""A tick that is never reached."""

IDLE, WORKING, BROKEN = 0, 1, 2
TO_PICKUP, TO_DELIVERY, ARRIVED = 0, 1, 2
RUNNING, FINISHED, STUCK, STOPPED = 0, 1, 2, 3

SCALES = 12
"""Feature constants of an instance: (mid, half) of distance, waiting, expiry, demand and total
distance, then the divisors of speed and capacity."""

# Fields of Problem.
NEXT_SITE, NAMED_ROUTE = range(2)
LAYOUT, TRUNCATES, N_TASKS, N_VEHICLES, TASK_SLOTS, HORIZON = range(6)
PICKUP, DELIVERY = range(2)
ARRIVAL, EXPIRY, HANDLING, DEMAND, LOADED = range(5)
SPEED, CAPACITY, MEAN_UPTIME, MEAN_REPAIR = range(4)
BREAKDOWN_TICK, REPAIR_TICKS = range(2)

# Fields of State.
INSTANCE, PHASE, TIME, N_ARRIVED, N_FINISHED, N_DECISIONS, POOL_SIZE = range(7)
MAKESPAN, TARDINESS = range(2)
VEHICLE, START, FINISH = range(3)
(
    STATUS,
    SITE,
    TASK,
    EVENT_TICK,
    BREAKDOWN_AT,
    NEXT_BREAKDOWN,
    N_REPAIRS,
    HALTED_TOWARDS,
    HIDDEN,
    REVERSED,
    LEG,
    EDGE_FROM,
    EDGE_TO,
    EDGE_TICK,
    EDGE_END_TICK,
    ROUTE_INDEX,
) = range(16)
HALTED_AT, EDGE_OFFSET = range(2)


class Problem(NamedTuple):
    """Tables of all layouts and instances; kernels only read them.

    Attributes
    ----------
    distance : ndarray(float64, (L, S, S)), m, shortest-path lengths, inf where there is no way
    edge_length : ndarray(float64, (L, S, S)), m, inf where there is no edge
    way : ndarray(int32, (L, S, S, 2)), how to get from site a to site b
        NEXT_SITE : the site after a on the default route
        NAMED_ROUTE : index of the second site of the named route in `route_sites`, or -1
    route_sites : ndarray(int32, (n,)), the named routes one after the other
    instance : ndarray(int64, (I, 6))
        LAYOUT : the instance's layout
        TRUNCATES : whether distances are truncated to whole metres, 0 or 1
        N_TASKS, N_VEHICLES
        TASK_SLOTS : waiting tasks that the network sees, the same for all instances
        HORIZON : tick after which an episode is stopped, `NEVER` for none
    task_ends : ndarray(int32, (I, M, 2)), the sites PICKUP and DELIVERY
    task : ndarray(float64, (I, M, 5))
        ARRIVAL, EXPIRY, HANDLING : s
        DEMAND : units of load
        LOADED : m, pickup to delivery as rules measure it
    arrival_tick : ndarray(int64, (I, M)), non-decreasing along a row
    vehicle : ndarray(float64, (I, V, 4))
        SPEED : m/s
        CAPACITY : units of load, 0 is unlimited
        MEAN_UPTIME : s, mean time between random failures, 0 for none
        MEAN_REPAIR : s, mean time to repair them
    start_site : ndarray(int32, (I, V))
    breakdown : ndarray(int64, (I, V, K, 2)), listed ones by time
        BREAKDOWN_TICK : `NEVER` after the last
        REPAIR_TICKS
    scaling : ndarray(float64, (I, 12)), see `SCALES`
    """

    distance: np.ndarray
    edge_length: np.ndarray
    way: np.ndarray
    route_sites: np.ndarray
    instance: np.ndarray
    task_ends: np.ndarray
    task: np.ndarray
    arrival_tick: np.ndarray
    vehicle: np.ndarray
    start_site: np.ndarray
    breakdown: np.ndarray
    scaling: np.ndarray


class State(NamedTuple):
    """Episodes in progress, one row each; kernels modify them in place.

    Attributes
    ----------
    episode : ndarray(int64, (B, 7))
        INSTANCE : row of `Problem`
        PHASE : RUNNING, FINISHED, STUCK (nothing will ever happen) or STOPPED (at the horizon)
        TIME : tick
        N_ARRIVED, N_FINISHED, N_DECISIONS
        POOL_SIZE : waiting tasks
    outcome : ndarray(float64, (B, 2)), MAKESPAN and TARDINESS, s, nan until finished
    pool : ndarray(int32, (B, M)), waiting tasks in pool order
    waiting_since : ndarray(float64, (B, M)), s, per task
    task : ndarray(int64, (B, M, 3))
        VEHICLE : -1 while unassigned
        START, FINISH : ticks of the last assignment and of the finish
    vehicle : ndarray(int64, (B, V, 16))
        STATUS : IDLE, WORKING or BROKEN
        SITE : the last visited site as rules and observation see it
        TASK : -1 when not working
        EVENT_TICK : finish of a working, repair of a broken vehicle
        BREAKDOWN_AT : tick of the next breakdown, listed or random, of a vehicle that is not broken
        NEXT_BREAKDOWN : index into `Problem.breakdown`
        N_REPAIRS : repairs so far
        HALTED_TOWARDS : next site of a vehicle that broke down while working and has not set out since,
            SITE itself at the end of its way; else -1
        HIDDEN : 1 on the first trip after such a halt: SITE stays
        REVERSED : 1 on that trip's first edge if it is driven backwards
        LEG : TO_PICKUP, TO_DELIVERY or ARRIVED
        EDGE_FROM, EDGE_TO : the edge that a working vehicle is on
        EDGE_TICK, EDGE_END_TICK : when it entered and when it leaves that edge
        ROUTE_INDEX : index of EDGE_TO in `Problem.route_sites`, or -1
    place : ndarray(float64, (B, V, 2))
        HALTED_AT : m that a halted vehicle stands past SITE, 0 at the site
        EDGE_OFFSET : m past EDGE_FROM at EDGE_TICK
    breakdown_key : ndarray(uint32, (B, 4)), stream of the random breakdowns; set before an episode starts
    """

    episode: np.ndarray
    outcome: np.ndarray
    pool: np.ndarray
    waiting_since: np.ndarray
    task: np.ndarray
    vehicle: np.ndarray
    place: np.ndarray
    breakdown_key: np.ndarray


def allocate_state(problem: Problem, n_episodes: int) -> State:
    """Return a `State` of `n_episodes` rows for any instance of `problem`; nothing is started yet."""
    n_tasks = problem.task.shape[1]
    n_vehicles = problem.vehicle.shape[1]
    return State(
        episode=np.zeros((n_episodes, POOL_SIZE + 1), np.int64),
        outcome=np.zeros((n_episodes, TARDINESS + 1)),
        pool=np.zeros((n_episodes, n_tasks), np.int32),
        waiting_since=np.zeros((n_episodes, n_tasks)),
        task=np.zeros((n_episodes, n_tasks, FINISH + 1), np.int64),
        vehicle=np.zeros((n_episodes, n_vehicles, ROUTE_INDEX + 1), np.int64),
        place=np.zeros((n_episodes, n_vehicles, EDGE_OFFSET + 1)),
        breakdown_key=np.zeros((n_episodes, 4), np.uint32),
    )


@inner_kernel
def round_sum(x):
    """Round to 1e-9, so that the noise of a floating-point sum moves neither a tick nor a tie."""
    return np.floor(x * 1e9 + 0.5) * 1e-9


@inner_kernel
def measure_distance(metres, truncate):
    """Return a distance as the rules and the observation see it: rounded, and cut if so asked."""
    # The product above may end just below a whole number; half a unit of 1e-9 mends that.
    return np.floor(metres + 0.5e-9) if truncate else round_sum(metres)


@inner_kernel
def count_ticks(seconds):
    """Return the whole ticks that `seconds` take, the last one begun."""
    return np.int64(np.ceil(seconds - 0.5e-9))


@inner_kernel
def may_carry(problem, i, v, task):
    """Whether vehicle v of instance i has the capacity for `task`."""
    capacity = problem.vehicle[i, v, CAPACITY]
    return capacity == 0.0 or problem.task[i, task, DEMAND] <= capacity


@inner_kernel
def copy_row(source, i, target, j):
    """Copy row i of the State `source` to row j of the State `target`."""
    for k in range(source.episode.shape[1]):
        target.episode[j, k] = source.episode[i, k]
    for k in range(source.outcome.shape[1]):
        target.outcome[j, k] = source.outcome[i, k]
    for task in range(source.pool.shape[1]):
        target.pool[j, task] = source.pool[i, task]
        target.waiting_since[j, task] = source.waiting_since[i, task]
        for k in range(source.task.shape[2]):
            target.task[j, task, k] = source.task[i, task, k]
    for v in range(source.vehicle.shape[1]):
        for k in range(source.vehicle.shape[2]):
            target.vehicle[j, v, k] = source.vehicle[i, v, k]
        for k in range(source.place.shape[2]):
            target.place[j, v, k] = source.place[i, v, k]
    for k in range(source.breakdown_key.shape[1]):
        target.breakdown_key[j, k] = source.breakdown_key[i, k]
