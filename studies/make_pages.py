"""The pages of results, made anew from stored studies: full tables as files, and blocks of other pages.

A block stands between `<!-- make_pages.py: NAME -->` and `<!-- end -->`: what is there is replaced.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy import stats

from acerl_np.commands.shared import options as opt
from acerl_np.evaluation.metrics import standard_error
from acerl_np.evaluation.published import COST_LIMIT, find_row
from acerl_np.policies.general import SETS, make_general
from acerl_np.policies.index import FEATURES, NAMES
from acerl_np.policies.rules import BASELINES, GENERAL
from acerl_np.problem.bundled import load_suite
from acerl_np.problem.goal import SHIFT
from acerl_np.support.errors import InputError
from acerl_np.support.files import write_atomically
from acerl_np.support.report import Cell, render_csv, render_table
from studies import (
    bilge_ulusoy,
    comparison,
    general,
    generalisation,
    learning,
    robustness,
)
from studies.claims import (
    LEARNERS,
    Claim,
    Verdict,
    join_folds,
    judge,
    list_draws,
    measure_curves,
    read_claims,
    read_curves,
    show,
)
from studies.commands import MODULES
from studies.jobs import AHEAD
from studies.rivals.training import ALGORITHMS
from studies.statistics import SIGNIFICANT, compare_ranks, find_threshold, measure_middle
from studies.stored import StoredStudy, read_table, read_yardstick, store_rules, store_study
from studies.study import Study
from studies.study_tables import (
    RULE_ROWS,
    Measured,
    StudyTable,
    build_table,
    find_peer_values,
    join_rows,
    show_p,
    show_spread,
    spread,
)

DATA = "docs/results"
BLOCK = re.compile(r"(<!-- make_pages\.py: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SEEDS = {"learning": 10, "generalisation": 5}
"""Of a row, where it is not 20."""
TRIALS = {"generalisation": 5}
"""Of a row and record, where they are not 30; `RULE_BLOCKS` of rules there."""
RULE_BLOCKS = 5
RIVAL_SEEDS = {"leave-one-out": 2}
"""Trainings of each learner where they are not five: eight folds are many."""
RIVALS = {"comparison": ALGORITHMS, "robustness": ALGORITHMS, "leave-one-out": ("ppo",)}
"""Learners that a study has stored rows of."""
REWARDS = ("PPO", "SAC", "MAPPO")
WITHIN = "within the limit"
SUITE_COLUMNS = ("DMH-01 to -08", WITHIN, "DMH-09 to -16 (paper: others)", WITHIN)
DRAWS_COLUMNS = (*SUITE_COLUMNS[:2], "DMH-09 to -16, mean of nine draws (paper: one)", WITHIN)
LONG = "bilge-ulusoy-long"  # processing takes four times as long
SLOTS = {
    "a slot for each task, the default: chosen by these figures": ("comparison", "ACERL"),
    "**the same, seeds 200 to 219: the check**": ("checks", "ACERL"),
    "a slot by place in the record, seeds 200 to 219": ("checks", "slots by place in the record"),
    "place in the pool": ("learning", "slots of the tasks: place in the pool"),
    "place in the pool, seeds 200 to 219": ("checks", "slots by place in the pool"),
    "the default, learning rate 0.03": ("learning", "learning rate: 0.03"),
    "PPO, a slot for each task": ("comparison", "PPO"),
    "PPO, place in the pool": ("checks", "PPO, slots by place in the pool"),
    "an index policy, which has no slots": ("checks", "preset best"),
}
SHORT = {
    "here, a slot for each task (the default)": ("comparison", "ACERL"),
    "the same in pool order (`--set slots=pool`)": ("checks", "slots by place in the pool"),
    "an index policy (`--preset best`), a million decisions": ("checks", "preset best"),
    "PPO, masked, its reward scaled on these records ([rivals](docs/rivals.md))": (
        "comparison",
        "PPO",
    ),
    "PPO in pool order": ("checks", "PPO, slots by place in the pool"),
    "best rule by makespan, STD": ("comparison", "STD"),
    "best rule by the limit, EDD": ("comparison", "EDD"),
}
DAYS = (
    "fresh days of a process, trained on eight such days",
    "known days, noised by up to 30 s",
    "a record that was left out (the same thirty tasks; index policies were designed with such in sight)",
)
SHOWN_GENERATIONS = (2, 6, 21, 61, 128)
FILED = ("robustness-draws", *(f"generalisation-{x}" for x in ("train", "noised-5", "noised-30")))
CLAIM_COLUMNS = ("verdict", "p", "at 5 %", "survive")


def build_pages(root: Path) -> dict[Path, str]:
    """Return every page that stored results make, by its path in a repository: it should be this.

    Where results are not stored, or a page has a block that no table makes, it is an `InputError`.
    """
    stored = StoredStudy(root / DATA)
    found: dict[Path, str] = {}
    tables: dict[str, StudyTable] = {}
    for study in MODULES.values():
        results = stored.load(study.NAME)
        stored.rivals = tuple(x for x in ALGORITHMS if f"{x.upper()} without DMH-01" in results)
        tables |= {table.name: table for table in study.tables(stored, results)}
    yardstick = read_yardstick(stored.folder / f"{bilge_ulusoy.NAME}.csv")
    tables |= {x.name: x for x in bilge_ulusoy.tables(bilge_ulusoy.NAME, yardstick, known=True)}
    longer = read_yardstick(stored.folder / f"{LONG}.csv")
    tables |= {x.name: x for x in bilge_ulusoy.tables(LONG, longer, known=False)}
    for name, table in tables.items():
        if (
            "M/C (P)" in table.header or name in FILED
        ):  # too wide or too long for a page among others
            found[root / DATA / f"{name}.md"] = table.render("markdown")
    claims = [(x, judge(stored, x)) for x in read_claims()]
    threshold = find_threshold(p for _, verdict in claims for p in verdict.tests)
    header = ["claim", "section", *CLAIM_COLUMNS, "seeds", "figures", "table"]
    lines = [[x.claim, x.section, *verdict.show(threshold), x.table] for x, verdict in claims]
    found[root / DATA / "claims.csv"] = render_csv([header, *lines])

    def fill(match: re.Match[str]) -> str:
        name = match[2]
        if name == "claims":
            text = tabulate_claims(claims, threshold)
        elif name in tables:
            text = render_table(tables[name].header, tables[name].rows, "markdown")
        elif name in BLOCKS:
            text = BLOCKS[name](stored)
        elif (stored.folder / f"{name}.txt").exists():  # what a command has printed
            text = f"```\n{(stored.folder / f'{name}.txt').read_text(encoding='utf-8')}```"
        else:
            expected = ", ".join([*BLOCKS, *tables, "claims"])
            raise InputError(f"{path}: read the block '{name}'; expected one of {expected}")
        return f"{match[1]}\n{text}\n{match[3]}"

    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        found |= {path: BLOCK.sub(fill, text)} if BLOCK.search(text) else {}
    return found


def store_runs(root: Path, runs: Path) -> list[str]:
    """Store the finished rows of all studies that a folder of runs holds; return which rows are missing.

    `python -m studies` kept them there, trained by the code as it is now.
    """
    missing = []
    study = Study(runs)
    for module in MODULES.values():
        name, whole, results = module.NAME, [], {}
        study.seeds, study.rivals = SEEDS.get(name, 20), RIVALS.get(name, ())
        study.rival_seeds, study.trials = RIVAL_SEEDS.get(name, 5), TRIALS.get(name, 30)
        for training in module.trainings(study):
            jobs = study.list_jobs([training])
            found = [run for run in map(study.find, jobs) if run]
            if len(found) == len(jobs):
                whole.append(training)
                results[training.label] = found
            else:
                missing.append(f"{name}: {training.label}")
        store_study(root / DATA, name, whole, results)
    study.seeds, study.trials = 20, 30
    for suite, instances in comparison.acerl_training(study).suites:
        blocks = robustness.RULE_BLOCKS if suite.startswith("draw-") else None
        study.rule_rows(suite, instances, blocks)
    study.rule_rows("dmh-train", load_suite("dmh-train"), rules=generalisation.RULES)
    study.seeds, study.trials = RULE_BLOCKS, TRIALS[generalisation.NAME]
    generalisation.tables(study, results)  # its suites, on which rules play, too
    store_rules(root / DATA, study.rules)
    return missing


def write_pages(root: Path, *, dry: bool = False) -> list[Path]:
    """Write every page that differs, unless it is dry, and return them."""
    changed = []
    for path, text in build_pages(root).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            changed.append(path)
            if not dry:
                write_atomically(path, text.encode())
    return changed


def tabulate_claims(claims: Sequence[tuple[Claim, Verdict]], threshold: float) -> str:
    """Return a table of claims and verdicts for each section, and what their tests come to in all."""
    counts = Counter(re.sub(r":.*", "", verdict.verdict) for _, verdict in claims)
    shown = "; ".join(f"{verdict}: {n}" for verdict, n in counts.most_common())
    p = np.array([x for _, verdict in claims for x in verdict.tests])
    tested = sum(bool(verdict.tests) for _, verdict in claims)
    parts = [
        f"{len(claims)} claims. {shown[:1].upper()}{shown[1:]}.",
        f"{tested} claims rest on {len(p):,} rank-sum tests: {(p < SIGNIFICANT).sum()} have p below 0.05 "
        f"({SIGNIFICANT * len(p):.0f} would by chance alone); {(p <= threshold).sum()} survive correction.",
    ]
    for section in dict.fromkeys(claim.section for claim, _ in claims):
        lines: list[list[Cell]] = [
            [claim.claim, *verdict.show(threshold)[: len(CLAIM_COLUMNS)]]
            for claim, verdict in claims
            if claim.section == section
        ]
        parts += [f"**{section}**", render_table(["claim", *CLAIM_COLUMNS], lines, "markdown")]
    return "\n\n".join(parts) + "\n"


def tabulate_days(stored: StoredStudy) -> str:
    """Return the best rule, learners, an index policy and its lookahead on days that differ."""
    runs = stored.load(generalisation.NAME)

    def join_sets(labels: str, suite: str) -> list[Measured | None]:
        """Return a policy, and its lookahead if it has one; folds, and sets of fresh days, joined."""
        own = [found for label, found in runs.items() if re.fullmatch(labels, label)]
        both = [stored.rows({"": found}, suite, ahead=k) for found in own for k in (False, True)]
        by_label = {row.label: row for row in join_rows(row for rows in both for row in rows)}
        return [by_label[""], by_label.get(f"{AHEAD}32, even")]

    def play_general(judge: str) -> str:
        """Return what trainings of `general` come to on records that trained none of them."""
        own: dict[str, list[list[float]]] = {}
        for row in read_table(stored.folder, "general", "trials"):
            if (row["set"], row["policy"], row["judge"]) == ("makespan", GENERAL, judge):
                kept = float(row["tardiness"]) < COST_LIMIT
                own.setdefault(row["seed"], []).append([float(row["makespan"]), 100.0 * kept])
        if not own:
            return ""
        makespan, kept = np.array([np.mean(found, axis=0) for found in own.values()]).T
        shown = f"{show_spread(makespan)} s, {show_spread(kept / 100.0, 0, share=True)} %"
        return f"{shown}; {len(own)} trainings"

    drawn = [join_draws(stored, "comparison", x, 30) for x in ("ACERL", "PPO")]
    left_out = [join_folds(stored, x) for x in ("", "PPO")]
    fresh = [None, join_sets("fresh PPO, set .*", "fresh")[0]]
    lines: list[list[Cell]] = []
    for name, suite, others in (
        (DAYS[0], "fresh", [*fresh, *join_sets("fresh best, set .*", "fresh")]),
        (DAYS[1], "noised-30", [*drawn, *join_sets("best", "noised-30")]),
        (DAYS[2], "dmh-train", [*left_out, *join_sets("left out .*", "itself")]),
    ):
        rules = stored.rule_rows(suite, rules=generalisation.RULES)
        rule = min(rules, key=lambda x: float(x.makespan.mean()))
        found = f"{rule.makespan.mean():.1f} s, {rule.satisfied:.0%}"
        line: list[Cell] = [name, f"`{rule.label}` {found}"]
        line += [f"{show(x, 0)}, {show(x, 2)}; {x.show_size()}" if x else "" for x in others]
        lines.append([*line, play_general(suite)])
    header = ["judged on", "best rule", "network", "PPO", "index policy", "with lookahead"]
    header.append("`general`, trained on random floors")
    return render_table(header, lines, "markdown")


def tabulate_slots(stored: StoredStudy) -> str:
    """Return what slots of the tasks and other settings come to on the training records, beside the paper."""
    paper = find_row("comparison-train", "ACERL")
    assert paper is not None
    cells = np.array([paper.cells[record.name][:2] for record in load_suite("dmh-train")])
    shown = [f"{x:.1f} s" for x in cells.mean(axis=0)]
    lines: list[list[Cell]] = [["paper", 5, *shown, f"{paper.p:.0%}", ""]]
    for name, (study, label) in SLOTS.items():
        row = stored.rows_of(study, "dmh-train").get(label)
        if row is None:
            continue
        r = np.corrcoef(row.means()[0], cells[:, 0])[0, 1]
        lines.append([name, row.n_seeds, *(show(row, k) for k in range(3)), f"{r:.3f}"])
    header = ["DMH-01 to -08", "seeds", "makespan", "tardiness", WITHIN, "r with the paper's"]
    return render_table(header, lines, "markdown")


def tabulate_noise(stored: StoredStudy) -> str:
    """Return what noise of low rank comes to beside full noise, suite by suite."""
    suites = {"DMH-01 to -08": "dmh-train", "±5": "dmh-test", "±30": "dmh-noise-30"}
    rows = {suite: stored.rows_of("noise", suite) for suite in suites.values()}
    lines: list[list[Cell]] = [
        [label, row.n_seeds, *(show(rows[s][label], k) for s in suites.values() for k in (0, 2))]
        for label, row in rows["dmh-train"].items()
        if label.startswith(("full", "rank"))
    ]
    header = ["noise", "seeds", *(x for name in suites for x in (f"{name}: makespan", WITHIN))]
    return render_table(header, lines, "markdown")


def join_draws(stored: StoredStudy, study: str, label: str, magnitude: int) -> Measured:
    """Return a row on all nine draws of a magnitude; of a rule as many blocks as each draw has."""
    rows = [stored.rows_of(study, suite)[label] for suite in list_draws(magnitude)]
    n = min(row.n_seeds for row in rows)
    parts = [Measured(label, row.makespan[:, :n], row.tardiness[:, :n]) for row in rows]
    return join_rows(parts)[0]


def tabulate_short(stored: StoredStudy) -> str:
    """Return ACERL, other forms, PPO and the best rules beside the paper."""
    lines: list[list[Cell]] = [["paper, ACERL", "5 seeds", *_show_paper("ACERL")]]
    for name, (study, label) in SHORT.items():
        own = stored.rows_of(study, "dmh-train").get(label)
        if own is None:
            continue
        rows = own, join_draws(stored, study, label, 5)
        lines.append([name, own.show_size(), *(show(row, k) for row in rows for k in (0, 2))])
    return render_table(["", "trainings", *DRAWS_COLUMNS], lines, "markdown")


def _show_paper(policy: str) -> list[Cell]:
    """Return the paper's makespan and share on both suites."""
    cells: list[Cell] = []
    for table in ("comparison-train", "comparison-test"):
        row = find_row(table, policy)
        assert row is not None
        makespan = np.mean([cell.makespan for cell in row.cells.values()])
        cells += [f"{makespan:.1f} s", f"{row.p:.0%}"]
    return cells


