"""Alarms of a stream: the promise on simulated streams, and the state."""

import numpy as np
import pytest

from rankad.monitoring.online import OnlineAlarms

pytest.importorskip("online_fdr")


def stream(rng, n_calibration=20_000, length=100, n_anomalies=20):
    anomalous = rng.permutation(length) < n_anomalies
    calibration = np.sort(rng.random(n_calibration))
    rows = np.where(anomalous, 1e-6, rng.random(length))
    return (1 + np.searchsorted(calibration, rows)) / (n_calibration + 1), anomalous


@pytest.mark.parametrize("method", ["lond", "lond-dependent", "batch"])
def test_the_false_discovery_rate_of_streams_is_kept_and_anomalies_are_found(method):
    rng, shares, found = np.random.default_rng(0), [], []
    for _ in range(60):
        p_values, anomalous = stream(rng)
        alarms = OnlineAlarms(0.2, 20_000, method)
        raised = np.concatenate([alarms.update(part) for part in np.split(p_values, 5)])
        shares.append((raised & ~anomalous).sum() / max(1, raised.sum()))
        found.append((raised & anomalous).mean() / anomalous.mean())
    assert np.mean(shares) <= 0.2 + 3 * np.std(shares) / np.sqrt(60)
    assert np.mean(found) > 0.8


@pytest.mark.parametrize("method", ["lond", "lond-dependent", "batch"])
def test_the_state_comes_back(method):
    p_values, _ = stream(np.random.default_rng(1))
    whole, parts = OnlineAlarms(0.1, 20_000, method), OnlineAlarms(0.1, 20_000, method)
    expected = [whole.update(part) for part in np.split(p_values, 4)]
    for part, raised in zip(np.split(p_values, 4), expected, strict=True):
        np.testing.assert_array_equal(parts.update(part), raised)
        parts = OnlineAlarms.from_json(parts.to_json())
    assert parts.to_json() == whole.to_json()
    assert (parts.n_rows, parts.n_alarms) == (100, sum(raised.sum() for raised in expected))


def test_it_says_when_no_row_can_be_an_alarm_any_more():
    alarms = OnlineAlarms(0.1, 1_000)
    assert not alarms.is_silent
    alarms.update(np.full(50, 0.5))
    assert alarms.is_silent


def test_wrong_parameters_and_states_are_refused():
    with pytest.raises(ValueError, match="method must be one of"):
        OnlineAlarms(0.1, 100, "saffron")
    with pytest.raises(ValueError, match="n_calibration must be an integer"):
        OnlineAlarms(0.1, 0)
    with pytest.raises(
        ValueError, match=r"not a saved OnlineAlarms \(it has no 'parameters'\); give what to_json"
    ):
        OnlineAlarms.from_json("{}")
