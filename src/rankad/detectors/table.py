"""TableDetector: a detector on tables of numbers, categories, times and missing values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rankad._base.arrays import LARGEST, Bools, Floats, Ints
from rankad.columns.inferred import ColumnOptions, ColumnWarning
from rankad.detectors import RankAD
from rankad.detectors.base import CalibratedDetector
from rankad.fitting.own_rows import own_p_values
from rankad.stages.calibration import Calibration, FalseAlarmBound
from rankad.tables.encoded_columns import NumberColumn
from rankad.tables.encoding import TableEncoder
from rankad.tables.frames import Untyped, as_frame
from rankad.tables.learning import LearnedEncoder, learn_encoder
from rankad.tables.strange_cells import StrangeCell

if TYPE_CHECKING:
    from rankad.explanations.showing import Explanations

_ENCODED = (
    ". The encoding of columns was learned from all normal rows, also from those that calibrate, which no "
    "theorem here covers"
)
# So many rows of which a larger share is strange are no chance.
_MANY, _MOST = 20, 0.5


class TableDetector(CalibratedDetector):
    """A detector on tables: numbers, categories, times, booleans, missing values.

    A `TableEncoder` turns the columns into numbers, and a detector is fitted on these. If a column may be
    something else than it looks like, a `ColumnWarning` names it, the cells, and the parameter that settles
    it. A cell that no normal row has (a new category, a missing value in a column that was complete, another
    value of a constant, text in a column of numbers) is *strange*: its row gets the least score, -1e140, and
    the least p-value. Where some categories of a column are rare, a new one counts as one of these instead.

    The encoder is learned from normal rows, which also calibrate: each with the score that it would have if
    the encoder had not seen it. That is the least score for a row that would be strange then, and the score
    of a rare category for one whose category is frequent only because of it. ``encoder_.n_singletons`` rows
    would be strange; if none would, a strange row has the p-value 1 / (n + 1).

    Parameters
    ----------
    detector : RankAD or other detector of this package, optional
        Is cloned; ``RankAD()`` by default.
    alpha : float, optional
        The false-alarm rate asked for; that of `detector` by default. ``TableDetector(alpha=0.01)`` is the
        same as ``TableDetector(RankAD(alpha=0.01))``.
    ids, drop : sequence of str
        Columns to leave out: those that name rows, and others.
    numbers, categories, times : sequence of str
        Columns to take as numbers, as categories (zip codes, say) or as times, whatever they look like.
    decimal : {".", ","}, optional
        The decimal mark in text; inferred by default.
    day_first : bool, optional
        Whether 03/04/2024 is in April; inferred by default.
    missing : value, collection of values, or mapping of columns to these
        Markers of missing values: ``-999`` or ``[-999, "off"]`` in all columns, ``{"pressure": 0}`` in one;
        None in a mapping stands for all columns. Cells with the same text, number or time count as empty, in
        new rows too.
    min_count : int, default=5
        Categories of fewer normal rows, or of fewer than one in 200, share one indicator.

    Attributes
    ----------
    alpha : float
        The false-alarm rate asked for, as given or that of the detector inside. Can be changed after fitting.
    encoder_ : TableEncoder
        What every column became; ``encoder_.describe()`` says it in words.
    detector_ : RankAD or other
        Fitted on the encoded rows; its calibration counts the normal rows that would have been strange.
    calibration_ : Calibration
        The scores of normal rows that p-values refer to.
    feature_names_in_ : ndarray of str
        The columns that new tables must have, in any order.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> size, color = rng.normal(size=300), rng.choice(["red", "blue"], size=300)
    >>> detector = TableDetector(alpha=0.01).fit({"size": size, "color": color})
    >>> new = {"color": ["red", "red", "pink"], "size": [0.1, 9.0, 0.1]}
    >>> detector.predict(new)
    array([ 1, -1, -1])
    >>> detector.strange_cells(new)
    [StrangeCell(row=2, column='color', what='not among the categories of normal rows', value='pink')]

    One row may be a dict, or a row of a pandas frame.

    >>> detector.p_values({"size": 0.1, "color": "red"}) > detector.alpha
    array([ True])

    >>> detector.explain(new)[1].reasons[0].column, detector.calibration_.kind, detector.recalibrated_
    ('size', 'cross-fit', False)
    >>> TableDetector.of_parts(detector.encoder_, detector.detector_).get_params()["min_count"]
    5

    Rows that may include anomalies, judged themselves:

    >>> table = {"size": np.append(size, 9.0)}
    >>> np.flatnonzero(TableDetector(alpha=0.004).fit_predict(table) < 0)
    array([300])
    >>> float(TableDetector().fit_p_values(table)[300].round(4))
    0.0033
    """

    _least_score = -LARGEST
    _elsewhere = {  # noqa: RUF012
        name: f"it belongs to the detector inside, as in TableDetector(RankAD({name}=...))"
        for name in RankAD().get_params()
    }

    def __init__(
        self,
        detector: CalibratedDetector | None = None,
        *,
        alpha: float | None = None,
        ids: Sequence[str] = (),
        drop: Sequence[str] = (),
        numbers: Sequence[str] = (),
        categories: Sequence[str] = (),
        times: Sequence[str] = (),
        decimal: str | None = None,
        day_first: bool | None = None,
        missing: Any = (),
        min_count: int = 5,
    ) -> None:
        self.detector = detector
        self._alpha = alpha
        self.ids = ids
        self.drop = drop
        self.numbers = numbers
        self.categories = categories
        self.times = times
        self.decimal = decimal
        self.day_first = day_first
        self.missing = missing
        self.min_count = min_count

    @classmethod
    def of_parts(
        cls, encoder: TableEncoder, detector: CalibratedDetector, min_count: int = 5
    ) -> TableDetector:
        """Return a fitted TableDetector from an encoder and a detector fitted on encoded rows."""
        if detector.n_features_in_ != encoder.n_encoded:
            raise ValueError(
                f"detector must be fitted on the {encoder.n_encoded} columns that the encoder makes, got one "
                f"fitted on {detector.n_features_in_}."
            )
        missing: dict[str | None, list[str]] = {}
        for column, value in encoder.missing:
            missing.setdefault(column, []).append(value)
        made = cls(clone(detector), ids=encoder.ids, drop=encoder.dropped, categories=encoder.categories)
        made.set_params(missing=missing, min_count=min_count)._take(encoder, detector)
        return made

    def fit(self, X: Any, y: Any = None) -> TableDetector:
        """Fit on a table of normal rows.

        Parameters
        ----------
        X : polars or pandas DataFrame, pyarrow Table, dict of columns, or Untyped
        y : ignored
        """
        return self._fit_learned(self._learn(X))

    def fit_predict(self, X: Any, y: Any = None) -> Ints:
        """Find the anomalies in a table: fit on rows that may include anomalies, and judge the same rows.

        Returns -1 for rows whose p-value (see `fit_p_values`) is at most `alpha`, and +1 for the others.
        Detectors other than RankAD predict rows that they have seen, so that fewer rows are alarms.
        """
        inside = self._inside()
        if isinstance(inside, RankAD) and inside.calibration != "in-sample":
            return np.where(self.fit_p_values(X) <= self.alpha, -1, 1)
        learned, rows = self._learn(X)
        fitted = self._unfitted()
        calibrating = fitted._fit_calibrating(rows)
        judged = np.asarray(fitted.predict(rows))
        self._hold(fitted, rows, calibrating, learned)
        alarms: Bools = (judged < 0) & (np.asarray(self.predict(X)) < 0)
        # Had they been left out, they would be strange.
        alarms[learned.singletons] = self.calibration_.threshold(self.alpha) > -LARGEST
        return np.where(alarms, -1, 1)

    def fit_p_values(self, X: Any, y: Any = None) -> Floats:
        """Fit on a table that may include anomalies, and return the p-value of each row among all of them.

        As `RankAD.fit_p_values`, with the same guarantee. A row with something that no other row has, such as
        the only missing cell of a column, gets the least score.

        Parameters
        ----------
        X : polars or pandas DataFrame, pyarrow Table, dict of columns, or Untyped
        y : ignored

        Returns
        -------
        ndarray of shape (n,), in (0, 1]
        """
        detector = self._inside()
        if not isinstance(detector, RankAD):
            raise ValueError(f"detector must be a RankAD to judge rows it is fitted on, got {detector!r}.")
        learned, rows = self._learn(X)
        fitted = self._unfitted()
        own = fitted._fit_scores(rows, learned.singletons)
        self._hold(fitted, rows, own.calibrating_rows, learned)
        return own_p_values(own.scores)

    def _inside(self) -> Any:
        return RankAD() if self.detector is None else self.detector

    def _learn(self, X: Any) -> tuple[LearnedEncoder, Floats]:
        """Learn the encoder and encode the rows, before fitting, so that large text need not be kept."""
        detector = self._inside()
        if not isinstance(detector, CalibratedDetector) or isinstance(detector, TableDetector):
            advice = "; pass the rate by name, as in alpha=0.01" if isinstance(detector, Real) else ""
            raise ValueError(f"detector must be RankAD, KLPE, EpsilonLPE or None, got {detector!r}{advice}.")
        table = as_frame(X)
        if table.height < detector._least_rows:
            raise ValueError(
                f"{type(detector).__name__} needs {detector._least_rows} rows or more to learn from, but the "
                f"table has {table.height}. Fit on more normal rows."
            )
        options = ColumnOptions(**{name: getattr(self, name) for name in ColumnOptions._fields})
        learned = learn_encoder(X if isinstance(X, Untyped) else table, options, min_count=self.min_count)
        for warning in (*learned.warnings, *(note.doubt for note in learned.encoder.notes)):
            if warning:
                warnings.warn(warning, ColumnWarning, stacklevel=3)
        return learned, learned.encoder.encode(table).rows

    def _unfitted(self) -> Any:
        """Return a copy of the detector inside, to be fitted."""
        fitted = clone(self._inside())
        if self._alpha is not None:
            fitted.alpha = self._alpha
        return fitted

    def _fit_learned(self, table: tuple[LearnedEncoder, Floats]) -> TableDetector:
        """Fit the detector inside on encoded rows."""
        (learned, rows), fitted = table, self._unfitted()
        return self._hold(fitted, rows, fitted._fit_calibrating(rows), learned, level=5)

    def _hold(
        self, fitted: CalibratedDetector, rows: Floats, which: Ints, learned: LearnedEncoder, level: int = 4
    ) -> TableDetector:
        """Take a detector fitted on encoded rows, and which of them calibrate; `level` is for a warning."""
        fitted._compare_with(_leave_one_out(fitted, rows, which, learned), fresh=False)
        self._take(learned.encoder, fitted)
        self._singleton_columns = learned.singleton_columns
        # If there are too few rows for any alarm, the detector inside has already warned.
        if fitted.alpha * (fitted.calibration_.scores.size + 1) >= 1:
            self._warn_if_silent(level)
        return self

    def _take(self, encoder: TableEncoder, fitted: CalibratedDetector) -> None:
        self.encoder_, self.detector_ = encoder, fitted
        self.feature_names_in_ = np.array([column.name for column in encoder.columns], dtype=object)
        self.n_features_in_ = len(encoder.columns)

    @property
    def alpha(self) -> float:
        """The false-alarm rate asked for: as given, or that of the detector inside."""
        if "detector_" in self.__dict__:
            return float(self.detector_.alpha)
        if self._alpha is not None:
            return self._alpha
        return float(self._inside().alpha)

    @alpha.setter
    def alpha(self, value: float | None) -> None:
        # Also here, so that fitting again keeps it.
        self._alpha = value
        if "detector_" in self.__dict__:
            self.detector_.alpha = self._inside().alpha if value is None else value

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters as given: `alpha` is None where it is left to the detector inside."""
        return {**super().get_params(deep), "alpha": self._alpha}

    @property
    def calibration_(self) -> Calibration:  # type: ignore[override]
        """The scores of normal rows that p-values refer to."""
        self._check_fitted()
        return self.detector_.calibration_

    @property
    def recalibrated_(self) -> bool:  # type: ignore[override]
        """Whether the calibration scores are those of fresh rows (`calibrate`)."""
        return self.detector_.recalibrated_

    def _check_fitted(self) -> None:
        if "detector_" not in self.__dict__:
            raise NotFittedError(
                "TableDetector is not fitted yet: call fit with a table of normal rows first."
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
        if self.encoder_.n_singletons:
            # No row may score below the singletons.
            np.maximum(scores, self._least_score, out=scores)
        scores[encoded.strange_rows] = self._least_score
        return scores

    def _judged(self, scores: Floats) -> Floats:
        # Said without figures, so that batches do not repeat it.
        if scores.size >= _MANY and np.mean(scores <= self._least_score) > _MOST:
            warnings.warn(
                "most of these rows have a cell that no normal row has, and so are alarms whatever else they "
                "hold: is a column written in another way than in the normal rows? detector.verdict(X) says "
                "which, and detector.strange_cells(X) lists the cells.",
                ColumnWarning,
                stacklevel=5,
            )
        return scores

    def strange_cells(self, X: Any) -> list[StrangeCell]:
        """Return the cells that no normal row has; their rows are alarms whenever any row can be one."""
        self._check_fitted()
        return self.encoder_.encode(X).strange

    def _compare_with(self, calibration: Calibration, *, fresh: bool) -> None:
        self.detector_._compare_with(calibration, fresh=fresh)

    def _bound(self, alpha: float, delta: float) -> FalseAlarmBound:
        # An order statistic depends on the number of scores, not on the scores: singletons change nothing.
        bound = self.detector_._bound(alpha, delta)
        has_strange = any(
            not isinstance(column, NumberColumn) or column.constant or column.values or column.wall
            for column in self.encoder_.columns
        )
        independent = self.detector_.recalibrated_ or (self.encoder_.is_plain and not has_strange)
        if bound.bound == 0 or independent:
            return bound
        return bound._replace(exact=False, theorem=bound.theorem + _ENCODED)

    def _more_alarms(self) -> str:
        if self.detector_.recalibrated_ or not self.encoder_.n_singletons:
            return super()._more_alarms()
        # Loaded models do not know the columns.
        columns = ", ".join(map(repr, getattr(self, "_singleton_columns", ())[:3]))
        return (
            f"{self.encoder_.n_singletons} of {self.encoder_.n_rows} normal rows have something that no "
            f"other has{f', chiefly in {columns}' if columns else ''}: drop the columns in which that is "
            f"common, use more rows, or a larger alpha."
        )

    def explain(self, X: Any, *, alpha: float | None = None, n_nearest: int = 3) -> Explanations:
        """Explain for each row which columns make it abnormal: see `rankad.explanations.explainer.explain`.

        Values are those of the table, and strange cells come first.

        Parameters
        ----------
        X : polars or pandas DataFrame, pyarrow Table, or dict of columns
            Or one row: a dict of cells, or a row of a pandas frame.
        alpha : float, optional
            The alarm level; the detector's own by default.
        n_nearest : int
            How many normal rows to show for comparison.

        Returns
        -------
        Explanations
            A list of one `Explanation` for each row, which prints; `to_frame` makes a data frame of it.
        """
        from rankad.tables.explaining import explain_table

        self._check_fitted()
        return explain_table(self, X, alpha=alpha, n_nearest=n_nearest)

    encoder_: TableEncoder
    detector_: CalibratedDetector


def _leave_one_out(
    detector: CalibratedDetector, rows: Floats, calibrating: Ints, learned: LearnedEncoder
) -> Calibration:
    """Give each calibrating row the score that it would have had it been left out of the encoder.

    The detector has seen the rows that would be encoded differently, but not in that encoding.
    """
    scores = detector.calibration_.scores.copy()
    if learned.regrouped:
        changed, encoded = learned.left_out(rows)
        new_scores = np.full(len(rows), np.nan)
        new_scores[changed] = detector.score_samples(encoded)
        scores = np.where(np.isnan(new_scores[calibrating]), scores, new_scores[calibrating])
    scores[np.isin(calibrating, learned.singletons)] = -LARGEST
    return Calibration.from_scores(scores, detector.calibration_.kind)
