"""The natural evolution strategy of the paper: a search with one sigma that decays, on float32 parameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.distributions import OneSigma
from acerl_np.evolution.low_rank import LowRank, read_shapes
from acerl_np.evolution.ranges import MIN_NOISE_STD
from acerl_np.evolution.search import Search
from acerl_np.kernels.learning.update import Noise
from acerl_np.support.errors import ConfigError, refuse
from acerl_np.support.fields import Whole
from acerl_np.support.workers import Workers


class Strategy(Search[OneSigma]):
    """The search distribution N(theta, sigma^2 I) and its ascent (Algorithm 1, lines 6, 8 and 17).

    Parameters
    ----------
    theta : array_like of float32, (n_parameters,)
        Start; copied.
    seed : int
    population : int
        lambda, at least 2.
    learning_rate : float
        alpha.
    noise_std : float
        sigma of the first generations.
    noise_decay : float
        Factor on sigma after every `noise_decay_every` generations.
    noise_decay_every : int
    antithetic : bool
        Members 2 i and 2 i + 1 use the same noise with opposite signs (Eq. 12).
    noise_rank : int, optional
        Products of two vectors that a matrix's noise is the sum of; by default noise is of full rank.
    shapes : array_like of int, (n_matrices, 2), optional
        With `noise_rank`: rows and columns of the matrices that theta consists of, one after the other.
    workers : Workers, optional
        Threads that share the work, by default the calling one alone; no result depends on them.

    Raises
    ------
    ConfigError, InputError
        If an option is out of range, or theta no vector.
    """

    def __init__(
        self,
        theta: ArrayLike,
        *,
        seed: Whole = 0,
        population: int = 256,
        learning_rate: float = 0.06,
        noise_std: float = 0.1,
        noise_decay: float = 0.99,
        noise_decay_every: int = 50,
        antithetic: bool = False,
        noise_rank: int | None = None,
        shapes: ArrayLike | None = None,
        workers: Workers | None = None,
    ) -> None:
        if population < 2 or (antithetic and population % 2):
            expected = "at least 2" + (", and an even number with antithetic" if antithetic else "")
            refuse("population", population, expected, ConfigError)
        if not MIN_NOISE_STD <= noise_std < np.inf:
            refuse("noise_std", noise_std, f"at least {MIN_NOISE_STD:g}", ConfigError)
        start = np.array(theta, np.float32)
        if start.ndim != 1 or start.size == 0:
            refuse("theta", f"shape {start.shape}", "(n_parameters,)")
        schedule = noise_std, noise_decay, noise_decay_every, workers or Workers(1)
        if noise_rank is None:
            spread = OneSigma(*schedule)
        else:
            spread = LowRank(*schedule, noise_rank, read_shapes(shapes, noise_rank, start.size))
        super().__init__(
            start,
            spread,
            seed=int(seed),
            population=population,
            learning_rate=learning_rate,
            antithetic=antithetic,
        )

    @property
    def theta(self) -> np.ndarray:
        """The mean, ndarray(float32, (n_parameters,))."""
        return self.mean

    @property
    def noise_std(self) -> float:
        """Sigma of the present generation."""
        return float(self.sigma)

    def ask(self) -> np.ndarray:
        """Return the perturbed parameters of every member, ndarray(float32, (population, n_parameters))."""
        return self.sample(self.noise())

    def estimate_gradient(self, utilities: ArrayLike, noise: Noise | None = None) -> np.ndarray:
        """Estimate the gradient of the expected utility at theta, float32 (Eqs. 11 and 12).

        Parameters
        ----------
        utilities : array_like of float, (population,)
            Larger is better; in the order of `ask`. An `InputError` if the shape does not fit, or one is not
            finite.
        noise : Noise, optional
            That of the members, by default of this generation; another's is refused.
        """
        noise = self.noise() if noise is None else noise
        f = self.check_utilities(utilities, noise)
        return self.distribution.estimate_gradient(f, noise, self.mean.size)

    def tell(self, utilities: ArrayLike, noise: Noise | None = None) -> np.ndarray:
        """Step along the estimated gradient, which is returned, and begin the next generation.

        Parameters and errors are those of `estimate_gradient`; after an error nothing is changed.
        """
        gradient = self.estimate_gradient(utilities, noise)
        self.move(np.float32(self.learning_rate) * gradient, self.distribution)
        return gradient
