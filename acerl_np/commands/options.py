"""Options of a training: fields of `Config` and the command's own, merged from a TOML file and the shell."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_args

from acerl_np.commands.judging import check_share
from acerl_np.support.errors import ConfigError, describe
from acerl_np.support.numbers import check_seed
from acerl_np.training.config import BEST, CHOICES, Config, Preset, read_toml

PRESETS: tuple[str, ...] = get_args(Preset)

DEFAULTS: dict[str, Any] = {
    "tasks": [],
    "suite": None,
    "layout": None,
    "breakdowns": None,
    "date_format": None,
    "random_breakdowns": None,
    "hold_out": None,
    "preset": None,
    "seed": 0,
    "seeds": None,
    "processes": None,
    "dask": None,
    "silence": None,
    "threads": None,
    "out": None,
    "trials": 30,
    "more": False,
    "checkpoint_every": 10.0,
    "checkpoint_generations": 10_000_000,
    "no_records": False,
    "tensorboard": False,
    "quiet": False,
}
"""Options of the command that are no field of `Config`."""

HELP = {
    "form": "network: the paper's, sees all waiting tasks and chooses a vehicle and a rule; index: scores "
    "every pair of an idle vehicle and a waiting task, for any fleet and floor",
    "generations": "G, generations to train",
    "decisions": "train until so many decisions are taken, instead of --generations; with --preset best 5 "
    "million or more also take eight hidden units",
    "population": "lambda, members of a generation",
    "learning_rate": "alpha, step along the estimated gradient; with --shaping rank use about 1/100 of it. "
    "On DMH 0.12 with --outcome best --curve-every 1 --curve-trials 2 keeps the limit in 97 %% of the "
    "trials instead of 91 %% (docs/learning.md)",
    "noise_std": "sigma, standard deviation of the parameter noise",
    "noise_decay": "factor on sigma after every --noise-decay-every generations",
    "noise_decay_every": "generations between two decays of sigma",
    "cost_limit": "xi, limit on the mean tardiness in seconds",
    "p_f": "P_f, probability of comparing two members by return although one violates the limit; on DMH "
    "0 keeps the limit in 95 %% of the trials instead of 91 %%",
    "alpha_u": "alpha_u, weight of the sampler's bonus for rarely chosen instances",
    "ranking": "isr: intrinsic stochastic ranking; cf: return - cost; r: rank of the return; f: the return; "
    "penalty: the return less --penalty times the cost beyond the limit less --margin",
    "penalty": "seconds of makespan per second of tardiness beyond the limit less the margin, with --ranking "
    "penalty",
    "margin": "seconds below the limit from which tardiness is penalised",
    "records_per_member": "1: each member plays one record; K: all members play the same K records; K "
    "from 2 to 32 by the budget where the preset leaves it open",
    "perturb": "draw the training records anew each generation, arrivals moved by up to so many seconds; "
    "those of 0 stay",
    "synthetic": "share of the records that are synthetic days, tasks drawn anew from the records' own",
    "spread": "of the search, one: one sigma; diagonal, full: an adapted covariance, with --form index",
    "knowledge": "what an index function may look at that not every floor knows, separated by commas: "
    "breakdowns (planned ones), tasks (how many are to come), time, vehicles (their names); or none",
    "without": "features that an index function leaves out, separated by commas (acerl-np policy show names "
    "them)",
    "slots": "task: a waiting task is seen in a slot of its own, by its id, probably as in the paper; pool: "
    "in that of its place in the pool",
    "sampler": "ais: adaptive; uniform: each instance equally often; random: independent draws; "
    "single: the first instance only",
    "shaping": "f, standardised: ranks standardised per instance and over the population; "
    "rank: the ranks as printed in the paper",
    "antithetic": "mirrored pairs of members (the paper's antithetic estimator); needs an even population",
    "hidden": "sizes of the hidden layers, separated by commas, none if empty; an index function has one at "
    "most",
    "initialisation": "he: normal weights of variance 2/n_in, zero biases; torch: PyTorch's default for "
    "linear layers; small: he with a last layer of a hundredth",
    "biases": "biases in the network's layers",
    "standardise": "standardise each observation as a whole before the first layer",
    "curve_every": "generations between two looks at the policy on every training record, for curves.csv; "
    "0: none",
    "curve_trials": "episodes per record and look",
    "outcome": "last: the policy of the last generation; best: of the look with the largest share within the "
    "limit, then the smallest makespan; average: the mean of all generations, the late ones weighing more",
    "horizon": "seconds after which an episode is stopped, finished or not",
    "advantage": "sign of the sampler's metric u: the paper's, or the released code's",
}


def parse_sizes(text: str) -> tuple[int, ...]:
    """Parse "128,128"; an empty text is a network without hidden layers."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"read '{text}'; expected sizes such as 128,128"
        ) from error


def parse_names(text: str) -> tuple[str, ...]:
    """Parse "breakdowns,tasks"; "none" or an empty text names nothing."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    return () if names == ("none",) else names


KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "hidden": (parse_sizes, "N,N"),
    "knowledge": (parse_names, "WHAT,WHAT"),
    "without": (parse_names, "NAME,NAME"),
    "decisions": (int, "N"),
    "horizon": (float, "X"),
}
"""How options are read whose default does not tell, and what the help calls their value."""

UNSET = {"knowledge": "breakdowns if a layout lists any", "records_per_member": "by the budget"}
"""What a default of None means where it is not "none"."""


def show_default(name: str, default: object) -> str:
    """Return an option's default, and that of the preset "best" where it is another."""

    def show(value: object) -> str:
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, tuple):
            return ",".join(map(str, value)) or "none"
        return UNSET.get(name, "none") if value is None else str(value)

    text = f"(default: {show(default)})"
    best = BEST.get(name, default)
    return text if best == default else f"{text}, best: {show(best)}"


