"""The paper's claims, and which of them stored results bear out: the same few rules for all.

An order ("A is better than B") is judged by a two-sided rank-sum test at 5 % on the means of the training
seeds; a level ("reaches v") by what five seeds, and one draw of the records where the paper's are not
published, would print: whether v lies within the 95 % of that; a gain by whether the paper's is within the
95 % interval of ours; a rank ("first in M") by its value alone, as the paper's are; the rules' cells by a
chi-squared test at 5 %.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from acerl_np.evaluation.published import COST_LIMIT, find_row
from acerl_np.problem.bundled import load_suite
from acerl_np.training.history import HISTORY_COLUMNS
from studies.ablation import RANKINGS, SAMPLERS
from studies.comparison import DRAWS, NOISED
from studies.rivals.training import ALGORITHMS
from studies.statistics import SIGNIFICANT, compare_ranks, measure_gain, predict_means
from studies.stored import StoredStudy, gather, read_table
from studies.study_tables import (
    RULE_ROWS,
    Measured,
    Pair,
    find_peer_values,
    find_printed,
    join_rows,
    score,
    show_mark,
    show_p,
    show_spread,
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
CLOSE, EARLY = 1.02, 0.9
SECONDS = HISTORY_COLUMNS.index("seconds")
CURVE_FIGURES = (
    "million decisions until the mean makespan stays within 2 % of its last",
    "million decisions until at least 90 % of the records stay within the limit",
    "mean step of the makespan from look to look in the last quarter, s",
)


class Verdict(NamedTuple):
    """What stored results say of a claim: verdict, figures, p of its rank-sum tests, seeds, p of a level."""

    verdict: str
    figures: str
    tests: tuple[float, ...] = ()
    seeds: str = ""
    level: float | None = None

    def show(self, threshold: float) -> list[str]:
        """Return it as text: verdict, p, how many tests come out, how many survive, seeds, figures."""
        if not self.tests:
            p = "" if self.level is None else show_p(self.level)
            return [self.verdict, p, "", "", self.seeds, self.figures]
        low, high = show_p(min(self.tests)), show_p(max(self.tests))
        clear = sum(p < SIGNIFICANT for p in self.tests)
        kept = sum(p <= threshold for p in self.tests)
        counts = [f"{clear} of {len(self.tests)}", str(kept)]
        return [
            self.verdict,
            low if low == high else f"{low} to {high}",
            *counts,
            self.seeds,
            self.figures,
        ]


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


def show(row: Measured, what: int, *, units: bool = True) -> str:
    """Return mean and standard deviation over the seeds: of makespan (0), tardiness (1) or share kept (2)."""
    digits, share, unit = (0, True, " %") if what == 2 else (1, False, " s")
    return f"{show_spread(row.by_seed()[what], digits, share=share)}{unit if units else ''}"


def say_part(held: int, n: int, none: str = "does not hold") -> str:
    """Return the verdict on a claim of n parts."""
    return "holds" if held == n else f"holds in part: {held} of {n}" if held else none


def show_sizes(own: Measured | np.ndarray, others: Sequence[Measured | np.ndarray]) -> str:
    """Return how many seeds, or blocks of a rule's trials, stand against how many."""
    n, *sizes = (
        f"{len(x)} seeds" if isinstance(x, np.ndarray) else x.show_size() for x in (own, *others)
    )
    return f"{n} against {' or '.join(sorted(set(sizes)))}"


def compare(own: Measured, others: Sequence[Measured], what: int) -> Verdict:
    """Judge "own is better than each of the others" in makespan (0), tardiness (1) or share kept (2)."""
    sides: dict[str, list[str]] = {"better than": [], "not told apart from": [], "worse than": []}
    values = own.by_seed()[what]
    tests = [compare_ranks(values, other.by_seed()[what]) for other in others]
    for other, test in zip(others, tests, strict=True):
        side = [*sides][1 - test.side * (1 if what == 2 else -1)]
        sides[side].append(f"{other.label} {show(other, what)}")
    verdict = say_part(
        len(sides["better than"]),
        len(others),
        "does not hold" if sides["worse than"] else "not told apart",
    )
    told = "; ".join(f"{side} {', '.join(names)}" for side, names in sides.items() if names)
    figures = f"{WHAT[what]}: {own.label} {show(own, what)}; {told}"
    return Verdict(verdict, figures, tuple(test.p for test in tests), show_sizes(own, others))


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
    return Verdict(say_part(asked.count(1), len(asked)), figures, (), seeds)


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
    figures, tests = "; ".join(x.figures for x in found), found[0].tests + found[1].tests
    return Verdict("not contradicted" if alike else "does not hold", figures, tests, found[0].seeds)


