"""How the dispatcher's policy, of any form, decides on a board."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.random import ACTION, derive_key
from acerl_np.kernels.dispatching import deciders
from acerl_np.kernels.dispatching.observation import allocate_view, write_view
from acerl_np.kernels.rollout import futures as F
from acerl_np.kernels.rollout import live as kernels
from acerl_np.kernels.rollout.lookahead import begin_lookahead, pick_candidate, rate_candidates
from acerl_np.live.board import Board
from acerl_np.live.events import Explanation, Option
from acerl_np.live.parts import FIRST_ROOM
from acerl_np.policies.agent import OwnPolicy
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.index import IndexPolicy, move_thresholds
from acerl_np.policies.lookahead import Lookahead, are_apart
from acerl_np.policies.network import Policy
from acerl_np.policies.reasons import explain_choice
from acerl_np.policies.rules import RULE_NAMES, RULE_NUMBERS, RulePolicy
from acerl_np.problem import choices, interface
from acerl_np.problem.layout import Layout
from acerl_np.problem.tables import build_live_problem
from acerl_np.simulation.scene import Scene
from acerl_np.support.errors import PolicyError
from acerl_np.support.sharing import Exclusive

FIRST_STEPS, TURN = 8, 1e-4
"""Decisions within futures before the first look at the clock, and s between two looks from there on."""


class Decision(NamedTuple):
    """What was decided: vehicle and position in the pool, or -1 twice; by which rule; futures seen."""

    vehicle: int
    position: int
    rule: str
    futures: int


NOTHING = Decision(-1, -1, "", 0)


class LiveRecord(NamedTuple):
    """What a scene says of the tasks that wait or are under way, by their numbers."""

    name: str
    layout: Layout
    tasks: dict[int, str]


class LiveScene(Scene):
    """A board as it stands at `now`, s: one episode, whose decision a policy in plain Python takes."""

    def __init__(
        self, board: Board, slots: interface.Slots, rules: tuple[str, ...], now: float
    ) -> None:
        self.problem, self.state = board.problem, board.state
        self._tables = self.problem
        tasks = {task.row: name for name, task in board.tasks.items()}
        self.pool = (LiveRecord("dispatcher", board.layout, tasks),)
        (self.slots, self.task_ids), self.rules = slots, rules
        self._places = (board.layout,)
        self._origin = now
        self._use = Exclusive("scene")
        n_vehicles = self.problem.fleet.shape[1]
        self._view = allocate_view(
            1, self.n_features, n_vehicles, interface.number_rules(self.rules)
        )
        write_view(self.problem, self.state, 0, self._view)


def show_day(ahead: F.Ahead, board: Board, now: float) -> F.Ahead:
    """Return a lookahead that knows the day so far of a board at `now`, s."""
    day, excluded = board.day, ahead.excluded
    if day.n_rows > 0:
        own, first = int(day.ends["pickup"][0]), ahead.history.ends["pickup"][:, 0]
        apart = are_apart(board.problem.distance[0], own, first)
        # Records of another part are no future; but a floor has to go on where all are.
        excluded = excluded if apart.all() else apart[np.newaxis]
    ahead.past[F.PAST_SEEN] = day.n_rows
    ahead.past[F.PAST_CLOCK] = now - day.start
    ahead.past[F.PAST_DELAY] = day.delay
    # What machines still do is shown as tasks, too.
    ahead.past[F.PAST_TASKS] = day.delivered - board.state.episode["n_processed"][0]
    return ahead._replace(seen_ends=day.ends, seen_record=day.record, excluded=excluded)


class LiveDecider:
    """A policy of any form that decides on boards, as the arguments of `Dispatcher` say.

    Attributes
    ----------
    hides_out : bool
        Whether vehicles that are out of service may carry nothing as kernels see it; else they are broken.
    ranks : bool
        Whether priorities count though those of the tasks at hand are alike: others may come in a future.
    task_slots : dict of int or None
        Own slots of the day's tasks, from 1; None: a task's slot is its place in the pool.
    rules : tuple of str
        Those that a network's or an agent's actions name, else the paper's.

    Raises
    ------
    PolicyError
        If a network knows tasks by their ids and there are none.
    """

    def __init__(
        self,
        policy: BasePolicy | str,
        *,
        greedy: bool = True,
        seed: int = 0,
        budget: float | None = None,
        task_ids: Sequence[str] | None = None,
        explains: bool = False,
        parks: bool = True,
        charges: bool = True,
    ) -> None:
        self.policy = policy
        self.greedy = greedy
        self.budget = budget
        self.explains = explains
        self._errands = charges, parks
        base = self._base = policy.policy if isinstance(policy, Lookahead) else policy
        self._is_relative = isinstance(policy, IndexPolicy | Lookahead | OwnPolicy)
        self._key = np.empty(4, np.uint32)
        derive_key(seed, ACTION, 0, 0, self._key)
        self._prepared_for: S.Problem | None = None
        self._decider: Any = None
        self._moment = 0
        self._shown = base if isinstance(base, Policy | OwnPolicy) else None
        self.rules = choices.PAPER_RULES if self._shown is None else self._shown.rules
        history = policy.history if isinstance(policy, Lookahead) else ()
        # A network sees each of its vehicles, and so does a policy in plain Python.
        self.hides_out = self._is_relative and self._shown is None
        self.ranks = any(record.priority.any() for record in history)
        self.task_slots = self._give_slots(task_ids)

    def check_layout(self, layout: Layout, name: str) -> None:
        """Refuse a floor and fleet that the policy cannot serve; rules serve any."""
        if not isinstance(self.policy, str):
            self.policy.check_layout(layout, name)

    def _give_slots(self, task_ids: Sequence[str] | None) -> dict[str, int] | None:
        """Return slots of the day's tasks, from 1, for a policy that knows tasks by their ids."""
        if self._shown is None or self._shown.slots == "pool":
            return None
        if task_ids is None:
            raise PolicyError(
                "dispatcher: this policy knows tasks by their ids (slots 'task'); expected task_ids=, those "
                "of the day's tasks, or a policy with slots 'pool' or of form index"
            )
        ids = [str(task) for task in task_ids]
        slots = interface.assign_slots(ids, self._shown.task_ids)
        return dict(zip(ids, slots.tolist(), strict=True))

    def build_problem(self, layout: Layout) -> S.Problem:
        """Return empty tables for this policy's boards of a layout."""
        own, scaling = self._shown, np.ones(S.N_SCALING_FIELDS)
        if own is None:
            chained = bool(layout.machines)
            problem = build_live_problem(layout, FIRST_ROOM, scaling=scaling, chained=chained)
            if isinstance(self._base, IndexPolicy):
                problem = move_thresholds(problem, self._base.theta, self._base.features)
            return problem
        known = interface.scaling_of(layout) if own.scaling is None else own.scaling
        return build_live_problem(
            layout,
            FIRST_ROOM,
            scaling=scaling if known is None else known,
            task_slots=own.task_slots,
            n_vehicles=own.n_vehicles,
        )

    def tell(self, board: Board, now: float) -> None:
        """Count a board's times from now, as an observation reads them."""
        kernels.count_from(*self._clock(board, now))

    def _clock(self, board: Board, now: float) -> tuple[Any, ...]:
        """Return what kernels take to count a board's times from now."""
        start = board.day.start
        return *board.tables, now, start, self._is_relative

    def is_opened(self, board: Board, now: float, asked: float) -> bool:
        """Whether since `asked`, s, a level or the end of a way has made an assignment possible."""
        return bool(kernels.is_opened(*self._clock(board, now), asked))

    def find_auxiliary_move(self, board: Board, now: float, first: int) -> tuple[int, int, int]:
        """Return who shall charge or park, as `kernels.live.find_auxiliary_move`."""
        v, status, site = kernels.find_auxiliary_move(
            *self._clock(board, now), first, *self._errands
        )
        return int(v), int(status), int(site)

    def show(self, board: Board, now: float) -> LiveScene:
        """Return what a network or a policy in plain Python sees of a board; else what rules would."""
        self.tell(board, now)
        own = self._shown
        slots = interface.POOL if own is None else interface.Slots(own.slots, own.task_ids)
        return LiveScene(board, slots, self.rules, now)

    def decide(self, board: Board, decisions: int, now: float, goes_on: bool = False) -> Decision:
        """Return the next decision, after so many others, at `now`, s.

        `goes_on`: since the last one nothing has happened but that it was carried out.
        """
        if isinstance(self.policy, OwnPolicy):
            return self._ask(self.policy, board, now)
        if self._prepared_for is not board.problem:
            self._prepared_for = board.problem
            player = RulePolicy(self.policy) if isinstance(self.policy, str) else self.policy
            self._decider = player.prepare(board.problem, [board.layout], self.greedy)[1]()
        if isinstance(self._decider, F.Ahead):
            self.tell(board, now)
            return self._look_ahead(self._decider, board, decisions, now)
        if not goes_on:
            self._moment += 1
            for moment in deciders.list_moments(self._decider):
                moment[0] = self._moment
        clock = self._clock(board, now)
        v, position, rule = kernels.decide_live(*clock, self._decider, self._key, decisions)
        own = getattr(self.policy, "name", "index")
        return Decision(v, position, RULE_NAMES.get(rule, own), 0)

    def _ask(self, policy: OwnPolicy, board: Board, now: float) -> Decision:
        scene = self.show(board, now)
        if not scene.action_mask.any():
            return NOTHING
        vehicles, tasks = policy.choose(scene)
        scene.check_possible(np.zeros(1, np.int64), vehicles, tasks)
        if vehicles[0] < 0:  # it waits
            return NOTHING
        position = int(board.state.pool[0, : len(board.pool)].tolist().index(tasks[0]))
        return Decision(int(vehicles[0]), position, policy.form, 0)

    def explain(self, board: Board, found: Decision, now: float) -> Explanation | None:
        """Return why the last decision, at `now`, was taken, if that is wanted.

        Call it before it is carried out.
        """
        if not self.explains:
            return None
        if isinstance(self.policy, OwnPolicy):
            return Explanation(self.policy.form, "", ())
        chosen = found.vehicle, found.position, RULE_NUMBERS.get(found.rule, -1)
        reason = explain_choice(self._decider, board.problem, board.state, 0, chosen)
        names = {task.row: name for name, task in board.tasks.items()}
        vehicles = board.layout.vehicles
        options = tuple(
            Option(vehicles[item.vehicle].id, names[item.task], item.rule, item.value)
            for item in reason.alternatives
        )
        parts = tuple(part.describe() for part in reason.parts)
        outlook = ""
        if reason.outlooks:
            own, its = reason.outlooks
            other = f"{vehicles[its.vehicle].id} {names[its.task]}"
            outlook = (
                f"then {own.what} done by {now + own.end:.0f} s, {own.late:.0f} s late in all; with {other}: "
                f"{now + its.end:.0f} s, {its.late:.0f} s late"
            )
        return Explanation(reason.by, reason.measure, options, parts, outlook)

    def _look_ahead(self, ahead: F.Ahead, board: Board, decisions: int, now: float) -> Decision:
        """Look ahead until all futures are seen or the time is up."""
        started = time.perf_counter()
        ahead = show_day(ahead, board, now)
        problem, state = board.problem, board.state
        found = begin_lookahead(problem, state, 0, ahead, self._key, decisions)
        if found < 2:  # one candidate is taken without a look at any future
            ahead.progress[F.PROGRESS_FUTURE] = ahead.n_futures
        ends = math.inf if self.budget is None else started + self.budget
        # Nothing is passed over where there is nothing to decide: a dispatcher's first question, which has no
        # task, is to compile or load all that a later one needs.
        steps, began = FIRST_STEPS, time.perf_counter()
        while not rate_candidates(problem, state, 0, ahead, steps):
            moment = time.perf_counter()
            if moment >= ends:
                break
            # As many as fit the turn, by the last ones' time.
            fitting = int(steps * min(TURN, ends - moment) / max(1e-9, moment - began))
            steps, began = max(1, min(fitting, 4 * steps)), moment
        _, _, v, position = pick_candidate(ahead)
        seen = int(ahead.progress[F.PROGRESS_FUTURE]) if found > 1 else 0
        return Decision(int(v), int(position), "lookahead", seen) if found > 0 else NOTHING
