"""Requests that arrive at the same time, stored in one transaction."""

from __future__ import annotations

import asyncio

import anyio

from rankad.service.history import History, Scored


class Journal:
    """Stores what was scored. While one transaction is under way, the next one collects.

    A transaction takes as long for fifty requests as for one, and a request waits for two at most.

    Parameters
    ----------
    history : History
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._waiting: list[tuple[Scored, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def add(self, scored: Scored) -> None:
        """Store a request; it is stored when this returns."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[None] = loop.create_future()
        self._waiting.append((scored, stored))
        if self._writer is None:
            self._writer = loop.create_task(self._write())
        await stored

    async def _write(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting, []
                wrong: Exception | None = None
                try:
                    # On a thread: another process may hold a lock.
                    await anyio.to_thread.run_sync(self._history.add, [scored for scored, _ in group])
                except Exception as error:
                    wrong = error
                for _, stored in group:
                    # A request that was given up has cancelled its wait.
                    if not stored.done():
                        stored.set_result(None) if wrong is None else stored.set_exception(wrong)
        finally:
            self._writer = None
