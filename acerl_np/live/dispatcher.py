"""The live side: a control system feeds what happens on the floor and asks who takes which task.

Nothing is simulated here and no clock runs: every event and every question carries its time.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from typing import Any

import numpy as np

from acerl_np.kernels.live import look
from acerl_np.kernels.observation import allocate_view
from acerl_np.kernels.state import BROKEN, IDLE, INSTANCE_TASK_SLOTS, WORKING
from acerl_np.live.board import Board, Day, LiveTask
from acerl_np.live.decision import LiveDecider
from acerl_np.live.events import (
    Assignment,
    Event,
    TaskArrived,
    TaskCancelled,
    VehicleBroke,
    VehicleIdle,
    VehiclePassed,
    VehicleRepaired,
)
from acerl_np.policies.files import AnyPolicy, pack_policy, unpack_policy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.origin import warn_of_difference
from acerl_np.policies.rules import RULES, find_policy_name
from acerl_np.problem.bundled import load_layout
from acerl_np.problem.layout import Layout
from acerl_np.problem.stations import find_ends, find_sites
from acerl_np.problem.tables import count_actions, count_features
from acerl_np.support.errors import EventError, InputError, PolicyError, describe
from acerl_np.support.files import read_arrays, take_kind, write_arrays
from acerl_np.support.numbers import Whole, check_seed, is_real
from acerl_np.support.sharing import Exclusive, exclusive

FORMAT = 2
OLD_FORMAT = 1
"""Without a day; still read."""

BUDGET = 0.002
"""s per decision of a lookahead, the paper's limit."""


