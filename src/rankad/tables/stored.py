"""What an encoder was stored as, checked: it may come from a file that nobody vouches for."""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple

from rankad._base.arrays import LARGEST
from rankad.columns.formats import PLAIN, NumberFormat
from rankad.columns.stand_ins import StandIn
from rankad.columns.times import EPOCHS, EXCEL, ORDERS, PARTS, TimeFormat
from rankad.tables.encoded_columns import CategoryColumn, Column, EmptyColumn, NumberColumn, TimeColumn

__all__ = ["Note", "read_columns", "read_count", "read_names", "read_notes", "read_stored_stand_ins"]

# More encoded columns than these were never written, and would only fill the memory.
_MOST_COLUMNS = 1_000_000


_KINDS = ("number", "category", "time", "id", "text", "empty")
_SURE = ("sure", "likely", "unsure")


class Note(NamedTuple):
    """How a column of the nominal table was understood: see `rankad.columns.kinds.Understood`.

    Attributes
    ----------
    name, kind, sure, why, doubt : str
    """

    name: str
    kind: str
    sure: str
    why: str
    doubt: str


def read_columns(stored: Any, *, old: bool = False) -> tuple[Column, ...]:
    """Return the columns that were stored, or raise a ValueError that says what is wrong.

    Those of an old schema have numbers written plainly, and no times.
    """
    if not isinstance(stored, list) or not stored:
        raise ValueError(f"columns must be a list with at least one column, got {_shown(stored)}.")
    columns = tuple(_column(one, old) for one in stored)
    read_names("columns", [column.name for column in columns])
    if not 1 <= sum(column.width for column in columns) <= _MOST_COLUMNS:
        raise ValueError(f"columns must become 1 to {_MOST_COLUMNS:,} numbers.")
    return columns


def read_names(name: str, stored: Any) -> tuple[str, ...]:
    """Return different names that were stored, or raise."""
    if not isinstance(stored, list) or not all(isinstance(one, str) for one in stored):
        raise ValueError(f"{name} must be a list of names, got {_shown(stored)}.")
    if len(set(stored)) < len(stored):
        raise ValueError(f"{name} must be different names, got {_shown(stored)}.")
    return tuple(stored)


def read_count(name: str, stored: Any, least: int = 0) -> int:
    """Return an integer that was stored, or raise."""
    if not isinstance(stored, int) or isinstance(stored, bool) or not least <= stored <= 2**62:
        raise ValueError(f"{name} must be an integer >= {least}, got {_shown(stored)}.")
    return stored


def read_notes(stored: Any) -> tuple[Note, ...]:
    """Return the notes that were stored, or raise."""
    if not isinstance(stored, list):
        raise ValueError(f"notes must be a list, got {_shown(stored)}.")
    notes = []
    for one in stored:
        if not isinstance(one, dict) or not all(isinstance(one.get(field), str) for field in Note._fields):
            raise ValueError(f"a note must be an object of texts, got {_shown(one)}.")
        note = Note(*(one[field] for field in Note._fields))
        if note.kind not in _KINDS or note.sure not in _SURE:
            raise ValueError(f"a note must be of a known kind and sureness, got {_shown(one)}.")
        notes.append(note)
    read_names("notes", [note.name for note in notes])
    return tuple(notes)


def read_stored_stand_ins(stored: Any) -> tuple[StandIn, ...]:
    """Return the values that stand for missing ones, as they were stored, or raise."""
    if not isinstance(stored, list):
        raise ValueError(f"missing must be a list, got {_shown(stored)}.")
    found = []
    for one in stored:
        column, value = (one.get("column"), one.get("value")) if isinstance(one, dict) else (0, 0)
        if not isinstance(column, (str, type(None))) or not isinstance(value, str) or not value:
            raise ValueError(f"missing must hold a column and a value each, got {_shown(one)}.")
        found.append(StandIn(column, value))
    return tuple(found)


