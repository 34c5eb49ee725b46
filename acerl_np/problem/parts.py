"""What a layout is made of: sites, edges, vehicles, breakdowns; of each field its form in a file, too."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from acerl_np.problem import json_tree, limits
from acerl_np.problem.json_tree import at, number, text, whole
from acerl_np.support.errors import LayoutError, refuse

SCALING_PAIRS = ("distance", "waiting", "expiry", "demand", "total_distance")
SCALING_DIVISORS = ("speed", "capacity")
"""Feature constants of a layout: (middle, half width) each, and divisors."""


@dataclass(frozen=True)
class Site(json_tree.Checked):
    """A point of the floor; x and y in metres, `kind` free text such as "workstation".

    Attributes
    ----------
    id : str
    x, y : float, m
    kind : str
        Free text, such as "workstation".
    aside : bool
        Whether vehicles that stand there stand clear of the lane, any number of them; see `Traffic`.
    holds : int
        How many vehicles it holds at once where they meet, unless it lies aside.

    Raises
    ------
    LayoutError
        If a value is of another kind, or out of range.
    """

    id: str = field(metadata=at(text()))
    x: float = field(metadata=at(number(-limits.MAX_NUMBER)))
    y: float = field(metadata=at(number(-limits.MAX_NUMBER)))
    kind: str = field(default="", metadata=at(text("")))
    aside: bool = field(default=False, metadata=at(json_tree.flag(brief=True)))
    holds: int = field(default=1, metadata=at(whole(1, limits.MAX_VEHICLES, 1, brief=True)))


LIMIT = at(number(limits.MIN_SPEED, brief=True))


@dataclass(frozen=True)
class Edge(json_tree.Checked):
    """A way from site `a` to site `b`, and back unless `one_way`; `length` in metres.

    Nobody drives faster than `max_speed`, m/s, on it, and back than `max_reverse_speed`; by default that is
    the same.

    Attributes
    ----------
    a, b : str
        Ids of two sites.
    length : float, m
    one_way : bool
    max_speed, max_reverse_speed : float or None, m/s
        From `a` to `b`, and back.

    Raises
    ------
    LayoutError
        If a value is of another kind, or out of range.
    """

    a: str = field(metadata=at(text()))
    b: str = field(metadata=at(text()))
    length: float = field(metadata=at(number(0.0, 4 * limits.MAX_NUMBER, None)))
    one_way: bool = field(default=False, metadata=at(json_tree.flag()))
    max_speed: float = field(default=math.inf, metadata=LIMIT)
    max_reverse_speed: float | None = field(default=None, metadata=LIMIT)


@dataclass(frozen=True)
class Breakdown(json_tree.Checked):
    """A vehicle breaks down `time` seconds into the episode; its repair lasts `repair_time` seconds.

    Attributes
    ----------
    time : float, s
        From the episode's start.
    repair_time : float, s

    Raises
    ------
    LayoutError
        If a value is of another kind, or out of range.
    """

    time: float = field(metadata=at(number(0.0)))
    repair_time: float = field(metadata=at(number(0.0)))


@dataclass(frozen=True)
class RandomBreakdowns(json_tree.Checked):
    """A vehicle breaks down at random, in the mean after so many seconds of use, for so many seconds.

    Both times are exponential and are drawn anew for every breakdown of every episode. They count
    whether the vehicle works or waits, and not while it is broken.

    Attributes
    ----------
    mean_time_between_failures, mean_time_to_repair : float, s

    Raises
    ------
    LayoutError
        If a mean time is out of range.
    """

    mean_time_between_failures: float = field(metadata=at(number(1.0)))
    mean_time_to_repair: float = field(metadata=at(number(0.0)))


THRESHOLDS = ("critical", "resume", "good", "full")
LEVEL = at(whole(0, limits.MAX_LEVEL))
RATE = at(whole(0, limits.MAX_RATE))


@dataclass(frozen=True)
class Battery(json_tree.Checked):
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
        If a number is out of range, or the thresholds are out of order.
    """

    capacity: int = field(metadata=at(whole(1, limits.MAX_LEVEL)))
    start: int = field(metadata=at(whole(0, limits.MAX_LEVEL, None)))
    idle: int = field(metadata=RATE)
    empty: int = field(metadata=RATE)
    loaded: int = field(metadata=RATE)
    charge: int = field(metadata=at(whole(1, limits.MAX_RATE)))
    critical: int = field(metadata=LEVEL)
    resume: int = field(metadata=LEVEL)
    good: int = field(metadata=LEVEL)
    full: int = field(metadata=LEVEL)
    tow: int = field(default=1800, metadata=at(whole(0, limits.MAX_TOW)))

    def __post_init__(self) -> None:
        super().__post_init__()
        levels = {key: getattr(self, key) for key in (*THRESHOLDS, "capacity")}
        if list(levels.values()) != sorted(levels.values()):
            read = ", ".join(f"{key} {level}" for key, level in levels.items())
            raise LayoutError(f"battery: read {read}; expected them in ascending order")
        if self.start > self.capacity:
            expected = f"at most the capacity, {self.capacity}"
            refuse("battery.start", self.start, expected, LayoutError)


