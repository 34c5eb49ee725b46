"""What judges a training: records that are held back, folds, or noised copies; kept beside its checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from acerl_np.evaluation import hold_out
from acerl_np.evaluation.metrics import LEAST_JUDGES
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.pictures.runs import read_config
from acerl_np.problem.bundled import bundled_instances
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance, check_names
from acerl_np.problem.packing import UNUSABLE, pack_instances, unpack_instances
from acerl_np.support.errors import InputError, describe, make_printable
from acerl_np.support.fields import is_real
from acerl_np.support.files import read_arrays, take_kind, write_arrays

FILE = "held-back.npz"
FORMAT = 1

JudgedOn = Literal["held-back records", "folds", "noised copies", "nothing"]


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
    check_names(instances)
    share, folds = options["hold_out"], options["folds"]
    if folds is not None and share is not None:
        raise InputError("--folds: given besides --hold-out; expected one of the two")
    own = options["own"]
    n, different = len(instances), len({item.content_hash for item in instances})
    if share is None and folds is None and own and different >= LEAST_JUDGES:
        if n > hold_out.MOST_IN_FOLDS:
            playing = Playing(1, options["seed"], goal=goal or PAPER)
            near = play_policy("nearest", instances, playing)
            share = hold_out.choose_share(near.mean("value"))
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
