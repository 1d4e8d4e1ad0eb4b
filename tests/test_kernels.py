import math

import numpy as np
import pytest
from scipy import linalg
from sklearn.cluster import KMeans

import oracles
import rankad.stages.kernels
from rankad._loops.wide import squared_distances
from rankad.scorers.kernel import KernelScorer
from rankad.stages.kernels import (
    TOLERANCE,
    KernelMap,
    _draw,
    _exponentiate,
    _k_means,
    _keys,
    _lot,
    _lots,
    _spread_out,
    choose_landmarks,
)

# A kernel value this small may count as zero.
NEGLIGIBLE_VALUE = 1.1e-20

# ----------------------------------------------------------------------------------------------- the kernel


def rbf_kernel(rows, landmarks, sigma):
    """Return all kernel values as `KernelMap` makes them."""
    squared = squared_distances(landmarks, rows)
    return _exponentiate(squared, np.arange(len(squared)), sigma, np.empty(squared.shape)).T


def test_kernel_is_the_papers_without_a_factor_two():
    # Distance 5, sigma 5: exp(-25 / 25).
    value = rbf_kernel(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), 5.0)
    np.testing.assert_allclose(value, [[math.exp(-1)]], rtol=1e-15)
    np.testing.assert_allclose(rbf_kernel(np.array([[1.0]]), np.array([[0.0]]), 0.5), [[math.exp(-4)]])


def test_kernel_equals_the_naive_one():
    rng = np.random.default_rng(0)
    rows, landmarks = rng.normal(size=(20, 3)), rng.normal(size=(7, 3))
    for sigma in (0.1, 1.0, 30.0):
        kernel = rbf_kernel(rows, landmarks, sigma)
        assert kernel.shape == (20, 7)
        np.testing.assert_allclose(
            kernel, oracles.rbf_matrix(rows, landmarks, sigma), rtol=1e-12, atol=NEGLIGIBLE_VALUE
        )


def test_kernel_of_a_row_with_itself_is_exactly_one():
    rows = np.random.default_rng(1).normal(size=(30, 4)) + 1e6
    assert (np.diag(rbf_kernel(rows, rows, 0.3)) == 1.0).all()


def test_only_negligible_values_are_taken_for_zero():
    rows = np.linspace(0, 8, 1_001)[:, None]
    kernel = rbf_kernel(rows, np.zeros((1, 1)), 1.0)[:, 0]
    exact = np.exp(-(rows[:, 0] ** 2))
    assert (kernel[exact > NEGLIGIBLE_VALUE] > 0).all()
    np.testing.assert_allclose(kernel, exact, rtol=1e-12, atol=NEGLIGIBLE_VALUE)
    scorer = KernelScorer(np.zeros((1, 1)), np.ones(1), np.ones(1), far_field=False)
    np.testing.assert_allclose(scorer.score(rows), exact, rtol=1e-12, atol=NEGLIGIBLE_VALUE)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_sigma_out_of_range_is_named(sigma):
    rows = np.zeros((2, 1))
    with pytest.raises(ValueError, match=rf"sigma must be finite and > 0, got {sigma!r}\."):
        rbf_kernel(rows, rows, sigma)
    with pytest.raises(ValueError, match=rf"sigma must be finite and > 0, got {sigma!r}\."):
        KernelMap(rows, rows[:1]).features(sigma)


@pytest.mark.parametrize(("sigma", "elsewhere"), [(1e-200, 0.0), (1e200, 1.0)])
def test_any_finite_positive_sigma_will_do(sigma, elsewhere):
    rows = np.array([[0.0], [1.0]])
    np.testing.assert_array_equal(rbf_kernel(rows, rows, sigma), [[1.0, elsewhere], [elsewhere, 1.0]])


# ---------------------------------------------------------------------------------------------- the features


