"""Two baselines of the field: a priority function by genetic programming, and prioritised level replay.

Genetic programming evolves a formula of an index policy's ten features, with the budget of the preset best
(van Lon, Branke and Holvoet 2018; Jakobovic et al. 2023): is something left that no linear index finds?
Prioritised level replay (Jiang et al. 2021) deals records of random floors beside AIS and dealing evenly: is
it AIS that gains nothing, or are the eight records of DMH too alike? `docs/learning.md` has what came of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from acerl_np.commands.shared import options as opt
from acerl_np.evaluation.trials import Playing, Trials, play_policy
from acerl_np.evolution import InstanceSampler
from acerl_np.kernels.dispatching.deciders import NOTHING, IndexDecider
from acerl_np.kernels.dispatching.index import score_pairs
from acerl_np.kernels.rollout.episodes import PLAYERS
from acerl_np.policies.index import FEATURES, NAMES, IndexPolicy
from acerl_np.problem.bundled import load_suite
from acerl_np.problem.generate import perturb
from acerl_np.problem.instance import Instance
from acerl_np.support.compiled import inner_kernel
from acerl_np.support.files import write_atomically
from acerl_np.support.report import render_csv
from acerl_np.training.config import Config
from studies.family import draw_day, draw_floor
from studies.general import FLOORS, JUDGED, RECIPES, train
from studies.generalisation import noised_suites

PATH = "docs/results/baselines.csv"
COLUMNS = ("study", "row", "seed", "suite", "makespan", "tardiness", "satisfied")
SEEDS = 5

# A formula is a list of (operation, constant), operators before their operands.
Formula: TypeAlias = list[tuple[int, float]]
CONSTANT = len(NAMES)
ADD, SUBTRACT, MULTIPLY, DIVIDE, LARGER, SMALLER = range(CONSTANT + 1, CONSTANT + 7)
LONGEST, DEEPEST = 63, 4
POPULATION, GENERATIONS, RECORDS, TOURNAMENT = 128, 30, 8, 5
FINALISTS, FINAL_DRAWS = 16, 16
"""Formulas of the last generation that play so many draws of each record before the best is kept."""
CROSSED, CHANGED = 0.8, 0.15


class FormulaDecider(NamedTuple):
    """A formula that scores pairs, and a worker's own scratch: what finds the features, and a stack."""

    features: IndexDecider
    operation: np.ndarray
    constant: np.ndarray
    stack: np.ndarray


@inner_kernel
def compute(decider, x):  # type: ignore[no-untyped-def]
    """Return the value of the formula for the features of a pair."""
    top, stack = -1, decider.stack
    for k in range(len(decider.operation) - 1, -1, -1):
        what = decider.operation[k]
        if what <= CONSTANT:
            top += 1
            stack[top] = decider.constant[k] if what == CONSTANT else decider.constant[k] * x[what]
            continue
        a, b = stack[top], stack[top - 1]
        top -= 1
        if what == ADD:
            stack[top] = a + b
        elif what == SUBTRACT:
            stack[top] = a - b
        elif what == MULTIPLY:
            stack[top] = a * b
        elif what == DIVIDE:
            stack[top] = a / b if abs(b) > 1e-3 else a
        else:
            stack[top] = max(a, b) if what == LARGER else min(a, b)
    return stack[0]


@inner_kernel
def decide_by_formula(  # type: ignore[no-untyped-def]
    problem, state, b, decider, row, key, decision
):
    """Decide as `deciders.decide`, by the pair of the largest value; the first of equals."""
    pairs, indices = decider.features.pairs, decider.features.indices
    score_pairs(problem, state, b, indices, row, pairs, key, decision)
    if pairs.n[0] == 0:
        return NOTHING
    best, most = 0, compute(decider, pairs.x[0])
    for n in range(1, pairs.n[0]):
        value = compute(decider, pairs.x[n])
        if value > most:
            best, most = n, value
    return pairs.vehicle[best], pairs.position[best], np.int64(-1)


