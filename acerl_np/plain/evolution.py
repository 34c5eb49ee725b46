"""ACERL, Algorithm 1: adaptive constrained evolutionary reinforcement learning."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from acerl_np.plain.floor import Instance, number_slots
from acerl_np.plain.policy import HIDDEN, Policy, evaluate, initialise, layer_sizes, sample_softmax
from acerl_np.plain.streams import ACTION, NOISE, RANKING, SAMPLER, normals, stream_key, uniform

F = np.float32


@dataclass(frozen=True)
class Settings:
    """The inputs of Algorithm 1; where the paper gives no value, that of the released code.

    Attributes
    ----------
    population : int
        lambda.
    learning_rate : float
        alpha.
    noise_std, noise_decay, noise_decay_every
        sigma of the first generation, its factor, and the generations after which it is multiplied.
    cost_limit : float
        xi, s of tardiness.
    p_f : float
        Probability of comparing by reward although a member is infeasible.
    alpha_u : float
        Exploration factor of the instance sampler.
    hidden : tuple of int
        Sizes of the hidden layers.
    """

    population: int = 256
    learning_rate: float = 0.06
    noise_std: float = 0.1
    noise_decay: float = 0.99
    noise_decay_every: int = 50
    cost_limit: float = 50.0
    p_f: float = 0.5
    alpha_u: float = 1.0
    hidden: tuple[int, ...] = HIDDEN


class Member(NamedTuple):
    """What is stored of an individual in the buffer of its instance (Algorithm 1, line 14)."""

    j_r: float
    j_c: float
    zeta: int
    """Its number in the population."""


class Generation(NamedTuple):
    """What a generation leaves: theta, the members of each instance, and the decisions they took."""

    theta: np.ndarray
    instance_buffers: list[list[Member]]
    decisions: int


def train(
    instances: list[Instance], generations: int, seed: int = 0, settings: Settings | None = None
) -> Iterator[Generation]:
    """Yield theta as it begins, then each generation (Algorithm 1).

    Parameters
    ----------
    instances : list of Instance
        The K training instances.
    generations : int
        G.
    seed : int
        The same seed gives the same bytes.
    settings : Settings, optional
    """
    s = Settings() if settings is None else settings
    sizes, slots = layer_sizes(instances[0], s.hidden), number_slots(instances)
    theta = initialise(sizes, seed)  # line 1
    reward_buffers: list[list[float]] = [[] for _ in instances]  # line 2
    counts = [0 for _ in instances]  # line 3
    yield Generation(theta, [], 0)
    for n in range(generations):  # line 4
        instance_buffers: list[list[Member]] = [[] for _ in instances]  # line 5
        # As in the released code, which counts generations from 0, too.
        sigma = s.noise_std * s.noise_decay ** ((n + 1) // s.noise_decay_every)
        noise = sample_noise(seed, n, s.population, theta.size)  # line 6
        # Line 9 for all members at once, as in the released code: from the rewards of earlier generations.
        key = stream_key(seed, SAMPLER, n, 0)
        sampled = sample_instances(reward_buffers, counts, s.population, s.alpha_u, key)
        decisions = 0
        for i in range(s.population):  # line 7
            policy = Policy(sizes, theta + F(sigma) * noise[i])  # line 8
            eta = sampled[i]  # line 9
            key = stream_key(seed, ACTION, n, i)
            j_r, j_c, steps = evaluate(policy, instances[eta], slots, key)  # line 10
            counts[eta] += 1  # line 11
            zeta = i  # line 12
            reward_buffers[eta].append(j_r)  # line 13
            instance_buffers[eta].append(Member(j_r, j_c, zeta))  # line 14
            decisions += steps
        f = rank(instance_buffers, s.cost_limit, s.p_f, seed, n)  # line 16
        theta = theta + F(s.learning_rate) * estimate_gradient(f, noise, sigma)  # line 17
        yield Generation(theta, instance_buffers, decisions)


# Algorithm 2, the adaptive instance sampler (AIS)


def sample_instances(
    reward_buffers: list[list[float]],
    counts: list[int],
    n_members: int,
    alpha_u: float,
    key: list[int],
) -> list[int]:
    """Return an instance eta for each member; those that were never tried come first, in turn.

    The fast code adds up the same probabilities in another order: of 10^15 draws one may differ.
    """
    untried = [eta for eta, count in enumerate(counts) if count == 0]
    tried = [eta for eta, count in enumerate(counts) if count > 0]
    if not tried:
        return [i % len(counts) for i in range(n_members)]
    scores = []
    for eta in tried:  # line 1
        u = metric(reward_buffers[eta])  # line 2
        bonus = math.sqrt(math.log(sum(counts)) / counts[eta])
        scores.append(u + alpha_u * bonus)  # Eq. 7
    drawn = [
        tried[sample_softmax(scores, uniform(key, i, 0))]  # line 4
        for i in range(len(untried), n_members)
    ]
    return (untried + drawn)[:n_members]


def metric(rewards: list[float]) -> float:
    """Return u_eta (Eq. 6): how far the rewards are from the best, in units of their range."""
    highest, lowest = max(rewards), min(rewards)
    if highest == lowest:
        return 0.0
    return sum((highest - j_r) / (highest - lowest) for j_r in rewards) / len(rewards)


# Algorithm 4, intrinsic stochastic ranking (ISR)


def rank(
    instance_buffers: list[list[Member]], cost_limit: float, p_f: float, seed: int, generation: int
) -> np.ndarray:
    """Return the fitness f of each member, ndarray(float64, (lambda,)).

    As in the released code ranks are standardised within their instance, then over the population.
    """
    f = np.zeros(sum(map(len, instance_buffers)))
    for k, members in enumerate(instance_buffers):  # line 1
        if members:
            phi = [penalty(member.j_c, cost_limit) for member in members]
            key = stream_key(seed, RANKING, generation, k)
            order = sort([member.j_r for member in members], phi, p_f, key)
            f[[member.zeta for member in members]] = standardise(count_down(order))
    return standardise(f)


def penalty(j_c: float, cost_limit: float) -> float:
    """Return phi, 0 for a feasible member (Eq. 8)."""
    violation = max(0.0, j_c - cost_limit)
    return violation * violation


def sort(j_r: list[float], phi: list[float], p_f: float, key: list[int]) -> list[int]:
    """Return the places l: the members of one instance from best to worst, by stochastic bubble sort.

    Members are compared through l, as in the released code; the printed lines compare members j and j + 1.
    """
    n_members = len(j_r)  # line 2, mu'
    places = list(range(n_members))  # lines 3 to 5
    for i in range(n_members):  # line 7
        for j in range(n_members - 1):  # line 8
            a, b = places[j], places[j + 1]
            if phi[a] == phi[b] == 0.0 or uniform(key, i, j) < p_f:  # lines 9 and 10
                swaps = j_r[a] < j_r[b]  # line 11
            else:
                swaps = phi[a] > phi[b]  # line 15
            if swaps:
                places[j], places[j + 1] = b, a  # lines 12 and 16
    return places


def count_down(places: list[int]) -> np.ndarray:
    """Return mu' - i + 1 for the member at place i: the best gets mu', the worst 1 (line 22)."""
    f = np.empty(len(places))
    for i, member in enumerate(places):
        f[member] = len(places) - i
    return f


def standardise(x: np.ndarray) -> np.ndarray:
    """Return numbers of mean zero and standard deviation one; zeros where all are equal."""
    if x.min() == x.max():
        return np.zeros_like(x)
    deviation = x - x.mean()
    return np.asarray(deviation / np.sqrt(np.square(deviation).mean()))


# Natural evolution strategies: noise and gradient


def sample_noise(seed: int, generation: int, population: int, n_parameters: int) -> np.ndarray:
    """Return epsilon_1 ... epsilon_lambda from N(0, I), ndarray(float32, (population, n_parameters))."""
    keys = (stream_key(seed, NOISE, generation, member) for member in range(population))
    return np.stack([normals(key, n_parameters) for key in keys])


def estimate_gradient(f: np.ndarray, noise: np.ndarray, sigma: float) -> np.ndarray:
    """Return 1 / (lambda sigma) sum_i f_i epsilon_i, the vanilla estimator (Eq. 11), i ascending."""
    total = np.zeros(noise.shape[1], F)
    for weight, epsilon in zip(f.astype(F), noise, strict=True):
        total += weight * epsilon
    return total * F(1.0 / (len(noise) * sigma))
