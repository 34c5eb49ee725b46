"""`acerl-np replay`: an episode as a page that replays it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.commands.ahead import RANGES, add_lookahead, compile_lookahead, look_ahead
from acerl_np.commands.common import (
    add_random_breakdowns,
    add_reading,
    load_instances,
    report_ignored,
)
from acerl_np.commands.outputs import add_force, declare_outputs
from acerl_np.commands.players import Row, add_fit, find_policy, seat_policies
from acerl_np.commands.playing import add_playing, check_playing
from acerl_np.commands.ranges import check_ranges
from acerl_np.support.errors import InputError, make_printable
from acerl_np.support.files import is_stream, show_path

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance
    from acerl_np.simulation.trace import Trace

DEFAULT_OUT = "replay.html"
ENDINGS = (".html", ".htm")

DESCRIPTION = """\
Write one HTML page that replays an episode: vehicles on the floor, tasks that wait, each decision with
what it was chosen from, a chart of the vehicles, and the running figures. --against sets a second
policy beside it, on the same clock and with the same breakdowns. Any browser opens the page; it loads
nothing, and holds the whole record.

POLICY is a file written by acerl-np train, a name (FCFS, EDD, NVF, STD, LWT, AHP, MIX, Random, Static), or
past assignments: a CSV file task,vehicle,start as acerl-np records replay reads it. INSTANCE is a task
record or a bundled instance. The episode is one of those that acerl-np evaluate plays: trial 0 is the
first of each seed's. --cost-limit is what lookahead and Static keep to.
"""

EPILOG = """\
examples:
  acerl-np replay EDD DMH-01
  acerl-np replay runs/dmh-train-seed0/policy.npz DMH-01 --against STD --out beside.html
  acerl-np replay policy.npz week1.csv --layout floor.json --out week1.html
  acerl-np replay policy.npz week1.csv --layout floor.json --against assignments.csv
  acerl-np replay STD DMH-09 --lookahead 32 --history dmh-train
  acerl-np replay MIX DMH-01 --trial 7 --random-breakdowns 3600,300
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    parser.add_argument("policy", metavar="POLICY", help="policy.npz, a name or assignments.csv")
    parser.add_argument(
        "tasks", nargs=1, metavar="INSTANCE", help="a task record (CSV) or a bundled instance"
    )
    parser.add_argument("--against", metavar="POLICY", help="a second one, beside the first")
    parser.add_argument(
        "--out",
        metavar="FILE.html",
        help=f"the page (default: {DEFAULT_OUT}, in the place of an earlier page)",
    )
    add_force(parser)
    add_reading(parser)
    add_fit(parser)
    add_random_breakdowns(parser)
    add_lookahead(parser)
    add_playing(parser, "trial", "seed", "greedy", "cost-limit", "horizon")
    parser.set_defaults(suite=None, threads=None)


def run(arguments: argparse.Namespace) -> int:
    """Play, write the page and print its name; return the exit status."""
    check_playing(arguments)
    check_ranges(arguments, RANGES)
    names = [name for name in (arguments.policy, arguments.against) if name is not None]
    out = choose_out(arguments)
    instances = load_instances(arguments)
    traces = play(arguments, names, instances[0])
    from acerl_np.pictures.replay import write_replay

    write_replay(traces, out)
    print(f"{make_printable(out)}: {', '.join(describe_end(item) for item in traces)}")
    return 0


def choose_out(arguments: argparse.Namespace) -> str:
    """Return the page's name, unless it is none of a page or must not be written.

    Raises
    ------
    InputError
        Before anything is played.
    """
    out: str = DEFAULT_OUT if arguments.out is None else arguments.out
    if Path(out).suffix.lower() not in ENDINGS:
        raise InputError(
            f"--out: read '{make_printable(out)}'; expected a name that ends in {ENDINGS[0]}"
        )
    declare_outputs(arguments, [out], own=arguments.out is None)
    return out


def play(arguments: argparse.Namespace, names: list[str], instance: Instance) -> list[Trace]:
    """Return the traces that the page shows, past assignments among them.

    Raises
    ------
    InputError
        If they are more than two.
    """
    from acerl_np.evaluation.tracing import trace_past
    from acerl_np.pictures.replay import MOST
    from acerl_np.problem.assignments import read_assignments

    with report_ignored():
        recorded = {
            k: read_assignments(name, instance, date_format=arguments.date_format)
            for k, name in enumerate(names)
            if is_past(name)
        }
    policies = [name for name in names if not is_past(name)]
    rows = load_rows(arguments, policies, instance)
    if len(rows) + len(recorded) > MOST:
        raise InputError(
            f"--lookahead: {len(rows) + len(recorded)} episodes with those that look ahead; "
            f"expected at most {MOST} (leave out --against)"
        )
    compile_lookahead(rows)
    traces = [trace_row(arguments, row, instance) for row in rows]
    for k, assignments in recorded.items():
        label = shorten_names(names)[k]
        shown = trace_past(
            assignments,
            trial=arguments.trial,
            seed=arguments.seed,
            horizon=arguments.horizon,
            label=label,
        )
        traces.insert(min(k, len(traces)), shown)
    return traces


def is_past(name: str) -> bool:
    """Whether a name is that of past assignments: of a table, a pipe or the standard input."""
    return name.lower().endswith(".csv") or is_stream(name)


def load_rows(arguments: argparse.Namespace, names: list[str], instance: Instance) -> list[Row]:
    """Return the policies with their labels, and with --lookahead those that look ahead.

    Raises
    ------
    InputError
        If a policy is unknown, cannot be read or does not fit.
    """
    policies = [find_policy(name) for name in names]
    rows = seat_policies(arguments, policies, shorten_names(names), [instance])
    return look_ahead(arguments, rows, [instance])


def shorten_names(names: list[str]) -> list[str]:
    """Return names of files without their folders, unless they would then be the same."""
    short = [make_printable(Path(show_path(name)).name) for name in names]
    return short if len(set(short)) == len(names) else [make_printable(name) for name in names]


def trace_row(arguments: argparse.Namespace, row: Row, instance: Instance) -> Trace:
    """Play the trial of one policy."""
    from acerl_np.evaluation.tracing import trace_policy

    return trace_policy(
        row.policy,
        instance,
        trial=arguments.trial,
        seed=arguments.seed,
        greedy=arguments.greedy,
        horizon=arguments.horizon,
        label=row.label,
    )


def describe_end(trace: Trace) -> str:
    """Return who decided, and makespan and tardiness as the tables of `evaluate` show them."""
    if trace.status != "finished":
        return f"{trace.label} - ({trace.status} at {trace.end} s)"
    return f"{trace.label} {trace.makespan:.1f}/{trace.tardiness:.1f}"