def make_battery(start: int | None, **values: int) -> Battery:
    """Return a battery that is charged at the start unless told otherwise."""
    return Battery(start=values["capacity"] if start is None else start, **values)


BATTERY = json_tree.list_keys(Battery)
OWN_BATTERY = json_tree.table(BATTERY, make_battery, None)


@dataclass(frozen=True)
class Charger(json_tree.Checked):
    """A site where `slots` vehicles may charge at once.

    Attributes
    ----------
    site : str
    slots : int
    """

    site: str = field(metadata=at(text()))
    slots: int = field(default=1, metadata=at(whole(1, limits.MAX_VEHICLES)))


@dataclass(frozen=True)
class ParkingPlace(json_tree.Checked):
    """A site where `places` vehicles may park.

    Attributes
    ----------
    site : str
    places : int
    """

    site: str = field(metadata=at(text()))
    places: int = field(default=1, metadata=at(whole(1, limits.MAX_VEHICLES)))


AFTER = whole(0, limits.MAX_TOW, 60)


@dataclass(frozen=True)
class Parking(json_tree.Checked):
    """Where vehicles without a task drive once they have been idle for `after` seconds.

    Attributes
    ----------
    places : tuple of ParkingPlace
    after : int, s
    """

    places: tuple[ParkingPlace, ...]
    after: int = field(default=60, metadata=at(AFTER))


@dataclass(frozen=True)
class Machine(json_tree.Checked):
    """A site where `servers` delivered tasks may be processed at once, in the order of their deliveries.

    Attributes
    ----------
    site : str
    servers : int
    """

    site: str = field(metadata=at(text()))
    servers: int = field(default=1, metadata=at(whole(1, limits.MAX_SERVERS)))


LOADS = ("return", "stay")
"""What becomes of the load of a vehicle that breaks down: its task goes back to its pickup, or it stays."""

LANES, HANDLED_AT = ("shared", "apart"), ("both", "pickup", "delivery")


@dataclass(frozen=True)
class Traffic(json_tree.Checked):
    """How vehicles meet: a site not aside holds as many as it says, a lane leads in one direction at a time.

    Attributes
    ----------
    headway : int, s
        From when a vehicle leaves a place until the next one may come.
    lanes : {"shared", "apart"}
        Whether both directions of an edge are one lane, or independent.
    handling_at : {"both", "pickup", "delivery"}
        Where a task's handling time is spent: half at each end, or all at one.
    reserve : float
        How much of what ways without others use a battery must hold for them.
    """

    headway: int = field(default=3, metadata=at(whole(1, limits.MAX_HEADWAY)))
    lanes: str = field(default="shared", metadata=at(json_tree.Key(LANES)))
    handling_at: str = field(default="both", metadata=at(json_tree.Key(HANDLED_AT)))
    reserve: float = field(default=1.3, metadata=at(number(1.0, limits.MAX_RESERVE)))


BLOCKS = ("single", "same_direction")


@dataclass(frozen=True)
class Closure(json_tree.Checked):
    """Nobody is sent over the edge between two sites, in either direction, from `time` until `until`.

    A vehicle keeps the way on which it was sent before.

    Attributes
    ----------
    a, b : str
        Ids of two sites that an edge joins.
    time, until : float, s
        From the episode's start.

    Raises
    ------
    LayoutError
        If a value is of another kind, or out of range.
    """

    a: str = field(metadata=at(text()))
    b: str = field(metadata=at(text()))
    time: float = field(metadata=at(number(0.0)))
    until: float = field(metadata=at(number(0.0)))

    @property
    def pair(self) -> tuple[str, str]:
        """Both sites in their order as texts, as `Layout.closed` has them."""
        return min(self.a, self.b), max(self.a, self.b)


@dataclass(frozen=True)
class Block(json_tree.Checked):
    """Sites and edges that one vehicle at a time may be inside of, or those that came in by the same edge.

    Edges count both ways; one between two of the sites belongs to it, listed or not. Who stands at a site
    that lies aside, or holds several vehicles, is in no block.

    Attributes
    ----------
    id : str
    kind : {"single", "same_direction"}
    sites : tuple of str
    edges : tuple of tuple of str
        Pairs of sites.
    """

    id: str = field(metadata=at(text()))
    kind: str = field(default="single", metadata=at(json_tree.Key(BLOCKS)))
    sites: tuple[str, ...] = field(default=(), metadata=at(json_tree.ids()))
    edges: tuple[tuple[str, ...], ...] = field(
        default=(), metadata=at(json_tree.items(json_tree.ids(), 0, limits.MAX_EDGES))
    )


