"""What tasks and vehicles go through: the states, and which event is allowed in which of them."""

from __future__ import annotations

from typing import NamedTuple

from acerl_np.kernels.core import state as S
from acerl_np.live import events

UNKNOWN = "unknown"
ANNOUNCED, WAITING, UNSERVABLE, GIVEN, LOADED, STRANDED, DELIVERED, CANCELLED = STATES = (
    *("announced", "waiting", "unservable", "given", "loaded", "stranded", "delivered"),
    "cancelled",
)

OPEN = ANNOUNCED, WAITING, UNSERVABLE
FOUND = {
    **{state: state for state in (UNKNOWN, ANNOUNCED, WAITING, UNSERVABLE)},
    GIVEN: "on vehicle '{vehicle}'",
    LOADED: "on vehicle '{vehicle}', which has been at its pickup",
    STRANDED: "on vehicle '{vehicle}', which stands with it",
}
"""How errors name the state that was found; a task that has ended is unknown, and its name may come again."""

OF_TASKS: dict[type, tuple[tuple[str, ...], str]] = {
    events.TaskArrived: ((UNKNOWN,), "a name that no task has"),
    events.TaskChanged: (OPEN, "a waiting task"),
    events.TaskCancelled: ((*OPEN, STRANDED), "a waiting task"),
    events.TaskMoved: ((*OPEN, STRANDED), "one that waits, or is stranded"),
    events.TaskAnnounced: ((*OPEN, GIVEN, LOADED, STRANDED), "one that is held back or waits"),
    events.TaskReady: ((*OPEN, GIVEN, LOADED, STRANDED), "one that is held back or waits"),
    events.TaskRecalled: ((GIVEN,), "one under way to its pickup"),
}
"""In which states of its task an event is allowed, and how errors say so."""

SLACK = 300.0
"""s that a task may take beyond twice the time that was reckoned, before it is overdue."""

ERRANDS = (S.ROAMING, S.PARKING, S.TO_CHARGER, S.QUEUED, S.CHARGING)
"""What a vehicle without a task may do besides being idle or broken."""

FREE = (S.IDLE, *ERRANDS)
ANY = (S.IDLE, S.WORKING, S.BROKEN, *ERRANDS)
OF_VEHICLES: dict[type, tuple[int, ...]] = {
    events.VehicleIdle: (S.WORKING,),
    events.VehiclePassed: (S.WORKING, *FREE),
    events.VehicleParked: FREE,
    events.VehicleCharging: FREE,  # that it ends: where it charges
    events.RecallAnswered: ANY,
    events.VehicleBroke: (S.WORKING, *FREE),
    events.VehicleRepaired: (S.BROKEN,),
    events.VehicleRemoved: ANY,
    events.VehicleOutOfService: ANY,
    events.VehicleBack: ANY,
}
"""In which statuses of its vehicle an event is allowed."""


class TaskState(NamedTuple):
    """Where a task is.

    Attributes
    ----------
    state : str
        "announced" (held back), "waiting", "unservable" (it waits, but no vehicle of the fleet can do it),
        "given", "loaded" (its vehicle has been at its pickup), "stranded" (on a vehicle that has broken down
        or is out of service), "delivered" or "cancelled".
    since : float
        s, since when; of one that is held back when it was told, of one that waits when it was ready.
    vehicle : str
        The vehicle that has it, or had it at last; "" without one.
    reason : str
        Why it is unservable; else "".
    """

    state: str
    since: float
    vehicle: str = ""
    reason: str = ""
