"""`acerl-np train`: train a policy on task records and show what it achieves."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.beginning import make_trainer, warn_of_ids, write_config
from acerl_np.commands.common import (
    add_data_arguments,
    add_random_breakdowns,
    compile_ahead,
    load_instances,
    make_folder,
    open_results,
    report_unfinished,
)
from acerl_np.commands.curves import draw_training, remove_picture
from acerl_np.commands.interruption import catch_signals
from acerl_np.commands.judging import part_records, read_share, show_verdict, write_judges
from acerl_np.commands.options import add_config_options, add_preset, check_options, merge_options
from acerl_np.commands.outputs import add_force, declare_run
from acerl_np.commands.progress import show_progress
from acerl_np.commands.seeds import add_seeds, declare_seeds, read_seeds, run_seeds
from acerl_np.commands.summary import MORE_SEEDS_HELP, summarise
from acerl_np.commands.teams import SILENCE, add_team_options, open_team
from acerl_np.commands.tensorboard import add_tensorboard, check_tensorboard, open_tensorboard
from acerl_np.support.errors import InputError, WorkerError

if TYPE_CHECKING:
    from acerl_np.support.team import Team
    from acerl_np.training.acerl import ACERL

DESCRIPTION = """\
Train a dispatching policy with ACERL (Algorithm 1 of the paper).

Without arguments this trains on DMH-01 to DMH-08 with the paper's settings and then plays every
instance 30 times. It writes policy.npz (the policy), run.npz (the checkpoint), config.json (all
options), history.csv (one line per generation), curves.csv (how the policy did on each training record
every few generations) and, if matplotlib is installed, curves.png into a new folder below runs/, or into
--out.

--preset best trains another form of policy, made for days that nobody has seen: a function that scores
every pair of a vehicle and a task. Any option beside it wins.

Of four records of your own or more a quarter is held back (--hold-out) and judges the policy at the end,
beside the best rule, a static plan, and lookahead, all chosen on the training records alone. Fewer records
are all trained on, and noised copies of them judge. The static plan is saved as static.npz.
"""

EPILOG = """\
examples:
  acerl-np train                                   the paper's run
  acerl-np train --seed 3 --out runs/three         another seed, another folder
  acerl-np train week1.csv week2.csv --layout floor.json
  acerl-np train week*.csv --layout floor.json --preset best
  acerl-np train week*.csv --layout floor.json --preset best --decisions 10000000 --hold-out 0.5
  acerl-np train --suite dmh-train --hold-out 0.25   a verdict on two of the eight records
  acerl-np train --resume runs/three/run.npz --generations 256
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    data = parser.add_argument_group("what to train on")
    add_data_arguments(data, "dmh-train, that is DMH-01 to -08")
    add_random_breakdowns(data)
    data.add_argument(
        "--hold-out",
        type=read_share,
        metavar="SHARE",
        help="share of the records that is not trained on and judges the policy, such as 0.25; 'none': train "
        "on all (default: 0.25 of four own records or more, none of bundled ones). The seed and the records' "
        "contents decide which",
    )
    add_preset(parser)
    add_config_options(parser)
    run = parser.add_argument_group("the run")
    run.add_argument("--seed", type=int, help="seed of every random draw (default: 0)")
    add_seeds(run)
    add_team_options(
        run,
        "train with --seeds, or play the members of one training,",
        f"{SILENCE:g}; with --seeds: never",
    )
    run.add_argument(
        "--threads",
        type=int,
        help="worker threads; no result depends on them (default: one per core)",
    )
    run.add_argument(
        "--trials",
        type=int,
        help="episodes per instance for the final tables, 0 for no tables (default: 30)",
    )
    run.add_argument("--more", action="store_const", const=True, help=MORE_SEEDS_HELP)
    run.add_argument(
        "--out",
        metavar="DIR",
        help="folder for the results (default: a new one below runs/)",
    )
    add_force(run)
    run.add_argument(
        "--resume",
        metavar="RUN.npz",
        help="go on from a checkpoint; needs nothing else, and what else is given must agree with it",
    )
    run.add_argument(
        "--checkpoint-every",
        type=float,
        metavar="SECONDS",
        help="time between checkpoints (default: 10)",
    )
    run.add_argument(
        "--checkpoint-generations",
        type=int,
        metavar="N",
        help="also save a checkpoint every N generations (default: no)",
    )
    run.add_argument(
        "--no-records",
        action="store_const",
        const=True,
        help="leave the training records out of policy.npz and static.npz; their names and fingerprints stay",
    )
    add_tensorboard(run)
    run.add_argument(
        "--config", metavar="FILE.toml", help="options as TOML; the command line comes first"
    )
    run.add_argument(
        "--quiet", action="store_const", const=True, help="no progress, only the table"
    )


