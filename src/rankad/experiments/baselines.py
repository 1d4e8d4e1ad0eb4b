"""The methods of the paper's table 3: rankAD, twice, and the five it is compared with.

Every method takes raw features, as in the paper; only rankAD's default may scale them itself. A score is
higher for a more nominal row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator
from sklearn.ensemble import IsolationForest
from sklearn.svm import OneClassSVM
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankad import KLPE, RankAD
from rankad._base.arrays import Floats, Ints
from rankad._base.rows import validate_rows
from rankad._loops.cache import compiled
from rankad.stages.neighbors import nearest_neighbors

Seed = int | np.random.RandomState | None

# The width of a kernel is set by the pairs of at most this many rows.
_PAIR_ROWS = 2_000


class _Baseline(BaseEstimator):
    """Checks rows; the methods below fit and score them."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit on nominal rows, an array-like of shape (n, d); y is ignored."""
        self._fit(validate_rows(self, X, reset=True, least=2))
        return self

    def score_samples(self, X: Any) -> Floats:
        """Score rows, an array-like of shape (n, d); higher is more nominal."""
        check_is_fitted(self)
        return self._score(validate_rows(self, X, reset=False))

    @abstractmethod
    def _fit(self, rows: Floats) -> None:
        """Fit on checked rows."""

    @abstractmethod
    def _score(self, rows: Floats) -> Floats:
        """Score checked rows."""


class BPKNNG(_Baseline):
    """BP-kNNG: the bipartite k-nearest-neighbour graph of Sricharan and Hero (NIPS 2011).

    The nominal rows are split at random into N and M rows. Neighbours are sought among the M alone, those of
    the N and those of a new row alike, so that both are compared on the same footing, among fewer rows than
    in aK-LPE. The statistic is the mean length of the edges to neighbours 1 to k: their sum with exponent
    gamma = 1, over k. The p-value of a row is the share of the N rows whose statistic is no smaller.

    The partition is our choice: N = M, or M one more. M sets how local the statistic is and N how fine the
    p-value is; both have to grow with the sample, and halves favour neither.

    Parameters
    ----------
    n_neighbors : int, default=20
        k; at most M.
    random_state : int, RandomState or None
        For the partition.

    Examples
    --------
    >>> detector = BPKNNG(n_neighbors=2, random_state=0).fit(np.arange(20.0).reshape(-1, 1))
    >>> detector.p_values([[40.0]])
    array([0.])
    """

    reference_: Floats  # of shape (M, d): the rows that neighbours are sought among
    statistics_: Floats  # of shape (N,): the statistics of the other rows, ascending

    def __init__(self, n_neighbors: int = 20, *, random_state: Seed = None) -> None:
        self.n_neighbors, self.random_state = n_neighbors, random_state

    def p_values(self, X: Any) -> Floats:
        """Return the share of the N nominal rows whose statistic is no smaller than each row's."""
        below = np.searchsorted(self.statistics_, -self.score_samples(X), side="left")
        return 1.0 - below / len(self.statistics_)

    def _fit(self, rows: Floats) -> None:
        order = check_random_state(self.random_state).permutation(len(rows))
        n = len(rows) // 2
        most = len(rows) - n
        if not 1 <= self.n_neighbors <= most:
            raise ValueError(
                f"n_neighbors must lie between 1 and {most}, the half of the rows that neighbours are sought "
                f"among; got {self.n_neighbors!r}. Lower n_neighbors, or fit on more rows."
            )
        self.reference_ = rows[order[n:]]
        self.statistics_ = np.sort(-self._score(rows[order[:n]]))

    def _score(self, rows: Floats) -> Floats:
        distances = nearest_neighbors(self.reference_, self.n_neighbors, rows).distances
        return np.asarray(-distances.mean(axis=1))


class HalfSpaceTrees(NamedTuple):
    """Complete binary trees of one depth; the children of node i are nodes 2 i + 1 and 2 i + 2.

    Rows at or above an inner node's cut in its column go to the second child. The mass of a node is how many
    rows of the tree's sub-sample came through it.
    """

    # Of shapes (t, 2 ** depth - 1) twice and (t, 2 ** (depth + 1) - 1).
    columns: Ints
    cuts: Floats
    masses: Floats


