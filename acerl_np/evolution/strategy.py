"""Natural evolution strategy: ask for a population, tell its utilities, step along the gradient."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.random import BLOCK, LANES
from acerl_np.kernels.update import perturb_member, sum_noise
from acerl_np.support.errors import ConfigError, InputError
from acerl_np.support.workers import Workers

MIN_NOISE_STD = 1e-9
"""Smallest sigma: 1 / sigma stays a float32."""


def decay_noise(first: float, decay: float, every: int, generation: int) -> float:
    """Return sigma of a generation: first * decay^floor((generation + 1) / every).

    Parameters
    ----------
    first : float
        sigma of the start.
    decay : float
    every : int
    generation : int
        0 for the first.

    Returns
    -------
    float
    """
    return float(first * decay ** ((generation + 1) // every))


class Strategy:
    """The search distribution N(theta, sigma^2 I) and its ascent (Algorithm 1, lines 6, 8 and 17).

    Noise is keyed by (seed, generation, member) and drawn again when the gradient is summed, so
    memory does not grow with the population.

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
    workers : Workers, optional
        Threads that share the work, by default the calling one alone; no result depends on them.

    Attributes
    ----------
    theta : ndarray(float32, (n_parameters,))
    generation : int
        Finished generations.
    """

    def __init__(
        self,
        theta: ArrayLike,
        *,
        seed: int = 0,
        population: int = 256,
        learning_rate: float = 0.06,
        noise_std: float = 0.1,
        noise_decay: float = 0.99,
        noise_decay_every: int = 50,
        antithetic: bool = False,
        workers: Workers | None = None,
    ) -> None:
        if population < 2 or (antithetic and population % 2):
            raise ConfigError(
                f"population: read {population}; expected at least 2"
                + (", and an even number with antithetic" if antithetic else "")
            )
        if not MIN_NOISE_STD <= noise_std < np.inf:
            raise ConfigError(f"noise_std: read {noise_std}; expected at least {MIN_NOISE_STD:g}")
        self.theta = np.array(theta, np.float32)
        if self.theta.ndim != 1 or self.theta.size == 0:
            raise InputError(f"theta: read shape {self.theta.shape}; expected (n_parameters,)")
        self.seed = seed
        self.population = population
        self.learning_rate = learning_rate
        self.first_noise_std = noise_std
        self.noise_decay = noise_decay
        self.noise_decay_every = noise_decay_every
        self.antithetic = antithetic
        self.workers = workers or Workers(1)
        self.generation = 0

    @property
    def noise_std(self) -> float:
        """Sigma of the present generation, never below `MIN_NOISE_STD`."""
        decayed = decay_noise(
            self.first_noise_std, self.noise_decay, self.noise_decay_every, self.generation
        )
        return max(MIN_NOISE_STD, decayed)

    def ask(self) -> np.ndarray:
        """Return the perturbed parameters theta + sigma eps_i of every member.

        Returns
        -------
        ndarray(float32, (population, n_parameters))
        """
        members = np.empty((self.population, self.theta.size), np.float32)
        key = np.empty(4, np.uint32)
        bits = np.empty((4, LANES), np.uint32)
        noise = np.empty((4, LANES), np.float32)
        for member in range(self.population):
            perturb_member(
                self.theta,
                self.noise_std,
                self.seed,
                self.generation,
                member,
                self.antithetic,
                key,
                bits,
                noise,
                members[member],
            )
        return members

    def estimate_gradient(self, utilities: ArrayLike) -> np.ndarray:
        """Estimate the gradient of the expected utility at theta.

        1 / (lambda sigma) sum_i f_i eps_i, the vanilla estimator (Eq. 11); with antithetic members the
        same sum is Eq. 12.

        Parameters
        ----------
        utilities : array_like of float, (population,)

        Returns
        -------
        ndarray(float32, (n_parameters,))

        Raises
        ------
        InputError
            If the shape does not fit or a utility is not finite.
        """
        f = np.ascontiguousarray(utilities, np.float32)
        if f.shape != (self.population,):
            raise InputError(f"utilities: read shape {f.shape}; expected ({self.population},)")
        if not np.isfinite(f).all():
            raise InputError("utilities: not finite; expected finite numbers")
        total = np.empty_like(self.theta)
        n_blocks = math.ceil(self.theta.size / BLOCK)

        def add_block(block: int) -> None:
            sum_noise(f, self.seed, self.generation, self.antithetic, block, block + 1, total)

        self.workers.run(add_block, range(n_blocks))
        total *= np.float32(1.0 / (self.population * self.noise_std))
        return total

    def tell(self, utilities: ArrayLike) -> np.ndarray:
        """Step along the estimated gradient and begin the next generation.

        Parameters
        ----------
        utilities : array_like of float, (population,)
            Larger is better; in the order of `ask`.

        Returns
        -------
        ndarray(float32, (n_parameters,))
            The gradient that was followed.

        Raises
        ------
        InputError
            As `estimate_gradient`; nothing is changed then.
        """
        gradient = self.estimate_gradient(utilities)
        self.theta += np.float32(self.learning_rate) * gradient
        self.generation += 1
        return gradient
