"""For Tianshou: observations with their mask, as its policies read them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from acerl_np.support.fields import Whole
from acerl_np.support.sharing import CopiedWhole

UNTOLD = {"action_mask", "makespan", "tardiness", "status"}
"""What infos of steps leave out: the mask is seen, the others are nan or missing while an episode goes on."""


class MaskInObservation(CopiedWhole, gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose observation is a dict of "obs" and "mask".

    Tianshou stacks such dicts into batches, and its policies for discrete actions that know masks, such as
    DQN's, read `batch.obs.obs` and `batch.obs.mask`. Its vector environments take the wrapper:
    `DummyVectorEnv([lambda: MaskInObservation(DMHEnv("DMH-01"))] * 8)`.

    "obs" is the observation, float32 (n_features,); "mask" bool (n_actions,), True is legal. At an end, which
    no policy is asked about, it is all False. An info of a step holds the same numbers each time, as trainers
    refuse a buffer in which something is missing: those of `DMHEnv` but for the mask, and "finished" (bool,
    whether all tasks are served) instead of status, makespan and tardiness. Reward and "cost" tell these two.

    Parameters
    ----------
    env : gymnasium.Env
        A `DMHEnv`, or what `gymnasium.make` returns of one.
    """

    def __init__(self, env: gymnasium.Env[np.ndarray, Any]) -> None:
        super().__init__(env)
        mask = gymnasium.spaces.MultiBinary(int(env.action_space.n))  # type: ignore[attr-defined]
        self.observation_space = gymnasium.spaces.Dict({"obs": env.observation_space, "mask": mask})

    def reset(
        self, *, seed: Whole | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode, as `DMHEnv`."""
        observation, info = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        return self._join(observation, info), info

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Take one decision, as `DMHEnv`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        told = {name: value for name, value in info.items() if name not in UNTOLD}
        told["finished"] = info.get("status") == "finished"
        return self._join(observation, info), float(reward), terminated, truncated, told

    def _join(self, observation: np.ndarray, info: dict[str, Any]) -> dict[str, np.ndarray]:
        return {"obs": observation, "mask": info["action_mask"].astype(np.bool_)}
