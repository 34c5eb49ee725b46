"""ACERL, Algorithm 1 of the paper: train a policy on several instances by constrained evolution."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Self

import numpy as np

from acerl_np.evolution import InstanceSampler, Ranker, make_sampler
from acerl_np.evolution.records import summarise
from acerl_np.evolution.search import Search
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.network import Policy
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import CheckpointError, ConfigError, refuse
from acerl_np.support.fields import Field, Whole
from acerl_np.support.files import FilePath
from acerl_np.support.sharing import exclusive, transactional
from acerl_np.support.team import Team, find_team
from acerl_np.support.trust import trusting
from acerl_np.support.workers import THREADS, Workers
from acerl_np.training import checkpoint
from acerl_np.training.config import Config, check_config
from acerl_np.training.history import (
    HISTORY_COLUMNS,
    VALUES,
    CurvePoint,
    Generation,
    pack_columns,
    pack_curve,
)
from acerl_np.training.parametrisations import make_parametrisation, make_search
from acerl_np.training.records import TrainingRecords
from acerl_np.training.remote import Split
from acerl_np.training.trainer import Trainer

LATE = 3.0
"""Power of the generation with which a mean weighs in the average."""


def move_average(average: np.ndarray, mean: np.ndarray, generation: int) -> np.ndarray:
    """Return the average of a search's means after one more, of which that of generation t weighs about t^3.

    One mean is as good as the noise of the last generation's ranking; the late ones together are better.
    No end need be known (Shamir and Zhang, "Stochastic gradient descent for non-smooth optimization:
    convergence results and optimal averaging schemes", ICML 2013, polynomial-decay averaging). The first mean
    stands until generation 1 has one.

    Parameters
    ----------
    average : ndarray(float64, (n_parameters,))
    mean : ndarray(float, (n_parameters,))
    generation : int, 1 for the first
    """
    moved: np.ndarray = average + (LATE + 1.0) / (generation + LATE) * (mean - average)
    return moved


class ACERL(Trainer[Generation]):
    """Adaptive constrained evolutionary reinforcement learning (Algorithm 1).

    A trainer can be pickled and copied between two generations: the copy goes on to the same bytes, on
    threads of its own. An executor stays with the original.

    Parameters
    ----------
    instances : Instance or sequence of Instance
        The training instances.
    config : Config
    seed : int
        0 to 2**63 - 1; the same seed gives the same policy, whatever the threads and tiles.
    threads : int, optional
        By default one per core.
    tile : int, optional
        Members that a worker plays side by side; no result depends on it.
    executor : concurrent.futures.Executor or Team, optional
        Whose workers play the members, for generations of a fifth of a second or more; by default threads.
        Its workers import this package; no result depends on it.

    Attributes
    ----------
    history : list of Generation
    curve : list of CurvePoint
        Looks at theta, before the first generation and after every `curve_every`.
    watch : callable, optional
        Called now and then while this process plays a generation; what it raises gives the generation up.

    Raises
    ------
    InputError
        If there is no instance, two share a name, or an option does not fit.

    See Also
    --------
    Config : Its options.
    evaluate_policy : How good the policy is.

    Examples
    --------
    >>> import acerl_np
    >>> instances = acerl_np.load_suite("dmh-train")
    >>> trainer = acerl_np.ACERL(instances, acerl_np.Config(generations=2), seed=0)
    >>> trainer.run()
    >>> trainer.policy
    Policy(219-128-128-12, 46,220 parameters)
    """

    kind = "checkpoint"
    columns = HISTORY_COLUMNS

    def __init__(
        self,
        instances: Instance | Sequence[Instance],
        config: Config | None = None,
        *,
        seed: Whole = 0,
        threads: int | None = None,
        tile: int | None = None,
        executor: Executor | Team | None = None,
    ) -> None:
        asked = Config() if config is None else check_config(config)
        super().__init__(instances, seed, asked.curve_trials, Workers(threads))
        config = self.config = asked.resolve(self.instances)
        self.watch: Callable[[], object] | None = None
        self._decisions = 0
        self._parametrisation = make_parametrisation(self.instances, config, self._workers, tile)
        goal = self.goal = config.goal
        self._problem = self._parametrisation.problem
        self.search = make_search(self._parametrisation, config, self.seed, self._workers)
        self._average = self.search.mean.astype(np.float64)
        self._best: CurvePoint | None = None
        self._best_theta = np.empty(0, np.float32)
        self._sampler = make_sampler(
            config.sampler,
            len(self.instances),
            self.seed,
            alpha_u=config.alpha_u,
            advantage=config.advantage,
        )
        self._records = TrainingRecords(self._problem, config)
        self._split: Split | None = None
        if executor is not None:
            # What is a user's own stays here: workers play and measure.
            usual = goal.without_own()
            played = replace(
                config,
                records_per_member=self._records.each,
                objective=usual.objective,
                cost=usual.cost,
                ranking=Config.ranking,
                sampler=Config.sampler,
            )
            self._split = Split(find_team(executor), self._parametrisation, self.instances, played)
        self._rank = Ranker(
            config.ranking,
            config.shaping,
            goal.cost_limit,
            config.p_f,
            config.penalty * goal.scale / goal.cost_scale,
            config.margin * goal.cost_scale,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave the executor out: it belongs to whoever gave it."""
        return {**vars(self), "_split": None}

    @property
    def strategy(self) -> Search[Any]:
        """Another name of `search`."""
        return self.search

    @property
    def sampler(self) -> InstanceSampler:
        """Deals the training records; one of your own is given in `Config.sampler`."""
        return self._sampler

    @sampler.setter
    def sampler(self, sampler: object) -> None:
        """Refuse a sampler that the configuration, and so a checkpoint, would not name."""
        expected = "Config(sampler=...), which checkpoints name"
        refuse("sampler", "one for a trainer", expected, ConfigError)

    @property
    def generation(self) -> int:
        """Number of finished generations."""
        return self.search.generation

    def __repr__(self) -> str:
        """Return how far it is, and on how many records."""
        c = self.config
        aim = f"{self.generation} of {c.generations} generations"
        if c.decisions is not None:
            aim = f"{self.generation} generations of {c.decisions:,} decisions"
        return f"ACERL({len(self.instances)} records, {aim}, seed={self.seed})"

    @property
    def done(self) -> bool:
        """Whether all generations are finished, or all decisions taken."""
        if self.config.decisions is not None:
            return self._decisions >= self.config.decisions
        return self.generation >= self.config.generations

    @property
    @exclusive
    def policy(self) -> Policy | IndexPolicy:
        """The policy as trained so far: `Config.outcome` says of which generations."""
        if self._best is not None and not self._evaluate_checkpoint().beats(self._best):
            return self._parametrisation.make_policy(self._best_theta)
        return self._show()

    def _show(self) -> Policy | IndexPolicy:
        mean = self.search.mean
        if self.config.outcome == "average":
            mean = self._average.astype(mean.dtype)
        return self._parametrisation.make_policy(mean)

    @property
    def _when(self) -> tuple[int, int]:
        return self.generation, self._decisions

    def _is_due(self) -> bool:
        every = self.config.curve_every
        is_new = not self.curve or self.curve[-1].generation != self.generation
        return every > 0 and self.generation % every == 0 and is_new

    def _keep(self, latest: CurvePoint) -> None:
        super()._keep(latest)
        if self.config.outcome == "best" and (self._best is None or latest.beats(self._best)):
            self._best, self._best_theta = latest, self.search.mean.copy()

    def _draft(self) -> Self:
        """Return a trainer for a step: it shares with this one what no step changes."""
        draft = object.__new__(type(self))
        vars(draft).update(vars(self))
        draft.search, draft._sampler = copy.copy(self.search), copy.deepcopy(self._sampler)
        return draft

    @exclusive
    @transactional
    def step(self) -> Generation:
        """Train one generation (Algorithm 1, lines 5 to 17), wholly or, if interrupted, not at all.

        Returns
        -------
        Generation
        """
        self._observe()
        started = time.perf_counter()
        search, sigma = self.search, float(self.search.sigma.max())
        noise = search.noise()  # line 6
        dealt = self._records.assign(self.sampler, noise)  # line 9
        self._workers.watch = self.watch
        try:
            if self._split is not None:
                outcome = self._split.play(search, noise, dealt)
            else:
                every = (0, noise.population)
                [state] = self._parametrisation.describe(search, [every])
                outcome = self._parametrisation.play(state, noise, dealt, every)  # lines 8 and 10
        finally:
            self._workers.watch = None
        outcome = self.goal.weigh(outcome)
        returns = -outcome.value.reshape(dealt.rows.shape)
        costs = outcome.cost.reshape(dealt.rows.shape)
        ranked = returns
        if weight := self.config.waiting_weight:
            ranked = returns - weight * outcome.waiting.reshape(returns.shape)
        utilities = self._rank.rank_population(ranked, costs, dealt.rows, noise)  # 12, 14, 16
        search.tell(utilities, noise)  # line 17; a step that is refused changes nothing
        self.sampler.update(dealt.records.ravel(), returns.ravel())  # lines 11, 13
        self._average = move_average(self._average, search.mean, self.generation)
        self._decisions += int(outcome.decisions.sum())
        self._seconds += time.perf_counter() - started
        counts = np.bincount(dealt.records.ravel(), minlength=len(self.instances))
        record = Generation(
            generation=self.generation,
            decisions=self._decisions,
            seconds=self._seconds,
            noise_std=sigma,
            counts=tuple(counts.tolist()),
            **summarise(returns, costs, np.isfinite(returns), costs < self.goal.cost_limit),
        )
        self.history = [*self.history, record]
        self._observe()
        return record

    def _describe(self) -> dict[str, Any]:
        return {
            "config": self.config.to_dict(),
            "seed": self.seed,
            "generation": self.generation,
            "noise_std": float(self.search.sigma.max()),
            "decisions": self._decisions,
        }

    def _pack(self) -> dict[str, Any]:
        when, looks = pack_curve(self.curve, len(self.instances))
        columns = {name: looks[:, k].copy() for k, name in enumerate(VALUES)}
        return {
            "theta": self.search.mean,
            "spread": self.search.distribution.pack(),
            "average": self._average,
            **self._pack_lines(),
            "failed": pack_columns(self.history, ["failed"], kind=np.int64)[:, 0],
            "curve": {"when": when, **columns, "best_theta": self._best_theta},
            "sampler": self.sampler.get_state(),
        }

    @classmethod
    def resume(
        cls,
        path: FilePath,
        *,
        generations: int | None = None,
        decisions: int | None = None,
        threads: int | None = None,
        executor: Executor | Team | None = None,
        trust: bool = False,
    ) -> ACERL:
        """Restore a run from its checkpoint; it ends in the same bytes as without a stop.

        Parameters
        ----------
        path : path-like
        generations : int, optional
            Train up to this many generations instead of what the checkpoint says.
        decisions : int, optional
            Train until so many decisions are taken instead.
        threads : int, optional
        executor : concurrent.futures.Executor or Team, optional
            As of a new run.
        trust : bool
            Import functions that it names, see `load_policy`.

        Raises
        ------
        CheckpointError
            If the file is not a usable checkpoint, or has more generations or decisions than asked for.
        ConfigError
            If `generations`, `decisions` or `threads` is no usable number.
        """
        THREADS.read("threads", threads)
        settings, instances, arrays = checkpoint.load_checkpoint(path, cls.kind)
        with checkpoint.refuse_unusable(path), trusting(trust):
            config = Config.from_dict(checkpoint.take_stored(settings["config"]))
            # Before anything is allocated for the network that the settings describe.
            form = make_parametrisation(instances, config, Workers(1))
            checkpoint.check_shape("theta", arrays["theta"], (form.n_parameters,))
            trainer = cls(
                instances, config, seed=settings["seed"], threads=threads, executor=executor
            )
            trainer._restore(int(settings["generation"]), int(settings["decisions"]), arrays)
        trainer._extend(path, generations, decisions)
        return trainer

    def _extend(self, path: FilePath, generations: int | None, decisions: int | None) -> None:
        """Set another end of a resumed training."""
        stored = self.config
        # Steps may be taken beyond the last generation, if it is the end.
        beyond = stored.decisions is None and self.generation > stored.generations
        changes: dict[str, Any] = {"generations": self.generation} if beyond else {}
        if generations is not None:
            changes = {"generations": generations, "decisions": None}
        if decisions is not None:
            changes["decisions"] = decisions
        if not changes:
            return
        # Another end must not change what is played from here on, nor after the next stop.
        self.config = replace(stored, records_per_member=self._records.each, **changes)
        if generations is not None and self.generation > self.config.generations:
            checkpoint.refuse_end(path, self.generation, "generations", generations)
        # The last generation goes beyond the number that it was trained to.
        if decisions is not None and self._decisions > decisions != stored.decisions:
            checkpoint.refuse_end(path, self._decisions, "decisions", decisions)

    def _restore(self, generation: int, decisions: int, arrays: dict[str, np.ndarray]) -> None:
        expected = f"a count from 0 to {checkpoint.MAX_COUNT:,}"
        count = Field(int, 0, checkpoint.MAX_COUNT, expected=expected)
        self._decisions = count.read("decisions", decisions, CheckpointError)
        template = self._pack()
        template["curve"]["best_theta"] = self.search.mean[:0]  # where a look is the best
        unknown = ["history", *(f"curve.{name}" for name in VALUES)]
        found = checkpoint.unpack(template, arrays, unknown=unknown)
        for name in ("theta", "average"):
            checkpoint.check_parameters(name, found[name])
        self._take_lines(checkpoint.unpack_generations(found, self.columns, generation))
        checkpoint.restore_search(self.search, found["theta"], generation, found["spread"])
        n_best = self.search.mean.size * (self.config.outcome == "best")
        every, curve = self.config.curve_every, found["curve"]
        for point in checkpoint.unpack_looks(curve, every, generation, n_best):
            self._keep(point)
        self._best_theta = curve["best_theta"]
        self._average = found["average"]
        self.sampler.set_state(found["sampler"])
