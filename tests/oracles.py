"""Slow, obvious twins of the stages: written from the definitions, and never from the package.

Nothing here imports rankad. Where two floating-point numbers are to be equal to the last bit, the twin sums
in the order of the columns, as anybody would by hand.
"""

from __future__ import annotations

import math

import numpy as np

# ------------------------------------------------------------------------------------------- neighbours


def distances_to(reference, query):
    """Euclidean distances from one row, summed column by column."""
    squared = np.zeros(len(reference))
    for column in range(reference.shape[1]):
        squared = squared + (reference[:, column] - query[column]) ** 2
    return np.sqrt(squared)


def neighbors(reference, k, queries=None):
    """Distances and indices of the k nearest; of equally far rows the one with the lower index first."""
    own = queries is None
    distances, indices = [], []
    for position, query in enumerate(reference if own else queries):
        to_all = distances_to(reference, query)
        others = [row for row in range(len(reference)) if not (own and row == position)]
        nearest = sorted(others, key=lambda row: (to_all[row], row))[:k]
        distances.append(to_all[nearest])
        indices.append(nearest)
    return np.array(distances), np.array(indices)


def split_distances(rows, k, half):
    """Every row's distances to its k nearest in the other half, one query a row."""
    return np.array(
        [neighbors(rows[half != half[row]], k, rows[row : row + 1])[0][0] for row in range(len(rows))]
    )


def radius_counts(reference, radius, queries=None):
    counts = []
    for position, query in enumerate(reference if queries is None else queries):
        inside = distances_to(reference, query) <= radius
        if queries is None:
            inside[position] = False
        counts.append(int(inside.sum()))
    return np.array(counts)


# ------------------------------------------------------------------------------------------------ ranks


def centred_mean(sorted_distances, k):
    """Mean of neighbours ``K - floor((K-1)/2)`` to ``K + floor(K/2)``, counted from one, both included."""
    wanted = range(k - math.floor((k - 1) / 2), k + math.floor(k / 2) + 1)
    return sum(sorted_distances[number - 1] for number in wanted) / len(wanted)


def p_hat(is_at_least_as_sparse, n_queries, n_nominal):
    """Share of nominal rows i for which ``is_at_least_as_sparse(query, i)``."""
    return np.array(
        [
            sum(bool(is_at_least_as_sparse(query, i)) for i in range(n_nominal)) / n_nominal
            for query in range(n_queries)
        ]
    )


def p_hat_K(rows, k, queries=None):
    """Equation (2): the share of i with ``R_S(eta) <= R_S(x_i)``."""
    at_rows = neighbors(rows, k)[0][:, -1]
    at_queries = at_rows if queries is None else neighbors(rows, k, queries)[0][:, -1]
    return p_hat(lambda eta, i: at_queries[eta] <= at_rows[i], len(at_queries), len(rows))


def p_hat_epsilon(rows, radius, queries=None):
    """Equation (3): the share of i with ``N_S(eta) >= N_S(x_i)``."""
    at_rows = radius_counts(rows, radius)
    at_queries = at_rows if queries is None else radius_counts(rows, radius, queries)
    return p_hat(lambda eta, i: at_queries[eta] >= at_rows[i], len(at_queries), len(rows))


def resampled_ranks(rows, halves, statistic):
    """Section 6.1: one part is the neighbours of the other and vice versa, averaged over the halvings.

    `statistic(reference, query)` is the sparsity of one row as seen from the reference rows.
    """
    total = np.zeros(len(rows))
    for half in halves:
        for row in range(len(rows)):
            mine = [i for i in range(len(rows)) if half[i] == half[row]]
            other = rows[[i for i in range(len(rows)) if half[i] != half[row]]]
            own = statistic(other, rows[row])
            total[row] += sum(own <= statistic(other, rows[i]) for i in mine) / len(mine)
    return total / len(halves)


# ----------------------------------------------------------------------------------------------- levels


def pairs(levels):
    """All (i, j) with ``levels[i] > levels[j]``."""
    n = len(levels)
    return [(i, j) for i in range(n) for j in range(n) if levels[i] > levels[j]]


def disagreement(scores, levels):
    """Share of pairs in the wrong order, a tie counting one half."""
    preferred = pairs(levels)
    wrong = sum(
        1.0 if scores[i] < scores[j] else 0.5 if scores[i] == scores[j] else 0.0 for i, j in preferred
    )
    return wrong / len(preferred)


# -------------------------------------------------------------------------------------------- pair loss


class SquaredHinge:
    """``max(0, 1 - t)^2``."""

    def value(self, t):
        return (1 - t) ** 2 if t < 1 else 0.0

    def slope(self, t):
        return -2 * (1 - t) if t < 1 else 0.0

    def curvature(self, t):
        return 2.0 if t < 1 else 0.0


def pair_loss(scores, levels, hinge, far_weight=0.0):
    """Loss, gradient and Hessian over all pairs, and over the pairs with the point at infinity.

    That point has score zero and stands below every row, `far_weight` times.
    """
    n = len(scores)
    loss, gradient, hessian = 0.0, np.zeros(n), np.zeros((n, n))
    for i, j in pairs(levels):
        t = scores[i] - scores[j]
        loss += hinge.value(t)
        gradient[i] += hinge.slope(t)
        gradient[j] -= hinge.slope(t)
        curvature = hinge.curvature(t)
        hessian[i, i] += curvature
        hessian[j, j] += curvature
        hessian[i, j] -= curvature
        hessian[j, i] -= curvature
    for i in range(n):
        loss += far_weight * hinge.value(scores[i])
        gradient[i] += far_weight * hinge.slope(scores[i])
        hessian[i, i] += far_weight * hinge.curvature(scores[i])
    return loss, gradient, hessian


