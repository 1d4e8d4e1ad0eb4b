"""Detectors fitted on rows in partitions: the same model as from one process, whatever the partitions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from rankad._base.arrays import Floats
from rankad._base.threads import one_blas_thread
from rankad.detectors import RankAD
from rankad.detectors.table import TableDetector
from rankad.engines.partitions import Block, Layout, Partitions
from rankad.engines.rows import PartitionedRows, count_rows
from rankad.engines.steps import Numbering, is_sampled
from rankad.fitting import sizes
from rankad.fitting.doubt import leave_out_copies
from rankad.fitting.pipeline import fit_model
from rankad.fitting.plan import Plan
from rankad.stages.calibration import Calibration

# Of more rows a uniform sample takes part in a fit: the driver holds 8 bytes a row, several times over.
MAX_ROWS = 2**25
# What columns of a table are is learned from so many rows, which the driver holds; the others calibrate.
MAX_TABLE_ROWS = 1_000_000


def fit_rank_ad(
    detector: RankAD, partitions: Partitions, layout: Layout, *, max_rows: int = MAX_ROWS
) -> RankAD:
    """Fit a copy of a detector on rows in partitions.

    The model is the one that ``detector.fit`` makes of the same rows in the order of their numbers. The rows
    that train (5,000) and the reference rows (100,000 at most) are gathered; all others are scored where
    they are, and only their scores are gathered.

    Parameters
    ----------
    detector : RankAD
        Its parameters; it is not changed. `trim` must be 0 for more than 10,000 rows.
    partitions : Partitions
    layout : Layout
    max_rows : int
        Of more rows, a uniform sample of about so many takes part.

    Returns
    -------
    RankAD
        An ordinary detector.

    Examples
    --------
    >>> from rankad.engines.partitions import InProcess
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> fitted = fit_rank_ad(RankAD(), InProcess([[rows[:7]], [], [rows[7:]]]), Layout())
    >>> bool(np.all(fitted.p_values(rows) == RankAD().fit(rows).p_values(rows)))
    True
    """
    fitted: RankAD = clone(detector)
    plan = Plan.of(fitted)
    n, numbering = count_rows(partitions, layout)
    if n < fitted._least_rows:
        raise ValueError(
            f"RankAD needs {fitted._least_rows} rows or more to learn from, got {n}. Fit on more rows."
        )
    rows = PartitionedRows(partitions, layout, n, numbering, max_rows)
    if n <= 2 * sizes.MAX_TRAINING_ROWS:
        fitted.fit(rows[np.arange(n)])
    else:
        if fitted.trim != 0:
            raise ValueError(
                f"trim must be 0 to fit more than {2 * sizes.MAX_TRAINING_ROWS} rows in partitions, got "
                f"{fitted.trim!r}: fit on a sample of the rows in one process instead."
            )
        repeats = leave_out_copies(rows.repeats, len(rows), fitted._least_rows, stacklevel=3)
        repeated = rows.numbers(repeats)
        rows.leave_out(repeats)
        entropy = check_random_state(fitted.random_state).randint(2**31, size=4)
        with one_blas_thread():
            model = fit_model(plan, rows, entropy).model
        fitted.model_ = replace(
            model,
            training_rows=rows.numbers(model.training_rows),
            reference_rows=rows.numbers(model.reference_rows),
            repeated_rows=repeated,
            n_samples_fit=n,
        )
        fitted.n_features_in_ = rows.shape[1]
        if not model.converged:
            warnings.warn("RankSVM did not converge: see RankAD.fit.", ConvergenceWarning, stacklevel=2)
        fitted._warn_if_silent(stacklevel=3)
    if layout.columns is not None:
        fitted.feature_names_in_ = np.array(layout.columns, dtype=object)
    return fitted


def fit_table(
    detector: TableDetector, partitions: Partitions, layout: Layout, *, max_rows: int = MAX_TABLE_ROWS
) -> TableDetector:
    """Fit a copy of a detector of tables on rows in partitions.

    Up to `max_rows` rows are gathered, and the model is the one that ``detector.fit`` makes of them. Of more,
    a uniform sample of about so many is learned from, and all others calibrate, which makes the exact law of
    false alarms hold (see `TableDetector.calibrate`).

    Parameters
    ----------
    detector : TableDetector
        Its parameters; it is not changed.
    partitions : Partitions
        Of Arrow record batches.
    layout : Layout
        The columns of the table, and the one of row numbers, which is not learned from.
    max_rows : int

    Returns
    -------
    TableDetector
        An ordinary detector.
    """
    fitted: TableDetector = clone(detector)
    n, numbering = count_rows(partitions, layout)
    share = min(1.0, max_rows / max(n, 1))
    parts = dict(partitions.map(partial(_take_batches, numbering, share)))
    batches = [batch for at in sorted(parts) for batch in parts[at]]
    if not batches:
        raise ValueError("a detector needs rows to learn from, but all partitions are empty.")
    table = pa.concat_tables([pa.table(batch) for batch in batches], promote_options="permissive")
    if layout.number is not None:
        table = table.sort_by(layout.number).drop_columns([layout.number])
    fitted.fit(table)
    if share < 1:
        others = dict(partitions.map(partial(_score_unsampled, numbering, share, fitted)))
        scores = np.concatenate([others[at] for at in sorted(others)])
        fitted._compare_with(Calibration.from_scores(scores, "split"), fresh=True)
    return fitted


def _take_batches(
    numbering: Numbering, share: float, partition: int, blocks: Iterable[Block]
) -> list[pa.RecordBatch]:
    """Return the sampled rows of a partition as record batches of the layout's columns."""
    layout = numbering.layout
    names = [*(layout.columns or ()), *([] if layout.number is None else [layout.number])]
    return [
        block.select(names).filter(pa.array(is_sampled(here, share)))
        for here, block in numbering.blocks(partition, blocks)
    ]


def _score_unsampled(
    numbering: Numbering, share: float, detector: TableDetector, partition: int, blocks: Iterable[Block]
) -> Floats:
    """Score the rows of a partition that are not in the sample."""
    scores = [np.empty(0)]
    for here, block in numbering.blocks(partition, blocks):
        batch = block.select(list(numbering.layout.columns or ())).filter(pa.array(~is_sampled(here, share)))
        scores.append(np.asarray(detector.score_samples(pa.table(batch))))
    return np.concatenate(scores)
