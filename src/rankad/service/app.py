"""The HTTP application: routes, limits, keys, metrics."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import msgspec
import numpy as np
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from rankad import __version__
from rankad.alarms.chance import chance_of
from rankad.service import inference
from rankad.service.drift import describe_drift
from rankad.service.errors import RequestError
from rankad.service.formats import JSON, encode, media_type
from rankad.service.history import History
from rankad.service.models import ServedModel
from rankad.service.openapi import document
from rankad.service.scoring import Answers, check_named, decide, explain_rows, rate_of, score_rows
from rankad.service.settings import Settings, is_loopback
from rankad.service.state import INLINE_BYTES, INLINE_ROWS, Service

_log = logging.getLogger("rankad.service")
_MOST_LISTED = 1_000
_MOST_EXPLAINED = 1_000
# If all rows are normal, the number of alarms is within the usual range with this probability.
_USUAL = 0.99

# A client that was too slow gets another connection for its next try.
_HEADERS = {401: {"www-authenticate": "Bearer"}, 408: {"connection": "close"}, 503: {"retry-after": "1"}}

# Where binary tensors follow the JSON of the Open Inference Protocol.
_JSON_LENGTH = "inference-header-content-length"

Handler = Callable[[Service, Request], Awaitable[Response]]


def make_app(settings: Settings) -> Starlette:
    """Return the ASGI application of a service; its models are loaded here, so that a bad one stops it."""
    service = Service(settings)
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
        *(
            route
            for model in ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
            for route in (
                _route(service, model, _v2_model),
                _route(service, f"{model}/ready", _v2_ready),
                _route(service, f"{model}/infer", _v2_infer, method="POST"),
            )
        ),
        *service.page.routes(_route),
    ]
    app = Starlette(
        routes=routes, lifespan=service.lifespan, exception_handlers={HTTPException: _refused_by_starlette}
    )
    app.state.service = service
    return app


def _route(
    service: Service, path: str, handler: Handler, *, method: str = "GET", role: str | None = "read"
) -> Route:
    async def answer(request: Request) -> Response:
        started, given = time.perf_counter(), request.headers.get("x-request-id", "")
        request_id = given[:100] if given.isprintable() and given else uuid.uuid4().hex
        request.state.id = request_id
        try:
            _check_host(service, request)
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
                service.release(request)
        except RequestError as error:
            response = _refusal(error, path)
        except ClientDisconnect:
            response = _refusal(RequestError(400, "gone", "the client went away"), path)
        except Exception:
            _log.exception("request %s to %s failed", request_id, path)
            response = _refusal(
                RequestError(500, "internal", f"something went wrong here; see request {request_id}"), path
            )
        seconds = time.perf_counter() - started
        response.headers["x-request-id"] = request_id
        # Nothing of it is kept on the way, nor taken for something else.
        response.headers.setdefault("cache-control", "no-store")
        response.headers.setdefault("x-content-type-options", "nosniff")
        service.requests.labels(path, str(response.status_code)).inc()
        service.seconds.labels(path).observe(seconds)
        if _log.isEnabledFor(logging.DEBUG):
            fields = {
                "request": request_id,
                "method": request.method,
                "path": quote(request.scope["path"]),
                "status": response.status_code,
                "ms": round(1e3 * seconds, 1),
            }
            _log.debug("%s", " ".join(map(str, fields.values())), extra={"fields": fields})
        return response

    return Route(path, answer, methods=[method])


def _check_host(service: Service, request: Request) -> None:
    """Refuse names other than this machine's own if there are no keys.

    A hostile site can let its name point to 127.0.0.1, and a browser then takes the service for a part of it.
    """
    try:
        name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError:
        name = ""
    if service.keys is None and not is_loopback(name):
        raise RequestError(
            403, "host", "without keys the service answers to this machine's own names alone: 127.0.0.1:PORT"
        )


def _check_key(service: Service, request: Request, role: str) -> None:
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


def _check_query(request: Request, *known: str) -> None:
    """Refuse parameters that would be ignored: a name mistyped is a rate not asked for."""
    given = [name for name, _ in request.query_params.multi_items()]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise RequestError(
            422,
            "unknown_parameter",
            f"there is no parameter {unknown[0][:100]!r} in this address; "
            f"there are: {', '.join(known) or 'none'}",
        )
    twice = [name for name in known if given.count(name) > 1]
    if twice:
        raise RequestError(422, twice[0], f"{twice[0]} is given {given.count(twice[0])} times; give it once")


def _refusal(error: RequestError, path: str) -> Response:
    headers = _HEADERS.get(error.status, {})
    told: Any = {"code": error.code, "message": error.message}
    # The Open Inference Protocol has errors that are a text.
    body = {"error": error.message if path.startswith("/v2") else told}
    return Response(msgspec.json.encode(body), error.status, headers, JSON)


async def _refused_by_starlette(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: "there is nothing at this address; GET /openapi.json lists what there is"}
    refused = RequestError(error.status_code, "http", messages.get(error.status_code, error.detail))
    refusal = _refusal(refused, request.scope["path"])
    # Allow, for another method.
    refusal.headers.update(error.headers or {})
    return refusal


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value, enc_hook=_plain), media_type=JSON)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


async def _alive(service: Service, request: Request) -> Response:
    return _json({"status": "ok"})


async def _openapi(service: Service, request: Request) -> Response:
    return _json(document([model.name for model in service.models], keys=service.keys is not None))


async def _metrics(service: Service, request: Request) -> Response:
    return Response(service.metrics(), media_type=CONTENT_TYPE_LATEST)


async def _list(service: Service, request: Request) -> Response:
    return _json({"models": [model.describe() for model in service.models], "version": __version__})


async def _describe(service: Service, request: Request) -> Response:
    return _json(service.models.get(request.path_params["name"]).describe())


async def _score(service: Service, request: Request) -> Response:
    model = service.models.get(request.path_params["name"])
    _check_query(request, "alpha", "fdr")
    alpha, fdr = (rate_of(request.query_params.get(name), name) for name in ("alpha", "fdr"))
    if alpha is not None and fdr is not None:
        raise RequestError(422, "fdr", "give alpha or fdr, not both")
    kind = media_type(request.headers.get("content-type"), JSON)
    accept = media_type(request.headers.get("accept"), kind)
    batch = await service.rows_of(await service.body(request), kind, service.settings.most_rows)
    check_named(model, batch)
    if batch.n_rows == 1 and isinstance(batch.columns, (list, np.ndarray)):
        row = batch.columns[0] if isinstance(batch.columns, list) else batch.columns
        scored = await service.together.score(model, row)
        answers = decide(scored, model.detector.alpha if alpha is None else alpha, fdr)
    else:
        small = batch.n_rows <= INLINE_ROWS
        answers = await service.work(small, lambda: score_rows(model, batch, alpha, fdr))
    await service.note(model, answers, request.state.id, fdr)
    summary = {
        "model": model.name,
        "alpha": answers.alpha if fdr is None else None,
        "fdr": fdr,
        "rows": batch.n_rows,
        "alarms": int(answers.columns["alarm"].sum()),
    }
    body = await service.work(batch.n_rows <= _MOST_LISTED, lambda: encode(answers.columns, summary, accept))
    return Response(body, media_type=accept)


async def _explain(service: Service, request: Request) -> Response:
    model = service.models.get(request.path_params["name"])
    _check_query(request, "alpha")
    alpha = rate_of(request.query_params.get("alpha"), "alpha")
    kind = media_type(request.headers.get("content-type"), JSON)
    batch = await service.rows_of(await service.body(request), kind, _MOST_EXPLAINED)
    check_named(model, batch)
    rows = await service.work(False, lambda: explain_rows(model, batch, alpha))
    return _json({"model": model.name, "rows": rows})


async def _history(service: Service, request: Request) -> Response:
    model, history = service.models.get(request.path_params["name"]), service.history
    if history is None:
        raise RequestError(409, "no_history", "the service was started without a history")
    _check_query(request, "alarms")
    text = request.query_params.get("alarms", "100")
    if not text.isdecimal() or len(text) > 4 or int(text) > _MOST_LISTED:
        raise RequestError(
            422, "alarms", f"alarms must be a number up to {_MOST_LISTED:,}, got {text[:50]!r}"
        )
    try:
        return _json(await anyio.to_thread.run_sync(_told, history, model, int(text)))
    except Exception as error:
        _log.exception("the history cannot be read")
        raise RequestError(503, "history", f"the history cannot be read: {str(error).strip()}") from None


def _told(history: History, model: ServedModel, most: int) -> dict[str, Any]:
    """Return what the history has of a model, and what was promised."""
    chance, promise = chance_of(model.detector), []
    for alpha, rows, alarms in history.by_rate(model.name, model.card.sha256):
        span = chance.span(rows, alpha, _USUAL)
        promise.append(
            {
                "alpha": alpha,
                "rows": rows,
                "alarms": alarms,
                "rate": alarms / rows if rows else None,
                "usual_low": span.low,
                "usual_high": span.high,
            }
        )
    return {
        **history.summary(model.name),
        "promise": promise,
        "drift": describe_drift(history, model),
        "over_time": history.over_time(model.name),
        "latest_alarms": history.latest(model.name, most),
    }


async def _reload(service: Service, request: Request) -> Response:
    name = service.models.get(request.path_params["name"]).name
    changes = dict(await anyio.to_thread.run_sync(lambda: service.models.refresh(again=True)))
    if changes.get(name):
        raise RequestError(409, "model_file", f"the old model is kept: {changes[name]}")
    return _json({"model": name, "changed": name in changes, "sha256": service.models.get(name).card.sha256})


async def _v2_server(service: Service, request: Request) -> Response:
    return _json({"name": "rankad", "version": __version__, "extensions": ["binary_tensor_data"]})


async def _v2_health(service: Service, request: Request) -> Response:
    return _json({"live": True} if request.url.path.endswith("live") else {"ready": True})


def _v2_served(service: Service, request: Request) -> ServedModel:
    """Return the model of an address, which may name its version too: only the newest is served."""
    model = service.models.get(request.path_params["name"])
    version = request.path_params.get("version")
    if version not in (None, inference.version_of(model)):
        raise RequestError(
            404,
            "unknown_version",
            f"model {model.name!r} has no version {version[:100]!r}; there is {inference.version_of(model)}",
        )
    return model


async def _v2_model(service: Service, request: Request) -> Response:
    return _json(inference.metadata(_v2_served(service, request)))


async def _v2_ready(service: Service, request: Request) -> Response:
    return _json({"name": _v2_served(service, request).name, "ready": True})


async def _v2_infer(service: Service, request: Request) -> Response:
    model = _v2_served(service, request)
    _check_query(request)
    length = request.headers.get(_JSON_LENGTH)
    if length is not None and not (length.isdecimal() and len(length) < 20):
        raise RequestError(400, "not_inference", f"{_JSON_LENGTH} must be a number, got {length[:50]!r}")
    body, n_json = await service.body(request), None if length is None else int(length)
    asked = await service.work(
        len(body) <= INLINE_BYTES, lambda: inference.read(body, model, service.settings.most_rows, n_json)
    )
    check_named(model, asked.batch)
    small = asked.batch.n_rows <= INLINE_ROWS
    answers: Answers = await service.work(
        small, lambda: score_rows(model, asked.batch, asked.alpha, asked.fdr)
    )
    await service.note(model, answers, request.state.id, asked.fdr)
    told, binary = inference.write(model, asked, answers)
    if not binary:
        return _json(told)
    text = msgspec.json.encode(told)
    return Response(
        text + binary, headers={_JSON_LENGTH: str(len(text))}, media_type="application/octet-stream"
    )
