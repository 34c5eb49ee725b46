"""ACERL's search for any constrained problem: ask for members, tell their returns and costs."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution import arguments, progress
from acerl_np.evolution.bounds import limit_sigma, make_box
from acerl_np.evolution.covariance import Covariance, FullCovariance
from acerl_np.evolution.lagrangian import Memory, count_remembered, find_slopes, score_members
from acerl_np.evolution.progress import EvaluatedGeneration, Progress, Record, Tolerance
from acerl_np.evolution.ranges import Advantage, Sampler, Shaping
from acerl_np.evolution.ranking import OwnRanking, Ranker
from acerl_np.evolution.records import Best, Report, Result, Stops, read_limits, summarise
from acerl_np.evolution.sampler import OwnSampler, check_ids, make_sampler
from acerl_np.evolution.scaled import Adapt, PerParameter, Step
from acerl_np.evolution.search import Search
from acerl_np.kernels.learning.update import Noise
from acerl_np.support.errors import ConfigError, InputError, refuse
from acerl_np.support.fields import Whole
from acerl_np.support.sharing import CopiedWhole, Exclusive, exclusive
from acerl_np.support.trust import read_kept, trusting

SETTLED = 0.1
"""Of the first sigma: below it whole numbers may be held, and with it a search that holds them begins."""


class Evolution(CopiedWhole):
    """Maximise a return with the cost kept within a limit, on one or several instances of a problem.

    Algorithm 1 of the paper without its policy and episodes. Each generation draws members
    x_i = mean + sigma eps_i, the adaptive instance sampler (Algorithm 2) deals an instance to each,
    intrinsic stochastic ranking (Algorithm 4) turns returns and costs into utilities f_i, and the
    mean takes a step:

    - "plain": mean + alpha / (lambda sigma) sum_i f_i eps_i (line 17), where the steps grow as sigma decays;
    - "natural": mean + alpha sigma / lambda sum_i f_i eps_i, the same gradient times sigma^2, the inverse of
      its Fisher information: a search looks the same on every scale, and rests as sigma decays;
    - with an adapted sigma: the weighted mean of the better half of the members, as CMA-ES does (Hansen's
      tutorial, arXiv:1604.00772, see `acerl_np.evolution.covariance`). Only their order counts.

    Mean and members are float64; the noise is `Strategy`'s float32, keyed by (seed, generation, member).

    Parameters
    ----------
    x0 : array_like of float, (n_parameters,)
        The first mean; copied, and moved into the bounds.
    sigma : float or array_like of float, (n_parameters,)
        Standard deviation of the first generations' noise, at least 1e-150, if adapted at most 1e150.
    learning_rate : float
        alpha >= 0. With "natural" steps and "standardised" utilities 1 moves the mean by at most about one
        sigma a generation along any direction. In an adapted search 1 is that of CMA-ES.
    population : int, optional
        lambda, at least 2, and even if antithetic. By default 64 if nothing is adapted; else 10 +
        n_parameters with one cost, or whole numbers beside others, and 4 + 3 log(n_parameters) without.
    cost_limit : float
        xi: a member is feasible if its cost is at most this; infinity leaves the problem unconstrained.
        Constraints told as a matrix want the limit 0.
    p_f : float
        Probability of comparing two members by return although one is infeasible, in [0, 1]. It is 0 while
        constraints have a tolerance, and with an adapted matrix in a generation without a feasible member.
    ranking : {"isr", "cf", "r", "f"} or callable
    shaping : {"standardised", "rank"}
        As `rank_utilities`. An adapted search follows the order of the utilities alone.
    step : {"natural", "plain"}
        See above; "plain" only if nothing is adapted.
    adapt : {"none", "sigma", "matrix"}, optional
        What is adapted beside the mean: nothing; the sigma of each parameter (sep-CMA-ES); or a full
        covariance (CMA-ES), which turns and stretches the cloud of members, of at most 2,000 parameters. By
        default the matrix up to 300 parameters, beyond them a sigma for each, of which you are warned.
    noise_decay : float, optional
        Factor on sigma after every `noise_decay_every` generations, in (0, 1], on top of what is adapted. By
        default 0.99, and 1 with an adapted sigma.
    noise_decay_every : int
        At least 1.
    antithetic : bool
        Members 2 i and 2 i + 1 use the same noise with opposite signs (Eq. 12) and the same instance.
    n_instances : int
        Variants of the problem, numbered from 0, that one mean is to serve.
    sampler, alpha_u, advantage
        As `make_sampler`.
    bounds : optional
        A tuple of least and largest values, each a number or (n_parameters,), a list or array of a pair for
        each parameter, or SciPy's `Bounds`; infinity or None leaves a side open. An adapted search draws from
        all reals and maps them onto the box (`acerl_np.evolution.bounds.Smooth`); `sigma` and `covariance`
        are those before the map. Without adaptation members are clipped, and so is the mean after its step.
    integers : array_like of int or bool, optional
        Parameters that are whole numbers, by position or as (n_parameters,) true or false: members are
        rounded before they are evaluated, and sigma keeps a margin there.
    covariance : array_like of float, optional
        Start of an adapted matrix, (n_parameters, n_parameters), or of its diagonal with "sigma": the first
        members have the covariance sigma^2 times it. By default the identity.
    seed : int, optional
        0 to 2**63 - 1; None draws one. The same seed gives the same bytes.

    Attributes
    ----------
    cost_limit, antithetic, n_instances, seed
        As given.
    sampler : InstanceSampler

    Raises
    ------
    InputError
        If `x0` or `bounds` have an unusable shape or value.
    ConfigError
        If an option is unknown or out of range, or two do not fit together.

    See Also
    --------
    optimize : A function of one point.
    Strategy : The bare strategy.

    Examples
    --------
    >>> from acerl_np.evolution import Evolution
    >>> evolution = Evolution([0.0, 0.0], sigma=0.5, adapt="matrix", seed=1)
    >>> for _ in range(60):
    ...     x, _ = evolution.ask()
    ...     constraints = x.sum(axis=1, keepdims=True) - 1  # one constraint: (population, 1)
    ...     report = evolution.tell(-((x - 1) ** 2).sum(axis=1), constraints)
    >>> evolution.mean.round(2)
    array([0.5, 0.5])
    """

    def __init__(
        self,
        x0: ArrayLike,
        *,
        sigma: ArrayLike,
        learning_rate: float = 1.0,
        population: int | None = None,
        cost_limit: float = 0.0,
        p_f: float = 0.1,
        ranking: Literal["isr", "cf", "r", "f"] | OwnRanking = "isr",
        shaping: Shaping = "standardised",
        step: Step = "natural",
        adapt: Adapt | None = None,
        noise_decay: float | None = None,
        noise_decay_every: int = 1,
        antithetic: bool = False,
        n_instances: int = 1,
        sampler: Sampler | OwnSampler = "ais",
        alpha_u: float = 1.0,
        advantage: Advantage = "paper",
        bounds: Any = None,
        integers: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
        seed: Whole | None = 0,
    ) -> None:
        mean = arguments.read_point(x0)
        lower, upper = arguments.read_bounds(bounds, mean.shape)
        whole = arguments.read_whole(integers, lower, upper)
        adapt = arguments.choose_adapt(adapt, mean.size)
        options = arguments.read_options(locals(), mean.size)
        first = arguments.read_sigma(sigma, mean.size, adapt)
        self.cost_limit: float = options["cost_limit"]
        self.antithetic: bool = options["antithetic"]
        self.n_instances: int = options["n_instances"]
        self.seed: int = options["seed"]
        self.sampler = make_sampler(
            sampler, self.n_instances, self.seed, alpha_u=options["alpha_u"], advantage=advantage
        )
        self._rank = Ranker(ranking, shaping, self.cost_limit, options["p_f"])
        given = {"n_parameters": mean.size, "sigma": first, "bounds[0]": lower, "bounds[1]": upper}
        asked = options["population"] * (population is not None)  # 0 stands for none
        given |= {"integers": whole, **options, "population": asked}
        self._options = {name: np.array(value) for name, value in given.items()}
        self._start = mean
        limits = limit_sigma(lower, upper, whole)
        self._round = arguments.make_distribution(options, first, limits)  # of any start
        self._search: Search[PerParameter | Covariance] = Search(
            mean,
            arguments.begin_with(self._round, covariance),
            seed=self.seed,
            population=options["population"],
            learning_rate=options["learning_rate"],
            antithetic=self.antithetic,
            box=make_box(lower, upper, first, whole, smooth=adapt != "none"),
        )
        self._use = Exclusive("search")
        self._progress = Progress()
        self._warned, self._told_way = False, False
        self._injected = np.empty((0, mean.size))
        # Members, their instances, and how many were injected.
        self._asked: tuple[np.ndarray, np.ndarray, int] | None = None

    @exclusive
    def ask(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the members of this generation, and the instance to evaluate each on (lines 6, 8 and 9).

        Asking again before `tell` returns the same once more.

        Returns
        -------
        members : ndarray(float64, (population, n_parameters))
        instance_ids : ndarray(int64, (population,))
            0 to n_instances - 1.

        Warns
        -----
        RuntimeWarning
            Once, if all members are the same point and the search is over: `stop` says why.
        """
        if self._asked is None:
            noise = self._search.noise()
            members = self._search.sample(noise)
            guess = self._progress.memory.guess.reshape(-1, self._start.size)
            taken = np.concatenate((guess, self._injected))[: len(members)]
            members[: len(taken)] = self._search.clip(taken)
            self._asked = members, self.sampler.assign_members(noise), len(taken)
        members, dealt, _ = self._asked
        same = (members[-1] == members[0]).all() and (members == members[0]).all()
        if same and not self._warned and self.stop():
            self._warned = True
            text = f"generation {self.generation + 1}: all members are the same point"
            warnings.warn(f"{text}; see stop() and restart()", RuntimeWarning, stacklevel=3)
        return members.copy(), dealt.copy()

    @exclusive
    def inject(self, points: ArrayLike) -> None:
        """Have a point, or points (n_points, n_parameters), evaluated, moved into the bounds.

        The next `ask` returns them in the place of its first members. What does not fit into it waits.
        """
        x = arguments.read_points("points", points, self._start.size)
        self._injected = np.concatenate((self._injected, x))

    @exclusive
    def tell(
        self,
        returns: ArrayLike,
        costs: ArrayLike | None = None,
        instance_ids: ArrayLike | None = None,
        *,
        members: ArrayLike | None = None,
        equalities: ArrayLike | None = None,
        tolerance: float = 1e-4,
        minimise: bool | None = None,
    ) -> Report:
        """Rank the members, take a step and begin the next generation.

        Parameters
        ----------
        returns : array_like of float, (population,)
            J_R, larger is better unless you minimise, in the order of `ask`. A member that could not be
            evaluated has nan; outside the constraints it ranks by them all the same.
        costs : array_like of float, (population,) or (population, n_constraints), optional
            J_C, feasible up to `cost_limit`; without, all members are feasible. Or constraints g_j <= 0,
            ranked as `acerl_np.evolution.progress.Tolerance` says; reported are the sums of max(0, g_j).
        instance_ids : array_like of int, (population,), optional
            The instance that each member was evaluated on, by default the one that `ask` dealt.
        members : array_like of float, (n_members, n_parameters), optional
            The points that were evaluated, where they are not those of `ask`: at least two, an even number if
            antithetic. One farther away than members are drawn tells its direction (arXiv:1110.4181).
        equalities : array_like of float, (population, n_equalities), optional
            h_j that are to be 0: a member is feasible if each is within the tolerance. Costs beside them are
            constraints.
        tolerance : float
        minimise : bool, optional
            Whether smaller returns are better. The search then maximises their negatives, which reports and
            `best` have. By default it maximises, and warns once if that runs off; False maximises, too.

        Returns
        -------
        Report

        Raises
        ------
        InputError
            If there was no `ask`, a shape or an id does not fit, or returns are too large; changes nothing.

        Warns
        -----
        RuntimeWarning
            Once, if `minimise` is not given, and all parameters run to bounds or sigma grows without end.
        """
        search, sampler, rank = copy.copy(self._search), copy.copy(self.sampler), self._rank
        given = self._options
        dealt: np.ndarray | None = None
        if members is not None:
            x, taken = search.clip(arguments.read_points("members", members, self._start.size)), 0
            search.population = self._read_population(len(x))
        elif self._asked is None:
            refuse("tell", "no ask in this generation", "ask before every tell, or members")
        else:
            x, dealt, taken = self._asked
        noise, sigma = search.noise(), search.sigma
        allowed = self._progress.tolerance
        if not len(self._progress.memory.recent):  # no penalties yet
            allowed = allowed._replace(stiffness=1.0)
        if equalities is not None:
            whole, n = bool(given["integers"].any()), len(x)
            costs = progress.bound_equalities(costs, equalities, n, tolerance, whole)
        if minimise:
            returns = -arguments.read_floats("returns", returns)
        told = progress.read_told(returns, costs, len(x), self.cost_limit, allowed)
        if instance_ids is None:
            instance_ids = sampler.assign_members(noise) if dealt is None else dealt
        ids = check_ids(instance_ids, len(x), self.n_instances)
        drawn = search.distribution.sample(search.mean, noise)
        if members is not None or taken:
            self._replace_drawn(search, x, drawn, noise)
        # Numbers near the largest of float64 may overflow on the way to a rank or a mean.
        with np.errstate(over="ignore", invalid="ignore"):
            scores, ranked, memory = self._score(told, np.where(given["integers"], x, drawn))
            lost = isinstance(search.distribution, FullCovariance) and not told.feasible.any()
            if lost or 0.0 < told.tolerance.level < math.inf:  # a tolerance is chance enough
                rank = replace(rank, p_f=0.0)
            utilities = rank(scores, ranked, ids, noise)  # line 16
            if (scores == scores[0]).all() and (ranked == ranked[0]).all():
                utilities = np.zeros(len(ids))  # nothing to follow, not even the members' order
            if not np.isfinite(utilities).all():
                raise InputError("returns: the step is not finite; expected smaller numbers")
            if isinstance(search.distribution, Covariance) and given["integers"].any():
                rows, ways = search.displace_integers(x, drawn, utilities)
                search.distribution = search.distribution.replace(noise, ways, rows)
            search.tell(utilities, noise)  # line 17
            sampler.update(ids, told.returns)  # lines 11 and 13
            summary = summarise(told.returns, told.costs, told.good, told.feasible)
            outcome = self._progress.add(told, x, ids, search.generation, self.cost_limit)
        search.population = self._choose_population(told, costs is None)
        guesses = len(self._progress.memory.guess) > 0
        waiting = self._injected[max(0, taken - guesses) :]
        outcome = outcome._replace(memory=memory)
        # All in one statement, which an interrupt cannot tear.
        vars(self).update(
            _search=search, sampler=sampler, _progress=outcome, _injected=waiting, _asked=None
        )
        if minimise is None and not self._told_way and self._runs_off():
            self._told_way = True
            text = "tell: the search maximises, and runs off: is minimise=True meant?"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        return Report(
            generation=search.generation,
            noise_std=float(sigma.max()),
            counts=tuple(np.bincount(ids, minlength=self.n_instances).tolist()),
            best_return=math.nan if outcome.best is None else outcome.best.return_,
            **summary,
        )

    def _runs_off(self) -> bool:
        """Return whether all parameters are at their bounds, or sigma has grown 10,000 times."""
        lower, upper, mean = self._options["bounds[0]"], self._options["bounds[1]"], self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            width, room = upper - lower, np.minimum(mean - lower, upper - mean)
        at_bound = np.isfinite(width) & (room <= 1e-3 * width)
        return bool(at_bound.all()) or "tolfacupx" in self.stop(Stops(tolfacupx=1e4))

    @staticmethod
    def _replace_drawn(
        search: Search[PerParameter | Covariance], x: np.ndarray, drawn: np.ndarray, noise: Noise
    ) -> None:
        """Put members that are not those of the noise in the place of what was drawn."""
        moved = np.flatnonzero((x != search.sample(noise)).any(axis=1))
        ways = search.displacement(x[moved])
        drawn[moved] = search.mean + ways
        search.distribution = search.distribution.replace(noise, ways, moved)

    def _choose_population(self, told: EvaluatedGeneration, is_free: bool) -> int:
        """Return the members of the next generation: more where costs tell no slopes."""
        slopes = told.constraints is not None and self._tells_slopes
        if is_free or slopes or self._options["population"]:
            return self.population
        least = arguments.choose_population(self._start.size, self._options, rugged=True)
        return max(self.population, least)

    @property
    def _tells_slopes(self) -> bool:
        """Whether the Lagrangian may rank."""
        alike = self.n_instances == 1 and self._rank.ranking == "isr"
        return alike and bool(self._options["adapt"] != "none")

    def _score(
        self, told: EvaluatedGeneration, drawn: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Memory]:
        """Return the returns and costs that are ranked, of constraints the Lagrangian; and what it learnt."""
        search, memory, good = self._search, self._progress.memory, told.good
        distribution, g, n = search.distribution, told.constraints, drawn.shape[1]
        # Of a crooked constraint the Lagrangian leads astray: every second search is without it.
        searches = self.restarts // (1 + arguments.is_mixed(self._options["integers"]))
        fits = self._tells_slopes and (search.held or searches % 2 == 0) and good.any()
        if g is None or not fits or not isinstance(distribution, Covariance):
            return told.scored, told.ranked, Memory()
        if not (len(memory.recent) or (g <= 0.0).any(axis=0).all()):  # too far for slopes
            return told.scored, told.ranked, Memory()
        rows = np.column_stack((drawn, told.returns, g))
        recent = np.concatenate((memory.recent.reshape(-1, rows.shape[1]), rows[good]))
        recent = recent[-max(count_remembered(n), int(good.sum())) :]
        z = distribution.whiten(recent[:, :n] - search.mean, search.generation)
        scores, slopes = np.full(len(good), np.nan), find_slopes(z, recent[:, n:])
        if (told.seen != good).any():  # their returns are what slopes foresee
            z = distribution.whiten(drawn - search.mean, search.generation)
            rows[:, n] = np.where(good, rows[:, n], slopes.foresee(z))
        scores[told.seen], step = score_members(
            rows[told.seen, n:], slopes, told.tolerance.stiffness
        )
        guess = search.mean + distribution.colour(step[np.newaxis], search.generation)[0]
        guess = guess if search.box is None else search.box.transform(guess)
        memory = Memory(recent.ravel(), guess[: n * np.isfinite(guess).all()])
        return scores, np.zeros(len(good)), memory

    @exclusive
    def restart(self, x0: ArrayLike | None = None, population: int | None = None) -> None:
        """Begin again elsewhere, with the first sigma and more members; what was found is kept.

        Auger and Hansen, "A restart CMA evolution strategy with increasing population size", CEC 2005.
        Generations are counted on, so no noise is drawn twice. An error, as of a sigma that follows a
        schedule, changes nothing.

        A search that has `settled` begins again from its mean, without more members: whole numbers are held,
        so that the Lagrangian learns from members that differ in the other parameters alone.

        Parameters
        ----------
        x0 : array_like of float, (n_parameters,), optional
            By default a random point of the bounds, or the first mean if a side is open; or as said above.
        population : int, optional
            By default twice the present one, or as many.
        """
        given = self._options
        if not self.can_restart:
            refuse("restart", "a sigma that decays by a schedule", "an adapted one", ConfigError)
        lower, upper = given["bounds[0]"], given["bounds[1]"]
        held = self.settled and x0 is None
        if held or x0 is not None:
            mean = self.mean if x0 is None else arguments.read_point(x0, self._start.shape)
        elif np.isfinite(lower).all() and np.isfinite(upper).all():
            rng = np.random.default_rng((self.seed, self.restarts + 1))
            mean = rng.uniform(lower, upper)
        else:
            mean = self._start
        search = copy.copy(self._search)
        members = self.population * (1 if held else 2) if population is None else population
        search.population, search.held = self._read_population(members), held
        search.begin_at(mean)
        search.distribution = self._round
        if held and isinstance(self._round, Covariance):
            search.distribution = self._round.shrink(SETTLED)
        again = self._progress._replace(
            restarts=self.restarts + 1, record=Record(), tolerance=Tolerance(), memory=Memory()
        )
        vars(self).update(_search=search, _progress=again, _warned=False, _asked=None)

    def _read_population(self, members: int) -> int:
        """Return a number of members that fits the options."""
        plain = {name: self._options[name].item() for name in arguments.OPTIONS}
        return int(arguments.read_options({**plain, "population": members}, 0)["population"])

    def get_state(self) -> dict[str, np.ndarray]:
        """Return a copy of the state as plain arrays, which `numpy.savez` can write.

        The options are recorded, to be compared by `set_state`. Members asked for and not yet told are
        not: after `set_state`, `ask` returns the same ones again.
        """
        state = {
            **{f"option.{name}": array.copy() for name, array in self._options.items()},
            "start": self._start.copy(),
            "population": np.array(self.population, np.int64),
            "generation": np.array(self.generation, np.int64),
            "held": np.array(self._search.held, np.int64),
            "mean": self._search.mean.copy(),
            "injected": self._injected.copy(),
            **{f"spread.{name}": array for name, array in self._search.distribution.pack().items()},
            **self._progress.pack(self._start.size),
            **{f"sampler.{name}": array for name, array in self.sampler.get_state().items()},
        }
        return {**state, "checksum": progress.sign_state(state)}

    @classmethod
    def from_state(cls, state: Mapping[str, ArrayLike], *, trust: bool = False) -> Self:
        """Return an `Evolution` that continues from a state, with the options recorded there.

        Parameters and errors are those of `set_state`; `trust`: import a ranking or sampler that it names.
        """
        progress.check_mapping(state)
        options: dict[str, Any] = {}
        given = ("sigma", "integers", "bounds[0]", "bounds[1]", *arguments.OPTIONS)
        for name in ("start", *(f"option.{name}" for name in given)):
            if name not in state:
                raise InputError(f"state: read no '{name}'; expected what get_state returned")
            array = np.array(state[name])
            options[name.removeprefix("option.")] = array if array.ndim else array.item()
        bounds = options.pop("bounds[0]"), options.pop("bounds[1]")
        options["population"] = options["population"] or None
        with trusting(trust):
            options |= {name: read_kept(options[name], name) for name in ("ranking", "sampler")}
            evolution = cls(options.pop("start"), bounds=bounds, **options)
        evolution.set_state(state)
        return evolution

    @exclusive
    def set_state(self, state: Mapping[str, ArrayLike]) -> None:
        """Continue, in the same bytes, from what `get_state` returned or the file that `numpy.savez` wrote.

        An `InputError`, where an array is missing, an option differs or a value cannot be, changes nothing.
        """
        read = progress.read_state(state, self.get_state())
        search, sampler = copy.copy(self._search), copy.copy(self.sampler)
        distribution = {name: read[f"spread.{name}"] for name in search.distribution.pack()}
        search.distribution = search.distribution.unpack(distribution)
        search.mean, search.held = read["mean"], bool(read["held"])
        search.generation, search.population = int(read["generation"]), int(read["population"])
        sampler.set_state({name: read[f"sampler.{name}"] for name in sampler.statistics})
        vars(self).update(
            _search=search,
            sampler=sampler,
            _start=read["start"],
            _progress=Progress.unpack(read),
            _injected=read["injected"],
            _asked=None,
        )

    @property
    def can_restart(self) -> bool:
        """Whether sigma is adapted and follows no schedule, which would go on where it is."""
        return bool(self._options["adapt"] != "none" and self._options["noise_decay"] == 1.0)

    @property
    def settled(self) -> bool:
        """Whether sigma is small but for whole numbers that stand beside it, under constraints.

        Then `restart` holds them; as long as they are held it has not settled.
        """
        search, whole = self._search, self._options["integers"]
        small = (search.sigma < SETTLED * search.distribution.first)[~whole].all()
        told = len(self._progress.tolerance.scales) > 0 and self.can_restart
        return bool(small and told and not search.held and arguments.is_mixed(whole))

    @property
    def population(self) -> int:
        """Members of a generation."""
        return self._search.population

    @property
    def mean(self) -> np.ndarray:
        """Mean of the search distribution, inside the bounds, float64 (n_parameters,), a copy."""
        return self._search.found

    @property
    def generation(self) -> int:
        """Number of finished generations."""
        return self._search.generation

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviation of the present generation's noise, float64 (n_parameters,)."""
        return self._search.sigma

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the present generation's noise, float64 (n_parameters, n_parameters).

        Without a matrix the diagonal alone, (n_parameters,). A new search that starts from `mean` with
        sigma 1 and this `covariance` goes on where this one is.
        """
        distribution = self._search.distribution
        if not isinstance(distribution, FullCovariance):
            return np.asarray(np.square(self.sigma))
        unit = distribution.unit(self.generation) * distribution.state.size
        outer: np.ndarray = np.outer(unit, unit)
        return np.asarray(distribution.state.covariance * outer)

    @property
    def evaluations(self) -> int:
        """Members told so far, those that failed and those before a restart included."""
        return self._progress.evaluations

    @property
    def restarts(self) -> int:
        """Number of restarts so far."""
        return self._progress.restarts

    @property
    def closest(self) -> Best | None:
        """The member of the least cost so far, the first of equal ones; None if all failed.

        It says how near the search is as long as there is no `best`.
        """
        return self._progress.closest

    @property
    def best(self) -> Best | None:
        """The best feasible member so far; None without one.

        With several instances, a member is evaluated on one of them only, and returns of different
        instances need not be comparable: judge `mean` on all of them instead.
        """
        return self._progress.best

    @property
    def failed(self) -> int:
        """Members of the last generation whose return or cost was not finite."""
        return self._progress.failed

    def stop(self, limits: Stops | None = None) -> dict[str, float]:
        """Return why the search is over: the limits reached, by name; empty, so false, while it is not.

        The names are those of `Stops`; "noeffectcoord": a fifth of sigma no longer changes a parameter of the
        mean; "noeffectaxis": nor does a tenth of a column of the matrix's root the mean; "unsettled": sigma
        is as large as at first, though whole numbers are held. You may tell further generations all the same,
        or `restart`.
        """
        return progress.find_reasons(read_limits(limits), self._search, self._progress)

    def result(self, limits: Stops | None = None) -> Result:
        """Return what was found so far, and why the search is over, if it is."""
        nothing = Best(np.full(self._start.size, np.nan), math.nan, math.nan, 0, 0)
        found = self.best or self.closest or nothing
        return Result(
            x=found.parameters.copy(),
            value=found.return_,
            violation=max(found.cost - self.cost_limit, 0.0),  # nan stays
            mean=self.mean,
            feasible=self.best is not None,
            evaluations=self.evaluations,
            generations=self.generation,
            restarts=self.restarts,
            reasons=tuple(self.stop(limits)),
        )

    def __repr__(self) -> str:
        best = f"best return {self.best.return_:g}" if self.best else "no feasible member yet"
        if self.closest and not self.best:
            best += f", least cost {self.closest.cost:g}"
        return (
            f"<Evolution of {self._start.size} parameters, adapt '{self._options['adapt']}', population "
            f"{self.population}: generation {self.generation}, {self.evaluations} evaluations, {best}>"
        )
