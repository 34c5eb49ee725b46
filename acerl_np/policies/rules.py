"""Dispatching rules by name, and how the name of any policy that is no file is found."""

from __future__ import annotations

from collections.abc import Sequence

from acerl_np.kernels.baselines import MIX, RANDOM
from acerl_np.kernels.rules import AHP, EDD, FCFS, LWT, NVF, STD
from acerl_np.support.errors import PolicyError, describe

RULES = {
    "FCFS": FCFS,
    "EDD": EDD,
    "NVF": NVF,
    "STD": STD,
    "LWT": LWT,
    "AHP": AHP,
    "MIX": MIX,
    "Random": RANDOM,
}
"""Policies by name: a vehicle drawn uniformly from the free ones, then the rule picks its task. MIX
draws one of the first four rules as well, Random draws the task."""

STATIC = "Static"
"""The best fixed vehicle order and rule per vehicle on the training records that it is fitted on."""

POLICY_NAMES = (*RULES, STATIC)


def find_policy_name(name: str, names: Sequence[str] = POLICY_NAMES) -> str:
    """Return the policy's name as `names` spell it, whatever its case.

    Parameters
    ----------
    name : str
    names : sequence of str
        The known ones.

    Raises
    ------
    PolicyError
        If there is no policy of this name.
    """
    for known in names:
        if name.lower() == known.lower():
            return known
    raise PolicyError(f"policy '{describe(name)}': unknown; expected one of {', '.join(names)}")
