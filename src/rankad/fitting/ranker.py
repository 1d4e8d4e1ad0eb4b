"""Nominal rows to a ranker: neighbours, ranks, levels, landmarks and RankSVM in one go.

This is Algorithm 1, step 2, for one set of training rows. `RankAD` makes one ranker from all of them, and
more, each from the rows outside a fold, for selection and calibration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence

from rankad._base.arrays import Floats, Ints
from rankad._base.scratch import Scratch
from rankad._base.threads import cached_property
from rankad.fitting import sizes
from rankad.scorers.kernel import KernelScorer
from rankad.stages.kernels import KernelMap, choose_landmarks
from rankad.stages.levels import quantize
from rankad.stages.neighbors import Neighbors, nearest_neighbors, neighbors_among, random_halves, split_means
from rankad.stages.pairloss import PairLoss
from rankad.stages.ranks import density_ranks, knn_statistic, resampled_ranks
from rankad.stages.ranksvm import RankSVMSolution, solve_path
from rankad.stages.scaling import fit_scaling

# How many random halvings the ranks are averaged over (the paper's section 6.1).
N_HALVINGS = 20
# The point at infinity weighs like a level of a third of the rows.
FAR_SHARE = 1 / 3
# Where neighbours serve for nothing else, so many rows say what the unit of distances is.
_UNIT_ROWS = 1_000
# In D_K no row counts for more than this many times the median row: one huge value must not decide the unit.
_MOST_SAY = 20.0


@dataclass(frozen=True)
class Recipe:
    """How a ranker is made, whichever the rows; `n_known` neighbours are looked for of all rows."""

    k: int
    n_known: int
    cuts: tuple[float, ...]
    landmarks: str
    n_landmarks: int
    far_field: bool

    def for_share(self, share: float) -> Recipe:
        """Return the recipe for a share of the rows: as many landmarks a row, not as many in all.

        So a fold's problem is a smaller copy of the whole one, and its scores are alike.
        """
        return replace(self, n_landmarks=max(1, round(self.n_landmarks * share)))


class KnownNeighbors(NamedTuple):
    """The neighbours of more rows than are to be ranked, the units of their distances, and which rows are."""

    neighbors: Neighbors
    scale: Floats
    kept: Ints


class FittedRanker(NamedTuple):
    """A ranker and how the solver found it."""

    scorer: KernelScorer
    solution: RankSVMSolution


class PreparedRows:
    """Training rows with everything that does not depend on bandwidth and C, made when it is asked for.

    `scaling` is learned from these rows; all else is in its units. `known` are the neighbours of more rows
    than these; with the same seed, landmarks are drawn alike. With a `reference`, neighbours are looked for
    among those rows, some of which take part in choosing landmarks; without, in random halves of the rows.
    `density` is what to rank the rows by, where it is known.
    """

    def __init__(
        self,
        rows: Floats,
        recipe: Recipe,
        seed: SeedSequence,
        scaling: str | None = None,
        known: KnownNeighbors | None = None,
        reference: Floats | None = None,
        density: Floats | None = None,
        n_jobs: int | None = None,
    ) -> None:
        # A copy, since spawning counts: the same seed means the same halves, whoever used it before.
        self._halves_seed, landmarks_seed = SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(2)
        self._landmarks_seed = int(landmarks_seed.generate_state(1)[0])
        self._recipe, self._n_jobs, self._known, self._density = recipe, n_jobs, known, density
        n_all = None if known is None else len(known.neighbors.indices)
        self.scaling_name, self.scaling = scaling, fit_scaling(rows, scaling, n_all)
        # No copy where nothing is scaled: there may be very many columns.
        self.rows = rows if scaling is None else self.scaling.apply(rows)
        self._reference = None if reference is None else self.scaling.apply(reference)
        self._names = np.arange(len(rows)) if known is None else known.kept

    @cached_property
    def neighbors(self) -> Neighbors:
        """The neighbours of the rows; of all rows so many that fits which leave rows out take theirs."""
        most = len(self.rows) - 1
        if self._known is None:
            return nearest_neighbors(self.rows, min(self._recipe.n_known, most), n_jobs=self._n_jobs)
        known, scale, kept = self._known
        shrinkage = float((scale / self.scaling.scale).min())
        return neighbors_among(
            kept, min(sizes.HALVES_NEIGHBORS * self._recipe.k, most), self.rows, known, shrinkage
        )

    @cached_property
    def unit(self) -> float:
        """``D_K``, the mean distance to the K nearest neighbours; 1 if all are zero.

        With a far field, no row counts for more than twenty times the median row. With a reference or a known
        density it is estimated from a strided subset: the unit is all that neighbours are for.
        """
        k, n = self._recipe.k, len(self.rows)
        if self._reference is None and self._density is None:
            by_row = self.neighbors.distances[:, :k].mean(axis=1)
        else:
            asked = self.rows[:: max(1, n // _UNIT_ROWS)]
            near = nearest_neighbors(self.rows, min(k + 1, n), asked, n_jobs=self._n_jobs)
            # The nearest is the row itself, or its equal.
            by_row = near.distances[:, 1:].mean(axis=1)
        apart = by_row[by_row > 0]
        if not apart.size:
            return 1.0
        if not self._recipe.far_field:
            return float(by_row.mean())
        return float(np.minimum(by_row, _MOST_SAY * np.median(apart)).mean())

    @cached_property
    def density(self) -> Floats | None:
        """Minus the mean distance to the K nearest of the reference rows; None without such rows."""
        return self._density if self._reference is None else self._find_density(self.rows, self._n_jobs)

    def density_at(self, which: Ints) -> Floats | None:
        """Return the density of some of the rows; where nobody has asked for all, theirs alone is found."""
        if self._reference is not None and "density" not in vars(self):
            return self._find_density(self.rows[which], 1)
        return None if self.density is None else self.density[which]

    def _find_density(self, rows: Floats, n_jobs: int | None) -> Floats:
        assert self._reference is not None
        k = self._recipe.k
        distances = nearest_neighbors(self._reference, k, rows, n_jobs=n_jobs).distances
        return -knn_statistic(distances, k, "mean")

    @cached_property
    def ranks(self) -> Floats:
        """The ranks of the rows: by their density, or by what they have in random halves of themselves."""
        if self.density is not None:
            return density_ranks(self.density)
        n, k = len(self.rows), self._recipe.k
        halves = random_halves(n, N_HALVINGS, np.random.default_rng(self._halves_seed))
        return resampled_ranks(-split_means(self.rows, k, halves, self.neighbors), halves)

    @cached_property
    def levels(self) -> Ints:
        """The levels of the ranks."""
        return quantize(self.ranks, self._recipe.cuts)

    @cached_property
    def _loss(self) -> PairLoss:
        far_weight = FAR_SHARE * len(self.rows) if self._recipe.far_field else 0.0
        return PairLoss(self.levels, far_weight=far_weight)

    @property
    def n_pairs(self) -> float:
        """Pairs in the loss, the point at infinity included."""
        return self._loss.n_pairs

    @cached_property
    def _map(self) -> KernelMap:
        rows, names = self.rows, self._names
        if self._reference is not None and self._recipe.n_landmarks < len(rows):
            step = max(1, len(self._reference) // len(rows))
            rows = np.concatenate([rows, self._reference[::step]])
            names = np.arange(len(rows))
        landmarks = choose_landmarks(
            rows, self._recipe.n_landmarks, self._recipe.landmarks, seed=self._landmarks_seed, names=names
        )
        return KernelMap(self.rows, landmarks)

    def complete(self) -> PreparedRows:
        """Make now what would be made when it is asked for, and return the whole."""
        _ = self.unit, self._loss, self._map
        return self

    def solve(
        self, sigma: float, pair_weights: Sequence[float], scratch: Scratch | None = None
    ) -> list[FittedRanker]:
        """Train at one bandwidth for several C, given as C times the number of pairs, ascending.

        That product, unlike C, means the same for any number of rows. The scorers are of scaled rows.
        """
        features = self._map.features(sigma, scratch)
        # Without pairs there is nothing to weigh, and g is zero.
        C = [weight / self.n_pairs if self.n_pairs else 1.0 for weight in pair_weights]
        landmarks, widths, far_field = (
            self._map.landmarks,
            np.full(self.rows.shape[1], sigma),
            self._recipe.far_field,
        )
        return [
            FittedRanker(
                KernelScorer(landmarks, features.coefficients(solution.weights), widths, far_field), solution
            )
            for solution in solve_path(features.rows, self._loss, C, scratch)
        ]
