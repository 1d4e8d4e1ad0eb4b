"""What all detectors share: calibrated p-values, and decisions from them at any alpha."""

from __future__ import annotations

import math
import os
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.exceptions import NotFittedError

from rankad._base.arrays import Floats, Ints
from rankad._base.checks import check_unit
from rankad._base.rows import is_plain, validate_rows
from rankad.detectors.guarantees import Guarantees
from rankad.detectors.signature import ATTRIBUTES, with_advice
from rankad.stages.calibration import Calibration
from rankad.stages.copies import row_variates

if TYPE_CHECKING:
    from rankad.report.making import Report
    from rankad.tables.judging import TableVerdict

T = TypeVar("T")


class CalibratedDetector(Guarantees, OutlierMixin, BaseEstimator):
    """A scorer with the scores of normal rows to compare with; higher scores are more normal.

    Subclasses call `_compare_with` in `fit` and implement `_score`.

    Examples
    --------
    >>> import tempfile
    >>> from rankad import KLPE
    >>> normal, rows = np.arange(19.0)[:, None], [[3.25], [40.0]]
    >>> detector = KLPE(n_neighbors=1, scaling=None, alpha=0.1).fit(normal)
    >>> detector.score_samples(rows), detector.p_values(rows), detector.predict(rows)
    (array([ -0.25, -22.  ]), array([1.  , 0.05]), array([ 1, -1]))
    >>> detector.offset_, detector.decision_function(rows)
    (-1.0, array([  0.75, -21.  ]))
    >>> KLPE(alpha=0.1).fit_predict([*normal, [60.0]])[-3:]
    array([ 1,  1, -1])
    >>> fresh = np.random.default_rng(0).uniform(0.0, 18.0, size=(999, 1))
    >>> detector.calibrate(fresh).smoothed_p_values(rows).round(1)
    array([0.5, 0. ])
    >>> detector.update(fresh[:500]).calibration_.scores.size
    1499
    >>> detector.calibrate(fresh).certificate().range(0.1), round(detector.false_alarm_bound().bound, 3)
    (RateRange(alpha=0.1, low=0.082..., high=0.119...), 0.116)
    >>> print(detector.verdict(np.linspace(20.0, 40.0, 50)[:, None]))
    All rows are alarms, at a false-alarm rate of 10 %.
    ...
    >>> detector.level_set(0.1).contains(rows), type(detector.report(rows)).__name__
    (array([ True, False]), 'Report')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     detector.save(f"{folder}/model.rankad")
    """

    # Whether calibration scores are those of fresh rows (`calibrate`).
    recalibrated_: bool
    # What to do instead of passing parameters that other detectors have.
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    # No row can score lower.
    _least_score = -math.inf
    # Whether `_score` takes any plain array (`is_plain`) and scores rows NaN that are not finite.
    _marks_bad_rows = False
    # Fewer rows than this are not enough to learn from.
    _least_rows = 1

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = with_advice(cls.__init__, cls._elsewhere)  # type: ignore[method-assign]

    @abstractmethod
    def _check(self) -> None:
        """Check every parameter before any work is done."""

    @abstractmethod
    def _score(self, rows: Floats) -> Floats:
        """Score validated rows."""

    @contextmanager
    def _keeping_the_old_fit(self) -> Iterator[None]:
        """Leave the detector as it was if fitting fails or is interrupted."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    @overload
    def score_samples(self, X: Iterator[Any]) -> Iterator[Floats]: ...
    @overload
    def score_samples(self, X: Any) -> Floats: ...
    def score_samples(self, X: Any) -> Floats | Iterator[Floats]:
        """Score rows; higher is more normal.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d), or iterator of such
            A memory-mapped array is read block by block. An iterator of batches is read one batch at a time.

        Returns
        -------
        ndarray of shape (n,), or iterator of such
            For an iterator, one array per batch.
        """
        return self._answer(X, np.asarray)

    @overload
    def p_values(self, X: Iterator[Any]) -> Iterator[Floats]: ...
    @overload
    def p_values(self, X: Any) -> Floats: ...
    def p_values(self, X: Any) -> Floats | Iterator[Floats]:
        """Return the p-value of each row: the share of normal rows that score no higher.

        ``(1 + #{normal scores <= score}) / (n + 1)``, so that a fresh normal row has a p-value of at most
        alpha with probability about alpha, for every alpha.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d), or iterator of such
            As for `score_samples`.

        Returns
        -------
        ndarray of shape (n,), in (0, 1], or iterator of such
        """
        return self._answer(X, lambda scores: self.calibration_.p_values(self._judged(scores)))

    def smoothed_p_values(self, X: Any) -> Floats:
        """Return p-values that are uniform on normal rows even where scores tie.

        On discrete rows, `p_values` counts every tie against an alarm: never more alarms than asked for, but
        often far fewer. Here ties are broken by a number computed from the row itself, so that equal rows get
        equal answers, and about as many rows as asked for have p <= alpha. `predict` uses `p_values`.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)

        Returns
        -------
        ndarray of shape (n,), in (0, 1)
        """
        self._check_fitted()
        return self.calibration_.smoothed(self._score_rows(X), row_variates(self._numbers(X)))

    def _numbers(self, X: Any) -> Floats:
        """Return X as rows of numbers."""
        return validate_rows(self, X, reset=False)

    # The attribute that fitting sets.
    _fitted_attribute = "calibration_"

    def _check_fitted(self) -> None:
        if self._fitted_attribute not in self.__dict__:
            raise NotFittedError(f"{type(self).__name__} is not fitted yet: call fit with normal rows first.")

    def _score_rows(self, X: Any) -> Floats:
        """Score X, validated."""
        if self._marks_bad_rows and is_plain(self, X):
            scores = self._score(X)
            if not math.isnan(scores.sum()):
                return scores
        return self._score(validate_rows(self, X, reset=False))

    def _answer(self, X: Any, of_scores: Callable[[Floats], T]) -> T | Iterator[T]:
        """Return ``of_scores(scores)`` for the rows of X, or lazily for each batch of an iterator."""
        self._check_fitted()
        if not isinstance(X, Iterator):
            return of_scores(self._score_rows(X))

        def answers() -> Iterator[T]:
            for number, batch in enumerate(X):
                try:
                    answer = of_scores(self._score_rows(batch))
                except (ValueError, TypeError) as error:
                    error.add_note(f"In batch {number} of X, counted from 0.")
                    raise
                yield answer

        return answers()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Asked for what there is not, and for what a property says is not there yet.
            if name in ATTRIBUTES:
                raise AttributeError(f"{type(self).__name__} has no {name}: {ATTRIBUTES[name]}.")
            return object.__getattribute__(self, name)

    def _judged(self, scores: Floats) -> Floats:
        """Return scores as they are; subclasses warn of what they show before rows are judged by them."""
        return scores

    @property
    def offset_(self) -> float:
        """The score below which a row is an alarm at `alpha`; -inf when alpha is too small for any alarm."""
        self._check_fitted()
        return self.calibration_.threshold(check_unit("alpha", self.alpha))

    @overload
    def decision_function(self, X: Iterator[Any]) -> Iterator[Floats]: ...
    @overload
    def decision_function(self, X: Any) -> Floats: ...
    def decision_function(self, X: Any) -> Floats | Iterator[Floats]:
        """Return ``score_samples(X) - offset_``: negative for alarms."""
        offset = self.offset_
        return self._answer(X, lambda scores: scores - offset)

    @overload
    def predict(self, X: Iterator[Any]) -> Iterator[Ints]: ...
    @overload
    def predict(self, X: Any) -> Ints: ...
    def predict(self, X: Any) -> Ints | Iterator[Ints]:
        """Return -1 for alarms, rows whose p-value is at most `alpha`, and +1 for the others.

        `alpha` can be set after fitting (``detector.alpha = 0.01``); nothing is fitted again. X is as for
        `score_samples`.
        """
        offset = self.offset_
        self._warn_if_silent()
        return self._answer(X, lambda scores: np.where(self._judged(scores) < offset, -1, 1))

    def calibrate(self, X: Any) -> Self:
        """Compare new rows with other normal rows from now on; nothing is fitted again.

        Use it when normal has moved a little, or for the exact law of false alarms: rows that had no part in
        fitting calibrate as for "split" (see `false_alarm_bound`).

        Parameters
        ----------
        X : array-like or data frame of shape (n, d), or iterator of such
            Fresh normal rows. Their scores replace those of ``calibration_``.

        Returns
        -------
        CalibratedDetector
            The detector itself.
        """
        self._compare_with(Calibration.from_scores(self._fresh_scores(X), "split"), fresh=True)
        self._warn_if_silent()
        return self

    def update(self, X: Any) -> Self:
        """Add normal rows to those that new rows are compared with; nothing is fitted again.

        P-values become finer, and the certificate tighter. Pass all normal rows of a period: without those
        that were alarms, later p-values would be too small. An exact law stays exact (after `calibrate`, or
        with calibration="split"). Cross-fitted scores stay an approximation, so that `calibrate` with the new
        rows alone promises more once they are half as many. To learn from the rows too, fit again.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d), or iterator of such
            Normal rows that were not among those before.
        """
        scores, known = self._fresh_scores(X), self.calibration_
        if not known.worth:
            raise ValueError("An in-sample calibration cannot be added to: call calibrate with fresh rows.")
        joined = Calibration.from_scores(np.concatenate([known.scores, scores]), known.kind)
        self._compare_with(joined, fresh=self.recalibrated_)
        return self

    def _fresh_scores(self, X: Any) -> Floats:
        answer = self.score_samples(X)
        scores = np.concatenate([*answer, np.empty(0)]) if isinstance(answer, Iterator) else answer
        if not scores.size:
            raise ValueError("X must hold at least one normal row to calibrate with, got none.")
        return scores

    def _compare_with(self, calibration: Calibration, *, fresh: bool) -> None:
        """Set the calibration scores, of the rows fitted on or of fresh ones."""
        self.calibration_, self.recalibrated_ = calibration, fresh

    def _warn_if_silent(self, stacklevel: int = 3) -> None:
        """Warn when there are too few normal rows for any alarm at alpha."""
        least = float(self.calibration_.p_values(self._least_score))
        if self.alpha < least:
            warnings.warn(
                f"alpha={self.alpha:g} is below the smallest p-value there can be, {least:.3g} with "
                f"{self.calibration_.scores.size} normal rows to compare with: no row will ever raise an "
                f"alarm. {self._more_alarms()}",
                UserWarning,
                stacklevel=stacklevel,
            )

    def _more_alarms(self) -> str:
        if 1 / self.alpha > sys.maxsize:
            return "Use a larger alpha."
        return f"Use at least {math.ceil(1 / self.alpha) - 1} such rows or a larger alpha."

    def save(self, path: str | os.PathLike[str], *, rows: bool = True) -> None:
        """Save the fitted detector to one file, without pickle; `rankad.load` brings it back to the last bit.

        Parameters
        ----------
        path : str or path
            Where to, as "model.rankad". A file of that name is replaced by a whole one or not at all.
        rows : bool
            Whether to save the training rows too, which explanations need. A near field, `KLPE` and
            `EpsilonLPE` score by rows and cannot be saved without; ``RankAD(near_field=False)`` can.
        """
        from rankad.modelfile import save

        save(self, path, rows=rows)

    def verdict(self, X: Any, *, alpha: float | None = None) -> TableVerdict:
        """Say whether rows as a whole are as normal rows are, and if not, which column is to blame.

        Some alarms come by chance. More than chance explains, or p-values that are lower or higher on the
        whole, say that something has happened to all rows: another unit, a broken sensor, a new decimal mark.
        Normal rows are said to be off with a probability of about 1 %. Needs the extra ``tables``.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            As for `p_values`. Not the rows it was fitted on: they are closer to themselves than new rows.
        alpha : float, optional
            What counts as an alarm; the detector's own by default.

        Returns
        -------
        TableVerdict
            Prints as sentences; ``is_off`` says whether chance does not explain the rows, and ``columns``
            which columns differ from normal rows, the most important first.
        """
        # Imported by name, since verdicts on tables are made above the detectors.
        made: TableVerdict = import_module("rankad.report.verdicts").verdict_on(self, X, alpha)
        return made

    def report(
        self,
        X: Any,
        path: str | os.PathLike[str] | None = None,
        *,
        alpha: float | None = None,
        top: int = 20,
        title: str | None = None,
    ) -> Report:
        """Score rows and make an HTML page of the results, like ``rankad report``.

        It shows how many alarms there are, which, why, and what was promised. Needs the extra ``report``.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            As for `p_values`.
        path : str or path, optional
            Where to write the page, as "report.html".
        alpha : float, optional
            What counts as an alarm; the detector's own by default.
        top : int
            How many alarms to explain.
        title : str, optional

        Returns
        -------
        Report
            Shows itself in a notebook; ``report.save(path)`` writes it.
        """
        # Imported by name, since reports are a layer above the detectors.
        made: Report = import_module("rankad.report.making").report_on(
            self, X, alpha=alpha, top=top, title=title
        )
        if path is not None:
            made.save(path)
        return made

    def fit_predict(self, X: Any, y: Any = None) -> Ints:
        """Fit on X and predict the same rows.

        A row looks more normal to a detector that was fitted on it: fewer rows than `alpha` are alarms. To
        judge rows, fit on others.
        """
        return np.asarray(self.fit(X).predict(X))

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit on normal rows."""

    @abstractmethod
    def _fit_calibrating(self, X: Any) -> Ints:
        """Fit, and return which row of X each calibration score is of."""
