"""A verdict on a policy: beside the best rule on its training records, and on bad days."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from acerl_np.evaluation.hindsight import find_references, measure_size
from acerl_np.evaluation.hold_out import make_noised
from acerl_np.evaluation.margin import (
    RULES_TO_BEAT,
    Margin,
    choose_rule,
    find_little,
    measure_margin,
    play_rules,
)
from acerl_np.evaluation.metrics import Difference, compare_paired
from acerl_np.evaluation.trials import (
    Playing,
    Trials,
    find_lateness,
    join_trials,
    play_policy,
)
from acerl_np.evaluation.whatif import KNOBS, NEAREST, make_shifts
from acerl_np.policies.files import AnyPolicy
from acerl_np.policies.general import find_set, make_general
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.network import Policy
from acerl_np.policies.rules import GENERAL
from acerl_np.problem.demand import draw_shift
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance, are_shifts, commit_instances, list_instances
from acerl_np.support.errors import InputError, PolicyError
from acerl_np.support.numbers import Whole

PATIENCE = 60.0
"""s of a core that a verdict may take; what would take longer is left out."""

BAD_DEMAND, BAD_DAYS = 1.3, 20
"""How many times the tasks come on a bad day, and at least so many are drawn of the records that judge."""

MARGIN_EFFORT, MARGIN_RECORDS = 0.02, 5
"""Of the quick searches in hindsight that tell whether there is little to win: effort, and most records."""

SECONDS_PER_TASK, SECONDS_PER_SIZE = 0.4e-6, 0.015
"""Seconds of a core that a rule takes for a task, and that hindsight takes for the work of a DMH record."""

IN_TRAFFIC = 40.0
"""How many times as long a task takes where vehicles meet: 20 to 80 by `benchmarks/traffic.py`."""

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

INTERVAL = "95 % interval"

TOLD = ("makespan", "tardiness", "late", "waiting", "worst")
"""Measures of which a verdict's sentences always speak."""


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


class Fold(NamedTuple):
    """A policy that was trained on all training records but some, which judge it."""

    policy: Policy | IndexPolicy
    unseen: Sequence[Instance]


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
    def headline(self) -> str:
        """What to use, by how much, and what to be careful about: `headline.write_headline`."""
        from acerl_np.evaluation.headline import write_headline

        return write_headline(self)

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
        """Return the verdict: a sentence by the objective, and one for each measure that it leaves open.

        Under the paper's goal the latter speak of what has changed alone.
        """
        words, rest = self._compare()
        return " ".join([f"On {self.place()}: {words}.", *rest])

    def _compare(self) -> tuple[str, list[str]]:
        difference, name, goal = self.policy.difference, self.best_rule, self.goal
        for row, who in ((self.policy, "the policy"), (self.rule, name)):
            if missed := row.trials.unfinished:
                return f"{who} did not finish {missed} of {row.trials.makespan.size} episodes", []
        assert difference is not None
        inside, rule_inside = self.policy.within_limit, self.rule.within_limit
        gains = inside and not rule_inside
        limit = "within the limit" if inside else "over the limit"
        # A policy over the limit is never called better, nor one called worse that alone keeps it.
        word = {
            -1: "better" if inside else "lower",
            0: "no lower" if gains else "no better",
            1: "higher" if gains else "worse",
        }
        sign, unit = difference.sign, goal.unit
        if goal.objective in SHOWN:
            unit = SHOWN[goal.objective][1]
        if goal.objective == "makespan":
            difference, unit = Difference(*difference[2:4], *difference[2:]), "%"
        shown = show_interval(difference, unit)
        if sign is None:
            where = f", {limit}" if goal.has_limit else ""
            told = f"{goal.objective} {shown} beside {name}{where}"
            return f"too few records to tell ({told})", []
        words = f"{word[sign]} than {name} in {goal.objective} {'by ' if sign else ''}{shown}"
        if difference.error == difference.amount == 0.0:
            words = f"the same as {name} in {goal.objective} on every record"
        contrast = False
        if goal.has_limit and not inside and not rule_inside:
            words += f", both {limit}"
        elif goal.has_limit:
            contrast = (sign < 0) != inside and inside != rule_inside
            alone = f", as {name} is not" if gains else ""
            words += f"{', but' if contrast else ' and'} {limit}{alone}"
        changes = {
            measure: x
            for measure, x in self.policy.changes.items()
            if measure not in ("value", goal.objective) and (measure in TOLD or x.sign)
        }
        # What goes against the first words belongs into their sentence.
        against = [m for m, x in changes.items() if x.sign and x.sign != sign]
        if against:
            joint = ", but " if any(changes[m].sign != 1 or sign for m in against) else ", and "
            joint = "; and " if contrast else joint
            words += joint + ", ".join(_tell(m, changes[m]) for m in against)
        rest = [m for m, x in changes.items() if m not in against and (x.sign or goal != PAPER)]
        return words, [f"{_tell(m, changes[m]).capitalize()}." for m in rest]


