"""Where vehicles meet: what they are believed to do, planned around each other as in the simulator.

A way is planned as its vehicle is sent. What is reported corrects the plans: who is late pushes those who
planned later, who is early or elsewhere is planned anew from there.
"""

from __future__ import annotations

import math
from itertools import pairwise

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion.planner import ABOARD
from acerl_np.kernels.rollout import meeting as kernels
from acerl_np.kernels.rollout.live import find_live_level
from acerl_np.live import events, parts
from acerl_np.live.events import Event
from acerl_np.live.floor import Floor
from acerl_np.live.orders import Item, NoEvent
from acerl_np.live.parts import LiveVehicle

PLACED = (
    *(events.VehiclePassed, events.VehicleIdle, events.VehicleParked, events.VehicleCharging),
    *(events.VehicleRepaired, events.VehicleBack),
)
"""Events that may say where a vehicle is."""

LONG_AGO = -int(S.NEVER)

Plan = tuple[tuple[int, ...], ...]


def find_tick(now: float) -> int:
    """Return the first whole second from `now` on."""
    return math.ceil(now - 1e-9)


def make_stop(site: int, tick: int) -> Plan:
    """Return the plan of a vehicle that is at a site from a tick on."""
    return (1, 0, 0, 1), (site, tick, int(S.NEVER), 0)


def go_to_rest(vehicle: LiveVehicle, now: float) -> LiveVehicle:
    """Return a vehicle without a task, free, as it goes on to where its plan ends, or stands there."""
    if not vehicle.plan or vehicle.service == parts.OUT:
        return vehicle
    site, came, *_ = vehicle.plan[-1]
    if came <= find_tick(now):
        return vehicle._replace(status=S.IDLE, site=site, way=None)
    way = vehicle.way or parts.Way(vehicle.site, now, vehicle.site, now, 0.0)
    way = way._replace(end=site, loaded=0.0, pause=0.0)
    return vehicle._replace(status=S.ROAMING, finish=float(came), way=way, place=-1)


def find_repair_ticks(floor: Floor, v: int) -> int:
    """Return how long a repair takes in the mean, as the layout says, or else as futures guess it."""
    vehicle, battery = floor.layout.vehicles[v], floor.layout.batteries[v]
    if battery is not None and floor.vehicles[v].level == 0.0:
        return battery.tow
    listed = [item.repair_time for item in vehicle.breakdowns]
    mean = float(floor.problem.unit["seconds"][0])
    if vehicle.random_breakdowns is not None:
        mean = vehicle.random_breakdowns.mean_time_to_repair
    elif listed:
        mean = sum(listed) / len(listed)
    return math.ceil(mean - 1e-9)


