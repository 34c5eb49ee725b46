"""What a control system tells the dispatcher, and what the dispatcher answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, Literal, NamedTuple

from acerl_np.support.errors import EventError, describe, refuse
from acerl_np.support.fields import is_real, is_whole


@dataclass(frozen=True)
class Event:
    """What has happened on the floor: an event is of one of the classes below.

    Attributes
    ----------
    time : float
        s; the same clock for all events.
    """

    time: float


@dataclass(frozen=True)
class _OfTask(Event):
    task: str


@dataclass(frozen=True)
class _OfVehicle(Event):
    vehicle: str


@dataclass(frozen=True)
class _AtSite(_OfVehicle):
    site: str


@dataclass(frozen=True)
class TaskArrived(_OfTask):
    """A task begins to wait.

    Attributes
    ----------
    time : float
        s; the same clock for all events.
    task : str
        Not the name of a task that waits or is under way.
    pickup, delivery : str
        Different sites or stations, named as in a record.
    expiry : float
        s after `time` at which it is due; of one that is announced or follows another, after it is ready.
        Where the layout lists machines, inf: never.
    handling_time : float
        s.
    demand : float
        Units of load.
    priority : float
        Of the waiting tasks that a vehicle may carry it is offered those with the highest.
    earliest_start : float or None
        s, of the same clock: held back until then, and due as it was.
    after : str
        A task that is known: held back until `TaskAnnounced` or `TaskReady`.
    processing : float
        s that a machine at the delivery needs.
    announced : float
        How long before it is ready it will be announced, s; inf: when the processing before it begins. What
        is played ahead goes by that.

    See Also
    --------
    Dispatcher : What it is fed to.
    VehicleIdle : When it is delivered.

    Examples
    --------
    >>> import acerl_np
    >>> acerl_np.TaskArrived(0.0, "t1", pickup="st1", delivery="st5", expiry=400.0).priority
    0.0
    """

    pickup: str
    delivery: str
    expiry: float
    handling_time: float = 0.0
    demand: float = 0.0
    priority: float = 0.0
    earliest_start: float | None = None
    after: str = ""
    processing: float = 0.0
    announced: float = 0.0


@dataclass(frozen=True)
class TaskAnnounced(_OfTask):
    """It is known when a task is ready that is held back: from now on it may be given to a vehicle.

    The vehicle waits at the pickup until the task is ready. Announced again, it is ready at another time.

    Attributes
    ----------
    time : float
        s.
    task : str
    ready : float
        s, of the same clock.
    """

    ready: float


class TaskReady(_OfTask):
    """A task that is held back, or was announced, may be loaded from now on.

    Attributes
    ----------
    time : float
        s.
    task : str
    """


@dataclass(frozen=True)
class MachineBusy(Event):
    """What is left of all that a machine processes, and of what waits for it; its servers share that.

    Attributes
    ----------
    time : float
        s.
    site : str
    seconds : float
        All tasks together.
    """

    site: str
    seconds: float


@dataclass(frozen=True)
class TaskChanged(_OfTask):
    """A task that waits or is held back is due at another time, or has another priority.

    Attributes
    ----------
    time : float
        s.
    task : str
    due : float or None
        s, of the same clock; None leaves it.
    priority : float or None
        None leaves it.
    """

    due: float | None = None
    priority: float | None = None


class TaskCancelled(_OfTask):
    """A task that waits or is held back is withdrawn.

    Attributes
    ----------
    time : float
        s.
    task : str
    """


@dataclass(frozen=True)
class TaskRecalled(_OfTask):
    """A task is taken off a vehicle that has not reached its pickup.

    The vehicle is idle at the next site on its way. The task waits again, last in the pool, from now on;
    or it is cancelled.

    Attributes
    ----------
    time : float
        s.
    task : str
        Under way.
    cancel : bool
    """

    cancel: bool = False


@dataclass(frozen=True)
class TaskMoved(_OfTask):
    """The load of a task stands at another site, and waits there for any vehicle.

    It may have been on a vehicle that has broken down.

    Attributes
    ----------
    time : float
        s.
    task : str
        Not under way, but for one that is stranded.
    site : str
        Its pickup from now on.
    """

    site: str


@dataclass(frozen=True)
class VehicleIdle(_AtSite):
    """A working vehicle has delivered its task and stands at a site.

    Attributes
    ----------
    time : float
        s.
    vehicle, site : str
    delivered : bool
        Then `site` is the task's delivery. With False the vehicle has given its task up, wherever it stands:
        the task waits again from now on, last in the pool.

    See Also
    --------
    Dispatcher : What it is fed to.
    VehiclePassed : A vehicle on its way.

    Examples
    --------
    >>> import acerl_np
    >>> acerl_np.VehicleIdle(200.0, "v0", site="st5").delivered
    True
    """

    delivered: bool = True


class VehiclePassed(_AtSite):
    """A vehicle that works or is sent somewhere, or that somebody moves while it is idle, has reached a site.

    At the charger to which it was sent it waits from then on until `VehicleCharging`.

    Attributes
    ----------
    time : float
        s.
    vehicle, site : str
    """


class VehicleParked(_AtSite):
    """A vehicle without a task stands where it parks: one that was sent there, or that somebody moved.

    Attributes
    ----------
    time : float
        s.
    vehicle, site : str
    """


@dataclass(frozen=True)
class VehicleCharging(_AtSite):
    """A vehicle begins to charge at a charger's site, or ends and is idle there.

    Attributes
    ----------
    time : float
        s.
    vehicle, site : str
    begins : bool
    """

    begins: bool = True


@dataclass(frozen=True)
class VehicleLevel(_OfVehicle):
    """What a vehicle's battery holds; it corrects what has been reckoned.

    Attributes
    ----------
    time : float
        s.
    vehicle : str
    level : float or None
        In the layout's unit, from 0 to the battery's capacity.
    percent : float or None
        Of the capacity, in the place of `level`.
    """

    level: float | None = None
    percent: float | None = None


@dataclass(frozen=True)
class RecallAnswered(_OfVehicle):
    """A vehicle was told to give a task back: it has, or it has loaded it before.

    Attributes
    ----------
    time : float
        s.
    vehicle, task : str
    done : bool
        With False the vehicle keeps the task: another one that has it meanwhile loses it, and a task that
        the vehicle was given instead waits again.
    """

    task: str
    done: bool = True


class VehicleBroke(_OfVehicle):
    """A vehicle breaks down; a task whose pickup it has not reached waits again, last in the pool.

    A load that is on it stays there: its task is stranded until `VehicleRepaired` or `TaskMoved`. With
    `loads="return"` of the dispatcher its task waits again, too.

    Attributes
    ----------
    time : float
        s.
    vehicle : str
    """


@dataclass(frozen=True)
class VehicleRepaired(_OfVehicle):
    """A broken vehicle is idle again, where it broke down or at `site`; one with a load drives on with it.

    Attributes
    ----------
    time : float
        s.
    vehicle : str
    site : str or None
    """

    site: str | None = None


@dataclass(frozen=True)
class VehicleAdded(_AtSite):
    """A vehicle joins the fleet, idle at a site.

    Attributes
    ----------
    time : float
        s.
    vehicle, site : str
    speed : float
        m/s.
    capacity : float
        Units of load, 0 for any.
    """

    speed: float = 1.0
    capacity: float = 0.0


@dataclass(frozen=True)
class VehicleRemoved(_OfVehicle):
    """A vehicle leaves the fleet for good.

    One that works leaves when it has delivered; with `at_once` now, and its task waits again. One with a load
    on it cannot leave so: that must be told elsewhere before.

    Attributes
    ----------
    time : float
        s.
    vehicle : str
    at_once : bool
    """

    at_once: bool = False


@dataclass(frozen=True)
class VehicleOutOfService(_OfVehicle):
    """A vehicle is given no more tasks until `VehicleBack`: charging, service, driven by hand.

    One that works delivers its task first; with `at_once` it stops now, and its task waits again, or is
    stranded, as after a breakdown.

    Attributes
    ----------
    time : float
        s.
    vehicle : str
    at_once : bool
    """

    at_once: bool = False


@dataclass(frozen=True)
class VehicleBack(_OfVehicle):
    """A vehicle that is out of service, or about to be, serves again, where it stands or at `site`.

    Attributes
    ----------
    time : float
        s.
    vehicle : str
    site : str or None
    """

    site: str | None = None


@dataclass(frozen=True)
class _OfEdge(Event):
    a: str
    b: str


class EdgeClosed(_OfEdge):
    """Nobody is sent over the edge between two sites, in either direction, until `EdgeOpened`.

    A vehicle that is on it finishes it.

    Attributes
    ----------
    time : float
        s.
    a, b : str
        Sites that an edge joins.
    """


class EdgeOpened(_OfEdge):
    """The edge between two sites that was closed may be driven again.

    Attributes
    ----------
    time : float
        s.
    a, b : str
    """


def _list_kinds(parent: type[Event]) -> Iterator[type[Event]]:
    for kind in parent.__subclasses__():
        if kind.__name__[0] != "_":
            yield kind
        yield from _list_kinds(kind)


EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in _list_kinds(Event)}
"""Every kind of event, by its name."""

NUMBERS: dict[type, set[str]] = {
    kind: {field.name for field in fields(kind) if field.type == "float"}
    for kind in EVENTS.values()
}
"""Of every kind, the names of the fields that always hold a number."""


def as_told(event: Event, number: int | None) -> tuple[Event, int | None]:
    """Return an event as one of the classes above, and the plant's own number of it as Python's.

    An EventError if it is no event, has no time, or the number is not whole.
    """
    name = type(event).__name__
    if EVENTS.get(name) is not type(event):  # of a class derived from one, or of none
        kind = next((kind for kind in EVENTS.values() if isinstance(event, kind)), None)
        if kind is None:
            raise EventError(f"event: read {name}; expected one of the event classes")
        name, event = kind.__name__, kind(*(getattr(event, field.name) for field in fields(kind)))
    if not is_real(event.time):
        raise EventError(f"{name}: read time {describe(event.time)}; expected seconds")
    if number is None:
        return event, None
    if not is_whole(number):
        refuse(f"{name} at {event.time} s: number", number, "a whole number", EventError)
    return event, int(number)


class Option(NamedTuple):
    """An assignment that was thought of.

    Attributes
    ----------
    vehicle, task : str
    rule : str
        The rule that picks the task, empty without one.
    value : float
        What it is worth; `Explanation.measure` says in which terms.
    """

    vehicle: str
    task: str
    rule: str
    value: float


class Explanation(NamedTuple):
    """Why an assignment was chosen.

    Attributes
    ----------
    by : str
        Who chose: a rule's name, "index", "network, EDD", "lookahead", ...
    measure : str
        What the options' values measure, with its unit; empty without options.
    options : tuple of Option
        The best of what was thought of, the best first; the chosen one is among them.
    parts : tuple of str
        Of an index policy: in what the chosen assignment differs most from the next best option, and by how
        much that moves its score, such as "way to the pickup: 31 s less (+0.82)".
    outlook : str
        Of an index policy that finishes the plan: when all that waits would be done, and how late, with the
        chosen assignment and with the next best option; empty else.
    """

    by: str
    measure: str
    options: tuple[Option, ...]
    parts: tuple[str, ...] = ()
    outlook: str = ""


class Forecast(NamedTuple):
    """What is to be expected of a task that waits, is under way or is held back.

    Attributes
    ----------
    task : str
    vehicle : str or None
        The vehicle that has it now.
    delivery : float
        s, of the dispatcher's clock, when it is delivered in the mean of the futures; inf where it is not in
        one of them, as no vehicle that serves may carry it.
    spread : float
        s, standard deviation of the deliveries; nan where one of them is not.
    due : float
        s; nan of a task that follows others until it can be reckoned when it is ready, and `late` too.
    late : float
        Share of the futures in which it is late, from 0 to 1.
    futures : int
        Futures that were played; 1 where nothing is left to chance.
    records : int
        Historical records from which arrivals that are not known yet were taken; 0: only what is known was
        played, so that the deliveries of tasks that wait are early guesses.
    free : bool
        Whether the task's vehicle is one of `Dispatcher.unplanned`: its way is told as if it met nobody.
    """

    task: str
    vehicle: str | None
    delivery: float
    spread: float
    due: float
    late: float
    futures: int
    records: int
    free: bool = False


class _Assigned(NamedTuple):
    vehicle: str
    task: str
    rule: str


class Assignment(_Assigned):
    """Who takes which task: a tuple of vehicle, task and rule, with what is known beside.

    Attributes
    ----------
    kind : "Assigned"
    vehicle, task : str
    rule : str
        The dispatching rule that picked the task: FCFS, EDD, NVF, STD, LWT, AHP, Random, or a baseline such
        as "nearest"; "index", "lookahead" or "own" where a task was chosen without one; "manual" for an
        assignment that somebody else has decided.
    finish : float
        s, when the vehicle should have delivered; no part of the tuple, as all that follows.
    futures : int
        Futures that a lookahead saw, 0 without one or with nothing to choose.
    reason : Explanation or None
        Why it was chosen, of a dispatcher with `explain=True`.
    number : int
        Counts the dispatcher's orders from 1, also across `save` and `recover`.
    repeated : bool
        Whether it may have been returned before, with the same number: who has that number ignores it.
    """

    kind: ClassVar[Literal["Assigned"]] = "Assigned"
    finish: float
    futures: int
    reason: Explanation | None
    number: int
    repeated: bool

    def __new__(
        cls,
        vehicle: str,
        task: str,
        rule: str,
        futures: int = 0,
        finish: float = math.nan,
        reason: Explanation | None = None,
        number: int = 0,
        repeated: bool = False,
    ) -> Assignment:
        """Make an assignment."""
        made = tuple.__new__(cls, (vehicle, task, rule))
        made.futures, made.finish, made.reason = futures, finish, reason
        made.number, made.repeated = number, repeated
        return made

    def describe(self) -> str:
        """Return the assignment in a line, with the next best option and the reasons against it if known."""
        text = f"{self.vehicle} takes {self.task}"
        others = self.reason.options if self.reason is not None else ()
        other = next((item for item in others if item[:2] != self[:2]), None)
        if self.reason is None or not self.reason.parts or other is None:
            return text
        told = filter(None, (self.reason.outlook, *self.reason.parts))
        return f"{text} rather than {other.vehicle} {other.task}: {'; '.join(told)}"


class _Recalled(NamedTuple):
    vehicle: str
    task: str
    reason: str = ""
    number: int = 0
    repeated: bool = False


class Recall(_Recalled):
    """A vehicle on its way to a pickup is to give its task back; the plant answers by `RecallAnswered`.

    Attributes
    ----------
    kind : "Recall"
    vehicle, task : str
    reason : str
    number : int
        Of all orders, as `Assignment.number`.
    repeated : bool
        As `Assignment.repeated`.
    """

    kind: ClassVar[Literal["Recall"]] = "Recall"

    def describe(self) -> str:
        """Return the order in a line."""
        return f"{self.vehicle} gives back {self.task}"


class _Sent(NamedTuple):
    vehicle: str
    site: str
    reason: str = ""
    number: int = 0
    repeated: bool = False


class Park(_Sent):
    """An idle vehicle is to drive to a parking place.

    Attributes
    ----------
    kind : "Park"
    vehicle, site : str
    reason : str
    number : int
        Of all orders, as `Assignment.number`.
    repeated : bool
        As `Assignment.repeated`.
    """

    kind: ClassVar[Literal["Park"]] = "Park"

    def describe(self) -> str:
        """Return the order in a line."""
        return f"{self.vehicle} drives to {self.site} and parks"


class Charge(_Sent):
    """An idle vehicle is to drive to a charger and to charge there until its battery is at `full`.

    Attributes
    ----------
    kind : "Charge"
    vehicle, site : str
    reason : str
    number : int
        Of all orders, as `Assignment.number`.
    repeated : bool
        As `Assignment.repeated`.
    """

    kind: ClassVar[Literal["Charge"]] = "Charge"

    def describe(self) -> str:
        """Return the order in a line."""
        return f"{self.vehicle} drives to {self.site} and charges"


Order = Assignment | Recall | Park | Charge
"""What a dispatcher tells the plant: `kind` and the class tell which, all have `vehicle` and `describe`."""
