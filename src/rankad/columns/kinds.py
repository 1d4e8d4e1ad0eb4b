"""Understanding a column: what it is, how sure that is, why, and what settles it.

The one place where nominal cells, and what the user says of a column, become its kind. Whatever is decided is
said: a guess that could be wrong has a `doubt`, which names the column, the cells and the option.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from rankad.columns.formats import recognize
from rankad.columns.kind_of_numbers import missing_time, of_numbers
from rankad.columns.kind_of_text import MANY, of_text, of_words
from rankad.columns.times import EXCEL, TimeFormat, epoch_unit, excel_days, recognize_times
from rankad.columns.understood import ColumnWarning, Told, Understood, odd_words_of, settle
from rankad.columns.words import all_booleans, has_value
from rankad.io.errors import shown
from rankad.io.numbers import all_numbers, is_text, parse

__all__ = ["ColumnWarning", "Told", "Understood", "understand"]

_NOTHING = Told()


def understand(
    series: pl.Series, *, typed: bool, told: Told = _NOTHING, min_count: int = 5, elsewhere: str | None = None
) -> Understood:
    """Say what a column is, from its nominal cells.

    Parameters
    ----------
    series : polars Series
    typed : bool
        Whether its type means something. In CSV all cells are text; text in Parquet or pandas was meant to
        be text.
    told : Told
        What the user says.
    min_count : int
        A word needs as many rows for an indicator of its own.
    elsewhere : {".", ","}, optional
        What stands before decimals in other columns.

    Examples
    --------
    >>> understand(pl.Series("speed", ["70,7", "68,2", "ERR"]), typed=False).number.decimal
    ','
    >>> print(understand(pl.Series("tx", range(7, 107)), typed=True).doubt)
    column 'tx' only grows (7 to 106): it counts or names rows, and is not learned from. If so, say --id tx
    (ids=['tx']); to learn from it, --number tx (numbers=['tx']).
    """
    name, kind = series.name, series.dtype
    if name in told.numbers:
        return _told_number(series, told, elsewhere)
    if name in told.times:
        return _told_time(series, told)
    # Text of plain numbers, the most common by far, needs neither of the two slower questions below.
    numbers = kind == pl.String and all_numbers(series)
    if not numbers and not has_value(series).any():
        return Understood(name, "empty")
    if name in told.categories:
        if kind.is_nested() or kind in (pl.Binary, pl.Object) or isinstance(kind, pl.Duration):
            raise ValueError(
                f"column {name!r} is to be a category (--category {name} or categories=[{name!r}]), but is "
                f"of type {kind}; turn it into text."
            )
        return Understood(name, "category", why="as asked for")
    if kind.is_temporal() and not isinstance(kind, pl.Duration):
        disguised = missing_time(name, TimeFormat().read(series), series)
        if not disguised:
            return Understood(name, "time", time=TimeFormat())
        doubt = f"column {name!r} is taken as a time: {disguised}. {settle(name, 'time', 'category')}"
        return Understood(name, "time", "likely", "one time may stand for missing ones", doubt)
    if kind == pl.Boolean or isinstance(kind, (pl.Categorical, pl.Enum)):
        return _of_typed_words(series, min_count) if is_text(kind) else Understood(name, "category")
    if isinstance(kind, pl.Duration):
        return Understood(name, "number")
    if kind.is_numeric():
        return of_numbers(name, parse(series), min_count)
    if kind != pl.String:
        raise ValueError(
            f"column {name!r} is of type {kind}, but must hold numbers, booleans, text or times; drop it "
            f"(--drop {name} or drop=[{name!r}]), or turn it into one of them."
        )
    if not numbers and all_booleans(series):
        return Understood(name, "category")
    return of_text(series, typed, told, min_count, elsewhere)


def _of_typed_words(series: pl.Series, min_count: int) -> Understood:
    """Say what words are that are typed as categories; many different numbers are likely none."""
    found, name = of_words(series, min_count), series.name
    words = series.cast(pl.String)
    n_different = words.drop_nulls().n_unique()
    if found.doubt or n_different < MANY or not all_numbers(words):
        return found
    doubt = (
        f"column {name!r} is typed as a category, but its {n_different:,} different values are numbers: new "
        f"ones are as good as any. {settle(name, 'category', 'number')}"
    )
    return found._replace(sure="likely", why="many numbers, typed as a category", doubt=doubt)


def _told_number(series: pl.Series, told: Told, elsewhere: str | None) -> Understood:
    name, kind = series.name, series.dtype
    if (
        kind.is_nested()
        or kind in (pl.Binary, pl.Object)
        or (kind.is_temporal() and not isinstance(kind, pl.Duration))
    ):
        raise ValueError(
            f"column {name!r} is to be a number (--number {name} or numbers=[{name!r}]), but is of type "
            f"{kind}; turn it into numbers."
        )
    why = "as asked for"
    if not is_text(kind):
        return Understood(name, "number", why=why)
    words = series.cast(pl.String).filter(has_value(series))
    found = recognize(words, decimal=told.decimal, elsewhere=elsewhere)
    if found.odd.size == len(words):
        raise ValueError(
            f"column {name!r} is to be a number (--number {name} or numbers=[{name!r}]), but none of its "
            f"cells can be read as one, as {shown(words[0]) if len(words) else 'all are missing'}."
        )
    odd = odd_words_of(words, found.odd)
    written = found.format.describe()
    return Understood(
        name, "number", why=f"{why}, {written}" if written else why, number=found.format, odd_words=odd
    )


def _told_time(series: pl.Series, told: Told) -> Understood:
    name, kind = series.name, series.dtype
    wrong = (
        f"column {name!r} is to be a time (--time {name} or times=[{name!r}]), but "
        f"{{}}; write times as 2024-12-31 14:05, as seconds since 1970, or as days "
        f"as Excel counts them."
    )
    if kind.is_temporal() and not isinstance(kind, pl.Duration):
        return Understood(name, "time", why="as asked for")
    if not (kind.is_numeric() or is_text(kind)):
        raise ValueError(wrong.format(f"is of type {kind}"))
    text = series.cast(pl.String)
    words = text.filter(has_value(text))
    if kind.is_numeric() or all_numbers(text):
        values = parse(series)
        finite = values[np.isfinite(values)]
        if unit := epoch_unit(finite):
            return Understood(name, "time", why="as asked for", time=TimeFormat(epoch=unit))
        if excel_days(finite):
            return Understood(name, "time", why="as asked for", time=TimeFormat(epoch=EXCEL))
        if kind.is_float():
            words = pl.Series(name, finite).cast(pl.Int64, strict=False).cast(pl.String).drop_nulls()
    found = recognize_times(words, day_first=told.day_first) if len(words) else None
    if found is None:
        raise ValueError(wrong.format("none of its cells can be read as one"))
    odd = odd_words_of(words, found.odd)
    return Understood(name, "time", why="as asked for", time=found.format, odd_words=odd)
