"""ACERL's search for any constrained problem: ask for members, tell their returns and costs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.covariance import (
    MAX_MATRIX,
    Covariance,
    DiagonalCovariance,
    FullCovariance,
)
from acerl_np.evolution.options import check_options
from acerl_np.evolution.ranking import Ranker, Ranking, Shaping
from acerl_np.evolution.records import Best, Report, summarise
from acerl_np.evolution.sampler import Advantage, Sampler, check_ids, make_sampler
from acerl_np.evolution.search import Search
from acerl_np.evolution.spreads import MAX_SIGMA, MIN_SIGMA, Adapt, PerParameter, Step
from acerl_np.support.errors import ConfigError, InputError
from acerl_np.support.numbers import Whole


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

    sigma decays by a fixed schedule, or is adapted with a covariance as CMA-ES does (Hansen's tutorial,
    arXiv:1604.00772, see `acerl_np.evolution.covariance`): the mean then goes to the weighted mean of the
    better half of the members, and only their order counts. An adapted sigma shrinks around an optimum, on
    the edge of the feasible region too, and grows on long slopes.

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
        moves by at most about one sigma per generation along any direction. In an adapted search 1 is
        that of CMA-ES.
    population : int
        lambda, at least 2, and even if antithetic. The rates of an adapted search fit it: without noise
        or constraints about 4 + 3 log(n_parameters) members need the fewest evaluations.
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
        What is adapted beside the mean: nothing; the sigma of each parameter (sep-CMA-ES), for any number
        of parameters; or a full covariance matrix (CMA-ES), which turns and stretches the cloud of members
        along a narrow region, for at most 100 parameters.
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
        seed: Whole = 0,
    ) -> None:
        options = check_options(
            {
                "population": population,
                "seed": seed,
                "learning_rate": learning_rate,
                "cost_limit": cost_limit,
                "p_f": p_f,
                "ranking": ranking,
                "shaping": shaping,
                "step": step,
                "adapt": adapt,
                "noise_decay": noise_decay,
                "noise_decay_every": noise_decay_every,
                "antithetic": antithetic,
                "n_instances": n_instances,
                "sampler": sampler,
                "alpha_u": alpha_u,
                "advantage": advantage,
            }
        )
        mean, first_sigma = _read_start(x0, sigma, options["adapt"])
        lower, upper = _read_bounds(bounds, mean.shape)
        self.population: int = options["population"]
        self.cost_limit: float = options["cost_limit"]
        self.antithetic: bool = options["antithetic"]
        self.n_instances: int = options["n_instances"]
        self.seed: int = options["seed"]
        self.sampler = make_sampler(
            options["sampler"],
            self.n_instances,
            self.seed,
            alpha_u=options["alpha_u"],
            advantage=options["advantage"],
        )
        self._rank = Ranker(ranking, shaping, self.cost_limit, options["p_f"])
        decay = options["noise_decay"], options["noise_decay_every"]
        spread: PerParameter | Covariance
        if adapt == "matrix":
            spread = FullCovariance(first_sigma, *decay)
        elif adapt == "sigma":
            spread = DiagonalCovariance(first_sigma, *decay)
        else:
            spread = PerParameter(first_sigma, *decay, step=step)
        self._search: Search[PerParameter | Covariance] = Search(
            mean,
            spread,
            seed=self.seed,
            population=self.population,
            learning_rate=options["learning_rate"],
            antithetic=self.antithetic,
            bounds=(lower, upper),
        )
        self._options = {
            "n_parameters": np.array(mean.size),
            "sigma": first_sigma,
            "bounds[0]": lower,
            "bounds[1]": upper,
            **{name: np.array(value) for name, value in options.items()},
        }
        self._failed = 0
        self._best: Best | None = None
        self._dealt: np.ndarray | None = None  # int64 (population,), once asked for

    @property
    def mean(self) -> np.ndarray:
        """Mean of the search distribution, float64 (n_parameters,), a copy: what the search found."""
        return self._search.mean.copy()

    @property
    def generation(self) -> int:
        """Number of finished generations."""
        return self._search.generation

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviation of the present generation's noise, float64 (n_parameters,)."""
        return self._search.sigma

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
        noise = self._search.noise()
        if self._dealt is None:
            self._dealt = self.sampler.deal(noise)
        return self._search.place(noise), self._dealt.copy()

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
        if self._dealt is None:
            raise InputError("tell: read no ask in this generation; expected ask before every tell")
        j_r, j_c = self._read_outcome("returns", returns), self._read_outcome("costs", costs)
        ids = check_ids(
            self._dealt if instance_ids is None else instance_ids, self.population, self.n_instances
        )
        noise, sigma = self._search.noise(), self.sigma
        # Numbers near the largest of float64 may overflow on the way to a rank or a mean.
        with np.errstate(over="ignore", invalid="ignore"):
            good = np.isfinite(j_r) & np.isfinite(j_c)
            feasible = good & (j_c <= self.cost_limit)
            best = self._find_best(j_r, j_c, ids, feasible)
            utilities = self._rank(j_r, j_c, ids, noise)  # line 16
            if not np.isfinite(utilities).all():
                raise InputError(
                    "returns: the step is not finite; expected smaller returns or costs"
                )
            self._search.tell(utilities, noise)  # line 17
            self.sampler.update(ids, j_r)  # lines 11 and 13
            summary = summarise(j_r, j_c, good, feasible)
        self._best = best
        self._dealt = None
        self._failed = summary["failed"]
        return Report(
            generation=self.generation,
            noise_std=float(sigma.max()),
            counts=tuple(np.bincount(ids, minlength=self.n_instances).tolist()),
            best_return=np.nan if self._best is None else self._best.return_,
            **summary,
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
        nothing = np.full(self._search.mean.size, np.nan)
        return {
            **{f"option.{name}": array.copy() for name, array in self._options.items()},
            "generation": np.array(self.generation, np.int64),
            "failed": np.array(self._failed, np.int64),
            "mean": self.mean,
            **{f"spread.{name}": array for name, array in self._search.spread.pack().items()},
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
        packed = {name: read[f"spread.{name}"] for name in self._search.spread.pack()}
        try:
            spread = self._search.spread.unpack(packed)
        except InputError as error:
            raise InputError(f"state: spread: {error}; expected what get_state returned") from None
        self._search.mean = read["mean"]
        self._search.spread = spread
        self._search.generation = int(read["generation"])
        self._failed = int(read["failed"])
        instance, generation = read["best.source"].tolist()
        return_, cost = read["best.values"].tolist()
        self._best = None
        if generation > 0:
            self._best = Best(read["best.parameters"], return_, cost, instance, generation)
        self.sampler.set_state({name: read[f"sampler.{name}"] for name in self.sampler.get_state()})
        self._dealt = None

    def _check_state(self, read: dict[str, np.ndarray]) -> None:
        """Refuse values that no search can have reached."""
        instance, generation = read["best.source"].tolist()
        mean, best = read["mean"], np.append(read["best.parameters"], read["best.values"])
        sampled = [array for name, array in read.items() if name.startswith("sampler.")]
        usable = {
            "generation": read["generation"] >= 0,
            "failed": 0 <= read["failed"] <= self.population,
            "mean": np.isfinite(mean).all()
            and ((mean >= read["option.bounds[0]"]) & (mean <= read["option.bounds[1]"])).all(),
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

    def _read_outcome(self, name: str, values: ArrayLike) -> np.ndarray:
        outcome = _read_floats(name, values)
        if outcome.shape != (self.population,):
            raise InputError(f"{name}: read shape {outcome.shape}; expected ({self.population},)")
        return outcome

    def _find_best(
        self, returns: np.ndarray, costs: np.ndarray, ids: np.ndarray, feasible: np.ndarray
    ) -> Best | None:
        """Return the best feasible member so far, this generation's included."""
        if not feasible.any():
            return self._best
        first = int(np.argmax(np.where(feasible, returns, -np.inf)))
        if self._best is not None and not returns[first] > self._best.return_:
            return self._best
        return Best(
            parameters=self._search.place(self._search.noise())[first].copy(),
            return_=float(returns[first]),
            cost=float(costs[first]),
            instance=int(ids[first]),
            generation=self.generation + 1,
        )


def _read_start(x0: ArrayLike, sigma: ArrayLike, adapt: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the first mean and its sigmas, both float64 (n_parameters,)."""
    mean = _read_floats("x0", x0)
    if mean.ndim != 1 or mean.size == 0 or not np.isfinite(mean).all():
        raise InputError(
            f"x0: read shape {mean.shape}; expected (n_parameters,), all numbers finite"
        )
    first = _read_floats("sigma", sigma, ConfigError)
    if first.shape not in ((), mean.shape):
        raise ConfigError(f"sigma: read shape {first.shape}; expected a number or {mean.shape}")
    if not ((first >= MIN_SIGMA) & (first < np.inf)).all():
        raise ConfigError(f"sigma: read {sigma!r}; expected at least {MIN_SIGMA:g}, and finite")
    if adapt == "matrix" and mean.size > MAX_MATRIX:
        raise ConfigError(
            f"adapt: read 'matrix' for {mean.size:,} parameters; expected at most {MAX_MATRIX}, "
            "or adapt 'sigma'"
        )
    if adapt != "none" and (first > MAX_SIGMA).any():
        raise ConfigError(
            f"sigma: read {sigma!r}; expected at most {MAX_SIGMA:g} with adapt '{adapt}'"
        )
    return mean, np.array(np.broadcast_to(first, mean.shape))


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
