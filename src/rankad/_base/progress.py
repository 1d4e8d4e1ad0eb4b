"""Progress of long work on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS_BETWEEN_LINES = 5.0

# Gets the label, the steps done, and how many there are.
Listener = Callable[[str, int, int], None]
_listeners: list[Listener] = []


@contextmanager
def told_to(listener: Listener) -> Iterator[None]:
    """Tell every step to `listener`, from whatever thread, while the block runs; nothing is written then."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


class Progress:
    """Count steps; on a terminal as one line that is rewritten, elsewhere as a line every few seconds.

    The time left is estimated by the steps since the beginning, `finished` were done before.
    """

    def __init__(self, label: str, total: int, shown: bool, finished: int = 0) -> None:
        self._label, self._total, self._shown = label, total, shown
        self._finished = self._done = finished
        self._start = self._written = time.monotonic()
        self._lock = threading.Lock()

    def advance(self) -> None:
        """Count one step; may be called from any thread."""
        with self._lock:
            self._done += 1
            if _listeners:
                _listeners[-1](self._label, self._done, self._total)
                return
            now = time.monotonic()
            on_terminal = sys.stderr.isatty()
            last = self._done == self._total
            if not self._shown or not (on_terminal or last or now - self._written >= _SECONDS_BETWEEN_LINES):
                return
            self._written = now
            each = (now - self._start) / (self._done - self._finished)
            minutes, seconds = divmod(round(each * (self._total - self._done)), 60)
            left = f"{minutes} min {seconds:02d} s left" if minutes else f"{seconds} s left"
            line = f"rankad {self._label}: {self._done} of {self._total}, {left}"
            sys.stderr.write(f"\r{line:<70}" if on_terminal else line + "\n")
            sys.stderr.flush()

    def finish(self) -> None:
        """End the line."""
        if self._shown and not _listeners and sys.stderr.isatty():
            sys.stderr.write("\n")
