"""Where vehicles meet: what they are believed to do, planned around each other as in the simulator.

A way is planned as its vehicle is sent. What is reported corrects the plans: who is late pushes those who
planned later, who is early or elsewhere is planned anew from there.
"""

from __future__ import annotations

import math

from acerl_np.kernels.driving.planner import ABOARD
from acerl_np.kernels.ground import state as S
from acerl_np.kernels.playing import meeting as kernels
from acerl_np.kernels.playing.live import find_live_level
from acerl_np.live import events, parts
from acerl_np.live.board import Board, FreeWays
from acerl_np.live.events import Event
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


def read_plan(board: Board, v: int) -> Plan:
    """Return what kernels have planned for a vehicle."""
    rows = board.state.plan[0, v]
    return tuple(map(tuple, rows[: rows[0, S.PLANNED_VISITS] + 1].tolist()))


def plan(
    board: Board,
    v: int,
    vehicle: LiveVehicle,
    now: float,
    *,
    task: int = -1,
    goal: int = -1,
    turns: bool | None = None,
) -> LiveVehicle:
    """Return a vehicle with a way, from where it may turn, to a task, by its row, to a site, or to rest.

    By default, as for an order, it turns at the next visit of its plan unless it is idle on the board.
    """
    if turns is None:
        turns = board.vehicles[v].status != S.IDLE
        hold_broken(board, now)
    tables = board.problem, board.state, board.clock
    found = kernels.plan_way(*tables, find_tick(now), v, task, goal, turns)
    row = board.state.vehicle[0, v]
    if found == kernels.NO_WAY:  # what was reckoned without others stays
        site = vehicle.site if vehicle.way is None else vehicle.way.site
        return vehicle._replace(plan=make_stop(site, find_tick(now)), alone=True)
    vehicle = vehicle._replace(plan=read_plan(board, v), alone=bool(found == kernels.ALONE))
    if task >= 0 and vehicle.way is not None and goal != ABOARD:
        pause, loaded = row.pause, row.loaded_tick
        vehicle = vehicle._replace(
            way=vehicle.way._replace(pause=float(pause), loaded=float(loaded))
        )
    return vehicle._replace(finish=float(row.event_tick))


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


def follow(board: Board, v: int, before: LiveVehicle, event: Event) -> None:
    """Let plans follow an event of a vehicle, which was so before."""
    vehicle, now = board.vehicles[v], float(event.time)
    site: str | None = getattr(event, "site", None)
    if isinstance(event, events.VehicleBroke):
        ticks, tables = find_repair_ticks(board, v), (board.problem, board.state, board.clock)
        is_sound = bool(kernels.halt_vehicle(*tables, find_tick(now), v, ticks))
        note_plans(board, v, is_sound, now)
        board.put(v, board.vehicles[v]._replace(finish=find_tick(now) + ticks + 1.0))
        return
    if isinstance(event, PLACED) and site is not None:
        tell_site(board, v, before, event, vehicle.site)
    elif isinstance(event, events.VehicleRepaired):
        end_repair(board, v, now)
    elif isinstance(event, events.RecallAnswered):
        if event.done or vehicle.task is None:
            return
        plan_from(board, v, before, vehicle.site, now)
    elif before.task is not None and vehicle.task is None:
        vehicle = vehicle._replace(site=before.site)
        board.put(v, plan(board, v, vehicle, now, turns=True))
    vehicle = board.vehicles[v]
    if vehicle.task is None and vehicle.status in (S.IDLE, S.ROAMING):
        board.put(v, go_to_rest(vehicle, now))


def find_repair_ticks(board: Board, v: int) -> int:
    """Return how long a repair takes in the mean, as the layout says, or else as futures guess it."""
    vehicle, battery = board.layout.vehicles[v], board.layout.batteries[v]
    if battery is not None and board.vehicles[v].level == 0.0:
        return battery.tow
    listed = [item.repair_time for item in vehicle.breakdowns]
    mean = float(board.problem.unit["seconds"][0])
    if vehicle.random_breakdowns is not None:
        mean = vehicle.random_breakdowns.mean_time_to_repair
    elif listed:
        mean = sum(listed) / len(listed)
    return math.ceil(mean - 1e-9)


