"""RankAD: a kernel RankSVM that imitates p-value ranks, with calibrated p-values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from rankad._arrays import Floats, Ints
from rankad._progress import Progress
from rankad.calibration import Calibration, FalseAlarmBound, covering_bound
from rankad.detectors.base import CalibratedDetector, check_choice, check_unit
from rankad.detectors.ranker import Bandwidth, FittedRanker, PreparedRows, Recipe
from rankad.detectors.rows import validate_rows
from rankad.kernels import KernelScorer
from rankad.levels import disagreement, resolve_cuts
from rankad.ranks import auto_neighbors
from rankad.scaling import Scaling, fit_scaling
from rankad.selection import (
    PAPER_C,
    PAPER_MULTIPLES,
    SelectionTable,
    contrast_loss,
    folds,
    run_trials,
    shuffled_columns,
    uniform_box,
)

__all__ = ["RankAD"]

T = TypeVar("T")

# Training takes at most this many rows, drawn at random; the others calibrate.
MAX_TRAINING_ROWS = 5_000
_LEAST_ROWS = 4
# Folds of the cross-fitted calibration; small samples can afford, and need, models nearer to the final one.
_CALIBRATION_FOLDS = 10
_CALIBRATION_FOLDS_SMALL = 20
_SMALL = 1_000
# What "auto" tries, in multiples of D_K.
AUTO_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
# "auto" C is this over the number of training rows.
AUTO_C = 10.0
# Made-up rows per held-out row and kind.
_NEGATIVES = 4


class RankAD(CalibratedDetector):
    """Anomaly detection with a false-alarm rate you choose, by learning to rank nominal rows.

    Fitted on nominal rows alone. Each gets a rank from its neighbours (the sparser its place, the lower); a
    kernel RankSVM learns a score that orders rows like those ranks; the p-value of a new row is the share of
    nominal rows that score no higher. A row whose p-value is at most `alpha` is an alarm.

    Parameters
    ----------
    alpha : float, default=0.05
        The false-alarm rate asked for. Can be changed after fitting.
    n_neighbors : int or "auto", default="auto"
        K of the neighbour graph; "auto" is ``n ** (2 / 5)``, rounded down.
    n_levels : int, "tail" or sequence of float, default="tail"
        How ranks are quantized: a number of uniform levels, cut points, or cuts at 2, 5, 10, 25, 50 and
        75 %, finest where alarms are.
    bandwidth : float, str or sequence of these, default="auto"
        sigma of the kernel ``exp(-|x - x'|^2 / sigma^2)`` in units of the scaled columns, or a string such as
        "0.5 D_K" for a multiple of the mean distance to the K nearest neighbours. Of several the best is
        selected. "auto" selects among 1/4, 1/2, 1, 2 and 4 D_K, "paper" among 2^-10 to 2^10 D_K.
    C : float, sequence of float, "auto" or "paper", default="auto"
        The weight of one preference pair against half the squared norm, for the rows trained on; of several
        the best is selected. "auto" is 10 over their number, "paper" the 13 values from 0.001 to 1000.
    landmarks : int, "all" or ("kmeans" | "random", int), default=500
        Of what the scorer is made: so many k-means centres, so many random rows, or all training rows. Time
        to score a row is proportional to their number.
    far_field : bool, default=True
        Whether the point at infinity takes part in training, below all levels, so that far rows score low.
    selection : {"contrast", "shuffled", "disagreement"}, default="contrast"
        How bandwidth and C are selected, always without labels. By telling held-out rows from made-up ones,
        with shuffled columns and (for "contrast") uniform in a box; or by the disagreement with the levels of
        held-out rows, as in the paper.
    calibration : {"cross-fit", "split", "in-sample"}, default="cross-fit"
        Which nominal scores new ones are compared with. "cross-fit": each training row's from a model fitted
        without its fold, scaling, ranks and landmarks included. "split": half of the rows train, the others
        calibrate; exactly valid. "in-sample": the training rows' own, as in the paper; raises more false
        alarms than asked for. Rows beyond the 5,000 used for training calibrate in any case.
    scaling : {"standard", "robust"} or None, default="standard"
        How columns are scaled first; learned from the nominal rows.
    random_state : int, RandomState or None
        Same seed, same answer, whatever `n_jobs`.
    n_jobs : int or None
        Threads; None is one.
    verbose : bool, default=False
        Whether to show progress on standard error.

    Attributes
    ----------
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
    ranks_, levels_ : ndarray of shape (n_training,)
        The ranks of the training rows and their levels.
    training_rows_ : ndarray of int, shape (n_training,)
        Which rows trained.
    n_neighbors_ : int
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
        bandwidth: float | str | Sequence[float | str] = "auto",
        C: float | str | Sequence[float] = "auto",
        landmarks: int | str | tuple[str, int] = 500,
        far_field: bool = True,
        selection: str = "contrast",
        calibration: str = "cross-fit",
        scaling: str | None = "standard",
        random_state: int | np.random.RandomState | None = None,
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
        self.selection = selection
        self.calibration = calibration
        self.scaling = scaling
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
            Nominal rows, at least 4; the more, the finer the p-values.
        y : ignored

        Returns
        -------
        RankAD
            The detector itself.
        """
        plan = self._plan()
        rows = validate_rows(self, X, reset=True, least=_LEAST_ROWS)
        # One BLAS thread, and parallel folds instead: results do not depend on how BLAS splits its sums.
        with threadpool_limits(limits=1):
            _Fit(self, plan, rows).run()
        if not self.converged_:
            warnings.warn(
                "RankSVM did not converge in every fit: the optimum may be off. Lower C, or use a wider "
                "bandwidth or fewer landmarks.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._warn_if_silent()
        return self

    def _score(self, rows: Floats) -> Floats:
        return self.scorer_.score(self.scaling_.apply(rows), n_jobs=self.n_jobs)

    @property
    def landmarks_(self) -> Floats:
        """The landmarks, in scaled units."""
        return self.scorer_.landmarks

    @property
    def coefficients_(self) -> Floats:
        """The landmarks' coefficients in the score."""
        return self.scorer_.coefficients

    def _bound(self, alpha: float, delta: float) -> FalseAlarmBound:
        if self.calibration_.kind == "in-sample":
            return covering_bound(self.calibration_, alpha, delta, self.norm_)
        return super()._bound(alpha, delta)

    def _plan(self) -> _Plan:
        """Check every parameter before any work is done."""
        check_unit("alpha", self.alpha)
        check_choice("far_field", self.far_field, (True, False))
        check_choice("selection", self.selection, ("contrast", "shuffled", "disagreement"))
        check_choice("calibration", self.calibration, ("cross-fit", "split", "in-sample"))
        check_choice("scaling", self.scaling, ("standard", "robust", None))
        k = self.n_neighbors
        if k != "auto" and not (_is_count(k) and k >= 1):  # type: ignore[operator]
            raise ValueError(f"n_neighbors must be 'auto' or an integer >= 1, got {k!r}.")
        return _Plan(
            None if k == "auto" else int(k),
            resolve_cuts(self.n_levels),
            _resolve_bandwidths(self.bandwidth),
            _resolve_C(self.C),
            *_resolve_landmarks(self.landmarks),
        )

    scorer_: KernelScorer
    scaling_: Scaling
    selection_: SelectionTable | None
    norm_: float
    converged_: bool


class _Plan(NamedTuple):
    """The parameters, read and checked."""

    k: int | None
    cuts: tuple[float, ...]
    bandwidths: list[Bandwidth]
    C: list[float] | None
    landmark_method: str
    n_landmarks: int


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def _resolve_bandwidths(given: Any) -> list[Bandwidth]:
    if isinstance(given, str) and given in ("auto", "paper"):
        multiples = AUTO_MULTIPLES if given == "auto" else PAPER_MULTIPLES
        return [Bandwidth(multiple, True) for multiple in multiples]
    several = [given] if isinstance(given, str | Real) else list(given)
    found = []
    for value in several:
        if isinstance(value, str) and value.endswith("D_K"):
            try:
                multiple = float(value.removesuffix("D_K").strip(" *") or 1)
            except ValueError:
                multiple = np.nan
            if _is_positive(multiple):
                found.append(Bandwidth(multiple, True))
                continue
        elif _is_positive(value):
            found.append(Bandwidth(float(value), False))
            continue
        raise ValueError(
            f"bandwidth must be 'auto', 'paper', a number > 0, a multiple such as '0.5 D_K', or a sequence "
            f"of the last two; got {value!r}."
        )
    if not found:
        raise ValueError("bandwidth must not be an empty sequence; pass 'auto' or at least one value.")
    return found


def _resolve_C(given: Any) -> list[float] | None:
    if isinstance(given, str) and given == "auto":
        return None
    if isinstance(given, str) and given == "paper":
        return list(PAPER_C)
    several = [given] if isinstance(given, str | Real) else list(given)
    if not several or not all(_is_positive(value) for value in several):
        raise ValueError(
            f"C must be 'auto', 'paper', a number > 0, or a non-empty sequence of such numbers; "
            f"got {given!r}."
        )
    return sorted(float(value) for value in several)


def _resolve_landmarks(given: Any) -> tuple[str, int]:
    if isinstance(given, str) and given == "all":
        return "kmeans", MAX_TRAINING_ROWS
    method: Any
    count: Any
    method, count = ("kmeans", given) if _is_count(given) else (None, None)
    if isinstance(given, tuple | list) and len(given) == 2:
        method, count = given
    if method in ("kmeans", "random") and _is_count(count) and count >= 1:
        return method, int(count)
    raise ValueError(
        f"landmarks must be an integer >= 1, 'all', or a pair such as ('random', 200) or ('kmeans', 200); "
        f"got {given!r}."
    )


def _calibration_folds(n: int) -> int:
    return min(n, _CALIBRATION_FOLDS if n >= _SMALL else _CALIBRATION_FOLDS_SMALL)


class _Fit:
    """One call of `RankAD.fit`: it fills the detector's fitted attributes."""

    def __init__(self, detector: RankAD, plan: _Plan, rows: Floats) -> None:
        self.detector = detector
        self.plan = plan
        entropy = check_random_state(detector.random_state).randint(2**31, size=4)
        seeds = np.random.SeedSequence([int(word) for word in entropy]).spawn(4)
        self.draw_seed, self.train_seed, self.select_seed, self.calibrate_seed = seeds
        n = len(rows)
        wanted = (n + 1) // 2 if detector.calibration == "split" else n
        n_training = min(wanted, MAX_TRAINING_ROWS)
        drawn = np.random.default_rng(self.draw_seed).permutation(n)[:n_training]
        training = np.sort(drawn) if n_training < n else np.arange(n)
        detector.training_rows_ = training
        detector.scaling_ = fit_scaling(rows[training], detector.scaling)
        scaled = detector.scaling_.apply(rows)
        free = np.ones(n, dtype=bool)
        free[training] = False
        self.training: Floats = scaled[training]
        self.free: Floats = scaled[free]
        self.recipe = Recipe(
            self._neighbors(n_training),
            plan.cuts,
            plan.landmark_method,
            plan.n_landmarks,
            detector.far_field,
        )

    @property
    def cross_fits(self) -> bool:
        """Cross-fitting is for when there are fewer free rows than training rows."""
        return self.detector.calibration == "cross-fit" and len(self.free) < len(self.training)

    @property
    def n_trials(self) -> int:
        return len(self.plan.bandwidths) * len(self.plan.C or [0.0])

    def run(self) -> None:
        detector, plan = self.detector, self.plan
        prepared = PreparedRows(self.training, self.recipe, self.train_seed)
        C = plan.C or [AUTO_C / len(self.training)]
        weights = [value * prepared.n_pairs for value in C]
        detector.selection_, chosen, at = self._select(prepared, C, weights)
        sigma = chosen.sigma(prepared.unit)
        ranker = prepared.solve(sigma, [weights[at]])[0]
        detector.n_neighbors_ = self.recipe.k
        detector.ranks_, detector.levels_ = prepared.ranks, prepared.levels
        detector.bandwidth_, detector.C_ = sigma, C[at]
        detector.scorer_ = ranker.scorer
        detector.norm_ = float(np.linalg.norm(ranker.solution.weights))
        detector.n_iter_ = ranker.solution.n_iter
        detector.converged_ = ranker.solution.converged
        self._calibrate(ranker, chosen, weights[at])

    def _neighbors(self, n_training: int) -> int:
        smallest = n_training
        if self.n_trials > 1:
            smallest -= -(-n_training // self._n_selection_folds)
        elif self.detector.calibration == "cross-fit":
            smallest -= -(-n_training // _calibration_folds(n_training))
        most = smallest // 2
        k = self.plan.k
        if k is None:
            return max(1, min(auto_neighbors(n_training), most))
        if k > most:
            raise ValueError(
                f"n_neighbors={k} is too many for {n_training} training rows: ranks come from random halves "
                f"of training folds, the smallest of which has {smallest} rows, so that n_neighbors can be "
                f"{most} at most. Lower it, pass n_neighbors='auto', or fit on more rows."
            )
        return k

    @property
    def _n_selection_folds(self) -> int:
        return 4 if self.detector.selection == "disagreement" else 2

    def _select(
        self, prepared: PreparedRows, C: list[float], weights: list[float]
    ) -> tuple[SelectionTable | None, Bandwidth, int]:
        bandwidths = self.plan.bandwidths
        if self.n_trials == 1:
            return None, bandwidths[0], 0
        detector, rows = self.detector, self.training
        if detector.selection == "shuffled" and rows.shape[1] == 1:
            raise ValueError(
                "selection='shuffled' needs at least two columns: one column shuffled is itself. X has 1 "
                "feature; pass selection='contrast'."
            )
        n_folds = self._n_selection_folds
        deal, *fold_seeds = self.select_seed.spawn(1 + n_folds)
        parts = folds(len(rows), n_folds, np.random.default_rng(deal))
        progress = Progress("selection", n_folds * len(bandwidths), detector.verbose)

        def losses_of_fold(fold: int) -> Floats:
            held = parts[fold]
            fit_seed, negatives_seed = fold_seeds[fold].spawn(2)
            outside = np.delete(rows, held, axis=0)
            inside = rows[held]
            recipe = self.recipe.for_share(len(outside) / len(rows))
            fold_rows = PreparedRows(outside, recipe, fit_seed)
            judge = self._judge(inside, outside, prepared.levels[held], negatives_seed)
            losses = np.empty((len(bandwidths), len(C)))
            for row, bandwidth in zip(losses, bandwidths, strict=True):
                rankers = fold_rows.solve(bandwidth.sigma(fold_rows.unit), weights)
                row[:] = [judge(ranker.scorer) for ranker in rankers]
                progress.advance()
            return losses

        every = self._in_parallel(losses_of_fold, n_folds)
        progress.finish()
        sigmas = [bandwidth.sigma(prepared.unit) for bandwidth in bandwidths]
        table = run_trials(sigmas, C, n_folds, every.__getitem__, detector.selection)
        return table, bandwidths[table.best // len(C)], table.best % len(C)

    def _judge(
        self, inside: Floats, outside: Floats, levels: Ints, seed: np.random.SeedSequence
    ) -> Callable[[KernelScorer], float]:
        """Return the loss of a scorer by the chosen criterion."""
        if self.detector.selection == "disagreement":
            return lambda scorer: disagreement(scorer.score(inside), levels)
        rng = np.random.default_rng(seed)
        n = _NEGATIVES * len(inside)
        negatives = [shuffled_columns(inside, n, rng)]
        if self.detector.selection == "contrast":
            negatives.append(uniform_box(outside, n, rng))

        def judge(scorer: KernelScorer) -> float:
            nominal = scorer.score(inside)
            return float(np.mean([contrast_loss(nominal, scorer.score(rows)) for rows in negatives]))

        return judge

    def _calibrate(self, ranker: FittedRanker, chosen: Bandwidth, weight: float) -> None:
        detector = self.detector
        scores = [ranker.scorer.score(self.free, n_jobs=detector.n_jobs)] if len(self.free) else []
        if detector.calibration == "in-sample":
            scores.append(ranker.scorer.score(self.training, n_jobs=detector.n_jobs))
        elif self.cross_fits:
            scores.append(self._out_of_fold_scores(ranker, chosen, weight))
        kind = detector.calibration if detector.calibration == "in-sample" or self.cross_fits else "split"
        detector.calibration_ = Calibration.from_scores(np.concatenate(scores), kind)  # type: ignore[arg-type]

    def _out_of_fold_scores(self, ranker: FittedRanker, chosen: Bandwidth, weight: float) -> Floats:
        """Score each training row by a ranker into which nothing of the row's fold has gone.

        Only the unit of far-field distances is the final ranker's, so that far is as far in every fold.
        """
        rows = self.training
        n_folds = _calibration_folds(len(rows))
        deal, *fold_seeds = self.calibrate_seed.spawn(1 + n_folds)
        parts = folds(len(rows), n_folds, np.random.default_rng(deal))
        progress = Progress("calibration", n_folds, self.detector.verbose)

        def score_fold(fold: int) -> tuple[Floats, bool]:
            held = parts[fold]
            recipe = self.recipe.for_share(1 - len(held) / len(rows))
            fold_rows = PreparedRows(
                np.delete(rows, held, axis=0), recipe, fold_seeds[fold], self.detector.scaling
            )
            scorer, solution = fold_rows.solve(chosen.sigma(fold_rows.unit), [weight])[0]
            progress.advance()
            return scorer.score(rows[held], far_widths=ranker.scorer.widths), solution.converged

        scores = np.empty(len(rows))
        for held, (found, converged) in zip(parts, self._in_parallel(score_fold, n_folds), strict=True):
            scores[held] = found
            self.detector.converged_ &= converged
        progress.finish()
        return scores

    def _in_parallel(self, work: Callable[[int], T], n: int) -> list[T]:
        tasks = (delayed(work)(i) for i in range(n))
        return list(Parallel(n_jobs=self.detector.n_jobs, prefer="threads")(tasks))
