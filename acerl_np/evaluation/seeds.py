"""The same training with several seeds: each is a task of its own, kept as soon as it is finished."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evaluation.jobs import ROOMS, finish, hash_content
from acerl_np.evaluation.metrics import satisfied_share
from acerl_np.evaluation.trials import METRICS, USAGE, Playing, play_policy
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import InputError
from acerl_np.support.files import path_exists, read_arrays, write_arrays, write_atomically
from acerl_np.support.team import Team
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import Config

FILES = ("policy.npz", "run.npz", "history.csv", "curves.csv")
TRIALS_FILE = "trials.npz"
KIND, FORMAT = "trials of a seed", 2


@dataclass(frozen=True)
class SeedTask:
    """A training of ACERL with one seed; other learners are subclasses.

    Attributes
    ----------
    instances : tuple of Instance
        The training records.
    held_back : tuple of Instance
        Further records that the policy plays.
    config : Config
    seed, trials : int
    with_records : bool
        Whether the policy's file holds its training records.
    """

    instances: tuple[Instance, ...]
    held_back: tuple[Instance, ...]
    config: Config
    seed: int
    trials: int
    with_records: bool = True

    @property
    def goal(self) -> Goal:
        """What it is trained for."""
        return self.config.resolve(self.instances).goal

    @property
    def horizon(self) -> float | None:
        """When episodes are stopped, s."""
        return self.config.horizon

    @property
    def rooms(self) -> tuple[Path, ...]:
        """Folders of the code that decides the result."""
        return ROOMS

    def start(self) -> Any:
        """Return the training, on one thread, which has not begun."""
        return ACERL(list(self.instances), self.config, seed=self.seed, threads=1)

    def describe(self) -> dict[str, Any]:
        """Return how it trains, for config.json."""
        return {"config": self.config.to_dict()}

    @property
    def playing(self) -> Playing | None:
        """How the policy is judged: as it was trained; None without trials."""
        if self.trials == 0:
            return None
        return Playing(self.trials, self.seed, None, self.goal, self.horizon, threads=1)

    def key(self) -> str:
        """Hash all that decides the result."""
        content = {
            "config": self.config.to_dict(),
            "seed": self.seed,
            "playing": self.playing and self.playing.to_dict(),
            "instances": [item.content_hash for item in self.instances],
            "held_back": [item.content_hash for item in self.held_back],
            "with_records": self.with_records,
        }
        return hash_content(content, self.rooms)


class SeedResult(NamedTuple):
    """What came of it.

    Attributes
    ----------
    played : ndarray(float64, (n_metrics, n_instances, trials))
        `METRICS` of the training records.
    unseen : ndarray(float64, (n_metrics, n_held_back, trials))
        Of the records that are held back.
    files : dict of bytes
        By name; empty of a seed that was kept.
    """

    played: np.ndarray
    unseen: np.ndarray
    files: dict[str, bytes]


def train_seed(task: SeedTask) -> SeedResult:
    """Train, play, and return the files of the run, on one thread, wherever that is."""
    trainer = task.start()
    trainer.run()
    policy = trainer.policy
    if not task.with_records and policy.origin is not None:
        policy.origin = policy.origin.without_records()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        savers = (policy.save, trainer.save, trainer.write_history, trainer.write_curves)
        for name, save in zip(FILES, savers, strict=True):
            save(folder / name)
        files = {name: (folder / name).read_bytes() for name in FILES}

    def play(records: Sequence[Instance]) -> np.ndarray:
        if not records or task.playing is None:
            return np.empty((len(METRICS), 0, task.trials))
        trials = play_policy(policy, list(records), task.playing)
        return np.stack([getattr(trials, name) for name in METRICS])

    return SeedResult(play(task.instances), play(task.held_back), files)


def train_seeds(
    tasks: Sequence[SeedTask], folder: Path, team: Team
) -> Iterator[tuple[int, SeedResult, bool]]:
    """Train every task, or take what an earlier call has finished in the same folder.

    Parameters
    ----------
    tasks : sequence of SeedTask
    folder : Path
        Each seed gets a folder below it, such as seed0.
    team : Team

    Returns
    -------
    iterator of (int, SeedResult, bool)
        Position of the task, its result, and whether it was trained now.
    """
    return finish(tasks, partial(_find, folder), train_seed, partial(_keep, folder), team)


def _keep(shared: Path, task: SeedTask, result: SeedResult) -> SeedResult:
    folder = shared / f"seed{task.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"kind": KIND, "format": FORMAT, "key": np.array(task.key())}
    # First, and without trials: what an older training has left is whole no more, and the folder is ours.
    write_arrays(folder / TRIALS_FILE, facts)
    for name, content in result.files.items():
        write_atomically(folder / name, content)
    # Last: what has it is whole.
    arrays = {"played": result.played, "unseen": result.unseen}
    write_arrays(folder / TRIALS_FILE, {**facts, **arrays})
    return result


def is_begun(folder: Path, task: SeedTask) -> bool:
    """Whether a folder holds files of this task, whole or not.

    Raises
    ------
    InputError
        If the file that tells is damaged.
    """
    if not path_exists(folder / TRIALS_FILE):
        return False
    arrays = read_arrays(folder / TRIALS_FILE, InputError)
    return str(arrays.get("key")) == task.key()


def _find(shared: Path, task: SeedTask) -> SeedResult | None:
    """Return what is kept of a task, None if it is nothing, not whole, or of another one."""
    folder = shared / f"seed{task.seed}"
    if not is_begun(folder, task):
        return None
    arrays = read_arrays(folder / TRIALS_FILE, InputError)
    if "played" not in arrays:
        return None
    return SeedResult(arrays["played"], arrays["unseen"], {})


def summarise_seeds(
    tasks: Sequence[SeedTask], results: Sequence[SeedResult], *, more: bool = False
) -> tuple[list[str], list[list[Any]]]:
    """Return header and rows: a line per seed, mean and standard deviation below.

    Shares are fractions; nan where there is nothing. With `more` all `METRICS` are columns.
    """
    first = ["value"] if any(task.goal.objective != PAPER.objective for task in tasks) else []
    columns = [*first, "makespan", "tardiness", "satisfied", *((*USAGE, "worst") if more else ())]
    unseen = any(task.held_back for task in tasks)
    header = ["seed", *columns, *([f"unseen {name}" for name in columns] if unseen else [])]
    values = []
    for task, result in zip(tasks, results, strict=True):
        row = []
        for played in result[:2] if unseen else result[:1]:
            # Older files lack the last ones.
            own = dict(zip(METRICS, played, strict=False))
            means = {name: x.mean() for name, x in own.items() if x.size}
            if means:
                means["satisfied"] = satisfied_share(own["cost"], task.goal.cost_limit)
            row += [means.get(name, np.nan) for name in columns]
        values.append(row)
    table = np.array(values, np.float64)
    rows: list[list[Any]] = [
        [str(task.seed), *line] for task, line in zip(tasks, table.tolist(), strict=True)
    ]
    rows.append(["mean", *table.mean(axis=0).tolist()])
    spread = table.std(axis=0, ddof=1) if len(table) > 1 else np.full(table.shape[1], np.nan)
    rows.append(["standard deviation", *spread.tolist()])
    return header, rows
