"""The Gymnasium environment of one episode at a time."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import gymnasium
import numpy as np

from acerl_np.gym.episodes import METADATA, SEED, Episodes, Instances, Settings
from acerl_np.support.errors import ActionError, InputError
from acerl_np.support.fields import Whole
from acerl_np.support.sharing import CopiedWhole


class DMHEnv(CopiedWhole, gymnasium.Env[np.ndarray, Any]):
    """Dispatch vehicles: an episode is an instance, a step is one decision.

    Observations are float32 (n_features,), as in `Simulator`, in a space of all finite numbers. The reward is
    0 until the episode ends and then minus the makespan, s. Every end is terminal, as all is paid by then;
    nothing is ever truncated. The observation is zero there, and no action is legal.

    An episode that the horizon stops is charged for its unfinished tasks: they count as if they were served
    from the horizon on, in order of arrival and one after the other, each as long as the slowest vehicle
    that may carry it takes from the farthest site. The reward is minus the end of the last one, the cost the
    mean delay with theirs, and makespan and tardiness are nan. So no such end is paid as much as any episode
    that finishes by the horizon. An end after a number of steps would be paid nothing, and be worth more than
    any schedule: put no `TimeLimit` around it.

    `info` holds "action_mask" (int8 (n_actions,), 1 is legal), "time" (s) and "cost" (s; the tardiness
    at the end, 0.0 before); after a reset also "instance" (its name), at the end "status" ("finished",
    "stopped" by the horizon, or "stuck" where nothing could happen any more), "makespan" and "tardiness" (s),
    and with illegal="redraw" after each step "redrawn" (bool).

    One thread at a time may use an environment. It can be copied and pickled in the midst of an episode.

    Parameters
    ----------
    instances : str, path-like, Instance or sequence of these
        Names or files as `load_instance` takes them, or names of suites. Of several, `reset` draws one,
        or takes the one that options={"instance": ...} names or is. Default "DMH-01".
    **settings
        Options:

        horizon : float, optional
            s, cut to whole ones, after which an episode is stopped; by default never. Where vehicles break
            down at random, `problem.servable.find_last_tick` says when.
        illegal : {"error", "redraw"}
            What becomes of an illegal action: an `ActionError`, or a legal one drawn uniformly with
            `np_random`.
        render_mode : {None, "ansi", "rgb_array"}
            Text, or a picture uint8 (height, width, 3).
        task_slots, n_vehicles : int, optional
            Sizes of observation and mask; by default those of the largest floor among the instances.
        scaling : array_like of float, (12,), optional
            Feature constants (`problem.interface.find_scaling`); by default those of the instances. An
            agent that learned on other records or floors needs the sizes and constants of its training.
        actions : {"rules", "pairs"}
            What an action is: vehicle * 4 + rule, rules in the order FCFS, EDD, NVF, STD; or
            vehicle * task_slots + slot, slot that of a waiting task in the observation. Where more tasks
            wait than are seen, and no vehicle may take one that is, the first vehicle takes its first.
        max_episode_steps : None
            Not to be used.
        slots : {"task", "pool"} or a policy
            Which slot a waiting task has, as in `Simulator`: its own, by the ids of the instances; or that of
            its place in the pool.
        rules : sequence of str or a policy
            Rules that an action names, as in `Simulator`.
        may_wait : bool
            Whether a further action, the last, lets all wait until something happens. It is legal while an
            arrival, a delivery, a repair or a listed breakdown is to come.

    Raises
    ------
    InputError
        If an instance cannot be loaded or served, or an option is unknown.

    See Also
    --------
    DMHVectorEnv : Many side by side.

    Examples
    --------
    >>> import gymnasium
    >>> env = gymnasium.make("acerl_np.gym:acerl_np/DMH-v0", instances="DMH-01")
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

    def __init__(self, instances: Instances = "DMH-01", **settings: Unpack[Settings]) -> None:
        self._episodes = Episodes(1, instances, **settings)
        self._seeded = False  # whether the simulator has this environment's seed
        self.render_mode = settings.get("render_mode")
        self.observation_space = self._episodes.observation_space
        self.action_space = self._episodes.action_space

    def reset(
        self, *, seed: Whole | None = None, options: dict[str, Any] | None = None
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
            If there is no such instance or option, or the seed is no whole number from 0 on; nothing is
            changed.
        """
        episodes = self._episodes
        choice = episodes.choose(options)
        seed = SEED.read("seed", seed, InputError)
        super().reset(seed=seed)  # type: ignore[arg-type]
        if choice is None:
            choice = episodes.draw(0, lambda b: self.np_random)
        key = None
        if seed is not None or not self._seeded:
            key = self.np_random_seed
            if key < 0:  # somebody has set `np_random`
                key = int(self.np_random.integers(2**63))
        episodes.start([0], [choice], [key])
        self._seeded = True
        name = episodes.simulator.pool[choice].name
        return self._observe(), {**self._look(), "instance": name}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take one decision and advance to the next one or to the end.

        Parameters
        ----------
        action : int
            As the environment's `actions` say.

        Returns
        -------
        observation : ndarray(float32, (n_features,))
            Zero at the end.
        reward : float
            0 until the end, then minus the makespan, s, or less where the horizon stopped the episode.
        terminated : bool
            Whether the episode is over; info["status"] says how.
        truncated : bool
            False.
        info : dict

        Raises
        ------
        ActionError
            If the action is illegal, or the episode is over or not started; nothing changes then.
        """
        episodes = self._episodes
        if episodes.over[0]:
            raise ActionError("no episode is running; expected reset() first")
        rewards, [over], settled, [redrawn] = episodes.take(
            None, np.asarray([action]), lambda b: self.np_random
        )
        info = self._look()
        if episodes.redraws:
            info["redrawn"] = bool(redrawn)
        if settled is not None:
            info |= settled.tell(0)
        return self._observe(), float(rewards[0]), bool(over), False, info

    def action_masks(self) -> np.ndarray:
        """Return the legal actions, bool (n_actions,), as sb3-contrib asks for them."""
        return np.asarray(self._episodes.actions.mask()[0])

    def render(self) -> Any:
        """Return the present decision as text or picture, as `render_mode` says."""
        return self._episodes.render(0)

    def _observe(self) -> np.ndarray:
        return np.asarray(self._episodes.simulator.observation[0])

    def _look(self) -> dict[str, Any]:
        return {
            "action_mask": self._episodes.actions.mask()[0].astype(np.int8),
            "time": float(self._episodes.simulator.time[0]),
            "cost": 0.0,
        }
