"""The mixture of Gaussians: its density, its fit, and what it says of rows left out."""

import math
import pickle

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from rankad import RankAD
from rankad.fitting import sizes
from rankad.fitting.left_out import LeftOut
from rankad.fitting.plan import Plan
from rankad.fitting.task import FitTask
from rankad.scorers.mixture import GaussianMixture, MixturePlan, fit_mixture
from rankad.stages.scaling import fit_scaling


def rows_of(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / math.sqrt(d) + rng.normal(size=d)


def mixture_of(k, d, seed=0):
    rng = np.random.default_rng(seed)
    factors = np.tril(rng.normal(size=(k, d, d)))
    factors[:, np.arange(d), np.arange(d)] = np.exp(0.3 * rng.normal(size=(k, d)))
    return GaussianMixture(rng.normal(size=(k, d)), factors, rng.normal(size=k))


def density_by_scipy(weights, means, covariances, rows):
    """The logarithm of a mixture's density, by another library."""
    parts = [
        np.log(weight) + multivariate_normal(mean, covariance).logpdf(rows).reshape(-1)
        for weight, mean, covariance in zip(weights, means, covariances, strict=True)
    ]
    return logsumexp(parts, axis=0)


@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 2), (20, 10), (5, 33), (2, 64)])
def test_scores_are_their_naive_sum(k, d):
    mixture, rows = mixture_of(k, d), 2 * rows_of(101, d, 1)
    terms = [
        [
            constant - 0.5 * sum(float(gap) ** 2 for gap in factor @ (row - mean))
            for mean, factor, constant in zip(*_parts(mixture), strict=True)
        ]
        for row in rows
    ]
    np.testing.assert_allclose(mixture.score(rows), logsumexp(terms, axis=1), rtol=1e-10, atol=1e-10)


def _parts(mixture):
    return mixture.means, mixture.factors, mixture.constants


def test_each_score_is_of_its_row_alone():
    mixture, rows = mixture_of(7, 6), rows_of(75, 6, 1)
    expected = mixture.score(rows)
    np.testing.assert_array_equal(mixture.score(rows[::-1].copy())[::-1], expected)
    np.testing.assert_array_equal(np.concatenate([mixture.score(row[None]) for row in rows]), expected)
    again = pickle.loads(pickle.dumps(mixture))
    np.testing.assert_array_equal(again.score(rows), expected)


def test_rows_out_of_this_world():
    mixture = mixture_of(3, 2)
    rows = np.array([[np.nan, 0.0], [np.inf, 0.0], [0.0, -np.inf], [1e200, 0.0], [1e5, 0.0], [0.0, 0.0]])
    found = mixture.score(rows)
    assert np.isnan(found[:3]).all()
    assert found[3] == -np.inf
    assert found[3] < found[4] < found[5]


def naive_fit(rows, owners, steps):
    """Expectation and maximization with borrowed rows, one Gaussian and one row at a time."""
    n, d = rows.shape
    shares = np.eye(owners.max() + 1)[owners]
    for step in range(steps + 1):
        sizes = shares.sum(axis=0)
        means = [sum(shares[i, k] * rows[i] for i in range(n)) / sizes[k] for k in range(len(sizes))]
        squares = [
            sum(shares[i, k] * np.outer(rows[i] - means[k], rows[i] - means[k]) for i in range(n))
            for k in range(len(sizes))
        ]
        pooled = sum(squares) / n
        covariances = [
            (own + d * pooled) / (size + d) + 1e-4 * np.eye(d)
            for own, size in zip(squares, sizes, strict=True)
        ]
        if step == steps:
            return sizes / n, means, covariances
        each = np.stack(
            [
                np.log(size / n) + multivariate_normal(mean, covariance).logpdf(rows)
                for size, mean, covariance in zip(sizes, means, covariances, strict=True)
            ],
            axis=1,
        )
        shares = np.exp(each - logsumexp(each, axis=1, keepdims=True))


@pytest.mark.parametrize(("d", "k"), [(1, 2), (3, 1), (4, 3)])
def test_the_fit_has_a_naive_twin(d, k):
    rows = rows_of(60, d)
    owners = np.random.default_rng(2).integers(k, size=60)
    new = 2 * rows_of(20, d, 3)
    expected = density_by_scipy(*naive_fit(rows, owners, 3), new)
    np.testing.assert_allclose(fit_mixture(rows, owners).score(new), expected, rtol=1e-8)


