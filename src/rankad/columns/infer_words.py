"""What a column of words is: categories, ids or free text."""

from __future__ import annotations

import numpy as np
import polars as pl

from rankad._base.arrays import Ints
from rankad.columns.inferred import InferredColumn, cells_at, doubtful, option
from rankad.columns.number_patterns import ENOUGH
from rankad.columns.words import MOST_CATEGORIES, has_value, least_count
from rankad.io.errors import shown
from rankad.io.numbers import all_numbers

# A category whose rare words hold this share of the rows teaches little.
_RARE_ROWS = 0.2
# With fewer distinct words than these, digits are part of names: v1, v2, v3.
_LEAST_WORDS = 8
# Words share a pattern if this share of them is the same but for digits.
_SAME_PATTERN = 0.9
_HEXADECIMAL = r"^(?:0x)?[0-9A-Fa-f]{4,}$"
# A year somewhere in a word: 2024-Q1, week 12/2024.
_PERIOD = r"(?i)(?:^|\D)(?:19|20)\d\d(?:\D|$)|^\s*(?:[QHW]|KW|CW|FY)\s?\d{1,2}\W+'?\d\d\s*$"
_OBJECT = r"(?s)^\s*(?:\{.*\}|\[.*\])\s*$"


def infer_words(series: pl.Series, min_count: int, *, odd: Ints | None = None) -> InferredColumn:
    """Infer whether words are categories, ids or free text; `odd` are the cells that are not numbers."""
    name, least = series.name, least_count(len(series), min_count)
    words = series.cast(pl.String).filter(has_value(series))
    n_numbers = 0 if odd is None else len(words) - odd.size
    counts = words.alias("word").value_counts(name="rows", sort=True)
    most, n_distinct = int(counts["rows"][0]), counts.height
    if most < least:
        spaced = bool(words.str.contains(r"\S\s+\S").any())
        kind = "id" if n_distinct == len(words) and not spaced else "text"
        hint = f", of which {n_numbers:,} are numbers" if n_numbers else ""
        often = f"none of them in {least} rows or more"
        evidence = f"it has {n_distinct:,} different values in {len(words):,} rows{hint}, {often}"
        settled = (
            f"Confirm with {option(name, 'id')} or {option(name, 'drop')}; "
            + (f"make it a number with {option(name, 'number')}; " if n_numbers else "")
            + f"or learn from its most frequent words with {option(name, 'category')}"
            + ("." if most >= min_count else " and a lower --min-count (min_count).")
        )
        why = f"{n_distinct:,} different values"
        return doubtful(name, kind, "likely", why, evidence, "", settled=settled)
    periods = n_distinct >= 3 and bool(words.str.contains(_PERIOD).all())
    if n_numbers and not periods:
        others = (
            f", others are not ({cells_at(series, words, odd[:1])})" if odd is not None and odd.size else ""
        )
        evidence = f"{n_numbers:,} of {len(words):,} cells are numbers{others}"
        return doubtful(name, "category", "unsure", "numbers and words", evidence, "number")
    if words.head(10).str.contains(_OBJECT).all() and words.str.contains(_OBJECT).all():
        settled = (
            f"Split them into columns of their own, leave them out with {option(name, 'drop')}, or, if each "
            f"is a name, confirm with {option(name, 'category')}."
        )
        evidence = f"each of its objects or lists, as {shown(words[0])}, counts as one word"
        why = "objects or lists as text"
        return doubtful(name, "category", "unsure", why, evidence, "", settled=settled)
    n_runs = int((words != words.shift()).fill_null(True).sum())
    if periods or (n_distinct >= 3 and len(words) >= ENOUGH and n_runs == n_distinct < len(words)):
        pattern = "contain years" if periods else "come one after the other and never again"
        evidence = (
            f"its {n_distinct:,} different words {pattern} ({shown(words[0])} ... {shown(words[-1])}), so "
            f"new rows may have new ones"
        )
        return doubtful(name, "category", "likely", "words that may be periods or batches", evidence, "id")
    return (
        _rare_words(name, words, counts, least)
        or _alike_words(name, words)
        or InferredColumn(name, "category")
    )


def _alike_words(name: str, words: pl.Series) -> InferredColumn | None:
    """Doubt a category whose words differ only in capitals or spaces, as eco and Eco."""
    distinct = words.unique(maintain_order=True)
    plain = distinct.str.strip_chars().str.replace_all(r"\s+", " ").str.to_lowercase()
    repeated = plain.filter(plain.is_duplicated())
    if not len(repeated):
        return None
    examples = ", ".join(map(shown, distinct.filter(plain == repeated[0]).head(3)))
    evidence = f"words that differ only in capitals or spaces ({examples}) count as different ones"
    settled = (
        f"If they mean the same, write them alike before fitting and scoring; if not, confirm with "
        f"{option(name, 'category')}."
    )
    why = "words that differ in capitals or spaces"
    return doubtful(name, "category", "likely", why, evidence, "", settled=settled)


def _rare_words(name: str, words: pl.Series, counts: pl.DataFrame, least: int) -> InferredColumn | None:
    """Doubt a category with many rare words, which may be measurements written as text: 120/72, 5h 12m."""
    distinct, rows = counts["word"], counts["rows"].to_numpy()
    rare = (rows < least) | (np.arange(rows.size) >= MOST_CATEGORIES)
    n_rare, n_rows = int(rare.sum()), int(rows[rare].sum())
    if not n_rare or all_numbers(words):
        return None
    digits = distinct.str.contains(r"\d").to_numpy()
    measures = (
        rows.size >= _LEAST_WORDS
        and 2 * int(rows[digits].sum()) > len(words)
        and (2 * n_rare > rows.size or _same_pattern(distinct))
    )
    if n_rows <= _RARE_ROWS * len(words) and not measures:
        return None
    examples = ", ".join(map(shown, distinct.filter(pl.Series(rare)).sort().head(3)))
    evidence = (
        f"{n_rare:,} of its {rows.size:,} different values are rare ({examples}{' ...' if n_rare > 3 else ''}"
        f"), so these count as one, in {n_rows:,} of {len(words):,} rows, and so does any new value"
    )
    settled = (
        f"If they are measurements, turn them into one or more columns of numbers first; if they are names, "
        f"confirm with {option(name, 'category')}; {option(name, 'drop')} leaves the column out."
    )
    why = f"{n_rare:,} of {rows.size:,} values are rare"
    return doubtful(name, "category", "unsure", why, evidence, "", settled=settled)


def _same_pattern(distinct: pl.Series) -> bool:
    """Tell whether nearly all words are the same but for digits, as 3/10 and 12/10, or BB80 and BB9F."""
    patterns = distinct.str.replace(_HEXADECIMAL, "0").str.replace_all(r"\d+", "0").alias("word")
    counts = patterns.value_counts(sort=True, name="words")["words"]
    return int(counts[0]) >= _SAME_PATTERN * len(distinct)
