"""ACERL's search for any constrained problem: ask for members, tell their returns and costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.adaptation import (
    MAX_SIGMA,
    MIN_SIGMA,
    Adapt,
    adapt_factors,
    adapt_matrix,
    is_usable,
    measure_sigma,
    weigh_members,
)
from acerl_np.evolution.ranking import Ranking, Shaping, rank_utilities
from acerl_np.evolution.sampler import Advantage, Sampler, check_ids, make_sampler
from acerl_np.evolution.strategy import decay_noise
from acerl_np.kernels.random import NOISE
from acerl_np.kernels.update import fill_stream
from acerl_np.support.errors import ConfigError, InputError, describe
from acerl_np.support.numbers import is_whole

Step = Literal["natural", "plain"]

MAX_SEED = 2**63 - 1
MAX_MATRIX = 100
"""Most parameters of an adapted matrix: larger ones, whose decomposition libraries share out among
threads, would give other bytes on other machines."""
NOISE_DECAY = 0.99
"""Decay of a sigma that is not adapted."""


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best feasible member so far: the largest return with a cost within the limit.

    Attributes
    ----------
    parameters : ndarray(float64, (n_parameters,))
        As they were evaluated, so inside the bounds.
    return_ : float
    cost : float
    instance : int
        The instance it was evaluated on; nothing is known about the others.
    generation : int
        1 for the first.
    """

    parameters: np.ndarray
    return_: float
    cost: float
    instance: int
    generation: int


@dataclass(frozen=True, slots=True)
class Report:
    """What one generation did.

    Attributes
    ----------
    generation : int
        1 for the first.
    return_mean, return_std : float
        Of the returns of the members that did not fail; nan if all did.
    cost_mean : float
        Mean of their costs.
    satisfied : float
        Share of all members that are feasible: cost at most the limit.
    sigma : float
        Largest standard deviation of the noise.
    counts : tuple of int
        Members that were evaluated on each instance.
    failed : int
        Members whose return or cost was not finite; they rank below all others of their instance.
    best_return : float
        Return of the best feasible member so far; nan without one.
    """

    generation: int
    return_mean: float
    return_std: float
    cost_mean: float
    satisfied: float
    sigma: float
    counts: tuple[int, ...]
    failed: int
    best_return: float


