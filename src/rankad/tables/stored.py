"""Reading a stored encoder; every field is checked, since model files may come from anyone."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rankad._base.arrays import LARGEST
from rankad.columns.formats import NumberFormat
from rankad.columns.missing_markers import MissingMarker
from rankad.columns.times import EPOCHS, EXCEL, ORDERS, PARTS, TimeFormat
from rankad.tables.encoded_columns import CategoryColumn, Column, EmptyColumn, NumberColumn, TimeColumn

__all__ = ["Note", "read_columns", "read_count", "read_markers", "read_names", "read_notes"]

# No encoder has more encoded columns than these, which would only fill the memory.
_MOST_COLUMNS = 1_000_000
_KINDS = ("number", "category", "time", "id", "text", "empty")
_SURE = ("sure", "likely", "unsure")


class Note(NamedTuple):
    """What a column of the nominal table was inferred to be: see `rankad.columns.inferred.InferredColumn`."""

    name: str
    kind: str
    sure: str
    why: str
    doubt: str


def read_columns(stored: Any, *, old: bool = False) -> tuple[Column, ...]:
    """Return stored columns; a ValueError says what is wrong. Those of the old schema have no formats."""
    if not isinstance(stored, list) or not stored:
        raise ValueError(f"columns must be a list with at least one column, got {_shown(stored)}.")
    columns = tuple(_column(each, old) for each in stored)
    read_names("columns", [column.name for column in columns])
    if not 1 <= sum(column.width for column in columns) <= _MOST_COLUMNS:
        raise ValueError(f"columns must become 1 to {_MOST_COLUMNS:,} numbers.")
    return columns


def read_names(name: str, stored: Any) -> tuple[str, ...]:
    """Return stored names, all different."""
    return tuple(_read(name, stored, _WORDS))


def read_count(name: str, stored: Any, least: int = 0) -> int:
    """Return a stored integer."""
    return int(_read(name, stored, _count(least)))


def read_notes(stored: Any) -> tuple[Note, ...]:
    """Return stored notes."""
    if not isinstance(stored, list):
        raise ValueError(f"notes must be a list, got {_shown(stored)}.")
    notes = []
    for each in stored:
        if not isinstance(each, dict) or not all(isinstance(each.get(field), str) for field in Note._fields):
            raise ValueError(f"a note must be an object of texts, got {_shown(each)}.")
        note = Note(*(each[field] for field in Note._fields))
        if note.kind not in _KINDS or note.sure not in _SURE:
            raise ValueError(f"a note must be of a known kind and sureness, got {_shown(each)}.")
        notes.append(note)
    read_names("notes", [note.name for note in notes])
    return tuple(notes)


def read_markers(stored: Any) -> tuple[MissingMarker, ...]:
    """Return stored markers of missing values."""
    if not isinstance(stored, list):
        raise ValueError(f"missing must be a list, got {_shown(stored)}.")
    markers = []
    for each in stored:
        column, value = (each.get("column"), each.get("value")) if isinstance(each, dict) else (0, 0)
        if not isinstance(column, (str, type(None))) or not isinstance(value, str) or not value:
            raise ValueError(f"missing must hold a column and a value each, got {_shown(each)}.")
        markers.append(MissingMarker(column, value))
    return tuple(markers)


def _column(stored: Any, old: bool) -> Column:
    if not isinstance(stored, dict):
        raise ValueError(f"a column must be stored as an object, got {_shown(stored)}.")
    kind, name = stored.get("kind"), stored.get("name")
    if not isinstance(name, str):
        raise ValueError(f"a column's name must be text, got {_shown(name)}.")
    if kind == EmptyColumn.kind:
        return EmptyColumn(name)
    if kind == NumberColumn.kind:
        return NumberColumn(name, **_fields(name, stored, _OLD_NUMBER if old else _OLD_NUMBER | _NEW_NUMBER))
    if kind == TimeColumn.kind and not old:
        # Older models do not have it.
        return TimeColumn(name, **_fields(name, {"bare_dates": True, **stored}, _TIME))
    if kind == CategoryColumn.kind:
        column = CategoryColumn(name, **_fields(name, {"edge": 0.0, **stored}, _CATEGORY))
        if column.boolean and not set(column.categories) <= {"true", "false", None}:
            shown = _shown(list(column.categories))
            raise ValueError(f"categories of column {name!r} must be 'true' and 'false', got {shown}.")
        return column
    raise ValueError(f"column {name!r} is of the kind {_shown(kind)}, which this rankad does not know.")


def _fields(name: str, stored: Mapping[str, Any], fields: Mapping[str, _Field]) -> dict[str, Any]:
    return {field: _read(f"{field} of column {name!r}", stored.get(field), fields[field]) for field in fields}


class _Field(NamedTuple):
    """What a stored value must satisfy, in words too, and what is made of it."""

    valid: Callable[[Any], bool]
    wanted: str
    make: Callable[[Any], Any] = lambda value: value


def _read(what: str, value: Any, field: _Field) -> Any:
    if not field.valid(value):
        raise ValueError(f"{what} must be {field.wanted}, got {_shown(value)}.")
    return field.make(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _distinct(value: Any, allowed: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(allowed, value)) and len(set(value)) == len(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _count(least: int) -> _Field:
    return _Field(lambda value: type(value) is int and least <= value <= 2**62, f"an integer >= {least}")


def _one_of(*allowed: str) -> _Field:
    return _Field(lambda value: value in allowed, f"one of {allowed}")


def _some_of(*allowed: str) -> _Field:
    return _Field(lambda value: _distinct(value, allowed.__contains__), f"some of {allowed}", tuple)


def _format(form: type, fields: Mapping[str, _Field]) -> _Field:
    def is_format(value: Any) -> bool:
        return isinstance(value, dict) and all(each.valid(value.get(name)) for name, each in fields.items())

    wanted = "an object with " + ", ".join(f"{name} ({each.wanted})" for name, each in fields.items())
    return _Field(is_format, wanted, lambda value: form(**{n: f.make(value[n]) for n, f in fields.items()}))


def _is_categories(value: Any) -> bool:
    texts = _distinct(value, lambda each: each is None or (isinstance(each, str) and each != ""))
    return texts and any(each is not None for each in value)


def _shown(value: Any) -> str:
    return reprlib.repr(value)


_FLAG = _Field(lambda value: isinstance(value, bool), "true or false")
_NUMBER = _Field(_is_number, f"a number within {LARGEST:g}", float)
_TEXT = _Field(_is_text, "a text")
_WORDS = _Field(lambda value: _distinct(value, _is_text), "a list of different texts", tuple)
_NUMBER_FORMAT = {
    "decimal": _one_of(".", ","),
    "thousands": _one_of("", ".", ",", "'", " ", "_"),
    "unit": _TEXT,
    "bare": _FLAG,
    "accounting": _FLAG,
}
_OLD_NUMBER = {
    "median": _NUMBER,
    "center": _NUMBER,
    "scale": _Field(lambda value: _is_number(value) and value > 0, "a number above zero", float),
    "missing": _FLAG,
    "constant": _FLAG,
}
_NEW_NUMBER = {
    "format": _format(NumberFormat, _NUMBER_FORMAT),
    "odd_words": _WORDS,
    "values": _Field(
        lambda value: isinstance(value, list) and all(map(_is_number, value)),
        "a list of numbers",
        lambda value: tuple(map(float, value)),
    ),
    "wall": _one_of("", "positive", "not negative"),
    "any_word": _FLAG,
}
_TIME = {
    "parts": _some_of(*PARTS),
    "missing": _FLAG,
    "format": _format(TimeFormat, {"orders": _some_of(*ORDERS), "epoch": _one_of("", *EPOCHS, EXCEL)}),
    "odd_words": _WORDS,
    "any_word": _FLAG,
    "bare_dates": _FLAG,
}
_CATEGORY = {
    "categories": _Field(_is_categories, "a list of different texts", tuple),
    "n_other": _count(0),
    "boolean": _FLAG,
    "edge": _Field(lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1", float),
}
