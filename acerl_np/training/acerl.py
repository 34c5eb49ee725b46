"""ACERL, Algorithm 1 of the paper: train a policy on several instances by constrained evolution."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from acerl_np.evolution import Ranker, Strategy, make_sampler
from acerl_np.evolution.records import summarise
from acerl_np.kernels.network import count_parameters, make_network
from acerl_np.policies.network import Policy, initial_parameters
from acerl_np.policies.origin import Origin
from acerl_np.problem.instance import Instance, check_names, list_instances
from acerl_np.problem.tables import build_problem, count_actions, count_features, find_scaling
from acerl_np.simulation.arena import Arena
from acerl_np.support.errors import CheckpointError, describe, make_printable
from acerl_np.support.files import write_atomically
from acerl_np.support.numbers import check_seed
from acerl_np.support.workers import Workers
from acerl_np.training.checkpoint import MAX_COUNT, check_array, load_checkpoint, save_checkpoint
from acerl_np.training.config import Config
from acerl_np.training.curves import Curve, CurvePoint, format_curves
from acerl_np.training.history import Generation, format_history, pack_history, unpack_history

UNUSABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
"""What the contents of a file that holds something else may raise."""


def find_layer_sizes(instances: Sequence[Instance], hidden: Sequence[int]) -> list[int]:
    """Return the layer sizes of a network for the largest of these instances' floors."""
    slots = max(instance.layout.task_slots for instance in instances)
    fleet = max(len(instance.layout.vehicles) for instance in instances)
    return [count_features(slots, fleet), *hidden, count_actions(fleet)]


