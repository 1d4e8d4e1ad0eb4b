import numpy as np
import pytest

import oracles
import rankad.stages.neighbors
from rankad.stages.neighbors import (
    Neighbors,
    nearest_neighbors,
    neighbors_among,
    radius_counts,
    random_halves,
    split_means,
)

METHODS = ("tree", "scan")


def _with_duplicates(rng):
    rows = rng.normal(size=(50, 3))
    rows[rng.permutation(50)[:30]] = rows[0]
    return rows


def _tables():
    """Tables by name; all but the first few are full of ties."""
    rng = np.random.default_rng(0)
    shuffled = np.random.default_rng(1).permutation
    return {
        "one column": rng.normal(size=(40, 1)),
        "two columns": rng.normal(size=(60, 2)),
        "five columns": rng.normal(size=(60, 5)),
        "twelve columns": rng.normal(size=(60, 12)),
        "columns of two clusters far apart": 1e8 * rng.integers(0, 2, size=(60, 2))
        + rng.normal(size=(60, 2)),
        "columns of very different spread": rng.normal(size=(60, 3)) * [1e-6, 1.0, 1e9],
        "one column of integers": rng.integers(0, 8, size=(50, 1)).astype(float),
        "integer grid": shuffled(np.array([[i, j] for i in range(7) for j in range(7)], dtype=float)),
        "integer grid in 6 columns": rng.integers(0, 2, size=(60, 6)).astype(float),
        "60 % duplicates": _with_duplicates(rng),
        "all rows identical": np.full((40, 3), 0.1),
    }


TABLES = _tables()
UNTIED = [name for name in TABLES if "column" in name and "integer" not in name]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("method", METHODS)
def test_distances_equal_the_brute_force_twin(name, method):
    rows = TABLES[name]
    for k in (1, 5, 20, len(rows) - 1):
        found = nearest_neighbors(rows, k, method=method)
        expected = oracles.neighbors(rows, k)[0]
        assert found.distances.shape == found.indices.shape == (len(rows), k)
        np.testing.assert_array_equal(found.distances, expected)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("method", METHODS)
def test_a_row_is_never_its_own_neighbour_and_no_row_is_named_twice(name, method):
    rows = TABLES[name]
    for k in (1, 5, len(rows) - 1):
        distances, indices = nearest_neighbors(rows, k, method=method)
        for row in range(len(rows)):
            assert row not in indices[row]
            assert len(set(indices[row])) == k
            np.testing.assert_array_equal(distances[row], oracles.distances_to(rows[indices[row]], rows[row]))


@pytest.mark.parametrize("name", UNTIED)
@pytest.mark.parametrize("method", METHODS)
def test_indices_equal_the_brute_force_twin_without_ties(name, method):
    found = nearest_neighbors(TABLES[name], 7, method=method)
    np.testing.assert_array_equal(found.indices, oracles.neighbors(TABLES[name], 7)[1])


