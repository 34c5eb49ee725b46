"""ACERL's ingredients on plain arrays: strategy, ranking, instance sampler; and `Evolution`, all in one.

Nothing here knows vehicles or tasks, so it serves any constrained black-box problem.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acerl_np.evolution.optimise import optimize
    from acerl_np.evolution.optimiser import Evolution
    from acerl_np.evolution.ranges import Ranking
    from acerl_np.evolution.ranking import Ranker, penalise, rank_utilities, sum_violations
    from acerl_np.evolution.records import Best, Report, Result, Stops
    from acerl_np.evolution.sampler import InstanceSampler, make_sampler
    from acerl_np.evolution.search import Search, Spread
    from acerl_np.evolution.spreads import Adapt
    from acerl_np.evolution.strategy import Strategy
    from acerl_np.kernels.learning.update import Noise

__all__ = [
    "Adapt",
    "Best",
    "Evolution",
    "InstanceSampler",
    "Noise",
    "Ranker",
    "Ranking",
    "Report",
    "Result",
    "Search",
    "Spread",
    "Stops",
    "Strategy",
    "make_sampler",
    "optimize",
    "penalise",
    "rank_utilities",
    "sum_violations",
]

_HOMES = {
    "evolution.spreads": "Adapt",
    "evolution.records": "Best Report Result Stops",
    "evolution.optimiser": "Evolution",
    "evolution.sampler": "InstanceSampler make_sampler",
    "kernels.learning.update": "Noise",
    "evolution.ranking": "Ranker Ranking penalise rank_utilities sum_violations",
    "evolution.search": "Search Spread",
    "evolution.strategy": "Strategy",
    "evolution.optimise": "optimize",
}
"""Names by the module that defines them: they are imported when first used, and ranges need no compiler."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'acerl_np.evolution' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"acerl_np.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
