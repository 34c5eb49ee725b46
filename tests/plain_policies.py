"""Policies in plain Python, as a user writes them."""

import numpy as np


class Nearest:
    """The baseline "nearest" by the pairs of a scene, where all vehicles are equally fast."""

    def choose(self, sim):
        vehicles, tasks = np.full((2, sim.n_episodes), -1)
        for b in np.flatnonzero(~sim.done):
            pairs = sim.pairs(b)
            k = pairs.approach.argmin()
            vehicles[b], tasks[b] = pairs.vehicle[k], pairs.task[k]
        return vehicles, tasks


class Asking:
    """It leaves all to another policy, and sees what that is shown."""

    def __init__(self, policy):
        self.policy = policy
        if hasattr(policy, "task_ids"):
            self.slots, self.task_ids = policy.slots, policy.task_ids

    def choose(self, sim):
        return self.policy.choose(sim)


class Answering:
    """It always gives the same answer."""

    def __init__(self, answer):
        self.answer = answer

    def choose(self, sim):
        return self.answer


def first_legal(observation, mask):
    return mask.argmax(axis=1)
