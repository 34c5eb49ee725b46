"""What the training of a compared learner did: a line per ten thousand steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from acerl_np.evolution.records import summarise
from studies.rivals.episodes import Ended


@dataclass(frozen=True, slots=True)
class Round:
    """What some ten thousand steps did.

    Attributes
    ----------
    steps : int
        Decisions taken since training began.
    seconds : float
        Time spent training since it began.
    episodes : int
        Episodes that ended in these steps.
    return_mean, return_std, cost_mean : float
        Of those that finished: minus the objective, and the cost; nan if none did.
    satisfied : float
        Share of the episodes with a cost below the limit.
    multiplier : float
        Weight of the tardiness in the reward, 0 where there is none.
    failed : int
        Episodes that could not end.
    counts : tuple of int
        Episodes of each training record.
    """

    steps: int
    seconds: float
    episodes: int
    return_mean: float
    return_std: float
    cost_mean: float
    satisfied: float
    multiplier: float
    failed: int
    counts: tuple[int, ...]


HISTORY_COLUMNS = tuple(item.name for item in fields(Round))[:-1]
"""All but the counts, which the columns of the training records hold."""


def sum_up(ended: Sequence[Ended], cost_limit: float, n_records: int) -> dict[str, Any]:
    """Return what a line says of the episodes that ended in the steps since the last one."""
    over, value, cost, records, finished = map(np.concatenate, zip(*ended, strict=True))
    value, cost = value[over], cost[over]
    return {
        "episodes": len(value),
        "counts": tuple(np.bincount(records, minlength=n_records).tolist()),
        **summarise(-value, cost, finished, finished & (cost < cost_limit)),
    }