def _tell(measure: str, change: Difference) -> str:
    """Return what happened to a measure, in words."""
    name, unit, _ = SHOWN[measure]
    shown = show_interval(change, unit)
    if not change.sign:
        return f"{name} the same" if shown == "0" else f"{name}: no clear change {shown}"
    amount, interval = shown.split(" (")
    return f"{name} {amount} {'less' if change.sign < 0 else 'more'} ({interval}"


class Group(NamedTuple):
    """A policy, the training records that it has seen, and the records that judge it."""

    policy: AnyPolicy
    seen: Sequence[Instance]
    judging: Sequence[Instance]


class Patience:
    """The seconds of a core that a verdict may still take; `report` is told what begins, and its estimate."""

    def __init__(self, seconds: float, report: Callable[[str, float], None] | None) -> None:
        self.seconds, self.report = seconds, report

    def begin(self, part: str, seconds: float, command: str = "") -> None:
        """Count what begins; raise a `PolicyError` with the command if that takes too long."""
        if command and seconds > self.seconds:
            raise PolicyError(f"{show_seconds(seconds)} {command}")
        self.seconds -= seconds
        if self.report is not None:
            self.report(part, seconds)


def judge(
    policy: AnyPolicy,
    training: Instance | Sequence[Instance],
    unseen: Instance | Sequence[Instance] = (),
    playing: Playing | None = None,
    *,
    folds: Sequence[Fold] = (),
    general: bool = False,
    patience: float = PATIENCE,
    report: Callable[[str, float], None] | None = None,
) -> Verdict:
    """Judge a policy on records that it has not seen, beside what the training records suggest.

    The best rule is chosen on the training records; the unseen ones only judge. If there are none, noised
    copies of the training records do (`hold_out.make_noised`); or, with `folds`, each training record judges
    the policy of the fold that has not seen it, beside the best rule on that fold's training records.

    On shifts the rule is a baseline, `nearest` and `general` have rows (with `general` also elsewhere), and
    there are bad days. What `patience` s of a core are not enough for is left out, by an estimate, and a note
    says so. `report` is told what begins and its estimate, s.

    Raises
    ------
    InputError
        If there is no training record, one of them is among the unseen, or a record of the folds is none of
        them.
    PolicyError
        If the policy does not fit the records.

    Examples
    --------
    >>> import acerl_np
    >>> from acerl_np.evaluation.trials import Playing
    >>> from acerl_np.evaluation.verdict import judge
    >>> policy = acerl_np.IndexPolicy.of_weights(approach=-1.0, loaded=-1.0)
    >>> records = acerl_np.load_suite("dmh-train")
    >>> judge(policy, records[:6], records[6:], Playing(trials=2)).n_records
    2
    """
    playing = playing or Playing()
    kind, known, groups = _find_groups(policy, training, unseen, folds, playing.seed)
    judges = [record for group in groups for record in group.judging]
    budget, shifts = Patience(patience, report), are_shifts(known)
    each = SECONDS_PER_TASK * _find_slowness(judges) * playing.trials
    each *= float(np.mean([item.n_tasks for item in judges]))
    budget.begin("rules and policy", (len(RULES_TO_BEAT) * len(known) + 4 * len(judges)) * each)
    best, rule = _choose_rules(play_rules(known, playing), known, groups)

    def make_row(label: str, players: Sequence[Any], other: Trials | None) -> VerdictRow:
        pairs = [(player, group.judging) for player, group in zip(players, groups, strict=True)]
        return _play_row(label, pairs, playing, other, tells=shifts)

    rule_row = make_row(rule, best, None)
    other, started = rule_row.trials, time.process_time()
    rows = [make_row("policy", [group.policy for group in groups], other), rule_row]
    own_seconds = time.process_time() - started
    if shifts and rule != NEAREST:
        rows.append(make_row(NEAREST, [NEAREST] * len(groups), other))
    if shifts or general:
        everywhere = make_general(find_set(known, playing.goal))
        rows.append(make_row(GENERAL, [everywhere] * len(groups), other))
    notes, bad_days = list[str](), tuple[BadDay, ...]()
    if shifts:
        try:
            seconds = 8.0 * max(own_seconds, len(judges) * each) / playing.trials
            seconds *= math.ceil(BAD_DAYS / len(judges))
            budget.begin("bad days", seconds, "(acerl-np whatif)")
            days = [(group.policy, group.judging) for group in groups]
            bad_days = tuple(_play_bad_days(days, playing))
        except PolicyError as error:
            notes.append(f"bad days left out: {error}")
    margin, note = _find_margin(rows, judges, playing, budget)
    notes += [note] if note else []
    told = len(judges), playing.goal, tuple(notes), margin, len(folds), bad_days
    return Verdict(tuple(rows), rule, kind, *told)


