"""Options of how episodes are played, said once for all commands that play them."""

from __future__ import annotations

import argparse
from typing import Any

from acerl_np.commands.ranges import COST_LIMIT, Range, check_ranges
from acerl_np.support.numbers import check_seed

OPTIONS: dict[str, dict[str, Any]] = {
    "trials": {"type": int, "default": 30, "help": "episodes per instance (default: 30)"},
    "trial": {
        "type": int,
        "default": 0,
        "help": "which of the trials of acerl-np evaluate, from 0 on (default: 0)",
    },
    "seed": {"type": int, "default": 0, "help": "seed of every draw (default: 0)"},
    # None, not False: how a policy was trained decides.
    "greedy": {
        "action": "store_const",
        "const": True,
        "help": "take what a trained policy likes best (default: as in its training: networks sample, as in "
        "the paper, index policies do not)",
    },
    "cost-limit": {
        "type": float,
        "default": 50.0,
        "help": "xi, limit on the tardiness, s (default: 50)",
    },
    "horizon": {
        "type": float,
        "metavar": "SECONDS",
        "help": "stop an episode after so many seconds, finished or not (default: never)",
    },
    "threads": {"type": int, "help": "worker threads (default: one per core)"},
}
"""What `add_argument` is given for each option."""

RANGES = {
    "trials": Range(1, 1_000_000, "a number from 1 to 1,000,000"),
    "trial": Range(0, 9_999_999, "a number from 0 to 9,999,999"),
    "cost_limit": COST_LIMIT,
}


def add_playing(parser: argparse._ArgumentGroup | argparse.ArgumentParser, *names: str) -> None:
    """Declare options of playing.

    Parameters
    ----------
    parser : ArgumentParser or group of one
    *names : str
        Of `OPTIONS`, in the order of the help.
    """
    for name in names:
        parser.add_argument(f"--{name}", **OPTIONS[name])


def check_playing(arguments: argparse.Namespace) -> None:
    """Refuse what is out of range, of the options that the command has declared.

    Raises
    ------
    InputError
        With the first of them.
    """
    declared = {name: item for name, item in RANGES.items() if hasattr(arguments, name)}
    check_ranges(arguments, declared)
    if hasattr(arguments, "seed"):
        check_seed(arguments.seed, "--seed")
