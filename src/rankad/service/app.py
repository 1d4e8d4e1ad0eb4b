"""The HTTP application: routes, limits, keys, metrics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from rankad import __version__
from rankad.service import inference
from rankad.service.errors import RequestError
from rankad.service.formats import JSON, Batch, encode, media_type, read_rows
from rankad.service.history import History, Scored
from rankad.service.keys import KeyFile
from rankad.service.models import ModelStore, ServedModel
from rankad.service.openapi import document
from rankad.service.page.routes import Page
from rankad.service.scoring import Answers, decide, explain_rows, rate_of, score_rows
from rankad.service.settings import Settings
from rankad.service.together import Together

__all__ = ["make_app"]

_log = logging.getLogger("rankad.service")
# Fewer rows than this take less time to score than to hand to a thread.
_INLINE_ROWS = 32
# So do fewer bytes to read.
_INLINE_BYTES = 64 * 1024
_REFRESH_SECONDS = 1.0
_MOST_LISTED = 1_000
_MOST_EXPLAINED = 1_000

Handler = Callable[["_Service", Request], Awaitable[Response]]


def make_app(settings: Settings) -> Starlette:
    """Return the ASGI application of a service; its models are loaded here, so that a bad one stops it."""
    service = _Service(settings)
    routes = [
        _route(service, "/health/live", _alive, role=None),
        _route(service, "/health/ready", _alive, role=None),
        _route(service, "/openapi.json", _openapi, role=None),
        _route(service, "/metrics", _metrics),
        _route(service, "/models", _list),
        _route(service, "/models/{name}", _describe),
        _route(service, "/models/{name}/score", _score, method="POST"),
        _route(service, "/models/{name}/explain", _explain, method="POST"),
        _route(service, "/models/{name}/history", _history),
        _route(service, "/models/{name}/reload", _reload, method="POST", role="admin"),
        _route(service, "/v2", _v2_server),
        _route(service, "/v2/health/live", _v2_health, role=None),
        _route(service, "/v2/health/ready", _v2_health, role=None),
        _route(service, "/v2/models/{name}", _v2_model),
        _route(service, "/v2/models/{name}/ready", _v2_ready),
        _route(service, "/v2/models/{name}/infer", _v2_infer, method="POST"),
        *service.page.routes(_route),
    ]
    return Starlette(
        routes=routes, lifespan=service.lifespan, exception_handlers={HTTPException: _refused_by_starlette}
    )


class _Service:
    """What the requests of one service share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models = ModelStore(settings.models)
        self.keys = None if settings.keys is None else KeyFile(settings.keys)
        self.history = None if settings.history is None else History(settings.history, settings.keep_days)
        self.at_once = 0
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
        self.page = Page(self)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Look for changed model files while the application runs."""
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
                self.history.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            await anyio.to_thread.run_sync(self.page.sweep)
            for name, wrong in await anyio.to_thread.run_sync(self.models.refresh):
                if wrong is None:
                    _log.info("model %s: loaded again, its file has changed", name)
                else:
                    _log.error("model %s: the old one is kept; the new file cannot be used: %s", name, wrong)

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
                    chunks.append(chunk)
        except TimeoutError:
            raise RequestError(
                408, "slow", f"the body did not arrive within {self.settings.read_seconds:g} s"
            ) from None
        return b"".join(chunks)

    async def work(self, small: bool, task: Callable[[], Any]) -> Any:
        """Run a task: a small one at once, others on a thread and within the limit on time."""
        if small:
            return task()
        try:
            async with asyncio.timeout(self.settings.score_seconds):
                return await anyio.to_thread.run_sync(task, abandon_on_cancel=True)
        except TimeoutError:
            raise RequestError(
                503, "too_slow", f"scoring took more than {self.settings.score_seconds:g} s; send fewer rows"
            ) from None

    async def rows_of(self, body: bytes, kind: str, most_rows: int) -> Batch:
        """Read the rows of a body, a large one on a thread."""
        small, task = len(body) <= _INLINE_BYTES, partial(read_rows, body, kind, most_rows)
        batch: Batch = await self.work(small, task)
        return batch

    async def note(self, model: ServedModel, answers: Answers, request_id: str) -> None:
        """Count what was scored, and store it before it is answered."""
        alarms, n_rows = answers.alarms, len(answers.columns["p_value"])
        self.rows.labels(model.name).inc(n_rows)
        self.alarms.labels(model.name).inc(len(alarms))
        if self.history is None:
            return
        scored = Scored(model.name, model.card.sha256, request_id, n_rows, answers.alpha, alarms)
        try:
            # On a thread: another process may hold a lock.
            await anyio.to_thread.run_sync(self.history.add, scored)
        except Exception as error:
            _log.exception("the history cannot be written")
            raise RequestError(
                503, "history", f"the request was scored but could not be stored: {error}"
            ) from None


def _route(
    service: _Service, path: str, handler: Handler, *, method: str = "GET", role: str | None = "read"
) -> Route:
    async def answer(request: Request) -> Response:
        begun, given = time.perf_counter(), request.headers.get("x-request-id", "")
        request_id = given[:100] if given.isprintable() and given else uuid.uuid4().hex
        request.state.id = request_id
        try:
            if role is not None:
                _check_key(service, request, role)
            # Health is asked for just when there is much to do.
            if role is not None and service.at_once >= service.settings.most_at_once:
                raise RequestError(503, "busy", "too many requests at the same time; try again in a second")
            service.at_once += 1
            try:
                response = await handler(service, request)
            finally:
                service.at_once -= 1
        except RequestError as error:
            response = _refusal(error)
        except ClientDisconnect:
            response = _refusal(RequestError(400, "gone", "the client went away"))
        except Exception:
            _log.exception("request %s to %s failed", request_id, path)
            response = _refusal(
                RequestError(500, "internal", f"something went wrong here; see request {request_id}")
            )
        seconds = time.perf_counter() - begun
        response.headers["x-request-id"] = request_id
        service.requests.labels(path, str(response.status_code)).inc()
        service.seconds.labels(path).observe(seconds)
        _log.debug(
            "%s %s %s %.1f ms %s", request.method, path, response.status_code, 1e3 * seconds, request_id
        )
        return response

    return Route(path, answer, methods=[method])


def _check_key(service: _Service, request: Request, role: str) -> None:
    if service.keys is None:
        if role == "admin":
            raise RequestError(
                403, "no_keys", "this needs an admin key, and the service was started without keys"
            )
        return
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    key = service.keys.find(secret.strip()) if scheme.lower() == "bearer" else None
    if key is None:
        raise RequestError(401, "key", "send an API key: Authorization: Bearer KEY")
    if role == "admin" and key.role != "admin":
        raise RequestError(403, "role", f"key {key.name!r} may read, but this needs an admin key")


def _refusal(error: RequestError) -> Response:
    headers = {401: {"www-authenticate": "Bearer"}, 503: {"retry-after": "1"}}.get(error.status, {})
    body = {"error": {"code": error.code, "message": error.message}}
    return Response(msgspec.json.encode(body), error.status, headers, JSON)


async def _refused_by_starlette(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: "there is nothing at this address; GET /openapi.json lists what there is"}
    return _refusal(RequestError(error.status_code, "http", messages.get(error.status_code, error.detail)))


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value, enc_hook=_plain), media_type=JSON)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


async def _alive(service: _Service, request: Request) -> Response:
    return _json({"status": "ok"})


async def _openapi(service: _Service, request: Request) -> Response:
    return _json(document())


async def _metrics(service: _Service, request: Request) -> Response:
    return Response(generate_latest(service.registry), media_type=CONTENT_TYPE_LATEST)


async def _list(service: _Service, request: Request) -> Response:
    return _json({"models": [model.describe() for model in service.models], "version": __version__})


async def _describe(service: _Service, request: Request) -> Response:
    return _json(service.models.get(request.path_params["name"]).describe())


async def _score(service: _Service, request: Request) -> Response:
    model = service.models.get(request.path_params["name"])
    alpha, fdr = (rate_of(request.query_params.get(name), name) for name in ("alpha", "fdr"))
    if alpha is not None and fdr is not None:
        raise RequestError(422, "fdr", "give alpha or fdr, not both")
    kind = media_type(request.headers.get("content-type"), JSON)
    accept = media_type(request.headers.get("accept"), kind)
    batch = await service.rows_of(await service.body(request), kind, service.settings.most_rows)
    if isinstance(batch.columns, list) and batch.n_rows == 1:
        scored = await service.together.score(model, batch.columns[0])
        answers = decide(scored, model.detector.alpha if alpha is None else alpha, fdr)
    else:
        small = batch.n_rows <= _INLINE_ROWS
        answers = await service.work(small, lambda: score_rows(model, batch, alpha, fdr))
    await service.note(model, answers, request.state.id)
    summary = {
        "model": model.name,
        "alpha": answers.alpha if fdr is None else None,
        "fdr": fdr,
        "rows": batch.n_rows,
        "alarms": int(answers.columns["alarm"].sum()),
    }
    body = await service.work(batch.n_rows <= _MOST_LISTED, lambda: encode(answers.columns, summary, accept))
    return Response(body, media_type=accept)


async def _explain(service: _Service, request: Request) -> Response:
    model = service.models.get(request.path_params["name"])
    alpha = rate_of(request.query_params.get("alpha"), "alpha")
    kind = media_type(request.headers.get("content-type"), JSON)
    batch = await service.rows_of(await service.body(request), kind, _MOST_EXPLAINED)
    rows = await service.work(False, lambda: explain_rows(model, batch, alpha))
    return _json({"model": model.name, "rows": rows})


async def _history(service: _Service, request: Request) -> Response:
    model, history = service.models.get(request.path_params["name"]), service.history
    if history is None:
        raise RequestError(409, "no_history", "the service was started without a history")
    text = request.query_params.get("alarms", "100")
    if not text.isdecimal() or len(text) > 4 or int(text) > _MOST_LISTED:
        raise RequestError(
            422, "alarms", f"alarms must be a number up to {_MOST_LISTED:,}, got {text[:50]!r}"
        )
    summary = await anyio.to_thread.run_sync(history.summary, model.name)
    return _json(
        summary | {"latest_alarms": await anyio.to_thread.run_sync(history.latest, model.name, int(text))}
    )


async def _reload(service: _Service, request: Request) -> Response:
    name = service.models.get(request.path_params["name"]).name
    changes = dict(await anyio.to_thread.run_sync(lambda: service.models.refresh(again=True)))
    if changes.get(name):
        raise RequestError(409, "model_file", f"the old model is kept: {changes[name]}")
    return _json({"model": name, "changed": name in changes, "sha256": service.models.get(name).card.sha256})


async def _v2_server(service: _Service, request: Request) -> Response:
    return _json({"name": "rankad", "version": __version__, "extensions": []})


async def _v2_health(service: _Service, request: Request) -> Response:
    return _json({"live": True} if request.url.path.endswith("live") else {"ready": True})


async def _v2_model(service: _Service, request: Request) -> Response:
    return _json(inference.metadata(service.models.get(request.path_params["name"])))


async def _v2_ready(service: _Service, request: Request) -> Response:
    return _json({"name": service.models.get(request.path_params["name"]).name, "ready": True})


async def _v2_infer(service: _Service, request: Request) -> Response:
    model = service.models.get(request.path_params["name"])
    body = await service.body(request)
    asked = await service.work(
        len(body) <= _INLINE_BYTES, lambda: inference.read(body, model, service.settings.most_rows)
    )
    small = asked.batch.n_rows <= _INLINE_ROWS
    answers: Answers = await service.work(small, lambda: score_rows(model, asked.batch, asked.alpha, None))
    await service.note(model, answers, request.state.id)
    return _json(inference.write(model, asked, answers))
