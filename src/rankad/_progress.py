"""Progress of long work on standard error."""

from __future__ import annotations

import sys
import threading
import time

_SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Count steps; on a terminal as one line that is rewritten, elsewhere as a line every few seconds.

    Parameters
    ----------
    label : str
        What is going on.
    total : int
        How many steps there are.
    shown : bool
        Whether to write anything at all.
    """

    def __init__(self, label: str, total: int, shown: bool) -> None:
        self._label = label
        self._total = total
        self._shown = shown
        self._done = 0
        self._start = self._written = time.monotonic()
        self._lock = threading.Lock()

    def advance(self) -> None:
        """Count one step; may be called from any thread."""
        with self._lock:
            self._done += 1
            now = time.monotonic()
            on_terminal = sys.stderr.isatty()
            last = self._done == self._total
            if not self._shown or not (on_terminal or last or now - self._written >= _SECONDS_BETWEEN_LINES):
                return
            self._written = now
            spent = now - self._start
            left = spent / self._done * (self._total - self._done)
            line = f"rankad {self._label}: {self._done} of {self._total}, {left:.0f} s left"
            sys.stderr.write(f"\r{line:<70}" if on_terminal else line + "\n")
            sys.stderr.flush()

    def finish(self) -> None:
        """End the line."""
        if self._shown and sys.stderr.isatty():
            sys.stderr.write("\n")
