"""The arrays that kernels work on: what never changes (`Problem`) and one row per episode (`State`).

What belongs to one thing is a record, such as VEHICLE or EPISODE: `state.vehicle[b, v].task`. What is read
together lies in one cache line, and a call passes few arrays (numba passes each as seven words or more). Of
whole arrays Python reads columns: `state.vehicle["task"]`. Few arrays are of one type, with a name for each
column: OUTCOME, PLAN, ROAD, SCALING. `N_..._FIELDS` counts these.

Index letters of all kernels: b episode (a row of `State`), i instance, v vehicle, task a task by its row
in the record, site a site of the layout; k counts anything else, such as positions in the pool.

Sizes: I instances, L layouts, S sites, V vehicles of the largest fleet, M tasks of the longest
record, K breakdowns, B episodes. Rows of smaller instances are padded and the padding is never read.
Times are seconds, ticks whole seconds, lengths metres.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from acerl_np.kernels.core.records import copy_records, describe_record
from acerl_np.kernels.core.rounding import NOISE
from acerl_np.support.compiled import Function, choose_by_type, inner_kernel

NEVER = np.int64(2**62)
"""A tick that is never reached."""

# Values of a vehicle's `status` and `leg`, and an episode's `phase`.
# Those that drive without a task come in a row.
IDLE, WORKING, BROKEN, ROAMING, PARKING, TO_CHARGER, QUEUED, CHARGING = range(8)
TO_PICKUP, TO_DELIVERY, ARRIVED, JOINING = 0, 1, 2, 3
RUNNING, FINISHED, STUCK, STOPPED = 0, 1, 2, 3

HANDLED_AT_BOTH, HANDLED_AT_PICKUP, HANDLED_AT_DELIVERY = range(3)

# Fields of Problem.
WAY = describe_record({np.int32: ("next_site", "named_route")})

INSTANCE = describe_record(
    {
        np.int64: (
            "layout",
            "truncates",
            "n_tasks",
            "n_vehicles",
            "task_slots",
            "horizon",
            "quickest",
            "has_priorities",
            "auxiliary",
            "max_changes",
            "park_after",
            "chained",
            "lacks_ways",
            "headway",
            "lanes_apart",
            "handling_at",
            "reserve",
            "loads_stay",
            "record",
            "changes_at",
            "becomes",
        )
    }
)

# Then the spots to which edges lead.
SPOT_OFF_LANE, SPOT_HOLDS, SPOT_DEGREE, SPOT_SITE, SPOT_NEXT, SPOT_NEIGHBOURS = range(6)

ENDS = describe_record({np.int64: ("pickup", "delivery")})

RECORD = describe_record(
    {np.float64: ("arrival", "expiry", "handling", "demand", "loaded", "priority", "slot")}
)

CHAIN = describe_record({np.int64: ("after", "machine", "processing", "known")})

LEAD = describe_record({np.float64: ("announced", "work_left")})

FLEET = describe_record(
    {np.float64: ("speed", "capacity", "mean_uptime", "mean_repair", "slowdown")}
)

BATTERY = describe_record(
    {
        np.int64: (
            "capacity",
            "start",
            "idle",
            "empty",
            "loaded",
            "charge",
            "critical",
            "resume",
            "good",
            "full",
            "tow",
            "plenty",
        )
    }
)

STATION = describe_record({np.int64: ("site", "places", "charges")})

BREAKDOWN = describe_record({np.int64: ("tick", "repair_ticks")})

N_SCALING_FIELDS = 12
# After those of the features of a task, in their order, two of each.
SCALING_TOTAL_MID, SCALING_TOTAL_HALF, SCALING_SPEED, SCALING_CAPACITY = range(8, N_SCALING_FIELDS)

UNIT = describe_record({np.float64: ("metres", "seconds")})

# Fields of State.
EPISODE = describe_record(
    {
        np.int64: (
            "instance",
            "phase",
            "time",
            "n_arrived",
            "n_finished",
            "n_decisions",
            "pool_size",
            "waits",
            "settled",
            "freed",
            "n_expected",
            "n_processed",
        )
    }
)

# The measures that an objective may weigh come first.
N_MEASURES, N_OUTCOME_FIELDS = 6, 8
(
    OUTCOME_MAKESPAN,
    OUTCOME_TARDINESS,
    OUTCOME_LATE,
    OUTCOME_WAITING,
    OUTCOME_EMPTY,
    OUTCOME_WORST,
    OUTCOME_VALUE,
    OUTCOME_COST,
) = range(N_OUTCOME_FIELDS)

# Rows of Problem.goal.
N_GOAL_ROWS = 2
GOAL_OBJECTIVE, GOAL_COST = range(N_GOAL_ROWS)

TASK = describe_record({np.int64: ("vehicle", "start", "finish", "changes")})

JOB = describe_record({np.int64: ("known", "done")})

VEHICLE = describe_record(
    {
        np.int64: (
            "status",
            "site",
            "task",
            "event_tick",
            "breakdown_at",
            "next_breakdown",
            "n_repairs",
            "halted_towards",
            "left",
            "hidden",
            "reversed",
            "leg",
            "edge_from",
            "edge_to",
            "edge_tick",
            "edge_end_tick",
            "route_index",
            "destination",
            "trip_tick",
            "trip_site",
            "trip_from",
            "loaded_tick",
            "pause",
            "stand_site",
            "stand_from",
            "stand_tick",
            "since",
            "place",
            "left_site",
            "left_tick",
            "level",
            "level_tick",
            "estimate",
            "held",
            "floor",
        ),
        np.float64: (
            "halted_at",
            "edge_offset",
            "trip_metres",
            "trip_slowdown",
            "trip_reached",
            "trip_pace",
            "stand_reached",
            "stand_pace",
            "busy",
            "driven",
            "empty",
            "waiting",
            "last_waiting",
            "delay",
        ),
    }
)

# Entry 0 of a plan tells how many visits follow, where a task is loaded and delivered, which counts first.
N_PLAN_FIELDS = 4
PLAN_SITE, PLAN_IN, PLAN_OUT, PLAN_STAY = range(N_PLAN_FIELDS)
PLANNED_VISITS, PLANNED_PICKUP, PLANNED_DELIVERY, PLANNED_FROM = range(N_PLAN_FIELDS)

# What a control system's clock says of a vehicle, see `Clock.move`.
N_MOVE_FIELDS = 7
MOVE_SINCE, MOVE_BEGAN, MOVE_REACHED, MOVE_LOADED = range(4)
MOVE_LEVEL, MOVE_LEVEL_TIME, MOVE_LEFT = range(4, N_MOVE_FIELDS)

RESERVATION = describe_record({np.int64: ("since", "until", "next", "next_in", "vehicle", "visit")})

NODE = describe_record(
    {
        np.int64: (
            "tick",
            "stopped",
            "before",
            "leaves",
            "key",
            "rank",
            "position",
            "heap",
            "first",
            "filled",
            "spot",
            "seen",
            "search",
        )
    }
)


class Problem(NamedTuple):
    """Tables of all layouts and instances; kernels only read them.

    Attributes
    ----------
    distance : ndarray(float64, (L, S, S)), m, lengths of the routes, inf where there is no way
    edge_length : ndarray(float64, (L, S, S)), m, inf where there is no edge
    edge_speed : ndarray(float64, (L, S, S)), m/s, speed limits, inf without; (0, 0, 0) if no layout has any
    slowdown : ndarray(float64, (C, S, S)), s, by how much longer a route takes than its length by a vehicle's
        speed, because of speed limits; a row for each speed on each layout with limits
    way : ndarray(WAY, (L, S, S)), how to get from site a to site b
        next_site : the site after a on the default route
        named_route : index of the second site of the named route in `route_sites`, or -1
    route_sites : ndarray(int64, (n,)), the named routes one after the other
    instance : ndarray(INSTANCE, (I,))
        layout : the instance's layout
        truncates : whether distances are truncated to whole metres, 0 or 1
        n_tasks, n_vehicles
        task_slots : waiting tasks that the network sees, the same for all instances
        horizon : tick after which an episode is stopped, `NEVER` for none
        quickest : whether routes are the quickest instead of the shortest, 0 or 1
        has_priorities : whether some task has a priority above 0, 0 or 1
        auxiliary : whether vehicles may drive without a task or be called back, 0 or 1
        max_changes : how often a task may be called back before it is loaded, -1 for never
        park_after : ticks after which an idle vehicle drives to a parking place, `NEVER` for none
        chained : whether tasks follow others, are processed, or announced, 0 or 1
        lacks_ways : whether from some site no way leads to another, 0 or 1
        headway : ticks between two vehicles at one place, 0 where vehicles do not meet
        lanes_apart : whether both directions of a lane are independent, 0 or 1
        handling_at : HANDLED_AT_BOTH, HANDLED_AT_PICKUP or HANDLED_AT_DELIVERY
        reserve : what batteries must hold where vehicles meet, % of what free ways use; 0 if none do
        loads_stay : whether a vehicle that breaks down keeps what it has loaded, 0 or 1
        record : row of the record as it begins, this one or another
        changes_at, becomes : tick from which another row, with other edges closed, stands in the place of
            this one, `NEVER` for none, and which
    ends : ndarray(ENDS, (I, M)), the sites of each task
        pickup, delivery
    record : ndarray(RECORD, (I, M)), the tasks as they are given
        arrival, expiry, handling : s; expiry is relative to arrival
        demand : units of load
        loaded : m, pickup to delivery as rules measure it
        priority : a vehicle is offered those waiting tasks that have the highest, of all it may carry
        slot : the task's own slot of the observation, from 1; 0: its place in the pool is its slot
    arrival_tick : ndarray(int64, (I, M)), non-decreasing along a row
    chain : ndarray(CHAIN, (I, M)); as `lead`, without tasks if no instance is chained
        after : the task that it follows, -1 for none
        machine : what processes it once it is delivered, -1 for none
        processing : ticks that this takes
        known : tick from which a task that follows none may be given
    lead : ndarray(LEAD, (I, M)), s
        announced : how long before it is ready a task may be given; inf: once that is known
        work_left : its processing, and what the longest chain after it takes
    servers : ndarray(int64, (I, K)), how many tasks each machine processes at once
    fleet : ndarray(FLEET, (I, V)), the vehicles as they are given
        speed : m/s
        capacity : units of load, 0 is unlimited
        mean_uptime : s, mean time between random failures, 0 for none
        mean_repair : s, mean time to repair them
        slowdown : row of `slowdown`, -1 where no speed limit matters
    battery : ndarray(BATTERY, (I, V)), in units of energy
        capacity : 0 for a vehicle without a battery
        start : level at the start
        idle, empty, loaded, charge : used, or charged, a tick
        critical, resume, good, full : thresholds of the level, ascending
        tow : ticks until a vehicle that stands with an empty battery may go on
        plenty : above the critical level, enough for any task at once, without its handling
    station : ndarray(STATION, (I, N)), chargers and parking places
        site, places : how many vehicles charge, or park, there at once
        charges : 1 for a charger, 0 for a parking place
    start_site : ndarray(int64, (I, V))
    breakdown : ndarray(BREAKDOWN, (I, V, K)), listed ones by time
        tick : `NEVER` after the last
        repair_ticks
    scaling : ndarray(float64, (I, N_SCALING_FIELDS)), feature constants
        mid and half of each feature x, which is seen as (x - mid) / half: loaded way, m; waiting and
            expiry, s; demand, units of load
        SCALING_TOTAL_MID, SCALING_TOTAL_HALF : the same of the way, m, from vehicle to pickup to delivery
        SCALING_SPEED, SCALING_CAPACITY : divisors
    unit : ndarray(UNIT, (I,)), what index policies measure in
        metres : m, mean distance between two sites of the floor
        seconds : s, time that it takes at the fleet's mean speed
    goal : ndarray(float64, (N_GOAL_ROWS, N_MEASURES)), weight of each measure, the same for all instances
        GOAL_OBJECTIVE : in what is minimised
        GOAL_COST : in what has a limit
    class_weight : ndarray(float64, (n,)), weight of a task of priority 0, 1, ... n - 1 and above in the mean
        tardiness, the share of late tasks and the mean waiting
    adjacency : ndarray(int64, (L, P, n)), spots of floors on which vehicles meet: sites, and in blocks of one
        direction sites by the way in, see `problem.spots`; if no vehicles meet, L is 0, as below
        SPOT_OFF_LANE : whether who stands there stands clear of the lane, 0 or 1
        SPOT_HOLDS : how many vehicles it holds at once, unless it lies aside
        SPOT_DEGREE : number of edges that lead away; their ends, spots, from SPOT_NEIGHBOURS on
        SPOT_SITE, SPOT_NEXT : where it is, and the next spot there, -1 for none
    block_reservation : ndarray(int64, (L, P, 1 + degree, n, 2))
        Blocks that who is at a spot, or on each of its edges, is inside of, and the edge by which it came in,
        -1 where that does not matter; both -1 after the last; without blocks n is 0.
    block_member : ndarray(int64, (L, K, n, 2))
        Spots inside of each block, and the edge as above; -1 after the last.
    time_bound : ndarray(float64, (L, S, S + 1)), s
        What no vehicle's way to each site is quicker than; the last is to the nearest site off the lane.
    auxiliary : ndarray(bool, (0,)), or (0, 0) if vehicles of some instance move without a task, its tasks are
        chained, or a live floor lacks a way, or (0, m, n) if vehicles of some meet, whose plans then hold n
        visits less one, each up to m entries of `State.reserved`, or (0, m, n, 0) if one of their floors has
        blocks; see `unless_auxiliary`, `unless_traffic`, `has_blocks`
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
    station: np.ndarray
    start_site: np.ndarray
    breakdown: np.ndarray
    scaling: np.ndarray
    unit: np.ndarray
    goal: np.ndarray
    class_weight: np.ndarray
    adjacency: np.ndarray
    block_reservation: np.ndarray
    block_member: np.ndarray
    time_bound: np.ndarray
    auxiliary: np.ndarray


