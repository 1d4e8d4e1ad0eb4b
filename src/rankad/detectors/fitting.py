"""What `RankAD.fit` does: draw training rows, select, train, calibrate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from rankad._arrays import Floats, Ints
from rankad._progress import Progress
from rankad.calibration import Calibration
from rankad.detectors.plan import Plan
from rankad.detectors.ranker import Bandwidth, FittedRanker, PreparedRows, Recipe
from rankad.kernels import KernelScorer
from rankad.levels import disagreement
from rankad.ranks import auto_neighbors
from rankad.scaling import fit_scaling
from rankad.selection import (
    SelectionTable,
    collect_trials,
    contrast_loss,
    folds,
    shuffled_columns,
    uniform_box,
)

if TYPE_CHECKING:
    from rankad.detectors.rank import RankAD

__all__ = ["RankFit"]

T = TypeVar("T")

# Training takes at most this many rows, drawn at random; the others calibrate.
MAX_TRAINING_ROWS = 5_000
# Folds of the cross-fitted calibration; small samples can afford, and need, models nearer to the final one.
_CALIBRATION_FOLDS = 10
_CALIBRATION_FOLDS_SMALL = 20
_SMALL = 1_000
# "auto" C is this over the number of training rows.
AUTO_C = 10.0
# What two models say of the same row is equal only up to rounding: taken off, so that equal counts as equal.
_EQUAL_WITHIN = 1e-6
# Made-up rows per held-out row and kind.
_NEGATIVES = 4


def _calibration_folds(n: int) -> int:
    return min(n, _CALIBRATION_FOLDS if n >= _SMALL else _CALIBRATION_FOLDS_SMALL)


class RankFit:
    """One call of `RankAD.fit`: it fills the detector's fitted attributes."""

    def __init__(self, detector: RankAD, plan: Plan, rows: Floats) -> None:
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
        """How many pairs of bandwidth and C there are to choose from."""
        return len(self.plan.bandwidths) * len(self.plan.C or [0.0])

    def run(self) -> None:
        """Fill the detector's fitted attributes."""
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
        relative = any(bandwidth.relative for bandwidth in plan.bandwidths)
        fixed = detector.scaling is None and not relative and not detector.far_field
        detector._n_kernels = len(plan.bandwidths) if fixed else None
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
        table = collect_trials(sigmas, C, every, detector.selection)
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
        """Score each training row by a ranker made, scaling included, from the rows outside its fold.

        What the folds have in common with the final ranker are a few numbers chosen from all rows: K, the
        bandwidth's multiple, the weight of the pairs, and the unit of far-field distances, so that far is as
        far in every fold.
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
            scores[held] = found - _EQUAL_WITHIN
            self.detector.converged_ &= converged
        progress.finish()
        return scores

    def _in_parallel(self, work: Callable[[int], T], n: int) -> list[T]:
        tasks = (delayed(work)(i) for i in range(n))
        return list(Parallel(n_jobs=self.detector.n_jobs, prefer="threads")(tasks))
