"""What each part of the score says of training rows that it was made without.

The left-out scores of a part are those of the same part made again, units included, from the rows outside a
fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Bools, Floats, Ints
from rankad._base.progress import Progress
from rankad.fitting import sizes
from rankad.fitting.ranker import KnownNeighbors, PreparedRows
from rankad.fitting.selecting import Chosen
from rankad.fitting.task import FitTask
from rankad.scorers.farfield import ColumnRanges
from rankad.scorers.kernel import KernelScorer
from rankad.scorers.mixture import GaussianMixture, MixturePlan
from rankad.scorers.nearfield import NearField, near_unit
from rankad.stages.scaling import fit_scaling

# Units whose logarithms differ by no more than the first measure equally far; by more than the second, they
# are of another size.
_ALIKE, _OTHER_SIZE = 0.2, 1.0


class KernelLeftOut(NamedTuple):
    """RankSVM's scores of training rows left out, and whether all fits converged."""

    scores: Floats
    converged: bool


@dataclass(frozen=True)
class LeftOut:
    """Training rows, scored by parts made without them; `kernel` is the final scorer."""

    task: FitTask
    chosen: Chosen
    kernel: KernelScorer

    def by_kernel(self) -> KernelLeftOut:
        """Score each training row by a ranker made, scaling included, from the rows outside its fold.

        The folds share with the final ranker what was chosen from all rows: the kind of scaling, K, the
        weight of the pairs, and the bandwidth where columns are scaled alike (else its multiple). For columns
        in which the bandwidths are alike, they also share the unit of distances to landmarks, so that equally
        far is equally far in every fold.
        """
        task, kernel, whole, rows = self.task, self.kernel, self.chosen.prepared, self.task.rows
        neighbors, scale = whole.neighbors, whole.scaling.scale
        # Rows of large folds might have fewer than K others in a half.
        few = task.plan.fuses and not task.cross_fits and sizes.UNIT_FOLDS * task.recipe.k < len(rows)
        parts = task.deal(sizes.UNIT_FOLDS if few else sizes.CALIBRATION_FOLDS)
        progress = Progress("calibration", len(parts), task.plan.verbose)
        converged: list[bool] = []

        def score_fold(kept: Ints, held: Ints) -> Floats:
            # The final seed, so that landmarks are drawn alike. (Halves are not; they average out.)
            prepared = PreparedRows(
                rows[kept],
                task.recipe.for_share(1 - len(held) / len(rows)),
                task.train_seed,
                whole.scaling_name,
                KnownNeighbors(neighbors, scale, kept),
            )
            # In rows of many small clusters, D_K jumps with any row left out.
            jumps = _differ(prepared.scaling.scale, scale, _ALIKE).any()
            sigma = self.chosen.bandwidth.sigma(prepared.unit) if jumps else self.chosen.sigma
            scorer, solution = prepared.solve(sigma, [self.chosen.weight], task.scratch)[0]
            # In the precision in which new rows will be scored.
            scorer = replace(scorer.in_units(*prepared.scaling), single=kernel.single)
            # With very many columns, this is several copies of the rows.
            del prepared
            scores = replace(scorer, far_field=False).score(rows[held])
            if task.plan.far_field:
                unlike = _differ(scorer.widths, kernel.widths, _ALIKE)
                widths = np.where(unlike, scorer.widths, kernel.widths)
                far_part = replace(scorer, coefficients=np.zeros_like(scorer.coefficients), widths=widths)
                scores += far_part.score(rows[held])
                del far_part
                # In units of the other rows: a held-out outlier must not stretch the unit it is measured in.
                scores -= ColumnRanges.of(rows[kept]).excess(rows[held])
            converged.append(solution.converged)
            progress.advance()
            return scores

        scores = task.score_folds(parts, score_fold)
        progress.finish()
        return KernelLeftOut(scores, all(converged))

    def by_near_field(self, near: NearField) -> Floats:
        """Return how near training rows are to those outside their fold."""
        rows = self.task.rows
        return self.task.score_folds(
            self.task.deal(sizes.CALIBRATION_FOLDS),
            lambda kept, held: near_left_out(rows[held], rows[kept], near.unit),
        )

    def by_mixture(self, plan: MixturePlan, mixture: GaussianMixture) -> Floats:
        """Return how likely training rows are by mixtures of the rows outside their fold."""
        rows = self.task.rows
        many = len(rows) >= sizes.MIXTURE_OF_MANY
        unit = fit_scaling(rows, "standard").scale

        def score_fold(kept: Ints, held: Ints) -> Floats:
            others = rows[kept]
            scaling = fit_scaling(others, "standard", len(rows))
            scores = plan.fit(others, kept, scaling).score(rows[held])
            unlike = _differ(scaling.scale, unit, _OTHER_SIZE)
            return _in_usual_units(scores, rows[held], others, unlike, mixture.score)

        return self.task.score_folds(
            self.task.deal(sizes.MIXTURE_FOLDS if many else sizes.CALIBRATION_FOLDS), score_fold
        )


def near_left_out(held: Floats, others: Floats, unit: Floats) -> Floats:
    """Return how near held rows are to the others, in the unit of these; `unit` is that of all rows."""
    own = near_unit(others, len(held) + len(others))
    scores = NearField.of(others, own).score(held)
    unlike = _differ(own, unit, _ALIKE) & (len(held) > 1)
    return _in_usual_units(scores, held, others, unlike, lambda rows: NearField.of(others, unit).score(rows))


def _differ(units: Floats, others: Floats, most: float) -> Bools:
    """Tell in which columns the logarithms of two units differ by more than `most`."""
    return np.asarray(np.abs(np.log(units / others)) > most)


def _in_usual_units(
    scores: Floats, held: Floats, others: Floats, unlike: Bools, usual: Callable[[Floats], Floats]
) -> Floats:
    """Return the scores of held rows, those of some by the `usual` scorer.

    A row must not stretch the unit it is measured in, so a fold's is that of the other rows. But where the
    fold holds the only huge values of a column, their unit is far smaller there, and new rows will not be
    measured by it. In such columns, rows within the range of the others are scored as new rows will be.
    """
    if unlike.any():
        here, there = held[:, unlike], others[:, unlike]
        inside = ((here >= there.min(axis=0)) & (here <= there.max(axis=0))).all(axis=1)
        if inside.any():
            scores[inside] = usual(held[inside])
    return scores
