import math

import numpy as np
import pytest

import oracles
from rankad.stages.neighbors import nearest_neighbors, radius_counts, random_halves, split_means
from rankad.stages.ranks import (
    auto_neighbors,
    density_ranks,
    knn_statistic,
    neighbors_needed,
    resampled_ranks,
)

STATISTICS = ("kth", "mean", "centred")


def _tables():
    rng = np.random.default_rng(0)
    return {
        "untied": rng.normal(size=(40, 2)),
        "tied": rng.integers(0, 4, size=(40, 2)).astype(float),
        "identical": np.ones((12, 2)),
    }


TABLES = _tables()


# ---------------------------------------------------------------------------------------- the statistic


def test_statistics_by_hand():
    distances = np.array([[1.0, 2.0, 4.0, 8.0, 16.0, 32.0], [0.0, 0.0, 0.0, 1.0, 1.0, 3.0]])
    np.testing.assert_array_equal(knn_statistic(distances, 4, "kth"), [8.0, 1.0])
    np.testing.assert_array_equal(knn_statistic(distances, 4, "mean"), [15 / 4, 1 / 4])
    # K = 4: neighbours 4 - 1 to 4 + 2.
    np.testing.assert_array_equal(knn_statistic(distances, 4, "centred"), [60 / 4, 5 / 4])
    # K = 1: the nearest alone, whatever the statistic.
    for statistic in STATISTICS:
        np.testing.assert_array_equal(knn_statistic(distances, 1, statistic), [1.0, 0.0])


