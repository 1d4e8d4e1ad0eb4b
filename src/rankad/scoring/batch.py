"""One batch of rows scored: a detector and columns in, columns out. Every engine and service calls this."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from rankad._base.checks import check_unit
from rankad.detectors.base import CalibratedDetector

# The columns that come out.
ANSWERS = ("p_value", "score", "alarm")


def score_batch(detector: CalibratedDetector, columns: Any, *, alpha: float | None = None) -> Any:
    """Score a batch of rows; nothing is changed, neither the detector nor the rows.

    A row's answer does not depend on the other rows of its batch, so batches may be cut anywhere.

    Parameters
    ----------
    detector : TableDetector, RankAD, KLPE or EpsilonLPE
        Fitted.
    columns : pyarrow Table or RecordBatch, data frame, dict of columns, or array of shape (n, d)
        Columns are found by name, whatever their order, where the detector was fitted with names.
    alpha : float, optional
        Rows with a p-value of at most this are alarms; the detector's own by default.

    Returns
    -------
    pyarrow RecordBatch, or dict of ndarray
        p_value, score (higher is more normal) and alarm, in the order of the rows: a RecordBatch for columns
        of pyarrow, else a dict of arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from rankad import RankAD
    >>> detector = RankAD(alpha=0.05).fit(np.random.default_rng(0).normal(size=(300, 2)))
    >>> answers = score_batch(detector, np.array([[0.0, 0.0], [9.0, 9.0]]))
    >>> answers["alarm"].tolist()
    [False, True]
    """
    if not isinstance(detector, CalibratedDetector):
        raise TypeError(
            f"detector must be a fitted detector, got {reprlib.repr(detector)}; for a model file pass "
            f"rankad.load(path)."
        )
    detector._check_fitted()
    rate = check_unit("alpha", detector.alpha if alpha is None else alpha)
    scores = _scores(detector, columns)
    p_values = detector.calibration_.p_values(scores)
    answers = dict(zip(ANSWERS, (p_values, scores, p_values <= rate), strict=True))
    if type(columns).__module__.partition(".")[0] != "pyarrow":
        return answers
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in answers.items()})


def _scores(detector: CalibratedDetector, columns: Any) -> Any:
    if hasattr(columns, "ndim") and not hasattr(columns, "columns"):
        return np.asarray(detector.score_samples(columns))
    from rankad.detectors.table import TableDetector
    from rankad.scoring.loading import for_table
    from rankad.tables.frames import as_frame

    frame = as_frame(columns)
    table = detector if isinstance(detector, TableDetector) else for_table(detector, frame.columns)
    return np.asarray(table.score_samples(frame))
