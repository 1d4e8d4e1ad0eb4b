"""Tables that were uploaded or are offered: checked, and stored for a while."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import polars as pl

from rankad._base.wording import isolated, printable, shown
from rankad.io.suffixes import SUFFIXES
from rankad.io.table_files import check_unpacked, held_bytes, open_table
from rankad.service.errors import RequestError
from rankad.service.page.settings import PageSettings
from rankad.service.page.wording import without_options
from rankad.service.page.workspace import Workspace, name_of, read_json, write_json
from rankad.tables.frames import Untyped

_LONGEST_NAME = 200
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
        raise RequestError(422, "table", without_options(text)) from None
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
