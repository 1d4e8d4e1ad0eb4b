"""Bodies of requests to columns, and answers to bodies of responses."""

from __future__ import annotations

import csv
import io
import re
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from rankad.io.delimited import without_blank_lines
from rankad.io.forks import check_polars
from rankad.service.arrow_sizes import shared_bytes, unpacked_bytes
from rankad.service.errors import RequestError
from rankad.service.mixed import Part, parts_of

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
_KNOWN = (JSON, NDJSON, CSV, ARROW)

_ALIASES = {
    "application/x-json": JSON,
    "text/json": JSON,
    "application/jsonl": NDJSON,
    "application/jsonlines": NDJSON,
    "application/ndjson": NDJSON,
}
_json = msgspec.json.Decoder()
# A table of more columns takes seconds to make, whatever its rows.
MOST_COLUMNS = 10_000
# One that is never closed goes on to the end.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)
# Lists and objects of a body that are no rows: shapes, parameters, outputs.
_OTHER_BRACKETS = 100_000


class Batch(NamedTuple):
    """Rows of a request, as `rankad.score_batch` takes them, and their number.

    Where a column mixes numbers and text there are also `parts`, to be scored one by one.
    """

    columns: Any
    n_rows: int
    parts: list[Part] | None = None


def media_type(header: str | None, default: str) -> str:
    """Return the media type of a Content-Type or Accept header, or raise if it is not supported."""
    asked = [part.split(";")[0].strip().lower() for part in (header or default).split(",")]
    for value in asked:
        if value in ("*/*", "application/*", ""):
            return default
        if _ALIASES.get(value, value) in _KNOWN:
            return _ALIASES.get(value, value)
    raise RequestError(415, "media_type", f"{asked[0][:100]!r} is not known; use one of {', '.join(_KNOWN)}")


def read_rows(
    body: bytes, kind: str, most_rows: int, most_bytes: int, most_columns: int = MOST_COLUMNS
) -> Batch:
    """Return the rows of a body, or raise a `RequestError` that says what is wrong with it.

    JSON is a list of rows, ``{"rows": [...]}`` or ``{"columns": {...}}``. A row is an object, or a list of
    numbers for a model without column names. Compressed buffers of Arrow may unpack to `most_bytes`, and
    cells that share a text, as in a dictionary, may stand for as many.
    """
    if kind in (JSON, NDJSON):
        check_json_size(body, most_rows)
    readers = {JSON: _from_json, NDJSON: _from_ndjson, CSV: _from_csv}
    if kind == ARROW:
        batch = _from_arrow(body, most_bytes, most_columns)
    else:
        batch = readers[kind](body, most_columns)
    if batch.n_rows > most_rows:
        raise RequestError(
            413, "too_many_rows", f"{batch.n_rows:,} rows in one request; send at most {most_rows:,}"
        )
    return batch


def check_json_size(body: bytes, most_rows: int) -> None:
    """Refuse JSON of more lists and objects than rows are allowed, before each of them takes memory."""
    most = most_rows + _OTHER_BRACKETS
    if body.count(b"[") + body.count(b"{") > most:
        # Brackets in texts do not count.
        bare = _STRING.sub(b"", body)
        if bare.count(b"[") + bare.count(b"{") > most:
            raise RequestError(
                413,
                "too_many_rows",
                f"more than {most_rows:,} rows in one request; send at most {most_rows:,}",
            )


def _check_columns(n_columns: int, most: int) -> None:
    if n_columns > most:
        raise RequestError(413, "too_many_columns", f"{n_columns:,} columns; send at most {most:,}")


