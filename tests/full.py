"""The slow, obvious simulator with all that a floor may have: the oracle of the fast kernels.

It is the paper's, `acerl_np.plain`, with speed limits and the quickest routes, random breakdowns, priorities,
earliest starts, two more rules, sizes of the state; vehicles that wait, park, charge and are called back,
chains of tasks, machines between them, announced tasks, edges closed for a time. Units: metres, seconds,
metres per second.

One tick is one second: 1. breakdowns and repairs, 2. trips that end: what is delivered joins its machine's
queue, 3. machines end and begin, 4. charging, 5. tasks that become known join the pool, 6. decisions, 7. idle
vehicles set out for a charger or a parking place.

Every tick is stepped, but decisions are asked for, and idle vehicles set out, only at a tick at which
something happens: `_happened`. It is set where it happens.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from acerl_np.plain import floor as plain
from acerl_np.plain import simulator
from acerl_np.plain.floor import round9
from acerl_np.plain.simulator import BROKEN, IDLE, WORKING, Leg, Standing, ticks

ACTION_RULES = simulator.RULES  # by default; action = vehicle * 4 + position here
RULES = (*ACTION_RULES, "LWT", "AHP")

MOST_ENERGY = 10**15
"""What a vehicle needs for a task to which no way leads."""

MOST_TICKS = 200_000
"""An episode that lasts longer never ends."""


class Floor(plain.Floor):
    """A floor whose arcs may have speed limits, and routes that may be the quickest.

    limits : (from, to) -> speed limit of the arc, inf without
    costs : (from, to) -> what routes have least of: length, or time where they are the quickest
    least : (from, to) -> the sum of costs on the route
    """

    def __init__(self, layout: dict[str, Any]) -> None:
        super().__init__(layout)
        points = {site["id"]: (site["x"], site["y"]) for site in layout["sites"]}
        self.limits: dict[tuple[str, str], float] = {}
        for edge in layout["edges"]:
            a, b = edge["a"], edge["b"]
            length = float(edge.get("length", math.dist(points[a], points[b])))
            limit = float(edge.get("max_speed", math.inf))
            limits = {(a, b): limit, (b, a): float(edge.get("max_reverse_speed", limit))}
            if edge.get("one_way", False):
                del limits[b, a]
            for arc, own in limits.items():
                # of two edges between the same sites the shorter is travelled, of equals the faster
                if length == self.arcs[arc]:
                    self.limits[arc] = max(own, self.limits.get(arc, 0.0))
        self.is_quickest = bool(layout.get("quickest_routes", False))
        self.costs, self.least = self.arcs, self.distances
        if self.is_quickest:
            fastest = max(float(vehicle.get("speed", 1)) for vehicle in layout["vehicles"])
            self.costs = {
                arc: length / min(fastest, self.limits[arc]) for arc, length in self.arcs.items()
            }
            self._by_time = copy.copy(self)
            self._by_time.arcs, self._by_time.is_quickest = self.costs, False
            self._by_time.measure()
            self.least = self._by_time.distances
            self.distances = {
                (a, b): math.inf if math.isinf(seconds) else self._length(self.route(a, b))
                for (a, b), seconds in self.least.items()
            }

    def _length(self, route: list[str]) -> float:
        return sum(self.arcs[arc] for arc in pairwise(route))

    def close(self, closed: set[frozenset[str]]) -> Floor:
        """The floor on which nobody is sent over edges between such pairs; who is on one finishes it."""
        layout = {**self.layout}
        layout["edges"] = [x for x in layout["edges"] if frozenset((x["a"], x["b"])) not in closed]
        layout["routes"] = [
            route
            for route in layout.get("routes", [])
            if closed.isdisjoint(map(frozenset, pairwise(route)))
        ]
        other = Floor(layout)
        other.layout, other.arcs, other.limits = self.layout, self.arcs, self.limits
        return other

    def route(self, a: str, b: str) -> list[str]:
        if math.isinf(self.least[a, b]):
            return [a]  # which nobody drives
        return self._by_time.route(a, b) if self.is_quickest else super().route(a, b)

    def lost(self, a: str, b: str, speed: float) -> float:
        """Seconds that speed limits cost on the route from `a` to `b`."""
        return sum(self.lost_on(arc, self.arcs[arc], speed) for arc in pairwise(self.route(a, b)))

    def lost_on(self, arc: tuple[str, str], metres: float, speed: float) -> float:
        """Seconds that a limit costs on so many metres of an arc."""
        return metres / min(speed, self.limits[arc]) - metres / speed


@dataclass(frozen=True)
class Battery:
    """What a vehicle has and uses, in any unit, each tick; and its thresholds."""

    capacity: int
    start: int
    idle: int
    empty: int
    loaded: int
    charge: int
    critical: int
    resume: int
    good: int
    full: int
    tow: int


@dataclass(eq=False)
class Task(plain.Task):
    """A task; `arrival` is the earliest moment at which it is ready, and when it is ready once known.

    Only once its predecessor's processing begins is it known when it is ready.
    """

    priority: float = 0.0
    changes: int = 0  # how often it was taken from a vehicle that was on its way
    after: str | None = None
    processing: float = 0.0
    announced: float = 0.0  # inf: when its predecessor's processing begins
    known: float = math.inf  # tick at which it joins the pool, once it is clear
    has_joined: bool = False
    loaded: int = -1  # of the service that delivered it
    processed: int = -1  # when its processing ends, known when it begins


@dataclass
class Machine:
    servers: int
    queue: list[Task] = field(default_factory=list)
    in_service: list[Task] = field(default_factory=list)


@dataclass
class Stop:
    """A site of a trip: truly reached at `moment`, taken as reached at `tick`.

    `leg` is the way there from the stop before or from mid-edge, None where the trip begins.
    """

    site: str
    moment: float
    tick: int
    leg: Leg | None


@dataclass(eq=False)
class Vehicle(simulator.Vehicle):
    mean_times: tuple[float, float] | None = None  # between random failures, and to repair one
    fails_at: int = -1  # tick of the next random failure
    n_repairs: int = 0
    began: int = -1  # tick at which it broke down last
    battery: Battery | None = None
    level: int = 0
    level_before: int = 0  # at the tick before
    # without a task, on a trip: "parking", "to_charger", "roaming" (to the end of its edge);
    # standing: "queued", "charging"
    errand: str = ""
    parking: str | None = None  # site of the parking place that it has or to which it drives
    since: int = 0  # tick since which it is idle, queued or charging
    charger: int = -1  # to which it drives or at which it stands
    stops: list[Stop] = field(default_factory=list)  # of a trip, the last one its pickup or its end
    onwards: list[Leg] = field(default_factory=list)  # of its trip, from the pickup on
    at_pickup: int = -1  # tick at which it is there; it waits there until `loaded_at`
    loaded_at: int = -1

    @property
    def word(self) -> str:
        if self.status == BROKEN:
            return "broken"
        if self.task is not None:
            return "working"
        return self.errand or "idle"

    @property
    def is_at_site(self) -> bool:
        """Whether a vehicle that does not move stands at its site, not in mid-edge."""
        return self.standing is None or self.standing.offset == 0.0

    def end_trip(self, site: str, standing: Standing | None) -> Task | None:
        self.stops = []
        self.errand = ""
        return super().end_trip(site, standing)

    def pauses(self, tick: int) -> bool:
        """Whether it waits at the pickup."""
        return self.task is not None and self.at_pickup <= tick < self.loaded_at

    def follow(self, legs: list[Leg]) -> None:
        """Leave the way that it was on for this one."""
        self.legs, self.elapsed = legs, 0
        self.enter_next_leg()

    def rate(self, tick: int) -> int:
        """What the vehicle uses from this tick to the next one; below 0 while it charges."""
        battery = self.battery
        if battery is None or self.status == BROKEN:
            return 0
        if self.word == "charging":
            return -battery.charge
        if self.pauses(tick) or self.word in ("idle", "queued"):
            return battery.idle
        return battery.loaded if self.task and tick >= self.loaded_at else battery.empty


class Episode(simulator.Episode):
    """One episode; after construction and after each decision it stands at a decision or at its end.

    layout : the parsed layout JSON
    tasks : dicts with task, pickup, delivery, arrival_time, expiry_time and, optionally, handling_time,
        demand, priority, earliest_start, after, processing, announced (seconds or "start"), in the order of
        the record's file; `expiry_time` None: never due; `arrival_time` None: that of its chain's root
    commitment : "assignment", or "pickup": until a task is loaded it may be given to another vehicle
    max_changes : how often that may happen to a task
    slots : slot of each task by its id, from 0; by default a task's slot is its place in the pool
    rules : among which an action chooses
    waiting_time : for random breakdowns: of (vehicle, repairs so far, 0 or 1) the time until the next
        failure (0), or that its repair takes (1), as a multiple of its mean
    n_vehicles, sizes : of the state, by default the layout's, padded with zeros; also `scaling`, mid and half
        width of each feature

    log : (tick, vehicle, what, where) of what vehicles do without a task: "parked", "queued" and "charging"
        begin, "charged" ends, however it ends, "recalled" names the site at which it stands from then on
    machine_log : (tick, site, "begin" or "end", task), by tick, then by machine as in the layout
    """

    def __init__(
        self,
        layout: dict[str, Any],
        tasks: list[dict[str, Any]],
        *,
        commitment: str = "assignment",
        max_changes: int = 8,
        n_vehicles: int | None = None,
        slots: dict[str, int] | None = None,
        rules: tuple[str, ...] = ACTION_RULES,
        waiting_time: Callable[[int, int, int], float] | None = None,
        **sizes: Any,
    ) -> None:
        self.rules = rules
        self.waiting_time = waiting_time
        self._n_absent = 0 if n_vehicles is None else n_vehicles - len(layout["vehicles"])
        self.commitment = commitment
        self._max_changes = max_changes
        chargers = layout.get("chargers", [])
        self._chargers = [(item["site"], int(item.get("slots", 1))) for item in chargers]
        parking = layout.get("parking", {})
        self._parks_after = int(parking.get("after", 60))
        places = parking.get("places", [])
        self._places = {item["site"]: int(item.get("places", 1)) for item in places}
        machines = layout.get("machines", [])
        self._loads_stay = layout.get("loads") == "stay"
        self._machines = {item["site"]: Machine(int(item.get("servers", 1))) for item in machines}
        self.log: list[tuple[int, int, str, str]] = []
        self.machine_log: list[tuple[int, str, str, str]] = []
        self.n_decisions = 0  # taken by `assign`
        self._n_passed = 0  # rows
        self._happened = False  # at this tick
        self._opens_round = False  # at this tick
        self._asks = False  # whether a decision may be due
        self._settled: set[int] = set()  # vehicles, in this round
        self._holders: set[tuple[str, int]] = set()
        self._freed = False  # a place, at the last tick
        self._aside: list[Task] = []  # cut off by closed edges
        self._closed: set[frozenset[str]] = set()
        self._open_floor = Floor(layout)
        own = {name: value for name, value in sizes.items() if value is not None}
        super().__init__(Floor({**layout, **own}), tasks, slots=slots)

    def _change_floor(self) -> None:
        """Close and open the edges of this tick; tasks that are cut off wait aside."""
        closed = {
            frozenset((item["a"], item["b"]))
            for item in self.floor.layout.get("closures", [])
            if math.ceil(item["time"]) <= self.time < math.ceil(item["until"])
        }
        if closed == self._closed:
            return
        self._closed, self.floor = closed, self._open_floor.close(closed)
        self._happened = self._opens_round = True
        waiting, self.task_pool = self.task_pool, []
        aside, self._aside = self._aside, []
        for task in waiting:
            self._let_wait(task)
        for task in sorted(aside, key=lambda task: (task.arrival, self.tasks.index(task))):
            self._let_wait(task)
            task.waiting_since = task.arrival

    def _let_wait(self, task: Task) -> None:
        (self._aside if self.is_cut_off(task) else self.task_pool).append(task)

    def is_cut_off(self, task: Task) -> bool:
        """Whether no way leads from its pickup to its delivery, or there from where any carrier starts."""
        starts = [entry["start"] for entry in self.floor.layout["vehicles"]]
        ways = [
            self.distance(start, task.pickup)
            for start, vehicle in zip(starts, self.vehicles, strict=True)
            if vehicle.can_carry(task)
        ]
        return math.isinf(min(ways)) or math.isinf(self.distance(task.pickup, task.delivery))

    def read_vehicles(self) -> list[Vehicle]:
        layout = self.floor.layout
        vehicles = [read_vehicle(entry, layout.get("battery")) for entry in layout["vehicles"]]
        for v, vehicle in enumerate(vehicles):
            # However many start at a place, each has one.
            vehicle.parking = vehicle.site if vehicle.site in self._places else None
            self._plan_failure(v, vehicle)
        return vehicles

    def read_tasks(self, entries: list[dict[str, Any]]) -> list[Task]:
        rows = {entry["task"]: entry for entry in entries}
        roots = {name: find_root(rows, name) for name in rows}
        tasks = {name: read_task(entry, rows[roots[name][0]]) for name, entry in rows.items()}
        for task in tasks.values():
            if task.after is None:
                at_start = math.isinf(task.announced)
                task.known = max(0, math.ceil(task.arrival - (0 if at_start else task.announced)))
        order = list(tasks)

        def place(task: Task) -> tuple[float, int, int]:
            root, n_before = roots[task.name]
            return tasks[root].arrival, order.index(root), n_before

        ordered = sorted(tasks.values(), key=place)
        self._plan_rows([tasks[roots[task.name][0]].known for task in ordered])
        return ordered

    def _plan_rows(self, known: list[float]) -> None:
        """A row is passed when its own root or that of a later row is known."""
        self._passing = [min(known[row:]) for row in range(len(known))]

    def replace_tasks(self, tasks: list[Task]) -> None:
        """Those that have joined, and behind them, by arrival, others in the place of those to come."""
        self.tasks, self._n_passed = tasks, sum(task.has_joined for task in tasks)
        self._plan_rows([task.known for task in tasks])

    # What a policy sees

    @property
    def waiting(self) -> list[Task]:
        """The waiting tasks, in the order of the pool."""
        return list(self.task_pool)

    @property
    def pool(self) -> list[str]:
        """The ids of the waiting tasks."""
        return [task.name for task in self.task_pool]

    @property
    def schedule(self) -> list[tuple[str, int, int, int]]:
        """Per task in arrival order: task, vehicle, start, finish of its completed service."""
        return [(task.name, task.vehicle, task.start, task.finish) for task in self.tasks]

    @property
    def times(self) -> list[tuple[str, float, int, int, int]]:
        """Per task as in the record: task, when it was ready, loaded, delivered and processed."""
        tasks = self.tasks
        return [(t.name, t.arrival, t.loaded, t.finish, t.processed) for t in tasks]

    def levels(self) -> list[int | None]:
        """Level of each vehicle now; None of one without a battery."""
        return [None if vehicle.battery is None else vehicle.level for vehicle in self.vehicles]

    def statuses(self) -> list[str]:
        """What each vehicle does now."""
        return [vehicle.word for vehicle in self.vehicles]

    @property
    def changes(self) -> list[int]:
        """How often each task, by arrival, was taken from a vehicle."""
        return [task.changes for task in self.tasks]

    def stand(self, index: int) -> tuple[str, int, float] | None:
        """Site, tick and metres left to it, where a vehicle may be given a task; None if it is not free."""
        vehicle = self.vehicles[index]
        return self._stand(vehicle) if self.is_free(vehicle) else None

    def is_free(self, vehicle: Vehicle) -> bool:
        """Whether a vehicle may be given a task now."""
        if vehicle.word in ("to_charger", "queued", "charging"):
            return vehicle.level >= vehicle.battery.resume
        if vehicle.word == "working":
            may_change = self.commitment == "pickup" and vehicle.task.changes < self._max_changes
            may_change = may_change and not self.is_cut_off(vehicle.task)
            return may_change and self.time < vehicle.loaded_at
        return vehicle.word in ("idle", "parking", "roaming")

    def ready_in(self, task: Task) -> float:
        """Seconds until a task of the pool is ready."""
        return max(0.0, task.arrival - self.time)

    def machine_busy(self, task: Task) -> float:
        """Seconds until the machine at a task's delivery has a free server for one that joins now."""
        if task.delivery not in self._machines:
            return 0.0
        machine = self._machines[task.delivery]
        left = sum(other.processed - self.time for other in machine.in_service)
        return (left + sum(map(count_ticks, machine.queue))) / machine.servers

    def candidates(self) -> list[tuple[int, str]]:
        """The legal pairs of vehicle and task, by vehicle, then as in the pool."""
        return [
            (index, task.name)
            for index, vehicle in enumerate(self.vehicles)
            if self.is_available(vehicle)
            for task in self.offered(vehicle)
        ]

    def may_wait(self) -> bool:
        """Whether a decision is due that may be left open: something is to come without one."""
        fleet = self.vehicles
        returns = any(vehicle.word in ("working", "broken") for vehicle in fleet)
        breaks = any(tick > self.time for vehicle in fleet for tick, _ in vehicle.breakdowns)
        # Closures of which nothing comes are none.
        times = [(item["time"], item["until"]) for item in self.floor.layout.get("closures", [])]
        whole = [(math.ceil(a), math.ceil(b)) for a, b in times]
        breaks |= any(b > self.time for a, b in whole if a < b)
        return any(self.mask()) and (bool(self.to_arrive) or returns or breaks)

    def is_available(self, vehicle: Vehicle) -> bool:
        if self.done or not self._asks or self._index(vehicle) in self._settled:
            return False
        return self.is_free(vehicle) and bool(self.offered(vehicle))

    def offered(self, vehicle: Vehicle) -> list[Task]:
        """The waiting tasks that a vehicle may take: of those it can do those of the highest priority."""
        able = [x for x in self.task_pool if vehicle.can_carry(x) and self._fits(vehicle, x)]
        highest = max((task.priority for task in able), default=0.0)
        return [task for task in able if task.priority == highest]

    def select(self, v: int, rule: str) -> int:
        """The pool index of the task that a rule picks for a vehicle, among those it can carry."""
        return self.task_pool.index(self.pick(self.vehicles[v], rule))

    def key(self, rule: str, vehicle: Vehicle, task: Task) -> float:
        if rule in ("NVF", "STD"):
            site, _, left = self._stand(vehicle)
            metres = left + self.distance(site, task.pickup)
            metres = max(metres, self.ready_in(task) * vehicle.speed)
            if rule == "STD":
                metres += self.distance(task.pickup, task.delivery)
            return self.floor.compared(metres)
        if rule == "LWT":
            return -round9(max(0.0, self.time - task.waiting_since))
        if rule != "AHP":
            return super().key(rule, vehicle, task)
        visible = self.offered(vehicle)
        loaded = [self.distance(other.pickup, other.delivery) for other in visible]
        mean_due = sum(other.due for other in visible) / len(visible)
        mean_distance = sum(loaded) / len(visible)
        key = 0.0
        # a mean of 0, or one over tasks that are never due, cannot tell the tasks apart
        if mean_due != 0 and not math.isinf(mean_due):
            key += 0.37 * task.due / mean_due
        if mean_distance != 0:
            key += 0.63 * self.distance(task.pickup, task.delivery) / mean_distance
        return -round9(key)  # AHP picks the largest

    def _stand(self, vehicle: Vehicle) -> tuple[str, int, float]:
        """That of a vehicle without a task, on its way to a pickup, or that waits there."""
        if vehicle.pauses(self.time):
            return vehicle.task.pickup, self.time, 0.0
        if not vehicle.stops:
            return vehicle.site, self.time, 0.0
        stop = self._next_stop(vehicle)
        if stop.tick == self.time:
            return stop.site, self.time, 0.0
        assert stop.leg is not None
        pace = abs(stop.leg.step)
        left = max(0.0, stop.moment - self.time) * pace
        return stop.site, stop.tick, min(left, self.metres(stop.leg))

    def _next_stop(self, vehicle: Vehicle) -> Stop:
        return next(stop for stop in vehicle.stops if stop.tick >= self.time)

    def state(self) -> list[float]:
        """A free vehicle is shown idle where it stands, one that charges and is not free is at work."""
        fleet = self.vehicles
        self.vehicles = [self._show(vehicle) for vehicle in fleet]
        seen = super().state()
        self.vehicles = fleet
        first = 4 * self.task_slots  # of the vehicles, which show no way where none leads
        seen[first:] = [0.0 if math.isinf(x) else x for x in seen[first:]]
        return [*seen, *[0.0] * ((3 + self.task_slots) * self._n_absent)]

    def mask(self) -> list[bool]:
        return [*super().mask(), *[False] * (len(self.rules) * self._n_absent)]

    def _show(self, vehicle: Vehicle) -> Vehicle:
        shown = copy.copy(vehicle)
        if self.is_free(vehicle):
            shown.status, shown.site = IDLE, self._stand(vehicle)[0]
        elif vehicle.status != BROKEN:
            shown.status = WORKING
        return shown

    # What a policy does

    def assign(self, vehicle: int, task: str | int) -> None:
        """Give a task, by its id or its index in the pool, then advance to the next decision or the end."""
        chosen = self.task_pool[self.pool.index(task) if isinstance(task, str) else task]
        if not 0 <= vehicle < len(self.vehicles) or not self.is_available(self.vehicles[vehicle]):
            raise ValueError(f"vehicle {vehicle} cannot be assigned a task at time {self.time}")
        if chosen not in self.offered(self.vehicles[vehicle]):
            raise ValueError(f"vehicle {vehicle} is not offered task {chosen.name}")
        self.n_decisions += 1
        self.begin_service(self.vehicles[vehicle], chosen)
        self.advance()

    def wait(self) -> None:
        """Assign nobody until something happens."""
        if not self.may_wait():
            raise ValueError(f"waiting is not legal at time {self.time}")
        self._asks = False
        self.advance()

    def begin_service(self, vehicle: Vehicle, task: Task) -> None:
        self._settled.add(self._index(vehicle))
        self.task_pool.remove(task)
        if vehicle.task is task:
            return  # it is on its way there
        if vehicle.task is not None:
            self._take_back(vehicle)
        if task.vehicle >= 0:
            self._take_back(self.vehicles[task.vehicle])
        finish = self._set_out(vehicle, [task.pickup, task.delivery], task)
        task.vehicle, task.start, task.finish = self._index(vehicle), self.time, finish

    def _take_back(self, vehicle: Vehicle) -> None:
        """Its task waits again; the vehicle drives to the end of its edge."""
        task = vehicle.task
        task.vehicle = task.start = task.finish = -1
        task.changes += 1
        site, tick, _ = self._stand(vehicle)
        self._note(vehicle, "recalled", site)
        if tick == self.time:
            vehicle.end_trip(site, None)
            vehicle.status, vehicle.since = IDLE, self.time
        else:
            stop, rest = self._rest_of_edge(vehicle)
            vehicle.begin_trip(None, site, [rest], tick)
            vehicle.errand, vehicle.stops = "roaming", [stop]

    # Trips

    def _set_out(self, vehicle: Vehicle, sites: list[str], task: Task | None = None) -> int:
        """Begin a trip to a pickup and a delivery, or to one site; returns when it ends."""
        site, tick, _ = self._stand(vehicle)
        handling = task.handling if task else 0.0
        ticks, to_pickup, approach = self._plan(vehicle, site, vehicle.standing, sites, handling)
        finish = tick + ticks
        vehicle.onwards = self.legs(vehicle, self.floor.route(sites[0], sites[-1]))
        legs = [*approach, *vehicle.onwards]
        if tick > self.time:  # it finishes the edge on which it is
            stop, rest = self._rest_of_edge(vehicle)
            stops, legs = [stop], [rest, *legs]
        elif vehicle.is_at_site:
            stops = [Stop(site, float(tick), tick, None)]
        else:
            stops = []
        seconds = 0.0
        for leg in approach:
            seconds += self.metres(leg) / abs(leg.step)
            reached = min(finish, tick + math.ceil(round9(seconds)))
            stops.append(Stop(leg.end, tick + seconds, reached, leg))
        if vehicle.word == "charging":
            self._note(vehicle, "charged", vehicle.site)
        vehicle.begin_trip(task, sites[-1], legs, finish)
        vehicle.errand = ""
        vehicle.stops = stops
        vehicle.at_pickup = vehicle.loaded_at = tick + to_pickup
        if task is not None:
            pause = max(0, math.ceil(task.arrival) - vehicle.at_pickup)
            vehicle.loaded_at += pause
            vehicle.finish += pause
            self._begin_pause(vehicle)
        return vehicle.finish

    def _begin_pause(self, vehicle: Vehicle) -> None:
        """If it begins now: the vehicle is at the pickup, and leaves it when the task is loaded.

        On a way each edge is rounded up to whole ticks, but the way only once: it may be before the
        pickup yet.
        """
        if self.time == vehicle.at_pickup and vehicle.pauses(self.time):
            pickup = vehicle.task.pickup
            pause = Leg(pickup, pickup, 0.0, 0.0, vehicle.loaded_at - self.time, end=pickup)
            vehicle.follow([pause, *vehicle.onwards])

    def _rest_of_edge(self, vehicle: Vehicle) -> tuple[Stop, Leg]:
        """The next stop of a moving vehicle, and the leg from where it is to there."""
        stop = self._next_stop(vehicle)
        _, tick, left = self._stand(vehicle)
        leg = stop.leg
        assert leg is not None
        length = self.floor.arcs[leg.last, leg.next]
        offset = length - left if leg.step > 0 else left
        return stop, Leg(leg.last, leg.next, offset, leg.step, tick - self.time, leg.end)

    def _plan(
        self,
        vehicle: Vehicle,
        site: str,
        standing: Standing | None,
        sites: list[str],
        handling: float = 0.0,
    ) -> tuple[int, int, list[Leg]]:
        """The trip from a site, or from where the vehicle broke down, to the first of the sites and on.

        Its ticks, those of them to the first site, the pickup, and the legs to there.
        """
        floor, speed = self.floor, vehicle.speed
        if standing is None:
            approach, lost = self.distance(site, sites[0]), floor.lost(site, sites[0], speed)
            legs = self.legs(vehicle, floor.route(site, sites[0]))
        else:
            approach, legs = self.way_onwards(vehicle, standing, sites[0])
            lost = self.lost_on(vehicle, legs)
        metres = approach + sum(self.distance(a, b) for a, b in pairwise(sites))
        if standing is None:
            metres = self.floor.compared(metres)
        all_lost = lost + sum(floor.lost(a, b, speed) for a, b in pairwise(sites))
        ticks = max(1, math.ceil(round9(metres / speed + all_lost + handling)))
        to_pickup = min(ticks, math.ceil(round9(approach / speed + lost)))
        return ticks, to_pickup, legs

    # Ways with speed limits

    def driving_time(self, vehicle: Vehicle, metres: float, legs: list[Leg]) -> float:
        return super().driving_time(vehicle, metres, legs) + self.lost_on(vehicle, legs)

    def lost_on(self, vehicle: Vehicle, legs: list[Leg]) -> float:
        """Seconds that speed limits cost on legs of a vehicle that does not move yet."""
        return sum(
            self.floor.lost_on(self._arc(leg), self.metres(leg), vehicle.speed) for leg in legs
        )

    @staticmethod
    def _arc(leg: Leg) -> tuple[str, str]:
        return (leg.last, leg.next) if leg.step > 0 else (leg.next, leg.last)

    def metres(self, leg: Leg) -> float:
        """How long a leg is."""
        return self.floor.arcs[leg.last, leg.next] - leg.offset if leg.step > 0 else leg.offset

    def legs(self, vehicle: Vehicle, sites: list[str]) -> list[Leg]:
        return [self._limit(vehicle, leg) for leg in super().legs(vehicle, sites)]

    def _limit(self, vehicle: Vehicle, leg: Leg) -> Leg:
        pace = min(vehicle.speed, self.floor.limits[self._arc(leg)])
        step = math.copysign(pace, leg.step)
        return replace(leg, step=step, ticks=ticks(self.metres(leg), pace))

    def ways_onwards(
        self, vehicle: Vehicle, standing: Standing, site: str
    ) -> list[tuple[float, list[Leg]]]:
        ways = super().ways_onwards(vehicle, standing, site)
        if standing.offset != 0.0:
            for _, legs in ways:
                legs[0] = self._limit(vehicle, legs[0])
        return ways

    def way_onwards(
        self, vehicle: Vehicle, standing: Standing, site: str
    ) -> tuple[float, list[Leg]]:
        if not self.floor.is_quickest:
            return super().way_onwards(vehicle, standing, site)
        ways = self.ways_onwards(vehicle, standing, site)
        return min(ways, key=lambda way: round9(self.driving_time(vehicle, *way)))

    # Ends of trips

    def deliver(self, vehicle: Vehicle) -> None:
        """Any trip's end."""
        self._happened = True
        vehicle.since = self.time
        task = vehicle.task
        if task is not None:
            self._opens_round = True
            super().deliver(vehicle)
            task.loaded = vehicle.loaded_at
            if task.processing > 0:
                task.finished = False
                self._machines[task.delivery].queue.append(task)
            else:
                task.processed = self.time
                self._plan_successors(task)
            return
        errand = vehicle.errand
        vehicle.end_trip(vehicle.destination, None)
        vehicle.status = IDLE
        if errand == "parking":
            self._note(vehicle, "parked", vehicle.site)
        elif errand == "to_charger":
            vehicle.errand = "queued"
            self._note(vehicle, "queued", vehicle.site)

    def _note(self, vehicle: Vehicle, what: str, where: str) -> None:
        self.log.append((self.time, self._index(vehicle), what, where))

    def _index(self, vehicle: Vehicle) -> int:
        return self.vehicles.index(vehicle)

    # Machines

    def move_vehicles(self) -> None:
        super().move_vehicles()
        for vehicle in self.vehicles:
            self._begin_pause(vehicle)
        self._run_machines()

    def _run_machines(self) -> None:
        for site, machine in self._machines.items():
            for task in [task for task in machine.in_service if task.processed == self.time]:
                task.finished = True
                machine.in_service = [other for other in machine.in_service if other is not task]
                self.machine_log.append((self.time, site, "end", task.name))
                self._happened = True
            while machine.queue and len(machine.in_service) < machine.servers:
                task = machine.queue.pop(0)
                task.processed = self.time + count_ticks(task)
                machine.in_service.append(task)
                self.machine_log.append((self.time, site, "begin", task.name))
                self._plan_successors(task)

    def _plan_successors(self, task: Task) -> None:
        """Its processing begins: now it is clear when its successors are ready, and when known."""
        for other in self.tasks:
            if other.after == task.name:
                other.arrival = other.waiting_since = max(other.arrival, float(task.processed))
                other.known = self.time
                if not math.isinf(other.announced):
                    other.known = max(self.time, math.ceil(other.arrival - other.announced))

    # Energy

    def _need(self, vehicle: Vehicle, task: Task, at: str | None = None) -> int:
        """The level with which it may be given a task, where it stands or, idle, at a site."""
        site, tick, _ = self._stand(vehicle) if at is None else (at, self.time, 0.0)
        standing = vehicle.standing if at is None else None
        if math.isinf(self.distance(site, task.pickup)) and standing is None:
            return MOST_ENERGY
        ends = [task.pickup, task.delivery]
        ticks, to_pickup, _ = self._plan(vehicle, site, standing, ends, task.handling)
        battery = vehicle.battery
        home = ticks_to_charger(self.floor, self._chargers, task.delivery, vehicle)
        if home == MOST_ENERGY:
            return home
        return (
            battery.critical
            + battery.empty * (tick - self.time + to_pickup)
            + battery.loaded * (ticks - to_pickup)
            + battery.empty * home
        )

    def _reaches(self, vehicle: Vehicle, site: str) -> bool:
        """Whether a way leads to a site from where a vehicle stands, or may turn."""
        if vehicle.standing is None:
            return not math.isinf(self.distance(self._stand(vehicle)[0], site))
        return not math.isinf(self.way_onwards(vehicle, vehicle.standing, site)[0])

    def _fits(self, vehicle: Vehicle, task: Task) -> bool:
        if not self._reaches(vehicle, task.pickup):
            return False
        return vehicle.battery is None or vehicle.level >= self._need(vehicle, task)

    def _use_energy(self) -> None:
        """What the tick that ends now has used."""
        for vehicle in self.vehicles:
            vehicle.level_before = vehicle.level
            if vehicle.battery is not None:
                level = vehicle.level - vehicle.rate(self.time - 1)
                vehicle.level = min(vehicle.battery.capacity, max(0, level))

    def _charge(self) -> None:
        """Who is full ends, by vehicle; then free slots are given."""
        for vehicle in self.vehicles:
            if vehicle.word == "charging" and vehicle.level >= vehicle.battery.full:
                self._note(vehicle, "charged", vehicle.site)
                vehicle.errand, vehicle.since = "", self.time
                self._happened = True
        for k, (site, slots) in enumerate(self._chargers):
            here = [vehicle for vehicle in self.vehicles if vehicle.charger == k]
            n_charging = sum(vehicle.word == "charging" for vehicle in here)
            queue = [vehicle for vehicle in here if vehicle.word == "queued"]
            queue.sort(key=lambda vehicle: vehicle.since)  # of equals the first vehicle is first
            for vehicle in queue[: slots - n_charging]:
                vehicle.errand, vehicle.since = "charging", self.time
                self._note(vehicle, "charging", site)
                self._happened = True

    def _look_at_levels(self, charged: list[Vehicle]) -> None:
        """Levels that are crossed at this tick; `charged` were charging during the last one."""
        for vehicle in charged:
            battery = vehicle.battery
            reached = [battery.resume] if self.task_pool else []
            reached += [
                self._need(vehicle, task) for task in self.task_pool if vehicle.can_carry(task)
            ]
            # what it could do before, it could do only if it was free
            could = vehicle.level_before if vehicle.level_before >= battery.resume else -1
            crossed = any(could < level <= vehicle.level for level in reached)
            if crossed and vehicle.level >= battery.resume:
                self._happened = self._opens_round = True
        for vehicle in self.vehicles:
            if vehicle.word == "idle" and vehicle.battery is not None:
                good = vehicle.battery.good
                self._happened |= vehicle.level < good <= vehicle.level_before

    def _find_charger(self, vehicle: Vehicle) -> int | None:
        """The charger to which an idle vehicle shall drive now."""
        battery = vehicle.battery
        if battery is None:
            return None
        tasks = [task for task in self.task_pool if vehicle.can_carry(task)]
        chargers = range(len(self._chargers))
        if vehicle.level >= battery.good:
            if not tasks or any(self._fits(vehicle, task) for task in tasks):
                return None
            sites = [site for site, _ in self._chargers]
            needs = [min(self._need(vehicle, task, site) for task in tasks) for site in sites]
            chargers = [k for k in chargers if needs[k] <= battery.full]
        chargers = [k for k in chargers if self._reaches(vehicle, self._chargers[k][0])]
        return min(chargers, key=lambda k: self._start_of_charging(vehicle, k), default=None)

    def _start_of_charging(self, vehicle: Vehicle, k: int) -> int:
        """When it could charge there, if those before it charge until they are full."""
        site, slots = self._chargers[k]
        arrival = self.time + self._plan(vehicle, vehicle.site, vehicle.standing, [site])[0]
        free_at = []
        before = []  # those in the queue and under way: arrival, index, vehicle, level then
        for index, other in enumerate(self.vehicles):
            if other.charger != k:
                continue
            if other.word == "charging":
                free_at.append(full_at(other.battery, other.level, self.time))
            elif other.word == "queued":
                before.append((other.since, index, other, other.level))
            elif other.word == "to_charger":
                level = other.level - other.battery.empty * (other.finish - self.time)
                before.append((other.finish, index, other, level))
        # a slot that is free now is given at the next tick
        free_at += [self.time + 1] * (slots - len(free_at))
        for tick, index, other, level in sorted(before, key=lambda item: item[:2]):
            if (tick, index) > (arrival, self._index(vehicle)):
                continue
            slot = min(range(slots), key=free_at.__getitem__)
            begin = max(tick, free_at[slot])
            level = max(0, level - other.battery.idle * (begin - max(tick, self.time)))
            free_at[slot] = full_at(other.battery, level, begin)
        return max(arrival, min(free_at))

    # Parking

    def _list_holders(self) -> set[tuple[str, int]]:
        """Each place's site with a vehicle that has one of its places or drives to it.

        Who is neither idle nor on its way to park has given its place up.
        """
        for vehicle in self.vehicles:
            if vehicle.word not in ("idle", "parking"):
                vehicle.parking = None
        return {(v.parking, k) for k, v in enumerate(self.vehicles) if v.parking}

    def _find_place(self, vehicle: Vehicle, holders: set[tuple[str, int]]) -> str | None:
        """The site where an idle vehicle takes a place now: its own, or one to which it shall drive."""
        free = [
            site
            for site, places in self._places.items()
            if sum(held == site for held, _ in holders) < places
        ]
        if vehicle.is_at_site and vehicle.site in free:
            return vehicle.site
        if self.time - vehicle.since < self._parks_after:
            return None
        free = [site for site in free if self._reaches(vehicle, site)]
        found = [(self._metres_to(vehicle, site), self.floor.order[site], site) for site in free]
        return min(found)[2] if found else None

    def _metres_to(self, vehicle: Vehicle, site: str) -> float:
        if vehicle.standing is not None:
            return self.way_onwards(vehicle, vehicle.standing, site)[0]
        return round9(self.distance(vehicle.site, site))

    # The clock

    def advance(self) -> None:
        while not self.done and not any(self.mask()):
            # the round ends: tasks on their way stay with their vehicles
            self.task_pool = [task for task in self.task_pool if task.vehicle < 0]
            self._asks = False
            if self._happened:
                self._send_idle_vehicles()
            self._freed = not self._holders <= self._list_holders()
            self.time += 1
            if self.time > MOST_TICKS:
                raise RuntimeError(f"nothing ends this episode: {self.pool} wait")
            self.process_tick()

    def process_tick(self) -> None:
        self._happened = self.time == 0
        self._opens_round = False
        self._settled = set()
        if self.time > 0:
            self._use_energy()
        self._change_floor()
        super().process_tick()
        if self.done:
            return
        # What is left in steps 5 and 6 is taken at the next tick.
        self._holders = self._list_holders()
        self._happened |= self._freed or any(
            vehicle.word == "idle" and self.time == vehicle.since + self._parks_after
            for vehicle in self.vehicles
            if self._places
        )
        # Nobody starves: who becomes idle, and not by a delivery or a repair, may find that a task fits
        # which did not when the last round opened.
        self._opens_round |= any(
            vehicle.word == "idle" and vehicle.since == self.time and self.offered(vehicle)
            for vehicle in self.vehicles
        )
        if self._opens_round:
            self._asks = True
            if self.commitment == "pickup":
                self._open_round()

    def let_tasks_arrive(self) -> None:
        charged = [vehicle for vehicle in self.vehicles if vehicle.word == "charging"]
        self._charge()
        n_waiting = len(self.task_pool) + len(self._aside)
        self._pass_rows()
        if len(self.task_pool) + len(self._aside) > n_waiting:
            self._happened = self._opens_round = True
        if self._happened:  # those that will join without a decision, for which a policy may wait
            delivered = {task.name for task in self.tasks if task.loaded >= 0}
            self.to_arrive = [
                task
                for task in self.tasks
                if not task.has_joined and (task.after is None or task.after in delivered)
            ]
        self._look_at_levels(charged)

    def _pass_rows(self) -> None:
        """First those of rows passed before, then rows are passed; no row before all above it."""
        for task in [task for task in self.tasks[: self._n_passed] if not task.has_joined]:
            self._join_if_known(task)
        while self._n_passed < len(self.tasks) and self._passing[self._n_passed] <= self.time:
            self._join_if_known(self.tasks[self._n_passed])
            self._n_passed += 1

    def _join_if_known(self, task: Task) -> None:
        if not task.has_joined and task.known <= self.time:
            task.has_joined = True
            self._let_wait(task)

    def _open_round(self) -> None:
        """Tasks on their way join the pool.

        Each before the first that became ready, or was put back by a breakdown, later than it became ready;
        of the same time before the first that is later in the record.
        """
        self._asks = True
        rows = {id(task): row for row, task in enumerate(self.tasks)}
        for vehicle in self.vehicles:
            task = vehicle.task
            if task is not None and self.is_free(vehicle):
                own = task.arrival, rows[id(task)]
                later = [(other.waiting_since, rows[id(other)]) > own for other in self.task_pool]
                self.task_pool.insert(later.index(True) if True in later else len(later), task)

    def _send_idle_vehicles(self) -> None:
        holders = self._holders | self._list_holders()
        for index, vehicle in enumerate(self.vehicles):
            if vehicle.word != "idle":
                continue
            charger = self._find_charger(vehicle)
            if charger is not None:
                self._set_out(vehicle, [self._chargers[charger][0]])
                vehicle.errand, vehicle.charger = "to_charger", charger
                continue
            if vehicle.parking is not None:
                continue
            place = self._find_place(vehicle, holders)
            if place is not None:
                if not (vehicle.is_at_site and vehicle.site == place):
                    self._set_out(vehicle, [place])
                    vehicle.errand = "parking"
                vehicle.parking = place
                holders.add((place, index))

    # Breakdowns

    def find_breakdown(self, vehicle: Vehicle) -> int | None:
        """How many ticks the repair of a breakdown at this tick takes: of those listed the first counts."""
        listed = super().find_breakdown(vehicle)
        if listed is None and self.time == vehicle.fails_at:
            return self._random_ticks(self._index(vehicle), vehicle, 1)
        if listed is None and vehicle.level == 0 and vehicle.rate(self.time - 1) > 0:
            return vehicle.battery.tow
        return listed

    def _plan_failure(self, v: int, vehicle: Vehicle) -> None:
        if vehicle.mean_times is not None:
            vehicle.fails_at = self.time + max(1, self._random_ticks(v, vehicle, 0))

    def _random_ticks(self, v: int, vehicle: Vehicle, what: int) -> int:
        multiple = self.waiting_time(v, vehicle.n_repairs, what)
        return math.ceil(round9(vehicle.mean_times[what] * multiple))

    def break_down(self, vehicle: Vehicle, repair_ticks: int) -> None:
        self._happened = self._opens_round = True
        if vehicle.word == "charging":
            self._note(vehicle, "charged", vehicle.site)
        vehicle.errand = ""
        task, vehicle.began = vehicle.task, self.time
        if self._loads_stay and task is not None and vehicle.loaded_at < self.time:
            # It stands where it was a tick ago, and goes on from there at the tick of the repair.
            vehicle.status, vehicle.repaired_at = BROKEN, self.time + repair_ticks + 1
            vehicle.finish += repair_ticks + 2
            task.finish = vehicle.finish
            return
        super().break_down(vehicle, repair_ticks)
        if task is not None:
            task.waiting_since = max(task.arrival, task.waiting_since)
            self._let_wait(self.task_pool.pop())

    def repair(self, vehicle: Vehicle) -> None:
        self._happened = self._opens_round = True
        super().repair(vehicle)
        if vehicle.task is not None:
            vehicle.status = WORKING
            vehicle.elapsed -= 1  # it moves from the next tick on
        vehicle.n_repairs += 1
        vehicle.since = self.time
        self._plan_failure(self._index(vehicle), vehicle)
        if vehicle.battery is not None and vehicle.level == 0:
            vehicle.level = vehicle.battery.critical

    def end(self) -> None:
        super().end()
        self.makespan = float(max(task.processed for task in self.tasks))


