"""A verdict on a policy: beside the best rule and the static plan that its training records suggest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evaluation.hindsight import find_references, measure_size
from acerl_np.evaluation.hold_out import make_noised
from acerl_np.evaluation.margin import LITTLE_MAKESPAN, Margin, measure_margin, play_best_rule
from acerl_np.evaluation.trials import METRICS, Playing, Trials, play_policy
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.lookahead import Lookahead
from acerl_np.policies.network import Policy
from acerl_np.policies.static import StaticPlan, fit_static
from acerl_np.problem.goal import Goal, find_goal
from acerl_np.problem.instance import Instance, list_instances
from acerl_np.support.errors import InputError, PolicyError
from acerl_np.support.numbers import Whole

FEWEST_RECORDS = 5
"""Records from which a standard error over them is told."""

FUTURES, AHEAD_TRIALS, MAX_AHEAD_DECISIONS = 32, 3, 20_000_000
"""Of a row that looks ahead: futures per decision, most trials of each record, and decisions for three
vehicles that they may take, about half a minute of a core; else it is left out."""

MARGIN_EFFORT, MARGIN_RECORDS, MAX_MARGIN_SIZE = 0.02, 5, 200.0
"""Of the quick searches in hindsight that tell whether there is little to win: effort, most records,
and their most work together in DMH records; 200 take about half a minute of a core."""

Kind = Literal["unseen", "noised"]


class Difference(NamedTuple):
    """A paired difference of makespans over records: mean, its standard error, and in % of the other's mean.

    Negative is shorter; the errors are nan for fewer than `FEWEST_RECORDS`.
    """

    seconds: float
    error: float
    percent: float
    percent_error: float

    @property
    def sign(self) -> int | None:
        """-1 shorter, 1 longer by more than two standard errors, 0 neither; None if that is unknown."""
        if math.isnan(self.error):
            return None
        if abs(self.seconds) <= 2.0 * self.error:
            return 0
        return -1 if self.seconds < 0.0 else 1


def compare_paired(own: ArrayLike, other: ArrayLike) -> Difference:
    """Return how far a policy's mean makespans (n_records,) are from another's; nan if one is."""
    x, y = np.asarray(own, np.float64), np.asarray(other, np.float64)
    difference = x - y
    seconds, scale = float(difference.mean()), 100.0 / float(y.mean())
    error = math.nan
    if len(difference) >= FEWEST_RECORDS:
        error = float(difference.std(ddof=1)) / math.sqrt(len(difference))
    return Difference(seconds, error, seconds * scale, error * scale)


class VerdictRow(NamedTuple):
    """A line of a verdict: figures of `Trials` over the records, nan where one has no finished trial.

    The limit is kept where the mean tardiness is below it. The difference is that of the makespan to the best
    rule's, None for that rule itself; `trials` are those of each record.
    """

    label: str
    makespan: float
    tardiness: float
    late: float
    satisfied: float
    within_limit: bool
    difference: Difference | None
    unfinished: int
    trials: int
    waiting: float = math.nan
    utilisation: float = math.nan
    empty: float = math.nan

    @classmethod
    def of(cls, label: str, trials: Trials, other: Trials | None = None) -> VerdictRow:
        """Return the row of a policy's trials beside those of the best rule."""
        difference = None
        if other is not None:
            difference = compare_paired(trials.mean_makespan(), other.mean_makespan())
        means = {name: float(getattr(trials, f"mean_{name}")().mean()) for name in METRICS}
        return cls(
            label=label,
            **means,
            satisfied=trials.satisfied,
            within_limit=means["tardiness"] < trials.cost_limit,
            difference=difference,
            unfinished=trials.unfinished,
            trials=trials.makespan.shape[1],
        )


