"""One BLAS thread while fitting, also when several fits run at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_users = 0
_limit: threadpool_limits | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: how it splits a sum over threads changes the sum's last bit.

    The limit is the whole process's, so the first to come sets it and the last to leave lifts it.
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = threadpool_limits(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _limit is not None:
                _limit.restore_original_limits()
                _limit = None
