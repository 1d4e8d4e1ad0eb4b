"""Scaling, bandwidth and C, chosen where several are given, and the ranker trained with them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Floats, Ints
from rankad._base.progress import Progress
from rankad.fitting import sizes
from rankad.fitting.narrowing import Narrowed, narrow_others, narrowed, shuffled_cells
from rankad.fitting.plan import Bandwidth
from rankad.fitting.ranker import FittedRanker, PreparedRows
from rankad.fitting.task import FitTask
from rankad.scorers.kernel import KernelScorer
from rankad.stages.levels import disagreement
from rankad.stages.scaling import Scaling, fit_scaling
from rankad.stages.selection import (
    SelectionTable,
    collect_trials,
    contrast_losses,
    folds,
    shuffled_columns,
    uniform_box,
)

# So many numbers of made-up rows are scaled at a time: all of them at once would be as much memory again.
_AT_ONCE = 2**18


class Chosen(NamedTuple):
    """The choice made, and the ranker of all training rows, scaled as chosen, that it makes.

    `weight` is C times the number of pairs, which folds share. `selection` is None where there was nothing to
    select.
    """

    prepared: PreparedRows
    bandwidth: Bandwidth
    sigma: float
    C: float
    weight: float
    ranker: FittedRanker
    selection: SelectionTable | None


def choose(task: FitTask) -> Chosen:
    """Choose scaling, bandwidth and C without labels, and train with them."""
    plan, rows, reference = task.plan, task.rows, task.reference
    C = plan.C or [sizes.AUTO_C / len(rows)]

    def prepared(scaling: str | None, reference: Floats | None) -> PreparedRows:
        seed, jobs = task.train_seed, plan.n_jobs
        return PreparedRows(rows, task.recipe, seed, scaling, reference=reference, n_jobs=jobs)

    selection, best, views = None, 0, list[PreparedRows]()
    if plan.n_trials > 1 and task.is_very_wide:
        selection = _select_narrow(task, C)
    elif plan.n_trials > 1:
        # To select, a strided subset will do: about as many as train, where there are so many.
        some = None if reference is None else reference[:: max(1, len(reference) // len(rows))]
        views = [prepared(scaling, some) for scaling in task.scalings]
        selection = _select(task, views, C)
    if selection is not None:
        best = selection.best
    which, multiple, at = np.unravel_index(best, (len(task.scalings), len(plan.bandwidths), len(C)))
    if reference is not None:
        n_ranking = sizes.n_ranking(len(reference), rows.size)
        ranking = reference[np.arange(n_ranking) * len(reference) // n_ranking]
        here = prepared(task.scalings[which], ranking)
    else:
        here = views[which] if views else prepared(task.scalings[which], None)
    weight = C[at] * here.n_pairs
    sigma = plan.bandwidths[multiple].sigma(here.unit)
    ranker = here.solve(sigma, [weight], task.scratch)[0]
    return Chosen(here, plan.bandwidths[multiple], sigma, C[at], weight, ranker, selection)


def _select_narrow(task: FitTask, C: list[float]) -> SelectionTable:
    """Select by rows in few columns, at the same distances."""
    rows = task.rows
    narrow = [narrowed(rows, fit_scaling(rows, scaling)) for scaling in task.scalings]
    views = [PreparedRows(each.rows, task.recipe, task.train_seed) for each in narrow]
    return _select(task, views, C, narrow)


def _select(
    task: FitTask, views: list[PreparedRows], C: list[float], narrow: list[Narrowed] | None = None
) -> SelectionTable:
    rows, criterion, bandwidths = task.rows, task.plan.selection, task.plan.bandwidths
    if criterion == "shuffled" and rows.shape[1] == 1:
        raise ValueError(
            "selection='shuffled' needs at least two columns: one column shuffled is itself. X has 1 "
            "feature; pass selection='contrast'."
        )
    n_folds = task.plan.n_selection_folds(len(rows))
    deal, *seeds = task.select_seed.spawn(1 + n_folds)
    fold_seeds = [seed.spawn(2) for seed in seeds]
    parts = folds(len(rows), n_folds, np.random.default_rng(deal))
    if task.reference is not None and criterion != "disagreement":
        # Of many rows, those of one fold will do.
        parts = parts[:1]
    shape = len(parts), len(views), len(bandwidths)
    progress = Progress("selection", math.prod(shape), task.plan.verbose)

    def prepare(number: int) -> PreparedRows:
        fold, which = np.unravel_index(number, shape[:2])
        view = views[which]
        kept = np.delete(np.arange(len(rows)), parts[fold])
        recipe = task.recipe.for_share(len(kept) / len(rows))
        density = view.density_at(kept)
        return PreparedRows(view.rows[kept], recipe, fold_seeds[fold][0], density=density).complete()

    if criterion == "disagreement":
        for view in views:
            # What all folds share is made before they begin.
            _ = view.levels
    prepared = task.in_parallel(prepare, len(parts) * len(views))
    negatives = [
        [_negatives(criterion, rows[held], np.delete(rows, held, axis=0), seeds[1])] * len(views)
        if narrow is None
        else _narrow_negatives(criterion, rows, narrow, held, seeds[1])
        for held, seeds in zip(parts, fold_seeds, strict=False)
    ]

    def losses_of(number: int) -> list[list[Floats]]:
        fold, which, multiple = np.unravel_index(number, shape)
        held, here = parts[fold], prepared[fold * len(views) + which]
        # So much of the whole's pairs: as the square of the rows.
        share = 1 - len(held) / len(rows)
        weights = [value * here.n_pairs / share**2 for value in C]
        rankers = here.solve(bandwidths[multiple].sigma(here.unit), weights, task.scratch)
        losses = _judge([ranker.scorer for ranker in rankers], views[which], held, negatives[fold][which])
        progress.advance()
        return losses

    tried = task.in_parallel(losses_of, math.prod(shape))
    each = math.prod(shape[1:])
    losses = np.concatenate(
        [np.concatenate(tried[at : at + each]) for at in range(0, len(tried), each)], axis=2
    )
    progress.finish()
    sigmas = [[bandwidth.sigma(view.unit) for bandwidth in bandwidths] for view in views]
    return collect_trials(task.scalings, sigmas, C, losses, criterion)


def _negatives(criterion: str, inside: Floats, outside: Floats, seed: np.random.SeedSequence) -> list[Floats]:
    """Make up rows that are not nominal, by the chosen criterion; none for the paper's."""
    rng = np.random.default_rng(seed)
    n = min(sizes.NEGATIVES * len(inside), sizes.MOST_NEGATIVES)
    made_up = []
    if criterion != "disagreement":
        made_up.append(shuffled_columns(inside, n, rng))
    if criterion == "contrast":
        made_up.append(uniform_box(outside, n, rng))
    return made_up


