"""ACERL's ingredients on plain arrays: strategy, ranking, instance sampler; and `Evolution`, all in one.

Nothing here knows vehicles or tasks, so it serves any constrained black-box problem.
"""

from __future__ import annotations

import acerl_np

_HOMES = {
    "evolution.scaled": "Adapt",
    "evolution.records": "Best Report Result Stops",
    "evolution.optimiser": "Evolution",
    "evolution.sampler": "InstanceSampler make_sampler",
    "kernels.learning.update": "Noise",
    "evolution.ranges": "Ranking",
    "evolution.ranking": "Ranker penalise rank_utilities",
    "evolution.search": "Search SearchDistribution",
    "evolution.strategy": "Strategy",
    "evolution.optimise": "optimize",
}
"""Public names by the module that defines them, as in `__init__.pyi`: ranges need no compiler."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    return acerl_np._load(globals(), _MODULES, name)
