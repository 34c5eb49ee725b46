"""A training from start to end: one seed or several, its files, its tables."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.shared import learners, train_options
from acerl_np.commands.shared.curves import draw_training, remove_picture
from acerl_np.commands.shared.interruption import catch_signals
from acerl_np.commands.shared.judges import Judges, write_judges
from acerl_np.commands.shared.judging import show_verdict
from acerl_np.commands.shared.learners import Learner
from acerl_np.commands.shared.outputs import declare_run, make_folder, open_results
from acerl_np.commands.shared.progress import compile_ahead, report_unfinished
from acerl_np.commands.shared.several import declare_seeds, read_seeds, run_seeds
from acerl_np.commands.shared.tables import list_figures, summarise
from acerl_np.commands.shared.teams import open_team
from acerl_np.support.errors import InputError, WorkerError
from acerl_np.support.files import write_atomically
from acerl_np.support.report import render_data

if TYPE_CHECKING:
    from acerl_np.support.team import Team


def run_learner(learner: Learner) -> int:
    """Train what is asked for; return the exit status."""
    options = learner.options
    if options["settings"]:
        print(train_options.format_options(options, learner.settings, learner.algorithm))
        return 0
    if options["quiet"]:
        from acerl_np.support.machine_code import silence

        silence()
    if options["seeds"] is not None:
        return train_several(learner)
    declare_run(learner.named)
    if options["processes"] is None and options["dask"] is None:
        return train_one(learner, None)
    with open_team(options) as team:
        return train_one(learner, team)


def train_several(learner: Learner) -> int:
    """Train with every seed that is asked for; return the exit status."""
    from acerl_np.support.workers import count_cores

    options = learner.options
    for name in ("resume", "folds", "report"):
        if options[name]:
            raise InputError(f"{name}: given besides --seeds; expected one of the two")
    seeds = read_seeds(options["seeds"])
    # One part of the records is held back for all seeds.
    training, judges, config = learner.prepare(seeds[0])
    records = tuple(training), judges.held_back
    kept = not options["no_records"]
    tasks = [learner.task(*records, config, seed, options["trials"], kept) for seed in seeds]
    name = f"{learner.name()}-seeds{seeds[0]}-{seeds[-1]}"
    folder = Path(options["out"] or Path("runs") / name)
    declare_seeds(learner.named, tasks, folder)
    own = min(options["threads"] or count_cores(), len(tasks))
    with open_team(options, usual=None, own=own) as team:
        compile_ahead(*learner.list_parts(config), quiet=options["quiet"])
        run_seeds(tasks, make_folder(folder), team, more=options["details"], quiet=options["quiet"])
    return 0


def train_one(learner: Learner, team: Team | None) -> int:
    """Train with one seed, on the threads of this process or with a team; return the exit status."""
    options = learner.options
    trainer, judges = learner.begin(team)
    judged = judges.on != "nothing" and options["trials"] > 0
    if options["report"] and not judged:
        expected = "own records, --hold-out or --folds, and --trials above 0"
        raise InputError(f"--report: no verdict to write; expected {expected}")
    parts = ["rules"] if judged else []
    own = learner.list_parts(learner.find_settings(trainer))
    compile_ahead(*own, *parts, quiet=options["quiet"])
    with open_results(learner.named, f"{learner.name()}-seed{trainer.seed}") as folder:
        # First: what it names tells a killed start from a run (`outputs.is_killed_start`).
        write_config(folder / "config.json", learner, trainer, judges)
        write_judges(folder, judges)
        (folder / "results.csv").unlink(missing_ok=True)
        started = time.perf_counter()
        stopped = train(learner, trainer, folder, team)
        seconds = time.perf_counter() - started
        if stopped is not None:
            remove_picture(folder)
            done, total, form = learner.find_place(trainer)
            how_far = form.format(n=done, total=total).replace("/", " of ")
            learner.say(f"stopped after {how_far}; {go_on(learner, folder)}", always=True)
            return 128 + stopped
        picture = draw_training(folder, quiet=options["quiet"])
    if options["trials"]:
        show_results(learner, trainer, judges, folder, team)
    print(f"{learner.describe_length(trainer)}, {seconds:.1f} s; seed {trainer.seed}")
    print(f"policy {folder / 'policy.npz'}   checkpoint {folder / 'run.npz'}")
    print(f"history {folder / 'history.csv'}   curves {folder / 'curves.csv'}")
    print(f"options {folder / 'config.json'}" + (f"   picture {picture}" if picture else ""))
    return 0


def show_results(
    learner: Learner, trainer: Any, judges: Judges, folder: Path, team: Team | None
) -> None:
    """Play with what was trained, print the tables and keep their figures."""
    from acerl_np.evaluation.trials import Playing, play_policy

    options = learner.options
    how = {"goal": trainer.goal, "threads": options["threads"]}
    how["horizon"] = getattr(learner.find_settings(trainer), "horizon", None)
    playing = Playing(options["trials"], trainer.seed, **how)
    trials = play_policy(trainer.policy, trainer.instances, playing)
    judged = judges.on != "nothing"
    on = "Training records: " if judged else ""
    policy = learner.algorithm.name.upper()
    print(summarise(trainer.instances, trials, on=on, policy=policy, more=options["details"]))
    report_unfinished("policy", trials)
    rows = [{"records_of": "training", **row} for row in list_figures("policy", trials)]
    if judged:
        found = show_verdict(trainer, judges, playing, options, folder, team)
        rows += [{"records_of": judges.on, **row} for row in found]
    write_atomically(folder / "results.csv", render_data(rows, "csv").encode())


def go_on(learner: Learner, folder: Path) -> str:
    """Return the command that goes on with a run."""
    return f"go on with: {learner.algorithm.command} --resume {folder / 'run.npz'}"


def write_config(path: Path, learner: Learner, trainer: Any, judges: Judges) -> None:
    """Write every option of the run as JSON."""
    import acerl_np

    named = {instance.name: instance.content_hash for instance in trainer.instances}
    data = {"acerl_np": acerl_np.__version__, "seed": trainer.seed, "instances": named}
    data |= learner.describe(trainer, judges)
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
    failure: BaseException | None = None
    with catch_signals() as caught:
        if team is not None:
            team.watch = give_up
        if hasattr(trainer, "watch"):
            trainer.watch = wait_a_little
        last_save, last_line = time.perf_counter(), len(trainer.history)
        every = options["checkpoint_generations"]
        with learners.show_progress(learner, trainer, quiet=options["quiet"]) as show:
            while not trainer.done and caught() is None:
                try:
                    record = trainer.step()
                except (Stopped, WorkerError) as error:
                    failure = error
                    break
                show(record)
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
        if isinstance(failure, WorkerError):
            remove_picture(folder)
            raise WorkerError(f"{failure}; {go_on(learner, folder)}") from failure
        return None if trainer.done else caught()
