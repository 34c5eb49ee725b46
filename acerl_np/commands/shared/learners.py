"""What can be trained: ACERL, and the learners that the paper compares with, behind one face."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.shared import judging
from acerl_np.commands.shared.inputs import load_instances, names_records, vary_breakdowns
from acerl_np.commands.shared.judging import NOTHING, Judges
from acerl_np.commands.shared.progress import open_meter
from acerl_np.commands.shared.train_options import ACERL, fill_settings, find_preset
from acerl_np.problem.goal import PAPER, SHIFT, Goal
from acerl_np.support.errors import InputError

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance
    from acerl_np.support.team import Team


@dataclass
class Learner:
    """What is asked for: all of the command's options, and the learner's settings that were given."""

    options: dict[str, Any]
    settings: Mapping[str, Any]

    @property
    def algorithm(self) -> str:
        """What learns."""
        return str(self.options["algorithm"])

    @property
    def is_acerl(self) -> bool:
        """Whether it is ACERL, not a learner that the paper compares with."""
        return self.algorithm == ACERL

    @property
    def named(self) -> argparse.Namespace:
        """The options as those of other commands."""
        return argparse.Namespace(**self.options)

    @property
    def command(self) -> str:
        """The words of the command that trains this."""
        return "train" if self.is_acerl else f"train --algorithm {self.algorithm}"

    def name(self) -> str:
        """Return what a new folder's name says of the records and of the algorithm."""
        what = "tasks" if self.options["tasks"] else self.options["suite"] or "dmh-train"
        return what if self.is_acerl else f"{what}-{self.algorithm}"

    def say(self, line: str, *, always: bool = False) -> None:
        """Say a line, with --quiet only one that must be said `always`."""
        if always or not self.options["quiet"]:
            print(f"acerl-np train: {line}", file=sys.stderr)

    def say_objective(self, goal: Goal, instances: Sequence[Instance]) -> None:
        """Say which objective shifts are trained for, and how to choose another."""
        from acerl_np.problem.instance import are_shifts

        if "objective" in self.settings or not are_shifts(instances):
            return
        sizes = [item.n_tasks for item in instances]
        shifts = f"shifts of {' to '.join(map(str, sorted({min(sizes), max(sizes)})))} tasks"
        why = f"as these are {shifts} (--objective makespan, tardiness, waiting ...)"
        if goal.objective == PAPER.objective:
            fits = f"(--objective {SHIFT} fits them)"
            why = f"though these are {shifts}, whose end the last arrival fixes {fits}"
        self.say(f"objective {goal.objective}, {why}")

    def prepare(self, seed: int) -> tuple[list[Instance], Judges, Any]:
        """Return training records, what judges, and a `Config` or `RivalConfig`; say what was chosen."""
        from acerl_np.problem.interface import are_never_the_same

        training, judges = load_instances(self.named, "dmh-train"), NOTHING
        if not self.is_acerl:
            from acerl_np.rivals.seeds import RivalConfig
            from acerl_np.rivals.training import STEPS

            self.say_objective(PAPER, training)
            steps = self.options["steps"] or STEPS
            return training, judges, RivalConfig(self.algorithm, steps, self.settings)
        config: Any = fill_settings(self.options, self.settings)
        options, goal = {**self.options, "seed": seed}, config.resolve(training).goal
        training, judges = judging.part_records(options, training, goal)
        config = config.resolve(training)
        if self.options["preset"] is None and find_preset(self.options, self.settings) == "best":
            self.say("preset best: the paper's is for the benchmark (--preset paper)")
        self.say_objective(config.goal, training)
        if config.form == "network" and config.slots == "task" and are_never_the_same(training):
            ids = "most task ids stand in one record only"
            said = f"{ids}, so a slot for each task cannot help; --preset best can"
            self.say(said, always=True)
        return training, judges, config


def begin(learner: Learner, team: Team | None) -> tuple[Any, Judges]:
    """Return a trainer, new or resumed, and what judges it."""
    options = learner.options
    path, seed = options["resume"], options["seed"] or 0
    if path is None:
        training, judges, config = learner.prepare(seed)
        options["preset"] = find_preset(options, learner.settings)
    trainer: Any
    if learner.is_acerl:
        from acerl_np.training import acerl

        own: dict[str, Any] = {"threads": options["threads"], "executor": team}
        if path is None:
            return acerl.ACERL(training, config, seed=seed, **own), judges
        own |= {name: learner.settings.get(name) for name in ("generations", "decisions")}
        trainer = acerl.ACERL.resume(path, **own)
    else:
        from acerl_np.rivals.training import RivalTrainer

        if path is None:
            own = {"steps": config.steps, "seed": seed, "settings": config.settings}
            return RivalTrainer(config.algorithm, training, **own), judges
        trainer = RivalTrainer.resume(path, steps=options["steps"])
    return trainer, check_resumed(learner, path, trainer)


