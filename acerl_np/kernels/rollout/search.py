"""What the searches of a hindsight reference share: the best action sequence found.

An episode whose future is known is searched in two ways that err differently: by a beam over partial
schedules (`beam`) and by simulated annealing of whole action strings (`annealing`). Both play the exact
simulator; neither proves a bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.support.compiled import inner_kernel


class Found(NamedTuple):
    """The best action sequence that a search has found: below the limit, else that of the least cost.

    Attributes
    ----------
    actions : ndarray(int64, (n_max,)), -1 after its end
    outcome : ndarray(float64, (N_OUTCOME_FIELDS,)), fields as in `State`; inf if there is none
    """

    actions: np.ndarray
    outcome: np.ndarray


def allocate_found(n_max: int) -> Found:
    """Return a `Found` with room for sequences of `n_max` actions; it holds none."""
    return Found(np.full(n_max, -1, np.int64), np.full(S.N_OUTCOME_FIELDS, np.inf))


@inner_kernel
def clear_found(found):
    """Let `found` hold no sequence."""
    found.actions[:] = -1
    found.outcome[:] = np.inf


@inner_kernel
def is_better(found, outcome, cost_limit):
    """Whether an outcome (ndarray((N_OUTCOME_FIELDS,))) is better than the one found; equals are not.

    By the objective below the limit, by the cost where none is below it yet.
    """
    cost, best = outcome[S.OUTCOME_COST], found.outcome[S.OUTCOME_COST]
    if cost < cost_limit and best < cost_limit:
        return outcome[S.OUTCOME_VALUE] < found.outcome[S.OUTCOME_VALUE]
    return cost < best


@inner_kernel
def is_accepted(score, current, temperature, key, step, draw):
    """Whether annealing goes on with a score beside the current one: if it is no worse, or by chance."""
    if score <= current:
        return True
    return random.draw_uniform(key, step, draw) < np.exp((current - score) / temperature)


@inner_kernel
def copy_outcome(outcome, found):
    """Write an outcome (ndarray((N_OUTCOME_FIELDS,))) to `found`."""
    for k in range(S.N_OUTCOME_FIELDS):  # at once it would take memory, which kernels do not count
        found.outcome[k] = outcome[k]
