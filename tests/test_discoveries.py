"""Alarms over a batch: against other formulas, and what they promise on simulated batches."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from rankad.certificates.discoveries import FalseAlarmCounter, normal_share, storey


def batch(rng, n_calibration=199, m=60, n_anomalies=15, shared=True, spread=0.02):
    """P-values of normal rows, then of anomalies, against calibration rows that they share or do not."""
    rows = np.r_[rng.random(m - n_anomalies), spread * rng.random(n_anomalies)]
    calibration = rng.random((1 if shared else m, n_calibration))
    return (1 + (calibration <= rows[:, None]).sum(axis=1)) / (n_calibration + 1)


def benjamini_hochberg(p, q):
    return stats.false_discovery_control(p) <= q


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("rule", [benjamini_hochberg, lambda p, q: storey(p, q, n_calibration=199)])
def test_the_false_discovery_rate_is_kept(shared, rule):
    rng, q, shares = np.random.default_rng(0), 0.2, []
    for _ in range(600):
        alarms = rule(batch(rng, shared=shared), q)
        shares.append(alarms[:45].sum() / max(1, alarms.sum()))
    assert np.mean(shares) <= q + 3 * np.std(shares) / np.sqrt(len(shares))


def test_storey_finds_more_where_many_rows_are_anomalies():
    rng = np.random.default_rng(1)
    batches = [batch(rng, m=60, n_anomalies=50, spread=0.3) for _ in range(50)]
    found = [(benjamini_hochberg(p, 0.1)[10:].sum(), storey(p, 0.1)[10:].sum()) for p in batches]
    assert np.mean(found, axis=0)[1] > np.mean(found, axis=0)[0]


def test_the_share_of_normal_rows_is_estimated_from_large_p_values():
    p_values = np.r_[np.full(300, 1e-4), np.random.default_rng(0).random(700)]
    assert normal_share(p_values) == pytest.approx(0.7, abs=0.06)
    assert normal_share([]) == 1.0


def by_closed_testing(p_values, delta, rows):
    """The largest subset of `rows` within any set of rows that the test of Simes does not reject."""
    m, most = len(p_values), 0
    for size in range(1, m + 1):
        for chosen in combinations(range(m), size):
            ordered = np.sort(p_values[list(chosen)])
            if (ordered * size > delta * np.arange(1, size + 1)).all():
                most = max(most, len(set(chosen) & set(rows)))
    return most


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_that_of_closed_testing(seed):
    rng = np.random.default_rng(seed)
    p_values = np.where(rng.random(9) < 0.5, rng.random(9) * 0.03, rng.random(9))
    counter = FalseAlarmCounter(p_values, 0.1)
    assert counter.most_normal == by_closed_testing(p_values, 0.1, range(9))
    for size in (1, 3, 6, 9):
        rows = rng.choice(9, size, replace=False)
        assert counter.bound(rows).most_false == by_closed_testing(p_values, 0.1, rows)


@pytest.mark.parametrize("shared", [True, False])
def test_bounds_hold_for_all_numbers_of_rows_together(shared):
    rng, delta, failures, repetitions = np.random.default_rng(3), 0.1, 0, 400
    for _ in range(repetitions):
        p_values = batch(rng, shared=shared)
        counter, order = FalseAlarmCounter(p_values, delta), np.argsort(p_values, kind="stable")
        false = np.cumsum(order < 45)
        failures += any(false[k - 1] > counter.bound(order[:k]).most_false for k in range(5, 61, 5))
    assert stats.binom.sf(failures - 1, repetitions, delta) > 1e-4


def test_rows_are_picked_by_a_mask_or_by_position_and_count_once():
    counter = FalseAlarmCounter([0.001, 0.5, 0.001])
    assert counter.bound([True, False, True]) == counter.bound([0, 2, 2, 0])
    assert counter.bound([]) == (0, 0, 0, 0.0)


@pytest.mark.parametrize("rows", [[3], [-4], [True, False], [[True, False, True]]])
def test_rows_that_there_are_not_are_refused(rows):
    with pytest.raises(
        ValueError, match=r"rows must be a mask of 3 values or positions from 0 to 2, .*; got "
    ):
        FalseAlarmCounter([0.001, 0.5, 0.001]).bound(rows)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([0.5, 1.2], r"numbers from 0 to 1, got 1\.2; pass"),
        ([[0.5]], r"a one-dimensional array, got one of shape \(1, 1\); pass"),
        ([np.nan], "numbers from 0 to 1, got nan; pass"),
    ],
)
def test_what_is_no_p_value_is_refused(wrong, message):
    for make in (FalseAlarmCounter, normal_share, lambda p: storey(p, 0.1)):
        with pytest.raises(ValueError, match=f"p_values must be {message}"):
            make(wrong)
