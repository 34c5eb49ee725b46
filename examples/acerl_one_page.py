"""ACERL on one page of NumPy: DMH-01 to -08 in half a minute, on the package's simulator.

Lines are those of the paper's Algorithms 1 to 4. `acerl_np.plain` is longer, with a simulator to read, and
gives the bytes of the fast code; this page has random numbers of its own. Options: --seed, --generations.
"""

import argparse
from itertools import pairwise

import numpy as np
from numpy import ndarray as Array
from numpy.random import Generator

from acerl_np import Instance, Simulator, load_suite

POPULATION, RATE, XI, P_F, ALPHA_U = 256, 0.06, 50.0, 0.5, 1.0  # lambda, alpha, limit in s
SIZES = 219, 128, 128, 12  # features, two hidden layers, vehicles * rules
SHAPES = [(n + 1, m) for n, m in pairwise(SIZES)]  # the last row has the biases
ENDS = np.cumsum([n * m for n, m in SHAPES])


def split(thetas: Array) -> list[Array]:
    """Return the layers of networks, one a row."""
    parts = zip(np.split(thetas, ENDS[:-1], axis=1), SHAPES, strict=True)
    return [x.reshape(-1, *shape) for x, shape in parts]


def evaluate(thetas: Array, instances: list[Instance], random: Generator) -> tuple[Array, Array]:
    """Return J_R and J_C of an episode for each network (Algorithm 3), all in lockstep."""
    sim, layers = Simulator(instances), split(thetas)  # lines 1 to 3
    while not sim.done.all():  # line 4
        x = sim.observation
        x = (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-5)
        for k, layer in enumerate(layers):
            active = np.maximum(x, 0.0) if k else x
            x = (active[:, None] @ layer[:, :-1])[:, 0] + layer[:, -1]
        gumbel = -np.log(-np.log(random.uniform(1e-12, 1.0, x.shape)))  # x + gumbel: softmax
        sim.step(np.where(sim.action_mask, x + gumbel, -np.inf).argmax(1))  # lines 5 to 8
    return -sim.makespan, sim.tardiness


def sample_instances(returns: list[list[float]], n: int, random: Generator) -> Array:
    """Return an instance for each member: the adaptive instance sampler (Algorithm 2)."""
    if not all(map(len, returns)):
        return np.arange(n) % len(returns)  # untried ones first, in turn
    count = np.array([*map(len, returns)])
    u = [(max(j) - np.mean(j)) / max(1e-9, max(j) - min(j)) for j in returns]  # Eq. 6
    share = np.exp(u + ALPHA_U * np.sqrt(np.log(count.sum()) / count))  # Eq. 7
    return random.choice(len(returns), n, p=share / share.sum())  # line 4


def rank(j_r: Array, j_c: Array, eta: Array, random: Generator) -> Array:
    """Return the members' fitness: intrinsic stochastic ranking (Algorithm 4)."""
    f, phi = np.zeros(len(eta)), np.maximum(0.0, j_c - XI) ** 2  # Eq. 8
    for instance in np.unique(eta):  # line 1
        place = np.flatnonzero(eta == instance)  # lines 2 to 5
        for _ in place:  # line 7
            for j in range(len(place) - 1):  # line 8
                a, b = place[j : j + 2]
                by_return = phi[a] == phi[b] == 0.0 or random.random() < P_F  # lines 9 and 10
                if j_r[a] < j_r[b] if by_return else phi[a] > phi[b]:  # lines 11 and 15
                    place[j : j + 2] = b, a  # lines 12 and 16
        f[place] = standardise(np.arange(len(place), 0.0, -1.0))  # line 22
    return standardise(f)


def standardise(x: Array) -> Array:
    """Return numbers of mean 0 and deviation 1, as the released code."""
    return np.asarray((x - x.mean()) / max(x.std(), 1e-9))


def train(instances: list[Instance], generations: int, seed: int) -> Array:
    """Return theta after the generations (Algorithm 1)."""
    random = np.random.default_rng(seed)
    theta = np.zeros((1, ENDS[-1]), np.float32)  # line 1
    for layer in split(theta):
        layer[0, :-1] = random.normal(0.0, np.sqrt(2.0 / (layer.shape[1] - 1)), layer[0, :-1].shape)
    returns: list[list[float]] = [[] for _ in instances]  # lines 2 and 3
    for g in range(generations):  # line 4
        sigma = np.float32(0.1 * 0.99 ** ((g + 1) // 50))
        noise = random.standard_normal((POPULATION, ENDS[-1]), np.float32)  # lines 5 and 6
        eta = sample_instances(returns, POPULATION, random)  # line 9
        j_r, j_c = evaluate(theta + sigma * noise, [instances[k] for k in eta], random)  # 7 to 10
        for k, own in enumerate(returns):  # lines 11 to 14
            own.extend(j_r[eta == k])
        f = rank(j_r, j_c, eta, random).astype(np.float32)  # line 16
        theta = theta + RATE * (f @ noise) / (POPULATION * sigma)  # line 17, Eq. 11
        print(f"{g + 1}: {-j_r.mean():.1f} s, {(j_c < XI).mean():.0%} within {XI:g} s", flush=True)
    return theta


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--generations", type=int, default=128)
    options, suite = parser.parse_args(), load_suite("dmh-train")
    policy = np.repeat(train(suite, options.generations, options.seed), 240, axis=0)
    own_r, own_c = evaluate(policy, suite * 30, np.random.default_rng(1))
    print(f"240 trials: {-own_r.mean():.1f} s, {(own_c < XI).mean():.0%} within {XI:g} s")
