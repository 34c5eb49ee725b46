"""`python -m studies train`: train a learner that the paper compares with, as `acerl-np train` does ACERL."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared import train_options
from acerl_np.commands.shared.config_files import read_file
from acerl_np.commands.shared.inputs import load_instances
from acerl_np.commands.shared.judges import NOTHING, Judges, check_same
from acerl_np.commands.shared.train_options import Algorithm
from acerl_np.commands.shared.training import Learner, run_learner
from acerl_np.problem.goal import PAPER
from acerl_np.support.errors import InputError
from acerl_np.support.fields import Field
from studies.rivals.training import (
    ALGORITHMS,
    STEPS,
    RivalConfig,
    RivalSeedTask,
    RivalTrainer,
    find_learner,
    warm_up,
)

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance
    from acerl_np.support.team import Team

OF_ACERL = ("folds", "hold_out", "report", "threads")
"""Options of `acerl-np train` that no other learner has."""
BY_GROUP: opt.Options = {
    "": (
        opt.Argument("algorithm ALGORITHM", "what learns", Field(ALGORITHMS)),
        opt.RECORDS_PLACE,
    ),
    opt.PLAY: (*train_options.SETTING, opt.TRAFFIC),
    opt.RECORDS: opt.READING,
    opt.OUTPUT: train_options.RESULTS,
    opt.RUNNING: (
        opt.Argument(
            "--steps N",
            "decisions to train, in all episodes together; training ends with the update that reaches them "
            "(default: 1,000,000)",
            Field(int, 1, 10**12),
        ),
        *train_options.RUN,
    ),
}
OPTIONS = {option.key: option for option in (*opt.list_all(BY_GROUP), train_options.QUIET)}


class RivalLearner(Learner):
    """A learner that the paper compares with, as it is asked for."""

    task = RivalSeedTask
    nouns = "steps", "episodes could not end"

    def name(self) -> str:
        """Return what a new folder's name says of the records and of the algorithm."""
        return f"{super().name()}-{self.algorithm.name}"

    def prepare(self, seed: int) -> tuple[list[Instance], Judges, Any]:
        """Return training records, what judges, and a `RivalConfig`; say what was chosen."""
        training = load_instances(self.named, "dmh-train")
        self.say_objective(PAPER, training)
        steps = self.options["steps"] or STEPS
        return training, NOTHING, RivalConfig(self.algorithm.name, steps, self.settings)

    def begin(self, team: Team | None) -> tuple[Any, Judges]:
        """Return a trainer, new or resumed, and what judges it."""
        path, seed = self.options["resume"], self.options["seed"] or 0
        if path is None:
            training, judges, config = self.prepare(seed)
            return config.start(training, seed), judges
        trainer = RivalTrainer.resume(path, steps=self.options["steps"])
        stored = {"seed": trainer.seed, "algorithm": trainer.algorithm}
        self.check_options(path, stored)
        own = trainer.settings.to_dict()
        asked = type(trainer.settings).from_dict({**own, **self.settings})
        check_same(path, asked.to_dict(), own)
        self.check_records(path, trainer, NOTHING)
        return trainer, NOTHING

    def find_settings(self, trainer: Any) -> Any:
        """Return what a trainer goes by."""
        return trainer.settings

    def list_parts(self, config: Any) -> tuple[str, ...]:
        """Return what such a training compiles, parts of `acerl_np.warm`."""
        return ()

    def find_place(self, trainer: Any) -> tuple[int, int, str]:
        """Return how far a training is, how far it will go, and how both are written."""
        return trainer.taken, trainer.steps, "{n:,}/{total:,} steps"

    def describe_length(self, trainer: Any) -> str:
        """Return how long was trained."""
        return f"{trainer.algorithm}: {trainer.taken:,} steps"

    def describe(self, trainer: Any, judges: Judges) -> Mapping[str, Any]:
        """Return how it trains, for config.json."""
        own = trainer.settings.to_dict()
        return {"algorithm": trainer.algorithm, "steps": trainer.steps, "settings": own}


def run(arguments: argparse.Namespace) -> int:
    """Train PPO, SAC, LSAC, RCPOM or MAPPO; an a before a name: records dealt by the adaptive sampler.

    All is as with acerl-np train, whose --settings, --set, --config, --resume and --seeds these are.

    Examples
    --------
      python -m studies train ppo --set clip=0.1
      python -m studies train alsac --seed 3 --steps 200000 --set multiplier=3
      python -m studies train sac --settings     its settings, and where each comes from
    """
    beside = ("command", "run", "prog", "trust_code", "verbose")
    own = vars(arguments).items()
    given = {key: x for key, x in own if key not in beside and x not in ([], None)}
    name, path = given["algorithm"], given.get("config")
    command, kind = f"python -m studies train {name}", find_learner(name)[0].settings_class
    algorithm = Algorithm(name, command, kind, OPTIONS, "settings", ("algorithm", "steps"))
    if path is not None:
        stored = {"algorithm": name, **read_file(path, given, algorithm)}
        check_same(path, {"algorithm": name}, stored)
    options, settings = train_options.merge_options(given, algorithm)
    if options["seeds"] is None and (options["processes"] or options["dask"]) is not None:
        said = "one training runs on one thread; expected --seeds besides"
        raise InputError(f"--processes, --dask: {said}")
    if options["seeds"] is not None:
        warm_up()  # what works elsewhere finds the kernels compiled if it shares this machine
    options |= dict.fromkeys(OF_ACERL)
    return run_learner(RivalLearner(options, settings, algorithm))


ACTION = opt.Action(run, BY_GROUP, given=True)
