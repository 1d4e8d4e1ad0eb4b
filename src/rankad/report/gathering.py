"""What a page shows of each column, and the page on the disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from rankad._base.arrays import Bools
from rankad._base.files import check_output, is_stream, naming, replacing
from rankad.detectors.table import TableDetector
from rankad.report import CategoryView, NumericView
from rankad.report.timeline import Timeline
from rankad.tables.encoded_columns import CategoryColumn, NumberColumn

__all__ = ["Course", "Views", "write_page"]


class Views:
    """A view of every column: what normal rows have, and what rows scored and alarms have.

    Normal values are those of the rows that the detector holds; without these there is a note and no views.
    """

    def __init__(self, detector: TableDetector) -> None:
        self.columns: list[NumericView | CategoryView] = []
        self.notes: list[str] = []
        nominal = getattr(detector.detector_, "nominal_rows_", None)
        if nominal is None:
            why = "The model was saved without the rows it was fitted on"
            if not hasattr(detector.detector_, "scorer_"):
                why = f"The model is a {type(detector.detector_).__name__}, which gives no reasons"
            self.notes.append(f"{why}, so alarms are not explained and columns are not shown.")
            return
        frame = detector.encoder_.decode(nominal)
        for column in detector.encoder_.columns:
            if isinstance(column, NumberColumn):
                self.columns.append(NumericView.of(column.name, frame[column.name].to_numpy()))
            elif isinstance(column, CategoryColumn):
                self.columns.append(CategoryView.of(column.name, column.labels(frame[column.name])))
        self._cells = detector.encoder_.cells
        self._kinds = {column.name: column for column in detector.encoder_.columns}

    def add(self, frame: pl.DataFrame, alarms: Bools) -> None:
        """Count more rows."""
        for at, view in enumerate(self.columns):
            column, series = self._kinds[view.name], self._cells(frame, view.name)
            if isinstance(view, NumericView):
                assert isinstance(column, NumberColumn)
                self.columns[at] = view.add(column.read(series), alarms)
            else:
                assert isinstance(column, CategoryColumn)
                self.columns[at] = view.add(column.labels(series), alarms)


class Course:
    """Alarms along the first column of times, or, if the model has none, along the table."""

    def __init__(self, detector: TableDetector) -> None:
        columns: list[Any] = [column for column in detector.encoder_.columns if column.kind == "time"]
        self._column = columns[0] if columns else None
        self._cells = detector.encoder_.cells
        self.timeline = Timeline(None if self._column is None else self._column.name)

    def add(self, frame: pl.DataFrame, first: int, alarms: Bools) -> None:
        """Count more rows."""
        if self._column is None:
            self.timeline = self.timeline.add(first, alarms)
            return
        times = self._column.times(self._cells(frame, self._column.name))
        seconds = times.dt.epoch("s").cast(pl.Float64).to_numpy()
        self.timeline = self.timeline.add_times(seconds, alarms)


def write_page(path: Path, text: str, inputs: Iterable[Path]) -> None:
    """Write a page, complete or not at all; a device or a pipe is written to."""
    # The page holds file names, which may not be valid UTF-8.
    page, inputs = text.encode("utf-8", errors="replace"), list(inputs)
    check_output(path, inputs)
    if is_stream(path):
        with naming(path):
            path.write_bytes(page)
    else:
        with replacing(path, inputs) as out:
            out.file.write(page)
