"""One column of a table, and the numbers it becomes.

Each kind of column learns from nominal cells, encodes others, and says which cells are *strange*: no nominal
row had any like them, so that no number can stand for them.
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
from rankad.tables.strange import NOT_EMPTY, Learned, Strange, strange_cells
from rankad.tables.time_column import TimeColumn

__all__ = ["CategoryColumn", "Column", "EmptyColumn", "Learned", "NumberColumn", "Strange", "TimeColumn"]


@dataclass(frozen=True)
class EmptyColumn:
    """A column without a value in any nominal row: it becomes nothing, and any value in it is strange."""

    kind: ClassVar[str] = "empty"
    name: str
    width: ClassVar[int] = 0

    def cells(self, series: pl.Series) -> list[Any]:
        """Return the cells as they are shown."""
        return series.to_list()

    def encode(self, series: pl.Series, out: Floats) -> list[Strange]:
        """Return the strange cells; there is nothing to write."""
        return strange_cells(series, np.flatnonzero(has_value(series).to_numpy()), NOT_EMPTY)

    def decode(self, encoded: Floats) -> pl.Series:
        """Return missing values."""
        return pl.Series(self.name, [None] * len(encoded), dtype=pl.Null)

    def describe(self) -> str:
        """Say in one line what the column became."""
        return f"{self.name}: left out, as all nominal values are missing; any value is strange"

    def to_dict(self) -> dict[str, Any]:
        """Return what can be written as JSON."""
        return {"kind": self.kind, **asdict(self)}


Column: TypeAlias = NumberColumn | CategoryColumn | TimeColumn | EmptyColumn
