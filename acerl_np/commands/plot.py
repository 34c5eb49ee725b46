"""`acerl-np plot`: pictures of trainings and floors.

Draw training curves and floors with matplotlib (pip install matplotlib).

Examples
--------
  acerl-np plot curves runs/three runs/other --out curves.svg
  acerl-np plot floor layout.json --out floor.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.curves import draw_runs
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.progress import PICTURE
from acerl_np.pictures.runs import find_study
from acerl_np.problem.bundled import load_layout
from acerl_np.support.errors import make_printable


def draw_curves(arguments: argparse.Namespace) -> None:
    """Draw objective and cost of trainings against decisions.

    A folder is a run's, that of --seeds (the mean, with a band of a standard deviation), or a study's. On the
    paper's records its figures are drawn, too.

    Examples
    --------
      acerl-np plot curves runs/three
      acerl-np plot curves runs/three runs/other --out curves.svg
      acerl-np plot curves runs/study --only ACERL,FCFS
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


def draw_floor(arguments: argparse.Namespace) -> None:
    """Draw a floor.

    Examples
    --------
      acerl-np plot floor dmh --out dmh.png
      acerl-np plot floor layout.json --out floor.svg
      acerl-np plot floor supply-loop -o loop.pdf
    """
    from acerl_np.pictures.maps import draw_layout

    declare_outputs(arguments, [arguments.out])
    draw_layout(load_layout(arguments.layout), arguments.out)
    print(make_printable(arguments.out))


PICTURE_FILE = opt.OUT.but(help="picture: png, svg or pdf", required=True)
ACTIONS = {
    "curves": opt.Action(
        draw_curves,
        {
            "": (opt.Argument("runs FOLDER+", "folders of trainings or studies"),),
            opt.OUTPUT: (
                PICTURE_FILE.but(
                    help=f"{PICTURE_FILE.help} (default: {PICTURE} in the run's folder)",
                    required=False,
                ),
                opt.Argument("--only LABELS", "lines to draw (default: all)", opt.NAMES, []),
                opt.FORCE,
            ),
        },
    ),
    "floor": opt.Action(
        draw_floor,
        {
            "": (opt.Argument("layout LAYOUT", "a layout, or a bundled floor"),),
            opt.OUTPUT: (PICTURE_FILE, opt.FORCE),
        },
    ),
}