class Evolution:
    """Maximise a return with the cost kept within a limit, on one or several instances of a problem.

    Algorithm 1 of the paper without its policy and episodes. Each generation draws members
    x_i = mean + sigma eps_i, the adaptive instance sampler (Algorithm 2) deals an instance to each,
    intrinsic stochastic ranking (Algorithm 4) turns returns and costs into utilities f_i, and the
    mean takes a step:

    - "plain": mean + alpha / (lambda sigma) sum_i f_i eps_i (line 17), where the steps grow as sigma
      decays;
    - "natural": mean + alpha sigma / lambda sum_i f_i eps_i, the same gradient times the inverse of
      the Fisher information of N(mean, sigma^2), which is sigma^2. Steps are measured in sigma, so a
      search looks the same on every scale, and one whose sigma decays comes to rest.

    sigma decays by a fixed schedule, or is adapted by the natural gradient of the members' order (Wierstra
    et al. 2014, see `acerl_np.evolution.adaptation`), which the mean then follows too. An adapted sigma
    shrinks around an optimum, on the edge of the feasible region too, and grows on long slopes.

    The mean and the members are float64; the noise is the float32 noise of `Strategy`, keyed by
    (seed, generation, member).

    Parameters
    ----------
    x0 : array_like of float, (n_parameters,)
        The first mean; copied, and moved into the bounds.
    sigma : float or array_like of float, (n_parameters,)
        Standard deviation of the first generations' noise, at least 1e-150, if adapted at most 1e150;
        one number per parameter if their scales differ.
    learning_rate : float
        alpha >= 0. With "natural" steps and "standardised" utilities about 1 suits: then the mean
        moves by at most about one sigma per generation along any direction.
    population : int
        lambda, at least 2, and even if antithetic.
    cost_limit : float
        xi: a member is feasible if its cost is at most this. Several constraints become one cost with
        `sum_violations`, whose limit is 0; infinity leaves the problem unconstrained.
    p_f : float
        Probability of comparing two members by return although one is infeasible, in [0, 1].
    ranking : {"isr", "cf", "r", "f"}
        As `rank_utilities`.
    shaping : {"standardised", "rank"}
        As `rank_utilities`. An adapted search follows the order of the utilities alone.
    step : {"natural", "plain"}
        See above; "plain" only if nothing is adapted.
    adapt : {"none", "sigma", "matrix"}
        What follows a natural gradient beside the mean: nothing; the sigma of each parameter (SNES), for
        any number of parameters; or a full matrix (xNES), which turns and stretches the cloud of members
        along a narrow region, for up to about ten parameters; at most 100.
    noise_decay : float, optional
        Factor on sigma, in (0, 1]: sigma is that of the start times
        noise_decay^floor((generation + 1) / noise_decay_every), times what was adapted. By default 0.99,
        and 1 with an adapted sigma.
    noise_decay_every : int
        At least 1.
    antithetic : bool
        Members 2 i and 2 i + 1 use the same noise with opposite signs (Eq. 12) and the same instance.
    n_instances : int
        Variants of the problem, numbered from 0, that one mean is to serve.
    sampler : {"ais", "uniform", "random", "single"}
        As `make_sampler`.
    alpha_u : float
        As `make_sampler`.
    advantage : {"paper", "released"}
        As `make_sampler`.
    bounds : (array_like of float, array_like of float), optional
        Least and largest value of the parameters, each a number or (n_parameters,); infinities leave a
        side open. Members are clipped to the box before they are evaluated, and so is the mean after
        its step; the step itself uses the noise as it was drawn. An adapted search ranks members that were
        clipped behind the others ("sigma": parameter by parameter).
    seed : int
        0 to 2**63 - 1. The same seed gives the same bytes.

    Attributes
    ----------
    population, cost_limit, antithetic, n_instances, seed
        As given.
    sampler : InstanceSampler

    Raises
    ------
    InputError
        If `x0` or `bounds` have an unusable shape or value.
    ConfigError
        If an option is unknown or out of range, or two do not fit together.

    Examples
    --------
    >>> from acerl_np.evolution import Evolution, sum_violations
    >>> evolution = Evolution([0.0, 0.0], sigma=0.5, adapt="matrix", seed=1)
    >>> for _ in range(60):
    ...     x, _ = evolution.ask()
    ...     constraints = x.sum(axis=1, keepdims=True) - 1  # one constraint: (64, 1)
    ...     report = evolution.tell(-((x - 1) ** 2).sum(axis=1), sum_violations(constraints))
    >>> evolution.mean.round(2)
    array([0.5, 0.5])
    """

    def __init__(
        self,
        x0: ArrayLike,
        *,
        sigma: ArrayLike,
        learning_rate: float = 1.0,
        population: int = 64,
        cost_limit: float = 0.0,
        p_f: float = 0.45,
        ranking: Ranking = "isr",
        shaping: Shaping = "standardised",
        step: Step = "natural",
        adapt: Adapt = "none",
        noise_decay: float | None = None,
        noise_decay_every: int = 1,
        antithetic: bool = False,
        n_instances: int = 1,
        sampler: Sampler = "ais",
        alpha_u: float = 1.0,
        advantage: Advantage = "paper",
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        seed: int = 0,
    ) -> None:
        mean = _read_floats("x0", x0)
        if mean.ndim != 1 or mean.size == 0 or not np.isfinite(mean).all():
            raise InputError(
                f"x0: read shape {mean.shape}; expected (n_parameters,), all numbers finite"
            )
        first_sigma = _read_floats("sigma", sigma, ConfigError)
        if first_sigma.shape not in ((), mean.shape):
            raise ConfigError(
                f"sigma: read shape {first_sigma.shape}; expected a number or {mean.shape}"
            )
        if not ((first_sigma >= MIN_SIGMA) & (first_sigma < np.inf)).all():
            raise ConfigError(f"sigma: read {sigma!r}; expected at least {MIN_SIGMA:g}, and finite")
        population = _check_whole("population", population, 2)
        if antithetic and population % 2:
            raise ConfigError(
                f"population: read {population}; expected an even number with antithetic"
            )
        noise_decay_every = _check_whole("noise_decay_every", noise_decay_every, 1)
        n_instances = _check_whole("n_instances", n_instances, 1)
        seed = _check_whole("seed", seed, 0)
        if seed > MAX_SEED:
            raise ConfigError(f"seed: read {seed}; expected a whole number from 0 to 2**63 - 1")
        learning_rate = _check_number(
            "learning_rate", learning_rate, "a finite number of at least 0"
        )
        if not 0.0 <= learning_rate < math.inf:
            raise ConfigError(
                f"learning_rate: read {learning_rate}; expected a finite number of at least 0"
            )
        if noise_decay is None:
            noise_decay = NOISE_DECAY if adapt == "none" else 1.0
        noise_decay = _check_number("noise_decay", noise_decay, "a number above 0, at most 1")
        if not 0.0 < noise_decay <= 1.0:
            raise ConfigError(
                f"noise_decay: read {noise_decay}; expected a number above 0, at most 1"
            )
        cost_limit = _check_number("cost_limit", cost_limit, "a number or infinity")
        if not -math.inf < cost_limit <= math.inf:
            raise ConfigError(f"cost_limit: read {cost_limit}; expected a number or infinity")
        p_f = _check_number("p_f", p_f, "a number from 0 to 1")
        alpha_u = _check_number("alpha_u", alpha_u, "a finite number of at least 0")
        if not 0.0 <= alpha_u < math.inf:
            raise ConfigError(f"alpha_u: read {alpha_u}; expected a finite number of at least 0")
        if step not in get_args(Step):
            raise ConfigError(f"step: read '{step}'; expected one of {', '.join(get_args(Step))}")
        if adapt not in get_args(Adapt):
            raise ConfigError(
                f"adapt: read '{adapt}'; expected one of {', '.join(get_args(Adapt))}"
            )
        if adapt != "none" and step != "natural":
            raise ConfigError(f"step: read '{step}'; expected natural with adapt '{adapt}'")
        if adapt == "matrix" and mean.size > MAX_MATRIX:
            raise ConfigError(
                f"adapt: read 'matrix' for {mean.size:,} parameters; expected at most {MAX_MATRIX}, "
                "or adapt 'sigma'"
            )
        if adapt != "none" and (first_sigma > MAX_SIGMA).any():
            raise ConfigError(
                f"sigma: read {sigma!r}; expected at most {MAX_SIGMA:g} with adapt '{adapt}'"
            )
        # Nobody to rank, but the options are checked.
        nobody = np.empty(0, np.int64)
        rank_utilities(nobody, nobody, nobody, ranking=ranking, shaping=shaping, p_f=p_f)
        self._lower, self._upper = _read_bounds(bounds, mean.shape)
        self.sampler = make_sampler(
            sampler, n_instances, seed, alpha_u=alpha_u, advantage=advantage
        )
        self.population = population
        self.cost_limit = cost_limit
        self.antithetic = antithetic
        self.n_instances = n_instances
        self.seed = seed
        self._p_f = p_f
        self._ranking: Ranking = ranking
        self._shaping: Shaping = shaping
        self._step = step
        self._adapt = adapt
        self._learning_rate = learning_rate
        self._first_sigma = np.array(np.broadcast_to(first_sigma, mean.shape))
        self._noise_decay = noise_decay
        self._noise_decay_every = noise_decay_every
        self._options = {
            "n_parameters": np.array(mean.size, np.int64),
            "n_instances": np.array(n_instances, np.int64),
            "population": np.array(population, np.int64),
            "seed": np.array(seed, np.int64),
            "sigma": self._first_sigma,
            "learning_rate": np.array(learning_rate, np.float64),
            "cost_limit": np.array(cost_limit, np.float64),
            "p_f": np.array(p_f, np.float64),
            "ranking": np.array(ranking),
            "shaping": np.array(shaping),
            "step": np.array(step),
            "adapt": np.array(adapt),
            "noise_decay": np.array(noise_decay, np.float64),
            "noise_decay_every": np.array(noise_decay_every, np.int64),
            "antithetic": np.array(bool(antithetic)),
            "sampler": np.array(sampler),
            "alpha_u": np.array(alpha_u, np.float64),
            "advantage": np.array(advantage),
            "bounds[0]": self._lower,
            "bounds[1]": self._upper,
        }
        self._mean = mean.clip(self._lower, self._upper)
        # What the noise is multiplied by, in units of the first sigma.
        self._spread = np.eye(mean.size) if adapt == "matrix" else np.ones(mean.size)
        self._generation = 0
        self._failed = 0
        self._best: Best | None = None
        self._noise: np.ndarray | None = None  # float32 (population, n_parameters), once asked for
        self._dealt = np.empty(0, np.int64)

    @property
    def mean(self) -> np.ndarray:
        """Mean of the search distribution, float64 (n_parameters,), a copy: what the search found."""
        return self._mean.copy()

    @property
    def generation(self) -> int:
        """Number of finished generations."""
        return self._generation

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviation of the present generation's noise, float64 (n_parameters,)."""
        return np.asarray(np.maximum(MIN_SIGMA, measure_sigma(self._spread, self._scale)))

    @property
    def _scale(self) -> np.ndarray:
        """Unit of the present generation's spread: the first sigma, decayed."""
        decay = decay_noise(1.0, self._noise_decay, self._noise_decay_every, self._generation)
        return np.asarray(self._first_sigma * decay)

    @property
    def best(self) -> Best | None:
        """The best feasible member so far; None without one.

        With several instances, a member is evaluated on one of them only, and returns of different
        instances need not be comparable: judge `mean` on all of them instead.
        """
        return self._best

    @property
    def failed(self) -> int:
        """Members of the last generation whose return or cost was not finite."""
        return self._failed

    def ask(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the members of this generation and the instance to evaluate each on.

        Asking again before `tell` returns the same once more.

        Returns
        -------
        members : ndarray(float64, (population, n_parameters))
            mean + sigma eps_i, clipped to the bounds (Algorithm 1, lines 6 and 8).
        instance_ids : ndarray(int64, (population,))
            0 to n_instances - 1 (line 9).
        """
        if self._noise is None:
            pair = 2 if self.antithetic else 1
            noise = np.empty((self.population, self._mean.size), np.float32)
            for group, first in enumerate(range(0, self.population, pair)):
                fill_stream(self.seed, NOISE, self._generation, group, noise[first])
                if self.antithetic:
                    np.negative(noise[first], out=noise[first + 1])
            with np.errstate(over="ignore"):
                dealt = self.sampler.assign(self.population // pair, self._generation)
            self._noise, self._dealt = noise, np.repeat(dealt, pair)
        return self._place(self._noise), self._dealt.copy()

    def tell(
        self, returns: ArrayLike, costs: ArrayLike, instance_ids: ArrayLike | None = None
    ) -> Report:
        """Rank the members, take a step and begin the next generation.

        Parameters
        ----------
        returns : array_like of float, (population,)
            J_R, larger is better, in the order of `ask`. A member that could not be evaluated has nan.
        costs : array_like of float, (population,)
            J_C, feasible up to `cost_limit`.
        instance_ids : array_like of int, (population,), optional
            The instance that each member was evaluated on, by default the one that `ask` dealt.

        Returns
        -------
        Report

        Raises
        ------
        InputError
            If there was no `ask` in this generation, a shape does not fit, an id is out of range, or
            the returns are too large to be scored by their values. Nothing is changed then.
        """
        if self._noise is None:
            raise InputError("tell: read no ask in this generation; expected ask before every tell")
        j_r = _read_floats("returns", returns)
        j_c = _read_floats("costs", costs)
        for name, values in (("returns", j_r), ("costs", j_c)):
            if values.shape != (self.population,):
                raise InputError(
                    f"{name}: read shape {values.shape}; expected ({self.population},)"
                )
        ids = check_ids(
            self._dealt if instance_ids is None else instance_ids, self.population, self.n_instances
        )

        sigma = self.sigma
        # Numbers near the largest of float64 may overflow on the way to a rank or a mean.
        with np.errstate(over="ignore", invalid="ignore"):
            # Line 16: fitness by intrinsic stochastic ranking within each instance.
            utilities = rank_utilities(
                j_r,
                j_c,
                ids,
                ranking=self._ranking,
                shaping=self._shaping,
                cost_limit=self.cost_limit,
                p_f=self._p_f,
                seed=self.seed,
                generation=self._generation,
            )
            # Line 17, or the natural gradient; summed in ascending order, without threads.
            spread = self._spread
            if self._adapt == "none":
                total = np.einsum("i,ij->j", utilities, self._noise) / self.population
                scale = sigma if self._step == "natural" else 1.0 / sigma
                step = self._learning_rate * scale * total
            else:
                place = self._mean + self._stretch(self._noise)
                outside = (place < self._lower) | (place > self._upper)
                if self._adapt == "matrix":
                    outside = outside.any(axis=1, keepdims=True)
                weights = weigh_members(utilities, outside)
                total = (weights * self._noise).sum(axis=0, keepdims=True)
                step = self._learning_rate * self._stretch(total)[0]
                adapt = adapt_matrix if self._adapt == "matrix" else adapt_factors
                spread = adapt(spread, weights, self._noise, self._first_sigma)
            mean = (self._mean + step).clip(self._lower, self._upper)
            if not np.isfinite(mean).all():
                raise InputError(
                    "returns: the step is not finite; expected smaller returns, costs or learning rate"
                )
            self.sampler.update(ids, j_r)  # lines 11 to 14
            good = np.isfinite(j_r) & np.isfinite(j_c)
            feasible = good & (j_c <= self.cost_limit)
            self._remember_best(j_r, j_c, ids, feasible)
            self._mean = mean
            self._spread = spread
            self._generation += 1
            self._failed = self.population - int(good.sum())
            self._noise = None
            known_returns, known_costs = j_r[good], j_c[good]
            return Report(
                generation=self._generation,
                return_mean=float(known_returns.mean()) if good.any() else math.nan,
                return_std=float(known_returns.std()) if good.any() else math.nan,
                cost_mean=float(known_costs.mean()) if good.any() else math.nan,
                satisfied=float(feasible.sum() / self.population),
                sigma=float(sigma.max()),
                counts=tuple(np.bincount(ids, minlength=self.n_instances).tolist()),
                failed=self._failed,
                best_return=math.nan if self._best is None else self._best.return_,
            )

    def get_state(self) -> dict[str, np.ndarray]:
        """Return a copy of the state as plain arrays, which `numpy.savez` can write.

        The options are recorded, to be compared by `set_state`. Members asked for and not yet told are
        not: after `set_state`, `ask` returns the same ones again.

        Returns
        -------
        dict of str to ndarray
        """
        best = self._best
        nothing = np.full(self._mean.size, np.nan)
        return {
            **{f"option.{name}": array.copy() for name, array in self._options.items()},
            "generation": np.array(self._generation, np.int64),
            "failed": np.array(self._failed, np.int64),
            "mean": self._mean.copy(),
            "spread": self._spread.copy(),
            "best.parameters": nothing if best is None else best.parameters.copy(),
            "best.values": np.array(
                [np.nan, np.nan] if best is None else [best.return_, best.cost], np.float64
            ),
            "best.source": np.array(
                [-1, -1] if best is None else [best.instance, best.generation], np.int64
            ),
            **{f"sampler.{name}": array for name, array in self.sampler.get_state().items()},
        }

    def set_state(self, state: Mapping[str, ArrayLike]) -> None:
        """Continue from a state of an `Evolution` with the same options, in the same bytes.

        Parameters
        ----------
        state : mapping of str to array_like
            What `get_state` returned, or the file that `numpy.savez` made of it.

        Raises
        ------
        InputError
            If an array is missing or has another shape, an option differs, or a value cannot be;
            nothing is changed then.
        """
        read: dict[str, np.ndarray] = {}
        for name, own in self.get_state().items():
            if name not in state:
                raise InputError(f"state: read no '{name}'; expected what get_state returned")
            array = np.array(state[name])
            text = own.dtype.kind == "U" and array.dtype.kind == "U"
            if array.shape != own.shape or not (text or array.dtype == own.dtype):
                raise InputError(
                    f"state: {name}: read {array.dtype} {array.shape}; "
                    f"expected {own.dtype} {own.shape}"
                )
            if name.startswith("option.") and (array != own).any():
                where = tuple(np.argwhere(array != own)[0])
                index = "".join(f"[{k}]" for k in where)
                raise InputError(
                    f"state: {name.removeprefix('option.')}{index}: read {array[where]}; "
                    f"expected {own[where]}, as given here"
                )
            read[name] = array
        self._check_state(read)
        self._mean = read["mean"]
        self._spread = read["spread"]
        self._generation = int(read["generation"])
        self._failed = int(read["failed"])
        instance, generation = read["best.source"].tolist()
        return_, cost = read["best.values"].tolist()
        self._best = None
        if generation > 0:
            self._best = Best(read["best.parameters"], return_, cost, instance, generation)
        self.sampler.set_state({name: read[f"sampler.{name}"] for name in self.sampler.get_state()})
        self._noise = None

    def _check_state(self, read: dict[str, np.ndarray]) -> None:
        """Refuse values that no search can have reached."""
        instance, generation = read["best.source"].tolist()
        mean, best = read["mean"], np.append(read["best.parameters"], read["best.values"])
        sampled = [array for name, array in read.items() if name.startswith("sampler.")]
        usable = {
            "generation": read["generation"] >= 0,
            "failed": 0 <= read["failed"] <= self.population,
            "mean": np.isfinite(mean).all()
            and ((mean >= self._lower) & (mean <= self._upper)).all(),
            "spread": (read["spread"] == 1.0).all()
            if self._adapt == "none"
            else is_usable(read["spread"], self._first_sigma),
            "best": (instance, generation) == (-1, -1)
            or (
                0 <= instance < self.n_instances
                and 0 < generation <= read["generation"]
                and np.isfinite(best).all()
            ),
            "sampler": not any(np.isnan(array).any() for array in sampled)
            and (read["sampler.count"] >= 0).all(),
        }
        for name, is_so in usable.items():
            if not is_so:
                raise InputError(
                    f"state: {name}: read values that no search reaches; expected what get_state returned"
                )

    def _stretch(self, noise: np.ndarray) -> np.ndarray:
        """Return what this noise (n, n_parameters) adds to the mean."""
        if self._adapt != "matrix":
            return np.asarray(self.sigma * noise)
        return np.asarray(self._scale * np.einsum("jk,ik->ij", self._spread, noise))

    def _place(self, noise: np.ndarray) -> np.ndarray:
        """Return the members that have this noise, inside the bounds."""
        return np.asarray((self._mean + self._stretch(noise)).clip(self._lower, self._upper))

    def _remember_best(
        self, returns: np.ndarray, costs: np.ndarray, ids: np.ndarray, feasible: np.ndarray
    ) -> None:
        if self._noise is None or not feasible.any():
            return
        first = int(np.argmax(np.where(feasible, returns, -np.inf)))
        if self._best is None or returns[first] > self._best.return_:
            self._best = Best(
                parameters=self._place(self._noise)[first].copy(),
                return_=float(returns[first]),
                cost=float(costs[first]),
                instance=int(ids[first]),
                generation=self._generation + 1,
            )


def _read_floats(name: str, values: ArrayLike, error: type[InputError] = InputError) -> np.ndarray:
    """Return the values as a new float64 array."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "fiu":
            return array.astype(np.float64)
    except ValueError:  # a ragged list
        pass
    raise error(f"{name}: read {type(values).__name__} of other values; expected real numbers")


def _read_bounds(
    bounds: tuple[ArrayLike, ArrayLike] | None, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest value of each parameter."""
    if bounds is None:
        bounds = (-np.inf, np.inf)
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise InputError("bounds: expected a pair: least values, largest values") from None
    read = []
    for name, values in (("bounds[0]", lower), ("bounds[1]", upper)):
        array = _read_floats(name, values)
        if array.shape not in ((), shape):
            raise InputError(f"{name}: read shape {array.shape}; expected a number or {shape}")
        read.append(np.broadcast_to(array, shape))
    if not (read[0] < read[1]).all():
        raise InputError("bounds: expected every least value below the largest, and no nan")
    return read[0], read[1]


def _check_whole(name: str, value: Any, least: int) -> int:
    if not is_whole(value) or value < least:
        raise ConfigError(
            f"{name}: read {describe(value)}; expected a whole number of at least {least}"
        )
    return int(value)


def _check_number(name: str, value: Any, expected: str) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        if number:
            return float(value)
    except OverflowError:
        pass
    raise ConfigError(f"{name}: read {describe(value)}; expected {expected}")
