"""The paper's claims, and which of them stored results bear out: the same few rules for all.

An order ("A is better than B") is judged by a two-sided rank-sum test at 5 % on the means of the training
seeds; a level ("reaches v") by whether v lies within, or on the worse side of, the 95 % confidence interval
of the mean over the seeds; a rank ("first in M") by its value alone, as the paper's are.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from acerl_np.evaluation.metrics import rank_sum_p
from acerl_np.evaluation.published import COST_LIMIT, find_row
from acerl_np.problem.bundled import load_suite
from acerl_np.training.history import HISTORY_COLUMNS
from studies.ablation import RANKINGS, SAMPLERS
from studies.comparison import DRAWS, NOISED
from studies.rivals.training import ALGORITHMS
from studies.stored import StoredStudy, read_table
from studies.study_tables import (
    RULE_ROWS,
    Measured,
    find_peer_values,
    join_rows,
    score,
    show_p,
)

LEARNERS = tuple(name.upper() for name in ALGORITHMS)
OTHER_ROWS = tuple(f"{a}+{b}" for b in SAMPLERS for a in RANKINGS if (a, b) != ("ISR", "AIS"))
GROUPS = {
    "learners": LEARNERS,
    "rules": RULE_ROWS,
    "all": LEARNERS + RULE_ROWS,
    "other rows": OTHER_ROWS,
}
"""What `others` of a claim may be, beside labels."""
WHAT = ("makespan", "tardiness", "within the limit")
SIGNIFICANT = 0.05
TESTS = {
    "better": 1,
    "alike": 2,
    "left out": 1,
    "unseen": 1,
    "curves": 1,
    "marks": 2,
    "single": 256,
}
TESTS |= {"all records": 16, "every record": 32}
"""Rank-sum tests of a claim for each of its others, by how it is judged; a value or a level has none."""
CLOSE, EARLY = 1.02, 0.9
SECONDS = HISTORY_COLUMNS.index("seconds")
CURVE_FIGURES = (
    "million decisions until the mean makespan stays within 2 % of its last",
    "million decisions until at least 90 % of the records stay within the limit",
    "mean step of the makespan from look to look in the last quarter, s",
)


class Verdict(NamedTuple):
    """What stored results say of a claim: the verdict, its figures, p values and seeds, as text."""

    verdict: str
    figures: str
    p: str = ""
    seeds: str = ""


class Claim(NamedTuple):
    """A claim of the paper, a line of `claims.csv`: its text, where it is made, and how it is judged.

    `table` of the studies has the figures; `judge` is one of `JUDGES`, and what follows is for it.
    """

    claim: str
    section: str
    table: str
    judge: str
    study: str
    suite: str
    row: str
    others: tuple[str, ...]
    what: str


def judge(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge a claim; one about the learners by those that are stored."""
    if set(LEARNERS) <= set(claim.others):
        known = stored.stored[claim.study]
        here = tuple(x for x in claim.others if x not in LEARNERS or x in known)
        claim = claim._replace(others=here)
    try:
        if claim.others:
            return JUDGES[claim.judge](stored, claim)
        return Verdict("not run", "no such row is stored")
    except KeyError as missing:
        return Verdict("not run", f"no row {missing} is stored")


def read_claims() -> list[Claim]:
    """Return the paper's claims."""
    text = Path(__file__).with_suffix(".csv").read_text(encoding="utf-8")
    found = []
    for line in csv.DictReader(text.splitlines()):
        others = GROUPS.get(line["others"], tuple(line["others"].split("|")))
        found.append(Claim(**{**line, "others": others}))  # type: ignore[arg-type]
    return found


def show(row: Measured, what: int) -> str:
    """Return mean and standard deviation over the seeds: of makespan (0), tardiness (1) or share kept (2)."""
    values = row.by_seed()[what] * (100 if what == 2 else 1)
    digits, unit = (0, "%") if what == 2 else (1, "s")
    spread = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread} {unit}"


def say_part(held: int, n: int, none: str) -> str:
    """Return the verdict on a claim of n parts."""
    return "holds" if held == n else f"holds in part: {held} of {n}" if held else none


def show_range(p: Sequence[float]) -> str:
    """Return the least and the largest of some p values."""
    low, high = show_p(min(p)), show_p(max(p))
    return low if low == high else f"{low} to {high}"