@pytest.mark.parametrize("sigma", [0.2, 1.0, 5.0])
def test_features_of_all_rows_give_back_the_kernel(sigma):
    rows = np.random.default_rng(2).normal(size=(40, 2))
    Z = KernelMap(rows, rows).features(sigma).rows
    # What is left of K is positive semi-definite, so that no entry is above the largest on its diagonal.
    difference = oracles.rbf_matrix(rows, rows, sigma) - Z @ Z.T
    assert np.linalg.eigvalsh(difference).min() >= -1e-12
    assert np.abs(difference).max() <= TOLERANCE


def test_tolerance_is_small():
    assert 0 < TOLERANCE <= 1e-8


def test_landmarks_that_say_nothing_new_are_left_out():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(60, 2))
    features = KernelMap(rows, np.vstack([rows, rows[:20]])).features(0.05)
    # Twenty landmarks come twice; one of each pair will do.
    assert features.rows.shape == (60, 60)
    coefficients = features.coefficients(rng.normal(size=60))
    assert coefficients.shape == (80,)
    assert np.count_nonzero(coefficients) == 60
    # So wide a kernel is all but a polynomial, of which few terms are seen.
    assert KernelMap(rows, rows).features(100.0).rows.shape[1] < 20


@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_features_are_nystroms(sigma):
    rng = np.random.default_rng(3)
    rows, landmarks = rng.normal(size=(50, 2)), 2 * rng.normal(size=(8, 2))
    features = KernelMap(rows, landmarks).features(sigma)
    assert features.rows.shape == (50, 8)
    between, among = (
        oracles.rbf_matrix(rows, landmarks, sigma),
        oracles.rbf_matrix(landmarks, landmarks, sigma),
    )
    expected = between @ np.linalg.solve(among, between.T)
    np.testing.assert_allclose(features.rows @ features.rows.T, expected, atol=1e-6)
    assert np.abs(expected - oracles.rbf_matrix(rows, rows, sigma)).max() > 0.1  # no longer K itself
    chosen = among[np.ix_(features.chosen, features.chosen)]
    np.testing.assert_allclose(features.factor @ features.factor.T, chosen, atol=1e-12)
    np.testing.assert_array_equal(features.factor, np.tril(features.factor))


@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_coefficients_reproduce_the_features_scores(sigma):
    rng = np.random.default_rng(4)
    rows, landmarks = rng.normal(size=(50, 3)), rng.normal(size=(9, 3))
    features = KernelMap(rows, landmarks).features(sigma)
    w = rng.normal(size=9)
    a = features.coefficients(w)
    np.testing.assert_allclose(oracles.rbf_matrix(rows, landmarks, sigma) @ a, features.rows @ w, atol=1e-9)
    # |w| is the norm of g in the RKHS, but for the jitter.
    norm = a @ oracles.rbf_matrix(landmarks, landmarks, sigma) @ a
    np.testing.assert_allclose(norm, w @ w, rtol=1e-5)


def test_features_of_one_map_at_many_bandwidths():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(20, 2))
    one = KernelMap(rows, rows[:5])
    first = one.features(1.0).rows
    one.features(0.1)
    np.testing.assert_array_equal(one.features(1.0).rows, first)


@pytest.mark.parametrize("sigma", [1e-3, 1e3])
def test_features_where_landmarks_almost_coincide_or_do_not_see_each_other(sigma):
    rows = np.random.default_rng(6).normal(size=(60, 2))
    rows[1] = rows[0] + 1e-12
    features = KernelMap(rows, rows).features(sigma)
    assert np.isfinite(features.rows).all()
    np.testing.assert_allclose(
        features.rows @ features.rows.T, oracles.rbf_matrix(rows, rows, sigma), atol=1e-6
    )


# ---------------------------------------------------------------------------------------------- the landmarks


def test_kmeans_landmarks_are_the_centres_of_clusters():
    rng = np.random.default_rng(11)
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])
    rows = (centres[:, None] + rng.normal(size=(4, 30, 2))).reshape(-1, 2)
    found = choose_landmarks(rows, 4, "kmeans", seed=0)
    means = rows.reshape(4, 30, 2).mean(axis=1)
    np.testing.assert_allclose(found[np.lexsort(found.T)], means[np.lexsort(means.T)], atol=1e-9)


