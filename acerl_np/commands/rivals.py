"""`acerl-np rivals`: train one of the learners that the paper compares with."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from acerl_np.commands.outputs import add_force, declare_run
from acerl_np.commands.progress import open_meter
from acerl_np.commands.ranges import Range, check_ranges
from acerl_np.commands.seeds import add_seeds, declare_seeds, read_seeds, run_seeds
from acerl_np.commands.summary import MORE_SEEDS_HELP, summarise
from acerl_np.commands.teams import add_team_options, open_team
from acerl_np.commands.tensorboard import add_tensorboard, check_tensorboard, open_tensorboard
from acerl_np.support.errors import ConfigError, InputError, describe
from acerl_np.support.files import write_atomically
from acerl_np.support.numbers import check_seed
from acerl_np.support.report import render_table

if TYPE_CHECKING:
    from acerl_np.rivals.history import Round
    from acerl_np.rivals.training import RivalTrainer

BASE = ("ppo", "sac", "lsac", "rcpom", "mappo")
NAMES = (*BASE, *(f"a{name}" for name in BASE))


DESCRIPTION = """\
Train one of the learners that the paper compares with, on the same simulator and with the same policy form.

ppo     proximal policy optimisation
sac     soft actor-critic
lsac    soft actor-critic with a fixed Lagrangian multiplier on the tardiness
rcpom   reward-constrained policy optimisation with reward shaping
mappo   two agents, one for the vehicle and one for the rule, with a central critic
appo, asac, alsac, arcpom, amappo: the same, their training records dealt by the adaptive instance sampler

It writes policy.npz, run.npz (the checkpoint), config.json, history.csv (a line per 10,000 steps) and
curves.csv (how the policy did on each training record) into a new folder below runs/, or into --out. A
million steps take one to three minutes of a core. acerl-np evaluate judges the policy like any other.
"""

EPILOG = """\
examples:
  acerl-np rivals ppo                              a million steps on DMH-01 to -08
  acerl-np rivals alsac --seed 3 --steps 200000 --set multiplier=3
  acerl-np rivals rcpom week1.csv week2.csv --layout floor.json --out runs/rcpom
  acerl-np rivals sac --settings                   its settings, their sources; nothing is trained
  acerl-np rivals ppo --resume runs/dmh-train-ppo-seed0/run.npz --steps 2000000
