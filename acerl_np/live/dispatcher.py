"""The live side: a control system feeds what happens on the floor and asks who takes which task.

Nothing is simulated here and no clock runs: every event and every question carries its time.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import wraps
from operator import attrgetter
from typing import Any, Self, cast

import numpy as np

from acerl_np.kernels.ground import state as S
from acerl_np.live import audit as logs
from acerl_np.live import events, saving
from acerl_np.live import orders as told
from acerl_np.live.board import OUT, LiveVehicle
from acerl_np.live.decision import Decision, LiveDecider
from acerl_np.live.events import Assignment, Charge, Event, Forecast, Order, Park, Recall
from acerl_np.live.feed import AHEAD, LATE, Feed, Numbers
from acerl_np.live.floor import MOST, Floor, check_record, naming
from acerl_np.live.forecast import Forecaster, find_player
from acerl_np.policies.agent import OwnPolicy, seat_policy
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.lookahead import MAX_FUTURES, Lookahead
from acerl_np.policies.origin import warn_of_difference
from acerl_np.policies.rules import RULES, find_policy_name
from acerl_np.problem.bundled import load_layout
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.packing import UNUSABLE
from acerl_np.simulation.scene import Chooses
from acerl_np.support.errors import (
    EventError,
    EventWarning,
    InputError,
    LogWarning,
    RecordError,
    StorageError,
    describe,
    list_some,
)
from acerl_np.support.fields import MOST as LARGEST
from acerl_np.support.fields import Field, refuse
from acerl_np.support.numbers import Whole, check_seed, is_real
from acerl_np.support.own import trusting
from acerl_np.support.sharing import CopiedWhole, Exclusive, Method, exclusive_all

MANUAL = "manual"
"""In place of a rule where somebody else has decided."""

PLACED = (events.VehiclePassed, events.VehicleParked, events.VehicleCharging)
"""Events that say where a vehicle is."""

OPTIONS = ("greedy", "seed", "budget", "explain", "task_ids", "lateness", "ahead")
"""Arguments that are saved, and stand in the log."""

ERRAND_OPTIONS = ("commitment", "max_changes", "parks", "charges")
"""Besides, where vehicles park, charge or are called back."""

FORECAST_BUDGET = 0.012
"""s per forecast, after which no further future is begun."""

LATEST = 86_400
"""s, the largest lateness of events: they are kept that long."""

SECONDS = {
    "start": Field(float, -LARGEST, LARGEST, expected="seconds"),
    "lateness": Field(float, 0.0, LATEST, expected=f"seconds from 0 to {LATEST:,}"),
    "ahead": Field(float, 0.0, MOST, above=True, expected=f"seconds until {MOST:g}"),
    "budget": Field(float, 0.0, 1e6, optional=True, expected="seconds, or None"),
}
"""Options of a dispatcher that are times."""

FUTURES = Field(int, 1, MAX_FUTURES)

BUDGET = 0.002
"""s per decision of a lookahead, the paper's limit."""

STATE = ("_decisions", "_lines", "_opens", "_asked", "_next_errand")
"""Attributes of a `Dispatcher` that change, besides its orders."""

get_state = attrgetter(*STATE)


def undone(method: Method) -> Method:
    """Let a method of a dispatcher that raises anything, Ctrl-C among it, leave it as it was.

    But for a StorageError: what happened has, and only the log lacks it so far. What the method changes of
    dicts and sets are new ones in their place.
    """

    @wraps(method)
    def enter(owner: Any, /, *given: Any, **named: Any) -> Any:
        kept = get_state(owner), vars(owner._orders).copy(), owner._feed.mark()
        try:
            return method(owner, *given, **named)
        except StorageError:
            raise
        except BaseException as error:
            try:
                owner._go_back(*kept, error)
            except BaseException as another:  # Ctrl-C in the midst of it
                owner._go_back(*kept, another)
                raise
            raise

    return cast(Method, enter)


