"""TableDetector: a detector on tables of numbers, categories and missing values."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rankad._arrays import LARGEST, Bools, Floats, Ints
from rankad.calibration import Calibration, FalseAlarmBound
from rankad.detectors import RankAD
from rankad.detectors.base import CalibratedDetector
from rankad.tables.columns import Strange
from rankad.tables.encoding import TableEncoder, learn_encoder
from rankad.tables.frames import as_frame

if TYPE_CHECKING:
    from rankad.explanations import Explanation

__all__ = ["TableDetector"]

_ENCODED = (
    ". What columns become was learned from all nominal rows, those that calibrate too, which no theorem "
    "here covers"
)


class TableDetector(CalibratedDetector):
    """A detector on tables: numbers, categories, booleans, missing values.

    Columns become numbers by a `TableEncoder`, and a detector is fitted on these. A cell such as no nominal
    row has (a new category, a missing value in a column that was complete, a change of a constant, infinity)
    is *strange*: its row gets the least score and the least p-value there is.

    That alone would raise more false alarms than asked for where nominal rows often have something that no
    other has. So the nominal rows that would have been strange to the others are counted
    (``encoder_.n_alone``), and count with the least score among those that p-values refer to. Where there are
    none, a strange row has the p-value 1 / (n + 1).

    Parameters
    ----------
    detector : RankAD or other detector of this package, optional
        Is cloned; ``RankAD()`` by default.
    ids, drop : sequence of str
        Columns to leave out: those that name rows, and others.
    categories : sequence of str
        Columns to take as categories even if they look like numbers, as zip codes do.
    min_count : int, default=5
        Categories of fewer nominal rows share one indicator.

    Attributes
    ----------
    alpha : float
        The false-alarm rate asked for: that of the detector inside. Can be changed after fitting.
    encoder_ : TableEncoder
        What every column became; ``encoder_.describe()`` says it in words.
    detector_ : RankAD or other
        Fitted on the encoded rows; its calibration counts the nominal rows that would have been strange.
    calibration_ : Calibration
        The nominal scores that p-values refer to.
    feature_names_in_ : ndarray of str
        The columns that new tables must have, in any order.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> size, color = rng.normal(size=300), rng.choice(["red", "blue"], size=300)
    >>> detector = TableDetector(RankAD(alpha=0.01, random_state=0)).fit({"size": size, "color": color})
    >>> new = {"color": ["red", "red", "pink"], "size": [0.1, 9.0, 0.1]}
    >>> detector.predict(new)
    array([ 1, -1, -1])
    >>> detector.strange_cells(new)
    [Strange(row=2, column='color', what='not among the categories of nominal rows', value='pink')]
    """

    _least_score = -LARGEST

    def __init__(
        self,
        detector: CalibratedDetector | None = None,
        *,
        ids: Sequence[str] = (),
        drop: Sequence[str] = (),
        categories: Sequence[str] = (),
        min_count: int = 5,
    ) -> None:
        self.detector = detector
        self.ids = ids
        self.drop = drop
        self.categories = categories
        self.min_count = min_count

    @classmethod
    def of_parts(
        cls, encoder: TableEncoder, detector: CalibratedDetector, min_count: int = 5
    ) -> TableDetector:
        """Return a fitted TableDetector of an encoder and a detector fitted on what it makes of a table."""
        if detector.n_features_in_ != encoder.n_encoded:
            raise ValueError(
                f"detector must be fitted on the {encoder.n_encoded} columns that the encoder makes, got one "
                f"fitted on {detector.n_features_in_}."
            )
        made = cls(
            clone(detector),
            ids=encoder.ids,
            drop=encoder.dropped,
            categories=encoder.categories,
            min_count=min_count,
        )
        made._take(encoder, detector)
        return made

    def fit(self, X: Any, y: Any = None) -> TableDetector:
        """Fit on a table of nominal rows.

        Parameters
        ----------
        X : polars or pandas DataFrame, pyarrow Table, or dict of columns
        y : ignored

        Returns
        -------
        TableDetector
            The detector itself.
        """
        self._fit(X, lambda detector, rows: detector.fit(rows))
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Ints:
        """Fit on a table and predict the same rows, as the detector inside does."""
        judged: list[Ints] = []
        strange = self._fit(X, lambda detector, rows: judged.append(detector.fit_predict(rows)))
        alarms: Bools = (judged[0] < 0) & (np.asarray(self.predict(X)) < 0)
        # Left out, they would have a cell such as no other row has.
        alarms[strange] = self.calibration_.threshold(self.alpha) > -LARGEST
        return np.where(alarms, -1, 1)

    def _fit(self, X: Any, fit: Callable[[CalibratedDetector, Floats], object]) -> Ints:
        """Fit by what `fit` does with the detector inside; return the rows that are strange to the others."""
        detector = RankAD() if self.detector is None else self.detector
        if not isinstance(detector, CalibratedDetector) or isinstance(detector, TableDetector):
            raise ValueError(f"detector must be a RankAD, KLPE or EpsilonLPE, or None; got {detector!r}.")
        table = as_frame(X)
        if table.height < detector._least_rows:
            raise ValueError(
                f"{type(detector).__name__} needs {detector._least_rows} rows or more to learn from, but the "
                f"table has {table.height}."
            )
        encoder, alone = learn_encoder(
            table, ids=self.ids, drop=self.drop, categories=self.categories, min_count=self.min_count
        )
        rows = encoder.encode(table).rows
        fitted = clone(detector)
        fit(fitted, rows)
        if alone.size:
            own = fitted.score_samples(rows[alone])
            fitted.calibration_ = _with_least(fitted.calibration_, own, encoder.n_rows)
        self._take(encoder, fitted)
        # If there are too few rows for any alarm, the detector inside has said so.
        if fitted.alpha * (fitted.calibration_.scores.size + 1) >= 1:
            self._warn_if_silent(stacklevel=4)
        return alone

    def _take(self, encoder: TableEncoder, fitted: CalibratedDetector) -> None:
        self.encoder_, self.detector_ = encoder, fitted
        self.feature_names_in_ = np.array([column.name for column in encoder.columns], dtype=object)
        self.n_features_in_ = len(encoder.columns)

    @property
    def alpha(self) -> float:
        """The false-alarm rate asked for: that of the detector inside, fitted or not."""
        if "detector_" in self.__dict__:
            return float(self.detector_.alpha)
        return float(RankAD().alpha if self.detector is None else self.detector.alpha)

    @alpha.setter
    def alpha(self, value: float) -> None:
        # Both, so that fitting again keeps it, as with any other detector.
        self.detector = RankAD() if self.detector is None else self.detector
        self.detector.alpha = value
        if "detector_" in self.__dict__:
            self.detector_.alpha = value

    @property
    def calibration_(self) -> Calibration:  # type: ignore[override]
        """The nominal scores that p-values refer to."""
        self._check_fitted()
        return self.detector_.calibration_

    def _check_fitted(self) -> None:
        if "detector_" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit with a table of nominal "
                f"rows first."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return "detector_" in self.__dict__

    def _score(self, rows: Floats) -> Floats:
        return np.asarray(self.detector_.score_samples(rows))

    def _numbers(self, X: Any) -> Floats:
        return self.encoder_.encode(X).rows

    def _score_rows(self, X: Any) -> Floats:
        encoded = self.encoder_.encode(X)
        if not len(encoded.rows):
            return np.empty(0)
        scores = self._score(encoded.rows)
        if self.encoder_.n_alone:
            # No row may be below those of the nominal rows that were alone.
            np.maximum(scores, self._least_score, out=scores)
        scores[encoded.strange_rows] = self._least_score
        return scores

    def strange_cells(self, X: Any) -> list[Strange]:
        """Return the cells such as no nominal row has; their rows are alarms whenever any row can be one."""
        self._check_fitted()
        return self.encoder_.encode(X).strange

    def _compare_with(self, calibration: Calibration, *, fresh: bool) -> None:
        self.detector_._compare_with(calibration, fresh=fresh)

    def _bound(self, alpha: float, delta: float) -> FalseAlarmBound:
        # The law of an order statistic knows the number of scores, not the scores: n_alone changes nothing.
        found = self.detector_._bound(alpha, delta)
        constant = any(getattr(column, "constant", True) for column in self.encoder_.columns)
        learned_from_others = self.detector_.recalibrated_ or (self.encoder_.is_plain and not constant)
        if found.bound == 0 or learned_from_others:
            return found
        return found._replace(exact=False, theorem=found.theorem + _ENCODED)

    def _more_alarms(self) -> str:
        if self.detector_.recalibrated_ or not self.encoder_.n_alone:
            return super()._more_alarms()
        return (
            f"{self.encoder_.n_alone} of {self.encoder_.n_rows} nominal rows have something that no other "
            f"has: drop the columns in which that is common, use more rows, or a larger alpha."
        )

    def explain(self, X: Any, *, alpha: float | None = None, n_nearest: int = 3) -> list[Explanation]:
        """Say for each row which columns make it abnormal: see `rankad.explanations.explain`.

        Values are those of the table, and strange cells come first.

        Parameters
        ----------
        X : polars or pandas DataFrame, pyarrow Table, or dict of columns
        alpha : float, optional
            What counts as an alarm; the detector's own by default.
        n_nearest : int
            How many nominal rows to show for comparison.

        Returns
        -------
        list of Explanation
        """
        from rankad.tables.explaining import explain_table

        self._check_fitted()
        return explain_table(self, X, alpha=alpha, n_nearest=n_nearest)

    def save(self, path: str | os.PathLike[str], *, rows: bool = True) -> None:
        """Save to one file: see `rankad.modelfile.save`."""
        from rankad.modelfile import save

        save(self, path, rows=rows)

    encoder_: TableEncoder
    detector_: CalibratedDetector


def _with_least(calibration: Calibration, own: Floats, n_rows: int) -> Calibration:
    """Give the scores of rows that would have been strange to the others the least there is.

    Which of the calibrating scores were theirs is not known, nor, where not all rows calibrate, how many of
    them do; so their share of all rows is taken, and for each the next score that is no lower than what the
    final detector says of it. That has seen the row, so it says too much rather than too little.
    """
    scores = calibration.scores
    n_least = min(math.ceil(len(own) * scores.size / n_rows), scores.size)
    taken: list[int] = []
    highest = scores.size - 1
    for place in np.searchsorted(scores, np.sort(own)[::-1][:n_least]):
        # Every score is taken once; from above, so that there is always one left for the next.
        highest = min(int(place), highest)
        taken.append(max(highest, n_least - 1 - len(taken)))
        highest = taken[-1] - 1
    kept = np.delete(scores, taken)
    return Calibration(np.concatenate([np.full(n_least, -LARGEST), kept]), calibration.kind)
