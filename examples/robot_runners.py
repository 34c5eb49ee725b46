"""A task scheduler for the League of Robot Runners: this package decides which robot takes which task.

Hand this file to the start kit (version 2026) as `python/user_scheduler/pyTaskScheduler.py`, and run the kit
with `--schedulerPython true`. The path planner stays the kit's. Two environment variables choose:

    ACERL_NP_POLICY      assignment (default), nearest, FCFS, STD, general, or the file of a policy
    ACERL_NP_COMMITMENT  assignment (default): a robot keeps its task; pickup: a task may change hands until
                         its robot has reached the first location, for up to some 100 robots

Each cell that robots can reach is a site. A step to the next cell is an edge of 1 m, and takes the ticks of
one action. Turns, delays and other robots are not modelled: each call reports where the robots are.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import acerl_np

DUE = 3.0
"""The kit has no due times. Here a task is due after this multiple of its own driving time."""

MOST = 100
"""Idle robots that get a task in one call; the others get theirs in the next calls. It bounds the time."""


def make_layout(blocked: Sequence[int], columns: int) -> acerl_np.Layout:
    """Return the free cells of a grid, row by row, as a layout with one vehicle."""
    free = {cell for cell, wall in enumerate(blocked) if not wall}
    edges = [
        acerl_np.Edge(str(cell), str(near), 1.0)
        for cell in free
        for near in (cell + 1, cell + columns)
        if near in free and (near != cell + 1 or near % columns)
    ]
    sites = [acerl_np.Site(str(cell), cell % columns, cell // columns) for cell in sorted(free)]
    return acerl_np.Layout(
        "grid", tuple(sites), tuple(edges), (acerl_np.Vehicle("0", sites[0].id),)
    )


class pyTaskScheduler:  # noqa: N801
    """Report what the kit knows to a `Dispatcher`, and propose the assignments that it orders."""

    env: Any = None
    """The kit's `SharedEnvironment`."""

    dispatcher: acerl_np.Dispatcher

    def initialize(self, preprocess_time_limit: int) -> None:
        """Find the routes; the kit does not know yet where its robots are."""
        self.layout = make_layout(self.env.map, self.env.cols)

    def begin(self) -> None:
        """Make the dispatcher of the robots where they start."""
        robots = enumerate(self.env.curr_states)
        speed = 1.0 / self.env.max_counter
        self.dispatcher = acerl_np.Dispatcher(
            self.layout.with_fleet(
                acerl_np.Vehicle(str(robot), str(state.location), speed) for robot, state in robots
            ),
            os.environ.get("ACERL_NP_POLICY", "assignment"),
            commitment=os.environ.get("ACERL_NP_COMMITMENT", "assignment"),
            max_changes=1000,
            budget=None,
        )
        self.ends: dict[int, str] = {}
        """The last location of each task."""
        self.tasks: dict[int, int] = {}
        """The task that each robot has, as the dispatcher knows it."""
        self.recalled: dict[int, int] = {}
        """The tasks that robots were told to give back; the kit refuses where one was begun meanwhile."""

    def plan(self, time_limit: int) -> list[int]:
        """Return the task of each robot, -1 for none."""
        if not hasattr(self, "dispatcher"):
            self.begin()
        env, feed, now = self.env, self.dispatcher.feed, float(self.env.curr_timestep)
        self.answer_recalls(now)
        for robot in env.new_freeagents:
            if robot in self.tasks:
                feed(acerl_np.VehicleIdle(now, str(robot), self.ends[self.tasks.pop(robot)]))
        for robot, state in enumerate(env.curr_states):
            task = self.tasks.get(robot)
            begun = task is not None and env.task_pool[task].idx_next_loc
            cell = env.task_pool[task].locations[0] if begun else state.location
            feed(acerl_np.VehiclePassed(now, str(robot), str(cell)))
        for task in env.new_tasks:
            self.reveal(task, now)
        idle = [robot for robot in range(env.num_of_agents) if robot not in self.tasks]
        for order in self.dispatcher.decide(now, without={str(robot) for robot in idle[MOST:]}):
            robot = int(order.vehicle)
            if isinstance(order, acerl_np.Recall):
                self.recalled[robot] = self.tasks.pop(robot)
            elif isinstance(order, acerl_np.Assignment):
                self.tasks[robot] = int(order.task)
        return [self.tasks.get(robot, -1) for robot in range(env.num_of_agents)]

    def answer_recalls(self, now: float) -> None:
        """Tell of each recall whether the kit has carried it out."""
        for robot, task in self.recalled.items():
            pool = self.env.task_pool
            kept = task not in pool or (
                pool[task].idx_next_loc > 0 and pool[task].agent_assigned == robot
            )
            self.dispatcher.feed(acerl_np.RecallAnswered(now, str(robot), str(task), not kept))
            if kept:
                self.tasks = {k: t for k, t in self.tasks.items() if t != task} | {robot: task}
        self.recalled.clear()

    def reveal(self, task: int, now: float) -> None:
        """Tell of a new task; all but the way from its pickup to its delivery is part of its handling."""
        routes, index = self.dispatcher.layout.routes, self.dispatcher.layout.site_index
        stops = [str(cell) for cell in self.env.task_pool[task].locations]
        ways = [routes.distance[index[a], index[b]] for a, b in pairwise(stops)]
        end = next((stop for stop in reversed(stops) if stop != stops[0]), None)
        if end is None:  # all in one place; the dispatcher wants two
            end = self.dispatcher.layout.sites[routes.distance[index[stops[0]]].argsort()[1]].id
        ticks = self.env.max_counter
        more = max(0.0, sum(ways) - routes.distance[index[stops[0]], index[end]]) * ticks
        due = DUE * (sum(ways) + 1) * ticks
        self.ends[task] = end
        self.dispatcher.feed(
            acerl_np.TaskArrived(now, str(task), stops[0], end, due, handling_time=more)
        )
