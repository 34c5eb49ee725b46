"""Options: one declaration of each says how the shell and a file give it, its range and its help."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any

from acerl_np.support.errors import ConfigError, describe
from acerl_np.support.numbers import MAX_SEED, is_real, is_whole
from acerl_np.support.report import FORMATS
from acerl_np.support.workers import MAX_THREADS

Parser = argparse.ArgumentParser | argparse._ArgumentGroup

NOUNS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


@dataclass(frozen=True)
class CommandOption:
    """An option of a command.

    Attributes
    ----------
    name : str
        As in the shell, without dashes before it.
    help : str
        The default is added to it, if there is one.
    kind : type or callable
        int, float, str, bool (a switch), or a function of the text.
    default : object
    range : (float, float), optional
        Least and most of a number.
    metavar : str, optional
    nargs : str, optional
        As argparse takes it; values are lists of texts then. "append": the option may be given several times.
    choices : tuple of str
    positional : bool
        Without a name in the shell.
    required : bool
    aliases : tuple of str
        Older names, which the help does not show.
    """

    name: str
    help: str = ""
    kind: Any = str
    default: Any = None
    range: tuple[float, float] | None = None
    metavar: str | None = None
    nargs: str | None = None
    choices: tuple[str, ...] = ()
    positional: bool = False
    required: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its name in files, and of the value."""
        return self.name.replace("-", "_")

    def refuse(self, value: Any) -> str:
        """Return what is wrong with a value; nothing if it is usable."""
        expected = f"one of {', '.join(self.choices)}" if self.choices else NOUNS.get(self.kind, "")
        if self.nargs not in (None, "?"):
            usable = isinstance(value, list) and all(isinstance(item, str) for item in value)
            expected = "a list of texts"
        elif self.kind in (int, float):
            usable = (is_whole if self.kind is int else is_real)(value)
        else:
            usable = not isinstance(self.kind, type) or isinstance(value, self.kind)
        if self.range is not None:
            low, high = self.range
            usable = usable and low <= value <= high
            expected += f" from {_show(low)} to {_show(high)}"
        usable = usable and (not self.choices or value in self.choices)
        return "" if usable else f"read {describe(value)}; expected {expected}"

    def check(self, value: object) -> None:
        """Refuse a value from a file that is given and unusable."""
        try:
            wrong = ""
            if isinstance(self.kind, type) or self.nargs is not None:
                wrong = "" if value is None else self.refuse(value)
            elif value is not None:
                self.kind(value)
        except argparse.ArgumentTypeError as error:
            wrong = str(error)
        if wrong:
            raise ConfigError(f"{self.key}: {wrong}")

    def declare(self, parser: Parser, *, given: bool = False) -> None:
        """Tell argparse; with `given`, what is not given is no attribute of what it returns."""
        has_default = self.default is not None and self.default is not False and self.default != []
        shown = f" (default: {_show(self.default)})" if has_default else ""
        words: dict[str, Any] = {"help": f"{self.help}{shown}", "metavar": self.metavar}
        if self.help == argparse.SUPPRESS:
            words["help"] = argparse.SUPPRESS  # that very object
        words["default"] = argparse.SUPPRESS if given else self.default
        if self.kind is bool:
            words = {**words, "action": "store_const", "const": True}
            del words["metavar"]
        elif self.kind is argparse.BooleanOptionalAction:
            words["action"] = self.kind
        elif self.nargs == "append":
            words["action"] = "append"
        else:
            words.update(type=self._read, nargs=self.nargs, choices=self.choices or None)
        if not self.positional:
            parser.add_argument(f"--{self.name}", required=self.required, **words)
        elif self.nargs == "*" and not given:
            # Nothing in its place says nothing of what an older name gives.
            parser.set_defaults(**{self.key: []})
            parser.add_argument(self.key, **{**words, "default": argparse.SUPPRESS})
        else:
            parser.add_argument(self.key, **words)
        hidden = {"help": argparse.SUPPRESS, "default": argparse.SUPPRESS, "dest": self.key}
        for alias in self.aliases:
            nargs = "+" if self.nargs == "*" else self.nargs
            parser.add_argument(f"--{alias}", **{**words, **hidden, "nargs": nargs})

    @property
    def _read(self) -> Any:
        def read(text: str) -> Any:
            value = self.kind(text)
            wrong = self.refuse(value) if self.kind in (int, float) else ""
            if wrong:
                raise argparse.ArgumentTypeError(wrong)
            return value

        read.__name__ = getattr(self.kind, "__name__", "")  # which argparse shows
        return read

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


def read_name(text: object) -> object:
    """Return a name that is not empty."""
    if not isinstance(text, str) or not text:
        expected = "a text" if text != "" else "the name of a file, or none"
        shown = repr(text) if text == "" else describe(text)
        raise argparse.ArgumentTypeError(f"read {shown}; expected {expected}")
    return text


# Records

