"""`acerl-np replay`: an episode as a page that replays it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.inputs import report_ignored
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.players import Plan, make_plan, read_goal
from acerl_np.problem.bundled import load_layout
from acerl_np.support.errors import InputError, make_printable
from acerl_np.support.fields import Field
from acerl_np.support.files import show_path

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Playing
    from acerl_np.problem.instance import Instance
    from acerl_np.simulation.trace import Trace

DEFAULT_OUT = "replay.html"
ENDINGS = (".html", ".htm")
LOG = ".jsonl"

OPTIONS: opt.Options = {
    "": (
        opt.Argument(
            "names POLICY+", "one policy or two, then the RECORD; or a log of serve alone"
        ),
    ),
    opt.PLAY: (*opt.LOOKAHEAD, opt.GREEDY, opt.COMMIT, opt.TRAFFIC, opt.HORIZON),
    opt.RECORDS: (
        *opt.READING,
        opt.PAST.but(usage="--past FILE", help="past assignments (task,vehicle,start) to play"),
    ),
    opt.OBJECTIVE: opt.GOAL,
    opt.OUTPUT: (
        opt.OUT.but(usage="-o/--out FILE.html", help=f"the page (default: {DEFAULT_OUT})"),
        opt.FORCE,
    ),
    opt.RUNNING: (
        opt.SEED_OPTION,
        opt.Argument("--trial K", "trial of evaluate, from 0", Field(int, 0, 9_999_999), 0),
    ),
}


def replay(
    policies: Mapping[str, Any],
    record: Instance,
    playing: Playing | None = None,
    *,
    trial: int = 0,
) -> list[Trace]:
    """Play a trial of each policy on a record, and note all that happens.

    Draws and breakdowns are those of the same trial of `evaluate`.

    Parameters
    ----------
    policies : mapping of str to policy
        By their labels: a policy, a rule's name, or a tuple of one `Assignments`.
    record : Instance
    playing : Playing, optional
        Seed, objective and so on.
    trial : int
        From 0 on.

    Returns
    -------
    list of Trace
    """
    from acerl_np.evaluation.tracing import trace_past, trace_policy
    from acerl_np.evaluation.trials import Playing

    playing, found = Playing() if playing is None else playing, []
    how: dict[str, Any] = {"trial": trial, "seed": playing.seed, "horizon": playing.horizon}
    how["objective"] = playing.goal
    for label, policy in policies.items():
        if isinstance(policy, tuple):
            found.append(trace_past(policy[0], label=label, **how))
        else:
            found.append(trace_policy(policy, record, label=label, greedy=playing.greedy, **how))
    return found


def run(arguments: argparse.Namespace) -> None:
    """Write one HTML page that replays an episode.

    It shows the floor, waiting tasks, each decision with its alternatives, and a chart of the vehicles. Any
    browser opens it.

    Examples
    --------
      acerl-np replay EDD DMH-01
      acerl-np replay policy.npz nearest week1.csv --layout floor.json --out week1.html
      acerl-np replay week1.csv --past assignments.csv --layout floor.json
    """
    from acerl_np.pictures.replay import write_replay

    out: str = DEFAULT_OUT if arguments.out is None else arguments.out
    if Path(out).suffix.lower() not in ENDINGS:
        expected = f"expected a name that ends in {ENDINGS[0]}"
        raise InputError(f"--out: read '{make_printable(out)}'; {expected}")
    declare_outputs(arguments, [out], own=arguments.out is None)
    if arguments.names[-1].endswith(LOG):
        traces = [read_log(arguments)]
    else:
        plan = read_plan(arguments)
        traces = replay(plan.policies, plan.records[0], plan.playing, trial=arguments.trial)
    write_replay(traces, out)
    ends = "; ".join(describe_end(item) for item in traces)
    print(f"wrote {make_printable(out)} (open it in a browser): {ends}")


def read_plan(arguments: argparse.Namespace) -> Plan:
    """Return who plays on the record, past assignments among them; refuse more than a page shows."""
    from acerl_np.pictures.replay import MOST

    *policies, record = arguments.names
    past = arguments.past or []
    if len(policies) > 2 or not (policies or past):
        shown = ", ".join(map(make_printable, arguments.names[:3]))
        read = f"read {len(arguments.names)} names ({shown})"
        raise InputError(
            f"{read}; expected POLICY RECORD, two policies and RECORD, or RECORD with --past FILE"
        )
    labels = shorten_names([*policies, *past[:1]])
    players = dict(zip(labels, [*policies, *([past] if past else [])], strict=True))
    plan = make_plan(arguments, players, records=[record])
    if len(plan.records) > 1:
        n = len(plan.records)
        raise InputError(f"{record}: {n} records; expected one (records convert splits them)")
    episodes = len(plan.policies)
    if episodes > MOST:
        option, more, advice = "past", "", ""
        if arguments.lookahead is not None:
            option, more = "lookahead", " with those that look ahead"
            advice = " (leave one policy out)"
        raise InputError(f"--{option}: {episodes} episodes{more}; expected at most {MOST}{advice}")
    return plan


def read_log(arguments: argparse.Namespace) -> Trace:
    """Return the trace of what a log of acerl-np serve tells, with the breakdowns that were."""
    from acerl_np.evaluation.tracing import trace_past
    from acerl_np.live.daybook import read_audit

    *policies, log = arguments.names
    if policies or arguments.past or arguments.layout is None:
        raise InputError(f"{make_printable(log)}: a log; expected it alone, and its --layout")
    floor = load_layout(arguments.layout).with_random_breakdowns(None)
    with report_ignored():
        past = read_audit(log, floor)
    return trace_past(past, trial=0, label=shorten_names([log])[0], objective=read_goal(arguments))


def shorten_names(names: list[str]) -> list[str]:
    """Return names of files without their folders, unless they would then be the same."""
    short = [make_printable(Path(show_path(name)).name) for name in names]
    return short if len(set(short)) == len(names) else [make_printable(name) for name in names]


def describe_end(trace: Trace) -> str:
    """Return who decided, and makespan and tardiness."""
    if trace.status != "finished":
        return f"{trace.label} - ({trace.status} at {trace.end} s)"
    return f"{trace.label}, makespan {trace.makespan:.1f} s, tardiness {trace.tardiness:.1f} s"


ACTION = opt.Action(run, OPTIONS)
