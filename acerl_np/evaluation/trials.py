"""Trials of policies: many keyed episodes per instance, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evaluation.metrics import satisfied_share
from acerl_np.kernels.core.state import Outcome, allocate_outcome
from acerl_np.policies.agent import AgentFunction, OwnPolicy
from acerl_np.policies.files import BasePolicy, as_decider
from acerl_np.policies.origin import warn_of_difference
from acerl_np.problem.goal import PAPER, Goal, OwnMeasure, find_goal
from acerl_np.problem.instance import Instance, list_instances
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import play_list, stream_keys
from acerl_np.simulation.scene import Chooses
from acerl_np.support.errors import InputError
from acerl_np.support.fields import Field, Whole, check_seed
from acerl_np.support.team import Team, find_team
from acerl_np.support.workers import THREADS, Workers

TRIALS = Field(int, 1, 10_000_000)

USAGE = ("late", "waiting", "utilisation", "empty")
METRICS = ("makespan", "tardiness", *USAGE, "value", "cost", "delay", "worst")
"""What `Trials` holds of every episode."""


@dataclass(frozen=True)
class Playing:
    """Settings of an evaluation, passed on as one value; those of `evaluate_policy`.

    No result depends on threads and executor; two values that differ in them alone are equal.

    Attributes
    ----------
    trials : int
        Episodes of each instance.
    seed : int
        Keys all draws.
    greedy : bool or None
        Whether a policy takes its most probable action; None: as the policy is usually played.
    goal : Goal
        Objective and limit.
    horizon : float or None
        s after which an episode is stopped.
    threads : int or None
        None: one for each core.
    executor : Executor, Team or None
        Workers that play in place of threads.

    Raises
    ------
    InputError, ConfigError
        If a value is out of range.
    """

    trials: int = 30
    seed: Whole = 0
    greedy: bool | None = None
    goal: Goal = PAPER
    horizon: float | None = None
    threads: int | None = field(default=None, compare=False)
    executor: Executor | Team | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        vars(self).update(
            trials=TRIALS.read("trials", self.trials, InputError),
            threads=THREADS.read("threads", self.threads),
            seed=check_seed(self.seed),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what decides an outcome, as plain values."""
        own = {item.name: getattr(self, item.name) for item in fields(self) if item.compare}
        return {**own, "goal": self.goal.to_dict()}


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
    goal : Goal
        What `value` and `cost` are, and the cost's limit.
    late : ndarray(float64, (n_instances, n_trials))
        Share of the tasks that were late; nan where an episode did not finish, as are the next three.
    waiting : ndarray(float64, (n_instances, n_trials)), s
        Mean over the tasks, from the arrival until a vehicle is at the pickup, handling not in it.
    utilisation : ndarray(float64, (n_instances, n_trials))
        Share of the fleet's time, from 0 to the makespan, in which a vehicle has a task. Trips that a
        breakdown undid count for the time that they lasted.
    empty : ndarray(float64, (n_instances, n_trials))
        Share of the metres driven without a load.
    value, cost : ndarray(float64, (n_instances, n_trials))
        What the goal minimises, and what it limits.
    delay : ndarray(float64, (n_instances, n_trials)), s
        Mean over the tasks, how much longer vehicles drove to the pickup and with the load than where nobody
        meets; ways to rest are none of it. 0 without traffic.
    worst : ndarray(float64, (n_instances, n_trials)), s
        How late the latest task was.
    has_traffic : bool
        Whether vehicles of some instance meet.

    See Also
    --------
    evaluate_policy : Makes them.

    Examples
    --------
    >>> import acerl_np
    >>> trials = acerl_np.evaluate_policy("EDD", acerl_np.load_instance("DMH-01"), trials=2)
    >>> trials.makespan.shape
    (1, 2)
    """

    instances: tuple[str, ...]
    makespan: np.ndarray
    tardiness: np.ndarray
    decisions: int
    goal: Goal
    late: np.ndarray
    waiting: np.ndarray
    utilisation: np.ndarray
    empty: np.ndarray
    value: np.ndarray
    cost: np.ndarray
    delay: np.ndarray
    worst: np.ndarray
    has_traffic: bool = False

    @classmethod
    def of(cls, instances: Sequence[Instance], played: Outcome, goal: Goal = PAPER) -> Trials:
        """Return the trials of episodes that were played instance by instance, as many of each.

        Parameters
        ----------
        instances : sequence of Instance
        played : Outcome
        goal : Goal
        """
        fleet = np.array([[len(instance.layout.vehicles)] for instance in instances])
        weighed = goal.weigh(played)._asdict()
        own = {name: values.reshape(len(instances), -1) for name, values in weighed.items()}
        own["utilisation"] = own.pop("busy") / (fleet * own["makespan"])
        tasks = np.array([[instance.n_tasks] for instance in instances])
        own["delay"] = np.where(np.isnan(own["makespan"]), np.nan, own["delay"] / tasks)
        own["decisions"] = int(own["decisions"].sum())
        own["has_traffic"] = any(instance.layout.traffic is not None for instance in instances)
        return cls(instances=tuple(instance.name for instance in instances), goal=goal, **own)

    @property
    def cost_limit(self) -> float:
        """Limit on the cost, by default on the tardiness, s: xi."""
        return self.goal.cost_limit

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
        """Fraction of trials with a cost, the tardiness, below the limit: the metric P."""
        return satisfied_share(self.cost, self.cost_limit)

    @property
    def unfinished(self) -> int:
        """Number of episodes that did not finish."""
        return int(np.isnan(self.makespan).sum())

    def mean(self, name: str) -> np.ndarray:
        """Return the mean of one of `METRICS` over the finished trials of each instance; nan without one."""
        values: np.ndarray = getattr(self, name)
        finished = np.isfinite(values)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(finished, values, 0.0).sum(axis=1) / finished.sum(axis=1))


def join_trials(parts: Sequence[Trials]) -> Trials:
    """Return the trials of several lists of instances as those of one list."""
    figures: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in METRICS
    }
    names = tuple(name for part in parts for name in part.instances)
    decisions = sum(part.decisions for part in parts)
    return replace(parts[0], instances=names, decisions=decisions, **figures)


def evaluate_policy(
    policy: BasePolicy | str | Chooses | AgentFunction,
    instances: Instance | Sequence[Instance],
    *,
    trials: int = 30,
    seed: Whole = 0,
    greedy: bool | None = None,
    objective: str | Goal | OwnMeasure = "makespan",
    cost_limit: float | None = None,
    threads: int | None = None,
    horizon: float | None = None,
    executor: Executor | Team | None = None,
) -> Trials:
    """Play every instance `trials` times with a policy.

    Parameters
    ----------
    policy : Policy, IndexPolicy, Lookahead, Agent, str, object or callable
        A policy of any form, a name of `POLICY_NAMES` such as "EDD", or one of your own in plain Python: an
        object with a method `choose(sim)`, which returns vehicles and tasks, int (B,) each, as
        `Simulator.assign` takes them, for many episodes side by side; or a function of observations (float32,
        (B, n_features)) and masks (bool, (B, n_actions)), as `Simulator` shows them for these instances, that
        returns an action for each row; a row without a legal action is over, and what is returned for it is
        ignored. An `Agent` is such a function with the sizes, constants and kind of actions of its training.
    instances : Instance or sequence of Instance
    trials : int
    seed : int
    greedy : bool, optional
        Take what a trained policy likes best, or sample; by default as in its training: networks sample,
        as in the paper, index policies do not. A `Lookahead` draws futures only, and its base is greedy.
    objective : str, Goal or callable
        What `Trials.value` is, such as "late+0.05*tardiness" or a function of yours, see `Goal`; all that a
        policy decides by is its own.
    cost_limit : float, optional
        xi, s, limit on the tardiness; by default 50 where the objective is the makespan, else none.
    threads : int, optional
        By default one per core; a policy of your own in plain Python is called by one.
    horizon : float, optional
        s, cut to whole ones, after which an episode is stopped, finished or not; by default never.
        Where vehicles break down at random, `problem.servable.find_last_tick` says when.
    executor : concurrent.futures.Executor or Team, optional
        Whose workers play, worth it for lookaheads and large floors; by default threads. Policies in
        plain Python are played here. No result depends on it.

    Returns
    -------
    Trials

    Raises
    ------
    PolicyError
        If the policy was trained for floors of another size or for other vehicles, or its name is unknown.
    ActionError
        If a policy of your own takes an illegal action, or chooses an impossible assignment.
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

    See Also
    --------
    Trials : What comes back.
    Simulator : One decision at a time.
    Goal : Another objective.

    Examples
    --------
    >>> import acerl_np
    >>> trials = acerl_np.evaluate_policy("EDD", acerl_np.load_suite("dmh-train"), trials=2)
    >>> trials.tardiness.shape, 0.0 <= trials.satisfied <= 1.0
    ((8, 2), True)
    """
    goal = find_goal(objective, cost_limit)
    playing = Playing(trials, seed, greedy, goal, horizon, threads, executor)
    return play_policy(policy, instances, playing)


def play_policy(
    policy: BasePolicy | str | Chooses | AgentFunction,
    instances: Instance | Sequence[Instance],
    playing: Playing,
    keys: np.ndarray | None = None,
) -> Trials:
    """Do what `evaluate_policy` does, with its options as one value.

    `keys` are those of the trials' streams, by default of `stream_keys`: of the records themselves.
    """
    chosen = list_instances(instances)
    if not chosen:
        raise InputError("no instances; expected at least one")
    policy = as_decider(policy, chosen, playing.goal)
    for instance in chosen:
        policy.check_fits(instance)
    places = [(item.name, item.layout) for item in chosen]
    warn_of_difference(policy, places, stacklevel=4)  # the line that calls `evaluate_policy`
    if keys is None:
        keys = stream_keys(chosen, playing.trials, playing.seed)
    if isinstance(policy, OwnPolicy):
        entries = [instance for instance in chosen for _ in range(playing.trials)]
        played = policy.play_all(entries, keys, horizon=playing.horizon, goal=playing.goal)
    else:
        rows = np.repeat(np.arange(len(chosen)), playing.trials)
        played = _play_anywhere((policy, chosen, rows, keys, playing))
    return Trials.of(chosen, played, playing.goal)


Episodes: TypeAlias = tuple[BasePolicy, list[Instance], np.ndarray, np.ndarray, Playing]
"""A list of episodes of a trained policy or a rule: positions of their instances, and keys.

