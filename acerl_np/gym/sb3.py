"""A vector environment for Stable-Baselines3, and so for MaskablePPO of sb3-contrib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import numpy as np

from acerl_np.support.errors import InputError, needing

with needing("{}: DMHVecEnv needs Stable-Baselines3; pip install 'acerl_np[sb3]'"):
    from stable_baselines3.common.vec_env import VecEnv

from acerl_np.gym.episodes import Instances, Settings
from acerl_np.gym.vector import DMHVectorEnv
from acerl_np.support.fields import Whole
from acerl_np.support.sharing import CopiedWhole

Indices = int | Iterable[int] | None


class DMHVecEnv(CopiedWhole, VecEnv):  # type: ignore[misc]
    """Many environments on one lockstep simulator, as Stable-Baselines3 wants them.

    An episode that is over is started anew in the same step, so a learner sees only decisions, each with at
    least one legal action. `infos` of a step are empty but for an episode's end: there they hold
    "terminal_observation" (zero), "TimeLimit.truncated" (False: every end is terminal), "cost", "makespan",
    "tardiness" and "status" as of `DMHEnv`. `reset_infos` name the instances. Around it, `VecMonitor` counts
    returns, and `VecNormalize` may scale rewards.

    Parameters
    ----------
    num_envs, instances
        As of `DMHVectorEnv`.
    **settings
        As of `DMHVectorEnv`: horizon, illegal, render_mode, task_slots, n_vehicles, scaling, actions,
        slots, rules.

    Raises
    ------
    InputError
        As of `DMHVectorEnv`; at a start, if an episode has no decision before its horizon.
    """

    def __init__(
        self,
        num_envs: Whole = 1,
        instances: Instances = "DMH-01",
        **settings: Unpack[Settings],
    ) -> None:
        self.envs = DMHVectorEnv(num_envs, instances, autoreset_mode="Disabled", **settings)
        n = self.envs.num_envs
        self._rows = np.arange(n)
        self._chosen: np.ndarray = np.zeros(n, np.int64)
        super().__init__(n, self.envs.single_observation_space, self.envs.single_action_space)

    def reset(self) -> np.ndarray:
        """Start all episodes, with the seeds and options that were set, the same options for all."""
        options = [item or {} for item in self._options]
        if any(item != options[0] for item in options):
            raise InputError("options: differ between environments; expected the same for all")
        observation, infos = self.envs.reset(seed=self._seeds, options=options[0])
        self._reset_seeds()
        self._reset_options()
        self._note_starts(infos)
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions, ndarray(int, (B,)), for `step_wait`."""
        self._chosen = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take the actions; an `ActionError` for an illegal one changes no environment."""
        rewards, dones, settled, _ = self.envs.take(self._rows, self._chosen)
        told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if settled is not None:
            for k, b in enumerate(np.flatnonzero(dones)):
                seen = np.zeros(self.observation_space.shape, np.float32)
                end = {"terminal_observation": seen, "TimeLimit.truncated": False}
                told[b] = {**end, **settled.tell(k)}
            self._note_starts(self.envs.reset(options={"reset_mask": dones})[1])
        return self.envs.observation, rewards.astype(np.float32), dones, told

    def _note_starts(self, infos: dict[str, Any]) -> None:
        started = np.flatnonzero(infos["_instance"])
        for b in started:
            self.reset_infos[b] = {"instance": infos["instance"][b]}
        idle = started[~infos["action_mask"][started].any(axis=1)]
        if len(idle):
            raise InputError(
                f"horizon: {infos['instance'][idle[0]]} has no decision before it; expected a later one"
            )

    def action_masks(self) -> np.ndarray:
        """Return the legal actions, bool (B, n_actions)."""
        return self.envs.action_masks()

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()

    def has_attr(self, attr_name: str) -> bool:
        """Tell whether the environments have an attribute."""
        return hasattr(self.envs, attr_name)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute, the same of all environments, once for each."""
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of all environments; an `InputError` if it is to be set of some."""
        if len(set(self._get_indices(indices))) < self.num_envs:
            raise InputError(f"indices: read some, for {attr_name}; expected all environments")
        setattr(self.envs, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Return the entries of "action_masks" or "render" for the environments asked for."""
        if method_name not in ("action_masks", "render"):
            raise AttributeError(
                f"{method_name}: no method of each environment; expected 'action_masks' or 'render'"
            )
        entries = getattr(self.envs, method_name)(*method_args, **method_kwargs)
        return [entries[b] for b in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """Return False for each environment: none is wrapped."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return a picture of each environment; None in another render mode."""
        if self.render_mode != "rgb_array":
            return [None] * self.num_envs
        return list(self.envs.render() or ())
