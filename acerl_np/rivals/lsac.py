"""LSAC: soft actor-critic whose reward is less a fixed Lagrangian multiplier times the cost.

The paper refers to Tamar, Di Castro and Mannor (2012, arXiv:1206.6404) and does not give the multiplier.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from acerl_np.rivals.episodes import Ended
from acerl_np.rivals.learner import Task, reward_outcome
from acerl_np.rivals.sac import SAC
from acerl_np.rivals.settings import LagrangianSettings, Settings


class LSAC(SAC):
    """Soft actor-critic of the Lagrangian.

    Parameters
    ----------
    task : Task
    settings : LagrangianSettings
    """

    settings_class: ClassVar[type[Settings]] = LagrangianSettings

    def __init__(self, task: Task, settings: LagrangianSettings) -> None:
        super().__init__(task, settings)
        self._multiplier = settings.multiplier

    @property
    def multiplier(self) -> float:
        """Weight of the tardiness in the reward, lambda."""
        return self._multiplier

    def reward(self, ended: Ended) -> np.ndarray:
        """Return the reward of a step less lambda times its cost."""
        reward, cost = reward_outcome(self.settings, self.task, ended)
        return reward - self._multiplier * cost
