"""What the tests of searches share: problems to climb, how far to go, states as bytes."""

import numpy as np
from machine import JIT, needs_jit

GENERATIONS = 4 if JIT else 2

many_draws = needs_jit


def hill(members):
    return -np.square(members - 1.0).sum(axis=1)


def hills(members, ids):
    """Another optimum on every instance; feasible left of 0.25."""
    return -np.square(members - ids[:, np.newaxis]).sum(axis=1), members[:, 0] - 0.25


def play(evolution, generations=GENERATIONS, evaluate=hills):
    """The reports of some generations; `evaluate` gives what is told of members and their instances."""
    reports = []
    for _ in range(generations):
        asked = evolution.ask()
        reports.append(evolution.tell(*evaluate(*asked)))
    return reports


def read_bytes(state):
    return {name: np.asarray(array).tobytes() for name, array in state.items()}


def state_bytes(search):
    return read_bytes(search.get_state())
