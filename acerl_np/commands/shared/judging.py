"""What judges a training: records that are held back, folds, or noised copies; kept beside its checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from acerl_np.commands.shared.inputs import is_bundled
from acerl_np.commands.shared.tables import list_verdict, render_verdict
from acerl_np.pictures.runs import read_config
from acerl_np.problem.bundled import bundled_instances
from acerl_np.problem.instance import Instance, check_names
from acerl_np.problem.packing import UNUSABLE, pack_instances, unpack_instances
from acerl_np.support.errors import InputError, describe, make_printable
from acerl_np.support.files import read_arrays, take_kind, write_arrays
from acerl_np.support.numbers import is_real

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Playing
    from acerl_np.evaluation.verdict import Fold, Verdict
    from acerl_np.problem.goal import Goal
    from acerl_np.support.team import Team
    from acerl_np.training.acerl import ACERL

FILE = "held-back.npz"
FORMAT = 1
PLAYED = ("trials", "seed", "horizon", "threads")

JudgedOn = Literal["held-back records", "folds", "noised copies", "nothing"]

FOLD_SECONDS = 120.0
"""Longest that the trainings of folds may take unless they are asked for; else there are fewer, then one."""

PATIENCE = 10.0
"""Times as long as the training, or the usual time, a verdict may take; what is beyond is left out."""


class Judges(NamedTuple):
    """What judges a training at its end; `share` is that of the records that were held back.

    With folds all records are trained on, and so many further trainings are judged in the policy's place,
    each by the records that it leaves out.
    """

    on: JudgedOn
    held_back: tuple[Instance, ...] = ()
    share: float | None = None
    folds: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what config.json tells of them."""
        return {
            "judged_on": self.on,
            "hold_out": self.share,
            "folds": self.folds,
            "held_back": {item.name: item.content_hash for item in self.held_back},
        }


NOTHING = Judges("nothing")


def part_records(
    options: dict[str, Any], instances: Sequence[Instance], goal: Goal | None = None
) -> tuple[list[Instance], Judges]:
    """Return the records to train on, and what judges.

    Own records judge in folds, more than thirty by those that are held back, fewer than five by noised
    copies, unless --hold-out or --folds say otherwise. Bundled ones do not.
    """
    from acerl_np.evaluation import hold_out
    from acerl_np.evaluation.metrics import LEAST_JUDGES
    from acerl_np.evaluation.trials import Playing, play_policy
    from acerl_np.problem.goal import PAPER

    check_names(instances)
    share, folds = options["hold_out"], options["folds"]
    if folds is not None and share is not None:
        raise InputError("--folds: given besides --hold-out; expected one of the two")
    own = not all(map(is_bundled, options["tasks"]))
    n, different = len(instances), len({item.content_hash for item in instances})
    if share is None and folds is None and own and different >= LEAST_JUDGES:
        if n > hold_out.MOST_IN_FOLDS:
            playing = Playing(1, options["seed"], goal=goal or PAPER)
            near = play_policy("nearest", instances, playing)
            share = hold_out.choose_share(near.mean_value())
        elif options["seeds"] is not None:
            share = hold_out.SHARE
        else:
            folds = hold_out.FOLDS
    if folds is not None:
        folds = len(hold_out.part_folds(instances, folds, seed=options["seed"]))
        return list(instances), Judges("folds", folds=folds)
    if share is None or share == "none":
        return list(instances), Judges("noised copies" if own else "nothing")
    training, held_back = hold_out.hold_out(instances, share, seed=options["seed"])
    return training, Judges("held-back records", tuple(held_back), float(share))


def write_judges(folder: Path, judges: Judges) -> None:
    """Write the records that are held back beside the checkpoint; those of an earlier run are removed."""
    if judges.held_back:
        packed = pack_instances(judges.held_back)
        write_arrays(folder / FILE, {"kind": "records", "format": FORMAT, "records": packed})
    else:
        (folder / FILE).unlink(missing_ok=True)


