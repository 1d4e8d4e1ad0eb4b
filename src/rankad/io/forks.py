"""Polars after a fork: its threads stay in the parent, and the child would wait for them forever."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from rankad.io.errors import TableError

_threads_at_fork = _threads_left_behind = False


class ForkError(TableError, RuntimeError):
    """A table is used in a process forked from one that had used polars."""


def check_polars() -> None:
    """Raise if this process was forked from one that had used polars, which would wait forever."""
    if _threads_left_behind:
        raise ForkError(
            "Tables cannot be used in this process: it was forked from one that had used polars, whose "
            "threads are not in it. Start processes with multiprocessing.get_context('spawn') or "
            "'forkserver', or fork before any table is used. (Arrays can be scored: RankAD needs no polars.)"
        )


def _before_fork() -> None:
    global _threads_at_fork
    _threads_at_fork = _has_threads()


def _after_fork() -> None:
    global _threads_left_behind
    _threads_left_behind |= _threads_at_fork


def _has_threads() -> bool:
    """Return whether polars has started its threads, which it does on first use."""
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        # Unknown on this system, so assume it has.
        return True
    for task in tasks.iterdir():
        # A thread may end in the meantime.
        with suppress(OSError):
            name = (task / "comm").read_text().strip()
            if name.startswith("polars-") and name.removeprefix("polars-").isdigit():
                return True
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
