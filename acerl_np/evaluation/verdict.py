"""A verdict on a policy: its trials beside the best rule's and on bad days, in figures and in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from acerl_np.evaluation.margin import Margin
from acerl_np.evaluation.metrics import Difference, compare_paired
from acerl_np.evaluation.trials import Trials
from acerl_np.policies.rules import NEAREST
from acerl_np.problem.goal import MEASURES, PAPER, Goal, read_objective

Kind = Literal["unseen", "noised", "folds"]

SHOWN = {
    "makespan": ("makespan", "s", 1.0),
    "tardiness": ("tardiness", "s", 1.0),
    "late": ("late tasks", "points", 100.0),
    "waiting": ("waiting", "s", 1.0),
    "empty": ("empty metres", "points", 100.0),
    "worst": ("longest delay", "s", 1.0),
}
"""Each measure's name in a sentence, the unit that a difference is shown in, and that of `Trials` in it."""

CLAIMS = {
    "late": "{} % of tasks late",
    "tardiness": "mean tardiness {} s",
    "waiting": "mean waiting {} s",
    "empty": "{} % of the metres driven empty",
    "makespan": "makespan {} s",
    "worst": "the latest task {} s late",
}
"""How each measure of a policy is told."""

INTERVAL = "95 % interval"

TOLD = ("makespan", "tardiness", "late", "waiting", "worst")
"""Measures of which a verdict's sentence always speaks."""

LONGER, LEAST_LONGER = 1.5, 60.0
"""How many times as long, and how many s longer, a longest delay is than that of the rule if it is told."""


def show_difference(amount: float, error: float, sign: str = "z") -> str:
    """Return a difference, with its standard error if known, in as many digits as these need."""
    digits = _count_digits(amount, error)
    if not digits:
        return "0"
    shown = f"{amount:{sign}.{digits}f}"
    return shown if math.isnan(error) else f"{shown} (se {error:.{digits}f})"


def show_time(seconds: float) -> str:
    """Return a delay in s, from two minutes on in min."""
    return f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"


def show_interval(change: Difference, unit: str = "") -> str:
    """Return a difference with its 95 % interval: without sign where it is clear, else in brackets."""
    amount, error, sign = change.amount, change.error, change.sign
    digits, unit = _count_digits(amount, error), unit and f" {unit}"
    if sign is None or not digits:
        return f"{amount:+.{digits}f}{unit}" if digits else "0"
    form, way = (f"z.{digits}f", sign) if sign else (f"+z.{digits}f", 1)
    low, high = sorted(way * (amount + x * change.errors * error) for x in (-1.0, 1.0))
    shown, interval = f"{way * amount:{form}}{unit}", f"{low:{form}} to {high:{form}}"
    return f"{shown} ({INTERVAL} {interval})" if sign else f"({shown}, {INTERVAL} {interval})"


def _count_digits(amount: float, error: float) -> int:
    """Return the decimals that a difference needs, 0 where there is none."""
    least = abs(amount) if math.isnan(error) else max(error, 1e-3 * abs(amount))
    return max(1, -math.floor(math.log10(least))) if least > 1e-9 else 0


def show_seconds(seconds: float) -> str:
    """Return about how long something takes, in words."""
    minutes = seconds / 60.0
    if minutes < 1.5:
        return f"about {max(1.0, seconds):.0f} s"
    return f"about {minutes:.0f} min" if minutes < 90.0 else f"about {minutes / 60.0:.0f} h"


def claim(goal: Goal, own: Trials, other: Trials, name: str, change: Difference) -> str:
    """Return the means of two policies by the measure of the objective that has changed as the whole has."""
    measures = () if goal.own else read_objective(goal.objective)
    for measure in (x for x in CLAIMS if x in measures):
        values = [trials.mean(measure) * SHOWN[measure][2] for trials in (own, other)]
        if len(measures) == 1 or change.sign in (0, None, compare_paired(*values).sign):
            shown = [f"{x.mean():.1f}" for x in values]
            return f"{CLAIMS[measure].format(shown[0])} instead of {shown[1]} {MEASURES[measure]} ({name})"
    shown = [goal.show(float(trials.mean("value").mean())) for trials in (own, other)]
    return f"{goal.objective} {shown[0]} instead of {shown[1]} ({name})"


def tell_longer(latest: float, usual: float, name: str) -> str:
    """Say that single tasks are far later, s, than with the rule of a name; nothing if they are not."""
    if not latest > max(LONGER * usual, usual + LEAST_LONGER):
        return ""
    return f"single tasks are up to {show_time(latest)} late, with {name} {show_time(usual)}"


