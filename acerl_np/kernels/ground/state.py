"""The arrays that kernels work on: what never changes (`Problem`) and one row per episode (`State`).

Fields of one kind share an array, and the last index names the field: what is read together lies in
one cache line, and a call passes few arrays (numba passes each as seven words or more). A field's name
begins with that of its array, in capitals: `state.vehicle[b, v, VEHICLE_TASK]`,
`problem.record[i, task, RECORD_ARRIVAL]`. No two arrays of the two share a name, so a field in the wrong
place can be seen. `N_..._FIELDS` counts the fields of an array.

Index letters of all kernels: b episode (a row of `State`), i instance, v vehicle, task a task by its row
in the record, site a site of the layout; k counts anything else, such as positions in the pool.

Sizes: I instances, L layouts, S sites, V vehicles of the largest fleet, M tasks of the longest
record, K breakdowns, B episodes. Rows of smaller instances are padded and the padding is never read.
Times are seconds, ticks whole seconds, lengths metres.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from acerl_np.support.compiled import Function, choose_by_type, inner_kernel

NEVER = np.int64(2**62)
"""A tick that is never reached."""

# Values of VEHICLE_STATUS, VEHICLE_LEG and EPISODE_PHASE. Those that drive without a task come in a row.
IDLE, WORKING, BROKEN, ROAMING, PARKING, TO_CHARGER, QUEUED, CHARGING = range(8)
TO_PICKUP, TO_DELIVERY, ARRIVED, JOINING = 0, 1, 2, 3
RUNNING, FINISHED, STUCK, STOPPED = 0, 1, 2, 3

HANDLED_AT_BOTH, HANDLED_AT_PICKUP, HANDLED_AT_DELIVERY = range(3)

# Fields of Problem.
N_WAY_FIELDS = 2
WAY_NEXT_SITE, WAY_NAMED_ROUTE = range(N_WAY_FIELDS)

N_INSTANCE_FIELDS = 17
(
    INSTANCE_LAYOUT,
    INSTANCE_TRUNCATES,
    INSTANCE_N_TASKS,
    INSTANCE_N_VEHICLES,
    INSTANCE_TASK_SLOTS,
    INSTANCE_HORIZON,
    INSTANCE_QUICKEST,
    INSTANCE_HAS_PRIORITIES,
    INSTANCE_ERRANDS,
    INSTANCE_MAX_CHANGES,
    INSTANCE_PARK_AFTER,
    INSTANCE_CHAINED,
    INSTANCE_LACKS_WAYS,
    INSTANCE_HEADWAY,
    INSTANCE_LANES_APART,
    INSTANCE_HANDLING_AT,
    INSTANCE_RESERVE,
) = range(N_INSTANCE_FIELDS)

# Then the spots to which edges lead.
ROAD_ASIDE, ROAD_HOLDS, ROAD_DEGREE, ROAD_SITE, ROAD_TWIN, ROAD_NEIGHBOURS = range(6)

N_ENDS_FIELDS = 2
ENDS_PICKUP, ENDS_DELIVERY = range(N_ENDS_FIELDS)

N_RECORD_FIELDS = 7
(
    RECORD_ARRIVAL,
    RECORD_EXPIRY,
    RECORD_HANDLING,
    RECORD_DEMAND,
    RECORD_LOADED,
    RECORD_PRIORITY,
    RECORD_SLOT,
) = range(N_RECORD_FIELDS)

N_CHAIN_FIELDS = 4
CHAIN_AFTER, CHAIN_MACHINE, CHAIN_PROCESSING, CHAIN_KNOWN = range(N_CHAIN_FIELDS)

N_LEAD_FIELDS = 2
LEAD_ANNOUNCED, LEAD_WORK_LEFT = range(N_LEAD_FIELDS)

N_FLEET_FIELDS = 5
FLEET_SPEED, FLEET_CAPACITY, FLEET_MEAN_UPTIME, FLEET_MEAN_REPAIR, FLEET_SLOWDOWN = range(
    N_FLEET_FIELDS
)

N_BATTERY_FIELDS = 12
(
    BATTERY_CAPACITY,
    BATTERY_START,
    BATTERY_IDLE,
    BATTERY_EMPTY,
    BATTERY_LOADED,
    BATTERY_CHARGE,
    BATTERY_CRITICAL,
    BATTERY_RESUME,
    BATTERY_GOOD,
    BATTERY_FULL,
    BATTERY_TOW,
    BATTERY_PLENTY,
) = range(N_BATTERY_FIELDS)

N_BERTH_FIELDS = 3
BERTH_SITE, BERTH_PLACES, BERTH_CHARGES = range(N_BERTH_FIELDS)

N_BREAKDOWN_FIELDS = 2
BREAKDOWN_TICK, BREAKDOWN_REPAIR_TICKS = range(N_BREAKDOWN_FIELDS)

N_SCALING_FIELDS = 12
(
    SCALING_DISTANCE_MID,
    SCALING_DISTANCE_HALF,
    SCALING_WAITING_MID,
    SCALING_WAITING_HALF,
    SCALING_EXPIRY_MID,
    SCALING_EXPIRY_HALF,
    SCALING_DEMAND_MID,
    SCALING_DEMAND_HALF,
    SCALING_TOTAL_MID,
    SCALING_TOTAL_HALF,
    SCALING_SPEED,
    SCALING_CAPACITY,
) = range(N_SCALING_FIELDS)

N_UNIT_FIELDS = 2
UNIT_METRES, UNIT_SECONDS = range(N_UNIT_FIELDS)

# Fields of State.
N_EPISODE_FIELDS = 12
(
    EPISODE_INSTANCE,
    EPISODE_PHASE,
    EPISODE_TIME,
    EPISODE_N_ARRIVED,
    EPISODE_N_FINISHED,
    EPISODE_N_DECISIONS,
    EPISODE_POOL_SIZE,
    EPISODE_WAITS,
    EPISODE_SETTLED,
    EPISODE_FREED,
    EPISODE_N_EXPECTED,
    EPISODE_N_PROCESSED,
) = range(N_EPISODE_FIELDS)

# The measures that an objective may weigh come first.
N_MEASURES, N_OUTCOME_FIELDS = 5, 7
(
    OUTCOME_MAKESPAN,
    OUTCOME_TARDINESS,
    OUTCOME_LATE,
    OUTCOME_WAITING,
    OUTCOME_EMPTY,
    OUTCOME_VALUE,
    OUTCOME_COST,
) = range(N_OUTCOME_FIELDS)

# Rows of Problem.goal.
N_GOAL_ROWS = 2
GOAL_OBJECTIVE, GOAL_COST = range(N_GOAL_ROWS)

N_TASK_FIELDS = 4
TASK_VEHICLE, TASK_START, TASK_FINISH, TASK_CHANGES = range(N_TASK_FIELDS)

N_JOB_FIELDS = 2
JOB_KNOWN, JOB_DONE = range(N_JOB_FIELDS)

N_VEHICLE_FIELDS = 32
(
    VEHICLE_STATUS,
    VEHICLE_SITE,
    VEHICLE_TASK,
    VEHICLE_EVENT_TICK,
    VEHICLE_BREAKDOWN_AT,
    VEHICLE_NEXT_BREAKDOWN,
    VEHICLE_N_REPAIRS,
    VEHICLE_HALTED_TOWARDS,
    VEHICLE_HIDDEN,
    VEHICLE_REVERSED,
    VEHICLE_LEG,
    VEHICLE_EDGE_FROM,
    VEHICLE_EDGE_TO,
    VEHICLE_EDGE_TICK,
    VEHICLE_EDGE_END_TICK,
    VEHICLE_ROUTE_INDEX,
    VEHICLE_DESTINATION,
    VEHICLE_TRIP_TICK,
    VEHICLE_TRIP_SITE,
    VEHICLE_TRIP_FROM,
    VEHICLE_LOADED_TICK,
    VEHICLE_PAUSE,
    VEHICLE_STAND_SITE,
    VEHICLE_STAND_FROM,
    VEHICLE_STAND_TICK,
    VEHICLE_SINCE,
    VEHICLE_PLACE,
    VEHICLE_LEFT_SITE,
    VEHICLE_LEFT_TICK,
    VEHICLE_LEVEL,
    VEHICLE_LEVEL_TICK,
    VEHICLE_ESTIMATE,
) = range(N_VEHICLE_FIELDS)

# Entry 0 of a plan tells how many visits follow, where a task is loaded and delivered, which counts first.
N_PLAN_FIELDS = 4
PLAN_SITE, PLAN_IN, PLAN_OUT, PLAN_STAY = range(N_PLAN_FIELDS)
PLANNED_VISITS, PLANNED_PICKUP, PLANNED_DELIVERY, PLANNED_FROM = range(N_PLAN_FIELDS)

N_HELD_FIELDS = 6
HELD_IN, HELD_OUT, HELD_NEXT, HELD_NEXT_IN, HELD_VEHICLE, HELD_VISIT = range(N_HELD_FIELDS)

N_LABEL_FIELDS = 13
(
    LABEL_TICK,
    LABEL_BASE,
    LABEL_BEFORE,
    LABEL_LEAVES,
    LABEL_KEY,
    LABEL_RANK,
    LABEL_POSITION,
    LABEL_HEAP,
    LABEL_FIRST,
    LABEL_FILLED,
    LABEL_SPOT,
    LABEL_SEEN,
    LABEL_SEARCH,
) = range(N_LABEL_FIELDS)

N_PLACE_FIELDS = 8
(
    PLACE_HALTED_AT,
    PLACE_EDGE_OFFSET,
    PLACE_TRIP_METRES,
    PLACE_TRIP_SLOWDOWN,
    PLACE_TRIP_REACHED,
    PLACE_TRIP_PACE,
    PLACE_STAND_REACHED,
    PLACE_STAND_PACE,
) = range(N_PLACE_FIELDS)

N_USAGE_FIELDS = 6
(
    USAGE_BUSY,
    USAGE_DRIVEN,
    USAGE_EMPTY,
    USAGE_WAITING,
    USAGE_LAST_WAITING,
    USAGE_DELAY,
) = range(N_USAGE_FIELDS)


class Problem(NamedTuple):
    """Tables of all layouts and instances; kernels only read them.

    Attributes
    ----------
    distance : ndarray(float64, (L, S, S)), m, lengths of the routes, inf where there is no way
    edge_length : ndarray(float64, (L, S, S)), m, inf where there is no edge
    edge_speed : ndarray(float64, (L, S, S)), m/s, speed limits, inf without; (0, 0, 0) if no layout has any
    slowdown : ndarray(float64, (C, S, S)), s, by how much longer a route takes than its length by a vehicle's
        speed, because of speed limits; a row for each speed on each layout with limits
    way : ndarray(int32, (L, S, S, N_WAY_FIELDS)), how to get from site a to site b
        WAY_NEXT_SITE : the site after a on the default route
        WAY_NAMED_ROUTE : index of the second site of the named route in `route_sites`, or -1
    route_sites : ndarray(int64, (n,)), the named routes one after the other
    instance : ndarray(int64, (I, N_INSTANCE_FIELDS))
        INSTANCE_LAYOUT : the instance's layout
        INSTANCE_TRUNCATES : whether distances are truncated to whole metres, 0 or 1
        INSTANCE_N_TASKS, INSTANCE_N_VEHICLES
        INSTANCE_TASK_SLOTS : waiting tasks that the network sees, the same for all instances
        INSTANCE_HORIZON : tick after which an episode is stopped, `NEVER` for none
        INSTANCE_QUICKEST : whether routes are the quickest instead of the shortest, 0 or 1
        INSTANCE_HAS_PRIORITIES : whether some task has a priority above 0, 0 or 1
        INSTANCE_ERRANDS : whether vehicles may drive without a task or be called back, 0 or 1
        INSTANCE_MAX_CHANGES : how often a task may be called back before it is loaded, -1 for never
        INSTANCE_PARK_AFTER : ticks after which an idle vehicle drives to a parking place, `NEVER` for none
        INSTANCE_CHAINED : whether tasks follow others, are processed, or announced, 0 or 1
        INSTANCE_LACKS_WAYS : whether from some site no way leads to another, 0 or 1
        INSTANCE_HEADWAY : ticks between two vehicles at one place, 0 where vehicles do not meet
        INSTANCE_LANES_APART : whether both directions of a lane are independent, 0 or 1
        INSTANCE_HANDLING_AT : HANDLED_AT_BOTH, HANDLED_AT_PICKUP or HANDLED_AT_DELIVERY
        INSTANCE_RESERVE : what batteries must hold where vehicles meet, % of what free ways use; 0 if none do
    ends : ndarray(int64, (I, M, N_ENDS_FIELDS)), the sites of each task
        ENDS_PICKUP, ENDS_DELIVERY
    record : ndarray(float64, (I, M, N_RECORD_FIELDS)), the tasks as they are given
        RECORD_ARRIVAL, RECORD_EXPIRY, RECORD_HANDLING : s; expiry is relative to arrival
        RECORD_DEMAND : units of load
        RECORD_LOADED : m, pickup to delivery as rules measure it
        RECORD_PRIORITY : a vehicle is offered those waiting tasks that have the highest, of all it may carry
        RECORD_SLOT : the task's own slot of the observation, from 1; 0: its place in the pool is its slot
    arrival_tick : ndarray(int64, (I, M)), non-decreasing along a row
    chain : ndarray(int64, (I, M, N_CHAIN_FIELDS)); as `lead`, without tasks if no instance is chained
        CHAIN_AFTER : the task that it follows, -1 for none
        CHAIN_MACHINE : what processes it once it is delivered, -1 for none
        CHAIN_PROCESSING : ticks that this takes
        CHAIN_KNOWN : tick from which a task that follows none may be given
    lead : ndarray(float64, (I, M, N_LEAD_FIELDS)), s
        LEAD_ANNOUNCED : how long before it is ready a task may be given; inf: once that is known
        LEAD_WORK_LEFT : its processing, and what the longest chain after it takes
    servers : ndarray(int64, (I, K)), how many tasks each machine processes at once
    fleet : ndarray(float64, (I, V, N_FLEET_FIELDS)), the vehicles as they are given
        FLEET_SPEED : m/s
        FLEET_CAPACITY : units of load, 0 is unlimited
        FLEET_MEAN_UPTIME : s, mean time between random failures, 0 for none
        FLEET_MEAN_REPAIR : s, mean time to repair them
        FLEET_SLOWDOWN : row of `slowdown`, -1 where no speed limit matters
    battery : ndarray(int64, (I, V, N_BATTERY_FIELDS)), in units of energy
        BATTERY_CAPACITY : 0 for a vehicle without a battery
        BATTERY_START : level at the start
        BATTERY_IDLE, BATTERY_EMPTY, BATTERY_LOADED, BATTERY_CHARGE : used, or charged, a tick
        BATTERY_CRITICAL, BATTERY_RESUME, BATTERY_GOOD, BATTERY_FULL : thresholds of the level, ascending
        BATTERY_TOW : ticks until a vehicle that stands with an empty battery may go on
        BATTERY_PLENTY : above the critical level, enough for any task at once, without its handling
    berth : ndarray(int64, (I, N, N_BERTH_FIELDS)), chargers and parking places
        BERTH_SITE, BERTH_PLACES : how many vehicles charge, or park, there at once
        BERTH_CHARGES : 1 for a charger, 0 for a parking place
    start_site : ndarray(int64, (I, V))
    breakdown : ndarray(int64, (I, V, K, N_BREAKDOWN_FIELDS)), listed ones by time
        BREAKDOWN_TICK : `NEVER` after the last
        BREAKDOWN_REPAIR_TICKS
    scaling : ndarray(float64, (I, N_SCALING_FIELDS)), feature constants
        SCALING_..._MID, SCALING_..._HALF : a feature x is seen as (x - mid) / half; DISTANCE, m, pickup to
            delivery; WAITING, EXPIRY, s; DEMAND, units of load; TOTAL, m, vehicle to pickup to delivery
        SCALING_SPEED, SCALING_CAPACITY : divisors
    unit : ndarray(float64, (I, N_UNIT_FIELDS)), what index policies measure in
        UNIT_METRES : m, mean distance between two sites of the floor
        UNIT_SECONDS : s, time that it takes at the fleet's mean speed
    goal : ndarray(float64, (N_GOAL_ROWS, N_MEASURES)), weight of each measure, the same for all instances
        GOAL_OBJECTIVE : in what is minimised
        GOAL_COST : in what has a limit
    class_weight : ndarray(float64, (n,)), weight of a task of priority 0, 1, ... n - 1 and above in the mean
        tardiness, the share of late tasks and the mean waiting
    road : ndarray(int64, (L, P, n)), spots of floors on which vehicles meet: sites, and in blocks of one
        direction sites by the way in, see `problem.spots`; if no vehicles meet, L is 0, as below
        ROAD_ASIDE : whether who stands there stands clear of the lane, 0 or 1
        ROAD_HOLDS : how many vehicles it holds at once, unless it lies aside
        ROAD_DEGREE : number of edges that lead away; their ends, spots, from ROAD_NEIGHBOURS on
        ROAD_SITE, ROAD_TWIN : where it is, and the next spot there, -1 for none
    claim : ndarray(int64, (L, P, 1 + degree, n, 2)), blocks that who is at a spot, or on each of its edges,
        is inside of, and the edge by which it came in, -1 where that does not matter; both -1 after the last;
        without blocks n is 0
    zone : ndarray(int64, (L, K, n, 2)), spots inside of each block, and the edge as above; -1 after the last
    least : ndarray(float64, (L, S, S + 1)), s, what no vehicle's way to each site is quicker than; the last
        is to the nearest site aside
    errands : ndarray(bool, (0,)), or (0, 0) if vehicles of some instance have errands, its tasks are
        chained, or a live floor lacks a way, or (0, m, n) if vehicles of some meet, whose plans then hold n
        visits less one, each up to m entries of `State.held`, or (0, m, n, 0) if one of their floors has
        blocks; see `unless_errands`, `unless_traffic`, `has_blocks`
    """

    distance: np.ndarray
    edge_length: np.ndarray
    edge_speed: np.ndarray
    slowdown: np.ndarray
    way: np.ndarray
    route_sites: np.ndarray
    instance: np.ndarray
    ends: np.ndarray
    record: np.ndarray
    arrival_tick: np.ndarray
    chain: np.ndarray
    lead: np.ndarray
    servers: np.ndarray
    fleet: np.ndarray
    battery: np.ndarray
    berth: np.ndarray
    start_site: np.ndarray
    breakdown: np.ndarray
    scaling: np.ndarray
    unit: np.ndarray
    goal: np.ndarray
    class_weight: np.ndarray
    road: np.ndarray
    claim: np.ndarray
    zone: np.ndarray
    least: np.ndarray
    errands: np.ndarray


class State(NamedTuple):
    """Episodes in progress, one row each; kernels modify them in place.

    Attributes
    ----------
    episode : ndarray(int64, (B, N_EPISODE_FIELDS))
        EPISODE_INSTANCE : row of `Problem`
        EPISODE_PHASE : RUNNING, FINISHED, STUCK (nothing will ever happen) or STOPPED (at the horizon)
        EPISODE_TIME : tick
        EPISODE_N_ARRIVED, EPISODE_N_FINISHED, EPISODE_N_DECISIONS
        EPISODE_POOL_SIZE : waiting tasks
        EPISODE_WAITS : 1 while no decision is due before something happens
        EPISODE_SETTLED : 1 once vehicles without a task were sent to charge or park at this tick, 0 before,
            -1 before the first tick
        EPISODE_FREED : the last tick at which a vehicle left its place
        EPISODE_N_EXPECTED, EPISODE_N_PROCESSED : entries of `expected` and `processed`
    outcome : ndarray(float64, (B, N_OUTCOME_FIELDS)), nan until finished, see `Outcome`
        OUTCOME_MAKESPAN, OUTCOME_TARDINESS, OUTCOME_WAITING : s
        OUTCOME_LATE, OUTCOME_EMPTY : shares
        OUTCOME_VALUE, OUTCOME_COST : as `Problem.goal` weighs these, shares in percent
    pool : ndarray(int64, (B, M)), waiting tasks in pool order
    waiting_since : ndarray(float64, (B, M)), s, per task
    task : ndarray(int64, (B, M, N_TASK_FIELDS))
        TASK_VEHICLE : -1 while unassigned
        TASK_START, TASK_FINISH : ticks of the last assignment and of the finish
        TASK_CHANGES : how often it was called back
    job : ndarray(int64, (B, M, N_JOB_FIELDS)); as the next three, without tasks if no instance is chained
        JOB_KNOWN : tick from which an expected task may be given, `NEVER` while nobody knows
        JOB_DONE : tick at which its processing ends, `NEVER` in the queue
    ready : ndarray(float64, (B, M)), s, when each task that is known may be loaded
    expected : ndarray(int64, (B, M)), tasks of chains that have begun, or announced, which are not known yet
    processed : ndarray(int64, (B, M)), tasks at machines, by delivery
    vehicle : ndarray(int64, (B, V, N_VEHICLE_FIELDS))
        VEHICLE_STATUS : IDLE, WORKING or BROKEN; without a task ROAMING (to its next site), PARKING (to a
            place), TO_CHARGER, QUEUED or CHARGING
        VEHICLE_SITE : the last visited site as rules and observation see it
        VEHICLE_TASK : -1 when not working
        VEHICLE_EVENT_TICK : end of its work, its repair, its way or its charging
        VEHICLE_BREAKDOWN_AT : tick of the next breakdown, listed or random, of a vehicle that is not broken
        VEHICLE_NEXT_BREAKDOWN : index into `Problem.breakdown`
        VEHICLE_N_REPAIRS : repairs so far
        VEHICLE_HALTED_TOWARDS : next site of a vehicle that broke down while working and has not set out
            since, VEHICLE_SITE itself at the end of its way; else -1
        VEHICLE_HIDDEN : 1 on the first trip after such a halt: VEHICLE_SITE stays
        VEHICLE_REVERSED : 1 on that trip's first edge if it is driven backwards
        VEHICLE_LEG : TO_PICKUP, TO_DELIVERY (or to its destination), ARRIVED, or JOINING: still on the way of
            before, to VEHICLE_DESTINATION
        VEHICLE_EDGE_FROM, VEHICLE_EDGE_TO : the edge that a working vehicle is on
        VEHICLE_EDGE_TICK, VEHICLE_EDGE_END_TICK : when it entered and when it leaves that edge
        VEHICLE_ROUTE_INDEX : index of VEHICLE_EDGE_TO in `Problem.route_sites`, or -1
        VEHICLE_DESTINATION : end of a way without a task
        VEHICLE_TRIP_TICK, VEHICLE_TRIP_SITE, VEHICLE_TRIP_FROM : when the present way begins, its first site,
            and the one before where it begins on the edge between
        VEHICLE_LOADED_TICK : when its task is loaded
        VEHICLE_PAUSE : ticks that it waits before, at the pickup
        VEHICLE_STAND_SITE, VEHICLE_STAND_FROM, VEHICLE_STAND_TICK : of a vehicle that is free, yet not idle,
            where it sets out to a task, -1 of any other; from where it comes, and when it is there
        VEHICLE_SINCE : when it became idle, or came to a charger
        VEHICLE_PLACE : site of the parking place that it has or drives to, -1 for none
        VEHICLE_LEFT_SITE, VEHICLE_LEFT_TICK : that of the place that it left last, and when
        VEHICLE_LEVEL, VEHICLE_LEVEL_TICK : energy when that last changed course
        VEHICLE_ESTIMATE : scratch: when it will have charged, -1 if it does not count
    place : ndarray(float64, (B, V, N_PLACE_FIELDS))
        PLACE_HALTED_AT : m that a halted vehicle stands past VEHICLE_SITE, 0 at the site
        PLACE_EDGE_OFFSET : m past VEHICLE_EDGE_FROM at VEHICLE_EDGE_TICK
        PLACE_TRIP_METRES, PLACE_TRIP_SLOWDOWN : m and s of speed limits from where the way begins to
            VEHICLE_TRIP_SITE
        PLACE_TRIP_REACHED, PLACE_TRIP_PACE : s, when exactly that is reached, and m/s, how fast
        PLACE_STAND_REACHED, PLACE_STAND_PACE : the same of VEHICLE_STAND_SITE
    usage : ndarray(float64, (B, V, N_USAGE_FIELDS)), what a vehicle has done, its present trip to the end;
        trips that a breakdown undid count for what they were
        USAGE_BUSY : s with a task
        USAGE_DRIVEN, USAGE_EMPTY : m, and those of them without a load
        USAGE_WAITING : s from arrival to pickup, all tasks that it carried through or has now together,
            each by the weight of its class
        USAGE_LAST_WAITING : s, of the last of them
        USAGE_DELAY : s that it drove longer for the tasks it delivered than where nobody meets
    breakdown_key : ndarray(uint32, (B, 4)), stream of the random breakdowns; set before an episode starts
    plan : ndarray(int64, (B, V, n, N_PLAN_FIELDS)), visits of sites, past and planned; V is 0 if nobody meets
        PLAN_SITE, PLAN_IN, PLAN_OUT : when the site is reached and left, `NEVER` at the end
        PLAN_STAY : ticks of handling there
    held : ndarray(int64, (V * n * m, N_HELD_FIELDS)), scratch: what others hold, see `lanes.sort_held`
        HELD_IN, HELD_OUT, HELD_NEXT, HELD_NEXT_IN : of a visit, and of the next one; HELD_NEXT is -1 if the
            spot is held as another is inside of its block. In the list of a block HELD_NEXT is the edge by
            which one came in, as in `Problem.claim`, and HELD_NEXT_IN 1 for who is on an edge, 0 at a spot
        HELD_VEHICLE, HELD_VISIT : whose it is, and which of its plan
    label : ndarray(int64, (n, N_LABEL_FIELDS)), scratch of all rows' searches, see `planner.search_way`
        LABEL_SPOT, LABEL_TICK : where and when it is there
        LABEL_BASE : tick of the last stop for others, or of the start
        LABEL_BEFORE, LABEL_LEAVES : the label before, and when that place is left
        LABEL_KEY, LABEL_RANK : the earliest delivery of such a way, and what comes first of equal ones
        LABEL_POSITION : its place in the heap, -1 if it is not in
        LABEL_HEAP : the heap's labels, in the rows of their places
        LABEL_SEEN, LABEL_SEARCH : the search that has written it; in row 0, that at hand
        LABEL_FIRST, LABEL_FILLED : in the rows of spots, then of blocks, the first entry of `held`, and how
            many are written; where there are blocks, once all are, LABEL_FILLED is in the rows of the entries
            of `held`: the latest HELD_OUT of the spot's entries up to that one
    label_seconds : ndarray(float64, (n,)), s driven since LABEL_BASE
    errands : ndarray(bool), as in `Problem`
    """

    episode: np.ndarray
    outcome: np.ndarray
    pool: np.ndarray
    waiting_since: np.ndarray
    task: np.ndarray
    job: np.ndarray
    ready: np.ndarray
    expected: np.ndarray
    processed: np.ndarray
    vehicle: np.ndarray
    place: np.ndarray
    usage: np.ndarray
    breakdown_key: np.ndarray
    plan: np.ndarray
    held: np.ndarray
    label: np.ndarray
    label_seconds: np.ndarray
    errands: np.ndarray


def allocate_state(problem: Problem, n_episodes: int) -> State:
    """Return a `State` of `n_episodes` rows for any instance of `problem`; nothing is started yet."""
    n_tasks = problem.record.shape[1]
    n_jobs, n_vehicles = problem.chain.shape[1], problem.fleet.shape[1]
    n_visits = problem.errands.shape[2] if problem.errands.ndim > 2 else 0
    n_planned = n_vehicles if n_visits else 0
    n_held = n_planned * n_visits * (max(1, problem.errands.shape[1]) if n_visits else 0)
    n_labels = 3 * (problem.road.shape[1] + n_held) + problem.zone.shape[1]
    return State(
        episode=np.zeros((n_episodes, N_EPISODE_FIELDS), np.int64),
        outcome=np.zeros((n_episodes, N_OUTCOME_FIELDS)),
        pool=np.zeros((n_episodes, n_tasks), np.int64),
        waiting_since=np.zeros((n_episodes, n_tasks)),
        task=np.zeros((n_episodes, n_tasks, N_TASK_FIELDS), np.int64),
        job=np.zeros((n_episodes, n_jobs, N_JOB_FIELDS), np.int64),
        ready=np.zeros((n_episodes, n_jobs)),
        expected=np.zeros((n_episodes, n_jobs), np.int64),
        processed=np.zeros((n_episodes, n_jobs), np.int64),
        vehicle=np.zeros((n_episodes, n_vehicles, N_VEHICLE_FIELDS), np.int64),
        place=np.zeros((n_episodes, n_vehicles, N_PLACE_FIELDS)),
        usage=np.zeros((n_episodes, n_vehicles, N_USAGE_FIELDS)),
        breakdown_key=np.zeros((n_episodes, 4), np.uint32),
        plan=np.zeros((n_episodes, n_planned, n_visits, N_PLAN_FIELDS), np.int64),
        held=np.zeros((n_held, N_HELD_FIELDS), np.int64),
        label=np.zeros((n_labels, N_LABEL_FIELDS), np.int64),
        label_seconds=np.zeros(n_labels),
        errands=problem.errands,
    )


def take_rows(state: State, n: int) -> State:
    """Return a view of the first n rows of a state; scratch is shared."""
    shared = {"held", "label", "label_seconds", "errands"}
    pairs = zip(State._fields, state, strict=True)
    return State(*(array if name in shared else array[:n] for name, array in pairs))


NO_ERRANDS, ERRANDS = np.zeros(0, np.bool_), np.zeros((0, 0), np.bool_)
"""What `errands` may be where nobody meets: kernels are compiled by its number of dimensions."""


def unless_errands(plain: Function) -> Callable[[Function], Function]:
    """Let kernels be compiled with `plain` in place of a function where there are neither errands nor chains.

    Then what parking, batteries, call-backs and machines need costs nothing, whatever a kernel holds of it.
    Nor does a look for ways: records have one to each task, and live floors that lack some count as errands.
    The first argument of both is a `Problem` or a `State`.
    """
    return _compile_from(2, plain)


def unless_traffic(plain: Function) -> Callable[[Function], Function]:
    """Let kernels be compiled with `plain` in place of a function where vehicles of no instance meet."""
    return _compile_from(3, plain)


def _compile_from(n_dimensions: int, plain: Function) -> Callable[[Function], Function]:
    """Let kernels be compiled with `plain` where `errands` has fewer dimensions; without, it counts as 2."""

    def decorate(function: Function) -> Function:
        def find(table: Any, *rest: Any) -> Function:
            fields = dict(zip(table.fields, table.types, strict=True))
            found = fields["errands"].ndim if "errands" in fields else ERRANDS.ndim
            return function if found >= n_dimensions else plain

        return choose_by_type(function, find)

    return decorate


@unless_traffic(lambda problem, i: False)
def has_traffic(problem, i):
    """Whether vehicles of instance i meet."""
    return problem.instance[i, INSTANCE_HEADWAY] != 0


@inner_kernel
def has_blocks(problem):
    """Whether vehicles meet on some floor with blocks; what these need is compiled there alone."""
    return problem.errands.ndim > 3


@unless_errands(lambda problem, i: False)
def has_errands(problem, i):
    """Whether vehicles of instance i may drive without a task or be called back."""
    return problem.instance[i, INSTANCE_ERRANDS] != 0


@unless_errands(lambda problem, i: False)
def is_chained(problem, i):
    """Whether tasks of instance i follow others, are processed, or announced."""
    return problem.instance[i, INSTANCE_CHAINED] != 0


class Episodes(NamedTuple):
    """A list of episodes to play.

    Attributes
    ----------
    instances : ndarray(int64, (n_episodes,)), row of `Problem` of each
    keys : ndarray(uint32, (n_episodes, 4)), streams of the draws, random breakdowns included
    rows : ndarray(int64, (n_episodes,)), which of a decider's functions plays each
    """

    instances: np.ndarray
    keys: np.ndarray
    rows: np.ndarray


class Outcome(NamedTuple):
    """What came out of a list of episodes.

    Attributes
    ----------
    makespan, tardiness : ndarray(float64, (n_episodes,)), s; as all but the last three, nan for an episode
        that cannot end
    late : ndarray(float64, (n_episodes,)), share of the tasks that were late
    waiting : ndarray(float64, (n_episodes,)), s, mean from arrival to pickup
    empty : ndarray(float64, (n_episodes,)), share of the metres driven without a load
    value, cost : ndarray(float64, (n_episodes,)), what is minimised, and what has a limit
    decisions : ndarray(int64, (n_episodes,))
    busy : ndarray(float64, (n_episodes,)), s with a task, all vehicles together
    delay : ndarray(float64, (n_episodes,)), s driven longer for all tasks than where nobody meets
    """

    makespan: np.ndarray
    tardiness: np.ndarray
    late: np.ndarray
    waiting: np.ndarray
    empty: np.ndarray
    value: np.ndarray
    cost: np.ndarray
    decisions: np.ndarray
    busy: np.ndarray
    delay: np.ndarray


def allocate_outcome(n_episodes: int) -> Outcome:
    """Return an `Outcome` with room for `n_episodes`."""
    types = (np.int64 if name == "decisions" else np.float64 for name in Outcome._fields)
    return Outcome(*(np.empty(n_episodes, dtype) for dtype in types))


@inner_kernel
def write_outcome(state, b, outcome, episode):
    """Write how row b of the State ended to entry `episode` of `outcome`, an `Outcome`."""
    outcome.makespan[episode] = state.outcome[b, OUTCOME_MAKESPAN]
    outcome.tardiness[episode] = state.outcome[b, OUTCOME_TARDINESS]
    outcome.late[episode] = state.outcome[b, OUTCOME_LATE]
    outcome.waiting[episode] = state.outcome[b, OUTCOME_WAITING]
    outcome.empty[episode] = state.outcome[b, OUTCOME_EMPTY]
    outcome.value[episode] = state.outcome[b, OUTCOME_VALUE]
    outcome.cost[episode] = state.outcome[b, OUTCOME_COST]
    outcome.decisions[episode] = state.episode[b, EPISODE_N_DECISIONS]
    outcome.busy[episode] = outcome.delay[episode] = 0.0
    for v in range(state.usage.shape[1]):
        outcome.busy[episode] += state.usage[b, v, USAGE_BUSY]
        outcome.delay[episode] += state.usage[b, v, USAGE_DELAY]


def read_outcome(state: State) -> Outcome:
    """Return how all rows of a State ended."""
    outcome = allocate_outcome(len(state.episode))
    for b in range(len(state.episode)):
        write_outcome(state, b, outcome, b)
    return outcome


def join_outcomes(parts: Sequence[Outcome]) -> Outcome:
    """Return the outcome of lists of episodes as that of one list."""
    return Outcome(*(np.concatenate(values) for values in zip(*parts, strict=True)))


@inner_kernel
def count_rows(problem, i):
    """Return how many tasks and vehicles instance i has."""
    return problem.instance[i, INSTANCE_N_TASKS], problem.instance[i, INSTANCE_N_VEHICLES]


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
    """Return the whole ticks that `seconds` take, the last one begun; `NEVER` where they have no end."""
    return np.int64(min(np.ceil(seconds - 0.5e-9), 2.0**62))


@inner_kernel
def find_ready(problem, state, b, task):
    """Return from when on a task that is known may be loaded, s: its arrival, or after the one before it."""
    i = state.episode[b, EPISODE_INSTANCE]
    if is_chained(problem, i):
        return state.ready[b, task]
    return problem.record[i, task, RECORD_ARRIVAL]


@unless_errands(lambda problem, state, b, task: 0.0)
def find_ready_in(problem, state, b, task):
    """Return the seconds until a task that is known may be loaded."""
    if not is_chained(problem, state.episode[b, EPISODE_INSTANCE]):
        return 0.0
    ready = find_ready(problem, state, b, task)
    return max(0.0, ready - np.float64(state.episode[b, EPISODE_TIME]))


@unless_errands(lambda problem, state, b, task, tick: np.int64(0))
def find_pause(problem, state, b, task, tick):
    """Return how many ticks a vehicle that is at the pickup of a task at a tick waits until it is ready."""
    i = state.episode[b, EPISODE_INSTANCE]
    if not is_chained(problem, i):
        return np.int64(0)
    return max(np.int64(0), np.int64(np.ceil(state.ready[b, task])) - tick)


@inner_kernel
def find_due(problem, state, b, task):
    """Return when a task that is known should be delivered, s; inf for never."""
    i = state.episode[b, EPISODE_INSTANCE]
    return find_ready(problem, state, b, task) + problem.record[i, task, RECORD_EXPIRY]


@inner_kernel
def find_weight(problem, i, task):
    """Return what a task of instance i weighs by its priority."""
    n = len(problem.class_weight)
    if n == 1:
        return problem.class_weight[0]
    return problem.class_weight[np.int64(min(problem.record[i, task, RECORD_PRIORITY], n - 1.0))]


@inner_kernel
def weigh_measures(problem, measures, row):
    """Return the sum of an outcome's measures (ndarray((N_OUTCOME_FIELDS,))) by a row of `Problem.goal`."""
    total = 0.0
    for k in range(N_MEASURES):
        weight = problem.goal[row, k]
        if weight != 0.0:
            percent = k in (OUTCOME_LATE, OUTCOME_EMPTY)
            total += weight * (100.0 * measures[k] if percent else measures[k])
    return total


