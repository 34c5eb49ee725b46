"""Options of a training: those of ACERL and of the learners beside it, from the shell and from a file."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_args

from acerl_np.commands import options as opt
from acerl_np.support.errors import ConfigError, InputError, describe, list_some, suggest_name
from acerl_np.support.files import read_text
from acerl_np.support.numbers import is_real
from acerl_np.training.config import BEST, CHOICES, Config, Preset, check_stored, read_toml

ACERL = "acerl"
BASE = ("ppo", "sac", "lsac", "rcpom", "mappo")
LEARNERS = (*BASE, *(f"a{name}" for name in BASE))
"""The learners that the paper compares with; an "a" before a name: the adaptive instance sampler."""


def read_share(given: Any) -> float | str:
    """Return what --hold-out names."""
    if isinstance(given, str) and given.strip().lower() == "none":
        return "none"
    try:
        share = float(given) if isinstance(given, str) else given
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"read '{given}'; expected a share such as 0.25, or none"
        ) from error
    if not is_real(share) or not 0.0 < share < 1.0:
        expected = "a share above 0 and below 1, or none"
        raise argparse.ArgumentTypeError(f"read {describe(share)}; expected {expected}")
    return float(share)


HOLD_OUT = opt.CommandOption(
    "--hold-out SHARE",
    "share of the records that is not trained on and judges the policy, such as 0.25; 'none': train on all "
    "(default: a third of ten own records or more, of more than twenty a quarter, none of bundled ones). The "
    "seed and the records' contents decide which",
    read_share,
)
FOLDS = opt.CommandOption(
    "--folds N",
    "train on all records, then N times more on all but a fold of them, which judges; with --resume also "
    "afterwards (default: 5 of five to nine own records, if that takes two minutes at most)",
    int,
    None,
    (2, 1000),
)
PRESET = opt.CommandOption(
    "--preset",
    "paper: the network and the search of the paper; best: an index function and a search that do better on "
    "unseen days (docs/learning.md). Options given beside it win (default: paper, of your own records best "
    "unless an option is one of networks)",
    choices=get_args(Preset),
)
ALGORITHM = opt.CommandOption(
    "--algorithm NAME",
    "acerl, or a learner that the paper compares with: ppo, sac, lsac, rcpom, mappo; an a before its name: "
    "its records dealt by the adaptive instance sampler (default: acerl)",
    choices=(ACERL, *LEARNERS),
)
OTHERS = (
    opt.CommandOption(
        "--steps",
        "decisions to train, in all episodes together; training ends with the update that reaches them "
        "(default: 1,000,000)",
        int,
        range=(1, 10**12),
    ),
    opt.CommandOption(
        "--set NAME=VALUE",
        "a setting of the algorithm that is not its default; may be repeated (--settings lists them)",
        list,
    ),
    opt.CommandOption(
        "--settings", "show the algorithm's settings and where each comes from, and stop", bool
    ),
)
"""Options of the other learners."""

CHECKPOINT_GENERATIONS = opt.CommandOption(
    "--checkpoint-generations N",
    "also save a checkpoint every N generations (default: no)",
    int,
    range=(1, 10_000_000),
)
RUN = (
    opt.SEED.but(help="seed of every random draw"),
    opt.CommandOption(
        "--seeds FIRST:LAST",
        "train with several seeds, such as 0:5 for 0 to 4: a folder each below --out, and a summary; what is "
        "finished is kept, so that the same command goes on where it stopped",
    ),
    opt.TRIALS.but(
        help="episodes per instance for the final tables, 0 for no tables", range=(0, 1_000_000)
    ),
    opt.MORE.but(help=f"{opt.MORE.help}; with --seeds all but the errors"),
    opt.CommandOption("--out DIR", "folder for the results (default: a new one below runs/)"),
    opt.FORCE,
    opt.CommandOption(
        "--resume RUN.npz",
        "go on from a checkpoint; needs nothing else, and what else is given must agree with it",
    ),
    opt.CommandOption(
        "--checkpoint-every SECONDS", "time between checkpoints", float, 10.0, (0, 10**9)
    ),
    opt.CommandOption(
        "--no-records",
        "leave the training records out of policy.npz and static.npz; their names and fingerprints stay",
        bool,
        default=False,
    ),
    opt.CommandOption(
        "--tensorboard",
        "also write what history.csv and curves.csv tell as event files, into tensorboard/ beside them "
        "(needs the extra: pip install 'acerl_np[tensorboard]'); show them with: tensorboard --logdir runs",
        bool,
        default=False,
    ),
    opt.CommandOption(
        "--config FILE",
        "options as TOML, or the config.json of a run; the command line comes first",
    ),
    opt.CommandOption("--print-config", "print all options as --config reads them, and stop", bool),
    opt.CommandOption("--quiet", "no progress, only the table", bool, default=False),
)
"""Options of every training."""

SHELL = ("config", "force", "print_config", "resume", "settings")
"""Options that no file holds."""

OWN = {
    option.key: option
    for option in (
        *(
            opt.TASKS,
            opt.SUITE,
            *opt.READING,
            opt.RANDOM_BREAKDOWNS,
            HOLD_OUT,
            FOLDS,
            PRESET,
            ALGORITHM,
            *OTHERS,
        ),
        *(*RUN, *opt.list_team(""), opt.THREADS, CHECKPOINT_GENERATIONS),
    )
    if option.key not in SHELL
}
"""Options of the command that are no field of `Config`."""

FIELDS = tuple(field.name for field in fields(Config))
OF_ACERL = ("hold_out", "folds", "preset", "checkpoint_generations", "threads")
OF_LEARNERS = ("steps", "set", "settings")

TIPS = {
    "learning_rate": "; with --shaping rank use about 1/100 of it. On DMH 0.12 with --outcome best "
    "--curve-every 1 --curve-trials 2 keeps the limit in 97 %% of the trials instead of 91 %% "
    "(docs/learning.md)",
    "noise_decay_every": "generations between two decays of sigma",
    "p_f": "; on DMH 0 keeps the limit in 95 %% of the trials instead of 91 %%",
    "features": "; separated by commas (acerl-np list features names them)",
    "rules": "; separated by commas",
    "hidden": "; separated by commas, none if empty",
    "curve_every": "; for curves.csv",
    "antithetic": " (the paper's antithetic estimator); needs an even population",
}
"""What the shell is told beside the docstring of `Config`."""


def parse_sizes(text: str) -> tuple[int, ...]:
    """Parse "128,128"; an empty text is a network without hidden layers."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"read '{text}'; expected sizes such as 128,128"
        ) from error


