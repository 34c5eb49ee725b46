"""`acerl-np records`: make, convert and check task records, replay past assignments."""

from __future__ import annotations

import argparse

from acerl_np.commands.records import check, convert, generate, perturb, replay

DESCRIPTION = """\
Make task records, convert and check those of other systems, replay past assignments.

acerl-np records ACTION --help explains an action's options.
"""

EPILOG = """\
examples:
  acerl-np records convert export.csv --layout floor.json --out week1.csv
  acerl-np records check week1.csv --layout floor.json
  acerl-np records generate --layout floor.json --tasks 200 --process poisson --rate 80 --out made
  acerl-np records perturb week1.csv --layout floor.json --magnitude 10 --out noised
  acerl-np records replay week1.csv --past assignments.csv --layout floor.json
"""

ACTIONS = {
    "perturb": perturb,
    "generate": generate,
    "convert": convert,
    "check": check,
    "replay": replay,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, module in ACTIONS.items():
        action = actions.add_parser(
            name,
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            epilog=module.EXAMPLES,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(action)


def run(arguments: argparse.Namespace) -> int:
    """Run the action; return the exit status."""
    ACTIONS[arguments.action].run(arguments)
    return 0
