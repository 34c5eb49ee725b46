"""What a floor is made of: tasks, vehicles and their ways, the day so far, and the situation of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from sys import intern
from typing import NamedTuple, Protocol

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.live.events import TaskArrived
from acerl_np.problem.layout import Layout

FIRST_ROOM = 64
"""Tasks that there is room for at first; the room doubles when it is full."""

SERVING, LEAVING, OUT, REMOVING = 0, 1, 2, 3
"""Service of a vehicle: given tasks; out after its task; out of service; removed after its task."""

DAY_FIELDS = ["arrival", "expiry", "handling", "demand"]
"""What a day keeps of a task besides its sites."""


MOST_SEEN = 10_000
"""Tasks of a day by which a lookahead goes, the last ones; of more its arrays keep up to 16,384."""

MOST_ENDED = 1_000
"""Tasks of a day that are known for certain after they have ended; a tenth more at most."""

CUT_OFF = -2
"""In place of the row of a task that is held aside: no way leads there, or none of who may carry it."""

Ended = tuple[str, bool, float, str]
"""A task that was delivered, or else cancelled: its name, whether it was delivered, when, s, and by whom."""


class LiveTask(NamedTuple):
    """A task that waits, is under way or is held back."""

    event: TaskArrived
    row: int = -1
    """Of the tables, -1 without one, or CUT_OFF."""
    since: float = 0.0
    """Since when it waits, s. Of one that is held back a guess when it will be known."""
    vehicle: int = -1
    """Position of its vehicle, -1 while it waits."""
    slot: int = 0
    """Its own slot of the observation, from 1; 0 where its place in the pool is its slot."""
    told: TaskArrived | None = None
    """The event as it came, if it is another now."""
    changes: int = 0
    """How often it was called back."""
    ready: float | None = None
    """s, when it may be loaded; None: at its arrival, or nobody knows. Of one that is held back a guess."""
    root: float | None = None
    """s, when the first of its chain was ready, once all before it are delivered."""
    number: int = 0
    """Where tasks follow others: the later it was told, the higher."""

    @property
    def arrival(self) -> float:
        """When it begins to wait, s: once it is ready."""
        return find_arrival(self.event) if self.ready is None else self.ready

    @property
    def known(self) -> float:
        """When one that is held back begins to wait, s, as far as is known; else inf."""
        if not self.event.after:
            return self.arrival
        return math.inf if self.ready is None else self.since

    @property
    def due(self) -> float:
        """When it should be delivered, s; nan as long as nobody knows when it is ready."""
        begin = self.event.time if self.ready is None else self.ready
        return math.nan if math.isinf(self.known) else begin + self.event.expiry


class Way(NamedTuple):
    """Where a vehicle drives to a pickup, or without a task, on floors where it may be given another one."""

    site: int
    """Where the way begins."""
    began: float
    """s, when it does: later than now where the vehicle is on an edge that it has to finish first."""
    before: int
    """The site from which it comes then."""
    reached: float
    """s, when exactly it is at `site`."""
    pace: float
    """m/s, on its way there."""
    end: int = -1
    """The pickup, or the end of a way without a task."""
    loaded: float = 0.0
    """s, when the task should be loaded."""
    pause: float = 0.0
    """s that the vehicle waits before, at the pickup."""
    closed: tuple[tuple[str, str], ...] = ()
    """Which edges were closed as the vehicle was sent; it keeps its way."""


class LiveVehicle(NamedTuple):
    """What a board holds of a vehicle."""

    status: int
    """As `status` of a vehicle in `State`."""
    service: int
    """SERVING, LEAVING, OUT or REMOVING."""
    site: int
    """The last that it visited."""
    origin: int
    """Where it was given its task."""
    has_fetched: bool = False
    """Whether it has been at its task's pickup."""
    task: str | None = None
    finish: float = 0.0
    """s, when it should have delivered."""
    broke: float = 0.0
    """s, when it broke down or went out of service."""
    is_confirmed: bool = False
    """Whether it has come to its task's pickup, or its errand's end, since it was given that."""
    since: float = 0.0
    """s, since when it is idle, or at a charger; as all below only on floors with errands."""
    level: float = 0.0
    """Energy at `level_time`."""
    level_time: float = 0.0
    """s"""
    way: Way | None = None
    moved: float = 0.0
    """s, when it was given its task, or was at its pickup."""
    place: int = -1
    """Site of the parking place that it has or drives to, -1 for none."""
    seen: float = 0.0
    """s, when it was at `site`, or was given its task there."""
    plan: tuple[tuple[int, ...], ...] = ()
    """Its rows of `State.plan`, by whole seconds; where vehicles meet."""
    alone: bool = False
    """Whether that was planned as if it met nobody, as no other way was left."""

    @property
    def is_stranded(self) -> bool:
        """Whether it has broken down, or is out of service, with a load on it."""
        return self.task is not None and (self.status == S.BROKEN or self.service == OUT)

    @property
    def is_ready(self) -> bool:
        """Whether it is idle and in service."""
        return self.status == S.IDLE and self.service == SERVING


