"""Episodes as they stand, simulated ones or a control system's floor: what a policy is asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching.observation import View
from acerl_np.kernels.dispatching.pairs import N_PLACES, N_VALUES, list_possible
from acerl_np.kernels.motion.energy import find_level, has_battery
from acerl_np.kernels.motion.offers import is_free
from acerl_np.kernels.motion.ways import find_delay, find_stand
from acerl_np.kernels.rollout.batch import find_impossible, list_waits
from acerl_np.kernels.rollout.episodes import decide_rows
from acerl_np.problem.instance import Instance
from acerl_np.problem.interface import refuse_other_slots
from acerl_np.problem.layout import Layout
from acerl_np.problem.tables import count_actions, count_features
from acerl_np.support.errors import ActionError, PolicyError, refuse
from acerl_np.support.fields import is_whole
from acerl_np.support.sharing import Exclusive

TASK_FEATURES = ("loaded way", "waiting time", "expiry", "demand")
VEHICLE_FEATURES = ("speed", "status", "capacity")
"""Entries of an observation, as `kernels.observation` lists them: of each slot; of each vehicle, before its
total ways to the tasks in the slots."""


STATUSES = (
    *("idle", "working", "broken", "under way", "on its way to park"),
    *("on its way to a charger", "in a charger's queue", "charging"),
)
"""What a vehicle does, by its status in `kernels.state`."""


class Chooses(Protocol):
    """What a user writes."""

    def choose(self, sim: Any, /) -> Any:
        """Return vehicles and tasks."""
        ...


@runtime_checkable
class Chooser(Protocol):
    """A policy of any form, as the simulator asks it."""

    def check_fits(self, instance: Instance) -> None:
        """Refuse an instance that the policy cannot serve."""
        ...

    def prepare(
        self, problem: S.Problem, places: Sequence[Instance | Layout], greedy: bool | None = None
    ) -> tuple[S.Problem, Callable[[], Any]]:
        """Return the tables as the policy sees them, and what makes a worker's decider."""
        ...


class Fleet(NamedTuple):
    """What the vehicles of an episode do.

    Attributes
    ----------
    status : tuple of str, as `STATUSES`
    task : ndarray(int64, (V,)), position in the record of the task that it works on, or -1
    stand : ndarray(int64, (V,))
        Position in `layout.sites` of the site from which a free vehicle sets out to a task: where it is, or
        the next site of its way; -1 of a vehicle that is not free.
    stand_time : ndarray(float64, (V,)), s, when it is there, a moment of the clock that `time` shows; or nan
    level : ndarray(float64, (V,)), energy as a share of the battery's capacity, nan without one
    """

    status: tuple[str, ...]
    task: np.ndarray
    stand: np.ndarray
    stand_time: np.ndarray
    level: np.ndarray


class Pairs(NamedTuple):
    """The possible pairs of a free vehicle and a waiting task, by episode, in the order of the pool.

    The pairs of one task stand in the order of the fleet. A free vehicle is idle, or may turn at the next
    site of its way; a task that may still change hands waits, too.

    Attributes
    ----------
    episode : ndarray(int64, (P,))
    vehicle, task : ndarray(int64, (P,)), positions in the layout's fleet and in the record
    approach : ndarray(float64, (P,))
        s, from where the vehicle truly stands or drives to the pickup
    loaded : ndarray(float64, (P,)), s, from the pickup to the delivery, handling included
    slack : ndarray(float64, (P,)), s to spare at the delivery if taken now, below 0 if late
    waiting : ndarray(float64, (P,)), s that the task has waited, since a breakdown if that gave it back
    arrival, due : ndarray(float64, (P,)), s, moments of the clock that `time` shows
        Of a task of a chain, when it is ready, and so long after that; inf: never.
    """

    episode: np.ndarray
    vehicle: np.ndarray
    task: np.ndarray
    approach: np.ndarray
    loaded: np.ndarray
    slack: np.ndarray
    waiting: np.ndarray
    arrival: np.ndarray
    due: np.ndarray