"""

RANGES = {
    "steps": Range(1, 10**12, "a whole number from 1 to 10**12"),
    "trials": Range(0, 1_000_000, "a whole number from 0 to 1000000"),
    "checkpoint_every": Range(0, 1e9, "seconds from 0 to 1e9"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    parser.add_argument("algorithm", choices=NAMES, metavar="ALGORITHM", help=", ".join(NAMES))
    data = parser.add_argument_group("what to train on")
    add_data_arguments(data, "dmh-train, that is DMH-01 to -08")
    add_random_breakdowns(data)
    run = parser.add_argument_group("the run")
    run.add_argument(
        "--steps",
        type=int,
        help="decisions to train, in all episodes together; training ends with the update that reaches "
        "them (default: 1,000,000)",
    )
    run.add_argument("--seed", type=int, help="seed of every random draw (default: 0)")
    add_seeds(run)
    add_team_options(run, "with --seeds, train", "never")
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the algorithm that is not its default; may be repeated (--settings lists them)",
    )
    run.add_argument(
        "--settings",
        action="store_true",
        help="show the algorithm's settings and where each comes from, and stop",
    )
    run.add_argument(
        "--trials",
        type=int,
        default=30,
        help="episodes per instance for the final table, 0 for no table (default: 30)",
    )
    run.add_argument("--more", action="store_true", help=MORE_SEEDS_HELP)
    run.add_argument(
        "--out",
        metavar="DIR",
        help="folder for the results (default: a new one below runs/)",
    )
    add_force(run)
    run.add_argument(
        "--resume",
        metavar="RUN.npz",
        help="go on from a checkpoint; its records, seed and settings are those it was begun with",
    )
    run.add_argument(
        "--checkpoint-every",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="time between checkpoints (default: 10)",
    )
    run.add_argument(
        "--no-records",
        action="store_true",
        help="leave the training records out of policy.npz; their names and fingerprints stay",
    )
    add_tensorboard(run)
    run.add_argument("--quiet", action="store_true", help="no progress, only the table")


def run(arguments: argparse.Namespace) -> int:
    """Train, save, evaluate; return the exit status."""
    from acerl_np.rivals.training import find_learner

    check_ranges(
        arguments, {name: x for name, x in RANGES.items() if getattr(arguments, name) is not None}
    )
    settings = read_settings(arguments.algorithm, arguments.set)
    if arguments.settings:
        kind = find_learner(arguments.algorithm)[0].settings_class
        rows = [
            [item.name, show_value(getattr(kind.from_dict(settings), item.name)), *about]
            for item in fields(kind)
            for about in [[item.metadata["source"], item.metadata["meaning"]]]
        ]
        print(render_table(["setting", "value", "source", "meaning"], rows))
        return 0
    check_tensorboard(arguments.tensorboard)
    if arguments.quiet:
        from acerl_np.support.machine_code import silence

        silence()
    if arguments.seeds is not None:
        return train_several(arguments, settings)
    if arguments.processes is not None or arguments.dask is not None:
        raise InputError(
            "--processes, --dask: one training runs on one thread; expected --seeds besides"
        )
    declare_run(arguments)
    trainer = make_trainer(arguments, settings)
    compile_ahead("rivals", quiet=arguments.quiet)
    what = "tasks" if arguments.tasks else arguments.suite or "dmh-train"
    name = f"{what}-{trainer.algorithm}-seed{trainer.seed}"
    with open_results(arguments, name) as folder:
        names = ("policy.npz", "run.npz", "config.json", "history.csv", "curves.csv")
        paths = {name: folder / name for name in names}
        write_config(paths["config.json"], trainer)
        started = time.perf_counter()
        stopped = train(trainer, arguments, paths)
        seconds = time.perf_counter() - started
        picture = None
        if stopped is None:
            picture = draw_training(folder, quiet=arguments.quiet)
        else:
            remove_picture(folder)
    if stopped is not None:
        print(
            f"acerl-np rivals: stopped after {trainer.taken:,} of {trainer.steps:,} steps; go on with: "
            f"acerl-np rivals {trainer.algorithm} --resume {paths['run.npz']}",
            file=sys.stderr,
        )
        return 128 + stopped
    if arguments.trials:
        from acerl_np.evaluation.trials import evaluate_policy

        trials = evaluate_policy(
            trainer.policy,
            trainer.instances,
            trials=arguments.trials,
            seed=trainer.seed,
            cost_limit=trainer.settings.cost_limit,
        )
        name = trainer.algorithm.upper()
        print(summarise(trainer.instances, trials, policy=name, more=arguments.more))
        report_unfinished("policy", trials)
    print(f"{trainer.algorithm}: {trainer.taken:,} steps, {seconds:.1f} s; seed {trainer.seed}")
    print(f"policy {paths['policy.npz']}   checkpoint {paths['run.npz']}")
    print(f"history {paths['history.csv']}   curves {paths['curves.csv']}")
    print(f"options {paths['config.json']}" + (f"   picture {picture}" if picture else ""))
    return 0


def train_several(arguments: argparse.Namespace, settings: dict[str, Any]) -> int:
    """Train with every seed that is asked for; return the exit status."""
    from acerl_np.experiments.runs import RivalConfig
    from acerl_np.experiments.seeds import SeedTask
    from acerl_np.rivals.training import STEPS
    from acerl_np.support.workers import count_cores

    for name in ("seed", "resume", "tensorboard"):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name}: given besides --seeds; expected one of the two")
    seeds = read_seeds(arguments.seeds)
    instances = tuple(load_instances(arguments, "dmh-train"))
    config = RivalConfig(arguments.algorithm, arguments.steps or STEPS, settings)
    tasks = [
        SeedTask(instances, (), config, seed, arguments.trials, not arguments.no_records)
        for seed in seeds
    ]
    what = "tasks" if arguments.tasks else arguments.suite or "dmh-train"
    name = f"{what}-{arguments.algorithm}-seeds{seeds[0]}-{seeds[-1]}"
    folder = Path(arguments.out or Path("runs") / name)
    declare_seeds(arguments, tasks, folder)
    own = min(count_cores(), len(tasks))
    asked = arguments.processes, arguments.dask, arguments.silence
    with open_team(*asked, usual=None, own=own) as team:
        compile_ahead("rivals", quiet=arguments.quiet)
        shown = {"more": arguments.more, "quiet": arguments.quiet}
        run_seeds(tasks, make_folder(folder), team, **shown)
    return 0


def show_value(value: object) -> str:
    """Return a setting's value as `--set` takes it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_settings(algorithm: str, texts: list[str]) -> dict[str, Any]:
    """Return the settings that `--set` gives, checked.

    Raises
    ------
    ConfigError
        If one is no NAME=VALUE, unknown, or of another kind or range.
    """
    from acerl_np.rivals.training import find_learner

    kind = find_learner(algorithm)[0].settings_class
    defaults = {item.name: item.default for item in fields(kind)}
    found: dict[str, Any] = {}
    for text in texts:
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
                found[name] = tuple(int(part) for part in value.split(","))
            else:
                found[name] = int(value) if isinstance(default, int) else float(value)
        except ValueError as error:
            what = "whole numbers" if isinstance(default, int | tuple) else "a number"
            raise ConfigError(f"--set {name}: read {describe(value)}; expected {what}") from error
    kind.from_dict(found)
    return found


