"""P-values to alarms: against scipy, against the definition, and the rates they promise."""

import numpy as np
import pytest
from scipy import stats

from rankad.alarms.decisions import PValueCounts


def level(p_values, q, n_batches=3):
    counts = PValueCounts()
    for batch in np.array_split(np.asarray(p_values), n_batches):
        counts.add(batch)
    return counts.level(q)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("q", [0.01, 0.1, 0.35])
def test_alarms_are_those_of_scipy(seed, q):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 200))
    p = np.where(rng.random(m) < 0.2, rng.random(m) ** 4, rng.random(m))
    np.testing.assert_array_equal(p <= level(p, q), stats.false_discovery_control(p) <= q)


def test_alarms_of_tied_p_values_are_those_of_scipy():
    p = np.random.default_rng(0).integers(1, 12, size=300) / 101
    np.testing.assert_array_equal(p <= level(p, 0.06), stats.false_discovery_control(p) <= 0.06)


def test_the_rule_steps_up_over_p_values_that_fail_on_their_own():
    # 0.03 > 0.04 / 4 and 0.031 > 2 * 0.04 / 4, but 0.0399 <= 0.04: the last takes the others along.
    assert level([0.03, 0.031, 0.0399, 0.032], 0.04) == 0.0399


def test_one_p_value_is_compared_with_q_and_none_are_no_alarm():
    assert level([0.05], 0.05) == 0.05
    assert level([0.0501], 0.05) == 0.0
    assert level([], 0.05) == 0.0


def test_the_share_of_false_discoveries_is_at_most_q():
    rng, shares, q, m, n_nominal = np.random.default_rng(1), [], 0.2, 200, 150
    for _ in range(400):
        p = np.concatenate([rng.random(n_nominal), rng.random(m - n_nominal) * 1e-3])
        alarms = p <= level(p, q)
        shares.append(alarms[:n_nominal].sum() / max(1, alarms.sum()))
    # The expected share is q * 150 / 200 exactly, for independent uniform p-values.
    error = np.std(shares) / np.sqrt(len(shares))
    assert abs(np.mean(shares) - q * n_nominal / m) < 4 * error


@pytest.mark.parametrize("rate", [0, 1, -0.1, 5, np.nan, None, "a", "0.05", True])
def test_a_rate_outside_of_zero_to_one_is_an_error(rate):
    with pytest.raises(ValueError, match=r"q must be .* between 0 and 1.*pass q=0\.05"):
        level([0.5], rate)


def test_what_is_no_p_value_is_an_error():
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5 at position 1"):
        PValueCounts().add([0.5, 1.5])
    with pytest.raises(ValueError, match="got nan at position 0"):
        PValueCounts().add([np.nan])
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(1, 1\)"):
        PValueCounts().add([[0.5]])
