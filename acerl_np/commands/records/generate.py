"""`acerl-np records generate`: draw records for a floor."""

from __future__ import annotations

import argparse

from acerl_np.commands.common import add_layout
from acerl_np.commands.outputs import add_force
from acerl_np.commands.ranges import Range, check_ranges
from acerl_np.commands.records.writing import (
    check_breakdowns_there,
    declare_records,
    make_name,
    write_made,
)
from acerl_np.support.numbers import check_seed

SUMMARY = "draw records for a floor"

DESCRIPTION = """\
Draw task records for a floor: pickups and deliveries at random among its stations, arrivals in whole
seconds. The same options and seed give the same files.

Stations are what the layout lists as such and all sites of a kind other than "waypoint", "parking" and none;
`acerl-np floor show` lists them. On a floor without any, tasks join all sites but the vehicles' start sites.

A task is due S x its loaded time (way and handling), plus the mean travel time from the other sites to its
pickup, after its arrival, both at the fleet's mean speed. Sites that cannot be reached are left out.
Demands and handling times are uniform: whole numbers between bounds that are both whole.

A folder with a breakdowns.csv is refused: it would replace the layout's breakdowns.
"""

EXAMPLES = """\
examples:
  acerl-np records generate --layout dmh --tasks 30 --rate 60 --count 8 --out made
  acerl-np records generate --layout dmh --tasks 30 --process bursts --burst-size 6 --sites workstation \\
      --seed 1 --out bursts
  acerl-np records generate --layout dmh --tasks 30 --sites st1 st2 warehouse --out made
  acerl-np records generate --layout floor.json --tasks 200 --demand 1 4 --handling-time 10 30 --out made
"""

RANGES = {"count": Range(1, 10_000, "a number from 1 to 10,000")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's arguments."""
    add_layout(parser, required=True)
    parser.add_argument(
        "--tasks", type=int, required=True, metavar="N", help="tasks of each record"
    )
    parser.add_argument(
        "--process",
        choices=("uniform", "poisson", "bursts"),
        default="poisson",
        help="arrivals: independent over N / R hours; exponential gaps; several at once "
        "(default: poisson)",
    )
    parser.add_argument(
        "--rate", type=float, default=60.0, metavar="R", help="tasks per hour (default: 60)"
    )
    parser.add_argument(
        "--burst-size", type=int, default=5, metavar="K", help="tasks of a burst (default: 5)"
    )
    parser.add_argument(
        "--slack",
        type=float,
        default=2.0,
        metavar="S",
        help="factor on the loaded time (default: 2)",
    )
    parser.add_argument(
        "--demand",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="draw demands between these, no more than a vehicle carries (default: 0)",
    )
    parser.add_argument(
        "--handling-time",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="draw handling times between these, s (default: 0)",
    )
    parser.add_argument(
        "--sites",
        nargs="+",
        metavar="SITE",
        help="kinds of sites, names of sites or stations, 'stations', or 'all' for all sites but the "
        "vehicles' start sites (default: stations, if the floor has any, else all)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws (default: 0)")
    parser.add_argument("--count", type=int, default=1, help="number of records (default: 1)")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the records")
    parser.add_argument(
        "--names",
        default="tasks-{k}",
        metavar="PATTERN",
        help="names of the records, {k} a two-digit number from 1 (default: tasks-{k})",
    )
    add_force(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write records that are drawn."""
    from acerl_np.problem.bundled import load_layout
    from acerl_np.problem.generate import generate_record

    check_ranges(arguments, RANGES)
    check_seed(arguments.seed, "--seed")
    check_breakdowns_there(arguments.out, None)
    names = [make_name(arguments.names, {"{k}": f"{k + 1:02d}"}) for k in range(arguments.count)]
    declare_records(arguments, names, "{k}")
    layout = load_layout(arguments.layout)
    options = {
        name: getattr(arguments, name)
        for name in ("process", "rate", "burst_size", "slack", "sites", "seed")
    }
    options["demand"] = arguments.demand and tuple(arguments.demand)
    options["handling_time"] = arguments.handling_time and tuple(arguments.handling_time)
    made = [
        generate_record(layout, arguments.tasks, index=k, name=name, **options)
        for k, name in enumerate(names)
    ]
    write_made(made, arguments.out)
