"""`acerl-np hindsight`: search the best schedules for futures that are known.

Search, for each record, the best sequence of actions that a dispatcher could take who knew all arrivals
and breakdowns in advance: the smallest objective with a cost below the limit (by default the makespan, and
a mean tardiness below 50 s). Where no schedule is found below the limit, it is that of the least cost.

The simulator is deterministic, so such a schedule can be replayed: it is a reference for how much there
is to win. Each is verified by replay. The column "bound" is proven: no schedule's objective is below it.
Beside it stands the best static plan for the record (a fixed order of vehicles and a rule for each);
hindsight is never worse than that, the rules, the yardsticks and lookaheads over them without futures.
Where the best rule is nearly as good, a line says that there is little to win.
Where tasks follow others, are processed or announced, or are never due, orders are searched: each vehicle
takes its tasks in turn, as soon as they are known.

--exact proves a bound on the makespan by a constraint model (needs the extra: pip install 'acerl_np[exact]'),
and searches a schedule that reaches it, for at most --time-limit seconds a record: it is optimal, or a gap is
left open. In the model machines serve in the order of delivery, as in the simulator. Vehicles may wait, which
rules do not do, and go on from anywhere after a listed breakdown, so the bound holds but may be out of reach.
The simulator plays the model's schedule; a line says where that takes another time.

Where vehicles break down at random no future is known: give --random-breakdowns none to leave those
breakdowns out.

Examples
--------
  acerl-np hindsight week1.csv --layout floor.json --out best.json
  acerl-np hindsight --suite bu-all
  acerl-np hindsight EX11 EX52 --exact --time-limit 60
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
    from acerl_np.evaluation.exact import Proof
    from acerl_np.evaluation.references import Reference

OPTIONS = (
    *opt.list_data("all DMH records"),
    *opt.VARYING,
    *opt.GOAL,
    opt.EFFORT,
    opt.CommandOption("--exact", "prove bounds with OR-Tools, one record after the other", bool),
    opt.CommandOption(
        "--time-limit SECONDS", "of --exact, for a record", float, 600.0, (0.1, 10.0**6)
    ),
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
    Column("exact_makespan_s", "exact", ".1f"),
    Column("gap_share", "gap", ".1%"),
    Column("proof", "proof"),
    Column("limit", "limit", unknown=""),
    Column("decisions", "decisions", "d"),
    Column("static_makespan_s", "static", ".1f", none="none"),
    Column("static_tardiness_s"),
    Column("plan", "plan"),
    Column("stored_makespan_s", "stored", ".1f"),
    Column("stored_tardiness_s"),
    Column("rule"),
    Column("rule_makespan_s"),
    Column("rule_tardiness_s"),
)


OF_EXACT = ("exact_makespan_s", "gap_share", "proof")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    opt.declare(parser, *OPTIONS)


def run(arguments: argparse.Namespace) -> None:
    """Search, verify, show and write the references."""
    from acerl_np.evaluation import exact
    from acerl_np.evaluation.bounds import bound_objective
    from acerl_np.evaluation.hindsight import check_future, find_references
    from acerl_np.evaluation.margin import compare_references, measure_margin, play_best_rule
    from acerl_np.evaluation.references import save_references
    from acerl_np.evaluation.trials import Playing
    from acerl_np.support.workers import count_cores

    declare_outputs(arguments, [arguments.out])
    every = [x for x, path in bundled_instances().items() if path.parent.name == "dmh"]
    instances = load_instances(arguments, tasks=None if names_records(arguments) else every)
    seed, goal = arguments.seed, read_goal(arguments)
    if arguments.exact:
        exact.load_solver()
    for instance in instances:
        check_future(instance)
        if arguments.exact:
            exact.check_provable(instance, goal)
    compile_ahead("search", "static")
    started = time.perf_counter()
    own = min(arguments.threads or count_cores(), len(instances))
    report, places = make_report("records"), itertools.count(1)

    def show(instance: Instance, found: Reference | None) -> None:
        what = "no schedule finishes" if found is None else found.goal.show(found.value)
        over = ", over the limit" if found is not None and not found.within else ""
        report(next(places), len(instances), f"{instance.name}: {what}{over}")

    how = {"effort": arguments.effort, "seed": seed, "callback": show}
    with open_team(vars(arguments), own=own) as team:
        references = find_references(instances, objective=goal, executor=team, **how)
    proofs: list[Proof | None] = [None] * len(instances)
    for k, instance in enumerate(instances if arguments.exact else ()):
        own = exact.prove_makespan(instance, goal, references[k], seconds=arguments.time_limit)
        proofs[k], references[k] = own, exact.take_proven(instance, goal, references[k], own)
        line = f"{instance.name}: at least {own.bound:.0f} s, {own.describe()}"
        print(f"{k + 1}/{len(instances)} {line}", file=sys.stderr, flush=True)
    known = compare_references(instances, references, goal)
    playing = Playing(seed=seed, goal=goal, threads=arguments.threads)
    rule, played = play_best_rule(instances, playing)
    means = zip(played.mean_makespan(), played.mean_tardiness(), strict=True)
    rows = []
    for instance, item, proof, values in zip(instances, known, proofs, means, strict=True):
        found, static, stored = item.found, item.static, item.stored
        fleet = [vehicle.id for vehicle in instance.layout.vehicles]
        cells = (
            instance.name,
            *((found.makespan, found.tardiness, found.value) if found else [None] * 3),
            proof.bound if proof else bound_objective(instance, goal),
            *((proof.makespan, proof.gap, proof.describe()) if proof else [None] * 3),
            None if found is None else "kept" if found.within else "over",
            len(found.actions) if found else None,
            *((static.makespan[0], static.tardiness[0]) if static else [None] * 2),
            static.plan.describe(fleet) if static else None,
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
        if arguments.exact or column.name not in OF_EXACT
    ]
    print(render(columns, rows, arguments.format), end="")
    best = [item for item in references if item is not None]
    lines = []
    if best:
        some = [k for k, item in enumerate(references) if item is not None]
        margin = measure_margin(rule, played.select(some), [instances[k] for k in some], best)
        lines += [margin.sentence()] if margin.is_little else []
    lines += [
        f"{instance.name}: the model plans {proof.planned:.1f} s, the simulator plays {proof.makespan:.1f} s."
        for instance, proof in zip(instances, proofs, strict=True)
        if proof and proof.planned != proof.makespan
    ]
    show_below(arguments.format, lines)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    if arguments.out is not None:
        save_references(arguments.out, best)
        print(f"references {arguments.out}", file=sys.stderr)
