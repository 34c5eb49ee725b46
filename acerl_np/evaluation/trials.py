"""Trials of policies: many keyed episodes per instance, and what they say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evaluation.metrics import satisfied_share
from acerl_np.kernels.state import Outcome, allocate_outcome, read_outcome
from acerl_np.policies.agent import Agent, AgentFunction
from acerl_np.policies.files import AnyPolicy
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.network import Policy
from acerl_np.policies.origin import warn_of_difference
from acerl_np.policies.rules import STATIC, RulePolicy, find_policy_name
from acerl_np.policies.static import StaticPlan, fit_static
from acerl_np.problem.instance import Instance, list_instances
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import play_list, stream_keys
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.errors import ConfigError, InputError, PolicyError, describe
from acerl_np.support.numbers import Whole, check_seed, is_real, is_whole
from acerl_np.support.team import Team, find_team
from acerl_np.support.workers import Workers, check_threads

MAX_TRIALS = 10_000_000

AGENT_EPISODES = 1024
"""Episodes that an agent of your own plays side by side."""

METRICS = ("makespan", "tardiness", "late", "waiting", "utilisation", "empty")
"""What `Trials` holds of every episode."""


@dataclass(frozen=True)
class Playing:
    """How policies are played: passed on as one value, and hashed as one.

    Attributes
    ----------
    trials : int
        Episodes of each instance.
    seed : int
    greedy : bool, optional
        As `evaluate_policy`, and so are the others.
    cost_limit : float
        xi, s.
    horizon : float, optional
        s.
    threads : int, optional
    executor : concurrent.futures.Executor or Team, optional
        No result depends on the last two; two values that differ in them alone are equal.

    Raises
    ------
    InputError
        If there is no trial.
    ConfigError
        If the seed, the number of threads or the cost limit is unusable.
    """

    trials: int = 30
    seed: Whole = 0
    greedy: bool | None = None
    cost_limit: float = 50.0
    horizon: float | None = None
    threads: int | None = field(default=None, compare=False)
    executor: Executor | Team | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not is_whole(self.trials) or not 1 <= self.trials <= MAX_TRIALS:
            raise InputError(
                f"trials: read {describe(self.trials)}; expected a whole number from 1 to {MAX_TRIALS:,}"
            )
        limit: object = self.cost_limit
        if not is_real(limit) and limit != math.inf:
            raise ConfigError(
                f"cost_limit: read {describe(limit)}; expected seconds, or infinity for no limit"
            )
        check_threads(self.threads)
        plain = {"trials": int(self.trials), "seed": check_seed(self.seed)}
        for name, value in {**plain, "cost_limit": float(self.cost_limit)}.items():
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return what decides an outcome, as plain values."""
        names = ("trials", "seed", "greedy", "cost_limit", "horizon")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Trials:
    """Outcomes of repeated episodes.

    Attributes
    ----------
    instances : tuple of str
        Names.
    makespan, tardiness : ndarray(float64, (n_instances, n_trials)), s
        nan where an episode did not finish.
    decisions : int
        Decisions taken in all trials together.
    cost_limit : float
        xi, s.
    late : ndarray(float64, (n_instances, n_trials))
        Share of the tasks that were late; nan where an episode did not finish, as are the next three.
    waiting : ndarray(float64, (n_instances, n_trials)), s
        Mean over the tasks, from the arrival until a vehicle is at the pickup, handling not in it.
    utilisation : ndarray(float64, (n_instances, n_trials))
        Share of the fleet's time, from 0 to the makespan, in which a vehicle has a task. Trips that a
        breakdown undid count for the time that they lasted.
    empty : ndarray(float64, (n_instances, n_trials))
        Share of the metres driven without a load.
    """

    instances: tuple[str, ...]
    makespan: np.ndarray
    tardiness: np.ndarray
    decisions: int
    cost_limit: float
    late: np.ndarray
    waiting: np.ndarray
    utilisation: np.ndarray
    empty: np.ndarray

    @classmethod
    def of(cls, instances: Sequence[Instance], played: Outcome, cost_limit: float = 50.0) -> Trials:
        """Return the trials of episodes that were played instance by instance.

        Parameters
        ----------
        instances : sequence of Instance
        played : Outcome
            As many entries for each of them.
        cost_limit : float
            xi, s.
        """
        shape = (len(instances), -1)
        n_tasks = np.array([[instance.n_tasks] for instance in instances])
        fleet = np.array([[len(instance.layout.vehicles)] for instance in instances])
        makespan = played.makespan.reshape(shape)
        driven = np.where(played.driven > 0.0, played.driven, 1.0).reshape(shape)

        def finished(values: np.ndarray) -> np.ndarray:
            return np.where(np.isnan(makespan), np.nan, values)

        return cls(
            instances=tuple(instance.name for instance in instances),
            makespan=makespan,
            tardiness=played.tardiness.reshape(shape),
            decisions=int(played.decisions.sum()),
            cost_limit=cost_limit,
            late=finished(played.late.reshape(shape) / n_tasks),
            waiting=finished(played.waiting.reshape(shape) / n_tasks),
            utilisation=played.busy.reshape(shape) / (fleet * makespan),
            empty=finished(played.empty.reshape(shape) / driven),
        )

    def select(self, rows: ArrayLike) -> Trials:
        """Return the trials of some instances; `decisions` stay those of all.

        Parameters
        ----------
        rows : array_like of int
            Positions of the instances.
        """
        chosen = np.asarray(rows, np.int64)
        parts = {name: getattr(self, name)[chosen] for name in METRICS}
        return replace(self, instances=tuple(self.instances[k] for k in chosen), **parts)

    @property
    def satisfied(self) -> float:
        """Fraction of trials with tardiness below the limit: the metric P."""
        return satisfied_share(self.tardiness, self.cost_limit)

    @property
    def unfinished(self) -> int:
        """Number of episodes that did not finish."""
        return int(np.isnan(self.makespan).sum())

    def mean_makespan(self) -> np.ndarray:
        """Return the mean over the finished trials of each instance, s; nan where none finished."""
        return _mean_finished(self.makespan)

    def mean_tardiness(self) -> np.ndarray:
        """Return the mean over the finished trials of each instance, s; nan where none finished."""
        return _mean_finished(self.tardiness)

    def mean_late(self) -> np.ndarray:
        """Return the mean share of late tasks over the finished trials of each instance."""
        return _mean_finished(self.late)

    def mean_waiting(self) -> np.ndarray:
        """Return the mean waiting over the finished trials of each instance, s."""
        return _mean_finished(self.waiting)

    def mean_utilisation(self) -> np.ndarray:
        """Return the mean utilisation over the finished trials of each instance."""
        return _mean_finished(self.utilisation)

    def mean_empty(self) -> np.ndarray:
        """Return the mean share of empty travel over the finished trials of each instance."""
        return _mean_finished(self.empty)


