"""Find the command, run it, and turn every expected failure into one line and an exit status."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import acerl_np
from acerl_np.commands.shared.interruption import Terminated
from acerl_np.commands.shared.options import WORDS, part_help
from acerl_np.support.errors import AcerlError, make_printable, suggest_name
from acerl_np.support.files import remember_streams
from acerl_np.support.own import trusting

COMMANDS = {
    "train": "train a policy with ACERL",
    "evaluate": "play policies and rules on task records and compare them",
    "whatif": "ask what another fleet, demand or speed would bring; the smallest fleet for a target",
    "replay": "write a page that replays an episode: floor, decisions, chart of the vehicles",
    "hindsight": "search the best schedules for futures that are known",
    "plot": "draw curves of trainings",
    "policy": "show what a policy file holds, and what each of its weights does",
    "floor": "import floors from LIF or openTCS, check them, show them",
    "records": "make, convert and check task records, replay past assignments",
    "list": "list the bundled suites, and the rules, presets and features",
    "serve": "dispatch a floor as a process: events in, orders out, as lines of JSON",
    "warm": "compile ahead, so that the first use waits for nothing",
}


MODULES = {
    **{"replay": "replaying", "hindsight": "searching", "records": "recording"},
    **{"list": "listing", "warm": "warming", "serve": "serving"},
}
"""Modules that are not called like their commands."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, which tells the names that unknown ones are near to."""

    _words: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with status 2."""
        known = self._option_string_actions
        shown = [name for name, action in known.items() if action.help != argparse.SUPPRESS]
        for word in self._words:
            name = word.partition("=")[0]
            if name[:2] == "--" and name not in known and (near := suggest_name(name, shown)):
                message += near if name in message else f"; read {name}{near}"
        line = f"{self.prog}: error: {message} (see {self.prog} --help)"
        self.exit(2, f"{make_printable(line)}\n")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += suggest_name(str(value), map(str, action.choices or ()))
            raise

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse all that is given; names may also stand behind options."""
        self._words = args or ()
        found, rest = super().parse_known_args(args, namespace)
        key = "names" if hasattr(found, "names") else "tasks"
        names = getattr(found, key, None)
        if rest and isinstance(names, list) and all(x == "-" or x[:1] != "-" for x in rest):
            setattr(found, key, [*names, *rest])
        elif rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, []


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """Return the program's parser; only the module of `command` is imported."""
    parser = Parser(
        prog="acerl-np",
        description="ACERL for dynamic material handling: train, judge and use dispatching policies.",
        epilog="acerl-np COMMAND --help explains a command's options.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"acerl_np {acerl_np.__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            help=summary,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == command:
            module = importlib.import_module(f"acerl_np.commands.{MODULES.get(name, name)}")
            _, subparser.description, subparser.epilog = part_help(module.__doc__)
            subparser.set_defaults(run=getattr(module, "run", None))
            module.add_arguments(subparser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these words, by default those of the command line.

    Returns the exit status: 0 done, 1 the machine failed, 2 bad input or arguments, 130 or 143 interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = next((word for word in words if not word.startswith("-")), None)
    return run_program(build_parser(command), words)


def run_program(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Parse words, run what they name, and return the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files need not be text, and not every terminal knows every letter.
        utf8 = sys.stdout.encoding.lower().replace("-", "") == "utf8"
        sys.stdout.reconfigure(errors="surrogateescape" if utf8 else "backslashreplace")
    try:
        options = parser.parse_args(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    given = WORDS.set(tuple(words))
    try:
        with remember_streams(), trusting(getattr(options, "trust_code", False)):
            status: int | None = options.run(options)
        sys.stdout.flush()
        return status or 0
    except AcerlError as error:
        message, status = str(error), error.exit_status
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
        WORDS.reset(given)
    line = make_printable(" ".join(message.split()))
    print(f"{parser.prog} {options.command}: error: {line}", file=sys.stderr)
    return status
