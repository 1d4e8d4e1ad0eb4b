"""The addresses of the page: its files, and what its script asks for."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import anyio
import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rankad import __version__
from rankad.service.errors import RequestError
from rankad.service.formats import Batch
from rankad.service.models import ModelStore, ServedModel
from rankad.service.page import answers as answering
from rankad.service.page import pictures, tables
from rankad.service.page.answers import Answers, Order
from rankad.service.page.fits import FitRequest, Fits
from rankad.service.page.responses import (
    Answer,
    alpha_of,
    as_download,
    as_json,
    decoded,
    guarded,
    page_files,
    stored,
    whole,
    with_headers,
)
from rankad.service.page.tables import Table
from rankad.service.page.understanding import Corrections, understood
from rankad.service.page.workspace import Workspace, name_of, read_json
from rankad.service.scoring import score_rows
from rankad.service.settings import Settings

_log = logging.getLogger("rankad.service")
_MOST_ROWS_ASKED = 20


class Host(Protocol):
    """What the page needs of the service that it is a part of."""

    settings: Settings
    models: ModelStore
    keys: Any
    history: Any

    async def body(self, request: Request) -> bytes:
        """Return the body of a request, within the limits."""

    async def work(self, small: bool, task: Callable[[], Any]) -> Any:
        """Run a task on a thread, within the limit on time."""

    async def note(self, model: ServedModel, answers: Any, request_id: str) -> None:
        """Store what was scored."""


class Page:
    """The page of a service.

    Parameters
    ----------
    host : Host
    """

    def __init__(self, host: Host) -> None:
        self._host, self._settings = host, host.settings.page
        self._files = page_files()
        if not self._settings.shown:
            return
        kept = self._settings
        for path in kept.tables:
            if not path.is_file():
                raise ValueError(f"there is no table {path}.")
        self._workspace = Workspace(kept.folder, kept.keep_seconds, kept.most_bytes)
        self._fits = Fits(self._workspace, kept.fit_seconds)
        self._bundled: list[dict[str, Any]] = []
        self._scoring = asyncio.Lock()

    def open(self) -> None:
        """Read the tables that are offered; once in each process, after forking, since it uses polars."""
        if not self._settings.shown:
            return
        for path in self._settings.tables:
            try:
                folder = tables.bundle(self._workspace, path, self._host.settings.most_rows, self._settings)
            except RequestError as error:
                _log.error("table %s is not offered: %s", path, error.message)
            else:
                self._bundled.append(tables.open_stored(folder).describe())

    def routes(self, route: Callable[..., Route]) -> list[Route]:
        """Return the routes, each made by `route` of the service, which checks keys and counts requests."""
        if not self._settings.shown:
            return []
        # Without keys everybody who reaches the service is its owner.
        owner = "admin" if self._host.keys is not None else "read"
        made = [
            route(self._host, "/", with_headers(self._file), role=None),
            route(self._host, "/page/files/{name}", with_headers(self._file), role=None),
        ]
        asked: list[tuple[str, Answer, str]] = [
            ("/page/start", self._start, "read"),
            ("/page/fits/{id}", self._fit_state, "read"),
            ("/page/fits/{id}/model", self._fit_model, owner),
            ("/page/answers/{id}", self._about, "read"),
            ("/page/answers/{id}/p-values", self._p_values, "read"),
            ("/page/answers/{id}/alarms", self._alarms, "read"),
            ("/page/answers/{id}/alarms.csv", stored(self._csv), "read"),
            ("/page/answers/{id}/reasons", self._reasons, "read"),
            ("/page/answers/{id}/places", self._places, "read"),
            ("/page/answers/{id}/region", self._region, "read"),
        ]
        changing: list[tuple[str, Answer, str]] = [
            ("/page/tables", self._upload, "read"),
            ("/page/tables/{id}/columns", self._columns, "read"),
            ("/page/answers", self._score, "read"),
            ("/page/fits", self._fit, owner),
            ("/page/fits/{id}/cancel", self._cancel, owner),
        ]
        made += [route(self._host, path, with_headers(what), role=role) for path, what, role in asked]
        for path, what, role in changing:
            made.append(
                route(self._host, path, guarded(with_headers(stored(what))), method="POST", role=role)
            )
        return made

    def sweep(self) -> None:
        """Drop what is old; called every second or so."""
        if self._settings.shown:
            try:
                self._fits.sweep()
                self._workspace.sweep()
            except OSError:
                _log.exception("the page cannot drop what is old")

    def close(self) -> None:
        """Stop a fit, and drop everything."""
        if self._settings.shown:
            self._fits.close()
            self._workspace.close()

    async def _file(self, _: Host, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._files:
            raise RequestError(404, "http", "the page has no such file")
        content, kind = self._files[name]
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    async def _start(self, host: Host, request: Request) -> Response:
        settings = host.settings
        limits = {
            "bytes": settings.most_bytes,
            "rows": settings.most_rows,
            "columns": self._settings.most_columns,
        }
        return as_json(
            {
                "version": __version__,
                "models": [model.describe() for model in host.models],
                "tables": self._bundled,
                "limits": limits,
                "history": host.history is not None,
            }
        )

    async def _upload(self, host: Host, request: Request) -> Response:
        name = request.query_params.get("name", "table")
        body = await host.body(request)
        most = host.settings.most_rows
        table = await host.work(
            False, partial(tables.take, self._workspace, name, body, most, self._settings)
        )
        return as_json(table.describe())

    async def _columns(self, host: Host, request: Request) -> Response:
        corrections = decoded(await host.body(request), Corrections)
        table = tables.open_stored(self._workspace.find("table", request.path_params["id"]))
        return as_json(await host.work(False, partial(understood, table, corrections)))

    async def _fit(self, host: Host, request: Request) -> Response:
        asked = decoded(await host.body(request), FitRequest)
        return as_json(await anyio.to_thread.run_sync(self._fits.start, asked))

    async def _fit_state(self, host: Host, request: Request) -> Response:
        return as_json(await anyio.to_thread.run_sync(self._fits.state, request.path_params["id"]))

    async def _cancel(self, host: Host, request: Request) -> Response:
        name = request.path_params["id"]
        await anyio.to_thread.run_sync(self._fits.cancel, name)
        return as_json(await anyio.to_thread.run_sync(self._fits.state, name))

    async def _fit_model(self, host: Host, request: Request) -> Response:
        model = await anyio.to_thread.run_sync(self._fits.model, request.path_params["id"])
        about = read_json(model.path.parent / "about.json")
        name = answering.name_for(about["name"], ".rankad")
        return as_download(
            await anyio.to_thread.run_sync(model.path.read_bytes), name, "application/octet-stream"
        )

    async def _score(self, host: Host, request: Request) -> Response:
        asked = decoded(await host.body(request), _ScoreRequest)
        table = tables.open_stored(self._workspace.find("table", asked.table))
        if (asked.model is None) == (asked.fit is None):
            raise RequestError(422, "model", "name a served model, or a fit")
        model = self._fits.model(asked.fit) if asked.fit is not None else host.models.get(asked.model or "")
        name = name_of("answers", asked.table, asked.fit or asked.model or "", model.card.sha256)
        # Two who score the same table at the same time have it scored, and kept in the history, once.
        async with self._scoring:
            await self._score_once(host, request, asked, table, model, name)
        return as_json(await host.work(False, lambda: self._answers(name).describe()))

    async def _score_once(
        self, host: Host, request: Request, asked: _ScoreRequest, table: Table, model: ServedModel, name: str
    ) -> None:
        if not self._workspace.has("answers", name):
            own = model.path.parent / "p_values.npy"
            about = {"table": asked.table, "fit": asked.fit, "model": asked.model, "own": False}
            about["sha256"] = model.card.sha256
            if (
                asked.fit is not None
                and read_json(own.parent / "about.json")["table"] == asked.table
                and own.exists()
            ):
                p_values = np.load(own)
                # There are no scores, so the p-value serves as score as well.
                answering.write(
                    self._workspace.make("answers", name), about | {"own": True}, p_values, p_values
                )
            else:
                batch = Batch(table.frame, table.frame.height)
                scored = await host.work(False, partial(score_rows, model, batch, None, None))
                # Where it is kept comes first: a full disk must not leave a row in the history twice.
                folder = self._workspace.make("answers", name)
                if asked.model is not None:
                    await host.note(model, scored, request.state.id)
                p_values, scores = scored.columns["p_value"], scored.columns["score"]
                answering.write(folder, about, p_values, scores)

    def _answers(self, name: str) -> Answers:
        folder = self._workspace.find("answers", name)
        about = read_json(folder / "about.json")
        table = tables.open_stored(self._workspace.find("table", about["table"]))
        fit = about["fit"]
        model = self._fits.model(fit) if fit is not None else self._host.models.get(about["model"])
        if model.card.sha256 != about["sha256"]:
            raise RequestError(409, "replaced", "the model has been replaced since; score the table again")
        return Answers(folder, table, model)

    async def _with(self, request: Request, task: Callable[[Answers], Any]) -> Any:
        name = request.path_params["id"]
        return await self._host.work(False, lambda: task(self._answers(name)))

    async def _about(self, host: Host, request: Request) -> Response:
        return as_json(await self._with(request, Answers.describe))

    async def _p_values(self, host: Host, request: Request) -> Response:
        body = await self._with(request, lambda answers: np.asarray(answers.p_values, "<f8").tobytes())
        return Response(body, media_type="application/octet-stream")

    async def _alarms(self, host: Host, request: Request) -> Response:
        alpha, asked = alpha_of(request), request.query_params
        order = Order(asked.get("by"), asked.get("down") == "1", whole(asked.get("begin", "0"), "begin"))
        return as_json(await self._with(request, lambda answers: answers.listed(alpha, order)))

    async def _reasons(self, host: Host, request: Request) -> Response:
        alpha, text = alpha_of(request), request.query_params.get("rows", "")
        rows = [whole(each, "rows") for each in text.split(",", _MOST_ROWS_ASKED) if each]
        return as_json({"rows": await self._with(request, lambda answers: answers.reasons(rows, alpha))})

    async def _csv(self, host: Host, request: Request) -> Response:
        alpha = alpha_of(request)

        def write(answers: Answers) -> tuple[bytes, str]:
            path = answers.folder / f"alarms-{secrets.token_hex(8)}.csv"
            answers.write_csv(path, alpha)
            return answering.removed(path), answering.name_for(answers.table.name, "-alarms.csv")

        body, name = await self._with(request, write)
        return as_download(body, name, "text/csv; charset=utf-8")

    async def _places(self, host: Host, request: Request) -> Response:
        x, y = request.query_params.get("x"), request.query_params.get("y")
        return as_json(await self._with(request, lambda answers: pictures.places(answers, x, y)))

    async def _region(self, host: Host, request: Request) -> Response:
        asked = request.query_params
        try:
            window = pictures.Window(*(float(asked[name]) for name in pictures.Window._fields))
            x, y, row = asked["x"], asked["y"], int(asked["row"])
        except (KeyError, ValueError):
            raise RequestError(422, "window", "x, y, row and a window of four numbers are needed") from None
        return as_json(await self._with(request, lambda answers: pictures.region(answers, x, y, row, window)))


class _ScoreRequest(msgspec.Struct, forbid_unknown_fields=True):
    table: str
    model: str | None = None
    fit: str | None = None
