"""A training as a command has it: who learns, how it begins or goes on, its files and tables."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import acerl_np
from acerl_np.commands.shared.config_files import format_options
from acerl_np.commands.shared.inputs import (
    is_suite,
    load_instances,
    names_records,
    read_breakdowns,
    vary_breakdowns,
)
from acerl_np.commands.shared.judges import (
    FILE,
    Judges,
    check_judges,
    check_same,
    part_records,
    read_held_back,
    read_judges,
    write_judges,
)
from acerl_np.commands.shared.judging import show_verdict
from acerl_np.commands.shared.outputs import are_same, declare_outputs, make_folder
from acerl_np.commands.shared.progress import (
    catch_signals,
    compile_ahead,
    draw_training,
    open_meter,
    remove_picture,
    report_unfinished,
)
from acerl_np.commands.shared.several import declare_seeds, read_seeds, run_seeds
from acerl_np.commands.shared.tables import list_figures, summarise
from acerl_np.commands.shared.teams import open_team
from acerl_np.commands.shared.train_options import ACERL, Algorithm, fill_settings, find_preset
from acerl_np.evaluation.seeds import SeedTask
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.pictures.runs import read_config
from acerl_np.problem.goal import PAPER, SHIFT, Goal
from acerl_np.problem.instance import Instance, are_shifts
from acerl_np.problem.interface import are_never_the_same
from acerl_np.support import files
from acerl_np.support.errors import AcerlError, InputError, WorkerError
from acerl_np.support.files import write_atomically
from acerl_np.support.log import LOG
from acerl_np.support.report import render_data
from acerl_np.support.team import Team
from acerl_np.support.workers import count_cores
from acerl_np.training import acerl

RUN_FILES = (
    *("policy.npz", "run.npz", "config.json", "history.csv", "curves.csv", "curves.png"),
    *("results.csv", "held-back.npz"),
)
"""What a training leaves in its folder."""


class Learner:
    """ACERL as it is asked for; other learners are subclasses.

    Parameters
    ----------
    options : dict
        All options of the command.
    settings : dict
        The settings of the algorithm that were given.
    algorithm : Algorithm
    records : sequence of Instance
        To train on, in place of those that the options name.
    """

    task: ClassVar[type[SeedTask]] = SeedTask
    """A training with one of several seeds."""
    nouns: ClassVar[tuple[str, str]] = "decisions", "members did not finish"
    """What is counted, and what has failed."""

    def __init__(
        self,
        options: dict[str, Any],
        settings: Mapping[str, Any],
        algorithm: Algorithm = ACERL,
        records: Sequence[Instance] = (),
    ) -> None:
        self.options, self.settings, self.algorithm = options, settings, algorithm
        self.records = list(records)

    @property
    def named(self) -> argparse.Namespace:
        """The options as those of other commands."""
        return argparse.Namespace(**self.options)

    def name(self) -> str:
        """Return what a new folder's name says of the records and of the algorithm."""
        named = self.options["tasks"]
        is_one = len(named) == 1 and is_suite(named[0])
        return (named[0] if is_one else "tasks") if named else "dmh-train"

    def say_objective(self, goal: Goal, instances: Sequence[Instance]) -> None:
        """Say which objective shifts are trained for, and how to choose another."""
        if "objective" in self.settings or not are_shifts(instances):
            return
        sizes = [item.n_tasks for item in instances]
        shifts = f"shifts of {' to '.join(map(str, sorted({min(sizes), max(sizes)})))} tasks"
        why = f"as these are {shifts} (--objective makespan, tardiness, waiting ...)"
        if goal.objective == PAPER.objective:
            fits = f"(--objective {SHIFT} fits them)"
            why = f"though these are {shifts}, whose end the last arrival fixes {fits}"
        LOG.info("objective %s, %s", goal.objective, why)

    def prepare(self, seed: int) -> tuple[list[Instance], Judges, Any]:
        """Return training records, what judges, and the settings of the training; say what was chosen."""
        training = self.records or load_instances(self.named, "dmh-train")
        config: Any = fill_settings(self.options, self.settings)
        options, goal = {**self.options, "seed": seed}, config.resolve(training).goal
        training, judges = part_records(options, training, goal)
        config = config.resolve(training)
        if self.options["preset"] is None and find_preset(self.options, self.settings) == "best":
            LOG.info("preset best: the paper's is for the benchmark (--preset paper)")
        self.say_objective(config.goal, training)
        if config.form == "network" and config.slots == "task" and are_never_the_same(training):
            ids = "most task ids stand in one record only"
            LOG.warning("%s, so a slot for each task cannot help; --preset best can", ids)
        return training, judges, config

    def begin(self, team: Team | None) -> tuple[Any, Judges]:
        """Return a trainer, new or resumed, and what judges it."""
        options, settings = self.options, self.settings
        path, seed = options["resume"], options["seed"] or 0
        own: dict[str, Any] = {"threads": options["threads"], "executor": team}
        if path is None:
            training, judges, config = self.prepare(seed)
            options["preset"] = find_preset(options, settings)
            return acerl.ACERL(training, config, seed=seed, **own), judges
        own |= {name: settings.get(name) for name in ("generations", "decisions")}
        trainer = acerl.ACERL.resume(path, **own)
        judges = read_judges(Path(path).parent, trainer.instances)
        judges = check_judges(path, judges, options)
        stored = {"preset": read_config(Path(path).parent).get("preset"), "seed": trainer.seed}
        self.check_options(path, stored)
        options["preset"] = stored["preset"]
        asked = type(trainer.config).from_dict({**trainer.config.to_dict(), **settings})
        asked = asked.resolve(trainer.instances)
        check_same(path, asked.to_dict(), trainer.config.to_dict())
        self.check_records(path, trainer, judges)
        return trainer, judges

    def check_options(self, path: str, stored: Mapping[str, Any]) -> None:
        """Refuse options other than the checkpoint's."""
        known = [name for name in stored if None not in (self.options[name], stored[name])]
        check_same(path, {name: self.options[name] for name in known}, dict(stored))

    def check_records(self, path: str, trainer: Any, judges: Judges) -> None:
        """Refuse records other than the checkpoint's."""
        options = self.options
        path_given, model = read_breakdowns(options["breakdowns"] or ())
        if names_records(self.named) or path_given is not None:
            held_back = {item.content_hash for item in judges.held_back}
            found = load_instances(self.named)
            instances = [item for item in found if item.content_hash not in held_back]
        else:
            instances = vary_breakdowns(trainer.instances, model)
        names, known = ([item.name for item in some] for some in (instances, trainer.instances))
        if names != known:
            raise InputError(
                f"{path}: trained on {', '.join(known)}; read {', '.join(names)}, expected the same "
                "records (leave them out: the checkpoint holds its own)"
            )
        for now, then in zip(instances, trainer.instances, strict=True):
            if now.content_hash != then.content_hash:
                raise InputError(
                    f"{path}: '{now.name}' or its layout has changed since (content "
                    f"{then.content_hash[:12]}, now {now.content_hash[:12]}); leave it out to go on with "
                    "the checkpoint's own, or train anew"
                )

    def find_settings(self, trainer: Any) -> Any:
        """Return what a trainer goes by."""
        return trainer.config

    def list_parts(self, config: Any) -> tuple[str, ...]:
        """Return what such a training compiles, parts of `acerl_np.warm`."""
        return ({"network": "training", "index": "best"}[config.form],)

    def find_place(self, trainer: Any) -> tuple[int, int, str]:
        """Return how far a training is, how far it will go, and how both are written."""
        if trainer.config.decisions is None:
            return trainer.generation, trainer.config.generations, "generation {n}/{total}"
        return count_decisions(trainer), trainer.config.decisions, "{n:,}/{total:,} decisions"

    def describe_length(self, trainer: Any) -> str:
        """Return how long was trained."""
        return f"{trainer.generation} generations, {count_decisions(trainer):,} decisions"

    def make_playing(self, trainer: Any) -> Playing:
        """Return how what was trained is played."""
        how = {"goal": trainer.goal, "threads": self.options["threads"]}
        horizon = getattr(self.find_settings(trainer), "horizon", None)
        return Playing(self.options["trials"], trainer.seed, horizon=horizon, **how)

    def describe(self, trainer: Any, judges: Judges) -> Mapping[str, Any]:
        """Return how it trains, for config.json."""
        own = trainer.config.to_dict()
        return {**judges.to_dict(), "preset": self.options["preset"], "config": own}


