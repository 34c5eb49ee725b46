"""A population of policies in lockstep: perturb, then observe, decide and advance until all are done.

A worker takes a tile of members whose weights fit its cache and plays their episodes side by side.
No result depends on the tile or on the worker, because every draw is keyed by its member.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.events import advance_events, assign_task, find_waiting, start_episode
from acerl_np.kernels.network import (
    Features,
    Layers,
    Network,
    allocate_features,
    choose_greedy,
    choose_sampled,
    count_parameters,
    forward,
    sum_columns,
)
from acerl_np.kernels.observation import (
    N_SEEN_FIELDS,
    clear_view,
    list_actions,
    list_features,
    write_view,
)
from acerl_np.kernels.random import ACTION, LANES, derive_key, draw_uniform
from acerl_np.kernels.rules import N_RULES, select_task
from acerl_np.kernels.state import (
    EPISODE_INSTANCE,
    EPISODE_N_DECISIONS,
    EPISODE_PHASE,
    IDLE,
    INSTANCE_N_TASKS,
    INSTANCE_N_VEHICLES,
    RUNNING,
    VEHICLE_STATUS,
    find_priority,
    is_offered,
    write_outcome,
)
from acerl_np.kernels.update import perturb_member
from acerl_np.support.compiled import inner_kernel, kernel


class Workspace(NamedTuple):
    """A worker's own arrays, allocated once; a tile of T episodes, N networks of one shape.

    Attributes
    ----------
    network : Network
    theta : ndarray(float32, (N, at least n_parameters)), the networks' parameters
    column_sums : ndarray(float32, (N, at least n_first)), see `network.sum_columns`
    keys : ndarray(uint32, (T, 4)), keys of the episodes' action streams
    noise_key : ndarray(uint32, (4,))
    bits : ndarray(uint32, (4, LANES)); normals : ndarray(float32, (4, LANES))
    features : Features; layers : Layers
    seen : ndarray(int32, (n_features, N_SEEN_FIELDS)), see `observation.list_seen`
    legal : ndarray(int32, (n_actions,)); weight : ndarray(float64, (n_actions,))
    """

    network: Network
    theta: np.ndarray
    column_sums: np.ndarray
    keys: np.ndarray
    noise_key: np.ndarray
    bits: np.ndarray
    normals: np.ndarray
    features: Features
    seen: np.ndarray
    layers: Layers
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


def allocate_workspace(network: Network, tile: int, n_networks: int) -> Workspace:
    """Return a `Workspace` for tiles of `tile` episodes.

    Parameters
    ----------
    network : Network
    tile : int
    n_networks : int
        Networks that are held at a time: `tile`, or 1 if the episodes share one.
    """
    sizes = network.sizes
    n_parameters = count_parameters(sizes.tolist(), network.has_biases)
    n_features, n_actions, widest = int(sizes[0]), int(sizes[-1]), int(sizes.max())
    return Workspace(
        network=network,
        theta=allocate_rows(n_networks, n_parameters),
        column_sums=allocate_rows(n_networks, int(sizes[1])),
        keys=np.empty((tile, 4), np.uint32),
        noise_key=np.empty(4, np.uint32),
        bits=np.empty((4, LANES), np.uint32),
        normals=np.empty((4, LANES), np.float32),
        features=allocate_features(n_features),
        seen=np.empty((n_features, N_SEEN_FIELDS), np.int32),
        layers=Layers(
            hidden=allocate_rows(1, widest)[0],
            active=allocate_features(widest),
            logits=np.empty(n_actions, np.float32),
        ),
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
def choose_action(problem, state, b, work, row, greedy, key, decision):
    """Return the action that the network in `row` of the workspace takes in episode b.

    It is the most probable one, or drawn: draw (decision, 0) of the stream of `key`.
    """
    n = list_features(problem, state, b, work.features, work.seen)
    forward(work.network, work.theta[row], work.column_sums[row], work.features, n, work.layers)
    logits = work.layers.logits
    n_legal = list_actions(problem, state, b, work.legal)
    if greedy:
        return choose_greedy(logits, work.legal, n_legal)
    uniform = draw_uniform(key, decision, 0)
    return choose_sampled(logits, work.legal, n_legal, uniform, work.weight)


@inner_kernel
def choose_by_agents(problem, state, b, work, row, greedy, key, decision):
    """Return the action of a pair of networks: row 2 `row` chooses the vehicle, the next its rule.

    The first outputs of the one are the vehicles'; of the other's, one per action, those of the chosen
    vehicle count. Draws are (decision, 0) and (decision, 1) of the stream of `key`.
    """
    n = list_features(problem, state, b, work.features, work.seen)
    n_legal = list_actions(problem, state, b, work.legal)
    n_choices = np.int64(0)
    for k in range(n_legal):
        if work.legal[k] % N_RULES == 0:
            work.legal[n_choices] = work.legal[k] // N_RULES
            n_choices += 1
    chosen = np.int64(-1)
    for agent in range(2):
        net = 2 * row + agent
        forward(work.network, work.theta[net], work.column_sums[net], work.features, n, work.layers)
        logits = work.layers.logits
        if greedy:
            chosen = np.int64(choose_greedy(logits, work.legal, n_choices))
        else:
            uniform = draw_uniform(key, decision, agent)
            chosen = np.int64(choose_sampled(logits, work.legal, n_choices, uniform, work.weight))
        if agent == 0:
            n_choices = np.int64(N_RULES)
            for rule in range(N_RULES):
                work.legal[rule] = chosen * N_RULES + rule
    return chosen


@kernel
def play_tile(problem, state, work, greedy, instances, entries, outcome):
    """Play the episodes of one tile side by side, by the networks that the workspace holds.

    Episode b is that of network b, or of the only one. The draws, random breakdowns included, come from
    `work.keys[b]`.

    Parameters
    ----------
    problem : Problem
    state : State
    work : Workspace
    greedy : bool
    instances : ndarray(int64, (n_tile,))
        At most as many as `state` has rows.
    entries : tuple of int, (first, step)
        Entry of `outcome` of the tile's first episode, and from one episode's to the next.
    outcome : Outcome
        Output: n_tile entries.
    """
    n_tile = len(instances)
    for b in range(n_tile):
        for word in range(4):
            state.breakdown_key[b, word] = work.keys[b, word]
        start_episode(problem, state, b, instances[b])
    is_shared = len(work.theta) == 1
    running = True
    while running:
        running = False
        for b in range(n_tile):
            if state.episode[b, EPISODE_PHASE] == RUNNING:
                row = 0 if is_shared else b
                decision = state.episode[b, EPISODE_N_DECISIONS]
                action = choose_action(problem, state, b, work, row, greedy, work.keys[b], decision)
                apply_action(problem, state, b, action)
                running = True
    for b in range(n_tile):
        write_outcome(state, b, outcome, entries[0] + b * entries[1])


@kernel
def play_population(
    problem,
    state,
    work,
    theta,
    noise_std,
    noise,
    instances,
    piece,
    outcome,
):
    """Let members of a generation play K episodes each (Algorithm 1, lines 6, 8 and 10; Algorithm 3).

    Member m uses theta + sigma eps_m. Its actions in its episode k, and the random breakdowns that it
    meets, are keyed by (seed, generation, m K + k). The paper has K = 1.

    Parameters
    ----------
    problem : Problem
    state : State
        A row per episode of a tile.
    work : Workspace
        It holds as many networks as `state` has rows.
    theta : ndarray(float32, (n_parameters,))
    noise_std : float
        sigma.
    noise : Noise
        The generation's.
    instances : ndarray(int64, (n_members, K))
        Rows of `problem` that each member plays.
    piece : tuple of int, (first, last + 1)
        The members to play.
    outcome : Outcome
        Output: entries m K + k of these members.
    """
    tile = min(len(state.episode), len(work.theta))
    first, last = piece
    n_each = instances.shape[1]
    while first < last:
        n_tile = min(tile, last - first)
        for b in range(n_tile):
            member = first + b
            perturb_member(
                theta,
                noise_std,
                noise,
                member,
                work.noise_key,
                work.bits,
                work.normals,
                work.theta[b],
            )
            sum_columns(work.network, work.theta[b], work.column_sums[b])
        for k in range(n_each):
            for b in range(n_tile):
                entry = (first + b) * n_each + k
                derive_key(noise.seed, ACTION, noise.generation, entry, work.keys[b])
            some = instances[first : first + n_tile, k]
            play_tile(problem, state, work, False, some, (first * n_each + k, n_each), outcome)
        first += n_tile


@kernel
def advance_batch(problem, state, rows, restart, choices, view):
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
    view : View
        Output: these rows.
    """
    for k in range(len(rows)):
        b = rows[k]
        if restart:
            start_episode(problem, state, b, choices[k])
        elif state.episode[b, EPISODE_PHASE] == RUNNING:
            apply_action(problem, state, b, np.int32(choices[k]))
        clear_view(view, b)
        if state.episode[b, EPISODE_PHASE] == RUNNING:
            write_view(problem, state, b, view)


