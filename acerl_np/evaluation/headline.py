"""What a comparison comes to, in a sentence for who has to decide."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from acerl_np.evaluation.metrics import Difference, compare_paired
from acerl_np.evaluation.verdict import SHOWN, Verdict, show_time
from acerl_np.evaluation.whatif import NEAREST
from acerl_np.problem.goal import Goal, read_objective

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Trials

CLAIMS = {
    "late": ("{} % of tasks late", "{} %"),
    "tardiness": ("mean tardiness {} s", "{} s"),
    "waiting": ("mean waiting {} s", "{} s"),
    "empty": ("{} % of the metres driven empty", "{} %"),
    "makespan": ("makespan {} s", "{} s"),
    "worst": ("the latest task {} s late", "{} s"),
}
"""How each measure is told of the policy and of the other."""

LONGER, LEAST_LONGER = 1.5, 60.0
"""How many times as long, and how many s longer, a longest delay is than that of the rule if it is told."""


def claim(goal: Goal, own: Trials, other: Trials, name: str, change: Difference) -> str:
    """Return the means of two policies by the measure of the objective that has changed as the whole has."""
    measures = () if goal.own else read_objective(goal.objective)
    for measure in (x for x in CLAIMS if x in measures):
        first, second = CLAIMS[measure]
        values = [trials.mean(measure) * SHOWN[measure][2] for trials in (own, other)]
        if len(measures) == 1 or change.sign in (0, None, compare_paired(*values).sign):
            shown = [f"{x.mean():.1f}" for x in values]
            return f"{first.format(shown[0])} instead of {second.format(shown[1])} ({name})"
    shown = [goal.show(float(trials.mean("value").mean())) for trials in (own, other)]
    return f"{goal.objective} {shown[0]} instead of {shown[1]} ({name})"


def write_headline(verdict: Verdict) -> str:
    """Return a verdict in words: what to use, by how much, what to be careful about, and bad days."""
    own, rule, goal, name = verdict.policy, verdict.rule, verdict.goal, verdict.best_rule
    for row, who in ((own, "the policy"), (rule, name)):
        if missed := row.trials.unfinished:
            return (
                f"No verdict: {who} did not finish {missed} of {row.trials.makespan.size} episodes."
            )
    change = own.difference
    assert change is not None
    over = "" if own.within_limit else f"Over the limit, {goal.cost} below {goal.limit}: "
    words = {-1: "Use the policy: ", 0: f"No clear difference to {name}: ", 1: f"Use {name}: "}
    if verdict.kind == "noised":
        words[-1] = "Not tested on unseen records: "
    first = over or words.get(change.sign, "Too few records to tell: ")  # type: ignore[arg-type]
    told = claim(goal, own.trials, rule.trials, name, change)
    line = " ".join([f"{first}{told}, {_show_place(verdict)}.", *_warn(verdict)])
    return "\n".join([line, *(day.sentence(goal) for day in verdict.bad_days)])


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
    if told := _tell_longer(float(own.worst.max()), float(best.worst.max()), other):
        lines.append(f"Careful: {told}.")
    return " ".join(lines)


def _show_place(verdict: Verdict) -> str:
    noun = "shift" if verdict.policy.lateness else "record"
    if verdict.kind == "noised":
        return f"on perturbed copies of the training {noun}s"
    some = f"on {verdict.n_records} {noun}{'s' * (verdict.n_records > 1)} not seen in training"
    return f"{some} ({verdict.n_folds} folds)" if verdict.n_folds > 1 else some


def _tell_longer(latest: float, usual: float, name: str) -> str:
    """Say that single tasks are far later, s, than with the rule of a name; nothing if they are not."""
    if not latest > max(LONGER * usual, usual + LEAST_LONGER):
        return ""
    return f"single tasks are up to {show_time(latest)} late, with {name} {show_time(usual)}"


def _warn(verdict: Verdict) -> Iterator[str]:
    """Give the worst of the days on which the policy leaves a task far later than `nearest`, if any."""
    near = next((row for row in verdict.rows if NEAREST in row.label.split(" or ")), None)
    days = [("", verdict.policy, near)] if near is not None else []
    days += [(f" with {day.label}", day.rows[0], day.rows[1]) for day in verdict.bad_days]
    worst = -math.inf, ""
    for label, own, other in days:
        latest = own.find_worst()
        if told := _tell_longer(latest, other.find_worst(), NEAREST):
            worst = max(worst, (latest, f"Careful:{label} {told}."))
    if worst[1]:
        yield worst[1]