def run(arguments: argparse.Namespace) -> int:
    """Train, save, evaluate; return the exit status."""
    given = {
        name: value
        for name, value in vars(arguments).items()
        if name not in ("command", "run") and value is not None and value != []
    }
    options, settings = merge_options(given)
    check_options(options)
    check_tensorboard(options["tensorboard"])
    if options["quiet"]:
        from acerl_np.support.machine_code import silence

        silence()
    if options["seeds"] is not None:
        return train_several(given, options, settings)
    declare_run(name_files(given, options))
    with open_team(options["processes"], options["dask"], options["silence"]) as team:
        return train_one(given, options, settings, team)


def train_several(given: dict[str, Any], options: dict[str, Any], settings: dict[str, Any]) -> int:
    """Train with every seed that is asked for; return the exit status."""
    from acerl_np.experiments.seeds import SeedTask
    from acerl_np.support.workers import count_cores
    from acerl_np.training.config import Config

    for name in ("seed", "resume", "tensorboard"):
        if name in given:
            raise InputError(f"--{name}: given besides --seeds; expected one of the two")
    seeds = read_seeds(options["seeds"])
    config = Config.preset(options["preset"] or "paper", **settings)
    instances = load_instances(argparse.Namespace(**options), "dmh-train")
    # One part of the records is held back for all seeds.
    training, judges = part_records({**options, "seed": seeds[0]}, instances)
    warn_of_ids(training, config)
    tasks = [
        SeedTask(
            tuple(training),
            judges.held_back,
            config,
            seed,
            options["trials"],
            not options["no_records"],
        )
        for seed in seeds
    ]
    name = f"{name_data(options)}-seeds{seeds[0]}-{seeds[-1]}"
    folder = Path(options["out"] or Path("runs") / name)
    declare_seeds(name_files(given, options), tasks, folder)
    own = min(options["threads"] or count_cores(), len(tasks))
    asked = options["processes"], options["dask"], options["silence"]
    with open_team(*asked, usual=None, own=own) as team:
        own = "best" if config.form == "index" else "training"
        compile_ahead(own, quiet=options["quiet"])
        shown = {name: options[name] for name in ("more", "quiet")}
        run_seeds(tasks, make_folder(folder), team, **shown)
    return 0


def name_files(given: dict[str, Any], options: dict[str, Any]) -> argparse.Namespace:
    """Return what is read and written: options, and what only the command line has."""
    own = {name: given.get(name) for name in ("config", "resume", "force")}
    return argparse.Namespace(**options, **own)


def name_data(options: dict[str, Any]) -> str:
    """Return what a new folder's name says of the records."""
    return "tasks" if options["tasks"] else options["suite"] or "dmh-train"


