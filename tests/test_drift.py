"""The drift monitor: the capital by definition, promises on simulated streams, and its state."""

import numpy as np
import pytest
from scipy import stats

from rankad import KLPE
from rankad.certificates.laws import conditional_p_values
from rankad.monitoring.drift import _STRENGTHS, DriftMonitor


def stream(rng, n_calibration, length, shift=0.0):
    """P-values of rows against one calibration sample; rows come from a Gaussian moved down by `shift`."""
    calibration = np.sort(rng.normal(size=n_calibration))
    return (1 + np.searchsorted(calibration, rng.normal(size=length) - shift, side="right")) / (
        n_calibration + 1
    )


def test_the_evidence_is_that_of_the_definition():
    p_values = np.random.default_rng(0).integers(1, 12, size=25) / 100
    monitor = DriftMonitor(99, delta=1e-90, run_length=10**90)
    monitor.update(p_values)
    bets = _STRENGTHS * conditional_p_values(p_values, 99, 0.05)[:, None] ** (_STRENGTHS - 1)
    starts = np.arange(1, 26)
    weights = 1 / (starts * (starts + 1.0))
    capital = sum(
        weight * np.prod(bets[start - 1 :], axis=0) for start, weight in zip(starts, weights, strict=True)
    )
    assert monitor.evidence * np.log(1e90) == pytest.approx(np.log(capital.mean() + 1 / 26))
    best = np.max([np.prod(bets[start:], axis=0) for start in range(25)], axis=0)
    assert monitor.cusum * np.log(1e90) == pytest.approx(np.log(best.mean()))


def test_the_mean_of_a_bet_is_one():
    p = (np.arange(10**6) + 0.5) / 10**6
    for strength in _STRENGTHS[1:]:
        assert np.mean(strength * p ** (strength - 1)) == pytest.approx(1, abs=0.02)


def test_streams_without_drift_raise_few_drift_alarms():
    rng, n_streams = np.random.default_rng(1), 60
    ever = run = 0
    for _ in range(n_streams):
        monitor = DriftMonitor(200, delta=0.05, run_length=2_000, delta_calibration=0.05, rearm_after=None)
        monitor.update(stream(rng, 200, 400))
        kinds = {alarm.by for alarm in monitor.alarms}
        ever, run = ever + ("ever" in kinds), run + ("run" in kinds)
    assert stats.binom.sf(ever - 1, n_streams, 0.1) > 1e-4
    assert stats.binom.sf(run - 1, n_streams, 400 / 2_000 + 0.05) > 1e-4


def test_a_drift_is_noticed_and_dated():
    rng = np.random.default_rng(2)
    monitor = DriftMonitor(1_000)
    calibration = np.sort(rng.normal(size=1_000))
    rows = np.r_[rng.normal(size=300), rng.normal(size=200) - 1.5]
    raised = monitor.update((1 + np.searchsorted(calibration, rows)) / 1_001)
    assert {alarm.by for alarm in raised} == {"ever", "run"}
    assert raised[0].row > 300
    assert abs(raised[0].since - 300) < 40


def test_batches_make_no_difference_and_the_state_comes_back_to_the_last_bit():
    p_values = stream(np.random.default_rng(3), 300, 400, shift=1.2)
    whole = DriftMonitor(300, run_length=500)
    whole.update(p_values)
    parts = DriftMonitor(300, run_length=500)
    for part in np.split(p_values, [7, 8, 200]):
        parts.update(part)
        parts = DriftMonitor.from_json(parts.to_json())
    assert parts.to_json() == whole.to_json()
    assert whole.alarms


def test_a_drift_that_goes_on_is_one_alarm_and_one_that_comes_back_is_another():
    drifted, calm = np.full(60, 1 / 301), np.full(200, 0.9)
    once, again = DriftMonitor(300, rearm_after=None), DriftMonitor(300, rearm_after=100)
    for monitor, expected in ((once, 0), (again, 2)):
        assert len(monitor.update(drifted)) == 2
        assert monitor.update(drifted) == []
        assert monitor.evidence == monitor.cusum == 1
        monitor.update(calm)
        assert len(monitor.update(drifted)) == expected


def test_a_monitor_for_a_detector_takes_its_calibration():
    detector = KLPE().fit(np.random.default_rng(0).normal(size=(100, 2)))
    monitor = DriftMonitor.for_detector(detector, delta=0.02)
    assert (monitor.n_calibration, monitor.worth, monitor.delta) == (100, 1 / 3, 0.02)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_calibration": 0}, "n_calibration must be an integer >= 1"),
        ({"n_calibration": 5, "run_length": 1}, "run_length must be an integer >= 2"),
        ({"n_calibration": 5, "rearm_after": 0}, "rearm_after must be None or an integer >= 1"),
        ({"n_calibration": 5, "worth": 0}, "worth must be above 0"),
        ({"n_calibration": 5, "delta": 2}, "delta must be a number strictly between 0 and 1"),
    ],
)
def test_wrong_parameters_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        DriftMonitor(**given)


@pytest.mark.parametrize("text", ["", "{}", '{"version": 7}', "[1]"])
def test_what_is_no_state_is_refused(text):
    with pytest.raises(ValueError, match="not a saved DriftMonitor"):
        DriftMonitor.from_json(text)
