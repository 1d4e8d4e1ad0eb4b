"""P-values to alarms: against scipy, against the definition, and the rates they promise."""

import numpy as np
import pytest
from scipy import stats

from rankad.alarms.decisions import alarms_at_level, benjamini_hochberg


def test_a_level_is_a_comparison():
    np.testing.assert_array_equal(
        alarms_at_level([0.05, 0.050001, 0.0, 1.0], 0.05), [True, False, True, False]
    )
    assert alarms_at_level([], 0.05).shape == (0,)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("q", [0.01, 0.1, 0.35])
def test_benjamini_hochberg_is_that_of_scipy(seed, q):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 200))
    p = np.where(rng.random(m) < 0.2, rng.random(m) ** 4, rng.random(m))
    np.testing.assert_array_equal(benjamini_hochberg(p, q), stats.false_discovery_control(p) <= q)


def test_benjamini_hochberg_on_tied_p_values_is_that_of_scipy():
    p = np.random.default_rng(0).integers(1, 12, size=300) / 101
    np.testing.assert_array_equal(benjamini_hochberg(p, 0.06), stats.false_discovery_control(p) <= 0.06)


def test_benjamini_hochberg_steps_up_over_p_values_that_fail_on_their_own():
    # 0.03 > 0.04 / 4 and 0.031 > 2 * 0.04 / 4, but 0.0399 <= 0.04: the last takes the others along.
    np.testing.assert_array_equal(benjamini_hochberg([0.03, 0.031, 0.0399, 0.032], 0.04), [True] * 4)


def test_one_p_value_is_compared_with_q_and_none_are_no_alarm():
    np.testing.assert_array_equal(benjamini_hochberg([0.05], 0.05), [True])
    np.testing.assert_array_equal(benjamini_hochberg([0.0501], 0.05), [False])
    assert benjamini_hochberg([], 0.05).shape == (0,)


def test_the_share_of_false_discoveries_is_at_most_q():
    rng, shares, q, m, n_nominal = np.random.default_rng(1), [], 0.2, 200, 150
    for _ in range(400):
        p = np.concatenate([rng.random(n_nominal), rng.random(m - n_nominal) * 1e-3])
        alarms = benjamini_hochberg(p, q)
        shares.append(alarms[:n_nominal].sum() / max(1, alarms.sum()))
    # The expected share is q * 150 / 200 exactly, for independent uniform p-values.
    error = np.std(shares) / np.sqrt(len(shares))
    assert abs(np.mean(shares) - q * n_nominal / m) < 4 * error


@pytest.mark.parametrize("rate", [0, 1, -0.1, 5, np.nan, None, "a", "0.05", True])
def test_a_rate_outside_of_zero_to_one_is_an_error(rate):
    with pytest.raises(ValueError, match=r"alpha must be .* between 0 and 1.*pass alpha=0\.05"):
        alarms_at_level([0.5], rate)
    with pytest.raises(ValueError, match=r"q must be .* between 0 and 1.*pass q=0\.05"):
        benjamini_hochberg([0.5], rate)


@pytest.mark.parametrize("decide", [alarms_at_level, benjamini_hochberg])
def test_what_is_no_p_value_is_an_error(decide):
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5 at position 1"):
        decide([0.5, 1.5], 0.1)
    with pytest.raises(ValueError, match="got nan at position 0"):
        decide([np.nan], 0.1)
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(1, 1\)"):
        decide([[0.5]], 0.1)
