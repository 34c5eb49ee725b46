"""Who decides: a rule, a static plan, one network or two, or an index function, behind one call.

A simulated episode, a look ahead and a control system's dispatcher all ask `decide`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.baselines import pick_by_rule
from acerl_np.kernels.events import (
    advance_events,
    assign_task,
    has_choice,
    is_decision_due,
    start_episode,
)
from acerl_np.kernels.index import Index, Pairs, allocate_pairs, choose_pair
from acerl_np.kernels.network import Network, make_network, sum_columns
from acerl_np.kernels.rollout import (
    Workspace,
    allocate_workspace,
    choose_action,
    choose_by_agents,
)
from acerl_np.kernels.rules import N_RULES, select_task
from acerl_np.kernels.state import (
    EPISODE_INSTANCE,
    EPISODE_N_DECISIONS,
    EPISODE_PHASE,
    INSTANCE_N_VEHICLES,
    RUNNING,
    Problem,
    write_outcome,
)
from acerl_np.support.compiled import inner_kernel, kernel

BY_RULE, BY_PLAN, BY_NETWORK, BY_INDEX, BY_AGENTS = 0, 1, 2, 3, 4

NO_RULE = np.int64(-1)
"""In place of a rule where a task was chosen without one."""


class Decider(NamedTuple):
    """What decides, and a worker's own scratch for it; the parts of other kinds are empty.

    Attributes
    ----------
    kind : int
        BY_RULE, BY_PLAN, BY_NETWORK, BY_INDEX or BY_AGENTS.
    greedy : bool
        Whether a network or an index function takes the best it knows; else it draws.
    rule : int
        A rule of `rules.py`, MIX or RANDOM.
    orders, rules : ndarray(int32, (N, n_vehicles))
        Static plans: vehicles, the preferred one first, and the rule of each vehicle.
    indices : Index
    pairs : Pairs
    work : Workspace
        The networks; of agents, two for each function: the vehicle's and the rule's.
    """

    kind: int
    greedy: bool
    rule: int
    orders: np.ndarray
    rules: np.ndarray
    indices: Index
    pairs: Pairs
    work: Workspace


_NO_PLAN = np.empty((0, 0), np.int32)
_NOTHING = Decider(
    BY_RULE,
    True,
    0,
    _NO_PLAN,
    _NO_PLAN,
    Index(np.empty((0, 0), np.float32), np.empty(0, np.int32), 0, 0, False, False),
    allocate_pairs(0, 0, 0),
    allocate_workspace(make_network([1, 1, 1]), 1, 1),
)


def make_rule_decider(rule: int) -> Decider:
    """Return the decider that follows a rule of `rules.py`, MIX or RANDOM."""
    return _NOTHING._replace(kind=BY_RULE, rule=rule)


def make_plan_decider(orders: np.ndarray, rules: np.ndarray) -> Decider:
    """Return the decider that follows static plans, a row each (ndarray(int32, (N, n_vehicles)))."""
    return _NOTHING._replace(kind=BY_PLAN, orders=orders, rules=rules)


def make_network_decider(network: Network, thetas: np.ndarray, greedy: bool) -> Decider:
    """Return the decider that follows networks, one per row of ndarray(float32, (N, n_parameters))."""
    work = allocate_workspace(network, 1, len(thetas))
    work.theta[:, : thetas.shape[1]] = thetas
    for row, theta in enumerate(thetas):
        sum_columns(network, theta, work.column_sums[row])
    return _NOTHING._replace(kind=BY_NETWORK, greedy=greedy, work=work)


def make_agents_decider(network: Network, thetas: np.ndarray, greedy: bool) -> Decider:
    """Return the decider that follows pairs of networks, two rows of ndarray(float32, (2 N, n)) each."""
    return make_network_decider(network, thetas, greedy)._replace(kind=BY_AGENTS)


def make_index_decider(index: Index, problem: Problem, greedy: bool) -> Decider:
    """Return the decider that follows index functions on instances of `problem`."""
    n_vehicles, n_tasks = problem.fleet.shape[1], problem.record.shape[1]
    pairs = allocate_pairs(n_vehicles, n_tasks, index.n_hidden)
    return _NOTHING._replace(kind=BY_INDEX, greedy=greedy, indices=index, pairs=pairs)


@inner_kernel
def decide(problem, state, b, decider, row, key, decision):
    """Return the vehicle, its task's position in the pool, and the rule that picked it or `NO_RULE`.

    -1 three times where no vehicle has a choice. Draws are (decision, 0) and (decision, 1) of the stream
    of `key`; `row` says which of several networks, index functions or plans decides.
    """
    nothing = np.int64(-1)
    if decider.kind == BY_INDEX:
        v, position = choose_pair(
            problem, state, b, decider.indices, row, decider.greedy, key, decision, decider.pairs
        )
        return v, position, NO_RULE
    if decider.kind == BY_RULE:
        return pick_by_rule(problem, state, b, decider.rule, key, decision)
    if decider.kind == BY_PLAN:
        for k in range(decider.orders.shape[1]):
            v = np.int64(decider.orders[row, k])
            if v < problem.instance[
                state.episode[b, EPISODE_INSTANCE], INSTANCE_N_VEHICLES
            ] and has_choice(problem, state, b, v):
                rule = np.int64(decider.rules[row, v])
                return v, np.int64(select_task(problem, state, b, v, rule)), rule
        return nothing, nothing, nothing
    if not is_decision_due(problem, state, b):
        return nothing, nothing, nothing
    if decider.kind == BY_AGENTS:
        action = choose_by_agents(
            problem, state, b, decider.work, row, decider.greedy, key, decision
        )
    else:
        action = np.int64(
            choose_action(problem, state, b, decider.work, row, decider.greedy, key, decision)
        )
    v, rule = np.int64(action // N_RULES), np.int64(action % N_RULES)
    return v, np.int64(select_task(problem, state, b, v, rule)), rule


@kernel
def decide_once(problem, state, b, decider, row, key, decision):
    """Decide as `decide`, as a call of its own: whoever decides rarely need not compile all of it again.

    Of an index function that is greedy, `decider.pairs` holds the scores of all pairs after it.
    """
    return decide(problem, state, b, decider, row, key, decision)


@kernel
def finish_by(problem, state, b, decider, row, key, v, position):
    """Let `decider` take all decisions of episode b from now on, but for the first if v says who takes what.

    Parameters
    ----------
    problem : Problem
    state : State
    b : int
    decider : Decider
    row : int
        Which of its functions decides.
    key : ndarray(uint32, (4,))
        Stream of the draws.
    v, position : int
        The first assignment, -1 twice to leave that to the decider, too.
    """
    while state.episode[b, EPISODE_PHASE] == RUNNING:
        if v < 0:
            decision = state.episode[b, EPISODE_N_DECISIONS]
            v, position, _ = decide(problem, state, b, decider, row, key, decision)
        assign_task(problem, state, b, v, position)
        advance_events(problem, state, b)
        v = np.int64(-1)


@kernel
def play_episodes(problem, state, decider, episodes, piece, outcome):
    """Play a piece of a list of episodes, one after the other, in row 0 of `state`.

    Parameters
    ----------
    problem : Problem
    state : State
    decider : Decider
    episodes : Episodes
    piece : tuple of int, (first, last + 1)
        The episodes to play.
    outcome : Outcome
        Output: the entries of these episodes.
    """
    first, last = piece
    # Plain constants would have numba compile what is called for each of them anew.
    b, none = np.int64(0), np.int64(-1)
    for episode in range(first, last):
        for word in range(4):
            state.breakdown_key[b, word] = episodes.keys[episode, word]
        start_episode(problem, state, b, episodes.instances[episode])
        row, key = episodes.rows[episode], state.breakdown_key[b]
        finish_by(problem, state, b, decider, row, key, none, none)
        write_outcome(state, b, outcome, episode)


@kernel
def decide_rows(problem, state, decider, keys, chosen):
    """Decide in every row of `state` that runs, and change nothing.

    Parameters
    ----------
    problem : Problem
    state : State
    decider : Decider
        Its first function decides.
    keys : ndarray(uint32, (B, 4))
        Streams of the draws.
    chosen : ndarray(int64, (B, 3))
        Output: vehicle, position of its task in the pool, rule; -1 in rows that are over.
    """
    for b in range(len(state.episode)):
        for k in range(3):
            chosen[b, k] = -1
        if state.episode[b, EPISODE_PHASE] == RUNNING:
            decision = state.episode[b, EPISODE_N_DECISIONS]
            chosen[b, 0], chosen[b, 1], chosen[b, 2] = decide_once(
                problem, state, b, decider, np.int64(0), keys[b], decision
            )