@inner_kernel
def add_delivery(outcome, weight, done, delay):
    """Add a task, done at `done` s and `delay` s late, to an outcome's sums (modified)."""
    outcome[OUTCOME_MAKESPAN] = max(outcome[OUTCOME_MAKESPAN], done)
    outcome[OUTCOME_TARDINESS] += weight * max(0.0, delay)
    # Deliveries are whole seconds; due times may be off by rounding.
    outcome[OUTCOME_LATE] += weight * (delay > 1e-9)


@inner_kernel
def close_outcome(problem, outcome, weight, driven, empty):
    """Make an outcome (ndarray((N_OUTCOME_FIELDS,)), modified) of its sums over tasks of a weight in all.

    `driven` and `empty` are the fleet's metres, all and those without a load.
    """
    outcome[OUTCOME_TARDINESS] /= weight
    outcome[OUTCOME_LATE] /= weight
    outcome[OUTCOME_WAITING] /= weight
    outcome[OUTCOME_EMPTY] = empty / driven if driven > 0.0 else 0.0
    outcome[OUTCOME_VALUE] = weigh_measures(problem, outcome, GOAL_OBJECTIVE)
    outcome[OUTCOME_COST] = weigh_measures(problem, outcome, GOAL_COST)


@inner_kernel
def may_carry(problem, i, v, task):
    """Whether vehicle v of instance i has the capacity for `task`."""
    capacity = problem.fleet[i, v, FLEET_CAPACITY]
    return capacity == 0.0 or problem.record[i, task, RECORD_DEMAND] <= capacity


