"""Convert columns of Arrow to columns that polars can hold."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from rankad.io.errors import TableError, reason

_VIEW_BYTES = 16


def check_types(schema: Any, table: str) -> None:
    """Raise for a column of a type that polars cannot hold; it would panic."""
    for field in schema:
        if not _is_known(field.type):
            raise TableError(
                f"{table}: column {field.name!r} is of the Arrow type {field.type!s:.100}, which rankad "
                f"cannot read; turn it into numbers or text, or leave it out."
            )


def _is_known(kind: Any, nested: bool = False) -> bool:
    """Return whether `_for_polars` can convert it; nested columns are not converted."""
    from pyarrow import types

    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        inner = kind.value_type
        flat = _is_known(inner, nested) and not types.is_nested(inner) and not types.is_dictionary(inner)
        return flat and not (nested and types.is_run_end_encoded(kind))
    if hasattr(kind, "storage_type"):
        return _is_known(kind.storage_type, nested)
    if types.is_list(kind) or types.is_large_list(kind):
        return _is_known(kind.value_type, True)
    if types.is_fixed_size_list(kind):
        return kind.list_size > 0 and _is_known(kind.value_type, True)
    if types.is_map(kind):
        return _is_known(kind.key_type, True) and _is_known(kind.item_type, True)
    if types.is_struct(kind):
        return all(_is_known(field.type, True) for field in kind)
    if types.is_decimal(kind):
        return not (nested and _is_wide_decimal(kind))
    if types.is_timestamp(kind):
        return not nested or _is_zone(kind.tz)
    plain = (types.is_boolean, types.is_integer, types.is_floating, types.is_date, types.is_time)
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_null, types.is_duration)
    bytes_ = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    return any(is_one(kind) for is_one in plain + texts + bytes_)


def read_column(column: Any, name: str, table: str) -> pl.Series:
    """Return a column of a validated batch, of a known type, as a series, or raise with its name."""
    try:
        return pl.Series(_for_polars(column))
    except (Exception, pl.exceptions.PanicException) as error:
        raise TableError(
            f"{table}: column {name!r}, of the Arrow type {column.type!s:.100}, cannot be read "
            f"({reason(error)}); turn it into numbers or text, or leave it out."
        ) from error


def _for_polars(column: Any) -> Any:
    """Convert a column of a known type to one that polars reads correctly.

    Decimals of more than 38 digits become text, run-length encoding is decoded, and unknown time zones become
    UTC. Values behind missing cells are cleared: pyarrow does not check them, and polars reads them.
    """
    import pyarrow
    import pyarrow.compute

    kind, types = column.type, pyarrow.types
    if hasattr(kind, "storage_type"):
        return _for_polars(column.storage)
    if types.is_run_end_encoded(kind):
        return _for_polars(pyarrow.compute.run_end_decode(column))
    if types.is_dictionary(kind):
        values = _for_polars(column.dictionary)
        if types.is_string_view(values.type) or types.is_binary_view(values.type):
            values = values.cast("large_string" if types.is_string_view(values.type) else "large_binary")
        # Each word once, and only used ones, without decoding all rows, which may be long.
        words = values.dictionary_encode()
        named = words.indices.take(column.indices)
        used = named.drop_null().unique()
        places = pyarrow.compute.index_in(named, used)
        return pyarrow.DictionaryArray.from_arrays(places, words.dictionary.take(used))
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return _without_stray_views(column)
    if types.is_decimal(kind) and _is_wide_decimal(kind):
        return column.cast(pyarrow.string())
    if types.is_timestamp(kind):
        zone = kind.tz if _is_zone(kind.tz) else "UTC"
        # Polars has no unit of seconds, and would let them overflow.
        return column.cast(pyarrow.timestamp("ms" if kind.unit == "s" else kind.unit, zone))
    if types.is_duration(kind) and kind.unit == "s":
        return column.cast(pyarrow.duration("ms"))
    return column


def _is_wide_decimal(kind: Any) -> bool:
    return bool(kind.bit_width > 128 or kind.scale < 0)


def _is_zone(zone: str | None) -> bool:
    try:
        return zone is None or bool(ZoneInfo(zone))
    except (ValueError, OSError, KeyError):
        return False


def _without_stray_views(column: Any) -> Any:
    import pyarrow

    valid = column.is_valid().to_numpy(zero_copy_only=False)
    _, views, *texts = column.buffers()
    cells = np.frombuffer(views, np.uint8).reshape(-1, _VIEW_BYTES)[column.offset :][: len(column)]
    cells = np.where(valid[:, None], cells, np.uint8(0))
    bits = np.packbits(valid, bitorder="little")
    buffers = [pyarrow.py_buffer(bits), pyarrow.py_buffer(cells), *texts]
    return pyarrow.Array.from_buffers(column.type, len(column), buffers)