def test_kmeans_covers_the_rows_better_than_random_rows_do():
    rows = np.random.default_rng(12).normal(size=(500, 2))
    costs = {
        method: (oracles.neighbors(choose_landmarks(rows, 20, method, seed=0), 1, rows)[0] ** 2).sum()
        for method in ("kmeans", "random")
    }
    assert costs["kmeans"] < 0.8 * costs["random"]


@pytest.mark.parametrize("d", [1, 3, 20, 100])
@pytest.mark.parametrize("many", [1, 7, 8, 60])
def test_kmeans_is_that_of_scikit_learn(d, many):
    """Which starts from the same rows and ends by the same rule; continuous rows have no ties."""
    rng = np.random.default_rng(40 + d)
    rows = rng.normal(size=(300, d)) * rng.uniform(0.1, 10, size=d) + 5
    start = rows[rng.permutation(300)[:many]]
    theirs = KMeans(many, init=start, n_init=1, max_iter=5, tol=1e-3).fit(rows).cluster_centers_
    np.testing.assert_allclose(_k_means(rows, start), theirs, rtol=1e-10)


def test_kmeans_ends_early_where_nothing_moves(monkeypatch):
    rounds = []
    real = rankad.stages.kernels._nearest_centers
    monkeypatch.setattr(
        rankad.stages.kernels, "_nearest_centers", lambda *given: rounds.append(1) or real(*given)
    )
    rows = np.repeat([[0.0], [10.0]], 5, axis=0) + np.tile(np.arange(5.0), 2)[:, None] / 10
    np.testing.assert_allclose(_k_means(rows, rows[[0, 9]]), [[0.2], [10.2]])
    assert len(rounds) == 2
    # Shifts that are next to nothing end it too: those of one row in a thousand.
    rounds.clear()
    rows = np.sort(np.random.default_rng(41).normal(size=1_000))[:, None]
    halves = np.array([rows[:500].mean(), rows[500:].mean()])[:, None]
    _k_means(rows, halves + 0.003)
    assert len(rounds) == 1


@pytest.mark.parametrize("d", [1, 100])
def test_kmeans_by_hand(d):
    """Rows between two centers go to the first; a center without rows stays."""
    rows, start = (np.repeat(np.array(at)[:, None], d, axis=1) for at in (np.arange(6.0), [0, 9, 2.5, 2.5]))
    # First 0 and 1, nobody, 2 to 5, nobody: 0.5, 9, 3.5, 2.5. Then 2 goes to the last, and 3 stays.
    np.testing.assert_array_equal(_k_means(rows, start), np.repeat([[0.5], [9.0], [4.0], [2.0]], d, axis=1))


def test_random_landmarks_are_distinct_rows():
    rows = np.random.default_rng(13).integers(0, 6, size=(200, 2)).astype(float)
    found = choose_landmarks(rows, 20, "random", seed=0)
    assert found.shape == (20, 2)
    assert len({tuple(row) for row in found}) == 20
    assert {tuple(row) for row in found} <= {tuple(row) for row in rows}


def test_every_distinct_row_is_as_likely_to_be_drawn():
    rows = np.repeat(np.arange(10.0), [91, 1, 1, 1, 1, 1, 1, 1, 1, 1])[:, None]
    drawn = np.concatenate([choose_landmarks(rows, 3, "random", seed=seed) for seed in range(1_000)])
    shares = np.bincount(drawn[:, 0].astype(int), minlength=10) / 1_000
    assert np.abs(shares - 0.3).max() < 4.5 * math.sqrt(0.3 * 0.7 / 1_000)