def make_trainer(arguments: argparse.Namespace, settings: dict[str, Any]) -> RivalTrainer:
    """Return a new or a resumed trainer.

    Raises
    ------
    InputError
        If what is given besides a checkpoint says otherwise.
    """
    from acerl_np.rivals.training import STEPS, RivalTrainer

    if arguments.resume is None:
        seed = check_seed(0 if arguments.seed is None else arguments.seed, "--seed")
        instances = load_instances(arguments, "dmh-train")
        steps = STEPS if arguments.steps is None else arguments.steps
        return RivalTrainer(
            arguments.algorithm, instances, steps=steps, seed=seed, settings=settings
        )
    named = ("suite", "layout", "breakdowns", "random_breakdowns")
    if arguments.tasks or any(getattr(arguments, name) is not None for name in named):
        raise InputError(
            f"{arguments.resume}: records given besides a checkpoint; expected none, it holds its own"
        )
    trainer = RivalTrainer.resume(arguments.resume, steps=arguments.steps)
    stored = {"algorithm": trainer.algorithm, "seed": trainer.seed, **trainer.settings.to_dict()}
    asked: dict[str, Any] = {"algorithm": arguments.algorithm}
    asked |= {} if arguments.seed is None else {"seed": arguments.seed}
    asked |= {name: list(x) if isinstance(x, tuple) else x for name, x in settings.items()}
    for name, value in asked.items():
        if value != stored[name]:
            raise InputError(
                f"{arguments.resume}: trained with {name} {stored[name]}; read {value}, expected the same "
                "(leave the option out, or train anew)"
            )
    return trainer


def train(
    trainer: RivalTrainer, arguments: argparse.Namespace, paths: dict[str, Path]
) -> int | None:
    """Train to the end, or to a signal, whose number is returned; save now and then and at the end."""

    def save() -> None:
        trainer.save(paths["run.npz"])
        trainer.write_history(paths["history.csv"])
        trainer.write_curves(paths["curves.csv"])

    with catch_signals() as caught:
        save()
        last_save = time.perf_counter()
        folder = paths["run.npz"].parent
        with (
            show_progress(trainer, quiet=arguments.quiet) as show,
            open_tensorboard(folder, trainer, bool(arguments.tensorboard)) as log,
        ):
            while not trainer.done and caught() is None:
                record = trainer.step()
                show(record)
                log(record)
                if time.perf_counter() - last_save >= arguments.checkpoint_every:
                    save()
                    last_save = time.perf_counter()
        save()
        policy = trainer.policy
        if arguments.no_records and policy.origin is not None:
            policy.origin = policy.origin.without_records()
        policy.save(paths["policy.npz"])
        return None if trainer.done else caught()


@contextmanager
def show_progress(trainer: RivalTrainer, *, quiet: bool) -> Iterator[Callable[[Round], None]]:
    """Show how far it is, the episodes' means, speed and time left on the standard error stream."""
    if quiet or trainer.done:
        yield lambda record: None
        return
    first, started = trainer.taken, time.perf_counter()
    with open_meter(first, trainer.steps, "{n:,}/{total:,} steps") as meter:

        def show(record: Round) -> None:
            rate = (record.steps - first) / max(time.perf_counter() - started, 1e-9)
            text = (
                f"return {record.return_mean:.1f}, tardiness {record.cost_mean:.1f}, "
                f"satisfied {record.satisfied:.0%}, {rate / 1e3:,.1f}k steps/s"
            )
            if record.failed:
                text += f", {record.failed} episodes could not end"
            # The last update goes beyond the steps asked for.
            meter(min(record.steps, trainer.steps), text)

        yield show


def write_config(path: Path, trainer: RivalTrainer) -> None:
    """Write every option of the run as JSON."""
    import acerl_np

    data = {
        "acerl_np": acerl_np.__version__,
        "algorithm": trainer.algorithm,
        "steps": trainer.steps,
        "seed": trainer.seed,
        "instances": {instance.name: instance.content_hash for instance in trainer.instances},
        "settings": trainer.settings.to_dict(),
    }
    write_atomically(path, (json.dumps(data, indent=2) + "\n").encode())
