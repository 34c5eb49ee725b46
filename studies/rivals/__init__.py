"""The learners that the paper compares with: PPO, SAC, LSAC, RCPOM, MAPPO, and each with adaptive dealing."""

from __future__ import annotations

from studies.rivals.episodes import Round
from studies.rivals.settings import RivalSettings
from studies.rivals.training import ALGORITHMS, RivalTrainer, train

__all__ = ["ALGORITHMS", "RivalSettings", "RivalTrainer", "Round", "train"]
