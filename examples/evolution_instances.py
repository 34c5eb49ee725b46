"""One solution for several instances of a constrained problem, with a known optimum.

Six parameters, four instances. Instance k sees the point x* + d only through a random projection
z = B_k d onto three dimensions; it wants to maximise -s_k |z - t_k u_k|^2, with a random direction u_k,
but z must not leave the half-space u_k z <= 0. The best point of that half-space is z = 0, so x* with
return -s_k t_k^2 is optimal on every instance, and as four times three dimensions span all six, it is the
only such point. The scales s_k differ by a factor of 1,000: returns of different instances cannot be
compared, which is why the ranking stays within each instance.

Without the constraint (ranking "r") the search ends between the targets t_k u_k; on the first instance
alone (sampler "single"), three of the six dimensions are never seen.

Beside them stands SRES, the evolution strategy that stochastic ranking was published with (Runarsson and Yao
2000), in pymoo's implementation (`pip install -e '.[pymoo]'`; left out if it is missing). It knows no
instances: it evaluates each point on all four, so it gets a quarter of the points, and maximises the sum of
the returns, or of the returns divided by the scales, with one constraint per instance.

    python examples/evolution_instances.py [--quick] [--seeds N]
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from acerl_np.evolution import Evolution

N_PARAMETERS, N_SEEN, N_INSTANCES = 6, 3, 4
POPULATION = 80
BOX = 5.0
"""SRES searches from -BOX to BOX; the optimum lies between -3 and 3."""
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
    return Projections(
        optimum=rng.uniform(-3, 3, N_PARAMETERS),
        projections=np.array(bases),
        directions=directions / np.linalg.norm(directions, axis=1, keepdims=True),
        distances=rng.uniform(1, 2, N_INSTANCES),
        scales=10.0 ** np.arange(N_INSTANCES),
    )


def search(problem: Projections, seed: int, generations: int, **options: Any) -> np.ndarray:
    """Return the mean that the search of one seed ends with."""
    evolution = Evolution(
        np.zeros(N_PARAMETERS),
        sigma=1.0,
        population=POPULATION,
        n_instances=N_INSTANCES,
        seed=seed,
        **{"noise_decay": 0.001 ** (1 / generations), **options},
    )
    for _ in range(generations):
        members, ids = evolution.ask()
        evolution.tell(*problem.evaluate(members, ids), ids)
    return evolution.mean


def search_with_sres(
    problem: Projections, seed: int, generations: int, *, scaled: bool
) -> np.ndarray:
    """Return the best point that pymoo's SRES finds with as many evaluations of instances."""
    from pymoo.algorithms.soo.nonconvex.sres import SRES
    from pymoo.core.problem import Problem as PymooProblem
    from pymoo.optimize import minimize

    class AllInstances(PymooProblem):  # type: ignore[misc]
        def _evaluate(self, x: np.ndarray, out: dict[str, np.ndarray], *args: object) -> None:
            pairs = [problem.evaluate(x, np.full(len(x), k)) for k in range(N_INSTANCES)]
            scales = problem.scales if scaled else np.ones(N_INSTANCES)
            out["F"] = -np.sum(
                [returns / scales[k] for k, (returns, _) in enumerate(pairs)], axis=0
            )
            out["G"] = np.stack([costs for _, costs in pairs], axis=1)

    given = AllInstances(n_var=N_PARAMETERS, n_obj=1, n_ieq_constr=N_INSTANCES, xl=-BOX, xu=BOX)
    evaluations = generations * POPULATION // N_INSTANCES
    # Without a feasible point: the one that violates least.
    result = minimize(
        given,
        SRES(),
        ("n_eval", evaluations),
        seed=seed,
        verbose=False,
        return_least_infeasible=True,
    )
    return np.asarray(result.X, np.float64)


def judge(problem: Projections, mean: np.ndarray) -> tuple[float, float, float]:
    """Distance to x*, mean relative loss of return, largest cost, over all instances."""
    ids = np.arange(N_INSTANCES)
    returns, costs = problem.evaluate(np.tile(mean, (N_INSTANCES, 1)), ids)
    loss = (problem.optimal_returns - returns) / np.abs(problem.optimal_returns)
    return float(np.linalg.norm(mean - problem.optimum)), float(loss.mean()), float(costs.max())


def main() -> None:
    """Run every setting with every seed and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2 seeds, 50 generations")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    seeds = range(2 if options.quick else options.seeds)
    generations = 50 if options.quick else 300
    sres = importlib.util.find_spec("pymoo") is not None
    left_out = "" if sres else "; SRES: no pymoo"
    print(
        f"{generations} generations of {POPULATION}, {len(seeds)} seeds: mean (standard deviation)"
        + left_out
    )
    print(f"{'':20}{'distance to x*':>20}{'loss of return':>20}{'largest cost':>20}")
    print(f"{'known optimum':20}" + f"{'0.0000':>20}" * 3)
    searches: dict[str, Callable[..., np.ndarray]] = {
        name: partial(search, **setting) for name, setting in SETTINGS.items()
    }
    if sres:
        searches["SRES, sum"] = partial(search_with_sres, scaled=False)
        searches["SRES, scaled sum"] = partial(search_with_sres, scaled=True)
    for name, find in searches.items():
        rows = []
        for seed in seeds:
            problem = make_instances(seed)
            rows.append(judge(problem, find(problem, seed, generations)))
        mean, std = np.mean(rows, axis=0), np.std(rows, axis=0)
        cells = (f"{m:.4f} ({s:.4f})" for m, s in zip(mean, std, strict=True))
        print(f"{name:20}" + "".join(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
