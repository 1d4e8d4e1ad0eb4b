"""K-LPE, aK-LPE and epsilon-LPE as detectors: p-values by nearest-neighbour density, without a ranker."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state

from rankad._base.arrays import Floats, Ints
from rankad._base.checks import check_choice, check_run, check_unit, resolve_neighbors
from rankad._base.rows import validate_rows
from rankad._base.threads import importing
from rankad.detectors.base import CalibratedDetector
from rankad.fitting.doubt import few_places, is_in_doubt, leave_out_copies, most_in_a_place, warn_of_split
from rankad.stages.calibration import Calibration, Kind
from rankad.stages.copies import find_repeats
from rankad.stages.ranks import Statistic, auto_neighbors, knn_statistic, neighbors_needed
from rankad.stages.scaling import Scaling, fit_scaling

_LEAST_ROWS = 4
# Up to this many rows each is left out of the scaling too; of more, those that move it.
_SMALL = 1_000
# The share of rows that the automatic radius leaves with enough neighbours: few may tie at none.
_RADIUS_QUANTILE = 0.95
# A row with this share of a column's squares moves its standard deviation by half a per cent.
_SIZABLE = 0.01
# One with this share, and so many deviations from the mean, is among the few that it is made of.
_MAIN, _OUTLIER = 0.2, 5.0


class _LocalDensityDetector(CalibratedDetector):
    """A density measured among reference rows; see `KLPE` and `EpsilonLPE`."""

    calibration: str
    scaling: str | None
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    scaling_: Scaling
    reference_: Floats
    n_samples_fit_: int
    # Whether the rows that calibrate are not among the reference rows.
    _reference_apart: bool

    @abstractmethod
    def _check_parameters(self) -> None:
        """Check the detector's own parameters."""

    def _n_needed(self) -> int:
        """Return how many reference rows the parameters ask for."""
        return 1

    @abstractmethod
    def _prepare(self) -> None:
        """Resolve them, once the reference rows are known."""

    @abstractmethod
    def _density(self, reference: Floats, queries: Floats | None) -> Floats:
        """Measure the density at the queries, or at each reference row among the others."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit on normal rows, at least 4; X is an array-like or data frame of shape (n, d)."""
        self._fit_calibrating(X)
        return self

    def _fit_calibrating(self, X: Any) -> Ints:
        self._check()
        with self._keeping_the_old_fit():
            calibrating = self._fit(validate_rows(self, X, reset=True, least=_LEAST_ROWS))
        self._warn_if_silent(stacklevel=4)
        return calibrating

    def _check(self) -> None:
        check_unit("alpha", self.alpha)
        check_choice("calibration", self.calibration, ("leave-one-out", "split"))
        check_choice("scaling", self.scaling, ("standard", "robust", None))
        check_run(self.random_state, self.n_jobs)
        self._check_parameters()

    def _fit(self, rows: Floats) -> Ints:
        with importing:
            import rankad._loops.counts
            import rankad.stages.neighbors  # noqa: F401
        n = len(rows)
        repeats = leave_out_copies(find_repeats(rows), n, _LEAST_ROWS, stacklevel=5)
        self.n_samples_fit_ = n
        if repeats.size:
            rows = np.delete(rows, repeats, axis=0)
        self._reference_apart = self.calibration == "split" or self._is_better_split(rows)
        if self._reference_apart:
            # A split that was not asked for is always the same: the seed must not decide about alarms.
            seed = self.random_state if self.calibration == "split" else 0
            order = check_random_state(seed).permutation(len(rows))
            middle = (len(rows) + 1) // 2
            which = np.sort(order[middle:])
            reference, others = rows[np.sort(order[:middle])], rows[which]
        else:
            which, reference, others = np.arange(len(rows)), rows, None
        self.scaling_ = fit_scaling(reference, self.scaling)
        self.reference_ = self.scaling_.apply(reference)
        self._prepare()
        if others is not None:
            scores = self._density(self.reference_, self.scaling_.apply(others))
        else:
            scores = self._density(self.reference_, None)
            for i, share in self._movers(rows):
                rest = np.delete(rows, i, axis=0)
                center, scale = fit_scaling(rest, self.scaling, len(rows))
                if share > max(_MAIN, _OUTLIER**2 / len(rows)):
                    # A column of a few huge values has a deviation of their size over the root of n. With
                    # one row less, rows that tie with new ones must not score above them. Columns that no
                    # longer vary are in the unit that they have for new rows.
                    varies = rest.min(axis=0) < rest.max(axis=0)
                    scale = np.where(varies, scale * (1 - 1 / len(rows)), scale)
                scaling = Scaling(center, scale)
                scores[i] = self._density(scaling.apply(rest), scaling.apply(rows[i : i + 1]))[0]
        kind: Kind = "leave-one-out" if others is None else "split"
        self._compare_with(Calibration.from_scores(scores, kind), fresh=False)
        kept = np.delete(np.arange(n), repeats)
        return np.asarray(kept[which[np.argsort(scores, kind="stable")]])

    def _is_better_split(self, rows: Floats) -> bool:
        """Return whether scores of rows left out cannot be trusted, and warn if so."""
        from rankad.stages.neighbors import nearest_neighbors

        n = len(rows)
        if not is_in_doubt(n) or n // 2 < self._n_needed():
            return False
        scaled = fit_scaling(rows, self.scaling).apply(rows)
        reason = few_places(nearest_neighbors(scaled, most_in_a_place(n), n_jobs=self.n_jobs))
        if reason is not None:
            warn_of_split(reason, "leave-one-out", stacklevel=4)
        return reason is not None

    def _movers(self, rows: Floats) -> list[tuple[int, float]]:
        """Return the rows without which the scaling would differ, and their shares of squares.

        They are scored by the scaling of the others: an outlier must not stretch the unit it is measured
        in. These are all of few rows; of many, those with a sizable part of some column's variance.
        """
        if self.scaling is None:
            return []
        squares = (rows - rows.mean(axis=0)) ** 2
        totals = squares.sum(axis=0)
        shares = np.divide(squares, totals, out=np.zeros_like(squares), where=totals > 0).max(axis=1)
        least = -1.0 if len(rows) <= _SMALL else _SIZABLE
        return [(int(i), float(shares[i])) for i in np.flatnonzero(shares > least)]

    def _score(self, rows: Floats) -> Floats:
        return self._density(self.reference_, self.scaling_.apply(rows))


