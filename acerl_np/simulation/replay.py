"""Past assignments played in the simulator: what yesterday's dispatching would score here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching.drawn import play_assignments
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.records import Assignments
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.simulator import find_served, list_ready
from acerl_np.support.files import FilePath, write_atomically
from acerl_np.support.report import render_csv

SCHEDULE_COLUMNS = (
    "task", "vehicle", "arrival", "due", "planned_start", "start", "planned_finish", "finish", "tardiness",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Replay:
    """Recorded assignments as the simulator carries them out.

    Attributes
    ----------
    assignments : Assignments
    makespan, tardiness : float, s, nan if the episode was stopped at its horizon
    start, finish : ndarray(float64, (n_tasks,)), s
        Per task, of the assignment that was carried through; nan where there is none.
    ready : ndarray(float64, (n_tasks,)), s
        When each task could be loaded: its arrival, or when the one before it had been processed; nan if
        that never was.
    decisions : int, assignments in all, those that a breakdown undid included
    outcome : Outcome, the same and more of this one episode, as `kernels.state.Outcome` has it
    """

    assignments: Assignments
    makespan: float
    tardiness: float
    start: np.ndarray
    finish: np.ndarray
    ready: np.ndarray
    decisions: int
    outcome: S.Outcome


class ReplayPlan(NamedTuple):
    """Recorded assignments as the kernels read them.

    Attributes
    ----------
    order : ndarray(int64, (n_tasks,)), the tasks of vehicle 0 in its order, then those of vehicle 1, ...
    bounds : ndarray(int64, (n_vehicles + 1,)), the tasks of vehicle v are order[bounds[v]:bounds[v + 1]]
    start_tick : ndarray(int64, (n_tasks,)), recorded start of each task
    head : ndarray(int64, (n_vehicles,)), where each vehicle is in `order`: at its first task
    """

    order: np.ndarray
    bounds: np.ndarray
    start_tick: np.ndarray
    head: np.ndarray


def plan_orders(
    tasks: np.ndarray, vehicles: np.ndarray, n_vehicles: int, start: np.ndarray
) -> ReplayPlan:
    """Return tasks in their order, and the vehicle of each, vehicle by vehicle; none begins before its start.

    Parameters
    ----------
    tasks, vehicles : ndarray(int64, (n_tasks,))
    n_vehicles : int
    start : ndarray(float64, (n_tasks,)), s, by task
    """
    bounds = np.searchsorted(np.sort(vehicles), np.arange(n_vehicles + 1)).astype(np.int64)
    return ReplayPlan(
        order=tasks[np.argsort(vehicles, kind="stable")].astype(np.int64),
        bounds=bounds,
        start_tick=np.ceil(np.maximum(start, 0.0)).astype(np.int64),
        head=bounds[:-1].copy(),
    )


def plan_actions(actions: Sequence[int], instance: Instance) -> ReplayPlan:
    """Return an order of tasks, vehicle * n_tasks + task by turn, vehicle by vehicle; each begins at once."""
    vehicles, tasks = np.divmod(np.array(actions, np.int64), instance.n_tasks)
    return plan_orders(tasks, vehicles, len(instance.layout.vehicles), np.zeros(instance.n_tasks))


def plan_replay(assignments: Assignments) -> ReplayPlan:
    """Return recorded assignments vehicle by vehicle."""
    own, n_vehicles = assignments.order, len(assignments.instance.layout.vehicles)
    return plan_orders(own, assignments.vehicle[own], n_vehicles, assignments.start)


def replay_assignments(
    assignments: Assignments,
    *,
    horizon: float | None = None,
    key: np.ndarray | None = None,
    goal: Goal = PAPER,
) -> Replay:
    """Play recorded assignments in the simulator.

    Each vehicle serves its tasks in the order of their recorded starts; an assignment happens at the
    first moment, not before its recorded start, at which the vehicle is idle and the task has
    arrived. A task whose vehicle breaks down in mid-way is served again by the same vehicle as soon
    as that is idle.
    """
    instance = assignments.instance
    n = instance.n_tasks
    problem = build_problem([instance], horizon=horizon, goal=goal)
    state = S.allocate_state(problem, 1)
    if key is not None:
        state.breakdown_key[0] = key
    play_assignments(problem, state, 0, *plan_replay(assignments))
    served = find_served(state, 0, instance)
    return Replay(
        assignments=assignments,
        makespan=float(state.outcome[0, S.OUTCOME_MAKESPAN]),
        tardiness=float(state.outcome[0, S.OUTCOME_TARDINESS]),
        start=np.where(served, state.task["start"][0, :n], np.nan),
        finish=np.where(served, state.task["finish"][0, :n], np.nan),
        ready=list_ready(state, 0, instance),
        decisions=int(state.episode["n_decisions"][0]),
        outcome=S.read_outcome(state),
    )


def write_schedule(path: FilePath, replay: Replay) -> None:
    """Write a replay task by task as CSV; s, empty where unknown; due, too, of a task that never is.

    `planned_start` and `planned_finish` are recorded, `start` and `finish` simulated.
    """
    lines: list[Sequence[str]] = [SCHEDULE_COLUMNS]
    planned = replay.assignments
    instance = planned.instance
    due = replay.ready + instance.expiry
    for k in planned.order:
        times = [
            instance.arrival[k],
            due[k],
            planned.start[k],
            replay.start[k],
            planned.finish[k],
            replay.finish[k],
            np.maximum(0.0, replay.finish[k] - due[k]),
        ]
        cells = [repr(round(float(time), 6)) if np.isfinite(time) else "" for time in times]
        vehicle = instance.layout.vehicles[planned.vehicle[k]].id
        lines.append([instance.tasks[k], vehicle, *cells])
    write_atomically(path, render_csv(lines).encode())
