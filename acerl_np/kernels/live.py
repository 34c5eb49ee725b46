"""One decision about a situation that is given, not simulated: for a control system's dispatcher.

Row 0 of the state holds the situation. Working vehicles have arrived as far as the kernels know, so they
stay where the last event has put them; the clock stands at 0, and times are counted from now.
"""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.deciders import decide_once
from acerl_np.kernels.lookahead import derive_decision_key
from acerl_np.kernels.observation import clear_view, write_view
from acerl_np.support.compiled import kernel


@kernel
def decide_live(problem, state, decider, key, decision):
    """Return the vehicle, its task's position in the pool, and the rule that picked it.

    Parameters
    ----------
    problem : Problem
    state : State
        Row 0 is read.
    decider : Decider
        Its first function decides.
    key : ndarray(uint32, (4,))
        Stream of the draws.
    decision : int
        Number of decisions before this one.

    Returns
    -------
    tuple of int
        -1 three times when no vehicle has a choice; the rule is -1 where a task was chosen without one.
    """
    return decide_once(problem, state, np.int64(0), decider, np.int64(0), key, decision)


@kernel
def mix_key(ahead, key, decision, own):
    """Write the key of a lookahead's draws at a decision into `own` (ndarray(uint32, (4,)))."""
    derive_decision_key(ahead, key, decision, own)


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