def list_draws(magnitude: int) -> list[str]:
    """Return the suites of all draws of a magnitude: the bundled one, and the further ones."""
    return [NOISED[magnitude], *(f"draw-{magnitude}-{draw}" for draw in DRAWS)]


def weigh_level(
    stored: StoredStudy, claim: Claim, level: float, drawn: Sequence[Sequence[str]]
) -> Verdict:
    """Judge whether a level is what five seeds, and one draw of each suite, would print."""
    what = WHAT.index(claim.what)
    scale, unit = (100.0, "%") if what == 2 else (1.0, "s")
    values = scale * np.array(
        [[stored.rows_of(claim.study, x)[claim.row].by_seed()[what] for x in own] for own in drawn]
    )
    printed, level = predict_means(values), scale * level
    low, high = np.quantile(printed, (SIGNIFICANT / 2.0, 1.0 - SIGNIFICANT / 2.0))
    p = min((printed >= level).mean(), (printed <= level).mean())
    draws = " and one draw" if len(drawn[0]) > 1 else ""
    figures = (
        f"five seeds{draws} would print {low:.1f} to {high:.1f} {unit} in 95 % of cases; mean here "
        f"{values.mean():.1f}, paper {level:.5g} {unit}, p {show_p(p)}"
    )
    below, above = level < low - 1e-9, level > high + 1e-9
    verdict = "does not hold" if (above if what == 2 else below) else "holds"
    if not below and not above:
        verdict = "met, but fitted" if claim.judge == "fitted" else "not told apart"
    return Verdict(verdict, figures, (), f"{values.shape[2]} seeds", p)


