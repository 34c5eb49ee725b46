"""The situation on the floor as kernels read it: vehicles, tasks, and what has been so far in the day."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import count, pairwise
from typing import Any

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.rounding import count_ticks, cut_metres, measure_metres
from acerl_np.kernels.rollout import live as kernels
from acerl_np.live import parts
from acerl_np.live.events import TaskArrived
from acerl_np.problem.layout import Layout

PROBLEM_ROWS = ("ends", "record", "arrival_tick", "chain", "lead")
STATE_ROWS = ("pool", "waiting_since", "task", "job", "ready", "expected", "processed")
CLOCK_ROWS = ("since", "arrival", "used", "known")
"""Arrays of the kernels' tables that have a row a task."""


MOST_LEFT = 1e9
"""s, in place of more that a vehicle has to drive on: no way may lead there now."""

LONG_AGO = -1e12
"""s, in place of when a vehicle left a parking place, for one that has left none."""


class Board:
    """Tables of one situation, in row 0 of a State, as they stand after each change.

    Parameters
    ----------
    layout : Layout
    decider : parts.Decider
        Who decides: it says what kernels are to see.

    Attributes
    ----------
    layout, vehicles, tasks, pool, planned, day
        As of a `Situation`; `tasks` wait, as `pool` lists them, or are under way, and `planned` ones are held
        back until their earliest starts, or until the ones before them are done.
    n_ready : int
        Idle vehicles in service.
    has_chains : bool
        Whether tasks may follow others or be announced; those that are held back have rows, too, then.
    has_auxiliary, calls_back : bool
        Whether vehicles charge, park, are called back or meet; are called back.
    changes : int
        Goes up with each change, so that one can tell whether there was any.
    """

    def __init__(self, layout: Layout, decider: parts.Decider) -> None:
        self._decider = decider
        self.changes = 0
        self.hidden = frozenset[int]()
        """Vehicles that the decision at hand leaves out."""
        self.day = parts.Day()
        self._lay_out(layout)

    def _make_vehicle(self, v: int, now: float) -> parts.LiveVehicle:
        """Return a vehicle that is idle where it starts from now on."""
        site = self.layout.site_index[self.layout.vehicles[v].start]
        vehicle = parts.LiveVehicle(S.IDLE, parts.SERVING, site, site)
        battery = self.layout.batteries[v]
        level = 0.0 if battery is None else float(battery.start)
        place = site if site in self._parking else -1
        return vehicle._replace(since=now, level=level, level_time=now, place=place)

    def _lay_out(self, layout: Layout) -> None:
        """Make empty tables."""
        n = len(layout.vehicles)
        self.layout = layout
        self.problem = self._decider.build_problem(layout)
        self._floors = {layout.closed: 0}
        self.state = S.allocate_state(self.problem, 1)
        self.state.vehicle["leg"][0] = S.ARRIVED
        self.state.vehicle["task"][0] = self.state.vehicle["halted_towards"][0] = -1
        most = max([1, *(len(vehicle.breakdowns) for vehicle in layout.vehicles)])
        planned = np.full((n, most, kernels.N_PLAN_FIELDS), np.inf)
        for v, vehicle in enumerate(layout.vehicles):
            for k, item in enumerate(vehicle.breakdowns):
                planned[v, k, kernels.PLAN_TIME] = item.time
                planned[v, k, kernels.PLAN_REPAIR_TIME] = item.repair_time
        self.has_chains = bool(self.problem.instance["chained"][0])
        self._machine_at = {layout.site_index[m.site]: k for k, m in enumerate(layout.machines)}
        n_servers = int(self.problem.servers.sum())
        machine = np.full(n_servers, -np.inf)
        since, arrival, known = np.zeros((3, self.room))
        used = np.zeros(self.room, np.bool_)
        move = np.zeros((n, S.N_MOVE_FIELDS))
        move[:, S.MOVE_LEFT] = LONG_AGO
        finish, broke = np.zeros((2, n))
        tasks = since, arrival, used, known
        plan = np.zeros_like(self.state.plan[0])
        self.clock = kernels.Clock(*tasks, machine, finish, broke, planned, move, plan)
        self.has_auxiliary = bool(self.problem.instance["auxiliary"][0])
        self.calls_back = layout.commitment == "pickup"
        places = layout.parking.places if layout.parking else ()
        self._parking = {layout.site_index[item.site] for item in places}
        self._chargers = {layout.site_index[item.site] for item in layout.chargers}
        # How much of the fleet's can be carried at all, and from each site.
        capacity = np.array([vehicle.capacity or np.inf for vehicle in layout.vehicles])
        near = np.isfinite(
            self.problem.distance[0][[layout.site_index[x.start] for x in layout.vehicles]]
        )
        self._carried_from: list[float] = np.where(near, capacity[:, None], -1.0).max(0).tolist()
        self.vehicles = [parts.LiveVehicle(S.BROKEN, parts.SERVING, 0, 0)] * n
        self.tasks: dict[str, parts.LiveTask] = {}
        self.planned: dict[str, parts.LiveTask] = {}
        self.pool: list[str] = []
        self.n_ready = 0
        self._n_ranked = 0
        self._free = list(range(self.room - 1, n_servers - 1, -1))

    @property
    def room(self) -> int:
        """Rows of the tables."""
        return int(self.problem.record.shape[1])

    @property
    def tables(self) -> tuple[S.Problem, S.State, kernels.Clock]:
        """All that kernels read."""
        return self.problem, self.state, self.clock

    def put(self, v: int, vehicle: parts.LiveVehicle) -> None:
        """Write all of a vehicle but its task."""
        self.changes += 1
        before = self.vehicles[v]
        self.vehicles[v] = vehicle
        row, at = self.state.vehicle, (0, v)
        self._show(v)
        row["stand_site"][at] = -1
        row["site"][at] = row["edge_from"][at] = vehicle.site
        self.clock.finish[v], self.clock.broke[v] = vehicle.finish, vehicle.broke
        row["held"][at] = vehicle.is_stranded
        left = min(self.find_left(vehicle), MOST_LEFT) if vehicle.is_stranded else 0
        row["left"][at] = math.ceil(left)
        if self.has_auxiliary:
            way = vehicle.way or parts.Way(vehicle.site, 0.0, vehicle.site, 0.0, 0.0, vehicle.site)
            row["trip_site"][at], row["trip_from"][at], row["destination"][at] = (
                way.site,
                way.before,
                way.end,
            )
            row["pause"][at] = way.pause
            row["floor"][at] = self._find_floor(way.closed) if vehicle.way else 0
            row["place"][at] = vehicle.place
            row["trip_pace"][at] = way.pace
            times = vehicle.since, way.began, way.reached, way.loaded
            self.clock.move[v, : S.MOVE_LEFT] = *times, vehicle.level, vehicle.level_time
        else:
            self.clock.move[v, S.MOVE_LOADED] = self._find_loaded(v, vehicle)
        self.n_ready += vehicle.is_ready - before.is_ready

    def _find_floor(self, closed: tuple[tuple[str, str], ...]) -> int:
        """Return the row of the ways that were there while these edges were closed."""
        if closed not in self._floors:
            past = self._decider.build_problem(self.layout.with_closed(closed))
            self._floors[closed] = len(self.problem.way)
            past.way["named_route"] += len(self.problem.route_sites) * (
                past.way["named_route"] >= 0
            )
            names = "way", "distance", "route_sites"
            both = {x: [getattr(own, x) for own in (self.problem, past)] for x in names}
            joined = {x: np.concatenate(arrays) for x, arrays in both.items()}
            self.problem = self.problem._replace(**joined)
        return self._floors[closed]

    def find_left(self, vehicle: parts.LiveVehicle) -> float:
        """Return how long a vehicle that stands with its load drives on afterwards, s."""
        return max(1.0, vehicle.finish - vehicle.broke)

    def _find_loaded(self, v: int, vehicle: parts.LiveVehicle) -> float:
        """Return when a vehicle under way has loaded, or should load its task, s."""
        if vehicle.task is None or vehicle.has_fetched:
            return vehicle.moved
        event, index = self.tasks[vehicle.task].event, self.layout.site_index
        way = self.measure_way(v, index[event.pickup], index[event.delivery])
        # It may be closed since it was sent.
        return vehicle.finish - (way if way < math.inf else 0.0) - event.handling_time

    def _show(self, v: int) -> None:
        """Let kernels see whether a vehicle is there: in service, and not hidden."""
        own, is_hidden = self.vehicles[v], v in self.hidden
        is_away = own.service == parts.OUT or (is_hidden and own.task is None)
        self.state.vehicle["status"][0, v] = S.BROKEN if is_away else own.status
        if self._decider.hides_out:
            is_hidden |= own.service != parts.SERVING
            capacity = -1.0 if is_hidden else self.layout.vehicles[v].capacity
            self.problem.fleet["capacity"][0, v] = capacity

    def hide(self, hidden: Iterable[int]) -> None:
        """Let a decision see these vehicles as out of service, and others as they are."""
        changed = self.hidden ^ {*hidden}
        self.hidden = frozenset(hidden)
        for v in changed:
            self._show(v)

    def _take_row(self, task: parts.LiveTask) -> parts.LiveTask:
        """Return a task that has a row."""
        if task.row >= 0:
            return task
        if not self._free:
            self._make_room()
        if self.has_chains:
            known = *self.tasks.values(), *self.planned.values()
            task = task._replace(number=1 + max((own.number for own in known), default=0))
        return task._replace(row=self._free.pop())

    def find_fault(self, event: TaskArrived) -> str:
        """Return why no vehicle of the fleet can do a task, "" where one can."""
        pickup, delivery = (
            self.layout.site_index[event.pickup],
            self.layout.site_index[event.delivery],
        )
        if event.demand > self.layout.largest_load:
            return f"demand {event.demand:g} exceeds every vehicle's capacity"
        if not math.isfinite(self.problem.distance[0, pickup, delivery]):
            return f"no way from '{event.pickup}' to '{event.delivery}'"
        if event.demand > self._carried_from[pickup]:
            return f"no vehicle that may carry it can reach '{event.pickup}'"
        return ""

    def is_cut_off(self, task: parts.LiveTask) -> bool:
        """Whether a task is held aside, as kernels take any vehicle to reach what it may carry."""
        return task.event.demand <= self.layout.largest_load and self.find_fault(task.event) != ""

    def hold(self, task: parts.LiveTask) -> None:
        """Hold a task back; where tasks follow others, futures know of it unless it is cut off."""
        if self.is_cut_off(task):
            task = task._replace(row=parts.CUT_OFF)
        elif task.row == parts.CUT_OFF and not self.has_chains:
            task = task._replace(row=-1)
        elif self.has_chains:
            task = self._take_row(task)
            self._fill(task, task.known)
            self._link(task)
        self.planned[task.event.task] = task

    def _link(self, task: parts.LiveTask) -> None:
        """Write what a task that is held back follows, and what is left after those before it."""
        index, left = self.layout.site_index, self.problem.lead["work_left"][0]
        before = self.find_task(task.event.after)
        self.problem.chain["after"][0, task.row] = -1 if before is None else before.row
        while before is not None:
            event = task.event
            metres = self.problem.distance[0, index[event.pickup], index[event.delivery]]
            way = float(metres) / self.layout.mean_speed + event.handling_time
            own = before.event.processing + way + float(left[task.row])
            left[before.row] = max(left[before.row], own)
            task, before = before, self.find_task(before.event.after)

    def find_task(self, name: object) -> parts.LiveTask | None:
        """Return a task that waits, is under way or is held back."""
        return self.planned.get(name) or self.tasks.get(name) if isinstance(name, str) else None

    def process(self, task: parts.LiveTask, now: float) -> None:
        """Let a delivered task queue at its machine, if it has one; those after it are ready then."""
        event, begins, done = task.event, now, now
        machine = self.problem.chain["machine"][0, task.row]
        if machine >= 0:
            busy = self.clock.machine
            n = len(busy)
            mine = np.flatnonzero(self.problem.chain["machine"][0, :n] == machine)
            k = mine[np.argmin(busy[mine])]
            begins = float(max(now, busy[k]))
            busy[k] = done = begins + float(self.problem.chain["processing"][0, task.row])
        root = task.arrival if task.root is None else task.root
        for other in [own for own in self.planned.values() if own.event.after == event.task]:
            ready = max(done, parts.find_arrival(other.event))
            since = max(begins, ready - other.event.announced)
            self.hold(other._replace(ready=ready, since=since, root=root))

    def enter(self, task: parts.LiveTask) -> None:
        """Let a task wait from its arrival on, last in the pool."""
        slot = 0
        if (slots := self._decider.task_slots) is not None:
            # That of a task nobody has named is the lowest that no other has.
            taken = {*slots.values(), *(other.slot for other in self.tasks.values())}
            named = slots.get(task.event.task)
            slot = named or next(k for k in count(1) if k not in taken)
        task = self._take_row(task)._replace(since=task.arrival, slot=slot)
        self._write(task)
        self.wait(task)

    def _write(self, task: parts.LiveTask) -> None:
        """Write a task that waits or is under way."""
        self._fill(task)
        self.tasks[task.event.task] = task

    def _fill(self, task: parts.LiveTask, known: float = -math.inf) -> None:
        """Write a task into its row; one that is held back is `known` to begin to wait then."""
        self.changes += 1
        event, row = task.event, task.row
        self.fill_row(task, self.problem.ends[0, row], self.problem.record[0, row])
        self.state.task[0, row] = 0
        self.state.task["vehicle"][0, row] = task.vehicle
        self.state.task["changes"][0, row] = task.changes
        self.clock.since[row], self.clock.arrival[row] = task.since, task.arrival
        if self.has_chains:
            machine = self._machine_at.get(self.layout.site_index[event.delivery], -1)
            chain, left = self.problem.chain[0, row], self.problem.lead[0, row]
            chain["after"] = -1
            chain["machine"] = machine if event.processing > 0.0 else -1
            chain["processing"] = math.ceil(event.processing)
            left["announced"] = event.announced
            if not self.clock.used[row]:
                left["work_left"] = event.processing
            self.clock.known[row] = known
        if not self.clock.used[row]:
            self.clock.used[row] = True
            self._count_ranked(event, 1)

    def fill_row(self, task: parts.LiveTask, ends: np.ndarray, values: np.ndarray) -> None:
        """Write what kernels read of a task: its sites, and its record."""
        event, index = task.event, self.layout.site_index
        pickup, delivery = index[event.pickup], index[event.delivery]
        ends["pickup"], ends["delivery"] = pickup, delivery
        arrival = task.arrival
        values["arrival"] = arrival
        late = 0.0 if task.ready is not None else arrival - event.time
        values["expiry"] = event.expiry - late
        values["handling"], values["demand"] = event.handling_time, event.demand
        values["priority"], values["slot"] = event.priority, task.slot
        loaded = self.problem.distance[0, pickup, delivery]
        values["loaded"] = measure_metres(loaded, self.layout.truncate_distances)

    def _count_ranked(self, event: TaskArrived, n: int) -> None:
        """Count the tasks whose priority is not that of most."""
        if event.priority != 0.0:
            self._n_ranked += n
        self.problem.instance["has_priorities"][0] = self._n_ranked > 0 or self._decider.ranks

    def leave(self, task: parts.LiveTask) -> None:
        """Take a task off the tables; its row keeps nothing that a future could count."""
        self.changes += 1
        del (self.planned if task.event.task in self.planned else self.tasks)[task.event.task]
        if task.row < 0:
            return
        self._free.append(task.row)
        self.clock.used[task.row] = False
        if self.has_chains:
            after = self.problem.chain["after"][0]
            after[after == task.row] = -1
        self._count_ranked(task.event, -1)
        values = self.problem.record[0, task.row]
        values["arrival"] = values["expiry"] = 0.0
        self.state.task["finish"][0, task.row] = 0

    def replace_event(self, task: parts.LiveTask, event: TaskArrived) -> None:
        """Replace the event of a task that waits or is held back."""
        new = task._replace(event=event, told=task.told or task.event)
        if task.row >= 0:
            self._count_ranked(task.event, -1)
            self._count_ranked(event, 1)
        if event.task in self.planned:
            self.hold(new)
        else:
            self._write(new)

    def wait(self, task: parts.LiveTask) -> None:
        """Put a task at the end of the pool."""
        self.state.pool[0, len(self.pool)] = task.row
        self.pool.append(task.event.task)
        self.state.episode["pool_size"][0] = len(self.pool)

    def _pull(self, position: int) -> str:
        """Take a name out of the pool."""
        self.changes += 1
        name = self.pool.pop(position)
        n = len(self.pool)
        rows = self.state.pool[0]
        rows[position:n] = rows[position + 1 : n + 1].copy()
        self.state.episode["pool_size"][0] = n
        return name

    def carry(self, v: int, position: int, now: float) -> str:
        """Give a waiting task to a vehicle; return its name."""
        name = self._pull(position)
        task = self.tasks[name] = self.tasks[name]._replace(vehicle=v)
        pickup = self.layout.site_index[task.event.pickup]
        vehicle = self._leave_place(v, now)
        finish = vehicle.way.began if vehicle.way else now
        origin = vehicle.way.site if vehicle.way else vehicle.site
        driven, pause = self._estimate(v, origin, task), 0.0
        if vehicle.way is not None or self.has_chains:
            driven = max(1.0, driven)
            # As kernels count it: whole seconds from where the way begins.
            seconds = min(driven, self.measure_way(v, origin, pickup))
            loaded = finish + float(count_ticks(seconds))
            pause = max(0.0, math.ceil(task.arrival - loaded)) if self.has_chains else 0.0
            if vehicle.way is not None:
                way = vehicle.way._replace(end=pickup, loaded=loaded + pause, pause=pause)
                vehicle = vehicle._replace(way=way)
        carrying = vehicle._replace(
            status=S.WORKING,
            origin=origin,
            has_fetched=origin == pickup and finish <= now,
            task=name,
            finish=finish + driven + pause,
            is_confirmed=False,
            moved=now,
            seen=now,
        )
        self.put(v, self.plan(v, carrying, now, task=task.row))
        self.state.vehicle["task"][0, v] = task.row
        self.state.task["vehicle"][0, task.row] = v
        return name

    def drop(self, v: int, since: float | None = None) -> parts.LiveTask | None:
        """Take the task off a vehicle; return it, as waiting since then if that is given."""
        name = self.vehicles[v].task
        if name is None:
            return None
        self.changes += 1
        self.vehicles[v] = self.vehicles[v]._replace(task=None)
        self.state.vehicle["task"][0, v] = -1
        task = self.tasks[name]
        task = task._replace(vehicle=-1, since=task.since if since is None else since)
        self.tasks[name] = task
        self.state.task["vehicle"][0, task.row] = -1
        self.clock.since[task.row] = task.since
        return task

    # Vehicles that charge, park or are called back

    def find_level(self, v: int, now: float) -> float:
        """Return the energy that a vehicle has at `now`, or when it was last known; 0 without a battery."""
        battery, own = self.layout.batteries[v], self.vehicles[v]
        if battery is None:
            return 0.0
        now = max(now, own.level_time)
        if own.status == S.CHARGING:
            return min(battery.capacity, own.level + battery.charge * (now - own.level_time))
        if own.status == S.BROKEN:
            return own.level
        rate = battery.idle if own.status in (S.IDLE, S.QUEUED) else battery.empty
        used = rate * (now - own.level_time)
        if own.status == S.WORKING and own.way is not None:
            loaded = min(now, max(own.level_time, own.way.loaded))
            used += (battery.loaded - rate) * (now - loaded)
            there = min(loaded, max(own.level_time, own.way.loaded - own.way.pause))
            used += (battery.idle - rate) * (loaded - there)
        return max(0.0, own.level - used)

    def _find_stand(self, v: int, now: float) -> parts.Way:
        """Return the beginning of any way on which a vehicle is sent at `now`."""
        kernels.find_live_turn(*self.tables, now, v)
        row, at = self.state.vehicle, (0, v)
        site, tick = int(row["stand_site"][at]), int(row["stand_tick"][at])
        if tick == 0:
            return parts.Way(site, now, site, now, 0.0)
        reached = now + float(row["stand_reached"][at])
        before, pace = int(row["stand_from"][at]), float(row["stand_pace"][at])
        return parts.Way(site, now + tick, before, reached, pace)

    def _leave_place(self, v: int, now: float) -> parts.LiveVehicle:
        """Return a vehicle that leaves what it does, with the beginning of its next way."""
        vehicle = self.vehicles[v]
        if not self.has_auxiliary:
            return vehicle
        if vehicle.place >= 0:
            self.state.vehicle["left_site"][0, v] = vehicle.place
            self.clock.move[v, S.MOVE_LEFT] = now
        level, way = self.find_level(v, now), self._find_stand(v, now)
        site = vehicle.site if way.began > now else way.site
        way = way._replace(closed=self.layout.closed)
        return vehicle._replace(site=site, level=level, level_time=now, way=way, place=-1)

    def measure_way(self, v: int, *sites: int, whole: bool = False) -> float:
        """Return how long a way through sites takes, s; by whole metres, where kernels go by these."""
        legs = [*pairwise(sites)]
        metres = sum(float(self.problem.distance[0, a, b]) for a, b in legs)
        metres = float(cut_metres(metres, whole and self.problem.instance["truncates"][0]))
        slowdown = self.layout.routes.find_slowdown(self.layout.vehicles[v].speed)
        slow = 0.0 if slowdown is None else sum(float(slowdown[a, b]) for a, b in legs)
        return metres / float(self.problem.fleet["speed"][0, v]) + slow

    def send(self, v: int, charges: bool, site: int, now: float) -> None:
        """Send a vehicle without a task to a place where it parks or charges."""
        vehicle = self._leave_place(v, now)
        assert vehicle.way is not None
        seconds = self.measure_way(v, vehicle.way.site, site, whole=True)
        way = vehicle.way._replace(end=site)
        vehicle = vehicle._replace(way=way, finish=way.began + max(1.0, seconds))
        status = S.TO_CHARGER if charges else S.PARKING
        vehicle = self.plan(v, vehicle, now, goal=site)
        vehicle = vehicle._replace(status=status, way=way, is_confirmed=False)
        self.put(v, vehicle if charges else vehicle._replace(place=site))

    def turn(self, v: int, now: float) -> None:
        """Take the task off a vehicle, which is idle from the next site of its way on."""
        vehicle = self._leave_place(v, now)
        assert vehicle.way is not None
        task = self.drop(v)
        if task is not None:
            task = self.tasks[task.event.task] = task._replace(changes=task.changes + 1)
            self.state.task["changes"][0, task.row] = task.changes
            self.pool.insert(self._find_place_of(self.pool, task.event.task), task.event.task)
            self.offer(self.pool)
        way = vehicle.way._replace(end=vehicle.way.site)
        is_under_way = way.began > now
        vehicle = vehicle._replace(
            status=S.ROAMING if is_under_way else S.IDLE,
            since=way.began,
            finish=way.began,
            task=None,
            way=way if is_under_way else None,
        )
        self.put(v, self.rest(v, vehicle, now))

    # Where vehicles meet nobody: a way is as it is reckoned

    def plan(
        self, v: int, vehicle: parts.LiveVehicle, now: float, task: int = -1, goal: int = -1
    ) -> parts.LiveVehicle:
        """Return a vehicle that is sent to a task, by its row, or to a site."""
        return vehicle

    def rest(self, v: int, vehicle: parts.LiveVehicle, now: float) -> parts.LiveVehicle:
        """Return a vehicle that was to turn, with the way to where it may rest."""
        return vehicle

    def is_loaded(self, v: int, now: float) -> bool:
        """Whether a vehicle has loaded its task, or has been at the pickup without a pause."""
        vehicle = self.vehicles[v]
        assert vehicle.way is not None
        return now >= vehicle.way.loaded or (vehicle.has_fetched and not vehicle.way.pause)

    def warm_up(self) -> None:
        """Compile or load what follows reports, which else the first one would wait for."""

    # Tasks that may be given anew

    def _find_place_of(self, names: list[str], name: str) -> int:
        """Return where a task that was called back belongs between others.

        Before the first that waits since a later time than it was ready; of the same time by their rows.
        """
        order: dict[str, Any] = {other: k for k, other in enumerate(self.tasks)}
        if self.has_chains:  # chain by chain
            for other, task in self.tasks.items():
                root = task.arrival if task.root is None else task.root
                order[other] = root, task.number
        own, tasks = (self.tasks[name].arrival, order[name]), self.tasks
        later = (k for k, other in enumerate(names) if (tasks[other].since, order[other]) > own)
        return next(later, len(names))

    def open_round(self, now: float) -> list[str]:
        """Return the tasks that may be given to a vehicle: those that wait or are not loaded yet."""
        names = self.pool.copy()
        for v, vehicle in enumerate(self.vehicles):
            if vehicle.status != S.WORKING or vehicle.service != parts.SERVING or v in self.hidden:
                continue
            assert vehicle.task is not None
            task = self.tasks[vehicle.task]
            if (
                self.is_loaded(v, now)
                or task.changes >= self.layout.max_changes
                or self.is_cut_off(task)
            ):
                continue
            names.insert(self._find_place_of(names, vehicle.task), vehicle.task)
            kernels.find_live_turn(*self.tables, now, v)
        return names

    def offer(self, names: list[str]) -> None:
        """Show kernels these tasks as the pool."""
        self.state.pool[0, : len(names)] = [self.tasks[name].row for name in names]
        self.state.episode["pool_size"][0] = len(names)

    def settle(self, v: int) -> None:
        """Let a vehicle take part in the round no more."""
        self.state.vehicle["stand_site"][0, v] = -1

    def close_round(self) -> None:
        """Show kernels the waiting tasks alone, and that nobody else may be called back."""
        self.offer(self.pool)
        for v, vehicle in enumerate(self.vehicles):
            if vehicle.status == S.WORKING:
                self.settle(v)

    def snapshot(self) -> parts.Situation:
        """Return the situation, to come back to it with `restore`."""
        vehicles, tasks, pool = self.vehicles.copy(), self.tasks.copy(), self.pool.copy()
        planned, machines, day = self.planned.copy(), self.clock.machine.copy(), self.day
        return parts.Situation(self.layout, vehicles, tasks, pool, planned, machines, day, day.mark)

    def restore(self, situation: parts.Situation, *, anew: bool = False) -> None:
        """Return to a situation; `anew` with new tables, whatever was done to these."""
        if anew or situation.layout is not self.layout:
            self._lay_out(situation.layout)
        for task in [*self.tasks.values(), *self.planned.values()]:
            self.leave(task)
        known = *situation.tasks.values(), *situation.planned.values()
        while max((task.row for task in known), default=-1) >= self.room:
            self._make_room()
        for task in situation.tasks.values():
            self._write(task)
        for task in situation.planned.values():
            self.hold(task)
        self.clock.machine[:] = situation.machines
        last = len(situation.machines) - 1
        self._free = [row for row in range(self.room - 1, last, -1) if not self.clock.used[row]]
        self.pool = []
        for name in situation.pool:
            self.wait(self.tasks[name])
        self.state.episode["pool_size"][0] = len(self.pool)
        self.day = situation.day
        self.day.n_tasks, self.day.delay, self.day.delivered, n_ended = situation.mark
        del self.day.ended[max(0, n_ended - self.day.dropped) :]
        for v, vehicle in enumerate(situation.vehicles):
            if vehicle.place >= 0:  # it has not left it
                self.clock.move[v, S.MOVE_LEFT] = LONG_AGO
            self.put(v, vehicle)
            row = -1 if vehicle.task is None else self.tasks[vehicle.task].row
            self.state.vehicle["task"][0, v] = row

    def _estimate(self, v: int, site: int, task: parts.LiveTask) -> float:
        """Return how long a trip from a site takes, s."""
        pickup, delivery = self.problem.ends[0, task.row].tolist()
        driven = self.measure_way(v, site, pickup, delivery, whole=True)
        return driven + task.event.handling_time

    def _make_room(self) -> None:
        """Double the rows of the tables."""
        n = self.room
        self.problem = self.problem._replace(
            **{name: parts.double(getattr(self.problem, name), 1) for name in PROBLEM_ROWS}
        )
        self.state = self.state._replace(
            **{name: parts.double(getattr(self.state, name), 1) for name in STATE_ROWS}
        )
        self.clock = self.clock._replace(
            **{name: parts.double(getattr(self.clock, name)) for name in CLOCK_ROWS}
        )
        self._free = list(range(2 * n - 1, n - 1, -1)) + self._free
