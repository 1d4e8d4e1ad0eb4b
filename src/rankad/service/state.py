"""What the requests of one service share: models, keys, history, limits, metrics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import anyio
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.applications import Starlette
from starlette.requests import Request

from rankad.service.drift import DriftWatch
from rankad.service.errors import RequestError
from rankad.service.formats import MOST_COLUMNS, Batch, read_rows
from rankad.service.history import History, Scored
from rankad.service.journal import Journal
from rankad.service.keys import KeyFile
from rankad.service.models import ModelStore, ServedModel
from rankad.service.page.routes import Page
from rankad.service.scoring import Answers
from rankad.service.settings import Settings
from rankad.service.together import Together

_log = logging.getLogger("rankad.service")
# Fewer rows than this take less time to score than to hand to a thread.
INLINE_ROWS = 32
# So do fewer bytes to read.
INLINE_BYTES = 64 * 1024
_REFRESH_SECONDS = 1.0
# Threads of large tasks. The history and the watch over files have others, so that they never wait for these.
_MOST_THREADS = 8


class Service:
    """What the requests of one service share. It is made before processes are forked, and opened in each.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models = ModelStore(settings.models)
        self.keys = None if settings.keys is None else KeyFile(settings.keys)
        self.history: History | None = None
        if settings.history is not None:
            # Whether it can be opened is known before anything is served; connections do not survive a fork.
            History(settings.history, settings.keep_days).close()
        self.at_once = 0
        self.bytes_at_once = 0
        self._threads: anyio.CapacityLimiter | None = None
        self.together = Together()
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "rankad_requests", "Requests answered.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "rankad_request_seconds", "Time to answer a request.", ["route"], registry=self.registry
        )
        self.rows = Counter("rankad_rows", "Rows scored.", ["model"], registry=self.registry)
        self.alarms = Counter("rankad_alarms", "Alarms raised.", ["model"], registry=self.registry)
        self.drifts = Counter(
            "rankad_drift_alarms", "Times that normal behaviour drifted.", ["model"], registry=self.registry
        )
        self.page = Page(self)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Open the history, and look for changed model files while the application runs."""
        if self.settings.history is not None:
            self.history = History(self.settings.history, self.settings.keep_days)
            self.journal = Journal(self.history)
            self.drift = DriftWatch(self.history, lambda name: self.drifts.labels(name).inc())
        # A process that takes the place of another one was forked from models of long ago.
        self._look_for_models()
        self._look_for_keys()
        self.page.open()
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
            self.page.close()
            if self.history is not None:
                await self.drift.advance()
                self.history.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            await anyio.to_thread.run_sync(self.page.sweep)
            if self.history is not None:
                await self.drift.advance()
            await anyio.to_thread.run_sync(self._look_for_models)
            await anyio.to_thread.run_sync(self._look_for_keys)

    def _look_for_keys(self) -> None:
        wrong = None if self.keys is None else self.keys.refresh()
        if wrong:
            _log.error("the old keys stay; the file of keys cannot be used: %s", wrong)
        elif wrong is not None:
            _log.info("the file of keys has changed and was read again")

    def _look_for_models(self) -> None:
        for name, wrong in self.models.refresh():
            if wrong is None:
                _log.info("model %s: loaded again, its file has changed", name)
            else:
                _log.error("model %s: the old one is kept; the new file cannot be used: %s", name, wrong)

    def metrics(self) -> bytes:
        """Return the metrics of all processes of the service, for Prometheus."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    async def body(self, request: Request) -> bytes:
        """Return the body of a request, within the limits on its size and on the time it takes."""
        most = self.settings.most_bytes
        too_large = RequestError(413, "too_large", f"the body has more than {most:,} bytes; send fewer rows")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise RequestError(415, "compressed", "compressed bodies are not taken; send it as it is")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most:
            raise too_large
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self.settings.read_seconds):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > most:
                        raise too_large
                    self._hold(request, len(chunk))
                    chunks.append(chunk)
        except TimeoutError:
            raise RequestError(
                408, "slow", f"the body did not arrive within {self.settings.read_seconds:g} s"
            ) from None
        return b"".join(chunks)

    def _hold(self, request: Request, n_bytes: int) -> None:
        """Count a part of a body as held, until `release`; raise if all bodies together are too large."""
        most = max(self.settings.most_bytes_at_once, self.settings.most_bytes)
        if self.bytes_at_once + n_bytes > most:
            raise RequestError(503, "busy", "too many large requests at the same time; try again in a second")
        self.bytes_at_once += n_bytes
        request.state.n_bytes = getattr(request.state, "n_bytes", 0) + n_bytes

    def release(self, request: Request) -> None:
        """Forget the body of a request that is answered."""
        self.bytes_at_once -= getattr(request.state, "n_bytes", 0)

    async def work(self, small: bool, task: Callable[[], Any]) -> Any:
        """Run a task: a small one at once, others on a thread and within the limit on time."""
        if small:
            return task()
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(_MOST_THREADS)
        try:
            async with asyncio.timeout(self.settings.score_seconds):
                return await anyio.to_thread.run_sync(task, abandon_on_cancel=True, limiter=self._threads)
        except TimeoutError:
            raise RequestError(
                503, "too_slow", f"scoring took more than {self.settings.score_seconds:g} s; send fewer rows"
            ) from None

    async def rows_of(self, body: bytes, kind: str, most_rows: int) -> Batch:
        """Read the rows of a body, a large one on a thread."""
        most_bytes = self.settings.most_bytes
        most_columns = max(MOST_COLUMNS, *(model.card.n_columns for model in self.models))
        small = len(body) <= INLINE_BYTES
        task = partial(read_rows, body, kind, most_rows, most_bytes, most_columns)
        batch: Batch = await self.work(small, task)
        return batch

    async def note(
        self, model: ServedModel, answers: Answers, request_id: str, fdr: float | None = None
    ) -> None:
        """Count what was scored, and store it before it is answered."""
        p_values, alarms = answers.columns["p_value"], answers.alarms
        if self.history is not None:
            scored = Scored(
                model.name, model.card.sha256, request_id, len(p_values), answers.alpha, alarms, fdr
            )
            try:
                await self.journal.add(scored)
            except Exception as error:
                _log.error("request %s: the history cannot be written: %s", request_id, error)
                raise RequestError(
                    503,
                    "history",
                    f"the request was scored but could not be stored in the history: {str(error).strip()}",
                ) from None
            self.drift.take(model, p_values)
        self.rows.labels(model.name).inc(len(p_values))
        self.alarms.labels(model.name).inc(len(alarms))
