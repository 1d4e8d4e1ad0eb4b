"""What a column of text is: numbers as people write them, times, categories, names of rows, free text."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.columns.formats import KNOWN_UNITS, MULTIPLES, PLAIN, NumberFormat, Recognized, recognize
from rankad.columns.kind_of_numbers import missing_in_disguise, missing_time, of_numbers
from rankad.columns.marks import Points, points_among_whole_numbers
from rankad.columns.times import RecognizedTime, TimeFormat, recognize_times
from rankad.columns.understood import (
    Told,
    Understood,
    as_taken,
    cells_of,
    counted,
    is_or_are,
    odd_words_of,
    option,
    settle,
)
from rankad.columns.whole_numbers import ENOUGH, all_whole, leading_zeros
from rankad.columns.words import MOST_CATEGORIES, has_value, least_count
from rankad.io.errors import shown
from rankad.io.numbers import all_numbers, parse

__all__ = ["MANY", "of_text", "of_words"]

# A column is of numbers, or of times, with a few odd cells if at least this share can be read so.
_MOSTLY = 0.5
# Text whose cells are numbers with decimals is of numbers where there are so many different ones.
MANY = 20
_NEARLY_ALL = 0.9
# Times of day that come in so many different hours come all day round.
_NOON, _ALL_DAY = 12, 24
# Rare words are learned as one. Where they hold so large a share of the rows, little of a column is learned.
_RARE_ROWS = 0.2
# Words are alike but for their digits where so many of them are.
_NEARLY_ALIKE = 0.9
# Fewer different words than these are names, whatever digits they have: v1, v2, v3.
_LEAST_WORDS = 8
# Beyond this, not every whole number is told from the next.
_LARGEST_WHOLE = 2.0**53
_HEXADECIMAL = r"^(?:0x)?[0-9A-Fa-f]{4,}$"
# A year somewhere in a word: 2024-Q1, week 12/2024.
_PERIOD = r"(?i)(?:^|\D)(?:19|20)\d\d(?:\D|$)|^\s*(?:[QHW]|KW|CW|FY)\s?\d{1,2}\W+'?\d\d\s*$"
# Another number of digits than three after a point.
_NO_THOUSANDS = re.compile(r"\.(?:\d{0,2}|\d{4,})\s*$")
_OBJECT = r"(?s)^\s*(?:\{.*\}|\[.*\])\s*$"


def of_text(series: pl.Series, typed: bool, told: Told, min_count: int, elsewhere: str | None) -> Understood:
    """Say what text is; parameters are those of `rankad.columns.kinds.understand`."""
    name = series.name
    comma = "," in (told.decimal, elsewhere)
    if (
        all_numbers(series)
        and not (comma and series.str.contains(".", literal=True).any())
        and (told.decimal == "." or not _could_have_thousands(series))
    ):
        # The most common by far.
        if not typed and (found := _of_two_spellings(series, min_count)) is not None:
            return found
        numbers = parse(series)
        finite = numbers[np.isfinite(numbers)]
        if not all_whole(finite):
            return (
                _typed_decimals(series, finite, min_count) if typed else of_numbers(name, numbers, min_count)
            )
        if not _told_apart(series, finite):
            # Names of more digits than a number has.
            return of_words(series, min_count)
        whole = of_numbers(name, numbers, min_count)
        if whole.kind == "time" or (not typed and not leading_zeros(series)):
            return whole
        found = of_words(series, min_count)
        reason = "typed as text" if typed else "written with leading zeros"
        doubt = found.doubt or (
            f"column {name!r} holds digits {reason}: {as_taken(found)}. {settle(name, 'category', 'number')}"
        )
        return found._replace(sure="likely", why=f"digits {reason}", doubt=doubt)
    words = series.filter(has_value(series))
    # Of words that repeat, one each will do.
    different = words.unique(maintain_order=True)
    times = recognize_times(different, day_first=told.day_first)
    if times is not None:
        times = times._replace(odd=_places(words, different, times.odd))
        if times.odd.size <= (1 - _MOSTLY) * len(words):
            return _of_times(series, words, times)
    numbers_read = recognize(different, decimal=told.decimal, elsewhere=elsewhere)
    numbers_read = numbers_read._replace(
        odd=_places(words, different, numbers_read.odd),
        in_doubt=_places(words, different, numbers_read.in_doubt),
    )
    if numbers_read.odd.size <= (1 - _MOSTLY) * len(words):
        return _of_formatted(series, words, numbers_read, typed, min_count)
    return of_words(series, min_count, odd=numbers_read.odd)


def _told_apart(series: pl.Series, values: Floats) -> bool:
    """Tell whether different texts of digits are different numbers; very long ones are not.

    >>> _told_apart(pl.Series(["10000000000000001", "10000000000000002"]), np.array([1e16, 1e16]))
    False
    """
    if np.abs(values).max() < _LARGEST_WHOLE:
        return True
    return int(series.filter(has_value(series)).n_unique()) <= np.unique(values).size


def _could_have_thousands(series: pl.Series) -> bool:
    """Tell whether points in numbers could stand between thousands, as 900 and 1.050 are there."""
    if (
        # In most columns the first cells rule it out; asked in plain Python, they take no time.
        any(_NO_THOUSANDS.search(cell) for cell in series.head(5).drop_nulls())
        or series.head(100).str.contains(_NO_THOUSANDS.pattern).any()
        or not series.str.contains(".", literal=True).any()
    ):
        return False
    return points_among_whole_numbers(series.filter(has_value(series))) is not Points.CLEAR


def _of_two_spellings(series: pl.Series, min_count: int) -> Understood | None:
    """Understand few different numbers of which two cells write one in two ways: versions 1.1 and 1.10."""
    name = series.name
    if series.head(1_000).n_unique() > 2 * MANY:
        # Of most columns the first cells say so, which is sooner done.
        return None
    spelled = series.filter(has_value(series)).str.strip_chars().unique(maintain_order=True)
    if len(spelled) > MANY or leading_zeros(spelled):
        return None
    both = _same_number(spelled)
    if both is None:
        return None
    found = of_words(series, min_count)
    said = f"column {name!r} has few different numbers, and one is written as {both[0]!r} and as {both[1]!r}"
    if found.kind == "category" and all("." in word for word in both):
        doubt = (
            f"{said}: taken as a category, as versions and codes are. {settle(name, 'category', 'number')}"
        )
        return found._replace(sure="likely", why="one number written in two ways", doubt=doubt)
    found = of_numbers(name, parse(series), min_count)
    doubt = found.doubt or f"{said}, which are taken as the same. {settle(name, 'number', 'category')}"
    return found._replace(sure="likely" if found.sure == "sure" else found.sure, doubt=doubt)


def _same_number(spelled: pl.Series) -> tuple[str, str] | None:
    """Return two different words that are one number, with points where such are there."""
    # A sign before zero is left from rounding.
    spelled = spelled.str.replace(r"^\+", "").str.replace(r"^-(0*\.?0*)$", "$1").unique(maintain_order=True)
    numbers = pl.DataFrame({"word": spelled, "value": parse(spelled)}).filter(pl.col("value").is_finite())
    for some in (numbers.filter(pl.col("word").str.contains(".", literal=True)), numbers):
        twice = some.filter(pl.col("value").is_duplicated()).sort("value", maintain_order=True)
        if twice.height:
            return str(twice["word"][0]), str(twice["word"][1])
    return None


def _places(words: pl.Series, different: pl.Series, odd: Ints) -> Ints:
    """Return where those of the different words stand that are odd."""
    if len(different) == len(words) or not odd.size:
        return odd
    return np.flatnonzero(words.is_in(different.gather(odd).to_list()).to_numpy())


def _typed_decimals(series: pl.Series, values: Floats, min_count: int) -> Understood:
    """Text that was meant to be text, but reads as numbers with decimals."""
    name = series.name
    if np.unique(values).size >= MANY:
        found = of_numbers(name, parse(series), min_count)
        doubt = found.doubt or (
            f"column {name!r} is typed as text, but all cells are numbers with decimals: taken as a number. "
            f"{settle(name, 'number', 'category')}"
        )
        return found._replace(sure="likely", why="numbers with decimals, typed as text", doubt=doubt)
    found = of_words(series, min_count)
    doubt = found.doubt or (
        f"column {name!r} is typed as text, but all cells are numbers: {as_taken(found)}. "
        f"{settle(name, 'category', 'number')}"
    )
    return found._replace(sure="likely", why="few different numbers, typed as text", doubt=doubt)


def _of_formatted(
    series: pl.Series, words: pl.Series, found: Recognized, typed: bool, min_count: int
) -> Understood:
    """Numbers that are not plainly written, or not all of them."""
    name, form, why = series.name, found.format, found.format.describe()
    read = form.read(words)
    values = read.drop_nulls().to_numpy()

    def written(value: float) -> str:
        return str(words[int((read == value).arg_max() or 0)]).strip()

    plain_whole = all_whole(values) and form.decimal == "." and not (form.unit or form.thousands)
    different = np.unique(values).size
    # A column of few different numbers may be one of names, but for a few odd cells among them.
    many = different >= MANY or different >= len(values) / 2 or values.size >= _NEARLY_ALL * len(words)
    if different < MANY and form == PLAIN:
        both = _same_number(words.str.strip_chars().unique(maintain_order=True))
        many &= both is None or not all("." in word for word in both)
    if (typed and plain_whole) or not (many or form.unit or form.decimal == "," or form.thousands):
        return of_words(series, min_count, odd=found.odd)
    doubts = []
    if found.odd.size:
        doubts.append(
            f"{counted(found.odd.size, 'cell')} of {len(words):,} cannot be read as a number"
            f"{' so written' if why else ''} ({cells_of(series, words, found.odd)}) and "
            f"{is_or_are(found.odd.size)} taken as missing{_other_mark(words.gather(found.odd), form)}"
        )
    if found.rival is not None:
        doubts.append(_either(words, form, found.rival, name))
    if found.in_doubt.size:
        example = words[int(found.in_doubt[0])]
        doubts.append(
            f"{shown(example)} is taken as {_first(form, example):.15g}, though hardly any cell shows that "
            f"{'commas' if form.thousands == ',' else 'points'} stand between thousands "
            f"({cells_of(series, words, found.in_doubt)}): {_decimal(form)} says so"
        )
    if form.unit and form.unit not in KNOWN_UNITS:
        doubts.append(f"{shown(form.unit)} is taken for a unit")
    if form.unit and form.bare:
        doubts += _with_and_without_unit(series, words, form)
    if form.accounting:
        doubts.append("(1) and 1- are taken as -1")
    if doubts and (disguised := missing_in_disguise(name, values, written)):
        doubts.append(disguised)
    inner = of_numbers(name, values, min_count, written) if not found.odd.size else Understood(name, "number")
    if inner.kind != "number" and not form.unit and form.decimal == ".":
        return inner
    if not doubts:
        return Understood(name, "number", inner.sure, why, inner.doubt, form)
    doubt = f"column {name!r} is taken as a number{', ' + why if why else ''}: {'; '.join(doubts)}. "
    odd = odd_words_of(words, found.odd)
    sure = (
        "unsure"
        if found.rival is not None
        or found.in_doubt.size
        or found.odd.size > 0.1 * len(words)
        or (form.unit in MULTIPLES and form.bare)
        else "likely"
    )
    return Understood(
        name, "number", sure, why, doubt + settle(name, "number", "category"), form, odd_words=odd
    )


def _with_and_without_unit(series: pl.Series, words: pl.Series, form: NumberFormat) -> list[str]:
    """Name cells with the unit and without, which are read alike: 4.7k beside 5612, 45% beside 0.45."""
    numbers = form.read(words)
    written = words.str.contains(form.unit, literal=True)
    without = np.flatnonzero((~written & numbers.is_not_null()).to_numpy())
    with_unit = np.flatnonzero((written & numbers.is_not_null()).to_numpy())
    if not without.size or not with_unit.size:
        return []
    one, other = int(with_unit[0]), int(without[0])
    return [
        f"{form.unit!r} stands in {counted(with_unit.size, 'cell')} "
        f"({cells_of(series, words, with_unit[:1])}, taken as {numbers[one]:.15g}) and not in others "
        f"({cells_of(series, words, without[:1])}, taken as {numbers[other]:.15g}): if these are not alike, "
        f"write all with it, or none"
    ]


def _either(words: pl.Series, form: NumberFormat, rival: NumberFormat, name: str) -> str:
    """Name a cell that two formats read as different numbers; where there is none, one that each reads."""
    read = pl.DataFrame({"word": words, "one": form.read(words), "other": rival.read(words)})
    differ = read.filter((pl.col("one") != pl.col("other")).fill_null(False))
    if differ.height:
        example, first, second = differ.row(0)
        so, because = _decimal(form), ""
        digits = read.filter(pl.col("one").is_not_null())["word"].str.replace(form.unit, "", literal=True)
        if form.thousands == "." and points_among_whole_numbers(digits) is Points.THOUSANDS:
            so = option(name, "number")
            because = ", as three digits follow every point and all other cells are whole numbers up to 999"
        return (
            f"{shown(example)} could be {first:.15g} or {second:.15g} and is taken as the first{because}: "
            f"{so} says so, {_decimal(rival)} the other"
        )
    example, other = (read.filter(pl.col(side).is_not_null())["word"][0] for side in ("one", "other"))
    return (
        f"as many cells are written as {shown(example)} as are written as {shown(other)}: {_decimal(form)} "
        f"takes the first as numbers, {_decimal(rival)} the others; for both, write all cells alike"
    )


def _other_mark(odd: pl.Series, form: NumberFormat) -> str:
    """Say that odd cells have the other mark before decimals, and what to do."""
    other = "." if form.decimal == "," else ","
    swapped = replace(form, decimal=other, thousands="")
    if swapped.read(odd).null_count() == len(odd):
        return ""
    marks = {".": "points", ",": "commas"}
    return (
        f", as some have {marks[other]} before decimals where others have {marks[form.decimal]}: write all "
        f"alike to learn from them"
    )


def _decimal(form: NumberFormat) -> str:
    return f"--decimal '{form.decimal}' (decimal={form.decimal!r})"


def _first(form: NumberFormat, word: str) -> float:
    return float(form.read(pl.Series([word]))[0])


def _of_times(series: pl.Series, words: pl.Series, found: RecognizedTime) -> Understood:
    name = series.name
    form, doubts = found.format, []
    odd = odd_words_of(words, found.odd)
    if found.odd.size:
        doubts.append(
            f"{counted(found.odd.size, 'cell')} of {len(words):,} cannot be read as a time "
            f"({cells_of(series, words, found.odd)}) and {is_or_are(found.odd.size)} taken as missing"
        )
    if found.ambiguous:
        doubts.append(
            f"{shown(words[0])} could have the day or the month first and is taken with the day first: "
            f"--day-first (day_first=True) says so, --month-first (day_first=False) the other"
        )
    if disguised := missing_time(name, form.read(words), words):
        doubts.append(disguised)
    if len(form.orders) > 1:
        doubts.append(f"times are written in several ways ({form.describe()})")
    if any("short" in order for order in form.orders):
        doubts.append("years of two digits are taken as 20..")
    if "my in words short" in form.orders:
        doubts.append(f"cells such as {shown(words[0])} are taken as months, though they could be days")
    if form.orders == ("clock",) and _may_be_durations(words, form):
        doubts.append(
            "these are taken as times of day, though they could be durations (hours and minutes, or minutes "
            "and seconds), which had better be written as numbers"
        )
    if not doubts:
        return Understood(name, "time", "sure", form.describe(), time=form)
    doubt = f"column {name!r} is taken as a time: {'; '.join(doubts)}. {settle(name, 'time', 'category')}"
    return Understood(name, "time", "likely", form.describe(), doubt, time=form, odd_words=odd)


def _may_be_durations(words: pl.Series, form: TimeFormat) -> bool:
    """Tell whether times of day could be durations: all before noon, or of two parts and not all day round.

    >>> _may_be_durations(pl.Series(["07:49", "13:05"]), TimeFormat(("clock",)))
    True
    """
    if bool(words.str.contains(r"(?i)m\.?\s*$").any()):
        return False
    hours = form.read(words).dt.hour().drop_nulls().unique()
    if len(hours) and int(hours.max()) < _NOON:  # type: ignore[arg-type]
        return True
    two_parts = bool(words.str.contains(r"^\s*\d+:\d+\s*$").all())
    return two_parts and len(hours) < _ALL_DAY


def of_words(series: pl.Series, min_count: int, *, odd: Ints | None = None) -> Understood:
    """Say whether words are categories, names of rows or free text; `odd` are those that are no numbers."""
    name = series.name
    words = series.cast(pl.String).filter(has_value(series))
    n_numbers = 0 if odd is None else len(words) - odd.size
    counts = words.alias("word").value_counts(name="rows", sort=True)["rows"]
    different = len(counts)
    if int(counts[0]) < least_count(len(series), min_count):
        unique = different == len(words)
        spaced = bool(words.str.contains(r"\S\s+\S").any())
        kind = "id" if unique and not spaced else "text"
        what = "it names rows" if kind == "id" else "free text, or names of many things"
        hint = f", of which {n_numbers:,} are numbers" if n_numbers else ""
        doubt = (
            f"column {name!r} has {different:,} different values in {len(words):,} rows{hint}, none of them "
            f"in as many as {least_count(len(series), min_count)} rows: {what}, and is not learned from. "
            f"If so, say {option(name, 'id')} or {option(name, 'drop')}; "
            + (f"if it is a number, {option(name, 'number')}; " if n_numbers else "")
            + f"to learn from its commonest words, {option(name, 'category')}"
            + ("." if int(counts[0]) >= min_count else " with a lower --min-count (min_count).")
        )
        return Understood(name, kind, "likely", f"{different:,} different values", doubt)
    periods = different >= 3 and bool(words.str.contains(_PERIOD).all())
    if n_numbers and not periods:
        others = f", others not ({cells_of(series, words, odd[:1])})" if odd is not None and odd.size else ""
        doubt = (
            f"column {name!r} is taken as a category, though {n_numbers:,} of {len(words):,} cells are "
            f"numbers{others}. {settle(name, 'category', 'number')}"
        )
        return Understood(name, "category", "unsure", "numbers and words", doubt)
    if words.head(10).str.contains(_OBJECT).all() and words.str.contains(_OBJECT).all():
        doubt = (
            f"column {name!r} holds objects or lists, as {shown(words[0])}, and each is taken as one word. "
            f"Take them apart into columns of their own, leave them out with {option(name, 'drop')}, or, if "
            f"each is a name, say {option(name, 'category')}."
        )
        return Understood(name, "category", "unsure", "objects or lists as text", doubt)
    n_runs = int((words != words.shift()).fill_null(True).sum())
    if periods or (different >= 3 and len(words) >= ENOUGH and n_runs == different < len(words)):
        doubt = (
            f"column {name!r} holds {different:,} words that "
            + ("have years in them" if periods else "come one after the other, and none again")
            + f" ({shown(words[0])} ... {shown(words[-1])}), and is taken as a category: new rows may have "
            f"new ones. {settle(name, 'category', 'id')}"
        )
        return Understood(name, "category", "likely", "words that may be periods or batches", doubt)
    return (
        _of_rare_words(series, words, min_count)
        or _of_words_spelled_alike(name, words)
        or Understood(name, "category")
    )


def _of_words_spelled_alike(name: str, words: pl.Series) -> Understood | None:
    """Doubt a category whose words differ only in capitals or spaces, as eco and Eco; None where none do."""
    different = words.unique(maintain_order=True)
    plain = different.str.strip_chars().str.replace_all(r"\s+", " ").str.to_lowercase()
    alike = different.filter(plain.is_duplicated())
    if not len(alike):
        return None
    first = alike.filter(plain.filter(plain.is_duplicated()) == plain.filter(plain.is_duplicated())[0])
    examples = ", ".join(shown(word) for word in first.head(3))
    doubt = (
        f"column {name!r} is taken as a category, and words that differ only in capitals or spaces "
        f"({examples}) as different ones. If they mean the same, write them alike before fitting and "
        f"scoring; if not, say {option(name, 'category')}."
    )
    return Understood(name, "category", "likely", "words that differ in capitals or spaces", doubt)


def _of_rare_words(series: pl.Series, words: pl.Series, min_count: int) -> Understood | None:
    """Doubt a category of which much is rare, as of numbers that are written as words: 120/72, 5h 12m.

    None where rare words are few, or have no digits that could measure something.
    """
    name, least = series.name, least_count(len(series), min_count)
    counted_words = words.alias("word").value_counts(sort=True, name="rows")
    rows = counted_words["rows"].to_numpy()
    rare = (rows < least) | (np.arange(rows.size) >= MOST_CATEGORIES)
    n_rare, n_rows = int(rare.sum()), int(rows[rare].sum())
    if not n_rare or all_numbers(words):
        # Of plain numbers among words, more is said elsewhere.
        return None
    different = counted_words["word"]
    digits = different.str.contains(r"\d").to_numpy()
    measures = (
        rows.size >= _LEAST_WORDS
        and 2 * int(rows[digits].sum()) > len(words)
        and (2 * n_rare > rows.size or _alike_but_for_digits(different))
    )
    if n_rows <= _RARE_ROWS * len(words) and not measures:
        return None
    examples = ", ".join(shown(word) for word in different.filter(pl.Series(rare)).sort().head(3))
    doubt = (
        f"column {name!r} is taken as a category, but {n_rare:,} of its {rows.size:,} different values are "
        f"rare ({examples}{' ...' if n_rare > 3 else ''}): they are taken together as one, in {n_rows:,} of "
        f"{len(words):,} rows, and so is any new value, however far from these. "
        f"If they are measurements, convert them to numbers first, or split them into columns of numbers; if "
        f"they are names, {option(name, 'category')} says so, and {option(name, 'drop')} leaves the column "
        f"out."
    )
    return Understood(name, "category", "unsure", f"{n_rare:,} of {rows.size:,} values are rare", doubt)


def _alike_but_for_digits(different: pl.Series) -> bool:
    """Tell whether nearly all words are one but for their digits, as 3/10 and 12/10 are, or BB80 and BB9F.

    >>> _alike_but_for_digits(pl.Series(["3/10", "12/10"])), _alike_but_for_digits(pl.Series(["A1", "B1"]))
    (True, False)
    """
    shapes = (
        different.str.replace(_HEXADECIMAL, "0")
        .str.replace_all(r"\d+", "0")
        .alias("word")
        .value_counts(sort=True, name="words")["words"]
    )
    return int(shapes[0]) >= _NEARLY_ALIKE * len(different)
