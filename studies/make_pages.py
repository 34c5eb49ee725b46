"""The pages of results, made anew from stored studies: full tables as files, and blocks of other pages.

A block stands between `<!-- make_pages.py: NAME -->` and `<!-- end -->`: what is there is replaced.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy import stats

from acerl_np.commands.shared import options as opt
from acerl_np.evaluation.metrics import standard_error
from acerl_np.evaluation.published import COST_LIMIT
from acerl_np.evaluation.published import read_table as read_csv
from acerl_np.policies.general import SETS, make_general
from acerl_np.policies.index import FEATURES, NAMES
from acerl_np.policies.rules import BASELINES, GENERAL
from acerl_np.problem.bundled import load_suite
from acerl_np.problem.goal import SHIFT
from acerl_np.support.errors import InputError
from acerl_np.support.files import write_atomically
from acerl_np.support.report import Cell, render_csv, render_table
from studies import bilge_ulusoy, comparison, general, generalisation, learning, robustness
from studies.claims import (
    LEARNERS,
    Claim,
    Verdict,
    find_level,
    join_folds,
    judge,
    list_draws,
    measure_curves,
    read_claims,
    read_curves,
    show,
)
from studies.commands import SHOWN, STORED
from studies.rivals.training import ALGORITHMS
from studies.statistics import SIGNIFICANT, compare_ranks, find_threshold, measure_middle
from studies.stored import (
    StoredStudy,
    gather,
    read_table,
    read_yardstick,
    store_rules,
    store_study,
)
from studies.study import AHEAD, GREEDY, Results, Study
from studies.study_tables import (
    RULE_ROWS,
    Measured,
    StudyTable,
    find_peer_values,
    find_printed,
    join_rows,
    score,
    show_p,
    show_spread,
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
NOISES = ("", "±5: ", "±30: ")

Lines: TypeAlias = Iterator[str | list[Cell]]
"""Of a block: the header of its table, then the rows; before them a text, if there is one."""


def build_pages(root: Path) -> dict[Path, str]:
    """Return every page that stored results make, by its path in a repository: it should be this.

    Where results are not stored, or a page has a block that no table makes, it is an `InputError`.
    """
    stored = StoredStudy(root / DATA)
    found: dict[Path, str] = {}
    tables: dict[str, StudyTable] = {}
    for study in SHOWN.values():
        results = stored.load(study.NAME)
        stored.rivals = tuple(x for x in ALGORITHMS if f"{x.upper()} without DMH-01" in results)
        tables |= {table.name: table for table in study.tables(stored, results)}
    yardstick = read_yardstick(stored.folder / f"{bilge_ulusoy.NAME}.csv")
    tables |= {x.name: x for x in bilge_ulusoy.tables(bilge_ulusoy.NAME, yardstick, known=True)}
    longer = read_yardstick(stored.folder / f"{LONG}.csv")
    tables |= {x.name: x for x in bilge_ulusoy.tables(LONG, longer, known=False)}
    trials = read_table(stored.folder, GENERAL, "trials")
    tables |= {x.name: x for x in general.tables(trials)}
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
            text = show_block(BLOCKS[name](stored))
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
    study, of_study = Study(runs), dict[str, Results]()
    for name, module in STORED.items():
        whole, results = [], of_study.setdefault(name, {})
        study.seeds, study.rivals = SEEDS.get(name, 20), RIVALS.get(name, ())
        study.rival_seeds, study.trials = RIVAL_SEEDS.get(name, 5), TRIALS.get(name, 30)
        study.first = getattr(module, "FIRST", 0)
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
    # On its suites, too.
    generalisation.tables(study, of_study[generalisation.NAME])
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
    sections: dict[str, list[list[Cell]]] = {}
    for claim, verdict in claims:
        line: list[Cell] = [claim.claim, *verdict.show(threshold)[: len(CLAIM_COLUMNS)]]
        sections.setdefault(claim.section, []).append(line)
    for section, lines in sections.items():
        parts += [f"**{section}**", render_table(["claim", *CLAIM_COLUMNS], lines, "markdown")]
    return "\n\n".join(parts) + "\n"


def show_block(lines: Lines) -> str:
    """Return a block of a page: its table, below the text where it begins with one."""
    first, *rows = lines
    text, header = (f"{first}\n\n", rows.pop(0)) if isinstance(first, str) else ("", first)
    return f"{text}{render_table(header, rows, 'markdown')}"  # type: ignore[arg-type]


def show_both(row: Measured, *, units: bool = True) -> list[str]:
    """Return makespan and share within the limit."""
    return [show(row, what, units=units) for what in (0, 2)]


def tabulate_days(stored: StoredStudy) -> Lines:
    """Yield the best rule, learners, an index policy and its lookahead on days that differ."""
    runs = stored.load(generalisation.NAME)
    trials = read_table(stored.folder, "general", "trials")
    by_seed = gather(trials, "set policy judge seed", "makespan tardiness")

    def join_sets(labels: str, suite: str) -> list[Measured | None]:
        """Return a policy, and its lookahead if it has one; folds, and sets of fresh days, joined."""
        own = {label: found for label, found in runs.items() if re.fullmatch(labels, label)}
        rows = {row.label: row for row in generalisation.join_sets(stored, own, suite, "")}
        return [rows[""], rows.get(f"{AHEAD}32, even")]

    def play_general(judge: str) -> str:
        """Return what trainings of `general` come to on records that trained none of them."""
        own = [x for key, x in by_seed.items() if key[:3] == ("makespan", GENERAL, judge)]
        if not own:
            return ""
        makespan = np.array([x[:, 0].mean() for x in own])
        kept = np.array([(x[:, 1] < COST_LIMIT).mean() for x in own])
        return (
            f"{show_spread(makespan)} s, {show_spread(kept, 0, share=True)} %; {len(own)} trainings"
        )

    header = ["judged on", "best rule", "network", "PPO", "index policy", "with lookahead"]
    yield [*header, "`general`, trained on random floors"]
    drawn = [join_draws(stored, "comparison", x, 30) for x in ("ACERL", "PPO")]
    left_out = [join_folds(stored, x) for x in ("", "PPO")]
    fresh = [None, join_sets("fresh PPO, set .*", "fresh")[0]]
    for name, suite, others in (
        (DAYS[0], "fresh", [*fresh, *join_sets("fresh best, set .*", "fresh")]),
        (DAYS[1], "noised-30", [*drawn, *join_sets("best", "noised-30")]),
        (DAYS[2], "dmh-train", [*left_out, *join_sets("left out .*", "itself")]),
    ):
        rules = stored.rule_rows(suite, rules=generalisation.RULES)
        rule = min(rules, key=lambda x: float(x.makespan.mean()))
        best = f"`{rule.label}` {rule.makespan.mean():.1f} s, {rule.satisfied:.0%}"
        shown = (f"{', '.join(show_both(x))}; {x.show_size()}" if x else "" for x in others)
        yield [name, best, *shown, play_general(suite)]


def tabulate_slots(stored: StoredStudy) -> Lines:
    """Yield what slots of the tasks and other settings come to on the training records, beside the paper."""
    yield ["DMH-01 to -08", "seeds", "makespan", "tardiness", WITHIN, "r with the paper's"]
    paper = find_printed("comparison-train", "ACERL")
    cells = np.array([paper.cells[record.name][:2] for record in load_suite("dmh-train")])
    yield ["paper", 5, *(f"{x:.1f} s" for x in cells.mean(axis=0)), f"{paper.p:.0%}", ""]
    for name, (study, label) in SLOTS.items():
        if row := stored.rows_of(study, "dmh-train").get(label):
            r = np.corrcoef(row.means()[0], cells[:, 0])[0, 1]
            yield [name, row.n_seeds, *(show(row, k) for k in range(3)), f"{r:.3f}"]


def tabulate_noise(stored: StoredStudy) -> Lines:
    """Yield what noise of low rank comes to beside full noise, suite by suite."""
    suites = {"DMH-01 to -08": "dmh-train", "±5": "dmh-test", "±30": "dmh-noise-30"}
    yield ["noise", "seeds", *(x for name in suites for x in (f"{name}: makespan", WITHIN))]
    rows = [stored.rows_of("noise", suite) for suite in suites.values()]
    for label, row in rows[0].items():
        if label.startswith(("full", "rank")):
            yield [label, row.n_seeds, *(x for own in rows for x in show_both(own[label]))]


def join_draws(stored: StoredStudy, study: str, label: str, magnitude: int) -> Measured:
    """Return a row on all nine draws of a magnitude; of a rule as many blocks as each draw has."""
    rows = [stored.rows_of(study, suite)[label] for suite in list_draws(magnitude)]
    n = min(row.n_seeds for row in rows)
    parts = [Measured(label, row.makespan[:, :n], row.tardiness[:, :n]) for row in rows]
    return join_rows(parts)[0]


def tabulate_short(stored: StoredStudy) -> Lines:
    """Yield ACERL, other forms, PPO and the best rules beside the paper."""
    yield ["", "trainings", *DRAWS_COLUMNS]
    yield ["paper, ACERL", "5 seeds", *_show_paper("ACERL")]
    for name, (study, label) in SHORT.items():
        if own := stored.rows_of(study, "dmh-train").get(label):
            drawn = join_draws(stored, study, label, 5)
            yield [name, own.show_size(), *show_both(own), *show_both(drawn)]


def _show_paper(policy: str) -> list[Cell]:
    """Return the paper's makespan and share on both suites."""
    tables = ("comparison-train", "comparison-test")
    levels = [[find_level(x, policy, what) for what in (0, 2)] for x in tables]
    return [text for makespan, p in levels for text in (f"{makespan:.1f} s", f"{p:.0%}")]


