"""The live side: a control system feeds what happens on the floor and asks who takes which task.

Nothing is simulated here and no clock runs: every event and every question carries its time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from acerl_np.kernels.observation import allocate_view, write_view
from acerl_np.kernels.state import INSTANCE_TASK_SLOTS
from acerl_np.live.audit import ASSIGNED, DAY_BEGAN, STARTED, AuditLog
from acerl_np.live.board import OUT, LiveVehicle
from acerl_np.live.decision import Decision, LiveDecider
from acerl_np.live.events import Assignment, Event, Explanation
from acerl_np.live.feed import Feed
from acerl_np.live.floor import DayBegan, Floor
from acerl_np.live.saving import describe_unusable, read_dispatcher, unpack_feed, write_dispatcher
from acerl_np.policies.agent import Chooses, OwnPolicy, seat_policy
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.origin import warn_of_difference
from acerl_np.policies.rules import RULES, find_policy_name
from acerl_np.problem.bundled import load_layout
from acerl_np.problem.layout import Layout
from acerl_np.problem.packing import UNUSABLE
from acerl_np.problem.rules import number_rules
from acerl_np.problem.tables import count_features
from acerl_np.support.errors import EventError, InputError, describe
from acerl_np.support.numbers import Whole, check_seed, is_real
from acerl_np.support.sharing import CopiedWhole, Exclusive, exclusive

MANUAL = "manual"
"""In place of a rule where somebody else has decided."""

OPTIONS = ("greedy", "seed", "budget", "explain", "task_ids")
"""Arguments that are saved."""

BUDGET = 0.002
"""s per decision of a lookahead, the paper's limit."""


