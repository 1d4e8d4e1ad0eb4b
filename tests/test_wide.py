import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

import oracles
import rankad._loops.wide
from rankad import RankAD
from rankad._loops.nearest import scan
from rankad._loops.vectors import in_groups
from rankad._loops.wide import WIDE, Placed, nearest_wide, squared_distances
from rankad.stages.kernels import KernelMap, _spread_out, choose_landmarks
from rankad.stages.neighbors import nearest_neighbors, neighbors_among

N = 90


def _tables():
    """Wide tables by name, each of `N` rows."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(N, 80))
    one_hot = np.hstack([np.eye(12)[rng.integers(0, 12, N)] for _ in range(6)])
    duplicated = rng.normal(size=(N, 70))
    duplicated[rng.permutation(N)[:50]] = duplicated[0]
    constant = rng.normal(size=(N, 70))
    constant[:, ::3] = 0.1
    numbers = rng.normal(size=66)
    outlier = rng.normal(size=(N, 65))
    outlier[3, 2] = 1e30
    return {
        "normal": normal,
        "one column beyond the narrow": rng.normal(size=(N, WIDE + 1)),
        "offsets of 1e8": normal + 1e8,
        "offsets of 1e15": 100 * normal + 1e15,
        "means of 1e8 by column": normal + 1e8 * rng.normal(size=80),
        "two clusters far apart": normal + 1e8 * rng.integers(0, 2, size=(N, 1)),
        "two clusters apart": normal + 1e3 * rng.integers(0, 2, size=(N, 1)),
        "columns of very different spread": normal * 10.0 ** rng.integers(-9, 9, size=80),
        "heavy tails": rng.standard_cauchy(size=(N, 80)) ** 3,
        "an outlier": outlier,
        "scale of 1e-30": 1e-30 * normal,
        "scale of 1e-138": 1e-138 * normal,
        "scale of 1e-158, where squares lose digits": 1e-158 * normal,
        "scale of 1e-200, where squares vanish": 1e-200 * normal,
        "rows of two scales": normal * np.where(np.arange(N) < 45, 1.0, 1e-30)[:, None],
        "scale of 1e139": np.clip(1e139 * normal, -1e140, 1e140),
        "one-hot": one_hot,
        "one-hot, standardized": (one_hot - one_hot.mean(axis=0)) / one_hot.std(axis=0),
        "bits": rng.integers(0, 2, size=(N, 70)).astype(float),
        "tenths": 0.1 * rng.integers(0, 3, size=(N, 70)),
        "equally far but for rounding": np.vstack(
            [0 * numbers, *(rng.permutation(numbers) for _ in range(N - 1))]
        ),
        "duplicates": duplicated,
        "constant columns": constant,
        "all rows identical": np.full((N, 70), 0.1),
        "all zero": np.zeros((N, 70)),
    }


TABLES = _tables()


@pytest.fixture
def scanned(count_scans):
    """Count the queries that products did not answer."""
    return count_scans(rankad._loops.wide)


def _check(found, reference, k, queries=None, twin=None):
    """Hold neighbours against the brute-force twin and, for which of equally near rows is named, the scan.

    The twin's distances may be given, of as many neighbours or of more.
    """
    if twin is None:
        twin = oracles.neighbors(reference, k, queries)[0]
    np.testing.assert_array_equal(found.distances, twin[:, :k])
    own, asked = queries is None, reference if queries is None else queries
    groups, everyone = in_groups(reference, np.float64), np.arange(len(asked))
    distances, indices = scan(groups, len(reference), asked, everyone, k, own)
    np.testing.assert_array_equal(found.distances, distances)
    np.testing.assert_array_equal(found.indices, indices)


@pytest.mark.parametrize("name", TABLES)
def test_neighbors_of_wide_rows_equal_the_brute_force_twins(name):
    twin = oracles.neighbors(TABLES[name], N - 1)[0]
    for k in (1, 5, 25, N - 1):
        _check(nearest_neighbors(TABLES[name], k), TABLES[name], k, twin=twin)


@pytest.mark.parametrize("name", TABLES)
def test_neighbors_of_wide_queries_equal_the_brute_force_twins(name):
    reference, rng = TABLES[name], np.random.default_rng(1)
    # Rows of the table, rows between these, and rows at the centre and far out.
    between = 0.5 * (reference + reference[rng.permutation(N)])
    center = np.tile(reference.mean(axis=0), (3, 1))
    queries = np.vstack([reference[:40], between[:40], center, np.clip(1e6 * reference[:3], -1e140, 1e140)])
    twin = oracles.neighbors(reference, 7, queries)[0]
    for k in (1, 7):
        _check(nearest_neighbors(reference, k, queries), reference, k, queries, twin)


def test_neighbors_of_wide_rows_equal_scikit_learns():
    rows = np.random.default_rng(2).normal(size=(1_200, 200)) + 5
    distances, indices = NearestNeighbors(n_neighbors=10, algorithm="brute").fit(rows).kneighbors()
    found = nearest_neighbors(rows, 10)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-9)
    np.testing.assert_array_equal(found.indices, indices)


@pytest.mark.parametrize("name", ["normal", "offsets of 1e8", "scale of 1e-30", "one-hot, standardized"])
def test_products_answer_ordinary_queries(scanned, name):
    nearest_neighbors(TABLES[name], 5)
    assert sum(scanned) <= N // 10


@pytest.mark.parametrize(
    "name", ["two clusters far apart", "all rows identical", "scale of 1e-158, where squares lose digits"]
)
def test_queries_that_products_cannot_answer_are_left_to_the_scan(scanned, name):
    nearest_neighbors(TABLES[name], 5)
    assert sum(scanned) == N


def test_few_queries_and_many_neighbours_are_left_to_the_scan(scanned):
    rows = TABLES["normal"]
    nearest_neighbors(rows, 5, rows[:10])
    nearest_neighbors(rows, N // 2)
    assert scanned == [10, N]


@pytest.mark.parametrize("name", ["normal", "tenths", "two clusters apart", "duplicates"])
def test_wide_neighbors_are_the_same_to_the_last_bit_for_any_number_of_threads(name):
    rng = np.random.default_rng(3)
    rows = TABLES[name][rng.integers(0, N, 1_300)]
    rows = rows + 0.1 * rng.integers(0, 3, size=rows.shape)
    one = nearest_wide(rows, rows, 9, True, 1)
    for n_jobs in (2, 3):
        for found, same in zip(nearest_wide(rows, rows, 9, True, n_jobs), one, strict=True):
            np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("name", TABLES)
def test_neighbors_among_some_wide_rows_are_those_of_a_search(name):
    rows = TABLES[name]
    kept = np.random.default_rng(4).permutation(N)[:80]
    found = neighbors_among(kept, 6, rows[kept], nearest_neighbors(rows, 12), 1.0)
    _check(found, rows[kept], 6)


# -------------------------------------------------------------------------------------- bounds of products


def _exact(rows, others):
    """Squared distances in long doubles."""
    gaps = rows.astype(np.longdouble)[:, None] - others.astype(np.longdouble)
    return (gaps**2).sum(axis=2)


@pytest.mark.parametrize("name", TABLES)
def test_products_are_off_by_no_more_than_their_slack(name):
    rows = TABLES[name]
    placed = Placed.of(rows)
    if placed is None:
        assert np.abs(rows).max() < 1e-139
        return
    [placed] = placed
    assert np.abs(placed.rows).max() <= 1
    assert np.log2(placed.unit) % 1 == 0
    sums = (placed.squares[:, None] + placed.squares).astype(np.float64)
    off = sums - 2.0 * (placed.rows @ placed.rows.T) - _exact(rows, rows) * placed.unit**2
    bound = placed.slack * sums + placed.underflow
    # The slack allows for what else is rounded: less than half of it is due to products.
    assert (np.abs(off) <= 0.5 * bound).all()


# --------------------------------------------------------------------------------------- squared distances


@pytest.mark.parametrize("name", TABLES)
def test_squared_distances_of_wide_rows_are_accurate(name):
    rows = TABLES[name]
    others = np.vstack([rows[::3], 0.5 * (rows[:20] + rows[40:60]), rows[:5] + 1e-7 * rows[5:10]])
    found, exact = squared_distances(rows, others), _exact(rows, others)
    np.testing.assert_allclose(found, exact.astype(np.float64), rtol=2e-10, atol=1e-310)
    equal = (rows[:, None] == others).all(axis=2)
    assert equal.any()
    assert (found[equal] == 0).all()
    assert (found >= 0).all()


def test_squared_distances_of_rows_that_are_not_wide_are_scipys_to_the_last_bit():
    rows = np.random.default_rng(5).normal(size=(50, WIDE)) + 100
    np.testing.assert_array_equal(squared_distances(rows, rows[:20]), cdist(rows, rows[:20], "sqeuclidean"))


@pytest.mark.parametrize(
    "name", ["normal", "offsets of 1e8", "two clusters far apart", "duplicates", "one-hot"]
)
def test_features_of_wide_rows_give_back_the_kernel(name):
    rows = TABLES[name]
    distances = oracles.neighbors(rows, 5)[0]
    for sigma in (0.5, 1.0, 4.0):
        sigma *= distances.mean()
        features = KernelMap(rows, rows).features(sigma).rows
        np.testing.assert_allclose(features @ features.T, oracles.rbf_matrix(rows, rows, sigma), atol=1e-6)


# ------------------------------------------------------------------------------------------- start of k-means


@pytest.mark.parametrize("name", [name for name in TABLES if "1e-158" not in name])
def test_starts_among_wide_rows_equal_the_naive_twins(name):
    rows, names = TABLES[name], np.arange(len(TABLES[name]))
    for keys in np.random.default_rng(6).integers(2**64, size=(5, 20), dtype=np.uint64):
        found = _spread_out(rows, names, keys)
        np.testing.assert_array_equal(found, oracles.spread_out(rows, names, keys))


def test_wide_landmarks_are_distinct_among_duplicates():
    rows = np.random.default_rng(7).permutation(np.repeat(TABLES["normal"][:30], 20, axis=0))
    found = choose_landmarks(rows, 25, seed=0)
    assert len(np.unique(found, axis=0)) == 25
    assert len(choose_landmarks(rows, 30, seed=0)) == 30


def test_distinct_rows_are_counted_beyond_the_first_few():
    rows = np.vstack([np.zeros((60, 70)), TABLES["normal"][:20, :70]])
    assert len(choose_landmarks(rows, 21, seed=0)) == 21
    assert len(choose_landmarks(rows, 30, seed=0)) == 21
    assert len(choose_landmarks(rows, 15, seed=0)) == 15


# ---------------------------------------------------------------------------------------------- the detector


# The rows are drawn with replacement, so that many come more than once.
@pytest.mark.filterwarnings("ignore:Calibrated by a split:UserWarning")
@pytest.mark.parametrize("name", ["one-hot", "offsets of 1e8", "two clusters apart"])
def test_wide_fits_are_the_same_for_any_number_of_jobs_and_rows_score_alike_alone(few_folds, name):
    rng = np.random.default_rng(8)
    rows = TABLES[name][rng.integers(0, N, 200)] + 0.1 * rng.normal(size=TABLES[name].shape[1])
    one, two = (RankAD(random_state=0, landmarks=40, n_jobs=n_jobs).fit(rows) for n_jobs in (1, 2))
    new = np.vstack([rows[:20], TABLES[name][:20]])
    scores = one.score_samples(new)
    np.testing.assert_array_equal(two.score_samples(new), scores)
    np.testing.assert_array_equal(two.calibration_.scores, one.calibration_.scores)
    np.testing.assert_array_equal([one.score_samples(row[None])[0] for row in new], scores)


def test_offsets_do_not_matter_to_a_wide_fit(few_folds):
    rng = np.random.default_rng(9)
    # Whole numbers: an offset of a power of two is added without rounding.
    rows, new = (rng.binomial(20, 0.5, size=(n, 80)).astype(float) for n in (200, 50))
    # Selection is among few and may hang on the last bit; both have the same kernel.
    detector = RankAD(random_state=0, landmarks=40, n_jobs=1, bandwidth="D_K", C=0.05)
    near, far = (clone(detector).fit(rows + by) for by in (0.0, 2.0**27))
    np.testing.assert_allclose(far.p_values(new + 2.0**27), near.p_values(new), atol=0.02)