def tabulate_rewards(stored: StoredStudy) -> Lines:
    """Yield learners with a scaled reward and with the makespan in seconds, and the paper's."""
    yield ["", "seeds", *SUITE_COLUMNS]
    train, test = (stored.rows_of("comparison", suite) for suite in comparison.SUITES)
    for name in REWARDS:
        for label in map("".join, product([name], ("", ", reward in s"), ("", GREEDY))):
            if label in train:
                both = (*show_both(train[label]), *show_both(test[label]))
                yield [label, train[label].n_seeds, *both]
        yield [f"the paper's {name}", 5, *_show_paper(name)]


def tabulate_folds(stored: StoredStudy) -> Lines:
    """Yield M, C and P of each fold beside the paper's, and the record that was left out."""
    yield ["trained without", "M/C (P)", "paper", "left out", "left out, paper"]
    names = [record.name for record in load_suite("dmh-train")]
    for k, record in enumerate(names):
        table = f"leave-one-out-{k + 1:02d}"
        paper = find_printed(table, "ACERL")
        row = stored.rows_of("leave-one-out", "dmh-train")[f"without {record}"]
        scores = score(row, find_peer_values([row], table, names)), (paper.m, paper.c, paper.p)
        both = [values[k] for values in row.means()], paper.cells[record][:2]
        shown = ["{:.2f}/{:.2f} ({:.0%})".format(*own) for own in scores]
        yield [record, *shown, *(f"{makespan:.1f}/{late:.1f}" for makespan, late in both)]


