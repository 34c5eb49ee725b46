"""What each event does to the floor as the dispatcher knows it, and which events cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.rounding import NOISE, count_ticks
from acerl_np.live import events, parts, states
from acerl_np.live.board import Board
from acerl_np.live.events import Event
from acerl_np.live.orders import TOLD, DayBegan, Given, Item, Recalled, Sent, TookPlace
from acerl_np.live.parts import LiveTask, LiveVehicle, Way
from acerl_np.problem.fields import read_id
from acerl_np.problem.layout import Layout, find_ends, find_sites
from acerl_np.problem.limits import MAX_NUMBER, MAX_VEHICLES
from acerl_np.problem.parts import Battery, Vehicle
from acerl_np.simulation.scene import STATUSES
from acerl_np.support.errors import EventError, InputError, describe, list_some, refuse
from acerl_np.support.fields import Field, is_real

MOST = 1e12
"""Largest number of a task."""

AMOUNT, OF_RECORDS = Field(float, 0.0, MOST), Field(float, 0.0, MAX_NUMBER)
RANK, PERCENT = Field(float, -MOST, MOST), Field(float, 0.0, 100.0)
LIMITED = {
    # A task may come after those of which a record says nothing.
    "priority": Field(float, -MAX_NUMBER, MAX_NUMBER),
    **dict.fromkeys(("expiry", "handling_time", "demand", "processing"), OF_RECORDS),
    **dict.fromkeys(("announced", "seconds"), OF_RECORDS),
}
"""Fields whose numbers are those of a record: up to `MAX_NUMBER`, or infinite where one may be."""

MOMENTS = ("earliest_start", "due", "ready")
"""Fields that hold a time besides that of the event."""

NUMBERS = (*events.NUMBERS[events.TaskArrived], "earliest_start")
"""Fields of a task that hold one."""

UNCHAINED = "expected a layout with machines, and a rule, an index policy or a lookahead over one"
"""What an error says of tasks that follow others where none may."""


class Floor(Board):
    """What is known about the floor, and what events do to it.

    Parameters
    ----------
    layout, decider
        As of `Board`.

    Attributes
    ----------
    next_release : float
        Earliest start of those tasks that are held back, s; inf without any.
    last_release : float
        Latest earliest start of those that are not held back any more, s.
    """

    def __init__(self, layout: Layout, decider: parts.Decider) -> None:
        super().__init__(layout, decider)
        self.next_release = np.inf
        self.last_release = -np.inf

    def apply(self, item: Item) -> None:
        """Let an event, or what else happened, happen; an EventError if it cannot be changes nothing."""
        with naming(item):
            HANDLERS[type(item)](self, item, *self._expect(item))
        self.changes += 1

    def _expect(self, item: Item) -> tuple[Any, ...]:
        """Return the task of an event, None if it is not known, or the position and state of its vehicle.

        An EventError says that the event may not happen as these are now.
        """
        if type(item) in states.OF_TASKS:
            return (self._expect_task(item),)
        return self._expect_vehicle(item) if type(item) in states.OF_VEHICLES else ()

    def _expect_task(self, event: Any) -> LiveTask | None:
        task = self.find_task(event.task)
        state = self.find_state(task)
        allowed, expected = states.OF_TASKS[type(event)]
        if state not in allowed:
            carrier = "" if task is None else self.layout.vehicles[task.vehicle].id
            found = states.FOUND[state].format(vehicle=carrier)
            refuse_state("task", event.task, found, expected)
        return task

    def _expect_vehicle(self, event: Any) -> tuple[int, LiveVehicle]:
        v = self._find_vehicle(event.vehicle)
        vehicle, statuses = self.vehicles[v], states.OF_VEHICLES[type(event)]
        if not getattr(event, "begins", True):
            statuses = (S.CHARGING,)
        if vehicle.status not in statuses:
            known = [STATUSES[status] for status in statuses if status not in states.ERRANDS]
            expected = f"it to be {' or '.join(known or [STATUSES[S.CHARGING]])}"
            refuse_state("vehicle", event.vehicle, STATUSES[vehicle.status], expected)
        return v, vehicle

    def find_position(self, name: object) -> int:
        """Return the position of a vehicle, -1 for none of the fleet."""
        return self._positions.get(name, -1) if isinstance(name, str) else -1

    def advance(self, now: float) -> None:
        """Let those tasks wait that are held back until `now` or before."""
        while self.next_release <= now:
            task = min(self.list_timed(), key=lambda task: task.arrival)
            del self.planned[task.event.task]
            self._begin_waiting(task)
            self.last_release = max(self.last_release, self.next_release)
            self._plan_release()

    def restore(self, situation: parts.Situation, *, anew: bool = False) -> None:
        """Return to a situation, as `Board.restore`."""
        super().restore(situation, anew=anew)
        self.last_release = -np.inf
        self._plan_release()

    def try_task(self) -> None:
        """Let a task wait that some vehicle may carry, to see what a decision takes; restore afterwards."""
        ways = np.isfinite(self.problem.distance[0])
        possible = ways[self.vehicles[0].site][:, np.newaxis] & ways
        np.fill_diagonal(possible, False)
        if possible.any():
            pickup, delivery = (self.layout.sites[k].id for k in np.argwhere(possible)[0])
            event = events.TaskArrived(0.0, "", pickup, delivery, 1.0)
            self._begin_waiting(LiveTask(event))

    def check_assignment(self, vehicle: str, task: str) -> tuple[int, int]:
        """Return the vehicle's position, and the task's in the pool; an EventError if it cannot be."""
        v = self._find_vehicle(vehicle)
        if self.vehicles[v].status not in states.FREE:
            raise EventError(f"vehicle '{vehicle}' is not idle")
        if self.vehicles[v].service != parts.SERVING:
            raise EventError(f"vehicle '{vehicle}' is out of service")
        if task not in self.pool:
            raise EventError(f"task '{describe(task)}' does not wait")
        demand, capacity = self.tasks[task].event.demand, self.layout.vehicles[v].capacity
        if capacity and demand > capacity:
            raise EventError(
                f"task '{task}' has demand {demand:g}; vehicle '{vehicle}' carries {capacity:g}"
            )
        return v, self.pool.index(task)

    def check_way(self, v: int, site: str) -> None:
        """Refuse a way of a vehicle to a site that it cannot reach."""
        metres = self.problem.distance[0, self.vehicles[v].site, self._find_site(site)]
        if not np.isfinite(metres):
            raise EventError(f"no way for vehicle '{self.layout.vehicles[v].id}' to '{site}'")

    def _give(self, given: Given) -> None:
        self.carry(*self.check_assignment(given.vehicle, given.task), given.time)

    def check_errand(self, vehicle: str, site: str) -> tuple[int, int, bool]:
        """Return the vehicle's and the site's position, and whether it is to charge; an EventError if not."""
        v, place = self._find_vehicle(vehicle), self._find_site(site)
        status = self.vehicles[v].status
        if status not in states.FREE:
            raise EventError(f"vehicle '{vehicle}' is {STATUSES[status]}")
        charges = place in self._chargers and self.layout.batteries[v] is not None
        if not charges and place not in self._parking:
            raise EventError(f"site '{site}' is no charger and no parking place for it")
        self.check_way(v, site)
        return v, place, charges

    def _send(self, sent: Sent) -> None:
        v, place, _ = self.check_errand(sent.vehicle, sent.site)
        self.send(v, sent.charges, place, sent.time)

    def _take_place(self, taken: TookPlace) -> None:
        v, site = self._find_vehicle(taken.vehicle), self._find_site(taken.site)
        vehicle = self.vehicles[v]
        if vehicle.status != S.IDLE or vehicle.site != site or site not in self._parking:
            raise EventError(
                f"vehicle '{taken.vehicle}' does not stand idle at a place of '{taken.site}'"
            )
        self.put(v, vehicle._replace(place=site))

    def _turn_back(self, order: Recalled) -> None:
        v = self._find_vehicle(order.vehicle)
        if not self.has_auxiliary or self.vehicles[v].task != order.task:
            raise EventError(f"task '{order.task}' is not on vehicle '{order.vehicle}'")
        self.turn(v, order.time)

    def _begin_day(self, item: DayBegan) -> None:
        self.day = parts.Day(item.start)
        if np.isinf(item.time):
            for v in range(len(self.vehicles)):
                self.put(v, self._make_vehicle(v, item.start))

    # Sites

    def _find_sites(self, name: str) -> tuple[int, ...]:
        """Return a site, or those of a station."""
        is_name = isinstance(name, str)
        if is_name and name in self.layout.site_index:  # as most are
            return (self.layout.site_index[name],)
        sites = find_sites(self.layout, name) if is_name else ()
        if not sites:
            raise EventError(f"site '{describe(name)}' unknown; expected a site of the layout")
        return sites

    def _find_site(self, name: str) -> int:
        sites = self._find_sites(name)
        if len(sites) > 1:
            refuse_state("site", name, f"a station of {len(sites)} sites", "one of them")
        return sites[0]

    def _find_open_site(self, name: str) -> int:
        """Return a site at which a vehicle may stand without a task."""
        site = self._find_site(name)
        self.layout.check_stand(self.layout.sites[site].id, "site")
        return site

    def _find_ends(self, event: events.TaskArrived) -> tuple[int, int]:
        """Return the sites of a task, those of stations chosen as in a record."""
        names = event.pickup, event.delivery
        pickups, deliveries = map(self._find_sites, names)
        pickup, delivery = (self.layout.aliases.get(name, name) for name in names)
        if pickup == delivery or len({*pickups, *deliveries}) == 1:
            raise EventError(f"task '{event.task}': pickup and delivery are one site")
        if len(pickups) == len(deliveries) == 1:
            return pickups[0], deliveries[0]
        return find_ends(self.layout, pickups, deliveries)

    # Tasks

    def _arrive(self, event: events.TaskArrived, unknown: None) -> None:
        if not isinstance(event.task, str) or not event.task:
            refuse("task", f"'{describe(event.task)}'", "a name", EventError)
        pickup, delivery = self._find_ends(event)
        for field in ("expiry", "handling_time", "demand", "processing", "announced"):
            value = getattr(event, field)
            if not (self.has_chains and field in ("expiry", "announced") and value == np.inf):
                AMOUNT.read(field, value, EventError)
        self._check_chain(event, delivery)
        RANK.read("priority", event.priority, EventError)
        start, due = event.earliest_start, event.time + event.expiry
        if start is not None and not (is_real(start) and start <= due):
            expected = f"a time until {due:g} s, when the task is due"
            refuse("earliest_start", start, expected, EventError)
        sites = self.layout.sites
        own = _normalise(event, sites[pickup].id, sites[delivery].id)
        task = LiveTask(own, told=None if own == event else event)
        if own.after or parts.find_arrival(own) > own.time:
            self.hold(task)
            self._plan_release()
        else:
            self._begin_waiting(task)

    def _check_chain(self, event: events.TaskArrived, delivery: int) -> None:
        """Refuse a task that follows none that is known, or is processed where there is no machine."""
        if not event.after and not event.processing:
            return
        if not self.has_chains:
            raise EventError(f"task '{event.task}' follows another, or is processed; {UNCHAINED}")
        if event.after and self.find_task(event.after) is None:
            expected = "a task that is held back, waits or is under way"
            refuse("after", f"'{describe(event.after)}'", expected, EventError)
        if event.processing and delivery not in self._machine_at:
            raise EventError(f"processing: no machine at '{event.delivery}'; expected one")

    def _announce(self, event: events.TaskAnnounced | events.TaskReady, task: LiveTask) -> None:
        ready = event.ready if isinstance(event, events.TaskAnnounced) else event.time
        if not self.has_chains:
            raise EventError(f"this policy knows no task before it waits; {UNCHAINED}")
        if not is_real(ready) or not abs(ready) <= MOST:
            refuse("ready", ready, "seconds", EventError)
        task = task._replace(ready=float(ready))
        if self.planned.pop(event.task, None) is not None:
            self._begin_waiting(task)
            self._plan_release()
        elif task.vehicle < 0:
            self._write(task._replace(since=max(task.since, task.arrival)))
        # What a vehicle has already is loaded when its messages say so.

    def _note_machine(self, event: events.MachineBusy) -> None:
        site = self._find_site(event.site)
        if not self.has_chains or site not in self._machine_at:
            raise EventError(f"site '{event.site}' has no machine; expected one that has")
        AMOUNT.read("seconds", event.seconds, EventError)
        n, k = len(self.clock.machine), self._machine_at[site]
        mine = np.flatnonzero(self.problem.chain["machine"][0, :n] == k)
        # In whole seconds, which together are what is left.
        left = count_ticks(event.seconds) + np.arange(len(mine))
        self.clock.machine[mine] = event.time + left // len(mine)

    def _begin_waiting(self, task: LiveTask) -> None:
        if self.is_cut_off(task):
            self.hold(task)
            return
        self.enter(task)
        event, arrival = task.event, task.arrival
        index = self.layout.site_index
        values = arrival - self.day.start, task.due - arrival, event.handling_time, event.demand
        self.day.add(index[event.pickup], index[event.delivery], values)

    def _plan_release(self) -> None:
        starts = (task.arrival for task in self.list_timed())
        self.next_release = min(starts, default=np.inf)

    def list_timed(self) -> list[LiveTask]:
        """Return those tasks that are held back until a time that is known, and can be done then."""
        planned = self.planned.values()
        return [own for own in planned if not own.event.after and own.row != parts.CUT_OFF]

    def find_state(self, task: LiveTask | None) -> str:
        """Return the state of a task, None for one that is not known or has ended."""
        if task is None:
            return states.UNKNOWN
        if task.vehicle >= 0:
            own = self.vehicles[task.vehicle]
            loaded = states.STRANDED if own.is_stranded else states.LOADED
            return loaded if own.has_fetched else states.GIVEN
        if self.find_fault(task.event):
            return states.UNSERVABLE
        return states.ANNOUNCED if task.event.task in self.planned else states.WAITING

    def _change(self, event: events.TaskChanged, task: LiveTask) -> None:
        old = new = task.event
        if event.due is not None:
            first = task.arrival
            if old.after and event.task in self.planned:
                raise EventError(
                    f"due: nobody knows yet when task '{event.task}' is ready; expected None"
                )
            if not is_real(event.due) or not first <= event.due <= first + MOST:
                expected = f"a time from {first:g} s on, when the task may begin"
                refuse("due", event.due, expected, EventError)
            begin = old.time if task.ready is None else task.ready
            new = replace(new, expiry=float(event.due) - begin)
        if event.priority is not None:
            priority = RANK.read("priority", event.priority, EventError)
            new = replace(new, priority=priority)
        self.replace_event(task, new)

    def _cancel(self, event: events.TaskCancelled, task: LiveTask) -> None:
        self.day.end(event.task, False, float(event.time), "")
        self._unload(task, event.time)
        if event.task in self.pool:
            self._pull(self.pool.index(event.task))
        self.leave(task)
        self._plan_release()
        if self.has_chains:  # less is left after those before it
            super().restore(self.snapshot())

    def _unload(self, task: LiveTask, now: float) -> None:
        """Let a task that is stranded wait, and its vehicle stand without it."""
        if task.vehicle >= 0:
            vehicle = self.vehicles[task.vehicle]
            status = S.BROKEN if vehicle.status == S.BROKEN else S.IDLE
            self._drop(task.vehicle, float(now))
            self._end_work(task.vehicle, vehicle.site, now, status)

    def _move(self, event: events.TaskMoved, task: LiveTask) -> None:
        site = self.layout.sites[self._find_site(event.site)].id
        if site == task.event.delivery:
            expected = "another site than the delivery"
            refuse("site", f"'{describe(event.site)}'", expected, EventError)
        self._unload(task, event.time)
        moved = self.find_task(event.task)
        assert moved is not None
        self.replace_event(moved, replace(moved.event, pickup=site))
        self._hold_cut_off()
        self._plan_release()
        self.advance(float(event.time))

    def _recall(self, event: events.TaskRecalled, task: LiveTask) -> None:
        v = task.vehicle
        vehicle = self.vehicles[v]
        # The vehicle drives on to the next site on its way.
        pickup = self.layout.site_index[task.event.pickup]
        site = self.layout.routes.find_next(vehicle.origin, vehicle.site, pickup)
        if event.cancel:
            self.day.end(event.task, False, float(event.time), self.layout.vehicles[v].id)
        self._drop(v, event.time, waits=not event.cancel)
        self._end_work(v, site, event.time)

    # Vehicles

    def _find_vehicle(self, name: str) -> int:
        """Return a vehicle's position."""
        v = self.find_position(name)
        if v < 0:
            known = list_some(list(self._positions), 20)
            raise EventError(f"vehicle '{describe(name)}' unknown; expected one of {known}")
        return v

    def _drop(self, v: int, since: float, *, waits: bool = True) -> None:
        """Take the task off a vehicle, if it has one."""
        own = self.vehicles[v].task
        if own is not None and self.has_chains:
            since = max(since, self.tasks[own].arrival)
        task = self.drop(v, since)
        if task is not None and waits:
            self.wait(task)
            self._hold_cut_off()
        elif task is not None:
            self.leave(task)

    def _end_work(
        self, v: int, site: int, now: float, status: int = S.IDLE, *, parks: bool = False
    ) -> None:
        """Let a vehicle stand at a site without a task; one that was to leave then leaves.

        `parks`: the plant says that it has parked there.
        """
        vehicle = self.vehicles[v]
        if vehicle.service == parts.REMOVING:
            rest = [item for w, item in enumerate(self.layout.vehicles) if w != v]
            self._set_fleet(rest)
            return
        service = parts.OUT if vehicle.service == parts.LEAVING else vehicle.service
        now = float(now)
        broke = now if service == parts.OUT or status == S.BROKEN else vehicle.broke
        # Told late, it may have been before the order by which the level is known.
        level, known = self.find_level(v, now), max(now, vehicle.level_time)
        keeps = vehicle.place == site or (parks and site in self._parking)
        keeps &= status == S.IDLE and service != parts.OUT
        place = site if keeps else -1
        vehicle = vehicle._replace(since=now, level=level, level_time=known, way=None, place=place)
        stands = vehicle._replace(status=status, service=service, site=site, broke=broke, task=None)
        self.put(v, stands._replace(seen=now))

    def _become_idle(self, event: events.VehicleIdle, v: int, vehicle: LiveVehicle) -> None:
        site = self._find_site(event.site)
        if not event.delivered:
            self._drop(v, float(event.time))
        elif vehicle.task is not None:
            task, now = self.tasks[vehicle.task], float(event.time)
            # Of a station any site will do, also another than the one that was reckoned with.
            told = (task.told or task.event).delivery
            if site not in self._find_sites(told):
                raise EventError(
                    f"vehicle '{event.vehicle}' is at '{describe(event.site)}', task "
                    f"'{vehicle.task}' goes to '{told}'; expected it there, or delivered=False, by which the "
                    "task waits again"
                )
            self.drop(v)
            if self.has_chains:
                self.process(task, now)
            self.day.delay += max(0.0, now - task.due)
            self.day.delivered += 1
            self.day.end(task.event.task, True, now, event.vehicle)
            self.leave(task)
        self._end_work(v, site, event.time)

    def _pass(self, event: events.VehiclePassed, v: int, vehicle: LiveVehicle) -> None:
        site, now = self._find_site(event.site), float(event.time)
        way = vehicle.way
        if vehicle.status in states.ERRANDS and (way is None or site == way.end):
            # It is where it was sent, or it is moved away from a charger.
            if way is not None or site != vehicle.site:
                waits = vehicle.status == S.TO_CHARGER
                self._end_work(v, site, now, S.QUEUED if waits else S.IDLE)
            return
        if way is not None:
            vehicle = vehicle._replace(way=self.follow_way(v, way, site, now))
        has_fetched, is_confirmed, moved = vehicle.has_fetched, vehicle.is_confirmed, vehicle.moved
        if vehicle.status in states.ERRANDS:
            is_confirmed = is_confirmed or site != vehicle.site
        if vehicle.task is not None and not is_confirmed:
            pickup = self.layout.site_index[self.tasks[vehicle.task].event.pickup]
            if site == pickup and not has_fetched:
                has_fetched, moved = True, now
            # That it still stands there says nothing; that it has left with the load does.
            is_confirmed = site != vehicle.site and (site == pickup or vehicle.has_fetched)
        vehicle = vehicle._replace(site=site, has_fetched=has_fetched, is_confirmed=is_confirmed)
        self.put(v, vehicle._replace(moved=moved, seen=now))

    def follow_way(self, v: int, way: Way, site: int, now: float) -> Way:
        """Return the way on from a site that a vehicle has reached."""
        if way.closed != self.layout.closed:  # it goes on as it was sent
            return way._replace(site=site, began=now, before=site, reached=now)
        # A way that begins there does so at a whole second after it was joined.
        began = max(now, way.began) if site == way.site and way.began < now + 1.0 else now
        there, known = began + self.measure_way(v, site, way.end), way.loaded - way.pause
        if now >= way.loaded or there <= known + NOISE < there + 1.0:
            there = known  # as was reckoned
        pause = max(0.0, way.loaded - there) if way.pause else 0.0
        way = way._replace(site=site, began=began, before=site, reached=began)
        return way._replace(loaded=there + pause, pause=pause)

    def _park(self, event: events.VehicleParked, v: int, vehicle: LiveVehicle) -> None:
        self._end_work(v, self._find_open_site(event.site), float(event.time), parks=True)

    def _charge(self, event: events.VehicleCharging, v: int, vehicle: LiveVehicle) -> None:
        self._expect_battery(v)
        site = self._find_site(event.site)
        if site not in self._chargers:
            raise EventError(f"site '{event.site}' is no charger; expected one")
        self._end_work(v, site, float(event.time), S.CHARGING if event.begins else S.IDLE)

    def _expect_battery(self, v: int) -> Battery:
        battery = self.layout.batteries[v]
        if battery is None:
            name = self.layout.vehicles[v].id
            raise EventError(f"vehicle '{name}' has no battery in the layout")
        return battery

    def read_level(self, event: events.VehicleLevel) -> tuple[float, Battery]:
        """Return the energy that an event tells, and the vehicle's battery; an EventError if it cannot be."""
        battery = self._expect_battery(self._find_vehicle(event.vehicle))
        if (event.level is None) == (event.percent is None):
            raise EventError("expected either a level or percent")
        if event.level is None:
            percent = PERCENT.read("percent", event.percent, EventError)
            return percent * battery.capacity / 100.0, battery
        level = Field(float, 0.0, battery.capacity).read("level", event.level, EventError)
        return level, battery

    def _level(self, event: events.VehicleLevel) -> None:
        level, _ = self.read_level(event)
        v = self._positions[event.vehicle]
        self.put(v, self.vehicles[v]._replace(level=level, level_time=float(event.time)))

    def believe_level(self, name: object, now: float) -> float:
        """Return the energy that a vehicle has at `now`, or when it was told last; 0 if nobody knows any."""
        v = self.find_position(name)
        return 0.0 if v < 0 else self.find_level(v, now)

    def _answer(self, event: events.RecallAnswered, v: int, vehicle: LiveVehicle) -> None:
        now = float(event.time)
        if event.done or not self.has_auxiliary:
            return
        task = self.tasks.get(event.task) if isinstance(event.task, str) else None
        if task is None or vehicle.status == S.BROKEN:
            found = "unknown" if task is None else "not on a vehicle that is broken"
            refuse_state("task", event.task, found, "one that was called back")
        other = task.vehicle
        if other != v:
            for loser in (other, v):
                if loser >= 0 and self.vehicles[loser].task is not None:
                    self.turn(loser, now)
            self.carry(v, self.pool.index(event.task), now)
        vehicle = self.vehicles[v]
        assert vehicle.way is not None
        ends = self.problem.ends[0, task.row].tolist()
        way = vehicle.way._replace(site=ends[0], began=now, before=ends[0], reached=now, loaded=now)
        finish = max(now + 1.0, now + self._estimate(v, ends[0], task))
        self.put(
            v,
            vehicle._replace(
                site=ends[0], way=way, finish=finish, has_fetched=True, moved=now, seen=now
            ),
        )
        if other not in (-1, v) and self.vehicles[other].service != parts.SERVING:
            self._end_work(other, self.vehicles[other].site, now)

    def _break(self, event: events.VehicleBroke, v: int, vehicle: LiveVehicle) -> None:
        if self._keeps_load(v, float(event.time)):
            self._strand(v, float(event.time), S.BROKEN)
            return
        # As in the simulator: the waiting of its task begins anew a second before.
        self._drop(v, float(event.time) - 1.0)
        self._end_work(v, vehicle.site, event.time, S.BROKEN)

    def _keeps_load(self, v: int, now: float) -> bool:
        """Whether a vehicle has loaded its task, which was ready, and keeps it if it breaks down now."""
        vehicle = self.vehicles[v]
        if vehicle.task is None or not vehicle.has_fetched or self.layout.loads != "stay":
            return False
        loaded = vehicle.moved if vehicle.way is None else vehicle.way.loaded
        # As in the simulator it has loaded before, or it came there within the second.
        return max(loaded, self.tasks[vehicle.task].arrival) < max(now, vehicle.moved + 1.0)

    def _strand(self, v: int, now: float, status: int) -> None:
        """Let a vehicle stand with its load; what it still has to drive is told by its finish."""
        vehicle, level = self.vehicles[v], self.find_level(v, now)
        left = self.find_left(vehicle) if vehicle.is_stranded else vehicle.finish - now
        vehicle = vehicle._replace(level=level, level_time=max(now, vehicle.level_time))
        self.put(v, vehicle._replace(status=status, broke=now, finish=now + left))

    def _go_on(self, v: int, now: float, told: str | None) -> None:
        """Let a vehicle that stood with its load drive on to the delivery, from a site if that is told."""
        vehicle, left = self.vehicles[v], self.find_left(self.vehicles[v])
        assert vehicle.task is not None
        site, event = vehicle.site, self.tasks[vehicle.task].event
        if told is not None:
            site, delivery = self._find_site(told), self.layout.site_index[event.delivery]
            left = max(1.0, self.measure_way(v, site, delivery, whole=True) + event.handling_time)
        way = vehicle.way
        if way is not None:
            way = way._replace(site=site, began=now, before=site, reached=now)
        vehicle = vehicle._replace(status=S.WORKING, site=site, way=way, finish=now + left)
        self.put(v, vehicle._replace(level_time=max(now, vehicle.level_time), moved=now, seen=now))

    def _repair(self, event: events.VehicleRepaired, v: int, vehicle: LiveVehicle) -> None:
        site = vehicle.site if event.site is None else self._find_site(event.site)
        now, level = float(event.time), vehicle.level
        battery = self.layout.batteries[v]
        if battery is not None and level == 0.0:
            level = float(battery.critical)
        if vehicle.task is not None:
            self.put(v, vehicle._replace(level=level))
            self._go_on(v, now, event.site)
            return
        vehicle = vehicle._replace(status=S.IDLE, site=site, since=now)
        self.put(v, vehicle._replace(level=level, level_time=now))

    # The fleet

    @property
    def fleet(self) -> dict[str, LiveVehicle]:
        """All vehicles, by name."""
        return dict(zip(self._positions, self.vehicles, strict=True))

    def _add(self, event: events.VehicleAdded) -> None:
        if not isinstance(event.vehicle, str) or not event.vehicle:
            refuse("vehicle", f"'{describe(event.vehicle)}'", "a name", EventError)
        if event.vehicle in self._positions:
            raise EventError(f"vehicle '{event.vehicle}' is in the fleet already")
        site = self.layout.sites[self._find_open_site(event.site)].id
        if len(self.vehicles) == MAX_VEHICLES:
            raise EventError(f"{MAX_VEHICLES:,} vehicles already; expected fewer")
        added = Vehicle(event.vehicle, site, event.speed, event.capacity)
        self._set_fleet([*self.layout.vehicles, added])
        v = len(self.vehicles) - 1
        self.put(v, self._make_vehicle(v, float(event.time)))
        self.advance(float(event.time))  # what nobody could reach may be in reach now

    def _withdraw(
        self,
        event: events.VehicleOutOfService | events.VehicleRemoved,
        v: int,
        vehicle: LiveVehicle,
    ) -> None:
        is_removal = isinstance(event, events.VehicleRemoved)
        if not is_removal and vehicle.service != parts.SERVING:
            found = "out of service, or about to be"
            refuse_state("vehicle", event.vehicle, found, "one in service")
        stays = vehicle.status == S.BROKEN or event.at_once
        stays = stays and self._keeps_load(v, float(event.time))
        if is_removal and stays:
            found = f"with the load of task '{vehicle.task}' on it"
            refuse_state("vehicle", event.vehicle, found, "TaskMoved or TaskCancelled before")
        if is_removal:
            leaving = {w for w, own in enumerate(self.vehicles) if own.service == parts.REMOVING}
            rest = [item for w, item in enumerate(self.layout.vehicles) if w not in leaving | {v}]
            if not rest:
                raise EventError("the last vehicle; expected at least one to stay")
            self._find_fleet(rest)
        self.put(v, vehicle._replace(service=parts.REMOVING if is_removal else parts.LEAVING))
        if stays:
            if vehicle.status == S.WORKING:
                self._strand(v, float(event.time), S.WORKING)
            self.put(v, self.vehicles[v]._replace(service=parts.OUT))
        elif vehicle.status != S.WORKING or event.at_once:
            self._drop(v, float(event.time) - 1.0)
            status = S.BROKEN if vehicle.status == S.BROKEN else S.IDLE
            self._end_work(v, vehicle.site, event.time, status)

    def _come_back(self, event: events.VehicleBack, v: int, vehicle: LiveVehicle) -> None:
        if vehicle.service not in (parts.OUT, parts.LEAVING):
            refuse_state("vehicle", event.vehicle, "not out of service", "it to be")
        site = vehicle.site if event.site is None else self._find_site(event.site)
        since = float(event.time)
        self.put(v, vehicle._replace(service=parts.SERVING, site=site, since=since))
        if vehicle.is_stranded and vehicle.status == S.WORKING:
            self._go_on(v, since, event.site)

    def _find_fleet(self, vehicles: Iterable[Vehicle]) -> Layout:
        """Return the floor with another fleet, which the policy must serve."""
        # Whether batteries reach a charger is looked at where all edges are open.
        layout = self.layout.with_closed(()).with_fleet(vehicles).with_closed(self.layout.closed)
        self._decider.check_layout(layout, "fleet")
        return layout

    def _set_fleet(self, vehicles: Iterable[Vehicle]) -> None:
        """Change the fleet; vehicles that stay keep what they do."""
        layout, before = self._find_fleet(vehicles), self.snapshot()
        known = dict(zip(self._positions, before.vehicles, strict=True))
        starts = [layout.site_index[vehicle.start] for vehicle in layout.vehicles]
        own = [
            known.get(vehicle.id, LiveVehicle(S.IDLE, parts.SERVING, start, start))
            for vehicle, start in zip(layout.vehicles, starts, strict=True)
        ]
        carriers = {vehicle.task: v for v, vehicle in enumerate(own) if vehicle.task is not None}
        moved = {name: before.tasks[name]._replace(vehicle=v) for name, v in carriers.items()}
        tasks = {**before.tasks, **moved}
        super().restore(before._replace(layout=layout, vehicles=own, tasks=tasks))
        self._hold_cut_off()
        self._plan_release()

    def _hold_cut_off(self) -> None:
        """Hold those waiting tasks aside that nobody can do any more."""
        for task in [self.tasks[name] for name in self.pool]:
            if self.is_cut_off(task):
                self._pull(self.pool.index(task.event.task))
                self.leave(task)
                self.hold(task)

    # Edges

    def _close(self, event: events.EdgeClosed | events.EdgeOpened) -> None:
        ends = [self.layout.sites[self._find_site(name)].id for name in (event.a, event.b)]
        pair, closed = (min(ends), max(ends)), {*self.layout.closed}
        closes, is_closed = isinstance(event, events.EdgeClosed), pair in closed
        if closes == is_closed:
            found = "closed" if is_closed else "open"
            refuse_state("edge", f"{event.a}, {event.b}", found, "an edge that is not")
        layout = self.layout.with_closed(closed ^ {pair})
        super().restore(self.snapshot()._replace(layout=layout))
        self._hold_cut_off()
        self._plan_release()
        self.advance(float(event.time))  # what nobody could reach may be in reach now

    def _lay_out(self, layout: Layout) -> None:
        """Make empty tables, and note who is in the fleet."""
        super()._lay_out(layout)
        self._positions = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}


