"""Populations and policies played in the simulator, on threads.

Kernels release the GIL, so plain threads share the work; a worker owns its arrays, and every draw is
keyed, so neither threads nor tiles change a result.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from acerl_np.kernels.deciders import Decider, make_plan_decider, play_episodes
from acerl_np.kernels.futures import Ahead
from acerl_np.kernels.lookahead import play_ahead
from acerl_np.kernels.network import Network
from acerl_np.kernels.random import EVALUATION, derive_key
from acerl_np.kernels.rollout import (
    Workspace,
    allocate_workspace,
    play_population,
)
from acerl_np.kernels.state import (
    Episodes,
    Outcome,
    Problem,
    State,
    allocate_outcome,
    allocate_state,
)
from acerl_np.kernels.update import Noise
from acerl_np.problem.instance import Instance
from acerl_np.support.numbers import Whole
from acerl_np.support.workers import Workers

TILE = 4
"""Members that a worker plays side by side; their weights fit a core's second-level cache."""

LIST_TILE = 16
"""Episodes of a list that a worker takes at least."""


MAX_PIECE = 64
"""Most tiles of one call: a call cannot be interrupted."""

MAX_TASKS = 8192
"""About the most tasks of the episodes of one call, for the same reason."""

AHEAD_DECISIONS = 8
"""Most decisions with lookahead of one call."""


def deal_episodes(n: int, tile: int, threads: int, most: int = MAX_PIECE) -> list[tuple[int, int]]:
    """Cut n episodes into pieces (first, last + 1) of whole tiles for the workers to take in turn.

    Large pieces come first, since a call costs tens of microseconds, and single tiles last, so that
    the workers end at about the same time. No piece has more than `most` tiles.
    """
    pieces = []
    first = 0
    while first < n:
        tiles = (n - first) // (2 * threads * tile)
        last = min(n, first + tile * min(max(1, tiles), most))
        pieces.append((first, last))
        first = last
    return pieces