PLAYERS[FormulaDecider] = decide_by_formula


class FormulaPolicy(IndexPolicy):
    """An index policy whose score is a formula."""

    def __init__(self, formula: Formula) -> None:
        super().__init__(np.zeros(len(NAMES)))
        self.operation = np.array([what for what, _ in formula])
        self.constant = np.array([value for _, value in formula])

    def _prepare(self, *how: Any) -> Any:
        problem, make = super()._prepare(*how)
        own = self.operation, self.constant
        return problem, lambda: FormulaDecider(make(), *own, np.empty(LONGEST))


def grow(random: np.random.Generator, depth: int, *, full: bool) -> Formula:
    """Return a random formula: of full depth, or with branches that may end before."""
    if depth == 0 or (not full and random.random() < 0.3):
        what = int(random.integers(CONSTANT + 1))
        value = random.normal() if what == CONSTANT else 1.0 / FEATURES[what].scale
        return [(what, float(value))]
    parts = [grow(random, depth - 1, full=full) for _ in range(2)]
    return [(int(random.integers(ADD, SMALLER + 1)), 0.0), *parts[0], *parts[1]]


def pick_part(random: np.random.Generator, formula: Formula) -> slice:
    """Return where a random part of a formula stands."""
    first = last = int(random.integers(len(formula)))
    missing = 1
    while missing:
        missing += 1 if formula[last][0] > CONSTANT else -1
        last += 1
    return slice(first, last)


def breed(random: np.random.Generator, choose: Callable[[], Formula]) -> Formula:
    """Return a child: two parents crossed, one with a new part, or one as it was."""
    mother, chance = choose(), random.random()
    if chance > CROSSED + CHANGED:
        return mother
    father = choose() if chance < CROSSED else grow(random, 2, full=False)
    given = father[pick_part(random, father)] if chance < CROSSED else father
    place = pick_part(random, mother)
    child = [*mother[: place.start], *given, *mother[place.stop :]]
    return child if len(child) <= LONGEST else mother


def weigh(formula: Formula, records: list[Instance]) -> float:
    """Return what the preset best minimises: the makespan, and a penalty of tardiness near the limit."""
    played = play_policy(FormulaPolicy(formula), records, Playing(1, threads=1))
    best = Config.preset("best")
    over = played.tardiness - (played.cost_limit - best.margin)
    return float((played.makespan + best.penalty * np.maximum(0.0, over)).mean())


def evolve(seed: int, *, quick: bool) -> FormulaPolicy:
    """Return the best formula of an evolution on DMH-01 to -08, whose arrivals are moved anew each time."""
    random, known = np.random.default_rng(seed), load_suite("dmh-train")
    magnitude = Config.preset("best").perturb

    def draw(n: int) -> list[Instance]:
        seeds = random.integers(2**62, size=n).tolist()
        return [
            perturb(known[k % len(known)], magnitude, seed=own, name=f"{k}")
            for k, own in enumerate(seeds)
        ]

    population = [grow(random, 2 + k % (DEEPEST - 1), full=k % 2 == 0) for k in range(POPULATION)]
    for _ in range(1 if quick else GENERATIONS):
        records = draw(RECORDS)
        value = np.array([weigh(formula, records) for formula in population])

        def choose(population: list[Formula] = population, value: np.ndarray = value) -> Formula:
            rivals = random.integers(len(population), size=TOURNAMENT)
            return population[rivals[value[rivals].argmin()]]

        ordered = [population[k] for k in value.argsort()]
        population = [ordered[0], *(breed(random, choose) for _ in range(POPULATION - 1))]
    records = draw(RECORDS * (1 if quick else FINAL_DRAWS))
    return FormulaPolicy(min(ordered[:FINALISTS], key=lambda x: weigh(x, records)))


