"""All that happens in one episode: decisions, trips edge by edge, breakdowns; for pictures and replays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from acerl_np.kernels import state as S
from acerl_np.kernels.events import open_episode, pass_tick
from acerl_np.kernels.state import Problem, State, allocate_state, read_outcome
from acerl_np.kernels.trace import (
    N_STEP_FIELDS,
    STEP_END,
    STEP_FROM,
    STEP_LEG,
    STEP_REVERSED,
    STEP_START,
    STEP_TO,
    list_steps,
)
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.simulation.simulator import STATUS_NAMES

PLAYED, SPARE = 0, 1
"""Rows of the state: the episode, and scratch."""


class Alternative(NamedTuple):
    """An assignment that was thought of at a decision.

    Attributes
    ----------
    vehicle, task : int, positions in the layout's fleet and in the record
    rule : str, the rule that picks the task, empty without one
    value : float, what it is worth; `Reason.measure` says in which terms
    """

    vehicle: int
    task: int
    rule: str
    value: float


class Part(NamedTuple):
    """In what the pair that an index policy chose differs from the next best one.

    Attributes
    ----------
    words : str, what is different
    unit : str, "s", "m", or empty where a difference is in no unit
    difference : float, in that unit, of the chosen pair less the other
    value : float, by how much that moves the score of the chosen pair
    """

    words: str
    unit: str
    difference: float
    value: float

    def describe(self) -> str:
        """Return the part in words, such as "way to the pickup: 31 s less (+0.82)"."""
        amount = f"{abs(self.difference):.3g} {self.unit} " if self.unit else ""
        which = "more" if self.difference > 0.0 else "less"
        return f"{self.words}: {amount}{which} ({self.value:+.2f})"


class Outlook(NamedTuple):
    """What becomes of the tasks that wait if a vehicle takes one of them now, as an index policy sees it.

    Attributes
    ----------
    vehicle, task : int, positions in the layout's fleet and in the record
    what : str, "all is", or of a long queue such as "the next 12 are"
    end : float, s from now until that is done
    late : float, s late in all, each task by the weight of its class
    """

    vehicle: int
    task: int
    what: str
    end: float
    late: float


class Reason(NamedTuple):
    """Why an assignment was chosen.

    Attributes
    ----------
    by : str, who chose: a rule's name, "index", "network", "agents", "lookahead" or "recorded"
    measure : str, what `Alternative.value` measures, with its unit; empty without alternatives
    alternatives : tuple of Alternative
        The best of what was thought of, the best first; the chosen one is among them.
    parts : tuple of Part
        Of an index policy: what sets the chosen pair apart from the next best, that which weighs most first.
    outlooks : tuple of Outlook
        Of an index policy that finishes the plan: with the chosen pair, and with the next best.
    """

    by: str
    measure: str = ""
    alternatives: tuple[Alternative, ...] = ()
    parts: tuple[Part, ...] = ()
    outlooks: tuple[Outlook, ...] = ()


class Decision(NamedTuple):
    """An assignment as it was given.

    Attributes
    ----------
    time : int, s
    vehicle, task : int, positions in the layout's fleet and in the record
    reason : Reason
    """

    time: int
    vehicle: int
    task: int
    reason: Reason


class Step(NamedTuple):
    """A vehicle's way along one edge.

    Attributes
    ----------
    start, end : int, s
    origin, target : int, positions of the edge's sites in `layout.sites`; equal where a vehicle stands
    first, last : float, share of the edge that is behind the vehicle at its start and at its end
    loaded : bool, whether the vehicle carries its task
    pace : float, 1/s, share of the edge that it drives in a second, until it has come to `last`
    """

    start: int
    end: int
    origin: int
    target: int
    first: float
    last: float
    loaded: bool
    pace: float


class Trip(NamedTuple):
    """What became of an assignment.

    Attributes
    ----------
    decision : int, position in `Trace.decisions`
    vehicle, task : int, positions in the layout's fleet and in the record
    start, end : int, s, from the assignment to the delivery, or to the vehicle's breakdown
    pickup : int or None, s, when the vehicle was at the pickup, as waiting counts it; None if it never was
    delivered : bool, whether it was carried through; else a breakdown undid it
    steps : tuple of Step
    """

    decision: int
    vehicle: int
    task: int
    start: int
    end: int
    pickup: int | None
    delivered: bool
    steps: tuple[Step, ...]


class Stop(NamedTuple):
    """A breakdown.

    Attributes
    ----------
    vehicle : int
    start, end : int, s, from the breakdown until the vehicle is idle again, or until the episode is over
    origin, target : int, sites of the edge on which it stands; equal at a site
    part : float, share of the edge that is behind it
    """

    vehicle: int
    start: int
    end: int
    origin: int
    target: int
    part: float


@dataclass(frozen=True, eq=False)
class Trace:
    """One episode from its start to its end.

    Attributes
    ----------
    label : str, who decided
    instance : Instance
    decisions : tuple of Decision, in their order
    trips : tuple of Trip, by decision
    stops : tuple of Stop, by their starts
    makespan, tardiness : float, s, nan if the episode did not finish
    late : float, share of the tasks that were late
    waiting : float, s, mean from arrival to pickup
    value : float, what the goal minimises
    goal : Goal
    status : str, as `Simulator.status`
    end : int, s, when the last thing happened
    """

    label: str
    instance: Instance
    decisions: tuple[Decision, ...]
    trips: tuple[Trip, ...]
    stops: tuple[Stop, ...]
    makespan: float
    tardiness: float
    late: float
    waiting: float
    value: float
    goal: Goal
    status: str
    end: int

    @property
    def finish(self) -> np.ndarray:
        """When each task was delivered, float64 (n_tasks,), s; nan if it was not."""
        times = np.full(self.instance.n_tasks, np.nan)
        for trip in self.trips:
            if trip.delivered:
                times[trip.task] = trip.end
        return times

    @property
    def delay(self) -> np.ndarray:
        """By how much each task was late, float64 (n_tasks,), s; 0 in time, nan if not delivered."""
        due = self.instance.arrival + self.instance.expiry
        return np.asarray(np.maximum(0.0, self.finish - due))

    def locate(self, vehicle: int, time: float) -> tuple[float, float]:
        """Return where a vehicle is, as coordinates of the layout, m."""
        layout = self.instance.layout
        at = layout.site_index[layout.vehicles[vehicle].start]
        place = (at, at, 0.0)
        for trip in self.trips:
            if trip.vehicle != vehicle or trip.start > time:
                continue
            for step in trip.steps:
                if step.start <= time:
                    place = (step.origin, step.target, find_part(step, time))
            if trip.delivered and trip.end <= time:
                at = int(self.instance.delivery[trip.task])
                place = (at, at, 0.0)
        return place_on(layout, *place)


def find_part(step: Step, time: float) -> float:
    """Return the share of its edge that is behind a vehicle at `time`, s, which is not before the step."""
    return min(step.last, step.first + (time - step.start) * step.pace)


def place_on(layout: Layout, origin: int, target: int, part: float) -> tuple[float, float]:
    """Return the coordinates, m, of the place that lies `part` of the way from one site to another."""
    a, b = layout.sites[origin], layout.sites[target]
    return a.x + part * (b.x - a.x), a.y + part * (b.y - a.y)


class Player(Protocol):
    """Who decides in a traced episode."""

    def assign(self, problem: Problem, state: State) -> tuple[Sequence[tuple[int, Reason]], int]:
        """Give the assignments that are to be given now, in row 0 of the state.

        Returns
        -------
        given : sequence of (int, Reason)
            The vehicle of each assignment and its reason, in the order in which they were given.
        due : int
            Tick at which to ask again though nothing has happened by then, `NEVER` for none.
        """
        ...


def trace_episode(
    label: str,
    instance: Instance,
    problem: Problem,
    key: np.ndarray,
    player: Player,
    goal: Goal = PAPER,
) -> Trace:
    """Play one episode and note all that happens; `goal` is that of `problem`."""
    state = allocate_state(problem, 2)
    state.breakdown_key[PLAYED] = key
    open_episode(problem, state, PLAYED, 0)
    notes = _Notes(instance, problem, state)
    while state.episode[PLAYED, S.EPISODE_PHASE] == S.RUNNING:
        given, due = player.assign(problem, state)
        notes.add_trips(given)
        before = state.vehicle[PLAYED].copy()
        pass_tick(problem, state, PLAYED, due)
        notes.add_events(before)
    return notes.close(label, goal)


class _Notes:
    """What has happened so far."""

    def __init__(self, instance: Instance, problem: Problem, state: State) -> None:
        self.instance, self.problem, self.state = instance, problem, state
        self.fleet = range(len(instance.layout.vehicles))
        self.decisions: list[Decision] = []
        self.trips: list[Trip] = []
        self.stops: list[Stop] = []
        self.open: dict[int, Trip] = {}
        self.broken: dict[int, Stop] = {}
        classes = np.minimum(instance.priority, len(problem.class_weight) - 1).astype(np.int64)
        self.weight = problem.class_weight[classes]
        n = 2 * len(instance.layout.sites) + 2
        self.steps = np.empty((n, N_STEP_FIELDS), np.int64)
        self.offsets = np.empty(n)

    @property
    def now(self) -> int:
        return int(self.state.episode[PLAYED, S.EPISODE_TIME])

    def add_trips(self, given: Sequence[tuple[int, Reason]]) -> None:
        after, instance = self.state.vehicle[PLAYED], self.instance
        for v, reason in given:
            task = int(after[v, S.VEHICLE_TASK])
            end = int(after[v, S.VEHICLE_EVENT_TICK])
            waited = self.state.usage[PLAYED, v, S.USAGE_LAST_WAITING]
            pickup = round(float(instance.arrival[task] + waited / self.weight[task]))
            steps = self._list_steps(v, end)
            self.open[v] = Trip(len(self.decisions), v, task, self.now, end, pickup, True, steps)
            self.decisions.append(Decision(self.now, v, task, reason))

    def _list_steps(self, v: int, end: int) -> tuple[Step, ...]:
        """Return the way of a trip; durations round once, edges one by one, so it may seem to last longer."""
        n = list_steps(self.problem, self.state, PLAYED, SPARE, v, self.steps, self.offsets)
        length = self.instance.layout.routes.edge_length
        steps = []
        for row, offset in zip(self.steps[:n].tolist(), self.offsets[:n].tolist(), strict=True):
            a, b = row[STEP_FROM], row[STEP_TO]
            # An edge may be longer one way than the other.
            metres = float(length[b, a] if row[STEP_REVERSED] else length[a, b])
            known = a != b and 0.0 < metres < np.inf
            first = offset / metres if known else 0.0
            loaded = row[STEP_LEG] == S.TO_DELIVERY
            pace = self.instance.layout.find_pace(v, a, b) / metres if known else 1.0
            start, left = min(row[STEP_START], end), min(row[STEP_END], end)
            steps.append(Step(start, left, a, b, first, 1.0, loaded, pace))
        return tuple(steps)

    def add_events(self, before: np.ndarray) -> None:
        after = self.state.vehicle[PLAYED]
        for v in self.fleet:
            was, is_now = int(before[v, S.VEHICLE_STATUS]), int(after[v, S.VEHICLE_STATUS])
            if is_now == S.BROKEN and was != S.BROKEN:
                self.broken[v] = stop = self._note_stop(v)
                if v in self.open:
                    # The vehicle stands where it was a tick before.
                    trip = self.open.pop(v)
                    self.trips.append(_cut_trip(trip, stop.start, stop.start - 1, stop))
            elif was == S.BROKEN and is_now != S.BROKEN:
                self.stops.append(self.broken.pop(v)._replace(end=self.now))
            elif was == S.WORKING and is_now != S.WORKING:
                self.trips.append(self.open.pop(v))

    def _note_stop(self, v: int) -> Stop:
        row, place = self.state.vehicle[PLAYED, v], self.state.place[PLAYED, v]
        origin, target, part = int(row[S.VEHICLE_SITE]), int(row[S.VEHICLE_HALTED_TOWARDS]), 0.0
        length = float(self.instance.layout.routes.edge_length[origin, target])
        if target < 0 or target == origin or not 0.0 < length < np.inf:
            target = origin
        else:
            part = min(1.0, float(place[S.PLACE_HALTED_AT]) / length)
        end = int(row[S.VEHICLE_EVENT_TICK])
        return Stop(v, self.now, end, origin, target, part)

    def close(self, label: str, goal: Goal) -> Trace:
        now = self.now
        # What an episode that was stopped leaves behind.
        for v, stop in self.broken.items():
            self.stops.append(stop._replace(vehicle=v, end=min(stop.end, now)))
        for trip in self.open.values():
            self.trips.append(_cut_trip(trip, now, now))
        outcome = self.state.outcome[PLAYED]
        row = State(*(array[: PLAYED + 1] for array in self.state))
        return Trace(
            label=label,
            instance=self.instance,
            decisions=tuple(self.decisions),
            trips=tuple(sorted(self.trips, key=lambda trip: trip.decision)),
            stops=tuple(sorted(self.stops, key=lambda stop: (stop.start, stop.vehicle))),
            makespan=float(outcome[S.OUTCOME_MAKESPAN]),
            tardiness=float(outcome[S.OUTCOME_TARDINESS]),
            late=float(outcome[S.OUTCOME_LATE]),
            waiting=float(outcome[S.OUTCOME_WAITING]),
            value=float(goal.weigh(read_outcome(row)).value[PLAYED]),
            goal=goal,
            status=str(STATUS_NAMES[self.state.episode[PLAYED, S.EPISODE_PHASE]]),
            end=now,
        )


def _cut_trip(trip: Trip, end: int, last: int, stop: Stop | None = None) -> Trip:
    """Return a trip that ends early, `last` the last moment of its way, where it comes to a stop if any."""
    steps = [step for step in trip.steps if step.start <= last]
    if steps and stop is not None and last < steps[-1].end:
        step = steps[-1]
        part = step.last
        if (step.origin, step.target) == (stop.origin, stop.target):
            part = stop.part
        elif (step.target, step.origin) == (stop.origin, stop.target):
            part = 1.0 - stop.part
        steps[-1] = step._replace(end=last, last=part)
    pickup = trip.pickup if trip.pickup is not None and trip.pickup <= last else None
    return trip._replace(end=end, pickup=pickup, delivered=False, steps=tuple(steps))
