"""Proven bounds on the makespan, by a constraint model that OR-Tools solves (the extra `exact`).

The model has all that holds in the simulator but what it says is left out, so no schedule is below its
bound. Vehicles may wait wherever they like. Machines take tasks in the order of their delivery; of those that
are delivered at once, in any. After a listed breakdown a vehicle may go on from anywhere. Priorities do not
bind. What the model finds is played by the simulator.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from acerl_np.commands import policy
from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.inputs import load_instances
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.players import read_goal
from acerl_np.commands.shared.tables import Column, render, show_below
from acerl_np.evaluation.bounds import bound_objective
from acerl_np.evaluation.hindsight import (
    check_future,
    find_hindsight,
    make_reference,
    play,
    play_orders,
)
from acerl_np.evaluation.references import Reference, bundled_references, save_references
from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion.ways import count_trip, find_slowdown
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.tables import build_problem
from acerl_np.support.errors import InputError, needing

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpSolver

WORKERS = 8
"""Searches that the solver lets run beside each other, on however many cores: fewer are of fewer kinds."""


class Proof(NamedTuple):
    """What is proven of a record, and the schedule that the model found.

    Attributes
    ----------
    bound : float
        No schedule within the limit has a smaller makespan, s; inf where there is none.
    planned : float
        The model's own makespan of its schedule, s; inf without one.
    makespan, tardiness : float
        Those of that schedule when the simulator plays it; inf where it does not finish.
    actions : tuple of int
        vehicle * n_tasks + task by turn, see `hindsight.play_orders`.
    best : float
        The least makespan within the limit that the simulator has played, of this or the schedule given, s.
    seconds : float
        What the solver took.
    """

    bound: float
    planned: float
    makespan: float
    tardiness: float
    actions: tuple[int, ...]
    best: float
    seconds: float

    @property
    def gap(self) -> float:
        """Share by which the best schedule is above the bound; nan without one."""
        return math.nan if math.isinf(self.best) else self.best / self.bound - 1.0

    def describe(self) -> str:
        """Return in a few words what is proven."""
        if math.isinf(self.bound):
            return "none within the limit"
        return "optimal" if self.best <= self.bound else "open"


def load_solver() -> Any:
    """Return OR-Tools' module; refuse to prove anything without it."""
    with needing("OR-Tools is not installed; install it with: pip install 'acerl_np[exact]'"):
        from ortools.sat.python import cp_model
    return cp_model


def check_provable(instance: Instance, goal: Goal) -> None:
    """Refuse an instance or a goal that the model does not have."""
    check_future(instance)
    if instance.layout.has_auxiliary:
        raise InputError(
            f"{instance.name}: vehicles charge, park or meet, which no proof has; expected a layout without"
        )
    limited = goal.has_limit and (goal.cost != "tardiness" or bool(goal.class_weights))
    if goal.objective != "makespan" or limited:
        raise InputError(
            f"{instance.name}: read {goal.objective}, limited by {goal.cost}; expected the makespan, "
            "limited by the tardiness of tasks that weigh alike, or by nothing"
        )


class _Group(NamedTuple):
    """Vehicles that are alike: their positions in the fleet, and when they are broken.

    A vehicle that breaks down at some tick is alone. Its repair ends at the second tick of a window.
    """

    vehicles: list[int]
    windows: list[tuple[int, int]]


class _Arc(NamedTuple):
    """A step on a vehicle's round: nodes, task by task, and what the trip to the second one takes, ticks.

    Node 0 is the start and the end, 1 + task a task, those after them breakdowns. A step from a task to
    itself leaves it to others.
    """

    literal: Any
    tail: int
    head: int
    approach: int
    duration: int


def _list_groups(problem: S.Problem) -> list[_Group]:
    found: dict[object, _Group] = {}
    for v in range(problem.instance["n_vehicles"][0]):
        windows: list[tuple[int, int]] = []
        for tick, ticks in problem.breakdown[0, v].tolist():
            # What falls into a repair, its last tick included, does not happen.
            if tick < S.NEVER and (not windows or tick > windows[-1][1]):
                windows.append((tick, tick + ticks + 1))
        own = (problem.start_site[0, v], *problem.fleet[0, v].tolist())
        key = (v, *own) if windows else own
        found.setdefault(key, _Group([], windows)).vehicles.append(v)
    return list(found.values())


