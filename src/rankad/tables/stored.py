"""Reading a stored encoder; every field is checked, since model files may come from anyone."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rankad._base.arrays import LARGEST
from rankad.columns.formats import NumberFormat
from rankad.columns.missing_values import MissingMarker
from rankad.columns.times import EPOCHS, EXCEL, ORDERS, PARTS, TimeFormat
from rankad.tables.encoded_columns import CategoryColumn, Column, EmptyColumn, NumberColumn, TimeColumn

__all__ = ["Note", "read_columns", "read_count", "read_markers", "read_names", "read_notes"]

# No encoder has more encoded columns than these, which would only fill the memory.
_MOST_COLUMNS = 1_000_000


class Note(NamedTuple):
    """What a column of the nominal table was inferred to be: see `rankad.columns.inferred.InferredColumn`."""

    name: str
    kind: str
    sure: str
    why: str
    doubt: str


def read_columns(stored: Any, *, old: bool = False) -> tuple[Column, ...]:
    """Return stored columns; a ValueError says what is wrong. Those of the old schema have no formats."""
    columns = tuple(_column(each, old) for each in _list("columns", stored))
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
    notes = tuple(Note(**_object("a note", each, _NOTE)) for each in _list("notes", stored))
    read_names("notes", [note.name for note in notes])
    return notes


def read_markers(stored: Any) -> tuple[MissingMarker, ...]:
    """Return stored markers of missing values."""
    return tuple(MissingMarker(**_object("missing", each, _MARKER)) for each in _list("missing", stored))


def _column(stored: Any, old: bool) -> Column:
    name = _object("a column", stored, {"name": _TEXT})["name"]
    kind, what = stored.get("kind"), f"column {name!r}"
    if kind == EmptyColumn.kind:
        return EmptyColumn(name)
    if kind == NumberColumn.kind:
        return NumberColumn(name, **_object(what, stored, _OLD_NUMBER_COLUMN if old else _NUMBER_COLUMN))
    # Older models have neither bare_dates nor edge.
    if kind == TimeColumn.kind and not old:
        return TimeColumn(name, **_object(what, {"bare_dates": True, **stored}, _TIME_COLUMN))
    if kind == CategoryColumn.kind:
        column = CategoryColumn(name, **_object(what, {"edge": 0.0, **stored}, _CATEGORY_COLUMN))
        if column.boolean and not set(column.categories) <= {"true", "false", None}:
            raise ValueError(
                f"categories of {what} must be 'true' and 'false', got {_shown(column.categories)}."
            )
        return column
    raise ValueError(f"{what} is of the kind {_shown(kind)}, which this rankad does not know.")


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


def _object(what: str, stored: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked fields of an object; a format is a class with fields of its own."""
    if not isinstance(stored, dict):
        raise ValueError(f"{what} must be stored as an object, got {_shown(stored)}.")
    return {
        name: _read(f"{name} of {what}", stored.get(name), field)
        if isinstance(field, _Field)
        else field[0](**_object(f"the {name} of {what}", stored.get(name), field[1]))
        for name, field in fields.items()
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _distinct(value: Any, allowed: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(allowed, value)) and len(set(value)) == len(value)


def _is_categories(value: Any) -> bool:
    return _distinct(value, lambda each: each is None or (_is_text(each) and each)) and set(value) != {None}


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
_OLD_NUMBER_COLUMN = {
    "median": _NUMBER,
    "center": _NUMBER,
    "scale": _Field(lambda value: _is_number(value) and value > 0, "a number above zero", float),
    "missing": _FLAG,
    "constant": _FLAG,
}
_NUMBER_FORMAT = {
    "decimal": _one_of(".", ","),
    "thousands": _one_of("", ".", ",", "'", " ", "_"),
    "unit": _TEXT,
    "bare": _FLAG,
    "accounting": _FLAG,
}
_NUMBER_COLUMN = _OLD_NUMBER_COLUMN | {
    "format": (NumberFormat, _NUMBER_FORMAT),
    "odd_words": _WORDS,
    "values": _NUMBERS,
    "wall": _one_of("", "positive", "not negative"),
    "any_word": _FLAG,
}
_TIME_COLUMN = {
    "parts": _some_of(*PARTS),
    "missing": _FLAG,
    "format": (TimeFormat, {"orders": _some_of(*ORDERS), "epoch": _one_of("", *EPOCHS, EXCEL)}),
    "odd_words": _WORDS,
    "any_word": _FLAG,
    "bare_dates": _FLAG,
}
_CATEGORY_COLUMN = {
    "categories": _Field(_is_categories, "a list of different texts", tuple),
    "n_other": _count(0),
    "boolean": _FLAG,
    "edge": _Field(lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1", float),
}
_NOTE = {
    "name": _TEXT,
    "kind": _one_of("number", "category", "time", "id", "text", "empty"),
    "sure": _one_of("sure", "likely", "unsure"),
    "why": _TEXT,
    "doubt": _TEXT,
}
_MARKER = {
    "column": _Field(lambda value: value is None or _is_text(value), "a text or null"),
    "value": _Field(lambda value: _is_text(value) and value != "", "a text that is not empty"),
}