def _mean_finished(values: np.ndarray) -> np.ndarray:
    finished = np.isfinite(values)
    if finished.all():
        return np.asarray(values.mean(axis=1))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(finished, values, 0.0).sum(axis=1) / finished.sum(axis=1))


def evaluate_policy(
    policy: AnyPolicy | Lookahead | str | Agent | AgentFunction,
    instances: Instance | Sequence[Instance],
    *,
    trials: int = 30,
    seed: Whole = 0,
    greedy: bool | None = None,
    cost_limit: float = 50.0,
    threads: int | None = None,
    horizon: float | None = None,
    training: Instance | Sequence[Instance] | None = None,
    executor: Executor | Team | None = None,
) -> Trials:
    """Play every instance `trials` times with a policy.

    Parameters
    ----------
    policy : Policy, IndexPolicy, StaticPlan, Lookahead, Agent, str or callable
        A policy of any form, a name of `POLICY_NAMES` such as "EDD", or an agent of your own:
        a function of observations (float32, (B, n_features)) and masks (bool, (B, n_actions)), as
        `Simulator` shows them for these instances, that returns an action for each row; a row without a
        legal action is over, and what is returned for it is ignored. An `Agent` is such a function with the
        sizes, constants and kind of actions of its training.
    instances : Instance or sequence of Instance
    trials : int
    seed : int
    greedy : bool, optional
        Take what a trained policy likes best, or sample; by default as in its training: networks sample,
        as in the paper, index policies do not. A `Lookahead` draws futures only, and its base is greedy.
    cost_limit : float
        xi, s.
    threads : int, optional
        By default one per core; an agent of your own is called by one.
    horizon : float, optional
        s, cut to whole ones, after which an episode is stopped, finished or not; by default never.
        Where vehicles break down at random, `problem.breakdown_limits.find_last_tick` says when.
    training : Instance or sequence of Instance, optional
        Records that "Static" is fitted on, by `fit_static`; not those that judge it.
    executor : concurrent.futures.Executor or Team, optional
        Whose workers play, worth it for lookaheads and large floors; by default threads. Agents of your
        own are played here. No result depends on it.

    Returns
    -------
    Trials

    Raises
    ------
    PolicyError
        If the policy was trained for floors of another size or for other vehicles, its name is unknown,
        "Static" has no training records.
    ActionError
        If an agent of your own takes an illegal action.
    InputError
        If there is no instance or no trial, the horizon is unusable, or the sizes of an `Agent` are too small
        for an instance.
    ConfigError
        If the seed, the number of threads or the cost limit is unusable.
    WorkerError
        If workers are lost or fail.

    Warns
    -----
    PolicyWarning
        Once, if a policy was trained for another floor or fleet; breakdowns do not count.
    """
    playing = Playing(trials, seed, greedy, cost_limit, horizon, threads, executor)
    return play_policy(policy, instances, playing, training)


