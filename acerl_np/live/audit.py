"""A dispatcher's log: how it is written, which lines hold, what each did, and what all say of the day."""

from __future__ import annotations

import json
import math
import os
import secrets
import stat
import time
import warnings
import weakref
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acerl_np.live import events
from acerl_np.live.board import Situation, find_arrival
from acerl_np.live.decision import LiveDecider
from acerl_np.live.feed import AHEAD, LATE, Feed
from acerl_np.live.floor import Floor
from acerl_np.live.orders import (
    DECIDED,
    NOTED,
    TOOK_PLACE,
    DayBegan,
    Item,
    Recalled,
    read_item,
)
from acerl_np.live.wire import CHARGE, PARK, format_line, read_event, read_time
from acerl_np.problem.instance import make_instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_NAME
from acerl_np.problem.packing import UNUSABLE, unpacking
from acerl_np.problem.parts import Breakdown, Vehicle
from acerl_np.problem.records import Assignments
from acerl_np.support.errors import (
    EventError,
    LogWarning,
    RecordError,
    StorageError,
    describe,
    make_printable,
)
from acerl_np.support.files import describe_os_error, lock_file, read_text
from acerl_np.support.numbers import is_real, is_whole

STARTED, DAY_BEGAN = "Started", "DayBegan"
"""Lines of a log besides events and orders."""

PLACES = ("VehiclePassed", "VehicleParked", "VehicleCharging", "VehicleLevel", "MachineBusy")
"""Events that, as orders to park or charge, say nothing of who serves what.

On another floor, as without batteries, they may not be.
"""

BEGINNING = '{"kind": "'
"""Of each line."""

Line = tuple[str, dict[str, Any]]
"""A line and its place."""


