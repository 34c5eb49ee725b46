"""Episodes played, and decisions taken row by row, by whoever decides: a decider or a lookahead."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching import deciders
from acerl_np.kernels.episode import events
from acerl_np.kernels.motion import commitment
from acerl_np.kernels.rollout import futures, lookahead
from acerl_np.support.compiled import choose_by_type, kernel

PLAYERS = {**deciders.KINDS, futures.Ahead: lookahead.decide_ahead}
"""What decides for each type of decider, and for a lookahead."""


def choose(problem, state, b, decider, row, key, decision):
    """Decide as `deciders.decide`, or look ahead."""
    return PLAYERS[type(decider)](problem, state, b, decider, row, key, decision)


def _find(problem, state, b, decider, row, key, decision):
    return deciders.find_kind(decider, PLAYERS)


choose_by_type(choose, _find)


@kernel
def play_episodes(problem, state, decider, episodes, piece, begins, n_rounds, outcome):
    """Play a piece of a list of episodes, as many side by side as `state` has rows.

    A call cannot be interrupted, so it may end before the episodes do.

    Parameters
    ----------
    episodes : Episodes
    piece : tuple of int, (first, last + 1), the episodes to play
    begins : bool, whether the first of them begin, or those in `state` go on
    n_rounds : int, most decisions in each row of `state`
    outcome : Outcome, output: the entries of the episodes that are over

    Returns
    -------
    int
        Where to go on: the first episode that is not over.
    """
    first, last = piece
    while first < last:
        n_tile = min(len(state.episode), last - first)
        for b in range(n_tile if begins else 0):
            for word in range(4):
                state.breakdown_key[b, word] = episodes.keys[first + b, word]
            events.open_episode(problem, state, b, episodes.instances[first + b])
        begins = True
        running = True
        while running:
            if n_rounds == 0:
                return first
            n_rounds -= 1
            running = False
            for b in range(n_tile):
                if state.episode[b].phase != S.RUNNING:
                    continue
                events.advance_events(problem, state, b)
                if state.episode[b].phase != S.RUNNING:
                    continue
                row, key = episodes.rows[first + b], state.breakdown_key[b]
                decision = state.episode[b].n_decisions
                v, position, _ = choose(problem, state, b, decider, row, key, decision)
                commitment.take_decision(problem, state, b, v, position)
                running = True
        for b in range(n_tile):
            S.write_outcome(state, b, outcome, first + b)
        first += n_tile
    return first


@kernel
def decide_rows(problem, state, decider, keys, chosen):
    """Decide in every row of `state` that runs, and change nothing.

    Parameters
    ----------
    decider : Decider or Ahead, its first function decides
    keys : ndarray(uint32, (B, 4)), streams of the draws
    chosen : ndarray(int64, (B, 3))
        Output: vehicle, position of its task in the pool, rule; -1 in rows that are over.
    """
    row = np.int64(0)
    for b in range(len(state.episode)):
        for k in range(3):
            chosen[b, k] = -1
        if state.episode[b].phase == S.RUNNING:
            decision = state.episode[b].n_decisions
            chosen[b, 0], chosen[b, 1], chosen[b, 2] = choose(
                problem, state, b, decider, row, keys[b], decision
            )