def find_legal(mask: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Return which of the actions are legal.

    Returns
    -------
    ndarray(bool, (B,))
    """
    inside = (actions >= 0) & (actions < mask.shape[1])
    return np.asarray(inside & mask[np.arange(len(mask)), np.where(inside, actions, 0)])


def read_choices(name: str, values: ArrayLike, n: int) -> np.ndarray:
    """Return what a caller chose for n episodes, int64 (n,)."""
    try:
        read = np.asarray(values)
    except ValueError as error:
        raise ActionError(f"{name}: {error}; expected integers") from error
    if read.shape != (n,) or read.dtype.kind not in "iu":
        found = f"{read.dtype} of shape {read.shape}"
        refuse(name, found, f"integers of shape ({n},)", ActionError)
    return read.astype(np.int64)


def refuse_other_game(shown: S.Problem, own: S.Problem) -> None:
    """Refuse a policy whose `own` tables say another commitment or other levels than those shown."""
    for what, one, other in (
        ("commitment", shown.instance["max_changes"], own.instance["max_changes"]),
        ("level of charging", shown.battery, own.battery),
    ):
        if not np.array_equal(one, other):
            raise PolicyError(
                f"simulator: has another {what} than this policy; expected Simulator(instances, "
                "policy=policy), or a layout that says the same"
            )


class Scene:
    """B episodes as they stand: what a policy is asked about.

    A `Simulator` is one. To a policy in plain Python a `Dispatcher` shows another, of one episode: its floor.

    Attributes
    ----------
    pool : tuple of Instance
        The different records; that of a dispatcher's floor has `name`, `layout` and `tasks` alone, the names
        of the tasks by their numbers.
    slots : str
        "task" or "pool": which slot of the observation a waiting task has.
    task_ids : tuple of str
        Tasks that have a slot of their own, in the order of the slots.
    rules : tuple of str
        Rules that an action names.
    problem, state
        The kernels' tables, which may change with any version.
    """

    problem: S.Problem
    _tables: S.Problem
    """As `problem`, but without what a simulator's policy changes in it."""
    state: S.State
    pool: tuple[Any, ...]
    slots: str
    task_ids: tuple[str, ...]
    rules: tuple[str, ...]
    _view: View
    _places: Sequence[Instance | Layout]
    _use: Exclusive
    _origin = 0.0
    """s, what the clock shows when that of the state stands at 0."""

    @property
    def n_episodes(self) -> int:
        """Number of episodes B."""
        return len(self.state.episode)

    @property
    def instances(self) -> list[Any]:
        """The instance that each episode is on."""
        rows = self.problem.instance["record"][self.state.episode["instance"]]
        return [self.pool[i] for i in rows]

    @property
    def n_features(self) -> int:
        """Length of an observation."""
        return count_features(
            int(self.problem.instance["task_slots"][0]), self.problem.fleet.shape[1]
        )

    @property
    def n_actions(self) -> int:
        """Number of actions, legal or not: vehicle * number of rules + rule."""
        return count_actions(self.problem.fleet.shape[1], self.rules)

    @property
    def observation(self) -> np.ndarray:
        """Features of each episode's decision, float32 (B, n_features); zero once it is over.

        `observation_names` says what they are.
        """
        return self._view.observation.copy()

    @property
    def observation_names(self) -> tuple[str, ...]:
        """What each entry of an observation is, such as "slot 0: waiting time"; all are without a unit.

        Of each slot: loaded way, waiting time, expiry, demand, each as (x - mid) / half with the constants
        `scaling`; 0 in an empty slot. Of each vehicle: speed and capacity, each by its constant, 0.5 while it
        works and 1 while it is broken; then its way to the pickup and on to the delivery of the task in each
        slot, as (x - mid) / half.
        """
        slots = range(int(self.problem.instance["task_slots"][0]))
        names = [f"slot {k}: {name}" for k in slots for name in TASK_FEATURES]
        for v in range(self.problem.fleet.shape[1]):
            names += [f"vehicle {v}: {name}" for name in VEHICLE_FEATURES]
            names += [f"vehicle {v}: total way, slot {k}" for k in slots]
        return tuple(names)

    @property
    def action_mask(self) -> np.ndarray:
        """Legal actions, bool (B, n_actions); all False once the episode is over."""
        return self._view.mask.copy()

    @property
    def time(self) -> np.ndarray:
        """Clock of each episode, float64 (B,), s."""
        return self._origin + self.state.episode["time"].astype(np.float64)

    @property
    def done(self) -> np.ndarray:
        """Whether each episode is over, bool (B,)."""
        return np.asarray(self.state.episode["phase"] != S.RUNNING)

    def pairs(self, b: int | None = None) -> Pairs:
        """Return the possible pairs of a free vehicle and a waiting task.

        Parameters
        ----------
        b : int, optional
            Index of an episode; by default the pairs of all that are not over, one after the other.

        Returns
        -------
        Pairs
            None of an episode that is over, at least one of any other.

        Raises
        ------
        InputError
            If there is no such episode.

        Examples
        --------
        >>> import acerl_np
        >>> pairs = acerl_np.Simulator(acerl_np.load_instance("DMH-01")).pairs(0)
        >>> k = pairs.approach.argmin()
        >>> int(pairs.vehicle[k]), int(pairs.task[k]), float(pairs.approach[k])
        (0, 2, 20.0)
        """
        rows = np.arange(self.n_episodes)
        if b is not None:
            rows = rows[[self._check_episode(b)]]
        n_vehicles = self.problem.fleet.shape[1]
        most = int(self.state.episode["pool_size"][rows].sum()) * n_vehicles
        place, value = np.empty((N_PLACES, most), np.int64), np.empty((N_VALUES, most))
        n = list_possible(
            self.problem, self.state, rows, self._origin, np.empty(n_vehicles), place, value
        )
        return Pairs(*place[:, :n], *value[:, :n])

    def fleet(self, b: int) -> Fleet:
        """Return what the vehicles of an episode do.

        Parameters
        ----------
        b : int
            Index of the episode.

        Returns
        -------
        Fleet

        Raises
        ------
        InputError
            If there is no such episode.
        """
        problem, state, row = self.problem, self.state, np.int64(self._check_episode(b))
        vehicles = range(len(self.instances[b].layout.vehicles))
        own, now = state.vehicle[row, : len(vehicles)], state.episode["time"][row]
        capacity = problem.battery["capacity"][state.episode["instance"][row], :]
        stand, (moment, level) = np.full(len(own), -1), np.full((2, len(own)), np.nan)
        for v in map(np.int64, vehicles):
            if is_free(state, row, v):
                stand[v] = find_stand(state, row, v)
                moment[v] = self.time[row] + find_delay(state, row, v)
            if has_battery(problem, state, row, v):
                level[v] = find_level(problem, state, row, v, now) / capacity[v]
        status = tuple(STATUSES[k] for k in own["status"])
        return Fleet(status, own["task"].copy(), stand, moment, level)

    def may_wait(self) -> np.ndarray:
        """Return in which episodes nobody need be assigned now, as something is still to come, bool (B,)."""
        waits = np.empty(self.n_episodes, np.bool_)
        list_waits(self.problem, self.state, waits)
        return waits

    def _check_episode(self, b: int) -> int:
        if not is_whole(b) or not 0 <= b < self.n_episodes:
            refuse("b", b, f"the index of an episode, from 0 to {self.n_episodes - 1}")
        return b

    def decide(
        self, policy: Chooser, *, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the assignments that a policy of any form chooses; nothing is changed.

        Parameters
        ----------
        policy : Policy, IndexPolicy or Lookahead
        rng : numpy.random.Generator, optional
            Keys of the draws; by default nothing is drawn.

        Returns
        -------
        vehicles, tasks : ndarray(int64, (B,))
            As `assign` takes them; -1 where all wait or the episode is over.

        Raises
        ------
        PolicyError
            If the policy does not fit an instance, sees tasks in other slots, or plays with another
            commitment or other levels of charging.
        """
        for instance in self.pool:
            policy.check_fits(instance)
        refuse_other_slots("simulator", self, policy)
        keys = np.zeros((self.n_episodes, 4), np.uint32)
        if rng is not None:
            keys = rng.integers(2**32, size=keys.shape, dtype=np.uint32)
        problem, prepare = policy.prepare(self._tables, self._places, rng is None)
        refuse_other_game(self.problem, problem)
        chosen = np.empty((self.n_episodes, 3), np.int64)
        with self._use.acquire():  # it brings positions of vehicles up to date
            decide_rows(problem, self.state, prepare(), keys, chosen)
        vehicles, positions = chosen[:, 0].copy(), chosen[:, 1]
        rows = np.arange(self.n_episodes)
        tasks = np.where(
            positions >= 0, self.state.pool[rows, np.maximum(0, positions)], np.int64(-1)
        )
        return vehicles, tasks

    def check_possible(self, rows: np.ndarray, vehicles: np.ndarray, tasks: np.ndarray) -> None:
        """Refuse assignments of which one is impossible.

        Parameters
        ----------
        rows, vehicles, tasks : ndarray(int64, (n,))
            Episodes, and what is chosen in each, as `Simulator.assign` takes it.

        Raises
        ------
        ActionError
        """
        k = find_impossible(self.problem, self.state, rows, vehicles, tasks)
        if k < 0:
            return
        b, v, task = int(rows[k]), int(vehicles[k]), int(tasks[k])
        n_vehicles = len(self.instances[b].layout.vehicles)
        waiting = self.state.pool[b, : self.state.episode["pool_size"][b]].tolist()
        free = [u for u in range(n_vehicles) if is_free(self.state, np.int64(b), np.int64(u))]
        if v == task == -1:
            fault = "nothing is to come that would end the wait; expected a vehicle and a task"
        elif v not in free:
            fault = f"vehicle {v} is not idle; expected one of {free}"
        elif task not in waiting:
            fault = f"task {task} does not wait; expected one of {waiting}"
        else:
            own = self.pairs(b)
            fault = (
                f"vehicle {v} may not carry task {task} now; expected one of "
                f"{own.task[own.vehicle == v].tolist()}"
            )
        raise ActionError(
            f"episode {b} at {self.time[b]:g} s: vehicle {v} with task {task} is impossible: {fault}"
        )

    def check_legal(self, rows: np.ndarray, actions: np.ndarray, mask: np.ndarray) -> None:
        """Refuse actions of which one, of an episode that is not over, is illegal.

        Parameters
        ----------
        rows, actions : ndarray(int64, (n,))
            Episodes, and the action of each.
        mask : ndarray(bool, (B, n_actions))
            Legal actions.

        Raises
        ------
        ActionError
        """
        illegal = ~self.done[rows] & ~find_legal(mask[rows], actions)
        if illegal.any():
            k = int(np.argmax(illegal))
            b = int(rows[k])
            raise ActionError(
                f"episode {b} at {self.time[b]:g} s: action {actions[k]} is illegal; "
                f"expected one of {np.flatnonzero(mask[b]).tolist()}"
            )
