"""Any table that users pass as a polars frame, or an error that names the column at fault."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rankad.io.forks import check_polars


class Untyped(NamedTuple):
    """A frame of text without types, as that of a CSV file: digits may be numbers.

    Text in any other table was meant to be text.
    """

    frame: pl.DataFrame


def as_frame(table: Any) -> pl.DataFrame:
    """Return a table as a polars frame.

    It may be a polars or pandas DataFrame, a pyarrow Table, or a dict of columns, which are lists or
    one-dimensional arrays of the same length. One row may be a dict of cells, a pandas Series whose index
    names the columns (``frame.loc[i]``), or a polars Series of structs; several rows may be a list of dicts.

    Examples
    --------
    >>> as_frame({"a": [1, 2.5], "b": ["x", None]}).dtypes
    [Float64, String]
    >>> as_frame({"a": 1.5, "b": "x"}).rows()
    [(1.5, 'x')]
    >>> as_frame([{"a": 1.5, "b": "x"}, {"a": 2.0}]).rows()
    [(1.5, 'x'), (2.0, None)]
    """
    check_polars()
    if isinstance(table, Untyped):
        return table.frame
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, Mapping):
        return _of_mapping(table)
    if isinstance(table, (list, tuple)) and table and all(isinstance(row, Mapping) for row in table):
        names = dict.fromkeys(name for row in table for name in row)
        return _of_columns((name, [_plain_cell(row.get(name)) for row in table]) for name in names)
    if isinstance(table, pl.Series):
        if isinstance(table.dtype, pl.Struct):
            return table.struct.unnest()
        raise TypeError(
            "a polars Series has no names for the cells of a row; for one row pass frame[i] or "
            "frame.row(i, named=True), for one column series.to_frame()."
        )
    library = type(table).__module__.partition(".")[0]
    if library == "pandas" and hasattr(table, "columns"):
        return _of_columns((name, table.iloc[:, i]) for i, name in enumerate(table.columns))
    if library == "pandas" and hasattr(table, "index") and hasattr(table, "items"):
        return _of_pandas_row(table)
    if library == "pyarrow" and hasattr(table, "column_names"):
        _check_names(table.column_names)
        return _of_arrow(table)
    advice = ""
    if hasattr(table, "shape"):
        advice = "; name the columns of an array, as in dict(zip(names, X.T))"
    elif isinstance(table, pl.LazyFrame):
        advice = "; pass what its collect() returns"
    elif isinstance(table, (str, os.PathLike)):
        advice = "; read the file first, as with polars.read_csv, or use the command rankad"
    raise TypeError(
        f"a table must be a polars or pandas DataFrame, a pyarrow Table, a dict of columns or a list of "
        f"dicts, got {type(table).__name__}{advice}."
    )


def _of_mapping(table: Mapping[Any, Any]) -> pl.DataFrame:
    """Return a dict of columns, or of the cells of one row."""
    cells = [name for name, value in table.items() if _is_cell(value)]
    if not cells:
        return _of_columns(table.items())
    if len(cells) < len(table):
        column = next(name for name in table if name not in set(cells))
        raise ValueError(
            f"a dict must hold columns, or the cells of one row, but {str(cells[0])!r} is a single value and "
            f"{str(column)!r} a {type(table[column]).__name__}; put single values in lists."
        )
    return _of_columns((name, [_plain_cell(value)]) for name, value in table.items())


def _of_pandas_row(row: Any) -> pl.DataFrame:
    if not all(isinstance(name, str) for name in row.index):
        raise TypeError(
            "a pandas Series is taken as one row, whose index names the columns, but the index of this one "
            "holds something else; for one row pass frame.iloc[[i]], for one column series.to_frame()."
        )
    # Cells of mixed types make a Series of objects; here each is a column of its own.
    cells = row.astype(object).where(row.notna(), None).tolist()
    return _of_columns((name, [_plain_cell(cell)]) for name, cell in zip(row.index, cells, strict=True))


def _is_cell(value: Any) -> bool:
    """Tell a single value from a column."""
    if hasattr(value, "ndim"):
        return int(value.ndim) == 0
    return isinstance(value, (str, bytes)) or not isinstance(value, Iterable)


def _plain_cell(value: Any) -> Any:
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def _of_arrow(table: Any) -> pl.DataFrame:
    from rankad.io.arrow_columns import check_types, read_column

    check_types(table.schema, "the table")
    columns = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        # A record batch has no chunks, and an empty column may have none.
        chunks = getattr(column, "chunks", [column]) or [column.combine_chunks()]
        columns[name] = pl.concat([read_column(chunk, name, "the table") for chunk in chunks])
    return pl.DataFrame(columns)


def _of_columns(columns: Iterable[tuple[Any, Any]]) -> pl.DataFrame:
    made = [_series(_checked_name(str(name)), values) for name, values in columns]
    _check_names([series.name for series in made])
    lengths = {series.name: len(series) for series in made}
    if len(set(lengths.values())) > 1:
        short, long = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        raise ValueError(
            f"all columns must have the same length, but {short!r} has {lengths[short]} values and {long!r} "
            f"{lengths[long]}."
        )
    return pl.DataFrame({series.name: series for series in made})


def _checked_name(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"a column name must be text that UTF-8 can write, got {name!r}, which has half of a surrogate "
            f"pair; rename it."
        ) from error
    return name


def _check_names(names: list[str]) -> None:
    twice = sorted(name for name, n in Counter(names).items() if n > 1)
    if twice:
        raise ValueError(
            f"column names must be unique, but {', '.join(map(repr, twice))} comes twice; rename one."
        )


def _series(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.alias(name)
    plain = getattr(values, "dtype", None)
    is_number = isinstance(plain, np.dtype) and plain.kind in "biuf" and plain.itemsize <= 8
    if is_number and not np.ma.isMaskedArray(values):
        values = np.asarray(values)
        if values.ndim == 1:
            return pl.Series(name, values)
    # pandas knows what is missing; its categories stay categories.
    category = str(plain) == "category"
    if hasattr(values, "isna"):
        values = values.astype(object).where(values.notna(), None)
    try:
        cells = values.tolist() if hasattr(values, "tolist") else list(values)
        first = type(next((cell for cell in cells if cell is not None), None))
        if first.__module__.partition(".")[0] == "pandas":
            cells = [_without_pandas(cell) for cell in cells]
        series = _of_cells(name, cells)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise ValueError(
            f"column {name!r} cannot be read as numbers, booleans or text ({error}); turn it into one of "
            f"them, or drop it."
        ) from error
    return series.cast(pl.String).cast(pl.Categorical) if category else series


def _without_pandas(cell: Any) -> Any:
    """Return cells of types that only pandas has as others: intervals as text, periods as their start."""
    if hasattr(cell, "start_time"):
        return cell.start_time.to_pydatetime()
    return str(cell) if hasattr(cell, "closed_left") else cell


def _of_cells(name: str, cells: list[Any]) -> pl.Series:
    for dtype in (None, pl.Float64):
        try:
            return pl.Series(name, cells, dtype=dtype)
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            pass
    # Numbers and text side by side: text, as it would be in a file.
    return pl.Series(name, [None if cell is None or cell != cell else str(cell) for cell in cells])
