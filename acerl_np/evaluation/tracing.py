"""One trial of a policy, or past assignments, with all that happens in it: for pictures and replays."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core.state import NEVER, Problem, State, take_rows
from acerl_np.kernels.dispatching.deciders import Decider
from acerl_np.kernels.dispatching.drawn import assign_due
from acerl_np.kernels.motion.commitment import find_waiting, take_decision
from acerl_np.kernels.motion.offers import is_decision_due
from acerl_np.kernels.rollout.episodes import decide_rows
from acerl_np.kernels.rollout.futures import Ahead
from acerl_np.policies.agent import AgentFunction, OwnPolicy
from acerl_np.policies.files import BasePolicy, as_decider
from acerl_np.policies.reasons import explain_choice
from acerl_np.problem.goal import Goal, find_goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.records import Assignments
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import stream_keys
from acerl_np.simulation.replay import plan_replay
from acerl_np.simulation.scene import Chooses
from acerl_np.simulation.simulator import Simulator
from acerl_np.simulation.trace import PLAYED, Reason, Trace, trace_episode
from acerl_np.support.errors import InputError
from acerl_np.support.fields import Field, Whole, check_seed

TRIAL = Field(int, 0, 10_000_000 - 1, expected="a whole number from 0 on")


def trace_policy(
    policy: BasePolicy | str | Chooses | AgentFunction,
    instance: Instance,
    *,
    trial: int = 0,
    seed: Whole = 0,
    greedy: bool | None = None,
    horizon: float | None = None,
    label: str | None = None,
    objective: str | Goal = "makespan",
) -> Trace:
    """Play one trial of `evaluate_policy` again, numbered from 0 on, and note all that happens.

    Draws and breakdowns are the same as there; the objective is what `Trace.value` is. The label is what the
    trace calls the policy, by default the rule's name or the policy's form.

    Raises
    ------
    PolicyError
        If the policy does not fit the instance, its name is unknown, or it is no policy.
    InputError
        If trial or horizon is unusable.
    """
    goal = find_goal(objective)
    problem, key = _prepare(instance, trial, seed, horizon, goal)
    player = as_decider(policy, [instance], goal)
    player.check_fits(instance)
    if label is None:
        label = getattr(player, "name", getattr(player, "form", "lookahead"))
    if isinstance(player, OwnPolicy):
        keys = key[np.newaxis]
        simulator = Simulator(
            instance, policy=player, breakdown_keys=keys, horizon=horizon, goal=goal
        )
        return trace_episode(label, instance, problem, key, _Own(player, simulator), goal)
    problem, prepare = player.prepare(problem, [instance], greedy)
    return trace_episode(label, instance, problem, key, _Policy(prepare(), key), goal)


def _prepare(
    instance: Instance, trial: int, seed: Whole, horizon: float | None, goal: Goal
) -> tuple[Problem, np.ndarray]:
    """Return the tables of an instance and the key of one of its trials."""
    number = TRIAL.read("trial", trial, InputError)
    key = stream_keys([instance], number + 1, check_seed(seed))[-1]
    return build_problem([instance], horizon=horizon, goal=goal), key


def trace_past(
    assignments: Assignments,
    *,
    trial: int = 0,
    seed: Whole = 0,
    horizon: float | None = None,
    label: str = "past assignments",
    objective: str | Goal = "makespan",
) -> Trace:
    """Play past assignments as `replay_assignments`, and note all that happens, as `trace_policy`."""
    goal = find_goal(objective)
    problem, key = _prepare(assignments.instance, trial, seed, horizon, goal)
    return trace_episode(label, assignments.instance, problem, key, _Past(assignments), goal)


class _Policy:
    """A policy of any form, one decision after the other."""

    def __init__(self, decider: Decider | Ahead, key: np.ndarray) -> None:
        self.decider, self.keys = decider, key[np.newaxis]
        self.chosen = np.empty((1, 3), np.int64)

    def assign(self, problem: Problem, state: State) -> tuple[list[tuple[int, Reason]], int]:
        """Take one decision after the other while one is due."""
        given = []
        # Only the row that is played; the other is scratch.
        row = take_rows(state, PLAYED + 1)
        while is_decision_due(problem, state, PLAYED):
            decide_rows(problem, row, self.decider, self.keys, self.chosen)
            v, position, rule = (int(x) for x in self.chosen[PLAYED])
            reason = explain_choice(self.decider, problem, state, PLAYED, (v, position, rule))
            given.append((v, reason))
            take_decision(problem, state, PLAYED, v, position)
        return given, int(NEVER)


class _Own:
    """A policy in plain Python; it is asked about a simulator that plays along."""

    def __init__(self, policy: OwnPolicy, simulator: Simulator) -> None:
        self.policy, self.simulator = policy, simulator

    def assign(self, problem: Problem, state: State) -> tuple[list[tuple[int, Reason]], int]:
        """Take one decision after the other while one is due."""
        given = []
        while is_decision_due(problem, state, PLAYED):
            [v], [task] = chosen = self.policy.choose(self.simulator)
            self.simulator.assign(*chosen)
            take_decision(problem, state, PLAYED, v, find_waiting(state, PLAYED, task))
            given.append((int(v), Reason(self.policy.form)))
        return given, int(NEVER)


class _Past:
    """Past assignments, each when its vehicle and its task are ready."""

    def __init__(self, assignments: Assignments) -> None:
        self.plan = plan_replay(assignments)

    def assign(self, problem: Problem, state: State) -> tuple[list[tuple[int, Reason]], int]:
        """Give the assignments that are due."""
        before = state.vehicle[PLAYED]["task"].copy()
        due = int(assign_due(problem, state, PLAYED, *self.plan))
        begun = np.flatnonzero(state.vehicle[PLAYED]["task"] != before)
        return [(int(v), Reason("recorded")) for v in begun], due
