"""LSAC: soft actor-critic whose reward is less a fixed Lagrangian multiplier times the cost.

The paper refers to Tamar, Di Castro and Mannor (2012, arXiv:1206.6404) and does not give the multiplier.
"""

from __future__ import annotations

from studies.rivals.sac import SAC
from studies.rivals.settings import LagrangianSettings


class LSAC(SAC):
    """Soft actor-critic of the Lagrangian."""

    settings_class = LagrangianSettings