def check_resumed(learner: Learner, path: str, trainer: Any) -> Judges:
    """Return what judges; refuse options other than the checkpoint's, and records that have changed."""
    from acerl_np.pictures.runs import read_config

    options, own = learner.options, find_settings(trainer)
    judges = NOTHING
    folder = Path(path).parent
    if learner.is_acerl:
        judges = judging.read_judges(folder, trainer.instances)
        judges = judging.check_judges(path, judges, options)
    preset, algorithm = read_config(folder).get("preset"), getattr(trainer, "algorithm", ACERL)
    stored = {"preset": preset, "seed": trainer.seed, "algorithm": algorithm}
    known = [name for name in stored if None not in (options[name], stored[name])]
    judging.check_same(path, {name: options[name] for name in known}, stored)
    options["preset"] = preset
    settings = type(own).from_dict({**own.to_dict(), **learner.settings})
    if learner.is_acerl:
        settings = settings.resolve(trainer.instances)
    judging.check_same(path, settings.to_dict(), own.to_dict())
    if names_records(learner.named) or options["breakdowns"] is not None:
        held_back = {item.content_hash for item in judges.held_back}
        found = load_instances(learner.named)
        instances = [item for item in found if item.content_hash not in held_back]
    else:
        instances = vary_breakdowns(trainer.instances, options["random_breakdowns"])
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
    return judges


def find_settings(trainer: Any) -> Any:
    """Return what a trainer goes by: its `Config`, or its `Settings`."""
    return trainer.config if is_acerl(trainer) else trainer.settings


def name_part(config: Any) -> str:
    """Return what a training of this `Config` or `RivalConfig` compiles, a part of `acerl_np.warm`."""
    return {"network": "training", "index": "best"}.get(getattr(config, "form", ""), "rivals")


def count_decisions(trainer: Any) -> int:
    """Return the decisions or steps that a training has taken."""
    last = trainer.history[-1] if trainer.history else None
    return int(getattr(last, "decisions", getattr(last, "steps", 0)))


def show_means(record: Any, goal: Goal) -> str:
    """Return the means of a history's line in the words of the goal."""
    value = f"{goal.objective} {-record.return_mean:z{goal.format}}"
    text = f"return {record.return_mean:.1f}" if goal.objective == PAPER.objective else value
    text += f", {goal.cost} {record.cost_mean:.1f}" if goal.cost != goal.objective else ""
    return f"{text}, within limit {record.satisfied:.0%}" if goal.has_limit else text


def is_acerl(trainer: Any) -> bool:
    """Whether a trainer is ACERL's, not that of another learner."""
    return hasattr(trainer, "config")


def find_place(trainer: Any) -> tuple[int, int, str]:
    """Return the generation, the decisions or the steps, how many there will be, and how both are written."""
    if not is_acerl(trainer):
        return trainer.taken, trainer.steps, "{n:,}/{total:,} steps"
    if trainer.config.decisions is None:
        return trainer.generation, trainer.config.generations, "generation {n}/{total}"
    return count_decisions(trainer), trainer.config.decisions, "{n:,}/{total:,} decisions"


def describe_length(trainer: Any) -> str:
    """Return how long was trained."""
    n = count_decisions(trainer)
    if is_acerl(trainer):
        return f"{trainer.generation} generations, {n:,} decisions"
    return f"{trainer.algorithm}: {n:,} steps"


@contextmanager
def show_progress(trainer: Any, *, quiet: bool) -> Iterator[Callable[[Any], None]]:
    """Return a function that shows how far it is, the episodes' means, speed and time left."""
    if quiet or trainer.done:
        yield lambda record: None
        return
    before, started = count_decisions(trainer), time.perf_counter()
    first, total, form = find_place(trainer)
    noun, failed = "steps", "episodes could not end"
    if is_acerl(trainer):
        noun, failed = "decisions", "members did not finish"
    with open_meter(first, total, form) as meter:

        def show(record: Any) -> None:
            rate = (count_decisions(trainer) - before) / max(time.perf_counter() - started, 1e-9)
            text = f"{show_means(record, trainer.goal)}, {rate / 1e3:,.1f}k {noun}/s"
            if record.failed:
                text += f", {record.failed} {failed}"
            # The last generation or update goes beyond a budget.
            meter(min(find_place(trainer)[0], total), text)

        yield show