class _Model:
    """The constraint model of a record.

    Of each task it has when a vehicle leaves for it, loads and delivers it, and when its processing begins.
    """

    def __init__(self, instance: Instance, goal: Goal, most: int) -> None:
        self.instance, self.problem = instance, build_problem([instance], goal=goal)
        self.chained = not instance.is_plain
        self.cp = load_solver().CpModel()
        self.n, self.most = instance.n_tasks, most
        self.leaves, self.loads, self.finish, self.begins = (
            [self.cp.new_int_var(0, most, "") for _ in range(self.n)] for _ in range(4)
        )
        self.least = min(most, math.ceil(bound_objective(instance, goal) - 1e-6))
        self.makespan = self.cp.new_int_var(self.least, most, "makespan")
        chain = self.problem.chain[0]
        self.processing = chain["processing"].tolist() if self.chained else [0] * self.n
        self.groups = _list_groups(self.problem)
        self.sizes: list[Any] = []
        self.delays: list[tuple[int, Any]] = []
        self.first: list[tuple[int, int, Any]] = []
        self.arcs = [self._add_round(group) for group in self.groups]
        self._add_trips()
        self._add_known()
        if self.chained:
            self._add_machines()
        if goal.has_limit:
            self._limit_tardiness(goal.cost_limit)
        self.cp.minimize(self.makespan)

    def _list_steps(self, group: _Group) -> Iterator[tuple[int, int, int, int]]:
        """Yield the nodes of each possible step, and the ticks to the pickup and of the trip."""
        problem, v, n = self.problem, group.vehicles[0], self.n
        able = [task for task in range(n) if S.may_carry(problem, 0, v, task)]
        yield from ((1 + task, 1 + task, 0, 0) for task in range(n))
        distance, ends = problem.distance[0], problem.ends[0]
        row = problem.fleet["slowdown"][0, v]
        for tail in (0, *(1 + task for task in able)):
            site = ends["delivery"][tail - 1] if tail else problem.start_site[0, v]
            for task in able:
                pickup = ends["pickup"][task]
                metres = distance[site, pickup]
                if tail != 1 + task and metres < np.inf:
                    slowdown = find_slowdown(problem, row, site, pickup)
                    trip = count_trip(problem, 0, v, task, metres, slowdown, True)
                    yield tail, 1 + task, *trip
        for k, _ in enumerate(group.windows, 1 + n):
            for task in able:
                yield k, 1 + task, *count_trip(problem, 0, v, task, 0.0, 0.0, True)
                yield 1 + task, k, 0, 0
            yield from ((other, k, 0, 0) for other in (0, *range(1 + n, k)))
        for tail in (*(1 + task for task in able), *range(1 + n, 1 + n + len(group.windows))):
            yield tail, 0, 0, 0

    def _add_round(self, group: _Group) -> list[_Arc]:
        """Let the vehicles of a group go round; each of its breakdowns is a stop at its time."""
        cp, n = self.cp, self.n
        arcs = [_Arc(cp.new_bool_var(""), *step) for step in self._list_steps(group)]
        cp.add_multiple_circuit([(arc.tail, arc.head, arc.literal) for arc in arcs])
        cp.add(sum(arc.literal for arc in arcs if arc.tail == 0) <= len(group.vehicles))
        for arc in arcs:
            after = arc.tail - 1 - n
            breaks = arc.head - 1 - n
            if arc.head in (0, arc.tail) or (arc.tail == 0 and breaks < 0):
                continue
            if breaks >= 0:
                if 0 < arc.tail <= n:  # what is delivered at the tick of a breakdown is not
                    before = self.finish[arc.tail - 1] < group.windows[breaks][0]
                    cp.add(before).only_enforce_if(arc.literal)
                continue
            free = group.windows[after][1] if after >= 0 else self.finish[arc.tail - 1]
            cp.add(self.leaves[arc.head - 1] >= free).only_enforce_if(arc.literal)
        return arcs

    def _add_trips(self) -> None:
        """Let each task be carried once, as long as its trip takes; no fleet drives more than it has time."""
        cp, n = self.cp, self.n
        into: list[list[_Arc]] = [[] for _ in range(n)]
        for arcs in self.arcs:
            for arc in arcs:
                if 0 < arc.head <= n and arc.tail != arc.head:
                    into[arc.head - 1].append(arc)
        trips = []
        for task, arcs in enumerate(into):
            cp.add_exactly_one(arc.literal for arc in arcs)
            approach = sum(arc.approach * arc.literal for arc in arcs)
            rest = sum((arc.duration - arc.approach) * arc.literal for arc in arcs)
            cp.add(self.loads[task] >= self.leaves[task] + approach)
            cp.add(self.finish[task] >= self.loads[task] + rest)
            cp.add(self.begins[task] >= self.finish[task])
            cp.add(self.makespan >= self.begins[task] + self.processing[task])
            least, most = min(arc.duration for arc in arcs), self.most
            self.sizes.append(cp.new_int_var(least, most, ""))
            ends = self.leaves[task], self.sizes[task], self.finish[task]
            trips.append(cp.new_interval_var(*ends, ""))
        for group in self.groups:
            for tick, repaired in group.windows:
                trips.append(cp.new_fixed_size_interval_var(tick, repaired - tick, ""))
        cp.add_cumulative(trips, [1] * len(trips), len(self.problem.fleet[0]))
        known = self.problem.arrival_tick[0]
        if self.chained:
            known = self.problem.chain["known"][0]
        tail = min(self.processing)
        for tick in np.unique(known).tolist():
            for group, arcs in zip(self.groups, self.arcs, strict=True):
                late = [x for x in arcs if 0 < x.head <= n and known[x.head - 1] >= tick]
                lost = sum(b - max(a, tick) for a, b in group.windows if tick < b <= self.least)
                time = len(group.vehicles) * (self.makespan - tail - tick) - lost
                cp.add(sum(arc.duration * arc.literal for arc in late) <= time)

    def _add_known(self) -> None:
        """Let no vehicle leave for a task before it is known, or load it before it is ready."""
        cp, instance = self.cp, self.instance
        for task in range(self.n):
            arrival = float(instance.arrival[task])
            cp.add(self.loads[task] >= math.ceil(arrival))
            before = int(instance.after[task])
            if not self.chained:
                cp.add(self.leaves[task] >= math.ceil(arrival))
            elif before < 0:
                cp.add(self.leaves[task] >= int(self.problem.chain["known"][0, task]))
            else:
                done = self.begins[before] + self.processing[before]
                cp.add(self.loads[task] >= done)
                cp.add(self.leaves[task] >= self.begins[before])
                lead = float(instance.announced[task])
                if lead < math.inf:
                    cp.add(self.leaves[task] >= done - math.floor(lead))
                    cp.add(self.leaves[task] >= math.ceil(arrival - lead))

    def _add_machines(self) -> None:
        """Let machines process tasks in the order of their delivery."""
        cp, chain = self.cp, self.problem.chain[0]
        for machine, servers in enumerate(self.problem.servers[0].tolist()):
            own = np.flatnonzero(chain["machine"] == machine).tolist()
            works = [
                cp.new_fixed_size_interval_var(self.begins[x], self.processing[x], "") for x in own
            ]
            if servers == 1:
                cp.add_no_overlap(works)
            else:
                cp.add_cumulative(works, [1] * len(works), servers)
            for a, b in combinations(own, 2):
                is_first = cp.new_bool_var("")
                self.first.append((a, b, is_first))
                for x, y, holds in ((a, b, is_first), (b, a, is_first.negated())):
                    cp.add(self.finish[x] <= self.finish[y]).only_enforce_if(holds)
                    until = self.begins[x] + (self.processing[x] if servers == 1 else 0)
                    cp.add(self.begins[y] >= until).only_enforce_if(holds)

    def _limit_tardiness(self, limit: float) -> None:
        """Keep the sum of delays, due moments rounded up, below what the limit allows."""
        cp, instance = self.cp, self.instance
        for task in np.flatnonzero(instance.expiry < math.inf).tolist():
            arrival, expiry = float(instance.arrival[task]), float(instance.expiry[task])
            before, due = int(instance.after[task]), math.ceil(arrival + expiry)
            if before >= 0:
                ready = cp.new_int_var(0, self.most, "")
                done = self.begins[before] + self.processing[before]
                cp.add_max_equality(ready, [done, math.ceil(arrival)])
                due = ready + math.ceil(expiry)
            delay = cp.new_int_var(0, self.most, "")
            cp.add(delay >= self.finish[task] - due)
            self.delays.append((task, delay))
        cp.add(sum(delay for _, delay in self.delays) <= math.ceil(limit * self.n) - 1)

    def hint(self, state: S.State) -> None:
        """Begin from an episode that was played to its end."""
        cp, n = self.cp, self.n
        start = state.task["start"][0, :n].tolist()
        finish = state.task["finish"][0, :n].tolist()
        done = state.job["done"][0, :n].tolist() if self.chained else finish
        cp.add_hint(self.makespan, max(finish + done))
        for task in range(n):
            cp.add_hint(self.leaves[task], start[task])
            cp.add_hint(self.finish[task], finish[task])
            cp.add_hint(self.sizes[task], finish[task] - start[task])
            cp.add_hint(self.begins[task], done[task] - self.processing[task])
        arrival, expiry = self.instance.arrival, self.instance.expiry
        for task, delay in self.delays:
            before = int(self.instance.after[task])
            due = math.ceil(arrival[task] + expiry[task])
            if before >= 0:
                due = max(done[before], math.ceil(arrival[task])) + math.ceil(expiry[task])
            cp.add_hint(delay, max(0, finish[task] - due))
        for a, b, is_first in self.first:
            cp.add_hint(is_first, int((finish[a], done[a]) < (finish[b], done[b])))
        for arcs, steps in zip(self.arcs, self._read_rounds(state), strict=True):
            for arc in arcs:
                cp.add_hint(arc.literal, int((arc.tail, arc.head) in steps))
                if (arc.tail, arc.head) in steps and arc.duration:
                    task = arc.head - 1
                    cp.add_hint(self.loads[task], finish[task] - arc.duration + arc.approach)

    def _read_rounds(self, state: S.State) -> list[set[tuple[int, int]]]:
        """Return the steps of each group in an episode."""
        rounds = []
        for group in self.groups:
            steps = {(1 + task, 1 + task) for task in range(self.n)}
            for v in group.vehicles:
                own = np.flatnonzero(state.task["vehicle"][0, : self.n] == v).tolist()
                stops = [(int(state.task["start"][0, x]), 1 + x) for x in own]
                stops += [(a, 1 + self.n + k) for k, (a, _) in enumerate(group.windows)]
                nodes = [0, *(node for _, node in sorted(stops)), 0]
                steps |= set(pairwise(nodes)) if stops else set()
                steps -= {(1 + task, 1 + task) for task in own}
            rounds.append(steps)
        return rounds

    def read(self, solver: CpSolver) -> tuple[int, ...]:
        """Return the order of the schedule found."""
        vehicle: dict[int, int] = {}
        for group, arcs in zip(self.groups, self.arcs, strict=True):
            taken = [arc for arc in arcs if solver.value(arc.literal)]
            following = {arc.tail: arc.head for arc in taken}
            firsts = (arc.head for arc in taken if arc.tail == 0)
            for v, first in zip(group.vehicles, firsts, strict=False):
                node = first
                while node:
                    vehicle[node - 1] = v
                    node = following[node]
        order = sorted(range(self.n), key=lambda task: solver.value(self.leaves[task]))
        return tuple(vehicle[task] * self.n + task for task in order)


