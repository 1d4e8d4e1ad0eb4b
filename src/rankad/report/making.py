"""The page of a scored table: the same from Python and from the command line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from rankad._base.checks import check_unit, is_count
from rankad.report.result import Report

if TYPE_CHECKING:
    import polars as pl

    from rankad.detectors.base import CalibratedDetector
    from rankad.detectors.table import TableDetector
    from rankad.report import ModelFacts, ReportData
    from rankad.scoring.batches import Batch

__all__ = ["gathered", "report_on"]


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
    try:
        from rankad.report.page import render
    except ImportError as error:
        raise ImportError("report needs Jinja: pip install 'rankad[report]'.") from error
    from rankad.scoring.batches import Batch

    table, frame = _as_table(detector, X)
    scores = np.asarray(table.score_samples(frame))
    batch = Batch(frame, scores, table.calibration_.p_values(scores), 0, None)
    data = gathered(
        [batch] if len(scores) else [],
        table,
        _facts(table, type(detector).__name__, rate),
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
    from rankad.report import Alarm, ReportData
    from rankad.report.gathering import Course, Views
    from rankad.scoring.batches import MostAbnormal, explained
    from rankad.tables.judging import Watch

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


def _as_table(detector: Any, X: Any) -> tuple[TableDetector, pl.DataFrame]:
    """Return a detector of tables, and the rows as a table."""
    import polars as pl

    from rankad._base.rows import validate_rows
    from rankad.detectors.table import TableDetector
    from rankad.scoring.loading import for_table
    from rankad.tables.frames import as_frame

    if isinstance(detector, TableDetector):
        return detector, as_frame(X)
    rows = validate_rows(detector, X, reset=False)
    named = getattr(detector, "feature_names_in_", None)
    names = [f"column {i}" for i in range(rows.shape[1])] if named is None else [str(name) for name in named]
    return for_table(detector, names), pl.DataFrame(dict(zip(names, rows.T, strict=True)))


def _facts(detector: TableDetector, name: str, rate: float) -> ModelFacts:
    from rankad.modelfile.card import provenance
    from rankad.modelfile.container import digest
    from rankad.modelfile.fitted import parameters_of
    from rankad.report import ModelFacts

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
        encoding=[line.replace("nominal", "normal") for line in detector.encoder_.describe()],
        fingerprint="" if rows is None else digest(rows),
    )
