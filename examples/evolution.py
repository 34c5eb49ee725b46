"""One solution for several instances of a constrained problem, with a known optimum.

Six parameters, four instances. Instance k sees the point x* + d only through a random projection z = B_k d
onto three dimensions. It wants to maximise -s_k |z - t_k u_k|^2, with a random direction u_k, but z must not
leave the half-space u_k z <= 0. The best point of that half-space is z = 0, so x* with return -s_k t_k^2 is
optimal on every instance; as four times three dimensions span all six, no other point is. The scales s_k
differ by a factor of 1,000: ranking stays within each instance, as returns of two cannot be compared.

Without the constraint (ranking "r") the search ends between the targets t_k u_k; on the first instance
alone (sampler "single"), three of the six dimensions are never seen.

    python examples/evolution.py [--quick] [--seeds N]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from acerl_np.evolution import Evolution

N_PARAMETERS, N_SEEN, N_INSTANCES = 6, 3, 4
POPULATION = 80
SETTINGS: dict[str, dict[str, Any]] = {
    "ais": {},
    "uniform": {"sampler": "uniform"},
    "random": {"sampler": "random"},
    "ais, matrix": {"adapt": "matrix", "noise_decay": None},
    "single instance": {"sampler": "single"},
    "constraint ignored": {"ranking": "r"},
}


@dataclass(frozen=True)
class Projections:
    """The instances: optimum x*, projections B, directions u, distances t, scales s."""

    optimum: np.ndarray
    projections: np.ndarray
    directions: np.ndarray
    distances: np.ndarray
    scales: np.ndarray

    @property
    def optimal_returns(self) -> np.ndarray:
        """Return of x* on each instance."""
        return np.asarray(-self.scales * self.distances**2)

    def evaluate(self, members: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the returns and costs of the members on their instances."""
        z = np.einsum("ikj,ij->ik", self.projections[ids], members - self.optimum)
        target = self.distances[ids, np.newaxis] * self.directions[ids]
        returns = -self.scales[ids] * np.square(z - target).sum(axis=1)
        return returns, np.maximum(0.0, (z * self.directions[ids]).sum(axis=1))


def make_instances(seed: int) -> Projections:
    """Return random instances."""
    rng = np.random.default_rng(seed)
    bases = [np.linalg.qr(rng.normal(size=(N_PARAMETERS, N_SEEN)))[0].T for _ in range(N_INSTANCES)]
    directions = rng.normal(size=(N_INSTANCES, N_SEEN))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    optimum, distances = rng.uniform(-3, 3, N_PARAMETERS), rng.uniform(1, 2, N_INSTANCES)
    scales = 10.0 ** np.arange(N_INSTANCES)
    return Projections(optimum, np.array(bases), directions, distances, scales)


def search(problem: Projections, seed: int, generations: int, **options: Any) -> np.ndarray:
    """Return the mean that the search of one seed ends with."""
    evolution = Evolution(
        np.zeros(N_PARAMETERS),
        sigma=1.0,
        population=POPULATION,
        n_instances=N_INSTANCES,
        seed=seed,
        p_f=0.45,
        **{"adapt": "none", "noise_decay": 0.001 ** (1 / generations), **options},
    )
    for _ in range(generations):
        members, ids = evolution.ask()
        evolution.tell(*problem.evaluate(members, ids), ids)
    return evolution.mean


def judge(problem: Projections, mean: np.ndarray) -> tuple[float, float, float]:
    """Distance to x*, mean relative loss of return, largest cost, over all instances."""
    ids = np.arange(N_INSTANCES)
    returns, costs = problem.evaluate(np.tile(mean, (N_INSTANCES, 1)), ids)
    loss = (problem.optimal_returns - returns) / np.abs(problem.optimal_returns)
    return float(np.linalg.norm(mean - problem.optimum)), float(loss.mean()), float(costs.max())


def print_line(label: str, points: list[tuple[Projections, np.ndarray]]) -> None:
    """Print what the points of several seeds come to, as means and standard deviations."""
    rows = [judge(*point) for point in points]
    cells = (f"{np.mean(own):.4f} ({np.std(own):.4f})" for own in zip(*rows, strict=True))
    print(f"{label:20}" + "".join(f"{cell:>20}" for cell in cells))


def main() -> None:
    """Run every setting with every seed and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2 seeds, 50 generations")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    seeds, generations = (2, 50) if options.quick else (options.seeds, 300)
    print(f"{generations} generations of {POPULATION}, {seeds} seeds: mean (standard deviation)")
    print(f"{'':20}{'distance to x*':>20}{'loss of return':>20}{'largest cost':>20}")
    print(f"{'known optimum':20}" + f"{'0.0000':>20}" * 3)
    problems = [make_instances(seed) for seed in range(seeds)]
    for name, setting in SETTINGS.items():
        found = [search(own, k, generations, **setting) for k, own in enumerate(problems)]
        print_line(name, [*zip(problems, found, strict=True)])


if __name__ == "__main__":
    main()
