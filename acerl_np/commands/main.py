"""Find the command, run it, and turn every expected failure into one line and an exit status."""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import os
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

import acerl_np
from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.progress import Terminated
from acerl_np.support import errors
from acerl_np.support.errors import AcerlError, make_printable
from acerl_np.support.files import remember_streams
from acerl_np.support.log import show_log
from acerl_np.support.trust import trusting

COMMANDS = {
    "floor": "describe, import, check, show and edit floors",
    "records": "convert, check and make task records",
    "evaluate": "compare policies and rules on records",
    "whatif": "compare fleets, demands and speeds; find the smallest fleet for a target",
    "train": "train a policy with ACERL",
    "replay": "write a page that replays an episode",
    "plot": "draw training curves and floors",
    "serve": "dispatch a floor as a process: events in, orders out",
    "policy": "show what a policy holds; bound what any policy could reach",
    "list": "list suites, floors, rules, presets and features",
    "warm": "compile ahead",
}
"""A module of `acerl_np.commands` each."""

GLOBAL = (
    opt.Argument("-q/--quiet", "no progress", opt.SWITCH),
    opt.Argument("-v/--verbose", "say versions, seconds, and where an error came from", opt.SWITCH),
    opt.Argument("--trust-code", "import functions that files name (SECURITY.md)", opt.SWITCH),
)
"""Options of all commands, before or behind the command."""

EPILOG = """\
examples:
  acerl-np train                                        the paper's run
  acerl-np evaluate nearest EDD --on DMH-01             compare rules
  acerl-np help train                                   a command's help"""


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """Return the program's parser; only the module of `command` is imported, "" for all of them."""
    parser = opt.Parser(
        prog="acerl-np",
        usage="acerl-np COMMAND [options]",
        description="ACERL for dynamic material handling: train, evaluate and use dispatching policies.",
        epilog=EPILOG,
        **opt.PLAIN,
    )
    parser.add_argument("-h", "--help", action="help", help="this help")
    version = f"acerl_np {acerl_np.__version__}"
    parser.add_argument("-V", "--version", action="version", version=version)
    for option in GLOBAL:
        option.declare(parser)
    words = {"action": PrintCompletion, "metavar": "SHELL", "help": "completion of bash, zsh, tcsh"}
    parser.add_argument("--print-completion", **words)  # type: ignore[arg-type]
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog=parser.prog
    )
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, **opt.PLAIN)
        if command in (name, ""):
            module: Any = importlib.import_module(f"acerl_np.commands.{name}")
            if hasattr(module, "ACTIONS"):
                _, subparser.description, subparser.epilog = opt.part_help(module.__doc__)
                subparser.add_argument("-h", "--help", action="help", help="this help")
                opt.add_actions(subparser, module.ACTIONS)
            else:
                opt.complete_parser(subparser, module.ACTION)
    return parser


class PrintCompletion(argparse.Action):
    """Print what a shell needs to complete commands and options."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        """Print it and stop."""
        with errors.needing("completion needs shtab: pip install 'acerl_np[completion]'"):
            import shtab
        try:
            print(shtab.complete(build_parser(""), values))
        except NotImplementedError:
            parser.error(
                f"{option}: read {values}; expected one of {', '.join(shtab.SUPPORTED_SHELLS)}"
            )
        parser.exit()


def sort_words(words: Sequence[str]) -> list[str]:
    """Return the words with the options of all commands first, and "help train" as "train --help"."""
    known = {flag for option in GLOBAL for flag in option.flags}
    end = words.index("--") if "--" in words else len(words)
    first = [word for word in words[:end] if word in known]
    rest = [word for word in words[:end] if word not in known]
    if rest[:1] == ["help"]:
        rest = [*rest[1:], "--help"]
    return [*first, *rest, *words[end:]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these words, by default those of the command line.

    Returns the exit status: 0 done, 1 the machine failed, 2 bad input or arguments, 130 or 143 interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    words = sort_words(given)
    command = next((word for word in words if not word.startswith("-")), None)
    return run_program(build_parser(command), words, given)


def run_program(
    parser: argparse.ArgumentParser, words: Sequence[str], given: Sequence[str] | None = None
) -> int:
    """Parse words, run what they name, and return the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files need not be text, and not every terminal knows every letter.
        utf8 = sys.stdout.encoding.lower().replace("-", "") == "utf8"
        sys.stdout.reconfigure(errors="surrogateescape" if utf8 else "backslashreplace")
    started = time.perf_counter()
    try:
        options = parser.parse_args(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    except AcerlError as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return error.exit_status
    is_quiet, is_verbose = (bool(getattr(options, x, None)) for x in ("quiet", "verbose"))
    told = opt.WORDS.set(tuple(words if given is None else given)), opt.QUIET.set(is_quiet)
    try:
        level = logging.WARNING if is_quiet else logging.DEBUG if is_verbose else logging.INFO
        with (
            remember_streams(),
            show_log(level),
            trusting(bool(getattr(options, "trust_code", None))),
        ):
            status: int | None = options.run(options)
        sys.stdout.flush()
        if is_verbose:
            print(describe_run(time.perf_counter() - started), file=sys.stderr)
        return status or 0
    except AcerlError as error:
        message, status = str(error), error.exit_status
        if is_verbose:
            traceback.print_exc()
    except KeyboardInterrupt as stop:
        message, status = "interrupted", 143 if isinstance(stop, Terminated) else 130
    except BrokenPipeError:
        # The reader of our output has gone, as in `acerl-np ... | head`; say nothing more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except MemoryError:
        message, status = "not enough memory for these sizes", 1
    except OSError as error:
        message, status = f"{error.filename or 'the machine'}: {error.strerror or error}", 1
    finally:
        opt.WORDS.reset(told[0])
        opt.QUIET.reset(told[1])
    line = make_printable(" ".join(message.split()))
    print(f"{options.prog}: error: {line}", file=sys.stderr)
    return status


def describe_run(seconds: float) -> str:
    """Return how long a command took, and the versions that it ran with."""
    import platform

    import numpy as np

    numba = sys.modules.get("numba")
    parts = ["acerl_np", acerl_np.__version__, "Python", platform.python_version(), "NumPy"]
    parts += [np.__version__, *([] if numba is None else ["numba", numba.__version__])]
    return f"{seconds:.1f} s with {' '.join(parts)}"