def tabulate_sampler(stored: StoredStudy) -> Lines:
    """Yield how the adaptive sampler dealt the records, seed 0, and how far it ever went."""
    lines = [x for x in read_table(stored.folder, "comparison", "sampler") if x["row"] == "ACERL"]
    values = np.array([float(x["probability"]) for x in lines])
    low, high = np.quantile(values, (0.01, 0.99))
    yield (
        f"Of all {len(values):,} probabilities of {len({x['seed'] for x in lines})} trainings 98 % "
        f"lie between {low:.3f} and {high:.3f}, all between {values.min():.3f} and {values.max():.3f}; "
        "uniform is 0.125. Seed 0:"
    )
    yield ["generation", *dict.fromkeys(x["record"] for x in lines)]
    first = gather((x for x in lines if x["seed"] == "0"), "generation", "probability")
    for k in SHOWN_GENERATIONS:
        yield [k, *(f"{x:.3f}" for x in first[str(k),][:, 0])]


def tabulate_curves(stored: StoredStudy) -> Lines:
    """Yield how soon and how steadily each algorithm's policy became good."""
    figures = ["converged, million decisions", "within the limit from", "step between looks, s"]
    yield ["", "seeds", *figures]
    for name, seeds in read_curves(stored).items():
        if name in ("ACERL", *LEARNERS):
            found = np.array([measure_curves(looks) for looks in seeds.values()]).T
            yield [name, len(seeds), *(show_spread(x, 2) for x in found)]


