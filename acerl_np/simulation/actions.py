"""What an action means: a vehicle and a rule, or a vehicle and one of the tasks that are seen; or to wait."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.rollout.batch import list_pairs
from acerl_np.kernels.rollout.trace import rate_tasks
from acerl_np.problem.interface import number_rules
from acerl_np.simulation.scene import Scene, read_choices
from acerl_np.simulation.simulator import Simulator

ACTIONS = ("rules", "pairs")


class Actions:
    """How the actions of B episodes are numbered, 0 to n - 1.

    vehicle * number of rules + rule: one of the vehicle's favourite tasks, by the simulator's rules. With
    `may_wait` the last one lets all wait.
    """

    def __init__(self, simulator: Simulator, may_wait: bool = False) -> None:
        self._simulator = simulator
        self._may_wait = may_wait
        self.n = simulator.n_actions + may_wait

    def mask(self) -> np.ndarray:
        """Return the legal actions, bool (B, n)."""
        return add_waits(self._simulator, self._simulator.action_mask, self._may_wait)

    def take(self, actions: ArrayLike, rows: np.ndarray | None = None) -> None:
        """Take one in all episodes, or those of `rows`, that are not over; an `ActionError` changes none."""
        if not self._may_wait:
            self._simulator.step(actions, episodes=rows)
            return
        rows, chosen = self._read(actions, rows)
        waits = chosen == self.n - 1
        self._simulator.step(chosen[~waits], episodes=rows[~waits])
        nobody = np.full(waits.sum(), -1)
        self._simulator.assign(nobody, nobody, episodes=rows[waits])

    def _read(self, actions: ArrayLike, rows: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return episodes and an action of each; refuse one that is illegal."""
        rows = np.arange(self._simulator.n_episodes) if rows is None else rows
        chosen = read_choices("actions", actions, len(rows))
        self._simulator.check_legal(rows, chosen, self.mask())
        return rows, chosen

    def begin(self) -> None:
        """Note that episodes were started."""


class PairActions(Actions):
    """vehicle * task_slots + slot: any waiting task that is seen, by the slot that it is seen in.

    Where no slot holds a task that an idle vehicle may take, as more tasks wait than are seen, the first
    vehicle that has a choice takes the first of its tasks: no action could say it.

    Parameters
    ----------
    simulator : Simulator
    may_wait : bool
    """

    def __init__(self, simulator: Simulator, may_wait: bool = False) -> None:
        self._simulator = simulator
        self._may_wait = may_wait
        self.slots = int(simulator.problem.instance["task_slots"][0])
        shape = (simulator.n_episodes, simulator.problem.fleet.shape[1], self.slots)
        self.n = shape[1] * self.slots + may_wait
        self._pairs = np.zeros(shape, np.bool_)
        self._tasks = np.zeros((shape[0], self.slots), np.int64)
        self.begin()

    def mask(self) -> np.ndarray:
        """Return the legal actions, as of the others."""
        return self._mask.copy()

    def take(self, actions: ArrayLike, rows: np.ndarray | None = None) -> None:
        """Take one in all episodes, or those of `rows`, that are not over; an `ActionError` changes none."""
        rows, chosen = self._read(actions, rows)
        running = ~self._simulator.done[rows]
        waits = chosen == self._pairs[0].size
        vehicles, slots = np.divmod(np.where(running & ~waits, chosen, 0), self.slots)
        tasks = self._tasks[rows, slots]
        vehicles[waits] = tasks[waits] = -1
        self._simulator.assign(vehicles, tasks, episodes=rows)
        self.begin()

    def begin(self) -> None:
        """Note that episodes were started, or went on; take the decisions that no action says."""
        simulator = self._simulator
        while True:
            list_pairs(simulator.problem, simulator.state, self._tasks, self._pairs)
            pairs = self._pairs.reshape(len(self._pairs), -1)
            unseen = np.flatnonzero(~simulator.done & ~pairs.any(axis=1))
            if not len(unseen):
                self._mask = add_waits(simulator, pairs, self._may_wait)
                return
            simulator.step(simulator.action_mask[unseen].argmax(axis=1), episodes=unseen)


def add_waits(scene: Scene, mask: np.ndarray, may_wait: bool) -> np.ndarray:
    """Return a mask, with `may_wait` and a last action that lets all wait."""
    return np.column_stack((mask, scene.may_wait())) if may_wait else mask


def make_actions(kind: str, simulator: Simulator, may_wait: bool = False) -> Actions:
    """Return the actions that one of `ACTIONS` names."""
    return (PairActions if kind == "pairs" else Actions)(simulator, may_wait)


def read_actions(
    kind: str, scene: Scene, ask: Callable[[np.ndarray], ArrayLike], may_wait: bool
) -> np.ndarray:
    """Return the assignments that actions mean, vehicles and tasks (ndarray(int64, (2, B))); take none.

    `ask` returns an action for each row of a mask (bool, (B, n)), unless no action could say what to do.
    """
    problem, state, n = scene.problem, scene.state, scene.n_episodes
    rules = mask = scene.action_mask
    own = number_rules(scene.rules)
    slots = int(problem.instance["task_slots"][0])
    seen = np.zeros((n, slots), np.int64)
    if kind == "pairs":
        pairs = np.zeros((n, problem.fleet.shape[1], slots), np.bool_)
        list_pairs(problem, state, seen, pairs)
        mask = pairs.reshape(n, -1)
    actions, said = np.zeros(n, np.int64), np.asarray(mask.any(axis=1))
    mask = add_waits(scene, mask, may_wait)
    if said.any():
        actions = read_choices("actions", ask(mask), n)
        scene.check_legal(np.flatnonzero(said), actions[said], mask)
    actions[~said] = rules[~said].argmax(axis=1)
    chosen = np.full((2, n), -1)
    for b in np.flatnonzero(rules.any(axis=1)).tolist():
        action = int(actions[b])
        if may_wait and said[b] and action == mask.shape[1] - 1:
            continue
        if said[b] and kind == "pairs":
            v, slot = divmod(action, slots)
            chosen[:, b] = v, seen[b, slot]
            continue
        v, rule = divmod(action, len(own))
        keys = np.empty(int(state.episode["pool_size"][b]))
        rate_tasks(problem, state, b, v, own[rule], keys)
        chosen[:, b] = v, state.pool[b, keys.argmin()]
    return chosen
