"""RankAD(trim=...): suspects are left out, and the promise says so."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

import oracles
from rankad import RankAD
from rankad.fitting import sizes, trimming
from rankad.fitting.trimming import suspects
from rankad.stages.calibration import Calibration, beta_bound, covering_bound
from rankad.stages.neighbors import nearest_neighbors

QUICK = {"scaling": "standard", "bandwidth": "D_K", "C": 0.1, "landmarks": 50, "random_state": 0}


def _contaminated(n=300, n_anomalies=15, seed=0):
    """Standard normal rows, among them anomalies scattered far outside."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3))
    where = np.sort(rng.choice(n, n_anomalies, replace=False))
    rows[where] += 40 * rng.choice([-1.0, 1.0], size=(n_anomalies, 3)) * rng.uniform(1, 3, (n_anomalies, 3))
    return rows, where


def test_what_is_far_from_everything_is_trimmed(few_folds):
    rows, where = _contaminated()
    detector = RankAD(trim=0.05, **QUICK).fit(rows)
    np.testing.assert_array_equal(detector.trimmed_rows_, where)
    kept = np.delete(np.arange(300), where)
    np.testing.assert_array_equal(detector.training_rows_, kept)
    assert detector.calibration_.scores.size == 285


def test_a_trimmed_fit_is_the_fit_on_the_rows_that_stay(few_folds):
    rows, where = _contaminated()
    trimmed, alone = RankAD(trim=0.05, **QUICK).fit(rows), RankAD(**QUICK).fit(np.delete(rows, where, axis=0))
    new = np.random.default_rng(1).normal(size=(50, 3))
    np.testing.assert_array_equal(trimmed.p_values(new), alone.p_values(new))
    assert alone.trimmed_rows_.size == 0


def test_without_trimming_anomalies_hide_one_another(few_folds):
    rows, _ = _contaminated(n_anomalies=15)
    # Among the nominal rows that p-values refer to 5 % are anomalies: at 2 % there is no alarm but for worse.
    new = np.array([[25.0, 25.0, 25.0], [-25.0, 25.0, 0.0]])
    with_suspects = RankAD(alpha=0.02, **QUICK).fit(rows)
    without = RankAD(alpha=0.02, trim=0.05, **QUICK).fit(rows)
    assert (with_suspects.predict(new) == 1).all()
    assert (without.predict(new) == -1).all()


