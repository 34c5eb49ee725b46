"""`acerl-np whatif`: other fleets, demands, speeds and breakdowns."""

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
from acerl_np.commands.shared.players import list_known, make_plan, sort_names
from acerl_np.commands.shared.progress import make_report, report_unfinished
from acerl_np.commands.shared.tables import Column, count, name_columns, render, show_below
from acerl_np.problem.goal import SHIFT, Goal
from acerl_np.problem.instance import are_shifts
from acerl_np.support.errors import InputError, PolicyWarning, describe, make_printable
from acerl_np.support.fields import Field
from acerl_np.support.log import LOG
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

SHOWN = ("late", "worst", "waiting", "utilisation")
"""What people are shown beside the objective and the measure of the target."""

VALUES = {
    "vehicles": opt.Argument("--vehicles VALUES", "fleet sizes, such as 3:8", parse_values),
    "demand": opt.Argument(
        "--demand-factor VALUES", "factors of the number of tasks, such as 0.8:1.4", parse_factors
    ),
    "speed": opt.Argument("--speed-factor VALUES", "factors of all speeds", parse_factors),
    "lengthen": opt.Argument(
        "--lengthen VALUES", "factors of all driving times, a stand-in for traffic", parse_factors
    ),
    "breakdown_rate": opt.Argument(
        "--breakdown-rate VALUES",
        "factors of how often vehicles break down at random",
        parse_factors,
    ),
    "chargers": opt.Argument(
        "--charger-slots VALUES", "slots of all chargers, such as 1:4", parse_values
    ),
    "commitment": opt.COMMIT.but(usage="--commitment VALUES", kind=opt.NAMES),
    "traffic": opt.TRAFFIC.but(usage="--traffic VALUES", kind=opt.NAMES),
}
"""One for each of `evaluation.whatif.KNOBS`."""

OPTIONS: opt.Options = {
    "": (
        opt.Argument(
            "policies POLICY*", "as of evaluate (default: the best baseline rule, and general)"
        ),
    ),
    opt.PLAY: (
        *VALUES.values(),
        opt.Argument(
            "--demand-by WHAT",
            "more tasks are a second source like the 'records', or a shorter 'takt'",
            Field(("records", "takt")),
            default="records",
        ),
        *(opt.GREEDY, opt.HORIZON),
    ),
    opt.RECORDS: (opt.ON, *opt.READING),
    opt.OBJECTIVE: (
        opt.Argument(
            "--target WHAT", "what is enough: late<2%, waiting<120, utilisation<85%, delay<5, ..."
        ),
        *opt.GOAL,
    ),
    opt.OUTPUT: (
        opt.OUT.but(help="picture: png, svg or pdf (needs the extra plot)"),
        *(opt.FORMAT, opt.REPORT, opt.FORCE),
    ),
    opt.RUNNING: (opt.SEED_OPTION, opt.TRIALS.but(default=1), opt.THREADS),
}


def run(arguments: argparse.Namespace) -> None:
    """Compare other fleets, demands, speeds or breakdowns on your records.

    Every combination of the values is played on the same records and draws, beside what is given (the base).
    Values are 3:8 (each size of a fleet, five even steps of a factor), 3:9:2 (from, to, step) or 3,5,8.
    "change" is the difference to the base, record by record.

    Examples
    --------
      acerl-np whatif --on 'days/*.csv' --layout floor.json --vehicles 3:8 --target 'late<2%'
      acerl-np whatif policy.npz --on days --layout floor.json --demand-factor 0.8:1.4 -o demand.png
      acerl-np whatif --on days --layout floor.json --breakdowns 3600,300 --breakdown-rate 0,1,2
    """
    from acerl_np.evaluation.whatif import BEST, STANDING, Target, show_setting, whatif
    from acerl_np.pictures.drawing import check_extra, check_form
    from acerl_np.policies.general import describe_general, find_set, make_general
    from acerl_np.policies.rules import BASELINES, GENERAL

    target = None if arguments.target is None else Target.read(arguments.target)
    knobs = {name: getattr(arguments, option.key) for name, option in VALUES.items()}
    knobs = {name: values for name, values in knobs.items() if values is not None}
    if not knobs:
        options = ", ".join(option.name for option in VALUES.values())
        raise InputError(f"nothing to vary: give at least one of {options}")
    if arguments.out is not None:
        check_form(arguments.out)
    declare_outputs(arguments, [arguments.out, arguments.report])
    if arguments.out is not None:
        check_extra()
    del arguments.traffic, arguments.commitment  # values to vary, not how records are read
    plan = make_plan(arguments, sort_names(arguments, needed=False), shifts=SHIFT)
    policies, records, playing = plan
    # Rules that are named stand in the best one's place.
    named = any(isinstance(policy, str) for policy in policies.values())
    asked: dict[str, Any] = {} if named else {BEST: BASELINES, **STANDING}
    asked |= policies
    if not policies and are_shifts(records):
        weights = find_set(records, playing.goal)
        LOG.debug(describe_general(weights, playing.goal))
        asked[GENERAL] = make_general(weights)
    how: dict[str, Any] = {
        "playing": playing,
        "target": arguments.target,
        "demand_by": arguments.demand_by,
    }
    # Where policies were trained, `make_plan` has said.
    with warnings.catch_warnings(action="ignore", category=PolicyWarning):
        rows, answers = whatif(records, knobs, asked, **how, report=make_report("settings"))
    table, below = render_rows(rows, playing.goal, target, arguments.format)
    print(table, end="")
    if BEST in asked:
        measure = target.measure if target else playing.goal.objective
        chosen = f"chosen for each record by {measure} on the others"
        below.append(
            f"{BEST}: {chosen if len(records) > 1 else 'nearest, as there is one record'}."
        )
    below += list_known(policies, records)
    show_below(arguments.format, [*below, *answers])
    if arguments.report is not None:
        from acerl_np.commands.shared.reporting import report_settings

        table, _ = render_rows(rows, playing.goal, target, "html")
        measure = target.measure if target else "value"
        parts = records, answers, [table, *below]
        report_settings(arguments.report, rows, measure, *parts)
    for row in rows:
        report_unfinished(f"{show_setting(row.setting)}, {row.policy}", row.trials)
    if arguments.out is not None:
        from acerl_np.pictures.whatif import draw_settings

        draw_settings(arguments.out, rows, target)
        print(f"picture {make_printable(arguments.out)}", file=sys.stderr)


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
    over = f"se: standard error over the {'records' if n > 1 else 'trials'}"
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


ACTION = opt.Action(run, OPTIONS)
