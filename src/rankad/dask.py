"""Detectors on Dask arrays and data frames: `RankAD` and `TableDetector` as LightGBM and XGBoost have theirs.

Needs the extra ``dask``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

try:
    import dask
    import dask.array
    import dask.dataframe
    import pyarrow as pa
    from dask import delayed
    from distributed import Client, as_completed, default_client
except ImportError as error:
    raise ImportError(f"{error}; run pip install 'rankad[dask]' to fit and score with Dask") from error

import rankad.detectors
import rankad.detectors.table
from rankad.detectors.base import CalibratedDetector
from rankad.engines.fitting import fit_rank_ad, fit_table
from rankad.engines.partitions import Layout, Work
from rankad.engines.scoring import SharedDetector
from rankad.scoring.batch import ANSWERS

__all__ = ["DaskPartitions", "RankAD", "TableDetector", "score_frame"]

T = TypeVar("T")


class DaskPartitions:
    """The chunks of an array or the partitions of a frame."""

    def __init__(self, X: Any, client: Client | None) -> None:
        self._parts, self._client = _parts(X), client

    def map(self, work: Work[T]) -> Iterator[tuple[int, T]]:
        """Run `work` on every partition, where it is."""
        # One task holds the work, so that it travels to every worker once and can be made again.
        shared = delayed(work, traverse=False, pure=False)
        tasks = [delayed(_run, pure=False)(shared, at, part) for at, part in enumerate(self._parts)]
        if self._client is None:
            yield from dask.compute(*tasks)
            return
        for future in as_completed(self._client.compute(tasks)):
            yield future.result()
            future.release()


def _run(work: Work[T], number: int, part: Any) -> tuple[int, T]:
    return number, work(number, iter([_block(part)]))


def _block(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part
    return pa.RecordBatch.from_pandas(part, preserve_index=False)


def _parts(X: Any) -> list[Any]:
    if isinstance(X, dask.array.Array):
        if X.ndim != 2:
            raise ValueError(f"X must be an array of rows and columns, got one of shape {X.shape}.")
        return list(X.rechunk({1: -1}).to_delayed().ravel())
    if isinstance(X, dask.dataframe.DataFrame):
        return list(X.to_delayed())
    raise TypeError(
        f"X must be a Dask array or a Dask DataFrame, got {type(X).__name__}; for rows in memory use "
        f"rankad.RankAD."
    )


def _check_frame(X: Any) -> None:
    if not isinstance(X, dask.dataframe.DataFrame):
        advice = "name its columns with dask.dataframe.from_dask_array(X, columns=[...])"
        if not isinstance(X, dask.array.Array):
            advice = "for a table in memory use rankad.TableDetector"
        raise TypeError(f"X must be a Dask DataFrame, got {type(X).__name__}; {advice}.")


def _layout(X: dask.dataframe.DataFrame, row_number: str | None) -> Layout:
    names = [str(name) for name in X.columns]
    if row_number is not None and row_number not in X.columns:
        raise ValueError(
            f"row_number must name a column of X, got {row_number!r}; it has {', '.join(map(repr, names))}."
        )
    return Layout(tuple(str(name) for name in X.columns if name != row_number), number=row_number)


class _DaskDetector:
    """What both detectors share: parameters, lazy answers, and the way back to one process."""

    _local: ClassVar[type[CalibratedDetector]]
    detector_: Any

    def __init__(self, *args: Any, client: Client | None = None, **parameters: Any) -> None:
        self.client = client
        self._detector = self._local(*args, **parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the detector, and the client."""
        return {**self._detector.get_params(deep), "client": self.client}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of the detector, or the client."""
        if "client" in parameters:
            self.client = parameters.pop("client")
        self._detector.set_params(**parameters)
        return self

    def __repr__(self) -> str:
        return f"rankad.dask.{self._detector!r}"

    @property
    def client_(self) -> Client | None:
        """The client that is used: as given, else the current one; None where there is none."""
        if self.client is not None:
            return self.client
        try:
            return default_client()
        except ValueError:
            return None

    def to_local(self) -> Any:
        """Return the fitted detector as an ordinary one, which needs no Dask; its file is the same file."""
        if not hasattr(self, "detector_"):
            # As the ordinary detector says it.
            self._detector._check_fitted()
        return self.detector_

    def p_values(self, X: Any) -> dask.array.Array | dask.dataframe.Series:
        """Return the p-values of rows, lazily.

        Parameters
        ----------
        X : Dask array of shape (n, d) or Dask DataFrame
            Columns of a frame are found by name.

        Returns
        -------
        Dask array of shape (n,), or Dask Series for a frame
        """
        return self._lazy(X, "p_value", float)

    def score_samples(self, X: Any) -> dask.array.Array | dask.dataframe.Series:
        """Return the scores of rows, lazily; higher is more normal. X is as for `p_values`."""
        return self._lazy(X, "score", float)

    def predict(self, X: Any) -> dask.array.Array | dask.dataframe.Series:
        """Return -1 for alarms and +1 for other rows, lazily. X is as for `p_values`."""
        return 1 - 2 * self._lazy(X, "alarm", bool).astype(int)

    def score_frame(self, X: dask.dataframe.DataFrame) -> dask.dataframe.DataFrame:
        """Return a frame with the columns p_value, score and alarm added, lazily.

        Parameters
        ----------
        X : Dask DataFrame

        Returns
        -------
        Dask DataFrame
        """
        return score_frame(self.to_local(), X)

    def _lazy(self, X: Any, answer: str, kind: type) -> Any:
        parts, shared = _parts(X), _as_task(self.to_local())
        if isinstance(X, dask.dataframe.DataFrame):
            return X.map_partitions(_answer_series, shared, answer, meta=(answer, kind))
        return dask.array.concatenate(
            [
                dask.array.from_delayed(delayed(_answers, pure=False)(shared, part, answer), (n,), kind)
                for part, n in zip(parts, X.chunks[0], strict=True)
            ],
            allow_unknown_chunksizes=True,
        )


def _answers(shared: SharedDetector, part: Any, answer: str) -> Any:
    return shared.answers(_block(part), Layout())[answer]


def _answer_series(part: Any, shared: SharedDetector, answer: str) -> Any:
    return _with_answers(part, shared, ANSWERS)[answer]


def _with_answers(part: Any, shared: SharedDetector, names: Sequence[str]) -> Any:
    answers = shared.answers(_block(part), Layout(tuple(map(str, part.columns))))
    return part.assign(**dict(zip(names, answers.values(), strict=True)))


def _as_task(detector: CalibratedDetector) -> Any:
    return delayed(SharedDetector(detector), traverse=False, pure=False)


def score_frame(
    detector: CalibratedDetector, X: dask.dataframe.DataFrame, names: Sequence[str] = ANSWERS
) -> dask.dataframe.DataFrame:
    """Return a frame with p-values, scores and alarms by an ordinary fitted detector, lazily.

    Parameters
    ----------
    detector : RankAD, TableDetector or other detector of this package
    X : Dask DataFrame
    names : sequence of str
        Of the columns that are added.

    Returns
    -------
    Dask DataFrame
    """
    _check_frame(X)
    meta = X._meta.assign(**dict(zip(names, (0.0, 0.0, False), strict=True)))
    return X.map_partitions(_with_answers, _as_task(detector), tuple(names), meta=meta)


class RankAD(_DaskDetector):
    """`rankad.RankAD` fitted and scored with Dask.

    The model is that of ``rankad.RankAD`` fitted on the same rows in the same order, whatever the chunks and
    the workers. The rows are read four times (two passes are cheap); ``X.persist()`` avoids that.

    Parameters
    ----------
    *args, **parameters
        Of `rankad.RankAD`.
    client : distributed.Client, optional
        By default the current one, or threads of this process.

    Attributes
    ----------
    detector_ : rankad.RankAD
        The fitted detector; `to_local` returns it.

    Examples
    --------
    >>> import dask.array as da
    >>> rows = da.random.default_rng(0).normal(size=(400, 2), chunks=(100, 2))
    >>> detector = RankAD(alpha=0.05).fit(rows)
    >>> new = da.from_array(np.array([[0.0, 0.0], [9.0, 9.0]]))
    >>> detector.predict(new).compute()
    array([ 1, -1])
    >>> detector.p_values(new).compute() <= 0.05
    array([False,  True])
    >>> local = detector.to_local()
    >>> bool((detector.score_samples(new).compute() == local.score_samples(new.compute())).all())
    True
    """

    _local = rankad.detectors.RankAD

    def fit(self, X: Any, y: Any = None, *, row_number: str | None = None) -> Self:
        """Fit on normal rows.

        Parameters
        ----------
        X : Dask array of shape (n, d) or Dask DataFrame
        y : ignored
        row_number : str, optional
            A column of a frame that numbers all rows from 0, which makes their order irrelevant; by default
            rows are numbered in the order of partitions.
        """
        layout = _layout(X, row_number) if hasattr(X, "columns") else Layout()
        self.detector_ = fit_rank_ad(self._detector, DaskPartitions(X, self.client_), layout)
        return self


class TableDetector(_DaskDetector):
    """`rankad.TableDetector` fitted and scored with Dask: categories, times and missing values.

    Up to a million rows are gathered and learned from. Of more, a uniform sample of about so many is, and all
    others calibrate.

    Parameters
    ----------
    *args, **parameters
        Of `rankad.TableDetector`.
    client : distributed.Client, optional
        By default the current one, or threads of this process.

    Attributes
    ----------
    detector_ : rankad.TableDetector
        The fitted detector; `to_local` returns it.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame(
    ...     {"size": np.random.default_rng(0).normal(size=400), "mode": ["eco", "full"] * 200}
    ... )
    >>> frame = dask.dataframe.from_pandas(table, npartitions=3)
    >>> scored = TableDetector(alpha=0.05).fit(frame).score_frame(frame)
    >>> list(scored.columns)
    ['size', 'mode', 'p_value', 'score', 'alarm']
    """

    _local = rankad.detectors.table.TableDetector

    def fit(self, X: dask.dataframe.DataFrame, y: Any = None, *, row_number: str | None = None) -> Self:
        """Fit on a table of normal rows; parameters are as for `RankAD.fit`."""
        _check_frame(X)
        partitions = DaskPartitions(X, self.client_)
        self.detector_ = fit_table(self._detector, partitions, _layout(X, row_number))
        return self
