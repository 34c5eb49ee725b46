"""Gymnasium environments: one episode at a time, or a batch of them on one lockstep simulator.

Importing this module registers "acerl_np/DMH-v0"; `gymnasium.make("acerl_np.gym:acerl_np/DMH-v0")`
imports it by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.checks import is_whole
from acerl_np.errors import ActionError, InputError, MissingExtraError, describe
from acerl_np.kernels.state import FINISH, STATUS, TASK, TIME, VEHICLE, WORKING
from acerl_np.problem.instance import Instance, bundled_suites, load_instance, load_suite
from acerl_np.simulator import Simulator, find_legal
from acerl_np.view import describe_episode, draw_episode

try:
    import gymnasium
    from gymnasium.utils import seeding
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise MissingExtraError(
        f"{error}: the environments need gymnasium >= 1.1; pip install 'acerl_np[gym]'"
    ) from error

ENV_ID = "acerl_np/DMH-v0"

InstanceLike = str | os.PathLike[str] | Instance

RENDER_MODES = ("ansi", "rgb_array")
ILLEGAL = ("error", "redraw")


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
        break down at random, `problem.tables.find_last_tick` says when.
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

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # type: ignore[misc]

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
        _check_choice("illegal", illegal, ILLEGAL)
        _check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        loaded = _load(instance, instances)
        self._simulator = Simulator(
            loaded,
            scaling=scaling,
            task_slots=task_slots,
            n_vehicles=n_vehicles,
            horizon=horizon,
            n_episodes=1,
        )
        self._entries = _find_entries(self._simulator, loaded)
        self._redraws = illegal == "redraw"
        self._over = True
        self._seeded = False  # whether the simulator has this environment's seed
        self.render_mode = render_mode
        self.observation_space = _observation_space(self._simulator)
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
        choice = _name_entry(self._simulator, options)
        [seed] = _read_seeds([seed])
        super().reset(seed=seed)
        if choice is None:
            choice = _draw_entry(self._entries, lambda: self.np_random)
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
            actions, illegal = _redraw(simulator, actions, lambda b: self.np_random)
        simulator.step(actions)
        over = bool(simulator.done[0])
        info = {**self._look(), "cost": 0.0}
        if self._redraws:
            info["redrawn"] = len(illegal) > 0
        if not over:
            return simulator.observation[0], 0.0, False, False, info
        self._over = True
        rewards, costs = _settle(simulator, np.array([0]))
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
        return _render(self, self._simulator, 0)

    def _look(self) -> dict[str, Any]:
        return {
            "action_mask": self._simulator.action_mask[0].astype(np.int8),
            "time": float(self._simulator.time[0]),
        }


class DMHVectorEnv(gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many `DMHEnv` on one lockstep simulator.

    Observations, rewards, ends and infos are those of Gymnasium's `SyncVectorEnv` of `num_envs`
    environments in the same autoreset mode. Each environment has its own random stream: a seed s
    gives environment i the seed s + i.

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
    max_episode_steps : None
        Not to be used: an end after so many steps would be worth more than the best schedule.

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
        num_envs: int = 1,
        instances: InstanceLike | Sequence[InstanceLike] | None = None,
        horizon: float | None = None,
        illegal: str = "error",
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        task_slots: int | None = None,
        n_vehicles: int | None = None,
        scaling: ArrayLike | None = None,
        instance: InstanceLike | Sequence[InstanceLike] | None = None,
        max_episode_steps: None = None,
    ) -> None:
        _check_choice("illegal", illegal, ILLEGAL)
        _check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        if not is_whole(num_envs) or num_envs < 1:
            raise InputError(f"num_envs: read {describe(num_envs)}; expected at least 1")
        if max_episode_steps is not None:
            raise InputError(
                f"max_episode_steps: read {describe(max_episode_steps)}; expected horizon=, in seconds"
            )
        if not isinstance(autoreset_mode, AutoresetMode):
            _check_choice("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**DMHEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = render_mode
        loaded = _load(instances, instance)
        self._simulator = Simulator(
            loaded,
            scaling=scaling,
            task_slots=task_slots,
            n_vehicles=n_vehicles,
            horizon=horizon,
            n_episodes=num_envs,
        )
        self._entries = _find_entries(self._simulator, loaded)
        self._names = np.array([instance.name for instance in self._simulator.pool], object)
        self._redraws = illegal == "redraw"
        self._random = any(item.layout.has_random_breakdowns for item in loaded)
        self._seeded = np.zeros(num_envs, np.bool_)  # the simulator has the environment's seed
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self._seeds = [-1] * num_envs
        self._started = False
        self._over = np.zeros(num_envs, np.bool_)  # ended, and the end has been reported
        self.single_observation_space = _observation_space(self._simulator)
        self.single_action_space = gymnasium.spaces.Discrete(self._simulator.n_actions)
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
        seed: int | Sequence[int | None] | None = None,
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
            If there is no such instance, seeds or mask have another length or type, or the very first
            reset has a mask; nothing is changed.
        """
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
        choice = _name_entry(self._simulator, options)
        if seed is None:
            seeds: Sequence[int | None] = [None] * self.num_envs
        elif isinstance(seed, Iterable):
            seeds = list(seed)
        else:
            [first] = _read_seeds([seed])
            seeds = [first + b for b in range(self.num_envs)]  # type: ignore[operator]
        if len(seeds) != self.num_envs:
            raise InputError(f"seed: read {len(seeds)} seeds; expected {self.num_envs}")
        seeds = _read_seeds(seeds)
        for b, value in enumerate(seeds):
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
        if not self._started:
            raise ActionError("no episode is running; expected reset() first")
        simulator, mode = self._simulator, self.autoreset_mode
        waiting = self._over
        if mode is AutoresetMode.DISABLED and waiting.any():
            raise ActionError(
                f"environments {np.flatnonzero(waiting).tolist()} are over; expected "
                "reset(options={'reset_mask': ...}) first"
            )
        redrawn = np.zeros(self.num_envs, np.bool_)
        if self._redraws:
            actions, illegal = _redraw(simulator, actions, self._generator)
            redrawn[illegal] = True
        simulator.step(actions)
        ended = simulator.done & ~waiting
        rewards = np.zeros(self.num_envs)
        terminations = np.zeros(self.num_envs, np.bool_)
        ends: dict[str, np.ndarray] = {}
        if ended.any():
            rows = np.flatnonzero(ended)
            ends = {name: np.zeros(self.num_envs) for name in ("cost", "makespan", "tardiness")}
            rewards[rows], ends["cost"][rows] = _settle(simulator, rows)
            ends["makespan"][rows] = simulator.makespan[rows]
            ends["tardiness"][rows] = simulator.tardiness[rows]
            terminations[rows] = simulator.status[rows] == "finished"
        truncations = ended & ~terminations

        final: dict[str, Any] = {}
        restarted = np.zeros(self.num_envs, np.bool_)
        if mode is AutoresetMode.NEXT_STEP:
            restarted = waiting
        elif mode is AutoresetMode.SAME_STEP:
            restarted = ended
            if ends:
                final = self._look_at_ends(ended, ends, redrawn)
                ends = {}
        self._over = ended if not final else np.zeros(self.num_envs, np.bool_)
        if restarted.any():
            self._restart(np.flatnonzero(restarted))
        infos = self._look()
        if ends:
            infos["cost"] = ends.pop("cost")
            for name, values in ends.items():
                _put(infos, name, values, ended)
        if self._redraws:
            _put(infos, "redrawn", redrawn & ~restarted, ~restarted)
        self._add_names(infos, restarted)
        return simulator.observation, rewards, terminations, truncations, {**infos, **final}

    def action_masks(self) -> np.ndarray:
        """Return the legal actions, bool (B, n_actions)."""
        return self._simulator.action_mask

    def render(self) -> tuple[Any, ...] | None:
        """Return a frame of each environment, as `render_mode` says."""
        frames = tuple(_render(self, self._simulator, b) for b in range(self.num_envs))
        return None if self.render_mode is None else frames

    def _generator(self, b: int) -> np.random.Generator:
        generator = self._generators[b]
        if generator is None:
            generator, self._seeds[b] = seeding.np_random()
            self._generators[b] = generator
        return generator

    def _restart(self, rows: np.ndarray, choice: int | None = None) -> None:
        if choice is None and len(self._entries) > 1:
            choices = [_draw_entry(self._entries, lambda b=b: self._generator(b)) for b in rows]
        else:
            choices = [self._entries[0] if choice is None else choice] * len(rows)
        seeds = None
        if self._random and not self._seeded[rows].all():
            for b in rows:
                self._generator(b)
            seeds = [None if self._seeded[b] else self._seeds[b] for b in rows]
            self._seeded[rows] = True
        self._simulator.restart(rows, choices, seeds=seeds)
        self._over[rows] = False

    def _look(self, hidden: np.ndarray | None = None) -> dict[str, Any]:
        """Return the info of the environments; zero in those that are `hidden`, bool (B,)."""
        values = {
            "action_mask": self._simulator.action_mask.view(np.int8),
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
            _put(info, name, values, ended)
        if self._redraws:
            _put(info, "redrawn", redrawn & ended, ended)
        observations = np.full(self.num_envs, None, object)
        for b in np.flatnonzero(ended):
            observations[b] = np.zeros(self._simulator.n_features, np.float32)
        final: dict[str, Any] = {}
        _put(final, "final_obs", observations, ended)
        _put(final, "final_info", info, ended)
        return final

    def _add_names(self, infos: dict[str, Any], restarted: np.ndarray) -> None:
        if restarted.any():
            names = np.full(self.num_envs, None, object)
            names[restarted] = self._names[self._simulator.choices[restarted]]
            _put(infos, "instance", names, restarted)


def _check_choice(name: str, value: Any, expected: Sequence[Any]) -> None:
    if value not in expected:
        raise InputError(f"{name}: read {value!r}; expected one of {list(expected)}")


def _read_seeds(seeds: Iterable[Any]) -> list[int | None]:
    """Return seeds as Python's numbers, which Gymnasium insists on."""
    read: list[int | None] = []
    for seed in seeds:
        if seed is not None and (not is_whole(seed) or seed < 0):
            raise InputError(f"seed: read {describe(seed)}; expected a whole number from 0 on")
        read.append(None if seed is None else int(seed))
    return read


def _load(
    instances: InstanceLike | Sequence[InstanceLike] | None,
    others: InstanceLike | Sequence[InstanceLike] | None,
) -> list[Instance]:
    """Return what either of two names of one parameter asks for, by default DMH-01."""
    if instances is not None and others is not None:
        raise InputError("instance and instances are both given; expected one of the two")
    chosen: Any = others if instances is None else instances
    if chosen is None:
        chosen = "DMH-01"
    if isinstance(chosen, str | os.PathLike | Instance):
        chosen = [chosen]
    if not isinstance(chosen, Sequence):
        raise InputError(
            f"instances: read {chosen!r}; expected a name, a file, an Instance or several"
        )
    loaded: list[Instance] = []
    for item in chosen:
        if not isinstance(item, str | os.PathLike | Instance):
            raise InputError(f"instances: read {item!r}; expected a name, a file or an Instance")
        if isinstance(item, Instance):
            item.check_servable()
            loaded.append(item)
        elif item in bundled_suites():
            loaded += load_suite(str(item))
        else:
            loaded.append(load_instance(item))
    return loaded


def _find_entries(simulator: Simulator, instances: Sequence[Instance]) -> list[int]:
    """Return each entry's position in the pool: an instance that stands twice is drawn as often."""
    position = {id(instance): k for k, instance in enumerate(simulator.pool)}
    return [position[id(instance)] for instance in instances]


def _name_entry(simulator: Simulator, options: dict[str, Any] | None) -> int | None:
    """Return the position in the pool of the instance that `options` ask for, None if for none."""
    wanted = (options or {}).get("instance")
    if wanted is None:
        return None
    names = [instance.name for instance in simulator.pool]
    hashes = [instance.content_hash for instance in simulator.pool]
    if isinstance(wanted, Instance):
        keys = list(zip(hashes, names, strict=True))
        if (wanted.content_hash, wanted.name) in keys:
            return keys.index((wanted.content_hash, wanted.name))
        if wanted.content_hash in hashes:
            return hashes.index(wanted.content_hash)
        wanted = wanted.name
        raise InputError(f"instance: read {wanted!r} of other content; expected one of {names}")
    if not isinstance(wanted, str):
        raise InputError(f"instance: read {describe(wanted)}; expected one of {names}")
    _check_choice("instance", wanted, names)
    same = {key for key, name in zip(hashes, names, strict=True) if name == wanted}
    if len(same) > 1:
        raise InputError(
            f"instance: {wanted!r} is the name of several; expected the instance itself"
        )
    return names.index(wanted)


def _draw_entry(entries: Sequence[int], generator: Any) -> int:
    """Return an entry at random; one alone takes no draw. `generator` is called for the generator."""
    return entries[0] if len(entries) == 1 else entries[generator().integers(len(entries))]


def _observation_space(simulator: Simulator) -> gymnasium.spaces.Box:
    # Distances and waiting times have no bound of their own.
    most = float(np.finfo(np.float32).max)
    return gymnasium.spaces.Box(-most, most, (simulator.n_features,), np.float32)


def _redraw(simulator: Simulator, actions: Any, generator: Any) -> tuple[np.ndarray, np.ndarray]:
    """Replace illegal actions of running episodes; return all actions, and where they were illegal.

    What is no array of whole numbers stays as it is, for the simulator to refuse.
    """
    actions = np.asarray(actions)
    if actions.dtype.kind not in "iu" or actions.shape != (simulator.n_episodes,):
        return actions, np.empty(0, np.int64)
    mask = simulator.action_mask
    illegal = np.flatnonzero(~simulator.done & ~find_legal(mask, actions))
    if len(illegal):
        actions = actions.astype(np.int64)
        for b in illegal:
            actions[b] = generator(b).choice(np.flatnonzero(mask[b]))
    return actions, illegal


def _settle(simulator: Simulator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return reward and cost of episodes that are over, float64 (n,)."""
    rewards, costs = -simulator.makespan[rows], simulator.tardiness[rows]
    for k in np.flatnonzero(np.isnan(rewards)):
        rewards[k] = -simulator.time[rows[k]]
        costs[k] = _delay_so_far(simulator, int(rows[k]))
    return rewards, costs


def _delay_so_far(simulator: Simulator, b: int) -> float:
    """Return the mean delay of the tasks of a stopped episode, unfinished ones as if finished now."""
    instance, state = simulator.instances[b], simulator.state
    n, fleet = instance.n_tasks, len(instance.layout.vehicles)
    served = state.task[b, :n, VEHICLE] >= 0
    vehicles = state.vehicle[b, :fleet]
    served[vehicles[vehicles[:, STATUS] == WORKING, TASK]] = False
    finish = np.where(served, state.task[b, :n, FINISH], state.episode[b, TIME])
    return float(np.maximum(finish - (instance.arrival + instance.expiry), 0.0).mean())


def _render(env: Any, simulator: Simulator, b: int) -> Any:
    if env.render_mode == "ansi":
        return describe_episode(simulator, b)
    if env.render_mode == "rgb_array":
        return draw_episode(simulator, b)
    gymnasium.logger.warn(f"render() without a render mode; expected one of {RENDER_MODES}")
    return None


def _put(infos: dict[str, Any], name: str, values: Any, where: np.ndarray) -> None:
    """Add an info the way Gymnasium's vector environments do: values, and which entries hold."""
    if where.any():
        infos[name] = values
        infos[f"_{name}"] = where.copy()


if ENV_ID not in gymnasium.registry:
    gymnasium.register(
        ENV_ID,
        entry_point="acerl_np.gym:DMHEnv",
        vector_entry_point="acerl_np.gym:DMHVectorEnv",
    )
