"""`acerl-np train`: train a policy on task records and show what it achieves.

Train a dispatching policy with ACERL (Algorithm 1 of the paper), or with a learner that the paper compares
with (--algorithm).

Without arguments this trains on DMH-01 to DMH-08 with the paper's settings and then plays every
instance 30 times. It writes policy.npz (the policy), run.npz (the checkpoint), config.json (all
options), history.csv (one line per generation), curves.csv (how the policy did on each training record
every few generations), results.csv (the figures of the last tables) and, if matplotlib is installed,
curves.png into a new folder below runs/, or into --out.

--preset best trains another form of policy, made for days that nobody has seen: a function that scores
every pair of a vehicle and a task. It is the default for records of your own. Any option beside it wins.

--objective says what is to be small, and --cost-limit what must not be exceeded. The makespan, the paper's,
fits records of some thirty tasks that end. On shifts, of more than 100 tasks or of more than an hour, the
preset best takes late+0.05*tardiness: one percent of late tasks weighs as much as 20 s of mean tardiness.

Of ten records of your own or more a third, of more than twenty a quarter, is held back (--hold-out) and
judges the policy at the end, beside the best rule, a static plan, and lookahead, all chosen on the training
records alone. Of five to nine all are trained on, and each judges a further training that leaves it out
(--folds), if that is quick. Else noised copies judge. The static plan is saved as static.npz.

Examples
--------
  acerl-np train                                   the paper's run
  acerl-np train --seed 3 --out runs/three         another seed, another folder
  acerl-np train week1.csv week2.csv --layout floor.json
  acerl-np train week*.csv --layout floor.json     the preset best, as these are your own
  acerl-np train week*.csv --layout floor.json --decisions 10000000 --hold-out 0.5
  acerl-np train week*.csv --layout floor.json --objective waiting --cost late --cost-limit 2
  acerl-np train week*.csv --layout floor.json --objective late --class-weights 1,5
  acerl-np train --suite dmh-train --hold-out 0.25   a verdict on two of the eight records
  acerl-np train --algorithm ppo --set clip=0.1      another learner
  acerl-np train --resume runs/three/run.npz --generations 256
  acerl-np train --config runs/three/config.json --seeds 0:5
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands import options as opt
from acerl_np.commands import train_options
from acerl_np.commands.curves import draw_training, remove_picture
from acerl_np.commands.interruption import catch_signals
from acerl_np.commands.judging import Judges, show_verdict, write_judges
from acerl_np.commands.learners import AcerlLearner, Learner, RivalLearner, name_part, show_progress
from acerl_np.commands.outputs import declare_run, make_folder, open_results
from acerl_np.commands.players import play_quietly
from acerl_np.commands.progress import compile_ahead, report_unfinished
from acerl_np.commands.several import declare_seeds, read_seeds, run_seeds
from acerl_np.commands.tables import list_figures, summarise
from acerl_np.commands.teams import open_team
from acerl_np.commands.tensorboard import find_writer, open_tensorboard
from acerl_np.support.errors import InputError, WorkerError
from acerl_np.support.files import write_atomically
from acerl_np.support.report import render_data

if TYPE_CHECKING:
    from acerl_np.support.team import Team

DEFAULT = "dmh-train, that is DMH-01 to -08"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    threads = opt.THREADS.but(
        help="worker threads; no result depends on them (default: one per core)"
    )
    team = "train with --seeds, or play the members of one training,"
    workers = (*opt.list_team(team, f"{opt.SILENT:g}; with --seeds: never"), threads)
    acerl = "ACERL (defaults: the paper's, else the released code's; best: those of --preset best)"
    groups: dict[str, tuple[opt.CommandOption, ...]] = {
        "what to train": (train_options.PRESET, train_options.ALGORITHM),
        "what to train on": (
            *opt.list_data(DEFAULT),
            opt.RANDOM_BREAKDOWNS,
            train_options.HOLD_OUT,
            train_options.FOLDS,
        ),
        acerl: tuple(train_options.list_config_options()),
        "other algorithms": train_options.OTHERS,
        "the run": (*train_options.RUN, train_options.CHECKPOINT_GENERATIONS, *workers),
    }
    for title, options in groups.items():
        opt.declare(parser.add_argument_group(title), *options, given=True)
    opt.declare(parser, opt.TRUST)


def run(arguments: argparse.Namespace) -> int:
    """Train, save, evaluate; return the exit status."""
    given = {
        name: value
        for name, value in vars(arguments).items()
        if name not in ("command", "run", "trust_code") and value != []
    }
    options, settings = train_options.merge_options(given)
    algorithm = train_options.check_algorithm(options, settings, given)
    kind = AcerlLearner if algorithm == train_options.ACERL else RivalLearner
    learner = kind(algorithm, given, options, settings)
    if "settings" in given and isinstance(learner, RivalLearner):
        print(learner.show_settings())
        return 0
    if "print_config" in given:
        print_config(learner)
        return 0
    if options["quiet"]:
        from acerl_np.support.machine_code import silence

        silence()
    if options["seeds"] is not None:
        return train_several(learner)
    if options["tensorboard"]:
        find_writer()
    if isinstance(learner, RivalLearner):
        if options["processes"] is not None or options["dask"] is not None:
            raise InputError(
                "--processes, --dask: one training runs on one thread; expected --seeds besides"
            )
        learner.read_settings()
    declare_run(name_files(learner))
    with open_team(options) as workers:
        return train_one(learner, workers)


def print_config(learner: Learner) -> None:
    """Print all options, those of the algorithm with their defaults."""
    values = {name: x for name, x in learner.options.items() if x not in (None, False, [])}
    config = learner.configure().to_dict()
    values.update(config.pop("config", config))
    if learner.algorithm != train_options.ACERL:
        values["set"] = train_options.format_settings(values.pop("settings"))
    elif values["decisions"] is not None:
        values["generations"] = None
    if learner.options["seeds"] is not None:
        del values["seed"]
    print(train_options.format_options(values))


def name_files(learner: Learner) -> argparse.Namespace:
    """Return what is read and written: options, and what only the command line has."""
    own = {name: learner.given.get(name) for name in ("config", "resume", "force")}
    return argparse.Namespace(**{**learner.options, **own})


def train_several(learner: Learner) -> int:
    """Train with every seed that is asked for; return the exit status."""
    from acerl_np.experiments.seeds import SeedTask
    from acerl_np.support.workers import count_cores

    options = learner.options
    for name in ("seed", "resume", "tensorboard", "folds"):
        if name in learner.given or (name == "tensorboard" and options[name]):
            raise InputError(f"--{name}: given besides --seeds; expected one of the two")
    seeds = read_seeds(options["seeds"])
    config = learner.configure()
    # One part of the records is held back for all seeds.
    training, judges = learner.part(learner.load(), seeds[0])
    if isinstance(learner, AcerlLearner):
        config = config.resolve(training)
    records = tuple(training), judges.held_back
    kept = not options["no_records"]
    tasks = [SeedTask(*records, config, seed, options["trials"], kept) for seed in seeds]
    name = f"{learner.name()}-seeds{seeds[0]}-{seeds[-1]}"
    folder = Path(options["out"] or Path("runs") / name)
    declare_seeds(name_files(learner), tasks, folder)
    own = min(options["threads"] or count_cores(), len(tasks))
    with open_team(options, usual=None, own=own) as team:
        compile_ahead(name_part(config), quiet=options["quiet"])
        run_seeds(tasks, make_folder(folder), team, more=options["more"], quiet=options["quiet"])
    return 0


def train_one(learner: Learner, team: Team | None) -> int:
    """Train with one seed, on the threads of this process or with a team; return the exit status."""
    options = learner.options
    trainer, judges = learner.begin(team)
    settings = trainer.config if isinstance(learner, AcerlLearner) else trainer.settings
    judged = judges.on != "nothing" and options["trials"] > 0
    parts = ["rules", "static", "lookahead"] if judged else []
    compile_ahead(name_part(settings), *parts, quiet=options["quiet"])
    with open_results(name_files(learner), f"{learner.name()}-seed{trainer.seed}") as folder:
        # First: what it names tells a killed start from a run (`outputs.is_killed_start`).
        write_config(folder / "config.json", learner, trainer, judges)
        write_judges(folder, judges)
        (folder / "results.csv").unlink(missing_ok=True)
        started = time.perf_counter()
        stopped = train(learner, trainer, folder, team)
        seconds = time.perf_counter() - started
        picture = None
        if stopped is None:
            picture = draw_training(folder, quiet=options["quiet"])
        else:
            remove_picture(folder)
    if stopped is not None:
        done, total = learner.place(trainer)
        unit = learner.form.rpartition(" ")[2]
        how_far = f"{done:,} of {total:,} {unit}"
        if learner.form.startswith("generation"):
            how_far = f"generation {done} of {total}"
        print(
            f"acerl-np {learner.command.split()[0]}: stopped after {how_far}; {go_on(learner, folder)}",
            file=sys.stderr,
        )
        return 128 + stopped
    if options["trials"]:
        show_results(learner, trainer, judges, folder, team)
    print(f"{learner.summarise(trainer)}, {seconds:.1f} s; seed {trainer.seed}")
    print(f"policy {folder / 'policy.npz'}   checkpoint {folder / 'run.npz'}")
    print(f"history {folder / 'history.csv'}   curves {folder / 'curves.csv'}")
    print(f"options {folder / 'config.json'}" + (f"   picture {picture}" if picture else ""))
    return 0


def show_results(
    learner: Learner, trainer: Any, judges: Judges, folder: Path, team: Team | None
) -> None:
    """Play with what was trained, print the tables and keep their figures."""
    from acerl_np.evaluation.trials import Playing

    options = learner.options
    own = trainer.config if learner.algorithm == train_options.ACERL else trainer.settings
    playing = Playing(
        trials=options["trials"],
        seed=trainer.seed,
        goal=trainer.goal,
        threads=options["threads"],
        horizon=getattr(own, "horizon", None),
    )
    trials = play_quietly(trainer.policy, trainer.instances, playing)
    judged = judges.on != "nothing"
    on = "Training records: " if judged else ""
    policy = learner.algorithm.upper()
    print(summarise(trainer.instances, trials, on=on, policy=policy, more=options["more"]))
    report_unfinished("policy", trials)
    rows = [{"records_of": "training", **row} for row in list_figures("policy", trials)]
    if judged:
        found = show_verdict(trainer, judges, playing, options, folder, team)
        rows += [{**dict.fromkeys(rows[0]), "records_of": judges.on, **row} for row in found]
    write_atomically(folder / "results.csv", render_data(rows, "csv").encode())


def go_on(learner: Learner, folder: Path) -> str:
    """Return the command that goes on with a run."""
    return f"go on with: acerl-np {learner.command} --resume {folder / 'run.npz'}"


def write_config(path: Path, learner: Learner, trainer: Any, judges: Judges) -> None:
    """Write every option of the run as JSON."""
    import acerl_np

    rival = learner.algorithm != train_options.ACERL
    data = {
        "acerl_np": acerl_np.__version__,
        **({"algorithm": trainer.algorithm, "steps": trainer.steps} if rival else {}),
        "seed": trainer.seed,
        "instances": {instance.name: instance.content_hash for instance in trainer.instances},
        **({} if rival else judges.to_dict()),
        **learner.describe(trainer),
    }
    write_atomically(path, (json.dumps(data, indent=2) + "\n").encode())


PATIENCE = 1.0
"""Seconds after a signal for a generation on this process's threads to end by itself."""


