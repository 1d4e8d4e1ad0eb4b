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


def not_split(names: Sequence[str]) -> str:
    """Say how to read a table whose only column looks like whole lines of a file, "" if it does not.

    >>> not_split(["day;flow;heat"])
    "The only column, 'day;flow;heat', looks like whole lines of a file. Is ';' between its columns? Then read
    it with sep=';' (pandas) or separator=';' (polars)."
    >>> not_split(["flow"]), not_split(["day;flow", "heat"])
    ('', '')
    """
    mark = max(";\t|,", key=names[0].count) if len(names) == 1 else ""
    if not mark or mark not in names[0]:
        return ""
    return (
        f"The only column, {shown(names[0])}, looks like whole lines of a file. Is {mark!r} between its "
        f"columns? Then read it with sep={mark!r} (pandas) or separator={mark!r} (polars)."
    )
