"""How numbers are written in text: 70,7 and 1.234,5, 69.6%, 1.5 mm/s, € 12.50, (3.20)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Ints
from rankad.columns.marks import Points, groups_in_doubt, points_among_whole_numbers, stray_groups
from rankad.io.errors import shown
from rankad.io.numbers import plain_numbers, with_plain_minus

__all__ = ["KNOWN_UNITS", "MULTIPLES", "PLAIN", "NumberFormat", "Recognized", "recognize"]

_CURRENCY = (
    r"[€$£¥₹₽]|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|AUD|CAD|BRL|ZAR|Fr\.|kr\.?|Rs\.?|R\$|US\$"
)
_UNIT = r"[\p{L}%‰°µμΩ€$£¥₹₽][\p{L}%‰°µμΩ/·*^²³]*[0-9]?(?: ?\p{L}+)?"
_NUMBER = r"[\d.,][\d.,'’ _]*?(?:[eE][+-]?\d+)?"
_SHAPE = rf"^([+-])?\s*({_CURRENCY})?\s*([+-])?({_NUMBER})\s*({_UNIT})?$"
_HEXADECIMAL = r"^[+-]?0[xX]"
# Signs as accountants write them: (12.50) and 12.50-.
_IN_PARENTHESES, _MINUS_LAST = r"^\((.*\d.*)\)$", r"^(.*\d)\s*-$"

# Units that nobody mistakes for a part of a name; of others it is said that they are taken for units.
_UNITS = """
% ‰ € $ £ ¥ ₹ ₽ EUR USD GBP CHF JPY CNY INR SEK NOK DKK PLN CZK AUD CAD BRL ZAR Fr. kr kr. Rs Rs. R$ US$
°C °F °K K ° nm µm μm um mm cm dm m km mi ft in yd mm/s cm/s m/s km/h kmh mph m/s2 m/s² mm/s2 kg g mg µg μg t
lb lbs oz s sec ms µs μs us ns min h hr hrs d days V mV kV A mA µA W mW kW MW GW Wh kWh MWh VA kVA J kJ MJ N
kN Nm bar mbar Pa kPa hPa MPa psi Hz kHz MHz GHz dB dBm rpm rad deg Ω kΩ MΩ ohm F µF nF pF H mH l L ml mL m2
m3 m² m³ cm2 cm3 m3/h m³/h l/min L/min l/h l/s kg/h kg/m3 mol ppm ppb B kB KB MB GB TB KiB MiB GiB bit kbit/s
Mbit/s MB/s lx lm cd pH bpm mmHg pcs
"""
KNOWN_UNITS = frozenset(_UNITS.split())
# What stands for a factor, so that a cell without it is likely another number.
MULTIPLES = frozenset(["%", "‰", "k", "K", "M", "G", "bn", "mn", "Mio", "Mrd"])


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : str
        "." or ",".
    thousands : str
        What stands between groups of three digits; nothing, where they are not grouped.
    unit : str
        What stands after each number, or before it as a currency does.
    bare : bool
        Whether cells without the unit are numbers too.
    accounting : bool
        Whether (12.50) and 12.50- are below zero.

    Examples
    --------
    >>> NumberFormat(decimal=",", thousands=".").read(pl.Series(["1.234,5", "70,7", "12.3", "x"])).to_list()
    [1234.5, 70.7, None, None]
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    bare: bool = True
    accounting: bool = False

    def read(self, text: pl.Series) -> pl.Series:
        """Return text as Float64, null where it is not a number so written."""
        if self == PLAIN:
            return plain_numbers(text)
        parts = _split(text, accounting=self.accounting)
        numbers = _grouped(parts["number"], self.decimal, self.thousands) * parts["sign"]
        fits = parts["unit"] == self.unit
        if self.bare:
            fits |= parts["unit"] == ""
        return numbers.set(~fits.fill_null(False), None)

    def describe(self) -> str:
        """Say how numbers are written, nothing if plainly.

        >>> NumberFormat(decimal=",", unit="mm/s").describe()
        "written with a decimal comma, in 'mm/s'"
        """
        said = []
        if self.decimal == ",":
            said.append("with a decimal comma")
        if self.thousands:
            said.append(f"with {shown(self.thousands)} between thousands")
        if self.accounting:
            said.append("with (1) or 1- for -1")
        what = " and ".join(said)
        if self.unit:
            what += (", " if what else "") + f"in {shown(self.unit)}"
        return f"written {what}" if what else ""


PLAIN = NumberFormat()

# In the order in which they are preferred where they read the same numbers.
_SEPARATORS = (
    (".", ""),
    (",", ""),
    (".", ","),
    (",", "."),
    (".", "'"),
    (".", " "),
    (",", " "),
    (",", "'"),
    (".", "_"),
)


class Recognized(NamedTuple):
    """How most cells of a column can be read as numbers.

    Attributes
    ----------
    format : NumberFormat
    odd : ndarray of int
        The cells that cannot be read so.
    rival : NumberFormat or None
        Another that reads as many cells, but as other numbers.
    in_doubt : ndarray of int
        Cells such as 1,234 that are read as thousands, though hardly any cell shows that they are.
    """

    format: NumberFormat
    odd: Ints
    rival: NumberFormat | None
    in_doubt: Ints


def recognize(words: pl.Series, *, decimal: str | None = None, elsewhere: str | None = None) -> Recognized:
    """Find the format that reads the most cells as numbers.

    Parameters
    ----------
    words : polars Series of str
        Without missing values.
    decimal : {".", ","}, optional
        What the user says.
    elsewhere : {".", ","}, optional
        What other columns of the table have, beyond doubt; it decides where cells fit both.

    Examples
    --------
    >>> recognize(pl.Series(["70,7", "1.234,5", "ERR"]))
    Recognized(format=NumberFormat(decimal=',', thousands='.', unit='', bare=True, accounting=False),
               odd=array([2]), rival=None, in_doubt=array([], dtype=int64))
    """
    accounting = bool((words.str.contains(_IN_PARENTHESES) | words.str.contains(_MINUS_LAST)).any())
    parts = _split(words, accounting=accounting)
    unit, bare = _unit_of(parts)
    fits = ((parts["unit"] == unit) | ((parts["unit"] == "") if bare else pl.lit(False))).alias("fits")
    digits = parts.select(pl.when(fits).then(pl.col("number"))).to_series()
    tried = [
        (NumberFormat(mark, group, unit, bare, accounting), _likely(digits, mark, group, told=bool(decimal)))
        for mark, group in _SEPARATORS
        if decimal in (None, mark)
    ]
    most = max(len(words) - values.null_count() for _, values in tried)
    best = [(form, values) for form, values in tried if len(words) - values.null_count() == most]
    form, values = best[0]
    rivals = [(other, found) for other, found in best[1:] if not _same(found, values)]
    if rivals:
        settled = [each for each in best if each[0].decimal == elsewhere]
        if settled:
            others = [each for each in best if not _same(each[1], settled[0][1])]
            (form, values), rivals = settled[0], others
        elif form.decimal == "," and not form.thousands:
            # 101,802 throughout: groups of three and never another number of digits.
            (form, values), rivals = rivals[0], [best[0]]
        elif form.decimal == "." and not form.thousands:
            points = points_among_whole_numbers(digits)
            if points is Points.THOUSANDS:
                (form, values), rivals = rivals[0], [best[0]]
            elif points is Points.CLEAR and form == PLAIN:
                # Neither other columns nor other cells say that a point could stand between thousands.
                rivals = []
    odd = np.flatnonzero(values.is_null().to_numpy())
    in_doubt = np.empty(0, dtype=np.int64)
    if form.thousands in (".", ",") and form.decimal not in (decimal, elsewhere):
        in_doubt = groups_in_doubt(digits, form.decimal, form.thousands)
    return Recognized(form, odd, rivals[0][0] if rivals else None, in_doubt)


def _likely(digits: pl.Series, decimal: str, thousands: str, *, told: bool) -> pl.Series:
    """Return digits as numbers, null also where they likely have the other mark before decimals."""
    values = _grouped(digits, decimal, thousands)
    if told or thousands not in (".", ","):
        return values
    return values.set(stray_groups(digits, values, decimal, thousands), None)


def _same(one: pl.Series, other: pl.Series) -> bool:
    return bool(one.eq_missing(other).all())


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
    found = clean.str.strip_chars().str.extract_groups(_SHAPE).struct.unnest()
    first, currency, second, number, unit = (found[str(at)] for at in range(1, 6))
    both = first.is_not_null() & second.is_not_null() | currency.is_not_null() & unit.is_not_null()
    # 0xFF is no zero with a unit.
    none = both | clean.str.contains(_HEXADECIMAL).fill_null(False)
    signs = (first == "-").fill_null(False) ^ (second == "-").fill_null(False) ^ negative
    return pl.DataFrame(
        {
            "number": number.set(none, None),
            "sign": 1.0 - 2.0 * signs.cast(pl.Float64),
            "unit": (currency.fill_null("") + unit.fill_null("")).set(number.is_null() | none, None),
        }
    )


def _unit_of(parts: pl.DataFrame) -> tuple[str, bool]:
    """Return the commonest unit, and whether cells without any are numbers too."""
    counts = dict(parts["unit"].drop_nulls().value_counts().iter_rows())
    named = {unit: n for unit, n in counts.items() if unit}
    if not named or max(named.values()) < counts.get("", 0) / 10:
        # A few cells with a unit among many without are odd ones.
        return "", True
    unit = max(named, key=lambda each: (named[each], each))
    return unit, "" in counts


def _grouped(digits: pl.Series, decimal: str, thousands: str) -> pl.Series:
    """Return digits as numbers, null where they are not written with these separators."""
    mark = rf"\{decimal}"
    whole = r"\d+"
    if thousands:
        group = " " if thousands == " " else rf"\{thousands}" if thousands != "_" else "_"
        whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{group}\d{{3}})+)"
    shape = rf"^(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?$"
    fits = digits.str.contains(shape).fill_null(False)
    plain = digits.str.replace_all(thousands, "", literal=True) if thousands else digits
    if decimal != ".":
        plain = plain.str.replace(decimal, ".", literal=True)
    return plain.cast(pl.Float64, strict=False).set(~fits, None)
