"""Options: one declaration of each says how the shell and a file give it, its range and its help."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from acerl_np.support.errors import ConfigError, describe
from acerl_np.support.fields import MAX_SEED, MOST, NOUNS, UNUSABLE, Field
from acerl_np.support.report import FORMATS
from acerl_np.support.workers import MAX_THREADS

WORDS: ContextVar[tuple[str, ...]] = ContextVar("words", default=())
"""The words that the running command was given; none where no command runs."""

Parser = argparse.ArgumentParser | argparse._ArgumentGroup


def parse_numbers(text: str) -> tuple[float, ...]:
    """Parse "1,5"."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"read '{text}'; expected numbers such as 1,5") from error


@dataclass(frozen=True)
class CommandOption:
    """An option of a command.

    Attributes
    ----------
    usage : str
        As the help shows it, such as "--out DIR"; "names NAME+" stands without a name in the shell. Several
        words are several values; "+", "*" or "?" at the end is what argparse calls nargs.
    help : str
        The default is added to it, if there is one.
    kind : type or callable
        int, float, str, bool (a switch), list (texts, as the option may be given several times), or a
        function of the text.
    default : object
    range : (float, float), optional
        Least and most of a number.
    choices : tuple of str
    required : bool
    """

    usage: str
    help: str = ""
    kind: Any = str
    default: Any = None
    range: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    required: bool = False

    @property
    def name(self) -> str:
        """Its name in the shell."""
        return self.usage.split()[0]

    @property
    def key(self) -> str:
        """Its name in files, and of the value."""
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def nargs(self) -> str | int | None:
        """How many values it takes, as argparse has it."""
        if self.usage[-1] in "+*?":
            return self.usage[-1]
        return len(self.usage.split()) - 1 if self.usage.count(" ") > 1 else None

    @property
    def metavar(self) -> Any:
        """What the help calls its value or values."""
        words = tuple(self.usage.rstrip("+*?").split()[1:])
        return words if len(words) > 1 else next(iter(words), None)

    def refuse(self, value: Any) -> str:
        """Return what is wrong with a value; nothing if it is usable."""
        if self.kind is list or self.nargs not in (None, "?"):
            usable = isinstance(value, list) and all(isinstance(item, str) for item in value)
            return "" if usable else f"read {describe(value)}; expected a list of texts"
        if self.kind not in NOUNS:
            return ""
        field = Field(self.choices or self.kind, *(self.range or (-MOST, MOST)))
        usable = field.take(value) is not UNUSABLE
        return "" if usable else f"read {describe(value)}; expected {field.words}"

    def check(self, value: object) -> None:
        """Refuse a value from a file that is given and unusable."""
        if value is None:
            return
        try:
            wrong = self.refuse(value)
            if not isinstance(self.kind, type):
                self.kind(value)
        except argparse.ArgumentTypeError as error:
            wrong = str(error)
        if wrong:
            raise ConfigError(f"{self.key}: {wrong}")

    def read(self, text: str) -> Any:
        """Return the value that a text of the shell stands for."""
        try:
            value = self.kind(text)
        except ValueError as error:
            expected = f"invalid {self.kind.__name__} value: {text!r}"
            raise argparse.ArgumentTypeError(expected) from error
        wrong = self.refuse(value) if self.kind in (int, float) and self.nargs is None else ""
        if wrong:
            raise argparse.ArgumentTypeError(wrong)
        return value

    def declare(self, parser: Parser, *, given: bool = False) -> None:
        """Tell argparse; with `given`, what is not given is no attribute of what it returns."""
        has_default = self.default is not None and self.default is not False and self.default != []
        shown = f" (default: {_show(self.default)})" if has_default else ""
        words: dict[str, Any] = {
            "help": f"{self.help}{shown}",
            "default": argparse.SUPPRESS if given else self.default,
        }
        if self.kind is bool:
            words |= {"action": "store_const", "const": True}
        elif self.kind is list:
            words |= {"action": "append", "metavar": self.metavar}
        else:
            words |= {"type": self.read, "nargs": self.nargs, "metavar": self.metavar}
            words["choices"] = self.choices or None
        if self.name.startswith("--"):
            parser.add_argument(self.name, required=self.required, **words)
        else:
            parser.add_argument(self.key, **words)

    def but(self, **changes: Any) -> CommandOption:
        """Return the option as a command has it that differs a little."""
        return replace(self, **changes)


def _show(value: object) -> str:
    if value == MAX_SEED:
        return "2**63 - 1"
    return f"{value:,}" if isinstance(value, int) else str(value).removesuffix(".0")