def tabulate_rewards(stored: StoredStudy) -> str:
    """Return learners with a scaled reward and with the makespan in seconds, and the paper's."""
    train, test = (stored.rows_of("comparison", suite) for suite in ("dmh-train", "dmh-test"))
    lines: list[list[Cell]] = []
    for name in REWARDS:
        for reward in ("", ", reward in s"):
            for label in (f"{name}{reward}", f"{name}{reward}, greedy"):
                if label in train:
                    shown = [show(rows[label], k) for rows in (train, test) for k in (0, 2)]
                    lines.append([label, train[label].n_seeds, *shown])
        lines.append([f"the paper's {name}", 5, *_show_paper(name)])
    return render_table(["", "seeds", *SUITE_COLUMNS], lines, "markdown")


def tabulate_folds(stored: StoredStudy) -> str:
    """Return M, C and P of each fold beside the paper's, and the record that was left out."""
    records = load_suite("dmh-train")
    lines: list[list[Cell]] = []
    for k, record in enumerate(records):
        name = f"leave-one-out-{k + 1:02d}"
        paper = find_row(name, "ACERL")
        assert paper is not None
        row = stored.rows_of("leave-one-out", "dmh-train")[f"without {record.name}"]
        own = Measured("ACERL", row.makespan, row.tardiness)
        table = build_table(name, "", records, [own], same_records=True)
        m, c, p = (table.data[len(records)][key] for key in ("m", "c", "satisfied_share"))
        printed = f"{paper.m:.2f}/{paper.c:.2f} ({paper.p:.0%})"
        both = [values[k] for values in row.means()], paper.cells[record.name][:2]
        left_out = [f"{makespan:.1f}/{tardiness:.1f}" for makespan, tardiness in both]
        lines.append([record.name, f"{m:.2f}/{c:.2f} ({p:.0%})", printed, *left_out])
    header = ["trained without", "M/C (P)", "paper", "left out", "left out, paper"]
    return render_table(header, lines, "markdown")