def read_judges(folder: Path, training: Sequence[Instance]) -> Judges:
    """Return what judges a training that goes on: as recorded in the folder of its checkpoint."""
    facts = read_config(folder)
    known = {item.content_hash for item in training}
    held_back = read_held_back(folder / FILE) if (folder / FILE).exists() else []
    named = facts.get("held_back")
    if facts and held_back and {x.name: x.content_hash for x in held_back} != named:
        raise InputError(f"{folder / FILE}: holds other records than config.json beside it names")
    seen = next((item.name for item in held_back if item.content_hash in known), None)
    if seen is not None:
        raise InputError(f"{folder / FILE}: '{describe(seen)}' is a training record")
    if held_back:
        share = facts.get("hold_out")
        return Judges("held-back records", tuple(held_back), share if is_real(share) else None)
    if isinstance(named, dict) and named:
        print(
            f"{folder / FILE}: not there, but config.json names held-back records; noised copies of the "
            "training records judge in their place",
            file=sys.stderr,
        )
        return Judges("noised copies")
    folds = facts.get("folds")
    if isinstance(folds, int) and folds > 1:
        return Judges("folds", folds=folds)
    bundled = all(item.name in bundled_instances() for item in training)
    judged = facts.get("judged_on") == "noised copies"
    return Judges("nothing" if bundled and not judged else "noised copies")


def read_held_back(path: Path) -> list[Instance]:
    """Return the records that `write_judges` wrote."""
    arrays = read_arrays(path, InputError)
    take_kind(path, arrays, "records", FORMAT, InputError, noun="held-back records")
    try:
        return unpack_instances(arrays["records"])
    except UNUSABLE as error:
        reason = make_printable(str(error)[:400])
        raise InputError(f"{path}: holds no usable records: {reason}") from error


def check_judges(path: str, judges: Judges, options: dict[str, Any]) -> Judges:
    """Refuse a --hold-out that differs from the one recorded beside a checkpoint; --folds may come later."""
    asked = options["hold_out"]
    found = judges.share if judges.held_back else "none"
    if asked is not None:
        check_same(path, {"hold_out": asked}, {"hold_out": found})
    folds = options["folds"]
    if folds is None:
        return judges
    if judges.held_back:
        said = f"trained with held-back records, which judge; read --folds {folds}"
        raise InputError(f"{path}: {said}")
    return Judges("folds", folds=folds)


