"""The Gymnasium environment of one episode at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from acerl_np.gym.episodes import (
    ILLEGAL,
    METADATA,
    RENDER_MODES,
    InstanceLike,
    check_choice,
    draw_entry,
    find_entries,
    load,
    name_entry,
    observation_space,
    read_seeds,
    redraw,
    render,
    settle,
)
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.errors import ActionError


class DMHEnv(gymnasium.Env[np.ndarray, Any]):
    """Dispatch vehicles: an episode is an instance, a step is one decision.

    Observations are float32 (n_features,), actions vehicle * 4 + rule, as in `Simulator`. The reward
    is 0 until the episode ends and then minus the makespan, s. An episode that the horizon stops is
    truncated: its reward is minus the horizon, its makespan and tardiness are nan, and its cost counts
    unfinished tasks as if they were finished then. All has been paid by then, so a learner should take
    that end for a terminal state. At an end the observation is zero and no action is legal.

    `info` holds "action_mask" (int8 (n_actions,), 1 is legal), "time" (s) and "cost" (s; the tardiness
    at the end, 0.0 before); after a reset also "instance" (its name), at the end "makespan" and
    "tardiness" (s), and with illegal="redraw" after each step "redrawn" (bool).

    Parameters
    ----------
    instance : str, path-like, Instance or sequence of these
        Names or files as `load_instance` takes them, or names of suites. Of several, `reset` draws one,
        or takes the one that options={"instance": ...} names or is. Default "DMH-01".
    horizon : float, optional
        s, cut to whole ones, after which an episode is truncated; by default never. Where vehicles
        break down at random, `problem.breakdown_limits.find_last_tick` says when.
    illegal : {"error", "redraw"}
        What becomes of an illegal action: an `ActionError`, or a legal one drawn uniformly with
        `np_random`.
    render_mode : {None, "ansi", "rgb_array"}
        Text, or a picture uint8 (height, width, 3).
    task_slots, n_vehicles : int, optional
        Sizes of observation and mask; by default those of the largest floor among the instances.
    scaling : array_like of float, (12,), optional
        Feature constants (`problem.tables.find_scaling`); by default those of the instances. An
        agent that learned on other records or floors needs the sizes and constants of its training.
    instances : optional
        The same as `instance`, as the vector environment calls it.

    Raises
    ------
    InputError
        If an instance cannot be loaded or served, or an option is unknown.

    Examples
    --------
    >>> import gymnasium
    >>> env = gymnasium.make("acerl_np.gym:acerl_np/DMH-v0", instance="DMH-01")
    >>> observation, info = env.reset(seed=0)
    >>> over = False
    >>> while not over:
    ...     action = info["action_mask"].argmax()
    ...     observation, reward, terminated, truncated, info = env.step(action)
    ...     over = terminated or truncated
    >>> reward, info["makespan"]
    (-2152.0, 2152.0)
    """

    metadata: ClassVar[dict[str, Any]] = METADATA  # type: ignore[misc]

    def __init__(
        self,
        instance: InstanceLike | Sequence[InstanceLike] | None = None,
        horizon: float | None = None,
        illegal: str = "error",
        render_mode: str | None = None,
        task_slots: int | None = None,
        n_vehicles: int | None = None,
        scaling: ArrayLike | None = None,
        instances: InstanceLike | Sequence[InstanceLike] | None = None,
    ) -> None:
        check_choice("illegal", illegal, ILLEGAL)
        check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        loaded = load(instance, instances)
        self._simulator = Simulator(
            loaded,
            scaling=scaling,
            task_slots=task_slots,
            n_vehicles=n_vehicles,
            horizon=horizon,
            n_episodes=1,
        )
        self._entries = find_entries(self._simulator, loaded)
        self._redraws = illegal == "redraw"
        self._over = True
        self._seeded = False  # whether the simulator has this environment's seed
        self.render_mode = render_mode
        self.observation_space = observation_space(self._simulator)
        self.action_space = gymnasium.spaces.Discrete(self._simulator.n_actions)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode.

        Parameters
        ----------
        seed : int, optional
            Restarts `np_random` and the stream of the random breakdowns.
        options : dict, optional
            "instance": the instance to play, or its name.

        Returns
        -------
        observation : ndarray(float32, (n_features,))
        info : dict

        Raises
        ------
        InputError
            If there is no such instance, or the seed is no whole number from 0 on; nothing is changed.
        """
        choice = name_entry(self._simulator, options)
        [seed] = read_seeds([seed])
        super().reset(seed=seed)
        if choice is None:
            choice = draw_entry(self._entries, lambda: self.np_random)
        key = None
        if seed is not None or not self._seeded:
            key = self.np_random_seed
            if key < 0:  # somebody has set `np_random`
                key = int(self.np_random.integers(2**63))
        self._simulator.restart([0], [choice], seeds=[key])
        self._seeded = True
        self._over = False
        info = {**self._look(), "cost": 0.0, "instance": self._simulator.pool[choice].name}
        return self._simulator.observation[0], info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take one decision and advance to the next one or to the end.

        Parameters
        ----------
        action : int
            vehicle * 4 + rule, rules in the order FCFS, EDD, NVF, STD.

        Returns
        -------
        observation : ndarray(float32, (n_features,))
            Zero at the end.
        reward : float
            0 until the end, then minus the makespan, s.
        terminated : bool
            Whether all tasks are finished.
        truncated : bool
            Whether the horizon stopped the episode.
        info : dict

        Raises
        ------
        ActionError
            If the action is illegal, or the episode is over or not started; nothing changes then.
        """
        if self._over:
            raise ActionError("no episode is running; expected reset() first")
        simulator = self._simulator
        actions = np.asarray([action])
        illegal = np.empty(0, np.int64)
        if self._redraws:
            actions, illegal = redraw(simulator, actions, lambda b: self.np_random)
        simulator.step(actions)
        over = bool(simulator.done[0])
        info = {**self._look(), "cost": 0.0}
        if self._redraws:
            info["redrawn"] = len(illegal) > 0
        if not over:
            return simulator.observation[0], 0.0, False, False, info
        self._over = True
        rewards, costs = settle(simulator, np.array([0]))
        info["cost"] = float(costs[0])
        info["makespan"] = float(simulator.makespan[0])
        info["tardiness"] = float(simulator.tardiness[0])
        finished = simulator.status[0] == "finished"
        return (
            simulator.observation[0],
            float(rewards[0]),
            bool(finished),
            not finished,
            info,
        )

    def action_masks(self) -> np.ndarray:
        """Return the legal actions, bool (n_actions,), as sb3-contrib asks for them."""
        return np.asarray(self._simulator.action_mask[0])

    def render(self) -> Any:
        """Return the present decision as text or picture, as `render_mode` says."""
        return render(self, self._simulator, 0)

    def _look(self) -> dict[str, Any]:
        return {
            "action_mask": self._simulator.action_mask[0].astype(np.int8),
            "time": float(self._simulator.time[0]),
        }
