"""A scored table: its p-values, its alarms at any alpha, their reasons, and a CSV file of them."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Bools, Floats, Ints
from rankad._base.wording import count, isolated, percent, probability, shown
from rankad.alarms.chance import PValueSummary, chance_of
from rankad.alarms.verdict import judge
from rankad.detectors.table import TableDetector
from rankad.explanations.sentences import reason_text
from rankad.io.output import open_output
from rankad.report.contents import Alarm
from rankad.report.page import promised
from rankad.report.verdicts import Pen, spoken
from rankad.scoring.batches import AnswerColumns, Batch, ExplainedRow, Rows, explained
from rankad.scoring.loading import for_table
from rankad.service.errors import RequestError
from rankad.service.models import ServedModel
from rankad.service.page.reasons import as_card
from rankad.service.page.tables import Table
from rankad.service.page.workspace import read_json, write_json
from rankad.tables.encoded_columns import NumberColumn, TimeColumn
from rankad.tables.judging import TableVerdict

_PAGE_ROWS = 20
_MOST_CELLS = 8
_MOST_EXPLAINED = 20
# Reasons in the file; more would take minutes.
_MOST_REASONS = 1_000
_PEN = Pen(shown, percent)


class Order(NamedTuple):
    """Which alarms to list: from a place on, by a column or, if None, the most abnormal first."""

    by: str | None
    down: bool
    begin: int


def table_detector(model: ServedModel, columns: list[str]) -> TableDetector:
    """Return the detector of a model as one of tables."""
    detector: Any = model.detector
    return detector if isinstance(detector, TableDetector) else for_table(detector, columns)


def write(folder: Path, about: dict[str, Any], p_values: Floats, scores: Floats) -> None:
    """Store what was said of a table.

    Another request may be reading the same, mapped into memory: a file is replaced, never written to.
    """
    for name, values in {"p_values.npy": p_values, "scores.npy": scores}.items():
        part = folder / f"{name}.{secrets.token_hex(4)}"
        try:
            with open(part, "wb") as file:
                np.save(file, values)
            os.replace(part, folder / name)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    write_json(folder / "about.json", about)


class Answers:
    """What a model says of the rows of a table.

    Parameters
    ----------
    folder : path
        Written by `write`.
    table : Table
    model : ServedModel
    """

    def __init__(self, folder: Path, table: Table, model: ServedModel) -> None:
        self.folder, self.table, self.model = folder, table, model
        self.p_values: Floats = np.load(folder / "p_values.npy", mmap_mode="r")
        self.scores: Floats = np.load(folder / "scores.npy", mmap_mode="r")
        # P-values among the rows of the table itself, and not against normal rows.
        self.own: bool = read_json(folder / "about.json")["own"]

    @cached_property
    def detector(self) -> TableDetector:
        """The detector, as one of tables."""
        return table_detector(self.model, self.table.frame.columns)

    @property
    def explains(self) -> bool:
        """Whether the model can give reasons."""
        return bool(self.model.describe()["explains"])

    def describe(self) -> dict[str, Any]:
        """Return what the page needs to begin with."""
        n = len(self.p_values) if self.own else self.detector.calibration_.scores.size + 1
        encoder = self.detector.encoder_
        named = [*(name for name in encoder.ids if name in self.table.frame.columns), *encoder.names]
        return {
            "id": self.folder.name,
            "table": self.table.describe(),
            "model": self.model.describe(),
            "own": self.own,
            "least": 1 / n,
            "explains": self.explains,
            "alpha": self.model.detector.alpha,
            "columns": [{"name": name, "shown": shown(name)} for name in named],
            "axes": [
                {
                    "name": column.name,
                    "shown": shown(column.name),
                    "number": isinstance(column, NumberColumn),
                    "time": isinstance(column, TimeColumn),
                }
                for column in encoder.columns
                if column.width
            ],
        }

    def listed(self, alpha: float, order: Order) -> dict[str, Any]:
        """Return some of the alarms, and the verdict on their number."""
        at = self._sorted(np.flatnonzero(self.p_values <= alpha), order)
        chosen = at[order.begin : order.begin + _PAGE_ROWS]
        columns = self.describe()["columns"]
        ids = set(self.detector.encoder_.ids)
        # All ids, and as many others as can be shown.
        names = [each["name"] for each in columns if each["name"] in ids]
        names += [each["name"] for each in columns if each["name"] not in ids][:_MOST_CELLS]
        cells = self.table.frame.select(names)[chosen]
        rows = [
            {
                "row": int(row),
                "p_value": probability(float(self.p_values[row])),
                "id": " ".join(shown(cell) for name, cell in zip(names, line, strict=True) if name in ids),
                "cells": [
                    [shown(name), shown(cell)]
                    for name, cell in zip(names, line, strict=True)
                    if name not in ids
                ],
            }
            for row, line in zip(chosen.tolist(), cells.iter_rows(), strict=True)
        ]
        return {"total": int(at.size), "begin": order.begin, "rows": rows, **self.judged(alpha)}

    def judged(self, alpha: float) -> dict[str, Any]:
        """Say how many alarms chance raises, and what is promised."""
        n_rows = len(self.p_values)
        if self.own:
            return {
                "title": f"The {percent(alpha)} of this table that are least like the rest",
                "usual": None,
                "promise": (
                    f"A p-value is the row's place among the {count(n_rows)} rows of this table. At most "
                    f"{percent(alpha)} of them are alarms, and as many would be if none were an anomaly: how "
                    f"many are is for you to see."
                ),
            }
        verdict = judge(PValueSummary.of([self.p_values], alpha), chance_of(self.detector), alpha)
        bound = self.detector.false_alarm_bound(alpha)
        said = spoken(TableVerdict(verdict, (), True, 0, 0, 0), _PEN)
        return {
            "title": said.title,
            "kind": verdict.kind,
            "off": said.off,
            "usual": None if verdict.kind == "unknown" else [count(each) for each in verdict.usual],
            "promise": promised(bound),
        }

    def reasons(self, rows: list[int], alpha: float) -> list[dict[str, Any]]:
        """Say of some rows why they are abnormal."""
        if any(not 0 <= row < len(self.p_values) for row in rows) or len(rows) > _MOST_EXPLAINED:
            raise RequestError(422, "rows", f"rows must be up to {_MOST_EXPLAINED} places in the table")
        if not self.explains or not rows:
            return []
        return [as_card(_alarm(each), each.explanation, alpha) for each in self._explained(rows, alpha)]

    def _explained(self, rows: list[int], alpha: float) -> list[ExplainedRow]:
        at: Ints = np.array(rows, dtype=np.int64)
        chosen = Rows(self.table.frame[rows], at + 1, self.scores[at], self.p_values[at])
        return explained(self.detector, chosen, alpha)

    def write_csv(self, path: Path, alpha: float) -> None:
        """Write the alarms, the most abnormal first; what a spreadsheet would run is neutralized."""
        at = self._sorted(np.flatnonzero(self.p_values <= alpha), Order(None, False, 0))
        frame = self.table.frame[at]
        prefix = "rankad_" if {"p_value", "score", "alarm", "reason"} & set(frame.columns) else ""
        columns = AnswerColumns.beside(frame.columns, prefix, reasons=self.explains)
        batch = Batch(frame, self.scores[at], self.p_values[at], 0, None)
        alarms: Bools = np.ones(at.size, dtype=bool)
        answers = replace(columns, reason=None).of(self.detector, batch, alarms, at.size, alpha)
        if columns.reason is not None:
            some = self._explained(at[:_MOST_REASONS].tolist(), alpha)
            told: list[str | None] = [reason_text(each.explanation, each.strange) for each in some]
            told += [None] * (at.size - len(told))
            answers = answers.with_columns(pl.Series(columns.reason, told, dtype=pl.String))
        number = next(
            name for name in ("row", "rankad_row", "rankad_row_number") if name not in frame.columns
        )
        rows = frame.insert_column(0, pl.Series(number, at + 1)).hstack(answers)
        nested = [name for name, kind in rows.schema.items() if kind.is_nested() or kind == pl.Binary]
        with open_output(path, format="csv", neutralize_formulas=True) as writer:
            writer.write(rows.drop(nested))

    def _sorted(self, at: Ints, order: Order) -> Ints:
        if order.by is None:
            key: Any = self.scores[at]
        else:
            if order.by not in {each["name"] for each in self.describe()["columns"]}:
                raise RequestError(422, "by", f"there is no column {order.by[:100]!r} to order by")
            key = self.read(order.by)[at]
        if isinstance(key, pl.Series):
            places = key.arg_sort(descending=order.down, nulls_last=True).to_numpy()
        else:
            places = np.argsort(-key if order.down else key, kind="stable")
        ordered: Ints = at[places]
        return ordered

    def read(self, name: str) -> Any:
        """Return a column as it is compared: numbers as such, whatever they are written as."""
        series = self.table.frame[name]
        column = next((each for each in self.detector.encoder_.columns if each.name == name), None)
        if isinstance(column, NumberColumn):
            return column.read(self.detector.encoder_.cells(self.table.frame, name))
        return series.cast(pl.String) if not series.dtype.is_numeric() else series


def _alarm(each: ExplainedRow) -> Alarm:
    return Alarm(
        each.number, each.p_value, each.score, each.name, each.explanation, each.strange, each.values
    )


def removed(path: Path) -> bytes:
    """Return the contents of a file, which is gone afterwards."""
    try:
        return path.read_bytes()
    finally:
        os.unlink(path)


def name_for(text: str, suffix: str) -> str:
    """Return a file name for a download: plain letters only, whatever the table is called."""
    stem = isolated(text).rsplit(".", 1)[0]
    plain = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "-" for letter in stem
    )
    return f"{plain.strip('-')[:60] or 'table'}{suffix}"
