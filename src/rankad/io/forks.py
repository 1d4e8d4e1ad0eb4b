"""Polars in a child process: its threads stay behind in the parent, and it would wait for them for ever."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from rankad.io.errors import TableError

__all__ = ["ForkError", "check_polars"]

_threads_at_fork = _threads_left_behind = False


class ForkError(TableError, RuntimeError):
    """A table in a process that was forked from one which had used polars."""


def check_polars() -> None:
    """Raise where polars would wait for ever, since this process was forked from one that had used it."""
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
    """Tell whether polars has started its threads, which it does when it is first used."""
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        # Where that cannot be told, it may have.
        return True
    for task in tasks.iterdir():
        # A thread may end meanwhile.
        with suppress(OSError):
            name = (task / "comm").read_text().strip()
            if name.startswith("polars-") and name.removeprefix("polars-").isdigit():
                return True
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