@pytest.mark.parametrize("calibration", ["cross-fit", "split", "in-sample"])
@pytest.mark.parametrize("n", [300, 1_000])
def test_every_row_has_one_part_or_is_trimmed(few_folds, monkeypatch, calibration, n):
    # With a hundred training rows at most, a thousand rows have reference rows and free ones.
    monkeypatch.setattr(sizes, "MAX_TRAINING_ROWS", 100)
    rows, where = _contaminated(n, n // 50)
    detector = RankAD(trim=0.02, calibration=calibration, **QUICK).fit(rows)
    parts = [detector.trimmed_rows_, detector.training_rows_, detector.reference_rows_]
    used = np.concatenate(parts)
    assert len(np.unique(used)) == len(used)
    assert set(detector.trimmed_rows_) == set(where)
    n_free = n - len(used)
    seen = detector.calibration_.scores.size
    assert seen in (n_free, n_free + len(detector.training_rows_))


@pytest.mark.parametrize("n", [500, 3_000, 10_000])
def test_a_cluster_cannot_vouch_for_itself(n):
    """As many anomalies as asked for, in one place; of many rows, they are looked for among some."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(n, 3))
    where = np.sort(rng.choice(n, n // 20, replace=False))
    rows[where] = 8 + 1e-3 * rng.normal(size=(n // 20, 3))
    for seed in range(5):
        found = suspects(rows, 0.05, "standard", np.random.default_rng(seed))
        np.testing.assert_array_equal(found, where)
    # Asked for five neighbours, each of them has as many next to it.
    few = nearest_neighbors(rows, 5).distances[:, -1]
    assert few[where].max() < np.median(few)


def test_suspects_are_those_whose_kth_neighbour_is_farthest():
    rows = np.random.default_rng(4).normal(size=(60, 2)) * [1.0, 30.0]
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    farthest = np.argsort(-oracles.neighbors(scaled, 7)[0][:, 6])[:6]
    found = suspects(rows, 0.1, "standard", np.random.default_rng(0))
    np.testing.assert_array_equal(found, np.sort(farthest))


def test_among_some_rows_a_row_does_not_count_itself(monkeypatch):
    monkeypatch.setattr(trimming, "_MOST_REFERENCE", 30)
    rows = np.random.default_rng(5).normal(size=(90, 2))
    monkeypatch.setattr(trimming, "_BLOCK", 40)
    found = suspects(rows, 0.1, None, np.random.default_rng(6))
    drawn = np.random.default_rng(6).choice(90, 30, replace=False)
    # Three are expected, and four times 1.64 more there may be: the tenth neighbour.
    tenth = [np.sort([math.dist(row, rows[i]) for i in drawn if i != at])[9] for at, row in enumerate(rows)]
    np.testing.assert_array_equal(found, np.sort(np.argsort(tenth)[-9:]))


def test_fewer_than_one_row_is_none(few_folds):
    rows, _ = _contaminated(60, 0)
    plain, little = RankAD(**QUICK).fit(rows), RankAD(trim=0.01, **QUICK).fit(rows)
    assert little.trimmed_rows_.size == 0
    np.testing.assert_array_equal(little.score_samples(rows), plain.score_samples(rows))


@pytest.mark.parametrize("trim", [-0.1, 0.5, 1.0, True, "0.1", "Auto", None, np.nan])
def test_wrong_shares_are_named(trim):
    with pytest.raises(ValueError, match=r"trim must be 'auto' or a number from 0 to below 0\.5, got"):
        RankAD(trim=trim).fit(np.zeros((20, 2)))


def test_too_few_rows_left_is_named():
    rows = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match=r"trim=0\.4 leaves 6 of 10 rows; at least 8 are needed"):
        RankAD(trim=0.4).fit(rows)


# ------------------------------------------------------------------------------------------------ the promise


def test_the_bound_counts_trimmed_rows_as_a_region_of_nominal_ones():
    calibration = Calibration.from_scores(np.arange(99.0), "split")
    plain, trimmed = beta_bound(calibration, 0.05, 0.1), beta_bound(calibration, 0.05, 0.1, 10, 109)
    assert plain.exact
    assert plain.bound == pytest.approx(beta.ppf(0.9, 5, 95))
    region = beta.isf(0.05 / 109, 10, 99)
    assert trimmed.bound == pytest.approx(region + (1 - region) * beta.ppf(0.95, 5, 95))
    assert not trimmed.exact
    assert "The 10 rows trimmed count as nominal rows of one region" in trimmed.theorem


def test_no_ball_of_so_many_rows_holds_more_than_the_law_says():
    """On the line between 0 and 1, where the share that a ball holds is its length."""
    n, t, n_samples, n_above = 300, 6, 400, 0
    limit = beta.isf(0.05 / n, t, n - t)
    rng = np.random.default_rng(0)
    for _ in range(n_samples):
        points = rng.random(n)
        distances = np.sort(np.abs(points[:, None] - points), axis=1)
        # Up to, and not including, the next row.
        radius = distances[:, t]
        inside = np.minimum(points + radius, 1) - np.maximum(points - radius, 0)
        n_above += bool(inside.max() > limit)
    assert n_above <= binom.ppf(0.999, n_samples, 0.05)


def test_the_bound_of_a_split_fit_is_near_what_is_asked_and_trimmed():
    rows, _ = _contaminated(2_000, 0)
    detector = RankAD(trim=0.1, calibration="split", **QUICK).fit(rows)
    assert 0.15 < detector.false_alarm_bound(0.05).bound < 0.2


def test_the_covering_bound_adds_the_share_that_was_trimmed():
    calibration = Calibration.from_scores(np.arange(1e6), "in-sample")
    plain = covering_bound(calibration, 0.05, 0.1, 1.0)
    trimmed = covering_bound(calibration, 0.05, 0.1, 1.0, n_trimmed=10_000)
    assert plain.bound < 0.5
    assert trimmed.bound == pytest.approx(plain.bound + 1 / 101)
    assert plain.exact
    assert not trimmed.exact


def test_false_alarms_lie_between_what_was_asked_and_the_bound():
    """Nothing to trim: as many more false alarms as rows were trimmed. All to trim: as asked."""
    fresh = np.random.default_rng(9).normal(size=(20_000, 3))
    clean, _ = _contaminated(1_000, 0, seed=3)
    detector = RankAD(trim=0.05, alpha=0.05, **QUICK).fit(clean)
    rate = np.mean(detector.predict(fresh) == -1)
    assert 0.05 < rate <= detector.false_alarm_bound(delta=0.01).bound
    dirty, where = _contaminated(1_000, 50, seed=3)
    detector.fit(dirty)
    assert set(detector.trimmed_rows_) == set(where)
    rate = np.mean(detector.predict(fresh) == -1)
    # 47 alarms of 950 calibrating rows: 99.9 % of all runs are within 3.3 standard deviations of a Beta law.
    spread = beta.std(47, 904)
    assert abs(rate - 0.05) < 3.3 * spread + 0.005