@exclusive_all
class Dispatcher(CopiedWhole):
    """Assign waiting tasks to free vehicles as events come in, and send others to charge or park.

    One thread at a time may use it: a call raises `SharingError` while another thread is in one.
    It can be copied and pickled; a copy has no log, which goes on with the original.

    Parameters
    ----------
    layout : Layout, str or path-like
        Floor and fleet, as an object, a JSON path or the name of a bundled layout; every vehicle begins
        idle at its start site. Its breakdowns, listed or random, are ignored: `VehicleBroke` says when
        one happens.
    policy : Policy, IndexPolicy, StaticPlan, Lookahead, Agent, str or object
        A policy of any form, or the name of a rule such as "EDD" (the vehicle is then drawn from those
        that have a choice, as in `evaluate_policy`) or "nearest" (which chooses the vehicle, too), or an
        object of your own with a method `choose(sim)`: `sim` is a `Scene` of one episode, the floor.
    greedy : bool
        Take what a network or an index policy likes best; otherwise it is sampled.
    seed : int
        Key of the draws.
    budget : float or None
        s per decision of a lookahead: the best answer known by then is taken. None: all its futures.
    start : float
        Time zero of the day by the plant's clock, near its first event: from it planned breakdowns and a
        lookahead's historical records count, and at it batteries are as the layout says; see `begin_day`.
    explain : bool
        Whether each assignment has its reason; that takes time.
    audit : path-like, optional
        A log of all events and assignments, a JSON object on each line; what is there already stays. A line
        is with the operating system before the call that adds it returns; see `recover`. No other dispatcher
        may write to it until `close`, or the end of this one or of its process.
    task_ids : sequence of str, optional
        Ids of the day's tasks, for a network with slots "task": it knows tasks by their ids. A task with
        another id takes the lowest slot that none of these has.
    lateness : float
        s that an event's time may be behind the latest one; see `feed`.
    ahead : float
        s that a time may be after the latest of all events, questions and `start`: more is refused as of
        another clock or unit. The first one may be as much before `start`, too.
    fsync : bool
        Whether each line of the log is on the disk before the call returns, so that also a power cut loses
        none. It takes as long as the disk does.
    commitment : {"assignment", "pickup"}, optional
        Until when a task may be taken from its vehicle and given to another one; by default as
        the policy was trained, or the layout says.
    max_changes : int, optional
        How often a task may be; by default as of `commitment`.
    parks, charges : bool
        Whether idle vehicles are sent to the layout's parking places, and to its chargers. If not, the plant
        does that: `send` says so.

    Raises
    ------
    PolicyError
        If the policy was trained for floors of another size or for other vehicles, the rule is unknown, or
        slots "task" come without ids.
    InputError
        If the layout or an option is not usable.
    StorageError
        If the log cannot be written, or another dispatcher writes it.

    Warns
    -----
    PolicyWarning
        If a policy was trained for another floor or fleet; breakdowns do not count.

    Examples
    --------
    >>> import acerl_np
    >>> dispatcher = acerl_np.Dispatcher(acerl_np.load_layout("dmh"), "STD")
    >>> dispatcher.feed(acerl_np.TaskArrived(0.0, "t1", "st1", "st5", expiry=400.0))
    >>> [assignment.task for assignment in dispatcher.decide(0.0)]
    ['t1']
    """

    def __init__(
        self,
        layout: Layout | str | os.PathLike[str],
        policy: BasePolicy | str | Chooses,
        *,
        greedy: bool = True,
        seed: Whole = 0,
        budget: float | None = BUDGET,
        start: float = 0.0,
        explain: bool = False,
        audit: str | os.PathLike[str] | None = None,
        task_ids: Sequence[str] | None = None,
        lateness: float = LATE,
        ahead: float = AHEAD,
        fsync: bool = False,
        commitment: str | None = None,
        max_changes: int | None = None,
        parks: bool = True,
        charges: bool = True,
    ) -> None:
        self._use = Exclusive("dispatcher")
        if isinstance(layout, str | os.PathLike):
            layout = load_layout(layout)
        if not isinstance(layout, Layout):
            refuse("layout", layout, "a Layout or its file")
        policy = seat_policy(policy)
        if isinstance(policy, str):
            policy = find_policy_name(policy, tuple(RULES))
        self.policy = policy
        self.greedy = bool(greedy)
        self.seed = check_seed(seed)
        self.explain = bool(explain)
        times = {"budget": budget, "start": start, "lateness": lateness, "ahead": ahead}
        self.budget, start, self.lateness, self.ahead = (
            SECONDS[name].read(name, time, InputError) for name, time in times.items()
        )
        if not isinstance(policy, str) and policy.commitment is not None:
            layout = layout.with_commitment(policy.commitment, policy.max_changes)
        if commitment is not None or max_changes is not None:
            most = layout.max_changes if max_changes is None else max_changes
            layout = layout.with_commitment(commitment or layout.commitment, most)
        self.commitment, self.max_changes = layout.commitment, layout.max_changes
        self.parks, self.charges = bool(parks), bool(charges)
        self._decisions = self._lines = 0
        self._orders = told.Orders()
        self._opens = True
        """Whether something has happened since the last decision that opens another one."""
        self._asked = -math.inf
        """When decisions were last made, s."""
        self._next_errand = math.inf
        """When something may come of levels or parking, s."""
        if not isinstance(policy, str):
            policy.check_layout(layout, "dispatcher")
            warn_of_difference(policy, [("dispatcher", layout)])
        if isinstance(task_ids, str) or not isinstance(task_ids, Iterable | None):
            refuse("task_ids", task_ids, "ids of tasks, or None")
        self.task_ids = None if task_ids is None else tuple(task_ids)
        self._decider = LiveDecider(
            policy, greedy=self.greedy, seed=self.seed, budget=self.budget, task_ids=self.task_ids
        )
        self._floor = Floor(layout, self._decider)
        self._floor.apply(told.DayBegan(-math.inf, start))
        self._warm_up()
        self._feed = Feed(self._floor, self.lateness, self.ahead)
        self._audit: logs.AuditLog | None = None
        self._forecasting: tuple[Sequence[Instance] | None, Forecaster] | None = None
        if audit is not None:
            self._begin_log(logs.AuditLog(audit, fsync=bool(fsync)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the log, so that another dispatcher may go on with it; what comes later cannot be written.

        A `with` block does that at its end. Without a log nothing happens.

        Raises
        ------
        StorageError
            If a line that is left cannot be written; the log is closed all the same.
        """
        if self._audit is not None:
            self._audit.close()

    def __getstate__(self) -> dict[str, Any]:
        # A log is an open file, whose number may be that of another one when the copy writes.
        return {**vars(self), "_audit": None, "_forecasting": None}

    def _warm_up(self) -> None:
        """Compile or load the kernels now, not at the first decision."""
        floor = self._floor
        if isinstance(self.policy, OwnPolicy):  # which is asked about no task that is none
            self._decider.show(floor, 0.0).pairs()
        elif not isinstance(self.policy, Lookahead):
            before = floor.snapshot()
            floor.try_task()
            found = self._decider.decide(floor, 0, 0.0)
            if found.vehicle >= 0:
                if self.explain:
                    self._decider.explain(floor, found, 0.0)
                floor.carry(found.vehicle, found.position, 0.0)
            floor.restore(before)
        self._decider.tell(floor, 0.0)
        if isinstance(self.policy, Lookahead):
            self._decider.decide(floor, 0, floor.day.start)

    def _begin_log(self, log: logs.AuditLog) -> None:
        self._audit = log
        self._note(
            logs.STARTED,
            start=self._floor.day.start,
            options=self._list_options(),
            policy=self.policy if isinstance(self.policy, str) else type(self.policy).__name__,
            layout=self._floor.layout.name,
            vehicles=[vehicle.id for vehicle in self._floor.layout.vehicles],
        )

    def _list_options(self) -> dict[str, Any]:
        names = (*OPTIONS, *ERRAND_OPTIONS) if self._floor.has_errands else OPTIONS
        return {name: getattr(self, name) for name in names}

    def _note(self, kind: str, **values: Any) -> None:
        """Add a line to the log, and count it; lines are counted without a log, too.

        The count says what a state has seen: a line replaces all that have its count or a higher one, which
        came after the state from which a dispatcher was started anew.
        """
        line, self._lines = self._lines, self._lines + 1
        if self._audit is not None:
            self._audit.note(kind, line=line, **values)

    @property
    def layout(self) -> Layout:
        """Floor and fleet as they are now."""
        return self._floor.layout

    @property
    def waiting(self) -> tuple[str, ...]:
        """Names of the waiting tasks, in pool order."""
        return tuple(self._floor.pool)

    @property
    def planned(self) -> tuple[str, ...]:
        """Names of the tasks that are held back: until their earliest starts, or what they follow is done."""
        return tuple(self._floor.planned)

    @property
    def next_time(self) -> float | None:
        """When to ask next though nothing happens, s. None if there is no need to.

        A task may begin then, or a vehicle may be sent to park or charge, or have charged enough for a task.
        """
        release = self._floor.next_release
        time = min(math.inf if release is None else release, self._next_errand)
        return None if math.isinf(time) else time

    @property
    def _fleet(self) -> Iterator[tuple[str, LiveVehicle]]:
        floor = self._floor
        return zip((item.id for item in floor.layout.vehicles), floor.vehicles, strict=True)

    @property
    def under_way(self) -> dict[str, str]:
        """Tasks under way and their vehicles."""
        return self._find_under_way()

    def _find_under_way(self) -> dict[str, str]:
        return {own.task: name for name, own in self._fleet if own.task is not None}

    @property
    def idle(self) -> tuple[str, ...]:
        """Names of the idle vehicles in service."""
        return tuple(name for name, own in self._fleet if own.is_ready)

    @property
    def levels(self) -> dict[str, float]:
        """Energy of each vehicle that has a battery, as far as is known at the time of the last event."""
        known = {name: self._floor.believe_level(name, self._feed.time) for name, _ in self._fleet}
        has_battery = zip(known, self._floor.layout.batteries, strict=True)
        return {name: known[name] for name, battery in has_battery if battery is not None}

    @property
    def sites(self) -> dict[str, str]:
        """Each vehicle and the site that it visited last."""
        return {name: self._floor.layout.sites[own.site].id for name, own in self._fleet}

    @property
    def out_of_service(self) -> tuple[str, ...]:
        """Names of the vehicles that are out of service."""
        return tuple(name for name, own in self._fleet if own.service == OUT)

    @property
    def held(self) -> tuple[Event, ...]:
        """Events fed with `hold=True` that cannot have happened as far as is known."""
        return self._feed.held

    @property
    def expired(self) -> tuple[Event, ...]:
        """The last 100 events fed with `hold=True` of which a later event said that nothing comes before."""
        return self._feed.expired

    @property
    def last_number(self) -> int | None:
        """Highest number that an event was fed with, None before any: after `recover` go on after it."""
        return self._feed.numbers.last

    @property
    def missing_numbers(self) -> tuple[range, ...]:
        """Numbers between the first and the last of `feed` with which no event was taken in, as ranges."""
        return self._feed.numbers.missing

    @undone
    def begin_day(self, start: float) -> None:
        """Set time zero, and forget what has arrived and been delivered before; what waits goes on waiting.

        Parameters
        ----------
        start : float
            s.

        Raises
        ------
        EventError
            If it is no number.
        """
        start = SECONDS["start"].read("begin_day", start, EventError)
        clock = self._feed.time
        self._feed.expire(clock)
        self._feed.begin_day(start)
        self._note(logs.DAY_BEGAN, start=start, clock=saving.pack_time(clock))

    @undone
    def feed(self, event: Event, *, hold: bool = False, number: int | None = None) -> None:
        """Take in what has happened.

        An event that is up to `lateness` late, by default 5 s, is settled by its own time: it corrects what
        is known, but takes back no assignment that has been given. An event that came already, with the same
        content or the same number, is ignored.

        Parameters
        ----------
        event : Event
            Of one of the event classes; one of a class derived from these counts as of that class.
        hold : bool
            Keep an event that cannot have happened, as far as is known, for `lateness`: what makes it
            possible may come late. It is not refused then. If nothing does, it is in `expired`, and its
            number may come again.
        number : int, optional
            The plant's own number of the event, such as a counter of its messages. What was taken in with it
            once, also before `recover`, is ignored however late it comes again. The number of a refused event
            may come again.

        Raises
        ------
        EventError
            If it cannot have happened, or is too late, or more than `ahead` too early; nothing is changed
            then, as after anything else that is raised but a StorageError.
        StorageError
            If it cannot be written to the log; it is taken in, and will be written before the next line.

        Warns
        -----
        EventWarning
            If a level has fallen by more than half of what is `full`: it may be of another unit.
        """
        event, number = events.as_told(event, number)
        self._feed.check_time(type(event).__name__, event.time)
        mark = self._feed.mark()
        gone = self._feed.expire(max(self._feed.time, float(event.time)))
        if number is not None and number in self._feed.numbers:
            self._feed.undo(mark)  # no line tells of what is ignored
            return
        name = event.vehicle if isinstance(event, events.VehicleLevel) else None
        times = () if name is None else (self._feed.time, event.time)
        believed = [self._floor.believe_level(name, time) for time in times]
        with naming(event):
            check_record(event)
        entry = self._feed.take(event, holds=bool(hold), told=number)
        if entry is None:
            self._feed.undo(mark)
            return
        self._orders.settle(event)
        if not isinstance(event, events.VehicleLevel):
            self._open(event)
        elif entry.is_settled:
            self._compare_level(event, *believed)
        self._keep_release()
        if number is not None:
            self._feed.turn_number(number)
        self._note_event(event, number, hold=hold, gone=gone)

    def _open(self, event: Event) -> None:
        """Note whether an event opens decisions."""
        if isinstance(event, PLACED):
            # It does if what has ended then makes one possible.
            self._asked = min(self._asked, float(event.time) - 1.0)
        elif isinstance(event, events.TaskArrived):
            self._opens |= not event.after
        elif not isinstance(event, events.MachineBusy):
            self._opens |= not isinstance(event, events.RecallAnswered) or not event.done

    def _compare_level(self, event: events.VehicleLevel, before: float, believed: float) -> None:
        """Note whether a level opens decisions, and warn of one that has fallen far.

        `before` and `believed` is what was reckoned with at the latest time, and at that of the event.
        """
        level, battery = self._floor.read_level(event)
        self._opens |= level > before and event.vehicle not in self._find_under_way().values()
        if believed - level > battery.full / 2:
            warnings.warn(
                f"VehicleLevel at {event.time} s: vehicle '{event.vehicle}' has {level:g} of "
                f"{battery.capacity:,}; {believed:.0f} were expected; a share is told by percent=",
                EventWarning,
                stacklevel=5,
            )

    def _note_event(
        self, event: Event, number: int | None, *, hold: bool, gone: Iterable[Event]
    ) -> None:
        """Add an event to the log, with those that are held no more."""
        if self._audit is None:
            self._lines += 1
            return
        more: dict[str, Any] = {} if number is None else {"number": number}
        if hold:
            more["hold"] = True
        if gone:
            more["expired"] = [{"kind": type(item).__name__, **vars(item)} for item in gone]
        if self._feed.time != event.time:
            more["clock"] = self._feed.time
        self._note(type(event).__name__, **vars(event), **more)

    def _go_back(
        self,
        kept: Sequence[Any],
        orders: dict[str, Any],
        mark: tuple[Any, ...],
        error: BaseException,
    ) -> None:
        """Be again as before an error."""
        for name, value in zip(STATE, kept, strict=True):
            setattr(self, name, value)
        vars(self._orders).update(orders)
        self._feed.undo(mark, error)

    def _move_to(self, now: float, what: str) -> float:
        """Let time pass until a question, and return it."""
        now = self._check_time(now, what)
        if self._floor.next_release is None:
            self._feed.time = now
        else:
            self._release(now)
        return now

    @undone
    def _release(self, now: float) -> None:
        self._feed.move_to(now)
        self._keep_release()

    def _keep_release(self) -> None:
        """Note that a task that was held back begins to wait: the floor forgets when, if it is replayed."""
        self._opens |= self._asked < self._floor.last_release

    def decide(self, now: float) -> list[Order]:
        """Assign waiting tasks as long as a free vehicle may carry one; then send idle ones to charge, park.

        With `commitment="pickup"`, once something has happened, tasks that are not loaded yet are given anew
        with those that wait: a `Recall` comes before what its vehicle, or its task, has instead.

        Parameters
        ----------
        now : float
            s, not before the last event.

        Returns
        -------
        list of Order
            In the order in which they were decided; empty if there is nothing to decide. After `recover`, and
            after a call that raised, those come first that may not have reached the plant, as `repeated`.
            All are of type `Assignment` unless the layout has batteries or parking places or tasks change
            hands.

        Raises
        ------
        EventError
            If time runs backwards, or more than `ahead` forwards; nothing is changed then.
        ActionError
            If a policy of your own chooses an impossible assignment; those before it stay, and the next call
            returns them.
        StorageError
            If one cannot be written to the log; the next call returns what was decided.
        """
        now = self._move_to(now, "decide")
        orders = self._take_owed() if self._orders.owed else []
        floor, decider = self._floor, self._decider
        try:
            if self._is_opened(now):
                if floor.calls_back:
                    self._decide_round(now, orders)
                else:
                    while floor.pool and (floor.n_ready or floor.has_errands):
                        found = decider.decide(floor, self._decisions, now)
                        if found.vehicle < 0:
                            break
                        orders.append(self._assign(now, found))
            self._opens, self._asked = False, now
            if floor.has_errands:
                self._send_idle(now, orders)
        except BaseException:
            self._orders.owe(orders)
            raise
        return orders

    def _is_opened(self, now: float) -> bool:
        """Whether something has happened since the last decision at which tasks may be given."""
        released = self._asked < self._floor.last_release
        if self._opens or released or not self._floor.has_errands:
            return True
        return self._decider.is_opened(self._floor, now, self._asked)

    def _decide_round(self, now: float, orders: list[Order]) -> None:
        """Give the tasks that wait or are not loaded yet; each vehicle and each task takes part once."""
        self._opens = True  # also if this fails
        floor = self._floor
        offer = floor.open_round(now)
        try:
            while offer:
                floor.offer(offer)
                found = self._decider.decide(floor, self._decisions, now)
                if found.vehicle < 0:
                    break
                reason = self._find_reason(found, now)
                name = offer.pop(found.position)
                taker = self._floor.layout.vehicles[found.vehicle].id
                holder, own = floor.tasks[name].vehicle, floor.vehicles[found.vehicle].task
                if holder == found.vehicle:
                    floor.settle(holder)
                    continue
                floor.offer(floor.pool)
                if holder >= 0:
                    orders.append(self._recall(now, holder, f"{taker} takes {name}"))
                if own is not None:
                    orders.append(self._recall(now, found.vehicle, f"it takes {name}"))
                found = found._replace(position=floor.pool.index(name))
                orders.append(self._assign(now, found, reason))
        finally:
            floor.close_round()

    @undone
    def _recall(self, now: float, v: int, reason: str) -> Recall:
        """Let a vehicle give its task back."""
        vehicle, task = self._floor.layout.vehicles[v].id, self._floor.vehicles[v].task
        assert task is not None
        self._floor.turn(v, now)
        order = Recall(vehicle, task, reason, self._orders.last + 1)
        self._note_order(told.Recalled(now, vehicle, task), order)
        return order

    def _send_idle(self, now: float, orders: list[Order]) -> None:
        """Send idle vehicles to charge or park, and find when to look again."""
        v = -1
        while True:
            who = self._floor, now, v + 1
            v, status, site = self._decider.find_errand(*who, self.charges, self.parks)
            if v < 0:
                self._next_errand = math.inf if site == S.NEVER else now + site
                return
            charges = status == S.TO_CHARGER
            if charges:
                level = self._floor.find_level(v, now)
                low = level < self._floor.problem.battery[0, v, S.BATTERY_GOOD]
                reason = f"level {level:.0f}: {'low' if low else 'no waiting task fits it'}"
            else:
                reason = f"idle for {now - self._floor.vehicles[v].since:.0f} s"
            orders.append(self._send(now, v, site, charges, reason))

    @undone
    def _send(self, now: float, v: int, place: int, charges: bool, reason: str) -> Park | Charge:
        """Send a vehicle to a place."""
        vehicle, site = self._floor.layout.vehicles[v].id, self._floor.layout.sites[place].id
        self._floor.send(v, charges, place, now)
        order = (Charge if charges else Park)(vehicle, site, reason, self._orders.last + 1)
        self._note_order(told.Sent(now, vehicle, site, charges), order)
        return order

    def _note_order(self, given: told.Ordered, order: Order) -> None:
        """Note an order that was carried out, also in the log; it is owed until that is done."""
        self._feed.give(given)
        self._orders.add(order)
        if self._audit is None:
            self._lines += 1
            return
        owed = self._orders.owed
        self._orders.owe([order])
        self._note(**told.pack_order(order), time=given.time)
        self._orders.owed = owed

    def _take_owed(self) -> list[Order]:
        """Return, as repeated, those of the orders owed that hold and that nobody has confirmed."""
        if self._audit is not None:
            self._audit.flush()
        fleet, sites = dict(self._fleet), self._floor.layout.sites

        def holds(made: Assignment | Park | Charge) -> bool:
            own = fleet.get(made.vehicle)
            if own is None or own.is_confirmed:
                return False
            if isinstance(made, Assignment):
                return own.task == made.task
            return own.way is not None and sites[own.way.end].id == made.site

        return self._orders.take_owed(holds)

    def observe(self, now: float) -> tuple[np.ndarray, np.ndarray]:
        """Return what a policy sees at `now`, and which actions are legal.

        Parameters
        ----------
        now : float
            s, not before the last event.

        Returns
        -------
        observation : ndarray(float32, (n_features,))
            As `Simulator.observation`.
        action_mask : ndarray(bool, (n_actions,))
            action = vehicle * number of rules + rule, those of a network or the paper's four.

        Raises
        ------
        EventError
            If time runs backwards, or more than `ahead` forwards.
        """
        now = self._move_to(now, "observe")
        scene = self._decider.show(self._floor, now)
        return scene.observation[0], scene.action_mask[0]

    def forecast(
        self,
        now: float,
        *,
        futures: int = 32,
        budget: float | None = FORECAST_BUDGET,
        history: Sequence[Instance] | None = None,
    ) -> list[Forecast]:
        """Return what is to be expected of every task that waits, is held back or is under way.

        The policy, greedy, or the base of a lookahead plays futures from `now` on, until what is known is
        delivered. Tasks that are not known yet come from historical records: the lookahead's, or those that
        the policy was trained on if they are of this floor. Where there are none, as of rules, only what is
        known is played: `Forecast.records` tells. Nothing of the dispatcher is changed, and no later
        decision. The first call compiles or loads the kernels.

        Parameters
        ----------
        now : float
            s, not before the last event.
        futures : int
            At most so many are played.
        budget : float or None
            s after which no further future is begun; the first one is always played. None: all futures, which
            makes it repeatable.
        history : sequence of Instance, optional
            Other records to take tasks from; give the same sequence again, and it is prepared once.

        Returns
        -------
        list of Forecast
            Of the waiting tasks in pool order, those under way, and those that are held back.

        Raises
        ------
        EventError
            If time runs backwards, or more than `ahead` forwards.
        PolicyError
            If the policy is one in plain Python, which plays no futures, or the records are of another floor.
        InputError
            If an option is unusable.
        """
        now = self._check_time(now, "forecast")
        futures = FUTURES.read("futures", futures, InputError)
        budget = SECONDS["budget"].read("budget", budget, InputError)
        kept = self._forecasting
        if kept is None or kept[0] is not history:
            player = find_player(self.policy, self._floor.layout, history)
            self._forecasting = kept = history, Forecaster(player, self.seed)
        return kept[1].look(self._floor, self._decisions, now, futures, budget)

    @undone
    def assign(self, now: float, vehicle: str, task: str) -> Assignment:
        """Record an assignment that somebody else has decided.

        Parameters
        ----------
        now : float
            s, not before the last event.
        vehicle : str
            Idle.
        task : str
            Waiting, and not too heavy for the vehicle.

        Returns
        -------
        Assignment
            With the rule "manual".

        Raises
        ------
        EventError
            If it cannot be; nothing is changed then.
        """
        now = self._move_to(now, "assign")
        with naming(f"assign at {now} s"):
            v, position = self._floor.check_assignment(vehicle, task)
        return self._assign(now, Decision(v, position, MANUAL, 0))

    @undone
    def send(self, now: float, vehicle: str, site: str) -> Park | Charge:
        """Record that somebody else sends a vehicle without a task to a charger or a parking place.

        Parameters
        ----------
        now : float
            s, not before the last event.
        vehicle : str
        site : str
            With a charger, if the vehicle has a battery, or a parking place.

        Returns
        -------
        Park or Charge
            With the reason "manual".

        Raises
        ------
        EventError
            If it cannot be; nothing is changed then.
        """
        now = self._move_to(now, "send")
        with naming(f"send at {now} s"):
            v, place, charges = self._floor.check_errand(vehicle, site)
        return self._send(now, v, place, charges, MANUAL)

    def _find_reason(self, found: Decision, now: float) -> events.Explanation | None:
        """Return why a decision was taken, before it is carried out, if that is wanted."""
        if self.explain and found.rule != MANUAL:
            return self._decider.explain(self._floor, found, now)
        return None

    @undone
    def _assign(
        self, now: float, found: Decision, reason: events.Explanation | None = None
    ) -> Assignment:
        """Carry out what has been decided."""
        floor = self._floor
        reason = reason or self._find_reason(found, now)
        task = floor.carry(found.vehicle, found.position, now)
        self._decisions += 1
        vehicle = floor.layout.vehicles[found.vehicle].id
        finish = floor.vehicles[found.vehicle].finish
        number = self._orders.last + 1
        assignment = Assignment(vehicle, task, found.rule, found.futures, finish, reason, number)
        self._note_order(told.Given(now, vehicle, task), assignment)
        return assignment

    def _check_time(self, time: float, what: str) -> float:
        if not is_real(time):
            raise EventError(f"{what}: read time {describe(time)}; expected seconds")
        self._feed.check_time(what, time)
        if time < self._feed.time:
            raise EventError(
                f"{what} at {time} s: before the last event at {self._feed.time} s; "
                "expected times in order"
            )
        return float(time)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the dispatcher to an `.npz` file, atomically; `load` continues from it.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        PolicyError
            If the policy is one in plain Python, which no file can hold.
        StorageError
            If the file, or a line of the log, cannot be written.
        """
        if self._audit is not None:
            self._audit.flush()
        options = {
            "rule": self.policy if isinstance(self.policy, str) else None,
            **self._list_options(),
            "decisions": self._decisions,
            "lines": self._lines,
            "numbers": self._feed.numbers.ends,
            "given": self._orders.pack(),
            "last_order": self._orders.last,
            "opens": self._opens,
            "asked": saving.pack_time(self._asked),
            "next_errand": saving.pack_time(self._next_errand),
        }
        saving.write_dispatcher(path, self.policy, options, self._feed)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        audit: str | os.PathLike[str] | None = None,
        fsync: bool = False,
        trust: bool = False,
    ) -> Dispatcher:
        """Restore a dispatcher that `save` wrote, as it was then; `recover` adds what came after.

        Parameters
        ----------
        path : path-like
        audit : path-like, optional
            The log that goes on; its lines since the state was saved count as replaced.
        fsync : bool
            As of a dispatcher.
        trust : bool
            Import a function that its policy names unseen, see `load_policy`.

        Returns
        -------
        Dispatcher

        Raises
        ------
        InputError
            If the file is missing, damaged, of another format version, or holds no dispatcher.
        StorageError
            If the log cannot be written.
        """
        with trusting(trust):
            dispatcher = cls._restore(path)
        if audit is not None:
            dispatcher._begin_log(logs.AuditLog(audit, fsync=bool(fsync)))
        return dispatcher

    @classmethod
    def _restore(
        cls,
        path: str | os.PathLike[str],
        policy: BasePolicy | str | Chooses | None = None,
        **options: Any,
    ) -> Dispatcher:
        """Restore a saved dispatcher, on request with another policy and other options."""
        data, policy = saving.read_dispatcher(path, policy)
        try:
            layout = Layout.from_dict(data["layout"])
            kept = {name: data[name] for name in (*OPTIONS, *ERRAND_OPTIONS) if name in data}
            dispatcher = cls(layout, policy, **{**kept, **options})
            dispatcher._decisions = int(data["decisions"])
            saving.unpack_feed(dispatcher._feed, data, dispatcher.layout)
            dispatcher._lines = int(data["lines"])
            dispatcher._feed.numbers = Numbers(int(end) for end in data["numbers"])
            dispatcher._orders.unpack(data["given"], int(data["last_order"]))
            dispatcher._opens = bool(data["opens"])
            dispatcher._asked = saving.read_time(data["asked"])
            dispatcher._next_errand = saving.read_time(data["next_errand"], math.inf)
        except UNUSABLE as error:
            raise InputError(saving.describe_unusable(path, error)) from error
        return dispatcher

    @classmethod
    def recover(
        cls,
        layout: Layout | str | os.PathLike[str],
        policy: BasePolicy | str | Chooses,
        *,
        audit: str | os.PathLike[str],
        state: str | os.PathLike[str] | None = None,
        fsync: bool = False,
        **options: Any,
    ) -> Dispatcher:
        """Build a dispatcher from its log, as it was when its process ended, and go on in the same file.

        The first `decide` returns once more, with the same number and as `repeated`, each assignment that
        still holds and that the plant has not confirmed: by `VehiclePassed`, as the vehicle has come to the
        task's pickup since, or by an event that ends it. Before it, feed what the plant has to tell again:
        all events with a number above `last_number`, and any of which it is unsure, as numbers that are known
        are ignored. A last line that was cut off counts as not written.

        Parameters
        ----------
        layout, policy
            As when the dispatcher was made first; the policy may be another one. A saved one is not read.
        audit : path-like
            The log. One without a whole line begins with this dispatcher.
        state : path-like, optional
            What `save` wrote: lines of the log from there on are enough, as after a change to a new file.
        fsync : bool
            As of a dispatcher.
        **options
            As of a dispatcher, by default those of the log's last start or the saved state. The day's start
            is the log's.

        Returns
        -------
        Dispatcher

        Raises
        ------
        RecordError
            If the log cannot be read, is of another fleet or of an older version, lacks lines, or holds one
            that cannot be; the message names the line.
        InputError
            If the saved state is unusable, or layout or options are.
        StorageError
            If the log cannot be written.

        Warns
        -----
        LogWarning
            If its last line was cut off, or the time of one lies so far ahead that it is passed over.
        """
        lines, torn, size = logs.read_log(audit)
        if isinstance(layout, str | os.PathLike):
            layout = load_layout(layout)
        if state is not None:
            dispatcher = cls._restore(state, policy, **options)
            if isinstance(layout, Layout) and layout.floor_hash != dispatcher.layout.floor_hash:
                raise InputError(
                    f"{state}: of another floor than layout '{layout.name}'; expected the same"
                )
        elif lines:
            logged = lines[0][1]
            place, last = [item for item in lines if item[1]["kind"] == logs.STARTED][-1]
            known = (*OPTIONS, *ERRAND_OPTIONS)
            kept = {name: value for name, value in last["options"].items() if name in known}
            given = {**kept, **options, "start": logged["start"]}
            try:
                dispatcher = cls(layout, policy, **given)
            except InputError as error:
                if str(error).split(":")[0] not in kept.keys() - options.keys():
                    raise
                raise RecordError(f"{audit}: {place}: {logs.STARTED}: {error}") from error
            fleet = [vehicle.id for vehicle in dispatcher.layout.vehicles]
            if logged["line"] == 0 and fleet != logged["vehicles"]:
                found = list_some([describe(name) for name in logged["vehicles"]], 20)
                raise RecordError(
                    f"{audit}: {lines[0][0]}: vehicles: read {found}; expected "
                    f"those of layout '{dispatcher.layout.name}': {list_some(fleet, 20)}"
                )
        else:
            dispatcher = cls(layout, policy, **options)
        dispatcher._redo(audit, lines)
        log = logs.AuditLog(audit, fsync=bool(fsync), size=size)
        if torn:
            what = f"{audit}: {torn}: cut off, as by a kill; it counts as not written"
            warnings.warn(what, LogWarning, stacklevel=2)
        dispatcher._begin_log(log)
        return dispatcher

    def _redo(
        self, path: str | os.PathLike[str], lines: Iterable[tuple[str, dict[str, Any]]]
    ) -> None:
        """Let happen again what a log says from the present line on."""
        for place, line in lines:
            if line["line"] > self._lines:
                raise RecordError(
                    f"{path}: {place}: read the log's line {line['line']}; expected line {self._lines}, or "
                    "state=, a dispatcher that was saved after the lines that are missing"
                )
            if line["line"] < self._lines:
                continue
            with logs.name_line(f"{path}: {place}", line):
                logs.redo_line(self._feed, line, f"{path}: {place}")
                if line["kind"] in logs.ORDERS:
                    order = told.unpack_order(line)
                    self._decisions += isinstance(order, Assignment)
                    self._orders.add(order)
                elif "number" in line:
                    self._feed.numbers.add(int(line["number"]))
                if line["kind"] in events.EVENTS:
                    self._orders.settle(saving.read_event(events.EVENTS[line["kind"]], line))
            self._lines += 1
        self._feed.lateness, self._feed.ahead = self.lateness, self.ahead
        self._orders.owe_all()