class Dispatcher(CopiedWhole):
    """Assign waiting tasks to idle vehicles as events come in.

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
        Time zero of the day, from which planned breakdowns and a lookahead's historical records count; see
        `begin_day`.
    explain : bool
        Whether each assignment has its reason; that takes time.
    audit : path-like, optional
        A log of all events and assignments, a JSON object on each line; what is there already stays.
    task_ids : sequence of str, optional
        Ids of the day's tasks, for a network with slots "task": it knows tasks by their ids. A task with
        another id takes the lowest slot that none of these has.

    Raises
    ------
    PolicyError
        If the policy was trained for floors of another size or for other vehicles, the rule is unknown, or
        slots "task" come without ids.
    InputError
        If the layout or the seed is not usable.
    StorageError
        If the log cannot be written.

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
    ) -> None:
        self._use = Exclusive("dispatcher")
        if isinstance(layout, str | os.PathLike):
            layout = load_layout(layout)
        if not isinstance(layout, Layout):
            raise InputError(f"layout: read {describe(layout)}; expected a Layout or its file")
        policy = seat_policy(policy)
        if isinstance(policy, str):
            policy = find_policy_name(policy, tuple(RULES))
        self.policy = policy
        self.greedy = bool(greedy)
        self.seed = check_seed(seed)
        if budget is not None and not (is_real(budget) and 0.0 <= budget <= 1e6):
            raise InputError(f"budget: read {describe(budget)}; expected seconds, or None")
        self.budget = None if budget is None else float(budget)
        self.explain = bool(explain)
        if not is_real(start):
            raise InputError(f"start: read {describe(start)}; expected seconds")
        self._decisions = 0
        check = _accept_any
        if not isinstance(policy, str):
            check = policy.check_layout
            check(layout, "dispatcher")
            warn_of_difference(policy, [("dispatcher", layout)])
        self.task_ids = None if task_ids is None else tuple(task_ids)
        self._decider = LiveDecider(
            policy, greedy=self.greedy, seed=self.seed, budget=self.budget, task_ids=self.task_ids
        )
        build = self._decider.build_problem
        self._floor = Floor(layout, build, check, **self._decider.options)
        self._floor.apply(DayBegan(-math.inf, float(start)))
        self._warm_up()
        self._feed = Feed(self._floor)
        self._audit: AuditLog | None = None
        if audit is not None:
            self._open_log(audit)

    def __getstate__(self) -> dict[str, Any]:
        # A log is an open file, whose number may be that of another one when the copy writes.
        return {**vars(self), "_audit": None}

    def _warm_up(self) -> None:
        """Compile or load the kernels now, not at the first decision."""
        floor = self._floor
        if isinstance(self.policy, OwnPolicy):  # which is asked about no task that is none
            self._decider.show(floor, self.policy, 0.0).pairs()
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

    def _open_log(self, path: str | os.PathLike[str]) -> None:
        self._audit = AuditLog(path)
        self._audit.note(
            STARTED,
            start=self._floor.day.start,
            policy=self.policy if isinstance(self.policy, str) else type(self.policy).__name__,
            layout=self.layout.name,
            vehicles=[vehicle.id for vehicle in self.layout.vehicles],
        )

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
        """Names of the tasks that are held back until their earliest starts."""
        return tuple(self._floor.planned)

    @property
    def next_time(self) -> float | None:
        """When to ask next though nothing happens, s: a task may begin then. None if there is none."""
        return self._floor.next_release

    @property
    def _fleet(self) -> Iterator[tuple[str, LiveVehicle]]:
        return zip((item.id for item in self.layout.vehicles), self._floor.vehicles, strict=True)

    @property
    def under_way(self) -> dict[str, str]:
        """Tasks under way and their vehicles."""
        return {own.task: name for name, own in self._fleet if own.task is not None}

    @property
    def idle(self) -> tuple[str, ...]:
        """Names of the idle vehicles in service."""
        return tuple(name for name, own in self._fleet if own.is_ready)

    @property
    def sites(self) -> dict[str, str]:
        """Each vehicle and the site that it visited last."""
        return {name: self.layout.sites[own.site].id for name, own in self._fleet}

    @property
    def out_of_service(self) -> tuple[str, ...]:
        """Names of the vehicles that are out of service."""
        return tuple(name for name, own in self._fleet if own.service == OUT)

    @property
    def held(self) -> tuple[Event, ...]:
        """Events fed with `hold=True` that cannot have happened as far as is known."""
        return self._feed.held

    @exclusive
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
        if not is_real(start):
            raise EventError(f"begin_day: read {describe(start)}; expected seconds")
        self._feed.begin_day(float(start))
        if self._audit is not None:
            self._audit.note(DAY_BEGAN, start=float(start))

    @exclusive
    def feed(self, event: Event, *, hold: bool = False) -> None:
        """Take in what has happened.

        An event that is up to 5 s late is settled by its own time: it corrects what is known, but takes
        back no assignment that has been given. An event that came already, with the same content, is ignored.

        Parameters
        ----------
        event : Event
            Of one of the event classes.
        hold : bool
            Keep an event that cannot have happened, as far as is known, for 5 s: what makes it possible may
            come late. It is not refused then.

        Raises
        ------
        EventError
            If it cannot have happened, or is too late; nothing is changed then.
        StorageError
            If it cannot be written to the log; it is taken in.
        """
        if not isinstance(event, Event):
            raise EventError(
                f"event: read {type(event).__name__}; expected one of the event classes"
            )
        if not is_real(event.time):
            raise EventError(
                f"{type(event).__name__}: read time {describe(event.time)}; expected seconds"
            )
        if self._feed.take(event, holds=hold) and self._audit is not None:
            self._audit.note(type(event).__name__, **vars(event))

    @exclusive
    def decide(self, now: float) -> list[Assignment]:
        """Assign waiting tasks as long as an idle vehicle may carry one.

        Parameters
        ----------
        now : float
            s, not before the last event.

        Returns
        -------
        list of Assignment
            In the order in which they were decided; empty if there is nothing to decide.

        Raises
        ------
        EventError
            If time runs backwards; nothing is changed then.
        ActionError
            If a policy of your own chooses an impossible assignment; those before it stay, see `under_way`.
        """
        now = self._check_time(now, "decide")
        self._feed.move_to(now)
        assignments: list[Assignment] = []
        while self._floor.pool and self._floor.n_ready:
            found = self._decider.decide(self._floor, self._decisions, now)
            if found.vehicle < 0:
                break
            assignments.append(self._assign(now, found))
        return assignments

    @exclusive
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
            If time runs backwards.
        """
        now = self._check_time(now, "observe")
        self._feed.move_to(now)
        self._decider.tell(self._floor, now)
        problem = self._floor.problem
        n_vehicles = problem.fleet.shape[1]
        slots = int(problem.instance[0, INSTANCE_TASK_SLOTS])
        n_features = count_features(slots, n_vehicles)
        view = allocate_view(1, n_features, n_vehicles, number_rules(self._decider.rules))
        write_view(problem, self._floor.state, 0, view)
        return view.observation[0], view.mask[0]

    @exclusive
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
        now = self._check_time(now, "assign")
        if self.next_time is not None and self.next_time <= now:
            self._feed.move_to(now)
        v, position = self._floor.check_assignment(f"assign at {now} s", vehicle, task)
        self._feed.move_to(now)
        return self._assign(now, Decision(v, position, MANUAL, 0))

    def _assign(self, now: float, found: Decision) -> Assignment:
        """Carry out what has been decided."""
        floor = self._floor
        reason: Explanation | None = None
        if self.explain and found.rule != MANUAL:
            reason = self._decider.explain(floor, found, now)
        task = floor.carry(found.vehicle, found.position, now)
        self._decisions += 1
        vehicle = floor.layout.vehicles[found.vehicle].id
        self._feed.give(now, vehicle, task)
        finish = floor.vehicles[found.vehicle].finish
        assignment = Assignment(vehicle, task, found.rule, found.futures, finish, reason)
        if self._audit is not None:
            told: dict[str, Any] = {"finish": finish, "futures": found.futures}
            if reason is not None:
                options = [option._asdict() for option in reason.options]
                told["reason"] = {**reason._asdict(), "options": options}
            self._audit.note(ASSIGNED, time=now, **assignment._asdict(), **told)
        return assignment

    def _check_time(self, time: float, what: str) -> float:
        if not is_real(time):
            raise EventError(f"{what}: read time {describe(time)}; expected seconds")
        if time < self._feed.time:
            raise EventError(
                f"{what} at {time} s: before the last event at {self._feed.time} s; "
                "expected times in order"
            )
        return float(time)

    @exclusive
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
            If the file cannot be written.
        """
        options = {
            "rule": self.policy if isinstance(self.policy, str) else None,
            **{name: getattr(self, name) for name in OPTIONS},
            "decisions": self._decisions,
        }
        write_dispatcher(path, self.policy, options, self._feed)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, audit: str | os.PathLike[str] | None = None
    ) -> Dispatcher:
        """Restore a dispatcher that `save` wrote.

        Parameters
        ----------
        path : path-like
        audit : path-like, optional
            The log that goes on.

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
        data, policy = read_dispatcher(path)
        try:
            layout = Layout.from_dict(data["layout"])
            options = {name: data[name] for name in OPTIONS if name in data}
            dispatcher = cls(layout, policy, **options)
            dispatcher._decisions = int(data["decisions"])
            unpack_feed(dispatcher._feed, data, dispatcher.layout)
        except UNUSABLE as error:
            raise InputError(describe_unusable(path, error)) from error
        if audit is not None:
            dispatcher._open_log(audit)
        return dispatcher


def _accept_any(layout: Layout, name: str) -> None:
    """Rules serve any fleet."""
