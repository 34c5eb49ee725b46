"""What a layout is made of: sites, edges, vehicles and their breakdowns; and the form of each in a file."""

from __future__ import annotations

import math
from dataclasses import dataclass

from acerl_np.problem import json_tree, limits
from acerl_np.support.errors import LayoutError, describe

SCALING_PAIRS = ("distance", "waiting", "expiry", "demand", "total_distance")
SCALING_DIVISORS = ("speed", "capacity")
"""Feature constants of a layout: (middle, half width) each, and divisors."""


@dataclass(frozen=True)
class Site:
    """A point of the floor; x and y in metres, `kind` free text such as "workstation"."""

    id: str
    x: float
    y: float
    kind: str = ""


@dataclass(frozen=True)
class Edge:
    """A way from site `a` to site `b`, and back unless `one_way`; `length` in metres.

    Nobody drives faster than `max_speed`, m/s, on it, and back than `max_reverse_speed`; by default that is
    the same.
    """

    a: str
    b: str
    length: float
    one_way: bool = False
    max_speed: float = math.inf
    max_reverse_speed: float | None = None


@dataclass(frozen=True)
class Breakdown:
    """A vehicle breaks down `time` seconds into the episode; its repair lasts `repair_time` seconds."""

    time: float
    repair_time: float


MEAN_TIMES = {
    "mean_time_between_failures": json_tree.number(1.0),
    "mean_time_to_repair": json_tree.number(0.0),
}


@dataclass(frozen=True)
class RandomBreakdowns:
    """A vehicle breaks down at random, in the mean after so many seconds of use, for so many seconds.

    Both times are exponential and are drawn anew for every breakdown of every episode. They count
    whether the vehicle works or waits, and not while it is broken.

    Raises
    ------
    LayoutError
        If a mean time is out of range.
    """

    mean_time_between_failures: float
    mean_time_to_repair: float

    def __post_init__(self) -> None:
        for key, field in MEAN_TIMES.items():
            object.__setattr__(self, key, field.read(getattr(self, key), key))


@dataclass(frozen=True)
class Battery:
    """A vehicle's battery: whole numbers of any unit of energy, rates per second.

    Attributes
    ----------
    capacity, start : int
        `start` at the beginning of an episode, by default all of it.
    idle, empty, loaded, charge : int
        Used while it stands, drives empty, drives loaded or loads; charged at a charger.
    critical, resume, good, full : int
        Thresholds, ascending. A task is only taken if it leaves the critical level at the nearest charger.
        Below `good` an idle vehicle drives to a charger and charges until `full`; from `resume` on it may be
        called away.
    tow : int
        s until a vehicle whose battery has run empty goes on, with the critical level.

    Raises
    ------
    LayoutError
        If the thresholds are out of order.
    """

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
    tow: int = 1800

    def __post_init__(self) -> None:
        levels = {key: getattr(self, key) for key in (*THRESHOLDS, "capacity")}
        if list(levels.values()) != sorted(levels.values()):
            read = ", ".join(f"{key} {level}" for key, level in levels.items())
            raise LayoutError(f"battery: read {read}; expected them in ascending order")
        if self.start > self.capacity:
            raise LayoutError(
                f"battery.start: read {self.start}; expected at most the capacity, {self.capacity}"
            )


THRESHOLDS = ("critical", "resume", "good", "full")


@dataclass(frozen=True)
class Charger:
    """A site where `slots` vehicles may charge at once."""

    site: str
    slots: int = 1


@dataclass(frozen=True)
class ParkingPlace:
    """A site where `places` vehicles may park."""

    site: str
    places: int = 1


@dataclass(frozen=True)
class Parking:
    """Where vehicles without a task drive once they have been idle for `after` seconds."""

    places: tuple[ParkingPlace, ...]
    after: int = 60


@dataclass(frozen=True)
class Machine:
    """A site where `servers` delivered tasks may be processed at once, in the order of their deliveries."""

    site: str
    servers: int = 1


@dataclass(frozen=True)
class Vehicle:
    """A vehicle: start site, speed in m/s, capacity in units of load (0: unlimited), breakdowns.

    `breakdowns` are listed ones, the same in every episode; `random_breakdowns` come besides. Without a
    `battery` of its own it has the layout's, if that has one.
    """

    id: str
    start: str
    speed: float = 1.0
    capacity: float = 0.0
    breakdowns: tuple[Breakdown, ...] = ()
    random_breakdowns: RandomBreakdowns | None = None
    battery: Battery | None = None


