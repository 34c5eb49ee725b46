"""What a control system tells the dispatcher, and what the dispatcher answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class TaskArrived:
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
        s after `time` at which it is due.
    handling_time : float
        s.
    demand : float
        Units of load.
    """

    time: float
    task: str
    pickup: str
    delivery: str
    expiry: float
    handling_time: float = 0.0
    demand: float = 0.0


@dataclass(frozen=True)
class TaskCancelled:
    """A waiting task is withdrawn.

    Attributes
    ----------
    time : float
        s.
    task : str
    """

    time: float
    task: str


@dataclass(frozen=True)
class VehicleIdle:
    """A working vehicle has delivered its task and stands at a site.

    Attributes
    ----------
    time : float
        s.
    vehicle, site : str
    """

    time: float
    vehicle: str
    site: str


@dataclass(frozen=True)
class VehiclePassed:
    """A vehicle that works, or that somebody moves while it is idle, has reached a site.

    Attributes
    ----------
    time : float
        s.
    vehicle, site : str
    """

    time: float
    vehicle: str
    site: str


@dataclass(frozen=True)
class VehicleBroke:
    """A vehicle breaks down; its task, if it has one, waits again, last in the pool.

    Attributes
    ----------
    time : float
        s.
    vehicle : str
    """

    time: float
    vehicle: str


@dataclass(frozen=True)
class VehicleRepaired:
    """A broken vehicle is idle again, where it broke down or at `site`.

    Attributes
    ----------
    time : float
        s.
    vehicle : str
    site : str or None
    """

    time: float
    vehicle: str
    site: str | None = None


Event = TaskArrived | TaskCancelled | VehicleIdle | VehiclePassed | VehicleBroke | VehicleRepaired


class _Assigned(NamedTuple):
    vehicle: str
    task: str
    rule: str


class Assignment(_Assigned):
    """Who takes which task: a tuple of vehicle, task and rule, with what is known beside.

    Attributes
    ----------
    vehicle, task : str
    rule : str
        The dispatching rule that picked the task: FCFS, EDD, NVF, STD, LWT, AHP, or Random; "index" or
        "lookahead" where a task was chosen without one; "manual" for an assignment that somebody else has
        decided.
    futures : int
        Futures that a lookahead saw, 0 without one or with nothing to choose; no part of the tuple.
    """

    futures: int

    def __new__(cls, vehicle: str, task: str, rule: str, futures: int = 0) -> Assignment:
        """Make an assignment."""
        made = super().__new__(cls, vehicle, task, rule)
        made.futures = futures
        return made