class AuditLog:
    """A file to which a line is added for every event and every assignment.

    What is there already stays. The file is locked until `close`, or until the object or its process ends;
    forks have no part in it. A StorageError says that it is locked or has more than the `size` that was read,
    or that a line cannot be written: it is written before the next one then. With `fsync` a line is on the
    disk, not only with the system, when `note` returns. `day` is the machine's date when it was begun, or
    last written to before.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, fsync: bool = False, size: int | None = None
    ) -> None:
        self.path, self.fsync = path, fsync
        self._mark = secrets.token_hex(4)
        self._pending = b""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise StorageError(f"{path}: cannot write: {describe_os_error(error)}") from error
        self._shut = weakref.finalize(self, os.close, self._file)
        _OPEN.add(self)
        about = os.fstat(self._file)
        self.day = date.fromtimestamp(about.st_mtime)
        if not stat.S_ISREG(about.st_mode):
            return  # a pipe, or what is everybody's, as /dev/null
        busy = "another dispatcher writes there; expected it to be closed, or its process to have ended"
        refusal = StorageError(f"{path}: {busy}")
        lock_file(self._file, refusal)
        found = os.lseek(self._file, 0, os.SEEK_END)
        if size not in (None, found):
            raise refusal
        if found > 0:
            os.lseek(self._file, found - 1, os.SEEK_SET)
            if os.read(self._file, 1) != b"\n":  # the machine failed within a line
                self._pending = b"\n"

    def note(self, kind: str, **values: Any) -> None:
        """Add a line, with the clock on the wall that nothing reads; null for numbers that are not finite."""
        own = {"mark": self._mark, "wall": round(time.time(), 3)}
        self._pending += format_line({"kind": kind, **values, **own}).encode()
        self.flush()

    def flush(self) -> None:
        """Hand all lines to the system at once: nothing is lost with the process."""
        if not self._shut.alive:
            if self._pending:
                raise StorageError(f"{self.path}: cannot write: the log is closed")
            return
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._file, self._pending) :]
            if self.fsync:
                os.fsync(self._file)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot write: {describe_os_error(error)}") from error

    def close(self) -> None:
        """Hand over what is left, and let others write."""
        try:
            self.flush()
        finally:
            self._shut()


_OPEN: weakref.WeakSet[AuditLog] = weakref.WeakSet()


def _shut_all() -> None:
    for log in _OPEN:
        log._shut()


if hasattr(os, "register_at_fork"):  # else a child would hold the lock after its parent's end
    os.register_at_fork(after_in_child=_shut_all)


def parse_log(text: str) -> tuple[list[Line], str]:
    """Return the lines of a log with their places, and the place of a last one that was cut off, or ""."""
    found: list[Line] = []
    torn = ""
    for k, row in enumerate(text.split("\n")):
        place = f"line {k + 1}"
        if not row:
            continue
        try:
            line = json.loads(row)
        except (ValueError, RecursionError) as error:
            if not BEGINNING.startswith(row[: len(BEGINNING)]):  # no beginning of a line, either
                raise RecordError(f"{place}: not JSON; expected a line of a log") from error
            torn = torn or place
            continue
        kind = line.get("kind") if isinstance(line, dict) else None
        if torn and kind != STARTED:  # before a restart a line may have been cut
            raise RecordError(f"{torn}: not JSON; expected a line of a log")
        if kind not in (*events.EVENTS, STARTED, *DECIDED, DAY_BEGAN, *NOTED):
            raise RecordError(f"{place}: kind: read '{describe(kind)}'; expected a line of a log")
        line.pop("wall", None)  # a line that is written again is the same at another time
        field = "start" if kind in (STARTED, DAY_BEGAN) else "time"
        if not is_real(line.get(field)):
            read = describe(line.get(field))
            raise RecordError(f"{place}: {field}: read '{read}'; expected seconds")
        torn = ""
        found.append((place, line))
    return found, torn


def hold_lines(lines: list[Line]) -> list[list[Line]]:
    """Return the lines that held before each restart from an older state, and at last those that hold.

    A line replaces all before it that have its count or a higher one; one that stands twice counts once. A
    RecordError names the line of another process.
    """
    held: list[Line] = []
    before: list[list[Line]] = []
    mark = lines[0][1].get("mark") if lines else None
    for place, line in lines:
        begins = line["kind"] == STARTED
        k = bisect_left(held, line["line"], key=lambda item: item[1]["line"])
        if k < len(held) and line == held[k][1] and not (begins and "mark" not in line):
            continue
        if begins:
            mark = line.get("mark")
            before += [held.copy()] * (k < len(held))
        elif line.get("mark") != mark:
            raise RecordError(
                f"{place}: mark: read '{describe(line.get('mark'))}'; expected '{describe(mark)}', that of "
                "the dispatcher that started last: two have written this log at once"
            )
        elif mark is not None and k < len(held):
            expected = f"more than {held[-1][1]['line']}, as before"
            raise RecordError(f"{place}: line: read {line['line']}; expected {expected}")
        del held[k:]
        held.append((place, line))
    return [*before, held]


def read_log(path: str | os.PathLike[str]) -> tuple[list[Line], str, int]:
    """Return the lines that hold with their places, the place of one that was cut off or "", and the size.

    A RecordError names the line that is none, or that is of a log without counts.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot read: {describe_os_error(error)}") from error
    with unpacking(RecordError, f"{path}"):
        # What was cut off may be anything; some file systems put zeros where a power cut took the end.
        lines, torn = parse_log(data.replace(b"\0", b"").decode(errors="replace"))
        for place, line in lines:
            count: Any = line.get("line")
            if not is_whole(count) or count < 0:
                read = f"line: read '{describe(count)}'"
                raise RecordError(f"{place}: {read}; expected the count of a log of this version")
            if line["kind"] == STARTED:
                kinds = {"options": dict, "vehicles": list}
                if not all(isinstance(line.get(name), kind) for name, kind in kinds.items()):
                    raise RecordError(f"{place}: {STARTED}: expected its options and vehicles")
        held = hold_lines(lines)[-1]
        if held and held[0][1]["kind"] != STARTED:
            place, line = held[0]
            raise RecordError(f"{place}: kind: read '{line['kind']}'; expected {STARTED}")
        return held, torn, len(data)


@contextmanager
def name_line(place: str, line: dict[str, Any]) -> Iterator[None]:
    """Let errors that come of a line name it: all are a RecordError then."""
    try:
        yield
    except KeyError as error:
        raise RecordError(f"{place}: {line['kind']}: {error} is missing or unknown") from error
    except UNUSABLE as error:  # an EventError is a ValueError, too
        reason = make_printable(str(error)[:400])
        raise RecordError(f"{place}: {line['kind']}: {reason}") from error