def _find_most(instance: Instance) -> int:
    """Return a makespan within which some best schedule ends: that of one task after the other."""
    problem = build_problem([instance])
    n, metres = instance.n_tasks, instance.layout.routes.distance
    slowest = float(problem.fleet["speed"][0].min())
    longest = float(metres[np.isfinite(metres)].max()) / slowest + float(
        problem.slowdown.max(initial=0)
    )
    total = n * (2 * longest + 4) + float(instance.handling_time.sum() + instance.processing.sum())
    events = problem.breakdown[0]
    events = events[events["tick"] < S.NEVER]
    repairs = events["tick"].sum() + events["repair_ticks"].sum()
    return math.ceil(total + n + float(instance.arrival.max()) + float(repairs))


def prove_makespan(
    instance: Instance,
    goal: Goal,
    known: Reference | None = None,
    *,
    seconds: float = 600.0,
    threads: int = WORKERS,
) -> Proof:
    """Prove a bound on the makespan of an instance, and search a schedule that reaches it.

    Parameters
    ----------
    instance : Instance
    goal : Goal
        The makespan, with the mean tardiness below the limit if there is one.
    known : Reference, optional
        What was found in hindsight: the search begins from it, and goes no higher.
    seconds : float
        After which the search ends; what it has found by then depends on the machine.
    threads : int
        Searches beside each other.

    Raises
    ------
    MissingExtraError
        Without OR-Tools.
    InputError
        If the future is not known, vehicles charge or park, or the goal is another.
    """
    cp_model = load_solver()
    check_provable(instance, goal)
    if known is not None and known.within:
        best = known.makespan
        model = _Model(instance, goal, int(best))
        model.hint(play(instance, known.actions, goal))
    else:
        best, model = math.inf, _Model(instance, goal, _find_most(instance))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = threads
    started = time.perf_counter()
    status = solver.solve(model.cp)
    took = time.perf_counter() - started
    bound = planned = makespan = tardiness = math.inf
    actions: tuple[int, ...] = ()
    if status != cp_model.INFEASIBLE:
        bound = float(max(model.least, math.ceil(solver.best_objective_bound - 1e-6)))
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        planned, actions = float(round(solver.objective_value)), model.read(solver)
        state = play_orders(instance, actions, goal)
        if state.episode["phase"][0] == S.FINISHED:
            own = [S.OUTCOME_MAKESPAN, S.OUTCOME_TARDINESS]
            makespan, tardiness = state.outcome[0, own].tolist()
        if tardiness < goal.cost_limit:
            best = min(best, makespan)
    return Proof(bound, planned, makespan, tardiness, actions, best, took)


