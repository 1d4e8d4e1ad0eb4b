"""Work on rows in blocks, on threads; and one BLAS thread while fitting, however many fits run at a time."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:
    # Python 3.11 holds one lock for all instances while a value is computed: folds on threads would wait for
    # one another, and a process forked meanwhile would wait for ever.
    class cached_property(functools.cached_property[T]):
        """`functools.cached_property` of Python 3.12, which has no lock."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))


_lock = threading.Lock()
# How deep in fits each thread is, and how many threads each BLAS had before the first of them began.
_fitting: dict[int, int] = {}
_threads_before: list[int] = []


@functools.cache
def _pools() -> list[Any]:
    """Return the thread pools of what fits compute with; to look for them takes as long as a small fit."""
    # SciPy brings a BLAS of its own, which must be there to be found.
    import scipy.linalg  # noqa: F401

    return [pool for pool in ThreadpoolController().lib_controllers if pool.user_api == "blas"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: how it splits a sum over threads changes the sum's last bit.

    The limit is the whole process's, so the first to come sets it and the last to leave lifts it, whichever
    threads they are.
    """
    me = threading.get_ident()
    with _lock:
        if not _fitting:
            _threads_before[:] = [pool.get_num_threads() for pool in _pools()]
            _set_threads([1] * len(_threads_before))
        _fitting[me] = _fitting.get(me, 0) + 1
    try:
        yield
    finally:
        with _lock:
            _fitting[me] -= 1
            if not _fitting[me]:
                del _fitting[me]
            if not _fitting:
                _set_threads(_threads_before)


def _set_threads(wanted: list[int]) -> None:
    for pool, n in zip(_pools(), wanted, strict=True):
        # threadpoolctl lets one thread alone set the limit, and does nothing for all others. It is to be set
        # by whoever comes first, and lifted by whoever leaves last.
        disown = getattr(pool, "clear_controlling_thread", None)
        if disown is not None:
            disown(force=True)
        pool.set_num_threads(n)
        if disown is not None:
            disown(force=True)


def _after_fork() -> None:
    """Forget the fits of threads that a child process does not have."""
    me = threading.get_ident()
    others = [thread for thread in _fitting if thread != me]
    for thread in others:
        del _fitting[thread]
    if others and not _fitting:
        _set_threads(_threads_before)


# Held while modules are imported that take long to import, so that a child never gets half a module.
importing = threading.RLock()


def held_over_forks(lock: Any) -> None:
    """Have a fork wait for a lock: a child never gets it in the hands of a thread that it does not have."""
    if not hasattr(os, "register_at_fork"):
        return
    # A fork that began before this was called, and waited for another lock, has not taken this one.
    taken: set[int] = set()

    def take() -> None:
        lock.acquire()
        taken.add(threading.get_ident())

    def give_back() -> None:
        if threading.get_ident() in taken:
            taken.remove(threading.get_ident())
            lock.release()

    os.register_at_fork(before=take, after_in_parent=give_back, after_in_child=give_back)


held_over_forks(_lock)
held_over_forks(importing)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` means where it is asked, as joblib has it."""
    backend, default = get_active_backend(prefer="threads")
    return int(backend.effective_n_jobs(default if n_jobs is None else n_jobs))


def in_blocks(
    work: Callable[[int, int], T], n: int, most: int, n_jobs: int | None = None, *, few: int | None = None
) -> list[T]:
    """Return ``work(begin, end)`` for blocks of n rows, `most` at most each, in order, on `n_jobs` threads.

    Blocks are alike in size, and as many for one thread as for another; `few` rows, by default `most`, are
    not worth a second thread.
    """
    jobs = max(1, min(-(-n // (few or most)), n_threads(n_jobs)))
    n_blocks = max(1, jobs * -(-n // (jobs * most)))
    bounds = [n * part // n_blocks for part in range(n_blocks + 1)]
    blocks = list(pairwise(bounds))
    return in_turns(lambda turn: work(*blocks[turn]), n_blocks, jobs)


def in_turns(work: Callable[[int], T], n: int, jobs: int) -> list[T]:
    """Return ``work(0)`` to ``work(n - 1)``, done by `jobs` threads, this one among them; an error ends it.

    Pools of threads take a millisecond to set up and to take down, and leave the thread that asks idle; those
    of joblib also leave semaphores of the system behind where a process is told to end.
    """
    if jobs == 1:
        return [work(turn) for turn in range(n)]
    left = deque(range(n))
    results, errors = dict[int, T](), dict[int, BaseException]()

    def help_out() -> None:
        while True:
            try:
                turn = left.popleft()
            except IndexError:
                return
            try:
                results[turn] = work(turn)
            except BaseException as error:
                errors[turn] = error
                left.clear()

    helpers = [threading.Thread(target=help_out) for _ in range(jobs - 1)]
    try:
        for helper in helpers:
            helper.start()
        help_out()
        for helper in helpers:
            helper.join()
    finally:
        # An interrupt stops all helpers.
        left.clear()
    if errors:
        raise errors[min(errors)]
    return [results[turn] for turn in range(n)]