def tell_site(board: Board, v: int, before: LiveVehicle, event: Event, site: int) -> None:
    """Note that a vehicle is at a site: as planned, late, early, or elsewhere."""
    own, now = board.vehicles[v].plan, float(event.time)
    tick, last = find_tick(now), len(own) - 1
    visits = [k for k in range(1, last + 1) if own[k][S.PLAN_SITE] == site]
    k = min(
        visits, key=lambda k: max(own[k][S.PLAN_IN] - tick, tick - own[k][S.PLAN_OUT], 0), default=0
    )
    delivered = isinstance(event, events.VehicleIdle) and event.delivered
    if before.alone:  # there may be a way now
        is_sound = False
    elif delivered and before.task is not None:
        k = own[0][S.PLANNED_DELIVERY] if own else 0
        is_sound = k > 0 and own[k][S.PLAN_SITE] == site and tick >= before.finish
        is_sound = is_sound and leave_late(board, v, k, now)
    elif (
        k == 0
        or tick < own[k][S.PLAN_IN]
        or (k < last and not isinstance(event, events.VehiclePassed))
    ):
        is_sound = False
    elif before.site != site and tick > own[k][S.PLAN_IN]:
        is_sound = push(board, v, k, own[k][S.PLAN_IN], now, came=tick)
    else:
        is_sound = leave_late(board, v, k, now)
    if not is_sound:
        plan_from(board, v, before, site, now)


def leave_late(board: Board, v: int, k: int, now: float) -> bool:
    """Let a vehicle be at a visit of its plan still; return whether there is an order of plans so."""
    left = board.vehicles[v].plan[k][S.PLAN_OUT]
    return left >= find_tick(now) or push(board, v, k, left, now, left=find_tick(now))


def push(
    board: Board,
    v: int,
    k: int,
    planned: int,
    now: float,
    *,
    came: int = LONG_AGO,
    left: int = LONG_AGO,
) -> bool:
    """Let a visit, planned for a tick, begin or end later; return whether there is an order of plans so."""
    tables = board.problem, board.state, board.clock
    is_sound = kernels.push_visit(*tables, planned, v, k, came, left)
    return note_plans(board, v, bool(is_sound), now)


def note_plans(board: Board, v: int, is_sound: bool, now: float) -> bool:
    """Take over plans that kernels have pushed, if they are sound; else a halted vehicle's own alone."""
    for w, vehicle in enumerate(board.vehicles):
        found = read_plan(board, w) if vehicle.plan and (is_sound or w == v) else vehicle.plan
        if found == vehicle.plan:
            continue
        vehicle = vehicle._replace(plan=found)
        _, pickup, delivery, _ = found[0]
        if vehicle.task is not None and delivery and vehicle.way is not None:
            way = vehicle.way
            done = found[delivery][S.PLAN_IN] + found[delivery][S.PLAN_STAY]
            if now < way.loaded and pickup:
                way = way._replace(loaded=max(way.loaded, float(found[pickup][S.PLAN_IN])))
            vehicle = vehicle._replace(way=way, finish=max(vehicle.finish, float(done)))
        elif vehicle.task is None and vehicle.way is not None:
            came = float(found[-1][S.PLAN_IN])
            vehicle = vehicle._replace(finish=max(vehicle.finish, came))
        board.put(w, vehicle)
    return is_sound


