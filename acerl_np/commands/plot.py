"""`acerl-np plot`: pictures of trainings, episodes, comparisons and policies.

Draw pictures with matplotlib (pip install 'acerl_np[plot]'). The ending of --out, png, svg or pdf, says in
which format; the same input gives the same file.

Examples
--------
  acerl-np plot curves runs/three runs/other --out curves.svg
  acerl-np plot gantt runs/three/policy.npz DMH-01
  acerl-np plot gantt week1.csv --layout floor.json --past assignments.csv
  acerl-np plot floor EDD week1.csv --layout floor.json --out traffic.pdf
  acerl-np plot compare runs/three/policy.npz EDD STD --suite dmh-test
  acerl-np plot sampler runs/three
  acerl-np plot weights policy.npz
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.commands import options as opt
from acerl_np.commands.common import load_instances, report_ignored, report_unfinished
from acerl_np.commands.curves import PICTURE, draw_runs
from acerl_np.commands.outputs import declare_outputs
from acerl_np.commands.players import (
    check_fit,
    find_policy,
    load_episode,
    play_rows,
    read_playing,
    seat_policies,
    take_names,
)
from acerl_np.commands.policy import MEASURING, measure
from acerl_np.support.errors import InputError, PolicyError, make_printable

if TYPE_CHECKING:
    from acerl_np.simulation.trace import Trace

DEFAULTS = {
    "curves": f"{PICTURE} in the run's folder, of several in this one",
    "gantt": "gantt.png",
    "floor": "traffic.png",
    "compare": "compare.png",
    "sampler": "sampler.png in the run's folder",
    "weights": "weights.png beside the policy",
}


EPISODES = (
    opt.EPISODE,
    opt.ONE_PAST,
    *opt.READING,
    opt.RANDOM_BREAKDOWNS,
    opt.TRIAL,
    opt.SEED,
    opt.GREEDY,
)
RUN_FOLDER = opt.CommandOption(
    "folder", "of a run, or of --seeds", metavar="RUN_FOLDER", positional=True
)
OPTIONS: dict[str, tuple[opt.CommandOption, ...]] = {
    "curves": (
        RUN_FOLDER.but(name="runs", help="folders, or a study's curves", nargs="+"),
        opt.CommandOption(
            "only", "lines to draw (default: all)", metavar="LABEL", nargs="+", default=[]
        ),
    ),
    "gantt": EPISODES,
    "floor": EPISODES,
    "compare": (*opt.NAMES, *opt.READING, opt.RANDOM_BREAKDOWNS, opt.FIT, *opt.PLAYING),
    "sampler": (RUN_FOLDER,),
    "weights": (
        opt.CommandOption("file", "an index policy", metavar="POLICY.npz", positional=True),
        *MEASURING,
    ),
}
"""Of each kind."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for name, draw in KINDS.items():
        help, _, description = inspect.cleandoc(draw.__doc__ or "").partition("\n\n")
        kind = kinds.add_parser(
            name,
            help=help.removeprefix("Draw ").rstrip("."),
            description=description,
            epilog=parser.epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        out = (
            f"picture to write: png, svg or pdf (default: {DEFAULTS[name]}, in the place of an earlier "
            "picture)"
        )
        opt.declare(kind, *OPTIONS[name], opt.CommandOption("out", out, metavar="FILE"), opt.FORCE)


def run(arguments: argparse.Namespace) -> int:
    """Draw; return the exit status."""
    print(make_printable(str(KINDS[arguments.kind](arguments))))
    return 0


def _choose_out(arguments: argparse.Namespace, default: Path) -> Path:
    """Return the picture's name, unless it must not be written; nothing is played in vain."""
    from acerl_np.pictures.drawing import check_extra, check_form

    out = default if arguments.out is None else Path(arguments.out)
    check_form(out)
    declare_outputs(arguments, [out], own=arguments.out is None)
    check_extra()
    return out


def draw_curves(arguments: argparse.Namespace) -> Path:
    """Draw makespan and tardiness as training went on.

    Draw makespan and tardiness against decisions, the mean of the records and each of them: from
    curves.csv, or from history.csv where a run took no looks. A folder is a run's, that of --seeds (one
    line, the mean of the seeds, with a band of a standard deviation), or that of a study (a line for each
    policy; if it holds several studies, name the file STUDY-curves.csv). On the paper's records its
    figures stand beside the lines.
    """
    from acerl_np.pictures.runs import find_study

    default = Path(PICTURE)
    if len(arguments.runs) == 1:
        study = find_study(arguments.runs[0])
        default = Path(arguments.runs[0]) / PICTURE if study is None else study.with_suffix(".png")
    out = _choose_out(arguments, default)
    draw_runs(arguments.runs, out, arguments.only)
    return out


def draw_vehicles(arguments: argparse.Namespace) -> Path:
    """Draw what each vehicle did in an episode.

    Draw a row of bars for each vehicle: ways to pickups, loaded ways, those of late tasks, breakdowns.
    The episode is a trial of acerl-np evaluate, or with --past what past assignments led to.
    """
    from acerl_np.pictures.gantt import draw_gantt

    out = _choose_out(arguments, Path("gantt.png"))
    draw_gantt(out, _trace_episode(arguments))
    return out


def draw_floor(arguments: argparse.Namespace) -> Path:
    """Draw traffic on the floor in an episode.

    Draw the floor with each edge as wide and as dark as it was busy in an episode. The episode is a trial
    of acerl-np evaluate, or with --past what past assignments led to.
    """
    from acerl_np.pictures.maps import draw_traffic

    out = _choose_out(arguments, Path("traffic.png"))
    draw_traffic(out, _trace_episode(arguments))
    return out


def _trace_episode(arguments: argparse.Namespace) -> Trace:
    from acerl_np.evaluation.tracing import trace_past, trace_policy
    from acerl_np.problem.assignments import read_assignments

    names, instance = load_episode(arguments)
    own = {"trial": arguments.trial, "seed": arguments.seed}
    past = arguments.past
    if past is not None:
        if names:
            shown = ", ".join(map(make_printable, arguments.names))
            raise InputError(f"read {len(arguments.names)} names ({shown}); expected INSTANCE")
        with report_ignored():
            assignments = read_assignments(past, instance, date_format=arguments.date_format)
        return trace_past(assignments, **own)
    policy = find_policy(names[0])
    label = policy if isinstance(policy, str) else names[0]
    check_fit([label], [policy], [instance])
    return trace_policy(policy, instance, **own, greedy=arguments.greedy, label=label)


def compare(arguments: argparse.Namespace) -> Path:
    """Draw policies beside each other on the same records.

    Draw makespan and tardiness of policies, a row each: every record's mean, joined from policy to
    policy, and the mean of all with the standard error of its difference to the first policy, record by
    record.
    """
    from acerl_np.pictures.compare import draw_comparison
    from acerl_np.pictures.drawing import MAX_LINES
    from acerl_np.problem.instance import check_names

    names = take_names(arguments)
    if len(names) > MAX_LINES:
        raise InputError(f"{len(names)} policies; expected 1 to {MAX_LINES}")
    out = _choose_out(arguments, Path("compare.png"))
    policies = [find_policy(name) for name in names]
    instances = load_instances(arguments, "dmh-train")
    check_names(instances)
    rows = seat_policies(arguments, policies, list(map(make_printable, names)), instances)
    results, _ = play_rows(read_playing(arguments), rows, instances)
    shown = [row.label for row in rows]
    draw_comparison(out, shown, results)
    for label, trials in zip(shown, results, strict=True):
        report_unfinished(label, trials)
    return out


def draw_shares(arguments: argparse.Namespace) -> Path:
    """Draw which records the sampler chose.

    Draw each record's share of the episodes over the generations, beside the even share: from
    history.csv.
    """
    from acerl_np.pictures.runs import find_runs, read_counts
    from acerl_np.pictures.trainings import draw_sampler

    folder = Path(arguments.folder)
    out = _choose_out(arguments, folder / "sampler.png")
    runs = [read_counts(own) for own in find_runs(folder)]
    draw_sampler(out, folder.resolve().name, runs)
    return out


def draw_learned(arguments: argparse.Namespace) -> Path:
    """Draw what an index policy has learned.

    Draw the weights of a linear index policy, the largest first. With hidden units a weight alone means
    little: then what each feature is worth is drawn, as acerl-np policy show measures it.
    """
    from acerl_np.evaluation.importance import measure_importance
    from acerl_np.pictures.weights import draw_weights
    from acerl_np.policies.files import load_policy
    from acerl_np.policies.index import IndexPolicy

    file = arguments.file
    out = _choose_out(arguments, Path(file).parent / "weights.png")
    policy = load_policy(file)
    if not isinstance(policy, IndexPolicy):
        raise PolicyError(
            f"{make_printable(file)}: read a policy of form {policy.form}, whose weights have no names; "
            "expected an index policy (acerl-np train --preset best)"
        )
    # The weights of a linear policy speak for themselves.
    importance = measure(arguments, policy) if policy.shape.hidden else measure_importance(policy)
    draw_weights(out, file, importance)
    return out


KINDS: dict[str, Callable[[argparse.Namespace], Path]] = {
    "curves": draw_curves,
    "gantt": draw_vehicles,
    "floor": draw_floor,
    "compare": compare,
    "sampler": draw_shares,
    "weights": draw_learned,
}
"""Their docstrings are their help."""
