"""`python -m studies`: repeat the paper's studies, its figures beside the measured ones.

Repeat a study of the paper: train every row with every seed, play the suites, and print the paper's
tables with its values beside the measured ones ("learning" and "generalisation" are studies of our own,
with a p value a row).

Marks compare with ACERL by a two-sided rank-sum test at 5 % on the means of the training seeds: + better,
~ similar, - worse. On DMH-01 to -08 M and C are normalised over the paper's own rows, so they can be
compared with the printed ones. Where the paper prints no marks (ablation) there are none. The paper's noised
records are not published: beside ours, of the same names, its figures stand for themselves, and nothing is
subtracted.

The learners that the paper compares with (--rivals) are trained like ACERL, with fewer seeds: all ten take
about an hour and a half on two cores, where ACERL's row takes minutes.

Every finished training is kept in --out, so an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.outputs import declare_outputs, make_folder
from acerl_np.commands.shared.progress import compile_ahead, make_report
from acerl_np.commands.shared.teams import open_team
from acerl_np.policies.general import SETS
from acerl_np.problem.bundled import load_layout
from acerl_np.support.errors import InputError
from acerl_np.support.fields import Field
from acerl_np.support.files import write_atomically
from acerl_np.support.report import DATA_FORMATS, clear_cell, render_data, render_json
from acerl_np.support.team import lead
from acerl_np.support.workers import count_cores
from acerl_np.training.config import Config
from studies import (
    ablation,
    bilge_ulusoy,
    checks,
    comparison,
    general,
    generalisation,
    learning,
    leave_one_out,
    noise,
    rival_settings,
    robustness,
)
from studies.rivals.training import ALGORITHMS
from studies.rivals.training import warm_up as warm_rivals
from studies.study import Study
from studies.study_tables import StudyTable

STUDIES = {
    "comparison": "training and noised records against rules and the compared learners; 11 rows",
    "robustness": "arrivals perturbed by 5 to 30 s, nine draws each; shares its rows with comparison",
    "leave-one-out": "trained on seven of eight records; 8 rows, 88 with all compared learners",
    "ablation": "ranking, sampler, single records; 44 rows",
    "all": "these four, the paper's studies; 62 rows",
    "learning": "one setting changed at a time: what training needs; 38 rows",
    "generalisation": "index policies: settings, features, budgets, lookahead, records left out, fresh days",
    "bilge-ulusoy": "job shops with known optima: hindsight, rules, policies, lookahead; not of the paper",
    "general": "the policy general: trained on random floors, judged on others; makes its weights",
    "checks": "what figures were seen before it was chosen, by fresh seeds; 5 rows",
    "noise": "noise of low rank beside full noise, by fresh seeds; 6 rows",
    "rival-settings": "a search on the training records for what nobody says of the learners; 40 rows",
}

TRAININGS = {
    **{"learning": 10, "generalisation": 10, "bilge-ulusoy": 10, "general": 5},
    "rival-settings": 2,
}
"""Of a row, where there are fewer than in the paper's studies."""

SEARCHED = rival_settings.NAME
RIVALS = {
    **{"comparison": "all", "robustness": "all", "leave-one-out": "none", "all": "all"},
    SEARCHED: ",".join(rival_settings.CANDIDATES),
}
"""Which compared learners a study trains unless told otherwise; the others train none."""

RUN = re.compile(r".+-[0-9a-f]{12}\.npz")
"""Names of kept trainings."""

YARDSTICK, GENERAL = "bilge-ulusoy", "general"

PAPER = ("comparison", "robustness", "leave-one-out", "ablation")
"""What "all" repeats."""
SHOWN = {
    x.NAME: x for x in (comparison, robustness, leave_one_out, ablation, learning, generalisation)
}
"""Studies whose tables stand on pages."""
STORED = {**SHOWN, checks.NAME: checks, noise.NAME: noise}
"""Studies whose trials are stored."""
MODULES = {**STORED, SEARCHED: rival_settings}


