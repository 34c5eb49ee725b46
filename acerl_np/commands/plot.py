"""`acerl-np plot`: pictures of trainings.

Draw pictures with matplotlib (pip install 'acerl_np[plot]'). The ending of --out, png, svg or pdf, says in
which format; the same input gives the same file. Episodes are pages: acerl-np replay.

Examples
--------
  acerl-np plot curves runs/three runs/other --out curves.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.curves import PICTURE, draw_runs
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.pictures.runs import find_study
from acerl_np.support.errors import make_printable


def draw_curves(arguments: argparse.Namespace) -> None:
    """Draw makespan and tardiness as training went on.

    Draw makespan, or the objective of the training, and tardiness against decisions, the mean of the
    records and each of them: from curves.csv, or from history.csv where a run took no looks. A folder is a
    run's, that of --seeds (one line, the mean of the seeds, with a band of a standard deviation), or that of
    a study (a line for each policy; if it holds several studies, name the file STUDY-curves.csv). On the
    paper's records its figures stand beside the lines.
    """
    from acerl_np.pictures.drawing import check_extra, check_form

    default = Path(PICTURE)
    if len(arguments.runs) == 1:
        study = find_study(arguments.runs[0])
        default = Path(arguments.runs[0]) / PICTURE if study is None else study.with_suffix(".png")
    out, usual = Path(default if arguments.out is None else arguments.out), arguments.out is None
    check_form(out)
    # Who reads in the default's folder says what lacks.
    declare_outputs(arguments, [out], folder=out.parent if usual else None, own=usual)
    check_extra()
    draw_runs(arguments.runs, out, arguments.only)
    print(make_printable(str(out)))


OPTIONS = (
    opt.CommandOption("runs RUN_FOLDER+", "folders, or a study's curves"),
    opt.CommandOption("--only LABEL+", "lines to draw (default: all)", default=[]),
    opt.CommandOption(
        "--out FILE",
        f"picture to write: png, svg or pdf (default: {PICTURE} in the run's folder, of several in this one, "
        "in the place of an earlier picture)",
    ),
    opt.FORCE,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    opt.add_actions(parser, {"curves": opt.Action(draw_curves, OPTIONS)}, "kind")
