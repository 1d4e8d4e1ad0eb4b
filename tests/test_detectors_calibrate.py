"""`calibrate`: other nominal rows to compare with, and nothing fitted again."""

import numpy as np
import pytest
from scipy.stats import beta, betabinom

import rankad
from rankad import KLPE, EpsilonLPE, RankAD


def _rows(n, seed, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, 3)) * [1.0, 2.0, 0.5] + shift


@pytest.fixture(scope="module")
def fitted():
    return RankAD(random_state=0, bandwidth="1 D_K", C=0.01, scaling="standard").fit(_rows(300, 0))


@pytest.fixture
def detector(fitted, tmp_path):
    """A copy of its own for every test."""
    fitted.save(tmp_path / "model")
    return rankad.load(tmp_path / "model")


def test_p_values_are_shares_of_the_fresh_rows(detector):
    fresh, new = _rows(150, 1), _rows(40, 2)
    scores = detector.score_samples(new)
    assert detector.calibrate(fresh) is detector
    np.testing.assert_array_equal(detector.score_samples(new), scores)
    nominal = detector.score_samples(fresh)
    shares = [(1 + sum(other <= score for other in nominal)) / 151 for score in scores]
    np.testing.assert_array_equal(detector.p_values(new), shares)
    assert detector.recalibrated_


def test_batches_are_as_good_as_one_table(detector):
    fresh = _rows(150, 1)
    detector.calibrate(iter([fresh[:100], fresh[100:]]))
    in_batches = detector.calibration_.scores
    np.testing.assert_array_equal(in_batches, detector.calibrate(fresh).calibration_.scores)


@pytest.mark.parametrize("alpha", [0.1, 0.05])
def test_the_law_of_false_alarms_is_exact_then(detector, alpha):
    assert not detector.false_alarm_bound(alpha).exact
    detector.calibrate(_rows(199, 1))
    found = detector.false_alarm_bound(alpha, delta=0.1)
    assert found.exact
    assert found.bound == pytest.approx(beta.ppf(0.9, 200 * alpha, 200 - 200 * alpha), rel=1e-9)


def test_false_alarms_are_as_asked_for_where_normal_has_moved(detector):
    moved, n = _rows(20_000, 3, shift=1.0), 999
    before = np.mean(detector.p_values(moved) <= 0.05)
    assert before > 0.1
    detector.calibrate(_rows(n, 4, shift=1.0))
    alarms = int(np.sum(detector.p_values(moved) <= 0.05))
    low, high = betabinom.ppf([0.0005, 0.9995], len(moved), 50, n + 1 - 50)
    assert low <= alarms <= high


def test_trimmed_rows_take_nothing_away_from_fresh_ones():
    detector = RankAD(random_state=0, bandwidth="1 D_K", C=0.01, scaling="standard", trim=0.1)
    detector.fit(_rows(300, 0))
    wide = detector.false_alarm_bound(0.05).bound
    detector.calibrate(_rows(270, 1))
    found = detector.false_alarm_bound(0.05)
    assert found.exact
    assert "trimmed" not in found.theorem
    assert found.bound < wide - 0.05


def test_fitting_again_compares_with_the_rows_fitted_on():
    for detector in (
        RankAD(random_state=0, bandwidth=1.0, C=0.01, scaling=None),
        KLPE(),
        EpsilonLPE(alpha=0.3),
    ):
        rows = _rows(60, 0)
        scores = detector.fit(rows).calibration_.scores
        assert not detector.recalibrated_
        assert detector.calibrate(_rows(30, 1)).recalibrated_
        again = detector.fit(rows)
        assert not again.recalibrated_
        np.testing.assert_array_equal(again.calibration_.scores, scores)


def test_a_saved_model_knows_that_it_was_calibrated_on_more_rows_than_it_was_fitted_on(detector, tmp_path):
    detector.calibrate(_rows(1_000, 1)).save(tmp_path / "again")
    loaded = rankad.load(tmp_path / "again")
    assert loaded.recalibrated_
    assert loaded.n_samples_fit_ == 300
    np.testing.assert_array_equal(loaded.calibration_.scores, detector.calibration_.scores)
    assert loaded.false_alarm_bound(0.05) == detector.false_alarm_bound(0.05)