class Stopped(KeyboardInterrupt):
    """A signal was noted while workers play: their generation is given up."""


def train(learner: Learner, trainer: Any, folder: Path, team: Team | None) -> int | None:
    """Train to the end, or to a signal, whose number is returned; save now and then and at the end."""
    options = learner.options

    def save() -> None:
        trainer.save(folder / "run.npz")
        trainer.write_history(folder / "history.csv")
        trainer.write_curves(folder / "curves.csv")

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
        if hasattr(trainer, "watch"):
            trainer.watch = wait_a_little
        last_save, last_line = time.perf_counter(), len(trainer.history)
        every = options["checkpoint_generations"]
        with (
            show_progress(learner, trainer, quiet=options["quiet"]) as show,
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
                lines = len(trainer.history) - last_line
                late = time.perf_counter() - last_save >= options["checkpoint_every"]
                if late or (every is not None and lines >= every):
                    save()
                    last_save, last_line = time.perf_counter(), len(trainer.history)
        save()
        policy = trainer.policy
        if options["no_records"] and policy.origin is not None:
            policy.origin = policy.origin.without_records()
        policy.save(folder / "policy.npz")
        if failure is not None:
            remove_picture(folder)
            raise WorkerError(f"{failure}; {go_on(learner, folder)}") from failure
        return None if trainer.done else caught()