class State(NamedTuple):
    """Episodes in progress, one row each; kernels modify them in place.

    Attributes
    ----------
    episode : ndarray(EPISODE, (B,))
        instance : row of `Problem`, another one from its `changes_at` on
        phase : RUNNING, FINISHED, STUCK (nothing will ever happen) or STOPPED (at the horizon)
        time : tick
        n_arrived, n_finished, n_decisions
        pool_size : waiting tasks
        waits : 1 while no decision is due before something happens
        settled : 1 once vehicles without a task were sent to charge or park at this tick, 0 before,
            -1 before the first tick
        freed : the last tick at which a vehicle left its place
        n_expected, n_processed : entries of `expected` and `processed`
    outcome : ndarray(float64, (B, N_OUTCOME_FIELDS)), nan until finished, see `Outcome`
        OUTCOME_MAKESPAN, OUTCOME_TARDINESS, OUTCOME_WAITING, OUTCOME_WORST : s
        OUTCOME_LATE, OUTCOME_EMPTY : shares
        OUTCOME_VALUE, OUTCOME_COST : as `Problem.goal` weighs these, shares in percent
    pool : ndarray(int64, (B, M)), waiting tasks in pool order
    waiting_since : ndarray(float64, (B, M)), s, per task
    task : ndarray(TASK, (B, M))
        vehicle : -1 while unassigned, -2 while no way leads there
        start, finish : ticks of the last assignment and of the finish
        changes : how often it was called back
    job : ndarray(JOB, (B, M)); as the next three, without tasks if no instance is chained
        known : tick from which an expected task may be given, `NEVER` while nobody knows
        done : tick at which its processing ends, `NEVER` in the queue
    ready : ndarray(float64, (B, M)), s, when each task that is known may be loaded
    expected : ndarray(int64, (B, M)), tasks of chains that have begun, or announced, which are not known yet
    processed : ndarray(int64, (B, M)), tasks at machines, by delivery
    vehicle : ndarray(VEHICLE, (B, V))
        status : IDLE, WORKING or BROKEN; without a task ROAMING (to its next site), PARKING (to a
            place), TO_CHARGER, QUEUED or CHARGING
        site : the last visited site as rules and observation see it
        task : -1 when it neither works nor is broken with a load on it
        event_tick : end of its work, its repair, its way or its charging
        breakdown_at : tick of the next breakdown, listed or random, of a vehicle that is not broken
        next_breakdown : index into `Problem.breakdown`
        n_repairs : repairs so far
        halted_towards : next site of a vehicle that broke down while working and has not set out
            since, site itself at the end of its way; else -1
        left : of a broken vehicle that keeps its load, ticks from the repair to the delivery; else 0.
            Until then `edge_tick` and `edge_end_tick` count from the repair.
        hidden : 1 on the first trip after such a halt: site stays
        reversed : 1 on that trip's first edge if it is driven backwards
        leg : TO_PICKUP, TO_DELIVERY (or to its destination), ARRIVED, or JOINING: still on the way of
            before, to destination
        edge_from, edge_to : the edge that a working vehicle is on
        edge_tick, edge_end_tick : when it entered and when it leaves that edge
        route_index : index of edge_to in `Problem.route_sites`, or -1
        destination : end of a way without a task
        trip_tick, trip_site, trip_from : when the present way begins, its first site,
            and the one before where it begins on the edge between
        loaded_tick : when its task is loaded
        pause : ticks that it waits before, at the pickup
        stand_site, stand_from, stand_tick : of a vehicle that is free, yet not idle,
            where it sets out to a task, -1 of any other; from where it comes, and when it is there
        since : when it became idle, or came to a charger
        place : site of the parking place that it has or drives to, -1 for none
        left_site, left_tick : that of the place that it left last, and when
        level, level_tick : energy when that last changed course
        estimate : scratch: when it will have charged, -1 if it does not count; or leaves where it stands
        held : ticks for which it stood broken down with its load on this trip
        floor : row of `Problem.way` by which it drives: that of the layout as it set out
        halted_at : m that a halted vehicle stands past site, 0 at the site
        edge_offset : m past edge_from at edge_tick
        trip_metres, trip_slowdown : m and s of speed limits from where the way begins to
            trip_site
        trip_reached, trip_pace : s, when exactly that is reached, and m/s, how fast
        stand_reached, stand_pace : the same of stand_site
        trips that a breakdown undid count for what they were
        busy : s with a task
        driven, empty : m, and those of them without a load
        waiting : s from arrival to pickup, all tasks that it carried through or has now together,
            each by the weight of its class
        last_waiting : s, of the last of them
        delay : s that it drove longer for the tasks it delivered than where nobody meets
    breakdown_key : ndarray(uint32, (B, 4)), stream of the random breakdowns; set before an episode starts
    plan : ndarray(int64, (B, V, n, N_PLAN_FIELDS)), visits of sites, past and planned; V is 0 if nobody meets
        PLAN_SITE, PLAN_IN, PLAN_OUT : when the site is reached and left, `NEVER` at the end
        PLAN_STAY : ticks of handling there; or less 0, for how many it has been broken on the edge after it
    kept_plan, kept_vehicle : scratch: rows of `plan` and `vehicle` as they were, see `traffic.let_pass`
    reserved : ndarray(RESERVATION, (V * n * m,)), scratch: what others hold, see `lanes.sort_reservations`
        since, until, next, next_in : of a visit, and of the next one; next is -1 if the
            spot is held as another is inside of its block. In the list of a block next is the edge by
            which one came in, as in `Problem.block_reservation`, and next_in 1 on an edge, 0 at a spot
        vehicle, visit : whose it is, and which of its plan
    node : ndarray(NODE, (n,)), scratch of all rows' searches, see `planner.search_way`
        spot, tick : where and when it is there
        base : tick of the last stop for others, or of the start
        before, leaves : the node before, and when that place is left
        key, rank : the earliest delivery of such a way, and what comes first of equal ones
        position : its place in the heap, -1 if it is not in
        heap : the heap's nodes, in the rows of their places
        seen, search : the search that has written it; in row 0, that at hand
        first, filled : in the rows of spots, then of blocks, the first entry of `reserved`, and how
            many are written; where there are blocks, once all are, filled is in the rows of the entries
            of `reserved`: the latest until of the spot's entries up to that one
    node_seconds : ndarray(float64, (n,)), s driven since base
    auxiliary : ndarray(bool), as in `Problem`
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
    breakdown_key: np.ndarray
    plan: np.ndarray
    kept_plan: np.ndarray
    kept_vehicle: np.ndarray
    reserved: np.ndarray
    node: np.ndarray
    node_seconds: np.ndarray
    auxiliary: np.ndarray


def allocate_state(problem: Problem, n_episodes: int) -> State:
    """Return a `State` of `n_episodes` rows for any instance of `problem`; nothing is started yet."""
    n_tasks = problem.record.shape[1]
    n_jobs, n_vehicles = problem.chain.shape[1], problem.fleet.shape[1]
    n_visits = problem.auxiliary.shape[2] if problem.auxiliary.ndim > 2 else 0
    n_planned = n_vehicles if n_visits else 0
    n_reserved = n_planned * n_visits * (max(1, problem.auxiliary.shape[1]) if n_visits else 0)
    n_nodes = 3 * (problem.adjacency.shape[1] + n_reserved) + problem.block_member.shape[1]
    return State(
        episode=np.zeros(n_episodes, EPISODE),
        outcome=np.zeros((n_episodes, N_OUTCOME_FIELDS)),
        pool=np.zeros((n_episodes, n_tasks), np.int64),
        waiting_since=np.zeros((n_episodes, n_tasks)),
        task=np.zeros((n_episodes, n_tasks), TASK),
        job=np.zeros((n_episodes, n_jobs), JOB),
        ready=np.zeros((n_episodes, n_jobs)),
        expected=np.zeros((n_episodes, n_jobs), np.int64),
        processed=np.zeros((n_episodes, n_jobs), np.int64),
        vehicle=np.zeros((n_episodes, n_vehicles), VEHICLE),
        breakdown_key=np.zeros((n_episodes, 4), np.uint32),
        plan=np.zeros((n_episodes, n_planned, n_visits, N_PLAN_FIELDS), np.int64),
        kept_plan=np.zeros((n_planned, n_visits, N_PLAN_FIELDS), np.int64),
        kept_vehicle=np.zeros(n_planned, VEHICLE),
        reserved=np.zeros(n_reserved, RESERVATION),
        node=np.zeros(n_nodes, NODE),
        node_seconds=np.zeros(n_nodes),
        auxiliary=problem.auxiliary,
    )


def take_rows(state: State, n: int) -> State:
    """Return a view of the first n rows of a state; scratch is shared."""
    shared = {"kept_plan", "kept_vehicle", "reserved", "node", "node_seconds", "auxiliary"}
    pairs = zip(State._fields, state, strict=True)
    return State(*(array if name in shared else array[:n] for name, array in pairs))


NO_AUXILIARY, AUXILIARY = np.zeros(0, np.bool_), np.zeros((0, 0), np.bool_)
"""What `auxiliary` may be where nobody meets: kernels are compiled by its number of dimensions."""


def unless_auxiliary(plain: Any = None) -> Callable[[Function], Function]:
    """Let `plain` stand in place of a function where there are neither auxiliary moves nor chains.

    `plain` is another function, or what is returned. Then parking, batteries, call-backs and machines cost
    nothing, whatever a kernel holds of them: they are not compiled. Nor is a look for ways: records have one
    to each task, and live floors that lack some count as if vehicles parked. The first argument of both is a
    `Problem` or a `State`.
    """
    return _compile_from(2, plain)


def unless_traffic(plain: Any = None) -> Callable[[Function], Function]:
    """Let `plain` stand in place of a function where vehicles of no instance meet, see `unless_auxiliary`."""
    return _compile_from(3, plain)


def _compile_from(n_dimensions: int, plain: Any) -> Callable[[Function], Function]:
    """Let `plain` stand where `auxiliary` has fewer dimensions; without, it counts as 2."""

    def decorate(function: Function) -> Function:
        own = plain if callable(plain) else _make_constant(function, plain)

        @wraps(function)
        def call(table: Any, *rest: Any) -> Any:
            auxiliary = getattr(table, "auxiliary", AUXILIARY)
            return (function if auxiliary.ndim >= n_dimensions else own)(table, *rest)

        def find(table: Any, *rest: Any) -> Function:
            fields = dict(zip(table.fields, table.types, strict=True))
            found = fields["auxiliary"].ndim if "auxiliary" in fields else AUXILIARY.ndim
            return function if found >= n_dimensions else own

        return choose_by_type(call, find)

    return decorate


def _make_constant(function: Function, value: Any) -> Function:
    """Return a function of the same arguments as another that returns a value."""
    names = ", ".join(inspect.signature(function).parameters)
    made: Function = eval(f"lambda {names}: value", {"value": value})
    made.__module__ = function.__module__
    made.__qualname__ = f"plain_{function.__qualname__}"  # machine code tells functions apart by it
    return made


@unless_traffic(False)
def has_traffic(problem, i):
    """Whether vehicles of instance i meet."""
    return problem.instance[i].headway != 0


@inner_kernel
def has_blocks(problem):
    """Whether vehicles meet on some floor with blocks; what these need is compiled there alone."""
    return problem.auxiliary.ndim > 3


@unless_auxiliary(False)
def has_auxiliary(problem, i):
    """Whether vehicles of instance i may drive without a task or be called back."""
    return problem.instance[i].auxiliary != 0


@unless_auxiliary(False)
def is_chained(problem, i):
    """Whether tasks of instance i follow others, are processed, or announced."""
    return problem.instance[i].chained != 0


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
    worst : ndarray(float64, (n_episodes,)), s, how late the latest task was, whatever it weighs
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
    worst: np.ndarray
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
    outcome.worst[episode] = state.outcome[b, OUTCOME_WORST]
    outcome.value[episode] = state.outcome[b, OUTCOME_VALUE]
    outcome.cost[episode] = state.outcome[b, OUTCOME_COST]
    outcome.decisions[episode] = state.episode[b].n_decisions
    outcome.busy[episode] = outcome.delay[episode] = 0.0
    for v in range(state.vehicle.shape[1]):
        outcome.busy[episode] += state.vehicle[b, v].busy
        outcome.delay[episode] += state.vehicle[b, v].delay


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
    return problem.instance[i].n_tasks, problem.instance[i].n_vehicles


@inner_kernel
def round_sum(x):
    """Round to 1e-9, so that the noise of a floating-point sum moves neither a tick nor a tie."""
    return np.floor(x * 1e9 + 0.5) * 1e-9


@inner_kernel
def measure_distance(metres, truncate):
    """Return a distance as the rules and the observation see it: rounded, and cut if so asked."""
    # The product above may end just below a whole number; `NOISE` mends that.
    return np.floor(metres + NOISE) if truncate else round_sum(metres)


@inner_kernel
def count_ticks(seconds):
    """Return the whole ticks that `seconds` take, the last one begun; `NEVER` where they have no end."""
    return np.int64(min(np.ceil(seconds - NOISE), 2.0**62))


@unless_auxiliary(NEVER)
def find_change(problem, i):
    """Return the tick at which edges are closed or opened next, `NEVER` for none."""
    return problem.instance[i].changes_at


@unless_auxiliary(False)
def is_endless(problem, metres):
    """Whether no way leads somewhere, as edges may be closed."""
    return metres == np.inf


@inner_kernel
def find_ready(problem, state, b, task):
    """Return from when on a task that is known may be loaded, s: its arrival, or after the one before it."""
    i = state.episode[b].instance
    if is_chained(problem, i):
        return state.ready[b, task]
    return problem.record[i, task].arrival


@unless_auxiliary(0.0)
def find_ready_in(problem, state, b, task):
    """Return the seconds until a task that is known may be loaded."""
    if not is_chained(problem, state.episode[b].instance):
        return 0.0
    ready = find_ready(problem, state, b, task)
    return max(0.0, ready - np.float64(state.episode[b].time))


@unless_auxiliary(np.int64(0))
def find_pause(problem, state, b, task, tick):
    """Return how many ticks a vehicle that is at the pickup of a task at a tick waits until it is ready."""
    i = state.episode[b].instance
    if not is_chained(problem, i):
        return np.int64(0)
    return max(np.int64(0), np.int64(np.ceil(state.ready[b, task])) - tick)


@inner_kernel
def find_due(problem, state, b, task):
    """Return when a task that is known should be delivered, s; inf for never."""
    i = state.episode[b].instance
    return find_ready(problem, state, b, task) + problem.record[i, task].expiry


@inner_kernel
def find_weight(problem, i, task):
    """Return what a task of instance i weighs by its priority."""
    n = len(problem.class_weight)
    if n == 1:
        return problem.class_weight[0]
    return problem.class_weight[np.int64(min(problem.record[i, task].priority, n - 1.0))]


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
    outcome[OUTCOME_WORST] = max(outcome[OUTCOME_WORST], delay)


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
    capacity = problem.fleet[i, v].capacity
    return capacity == 0.0 or problem.record[i, task].demand <= capacity


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
    for position in range(source.episode[i].pool_size):
        target.pool[j, position] = source.pool[i, position]
    n_tasks = source.episode[i].n_arrived
    for task in range(n_tasks):
        target.waiting_since[j, task] = source.waiting_since[i, task]
    copy_records(source.task[i], 0, target.task[j], 0, n_tasks)
    if source.job.shape[1] > 0:
        copy_records(source.job[i], 0, target.job[j], 0, n_tasks)
        for task in range(n_tasks):
            target.ready[j, task] = source.ready[i, task]
            target.expected[j, task] = source.expected[i, task]
            target.processed[j, task] = source.processed[i, task]


@inner_kernel
def copy_fleet(source, i, target, j):
    """Copy row i of the State `source` to row j of the State `target`, but for all that is by task."""
    copy_records(source.episode, i, target.episode, j, 1)
    copy_fields(source.outcome, i, target.outcome, j)
    n_vehicles = source.vehicle.shape[1]
    copy_records(source.vehicle[i], 0, target.vehicle[j], 0, n_vehicles)
    copy_plans(source, i, target, j)
    copy_fields(source.breakdown_key, i, target.breakdown_key, j)


@unless_traffic()
def copy_plans(source, i, target, j):
    """Copy what vehicles have planned in row i of the State `source` to row j of the State `target`."""
    for v in range(source.plan.shape[1]):
        copy_table(source.plan[i], v, target.plan[j], v, source.plan[i, v, 0, PLANNED_VISITS] + 1)


@inner_kernel
def clear_usage(vehicle):
    """Make 0 what a vehicle has done."""
    vehicle.busy = vehicle.driven = vehicle.empty = 0.0
    vehicle.waiting = vehicle.last_waiting = vehicle.delay = 0.0


@inner_kernel
def copy_floor(source, i, target, k):
    """Copy floor and fleet of instance i of one Problem to row k of another one of the same layouts.

    What will be closed or opened is not copied.
    """
    n_vehicles = source.fleet.shape[1]
    copy_records(source.instance, i, target.instance, k, 1)
    target.instance[k].changes_at = NEVER
    copy_records(source.fleet[i], 0, target.fleet[k], 0, n_vehicles)
    copy_fields(source.servers, i, target.servers, k)
    copy_records(source.battery[i], 0, target.battery[k], 0, n_vehicles)
    copy_records(source.station[i], 0, target.station[k], 0, source.station.shape[1])
    copy_fields(source.start_site, i, target.start_site, k)
    copy_fields(source.scaling, i, target.scaling, k)
    copy_records(source.unit, i, target.unit, k, 1)