@inner_kernel
def copy_fields(source, i, target, j):
    """Copy row i of an array (ndarray((n, k))) to row j of another."""
    for k in range(source.shape[1]):
        target[j, k] = source[i, k]


@inner_kernel
def copy_table(source, i, target, j, n):
    """Copy the first n entries, with all their fields, of row i of an array (ndarray((n, m, k)))."""
    for entry in range(n):
        for k in range(source.shape[2]):
            target[j, entry, k] = source[i, entry, k]


@inner_kernel
def copy_row(source, i, target, j):
    """Copy row i of the State `source` to row j of the State `target`, but for what belongs to tasks to come.

    Nothing reads that before they arrive, so the rows' numbers of tasks may differ.
    """
    copy_fleet(source, i, target, j)
    for position in range(source.episode[i, EPISODE_POOL_SIZE]):
        target.pool[j, position] = source.pool[i, position]
    n_tasks = source.episode[i, EPISODE_N_ARRIVED]
    for task in range(n_tasks):
        target.waiting_since[j, task] = source.waiting_since[i, task]
    copy_table(source.task, i, target.task, j, n_tasks)
    if source.job.shape[1] > 0:
        copy_table(source.job, i, target.job, j, n_tasks)
        for task in range(n_tasks):
            target.ready[j, task] = source.ready[i, task]
            target.expected[j, task] = source.expected[i, task]
            target.processed[j, task] = source.processed[i, task]


