"""A population of policies in lockstep: perturb, then observe, decide and advance until all are done.

A worker takes a tile of members whose weights fit its cache and plays their episodes side by side.
No result depends on the tile or on the worker, because every draw is keyed by its member.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.events import advance_events, assign_task, start_episode
from acerl_np.kernels.network import (
    Network,
    choose_greedy,
    choose_sampled,
    count_parameters,
    forward,
    sum_columns,
)
from acerl_np.kernels.observation import list_actions, list_features
from acerl_np.kernels.random import ACTION, LANES, derive_key, draw_uniform
from acerl_np.kernels.rules import N_RULES, select_task
from acerl_np.kernels.state import (
    EPISODE_N_DECISIONS,
    EPISODE_PHASE,
    OUTCOME_MAKESPAN,
    OUTCOME_TARDINESS,
    RUNNING,
)
from acerl_np.kernels.update import perturb_member
from acerl_np.support.compiled import inner_kernel, kernel


class Workspace(NamedTuple):
    """A worker's own arrays, allocated once; a tile of T episodes, N networks.

    Attributes
    ----------
    theta : ndarray(float32, (N, at least n_parameters)), the members' parameters
    column_sums : ndarray(float32, (N, at least n_first)), see `network.sum_columns`
    keys : ndarray(uint32, (T, 4)), keys of the members' action streams
    noise_key : ndarray(uint32, (4,))
    bits : ndarray(uint32, (4, LANES)); noise : ndarray(float32, (4, LANES))
    feature : ndarray(int32, (n_features + 1,)); value : ndarray(float32, (n_features + 1,))
    hidden : ndarray(float32, (at least widest,))
    active_index : ndarray(int32, (widest + 1,)); active_value : ndarray(float32, (widest + 1,))
    logits : ndarray(float32, (n_actions,))
    legal : ndarray(int32, (n_actions,)); weight : ndarray(float64, (n_actions,))
    """

    theta: np.ndarray
    column_sums: np.ndarray
    keys: np.ndarray
    noise_key: np.ndarray
    bits: np.ndarray
    noise: np.ndarray
    feature: np.ndarray
    value: np.ndarray
    hidden: np.ndarray
    active_index: np.ndarray
    active_value: np.ndarray
    logits: np.ndarray
    legal: np.ndarray
    weight: np.ndarray


def allocate_rows(n_rows: int, n: int) -> np.ndarray:
    """Return float32 rows of at least `n` numbers that all begin at the start of a cache line.

    A vector load that straddles two lines costs two; the forward pass is a quarter slower then.
    """
    line = 64 // 4
    width = -(-n // line) * line
    memory = np.empty(n_rows * width + line, np.float32)
    first = -(memory.ctypes.data // 4) % line
    return memory[first : first + n_rows * width].reshape(n_rows, width)


def allocate_workspace(network: Network, tile: int, n_members: int) -> Workspace:
    """Return a `Workspace` for tiles of `tile` episodes.

    Parameters
    ----------
    network : Network
    tile : int
    n_members : int
        Networks that are held at a time: `tile`, or 1 if the episodes share one.
    """
    sizes = network.sizes
    n_parameters = count_parameters(sizes.tolist(), network.has_biases)
    n_features, n_actions, widest = int(sizes[0]), int(sizes[-1]), int(sizes.max())
    return Workspace(
        theta=allocate_rows(n_members, n_parameters),
        column_sums=allocate_rows(n_members, int(sizes[1])),
        keys=np.empty((tile, 4), np.uint32),
        noise_key=np.empty(4, np.uint32),
        bits=np.empty((4, LANES), np.uint32),
        noise=np.empty((4, LANES), np.float32),
        feature=np.empty(n_features + 1, np.int32),
        value=np.empty(n_features + 1, np.float32),
        hidden=allocate_rows(1, widest)[0],
        active_index=np.empty(widest + 1, np.int32),
        active_value=np.empty(widest + 1, np.float32),
        logits=np.empty(n_actions, np.float32),
        legal=np.empty(n_actions, np.int32),
        weight=np.empty(n_actions, np.float64),
    )


@inner_kernel
def apply_action(problem, state, b, action):
    """Carry out a legal action of episode b and advance it to its next decision."""
    v = action // N_RULES
    assign_task(problem, state, b, v, select_task(problem, state, b, v, action % N_RULES))
    advance_events(problem, state, b)


@inner_kernel
def choose_action(problem, state, b, network, work, row, greedy, key, decision):
    """Return the action that the network in `row` of the workspace takes in episode b.

    It is the most probable one, or drawn: draw (decision, 0) of the stream of `key`.
    """
    n = list_features(problem, state, b, work.feature, work.value)
    forward(
        network,
        work.theta[row],
        work.column_sums[row],
        work.feature,
        work.value,
        n,
        work.hidden,
        work.active_index,
        work.active_value,
        work.logits,
    )
    n_legal = list_actions(problem, state, b, work.legal)
    if greedy:
        return choose_greedy(work.logits, work.legal, n_legal)
    uniform = draw_uniform(key, decision, 0)
    return choose_sampled(work.logits, work.legal, n_legal, uniform, work.weight)


@kernel
def play_members(
    problem,
    state,
    network,
    work,
    theta,
    noise_std,
    seed,
    generation,
    antithetic,
    greedy,
    instances,
    keys,
    first,
    last,
    makespan,
    tardiness,
    decisions,
):
    """Play episodes first to last - 1, by perturbed policies or all by one (Algorithm 3).

    With noise, episode i is that of member i of a generation (Algorithm 1, lines 7 to 12): it uses
    theta + sigma eps_i, and its actions are keyed by (seed, generation, i). Without, all use theta,
    and those of episode i by `keys[i]`. Random breakdowns come from the streams of the actions.

    Parameters
    ----------
    problem : Problem
    state : State
        A row per episode of a tile.
    network : Network
    work : Workspace
        With noise it holds as many networks as `state` has rows.
    theta : ndarray(float32, (n_parameters,))
    noise_std : float
        sigma; 0 for no noise.
    seed, generation : int
    antithetic : bool
    greedy : bool
    instances : ndarray(int64, (n_episodes,))
    keys : ndarray(uint32, (n_episodes, 4))
        Streams of the draws; not read with noise.
    first, last : int
    makespan, tardiness : ndarray(float64, (n_episodes,))
        Output, s; nan for an episode that cannot end.
    decisions : ndarray(int64, (n_episodes,))
        Output.
    """
    tile = len(state.episode)
    shared = noise_std == 0.0
    if shared:
        for k in range(len(theta)):
            work.theta[0, k] = theta[k]
        sum_columns(network, theta, work.column_sums[0])
    episode = first
    while episode < last:
        n_tile = min(tile, last - episode)
        for row in range(n_tile):
            if shared:
                for word in range(4):
                    work.keys[row, word] = keys[episode + row, word]
            else:
                perturb_member(
                    theta,
                    noise_std,
                    seed,
                    generation,
                    episode + row,
                    antithetic,
                    work.noise_key,
                    work.bits,
                    work.noise,
                    work.theta[row],
                )
                sum_columns(network, work.theta[row], work.column_sums[row])
                derive_key(seed, ACTION, generation, episode + row, work.keys[row])
            for word in range(4):
                state.breakdown_key[row, word] = work.keys[row, word]
            start_episode(problem, state, row, instances[episode + row])
        running = True
        while running:
            running = False
            for b in range(n_tile):
                if state.episode[b, EPISODE_PHASE] == RUNNING:
                    action = choose_action(
                        problem,
                        state,
                        b,
                        network,
                        work,
                        0 if shared else b,
                        greedy,
                        work.keys[b],
                        state.episode[b, EPISODE_N_DECISIONS],
                    )
                    apply_action(problem, state, b, action)
                    running = True
        for row in range(n_tile):
            makespan[episode + row] = state.outcome[row, OUTCOME_MAKESPAN]
            tardiness[episode + row] = state.outcome[row, OUTCOME_TARDINESS]
            decisions[episode + row] = state.episode[row, EPISODE_N_DECISIONS]
        episode += n_tile


@kernel
def advance_batch(problem, state, rows, restart, choices, index, value, legal, observation, mask):
    """Restart some rows or take one decision in each that still runs; write what is seen then.

    Parameters
    ----------
    problem : Problem
    state : State
        B rows.
    rows : ndarray(int64, (n,))
        The rows concerned; the others, and what is seen in them, stay as they are.
    restart : bool
    choices : ndarray(int64, (n,))
        Instances to restart on, or legal actions; those of rows that are over are ignored.
    index, value, legal
        Scratch, as in `list_features` and `list_actions`.
    observation : ndarray(float32, (B, n_features))
        Output; zero in rows that are over.
    mask : ndarray(bool, (B, n_actions))
        Output; all False in rows that are over.
    """
    for position in range(len(rows)):
        b = rows[position]
        if restart:
            start_episode(problem, state, b, choices[position])
        elif state.episode[b, EPISODE_PHASE] == RUNNING:
            apply_action(problem, state, b, np.int32(choices[position]))
        for k in range(observation.shape[1]):
            observation[b, k] = np.float32(0.0)
        for k in range(mask.shape[1]):
            mask[b, k] = False
        if state.episode[b, EPISODE_PHASE] != RUNNING:
            continue
        n = list_features(problem, state, b, index, value)
        for k in range(n):
            observation[b, index[k]] = value[k]
        n = list_actions(problem, state, b, legal)
        for k in range(n):
            mask[b, legal[k]] = True