def add_preset(parser: argparse.ArgumentParser) -> None:
    """Declare --preset."""
    parser.add_argument_group("what to train").add_argument(
        "--preset",
        choices=PRESETS,
        help="paper: the network and the search of the paper; best: an index function and a search that do "
        "better on unseen days (docs/learning.md). Options given beside it win (default: paper)",
    )


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """Declare one option per field of `Config`."""
    group = parser.add_argument_group(
        "ACERL (defaults: the paper's, else the released code's; best: those of --preset best)"
    )
    for field in fields(Config):
        name = field.name
        flag = f"--{name.replace('_', '-')}"
        text = f"{HELP[name]} {show_default(name, field.default)}"
        if isinstance(field.default, bool):
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
        elif name in CHOICES:
            group.add_argument(flag, choices=CHOICES[name], help=text)
        else:
            kind = type(field.default)
            read, metavar = KINDS.get(name, (kind, "N" if kind is int else "X"))
            group.add_argument(flag, type=read, metavar=metavar, help=text)


def merge_options(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Merge command line, TOML file and defaults, in this order of precedence.

    Parameters
    ----------
    given : mapping
        Options of the command line that were given.

    Returns
    -------
    options : dict
        The command's options.
    settings : dict
        Fields of `Config` that were given.

    Raises
    ------
    ConfigError
        If the file has a key that is no option.
    """
    names = {field.name for field in fields(Config)}
    merged: dict[str, Any] = {}
    if "config" in given:
        path = given["config"]
        for key, value in read_toml(path).items():
            name = key.replace("-", "_")
            if name not in names and name not in DEFAULTS:
                known = ", ".join(sorted(names | set(DEFAULTS)))
                raise ConfigError(
                    f"{path}: {describe(key)}: unknown option; expected one of {known}"
                )
            merged[name] = value
        _check_file(path, {name: merged[name] for name in names & set(merged)}, merged, given)
    # How long to train is said once: what the command line says goes before the file.
    for name, other in (("decisions", "generations"), ("generations", "decisions")):
        if name in given and other not in given:
            merged.pop(other, None)
    merged.update(given)
    if "decisions" in merged and "generations" in merged:
        raise ConfigError("generations: given besides decisions; expected one of the two")
    if "generations" in merged:
        merged["decisions"] = None
    options = {name: merged.get(name, default) for name, default in DEFAULTS.items()}
    return options, {name: merged[name] for name in names & set(merged)}


def _check_file(
    path: str, own: dict[str, Any], merged: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Refuse values of a file, in the light of the command line, and with the file's name."""
    preset: Any = given.get("preset", merged.get("preset")) or "paper"
    fields_given = {
        field.name: given[field.name] for field in fields(Config) if field.name in given
    }
    try:
        Config.preset(preset, **{**fields_given, **own})
    except ConfigError as error:
        # What the command line alone has wrong is no fault of the file.
        Config.preset(given.get("preset") or "paper", **fields_given)
        raise ConfigError(f"{path}: {error}") from error


WHOLE_RANGES = (
    ("trials", 0, 1_000_000),
    ("checkpoint_generations", 1, 10_000_000),
)


def check_options(options: dict[str, Any]) -> None:
    """Refuse values that the command alone knows to be wrong."""
    from acerl_np.support.workers import check_threads

    check_threads(options["threads"])
    check_seed(options["seed"])
    for name, low, high in WHOLE_RANGES:
        value = options[name]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ConfigError(
                f"{name}: read {describe(value)}; expected a whole number from {low} to {high}"
            )
    silence = options["silence"]
    if silence is not None and (isinstance(silence, bool) or not isinstance(silence, int | float)):
        raise ConfigError(f"silence: read {describe(silence)}; expected seconds above 0")
    every = options["checkpoint_every"]
    if isinstance(every, bool) or not isinstance(every, int | float) or not 0 <= every < 1e9:
        raise ConfigError(
            f"checkpoint_every: read {describe(every)}; expected seconds from 0 to 1e9"
        )
    for name in ("more", "no_records", "tensorboard", "quiet"):
        if not isinstance(options[name], bool):
            raise ConfigError(f"{name}: read {describe(options[name])}; expected true or false")
    check_share(options["hold_out"])
    if options["preset"] not in (None, *PRESETS):
        expected = ", ".join(PRESETS)
        raise ConfigError(f"preset: read {describe(options['preset'])}; expected one of {expected}")
    processes = options["processes"]
    if processes is not None and (isinstance(processes, bool) or not isinstance(processes, int)):
        raise ConfigError(f"processes: read {describe(processes)}; expected a whole number")
    texts = ("suite", "layout", "breakdowns", "date_format", "random_breakdowns", "out")
    for name in ("seeds", "dask", *texts):
        if not isinstance(options[name], str | None):
            raise ConfigError(f"{name}: read {describe(options[name])}; expected a text")
    if options["breakdowns"] == "":
        raise ConfigError("breakdowns: read ''; expected the name of a file, or none")
    tasks = options["tasks"]
    if not isinstance(tasks, list) or not all(isinstance(task, str) for task in tasks):
        raise ConfigError(f"tasks: read {describe(tasks)}; expected a list of texts")