class RankSVM:
    """``|w|^2 / 2 + C sum over pairs of phi(f_i - f_j)`` with ``f = Z w``, for a generic optimizer.

    All pairs are rows of one explicit matrix; so are the pairs with the point at infinity.
    """

    def __init__(self, Z, levels, hinge, C, far_weight=0.0):
        preferred = pairs(levels)
        above = Z[[i for i, _ in preferred]].reshape(-1, Z.shape[1])
        below = Z[[j for _, j in preferred]].reshape(-1, Z.shape[1])
        self.differences = np.vstack([above - below, Z])
        self.weights = C * np.concatenate([np.ones(len(preferred)), np.full(len(Z), far_weight)])
        self.hinge = hinge

    def _each(self, what, w):
        return np.array([what(t) for t in self.differences @ w])

    def value(self, w):
        return 0.5 * w @ w + self.weights @ self._each(self.hinge.value, w)

    def gradient(self, w):
        return w + self.differences.T @ (self.weights * self._each(self.hinge.slope, w))

    def hessian(self, w):
        curvature = self.weights * self._each(self.hinge.curvature, w)
        return np.eye(len(w)) + self.differences.T @ (curvature[:, None] * self.differences)

    def newton_decrement(self, w):
        gradient = self.gradient(w)
        return math.sqrt(gradient @ np.linalg.solve(self.hessian(w), gradient))


# ---------------------------------------------------------------------------------------------- kernels


def rbf(x, z, sigma):
    """Remark 2: ``exp(-|x - z|^2 / sigma^2)``; there is no factor two."""
    return math.exp(-sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) / sigma**2)


def rbf_matrix(rows, landmarks, sigma):
    return np.array([[rbf(x, z, sigma) for z in landmarks] for x in rows])


def spread_out(rows, names, keys):
    """k-means++ with one trial a centre, as a race, by SplitMix64 in whole numbers."""
    chosen, weights = [], np.zeros(len(rows))
    for key in keys:
        arrivals = []
        for name, weight in zip(names, weights if weights.any() else np.ones(len(rows)), strict=True):
            bits = (int(key) + (int(name) + 1) * 0x9E3779B97F4A7C15) % 2**64
            bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**64
            bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
            bits = bits ^ bits >> 31
            time = -math.log(((bits >> 12) + 0.5) / 2**52)
            arrivals.append(time / weight if weight else math.inf)
        chosen.append(arrivals.index(min(arrivals)))
        weights = np.min([((rows - rows[other]) ** 2).sum(axis=1) for other in chosen], axis=0)
    return chosen


def kernel_score(x, landmarks, coefficients, widths, reach=math.inf):
    """Kernel sum at one row, less how far away it is, in bandwidths, beyond `reach`.

    That is the mean distance to the three nearest landmarks, or three times that to the nearest if that is
    less; with fewer landmarks, so many instead of three.
    """

    def distance(z):
        return math.sqrt(sum(((a - b) / u) ** 2 for a, b, u in zip(x, z, widths, strict=True)))

    g = sum(a * math.exp(-(distance(z) ** 2)) for a, z in zip(coefficients, landmarks, strict=True))
    nearest = sorted(distance(z) for z in landmarks)[:3]
    far = min(sum(nearest) / len(nearest), len(nearest) * nearest[0])
    return g - max(0.0, far - reach)


# -------------------------------------------------------------------------------------------- selection


def compare_trials(losses, of_rows):
    """Relative losses of trials, and the standard errors of their differences to the least.

    `losses[trial][kind]` are those of the rows held out. A trial's mean loss of a kind, a hundredth added, is
    divided by the least there is of that kind, a hundredth added; its relative loss is the mean over kinds.
    Where losses are not `of_rows`, nothing is known of their errors.
    """
    n_kinds, n_rows = len(losses[0]), len(losses[0][0])
    means = [[sum(of_kind) / n_rows for of_kind in trial] for trial in losses]
    least = [min(trial[kind] for trial in means) + 0.01 for kind in range(n_kinds)]
    relative = [sum((trial[k] + 0.01) / least[k] for k in range(n_kinds)) / n_kinds for trial in means]
    best = relative.index(min(relative))
    errors = []
    for trial in losses:
        gaps = [
            sum((trial[k][row] - losses[best][k][row]) / least[k] for k in range(n_kinds)) / n_kinds
            for row in range(n_rows)
        ]
        mean = sum(gaps) / n_rows
        variance = sum((gap - mean) ** 2 for gap in gaps) / n_rows
        errors.append(math.sqrt(variance / n_rows) if of_rows else 0.0)
    return relative, errors


def excess(row, nominal, unit, reach=4.0):
    """By how many units, beyond `reach`, a row leaves the range of nominal rows in the column of most."""
    found = 0.0
    for column, value in enumerate(row):
        values = [other[column] for other in nominal]
        for outside in (value - max(values), min(values) - value):
            found = max(found, outside / unit[column] - reach)
    return found


# ------------------------------------------------------------------------------------------ calibration


def p_value(nominal, score):
    """``(1 + #{nominal scores <= score}) / (n + 1)``."""
    return (1 + sum(1 for value in nominal if value <= score)) / (len(nominal) + 1)