def tabulate_sampler(stored: StoredStudy) -> str:
    """Return how the adaptive sampler dealt the records, seed 0, and how far it ever went."""
    lines = [x for x in read_table(stored.folder, "comparison", "sampler") if x["row"] == "ACERL"]
    values = np.array([float(x["probability"]) for x in lines])
    header = ["generation", *dict.fromkeys(x["record"] for x in lines)]
    first = [(x["generation"], f"{float(x['probability']):.3f}") for x in lines if x["seed"] == "0"]
    rows: list[list[Cell]] = [
        [k, *(dealt for generation, dealt in first if generation == str(k))]
        for k in SHOWN_GENERATIONS
    ]
    low, high = np.quantile(values, (0.01, 0.99))
    text = (
        f"Of all {len(values):,} probabilities of {len({x['seed'] for x in lines})} trainings 98 % "
        f"lie between {low:.3f} and {high:.3f}, all between {values.min():.3f} and {values.max():.3f}; "
        "uniform is 0.125. Seed 0:"
    )
    return f"{text}\n\n{render_table(header, rows, 'markdown')}"


def tabulate_curves(stored: StoredStudy) -> str:
    """Return how soon and how steadily each algorithm's policy became good."""
    lines: list[list[Cell]] = []
    for name, seeds in read_curves(stored).items():
        if name in ("ACERL", *LEARNERS):
            found = np.array([measure_curves(looks) for looks in seeds.values()]).T
            lines.append([name, len(seeds), *(spread("x_s", x, 2)[0] for x in found)])
    figures = ["converged, million decisions", "within the limit from", "step between looks, s"]
    return render_table(["", "seeds", *figures], lines, "markdown")