def _narrow_negatives(
    criterion: str, rows: Floats, narrow: list[Narrowed], held: Ints, seed: np.random.SeedSequence
) -> list[list[Floats]]:
    """Make up rows like `_negatives`, but fewer, in few columns, for each way to scale them."""
    rng = np.random.default_rng(seed)
    most = max(sizes.LEAST_NEGATIVES, sizes.NARROW_NUMBERS // rows.shape[1])
    n = min(sizes.NEGATIVES * len(held), sizes.MOST_NEGATIVES, most)
    kept = np.delete(np.arange(len(rows)), held)
    kinds = {
        "shuffled": lambda columns: shuffled_cells(rows[held, columns], n, rng),
        "contrast": lambda columns: uniform_box(rows[kept, columns], n, rng),
    }
    wanted = {"shuffled": ["shuffled"], "contrast": ["shuffled", "contrast"]}
    made_up = [narrow_others(narrow, rows, kinds[kind], n) for kind in wanted.get(criterion, [])]
    return [[of_kind[which] for of_kind in made_up] for which in range(len(narrow))]


def _judge(
    scorers: list[KernelScorer], view: PreparedRows, held: Ints, negatives: list[Floats]
) -> list[list[Floats]]:
    """Return the losses of scorers by the chosen criterion, for each kind those of rows."""
    scorers = list(map(KernelScorer.quickest, scorers))
    nominal = [scorer.score(view.rows[held]) for scorer in scorers]
    if not negatives:
        levels = view.levels[held]
        return [[np.array([disagreement(scores, levels)])] for scores in nominal]
    outside = [_scores_of(scorers, view.scaling, rows) for rows in negatives]
    return [
        [contrast_losses(scores, negative[at]) for negative in outside] for at, scores in enumerate(nominal)
    ]


def _scores_of(scorers: list[KernelScorer], scaling: Scaling, rows: Floats) -> Floats:
    """Return the scores of rows by scorers of scaled rows, of shape (n_scorers, n)."""
    scores = np.empty((len(scorers), len(rows)))
    step = max(1, _AT_ONCE // rows.shape[1])
    for begin in range(0, len(rows), step):
        part = scaling.apply(rows[begin : begin + step])
        for scorer, out in zip(scorers, scores, strict=True):
            out[begin : begin + step] = scorer.score(part)
    return scores