def limit_tiles(problem: Problem, tile: int) -> int:
    """Return how many tiles of episodes one call may play."""
    n_tasks: int = problem.record.shape[1]
    return max(1, min(MAX_PIECE, MAX_TASKS // (tile * max(1, n_tasks))))


def stream_keys(
    instances: Sequence[Instance], trials: int, seed: Whole, *, purpose: np.int64 = EVALUATION
) -> np.ndarray:
    """Return the key of each trial's streams, uint32 (n_instances * trials, 4).

    They draw actions and random breakdowns, so all policies meet the same breakdowns. Keyed by (seed,
    content of the instance, trial), so an episode does not depend on what else is played, nor in
    which order.

    Parameters
    ----------
    instances : sequence of Instance
    trials, seed : int
    purpose : int
        A constant of `kernels.random`; trials of another purpose draw other numbers.
    """
    keys = np.empty((len(instances), trials, 4), np.uint32)
    for i, instance in enumerate(instances):
        content = int.from_bytes(bytes.fromhex(instance.content_hash[:16]), signed=True)
        for trial in range(trials):
            derive_key(seed, purpose, content, trial, keys[i, trial])
    return keys.reshape(-1, 4)


class Arena:
    """Where the members of a population, networks of one shape, play the instances of one problem.

    Parameters
    ----------
    problem : Problem
    network : Network
    workers : Workers
    tile : int, optional
        Episodes that a worker plays side by side; no result depends on it.
    """

    def __init__(
        self,
        problem: Problem,
        network: Network,
        workers: Workers,
        *,
        tile: int | None = None,
    ) -> None:
        self.problem = problem
        self.network = network
        self.workers = workers
        self.tile = tile or TILE
        self._spaces = self._allocate_spaces()

    def _allocate_spaces(self) -> queue.SimpleQueue[tuple[State, Workspace]]:
        spaces: queue.SimpleQueue[tuple[State, Workspace]] = queue.SimpleQueue()
        for _ in range(self.workers.threads):
            spaces.put(
                (
                    allocate_state(self.problem, self.tile),
                    allocate_workspace(self.network, self.tile, self.tile),
                )
            )
        return spaces

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what the workers write in: nothing of it outlasts a generation."""
        return {name: value for name, value in vars(self).items() if name != "_spaces"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._spaces = self._allocate_spaces()

    def play_population(
        self,
        theta: np.ndarray,
        noise_std: float,
        noise: Noise,
        instances: np.ndarray,
        *,
        problem: Problem | None = None,
        members: tuple[int, int] | None = None,
    ) -> Outcome:
        """Let every member of a generation play K episodes (Algorithm 1, lines 6, 8 and 10; there K = 1).

        Parameters
        ----------
        theta : ndarray(float32, (n_parameters,))
        noise_std : float
            sigma, above 0.
        noise : Noise
            The generation's.
        instances : ndarray(int64, (population, K))
            Rows of `problem` that each member plays.
        problem : Problem, optional
            Other records of the same sizes; by default those of the arena.
        members : tuple of int, (first, last + 1), optional
            Members to play; by default all.

        Returns
        -------
        Outcome
            K entries of each of them, member by member.
        """
        first, last = (0, len(instances)) if members is None else members
        each = instances.shape[1]
        records = self.problem if problem is None else problem

        def play(state: State, work: Workspace, piece: tuple[int, int], outcome: Outcome) -> None:
            play_population(
                records,
                state,
                work,
                theta,
                noise_std,
                noise,
                instances,
                (first + piece[0], first + piece[1]),
                outcome,
            )

        whole = self._play(last - first, play, instances.size)
        return Outcome(*(entries[first * each : last * each] for entries in whole))

    def _play(self, n: int, play: Callable[..., None], n_entries: int | None = None) -> Outcome:
        outcome = allocate_outcome(n if n_entries is None else n_entries)

        def play_piece(piece: tuple[int, int]) -> None:
            state, work = self._spaces.get()
            try:
                play(state, work, piece, outcome)
            finally:
                self._spaces.put((state, work))

        each = max(1, len(outcome.makespan) // n)
        most = max(1, limit_tiles(self.problem, self.tile) // each)
        self.workers.run(play_piece, deal_episodes(n, self.tile, self.workers.threads, most))
        return outcome


def play_list(
    problem: Problem,
    prepare: Callable[[], Decider | Ahead],
    instances: np.ndarray,
    keys: np.ndarray,
    workers: Workers,
    *,
    rows: np.ndarray | None = None,
) -> Outcome:
    """Play every episode of a list by a decider.

    Parameters
    ----------
    problem : Problem
    prepare : callable
        Returns the decider or the lookahead, with scratch of its own for each worker.
    instances : ndarray(int64, (n_episodes,))
    keys : ndarray(uint32, (n_episodes, 4))
        Streams of the draws, random breakdowns included.
    workers : Workers
    rows : ndarray(int64, (n_episodes,)), optional
        Which of the decider's functions plays each episode; by default the first.

    Returns
    -------
    Outcome
    """
    n = len(instances)
    if rows is None:
        rows = np.zeros(n, np.int64)
    episodes, outcome = Episodes(instances, keys, rows), allocate_outcome(n)
    if n == 0:
        return outcome
    spaces: queue.SimpleQueue[tuple[State, Decider | Ahead]] = queue.SimpleQueue()
    for _ in range(min(workers.threads, n)):
        spaces.put((allocate_state(problem, 1), prepare()))

    def play_piece(piece: tuple[int, int]) -> None:
        state, decider = spaces.get()
        try:
            if isinstance(decider, Ahead):
                played = decider.n_futures * max(1, problem.record.shape[1])
                n_decisions = max(1, min(AHEAD_DECISIONS, MAX_TASKS // played))
                for episode in range(*piece):
                    begins = True
                    own = problem, state, decider, episodes, episode
                    while play_ahead(*own, begins, n_decisions, outcome):
                        if workers.failed:
                            return
                        begins = False
            else:
                play_episodes(problem, state, decider, episodes, piece, outcome)
        finally:
            spaces.put((state, decider))

    state, decider = spaces.get()
    spaces.put((state, decider))
    tile = 1 if isinstance(decider, Ahead) else LIST_TILE
    most = 1 if isinstance(decider, Ahead) else limit_tiles(problem, tile)
    workers.run(play_piece, deal_episodes(n, tile, workers.threads, most))
    return outcome


def play_by_plan(
    problem: Problem,
    instances: np.ndarray,
    orders: np.ndarray,
    rules: np.ndarray,
    keys: np.ndarray,
    workers: Workers,
) -> Outcome:
    """Play every episode of a list by its own static plan.

    Parameters
    ----------
    problem : Problem
    instances : ndarray(int64, (n_episodes,))
    orders, rules : ndarray(int32, (n_episodes, n_vehicles))
        As `kernels.deciders.Decider`.
    keys : ndarray(uint32, (n_episodes, 4))
        Streams of the random breakdowns.
    workers : Workers

    Returns
    -------
    Outcome
    """
    return play_list(
        problem,
        lambda: make_plan_decider(orders, rules),
        instances,
        keys,
        workers,
        rows=np.arange(len(instances)),
    )
