import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import cKDTree

from rankad._loops.nearest import NEAR, nearest_hubs
from rankad._loops.vectors import in_groups
from rankad.scorers.nearfield import _VISITED, NearField, _few_copies

PLAIN = np.ones(3)


def rows_of(n, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def _by_trees(near, rows):
    """An oracle that looks at all rows."""
    distances, _ = cKDTree(near.rows / near.unit).query(rows / near.unit, NEAR)
    return -distances.mean(axis=1)


def _squared(places, points):
    """Squared distances in float32, column by column, each product rounded before it is added."""
    total = np.zeros((len(points), len(places)), dtype=np.float32)
    for place, point in zip(places.T, points.T, strict=True):
        gap = place[None] - point[:, None]
        total += gap * gap
    return total


def _naively(near, rows):
    """A twin of the search: the same hubs, cells and precision, one row after another."""
    hubs = near.rows[: near.n_hubs]
    center = np.sort(hubs, axis=0)[near.n_hubs // 2]
    far = np.abs((hubs - np.median(hubs, axis=0)) / near.unit).max(axis=1)
    size = np.sort(far)[int(0.9 * (len(far) - 1))]
    places, points = (((of - center) / (near.unit * size)).astype(np.float32) for of in (near.rows, rows))
    hubs = places[: near.n_hubs]
    owners = _squared(hubs, places).argmin(axis=1)
    visited = np.argsort(_squared(hubs, points), axis=1)[:, :_VISITED]
    scores = np.empty(len(rows))
    for at, point in enumerate(points):
        seen = places[np.isin(owners, visited[at])]
        least = np.sort(_squared(seen, point[None])[0])[:NEAR]
        scores[at] = -size * np.sqrt(least.astype(np.float64)).mean()
    return scores


@pytest.mark.parametrize("d", [1, 3, 17])
def test_few_rows_are_all_looked_at(d):
    """Of 200 rows there are four hubs at most, and all cells are visited: the nearest rows themselves."""
    near = NearField.of(rows_of(200, d), np.linspace(1, 5, d))
    assert near.n_hubs == (_VISITED if d <= 10 else 2)
    others = 2 * rows_of(200, d, 2)
    np.testing.assert_allclose(near.score(others), _by_trees(near, others), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("n", "d"), [(3_000, 2), (7_001, 5), (2_000, 40)])
def test_the_search_has_a_naive_twin(n, d):
    near = NearField.of(rows_of(n, d), np.linspace(0.2, 3, d))
    assert near.n_hubs == n // max(50, 5 * d)
    others = 1.5 * rows_of(203, d, 2)
    np.testing.assert_allclose(near.score(others), _naively(near, others), rtol=2e-6)


def test_most_nearest_rows_are_found():
    near = NearField.of(rows_of(50_000), PLAIN)
    others = rows_of(2_000, seed=2)
    found, exact = near.score(others), _by_trees(near, others)
    assert (found <= exact + 1e-6).all(), "no row is nearer than the nearest"
    assert np.mean(found >= exact - 1e-6) >= 0.9


def test_each_score_is_of_its_row_alone():
    near = NearField.of(rows_of(3_000), PLAIN)
    rows = rows_of(203, seed=2)
    expected = near.score(rows)
    np.testing.assert_array_equal(near.score(rows[::-1])[::-1], expected)
    np.testing.assert_array_equal(np.concatenate([near.score(row[None]) for row in rows]), expected)


def test_what_is_kept_answers_the_same():
    near = NearField.of(rows_of(3_000), PLAIN)
    rows = rows_of(500, seed=2)
    for again in (pickle.loads(pickle.dumps(near)), replace(near)):
        np.testing.assert_array_equal(again.score(rows), near.score(rows))
    assert len(pickle.dumps(near)) < 3_000 * 3 * 8 + 2_000, "rows, and nothing that follows from them"


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_common_offset_costs_no_digits(offset):
    rows, others = rows_of(3_000), rows_of(100, seed=1)
    near = NearField.of(rows + offset, PLAIN)
    plain = NearField.of(rows, PLAIN)
    np.testing.assert_allclose(near.score(others + offset), plain.score(others), rtol=0, atol=1e-4)


@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1e140])
def test_units_do_not_matter(unit):
    rows, others = rows_of(3_000), rows_of(100, seed=1)
    near = NearField.of(unit * rows, unit * PLAIN)
    plain = NearField.of(rows, PLAIN)
    np.testing.assert_allclose(near.score(unit * others), plain.score(others), rtol=1e-5)


@pytest.mark.parametrize("value", [1e25, 1e100, 1.7e308, np.inf, -np.inf, np.nan])
def test_rows_out_of_this_world_score_least(value):
    near = NearField.of(rows_of(3_000), PLAIN)
    far, usual = near.score(np.array([[0.0, value, 0.0], [0.0, 0.0, 1e3]]))
    assert np.isfinite(far)
    assert far < usual