@pytest.mark.parametrize("k", range(1, 15))
def test_centred_mean_is_its_definition(k):
    distances = np.sort(np.random.default_rng(k).exponential(size=(6, k + k // 2)), axis=1)
    expected = [oracles.centred_mean(row, k) for row in distances]
    np.testing.assert_allclose(knn_statistic(distances, k, "centred"), expected, rtol=1e-14)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("k", [1, 2, 5, 20])
def test_what_is_beyond_the_neighbours_needed_is_not_read(statistic, k):
    needed = neighbors_needed(k, statistic)
    assert needed == {"kth": k, "mean": k, "centred": k + k // 2}[statistic]
    distances = np.arange(1.0, needed + 1)[None]
    more = np.hstack([distances, [[1e9]]])
    np.testing.assert_array_equal(knn_statistic(distances, k, statistic), knn_statistic(more, k, statistic))
    # The last one needed is read.
    more[0, needed - 1] += 1
    assert knn_statistic(more, k, statistic)[0] > knn_statistic(distances, k, statistic)[0]


def test_kth_statistic_is_no_view():
    distances = np.ones((2, 3))
    knn_statistic(distances, 2, "kth")[:] = 7
    assert (distances == 1).all()


@pytest.mark.parametrize(("statistic", "k", "needed"), [("kth", 5, 5), ("mean", 5, 5), ("centred", 3, 4)])
def test_too_few_columns_are_named(statistic, k, needed):
    match = rf"statistic='{statistic}' with k={k} reads {needed} neighbour distances a row, .* 3 columns\."
    with pytest.raises(ValueError, match=match):
        knn_statistic(np.ones((2, 3)), k, statistic)


def test_k_below_one_and_unknown_statistic_are_named():
    with pytest.raises(ValueError, match="with k=0 reads"):
        knn_statistic(np.ones((2, 3)), 0, "kth")
    with pytest.raises(ValueError, match=r"statistic must be 'kth', 'mean' or 'centred', got 'median'\."):
        knn_statistic(np.ones((2, 3)), 2, "median")


# ------------------------------------------------------------------------------------------------ ranks


def test_ranks_by_hand():
    np.testing.assert_array_equal(density_ranks([3, 1, 2, 2]), [1.0, 0.25, 0.75, 0.75])
    np.testing.assert_array_equal(density_ranks([0.0, 1.0, 2.5, 9.0], [1.0, 2.0, 3.0]), [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_array_equal(density_ranks(np.zeros(5)), np.ones(5))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("k", [1, 4, 11])
def test_ranks_are_equation_2(name, k):
    rows = TABLES[name]
    distance = nearest_neighbors(rows, k).distances[:, -1]
    np.testing.assert_array_equal(density_ranks(-distance), oracles.p_hat_K(rows, k))
    queries = np.vstack([rows[:4], rows[:6] + 0.5, rows[:1] + 100])
    at_queries = nearest_neighbors(rows, k, queries).distances[:, -1]
    ranks = density_ranks(-at_queries, -distance)
    np.testing.assert_array_equal(ranks, oracles.p_hat_K(rows, k, queries))
    assert ranks[-1] == 0.0  # farther than every nominal row


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("radius", [0.0, 0.5, 1.0, 3.0])
def test_ranks_are_equation_3(name, radius):
    rows = TABLES[name]
    counts = radius_counts(rows, radius)
    np.testing.assert_array_equal(density_ranks(counts), oracles.p_hat_epsilon(rows, radius))
    queries = np.vstack([rows[:6] + 0.5, rows[:1] + 100])
    np.testing.assert_array_equal(
        density_ranks(radius_counts(rows, radius, queries), counts),
        oracles.p_hat_epsilon(rows, radius, queries),
    )


@pytest.mark.parametrize("name", TABLES)
def test_split_form_of_the_paper(name):
    """Queries measured in S_2, nominal rows of S_1 among S_1."""
    rows = TABLES[name]
    first, second = rows[::2], rows[1::2]
    queries = np.vstack([rows[:5] + 0.25, rows[:1] + 100])
    at_queries = oracles.neighbors(second, 3, queries)[0][:, -1]
    at_first = oracles.neighbors(first, 3)[0][:, -1]
    expected = oracles.p_hat(lambda eta, i: at_queries[eta] <= at_first[i], len(queries), len(first))
    ranks = density_ranks(
        -nearest_neighbors(second, 3, queries).distances[:, -1], -nearest_neighbors(first, 3).distances[:, -1]
    )
    np.testing.assert_array_equal(ranks, expected)
    in_ball = oracles.radius_counts(second, 1.0, queries)
    of_first = oracles.radius_counts(first, 1.0)
    expected = oracles.p_hat(lambda eta, i: in_ball[eta] >= of_first[i], len(queries), len(first))
    ranks = density_ranks(radius_counts(second, 1.0, queries), radius_counts(first, 1.0))
    np.testing.assert_array_equal(ranks, expected)


def test_a_denser_row_never_ranks_lower():
    density = np.random.default_rng(1).integers(0, 30, size=200)
    ranks = density_ranks(density)
    order = np.argsort(density)
    assert (np.diff(ranks[order]) >= 0).all()
    assert ranks.max() == 1.0
    assert ranks.min() >= 1 / 200


def test_no_nominal_rows_is_an_error():
    with pytest.raises(ValueError, match=r"nominal must hold at least one row\."):
        density_ranks([1.0], [])


# ------------------------------------------------------------------------------------------- resampling


@pytest.mark.parametrize("name", TABLES)
def test_resampled_ranks_are_the_naive_loops(name):
    rows, k = TABLES[name], 3
    halves = random_halves(len(rows), 3, np.random.default_rng(2))
    ranks = resampled_ranks(-split_means(rows, k, halves), halves)
    expected = oracles.resampled_ranks(
        rows, halves, lambda reference, query: np.sort(oracles.distances_to(reference, query))[:k].mean()
    )
    np.testing.assert_allclose(ranks, expected, rtol=1e-14)


def test_resampled_ranks_are_those_within_each_half():
    """To the last bit, many rows of one density included."""
    rng = np.random.default_rng(12)
    for n, distinct in ((2, 1), (31, 4), (200, 1_000), (400, 50)):
        densities = rng.integers(distinct, size=(6, n)) / 7
        halves = random_halves(n, 6, rng)
        expected = np.zeros(n)
        for density, half in zip(densities, halves, strict=True):
            for side in (half, ~half):
                expected[side] += density_ranks(density[side])
        np.testing.assert_array_equal(resampled_ranks(densities, halves), expected / 6)


@pytest.mark.parametrize("given", [np.ones(3), np.ones(5), np.ones((4, 1)), 1.0])
def test_densities_of_other_rows_are_refused(given):
    halves = np.array([[True, True, False, False]] * 2)
    with pytest.raises(ValueError, match=r"one number for each of 4 rows, got shape .* for halving 1"):
        resampled_ranks([np.ones(4), given], halves)


def test_resampled_ranks_by_hand():
    # First halving: {0, 1} and {2, 3}; second: {0, 2} and {1, 3}.
    halves = np.array([[True, True, False, False], [True, False, True, False]])
    densities = [np.array([1.0, 2.0, 5.0, 5.0]), np.array([3.0, 0.0, 1.0, 0.0])]
    np.testing.assert_array_equal(resampled_ranks(densities, halves), [0.75, 1.0, 0.75, 1.0])


def test_as_many_densities_as_halvings_are_needed():
    halves = random_halves(4, 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="longer"):
        resampled_ranks([np.ones(4)], halves)


# --------------------------------------------------------------------------------------------- choice of K


def test_auto_neighbors_is_the_order_of_theorem_2():
    assert [auto_neighbors(n) for n in (1, 2, 31, 32, 600, 2_000, 100_000)] == [1, 1, 3, 4, 12, 20, 100]


def test_auto_neighbors_rounds_down_exactly():
    # K = floor(n^(2/5)) is the largest K with K^5 <= n^2, in integers.
    for n in [*range(1, 3_000), *(m**5 + shift for m in range(6, 60) for shift in (-1, 0, 1))]:
        assert auto_neighbors(n) == max(K for K in range(1, math.isqrt(n) + 2) if n * n >= K**5)
