"""`acerl-np replay`: an episode as a page that replays it.

Write one HTML page that replays an episode: vehicles on the floor, tasks that wait, each decision with
what it was chosen from, a chart of the vehicles, and the running figures. --against sets a second
policy beside it, on the same clock and with the same breakdowns. Any browser opens the page; it loads
nothing, and holds the whole record.

POLICY is a file written by acerl-np train, a name (acerl-np list rules shows them), or a rule or policy of
your own, mine.py:NAME. INSTANCE is a task record or a bundled instance. --past shows past assignments, a CSV
file task,vehicle,start as acerl-np records replay reads it, in the place of POLICY or beside it. The
episode is one of those that acerl-np evaluate plays: trial 0 is the first of each seed's. The page shows the
objective at the end.

Examples
--------
  acerl-np replay EDD DMH-01
  acerl-np replay runs/dmh-train-seed0/policy.npz DMH-01 --against STD --out beside.html
  acerl-np replay policy.npz week1.csv --layout floor.json --out week1.html
  acerl-np replay policy.npz week1.csv --layout floor.json --past assignments.csv
  acerl-np replay STD DMH-09 --lookahead 32 --history dmh-train
  acerl-np replay MIX DMH-01 --trial 7 --random-breakdowns 3600,300
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.players import plan_episode, sort_episode
from acerl_np.support.errors import InputError, make_printable
from acerl_np.support.files import show_path

if TYPE_CHECKING:
    from acerl_np.simulation.trace import Trace

DEFAULT_OUT = "replay.html"
ENDINGS = (".html", ".htm")

AGAINST = opt.CommandOption("--against POLICY", "a second one, beside the first")
OUT = opt.CommandOption(
    "--out FILE.html", f"the page (default: {DEFAULT_OUT}, in the place of an earlier page)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    opt.declare(parser, opt.EPISODE, AGAINST, opt.ONE_PAST, OUT, opt.FORCE, *opt.READING)
    opt.declare(parser, *opt.VARYING)
    opt.declare(parser.add_argument_group("lookahead"), *opt.LOOKAHEAD)
    opt.declare(parser, opt.TRIAL, opt.SEED, opt.GREEDY, *opt.GOAL, *opt.COMMITMENT, opt.HORIZON)
    opt.declare(parser, opt.TRUST)


def run(arguments: argparse.Namespace) -> None:
    """Play, write the page and print its name."""
    from acerl_np.pictures.replay import write_replay

    out: str = DEFAULT_OUT if arguments.out is None else arguments.out
    if Path(out).suffix.lower() not in ENDINGS:
        expected = f"expected a name that ends in {ENDINGS[0]}"
        raise InputError(f"--out: read '{make_printable(out)}'; {expected}")
    declare_outputs(arguments, [out], own=arguments.out is None)
    traces = play(arguments)
    write_replay(traces, out)
    print(f"{make_printable(out)}: {', '.join(describe_end(item) for item in traces)}")


def play(arguments: argparse.Namespace) -> list[Trace]:
    """Return the traces that the page shows, past assignments among them."""
    from acerl_np.pictures.replay import MOST

    named = sort_episode(arguments)
    plan = plan_episode(arguments, named._replace(labels=shorten_names(named.labels)))
    episodes = len(plan.seats)
    if episodes > MOST:
        option, more, advice = "past", "", ""
        if arguments.lookahead is not None:
            option, more = "lookahead", " with those that look ahead"
            advice = " (leave out --against)"
        raise InputError(f"--{option}: {episodes} episodes{more}; expected at most {MOST}{advice}")
    return [plan.trace(seat, 0, arguments.trial) for seat in plan.seats]


def shorten_names(names: list[str]) -> list[str]:
    """Return names of files without their folders, unless they would then be the same."""
    short = [make_printable(Path(show_path(name)).name) for name in names]
    return short if len(set(short)) == len(names) else [make_printable(name) for name in names]


def describe_end(trace: Trace) -> str:
    """Return who decided, and makespan and tardiness as the tables of `evaluate` show them."""
    if trace.status != "finished":
        return f"{trace.label} - ({trace.status} at {trace.end} s)"
    return f"{trace.label} {trace.makespan:.1f}/{trace.tardiness:.1f}"
