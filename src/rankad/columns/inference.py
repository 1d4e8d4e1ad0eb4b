"""Inferring what a column is, how sure that is, and which option settles it.

The one place where nominal cells, and what the user says about a column, become its kind. A guess that could
be wrong has a `doubt`, a warning that names the column, the cells and the option.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from rankad.columns.formats import recognize_numbers
from rankad.columns.infer_numbers import infer_numbers
from rankad.columns.infer_text import MANY, infer_text
from rankad.columns.infer_words import infer_words
from rankad.columns.inferred import ColumnOptions, InferredColumn, doubtful, option
from rankad.columns.missing_values import marker_among_times
from rankad.columns.times import EXCEL, TimeFormat, epoch_unit, excel_days, recognize_times
from rankad.columns.words import all_booleans, has_value, odd_words_at
from rankad.io.errors import shown
from rankad.io.numbers import all_numbers, is_text, parse

_DEFAULTS = ColumnOptions()
_AS_ASKED = "as asked for"


def infer_column(
    series: pl.Series,
    *,
    typed: bool,
    options: ColumnOptions = _DEFAULTS,
    min_count: int = 5,
    elsewhere: str | None = None,
) -> InferredColumn:
    """Infer what a column is from its nominal cells.

    `typed` says whether its type means something: all cells of a CSV file are text, while text in Parquet or
    pandas was meant to be text. A word needs `min_count` rows to get its own indicator. `elsewhere` is the
    decimal mark of other columns.

    >>> infer_column(pl.Series("speed", ["70,7", "68,2", "ERR"]), typed=False).number.decimal
    ','
    >>> infer_column(pl.Series("tx", range(7, 107)), typed=True).kind
    'id'
    """
    name, kind = series.name, series.dtype
    if name in options.numbers:
        return _number_as_asked(series, options, elsewhere)
    if name in options.times:
        return _time_as_asked(series, options)
    # Text of plain numbers, the most common by far, needs neither of the two slower questions below.
    numbers = kind == pl.String and all_numbers(series)
    if not numbers and not has_value(series).any():
        return InferredColumn(name, "empty")
    if name in options.categories:
        if _is_unreadable(kind) or isinstance(kind, pl.Duration):
            raise ValueError(_cannot_be(name, "category", f"is of type {kind}; turn it into text"))
        return InferredColumn(name, "category", why=_AS_ASKED)
    if _is_time(kind):
        inferred = InferredColumn(name, "time", time=TimeFormat())
        marker = marker_among_times(name, TimeFormat().read(series), series)
        why = "one time may mark missing ones"
        return doubtful(name, "time", "likely", why, marker, "category") if marker else inferred
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        inferred, words = infer_words(series, min_count), series.cast(pl.String)
        n_distinct = words.drop_nulls().n_unique()
        if inferred.doubt or n_distinct < MANY or not all_numbers(words):
            return inferred
        evidence = f"that is its type, but its {n_distinct:,} different values are numbers"
        return inferred.doubted("likely", "many numbers, typed as a category", evidence, "number")
    if kind == pl.Boolean or (kind == pl.String and not numbers and all_booleans(series)):
        return InferredColumn(name, "category")
    if isinstance(kind, pl.Duration):
        return InferredColumn(name, "number")
    if kind.is_numeric():
        return infer_numbers(name, parse(series), min_count)
    if kind != pl.String:
        raise ValueError(
            f"column {name!r} is of type {kind}, but must hold numbers, booleans, text or times; turn it "
            f"into one of them, or leave it out with {option(name, 'drop')}."
        )
    return infer_text(series, typed, options, min_count, elsewhere)


def _is_unreadable(kind: pl.DataType) -> bool:
    return kind.is_nested() or kind in (pl.Binary, pl.Object)


def _is_time(kind: pl.DataType) -> bool:
    return kind.is_temporal() and not isinstance(kind, pl.Duration)


def _cannot_be(name: str, kind: str, reason: str) -> str:
    return f"column {name!r} is to be a {kind} by {option(name, kind)}, but {reason}."


def _number_as_asked(series: pl.Series, options: ColumnOptions, elsewhere: str | None) -> InferredColumn:
    name, kind = series.name, series.dtype
    if _is_unreadable(kind) or _is_time(kind):
        raise ValueError(_cannot_be(name, "number", f"is of type {kind}; turn it into numbers"))
    if not is_text(kind):
        return InferredColumn(name, "number", why=_AS_ASKED)
    words = series.cast(pl.String).filter(has_value(series))
    recognized = recognize_numbers(words, decimal=options.decimal, elsewhere=elsewhere)
    if recognized.odd.size == len(words):
        example = shown(words[0]) if len(words) else "all are missing"
        raise ValueError(
            _cannot_be(name, "number", f"none of its cells can be read as one, for example {example}")
        )
    why = ", ".join(filter(None, [_AS_ASKED, recognized.format.describe()]))
    odd = odd_words_at(words, recognized.odd)
    return InferredColumn(name, "number", why=why, number=recognized.format, odd_words=odd)


def _time_as_asked(series: pl.Series, options: ColumnOptions) -> InferredColumn:
    name, kind = series.name, series.dtype
    asked = InferredColumn(name, "time", why=_AS_ASKED)
    remedy = "write times as 2024-12-31 14:05, as seconds since 1970, or as days as Excel counts them"
    if _is_time(kind):
        return asked
    if not (kind.is_numeric() or is_text(kind)):
        raise ValueError(_cannot_be(name, "time", f"is of type {kind}; {remedy}"))
    text = series.cast(pl.String)
    words = text.filter(has_value(text))
    if kind.is_numeric() or all_numbers(text):
        values = parse(series)
        finite = values[np.isfinite(values)]
        if unit := epoch_unit(finite) or (EXCEL if excel_days(finite) else ""):
            return asked._replace(time=TimeFormat(epoch=unit))
        if kind.is_float():
            words = pl.Series(name, finite).cast(pl.Int64, strict=False).cast(pl.String).drop_nulls()
    recognized = recognize_times(words, day_first=options.day_first) if len(words) else None
    if recognized is None:
        raise ValueError(_cannot_be(name, "time", f"none of its cells can be read as one; {remedy}"))
    return asked._replace(time=recognized.format, odd_words=odd_words_at(words, recognized.odd))