def count_decisions(trainer: Any) -> int:
    """Return the decisions or steps that a training has taken."""
    last = trainer.history[-1] if trainer.history else None
    return int(getattr(last, "decisions", getattr(last, "steps", 0)))


def show_means(record: Any, goal: Goal) -> str:
    """Return the means of a history's line in the words of the goal."""
    text = f"{goal.objective} {-record.return_mean:z{goal.format}}"
    text += f", {goal.cost} {record.cost_mean:.1f}" if goal.cost != goal.objective else ""
    return f"{text}, within limit {record.satisfied:.0%}" if goal.has_limit else text


@contextmanager
def show_progress(
    learner: Learner, trainer: Any, *, quiet: bool
) -> Iterator[Callable[[Any], None]]:
    """Return a function that shows how far it is, the episodes' means, speed and time left."""
    if quiet or trainer.done:
        yield lambda record: None
        return
    before, started = count_decisions(trainer), time.perf_counter()
    first, total, form = learner.find_place(trainer)
    noun, failed = learner.nouns
    with open_meter(first, total, form) as meter:

        def show(record: Any) -> None:
            rate = (count_decisions(trainer) - before) / max(time.perf_counter() - started, 1e-9)
            text = f"{show_means(record, trainer.goal)}, {rate / 1e3:,.1f}k {noun}/s"
            if record.failed:
                text += f", {record.failed} {failed}"
            # The last generation or update goes beyond a budget.
            meter(min(learner.find_place(trainer)[0], total), text)

        yield show


