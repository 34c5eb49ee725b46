"""Public names and their homes, for type checkers; `__init__.py` imports them when they are used."""

from acerl_np.evolution.optimise import optimize as optimize
from acerl_np.evolution.optimiser import Evolution as Evolution
from acerl_np.evolution.ranges import Ranking as Ranking
from acerl_np.evolution.ranking import Ranker as Ranker
from acerl_np.evolution.ranking import penalise as penalise
from acerl_np.evolution.ranking import rank_utilities as rank_utilities
from acerl_np.evolution.records import Best as Best
from acerl_np.evolution.records import Report as Report
from acerl_np.evolution.records import Result as Result
from acerl_np.evolution.records import Stops as Stops
from acerl_np.evolution.sampler import InstanceSampler as InstanceSampler
from acerl_np.evolution.sampler import make_sampler as make_sampler
from acerl_np.evolution.scaled import Adapt as Adapt
from acerl_np.evolution.search import Search as Search
from acerl_np.evolution.search import SearchDistribution as SearchDistribution
from acerl_np.evolution.strategy import Strategy as Strategy
from acerl_np.kernels.learning.update import Noise as Noise
