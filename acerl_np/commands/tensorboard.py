"""`--tensorboard`: what history.csv and curves.csv tell, as event files while a training runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acerl_np.support.errors import MissingExtraError

if TYPE_CHECKING:
    from acerl_np.rivals.history import Round
    from acerl_np.rivals.training import RivalTrainer
    from acerl_np.training.acerl import ACERL
    from acerl_np.training.curves import CurvePoint
    from acerl_np.training.history import Generation

FOLDER = "tensorboard"

STEPS = ("decisions", "steps")
"""Columns that say how far a training is."""

NO_SCALARS = (*STEPS, "generation", "seconds")

LOOKS = ("makespan", "tardiness", "satisfied")


def check_tensorboard(wanted: bool) -> None:
    """Refuse --tensorboard where its library is missing."""
    if wanted:
        _find_writer()


def _find_writer() -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise MissingExtraError(
            "tensorboardX is not installed; install it with: pip install 'acerl_np[tensorboard]'"
        ) from error
    return SummaryWriter


@contextmanager
def open_tensorboard(
    folder: Path, trainer: ACERL | RivalTrainer, wanted: bool
) -> Iterator[Callable[[Generation | Round], None]]:
    """Return what logs a line of the history, and the looks at the policy since the last one.

    A resumed trainer takes back what was logged after its checkpoint. Unless it is wanted nothing is logged.
    """
    if not wanted:
        yield lambda record: None
        return
    names = [instance.name for instance in trainer.instances]
    first = _read_step(asdict(trainer.history[-1])) + 1 if trainer.history else 0
    seen = len(trainer.curve)
    # Files are named by the second; a run that is resumed within it must not overwrite its own.
    options = {"purge_step": first, "filename_suffix": f".{first}"}
    with _find_writer()(str(folder / FOLDER), **options) as writer:

        def log(record: Generation | Round) -> None:
            nonlocal seen
            _log_line(writer, record, names)
            for point in trainer.curve[seen:]:
                _log_look(writer, point, names)
            seen = len(trainer.curve)

        yield log


def _read_step(row: dict[str, Any]) -> int:
    return int(next(row[name] for name in STEPS if name in row))


def _log_line(writer: Any, record: Generation | Round, names: Sequence[str]) -> None:
    row = asdict(record)
    step, counts = _read_step(row), row.pop("counts")
    for name, value in row.items():
        if name not in NO_SCALARS:
            writer.add_scalar(f"population/{name}", value, step)
    for name, count in zip(names, counts, strict=True):
        writer.add_scalar(f"sampler/{name}", count / max(1, sum(counts)), step)


def _log_look(writer: Any, point: CurvePoint, names: Sequence[str]) -> None:
    for look in LOOKS:
        values = getattr(point, look)
        writer.add_scalar(f"policy/{look}", float(values.mean()), point.decisions)
        for name, value in zip(names, values.tolist(), strict=True):
            writer.add_scalar(f"policy/{look}/{name}", value, point.decisions)
