"""Columns of numbers in some rows and text in others, cut so that each row is read as it would be alone.

A data frame has one type for a column, so that numbers beside text become text, and 1.0 is another category
than 1. What is said of a row must not depend on the other rows of its request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankad.service.errors import RequestError

# Rows of a request, by number, and their columns.
Part = tuple[Any, dict[str, list[Any]]]
# Floats hold whole numbers up to here.
_EXACT = 2**53
_MOST_PARTS = 1_000


def kind_of(cell: Any) -> str:
    """Return what a cell of JSON is read as; cells of one kind can share a column, with missing ones.

    >>> [kind_of(cell) for cell in (1, 1.5, "1", True, None, 2**60)]
    ['number', 'number', 'text', 'boolean', '', 'large number']
    """
    if cell is None:
        return ""
    if isinstance(cell, str):
        return "text"
    if isinstance(cell, bool):
        return "boolean"
    return "number" if isinstance(cell, float) or -_EXACT <= cell <= _EXACT else "large number"


def parts_of(columns: Mapping[str, Sequence[Any]]) -> list[Part] | None:
    """Return parts of a table without a column of two kinds; None if it has no such column.

    >>> parts_of({"a": [1, None, 2.5], "b": ["x", "y", "z"]})
    >>> [(rows.tolist(), part) for rows, part in parts_of({"a": [1, "x", 2]})]
    [([0, 2], {'a': [1, 2]}), ([1], {'a': ['x']})]
    """
    mixed = []
    for cells in columns.values():
        types = set(map(type, cells)) - {type(None)}
        if types <= {float} or types == {str} or types == {bool}:
            continue
        kinds = [kind_of(cell) for cell in cells]
        if len(set(kinds) - {""}) > 1:
            mixed.append(kinds)
    if not mixed:
        return None
    rows: dict[tuple[str, ...], list[int]] = {}
    for at, kinds_of_row in enumerate(zip(*mixed, strict=True)):
        rows.setdefault(kinds_of_row, []).append(at)
    if len(rows) > _MOST_PARTS:
        raise RequestError(
            422,
            "mixed",
            f"columns mix numbers, text and booleans in {len(rows):,} ways; send at most {_MOST_PARTS:,} in "
            f"one request",
        )
    return [
        (np.array(which), {name: [cells[at] for at in which] for name, cells in columns.items()})
        for which in rows.values()
    ]