def check_model(model: object, where: str) -> None:
    """Refuse what is no model of random breakdowns and not None, at the place `where`."""
    if model is not None and not isinstance(model, RandomBreakdowns):
        raise LayoutError(f"{where}: read {describe(model)}; expected RandomBreakdowns or None")


# The file: each table of fields reads and writes a part. Keys are written in this order.

SITE = {
    "id": json_tree.text(),
    "x": json_tree.number(-limits.MAX_NUMBER),
    "y": json_tree.number(-limits.MAX_NUMBER),
    "kind": json_tree.text(""),
}
EDGE = {
    "a": json_tree.text(),
    "b": json_tree.text(),
    "length": json_tree.number(0.0, 4 * limits.MAX_NUMBER, None),
    "one_way": json_tree.flag(),
    "max_speed": json_tree.number(limits.MIN_SPEED, default=math.inf, brief=True),
    "max_reverse_speed": json_tree.number(limits.MIN_SPEED, default=None, brief=True),
}
BREAKDOWN = {"time": json_tree.number(0.0), "repair_time": json_tree.number(0.0)}


def make_battery(start: int | None, **values: int) -> Battery:
    """Return a battery that is charged at the start unless told otherwise."""
    return Battery(start=values["capacity"] if start is None else start, **values)


LEVEL = json_tree.whole(0, limits.MAX_LEVEL)
BATTERY = {
    "capacity": json_tree.whole(1, limits.MAX_LEVEL),
    "start": json_tree.whole(0, limits.MAX_LEVEL, None),
    **dict.fromkeys(("idle", "empty", "loaded"), json_tree.whole(0, limits.MAX_RATE)),
    "charge": json_tree.whole(1, limits.MAX_RATE),
    **dict.fromkeys(THRESHOLDS, LEVEL),
    "tow": json_tree.whole(0, limits.MAX_TOW, 1800),
}
CHARGER = {"site": json_tree.text(), "slots": json_tree.whole(1, limits.MAX_VEHICLES, 1)}
PLACE = {"site": json_tree.text(), "places": json_tree.whole(1, limits.MAX_VEHICLES, 1)}
PARKING = {
    "after": json_tree.whole(0, limits.MAX_TOW, 60),
    "places": json_tree.items(json_tree.table(PLACE, ParkingPlace), 1, limits.MAX_SITES),
}
MACHINE = {"site": json_tree.text(), "servers": json_tree.whole(1, limits.MAX_SERVERS, 1)}
VEHICLE = {
    "id": json_tree.text(),
    "start": json_tree.text(),
    "speed": json_tree.number(limits.MIN_SPEED, default=1.0),
    "capacity": json_tree.number(0.0, default=0.0),
    "breakdowns": json_tree.items(
        json_tree.table(BREAKDOWN, Breakdown), 0, limits.MAX_BREAKDOWNS, ()
    ),
    "random_breakdowns": json_tree.table(MEAN_TIMES, RandomBreakdowns, None),
    "battery": json_tree.table(BATTERY, make_battery, None),
}
SCALING = {
    **{key: json_tree.pair() for key in SCALING_PAIRS},
    **{key: json_tree.number(1e-9) for key in SCALING_DIVISORS},
}
LAYOUT: json_tree.Key = json_tree.table(
    {
        "format": json_tree.one(),
        "name": json_tree.text(None),
        "task_slots": json_tree.whole(1, limits.MAX_TASK_SLOTS, 30),
        "truncate_distances": json_tree.flag(),
        "sites": json_tree.items(json_tree.table(SITE, Site), 1, limits.MAX_SITES),
        "edges": json_tree.items(json_tree.table(EDGE, Edge), 0, limits.MAX_EDGES),
        "routes": json_tree.items(json_tree.ids(), 0, limits.MAX_SITES**2, ()),
        "vehicles": json_tree.items(json_tree.table(VEHICLE, Vehicle), 1, limits.MAX_VEHICLES),
        "quickest_routes": json_tree.flag(brief=True),
        "battery": json_tree.table(BATTERY, make_battery, None),
        "chargers": json_tree.items(
            json_tree.table(CHARGER, Charger), 1, limits.MAX_SITES, ()
        )._replace(brief=True),
        "parking": json_tree.table(PARKING, Parking, None),
        "machines": json_tree.items(
            json_tree.table(MACHINE, Machine), 0, limits.MAX_SITES, ()
        )._replace(brief=True),
        "scaling": json_tree.table(SCALING, dict, None),
        "stations": json_tree.names(json_tree.ids(), limits.MAX_SITES),
        "aliases": json_tree.names(json_tree.text(), limits.MAX_ALIASES),
    },
    dict,
)
"""A layout's file; a length of None is that of the straight line."""
