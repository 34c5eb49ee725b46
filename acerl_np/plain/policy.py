"""The policy pi_theta: a neural network that draws an action by a masked softmax (Sections II-A and V).

The paper says two hidden layers of 128 units. ReLU, biases, He normal weights and the standardised state are
those of the released code. Arithmetic is float32, and sums run over the inputs in ascending order.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from acerl_np.plain.floor import Instance
from acerl_np.plain.simulator import RULES, Episode
from acerl_np.plain.streams import INITIAL, normals, stream_key, uniform

HIDDEN = (128, 128)

F = np.float32


def layer_sizes(instance: Instance, hidden: tuple[int, ...] = HIDDEN) -> list[int]:
    """Return the layers' sizes: features of a state first, actions last."""
    slots, n_vehicles = instance.floor.layout["task_slots"], len(instance.floor.layout["vehicles"])
    return [4 * slots + n_vehicles * (3 + slots), *hidden, n_vehicles * len(RULES)]


def initialise(sizes: list[int], seed: int) -> np.ndarray:
    """Return the first theta: of each layer the weights, a row for each input, then the biases, all zero."""
    parts = []
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        weights = normals(stream_key(seed, INITIAL, layer, 0), n_in * n_out)
        parts += [weights * F(np.sqrt(2.0 / n_in)), np.zeros(n_out, F)]
    return np.concatenate(parts)


def add_rows(total: np.ndarray, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return total + sum_k values[k] rows[k], k ascending; zeros add nothing."""
    for k in np.flatnonzero(values):
        total = total + values[k] * rows[k]
    return total


class Policy:
    """pi_theta.

    Parameters
    ----------
    sizes : list of int
        Of the layers.
    theta : ndarray(float32, (n_parameters,))
    """

    def __init__(self, sizes: list[int], theta: np.ndarray) -> None:
        self.layers = []
        first = 0
        for n_in, n_out in pairwise(sizes):
            weights = theta[first : first + n_in * n_out].reshape(n_in, n_out)
            first += n_in * n_out
            self.layers.append((weights, theta[first : first + n_out]))
            first += n_out
        self.column_sums = add_rows(np.zeros(sizes[1], F), np.ones(sizes[0], F), self.layers[0][0])

    def logits(self, state: list[float]) -> np.ndarray:
        """Return the outputs of a state, ndarray(float32, (n_actions,)).

        The state x is standardised as a whole: (x - mean) / (std + 1e-5). As the first layer is linear, with
        weights W, that is (x W - mean * column sums of W) / (std + 1e-5): zeros of empty slots are left out.
        """
        x = np.array(state, F)
        total = squares = 0.0
        for value in x.tolist():
            total += value
            squares += value * value
        mean = total / len(x)
        std = math.sqrt(max(0.0, squares / len(x) - mean * mean))
        weights, bias = self.layers[0]
        x = add_rows(np.zeros(len(bias), F), x, weights)
        x = (x - F(mean) * self.column_sums) * F(1.0 / (std + 1e-5)) + bias
        for weights, bias in self.layers[1:]:
            x = add_rows(bias, np.maximum(x, F(0.0)), weights)
        return x

    def sample(self, state: list[float], mask: list[bool], u: float) -> int:
        """Return a legal action, drawn by the masked softmax with a uniform number."""
        logits = self.logits(state).tolist()
        legal = [action for action, is_legal in enumerate(mask) if is_legal]
        return legal[sample_softmax([logits[action] for action in legal], u)]


def sample_softmax(scores: list[float], u: float) -> int:
    """Return k with the probability exp(score k) / sum_j exp(score j), by inversion of a uniform number."""
    highest = max(scores)
    weights = [math.exp(score - highest) for score in scores]
    total = 0.0
    for weight in weights:
        total += weight
    remaining = u * total
    for k, weight in enumerate(weights):
        remaining -= weight
        if remaining < 0.0:
            return k
    return len(weights) - 1


def evaluate(
    policy: Policy, instance: Instance, slots: dict[str, int], key: list[int]
) -> tuple[float, float, int]:
    """Return J_R and J_C of an episode on an instance, and its decisions (Algorithm 3).

    `key` is that of the stream that draws the actions.
    """
    j_r = 0.0  # line 1
    j_c = 0.0  # line 2
    env = Episode(instance.floor, instance.record, slots=slots)  # line 3
    t = 0
    while not env.done:  # line 4
        action = policy.sample(env.state(), env.mask(), uniform(key, t, 0))  # line 5
        reward, cost = env.step(action)  # line 6
        j_r += reward  # line 7
        j_c += cost  # line 8
        t += 1
    return j_r, j_c, t
