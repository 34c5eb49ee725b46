"""`acerl-np hindsight`: search the best schedules for futures that are known."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from acerl_np.commands.common import (
    add_data_arguments,
    add_random_breakdowns,
    compile_ahead,
    load_instances,
    vary_breakdowns,
)
from acerl_np.support.errors import InputError
from acerl_np.support.report import FORMATS, render_table

if TYPE_CHECKING:
    from acerl_np.evaluation.references import Reference
    from acerl_np.problem.instance import Instance

DESCRIPTION = """\
Search, for each record, the best sequence of actions that a dispatcher could take who knew all arrivals
and breakdowns in advance, tardiness kept below the limit.

The simulator is deterministic, so such a schedule can be replayed: it is a reference for how much there
is to win, not a proven bound. Each is verified by replay. Beside it stands the best static plan (a fixed
order of vehicles and a rule for each). Where vehicles break down at random no future is known: give
--random-breakdowns none to leave those breakdowns out.
"""


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
        help="factor on the work; 1 is about seven seconds of a core a record (default: 1)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the search (default: 0)")
    parser.add_argument("--threads", type=int, help="records at a time (default: one per core)")
    parser.add_argument(
        "--out", metavar="FILE.json", help="write the references with their actions"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the table")


def run(arguments: argparse.Namespace) -> int:
    """Search, verify, show and write the references; return the exit status."""
    from acerl_np.evaluation.hindsight import check_future, find_references
    from acerl_np.evaluation.references import bundled_references, save_references
    from acerl_np.policies.static import find_static
    from acerl_np.problem.instance import bundled_instances, load_instance
    from acerl_np.support.workers import check_threads

    if not 0.001 <= arguments.effort <= 10.0:
        raise InputError(f"--effort: read {arguments.effort}; expected a number from 0.001 to 10")
    if not 0.0 <= arguments.cost_limit <= 1e9:
        raise InputError(
            f"--cost-limit: read {arguments.cost_limit}; expected seconds from 0 to 1e9"
        )
    if not 0 <= arguments.seed < 2**63:
        raise InputError(
            f"--seed: read {arguments.seed}; expected a whole number from 0 to 2**63 - 1"
        )
    check_threads(arguments.threads)
    if arguments.tasks or arguments.suite is not None or arguments.layout is not None:
        instances = load_instances(arguments)
    else:
        instances = [
            load_instance(name, breakdowns=arguments.breakdowns) for name in bundled_instances()
        ]
        instances = vary_breakdowns(instances, arguments.random_breakdowns)
    for instance in instances:
        check_future(instance)
    compile_ahead("search", "static")
    started = time.perf_counter()
    count = [0]

    def report(instance: Instance, reference: Reference | None) -> None:
        count[0] += 1
        elapsed = time.perf_counter() - started
        left = elapsed / count[0] * (len(instances) - count[0])
        what = f"{reference.makespan:.0f}" if reference else "none below the limit"
        line = f"{count[0]}/{len(instances)} {instance.name}: {what}, about {left:.0f} s left"
        print(line, file=sys.stderr, flush=True)

    references = find_references(
        instances,
        cost_limit=arguments.cost_limit,
        effort=arguments.effort,
        seed=arguments.seed,
        threads=arguments.threads,
        callback=report,
    )
    rows = []
    for instance, reference in zip(instances, references, strict=True):
        static = find_static(instance, cost_limit=arguments.cost_limit, within_limit=True)
        fleet = [vehicle.id for vehicle in instance.layout.vehicles]
        stored = bundled_references().get(instance.content_hash)
        rows.append(
            [
                instance.name,
                f"{reference.makespan:.1f}" if reference else "none",
                f"{reference.tardiness:.1f}" if reference else "",
                str(len(reference.actions)) if reference else "",
                f"{static.makespan[0]:.1f}" if static else "none",
                static.plan.describe(fleet) if static else "",
                f"{stored.makespan:.1f}" if stored else "",
            ]
        )
    header = ["instance", "hindsight", "tardiness", "decisions", "static", "plan", "stored"]
    print(render_table(header, rows, arguments.format), end="")
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    found = [reference for reference in references if reference is not None]
    if arguments.out is not None:
        save_references(arguments.out, found)
        print(f"references {arguments.out}", file=sys.stderr)
    return 0
