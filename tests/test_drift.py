"""The drift monitor: the capital by definition, promises on simulated streams, and its state."""

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError

from rankad import KLPE
from rankad.monitoring.drift import _STRENGTHS, DriftMonitor


def stream(rng, n_calibration, length, shift=0.0):
    """P-values of rows against one calibration sample; rows come from a Gaussian moved down by `shift`."""
    calibration = np.sort(rng.normal(size=n_calibration))
    return (1 + np.searchsorted(calibration, rng.normal(size=length) - shift, side="right")) / (
        n_calibration + 1
    )


def compared(calibration, rows):
    """P-values of each row among calibration rows and rows before it, from the scores themselves."""
    before = [calibration]
    p_values = []
    for row in rows:
        known = np.concatenate(before)
        p_values.append((1 + (known <= row).sum()) / (known.size + 1))
        before.append([row])
    return np.array(p_values)


def test_the_evidence_is_that_of_the_definition():
    p_values = np.random.default_rng(0).integers(1, 12, size=25) / 100
    monitor = DriftMonitor(99, delta=1e-90, run_length=10**90)
    monitor.update(p_values)
    ranks = np.rint(p_values * 100)
    own = np.array([(r + (ranks[:t] <= r).sum()) / (100 + t) for t, r in enumerate(ranks)])
    bets = _STRENGTHS * own[:, None] ** (_STRENGTHS - 1)
    weights = -np.diff(1 / (1 + np.log(np.arange(1, 27))))
    products = np.array([np.prod(bets[start:], axis=0) for start in range(25)])
    capital = np.mean(weights @ products) + 1 / (1 + np.log(26))
    assert monitor.evidence * np.log(1e90) == pytest.approx(np.log(capital))
    assert monitor.run_evidence * np.log(1e90) == pytest.approx(np.log(products.sum(axis=0).mean()))


@pytest.mark.parametrize("decimals", [0, 1, 9])
def test_rows_are_compared_with_all_before_them_and_never_too_strictly(decimals, monkeypatch):
    taken = []
    monkeypatch.setattr(DriftMonitor, "_step", lambda self, p_value: taken.append(p_value))
    rng = np.random.default_rng(5)
    calibration, rows = rng.normal(size=400).round(decimals), rng.normal(size=300).round(decimals)
    DriftMonitor(400).update((1 + (calibration <= rows[:, None]).sum(axis=1)) / 401)
    truth = compared(calibration, rows)
    # They differ by rows of the stream between the same two calibration rows, and by groups of ranks.
    assert (taken - truth >= 0).all()
    assert np.mean(taken - truth) < 0.005


def test_the_mean_of_a_bet_is_one():
    p = (np.arange(10**6) + 0.5) / 10**6
    for strength in _STRENGTHS[1:]:
        assert np.mean(strength * p ** (strength - 1)) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("decimals", [0, 9])
def test_the_share_of_streams_that_ever_raise_an_alarm_is_bounded_for_few_calibration_rows(decimals):
    rng, n_streams, delta = np.random.default_rng(1), 250, 0.2
    ever = 0
    for _ in range(n_streams):
        calibration, rows = rng.normal(size=30).round(decimals), rng.normal(size=300).round(decimals)
        monitor = DriftMonitor(30, delta=delta, run_length=10**9)
        monitor.update((1 + (calibration <= rows[:, None]).sum(axis=1)) / 31)
        ever += bool(monitor.alarms)
    assert stats.binom.sf(ever - 1, n_streams, delta) > 1e-4


def test_rows_until_an_alarm_are_as_many_as_promised():
    rng, lengths = np.random.default_rng(2), []
    for _ in range(150):
        monitor = DriftMonitor(40, run_length=60, delta=1e-9)
        calibration = np.sort(rng.normal(size=40))
        while not monitor.alarms and monitor.n_rows < 1_000:
            monitor.update((1 + np.searchsorted(calibration, rng.normal(size=50))) / 41)
        lengths.append(monitor.alarms[0].row if monitor.alarms else 1_000)
    assert np.mean(lengths) + 4 * np.std(lengths) / np.sqrt(len(lengths)) > 60


def test_a_small_shift_is_noticed_sooner_than_by_windows():
    delays, rng = [], np.random.default_rng(3)
    for _ in range(40):
        monitor = DriftMonitor(1_000)
        calibration = np.sort(rng.normal(size=1_000))
        rows = rng.normal(size=500) - np.where(np.arange(500) < 200, 0.0, 0.5)
        raised = monitor.update((1 + np.searchsorted(calibration, rows)) / 1_001)
        delays.append(raised[0].row - 200 if raised else 300)
    assert np.median(delays) < 100


def test_a_drift_that_goes_on_does_not_become_normal():
    rng, calibration = np.random.default_rng(4), np.sort(np.random.default_rng(5).normal(size=200))
    monitor = DriftMonitor(200, rearm_after=300)
    for _ in range(5):
        monitor.update((1 + np.searchsorted(calibration, rng.normal(size=400) - 1.5)) / 201)
        assert monitor.is_drifted("ever")
    assert len(monitor.alarms) == 2


def test_a_drift_is_noticed_and_dated():
    rng = np.random.default_rng(2)
    monitor = DriftMonitor(1_000)
    calibration = np.sort(rng.normal(size=1_000))
    rows = np.r_[rng.normal(size=300), rng.normal(size=200) - 1.5]
    raised = monitor.update((1 + np.searchsorted(calibration, rows)) / 1_001)
    assert {alarm.by for alarm in raised} == {"ever", "run"}
    assert raised[0].row > 300
    assert abs(raised[0].since - 300) < 40
    assert raised[1].since == raised[0].since


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
        assert monitor.evidence == monitor.run_evidence == 1
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


@pytest.mark.parametrize("text", ["", "{}", '{"version": 1}', "[1]"])
def test_what_is_no_state_is_refused(text):
    with pytest.raises(ValueError, match="not a saved DriftMonitor"):
        DriftMonitor.from_json(text)


def test_a_state_that_is_refused_says_why():
    with pytest.raises(ValueError, match=r"\(it has no 'version'\); give what to_json\(\) returned"):
        DriftMonitor.from_json("{}")
    with pytest.raises(ValueError, match="its version is 99, and this rankad reads"):
        DriftMonitor.from_json('{"version": 99}')
    with pytest.raises(NotFittedError, match="not fitted yet"):
        DriftMonitor.for_detector(KLPE())
    with pytest.raises(ValueError, match="p_values must be numbers from 0 to 1, got 2; pass what"):
        DriftMonitor(100).update([0.5, 2.0])


def test_text_in_the_place_of_p_values_is_told():
    with pytest.raises(
        ValueError, match="p_values must be numbers from 0 to 1, but could not convert string"
    ):
        DriftMonitor(100).update(["x"])