class Dispatcher:
    """Assign waiting tasks to idle vehicles as events come in.

    One thread at a time may use it: a call raises `SharingError` while another thread is in one.

    Parameters
    ----------
    layout : Layout, str or path-like
        Floor and fleet, as an object, a JSON path or the name of a bundled layout; every vehicle begins
        idle at its start site. Its breakdowns, listed or random, are ignored: `VehicleBroke` says when
        one happens.
    policy : Policy, IndexPolicy, StaticPlan, Lookahead or str
        A policy of any form, or the name of a rule such as "EDD" (the vehicle is then drawn from those
        that have a choice, as in `evaluate_policy`).
    greedy : bool
        Take what a network or an index policy likes best; otherwise it is sampled.
    seed : int
        Key of the draws.
    budget : float or None
        s per decision of a lookahead: the best answer known by then is taken. None: all its futures.
    start : float
        Time zero of the day, from which planned breakdowns and a lookahead's historical records count; see
        `begin_day`.

    Raises
    ------
    PolicyError
        If the policy was trained for floors of another size or for other vehicles, or the rule is unknown.
    InputError
        If the layout or the seed is not usable.

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
        policy: AnyPolicy | Lookahead | str,
        *,
        greedy: bool = True,
        seed: Whole = 0,
        budget: float | None = BUDGET,
        start: float = 0.0,
    ) -> None:
        self._use = Exclusive("dispatcher")
        if isinstance(layout, str | os.PathLike):
            layout = load_layout(layout)
        if not isinstance(layout, Layout):
            raise InputError(f"layout: read {describe(layout)}; expected a Layout or its file")
        self.layout = layout
        if isinstance(policy, str):
            policy = find_policy_name(policy, tuple(RULES))
        elif not hasattr(policy, "prepare"):
            raise PolicyError(
                f"policy: read {describe(policy)}; expected a trained policy, a static plan, a lookahead "
                "or a rule's name"
            )
        self.policy = policy
        self.greedy = bool(greedy)
        self.seed = check_seed(seed)
        if budget is not None and not (is_real(budget) and 0.0 <= budget <= 1e6):
            raise InputError(f"budget: read {describe(budget)}; expected seconds, or None")
        self.budget = None if budget is None else float(budget)
        self._vehicles = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
        self._names = [vehicle.id for vehicle in layout.vehicles]
        self._time = -math.inf
        self._decisions = 0
        if not isinstance(policy, str):
            policy.check_layout(layout, "dispatcher")
            warn_of_difference(policy, [("dispatcher", layout)])
        self._decider = LiveDecider(
            layout, policy, greedy=self.greedy, seed=self.seed, budget=self.budget
        )
        self._board = Board(layout, self._decider.build_problem())
        self._day = Day()
        self.begin_day(start)
        # Compile or load the kernels now, not at the first decision.
        self._tell(self._day.start)
        self._decider.decide(self._board, 0, self._day, self._day.start)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Names of the waiting tasks, in pool order."""
        return tuple(task.event.task for task in self._board.pool)

    @property
    def under_way(self) -> dict[str, str]:
        """Tasks under way and their vehicles."""
        return {
            task.event.task: self._names[task.vehicle]
            for task in self._board.carried
            if task is not None
        }

    @property
    def idle(self) -> tuple[str, ...]:
        """Names of the idle vehicles."""
        return tuple(name for v, name in enumerate(self._names) if self._board.status(v) == IDLE)

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
        self._day = Day(float(start))

    @exclusive
    def feed(self, event: Event) -> None:
        """Take in what has happened.

        Parameters
        ----------
        event : TaskArrived, TaskCancelled, VehicleIdle, VehiclePassed, VehicleBroke or VehicleRepaired

        Raises
        ------
        EventError
            If it cannot have happened after what was fed before; nothing is changed then.
        """
        if not isinstance(event, Event):
            raise EventError(
                f"event: read {type(event).__name__}; expected one of the event classes"
            )
        self._check_time(event.time, type(event).__name__)
        if isinstance(event, TaskArrived):
            self._arrive(event)
        elif isinstance(event, TaskCancelled):
            self._cancel(event)
        else:
            self._change_vehicle(event)
        self._time = float(event.time)

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
        """
        self._check_time(now, "decide")
        self._time = float(now)
        assignments: list[Assignment] = []
        while True:
            self._tell(now)
            found = self._decider.decide(self._board, self._decisions, self._day, self._time)
            if found.vehicle < 0:
                return assignments
            assignments.append(
                self._assign(found.vehicle, found.position, found.rule, found.futures)
            )

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
            action = vehicle * 4 + rule.

        Raises
        ------
        EventError
            If time runs backwards.
        """
        self._check_time(now, "observe")
        self._tell(now)
        problem = self._board.problem
        n_vehicles = problem.fleet.shape[1]
        slots = int(problem.instance[0, INSTANCE_TASK_SLOTS])
        n_features = count_features(slots, n_vehicles)
        view = allocate_view(1, n_features, count_actions(n_vehicles))
        look(problem, self._board.state, view)
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
        self._check_time(now, "assign")
        v = self._find_vehicle(vehicle, "assign")
        pool = self._board.pool
        if self._board.status(v) != IDLE:
            raise EventError(f"assign at {now} s: vehicle '{vehicle}' is not idle")
        position = next((k for k, item in enumerate(pool) if item.event.task == task), None)
        if position is None:
            raise EventError(f"assign at {now} s: task '{task}' does not wait")
        capacity = self.layout.vehicles[v].capacity
        if capacity and pool[position].event.demand > capacity:
            raise EventError(
                f"assign at {now} s: task '{task}' has demand {pool[position].event.demand:g}; "
                f"vehicle '{vehicle}' carries {capacity:g}"
            )
        self._time = float(now)
        return self._assign(v, position, "manual")

    @exclusive
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the dispatcher to an `.npz` file, atomically; `load` continues from it.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        board = self._board
        data = {
            "layout": self.layout.to_dict(),
            "rule": self.policy if isinstance(self.policy, str) else None,
            "greedy": self.greedy,
            "seed": self.seed,
            "time": None if math.isinf(self._time) else self._time,
            "budget": self.budget,
            "decisions": self._decisions,
            "tasks": [
                {**vars(task.event), "since": task.since, "vehicle": task.vehicle}
                for task in board.tasks.values()
            ],
            "pool": list(self.waiting),
            "vehicles": [
                {
                    "status": board.status(v),
                    "site": self.layout.sites[board.site(v)].id,
                    "finish": float(board.finish[v]),
                    "broke": float(board.broke[v]),
                }
                for v in range(len(self._names))
            ],
            "day": self._day.to_dict(),
        }
        arrays: dict[str, Any] = {
            "kind": "dispatcher",
            "format": FORMAT,
            "state": np.frombuffer(json.dumps(data).encode(), np.uint8),
        }
        if isinstance(self.policy, Lookahead):
            arrays |= {f"ahead.{name}": a for name, a in self.policy.to_arrays().items()}
        elif not isinstance(self.policy, str):
            arrays |= {f"policy.{name}": a for name, a in pack_policy(self.policy).items()}
        write_arrays(path, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dispatcher:
        """Restore a dispatcher that `save` wrote.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        Dispatcher

        Raises
        ------
        InputError
            If the file is missing, damaged, of another format version, or holds no dispatcher.
        """
        arrays = read_arrays(path, InputError)
        formats = (OLD_FORMAT, FORMAT)
        take_kind(path, arrays, "dispatcher", formats, InputError, noun="a dispatcher")
        try:
            data = json.loads(arrays["state"].tobytes().decode())
            dispatcher = cls(
                Layout.from_dict(data["layout"]),
                data["rule"] or _unpack_policy(arrays),
                greedy=data["greedy"],
                seed=data["seed"],
                budget=data.get("budget", BUDGET),
            )
            dispatcher._restore(data)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"{path}: not a usable dispatcher: {error}") from error
        return dispatcher

    def _restore(self, data: dict[str, Any]) -> None:
        board = self._board
        for entry in data["tasks"]:
            since, v = float(entry.pop("since")), int(entry.pop("vehicle"))
            task = board.enter(TaskArrived(**entry), since)
            board.wait(task)
            if v >= 0:
                board.carry(v, len(board.pool) - 1, since)
        for v, entry in enumerate(data["vehicles"]):
            board.set_vehicle(v, int(entry["status"]), self.layout.site_index[entry["site"]])
            board.finish[v] = float(entry.get("finish", board.finish[v]))
            board.broke[v] = float(entry.get("broke", 0.0))
        board.restore(data["pool"])
        self._time = -math.inf if data["time"] is None else float(data["time"])
        self._decisions = int(data["decisions"])
        self._day = Day.from_dict(data.get("day", {}))

    # Events

    def _check_time(self, time: float, what: str) -> None:
        if not is_real(time):
            raise EventError(f"{what}: read time {describe(time)}; expected seconds")
        if time < self._time:
            raise EventError(
                f"{what} at {time} s: before the last event at {self._time} s; expected times in order"
            )

    def _find_vehicle(self, name: str, what: str) -> int:
        v = self._vehicles.get(name)
        if v is None:
            raise EventError(
                f"{what}: vehicle '{name}' unknown; expected one of {', '.join(self._names[:20])}"
            )
        return v

    def _find_site(self, name: str, what: str) -> int:
        sites = self._find_sites(name, what)
        if len(sites) > 1:
            raise EventError(
                f"{what}: site '{name}' is a station of {len(sites)} sites; expected one of them"
            )
        return sites[0]

    def _find_sites(self, name: str, what: str) -> tuple[int, ...]:
        sites = find_sites(self.layout, name)
        if not sites:
            raise EventError(f"{what}: site '{name}' unknown; expected a site of the layout")
        return sites

    def _arrive(self, event: TaskArrived) -> None:
        what = f"TaskArrived at {event.time} s"
        if not isinstance(event.task, str) or not event.task:
            raise EventError(f"{what}: task: read '{describe(event.task)}'; expected a name")
        if event.task in self._board.tasks:
            raise EventError(f"{what}: task '{event.task}' waits or is under way already")
        pickups, deliveries = (
            self._find_sites(event.pickup, what),
            self._find_sites(event.delivery, what),
        )
        aliases = self.layout.aliases
        same = aliases.get(event.pickup, event.pickup) == aliases.get(
            event.delivery, event.delivery
        )
        if same or len({*pickups, *deliveries}) == 1:
            raise EventError(f"{what}: task '{event.task}': pickup and delivery are one site")
        pickup, delivery = find_ends(self.layout, pickups, deliveries)
        for field in ("expiry", "handling_time", "demand"):
            value = getattr(event, field)
            if not is_real(value) or not 0.0 <= value <= 1e12:
                raise EventError(
                    f"{what}: {field}: read {describe(value)}; expected a number from 0 to 1e12"
                )
        distance = self._board.problem.distance[0]
        if not math.isfinite(distance[pickup, delivery]):
            raise EventError(f"{what}: no way from '{event.pickup}' to '{event.delivery}'")
        able = [v for v in self.layout.vehicles if not v.capacity or event.demand <= v.capacity]
        if not able:
            raise EventError(f"{what}: demand {event.demand:g} exceeds every vehicle's capacity")
        if not any(math.isfinite(distance[self.layout.site_index[v.start], pickup]) for v in able):
            raise EventError(f"{what}: no vehicle that may carry it can reach '{event.pickup}'")
        # Numbers of other kinds, such as NumPy's, could not be saved.
        event = replace(
            event,
            pickup=self.layout.sites[pickup].id,
            delivery=self.layout.sites[delivery].id,
            time=float(event.time),
            expiry=float(event.expiry),
            handling_time=float(event.handling_time),
            demand=float(event.demand),
        )
        self._board.wait(self._board.enter(event, event.time))
        day = self._day
        values = event.time - day.start, event.expiry, event.handling_time, event.demand
        day.add(pickup, delivery, values)

    def _cancel(self, event: TaskCancelled) -> None:
        task = self._board.tasks.get(event.task)
        if task is None or task.vehicle >= 0:
            found = "unknown" if task is None else f"on vehicle '{self._names[task.vehicle]}'"
            raise EventError(
                f"TaskCancelled at {event.time} s: task '{event.task}' is {found}; "
                "expected a waiting task"
            )
        self._board.withdraw(task)

    def _change_vehicle(
        self, event: VehicleIdle | VehiclePassed | VehicleBroke | VehicleRepaired
    ) -> None:
        what = f"{type(event).__name__} at {event.time} s"
        v = self._find_vehicle(event.vehicle, what)
        board = self._board
        status, site = board.status(v), board.site(v)
        is_status = {IDLE: "idle", WORKING: "working", BROKEN: "broken"}[status]
        expected = {
            VehicleIdle: ("working",),
            VehiclePassed: ("working", "idle"),
            VehicleBroke: ("working", "idle"),
            VehicleRepaired: ("broken",),
        }[type(event)]
        if is_status not in expected:
            raise EventError(
                f"{what}: vehicle '{event.vehicle}' is {is_status}; "
                f"expected it to be {' or '.join(expected)}"
            )
        if not isinstance(event, VehicleBroke) and event.site is not None:
            site = self._find_site(event.site, what)
        if isinstance(event, VehicleIdle):
            task = board.drop(v)
            if task is not None:
                self._deliver(task, float(event.time))
        elif isinstance(event, VehicleBroke):
            board.broke[v] = float(event.time)
            task = board.drop(v)
            if task is not None:
                # As in the simulator: its waiting begins anew a second before.
                task.since = float(event.time) - 1.0
                board.wait(task)
        after = {VehicleIdle: IDLE, VehicleBroke: BROKEN, VehicleRepaired: IDLE}
        board.set_vehicle(v, after.get(type(event), status), site)

    def _deliver(self, task: LiveTask, now: float) -> None:
        self._day.delay += max(0.0, now - (task.event.time + task.event.expiry))
        self._day.delivered += 1
        self._board.leave(task)

    def _tell(self, now: float) -> None:
        clock = now - self._day.start
        self._board.tell(now, clock, relative=self._decider.is_relative)

    def _assign(self, v: int, position: int, rule: str, futures: int = 0) -> Assignment:
        task = self._board.carry(v, position, self._time)
        self._decisions += 1
        return Assignment(self._names[v], task.event.task, rule, futures)


def _unpack_policy(arrays: dict[str, np.ndarray]) -> Any:
    ahead = {
        name.removeprefix("ahead."): array
        for name, array in arrays.items()
        if name.startswith("ahead.")
    }
    if ahead:
        return Lookahead.from_arrays(ahead)
    own = {
        name.removeprefix("policy."): array
        for name, array in arrays.items()
        if name.startswith("policy.")
    }
    # Dispatchers that were saved before there were other forms say none.
    return unpack_policy({"form": np.array("network"), **own})
