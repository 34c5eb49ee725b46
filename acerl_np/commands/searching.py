"""`acerl-np hindsight`: search the best schedules for futures that are known.

Search, for each record, the best sequence of actions that a dispatcher could take who knew all arrivals
and breakdowns in advance: the smallest objective with a cost below the limit (by default the makespan, and
a mean tardiness below 50 s). Where no schedule is found below the limit, it is that of the least cost.

The simulator is deterministic, so such a schedule can be replayed: it is a reference for how much there
is to win. Each is verified by replay. The column "bound" is proven: no schedule's objective is below it.
Beside it stands the best rule on these records; hindsight is never worse than the rules, the baselines and
lookaheads over them without futures. Where the best rule is nearly as good, a line says that there is little
to win.
Where tasks follow others, are processed or announced, or are never due, orders are searched: each vehicle
takes its tasks in turn, as soon as they are known.

Where vehicles break down at random no future is known: give --random-breakdowns none to leave those
breakdowns out.

Examples
--------
  acerl-np hindsight week1.csv --layout floor.json --out best.json
  acerl-np hindsight --suite bu-all
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from typing import TYPE_CHECKING

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.inputs import load_instances, names_records
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.players import read_goal
from acerl_np.commands.shared.progress import compile_ahead, make_report
from acerl_np.commands.shared.tables import Column, render, show_below
from acerl_np.commands.shared.teams import open_team
from acerl_np.problem.bundled import bundled_instances
from acerl_np.problem.instance import Instance

if TYPE_CHECKING:
    from acerl_np.evaluation.references import Reference

OPTIONS = (
    *opt.list_data("all DMH records"),
    *opt.VARYING,
    *opt.GOAL,
    opt.EFFORT,
    opt.SEED.but(help="seed of the search"),
    opt.THREADS.but(help="records at a time (default: one per core)"),
    *opt.list_team("search"),
    opt.CommandOption("--out FILE.json", "write the references with their actions"),
    opt.FORCE,
    opt.FORMAT,
)

COLUMNS = (
    Column("instance", "instance"),
    Column("makespan_s", "hindsight", ".1f", none="none"),
    Column("tardiness_s", "tardiness", ".1f"),
    Column("value"),
    Column("bound", "bound", ".1f"),
    Column("limit", "limit", unknown=""),
    Column("decisions", "decisions", "d"),
    Column("stored_makespan_s", "stored", ".1f"),
    Column("stored_tardiness_s"),
    Column("rule", "best rule"),
    Column("rule_makespan_s", "its makespan", ".1f"),
    Column("rule_tardiness_s"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    opt.declare(parser, *OPTIONS)


def run(arguments: argparse.Namespace) -> None:
    """Search, verify, show and write the references."""
    from acerl_np.evaluation.bounds import bound_objective
    from acerl_np.evaluation.hindsight import check_future, find_references
    from acerl_np.evaluation.margin import measure_margin, play_best_rule
    from acerl_np.evaluation.references import bundled_references, find_known, save_references
    from acerl_np.evaluation.trials import Playing
    from acerl_np.support.workers import count_cores

    declare_outputs(arguments, [arguments.out])
    every = [x for x, path in bundled_instances().items() if path.parent.name == "dmh"]
    instances = load_instances(arguments, tasks=None if names_records(arguments) else every)
    seed, goal = arguments.seed, read_goal(arguments)
    for instance in instances:
        check_future(instance)
    compile_ahead("search")
    started = time.perf_counter()
    own = min(arguments.threads or count_cores(), len(instances))
    report, places = make_report("records"), itertools.count(1)

    def show(instance: Instance, found: Reference | None) -> None:
        what = "no schedule finishes" if found is None else found.goal.show(found.value)
        over = ", over the limit" if found is not None and not found.within else ""
        report(next(places), len(instances), f"{instance.name}: {what}{over}")

    how = {"effort": arguments.effort, "seed": seed, "callback": show}
    with open_team(vars(arguments), own=own) as team:
        references = find_references(instances, goal, executor=team, **how)
    known = find_known(instances, bundled_references(), goal)
    playing = Playing(seed=seed, goal=goal, threads=arguments.threads)
    rule, played = play_best_rule(instances, playing)
    means = zip(played.mean("makespan"), played.mean("tardiness"), strict=True)
    rows = []
    for instance, found, stored, values in zip(instances, references, known, means, strict=True):
        cells = (
            instance.name,
            *((found.makespan, found.tardiness, found.value) if found else [None] * 3),
            bound_objective(instance, goal),
            None if found is None else "kept" if found.within else "over",
            len(found.actions) if found else None,
            *((stored.makespan, stored.tardiness) if stored else [None] * 2),
            *(rule, *values),
        )
        rows.append(dict(zip((column.name for column in COLUMNS), cells, strict=True)))
    columns = [
        column._replace(title=f"{goal.objective}", form=goal.format)
        if column.name == "value" and goal.objective not in ("makespan", "tardiness")
        else column
        for column in COLUMNS
        if column.name != "limit" or goal.has_limit
    ]
    print(render(columns, rows, arguments.format), end="")
    best = [item for item in references if item is not None]
    lines = []
    if best:
        some = [k for k, item in enumerate(references) if item is not None]
        margin = measure_margin(rule, played.select(some), [instances[k] for k in some], best)
        lines += [margin.sentence()] if margin.is_little else []
    show_below(arguments.format, lines)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    if arguments.out is not None:
        save_references(arguments.out, best)
        print(f"references {arguments.out}", file=sys.stderr)