def list_options(study: str) -> opt.Options:
    """Return the options of a study."""
    seeds = opt.Argument(
        "--trainings N",
        "trainings per row, with a seed each",
        Field(int, 1, 1000),
        default=TRAININGS.get(study, 20),
    )
    play, records, running = list[opt.Argument](), list[opt.Argument](), [seeds]
    if study not in (YARDSTICK, GENERAL):
        running.append(
            opt.TRIALS.but(help="episodes per instance and seed", kind=Field(int, 1, 100_000))
        )
    if study != SEARCHED:
        what = "fewer generations, for a quick look (default: 128)"
        running.append(opt.Argument("--generations N", what, Field(int, 1, 1_000_000)))
    if study == YARDSTICK:
        file = "other instances in the form of bilge-ulusoy.json; gaps are then to what hindsight finds"
        records.append(opt.Argument("--file FILE.json", file))
        running.append(opt.EFFORT)
    elif study == GENERAL:
        what = "floors of your own that judge, too: layouts whose sites say who sends what, as for shifts"
        records.append(opt.Argument("--floors LAYOUTS", what, opt.NAMES))
    if study in RIVALS:
        names = "compared learners to train as well, such as ppo,asac; all or none"
        play.append(opt.Argument("--rivals NAMES", names, default=RIVALS[study]))
    if study in RIVALS or study == checks.NAME:
        usual = 200_000 if study == SEARCHED else 1_000_000
        steps = opt.Argument(
            "--rival-steps N", "steps of a training", Field(int, 1, 10**12), default=usual
        )
        few = seeds.but(usage="--rival-trainings N", help="trainings of each", default=5)
        running += [steps] if study == SEARCHED else [steps, few]
    return {
        opt.PLAY: tuple(play),
        opt.RECORDS: tuple(records),
        opt.OUTPUT: (
            opt.OUT.but(
                usage="-o/--out DIR", help="folder of runs and tables", default="runs/experiments"
            ),
            *(opt.FORMAT, opt.FORCE),
        ),
        opt.RUNNING: (
            *running,
            opt.THREADS.but(help="trainings at a time (default: one per core)"),
            *opt.TEAM,
        ),
    }


def list_actions() -> dict[str, opt.Action]:
    """Return the studies as commands."""
    alone = {YARDSTICK: run_yardstick, GENERAL: run_general}
    return {
        name: opt.Action(alone.get(name, run), list_options(name), summary)
        for name, summary in STUDIES.items()
    }


def read_rivals(text: str, study: str) -> tuple[str, ...]:
    """Return the names of compared learners that `--rivals` means."""
    known = tuple(rival_settings.CANDIDATES) if study == SEARCHED else ALGORITHMS
    words = {"all": known} if study == SEARCHED else {"all": known, "none": ()}
    names = words.get(text, tuple(dict.fromkeys(x.strip().lower() for x in text.split(","))))
    for name in names:
        if name not in known:
            expected = f"{', '.join(words)}, or some of {', '.join(known)}"
            raise InputError(f"--rivals: read '{name}'; expected {expected}")
    return names


def run(arguments: argparse.Namespace) -> None:
    """Repeat a study of the paper: train every row with every seed, play the suites, print its tables.

    Marks compare with ACERL by a two-sided rank-sum test at 5 % on the means of the training seeds: + better,
    ~ similar, - worse. Every finished training is kept in --out, so an interrupted study goes on where it
    stopped.

    Examples
    --------
      python -m studies comparison
      python -m studies learning --trainings 3
      python -m studies all --rivals none
    """
    # A study without compared learners has no such options.
    given = {"rivals": "none", **vars(arguments)}
    rivals = read_rivals(given["rivals"], arguments.command)
    names = PAPER if arguments.command == "all" else (arguments.command,)
    declare_study(arguments, names)
    folder = make_folder(arguments.out)
    own = arguments.threads or count_cores()
    with open_team(given, usual=None, own=own) as team:
        # What works elsewhere finds the kernels compiled if it shares this machine.
        forms = ["best"] if arguments.command == "generalisation" else []
        compile_ahead("training", *forms)
        if rivals:
            warm_rivals()
        given |= {x.replace("trainings", "seeds"): n for x, n in given.items() if "trainings" in x}
        fields = ("seeds", "trials", "generations", "threads", "rival_seeds", "rival_steps")
        how = {name: given[name] for name in fields if name in given}
        study = Study(folder, rivals=rivals, team=team, **how)
        show_studies(arguments, study, names)


def run_parts(
    arguments: argparse.Namespace,
    study: Any,
    parts: Sequence[Any],
    outputs: Iterable[str],
    finish: Callable[[list[Any]], tuple[dict[str, str], list[StudyTable]]],
) -> None:
    """Do all parts, write what they come to, and print its tables, after all files are declared.

    `finish` returns the contents of files, and tables; `outputs` names all.
    """
    own, folder = arguments.threads or count_cores(), Path(arguments.out)
    declare_outputs(arguments, [folder / name for name in outputs], folder=folder)
    make_folder(folder)
    report, runs = make_report("parts"), dict[int, Any]()
    with open_team(vars(arguments), usual=None, own=own) as workers, lead(workers, own) as team:
        compile_ahead("best", "rules", "baselines", "lookahead")
        for place, found in team.run(study.run_part, parts):
            runs[place] = found
            report(len(runs), len(parts), parts[place].describe())
    contents, tables = finish([runs[place] for place in sorted(runs)])
    for name, text in contents.items():
        write_atomically(folder / name, text.encode())
    show_tables(arguments.format, folder, tables, [folder / name for name in contents])
    print_data(arguments.format, tables)


