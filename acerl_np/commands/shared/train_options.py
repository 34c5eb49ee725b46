"""Options of a training and settings of its learner, from the shell and from a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, get_args

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.inputs import is_bundled
from acerl_np.problem.bundled import expand_names
from acerl_np.support import errors
from acerl_np.support.errors import ConfigError, InputError, describe
from acerl_np.support.fields import Field, Options, is_real, option
from acerl_np.training.settings import ALONE, BEST, Preset, Settings


def read_share(given: Any) -> float | str:
    """Return what --hold-out names."""
    if isinstance(given, str) and given.strip().lower() == "none":
        return "none"
    share = given
    with suppress(ValueError):
        share = float(given) if isinstance(given, str) else given
    if not is_real(share) or not 0.0 < share < 1.0:
        expected = "a share above 0 and below 1 such as 0.25, or none"
        raise argparse.ArgumentTypeError(f"read {describe(share)}; expected {expected}")
    return float(share)


PRESET = opt.Argument(
    "--preset NAME",
    "paper: the paper's network and search; best: an index policy for unseen days (default: paper; best on "
    "your own records)",
    Field(get_args(Preset)),
)
SETTING = (
    opt.Argument("--set NAME=VALUE", "any setting; may be repeated", opt.EACH),
    opt.Argument("--settings", "list all settings as a file for --config, and stop", opt.SWITCH),
    opt.Argument("--config FILE", "settings and options: TOML, JSON, or a run's config.json"),
)
HOLD_OUT = opt.Argument(
    "--hold-out SHARE",
    "share of the records that only judges, or 'none' (default: of more than 30 own records as many as "
    "nearest's standard error asks for, at most half)",
    read_share,
)
FOLDS = opt.Argument(
    "--folds N",
    "folds of cross-validation (default: 5 with 5 to 30 own records, fewer if that takes over 2 minutes)",
    Field(int, 2, 1000),
)
RUN = (
    opt.SEED_OPTION.but(help=f"{opt.SEED_OPTION.help} (default: 0)", default=None),
    opt.Argument(
        "--seeds FIRST:LAST",
        "a training for each seed, 0:5 for 0 to 4, in seedN (trials: trials.npz), and summary.csv; continues "
        "what was stopped",
    ),
    opt.TRIALS.but(
        help="episodes for each record in tables, 0 for none", kind=Field(int, 0, 1_000_000)
    ),
    *opt.TEAM,
    opt.Argument("--resume RUN.npz", "resume from a checkpoint; other options must match it"),
)
RESULTS = (
    opt.OUT.but(
        usage="-o/--out DIR", help="folder for the results (default: a new one below runs/)"
    ),
    *(opt.FORCE, opt.DETAILS),
)
BY_GROUP: opt.Options = {
    "": (opt.RECORDS_PLACE,),
    opt.PLAY: (PRESET, *SETTING, opt.TRAFFIC),
    opt.RECORDS: (*opt.READING, HOLD_OUT, FOLDS),
    opt.OBJECTIVE: (),
    opt.OUTPUT: (*RESULTS, opt.REPORT),
    opt.RUNNING: (*RUN, opt.THREADS),
}
QUIET = opt.Argument("-q/--quiet", "", opt.SWITCH)

OPTIONS = {option.key: option for option in (*opt.list_all(BY_GROUP), QUIET)}
SHELL = ("config", "force", "report", "resume", "set", "settings")
"""Options that no file holds."""
SHOWN = {
    **{"generations": (opt.PLAY, "N"), "decisions": (opt.PLAY, "N")},
    "commitment": (opt.PLAY, "WHEN"),
    **dict.fromkeys(("objective", "cost"), (opt.OBJECTIVE, "WHAT")),
    "cost_limit": (opt.OBJECTIVE, "X"),
}
"""Settings that are options, too: their groups, and what the help calls their values."""


@dataclass(frozen=True)
class RunSettings(Options):
    """Settings that every training has, whatever learns.

    Attributes
    ----------
    checkpoint_every : float, s
        Time between two checkpoints.
    checkpoint_generations : int or None
        Generations, or lines of another learner's history, between two checkpoints.
    silence : float or None, s
        Time without a finished task after which workers count as lost: processes are started again,
        elsewhere the work ends. By default 3600, with --seeds never.
    no_records : bool
        Leave the training records out of policy.npz; names and fingerprints stay.
    """

    checkpoint_every: float = option(10.0, Field(float, 0, 1e9))
    checkpoint_generations: int | None = option(None, Field(int, 1, 10_000_000, optional=True))
    silence: float | None = option(None, Field(float, 1e-3, 1e9, optional=True))
    no_records: bool = option(False, Field(bool))


@dataclass(frozen=True)
class Algorithm:
    """What learns, and how a command trains it.

    Attributes
    ----------
    name : str
    command : str
        The words that train it.
    settings : type of Options
    options : dict of Argument
        The command's, by their names in files.
    told : str
        Under which name a run's config.json tells the settings.
    facts : tuple of str
        Further options that it tells.
    """

    name: str
    command: str
    settings: type[Options]
    options: Mapping[str, opt.Argument]
    told: str = "config"
    facts: tuple[str, ...] = ("preset",)


ACERL = Algorithm("acerl", "acerl-np train", Settings, OPTIONS)


def make_setting(name: str, metavar: str) -> opt.Argument:
    """Return the option that is another way to write --set."""
    known = {option.key: option for option in (*opt.GOAL, opt.COMMIT)}
    sentence = known[name].help if name in known else Settings.list_fields()[name].help
    usage = f"--{name.replace('_', '-')} {metavar}"
    return opt.Argument(usage, sentence)


for _name, (_group, _metavar) in SHOWN.items():
    BY_GROUP[_group] = (*BY_GROUP[_group], make_setting(_name, _metavar))


def explain(kind: type[Options], name: str) -> str:
    """Return what a setting is, its range, its default and that of the preset best."""
    about = next(item for item in fields(kind) if item.name == name)  # type: ignore[arg-type]
    field = kind.list_fields()[name]
    meaning = f"{field.help}{field.unit and f', {field.unit}'}"
    source = f" ({about.metadata['source']})" if "source" in about.metadata else ""
    words = "" if field.kind in (str, tuple) else f": {field.words}"
    usual = [] if "By default" in meaning else [f"default: {show_value(about.default)}"]
    usual += (
        [f"best: {show_value(BEST[name])}"] if issubclass(kind, Settings) and name in BEST else []
    )
    return f"{meaning}{source}{words}" + (f" ({'; '.join(usual)})" if usual else "")


def show_value(value: object) -> str:
    """Return a setting's value as `--set` takes it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_settings(texts: Iterable[str], algorithm: Algorithm) -> dict[str, Any]:
    """Return the settings that texts give, NAME=VALUE, each as its field reads it."""
    known = algorithm.settings.list_fields() | RunSettings.list_fields()
    found = {}
    for text in texts:
        name, given, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not given:
            raise ConfigError(f"--set: read {describe(text)}; expected NAME=VALUE")
        check_known(name, known, algorithm)
        found[name] = known[name].read(name, opt.read_value(known[name], value.strip()))
    return found