def tabulate_learning(stored: StoredStudy) -> Lines:
    """Yield one line for each setting, its three suites side by side."""
    suites = [stored.rows_of("learning", suite) for suite in learning.SUITES]
    labels = [x for x in suites[0] if x in stored.stored["learning"]]
    base = learning.DEFAULT
    tests = {
        label: [
            compare_ranks(rows[label].by_seed()[what], rows[base].by_seed()[what]).p
            for rows, what in product(suites, (0, 2))
        ]
        for label in labels
    }
    p = np.array([own for label, own in tests.items() if label != base])
    threshold = find_threshold(p.ravel())
    yield (
        f"{len(labels)} rows. {(p < SIGNIFICANT).sum()} of {p.size} tests have p below 0.05 (° or bold), "
        f"about {SIGNIFICANT * p.size:.0f} would by chance alone; {(p <= threshold).sum()} survive (bold)."
    )
    columns = [x for suite in NOISES for x in (f"{suite}makespan (s)", "%")]
    yield ["setting", "seeds", *columns]
    for label, own in tests.items():
        shown = (x for rows in suites for x in show_both(rows[label], units=False))
        marked = zip(shown, own, strict=True)
        cells = (
            f"**{x}**" if p <= threshold else f"{x}°" if p < SIGNIFICANT else x for x, p in marked
        )
        yield [label, suites[0][label].n_seeds, *cells]


def tabulate_forms(stored: StoredStudy) -> Lines:
    """Yield index policies of other settings, a line each, their three suites side by side."""
    yield ["policy", "", *(f"{x}{y}" for x in NOISES for y in ("makespan (s)", "%"))]
    runs = stored.load(generalisation.NAME)
    main = {x: own for x, own in runs.items() if not x.startswith(("left out", "fresh"))}
    lines: dict[str, list[Cell]] = {}
    for suite in ("dmh-train", "noised-5", "noised-30"):
        rows = stored.rows(main, suite)
        rows += stored.rows({generalisation.BASE: runs[generalisation.BASE]}, suite, ahead=True)
        for row in [*rows, *stored.rule_rows(suite, rules=("STD", "EDD", "nearest"))]:
            line = lines.setdefault(row.label, [row.label, row.show_size()])
            line += show_both(row, units=False)
    yield from lines.values()


def tabulate_middles(stored: StoredStudy) -> Lines:
    """Yield interquartile means of normalised makespans and tardinesses, by bootstrap over the seeds."""
    what = ("makespan", "tardiness")
    yield ["policy", "", *(f"{suite}: {x}" for suite in SUITE_COLUMNS[::2] for x in what)]
    lines: dict[str, list[Cell]] = {}
    names = [record.name for record in load_suite("dmh-train")]
    for suite in comparison.SUITES:
        rows = stored.rows_of("comparison", suite)
        chosen = [rows[x] for x in ("ACERL", *LEARNERS, *RULE_ROWS)]
        table = "comparison-train" if suite == "dmh-train" else None
        both = find_peer_values(chosen, table, names)
        for row in chosen:
            cells = lines.setdefault(row.label, [row.label, row.show_size()])
            for peers, times in zip(both, (row.makespan, row.tardiness), strict=True):
                top, bottom = peers.max(axis=0)[:, None], peers.min(axis=0)[:, None]
                found = measure_middle((top - times.mean(axis=2)) / (top - bottom))
                cells.append("{:.2f} ({:.2f} to {:.2f})".format(*found))
    yield from lines.values()


