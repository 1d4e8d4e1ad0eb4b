"""Nominal rows to a ranker: neighbours, ranks, levels, landmarks and RankSVM in one go.

This is Algorithm 1, step 2, for one set of training rows. `RankAD` makes one ranker from all of them, and
more, each from the rows outside a fold, for selection and calibration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence
from threadpoolctl import threadpool_limits

from rankad._arrays import Floats, Ints
from rankad.kernels import KernelMap, KernelScorer, choose_landmarks
from rankad.levels import quantize
from rankad.neighbors import (
    Neighbors,
    nearest_neighbors,
    neighbors_among,
    random_halves,
    split_distances,
)
from rankad.pairloss import PairLoss
from rankad.ranks import density_ranks, knn_statistic, resampled_ranks
from rankad.ranksvm import RankSVMSolution, solve_path
from rankad.scaling import fit_scaling

__all__ = ["Bandwidth", "FittedRanker", "PreparedRows", "Recipe"]

# How many random halvings the ranks are averaged over (the paper's section 6.1).
N_HALVINGS = 20
# The point at infinity weighs like a level of a third of the rows.
FAR_SHARE = 1 / 3


class Bandwidth(NamedTuple):
    """A bandwidth: sigma itself, or a multiple of D_K."""

    value: float
    relative: bool

    def sigma(self, unit: float) -> float:
        """Return sigma where D_K is `unit`."""
        return self.value * unit if self.relative else self.value


@dataclass(frozen=True)
class Recipe:
    """How a ranker is made, whichever the rows."""

    k: int
    cuts: tuple[float, ...]
    landmarks: str
    n_landmarks: int
    far_field: bool

    def for_share(self, share: float) -> Recipe:
        """Return the recipe for a share of the rows: as many landmarks a row, not as many in all.

        So a fold's problem is a smaller copy of the whole one, and its scores are alike.
        """
        return replace(self, n_landmarks=max(1, round(self.n_landmarks * share)))


class FittedRanker(NamedTuple):
    """A ranker and how the solver found it."""

    scorer: KernelScorer
    solution: RankSVMSolution


class PreparedRows:
    """Training rows with everything that no bandwidth and no C can change.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    recipe : Recipe
    seed : SeedSequence
    scaling : {"standard", "robust"} or None
        A scaling to learn from these very rows.
    known : (Neighbors, ndarray of int), optional
        The neighbours of more rows than these, and which of those rows these are.
    reference : ndarray of shape (m, d), optional
        Other rows, among which neighbours are looked for to rank these, and which take part in choosing
        landmarks; without, neighbours are looked for in random halves of these.
    n_jobs : int, optional
        Threads that look for neighbours.

    Attributes
    ----------
    ranks, levels : ndarray of shape (n,)
    unit : float
        ``D_K``, the mean distance to the K nearest neighbours; 1 if that is zero.
    n_pairs : float
        Pairs in the loss, the point at infinity included.
    """

    def __init__(
        self,
        rows: Floats,
        recipe: Recipe,
        seed: SeedSequence,
        scaling: str | None = None,
        known: tuple[Neighbors, Ints] | None = None,
        reference: Floats | None = None,
        n_jobs: int | None = None,
    ) -> None:
        # A copy, since spawning counts: the same seed means the same halves, whoever used it before.
        halves_seed, landmarks_seed = SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(2)
        self._scaling = fit_scaling(rows, scaling)
        scaled = self._scaling.apply(rows)
        n, k = len(scaled), recipe.k
        # Halves need four times as many; without them the unit is all that these are for.
        many = min(4 * k if reference is None else k, n - 1)
        if known is None:
            wide = nearest_neighbors(scaled, many, n_jobs=n_jobs)
        else:
            wide = neighbors_among(known[1], many, scaled, known[0], 1 / float(self._scaling.scale.max()))
        if reference is None:
            halves = random_halves(n, N_HALVINGS, np.random.default_rng(halves_seed))
            splits = split_distances(scaled, k, halves, wide)
            self.ranks = resampled_ranks((-knn_statistic(split, k, "mean") for split in splits), halves)
        else:
            apart = self._scaling.apply(reference)
            distances = nearest_neighbors(apart, k, scaled, n_jobs=n_jobs).distances
            self.ranks = density_ranks(-knn_statistic(distances, k, "mean"))
        self.levels: Ints = quantize(self.ranks, recipe.cuts)
        self.unit = float(wide.distances[:, :k].mean()) or 1.0
        self._loss = PairLoss(self.levels, far_weight=FAR_SHARE * n if recipe.far_field else 0.0)
        self.n_pairs = self._loss.n_pairs
        self._rows, self._recipe = scaled, recipe
        own_alone = reference is None or recipe.n_landmarks >= n
        self._all_rows = scaled if own_alone else np.concatenate([scaled, apart])
        self._landmarks_seed = int(landmarks_seed.generate_state(1)[0])

    @cached_property
    def _map(self) -> KernelMap:
        # k-means sums in the order of its threads; one thread keeps the last bit the same for any n_jobs.
        with threadpool_limits(limits=1, user_api="openmp"):
            landmarks = choose_landmarks(
                self._all_rows, self._recipe.n_landmarks, self._recipe.landmarks, seed=self._landmarks_seed
            )
        return KernelMap(self._rows, landmarks)

    @cached_property
    def _landmarks(self) -> Floats:
        """The landmarks in the units of the rows as they came."""
        center, scale = self._scaling
        return self._map.landmarks * scale + center

    def solve(self, sigma: float, pair_weights: Sequence[float]) -> list[FittedRanker]:
        """Train at one bandwidth for several C, given as C times the number of pairs, ascending.

        That product, unlike C, means the same for any number of rows.
        """
        features = self._map.features(sigma)
        # Without pairs there is nothing to weigh, and g is zero.
        C = [weight / self.n_pairs if self.n_pairs else 1.0 for weight in pair_weights]
        widths = sigma * self._scaling.scale
        return [
            FittedRanker(
                KernelScorer(
                    self._landmarks,
                    features.coefficients(solution.weights),
                    widths,
                    self._recipe.far_field,
                ),
                solution,
            )
            for solution in solve_path(features.rows, self._loss, C)
        ]