def full_at(battery: Battery, level: int, tick: int) -> int:
    """When a vehicle that charges from a level at a tick is full; never before the next tick."""
    return tick + max(1, math.ceil((battery.full - level) / battery.charge))


def ticks_to_charger(
    floor: Floor, chargers: list[tuple[str, int]], site: str, vehicle: Vehicle
) -> int:
    """Ticks from a site to the charger that is the nearest by time."""
    speed = vehicle.speed
    return min(
        (
            math.ceil(round9(floor.distances[site, near] / speed + floor.lost(site, near, speed)))
            for near, _ in chargers
            if not math.isinf(floor.distances[site, near])
        ),
        default=MOST_ENERGY,
    )


def read_vehicle(entry: dict[str, Any], battery: dict[str, Any] | None = None) -> Vehicle:
    """A vehicle with its own battery or this; what is not whole in time falls on the next tick."""
    model = entry.get("random_breakdowns")
    times = ("mean_time_between_failures", "mean_time_to_repair")
    vehicle = Vehicle(
        **vars(simulator.read_vehicle(entry)),
        mean_times=model and tuple(float(model[name]) for name in times),
    )
    battery = entry.get("battery", battery)
    if battery is not None:
        vehicle.battery = Battery(**{"start": battery["capacity"], "tow": 1800, **battery})
        vehicle.level = vehicle.level_before = vehicle.battery.start
    return vehicle


