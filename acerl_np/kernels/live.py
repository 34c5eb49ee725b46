"""One decision about a situation that is given, not simulated: for a control system's dispatcher.

Row 0 of the state holds the situation. Working vehicles have arrived as far as the kernels know, so they
stay where the last event has put them; the clock stands at 0, and waiting times are counted backwards.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.baselines import pick_by_rule
from acerl_np.kernels.events import is_decision_due
from acerl_np.kernels.observation import list_actions, list_features
from acerl_np.kernels.rollout import choose_action
from acerl_np.kernels.rules import N_RULES, select_task
from acerl_np.support.compiled import kernel


@kernel
def decide_by_network(problem, state, network, work, greedy, key, decision):
    """Return the vehicle, its task's position in the pool, and the rule that picked it.

    Parameters
    ----------
    problem : Problem
    state : State
        Row 0 is read.
    network : Network
    work : Workspace
        Holds the network in row 0.
    greedy : bool
    key : ndarray(uint32, (4,))
        Stream of the draws.
    decision : int
        Number of decisions before this one.

    Returns
    -------
    tuple of int
        -1 three times when no vehicle has a choice.
    """
    if not is_decision_due(problem, state, 0):
        return -1, -1, -1
    action = choose_action(problem, state, 0, network, work, 0, greedy, key, decision)
    v, rule = action // N_RULES, action % N_RULES
    return v, select_task(problem, state, 0, v, rule), rule


@kernel
def decide_by_named_rule(problem, state, rule, key, decision):
    """Return the vehicle, its task's position in the pool, and the rule that picked it.

    Parameters
    ----------
    problem : Problem
    state : State
        Row 0 is read.
    rule : int
        As `baselines.play_rules`.
    key : ndarray(uint32, (4,))
        Stream of the draws.
    decision : int
        Number of decisions before this one.

    Returns
    -------
    tuple of int
        -1 three times when no vehicle has a choice.
    """
    return pick_by_rule(problem, state, 0, rule, key, decision)


@kernel
def look(problem, state, index, value, legal, observation, mask):
    """Write the observation and the legal actions of row 0.

    Parameters
    ----------
    problem : Problem
    state : State
    index, value, legal
        Scratch, as in `list_features` and `list_actions`.
    observation : ndarray(float32, (n_features,))
        Output.
    mask : ndarray(bool, (n_actions,))
        Output.
    """
    observation[:] = np.float32(0.0)
    mask[:] = False
    n = list_features(problem, state, 0, index, value)
    for k in range(n):
        observation[index[k]] = value[k]
    n = list_actions(problem, state, 0, legal)
    for k in range(n):
        mask[legal[k]] = True