class Day:
    """What has been so far, for a lookahead; `start` is time zero of the records, s.

    The first `n_rows` rows of `ends` and `record` are the last of the `n_tasks` that have arrived, at times
    since the start. `delay` is how late the `delivered` ones were together, s. `ended` are the last tasks
    that were delivered or cancelled: name, whether it was delivered, when (s), and its vehicle or "". Others
    are `dropped`.
    """

    def __init__(self, start: float = 0.0) -> None:
        self.start = start
        self.n_tasks = self.n_gone = 0
        self.ends = np.zeros(FIRST_ROOM, S.ENDS)
        self.record = np.zeros(FIRST_ROOM, S.RECORD)
        self.delay = 0.0
        self.delivered = 0
        self.ended: list[Ended] = []
        self.dropped = 0

    def add(self, pickup: int, delivery: int, values: Sequence[float]) -> None:
        """Note a task: its sites, and its arrival since the start, expiry, handling time and demand."""
        if self.n_rows == len(self.ends):
            self._make_room()
        n = self.n_rows
        if self.n_tasks >= self.n_gone:  # else it is told again, long after
            self.ends["pickup"][n], self.ends["delivery"][n] = pickup, delivery
            for name, value in zip(DAY_FIELDS, values, strict=True):
                self.record[name][n] = value
        self.n_tasks += 1

    def _make_room(self) -> None:
        """Double the rows, or forget the oldest of very many."""
        gone = max(0, len(self.ends) - MOST_SEEN)
        own = self.ends, self.record
        ends, record = (np.roll(x, -gone) if gone else double(x) for x in own)
        self.ends, self.record, self.n_gone = ends, record, self.n_gone + gone

    @property
    def n_rows(self) -> int:
        """Tasks that are kept."""
        return self.count_rows(self.n_tasks)

    def count_rows(self, n_tasks: int) -> int:
        """Return how many of the first tasks are kept."""
        return max(0, n_tasks - self.n_gone)

    def end(self, name: str, is_delivered: bool, time: float, vehicle: str) -> None:
        """Note a task that has ended, and forget the oldest of very many."""
        self.ended.append((name, is_delivered, time, intern(str(vehicle))))
        if len(self.ended) > 1.1 * MOST_ENDED:
            n = len(self.ended) - MOST_ENDED
            del self.ended[:n]
            self.dropped += n

    @property
    def mark(self) -> tuple[int, float, int, int]:
        """How far the day has come: number of tasks, delay, delivered ones, ended ones."""
        return self.n_tasks, self.delay, self.delivered, self.dropped + len(self.ended)


class Situation(NamedTuple):
    """All that events change, to return to; what it holds is never changed in place but the day's end."""

    layout: Layout
    vehicles: list[LiveVehicle]
    tasks: dict[str, LiveTask]
    pool: list[str]
    planned: dict[str, LiveTask]
    machines: np.ndarray
    day: Day
    mark: tuple[int, float, int, int]


def find_arrival(event: TaskArrived) -> float:
    """Return when a task begins to wait, s: at its arrival, or at its earliest start if that is later."""
    return event.time if event.earliest_start is None else max(event.time, event.earliest_start)


class Decider(Protocol):
    """Who decides, as far as a board asks: `LiveDecider` says what these are."""

    hides_out: bool
    ranks: bool
    task_slots: dict[str, int] | None

    def build_problem(self, layout: Layout) -> S.Problem:
        """Return empty tables for its boards of a layout."""

    def check_layout(self, layout: Layout, name: str) -> None:
        """Refuse a floor and fleet that the policy cannot serve."""


def double(array: np.ndarray, axis: int = 0) -> np.ndarray:
    """Return an array with twice the room, so that many tasks cost no more each than few."""
    return np.concatenate([array, np.zeros_like(array)], axis=axis)
