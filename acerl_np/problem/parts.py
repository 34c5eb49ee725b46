"""What a layout is made of: sites, edges, vehicles and their breakdowns."""

from __future__ import annotations

import math
from dataclasses import dataclass

from acerl_np.problem.json_tree import Reader
from acerl_np.support.errors import LayoutError, describe

MEAN_TIMES = {"mean_time_between_failures": 1.0, "mean_time_to_repair": 0.0}
"""Fields of `RandomBreakdowns` and their least values, s."""

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
        item = Reader(vars(self), "")
        for key, least in MEAN_TIMES.items():
            object.__setattr__(self, key, item.number(key, None, least))


@dataclass(frozen=True)
class Vehicle:
    """A vehicle: start site, speed in m/s, capacity in units of load (0: unlimited), breakdowns.

    `breakdowns` are listed ones, the same in every episode; `random_breakdowns` come besides.
    """

    id: str
    start: str
    speed: float = 1.0
    capacity: float = 0.0
    breakdowns: tuple[Breakdown, ...] = ()
    random_breakdowns: RandomBreakdowns | None = None


def check_model(model: object, where: str) -> None:
    """Refuse what is no model of random breakdowns and not None.

    Raises
    ------
    LayoutError
        With the place `where`.
    """
    if model is not None and not isinstance(model, RandomBreakdowns):
        raise LayoutError(f"{where}: read {describe(model)}; expected RandomBreakdowns or None")
