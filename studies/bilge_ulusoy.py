"""A yardstick that nobody here made: the job shops with vehicles of Bilge and Ulusoy (1995).

Offline a search knows all; online a task is known when it is ready (reactive), or when the processing before
it begins (announced). Policies are trained on half of the job sets and judged on the other half, both ways.

Sources: Ü. Bilge and G. Ulusoy, "A time window approach to simultaneous scheduling of machines and material
handling system in an FMS", Operations Research 43(6) (1995) 1058-1070. `bilge-ulusoy-optima.csv`: optima
proven by constraint programming, with the machines' queues in any order and with FIFO queues, of EX71 and
EX74 the best known; and those of a published genetic algorithm: T. F. Abdelmaguid, A. O. Nassef, B. A. Kamal
and M. F. Hassan, "A hybrid GA/heuristic approach to the simultaneous scheduling of machines and automated
guided vehicles", International Journal of Production Research 42(2) (2004) 267-281.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evaluation.hindsight import ORDER_CHAINS, find_hindsight
from acerl_np.evaluation.published import read_table
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.problem.bundled import YARDSTICK, instances_folder
from acerl_np.problem.instance import Instance
from acerl_np.support.report import render_csv
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import Config
from studies.job_shops import import_bilge_ulusoy
from studies.study_tables import Shown, StudyTable, spread

NAME = "bilge-ulusoy"
HINDSIGHT, INDEX = "hindsight", "index"
AHEAD = ", lookahead"
GENETIC = "genetic algorithm, 2004"
RULES = ("FCFS", "NVF", "STD", "nearest", "fcfs-nearest", "opentcs", "assignment")
OFFLINE = "offline"
REGIMES = ("reactive", "announced")
SHOWN = ("nearest", INDEX, f"{INDEX}{AHEAD}")
"""Policies whose makespans are told by instance."""

TABLES = ("offline", "online", "instances")

OPTIONS: dict[str, Any] = {"synthetic": 1.0}
"""Beside the preset "best": chosen on random job shops of our own, none of them these."""

CANDIDATES = 24
BASES = (8, 64)
"""Of lookaheads over an index: the package's usual number, and as many as it allows."""

EQUAL = 1e-9


class Part(NamedTuple):
    """What one worker does: a search, a rule with and without lookahead, or a training and its policy.

    Attributes
    ----------
    policy, regime : str
    seed : int
    instances : tuple of Instance
        What judges.
    training : tuple of Instance
    config : Config
        Of a training.
    effort : float
        Of a search.
    """

    policy: str
    regime: str
    seed: int
    instances: Sequence[Instance]
    training: Sequence[Instance]
    config: Config
    effort: float

    def describe(self) -> str:
        """Say which it is."""
        return f"{self.policy}, {self.regime}, seed {self.seed}"


class Run(NamedTuple):
    """What a policy has done with one seed, by instance.

    Attributes
    ----------
    policy, regime : str
    seed : int
    makespan : dict of float, s
    milliseconds : dict of float
        Of a core: of a search in all, else of a decision.
    """

    policy: str
    regime: str
    seed: int
    makespan: dict[str, float]
    milliseconds: dict[str, float]


@cache
def read_optima() -> dict[str, dict[str, float]]:
    """Return what is known of the forty instances, by name: a column's numbers, nan for none."""
    lines = read_table(Path(__file__).parent / f"{NAME}-optima.csv")
    return {
        line.pop("instance"): {key: float(x or "nan") for key, x in line.items()} for line in lines
    }