class Verdict(NamedTuple):
    """What a policy is worth, on `n_records` records that it has not seen, or noised copies of those it has.

    Attributes
    ----------
    rows : tuple of VerdictRow
        The policy, the best rule on the training records, and what else could be played: the static plan, and
        both with lookahead.
    plan : StaticPlan or None
        Fitted on the training records.
    notes : tuple of str
        What was left out, and why.
    margin : Margin or None
        How far the best rule is from hindsight, by a quick search on some of the records; None where a row
        has shown that there is more to win, or it was not sought.
    """

    rows: tuple[VerdictRow, ...]
    best_rule: str
    kind: Kind
    n_records: int
    cost_limit: float
    plan: StaticPlan | None = None
    notes: tuple[str, ...] = ()
    margin: Margin | None = None

    @property
    def policy(self) -> VerdictRow:
        """The row of the policy itself."""
        return self.rows[0]

    @property
    def rule(self) -> VerdictRow:
        """The row of the best rule."""
        return self.rows[1]

    def place(self) -> str:
        """Return what it was judged on, such as "3 unseen records"."""
        if self.kind == "unseen":
            return f"{self.n_records} unseen record{'s' if self.n_records > 1 else ''}"
        return f"{self.n_records} noised copies of the training records, not unseen ones"

    def sentence(self) -> str:
        """Return the verdict in one sentence."""
        return f"On {self.place()}: {self._compare()}."

    def _compare(self) -> str:
        difference, name = self.policy.difference, self.best_rule
        for row, who in ((self.policy, "the policy"), (self.rule, name)):
            if row.unfinished:
                episodes = self.n_records * row.trials
                return f"{who} did not finish {row.unfinished} of {episodes} episodes"
        assert difference is not None
        inside, rule_inside = self.policy.within_limit, self.rule.within_limit
        gains = inside and not rule_inside
        limit = "within the limit" if inside else "over the limit"
        # A policy over the limit is never called better, nor one called worse that alone keeps it.
        word = {
            -1: "better" if inside else "shorter",
            0: "no shorter" if gains else "no better",
            1: "longer" if gains else "worse",
        }
        sign, amount = difference.sign, f"{difference.percent:z.1f}"
        if sign is None:
            return f"too few records to tell ({amount} % makespan beside {name}, {limit})"
        by = f"± {difference.percent_error:.1f} %"
        words = f"{word[sign]} than {name} "
        words += f"by {abs(difference.percent):.1f} {by}" if sign else f"({amount} {by})"
        if not inside and not rule_inside:
            return f"{words}, both {limit}"
        contrast = (sign < 0) != inside and inside != rule_inside
        rest = f", as {name} is not" if gains else ""
        return f"{words}{', but' if contrast else ' and'} {limit}{rest}"


