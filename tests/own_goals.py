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


class Worst(InstanceSampler):
    """Deals the record of the worst return, and learns."""

    statistics = ("count", "worst")

    def __init__(self, n_instances, seed):
        super().__init__(n_instances, seed)
        self.worst = np.full(n_instances, np.inf)

    def assign(self, n_groups, generation):
        chosen = np.full(n_groups, self.worst.argmin())
        chosen[: self.n_instances] = np.arange(min(n_groups, self.n_instances))
        return chosen

    def update(self, instance_ids, returns):
        super().update(instance_ids, returns)
        np.minimum.at(self.worst, instance_ids, returns)  # in place


class Hollow(InstanceSampler):
    def __init__(self, n_instances, seed):
        pass

    def assign(self, n_groups, generation):
        return np.zeros(n_groups, np.int64)


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