@inner_kernel
def copy_fleet(source, i, target, j):
    """Copy row i of the State `source` to row j of the State `target`, but for all that is by task."""
    copy_fields(source.episode, i, target.episode, j)
    copy_fields(source.outcome, i, target.outcome, j)
    n_vehicles = source.vehicle.shape[1]
    copy_table(source.vehicle, i, target.vehicle, j, n_vehicles)
    copy_table(source.place, i, target.place, j, n_vehicles)
    copy_table(source.usage, i, target.usage, j, n_vehicles)
    copy_plans(source, i, target, j)
    copy_fields(source.breakdown_key, i, target.breakdown_key, j)


@unless_traffic(lambda source, i, target, j: None)
def copy_plans(source, i, target, j):
    """Copy what vehicles have planned in row i of the State `source` to row j of the State `target`."""
    for v in range(source.plan.shape[1]):
        copy_table(source.plan[i], v, target.plan[j], v, source.plan[i, v, 0, PLANNED_VISITS] + 1)


@inner_kernel
def copy_floor(source, i, target, k):
    """Copy floor and fleet of instance i of one Problem to row k of another one of the same layouts."""
    n_vehicles = source.fleet.shape[1]
    copy_fields(source.instance, i, target.instance, k)
    copy_table(source.fleet, i, target.fleet, k, n_vehicles)
    copy_fields(source.servers, i, target.servers, k)
    copy_table(source.battery, i, target.battery, k, n_vehicles)
    copy_table(source.berth, i, target.berth, k, source.berth.shape[1])
    copy_fields(source.start_site, i, target.start_site, k)
    copy_fields(source.scaling, i, target.scaling, k)
    copy_fields(source.unit, i, target.unit, k)