def tabulate_learning(stored: StoredStudy) -> str:
    """Return one line for each setting, its three suites side by side."""
    suites = [stored.rows_of("learning", suite) for suite in learning.SUITES]
    labels = [x for x in suites[0] if x in stored.stored["learning"]]
    figures = [(rows, what) for rows in suites for what in (0, 2)]
    tests = [
        [
            compare_ranks(rows[label].by_seed()[what], rows[learning.DEFAULT].by_seed()[what]).p
            for rows, what in figures
        ]
        for label in labels
    ]
    p = np.array(
        [own for label, own in zip(labels, tests, strict=True) if label != learning.DEFAULT]
    )
    threshold = find_threshold(p.ravel())
    lines: list[list[Cell]] = []
    for label, own in zip(labels, tests, strict=True):
        shown = [
            show(rows[label], what).removesuffix(" s").removesuffix(" %") for rows, what in figures
        ]
        marked = zip(shown, own, strict=True)
        cells = [
            f"**{x}**" if p <= threshold else f"{x}°" if p < SIGNIFICANT else x for x, p in marked
        ]
        lines.append([label, suites[0][label].n_seeds, *cells])
    header = [
        "setting",
        "seeds",
        *(x for suite in ("", "±5: ", "±30: ") for x in (f"{suite}makespan (s)", "%")),
    ]
    text = (
        f"{len(lines)} rows. {(p < SIGNIFICANT).sum()} of {p.size} tests have p below 0.05 (° or bold), "
        f"about {SIGNIFICANT * p.size:.0f} would by chance alone; {(p <= threshold).sum()} survive (bold)."
    )
    return f"{text}\n\n{render_table(header, lines, 'markdown')}"


def tabulate_forms(stored: StoredStudy) -> str:
    """Return index policies of other settings, a line each, their three suites side by side."""
    runs = stored.load(generalisation.NAME)
    main = {x: own for x, own in runs.items() if not x.startswith(("left out", "fresh"))}
    lines: dict[str, list[Cell]] = {}
    for suite in ("dmh-train", "noised-5", "noised-30"):
        rows = stored.rows(main, suite)
        rows += stored.rows({generalisation.BASE: runs[generalisation.BASE]}, suite, ahead=True)
        for row in [*rows, *stored.rule_rows(suite, rules=("STD", "EDD", "nearest"))]:
            line = lines.setdefault(row.label, [row.label, row.show_size()])
            line += [show(row, what).removesuffix(" s").removesuffix(" %") for what in (0, 2)]
    header = [
        "policy",
        "",
        *(f"{x}{y}" for x in ("", "±5: ", "±30: ") for y in ("makespan (s)", "%")),
    ]
    return render_table(header, [*lines.values()], "markdown")


def tabulate_middles(stored: StoredStudy) -> str:
    """Return interquartile means of normalised makespans and tardinesses, by bootstrap over the seeds."""
    lines: dict[str, list[Cell]] = {}
    names = [record.name for record in load_suite("dmh-train")]
    for suite in comparison.SUITES:
        rows = stored.rows_of("comparison", suite)
        chosen = [rows[x] for x in ("ACERL", *LEARNERS, *RULE_ROWS)]
        table = "comparison-train" if suite == "dmh-train" else None
        for row in chosen:
            cells = lines.setdefault(row.label, [row.label, row.show_size()])
            for peers, times in zip(
                find_peer_values(chosen, table, names), (row.makespan, row.tardiness), strict=True
            ):
                top, bottom = peers.max(axis=0)[:, None], peers.min(axis=0)[:, None]
                found = measure_middle((top - times.mean(axis=2)) / (top - bottom))
                cells.append("{:.2f} ({:.2f} to {:.2f})".format(*found))
    header = [
        "policy",
        "",
        *(f"{suite}: {x}" for suite in SUITE_COLUMNS[::2] for x in ("makespan", "tardiness")),
    ]
    return render_table(header, [*lines.values()], "markdown")


