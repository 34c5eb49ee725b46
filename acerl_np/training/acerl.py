"""ACERL, Algorithm 1 of the paper: train a policy on several instances by constrained evolution."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Self

import numpy as np

from acerl_np.evolution import Ranker, make_sampler
from acerl_np.evolution.records import summarise
from acerl_np.evolution.search import Average, Search
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.network import Policy
from acerl_np.problem.instance import Instance, check_names, list_instances
from acerl_np.support.errors import CheckpointError, describe
from acerl_np.support.files import write_atomically
from acerl_np.support.numbers import Whole, check_seed
from acerl_np.support.sharing import CopiedWhole, whole
from acerl_np.support.team import Team, find_team
from acerl_np.support.workers import THREADS, Workers
from acerl_np.training.checkpoint import (
    MAX_COUNT,
    check_parameters,
    load_checkpoint,
    refuse_unusable,
    save_checkpoint,
    unpack,
)
from acerl_np.training.config import Config, check_config
from acerl_np.training.curves import VALUES, Curve, CurvePoint, format_curves
from acerl_np.training.forms import (
    count_form_parameters,
    make_form,
    make_search,
    pack_search,
    restore_search,
)
from acerl_np.training.history import (
    HISTORY_COLUMNS,
    MEANS,
    Generation,
    format_history,
    pack_history,
    unpack_history,
)
from acerl_np.training.records import TrainingRecords
from acerl_np.training.remote import Split


class ACERL(CopiedWhole):
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

    Examples
    --------
    >>> import acerl_np
    >>> instances = acerl_np.load_suite("dmh-train")
    >>> trainer = acerl_np.ACERL(instances, acerl_np.Config(generations=2), seed=0)
    >>> trainer.run()
    >>> trainer.policy
    Policy(219-128-128-12, 46,220 parameters)
    """

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
        self.instances = list_instances(instances)
        self.config = Config() if config is None else check_config(config)
        seed = self.seed = check_seed(seed)
        check_names(self.instances)
        self.history: list[Generation] = []
        self._seconds = 0.0
        self._decisions = 0

        self.watch: Callable[[], object] | None = None
        self._workers = Workers(threads)
        self._form = make_form(self.instances, self.config, self._workers, tile)
        start = self._form.start(seed)
        self.search = make_search(start, self.config, seed, self._workers)
        self._curve = Curve(self.instances, self._form, self.config, seed)
        self._average = Average(self.search.mean)
        self.sampler = make_sampler(
            self.config.sampler,
            len(self.instances),
            seed,
            alpha_u=self.config.alpha_u,
            advantage=self.config.advantage,
        )
        self._records = TrainingRecords(self._form.problem, self.sampler, self.config)
        self._split: Split | None = None
        if executor is not None:
            team = find_team(executor)
            config = replace(self.config, records_per_member=self._records.each)
            self._split = Split(team, self._form, self.instances, config)
        self._rank = Ranker(
            self.config.ranking,
            self.config.shaping,
            self.config.cost_limit,
            self.config.p_f,
            self.config.penalty,
            self.config.margin,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave the executor out: it belongs to whoever gave it."""
        return {**vars(self), "_split": None}

    @property
    def _names(self) -> list[str]:
        return [instance.name for instance in self.instances]

    @property
    def strategy(self) -> Search[Any]:
        """Another name of `search`."""
        return self.search

    @property
    def generation(self) -> int:
        """Number of finished generations."""
        return self.search.generation

    @property
    def done(self) -> bool:
        """Whether all generations are finished, or all decisions taken."""
        if self.config.decisions is not None:
            return self._decisions >= self.config.decisions
        return self.generation >= self.config.generations

    @property
    def curve(self) -> list[CurvePoint]:
        """Looks at theta, before the first generation and after every `curve_every`."""
        return self._curve.points

    @property
    def policy(self) -> Policy | IndexPolicy:
        """The policy as trained so far: `Config.outcome` says of which generations."""
        return self._form.make_policy(self._choose())

    def _choose(self) -> np.ndarray:
        if self.config.outcome == "average":
            return self._average.theta
        return self._curve.choose(self.search.mean, self.generation, self._decisions)

    def _observe(self) -> None:
        self._curve.observe(self._present(), self.generation, self._decisions)

    def _present(self) -> np.ndarray:
        """Return the parameters that a look shows."""
        is_average = self.config.outcome == "average"
        return self._average.theta if is_average else self.search.mean

    def _draft(self) -> Self:
        """Return a trainer for a step: it shares with this one what no step changes."""
        draft = object.__new__(type(self))
        vars(draft).update(vars(self))
        draft.search, draft._average = copy.copy(self.search), copy.copy(self._average)
        draft._curve, draft.history = copy.copy(self._curve), list(self.history)
        draft._records = copy.copy(self._records)
        draft.sampler = draft._records.sampler = copy.deepcopy(self.sampler)
        return draft

    @whole
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
        dealt = self._records.deal(noise)  # line 9
        self._workers.watch = self.watch
        try:
            outcome = (self._split or self._form).play(search, noise, dealt)  # lines 8 and 10
        finally:
            self._workers.watch = None
        returns = -outcome.makespan.reshape(dealt.rows.shape)
        costs = outcome.tardiness.reshape(dealt.rows.shape)
        utilities = self._rank.rank_population(returns, costs, dealt.rows, noise)  # 12, 14, 16
        search.tell(utilities, noise)  # line 17; a step that is refused changes nothing
        self.sampler.update(dealt.records.ravel(), returns.ravel())  # lines 11, 13
        self._average.add(search.mean, self.generation)
        self._decisions += int(outcome.decisions.sum())
        self._seconds += time.perf_counter() - started
        self._record(returns.ravel(), costs.ravel(), dealt.records.ravel(), sigma)
        self._observe()
        return self.history[-1]

    def _record(
        self, returns: np.ndarray, costs: np.ndarray, instances: np.ndarray, noise_std: float
    ) -> None:
        summary = summarise(returns, costs, np.isfinite(returns), costs < self.config.cost_limit)
        self.history.append(
            Generation(
                generation=self.generation,
                decisions=self._decisions,
                seconds=self._seconds,
                noise_std=noise_std,
                counts=tuple(np.bincount(instances, minlength=len(self.instances)).tolist()),
                **summary,
            )
        )

    def run(self, callback: Callable[[Generation], object] | None = None) -> None:
        """Train until `config.generations` are finished, or `config.decisions` taken.

        Parameters
        ----------
        callback : callable, optional
            Called with the record of every finished generation; training stops early if what it returns is
            true, so a callback that only looks returns nothing.
        """
        while not self.done:
            record = self.step()
            if callback is not None and callback(record):
                return

    def write_history(self, path: str | os.PathLike[str]) -> None:
        """Write `history` as CSV, one line per generation, atomically.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        write_atomically(path, format_history(self.history, self._names).encode())

    def write_curves(self, path: str | os.PathLike[str]) -> None:
        """Write `curve` as CSV, one line per look and record, the present theta last; atomically.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        points = list(self.curve)
        if points and points[-1].generation != self.generation:
            points.append(self._curve.look(self._present(), self.generation, self._decisions))
        write_atomically(path, format_curves(points, self._names).encode())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint that `resume` continues from.

        Raises
        ------
        StorageError
            If the file cannot be written; an older checkpoint stays as it was.
        """
        save_checkpoint(
            path,
            settings={
                "config": self.config.to_dict(),
                "seed": self.seed,
                "generation": self.generation,
                "noise_std": float(self.search.sigma.max()),
                "decisions": self._decisions,
            },
            instances=self.instances,
            parts=self._pack(),
        )

    def _pack(self) -> dict[str, Any]:
        failed = [record.failed for record in self.history]
        return {
            "theta": self.search.mean,
            "spread": pack_search(self.search),
            **self._average.pack(),
            **pack_history(self.history, len(self.instances)),
            "failed": np.array(failed, np.int64),
            "curve": self._curve.pack(),
            "sampler": self.sampler.get_state(),
        }

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        generations: int | None = None,
        decisions: int | None = None,
        threads: int | None = None,
        executor: Executor | Team | None = None,
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

        Raises
        ------
        CheckpointError
            If the file is not a usable checkpoint, or has more generations or decisions than asked for.
        ConfigError
            If `generations`, `decisions` or `threads` is no usable number.
        """
        THREADS.read("threads", threads)
        settings, instances, arrays = load_checkpoint(path)
        with refuse_unusable(path):
            stored = settings["config"]
            if stored.get("form") != "index":  # from before there was another kind
                stored.setdefault("slots", "pool")
            config = Config.from_dict({**stored, "hidden": tuple(stored["hidden"])})
            # Before anything is allocated for the network that the settings describe.
            expected = count_form_parameters(instances, config)
            if arrays["theta"].shape != (expected,):
                raise CheckpointError(
                    f"theta: read shape {arrays['theta'].shape}; expected ({expected},)"
                )
            trainer = cls(
                instances, config, seed=settings["seed"], threads=threads, executor=executor
            )
            trainer._restore(int(settings["generation"]), int(settings["decisions"]), arrays)
        # Steps may be taken beyond the last generation, if it is the end.
        beyond = config.decisions is None and trainer.generation > config.generations
        if config.records_per_member is None and (
            beyond or (generations, decisions) != (None, None)
        ):
            # Another end must not change what is played from here on, nor after the next stop.
            config = trainer.config = replace(config, records_per_member=trainer._records.each)
        if generations is not None:
            trainer.config = replace(config, generations=generations, decisions=None)
        elif beyond:
            trainer.config = replace(config, generations=trainer.generation)
        if generations is not None and trainer.generation > generations:
            raise CheckpointError(
                f"{path}: has {trainer.generation} generations already; "
                f"expected at least as many (--generations), read {trainer.config.generations}"
            )
        if decisions is not None:
            trainer.config = replace(trainer.config, decisions=decisions)
            # The last generation goes beyond the number that it was trained to.
            if decisions < trainer._decisions and decisions != config.decisions:
                raise CheckpointError(
                    f"{path}: has {trainer._decisions} decisions already; "
                    f"expected at least as many (--decisions), read {decisions}"
                )
        return trainer

    def _restore(self, generation: int, decisions: int, arrays: dict[str, np.ndarray]) -> None:
        if not 0 <= decisions <= MAX_COUNT:
            raise CheckpointError(
                f"decisions: read {describe(decisions)}; expected a count from 0 to {MAX_COUNT:,}"
            )
        template = self._pack()
        template["curve"]["best_theta"] = self.search.mean[:0]  # where a look is the best
        unknown = ["history", *(f"curve.{name}" for name in VALUES)]
        found = unpack(template, arrays, unknown=unknown)
        for name in ("theta", "average"):
            check_parameters(name, found[name])
        shape, expected = found["history"].shape, (generation, len(HISTORY_COLUMNS))
        if shape != expected:
            raise CheckpointError(f"history: read shape {shape}; expected {expected}")
        missing = np.isnan(found["history"])
        # A generation in which no member finished has no means.
        missing[:, MEANS] &= (found["failed"] == 0)[:, np.newaxis]
        if missing.any():
            raise CheckpointError("history: not finite; expected finite numbers")
        records = unpack_history(Generation, found)
        self.history = [
            replace(record, failed=failed)
            for record, failed in zip(records, found["failed"].tolist(), strict=True)
        ]
        self._curve.restore(found["curve"], generation, found["theta"].size)
        restore_search(self.search, found["theta"], generation, found["spread"])
        self._average.restore(found["average"])
        self.sampler.set_state(found["sampler"])
        self._decisions = decisions
        self._seconds = self.history[-1].seconds if self.history else 0.0