def test_rows_as_they_come_have_the_density_in_their_own_units():
    rows = rows_of(200, 3)
    scaling = fit_scaling(rows, "standard")
    mixture = fit_mixture(scaling.apply(rows), np.zeros(200, dtype=np.int64)).in_units(*scaling)
    covariance = np.cov(rows.T, bias=True) + 1e-4 * np.diag(scaling.scale**2)
    expected = multivariate_normal(rows.mean(axis=0), covariance).logpdf(rows)
    np.testing.assert_allclose(mixture.score(rows), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("most", "shape", "expected"),
    [(20, (2_000, 10), 20), (20, (100, 3), 5), (20, (12, 3), 1), (0, (2_000, 3), 0), (20, (50, 60), 0),
     (20, (239, 60), 0), (20, (240, 60), 12),
     (20, (2_000, 196), 6), (20, (2_000, 900), 0), (3, (2_000, 10), 3)],
)  # fmt: skip
def test_how_many_gaussians(most, shape, expected):
    assert MixturePlan.of(most, np.empty(shape), 0).n_gaussians == expected


def test_one_for_every_twenty_rows():
    found = [MixturePlan.of(20, np.empty((n, 1)), 0).n_gaussians for n in (5, 39, 40, 399, 400, 9_999)]
    assert found == [1, 1, 2, 19, 20, 20]


def test_a_column_that_does_not_vary_tells_rows_that_differ_in_it_and_no_others():
    rows = rows_of(120, 3)
    more = np.column_stack([rows[:, :1], np.zeros(120), rows[:, 1:]])
    plan, names = MixturePlan(1, 11), np.arange(120)
    bare, padded = plan.fit(rows, names), plan.fit(more, names)
    new = np.array([[0.0, 0.0, 0.1, 0.2], [0.3, 0.0, 0.1, 0.2], [0.0, 1.0, 0.1, 0.2]])
    same, other, moved = padded.score(new)
    of_bare = bare.score(new[:, [0, 2, 3]])
    # One Gaussian borrows more rows the more columns there are; that changes sizes by a little.
    np.testing.assert_allclose(same - other, of_bare[0] - of_bare[1], rtol=0.05, atol=1e-3)
    # As far as one row in 120 that had differed: the root of 120 deviations.
    np.testing.assert_allclose(same - moved, 120 / 2, rtol=1e-6)
    still = plan.fit(np.full((30, 2), 3.0), np.arange(30))
    inside, near, far = still.score(np.array([[3.0, 3.0], [3.0, 3.01], [9.0, 1.0]]))
    assert inside > near > far


def test_left_out_scores_are_those_of_mixtures_of_the_others():
    rows, mixtures = rows_of(90, 2), MixturePlan(4, 5)
    task = FitTask.of(Plan.of(RankAD()), rows, np.arange(4))
    found = LeftOut(task, None, None).by_mixture(mixtures, mixtures.fit(rows, np.arange(90)))
    for held in task.deal(sizes.CALIBRATION_FOLDS):
        kept = np.setdiff1d(np.arange(90), held)
        scaling = fit_scaling(rows[kept], "standard", 90)
        expected = mixtures.fit(rows[kept], kept, scaling).score(rows[held])
        np.testing.assert_array_equal(found[held], expected)


def test_scores_are_relative_to_the_median_row():
    """What says how likely rows are in general is a constant, which folds do not share."""
    rows, plan = rows_of(90, 3), MixturePlan(4, 5)
    mixture = plan.fit(rows, np.arange(90))
    assert abs(np.median(mixture.score(rows))) < 1e-9
    # Indicators of which no Gaussian has more than one have next to no variance, and densities are huge.
    cells = np.repeat(np.arange(4), 50)
    bits = np.column_stack([np.random.default_rng(0).normal(size=200), np.eye(4)[cells]])
    for many in (1, 4):
        of_bits = MixturePlan(many, 5).fit(bits, np.arange(200))
        assert abs(np.median(of_bits.score(bits))) < 1e-9


def test_rows_that_break_a_relation_are_told():
    """Near to others in every column, and far from what the columns obey together."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1_000, 2))
    rows = np.column_stack([a, a.sum(axis=1) + 0.1 * rng.normal(size=1_000)])
    mixture = MixturePlan.of(20, rows, 0).fit(rows, np.arange(1_000))
    broken = rows[:100].copy()
    broken[:, 2] += 1.0
    assert mixture.score(broken).max() < np.quantile(mixture.score(rows), 0.01)
