"""Read the cells of a column as numbers."""

from __future__ import annotations

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.io.errors import TableError

# Words for a missing number, in lower case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
# Dashes of all kinds are a minus before a number, not between digits.
_MINUS = r"^(\D*)[\u2212\u2010-\u2013\uff0d\ufe63]"
_NO_NUMBERS = [*MISSING, "+nan", "-nan"]


def read_numbers(series: pl.Series) -> Floats:
    """Return a column as float64, NaN where a value is missing or not a number.

    The column holds numbers, booleans, durations (in seconds) or text. In text, an empty cell, NA, N/A, NaN,
    null and None are missing values; `unread` returns the other cells that could not be read.

    >>> read_numbers(pl.Series("a", ["1.5", " -2", "NA", None]))
    array([ 1.5, -2. ,  nan,  nan])
    """
    kind = series.dtype
    if isinstance(kind, pl.Duration):
        return parse(series.dt.total_microseconds()) / 1e6
    if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null) or is_text(kind)):
        raise TableError(
            f"column {series.name!r} must hold numbers, as it did when the detector was fitted, but is of "
            f"type {kind}; turn it into numbers."
        )
    return parse(series)


def all_numbers(series: pl.Series) -> bool:
    """Return whether every cell of a text column is a number or missing, and at least one is a number."""
    head = series.head(100)
    if unread(head, parse(head)).size:
        return False
    numbers = parse(series)
    return bool(np.isfinite(numbers).any()) and not unread(series, numbers).size


def parse(series: pl.Series) -> Floats:
    """Return the cells as numbers, NaN where they cannot be read."""
    if not is_text(series.dtype):
        return series.cast(pl.Float64).to_numpy()
    return plain_numbers(series.cast(pl.String)).to_numpy()


def plain_numbers(text: pl.Series) -> pl.Series:
    """Return text as Float64, with a decimal point and no other marks; null where it is not a number."""
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() > text.null_count():
        # Blanks around numbers are rare, so strip them only if something was not read.
        numbers = with_plain_minus(text).cast(pl.Float64, strict=False)
    return numbers


def with_plain_minus(text: pl.Series) -> pl.Series:
    """Strip blanks, and write a minus as ASCII."""
    return text.str.strip_chars().str.replace(_MINUS, "${1}-")


def unread(series: pl.Series, numbers: Floats) -> Ints:
    """Return the rows whose text is neither a number nor a word for a missing one."""
    blank = np.flatnonzero(np.isnan(numbers))
    if not blank.size:
        return blank
    words = series.cast(pl.String).gather(blank)
    known = words.str.strip_chars().str.to_lowercase().is_in(_NO_NUMBERS) | words.is_null()
    return np.asarray(blank[~known.fill_null(True).to_numpy()])


def is_text(kind: pl.DataType) -> bool:
    """Return whether a column of this type holds text."""
    return kind == pl.String or isinstance(kind, (pl.Categorical, pl.Enum))
