"""A training as a command has it: what learns, how it begins or goes on, and what is said of it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from acerl_np.commands.shared.inputs import (
    is_suite,
    load_instances,
    names_records,
    read_breakdowns,
    vary_breakdowns,
)
from acerl_np.commands.shared.judges import (
    Judges,
    check_judges,
    check_same,
    part_records,
    read_judges,
)
from acerl_np.commands.shared.progress import open_meter
from acerl_np.commands.shared.train_options import ACERL, Algorithm, fill_settings, find_preset
from acerl_np.evaluation.seeds import SeedTask
from acerl_np.problem.goal import PAPER, SHIFT, Goal
from acerl_np.support.errors import InputError

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance
    from acerl_np.support.team import Team


class Learner:
    """ACERL as it is asked for; other learners are subclasses.

    Parameters
    ----------
    options : dict
        All options of the command.
    settings : dict
        The settings of the algorithm that were given.
    algorithm : Algorithm
    """

    task: ClassVar[type[SeedTask]] = SeedTask
    """A training with one of several seeds."""
    nouns: ClassVar[tuple[str, str]] = "decisions", "members did not finish"
    """What is counted, and what has failed."""

    def __init__(
        self, options: dict[str, Any], settings: Mapping[str, Any], algorithm: Algorithm = ACERL
    ) -> None:
        self.options, self.settings, self.algorithm = options, settings, algorithm

    @property
    def named(self) -> argparse.Namespace:
        """The options as those of other commands."""
        return argparse.Namespace(**self.options)

    def name(self) -> str:
        """Return what a new folder's name says of the records and of the algorithm."""
        named = self.options["tasks"]
        is_one = len(named) == 1 and is_suite(named[0])
        return (named[0] if is_one else "tasks") if named else "dmh-train"

    def say(self, line: str, *, always: bool = False) -> None:
        """Say a line, with --quiet only one that must be said `always`."""
        if always or not self.options["quiet"]:
            print(f"{self.algorithm.command}: {line}", file=sys.stderr)

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
        """Return training records, what judges, and the settings of the training; say what was chosen."""
        from acerl_np.problem.interface import are_never_the_same

        training = load_instances(self.named, "dmh-train")
        config: Any = fill_settings(self.options, self.settings)
        options, goal = {**self.options, "seed": seed}, config.resolve(training).goal
        training, judges = part_records(options, training, goal)
        config = config.resolve(training)
        if self.options["preset"] is None and find_preset(self.options, self.settings) == "best":
            self.say("preset best: the paper's is for the benchmark (--preset paper)")
        self.say_objective(config.goal, training)
        if config.form == "network" and config.slots == "task" and are_never_the_same(training):
            ids = "most task ids stand in one record only"
            said = f"{ids}, so a slot for each task cannot help; --preset best can"
            self.say(said, always=True)
        return training, judges, config

    def begin(self, team: Team | None) -> tuple[Any, Judges]:
        """Return a trainer, new or resumed, and what judges it."""
        from acerl_np.pictures.runs import read_config
        from acerl_np.training import acerl

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
