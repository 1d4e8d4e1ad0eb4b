"""What a fit works on: a plan, the rows that train, rank and calibrate, and seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np

from rankad._base.arrays import Floats, Ints
from rankad._base.scratch import Scratch
from rankad._base.threads import in_turns, n_threads
from rankad.fitting import sizes
from rankad.fitting.plan import Plan
from rankad.fitting.ranker import Recipe
from rankad.stages.ranks import auto_neighbors
from rankad.stages.scaling import alike_in_spread
from rankad.stages.selection import folds

if TYPE_CHECKING:
    from rankad.scorers.fusion import FusedScorer

T = TypeVar("T")


class RowSource(Protocol):
    """Rows that are stored elsewhere: a fit takes a few and has the others scored there."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""

    def __len__(self) -> int: ...

    def __getitem__(self, which: Ints) -> Floats:
        """Return some of the rows, in the order asked for."""

    def score(self, which: Ints, scorer: FusedScorer) -> Floats:
        """Return the scores of some of the rows, in any order."""


class DrawnRows(NamedTuple):
    """Which of the rows train, which of them rank those that do, and which only calibrate."""

    training: Ints
    reference: Ints
    free: Ints


@dataclass(frozen=True)
class FitTask:
    """One fit: the rows that train, rank them (None where they rank one another), and only calibrate.

    `scalings` are the candidates, the plainest first.
    """

    plan: Plan
    drawn: DrawnRows
    rows: Floats
    reference: Floats | None
    scalings: tuple[str | None, ...]
    recipe: Recipe
    train_seed: np.random.SeedSequence
    select_seed: np.random.SeedSequence
    mixture_seed: np.random.SeedSequence
    scratch: Scratch = field(default_factory=Scratch)

    @classmethod
    def of(cls, plan: Plan, rows: Floats | RowSource, entropy: Ints, *, any_seed: bool = False) -> FitTask:
        """Draw which rows train; with `any_seed`, the same rows whatever the seed."""
        seeds = np.random.SeedSequence([int(word) for word in entropy]).spawn(4)
        draw_seed, train_seed, select_seed, mixture_seed = seeds
        n = len(rows)
        wanted = (n + 1) // 2 if plan.calibration == "split" else n
        n_training = min(wanted, sizes.MAX_TRAINING_ROWS)
        n_reference = _n_reference(plan, n - n_training, n_training, rows.shape[1])
        order = np.random.default_rng(0 if any_seed else draw_seed).permutation(n)
        drawn = DrawnRows(*map(np.sort, np.split(order, [n_training, n_training + n_reference])))
        training = rows[drawn.training]
        # Where the columns have similar spreads, no scaling is the plainest.
        alike = alike_in_spread(training)
        k = _neighbors(plan, n_training)
        n_known = k * (sizes.KNOWN_NEIGHBORS if plan.leaves_out else sizes.HALVES_NEIGHBORS)
        return cls(
            plan,
            drawn,
            training,
            rows[drawn.reference] if n_reference else None,
            tuple(sorted(plan.scalings, key=lambda scaling: (scaling is None) != alike)),
            Recipe(k, n_known, plan.cuts, plan.landmark_method, plan.n_landmarks, plan.far_field),
            train_seed,
            select_seed,
            mixture_seed,
        )

    @property
    def cross_fits(self) -> bool:
        """Cross-fitting is for when there are fewer free rows than training rows."""
        return self.plan.calibration == "cross-fit" and len(self.drawn.free) < len(self.rows)

    @property
    def is_very_wide(self) -> bool:
        """Whether columns are so many that selecting takes long, and more memory than all else."""
        n, d = self.rows.shape
        return d > max(sizes.VERY_WIDE, 2 * n) and self.reference is None

    @property
    def can_be_split(self) -> bool:
        """Whether half of the training rows are enough for the neighbours asked for."""
        return self.recipe.k <= self.plan.smallest_fold((len(self.rows) + 1) // 2) // 2

    def in_parallel(self, work: Callable[[int], T], n: int) -> list[T]:
        """Return ``work(0)`` to ``work(n - 1)``, done by threads."""
        return in_turns(work, n, min(n, n_threads(self.plan.n_jobs)))

    def deal(self, n_folds: int) -> list[Ints]:
        """Deal the training rows into folds, whatever the seed: it must not decide about alarms."""
        n = len(self.rows)
        return folds(n, min(n, n_folds), np.random.default_rng(0))

    def score_folds(self, parts: list[Ints], score: Callable[[Ints, Ints], Floats]) -> Floats:
        """Score all training rows, fold by fold: ``score(kept, held)`` gets the others and the fold's own."""
        scores = np.empty(len(self.rows))
        rows = np.arange(len(self.rows))
        of_folds = self.in_parallel(lambda at: score(np.delete(rows, parts[at]), parts[at]), len(parts))
        scores[np.concatenate(parts)] = np.concatenate(of_folds)
        return scores


def _n_reference(plan: Plan, n_others: int, n_training: int, d: int) -> int:
    """Return how many of the rows that do not train serve as reference."""
    if plan.calibration == "in-sample" or n_others < sizes.ENOUGH_FOR_REFERENCE * n_training:
        return 0
    half = n_others // 2
    n_ranking = sizes.n_ranking(half, n_training * d)
    if n_ranking < n_training // 2:
        # Fewer than training rows find in a half of themselves are not worth while.
        return 0
    return min(half, sizes.NEAR_ROWS, sizes.NEAR_NUMBERS // d) if plan.near_field else n_ranking


def _neighbors(plan: Plan, n_training: int) -> int:
    smallest = plan.smallest_fold(n_training)
    most, k = smallest // 2, plan.k
    if k is None:
        # Neighbours are looked for in one half of the rows.
        return max(1, min(auto_neighbors(-(-n_training // 2)), most))
    if k > most:
        raise ValueError(
            f"n_neighbors={k} is too many for {n_training} training rows: ranks come from random halves "
            f"of training folds, the smallest of which has {smallest} rows, so that n_neighbors can be "
            f"{most} at most. Lower it, pass n_neighbors='auto'"
            + (", or fit on more rows." if n_training < sizes.MAX_TRAINING_ROWS else ".")
        )
    return k
