"""What an encoder was stored as, checked: it may come from a file that nobody vouches for."""

from __future__ import annotations

import reprlib
from typing import Any

from rankad._arrays import LARGEST
from rankad.tables.columns import CategoryColumn, Column, EmptyColumn, NumberColumn

__all__ = ["read_columns", "read_count", "read_names"]

# More encoded columns than these were never written, and would only fill the memory.
_MOST_COLUMNS = 1_000_000


def read_columns(stored: Any) -> tuple[Column, ...]:
    """Return the columns that were stored, or raise a ValueError that says what is wrong."""
    if not isinstance(stored, list) or not stored:
        raise ValueError(f"columns must be a list with at least one column, got {_shown(stored)}.")
    columns = tuple(_column(one) for one in stored)
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


def _column(stored: Any) -> Column:
    if not isinstance(stored, dict):
        raise ValueError(f"a column must be stored as an object, got {_shown(stored)}.")
    kind, name = stored.get("kind"), stored.get("name")
    if not isinstance(name, str):
        raise ValueError(f"a column's name must be text, got {_shown(name)}.")
    if kind == NumberColumn.kind:
        median, center, scale = (_number(name, stored, field) for field in ("median", "center", "scale"))
        if scale <= 0:
            raise ValueError(f"scale of column {name!r} must be above zero, got {scale!r}.")
        return NumberColumn(
            name, median, center, scale, _flag(name, stored, "missing"), _flag(name, stored, "constant")
        )
    if kind == CategoryColumn.kind:
        n_other = read_count(f"n_other of column {name!r}", stored.get("n_other"))
        boolean = _flag(name, stored, "boolean")
        return CategoryColumn(name, _categories(name, stored.get("categories"), boolean), n_other, boolean)
    if kind == EmptyColumn.kind:
        return EmptyColumn(name)
    raise ValueError(f"column {name!r} is of the kind {_shown(kind)}, which this rankad does not know.")


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