class MassAD(_Baseline):
    """massAD: mass estimation with random half-space trees (Ting, Zhou, Liu and Tan 2010 and 2013).

    Each of t trees is grown from psi rows drawn without replacement, in a work space of its own: in every
    column, s is uniform between the least and the largest of the drawn values, and the space reaches from
    s - r to s + r, where r is twice the distance from s to the farther of the two. A node halves its space at
    the middle of a column drawn at random, down to level h; a node that holds no more rows than `size_limit`
    is a leaf. A row's score is the mean over the trees of m * 2 ** l, the augmented mass, where m is the mass
    of the leaf it falls into and l the leaf's level.

    Our reading where there is more than one: r is doubled, as in the streaming half-space trees of Tan, Ting
    and Liu (2011), so that rows beyond the drawn ones get half-spaces of their own; h = log2(psi); the score
    is the mean of the augmented masses, not of their logarithms; and columns that do not vary among the drawn
    rows are not cut, as in isolation forests (where none varies, all may be).

    Parameters
    ----------
    n_trees : int, default=100
        t.
    n_rows : int, default=256
        psi; all rows where there are fewer.
    max_depth : int, default=8
        h.
    size_limit : int, default=1
        The mass up to which a node is not split further.
    random_state : int, RandomState or None
    """

    trees_: HalfSpaceTrees

    def __init__(
        self, n_trees: int = 100, n_rows: int = 256, max_depth: int = 8, size_limit: int = 1, *,
        random_state: Seed = None,
    ) -> None:  # fmt: skip
        self.n_trees, self.n_rows, self.max_depth = n_trees, n_rows, max_depth
        self.size_limit, self.random_state = size_limit, random_state

    def _fit(self, rows: Floats) -> None:
        for name in ("n_trees", "n_rows", "max_depth"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be an integer >= 1, got {getattr(self, name)!r}.")
        rng = check_random_state(self.random_state)
        size = min(self.n_rows, len(rows))
        grown = []
        for _ in range(self.n_trees):
            sample = rows[rng.choice(len(rows), size=size, replace=False)]
            columns, cuts = _halve(sample, self.max_depth, rng)
            grown.append((columns, cuts, _masses(sample, columns, cuts)))
        self.trees_ = HalfSpaceTrees(*(np.stack(parts) for parts in zip(*grown, strict=True)))

    def _score(self, rows: Floats) -> Floats:
        return np.asarray(_mean_augmented_mass(rows, *self.trees_, self.size_limit))


def _halve(sample: Floats, depth: int, rng: np.random.RandomState) -> tuple[Ints, Floats]:
    """Draw the columns and cuts of one tree's inner nodes, level by level."""
    least, largest = sample.min(axis=0), sample.max(axis=0)
    middle = rng.uniform(least, largest)
    reach = 2.0 * np.maximum(middle - least, largest - middle)
    varying = np.flatnonzero(largest > least)
    if not varying.size:
        varying = np.arange(len(least))
    lower, upper = (middle - reach)[None], (middle + reach)[None]
    columns: list[Ints] = []
    cuts: list[Floats] = []
    for level in range(depth):
        nodes = np.arange(2**level)
        chosen = varying[rng.randint(len(varying), size=len(nodes))]
        cut = 0.5 * (lower[nodes, chosen] + upper[nodes, chosen])
        columns.append(chosen)
        cuts.append(cut)
        lower, upper = np.repeat(lower, 2, axis=0), np.repeat(upper, 2, axis=0)
        upper[2 * nodes, chosen] = cut
        lower[2 * nodes + 1, chosen] = cut
    return np.concatenate(columns), np.concatenate(cuts)


@compiled
def _masses(sample, columns, cuts):  # type: ignore[no-untyped-def]
    """Count the rows of the sub-sample that come through every node of one tree."""
    masses = np.zeros(2 * len(columns) + 1)
    for row in range(len(sample)):
        node = 0
        masses[node] += 1.0
        while node < len(columns):
            node = 2 * node + (2 if sample[row, columns[node]] >= cuts[node] else 1)
            masses[node] += 1.0
    return masses


@compiled
def _mean_augmented_mass(rows, columns, cuts, masses, size_limit):  # type: ignore[no-untyped-def]
    """Return the mean over the trees of m * 2 ** l for every row."""
    total = np.zeros(len(rows))
    t, inner = columns.shape
    # The trees outside: one tree at a time stays in the cache.
    for tree in range(t):
        for row in range(len(rows)):
            node = 0
            volume = 1.0
            while node < inner and masses[tree, node] > size_limit:
                node = 2 * node + (2 if rows[row, columns[tree, node]] >= cuts[tree, node] else 1)
                volume *= 2.0
            total[row] += masses[tree, node] * volume
    return total / t


class OneClass(_Baseline):
    """One-class SVM (Schölkopf et al. 2001), scikit-learn's, which is LIBSVM's as in the paper.

    The kernel is ``exp(-gamma |x - x'|^2)``; gamma is one over the median of |x - x'|^2 over all pairs of
    nominal rows (of 2,000 of them where there are more): the median heuristic, and the middle of the range
    that kernlab's `sigest` gives, from the 0.1 to the 0.9 quantile. Where more than half of the pairs are
    duplicates, it is the median of the others.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of nominal rows ends outside, and at least this share are support vectors. The
        default is LIBSVM's.
    random_state : int, RandomState or None
        For the choice among more than 2,000 rows.
    """

    gamma_: float
    model_: OneClassSVM

    def __init__(self, nu: float = 0.5, *, random_state: Seed = None) -> None:
        self.nu, self.random_state = nu, random_state

    def _fit(self, rows: Floats) -> None:
        some = rows
        if len(rows) > _PAIR_ROWS:
            some = rows[check_random_state(self.random_state).choice(len(rows), _PAIR_ROWS, replace=False)]
        squared = pdist(some, "sqeuclidean")
        apart = squared[squared > 0]
        median = float(np.median(squared)) or (float(np.median(apart)) if apart.size else 1.0)
        self.gamma_ = 1.0 / median
        self.model_ = OneClassSVM(kernel="rbf", gamma=self.gamma_, nu=self.nu).fit(rows)

    def _score(self, rows: Floats) -> Floats:
        return np.asarray(self.model_.score_samples(rows))


# In the order of the paper's columns; each takes a seed.
METHODS: dict[str, Callable[[int], Any]] = {
    "rankAD (published)": lambda seed: RankAD.as_published(random_state=seed),
    "rankAD (default)": lambda seed: RankAD(random_state=seed),
    "one-class SVM": lambda seed: OneClass(random_state=seed),
    "BP-K-NNG": lambda seed: BPKNNG(random_state=seed),
    # The mean distance to k neighbours (Qian and Saligrama 2012).
    "aK-LPE": lambda seed: KLPE(n_neighbors=20, statistic="mean", scaling=None),
    # Liu, Ting and Zhou 2008: by default, the 100 trees of 256 rows that they publish.
    "iForest": lambda seed: IsolationForest(random_state=seed),
    "massAD": lambda seed: MassAD(random_state=seed),
}
