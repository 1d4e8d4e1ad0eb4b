"""The error of tables that cannot be read or written, and how messages show cells and names."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import polars as pl

_CELLS = reprlib.Repr()
# Keep the remedy, which follows the cell, in sight.
_CELLS.maxstring = _CELLS.maxother = 100


class TableError(ValueError):
    """A table that cannot be read or written; the message says where and what to do."""


@contextmanager
def blamed_on(what: str) -> Iterator[None]:
    """Turn any error of a parser, also a panic of polars, into a `TableError` that begins with `what`."""
    try:
        yield
    except TableError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        raise TableError(f"{what}: {reason(error)}") from error


def imported(module: str, otherwise: str) -> Any:
    """Import an optional module, or raise a `TableError` with this message."""
    try:
        return import_module(module)
    except ImportError as error:
        raise TableError(otherwise) from error


def reason(error: BaseException) -> str:
    """Return the first line of an error; parsers add advice about their own parameters."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def shown(cell: Any) -> str:
    """Return a cell for a message; of a long one, its beginning and end.

    >>> shown("much"), len(shown("much" * 1000))
    ("'much'", 100)
    """
    return _CELLS.repr(cell)


def listed(names: Sequence[Any], most: int = 10) -> str:
    """Return names for a message, the first of many.

    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