def run_learner(learner: Learner) -> int:
    """Train what is asked for; return the exit status."""
    options = learner.options
    if options["settings"]:
        print(format_options(options, learner.settings, learner.algorithm))
        return 0
    if options["seeds"] is not None:
        return train_several(learner)
    declare_run(learner.named)
    if options["processes"] is None and options["dask"] is None:
        return train_one(learner, None)
    with open_team(options) as team:
        return train_one(learner, team)


def train_several(learner: Learner) -> int:
    """Train with every seed that is asked for; return the exit status."""
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
        compile_ahead(*learner.list_parts(config))
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
    compile_ahead(*own, *parts)
    with open_results(learner.named, f"{learner.name()}-seed{trainer.seed}") as folder:
        # First: what it names tells a killed start from a run (`outputs.is_killed_start`).
        write_config(folder / "config.json", learner, trainer, judges)
        write_judges(folder, judges)
        (folder / "results.csv").unlink(missing_ok=True)
        started = time.perf_counter()
        stopped = train_on(learner, trainer, folder, team)
        seconds = time.perf_counter() - started
        if stopped is not None:
            remove_picture(folder)
            done, total, form = learner.find_place(trainer)
            how_far = form.format(n=done, total=total).replace("/", " of ")
            LOG.warning("stopped after %s; %s", how_far, go_on(learner, folder))
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
    options, playing = learner.options, learner.make_playing(trainer)
    trials = play_policy(trainer.policy, trainer.instances, playing)
    judged = judges.on != "nothing"
    rows = [{"records_of": "training", **row} for row in list_figures("policy", trials)]
    found = show_verdict(trainer, judges, playing, options, folder, team) if judged else []
    rows += [{"records_of": judges.on, **row} for row in found]
    if not found or options["details"]:
        how = {"on": "Training records: " if judged else "", "more": options["details"]}
        policy = learner.algorithm.name.upper()
        print(summarise(trainer.instances, trials, policy=policy, **how))
    else:
        print(f"more tables: {learner.algorithm.command} --resume {folder / 'run.npz'} --details\n")
    report_unfinished("policy", trials)
    write_atomically(folder / "results.csv", render_data(rows, "csv").encode())


def go_on(learner: Learner, folder: Path) -> str:
    """Return the command that goes on with a run."""
    return f"go on with: {learner.algorithm.command} --resume {folder / 'run.npz'}"


def write_config(path: Path, learner: Learner, trainer: Any, judges: Judges) -> None:
    """Write every option of the run as JSON."""
    named = {instance.name: instance.content_hash for instance in trainer.instances}
    data = {"acerl_np": acerl_np.__version__, "seed": trainer.seed, "instances": named}
    data |= learner.describe(trainer, judges)
    write_atomically(path, (json.dumps(data, indent=2) + "\n").encode())


PATIENCE = 1.0
"""Seconds after a signal for a generation on this process's threads to end by itself."""


class Stopped(KeyboardInterrupt):
    """A signal was noted while workers play: their generation is given up."""


def train_on(learner: Learner, trainer: Any, folder: Path, team: Team | None) -> int | None:
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
        with show_progress(learner, trainer, quiet=options["quiet"]) as show:
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


# Its folder


@contextmanager
def open_results(arguments: argparse.Namespace, name: str) -> Iterator[Path]:
    """Make the folder of a training's results if need be, and hold it for this run alone.

    Without `out` it is that of the checkpoint `resume`, or a new one below runs/ with this name.
    """
    out, resume = arguments.out, arguments.resume
    if out is None and resume is None:
        folder = make_folder(Path("runs") / name, new=True)
    else:
        folder = make_folder(Path(resume).parent if out is None else out)
    with files.claim_folder(folder):
        declare_run(arguments)
        yield folder


def declare_run(arguments: argparse.Namespace) -> None:
    """Refuse the folder of a training if it holds another run; a resumed one goes on in its own."""
    out, resume = arguments.out, arguments.resume
    declare_outputs(arguments, [arguments.report], option="--report")
    if out is None and resume is None:
        return
    folder = Path(resume).parent if out is None else Path(out)
    if resume is None or not are_same(resume, str(folder / "run.npz")):
        force = bool(arguments.force) or is_killed_start(folder)
        declare_outputs(arguments, [folder / x for x in RUN_FILES], folder=folder, force=force)


def is_killed_start(folder: Path) -> bool:
    """Whether all that a folder holds is what a training writes before its first checkpoint.

    That is config.json, and the held-back records that it names: nothing was trained there.
    """
    try:
        names = {x.name for x in folder.iterdir() if not files.TEMPORARY.fullmatch(x.name)}
        facts = read_config(folder)
        # The folder of --seeds has a config.json with "seeds", and of a study none of these.
        if not names <= {"config.json", FILE} or not {"acerl_np", "seed"} <= facts.keys():
            return False
        held_back = read_held_back(folder / FILE) if FILE in names else []
    except (AcerlError, OSError, ValueError):
        return False
    return not held_back or {x.name: x.content_hash for x in held_back} == facts.get("held_back")
