"""What each event does to the floor as the dispatcher knows it, and which events cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from acerl_np.kernels.state import BROKEN, IDLE, WORKING
from acerl_np.live.board import Board
from acerl_np.live.day import Day
from acerl_np.live.events import (
    Event,
    TaskArrived,
    TaskCancelled,
    TaskChanged,
    TaskRecalled,
    VehicleAdded,
    VehicleBack,
    VehicleBroke,
    VehicleIdle,
    VehicleOutOfService,
    VehiclePassed,
    VehicleRemoved,
    VehicleRepaired,
)
from acerl_np.live.parts import LEAVING, OUT, REMOVING, SERVING, LiveTask, LiveVehicle
from acerl_np.live.tasks import Situation as Situation
from acerl_np.live.tasks import TaskFloor, name_event
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_VEHICLES
from acerl_np.problem.parts import Vehicle
from acerl_np.support.errors import EventError, LayoutError, PolicyError, describe

STATUS_NAMES = {IDLE: "idle", WORKING: "working", BROKEN: "broken"}


class Given(NamedTuple):
    """An assignment that has been given.

    Attributes
    ----------
    time : float
        s.
    vehicle, task : str
    """

    time: float
    vehicle: str
    task: str


class DayBegan(NamedTuple):
    """A new day: what has arrived and been delivered before is forgotten.

    Attributes
    ----------
    time, start : float
        s, when it was said, and time zero of the day.
    """

    time: float
    start: float


Item = Event | Given | DayBegan


class Floor(TaskFloor):
    """What is known about the floor, and what events do to it.

    Parameters
    ----------
    board : Board
    check_layout : callable
        Refuses a fleet that the policy cannot serve, with a PolicyError.
    """

    def __init__(self, board: Board, check_layout: Callable[[Layout, str], None]) -> None:
        super().__init__(board)
        self._check_layout = check_layout
        self._does: dict[type, Callable[[Any], None]] = {
            TaskArrived: self._arrive,
            TaskChanged: self._change,
            TaskCancelled: self._cancel,
            TaskRecalled: self._recall,
            VehicleIdle: self._become_idle,
            VehiclePassed: self._pass,
            VehicleBroke: self._break,
            VehicleRepaired: self._repair,
            VehicleAdded: self._add,
            VehicleRemoved: self._withdraw,
            VehicleOutOfService: self._withdraw,
            VehicleBack: self._come_back,
            Given: self._give,
            DayBegan: self._begin_day,
        }

    def apply(self, item: Item) -> None:
        """Let an event happen, or an assignment that has been given.

        Raises
        ------
        EventError
            If it cannot be; nothing is changed then.
        """
        self._does[type(item)](item)

    def check_assignment(self, what: str, vehicle: str, task: str) -> tuple[int, int]:
        """Return the vehicle's position, and the task's in the pool.

        Raises
        ------
        EventError
            If the vehicle is not idle and in service, or the task does not wait or is too heavy.
        """
        v = self.find_vehicle(vehicle, what)
        own = self.board.vehicles[v]
        if own.status != IDLE:
            raise EventError(f"{what}: vehicle '{vehicle}' is not idle")
        if own.service != SERVING:
            raise EventError(f"{what}: vehicle '{vehicle}' is out of service")
        if task not in self.board.pool:
            raise EventError(f"{what}: task '{describe(task)}' does not wait")
        demand = self.board.tasks[task].event.demand
        capacity = self.board.layout.vehicles[v].capacity
        if capacity and demand > capacity:
            raise EventError(
                f"{what}: task '{task}' has demand {demand:g}; "
                f"vehicle '{vehicle}' carries {capacity:g}"
            )
        return v, self.board.pool.index(task)

    # Vehicles

    def _recall(self, event: TaskRecalled) -> None:
        what, board = name_event(event), self.board
        task = board.tasks.get(event.task)
        if task is None or task.vehicle < 0:
            found = "unknown" if task is None else "waiting"
            raise EventError(
                f"{what}: task '{describe(event.task)}' is {found}; expected one under way"
            )
        v = task.vehicle
        vehicle = board.vehicles[v]
        if vehicle.has_fetched:
            raise EventError(
                f"{what}: vehicle '{board.layout.vehicles[v].id}' has been at the pickup of task "
                f"'{event.task}'; expected one on its way there"
            )
        site = board.find_next_site(task)
        self._drop(v, event.time, waits=not event.cancel)
        self._end_work(v, site, event.time)

    def _drop(self, v: int, since: float, *, waits: bool = True) -> None:
        """Take the task off a vehicle, if it has one."""
        task = self.board.drop(v, since)
        if task is not None and waits:
            self.board.wait(task)
        elif task is not None:
            self.board.leave(task)

    def _expect(self, event: Any, *statuses: int) -> tuple[int, LiveVehicle]:
        """Return a vehicle that has one of these statuses."""
        what = name_event(event)
        v = self.find_vehicle(event.vehicle, what)
        vehicle = self.board.vehicles[v]
        if vehicle.status not in statuses:
            expected = " or ".join(STATUS_NAMES[status] for status in statuses)
            raise EventError(
                f"{what}: vehicle '{event.vehicle}' is {STATUS_NAMES[vehicle.status]}; "
                f"expected it to be {expected}"
            )
        return v, vehicle

    def _become_idle(self, event: VehicleIdle) -> None:
        v, _ = self._expect(event, WORKING)
        site = self._find_site(event.site, name_event(event))
        task = self.board.drop(v)
        if task is not None:
            self._deliver(task, float(event.time))
        self._end_work(v, site, event.time)

    def _deliver(self, task: LiveTask, now: float) -> None:
        self.day.delay += max(0.0, now - (task.event.time + task.event.expiry))
        self.day.delivered += 1
        self.board.leave(task)

    def _end_work(self, v: int, site: int, now: float, status: int = IDLE) -> None:
        """Let a vehicle stand at a site without a task; one that was to leave then leaves."""
        vehicle = self.board.vehicles[v]
        if vehicle.service == REMOVING:
            self._remove(v)
            return
        service = OUT if vehicle.service == LEAVING else vehicle.service
        broke = float(now) if service == OUT or status == BROKEN else vehicle.broke
        self.board.put(
            v, vehicle._replace(status=status, service=service, site=site, broke=broke, task=None)
        )

    def _pass(self, event: VehiclePassed) -> None:
        v, vehicle = self._expect(event, WORKING, IDLE)
        site = self._find_site(event.site, name_event(event))
        has_fetched = vehicle.has_fetched
        if vehicle.task is not None and not has_fetched:
            pickup = self.board.tasks[vehicle.task].event.pickup
            has_fetched = site == self.board.layout.site_index[pickup]
        self.board.put(v, vehicle._replace(site=site, has_fetched=has_fetched))

    def _break(self, event: VehicleBroke) -> None:
        v, vehicle = self._expect(event, WORKING, IDLE)
        # As in the simulator: the waiting of its task begins anew a second before.
        self._drop(v, float(event.time) - 1.0)
        self._end_work(v, vehicle.site, event.time, BROKEN)

    def _repair(self, event: VehicleRepaired) -> None:
        v, vehicle = self._expect(event, BROKEN)
        site = (
            vehicle.site if event.site is None else self._find_site(event.site, name_event(event))
        )
        self.board.put(v, vehicle._replace(status=IDLE, site=site))

    # The fleet

    def _add(self, event: VehicleAdded) -> None:
        what, layout = name_event(event), self.board.layout
        if not isinstance(event.vehicle, str) or not event.vehicle:
            raise EventError(f"{what}: vehicle: read '{describe(event.vehicle)}'; expected a name")
        if event.vehicle in self._vehicles:
            raise EventError(f"{what}: vehicle '{event.vehicle}' is in the fleet already")
        self._find_site(event.site, what)
        if len(layout.vehicles) == MAX_VEHICLES:
            raise EventError(f"{what}: {MAX_VEHICLES:,} vehicles already; expected fewer")
        try:
            added = Vehicle(event.vehicle, event.site, event.speed, event.capacity)
            self._set_fleet([*layout.vehicles, added], what)
        except LayoutError as error:
            raise EventError(f"{what}: {error}") from error

    def _withdraw(self, event: VehicleOutOfService | VehicleRemoved) -> None:
        v, vehicle = self._expect(event, IDLE, WORKING, BROKEN)
        is_removal = isinstance(event, VehicleRemoved)
        if not is_removal and vehicle.service != SERVING:
            raise EventError(
                f"{name_event(event)}: vehicle '{event.vehicle}' is out of service, or about to be; "
                "expected one in service"
            )
        if is_removal:
            self._check_rest(v, name_event(event))
        service = REMOVING if is_removal else LEAVING
        self.board.put(v, vehicle._replace(service=service))
        if vehicle.status != WORKING or event.at_once:
            self._drop(v, float(event.time) - 1.0)
            status = BROKEN if vehicle.status == BROKEN else IDLE
            self._end_work(v, vehicle.site, event.time, status)

    def _come_back(self, event: VehicleBack) -> None:
        v, vehicle = self._expect(event, IDLE, WORKING, BROKEN)
        if vehicle.service not in (OUT, LEAVING):
            raise EventError(
                f"{name_event(event)}: vehicle '{event.vehicle}' is not out of service; "
                "expected it to be"
            )
        site = (
            vehicle.site if event.site is None else self._find_site(event.site, name_event(event))
        )
        self.board.put(v, vehicle._replace(service=SERVING, site=site))

    def _check_rest(self, v: int, what: str) -> None:
        """Refuse a removal that would leave nobody, or nobody whom the policy serves."""
        rest = [
            vehicle
            for w, vehicle in enumerate(self.board.layout.vehicles)
            if w != v and self.board.vehicles[w].service != REMOVING
        ]
        if not rest:
            raise EventError(f"{what}: the last vehicle; expected at least one to stay")
        self._find_fleet(rest, what)

    def _remove(self, v: int) -> None:
        rest = [item for w, item in enumerate(self.board.layout.vehicles) if w != v]
        self._set_fleet(rest, "VehicleRemoved")

    def _find_fleet(self, vehicles: Iterable[Vehicle], what: str) -> Layout:
        """Return the floor with another fleet."""
        layout = self.board.layout.with_fleet(vehicles)
        try:
            self._check_layout(layout, what)
        except PolicyError as error:
            raise EventError(str(error)) from error
        return layout

    def _set_fleet(self, vehicles: Iterable[Vehicle], what: str) -> None:
        """Change the fleet; vehicles that stay keep what they do."""
        layout, board = self._find_fleet(vehicles, what), self.board
        before = board.snapshot()
        known = {
            vehicle.id: own
            for vehicle, own in zip(before.layout.vehicles, before.vehicles, strict=True)
        }
        own = []
        tasks = dict(before.tasks)
        for v, vehicle in enumerate(layout.vehicles):
            start = layout.site_index[vehicle.start]
            own.append(known.get(vehicle.id) or LiveVehicle(IDLE, SERVING, start, start))
            name = own[v].task
            if name is not None:
                tasks[name] = tasks[name]._replace(vehicle=v)
        board.restore(before._replace(layout=layout, vehicles=own, tasks=tasks))
        self._learn_fleet()

    # Assignments, days

    def _give(self, given: Given) -> None:
        v, position = self.check_assignment(
            f"assignment at {given.time} s", given.vehicle, given.task
        )
        self.board.carry(v, position, given.time)

    def _begin_day(self, item: DayBegan) -> None:
        self.day = Day(item.start)
