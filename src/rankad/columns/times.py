"""How dates and times are written in a column, and what of them comes round again: hour, weekday, season."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.columns.month_names import MONTHS

__all__ = [
    "EPOCHS",
    "EXCEL",
    "ORDERS",
    "PARTS",
    "RecognizedTime",
    "TimeFormat",
    "epoch_unit",
    "excel_days",
    "fractions",
    "label",
    "parts_of",
    "recognize_times",
]

_CLOCK = (
    r"(?:[T ,:]\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?:Z|[A-Z]{3,4}|[+-]\d{2}:?\d{2}|[+-]\d{2})?)?$"
)
_NAMED = r"(?:de )?(?P<name>\p{L}{3,10})\.?(?: de\b)?"
_WEEKDAY = r"(?:\p{L}{3,10}\.?,? )?"
# A month that stands without its day: only names that nobody takes for another word.
_MONTH_NAME = (
    r"(?P<name>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))\.?"
)
# Groups that never match.
_NO_CLOCK = r"(?P<hour>:)?(?P<minute>:)?(?P<second>:)?"
# Of the day, the month and the year, what comes first; in words, the month has a name.
_SHAPES = {
    "ymd": rf"^(?P<year>\d{{4}})[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}}){_CLOCK}",
    "dmy": rf"^(?P<day>\d{{1,2}})[-/.](?P<month>\d{{1,2}})[-/.](?P<year>\d{{4}}){_CLOCK}",
    "mdy": rf"^(?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}})[-/.](?P<year>\d{{4}}){_CLOCK}",
    "dmy short": rf"^(?P<day>\d{{2}})[-/.](?P<month>\d{{2}})[-/.](?P<year>\d{{2}}){_CLOCK}",
    "mdy short": rf"^(?P<month>\d{{2}})[-/.](?P<day>\d{{2}})[-/.](?P<year>\d{{2}}){_CLOCK}",
    "dmy slashed short": rf"^(?P<day>\d{{1,2}})/(?P<month>\d{{1,2}})/(?P<year>\d{{2}}){_CLOCK}",
    "mdy slashed short": rf"^(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/(?P<year>\d{{2}}){_CLOCK}",
    "dmy in words short": rf"^(?P<day>\d{{1,2}})[-/ ]{_NAMED}[-/ ]'?(?P<year>\d{{2}}){_CLOCK}",
    "dmy in words": rf"^{_WEEKDAY}(?P<day>\d{{1,2}})\.?[-/ ]{_NAMED}[-/ ](?P<year>\d{{4}})"
    rf"{_CLOCK}",
    "mdy in words": rf"^{_WEEKDAY}{_NAMED} (?P<day>\d{{1,2}}),? (?P<year>\d{{4}}){_CLOCK}",
    "my in words": rf"^{_MONTH_NAME}[-/, ]\s*(?P<year>\d{{4}}){_NO_CLOCK}$",
    "my in words short": rf"^{_MONTH_NAME}[-/' ]'?(?P<year>\d{{2}}){_NO_CLOCK}$",
    "ym in words": rf"^(?P<year>\d{{4}})[-/ ]{_MONTH_NAME}{_NO_CLOCK}$",
    "ym": r"^(?P<year>\d{4})[-/](?P<month>\d{2})" + _NO_CLOCK + "$",
    "compact": r"^(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?:[T ]?(?P<hour>\d{2})(?P<minute>\d{2})"
    r"(?P<second>\d{2})?Z?)?$",
    "clock": r"^(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?$",
}
ORDERS = tuple(_SHAPES)
_STANDARD = ("ymd", "clock")
_SAID = {
    "ymd": "year first",
    "ym": "year and month",
    "my": "month and year",
    "dmy": "day first",
    "mdy": "month first",
    "clock": "a time of day",
    "compact": "year, month and day as one number",
}

# Of numbers: units since 1970, in parts of a second.
# Days since the end of 1899, as spreadsheets count them.
EXCEL = "excel"
EPOCHS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAYS_TO_1970, _LATEST_DAY = 25_569.0, 200_000.0
_YEAR_2000, _YEAR_2100 = 946_684_800, 4_102_444_800

PARTS = ("hour", "weekday", "month")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
# A part is learned from where the sample is so long, in days, that all of the circle could be seen.
_LEAST_DAYS = {"hour": 2.0, "weekday": 21.0, "month": 365.0}
_MINUTES_A_DAY, _DAYS_A_YEAR = 1440, 365.25


@dataclass(frozen=True)
class TimeFormat:
    """How times are written.

    Attributes
    ----------
    orders : tuple of str
        Those of `ORDERS` that cells of text have; the first that reads a cell is taken.
    epoch : str
        Numbers count these units (`EPOCHS`) since 1970, or days as `EXCEL` does; nothing, where they are
        none.

    Examples
    --------
    >>> TimeFormat(("dmy",)).read(pl.Series(["31.12.2024 14:05", "13.13.2024"])).to_list()
    [datetime.datetime(2024, 12, 31, 14, 5), None]
    """

    orders: tuple[str, ...] = ()
    epoch: str = ""

    def read(self, series: pl.Series) -> pl.Series:
        """Return times as they stand on the wall clock, without a time zone; null where there is none."""
        kind = series.dtype
        if kind == pl.Date:
            return series.cast(pl.Datetime("us"))
        if kind == pl.Time:
            # On a day that does not matter.
            return pl.Series(series.name, series.cast(pl.Duration("us")).to_physical()).cast(
                pl.Datetime("us")
            )
        if isinstance(kind, pl.Datetime):
            return series.dt.replace_time_zone(None).cast(pl.Datetime("us"))
        if self.epoch == EXCEL and (kind.is_numeric() or kind in (pl.String, pl.Null)):
            days = series.cast(pl.Float64, strict=False)
            days = days.set(~(days.abs() < _LATEST_DAY), None)
            # To the second: a day in a float is no better.
            seconds = ((days - _DAYS_TO_1970) * 86_400.0).round().cast(pl.Int64)
            return (seconds * 1_000_000).cast(pl.Datetime("us"))
        if self.epoch and (kind.is_numeric() or kind in (pl.String, pl.Null)):
            numbers = series.cast(pl.Float64, strict=False)
            numbers = numbers.set(~(numbers.abs() < _YEAR_2100 * 3.0 * EPOCHS[self.epoch]), None)
            return (numbers * (1e6 / EPOCHS[self.epoch])).cast(pl.Int64).cast(pl.Datetime("us"))
        if kind.is_numeric():
            series = series.cast(pl.Int64, strict=False)
        text = series.cast(pl.String, strict=False)
        found = pl.Series(series.name, [None], dtype=pl.Datetime("us")).new_from_index(0, len(series))
        # What was typed as a time may come as text, from a file without types.
        for order in self.orders or _STANDARD:
            found = found.zip_with(found.is_not_null(), _read(text, order))
        return found

    def describe(self) -> str:
        """Say how times are written."""
        if self.epoch:
            return "days as Excel counts them" if self.epoch == EXCEL else f"{self.epoch} since 1970"
        said = [_SAID[order.split(" ")[0]] for order in self.orders]
        return " or ".join(dict.fromkeys(said))


class RecognizedTime(NamedTuple):
    """How the cells of a column can be read as times.

    Attributes
    ----------
    format : TimeFormat
    odd : ndarray of int
        The cells that cannot be read so.
    ambiguous : bool
        Whether days and months could be the other way about.
    """

    format: TimeFormat
    odd: Ints
    ambiguous: bool


def recognize_times(words: pl.Series, *, day_first: bool | None = None) -> RecognizedTime | None:
    """Find the orders of day, month and year that read cells of text as times; None where none reads any.

    Parameters
    ----------
    words : polars Series of str
        Without missing values.
    day_first : bool, optional
        What the user says; None lets the cells decide.

    Examples
    --------
    >>> recognize_times(pl.Series(["03/04/2024", "25/12/2024"]))
    RecognizedTime(format=TimeFormat(orders=('dmy',), epoch=''), odd=array([], dtype=int64), ambiguous=False)
    """
    if not words.str.contains(r"\d").any():
        return None
    slashes = words.str.contains("/", literal=True).to_numpy()
    none = np.zeros(len(words), dtype=np.bool_)
    read = {
        order: _read(words, order).is_not_null().to_numpy()
        if "slashed" not in order or slashes.any()
        else none
        for order in ORDERS
    }
    ambiguous = False
    for order in ("dmy short", "mdy short"):
        # Cells with slashes are for the orders named after them, where days may have one digit.
        read[order] &= ~slashes
    for short in ("", " short", " slashed short"):
        days, months = read["dmy" + short], read["mdy" + short]
        if day_first is not None:
            read.pop(("mdy" if day_first else "dmy") + short)
            continue
        ambiguous |= bool(days.any() and (days == months).all() and not (words.str.contains(r"^\d+\.")).all())
        # The better reader goes first; of equal ones, days first, as most of the world has it.
        read.pop(("mdy" if days.sum() >= months.sum() else "dmy") + short)
    if "compact" in read and not read["compact"].all():
        # So many numbers have eight digits.
        read.pop("compact")
    left = np.ones(len(words), dtype=np.bool_)
    orders: list[str] = []
    while any((found & left).any() for found in read.values()):
        best = max(read, key=lambda order: int((read[order] & left).sum()))
        orders.append(best)
        left &= ~read.pop(best)
    if not orders:
        return None
    return RecognizedTime(TimeFormat(tuple(orders)), np.flatnonzero(left), ambiguous)


def epoch_unit(values: Floats) -> str:
    """Return the unit in which whole numbers could all be times of this century, nothing if there is none.

    >>> epoch_unit(np.array([1.7e9, 1.7e9 + 60])), epoch_unit(np.array([5.0, 7.0]))
    ('s', '')
    """
    if values.size:
        for unit, per_second in EPOCHS.items():
            if values.min() / per_second >= _YEAR_2000 and values.max() / per_second < _YEAR_2100:
                return unit
    return ""


def excel_days(values: Floats, earliest: float = 20_000.0, latest: float = 80_000.0) -> bool:
    """Tell whether numbers could all be days as Excel counts them, by default from 1954 to 2119.

    >>> excel_days(np.array([45123.0, 45124.5])), excel_days(np.array([45123.0, 100.0]))
    (True, False)
    """
    return bool(values.size and values.min() >= earliest and values.max() < latest)


def parts_of(times: pl.Series) -> tuple[str, ...]:
    """Return which of `PARTS` vary in nominal times, and were seen often enough to come round again."""
    present = times.drop_nulls()
    if not len(present):
        return ()
    micro = present.to_physical()
    least, most = int(micro.min()), int(micro.max())  # type: ignore[arg-type]
    days = (most - least) / 86_400e6
    # Times without a date all lie on one day.
    clock_only = least >= 0 and most < 86_400e6
    found = fractions(present)
    varying = {part: np.unique(found[part]).size > 1 for part in PARTS}
    if varying["month"] and not varying["hour"] and bool((present.dt.day() == 1).all()):
        # Months: on which weekday they begin says nothing about them.
        varying["weekday"] = False
    if clock_only:
        return ("hour",) if varying["hour"] else ()
    return tuple(part for part in PARTS if varying[part] and days >= _LEAST_DAYS[part])


def fractions(times: pl.Series) -> dict[str, Floats]:
    """Return how far round its circle each part of each time is, from 0 to 1; NaN where there is no time."""
    minutes = times.dt.hour().cast(pl.Float64) * 60 + times.dt.minute().cast(pl.Float64)
    return {
        "hour": (minutes / _MINUTES_A_DAY).to_numpy(),
        "weekday": ((times.dt.weekday().cast(pl.Float64) - 1) / 7).to_numpy(),
        "month": ((times.dt.ordinal_day().cast(pl.Float64) - 1) / _DAYS_A_YEAR).to_numpy(),
    }


def label(part: str, fraction: float) -> str:
    """Write a part of a time.

    >>> label("hour", 0.5), label("weekday", 6 / 7), label("month", 0.999)
    ('12:00', 'Sunday', 'December')
    """
    if part == "hour":
        minutes = round(fraction * _MINUTES_A_DAY) % _MINUTES_A_DAY
        return f"{minutes // 60:02d}:{minutes % 60:02d}"
    if part == "weekday":
        return _WEEKDAYS[round(fraction * 7) % 7]
    return _MONTH_NAMES[min(int(fraction * 12), 11)]


def _read(text: pl.Series, order: str) -> pl.Series:
    found = text.str.strip_chars().str.extract_groups(_SHAPES[order]).struct.unnest()
    if all(group.null_count() == len(group) for group in found):
        # Most orders read no cell at all; what follows takes many times as long as to see that.
        return pl.Series(text.name, [None] * len(text), dtype=pl.Datetime("us"))
    there = set(found.columns)
    if "name" in there:
        name = found["name"].str.to_lowercase()
        month = name.replace_strict(MONTHS, default=None, return_dtype=pl.Int64).cast(pl.String)
    else:
        month = found["month" if "month" in there else "hour"]
    if "year" in there:
        year = found["year"]
        if order.endswith("short"):
            year = "20" + year
        day = found["day"].str.zfill(2) if "day" in there else "01"
        date = year + "-" + month.str.zfill(2) + "-" + day
    else:
        date = found["hour"].is_not_null().replace_strict([True], ["1970-01-01"], default=None)
    hour = found["hour"].fill_null("0").cast(pl.Int64, strict=False)
    if "half" in there:
        half = found["half"].str.to_lowercase().str.slice(0, 1)
        hour = hour.set((half.is_not_null() & ~hour.is_between(1, 12)).fill_null(False), None)
        hour = (hour % 12).zip_with(half.is_not_null(), hour) + 12 * (half == "p").fill_null(False).cast(
            pl.Int64
        )
    clock = hour.cast(pl.String).str.zfill(2) + ":" + found["minute"].fill_null("00") + ":"
    stamp = date + " " + clock + found["second"].fill_null("00")
    return stamp.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us").alias(text.name)