def show_sizes(own: Measured | np.ndarray, others: Sequence[Measured | np.ndarray]) -> str:
    """Return how many seeds, or blocks of a rule's trials, stand against how many."""
    n, *sizes = (len(x) if isinstance(x, np.ndarray) else x.n_seeds for x in (own, *others))
    return f"{n} against {' or '.join(map(str, sorted(set(sizes))))}"


def compare(own: Measured, others: Sequence[Measured], what: int) -> Verdict:
    """Judge "own is better than each of the others" in makespan (0), tardiness (1) or share kept (2)."""
    sides: dict[str, list[str]] = {"better than": [], "not told apart from": [], "worse than": []}
    values = own.by_seed()[what]
    p = [rank_sum_p(values, other.by_seed()[what]) for other in others]
    for other, its_p in zip(others, p, strict=True):
        ahead = (values.mean() - other.by_seed()[what].mean()) * (1 if what == 2 else -1)
        side = "better than" if ahead > 0 else "worse than"
        side = side if its_p < SIGNIFICANT else "not told apart from"
        sides[side].append(f"{other.label} {show(other, what)}")
    verdict = say_part(
        len(sides["better than"]),
        len(others),
        "does not hold" if sides["worse than"] else "not told apart",
    )
    told = "; ".join(f"{side} {', '.join(names)}" for side, names in sides.items() if names)
    figures = f"{WHAT[what]}: {own.label} {show(own, what)}; {told}"
    return Verdict(verdict, figures, show_range(p), show_sizes(own, others))


def rank(own: Measured, others: Sequence[Measured], table: str | None) -> dict[str, int]:
    """Return the place of a row in M, C and P, 1 the first; equal scores share a place.

    M and C are normalised over the paper's rows of that table and its peers, else over these rows.
    """
    rows = [own, *others]
    names = [record.name for record in load_suite("dmh-train")]
    peers = find_peer_values(rows, table, names)
    scores = np.array([score(row, peers) for row in rows]).round(4)
    return {name: 1 + int((scores[1:, k] > scores[0, k]).sum()) for k, name in enumerate("MCP")}


def weigh_places(places: Sequence[dict[str, int]], claim: Claim, seeds: str) -> Verdict:
    """Judge "first in M, C and P", or in what is asked of these, by the places on one suite or several."""
    letters = claim.what or "MCP"
    asked = [place[letter] for place in places for letter in letters]
    shown = "; ".join(f"{x} {', '.join(str(place[x]) for place in places)}" for x in letters)
    figures = f"place among {len(claim.others) + 1} rows: {shown}"
    return Verdict(say_part(asked.count(1), len(asked), "does not hold"), figures, "", seeds)


def read_sides(stored: StoredStudy, claim: Claim) -> tuple[Measured, list[Measured], str]:
    """Return a claim's row, its others, and how many seeds stand against how many."""
    rows = stored.rows_of(claim.study, claim.suite)
    own, others = rows[claim.row], [rows[x] for x in claim.others]
    return own, others, show_sizes(own, others)


