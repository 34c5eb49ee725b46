"""Boxes that keep a search inside its bounds: clipping, a smooth map onto the box, whole numbers."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

SHARE = 0.025
"""Width of the curved rim of a box, of the distance between its bounds."""

WIDEST = 1 / 3
"""Largest adapted sigma, of the distance between the bounds."""
LEAVE = 0.3
"""Whole numbers of a member that at least leave those of the mean, on average; at most 0.15 of each."""


class Box:
    """How what a search draws becomes members inside the bounds: here the nearest point of the box.

    Whole numbers are rounded, after the map onto a box that is half a number wider, so that the last ones are
    as likely as the others. Infinite bounds leave a side open; `sigma` are the standard deviations of the
    start, `whole` the parameters that are whole numbers; all (n_parameters,).
    """

    def __init__(
        self, lower: np.ndarray, upper: np.ndarray, sigma: np.ndarray, whole: np.ndarray
    ) -> None:
        self.whole = whole
        self.least = np.where(whole, np.ceil(lower) + 0.0, lower)  # no -0
        self.most = np.where(whole, np.floor(upper), upper)
        self.lower = np.where(whole, self.least - 0.5, lower)
        self.upper = np.where(whole, self.most + 0.5, upper)

    def transform(self, drawn: np.ndarray) -> np.ndarray:
        """Return the members, inside the bounds, of what was drawn, (..., n_parameters)."""
        return self.clip(self.map(drawn))

    def clip(self, x: np.ndarray) -> np.ndarray:
        """Return points clipped to the bounds, their whole numbers rounded."""
        return np.asarray(np.where(self.whole, np.rint(x) + 0.0, x).clip(self.least, self.most))

    def map(self, drawn: np.ndarray) -> np.ndarray:
        """Return the points of the box, not rounded."""
        return np.asarray(drawn.clip(self.lower, self.upper))

    def project(self, mean: np.ndarray) -> np.ndarray:
        """Return a mean after its step."""
        return self.map(mean)

    def invert(self, placed: np.ndarray) -> np.ndarray:
        """Return what becomes these parameters, which are first clipped to the bounds."""
        return self.map(placed)

    def displacement(self, mean: np.ndarray, placed: np.ndarray) -> np.ndarray:
        """Return the way from a mean, as drawn, to what becomes these parameters."""
        return np.asarray(self.invert(placed) - mean)


class Smooth(Box):
    """A map of all reals onto the box: the identity inside, a parabola within a rim, and mirrored beyond.

    A bound b becomes the vertex of a parabola, so an optimum on it is one that a normal distribution
    can settle on: x = b + (y - b + r)^2 / (4 r) where |y - b + r| < 2 r, for a lower bound b and a rim r.
    This form is that of BoundTransform in pycma (Hansen, Akimoto and Baudis). The rim is `SHARE` of the
    distance between the bounds; if a side is open, the first sigma.

    Where whole numbers stand beside, y goes on for another rim beyond the vertex, with x = b: some of the
    whole numbers may be feasible on a bound alone, which members then reach as easily as a whole number.
    """

    def __init__(
        self, lower: np.ndarray, upper: np.ndarray, sigma: np.ndarray, whole: np.ndarray
    ) -> None:
        super().__init__(lower, upper, sigma, whole)
        lower, upper = self.lower, self.upper
        self._has_low, self._has_high = np.isfinite(lower), np.isfinite(upper)
        with np.errstate(over="ignore"):
            width = upper - lower
        closed = np.isfinite(width)
        self.rim = np.where(closed, np.minimum(SHARE * width, sigma), sigma)
        # Vertices and period; where there is none, any number that does no harm.
        self._low = np.where(self._has_low, lower, 0.0) - self.rim
        self._high = np.where(self._has_high, upper, 0.0) + self.rim
        flat = np.where(whole.any() & ~whole, self.rim, 0.0)
        self._first, self._last = self._low - flat, self._high + flat
        self._closed = closed
        self._period = np.where(closed, width, 1.0) + 2 * self.rim + 2 * flat

    def project(self, mean: np.ndarray) -> np.ndarray:
        """Return the mean as it is: folded, it would no longer fit the path behind it."""
        return mean

    def _fold(self, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the images that are not mirrored, which have the same places, and which were."""
        below = self._has_low & (drawn < self._first)
        above = self._has_high & (drawn > self._last)
        out = below | above
        if not out.any():
            return drawn, out
        phase = np.mod(drawn - self._first, 2 * self._period)
        closed = self._first + np.minimum(phase, 2 * self._period - phase)
        with np.errstate(over="ignore"):
            once = np.where(below, 2 * self._first - drawn, 2 * self._last - drawn)
        folded = np.where(out, np.where(self._closed, closed, once), drawn)
        return folded, out & (~self._closed | (phase > self._period))

    def map(self, drawn: np.ndarray) -> np.ndarray:
        """Return the points of the box, not rounded."""
        (y, _), rim = self._fold(drawn), self.rim
        above, below = y - self._low, self._high - y
        # Far from a rim its parabola is not wanted, and may be infinite.
        low = self._low + rim + np.square(np.clip(above, 0.0, 2 * rim)) / (4 * rim)
        high = self._high - rim - np.square(np.clip(below, 0.0, 2 * rim)) / (4 * rim)
        x = np.where(self._has_low & (above < 2 * rim), low, y)
        x = np.where(self._has_high & (below < 2 * rim), high, x)
        x = np.where(self._has_low & (above < 0.0), self.lower, x)
        x = np.where(self._has_high & (below < 0.0), self.upper, x)
        return np.asarray(x.clip(self.lower, self.upper))

    def invert(self, placed: np.ndarray) -> np.ndarray:
        """Return what becomes these parameters."""
        x, rim = placed.clip(self.lower, self.upper), self.rim
        above = np.where(self._has_low, x - self._low - rim, np.inf)
        below = np.where(self._has_high, self._high - rim - x, np.inf)
        low = self._low + np.sqrt(4 * rim * np.clip(above, 0.0, rim))
        high = self._high - np.sqrt(4 * rim * np.clip(below, 0.0, rim))
        y = np.where(above < rim, low, x)
        return np.asarray(np.where(below < rim, high, y))

    def displacement(self, mean: np.ndarray, placed: np.ndarray) -> np.ndarray:
        """Return the way from a mean, as drawn, to the image beside it of what becomes these parameters."""
        inside, mirrored = self._fold(mean)
        return np.asarray(np.where(mirrored, -1.0, 1.0) * (self.invert(placed) - inside))