def list_parts(path: Path | None, seeds: int, config: Config, effort: float) -> list[Part]:
    """Return all that is to be done for a file of such instances, by default the bundled ones.

    Of a file with a single job set nothing can be trained and judged on others.
    """
    parts = []
    for regime in REGIMES:
        announced = regime == REGIMES[1]
        instances = import_bilge_ulusoy(path or instances_folder() / YARDSTICK, announced=announced)
        n_layouts = len({id(instance.layout) for instance in instances})
        middle = -(-len(instances) // n_layouts // 2) * n_layouts
        halves = instances[:middle], instances[middle:]
        if announced:  # as early as anybody may set out, which a plan from the start needs
            parts += [Part(HINDSIGHT, OFFLINE, 0, [one], (), config, effort) for one in instances]
        parts += [Part(rule, regime, 0, instances, (), config, effort) for rule in RULES]
        parts += [
            Part(INDEX, regime, seed, judging, training, config, effort)
            for seed in range(seeds)
            for training, judging in (halves, halves[::-1])
            if training and judging
        ]
    return parts


def run_part(part: Part) -> list[Run]:
    """Search, or play and look ahead, on one thread."""
    if part.policy == HINDSIGHT:
        (instance,) = part.instances
        find_hindsight(instance, effort=0.001)  # what is compiled or loaded is not timed
        started = time.thread_time()
        found = find_hindsight(instance, effort=part.effort)
        spent = 1000.0 * (time.thread_time() - started)
        makespan = found.makespan if found else np.nan
        return [Run(*part[:3], {instance.name: makespan}, {instance.name: spent})]
    players: dict[str, BasePolicy | str]
    if part.training:
        trainer = ACERL(list(part.training), part.config, seed=part.seed, threads=1)
        trainer.run()
        policy = trainer.policy
        players = {INDEX: policy}
        for bases in BASES:
            label = f"{INDEX}{AHEAD}{f', {bases} bases' if bases != BASES[0] else ''}"
            players[label] = Lookahead(policy, futures=0, bases=bases, candidates=CANDIDATES)
    else:
        ahead = Lookahead(part.policy, futures=0, candidates=CANDIDATES)
        players = {part.policy: part.policy, f"{part.policy}{AHEAD}": ahead}
    return [
        Run(label, part.regime, part.seed, *play(player, part.instances))
        for label, player in players.items()
    ]


def play(
    player: BasePolicy | str, instances: Sequence[Instance]
) -> tuple[dict[str, float], dict[str, float]]:
    """Play each instance by itself, as a lookahead has one floor; return makespans (s) and ms a decision."""
    once = Playing(1, threads=1)
    play_policy(player, instances[0], once)
    makespan, milliseconds = {}, {}
    for instance in instances:
        started = time.thread_time()
        trials = play_policy(player, instance, once)
        spent = 1000.0 * (time.thread_time() - started)
        makespan[instance.name] = float(trials.makespan[0, 0])
        milliseconds[instance.name] = spent / trials.decisions
    return makespan, milliseconds


def finish(
    name: str, found: Iterable[Sequence[Run]], *, known: bool
) -> tuple[dict[str, str], list[StudyTable]]:
    """Return the contents of files, and tables."""
    joined = join_runs(run for own in found for run in own)
    return {f"{name}.csv": write_runs(joined)}, tables(name, joined, known=known)


def join_runs(runs: Iterable[Run]) -> list[Run]:
    """Return one run of each policy, regime and seed, whose parts were of different instances."""
    joined: dict[tuple[str, str, int], Run] = {}
    for run in runs:
        whole = joined.setdefault(run[:3], Run(*run[:3], {}, {}))
        whole.makespan.update(run.makespan)
        whole.milliseconds.update(run.milliseconds)
    return [*joined.values()]


def write_runs(runs: Sequence[Run]) -> str:
    """Return runs as CSV: of each a line of makespans and one of times, a column an instance."""
    names = [*runs[0].makespan]
    lines: list[list[object]] = [["policy", "regime", "seed", "what", *names]]
    for run in runs:
        lines.append([*run[:3], "makespan_s", *(f"{run.makespan[x]:g}" for x in names)])
        lines.append([*run[:3], "core_ms", *(f"{run.milliseconds[x]:.3g}" for x in names)])
    return render_csv(lines)


def tables(name: str, runs: Sequence[Run], *, known: bool) -> list[StudyTable]:
    """Return `TABLES` of runs; `known` if these are the forty instances, whose optima are."""
    offline = next(run for run in runs if run.policy == HINDSIGHT)
    optima = read_optima() if known else {}
    goal = {x: optima[x]["makespan_s"] for x in optima} or offline.makespan
    by_policy: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        if run is not offline:
            by_policy.setdefault(run.policy, {}).setdefault(run.regime, []).append(run)
    genetic = {x: optima[x]["genetic_2004_s"] for x in optima}
    return [
        _tabulate_offline(f"{name}-offline", goal, offline, genetic),
        _tabulate_online(f"{name}-online", goal, by_policy),
        _tabulate_instances(f"{name}-instances", goal, offline, genetic, by_policy),
    ]


def _compare(makespan: Mapping[str, float], goal: Mapping[str, float]) -> np.ndarray:
    """Return the gaps to a goal of each instance, float64 (n_instances,)."""
    return np.array([makespan[x] / best - 1.0 for x, best in goal.items()])


def _tabulate_offline(
    name: str, goal: Mapping[str, float], offline: Run, genetic: Mapping[str, float]
) -> StudyTable:
    seconds = np.array([*offline.milliseconds.values()]) / 1000.0
    lines: list[list[Shown]] = []
    for policy, makespan, spent in (
        (HINDSIGHT, offline.makespan, (seconds.mean(), seconds.max())),
        (GENETIC, genetic, (None, None)),
    ):
        if makespan:
            gaps = _compare(makespan, goal)
            met = int((gaps < EQUAL).sum())
            lines.append(
                [
                    (policy, {"policy": policy}),
                    (f"{100.0 * gaps.mean():.2f}", {"gap_share": gaps.mean()}),
                    (f"{100.0 * gaps.max():.1f}", {"worst_gap_share": gaps.max()}),
                    (f"{met} of {len(gaps)}", {"met": met}),
                    *(
                        ("" if x is None else f"{x:.1f}", {key: x})
                        for x, key in zip(spent, ("core_s", "most_core_s"), strict=True)
                    ),
                ]
            )
    note = f"Hindsight: the best of {ORDER_CHAINS} annealings; seconds of a core an instance."
    header = ["", "gap %", "worst %", "met", "mean s", "most s"]
    return StudyTable.of(name, "All is known from the start", header, lines, note)


def _tabulate_online(
    name: str, goal: Mapping[str, float], by_policy: Mapping[str, Mapping[str, Sequence[Run]]]
) -> StudyTable:
    lines: list[list[Shown]] = []
    for policy, regimes in by_policy.items():
        n = len(regimes[REGIMES[0]])
        line: list[Shown] = [(policy, {"policy": policy}), (n, {"seeds": n})]
        for regime, own in regimes.items():
            gaps = np.array([_compare(run.makespan, goal) for run in own])
            worst = float(gaps.mean(axis=0).max())
            spent = float(np.mean([[*run.milliseconds.values()] for run in own]))
            text, facts = spread(f"{regime}_gap_share", gaps.mean(axis=1))
            line += [
                (text if n > 1 else text.partition(" ")[0], facts),
                (f"{100.0 * worst:.0f}", {f"{regime}_worst_gap_share": worst}),
                (f"{spent:.2f}", {f"{regime}_decision_ms": spent}),
            ]
        lines.append(line)
    header = ["policy", "seeds", *(x for y in REGIMES for x in (f"{y}: gap %", "worst %", "ms"))]
    note = (
        "Mean gap over all instances ± standard deviation over training seeds; the largest mean gap of an "
        "instance; ms of a core a decision. An index has not seen the job sets that judge it."
    )
    return StudyTable.of(name, "Tasks become known", header, lines, note)


def _tabulate_instances(
    name: str,
    goal: Mapping[str, float],
    offline: Run,
    genetic: Mapping[str, float],
    by_policy: Mapping[str, Mapping[str, Sequence[Run]]],
) -> StudyTable:
    columns = {
        f"{regime}: {policy}": [run.makespan for run in by_policy[policy][regime]]
        for regime in REGIMES
        for policy in SHOWN
        if policy in by_policy
    }
    lines: list[list[Shown]] = []
    for instance, best in goal.items():
        seconds = offline.milliseconds[instance] / 1000.0
        line: list[Shown] = [(instance, {"instance": instance})]
        if genetic:
            line.append((f"{best:g}", {"optimum_s": best}))
            line.append((f"{genetic[instance]:g}", {"genetic_2004_s": genetic[instance]}))
        own = offline.makespan[instance]
        line += [(f"{own:g}", {"hindsight_s": own}), (f"{seconds:.1f}", {"core_s": seconds})]
        for label, found in columns.items():
            mean = float(np.mean([makespan[instance] for makespan in found]))
            gap = mean / best - 1.0
            facts = {f"{label}_s": mean, f"{label}_gap_share": gap}
            line.append((f"{mean:.1f} ({100.0 * gap:.1f})", facts))
        lines.append(line)
    known = ["optimum", "genetic, 2004"] if genetic else []
    header = ["instance", *known, HINDSIGHT, "s of a core", *columns]
    note = "Makespans, s (gaps, %), of trained policies the means over seeds; the search's time of a core."
    return StudyTable.of(name, "By instance", header, lines, note)
