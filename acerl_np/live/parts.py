"""What is known of a task, of a vehicle, and of all of them at one moment."""

from __future__ import annotations

from typing import NamedTuple

from acerl_np.kernels.state import IDLE
from acerl_np.live.events import TaskArrived
from acerl_np.problem.layout import Layout

SERVING, LEAVING, OUT, REMOVING = 0, 1, 2, 3
"""Service of a vehicle: given tasks; out after its task; out of service; removed after its task."""


class LiveTask(NamedTuple):
    """A task that waits or is under way.

    Attributes
    ----------
    event : TaskArrived
    row : int
        Of the tables.
    since : float
        Since when it waits, s.
    vehicle : int
        Position of its vehicle, -1 while it waits.
    slot : int
        Its own slot of the observation, from 1; 0 where its place in the pool is its slot.
    told : TaskArrived or None
        The event as it came, if it is another now.
    """

    event: TaskArrived
    row: int = -1
    since: float = 0.0
    vehicle: int = -1
    slot: int = 0
    told: TaskArrived | None = None

    def change(self, event: TaskArrived) -> LiveTask:
        """Return the task with another event."""
        return self._replace(event=event, told=self.told or self.event)

    def is_of(self, event: TaskArrived) -> bool:
        """Whether this is the task of an event that is told again."""
        return event == (self.told or self.event)


class LiveVehicle(NamedTuple):
    """What a board holds of a vehicle.

    Attributes
    ----------
    status : int
        IDLE, WORKING or BROKEN.
    service : int
        SERVING, LEAVING, OUT or REMOVING.
    site : int
        The last that it visited.
    origin : int
        Where it was given its task.
    has_fetched : bool
        Whether it has been at its task's pickup.
    task : str or None
    finish : float
        s, when it should have delivered.
    broke : float
        s, when it broke down or went out of service.
    """

    status: int
    service: int
    site: int
    origin: int
    has_fetched: bool = False
    task: str | None = None
    finish: float = 0.0
    broke: float = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether it is idle and in service."""
        return self.status == IDLE and self.service == SERVING


class Snapshot(NamedTuple):
    """A situation, to return to; what it holds is never changed in place.

    Attributes
    ----------
    layout : Layout
    vehicles : list of LiveVehicle
    tasks : dict of LiveTask
        By name.
    pool : list of str
    planned : dict of LiveTask
        Held back, by name.
    """

    layout: Layout
    vehicles: list[LiveVehicle]
    tasks: dict[str, LiveTask]
    pool: list[str]
    planned: dict[str, LiveTask]


def find_arrival(event: TaskArrived) -> float:
    """Return when a task begins to wait, s: at its arrival, or at its earliest start if that is later."""
    return event.time if event.earliest_start is None else max(event.time, event.earliest_start)
