"""What a training begins with: new records and options, or a checkpoint that they must agree with."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.common import load_instances, vary_breakdowns
from acerl_np.commands.judging import Judges, check_judges, part_records, read_facts, read_judges
from acerl_np.commands.options import DEFAULTS
from acerl_np.problem.slots import are_never_the_same
from acerl_np.support.errors import InputError, describe
from acerl_np.support.files import write_atomically

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance
    from acerl_np.support.team import Team
    from acerl_np.training.acerl import ACERL
    from acerl_np.training.config import Config


def make_trainer(
    given: dict[str, Any], options: dict[str, Any], settings: dict[str, Any], team: Team | None
) -> tuple[ACERL, Judges]:
    """Return a new or a resumed trainer, and what will judge it."""
    from acerl_np.training.acerl import ACERL
    from acerl_np.training.config import Config

    if "resume" in given:
        trainer = ACERL.resume(
            given["resume"],
            generations=settings.get("generations"),
            decisions=settings.get("decisions"),
            threads=options["threads"],
            executor=team,
        )
        judges = read_judges(Path(given["resume"]).parent, trainer.instances)
        check_resumed(trainer, judges, given, options, settings)
        return trainer, judges
    options["preset"] = options["preset"] or "paper"
    config = Config.preset(options["preset"], **settings)
    instances = load_instances(argparse.Namespace(**options), "dmh-train")
    training, judges = part_records(options, instances)
    warn_of_ids(training, config)
    trainer = ACERL(
        training, config, seed=options["seed"], threads=options["threads"], executor=team
    )
    return trainer, judges


def warn_of_ids(instances: Sequence[Instance], config: Config) -> None:
    """Say that slots by the tasks' ids cannot help where hardly an id comes twice."""
    if config.form == "network" and config.slots == "task" and are_never_the_same(instances):
        print(
            "acerl-np train: most task ids stand in one record only, so a slot for each task cannot help; "
            "--preset best can",
            file=sys.stderr,
        )


def check_resumed(
    trainer: ACERL,
    judges: Judges,
    given: dict[str, Any],
    options: dict[str, Any],
    settings: dict[str, Any],
) -> None:
    """Refuse options that differ from the checkpoint's, and records that have changed since."""
    from acerl_np.training.config import Config

    path = given["resume"]
    check_judges(path, judges, options)
    preset = read_facts(Path(path).parent).get("preset")
    if options["preset"] is not None and preset is not None and options["preset"] != preset:
        raise InputError(
            f"{path}: trained with preset {describe(preset)}; read {options['preset']}, expected the same "
            "(leave the option out, or train anew)"
        )
    options["preset"] = preset
    asked = Config.from_dict({**trainer.config.to_dict(), **settings}).to_dict()
    stored = trainer.config.to_dict()
    if "seed" in given or options["seed"] != DEFAULTS["seed"]:
        asked["seed"], stored["seed"] = options["seed"], trainer.seed
    for name, value in asked.items():
        if value != stored[name]:
            raise InputError(
                f"{path}: trained with {name} {stored[name]}; read {value}, expected the same (leave "
                "the option out, or train anew)"
            )
    named = ("suite", "layout", "breakdowns")
    if options["tasks"] or any(options[name] is not None for name in named):
        held_back = {item.content_hash for item in judges.held_back}
        instances = [
            item
            for item in load_instances(argparse.Namespace(**options))
            if item.content_hash not in held_back
        ]
    else:
        instances = vary_breakdowns(trainer.instances, options["random_breakdowns"])
    names = [instance.name for instance in trainer.instances]
    if [instance.name for instance in instances] != names:
        raise InputError(
            f"{path}: trained on {', '.join(names)}; read "
            f"{', '.join(instance.name for instance in instances)}, expected the same records (leave "
            "them out: the checkpoint holds its own)"
        )
    for now, then in zip(instances, trainer.instances, strict=True):
        if now.content_hash != then.content_hash:
            raise InputError(
                f"{path}: '{now.name}' or its layout has changed since (content {then.content_hash[:12]}, "
                f"now {now.content_hash[:12]}); leave it out to go on with the checkpoint's own, or "
                "train anew"
            )


def write_config(path: Path, trainer: ACERL, judges: Judges, preset: str | None) -> None:
    """Write every option of the run as JSON."""
    import acerl_np

    data = {
        "acerl_np": acerl_np.__version__,
        "seed": trainer.seed,
        "instances": {instance.name: instance.content_hash for instance in trainer.instances},
        **judges.to_dict(),
        "preset": preset,
        "config": trainer.config.to_dict(),
    }
    write_atomically(path, (json.dumps(data, indent=2) + "\n").encode())
