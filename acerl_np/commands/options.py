"""Options that are fields of `Config`, and the merging of a TOML file with the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from acerl_np.support.errors import ConfigError, describe
from acerl_np.training.config import CHOICES, Config, read_toml

HELP = {
    "generations": "G, generations to train",
    "population": "lambda, members of a generation, each plays one episode",
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
    "ranking": "isr: intrinsic stochastic ranking; cf: return - cost; r: rank of the return; f: the return",
    "sampler": "ais: adaptive; uniform: each instance equally often; random: independent draws; "
    "single: the first instance only",
    "shaping": "f, standardised: ranks standardised per instance and over the population; "
    "rank: the ranks as printed in the paper",
    "antithetic": "mirrored pairs of members (the paper's antithetic estimator); needs an even population",
    "hidden": "sizes of the hidden layers, separated by commas",
    "initialisation": "he: normal weights of variance 2/n_in, zero biases; torch: PyTorch's default for "
    "linear layers; small: he with a last layer of a hundredth",
    "biases": "biases in the network's layers",
    "standardise": "standardise each observation as a whole before the first layer",
    "curve_every": "generations between two looks at the policy on every training record, for curves.csv; "
    "0: none",
    "curve_trials": "episodes per record and look",
    "outcome": "last: the policy of the last generation; best: of the look with the largest share within the "
    "limit, then the smallest makespan",
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


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """Declare one option per field of `Config`."""
    group = parser.add_argument_group("ACERL (defaults: the paper's, else the released code's)")
    for field in fields(Config):
        flag = f"--{field.name.replace('_', '-')}"
        default = field.default
        if field.name == "hidden":
            group.add_argument(
                flag, type=parse_sizes, metavar="N,N", help=f"{HELP[field.name]} (default: 128,128)"
            )
        elif isinstance(default, bool):
            group.add_argument(
                flag,
                action=argparse.BooleanOptionalAction,
                default=None,
                help=f"{HELP[field.name]} (default: {'on' if default else 'off'})",
            )
        else:
            kind = float if default is None else type(default)
            group.add_argument(
                flag,
                type=kind,
                choices=CHOICES.get(field.name),
                metavar=None if field.name in CHOICES else "N" if kind is int else "X",
                help=f"{HELP[field.name]} (default: {'none' if default is None else default})",
            )


def merge_options(
    given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Merge command line, TOML file and defaults, in this order of precedence.

    Parameters
    ----------
    given : mapping
        Options of the command line that were given.
    defaults : mapping
        Options of the command besides `Config`'s fields.

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
            if name not in names and name not in defaults:
                known = ", ".join(sorted(names | set(defaults)))
                raise ConfigError(
                    f"{path}: {describe(key)}: unknown option; expected one of {known}"
                )
            merged[name] = value
        try:
            Config.from_dict({name: merged[name] for name in names & set(merged)})
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error
    merged.update(given)
    options = {name: merged.get(name, default) for name, default in defaults.items()}
    return options, {name: merged[name] for name in names & set(merged)}
