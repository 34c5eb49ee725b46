"""`acerl-np plot`: pictures of trainings, episodes, comparisons and policies."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.commands.common import (
    add_random_breakdowns,
    add_reading,
    add_records,
    load_instances,
    report_ignored,
    report_unfinished,
)
from acerl_np.commands.curves import PICTURE, draw_runs
from acerl_np.commands.outputs import add_force, declare_outputs
from acerl_np.commands.players import add_fit, check_fit, find_policy, seat_policies
from acerl_np.commands.playing import add_playing, check_playing
from acerl_np.commands.policy import add_measuring, measure
from acerl_np.support.errors import InputError, PolicyError, PolicyWarning, make_printable

if TYPE_CHECKING:
    from acerl_np.simulation.trace import Trace

DESCRIPTION = """\
Draw pictures with matplotlib (pip install 'acerl_np[plot]'). The ending of --out, png, svg or pdf, says in
which format; the same input gives the same file.
"""

EPILOG = """\
examples:
  acerl-np plot curves runs/three runs/other --out curves.svg
  acerl-np plot gantt runs/three/policy.npz DMH-01
  acerl-np plot gantt week1.csv --layout floor.json --past assignments.csv
  acerl-np plot floor EDD week1.csv --layout floor.json --out traffic.pdf
  acerl-np plot compare runs/three/policy.npz EDD STD --suite dmh-test
  acerl-np plot sampler runs/three
  acerl-np plot weights policy.npz
"""

KINDS = {
    "curves": (
        "makespan and tardiness as training went on",
        """\
Draw makespan and tardiness against decisions, the mean of the records and each of them: from curves.csv, or
from history.csv where a run took no looks. A folder is a run's, that of --seeds (one line, the mean of the
seeds, with a band of a standard deviation), or that of a study (a line for each policy; if it holds several
studies, name the file STUDY-curves.csv). On the paper's records its figures stand beside the lines.
""",
    ),
    "gantt": (
        "what each vehicle did in an episode",
        """\
Draw a row of bars for each vehicle: ways to pickups, loaded ways, those of late tasks, breakdowns. The
episode is a trial of acerl-np evaluate, or with --past what past assignments led to.
""",
    ),
    "floor": (
        "traffic on the floor in an episode",
        """\
Draw the floor with each edge as wide and as dark as it was busy in an episode. The episode is a trial of
acerl-np evaluate, or with --past what past assignments led to.
""",
    ),
    "compare": (
        "policies beside each other on the same records",
        """\
Draw makespan and tardiness of policies, a row each: every record's mean, joined from policy to policy, and
the mean of all with the standard error of its difference to the first policy, record by record.
""",
    ),
    "sampler": (
        "which records the sampler chose",
        """\
Draw each record's share of the episodes over the generations, beside the even share: from history.csv.
""",
    ),
    "weights": (
        "what an index policy has learned",
        """\
