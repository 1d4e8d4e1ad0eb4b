"""A run that is told to end: like one that is interrupted, it cleans up, and it always ends."""

from __future__ import annotations

import signal
import sys
from typing import Any

__all__ = ["Interruption"]

# Python drops an exception that is raised while it frees an object, or while C calls Python, as it does when
# loops are compiled. So it is raised again after so many seconds.
_AGAIN = 0.2


class Interruption:
    """SIGINT and SIGTERM as KeyboardInterrupt, raised until it gets through.

    Attributes
    ----------
    told : list of int
        The signals that came.
    """

    def __init__(self) -> None:
        self.told: list[int] = []

    def listen(self) -> None:
        """Take the signals from now on, but for those that are ignored (as under nohup)."""
        for sent in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(sent) is not signal.SIG_IGN:
                signal.signal(sent, self._come)
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._come_again)
        before = sys.unraisablehook

        def dropped(what: Any) -> None:
            # It is raised again, and nobody wants to read about the first time.
            if not (self.told and isinstance(what.exc_value, KeyboardInterrupt)):
                before(what)

        sys.unraisablehook = dropped

    def stop(self) -> None:
        """Raise no more."""
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)

    @property
    def terminated(self) -> bool:
        """Whether it was told to end, not interrupted."""
        return signal.SIGTERM in self.told

    def _come(self, number: int, _: Any) -> None:
        self.told.append(number)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
        raise KeyboardInterrupt

    def _come_again(self, *_: Any) -> None:
        if not _is_ending(sys.exc_info()[1]):
            raise KeyboardInterrupt


def _is_ending(handled: BaseException | None) -> bool:
    """Tell whether what is being handled, as by a `finally`, comes of an interruption."""
    while handled is not None and not isinstance(handled, KeyboardInterrupt):
        handled = handled.__context__
    return handled is not None