def tabulate_sets(stored: StoredStudy) -> str:
    """Return how far policies of fresh days are from NVF, set by set of eight days: a paired t test."""
    runs = stored.load(generalisation.NAME)
    [nvf] = stored.rule_rows("fresh", rules=["NVF"])
    sets = range(generalisation.FIRST_SET, generalisation.FIRST_SET + generalisation.FRESH_SETS)
    means: dict[str, np.ndarray] = {}  # makespan and share within the limit, set by set

    def keep(name: str, rows: Iterable[Measured]) -> None:
        means[name] = np.array([[x.mean() for x in row.by_seed()] for row in rows])[:, [0, 2]]

    for name, label, ahead in (
        ("index policy", "fresh best", ""),
        ("with lookahead", "fresh best", f"{AHEAD}32, even"),
        ("PPO", "fresh PPO", ""),
    ):
        found = [
            {
                x.label: x
                for x in stored.rows({"": runs[f"{label}, set {k}"]}, "fresh", ahead=bool(ahead))
            }
            for k in sets
        ]
        keep(name, [rows[ahead] for rows in found])
    n = len(nvf.makespan) // len(sets)
    days = [slice(k * n, (k + 1) * n) for k in range(len(sets))]
    keep("NVF", [Measured("NVF", nvf.makespan[x], nvf.tardiness[x]) for x in days])
    lines: list[list[Cell]] = []
    for own, other in (
        ("index policy", "NVF"),
        ("with lookahead", "NVF"),
        ("PPO", "NVF"),
        ("index policy", "PPO"),
    ):
        line: list[Cell] = [f"{own} less {other}"]
        for change, unit in zip(
            (means[own] - means[other]).T * [[1.0], [100.0]], ("s", "points"), strict=True
        ):
            low, high = stats.t.interval(0.95, len(change) - 1, change.mean(), stats.sem(change))
            p = float(stats.ttest_1samp(change, 0.0).pvalue)
            line += [f"{change.mean():+.1f} {unit} ({low:+.1f} to {high:+.1f})", show_p(p)]
        lines.append(line)
    return render_table(["", "makespan", "p", WITHIN, "p"], lines, "markdown")


def tabulate_baselines(stored: StoredStudy) -> str:
    """Return genetic programming beside `best`, and what samplers bring on random floors."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    with (stored.folder / "baselines.csv").open(newline="", encoding="utf-8") as file:
        for x in csv.DictReader(file):
            figures = [float(x[name]) for name in ("makespan", "tardiness", "satisfied")]
            found.setdefault((x["row"], x["suite"]), []).append(figures)
    lines: list[list[Cell]] = []
    for (row, suite), own in found.items():
        base = np.array(found.get(("uniform", suite), own)).T
        if row == "genetic programming":
            base = np.array(stored.rows_of(generalisation.NAME, suite)["best"].by_seed())
        line: list[Cell] = [row, suite, len(own)]
        for what in (0, 2):
            values, other = np.array(own).T[what], base[what]
            p = show_p(None if row == "uniform" else compare_ranks(values, other).p)
            line += [*(show_spread(x, int(what == 0), share=what == 2) for x in (values, other)), p]
        lines.append(line)
    base_name = "`best`; uniform"
    header = ["row", "evaluated on", "seeds", "makespan (s)", base_name, "p"]
    return render_table([*header, f"{WITHIN} (%)", base_name, "p"], lines, "markdown")


def tabulate_records(stored: StoredStudy) -> str:
    """Return ACERL's mean on each record, and records kept of all."""
    own = stored.rows_of("comparison", "dmh-train")["ACERL"]
    paper = find_row("comparison-train", "ACERL")
    assert paper is not None
    makespan, tardiness = own.means()
    kept = own.tardiness.mean(axis=2) < COST_LIMIT
    lines: list[list[Cell]] = [
        [
            record.name,
            f"{makespan[k]:.1f}/{tardiness[k]:.1f}",
            f"{kept[k].sum()} of {own.n_seeds}",
            "{:.1f}/{:.1f}".format(*paper.cells[record.name][:2]),
        ]
        for k, record in enumerate(load_suite("dmh-train"))
    ]
    means = f"{makespan.mean():.1f}/{tardiness.mean():.1f}"
    lines.append(["all", means, f"{kept.sum()} of {kept.size}", ""])
    header = ["record", "makespan/tardiness (s)", "seeds within the limit", "paper"]
    return render_table(header, lines, "markdown")


def tabulate_headroom(stored: StoredStudy) -> str:
    """Return the best schedules found with the future known beside ACERL's means."""
    text = (stored.folder / "hindsight.csv").read_text(encoding="utf-8")
    lines: list[list[Cell]] = [[*line.values()] for line in csv.DictReader(text.splitlines())]
    makespan = stored.rows_of("comparison", "dmh-train")["ACERL"].means()[0]
    lines = [[*line, f"{own:.0f}"] for line, own in zip(lines, makespan, strict=True)]
    means = [np.mean([float(str(line[k])) for line in lines]) for k in range(1, 5)]
    lines.append(["mean", *(f"{mean:.{int(k == 2)}f}" for k, mean in enumerate(means))])
    header = ["record", "hindsight", "proven bound", "its tardiness", "ACERL, mean of 20 seeds"]
    return render_table(header, lines, "markdown")


ARMS = {
    "index": "trained",
    "index+tuned": "trained, thresholds tuned",
    "index+energy": "trained, energy features",
    "index+tuned+energy": "trained, both",
}
"""Trained policies of `benchmarks/vehicles.py`."""
VehicleCell: TypeAlias = tuple[str, str, str, str, str]
"""Floor, policy, commitment, parking, battery."""


def read_vehicles(folder: Path, objective: str) -> dict[VehicleCell, dict[str, np.ndarray]]:
    """Return what `benchmarks/vehicles.py` found of baselines and of trainings for an objective.

    By cell and figure, ndarray(float64, (n_seeds, n_shifts)); baselines count as one seed.
    """
    lines: dict[VehicleCell, dict[str, list[dict[str, str]]]] = {}
    for line in read_table(folder, "vehicles", "shifts"):
        if line["objective"] in ("", objective):
            how = (line["commitment"], line["parking"], line["battery"])
            own = lines.setdefault((line["floor"], line["policy"], *how), {})
            own.setdefault(line["seed"], []).append(line)
    figures = ("waiting_s", "late_share", "charging_share")
    return {
        cell: {
            name: np.array([[float(line[name]) for line in seeds[x]] for x in sorted(seeds)])
            for name in figures
        }
        for cell, seeds in lines.items()
    }