def tabulate_sets(stored: StoredStudy) -> Lines:
    """Yield how far policies of fresh days are from NVF, set by set of eight days: a paired t test."""
    yield ["", "makespan", "p", WITHIN, "p"]
    runs = stored.load(generalisation.NAME)
    n_sets, first = generalisation.FRESH_SETS, generalisation.FIRST_SET

    def measure(rows: Iterable[Measured]) -> np.ndarray:
        """Return makespan and share within the limit, set by set."""
        return np.array([[x.mean() for x in row.by_seed()] for row in rows])[:, [0, 2]]

    def find(kind: str, ahead: str = "") -> np.ndarray:
        own = [runs[f"fresh {kind}, set {k}"] for k in range(first, first + n_sets)]
        rows = [stored.rows({"": x}, "fresh", ahead=bool(ahead)) for x in own]
        return measure(row for found in rows for row in found if row.label == ahead)

    [nvf] = stored.rule_rows("fresh", rules=["NVF"])
    days = zip(np.split(nvf.makespan, n_sets), np.split(nvf.tardiness, n_sets), strict=True)
    index, ppo, rule = find("best"), find("PPO"), measure(Measured("NVF", *x) for x in days)
    for name, change in {
        "index policy less NVF": index - rule,
        "with lookahead less NVF": find("best", f"{AHEAD}32, even") - rule,
        "PPO less NVF": ppo - rule,
        "index policy less PPO": index - ppo,
    }.items():
        line: list[Cell] = [name]
        for x, unit in ((change[:, 0], "s"), (100.0 * change[:, 1], "points")):
            low, high = stats.t.interval(0.95, len(x) - 1, x.mean(), stats.sem(x))
            p = show_p(float(stats.ttest_1samp(x, 0.0).pvalue))
            line += [f"{x.mean():+.1f} {unit} ({low:+.1f} to {high:+.1f})", p]
        yield line


def tabulate_baselines(stored: StoredStudy) -> Lines:
    """Yield genetic programming beside `best`, and what samplers bring on random floors."""
    beside = ("`best`; uniform", "p")
    yield ["row", "evaluated on", "seeds", "makespan (s)", *beside, f"{WITHIN} (%)", *beside]
    lines = read_csv(stored.folder / "baselines.csv")
    found = gather(lines, "row suite", "makespan tardiness satisfied")
    for (row, suite), own in found.items():
        base = found.get(("uniform", suite), own).T
        if row == "genetic programming":
            base = np.array(stored.rows_of(generalisation.NAME, suite)["best"].by_seed())
        line: list[Cell] = [row, suite, len(own)]
        for what in (0, 2):
            values, other = own[:, what], base[what]
            p = show_p(None if row == "uniform" else compare_ranks(values, other).p)
            line += [*(show_spread(x, int(what == 0), share=what == 2) for x in (values, other)), p]
        yield line


def tabulate_records(stored: StoredStudy) -> Lines:
    """Yield ACERL's mean on each record, and records kept of all."""
    yield ["record", "makespan/tardiness (s)", "seeds within the limit", "paper"]
    own = stored.rows_of("comparison", "dmh-train")["ACERL"]
    paper = find_printed("comparison-train", "ACERL")
    makespan, tardiness = own.means()
    kept = own.tardiness.mean(axis=2) < COST_LIMIT
    for k, record in enumerate(load_suite("dmh-train")):
        printed = "{:.1f}/{:.1f}".format(*paper.cells[record.name][:2])
        of_all = f"{kept[k].sum()} of {own.n_seeds}"
        yield [record.name, f"{makespan[k]:.1f}/{tardiness[k]:.1f}", of_all, printed]
    means = f"{makespan.mean():.1f}/{tardiness.mean():.1f}"
    yield ["all", means, f"{kept.sum()} of {kept.size}", ""]


def tabulate_headroom(stored: StoredStudy) -> Lines:
    """Yield the best schedules found with the future known beside ACERL's means."""
    yield ["record", "hindsight", "proven bound", "its tardiness", "ACERL, mean of 20 seeds"]
    makespan = stored.rows_of("comparison", "dmh-train")["ACERL"].means()[0]
    found = zip(read_csv(stored.folder / "hindsight.csv"), makespan, strict=True)
    lines: list[list[Cell]] = [[*line.values(), f"{own:.0f}"] for line, own in found]
    yield from lines
    means = [np.mean([float(str(line[k])) for line in lines]) for k in range(1, 5)]
    yield ["mean", *(f"{mean:.{int(k == 2)}f}" for k, mean in enumerate(means))]


ARMS = {
    "index": "trained",
    "index+tuned": "trained, thresholds tuned",
    "index+energy": "trained, energy features",
    "index+tuned+energy": "trained, both",
}
"""Trained policies of `benchmarks/vehicles.py`."""
WAITING, LATE, CHARGING = range(3)
"""Figures of a shift."""


