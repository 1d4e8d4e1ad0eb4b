"""What a column of numbers is: a measurement, a counter, a time, names of rows, codes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from rankad._base.arrays import Floats
from rankad.columns.column_names import (
    is_named_like_a_time,
    is_named_like_a_version,
    is_named_like_a_year,
    is_named_like_an_id,
)
from rankad.columns.counters import counters_in_turn
from rankad.columns.dates_in_digits import date_in_digits, days_since
from rankad.columns.placeholders import placeholder_among, placeholder_time
from rankad.columns.stand_ins import missing_option, plainly
from rankad.columns.times import EXCEL, TimeFormat, epoch_unit, excel_days
from rankad.columns.understood import Understood, option, settle
from rankad.columns.whole_numbers import (
    all_whole,
    along_the_table,
    are_codes,
    fill_their_digits,
    is_permutation,
    looks_like_names,
    never_returns,
    only_grows,
    regular_steps,
)
from rankad.columns.words import least_count

__all__ = ["missing_in_disguise", "missing_time", "of_numbers"]

_OLDEST_YEAR, _LATEST_YEAR = 1980, 2040
_MOST_VERSIONS = 30


def of_numbers(
    name: str, numbers: Floats, min_count: int = 5, written: Callable[[float], str] = plainly
) -> Understood:
    """Say what a column of numbers is: a measurement, a counter, a time, codes.

    Parameters
    ----------
    name : str
    numbers : ndarray of shape (n,)
        NaN where a cell is missing.
    min_count : int
    written : callable
        Writes a number as the cells have it.
    """
    found = _of_numbers(name, numbers, min_count)
    if found.kind == "time":
        times = found.time.read(pl.Series(numbers[np.isfinite(numbers)]))
        if disguised := missing_time(name, times, pl.Series(numbers[np.isfinite(numbers)]).cast(pl.Int64)):
            found = found._replace(doubt=f"{found.doubt} Also, {disguised}.")
    if found.kind != "number" or found.doubt:
        return found
    doubt = missing_in_disguise(name, numbers, written)
    if not doubt:
        return found
    return found._replace(
        sure="unsure",
        why=found.why or "one value may stand for missing ones",
        doubt=f"column {name!r} is taken as a number: {doubt}. If it is measured like the others, say "
        f"{option(name, 'number')}.",
    )


def missing_in_disguise(name: str, numbers: Floats, written: Callable[[float], str] = plainly) -> str:
    """Say that one value may stand for missing ones, and what to do; nothing where none does."""
    values = numbers[np.isfinite(numbers)]
    found = placeholder_among(values)
    if found is None:
        return ""
    return (
        f"{found.value:.15g} stands in {found.n_cells:,} of {values.size:,} cells and {found.why}; if it "
        f"stands for a missing value, say {missing_option(name, written(found.value))}, since as a number it "
        f"hides what the others do"
    )


def missing_time(name: str, times: pl.Series, cells: pl.Series) -> str:
    """Say that one time may stand for missing ones, and what to do; nothing where none does.

    Parameters
    ----------
    name : str
    times, cells : polars Series of shape (n,)
        Times, null where there is none, and the cells that they are read from.
    """
    found = placeholder_time(times)
    if found is None:
        return ""
    when = pl.Series([int(found.value)]).cast(pl.Datetime("us")).dt.strftime("%Y-%m-%d")[0]
    at = int((times.to_physical() == int(found.value)).arg_max() or 0)
    return (
        f"{when} stands in {found.n_cells:,} of {len(times.drop_nulls()):,} cells and {found.why}; if it "
        f"stands for a missing time, say {missing_option(name, str(cells[at]))}"
    )


def _of_numbers(name: str, numbers: Floats, min_count: int) -> Understood:
    values = numbers[np.isfinite(numbers)]
    if not values.size or values.min() == values.max():
        return Understood(name, "number")
    span = f"{values.min():.15g} to {values.max():.15g}"
    grows, whole = only_grows(values), all_whole(values)
    unit = epoch_unit(values) if np.unique(values).size >= 3 else ""
    if unit and (grows or is_named_like_a_time(name)):
        doubt = (
            f"column {name!r} is taken as a time, in {unit} since 1970 ({span}). "
            f"{settle(name, 'time', 'number')}"
        )
        return Understood(name, "time", "likely", f"{unit} since 1970", doubt, time=TimeFormat(epoch=unit))
    if np.unique(values).size >= 3 and excel_days(values) and is_named_like_a_time(name):
        doubt = (
            f"column {name!r} is taken as a time, in days as Excel counts them ({span}). "
            f"{settle(name, 'time', 'number')}"
        )
        why = "days as Excel counts them"
        return Understood(name, "time", "likely", why, doubt, time=TimeFormat(epoch=EXCEL))
    if whole and _are_days(values):
        doubt = (
            f"column {name!r} is taken as a date, year, month and day as one number ({span}). "
            f"{settle(name, 'time', 'number')}"
        )
        why = "year, month and day as one number"
        return Understood(name, "time", "likely", why, doubt, time=TimeFormat(("compact",)))
    if grows and (whole or regular_steps(values)):
        doubt = (
            f"column {name!r} only {'grows' if values[-1] > values[0] else 'falls'} ({span}): it counts or "
            f"names rows, and is not learned from. {settle(name, 'id', 'number')}"
        )
        return Understood(name, "id", "likely", "it only grows", doubt)
    if grows:
        doubt = (
            f"column {name!r} only {'grows' if values[-1] > values[0] else 'falls'} ({span}), and is taken "
            f"as a number all the same: new rows may lie beyond all others. {settle(name, 'number', 'id')}"
        )
        return Understood(name, "number", "likely", "it only grows", doubt)
    if not whole and not unit:
        return (
            _of_versions(name, values, least_count(numbers.size, min_count))
            or _growing(name, values, span)
            or _in_turn(name, values, span)
            or _of_dates(name, values, span)
            or Understood(name, "number")
        )
    if whole and is_permutation(values):
        doubt = (
            f"column {name!r} holds {values.size:,} whole numbers ({span}) of which none comes twice: it "
            f"names rows, and is not learned from. {settle(name, 'id', 'number')}"
        )
        return Understood(name, "id", "likely", "no value comes twice", doubt)
    if unit:
        doubt = (
            f"column {name!r} holds numbers ({span}) that may be times, in {unit} since 1970, and is taken "
            f"as a number: new rows may lie beyond all others. {settle(name, 'number', 'time')}"
        )
        return Understood(name, "number", "unsure", f"may be {unit} since 1970", doubt)
    if found := _of_dates(name, values, span):
        return found
    if found := _in_turn(name, values, span):
        return found
    if looks_like_names(values) or fill_their_digits(values):
        doubt = (
            f"column {name!r} holds whole numbers ({span}) that may be names of rows, and is taken as a "
            f"number. {settle(name, 'number', 'id')}"
        )
        return Understood(name, "number", "unsure", "many digits, seldom the same", doubt)
    counts = np.unique(values, return_counts=True)[1]
    if counts.size > 2 and is_named_like_an_id(name):
        frequent = counts.max() >= least_count(numbers.size, min_count)
        taken = "each a category" if frequent else "and are not learned from, as none is frequent"
        doubt = (
            f"column {name!r} holds whole numbers ({span}) that by its name are names or codes: {taken}. "
            + (settle(name, "category", "number") if frequent else settle(name, "id", "number"))
        )
        return Understood(name, "category" if frequent else "id", "likely", "by its name", doubt)
    if are_codes(values):
        few = ", ".join(f"{value:.15g}" for value in np.unique(values)[:4])
        few += " ..." if np.unique(values).size > 4 else ""
        doubt = (
            f"column {name!r} holds {np.unique(values).size} different whole numbers far apart ({few}): "
            f"taken as codes, each a category. {settle(name, 'category', 'number')}"
        )
        return Understood(name, "category", "likely", "few whole numbers far apart: codes", doubt)
    if never_returns(values) or _is_year(name, values):
        doubt = (
            f"column {name!r} holds {counts.size} different whole numbers ({span}) that may be years or "
            f"batches, and is taken as a number: new rows may lie beyond all others. "
            f"{settle(name, 'number', 'id')}"
        )
        return Understood(name, "number", "unsure", "numbers of years or batches", doubt)
    return _growing(name, values, span) or Understood(name, "number")


def _of_versions(name: str, values: Floats, least: int) -> Understood | None:
    """Take few different numbers for versions, where the name of the column says so; else None."""
    different, counts = np.unique(values, return_counts=True)
    if not is_named_like_a_version(name) or different.size > _MOST_VERSIONS or counts.max() < least:
        return None
    few = ", ".join(f"{value:.15g}" for value in different[:4]) + (" ..." if different.size > 4 else "")
    doubt = (
        f"column {name!r} holds {different.size} different numbers ({few}) that by its name are versions: "
        f"each a category. {settle(name, 'category', 'number')}"
    )
    return Understood(name, "category", "likely", "by its name", doubt)


def _growing(name: str, values: Floats, span: str) -> Understood | None:
    """Doubt a number that grows or falls along the table, if not at every row; None where it does not."""
    way = along_the_table(values)
    if not way:
        return None
    verb = "grows" if way > 0 else "falls"
    doubt = (
        f"column {name!r} {verb} along the table, if not at every row ({span}): a counter or a time? It is "
        f"taken as a number, and new rows may lie beyond all others. If it is a measurement, say "
        f"{option(name, 'number')}; if it counts or names rows or tells the time, {option(name, 'id')} or "
        f"{option(name, 'drop')} leaves it out."
    )
    return Understood(name, "number", "unsure", f"it {verb} along the table", doubt)


def _of_dates(name: str, values: Floats, span: str) -> Understood | None:
    """Doubt numbers that may be dates or times in digits, or count days; None where they can be none."""
    since = days_since(values)
    what = since or (date_in_digits(values) if all_whole(values) else "")
    if not what:
        return None
    doubt = (
        f"column {name!r} holds numbers ({span}) that may be dates or times, as {what}, and is taken as a "
    )
    if since:
        doubt += "number: new rows may lie beyond all others. "
        doubt += settle(name, "number", "time" if "Excel" in since else "id")
    else:
        doubt += (
            f"number. Dates and times are learned from where they are written as 2024-07-31 14:30; "
            f"{option(name, 'drop')} leaves the column out; if it is a measurement, say "
            f"{option(name, 'number')}."
        )
    return Understood(name, "number", "unsure", f"may be {what}", doubt)


def _in_turn(name: str, values: Floats, span: str) -> Understood | None:
    """Doubt numbers that are counters of several things in turn; None where they are none."""
    n = counters_in_turn(values)
    if not n:
        return None
    whole = all_whole(values)
    taken = (
        "and is not learned from" if whole else "and is taken as a number: new rows may lie beyond all others"
    )
    kind = "id" if whole else "number"
    doubt = (
        f"column {name!r} holds {n} series of numbers in turn ({span}), each of which only grows: counters "
        f"or meters of {n} devices, {taken}. {settle(name, kind, 'number' if whole else 'id')}"
    )
    return Understood(name, kind, "likely", f"{n} series that only grow", doubt)


def _is_year(name: str, values: Floats) -> bool:
    """Tell whether whole numbers are years, by their name, or as all years of a span in our time."""
    if is_named_like_a_year(name):
        return True
    different = np.unique(values)
    recent = different[0] >= _OLDEST_YEAR and different[-1] <= _LATEST_YEAR
    return bool(different.size >= 3 and recent and different.size == different[-1] - different[0] + 1)


def _are_days(values: Floats) -> bool:
    """Tell whether whole numbers are all days such as 20241231."""
    if np.unique(values).size < 3 or values.min() < 19_000_101 or values.max() > 21_001_231:
        return False
    text = pl.Series(np.unique(values).astype(np.int64)).cast(pl.String)
    return TimeFormat(("compact",)).read(text).null_count() == 0