def _from_json(body: bytes, most_columns: int) -> Batch:
    try:
        value = _json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(400, "not_json", f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        return _of_rows(value, most_columns)
    unknown = sorted(value.keys() - {"rows", "columns"})
    if unknown:
        raise RequestError(
            422,
            "unknown_field",
            f"{unknown[0][:100]!r} means nothing in the body, "
            'which is a list of rows, {"rows": [...]} or {"columns": {...}}; alpha and fdr belong in the '
            "address, as ?alpha=0.01",
        )
    if len(value) > 1:
        raise RequestError(422, "rows", "give rows or columns, not both")
    return (
        _of_columns(value["columns"], most_columns)
        if isinstance(value.get("columns"), dict)
        else _of_rows(value.get("rows"), most_columns)
    )


def _from_ndjson(body: bytes, most_columns: int) -> Batch:
    try:
        rows = [_json.decode(line) for line in body.splitlines() if line.strip()]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(400, "not_json", f"a line of the body is not JSON: {error}") from None
    return _of_rows(rows, most_columns)


def _of_rows(rows: Any, most_columns: int) -> Batch:
    if not isinstance(rows, list):
        raise RequestError(
            400, "no_rows", 'the body must be a list of rows, {"rows": [...]} or {"columns": {...}}'
        )
    if all(isinstance(row, dict) for row in rows):
        _check_columns(len(rows[0]) if rows else 0, most_columns)
        for at, row in enumerate(rows):
            if row.keys() != rows[0].keys():
                odd = sorted(row.keys() ^ rows[0].keys())[0]
                raise RequestError(
                    422, "columns", f"rows 0 and {at} do not both have {odd[:100]!r}; null is a missing value"
                )
            nested = [name for name, cell in row.items() if isinstance(cell, (list, dict))]
            if nested:
                raise RequestError(
                    422,
                    "nested",
                    f"row {at}: {nested[0][:100]!r} is not a single value but a list or an object",
                )
        parts = parts_of({name: [row[name] for row in rows] for name in rows[0]}) if len(rows) > 1 else None
        return Batch(rows, len(rows), parts)
    if all(isinstance(row, list) for row in rows):
        return Batch(_numbers(rows), len(rows))
    raise RequestError(400, "no_rows", "rows must be all objects or all lists of numbers")


def _numbers(rows: list[list[Any]]) -> Any:
    if len({len(row) for row in rows}) > 1:
        raise RequestError(422, "ragged", "rows have different numbers of cells")
    try:
        return np.array(
            [[float("nan") if cell is None else cell for cell in row] for row in rows], dtype=float
        )
    except (ValueError, TypeError, OverflowError):
        raise RequestError(422, "not_numbers", "rows that are lists must hold numbers alone") from None


def _of_columns(columns: Mapping[str, Any], most_columns: int) -> Batch:
    _check_columns(len(columns), most_columns)
    lengths = {len(cells) if isinstance(cells, list) else -1 for cells in columns.values()}
    if len(lengths) != 1 or -1 in lengths:
        raise RequestError(422, "ragged", "columns must be lists of the same length")
    for name, cells in columns.items():
        if any(isinstance(cell, (list, dict)) for cell in cells):
            raise RequestError(422, "nested", f"column {name[:100]!r} holds lists or objects")
    return Batch(dict(columns), lengths.pop(), parts_of(columns))


def _from_csv(body: bytes, most_columns: int) -> Batch:
    try:
        body = body.lstrip(b"\r\n")
        first = body.split(b"\n", 1)[0]
        # A name in quotes may have any of these in it.
        bare = re.sub(rb'"[^"]*"', b"", first)
        separator = max((";", "\t", ","), key=lambda mark: (bare.count(mark.encode()), mark == ","))
        names = next(csv.reader([first.decode("utf-8-sig")], delimiter=separator), [])
        _check_columns(len(names), most_columns)
        twice = [name for name, n in Counter(names).items() if n > 1]
        if twice:
            raise RequestError(422, "columns", f"two columns are called {twice[0][:100]!r}")
        check_polars()
        if len(names) > 1:
            # As the command reads it; in a table of one column a blank line is a missing value.
            body = without_blank_lines(body)
        frame = pl.read_csv(io.BytesIO(body), infer_schema=False, separator=separator)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, UnicodeDecodeError, csv.Error) as error:
        raise RequestError(
            400, "not_csv", f"the body is not CSV: {str(error).splitlines()[0][:300]}"
        ) from None
    return Batch(frame, frame.height)


def _from_arrow(body: bytes, most_bytes: int, most_columns: int) -> Batch:
    import pyarrow as pa

    try:
        unpacked = unpacked_bytes(body)
        if unpacked > most_bytes:
            raise RequestError(
                413,
                "too_large",
                f"the compressed buffers of the Arrow stream unpack to {unpacked:,} bytes; send at most "
                f"{most_bytes:,}",
            )
        with pa.ipc.open_stream(body) as stream:
            _check_columns(len(stream.schema), most_columns)
            table = stream.read_all()
            table.validate(full=True)
        shared = shared_bytes(table)
        if shared > most_bytes:
            raise RequestError(
                413,
                "too_large",
                f"the dictionaries, views and runs of the Arrow stream stand for {shared:,} bytes; send at "
                f"most {most_bytes:,}",
            )
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError) as error:
        raise RequestError(
            400, "not_arrow", f"the body is not an Arrow IPC stream: {str(error).splitlines()[0][:300]}"
        ) from None
    return Batch(table, table.num_rows)


def encode(answers: Mapping[str, Any], summary: Mapping[str, Any], kind: str) -> bytes:
    """Return the body of a response.

    Parameters
    ----------
    answers : mapping of str to sequence
        The columns p_value, score and alarm.
    summary : mapping
        What JSON says beside them.
    kind : str
        Media type.
    """
    columns = {name: np.asarray(values) for name, values in answers.items()}
    if kind == JSON:
        return msgspec.json.encode({**summary, **{name: cells.tolist() for name, cells in columns.items()}})
    if kind == NDJSON:
        names, encoder = list(columns), msgspec.json.Encoder()
        rows = zip(*(cells.tolist() for cells in columns.values()), strict=True)
        return b"".join(encoder.encode(dict(zip(names, row, strict=True))) + b"\n" for row in rows)
    if kind == CSV:
        return pl.DataFrame(columns).write_csv().encode()
    import pyarrow as pa

    table = pa.table({name: pa.array(cells) for name, cells in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