def test_a_table_detector_is_exact_on_fresh_rows_and_counts_strange_ones_among_them():
    rng = np.random.default_rng(0)

    def table(n):
        return {"size": rng.normal(size=n), "kind": rng.choice(["a", "b"], size=n)}

    detector = rankad.TableDetector(RankAD(random_state=0, bandwidth="1 D_K", C=0.01, scaling=None))
    detector.fit(table(200))
    assert not detector.false_alarm_bound(0.05).exact
    fresh = table(399)
    fresh["kind"][:6] = "c"
    detector.calibrate(fresh)
    assert detector.false_alarm_bound(0.05).exact
    np.testing.assert_array_equal(detector.p_values({"size": [0.0], "kind": ["z"]}), [7 / 400])


def test_rows_added_to_an_exact_calibration_are_as_good_as_given_at_once(detector, tmp_path):
    fresh, new = _rows(199, 1), _rows(40, 2)
    detector.calibrate(fresh[:50]).update(fresh[50:100]).update(iter([fresh[100:150], fresh[150:]]))
    assert detector.recalibrated_
    found = detector.false_alarm_bound(0.05, delta=0.1)
    assert found.exact
    assert found.bound == pytest.approx(beta.ppf(0.9, 10, 190), rel=1e-9)
    p_values = detector.p_values(new)
    detector.save(tmp_path / "updated")
    np.testing.assert_array_equal(rankad.load(tmp_path / "updated").p_values(new), p_values)
    np.testing.assert_array_equal(detector.calibrate(fresh).p_values(new), p_values)


def test_rows_added_to_cross_fitted_scores_tighten_the_certificate_and_keep_the_rate(detector, tmp_path):
    rates, before = [], detector.certificate().upper(0.1)
    known = detector.calibration_
    for seed in range(20):
        detector._compare_with(known, fresh=False)
        detector.update(_rows(300, [seed, 1]))
        rates.append(np.mean(detector.p_values(_rows(4_000, [seed, 2])) <= 0.1))
    assert detector.calibration_.scores.size == 600
    assert not detector.false_alarm_bound(0.1).exact
    assert detector.certificate().upper(0.1) < before
    # Half of the calibration is the same each time, of left-out rows, which vary three times as much.
    spread = np.sqrt(0.09 * (0.25 * 3 / 300 + 0.25 / 300 / 20 + 1 / 80_000))
    assert abs(np.mean(rates) - 0.1) < 4 * spread
    detector.save(tmp_path / "updated")
    assert rankad.load(tmp_path / "updated").calibration_.scores.size == 600


def test_rows_are_added_to_a_table_detector_strange_ones_too():
    rng = np.random.default_rng(0)
    table = {"size": rng.normal(size=99), "kind": rng.choice(["a", "b"], size=99)}
    detector = rankad.TableDetector(KLPE()).fit(table)
    detector.update({"size": [0.0, 0.1], "kind": ["z", "a"]})
    assert detector.calibration_.scores.size == 101
    np.testing.assert_array_equal(detector.p_values({"size": [0.0], "kind": ["y"]}), [2 / 102])


def test_an_in_sample_calibration_cannot_be_added_to():
    detector = RankAD(random_state=0, bandwidth=1.0, C=0.01, calibration="in-sample").fit(_rows(60, 0))
    with pytest.raises(ValueError, match="call calibrate with fresh rows"):
        detector.update(_rows(10, 1))


def test_no_rows_are_an_error_and_change_nothing(detector):
    scores = detector.calibration_.scores
    with pytest.raises(ValueError, match="X must hold at least one normal row to calibrate with, got none"):
        detector.calibrate(iter([]))
    with pytest.raises(ValueError, match="0 sample"):
        detector.calibrate(np.empty((0, 3)))
    with pytest.raises(ValueError, match="X must hold at least one normal row"):
        detector.update(iter([]))
    assert detector.calibration_.scores is scores


def test_too_few_rows_for_any_alarm_are_said_to_be(detector):
    with pytest.warns(UserWarning, match=r"alpha=0\.05 is below the smallest p-value"):
        detector.calibrate(_rows(10, 1))
