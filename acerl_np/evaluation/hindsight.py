"""The best schedule found for a future that is known: how much there is to win.

A clairvoyant dispatcher could follow it. It is the best that was found, not a proven bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple

import numpy as np

from acerl_np.evaluation.references import Reference
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.random import SEARCH, make_key
from acerl_np.kernels.dispatching.drawn import play_assignments
from acerl_np.kernels.dispatching.rules import N_RULES
from acerl_np.kernels.rollout.annealing import Style, anneal_actions
from acerl_np.kernels.rollout.beam import Guide, allocate_beam, search_beam
from acerl_np.kernels.rollout.orders import allocate_orders, anneal_orders
from acerl_np.kernels.rollout.search import Found, allocate_found
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.rules import BASELINES
from acerl_np.problem.goal import PAPER, Goal, read_objective
from acerl_np.problem.instance import Instance, number_hash
from acerl_np.problem.interface import TASK_RULES
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.replay import plan_actions
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.errors import InputError
from acerl_np.support.fields import Whole
from acerl_np.support.team import Team, lead
from acerl_np.support.workers import count_cores

BEAMS = ((40.0, 0.05), (20.0, 0.05))
"""Approach and delay weight of beams that are searched one after the other: they err differently."""

DELAY_BEAMS = ((40.0, 3.0), (20.0, 0.5))
"""The same where the makespan is no part of the objective."""

STYLES = ((6.0, 0.1, 12.0), (4.0, 0.3, 12.0))
"""Most changes, mean weight and heat of annealing chains in turn; none was best on all bundled records."""

DELAY_STYLES = ((6.0, 0.0, 12.0), (4.0, 0.0, 1.0))
"""The same where the makespan is no part of the objective; the second starts from the best so far."""

BEAM_WIDTH = 40_000
ANNEALING_CHAINS = 16
ANNEALING_STEPS = 20_000
"""Partial schedules of a level, chains and steps of a chain at effort 1: about seven seconds of a core for a
DMH record."""

USUAL = 40
"""Tasks up to which the searches play as much for an effort, however many there are."""

PLAYED_TRIALS = 30
"""Of rules that draw: those that are usually judged."""

ORDER_CHAINS = 16
ORDER_STEPS = 350_000
"""The same of orders, where tasks follow others: for 20 tasks and two vehicles."""


def play_orders(instance: Instance, actions: Sequence[int], goal: Goal = PAPER) -> S.State:
    """Play an order of tasks, vehicle * n_tasks + task by turn; return the episode, one row."""
    problem = build_problem([instance], goal=goal)
    state = S.allocate_state(problem, 1)
    play_assignments(problem, state, 0, *plan_actions(actions, instance))
    return state


def play(instance: Instance, actions: Sequence[int], goal: Goal = PAPER) -> S.State:
    """Play an action sequence of a `Reference`, which must end with the episode; return that, one row."""
    if not instance.is_plain:
        if sorted(action % instance.n_tasks for action in actions) != [*range(instance.n_tasks)]:
            raise InputError(f"{instance.name}: expected an order with each task once")
        return play_orders(instance, actions, goal)
    simulator = Simulator(instance, goal=goal, slots="pool")
    first = find_pairs(instance)
    for k, action in enumerate(actions):
        if simulator.done[0]:
            raise InputError(f"{instance.name}: over after {k} decisions; read {len(actions)}")
        if action < first:
            simulator.step([action])
        else:
            v, task = divmod(action - first, instance.n_tasks)
            simulator.assign([v], [task])
    if not simulator.done[0]:
        raise InputError(f"{instance.name}: not over after {len(actions)} decisions; expected more")
    return simulator.state


def find_pairs(instance: Instance) -> int:
    """Return the action of a `Reference` that gives the first task to the first vehicle."""
    return N_RULES * len(instance.layout.vehicles) if instance.is_plain else 0


def replay_actions(instance: Instance, actions: Sequence[int], goal: Goal = PAPER) -> S.Outcome:
    """Play an action sequence as `play`; return what came out, one entry."""
    return S.read_outcome(play(instance, actions, goal))


def check_future(instance: Instance) -> None:
    """Refuse an instance whose future is not known, or whose tasks may change hands."""
    if instance.layout.commitment != "assignment":
        raise InputError(
            f"{instance.name}: tasks may change hands; expected commitment='assignment'"
        )
    if instance.layout.has_random_breakdowns:
        raise InputError(
            f"{instance.name}: vehicles break down at random, so the future is not known; "
            "expected listed breakdowns only (--breakdowns listed)"
        )
    layout = instance.layout
    if not instance.is_plain and (
        layout.has_auxiliary or any(x.breakdowns for x in layout.vehicles)
    ):
        raise InputError(
            f"{instance.name}: has tasks that follow others, are processed or announced, or are never due, "
            "and breakdowns, batteries, parking or traffic; expected one of both (--breakdowns none, "
            "--traffic off)"
        )


def measure_size(instance: Instance) -> float:
    """Return how many times the work of a DMH record (30 tasks, 3 vehicles) the same search would be.

    The work of a level grows with the fleet and the record, and so does the number of levels. What is
    smaller has fewer schedules, too, and counts as one.
    """
    return max(1.0, (instance.n_tasks / 30) ** 2 * (len(instance.layout.vehicles) / 3))


def find_effort(instance: Instance, effort: float) -> float:
    """Return what an effort is for this record: beyond `USUAL` tasks the work grows as their number."""
    return effort * max(1.0, instance.n_tasks / USUAL)


class Candidate(NamedTuple):
    """An action sequence, its objective and its cost; infinite where there is none."""

    value: float = math.inf
    cost: float = math.inf
    actions: tuple[int, ...] = ()

    def order(self, limit: float) -> tuple[bool, float, float]:
        """Return what is smaller for a better one: below the limit the objective, else the cost."""
        if self.cost < limit:
            return False, self.value, self.cost
        return True, self.cost, self.value


def _keep(best: Candidate, found: Found, limit: float) -> Candidate:
    """Return what a search has found if it is better than the best so far, else that."""
    value, cost = (float(found.outcome[k]) for k in (S.OUTCOME_VALUE, S.OUTCOME_COST))
    own = Candidate(value, cost, tuple(int(x) for x in found.actions if x >= 0))
    return min(best, own, key=lambda x: x.order(limit))


def _search_orders(instance: Instance, goal: Goal, effort: float, seed: Whole) -> Candidate:
    """Return the best order that annealing finds: who takes which task, and after which."""
    problem = build_problem([instance], goal=goal)
    orders, found = allocate_orders(problem), allocate_found(instance.n_tasks)
    size = instance.n_tasks * len(instance.layout.vehicles) / 40
    steps = max(200, int(effort * ORDER_STEPS / max(1.0, size)))
    best = Candidate()
    for chain in range(ORDER_CHAINS):
        key = make_key(seed, SEARCH, number_hash(instance.content_hash), chain)
        anneal_orders(problem, 0, key, steps, goal.cost_limit, orders, found)
        best = _keep(best, found, goal.cost_limit)
    return best


def _search(instance: Instance, goal: Goal, effort: float, seed: Whole) -> Candidate:
    """Return the best that any of the searches finds."""
    problem = build_problem([instance], goal=goal)
    n_breakdowns = sum(len(vehicle.breakdowns) for vehicle in instance.layout.vehicles)
    # Each task is assigned once, and once more after a breakdown on its way.
    n_levels = instance.n_tasks + n_breakdowns
    size, limit = measure_size(instance), goal.cost_limit
    best, found = Candidate(), allocate_found(n_levels)

    has_makespan = "makespan" in read_objective(goal.objective)
    # A partial schedule shows its delays; what another cost will be is not known.
    is_delay = goal.cost == "tardiness" and not goal.class_weights
    beam = allocate_beam(problem, max(8, int(effort * BEAM_WIDTH / size)), n_levels)
    for approach, delay_weight in BEAMS if has_makespan else DELAY_BEAMS:
        guide = Guide(approach, delay_weight, limit if is_delay else math.inf)
        search_beam(problem, beam, 0, guide, limit, found)
        best = _keep(best, found, limit)
    del beam
    state = S.allocate_state(problem, 1)
    content = number_hash(instance.content_hash)
    steps = max(200, int(effort * ANNEALING_STEPS / size))
    styles = STYLES if has_makespan else DELAY_STYLES
    for chain in range(ANNEALING_CHAINS):
        key = make_key(seed, SEARCH, content, chain)
        k = chain % len(styles)
        style = Style(*styles[k], goal.scale, goal.cost_scale)
        begin = () if has_makespan or k == 0 else best.actions
        start = np.array(begin, np.int64)
        anneal_actions(problem, state, 0, key, style, steps, limit, start, found)
        best = _keep(best, found, limit)
    return best


def _play_policies(instance: Instance, goal: Goal, seed: Whole, best: Candidate) -> Candidate:
    """Return the best schedule of rules, baselines and lookaheads without futures, or `best`.

    Trials are those of `evaluate_policy`; a lookahead plays one of each base.
    """
    names = (*TASK_RULES, *BASELINES)
    players: list[tuple[BasePolicy | str, int]] = [(name, PLAYED_TRIALS) for name in names]
    players += [(Lookahead(name, futures=0, objective=goal), 1) for name in names]
    limit = goal.cost_limit
    for player, trials in players:
        played = play_policy(player, instance, Playing(trials, seed, None, goal, threads=1))
        # What did not finish is no better than nothing.
        values, costs = (
            np.nan_to_num(x[0], nan=math.inf).tolist() for x in (played.value, played.cost)
        )
        scores = [Candidate(*pair).order(limit) for pair in zip(values, costs, strict=True)]
        if min(scores) < best.order(limit):
            trial = scores.index(min(scores))
            trace = trace_policy(player, instance, trial=trial, seed=seed, objective=goal)
            first, n = find_pairs(instance), instance.n_tasks
            actions = tuple(first + x.vehicle * n + x.task for x in trace.decisions)
            again = replay_actions(instance, actions, goal)
            own = Candidate(float(again.value[0]), float(again.cost[0]), actions)
            best = min(best, own, key=lambda x: x.order(limit))
    return best


def find_hindsight(
    instance: Instance, goal: Goal = PAPER, *, effort: float = 1.0, seed: Whole = 0
) -> Reference | None:
    """Search the best action sequence of an instance with a cost below the limit.

    Where none is found below the limit, it is that of the least cost, `within` false; None only where no
    sequence finishes. Beams over partial schedules come first, then annealing of whole sequences; of an
    instance that is not plain, annealing of orders. Rules, baselines and lookaheads over them without
    futures compete in the trials of `evaluate_policy` with this seed, so that none is better. The same
    arguments give the same sequence. `effort` is a factor on the work: 1 takes about seven seconds of a core
    for a DMH record, and beyond 40 tasks longer as these are more.
    """
    goal.refuse_own("hindsight")
    check_future(instance)
    own = find_effort(instance, effort)
    if instance.is_plain:
        best = _search(instance, goal, own, seed)
    else:
        best = _search_orders(instance, goal, own, seed)
    best = _play_policies(instance, goal, seed, best)
    if not best.actions:
        return None
    found = make_reference(instance, best.actions, goal)
    read = found.value, found.cost
    if not np.allclose(read, best[:2], rtol=1e-9, atol=1e-9):
        raise InputError(f"{instance.name}: the replay gives {read}, not {best[:2]}")
    return found


def make_reference(instance: Instance, actions: tuple[int, ...], goal: Goal) -> Reference:
    """Return the reference of an action sequence, which is played."""
    played = replay_actions(instance, actions, goal)
    value, cost = float(played.value[0]), float(played.cost[0])
    makespan, tardiness = float(played.makespan[0]), float(played.tardiness[0])
    own = instance.name, instance.content_hash, goal
    return Reference(*own, makespan, tardiness, value, cost, actions)


def find_references(
    instances: Sequence[Instance],
    goal: Goal = PAPER,
    *,
    effort: float = 1.0,
    seed: Whole = 0,
    threads: int | None = None,
    callback: Callable[[Instance, Reference | None], object] | None = None,
    executor: Executor | Team | None = None,
) -> list[Reference | None]:
    """Search references of several instances as `find_hindsight`, one per core or worker at a time.

    `callback` is called with each instance and its reference, as they are found. The workers of `executor`
    search, by default threads; no result depends on it.
    """
    goal.refuse_own("hindsight")
    search = partial(find_hindsight, goal=goal, effort=effort, seed=seed)
    found: list[Reference | None] = [None] * len(instances)
    with lead(executor, threads or count_cores()) as team:
        for k, reference in team.run(search, instances):
            found[k] = reference
            if callback is not None:
                callback(instances[k], reference)
    return found
