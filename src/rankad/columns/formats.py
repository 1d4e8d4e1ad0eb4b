"""How numbers are written in text: 70,7 and 1.234,5, 69.6%, 1.5 mm/s, € 12.50, (3.20)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl

from rankad._base.arrays import Ints
from rankad.io.errors import shown
from rankad.io.numbers import plain_numbers, with_plain_minus

_CURRENCY = (
    r"[€$£¥₹₽]|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|AUD|CAD|BRL|ZAR|Fr\.|kr\.?|Rs\.?|R\$|US\$"
)
_UNIT = r"[\p{L}%‰°µμΩ€$£¥₹₽][\p{L}%‰°µμΩ/·*^²³]*[0-9]?(?: ?\p{L}+)?"
_NUMBER = r"[\d.,][\d.,'’ _]*?(?:[eE][+-]?\d+)?"
_SHAPE = rf"^([+-])?\s*({_CURRENCY})?\s*([+-])?({_NUMBER})\s*({_UNIT})?$"
_HEXADECIMAL = r"^[+-]?0[xX]"
# Signs as accountants write them: (12.50) and 12.50-.
_IN_PARENTHESES, _MINUS_LAST = r"^\((.*\d.*)\)$", r"^(.*\d)\s*-$"

# Units that are not parts of names; any other is taken as a unit with a warning.
_UNITS = """
% ‰ € $ £ ¥ ₹ ₽ EUR USD GBP CHF JPY CNY INR SEK NOK DKK PLN CZK AUD CAD BRL ZAR Fr. kr kr. Rs Rs. R$ US$
°C °F °K K ° nm µm μm um mm cm dm m km mi ft in yd mm/s cm/s m/s km/h kmh mph m/s2 m/s² mm/s2 kg g mg µg μg t
lb lbs oz s sec ms µs μs us ns min h hr hrs d days V mV kV A mA µA W mW kW MW GW Wh kWh MWh VA kVA J kJ MJ N
kN Nm bar mbar Pa kPa hPa MPa psi Hz kHz MHz GHz dB dBm rpm rad deg Ω kΩ MΩ ohm F µF nF pF H mH l L ml mL m2
m3 m² m³ cm2 cm3 m3/h m³/h l/min L/min l/h l/s kg/h kg/m3 mol ppm ppb B kB KB MB GB TB KiB MiB GiB bit kbit/s
Mbit/s MB/s lx lm cd pH bpm mmHg pcs
"""
KNOWN_UNITS = frozenset(_UNITS.split())
# Factors: a cell without one is likely another number.
MULTIPLES = frozenset(["%", "‰", "k", "K", "M", "G", "bn", "mn", "Mio", "Mrd"])


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Examples
    --------
    >>> NumberFormat(decimal=",", thousands=".").read(pl.Series(["1.234,5", "70,7", "12.3", "x"])).to_list()
    [1234.5, 70.7, None, None]
    """

    decimal: str = "."
    thousands: str = ""  # between groups of three digits; "" if they are not grouped
    unit: str = ""  # after each number, or before it as with currencies
    bare: bool = True  # whether cells without the unit are numbers too
    accounting: bool = False  # whether (12.50) and 12.50- are negative

    def read(self, text: pl.Series) -> pl.Series:
        """Return text as Float64, null where it is not a number in this format."""
        if self == PLAIN:
            return plain_numbers(text)
        parts = _split(text, accounting=self.accounting)
        digits = parts["number"]
        numbers = _grouped(digits, self.decimal, self.thousands)
        if self.decimal == "," and not self.thousands and digits.str.contains(".", literal=True).any():
            # No cell was above 999 before. With the comma behind it, a point can only separate thousands.
            both = digits.set(~digits.str.contains(",", literal=True).fill_null(False), None)
            numbers = numbers.fill_null(_grouped(both, ",", "."))
        numbers = numbers * parts["sign"]
        fits = parts["unit"] == self.unit
        if self.bare:
            fits |= parts["unit"] == ""
        return numbers.set(~fits.fill_null(False), None)

    def describe(self) -> str:
        """Say how numbers are written, "" if plainly.

        >>> NumberFormat(decimal=",", unit="mm/s").describe()
        "written with a decimal comma, in 'mm/s'"
        """
        marks = {
            "with a decimal comma": self.decimal == ",",
            f"with {shown(self.thousands)} between thousands": self.thousands,
            "with (1) or 1- for -1": self.accounting,
        }
        parts = [" and ".join(text for text, there in marks.items() if there)]
        parts += [f"in {shown(self.unit)}"] if self.unit else []
        return "written " + ", ".join(filter(None, parts)) if any(parts) else ""