def parse_names(text: str) -> tuple[str, ...]:
    """Parse "approach,imbalance"."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "hidden": (parse_sizes, " N,N"),
    "features": (parse_names, " NAME,NAME"),
    "rules": (parse_names, " NAME,NAME"),
    "class_weights": (opt.parse_numbers, " X,X"),
    "objective": (str, " WHAT"),
    "cost": (str, " WHAT"),
    "ranking": (str, " NAME"),
    "sampler": (str, " NAME"),
    "cost_limit": (float, " X"),
    "decisions": (int, " N"),
    "horizon": (float, " X"),
}
"""How options are read whose default does not tell, and what the help calls their value."""

UNSET = {
    "records_per_member": "by the budget",
    "objective": "makespan, of index policies by the records",
    "cost_limit": "50 with objective makespan",
    "features": "by the floor",
}
"""What a default of None means where it is not "none"."""


def list_config_options() -> list[opt.CommandOption]:
    """Return one option per field of `Config`, which looks at their values itself.

    The help is what its docstring says of the field, `TIPS`, and the defaults.
    """
    _, _, below = (inspect.getdoc(Config) or "").partition("Attributes\n----------\n")
    said = dict(re.findall(r"^(\w+) :.*\n((?: .*\n)*)", below, re.MULTILINE))
    options = []
    for field in fields(Config):
        name, kind, choices = field.name, type(field.default), CHOICES.get(field.name, ())
        help = " ".join(said.get(name, "").split()).rstrip(".").replace("%", "%%")
        help = re.sub(r"`(\w+)`", lambda found: f"--{found[1].replace('_', '-')}", help)
        help = help[:1].lower() + help[1:] if help[1:2].islower() else help
        usual, best = (
            show_default(name, x) for x in (field.default, BEST.get(name, field.default))
        )
        read, metavar = KINDS.get(name, (kind, " N" if kind is int else " X"))
        if choices or kind is bool:
            read, metavar = argparse.BooleanOptionalAction if kind is bool else kind, ""
        usage = f"--{name.replace('_', '-')}{metavar}"
        text = f"{help}{TIPS.get(name, '')} (default: {usual})"
        text += f", best: {best}" if best != usual else ""
        options.append(opt.CommandOption(usage, text, read, choices=choices))
    return options


def show_default(name: str, value: object) -> str:
    """Return a field's value as the help shows it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return UNSET.get(name, "none") if value is None else str(value)


