"""What a training is judged by: records that are held back, or noised copies; kept beside its checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from acerl_np.commands.inputs import is_bundled
from acerl_np.commands.tables import list_verdict, render_verdict
from acerl_np.support.errors import InputError, describe, make_printable
from acerl_np.support.numbers import is_real

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Playing
    from acerl_np.problem.instance import Instance
    from acerl_np.training.acerl import ACERL

FILE = "held-back.npz"
PLAN_FILE = "static.npz"
FORMAT = 1
PLAYED = ("trials", "seed", "horizon", "threads")

JudgedOn = Literal["held-back records", "noised copies", "nothing"]


class Judges(NamedTuple):
    """What judges a training at its end; `share` is that of the records that were held back."""

    on: JudgedOn
    held_back: tuple[Instance, ...] = ()
    share: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what config.json tells of them."""
        return {
            "judged_on": self.on,
            "hold_out": self.share,
            "held_back": {item.name: item.content_hash for item in self.held_back},
        }


NOTHING = Judges("nothing")


def part_records(
    options: dict[str, Any], instances: Sequence[Instance]
) -> tuple[list[Instance], Judges]:
    """Return the records to train on, and what judges.

    Of four own records or more a quarter is held back unless --hold-out says otherwise; of bundled ones
    none.
    """
    from acerl_np.evaluation.hold_out import LEAST_RECORDS, SHARE, hold_out
    from acerl_np.problem.instance import check_names

    check_names(instances)
    share = options["hold_out"]
    own = not all(map(is_bundled, options["tasks"]))
    if share is None and own and len(instances) >= LEAST_RECORDS:
        share = SHARE if len({item.content_hash for item in instances}) > 1 else None
    if share is None or share == "none":
        return list(instances), Judges("noised copies" if own else "nothing")
    training, held_back = hold_out(instances, share, seed=options["seed"])
    return training, Judges("held-back records", tuple(held_back), float(share))


def write_judges(folder: Path, judges: Judges) -> None:
    """Write the records that are held back beside the checkpoint; those of an earlier run are removed."""
    from acerl_np.problem.packing import pack_instances
    from acerl_np.support.files import write_arrays

    if judges.held_back:
        packed = pack_instances(judges.held_back)
        write_arrays(folder / FILE, {"kind": "records", "format": FORMAT, "records": packed})
    else:
        (folder / FILE).unlink(missing_ok=True)
    (folder / PLAN_FILE).unlink(missing_ok=True)


def read_judges(folder: Path, training: Sequence[Instance]) -> Judges:
    """Return what judges a training that goes on: as recorded in the folder of its checkpoint."""
    from acerl_np.pictures.runs import read_config
    from acerl_np.problem.bundled import bundled_instances

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
    bundled = all(item.name in bundled_instances() for item in training)
    judged = facts.get("judged_on") == "noised copies"
    return Judges("nothing" if bundled and not judged else "noised copies")


def read_held_back(path: Path) -> list[Instance]:
    """Return the records that `write_judges` wrote."""
    from acerl_np.problem.packing import UNUSABLE, unpack_instances
    from acerl_np.support.files import read_arrays, take_kind

    arrays = read_arrays(path, InputError)
    take_kind(path, arrays, "records", FORMAT, InputError, noun="held-back records")
    try:
        return unpack_instances(arrays["records"])
    except UNUSABLE as error:
        reason = make_printable(str(error)[:400])
        raise InputError(f"{path}: holds no usable records: {reason}") from error


def check_judges(path: str, judges: Judges, options: dict[str, Any]) -> None:
    """Refuse a --hold-out that differs from the one recorded beside a checkpoint."""
    asked = options["hold_out"]
    found = judges.share if judges.held_back else "none"
    if asked not in (None, found):
        raise InputError(
            f"{path}: trained with hold_out {found}; read {asked}, expected the same (leave the option "
            "out, or train anew)"
        )


def show_verdict(
    trainer: ACERL, judges: Judges, playing: Playing, options: dict[str, Any], folder: Path
) -> list[dict[str, object]]:
    """Print the verdict on a trained policy, and save the static plan beside it; return its figures."""
    from acerl_np.evaluation.verdict import judge

    try:
        how = {name: getattr(playing, name) for name in PLAYED}
        records = trainer.instances, judges.held_back
        verdict = judge(trainer.policy, *records, objective=playing.goal, **how)
    except InputError as error:
        # The training is done and saved; floors of several sizes may not take one policy.
        print(f"no verdict: {error}", file=sys.stderr)
        return []
    names = ", ".join(make_printable(item.name) for item in judges.held_back)
    held = f" (held back from training: {names})" if names else ""
    table = render_verdict(verdict, more=options["more"])
    print(f"\nVerdict on {verdict.place()}{held}\n{table}", end="")
    if verdict.plan is not None:
        plan = verdict.plan
        if options["no_records"] and plan.origin is not None:
            plan = replace(plan, origin=plan.origin.without_records())
        plan.save(folder / PLAN_FILE)
        print(f"static plan {plan.describe()}   {folder / PLAN_FILE}")
    for note in verdict.notes:
        print(note)
    if verdict.margin is not None and verdict.margin.is_little:
        print(verdict.margin.sentence())
    print(f"{verdict.sentence()}\n")
    return list_verdict(verdict)