def train_one(
    given: dict[str, Any], options: dict[str, Any], settings: dict[str, Any], team: Team | None
) -> int:
    """Train with one seed, on the threads of this process or with a team; return the exit status."""
    trainer, judges = make_trainer(given, options, settings, team)
    judged = judges.on != "nothing" and options["trials"] > 0
    parts = ["rules", "static", "lookahead"] if judged else []
    own = "best" if trainer.config.form == "index" else "training"
    compile_ahead(own, *parts, quiet=options["quiet"])
    name = f"{name_data(options)}-seed{options['seed']}"
    with open_results(name_files(given, options), name) as folder:
        names = ("policy.npz", "run.npz", "config.json", "history.csv", "curves.csv")
        paths = {name: folder / name for name in names}
        # First: what it names tells a killed start from a run (`outputs.is_killed_start`).
        write_config(paths["config.json"], trainer, judges, options["preset"])
        write_judges(folder, judges)
        started = time.perf_counter()
        stopped = train(trainer, options, paths, team)
        seconds = time.perf_counter() - started
        picture = None
        if stopped is None:
            picture = draw_training(folder, quiet=options["quiet"])
        else:
            remove_picture(folder)
    if stopped is not None:
        print(
            f"acerl-np train: stopped after {describe_stop(trainer)}; go on with: acerl-np train --resume "
            f"{paths['run.npz']}",
            file=sys.stderr,
        )
        return 128 + stopped
    if options["trials"]:
        from acerl_np.evaluation.trials import evaluate_policy

        trials = evaluate_policy(
            trainer.policy,
            trainer.instances,
            trials=options["trials"],
            seed=trainer.seed,
            cost_limit=trainer.config.cost_limit,
            threads=options["threads"],
            horizon=trainer.config.horizon,
        )
        on = "Training records: " if judged else ""
        print(summarise(trainer.instances, trials, on=on, more=options["more"]))
        report_unfinished("policy", trials)
    if judged:
        show_verdict(trainer, judges, options, folder)
    decisions = trainer.history[-1].decisions if trainer.history else 0
    print(
        f"{trainer.generation} generations, {decisions:,} decisions, {seconds:.1f} s; seed {trainer.seed}"
    )
    print(f"policy {paths['policy.npz']}   checkpoint {paths['run.npz']}")
    print(f"history {paths['history.csv']}   curves {paths['curves.csv']}")
    print(f"options {paths['config.json']}" + (f"   picture {picture}" if picture else ""))
    return 0


def describe_stop(trainer: ACERL) -> str:
    """Return how far a training has come, such as "generation 7 of 128"."""
    if trainer.config.decisions is None:
        return f"generation {trainer.generation} of {trainer.config.generations}"
    taken = trainer.history[-1].decisions if trainer.history else 0
    return f"{taken:,} of {trainer.config.decisions:,} decisions"


PATIENCE = 1.0
"""Seconds after a signal for a generation on this process's threads to end by itself."""


class Stopped(KeyboardInterrupt):
    """A signal was noted while workers play: their generation is given up."""


def train(
    trainer: ACERL, options: dict[str, Any], paths: dict[str, Path], team: Team | None
) -> int | None:
    """Train to the end, or to a signal, whose number is returned; save now and then and at the end.

    Raises
    ------
    WorkerError
        If the team fails; the last whole generation is saved.
    """

    def save() -> None:
        trainer.save(paths["run.npz"])
        trainer.write_history(paths["history.csv"])
        trainer.write_curves(paths["curves.csv"])

    noted = 0.0

    def give_up() -> None:
        if caught() is not None:
            raise Stopped

    def wait_a_little() -> None:
        nonlocal noted
        if caught() is not None:
            noted = noted or time.perf_counter()
            if time.perf_counter() - noted > PATIENCE:
                raise Stopped

    save()
    failure: WorkerError | None = None
    with catch_signals() as caught:
        if team is not None:
            team.watch = give_up
        trainer.watch = wait_a_little
        last_save, last_generation = time.perf_counter(), trainer.generation
        folder = paths["run.npz"].parent
        with (
            show_progress(trainer, quiet=options["quiet"]) as show,
            open_tensorboard(folder, trainer, options["tensorboard"]) as log,
        ):
            while not trainer.done and caught() is None:
                try:
                    record = trainer.step()
                except Stopped:
                    break
                except WorkerError as error:
                    failure = error
                    break
                show(record)
                log(record)
                if (
                    time.perf_counter() - last_save >= options["checkpoint_every"]
                    or trainer.generation - last_generation >= options["checkpoint_generations"]
                ):
                    save()
                    last_save, last_generation = time.perf_counter(), trainer.generation
        save()
        policy = trainer.policy
        if options["no_records"] and policy.origin is not None:
            policy.origin = policy.origin.without_records()
        policy.save(paths["policy.npz"])
        if failure is not None:
            remove_picture(folder)
            raise WorkerError(
                f"{failure}; go on with: acerl-np train --resume {paths['run.npz']}"
            ) from failure
        return None if trainer.done else caught()
