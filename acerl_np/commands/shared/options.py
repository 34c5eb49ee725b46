"""Options of commands: how the shell and a file give each, its declaration, its sentence; the shared ones."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

from acerl_np.problem.layout import TRAFFIC as WHERE
from acerl_np.support.errors import (
    ConfigError,
    describe,
    make_printable,
    suggest_name,
)
from acerl_np.support.fields import MAX_SEED, MOST, SEED, UNUSABLE, Field, Several
from acerl_np.support.files import path_exists
from acerl_np.support.report import FORMATS
from acerl_np.support.workers import MAX_THREADS

WORDS: ContextVar[tuple[str, ...]] = ContextVar("words", default=())
"""The words that the running command was given; none where no command runs."""

QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
"""Whether progress is not shown."""

GROUPS = PLAY, RECORDS, OBJECTIVE, OUTPUT, RUNNING = (
    *("What to play", "Records", "Objective", "Output", "Running"),
)
"""Groups of options, of the same names on all commands."""

TEXT, SWITCH = Field(str), Field(bool)
NAMES = Several(str, expected="names separated by commas")
"""Names by commas, or by repeating the option."""
FILES = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}
"""How shtab says that shells complete the names of files."""
EACH = Several(str, expected="a text")
"""Texts, one each time that the option is given."""


@dataclass(frozen=True)
class Argument:
    """An option of a command, or what stands without a name.

    Attributes
    ----------
    usage : str
        As help shows it, such as "-o/--out DIR"; "records RECORDS*" stands without a name in the shell, and
        ends in what argparse calls nargs.
    help : str
        The sentence. The default is added to it, if there is one.
    kind : Field, or callable of a text
    default : object
    required : bool
    """

    usage: str
    help: str = ""
    kind: Any = TEXT
    default: Any = None
    required: bool = False

    @property
    def flags(self) -> list[str]:
        """Its names in the shell."""
        return self.usage.split()[0].split("/")

    @property
    def name(self) -> str:
        """Its long name in the shell."""
        return self.flags[-1]

    @property
    def key(self) -> str:
        """Its name in files, and of the value."""
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def is_list(self) -> bool:
        """Whether its value is a list of texts."""
        return isinstance(self.kind, Several) or self.usage[-1] in "+*"

    def check(self, value: object) -> None:
        """Refuse a value from a file that is given and unusable."""
        if value is None:
            return
        try:
            if self.is_list:
                usable = isinstance(value, list) and all(isinstance(item, str) for item in value)
                wrong = "" if usable else f"read {describe(value)}; expected a list of texts"
            elif isinstance(self.kind, Field):
                usable = self.kind.take(value) is not UNUSABLE
                wrong = "" if usable else f"read {describe(value)}; expected {self.kind.words}"
            else:
                self.kind(value)
                wrong = ""
        except argparse.ArgumentTypeError as error:
            wrong = str(error)
        if wrong:
            raise ConfigError(f"{self.key}: {wrong}")

    def read(self, text: str) -> Any:
        """Return the value that a text of the shell stands for."""
        if self.kind is NAMES:
            parts = [text] if path_exists(text) else [x.strip() for x in text.split(",")]
            return [part for part in parts if part]
        if self.kind is EACH or self.is_list:
            return [text] if self.kind is EACH else text
        if not isinstance(self.kind, Field):
            return self.kind(text)
        value = read_value(self.kind, text)
        if self.kind.take(value) is UNUSABLE:
            names = self.kind.kind if isinstance(self.kind.kind, tuple) else ()
            said = f"read {describe(text)}; expected {self.kind.words}"
            raise argparse.ArgumentTypeError(f"{said}{suggest_name(text, names)}")
        return value

    def declare(self, parser: Any, *, given: bool = False) -> None:
        """Tell argparse; with `given`, what is not given is no attribute of what it returns."""
        has_default = self.default is not None and self.default is not False and self.default != []
        shown = f" (default: {_show(self.default)})" if has_default else ""
        words: dict[str, Any] = {
            "help": f"{self.help}{shown}".replace("%", "%%"),
            "default": argparse.SUPPRESS if given else self.default,
        }
        _, _, metavar = self.usage.partition(" ")
        if self.kind is SWITCH:
            words |= {"action": "store_const", "const": True}
        else:
            words |= {"type": self.read, "metavar": metavar.rstrip("+*?")}
            if isinstance(self.kind, Several) and self.name[0] == "-":
                words["action"] = "extend"
        if self.name[0] == "-":
            added = parser.add_argument(*self.flags, required=self.required, **words)
        else:
            words["nargs"] = self.usage[-1] if self.usage[-1] in "+*?" else None
            added = parser.add_argument(self.key, **words)
        if self.kind in (TEXT, NAMES, EACH, read_name):
            added.complete = FILES

    def but(self, **changes: Any) -> Argument:
        """Return the option as a command has it that differs a little."""
        return replace(self, **changes)


def read_value(field: Field, text: str) -> Any:
    """Return the value that a text stands for; one that is none of the field's kind as it is."""
    is_list = isinstance(field, Several) or field.kind is tuple
    if text.lower() == "none" and (is_list or field.optional):
        return None if field.optional else ()
    if field.kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    one: Any = field.kind if field.kind in (int, float) else str
    try:
        parts = [one(part.strip()) for part in text.split(",") if part.strip()]
        return tuple(parts) if is_list else one(text)
    except ValueError:
        return text


