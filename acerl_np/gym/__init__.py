"""Gymnasium environments: one episode at a time, or a batch of them on one lockstep simulator.

Importing this module registers "acerl_np/DMH-v0", and "acerl_np/DMHPairs-v0" whose actions are a vehicle
and a waiting task; `gymnasium.make("acerl_np.gym:acerl_np/DMH-v0")` imports it by itself. For two libraries
of learners there are modules that nothing here imports: `acerl_np.gym.sb3` and `acerl_np.gym.tianshou`.
"""

from __future__ import annotations

from acerl_np.support.errors import needing

with needing("{}: the environments need gymnasium >= 1.1; pip install 'acerl_np[gym]'"):
    import gymnasium

from acerl_np.gym.single import DMHEnv
from acerl_np.gym.vector import DMHVectorEnv

__all__ = ["ENV_ID", "PAIRS_ENV_ID", "DMHEnv", "DMHVectorEnv"]

ENV_ID = "acerl_np/DMH-v0"
PAIRS_ENV_ID = "acerl_np/DMHPairs-v0"

for _id, _actions in ((ENV_ID, "rules"), (PAIRS_ENV_ID, "pairs")):
    if _id not in gymnasium.registry:
        gymnasium.register(
            _id,
            entry_point="acerl_np.gym:DMHEnv",
            vector_entry_point="acerl_np.gym:DMHVectorEnv",
            kwargs={"actions": _actions},
        )
