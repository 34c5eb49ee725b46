"""The constants that scale features: a layout's own, or found from the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels import state
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import SCALING_DIVISORS, SCALING_PAIRS, Layout
from acerl_np.support.errors import AcerlError, InputError

MAX_SCALE = 1e18
MIN_DIVISOR = 1e-10
"""Feature constants within these leave every feature of every layout a finite float32."""

RANGES = (
    (state.SCALING_DISTANCE_MID, state.SCALING_DISTANCE_HALF),
    (state.SCALING_WAITING_MID, state.SCALING_WAITING_HALF),
    (state.SCALING_EXPIRY_MID, state.SCALING_EXPIRY_HALF),
    (state.SCALING_DEMAND_MID, state.SCALING_DEMAND_HALF),
    (state.SCALING_TOTAL_MID, state.SCALING_TOTAL_HALF),
)
"""Feature constants that are a range: its mid, and its half width."""

DIVISORS = [*(half for _, half in RANGES), state.SCALING_SPEED, state.SCALING_CAPACITY]
"""Which of the feature constants are divisors."""


def scaling_of(layout: Layout) -> np.ndarray | None:
    """Return a layout's own feature constants (float64, (12,)), None if it has none."""
    if layout.scaling is None:
        return None
    pairs = [value for key in SCALING_PAIRS for value in layout.scaling[key]]
    return np.array(pairs + [layout.scaling[key] for key in SCALING_DIVISORS], np.float64)


def check_scaling(
    scaling: ArrayLike, error: Callable[[str], AcerlError] = InputError
) -> np.ndarray:
    """Return feature constants, as `kernels.state.Problem` lists them, as an own array (float64, (12,))."""
    try:
        constants = np.array(scaling, np.float64)
    except (TypeError, ValueError):
        constants = np.empty(0)
    if constants.shape != (state.N_SCALING_FIELDS,) or not (
        (np.abs(constants) <= MAX_SCALE).all() and (constants[DIVISORS] >= MIN_DIVISOR).all()
    ):
        raise error(
            f"scaling: expected {state.N_SCALING_FIELDS} numbers of at most {MAX_SCALE:g}, "
            f"divisors of at least {MIN_DIVISOR:g}"
        )
    return constants


def find_scaling(instances: Sequence[Instance]) -> np.ndarray:
    """Return the feature constants for policies trained on `instances`, float64 (12,).

    The layouts' own constants if all layouts share them; otherwise computed from the records: each
    feature is (x - mid) / half, mid and half width of its range, half 1 for an empty range.
    """
    own = [scaling_of(instance.layout) for instance in instances]
    if own[0] is not None and all(x is not None and (x == own[0]).all() for x in own):
        return own[0]

    distances, totals = [], []
    for instance in instances:
        table = instance.layout.routes.distance
        loaded = table[instance.pickup, instance.delivery]
        total = table[:, instance.pickup] + loaded
        total = total[np.isfinite(total)]
        if instance.layout.truncate_distances:
            loaded, total = np.floor(loaded + 0.5e-9), np.floor(total + 0.5e-9)
        distances.append(loaded)
        totals.append(total)
    # What is never due is shown to no network.
    expiries = [np.where(np.isinf(x.expiry), 0.0, x.expiry) for x in instances]
    demands = [instance.demand for instance in instances]
    waiting = [np.zeros(1), *expiries]
    fleet = [vehicle for instance in instances for vehicle in instance.layout.vehicles]
    scaling = np.empty(state.N_SCALING_FIELDS)
    seen = (distances, waiting, expiries, demands, totals)
    for (mid, half), values in zip(RANGES, map(np.concatenate, seen), strict=True):
        low, high = float(values.min()), float(values.max())
        scaling[mid] = (low + high) / 2.0
        # A range within rounding error is empty.
        empty = high - low <= 1e-9 * max(1.0, abs(high))
        scaling[half] = 1.0 if empty else (high - low) / 2.0
    scaling[state.SCALING_SPEED] = max(vehicle.speed for vehicle in fleet)
    capacity = max(vehicle.capacity for vehicle in fleet)
    scaling[state.SCALING_CAPACITY] = max(capacity, 1e-9) if capacity else 1.0
    return scaling
