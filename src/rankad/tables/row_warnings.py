"""Warnings about rows that are likely no data: a line of sums at the end of a table, empty rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from rankad._base.wording import counted
from rankad.io.errors import shown
from rankad.tables.encoded_columns import Column, NumberColumn

_SUMS = re.compile(
    r"\W*(?:(?:grand|sub)[ -]?)?(?:totals?|totale|sums?|summe|gesamt(?:summe)?|insgesamt|somme|suma"
    r"|averages?|avg|means?|mittelwert|durchschnitt|moyenne|promedio)\W*",
    re.IGNORECASE,
)
# Sums are looked for in tables of the size that people make by hand.
_MOST_ROWS, _LEAST_ROWS = 100_000, 8
_ROUNDING = 1e-9


def row_warnings(table: pl.DataFrame, columns: Sequence[Column]) -> list[str]:
    """Return warnings about rows of a nominal table that are likely no data; `columns` is what it became."""
    return [warning for warning in (_empty_rows(table), _line_of_sums(table, columns)) if warning]


def _empty_rows(table: pl.DataFrame) -> str:
    if table.width < 2 or not all(series.null_count() for series in table):
        return ""
    rows = np.flatnonzero(table.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy())
    if not rows.size:
        return ""
    named = ", ".join(f"{row + 1:,}" for row in rows[:3]) + (" ..." if rows.size > 3 else "")
    has, it = ("has", "it") if rows.size == 1 else ("have", "them")
    return (
        f"{counted(rows.size, 'row')} of the table (row {named}) {has} no filled cell: if empty rows are not "
        f"normal, remove {it}, since {it} would be learned from as rows in which everything is missing."
    )


def _line_of_sums(table: pl.DataFrame, columns: Sequence[Column]) -> str:
    """Warn if the last row has a word such as Total, or the sums of the rows above."""
    if table.height < _LEAST_ROWS:
        return ""
    what = ""
    for (name, kind), last in zip(table.schema.items(), table.row(-1), strict=True):
        is_sum = kind == pl.String and last is not None and _SUMS.fullmatch(last)
        if is_sum and not (table[name].head(-1) == last).any():
            what = f"column {name!r} has {shown(last)} there, and nowhere else"
            break
    if not what and table.height <= _MOST_ROWS:
        numbers = [column for column in columns if isinstance(column, NumberColumn)]
        summed = next((column.name for column in numbers if _ends_with_sum(table, column)), None)
        what = f"in column {summed!r} it is the sum of all rows above" if summed is not None else ""
    if not what:
        return ""
    return (
        f"the last row, {table.height:,}, looks like a line of sums or averages ({what}), but is learned "
        f"from like any other. Remove it from the table unless it is data."
    )


def _ends_with_sum(table: pl.DataFrame, column: NumberColumn) -> bool:
    values = column.read(table[column.name])
    above, last = values[:-1][np.isfinite(values[:-1])], float(values[-1])
    if column.constant or above.size < _LEAST_ROWS or not np.isfinite(last) or last == 0:
        return False
    close = abs(above.sum() - last) <= _ROUNDING * np.abs(above).sum()
    return bool(close and abs(last) > np.abs(above).max())
