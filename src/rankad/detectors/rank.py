"""RankAD: a kernel RankSVM that imitates p-value ranks, with calibrated p-values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from rankad._base.arrays import Floats, Ints
from rankad._base.checks import check_choice, check_run, check_share, check_unit, is_count, resolve_neighbors
from rankad._base.rows import validate_rows
from rankad._base.threads import importing, one_blas_thread
from rankad.detectors.base import CalibratedDetector
from rankad.fitting.own_rows import OwnScores, own_p_values, with_suspects
from rankad.fitting.plan import Plan, resolve_bandwidths, resolve_C, resolve_landmarks, resolve_scalings
from rankad.model import RankModel
from rankad.stages.calibration import Calibration, FalseAlarmBound, beta_bound, covering_bound
from rankad.stages.copies import find_repeats
from rankad.stages.levels import resolve_cuts

if TYPE_CHECKING:
    from rankad.explanations.showing import Explanations
    from rankad.fitting.pipeline import Fitted

__all__ = ["RankAD"]

_LEAST_ROWS = 8
_SUSPECTED = (
    ". Which rows do not train was chosen by looking at all of them, those that calibrate too, which no "
    "theorem here covers"
)


class RankAD(CalibratedDetector):
    """Anomaly detection with a false-alarm rate you choose, by learning to rank nominal rows.

    Fitted on nominal rows alone. Each gets a rank from its neighbours (the sparser its place, the lower); a
    kernel RankSVM learns a score that orders rows like those ranks. Two more parts look at a row in other
    ways: how near the nearest nominal rows are, and how likely it is by the shape of those about it, which a
    mixture of Gaussians has learned. The score is their soft minimum, each part in the unit of what it says
    of rows it has not seen. The p-value of a new row is the share of nominal rows that score no higher. A row
    whose p-value is at most `alpha` is an alarm.

    Parameters
    ----------
    alpha : float, default=0.05
        The false-alarm rate asked for. Can be changed after fitting.
    n_neighbors : int or "auto", default="auto"
        K of the neighbour graph; "auto" is ``(n / 2) ** (2 / 5)``, rounded down: neighbours are looked for in
        random halves of the n training rows (of many rows, among `reference_rows_`).
    n_levels : int, "tail" or sequence of float, default="tail"
        How ranks are quantized: a number of uniform levels, cut points, or cuts at 1, 2, 3.5, 5, 7.5, 10, 15,
        25, 50 and 75 %, finest where alarms are.
    bandwidth : float, str or sequence of these, default="D_K"
        sigma of the kernel ``exp(-|x - x'|^2 / sigma^2)`` in units of the scaled columns, or a string such as
        "0.5 D_K" for a multiple of the mean distance to the K nearest neighbours. Of several the best is
        selected. "auto" selects among 1/4, 1/2, 1, 2 and 4 D_K, "paper" among 2^-10 to 2^10 D_K.
    C : float, sequence of float, "auto" or "paper", default="auto"
        The weight of one preference pair against half the squared norm, for the rows trained on; of several
        the best is selected. "auto" is 10 over their number, "paper" selects among 13 values from 0.001 to
        1000.
    landmarks : int, "all" or ("kmeans" | "random", int), default=250
        Of what the scorer is made: so many k-means centres, so many random rows, or all training rows. Time
        to score a row is proportional to their number.
    far_field : bool, default=True
        Whether the point at infinity takes part in training, below all levels, so that far rows score low;
        whether rows out of the kernel's reach lose the distance to the three nearest landmarks from their
        score; and those far outside the range of a column the excess (see `ranges_`).
    near_field : bool, default=True
        Whether the score also looks at the five nearest of the training rows, or, in a fit of 15,000 rows or
        more, of up to 100,000 rows that neither train nor calibrate (`reference_rows_`). What counts is the
        mean distance, with each column in units of the geometric mean of its standard deviation and its
        range. Not for calibration="in-sample".
    n_components : int, default=20
        Of how many Gaussians a mixture is made that the score also looks at, one for every 20 training rows
        at most; 0 for none. Their covariances tell rows that break what columns obey together. There is none
        where there are fewer than four training rows for every column, nor where columns are very many (500
        and more of 2,000 rows), nor for calibration="in-sample".
    selection : {"contrast", "shuffled", "disagreement"}, default="contrast"
        How scaling, bandwidth and C are selected where several are given, always without labels. By telling
        held-out rows from made-up ones, with shuffled columns and (for "contrast") uniform in a box; or by
        the disagreement with the levels of held-out rows, as in the paper.
    calibration : {"cross-fit", "split", "in-sample"}, default="cross-fit"
        Which nominal scores new ones are compared with. "cross-fit": each training row's from a model fitted
        without its fold, scaling, ranks and landmarks included. Of 100 to 500 rows, it falls back to "split"
        with a warning where the score follows single rows or where rows lie in few places, as copies do: then
        the rate of one fit can be far from what is asked for. "split": half of the rows train, the others
        calibrate; exactly valid. "in-sample": the training rows' own, as in the paper; raises more false
        alarms than asked for. Rows beyond the 5,000 used for training calibrate in any case, but for
        those that rank them (`reference_rows_`).
    scaling : {"auto", "standard", "robust"} or None, default="robust"
        How columns are scaled for RankSVM: by mean and standard deviation, by median and interquartile range,
        or not at all; "auto" selects among the three, and of those that do equally well takes the plainest:
        not at all where the columns' standard deviations are within a factor of four, else the first. Learned
        from the nominal rows.
    trim : float or "auto", default=0
        The share of rows that may be anomalies, from 0 to below 0.5. That share of the rows is left out:
        those farthest from their K-th nearest neighbour (on standardized columns, unless `scaling` is None),
        with a K so large that no cluster of suspects can vouch for itself. The promise changes: if they were
        nominal after all, as many more false alarms are raised, about ``alpha + trim`` in all (see
        `false_alarm_bound`); more where whole clusters of a few rows are left out. "auto" is for when nobody
        knows the share: the fifth that is most suspicious among all rows does not train, but calibrates like
        the others, so that about `alpha` of normal rows are false alarms as ever, or fewer. If there were
        anomalies, new rows like these are alarms only where `alpha` is above their share. `fit_predict`
        judges rows that nobody vouches for, and takes 0 as "auto".
    random_state : int, RandomState or None, default=0
        Same seed, same answer, whatever `n_jobs`. The default is a number, other than in most of
        scikit-learn, so that a row which is an alarm today is one tomorrow, if the detector is fitted on the
        same rows again. None draws another seed for every fit.
    n_jobs : int or None
        Threads; None is one.
    verbose : bool, default=False
        Whether to show progress on standard error.

    Attributes
    ----------
    model_ : RankModel
        All that was learned, as one frozen value; the attributes below are read from it.
    calibration_ : Calibration
        The nominal scores that p-values refer to.
    offset_ : float
        The score below which a row is an alarm at `alpha`.
    bandwidth_, C_ : float
        As used.
    selection_ : SelectionTable or None
        All that was tried, with its losses; None where there was nothing to select.
    landmarks_ : ndarray of shape (s, d)
        In scaled units.
    coefficients_ : ndarray of shape (s,)
    scaling_ : Scaling
    ranges_ : ColumnRanges
        What nominal rows span in each column. With `far_field`, a row more than four standard deviations
        outside loses the excess from its score.
    ranks_, levels_ : ndarray of shape (n_training,)
        The ranks of the training rows and their levels.
    training_rows_ : ndarray of int, shape (n_training,)
        Which rows trained: all, or 5,000 drawn at random, or half of them for calibration="split".
    nominal_rows_ : ndarray of shape (n_training, d)
        The training rows themselves, kept for explanations; absent where they were not saved (see `save`).
    reference_rows_ : ndarray of int
        Which rows ranked them: where there are many more than trained, training rows are ranked by their
        neighbours among these, or some of them, and neither kind calibrates. The near field is made of them
        all. Empty where training rows rank one another.
    scorer_ : FusedScorer
        What scores rows: its parts are ``scorer_.kernel``, ``scorer_.near`` and ``scorer_.mixture``.
    trimmed_rows_ : ndarray of int
        Which rows did not train as suspects (`trim`).
    repeated_rows_ : ndarray of int
        Which rows were left out as copies of others, because rows repeat more regularly than independent
        rows would (every one twice, say).
    n_samples_fit_ : int
        How many rows it was fitted on, those included.
    recalibrated_ : bool
        Whether `calibrate` has put fresh rows in the place of those that calibrated.
    n_neighbors_ : int
    norm_ : float
        The length of g in the kernel's space.
    n_iter_ : int
        Newton steps of the final fit.
    converged_ : bool
        Whether every fit met the solver's stopping rule.
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
        """Return the paper to the letter, for comparison only.

        Raw features, K = 20, three uniform levels, its grid of 13 by 21 judged by 4-fold disagreement, all
        rows as support, no far field, in-sample ranks. Its false alarms exceed what is asked for.

        Parameters
        ----------
        **overrides
            Parameters of `RankAD` to set otherwise.
        """
        published = {
            "n_neighbors": 20,
            "n_levels": 3,
            "bandwidth": "paper",
            "C": "paper",
            "landmarks": "all",
            "far_field": False,
            "near_field": False,
            "n_components": 0,
            "selection": "disagreement",
            "calibration": "in-sample",
            "scaling": None,
        }
        return cls(**{**published, **overrides})

    def fit(self, X: Any, y: Any = None) -> RankAD:
        """Fit on nominal rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Nominal rows, at least 8; the more, the finer the p-values.
        y : ignored

        Returns
        -------
        RankAD
            The detector itself.
        """
        self._fit_on(X)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Ints:
        """Find the anomalies among the rows of X: fit on rows nobody vouches for, and judge the same rows.

        Returns -1 for rows whose p-value (see `fit_p_values`) is at most `alpha`, and +1 for the others. At
        most that share of the rows are alarms, and where none is an anomaly, about that share of them are.

        With trim=0 the detector is then not the one that `fit` would make of X, and it has no `predict`: for
        new rows, call `fit`. With calibration="in-sample" no model has not seen a row, and this is the same
        as `fit` and `predict`.
        """
        if self.calibration == "in-sample":
            return super().fit_predict(X)
        return np.where(self.fit_p_values(X) <= self.alpha, -1, 1)

    def fit_p_values(self, X: Any, y: Any = None) -> Floats:
        """Fit on rows nobody vouches for, and return the p-value of each of them among all of them.

        A first, coarse look finds suspects: how far a row stands from wide neighbourhoods, by an isolation
        forest, and by the tails of its columns. The fifth of the rows that is most suspicious does not train
        (or the share `trim`, if that is not 0). Then every row is scored by models that were not fitted on
        it. The p-value is the row's place among all rows, the least nominal first, over their number.

        What is promised: no more than a share alpha of the rows have a p-value of at most alpha, whatever the
        rows. If all come from one law, any of them has one with probability alpha: a row drawn at random from
        the table, exactly. If there are anomalies, these take the first places, as far as they are found, and
        fewer of the others have such a p-value. What is not promised: how many of the first are anomalies,
        and that all anomalies are among them. Where there may be more anomalies than `alpha` of the rows,
        look at more rows. Those that lie together and are much more than a twentieth of the rows may pass for
        normal. These p-values depend on one another, and no false discovery rate can be had from them.

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
        """
        return own_p_values(self._fit_scores(X).scores)

    def _fit_scores(self, X: Any, strange: Ints | None = None) -> OwnScores:
        """Fit on rows and score each by models that had not seen it (see `rankad.fitting.own_rows`).

        Strange rows have the least score: they have something that no other row has.
        """
        if self.calibration == "in-sample":
            raise ValueError(
                "calibration='in-sample' has no model that was not fitted on a row, by which to judge the "
                "rows of X; use calibration='cross-fit' or 'split'."
            )
        self._plan()
        with self._keeping_the_old_fit():
            rows = validate_rows(self, X, reset=True, least=_LEAST_ROWS)
            fitted = self._fit_on(X, self._suspicion(rows))
        scores = self._score(rows)
        if fitted.left_out is not None:
            scores[self.model_.training_rows] = fitted.left_out
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
                "predict is not there after fit_predict with trim=0, which judges the rows of X as if nobody "
                "vouched for them. For new rows call fit(X) first: with trim=0 if all rows of X are nominal, "
                "with trim='auto' if nobody knows."
            )
        return super().predict

    def _suspicion(self, rows: Floats) -> Floats:
        from rankad.fitting.trimming import suspicion

        # The same draws for the same rows, whatever else is drawn.
        return suspicion(rows, np.random.default_rng(0), self.n_jobs)

    def _fit_calibrating(self, X: Any) -> Ints:
        return self._fit_on(X).calibrating_rows

    def _fit_on(self, X: Any, suspicion: Floats | None = None) -> Fitted:
        """Fit; rows that are judged themselves come with how suspicious they are."""
        plan = self._plan()
        with self._keeping_the_old_fit(), one_blas_thread():
            fitted = self._fit(plan, validate_rows(self, X, reset=True, least=_LEAST_ROWS), suspicion)
            self.model_ = fitted.model
            self.__dict__.pop("_fitted_as_told", None)
            if suspicion is not None and self.trim == 0:
                self._fitted_as_told = False
        if not self.model_.converged:
            warnings.warn(
                "RankSVM did not converge in every fit: the optimum may be off. Lower C, or use a wider "
                "bandwidth or fewer landmarks.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if suspicion is None:
            # Rows that are judged themselves have as many p-values as there are rows.
            self._warn_if_silent(stacklevel=4)
        return fitted

    def _fit(self, plan: Plan, rows: Floats, suspicion: Floats | None) -> Fitted:
        with importing:
            import rankad._loops.counts  # noqa: F401
            from rankad.fitting import sizes
            from rankad.fitting.doubt import warn_of_split
            from rankad.fitting.pipeline import fit_model
            from rankad.fitting.trimming import most_suspicious, suspects

        n, repeats = len(rows), self._without_repeats(rows, _LEAST_ROWS, stacklevel=5)
        kept = np.delete(np.arange(n), repeats)
        # Nobody vouches for rows that are to be judged.
        judging = suspicion is not None
        auto = self.trim == "auto" or (judging and self.trim == 0)
        share = 0.0 if auto else float(self.trim)
        n_left = len(kept) - int(share * len(kept))
        if n_left < _LEAST_ROWS:
            raise ValueError(
                f"trim={self.trim!r} leaves {n_left} of {len(kept)} rows; at least {_LEAST_ROWS} are "
                f"needed. Lower trim, or fit on more rows."
            )
        out = kept[:0]
        if auto or judging or n_left < len(kept):
            rng = np.random.default_rng(int(check_random_state(self.random_state).randint(2**31)))
        if auto:
            suspected = self._suspicion(rows) if suspicion is None else suspicion
            out = kept[most_suspicious(suspected[kept], _LEAST_ROWS)]
        elif n_left < len(kept):
            out = kept[
                suspects(rows[kept], share, None if self.scaling is None else "standard", rng, self.n_jobs)
            ]
        kept = np.setdiff1d(kept, out)
        out_of = len(out) / (len(out) + len(kept))
        if judging and len(kept) > 2 * sizes.MAX_TRAINING_ROWS:
            # Of more rows some would be reference, and what has been seen as such cannot be judged.
            kept = np.sort(rng.choice(kept, 2 * sizes.MAX_TRAINING_ROWS, replace=False))
        training = rows if len(kept) == n else rows[kept]
        entropy = check_random_state(self.random_state).randint(2**31, size=4)
        fitted = fit_model(plan, training, self.calibration, entropy, judging=judging)
        if fitted.doubt is not None:
            warn_of_split(fitted.doubt, "cross-fitted", stacklevel=4)
            fitted = fit_model(plan, training, "split", entropy, always_alike=True, judging=judging)
        model, calibrating = fitted.model, kept[fitted.calibrating_rows]
        calibration = model.calibration
        if auto and out.size and self.calibration != "in-sample":
            of_suspects = model.scorer.score(rows[out], n_jobs=self.n_jobs)
            calibration, calibrating = with_suspects(calibration, calibrating, of_suspects, out, out_of, rng)
        model = replace(
            model,
            calibration=calibration,
            training_rows=kept[model.training_rows],
            reference_rows=kept[model.reference_rows],
            trimmed_rows=out,
            repeated_rows=repeats,
            n_samples_fit=n,
        )
        return fitted._replace(model=model, calibrating_rows=calibrating)

    _fitted_attribute = "model_"
    _marks_bad_rows = True
    _least_rows = _LEAST_ROWS
    # Whether the rows were taken for what `trim` says.
    _fitted_as_told = True

    def _score(self, rows: Floats) -> Floats:
        return self.model_.scorer.score(rows, n_jobs=self.n_jobs)

    def _compare_with(self, calibration: Calibration, *, fresh: bool) -> None:
        self.model_ = self.model_.compared_with(calibration, fresh=fresh)

    @property
    def landmarks_(self) -> Floats:
        """The landmarks, in scaled units."""
        return self.model_.scaling.apply(self.model_.scorer.kernel.landmarks)

    @property
    def coefficients_(self) -> Floats:
        """The landmarks' coefficients in the score."""
        return self.model_.scorer.kernel.coefficients

    def explain(self, X: Any, *, alpha: float | None = None, n_nearest: int = 3) -> Explanations:
        """Say why rows are abnormal: column by column, by nominal rows nearby, and by a change that helps.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        alpha : float, optional
            What counts as an alarm; the detector's own by default.
        n_nearest : int
            How many nominal rows to show for comparison.

        Returns
        -------
        Explanations
            A list with one `Explanation` for each row (see `rankad.explanations`). It prints, and its
            `to_frame` makes a data frame of it.
        """
        from rankad.explanations.explaining import explain

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

    def _plan(self) -> Plan:
        """Check every parameter before any work is done."""
        check_unit("alpha", self.alpha)
        if not (isinstance(self.trim, str) and self.trim == "auto"):
            check_share("trim", self.trim, "'auto' or ")
        check_choice("far_field", self.far_field, (True, False))
        check_choice("near_field", self.near_field, (True, False))
        if not is_count(self.n_components) or self.n_components < 0:
            raise ValueError(
                f"n_components must be an integer >= 0 (0 for no mixture), got {self.n_components!r}."
            )
        check_choice("verbose", self.verbose, (True, False))
        check_choice("selection", self.selection, ("contrast", "shuffled", "disagreement"))
        check_choice("calibration", self.calibration, ("cross-fit", "split", "in-sample"))
        check_run(self.random_state, self.n_jobs)
        return Plan(
            resolve_scalings(self.scaling),
            resolve_neighbors(self.n_neighbors),
            resolve_cuts(self.n_levels),
            resolve_bandwidths(self.bandwidth),
            resolve_C(self.C),
            *resolve_landmarks(self.landmarks),
            bool(self.far_field),
            bool(self.near_field),
            int(self.n_components),
            self.selection,
            self.n_jobs,
            bool(self.verbose),
        )

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
