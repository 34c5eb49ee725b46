"""`acerl-np hindsight`: search the best schedules for futures that are known."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from acerl_np.commands.common import (
    add_data_arguments,
    add_random_breakdowns,
    compile_ahead,
    load_instances,
    vary_breakdowns,
)
from acerl_np.commands.outputs import add_force, declare_outputs
from acerl_np.commands.ranges import COST_LIMIT, Range, check_ranges
from acerl_np.commands.teams import add_team_options, open_team
from acerl_np.support.numbers import check_seed
from acerl_np.support.report import (
    DATA_FORMATS,
    FORMAT_HELP,
    FORMATS,
    Cell,
    render_data,
    render_table,
)

if TYPE_CHECKING:
    from acerl_np.evaluation.margin import Hindsight
    from acerl_np.evaluation.references import Reference
    from acerl_np.evaluation.trials import Trials
    from acerl_np.problem.instance import Instance

DESCRIPTION = """\
Search, for each record, the best sequence of actions that a dispatcher could take who knew all arrivals
and breakdowns in advance, tardiness kept below the limit.

The simulator is deterministic, so such a schedule can be replayed: it is a reference for how much there
is to win, not a proven bound. Each is verified by replay. Beside it stands the best static plan for the
record (a fixed order of vehicles and a rule for each); hindsight is never worse. Where the best rule is
nearly as good, a line says that there is little to win. Where vehicles break down at random no future is
known: give --random-breakdowns none to leave those breakdowns out.
"""

RANGES = {
    "effort": Range(0.001, 10.0, "a number from 0.001 to 10"),
    "cost_limit": COST_LIMIT,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    add_data_arguments(parser, "all bundled instances")
    add_random_breakdowns(parser)
    parser.add_argument(
        "--cost-limit",
        type=float,
        default=50.0,
        help="xi, s; the tardiness is below it (default: 50)",
    )
    parser.add_argument(
        "--effort",
        type=float,
        default=1.0,
        help="factor on the work; 1 is about seven seconds of a core a record, and 150 MB a thread "
        "(default: 1)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the search (default: 0)")
    parser.add_argument("--threads", type=int, help="records at a time (default: one per core)")
    add_team_options(parser, "search")
    parser.add_argument(
        "--out", metavar="FILE.json", help="write the references with their actions"
    )
    add_force(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help=FORMAT_HELP)


def run(arguments: argparse.Namespace) -> int:
    """Search, verify, show and write the references; return the exit status."""
    from acerl_np.evaluation.hindsight import check_future, find_references
    from acerl_np.evaluation.margin import compare_references, measure_margin, play_best_rule
    from acerl_np.evaluation.references import save_references
    from acerl_np.evaluation.trials import Playing
    from acerl_np.support.workers import check_threads, count_cores

    check_ranges(arguments, RANGES)
    check_seed(arguments.seed, "--seed")
    check_threads(arguments.threads)
    if arguments.out is not None:
        declare_outputs(arguments, [arguments.out])
    instances = choose_instances(arguments)
    for instance in instances:
        check_future(instance)
    compile_ahead("search", "static")
    started = time.perf_counter()
    own = min(arguments.threads or count_cores(), len(instances))
    asked = arguments.processes, arguments.dask, arguments.silence
    with open_team(*asked, own=own) as team:
        references = find_references(
            instances,
            cost_limit=arguments.cost_limit,
            effort=arguments.effort,
            seed=arguments.seed,
            callback=make_report(len(instances)),
            executor=team,
        )
    known = compare_references(instances, references, cost_limit=arguments.cost_limit)
    playing = Playing(
        seed=arguments.seed, cost_limit=arguments.cost_limit, threads=arguments.threads
    )
    rule, played = play_best_rule(instances, playing)
    pairs = [*zip(instances, known, strict=True)]
    if arguments.format in DATA_FORMATS:
        data = [list_data(*pair, rule, played, k) for k, pair in enumerate(pairs)]
        print(render_data(data, arguments.format), end="")
    else:
        header = ["instance", "hindsight", "tardiness", "decisions", "static", "plan", "stored"]
        rows = [show_row(*pair) for pair in pairs]
        print(render_table(header, rows, arguments.format), end="")
    some = [k for k, item in enumerate(references) if item is not None]
    if some:
        best = [item for item in references if item is not None]
        margin = measure_margin(rule, played.select(some), best)
        if margin.is_little:
            print(
                f"{chr(10) if arguments.format == 'markdown' else ''}{margin.sentence()}",
                file=sys.stdout if arguments.format in ("text", "markdown") else sys.stderr,
            )
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    if arguments.out is not None:
        save_references(arguments.out, [item for item in references if item is not None])
        print(f"references {arguments.out}", file=sys.stderr)
    return 0


def choose_instances(arguments: argparse.Namespace) -> list[Instance]:
    """Return the records that the arguments name, all bundled ones if they name none."""
    from acerl_np.problem.bundled import bundled_instances, load_instance

    if arguments.tasks or arguments.suite is not None or arguments.layout is not None:
        return load_instances(arguments)
    instances = [
        load_instance(name, breakdowns=arguments.breakdowns) for name in bundled_instances()
    ]
    return vary_breakdowns(instances, arguments.random_breakdowns)


def make_report(total: int) -> Callable[[Instance, Reference | None], None]:
    """Return what says, after each record, what was found and how long the rest will take."""
    started = time.perf_counter()
    count = 0

    def report(instance: Instance, reference: Reference | None) -> None:
        nonlocal count
        count += 1
        left = (time.perf_counter() - started) / count * (total - count)
        what = f"{reference.makespan:.0f}" if reference else "none below the limit"
        line = f"{count}/{total} {instance.name}: {what}, about {left:.0f} s left"
        print(line, file=sys.stderr, flush=True)

    return report


def show_row(instance: Instance, known: Hindsight) -> list[Cell]:
    """Return a record's row of the table."""
    found, static, stored = known.found, known.static, known.stored
    fleet = [vehicle.id for vehicle in instance.layout.vehicles]
    return [
        instance.name,
        f"{found.makespan:.1f}" if found else "none",
        f"{found.tardiness:.1f}" if found else "",
        str(len(found.actions)) if found else "",
        f"{static.makespan[0]:.1f}" if static else "none",
        static.plan.describe(fleet) if static else "",
        f"{stored.makespan:.1f}" if stored else "",
    ]


def list_data(
    instance: Instance, known: Hindsight, rule: str, played: Trials, k: int
) -> dict[str, object]:
    """Return a record's row of the table for programs; `played` is the best rule, the record its k-th."""
    found, static, stored = known.found, known.static, known.stored
    fleet = [vehicle.id for vehicle in instance.layout.vehicles]
    return {
        "instance": instance.name,
        "makespan_s": found.makespan if found else None,
        "tardiness_s": found.tardiness if found else None,
        "decisions": len(found.actions) if found else None,
        "static_makespan_s": static.makespan[0] if static else None,
        "static_tardiness_s": static.tardiness[0] if static else None,
        "plan": static.plan.describe(fleet) if static else None,
        "stored_makespan_s": stored.makespan if stored else None,
        "stored_tardiness_s": stored.tardiness if stored else None,
        "rule": rule,
        "rule_makespan_s": played.mean_makespan()[k],
        "rule_tardiness_s": played.mean_tardiness()[k],
    }