class KLPE(_LocalDensityDetector):
    """K-LPE and aK-LPE: p-values from nearest-neighbour distances.

    The score is minus the distance statistic; a new row's p-value is the share of normal rows whose
    neighbours are no nearer than its own (equation 2 of the paper). Use it as a reference on small data: each
    row scored is compared with all normal rows, which `RankAD` does not need.

    Parameters
    ----------
    alpha : float, default=0.05
        The false-alarm rate asked for. Can be changed after fitting.
    n_neighbors : int or "auto", default="auto"
        K; "auto" is ``n ** (2 / 5)``, rounded down.
    statistic : {"mean", "kth", "centred"}, default="mean"
        "kth" is K-LPE: the distance to the K-th neighbour. The others are aK-LPE: "mean" is the mean distance
        to neighbours 1 to K, "centred" to neighbours ``K - (K-1)//2`` to ``K + K//2``, around the K-th.
    calibration : {"leave-one-out", "split"}, default="leave-one-out"
        "leave-one-out": each normal row is compared with all others, and scaled by them where its own values
        move the scaling. "split": half of the rows are compared with the other half; exactly valid.
    scaling : {"standard", "robust"} or None, default="standard"
        How columns are scaled first.
    random_state : int, RandomState or None, default=0
        For "split". None draws another half for every fit.
    n_jobs : int or None
        Threads; None is one.

    Attributes
    ----------
    calibration_ : Calibration
    offset_ : float
        The score below which a row is an alarm at `alpha`.
    reference_ : ndarray of shape (n_reference, d)
        The rows that neighbours are sought among, scaled.
    scaling_ : Scaling
    n_neighbors_ : int
    n_samples_fit_ : int
        How many rows it was fitted on.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> nominal = np.arange(20.0).reshape(-1, 1)
    >>> KLPE(n_neighbors=2, alpha=0.1).fit(nominal).predict([[7.5], [40.0]])
    array([ 1, -1])
    """

    n_neighbors_: int
    _statistic: Statistic

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        n_neighbors: int | str = "auto",
        statistic: str = "mean",
        calibration: str = "leave-one-out",
        scaling: str | None = "standard",
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.statistic = statistic
        self.calibration = calibration
        self.scaling = scaling
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        check_choice("statistic", self.statistic, ("mean", "kth", "centred"))
        resolve_neighbors(self.n_neighbors)

    def _n_needed(self) -> int:
        return neighbors_needed(resolve_neighbors(self.n_neighbors) or 1, cast(Statistic, self.statistic))

    def _prepare(self) -> None:
        # As fitted: a parameter changed afterwards must not mix two statistics.
        self._statistic = cast(Statistic, self.statistic)
        most = len(self.reference_) - (not self._reference_apart)
        k = resolve_neighbors(self.n_neighbors)
        if k is None:
            k = auto_neighbors(len(self.reference_))
            while k > 1 and neighbors_needed(k, self._statistic) > most:
                k -= 1
        needed = neighbors_needed(k, self._statistic)
        if needed > most:
            raise ValueError(
                f"n_neighbors={k} with statistic={self.statistic!r} reads {needed} neighbours a row, but a "
                f"row has only {most} others among the reference rows. Lower n_neighbors, pass 'auto', or "
                f"fit on more rows."
            )
        self.n_neighbors_ = k

    def _density(self, reference: Floats, queries: Floats | None) -> Floats:
        from rankad.stages.neighbors import nearest_neighbors

        needed = neighbors_needed(self.n_neighbors_, self._statistic)
        neighbors = nearest_neighbors(reference, needed, queries, n_jobs=self.n_jobs)
        return -knn_statistic(neighbors.distances, self.n_neighbors_, self._statistic)


