"""Rows that repeat: by accident, which is found, and by nature, which is left alone."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from rankad import KLPE, EpsilonLPE, RankAD
from rankad.stages.copies import count_places, find_repeats, row_variates


def rows_of(n, d=3, seed=0):
    return np.random.default_rng([4, n, seed]).normal(size=(n, d))


@pytest.mark.parametrize("times", [2, 3, 5, 10])
@pytest.mark.parametrize("n", [12, 100, 3_000])
def test_every_row_several_times_leaves_each_once(n, times):
    rows = np.random.default_rng(0).permutation(np.repeat(rows_of(n), times, axis=0))
    found = find_repeats(rows)
    assert found.n_repeated == n
    left = np.delete(rows, found.copies, axis=0)
    np.testing.assert_array_equal(np.unique(left, axis=0), np.unique(rows, axis=0))
    assert len(left) == n


def test_some_rows_twice_are_found_and_the_first_of_each_stays():
    rows = np.vstack([rows_of(200), rows_of(200)[:60]])
    np.testing.assert_array_equal(find_repeats(rows).copies, np.arange(200, 260))


@pytest.mark.parametrize("noise", [1e-12, 1e-9, 6e-8])
def test_copies_that_were_rounded_on_the_way_are_copies(noise):
    rows = rows_of(300)
    copies = rows * (1 + noise * np.random.default_rng(1).uniform(-1, 1, size=rows.shape))
    assert find_repeats(np.vstack([rows, copies])).n_repeated >= 295


LAWS = {
    "continuous": lambda n, rng: rng.normal(size=(n, 2)),
    "6 bits": lambda n, rng: rng.integers(0, 2, (n, 6)).astype(float),
    "digits": lambda n, rng: rng.integers(0, 10, (n, 3)).astype(float),
    "counts": lambda n, rng: rng.poisson(2.0, (n, 2)).astype(float),
    "one of few rows": lambda n, rng: np.random.default_rng(5).normal(size=(n // 5, 3))[
        rng.integers(0, n // 5, n)
    ],
    "one of many rows": lambda n, rng: np.random.default_rng(5).normal(size=(n, 3))[rng.integers(0, n, n)],
    "mostly zero": lambda n, rng: np.where(rng.random((n, 1)) < 0.9, 0.0, rng.normal(size=(n, 3))),
    "rounded": lambda n, rng: np.round(rng.normal(size=(n, 1)), 2),
}


@pytest.mark.parametrize("name", LAWS)
def test_independent_rows_are_rarely_taken_for_copies(name):
    """The level is 5 %, or 1 % where there is much to lose; beyond 10 of 60 once in 10,000."""
    found = [
        find_repeats(LAWS[name](n, np.random.default_rng([n, fit])))
        for n in (50, 300, 1_000)
        for fit in range(20)
    ]
    assert sum(repeats.copies.size > 0 for repeats in found) <= 10


def test_of_few_rows_copies_are_those_that_share_no_value_with_another_row():
    rows = rows_of(15)
    np.testing.assert_array_equal(find_repeats(np.vstack([rows, rows[:5]])).copies, np.arange(15, 20))
    rounded = np.column_stack([rows[:, 0].round(1), np.arange(15) % 4])
    assert find_repeats(np.vstack([rounded, rounded[:5]])).copies.size == 0, "a value of each is common"
    zeros = np.where(np.arange(20)[:, None] < 16, 0.0, rows_of(20))
    assert find_repeats(zeros).copies.size == 0, "a row that comes so often does so by nature"
    assert find_repeats(rows_of(20, d=1)[[*range(20), 0, 1]]).copies.size == 0, "one column tells nothing"


@pytest.mark.parametrize("detector", [RankAD(scaling="standard", bandwidth="D_K", C=0.05), KLPE()], ids=repr)
def test_repeated_rows_change_nothing_but_are_said(detector):
    rows, new = rows_of(120), rows_of(50, seed=1)
    once = detector.set_params(random_state=0).fit(rows).p_values(new)
    with pytest.warns(UserWarning, match="120 of 120 different rows come more than once.*Drop repeated rows"):
        detector.fit(np.vstack([rows, rows]))
    np.testing.assert_array_equal(detector.p_values(new), once)
    if isinstance(detector, RankAD):
        np.testing.assert_array_equal(detector.repeated_rows_, np.arange(120, 240))
        assert detector.training_rows_.max() < 120
        assert detector.n_samples_fit_ == 240


def test_too_few_different_rows_are_refused():
    with pytest.raises(ValueError, match="only 7 different rows, each several times; at least 8"):
        RankAD().fit(np.repeat(rows_of(7), 3, axis=0))


def test_variates_belong_to_rows_and_look_uniform():
    rows = rows_of(20_000)
    found = row_variates(rows)
    order = np.random.default_rng(0).permutation(len(rows))
    np.testing.assert_array_equal(row_variates(rows[order]), found[order])
    np.testing.assert_array_equal(row_variates(np.array([[0.0]])), row_variates(np.array([[-0.0]])))
    assert np.abs(np.sort(found) - np.linspace(0, 1, len(rows))).max() < 1.95 / np.sqrt(len(rows)), (
        "Kolmogorov"
    )


def places_of(rows, k):
    tree = cKDTree(rows)
    indices = tree.query(rows, k + 1)[1]
    # A row's copies come in any order, itself among them.
    others = [[j for j in found if j != i][:k] for i, found in enumerate(indices)]
    apart = np.array([[np.linalg.norm(rows[i] - rows[j]) for j in found] for i, found in enumerate(others)])
    return count_places(apart, np.array(others))


def test_places_are_counted_at_any_scale():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 3))
    which = np.repeat(np.arange(12), 10)
    for width in (0.0, 1e-12, 1e-3):
        assert places_of(centres[which] + width * rng.normal(size=(120, 3)), 40) == 12
    assert places_of(centres[which] + rng.normal(size=(120, 3)), 40) == 120
    assert places_of(np.zeros((30, 2)), 29) == 1
    # Two scales: the larger gap counts.
    nested = np.array([[c + p + e] for c in (0.0, 1e6) for p in (0.0, 1.0) for e in (0.0, 1e-6)])
    assert places_of(nested, 7) == 2


@pytest.mark.parametrize("detector", [RankAD(random_state=0), KLPE(), EpsilonLPE()])
def test_few_rows_in_few_places_are_calibrated_by_a_split(detector):
    rng = np.random.default_rng(1)
    clusters = rng.normal(size=(30, 3))[rng.integers(0, 30, 150)] + 1e-4 * rng.normal(size=(150, 3))
    with pytest.warns(UserWarning, match=r"by a split.*150 rows lie in only (29|30) places"):
        detector.fit(clusters)
    assert detector.calibration_.kind == "split"
    detector.fit(rng.normal(size=(150, 3)))
    assert detector.calibration_.kind != "split"


@pytest.mark.parametrize("detector", [RankAD(n_neighbors=40, random_state=0), KLPE(n_neighbors=80)])
def test_no_split_where_half_of_the_rows_have_too_few_neighbours(detector):
    bits = np.random.default_rng(2).integers(0, 2, size=(110, 6)).astype(float)
    assert detector.fit(bits).calibration_.kind != "split"
