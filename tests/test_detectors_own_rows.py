"""Rows judged by the detector fitted on them: fit_predict, fit_p_values, trim="auto"."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom
from sklearn.ensemble import IsolationForest

import oracles
from rankad import KLPE, RankAD, TableDetector, load
from rankad.alarms.chance import chance_of
from rankad.fitting import sizes, trimming
from rankad.fitting.own_rows import own_p_values, with_suspects
from rankad.fitting.trimming import mean_distance, most_suspicious, suspicion
from rankad.stages.calibration import Calibration

QUICK = {"scaling": "standard", "bandwidth": "D_K", "C": 0.1, "landmarks": 50, "random_state": 0}
SPLIT = pytest.mark.filterwarnings("ignore:Calibrated by a split")


def _scattered(seed, n=950, n_anomalies=50, d=5):
    """Standard normal rows, then anomalies, uniform in a box."""
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(n, d)), rng.uniform(-6, 6, size=(n_anomalies, d))])


def _clustered(seed, n=480, n_anomalies=20, d=4):
    """Standard normal rows, then anomalies that are one another's neighbours."""
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(n, d)), 3.5 + 0.05 * rng.normal(size=(n_anomalies, d))])


# ------------------------------------------------------------------------------------------- the first look


def test_mean_distance_is_to_others_only():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    whole = oracles.neighbors(rows, 7)[0].mean(axis=1)
    np.testing.assert_allclose(mean_distance(rows, np.arange(40), 7), whole)
    some = np.array([3, 8, 20, 21, 39])
    expected = [
        np.sort([math.dist(row, rows[i]) for i in some if i != at])[:2].mean() for at, row in enumerate(rows)
    ]
    np.testing.assert_allclose(mean_distance(rows, some, 2), expected)


def test_tails_are_those_of_single_columns():
    rows = np.random.default_rng(1).integers(0, 6, size=(30, 4)).astype(float)
    expected = [
        -sum(
            math.log(min(np.mean(rows[:, j] <= row[j]), np.mean(rows[:, j] >= row[j])))
            for j in range(rows.shape[1])
        )
        for row in rows
    ]
    np.testing.assert_allclose(trimming._tails(rows), expected)


def test_suspicion_is_the_mean_rank_of_five_views():
    rows = np.random.default_rng(2).normal(size=(60, 3)) * [1.0, 10.0, 100.0]
    found = suspicion(rows, np.random.default_rng(5))
    forest = IsolationForest(
        n_estimators=300, random_state=int(np.random.default_rng(5).integers(2**31))
    ).fit(rows)
    spread = rows.max(axis=0) - rows.min(axis=0)
    views = [oracles.neighbors(rows / scale, 6)[0].mean(axis=1) for scale in (rows.std(axis=0), spread, 1.0)]
    votes = [*views, -forest.score_samples(rows), trimming._tails(rows)]
    places = [[1 + sum(other < each for other in vote) for each in vote] for vote in votes[:3]]
    # Scores of the forest and tails may tie: their mean place.
    places += [
        [0.5 + sum(o < e for o in vote) + sum(o == e for o in vote) / 2 for e in vote] for vote in votes[3:]
    ]
    np.testing.assert_allclose(found, np.mean(places, axis=0) / 60)


