"""The live side: a control system feeds what happens on the floor and asks who takes which task.

Nothing is simulated here and no clock runs: every event and every question carries its time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from acerl_np.live import recovery, rounds, saving, shadow, watching
from acerl_np.live.decision import LiveDecider
from acerl_np.live.desk import Desk
from acerl_np.live.events import Assignment, Charge, Event, Forecast, Order, Park, as_told
from acerl_np.live.feed import AHEAD, LATE
from acerl_np.live.floor import MOST, Floor
from acerl_np.live.forecast import Forecaster, find_player
from acerl_np.live.log import FORMAT, STARTED, AuditLog, LogReader, name_new, reading
from acerl_np.live.meeting import MeetingFloor
from acerl_np.live.orders import DayBegan, Followed
from acerl_np.live.parts import OUT
from acerl_np.live.states import TaskState
from acerl_np.policies.files import AnyPolicy, BasePolicy, as_decider
from acerl_np.policies.lookahead import MAX_FUTURES
from acerl_np.policies.origin import warn_of_difference
from acerl_np.policies.rules import RulePolicy
from acerl_np.problem.bundled import load_layout
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.packing import unpack_json
from acerl_np.simulation.scene import Chooses
from acerl_np.support.errors import EventError, InputError, PolicyError, StorageError, refuse
from acerl_np.support.fields import MOST as LARGEST
from acerl_np.support.fields import Field, Whole, check_seed
from acerl_np.support.files import FilePath, describe_os_error, path_exists, sync_folder
from acerl_np.support.sharing import CopiedWhole, Exclusive, exclusive_all
from acerl_np.support.trust import trusting
from acerl_np.support.version import __version__

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


def _fit_layout(
    layout: Layout | FilePath,
    policy: BasePolicy | str,
    commitment: str | None,
    max_changes: int | None,
) -> Layout:
    """Return the layout with the commitment that is told, else with that of the policy."""
    if isinstance(layout, str | os.PathLike):
        layout = load_layout(layout)
    if not isinstance(layout, Layout):
        refuse("layout", layout, "a Layout or its file")
    if not isinstance(policy, str) and policy.commitment is not None:
        layout = layout.with_commitment(policy.commitment, policy.max_changes)
    if commitment is None and max_changes is None:
        return layout
    most = layout.max_changes if max_changes is None else max_changes
    return layout.with_commitment(commitment or layout.commitment, most)


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
    policy : Policy, IndexPolicy, Lookahead, Agent, str or object
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
    loads : {"stay", "return"}
        What becomes of a task that is loaded as its vehicle breaks down: it is stranded with it, or waits at
        its pickup again. A log goes on as it began.

    Attributes
    ----------
    desk : Desk
        What is known and ordered, and the log: for a service, which stands beside.

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

    See Also
    --------
    TaskArrived : An event.
    Assignment : An order.
    Simulator : The same floor, simulated.

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
        layout: Layout | FilePath,
        policy: BasePolicy | str | Chooses,
        *,
        greedy: bool = True,
        seed: Whole = 0,
        budget: float | None = BUDGET,
        start: float = 0.0,
        explain: bool = False,
        audit: FilePath | None = None,
        task_ids: Sequence[str] | None = None,
        lateness: float = LATE,
        ahead: float = AHEAD,
        fsync: bool = False,
        commitment: str | None = None,
        max_changes: int | None = None,
        parks: bool = True,
        charges: bool = True,
        loads: str = "stay",
    ) -> None:
        self._use = Exclusive("dispatcher")
        policy = as_decider(policy)
        policy = policy.name if isinstance(policy, RulePolicy) else policy
        self.policy = policy
        self.greedy, self.explain = bool(greedy), bool(explain)
        self.seed = check_seed(seed)
        times = {"budget": budget, "start": start, "lateness": lateness, "ahead": ahead}
        self.budget, start, self.lateness, self.ahead = (
            SECONDS[name].read(name, time, InputError) for name, time in times.items()
        )
        layout = _fit_layout(layout, policy, commitment, max_changes).with_loads(loads)
        self.commitment, self.max_changes = layout.commitment, layout.max_changes
        self.parks, self.charges, self.loads = bool(parks), bool(charges), layout.loads
        if not isinstance(policy, str):
            policy.check_layout(layout, "dispatcher")
            warn_of_difference(policy, [("dispatcher", layout)])
        if isinstance(task_ids, str) or not isinstance(task_ids, Iterable | None):
            refuse("task_ids", task_ids, "ids of tasks, or None")
        self.task_ids = None if task_ids is None else tuple(task_ids)
        self._decider = LiveDecider(
            policy,
            greedy=self.greedy,
            seed=self.seed,
            budget=self.budget,
            task_ids=self.task_ids,
            explains=self.explain,
            parks=self.parks,
            charges=self.charges,
        )
        kind = Floor if layout.traffic is None else MeetingFloor
        self._floor = kind(layout, self._decider)
        self._floor.apply(DayBegan(-math.inf, start))
        rounds.warm_up(self._floor, self._decider)
        self.desk = Desk(self._floor, self.lateness, self.ahead)
        self._forecasting: tuple[Sequence[Instance] | None, Forecaster] | None = None
        self._is_taken = False
        """Whether the policy was taken over by one that ran."""
        if audit is not None:
            self._begin_log(audit, fsync)

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
        if self.desk.log is not None:
            self.desk.log.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_forecasting": None}

    def _begin_log(self, path: FilePath, fsync: bool, size: int | None = None) -> None:
        self.desk.log = AuditLog(path, fsync=bool(fsync), size=size)
        self._note_start()

    def _note_start(self) -> None:
        self.desk.note(
            STARTED,
            format=FORMAT,
            start=self._floor.day.start,
            options=self._list_options(),
            policy=self.policy if isinstance(self.policy, str) else type(self.policy).__name__,
            policy_hash=saving.hash_policy(self.policy),
            **({"taken": True} if self._is_taken else {}),
            layout=self._floor.layout.name,
            floor=self._floor.layout.floor_hash,
            version=__version__,
            vehicles=list(self._floor.fleet),
        )

    def _list_options(self) -> dict[str, Any]:
        names = saving.ALL_OPTIONS if self._floor.has_auxiliary else saving.OPTIONS
        return {name: getattr(self, name) for name in names}

    @property
    def options(self) -> dict[str, Any]:
        """The arguments, but for policy, start and log, with which another one of this floor is made."""
        own = {"commitment": self.commitment, "max_changes": self.max_changes}
        return {**self._list_options(), **own, "layout": self._floor.layout}

    @property
    def layout(self) -> Layout:
        """Floor and fleet as they are now."""
        return self._floor.layout

    def __repr__(self) -> str:
        """Return its floor, policy and tasks."""
        tasks = f"{len(self.waiting)} tasks waiting, {len(self.under_way)} under way"
        return f"Dispatcher({self.layout.name!r}, {self.policy!r}: {tasks})"

    @property
    def waiting(self) -> tuple[str, ...]:
        """Names of the waiting tasks, in pool order."""
        return tuple(self._floor.pool)

    @property
    def planned(self) -> tuple[str, ...]:
        """Names of the tasks that are held back: until their earliest starts, or what they follow is done."""
        return tuple(self._floor.planned)

    @property
    def time(self) -> float:
        """The latest time of all events and questions, s; -inf before any."""
        return self.desk.feed.time

    @property
    def next_time(self) -> float | None:
        """When to ask next though nothing happens, s. None if there is no need to.

        A task may begin then, or a vehicle may be sent to park or charge, or have charged enough for a task.
        """
        time = min(self._floor.next_release, self.desk.orders.next_errand)
        return None if math.isinf(time) else time

    @property
    def is_open(self) -> bool:
        """Whether a question may bring orders: something has happened since the last, or some are owed."""
        orders = self.desk.orders
        is_later = self._floor.has_auxiliary and orders.asked < self.desk.feed.time
        return orders.opens or bool(orders.owed) or is_later

    @property
    def under_way(self) -> dict[str, str]:
        """Tasks under way and their vehicles."""
        fleet = self._floor.fleet
        return {own.task: name for name, own in fleet.items() if own.task is not None}

    @property
    def idle(self) -> tuple[str, ...]:
        """Names of the idle vehicles in service."""
        return tuple(name for name, own in self._floor.fleet.items() if own.is_ready)

    @property
    def unplanned(self) -> tuple[str, ...]:
        """Names of the vehicles whose ways are predicted as if they met nobody, where vehicles meet.

        As they were reported, no way is left for them around what the others have planned. The next report
        of theirs is tried anew.
        """
        return tuple(name for name, own in self._floor.fleet.items() if own.alone)

    @property
    def closed(self) -> tuple[tuple[str, str], ...]:
        """Pairs of sites between which edges are closed now."""
        return self._floor.layout.closed

    @property
    def levels(self) -> dict[str, float]:
        """Energy of each vehicle that has a battery, as far as is known at the time of the last event."""
        floor, time = self._floor, self.desk.feed.time
        fleet = zip(floor.fleet, floor.layout.batteries, strict=True)
        return {name: floor.believe_level(name, time) for name, battery in fleet if battery}

    @property
    def sites(self) -> dict[str, str]:
        """Each vehicle and the site that it visited last."""
        sites = self._floor.layout.sites
        return {name: sites[own.site].id for name, own in self._floor.fleet.items()}

    @property
    def out_of_service(self) -> tuple[str, ...]:
        """Names of the vehicles that are out of service."""
        return tuple(name for name, own in self._floor.fleet.items() if own.service == OUT)

    @property
    def held(self) -> tuple[Event, ...]:
        """Events fed with `hold=True` that cannot have happened as far as is known."""
        return self.desk.feed.held

    @property
    def expired(self) -> tuple[Event, ...]:
        """The last 100 events fed with `hold=True` of which a later event said that nothing comes before."""
        return self.desk.feed.expired

    @property
    def last_number(self) -> int | None:
        """Highest number that an event was fed with, None before any: after `recover` go on after it."""
        return self.desk.feed.numbers.last

    @property
    def missing_numbers(self) -> tuple[range, ...]:
        """Numbers of `feed` between those that are known with which no event was taken in, as ranges."""
        return self.desk.feed.numbers.missing

    def tasks(self) -> dict[str, TaskState]:
        """Return where every task of the day is, and since when; `begin_day` forgets those that have ended.

        A task that no vehicle of the fleet can carry or reach, or to whose delivery there is no way, is
        "unservable": it waits until a vehicle is added that can do it, or it is cancelled. Of the tasks that
        have ended the last 1,000 are there for certain.

        Returns
        -------
        dict of str to TaskState
            By name: those that have ended, in order, those that wait or are under way, those held back. Of a
            name that came again it is the last one.
        """
        return watching.list_tasks(self._floor)

    def describe(self) -> dict[str, Any]:
        """Return the moment as plain values, for a page that shows it.

        Returns
        -------
        dict
            Tasks, vehicles with their ways, the last orders, figures, and "queue": how many tasks waited and
            were late over the day, rows of time (s) and two counts.
        """
        kind = self.policy if isinstance(self.policy, str) else type(self.policy).__name__
        orders, time = self.desk.orders, self.desk.feed.time
        moment = watching.describe_moment(self._floor, time, orders.latest)
        return {**moment, "policy": kind, "queue": orders.queue}

    def check(self) -> list[str]:
        """Return what is broken of what always holds of the tables, to tell a defect of the dispatcher.

        Returns
        -------
        list of str
            A line each; empty when it is sound.
        """
        return watching.check_floor(self._floor)

    def begin_day(self, start: float) -> None:
        """Set time zero, and forget what has arrived and been delivered before; what waits goes on waiting.

        A day that begins before the latest time so far sets the time back: after an event of a clock that was
        ahead, others are taken again.

        Parameters
        ----------
        start : float
            s.

        Raises
        ------
        EventError
            If it is no number, or more than `ahead` before the latest time.
        """
        start = SECONDS["start"].read("begin_day", start, EventError)
        self.desk.begin_day(start)

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
            may come again. Once 1,000 gaps have come after a number it is not known any more, and refused.

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
        event, number = as_told(event, number)
        followed = self.desk.orders.followed
        if followed.queued or followed.away:
            shadow.take(self.desk, self._decider, event, hold=hold, number=number)
        else:
            self.desk.take(event, hold=hold, number=number)

    def decide(self, now: float, *, without: Collection[str] = ()) -> list[Order]:
        """Assign waiting tasks as long as a free vehicle may carry one; then send idle ones to charge, park.

        With `commitment="pickup"`, once something has happened, tasks that are not loaded yet are given anew
        with those that wait: a `Recall` comes before what its vehicle, or its task, has instead.

        Parameters
        ----------
        now : float
            s, not before the last event.
        without : collection of str
            Vehicles that get no new order now, as if they were out of service.

        Returns
        -------
        list of Order
            In the order in which they were decided; empty if there is nothing to decide. After `recover`, and
            after a call that raised, those come first that may not have reached the plant, as `repeated`.
            An order's `kind` is "Assigned", or with batteries or parking places "Charge" or "Park", or with
            `commitment="pickup"` "Recall"; `describe()` says any of them in a line.

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
        return rounds.decide(self.desk, self._decider, now, without)

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
        now = self.desk.move_to(now, "observe")
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
        now = self.desk.check_time(now, "forecast")
        futures = FUTURES.read("futures", futures, InputError)
        budget = SECONDS["budget"].read("budget", budget, InputError)
        kept = self._forecasting
        if kept is None or kept[0] is not history:
            player = find_player(self.policy, self._floor.layout, history)
            self._forecasting = kept = history, Forecaster(player, self.seed)
        return kept[1].look(self._floor, self.desk.orders.decisions, now, futures, budget)

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
        return self.desk.assign_by_hand(now, vehicle, task)

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
        return self.desk.send_by_hand(now, vehicle, site)

    def follow(
        self, now: float, vehicle: str, *, task: str | None = None, site: str | None = None
    ) -> shadow.Compared | None:
        """Follow an order that the plant's own control gives, and tell what the policy would have ordered.

        It is taken as by `assign` or `send`. One that is impossible to the model is no error: what is known
        follows the plant as far as it can, by events that the log has, too, and `followed` lists it.

        Parameters
        ----------
        now : float
            s, not before the last event.
        vehicle : str
        task, site : str, optional
            One of them: the task that it is given, or where it is sent to park or charge.

        Returns
        -------
        Compared or None
            None if it was told before, as after a restart.

        Raises
        ------
        EventError
            If `now` cannot be, or both or none of task and site are given; nothing is changed then.
        """
        if (task is None) == (site is None):
            raise EventError("follow: expected either a task or a site")
        found = shadow.follow(self.desk, self._decider, now, vehicle, task, site)
        shadow.follow_queued(self.desk, self._decider)
        return found

    def acknowledge(self, number: int) -> None:
        """Say that all orders until this number have arrived for good: after a restart none comes again.

        From the first time on, later orders are kept until they are acknowledged, also across restarts.

        Parameters
        ----------
        number : int
            Of an order, or 0. A lower one than before changes nothing.

        Raises
        ------
        EventError
            If no order has had that number yet.
        StorageError
            If it cannot be written to the log.
        """
        self.desk.acknowledge(number)

    @property
    def acknowledged(self) -> int | None:
        """Number of the last order that was acknowledged; None before any."""
        return self.desk.orders.acknowledged

    @property
    def unacknowledged(self) -> tuple[dict[str, Any], ...]:
        """The orders after that, as the log has them: the last 10,000."""
        return self.desk.orders.unacknowledged

    @property
    def followed(self) -> Followed:
        """How many orders of the plant were followed, how many the policy agrees with, which cannot be."""
        return self.desk.orders.followed

    def take_policy(self, policy: BasePolicy | str) -> None:
        """Go on with another policy: what is known and ordered stays, and so do all options.

        The log has a new start with its hash, and beside the log it is kept, as LOG.HASH.npz: `recover` goes
        on with it.

        Parameters
        ----------
        policy : Policy, IndexPolicy or str
            One that a file can hold, or the name of a rule.

        Raises
        ------
        PolicyError
            If it is none, does not fit floor or fleet, or cannot be kept: the one before goes on.
        StorageError
            If the log cannot be written; only a line of before is in doubt, or it is taken over all the same.
        """
        policy = as_decider(policy)
        policy = policy.name if isinstance(policy, RulePolicy) else policy
        if not isinstance(policy, AnyPolicy | str):
            raise PolicyError(
                "policy: no file can hold it; expected one that has a file, or a name"
            )
        if isinstance(policy, AnyPolicy):
            policy.check_layout(self._floor.layout, "dispatcher")
        self.desk.flush()
        desk, changes = self.desk, {"commitment": self.commitment, "max_changes": self.max_changes}
        state = saving.pack_state(desk.feed, desk.orders, self._list_options())
        try:
            new = self._restore(state, policy, **changes)
        except InputError as error:
            raise PolicyError(f"policy: {error}") from error
        if desk.log is not None and isinstance(policy, AnyPolicy):
            try:
                policy.save(recovery.place_policy(desk.log.path, saving.hash_policy(policy)))
            except StorageError as error:
                raise PolicyError(f"policy: {error}") from error
        new.desk.log, new.desk.feed.expired = desk.log, desk.feed.expired
        vars(self).update({**vars(new), "_use": self._use, "_is_taken": True})
        self._note_start()

    def save(self, path: FilePath) -> None:
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
        self._save(path)

    def _save(self, path: FilePath) -> None:
        desk, known = self.desk, None
        if desk.log is not None:
            desk.log.flush()
            known = desk.log.find_end()
        state = saving.pack_state(desk.feed, desk.orders, self._list_options(), known)
        saving.write_state(path, self.policy, state)

    def check_save(self) -> None:
        """Refuse a policy that no file can hold, before `save` or `rotate` has to.

        Raises
        ------
        PolicyError
            If it is one in plain Python that nothing can import.
        """
        saving.pack_policy_arrays(self.policy)

    def rotate(self, state: FilePath, kept: FilePath) -> None:
        """Go on in a new log of the same name; the one so far is `kept` from then on.

        The state is written before, and `recover` needs it beside the new log. Whatever is killed within it,
        log and state tell all: `recover` also finds a new log that has not got its name yet.

        Parameters
        ----------
        state : path-like
            As of `save`.
        kept : path-like
            On the same file system.

        Raises
        ------
        InputError
            If there is no log.
        PolicyError
            If no file can hold the policy; see `check_save`.
        StorageError
            If something cannot be written, or `kept` is there already; the log so far goes on.
        """
        desk, log = self.desk, self.desk.log
        if log is None:
            refuse("rotate", None, "a dispatcher with a log")
        if path_exists(kept):
            raise StorageError(f"{kept}: cannot rotate: file exists")
        self._save(state)
        path, lines = log.path, desk.orders.lines
        new = Path(name_new(path))
        try:
            new.unlink(missing_ok=True)  # of one that was killed
            self._begin_log(new, log.fsync)
            log.move(kept)
            assert desk.log is not None
            desk.log.move(path)
        except BaseException as error:
            desk.log, desk.orders.lines = log, lines
            if log.path != path:
                log.move(path)
            if isinstance(error, OSError) and not isinstance(error, StorageError):
                what = f"{kept}: cannot rotate: {describe_os_error(error)}"
                raise StorageError(what) from error
            raise
        sync_folder(path)  # else a power cut may give the new lines no name
        log.close()

    @classmethod
    def load(
        cls,
        path: FilePath,
        *,
        audit: FilePath | None = None,
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
            Import a function that its policy names, see `load_policy`.

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
            arrays = saving.load_state(path)
            with saving.unpacking_state(path):
                dispatcher = cls._restore(arrays)
        if audit is not None:
            dispatcher._begin_log(audit, fsync)
        return dispatcher

    @classmethod
    def _restore(
        cls,
        arrays: dict[str, np.ndarray],
        policy: BasePolicy | str | Chooses | None = None,
        **options: Any,
    ) -> Dispatcher:
        """Restore a saved dispatcher, on request with another policy and other options."""
        data = unpack_json(arrays["state"])
        told = {**saving.BEFORE, **data}
        kept = {name: told[name] for name in saving.ALL_OPTIONS if name in told}
        layout = Layout.from_dict(data["layout"]).with_closed(map(tuple, data.get("closed", ())))
        policy = saving.read_policy(arrays) if policy is None else policy
        dispatcher = cls(layout, policy, **{**kept, **options})
        saving.unpack_state(dispatcher.desk.feed, dispatcher.desk.orders, data, arrays)
        return dispatcher

    @classmethod
    def recover(
        cls,
        layout: Layout | FilePath,
        policy: BasePolicy | str | Chooses,
        *,
        audit: FilePath,
        state: FilePath | None = None,
        fsync: bool = False,
        **options: Any,
    ) -> Dispatcher:
        """Build a dispatcher from its log, as it was when its process ended, and go on in the same file.

        The first `decide` returns once more, with the same number and as `repeated`, each assignment that
        still holds and that the plant has not confirmed: by `VehiclePassed`, as the vehicle has come to the
        task's pickup since or has left it, or by an event that ends it. Before it, feed what the plant has to
        tell again: all events with a number above `last_number`, and any of which it is unsure, as known
        numbers are ignored. A last line that was cut off counts as not written.

        Parameters
        ----------
        layout, policy
            As when the dispatcher was made first; the policy may be another one. A saved one is not read. One
            that was taken over since (`take_policy`) counts, and is read from beside the log.
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
            If the log cannot be read, is of another fleet or format, lacks lines, or holds one
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
        if isinstance(layout, str | os.PathLike):
            layout = load_layout(layout)
        new = name_new(audit)
        if not path_exists(audit) and path_exists(new):  # killed before the last step of `rotate`
            Path(new).rename(audit)
        elif not path_exists(audit) and state is not None:
            Path(audit).touch()
        arrays = None if state is None else saving.load_state(state)
        with reading(audit), LogReader(audit, saving.read_known(arrays)) as log:
            taken = recovery.find_taken(log)
            policy = policy if taken is None else taken
            if arrays is not None:
                with saving.unpacking_state(str(state)):
                    dispatcher = cls._restore(arrays, policy, **options)
                if isinstance(layout, Layout) and layout.floor_hash != dispatcher.layout.floor_hash:
                    raise InputError(
                        f"{state}: of another floor than layout '{layout.name}'; expected the same"
                    )
            elif log.starts:
                options = {"layout": layout, "policy": policy, **options}
                dispatcher = recovery.start_anew(cls, log, options)
            else:
                dispatcher = cls(layout, policy, **options)
            recovery.redo(dispatcher.desk, log)
        dispatcher._is_taken = taken is not None
        dispatcher._begin_log(audit, fsync, log.size)
        return dispatcher