def read_vehicles(folder: Path, objective: str) -> dict[tuple[str, ...], np.ndarray]:
    """Return what `benchmarks/vehicles.py` found of baselines and of trainings for an objective.

    By floor, policy, commitment, parking and battery, ndarray(float64, (n_seeds, n_shifts, 3)) of `WAITING`,
    `LATE` and `CHARGING`; baselines count as one seed.
    """
    lines = read_table(folder, "vehicles", "shifts")
    by_seed = gather(
        (line for line in lines if line["objective"] in ("", objective)),
        "floor policy commitment parking battery seed",
        "waiting_s late_share charging_share",
    )
    seeds: dict[tuple[str, ...], list[str]] = {}
    for *cell, seed in by_seed:
        seeds.setdefault(tuple(cell), []).append(seed)
    return {cell: np.array([by_seed[*cell, x] for x in sorted(own)]) for cell, own in seeds.items()}


def tabulate_vehicles(stored: StoredStudy) -> Lines:
    """Yield what calling back, parking and waiting do to the mean waiting, without batteries."""
    cells = read_vehicles(stored.folder, "waiting")
    columns = {
        "until pickup (%)": ("", "pickup", "stay"),
        "parking (%)": ("", "assignment", "park"),
        "both (%)": ("", "pickup", "park"),
        "may wait (%)": ("+wait", "assignment", "stay"),
    }
    yield ["floor", "policy", "seeds", "waiting (s)", *columns]
    for (floor, policy, *how), own in cells.items():
        if how != ["assignment", "stay", "unlimited"] or policy.endswith("+wait"):
            continue
        base = own[..., WAITING]
        line: list[Cell] = [floor, f"`{policy}`", show_seeds(base), f"{base.mean():.1f}"]
        for more, commitment, parking in columns.values():
            found = cells.get((floor, policy + more, commitment, parking, "unlimited"))
            if found is None:
                line.append("")
                continue
            before, after = base.mean(axis=0), found[..., WAITING].mean(axis=0)
            ratio = after.mean() / before.mean()  # of means; its error by the delta method
            error = standard_error((after - ratio * before) / before.mean())
            line.append(f"{100.0 * (ratio - 1.0):+.1f} (se {100.0 * error:.1f})")
        yield line


def tabulate_tuned(stored: StoredStudy) -> Lines:
    """Yield by how much late tasks change as batteries are known of, paired, in points."""
    yield ["floor", "beside the ten features", "late, points", "se over seeds", "se over shifts"]
    cells = read_vehicles(stored.folder, SHIFT)
    for (floor, policy, *how), own in cells.items():
        if how == ["assignment", "stay", "layout"] and policy in ARMS and policy != "index":
            change = 100.0 * (own - cells[floor, "index", *how])[..., LATE]
            errors = (standard_error(change.mean(axis=axis)) for axis in (1, 0))
            name = ARMS[policy].removeprefix("trained, ")
            yield [floor, name, f"{change.mean():+.2f}", *(f"{x:.2f}" for x in errors)]


def tabulate_batteries(stored: StoredStudy) -> Lines:
    """Yield the late tasks with batteries, by who knows of them; a policy in each line."""
    yield [
        *("floor", "policy", "seeds", "charging (%)"),
        *("unlimited: late (%)", "batteries: late (%)", "and until pickup: late (%)"),
    ]
    cells = read_vehicles(stored.folder, SHIFT)
    for (floor, policy, *how), found in cells.items():
        if how != ["assignment", "stay", "layout"]:
            continue
        charging = f"{100.0 * found[..., CHARGING].mean():.0f}"
        line: list[Cell] = [floor, ARMS.get(policy, f"`{policy}`"), show_seeds(found), charging]
        for way in ("assignment stay unlimited", "assignment stay layout", "pickup stay layout"):
            own = cells.get((floor, policy, *way.split()))
            late = np.empty(0) if own is None else 100.0 * own[..., LATE].mean(axis=1)
            error = f" (se {standard_error(late):.2f})" if len(late) > 1 else ""
            line.append(f"{late.mean():.2f}{error}" if len(late) else "")
        yield line


def show_seeds(values: np.ndarray) -> Cell:
    """Return the number of seeds, nothing for the one of a baseline."""
    return len(values) if len(values) > 1 else ""


