"""What a column of text is: numbers as people write them, times, categories, ids, free text."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad._base.wording import counted
from rankad.columns.formats import (
    KNOWN_UNITS,
    MULTIPLES,
    PLAIN,
    NumberFormat,
    RecognizedNumbers,
    points_among_whole_numbers,
    recognize_numbers,
)
from rankad.columns.infer_numbers import infer_numbers
from rankad.columns.infer_words import infer_words
from rankad.columns.inferred import ColumnOptions, InferredColumn, cells_at, doubtful, option
from rankad.columns.missing_values import marker_among_numbers, marker_among_times
from rankad.columns.number_patterns import all_whole
from rankad.columns.times import RecognizedTime, TimeFormat, recognize_times
from rankad.columns.words import has_value, leading_zeros, odd_words_at
from rankad.io.errors import shown
from rankad.io.numbers import all_numbers, parse

# A column holds numbers, or times, if at least this share of its cells can be read so.
_MOSTLY = 0.5
# With this many distinct numbers, text with decimals is measured.
MANY = 20
_NEARLY_ALL = 0.9
# Times of day in this many different hours are spread over the whole day.
_NOON, _ALL_DAY = 12, 24
# Beyond this, neighboring whole numbers are the same float.
_LARGEST_WHOLE = 2.0**53
# A point that is not followed by three digits.
_NO_THOUSANDS = re.compile(r"\.(?:\d{0,2}|\d{4,})\s*$")


def infer_text(
    series: pl.Series, typed: bool, options: ColumnOptions, min_count: int, elsewhere: str | None
) -> InferredColumn:
    """Infer what text is; parameters are those of `rankad.columns.inference.infer_column`."""
    comma = "," in (options.decimal, elsewhere)
    if (
        all_numbers(series)
        and not (comma and series.str.contains(".", literal=True).any())
        and (options.decimal == "." or not _could_have_thousands(series))
    ):
        return _plain_numbers(series, typed, min_count)
    words = series.filter(has_value(series))
    # Repeated words are read once.
    distinct = words.unique(maintain_order=True)
    times = recognize_times(distinct, day_first=options.day_first)
    if times is not None:
        times = times._replace(odd=_places(words, distinct, times.odd))
        if times.odd.size <= (1 - _MOSTLY) * len(words):
            return _times(series, words, times)
    numbers = recognize_numbers(distinct, decimal=options.decimal, elsewhere=elsewhere)
    odd, ambiguous = (_places(words, distinct, places) for places in (numbers.odd, numbers.ambiguous))
    if odd.size <= (1 - _MOSTLY) * len(words):
        numbers = numbers._replace(odd=odd, ambiguous=ambiguous)
        return _formatted_numbers(series, words, numbers, typed, min_count)
    return infer_words(series, min_count, odd=odd)


def _plain_numbers(series: pl.Series, typed: bool, min_count: int) -> InferredColumn:
    """Infer what plainly written numbers are."""
    name = series.name
    if not typed and (inferred := _two_spellings(series, min_count)) is not None:
        return inferred
    numbers = parse(series)
    finite = numbers[np.isfinite(numbers)]
    if all_whole(finite):
        if not _distinguishable(series, finite):
            # Ids with more digits than a number has.
            return infer_words(series, min_count)
        inferred = infer_numbers(name, numbers, min_count)
        if inferred.kind == "time" or (not typed and not leading_zeros(series)):
            return inferred
        why = "digits typed as text" if typed else "digits with leading zeros"
        return infer_words(series, min_count).doubted("likely", why, f"it holds {why}", "number")
    if not typed:
        return infer_numbers(name, numbers, min_count)
    if np.unique(finite).size >= MANY:
        why = "numbers with decimals, typed as text"
        evidence = "it is typed as text, but all cells are numbers with decimals"
        return infer_numbers(name, numbers, min_count).doubted("likely", why, evidence, "category")
    evidence = "it is typed as text, but all cells are numbers"
    return infer_words(series, min_count).doubted(
        "likely", "few different numbers, typed as text", evidence, "number"
    )


def _distinguishable(series: pl.Series, values: Floats) -> bool:
    """Tell whether different texts of digits are different floats, as those of very many digits are not."""
    if np.abs(values).max() < _LARGEST_WHOLE:
        return True
    return int(series.filter(has_value(series)).n_unique()) <= np.unique(values).size


def _could_have_thousands(series: pl.Series) -> bool:
    """Tell whether points in numbers could separate thousands, as in 900 and 1.050."""
    if (
        # The first cells rule it out in most columns; asking in plain Python takes no time.
        any(_NO_THOUSANDS.search(cell) for cell in series.head(5).drop_nulls())
        or series.head(100).str.contains(_NO_THOUSANDS.pattern).any()
        or not series.str.contains(".", literal=True).any()
    ):
        return False
    return points_among_whole_numbers(series.filter(has_value(series))) != ""


def _two_spellings(series: pl.Series, min_count: int) -> InferredColumn | None:
    """Infer a column of few distinct numbers, one of which is written in two ways: versions 1.1 and 1.10."""
    if series.head(1_000).n_unique() > 2 * MANY:
        # The first cells rule it out in most columns.
        return None
    spelled = series.filter(has_value(series)).str.strip_chars().unique(maintain_order=True)
    if len(spelled) > MANY or leading_zeros(spelled):
        return None
    both = _same_number(spelled)
    if both is None:
        return None
    evidence = f"it has few different numbers, and one is written as {both[0]!r} and as {both[1]!r}"
    inferred = infer_words(series, min_count)
    if inferred.kind == "category" and all("." in word for word in both):
        why = "one number written in two ways"
        return inferred._replace(doubt="").doubted(
            "likely", why, f"{evidence}, as in versions and codes", "number"
        )
    inferred = infer_numbers(series.name, parse(series), min_count)
    sure = "likely" if inferred.sure == "sure" else inferred.sure
    return inferred.doubted(sure, inferred.why, f"{evidence}, which count as the same", "category")


def _same_number(spelled: pl.Series) -> tuple[str, str] | None:
    """Return two different words for the same number, preferably with points."""
    # A sign before zero is left from rounding.
    spelled = spelled.str.replace(r"^\+", "").str.replace(r"^-(0*\.?0*)$", "$1").unique(maintain_order=True)
    numbers = pl.DataFrame({"word": spelled, "value": parse(spelled)}).filter(pl.col("value").is_finite())
    for some in (numbers.filter(pl.col("word").str.contains(".", literal=True)), numbers):
        twice = some.filter(pl.col("value").is_duplicated()).sort("value", maintain_order=True)
        if twice.height:
            return str(twice["word"][0]), str(twice["word"][1])
    return None


def _places(words: pl.Series, distinct: pl.Series, odd: Ints) -> Ints:
    """Return the places among all words of the odd ones among distinct words."""
    if len(distinct) == len(words) or not odd.size:
        return odd
    return np.flatnonzero(words.is_in(distinct.gather(odd).to_list()).to_numpy())


def _formatted_numbers(
    series: pl.Series, words: pl.Series, recognized: RecognizedNumbers, typed: bool, min_count: int
) -> InferredColumn:
    """Infer what numbers are that are not plainly written, or not all of them."""
    name, form, n_odd = series.name, recognized.format, recognized.odd.size
    why, read = form.describe(), form.read(words)
    values = read.drop_nulls().to_numpy()

    def written(value: float) -> str:
        return str(words[int((read == value).arg_max() or 0)]).strip()

    plain_whole = all_whole(values) and form.decimal == "." and not (form.unit or form.thousands)
    n_distinct = np.unique(values).size
    # A few distinct numbers may be names, unless nearly all cells are numbers.
    many = n_distinct >= MANY or n_distinct >= len(values) / 2 or values.size >= _NEARLY_ALL * len(words)
    if n_distinct < MANY and form == PLAIN:
        both = _same_number(words.str.strip_chars().unique(maintain_order=True))
        many &= both is None or not all("." in word for word in both)
    if (typed and plain_whole) or not (many or form.unit or form.decimal == "," or form.thousands):
        return infer_words(series, min_count, odd=recognized.odd)
    doubts = _reading_doubts(series, words, recognized)
    if doubts and (marker := marker_among_numbers(name, values, written)):
        doubts.append(marker)
    inferred = InferredColumn(name, "number")
    if not n_odd:
        inferred = infer_numbers(name, values, min_count, written)
    if inferred.kind == "id" or (inferred.kind != "number" and not form.unit and form.decimal == "."):
        return inferred
    if inferred.kind == "time":
        evidence = (
            f"its numbers look like {inferred.why}, but times are read from plain numbers alone, without a "
            f"decimal comma or a unit"
        )
        inferred = doubtful(name, "number", "unsure", f"may be {inferred.why}", evidence, "id")
    elif inferred.kind == "category":
        # A measurement: it has a unit or a decimal comma.
        inferred = InferredColumn(name, "number", "likely")
    if not doubts:
        return InferredColumn(name, "number", inferred.sure, why, inferred.doubt, form)
    odd = odd_words_at(words, recognized.odd)
    unsure = (
        recognized.rival is not None
        or recognized.ambiguous.size
        or n_odd > 0.1 * len(words)
        or (form.unit in MULTIPLES and form.bare)
    )
    evidence = "; ".join(filter(None, [why, *doubts]))
    sure = "unsure" if unsure else "likely"
    return doubtful(name, "number", sure, why, evidence, "category", number=form, odd_words=odd)


def _reading_doubts(series: pl.Series, words: pl.Series, recognized: RecognizedNumbers) -> list[str]:
    """Say which cells could be read otherwise."""
    form, doubts = recognized.format, []
    if recognized.odd.size:
        mixed = _mixed_marks(words.gather(recognized.odd), form)
        doubts.append(_unreadable(series, words, recognized.odd, "number") + mixed)
    if recognized.rival is not None:
        doubts.append(_either(words, form, recognized.rival, series.name))
    if recognized.ambiguous.size:
        example = words[int(recognized.ambiguous[0])]
        doubts.append(
            f"{shown(example)} is read as {form.read(pl.Series([example]))[0]:.15g}, though hardly any cell "
            f"shows that {_MARKS[form.thousands]} separate thousands "
            f"({cells_at(series, words, recognized.ambiguous)}): confirm with {_decimal(form)}"
        )
    if form.unit and form.unit not in KNOWN_UNITS:
        doubts.append(f"{shown(form.unit)} is taken as a unit")
    if form.unit and form.bare and (mixed := _with_and_without_unit(series, words, form)):
        doubts.append(mixed)
    if form.accounting:
        doubts.append("(1) and 1- are read as -1")
    return doubts


_MARKS = {".": "points", ",": "commas"}


def _unreadable(series: pl.Series, words: pl.Series, odd: Ints, kind: str) -> str:
    return (
        f"{counted(odd.size, 'cell')} of {len(words):,} cannot be read as a {kind} "
        f"({cells_at(series, words, odd)}) and {'counts' if odd.size == 1 else 'count'} as missing"
    )


def _with_and_without_unit(series: pl.Series, words: pl.Series, form: NumberFormat) -> str:
    """Name cells with the unit and without, which are read alike: 4.7k beside 5612, 45% beside 0.45."""
    numbers = form.read(words)
    has_unit = words.str.contains(form.unit, literal=True)
    without = np.flatnonzero((~has_unit & numbers.is_not_null()).to_numpy())
    with_unit = np.flatnonzero((has_unit & numbers.is_not_null()).to_numpy())
    if not without.size or not with_unit.size:
        return ""
    one, other = int(with_unit[0]), int(without[0])
    return (
        f"{form.unit!r} stands in {counted(with_unit.size, 'cell')} "
        f"({cells_at(series, words, with_unit[:1])}, read as {numbers[one]:.15g}) and not in others "
        f"({cells_at(series, words, without[:1])}, read as {numbers[other]:.15g}): if these differ in "
        f"meaning, write all with it, or none"
    )


def _either(words: pl.Series, form: NumberFormat, rival: NumberFormat, name: str) -> str:
    """Name a cell that two formats read as different numbers; if there is none, one that each reads."""
    read = pl.DataFrame({"word": words, "one": form.read(words), "other": rival.read(words)})
    differ = read.filter((pl.col("one") != pl.col("other")).fill_null(False))
    if differ.height:
        example, first, second = differ.row(0)
        confirm, because = _decimal(form), ""
        digits = read.filter(pl.col("one").is_not_null())["word"].str.replace(form.unit, "", literal=True)
        if form.thousands == "." and points_among_whole_numbers(digits) == "thousands":
            confirm = option(name, "number")
            because = ", as three digits follow every point and all other cells are whole numbers up to 999"
        return (
            f"{shown(example)} could be {first:.15g} or {second:.15g} and is read as the first{because}: "
            f"confirm with {confirm}, or choose the second with {_decimal(rival)}"
        )
    example, other = (read.filter(pl.col(side).is_not_null())["word"][0] for side in ("one", "other"))
    return (
        f"as many cells are written like {shown(example)} as like {shown(other)}: {_decimal(form)} reads the "
        f"first as numbers, {_decimal(rival)} the others; to read both, write all cells alike"
    )


def _mixed_marks(odd: pl.Series, form: NumberFormat) -> str:
    """Say that odd cells have the other decimal mark, and what to do."""
    other = "." if form.decimal == "," else ","
    if replace(form, decimal=other, thousands="").read(odd).null_count() == len(odd):
        return ""
    return (
        f", as some have {_MARKS[other]} before decimals where others have {_MARKS[form.decimal]}: write all "
        f"alike to learn from them"
    )


def _decimal(form: NumberFormat) -> str:
    return f"--decimal '{form.decimal}' (decimal={form.decimal!r})"


def _times(series: pl.Series, words: pl.Series, recognized: RecognizedTime) -> InferredColumn:
    name, form, odd = series.name, recognized.format, recognized.odd
    marker = marker_among_times(name, form.read(words), words)
    example = shown(words[0])
    ambiguous = (
        f"{example} could have the day or the month first and is read with the day first: confirm with "
        f"--day-first (day_first=True), or choose the other with --month-first (day_first=False)"
    )
    doubts = {
        _unreadable(series, words, odd, "time") if odd.size else "": odd.size,
        ambiguous: recognized.ambiguous,
        marker: marker,
        f"times are written in several ways ({form.describe()})": len(form.orders) > 1,
        "years of two digits are read as 20..": any("short" in order for order in form.orders),
        f"cells such as {example} are read as months, but could be days": "my in words short" in form.orders,
        "its times of day could be durations (hours and minutes, or minutes and seconds), which are better "
        "written as numbers": form.orders == ("clock",) and _may_be_durations(words, form),
    }
    evidence, why = "; ".join(text for text, holds in doubts.items() if holds), form.describe()
    if not evidence:
        return InferredColumn(name, "time", "sure", why, time=form)
    odd_words = odd_words_at(words, odd)
    return doubtful(name, "time", "likely", why, evidence, "category", time=form, odd_words=odd_words)


def _may_be_durations(words: pl.Series, form: TimeFormat) -> bool:
    """Tell whether times of day could be durations: all before noon, or of two parts in few hours."""
    if bool(words.str.contains(r"(?i)m\.?\s*$").any()):
        return False
    hours = form.read(words).dt.hour().drop_nulls().unique()
    if len(hours) and int(hours.max()) < _NOON:  # type: ignore[arg-type]
        return True
    return bool(words.str.contains(r"^\s*\d+:\d+\s*$").all()) and len(hours) < _ALL_DAY