def take_proven(
    instance: Instance, goal: Goal, known: Reference | None, proof: Proof
) -> Reference | None:
    """Return the reference of the model's schedule where it is the better one, else the one that is known.

    Rules cannot tell an order of a plain instance, so there it is always the one that is known.
    """
    is_best = proof.makespan == proof.best and (known is None or known.makespan > proof.best)
    if instance.is_plain or not proof.actions or not is_best:
        return known
    return make_reference(instance, proof.actions, goal)


OPTIONS: opt.Options = {
    **policy.ACTIONS["bound"].options,
    opt.OUTPUT: (
        opt.OUT.but(help="the best schedules with their actions (JSON)"),
        *(opt.FORMAT, opt.FORCE),
    ),
    opt.RUNNING: (
        opt.EFFORT,
        opt.Argument(
            "--time-limit SECONDS", "for a record", opt.number(0.1, 10.0**6), default=600.0
        ),
        opt.SEED_OPTION,
        opt.THREADS.but(help=f"searches beside each other (default: {WORKERS})"),
    ),
}
COLUMNS = (
    Column("instance", "instance"),
    Column("makespan_s", "hindsight", ".1f", none="none"),
    Column("bound", "bound", ".1f"),
    Column("exact_makespan_s", "exact", ".1f"),
    Column("gap_share", "gap", ".1%"),
    Column("proof", "proof"),
    Column("solver_s"),
)


