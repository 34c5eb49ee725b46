"""`acerl-np whatif`: what another fleet, demand or speed would bring.

Play the shifts of your records with other fleets, demands, speeds or breakdowns, and say which is the
smallest fleet for a target. Every combination of the values is played, and what is given: the base.

--vehicles N: the first of the fleet, and further ones like them in turn, as by floor fleet. --demand-factor
F: each record is played with F times its tasks, drawn from its own: what comes in a burst stays together,
sites, due times and handling stay with their tasks, hours and breaks keep their share; at 1 it is the record
itself. --speed-factor F: all vehicles drive F times as fast, up to the limits of the floor's edges.
--lengthen F: all driving takes F times as long, a stand-in for vehicles that wait for each other; records
replay says how much longer it took.
--breakdown-rate F: vehicles break down F times as often at random; 0: never, listed breakdowns left out, too.
--commitment pickup: a task may change hands until it is loaded, so vehicles are called back.
--charger-slots N: the chargers have N slots, dealt over their sites in the layout's order: 5 on two sites are
3 and 2, and with fewer than sites the last have none.

Values are 3:8 (each size of a fleet, five even steps of a factor), 3:9:2 (from, to, step) or 3,5,8.

All settings meet the same shifts, breakdowns and draws. Means are over the records, ± standard errors;
"change" is to the base, record by record, so its error is smaller. Without policies the best of nearest,
fcfs-nearest, edd-nearest, opentcs and assignment plays; which one is best, by the measure of --target or else
by the objective, is told for each record by the others, setting by setting. It stands beside policies from a
file, too, unless rules are named. An index policy plays any fleet; a network only those of the sizes that it
was trained for.

--target tells how little is enough (how much demand is possible): late<2%, waiting<120, tardiness<30,
utilisation<85%, makespan, empty, and in traffic delay: how much longer a task's driving takes.

Examples
--------
  acerl-np whatif days/*.csv --layout floor.json --vehicles 3:8 --target 'late<2%'
  acerl-np whatif policy.npz days/*.csv --layout floor.json --vehicles 3:8 --picture fleet.png
  acerl-np whatif days/*.csv --layout floor.json --vehicles 4:6 --demand-factor 1,1.2 --target 'late<2%'
  acerl-np whatif policy.npz nearest days/*.csv --layout floor.json --demand-factor 0.8:1.4
  acerl-np whatif days/*.csv --layout floor.json --demand-factor 0.8:1.4:0.1 --target 'waiting<120'
  acerl-np whatif days/*.csv --layout floor.json --speed-factor 0.8:1.2 --format csv
  acerl-np whatif days/*.csv --layout floor.json --commitment assignment,pickup
  acerl-np whatif days/*.csv --layout floor.json --charger-slots 1:4 --target 'waiting<120'
  acerl-np whatif days/*.csv --layout floor.json --random-breakdowns 3600,300 --breakdown-rate 0,1,2
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.players import Seat, make_plan, sort_names
from acerl_np.commands.shared.progress import make_report, report_unfinished
from acerl_np.commands.shared.tables import Column, count, name_columns, render, show_below
from acerl_np.problem.goal import SHIFT, Goal
from acerl_np.problem.instance import Instance, are_shifts
from acerl_np.support.errors import InputError, PolicyWarning, describe, make_printable
from acerl_np.support.report import DATA_FORMATS, render_data

if TYPE_CHECKING:
    from acerl_np.evaluation.whatif import Row, Target

STEPS = 5
"""Values between two bounds of a factor, without a step."""

MAX_VALUES = 1_000


def parse_values(text: str, steps: int | None = None) -> list[int | float]:
    """Parse "3:8", "0.8:1.4:0.1" or "3,5,8"; two bounds have `steps` values, by default each whole number."""
    try:
        found: list[float] = []
        for part in text.split(","):
            low, *rest = (float(number) for number in part.split(":"))
            high, *given = rest or [low]
            [step] = given or [(high - low) / (steps - 1) if steps else 1.0]
            n = (high - low) / step + 1e-9 if high != low else 0.0
            if not 0.0 <= low <= high < math.inf or not 0.0 <= n < MAX_VALUES:
                raise ValueError
            found += [round(low + k * step, 9) for k in range(int(n) + 1)]
        return [int(x) if x % 1.0 == 0.0 else x for x in found]
    except (ValueError, OverflowError, ZeroDivisionError):
        expected = f"expected values such as 3:8, 3:9:2 or 3,5,8, at most {MAX_VALUES:,}"
        raise argparse.ArgumentTypeError(f"read {describe(text)}; {expected}") from None


parse_factors = partial(parse_values, steps=STEPS)

SHOWN = ("late", "waiting", "utilisation")
"""What people are shown beside the objective and the measure of the target."""

VALUES = {
    "vehicles": opt.CommandOption(
        "--vehicles VALUES", "sizes of the fleet, such as 3:8", parse_values
    ),
    "demand": opt.CommandOption(
        "--demand-factor VALUES", "how many times the tasks, such as 0.8:1.4", parse_factors
    ),
    "speed": opt.CommandOption(
        "--speed-factor VALUES", "factors of all speeds, such as 0.8:1.2", parse_factors
    ),
    "lengthen": opt.CommandOption(
        "--lengthen VALUES",
        "factors of all driving times, limits of edges included, such as 1:1.2: a stand-in for traffic",
        parse_factors,
    ),
    "breakdown_rate": opt.CommandOption(
        "--breakdown-rate VALUES",
        "factors of how often vehicles break down at random, such as 0,1,2 (see --random-breakdowns)",
        parse_factors,
    ),
    "chargers": opt.CommandOption(
        "--charger-slots VALUES",
        "slots of all chargers, such as 1:4, dealt over their sites",
        parse_values,
    ),
    "commitment": opt.CommandOption(
        "--commitment VALUES",
        "until when a task may change hands, such as assignment,pickup: what calling back brings",
        lambda text: text.split(","),
    ),
    "traffic": opt.CommandOption(
        "--traffic VALUES",
        "whether vehicles meet, such as off,beside,lane, as of acerl-np evaluate",
        lambda text: text.split(","),
    ),
}
"""One for each of `evaluation.whatif.KNOBS`."""

NAMES = opt.NAMES[0].but(
    usage="names NAME*",
    help=f"{opt.NAMES[0].help} (default: the best baseline, nearest, assignment, and of shifts general)",
)
OBJECTIVE = opt.OBJECTIVE.but(
    help=opt.OBJECTIVE.help.replace(
        "else makespan", "else late+0.05*tardiness of shifts, else makespan"
    )
)
DEMAND_BY = opt.CommandOption(
    "--demand-by WHAT",
    "what more tasks are: records, more of their own flows, as irregular as a second source; takt, the gaps "
    "of pairs of sites where these are steady become so many times as short",
    default="records",
    choices=("records", "takt"),
)
SHOWING = (
    opt.CommandOption("--target WHAT", "what is to be reached, such as 'late<2%%'"),
    opt.FORMAT,
    opt.CommandOption("--picture FILE", "draw it, too: png, svg or pdf (needs the extra plot)"),
    opt.REPORT,
    opt.FORCE,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    opt.declare(parser, NAMES, *VALUES.values(), DEMAND_BY, *SHOWING, opt.SUITE, *opt.READING)
    opt.declare(parser, opt.RANDOM_BREAKDOWNS, opt.TRIALS.but(default=1), opt.SEED, opt.GREEDY)
    opt.declare(parser, OBJECTIVE, *opt.GOAL[1:], opt.HORIZON, opt.THREADS)
    opt.declare(parser, opt.TRUST)


def run(arguments: argparse.Namespace) -> None:
    """Play, show and answer."""
    from acerl_np.evaluation.whatif import (
        BEST,
        STANDING,
        Target,
        answer_target,
        show_setting,
        what_if,
    )
    from acerl_np.pictures.drawing import check_extra, check_form
    from acerl_np.policies.general import describe_general, find_set, make_general
    from acerl_np.policies.rules import BASELINES, GENERAL

    target = None if arguments.target is None else Target.read(arguments.target)
    knobs = {name: getattr(arguments, option.key) for name, option in VALUES.items()}
    knobs = {name: values for name, values in knobs.items() if values is not None}
    if not knobs:
        options = ", ".join(option.name for option in VALUES.values())
        raise InputError(f"nothing is to be another; expected some of {options}")
    if arguments.picture is not None:
        check_form(arguments.picture)
    declare_outputs(arguments, [arguments.picture, arguments.report])
    if arguments.picture is not None:
        check_extra()
    plan = make_plan(arguments, sort_names(arguments, needed=False), shifts=SHIFT)
    seats, records, playing = plan.seats, plan.records, plan.playing
    # Rules that are named stand in the best one's place.
    named = any(isinstance(seat.policy, str) for seat in seats)
    asked: dict[str, Any] = {} if named else {BEST: BASELINES, **STANDING}
    asked |= {seat.label: seat.policy for seat in seats}
    if not seats and are_shifts(records):
        weights = find_set(records, playing.goal)
        print(describe_general(weights, playing.goal), file=sys.stderr)
        asked[GENERAL] = make_general(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)  # `make_plan` has said it
        report = make_report("settings")
        how = {"playing": playing, "target": target, "demand_by": arguments.demand_by}
        rows = what_if(records, knobs, asked, **how, report=report)
    table, below = render_rows(rows, playing.goal, target, arguments.format)
    print(table, end="")
    if BEST in asked:
        measure = playing.goal.objective
        measure = f"{target.measure}, as the target is" if target else measure
        chosen = f"for each record by {measure}, on the others in all settings; another where that is better "
        chosen += "in the setting by two errors"
        below.append(
            f"{BEST}: {chosen if len(records) > 1 else 'nearest, as there is one record'}."
        )
    below += list_known(seats, records)
    answers = [] if target is None else answer_target(rows, target)
    show_below(arguments.format, [*below, *answers])
    if arguments.report is not None:
        from acerl_np.commands.shared.reporting import report_settings

        table, _ = render_rows(rows, playing.goal, target, "html")
        measure = target.measure if target else "value"
        parts = records, answers, [table, *below]
        report_settings(arguments.report, rows, measure, *parts)
    for row in rows:
        report_unfinished(f"{show_setting(row.setting)}, {row.policy}", row.trials)
    if arguments.picture is not None:
        from acerl_np.pictures.whatif import draw_settings

        draw_settings(arguments.picture, rows, target)
        print(f"picture {make_printable(arguments.picture)}", file=sys.stderr)


def list_known(seats: Sequence[Seat], records: Sequence[Instance]) -> list[str]:
    """Say which policies were trained on records that judge them here."""
    lines = []
    for label, policy in seats:
        origin = getattr(policy, "origin", None)
        known = [] if origin is None else [item.content_hash for item in origin.records]
        n = sum(record.content_hash in known for record in records)
        if n:
            lines.append(f"{label}: trained on {n} of these records; others would tell more of it.")
    return lines


def render_rows(
    rows: Sequence[Row], goal: Goal, target: Target | None, form: str
) -> tuple[str, list[str]]:
    """Return the table of all settings, and what stands below it."""
    from acerl_np.evaluation.verdict import show_difference
    from acerl_np.evaluation.whatif import KNOBS, UNITS, find_varied

    has_traffic = any(row.trials.has_traffic for row in rows)
    if form in DATA_FORMATS:
        return render_data([list_row(row, has_traffic) for row in rows], form), []
    others = {
        *SHOWN,
        *(["delay"] if has_traffic else []),
        target.measure if target else SHOWN[0],
    } - {goal.objective}
    shown = {"value": f"{goal.objective}{goal.unit and f', {goal.unit}'}"}
    shown |= {name: f"{name}, {unit}" for name, unit in UNITS.items() if name in others}
    named = [name for name, knob in KNOBS.items() if isinstance(knob.field.kind, tuple)]
    columns = [
        Column(name, name.replace("_", " "), "" if name in named else "g", words=name in named)
        for name in find_varied(rows)
    ]
    columns += [Column("policy", "policy", words=True), Column("tasks", "tasks", ".0f")]
    columns += [Column(name, title) for name, title in shown.items()]
    columns.append(Column("change", "change"))
    lines: list[dict[str, object]] = []
    for row in rows:
        change = "base" if row.is_base else show_difference(*row.compare("value"), "+")
        line = {"tasks": row.n_tasks, "policy": row.describe(), "change": change}
        lines.append(
            {**row.setting, **line, **{x: show_difference(*row.measure(x)) for x in shown}}
        )
    n, trials = rows[0].trials.makespan.shape
    means = f"Means over {count(n, 'record')}, {count(trials, 'trial')} of each"
    over = f"± standard error over the {'records' if n > 1 else 'trials'}"
    over = over if n * trials > 1 else "too few for a standard error"
    change = f"change: of {goal.objective}, to the base, which is what is given, record by record."
    return render(columns, lines, form), [f"{means}, {over}.", change]


def list_row(row: Row, has_traffic: bool) -> dict[str, object]:
    """Return what a table for programs says of a setting with a policy; `has_traffic`: of some setting."""
    from acerl_np.evaluation.whatif import UNITS

    n, trials = row.trials.makespan.shape
    line: dict[str, object] = {**row.setting, "is_base": row.is_base, "policy": row.policy}
    line |= {"rules": " ".join(row.rules) or None, "records": n, "trials": trials}
    line |= {"unfinished": row.trials.unfinished, "tasks": row.n_tasks}
    for name, column in {"value": "value", **name_columns(has_traffic)}.items():
        stem, _, unit = column.partition("_")
        scale = 0.01 if UNITS.get(name) == "%" else 1.0
        for what, values in (("", row.measure(name)), ("_change", row.compare(name))):
            for word, value in zip(("", "_error"), values, strict=True):
                line[f"{stem}{what}{word}{unit and f'_{unit}'}"] = scale * value
    return line
