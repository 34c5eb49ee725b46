"""What can be trained: ACERL, and the learners that the paper compares with, behind one face."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.inputs import is_bundled, load_instances, names_records, vary_breakdowns
from acerl_np.commands.judging import NOTHING, Judges, check_judges, part_records, read_judges
from acerl_np.commands.progress import open_meter
from acerl_np.commands.train_options import ACERL
from acerl_np.problem.goal import PAPER, SHIFT, Goal
from acerl_np.support.errors import ConfigError, InputError, describe
from acerl_np.support.numbers import check_seed
from acerl_np.support.report import render_table

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance
    from acerl_np.support.team import Team

EXPECTED = "expected the same (leave the option out, or train anew)"


@dataclass
class Asked:
    """What is asked for: the algorithm, options given, all of the command's, fields of `Config` given."""

    algorithm: str
    given: Mapping[str, Any]
    options: dict[str, Any]
    settings: Mapping[str, Any]

    @property
    def named(self) -> argparse.Namespace:
        """The options as those of other commands."""
        return argparse.Namespace(**self.options)

    @property
    def command(self) -> str:
        """The words of the command that trains this."""
        return "train" if self.algorithm == ACERL else f"rivals {self.algorithm}"

    def load(self) -> list[Instance]:
        """Return the records that the options name."""
        return load_instances(self.named, "dmh-train")

    def name(self) -> str:
        """Return what a new folder's name says of the records and of the algorithm."""
        what = "tasks" if self.options["tasks"] else self.options["suite"] or "dmh-train"
        return what if self.algorithm == ACERL else f"{what}-{self.algorithm}"

    def say(self, line: str) -> None:
        """Say what was chosen for want of an option."""
        if not self.options["quiet"]:
            print(f"acerl-np {self.command.split()[0]}: {line}", file=sys.stderr)

    def say_objective(self, goal: Goal, instances: Sequence[Instance], option: str) -> None:
        """Say which objective shifts are trained for, and how to choose another."""
        from acerl_np.training.config import are_shifts

        if not are_shifts(instances):
            return
        sizes = sorted({item.n_tasks for item in instances})
        shifts = f"shifts of {' to '.join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))} tasks"
        if goal.objective == PAPER.objective:
            why = f"though these are {shifts}, whose end the last arrival fixes ({option}{SHIFT} fits them)"
        else:
            why = f"as these are {shifts} ({option}makespan, tardiness, waiting ...)"
        self.say(f"objective {goal.objective}, {why}")


