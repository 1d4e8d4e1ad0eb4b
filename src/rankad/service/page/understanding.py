"""What the columns of a table are understood as, and what users say instead."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec
import polars as pl

from rankad._base.wording import isolated, shown
from rankad.columns.inferred import ColumnOptions
from rankad.service.errors import RequestError
from rankad.service.page.tables import Table
from rankad.service.page.wording import without_options
from rankad.tables.learning import learn_encoder
from rankad.tables.stored import Note

_SHOWN_CELLS = 3
_LOOKED_AT = 50
# As of TableDetector.
_MIN_COUNT = 5


class Corrections(msgspec.Struct, forbid_unknown_fields=True):
    """What the user says about columns: the parameters of `rankad.TableDetector`, by column."""

    kinds: dict[str, Literal["number", "category", "time", "id", "drop"]] = {}
    decimal: Literal[".", ","] | None = None
    day_first: bool | None = None
    missing: dict[str, list[str]] = {}
    missing_everywhere: list[str] = []

    def check(self, table: Table) -> None:
        """Raise if the table lacks a column."""
        unknown = [name for name in (*self.kinds, *self.missing) if name not in table.frame.columns]
        if unknown:
            raise RequestError(422, "columns", f"the table has no column {shown(unknown[0])!r}")

    def options(self) -> ColumnOptions:
        """Return them as the parameters."""

        def of(kind: str) -> tuple[str, ...]:
            return tuple(name for name, said in self.kinds.items() if said == kind)

        missing: dict[str | None, list[str]] = {name: marks for name, marks in self.missing.items() if marks}
        if self.missing_everywhere:
            missing[None] = self.missing_everywhere
        return ColumnOptions(
            of("number"),
            of("category"),
            of("time"),
            of("id"),
            of("drop"),
            self.decimal,
            self.day_first,
            missing or (),
        )


def understood(table: Table, corrections: Corrections) -> dict[str, Any]:
    """Say of every column what it is understood as, and why."""
    corrections.check(table)
    try:
        learned = learn_encoder(table.rows, corrections.options(), min_count=_MIN_COUNT)
    except (ValueError, TypeError) as error:
        # The columns are still shown, so that what is wrong can be corrected.
        columns = [
            _column(series, corrections, "unknown", f"of type {series.dtype}") for series in table.frame
        ]
        return {"columns": columns, "notes": [], "problem": without_options(str(error))}
    used = {column.name: column.describe() for column in learned.encoder.columns}
    notes = {note.name: note for note in learned.encoder.notes}
    columns = []
    for series in table.frame:
        note = notes.get(series.name)
        kind = "text" if note is None else note.kind
        words = used.get(series.name, "").removeprefix(f"{series.name}: ")
        columns.append(_column(series, corrections, kind, words, note))
    warnings = [_plainly(warning) for warning in learned.warnings]
    return {"columns": columns, "notes": warnings, "problem": None}


def _column(
    series: pl.Series, corrections: Corrections, found: str, used: str, note: Note | None = None
) -> dict[str, Any]:
    asked = corrections.kinds.get(series.name)
    kind = asked or found
    return {
        "name": series.name,
        "shown": shown(series.name),
        "kind": kind,
        "asked": asked,
        "used": isolated(used or _UNUSED.get(kind, "not used")),
        "sure": "as you said" if asked else "" if note is None else note.sure,
        "doubt": "" if note is None or asked else _doubt(series.name, note.doubt),
        "cells": _cells(series),
    }


_UNUSED = {
    "id": "names rows; not learned from",
    "drop": "left out",
    "text": "free text; not learned from",
    "empty": "always empty",
}


def _cells(series: pl.Series) -> list[str]:
    """Return the first few different cells."""
    seen = dict.fromkeys(shown(cell) for cell in series.head(_LOOKED_AT).to_list())
    return list(seen)[:_SHOWN_CELLS]


def _doubt(name: str, text: str) -> str:
    """Leave out what stands beside it on the page."""
    told = _plainly(text).removeprefix(f"column {name!r} is ")
    return told[:1].upper() + told[1:]


def _plainly(text: str) -> str:
    """Leave out sentences about options of the command; the page has controls in their place."""
    sentences = re.split(r"(?<=[.?])\s+(?=[A-Z])", text)
    return isolated(" ".join(each for each in sentences if "--" not in each)) or text
