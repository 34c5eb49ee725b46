"""The exact DMH simulator: a batch of episodes in lockstep, for Python callers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching.observation import allocate_view
from acerl_np.kernels.rollout.batch import advance_batch, assign_batch
from acerl_np.problem import choices, interface
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance, list_instances
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.scene import Chooser, Chooses, Scene, read_choices
from acerl_np.simulation.streams import BreakdownStreams
from acerl_np.support.errors import InputError, refuse
from acerl_np.support.fields import Whole, is_whole
from acerl_np.support.sharing import CopiedWhole, Exclusive

STATUS_NAMES = np.array(["running", "finished", "stuck", "stopped"])
"""All tasks served; nothing can happen any more though tasks wait; stopped at the horizon."""


class Schedule(NamedTuple):
    """The completed tasks of an episode, in order of their starts.

    Attributes
    ----------
    task : tuple of str
        Task ids.
    vehicle : tuple of str
        Ids of the vehicles that served them.
    start, finish : ndarray(float64, (n_tasks,)), s
        Of the assignment that was carried through.
    """

    task: tuple[str, ...]
    vehicle: tuple[str, ...]
    start: np.ndarray
    finish: np.ndarray


def find_served(state: S.State, b: int, instance: Instance) -> np.ndarray:
    """Return which tasks of episode b, on an instance, were carried through by now (ndarray(bool))."""
    served = np.asarray(state.task["vehicle"][b, : instance.n_tasks] >= 0)
    tasks = state.vehicle["task"][b, : len(instance.layout.vehicles)]
    served[tasks[tasks >= 0]] = False
    return served


def list_ready(state: S.State, b: int, instance: Instance) -> np.ndarray:
    """Return when each task of episode b may be loaded, s (ndarray(float64)), nan while that is not known."""
    ready = np.array(instance.arrival)
    later = instance.after >= 0
    if later.any():
        before = instance.after[later]
        ends = state.job["done"][b, before].astype(np.float64)
        ends[~find_served(state, b, instance)[before] | (ends == S.NEVER)] = np.nan
        ready[later] = np.maximum(ready[later], ends)
    return ready


class Simulator(Scene, CopiedWhole):
    """B episodes in lockstep, one per entry of `instances`.

    Each step takes one decision in every episode that is not over and advances it to its next
    decision. Instances may differ in floor, fleet and number of tasks: observations and masks are
    padded to the largest.

    One thread at a time may use it: what changes it, or asks a policy, raises `SharingError` while
    another thread is at that. Threads of their own simulators run side by side. It can be copied and
    pickled, in the midst of its episodes.

    Parameters
    ----------
    instances : Instance or sequence of Instance
    policy : object, optional
        Whose game it is, as `evaluate_policy` plays it: a policy of any form, or an object of your own with
        `choose(sim)`. It says slots, rules, sizes, scaling, commitment and the levels of charging.
    scaling : array_like of float, (12,), optional
        Feature constants of a policy; by default those of the layouts.
    task_slots, n_vehicles : int, optional
        Sizes of observation and mask; by default the largest among the layouts, and as many slots as there
        are ids with slots "task".
    horizon : float, optional
        s, cut to whole ones, after which an episode is stopped, finished or not; by default never.
        Where vehicles break down at random, `problem.servable.find_last_tick` says when.
    n_episodes : int, optional
        Number of episodes B; episode b is on entry b modulo the number of entries, until `restart`
        says otherwise. By default one per entry.
    seed : int, optional
        Of random breakdowns: episode b draws from seed + b, other ones each time it is started. By default 0.
    breakdown_keys : ndarray(uint32, (B, 4)), optional
        Streams of the random breakdowns instead, the same each time an episode is started; those of
        `rollout.stream_keys` are the ones that a trial of `evaluate_policy` meets. Seeds are
        refused then.
    slots : {"task", "pool"} or a policy, optional
        Which slot of the observation a waiting task has: "task", its own, in the natural order of the ids of
        all records (task_2 before task_10), the default; "pool", its place in the pool, as in the public
        environment; or those of a policy, with its ids.
    goal : Goal
        What `value` and `cost` are.
    rules : sequence of str or a policy
        Rules that an action names, some of FCFS, EDD, NVF, STD, LWT and AHP; or those of a policy.

    Attributes
    ----------
    slots : str
    task_ids : tuple of str
        Tasks that have a slot of their own, in the order of the slots.
    rules : tuple of str
    pool : tuple of Instance
        The different instances, in the order of their first entries.
    choices : ndarray(int64, (B,))
        Position in `pool` of the instance that each episode is on; only `restart` changes it.

    Raises
    ------
    InputError
        If there is no instance or no episode, the tables would not fit a machine, an option is
        unusable or given beside a policy that says it, or the records have more than 100 different ids with
        slots "task".
    PolicyError
        If the policy does not fit an instance.

    See Also
    --------
    evaluate_policy : Plays whole trials.
    Dispatcher : A real floor.

    Examples
    --------
    >>> import acerl_np
    >>> sim = acerl_np.Simulator([acerl_np.load_instance("DMH-01")])
    >>> while not sim.done.all():
    ...     sim.step(sim.action_mask.argmax(axis=1))
    >>> sim.makespan
    array([2152.])
    """

    pool: tuple[Instance, ...]

    def __init__(
        self,
        instances: Instance | Sequence[Instance],
        *,
        policy: Chooses | None = None,
        scaling: ArrayLike | None = None,
        task_slots: int | None = None,
        n_vehicles: int | None = None,
        horizon: float | None = None,
        n_episodes: int | None = None,
        seed: Whole | None = None,
        breakdown_keys: np.ndarray | None = None,
        slots: choices.SlotKind | interface.HasSlots | Chooser | None = None,
        goal: Goal = PAPER,
        rules: Sequence[str] | interface.HasRules | Chooser = choices.PAPER_RULES,
    ) -> None:
        entries = list_instances(instances)
        self.pool = tuple({id(instance): instance for instance in entries}.values())
        self._places = self.pool
        shown: dict[str, Any] = {
            "scaling": scaling,
            "task_slots": task_slots,
            "n_vehicles": n_vehicles,
        }
        player: Any = policy if isinstance(policy, Chooser) else None
        if policy is not None:
            own_rules = None if rules is choices.PAPER_RULES else rules
            _check_policy(policy, {**shown, "slots": slots, "rules": own_rules}, self.pool)
            slots = policy if hasattr(policy, "task_ids") else "pool"  # type: ignore[assignment]
        if player is not None:
            rules = player
            shown = {name: getattr(player, name, None) for name in shown}
        own = interface.find_slots("task" if slots is None else slots, self.pool)
        self.slots, self.task_ids = own
        self.rules = interface.find_rules(rules)
        self._goal = goal
        self._tables = build_problem(self.pool, **shown, horizon=horizon, slots=own, goal=goal)
        self.problem = self._tables
        if player is not None:
            self.problem, _ = player.prepare(self._tables, self.pool)
        if n_episodes is None:
            n_episodes = len(entries)
        if not is_whole(n_episodes) or n_episodes < 1:
            refuse("n_episodes", n_episodes, "at least 1")
        position = {id(instance): k for k, instance in enumerate(self.pool)}
        first = np.array([position[id(instance)] for instance in entries], np.int64)
        self.choices = np.resize(first, n_episodes)
        self._rows = np.arange(n_episodes, dtype=np.int64)
        self._streams = BreakdownStreams(
            n_episodes,
            seed,
            breakdown_keys,
            draws=any(instance.layout.has_random_breakdowns for instance in self.pool),
        )
        self._use = Exclusive("simulator")
        self.state = S.allocate_state(self.problem, n_episodes)
        sizes = n_episodes, self.n_features, self.problem.fleet.shape[1]
        self._view = allocate_view(*sizes, interface.number_rules(self.rules))
        self.reset()

    @property
    def instances(self) -> list[Instance]:
        """The instance that each episode is on."""
        return [self.pool[k] for k in self.choices]

    @property
    def status(self) -> np.ndarray:
        """How each episode stands, str (B,): see `STATUS_NAMES`."""
        return np.asarray(STATUS_NAMES[self.state.episode["phase"]])

    @property
    def makespan(self) -> np.ndarray:
        """Latest finish of each episode, float64 (B,), s; nan until finished (Eq. 1)."""
        return self.state.outcome[:, S.OUTCOME_MAKESPAN].copy()

    @property
    def tardiness(self) -> np.ndarray:
        """Mean delay of the tasks of each episode, float64 (B,), s; nan until finished (Eq. 2)."""
        return self.state.outcome[:, S.OUTCOME_TARDINESS].copy()

    @property
    def value(self) -> np.ndarray:
        """What the goal minimises, by default the makespan, float64 (B,), nan until finished."""
        if self._goal.own:
            return self._goal.weigh(S.read_outcome(self.state)).value
        return self.state.outcome[:, S.OUTCOME_VALUE].copy()

    @property
    def cost(self) -> np.ndarray:
        """What the goal limits, by default the tardiness, float64 (B,), nan until finished."""
        if self._goal.own:
            return self._goal.weigh(S.read_outcome(self.state)).cost
        return self.state.outcome[:, S.OUTCOME_COST].copy()

    def reset(self, *, seed: Whole | None = None) -> None:
        """Start every episode anew and advance it to its first decision.

        Parameters
        ----------
        seed : int, optional
            Episode b draws its random breakdowns from seed + b; by default those that follow in the
            streams it has.

        Raises
        ------
        InputError
            If the seed is no whole number from 0 on; no episode is changed.
        """
        with self._use.acquire():
            if seed is not None:
                self._streams.check_seeds([seed])
                self._streams.seed_all(seed)
            self._advance(True, self._rows, self.choices)

    def restart(
        self,
        episodes: ArrayLike,
        choices: ArrayLike | None = None,
        *,
        seeds: Sequence[Whole | None] | None = None,
    ) -> None:
        """Start some episodes anew, over or not; the others stay as they are.

        Parameters
        ----------
        episodes : array_like of int, (n,)
            Indices of the episodes, each at most once.
        choices : array_like of int, (n,), optional
            Their instances from now on, as positions in `pool`; by default the same as before.
        seeds : sequence of int or None, (n,), optional
            Seeds of their random breakdowns from now on; None keeps the stream that one has.

        Raises
        ------
        InputError
            If something is no index or seed or out of range, an episode stands twice, or the
            lengths differ; no episode is changed.
        """
        rows = self._read_rows(episodes)
        chosen = self.choices[rows]
        if choices is not None:
            chosen = _read_indices("choices", choices, len(self.pool))
            if len(chosen) != len(rows):
                raise InputError(f"choices: read {len(chosen)}; expected {len(rows)}")
        if seeds is not None:
            if not isinstance(seeds, Iterable):
                refuse("seeds", seeds, "a list")
            self._streams.check_seeds(seeds)
            if len(seeds) != len(rows):
                refuse("seeds", len(seeds), str(len(rows)))
        with self._use.acquire():
            if seeds is not None:
                self._streams.seed_episodes(rows.tolist(), seeds)
            self.choices[rows] = chosen
            self._advance(True, rows, chosen)

    def step(self, actions: ArrayLike, *, episodes: ArrayLike | None = None) -> None:
        """Take one decision in every episode that is not over, or in some of them.

        Parameters
        ----------
        actions : array_like of int, (B,) or (n,)
            vehicle * 4 + rule, rules in the order FCFS, EDD, NVF, STD, or as many and in the order of
            `rules`; entries of finished episodes are ignored.
        episodes : array_like of int, (n,), optional
            Indices of the episodes that take one; by default all B.

        Raises
        ------
        ActionError
            If the array has another shape or type, or an action is illegal; no episode is changed.
        InputError
            If `episodes` are no indices, or one stands twice; no episode is changed.
        """
        rows = self._rows if episodes is None else self._read_rows(episodes)
        chosen = read_choices("actions", actions, len(rows))
        with self._use.acquire():
            self.check_legal(rows, chosen, self._view.mask)
            self._advance(False, rows, chosen)

    def assign(
        self, vehicles: ArrayLike, tasks: ArrayLike, *, episodes: ArrayLike | None = None
    ) -> None:
        """Take one decision in every episode that is not over, or in some of them, by vehicle and task.

        Parameters
        ----------
        vehicles, tasks : array_like of int, (B,) or (n,)
            Positions in the layout's fleet and in the record, whose tasks are sorted by arrival. Both -1 lets
            all wait until something happens, where `may_wait` says so. Entries of finished episodes are
            ignored.
        episodes : array_like of int, (n,), optional
            Indices of the episodes that take one; by default all B.

        Raises
        ------
        ActionError
            If an array has another shape or type, or an assignment is impossible; no episode is changed.
        InputError
            If `episodes` are no indices, or one stands twice; no episode is changed.
        """
        rows = self._rows if episodes is None else self._read_rows(episodes)
        own = read_choices("vehicles", vehicles, len(rows))
        its = read_choices("tasks", tasks, len(rows))
        with self._use.acquire():
            self.check_possible(rows, own, its)
            assign_batch(self.problem, self.state, rows, own, its, self._view)

    def _read_rows(self, episodes: ArrayLike) -> np.ndarray:
        rows = _read_indices("episodes", episodes, self.n_episodes)
        if len(np.unique(rows)) < len(rows):
            raise InputError("episodes: an index stands twice; expected each at most once")
        return rows

    def schedule(self, b: int) -> Schedule:
        """Return the tasks of episode `b` that are finished so far.

        Parameters
        ----------
        b : int
            Index of the episode, from 0.

        Returns
        -------
        Schedule

        Raises
        ------
        InputError
            If there is no such episode.
        """
        b = self._check_episode(b)
        instance = self.pool[self.choices[b]]
        start = self.state.task["start"][b]
        served = np.flatnonzero(find_served(self.state, b, instance))
        served = served[np.argsort(start[served], kind="stable")]
        vehicles = self.state.task["vehicle"][b, served]
        return Schedule(
            task=tuple(instance.tasks[task] for task in served),
            vehicle=tuple(instance.layout.vehicles[v].id for v in vehicles),
            start=start[served].astype(np.float64),
            finish=self.state.task["finish"][b, served].astype(np.float64),
        )

    def _advance(self, restart: bool, rows: np.ndarray, choices: np.ndarray) -> None:
        if restart:
            self._streams.begin(rows, self.state.breakdown_key)
        advance_batch(self.problem, self.state, rows, restart, choices, self._view)


def _check_policy(policy: Any, beside: Mapping[str, Any], pool: Sequence[Instance]) -> None:
    """Refuse what is no policy or does not fit, and what is `beside` it though it says that itself."""
    if not hasattr(policy, "choose") or isinstance(policy, type):
        refuse("policy", policy, "a policy, or an object with a method choose(sim)")
    for name, value in beside.items():
        if value is not None:
            refuse(name, value, "none beside policy=, which says it")
    for instance in pool if isinstance(policy, Chooser) else ():
        policy.check_fits(instance)


def _read_indices(name: str, values: ArrayLike, n: int) -> np.ndarray:
    try:
        indices = np.asarray(values)
    except ValueError:
        indices = np.empty(0, np.object_).reshape(0, 0)
    whole = indices.dtype.kind in "iu" or indices.size == 0  # an empty list has no type
    if indices.ndim != 1 or not whole or ((indices < 0) | (indices >= n)).any():
        found = f"{indices.dtype} of shape {indices.shape}"
        refuse(name, found, f"a list of indices from 0 to {n - 1}")
    return indices.astype(np.int64)