def _show(value: object) -> str:
    if value == MAX_SEED:
        return "2**63 - 1"
    return f"{value:,}" if isinstance(value, int) else str(value).removesuffix(".0")


Options = dict[str, tuple[Argument, ...]]
"""Options by group, those without a name in the shell by ""."""


def list_all(options: Options) -> list[Argument]:
    """Return the options of all groups."""
    return [option for group in options.values() for option in group]


def declare(parser: argparse.ArgumentParser, options: Options, *, given: bool = False) -> None:
    """Tell argparse of options, as `Argument.declare` does."""
    for title, some in options.items():
        group = parser.add_argument_group(title) if title else parser
        for option in some:
            option.declare(group, given=given)


class Action(NamedTuple):
    """A command, or what stands below one: `run` does it, and its docstring is its help."""

    run: Callable[[argparse.Namespace], object]
    options: Options
    summary: str = ""
    """What the list of commands says of it, if not the docstring's first line."""
    given: bool = False
    """Whether what is not given is no attribute of what is parsed."""


def part_help(text: str | None) -> tuple[str, str, str]:
    """Return what a docstring says: its first line as a summary, then description, and examples."""
    first, _, below = inspect.cleandoc(text or "").partition("\n\n")
    description, _, examples = below.partition("Examples\n--------\n")
    summary = first[:1].lower() + first[1:].rstrip(".")
    return summary, f"{first}\n\n{description}", f"examples:\n{examples}" if examples else ""


class ShortHelp(argparse.Action):
    """`-h`: usage, the options' names by group, examples."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> NoReturn:
        """Print one screen and stop."""
        print(make_short_help(parser), end="")
        parser.exit()


def make_short_help(parser: argparse.ArgumentParser) -> str:
    """Return the help of `-h`."""
    first = (parser.description or "").partition("\n\n")[0]
    lines = [f"usage: {parser.usage or parser.format_usage()[7:].strip()}", "", first]
    for group in parser._action_groups:
        names = ["/".join(x.option_strings) for x in group._group_actions if x.option_strings]
        if names:
            title = f"{group.title}:"
            own = textwrap.wrap(f"{title:14}{' '.join(names)}", 100, subsequent_indent=" " * 14)
            lines += own if group.title in GROUPS else []
    lines += ["", *(parser.epilog or "").splitlines(), f"all of it: {parser.prog} --help"]
    return "\n".join(lines) + "\n"


def complete_parser(parser: argparse.ArgumentParser, action: Action) -> None:
    """Give a command's parser its help and options."""
    _, parser.description, parser.epilog = part_help(action.run.__doc__)
    places = [option.usage.split()[1] for option in action.options.get("", ())]
    places = [f"[{x[:-1]}...]" if x[-1] == "*" else x.replace("+", "...") for x in places]
    places = [f"[{x[:-1]}]" if x[-1] == "?" else x for x in places]
    parser.usage = " ".join([parser.prog, *places, "[options]"])
    add_help(parser)
    declare(parser, action.options, given=action.given)
    parser.set_defaults(run=action.run, prog=parser.prog)


def add_help(parser: argparse.ArgumentParser) -> None:
    """Declare -h and --help, which differ."""
    parser.add_argument("-h", nargs=0, action=ShortHelp, help="help on one screen")
    parser.add_argument("--help", action="help", help="this help")


def add_actions(
    parser: argparse.ArgumentParser, actions: Mapping[str, Action], what: str = "action"
) -> None:
    """Declare what stands below a command."""
    choices = parser.add_subparsers(
        dest=what, metavar=what.upper(), required=True, prog=parser.prog
    )
    for name, action in actions.items():
        summary = action.summary or part_help(action.run.__doc__)[0]
        complete_parser(choices.add_parser(name, help=summary, **PLAIN), action)


PLAIN: dict[str, Any] = {
    **{"add_help": False, "allow_abbrev": False},
    "formatter_class": lambda prog: argparse.RawDescriptionHelpFormatter(
        prog, max_help_position=24, width=100
    ),
}
"""How all parsers are made."""