class EpsilonLPE(_LocalDensityDetector):
    """epsilon-LPE: p-values from the number of normal rows within a radius.

    The score is that number; a new row's p-value is the share of normal rows that have no more neighbours
    within the radius (equation 3 of the paper). Use it where a radius means something. Counts tie often, and
    ties count against an alarm.

    Parameters
    ----------
    alpha : float, default=0.05
        The false-alarm rate asked for. Can be changed after fitting.
    radius : float or "auto", default="auto"
        epsilon, in units of the scaled columns; "auto" leaves 95 % of normal rows with at least
        ``n ** (2 / 5)`` neighbours.
    calibration : {"leave-one-out", "split"}, default="leave-one-out"
        "leave-one-out": each normal row is compared with all others, and scaled by them where its own values
        move the scaling. "split": half of the rows are compared with the other half; exactly valid.
    scaling : {"standard", "robust"} or None, default="standard"
        How columns are scaled first.
    random_state : int, RandomState or None, default=0
        For "split". None draws another half for every fit.
    n_jobs : int or None
        Threads; None is one.

    Attributes
    ----------
    calibration_ : Calibration
    offset_ : float
        The score below which a row is an alarm at `alpha`.
    reference_ : ndarray of shape (n_reference, d)
        The rows that neighbours are counted among, scaled.
    scaling_ : Scaling
    radius_ : float
    n_samples_fit_ : int
        How many rows it was fitted on.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> nominal = np.arange(20.0).reshape(-1, 1)
    >>> EpsilonLPE(radius=3.0, scaling=None).fit(nominal).score_samples([[7.5], [40.0]])
    array([6., 0.])
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        radius: float | str = "auto",
        calibration: str = "leave-one-out",
        scaling: str | None = "standard",
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.radius = radius
        self.calibration = calibration
        self.scaling = scaling
        self.random_state = random_state
        self.n_jobs = n_jobs

    radius_: float

    # No row has fewer than no neighbours.
    _least_score = 0.0

    def _more_alarms(self) -> str:
        return "Rows without neighbours tie at zero: use a larger radius, more rows, or a larger alpha."

    def _check_parameters(self) -> None:
        radius = self.radius
        if isinstance(radius, str) and radius == "auto":
            return
        if not isinstance(radius, Real) or isinstance(radius, bool) or not 0 < float(radius) < np.inf:
            raise ValueError(f"radius must be 'auto' or a number > 0, got {radius!r}.")

    def _prepare(self) -> None:
        if self.radius != "auto":
            self.radius_ = float(self.radius)
            return
        from rankad.stages.neighbors import nearest_neighbors

        k = auto_neighbors(len(self.reference_))
        distances = nearest_neighbors(self.reference_, k, n_jobs=self.n_jobs).distances[:, -1]
        # Where nearly all rows are duplicates, the others tell the scale.
        apart = distances[distances > 0]
        self.radius_ = float(np.quantile(distances, _RADIUS_QUANTILE)) or (
            float(np.median(apart)) if apart.size else 1.0
        )

    def _density(self, reference: Floats, queries: Floats | None) -> Floats:
        from rankad.stages.neighbors import radius_counts

        counts = radius_counts(reference, self.radius_, queries, n_jobs=self.n_jobs)
        return counts.astype(np.float64)
