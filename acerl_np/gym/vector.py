"""The Gymnasium environment of a batch of episodes on one lockstep simulator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from acerl_np.gym.episodes import METADATA, SEED, Episodes, Instances, Settings, Settled
from acerl_np.support.errors import ActionError, InputError, refuse
from acerl_np.support.fields import Field, Whole
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
        As in `DMHEnv`: each environment draws one of them at each reset.
    autoreset_mode : AutoresetMode or str
        NEXT_STEP restarts an episode in the step after its end, which ignores its action. SAME_STEP
        restarts it in the step of its end, whose observation and info are then in "final_obs" and
        "final_info". DISABLED leaves it to reset(options={"reset_mask": ...}).
    **settings
        As in `DMHEnv`: horizon, illegal, render_mode, task_slots, n_vehicles, scaling, actions,
        max_episode_steps, slots, rules, may_wait. An illegal action that is an error
        changes no environment, there is a frame for each, and the space is that of one.

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
        instances: Instances = "DMH-01",
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **settings: Unpack[Settings],
    ) -> None:
        count = Field(int, 1, expected="at least 1")
        n = self.num_envs = int(count.read("num_envs", num_envs, InputError))
        if not isinstance(autoreset_mode, AutoresetMode):
            modes = tuple(mode.value for mode in AutoresetMode)
            Field(modes).read("autoreset_mode", autoreset_mode, InputError)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**METADATA, "autoreset_mode": self.autoreset_mode}
        self.render_mode = settings.get("render_mode")
        self._episodes = Episodes(n, instances, **settings)
        pool = self._episodes.simulator.pool
        self._names = np.array([item.name for item in pool], object)
        self._random = any(item.layout.has_random_breakdowns for item in pool)
        self._seeded = np.zeros(n, np.bool_)  # the simulator has the environment's seed
        drawn = [seeding.np_random() for _ in range(n)]
        self._generators = [generator for generator, _ in drawn]
        self._seeds = [seed for _, seed in drawn]
        self.single_observation_space = self._episodes.observation_space
        self.single_action_space = self._episodes.action_space
        self.observation_space = batch_space(self.single_observation_space, n)
        self.action_space = batch_space(self.single_action_space, n)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Random generator of each environment."""
        return tuple(self._generators)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """Seed of each environment's generator."""
        return tuple(self._seeds)

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
        choice = self._episodes.choose(options, "reset_mask")
        options = options or {}
        mask = np.ones(self.num_envs, np.bool_)
        if "reset_mask" in options:
            mask = np.asarray(options["reset_mask"])
            if mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
                expected = f"bool of shape ({self.num_envs},) with at least one True"
                refuse("reset_mask", f"{mask.dtype} of shape {mask.shape}", expected)
            if not self._episodes.is_started:
                raise InputError("reset_mask: expected a first reset of all environments before")
        if seed is None:
            seeds: Sequence[Whole | None] = [None] * self.num_envs
        elif isinstance(seed, Iterable):
            seeds = list(seed)
        else:
            first = SEED.read("seed", seed, InputError)
            seeds = [first + b for b in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            refuse("seed", f"{len(seeds)} seeds", f"{self.num_envs}")
        # Gymnasium insists on Python's numbers.
        for b, value in enumerate([SEED.read("seed", x, InputError) for x in seeds]):
            if value is not None and mask[b]:
                self._generators[b], self._seeds[b] = seeding.np_random(value)
                self._seeded[b] = False
        self._restart(np.flatnonzero(mask), choice)
        infos = self._look(mask)
        self._add_names(infos, mask)
        return self.observation, infos

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
        mode, waiting = self.autoreset_mode, self.is_over
        if mode is AutoresetMode.DISABLED and waiting.any():
            raise ActionError(
                f"environments {np.flatnonzero(waiting).tolist()} are over; expected "
                "reset(options={'reset_mask': ...}) first"
            )
        rewards, ended, settled, redrawn = self._episodes.take(
            None, actions, self._generators.__getitem__
        )
        everyone = np.ones(self.num_envs, np.bool_)
        restarted = ~everyone
        final: dict[str, Any] = {}
        if mode is AutoresetMode.NEXT_STEP:
            restarted = waiting
        elif mode is AutoresetMode.SAME_STEP and settled is not None:
            restarted = ended
            observations = np.full(self.num_envs, None, object)
            for b in np.flatnonzero(ended):
                observations[b] = np.zeros(self._episodes.simulator.n_features, np.float32)
            _put(final, "final_obs", observations, ended)
            told = self._look(ended, ended, settled)
            if self._episodes.redraws:
                _put(told, "redrawn", redrawn & ended, ended)
            _put(final, "final_info", told, ended)
            settled = None
        if restarted.any():
            self._restart(np.flatnonzero(restarted))
        infos = self._look(everyone, ended, settled)
        if self._episodes.redraws:
            _put(infos, "redrawn", redrawn & ~restarted, ~restarted)
        self._add_names(infos, restarted)
        truncations = np.zeros(self.num_envs, np.bool_)
        return self.observation, rewards, ended, truncations, {**infos, **final}

    @property
    def observation(self) -> np.ndarray:
        """What is seen now, float32 (B, n_features); zero in environments that are over."""
        return self._episodes.simulator.observation

    @property
    def is_over(self) -> np.ndarray:
        """Whether each environment is over and waits for its reset, bool (B,)."""
        return self._episodes.over.copy()

    def take(
        self, rows: np.ndarray, actions: ArrayLike
    ) -> tuple[np.ndarray, np.ndarray, Settled | None, np.ndarray]:
        """Take one decision in some environments, int (n,), and restart none, for loops of other libraries.

        What is chosen for those that are over is ignored. Return the rewards, whose episode has ended, what
        those that ended are paid (None if there are none), and whose action was illegal and drawn anew. An
        `ActionError` changes no environment.
        """
        return self._episodes.take(rows, actions, self._generators.__getitem__)

    def action_masks(self) -> np.ndarray:
        """Return the legal actions, bool (B, n_actions)."""
        return self._episodes.actions.mask()

    def render(self) -> tuple[Any, ...] | None:
        """Return a frame of each environment, as `render_mode` says."""
        frames = tuple(self._episodes.render(b) for b in range(self.num_envs))
        return None if self.render_mode is None else frames

    def _restart(self, rows: np.ndarray, choice: int | None = None) -> None:
        choices = [
            self._episodes.draw(b, self._generators.__getitem__) if choice is None else choice
            for b in rows
        ]
        seeds: list[int | None] | None = None
        if self._random and not self._seeded[rows].all():
            seeds = [None if self._seeded[b] else self._seeds[b] for b in rows]
            self._seeded[rows] = True
        self._episodes.start(rows, choices, seeds)

    def _look(
        self, where: np.ndarray, ended: np.ndarray | None = None, settled: Settled | None = None
    ) -> dict[str, Any]:
        """Return the info of some environments, zero in the others, and of the episodes that have ended."""
        infos: dict[str, Any] = {}
        for name, values in (
            ("action_mask", self.action_masks().view(np.int8)),
            ("time", self._episodes.simulator.time),
            ("cost", np.zeros(self.num_envs)),
        ):
            values[~where] = 0
            _put(infos, name, values, where)
        if settled is not None and ended is not None:
            for name in ("cost", "makespan", "tardiness", "status"):
                values = np.full(self.num_envs, None if name == "status" else 0.0)
                values[ended] = getattr(settled, name)
                _put(infos, name, values, infos.get(f"_{name}", ended))
        return infos

    def _add_names(self, infos: dict[str, Any], restarted: np.ndarray) -> None:
        names = np.full(self.num_envs, None, object)
        names[restarted] = self._names[self._episodes.simulator.choices[restarted]]
        _put(infos, "instance", names, restarted)


def _put(infos: dict[str, Any], name: str, values: Any, where: np.ndarray) -> None:
    """Add an info the way Gymnasium's vector environments do: values, and which entries hold."""
    if where.any():
        infos[name] = values
        infos[f"_{name}"] = where.copy()
