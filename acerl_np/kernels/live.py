"""One decision about a situation that is given, not simulated: for a control system's dispatcher.

Row 0 of the state holds the situation. Working vehicles have arrived as far as the kernels know, so they
stay where the last event has put them; the clock stands at 0, and waiting times are counted backwards.
"""

from __future__ import annotations

from acerl_np.kernels.baselines import pick_by_rule
from acerl_np.kernels.events import has_choice, is_decision_due
from acerl_np.kernels.observation import clear_view, write_view
from acerl_np.kernels.rollout import choose_action
from acerl_np.kernels.rules import N_RULES, select_task
from acerl_np.support.compiled import kernel


@kernel
def decide_by_network(problem, state, work, greedy, key, decision):
    """Return the vehicle, its task's position in the pool, and the rule that picked it.

    Parameters
    ----------
    problem : Problem
    state : State
        Row 0 is read.
    work : Workspace
        Its first network decides.
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
    action = choose_action(problem, state, 0, work, 0, greedy, key, decision)
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
def decide_by_plan(problem, state, order, rules):
    """Return the vehicle, its task's position in the pool, and the rule that picked it.

    Parameters
    ----------
    problem : Problem
    state : State
        Row 0 is read.
    order : ndarray(int32, (n_vehicles,))
        Vehicles, the preferred one first.
    rules : ndarray(int32, (n_vehicles,))
        The rule of each vehicle.

    Returns
    -------
    tuple of int
        -1 three times when no vehicle has a choice.
    """
    for k in range(len(order)):
        v = order[k]
        if has_choice(problem, state, 0, v):
            return v, select_task(problem, state, 0, v, rules[v]), rules[v]
    return -1, -1, -1


@kernel
def look(problem, state, view):
    """Write what is seen in row 0, and which actions are legal.

    Parameters
    ----------
    problem : Problem
    state : State
    view : View
        Output: row 0.
    """
    clear_view(view, 0)
    write_view(problem, state, 0, view)
