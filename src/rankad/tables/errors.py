"""The error that every unreadable table ends in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

__all__ = ["TableError", "blamed_on"]


class TableError(ValueError):
    """A table that cannot be read or written; the message says where and what to do."""


@contextmanager
def blamed_on(what: str) -> Iterator[None]:
    """Turn whatever a parser raises for a damaged file into a `TableError` that begins with `what`.

    Only calls of parsers belong inside. Polars may also panic, and a panic is no `Exception`.
    """
    try:
        yield
    except TableError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        raise TableError(f"{what}: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """Return the first line of what an error says; parsers add advice about their own parameters."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
