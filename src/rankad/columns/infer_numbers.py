"""What a column of numbers is: a measurement, a counter, a time, ids, codes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.columns import column_names
from rankad.columns import number_patterns as patterns
from rankad.columns.inferred import InferredColumn, doubtful, option
from rankad.columns.missing_values import as_written, marker_among_numbers, marker_among_times
from rankad.columns.times import EXCEL, TimeFormat, epoch_unit, excel_days
from rankad.columns.words import least_count

_OLDEST_YEAR, _LATEST_YEAR = 1980, 2040
_MOST_VERSIONS = 30
_OUTSIDE = "new rows may lie outside the range seen here"


def infer_numbers(
    name: str, numbers: Floats, min_count: int = 5, written: Callable[[float], str] = as_written
) -> InferredColumn:
    """Infer what a column of numbers is; `written` returns a number as its cells have it."""
    values = numbers[np.isfinite(numbers)]
    inferred = _infer(name, values, least_count(numbers.size, min_count))
    if inferred.kind == "time":
        cells = pl.Series(values)
        marker = marker_among_times(name, inferred.time.read(cells), cells.cast(pl.Int64))
        return inferred._replace(doubt=f"{inferred.doubt} Also, {marker}.") if marker else inferred
    if inferred.kind != "number" or inferred.doubt:
        return inferred
    if marker := marker_among_numbers(name, numbers, written):
        settled = f"If it is a measurement, confirm with {option(name, 'number')}."
        why = "one value may mark missing ones"
        return doubtful(name, "number", "unsure", why, marker, "", settled=settled)
    return inferred


def _infer(name: str, values: Floats, least: int) -> InferredColumn:
    if not values.size or values.min() == values.max():
        return InferredColumn(name, "number")
    distinct, counts = np.unique(values, return_counts=True)
    span = f"{as_written(distinct[0])} to {as_written(distinct[-1])}"
    grows, whole = patterns.only_grows(values), patterns.all_whole(values)
    unit = epoch_unit(values) if distinct.size >= 3 else ""
    is_time = _epoch_or_date(name, distinct, unit, grows=grows, whole=whole)
    if is_time is not None:
        what = is_time.describe()
        evidence = f"its numbers ({span}) look like {what}"
        return doubtful(name, "time", "likely", what, evidence, "number", time=is_time)
    if grows:
        way, why = "grow" if values[-1] > values[0] else "fall", "it only grows"
        if whole or patterns.regular_steps(values):
            evidence = f"its values only {way} ({span}), as row numbers, counters and clocks do"
            return doubtful(name, "id", "likely", why, evidence, "number")
        return doubtful(name, "number", "likely", why, f"its values only {way} ({span}), so {_OUTSIDE}", "id")
    if not whole and not unit:
        return (
            _versions(name, distinct, counts, least)
            or _drifting(name, values, span)
            or _counters(name, values, span, whole=False)
            or _dates(name, values, span, whole=False)
            or InferredColumn(name, "number")
        )
    if whole and patterns.is_permutation(values):
        evidence = f"its {values.size:,} whole numbers ({span}) never repeat, so they seem to name rows"
        return doubtful(name, "id", "likely", "no value repeats", evidence, "number")
    if unit:
        what = TimeFormat(epoch=unit).describe()
        evidence = f"its values ({span}) may be times, in {what}, and then {_OUTSIDE}"
        return doubtful(name, "number", "unsure", f"may be {what}", evidence, "time")
    if inferred := _dates(name, values, span, whole=whole) or _counters(name, values, span, whole=whole):
        return inferred
    if patterns.looks_like_ids(values) or patterns.fill_their_digits(values):
        evidence = f"its whole numbers ({span}) have many digits and hardly repeat, so they may name rows"
        return doubtful(name, "number", "unsure", "many digits, hardly repeated", evidence, "id")
    if distinct.size > 2 and column_names.suggests_id(name):
        frequent = counts.max() >= least
        evidence = f"its whole numbers ({span}) are names or codes by the name of the column"
        evidence += "" if frequent else ", and none is frequent enough to learn from"
        return doubtful(name, "category" if frequent else "id", "likely", "by its name", evidence, "number")
    if patterns.are_codes(values):
        evidence = (
            f"its {distinct.size} different whole numbers ({_few(distinct)}) lie far apart, as codes do"
        )
        return doubtful(name, "category", "likely", "few whole numbers far apart: codes", evidence, "number")
    if patterns.never_returns(values) or _are_years(name, distinct):
        evidence = f"its {distinct.size} whole numbers ({span}) may be years or batches, and then {_OUTSIDE}"
        return doubtful(name, "number", "unsure", "may be years or batches", evidence, "id")
    return _drifting(name, values, span) or InferredColumn(name, "number")


def _epoch_or_date(name: str, distinct: Floats, unit: str, *, grows: bool, whole: bool) -> TimeFormat | None:
    """Return how numbers are read as times, None if they are not times."""
    named = column_names.suggests_time(name)
    if unit and (grows or named):
        return TimeFormat(epoch=unit)
    if distinct.size >= 3 and excel_days(distinct) and named:
        return TimeFormat(epoch=EXCEL)
    if whole and distinct.size >= 3 and distinct[0] >= 19_000_101 and distinct[-1] <= 21_001_231:
        days = TimeFormat(("compact",))
        if days.read(pl.Series(distinct.astype(np.int64)).cast(pl.String)).null_count() == 0:
            return days
    return None


def _few(distinct: Floats) -> str:
    return ", ".join(map(as_written, distinct[:4])) + (" ..." if distinct.size > 4 else "")


def _versions(name: str, distinct: Floats, counts: Ints, least: int) -> InferredColumn | None:
    if not column_names.suggests_version(name) or distinct.size > _MOST_VERSIONS or counts.max() < least:
        return None
    evidence = (
        f"its {distinct.size} different numbers ({_few(distinct)}) are versions by the name of the column"
    )
    return doubtful(name, "category", "likely", "by its name", evidence, "number")


def _drifting(name: str, values: Floats, span: str) -> InferredColumn | None:
    """Doubt a number that grows or falls along the table, if not at every row."""
    direction = patterns.follows_row_order(values)
    if not direction:
        return None
    verb = "grows" if direction > 0 else "falls"
    evidence = (
        f"it {verb} along the table, if not at every row ({span}), as counters and times do, so {_OUTSIDE}"
    )
    settled = (
        f"If it is a measurement, confirm with {option(name, 'number')}; if it counts rows or tells the "
        f"time, leave it out with {option(name, 'id')} or {option(name, 'drop')}."
    )
    return doubtful(name, "number", "unsure", f"it {verb} along the table", evidence, "", settled=settled)


def _dates(name: str, values: Floats, span: str, *, whole: bool) -> InferredColumn | None:
    """Doubt numbers that may be dates or times in digits, or may count days."""
    since = patterns.days_since(values)
    what = since or (patterns.date_in_digits(values) if whole else "")
    if not what:
        return None
    evidence, settled = f"its values ({span}) may be {what}, and then {_OUTSIDE}", ""
    if not since:
        evidence = f"its values ({span}) may be dates or times written as {what}"
        settled = (
            f"If it is a measurement, confirm with {option(name, 'number')}; if not, write it as 2024-07-31 "
            f"14:30 to learn from it, or leave it out with {option(name, 'drop')}."
        )
    other = "time" if "Excel" in since else "id"
    return doubtful(name, "number", "unsure", f"may be {what}", evidence, other, settled=settled)


def _counters(name: str, values: Floats, span: str, *, whole: bool) -> InferredColumn | None:
    """Doubt numbers that are counters of several things, row by row."""
    n = patterns.interleaved_counters(values)
    if not n:
        return None
    evidence = f"it holds {n} series ({span}) that only grow, as counters or meters of {n} devices do"
    if whole:
        return doubtful(name, "id", "likely", f"{n} series that only grow", evidence, "number")
    return doubtful(
        name, "number", "likely", f"{n} series that only grow", f"{evidence}, so {_OUTSIDE}", "id"
    )


def _are_years(name: str, distinct: Floats) -> bool:
    """Tell whether whole numbers are years: by the name of the column, or as all recent years of a span."""
    recent = distinct[0] >= _OLDEST_YEAR and distinct[-1] <= _LATEST_YEAR
    every = distinct.size >= 3 and distinct.size == distinct[-1] - distinct[0] + 1
    return column_names.suggests_year(name) or bool(recent and every)