class AcerlLearner(Asked):
    """ACERL; `form` is how the progress writes a place, of n and total."""

    noun, failed, digits = "decisions", "members did not finish", 0

    def configure(self) -> Any:
        """Return a `Config` of the preset and the options beside it."""
        from acerl_np.training.config import Config

        return Config.preset(self.find_preset(), **self.settings)

    def find_preset(self) -> Any:
        """Return the preset: for records of one's own "best", unless options are those of a network."""
        from acerl_np.training.config import NETWORK_ALONE

        if self.options["preset"] is not None:
            return self.options["preset"]
        is_network = self.settings.get("form") == "network" or NETWORK_ALONE.keys() & self.settings
        bundled = all(map(is_bundled, self.options["tasks"]))
        return "paper" if bundled or is_network else "best"

    def part(self, instances: list[Instance], seed: int) -> tuple[list[Instance], Judges]:
        """Return the records to train on, and what judges; say where slots by the tasks' ids cannot help."""
        from acerl_np.problem.interface import are_never_the_same

        training, judges = part_records({**self.options, "seed": seed}, instances)
        config = self.configure()
        if self.options["preset"] is None and self.find_preset() == "best":
            self.say("preset best: the paper's is for the benchmark (--preset paper)")
        if "objective" not in self.settings:
            self.say_objective(config.resolve(training).goal, training, "--objective ")
        if config.form == "network" and config.slots == "task" and are_never_the_same(training):
            print(
                "acerl-np train: most task ids stand in one record only, so a slot for each task cannot "
                "help; --preset best can",
                file=sys.stderr,
            )
        return training, judges

    def begin(self, team: Team | None) -> tuple[Any, Judges]:
        """Return a trainer, new or resumed, and what judges it."""
        from acerl_np.training import acerl

        seed, workers = self.options["seed"], {"threads": self.options["threads"], "executor": team}
        path = self.given.get("resume")
        if path is not None:
            longer: dict[str, Any] = {
                name: self.settings.get(name) for name in ("generations", "decisions")
            }
            trainer = acerl.ACERL.resume(path, **longer, **workers)
            judges = read_judges(Path(path).parent, trainer.instances)
            return trainer, self.check_resumed(path, trainer, judges)
        config = self.configure()
        training, judges = self.part(self.load(), seed)
        self.options["preset"] = self.find_preset()
        return acerl.ACERL(training, config, seed=seed, **workers), judges

    def check_resumed(self, path: str, trainer: Any, judges: Judges) -> Judges:
        """Return what judges; refuse options other than the checkpoint's, and records that have changed."""
        from acerl_np.pictures.runs import read_config
        from acerl_np.training.config import Config

        options = self.options
        judges = check_judges(path, judges, options)
        preset = read_config(Path(path).parent).get("preset")
        if None not in (options["preset"], preset) and options["preset"] != preset:
            raise InputError(
                f"{path}: trained with preset {describe(preset)}; read {options['preset']}, {EXPECTED}"
            )
        options["preset"] = preset
        stored = trainer.config.to_dict()
        asked = Config.from_dict({**stored, **self.settings}).resolve(trainer.instances).to_dict()
        if "seed" in self.given or options["seed"] != 0:
            asked["seed"], stored["seed"] = options["seed"], trainer.seed
        check_same(path, asked, stored)
        if names_records(self.named) or options["breakdowns"] is not None:
            held_back = {item.content_hash for item in judges.held_back}
            found = load_instances(self.named)
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

    def describe(self, trainer: Any) -> dict[str, Any]:
        """Return what config.json tells of the options."""
        return {"preset": self.options["preset"], "config": trainer.config.to_dict()}

    def place(self, trainer: Any) -> tuple[int, int]:
        """Return the generation or the decisions, and how many there will be."""
        if trainer.config.decisions is None:
            self.form = "generation {n}/{total}"
            return trainer.generation, trainer.config.generations
        self.form = "{n:,}/{total:,} decisions"
        return count_decisions(trainer), trainer.config.decisions

    def summarise(self, trainer: Any) -> str:
        """Return generations and decisions."""
        return f"{trainer.generation} generations, {count_decisions(trainer):,} decisions"