@pytest.mark.parametrize("method", ["kmeans", "random"])
@pytest.mark.parametrize("asked", [4, 5, 100])
def test_where_distinct_rows_are_few_they_are_the_landmarks(method, asked):
    distinct = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [3.0, 3.0]])
    rows = np.random.default_rng(14).permutation(np.repeat(distinct, 10, axis=0))
    found = choose_landmarks(rows, asked, method, seed=0)
    assert sorted(map(tuple, found)) == sorted(map(tuple, distinct))


@pytest.mark.parametrize("method", ["kmeans", "random"])
def test_landmarks_of_mostly_duplicated_rows(method):
    rng = np.random.default_rng(15)
    rows = np.vstack([np.zeros((180, 2)), rng.normal(size=(20, 2))])
    found = choose_landmarks(rows, 15, method, seed=0)
    assert found.shape == (15, 2)
    assert len(np.unique(found, axis=0)) == 15


@pytest.mark.parametrize("method", ["kmeans", "random"])
def test_landmarks_depend_on_the_seed_alone(method):
    rows = np.random.default_rng(16).normal(size=(100, 2))
    first = choose_landmarks(rows, 10, method, seed=3)
    np.random.seed(0)  # noqa: NPY002  the global state must not matter
    np.testing.assert_array_equal(choose_landmarks(rows, 10, method, seed=3), first)
    assert (choose_landmarks(rows, 10, method, seed=4) != first).any()


def test_wrong_landmarks_are_named():
    rows = np.zeros((3, 1))
    with pytest.raises(ValueError, match=r"n_landmarks must be >= 1, got 0\."):
        choose_landmarks(rows, 0, seed=0)
    with pytest.raises(ValueError, match=r"method must be 'kmeans' or 'random', got 'all'\."):
        choose_landmarks(rows, 2, "all", seed=0)
    for names in (np.arange(2), np.zeros((3, 1), int), np.zeros(3)):
        with pytest.raises(ValueError, match=r"names must be 3 integers, one for each row, got shape"):
            choose_landmarks(rows, 2, seed=0, names=names)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e150])
@pytest.mark.parametrize("method", ["kmeans", "random"])
def test_landmarks_of_what_is_no_place_are_refused(method, value):
    rows = np.random.default_rng(17).normal(size=(30, 2))
    rows[7, 1] = value
    with pytest.raises(ValueError, match=r"Rows must hold finite values of at most 1e\+140, got"):
        choose_landmarks(rows, 5, method, seed=0)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 128, 200])
@pytest.mark.parametrize("sigma", [0.3, 2.0, 30.0])
def test_features_solve_the_triangular_system(size, sigma):
    """As well as SciPy's solver does: to the last bits of what went in, however near to singular."""
    rows = np.random.default_rng(34).normal(size=(300, 3))
    landmarks = rows[:size]
    features = KernelMap(rows, landmarks).features(sigma)
    factor, between = features.factor, rbf_kernel(rows, landmarks[features.chosen], sigma)
    if sigma == 30.0 and size > 1:
        assert np.linalg.cond(factor) > 1e3
    expected = linalg.solve_triangular(factor, between.T, lower=True).T
    np.testing.assert_allclose(features.rows @ factor.T, between, rtol=0, atol=1e-14)
    tolerance = 1e-14 * np.linalg.cond(factor)
    np.testing.assert_allclose(features.rows, expected, rtol=tolerance, atol=tolerance)


# --------------------------------------------------------------------------------------- the start of k-means


def test_lots_are_splitmix64():
    # The first numbers of the generator for the seed 1234567, as printed in many places.
    first = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    expected = [((number >> 12) + 0.5) / 2**52 for number in first]
    assert _lots(np.uint64(1234567), np.arange(4)).tolist() == expected
    assert _lots(np.uint64(1234567), np.array([2, 0])).tolist() == [expected[2], expected[0]]


@pytest.mark.parametrize("bits", [0, 2**64 - 1])
def test_lots_are_above_zero_and_below_one(bits):
    # Back from the generator's last number to the key: the logarithm of what is drawn must be below zero.
    key = bits
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        shifted = key
        for _ in range(3):
            shifted = key ^ shifted >> shift
        key = shifted * pow(factor, -1, 2**64) % 2**64
    key = (key - 0x9E3779B97F4A7C15) % 2**64
    lot = _lot(np.uint64(key), 0)
    assert lot == (2.0**-53 if bits == 0 else 1 - 2.0**-53)
    assert -math.inf < math.log(lot) < 0