PLAIN = NumberFormat()

# Values this many times as large as all others are far from them.
_FAR = 10.0
_SIGN = r"^\s*[+-]?"

# Decimal marks, with thousands separators or none; the first is preferred if several read the same numbers.
_SEPARATORS = (".", ",", ".,", ",.", ".'", ". ", ", ", ",'", "._")


class RecognizedNumbers(NamedTuple):
    """How to read the cells of a column as numbers."""

    format: NumberFormat
    odd: Ints  # cells that cannot be read
    rival: NumberFormat | None  # another format that reads as many cells, but as other numbers
    ambiguous: Ints  # cells such as 1,234, read as thousands although hardly any cell shows it


def recognize_numbers(
    words: pl.Series, *, decimal: str | None = None, elsewhere: str | None = None
) -> RecognizedNumbers:
    """Find the format that reads the most cells of text, without missing values, as numbers.

    `decimal` is the decimal mark that the user gives. `elsewhere` is that of other columns; it decides where
    cells fit both marks.

    >>> recognize_numbers(pl.Series(["70,7", "1.234,5", "ERR"]))
    RecognizedNumbers(format=NumberFormat(decimal=',', thousands='.', unit='', bare=True, accounting=False),
                      odd=array([2]), rival=None, ambiguous=array([], dtype=int64))
    """
    accounting = bool((words.str.contains(_IN_PARENTHESES) | words.str.contains(_MINUS_LAST)).any())
    parts = _split(words, accounting=accounting)
    unit, bare = _unit_of(parts)
    fits = ((parts["unit"] == unit) | ((parts["unit"] == "") if bare else pl.lit(False))).alias("fits")
    digits = parts.select(pl.when(fits).then(pl.col("number"))).to_series()
    tried = [
        (
            NumberFormat(marks[0], marks[1:], unit, bare, accounting),
            _likely(digits, marks[0], marks[1:], given=bool(decimal)),
        )
        for marks in _SEPARATORS
        if decimal in (None, marks[0])
    ]
    fewest_odd = min(values.null_count() for _, values in tried)
    best = [each for each in tried if each[1].null_count() == fewest_odd]
    rivals = _rivals(best, best[0])
    if rivals:
        form = best[0][0]
        points = points_among_whole_numbers(digits) if (form.decimal, form.thousands) == (".", "") else None
        if settled := [each for each in best if each[0].decimal == elsewhere]:
            best, rivals = settled, _rivals(best, settled[0])
        elif (form.decimal, form.thousands) == (",", "") or points == "thousands":
            # Groups of three digits throughout, as 101,802, are thousands.
            best, rivals = rivals, best
        elif points == "" and form == PLAIN:
            # Neither other columns nor other cells suggest that a point could separate thousands.
            rivals = []
    form, values = best[0]
    ambiguous = np.empty(0, dtype=np.int64)
    if form.thousands in (".", ",") and form.decimal not in (decimal, elsewhere):
        ambiguous = ambiguous_groups(digits, form.decimal, form.thousands)
    odd = np.flatnonzero(values.is_null().to_numpy())
    return RecognizedNumbers(form, odd, rivals[0][0] if rivals else None, ambiguous)


_Read: TypeAlias = tuple[NumberFormat, pl.Series]


def _rivals(tried: list[_Read], chosen: _Read) -> list[_Read]:
    """Return the formats that read other numbers than the chosen one."""
    return [each for each in tried if not each[1].eq_missing(chosen[1]).all()]


def _likely(digits: pl.Series, decimal: str, thousands: str, *, given: bool) -> pl.Series:
    """Return digits as numbers, null also where they likely have decimals after the other mark."""
    values = _grouped(digits, decimal, thousands)
    if given or thousands not in (".", ","):
        return values
    return values.set(stray_groups(digits, values, decimal, thousands), None)


def _split(text: pl.Series, *, accounting: bool) -> pl.DataFrame:
    """Return the sign, the digits and the unit of each cell; null where it has another shape."""
    clean = with_plain_minus(text)
    clean = clean.str.replace_all("[\u00a0\u202f\u2009]", " ").str.replace_all("’", "'", literal=True)
    negative = pl.Series([False], dtype=pl.Boolean).new_from_index(0, len(text))
    if accounting:
        for shape in (_IN_PARENTHESES, _MINUS_LAST):
            marked = clean.str.contains(shape).fill_null(False)
            clean = clean.str.replace(shape, "$1").zip_with(marked, clean)
            negative ^= marked
    groups = clean.str.strip_chars().str.extract_groups(_SHAPE).struct.unnest()
    first, currency, second, number, unit = (groups[str(at)] for at in range(1, 6))
    both = first.is_not_null() & second.is_not_null() | currency.is_not_null() & unit.is_not_null()
    # 0xFF is not a zero with a unit.
    invalid = both | clean.str.contains(_HEXADECIMAL).fill_null(False)
    signs = (first == "-").fill_null(False) ^ (second == "-").fill_null(False) ^ negative
    return pl.DataFrame(
        {
            "number": number.set(invalid, None),
            "sign": 1.0 - 2.0 * signs.cast(pl.Float64),
            "unit": (currency.fill_null("") + unit.fill_null("")).set(number.is_null() | invalid, None),
        }
    )


