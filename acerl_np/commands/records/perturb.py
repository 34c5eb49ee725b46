"""`acerl-np records perturb`: add noise to arrival times."""

from __future__ import annotations

import argparse

from acerl_np.commands.common import add_data_arguments, load_instances
from acerl_np.commands.outputs import add_force
from acerl_np.commands.records.writing import (
    check_breakdowns_there,
    declare_records,
    make_name,
    write_made,
)
from acerl_np.support.errors import InputError
from acerl_np.support.numbers import check_seed

SUMMARY = "add noise to arrival times"

DESCRIPTION = """\
Add uniform whole-number noise to the arrival times, cut at 0: noised variants of known records, as in the
paper's test suites. Tasks that arrive at 0 stay there unless --zeros move is given. The same seed gives
the same files.

Timestamps stay timestamps, with the same time zero. Breakdowns of the records' own (breakdowns.csv beside
them, or --breakdowns) are written as breakdowns.csv beside the new ones; random ones stay the layout's.
"""

EXAMPLES = """\
examples:
  acerl-np records perturb week1.csv --layout floor.json --magnitude 10 --out noised
  acerl-np records perturb --suite dmh-train --magnitude 5 --first 9 --names 'DMH-{k}' --out test
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's arguments."""
    add_data_arguments(parser)
    parser.add_argument(
        "--magnitude", type=int, required=True, metavar="N", help="noise in -N .. N, s"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise (default: 0)")
    parser.add_argument(
        "--zeros",
        choices=("keep", "move"),
        default="keep",
        help="tasks that arrive at 0 stay there, or move like the others (default: keep)",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the new records")
    parser.add_argument(
        "--names",
        default="{name}-n{n}",
        metavar="PATTERN",
        help="names of the new records: {name} the old one, {n} the magnitude, {k} a two-digit number "
        "(default: {name}-n{n})",
    )
    parser.add_argument("--first", type=int, default=1, help="first {k} (default: 1)")
    add_force(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write perturbed records."""
    from acerl_np.problem.perturb import perturb

    check_seed(arguments.seed, "--seed")
    instances = load_instances(arguments)
    breakdowns = read_own_breakdowns(arguments)
    n, options = arguments.magnitude, {"seed": arguments.seed, "zeros": arguments.zeros}
    names = []
    for k, instance in enumerate(instances):
        values = {"{name}": instance.name, "{n}": str(n), "{k}": f"{arguments.first + k:02d}"}
        names.append(make_name(arguments.names, values))
    declare_records(arguments, names, "{name} or {k}")
    made = [
        perturb(instance, n, name=name, **options)
        for instance, name in zip(instances, names, strict=True)
    ]
    write_made(made, arguments.out, breakdowns)


def read_own_breakdowns(arguments: argparse.Namespace) -> bytes | None:
    """Return what must stand in the file of breakdowns beside new variants, None if those of the layout hold.

    One file holds for all records of a folder, so records with unlike files are refused.
    """
    from acerl_np.problem.bundled import find_breakdowns
    from acerl_np.problem.records import BREAKDOWN_COLUMNS, BREAKDOWNS_FILE, NO_BREAKDOWNS
    from acerl_np.support.files import read_bytes

    content: bytes | None
    if arguments.breakdowns == NO_BREAKDOWNS:
        content = f"{','.join(BREAKDOWN_COLUMNS)}\n".encode()
    elif arguments.breakdowns is not None:
        content = read_bytes(arguments.breakdowns, InputError, streams=True)
    else:
        found: dict[bytes | None, str] = {}
        for task in arguments.tasks:
            beside = find_breakdowns(task)
            found.setdefault(None if beside is None else read_bytes(beside, InputError), task)
        if len(found) > 1:
            first, second, *_ = found.values()
            raise InputError(
                f"{second}: other breakdowns ({BREAKDOWNS_FILE} beside it) than those of {first}, and one "
                "folder has one such file; expected records with the same, or --breakdowns"
            )
        content = next(iter(found), None)
    check_breakdowns_there(arguments.out, content)
    return content