def test_starts_equal_the_naive_twins():
    rng = np.random.default_rng(23)
    for d in (1, 2, 5):
        rows, names = rng.normal(size=(40, d)), rng.permutation(90)[:40]
        for keys in rng.integers(2**64, size=(20, 12), dtype=np.uint64):
            found = _spread_out(rows, names, keys)
            np.testing.assert_array_equal(found, oracles.spread_out(rows, names, keys))


def test_first_start_is_any_row_alike():
    rows, names = np.random.default_rng(24).normal(size=(50, 2)) ** 3, np.arange(50)
    found = [_spread_out(rows, names, keys)[0] for keys in _keys(24, 20_000)[:, None]]
    # 4.5 standard deviations of a binomial count with mean 400.
    assert np.abs(np.bincount(found, minlength=50) - 400).max() <= 4.5 * np.sqrt(400 * 0.98)


def test_rows_that_were_not_chosen_may_be_taken_away():
    rng = np.random.default_rng(32)
    rows, keys = rng.normal(size=(200, 3)), _keys(32, 40)
    chosen = _spread_out(rows, np.arange(200), keys)
    kept = np.union1d(chosen, rng.choice(200, size=60, replace=False))
    np.testing.assert_array_equal(kept[_spread_out(rows[kept], kept, keys)], chosen)


@pytest.mark.parametrize("method", ["kmeans", "random"])
def test_nearly_the_same_rows_have_nearly_the_same_landmarks(method):
    """One row in twenty is taken away: landmarks move by less than half as far as those of another seed."""
    rows = np.random.default_rng(33).normal(size=(1_000, 2))
    everyone = np.arange(1_000)
    kept = np.delete(everyone, np.s_[::20])

    whole = [choose_landmarks(rows, 100, method, seed=seed) for seed in range(20)]

    def moved(names, seed, other):
        found = choose_landmarks(rows[names], 100, method, seed=other, names=names)
        return np.median(oracles.neighbors(found, 1, whole[seed])[0])

    assert moved(everyone, 0, 0) == 0
    assert 2 * sum(moved(kept, seed, seed) for seed in range(20)) < sum(
        moved(kept, seed, seed + 20) for seed in range(20)
    )


def test_later_starts_are_drawn_by_their_squared_distance():
    points = np.array([0.0, 0.0, 1.0, 3.0, 7.0])
    names, times = np.arange(5), 20_000
    drawn = np.array([_spread_out(points[:, None], names, _keys(25 + i, 3)) for i in range(times)])
    seen = {}
    for triple in map(tuple, drawn):
        seen[triple] = seen.get(triple, 0) + 1
    shares, variances = [], []
    for i in range(5):
        to_first = (points - points[i]) ** 2
        for j in range(5):
            to_both = np.minimum(to_first, (points - points[j]) ** 2)
            for k in range(5):
                p = to_first[j] / to_first.sum() * to_both[k] / to_both.sum() / 5
                shares.append(seen.pop((i, j, k), 0) / times - p)
                variances.append(p * (1 - p) / times)
    assert not seen
    # 4.5 standard deviations of a binomial share; of the 60 triples 18 name both zeros and never come.
    assert np.count_nonzero(variances) == 42
    assert (np.abs(shares) <= 4.5 * np.sqrt(variances) + 1e-12).all()


@pytest.mark.parametrize("n_draws", [1, 10, 34, 35])
def test_starts_are_distinct_points_among_duplicates(n_draws):
    # 36 points, each once to many times.
    rng = np.random.default_rng(26)
    grid = np.array([[i, j] for i in range(6) for j in range(6)], dtype=float)
    rows = rng.permutation(np.vstack([grid, grid[rng.integers(9, size=400)]]))
    for seed in range(50):
        chosen = _spread_out(rows, np.arange(len(rows)), _keys(seed, n_draws))
        assert len(np.unique(rows[chosen], axis=0)) == n_draws


