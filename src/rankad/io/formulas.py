"""Neutralize cells that a spreadsheet would take for formulas."""

from __future__ import annotations

import polars as pl

from rankad.io.numbers import is_text

# How a formula may begin in a spreadsheet, with skipped characters; the last four are full-width.
_BEGINS = r"^[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Put a single quote before cells and column names that a spreadsheet would take for formulas.

    Numbers are unchanged, also signed ones and those in text.

    >>> without_formulas(pl.DataFrame({"=a": ["=1+1", "-5", "-x", None], "b": [-1, 2, 3, 4]})).to_dict(
    ...     as_series=False
    ... )
    {"'=a": ["'=1+1", '-5', "'-x", None], 'b': [-1, 2, 3, 4]}
    """
    names = pl.Series(frame.columns, dtype=pl.String)
    texts = [name for name, kind in frame.schema.items() if is_text(kind)]
    cells = frame.with_columns(_neutral(frame[name].cast(pl.String)) for name in texts)
    return cells.rename(dict(zip(names, _neutral(names), strict=True)))


def _neutral(text: pl.Series) -> pl.Series:
    number = text.str.strip_chars().cast(pl.Float64, strict=False).is_not_null()
    odd = (text.str.contains(_BEGINS) & ~number).fill_null(False)
    return ("'" + text).zip_with(odd, text).alias(text.name) if odd.any() else text