def merge_options(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Merge what the command line gives, file and defaults, in this order; refuse unusable values.

    Returns the command's options, and the fields of `Config` that were given.
    """
    merged: dict[str, Any] = {}
    if "config" in given:
        path = given["config"]
        merged = read_file(path, given)
        for name in merged:
            if name not in FIELDS and name not in OWN:
                known = sorted({*FIELDS, *OWN})
                expected = f"expected one of {', '.join(known)}{suggest_name(name, known)}"
                raise ConfigError(f"{path}: {describe(name)}: unknown option; {expected}")
        if "seed" in merged and ("seeds" in given or "seeds" in merged):
            raise ConfigError(f"{path}: seed: given besides seeds; expected one of the two")
        _check_fields(path, merged, given)
    # How long to train is said once: what the command line says goes before the file.
    for name, other in (("decisions", "generations"), ("generations", "decisions")):
        if name in given and other not in given:
            merged.pop(other, None)
    if "set" in merged and "set" in given:
        given = {**given, "set": [*merged["set"], *given["set"]]}
    merged.update(given)
    if "decisions" in merged and "generations" in merged:
        raise ConfigError("generations: given besides decisions; expected one of the two")
    if "generations" in merged:
        merged["decisions"] = None
    options = {name: merged.get(name, option.default) for name, option in OWN.items()}
    for name, option in OWN.items():
        option.check(options[name])
    return options, {name: merged[name] for name in FIELDS if name in merged}


def read_file(path: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in a TOML file, or those of the run that a config.json tells of."""
    if not path.endswith(".json"):
        return {name.replace("-", "_"): value for name, value in read_toml(path).items()}
    text = read_text(path, ConfigError)
    try:
        return _read_facts(path, json.loads(text), given)
    except (LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ConfigError):
            raise ConfigError(f"{path}: {error}") from error
        if isinstance(error, InputError):
            raise
        raise ConfigError(f"{path}: expected the config.json of a run") from error


def _read_facts(path: str, facts: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the run that a config.json tells of; --seed and --seeds go before its own."""
    from acerl_np.problem.bundled import bundled_instances, load_instance

    names = ("algorithm", "preset", "steps", "seed")
    found = {name: facts[name] for name in names if facts.get(name) is not None}
    if "seeds" in facts:
        found["seeds"] = f"{facts['seeds'][0]}:{facts['seeds'][-1] + 1}"
    if "seed" in given or "seeds" in given:
        found.pop("seed", None)
        found.pop("seeds", None)
    config = dict(facts.get("config") or {})
    held_back = facts.get("held_back", {})
    if config:
        check_stored(config)
        share = len(held_back) / (len(held_back) + len(facts["instances"]))
        if facts.get("folds") and not {"hold_out", "seeds"} & {*given, *found}:
            found["folds"] = facts["folds"]
        elif "folds" not in given:
            found["hold_out"] = facts.get("hold_out", share) or "none"
        # How long to train is said once.
        config.pop("decisions" if config.get("decisions") is None else "generations", None)
    if "settings" in facts:
        found["set"] = format_settings(facts["settings"])
    if not any(name in given for name in ("tasks", "suite", "resume")):
        named, bundled = {**facts["instances"], **held_back}, bundled_instances()
        for name, content in named.items():
            # Fingerprints alone name no files.
            if name not in bundled or load_instance(name).content_hash != content:
                raise InputError(
                    f"{path}: the run was of {list_some(list(named), 3)}, whose files it does not name; "
                    "expected TASKS as well"
                )
        found["tasks"] = list(named)
    return {**found, **config}


def format_settings(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as --set takes them."""
    return [
        f"{name}={','.join(map(str, x)) if isinstance(x, list) else x}"
        for name, x in settings.items()
    ]


def _check_fields(path: str, merged: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse values of a file, in the light of the command line, and with the file's name."""
    preset: Any = given.get("preset", merged.get("preset")) or "paper"
    own = {name: given[name] for name in FIELDS if name in given}
    try:
        Config.preset(preset, **{**own, **{x: merged[x] for x in FIELDS if x in merged}})
    except ConfigError as error:
        # What the command line alone has wrong is no fault of the file.
        Config.preset(given.get("preset") or "paper", **own)
        raise ConfigError(f"{path}: {error}") from error


def check_algorithm(
    options: Mapping[str, Any], settings: Mapping[str, Any], given: Mapping[str, Any]
) -> str:
    """Return what is trained; refuse the options of another algorithm."""
    algorithm: str = options["algorithm"] or ACERL
    named = {name for name, option in OWN.items() if options[name] != option.default} | set(given)
    if algorithm == ACERL:
        wrong = [name for name in OF_LEARNERS if name in named]
        what = "given without --algorithm; expected one such as ppo"
    else:
        wrong = [name for name in (*OF_ACERL, *settings) if name in named or name in settings]
        what = f"an option of ACERL; expected --set NAME=VALUE with {algorithm}"
    if wrong:
        raise InputError(f"--{wrong[0].replace('_', '-')}: {what}")
    return algorithm


def format_options(values: Mapping[str, Any]) -> str:
    """Return options as TOML; those without a value as comments."""
    lines = []
    for name, value in values.items():
        shown = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
        lines.append(f"# {name} =" if value is None else f"{name} = {shown}")
    return "\n".join(lines)
