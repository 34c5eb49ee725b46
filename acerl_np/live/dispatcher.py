"""The live side: a control system feeds what happens on the floor and asks who takes which task.

Nothing is simulated here and no clock runs: every event and every question carries its time.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acerl_np.kernels.live import decide_by_named_rule, decide_by_network, decide_by_plan, look
from acerl_np.kernels.network import sum_columns
from acerl_np.kernels.observation import allocate_view
from acerl_np.kernels.random import ACTION, derive_key
from acerl_np.kernels.rollout import allocate_workspace
from acerl_np.kernels.state import (
    ARRIVED,
    BROKEN,
    ENDS_DELIVERY,
    ENDS_PICKUP,
    EPISODE_POOL_SIZE,
    IDLE,
    INSTANCE_TASK_SLOTS,
    N_SCALING_FIELDS,
    RECORD_ARRIVAL,
    RECORD_DEMAND,
    RECORD_EXPIRY,
    RECORD_HANDLING,
    RECORD_LOADED,
    VEHICLE_EDGE_FROM,
    VEHICLE_HALTED_TOWARDS,
    VEHICLE_LEG,
    VEHICLE_SITE,
    VEHICLE_STATUS,
    VEHICLE_TASK,
    WORKING,
    allocate_state,
)
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
from acerl_np.policies.files import pack_policy, unpack_policy
from acerl_np.policies.network import Policy
from acerl_np.policies.origin import warn_of_difference
from acerl_np.policies.rules import RULES, find_policy_name
from acerl_np.policies.static import StaticPlan
from acerl_np.problem.bundled import load_layout
from acerl_np.problem.layout import Layout
from acerl_np.problem.tables import (
    build_live_problem,
    count_actions,
    count_features,
    measure_loaded,
)
from acerl_np.support.errors import EventError, InputError, PolicyError, describe
from acerl_np.support.files import read_arrays, take_kind, write_arrays
from acerl_np.support.numbers import check_seed, is_real

FORMAT = 1
FIRST_ROOM = 64
"""Tasks that there is room for at first; the room doubles when it is full."""

RULE_NAMES = {number: name for name, number in RULES.items()}


@dataclass
class _Task:
    """A task that waits or is under way: the event, its row of the tables, since when it waits, s."""

    event: TaskArrived
    row: int
    since: float
    vehicle: int = -1


class Dispatcher:
    """Assign waiting tasks to idle vehicles as events come in.

    Parameters
    ----------
    layout : Layout, str or path-like
        Floor and fleet, as an object, a JSON path or the name of a bundled layout; every vehicle begins
        idle at its start site. Its breakdowns, listed or random, are ignored: `VehicleBroke` says when
        one happens.
    policy : Policy, StaticPlan or str
        A trained policy, a static plan, or the name of a rule such as "EDD" (the vehicle is then drawn from
        those that have a choice, as in `evaluate_policy`).
    greedy : bool
        Take a policy's most probable action; otherwise it is sampled, as in training.
    seed : int
        Key of the draws.

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
        policy: Policy | StaticPlan | str,
        *,
        greedy: bool = True,
        seed: int = 0,
    ) -> None:
        if isinstance(layout, str | os.PathLike):
            layout = load_layout(layout)
        if not isinstance(layout, Layout):
            raise InputError(f"layout: read {describe(layout)}; expected a Layout or its file")
        self.layout = layout
        self.policy = find_policy_name(policy, tuple(RULES)) if isinstance(policy, str) else policy
        if not isinstance(self.policy, Policy | StaticPlan | str):
            raise PolicyError(
                f"policy: read {describe(policy)}; expected a Policy or a rule's name"
            )
        self.greedy = bool(greedy)
        self.seed = check_seed(seed)
        self._key = np.empty(4, np.uint32)
        derive_key(self.seed, ACTION, 0, 0, self._key)
        self._vehicles = {vehicle.id: v for v, vehicle in enumerate(layout.vehicles)}
        self._names = [vehicle.id for vehicle in layout.vehicles]
        self._tasks: dict[str, _Task] = {}
        self._pool: list[_Task] = []
        self._carried: list[_Task | None] = [None] * len(self._names)
        self._time = -math.inf
        self._decisions = 0

        if not isinstance(self.policy, str):
            self.policy.check_layout(layout, "dispatcher")
            warn_of_difference(self.policy, [("dispatcher", layout)])
        if not isinstance(self.policy, Policy):
            self._problem = build_live_problem(
                layout, FIRST_ROOM, scaling=np.ones(N_SCALING_FIELDS)
            )
        if isinstance(self.policy, str):
            self._rule = RULES[self.policy]
        elif isinstance(self.policy, StaticPlan):
            plan = self.policy.positions(layout)
            self._order = np.array(plan.order, np.int32)
            self._rules = np.array(plan.rules, np.int32)
        else:
            self._problem = build_live_problem(
                layout,
                FIRST_ROOM,
                scaling=self.policy.scaling,
                task_slots=self.policy.task_slots,
                n_vehicles=self.policy.n_vehicles,
            )
            self._work = allocate_workspace(self.policy.network, 1, 1)
            self._work.theta[0, : self.policy.n_parameters] = self.policy.theta
            sum_columns(self.policy.network, self.policy.theta, self._work.column_sums[0])
        self._state = allocate_state(self._problem, 1)
        self._free = list(range(FIRST_ROOM - 1, -1, -1))
        for v in range(len(self._names)):
            self._state.vehicle[0, v, VEHICLE_LEG] = ARRIVED
            self._state.vehicle[0, v, VEHICLE_TASK] = -1
            self._state.vehicle[0, v, VEHICLE_HALTED_TOWARDS] = -1
            self._set_vehicle(v, IDLE, int(self._problem.start_site[0, v]))
        self._choose()  # compile or load the kernels now, not at the first decision

    @property
    def waiting(self) -> tuple[str, ...]:
        """Names of the waiting tasks, in pool order."""
        return tuple(task.event.task for task in self._pool)

    @property
    def under_way(self) -> dict[str, str]:
        """Tasks under way and their vehicles."""
        return {
            task.event.task: self._names[task.vehicle] for task in self._carried if task is not None
        }

    @property
    def idle(self) -> tuple[str, ...]:
        """Names of the idle vehicles."""
        status = self._state.vehicle[0, :, VEHICLE_STATUS]
        return tuple(name for v, name in enumerate(self._names) if status[v] == IDLE)

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
        self._tell_waiting(now)
        while True:
            v, position, rule = self._choose()
            if v < 0:
                return assignments
            assignments.append(self._assign(v, position, RULE_NAMES[rule]))

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
        self._tell_waiting(now)
        n_vehicles = self._problem.fleet.shape[1]
        slots = int(self._problem.instance[0, INSTANCE_TASK_SLOTS])
        n_features = count_features(slots, n_vehicles)
        view = allocate_view(1, n_features, count_actions(n_vehicles))
        look(self._problem, self._state, view)
        return view.observation[0], view.mask[0]

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
        if self._state.vehicle[0, v, VEHICLE_STATUS] != IDLE:
            raise EventError(f"assign at {now} s: vehicle '{vehicle}' is not idle")
        position = next((k for k, item in enumerate(self._pool) if item.event.task == task), None)
        if position is None:
            raise EventError(f"assign at {now} s: task '{task}' does not wait")
        capacity = self.layout.vehicles[v].capacity
        if capacity and self._pool[position].event.demand > capacity:
            raise EventError(
                f"assign at {now} s: task '{task}' has demand {self._pool[position].event.demand:g}; "
                f"vehicle '{vehicle}' carries {capacity:g}"
            )
        self._time = float(now)
        return self._assign(v, position, "manual")

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
        vehicle = self._state.vehicle[0]
        data = {
            "layout": self.layout.to_dict(),
            "rule": self.policy if isinstance(self.policy, str) else None,
            "greedy": self.greedy,
            "seed": self.seed,
            "time": None if math.isinf(self._time) else self._time,
            "decisions": self._decisions,
            "tasks": [
                {**vars(task.event), "since": task.since, "vehicle": task.vehicle}
                for task in self._tasks.values()
            ],
            "pool": list(self.waiting),
            "vehicles": [
                {
                    "status": int(row[VEHICLE_STATUS]),
                    "site": self.layout.sites[int(row[VEHICLE_SITE])].id,
                }
                for row in vehicle[: len(self._names)]
            ],
        }
        arrays: dict[str, Any] = {
            "kind": "dispatcher",
            "format": FORMAT,
            "state": np.frombuffer(json.dumps(data).encode(), np.uint8),
        }
        if not isinstance(self.policy, str):
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
        take_kind(path, arrays, "dispatcher", FORMAT, InputError, noun="a dispatcher")
        try:
            data = json.loads(arrays["state"].tobytes().decode())
            policy = data["rule"] or _unpack_policy(arrays)
            dispatcher = cls(
                Layout.from_dict(data["layout"]), policy, greedy=data["greedy"], seed=data["seed"]
            )
            dispatcher._restore(data)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"{path}: not a usable dispatcher: {error}") from error
        return dispatcher

    def _restore(self, data: dict[str, Any]) -> None:
        for entry in data["tasks"]:
            since, v = float(entry.pop("since")), int(entry.pop("vehicle"))
            task = self._enter(TaskArrived(**entry), since)
            if v >= 0:
                task.vehicle = v
                self._carried[v] = task
        for v, entry in enumerate(data["vehicles"]):
            self._set_vehicle(v, int(entry["status"]), self.layout.site_index[entry["site"]])
        self._pool = [self._tasks[name] for name in data["pool"]]
        self._write_pool()
        self._time = -math.inf if data["time"] is None else float(data["time"])
        self._decisions = int(data["decisions"])

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
        site = self.layout.site_index.get(name)
        if site is None:
            raise EventError(f"{what}: site '{name}' unknown; expected a site of the layout")
        return site

    def _arrive(self, event: TaskArrived) -> None:
        what = f"TaskArrived at {event.time} s"
        if not isinstance(event.task, str) or not event.task:
            raise EventError(f"{what}: task: read '{describe(event.task)}'; expected a name")
        if event.task in self._tasks:
            raise EventError(f"{what}: task '{event.task}' waits or is under way already")
        pickup, delivery = (
            self._find_site(event.pickup, what),
            self._find_site(event.delivery, what),
        )
        if pickup == delivery:
            raise EventError(f"{what}: task '{event.task}': pickup and delivery are one site")
        for field in ("expiry", "handling_time", "demand"):
            value = getattr(event, field)
            if not is_real(value) or not 0.0 <= value <= 1e12:
                raise EventError(
                    f"{what}: {field}: read {describe(value)}; expected a number from 0 to 1e12"
                )
        distance = self._problem.distance[0]
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
            time=float(event.time),
            expiry=float(event.expiry),
            handling_time=float(event.handling_time),
            demand=float(event.demand),
        )
        self._pool.append(self._enter(event, event.time))
        self._write_pool()

    def _cancel(self, event: TaskCancelled) -> None:
        task = self._tasks.get(event.task)
        if task is None or task.vehicle >= 0:
            found = "unknown" if task is None else f"on vehicle '{self._names[task.vehicle]}'"
            raise EventError(
                f"TaskCancelled at {event.time} s: task '{event.task}' is {found}; "
                "expected a waiting task"
            )
        self._pool.remove(task)
        self._leave(task)
        self._write_pool()

    def _change_vehicle(
        self, event: VehicleIdle | VehiclePassed | VehicleBroke | VehicleRepaired
    ) -> None:
        what = f"{type(event).__name__} at {event.time} s"
        v = self._find_vehicle(event.vehicle, what)
        status, site = (int(x) for x in self._state.vehicle[0, v, [VEHICLE_STATUS, VEHICLE_SITE]])
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
        task = self._carried[v]
        if isinstance(event, VehicleIdle) and task is not None:
            self._carried[v] = None
            self._leave(task)
        elif isinstance(event, VehicleBroke) and task is not None:
            # As in the simulator: its waiting begins anew a second before.
            task.vehicle, task.since = -1, float(event.time) - 1.0
            self._carried[v] = None
            self._pool.append(task)
            self._write_pool()
        after = {VehicleIdle: IDLE, VehicleBroke: BROKEN, VehicleRepaired: IDLE}
        self._set_vehicle(v, after.get(type(event), status), site)

    # The kernels' tables

    def _set_vehicle(self, v: int, status: int, site: int) -> None:
        row = self._state.vehicle[0, v]
        row[VEHICLE_STATUS] = status
        row[VEHICLE_SITE] = row[VEHICLE_EDGE_FROM] = site

    def _enter(self, event: TaskArrived, since: float) -> _Task:
        """Give a task a row of the tables."""
        if not self._free:
            self._make_room()
        row = self._free.pop()
        index = self.layout.site_index
        pickup, delivery = index[event.pickup], index[event.delivery]
        self._problem.ends[0, row, [ENDS_PICKUP, ENDS_DELIVERY]] = pickup, delivery
        values = self._problem.record[0, row]
        values[RECORD_ARRIVAL], values[RECORD_EXPIRY] = event.time, event.expiry
        values[RECORD_HANDLING], values[RECORD_DEMAND] = event.handling_time, event.demand
        values[RECORD_LOADED] = measure_loaded(
            self.layout, self._problem.distance[0, pickup, delivery]
        )
        task = _Task(event, row, since)
        self._tasks[event.task] = task
        return task

    def _leave(self, task: _Task) -> None:
        del self._tasks[task.event.task]
        self._free.append(task.row)

    def _make_room(self) -> None:
        """Double the rows of the tables."""
        n = self._problem.record.shape[1]

        def double(array: np.ndarray) -> np.ndarray:
            return np.concatenate([array, np.zeros_like(array)], axis=1)

        self._problem = self._problem._replace(
            ends=double(self._problem.ends),
            record=double(self._problem.record),
            arrival_tick=double(self._problem.arrival_tick),
        )
        self._state = self._state._replace(
            pool=double(self._state.pool),
            waiting_since=double(self._state.waiting_since),
            task=double(self._state.task),
        )
        self._free = list(range(2 * n - 1, n - 1, -1))

    def _write_pool(self) -> None:
        self._state.episode[0, EPISODE_POOL_SIZE] = len(self._pool)
        self._state.pool[0, : len(self._pool)] = [task.row for task in self._pool]

    def _tell_waiting(self, now: float) -> None:
        """Count waiting times backwards from the kernels' clock, which stands at 0."""
        for task in self._pool:
            self._state.waiting_since[0, task.row] = task.since - now

    def _choose(self) -> tuple[int, int, int]:
        """Return vehicle, position in the pool and rule of the next decision; -1 if none is due."""
        if isinstance(self.policy, str):
            v, position, rule = decide_by_named_rule(
                self._problem, self._state, self._rule, self._key, self._decisions
            )
        elif isinstance(self.policy, StaticPlan):
            v, position, rule = decide_by_plan(self._problem, self._state, self._order, self._rules)
        else:
            v, position, rule = decide_by_network(
                self._problem,
                self._state,
                self._work,
                self.greedy,
                self._key,
                self._decisions,
            )
        return int(v), int(position), int(rule)

    def _assign(self, v: int, position: int, rule: str) -> Assignment:
        task = self._pool.pop(position)
        task.vehicle = v
        self._carried[v] = task
        self._set_vehicle(v, WORKING, int(self._state.vehicle[0, v, VEHICLE_SITE]))
        self._write_pool()
        self._decisions += 1
        return Assignment(self._names[v], task.event.task, rule)


def _unpack_policy(arrays: dict[str, np.ndarray]) -> Any:
    own = {
        name.removeprefix("policy."): array
        for name, array in arrays.items()
        if name.startswith("policy.")
    }
    # Dispatchers that were saved before there were other forms say none.
    return unpack_policy({"form": np.array("network"), **own})
