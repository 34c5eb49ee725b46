"""What a user may write: equal to what is built in, and wrong in several ways."""

import numpy as np

from acerl_np.evolution import InstanceSampler


def shift(measures):
    return 0.05 * measures.tardiness + measures.late


def late(measures):
    return measures.late


def by_return(returns, costs, ids):
    return returns


class Turns(InstanceSampler):
    """As "uniform"."""

    def assign(self, n_groups, generation):
        first = generation * n_groups % self.n_instances
        return (first + np.arange(n_groups)) % self.n_instances


class Beyond(InstanceSampler):
    def assign(self, n_groups, generation):
        return np.full(n_groups, self.n_instances)


def too_few(measures):
    return measures.makespan[1:]


def nowhere(measures):
    return measures.makespan * np.nan


def words(measures):
    return "small"


def raises(measures):
    return measures.speed
