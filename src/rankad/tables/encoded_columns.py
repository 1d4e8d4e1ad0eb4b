"""The kinds of columns of a table, each with the numbers that it becomes.

Each kind learns from nominal cells, encodes others, and names the *strange* ones: no nominal row has any like
them, so that no number can stand for them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import polars as pl

from rankad._base.arrays import Floats
from rankad.columns.words import has_value
from rankad.tables.category_column import CategoryColumn
from rankad.tables.number_column import NumberColumn
from rankad.tables.strange_cells import NOT_EMPTY, StrangeCell, strange_cells
from rankad.tables.time_column import TimeColumn

__all__ = ["CategoryColumn", "Column", "EmptyColumn", "NumberColumn", "TimeColumn", "to_stored"]


@dataclass(frozen=True)
class EmptyColumn:
    """A column that is missing in all nominal rows: it is not encoded, and any value in it is strange."""

    kind: ClassVar[str] = "empty"
    name: str
    width: ClassVar[int] = 0

    def cells(self, series: pl.Series) -> list[Any]:
        """Return the cells for display."""
        return series.to_list()

    def encode(self, series: pl.Series, out: Floats) -> list[StrangeCell]:
        """Return the strange cells; there is nothing to write."""
        return strange_cells(series, np.flatnonzero(has_value(series).to_numpy()), NOT_EMPTY)

    def decode(self, encoded: Floats) -> pl.Series:
        """Return missing values."""
        return pl.Series(self.name, [None] * len(encoded), dtype=pl.Null)

    def describe(self) -> str:
        """Say in one line what the column became."""
        return f"{self.name}: left out, as all normal values are missing; any value is strange"


Column: TypeAlias = NumberColumn | CategoryColumn | TimeColumn | EmptyColumn


def to_stored(column: Column) -> dict[str, Any]:
    """Return a column as an object that JSON can write."""

    def with_lists(fields: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields}

    return {"kind": column.kind, **asdict(column, dict_factory=with_lists)}