def _equally_far_but_for_rounding(d):
    """The same numbers in another order of columns: equally far on paper, an ulp apart when summed."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=d)
    return np.vstack([np.zeros(d), *(rng.permutation(numbers) for _ in range(40))])


@pytest.mark.parametrize("d", [3, 4, 8])
@pytest.mark.parametrize("method", METHODS)
def test_distances_do_not_depend_on_the_back_end_where_sums_round_differently(d, method):
    rows = _equally_far_but_for_rounding(d)
    for k in (3, 10):
        found = nearest_neighbors(rows, k, method=method)
        np.testing.assert_array_equal(found.distances, oracles.neighbors(rows, k)[0])


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 8, 9])
def test_distances_do_not_depend_on_the_back_end_on_a_grid_of_tenths(d):
    # 0.3 - 0.2 is not 0.1: ties on paper that rounding breaks, across the many boxes of a large tree.
    rows = 0.1 * np.random.default_rng(d).integers(0, 30 if d < 3 else 6, size=(1_500, d))
    for k in (1, 7, 40):
        tree, scan = (nearest_neighbors(rows, k, method=method).distances for method in METHODS)
        np.testing.assert_array_equal(tree, scan)
    np.testing.assert_array_equal(scan[:20], oracles.neighbors(rows, 41, rows[:20])[0][:, 1:])
    for radius in (0.1, 0.3, 0.1 * np.sqrt(2), 0.5):
        np.testing.assert_array_equal(
            radius_counts(rows, radius, rows[:20]), oracles.radius_counts(rows, radius, rows[:20])
        )


@pytest.mark.parametrize("method", [*METHODS, "auto"])
@pytest.mark.parametrize("d", [1, 2, 9])
def test_queries_form_equals_the_brute_force_twin(method, d):
    rng = np.random.default_rng(2)
    reference = rng.normal(size=(45, d))
    # Rows of the reference among the queries: here they are their own nearest neighbours.
    queries = np.vstack([rng.normal(size=(20, d)), reference[:5]])
    for k in (1, 6, 45):
        found = nearest_neighbors(reference, k, queries, method=method)
        distances, indices = oracles.neighbors(reference, k, queries)
        np.testing.assert_array_equal(found.distances, distances)
        np.testing.assert_array_equal(found.indices, indices)
    assert (nearest_neighbors(reference, 1, queries, method=method).distances[20:] == 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_duplicates_are_at_distance_exactly_zero(method):
    # 0.1 has no exact binary form; a formula with dot products would leave a rest.
    rows = np.vstack([np.full((30, 4), 0.1), np.full((2, 4), 1e6 + 0.1)])
    distances = nearest_neighbors(rows, 20, method=method).distances
    assert (distances[:30] == 0).all()
    assert (distances[30:, 0] == 0).all()
    assert (distances[30:, 1:] > 1e6).all()


@pytest.mark.parametrize("method", METHODS)
def test_neighbors_are_the_same_to_the_last_bit_for_any_number_of_threads(method):
    rng = np.random.default_rng(3)
    rows = np.round(rng.normal(size=(1_300, 3)), 1)  # several blocks, with ties
    one = nearest_neighbors(rows, 9, method=method)
    for n_jobs in (1, 2, 3):
        again = nearest_neighbors(rows, 9, method=method, n_jobs=n_jobs)
        np.testing.assert_array_equal(again.distances, one.distances)
        np.testing.assert_array_equal(again.indices, one.indices)


def test_a_block_of_queries_begins_where_the_last_one_ended():
    # More rows than one block holds: every row must leave out itself and not the row of another block.
    rows = np.arange(1_200.0)[:, None] ** 2
    found = nearest_neighbors(rows, 1, method="scan")
    assert found.indices[0, 0] == 1
    np.testing.assert_array_equal(found.indices[1:, 0], np.arange(1_199))


@pytest.mark.parametrize("largest", [1e200, -1e200, np.inf, np.nan])
@pytest.mark.parametrize("method", METHODS)
def test_rows_too_far_apart_to_square_are_refused(method, largest):
    rows, fine = np.array([[0.0], [largest], [1.0]]), np.array([[0.0], [1.0], [2.0]])
    match = r"Rows must hold finite values of at most 1e\+140, got .*\. Scale the columns first\."
    for reference, queries in ((rows, None), (rows, fine), (fine, rows)):
        with pytest.raises(ValueError, match=match):
            nearest_neighbors(reference, 2, queries, method=method)
        with pytest.raises(ValueError, match=match):
            radius_counts(reference, 1.0, queries)


@pytest.mark.parametrize("method", METHODS)
def test_the_largest_rows_that_are_taken_have_finite_distances(method):
    rows = 1e140 * np.array([[-1.0] * 12, [1.0] * 12, [0.0] * 12])
    np.testing.assert_array_equal(
        nearest_neighbors(rows, 2, method=method).distances, oracles.neighbors(rows, 2)[0]
    )


@pytest.mark.parametrize("k", [0, -1, 5])
def test_k_out_of_range_is_named(k):
    rows = np.zeros((5, 2))
    with pytest.raises(ValueError, match=rf"k must lie between 1 and 4, .* got {k}\."):
        nearest_neighbors(rows, k)


def test_k_may_be_n_with_queries_and_no_more():
    rows = np.arange(5.0)[:, None]
    assert nearest_neighbors(rows, 5, rows).distances.shape == (5, 5)
    with pytest.raises(ValueError, match=r"k must lie between 1 and 5, .* got 6\."):
        nearest_neighbors(rows, 6, rows)


def test_unknown_method_is_named():
    with pytest.raises(ValueError, match=r"method must be 'auto', 'tree' or 'scan', got 'ball'\."):
        nearest_neighbors(np.zeros((5, 2)), 1, method="ball")


# ------------------------------------------------------------------------------- neighbours among some rows


def _some(n, *, share=0.8, seed=15):
    """Positions of some of n rows, in no order."""
    return np.random.default_rng(seed).permutation(n)[: int(share * n)]


def _check_among(found, own, k):
    np.testing.assert_array_equal(found.distances, nearest_neighbors(own, k).distances)
    np.testing.assert_array_equal(found.distances, oracles.neighbors(own, k)[0])
    for row in range(len(own)):
        assert row not in found.indices[row]
        assert len(set(found.indices[row])) == k
        np.testing.assert_array_equal(
            found.distances[row], oracles.distances_to(own[found.indices[row]], own[row])
        )


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("width", [1, 6, 15, "all"])
def test_neighbors_among_some_rows_are_those_of_a_search(name, width):
    rows = TABLES[name]
    known = nearest_neighbors(rows, len(rows) - 1 if width == "all" else width)
    held = Neighbors(known.distances.copy(), known.indices.copy())
    kept = _some(len(rows))
    for k in (1, 5, len(kept) - 1):
        _check_among(neighbors_among(kept, k, rows[kept], known, 1.0), rows[kept], k)
    np.testing.assert_array_equal(known.distances, held.distances)
    np.testing.assert_array_equal(known.indices, held.indices)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("width", [6, 15, "all"])
def test_neighbors_among_some_rows_in_other_units(name, width):
    # Powers of two, by which division is exact: a bound on distances is a bound to the last bit.
    rows = TABLES[name]
    known = nearest_neighbors(rows, len(rows) - 1 if width == "all" else width)
    kept = _some(len(rows))
    for scale in (2.0 ** (np.arange(rows.shape[1]) % 3 - 1), np.full(rows.shape[1], 8.0)):
        own = rows[kept] / scale
        _check_among(neighbors_among(kept, 5, own, known, 1 / scale.max()), own, 5)


@pytest.mark.parametrize("name", UNTIED)
def test_neighbors_among_some_rows_in_units_of_their_own(name):
    rows = TABLES[name]
    kept = _some(len(rows))
    center, scale = rows[kept].mean(axis=0), rows[kept].std(axis=0)
    own = (rows[kept] - center) / scale
    _check_among(neighbors_among(kept, 5, own, nearest_neighbors(rows, 15), 1 / scale.max()), own, 5)


@pytest.fixture
def searched(count_scans):
    """Count the rows whose list proves too short."""
    return count_scans(rankad.stages.neighbors)


def test_no_row_is_searched_for_where_the_lists_are_long_enough(searched):
    rows = np.random.default_rng(16).normal(size=(200, 2))
    kept = _some(200, share=0.95)
    known = nearest_neighbors(rows, 30)
    assert (oracles.neighbors(rows[kept], 10)[0][:, -1] < known.distances[kept, -1]).all()
    _check_among(neighbors_among(kept, 10, rows[kept], known, 1.0), rows[kept], 10)
    assert searched == []


@pytest.mark.parametrize(
    ("table", "width", "shrinkage"),
    [("line", 12, 1.0), ("line", 20, 0.5), ("plane", 9, 1.0), ("plane", 30, 0.5)],
)
def test_only_rows_whose_list_proves_nothing_are_searched_for(searched, table, width, shrinkage):
    rng = np.random.default_rng(17)
    rows = np.arange(60.0)[:, None] if table == "line" else rng.normal(size=(60, 2))
    kept = np.delete(np.arange(60), np.arange(20, 26))
    known = nearest_neighbors(rows, width)
    # A row that is not listed may be as near as this; equally near is near enough to look.
    unseen = shrinkage * known.distances[kept, -1]
    kth = oracles.neighbors(rows[kept], 8)[0][:, -1]
    # A bound that is too low costs searches and changes nothing else.
    _check_among(neighbors_among(kept, 8, rows[kept], known, shrinkage), rows[kept], 8)
    assert len(searched) == 1
    assert searched[0] == (kth >= unseen).sum()
    assert 0 < searched[0] < len(kept)


def test_every_row_is_searched_for_where_lists_are_shorter_than_k(searched):
    rows = np.random.default_rng(18).normal(size=(40, 3))
    kept = _some(40)
    _check_among(neighbors_among(kept, 5, rows[kept], nearest_neighbors(rows, 4), 1.0), rows[kept], 5)
    assert searched == [32]


@pytest.mark.parametrize("shrinkage", [1.0, 1e-3, 0.0])
def test_lists_of_all_other_rows_need_no_proof(searched, shrinkage):
    rows = np.random.default_rng(19).integers(0, 4, size=(50, 2)).astype(float)
    kept, known = _some(50), nearest_neighbors(rows, 49)
    for k in (1, 7, 39):
        _check_among(neighbors_among(kept, k, rows[kept], known, shrinkage), rows[kept], k)
    assert searched == []
    # One row less, and every distance above zero is in doubt.
    neighbors_among(kept, 39, rows[kept], nearest_neighbors(rows, 48), 0.0)
    assert searched == [40]


def test_duplicates_need_no_proof(searched):
    rows = np.repeat(np.random.default_rng(20).normal(size=(4, 3)), 15, axis=0)
    kept, known = np.delete(np.arange(60), [0, 16, 32]), nearest_neighbors(rows, 10)
    found = neighbors_among(kept, 5, rows[kept], known, 1.0)
    assert not found.distances.any()
    _check_among(found, rows[kept], 5)
    assert searched == []


def test_a_row_that_only_other_units_make_the_nearest_is_found(searched):
    # The second column is divided by 100: the row above the origin comes nearer than all that are listed.
    rows = np.vstack([np.column_stack([0.2 * np.arange(11.0), np.zeros(11)]), [[0.0, 10.0], [50.0, 0.0]]])
    known = nearest_neighbors(rows, 6)
    assert 11 not in known.indices[0]
    kept = np.arange(12)
    own = rows[kept] / [1.0, 100.0]
    found = neighbors_among(kept, 2, own, known, 1 / 100)
    assert found.indices[0, 0] == 11
    np.testing.assert_allclose(found.distances[0], [0.1, 0.2], rtol=1e-15)
    _check_among(found, own, 2)
    assert sum(searched) > 0


def test_neighbors_among_names_what_is_wrong():
    rows = np.arange(7.0)[:, None]
    kept, known = np.array([0, 2, 3, 5, 6]), nearest_neighbors(rows, 3)
    for k in (0, -1, 5):
        with pytest.raises(
            ValueError, match=rf"k must lie between 1 and 4, the number of other rows; got {k}\."
        ):
            neighbors_among(kept, k, rows[kept], known, 1.0)
    for value in (1e200, np.inf, np.nan):
        with pytest.raises(ValueError, match=r"Rows must hold finite values of at most 1e\+140, got .*\."):
            neighbors_among(kept, 2, np.where(rows[kept] == 3, value, rows[kept]), known, 1.0)


# ------------------------------------------------------------------------------------- counts in a ball


def test_radius_is_inclusive_and_a_row_does_not_count_itself():
    rows = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0], [10.0, 0.0]])
    np.testing.assert_array_equal(radius_counts(rows, 5.0), [2, 2, 2, 0])
    np.testing.assert_array_equal(radius_counts(rows, np.nextafter(5.0, 0)), [0, 1, 1, 0])
    np.testing.assert_array_equal(radius_counts(rows, 0.0), [0, 1, 1, 0])
    np.testing.assert_array_equal(radius_counts(rows, 5.0, rows), [3, 3, 3, 1])


@pytest.mark.parametrize("name", TABLES)
def test_radius_counts_equal_the_brute_force_twin(name):
    rows = TABLES[name]
    queries = np.vstack([rows[:5], rows[:5] + 0.5])
    # Radii that are distances themselves, so that the boundary is met.
    for radius in (0.0, 1.0, oracles.neighbors(rows, 4)[0][0, 3], oracles.neighbors(rows, 9)[0][5, 8]):
        np.testing.assert_array_equal(radius_counts(rows, radius), oracles.radius_counts(rows, radius))
        np.testing.assert_array_equal(
            radius_counts(rows, radius, queries), oracles.radius_counts(rows, radius, queries)
        )


def test_radius_counts_are_the_same_for_any_number_of_threads():
    rows = np.random.default_rng(4).integers(0, 9, size=(1_300, 2)).astype(float)
    one = radius_counts(rows, 2.0)
    assert one.min() > 0
    np.testing.assert_array_equal(radius_counts(rows, 2.0, n_jobs=2), one)
    np.testing.assert_array_equal(one, radius_counts(rows, 2.0, rows) - 1)


@pytest.mark.parametrize("radius", [-1.0, np.nan, np.inf])
def test_radius_out_of_range_is_named(radius):
    with pytest.raises(ValueError, match=rf"radius must be finite and >= 0, got {radius!r}\."):
        radius_counts(np.zeros((3, 1)), radius)


# --------------------------------------------------------------------------------------------- halvings


@pytest.mark.parametrize("n", [2, 7, 50])
def test_halves_are_halves_and_come_from_the_generator(n):
    halves = random_halves(n, 12, np.random.default_rng(5))
    assert halves.shape == (12, n)
    assert halves.dtype == bool
    assert (halves.sum(axis=1) == n // 2).all()
    np.testing.assert_array_equal(halves, random_halves(n, 12, np.random.default_rng(5)))
    assert (halves != random_halves(n, 12, np.random.default_rng(6))).any()


def test_every_row_is_as_likely_in_either_half_and_so_is_every_pair():
    halves = random_halves(10, 4_000, np.random.default_rng(7))
    tolerance = 4.5 * 0.5 / np.sqrt(4_000)  # 4.5 standard deviations of a binomial share, 55 comparisons
    assert np.abs(halves.mean(axis=0) - 1 / 2).max() < tolerance
    together = (halves[:, :, None] == halves[:, None, :]).mean(axis=0)[np.triu_indices(10, 1)]
    assert np.abs(together - 4 / 9).max() < tolerance


def _means(rows, k, half):
    """Mean distances to the k nearest in the other half, summed from the nearest on."""
    total = np.zeros(len(rows))
    for distances in oracles.split_distances(rows, k, half).T:
        total += distances
    return total / k


@pytest.mark.parametrize("name", TABLES)
def test_split_means_equal_one_query_per_split_exactly(name):
    rows = TABLES[name]
    halves = random_halves(len(rows), 4, np.random.default_rng(8))
    for k in (1, 3, len(rows) // 2):
        means = split_means(rows, k, halves)
        assert means.shape == halves.shape
        for found, half in zip(means, halves, strict=True):
            np.testing.assert_array_equal(found, _means(rows, k, half))


def test_split_means_of_many_random_rows():
    rows = np.random.default_rng(9).normal(size=(150, 4))
    halves = random_halves(150, 3, np.random.default_rng(10))
    for found, half in zip(split_means(rows, 5, halves), halves, strict=True):
        np.testing.assert_array_equal(found, _means(rows, 5, half))


@pytest.fixture
def asked_again(monkeypatch):
    """Count the rows that are asked for a second time."""
    real, numbers = rankad.stages.neighbors.nearest_neighbors, []

    def counting(reference, k, queries=None, **options):
        if queries is not None:
            numbers.append(len(queries))
        return real(reference, k, queries, **options)

    monkeypatch.setattr(rankad.stages.neighbors, "nearest_neighbors", counting)
    return numbers


@pytest.mark.parametrize("k", [2, 12])
@pytest.mark.parametrize("tied", [False, True])
def test_rows_that_the_wide_query_misses_are_asked_again(asked_again, tied, k):
    # Halves that are intervals: deep inside one, none of the 4 k nearest lies in the other.
    rows = np.repeat(np.arange(30.0), 2) if tied else np.sort(np.random.default_rng(11).normal(size=60))
    half = np.arange(60) < 30
    (found,) = split_means(rows[:, None], k, half[None], nearest_neighbors(rows[:, None], min(4 * k, 20)))
    assert sum(asked_again) > 30
    assert len(asked_again) == 2  # both sides
    np.testing.assert_array_equal(found, _means(rows[:, None], k, half))


def test_only_missed_rows_are_asked_again(asked_again):
    rows = np.arange(60.0)[:, None]
    half = np.arange(60) % 2 == 0
    half[:20] = True
    half[40:] = False
    (found,) = split_means(rows, 2, half[None])
    # The 8 nearest of row i are i-4 .. i+4, and 0 .. 8 at the edge.
    indices = oracles.neighbors(rows, 8)[1]
    missed = ((half[indices] != half[:, None]).sum(axis=1) < 2).sum()
    assert 0 < missed < 60
    assert sum(asked_again) == missed
    np.testing.assert_array_equal(found, _means(rows, 2, half))


@pytest.mark.parametrize("width", [1, 5, 30, 59])
def test_a_wide_query_may_be_given_whatever_its_width(asked_again, width):
    rows = np.random.default_rng(12).integers(0, 5, size=(60, 2)).astype(float)
    halves = random_halves(60, 3, np.random.default_rng(13))
    wide = nearest_neighbors(rows, width)
    for found, half in zip(split_means(rows, 4, halves, wide), halves, strict=True):
        np.testing.assert_array_equal(found, _means(rows, 4, half))
    assert sum(asked_again) == 180 if width == 1 else sum(asked_again) < 180
    assert bool(asked_again) == (width < 30)


@pytest.mark.parametrize("width", [1, 3, 4, 6])
def test_rows_with_fewer_than_k_in_the_other_half_are_asked_again_and_no_others(asked_again, width):
    rows = np.random.default_rng(21).normal(size=(80, 2))
    halves = random_halves(80, 4, np.random.default_rng(22))
    indices = oracles.neighbors(rows, width)[1]
    there = (halves[:, indices] != halves[:, :, None]).sum(axis=2)
    # From none to as many as are listed.
    assert set(np.unique(there)) == set(range(width + 1))
    wide = nearest_neighbors(rows, width)
    for found, half in zip(split_means(rows, 4, halves, wide), halves, strict=True):
        np.testing.assert_array_equal(found, _means(rows, 4, half))
    assert sum(asked_again) == (there < 4).sum()
    assert (sum(asked_again) == 320) == (width < 4)


def test_split_means_do_not_need_equal_halves(asked_again):
    rows = np.random.default_rng(14).normal(size=(31, 2))
    half = np.zeros(31, dtype=bool)
    half[[3, 8, 20]] = True
    (found,) = split_means(rows, 3, half[None])
    assert asked_again
    np.testing.assert_array_equal(found, _means(rows, 3, half))


@pytest.mark.parametrize("k", [0, 4])
def test_k_beyond_the_smaller_half_is_named(k):
    rows = np.arange(7.0)[:, None]
    halves = random_halves(7, 2, np.random.default_rng(0))
    with pytest.raises(
        ValueError, match=rf"k must lie between 1 and 3, the size of the smaller half; got {k}\."
    ):
        split_means(rows, k, halves)


@pytest.mark.parametrize("big", [1e5, 1e9])
def test_neighbors_among_rows_whose_rescaling_rounds(big):
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = rng.integers(0, 6, (300, 2)) + big * rng.integers(0, 2, (300, 1))
        kept = np.sort(rng.permutation(300)[:285])
        scale = rows[kept].std(axis=0)
        own = (rows[kept] - rows[kept].mean(axis=0)) / scale
        known = nearest_neighbors(rows, 24)
        found = neighbors_among(kept, 16, own, known, 1 / scale.max())
        np.testing.assert_array_equal(found.distances, nearest_neighbors(own, 16, method="scan").distances)