def tabulate_vehicles(stored: StoredStudy) -> str:
    """Return what calling back, parking and waiting do to the mean waiting, without batteries."""
    cells = read_vehicles(stored.folder, "waiting")
    columns = {
        "until pickup (%)": ("", "pickup", "stay"),
        "parking (%)": ("", "assignment", "park"),
        "both (%)": ("", "pickup", "park"),
        "may wait (%)": ("+wait", "assignment", "stay"),
    }
    lines: list[list[Cell]] = []
    for floor, policy, *own in cells:
        if own != ["assignment", "stay", "unlimited"] or policy.endswith("+wait"):
            continue
        base = cells[floor, policy, "assignment", "stay", "unlimited"]["waiting_s"]
        n_seeds: Cell = len(base) if len(base) > 1 else ""
        line: list[Cell] = [floor, f"`{policy}`", n_seeds, f"{base.mean():.1f}"]
        for more, commitment, parking in columns.values():
            found = cells.get((floor, policy + more, commitment, parking, "unlimited"))
            if found is None:
                line.append("")
                continue
            before, after = base.mean(axis=0), found["waiting_s"].mean(axis=0)
            ratio = after.mean() / before.mean()  # of means; its error by the delta method
            error = standard_error((after - ratio * before) / before.mean())
            line.append(f"{100.0 * (ratio - 1.0):+.1f} (se {100.0 * error:.1f})")
        lines.append(line)
    return render_table(["floor", "policy", "seeds", "waiting (s)", *columns], lines, "markdown")


def tabulate_tuned(stored: StoredStudy) -> str:
    """Return by how much late tasks change as batteries are known of, paired, in points."""
    cells = read_vehicles(stored.folder, SHIFT)
    lines: list[list[Cell]] = []
    for floor, policy, *how in cells:
        if how == ["assignment", "stay", "layout"] and policy in ARMS and policy != "index":
            own, base = (
                100.0 * cells[floor, x, "assignment", "stay", "layout"]["late_share"]
                for x in (policy, "index")
            )
            change = own - base
            errors = (standard_error(change.mean(axis=axis)) for axis in (1, 0))
            name = ARMS[policy].removeprefix("trained, ")
            lines.append([floor, name, f"{change.mean():+.2f}", *(f"{x:.2f}" for x in errors)])
    header = ["floor", "beside the ten features", "late, points", "se over seeds", "se over shifts"]
    return render_table(header, lines, "markdown")


def tabulate_batteries(stored: StoredStudy) -> str:
    """Return the late tasks with batteries, by who knows of them; a policy in each line."""
    cells = read_vehicles(stored.folder, SHIFT)
    lines: list[list[Cell]] = []
    for floor, policy, *how in cells:
        if how != ["assignment", "stay", "layout"]:
            continue
        line: list[Cell] = [floor, ARMS.get(policy, f"`{policy}`")]
        found = cells[floor, policy, "assignment", "stay", "layout"]
        n_seeds = len(found["late_share"])
        line += [n_seeds if n_seeds > 1 else "", f"{100.0 * found['charging_share'].mean():.0f}"]
        for commitment, battery in (
            ("assignment", "unlimited"),
            ("assignment", "layout"),
            ("pickup", "layout"),
        ):
            own = cells.get((floor, policy, commitment, "stay", battery))
            late = 100.0 * own["late_share"].mean(axis=1) if own else np.empty(0)
            error = f" (se {standard_error(late):.2f})" if len(late) > 1 else ""
            line.append(f"{late.mean():.2f}{error}" if len(late) else "")
        lines.append(line)
    header = ["floor", "policy", "seeds", "charging (%)"]
    header += ["unlimited: late (%)", "batteries: late (%)", "and until pickup: late (%)"]
    return render_table(header, lines, "markdown")


def tabulate_general(stored: StoredStudy, name: str) -> str:
    """Return what `general` and others come to with each judge, of one set of weights."""
    rows = [
        {key: float(x) if key in ("makespan", "tardiness", "late") else x for key, x in row.items()}
        for row in read_table(stored.folder, "general", "trials")
    ]
    [table] = [item for item in general.tables(rows) if item.name == f"general-{name}"]
    return render_table(table.header, table.rows, "markdown")


def tabulate_weights(_: StoredStudy) -> str:
    """Return the weights of `general`, and what they weigh."""
    sets = {name: make_general(name) for name in SETS}
    lines: list[list[Cell]] = []
    for feature in FEATURES[: len(NAMES)]:
        weights = [f"{own.theta[NAMES.index(feature.name)]:+.3f}" for own in sets.values()]
        lines.append([f"`{feature.name}`", feature.words, f"{feature.scale:g}", *weights])
    return render_table(["feature", "what it is", "scale", *sets], lines, "markdown")


LITTLE, LEAST_LATE = 0.05, 0.1
"""Points added to both sides of a ratio, and late tasks of `nearest`, %, below which there is none."""

Measures = Mapping[tuple[str, str, str], np.ndarray]
"""Late share and objective of the records, (n, 2) in %, by judge, policy and seed."""


def read_shares(stored: StoredStudy) -> Measures:
    """Return what policies for late tasks come to on the judging floors at the usual load."""
    found: dict[tuple[str, str, str], list[list[float]]] = {}
    for row in read_table(stored.folder, "general", "trials"):
        if row["set"] == "late" and not row["judge"].startswith("both"):
            late = 100.0 * float(row["late"])
            own = [late, late + 0.05 * float(row["tardiness"])]
            found.setdefault((row["judge"], row["policy"], row["seed"]), []).append(own)
    return {key: np.array(own) for key, own in found.items()}