def make_box(
    lower: np.ndarray, upper: np.ndarray, sigma: np.ndarray, whole: np.ndarray, *, smooth: bool
) -> Box | None:
    """Return the box of these bounds, smooth or one that clips; None if there is nothing to keep."""
    if not (whole.any() or np.isfinite(lower).any() or np.isfinite(upper).any()):
        return None
    return (Smooth if smooth else Box)(lower, upper, sigma, whole)


def limit_sigma(
    lower: np.ndarray, upper: np.ndarray, whole: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the least and the largest standard deviation that an adapted search keeps, None if any.

    A whole number needs a margin, or no member leaves the one it stands on; of many each needs less, or no
    member changes one alone (Hamano et al., "CMA-ES with margin", GECCO 2022: 1 / (n population)). Between
    two bounds `WIDEST` of their distance is the most: beyond, members are mirrored more than once.
    """
    with np.errstate(over="ignore"):
        width = upper - lower + whole
    if not (whole.any() or np.isfinite(width).any()):
        return None
    leave = LEAVE / max(2, int(whole.sum()))
    least = np.where(whole, 0.5 / NormalDist().inv_cdf(1 - leave / 2), 0.0)
    most = np.where(np.isfinite(width), np.maximum(WIDEST * width, least), np.inf)
    return least, most