def _find_groups(
    policy: AnyPolicy,
    training: Instance | Sequence[Instance],
    unseen: Instance | Sequence[Instance],
    folds: Sequence[Fold],
    seed: Whole,
) -> tuple[Kind, list[Instance], list[Group]]:
    """Return what judges, all training records, and who is judged by which records."""
    known, judges = list_instances(training), list_instances(unseen)
    if not known:
        raise InputError("training: no records; expected at least one")
    hashes = {instance.content_hash for instance in known}
    twin = next((item for item in judges if item.content_hash in hashes), None)
    if twin is not None:
        raise InputError(f"unseen: {twin.name} is among the training records; expected others")
    if policy.commitment is not None:  # the others play as the policy does
        late = policy.commitment, policy.max_changes
        known, judges = commit_instances(known, *late), commit_instances(judges, *late)
        folds = [Fold(fold.policy, commit_instances(fold.unseen, *late)) for fold in folds]
    if judges:
        return "unseen", known, [Group(policy, known, judges)]
    if folds:
        return "folds", known, [Group(x.policy, *_part(known, x.unseen)) for x in folds]
    return "noised", known, [Group(policy, known, make_noised(known, seed=seed))]


Pairs = Sequence[tuple[Any, Sequence[Instance]]]
"""Players, and the records that each plays."""


def _play_row(
    label: str, pairs: Pairs, playing: Playing, other: Trials | None, *, tells: bool = True
) -> VerdictRow:
    """Return the row of a policy, or of those that stand for it; where it `tells`, with its lateness."""
    trials = join_trials([play_policy(player, some, playing) for player, some in pairs])
    late = [x for player, some in pairs if tells for x in find_lateness(player, some, playing)]
    return VerdictRow.of(label, trials, other, tuple(late))


