"""All that happens in one episode: decisions, ways edge by edge, charging, breakdowns; for pictures."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.episode.auxiliary import settle_tick
from acerl_np.kernels.episode.events import open_episode, pass_tick
from acerl_np.kernels.motion.energy import find_level
from acerl_np.kernels.motion.traffic import find_visit, measure_delay
from acerl_np.kernels.motion.trips import drives
from acerl_np.kernels.rollout import trace as kernels
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.simulation.simulator import STATUS_NAMES, find_served, list_ready
from acerl_np.simulation.spacing import space_out

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
    """An assignment as it was given, or that all shall wait.

    Attributes
    ----------
    time : int, s
    vehicle, task : int, positions in the layout's fleet and in the record, -1 both if all wait
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
    ahead, until : int
        Position of the site to which it drives once others let it, -1 if it waits for nobody; and when that
        was to be, s, also if its way was changed before.
    """

    start: int
    end: int
    origin: int
    target: int
    first: float
    last: float
    loaded: bool
    pace: float
    ahead: int = -1
    until: int = -1


class Trip(NamedTuple):
    """What became of an assignment; one of a task to the vehicle that has it already begins none.

    Attributes
    ----------
    decision : int, position in `Trace.decisions`
    vehicle, task : int, positions in the layout's fleet and in the record
    start, end : int, s, from the assignment to the delivery, the vehicle's breakdown or the call-back
    pickup : int or None, s, when the vehicle was at the pickup, as waiting counts it; None if it never was
    delivered : bool, whether it was carried through; else a breakdown or a call-back undid it
    steps : tuple of Step
    recall : int or None
        Position of the decision that called it back: it gave the task to another vehicle, or the vehicle
        another task.
    pause : int, s, for which it stood at the pickup before that, or before the end, as the task was not ready
    delay : int
        s, by how much longer it drove, or was to drive, than where nobody meets, from the first place of its
        way on; 0 without traffic.
    """

    decision: int
    vehicle: int
    task: int
    start: int
    end: int
    pickup: int | None
    delivered: bool
    steps: tuple[Step, ...]
    recall: int | None = None
    pause: int = 0
    delay: int = 0


class AuxiliaryMove(NamedTuple):
    """What a vehicle did for a while without a task, other than to be idle.

    Attributes
    ----------
    status : int, as `STATUSES`: a way to its next site, a parking place or a charger; a queue, or charging
    vehicle : int
    start, end : int, s
    site : int, position in `layout.sites` of where the way leads, or the vehicle stands
    arrived : bool, whether it came there, or stood there
    steps : tuple of Step, none where it stood
    """

    status: int
    vehicle: int
    start: int
    end: int
    site: int
    arrived: bool
    steps: tuple[Step, ...]


class Level(NamedTuple):
    """What a vehicle's battery held from a moment on.

    Attributes
    ----------
    time : int, s
    level, rate : int, units of energy at that moment, and by how many it grows a second
    """

    time: int
    level: int
    rate: int


class Processing(NamedTuple):
    """What a machine did with a task.

    Attributes
    ----------
    machine, server : int, position in `layout.machines`, and which of its servers, from 0 on
    task : int, position in the record
    queued, start, end : int, s
        When it was delivered, and when its processing began and ended; both at the latest at the end of the
        episode.
    """

    machine: int
    server: int
    task: int
    queued: int
    start: int
    end: int


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
    auxiliary_moves : tuple of AuxiliaryMove, by their starts
    stops : tuple of Stop, by their starts
    processing : tuple of Processing, by machine and start
    ready : ndarray(float64, (n_tasks,)), s
        When each task could be loaded: its arrival, or when the one before it had been processed; nan if
        that never was.
    levels : tuple of tuple of Level, by vehicle and time; empty of a vehicle without a battery
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
    auxiliary_moves: tuple[AuxiliaryMove, ...]
    stops: tuple[Stop, ...]
    processing: tuple[Processing, ...]
    ready: np.ndarray
    levels: tuple[tuple[Level, ...], ...]
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
    def lateness(self) -> np.ndarray:
        """By how much each task was late, float64 (n_tasks,), s; 0 in time, nan if not delivered."""
        due = self.ready + self.instance.expiry
        return np.asarray(np.maximum(0.0, self.finish - due))

    @property
    def servers(self) -> list[tuple[int, int]]:
        """Machines and their servers, from 0 on: of each machine the first, and others that did something."""
        if self.instance.is_plain:
            return []
        firsts = {(k, 0) for k in range(len(self.instance.layout.machines))}
        return sorted(firsts | {own[:2] for own in self.processing})

    def list_ways(self) -> list[Trip | AuxiliaryMove]:
        """Return trips and auxiliary moves by their starts."""
        return sorted([*self.trips, *self.auxiliary_moves], key=lambda way: way.start)

    def locate(self, vehicle: int, time: float) -> tuple[float, float]:
        """Return where a vehicle is, as coordinates of the layout, m."""
        layout = self.instance.layout
        at = layout.site_index[layout.vehicles[vehicle].start]
        place = (at, at, 0.0)
        for way in self.list_ways():
            if way.vehicle != vehicle or way.start > time:
                continue
            for step in way.steps:
                if step.start <= time:
                    place = (step.origin, step.target, find_part(step, time))
            if isinstance(way, AuxiliaryMove):
                arrived, at = way.arrived, way.site
            else:
                arrived, at = way.delivered, int(self.instance.delivery[way.task])
            if arrived and way.end <= time:
                place = (at, at, 0.0)
        return place_on(layout, *place)

    def find_level(self, vehicle: int, time: float) -> float:
        """Return what a vehicle's battery holds at a moment, in units of energy; nan without one."""
        battery, known = self.instance.layout.batteries[vehicle], self.levels[vehicle]
        if battery is None:
            return math.nan
        last = max(bisect_right(known, time, key=lambda own: own.time) - 1, 0)
        level = known[last].level + known[last].rate * (time - known[last].time)
        return min(max(level, 0.0), float(battery.capacity))