def check_same(path: str, asked: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Refuse options that differ from those of a checkpoint."""
    for name, value in asked.items():
        if value != stored[name]:
            raise InputError(
                f"{path}: trained with {name} {stored[name]}; read {value}, expected the same (leave the "
                "option out, or train anew)"
            )


def train_folds(
    trainer: ACERL, judges: Judges, options: dict[str, Any], folder: Path, team: Team | None
) -> list[Fold]:
    """Train a policy for each fold as the trained one was, on all records but those of the fold.

    Where that takes long and was not asked for, for three folds; or one training alone is judged, by half of
    the records; a line says so.
    """
    from acerl_np.evaluation.hold_out import FEWER_FOLDS, part_folds
    from acerl_np.evaluation.verdict import Fold, show_seconds
    from acerl_np.training.acerl import ACERL

    n = most = judges.folds or 0
    each = trainer.history[-1].seconds if trainer.history else 0.0
    if options["folds"] is None and n * each > FOLD_SECONDS:
        n = min(n, FEWER_FOLDS)
        n, most = (n, n) if n * each <= FOLD_SECONDS else (2, 1)
        all_of_them = (
            f"{judges.folds} trainings would take {show_seconds(each * (judges.folds or 0))}"
        )
        command = f"acerl-np train --resume {folder / 'run.npz'} --folds {judges.folds}"
        print(f"{most} of {n} folds judge: {all_of_them} ({command})")
    folds, how = [], {"seed": trainer.seed, "threads": options["threads"], "executor": team}
    for k, unseen in enumerate(part_folds(trainer.instances, n, seed=trainer.seed)[:most]):
        left_out = {item.content_hash for item in unseen}
        rest = [item for item in trainer.instances if item.content_hash not in left_out]
        fold = ACERL(rest, trainer.config, **how)
        fold.run()
        folds.append(Fold(fold.policy, unseen))
        if not options["quiet"]:
            print(f"fold {k + 1} of {most} is trained", file=sys.stderr)
    return folds


def advise(verdict: Verdict, n_training: int) -> str:
    """Return what to type where too few records judge to tell."""
    from acerl_np.evaluation.metrics import LEAST_JUDGES

    n = n_training + (verdict.n_records if verdict.kind == "unseen" else 0)
    how = "gather more records (acerl-np records generate makes some)"
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


def keep_better(trainer: ACERL, verdict: Verdict, folder: Path) -> str:
    """Keep `general` as the policy unless the training is better by two errors; say which is kept."""
    from acerl_np.evaluation.metrics import LEAST_JUDGES, compare_paired
    from acerl_np.evaluation.verdict import show_difference
    from acerl_np.policies.general import find_set, make_general

    known = next(row for row in verdict.rows if row.label == "general")
    own = compare_paired(verdict.policy.trials.mean_value(), known.trials.mean_value())
    shown = f"{verdict.goal.objective} {show_difference(own.amount, own.error, '+')}"
    if verdict.kind == "noised":
        why = f"fewer than {LEAST_JUDGES} different records have trained"
    elif own.sign == -1:
        return f"Kept: the training, better than general by two errors ({shown})."
    else:
        why = f"the training is not better by two errors ({shown})"
    make_general(find_set(trainer.instances, verdict.goal)).save(folder / "policy.npz")
    return f"Kept: general, as {why}; the training is in {folder / 'run.npz'}."


def show_verdict(
    trainer: ACERL,
    judges: Judges,
    playing: Playing,
    options: dict[str, Any],
    folder: Path,
    team: Team | None,
) -> list[dict[str, object]]:
    """Print the verdict on a trained policy; return its figures."""
    from acerl_np.evaluation import verdict as verdicts

    def report(part: str, seconds: float) -> None:
        if seconds >= 2.0 and not options["quiet"]:
            print(f"verdict: {part}, {verdicts.show_seconds(seconds)}", file=sys.stderr, flush=True)

    try:
        how = {name: getattr(playing, name) for name in PLAYED}
        how["folds"] = train_folds(trainer, judges, options, folder, team) if judges.folds else ()
        records = trainer.instances, judges.held_back
        seconds = trainer.history[-1].seconds if trainer.history else 0.0
        in_time = 0 if options["folds"] else len(how["folds"])
        patience = max(verdicts.PATIENCE, PATIENCE * seconds) - in_time * seconds
        how |= {"patience": patience, "report": report, "general": begins_general(trainer)}
        verdict = verdicts.judge(trainer.policy, *records, objective=playing.goal, **how)
    except InputError as error:
        # The training is done and saved; floors of several sizes may not take one policy.
        print(f"no verdict: {error}", file=sys.stderr)
        return []
    names = ", ".join(make_printable(item.name) for item in judges.held_back)
    held = f" (held back from training: {names})" if names else ""
    table = "\n".join(render_verdict(verdict, more=options["more"]))
    dates = describe_dates(judges.held_back or trainer.instances)
    print(f"\nVerdict on {verdict.place()}{dates}{held}\n{table}", end="")
    for note in verdict.notes:
        print(note)
    margin = verdict.margin
    little = margin.sentence() if margin is not None and margin.is_little else ""
    told = [keep_better(trainer, verdict, folder)] if begins_general(trainer) else []
    print(*filter(None, (little, verdict.sentence(), *told)), sep="\n")
    if options["report"]:
        from acerl_np.commands.shared.reporting import report_verdict

        judged = judges.held_back or trainer.instances
        report_verdict(options["report"], verdict, judged, filter(None, (little, *told)))
    own, missed = verdict.policy.difference, verdict.policy.trials.unfinished
    if own is not None and own.sign is None and not missed:
        print(advise(verdict, len(trainer.instances)))
    print()
    return list_verdict(verdict)
