"""Progress of long work on standard error."""

from __future__ import annotations

import sys
import threading
import time


class Progress:
    """Count steps; on a terminal as one line that is rewritten, elsewhere as a line for every tenth.

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
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def advance(self) -> None:
        """Count one step; may be called from any thread."""
        with self._lock:
            before, self._done = self._done, self._done + 1
            if not self._shown:
                return
            on_terminal = sys.stderr.isatty()
            if not on_terminal and 10 * before // self._total == 10 * self._done // self._total:
                return
            spent = time.monotonic() - self._start
            left = spent / self._done * (self._total - self._done)
            line = f"rankad {self._label}: {self._done} of {self._total}, {left:.0f} s left"
            sys.stderr.write(f"\r{line:<70}" if on_terminal else line + "\n")
            sys.stderr.flush()

    def finish(self) -> None:
        """End the line."""
        if self._shown and sys.stderr.isatty():
            sys.stderr.write("\n")