@pytest.mark.parametrize("least", [1e-3, 1e-12, 1e-300, 5e-324])
def test_weights_may_differ_by_any_order(least):
    """Beside ten large weights, small ones are drawn by their share; too small ones never."""
    weights = np.array([1.0] * 10 + [least] * 90)
    drawn = np.array([_draw(key, np.arange(100), weights) for key in _keys(31, 20_000)])
    counts = np.bincount(drawn, minlength=100)
    shares = weights / weights.sum()
    deviations = np.sqrt(20_000 * shares * (1 - shares))
    assert (np.abs(counts - 20_000 * shares) <= np.maximum(4.5 * deviations, 5 * (least == 1e-3))).all()


def test_where_all_rows_are_at_one_place_any_is_drawn():
    found = _spread_out(np.ones((30, 2)), np.arange(30), _keys(27, 200))
    assert len(np.unique(found)) > 25


@pytest.mark.parametrize("scale", [2.0**-500, 2.0**-300, 2.0**332])
def test_landmarks_keep_their_places_at_any_scale(scale):
    # From 3e-151 to 9e99, and a power of two, so that nothing rounds differently.
    rng = np.random.default_rng(28)
    rows, names, keys = rng.normal(size=(80, 2)), np.arange(80), _keys(28, 20)
    np.testing.assert_array_equal(_spread_out(scale * rows, names, keys), _spread_out(rows, names, keys))
    found = choose_landmarks(scale * rows, 20, seed=0)
    assert len(np.unique(found, axis=0)) == 20
    np.testing.assert_allclose(found / scale, choose_landmarks(rows, 20, seed=0), rtol=1e-9)


@pytest.mark.parametrize("far", [1e-100, 1e100])
def test_landmarks_of_rows_at_two_scales(far):
    # Squares of both scales do not fit into one sum.
    rng = np.random.default_rng(29)
    rows = np.concatenate([rng.normal(size=30), far * rng.normal(size=30)])[:, None]
    for seed in range(5):
        found = choose_landmarks(rows, 12, seed=seed)
        assert found.shape == (12, 1)
        assert np.isfinite(found).all()
        chosen = _spread_out(rows, np.arange(60), _keys(seed, 12))
        assert len(np.unique(rows[chosen])) == 12


def test_every_cluster_far_from_the_others_has_a_landmark_whatever_the_seed():
    rng = np.random.default_rng(30)
    centres = 1_000.0 * np.array([[i, j] for i in range(3) for j in range(3)])
    # Clusters of very different size: rows drawn alike would fall into the large ones.
    sizes = np.array([200, 100, 50, 20, 10, 5, 5, 5, 5])
    rows = np.repeat(centres, sizes, axis=0) + rng.normal(size=(sizes.sum(), 2))
    for seed in range(20):
        found = choose_landmarks(rows, 9, seed=seed)
        assert oracles.neighbors(found, 1, centres)[0].max() < 5


@pytest.mark.parametrize("seed", range(5))
def test_one_landmark_less_than_there_are_distinct_rows(seed):
    rows = np.vstack([np.zeros((300, 2)), np.random.default_rng(31).normal(size=(20, 2))])
    found = choose_landmarks(rows, 20, seed=seed)
    assert found.shape == (20, 2)
    assert len(np.unique(found, axis=0)) == 20


def test_rows_whose_squared_distances_vanish_are_landmarks_all_the_same():
    """Distinct rows at 1e-170 have no squared distances; nothing may be read out of bounds."""
    rows = np.random.default_rng(0).normal(size=(50, 2)) * 1e-170
    found = choose_landmarks(rows, 10, seed=0)
    assert found.shape == (10, 2)
    assert (np.abs(found) <= np.abs(rows).max()).all()
