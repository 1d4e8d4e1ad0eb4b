"""Requests of the page's script read and checked, and responses to them."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rankad.service.errors import RequestError
from rankad.service.page.guard import HEADERS, check_same_origin
from rankad.service.scoring import rate_of

_TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript"}
_JSON = "application/json"
_log = logging.getLogger("rankad.service")

Answer = Callable[[Any, Request], Awaitable[Response]]


def page_files() -> dict[str, tuple[bytes, str]]:
    """Return the files of the page by name; it has the report's style."""
    found = {
        each.name: (each.read_bytes(), _TYPES[each.name[each.name.rindex(".") :]])
        for each in (files("rankad.service.page") / "files").iterdir()
        if each.name.endswith(tuple(_TYPES))
    }
    return found | {"house.css": ((files("rankad.report") / "style.css").read_bytes(), "text/css")}


def with_headers(answer: Answer) -> Answer:
    """Return what answers with the headers of the page."""

    async def answered(host: Any, request: Request) -> Response:
        response = await answer(host, request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return answered


def stored(answer: Answer) -> Answer:
    """Return what answers 503 with the reason where the disk is full or a file cannot be written."""

    async def tried(host: Any, request: Request) -> Response:
        try:
            return await answer(host, request)
        except OSError as error:
            _log.error("request %s: the page cannot store what it needs: %s", request.state.id, error)
            raise RequestError(
                503, "storage", f"the page cannot store what it needs: {error.strerror or error}"
            ) from None

    return tried


def guarded(answer: Answer) -> Answer:
    """Return what answers to the page alone, since it changes something."""

    async def checked(host: Any, request: Request) -> Response:
        check_same_origin(request.headers)
        return await answer(host, request)

    return checked


def decoded(body: bytes, kind: type[Any]) -> Any:
    """Return a body of JSON as what it must be."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(400, "not_json", f"the body is not what the page sends: {error}") from None


def alpha_of(request: Request) -> float:
    """Return the false-alarm rate that is asked for."""
    alpha = rate_of(request.query_params.get("alpha"), "alpha")
    if alpha is None:
        raise RequestError(422, "alpha", "alpha is needed, a number strictly between 0 and 1")
    return alpha


def whole(text: str, name: str) -> int:
    """Return a number from a query."""
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise RequestError(422, name, f"{name} must be whole numbers, got {text[:50]!r}")
    return int(text)


def as_json(value: Any) -> Response:
    """Return a response of JSON."""
    return Response(msgspec.json.encode(value, enc_hook=_plain), media_type=_JSON)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def as_download(body: bytes, name: str, kind: str) -> Response:
    """Return a response that browsers store under a name."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(body, media_type=kind, headers=headers)
