"""What has been so far in a day, for a lookahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from acerl_np.kernels.state import (
    ENDS_DELIVERY,
    ENDS_PICKUP,
    N_ENDS_FIELDS,
    N_RECORD_FIELDS,
    RECORD_ARRIVAL,
    RECORD_DEMAND,
    RECORD_EXPIRY,
    RECORD_HANDLING,
)

FIRST_ROOM = 64
"""Tasks that there is room for at first; the room doubles when it is full."""

DAY_FIELDS = [RECORD_ARRIVAL, RECORD_EXPIRY, RECORD_HANDLING, RECORD_DEMAND]
"""What a day keeps of a task besides its sites."""


class Day:
    """What has been so far, for a lookahead.

    Parameters
    ----------
    start : float
        Time zero of the records, s.

    Attributes
    ----------
    n_tasks : int
        Tasks that have arrived.
    ends : ndarray(int32, (room, N_ENDS_FIELDS))
        Their sites, in the first `n_tasks` rows.
    record : ndarray(float64, (room, N_RECORD_FIELDS))
        Their arrivals since the start, expiries, handling times and demands.
    delay : float
        s by which delivered tasks were late, together.
    delivered : int
    """

    def __init__(self, start: float = 0.0) -> None:
        self.start = start
        self.n_tasks = 0
        self.ends = np.zeros((FIRST_ROOM, N_ENDS_FIELDS), np.int32)
        self.record = np.zeros((FIRST_ROOM, N_RECORD_FIELDS))
        self.delay = 0.0
        self.delivered = 0

    def add(self, pickup: int, delivery: int, values: Sequence[float]) -> None:
        """Note a task: its sites, and its arrival since the start, expiry, handling time and demand."""
        n = self.n_tasks
        if n == len(self.ends):
            # Room doubles, so that a long day costs no more per task than a short one.
            self.ends = np.concatenate([self.ends, np.zeros_like(self.ends)])
            self.record = np.concatenate([self.record, np.zeros_like(self.record)])
        self.ends[n, ENDS_PICKUP], self.ends[n, ENDS_DELIVERY] = pickup, delivery
        self.record[n, DAY_FIELDS] = values
        self.n_tasks = n + 1

    @property
    def mark(self) -> tuple[int, float, int]:
        """How far the day has come: number of tasks, delay, delivered ones."""
        return self.n_tasks, self.delay, self.delivered

    def return_to(self, mark: tuple[int, float, int]) -> None:
        """Forget what came after a moment of this day, by its `mark`."""
        self.n_tasks, self.delay, self.delivered = mark

    def to_dict(self, mark: tuple[int, float, int] | None = None) -> dict[str, Any]:
        """Return the day, or what it was at a mark, as plain values."""
        n, delay, delivered = mark or self.mark
        return {
            "start": self.start,
            "ends": self.ends[:n].tolist(),
            "values": self.record[:n][:, DAY_FIELDS].tolist(),
            "delay": delay,
            "delivered": delivered,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Day:
        """Return the day that `to_dict` described; of nothing the first moment of one."""
        day = cls(float(data.get("start", 0.0)))
        for (pickup, delivery), values in zip(
            data.get("ends", []), data.get("values", []), strict=True
        ):
            day.add(int(pickup), int(delivery), [float(value) for value in values])
        day.delay = float(data.get("delay", 0.0))
        day.delivered = int(data.get("delivered", 0))
        return day