def tabulate_ratios(stored: StoredStudy) -> str:
    """Return policies' late share over that of others: geometric means over cases, 95 % intervals."""
    shares = read_shares(stored)
    judges = list(dict.fromkeys(judge for judge, _, _ in shares))
    judges = [x for x in judges if shares[x, "nearest", "0"][:, 0].mean() > LEAST_LATE]
    seeds = sorted({seed for _, policy, seed in shares if policy == GENERAL})
    others = "nearest", "best baseline", "own training", "own training, objective"

    def divide(policy: str, cases: Sequence[str], seeds: Sequence[str], other: str) -> np.ndarray:
        """Return the logarithms of the ratios, ndarray(float64, (n_seeds, n_cases))."""
        name, _, what = other.partition(", ")
        names = BASELINES if name == "best baseline" else [name]

        def find(judge: str, name: str, seed: str) -> float:
            own = shares.get((judge, name, seed), np.full((1, 2), np.nan))
            return float(np.log(own[:, int(bool(what))].mean() + LITTLE))

        return np.array(
            [
                [find(x, policy, seed) - min(find(x, rule, "0") for rule in names) for x in cases]
                for seed in seeds
            ]
        )

    lines: list[list[Cell]] = []
    trained = (*((x, x, seeds) for x in (GENERAL, general.BARE, general.PAIRS, general.LEFT)),)
    for where, family in (("the family that trained", True), ("plants", False)):
        cases = [judge for judge in judges if judge.startswith("family") == family]
        for label, policy, own in ((general.SHIPPED, GENERAL, seeds[:1]), *trained):
            line: list[Cell] = [where, len(cases), label]
            for other in others:
                by_case = divide(policy, cases, own, other).mean(axis=0)
                width = standard_error(by_case) * stats.t.ppf(0.975, len(cases) - 1)
                low, mean, high = np.exp(by_case.mean() + width * np.array([-1.0, 0.0, 1.0]))
                line.append(f"{mean:.2f} ({low:.2f} to {high:.2f})")
            each = np.exp(divide(policy, cases, own, "own training").mean(axis=1))
            if np.isfinite(each).all():
                lines.append([*line, ", ".join(f"{x:.2f}" for x in each)])
    header = ["judged on", "cases", "policy", *(f"of {other}" for other in others)]
    return render_table([*header, "each training, of own training"], lines, "markdown")


def read_beyond(stored: StoredStudy) -> dict[tuple[str, ...], np.ndarray]:
    """Return objective over that of `nearest`, and waiting less that, of floors and seeds, (n, m, 2).

    By what trained, for which sum, the load that judges, and from how much waiting on `nearest` decides.
    """
    rows = read_table(stored.folder, "general", "beyond")
    figures = {
        tuple(row[x] for x in ("floor", "trained_on", "trained_for", "load", "beyond", "seed")): [
            float(row["objective"]),
            float(row["waiting_s"]),
        ]
        for row in rows
    }
    floors = list(dict.fromkeys(row["floor"] for row in rows))
    found: dict[tuple[str, ...], np.ndarray] = {}
    for key in dict.fromkeys(key[1:5] for key in figures if key[5] != "-1"):
        seeds = sorted({x[5] for x in figures if x[1:5] == key})
        own = np.array([[figures[floor, *key, seed] for seed in seeds] for floor in floors])
        near = np.array([figures[floor, "", "", key[2], "", "-1"] for floor in floors])[:, None]
        own[..., 1] -= near[..., 1]
        own[..., 0] = (own[..., 0] + LITTLE) / (near[..., 0] + LITTLE)
        found[key] = own
    return found


def tabulate_beyond(stored: StoredStudy) -> str:
    """Return the objective of own trainings over that of `nearest`; in brackets the worst floor's."""
    found = read_beyond(stored)
    marks = ["none", "6.0", "8.0", "10.0", "12.0", "18.0", "x 1", "x 2"]
    lines: list[list[Cell]] = []
    for load in ("0.9", "1.1", "1.25", "1.5"):
        line: list[Cell] = [load]
        for mark in marks:
            by_floor = np.exp(np.log(found["0.9", SHIFT, load, mark][..., 0]).mean(axis=1))
            line.append(f"{np.exp(np.log(by_floor).mean()):.2f} ({by_floor.max():.2f})")
        lines.append(line)
    names = ["never", *(f"{float(x):g}" for x in marks[1:6]), "longest queue", "twice"]
    return render_table(["offered load", *names], lines, "markdown")


def tabulate_waiting(stored: StoredStudy) -> str:
    """Return what a term of waiting in the training changes, on quiet and on normal days."""
    found = read_beyond(stored)
    lines: list[list[Cell]] = []
    for base, load in product(("0.45", "0.9"), ("0.45", "0.9")):
        mark = "10.0"
        line: list[Cell] = [base, load]
        for aim in (SHIFT, f"{SHIFT}+0.02*waiting"):
            own = found[base, aim, load, mark]
            ratio = np.exp(np.log(own[..., 0]).mean())
            waiting = own[..., 1].mean(axis=0)
            line += [f"{ratio:.2f}", f"{waiting.mean():+.1f} ± {waiting.std(ddof=1):.1f}"]
            line.append(f"{waiting.max():+.1f}")
        lines.append(line)
    header = ["trained at", "judged at"]
    for what in ("without", "with 0.02"):
        header += [f"{what}: objective", "waiting, s", "worst seed, s"]
    return render_table(header, lines, "markdown")


def tabulate_cost(stored: StoredStudy) -> str:
    """Return how many trainings each study holds, and their seconds on one thread each, beside others."""
    lines: list[list[Cell]] = []
    for name in (study.NAME for study in MODULES.values()):
        own = [entry for entry in stored.stored[name].values() if "at" not in entry]
        seconds = sum(sum(entry["seconds"]) for entry in own)
        n = sum(len(entry["seeds"]) for entry in stored.stored[name].values())
        new = sum(len(entry["seeds"]) for entry in own)
        lines.append([f"`python -m studies {name}`", n, new, f"{seconds / 60:.0f}"])
    return render_table(
        ["study", "trainings", "not of one above", "minutes of a thread"], lines, "markdown"
    )


def read_cec(folder: Path) -> dict[tuple[str, str, int], np.ndarray]:
    """Return the gaps of each run of `optimisers.py cec2006`, by function, search and evaluations."""
    found: dict[tuple[str, str, int], list[float]] = {}
    with (folder / "cec2006.csv").open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            key = line["function"], line["search"], int(line["evaluations"])
            found.setdefault(key, []).append(float(line["gap"]))
    columns = [*dict.fromkeys(search for _, search, _ in found)]
    order = sorted(found, key=lambda key: (key[0], columns.index(key[1]), key[2]))
    return {key: np.array(found[key]) for key in order}


