"""What an action means: a vehicle and a rule, or a vehicle and one of the waiting tasks that are seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels import state as S
from acerl_np.simulation.simulator import Simulator, find_legal, read_choices

ACTIONS = ("rules", "pairs")


class Actions:
    """How the actions of B episodes are numbered, 0 to n - 1.

    vehicle * 4 + rule: one of the vehicle's four favourite tasks, by the paper's rules.
    """

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self.n = simulator.n_actions

    def mask(self) -> np.ndarray:
        """Return the legal actions, bool (B, n)."""
        return self._simulator.action_mask

    def take(self, actions: ArrayLike, rows: np.ndarray | None = None) -> None:
        """Take one in all episodes, or those of `rows`, that are not over; an `ActionError` changes none."""
        self._simulator.step(actions, episodes=rows)

    def begin(self) -> None:
        """Note that episodes were started."""


class PairActions(Actions):
    """vehicle * task_slots + slot: any waiting task that is seen, by the slot that it is seen in.

    Where no slot holds a task that an idle vehicle may take, as more tasks wait than are seen, the first
    vehicle that has a choice takes the first of its tasks: no action could say it.

    Parameters
    ----------
    simulator : Simulator
    """

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self.slots = int(simulator.problem.instance[0, S.INSTANCE_TASK_SLOTS])
        self.n = simulator.problem.fleet.shape[1] * self.slots
        self.begin()

    def mask(self) -> np.ndarray:
        """Return the legal actions, as of the others."""
        return self._mask.copy()

    def take(self, actions: ArrayLike, rows: np.ndarray | None = None) -> None:
        """Take one in all episodes, or those of `rows`, that are not over; an `ActionError` changes none."""
        simulator = self._simulator
        if rows is None:
            rows = np.arange(simulator.n_episodes)
        chosen = read_choices("actions", actions, len(rows))
        running = ~simulator.done[rows]
        illegal = running & ~find_legal(self._mask[rows], chosen)
        if illegal.any():
            k = int(np.argmax(illegal))
            raise simulator.explain_illegal(int(rows[k]), int(chosen[k]), self._mask)
        vehicles, slots = np.divmod(np.where(running, chosen, 0), self.slots)
        tasks = self._tasks[rows, slots]
        simulator.assign(vehicles, tasks, episodes=rows)
        self.begin()

    def begin(self) -> None:
        """Note that episodes were started, or went on; take the decisions that no action says."""
        simulator = self._simulator
        while True:
            self._tasks, self._mask = find_pairs(simulator, self.slots)
            unseen = np.flatnonzero(~simulator.done & ~self._mask.any(axis=1))
            if not len(unseen):
                return
            simulator.step(simulator.action_mask[unseen].argmax(axis=1), episodes=unseen)


def find_pairs(simulator: Simulator, slots: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the task in each slot, and which vehicle may take it, in every episode.

    Returns
    -------
    tasks : ndarray(int64, (B, slots))
        0 in empty slots.
    mask : ndarray(bool, (B, n_vehicles * slots))
        False in empty slots, and in episodes that are over.
    """
    problem, state, i = simulator.problem, simulator.state, simulator.choices
    n_waiting = state.episode[:, S.EPISODE_POOL_SIZE]
    n_tasks, fleet = state.pool.shape[1], problem.fleet.shape[1]
    idle = state.vehicle[:, :, S.VEHICLE_STATUS] == S.IDLE
    idle &= np.arange(fleet) < problem.instance[i, S.INSTANCE_N_VEHICLES, np.newaxis]
    idle &= ~simulator.done[:, np.newaxis]
    ranked = bool(problem.instance[:, S.INSTANCE_HAS_PRIORITIES].any())
    in_pool = simulator.slots == "pool"
    # The highest priority may wait unseen, and anywhere in the pool stands a task with a slot of its own.
    n = min(slots, n_tasks) if in_pool and not ranked else n_tasks
    n = min(n, int(n_waiting.max(initial=0)))
    waits = np.arange(n) < n_waiting[:, np.newaxis]
    tasks = np.where(waits, state.pool[:, :n], 0)
    record = problem.record[i[:, np.newaxis], tasks]
    capacity = problem.fleet[i, :, S.FLEET_CAPACITY][:, :, np.newaxis]
    offered = (capacity == 0.0) | (record[:, np.newaxis, :, S.RECORD_DEMAND] <= capacity)
    offered &= waits[:, np.newaxis, :]
    if ranked and n:
        priority = np.where(offered, record[:, np.newaxis, :, S.RECORD_PRIORITY], -np.inf)
        offered &= priority >= priority.max(axis=2, keepdims=True)
    offered &= idle[:, :, np.newaxis]
    slot = np.broadcast_to(np.arange(n), tasks.shape)
    if not in_pool:
        slot = record[:, :, S.RECORD_SLOT].astype(np.int64) - 1
    b, k = np.nonzero(waits & (slot < slots))
    mask = np.zeros((simulator.n_episodes, fleet, slots), np.bool_)
    mask[b, :, slot[b, k]] = offered[b, :, k]
    held = np.zeros((simulator.n_episodes, slots), np.int64)
    held[b, slot[b, k]] = tasks[b, k]
    return held, mask.reshape(simulator.n_episodes, fleet * slots)


def make_actions(kind: str, simulator: Simulator) -> Actions:
    """Return the actions that one of `ACTIONS` names."""
    return PairActions(simulator) if kind == "pairs" else Actions(simulator)