def test_a_wild_nominal_row_is_no_harm():
    rows, others = rows_of(3_000), rows_of(100, seed=1)
    wild = rows.copy()
    wild[7, 1] = 1e60
    near, plain = (NearField.of(some, PLAIN) for some in (wild, rows))
    assert np.corrcoef(near.score(others), plain.score(others))[0, 1] > 0.99


def test_copies_are_left_out_and_are_no_hubs():
    """Half of the rows are one: five of it do as well as all, and one of these at most is a hub."""
    rows = rows_of(6_000)
    rows[::2] = 0.25
    near = NearField.of(rows, PLAIN)
    assert len(near.rows) == 3_000 + NEAR
    assert len(np.unique(near.rows[: near.n_hubs], axis=0)) == near.n_hubs
    at_copies, *others = near.score(np.array([[0.25] * 3, [0.26] * 3, [0.0, 0.1, 0.0]]))
    assert at_copies == 0 > max(others)


def test_copies_by_hand():
    rows = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, 2.0], [0.0, 0.0], [2.0, 1.0]])
    kept, n_distinct = _few_copies(rows, 2)
    assert (kept.tolist(), n_distinct) == ([0, 1, 4, 2, 5], 3)


def test_small_integers_are_told_apart():
    """Their low bits are all zero: a mere sum of products would take many for the same."""
    grid = np.stack(np.meshgrid(*[np.arange(47.0)] * 3), axis=-1).reshape(-1, 3)
    assert _few_copies(grid, 1)[1] == len(grid)


@pytest.mark.parametrize("rows", [np.zeros((2_000, 3)), np.full((2_000, 3), 1e100)])
def test_rows_that_are_all_alike_are_at_no_distance(rows):
    near = NearField.of(rows, PLAIN)
    assert (near.score(rows[:50]) == 0).all()
    assert near.score(rows[:1] * 2 + 1) < 0


@pytest.mark.parametrize("n_hubs", [1, 5, 64, 200])
@pytest.mark.parametrize("many", [1, 4, NEAR])
def test_nearest_hubs_are_those_of_a_full_sort(n_hubs, many):
    hubs, rows = rows_of(n_hubs), rows_of(30, seed=1)
    places = np.empty((len(rows), many), dtype=np.int64)
    nearest_hubs(rows, np.zeros(3), np.ones(3), in_groups(hubs, np.float32), places)
    squared = _squared(hubs.astype(np.float32), rows.astype(np.float32))
    np.testing.assert_array_equal(places[:, 0], squared.argmin(axis=1))
    n_found = min(many, n_hubs)
    np.testing.assert_array_equal(
        np.sort(places, axis=1)[:, many - n_found :],
        np.sort(np.argsort(squared, axis=1, kind="stable")[:, :n_found], axis=1),
    )
    assert (np.sort(places, axis=1)[:, : many - n_found] == -1).all()


@pytest.mark.parametrize("many", [1, 2, 4, NEAR])
def test_no_hub_is_left_out_for_others_that_are_as_far_as_the_last(many):
    """On a grid most distances come several times; which of these is named is open."""
    rng = np.random.default_rng(many)
    for d in (1, 2, 3, 6):
        hubs = np.unique(rng.integers(0, 4, (40, d)), axis=0).astype(float)
        hubs = rng.permutation(hubs)
        rows = rng.integers(0, 4, (50, d)).astype(float)
        places = np.empty((len(rows), many), dtype=np.int64)
        nearest_hubs(rows, np.zeros(d), np.ones(d), in_groups(hubs, np.float32), places)
        squared = _squared(hubs.astype(np.float32), rows.astype(np.float32))
        n_found = min(many, len(hubs))
        for row, found in zip(squared, places, strict=True):
            named = found[found >= 0]
            assert len(set(named)) == n_found
            np.testing.assert_array_equal(np.sort(row[named]), np.sort(row)[:n_found])
            assert row[found[0]] == row.min()


def test_hubs_at_one_distance_are_each_named_once():
    hubs = np.vstack([np.eye(3), -np.eye(3)])
    places = np.empty((1, 4), dtype=np.int64)
    nearest_hubs(np.zeros((1, 3)), np.zeros(3), np.ones(3), in_groups(hubs, np.float32), places)
    assert len(set(places[0].tolist())) == 4
    assert set(places[0].tolist()) <= set(range(6))


def test_no_hub_at_a_finite_distance_is_none():
    places = np.empty((3, 2), dtype=np.int64)
    rows = np.array([[np.nan, 0.0, 0.0], [1e300, 0.0, 0.0], [np.inf, 0.0, 0.0]])
    with np.errstate(over="ignore"):
        nearest_hubs(rows, np.zeros(3), np.ones(3), in_groups(rows_of(9), np.float32), places)
    assert (places == -1).all()