@kernel
def find_impossible(problem, state, rows, vehicles, tasks):
    """Return the first of some rows' positions whose assignment is impossible, -1 if there is none.

    Parameters
    ----------
    problem : Problem
    state : State
        B rows.
    rows : ndarray(int64, (n,))
        The rows concerned.
    vehicles, tasks : ndarray(int64, (n,))
        Those of rows that are over are ignored.
    """
    for k in range(len(rows)):
        b = rows[k]
        if state.episode[b, EPISODE_PHASE] != RUNNING:
            continue
        i = state.episode[b, EPISODE_INSTANCE]
        v, task = vehicles[k], tasks[k]
        if not 0 <= v < problem.instance[i, INSTANCE_N_VEHICLES]:
            return k
        if not 0 <= task < problem.instance[i, INSTANCE_N_TASKS]:
            return k
        waits = find_waiting(state, b, task) >= 0
        is_idle = state.vehicle[b, v, VEHICLE_STATUS] == IDLE
        priority = find_priority(problem, state, b, v)
        if not (waits and is_idle and is_offered(problem, i, v, task, priority)):
            return k
    return -1


@kernel
def assign_batch(problem, state, rows, vehicles, tasks, view):
    """Carry out a possible assignment in each of some rows that runs, and write what is seen then.

    Parameters
    ----------
    problem : Problem
    state : State
        B rows.
    rows : ndarray(int64, (n,))
        The rows concerned; the others, and what is seen in them, stay as they are.
    vehicles, tasks : ndarray(int64, (n,))
        Those of rows that are over are ignored.
    view : View
        Output: these rows.
    """
    for k in range(len(rows)):
        b = rows[k]
        if state.episode[b, EPISODE_PHASE] != RUNNING:
            continue
        assign_task(problem, state, b, vehicles[k], find_waiting(state, b, tasks[k]))
        advance_events(problem, state, b)
        clear_view(view, b)
        if state.episode[b, EPISODE_PHASE] == RUNNING:
            write_view(problem, state, b, view)