HANDLERS: dict[type, Callable[..., None]] = {
    events.TaskArrived: Floor._arrive,
    events.TaskAnnounced: Floor._announce,
    events.TaskReady: Floor._announce,
    events.MachineBusy: Floor._note_machine,
    events.TaskChanged: Floor._change,
    events.TaskCancelled: Floor._cancel,
    events.TaskMoved: Floor._move,
    events.TaskRecalled: Floor._recall,
    events.VehicleIdle: Floor._become_idle,
    events.VehiclePassed: Floor._pass,
    events.VehicleParked: Floor._park,
    events.VehicleCharging: Floor._charge,
    events.VehicleLevel: Floor._level,
    events.RecallAnswered: Floor._answer,
    events.VehicleBroke: Floor._break,
    events.VehicleRepaired: Floor._repair,
    events.VehicleAdded: Floor._add,
    events.VehicleRemoved: Floor._withdraw,
    events.VehicleOutOfService: Floor._withdraw,
    events.VehicleBack: Floor._come_back,
    Given: Floor._give,
    Recalled: Floor._turn_back,
    Sent: Floor._send,
    TookPlace: Floor._take_place,
    events.EdgeClosed: Floor._close,
    events.EdgeOpened: Floor._close,
    DayBegan: Floor._begin_day,
}