@pytest.mark.parametrize("n", [480, 4_800])
def test_a_cluster_of_anomalies_cannot_vouch_for_itself(n):
    rows = _clustered(0, n, n // 24)
    found = suspicion(rows, np.random.default_rng(0))
    out = most_suspicious(found, 8)
    assert out.size == len(rows) // 5
    assert np.isin(np.arange(n, len(rows)), out).mean() > 0.9
    few = mean_distance(rows, np.arange(len(rows)), 5)
    assert few[n:].max() < np.median(few), "to their nearest neighbours they look as normal as any"


def test_enough_rows_are_left_to_train_on():
    assert most_suspicious(np.arange(9.0), 8).tolist() == [8]
    assert most_suspicious(np.arange(8.0), 8).size == 0


# ---------------------------------------------------------------------------------------------- the p-values


def test_p_values_are_places_among_all_rows():
    scores = np.random.default_rng(0).integers(0, 20, size=50).astype(float)
    expected = [np.mean(scores <= score) for score in scores]
    np.testing.assert_allclose(own_p_values(scores), expected)


@SPLIT
def test_no_row_of_a_clean_table_is_more_likely_to_be_an_alarm_than_another(quick_rankad):
    """Each row is an alarm with probability alpha, wherever it stands in the table."""
    n, alpha, tables = 20, 0.25, 60
    alarms = np.zeros(n)
    for seed in range(tables):
        rows = np.random.default_rng(seed).normal(size=(n, 2))
        found = quick_rankad(alpha=alpha).fit_predict(rows) < 0
        assert found.sum() <= alpha * n
        alarms += found
    low, high = binom.ppf([0.0005 / n, 1 - 0.0005 / n], tables, alpha)
    assert alarms.min() >= low
    assert alarms.max() <= high


@SPLIT
@pytest.mark.parametrize("trim", [0.0, "auto", 0.1])
def test_no_more_than_alpha_of_the_rows_are_alarms(quick_rankad, trim):
    rows = _scattered(0, 190, 10)
    p_values = quick_rankad(trim=trim).fit_p_values(rows)
    for alpha in (0.01, 0.05, 0.3):
        n_alarms = np.sum(quick_rankad(alpha=alpha, trim=trim).fit_predict(rows) < 0)
        assert n_alarms == np.sum(p_values <= alpha) <= alpha * 200
    assert np.mean(p_values[190:] <= 0.05) > 0.7


@pytest.mark.parametrize("seed", range(3))
def test_scattered_outliers_are_found_and_clean_rows_raise_as_many_alarms_as_asked_for(few_folds, seed):
    alarms = RankAD(alpha=0.05).fit_predict(_scattered(seed)) < 0
    assert alarms[950:].sum() >= 45
    clean = np.random.default_rng(seed).normal(size=(600, 5))
    assert 15 <= np.sum(RankAD(alpha=0.05).fit_predict(clean) < 0) <= 45


def test_a_cluster_is_found_that_a_detector_fitted_on_it_calls_normal(few_folds):
    rows = _clustered(1)
    assert np.mean(RankAD(alpha=0.1, **QUICK).fit_predict(rows)[480:] < 0) > 0.9
    assert np.mean(RankAD(alpha=0.1, **QUICK).fit(rows).predict(rows)[480:] < 0) < 0.1


def test_copies_of_a_row_stand_or_fall_together(few_folds):
    rows = np.random.default_rng(0).normal(size=(120, 3))
    twice = np.vstack([rows, rows])
    with pytest.warns(UserWarning, match="more than once"):
        p_values = RankAD(0.1, **QUICK).fit_p_values(twice)
    np.testing.assert_array_equal(p_values[:120], p_values[120:])


def test_of_many_rows_none_is_judged_by_what_has_seen_it(few_folds, monkeypatch):
    monkeypatch.setattr(sizes, "MAX_TRAINING_ROWS", 100)
    rows = _scattered(2, 950, 50)
    detector = RankAD(alpha=0.05, trim="auto", **QUICK)
    assert np.mean(detector.fit_predict(rows)[950:] < 0) >= 0.9
    assert detector.reference_rows_.size == 0
    assert detector.training_rows_.size == 100
    assert detector.trimmed_rows_.size == 200
    assert not np.isin(detector.trimmed_rows_, detector.training_rows_).any()


def test_ranks_in_sample_judge_no_rows():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    detector = RankAD(calibration="in-sample", trim="auto", **QUICK)
    with pytest.raises(ValueError, match=r"calibration='in-sample' cannot judge .*'cross-fit' or 'split'"):
        detector.fit_p_values(rows)
    np.testing.assert_array_equal(detector.fit_predict(rows), detector.fit(rows).predict(rows))


def test_after_rows_were_judged_new_ones_need_a_fit(quick_rankad):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    detector = quick_rankad()
    detector.fit_predict(rows)
    assert not hasattr(detector, "predict")
    with pytest.raises(AttributeError, match=r"predict is not available.*call fit\(X\) first"):
        detector.predict(rows)
    assert detector.fit(rows).predict(rows).shape == (60,)
    auto = quick_rankad(trim="auto")
    auto.fit_predict(rows)
    np.testing.assert_array_equal(auto.predict(rows), quick_rankad(trim="auto").fit(rows).predict(rows))


# ------------------------------------------------------------------------------------------------ trim="auto"


def test_suspects_calibrate_in_the_place_of_others():
    nominal = Calibration.from_scores(np.arange(80.0), "cross-fit")
    which, out = np.arange(80), np.arange(100, 120)
    made, rows = with_suspects(nominal, which, -1.0 - np.arange(20), out, 0.2, np.random.default_rng(0))
    assert made.scores.size == 80
    assert np.sum(made.scores < 0) == 16
    scores = {**dict(enumerate(np.arange(80.0))), **dict(zip(out, -1.0 - np.arange(20), strict=True))}
    np.testing.assert_array_equal([scores[row] for row in rows], made.scores)


@SPLIT
@pytest.mark.parametrize("calibration", ["cross-fit", "split"])
def test_a_fifth_does_not_train_and_all_calibrate(quick_rankad, calibration):
    rows = _scattered(3, 285, 15)
    detector = quick_rankad(trim="auto", calibration=calibration)
    known = detector._fit_calibrating(rows)
    assert detector.trimmed_rows_.size == 60
    assert np.isin(np.arange(285, 300), detector.trimmed_rows_).all()
    assert len(np.unique(known)) == known.size == detector.calibration_.scores.size
    assert np.isin(known, detector.trimmed_rows_).sum() == round(known.size / 5)
    if calibration == "split":
        assert not np.isin(known, detector.training_rows_).any()
        np.testing.assert_array_equal(detector.score_samples(rows[known]), detector.calibration_.scores)


def test_false_alarms_are_as_asked_for_though_a_fifth_did_not_train():
    fresh = np.random.default_rng(9).normal(size=(20_000, 3))
    clean = np.random.default_rng(3).normal(size=(1_000, 3))
    detector = RankAD(trim="auto", alpha=0.1, **QUICK).fit(clean)
    rate = np.mean(detector.predict(fresh) == -1)
    # 80 of 800 calibrating rows; rows left out count for a third of independent ones.
    spread = beta.std(80 / 3, 721 / 3)
    assert abs(rate - 0.1) < 3.3 * spread
    bound = detector.false_alarm_bound(delta=0.01)
    assert rate <= bound.bound < 0.2
    assert not bound.exact
    assert "chosen by looking at all rows" in bound.theorem
    assert chance_of(detector).n_trimmed == 0


def test_a_split_with_suspects_is_not_called_exact(quick_rankad):
    rows = np.random.default_rng(0).normal(size=(100, 2))
    detector = quick_rankad(trim="auto", calibration="split").fit(rows)
    assert not detector.false_alarm_bound(0.2).exact
    assert detector.calibrate(rows + 0.01).false_alarm_bound(0.2).exact


@SPLIT
def test_it_survives_the_model_file(quick_rankad, tmp_path):
    rows = _scattered(4, 110, 10)
    detector = quick_rankad(trim="auto").fit(rows)
    detector.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.trim == "auto"
    np.testing.assert_array_equal(loaded.p_values(rows), detector.p_values(rows))
    np.testing.assert_array_equal(loaded.trimmed_rows_, detector.trimmed_rows_)
    assert loaded.false_alarm_bound(0.1) == detector.false_alarm_bound(0.1)


# ----------------------------------------------------------------------------------------------------- tables


@SPLIT
def test_a_row_with_something_of_its_own_is_among_the_first(quick_rankad):
    rng = np.random.default_rng(1)
    kinds = rng.choice(["a", "b"], 60).tolist()
    kinds[7] = "never elsewhere"
    detector = TableDetector(quick_rankad(trim="auto"))
    p_values = detector.fit_p_values({"x": rng.normal(size=60), "kind": kinds})
    assert p_values[7] <= 0.1
    np.testing.assert_allclose(np.sort(p_values)[-1], 1.0)


def test_only_rankad_judges_the_rows_of_a_table():
    with pytest.raises(ValueError, match=r"detector must be a RankAD to judge rows it is fitted on, got K"):
        TableDetector(KLPE()).fit_p_values({"x": np.arange(20.0)})
    rows = np.random.default_rng(0).normal(size=60)
    assert TableDetector(KLPE()).fit_predict({"x": rows}).shape == (60,)
