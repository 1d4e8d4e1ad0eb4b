"""Columns of every Arrow type: read right, or an error that names the column; never a panic."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from rankad.io.table_files import TableError, as_numbers, open_output, open_table
from rankad.tables.frames import as_frame


def written(column: pa.Array, path: Path) -> Path:
    """Save a table with that column."""
    table = pa.table({"id": range(len(column)), "odd": column})
    match path.name:
        case "t.parquet":
            pa.parquet.write_table(table, path)
        case "t.arrow":
            with pa.ipc.new_file(str(path), table.schema) as file:
                file.write_table(table)
        case "t.arrows":
            with pa.ipc.new_stream(str(path), table.schema) as file:
                file.write_table(table)
    return path


def whole(path: Path) -> pl.DataFrame:
    with open_table(path) as table:
        return pl.concat(list(table))


def runs(values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), values)


def codes(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), values)


def decimals(kind: pa.DataType) -> pa.Array:
    return pa.array([Decimal("1.50"), None, Decimal("-2")], kind)


# What Python itself makes of the numbers.
NUMBERS: dict[str, tuple[pa.Array, list[float | None]]] = {
    "decimal256": (decimals(pa.decimal256(50, 2)), [1.5, None, -2.0]),
    "decimal256, long": (
        pa.array([Decimal("1" * 60), None, Decimal(3)], pa.decimal256(76, 0)),
        [float("1" * 60), None, 3.0],
    ),
    "decimal128": (decimals(pa.decimal128(38, 2)), [1.5, None, -2.0]),
    "decimal128 of hundreds": (
        pa.array([Decimal(100), None, Decimal(-200)], pa.decimal128(5, -2)),
        [100.0, None, -200.0],
    ),
    "decimal64": (decimals(pa.decimal64(12, 2)), [1.5, None, -2.0]),
    "dictionary of decimal256": (
        decimals(pa.decimal256(50, 2)).dictionary_encode(),
        [1.5, None, -2.0],
    ),
    "runs": (runs(pa.array([1.5, None])), [1.5, None, None]),
    "runs of decimal256": (runs(decimals(pa.decimal256(50, 2))[::2]), [1.5, -2.0, -2.0]),
    "dictionary of numbers": (codes(pa.array([5, 7])), [5.0, None, 7.0]),
    "bool8": (
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0], pa.int8())),
        [1.0, None, 0.0],
    ),
    "half floats": (pa.array([1.5, None, 2.0], pa.float16()), [1.5, None, 2.0]),
    "seconds": (pa.array([1, None, 2], pa.duration("s")), [1.0, None, 2.0]),
}
TEXTS: dict[str, tuple[pa.Array, list[str | None]]] = {
    "runs of text": (runs(pa.array(["a", "b"])), ["a", "b", "b"]),
    "dictionary of views": (codes(pa.array(["a", "b" * 30], pa.string_view())), ["a", None, "b" * 30]),
    "views": (pa.array(["a", None, "b" * 30], pa.string_view()), ["a", None, "b" * 30]),
    "large text": (pa.array(["a", None, "b"], pa.large_string()), ["a", None, "b"]),
    "json": (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", None, "{}"])), ["1", None, "{}"]),
}
NAMES = ["t.parquet", "t.arrow", "t.arrows"]


def saved(column: pa.Array, path: Path) -> Path:
    try:
        return written(column, path)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, OSError):
        pytest.skip("pyarrow cannot write it")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", NUMBERS)
def test_numbers_of_all_types(tmp_path: Path, capfd: Any, what: str, name: str) -> None:
    column, expected = NUMBERS[what]
    frame = whole(saved(column, tmp_path / name))
    assert as_numbers(frame, ["odd"])["odd"].to_list() == expected
    assert as_numbers(as_frame(pa.table({"odd": column})), ["odd"])["odd"].to_list() == expected
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", TEXTS)
def test_texts_of_all_types(tmp_path: Path, what: str, name: str) -> None:
    column, expected = TEXTS[what]
    assert whole(saved(column, tmp_path / name))["odd"].cast(pl.String).to_list() == expected
    assert as_frame(pa.table({"odd": column}))["odd"].cast(pl.String).to_list() == expected


def test_chunks_and_record_batches_in_python() -> None:
    chunks = pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()])
    assert as_frame(pa.table({"odd": chunks}))["odd"].to_list() == ["a", "b", "c"]
    assert as_frame(pa.table({"odd": pa.chunked_array([], pa.float64())})).schema == {"odd": pl.Float64}
    assert as_frame(pa.record_batch({"odd": [1, None]})).rows() == [(1,), (None,)]


UNKNOWN: dict[str, pa.Array] = {
    "month_day_nano_interval": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    "struct<a: month_day_nano_interval>": pa.array(
        [{"a": (1, 2, 3)}, None], pa.struct([("a", pa.month_day_nano_interval())])
    ),
    "list<": pa.array([[Decimal(1)], None], pa.list_(pa.decimal256(50, 2))),
    "list_view": pa.array([[1], None], pa.list_view(pa.int64())),
    "fixed_size_list": pa.array([[], None], pa.list_(pa.int64(), 0)),
    "sparse_union": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
    "dictionary<values=list": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([[1], [2]])),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", UNKNOWN)
def test_a_type_that_cannot_be_read_is_told(tmp_path: Path, capfd: Any, what: str, name: str) -> None:
    message = rf"column 'odd' is of the Arrow type {what}.*; turn it into numbers or text, or leave it out\.$"
    with pytest.raises(TableError, match=message):
        as_frame(pa.table({"odd": UNKNOWN[what]}))
    path = saved(UNKNOWN[what], tmp_path / name)
    with pytest.raises(TableError, match=message):
        whole(path)
    assert capfd.readouterr().err == ""


FAR = {
    "days": pa.array([2**31 - 1, None], pa.int32()).cast(pa.date32()),
    "days before": pa.array([-(2**31), None], pa.int32()).cast(pa.date32()),
    "milliseconds": pa.array([2**62, None], pa.timestamp("ms")),
    "microseconds": pa.array([2**63 - 1, 0], pa.timestamp("us")),
}


@pytest.mark.parametrize("what", FAR)
def test_a_date_that_cannot_be_written_is_told(tmp_path: Path, capfd: Any, what: str) -> None:
    with pytest.raises(
        TableError, match=r"t\.arrow: column 'odd' has a date beyond the years .*; correct it"
    ):
        whole(written(FAR[what], tmp_path / "t.arrow"))
    assert capfd.readouterr().err == ""


def test_dates_at_the_edge_can_be_written(tmp_path: Path) -> None:
    days = pa.array([0, 91_000_000, -91_000_000], pa.int32()).cast(pa.date32())
    frame = whole(written(days, tmp_path / "t.arrow"))
    assert len(frame.write_csv().splitlines()) == 4
    times = np.array([["2000-01-01"], ["+200000-01-01"]], "datetime64[s]")
    np.save(tmp_path / "t.npy", times)
    assert whole(tmp_path / "t.npy").height == 2


@pytest.mark.parametrize("kind", ["timestamp", "duration"])
def test_seconds_that_overflow_are_told(tmp_path: Path, kind: str) -> None:
    column = pa.array([2**62, None], getattr(pa, kind)("s"))
    message = rf"column 'odd', of the Arrow type {kind}\[s\], cannot be read \(.*\); turn it into"
    with pytest.raises(TableError, match=message):
        whole(written(column, tmp_path / "t.arrow"))


def test_time_zones_that_polars_does_not_know_become_utc(tmp_path: Path) -> None:
    column = pa.array([0, 86_400], pa.timestamp("s", "+05:30"))
    found = whole(written(column, tmp_path / "t.arrow"))["odd"].to_list()
    assert found == [datetime.datetime(1970, 1, day, tzinfo=datetime.UTC) for day in (1, 2)]


BYTES = [
    pl.Series([b"\xff"]),
    pl.Series([[b"\xff"]]),
    pl.Series([{"a": b"\xff"}]),
]


@pytest.mark.parametrize("series", BYTES)
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_bytes_cannot_be_written_as_text(tmp_path: Path, capfd: Any, name: str, series: pl.Series) -> None:
    frame = pl.DataFrame({"a": 1, "odd": series})
    message = rf"{name} cannot be written as {name[2:]}: column 'odd' is of type .*\. Write Parquet or Arrow"
    with pytest.raises(TableError, match=message), open_output(tmp_path / name) as table:
        table.write(frame)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().err == ""


def test_lists_and_durations_can_be_written_as_json_only(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [[1, 2]], "b": [datetime.timedelta(seconds=1)]})
    with open_output(tmp_path / "t.jsonl") as table:
        table.write(frame)
    assert json.loads((tmp_path / "t.jsonl").read_text())["a"] == [1, 2]
    for name in "ab":
        message = rf"cannot be written as csv: column '{name}' is of type"
        with pytest.raises(TableError, match=message), open_output(tmp_path / "t.csv") as table:
            table.write(frame.select(name))