def show_gap(gaps: np.ndarray) -> str:
    """Return the median gap; "never" where most runs found nothing feasible."""
    return f"{np.median(gaps):.1e}" if np.isfinite(np.median(gaps)) else "never"


def tabulate_cec(stored: StoredStudy) -> str:
    """Return all figures of the CEC functions."""
    lines: list[list[Cell]] = []
    for (function, search, evaluations), gaps in read_cec(stored.folder).items():
        shares = np.isfinite(gaps).mean(), (gaps <= SOLVED).mean()
        line: list[Cell] = [function, CEC_NAMES[search], len(gaps), f"{evaluations:,}"]
        lines.append([*line, *(f"{share:.2f}" for share in shares), show_gap(gaps)])
    header = ["function", "search", "runs", "evaluations", "feasible", "success", "gap"]
    return render_table(header, lines, "markdown")


def tabulate_cec_success(stored: StoredStudy) -> str:
    """Return the success of each search on each CEC function, those that judge first."""
    found = read_cec(stored.folder)
    columns = sorted(
        {key[1:] for key in found if key[2] >= 50_000},
        key=lambda x: (x[1], [*CEC_NAMES].index(x[0])),
    )
    lines: list[list[Cell]] = []
    for odd, label in ((0, "**judging**"), (1, "**chosen on**")):
        functions = [x for x in dict.fromkeys(key[0] for key in found) if int(x[1:]) % 2 == odd]
        success: dict[tuple[str, int], list[float]] = {column: [] for column in columns}
        for function in functions:
            cells: list[Cell] = [function]
            for column in columns:
                gaps = found[function, *column]
                share = (gaps <= SOLVED).mean()
                success[column].append(share)
                cells.append(f"{share:.2f}" if share > 0.5 else f"{share:.2f} ({show_gap(gaps)})")
            lines.append(cells)
        sums = [
            f"{np.mean(own):.2f}, {sum(share > 0.5 for share in own)} of {len(own)}"
            for own in success.values()
        ]
        lines.append([label, *sums])
    header = ["function", *(f"{CEC_NAMES[search]}, {n:,}" for search, n in columns)]
    return render_table(header, lines, "markdown")


def draw_curves(stored: StoredStudy) -> None:
    """Draw makespan and tardiness by decisions, a column for each record; ACERL is red, as in the paper."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves, records = read_curves(stored), load_suite("dmh-train")
    figure, axes = pyplot.subplots(4, 4, figsize=(14, 10), sharex=True, layout="constrained")
    colours = pyplot.get_cmap("tab20")
    for name in [*[x for x in LEARNERS if x in curves], "ACERL"]:
        looks = [*curves[name].values()]
        n = min(map(len, looks))
        mean = np.mean([own[:n] for own in looks], axis=0)
        colour = "red" if name == "ACERL" else colours(LEARNERS.index(name))
        style = {"color": colour, "linewidth": 2.0 if name == "ACERL" else 1.0, "label": name}
        for k, record in enumerate(records):
            for below, what in enumerate(("makespan", "tardiness")):
                axis = axes[2 * (k // 4) + below, k % 4]
                axis.plot(mean[:, k, 0] / 1e6, mean[:, k, 1 + below], **style)
                axis.set_title(f"{record.name}, {what} (s)", fontsize=9)
    for axis in axes[1::2].flat:
        axis.axhline(COST_LIMIT, color="black", linestyle="--", linewidth=0.8)
    for axis in axes[-1]:
        axis.set_xlabel("million decisions")
    own = axes[0, 0].get_legend_handles_labels()
    figure.legend(*own, loc="outside lower center", ncol=11, fontsize=8)
    figure.savefig(stored.folder / "curves.png", dpi=80)


CEC_NAMES = {
    "Evolution": "`Evolution`",
    "sres": "SRES",
    "isres": "ISRES",
    "fmin_con2": "`fmin_con2`",
}
SOLVED = 1e-4
"""The gap of a success, by the session."""

BLOCKS: dict[str, Callable[[StoredStudy], str]] = {
    "rewards": tabulate_rewards,
    "leave-one-out": tabulate_folds,
    "sampler": tabulate_sampler,
    "curves": tabulate_curves,
    "learning": tabulate_learning,
    "forms": tabulate_forms,
    "middles": tabulate_middles,
    "fresh-sets": tabulate_sets,
    "baselines": tabulate_baselines,
    "short": tabulate_short,
    "days": tabulate_days,
    "slots": tabulate_slots,
    "noise": tabulate_noise,
    "cost": tabulate_cost,
    "records": tabulate_records,
    "headroom": tabulate_headroom,
    "cec": tabulate_cec,
    "cec-success": tabulate_cec_success,
    "vehicles-waiting": tabulate_vehicles,
    "vehicles-batteries": tabulate_batteries,
    "vehicles-tuned": tabulate_tuned,
    "general-late": partial(tabulate_general, name="late"),
    "general-makespan": partial(tabulate_general, name="makespan"),
    "general-weights": tabulate_weights,
    "general-ratios": tabulate_ratios,
    "general-beyond": tabulate_beyond,
    "general-waiting": tabulate_waiting,
}
"""Beside the tables of studies and claims."""


OPTIONS: opt.Options = {
    opt.RUNNING: (
        opt.CommandOption("--root DIR", "the repository", default="."),
        opt.CommandOption(
            "--runs DIR", "first store what was trained in this folder of finished trainings"
        ),
        opt.CommandOption("--curves", "draw the training curves, too", opt.SWITCH),
        opt.CommandOption("--quick", "name what differs, and write nothing", opt.SWITCH),
    ),
}


def run(arguments: argparse.Namespace) -> None:
    """Make the pages of results anew from what is stored in docs/results.

    What differs is written and named.
    """
    root = Path(arguments.root)
    for row in store_runs(root, Path(arguments.runs)) if arguments.runs else ():
        print(f"not finished, and not stored: {row}", file=sys.stderr)
    for path in write_pages(root, dry=arguments.quick):
        print(path)
    if arguments.curves:
        draw_curves(StoredStudy(root / DATA))