def check_known(name: str, known: Iterable[str], algorithm: Algorithm) -> None:
    """Refuse a name that no setting of an algorithm has, and no option."""
    if name not in known:
        expected = f"expected one that {algorithm.command} --settings lists"
        near = errors.suggest_name(name, known)
        raise ConfigError(f"{describe(name)}: no setting of {algorithm.name}; {expected}{near}")


def part_text(name: str, given: Mapping[str, Any]) -> list[str]:
    """Return an option that is a setting as --set has it; what follows @ or pickup: is another setting."""
    text = given.get(name)
    if text is None:
        return []
    mark, other = {"objective": ("@", "class_weights"), "commitment": (":", "max_changes")}.get(
        name, ("", "")
    )
    is_module = name == "objective" and ":" in text and "@" not in text
    first, found, rest = text.partition(mark) if mark and not is_module else (text, "", "")
    return [f"{name}={first}", *([f"{other}={rest}"] if found else [])]


def merge_options(
    given: Mapping[str, Any], algorithm: Algorithm = ACERL
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Merge what the command line gives, file and defaults, in this order; refuse unusable values.

    Returns the command's options with the settings of the run, and the learner's settings that were given.
    """
    path = given.get("config")
    merged = {}
    if path is not None:
        from acerl_np.commands.shared.config_files import read_file

        merged = read_file(path, given, algorithm)
    texts = [*given.get("set", ()), *(text for name in SHOWN for text in part_text(name, given))]
    own = {key: x for key, x in given.items() if key not in SHOWN}
    own |= read_settings(texts, algorithm)
    # How long to train is said once: what the command line says goes before the file.
    for name, other in (("decisions", "generations"), ("generations", "decisions")):
        if name in own and other not in own:
            merged.pop(other, None)
    fields = algorithm.settings.list_fields() | RunSettings.list_fields()
    known = {*algorithm.options, *fields}
    try:
        for name in merged:
            check_known(name, known - {*SHELL}, algorithm)
        return complete({**merged, **own}, algorithm)
    except InputError as error:
        # What the command line alone has wrong is no fault of the file.
        complete(own, algorithm)
        raise ConfigError(f"{path}: {error}") from error


def complete(
    values: Mapping[str, Any], algorithm: Algorithm
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all options, and the settings of the learner; refuse values that do not go together."""
    for name, other in (("seed", "seeds"), ("generations", "decisions")):
        if values.get(name) is not None and values.get(other) is not None:
            raise ConfigError(f"{name}: given besides {other}; expected one of the two")
    options: dict[str, Any] = {}
    for name, known in algorithm.options.items():
        value = values.get(name)
        options[name] = known.default if value is None else value
        known.check(options[name])
    options["tasks"] = expand_names(options["tasks"])
    options["own"] = values.get("own", not all(map(is_bundled, options["tasks"])))
    settings = {x: values[x] for x in algorithm.settings.list_fields() if x in values}
    run = RunSettings.from_dict({x: values[x] for x in RunSettings.list_fields() if x in values})
    options |= run.to_dict()
    if options["resume"] is None:  # else all others are those of the checkpoint
        fill_settings(options, settings, algorithm)
    return options, settings


def find_preset(options: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    """Return ACERL's preset: for records of one's own "best", unless settings are those of a network."""
    if options["preset"] is not None:
        return options["preset"]
    is_network = settings.get("form") == "network" or {*ALONE["network"]} & settings.keys()
    return "best" if options["own"] and not is_network else "paper"


def fill_settings(
    options: Mapping[str, Any], settings: Mapping[str, Any], algorithm: Algorithm = ACERL
) -> Options:
    """Return all settings of what learns: those given, and the preset's or defaults for all others."""
    if algorithm is ACERL:
        from acerl_np.training.config import Config

        return Config.preset(find_preset(options, settings), **settings)
    return algorithm.settings.from_dict(settings)