def redo_line(feed: Feed, line: dict[str, Any], where: str) -> None:
    """Let happen again what a line says; an EventError, KeyError, TypeError or ValueError if it cannot be.

    An event that is too far ahead, which older dispatchers took, is passed over with a LogWarning that says
    `where`; an order has been given, and is as of the time before. The first time is that of the clock.
    A start lets the feed bear what the dispatcher of then did.
    """
    kind, floor = line["kind"], feed.floor
    if kind in NOTED:
        return
    latest = math.inf if math.isinf(feed.time) else max(feed.time, floor.day.start) + feed.ahead
    time, clock = (read_time(line.get(name)) for name in ("time", "clock"))
    if kind not in DECIDED:
        feed.expire(max(moment for moment in (-math.inf, time, clock) if moment <= latest))
    # It says how far the time had come where that is not the event's own.
    if clock <= latest:
        feed.move_to(max(feed.time, clock))
    is_far = time > latest
    if is_far:
        what = f"{where}: {kind}: time: read {line['time']:g} s, more than {feed.ahead:g} s ahead; "
        what += "taken as the time before" if kind in DECIDED else "passed over"
        warnings.warn(what, LogWarning, stacklevel=2)
    if kind == STARTED:
        options = line.get("options") or {}
        feed.lateness = max(feed.lateness, read_time(options.get("lateness")))
        feed.ahead = max(feed.ahead, read_time(options.get("ahead")))
    elif kind == DAY_BEGAN:
        feed.begin_day(float(line["start"]))
    elif kind in DECIDED:
        now = feed.time if is_far else time
        feed.move_to(now)
        order = read_item(line, now)
        floor.apply(order)
        feed.give(order)
    elif not is_far:
        holds, told = bool(line.get("hold", False)), line.get("number")
        feed.take(read_event(events.EVENTS[kind], line), holds=holds, told=told)


def read_days(path: str | os.PathLike[str], layout: Layout) -> list[Assignments]:
    """Return what a log says as `read_audit` does, a record for each day that was begun and had tasks.

    A task belongs to the day in which it, or the first of its chain, was ready. Names of several days are
    numbered.
    """
    with unpacking(RecordError, f"{path}"):
        day, name = _read_day(path, layout), Path(path).stem
        bounds = [-math.inf, *sorted(day.starts)[1:], math.inf]
        found = [day.finish(name, *span) for span in pairwise(bounds) if day.has_tasks(*span)]
        if len(found) < 2:
            return found or [day.finish(name)]
        named = [replace(own.instance, name=f"{name}-{k}") for k, own in enumerate(found, 1)]
        return [replace(own, instance=x) for own, x in zip(found, named, strict=True)]


def read_audit(path: str | os.PathLike[str], layout: Layout) -> Assignments:
    """Return what a log says about the day: its tasks, who served them, and which vehicles broke down.

    The log is played as the dispatcher took it in. A line that stands twice counts once; what came after a
    state from which a dispatcher was restarted counts for tasks that are not told again. Tasks that were
    cancelled or never given to a vehicle are left out. Time zero is the start of the first day, or the first
    event if that is more than seven days later, as of a clock that counts from 1970.

    Parameters
    ----------
    path : path-like
    layout : Layout
        The floor, and the fleet at the beginning; vehicles that the log adds come after it. Breakdowns are
        those of the log.

    Returns
    -------
    Assignments
        `instance` is the record. A task whose vehicle broke down, or that was recalled, has the last
        assignment. `present` says when vehicles joined and left.

    Raises
    ------
    RecordError
        If the file cannot be read, a line is no line of a log or cannot be, or it holds no assignment; the
        message names the line. Of a log that began after a saved state, or of an older version, what cannot
        be is passed over.

    Warns
    -----
    LogWarning
        If the time of a line lies so far ahead that it is passed over.
    """
    with unpacking(RecordError, f"{path}"):
        return _read_day(path, layout).finish(Path(path).stem)


def _read_day(path: str | os.PathLike[str], layout: Layout) -> _LoggedDay:
    lines, day = parse_log(read_text(path, RecordError))[0], _LoggedDay(layout)
    has_counts = all(is_whole(line.get("line")) for _, line in lines)
    for held in hold_lines(lines) if has_counts else [lines]:
        if held:
            day.add(_play(path, layout, held, LATE if has_counts else math.inf))
    return day