class RivalLearner(Asked):
    """A learner that the paper compares with."""

    form = "{n:,}/{total:,} steps"
    noun, failed, digits = "steps", "episodes could not end", 1

    def configure(self) -> Any:
        """Return a `RivalConfig`."""
        from acerl_np.experiments.jobs import RivalConfig
        from acerl_np.rivals.training import STEPS

        return RivalConfig(self.algorithm, self.options["steps"] or STEPS, self.read_settings())

    def part(self, instances: list[Instance], seed: int) -> tuple[list[Instance], Judges]:
        """Return all records, and that nothing judges."""
        if "objective" not in self.read_settings():
            self.say_objective(PAPER, instances, "--set objective=")
        return instances, NOTHING

    def begin(self, team: Team | None) -> tuple[Any, Judges]:
        """Return a trainer, new or resumed, and that nothing judges it."""
        from acerl_np.rivals.training import RivalTrainer

        path, options = self.given.get("resume"), self.options
        if path is None:
            config = self.configure()
            own = {"steps": config.steps, "settings": config.settings}
            seed = check_seed(options["seed"], "--seed")
            training, judges = self.part(self.load(), seed)
            return RivalTrainer(self.algorithm, training, seed=seed, **own), judges
        breakdowns = options["breakdowns"] or options["random_breakdowns"]
        if names_records(self.named) or breakdowns:
            raise InputError(
                f"{path}: records given besides a checkpoint; expected none, it holds its own"
            )
        trainer = RivalTrainer.resume(path, steps=options["steps"])
        stored = {"algorithm": trainer.algorithm, "seed": trainer.seed}
        asked: dict[str, Any] = {"algorithm": self.algorithm}
        if "seed" in self.given:
            asked["seed"] = options["seed"]
        for name, x in self.read_settings().items():
            asked[name] = list(x) if isinstance(x, tuple) else x
        check_same(path, asked, {**stored, **trainer.settings.to_dict()})
        return trainer, NOTHING

    def describe(self, trainer: Any) -> dict[str, Any]:
        """Return what config.json tells of the settings."""
        return {"settings": trainer.settings.to_dict()}

    def place(self, trainer: Any) -> tuple[int, int]:
        """Return the steps taken, and how many there will be."""
        return trainer.taken, trainer.steps

    def summarise(self, trainer: Any) -> str:
        """Return the steps."""
        return f"{trainer.algorithm}: {trainer.taken:,} steps"

    def read_settings(self) -> dict[str, Any]:
        """Return the settings that `--set` gives, checked."""
        from acerl_np.rivals.training import find_learner

        kind = find_learner(self.algorithm)[0].settings_class
        defaults = {item.name: item.default for item in fields(kind)}
        found: dict[str, Any] = {}
        for text in self.options["set"] or ():
            name, given, value = text.partition("=")
            name = name.strip().replace("-", "_")
            if not given:
                raise ConfigError(f"--set: read {describe(text)}; expected NAME=VALUE")
            if name not in defaults:
                kind.from_dict({name: value})  # which names the settings that there are
            default = defaults[name]
            try:
                if isinstance(default, str):
                    found[name] = value.strip()
                elif isinstance(default, tuple):
                    found[name] = tuple(type(default[0])(part.strip()) for part in value.split(","))
                else:
                    found[name] = int(value) if isinstance(default, int) else float(value)
            except ValueError as error:
                what = "whole numbers" if isinstance(default, int | tuple) else "a number"
                raise ConfigError(
                    f"--set {name}: read {describe(value)}; expected {what}"
                ) from error
        kind.from_dict(found)
        return found

    def show_settings(self) -> str:
        """Return the table of all settings."""
        from acerl_np.rivals.training import find_learner

        kind = find_learner(self.algorithm)[0].settings_class
        now = kind.from_dict(self.read_settings())
        rows = [
            [item.name, show_value(getattr(now, item.name)), *map(item.metadata.get, ABOUT)]
            for item in fields(kind)
        ]
        return render_table(["setting", "value", *ABOUT], rows)


Learner = AcerlLearner | RivalLearner
ABOUT = ("source", "meaning")


def show_value(value: object) -> str:
    """Return a setting's value as `--set` takes it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def check_same(path: str, asked: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Refuse options that differ from those of a checkpoint."""
    for name, value in asked.items():
        if value != stored[name]:
            raise InputError(
                f"{path}: trained with {name} {stored[name]}; read {value}, {EXPECTED}"
            )


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


@contextmanager
def show_progress(
    learner: Learner, trainer: Any, *, quiet: bool
) -> Iterator[Callable[[Any], None]]:
    """Return a function that shows how far it is, the episodes' means, speed and time left."""
    if quiet or trainer.done:
        yield lambda record: None
        return
    before, started = count_decisions(trainer), time.perf_counter()
    first, total = learner.place(trainer)
    with open_meter(first, total, learner.form) as meter:

        def show(record: Any) -> None:
            rate = (count_decisions(trainer) - before) / max(time.perf_counter() - started, 1e-9)
            text = f"{show_means(record, trainer.goal)}, {rate / 1e3:,.{learner.digits}f}k {learner.noun}/s"
            if record.failed:
                text += f", {record.failed} {learner.failed}"
            # The last generation or update goes beyond a budget.
            meter(min(learner.place(trainer)[0], total), text)

        yield show