Also where some of them are played there are all instances: the sizes of what a policy sees are those of the
largest."""


def _play(episodes: Episodes) -> Outcome:
    policy, instances, rows, keys, playing = episodes
    problem = build_problem(instances, horizon=playing.horizon, goal=playing.goal)
    problem, prepare = policy.prepare(problem, instances, playing.greedy)
    with closing(Workers(playing.threads)) as workers:
        return play_list(problem, prepare, rows, keys, workers)


def _play_anywhere(episodes: Episodes) -> Outcome:
    """Play a list of episodes here or on an executor's workers, an instance's at a time or fewer."""
    policy, instances, rows, keys, playing = episodes
    if playing.executor is None:
        return _play(episodes)
    team, n = find_team(playing.executor), len(instances)
    # Some pieces for each worker, but none of less than one episode.
    each = max(1, min(len(rows) // n, -(-4 * team.n_workers // n)))
    places = [
        some for row in range(n) for some in np.array_split(np.flatnonzero(rows == row), each)
    ]
    alone = replace(playing, threads=1, executor=None, goal=playing.goal.without_own())
    pieces = [(policy, instances, rows[some], keys[some], alone) for some in places]
    outcome = allocate_outcome(len(rows))
    for k, found in team.run(_play, pieces):
        for whole, part in zip(outcome, found, strict=True):
            whole[places[k]] = part
    return outcome