def _play(
    path: str | os.PathLike[str], layout: Layout, lines: list[Line], lateness: float
) -> list[_Note]:
    """Let a dispatcher's floor take in lines; return what happened."""
    place, first = lines[0]
    options = first["options"] if isinstance(first.get("options"), dict) else {}
    with name_line(place, first):
        if "commitment" in options:
            layout = layout.with_commitment(options["commitment"], options["max_changes"])
        floor = _Witness(layout)
        if first["kind"] == STARTED:
            floor.apply(DayBegan(-math.inf, float(first["start"])))
    feed = Feed(floor, lateness)
    counts = [line.get("line") for _, line in lines]
    is_all = "mark" in first and counts == [*range(len(lines))]
    for place, line in lines:
        with name_line(place, line):
            mark = feed.mark()
            try:
                redo_line(feed, line if is_all else floor.fit(line), f"{path}: {place}")
            except EventError as error:
                feed.undo(mark, error)
                if is_all and line["kind"] not in (*PLACES, PARK, CHARGE, TOOK_PLACE):
                    raise
    return floor.notes


class _Noted(Situation):
    """A situation, and how many notes lead there."""

    n_notes: int


class _Note(NamedTuple):
    """What has happened, and what is so since."""

    item: Item
    event: events.TaskArrived | None
    """The task that it tells or changes, between sites."""
    carried: dict[str, str]
    """Tasks under way, and their vehicles."""
    is_delivered: bool
    fleet: tuple[Vehicle, ...]