def run(arguments: argparse.Namespace) -> None:
    """Prove bounds on makespans, and search schedules that reach them, one record after the other.

    A constraint model that OR-Tools solves (pip install 'acerl_np[exact]'). In it machines serve in the
    order of delivery, as in the simulator. Vehicles may wait, which rules do not do, and go on from anywhere
    after a listed breakdown, so a bound holds but may be out of reach. A line says where the simulator takes
    another time for what the model plans.

    Examples
    --------
      python -m studies exact EX11 EX52 --time-limit 60
    """
    declare_outputs(arguments, [arguments.out])
    load_solver()
    instances, goal = load_instances(arguments, "dmh-train"), read_goal(arguments)
    for instance in instances:
        check_provable(instance, goal)
    how = {"seconds": arguments.time_limit, "threads": arguments.threads or WORKERS}
    rows, lines, best = [], [], []
    for instance in instances:
        searched = {"effort": arguments.effort, "seed": arguments.seed}
        known = find_hindsight(instance, goal, **searched)
        stored = bundled_references().get(instance.content_hash)
        if stored and stored.goal == goal and (known is None or stored.value < known.value):
            known = stored
        proof = prove_makespan(instance, goal, known, **how)
        told = proof.gap, proof.describe(), proof.seconds
        cells = (instance.name, known and known.makespan, proof.bound, proof.makespan, *told)
        rows.append(dict(zip((x.name for x in COLUMNS), cells, strict=True)))
        said = f"at least {proof.bound:.0f} s, {proof.describe()}"
        print(f"{len(rows)}/{len(instances)} {instance.name}: {said}", file=sys.stderr, flush=True)
        if proof.planned != proof.makespan:
            plays = f"{proof.planned:.1f} s, the simulator plays {proof.makespan:.1f} s."
            lines.append(f"{instance.name}: the model plans {plays}")
        best.append(take_proven(instance, goal, known, proof))
    print(render(COLUMNS, rows, arguments.format), end="")
    show_below(arguments.format, lines)
    if arguments.out is not None:
        save_references(arguments.out, [item for item in best if item is not None])