LISTED = at(json_tree.items(json_tree.part(Breakdown), 0, limits.MAX_BREAKDOWNS))
AT_RANDOM = at(json_tree.part(RandomBreakdowns))
SIZE = at(number(0.0, default=0.0, brief=True))


@dataclass(frozen=True)
class Vehicle(json_tree.Checked):
    """A vehicle: start site, speed in m/s, capacity in units of load (0: unlimited), breakdowns.

    `breakdowns` are listed ones, the same in every episode; `random_breakdowns` come besides. Without a
    `battery` of its own it has the layout's, if that has one.

    Attributes
    ----------
    id, start : str
        Its name; the site at which it begins.
    speed : float, m/s
    capacity : float
    breakdowns : tuple of Breakdown
    random_breakdowns : RandomBreakdowns or None
    battery : Battery or None
    length, width : float, m
        For blocks of places that are too near, and for pictures; 0 where that does not matter. Without a
        width it is as wide as long.

    Raises
    ------
    LayoutError
        If a value is of another kind, or out of range.
    """

    id: str = field(metadata=at(text()))
    start: str = field(metadata=at(text()))
    speed: float = field(default=1.0, metadata=at(number(limits.MIN_SPEED)))
    capacity: float = field(default=0.0, metadata=at(number(0.0)))
    breakdowns: tuple[Breakdown, ...] = field(default=(), metadata=LISTED)
    random_breakdowns: RandomBreakdowns | None = field(default=None, metadata=AT_RANDOM)
    battery: Battery | None = field(default=None, metadata=at(OWN_BATTERY))
    length: float = field(default=0.0, metadata=SIZE)
    width: float = field(default=0.0, metadata=SIZE)


VEHICLE = json_tree.list_keys(Vehicle)


def check_model(model: object, where: str) -> None:
    """Refuse what is no model of random breakdowns and not None, at the place `where`."""
    if model is not None and not isinstance(model, RandomBreakdowns):
        refuse(where, model, "RandomBreakdowns or None", LayoutError)


# The file: each table of fields reads and writes a part. Keys are written in this order.

PARKING = {
    "after": AFTER,
    "places": json_tree.items(json_tree.part(ParkingPlace), 1, limits.MAX_SITES),
}
SCALING = {
    **{key: json_tree.pair() for key in SCALING_PAIRS},
    **{key: number(1e-9) for key in SCALING_DIVISORS},
}
LAYOUT: json_tree.Key = json_tree.table(
    {
        "$schema": text("", brief=True),
        "format": json_tree.VERSION,
        "name": text(None),
        "task_slots": whole(1, limits.MAX_TASK_SLOTS, 30),
        "truncate_distances": json_tree.flag(),
        "sites": json_tree.items(json_tree.part(Site), 1, limits.MAX_SITES),
        "edges": json_tree.items(json_tree.part(Edge), 0, limits.MAX_EDGES),
        "routes": json_tree.items(json_tree.ids(), 0, limits.MAX_SITES**2, ()),
        "vehicles": json_tree.items(json_tree.part(Vehicle), 1, limits.MAX_VEHICLES),
        "quickest_routes": json_tree.flag(brief=True),
        "battery": OWN_BATTERY,
        "chargers": json_tree.items(json_tree.part(Charger), 1, limits.MAX_SITES, (), brief=True),
        "parking": json_tree.table(PARKING, Parking, None),
        "machines": json_tree.items(json_tree.part(Machine), 0, limits.MAX_SITES, (), brief=True),
        "traffic": json_tree.part(Traffic, None),
        "blocks": json_tree.items(json_tree.part(Block), 0, limits.MAX_SITES, (), brief=True),
        "loads": json_tree.Key(LOADS, default=LOADS[0], brief=True),
        "closures": json_tree.items(
            json_tree.part(Closure), 0, limits.MAX_CLOSURES, (), brief=True
        ),
        "scaling": json_tree.table(SCALING, dict, None),
        "stations": json_tree.names(json_tree.ids(), limits.MAX_SITES),
        "aliases": json_tree.names(text(), limits.MAX_ALIASES),
    },
    dict,
)
"""A layout's file; a length of None is that of the straight line."""


def make_schema() -> dict[str, Any]:
    """Return the JSON Schema of a layout's file, for editors."""
    told = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A floor and its fleet",
    }
    return {**told, **LAYOUT.make_schema()}