class _Witness(Floor):
    """A dispatcher's floor that notes all that happens; what is taken back is noted no more."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout, LiveDecider("FCFS"))
        self.notes: list[_Note] = []

    def apply(self, item: Item) -> None:
        """Let it happen, and note what came of it."""
        n = self.day.delivered
        super().apply(item)
        tells = isinstance(item, events.TaskArrived | events.TaskChanged)
        told = self._find_task(item.task) if tells else None  # type: ignore[union-attr]
        fleet = self.layout.vehicles
        carried = {
            own.task: vehicle.id
            for vehicle, own in zip(fleet, self.vehicles, strict=True)
            if own.task
        }
        self.notes.append(_Note(item, told and told.event, carried, self.day.delivered > n, fleet))

    def snapshot(self) -> Situation:
        """Return the situation, to come back to it with `restore`."""
        noted = _Noted(*super().snapshot())
        noted.n_notes = len(self.notes)
        return noted

    def restore(self, situation: Situation, **how: Any) -> None:
        """Return to a situation."""
        super().restore(situation, **how)
        assert isinstance(situation, _Noted)
        del self.notes[situation.n_notes :]

    def fit(self, line: dict[str, Any]) -> dict[str, Any]:
        """Return a line of a log that need not tell all as it may be."""
        v = self._positions.get(str(line.get("vehicle")), -1)
        task = self.vehicles[v].task if v >= 0 else None
        if line["kind"] == "VehicleIdle" and task is not None:  # wherever that was
            return {**line, "site": self.tasks[task].event.delivery}
        if line.get("after") and self._find_task(str(line["after"])) is None:
            return {**line, "after": ""}
        return line


@dataclass
class _Row:
    """A task of the record."""

    event: events.TaskArrived
    """As it was at last."""
    after: _Row | None
    given: tuple[str, float] | None = None
    finish: float = math.nan
    known: tuple[float, float] | None = None
    """When it was first said when it is ready, and when that was, s."""

    @property
    def root(self) -> _Row:
        """The first of its chain."""
        return self if self.after is None else self.after.root

    @property
    def arrival(self) -> float:
        """When it was ready, s."""
        if self.known is not None and not (self.after and self.after.given):
            return self.known[1]
        return find_arrival(self.event)


class _LoggedDay:
    """Tasks and their last assignments, as floors noted them."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.fleet = {vehicle.id: vehicle for vehicle in layout.vehicles}
        self.start: float | None = None
        self.starts: set[float] = set()
        self.rows: dict[events.TaskArrived, _Row] = {}
        self.breakdowns: dict[str, dict[float, float]] = {}
        """Ends by their begins, s."""
        self.joined: dict[str, float] = {}
        self.left: dict[str, float] = {}

    def add(self, notes: list[_Note]) -> None:
        """Take in what a floor noted; it counts more than what was there."""
        if self.start is None:
            self.start = _find_zero(notes)
        names: dict[str, _Row] = {}
        recalled: dict[tuple[str, str], tuple[str, float] | None] = {}
        broke: dict[str, float] = {}
        carried, ids = dict[str, str](), dict.fromkeys(self.fleet)
        for item, event, carries, is_delivered, fleet in notes:
            time = float(item.time)
            match item:
                case DayBegan():
                    self.starts.add(item.start)
                case events.TaskArrived() if event is not None:
                    names[item.task] = self.rows[item] = _Row(event, names.get(item.after))
                case events.TaskChanged() if event is not None:
                    names[item.task].event = event
                case events.TaskAnnounced() | events.TaskReady():
                    row, ready = names[item.task], getattr(item, "ready", time)
                    row.known = (row.known or (time,))[0], float(ready)
                case events.VehicleBroke():
                    broke[item.vehicle] = time
                case events.VehicleRepaired() if item.vehicle in broke:
                    self.breakdowns.setdefault(item.vehicle, {})[broke.pop(item.vehicle)] = time
            for task in carried.keys() - carries.keys():
                row = names[task]
                if is_delivered:
                    row.finish = time
                    continue
                if isinstance(item, Recalled):  # it may have loaded it before
                    recalled[carried[task], task] = row.given
                row.given = None
            for task, vehicle in carries.items():
                if carried.get(task) != vehicle:
                    names[task].given = recalled.pop((vehicle, task), None) or (vehicle, time)
            now = {vehicle.id: vehicle for vehicle in fleet}
            for added in now.keys() - ids.keys():
                self.fleet[added] = now[added]
                # One that comes again was here since it came first.
                if self.left.pop(added, None) is None:
                    self.joined[added] = time
            self.left |= dict.fromkeys(ids.keys() - now.keys(), time)
            carried, ids = carries, dict.fromkeys(now)

    def has_tasks(self, first: float, until: float) -> bool:
        """Whether some task that was ready from `first` on, before `until`, was given to a vehicle."""
        rows = self.rows.values()
        return any(row.given and first <= row.root.arrival < until for row in rows)

    def finish(self, name: str, first: float = -math.inf, until: float = math.inf) -> Assignments:
        """Return the record of what was ready from `first` on, before `until`, and who served it."""
        served: dict[str, _Row] = {}
        for row in self.rows.values():
            if not first <= row.root.arrival < until:
                continue
            own, n = row.event.task, 1
            while row.given and own in served:
                n += 1
                end = f" ({n})"
                own = row.event.task[: MAX_NAME - len(end)] + end
            if row.given:
                served[own] = row
        if not served or self.start is None:
            raise RecordError("no task was given to a vehicle; expected a log with assignments")
        start = min(max(self.start, first), *(row.arrival for row in served.values()))
        names = {id(row): own for own, row in served.items()}
        layout = self.layout.with_fleet(self.fleet.values())
        columns: dict[str, list[Any]] = {"tasks": [*served]}
        for row in served.values():
            event, known = row.event, row.known
            late = 0.0 if known else find_arrival(event) - event.time
            values: dict[str, Any] = {
                "pickup": layout.site_index[event.pickup],
                "delivery": layout.site_index[event.delivery],
                "arrival": row.arrival - start,
                "expiry": max(0.0, event.expiry - late),
                "after": names.get(id(row.after), ""),
                "announced": max(0.0, known[1] - known[0]) if known else 0.0,
            }
            for field in ("handling_time", "demand", "priority", "processing"):
                values[field] = getattr(event, field)
            for field, value in values.items():
                columns.setdefault(field, []).append(value)
        breakdowns = {
            vehicle: [
                Breakdown(max(0.0, begin - start), end - max(start, begin))
                for begin, end in sorted(spans.items())
                if end > start
            ]
            for vehicle, spans in self.breakdowns.items()
        }
        instance, _ = make_instance(name, layout.with_breakdowns(breakdowns), columns, None)
        position = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
        rows = [served[task] for task in instance.tasks]
        vehicles = np.array([position[row.given[0]] for row in rows if row.given], np.int32)
        begins = np.array([row.given[1] for row in rows if row.given]) - start
        ends = np.array([row.finish for row in rows]) - start
        order = np.argsort(begins, kind="stable").astype(np.int32)
        present = [
            (max(0.0, self.joined.get(v, start) - start), self.left.get(v, np.inf) - start)
            for v in position
        ]
        return Assignments(instance, order, vehicles, begins, ends, np.array(present))


def _find_zero(notes: list[_Note]) -> float:
    """Return time zero of a log, s: its first day's, unless the first event is of another clock."""
    zero = math.inf
    for note in notes:
        if not isinstance(note.item, DayBegan):
            return zero if note.item.time <= zero + AHEAD else float(note.item.time)
        zero = note.item.start
    return zero