def play_policy(
    policy: AnyPolicy | Lookahead | str | Agent | AgentFunction,
    instances: Instance | Sequence[Instance],
    playing: Playing,
    training: Instance | Sequence[Instance] | None = None,
) -> Trials:
    """Do what `evaluate_policy` does, with its options as one value."""
    chosen = list_instances(instances)
    if not chosen:
        raise InputError("no instances; expected at least one")
    if isinstance(policy, str):
        policy = find_policy_name(policy)
    if isinstance(policy, str) and policy == STATIC:
        policy = _fit_named(training, playing)
    elif training is not None:
        raise PolicyError(f"training: given with a policy that needs none; expected '{STATIC}'")
    if isinstance(policy, Policy | IndexPolicy | StaticPlan | Lookahead):
        for instance in chosen:
            policy.check_fits(instance)
        places = [(item.name, item.layout) for item in chosen]
        warn_of_difference(policy, places, stacklevel=4)  # the line that calls `evaluate_policy`
    if not isinstance(policy, Policy | IndexPolicy | StaticPlan | Lookahead | str):
        if not isinstance(policy, Agent):
            if not callable(policy):
                raise PolicyError(
                    f"policy: read {describe(policy)}; expected a Policy, a name or a function of "
                    "observations and masks"
                )
            policy = Agent(policy, chosen)
        return _evaluate_agent(policy, chosen, playing)
    rows = np.repeat(np.arange(len(chosen)), playing.trials)
    keys = stream_keys(chosen, playing.trials, playing.seed)
    shared = policy, chosen, rows, keys, playing.greedy, playing.horizon
    if playing.executor is None:
        played = _play(*shared, playing.threads)
    else:
        played = _play_elsewhere(find_team(playing.executor), *shared)
    return Trials.of(chosen, played, playing.cost_limit)


def _play(
    policy: AnyPolicy | Lookahead | str,
    instances: Sequence[Instance],
    rows: np.ndarray,
    keys: np.ndarray,
    greedy: bool | None,
    horizon: float | None,
    threads: int | None,
) -> Outcome:
    """Play a list of episodes by a trained policy or a rule."""
    workers = Workers(threads)
    try:
        problem = build_problem(instances, horizon=horizon)
        player = RulePolicy(policy) if isinstance(policy, str) else policy
        problem, prepare = player.prepare(problem, instances, greedy)
        return play_list(problem, prepare, rows, keys, workers)
    finally:
        workers.close()


class _Piece(NamedTuple):
    """What a worker is to play: an instance's trials, or some of them."""

    policy: AnyPolicy | Lookahead | str
    instances: tuple[Instance, ...]
    row: int
    keys: np.ndarray
    greedy: bool | None
    horizon: float | None


def _play_piece(piece: _Piece) -> Outcome:
    # All instances, as the sizes of what a policy sees are those of the largest.
    rows = np.full(len(piece.keys), piece.row)
    own = piece.policy, piece.instances, rows, piece.keys
    return _play(*own, piece.greedy, piece.horizon, 1)


def _play_elsewhere(
    team: Team,
    policy: AnyPolicy | Lookahead | str,
    instances: Sequence[Instance],
    rows: np.ndarray,
    keys: np.ndarray,
    greedy: bool | None,
    horizon: float | None,
) -> Outcome:
    """Play a list of episodes on workers, an instance's at a time or fewer."""
    n = len(instances)
    # Some pieces for each worker, but none of less than one episode.
    each = max(1, min(len(rows) // n, -(-4 * team.n_workers // n)))
    pieces, places = [], []
    for row in range(n):
        for some in np.array_split(np.flatnonzero(rows == row), each):
            pieces.append(_Piece(policy, tuple(instances), row, keys[some], greedy, horizon))
            places.append(some)
    outcome = allocate_outcome(len(rows))
    for k, found in team.run(_play_piece, pieces):
        for whole, part in zip(outcome, found, strict=True):
            whole[places[k]] = part
    return outcome


def _evaluate_agent(agent: Agent, instances: Sequence[Instance], playing: Playing) -> Trials:
    """Let a Python function play all trials, many side by side."""
    entries = [instance for instance in instances for _ in range(playing.trials)]
    keys = stream_keys(instances, playing.trials, playing.seed)
    played: list[Outcome] = []
    for first in range(0, len(entries), AGENT_EPISODES):
        some = slice(first, first + AGENT_EPISODES)
        simulator = Simulator(
            entries[some],
            scaling=agent.scaling,
            task_slots=agent.task_slots,
            n_vehicles=agent.n_vehicles,
            horizon=playing.horizon,
            breakdown_keys=keys[some],
            slots=agent,
        )
        agent.play(simulator)
        played.append(read_outcome(simulator.state))
    whole = Outcome(*(np.concatenate(parts) for parts in zip(*played, strict=True)))
    return Trials.of(instances, whole, playing.cost_limit)


def _fit_named(training: Instance | Sequence[Instance] | None, playing: Playing) -> StaticPlan:
    """Return the plan that the name "Static" stands for: fitted on records named for it, never on others."""
    if training is None:
        raise PolicyError(
            f"{STATIC}: no records to fit it on; expected training=records, or the plan that "
            "fit_static(records) returns"
        )
    names = ("cost_limit", "seed", "horizon", "threads")
    return fit_static(training, **{name: getattr(playing, name) for name in names})
