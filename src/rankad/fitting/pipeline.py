"""Rows and a plan to a `RankModel`: draw, select, train, fuse, calibrate."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rankad._base.arrays import LARGEST, Floats, Ints
from rankad.fitting import sizes
from rankad.fitting.doubt import few_different, few_places, is_in_doubt
from rankad.fitting.left_out import LeftOut
from rankad.fitting.plan import Plan
from rankad.fitting.selecting import Chosen, choose
from rankad.fitting.task import FitTask, RowSource
from rankad.model import RankModel
from rankad.scorers.farfield import ColumnRanges
from rankad.scorers.fusion import FusedScorer, Units, fuse, units_of
from rankad.scorers.kernel import KernelScorer
from rankad.scorers.mixture import MixturePlan
from rankad.scorers.nearfield import NearField, near_unit
from rankad.stages.calibration import Calibration, Kind
from rankad.stages.neighbors import Neighbors

# What two models say of the same row is equal only up to rounding: taken off, so that equal counts as equal.
_EQUAL_WITHIN = 1e-6
# Rows so many bandwidths apart have kernel values that differ by a ten-thousandth at most.
_INDISTINCT = 0.01
# Where parts vote, scores that differ by no more than so many units say nearly the same.
_NEARLY_THE_SAME = 0.05
# Cross-fitted scores of few rows are relied on only if at most this share of the rows, once left out, scores
# below all training rows.
_MOST_LOST = 0.2


class Fitted(NamedTuple):
    """A model, and what only the fit knows.

    `calibrating_rows` says which row each calibration score is of (empty for a `RowSource`); `left_out` are
    the scores of training rows by models made without them (None for in-sample ranks, with reference rows,
    and if not needed); `doubt` says why the calibration cannot be trusted, if so.
    """

    model: RankModel
    calibrating_rows: Ints
    left_out: Floats | None
    doubt: str | None

    def scores_of(self, rows: Floats, n_jobs: int | None) -> Floats:
        """Score the rows that the model was fitted on, each by models that had not seen it."""
        scores = self.model.scorer.score(rows, n_jobs=n_jobs)
        if self.left_out is not None:
            scores[self.model.training_rows] = self.left_out
        return scores


def fit_model(
    plan: Plan, rows: Floats | RowSource, entropy: Ints, *, any_seed: bool = False, judging: bool = False
) -> Fitted:
    """Fit a model to nominal rows.

    With `any_seed`, the same training rows are drawn whatever the seed: for a split that was not asked for,
    since the seed must not decide about alarms. With `judging`, the scores of training rows left out are
    wanted whatever the calibration.
    """
    task, in_sample = FitTask.of(plan, rows, entropy, any_seed=any_seed), plan.calibration == "in-sample"
    chosen = choose(task)
    ranges = ColumnRanges.of(task.rows)
    prepared, solution = chosen.prepared, chosen.ranker.solution
    kernel = chosen.ranker.scorer.in_units(*prepared.scaling)
    if plan.far_field:
        kernel = replace(kernel, limits=ranges.limits)
    # The theorem for in-sample ranks is about g itself, not about g rounded.
    kernel = kernel if in_sample else kernel.quickest()
    left_out, of_kernel, said = LeftOut(task, chosen, kernel), None, None
    if task.reference is None and (plan.fuses or task.cross_fits or (judging and not in_sample)):
        of_kernel = left_out.by_kernel()
        said = of_kernel.scores
    scorer = FusedScorer(kernel)
    if plan.fuses:
        scorer, said = _fuse(task, kernel, left_out, said)
    doubt, calibrating = None, []
    free = task.drawn.free
    if len(free):
        calibrating.append(
            scorer.score(rows[free], n_jobs=plan.n_jobs)
            if isinstance(rows, np.ndarray)
            else rows.score(free, scorer)
        )
    if in_sample or task.cross_fits:
        own = scorer.score(task.rows, n_jobs=plan.n_jobs)
        if task.cross_fits:
            assert said is not None
            own, doubt = _cross_fitted(task, chosen, scorer.n_parts, own, said)
        calibrating.append(own)
    # No copy of scores that may be very many.
    scores = calibrating[0] if len(calibrating) == 1 else np.concatenate(calibrating)
    kind: Kind = "in-sample" if in_sample else "cross-fit" if task.cross_fits else "split"
    relative = any(bandwidth.relative for bandwidth in plan.bandwidths)
    fixed = task.scalings == (None,) and not relative and not plan.far_field
    model = RankModel(
        scorer=scorer,
        calibration=Calibration.from_scores(scores, kind),
        scaling=prepared.scaling,
        ranges=ranges,
        n_neighbors=task.recipe.k,
        bandwidth=chosen.sigma,
        C=chosen.C,
        selection=chosen.selection,
        n_kernels=len(plan.bandwidths) if fixed else None,
        norm=float(np.linalg.norm(solution.weights)),
        n_iter=solution.n_iter,
        converged=solution.converged and (of_kernel is None or of_kernel.converged),
        ranks=prepared.ranks,
        levels=prepared.levels,
        n_samples_fit=len(rows),
        training_rows=task.drawn.training,
        reference_rows=task.drawn.reference,
        trimmed_rows=np.empty(0, dtype=np.int64),
        repeated_rows=np.empty(0, dtype=np.int64),
        nominal_rows=task.rows,
    )
    if not isinstance(rows, np.ndarray):
        # Scores of rows elsewhere come in any order.
        return Fitted(model, np.empty(0, dtype=np.int64), said, doubt)
    which = np.concatenate([free, task.drawn.training])[: scores.size]
    return Fitted(model, which[np.argsort(scores, kind="stable")], said, doubt)


def _fuse(
    task: FitTask, kernel: KernelScorer, left_out: LeftOut, of_kernel: Floats | None
) -> tuple[FusedScorer, Floats | None]:
    """Make a scorer of several parts, in units of what they say of rows left out; and score these.

    `of_kernel` is what RankSVM says of them. With reference rows there is no need to leave rows out: of many
    rows, landmarks are few, and say of the rows that trained what they say of others.
    """
    plan, rows, reference = task.plan, task.rows, task.reference
    mixtures = MixturePlan.of(plan.n_components, rows, int(task.mixture_seed.generate_state(1)[0]))
    near, mixture = None, None
    said = [kernel.score(rows) if of_kernel is None else of_kernel]
    if plan.near_field:
        near = NearField.of(rows if reference is None else reference, near_unit(rows))
        said.append(left_out.by_near_field(near) if reference is None else near.score(rows))
    if mixtures.n_gaussians and reference is None:
        mixture = mixtures.fit(rows, np.arange(len(rows)))
        said.append(left_out.by_mixture(mixtures, mixture))
    elif mixtures.n_gaussians and reference is not None:
        some = reference[:: -(-len(reference) // sizes.MIXTURE_ROWS)]
        mixture = mixtures.fit(some, np.arange(len(some)))
        said.append(mixture.score(rows))
    parts = np.clip(np.stack(said), -LARGEST, None)
    centers, spreads = units_of(parts)
    if spreads[0] == 0:
        # The kernel tells far rows from near ones even where it tells no nominal rows apart.
        spreads[0] = 1.0
    # A part that tells no rows apart has no say.
    votes = spreads > 0
    scorer, fused = FusedScorer(kernel), parts[0]
    if votes.sum() > 1:
        units = Units(centers[votes], spreads[votes])
        scorer = FusedScorer(
            kernel,
            near if near is not None and votes[1] else None,
            mixture if mixture is not None and votes[-1] else None,
            units,
        )
        fused = fuse(parts[votes], units)
    return scorer, fused if reference is None else None


def _cross_fitted(
    task: FitTask, chosen: Chosen, n_parts: int, own: Floats, said: Floats
) -> tuple[Floats, str | None]:
    """Return the scores that training rows calibrate with, and why they cannot be trusted, if so.

    Rows that a score cannot tell from others form a plateau, where left-out scores hardly differ.
    The final plateau might lie below them all, and every new row on it would be an alarm. So a row that the
    kernel cannot tell from another, or on which the parts nearly agree, calibrates with no more than its own
    final score.
    """
    neighbors = chosen.prepared.neighbors
    capped = neighbors.distances[:, 0] <= _INDISTINCT * chosen.sigma
    if n_parts > 1:
        capped |= said - own <= _NEARLY_THE_SAME
    left_out = np.where(capped, np.minimum(said, own), said) - _EQUAL_WITHIN
    return left_out, _doubt(task, n_parts, own, left_out, neighbors)


def _doubt(task: FitTask, n_parts: int, own: Floats, left_out: Floats, neighbors: Neighbors) -> str | None:
    """Compare the final scores of training rows with their scores left out.

    Where RankSVM is alone and follows single rows, the rate of one fit may be far from alpha, though the mean
    over fits is right. It averages out over many rows, and over several parts. Where rows share a few places,
    these decide for all.
    """
    n = len(own)
    if not task.can_be_split:
        return None
    if not is_in_doubt(n):
        return few_different(task.rows, neighbors)
    n_lost = np.count_nonzero(left_out < own.min()) if n_parts == 1 else 0
    if n_lost > _MOST_LOST * n:
        return (
            f"{n_lost} of {n} rows, once left out, score below all rows that were trained on: with so "
            f"few rows the score follows single ones"
        )
    return few_places(neighbors)