TASKS = CommandOption(
    "tasks",
    "task records (CSV; '-' for the standard input) or bundled instances such as DMH-01",
    default=[],
    metavar="TASKS",
    nargs="*",
    positional=True,
)
SUITE = CommandOption("suite", "a bundled suite such as dmh-test")
LAYOUT = CommandOption(
    "layout",
    "floor and fleet of the records: a JSON file or 'dmh' (default: layout.json beside each)",
    metavar="LAYOUT.json",
)
BREAKDOWNS = CommandOption(
    "breakdowns",
    "listed breakdowns (vehicle,time,repair_time) of every record in the place of the layout's, or 'none', "
    "then no random ones either (default: breakdowns.csv beside a record, else the layout's)",
    kind=read_name,
    metavar="FILE.csv",
)
DATE_FORMAT = CommandOption(
    "date-format",
    "how the records write dates, such as '%%d.%%m.%%Y %%H:%%M' for 06.05.2024 07:30 (%%Y year, %%m month, "
    "%%d day, %%H hour, %%M minute, %%S second). Seconds, seconds since 1970, times of day (07:30) and ISO "
    "8601 timestamps need none",
    metavar="FORMAT",
)
RANDOM_BREAKDOWNS = CommandOption(
    "random-breakdowns",
    "every vehicle also breaks down at random: mean seconds between failures and to repair, such as "
    "3600,300; 'none': no random breakdowns (default: as the layout says)",
    metavar="MTBF,MTTR",
)
READING = (LAYOUT, BREAKDOWNS, DATE_FORMAT)
"""What records are read with."""

BEHIND = TASKS.but(
    help="records to play (default: the training records in the file)", aliases=("tasks",)
)
"""Records behind the file of a policy."""

NAMES = (
    CommandOption(
        "names",
        "policies: policy.npz or a name; behind them task records: CSV files ('-' for the standard input) "
        "or bundled instances",
        metavar="NAME",
        nargs="+",
        positional=True,
    ),
    CommandOption("tasks", argparse.SUPPRESS, default=[], nargs="+"),
    SUITE.but(help="a bundled suite (default: dmh-train)"),
)
"""Policies and records that judge them."""

EPISODE = NAMES[0].but(
    help="POLICY INSTANCE: policy.npz or a name, and a task record (CSV) or bundled instance; with --past "
    "the instance alone will do"
)
"""Whose episode of what."""

PAST = CommandOption(
    "past",
    "past assignments (task,vehicle,start), one file per record",
    metavar="ASSIGNMENTS.csv",
    nargs="+",
    aliases=("replay",),
)
ONE_PAST = PAST.but(nargs=None, help="past assignments (task,vehicle,start)", aliases=())
PAIRS = (
    TASKS.but(name="names", help="task records or bundled instances"),
    PAST.but(help=f"{PAST.help}, in their order", aliases=()),
    CommandOption("tasks", argparse.SUPPRESS, default=[], nargs="+"),
)
"""Records and what was assigned in each."""

FIT = CommandOption(
    "fit",
    "records that Static is fitted on, or a bundled suite (default for bundled records of the DMH floor: "
    "dmh-train); --layout and breakdowns hold for them, too",
    metavar="TASKS",
    nargs="+",
)

# Playing

SEED = CommandOption("seed", "seed of every draw", int, 0, (0, MAX_SEED))
TRIALS = CommandOption("trials", "episodes per instance", int, 30, (1, 1_000_000))
TRIAL = CommandOption(
    "trial", "which of the trials of acerl-np evaluate, from 0 on", int, 0, (0, 9_999_999)
)
# None, not False: how a policy was trained decides.
GREEDY = CommandOption(
    "greedy",
    "take what a trained policy likes best (default: as in its training: networks sample, as in the paper, "
    "index policies do not)",
    bool,
)
COST_LIMIT = CommandOption("cost-limit", "xi, limit on the tardiness, s", float, 50.0, (0, 10**9))
HORIZON = CommandOption(
    "horizon",
    "stop an episode after so many seconds, finished or not (default: never)",
    float,
    metavar="SECONDS",
)
THREADS = CommandOption(
    "threads", "worker threads (default: one per core)", int, range=(1, MAX_THREADS)
)
PLAYING = (TRIALS, SEED, GREEDY, COST_LIMIT, HORIZON, THREADS)

LOOKAHEAD = (
    CommandOption(
        "lookahead",
        "add to each trained policy and rule one that tries its best assignments on N sampled futures "
        "before each decision, such as 32",
        int,
        range=(1, 100_000),
        metavar="N",
    ),
    CommandOption(
        "history",
        "records that futures are made of: files, bundled instances or a suite (default: the training "
        "records in a policy's file; rules have none). A judged record is never among its own futures",
        metavar="RECORDS",
        nargs="+",
    ),
    CommandOption(
        "weights",
        "match: a record weighs by how well it agrees with the day so far; even: all alike (default: match)",
        choices=("match", "even"),
    ),
    CommandOption(
        "bases",
        "index policies: look ahead with N - 1 noised copies of the policy, too (default: 1)",
        int,
        range=(1, 64),
        metavar="N",
    ),
)

# Workers, outputs

SILENT = 3600.0
"""Seconds after which a part of a training, an evaluation or a search is given out again."""


def list_team(what: str, silence: str = f"{SILENT:g}") -> tuple[CommandOption, ...]:
    """Return the options that say whose workers do the work, `what`; and the default of one in words."""
    processes = f"{what} in so many processes of one thread each"
    dask = (
        f"{what} on the workers of a Dask scheduler such as tcp://host:8786; they execute what they are "
        "sent, so use trusted networks only (docs/scaling.md)"
    )
    late = (
        "take workers for lost when no task is finished for so long: processes are started anew, "
        f"elsewhere the work ends (default: {silence})"
    )
    return (
        CommandOption("processes", processes, int, metavar="N"),
        CommandOption("dask", dask, metavar="ADDRESS"),
        CommandOption("silence", late, float, range=(1e-3, 10**9), metavar="SECONDS"),
    )


FORCE = CommandOption("force", "replace what exists; a file that is read is never written", bool)
FORMAT = CommandOption(
    "format",
    "form of the table; csv and json: plain numbers, units in the columns' names",
    default="text",
    choices=FORMATS,
)
MORE = CommandOption(
    "more",
    "show late share, waiting, utilisation, empty travel and standard errors, too",
    bool,
    default=False,
)
