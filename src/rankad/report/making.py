"""The page of a scored table: the same from Python and from the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    import polars as pl

    from rankad.report.page import render
except ImportError as error:
    raise ImportError("report needs Jinja: pip install 'rankad[report]'.") from error

from rankad._base.arrays import Bools
from rankad._base.checks import check_unit, is_count
from rankad._base.files import check_output, is_stream, naming, replacing
from rankad._base.wording import counted
from rankad.certificates.certificate import RateRange
from rankad.detectors.table import TableDetector
from rankad.modelfile.card import provenance
from rankad.modelfile.container import digest
from rankad.modelfile.fitted import parameters_of
from rankad.report.contents import Alarm, ModelFacts, ReportData
from rankad.report.timeline import Timeline
from rankad.report.views import CategoryView, NumericView
from rankad.scoring.batches import Batch, MostAbnormal, explained
from rankad.scoring.loading import as_table
from rankad.tables.encoded_columns import CategoryColumn, NumberColumn
from rankad.tables.judging import Watch

if TYPE_CHECKING:
    from rankad.detectors.base import CalibratedDetector

# The rates whose promises are drawn, and how often one may fail.
_LEAST_RATE, _N_RATES, _DELTA = 0.001, 60, 0.05
# A page in a notebook, in pixels.
_HEIGHT = 900


class Report:
    """An HTML page about a scored table. In a notebook it shows itself.

    Attributes
    ----------
    html : str
        The page: one file that needs nothing else.
    n_rows, n_alarms : int
    alpha : float
        The false-alarm rate asked for.
    """

    def __init__(self, html: str, n_rows: int, n_alarms: int, alpha: float) -> None:
        self.html, self.n_rows, self.n_alarms, self.alpha = html, n_rows, n_alarms, alpha

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path
            Such as "report.html". A file of that name is replaced by a whole one or not at all.
        """
        where = Path(path)
        if where.suffix.lower() not in ("", ".html", ".htm"):
            raise ValueError(
                f"a report is an HTML page, and {where.name} promises something else; name it "
                f"{where.with_suffix('.html').name}. A browser prints it to PDF."
            )
        with replacing(where) as out:
            out.file.write(_as_bytes(self.html))

    def __repr__(self) -> str:
        rows, alarms = counted(self.n_rows, "row"), counted(self.n_alarms, "alarm")
        return f"<Report: {rows}, {alarms} at alpha={self.alpha:g}; save('report.html') writes the page>"

    def _repr_html_(self) -> str:
        # In a frame of its own: the page's style is not that of the notebook.
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" '
            f'style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
        )


def report_on(
    detector: CalibratedDetector,
    X: Any,
    *,
    alpha: float | None = None,
    top: int = 20,
    title: str | None = None,
) -> Report:
    """Score rows with a fitted detector and make a page of the result; see `CalibratedDetector.report`."""
    detector._check_fitted()
    rate = check_unit("alpha", detector.alpha if alpha is None else alpha)
    if not is_count(top) or top < 0:
        raise ValueError(f"top must be an integer >= 0, got {top!r}.")
    table, frame = as_table(detector, X)
    scores = np.asarray(table.score_samples(frame))
    batch = Batch(frame, scores, table.calibration_.p_values(scores), 0, None)
    data = gathered(
        [batch] if len(scores) else [],
        table,
        facts_of(table, type(detector).__name__, rate),
        title=title or "Anomalies",
        rate=rate,
        top=top,
    )
    return Report(render(data), len(scores), int(np.count_nonzero(batch.p_values <= rate)), rate)


def gathered(
    batches: Iterable[Batch],
    detector: TableDetector,
    facts: ModelFacts,
    *,
    title: str,
    rate: float,
    top: int,
    source: str = "",
    level: float | None = None,
    fdr: float | None = None,
) -> ReportData:
    """Gather what is on the page while a table is scored batch by batch, in constant memory.

    `rate` is the false-alarm rate asked for, and `top` how many alarms to explain. If alarms are chosen by a
    false discovery rate, `fdr` is that rate and `level` the largest p-value of an alarm.
    """
    most_p = rate if level is None else level
    watch = Watch(detector, rate, *([most_p] if 0 < most_p < 1 else []))
    most, views, course = MostAbnormal(top), Views(detector), Course(detector)
    for batch in batches:
        alarms = batch.p_values <= most_p
        watch.add(batch.frame, batch.first, batch.p_values)
        most.add(batch)
        views.add(batch.frame, alarms)
        course.add(batch.frame, batch.first, alarms)
    shown = []
    if most.rows is not None:
        shown = explained(detector, most.rows.where(most.rows.p_values <= most_p), most_p or rate)
    return ReportData(
        title,
        rate,
        watch.summary,
        facts,
        alarms=[
            Alarm(row.number, row.p_value, row.score, row.name, row.explanation, row.strange, row.values)
            for row in shown
        ],
        columns=views.columns,
        source=source,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        notes=views.notes,
        verdict=watch.verdict(),
        timeline=course.timeline,
        fdr=fdr,
        level=None if fdr is None else most_p,
    )


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
            if isinstance(column, NumberColumn):
                self.columns[at] = view.add(column.read(series), alarms)
            elif isinstance(column, CategoryColumn):
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
    inputs = list(inputs)
    check_output(path, inputs)
    if is_stream(path):
        with naming(path):
            path.write_bytes(_as_bytes(text))
    else:
        with replacing(path, inputs) as out:
            out.file.write(_as_bytes(text))


def _as_bytes(page: str) -> bytes:
    # The page holds file names, which may not be valid UTF-8.
    return page.encode("utf-8", errors="replace")


def facts_of(detector: TableDetector, name: str, rate: float) -> ModelFacts:
    """Return what the reader should know of a detector with this name, at this false-alarm rate."""
    inner: Any = detector.detector_
    rows = getattr(inner, "nominal_rows_", getattr(inner, "reference_", None))
    return ModelFacts(
        name,
        int(inner.n_samples_fit_),
        detector.calibration_.scores.size,
        detector.calibration_.kind,
        detector.false_alarm_bound(rate),
        versions=dict(sorted(provenance()["versions"].items())),
        parameters=parameters_of(inner)[0],
        selection=getattr(inner, "selection_", None),
        encoding=detector.encoder_.describe(),
        fingerprint="" if rows is None else digest(rows),
        promised=promised_rates(detector),
    )


def promised_rates(detector: CalibratedDetector) -> list[RateRange]:
    """Return between which shares of normal rows raise an alarm, at rates from 0.1 % or the least to 50 %."""
    if not detector.calibration_.worth:
        return []
    certificate = detector.certificate(_DELTA)
    least = max(certificate.smallest_alpha, _LEAST_RATE)
    rates = np.geomspace(least, 0.5, _N_RATES).tolist() if least < 0.5 else []
    # Rounding must not leave the first one below what is possible.
    return [certificate.range(max(rate, least)) for rate in rates]