def list_files(name: str, tables: Iterable[str]) -> list[str]:
    """Return the names of a study's files: all figures, and its tables."""
    return [f"{name}.csv", *(f"{name}-{x}.{form}" for x in tables for form in ("csv", "md"))]


def run_general(arguments: argparse.Namespace) -> None:
    """Train the policy general on random floors, and judge it on others.

    Two sets of weights: for shifts, and for records that end. Each training sees a family of floors of its
    own; the judges are floors of a family apart, the bundled plants and the DMH records. Beside them stand
    weights that have seen no floor of the judged one's kind, and five features of pairs alone. `general.json`
    holds the weights of the first training of each set: those that are shipped are these.
    """
    fewer = {} if arguments.generations is None else {"generations": arguments.generations}
    floors = [load_layout(path) for path in arguments.floors or ()]
    parts = general.list_parts(arguments.trainings, floors, **fewer)
    outputs = [*list_files(GENERAL, SETS), f"{GENERAL}.json"]
    run_parts(arguments, general, parts, outputs, general.finish)


def run_yardstick(arguments: argparse.Namespace) -> None:
    """Measure against the forty instances of Bilge and Ulusoy (1995), or others of their form.

    Search with all known from the start, and play with tasks known when they are ready (reactive) or when the
    processing before them begins (announced): rules, index policies trained on one half of the job sets and
    judged on the other, both ways, and lookahead over each. Gaps are to the known optima, with --file to the
    best that hindsight finds. Files are named after FILE.json.
    """
    path = None if arguments.file is None else Path(arguments.file)
    name = YARDSTICK if path is None else path.stem
    fewer = {} if arguments.generations is None else {"generations": arguments.generations}
    config = Config.preset("best", **bilge_ulusoy.OPTIONS, **fewer)
    parts = bilge_ulusoy.list_parts(path, arguments.trainings, config, arguments.effort)
    finish = partial(bilge_ulusoy.finish, name, known=path is None)
    run_parts(arguments, bilge_ulusoy, parts, list_files(name, bilge_ulusoy.TABLES), finish)


def declare_study(arguments: argparse.Namespace, names: tuple[str, ...]) -> None:
    """Refuse a folder with tables of a study's name that holds no trainings of studies."""
    folder = Path(arguments.out)
    try:
        begun = any(RUN.fullmatch(path.name) for path in (folder / "runs").glob("*.npz"))
        found = [path for name in names for path in folder.glob(f"{name}*.*")]
    except (OSError, ValueError):
        return  # no such folder can be
    tables = [path for path in found if path.suffix in (".csv", ".md")]
    declare_outputs(arguments, tables, force=begun or bool(arguments.force))


def show_studies(arguments: argparse.Namespace, study: Study, names: tuple[str, ...]) -> None:
    """Run one study or several, write their tables and print them."""
    rivals, shown = study.rivals, list[StudyTable]()
    for name in names:
        # Eight folds of ten learners take half a day: only who names the study means that.
        study.rivals = () if arguments.command == "all" and name == "leave-one-out" else rivals
        module = MODULES[name]
        study.report, study.first = make_report(), getattr(module, "FIRST", 0)
        results = study.run(module.trainings(study))
        files, tables = study.write_records(results, name), module.tables(study, results)
        show_tables(arguments.format, study.folder, tables, files)
        shown += tables
    print_data(arguments.format, shown)


def show_tables(
    form: str, folder: Path, tables: Iterable[StudyTable], files: Sequence[Path]
) -> None:
    """Write tables, and print them for people; say which files people read, with these."""
    for table in tables:
        for own, suffix in (("markdown", "md"), ("csv", "csv")):
            write_atomically(folder / f"{table.name}.{suffix}", table.render(own).encode())
        if form not in DATA_FORMATS:
            print(table.render(form))
    shown = [*files, *(folder / f"{table.name}.md" for table in tables)]
    print("files: " + " ".join(map(str, shown)), file=sys.stderr)


def print_data(form: str, tables: Iterable[StudyTable]) -> None:
    """Print all tables as one, for programs."""
    documents: list[dict[str, Any]] = [
        {
            "table": table.name,
            "title": table.title,
            "rows": [{key: clear_cell(x) for key, x in row.items()} for row in table.data],
        }
        for table in tables
    ]
    if form == "json":
        print(render_json(documents), end="")
    elif form == "csv":
        # One table of CSV: the name of the table first, then the columns of all.
        rows = [{"table": item["table"], **row} for item in documents for row in item["rows"]]
        known = dict.fromkeys(name for row in rows for name in row)
        print(render_data([{**known, **row} for row in rows], "csv"), end="")
