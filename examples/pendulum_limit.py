"""Constrained control: one policy swings up eight pendulums of Gymnasium, its mean squared torque limited.

`Evolution` deals a variant to each member (the adaptive sampler), and ranks by return and limit (ISR). Beside
it: pycma, or `optimize` without it, on the mean return of all variants less a penalty for each excess, with
as many episodes. Printed are, over all variants, the mean return a step, and the largest and the mean of the
mean squared torques.

    pip install -e '.[gym,cma]'
    python examples/pendulum_limit.py [--seeds N] [--episodes N] [--quick]
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import gymnasium
import numpy as np

from acerl_np.evolution import Evolution, optimize

LIMIT, PENALTY = 0.8, 10.0
VARIANTS = [(mass, length) for mass in (0.8, 0.95, 1.05, 1.2) for length in (0.9, 1.1)]
ENVS: list[Any] = [gymnasium.make("Pendulum-v1").unwrapped for _ in VARIANTS]
for env, variant in zip(ENVS, VARIANTS, strict=True):
    env.m, env.l = variant


def play(weights: np.ndarray, variant: int) -> tuple[float, float]:
    """Return the mean reward and the mean squared torque of an episode from hanging down, nearly."""
    env = ENVS[variant]
    env.state = np.array([math.pi - 0.1, 0.0])
    total = cost = 0.0
    for _ in range(200):
        angle, speed = env.state
        sine, cosine = math.sin(angle), math.cos(angle)
        odd = sine, speed, sine * cosine, speed * cosine, speed**3 / 20
        torque = 2.0 * math.tanh(float(weights @ odd))
        total += float(env.step(np.array([torque]))[1])
        cost += torque**2
    return total / 200, cost / 200


def judge(weights: np.ndarray) -> np.ndarray:
    """Return the mean rewards and the mean squared torques of all variants, (n_variants, 2)."""
    return np.array([play(weights, variant) for variant in range(len(VARIANTS))])


def search_by_ranking(seed: int, episodes: int) -> np.ndarray:
    """Return the best mean of two searches by ISR that kept the limit on all variants.

    From weights of zero, which never swing up, only chance in the ranking finds a way, and ends beyond the
    limit. From there the second search ranks by feasibility first.
    """
    best, kept, mean, played = -math.inf, np.zeros(5), np.zeros(5), 0
    for p_f, sigma, share in ((0.45, 1.0, 0.6), (0.0, 0.2, 1.0)):
        evolution = Evolution(
            mean,
            sigma=sigma,
            adapt="matrix",
            population=64,
            cost_limit=LIMIT,
            p_f=p_f,
            n_instances=len(VARIANTS),
            seed=seed,
        )
        while played + evolution.population + len(VARIANTS) <= share * episodes:
            members, variants = evolution.ask()
            told = np.array([play(*one) for one in zip(members, variants, strict=True)])
            evolution.tell(told[:, 0], told[:, 1], variants)
            mean = evolution.mean
            rewards, torques = judge(mean).T
            played += len(members) + len(VARIANTS)
            if rewards.mean() > best and torques.max() <= LIMIT:
                best, kept = rewards.mean(), mean
    return kept


def search_by_penalty(seed: int, episodes: int) -> np.ndarray:
    """Return the policy of the best mean return less penalties, each point played on all variants."""

    def loss(weights: np.ndarray) -> float:
        told = judge(weights)
        return float((PENALTY * np.maximum(0.0, told[:, 1] - LIMIT) - told[:, 0]).mean())

    points = episodes // len(VARIANTS)
    try:
        import cma
    except ImportError:
        return optimize(loss, np.zeros(5), 1.0, evaluations=points, seed=seed).x
    options = {"maxfevals": points, "seed": seed + 1, "verbose": -9}
    return np.asarray(cma.fmin2(loss, np.zeros(5), 1.0, options)[0])


def main() -> None:
    """Print a line of Markdown for each search and seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=6_400)
    parser.add_argument("--quick", action="store_true", help="one seed, 64 episodes")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.episodes = 1, 64
    print("| search | seed | return | largest torque^2 | mean torque^2 |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for search in (search_by_ranking, search_by_penalty):
        for seed in range(options.seeds):
            found = search(seed, options.episodes)
            told = judge(found)
            name = search.__name__.removeprefix("search_").replace("_", " ")
            cells = told[:, 0].mean(), told[:, 1].max(), told[:, 1].mean()
            print(f"| {name} | {seed} | " + " | ".join(f"{x:.2f}" for x in cells) + " |")


if __name__ == "__main__":
    main()
