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
def show_progress(trainer: ACERL, *, quiet: bool) -> Iterator[Callable[[Generation], None]]:
    """Show how far it is, population means, speed and time left on the standard error stream."""
    if quiet or trainer.done:
        yield lambda record: None
        return
    from tqdm import tqdm

    budget = trainer.config.decisions
    before = trainer.history[-1].decisions if trainer.history else 0
    total = trainer.config.generations if budget is None else budget
    first = trainer.generation if budget is None else before
    terminal = sys.stderr.isatty()
    started = time.perf_counter()
    done = "generation {n_fmt}/{total_fmt}" if budget is None else "{n:,}/{total:,} decisions"
    bar = tqdm(
        total=total,
        initial=first,
        unit="gen",
        disable=not terminal,
        dynamic_ncols=True,
        bar_format=f"{done} |{{bar:20}}| {{postfix}} [{{elapsed}}, {{remaining}} left]",
    )
    step = max(1, total // 8)
    shown = first

    def show(record: Generation) -> None:
        nonlocal shown
        elapsed = time.perf_counter() - started
        rate = (record.decisions - before) / max(elapsed, 1e-9)
        text = (
            f"return {record.return_mean:.1f}, tardiness {record.cost_mean:.1f}, "
            f"satisfied {record.satisfied:.0%}, {rate / 1e3:,.0f}k decisions/s"
        )
        if record.failed:
            text += f", {record.failed} members did not finish"
        # The last generation goes beyond a budget of decisions.
        now = record.generation if budget is None else min(record.decisions, total)
        if terminal:
            bar.set_postfix_str(text, refresh=False)
            bar.update(now - bar.n)
        elif now // step > shown // step or now >= total:
            shown = now
            left = elapsed / max(1, now - first) * (total - now)
            place = f"{now:,}/{total:,} decisions" if budget else f"generation {now}/{total}"
            print(f"{place}: {text}, {left:.0f} s left", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        bar.close()
