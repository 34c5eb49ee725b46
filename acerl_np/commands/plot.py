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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared import players
from acerl_np.commands.shared.curves import PICTURE, draw_runs
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.progress import report_unfinished
from acerl_np.pictures.runs import find_runs, find_study, read_counts
from acerl_np.support.errors import InputError, PolicyError, make_printable
from acerl_np.support.own import trusting

if TYPE_CHECKING:
    from acerl_np.simulation.trace import Trace


@contextmanager
def _picture(arguments: argparse.Namespace, default: str | Path) -> Iterator[Path]:
    """Return the picture's name, and print it when it is drawn.

    What must not be written, or cannot be, is refused: nothing is played in vain.
    """
    from acerl_np.pictures.drawing import check_extra, check_form

    out = Path(default if arguments.out is None else arguments.out)
    check_form(out)
    usual = arguments.out is None
    # Who reads in the default's folder says what lacks.
    declare_outputs(arguments, [out], folder=out.parent if usual else None, own=usual)
    check_extra()
    yield out
    print(make_printable(str(out)))


def draw_curves(arguments: argparse.Namespace) -> None:
    """Draw makespan and tardiness as training went on.

    Draw makespan, or the objective of the training, and tardiness against decisions, the mean of the
    records and each of them: from curves.csv, or from history.csv where a run took no looks. A folder is a
    run's, that of --seeds (one line, the mean of the seeds, with a band of a standard deviation), or that of
    a study (a line for each policy; if it holds several studies, name the file STUDY-curves.csv). On the
    paper's records its figures stand beside the lines.
    """
    default = Path(PICTURE)
    if len(arguments.runs) == 1:
        study = find_study(arguments.runs[0])
        default = Path(arguments.runs[0]) / PICTURE if study is None else study.with_suffix(".png")
    with _picture(arguments, default) as out:
        draw_runs(arguments.runs, out, arguments.only)


def draw_vehicles(arguments: argparse.Namespace) -> None:
    """Draw what each vehicle did in an episode.

    Draw a row of bars for each vehicle: ways to pickups, loaded ways, those of late tasks, breakdowns; on
    floors that have them charging, queues for it, ways to charge or park, and call-backs, too.
    The episode is a trial of acerl-np evaluate, or with --past what past assignments led to.
    """
    from acerl_np.pictures.gantt import draw_gantt

    with _picture(arguments, "gantt.png") as out:
        draw_gantt(out, _trace_episode(arguments))


def draw_floor(arguments: argparse.Namespace) -> None:
    """Draw traffic on the floor in an episode.

    Draw the floor with each edge as wide and as dark as it was busy in an episode. The episode is a trial
    of acerl-np evaluate, or with --past what past assignments led to.
    """
    from acerl_np.pictures.maps import draw_traffic

    with _picture(arguments, "traffic.png") as out:
        draw_traffic(out, _trace_episode(arguments))


def _trace_episode(arguments: argparse.Namespace) -> Trace:
    if arguments.past is not None and len(arguments.names) > 1:
        shown = ", ".join(map(make_printable, arguments.names))
        raise InputError(f"read {len(arguments.names)} names ({shown}); expected INSTANCE")
    named = players.sort_episode(arguments)
    if arguments.past is not None:
        named = named._replace(labels=["past assignments"])
    plan = players.plan_episode(arguments, named)
    return plan.trace(plan.seats[0], 0, arguments.trial)


def compare(arguments: argparse.Namespace) -> None:
    """Draw policies beside each other on the same records.

    Draw objective and cost of policies (the makespan and the tardiness unless told otherwise), a row each:
    every record's mean, joined from policy to policy, and the mean of all with the standard error of its
    difference to the first policy, record by record.
    """
    from acerl_np.pictures.compare import draw_comparison
    from acerl_np.pictures.drawing import MAX_LINES

    named = players.sort_names(arguments)
    if len(named.players) > MAX_LINES:
        raise InputError(f"{len(named.players)} policies; expected 1 to {MAX_LINES}")
    with _picture(arguments, "compare.png") as out:
        plan = players.make_plan(arguments, named, players.DEFAULT_SUITE)
        results, _ = plan.play()
        draw_comparison(out, plan.labels, results)
    for label, trials in zip(plan.labels, results, strict=True):
        report_unfinished(label, trials)


def draw_shares(arguments: argparse.Namespace) -> None:
    """Draw which records the sampler chose.

    Draw each record's share of the episodes over the generations, beside the even share: from
    history.csv.
    """
    from acerl_np.pictures.trainings import draw_sampler

    folder = Path(arguments.folder)
    with _picture(arguments, folder / "sampler.png") as out:
        runs = [read_counts(own) for own in find_runs(folder)]
        draw_sampler(out, folder.resolve().name, runs)


def draw_learned(arguments: argparse.Namespace) -> None:
    """Draw what an index policy has learned.

    Draw the weights of an index policy, the largest first.
    """
    from acerl_np.evaluation.importance import list_parts
    from acerl_np.pictures.weights import draw_weights
    from acerl_np.policies.files import load_policy
    from acerl_np.policies.index import IndexPolicy

    file = arguments.file
    with _picture(arguments, Path(file).parent / "weights.png") as out, trusting(None):
        policy = load_policy(file)
        if not isinstance(policy, IndexPolicy):
            raise PolicyError(
                f"{make_printable(file)}: read a policy of form {policy.form}, whose weights have no "
                "names; expected an index policy (acerl-np train --preset best)"
            )
        draw_weights(out, file, list_parts(policy))


EPISODES = (
    *(opt.EPISODE, opt.ONE_PAST, *opt.READING, *opt.VARYING),
    *(opt.TRIAL, opt.SEED, opt.GREEDY, opt.TRUST),
)
RUNS = opt.CommandOption("runs RUN_FOLDER+", "folders, or a study's curves")
FOLDER = opt.CommandOption("folder RUN_FOLDER", "of a run, or of --seeds")
ONLY = opt.CommandOption("--only LABEL+", "lines to draw (default: all)", default=[])
COMPARED = (*opt.NAMES, *opt.READING, *opt.VARYING, *opt.PLAYING)
LEARNED = (opt.CommandOption("file POLICY.npz", "an index policy"),)

KINDS = {
    "curves": (draw_curves, (RUNS, ONLY), f"{PICTURE} in the run's folder, of several in this one"),
    "gantt": (draw_vehicles, EPISODES, "gantt.png"),
    "floor": (draw_floor, EPISODES, "traffic.png"),
    "compare": (compare, COMPARED, "compare.png"),
    "sampler": (draw_shares, (FOLDER,), "sampler.png in the run's folder"),
    "weights": (draw_learned, LEARNED, "weights.png beside the policy"),
}
"""Of each kind: what draws it, whose docstring is its help, its options, and the picture's default name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = {}
    for name, (draw, options, default) in KINDS.items():
        usual = f"default: {default}, in the place of an earlier picture"
        out = opt.CommandOption("--out FILE", f"picture to write: png, svg or pdf ({usual})")
        actions[name] = opt.Action(draw, (*options, out, opt.FORCE))
    opt.add_actions(parser, actions, "kind")