def list_settings() -> Collection[str]:
    """Return the settings that --set takes."""
    from acerl_np.training.settings import Settings

    return Settings.list_fields()


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, which tells the names that unknown ones are near to."""

    _words: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with status 2."""
        # Without the hyphens, which all options have in common.
        known = [x[2:] for x in self._option_string_actions if x[:2] == "--"]
        for k, word in enumerate(self._words):
            name, _, value = word.partition("=")
            if "set" in known and (key := name[2:].replace("-", "_")) in list_settings():
                value = value or [*self._words, "VALUE"][k + 1]
                message += f"; expected --set {key}={value}" * (name[2:] not in known)
                break
            near = suggest_name(name[2:], known).replace("'", "'--", 1)
            if near and name[:2] == "--" and name[2:] not in known:
                message += near if name in message else f"; read {name}{near}"
        line = f"{self.prog}: error: {message} (see {self.prog} -h)"
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
        places = [x.dest for x in self._actions if not x.option_strings and x.nargs in ("*", "+")]
        if rest and places and all(x == "-" or x[:1] != "-" for x in rest):
            setattr(found, places[0], [*(getattr(found, places[0], None) or []), *rest])
        elif rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, []


def read_name(text: object) -> object:
    """Return a name that is not empty."""
    if not isinstance(text, str) or not text:
        expected = "a text" if text != "" else "the name of a file, or none"
        shown = repr(text) if text == "" else describe(text)
        raise argparse.ArgumentTypeError(f"read {shown}; expected {expected}")
    return text


def number(low: float = -MOST, high: float = MOST) -> Field:
    """Return the declaration of a number in a range."""
    return Field(float, low, high)


# Records

RECORDS_PLACE = Argument(
    "tasks RECORDS*",
    "task records: CSV files, folders, quoted patterns such as 'days/*.csv', '-' for the standard input, "
    "bundled records or suites",
    default=[],
)
ON = Argument("--on RECORDS", f"{RECORDS_PLACE.help} (default: dmh-train)", NAMES, default=[])
LAYOUT = Argument(
    "--layout FILE", "layout of the records, or a bundled floor (default: layout.json beside each)"
)
BREAKDOWNS = Argument(
    "--breakdowns WHAT",
    "FILE.csv of listed breakdowns, 'listed' (no random ones), 'none', or MTBF,MTTR of random ones in s; "
    "may be repeated (default: breakdowns.csv beside a record, and the layout's)",
    EACH,
)
MAPPING = Argument(
    "--mapping FILE", "how to read the records, from records convert --write-mapping", read_name
)
TRAFFIC = Argument(
    "--traffic WHERE",
    "simulate vehicles that block each other. Sites off the lane: 'file' as in the layout, 'beside' all "
    "stations, 'lane' none; 'off': no blocking (default: as the layout)",
    WHERE,
)
READING = (LAYOUT, BREAKDOWNS, MAPPING)
"""How records are read."""

ONE_LAYOUT = Argument("--layout FILE", "layout, or a bundled floor", required=True)
PAST = Argument(
    "--past FILES", "past assignments (task,vehicle,start) to play, one file for each record", NAMES
)

# What to play

GREEDY = Argument(
    "--greedy", "a trained policy takes its best action (default: as in its training)", SWITCH
)
COMMIT = Argument(
    "--commitment WHEN",
    "when an assignment becomes final: 'assignment' (at once) or 'pickup' (until loaded); 'pickup:N' after "
    "N changes",
)
LOOKAHEAD = (
    Argument(
        "--lookahead N[,KEY=X]",
        "add policies that try assignments on N sampled futures. Keys: weights=match|even, bases=N "
        "(perturbed copies), reach=SECONDS",
    ),
    Argument(
        "--futures RECORDS",
        "records from which lookahead draws tasks (default: the policy's training records)",
        NAMES,
    ),
)
HORIZON = Argument("--horizon SECONDS", "stop an episode then", number(0.0))

# Objective

GOAL = (
    Argument(
        "--objective WHAT",
        "measure to minimise: makespan, tardiness, waiting, late, empty, a sum such as late+0.05*tardiness, "
        "or module:name; '@1,5' behind it weighs priorities (default: as trained, else makespan)",
    ),
    Argument("--cost WHAT", "measure limited by --cost-limit (default: tardiness)"),
    Argument(
        "--cost-limit X",
        "upper bound on the cost, s or % (default: 50 with the makespan, else none)",
        Field(float, 0.0, 1e9),
    ),
)

# Output

OUT = Argument("-o/--out FILE", "file to write")
FORCE = Argument(
    "--force", "overwrite existing output files (input files are never overwritten)", SWITCH
)
FORMAT = Argument("--format FORM", "text, markdown, csv or json", Field(FORMATS), default="text")
REPORT = Argument("--report FILE.html", "write a page to hand on")
DETAILS = Argument("--details", "more columns: lateness, waiting, use of vehicles, errors", SWITCH)

# Running

SEED_OPTION = Argument("--seed N", "seed of every random draw", SEED, default=0)
TRIALS = Argument("-n/--trials N", "episodes for each record", Field(int, 1, 1_000_000), default=30)
THREADS = Argument(
    "-j/--threads N", "worker threads (default: one per core)", Field(int, 1, MAX_THREADS)
)
TEAM = (
    Argument("--processes N", "work in N processes instead", Field(int)),
    Argument("--dask ADDRESS", "work on a Dask cluster (docs/scaling.md)"),
)
EFFORT = Argument(
    "--effort X", "factor on the work; 1 is about 7 s a record", number(0.001, 10.0), default=1.0
)