Draw the weights of a linear index policy, the largest first. With hidden units a weight alone means little:
then what each feature is worth is drawn, as acerl-np policy show measures it.
""",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for name, (summary, description) in KINDS.items():
        kind = kinds.add_parser(
            name,
            help=summary,
            description=description,
            epilog=EPILOG,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == "curves":
            kind.add_argument(
                "runs", nargs="+", metavar="RUN_FOLDER", help="folders, or a study's curves"
            )
            kind.add_argument(
                "--only",
                nargs="+",
                metavar="LABEL",
                default=[],
                help="lines to draw (default: all)",
            )
        elif name == "sampler":
            kind.add_argument("folder", metavar="RUN_FOLDER", help="of a run, or of --seeds")
        elif name == "compare":
            _add_comparison(kind)
        elif name == "weights":
            _add_weights(kind)
        else:
            _add_episode(kind)
        kind.add_argument(
            "--out",
            metavar="FILE",
            help=f"picture to write: png, svg or pdf (default: {DEFAULTS[name]}, in the place of an earlier "
            "picture)",
        )
        add_force(kind)


DEFAULTS = {
    "curves": f"{PICTURE} in the run's folder, of several in this one",
    "gantt": "gantt.png",
    "floor": "traffic.png",
    "compare": "compare.png",
    "sampler": "sampler.png in the run's folder",
    "weights": "weights.png beside the policy",
}


def _add_episode(kind: argparse.ArgumentParser) -> None:
    kind.add_argument(
        "names",
        nargs="+",
        metavar="POLICY INSTANCE",
        help="policy.npz or a rule's name, and a task record or bundled instance; with --past only that",
    )
    kind.add_argument(
        "--past", metavar="ASSIGNMENTS.csv", help="past assignments (task,vehicle,start)"
    )
    add_reading(kind)
    add_random_breakdowns(kind)
    add_playing(kind, "trial", "seed", "greedy")


def _add_comparison(kind: argparse.ArgumentParser) -> None:
    kind.add_argument("policies", nargs="+", metavar="POLICY", help="policy.npz or a name")
    add_records(kind)
    add_random_breakdowns(kind)
    add_fit(kind)
    add_playing(kind, "trials", "seed", "greedy", "cost-limit", "horizon", "threads")


def _add_weights(kind: argparse.ArgumentParser) -> None:
    kind.add_argument("file", metavar="POLICY.npz", help="an index policy")
    add_measuring(kind)


def run(arguments: argparse.Namespace) -> int:
    """Draw; return the exit status."""
    from acerl_np.support.workers import check_threads

    check_playing(arguments)
    check_threads(getattr(arguments, "threads", None))
    draw = {
        "curves": _draw_curves,
        "gantt": _draw_episode,
        "floor": _draw_episode,
        "compare": _draw_comparison,
        "sampler": _draw_sampler,
        "weights": _draw_weights,
    }[arguments.kind]
    print(make_printable(str(draw(arguments))))
    return 0


def _choose_out(arguments: argparse.Namespace, default: Path) -> Path:
    """Return the picture's name, unless it must not be written; nothing is played in vain.

    Raises
    ------
    InputError
        If the ending is none of a picture, or the file is read or exists.
    MissingExtraError
        If matplotlib is not installed.
    """
    from acerl_np.pictures.drawing import check_extra, check_form

    out = default if arguments.out is None else Path(arguments.out)
    check_form(out)
    declare_outputs(arguments, [out], own=arguments.out is None)
    check_extra()
    return out


def _draw_curves(arguments: argparse.Namespace) -> Path:
    from acerl_np.pictures.runs import find_study

    default = Path(PICTURE)
    if len(arguments.runs) == 1:
        study = find_study(arguments.runs[0])
        default = Path(arguments.runs[0]) / PICTURE if study is None else study.with_suffix(".png")
    out = _choose_out(arguments, default)
    draw_runs(arguments.runs, out, arguments.only)
    return out


def _draw_episode(arguments: argparse.Namespace) -> Path:
    from acerl_np.pictures.gantt import draw_gantt
    from acerl_np.pictures.maps import draw_traffic

    default = "gantt.png" if arguments.kind == "gantt" else "traffic.png"
    out = _choose_out(arguments, Path(default))
    trace = _play(arguments)
    if arguments.kind == "gantt":
        draw_gantt(out, trace)
    else:
        draw_traffic(out, trace)
    return out


def _play(arguments: argparse.Namespace) -> Trace:
    """Return the episode that the arguments name."""
    from acerl_np.evaluation.tracing import trace_past, trace_policy
    from acerl_np.problem.assignments import read_assignments

    names, past = arguments.names, arguments.past
    expected = ("INSTANCE",) if past is not None else ("POLICY", "INSTANCE")
    if len(names) != len(expected):
        raise InputError(
            f"read {len(names)} names ({', '.join(map(make_printable, names[:3]))}); expected "
            f"{' and '.join(expected)}"
        )
    [instance] = load_instances(argparse.Namespace(**vars(arguments), tasks=names[-1:], suite=None))
    own = {"trial": arguments.trial, "seed": arguments.seed}
    if past is not None:
        with report_ignored():
            assignments = read_assignments(past, instance, date_format=arguments.date_format)
        return trace_past(assignments, **own)
    policy = find_policy(names[0])
    label = policy if isinstance(policy, str) else names[0]
    check_fit([label], [policy], [instance])
    return trace_policy(policy, instance, **own, greedy=arguments.greedy, label=label)


def _draw_comparison(arguments: argparse.Namespace) -> Path:
    from acerl_np.evaluation.trials import evaluate_policy
    from acerl_np.pictures.compare import draw_comparison
    from acerl_np.pictures.drawing import MAX_LINES
    from acerl_np.problem.instance import check_names

    if len(arguments.policies) > MAX_LINES:
        raise InputError(f"{len(arguments.policies)} policies; expected 1 to {MAX_LINES}")
    out = _choose_out(arguments, Path("compare.png"))
    policies = [find_policy(name) for name in arguments.policies]
    instances = load_instances(arguments, "dmh-train")
    check_names(instances)
    names = [make_printable(name) for name in arguments.policies]
    rows = seat_policies(arguments, policies, names, instances)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)  # said above, by the files' names
        results = [
            evaluate_policy(
                policy,
                instances,
                trials=arguments.trials,
                seed=arguments.seed,
                greedy=arguments.greedy,
                cost_limit=arguments.cost_limit,
                threads=arguments.threads,
                horizon=arguments.horizon,
            )
            for _, policy in rows
        ]
    shown = [row.label for row in rows]
    draw_comparison(out, shown, results)
    for label, trials in zip(shown, results, strict=True):
        report_unfinished(label, trials)
    return out


def _draw_sampler(arguments: argparse.Namespace) -> Path:
    from acerl_np.pictures.runs import find_runs, read_counts
    from acerl_np.pictures.trainings import draw_sampler

    folder = Path(arguments.folder)
    out = _choose_out(arguments, folder / "sampler.png")
    runs = [read_counts(own) for own in find_runs(folder)]
    draw_sampler(out, folder.resolve().name, runs)
    return out


def _draw_weights(arguments: argparse.Namespace) -> Path:
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