def judge(
    policy: Policy | IndexPolicy | StaticPlan,
    training: Instance | Sequence[Instance],
    unseen: Instance | Sequence[Instance] = (),
    *,
    trials: int = 30,
    seed: Whole = 0,
    objective: str | Goal = "makespan",
    cost_limit: float | None = None,
    horizon: float | None = None,
    threads: int | None = None,
    futures: int = FUTURES,
) -> Verdict:
    """Judge a policy on records that it has not seen, beside what the training records suggest.

    The best rule is chosen and the static plan fitted on the training records, and lookahead draws its
    futures from them; the unseen ones only judge. If there are none, noised copies of the training records do
    (`hold_out.make_noised`).

    Each record is played `trials` times, with lookahead at most `AHEAD_TRIALS` times, by so many `futures` of
    a decision, 0 for no such rows. The other options are those of `evaluate_policy`.

    Raises
    ------
    InputError
        If there is no training record, one of them is among the unseen, or an option is unusable.
    PolicyError
        If the policy does not fit the records.

    Examples
    --------
    >>> import acerl_np
    >>> from acerl_np.evaluation.verdict import judge
    >>> policy = acerl_np.IndexPolicy.of_weights(approach=-1.0, loaded=-1.0)
    >>> records = acerl_np.load_suite("dmh-train")
    >>> judge(policy, records[:6], records[6:], trials=2, futures=0).n_records
    2
    """
    known, judges = list_instances(training), list_instances(unseen)
    if not known:
        raise InputError("training: no records; expected at least one")
    hashes = {instance.content_hash for instance in known}
    seen = next((item for item in judges if item.content_hash in hashes), None)
    if seen is not None:
        raise InputError(f"unseen: {seen.name} is among the training records; expected others")
    kind: Kind = "unseen" if judges else "noised"
    goal = find_goal(objective, cost_limit)
    playing = Playing(trials, seed, None, goal, horizon, threads)
    judges = judges or make_noised(known, seed=seed)
    rule, _ = play_best_rule(known, playing)
    other = play_policy(rule, judges, playing)
    own = play_policy(policy, judges, playing)
    rows = [VerdictRow.of("policy", own, other), VerdictRow.of(rule, other)]
    notes = []
    plan = None
    try:
        plan = fit_static(known, objective=goal, seed=seed, horizon=horizon, threads=threads)
        rows.append(VerdictRow.of("static plan", play_policy(plan, judges, playing), other))
    except PolicyError as error:
        notes.append(f"static plan left out: {error}")
    bases = [("policy", policy)] if isinstance(policy, Policy | IndexPolicy) else []
    for label, base in [*bases, (rule, rule)] if futures else []:
        label = f"{label}, lookahead {futures}"
        try:
            few = _count_ahead_trials(judges, futures, min(trials, AHEAD_TRIALS))
            ahead = Lookahead(
                base, history=known, futures=futures, seed=seed, cost_limit=goal.cost_limit
            )
            found = play_policy(ahead, judges, replace(playing, trials=few))
            rows.append(VerdictRow.of(label, found, other))
        except PolicyError as error:
            notes.append(f"{label} left out: {error}")
    margin = _find_margin(rows, judges, other, playing)
    once = tuple(dict.fromkeys(notes))
    return Verdict(tuple(rows), rule, kind, len(judges), goal.cost_limit, plan, once, margin)


def _find_margin(
    rows: Sequence[VerdictRow], records: Sequence[Instance], played: Trials, playing: Playing
) -> Margin | None:
    """Return how far the best rule, the second row, is from hindsight, None if farther than little."""
    least = min((row.makespan for row in rows if row.within_limit), default=math.inf)
    if rows[1].makespan > (1.0 + LITTLE_MAKESPAN) * least or played.unfinished:
        return None
    some = np.linspace(0, len(records) - 1, min(MARGIN_RECORDS, len(records))).astype(int)
    chosen = [records[k] for k in some]
    random = any(item.layout.has_random_breakdowns for item in chosen)
    if random or sum(map(measure_size, chosen)) > MAX_MARGIN_SIZE:
        return None
    found = find_references(
        chosen,
        cost_limit=playing.goal.cost_limit,
        effort=MARGIN_EFFORT,
        seed=playing.seed,
        threads=playing.threads,
    )
    known = [item for item in found if item is not None]
    if len(known) < len(found):
        return None
    return measure_margin(rows[1].label, played.select(some), known)


def _count_ahead_trials(records: Sequence[Instance], futures: int, most: int) -> int:
    """Return how many trials of each record with lookahead are affordable; a `PolicyError` if none is."""
    # Each decision plays its candidates, five, to the end of all futures: half of the tasks in the mean. With
    # more than three vehicles a decision takes longer.
    each = sum(
        5 * futures * record.n_tasks**2 // 2 * max(3, len(record.layout.vehicles)) // 3
        for record in records
    )
    affordable = MAX_AHEAD_DECISIONS // max(1, each)
    if affordable == 0:
        raise PolicyError(
            f"about {each:.1g} decisions on {len(records)} records take too long here "
            "(acerl-np evaluate --lookahead)"
        )
    return min(most, affordable)
