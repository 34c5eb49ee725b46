"""`python -m studies COMMAND`, in a clone: studies, the compared learners, and the pages of results."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from acerl_np.commands.main import GLOBAL, run_program, sort_words
from acerl_np.commands.shared import options as opt
from studies import baselines, commands, exact, job_shops, make_pages
from studies.rivals import command


def build_parser() -> opt.Parser:
    """Return the program's parser."""
    parser = opt.Parser(
        prog="python -m studies",
        description="Studies of ACERL: repeat the paper's, train what it compares with, make the pages.",
        usage="python -m studies COMMAND [options]",
        **opt.PLAIN,
    )
    parser.add_argument("-h", "--help", action="help", help="this help")
    for option in GLOBAL:
        option.declare(parser)
    more = {
        "train": command.ACTION,
        "exact": opt.Action(exact.run, exact.OPTIONS),
        "job-shops": opt.Action(job_shops.run, job_shops.OPTIONS),
        "pages": opt.Action(make_pages.run, make_pages.OPTIONS),
        "baselines": opt.Action(baselines.run, baselines.OPTIONS),
    }
    opt.add_actions(parser, {**commands.list_actions(), **more}, "command")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these words, by default those of the command line; return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return run_program(build_parser(), sort_words(given), given)


if __name__ == "__main__":
    raise SystemExit(main())
