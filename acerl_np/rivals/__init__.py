"""The learners that the paper compares with: PPO, SAC, LSAC, RCPOM, MAPPO, and each with adaptive dealing."""

from __future__ import annotations

from acerl_np.rivals.history import Round
from acerl_np.rivals.settings import Settings
from acerl_np.rivals.training import ALGORITHMS, RivalTrainer, train

__all__ = ["ALGORITHMS", "RivalTrainer", "Round", "Settings", "train"]