def _unit_of(parts: pl.DataFrame) -> tuple[str, bool]:
    """Return the commonest unit, and whether cells without any are numbers too."""
    counts = dict(parts["unit"].drop_nulls().value_counts().iter_rows())
    named = {unit: n for unit, n in counts.items() if unit}
    if not named or max(named.values()) < counts.get("", 0) / 10:
        # Too few cells have a unit: these are odd ones.
        return "", True
    unit = max(named, key=lambda each: (named[each], each))
    return unit, "" in counts


def _grouped(digits: pl.Series, decimal: str, thousands: str) -> pl.Series:
    """Return digits as numbers, null where they are not written with these separators."""
    mark = rf"\{decimal}"
    whole = r"\d+"
    if thousands:
        group = thousands if thousands in " _" else rf"\{thousands}"
        whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{group}\d{{3}})+)"
    shape = rf"^(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?$"
    fits = digits.str.contains(shape).fill_null(False)
    plain = digits.str.replace_all(thousands, "", literal=True) if thousands else digits
    if decimal != ".":
        plain = plain.str.replace(decimal, ".", literal=True)
    return plain.cast(pl.Float64, strict=False).set(~fits, None)


def points_among_whole_numbers(words: pl.Series) -> str:
    """Return what points are if three digits follow each, and other cells are whole numbers up to 999.

    They are likely "thousands", or "decimals" if the whole numbers are far below the thousands; "" if it is
    clear what they are.
    """
    pointed = words.str.contains(_SIGN + r"[1-9]\d{0,2}\.\d{3}\s*$").fill_null(False)
    whole = words.str.contains(_SIGN + r"(?:0|[1-9]\d{0,2})\s*$").fill_null(False)
    if not (pointed | whole | words.is_null()).all() or not pointed.any():
        return ""
    largest = words.filter(whole).str.strip_chars().cast(pl.Int64).abs().max()
    if not isinstance(largest, int) or largest == 0:
        # A zero is often written without decimals where others have them.
        return ""
    grouped = words.filter(pointed).str.strip_chars().str.replace(".", "", literal=True)
    least = grouped.cast(pl.Int64).abs().min()
    return "thousands" if isinstance(least, int) and _FAR * largest >= least else "decimals"


def stray_groups(digits: pl.Series, values: pl.Series, decimal: str, thousands: str) -> pl.Series:
    """Tell which cells, read as `values`, likely have decimals after the other mark: 5,123 among 5.1234.

    With thousands they would be far above all others, and with decimals they are like others.
    """
    grouped = _one_group(digits, thousands)
    if not grouped.any() or not _has_decimals(digits, decimal):
        return grouped & False
    others = values.filter(~grouped).drop_nulls().to_numpy()
    low, high = float(others.min()), float(others.max())
    as_decimals = digits.filter(grouped).str.replace(thousands, ".", literal=True).cast(pl.Float64).to_numpy()
    inside = (as_decimals >= low - (high - low)) & (as_decimals <= high + (high - low))
    far = float(values.filter(grouped).to_numpy().min()) > _FAR * high
    return grouped if far and inside.any() else grouped & False


def ambiguous_groups(digits: pl.Series, decimal: str, thousands: str) -> Ints:
    """Return the cells such as 1,234, among others such as 12.5, if few cells show what commas are."""
    grouped = _one_group(digits, thousands)
    more = rf"^[1-9]\d{{0,2}}\{thousands}\d{{3}}[\{thousands}\{decimal}]"
    n_clear = int(digits.str.contains(more).fill_null(False).sum())
    if int(grouped.sum()) <= n_clear or not _has_decimals(digits, decimal):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(grouped.to_numpy())


def _one_group(digits: pl.Series, thousands: str) -> pl.Series:
    return digits.str.contains(rf"^[1-9]\d{{0,2}}\{thousands}\d{{3}}$").fill_null(False)


def _has_decimals(digits: pl.Series, decimal: str) -> bool:
    """Tell whether a cell has decimals and no thousands separator."""
    return bool(digits.str.contains(rf"^\d*\{decimal}\d+$").any())
