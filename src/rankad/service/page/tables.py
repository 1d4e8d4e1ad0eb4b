"""Uploaded tables, and what their columns are understood as."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple

import msgspec
import polars as pl

from rankad._base.wording import isolated, printable, shown
from rankad.columns.inferred import ColumnOptions
from rankad.io.suffixes import SUFFIXES
from rankad.io.table_files import check_unpacked, held_bytes, open_table
from rankad.service.errors import RequestError
from rankad.service.page.settings import PageSettings
from rankad.service.page.workspace import Workspace, name_of, read_json, write_json
from rankad.tables.frames import Untyped
from rankad.tables.learning import learn_encoder

__all__ = ["Corrections", "Table", "bundle", "open_stored", "take", "understood"]

_LONGEST_NAME = 200
_SHOWN_CELLS = 3
_LOOKED_AT = 50
_MIN_COUNT = 5
_KNOWN = {suffix for suffixes in SUFFIXES.values() for suffix in suffixes.split()} | {".gz", ".zst"}


class Table(NamedTuple):
    """A stored table; `typed` tells whether columns have types, which those of CSV do not."""

    path: Path
    name: str
    frame: pl.DataFrame
    typed: bool

    @property
    def rows(self) -> pl.DataFrame | Untyped:
        """The rows to learn from."""
        return self.frame if self.typed else Untyped(self.frame)

    def describe(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        return {
            "id": self.path.name,
            "name": isolated(self.name),
            "rows": self.frame.height,
            "columns": self.frame.width,
            "names": self.frame.columns,
        }


class Corrections(msgspec.Struct, forbid_unknown_fields=True):
    """What the user says about columns: the parameters of `rankad.TableDetector`, by column."""

    kinds: dict[str, Literal["number", "category", "time", "id", "drop"]] = {}
    decimal: Literal[".", ","] | None = None
    day_first: bool | None = None
    missing: dict[str, list[str]] = {}
    missing_everywhere: list[str] = []

    def options(self) -> ColumnOptions:
        """Return them as the parameters."""

        def of(kind: str) -> tuple[str, ...]:
            return tuple(name for name, said in self.kinds.items() if said == kind)

        missing: dict[str | None, list[str]] = {name: marks for name, marks in self.missing.items() if marks}
        if self.missing_everywhere:
            missing[None] = self.missing_everywhere
        return ColumnOptions(
            of("number"),
            of("category"),
            of("time"),
            of("id"),
            of("drop"),
            self.decimal,
            self.day_first,
            missing or (),
        )


def take(workspace: Workspace, name: str, body: bytes, most_rows: int, settings: PageSettings) -> Table:
    """Store a table that was uploaded; its file name only says of which format it is."""
    if not body:
        raise RequestError(422, "table", "the file is empty")
    said = printable(PurePath(name.replace("\\", "/")).name)[:_LONGEST_NAME].strip() or "table"
    folder = workspace.make("table")
    suffixes = [each.lower() for each in PurePath(said).suffixes[-2:] if each.lower() in _KNOWN]
    upload = folder / f"upload{''.join(suffixes)}"
    with _whole(folder):
        upload.write_bytes(body)
        table = _store(folder, upload, said, most_rows, settings)
        upload.unlink()
    return table


def bundle(workspace: Workspace, path: Path, most_rows: int, settings: PageSettings) -> Path:
    """Keep a table that is offered to everybody, and return where."""
    name = name_of("table", str(path.resolve()), str(path.stat().st_mtime_ns))
    if workspace.has("table", name):
        return workspace.find("table", name)
    folder = workspace.make("table", name)
    workspace.keep(folder)
    with _whole(folder):
        return _store(folder, path, path.name, most_rows, settings).path


@contextmanager
def _whole(folder: Path) -> Iterator[None]:
    """Leave nothing of a table that could not be stored."""
    try:
        yield
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise RequestError(
                503, "storage", f"the page cannot store the table: {error.strerror or error}"
            ) from None
        raise


def _store(folder: Path, file: Path, name: str, most_rows: int, settings: PageSettings) -> Table:
    try:
        frame, typed = _read(file, most_rows, settings)
    except (ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        # The name under which it lies here is of no use to anybody.
        text = str(error).replace(str(file), shown(name)).splitlines()[0][:900]
        raise RequestError(422, "table", text) from None
    # Another process may be storing the same.
    part = folder / f"rows.{secrets.token_hex(4)}"
    frame.write_ipc(part)
    part.replace(folder / "rows.arrow")
    write_json(folder / "about.json", {"name": name, "typed": typed})
    return Table(folder, name, frame, typed)


def _read(file: Path, most_rows: int, settings: PageSettings) -> tuple[pl.DataFrame, bool]:
    frames, held, n_rows = [], 0, 0
    with open_table(file) as reader:
        if len(reader.columns) > settings.most_columns:
            raise RequestError(
                413,
                "too_many_columns",
                f"the table has {len(reader.columns):,} columns, and the page takes "
                f"{settings.most_columns:,}; use the command rankad for it",
            )
        for frame in reader:
            n_rows += frame.height
            if n_rows > most_rows or (reader.unit == "rows" and (reader.total or 0) > most_rows):
                raise RequestError(413, "too_many_rows", f"the table has more than {most_rows:,} rows")
            frames.append(frame)
            held += held_bytes(frame)
            check_unpacked(file, held)
            if held > settings.most_bytes:
                raise RequestError(413, "too_large", "the table takes more memory than the page may use")
        if not frames:
            raise RequestError(422, "table", "the table has column names but no rows")
        return pl.concat(frames, how="vertical_relaxed"), reader.typed


def open_stored(path: Path) -> Table:
    """Open a table again."""
    about = read_json(path / "about.json")
    return Table(path, about["name"], pl.read_ipc(path / "rows.arrow"), about["typed"])


def understood(table: Table, corrections: Corrections) -> dict[str, Any]:
    """Say of every column what it is understood as, and why."""
    unknown = [name for name in (*corrections.kinds, *corrections.missing) if name not in table.frame.columns]
    if unknown:
        raise RequestError(422, "columns", f"the table has no column {shown(unknown[0])!r}")
    try:
        learned = learn_encoder(table.rows, corrections.options(), min_count=_MIN_COUNT)
    except (ValueError, TypeError) as error:
        raise RequestError(422, "columns", _plainly(str(error))) from None
    encoder = learned.encoder
    used = {column.name: column.describe().removeprefix(f"{column.name}: ") for column in encoder.columns}
    notes = {note.name: note for note in encoder.notes}
    columns = []
    for series in table.frame:
        note, asked = notes.get(series.name), corrections.kinds.get(series.name)
        kind = asked or ("text" if note is None else note.kind)
        columns.append(
            {
                "name": series.name,
                "shown": shown(series.name),
                "kind": kind,
                "asked": asked,
                "used": isolated(used.get(series.name) or _UNUSED.get(kind, "not used")),
                "sure": "as you said" if asked else "" if note is None else note.sure,
                "doubt": "" if note is None or asked else _doubt(series.name, note.doubt),
                "cells": _cells(series),
            }
        )
    return {"columns": columns, "notes": [_plainly(warning) for warning in learned.warnings]}


_UNUSED = {
    "id": "names rows; not learned from",
    "drop": "left out",
    "text": "free text; not learned from",
    "empty": "always empty",
}


def _cells(series: pl.Series) -> list[str]:
    """Return the first few different cells."""
    seen = dict.fromkeys(shown(cell) for cell in series.head(_LOOKED_AT).to_list())
    return list(seen)[:_SHOWN_CELLS]


def _doubt(name: str, text: str) -> str:
    """Leave out what stands beside it on the page."""
    told = _plainly(text).removeprefix(f"column {name!r} is ")
    return told[:1].upper() + told[1:]


def _plainly(text: str) -> str:
    """Leave out sentences about options of the command; the page has controls in their place."""
    sentences = re.split(r"(?<=[.?])\s+(?=[A-Z])", text)
    return isolated(" ".join(each for each in sentences if "--" not in each)) or text
