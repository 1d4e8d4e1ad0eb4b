"""Rows that are likely none: a line of sums at the end of a table, lines with no cell filled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from rankad.columns.understood import counted
from rankad.io.errors import shown
from rankad.tables.encoded_columns import Column, NumberColumn

__all__ = ["doubtful_rows"]

_SUMS = (
    r"(?i)^\W*(?:(?:grand|sub)[ -]?)?(?:totals?|totale|sums?|summe|gesamt(?:summe)?|insgesamt|somme|suma"
    r"|averages?|avg|means?|mittelwert|durchschnitt|moyenne|promedio)\W*$"
)
# Sums are looked for in tables as people make them by hand.
_MOST_ROWS, _LEAST_ROWS = 100_000, 8
_ROUNDING = 1e-9


def doubtful_rows(table: pl.DataFrame, columns: Sequence[Column]) -> list[str]:
    """Say which rows of a nominal table are likely none, and what to do.

    Parameters
    ----------
    table : polars DataFrame
    columns : sequence of Column
        What was learned of it.
    """
    return [said for said in (_empty_rows(table), _line_of_sums(table, columns)) if said]


def _empty_rows(table: pl.DataFrame) -> str:
    """Say that rows have no cell that is filled, as those below the table in many a spreadsheet."""
    if table.width < 2 or not all(series.null_count() for series in table):
        return ""
    rows = np.flatnonzero(table.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy())
    if not rows.size:
        return ""
    named = ", ".join(f"{row + 1:,}" for row in rows[:3]) + (" ..." if rows.size > 3 else "")
    return (
        f"{counted(rows.size, 'row')} of the table (row {named}) {'has' if rows.size == 1 else 'have'} no "
        f"cell that is filled, and {'is' if rows.size == 1 else 'are'} learned from as rows in which "
        f"everything is missing. Remove {'it' if rows.size == 1 else 'them'}, unless that is normal."
    )


def _line_of_sums(table: pl.DataFrame, columns: Sequence[Column]) -> str:
    """Say that the last row has a word such as Total, or that its numbers are the sums of those above."""
    if table.height < _LEAST_ROWS:
        return ""
    what = ""
    for series in table:
        if (
            series.dtype != pl.String
            or series[-1] is None
            or not pl.Series([series[-1]]).str.contains(_SUMS)[0]
        ):
            continue
        if not (series.head(table.height - 1) == series[-1]).any():
            what = f"column {series.name!r} has {shown(series[-1])} there, and nowhere else"
            break
    if not what and table.height <= _MOST_ROWS:
        sums = [
            column.name for column in columns if isinstance(column, NumberColumn) and _is_sum(table, column)
        ]
        if sums:
            what = f"in column {sums[0]!r} it is the sum of all rows above"
    if not what:
        return ""
    return (
        f"the last row, {table.height:,}, looks like a line of sums or averages and no row ({what}), and is "
        f"learned from as any other. Remove it from the table, unless it is one."
    )


def _is_sum(table: pl.DataFrame, column: NumberColumn) -> bool:
    """Tell whether the last cell of a column is the sum of the others."""
    values = column.read(table[column.name])
    above, last = values[:-1][np.isfinite(values[:-1])], float(values[-1])
    if column.constant or above.size < _LEAST_ROWS or not np.isfinite(last) or last == 0:
        return False
    return bool(
        abs(above.sum() - last) <= _ROUNDING * np.abs(above).sum() and abs(last) > np.abs(above).max()
    )
