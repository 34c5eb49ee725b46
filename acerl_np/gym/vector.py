"""The Gymnasium environment of a batch of episodes on one lockstep simulator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from acerl_np.gym.episodes import (
    ILLEGAL,
    METADATA,
    RENDER_MODES,
    Accounts,
    InstanceLike,
    Settled,
    check_choice,
    draw_entry,
    find_entries,
    find_observation_space,
    load,
    name_entry,
    put,
    read_seeds,
    redraw,
    refuse_step_limit,
    render,
)
from acerl_np.problem.slots import SlotKind
from acerl_np.simulation.actions import ACTIONS, make_actions
from acerl_np.simulation.simulator import Chooser, Simulator
from acerl_np.support.errors import ActionError, InputError, describe
from acerl_np.support.numbers import Whole, is_whole
from acerl_np.support.sharing import CopiedWhole


class DMHVectorEnv(CopiedWhole, gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many `DMHEnv` on one lockstep simulator.

    Observations, rewards, ends and infos are those of Gymnasium's `SyncVectorEnv` of `num_envs`
    environments in the same autoreset mode. Each environment has its own random stream: a seed s
    gives environment i the seed s + i. One thread at a time may use all of them.

    Parameters
    ----------
    num_envs : int
        Number of environments B.
    instances : str, path-like, Instance or sequence of these
        As `instance` in `DMHEnv`: each environment draws one of them at each reset.
    horizon : float, optional
        As in `DMHEnv`.
    illegal : {"error", "redraw"}
        As in `DMHEnv`; an error changes no environment.
    render_mode : {None, "ansi", "rgb_array"}
        As in `DMHEnv`, one frame for each environment.
    autoreset_mode : AutoresetMode or str
        NEXT_STEP restarts an episode in the step after its end, which ignores its action. SAME_STEP
        restarts it in the step of its end, whose observation and info are then in "final_obs" and
        "final_info". DISABLED leaves it to reset(options={"reset_mask": ...}).
    task_slots, n_vehicles, scaling
        As in `DMHEnv`.
    instance : optional
        The same as `instances`, as the single environment calls it.
    actions : {"rules", "pairs"}
        As in `DMHEnv`.
    observation_space : gymnasium.spaces.Box, optional
        As in `DMHEnv`, of one environment.
    max_episode_steps : None
        Not to be used: an end after so many steps would be worth more than the best schedule.
    slots
        As in `DMHEnv`.

    Raises
    ------
    InputError
        If an instance cannot be loaded or served, or an option is unknown.

    Examples
    --------
    >>> import gymnasium
    >>> envs = gymnasium.make_vec(
    ...     "acerl_np.gym:acerl_np/DMH-v0", 3, instances="dmh-train", autoreset_mode="SameStep"
    ... )
    >>> observations, infos = envs.reset(seed=0)
    >>> observations.shape, infos["action_mask"].shape
    ((3, 219), (3, 12))
    """

    def __init__(
        self,
        num_envs: Whole = 1,
        instances: InstanceLike | Sequence[InstanceLike] | None = None,
        horizon: float | None = None,
        illegal: str = "error",
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        task_slots: int | None = None,
        n_vehicles: int | None = None,
        scaling: ArrayLike | None = None,
        instance: InstanceLike | Sequence[InstanceLike] | None = None,
        actions: str = "rules",
        observation_space: gymnasium.Space[Any] | None = None,
        max_episode_steps: None = None,
        slots: SlotKind | Chooser = "task",
    ) -> None:
        check_choice("actions", actions, ACTIONS)
        check_choice("illegal", illegal, ILLEGAL)
        check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        if not is_whole(num_envs) or num_envs < 1:
            raise InputError(f"num_envs: read {describe(num_envs)}; expected at least 1")
        refuse_step_limit(max_episode_steps)
        if not isinstance(autoreset_mode, AutoresetMode):
            check_choice("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self.num_envs = num_envs = int(num_envs)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**METADATA, "autoreset_mode": self.autoreset_mode}
        self.render_mode = render_mode
        loaded = load(instances, instance)
        self._simulator = Simulator(
            loaded,
            scaling=scaling,
            task_slots=task_slots,
            n_vehicles=n_vehicles,
            horizon=horizon,
            slots=slots,
            n_episodes=num_envs,
        )
        self._entries = find_entries(self._simulator, loaded)
        self._names = np.array([instance.name for instance in self._simulator.pool], object)
        self._redraws = illegal == "redraw"
        self._random = any(item.layout.has_random_breakdowns for item in loaded)
        self._seeded = np.zeros(num_envs, np.bool_)  # the simulator has the environment's seed
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self._seeds = [-1] * num_envs
        self._started = False
        self._over = np.zeros(num_envs, np.bool_)  # ended, and the end has been reported
        self._actions = make_actions(actions, self._simulator)
        self._accounts = Accounts(self._simulator)
        self.single_observation_space = find_observation_space(
            self._simulator, self._accounts.durations, observation_space
        )
        self.single_action_space = gymnasium.spaces.Discrete(self._actions.n)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Random generator of each environment."""
        return tuple(self._generator(b) for b in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """Seed of each environment's generator."""
        return tuple(self._seeds[b] for b in range(self.num_envs) if self._generator(b))

    def reset(
        self,
        *,
        seed: Whole | Sequence[Whole | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in every environment, or in those of a mask.

        Parameters
        ----------
        seed : int or sequence of int, optional
            Environment i gets seed + i, or the sequence's entry i.
        options : dict, optional
            "instance": the instance to play, or its name; "reset_mask": bool (B,), the environments to
            start anew, the others go on.

        Returns
        -------
        observations : ndarray(float32, (B, n_features))
        infos : dict

        Raises
        ------
        InputError
            If there is no such instance or option, seeds or mask have another length or type, or the very
            first reset has a mask; nothing is changed.
        """
        choice = name_entry(self._simulator, options, ("instance", "reset_mask"))
        options = options or {}
        mask = np.ones(self.num_envs, np.bool_)
        if "reset_mask" in options:
            mask = np.asarray(options["reset_mask"])
            if mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
                raise InputError(
                    f"reset_mask: read {mask.dtype} of shape {mask.shape}; "
                    f"expected bool of shape ({self.num_envs},) with at least one True"
                )
            if not self._started:
                raise InputError("reset_mask: expected a first reset of all environments before")
        if seed is None:
            seeds: Sequence[Whole | None] = [None] * self.num_envs
        elif isinstance(seed, Iterable):
            seeds = list(seed)
        else:
            [first] = read_seeds([seed])
            seeds = [first + b for b in range(self.num_envs)]  # type: ignore[operator]
        if len(seeds) != self.num_envs:
            raise InputError(f"seed: read {len(seeds)} seeds; expected {self.num_envs}")
        for b, value in enumerate(read_seeds(seeds)):
            if value is not None and mask[b]:
                self._generators[b], self._seeds[b] = seeding.np_random(value)
                self._seeded[b] = False
        self._restart(np.flatnonzero(mask), choice)
        self._started = True
        infos = self._look(~mask)
        self._add_names(infos, mask)
        return self._simulator.observation, infos

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one decision in every environment.

        Parameters
        ----------
        actions : ndarray(int, (B,))

        Returns
        -------
        observations : ndarray(float32, (B, n_features))
        rewards : ndarray(float64, (B,))
        terminations, truncations : ndarray(bool, (B,))
        infos : dict

        Raises
        ------
        ActionError
            If an action is illegal, nothing was started, or with DISABLED an episode is over; no
            environment is changed then.
        """
        simulator, mode = self._simulator, self.autoreset_mode
        waiting = self._over.copy()
        if mode is AutoresetMode.DISABLED and waiting.any():
            raise ActionError(
                f"environments {np.flatnonzero(waiting).tolist()} are over; expected "
                "reset(options={'reset_mask': ...}) first"
            )
        rewards, ended, settled, redrawn = self.take(np.arange(self.num_envs), actions)
        ends: dict[str, np.ndarray] = {}
        if settled is not None:
            rows = np.flatnonzero(ended)
            ends = {name: np.zeros(self.num_envs) for name in ("cost", "makespan", "tardiness")}
            ends["status"] = np.full(self.num_envs, None, object)
            for name, values in ends.items():
                values[rows] = getattr(settled, name)
        truncations = np.zeros(self.num_envs, np.bool_)

        final: dict[str, Any] = {}
        restarted = np.zeros(self.num_envs, np.bool_)
        if mode is AutoresetMode.NEXT_STEP:
            restarted = waiting
        elif mode is AutoresetMode.SAME_STEP:
            restarted = ended
            if ends:
                final = self._look_at_ends(ended, ends, redrawn)
                ends = {}
        if restarted.any():
            self._restart(np.flatnonzero(restarted))
        infos = self._look()
        if ends:
            infos["cost"] = ends.pop("cost")
            for name, values in ends.items():
                put(infos, name, values, ended)
        if self._redraws:
            put(infos, "redrawn", redrawn & ~restarted, ~restarted)
        self._add_names(infos, restarted)
        return simulator.observation, rewards, ended, truncations, {**infos, **final}

    @property
    def observation(self) -> np.ndarray:
        """What is seen now, float32 (B, n_features); zero in environments that are over."""
        return self._simulator.observation

    @property
    def is_over(self) -> np.ndarray:
        """Whether each environment is over and waits for its reset, bool (B,)."""
        return self._over.copy()

    def take(
        self, rows: np.ndarray, actions: ArrayLike
    ) -> tuple[np.ndarray, np.ndarray, Settled | None, np.ndarray]:
        """Take one decision in some environments and restart none, for loops of other libraries.

        Parameters
        ----------
        rows : ndarray(int, (n,))
            The environments, each at most once; what is chosen for those that are over is ignored.
        actions : array_like of int, (n,)

        Returns
        -------
        rewards : ndarray(float64, (n,))
        ended : ndarray(bool, (n,))
            Whose episode this decision has ended.
        settled : Settled or None
            What those that ended are paid, in their order; None if there are none.
        redrawn : ndarray(bool, (n,))
            Whose action was illegal, and drawn anew.

        Raises
        ------
        ActionError
            If an action is illegal, or nothing was started; no environment is changed then.
        """
        if not self._started:
            raise ActionError("no episode is running; expected reset() first")
        waiting = self._over[rows]
        redrawn = np.zeros(len(rows), np.bool_)
        if self._redraws:
            actions, redrawn = redraw(
                actions,
                self._actions.mask()[rows],
                ~self._simulator.done[rows],
                lambda k: self._generator(int(rows[k])),
            )
        self._actions.take(actions, rows)
        ended = self._simulator.done[rows] & ~waiting
        rewards, settled = np.zeros(len(rows)), None
        if ended.any():
            settled = self._accounts.settle(rows[ended])
            rewards[ended] = settled.reward
            self._over[rows[ended]] = True
        return rewards, ended, settled, redrawn

    def action_masks(self) -> np.ndarray:
        """Return the legal actions, bool (B, n_actions)."""
        return self._actions.mask()

    def render(self) -> tuple[Any, ...] | None:
        """Return a frame of each environment, as `render_mode` says."""
        frames = tuple(render(self, self._simulator, b) for b in range(self.num_envs))
        return None if self.render_mode is None else frames

    def _generator(self, b: int) -> np.random.Generator:
        generator = self._generators[b]
        if generator is None:
            generator, self._seeds[b] = seeding.np_random()
            self._generators[b] = generator
        return generator

    def _restart(self, rows: np.ndarray, choice: int | None = None) -> None:
        if choice is None and len(self._entries) > 1:
            choices = [draw_entry(self._entries, lambda b=b: self._generator(b)) for b in rows]
        else:
            choices = [self._entries[0] if choice is None else choice] * len(rows)
        seeds = None
        if self._random and not self._seeded[rows].all():
            for b in rows:
                self._generator(b)
            seeds = [None if self._seeded[b] else self._seeds[b] for b in rows]
            self._seeded[rows] = True
        self._simulator.restart(rows, choices, seeds=seeds)
        self._actions.begin()
        self._over[rows] = False

    def _look(self, hidden: np.ndarray | None = None) -> dict[str, Any]:
        """Return the info of the environments; zero in those that are `hidden`, bool (B,)."""
        values = {
            "action_mask": self._actions.mask().view(np.int8),
            "time": self._simulator.time,
            "cost": np.zeros(self.num_envs),
        }
        infos: dict[str, Any] = {}
        for name, value in values.items():
            shown = np.ones(self.num_envs, np.bool_)
            if hidden is not None:
                value[hidden] = 0
                shown[hidden] = False
            infos[name], infos[f"_{name}"] = value, shown
        return infos

    def _look_at_ends(
        self, ended: np.ndarray, ends: dict[str, np.ndarray], redrawn: np.ndarray
    ) -> dict[str, Any]:
        """Return what SAME_STEP tells of the episodes that a step ended."""
        info = self._look(~ended)
        for name, values in ends.items():
            put(info, name, values, ended)
        if self._redraws:
            put(info, "redrawn", redrawn & ended, ended)
        observations = np.full(self.num_envs, None, object)
        for b in np.flatnonzero(ended):
            observations[b] = np.zeros(self._simulator.n_features, np.float32)
        final: dict[str, Any] = {}
        put(final, "final_obs", observations, ended)
        put(final, "final_info", info, ended)
        return final

    def _add_names(self, infos: dict[str, Any], restarted: np.ndarray) -> None:
        if restarted.any():
            names = np.full(self.num_envs, None, object)
            names[restarted] = self._names[self._simulator.choices[restarted]]
            put(infos, "instance", names, restarted)
