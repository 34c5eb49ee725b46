"""`acerl-np records`: make task records from others."""

from __future__ import annotations

import argparse
from pathlib import Path

from acerl_np.commands.common import add_data_arguments, load_instances, make_folder
from acerl_np.errors import InputError

DESCRIPTION = """\
Make task records from others.

perturb adds uniform whole-number noise to every arrival time, cut at 0: unseen variants of known
records, as in the paper's test suites. The same seed gives the same files.
"""

EPILOG = """\
examples:
  acerl-np records perturb week1.csv --layout floor.json --magnitude 10 --out noised
  acerl-np records perturb --suite dmh-train --magnitude 5 --first 9 --names 'DMH-{k}' --out test
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    perturb = actions.add_parser(
        "perturb",
        help="add noise to arrival times",
        description=DESCRIPTION,
        epilog=EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_data_arguments(perturb)
    perturb.add_argument(
        "--magnitude", type=int, required=True, metavar="N", help="noise in -N .. N, s"
    )
    perturb.add_argument("--seed", type=int, default=0, help="seed of the noise (default: 0)")
    perturb.add_argument("--out", required=True, metavar="DIR", help="folder for the new records")
    perturb.add_argument(
        "--names",
        default="{name}-n{n}",
        metavar="PATTERN",
        help="names of the new records: {name} the old one, {n} the magnitude, {k} a two-digit number "
        "(default: {name}-n{n})",
    )
    perturb.add_argument("--first", type=int, default=1, help="first {k} (default: 1)")


def run(arguments: argparse.Namespace) -> int:
    """Write the perturbed records; return the exit status."""
    from acerl_np.problem.perturb import perturb_arrivals, write_record

    if not 0 <= arguments.seed < 2**63:
        raise InputError(
            f"--seed: read {arguments.seed}; expected a whole number from 0 to 2**63 - 1"
        )
    instances = load_instances(arguments)
    made = []
    for k, instance in enumerate(instances):
        name = (
            arguments.names.replace("{name}", instance.name)
            .replace("{n}", str(arguments.magnitude))
            .replace("{k}", f"{arguments.first + k:02d}")
        )
        if not name or name in {".", ".."} or "/" in name or "\\" in name:
            raise InputError(f"--names: read '{name}'; expected the name of a file")
        made.append(perturb_arrivals(instance, arguments.magnitude, seed=arguments.seed, name=name))
    names = [instance.name for instance in made]
    if len(set(names)) < len(names):
        raise InputError(
            f"--names: '{arguments.names}' gives one name twice; expected {{name}} or {{k}}"
        )
    folder = make_folder(arguments.out)
    for instance in made:
        path = Path(folder) / f"{instance.name}.csv"
        write_record(instance, path)
        print(path)
    return 0
