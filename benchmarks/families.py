"""Constrained problems and problems of whole numbers whose optimum is known by construction.

Each function draws one from a generator. `TABLE` are those that a table of evolution.md has, `DRAWN` twenty
more of the same families, drawn by a seed before any setting was tuned on the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize


class Problem(NamedTuple):
    """A function of a point: value to minimise, constraints g <= 0; with a tolerance one equality."""

    evaluate: Callable[[np.ndarray], tuple[float, list[float]]]
    optimum: float
    start: np.ndarray
    sigma: float | np.ndarray
    bounds: tuple[np.ndarray, np.ndarray] | None = None
    integers: tuple[int, ...] = ()
    constrained: bool = True
    tolerance: float = 0.0


def draw_hessian(rng: np.random.Generator, n: int, condition: float) -> np.ndarray:
    """Return a turned matrix with eigenvalues from 1 to the condition."""
    frame = np.linalg.qr(rng.normal(size=(n, n)))[0]
    scaled = condition ** np.linspace(0, 1, n)[:, np.newaxis] * frame
    return np.asarray(frame.T @ scaled)


def draw_normals(rng: np.random.Generator, m: int, n: int) -> np.ndarray:
    """Return unit vectors."""
    normals = rng.normal(size=(m, n))
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))


def quadratic(rng: np.random.Generator, n: int, active: int, condition: float = 1.0) -> Problem:
    """Draw a convex quadratic with active linear constraints and as many inactive ones, at least one.

    Its centre is where the gradient at the optimum is minus the sum of multiplier times normal.
    """
    optimum, hessian = rng.uniform(-1, 1, n), draw_hessian(rng, n, condition)
    normals = draw_normals(rng, active + max(1, active), n)
    force = rng.uniform(0.5, 2.0, active) @ normals[:active]
    centre = optimum + np.linalg.solve(hessian, force)
    slack = np.append(np.zeros(active), rng.uniform(0.5, 2.0, len(normals) - active))
    limit = normals @ optimum + slack

    def evaluate(x: np.ndarray) -> tuple[float, list[float]]:
        away = x - centre
        return float(away @ hessian @ away) / 2, (normals @ x - limit).tolist()

    return Problem(evaluate, evaluate(optimum)[0], rng.uniform(-3, 3, n), 1.0)


def programme(rng: np.random.Generator, n: int, constraints: int) -> Problem:
    """Draw a linear programme whose optimum is a vertex of n of its constraints."""
    optimum, normals = rng.uniform(-1, 1, n), draw_normals(rng, constraints, n)
    slope = -(rng.uniform(0.5, 2.0, n) @ normals[:n])
    limit = normals @ optimum + np.append(np.zeros(n), rng.uniform(0.5, 2.0, constraints - n))

    def evaluate(x: np.ndarray) -> tuple[float, list[float]]:
        return float(slope @ x), (normals @ x - limit).tolist()

    box = np.full(n, -10.0), np.full(n, 10.0)
    return Problem(evaluate, evaluate(optimum)[0], rng.uniform(-5, 5, n), 4.0, box)


def shares(rng: np.random.Generator, n: int, most: float) -> Problem:
    """Draw a separable quadratic of shares from 0 to a most each that sum to 1 within 1e-4."""
    weights, wanted = rng.uniform(1, 10, n), rng.uniform(-0.1, 1.5, n) * most

    def give(price: float) -> np.ndarray:
        return np.clip(wanted - price / (2 * weights), 0.0, most)

    edge = 1.0 + math.copysign(1e-4, give(0.0).sum() - 1.0)
    low, high = -100.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if give(middle).sum() > edge else (low, middle)

    def evaluate(x: np.ndarray) -> tuple[float, list[float]]:
        return float(weights @ np.square(x - wanted)), [float(x.sum()) - 1.0]

    box = np.zeros(n), np.full(n, most)
    start = rng.uniform(0, most, n)
    return Problem(evaluate, evaluate(give(high))[0], start, most / 5, box, tolerance=1e-4)


def rosenbrock(x: np.ndarray) -> float:
    """Return the value of Rosenbrock's function."""
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def valley(rng: np.random.Generator, n: int, band: float) -> Problem:
    """Return Rosenbrock's function on the unit sphere, within a band of the squared radius."""
    known = np.random.default_rng(0)
    edge = {"type": "eq", "fun": lambda x: x @ x - 1.0 - band}  # the optimum of all is outside
    tries = (known.uniform(-1, 1, n) for _ in range(30))
    options = {"ftol": 1e-15, "maxiter": 1_000}
    found = [
        minimize(rosenbrock, x, constraints=edge, method="SLSQP", options=options) for x in tries
    ]
    least = min(one.fun for one in found if one.success)
    start = rng.uniform(-2, 2, n)
    ring = lambda x: (rosenbrock(x), [float(x @ x) - 1.0])  # noqa: E731
    return Problem(ring, least, start, 0.5, tolerance=band)