def tabulate_weights(_: StoredStudy) -> Lines:
    """Yield the weights of `general`, and what they weigh."""
    sets = {name: make_general(name) for name in SETS}
    yield ["feature", "what it is", "scale", *sets]
    for k, name in enumerate(NAMES):
        weights = (f"{own.theta[k]:+.3f}" for own in sets.values())
        yield [f"`{name}`", FEATURES[k].words, f"{FEATURES[k].scale:g}", *weights]


LITTLE, LEAST_LATE = 0.05, 0.1
"""Points added to both sides of a ratio, and late tasks of `nearest`, %, below which there is none."""


def read_shares(stored: StoredStudy) -> dict[tuple[str, ...], np.ndarray]:
    """Return what policies for late tasks come to on the judging floors at the usual load.

    Late share and objective of the records, float64 (n, 2) in %, by judge, policy and seed.
    """
    rows = [x for x in read_table(stored.folder, "general", "trials") if x["set"] == "late"]
    usual = (x for x in rows if not x["judge"].startswith("both"))
    found = gather(usual, "judge policy seed", "late tardiness")
    return {key: own @ [[100.0, 100.0], [0.0, 0.05]] for key, own in found.items()}


def tabulate_ratios(stored: StoredStudy) -> Lines:
    """Yield policies' late share over that of others: geometric means over cases, 95 % intervals."""
    others = "nearest", "best baseline", "own training", "own training, objective"
    header = ["judged on", "cases", "policy", *(f"of {other}" for other in others)]
    yield [*header, "each training, of own training"]
    shares = read_shares(stored)
    judges = list(dict.fromkeys(judge for judge, _, _ in shares))
    judges = [x for x in judges if shares[x, "nearest", "0"][:, 0].mean() > LEAST_LATE]
    seeds = sorted({seed for _, policy, seed in shares if policy == GENERAL})

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
                yield [*line, ", ".join(f"{x:.2f}" for x in each)]


def read_beyond(stored: StoredStudy) -> dict[tuple[str, ...], np.ndarray]:
    """Return objective over that of `nearest`, and waiting less that, of floors and seeds, (n, m, 2).

    By what trained, for which sum, the load that judges, and from how much waiting on `nearest` decides.
    """
    rows = read_table(stored.folder, "general", "beyond")
    how = "floor trained_on trained_for load beyond seed"
    figures = {key: own[0] for key, own in gather(rows, how, "objective waiting_s").items()}
    floors = list(dict.fromkeys(row["floor"] for row in rows))
    found: dict[tuple[str, ...], np.ndarray] = {}
    for key in dict.fromkeys(key[1:5] for key in figures if key[5] != "-1"):
        seeds = sorted({x[5] for x in figures if x[1:5] == key})
        own = np.array([[figures[floor, *key, seed] for seed in seeds] for floor in floors])
        near = np.array([[figures[floor, "", "", key[2], "", "-1"]] for floor in floors])
        ratio = (own[..., 0] + LITTLE) / (near[..., 0] + LITTLE)
        found[key] = np.stack([ratio, own[..., 1] - near[..., 1]], axis=2)
    return found


def tabulate_beyond(stored: StoredStudy) -> Lines:
    """Yield the objective of own trainings over that of `nearest`; in brackets the worst floor's."""
    marks = ["none", "6.0", "8.0", "10.0", "12.0", "18.0", "x 1", "x 2"]
    names = ["never", *(f"{float(x):g}" for x in marks[1:6]), "longest queue", "twice"]
    yield ["offered load", *names]
    found = read_beyond(stored)
    for load in ("0.9", "1.1", "1.25", "1.5"):
        ratios = (np.log(found["0.9", SHIFT, load, mark][..., 0]).mean(axis=1) for mark in marks)
        yield [load, *(f"{np.exp(x.mean()):.2f} ({np.exp(x.max()):.2f})" for x in ratios)]


