"""Training of a compared learner: episodes, what it remembers, updates; history, curve, checkpoints."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from acerl_np.evolution.sampler import make_sampler
from acerl_np.kernels.random import CURVE
from acerl_np.kernels.rules import N_RULES
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy
from acerl_np.problem.instance import Instance, check_names, list_instances
from acerl_np.problem.packing import UNUSABLE
from acerl_np.problem.scaling import find_scaling
from acerl_np.problem.tables import build_problem
from acerl_np.rivals.episodes import Ended, Episodes
from acerl_np.rivals.history import Round, format_history, pack_history, sum_up, unpack_history
from acerl_np.rivals.learner import Learner, Task, measure_unit
from acerl_np.rivals.lsac import LSAC
from acerl_np.rivals.mappo import MAPPO
from acerl_np.rivals.ppo import PPO
from acerl_np.rivals.rcpom import RCPOM
from acerl_np.rivals.sac import SAC
from acerl_np.rivals.settings import Settings
from acerl_np.simulation.arena import play_list, stream_keys
from acerl_np.support.errors import (
    CheckpointError,
    ConfigError,
    InputError,
    describe,
    make_printable,
)
from acerl_np.support.files import write_atomically
from acerl_np.support.numbers import Whole, check_seed, is_real, is_whole
from acerl_np.support.sharing import CopiedWhole
from acerl_np.support.workers import Workers
from acerl_np.training.checkpoint import check_array, load_checkpoint, save_checkpoint
from acerl_np.training.curves import CurvePoint, format_curves
from acerl_np.training.forms import describe_network

LEARNERS: dict[str, type[Learner]] = {
    "ppo": PPO,
    "sac": SAC,
    "lsac": LSAC,
    "rcpom": RCPOM,
    "mappo": MAPPO,
}
ALGORITHMS = (*LEARNERS, *(f"a{name}" for name in LEARNERS))
"""An "a" before a name: the adaptive instance sampler deals the records, not chance."""

STEPS = 1_000_000
MAX_STEPS = 10**12
ROUND = 10_000
"""Steps of a line of the history."""

KIND = "rival checkpoint"


def find_learner(algorithm: str) -> tuple[type[Learner], bool]:
    """Return an algorithm's class, and whether records are dealt adaptively.

    Raises
    ------
    ConfigError
        If there is no such algorithm.
    """
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        expected = ", ".join(ALGORITHMS)
        raise ConfigError(f"algorithm: read {describe(algorithm)}; expected one of {expected}")
    adaptive = algorithm not in LEARNERS
    return LEARNERS[algorithm[1:] if adaptive else algorithm], adaptive


class RivalTrainer(CopiedWhole):
    """Trains one of the learners that the paper compares with.

    A trainer can be pickled and copied between two steps: the copy goes on to the same bytes.

    Parameters
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    instances : Instance or sequence of Instance
        The training records.
    steps : int
        Decisions to train, in all episodes together; training ends with the update that reaches them.
    seed : int
    settings : Settings or mapping, optional
        Settings of the algorithm that are not its defaults.

    Attributes
    ----------
    history : list of Round
    curve : list of CurvePoint
        Looks at the policy, on all training records with the same draws each time.

    Raises
    ------
    ConfigError
        If there is no such algorithm or setting, or a number is unusable.
    InputError
        If there is no instance, or two share a name.
    """

    def __init__(
        self,
        algorithm: str,
        instances: Instance | Sequence[Instance],
        *,
        steps: int = STEPS,
        seed: Whole = 0,
        settings: Settings | Mapping[str, Any] | None = None,
    ) -> None:
        learner, adaptive = find_learner(algorithm)
        self.algorithm = algorithm
        self.instances = list_instances(instances)
        if not self.instances:
            raise InputError("no instances; expected at least one")
        check_names(self.instances)
        for instance in self.instances:
            instance.check_servable()  # an episode that cannot end has no reward
        self.steps = _check_steps(steps)
        self.seed = check_seed(seed)
        kind = learner.settings_class
        if not isinstance(settings, Settings):
            settings = kind.from_dict(settings or {})
        if type(settings) is not kind:
            raise ConfigError(
                f"settings: read {type(settings).__name__}; expected {kind.__name__} for {algorithm}"
            )
        self.settings: Any = settings
        own = cast(Any, settings)  # of the algorithm's own class
        self._shape = describe_network(self.instances, own.hidden, slots=own.slots)
        sampler = make_sampler("ais" if adaptive else "random", len(self.instances), self.seed)
        self.episodes = Episodes(self.instances, own.episodes, sampler, self.seed, own.slots)
        sim = self.episodes.sim
        n_vehicles = sim.n_actions // N_RULES
        unit = measure_unit(self.instances)
        n_tasks = float(np.mean([instance.n_tasks for instance in self.instances]))
        task = Task(sim.n_features, n_vehicles, N_RULES, self.seed, unit, n_tasks)
        self.learner = learner(task, own)
        self.taken = 0
        self.history: list[Round] = []
        self.curve: list[CurvePoint] = []
        self._seconds = 0.0
        self._workers = Workers(1)
        self._problem = build_problem(self.instances, scaling=find_scaling(self.instances))
        trials = self.settings.look_trials
        self._keys = stream_keys(self.instances, trials, self.seed, purpose=CURVE)
        self._rows = np.repeat(np.arange(len(self.instances)), trials)

    @property
    def done(self) -> bool:
        """Whether all steps are taken."""
        return self.taken >= self.steps

    @property
    def policy(self) -> Policy | AgentPair:
        """The policy as trained so far; it samples its actions unless told otherwise."""
        return self.learner.make_policy(self._shape)

    def step(self) -> Round:
        """Train to the next line of the history: for ten thousand steps, or to the next look.

        Returns
        -------
        Round
        """
        self._observe()
        started = time.perf_counter()
        learner, episodes = self.learner, self.episodes
        every = self.settings.look_every or ROUND
        target = min(*((self.taken // n + 1) * n for n in (ROUND, every)), self.steps)
        ended: list[Ended] = []
        seen = episodes.see()
        while self.taken < target:
            for _ in range(learner.interval):
                actions = learner.act(seen)
                happened = episodes.step(actions)
                now = episodes.see()
                learner.remember(seen, actions, happened, now)
                seen = now
                self.taken += episodes.n_episodes
                if happened.over.any():
                    ended.append(happened)
            learner.update()
        self._seconds += time.perf_counter() - started
        self.history.append(
            sum_up(
                ended,
                steps=self.taken,
                seconds=self._seconds,
                cost_limit=self.settings.cost_limit,
                multiplier=self.learner.multiplier,
                n_records=len(self.instances),
            )
        )
        self._observe()
        return self.history[-1]

    def _observe(self) -> None:
        """Look at the policy if a look is due: before the first step, then every so many."""
        every = self.settings.look_every
        if every and (not self.curve or self.taken // every > self.curve[-1].decisions // every):
            self.curve.append(self._look())

    def _look(self) -> CurvePoint:
        problem, make = self.policy.prepare(self._problem, self.instances)
        played = play_list(problem, make, self._rows, self._keys, self._workers)
        shape = (len(self.instances), -1)
        makespan, tardiness = played.makespan.reshape(shape), played.tardiness.reshape(shape)
        kept = (tardiness < self.settings.cost_limit).mean(axis=1)
        return CurvePoint(
            len(self.history), self.taken, makespan.mean(axis=1), tardiness.mean(axis=1), kept
        )

    def run(self, callback: Callable[[Round], object] | None = None) -> None:
        """Train until all steps are taken.

        Parameters
        ----------
        callback : callable, optional
            Called with every line of the history; training stops early if what it returns is true.
        """
        while not self.done:
            record = self.step()
            if callback is not None and callback(record):
                return

    def write_history(self, path: str | os.PathLike[str]) -> None:
        """Write `history` as CSV, atomically.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        names = [instance.name for instance in self.instances]
        write_atomically(path, format_history(self.history, names).encode())

    def write_curves(self, path: str | os.PathLike[str]) -> None:
        """Write `curve` as CSV, one line per look and record, the present policy last; atomically.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        points = list(self.curve)
        if points and points[-1].decisions != self.taken:
            points.append(self._look())
        names = [instance.name for instance in self.instances]
        write_atomically(path, format_curves(points, names).encode())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint that `resume` continues from.

        Raises
        ------
        StorageError
            If the file cannot be written; an older checkpoint stays as it was.
        """
        n = len(self.instances)
        looks = [(point.makespan, point.tardiness, point.satisfied) for point in self.curve]
        when = [(point.generation, point.decisions) for point in self.curve]
        save_checkpoint(
            path,
            kind=KIND,
            settings={
                "algorithm": self.algorithm,
                "steps": self.steps,
                "seed": self.seed,
                "taken": self.taken,
                "settings": self.settings.to_dict(),
            },
            instances=self.instances,
            arrays={
                **pack_history(self.history, n),
                "curve.when": np.array(when, np.int64).reshape(-1, 2),
                "curve": np.array(looks, np.float64).reshape(-1, 3, n),
                **self.episodes.pack(),
                **self.learner.pack(),
            },
        )

    @classmethod
    def resume(cls, path: str | os.PathLike[str], *, steps: int | None = None) -> RivalTrainer:
        """Restore a run from its checkpoint; it ends in the same bytes as without a stop.

        Parameters
        ----------
        path : path-like
        steps : int, optional
            Train up to so many steps instead of what the checkpoint says.

        Raises
        ------
        CheckpointError
            If the file is not a usable checkpoint, or has more steps than asked for.
        ConfigError
            If `steps` is no usable number.
        """
        stored, instances, arrays = load_checkpoint(path, kind=KIND)
        try:
            trainer = cls(
                stored["algorithm"],
                instances,
                steps=stored["steps"],
                seed=stored["seed"],
                settings={"slots": "pool", **stored["settings"]},
            )
            trainer._restore(int(stored["taken"]), arrays)
        except (*UNUSABLE, OverflowError, AttributeError) as error:
            reason = make_printable(str(error)[:400])
            raise CheckpointError(f"{path}: not a usable checkpoint: {reason}") from error
        if steps is not None:
            trainer.steps = _check_steps(steps)
            # The last update goes beyond the number that it was trained to.
            if trainer.taken > trainer.steps != stored["steps"]:
                raise CheckpointError(
                    f"{path}: has {trainer.taken} steps already; expected at least as many (--steps), "
                    f"read {steps}"
                )
        return trainer

    def _restore(self, taken: int, arrays: dict[str, np.ndarray]) -> None:
        if not 0 <= taken <= 2 * MAX_STEPS:
            raise CheckpointError(f"taken: read {taken}; expected a number of steps")
        n = len(self.instances)
        when, looks = arrays["curve.when"], arrays["curve"]
        check_array("curve.when", when, (len(when), 2), "i")
        check_array("curve", looks, (len(when), 3, n), "f", finite=False)
        self.history.extend(unpack_history(arrays, n))
        for (number, decisions), look in zip(when.tolist(), looks, strict=True):
            self.curve.append(CurvePoint(number, decisions, *look))
        self.episodes.restore(arrays)
        self.learner.restore(arrays)
        self.taken = taken
        self._seconds = self.history[-1].seconds if self.history else 0.0