def plan_from(board: Board, v: int, before: LiveVehicle, site: int, now: float) -> None:
    """Plan a vehicle anew from a site at which it is, to what it does there."""
    vehicle, tick, row, goal = board.vehicles[v], find_tick(now), -1, -1
    level, known = board.find_level(v, now), max(now, vehicle.level_time)
    vehicle = vehicle._replace(plan=make_stop(site, tick), level=level, level_time=known)
    way = vehicle.way
    if vehicle.task is not None and way is not None:
        row = board.tasks[vehicle.task].row
        is_loaded = vehicle.has_fetched and (before.has_fetched or site != way.end)
        goal = int(ABOARD) if is_loaded or now > way.loaded else -1
    elif vehicle.status in (S.PARKING, S.TO_CHARGER) and way is not None:
        goal = way.end
    board.put(v, vehicle)
    board.put(v, plan(board, v, vehicle, now, task=row, goal=goal, turns=False))


def end_repair(board: Board, v: int, now: float) -> None:
    """Let a broken vehicle drive on from where it stands, sooner or later than was believed."""
    vehicle, tick = board.vehicles[v], find_tick(now)
    own, broke, late = vehicle.plan, find_tick(vehicle.broke), tick - int(vehicle.finish)
    if not own or not late:
        return
    k = max((k for k in range(1, len(own)) if own[k][S.PLAN_IN] < broke), default=1)
    if k < len(own) - 1 and own[k][S.PLAN_OUT] < broke:  # in mid-edge
        k += 1
        tick = own[k][S.PLAN_IN] + late
        is_sound = late > 0 and push(board, v, k, own[k][S.PLAN_IN], now, came=tick)
    else:
        is_sound = late > 0 and leave_late(board, v, k, now)
    if not is_sound:
        plan_from(board, v, vehicle, own[k][S.PLAN_SITE], tick)


def hold_broken(board: Board, now: float) -> None:
    """Let vehicles that are broken for longer than was believed hold their places."""
    for v, vehicle in enumerate(board.vehicles):
        if vehicle.status == S.BROKEN and vehicle.plan and vehicle.finish <= now:
            end_repair(board, v, find_tick(now) + 1.0)
            board.put(v, board.vehicles[v]._replace(finish=find_tick(now) + 1.0))


class MetWays(FreeWays):
    """Ways of vehicles that meet: planned around each other."""

    plans = True

    def write(self, board: Board, v: int, vehicle: LiveVehicle) -> None:
        """Show kernels the plan of a vehicle."""
        board.clock.plan[v, 0] = 0
        board.clock.plan[v, : len(vehicle.plan)] = vehicle.plan or 0

    def set_out(
        self,
        board: Board,
        v: int,
        vehicle: LiveVehicle,
        now: float,
        *,
        task: int = -1,
        goal: int = -1,
    ) -> LiveVehicle:
        """Return a vehicle that is sent to a task, by its row, or to a site."""
        return plan(board, v, vehicle, now, task=task, goal=goal)

    def rest(self, board: Board, v: int, vehicle: LiveVehicle, now: float) -> LiveVehicle:
        """Return a vehicle that was to turn, with the way to where it may rest."""
        return go_to_rest(plan(board, v, vehicle, now), now)

    def find_level(self, board: Board, v: int, now: float) -> float | None:
        """Return the energy of a vehicle by its plan, None without one."""
        own = board.vehicles[v]
        if not own.plan or own.status in (S.IDLE, S.QUEUED):
            return None
        return float(find_live_level(board.problem, board.state, board.clock, now, v))

    def follow(self, board: Board, v: int, before: LiveVehicle, event: Event) -> None:
        """Let plans follow an event of a vehicle, which was so before."""
        follow(board, v, before, event)

    def warm_up(self, board: Board) -> None:
        """Compile or load what follows reports, which else the first one would wait for."""
        tables = board.problem, board.state, board.clock
        kernels.plan_way(*tables, 0, 0, -1, -1, False)
        kernels.push_visit(*tables, 0, 0, 1, 0, 0)
        kernels.halt_vehicle(*tables, 0, 0, 0)
        find_live_level(*tables, 0.0, 0)