def judge_level(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "ACERL reaches what the paper prints"; of DMH-09 to -16 by all draws."""
    level = find_level(claim.table.removesuffix("-spread"), claim.row, WHAT.index(claim.what))
    drawn = list_draws(5) if claim.suite == "dmh-test" else [claim.suite]
    return weigh_level(stored, claim, level, [drawn])


def find_level(table: str, label: str, what: int) -> float:
    """Return what the paper prints: mean makespan (0), tardiness (1), s, or the share kept (2)."""
    paper = find_printed(table, label)
    return paper.p if what == 2 else float(np.mean([x[what] for x in paper.cells.values()]))


def judge_noised_share(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge the shares within the limit at each magnitude, by their mean."""
    printed = [find_row("robustness-summary", claim.row, f"DMH±{m}") for m in NOISED]
    paper = [row.p for row in printed if row is not None]
    found = weigh_level(stored, claim, float(np.mean(paper)), [*map(list_draws, NOISED)])
    ours = (
        np.mean([stored.rows_of(claim.study, x)[claim.row].satisfied for x in list_draws(m)])
        for m in NOISED
    )
    shown = ", ".join(f"{x:.0%} ({y:.0%})" for x, y in zip(ours, paper, strict=True))
    return found._replace(figures=f"±5 to ±30, nine draws each (paper): {shown}; {found.figures}")


def judge_gain(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge whether a row gains on others what the paper's does: within the 95 % intervals of ours."""
    own, others, sizes = read_sides(stored, claim)
    what, table = WHAT.index(claim.what), claim.table.removesuffix("-spread")
    scale, unit = (100.0, "points") if what == 2 else (1.0, "s")
    paper = [scale * find_level(table, x, what) for x in (claim.row, *claim.others)]
    held, shown = 0, []
    for other, printed in zip(others, paper[1:], strict=True):
        gain = measure_gain(scale * own.by_seed()[what], scale * other.by_seed()[what])
        held += gain.low <= paper[0] - printed <= gain.high
        shown.append(
            f"to {other.label} {gain.mean:+.1f} {unit} (95 % interval {gain.low:+.1f} to {gain.high:+.1f}; "
            f"paper {paper[0] - printed:+.1f}; seen in 80 % of cases: {gain.visible:.1f})"
        )
    verdict = "not told apart" if held == len(others) else "does not hold"
    return Verdict(verdict, f"{claim.what}: {', '.join(shown)}", (), sizes)


def judge_cells(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge whether rules come to the printed means of each record: a chi-squared test at 5 %."""
    rows, sums = stored.rows_of(claim.study, claim.suite), {30: 0.0, 150: 0.0}
    for label in claim.others:
        paper, row = find_printed(claim.table, label), rows[label]
        cells = np.array([x[:2] for x in paper.cells.values()]).T
        trials = np.array([row.makespan, row.tardiness]).reshape(2, len(cells[0]), -1)
        for n in sums:
            error = trials.var(axis=2, ddof=1) * (1.0 / n + 1.0 / trials.shape[2])
            sums[n] += float((np.square(cells - trials.mean(axis=2)) / error).sum())
    n_cells = len(claim.others) * cells.size
    p = float(stats.chi2.sf(sums[30], n_cells))
    figures = (
        f"sum of z squared over {n_cells} cells: {sums[30]:.0f} if a cell is a mean of 30 trials "
        f"(chi-squared test, p {show_p(p)}), {sums[150]:.0f} if of 150"
    )
    sizes = f"{trials.shape[2]} trials a cell"
    return Verdict("not told apart" if p >= SIGNIFICANT else "does not hold", figures, (), sizes, p)


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
    figures = f"{letter}: {'; '.join(shown)}"
    return Verdict(say_part(sum(ahead), len(ahead)), figures, (), sizes)


def judge_marks(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge the others' marks against a row on one record, (makespan, tardiness), as in "DMH-07 ~-"."""
    record, expected = claim.what.split()
    own, others, sizes = read_sides(stored, claim)
    k = (int(record.removeprefix("DMH-")) - 1) % len(own.makespan)
    tests = {x.label: x.test(own)[k] for x in others}
    marks = {x: "".join(map(show_mark, both)) for x, both in tests.items()}
    held = say_part(sum(fnmatch(mark, expected) for mark in marks.values()), len(marks))
    shown = ", ".join(f"{x} {mark[0]}/{mark[1]}" for x, mark in marks.items())
    return Verdict(held, f"marks on {record}: {shown}", list_p(tests.values()), sizes)


def compare_records(stored: StoredStudy, claim: Claim) -> tuple[dict[str, list[Pair]], str]:
    """Return tests of the others against a row on all 16 records, (makespan, tardiness), and the sizes."""
    tests: dict[str, list[Pair]] = {}
    for suite in ("dmh-train", "dmh-test"):
        rows = stored.rows_of(claim.study, suite)
        for name in claim.others:
            tests.setdefault(name, []).extend(rows[name].test(rows[claim.row]))
    return tests, show_sizes(rows[claim.row], [rows[name] for name in claim.others])


def list_p(pairs: Iterable[Pair]) -> tuple[float, ...]:
    """Return p of all tests."""
    return tuple(test.p for pair in pairs for test in pair)


def judge_all_records(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "none of the others is better on all 16 records", by makespan."""
    tests, seeds = compare_records(stored, claim)
    counts = {name: sum(pair[0].side < 0 for pair in own) for name, own in tests.items()}
    shown = ", ".join(f"{name} {n}" for name, n in counts.items())
    figures = f"records with a shorter makespan than {claim.row}'s at 5 %: {shown}"
    verdict = "not contradicted" if max(counts.values()) < 16 else "does not hold"
    p = tuple(pair[0].p for own in tests.values() for pair in own)
    return Verdict(verdict, figures, p, seeds)


def judge_every_record(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "better than all others on every record but three"."""
    tests, seeds = compare_records(stored, claim)
    worse = [[pair[0].side == pair[1].side == 1 for pair in own] for own in tests.values()]
    n = sum(map(all, zip(*worse, strict=True)))
    figures = (
        f"records on which all others are worse in makespan and tardiness at 5 %: {n} of 16 (13)"
    )
    p = list_p(pair for own in tests.values() for pair in own)
    return Verdict("holds" if n >= 13 else "does not hold", figures, p, seeds)


def list_folds(stored: StoredStudy, claim: Claim) -> list[tuple[Measured, list[Measured]]]:
    """Return a claim's row and its others, fold by fold."""
    rows = stored.rows_of(claim.study, claim.suite)
    folds = [f"without {record.name}" for record in load_suite("dmh-train")]
    return [
        (rows[fold], [rows[x if x in RULE_ROWS else f"{x} {fold}"] for x in claim.others])
        for fold in folds
    ]


def judge_folds(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "first in M, C and P in every fold"."""
    folds = list_folds(stored, claim)
    places = [rank(*fold, f"leave-one-out-{k:02d}") for k, fold in enumerate(folds, start=1)]
    return weigh_places(places, claim, show_sizes(*folds[-1]))


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
    folds, won = list_folds(stored, claim), []
    for k, (own, others) in enumerate(folds):
        least = np.min([row.means()[0] for row in others], axis=0)
        won += [*np.delete(own.means()[0] < least, k)]
    figures = f"records with the shortest mean makespan: {sum(won)} of {len(won)}, eight folds"
    return Verdict(say_part(sum(won), len(won)), figures, (), show_sizes(*folds[-1]))


def judge_left_out(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "not as good on a record that is left out as when it is trained on", over all folds."""
    left_out = join_folds(stored, "", "left out")
    found = compare(stored.rows_of("comparison", claim.suite)["ACERL"], [left_out], 2)
    times = f"{show(left_out, 0)}, tardiness {show(left_out, 1)}"
    return found._replace(figures=f"{found.figures}; left out: {times}")


def judge_single(stored: StoredStudy, claim: Claim) -> Verdict:
    """Judge "good on its own record, poor elsewhere" of the rows trained on a single record."""
    rows, own, elsewhere, p = stored.rows_of(claim.study, claim.suite), 0, 0, list[float]()
    for ranking, k in product(RANKINGS, range(8)):
        single = rows[f"{ranking}+DMH-{k + 1}"]
        tests = [test for test, _ in single.test(rows[claim.row])]
        p += [test.p for test in tests]
        own += tests.pop(k).side < 0
        elsewhere += sum(test.side > 0 for test in tests)
    figures = f"makespan at 5 %: {own} of 32 better on their own record, {elsewhere} of 224 worse elsewhere"
    sizes = show_sizes(rows[claim.row], [single])
    return Verdict(say_part(own + elsewhere, 256), figures, tuple(p), sizes)


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
    return Verdict(verdict, f"seconds of a core that others used, too: {shown}", (), sizes)


def read_curves(stored: StoredStudy) -> dict[str, dict[int, np.ndarray]]:
    """Return training curves by row and seed, ndarray(float64, (n_looks, n_records, 4)).

    The last axis: decisions, makespan (s), tardiness (s), share within the limit.
    """
    lines = read_table(stored.folder, "comparison", "curves")
    looks = gather(lines, "row seed", "decisions makespan tardiness satisfied")
    n, found = len(load_suite("dmh-train")), dict[str, dict[int, np.ndarray]]()
    for (row, seed), own in looks.items():
        found.setdefault(row, {})[int(seed)] = own.reshape(-1, n, 4)
    return found


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
    tests = [compare_ranks(own, values[name]) for name in claim.others]
    sides = [test.side for test in tests]
    shown = ", ".join(f"{name} {values[name].mean():.2f}" for name in (claim.row, *claim.others))
    none = "does not hold" if any(sides) else "not told apart"
    verdict = say_part(sides.count(-1), len(sides), none)
    sizes = show_sizes(own, [values[name] for name in claim.others])
    p = tuple(test.p for test in tests)
    return Verdict(verdict, f"{CURVE_FIGURES[which]}: {shown}", p, sizes)


JUDGES: dict[str, Callable[[StoredStudy, Claim], Verdict]] = {
    "first": judge_first,
    "better": judge_better,
    "alike": judge_alike,
    "level": judge_level,
    "fitted": judge_level,
    "noised share": judge_noised_share,
    "gain": judge_gain,
    "cells": judge_cells,
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
