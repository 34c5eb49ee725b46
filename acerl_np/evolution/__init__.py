"""ACERL's ingredients on plain arrays: strategy, ranking, instance sampler.

Nothing here knows vehicles or tasks, so it serves any constrained black-box problem.
"""

from acerl_np.evolution.ranking import Ranking, penalise, rank_utilities
from acerl_np.evolution.sampler import InstanceSampler, make_sampler
from acerl_np.evolution.strategy import Strategy

__all__ = [
    "InstanceSampler",
    "Ranking",
    "Strategy",
    "make_sampler",
    "penalise",
    "rank_utilities",
]