def find_part(step: Step, time: float) -> float:
    """Return the share of its edge that is behind a vehicle at `time`, s, which is not before the step."""
    return min(step.last, step.first + (time - step.start) * step.pace)


def place_on(layout: Layout, origin: int, target: int, part: float) -> tuple[float, float]:
    """Return the coordinates, m, of the place that lies `part` of the way from one site to another."""
    a, b = layout.sites[origin], layout.sites[target]
    return a.x + part * (b.x - a.x), a.y + part * (b.y - a.y)


class Player(Protocol):
    """Who decides in a traced episode."""

    def assign(
        self, problem: S.Problem, state: S.State
    ) -> tuple[Sequence[tuple[int, Reason]], int]:
        """Take the decisions that are to be taken now, in row 0 of the state.

        Returns
        -------
        given : sequence of (int, Reason)
            The vehicle of each assignment, -1 where all wait, and its reason, in the order in which they were
            given.
        due : int
            Tick at which to ask again though nothing has happened by then, `NEVER` for none.
        """
        ...


def trace_episode(
    label: str,
    instance: Instance,
    problem: S.Problem,
    key: np.ndarray,
    player: Player,
    goal: Goal = PAPER,
) -> Trace:
    """Play one episode and note all that happens; `goal` is that of `problem`."""
    state = S.allocate_state(problem, 2)
    state.breakdown_key[PLAYED] = key
    open_episode(problem, state, PLAYED, 0)
    notes = _Notes(instance, problem, state)
    while state.episode["phase"][PLAYED] == S.RUNNING:
        given, due = player.assign(problem, state)
        notes.add_trips(given)
        if notes.has_auxiliary:
            notes.add_moves()
        before = state.vehicle[PLAYED].copy()
        pass_tick(problem, state, PLAYED, due)
        notes.add_events(before)
    return notes.close(label, goal)


