"""ACERL's ingredients on plain arrays: strategy, ranking, instance sampler; and `Evolution`, all in one.

Nothing here knows vehicles or tasks, so it serves any constrained black-box problem.
"""

from acerl_np.evolution.optimise import optimize
from acerl_np.evolution.optimiser import Evolution
from acerl_np.evolution.ranking import Ranker, Ranking, penalise, rank_utilities, sum_violations
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