def name_item(item: Item) -> str:
    """Return what happened as an error names it."""
    return f"{TOLD.get(type(item), type(item).__name__)} at {item.time} s"


def refuse_state(kind: str, name: object, found: str, expected: str) -> NoReturn:
    """Refuse a task or a vehicle for what it is at present."""
    raise EventError(f"{kind} '{describe(name)}' is {found}; expected {expected}")


class naming:  # noqa: N801 (a function to who uses it; a class, as it is entered at every event)
    """Let errors say of which item or call they are: all are an EventError then."""

    def __init__(self, what: str | Item) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InputError):
            name = self.what if isinstance(self.what, str) else name_item(self.what)
            raise EventError(f"{name}: {str(error).removeprefix(f'{name}: ')}") from error


def check_record(event: Event) -> None:
    """Refuse a task that no record may hold, by its name or a number: the log is read as one."""
    if isinstance(event, events.TaskArrived):
        read_id(vars(event), "task", name_item(event))
    for name, value in vars(event).items():
        if value is None:
            if name in events.NUMBERS[type(event)]:  # null in the log says infinity
                refuse(name, value, "a number", EventError)
        elif name in LIMITED and value != np.inf:
            LIMITED[name].read(name, value, EventError)
        elif name in MOMENTS:
            least = event.time - MAX_NUMBER if name == "ready" else -MOST
            Field(float, least, event.time + MAX_NUMBER).read(name, value, EventError)


def _normalise(event: events.TaskArrived, pickup: str, delivery: str) -> events.TaskArrived:
    """Return a task between two sites whose numbers are Python's: others cannot be saved, or round."""
    numbers = {name: getattr(event, name) for name in NUMBERS}
    is_plain = all(value is None or type(value) is float for value in numbers.values())
    if is_plain and (event.pickup, event.delivery) == (pickup, delivery):
        return event  # as most are
    floats: Any = {
        name: value if value is None else float(value) for name, value in numbers.items()
    }
    return replace(event, pickup=pickup, delivery=delivery, **floats)
