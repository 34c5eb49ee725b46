"""When a service by the clock on the wall asks itself who takes which task."""

from __future__ import annotations

QUIET = 0.05
"""Seconds without a message after which it asks."""

MOST = 0.2
"""Seconds after the first message that opened something at which it asks, whatever else is told."""

PAUSE = 0.5
"""Seconds after a question that failed until the next one."""


class Asker:
    """Decides when to ask: after quiet, `most` after something was opened, or as something is due.

    All times are seconds of one clock, that of the wall, which may be set back.

    Parameters
    ----------
    quiet, most : float
        s.
    """

    def __init__(self, quiet: float = QUIET, most: float = MOST) -> None:
        self.quiet, self.most = quiet, most
        self._first: float | None = None
        """Of the messages since the last question, when the first came that opened something."""
        self._last = self._earliest = -float("inf")
        self._due: float | None = None

    def note(self, now: float, *, opens: bool, due: float | None) -> None:
        """Note a message: whether it opened something, and when the dispatcher is to be asked in any case."""
        self._last, self._due = now, due
        if opens and self._first is None:
            self._first = now

    def note_question(self, now: float, due: float | None) -> None:
        """Note that the question was answered, and when the next one is due."""
        self._first, self._last, self._due = None, now, due
        self._earliest = now + self.quiet

    def note_failure(self, now: float) -> None:
        """Note that a question failed: it is asked again after a pause."""
        self._first, self._last, self._earliest = now, now, now + PAUSE

    def next(self, now: float) -> float | None:
        """Return when to ask next though nothing happens; None as long as nothing does."""
        moments = [] if self._due is None else [self._due]
        if self._first is not None:
            moments.append(min(self._first + self.most, self._last + self.quiet))
        if not moments:
            return None
        if now < self._last:  # the clock was set back
            return now
        return max(min(moments), self._earliest)

    def is_due(self, now: float) -> bool:
        """Whether to ask now."""
        moment = self.next(now)
        return moment is not None and moment <= now
