"""Gymnasium environments: one episode at a time, or a batch of them on one lockstep simulator.

Importing this module registers "acerl_np/DMH-v0"; `gymnasium.make("acerl_np.gym:acerl_np/DMH-v0")`
imports it by itself.
"""

from __future__ import annotations

from acerl_np.support.errors import MissingExtraError

try:
    import gymnasium
except ImportError as error:
    raise MissingExtraError(
        f"{error}: the environments need gymnasium >= 1.1; pip install 'acerl_np[gym]'"
    ) from error

from acerl_np.gym.single import DMHEnv
from acerl_np.gym.vector import DMHVectorEnv

__all__ = ["ENV_ID", "DMHEnv", "DMHVectorEnv"]

ENV_ID = "acerl_np/DMH-v0"

if ENV_ID not in gymnasium.registry:
    gymnasium.register(
        ENV_ID,
        entry_point="acerl_np.gym:DMHEnv",
        vector_entry_point="acerl_np.gym:DMHVectorEnv",
    )
