"""How metres and seconds are rounded, of arrays and of numbers outside kernels; `state` has the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

NOISE = 0.5e-9
"""How far a floating-point sum may be beside a whole number."""


def cut_metres(metres: Any, truncates: bool) -> np.ndarray:
    """Return distances, cut to whole metres where a layout says so."""
    return np.asarray(np.floor(metres + NOISE)) if truncates else np.asarray(metres)


def measure_metres(metres: np.ndarray, truncates: bool) -> np.ndarray:
    """Return distances as rules and observation see them: rounded to 1e-9, or cut to whole metres."""
    rounded = np.asarray(np.floor(metres * 1e9 + 0.5) * 1e-9)
    return cut_metres(metres, True) if truncates else rounded


def count_ticks(seconds: Any) -> np.ndarray:
    """Return the whole ticks that seconds take, the last one begun."""
    return np.asarray(np.ceil(seconds - NOISE))