class VerdictRow(NamedTuple):
    """A line of a verdict: the trials of a policy, and how far they are from those of the best rule.

    `changes` are the differences of the objective, "value", and of each measure, shares in percent; empty for
    that rule itself. `lateness` is that of each task of each record, s, where it is known.
    """

    label: str
    trials: Trials
    changes: Mapping[str, Difference] = MappingProxyType({})
    lateness: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(
        cls,
        label: str,
        trials: Trials,
        other: Trials | None = None,
        lateness: tuple[np.ndarray, ...] = (),
    ) -> VerdictRow:
        """Return the row of a policy's trials beside those of the best rule."""
        if other is None:
            return cls(label, trials, lateness=lateness)
        units = {"value": 1.0, **{name: unit for name, (_, _, unit) in SHOWN.items()}}
        changes = {
            name: compare_paired(unit * trials.mean(name), unit * other.mean(name))
            for name, unit in units.items()
        }
        return cls(label, trials, changes, lateness)

    @property
    def difference(self) -> Difference | None:
        """The difference of the objective, None for the best rule itself."""
        return self.changes.get("value")

    def mean(self, name: str) -> float:
        """Return the mean over records of a figure of `Trials`, nan where one has none."""
        return float(self.trials.mean(name).mean())

    def find_tail(self) -> dict[str, float]:
        """Return the worst record's objective, and late tasks of a record in the mean, nan if not known.

        Beside them stands the lateness that one task in twenty exceeds, s.
        """
        late = np.concatenate(self.lateness) if self.lateness else np.full(1, math.nan)
        return {
            "worst_record": float(self.trials.mean("value").max()),
            "late_tasks": float((late > 1e-9).sum()) / len(self.lateness)
            if self.lateness
            else math.nan,
            "late_95": float(np.quantile(late, 0.95)),
        }

    def find_worst(self) -> float:
        """Return how late the latest task of all trials was, s; nan if some did not finish."""
        return float(self.trials.worst.max())

    @property
    def within_limit(self) -> bool:
        """Whether the mean cost is below the limit."""
        return self.mean("cost") < self.trials.cost_limit


class BadDay(NamedTuple):
    """Days drawn of the records that judge, made harder: the policy as it runs, `nearest`, `general`."""

    label: str
    rows: tuple[VerdictRow, ...]
    after: tuple[float, ...]
    """s from the last arrival until all is delivered, in the mean, of each row."""

    def sentence(self, goal: Goal) -> str:
        """Say how the policy and `general` differ from `nearest`, and how late the latest tasks are."""
        said = []
        for row in (self.rows[0], *self.rows[2:]):
            told = [("than nearest", goal.unit, row.difference)]
            told += [("in tardiness", "s", row.changes.get("tardiness"))]
            differ = [
                f"{'worse' if x.sign > 0 else 'better'} {than} by {show_interval(x, unit)}"
                for than, unit, x in told
                if x and x.sign
            ]
            words = " and ".join(differ) or "not clearly different from nearest"
            who = "the policy" if row.label == "policy" else row.label
            said.append(f"{who} is {words}, its latest task {show_time(row.find_worst())} late")
        said.append(f"that of nearest {show_time(self.rows[1].find_worst())}")
        n = len(self.rows[0].trials.instances)
        return f"With {self.label} ({n} drawn days) {'; '.join(said)}."


