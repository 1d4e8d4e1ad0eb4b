"""RankAD: a kernel RankSVM that learns p-value ranks, with calibrated p-values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankad._base.arrays import Floats, Ints
from rankad._base.rows import validate_rows
from rankad._base.threads import importing, one_blas_thread
from rankad.detectors.base import CalibratedDetector
from rankad.fitting import sizes
from rankad.fitting.own_rows import OwnScores, own_p_values
from rankad.fitting.plan import Plan
from rankad.model import RankModel
from rankad.stages.calibration import Calibration, FalseAlarmBound, beta_bound, covering_bound
from rankad.stages.copies import find_repeats

if TYPE_CHECKING:
    from rankad.explanations.showing import Explanations
    from rankad.fitting.pipeline import Fitted

_SUSPECTED = (
    ". No theorem covers trim='auto': the rows that do not train were chosen by looking at all rows, "
    "including those that calibrate"
)


class RankAD(CalibratedDetector):
    """Anomaly detection with a false-alarm rate you choose, by learning to rank normal rows.

    Fit it on normal rows alone; no labels are needed. Each row gets a rank from its neighbours (the sparser
    its place, the lower), and a kernel RankSVM learns a score that orders rows like those ranks. Two more
    parts vote: how near the nearest normal rows are, and how likely the row is by a mixture of Gaussians. The
    score is their soft minimum, each part in units of what it says of rows it has not seen. The p-value of a
    new row is the share of normal rows that score no higher; where it is at most `alpha`, the row is an
    alarm.

    Parameters
    ----------
    alpha : float, default=0.05
        The false-alarm rate asked for. Can be changed after fitting.
    n_neighbors : int or "auto", default="auto"
        K of the neighbour graph; "auto" is ``(n / 2) ** (2 / 5)``, rounded down, for n training rows.
    n_levels : int, "tail" or sequence of float, default="tail"
        How ranks are quantized: a number of uniform levels, cut points, or "tail" for cuts at 1, 2, 3.5, 5,
        7.5, 10, 15, 25, 50 and 75 %, finest where alarms are.
    bandwidth : float, str or sequence of these, default="D_K"
        sigma of the kernel ``exp(-|x - x'|^2 / sigma^2)`` in units of the scaled columns, or a string such as
        "0.5 D_K" for a multiple of the mean distance to the K nearest neighbours. The best of several is
        selected. "auto" selects among 1/4, 1/2, 1, 2 and 4 D_K, "paper" among 2^-10 to 2^10 D_K.
    C : float, sequence of float, "auto" or "paper", default="auto"
        The weight of one preference pair against half the squared norm. The best of several is selected.
        "auto" is 10 over the number of training rows, "paper" selects among 13 values from 0.001 to 1000.
    landmarks : int, "all" or ("kmeans" | "random", int), default=250
        The points that the kernel part is made of: k-means centres, random rows, or all training rows. The
        time to score a row is proportional to their number.
    far_field : bool, default=True
        Whether rows out of the kernel's reach keep falling in score: by the distance to the three nearest
        landmarks, and by how far they are outside the range of a column (see ``ranges_``).
    near_field : bool, default=True
        Whether the score also looks at the mean distance to the five nearest training rows; with 15,000 rows
        or more, to the nearest of up to 100,000 others (``reference_rows_``). Each column is in units of the
        geometric mean of its standard deviation and its range. Not for calibration="in-sample".
    n_components : int, default=20
        The most Gaussians in the mixture, one for every 20 training rows at most; 0 for no mixture. Their
        covariances find rows that break a relation between columns. There is no mixture with fewer than four
        training rows for every column, with very many columns (500 and more of 2,000 rows), nor for
        calibration="in-sample".
    selection : {"contrast", "shuffled", "disagreement"}, default="contrast"
        How scaling, bandwidth and C are selected where several are given; none needs labels. "shuffled": by
        how well held-out rows are told from rows with shuffled columns. "contrast": also from rows drawn
        uniformly in a box. "disagreement": with the levels of held-out rows, as in the paper.
    calibration : {"cross-fit", "split", "in-sample"}, default="cross-fit"
        Which normal scores new ones are compared with. "cross-fit": each training row is scored by a model
        fitted without its fold. With 100 to 500 rows it becomes "split", with a warning, where the score
        follows single rows or many rows are copies: the rate of one fit could be far from alpha. "split":
        half of the rows train, the others calibrate; exactly valid. "in-sample": training rows are scored by
        the model they trained, as in the paper; raises more false alarms than asked for. Rows beyond the
        5,000 that train always calibrate, except for reference rows (``reference_rows_``).
    scaling : {"auto", "standard", "robust"} or None, default="robust"
        How columns are scaled for RankSVM: by mean and standard deviation, by median and interquartile range,
        or not at all. "auto" selects among the three. Of equals it takes no scaling where the columns'
        standard deviations are within a factor of four, else the first of these three.
    trim : float or "auto", default=0
        The share of rows that may be anomalies, from 0 to below 0.5. The rows farthest from their K-th
        nearest neighbour are left out (on standardized columns, unless `scaling` is None). K is larger than
        their number, so that a cluster of anomalies is left out too. If these rows were normal after all, the
        false-alarm rate is about ``alpha + trim``, and more in some cases, as where whole clusters of a few
        rows are left out (see `false_alarm_bound`). "auto" is for an unknown share: the most suspicious fifth
        does not train but calibrates like the others. Anomalies among the rows then make false alarms rarer,
        not more frequent (no theorem covers it), and anomalies like those in the table are alarms only where
        `alpha` is above their share. `fit_predict` takes 0 as "auto".
    random_state : int, RandomState or None, default=0
        The same seed gives the same answer, whatever `n_jobs`. Unlike in most of scikit-learn the default is
        a number, so that fitting again on the same rows gives the same alarms. None draws a new seed for
        every fit.
    n_jobs : int or None
        Threads; None is one.
    verbose : bool, default=False
        Whether to show progress on standard error.

    Attributes
    ----------
    model_ : RankModel
        All that was learned, as one frozen value. Each of its fields is an attribute of the detector too,
        with an underscore: ``calibration_``, ``scorer_``, ``bandwidth_``, ``training_rows_`` and so on (see
        `rankad.model.RankModel`). ``nominal_rows_`` is absent where rows were not saved (see `save`).
    offset_ : float
        The score below which a row is an alarm at `alpha`.
    landmarks_ : ndarray of shape (s, d)
        In scaled units.
    coefficients_ : ndarray of shape (s,)
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> detector = RankAD(alpha=0.01, random_state=0).fit(rng.normal(size=(300, 2)))
    >>> detector.predict([[0.1, -0.2], [6.0, 6.0]])
    array([ 1, -1])
    >>> detector.p_values([[6.0, 6.0]]).round(4)
    array([0.0033])
    >>> detector.explain([[0.0, 9.0]])[0].reasons[0].column
    1
    >>> detector.landmarks_.shape, detector.coefficients_.shape, RankAD.as_published().calibration
    ((250, 2), (250,), 'in-sample')
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        n_neighbors: int | str = "auto",
        n_levels: int | str | Sequence[float] = "tail",
        bandwidth: float | str | Sequence[float | str] = "D_K",
        C: float | str | Sequence[float] = "auto",
        landmarks: int | str | tuple[str, int] = 250,
        far_field: bool = True,
        near_field: bool = True,
        n_components: int = 20,
        selection: str = "contrast",
        calibration: str = "cross-fit",
        scaling: str | None = "robust",
        trim: float | str = 0.0,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.n_levels = n_levels
        self.bandwidth = bandwidth
        self.C = C
        self.landmarks = landmarks
        self.far_field = far_field
        self.near_field = near_field
        self.n_components = n_components
        self.selection = selection
        self.calibration = calibration
        self.scaling = scaling
        self.trim = trim
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def as_published(cls, **overrides: Any) -> RankAD:
        """Return the detector exactly as in the paper, for comparison only.

        Raw features, K = 20, three uniform levels, its grid of 13 by 21 judged by 4-fold disagreement, all
        rows as support, no far field, in-sample ranks. It raises more false alarms than asked for.

        Parameters
        ----------
        **overrides
            Parameters of `RankAD` to set otherwise.
        """
        published: dict[str, Any] = dict(n_neighbors=20, n_levels=3, bandwidth="paper", C="paper")
        published |= dict(landmarks="all", selection="disagreement", calibration="in-sample", scaling=None)
        published |= dict(far_field=False, near_field=False, n_components=0)
        return cls(**{**published, **overrides})

    def fit(self, X: Any, y: Any = None) -> RankAD:
        """Fit on normal rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Normal rows, at least 8; the more, the finer the p-values.
        y : ignored

        Returns
        -------
        RankAD
            The detector itself.
        """
        self._fit_on(X)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Ints:
        """Find the anomalies among the rows of X, of which nobody knows whether they are normal.

        Returns -1 for rows whose p-value (see `fit_p_values`) is at most `alpha`, and +1 for the others. At
        most that share of the rows are alarms; if there are no anomalies, about that share are.

        With trim=0 the detector is not the one that `fit` would make of X, and has no `predict`: for new
        rows, call `fit`. With calibration="in-sample" this is the same as `fit` and `predict`.
        """
        if self.calibration == "in-sample":
            return super().fit_predict(X)
        return np.where(self.fit_p_values(X) <= self.alpha, -1, 1)

    def fit_p_values(self, X: Any, y: Any = None) -> Floats:
        """Fit on rows of which nobody knows whether they are normal, and return their own p-values.

        A first, coarse look finds suspects: by the distance to wide neighbourhoods, by an isolation forest,
        and by the tails of single columns. The most suspicious fifth does not train (or the share `trim`, if
        that is not 0). Then every row is scored by models that were not fitted on it. The p-value is the
        row's place among all rows, the least normal first, over their number.

        Promised: at most a share alpha of the rows have a p-value of at most alpha, whatever the rows. If all
        rows come from one law, each has such a p-value with probability about alpha. Anomalies take the first
        places as far as they are found. Not promised: how many of the first rows are anomalies, and that all
        anomalies are among them; those that lie together and are much more than a twentieth of the rows may
        pass for normal. These p-values depend on one another, so do not control a false discovery rate with
        them.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            At least 8 rows.
        y : ignored

        Returns
        -------
        ndarray of shape (n,), in (0, 1]

        Examples
        --------
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).normal(size=(100, 2))
        >>> rows[[3, 7]] = [[5.0, -5.0], [-6.0, 0.0]]
        >>> np.flatnonzero(RankAD().fit_p_values(rows) <= 0.02)
        array([3, 7])
        >>> np.flatnonzero(RankAD(alpha=0.02).fit_predict(rows) < 0)
        array([3, 7])
        """
        return own_p_values(self._fit_scores(X).scores)

    def _fit_scores(self, X: Any, strange: Ints | None = None) -> OwnScores:
        """Fit on rows and score each by models that had not seen it (see `rankad.fitting.own_rows`).

        Strange rows have something that no other row has, and get the least score.
        """
        if self.calibration == "in-sample":
            raise ValueError(
                "calibration='in-sample' cannot judge the rows it was fitted on: every model has seen every "
                "row. Use calibration='cross-fit' or 'split'."
            )
        rows, fitted = self._fit_on(X, judging=True)
        scores = fitted.scores_of(rows, self.n_jobs)
        if strange is not None:
            scores[strange] = -np.inf
        if self.model_.repeated_rows.size:
            repeats = find_repeats(rows)
            scores[repeats.copies] = scores[repeats.originals]
        return OwnScores(scores, fitted.calibrating_rows)

    @property
    def predict(self) -> Callable[[Any], Any]:
        """Return -1 for alarms, rows whose p-value is at most `alpha`, and +1 for the others.

        `alpha` can be set after fitting (``detector.alpha = 0.01``); nothing is fitted again. X is as for
        `score_samples`. After `fit_predict` with trim=0 there is no such method: see there.
        """
        if not self._fitted_as_told:
            raise AttributeError(
                "predict is not available after fit_predict with trim=0, which judges the rows of X as if "
                "any of them could be an anomaly. For new rows call fit(X) first: with trim=0 if all rows "
                "of X are normal, with trim='auto' if you do not know."
            )
        return super().predict

    def _check(self) -> None:
        Plan.of(self)

    def _fit_calibrating(self, X: Any) -> Ints:
        return self._fit_on(X)[1].calibrating_rows

    def _fit_on(self, X: Any, *, judging: bool = False) -> tuple[Floats, Fitted]:
        """Fit, and return the rows with what was made of them; `judging` says that they are judged too."""
        plan = Plan.of(self)
        with self._keeping_the_old_fit(), one_blas_thread():
            rows = validate_rows(self, X, reset=True, least=sizes.LEAST_ROWS)
            with importing:
                import rankad._loops.counts  # noqa: F401
                from rankad.fitting.fit_rows import fit_rows
            fitted = fit_rows(plan, rows, judging=judging)
            self.model_ = fitted.model
            self.__dict__.pop("_fitted_as_told", None)
            if judging and self.trim == 0:
                self._fitted_as_told = False
        if not self.model_.converged:
            warnings.warn(
                "RankSVM did not converge in every fit: the optimum may be off. Lower C, or use a wider "
                "bandwidth or fewer landmarks.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if not judging:
            # Rows that are judged themselves have as many p-values as there are rows.
            self._warn_if_silent(stacklevel=4)
        return rows, fitted

    _fitted_attribute = "model_"
    _marks_bad_rows = True
    _least_rows = sizes.LEAST_ROWS
    # Whether the rows were taken for what `trim` says.
    _fitted_as_told = True

    def _score(self, rows: Floats) -> Floats:
        return self.model_.scorer.score(rows, n_jobs=self.n_jobs)

    def _compare_with(self, calibration: Calibration, *, fresh: bool) -> None:
        self.model_ = replace(self.model_, calibration=calibration, recalibrated=fresh)

    @property
    def landmarks_(self) -> Floats:
        """The landmarks, in scaled units."""
        return self.model_.scaling.apply(self.model_.scorer.kernel.landmarks)

    @property
    def coefficients_(self) -> Floats:
        """The landmarks' coefficients in the score."""
        return self.model_.scorer.kernel.coefficients

    def explain(self, X: Any, *, alpha: float | None = None, n_nearest: int = 3) -> Explanations:
        """Explain why rows are abnormal: column by column, by normal rows nearby, and by a change that helps.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        alpha : float, optional
            What counts as an alarm; the detector's own by default.
        n_nearest : int
            How many normal rows to show for comparison.

        Returns
        -------
        Explanations
            A list with one `Explanation` for each row (see `rankad.explanations`). It prints, and its
            `to_frame` makes a data frame of it.
        """
        from rankad.explanations.explainer import explain

        return explain(self, X, alpha=alpha, n_nearest=n_nearest)

    def _bound(self, alpha: float, delta: float) -> FalseAlarmBound:
        model, auto = self.model_, self.trim == "auto"
        in_sample = model.calibration.kind == "in-sample"
        # Trimming took nothing away from fresh rows.
        n_trimmed = 0 if model.recalibrated or (auto and not in_sample) else len(model.trimmed_rows)
        if in_sample:
            return covering_bound(model.calibration, alpha, delta, model.norm, model.n_kernels, n_trimmed)
        n_different = model.n_samples_fit - len(model.repeated_rows)
        bound = beta_bound(model.calibration, alpha, delta, n_trimmed, n_different)
        if not auto or model.recalibrated or bound.bound == 0:
            return bound
        return bound._replace(exact=False, theorem=bound.theorem + _SUSPECTED)

    model_: RankModel


def _from_model(name: str) -> property:
    """Return a fitted attribute that is read from the model; there is none where the model has none."""

    def read(detector: RankAD) -> Any:
        model = detector.__dict__.get("model_")
        value = getattr(model, name, None)
        # Only the table of trials may be None in a fitted detector.
        if model is None or (value is None and name != "selection"):
            raise AttributeError(f"{type(detector).__name__!r} object has no attribute '{name}_'")
        return value

    return property(read)


for _field in fields(RankModel):
    if not hasattr(RankAD, f"{_field.name}_"):
        setattr(RankAD, f"{_field.name}_", _from_model(_field.name))
