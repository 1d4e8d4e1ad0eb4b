"""SIGINT and SIGTERM: a run cleans up, and always ends."""

from __future__ import annotations

import signal
import sys
from typing import Any

# Python drops an exception raised while it frees an object, or in a callback from C, as when loops are
# compiled. So it is raised again after this many seconds.
_REPEAT_SECONDS = 0.2


class Interruption:
    """Raises KeyboardInterrupt for SIGINT and SIGTERM, again and again until it takes effect.

    `signals` are those received.
    """

    def __init__(self) -> None:
        self.signals: list[int] = []

    def listen(self) -> None:
        """Handle the signals from now on, except ignored ones (as under nohup)."""
        for sent in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(sent) is not signal.SIG_IGN:
                signal.signal(sent, self._interrupt)
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._interrupt_again)
        before = sys.unraisablehook

        def dropped(what: Any) -> None:
            # It is raised again, so do not report the first time.
            if not (self.signals and isinstance(what.exc_value, KeyboardInterrupt)):
                before(what)

        sys.unraisablehook = dropped

    def stop(self) -> None:
        """Raise no more."""
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)

    @property
    def terminated(self) -> bool:
        """Whether SIGTERM was received."""
        return signal.SIGTERM in self.signals

    def _interrupt(self, number: int, _: Any) -> None:
        self.signals.append(number)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, _REPEAT_SECONDS, _REPEAT_SECONDS)
        raise KeyboardInterrupt

    def _interrupt_again(self, *_: Any) -> None:
        if not _is_ending(sys.exc_info()[1]):
            raise KeyboardInterrupt


def _is_ending(handled: BaseException | None) -> bool:
    """Return whether the exception being handled, as in a `finally`, stems from an interruption."""
    while handled is not None and not isinstance(handled, KeyboardInterrupt):
        handled = handled.__context__
    return handled is not None