class Verdict(NamedTuple):
    """What a policy is worth, on `n_records` records that it has not seen, or noised copies of those it has.

    Attributes
    ----------
    rows : tuple of VerdictRow
        The policy, the best rule on the training records, and of shifts `nearest` and `general`.
    best_rule : str
        Its name; of folds that differ, their names.
    kind : {"unseen", "folds", "noised"}
        What evaluates the policy.
    n_records : int
        Of these.
    goal : Goal
        By whose objective and limit it is judged.
    notes : tuple of str
        What was left out, and why.
    margin : Margin or None
        How far the best rule is from hindsight, by a bound or a quick search on some of the records; None
        where a row has shown that there is more to win, or it was not sought.
    n_folds : int
        Of `kind` "folds": policies that stand for this one, each judged by the records that it has not seen.
    bad_days : tuple of BadDay
        Of shifts: with one vehicle fewer, and with more demand.
    """

    rows: tuple[VerdictRow, ...]
    best_rule: str
    kind: Kind
    n_records: int
    goal: Goal = PAPER
    notes: tuple[str, ...] = ()
    margin: Margin | None = None
    n_folds: int = 0
    bad_days: tuple[BadDay, ...] = ()

    @property
    def policy(self) -> VerdictRow:
        """The row of the policy itself."""
        return self.rows[0]

    @property
    def rule(self) -> VerdictRow:
        """The row of the best rule."""
        return self.rows[1]

    @property
    def unfinished(self) -> str:
        """Who did not finish how many episodes; empty where all did."""
        for row, who in ((self.policy, "the policy"), (self.rule, self.best_rule)):
            if missed := row.trials.unfinished:
                return f"{who} did not finish {missed} of {row.trials.makespan.size} episodes"
        return ""

    @property
    def headline(self) -> str:
        """What to use, by how much, what to be careful about, and bad days."""
        if self.unfinished:
            return f"No verdict: {self.unfinished}."
        own, goal, name, change = self.policy, self.goal, self.best_rule, self.policy.difference
        assert change is not None
        over = "" if own.within_limit else f"Over the limit, {goal.cost} below {goal.limit}: "
        words = {-1: "Use the policy: ", 0: f"No clear difference to {name}: ", 1: f"Use {name}: "}
        if self.kind == "noised":
            words[-1] = "Not tested on unseen records: "
        first = over or words.get(change.sign, "Too few records to tell: ")  # type: ignore[arg-type]
        told = claim(goal, own.trials, self.rule.trials, name, change)
        line = " ".join(filter(None, (f"{first}{told}, {self._show_place()}.", self._warn())))
        return "\n".join([line, *(day.sentence(goal) for day in self.bad_days)])

    def _show_place(self) -> str:
        noun = "shift" if self.policy.lateness else "record"
        if self.kind == "noised":
            return f"on perturbed copies of the training {noun}s"
        some = f"on {self.n_records} {noun}{'s' * (self.n_records > 1)} not seen in training"
        return f"{some} ({self.n_folds} folds)" if self.n_folds > 1 else some

    def _warn(self) -> str:
        """Return the worst of the days on which the policy leaves a task far later than `nearest`, if any."""
        near = next((row for row in self.rows if NEAREST in row.label.split(" or ")), None)
        days = [("", self.policy, near)] if near is not None else []
        days += [(f" with {day.label}", day.rows[0], day.rows[1]) for day in self.bad_days]
        worst = -math.inf, ""
        for label, own, other in days:
            latest = own.find_worst()
            if told := tell_longer(latest, other.find_worst(), NEAREST):
                worst = max(worst, (latest, f"Careful:{label} {told}."))
        return worst[1]

    def __repr__(self) -> str:
        """Return the headline."""
        return f"<Verdict: {self.headline}>"

    def place(self) -> str:
        """Return what it was judged on, such as "3 unseen records"."""
        if self.kind == "unseen":
            return f"{self.n_records} unseen record{'s' if self.n_records > 1 else ''}"
        if self.kind == "folds" and self.n_folds == 1:
            return f"{self.n_records} records that a policy of the others has not seen"
        if self.kind == "folds":
            return (
                f"{self.n_records} records in {self.n_folds} folds, each judging a policy that has not "
                "seen it"
            )
        return f"{self.n_records} noised copies of the training records, not unseen ones"

    def sentence(self) -> str:
        """Return how the objective and other measures differ from the best rule's, and who keeps the limit.

        What has not changed is told of `TOLD` alone, and not under the paper's goal; where too few records
        tell of the objective, it alone.
        """
        if self.unfinished:
            return f"On {self.place()}: {self.unfinished}."
        goal, own = self.goal, self.policy.changes
        told = [tell_objective(goal, own["value"])]
        still = () if goal == PAPER else TOLD
        for name, (words, unit, _) in SHOWN.items():
            change = own.get(name) if own["value"].sign is not None else None
            if change and name != goal.objective and (change.sign or name in still):
                told.append(tell_change(words, unit, change))
        if goal.has_limit:
            own_side, side = ("within" if x.within_limit else "over" for x in self.rows[:2])
            told.append(f"{own_side} the limit, {self.best_rule} {side} it")
        return f"On {self.place()}, beside {self.best_rule}: {'; '.join(told)}."


def tell_objective(goal: Goal, change: Difference) -> str:
    """Return what happened to the objective, in words: to the makespan in percent."""
    if goal.objective == "makespan":
        return tell_change("makespan", "%", Difference(*change[2:4], *change[2:]))
    name = f"{goal.objective}"
    return tell_change(name, SHOWN[name][1] if name in SHOWN else goal.unit, change)


def tell_change(name: str, unit: str, change: Difference) -> str:
    """Return what happened to a measure, in words."""
    shown = show_interval(change, unit)
    if change.sign is None:
        return f"too few records to tell for {name} ({shown})"
    if not change.sign:
        return f"{name} the same" if shown == "0" else f"no clear change in {name} {shown}"
    amount, interval = shown.split(" (")
    return f"{name} {amount} {'less' if change.sign < 0 else 'more'} ({interval}"


# Policies beside each other


def write_comparison(labels: Sequence[str], results: Sequence[Trials]) -> str:
    """Return how the first policy compares with the best of the others; nothing where an episode is open."""
    own, *others = results
    if not others or any(trials.unfinished for trials in results):
        return ""
    best = min(others, key=lambda trials: float(trials.mean("value").mean()))
    name, other = labels[0], labels[1 + next(k for k, x in enumerate(others) if x is best)]
    change = compare_paired(own.mean("value"), best.mean("value"))
    words = {-1: f"{name} is better than {other}", 1: f"{other} is better than {name}"}
    words[0] = f"No clear difference between {name} and {other}"
    first = words.get(change.sign, "Too few records to tell")  # type: ignore[arg-type]
    over = [x for x, y in ((name, own), (other, best)) if y.mean("cost").mean() >= y.cost_limit]
    if over:
        first = f"{' and '.join(over)} over the limit, {own.goal.cost} below {own.goal.limit}"
    n, told = len(own.instances), claim(own.goal, own, best, other, change)
    lines = [f"{first}: {told}, on {n} record{'s' * (n > 1)}."]
    if told := tell_longer(float(own.worst.max()), float(best.worst.max()), other):
        lines.append(f"Careful: {told}.")
    return " ".join(lines)
