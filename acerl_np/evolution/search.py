"""The search that `ACERL` and `Evolution` share: noise out, utilities in, a step of mean and distribution.

Nothing here is written in place: what a step changes is computed first and takes the place of the old in one
statement, which an interrupt cannot tear. So `copy.copy` of a search stays as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.bounds import Box
from acerl_np.kernels.learning.update import Noise
from acerl_np.support.errors import InputError, refuse


class SearchDistribution(ABC):
    """How noise becomes members, and utilities a step.

    In `acerl_np.evolution` the modules `distributions`, `low_rank` and `scaled` have those that follow a
    schedule, `covariance` two that learn their shape. A distribution never changes: `update` returns the
    next one.
    """

    @abstractmethod
    def sigma(self, generation: int) -> np.ndarray:
        """Return the standard deviation of the noise in a generation, () or (n_parameters,)."""

    @abstractmethod
    def sample(self, mean: np.ndarray, noise: Noise) -> np.ndarray:
        """Return the members of a generation, (population, n_parameters)."""

    @abstractmethod
    def update(
        self, search: Search[Any], utilities: np.ndarray, noise: Noise
    ) -> tuple[np.ndarray, Self]:
        """Return the step that these utilities give the mean, and the distribution after it."""

    def pack(self) -> dict[str, np.ndarray]:
        """Return copies of the arrays that decide, with the generation's number, all that follows."""
        return {}

    def unpack(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the distribution with these arrays; raise `InputError` if they are not usable."""
        return self


S = TypeVar("S", bound=SearchDistribution)


@dataclass(eq=False, repr=False)
class Search(Generic[S]):
    """A normal distribution of members that climbs along their utilities (Algorithm 1, lines 6, 8, 17).

    From a mean (float32 or float64, copied) it draws `population` (lambda) members, and steps with the rate
    `learning_rate` (alpha). With `antithetic` members 2 i and 2 i + 1 use the same noise with opposite signs
    (Eq. 12). A `box` keeps members and mean inside bounds, see `acerl_np.evolution.bounds`: `mean` is what
    is drawn around, `found` its place in the box. `generation` counts the finished ones. While the mean's
    whole numbers are `held`, all members have them.

    Attributes
    ----------
    mean : ndarray(float32 or float64, (n_parameters,))
    distribution : SearchDistribution
        The shape of the noise.
    seed, population : int
    learning_rate : float
    antithetic : bool
    box : Box or None
    """

    mean: np.ndarray
    distribution: S
    _: KW_ONLY
    seed: int
    population: int
    learning_rate: float
    antithetic: bool = False
    box: Box | None = None
    generation: int = field(default=0, init=False)
    held: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.begin_at(self.mean)

    def begin_at(self, mean: np.ndarray) -> None:
        """Move the mean to this point, which is copied."""
        self.mean = np.array(mean) if self.box is None else self.box.invert(mean)

    def noise(self) -> Noise:
        """Return the present generation's noise (line 6): a key, no array."""
        return Noise(self.seed, self.generation, self.population, self.antithetic)

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviation of the present generation's noise, () or (n_parameters,)."""
        return self.distribution.sigma(self.generation)

    def sample(self, noise: Noise) -> np.ndarray:
        """Return the members that have this noise, (population, n_parameters), inside the bounds (8)."""
        drawn = self.distribution.sample(self.mean, noise)
        return drawn if self.box is None else self.clip(self.box.map(drawn))

    def clip(self, x: np.ndarray) -> np.ndarray:
        """Return points moved into the bounds, and to the mean's whole numbers if these are held."""
        if self.box is None:
            return x
        return np.where(self.box.whole & self.held, self.found, self.box.clip(x))

    def displacement(self, placed: np.ndarray) -> np.ndarray:
        """Return the ways from the mean to what becomes these parameters."""
        return placed - self.mean if self.box is None else self.box.displacement(self.mean, placed)

    def displace_integers(
        self, members: np.ndarray, drawn: np.ndarray, utilities: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which of the better half left the mean's whole numbers, and their ways to the new ones.

        So the mean goes whole steps, and the distribution learns them: Marty et al., "LB+IC-CMA-ES: two
        simple modifications of CMA-ES to handle mixed-integer problems", PPSN 2024. Not without whole
        numbers.
        """
        assert self.box is not None
        left = self.box.whole & (members != self.found)
        rows = np.flatnonzero(left.any(axis=1) & (utilities > np.median(utilities)))
        return rows, self.displacement(np.where(left, members, self.box.map(drawn))[rows])

    @property
    def found(self) -> np.ndarray:
        """The mean inside the bounds, a copy."""
        return self.mean.copy() if self.box is None else self.box.transform(self.mean)

    def tell(self, utilities: ArrayLike, noise: Noise) -> np.ndarray:
        """Step along the gradient of these utilities, the larger the better, to the next generation (17).

        Noise is that of the members. Returns the step, before it was moved into the bounds. An `InputError`,
        of another generation's noise or numbers that are not finite, changes nothing.
        """
        step, distribution = self.distribution.update(
            self, self.check_utilities(utilities, noise), noise
        )
        self.move(step, distribution)
        return step

    def move(self, step: np.ndarray, distribution: S) -> None:
        """Move the mean and begin the next generation; refuse a mean that is not finite."""
        mean = self.mean + step
        if self.box is not None:
            mean = np.where(self.box.whole & self.held, self.mean, self.box.project(mean))
        if not np.isfinite(mean).all():
            raise InputError(
                "returns: the step is not finite; expected smaller returns, costs or learning rate"
            )
        vars(self).update(mean=mean, distribution=distribution, generation=self.generation + 1)

    def check_utilities(self, utilities: ArrayLike, noise: Noise) -> np.ndarray:
        """Return utilities as an array; refuse those of another noise or shape, or not finite."""
        if noise != self.noise():
            refuse("noise", noise, str(self.noise()))
        f = np.asarray(utilities)
        if f.shape != (self.population,):
            refuse("utilities", f"shape {f.shape}", f"({self.population},)")
        if not np.isfinite(f).all():
            raise InputError("utilities: not finite; expected finite numbers")
        return f