def _check_steps(steps: object) -> int:
    whole = is_whole(steps) or (is_real(steps) and float(steps).is_integer())  # type: ignore[arg-type]
    if not whole or not 1 <= int(steps) <= MAX_STEPS:  # type: ignore[call-overload]
        raise ConfigError(
            f"steps: read {describe(steps)}; expected a whole number from 1 to {MAX_STEPS:,}"
        )
    return int(steps)  # type: ignore[call-overload, no-any-return]


def train(
    algorithm: str,
    instances: Instance | Sequence[Instance],
    *,
    steps: int = STEPS,
    seed: Whole = 0,
    settings: Settings | Mapping[str, Any] | None = None,
    callback: Callable[[Round], object] | None = None,
) -> Policy | AgentPair:
    """Train one of the learners that the paper compares with, and return its policy.

    Parameters
    ----------
    algorithm : str
        "ppo", "sac", "lsac", "rcpom" or "mappo", with an "a" before it for the adaptive instance sampler.
    instances : Instance or sequence of Instance
        The training records.
    steps : int
        Decisions to train, in all episodes together.
    seed : int
        The same seed gives the same policy.
    settings : mapping, optional
        Settings that are not the defaults, by name: see `acerl_np.rivals.settings`.
    callback : callable, optional
        Called with every line of the history; training stops early if it returns True.

    Returns
    -------
    Policy or AgentPair
        As `evaluate_policy`, `Dispatcher` and `save` take it.

    Raises
    ------
    ConfigError
        If there is no such algorithm or setting, or a number is unusable.
    InputError
        If there is no instance, or two share a name.

    Examples
    --------
    >>> import acerl_np
    >>> agent = acerl_np.rivals.train("ppo", acerl_np.load_suite("dmh-train"), steps=2_000)
    >>> agent
    Policy(219-128-128-12, 46,220 parameters)
    """
    trainer = RivalTrainer(algorithm, instances, steps=steps, seed=seed, settings=settings)
    trainer.run(callback)
    return trainer.policy