def count_ticks(task: Task) -> int:
    """What its processing takes."""
    return max(1, math.ceil(round9(task.processing)))


def find_root(rows: dict[str, dict[str, Any]], name: str) -> tuple[str, int]:
    """The first task of its chain, and how many tasks are before it there."""
    n_before = 0
    while rows[name].get("after"):
        name, n_before = rows[name]["after"], n_before + 1
    return name, n_before


def read_task(entry: dict[str, Any], root: dict[str, Any] | None = None) -> Task:
    """A task of a record; one without an arrival comes with the first of its chain, the root.

    Held back until its earliest start it arrives then, and is due as it was.
    """
    given, expiry = entry["arrival_time"], entry["expiry_time"]
    times = {
        "arrival_time": root["arrival_time"] if root and given is None else given,
        "expiry_time": math.inf if expiry is None else expiry,
    }
    announced = entry.get("announced") or 0
    task = Task(
        **vars(plain.read_task({**entry, **times})),
        priority=float(entry.get("priority", 0)),
        after=entry.get("after") or None,
        processing=float(entry.get("processing") or 0),
        announced=math.inf if announced == "start" else float(announced),
    )
    start = max(task.arrival, float(entry.get("earliest_start", 0)))
    task.expiry = task.due - start
    task.arrival = task.waiting_since = start
    return task
