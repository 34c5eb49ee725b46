"""Populations and policies played in the simulator, on threads.

Kernels release the GIL, so plain threads share the work; a worker owns its arrays, and every draw is
keyed, so neither threads nor tiles change a result.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.random import ACTION, EVALUATION
from acerl_np.kernels.dispatching import deciders as D
from acerl_np.kernels.dispatching.rules import PAPER_RULES
from acerl_np.kernels.learning.update import Noise
from acerl_np.kernels.networks.network import Network
from acerl_np.kernels.rollout.episodes import play_episodes
from acerl_np.kernels.rollout.futures import Ahead
from acerl_np.problem.instance import Instance, number_hash
from acerl_np.support.fields import Whole
from acerl_np.support.workers import Workers

TILE = 4
"""Networks' episodes that a worker plays side by side; their weights fit a core's second-level cache."""

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


def stream_keys(
    instances: Sequence[Instance], trials: int, seed: Whole, *, purpose: np.int64 = EVALUATION
) -> np.ndarray:
    """Return the key of each trial's streams, uint32 (n_instances * trials, 4).

    They draw actions and random breakdowns, so all policies meet the same breakdowns. Keyed by (seed,
    content of the instance, trial), so an episode does not depend on what else is played, nor in
    which order. Trials of another `purpose`, a constant of `kernels.random`, draw other numbers.
    """
    keys = np.empty((len(instances), trials, 4), np.uint32)
    for i, instance in enumerate(instances):
        content = number_hash(instance.content_hash)
        D.derive_keys(seed, purpose, content, 0, keys[i])
    return keys.reshape(-1, 4)


def play_list(
    problem: S.Problem,
    prepare: Callable[[], D.Decider | Ahead],
    instances: np.ndarray,
    keys: np.ndarray,
    workers: Workers,
    *,
    rows: np.ndarray | None = None,
    tile: int | None = None,
    unit: int = LIST_TILE,
) -> S.Outcome:
    """Play every episode of a list by what `prepare` returns, a decider or a lookahead for each worker.

    `instances` are rows of `problem`, and `keys` the streams of the draws, random breakdowns included; `rows`
    say which of the decider's functions plays each episode, by default the first. `tile` episodes are played
    side by side, and a worker takes at least `unit`; no result depends on either.
    """
    n = len(instances)
    outcome = S.allocate_outcome(n)
    if n == 0:
        return outcome
    episodes = S.Episodes(instances, keys, np.zeros(n, np.int64) if rows is None else rows)
    deciders = [prepare() for _ in range(min(workers.threads, n))]
    kind = deciders[0]
    n_tasks = max(1, problem.record.shape[1])
    most, n_rounds = max(1, min(MAX_PIECE, MAX_TASKS // (unit * n_tasks))), int(S.NEVER)
    if isinstance(kind, Ahead):
        tile = unit = most = 1
        n_rounds = max(1, min(AHEAD_DECISIONS, MAX_TASKS // (kind.n_futures * n_tasks)))
    elif tile is None:
        tile = TILE if isinstance(kind, D.NetworkDecider | D.AgentsDecider) else 1
    spaces: queue.SimpleQueue[tuple[S.State, D.Decider | Ahead]] = queue.SimpleQueue()
    for decider in deciders:
        spaces.put((S.allocate_state(problem, tile), decider))

    def play_piece(piece: tuple[int, int]) -> None:
        space = spaces.get()
        first, last = piece
        begins = True
        try:
            while first < last and (begins or not workers.failed):
                rest = (first, last)
                first = play_episodes(problem, *space, episodes, rest, begins, n_rounds, outcome)
                begins = False
        finally:
            spaces.put(space)

    workers.run(play_piece, deal_episodes(n, unit, workers.threads, most))
    return outcome


def play_members(
    problem: S.Problem,
    network: Network,
    theta: np.ndarray,
    noise_std: float,
    noise: Noise,
    instances: np.ndarray,
    workers: Workers,
    *,
    members: tuple[int, int] | None = None,
    tile: int | None = None,
    rules: np.ndarray = PAPER_RULES,
    rank: int = 0,
) -> S.Outcome:
    """Let members, by default all, play K episodes each (Algorithm 1, lines 6, 8 and 10; there K = 1).

    Member m uses theta + sigma eps_m. Its actions in its episode k, and the random breakdowns that it
    meets, are keyed by (seed, generation, m K + k). The outcome has K entries of each, member by member.
    With a `rank` above 0 eps_m is of low rank, and members share theta.
    """
    first, last = (0, len(instances)) if members is None else members
    each, tile = instances.shape[1], tile or TILE
    keys = np.empty(((last - first) * each, 4), np.uint32)
    D.derive_keys(noise.seed, ACTION, noise.generation, first * each, keys)

    def prepare() -> D.NetworkDecider:
        room = D.allocate_members(network, tile, rules, theta, rank)
        return room._replace(noise_std=float(noise_std), noise=noise)

    return play_list(
        problem,
        prepare,
        instances[first:last].ravel(),
        keys,
        workers,
        rows=np.repeat(np.arange(first, last), each),
        tile=tile,
        unit=tile * each,
    )