def declare(parser: Parser, *options: CommandOption, given: bool = False) -> None:
    """Tell argparse of options, as `CommandOption.declare` does."""
    for option in options:
        option.declare(parser, given=given)


class Action(NamedTuple):
    """What stands below a command: `run` does it, and its docstring is its help."""

    run: Callable[[argparse.Namespace], object]
    options: tuple[CommandOption, ...]
    below: str = ""
    """Ends the help."""
    summary: str = ""
    """What the command's help says of it, if not the docstring's first line."""
    given: bool = False
    """Whether what is not given is no attribute of what is parsed."""


def part_help(text: str | None) -> tuple[str, str, str]:
    """Return what a docstring says: its first line as a summary, then description, and examples."""
    first, _, below = inspect.cleandoc(text or "").partition("\n\n")
    description, _, examples = below.partition("Examples\n--------\n")
    summary = first[:1].lower() + first[1:].rstrip(".")
    return summary, description, f"examples:\n{examples}" if examples else ""


def add_actions(
    parser: argparse.ArgumentParser, actions: Mapping[str, Action], what: str = "action"
) -> None:
    """Declare what stands below a command; one without examples of its own shows the command's."""
    choices = parser.add_subparsers(dest=what, metavar=what.upper(), required=True)
    for name, action in actions.items():
        summary, description, examples = part_help(action.run.__doc__)
        choice = choices.add_parser(
            name,
            help=action.summary or summary,
            description="\n\n".join(filter(None, (description, action.below))),
            epilog=examples or parser.epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        declare(choice, *action.options, given=action.given)
        choice.set_defaults(run=action.run)


def read_name(text: object) -> object:
    """Return a name that is not empty."""
    if not isinstance(text, str) or not text:
        expected = "a text" if text != "" else "the name of a file, or none"
        shown = repr(text) if text == "" else describe(text)
        raise argparse.ArgumentTypeError(f"read {shown}; expected {expected}")
    return text


# Records

TASKS = CommandOption(
    "tasks TASKS*",
    "task records (CSV; '-' for the standard input), bundled instances such as DMH-01, or suites",
    default=[],
)
SUITE = CommandOption("--suite", "a bundled suite such as dmh-test")
LAYOUT = CommandOption(
    "--layout LAYOUT.json",
    "floor and fleet of the records: a JSON file or a bundled floor such as 'dmh' (default: layout.json "
    "beside each)",
)
BREAKDOWNS = CommandOption(
    "--breakdowns FILE.csv",
    "listed breakdowns (vehicle,time,repair_time) of every record in the place of the layout's, or 'none', "
    "then no random ones either (default: breakdowns.csv beside a record, else the layout's)",
    read_name,
)
DATE_FORMAT = CommandOption(
    "--date-format FORMAT",
    "how the records write dates, such as '%%d.%%m.%%Y %%H:%%M' for 06.05.2024 07:30 (%%Y year, %%m month, "
    "%%d day, %%H hour, %%M minute, %%S second; with AM or PM: %%I hour, %%p). Seconds, seconds since 1970, "
    "times of day (07:30) and ISO 8601 timestamps need none",
)
RANDOM_BREAKDOWNS = CommandOption(
    "--random-breakdowns MTBF,MTTR",
    "every vehicle also breaks down at random: mean seconds between failures and to repair, such as "
    "3600,300; 'none': no random breakdowns (default: as the layout says)",
)
TRAFFIC = CommandOption(
    "--traffic WHERE",
    "vehicles meet and wait for each other (docs/traffic.md). Sites where they start lie aside, clear of the "
    "lane, and besides: file: those that the layout says; beside: stations, too; lane: no station. off: "
    "nobody is in another's way (default: as the layout says)",
    choices=("off", "file", "beside", "lane"),
)
VARYING = (RANDOM_BREAKDOWNS, TRAFFIC)
MAPPING = CommandOption(
    "--mapping FILE.toml",
    "how another system wrote the records: columns, dates, sites and so on, as 'records convert "
    "--write-mapping' writes it",
    read_name,
)
EXPORT = (
    CommandOption(
        "--columns KNOWN=COLUMN,...",
        "what the records call their columns, such as task=TA-Nr,pickup=Von,arrival_time=Datum+Uhrzeit; "
        "'column 3' is the third",
    ),
    DATE_FORMAT,
    CommandOption(
        "--encoding NAME",
        "of records that are neither UTF-8 nor UTF-16, which the bytes tell (default: cp1252)",
    ),
    CommandOption("--sheet NAME", "of a workbook (default: the first with a header)"),
    CommandOption(
        "--split WHEN",
        "several records of one file: shift (06:00/14:00/22:00), shifts such as 05:30/17:30, day, or after "
        "pauses without arrivals of more than so many seconds",
    ),
    CommandOption(
        "--skip-bad",
        "leave out rows that cannot be read, and list them, instead of refusing the file",
        bool,
    ),
    CommandOption(
        "--due SECONDS",
        "when tasks are due whose field or column of due times is missing, after their arrival",
        float,
        range=(1, 1e9),
    ),
    CommandOption(
        "--handling SECONDS",
        "handling time of tasks whose field or column of it is missing (default: 0)",
        float,
        range=(0, 1e9),
    ),
    CommandOption(
        "--decimal MARK",
        "what stands before decimals, '.' or ',', the other one between thousands; asked for where numbers "
        "such as 1.200 do not tell",
        choices=(".", ","),
    ),
    CommandOption(
        "--timezone ZONE",
        "of the plant, such as Europe/Berlin, whose clock all times without an offset from UTC are by; asked "
        "for where --split needs the clock on the wall of times in UTC, such as seconds since 1970",
    ),
    CommandOption(
        "--fold WHICH",
        "which moment is meant where the clock of --timezone, put back, shows a time twice (default: such "
        "times are refused)",
        choices=("earlier", "later"),
    ),
)
"""What a mapping holds, of `records convert` and `records check` alone; they win over --mapping."""

READING = (LAYOUT, BREAKDOWNS, MAPPING)
"""What records are read with."""

ONE_FLOOR = LAYOUT.but(
    help="floor and fleet: a JSON file or a bundled floor such as 'dmh'", required=True
)
ONE_LAYOUT = LAYOUT.but(help=f"{ONE_FLOOR.help} (default: layout.json beside the record)")


OFFERED_LOAD = """\
offered load: the time that the tasks take (mean approach, way from pickup to delivery, handling), by the
time that the fleet has from the first arrival to the last due time, repairs taken off (random ones by
their mean times). A task that only some vehicles may carry counts against these alone: the load is that
of the worst such group. Above 1 the fleet keeps up only with approaches shorter than the mean, and not
at all if the load without approaches is above 1. A little below 1 tasks may still be late.
"""
"""Ends the help of what tells it."""


def list_data(default: str = "") -> tuple[CommandOption, ...]:
    """Return TASKS, --suite (`default` says of which if none is named), and what they are read with."""
    usual = f" (default: {default})" if default else ""
    return TASKS, SUITE.but(help=f"{SUITE.help}{usual}"), *READING


BEHIND = TASKS.but(help="records to play (default: the training records in the file)")
"""Records behind the file of a policy."""

NAMES = (
    CommandOption(
        "names NAME+",
        "policies: policy.npz or a name; behind them task records: CSV files ('-' for the standard input), "
        "bundled instances or suites",
    ),
    SUITE.but(help="a bundled suite (default: dmh-train)"),
)
"""Policies and records that judge them."""

EPISODE = NAMES[0].but(
    help="POLICY INSTANCE: policy.npz or a name, and a task record (CSV) or bundled instance; with --past "
    "the instance alone will do"
)
"""Whose episode of what."""

ONE_PAST = CommandOption("--past ASSIGNMENTS.csv", "past assignments (task,vehicle,start)")
PAST = CommandOption("--past ASSIGNMENTS.csv+", f"{ONE_PAST.help}, one file per record")
PAIRS = (
    TASKS.but(usage="names TASKS*", help="task records or bundled instances"),
    PAST.but(help=f"{PAST.help}, in their order"),
)
"""Records and what was assigned in each."""

# Playing

SEED = CommandOption("--seed", "seed of every draw", int, 0, (0, MAX_SEED))
TRIALS = CommandOption("--trials", "episodes per instance", int, 30, (1, 1_000_000))
TRIAL = CommandOption(
    "--trial", "which of the trials of acerl-np evaluate, from 0 on", int, 0, (0, 9_999_999)
)
# None, not False: how a policy was trained decides.
GREEDY = CommandOption(
    "--greedy",
    "take what a trained policy likes best (default: as in its training: networks sample, as in the paper, "
    "index policies do not)",
    bool,
)
OBJECTIVE = CommandOption(
    "--objective WHAT",
    "what is to be small: makespan, tardiness, waiting (s), late, empty (%%), or a weighted sum such as "
    "late+0.05*tardiness, or a function of yours, module:name (default: what all trained policies were "
    "trained for if that is the same and no function, else makespan)",
    str,
)
COST = CommandOption("--cost WHAT", "what has a limit, as the objective (default: tardiness)", str)
COST_LIMIT = CommandOption(
    "--cost-limit",
    "xi, limit on the cost, s or %% (default: 50 s on the tardiness where the objective is the makespan, "
    "else none)",
    float,
    None,
    (0, 10**9),
)
CLASS_WEIGHTS = CommandOption(
    "--class-weights X,X",
    "what a task of priority 0, 1 and so on weighs in tardiness, late and waiting (default: all alike)",
    parse_numbers,
)
GOAL = (OBJECTIVE, COST, COST_LIMIT, CLASS_WEIGHTS)
COMMITMENT = (
    CommandOption(
        "--commitment",
        "until when a task may change hands: until it is assigned, or until it is loaded, at its pickup; a "
        "policy that was trained with pickup plays so anyhow (default: assignment)",
        choices=("assignment", "pickup"),
    ),
    CommandOption(
        "--max-changes N", "how often a task may, with --commitment pickup (default: 8)", int
    ),
)
HORIZON = CommandOption(
    "--horizon SECONDS",
    "stop an episode after so many seconds, finished or not (default: never)",
    float,
)
THREADS = CommandOption(
    "--threads", "worker threads (default: one per core)", int, range=(1, MAX_THREADS)
)
TRUST = CommandOption(
    "--trust-code",
    "import functions that files name (SECURITY.md)",
    bool,
    default=False,
)
PLAYING = (TRIALS, SEED, GREEDY, *GOAL, *COMMITMENT, HORIZON, THREADS, TRUST)

LOOKAHEAD = (
    CommandOption(
        "--lookahead N",
        "add to each trained policy and rule one that tries its best assignments on N sampled futures "
        "before each decision, such as 32; 0: on the tasks that wait already, without any history",
        int,
        range=(0, 100_000),
    ),
    CommandOption(
        "--history RECORDS+",
        "records that futures are made of: files, bundled instances or a suite (default: the training "
        "records in a policy's file; rules have none). A judged record is never among its own futures",
    ),
    CommandOption(
        "--weights",
        "match: a record weighs by how well it agrees with the day so far; even: all alike (default: match)",
        choices=("match", "even"),
    ),
    CommandOption(
        "--bases N",
        "index policies: look ahead with N - 1 noised copies of the policy, too (default: 1)",
        int,
        range=(1, 64),
    ),
    CommandOption(
        "--ahead SECONDS",
        "how far futures reach: they hold the tasks that arrive by then, and end when these are done "
        "(default: all of the episode on records of up to 100 tasks, else 900 s or more, as it takes)",
        float,
        range=(1, 10**9),
    ),
)

# Workers, outputs

SILENT = 3600.0
"""Seconds after which a part of a training, an evaluation or a search is given out again."""


def list_team(what: str, silence: str = f"{SILENT:g}") -> tuple[CommandOption, ...]:
    """Return the options that say whose workers do the work, `what`; and the default of one in words."""
    dask = (
        f"{what} on the workers of a Dask scheduler such as tcp://host:8786; they execute what they are "
        "sent, so use trusted networks only (docs/scaling.md)"
    )
    late = (
        "take workers for lost when no task is finished for so long: processes are started anew, "
        f"elsewhere the work ends (default: {silence})"
    )
    return (
        CommandOption("--processes N", f"{what} in so many processes of one thread each", int),
        CommandOption("--dask ADDRESS", dask),
        CommandOption("--silence SECONDS", late, float, range=(1e-3, 10**9)),
    )


EFFORT = CommandOption(
    "--effort",
    "factor on the work; 1 is about seven seconds of a core a record, and 150 MB a thread",
    float,
    1.0,
    (0.001, 10.0),
)
FORCE = CommandOption("--force", "replace what exists; a file that is read is never written", bool)
REPORT = CommandOption(
    "--report FILE.html",
    "write a page to hand on: sentence, tables, dots of every record, what the model leaves out here, and "
    "the command; one file, which loads nothing",
)
FORMAT = CommandOption(
    "--format",
    "form of the table; csv and json: plain numbers, units in the columns' names",
    default="text",
    choices=FORMATS,
)
MORE = CommandOption(
    "--more",
    "show late share, waiting, utilisation, empty travel and standard errors, too",
    bool,
    default=False,
)