class ACERL:
    """Adaptive constrained evolutionary reinforcement learning (Algorithm 1).

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

    Attributes
    ----------
    history : list of Generation
    curve : list of CurvePoint
        Looks at theta, before the first generation and after every `curve_every`.

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
        seed: int = 0,
        threads: int | None = None,
        tile: int | None = None,
    ) -> None:
        self.instances = list_instances(instances)
        self.config = Config() if config is None else config
        seed = self.seed = check_seed(seed)
        check_names(self.instances)
        self.history: list[Generation] = []
        self._seconds = 0.0
        self._decisions = 0

        scaling = find_scaling(self.instances) if self.instances else None
        self._problem = build_problem(self.instances, scaling=scaling, horizon=self.config.horizon)
        slots = [instance.layout.task_slots for instance in self.instances]
        fleets = [len(instance.layout.vehicles) for instance in self.instances]
        self._shape: dict[str, Any] = {
            "hidden": self.config.hidden,
            "task_slots": max(slots),
            "n_vehicles": max(fleets),
            "scaling": scaling,
            "smallest": (min(slots), min(fleets)),
            "has_biases": self.config.biases,
            "standardises": self.config.standardise,
            "origin": Origin.of(self.instances),
        }
        sizes = find_layer_sizes(self.instances, self.config.hidden)
        network = make_network(
            sizes, has_biases=self.config.biases, standardises=self.config.standardise
        )
        self._workers = Workers(threads)
        self._arena = Arena(self._problem, network, self._workers, tile=tile)
        shared = Arena(self._problem, network, self._workers, shared=True)
        self._curve = Curve(self.instances, shared, self.config, seed)
        theta = initial_parameters(
            sizes,
            seed,
            initialisation=self.config.initialisation,
            has_biases=self.config.biases,
        )
        self.search = Strategy(
            theta,
            seed=seed,
            population=self.config.population,
            learning_rate=self.config.learning_rate,
            noise_std=self.config.noise_std,
            noise_decay=self.config.noise_decay,
            noise_decay_every=self.config.noise_decay_every,
            antithetic=self.config.antithetic,
            workers=self._workers,
        )
        self.sampler = make_sampler(
            self.config.sampler,
            len(self.instances),
            seed,
            alpha_u=self.config.alpha_u,
            advantage=self.config.advantage,
        )
        self._rank = Ranker(
            self.config.ranking, self.config.shaping, self.config.cost_limit, self.config.p_f
        )

    @property
    def _names(self) -> list[str]:
        return [instance.name for instance in self.instances]

    @property
    def strategy(self) -> Strategy:
        """Another name of `search`."""
        return self.search

    @property
    def generation(self) -> int:
        """Number of finished generations."""
        return self.search.generation

    @property
    def done(self) -> bool:
        """Whether all generations are finished."""
        return self.generation >= self.config.generations

    @property
    def curve(self) -> list[CurvePoint]:
        """Looks at theta, before the first generation and after every `curve_every`."""
        return self._curve.points

    @property
    def policy(self) -> Policy:
        """The policy pi_theta as trained so far: of the last generation, or of the best look."""
        theta = self._curve.choose(self.search.theta, self.generation, self._decisions)
        return Policy(theta, **self._shape)

    def _observe(self) -> None:
        self._curve.observe(self.search.theta, self.generation, self._decisions)

    def step(self) -> Generation:
        """Train one generation (Algorithm 1, lines 5 to 17).

        Returns
        -------
        Generation
        """
        self._observe()
        started = time.perf_counter()
        search, noise_std = self.search, self.search.noise_std
        noise = search.noise()  # line 6
        instances = self.sampler.deal(noise)  # line 9
        returns, costs, decisions = self._arena.play_population(  # lines 8 and 10
            search.theta, noise_std, noise, instances
        )
        utilities = self._rank(returns, costs, instances, noise)  # lines 12, 14, 16
        search.tell(utilities, noise)  # line 17; a step that is refused changes nothing
        self.sampler.update(instances, returns)  # lines 11, 13
        self._decisions += int(decisions.sum())
        self._seconds += time.perf_counter() - started
        self._record(returns, costs, instances, noise_std)
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
        """Train until `config.generations` are finished.

        Parameters
        ----------
        callback : callable, optional
            Called with the record of every finished generation; training stops early if it returns
            True.
        """
        while not self.done:
            record = self.step()
            if callback is not None and callback(record) is True:
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
            points.append(self._curve.look(self.search.theta, self.generation, self._decisions))
        write_atomically(path, format_curves(points, self._names).encode())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint that `resume` continues from.

        Raises
        ------
        StorageError
            If the file cannot be written; an older checkpoint stays as it was.
        """
        sampler = {f"sampler.{name}": array for name, array in self.sampler.get_state().items()}
        save_checkpoint(
            path,
            settings={
                "config": self.config.to_dict(),
                "seed": self.seed,
                "generation": self.generation,
                "noise_std": self.search.noise_std,
                "decisions": self._decisions,
            },
            instances=self.instances,
            arrays={
                "theta": self.search.theta,
                **pack_history(self.history, len(self.instances)),
                **self._curve.pack(),
                **sampler,
            },
        )

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        generations: int | None = None,
        threads: int | None = None,
    ) -> ACERL:
        """Restore a run from its checkpoint; it ends in the same bytes as without a stop.

        Parameters
        ----------
        path : path-like
        generations : int, optional
            Train up to this many generations instead of the number in the checkpoint.
        threads : int, optional

        Raises
        ------
        CheckpointError
            If the file is not a usable checkpoint, or has more generations than asked for.
        ConfigError
            If `generations` is no usable number.
        """
        settings, instances, arrays = load_checkpoint(path)
        try:
            config = Config.from_dict(
                {**settings["config"], "hidden": tuple(settings["config"]["hidden"])}
            )
            # Before anything is allocated for the network that the settings describe.
            expected = count_parameters(find_layer_sizes(instances, config.hidden))
            if arrays["theta"].shape != (expected,):
                raise CheckpointError(
                    f"theta: read shape {arrays['theta'].shape}; expected ({expected},)"
                )
            trainer = cls(instances, config, seed=settings["seed"], threads=threads)
            trainer._restore(settings, arrays)
        except UNUSABLE as error:
            reason = make_printable(str(error)[:400])
            raise CheckpointError(f"{path}: not a usable checkpoint: {reason}") from error
        if generations is not None:
            trainer.config = replace(config, generations=generations)
        elif trainer.generation > trainer.config.generations:
            # Steps were taken beyond the end.
            trainer.config = replace(trainer.config, generations=trainer.generation)
        if trainer.generation > trainer.config.generations:
            raise CheckpointError(
                f"{path}: has {trainer.generation} generations already; "
                f"expected at least as many (--generations), read {trainer.config.generations}"
            )
        return trainer

    def _restore(self, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        generation, decisions = int(settings["generation"]), int(settings["decisions"])
        if not 0 <= decisions <= MAX_COUNT:
            raise CheckpointError(
                f"decisions: read {describe(decisions)}; expected a count from 0 to {MAX_COUNT:,}"
            )
        theta = arrays["theta"]
        check_array("theta", theta, self.search.theta.shape, "f")
        sampler = {}
        for name, own in self.sampler.get_state().items():
            sampler[name] = array = arrays[f"sampler.{name}"]
            # The least and largest return of an instance that nobody played are infinite.
            bounds = name in ("least", "largest")
            check_array(f"sampler.{name}", array, own.shape, own.dtype.kind, finite=not bounds)
            if bounds and np.isnan(array).any():
                raise CheckpointError(f"sampler.{name}: not finite; expected finite numbers")
        self.history.extend(unpack_history(arrays, generation, len(self.instances)))
        self._curve.restore(arrays, generation, theta.size)
        self.search.mean = theta.astype(np.float32)
        self.search.generation = generation
        self.sampler.set_state(sampler)
        self._decisions = decisions
        self._seconds = self.history[-1].seconds if self.history else 0.0