class _Notes:
    """What has happened so far."""

    def __init__(self, instance: Instance, problem: S.Problem, state: S.State) -> None:
        self.instance, self.problem, self.state = instance, problem, state
        self.fleet = range(len(instance.layout.vehicles))
        self.decisions: list[Decision] = []
        self.trips: list[Trip] = []
        self.moves: list[AuxiliaryMove] = []
        self.stops: list[Stop] = []
        self.levels: list[list[Level]] = [[] for _ in self.fleet]
        self.has_auxiliary = bool(problem.instance["auxiliary"][0])
        self.meets = instance.layout.traffic is not None
        self.open: dict[int, Trip] = {}
        self.under_way: dict[int, AuxiliaryMove] = {}
        self.powered = [v for v, own in enumerate(instance.layout.batteries) if own is not None]
        self.courses: dict[int, tuple[int, int, int]] = {}
        self.broken: dict[int, Stop] = {}
        self.kept: dict[int, tuple[tuple[Step, ...], int]] = {}
        """Ways until breakdowns of vehicles that keep their loads, and when these go on."""
        classes = np.minimum(instance.priority, len(problem.class_weight) - 1).astype(np.int64)
        self.weight = problem.class_weight[classes]
        n = 2 * len(instance.layout.sites) + 2
        self.steps = np.empty((n, kernels.N_STEP_FIELDS), np.int64)
        self.offsets = np.empty(n)
        self._note_levels()

    @property
    def now(self) -> int:
        return int(self.state.episode["time"][PLAYED])

    def add_trips(self, given: Sequence[tuple[int, Reason]]) -> None:
        after = self.state.vehicle[PLAYED]
        first = len(self.decisions)
        for v, reason in given:
            task = int(after[v].task) if v >= 0 else -1
            self.decisions.append(Decision(self.now, v, task, reason))
        if self.has_auxiliary:
            self._note_recalls(first)
            self._note_moves()
        for k in range(first, len(self.decisions)):
            _, v, task, _ = self.decisions[k]
            if v < 0 or v in self.open:  # nobody, or it has the task already
                continue
            end = int(after[v].event_tick)
            waited = self.state.vehicle[PLAYED, v].last_waiting
            ready = S.find_ready(self.problem, self.state, PLAYED, np.int64(task))
            pickup = round(float(ready + waited / self.weight[task]))
            steps, pause = self._list_steps(v, end), int(after[v].pause)
            if pause > 0 and not self.meets:
                steps = _stand_at(int(self.instance.pickup[task]), pickup - pause, pickup, steps)
            delay = self._measure_delay(v)
            self.kept.pop(v, None)
            self.open[v] = Trip(k, v, task, self.now, end, pickup, True, steps, None, pause, delay)
        if self.meets:
            self._follow_plans()

    def _note_recalls(self, first: int) -> None:
        """Note the trips that decisions from `first` on called back."""
        for k, decision in enumerate(self.decisions[first:], first):
            for v, trip in list(self.open.items()):
                if (decision.vehicle == v) != (decision.task == trip.task):
                    steps = self._break_off(v, trip.steps)
                    own = _cut_trip(trip, self.now, self.now)
                    self.trips.append(own._replace(pickup=None, steps=steps, recall=k))
                    del self.open[v]

    def add_moves(self) -> None:
        """Let vehicles that nobody assigned charge or park, and note it."""
        episode = self.state.episode[PLAYED]
        is_over = episode["n_finished"] == self.instance.n_tasks
        if not is_over or episode["n_processed"] > 0:
            settle_tick(self.problem, self.state, PLAYED)
        self._note_moves()
        self._note_levels()

    def _note_moves(self) -> None:
        """Note which auxiliary moves have ended and begun by now."""
        after = self.state.vehicle[PLAYED]
        for v in self.fleet:
            status, move = int(after[v].status), self.under_way.get(v)
            if move is not None and move.status != status:
                del self.under_way[v]
                arrived, steps = not move.steps or self.now == move.end, move.steps
                if status == S.BROKEN:
                    # As of a trip: it stands where it was a tick before.
                    arrived, steps = not steps, _cut_steps(steps, self.now - 1, self.broken[v])
                elif not arrived:
                    steps = self._break_off(v, steps)
                if move.start < self.now:
                    own = move._replace(end=self.now, arrived=arrived, steps=steps)
                    self.moves.append(own)
            if status >= S.ROAMING and v not in self.under_way:
                is_way, end = drives(status), int(after[v].event_tick)
                site = after[v].destination if is_way else after[v].site
                steps = self._list_steps(v, end) if is_way else ()
                self.under_way[v] = AuxiliaryMove(status, v, self.now, end, int(site), True, steps)

    def _break_off(self, v: int, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Return the steps of a way that vehicle v leaves now; it finishes its edge on the next one."""
        row, n_begun = self.state.vehicle[PLAYED, v], sum(step.start < self.now for step in steps)
        if n_begun == 0:
            return ()
        if self.meets:
            return _clip_steps(steps, self.now)
        moves = drives(row.status)
        joins = moves and row.leg == S.JOINING
        site, part = int(row.edge_from if moves else row.site), 1.0
        following = self._list_steps(v, self.now)[0] if joins else None
        last = n_begun - 1
        # Edge by edge it may be behind where it truly is by some edges: it passes these at once.
        for k in range(last, len(steps)):
            step = steps[k]
            if step.loaded:
                break
            if following is None:
                if step.target == site:
                    last = k
                    break
            elif (following.origin, following.target) == (step.origin, step.target):
                last, part = k, max(step.first, following.first)
                break
        kept = [
            step._replace(start=min(step.start, self.now), end=min(step.end, self.now))
            for step in steps[: last + 1]
        ]
        kept[-1] = kept[-1]._replace(last=part)
        if not moves:  # it came to a site just now
            kept.append(Step(self.now, self.now, site, site, 1.0, 1.0, False, 1.0))
        return tuple(kept)

    def _note_levels(self) -> None:
        """Note how levels go on, of vehicles that have changed course."""
        for v in self.powered:
            row = self.state.vehicle[PLAYED, v]
            status, tick = int(row.status), int(row.level_tick)
            course = status, tick, int(row.loaded_tick)
            if self.courses.get(v) == course:
                continue
            self.courses[v] = course
            bends = [max(0, tick)]
            if status == S.WORKING:
                pause = int(row.pause)
                turns = [course[-1] - pause, course[-1]] if pause > 0 else [course[-1]]
                bends += [turn for turn in turns if turn > tick]
            known = [own for own in self.levels[v] if own.time < bends[0]]
            for bend in bends:
                level, then = (
                    int(find_level(self.problem, self.state, PLAYED, np.int64(v), np.int64(k)))
                    for k in (bend, bend + 1)
                )
                known.append(Level(bend, level, then - level))
            self.levels[v] = known

    def _list_steps(self, v: int, end: int) -> tuple[Step, ...]:
        """Return the way of a trip; durations round once, edges one by one, so it may seem to last longer."""
        if self.meets:
            return self._list_planned(v, self.now)
        n = kernels.list_steps(self.problem, self.state, PLAYED, SPARE, v, self.steps, self.offsets)
        length = self.instance.layout.routes.edge_length
        has_task = bool(self.state.vehicle[PLAYED, v].task >= 0)
        steps = []
        for row, offset in zip(self.steps[:n].tolist(), self.offsets[:n].tolist(), strict=True):
            a, b = row[kernels.STEP_FROM], row[kernels.STEP_TO]
            # An edge may be longer one way than the other.
            metres = float(length[b, a] if row[kernels.STEP_REVERSED] else length[a, b])
            known = a != b and 0.0 < metres < np.inf
            first = offset / metres if known else 0.0
            loaded = has_task and row[kernels.STEP_LEG] == S.TO_DELIVERY
            pace = self.instance.layout.find_pace(v, a, b) / metres if known else 1.0
            start, left = min(row[kernels.STEP_START], end), min(row[kernels.STEP_END], end)
            steps.append(Step(start, left, a, b, first, 1.0, loaded, pace))
        return tuple(steps)

    def _list_planned(self, v: int, since: int) -> tuple[Step, ...]:
        """Return what vehicle v, which meets others, has planned from a moment on: edges, stands, waits."""
        plan, layout = self.state.plan[PLAYED, v], self.instance.layout
        loads = int(self.state.vehicle[PLAYED, v].loaded_tick)
        n, pickup, delivery = plan[0, : S.PLANNED_DELIVERY + 1].tolist()
        until = delivery if self.state.vehicle[PLAYED, v].task >= 0 else n
        rows = plan[1 : n + 1].tolist()
        # On an edge that takes no tick it has not been then.
        is_repaired = any((stop.vehicle, stop.end) == (v, since) for stop in self.stops)
        steps = []
        for k, ((a, came, out, stay), (b, there, _, _)) in enumerate(pairwise(rows[:until]), 1):
            loaded = pickup <= k < delivery
            done = min(out, max(since, (loads if k == pickup else came) + stay))
            for start, end, *waits in ((max(came, since), done), (done, out, b, out)):
                if start < end:
                    steps.append(Step(start, end, a, a, 1.0, 1.0, loaded, 1.0, *waits))
            if there < since + (out < since or not is_repaired):
                continue
            metres = float(layout.routes.edge_length[a, b])
            pace = layout.find_pace(v, a, b) / metres if metres > 0.0 else 1.0
            start = max(out, since)
            first = min(1.0, pace * (start - out + min(0, stay)))
            steps.append(Step(start, there, a, b, first, 1.0, loaded, pace))
        return tuple(steps)

    def _measure_delay(self, v: int) -> int:
        """Return how much longer vehicle v drives for its task as it meets others."""
        return int(measure_delay(self.problem, self.state, PLAYED, v)) if self.meets else 0

    def _follow_plans(self) -> None:
        """Note how the ways go on of vehicles that were pushed, or let others pass."""
        after = self.state.vehicle[PLAYED]
        for v, trip in self.open.items():
            if after[v].status == S.WORKING:
                before, since = self.kept.get(v, ((), trip.start))
                steps = (*before, *self._list_planned(v, since))
                end = int(after[v].event_tick)
                pickup = int(after[v].loaded_tick)
                trip = trip._replace(end=end, pickup=pickup, steps=steps)
                self.open[v] = trip._replace(delay=self._measure_delay(v))
        for v, move in self.under_way.items():
            if after[v].status == move.status:
                steps = self._list_planned(v, move.start)
                end = int(after[v].event_tick)
                self.under_way[v] = move._replace(end=end, steps=steps)

    def add_events(self, before: np.ndarray) -> None:
        after = self.state.vehicle[PLAYED]
        if self.meets:
            self._follow_plans()
        for v in self.fleet:
            was, is_now = int(before[v].status), int(after[v].status)
            if is_now == S.BROKEN and was != S.BROKEN:
                self.broken[v] = stop = self._note_stop(v)
                if v in self.open:
                    # The vehicle stands where it was a tick before.
                    trip = self.open.pop(v)
                    cut = _cut_trip(trip, stop.start, stop.start - 1, stop)
                    if after[v].task >= 0:
                        self.open[v] = trip._replace(steps=cut.steps)
                        self.kept[v] = cut.steps, stop.end
                    else:
                        self.trips.append(cut)
            elif was == S.BROKEN and is_now != S.BROKEN:
                self.stops.append(self.broken.pop(v)._replace(end=self.now))
                if v in self.open:
                    self._go_on(v)
            elif was == S.WORKING and is_now != S.WORKING:
                self.trips.append(self.open.pop(v))
        if self.has_auxiliary:
            self._note_moves()
            self._note_levels()

    def _go_on(self, v: int) -> None:
        """Note how vehicle v goes on with the load that it has kept."""
        trip, end = self.open[v], int(self.state.vehicle[PLAYED, v].event_tick)
        steps = self._list_steps(v, end)
        if steps and not self.meets:  # in the midst of an edge
            first = steps[0]._replace(start=self.now, first=find_part(steps[0], self.now))
            steps = (first, *steps[1:])
        self.open[v] = trip._replace(end=end, steps=(*self.kept[v][0], *steps))

    def _note_stop(self, v: int) -> Stop:
        if self.meets:
            return self._note_halt(v)
        row = self.state.vehicle[PLAYED, v]
        begun = [] if row.task < 0 else [x for x in self.open[v].steps if x.start < self.now]
        if begun:  # it keeps its load
            step, end = begun[-1], int(row.event_tick)
            part = find_part(step, self.now - 1)
            return Stop(v, self.now, end, step.origin, step.target, part)
        origin, target, part = int(row.site), int(row.halted_towards), 0.0
        length = float(self.instance.layout.routes.edge_length[origin, target])
        if target < 0 or target == origin or not 0.0 < length < np.inf:
            target = origin
        else:
            part = min(1.0, float(row.halted_at) / length)
        end = int(row.event_tick)
        return Stop(v, self.now, end, origin, target, part)

    def _note_halt(self, v: int) -> Stop:
        """Return where vehicle v, which meets others, has stopped: on its edge, or at a site."""
        row, plan = self.state.vehicle[PLAYED, v], self.state.plan[PLAYED, v]
        n, k = int(plan[0, S.PLANNED_VISITS]), int(find_visit(plan, self.now - 1))
        origin = target = int(plan[k, S.PLAN_SITE] if k > 0 else row.site)
        if 0 < k < n and plan[k, S.PLAN_OUT] < self.now:
            target = int(plan[k + 1, S.PLAN_SITE])
        # `space_out` tells how far it has come on the edge.
        return Stop(v, self.now, int(row.event_tick), origin, target, 0.0)

    def _list_processing(self, served: np.ndarray) -> tuple[Processing, ...]:
        """Return what machines did; of servers that are free the first is taken."""
        own = []
        for task in np.flatnonzero(self.instance.processing * served > 0.0).tolist():
            _, machine, ticks, _ = self.problem.chain[0, task].tolist()
            queued = int(self.state.task["finish"][PLAYED, task])
            end = int(self.state.job["done"][PLAYED, task])
            times = queued, min(end - ticks, self.now), min(end, self.now)
            own.append(Processing(machine, 0, task, *times))
        own.sort(key=lambda item: (item.machine, item.start, item.queued))
        until: dict[tuple[int, int], int] = {}
        for k, (machine, server, _, _, start, end) in enumerate(own):
            while until.get((machine, server), 0) > start:
                server += 1
            until[machine, server] = end
            own[k] = own[k]._replace(server=server)
        return tuple(own)

    def close(self, label: str, goal: Goal) -> Trace:
        now = self.now
        # What an episode that was stopped leaves behind.
        for v, stop in self.broken.items():
            self.stops.append(stop._replace(vehicle=v, end=min(stop.end, now)))
        for trip in self.open.values():
            self.trips.append(_cut_trip(trip, now, now))
        for move in self.under_way.values():
            if move.start < now:
                steps = _cut_steps(move.steps, now)
                self.moves.append(move._replace(end=now, arrived=not move.steps, steps=steps))
        if self.meets:
            own: list[Trip | AuxiliaryMove] = [*self.trips, *self.moves]
            ways = sorted(own, key=lambda way: way.start)
            spaced, self.stops = space_out(self.instance.layout, ways, self.stops)
            self.trips = [way for way in spaced if isinstance(way, Trip)]
            self.moves = [way for way in spaced if isinstance(way, AuxiliaryMove)]
        outcome = self.state.outcome[PLAYED]
        row = S.take_rows(self.state, PLAYED + 1)
        return Trace(
            label=label,
            instance=self.instance,
            decisions=tuple(self.decisions),
            trips=tuple(sorted(self.trips, key=lambda trip: trip.decision)),
            auxiliary_moves=tuple(sorted(self.moves, key=lambda own: (own.start, own.vehicle))),
            stops=tuple(sorted(self.stops, key=lambda stop: (stop.start, stop.vehicle))),
            processing=self._list_processing(find_served(self.state, PLAYED, self.instance)),
            ready=list_ready(self.state, PLAYED, self.instance),
            levels=tuple(tuple(level for level in own if level.time <= now) for own in self.levels),
            makespan=float(outcome[S.OUTCOME_MAKESPAN]),
            tardiness=float(outcome[S.OUTCOME_TARDINESS]),
            late=float(outcome[S.OUTCOME_LATE]),
            waiting=float(outcome[S.OUTCOME_WAITING]),
            value=float(goal.weigh(S.read_outcome(row)).value[PLAYED]),
            goal=goal,
            status=str(STATUS_NAMES[self.state.episode["phase"][PLAYED]]),
            end=now,
        )


def _clip_steps(steps: Sequence[Step], end: int) -> tuple[Step, ...]:
    """Return the steps of a way until a moment, the last one as far as it comes by then."""
    kept = [step for step in steps if step.start < end]
    if kept and kept[-1].end > end:
        step = kept[-1]
        last = min(step.last, step.first + step.pace * (end - step.start))
        kept[-1] = step._replace(end=end, last=last if step.origin != step.target else 1.0)
    return tuple(kept)


def _stand_at(site: int, start: int, end: int, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return a way on which the vehicle stands at the pickup for a while; there all edges are behind it."""
    ways = [step._replace(end=min(step.end, start)) for step in steps if step.start < start]
    stand = Step(start, end, site, site, 1.0, 1.0, False, 1.0)
    return (*ways, stand, *(step for step in steps if step.start >= end))


def _cut_trip(trip: Trip, end: int, last: int, stop: Stop | None = None) -> Trip:
    """Return a trip that ends early, `last` the last moment of its way, where it comes to a stop if any."""
    steps = _cut_steps(trip.steps, last, stop)
    there = trip.pickup is not None and trip.pickup <= last
    pause = trip.pause if there else max(0, end - (trip.pickup or 0) + trip.pause)
    pickup = trip.pickup if there else None
    return trip._replace(end=end, pickup=pickup, delivered=False, steps=steps, pause=pause)


def _cut_steps(steps: Sequence[Step], last: int, stop: Stop | None = None) -> tuple[Step, ...]:
    """Return a way as far as it comes by its last moment, or until its vehicle comes to a stop."""
    steps = [step for step in steps if step.start <= last]
    if steps and stop is not None and last < steps[-1].end:
        step = steps[-1]
        if stop.origin == stop.target == step.origin != step.target:  # it has not left yet
            return tuple(steps[:-1])
        part = step.last
        if step.origin != step.target and step[2:4] == stop[3:5]:
            part = stop.part
        elif (step.target, step.origin) == (stop.origin, stop.target):
            part = 1.0 - stop.part
        steps[-1] = step._replace(end=last, last=part)
    return tuple(steps)