def tabulate_waiting(stored: StoredStudy) -> Lines:
    """Yield what a term of waiting in the training changes, on quiet and on normal days."""
    columns = ("objective", "waiting, s", "worst seed, s")
    whats = {"without": SHIFT, "with 0.02": f"{SHIFT}+0.02*waiting"}
    heads = [[f"{what}: {columns[0]}", *columns[1:]] for what in whats]
    yield ["trained at", "judged at", *heads[0], *heads[1]]
    found = read_beyond(stored)
    for base, load in product(("0.45", "0.9"), ("0.45", "0.9")):
        line: list[Cell] = [base, load]
        for aim in whats.values():
            own = found[base, aim, load, "10.0"]
            ratio, waiting = np.exp(np.log(own[..., 0]).mean()), own[..., 1].mean(axis=0)
            line += [f"{ratio:.2f}", f"{waiting.mean():+.1f} ± {waiting.std(ddof=1):.1f}"]
            line.append(f"{waiting.max():+.1f}")
        yield line


def tabulate_cost(stored: StoredStudy) -> Lines:
    """Yield how many trainings each study holds, and their seconds on one thread each, beside others."""
    yield ["study", "trainings", "not of one above", "minutes of a thread"]
    for name in SHOWN:
        every = stored.stored[name].values()
        own = [entry for entry in every if "at" not in entry]
        seconds = sum(sum(entry["seconds"]) for entry in own)
        n, new = (sum(len(entry["seeds"]) for entry in some) for some in (every, own))
        yield [f"`python -m studies {name}`", n, new, f"{seconds / 60:.0f}"]


def read_cec(folder: Path) -> dict[tuple[str, str, int], np.ndarray]:
    """Return the gaps of each run of `optimisers.py cec2006`, by function, search and evaluations."""
    lines = gather(read_csv(folder / "cec2006.csv"), "function search evaluations", "gap")
    found = {(function, search, int(n)): x[:, 0] for (function, search, n), x in lines.items()}
    columns = [*dict.fromkeys(search for _, search, _ in found)]
    order = sorted(found, key=lambda key: (key[0], columns.index(key[1]), key[2]))
    return {key: found[key] for key in order}


def show_gap(gaps: np.ndarray) -> str:
    """Return the median gap; "never" where most runs found nothing feasible."""
    return f"{np.median(gaps):.1e}" if np.isfinite(np.median(gaps)) else "never"


def tabulate_cec(stored: StoredStudy) -> Lines:
    """Yield all figures of the CEC functions."""
    yield ["function", "search", "runs", "evaluations", "feasible", "success", "gap"]
    for (function, search, evaluations), gaps in read_cec(stored.folder).items():
        shares = (f"{x.mean():.2f}" for x in (np.isfinite(gaps), gaps <= SOLVED))
        how = (function, CEC_NAMES[search], len(gaps), f"{evaluations:,}")
        yield [*how, *shares, show_gap(gaps)]


def tabulate_cec_success(stored: StoredStudy) -> Lines:
    """Yield the success of each search on each CEC function, those that judge first."""
    found = read_cec(stored.folder)
    columns = sorted(
        {key[1:] for key in found if key[2] >= 50_000},
        key=lambda x: (x[1], [*CEC_NAMES].index(x[0])),
    )
    yield ["function", *(f"{CEC_NAMES[search]}, {n:,}" for search, n in columns)]
    for odd, label in ((0, "**judging**"), (1, "**chosen on**")):
        shares = []
        for function in dict.fromkeys(key[0] for key in found if int(key[0][1:]) % 2 == odd):
            gaps = [found[function, *column] for column in columns]
            shares.append([(x <= SOLVED).mean() for x in gaps])
            both = zip(shares[-1], gaps, strict=True)
            yield [
                function,
                *(f"{x:.2f}" if x > 0.5 else f"{x:.2f} ({show_gap(own)})" for x, own in both),
            ]
        success = np.array(shares).T
        yield [label, *(f"{x.mean():.2f}, {(x > 0.5).sum()} of {len(x)}" for x in success)]


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

BLOCKS: dict[str, Callable[[StoredStudy], Lines]] = {
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
    "general-weights": tabulate_weights,
    "general-ratios": tabulate_ratios,
    "general-beyond": tabulate_beyond,
    "general-waiting": tabulate_waiting,
}
"""Beside the tables of studies and claims."""


OPTIONS: opt.Options = {
    opt.RUNNING: (
        opt.Argument("--root DIR", "the repository", default="."),
        opt.Argument(
            "--runs DIR", "first store what was trained in this folder of finished trainings"
        ),
        opt.Argument("--curves", "draw the training curves, too", opt.SWITCH),
        opt.Argument("--quick", "name what differs, and write nothing", opt.SWITCH),
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