def _play_bad_days(pairs: Pairs, playing: Playing) -> Iterator[BadDay]:
    """Play days with a vehicle fewer, and with more demand, where that can be served.

    They are the records that judge, and as many drawn ones as `BAD_DAYS` needs: of each half of what twice
    its demand would be.
    """
    playing = replace(playing, trials=1)
    layout, n = pairs[0][1][0].layout, sum(len(some) for _, some in pairs)

    def draw(some: Sequence[Instance], times: int) -> list[Instance]:
        days = list(some)
        for k in range(1, times):
            for record in some:
                days.append(draw_shift(draw_shift(record, 2.0, seed=k), 0.5, seed=k))
        return days

    drawn = [(base, draw(some, math.ceil(BAD_DAYS / n))) for base, some in pairs]
    for label, knobs in (
        ("one vehicle fewer", {"vehicles": len(layout.vehicles) - 1}),
        (f"demand x {BAD_DEMAND:g}", {"demand": BAD_DEMAND}),
    ):
        setting = {name: knob.find(layout) for name, knob in KNOBS.items()} | knobs
        try:
            days = [(base, make_shifts(some, setting, playing.seed)) for base, some in drawn]
            every = [day for _, some in days for day in some]
            near = play_policy(NEAREST, every, playing)
            general = make_general(find_set(every, playing.goal))
            rows = (
                _play_row("policy", days, playing, near, tells=False),
                VerdictRow.of(NEAREST, near),
                _play_row(GENERAL, [(general, every)], playing, near, tells=False),
            )
        except InputError:  # nobody serves it, or not this policy
            continue
        last = np.array([day.arrival.max() for day in every])
        after = tuple(float((row.trials.mean("makespan") - last).mean()) for row in rows)
        yield BadDay(label, rows, after)


def _choose_rules(
    rules: Mapping[str, Trials], known: Sequence[Instance], groups: Sequence[Group]
) -> tuple[list[str], str]:
    """Return each group's best rule, on its own training records, and what all of them are called."""
    row_of, best = {id(record): k for k, record in enumerate(known)}, []
    for group in groups:
        rows = [row_of[id(record)] for record in group.seen]
        best.append(choose_rule({name: trials.select(rows) for name, trials in rules.items()}))
    return best, " or ".join(sorted(set(best), key=lambda name: (-best.count(name), name)))


def _part(
    known: Sequence[Instance], unseen: Sequence[Instance]
) -> tuple[list[Instance], list[Instance]]:
    """Return the training records of a fold, and those that judge it."""
    own, hashes = list(unseen), {item.content_hash for item in unseen}
    rest = [item for item in known if item.content_hash not in hashes]
    strange = hashes - {item.content_hash for item in known}
    if strange or not own or not rest:
        raise InputError("folds: expected some of the training records in each, not all of them")
    return rest, own


def _find_margin(
    rows: Sequence[VerdictRow], records: Sequence[Instance], playing: Playing, budget: Patience
) -> tuple[Margin | None, str]:
    """Return how far the best rule, the second row, is from hindsight, None if farther than little.

    Or None and what was not sought, and how to seek it.
    """
    goal, rule, played = playing.goal, rows[1], rows[1].trials
    least = min((row.mean("value") for row in rows if row.within_limit), default=math.inf)
    if goal.own or rule.mean("value") - least > find_little(goal, least) or played.unfinished:
        return None, ""
    some = np.linspace(0, len(records) - 1, min(MARGIN_RECORDS, len(records))).astype(int)
    margin = measure_margin(rule.label, played, records)
    if margin.is_proven:
        return margin, ""
    chosen = [records[k] for k in some]
    floors = [item.layout for item in chosen]
    if any(x.has_random_breakdowns or x.commitment == "pickup" for x in floors):
        return None, ""
    command = f"for {len(chosen)} of the records (acerl-np policy bound --effort {MARGIN_EFFORT})"
    try:
        seconds = SECONDS_PER_SIZE * _find_slowness(chosen)
        budget.begin("hindsight", seconds * sum(map(measure_size, chosen)), command)
    except PolicyError as error:
        return None, f"hindsight left out: {error}"
    how: Any = {"seed": playing.seed, "threads": playing.threads}
    found = find_references(chosen, goal, effort=MARGIN_EFFORT, **how)
    known = [item for item in found if item is not None]
    if len(known) < len(found):
        return None, ""
    return measure_margin(rule.label, played.select(some), chosen, known), ""


def _find_slowness(instances: Sequence[Instance]) -> float:
    """Return how many times as long playing takes as where nobody meets."""
    meets = any(instance.layout.traffic is not None for instance in instances)
    return IN_TRAFFIC if meets else 1.0
