"""What is to be expected of the tasks that a dispatcher knows: deliveries, and chances to be late."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.random import LOOKAHEAD, derive_key
from acerl_np.kernels.rollout.forecast import begin_forecast, play_forecast
from acerl_np.kernels.rollout.futures import Ahead
from acerl_np.kernels.rollout.live import count_from
from acerl_np.live.board import Board
from acerl_np.live.decision import show_day
from acerl_np.live.events import Forecast
from acerl_np.live.parts import CUT_OFF, FIRST_ROOM, SERVING, LiveTask
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.support.errors import PolicyError


def find_player(
    policy: BasePolicy | str, layout: Layout, history: Sequence[Instance] | None
) -> Lookahead:
    """Return whose base plays the futures, and by which history, of which there may be none.

    That of a lookahead is its own; of another policy it is the records that it was trained on, if they are
    of this floor. A PolicyError says that the policy is in plain Python.
    """
    own = history is None
    if isinstance(policy, Lookahead):
        if own:
            return policy
        policy = policy.policy
    if own:
        origin = getattr(policy, "origin", None)
        history = None if origin is None else origin.history
    player = Lookahead(policy, history=history, futures=1 if history else 0)  # type: ignore[arg-type]
    try:
        player.check_layout(layout, "forecast")
    except PolicyError:
        if not own or not history:
            raise
        player = Lookahead(policy, futures=0)  # type: ignore[arg-type]
    return player


class Forecaster:
    """Plays futures of a board with tables of its own; the board stays as it is."""

    def __init__(self, player: Lookahead, seed: int) -> None:
        self.player, self.seed = player, seed
        self._made_for: tuple[Layout, int] | None = None
        self._ahead: Ahead | None = None

    def _prepare(self, board: Board, n_planned: int) -> Ahead:
        """Return tables with room for all tasks of the board."""
        room = board.room + FIRST_ROOM
        while room < board.room + n_planned:
            room *= 2
        made_for = board.layout, room
        if self._ahead is None or self._made_for != made_for:
            tables = board.problem
            shape = 1, room
            sized = tables._replace(
                record=np.zeros(shape, S.RECORD),
                ends=np.zeros(shape, S.ENDS),
                arrival_tick=np.zeros(shape, np.int64),
            )
            self._ahead = self.player.prepare(sized, [board.layout], True)[1]()
            self._made_for = made_for
        return self._ahead

    def look(
        self, board: Board, decisions: int, now: float, futures: int, budget: float | None
    ) -> list[Forecast]:
        """Return what is to be expected of all tasks of a board, after so many decisions."""
        started = time.perf_counter()
        working = [vehicle.task for vehicle in board.vehicles]
        names = [*board.pool, *filter(None, working)]
        tasks = shown = [*(board.tasks[name] for name in names), *_order_planned(board)]
        if board.calls_back:  # as futures have them then; what is held back may have no row
            tasks = sorted(shown, key=lambda own: own.row if own.row >= 0 else math.inf)
        n_known, n_records = len(shown), len(self.player.history)
        cut_off = [
            Forecast(own.event.task, None, math.inf, math.nan, own.due, 1.0, 1, n_records)
            for own in board.planned.values()
            if own.row == CUT_OFF
        ]
        if not n_known:
            return cut_off
        problem, state = self._copy(board, now)
        record, ends = self._tell_planned(board, now)
        ahead = show_day(self._prepare(board, len(board.planned)), board, now)
        derive_key(self.seed, LOOKAHEAD, decisions, 1, ahead.key)
        latest = float(record["arrival"][-1]) if len(record) else 0.0
        begin_forecast(problem, state, 0, ahead, latest)
        # Without history, draws and random breakdowns all futures are one.
        n = futures if self.player.history or ahead.draws else 1
        finish, rows = np.empty((n, n_known)), np.zeros(n_known, np.int64)
        f, began = 0, time.perf_counter()
        while f < n:
            play_forecast(problem, state, 0, ahead, f, record, ends, rows, finish[f])
            f += 1
            moment = time.perf_counter()
            if budget is not None and moment + (moment - began) / f > started + budget:
                break
        told = {item.task: item for item in self._tell(board, now, tasks, finish[:f])}
        return [*(told[own.event.task] for own in shown), *cut_off]

    def _copy(self, board: Board, now: float) -> tuple[S.Problem, S.State]:
        """Return the board's tables with times counted from now."""
        problem, state = board.problem, board.state
        tables = ("record", "instance", "breakdown", "fleet")
        problem = problem._replace(**{name: getattr(problem, name).copy() for name in tables})
        rows = ("episode", "waiting_since", "vehicle", "plan")
        state = state._replace(**{name: getattr(state, name).copy() for name in rows})
        count_from(problem, state, board.clock, now, board.day.start, True)
        for v, vehicle in enumerate(board.vehicles):
            if vehicle.service != SERVING:  # nobody knows when it is back
                problem.fleet["capacity"][0, v] = -1.0
        return problem, state

    def _tell_planned(self, board: Board, now: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the tasks that are held back off the board, by their starts, s from now."""
        planned = [] if board.has_chains else _order_planned(board)
        record = np.zeros(len(planned), S.RECORD)
        ends = np.zeros(len(planned), S.ENDS)
        for k, task in enumerate(planned):
            board.fill_row(task, ends[k], record[k])
            arrival = max(0.0, task.arrival - now)
            record["arrival"][k] = arrival
            record["expiry"][k] = task.due - now - arrival
        return record, ends

    def _tell(
        self, board: Board, now: float, tasks: list[LiveTask], finish: np.ndarray
    ) -> list[Forecast]:
        """Return what came out of futures, ndarray(float64, (n, K)), s from now."""
        dues = np.array([task.due for task in tasks])
        # Deliveries are whole seconds from now; due times may be off by rounding.
        late = np.mean(now + finish > dues + 1e-9, axis=0)
        late = np.where(np.isnan(dues), np.nan, late).tolist()
        mean = (now + finish.mean(axis=0)).tolist()
        # Where a future has no delivery there is no mean to deviate from.
        is_known = np.isfinite(finish).all(axis=0)
        spread = np.where(is_known, np.where(is_known, finish, 0.0).std(axis=0), np.nan).tolist()
        told = zip(tasks, mean, spread, dues.tolist(), late, strict=True)
        how, found = (len(finish), len(self.player.history)), list[Forecast]()
        for task, delivery, off, due, share in told:
            v, taker, is_free = task.vehicle, None, False
            if v >= 0:
                taker, is_free = board.layout.vehicles[v].id, board.vehicles[v].alone
            name = task.event.task
            found.append(Forecast(name, taker, delivery, off, due, share, *how, is_free))
        return found


def _order_planned(board: Board) -> list[LiveTask]:
    """Return the tasks that are held back, by when they may begin, or as on the board."""
    planned = [own for own in board.planned.values() if own.row != CUT_OFF]
    return sorted(planned, key=lambda own: own.row if board.has_chains else own.arrival)