def judge_first(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "first in M, C and P on a suite"."""
    table = claim.table if claim.suite == "dmh-train" else None
    own, others, sizes = read_sides(stored, claim)
    return weigh_places([rank(own, others, table)], claim, sizes)


def judge_better(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "a row is better than each of the others"."""
    own, others, _ = read_sides(stored, claim)
    return compare(own, others, WHAT.index(claim.what))


def judge_alike(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "all are alike": what is not told apart is not shown to be equal."""
    own, others, _ = read_sides(stored, claim)
    found = [compare(own, others, what) for what in (0, 2)]
    alike = not any("better than" in x.figures or "worse than" in x.figures for x in found)
    figures, p = ("; ".join(getattr(x, name) for x in found) for name in ("figures", "p"))
    return Verdict("not contradicted" if alike else "does not hold", figures, p, found[0].seeds)


def judge_level(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "ACERL reaches what the paper prints"."""
    what = WHAT.index(claim.what)
    paper = find_row(claim.table.removesuffix("-spread"), claim.row)
    assert paper is not None
    level = paper.p if what == 2 else float(np.mean([x[what] for x in paper.cells.values()]))
    values = stored.rows_of(claim.study, claim.suite)[claim.row].by_seed()[what]
    scale, unit = (100.0, "%") if what == 2 else (1.0, "s")
    half, mean = find_half(values), float(values.mean())
    around = f"{scale * mean:.1f} ± {scale * half:.1f} {unit} (95 % of the mean)"
    figures = f"{around}, paper {scale * level:.5g} {unit}"
    if what == 2:
        figures += f"; {int((values == 1.0).sum())} of {len(values)} seeds keep it in every trial"
    reached = mean - level >= -half if what == 2 else mean - level <= half
    held = "met, but fitted" if claim.judge == "fitted" else "holds"  # what we chose by is no check
    return Verdict(held if reached else "does not hold", figures, "", str(len(values)))


def find_half(values: np.ndarray) -> float:
    """Return half the width of the 95 % confidence interval of a mean, by Student's t."""
    return float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)


def judge_noised_share(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge the shares within the limit at each magnitude, by their mean."""
    printed = [find_row("robustness-summary", claim.row, f"DMH±{m}") for m in NOISED]
    paper = np.array([row.p for row in printed if row is not None])
    ours = np.array(
        [stored.rows_of(claim.study, x)[claim.row].by_seed()[2] for x in NOISED.values()]
    )
    shown = ", ".join(f"{x:.0%} ({y:.0%})" for x, y in zip(ours.mean(axis=1), paper, strict=True))
    half, mean = find_half(ours.mean(axis=0)), ours.mean()
    figures = f"±5 to ±30 (paper): {shown}; mean {mean:.1%} ± {half:.1%} ({paper.mean():.1%})"
    reached = mean + half >= paper.mean()
    return Verdict("holds" if reached else "does not hold", figures, "", str(ours.shape[1]))


def judge_noised_first(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "first in M, C and P" at each magnitude, on the bundled suites or over all further draws."""
    places = []
    for magnitude, suite in NOISED.items():
        drawn = [f"draw-{magnitude}-{draw}" for draw in DRAWS]
        tables = [stored.rows_of(claim.study, x) for x in (drawn if claim.suite else [suite])]
        joined = [join_rows(rows[x] for rows in tables)[0] for x in (claim.row, *claim.others)]
        places.append(rank(joined[0], joined[1:], None))
    return weigh_places(places, claim, show_sizes(joined[0], joined[1:]))


def judge_noised_order(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "ahead of the others in M, C or P" at some magnitudes, by value, as in "P 20 25 30"."""
    letter, *magnitudes = claim.what.split()
    names, ahead, shown = [record.name for record in load_suite("dmh-train")], [], []
    for magnitude in magnitudes:
        suite = NOISED.get(int(magnitude), "dmh-train")
        rows = stored.rows_of(claim.study, suite)
        table = "comparison-train" if suite == "dmh-train" else None
        peers = find_peer_values([rows[x] for x in ("ACERL", *GROUPS["all"])], table, names)
        own, *others = (
            score(rows[x], peers)["MCP".index(letter)] for x in (claim.row, *claim.others)
        )
        ahead += [own > x for x in others]
        beside = ", ".join(f"{x} {y:.2f}" for x, y in zip(claim.others, others, strict=True))
        shown.append(f"±{magnitude} {claim.row} {own:.2f}, {beside}")
    sizes = show_sizes(rows[claim.row], [rows[x] for x in claim.others])
    verdict = say_part(sum(ahead), len(ahead), "does not hold")
    return Verdict(verdict, f"{letter}: {'; '.join(shown)}", "", sizes)


def judge_marks(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge the others' marks against a row on one record, (makespan, tardiness), as in "DMH-07 ~-"."""
    record, expected = claim.what.split()
    own, others, sizes = read_sides(stored, claim)
    k = (int(record.removeprefix("DMH-")) - 1) % len(own.makespan)
    marks = {x.label: "".join(x.mark(own)[k]) for x in others}
    held = sum(fnmatch(mark, expected) for mark in marks.values())
    figures = (
        f"marks on {record}: {', '.join(f'{x} {mark[0]}/{mark[1]}' for x, mark in marks.items())}"
    )
    return Verdict(say_part(held, len(marks), "does not hold"), figures, "", sizes)


def count_marks(stored: StoredStudy, claim: Claim) -> tuple[dict[str, list[tuple[str, str]]], str]:
    """Return the others' marks against a row on all 16 records, (makespan, tardiness), and the sizes."""
    marks: dict[str, list[tuple[str, str]]] = {}
    for suite in ("dmh-train", "dmh-test"):
        rows = stored.rows_of(claim.study, suite)
        for name in claim.others:
            marks.setdefault(name, []).extend(rows[name].mark(rows[claim.row]))
    return marks, show_sizes(rows[claim.row], [rows[name] for name in claim.others])


def judge_all_records(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "none of the others is better on all 16 records", by makespan."""
    marks, seeds = count_marks(stored, claim)
    counts = {name: sum(mark[0] == "+" for mark in own) for name, own in marks.items()}
    shown = ", ".join(f"{name} {n}" for name, n in counts.items())
    figures = f"records with a shorter makespan than {claim.row}'s at 5 %: {shown}"
    return Verdict("holds" if max(counts.values()) < 16 else "does not hold", figures, "", seeds)


def judge_every_record(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "better than all others on every record but three"."""
    marks, seeds = count_marks(stored, claim)
    n = sum(all(both == ("-", "-") for both in own) for own in zip(*marks.values(), strict=True))
    figures = (
        f"records on which all others are worse in makespan and tardiness at 5 %: {n} of 16 (13)"
    )
    return Verdict("holds" if n >= 13 else "does not hold", figures, "", seeds)


def judge_folds(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "first in M, C and P in every fold"."""
    rows, places = stored.rows_of(claim.study, claim.suite), []
    for k, record in enumerate(load_suite("dmh-train"), start=1):
        fold = f"without {record.name}"
        others = [rows[name if name in RULE_ROWS else f"{name} {fold}"] for name in claim.others]
        places.append(rank(rows[fold], others, f"leave-one-out-{k:02d}"))
    return weigh_places(places, claim, show_sizes(rows[fold], others))


def join_folds(stored: StoredStudy, label: str, name: str = "") -> Measured:
    """Return a row on the records that were left out, all folds together; `label` "" is ACERL."""
    rows, parts = stored.rows_of("leave-one-out", "dmh-train"), []
    for k, record in enumerate(load_suite("dmh-train")):
        fold = label if label in RULE_ROWS else f"{label} without {record.name}".strip()
        row, part = rows[fold], slice(k, k + 1)
        parts.append(Measured(name or label or "ACERL", row.makespan[part], row.tardiness[part]))
    return join_rows(parts)[0]


def judge_unseen(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "a row is better than each of the others" on the records that were left out."""
    own, *others = (
        join_folds(stored, "" if x == "ACERL" else x) for x in (claim.row, *claim.others)
    )
    return compare(own, others, WHAT.index(claim.what))


def judge_seen(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "the shortest makespan on each of the seven records of a fold that are trained on", by value."""
    rows, won = stored.rows_of(claim.study, claim.suite), []
    for k, record in enumerate(load_suite("dmh-train")):
        fold = f"without {record.name}"
        others = [rows[x if x in RULE_ROWS else f"{x} {fold}"] for x in claim.others]
        least = np.min([row.means()[0] for row in others], axis=0)
        won += [*np.delete(rows[fold].means()[0] < least, k)]
    figures = f"records with the shortest mean makespan: {sum(won)} of {len(won)}, eight folds"
    verdict = say_part(sum(won), len(won), "does not hold")
    return Verdict(verdict, figures, "", show_sizes(rows[fold], others))


def judge_left_out(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "not as good on a record that is left out as when it is trained on", over all folds."""
    left_out = join_folds(stored, "", "left out")
    found = compare(stored.rows_of("comparison", claim.suite)["ACERL"], [left_out], 2)
    times = f"{show(left_out, 0)}, tardiness {show(left_out, 1)}"
    return found._replace(figures=f"{found.figures}; left out: {times}")


def judge_single(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "good on its own record, poor elsewhere" of the rows trained on a single record."""
    rows, own, elsewhere = stored.rows_of(claim.study, claim.suite), 0, 0
    for ranking in RANKINGS:
        for k in range(8):
            single = rows[f"{ranking}+DMH-{k + 1}"]
            marks = [x for x, _ in single.mark(rows[claim.row])]
            own += marks.pop(k) == "+"
            elsewhere += marks.count("-")
    figures = f"makespan at 5 %: {own} of 32 better on their own record, {elsewhere} of 224 worse elsewhere"
    sizes = show_sizes(rows[claim.row], [single])
    return Verdict(say_part(own + elsewhere, 256, "does not hold"), figures, "", sizes)


def judge_time(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "trains in less time than each of the others"; it is the order alone that can be judged."""
    runs = stored.load(claim.study)
    seconds = {
        x: np.array([run.history[0, SECONDS] for run in runs[x]])
        for x in (claim.row, *claim.others)
    }
    own = seconds[claim.row]
    longer = all(seconds[x].mean() > own.mean() for x in claim.others)
    shown = ", ".join(f"{name} {x.mean():.0f}" for name, x in seconds.items())
    verdict = "the order holds" if longer else "does not hold"
    sizes = show_sizes(own, [seconds[x] for x in claim.others])
    return Verdict(verdict, f"seconds of a core that others used, too: {shown}", "", sizes)


def read_curves(stored: StoredStudy) -> dict[str, dict[int, np.ndarray]]:
    """Return training curves by row and seed, ndarray(float64, (n_looks, n_records, 4)).

    The last axis: decisions, makespan (s), tardiness (s), share within the limit.
    """
    found: dict[str, dict[int, list[list[float]]]] = {}
    for line in read_table(stored.folder, "comparison", "curves"):
        values = [float(line[name]) for name in ("decisions", "makespan", "tardiness", "satisfied")]
        found.setdefault(line["row"], {}).setdefault(int(line["seed"]), []).append(values)
    n = len(load_suite("dmh-train"))
    return {
        row: {seed: np.array(lines).reshape(-1, n, 4) for seed, lines in seeds.items()}
        for row, seeds in found.items()
    }


def measure_curves(looks: np.ndarray) -> tuple[float, float, float]:
    """Return the figures of `CURVE_FIGURES` of a training; what is never reached counts as the last look."""
    decisions, makespan = looks[:, 0, 0] / 1e6, looks[:, :, 1].mean(axis=1)

    def settle(far: np.ndarray) -> float:
        last = int(np.flatnonzero(far)[-1]) + 1 if far.any() else 0
        return float(decisions[min(last, len(decisions) - 1)])

    short = (looks[:, :, 2] < COST_LIMIT).mean(axis=1) < EARLY
    tail = makespan[decisions >= 0.75 * decisions[-1]]
    step = float(np.abs(np.diff(tail)).mean())
    return settle(makespan > CLOSE * makespan[-1]), settle(short), step


def judge_curves(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "sooner" (converged 0, within the limit 1) or "more stable" (2) than each of the others."""
    which = int(claim.what)
    values = {
        row: np.array([measure_curves(looks)[which] for looks in seeds.values()])
        for row, seeds in read_curves(stored).items()
    }
    own = values[claim.row]
    p = {name: rank_sum_p(own, values[name]) for name in claim.others}
    differ = [name for name in claim.others if p[name] < SIGNIFICANT]
    better = sum(bool(own.mean() < values[name].mean()) for name in differ)
    shown = ", ".join(f"{name} {values[name].mean():.2f}" for name in (claim.row, *claim.others))
    verdict = say_part(better, len(p), "does not hold" if differ else "not told apart")
    sizes = show_sizes(own, [values[name] for name in claim.others])
    return Verdict(verdict, f"{CURVE_FIGURES[which]}: {shown}", show_range([*p.values()]), sizes)


JUDGES: dict[str, Callable[[StoredStudy, Claim], Verdict]] = {
    "first": judge_first,
    "better": judge_better,
    "alike": judge_alike,
    "level": judge_level,
    "fitted": judge_level,
    "noised share": judge_noised_share,
    "noised first": judge_noised_first,
    "noised order": judge_noised_order,
    "marks": judge_marks,
    "all records": judge_all_records,
    "every record": judge_every_record,
    "folds": judge_folds,
    "left out": judge_left_out,
    "unseen": judge_unseen,
    "seen": judge_seen,
    "single": judge_single,
    "time": judge_time,
    "curves": judge_curves,
    "none": lambda _, claim: Verdict("cannot be tested", claim.what),
}
