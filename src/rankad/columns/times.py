"""How dates and times are written in a column, and their periodic parts: hour, weekday, season."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints

_CLOCK = (
    r"(?:[T ,:]\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?:Z|[A-Z]{3,4}|[+-]\d{2}:?\d{2}|[+-]\d{2})?)?$"
)
_NAMED = r"(?:de )?(?P<name>\p{L}{3,10})\.?(?: de\b)?"
_WEEKDAY = r"(?:\p{L}{3,10}\.?,? )?"
# A month without a day: only names that are not words of their own.
_MONTH_NAME = (
    r"(?P<name>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))\.?"
)
# Months in the languages most often found in tables.
_MONTHS = (
    "january february march april may june july august september october november december",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
)


def _months_by_name() -> dict[str, int]:
    """Return the month of each name and of its abbreviations that are unambiguous."""
    months: dict[str, set[int]] = {"mrz": {3}}
    for names in _MONTHS:
        for month, name in enumerate(names.split(), start=1):
            for end in range(3, len(name) + 1):
                months.setdefault(name[:end], set()).add(month)
    return {name: numbers.pop() for name, numbers in months.items() if len(numbers) == 1}


_MONTH_OF = _months_by_name()
# Groups that never match.
_NO_CLOCK = r"(?P<hour>:)?(?P<minute>:)?(?P<second>:)?"
# By the order of day, month and year; "in words", the month has a name.
_SHAPES = {
    "ymd": rf"^(?P<year>\d{{4}})[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}}){_CLOCK}",
    "dmy": rf"^(?P<day>\d{{1,2}})[-/.](?P<month>\d{{1,2}})[-/.](?P<year>\d{{4}}){_CLOCK}",
    "mdy": rf"^(?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}})[-/.](?P<year>\d{{4}}){_CLOCK}",
    "dmy short": rf"^(?P<day>\d{{2}})[-/.](?P<month>\d{{2}})[-/.](?P<year>\d{{2}}){_CLOCK}",
    "mdy short": rf"^(?P<month>\d{{2}})[-/.](?P<day>\d{{2}})[-/.](?P<year>\d{{2}}){_CLOCK}",
    "dmy slashed short": rf"^(?P<day>\d{{1,2}})/(?P<month>\d{{1,2}})/(?P<year>\d{{2}}){_CLOCK}",
    "mdy slashed short": rf"^(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/(?P<year>\d{{2}}){_CLOCK}",
    "dmy in words short": rf"^(?P<day>\d{{1,2}})[-/ ]{_NAMED}[-/ ]'?(?P<year>\d{{2}}){_CLOCK}",
    "dmy in words": rf"^{_WEEKDAY}(?P<day>\d{{1,2}})\.?[-/ ]{_NAMED}[-/ ](?P<year>\d{{4}}){_CLOCK}",
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
_DESCRIBED = {
    "ymd": "year first",
    "ym": "year and month",
    "my": "month and year",
    "dmy": "day first",
    "mdy": "month first",
    "clock": "a time of day",
    "compact": "year, month and day as one number",
}

# Numbers count units since 1970, each so many in a second, or days since the end of 1899 as Excel does.
EXCEL = "excel"
EPOCHS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_DAYS_TO_1970, _LATEST_DAY = 25_569.0, 200_000.0
_YEAR_2000, _YEAR_2100 = 946_684_800, 4_102_444_800

PARTS = ("hour", "weekday", "month")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# A part is learned from if the rows span this many days, so that its whole cycle was seen.
_LEAST_DAYS = {"hour": 2.0, "weekday": 21.0, "month": 365.0}
_MINUTES_A_DAY, _DAYS_A_YEAR = 1440, 365.25


@dataclass(frozen=True)
class TimeFormat:
    """How times are written.

    Examples
    --------
    >>> TimeFormat(("dmy",)).read(pl.Series(["31.12.2024 14:05", "13.13.2024"])).to_list()
    [datetime.datetime(2024, 12, 31, 14, 5), None]
    """

    orders: tuple[str, ...] = ()  # those of `ORDERS` in use; the first one that can read a cell does
    epoch: str = ""  # the unit (`EPOCHS`) since 1970, or `EXCEL`, if numbers are times

    def read(self, series: pl.Series) -> pl.Series:
        """Return times on the wall clock, without a time zone; null where a cell is none."""
        kind = series.dtype
        if kind == pl.Time:
            # On a day that does not matter.
            series = pl.Series(series.name, series.cast(pl.Duration("us")).to_physical())
            return series.cast(pl.Datetime("us"))
        if kind.is_temporal() and not isinstance(kind, pl.Duration):
            timed = series.dt.replace_time_zone(None) if isinstance(kind, pl.Datetime) else series
            return timed.cast(pl.Datetime("us"))
        if self.epoch and (kind.is_numeric() or kind in (pl.String, pl.Null)):
            numbers = series.cast(pl.Float64, strict=False)
            if self.epoch == EXCEL:
                numbers = numbers.set(~(numbers.abs() < _LATEST_DAY), None)
                # To the second: a day in a float is no better.
                seconds = ((numbers - _DAYS_TO_1970) * 86_400.0).round().cast(pl.Int64)
                return (seconds * 1_000_000).cast(pl.Datetime("us"))
            numbers = numbers.set(~(numbers.abs() < _YEAR_2100 * 3.0 * EPOCHS[self.epoch]), None)
            return (numbers * (1e6 / EPOCHS[self.epoch])).cast(pl.Int64).cast(pl.Datetime("us"))
        if kind.is_numeric():
            series = series.cast(pl.Int64, strict=False)
        text = series.cast(pl.String, strict=False)
        times = pl.Series(series.name, [None], dtype=pl.Datetime("us")).new_from_index(0, len(series))
        # A column that was typed as times may come as text from a file without types.
        for order in self.orders or _STANDARD:
            times = times.zip_with(times.is_not_null(), _read(text, order))
        return times

    def describe(self) -> str:
        """Say how times are written."""
        if self.epoch:
            return (
                "days as Excel counts them"
                if self.epoch == EXCEL
                else f"{_EPOCH_NAMES[self.epoch]} since 1970"
            )
        return " or ".join(dict.fromkeys(_DESCRIBED[order.split(" ")[0]] for order in self.orders))


class RecognizedTime(NamedTuple):
    """How to read a column as times, the cells that cannot be read, and whether days may be months."""

    format: TimeFormat
    odd: Ints
    ambiguous: bool


def recognize_times(words: pl.Series, *, day_first: bool | None = None) -> RecognizedTime | None:
    """Find the orders of day, month and year that read text without missing values; None if none does.

    `day_first` is what the user says; None infers it from the cells.

    >>> recognize_times(pl.Series(["03/04/2024", "25/12/2024"]))
    RecognizedTime(format=TimeFormat(orders=('dmy',), epoch=''), odd=array([], dtype=int64), ambiguous=False)
    """
    if not words.str.contains(r"\d").any():
        return None
    slashes = words.str.contains("/", literal=True).to_numpy()
    read = {
        order: _read(words, order).is_not_null().to_numpy()
        for order in ORDERS
        if "slashed" not in order or slashes.any()
    }
    ambiguous = False
    for order in ("dmy short", "mdy short"):
        # Cells with slashes belong to the slashed orders, where days may have one digit.
        read[order] &= ~slashes
    for short in ("", " short", " slashed short"):
        if "dmy" + short not in read:
            continue
        days, months = read["dmy" + short], read["mdy" + short]
        if day_first is not None:
            read.pop(("mdy" if day_first else "dmy") + short)
            continue
        ambiguous |= bool(days.any() and (days == months).all() and not (words.str.contains(r"^\d+\.")).all())
        # Where both read as many cells, the day is first, as in most of the world.
        read.pop(("mdy" if days.sum() >= months.sum() else "dmy") + short)
    if "compact" in read and not read["compact"].all():
        # Other numbers have eight digits too.
        read.pop("compact")
    left = np.ones(len(words), dtype=np.bool_)
    orders: list[str] = []
    while any((readable & left).any() for readable in read.values()):
        best = max(read, key=lambda order: int((read[order] & left).sum()))
        orders.append(best)
        left &= ~read.pop(best)
    if not orders:
        return None
    return RecognizedTime(TimeFormat(tuple(orders)), np.flatnonzero(left), ambiguous)


def epoch_unit(values: Floats) -> str:
    """Return the unit in which numbers could all be times of this century, "" if there is none."""
    if values.size:
        for unit, per_second in EPOCHS.items():
            if values.min() / per_second >= _YEAR_2000 and values.max() / per_second < _YEAR_2100:
                return unit
    return ""


def excel_days(values: Floats, earliest: float = 20_000.0, latest: float = 80_000.0) -> bool:
    """Tell whether numbers could all be days as Excel counts them, from 1954 to 2119 by default."""
    return bool(values.size and values.min() >= earliest and values.max() < latest)


def parts_of(times: pl.Series) -> tuple[str, ...]:
    """Return those of `PARTS` that vary in nominal times which span their whole cycle."""
    present = times.drop_nulls()
    if not len(present):
        return ()
    micro = present.to_physical()
    least, most = int(micro.min()), int(micro.max())  # type: ignore[arg-type]
    days = (most - least) / 86_400e6
    # Times without a date are all on 1970-01-01.
    clock_only = least >= 0 and most < 86_400e6
    varying = {part: np.unique(fraction).size > 1 for part, fraction in fractions(present).items()}
    if varying["month"] and not varying["hour"] and bool((present.dt.day() == 1).all()):
        # Whole months: the weekday on which they begin means nothing.
        varying["weekday"] = False
    if clock_only:
        return ("hour",) if varying["hour"] else ()
    return tuple(part for part in PARTS if varying[part] and days >= _LEAST_DAYS[part])


def fractions(times: pl.Series) -> dict[str, Floats]:
    """Return how far each part of each time is into its cycle, from 0 to 1; NaN where there is no time."""
    minutes = times.dt.hour().cast(pl.Float64) * 60 + times.dt.minute().cast(pl.Float64)
    return {
        "hour": (minutes / _MINUTES_A_DAY).to_numpy(),
        "weekday": ((times.dt.weekday().cast(pl.Float64) - 1) / 7).to_numpy(),
        "month": ((times.dt.ordinal_day().cast(pl.Float64) - 1) / _DAYS_A_YEAR).to_numpy(),
    }


def label(part: str, fraction: float) -> str:
    """Write a part of a time."""
    if part == "hour":
        minutes = round(fraction * _MINUTES_A_DAY) % _MINUTES_A_DAY
        return f"{minutes // 60:02d}:{minutes % 60:02d}"
    if part == "weekday":
        return _WEEKDAYS[round(fraction * 7) % 7]
    return _MONTHS[0].split()[min(int(fraction * 12), 11)].capitalize()


def _read(text: pl.Series, order: str) -> pl.Series:
    parts = text.str.strip_chars().str.extract_groups(_SHAPES[order]).struct.unnest()
    if all(group.null_count() == len(group) for group in parts):
        # Most orders read no cell at all; what follows is many times slower.
        return pl.Series(text.name, [None] * len(text), dtype=pl.Datetime("us"))
    there = set(parts.columns)
    if "name" in there:
        name = parts["name"].str.to_lowercase()
        month = name.replace_strict(_MONTH_OF, default=None, return_dtype=pl.Int64).cast(pl.String)
    else:
        month = parts["month" if "month" in there else "hour"]
    if "year" in there:
        year = parts["year"]
        if order.endswith("short"):
            year = "20" + year
        day = parts["day"].str.zfill(2) if "day" in there else "01"
        date = year + "-" + month.str.zfill(2) + "-" + day
    else:
        date = parts["hour"].is_not_null().replace_strict([True], ["1970-01-01"], default=None)
    hour = parts["hour"].fill_null("0").cast(pl.Int64, strict=False)
    if "half" in there:
        half = parts["half"].str.to_lowercase().str.slice(0, 1)
        hour = hour.set((half.is_not_null() & ~hour.is_between(1, 12)).fill_null(False), None)
        afternoon = (half == "p").fill_null(False).cast(pl.Int64)
        hour = (hour % 12).zip_with(half.is_not_null(), hour) + 12 * afternoon
    clock = hour.cast(pl.String).str.zfill(2) + ":" + parts["minute"].fill_null("00") + ":"
    stamp = date + " " + clock + parts["second"].fill_null("00")
    return stamp.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us").alias(text.name)
