"""What a training shows while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acerl_np.training.acerl import ACERL
    from acerl_np.training.history import Generation


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
def show_progress(trainer: ACERL, *, quiet: bool) -> Iterator[Callable[[Generation], None]]:
    """Show how far it is, population means, speed and time left on the standard error stream."""
    if quiet or trainer.done:
        yield lambda record: None
        return
    budget = trainer.config.decisions
    before = trainer.history[-1].decisions if trainer.history else 0
    total = trainer.config.generations if budget is None else budget
    first = trainer.generation if budget is None else before
    started = time.perf_counter()
    form = "generation {n}/{total}" if budget is None else "{n:,}/{total:,} decisions"
    with open_meter(first, total, form) as meter:

        def show(record: Generation) -> None:
            rate = (record.decisions - before) / max(time.perf_counter() - started, 1e-9)
            text = (
                f"return {record.return_mean:.1f}, tardiness {record.cost_mean:.1f}, "
                f"satisfied {record.satisfied:.0%}, {rate / 1e3:,.0f}k decisions/s"
            )
            if record.failed:
                text += f", {record.failed} members did not finish"
            # The last generation goes beyond a budget of decisions.
            meter(record.generation if budget is None else min(record.decisions, total), text)

        yield show
