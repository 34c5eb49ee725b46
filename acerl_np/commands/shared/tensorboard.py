"""`--tensorboard`: what history.csv and curves.csv tell, as event files while a training runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.commands.shared.learners import count_decisions
from acerl_np.support.errors import needing

if TYPE_CHECKING:
    from acerl_np.training.trainer import Trainer

FOLDER = "tensorboard"

NO_SCALARS = ("decisions", "steps", "generation", "seconds")

LOOKS = ("makespan", "tardiness", "satisfied")


def find_writer() -> Any:
    """Return the library's writer; refuse to go on without it."""
    words = "tensorboardX is not installed; install it with: pip install 'acerl_np[tensorboard]'"
    with needing(words):
        from tensorboardX import SummaryWriter
    return SummaryWriter


@contextmanager
def open_tensorboard(
    folder: Path, trainer: Trainer[Any], wanted: bool
) -> Iterator[Callable[[Any], None]]:
    """Return what logs a line of the history, and the looks at the policy since the last one.

    A resumed trainer takes back what was logged after its checkpoint. Unless it is wanted nothing is logged.
    """
    if not wanted:
        yield lambda record: None
        return
    names = [instance.name for instance in trainer.instances]
    first = count_decisions(trainer) + 1 if trainer.history else 0
    seen = len(trainer.curve)
    # Files are named by the second; a run that is resumed within it must not overwrite its own.
    options = {"purge_step": first, "filename_suffix": f".{first}"}
    with find_writer()(str(folder / FOLDER), **options) as writer:

        def log(record: Any) -> None:
            nonlocal seen
            row, step = asdict(record), count_decisions(trainer)
            counts = row.pop("counts")
            for name, value in row.items():
                if name not in NO_SCALARS:
                    writer.add_scalar(f"population/{name}", value, step)
            for name, count in zip(names, counts, strict=True):
                writer.add_scalar(f"sampler/{name}", count / max(1, sum(counts)), step)
            for point in trainer.curve[seen:]:
                for look in LOOKS:
                    values = getattr(point, look)
                    writer.add_scalar(f"policy/{look}", float(values.mean()), point.decisions)
                    for name, value in zip(names, values.tolist(), strict=True):
                        writer.add_scalar(f"policy/{look}/{name}", value, point.decisions)
            seen = len(trainer.curve)

        yield log