class MeetingFloor(Floor):
    """A floor where vehicles meet: ways are planned around each other."""

    def apply(self, item: Item) -> None:
        """Let an event happen, and plans follow the vehicle of it."""
        unloads = isinstance(item, events.TaskRecalled | events.TaskMoved | events.TaskCancelled)
        task = self.find_task(item.task) if unloads else None  # type: ignore[union-attr]
        v = self.find_position(getattr(item, "vehicle", None)) if task is None else task.vehicle
        before, fleet = self.vehicles[v], self.layout.vehicles
        super().apply(item)
        if isinstance(item, events.EdgeClosed | events.EdgeOpened):
            self.plan_around(item)
        elif v >= 0 and self.layout.vehicles is fleet and not isinstance(item, NoEvent):
            self.follow(v, before, item)

    def plan_around(self, event: events.EdgeClosed | events.EdgeOpened) -> None:
        """Plan vehicles anew that were to drive an edge which is closed now, in the order of the fleet."""
        now, index = float(event.time), self.layout.site_index
        shut = {frozenset((index[a], index[b])) for a, b in self.layout.closed}
        for v, vehicle in enumerate(self.vehicles):
            visits = [x for x in vehicle.plan[1:] if x[S.PLAN_OUT] >= now]
            ways = {frozenset((x[0], y[0])) for x, y in pairwise(visits)}
            if shut.isdisjoint(ways) or vehicle.status == S.BROKEN:
                continue
            ends = self.find_ends(vehicle, is_loaded=self.is_loaded(v, now))
            self.put(v, self.replan(v, vehicle, now, *ends, turns=True))

    def find_ends(self, vehicle: LiveVehicle, *, is_loaded: bool) -> tuple[int, int]:
        """Return where a vehicle goes, as `plan` takes it: the row of its task, and its site."""
        if vehicle.task is not None:
            return self.tasks[vehicle.task].row, int(ABOARD) if is_loaded else -1
        is_sent = vehicle.status in (S.PARKING, S.TO_CHARGER)
        return -1, vehicle.way.end if is_sent and vehicle.way is not None else -1

    def put(self, v: int, vehicle: LiveVehicle) -> None:
        """Write a vehicle, and its plan."""
        super().put(v, vehicle)
        self.clock.plan[v, 0] = 0
        self.clock.plan[v, : len(vehicle.plan)] = vehicle.plan or 0

    def find_level(self, v: int, now: float) -> float:
        """Return the energy of a vehicle, by its plan where it drives."""
        own, standing = self.vehicles[v], (S.IDLE, S.QUEUED, S.CHARGING, S.BROKEN)
        if self.layout.batteries[v] is None or not own.plan or own.status in standing:
            return super().find_level(v, now)
        return float(find_live_level(*self.tables, max(now, own.level_time), v))

    def is_loaded(self, v: int, now: float) -> bool:
        """Whether a vehicle has loaded its task, as its plan tells."""
        way = self.vehicles[v].way
        return way is not None and now >= way.loaded

    def warm_up(self) -> None:
        """Compile or load what follows reports, which else the first one would wait for."""
        kernels.plan_way(*self.tables, 0, 0, -1, -1, False)
        kernels.push_visit(*self.tables, 0, 0, 1, 0, 0)
        kernels.halt_vehicle(*self.tables, 0, 0, 0)
        find_live_level(*self.tables, 0.0, 0)

    def plan(
        self, v: int, vehicle: LiveVehicle, now: float, task: int = -1, goal: int = -1
    ) -> LiveVehicle:
        """Return a vehicle with a way to a task, by its row, to a site, or to rest.

        It turns at the next visit of its plan unless it is idle on the board.
        """
        self.hold_broken(now)
        turns = self.vehicles[v].status != S.IDLE
        return self.replan(v, vehicle, now, task, goal, turns=turns)

    def replan(
        self, v: int, vehicle: LiveVehicle, now: float, task: int, goal: int, *, turns: bool
    ) -> LiveVehicle:
        """Return a vehicle with a way from where its plan ends, or from where it may turn, as `plan`."""
        found = kernels.plan_way(*self.tables, find_tick(now), v, task, goal, turns)
        row = self.state.vehicle[0, v]
        if found == kernels.NO_WAY:  # what was reckoned without others stays
            site = vehicle.site if vehicle.way is None else vehicle.way.site
            return vehicle._replace(plan=make_stop(site, find_tick(now)), alone=True)
        way = vehicle.way
        if task >= 0 and way is not None and goal != ABOARD:
            way = way._replace(pause=float(row.pause), loaded=float(row.loaded_tick))
        is_alone, finish = bool(found == kernels.ALONE), float(row.event_tick)
        plan = self.read_plan(v)
        if found == kernels.AROUND:
            self.note_passing(v)
        return vehicle._replace(plan=plan, alone=is_alone, way=way, finish=finish)

    def note_passing(self, v: int) -> None:
        """Take over the plans of vehicles that let another one pass."""
        for w, vehicle in enumerate(self.vehicles):
            if w == v or not vehicle.plan or (plan := self.read_plan(w)) == vehicle.plan:
                continue
            row, way = self.state.vehicle[0, w], vehicle.way
            stand = row.stand_site  # it may still be called back in this round
            if vehicle.task is not None and way is not None:
                way = way._replace(loaded=float(row.loaded_tick), pause=float(row.pause))
            self.put(w, vehicle._replace(plan=plan, way=way, finish=float(row.event_tick)))
            row.stand_site = stand

    def rest(self, v: int, vehicle: LiveVehicle, now: float) -> LiveVehicle:
        """Return a vehicle that was to turn, with the way to where it may rest."""
        return go_to_rest(self.plan(v, vehicle, now), now)

    def follow_way(self, v: int, way: parts.Way, site: int, now: float) -> parts.Way:
        """Return the way on from a site that a vehicle has reached; its plan tells when it is loaded."""
        return way._replace(site=site, began=now, before=site, reached=now)

    def delay(self, v: int, k: int, now: float, came: int | None = None) -> bool:
        """Let a visit of a plan begin at a tick, or else last until now; return whether others can follow."""
        visit, tick = self.vehicles[v].plan[k], find_tick(now)
        planned, times = visit[S.PLAN_OUT], (LONG_AGO, tick)
        if came is not None:
            planned, times = visit[S.PLAN_IN], (came, LONG_AGO)
        elif planned >= tick:
            return True
        is_sound = kernels.push_visit(*self.tables, planned, v, k, *times)
        return self.note_plans(v, bool(is_sound), now)

    def read_plan(self, v: int) -> Plan:
        """Return what kernels have planned for a vehicle."""
        rows = self.state.plan[0, v]
        return tuple(map(tuple, rows[: rows[0, S.PLANNED_VISITS] + 1].tolist()))

    def follow(self, v: int, before: LiveVehicle, event: Event) -> None:
        """Let plans follow an event of a vehicle, which was so before."""
        vehicle, now = self.vehicles[v], float(event.time)
        site: str | None = getattr(event, "site", None)
        if isinstance(event, events.VehicleBroke):
            ticks = find_repair_ticks(self, v)
            if vehicle.way is not None:
                self.state.vehicle["loaded_tick"][0, v] = find_tick(vehicle.way.loaded)
            is_sound = bool(kernels.halt_vehicle(*self.tables, find_tick(now), v, ticks))
            self.note_plans(v, is_sound, now)
            self.put(v, self.vehicles[v]._replace(finish=find_tick(now) + ticks + 1.0))
            return
        if isinstance(event, PLACED) and site is not None:
            self.tell_site(v, before, event, vehicle.site)
        elif isinstance(event, events.VehicleRepaired):
            self.end_repair(v, now, before.finish)
            if vehicle.task is not None:
                self.put(v, self.vehicles[v]._replace(finish=self.find_delivery(self.vehicles[v])))
        elif isinstance(event, events.RecallAnswered):
            if event.done or vehicle.task is None:
                return
            self.plan_from(v, before, vehicle.site, now)
        elif before.task is not None and vehicle.task is None and vehicle.status != S.BROKEN:
            vehicle = vehicle._replace(site=before.site)
            self.put(v, self.replan(v, vehicle, now, -1, -1, turns=True))
        vehicle, level = self.vehicles[v], self.find_level(v, now)
        if vehicle.task is None and vehicle.status in (S.IDLE, S.ROAMING):
            vehicle = vehicle._replace(level=level, level_time=max(now, vehicle.level_time))
            rest = go_to_rest(vehicle, now)
            comes = rest.status != vehicle.status
            self.put(v, rest._replace(since=now) if comes else rest)

    def tell_site(self, v: int, before: LiveVehicle, event: Event, site: int) -> None:
        """Note that a vehicle is at a site: as planned, late, early, or elsewhere."""
        own, now = self.vehicles[v].plan, float(event.time)
        tick, last = find_tick(now), len(own) - 1
        visits = [k for k in range(1, last + 1) if own[k][S.PLAN_SITE] == site]

        def differ(k: int) -> tuple[int, int]:
            came, left = own[k][S.PLAN_IN], own[k][S.PLAN_OUT]
            # Of two visits it is the one at which it has just come, if it was elsewhere before.
            return max(came - tick, tick - left, 0), abs(came - tick) * (before.site != site)

        k = min(visits, key=differ, default=0)
        delivered = isinstance(event, events.VehicleIdle) and event.delivered
        if before.alone:  # there may be a way now
            is_sound = False
        elif delivered and before.task is not None:
            k = own[0][S.PLANNED_DELIVERY] if own else 0
            is_sound = k > 0 and own[k][S.PLAN_SITE] == site and tick >= before.finish
            is_sound = is_sound and self.delay(v, k, now)
        elif (
            k == 0
            or tick < own[k][S.PLAN_IN]
            or (k < last and not isinstance(event, events.VehiclePassed))
        ):
            is_sound = False
        elif before.site != site and tick > own[k][S.PLAN_IN]:
            is_sound = self.delay(v, k, now, came=tick)
        else:
            is_sound = self.delay(v, k, now)
        if not is_sound:
            self.plan_from(v, before, site, now)

    def note_plans(self, v: int, is_sound: bool, now: float) -> bool:
        """Take over plans that kernels have pushed, if they are sound; else a halted vehicle's own alone."""
        for w, vehicle in enumerate(self.vehicles):
            found = self.read_plan(w) if vehicle.plan and (is_sound or w == v) else vehicle.plan
            if found == vehicle.plan:
                continue
            vehicle = vehicle._replace(plan=found)
            _, pickup, delivery, _ = found[0]
            if vehicle.status == S.BROKEN:
                pass  # its finish is when its repair is believed to end
            elif vehicle.task is not None and delivery and vehicle.way is not None:
                way = vehicle.way
                done = found[delivery][S.PLAN_IN] + found[delivery][S.PLAN_STAY]
                if now <= way.loaded and pickup:
                    way = way._replace(loaded=max(way.loaded, float(found[pickup][S.PLAN_IN])))
                vehicle = vehicle._replace(way=way, finish=max(vehicle.finish, float(done)))
            elif vehicle.task is None and vehicle.way is not None:
                came = float(found[-1][S.PLAN_IN])
                vehicle = vehicle._replace(finish=max(vehicle.finish, came))
            self.put(w, vehicle)
        return is_sound

    def plan_from(self, v: int, before: LiveVehicle, site: int, now: float) -> None:
        """Plan a vehicle anew from a site at which it is, to what it does there."""
        vehicle, tick = self.vehicles[v], find_tick(now)
        level, known = self.find_level(v, now), max(now, vehicle.level_time)
        vehicle = vehicle._replace(plan=make_stop(site, tick), level=level, level_time=known)
        way = vehicle.way
        is_loaded = vehicle.has_fetched and (before.has_fetched or way is None or site != way.end)
        is_loaded = is_loaded or (way is not None and now > way.loaded)
        self.put(v, vehicle)
        ends = self.find_ends(vehicle, is_loaded=is_loaded)
        self.put(v, self.replan(v, vehicle, now, *ends, turns=False))

    def find_delivery(self, vehicle: LiveVehicle) -> float:
        """Return when a vehicle delivers as planned, s; its finish where no plan tells."""
        k = vehicle.plan[0][S.PLANNED_DELIVERY] if vehicle.plan else 0
        visit = vehicle.plan[k]
        return float(visit[S.PLAN_IN] + visit[S.PLAN_STAY]) if k else vehicle.finish

    def find_left(self, vehicle: LiveVehicle) -> float:
        """Return how long a vehicle that stands with its load drives on afterwards, as planned, s."""
        if vehicle.status != S.BROKEN:
            return super().find_left(vehicle)
        return max(1.0, self.find_delivery(vehicle) - vehicle.finish)

    def end_repair(self, v: int, now: float, believed: float) -> None:
        """Let a broken vehicle drive on from where it stands, sooner or later than was `believed`."""
        vehicle, tick = self.vehicles[v], find_tick(now)
        own, broke, late = vehicle.plan, find_tick(vehicle.broke), tick - int(believed)
        if not own or not late:
            return
        k = max((k for k in range(1, len(own)) if own[k][S.PLAN_IN] < broke), default=1)
        if k < len(own) - 1 and own[k][S.PLAN_OUT] < broke:  # in mid-edge
            k += 1
            tick = own[k][S.PLAN_IN] + late
            is_sound = late > 0 and self.delay(v, k, now, came=tick)
        else:
            is_sound = late > 0 and self.delay(v, k, now)
        if not is_sound:
            self.plan_from(v, vehicle, own[k][S.PLAN_SITE], tick)

    def hold_broken(self, now: float) -> None:
        """Let vehicles that are broken for longer than was believed hold their places."""
        for v, vehicle in enumerate(self.vehicles):
            if vehicle.status == S.BROKEN and vehicle.plan and vehicle.finish <= now:
                self.end_repair(v, find_tick(now) + 1.0, vehicle.finish)
                self.put(v, self.vehicles[v]._replace(finish=find_tick(now) + 1.0))
