"""What `RankAD.fit` does: draw training rows, select, train, calibrate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed

from rankad._arrays import LARGEST, Floats, Ints
from rankad._progress import Progress
from rankad._scratch import Scratch
from rankad._threads import made_once
from rankad.calibration import Calibration
from rankad.detectors.doubt import few_places, is_in_doubt
from rankad.detectors.narrowing import Narrowed, narrow_others, narrowed, shuffled_cells
from rankad.detectors.parts import ALIKE_UNITS, MixturePlan, near_left_out, near_unit
from rankad.detectors.plan import Plan
from rankad.detectors.ranker import KnownNeighbors, PreparedRows, Recipe
from rankad.farfield import ColumnRanges
from rankad.fusion import FusedScorer, Units, fuse, units_of
from rankad.levels import disagreement
from rankad.nearfield import NearField
from rankad.neighbors import Neighbors, nearest_neighbors
from rankad.ranks import auto_neighbors
from rankad.scaling import Scaling, alike_in_spread, fit_scaling
from rankad.scorer import KernelScorer
from rankad.selection import (
    SelectionTable,
    collect_trials,
    contrast_losses,
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
# Where there are this many times as many other rows, half of those at most serve as reference: training rows
# are ranked by their neighbours among them, or among so many that take no more multiplications than this.
_ENOUGH_FOR_REFERENCE = 2
_RANKING_ROWS, _RANKING_WORK = 10_000, 1e9
# The near field is made of them all: so many rows and numbers at most. The mixture is made of so many.
_NEAR_ROWS, _NEAR_NUMBERS = 100_000, 4_000_000
_MIXTURE_ROWS = 20_000
# Folds of the cross-fitted calibration: models of 39 rows in 40 are near enough to the final one. A mixture
# of many rows takes longer to make than it changes with a row. For the units of parts alone, a few will do.
_CALIBRATION_FOLDS, _MIXTURE_FOLDS, _UNIT_FOLDS = 40, 10, 5
_MIXTURE_OF_MANY = 500
# Neighbours known of all rows, in multiples of K, from which folds take theirs.
_KNOWN_NEIGHBORS = 6
_SMALL = 1_000
# What C="auto" is, over the number of training rows.
AUTO_C = 10.0
# What two models say of the same row is equal only up to rounding: taken off, so that equal counts as equal.
_EQUAL_WITHIN = 1e-6
# Rows so many bandwidths apart have kernel values that differ by a ten-thousandth at most.
_INDISTINCT = 0.01
# Where parts vote, scores that differ by no more than so many units say nearly the same.
_NEARLY_THE_SAME = 0.05
# Cross-fitted scores of few rows are relied on only if at most this share of the rows, once left out, scores
# below all training rows.
_MOST_LOST = 0.2
# Made-up rows of each kind per held-out row, and how many at most.
_NEGATIVES, _MOST_NEGATIVES = 20, 10_000
# Of very many columns, made-up rows hold so many numbers in all, or are so few.
_VERY_WIDE, _NARROW_NUMBERS, _LEAST_NEGATIVES = 1_000, 2**23, 100
# So many numbers of them are scaled at a time: all of them at once would be as much memory again.
_AT_ONCE = 2**18


class View(NamedTuple):
    """The training rows under one scaling, and what comes of them."""

    name: str | None
    scaling: Scaling
    rows: Floats
    prepared: PreparedRows

    @classmethod
    def of(
        cls,
        rows: Floats,
        name: str | None,
        recipe: Recipe,
        seed: np.random.SeedSequence,
        reference: Floats | None = None,
        n_jobs: int | None = None,
    ) -> View:
        """Scale some rows, and others like them that serve as reference."""
        scaling = fit_scaling(rows, name)
        scaled = scaling.apply(rows)
        apart = None if reference is None else scaling.apply(reference)
        prepared = PreparedRows(scaled, recipe, seed, reference=apart, n_jobs=n_jobs)
        return cls(name, scaling, scaled, prepared)


def _scores_of(scorers: list[KernelScorer], scaling: Scaling, rows: Floats) -> Floats:
    """Return what scorers of scaled rows say of rows that are not, of shape (n_scorers, n)."""
    scores = np.empty((len(scorers), len(rows)))
    step = max(1, _AT_ONCE // rows.shape[1])
    for begin in range(0, len(rows), step):
        part = scaling.apply(rows[begin : begin + step])
        for scorer, out in zip(scorers, scores, strict=True):
            out[begin : begin + step] = scorer.score(part)
    return scores


def _n_ranking(n_reference: int, size: int) -> int:
    """Return how many of the reference rows are to rank the training rows, which hold so many numbers."""
    return min(n_reference, _RANKING_ROWS, int(_RANKING_WORK / size))


class RankFit:
    """One call of `RankAD.fit`: it fills the detector's fitted attributes."""

    def __init__(
        self,
        detector: RankAD,
        plan: Plan,
        rows: Floats,
        calibration: str,
        entropy: Ints,
        *,
        always_alike: bool = False,
    ) -> None:
        self.detector = detector
        self.calibration = calibration
        self.plan = plan
        self._scratch = Scratch()
        self._left_out: Floats | None = None
        seeds = np.random.SeedSequence([int(word) for word in entropy]).spawn(4)
        self.draw_seed, self.train_seed, self.select_seed, self.mixture_seed = seeds
        n = len(rows)
        wanted = (n + 1) // 2 if calibration == "split" else n
        n_training = min(wanted, MAX_TRAINING_ROWS)
        # A split that nobody asked for is always the same: a seed is not to decide about alarms.
        order = np.random.default_rng(0 if always_alike else self.draw_seed).permutation(n)
        n_reference = self._n_reference(n - n_training, n_training, rows.shape[1])
        training, reference, free = (
            np.sort(part) for part in np.split(order, [n_training, n_training + n_reference])
        )
        detector.training_rows_, detector.reference_rows_ = training, reference
        self.training: Floats = rows[training]
        detector.nominal_rows_ = self.training
        self.reference: Floats | None = rows[reference] if n_reference else None
        self.free: Floats = rows[free]
        self._free_rows = free
        # The plainest first, which is none where the columns are alike already.
        alike = alike_in_spread(self.training)
        self.scalings = tuple(sorted(plan.scalings, key=lambda scaling: (scaling is None) != alike))
        self.recipe = Recipe(
            self._neighbors(n_training),
            plan.cuts,
            plan.landmark_method,
            plan.n_landmarks,
            detector.far_field,
        )

    def _n_reference(self, n_others: int, n_training: int, d: int) -> int:
        """Return how many of the rows that do not train serve as reference."""
        if self.calibration == "in-sample" or n_others < _ENOUGH_FOR_REFERENCE * n_training:
            return 0
        half = n_others // 2
        n_ranking = _n_ranking(half, n_training * d)
        if n_ranking < n_training // 2:
            # Fewer than training rows find in a half of themselves are not worth while.
            return 0
        if not self.detector.near_field:
            return n_ranking
        return min(half, _NEAR_ROWS, _NEAR_NUMBERS // d)

    @property
    def fuses(self) -> bool:
        """Whether there are parts beside RankSVM; the theorem for ranks in sample is about g alone."""
        asked = self.detector.near_field or self.detector.n_components > 0
        return bool(asked and self.calibration != "in-sample")

    @property
    def cross_fits(self) -> bool:
        """Cross-fitting is for when there are fewer free rows than training rows."""
        return self.calibration == "cross-fit" and len(self.free) < len(self.training)

    @property
    def n_trials(self) -> int:
        """How many triples of scaling, bandwidth and C there are to choose from."""
        return len(self.scalings) * len(self.plan.bandwidths) * len(self.plan.C or [AUTO_C])

    def run(self) -> str | None:
        """Fill the detector's fitted attributes; return why its calibration is not to be relied on, if so."""
        detector, plan = self.detector, self.plan
        C = plan.C or [AUTO_C / len(self.training)]
        seed, jobs, rows, best = self.train_seed, detector.n_jobs, self.training, 0
        detector.selection_ = None
        # To select, every so many-th reference row will do: about as many as train, where there are so many.
        some = None
        if self.reference is not None:
            some = self.reference[:: max(1, len(self.reference) // len(rows))]
            n_ranking = _n_ranking(len(self.reference), rows.size)
            ranking = self.reference[np.arange(n_ranking) * len(self.reference) // n_ranking]
        views: list[View] = []
        if self._is_very_wide:
            detector.selection_ = self._select_narrow(C)
        else:
            views = [View.of(rows, scaling, self.recipe, seed, some, jobs) for scaling in self.scalings]
            if self.n_trials > 1:
                detector.selection_ = self._select(views, C)
        if detector.selection_ is not None:
            best = detector.selection_.best
        which, multiple, at = np.unravel_index(best, (len(self.scalings), len(plan.bandwidths), len(C)))
        chosen = plan.bandwidths[multiple]
        if self._is_very_wide:
            view = View.of(rows, self.scalings[which], self.recipe, seed, None, jobs)
        else:
            view = views[which]
        if self.reference is not None:
            view = view._replace(prepared=view.prepared.among(view.scaling.apply(ranking)))
        weight = C[at] * view.prepared.n_pairs
        sigma = chosen.sigma(view.prepared.unit)
        ranker = view.prepared.solve(sigma, [weight], self._scratch)[0]
        detector.n_neighbors_ = self.recipe.k
        detector.scaling_ = view.scaling
        detector.ranges_ = ColumnRanges.of(self.training)
        detector.ranks_, detector.levels_ = view.prepared.ranks, view.prepared.levels
        detector.bandwidth_, detector.C_ = sigma, C[at]
        scorer = self._in_units_of_rows(ranker.scorer, view.scaling)
        # The theorem for in-sample ranks is about g itself, not about g rounded.
        kernel = scorer if self.calibration == "in-sample" else scorer.quickest()
        detector.scorer_ = FusedScorer(kernel)
        relative = any(bandwidth.relative for bandwidth in plan.bandwidths)
        fixed = self.scalings == (None,) and not relative and not detector.far_field
        detector._n_kernels = len(plan.bandwidths) if fixed else None
        detector.norm_ = float(np.linalg.norm(ranker.solution.weights))
        detector.n_iter_ = ranker.solution.n_iter
        detector.converged_ = ranker.solution.converged
        self._chosen = view, chosen, weight
        if self.fuses:
            self._fuse(kernel)
        return self._calibrate()

    def _fuse(self, kernel: KernelScorer) -> None:
        """Give the detector a scorer of several parts, in units of what they say of rows left out."""
        detector, rows = self.detector, self.training
        mixture_seed = int(self.mixture_seed.generate_state(1)[0])
        plan = MixturePlan.of(detector.n_components, rows, mixture_seed)
        near, mixture = None, None
        # Of many rows, landmarks are few, and say of the rows that trained what they say of others.
        left_out = [kernel.score(rows) if self.reference is not None else self._kernel_left_out()]
        if detector.near_field:
            near = NearField.of(rows if self.reference is None else self.reference, near_unit(rows))
            left_out.append(self._near_left_out(near))
        if plan.n_gaussians and self.reference is not None:
            some = self.reference[:: -(-len(self.reference) // _MIXTURE_ROWS)]
            mixture = plan.fit(some, np.arange(len(some)))
            left_out.append(mixture.score(rows))
        elif plan.n_gaussians:
            mixture = plan.fit(rows, np.arange(len(rows)))
            n_folds = _MIXTURE_FOLDS if len(rows) >= _MIXTURE_OF_MANY else _CALIBRATION_FOLDS
            left_out.append(plan.left_out(rows, self._deal(n_folds), self._in_parallel))
        said = np.stack(left_out)
        np.clip(said, -LARGEST, None, out=said)
        centers, spreads = units_of(said)
        if spreads[0] == 0:
            # The kernel tells far rows from near ones even where it tells no nominal rows apart.
            spreads[0] = 1.0
        heard = spreads > 0
        if near is not None and not heard[1]:
            near = None
        if mixture is not None and not heard[-1]:
            mixture = None
        if heard.sum() > 1:
            units = Units(centers[heard], spreads[heard])
            detector.scorer_ = FusedScorer(kernel, near, mixture, units)
            said = fuse(said[heard], units)[None]
        if self.reference is None:
            self._left_out = said[0]

    def _near_left_out(self, near: NearField) -> Floats:
        """Return how near training rows are to others: to the reference, or to those outside their fold."""
        if self.reference is not None:
            return near.score(self.training)
        scores = np.empty(len(self.training))
        parts = self._deal(_CALIBRATION_FOLDS)
        found = self._in_parallel(
            lambda fold: near_left_out(self.training, parts[fold], near.unit), len(parts)
        )
        for held, of_fold in zip(parts, found, strict=True):
            scores[held] = of_fold
        return scores

    def _deal(self, n_folds: int) -> list[Ints]:
        # Always the same deal: a seed is not to decide about alarms where it need not.
        n = len(self.training)
        return folds(n, min(n, n_folds), np.random.default_rng(0))

    def _in_units_of_rows(self, scorer: KernelScorer, scaling: Scaling) -> KernelScorer:
        """Return the scorer of scaled rows as one of rows as they come, that knows their ranges."""
        return KernelScorer(
            scorer.landmarks * scaling.scale + scaling.center,
            scorer.coefficients,
            scorer.widths * scaling.scale,
            scorer.far_field,
            self.detector.ranges_.limits if scorer.far_field else None,
        )

    def _smallest_fold(self, n_training: int) -> int:
        """Return how many of the training rows the smallest training fold has."""
        if self.n_trials > 1:
            return n_training + -n_training // self._n_selection_folds(n_training)
        if self.calibration == "cross-fit" or self.fuses:
            return n_training + -n_training // min(n_training, _CALIBRATION_FOLDS)
        return n_training

    def _neighbors(self, n_training: int) -> int:
        smallest = self._smallest_fold(n_training)
        most = smallest // 2
        k = self.plan.k
        if k is None:
            # Neighbours are looked for in one half of the rows.
            return max(1, min(auto_neighbors(-(-n_training // 2)), most))
        if k > most:
            raise ValueError(
                f"n_neighbors={k} is too many for {n_training} training rows: ranks come from random halves "
                f"of training folds, the smallest of which has {smallest} rows, so that n_neighbors can be "
                f"{most} at most. Lower it, pass n_neighbors='auto'"
                + (", or fit on more rows." if n_training < MAX_TRAINING_ROWS else ".")
            )
        return k

    def _n_selection_folds(self, n_training: int) -> int:
        return 4 if self.detector.selection == "disagreement" or n_training < _SMALL else 2

    @property
    def _is_very_wide(self) -> bool:
        """Whether columns are so many that selecting takes long, and more memory than all else."""
        n, d = self.training.shape
        return d > max(_VERY_WIDE, 2 * n) and self.n_trials > 1 and self.reference is None

    def _select_narrow(self, C: list[float]) -> SelectionTable:
        """Select by rows in few columns, at the same distances."""
        rows = self.training
        narrow = [narrowed(rows, fit_scaling(rows, scaling)) for scaling in self.scalings]
        views = [
            View.of(each.rows, None, self.recipe, self.train_seed)._replace(name=name)
            for name, each in zip(self.scalings, narrow, strict=True)
        ]
        return self._select(views, C, narrow)

    def _select(
        self, views: list[View], C: list[float], narrow: list[Narrowed] | None = None
    ) -> SelectionTable:
        detector, rows, bandwidths = self.detector, self.training, self.plan.bandwidths
        if detector.selection == "shuffled" and rows.shape[1] == 1:
            raise ValueError(
                "selection='shuffled' needs at least two columns: one column shuffled is itself. X has 1 "
                "feature; pass selection='contrast'."
            )
        n_folds = self._n_selection_folds(len(rows))
        deal, *seeds = self.select_seed.spawn(1 + n_folds)
        fold_seeds = [seed.spawn(2) for seed in seeds]
        parts = folds(len(rows), n_folds, np.random.default_rng(deal))
        if self.reference is not None and detector.selection != "disagreement":
            # Of many rows, those of one fold will do.
            parts = parts[:1]
        shape = len(parts), len(views), len(bandwidths)
        progress = Progress("selection", math.prod(shape), detector.verbose)

        def prepare(task: int) -> PreparedRows:
            fold, which = np.unravel_index(task, shape[:2])
            view = views[which]
            kept = np.delete(np.arange(len(rows)), parts[fold])
            recipe = self.recipe.for_share(len(kept) / len(rows))
            density = view.prepared.density_at(kept)
            return PreparedRows(view.rows[kept], recipe, fold_seeds[fold][0], density=density).complete()

        if detector.selection == "disagreement":
            for view in views:
                # What all folds share is made before they begin.
                _ = view.prepared.levels
        prepared = self._in_parallel(prepare, len(parts) * len(views))
        negatives = [
            [self._negatives(rows[held], np.delete(rows, held, axis=0), seeds[1])] * len(views)
            if narrow is None
            else self._narrow_negatives(narrow, held, seeds[1])
            for held, seeds in zip(parts, fold_seeds, strict=False)
        ]

        def losses_of(task: int) -> list[list[Floats]]:
            fold, which, multiple = np.unravel_index(task, shape)
            held, here = parts[fold], prepared[fold * len(views) + which]
            # So much of the whole's pairs: as the square of the rows.
            share = 1 - len(held) / len(rows)
            weights = [value * here.n_pairs / share**2 for value in C]
            rankers = here.solve(bandwidths[multiple].sigma(here.unit), weights, self._scratch)
            made_up = negatives[fold][which]
            losses = self._judge([ranker.scorer for ranker in rankers], views[which], held, made_up)
            progress.advance()
            return losses

        found = self._in_parallel(losses_of, math.prod(shape))
        each = math.prod(shape[1:])
        losses = np.concatenate(
            [np.concatenate(found[at : at + each]) for at in range(0, len(found), each)], axis=2
        )
        progress.finish()
        sigmas = [[bandwidth.sigma(view.prepared.unit) for bandwidth in bandwidths] for view in views]
        return collect_trials(self.scalings, sigmas, C, losses, detector.selection)

    def _negatives(self, inside: Floats, outside: Floats, seed: np.random.SeedSequence) -> list[Floats]:
        """Make up rows that are not nominal, by the chosen criterion; none for the paper's."""
        rng = np.random.default_rng(seed)
        n = min(_NEGATIVES * len(inside), _MOST_NEGATIVES)
        made_up = []
        if self.detector.selection != "disagreement":
            made_up.append(shuffled_columns(inside, n, rng))
        if self.detector.selection == "contrast":
            made_up.append(uniform_box(outside, n, rng))
        return made_up

    def _narrow_negatives(
        self, narrow: list[Narrowed], held: Ints, seed: np.random.SeedSequence
    ) -> list[list[Floats]]:
        """Make up rows like `_negatives`, but fewer, in few columns, for each way to scale them."""
        rng, rows = np.random.default_rng(seed), self.training
        most = max(_LEAST_NEGATIVES, _NARROW_NUMBERS // rows.shape[1])
        n = min(_NEGATIVES * len(held), _MOST_NEGATIVES, most)
        kept = np.delete(np.arange(len(rows)), held)
        kinds = {
            "shuffled": lambda columns: shuffled_cells(rows[held, columns], n, rng),
            "contrast": lambda columns: uniform_box(rows[kept, columns], n, rng),
        }
        wanted = {"shuffled": ["shuffled"], "contrast": ["shuffled", "contrast"]}
        made_up = [
            narrow_others(narrow, rows, kinds[kind], n) for kind in wanted.get(self.detector.selection, [])
        ]
        return [[of_kind[which] for of_kind in made_up] for which in range(len(narrow))]

    def _judge(
        self, scorers: list[KernelScorer], view: View, held: Ints, negatives: list[Floats]
    ) -> list[list[Floats]]:
        """Return the losses of scorers by the chosen criterion, for each kind those of rows."""
        scorers = list(map(KernelScorer.quickest, scorers))
        nominal = [scorer.score(view.rows[held]) for scorer in scorers]
        if not negatives:
            levels = view.prepared.levels[held]
            return [[np.array([disagreement(scores, levels)])] for scores in nominal]
        outside = [_scores_of(scorers, view.scaling, rows) for rows in negatives]
        return [
            [contrast_losses(scores, negative[at]) for negative in outside]
            for at, scores in enumerate(nominal)
        ]

    def left_out_scores(self) -> Floats | None:
        """Return what is said of training rows left out, once it has run; None for ranks in sample.

        Nor is there any where very many rows have a reference, which folds have not.
        """
        if self._left_out is None and self.calibration != "in-sample" and self.reference is None:
            self._left_out = self._kernel_left_out()
        return self._left_out

    @made_once
    def _known(self) -> Neighbors:
        """The neighbours of all training rows, for fits that leave rows out."""
        view, _, _ = self._chosen
        # A fold asks for 4 K neighbours of its rows; enough of the whole's hold them.
        many = min(_KNOWN_NEIGHBORS * self.recipe.k, len(view.rows) - 1)
        return nearest_neighbors(view.rows, many, n_jobs=self.detector.n_jobs)

    def _calibrate(self) -> str | None:
        """Give the detector nominal scores; return why cross-fitted ones are not to be relied on, if so."""
        detector = self.detector
        scores = [detector._score(self.free)] if len(self.free) else []
        doubt = None
        if self.calibration == "in-sample":
            scores.append(detector._score(self.training))
        elif self.cross_fits:
            said, own = self.left_out_scores(), detector._score(self.training)
            assert said is not None
            # Rows that a score cannot tell from others form a plateau, on which scores left out differ by
            # next to nothing. The final plateau might lie below all of them, and every row to come that lies
            # on it would be an alarm. So such a row calibrates with no more than its own final score: one
            # that the kernel cannot tell from another, or of which parts that vote say nearly the same.
            capped = self._known.distances[:, 0] <= _INDISTINCT * detector.bandwidth_
            if detector.scorer_.n_parts > 1:
                capped |= said - own <= _NEARLY_THE_SAME
            left_out = np.where(capped, np.minimum(said, own), said) - _EQUAL_WITHIN
            doubt = self._doubt(own, left_out, self._known)
            scores.append(left_out)
        kind = self.calibration if self.calibration == "in-sample" or self.cross_fits else "split"
        found = np.concatenate(scores)
        calibration = Calibration.from_scores(found, kind)  # type: ignore[arg-type]
        if detector._calibrating_rows is not None:
            which = np.concatenate([self._free_rows, detector.training_rows_])[: found.size]
            detector._calibrating_rows = which[np.argsort(found, kind="stable")]
        detector._compare_with(calibration, fresh=False)
        return doubt

    def _doubt(self, own: Floats, left_out: Floats, known: Neighbors) -> str | None:
        """Compare what the final ranker says of training rows with what was said of them left out.

        Cross-fitted scores have the right mean rate of false alarms, but where the ranker is alone and
        follows single rows the rate of one fit may be far from it: what it says of the gaps between so few
        rows depends on which rows they happen to be, and so does what is said of rows left out. Of many, that
        averages out, and so it does over several parts. Where rows share a few places, these decide for all.
        """
        n = len(own)
        if not is_in_doubt(n) or self.recipe.k > self._smallest_fold((n + 1) // 2) // 2:
            return None
        n_lost = np.count_nonzero(left_out < own.min()) if self.detector.scorer_.n_parts == 1 else 0
        if n_lost > _MOST_LOST * n:
            return (
                f"{n_lost} of {n} rows, once left out, score below all rows that were trained on: with so "
                f"few rows the score follows single ones"
            )
        return few_places(known)

    def _kernel_left_out(self) -> Floats:
        """Score each training row by a ranker made, scaling included, from the rows outside its fold.

        What the folds have in common with the final ranker are a few things chosen from all rows: the kind of
        scaling, K, the weight of the pairs, the bandwidth where columns are scaled alike (else its multiple),
        and, for columns in which their bandwidths are alike, the unit of distances to landmarks: so equally
        far is equally far in every fold.
        """
        detector, rows, known = self.detector, self.training, self._known
        view, chosen, weight = self._chosen
        kernel = detector.scorer_.kernel
        # Rows of large folds might have fewer than K others in a half.
        few = self.fuses and not self.cross_fits and _UNIT_FOLDS * self.recipe.k < len(rows)
        parts = self._deal(_UNIT_FOLDS if few else _CALIBRATION_FOLDS)
        progress = Progress("calibration", len(parts), detector.verbose)

        def score_fold(fold: int) -> tuple[Floats, bool]:
            held = parts[fold]
            recipe = self.recipe.for_share(1 - len(held) / len(rows))
            kept = np.delete(np.arange(len(rows)), held)
            # The final seed, so that landmarks are drawn alike. (Halves are not; they average out.)
            prepared = PreparedRows(
                rows[kept],
                recipe,
                self.train_seed,
                view.name,
                KnownNeighbors(known, view.scaling.scale, kept),
            )
            # In rows of many small clusters, D_K jumps with any row left out.
            alike = np.abs(np.log(prepared.scale / view.scaling.scale)).max() <= ALIKE_UNITS
            sigma = detector.bandwidth_ if alike else chosen.sigma(prepared.unit)
            scorer, solution = prepared.solve(sigma, [weight], self._scratch)[0]
            # Of very many columns, this is several copies of the rows.
            del prepared
            # In the precision in which new rows will be scored.
            scorer = replace(scorer, single=kernel.single)
            unlike = np.abs(np.log(scorer.widths / kernel.widths)) > ALIKE_UNITS
            scores = scorer.score(rows[held], far_widths=np.where(unlike, scorer.widths, kernel.widths))
            del scorer
            if detector.far_field:
                # In units of the other rows: a held-out outlier must not stretch the unit it is measured in.
                scores -= ColumnRanges.of(rows[kept]).excess(rows[held])
            progress.advance()
            return scores, solution.converged

        scores = np.empty(len(rows))
        for held, (found, converged) in zip(parts, self._in_parallel(score_fold, len(parts)), strict=True):
            scores[held] = found
            detector.converged_ &= converged
        progress.finish()
        return scores

    def _in_parallel(self, work: Callable[[int], T], n: int) -> list[T]:
        tasks = (delayed(work)(i) for i in range(n))
        return list(Parallel(n_jobs=self.detector.n_jobs, prefer="threads")(tasks))