def knapsack(rng: np.random.Generator, items: int, most: int = 1) -> Problem:
    """Draw a knapsack that holds half of all, of each item at most so many."""
    weights, values = rng.integers(5, 50, items), rng.integers(5, 50, items)
    capacity = int(weights.sum()) * most // 2
    table = np.zeros(capacity + 1, np.int64)
    for weight, value in zip(np.repeat(weights, most), np.repeat(values, most), strict=True):
        table[weight:] = np.maximum(table[weight:], table[:-weight] + value)

    def evaluate(x: np.ndarray) -> tuple[float, list[float]]:
        return -float(values @ x), [float(weights @ x) - capacity]

    box = np.zeros(items), np.full(items, float(most))
    start = rng.uniform(0, most, items)
    return Problem(evaluate, -float(table[-1]), start, most / 5, box, tuple(range(items)))


def mixed(rng: np.random.Generator, integers: int, reals: int, condition: float) -> Problem:
    """Draw a turned quadratic whose optimum has whole numbers where they are asked for."""
    n = integers + reals
    optimum, hessian = rng.uniform(-5, 5, n), draw_hessian(rng, n, condition)
    optimum[:integers] = optimum[:integers].round()

    def evaluate(x: np.ndarray) -> tuple[float, list[float]]:
        return float((x - optimum) @ hessian @ (x - optimum)), []

    box, start = (np.full(n, -10.0), np.full(n, 10.0)), rng.uniform(-10, 10, n)
    return Problem(evaluate, 0.0, start, 4.0, box, tuple(range(integers)), False)


TABLE: dict[str, Callable[[np.random.Generator], Problem]] = {
    "sphere 20 with 1 active": lambda rng: quadratic(rng, 20, 1),
    "sphere 20 with 5 active": lambda rng: quadratic(rng, 20, 5),
    "sphere 20 with 10 active": lambda rng: quadratic(rng, 20, 10),
    "sphere 40 with 1 active": lambda rng: quadratic(rng, 40, 1),
    "sphere 40 with 10 active": lambda rng: quadratic(rng, 40, 10),
    "quadratic 10 with 5 active": lambda rng: quadratic(rng, 10, 5, 1e3),
    "quadratic 20 with 10 active": lambda rng: quadratic(rng, 20, 10, 1e3),
    "quadratic 40 with 10 active": lambda rng: quadratic(rng, 40, 10, 1e3),
    "shares 20": lambda rng: shares(rng, 20, 0.2),
    "programme 20 of 30": lambda rng: programme(rng, 20, 30),
    "valley 2 in 1e-3": lambda rng: valley(rng, 2, 1e-3),
    "valley 5 in 1e-5": lambda rng: valley(rng, 5, 1e-5),
    "knapsack 15": lambda rng: knapsack(rng, 15),
    "knapsack 30": lambda rng: knapsack(rng, 30),
    "knapsack 10 of 5 each": lambda rng: knapsack(rng, 10, 5),
    "mixed 4 and 4": lambda rng: mixed(rng, 4, 4, 100.0),
}


def draw_more(seed: int = 20261127) -> dict[str, Callable[[np.random.Generator], Problem]]:
    """Return twenty more, of other sizes, conditions and numbers of active constraints."""
    rng = np.random.default_rng(seed)
    drawn: dict[str, Callable[[np.random.Generator], Problem]] = {}

    def add(name: str, make: Callable[..., Problem], *arguments: float) -> None:
        drawn[name] = lambda generator: make(generator, *arguments)

    for _ in range(10):
        n = int(rng.integers(5, 41))
        active = int(rng.integers(1, n // 2 + 1))
        condition = float(f"{10 ** rng.uniform(0, 4):.1g}")
        add(f"quadratic {n} with {active} active at {condition:g}", quadratic, n, active, condition)
    for _ in range(2):
        n = int(rng.integers(8, 31))
        most = float(f"{rng.uniform(1.5, 4.0) / n:.2g}")
        add(f"shares {n} of {most}", shares, n, most)
    n = int(rng.integers(6, 16))
    constraints = n + int(rng.integers(2, 11))
    add(f"programme {n} of {constraints}", programme, n, constraints)
    for _ in range(2):
        n, power = int(rng.integers(3, 9)), int(rng.integers(3, 6))
        add(f"valley {n} in 1e-{power}", valley, n, 10.0**-power)
    for _ in range(2):
        items = int(rng.integers(12, 26))
        add(f"knapsack {items}", knapsack, items)
    items, each = int(rng.integers(6, 13)), int(rng.integers(2, 7))
    add(f"knapsack {items} of {each} each", knapsack, items, each)
    for _ in range(2):
        integers, reals = rng.integers(2, 6, 2).tolist()
        condition = float(f"{10 ** rng.uniform(1, 3):.1g}")
        add(f"mixed {integers} and {reals} at {condition:g}", mixed, integers, reals, condition)
    return drawn


DRAWN = draw_more()
