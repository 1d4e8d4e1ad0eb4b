"""The set of rows that a detector calls normal at a level alpha, as an object."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankad._base.arrays import Bools, Floats
from rankad._base.checks import check_unit, is_count
from rankad.level_sets.proposal import Proposal
from rankad.stages.calibration import Calibration

# Rows per step of Monte Carlo, and steps at most.
_BATCH, _MOST_BATCHES = 20_000, 50


class Volume(NamedTuple):
    """A volume found by Monte Carlo.

    Attributes
    ----------
    volume : float
        In the units of the columns, multiplied. It may overflow with many columns; `log_volume` does not.
    error : float
        The standard error of `volume`.
    log_volume : float
    relative_error : float
        ``error / volume``.
    n_points : int
        Points drawn.
    """

    volume: float
    error: float
    log_volume: float
    relative_error: float
    n_points: int


class LevelSet:
    """The rows that a detector calls normal at alpha, its estimate of the minimum volume set.

    Of all sets that hold a share of 1 - alpha of the normal rows, the minimum volume set is the smallest. The
    sets of one detector are nested: that of a larger alpha is a part of that of a smaller one.

    Make one with ``detector.level_set(alpha)``, of a `RankAD`, `KLPE` or `EpsilonLPE` fitted on columns that
    are continuous, or of any other score with `of_score`. Sets at alphas below ``1 / (n + 1)``, n calibration
    rows, are the whole space.

    Parameters
    ----------
    detector : CalibratedDetector
        Fitted on rows of numbers.
    alpha : float
    rows : ndarray of shape (n, d)
        Normal rows, for where to look for the set. They need not be those fitted on.

    Examples
    --------
    >>> import numpy as np
    >>> from rankad import KLPE
    >>> rows = np.random.default_rng(0).normal(size=(1000, 2))
    >>> detector = KLPE().fit(rows)
    >>> normal = detector.level_set(0.1)
    >>> normal.contains([[0.0, 0.0], [5.0, 5.0]])
    array([ True, False])

    The smallest set that holds 90 % of a Gaussian in two dimensions is a disc of area 4.6 pi.

    >>> volume = normal.volume(random_state=0)
    >>> 0.85 < volume.volume / (4.6 * np.pi) < 1.15
    True
    >>> normal.is_bounded, normal.is_within(detector.level_set(0.05))
    (True, True)
    >>> normal.sample(3).shape, normal.project((0, 1), n=50).shape
    ((3, 2), (50, 2))
    >>> len(normal.boundary()), normal.grid(20)[2].shape
    (1, (20, 20))

    Of a score that is known, here a disc of radius 1:

    >>> disc = LevelSet.of_score(lambda x: -(x**2).sum(axis=1), rows, threshold=-1.0)
    >>> 0.95 < disc.volume().volume / np.pi < 1.05
    True
    """

    def __init__(self, detector: Any, alpha: float, rows: Floats) -> None:
        self.detector, self.alpha = detector, check_unit("alpha", alpha)
        self.rows = np.asarray(rows, dtype=np.float64)
        self.threshold: float = detector.calibration_.threshold(self.alpha)

    @classmethod
    def of_score(
        cls,
        score: Callable[[Any], Any] | Any,
        rows: Any,
        alpha: float = 0.05,
        *,
        threshold: float | None = None,
    ) -> LevelSet:
        """Return a level set of any score: of another detector, or of a density that is known.

        Parameters
        ----------
        score : estimator or callable
            A fitted detector with `score_samples` (ours or scikit-learn's), or a function that scores rows.
            Higher is more normal.
        rows : array-like of shape (n, d)
            Normal rows that the score was not fitted on.
        alpha : float
            The share of normal rows that is to be outside; the rows tell the threshold.
        threshold : float, optional
            The least score in the set, where it is known; alpha is not used then.
        """
        known = np.asarray(rows, dtype=np.float64)
        if known.ndim != 2 or len(known) < 2:
            raise ValueError(f"rows must hold at least two rows of numbers, got shape {known.shape}.")
        if not np.isfinite(known).all():
            raise ValueError("rows must hold finite numbers; leave out rows with missing or infinite ones.")
        if threshold is not None and not math.isfinite(threshold):
            raise ValueError(f"threshold must be None or a finite number, got {threshold!r}.")
        scored = _Scored(score, known)
        made = cls(scored, alpha, known)
        if threshold is not None:
            made.threshold = float(threshold)
            made.alpha = float((scored.calibration_.scores < threshold).mean())
        return made

    @property
    def is_bounded(self) -> bool:
        """Whether alarms are possible at alpha; otherwise the set is the whole space."""
        return self.threshold > -math.inf

    def contains(self, X: Any) -> Bools:
        """Return True for rows in the set: those that are not alarms at alpha."""
        return np.asarray(self.detector.score_samples(X) >= self.threshold)

    def is_within(self, other: LevelSet) -> bool:
        """Tell whether this set is a part of another one of the same detector."""
        if not isinstance(other, LevelSet) or _source(other.detector) is not _source(self.detector):
            raise ValueError(
                f"other must be a level set of the same detector, got {other!r}; sets of other detectors "
                f"need not be nested."
            )
        return self.threshold >= other.threshold

    def volume(
        self,
        *,
        max_error: float = 0.05,
        n_points: int | None = None,
        random_state: int | np.random.Generator | None = 0,
    ) -> Volume:
        """Estimate the volume of the set by importance sampling.

        Points are drawn from a mixture of Gaussians and Student laws around the normal rows, and each in the
        set counts as one over its density there. That works where drawing from a box does not: the share of a
        box that a set fills falls fast with the number of columns.

        Parameters
        ----------
        max_error : float
            The relative standard error asked for.
        n_points : int, optional
            Draw so many points, whatever the error; by default, as many as it takes.
        random_state : int, Generator or None

        Returns
        -------
        Volume

        Raises
        ------
        ValueError
            Where the set is unbounded, or where a million points do not reach `max_error`: then no honest
            figure can be given.
        """
        tolerance = check_unit("max_error", max_error)
        if n_points is not None and (not is_count(n_points) or n_points < 2):
            raise ValueError(f"n_points must be None or an integer >= 2, got {n_points!r}.")
        self._check_bounded("volume")
        rng, proposal = np.random.default_rng(random_state), Proposal.around(self._members())
        most = _BATCH * _MOST_BATCHES if n_points is None else n_points
        n, logs = 0, np.empty(0)
        while n < most:
            size = min(_BATCH, most - n)
            points = proposal.sample(size, rng)
            inside = self._holds(points)
            logs = np.r_[logs, -proposal.log_density(points[inside])]
            n += size
            found = _mean_of_weights(logs, n)
            # A few points of huge weight make the error itself unreliable: the largest must not dominate.
            if (
                n_points is None
                and found.relative_error <= tolerance / 2
                and _largest_share(logs) < tolerance
            ):
                return found
        if n_points is None and not (found.relative_error <= tolerance and _largest_share(logs) < tolerance):
            raise ValueError(
                f"The volume could not be estimated to a relative error of {tolerance:g}: with {n} points it "
                f"is {found.relative_error:.2g}. The set is too thin or has too many columns "
                f"({self.rows.shape[1]}) for importance sampling. Use fewer columns, or a larger max_error."
            )
        return found

    def sample(self, n: int, *, random_state: int | np.random.Generator | None = 0) -> Floats:
        """Draw points that are spread evenly over the set.

        Points are drawn as for `volume`, and each in the set is kept with a probability inverse to its
        density there.

        Returns
        -------
        ndarray of shape (n, d)

        Raises
        ------
        ValueError
            Where a million points drawn are not enough for n.
        """
        if not is_count(n) or n < 1:
            raise ValueError(f"n must be an integer >= 1, got {n!r}.")
        self._check_bounded("points")
        rng, proposal = np.random.default_rng(random_state), Proposal.around(self._members())
        found, logs, lots = np.empty((0, self.rows.shape[1])), np.empty(0), np.empty(0)
        for _ in range(_MOST_BATCHES):
            points = proposal.sample(_BATCH, rng)
            points = points[self._holds(points)]
            found = np.concatenate([found, points])
            logs = np.r_[logs, -proposal.log_density(points)]
            lots = np.r_[lots, np.log(rng.random(len(points)))]
            # The largest weight so far stands for the largest there is.
            kept = np.flatnonzero(lots <= logs - logs.max(initial=-math.inf))
            if kept.size >= n:
                return np.asarray(found[kept[:n]])
        raise ValueError(
            f"Only {kept.size} points spread evenly over the set were found among {_BATCH * _MOST_BATCHES:,} "
            f"drawn. Ask for no more than that; got n={n}."
        )

    def project(
        self, columns: tuple[int, int], *, n: int = 2_000, random_state: int | np.random.Generator | None = 0
    ) -> Floats:
        """Return points of the set in two of its columns: the shadow that the set throws on them.

        Parameters
        ----------
        columns : pair of int
        n : int
            How many points.

        Returns
        -------
        ndarray of shape (n, 2)
        """
        d = self.rows.shape[1]
        pair = tuple(columns) if isinstance(columns, Sequence) else ()
        if len(pair) != 2 or not all(is_count(each) and 0 <= each < d for each in pair):
            raise ValueError(
                f"columns must be two positions from 0 to {d - 1}, as in project((0, 1)); got {columns!r}."
            )
        first, second = pair
        return self.sample(n, random_state=random_state)[:, [first, second]]

    def boundary(self, n_grid: int = 200) -> list[Floats]:
        """Return the closed curves that bound a set in two columns.

        Found on a grid of n_grid by n_grid points, with linear interpolation between them (needs matplotlib's
        contour generator, extra ``plot``).

        Returns
        -------
        list of ndarray of shape (k, 2)
        """
        if self.rows.shape[1] != 2:
            raise ValueError(
                f"A boundary can be drawn with two columns only, and the detector has {self.rows.shape[1]}. "
                f"For points of the set in a pair of columns, call project((0, 1))."
            )
        self._check_bounded("boundary")
        try:
            from contourpy import contour_generator
        except ImportError as error:
            raise ImportError("Boundaries need contourpy: pip install 'rankad[plot]'.") from error
        xs, ys, scores = self.grid(n_grid)
        lines = contour_generator(xs, ys, scores - self.threshold).lines(0.0)
        return [np.asarray(line) for line in lines]

    def grid(self, n_grid: int = 200) -> tuple[Floats, Floats, Floats]:
        """Return the scores of a grid around a set in two columns: its two axes, and (n_grid, n_grid) scores.

        The grid grows until the set is within it.
        """
        low, high = self.rows.min(axis=0), self.rows.max(axis=0)
        for _ in range(6):
            margin = 0.15 * (high - low) + 1e-12
            low, high = low - margin, high + margin
            xs, ys = (np.linspace(low[at], high[at], n_grid) for at in (0, 1))
            points = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
            scores = self._scores(points).reshape(n_grid, n_grid)
            edge = np.r_[scores[0], scores[-1], scores[:, 0], scores[:, -1]]
            if (edge < self.threshold).all():
                break
        return xs, ys, scores

    def __repr__(self) -> str:
        return f"<LevelSet of {type(_source(self.detector)).__name__} at alpha={self.alpha:g}>"

    def _members(self) -> Floats:
        """Return the normal rows in the set, or all of them where too few are."""
        inside = self.rows[self._holds(self.rows)]
        return inside if len(inside) > 2 * self.rows.shape[1] else self.rows

    def _holds(self, points: Floats) -> Bools:
        """Return the same as `contains` for points made here."""
        return np.asarray(self._scores(points) >= self.threshold)

    def _scores(self, points: Floats) -> Floats:
        """Score points made here: they have no names, which `score_samples` asks for if it knows some."""
        named = hasattr(self.detector, "feature_names_in_")
        return np.asarray((self.detector._score if named else self.detector.score_samples)(points))

    def _check_bounded(self, what: str) -> None:
        if not self.is_bounded:
            least = 1 / (self.detector.calibration_.scores.size + 1)
            raise ValueError(
                f"At alpha={self.alpha:g} no row is an alarm, so that the set is the whole space and has no "
                f"{what}; the smallest alpha of this detector is {least:.3g}."
            )


class _Scored:
    """A score, as a detector that was calibrated with rows."""

    def __init__(self, score: Any, rows: Floats) -> None:
        self.score = score
        self.score_samples = score.score_samples if hasattr(score, "score_samples") else score
        scores = np.asarray(self.score_samples(rows), dtype=np.float64)
        if scores.shape != (len(rows),):
            raise ValueError(
                f"score must return one number for each row, as score_samples does; of {len(rows)} rows it "
                f"returned shape {scores.shape}."
            )
        self.calibration_ = Calibration.from_scores(scores, "split")


def _source(detector: Any) -> Any:
    return detector.score if isinstance(detector, _Scored) else detector


def kept_rows(detector: Any) -> Floats:
    """Return the normal rows that a detector keeps, in the units of its columns."""
    if hasattr(detector, "encoder_"):
        raise ValueError(
            "A level set needs continuous numbers in all columns, so that a TableDetector has none. Fit a "
            "RankAD on the columns of numbers, and ask that for its level set."
        )
    rows = getattr(detector, "nominal_rows_", None)
    if rows is None and hasattr(detector, "reference_"):
        rows = detector.reference_ * detector.scaling_.scale + detector.scaling_.center
    if rows is None:
        raise ValueError("The detector was saved without rows; pass some normal rows as `rows`.")
    return np.asarray(rows, dtype=np.float64)


def _mean_of_weights(logs: Floats, n: int) -> Volume:
    """Return the mean of n weights, given the logarithms of those that are not zero."""
    if not logs.size:
        return Volume(0.0, math.inf, -math.inf, math.inf, n)
    top = float(logs.max())
    weights = np.exp(logs - top)
    mean = float(weights.sum()) / n
    variance = max(float((weights**2).sum()) / n - mean**2, 0.0)
    relative = math.sqrt(variance / (n - 1)) / mean
    log_volume = top + math.log(mean)
    with np.errstate(over="ignore"):
        volume = float(np.exp(log_volume))
    return Volume(volume, volume * relative, log_volume, relative, n)


def _largest_share(logs: Floats) -> float:
    return 1.0 if not logs.size else float(1 / np.exp(logs - logs.max()).sum())