def _column(stored: Any, old: bool) -> Column:
    if not isinstance(stored, dict):
        raise ValueError(f"a column must be stored as an object, got {_shown(stored)}.")
    kind, name = stored.get("kind"), stored.get("name")
    if not isinstance(name, str):
        raise ValueError(f"a column's name must be text, got {_shown(name)}.")
    if kind == NumberColumn.kind:
        median, center, scale = (_number(name, stored, field) for field in ("median", "center", "scale"))
        if scale <= 0:
            raise ValueError(f"scale of column {name!r} must be above zero, got {scale!r}.")
        missing, constant = _flag(name, stored, "missing"), _flag(name, stored, "constant")
        if old:
            return NumberColumn(name, median, center, scale, missing, constant)
        return NumberColumn(
            name,
            median,
            center,
            scale,
            missing,
            constant,
            _number_format(name, stored.get("format")),
            read_names(f"odd_words of column {name!r}", stored.get("odd_words")),
            _values(name, stored.get("values")),
            _one_of(name, stored, "wall", ("", "positive", "not negative")),
            _flag(name, stored, "any_word"),
        )
    if kind == TimeColumn.kind and not old:
        parts = read_names(f"parts of column {name!r}", stored.get("parts"))
        if not set(parts) <= set(PARTS):
            raise ValueError(f"parts of column {name!r} must be some of {PARTS}, got {_shown(parts)}.")
        return TimeColumn(
            name,
            parts,
            _flag(name, stored, "missing"),
            _time_format(name, stored.get("format")),
            read_names(f"odd_words of column {name!r}", stored.get("odd_words")),
            _flag(name, stored, "any_word"),
            # Of models that did not ask, it is not known.
            _flag(name, {"bare_dates": True, **stored}, "bare_dates"),
        )
    if kind == CategoryColumn.kind:
        n_other = read_count(f"n_other of column {name!r}", stored.get("n_other"))
        boolean = _flag(name, stored, "boolean")
        # Older models do not have it.
        edge = _number(name, {"edge": 0.0, **stored}, "edge")
        if not 0 <= edge <= 1:
            raise ValueError(f"edge of column {name!r} must be from 0 to 1, got {edge!r}.")
        categories = _categories(name, stored.get("categories"), boolean)
        return CategoryColumn(name, categories, n_other, boolean, edge)
    if kind == EmptyColumn.kind:
        return EmptyColumn(name)
    raise ValueError(f"column {name!r} is of the kind {_shown(kind)}, which this rankad does not know.")


def _number_format(name: str, stored: Any) -> NumberFormat:
    if not isinstance(stored, dict):
        raise ValueError(f"format of column {name!r} must be an object, got {_shown(stored)}.")
    form = NumberFormat(
        _one_of(name, stored, "decimal", (".", ",")),
        _one_of(name, stored, "thousands", ("", ".", ",", "'", " ", "_")),
        _one_of(name, stored, "unit"),
        _flag(name, stored, "bare"),
        _flag(name, stored, "accounting"),
    )
    return PLAIN if form == PLAIN else form


def _time_format(name: str, stored: Any) -> TimeFormat:
    if not isinstance(stored, dict):
        raise ValueError(f"format of column {name!r} must be an object, got {_shown(stored)}.")
    orders = read_names(f"orders of column {name!r}", stored.get("orders"))
    if not set(orders) <= set(ORDERS):
        raise ValueError(f"orders of column {name!r} must be some of {ORDERS}, got {_shown(orders)}.")
    return TimeFormat(orders, _one_of(name, stored, "epoch", ("", *EPOCHS, EXCEL)))


def _values(name: str, stored: Any) -> tuple[float, ...]:
    if not isinstance(stored, list):
        raise ValueError(f"values of column {name!r} must be a list of numbers, got {_shown(stored)}.")
    return tuple(_number(name, {"values": value}, "values") for value in stored)


def _one_of(name: str, stored: dict[str, Any], field: str, allowed: tuple[str, ...] = ()) -> str:
    value = stored.get(field)
    if not isinstance(value, str) or (allowed and value not in allowed):
        wanted = f"one of {allowed}" if allowed else "a text"
        raise ValueError(f"{field} of column {name!r} must be {wanted}, got {_shown(value)}.")
    return value


def _categories(name: str, stored: Any, boolean: bool) -> tuple[str | None, ...]:
    if not isinstance(stored, list) or not all(one is None or isinstance(one, str) for one in stored):
        raise ValueError(f"categories of column {name!r} must be a list of texts, got {_shown(stored)}.")
    if len(set(stored)) < len(stored) or not set(stored) - {None} or "" in stored:
        raise ValueError(f"categories of column {name!r} must be different texts, got {_shown(stored)}.")
    if boolean and not set(stored) <= {"true", "false", None}:
        raise ValueError(f"categories of column {name!r} must be 'true' and 'false', got {_shown(stored)}.")
    return tuple(stored)


def _number(name: str, stored: dict[str, Any], field: str) -> float:
    value = stored.get(field)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return float(value)
    raise ValueError(f"{field} of column {name!r} must be a number within {LARGEST:g}, got {_shown(value)}.")


def _flag(name: str, stored: dict[str, Any], field: str) -> bool:
    value = stored.get(field)
    if isinstance(value, bool):
        return value
    raise ValueError(f"{field} of column {name!r} must be true or false, got {_shown(value)}.")


def _shown(value: Any) -> str:
    return reprlib.repr(value)
