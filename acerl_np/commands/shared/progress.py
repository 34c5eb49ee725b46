"""What a command says on the standard error stream while it works."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from acerl_np.commands.shared.options import QUIET
from acerl_np.support.errors import MissingExtraError, make_printable
from acerl_np.support.log import LOG, count_compiled

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Trials


def compile_ahead(*parts: str) -> None:
    """Compile or load parts of `acerl_np.warm.PARTS` before work begins; say how long that took."""
    from acerl_np.warm import warm_up

    started, before = time.perf_counter(), count_compiled()
    for part in parts:
        warm_up(part)
    if count_compiled() > before:
        LOG.info("compiled %s in %.0f s", ", ".join(parts), time.perf_counter() - started)


def report_unfinished(name: str, trials: Trials) -> None:
    """Say how many episodes did not finish, if any."""
    if trials.unfinished:
        print(
            f"{name}: {trials.unfinished} of {trials.makespan.size} episodes did not finish; "
            "means are over the others",
            file=sys.stderr,
        )


def make_report(what: str = "trainings") -> Callable[..., None]:
    """Return what says how many trainings of all are done, in a line every two seconds, and the time left.

    Those that were trained earlier, not `is_new`, cost no time.
    """
    started = shown = time.perf_counter()
    trained = 0

    def report(done: int, total: int, label: str, is_new: bool = True) -> None:
        nonlocal shown, trained
        now = time.perf_counter()
        trained += is_new
        if QUIET.get() or (done < total and now - shown < 2.0):
            return
        shown, elapsed = now, now - started
        left = f", about {elapsed / trained * (total - done):.0f} s left" if trained else ""
        line = f"{done}/{total} {what}, {label}, {elapsed:.0f} s{left}"
        print(line, file=sys.stderr, flush=True)

    return report


@contextmanager
def open_meter(first: int, total: int, form: str) -> Iterator[Callable[[int, str], None]]:
    """Return a function that shows how far it is from `first` to `total`, a text, and the time left.

    On a terminal that is a bar, else eight lines in all; `form` writes a place: "{n:,}/{total:,} steps".
    """
    from tqdm import tqdm

    terminal = sys.stderr.isatty()
    started, shown = time.perf_counter(), first
    bar = tqdm(
        total=total,
        initial=first,
        disable=not terminal,
        dynamic_ncols=True,
        bar_format=f"{form} |{{bar:20}}| {{postfix}} [{{elapsed}}, {{remaining}} left]",
    )
    step = max(1, total // 8)

    def show(now: int, text: str) -> None:
        nonlocal shown
        if terminal:
            bar.set_postfix_str(text, refresh=False)
            bar.update(now - bar.n)
        elif now // step > shown // step or now >= total:
            shown = now
            left = (time.perf_counter() - started) / max(1, now - first) * (total - now)
            place = form.format(n=now, total=total)
            print(f"{place}: {text}, {left:.0f} s left", file=sys.stderr, flush=True)

    with bar:
        yield show


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM, so that workers are ended, too."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def catch_signals() -> Iterator[Callable[[], int | None]]:
    """Note Ctrl-C and SIGTERM instead of stopping at once; a second Ctrl-C stops."""
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: caught[0] if caught else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# The picture that a training leaves

PICTURE = "curves.png"


def draw_training(folder: Path, *, quiet: bool) -> Path | None:
    """Draw the curves of a training that has just ended; what hinders it is said in a line, and no error.

    Where none can be drawn, that of an earlier training is removed. With `quiet` it is not said that
    matplotlib is missing.
    """
    from acerl_np.pictures.drawing import check_extra

    out = folder / PICTURE
    try:
        check_extra()
        from acerl_np.commands.shared.curves import draw_runs

        draw_runs([folder], out)
    except MissingExtraError as error:
        if not quiet:
            print(f"no {PICTURE}: {error}", file=sys.stderr)
    except Exception as error:
        # The training is done and saved; a picture of it can be drawn again.
        reason = make_printable(" ".join(str(error).split()))
        print(f"no {PICTURE}: {type(error).__name__}: {reason}", file=sys.stderr)
    else:
        return out
    remove_picture(folder)
    return None


def remove_picture(folder: Path) -> None:
    """Remove the picture of an earlier training, if there is one and the machine lets it go."""
    with suppress(OSError):
        (folder / PICTURE).unlink()
