"""What a training shows while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from acerl_np.commands.learners import count_decisions

if TYPE_CHECKING:
    from acerl_np.commands.learners import Learner


@contextmanager
def open_meter(first: int, total: int, form: str) -> Iterator[Callable[[int, str], None]]:
    """Return a function that shows how far it is, a text and the time left on the standard error stream.

    On a terminal that is a bar, else eight lines in all.

    Parameters
    ----------
    first, total : int
        Where it begins and where it ends.
    form : str
        How a place is written, of n and total: "{n:,}/{total:,} steps".
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

    try:
        yield show
    finally:
        bar.close()


@contextmanager
def show_progress(
    learner: Learner, trainer: Any, *, quiet: bool
) -> Iterator[Callable[[Any], None]]:
    """Show how far it is, the episodes' means, speed and time left on the standard error stream."""
    if quiet or trainer.done:
        yield lambda record: None
        return
    before, started = count_decisions(trainer), time.perf_counter()
    first, total = learner.place(trainer)
    with open_meter(first, total, learner.form) as meter:

        def show(record: Any) -> None:
            rate = (count_decisions(trainer) - before) / max(time.perf_counter() - started, 1e-9)
            text = (
                f"return {record.return_mean:.1f}, tardiness {record.cost_mean:.1f}, "
                f"satisfied {record.satisfied:.0%}, {rate / 1e3:,.{learner.digits}f}k {learner.noun}/s"
            )
            if record.failed:
                text += f", {record.failed} {learner.failed}"
            # The last generation or update goes beyond a budget.
            meter(min(learner.place(trainer)[0], total), text)

        yield show
