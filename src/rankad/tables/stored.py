"""Reading a stored encoder; every field is checked, since model files may come from anyone."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple, get_origin, get_type_hints

import polars as pl

from rankad._base.arrays import LARGEST
from rankad.columns.formats import NumberFormat
from rankad.columns.missing_values import MissingMarker
from rankad.columns.times import EPOCHS, EXCEL, ORDERS, PARTS, TimeFormat
from rankad.tables.encoded_columns import CategoryColumn, Column, EmptyColumn, NumberColumn, TimeColumn

# No encoder has more encoded columns than these, which would only fill the memory.
_MOST_COLUMNS = 1_000_000
_KINDS = {each.kind: each for each in (NumberColumn, CategoryColumn, TimeColumn, EmptyColumn)}


class Note(NamedTuple):
    """What a column of the nominal table was inferred to be: see `rankad.columns.inferred.InferredColumn`."""

    name: str
    kind: str
    sure: str
    why: str
    doubt: str


def read_columns(stored: Any) -> tuple[Column, ...]:
    """Return stored columns; a ValueError says what is wrong."""
    columns = tuple(map(_column, _list("columns", stored)))
    read_names("columns", [column.name for column in columns])
    if not 1 <= sum(column.width for column in columns) <= _MOST_COLUMNS:
        raise ValueError(f"columns must be a list that becomes 1 to {_MOST_COLUMNS:,} numbers.")
    return columns


def read_names(name: str, stored: Any) -> tuple[str, ...]:
    """Return stored names, all different."""
    return tuple(_read(name, stored, _WORDS))


def read_count(name: str, stored: Any, least: int = 0) -> int:
    """Return a stored integer."""
    return int(_read(name, stored, _count(least)))


def read_notes(stored: Any) -> tuple[Note, ...]:
    """Return stored notes."""
    notes = tuple(_object("a note", each, Note) for each in _list("notes", stored))
    read_names("notes", [note.name for note in notes])
    return notes


def read_markers(stored: Any) -> tuple[MissingMarker, ...]:
    """Return stored markers of missing values."""
    return tuple(_object("missing", each, MissingMarker) for each in _list("missing", stored))


def _column(stored: Any) -> Column:
    name = _object("a column", stored, EmptyColumn).name
    kind, what = stored.get("kind"), f"column {name!r}"
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"{what} is of the kind {_shown(kind)}, which this rankad does not know.")
    # Older models have no bare_dates, edge or zone.
    column: Column = _object(what, {"bare_dates": True, "edge": 0.0, "zone": "", **stored}, _KINDS[kind])
    words = column.categories if isinstance(column, CategoryColumn) and column.boolean else ()
    if not set(words) <= {"true", "false", None}:
        raise ValueError(f"categories of {what} must be 'true' and 'false', got {_shown(words)}.")
    return column


class _Field(NamedTuple):
    """What a stored value must satisfy, in words too, and what is made of it."""

    valid: Callable[[Any], bool]
    wanted: str
    make: Callable[[Any], Any] = lambda value: value


def _read(what: str, value: Any, field: _Field) -> Any:
    if not field.valid(value):
        raise ValueError(f"{what} must be {field.wanted}, got {_shown(value)}.")
    return field.make(value)


def _list(what: str, stored: Any) -> list[Any]:
    return list(_read(what, stored, _Field(lambda value: isinstance(value, list), "a list")))


def _object(what: str, stored: Any, kind: type) -> Any:
    """Return an object of a class with checked fields."""
    if not isinstance(stored, dict):
        raise ValueError(f"{what} must be stored as an object, got {_shown(stored)}.")
    made = {}
    for name, annotation in _types_of(kind).items():
        if annotation in (NumberFormat, TimeFormat):
            made[name] = _object(f"the {name} of {what}", stored.get(name), annotation)
        else:
            field = _BY_NAME.get(name) or _BY_TYPE[annotation]
            made[name] = _read(f"{name} of {what}", stored.get(name), field)
    return kind(**made)


@cache
def _types_of(kind: type) -> dict[str, Any]:
    """Return the types of the fields of a class, by name."""
    hints = get_type_hints(kind)
    return {name: annotation for name, annotation in hints.items() if get_origin(annotation) is not ClassVar}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _distinct(value: Any, allowed: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(allowed, value)) and len(set(value)) == len(value)


def _is_categories(value: Any) -> bool:
    return _distinct(value, lambda each: each is None or (_is_text(each) and each)) and set(value) != {None}


def _is_zone(value: Any) -> bool:
    try:
        pl.Series([0], dtype=pl.Datetime("us", "UTC")).dt.convert_time_zone(value or "UTC")
    except (TypeError, pl.exceptions.PolarsError):
        return False
    return isinstance(value, str)


def _count(least: int) -> _Field:
    return _Field(lambda value: type(value) is int and least <= value <= 2**62, f"an integer >= {least}")


def _one_of(*allowed: str) -> _Field:
    return _Field(lambda value: value in allowed, f"one of {allowed}")


def _some_of(*allowed: str) -> _Field:
    return _Field(lambda value: _distinct(value, allowed.__contains__), f"some of {allowed}", tuple)


def _shown(value: Any) -> str:
    return reprlib.repr(value)


_FLAG = _Field(lambda value: isinstance(value, bool), "true or false")
_NUMBER = _Field(_is_number, f"a number within {LARGEST:g}", float)
_NUMBERS = _Field(
    lambda value: isinstance(value, list) and all(map(_is_number, value)),
    "a list of numbers",
    lambda value: tuple(map(float, value)),
)
_TEXT = _Field(_is_text, "a text")
_WORDS = _Field(lambda value: _distinct(value, _is_text), "a list of different texts", tuple)
# A field is checked by its type ...
_BY_TYPE: dict[Any, _Field] = {
    str: _TEXT,
    bool: _FLAG,
    int: _count(0),
    float: _NUMBER,
    tuple[str, ...]: _WORDS,
    tuple[float, ...]: _NUMBERS,
}
# ... or by its name, where not every value of its type is allowed.
_BY_NAME = {
    "scale": _Field(lambda value: _is_number(value) and value > 0, "a number above zero", float),
    "decimal": _one_of(".", ","),
    "thousands": _one_of("", ".", ",", "'", " ", "_"),
    "wall": _one_of("", "positive", "not negative"),
    "parts": _some_of(*PARTS),
    "orders": _some_of(*ORDERS),
    "epoch": _one_of("", *EPOCHS, EXCEL),
    "zone": _Field(_is_zone, "a time zone or an empty text"),
    "categories": _Field(_is_categories, "a list of different texts", tuple),
    "edge": _Field(lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1", float),
    "kind": _one_of("number", "category", "time", "id", "text", "empty"),
    "sure": _one_of("sure", "likely", "unsure"),
    "column": _Field(lambda value: value is None or _is_text(value), "a text or null"),
    "value": _Field(lambda value: _is_text(value) and value != "", "a text that is not empty"),
}
