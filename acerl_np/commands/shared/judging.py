"""The verdict on a training: folds are trained, the trained policy is judged, and what to do is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from acerl_np.commands.shared.figures import list_verdict, render_means, render_verdict
from acerl_np.commands.shared.judges import Judges
from acerl_np.commands.shared.reporting import report_verdict
from acerl_np.evaluation import hold_out
from acerl_np.evaluation.judge import PATIENCE as SECONDS
from acerl_np.evaluation.judge import Fold, judge
from acerl_np.evaluation.metrics import LEAST_JUDGES, compare_paired
from acerl_np.evaluation.trials import Playing
from acerl_np.evaluation.verdict import Verdict, show_interval, show_seconds
from acerl_np.policies.files import AnyPolicy
from acerl_np.policies.general import find_set, make_general
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import InputError, make_printable
from acerl_np.support.log import LOG
from acerl_np.support.team import Team
from acerl_np.training.acerl import ACERL

FOLD_SECONDS = 120.0
"""Longest that the trainings of folds may take unless they are asked for; else there are fewer, then one."""

PATIENCE = 10.0
"""Times as long as the training, or the usual time, a verdict may take; what is beyond is left out."""


def train_folds(
    trainer: ACERL, judges: Judges, options: dict[str, Any], team: Team | None
) -> tuple[list[Fold], list[str]]:
    """Train a policy for each fold as the trained one was, on all records but those of the fold.

    Where that takes long and was not asked for, for three folds; or one training alone is judged, by half of
    the records; a line that is returned says so.
    """
    n = most = judges.folds or 0
    if not n:
        return [], []
    told = []
    each = trainer.history[-1].seconds if trainer.history else 0.0
    if options["folds"] is None and n * each > FOLD_SECONDS:
        n = min(n, hold_out.FEWER_FOLDS)
        n, most = (n, n) if n * each <= FOLD_SECONDS else (2, 1)
        all_of_them = (
            f"{judges.folds} trainings would take {show_seconds(each * (judges.folds or 0))}"
        )
        told = [f"{most} of {n} folds: {all_of_them} (acerl-np train --resume RUN.npz --folds "]
        told[0] += f"{judges.folds})"
    folds, how = [], {"seed": trainer.seed, "threads": options["threads"], "executor": team}
    for k, unseen in enumerate(hold_out.part_folds(trainer.instances, n, seed=trainer.seed)[:most]):
        left_out = {item.content_hash for item in unseen}
        rest = [item for item in trainer.instances if item.content_hash not in left_out]
        fold = ACERL(rest, trainer.config, **how)
        fold.run()
        folds.append(Fold(fold.policy, unseen))
        LOG.info("fold %d of %d is trained", k + 1, most)
    return folds, told


def advise(verdict: Verdict, n_training: int) -> str:
    """Return what to type where too few records judge to tell."""
    n = n_training + (verdict.n_records if verdict.kind == "unseen" else 0)
    how = "gather more records (acerl-np records make draws some)"
    if n >= 2 * LEAST_JUDGES:
        how = f"train with --hold-out {max(0.5, LEAST_JUDGES / n):g}"
    elif n >= LEAST_JUDGES:
        how = f"train with --folds {LEAST_JUDGES}"
    return f"To tell, at least {LEAST_JUDGES} records have to judge: {how}."


def describe_dates(records: Sequence[Instance]) -> str:
    """Return from when to when records are, or nothing where they have no dates."""
    days = sorted(
        item.epoch.date() for item in records if item.epoch is not None and item.epoch.year > 1
    )
    return f", {days[0]} to {days[-1]}" if days else ""


def begins_general(trainer: Any) -> bool:
    """Whether a training began with the weights of `general`."""
    return getattr(trainer.config, "start", "") == "general"


def choose_better(trainer: ACERL, verdict: Verdict) -> tuple[AnyPolicy, str]:
    """Return `general` as the policy unless the training is clearly better, and why."""
    known = next(row for row in verdict.rows if row.label == "general")
    own = compare_paired(verdict.policy.trials.mean("value"), known.trials.mean("value"))
    shown = f"in {verdict.goal.objective} {'by ' if own.sign else ''}{show_interval(own)}"
    if verdict.kind == "noised":
        why = f"fewer than {LEAST_JUDGES} different records have trained"
    elif own.sign == -1:
        return trainer.policy, f"Kept: the training, better than general {shown}."
    else:
        why = f"the training is {'worse' if own.sign else 'not clearly better'} {shown}"
    return make_general(find_set(trainer.instances, verdict.goal)), f"Kept: general, as {why}"


class Judged(NamedTuple):
    """A verdict, what is to be known beside it, and the policy that is kept if it is not the trained one."""

    verdict: Verdict
    notes: list[str]
    kept: AnyPolicy | None = None


def find_verdict(
    trainer: ACERL, judges: Judges, playing: Playing, options: dict[str, Any], team: Team | None
) -> Judged:
    """Return the verdict on a trained policy."""

    def report(part: str, seconds: float) -> None:
        if seconds >= 2.0:
            LOG.info("verdict: %s, %s", part, show_seconds(seconds))

    folds, notes = train_folds(trainer, judges, options, team)
    seconds = trainer.history[-1].seconds if trainer.history else 0.0
    in_time = 0 if options["folds"] else len(folds)
    patience = max(SECONDS, PATIENCE * seconds) - in_time * seconds
    how: dict[str, Any] = {"folds": folds, "patience": patience, "report": report}
    how["general"] = begins_general(trainer)
    verdict = judge(trainer.policy, trainer.instances, judges.held_back, playing, **how)
    notes += verdict.notes
    if verdict.margin is not None and verdict.margin.is_little:
        notes.append(verdict.margin.sentence())
    kept, why = choose_better(trainer, verdict) if begins_general(trainer) else (None, "")
    notes += [why] if why else []
    own, missed = verdict.policy.difference, verdict.policy.trials.unfinished
    if own is not None and own.sign is None and not missed:
        notes.append(advise(verdict, len(trainer.instances)))
    return Judged(verdict, notes, kept)


def show_verdict(
    trainer: ACERL,
    judges: Judges,
    playing: Playing,
    options: dict[str, Any],
    folder: Path,
    team: Team | None,
) -> list[dict[str, object]]:
    """Print the verdict on a trained policy, and keep `general` if that is better; return its figures."""
    try:
        verdict, notes, kept = find_verdict(trainer, judges, playing, options, team)
    except InputError as error:
        # The training is done and saved; floors of several sizes may not take one policy.
        print(f"no verdict: {error}", file=sys.stderr)
        return []
    print(f"{verdict.headline}\n\n{render_means(verdict, more=False)}")
    if kept is not None and kept is not trainer.policy:
        kept.save(folder / "policy.npz")
        notes.append(f"The training is in {folder / 'run.npz'}.")
    notes = [line.replace("RUN.npz", str(folder / "run.npz")) for line in notes]
    for line in notes:
        print(line)
    if options["details"]:
        judged = ", ".join(make_printable(item.name) for item in judges.held_back)
        held = f" (held out: {judged})" if judged else ""
        dates = describe_dates(judges.held_back or trainer.instances)
        print(f"Verdict on {verdict.place()}{dates}{held}", *render_verdict(verdict), sep="\n")
        print(f"{verdict.sentence()}\n")
    if options["report"]:
        records = judges.held_back or tuple(trainer.instances)
        report_verdict(options["report"], verdict, records, notes)
    return list_verdict(verdict)