class PrioritisedLevels(InstanceSampler):
    """Deals records by the rank of what they may teach, and some that were not dealt for long.

    With the published temperature 0.1 and share 0.1 of staleness. What a record may teach is how far returns
    on it are from their mean, over that mean: there is no value function here.
    """

    statistics = ("count", "score", "last", "round", "each")

    def __init__(self, n_instances: int, seed: Any = 0) -> None:
        super().__init__(n_instances, seed)
        self.score, self.last = np.zeros(n_instances), np.zeros(n_instances, np.int64)
        self.round, self.each = np.zeros(1, np.int64), np.ones(1, np.int64)

    def assign(self, n_groups: int, generation: int) -> np.ndarray:
        """Return an instance per group: those that were never dealt first."""
        self.each = np.array([n_groups])
        rank = 1 + self.score.argsort()[::-1].argsort()
        weight, stale = rank ** (-1.0 / 0.1), self.round[0] - self.last
        share = 0.9 * weight / weight.sum() + 0.1 * (
            stale / stale.sum() if stale.any() else 1.0 / len(stale)
        )
        drawn = np.searchsorted(
            share.cumsum(), self.draw(n_groups, generation) * share.sum(), "right"
        )
        first = np.flatnonzero(self.count == 0)[:n_groups]
        return np.concatenate([first, drawn[len(first) :]]).astype(np.int64)

    def _count(self, ids: np.ndarray, values: np.ndarray) -> dict[str, np.ndarray]:
        score, last, now = self.score.copy(), self.last.copy(), self.round + 1
        known = np.where(np.isfinite(values), values, 2.0 * np.nanmin(values))  # not finished
        returns, dealt = known.reshape(-1, self.each[0]), ids[: self.each[0]]
        score[dealt] = np.abs(returns / returns.mean(axis=0) - 1.0).mean(axis=0)
        last[dealt] = now
        return {**super()._count(ids, values), "score": score, "last": last, "round": now}


SAMPLERS: dict[str, Any] = {"uniform": "uniform", "AIS": "ais", "prioritised": PrioritisedLevels}


def list_days(seed: int, n: int) -> list[Instance]:
    """Return batches on floors of a family, one on each."""
    floors = [draw_floor(seed, k, sort="batch") for k in range(n)]
    return [draw_day(floor, seed, k, sort="batch") for k, floor in enumerate(floors)]


def run_all(*, quick: bool) -> Iterator[list[object]]:
    """Yield a row of `COLUMNS` for each policy, seed and suite."""

    def list_row(study: str, row: str, seed: int, suite: str, played: Trials) -> list[object]:
        means = (played.makespan.mean(), played.tardiness.mean(), played.satisfied)
        return [study, row, seed, suite, *(f"{x:.4f}" for x in means)]

    n, records = 2 if quick else 50, load_suite("dmh-train")
    suites = (("dmh-train", tuple(records)), *noised_suites(records))
    judges = list_days(JUDGED, 2 if quick else 5 * FLOORS)
    for seed in range(1 if quick else SEEDS):
        formula = evolve(seed, quick=quick)
        for suite, own in suites:
            played = play_policy(formula, list(own), Playing(1, threads=1))
            yield list_row("formulas", "genetic programming", seed, suite, played)
        for name, sampler in SAMPLERS.items():
            few = {"decisions": 5_000 if quick else 1_000_000}
            config = Config.preset("best", sampler=sampler, **RECIPES["makespan"].options, **few)
            policy = train(list_days(seed, n), config, seed)
            played = play_policy(policy, judges, Playing(1, threads=1))
            yield list_row("samplers", name, seed, "family", played)


OPTIONS: opt.Options = {
    opt.RUNNING: (opt.Argument("--quick", "a moment of it; nothing is kept", opt.SWITCH),)
}


def run(arguments: argparse.Namespace) -> None:
    """Compare `best` with genetic programming, and the samplers with prioritised level replay."""
    rows: list[list[object]] = [list(COLUMNS)]
    for row in run_all(quick=arguments.quick):
        rows.append(row)
        print(*row, flush=True)
        if not arguments.quick:
            write_atomically(PATH, render_csv(rows).encode())
