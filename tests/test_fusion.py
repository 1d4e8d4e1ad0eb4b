"""The soft minimum of several scores, their units, and the detector that is made of them."""

import math
import pickle

import numpy as np
import pytest
from scipy.spatial import cKDTree

from rankad import RankAD
from rankad.fitting import pipeline as fitting
from rankad.fitting.left_out import near_left_out
from rankad.scorers.fusion import FusedScorer, Units, fuse, units_of
from rankad.scorers.nearfield import near_unit

# ---------------------------------------------------------------------------------------------- soft minimum


def naive_fuse(parts, centers, spreads):
    """One row and one part at a time."""
    found = []
    for scores in parts.T:
        z = [
            (score - center) / spread for score, center, spread in zip(scores, centers, spreads, strict=True)
        ]
        z = [each if each >= -4 else -4 - math.log(1 + (-4 - each)) for each in z]
        found.append(-math.log(sum(math.exp(-each) for each in z) / len(z)))
    return found


def test_the_soft_minimum_has_a_naive_twin():
    rng = np.random.default_rng(0)
    parts = rng.standard_t(1, size=(3, 500)) * [[1.0], [100.0], [1e-3]] + [[0.0], [50.0], [-7.0]]
    units = Units(np.array([0.1, 50.0, -7.0]), np.array([1.0, 80.0, 2e-3]))
    np.testing.assert_allclose(fuse(parts, units), naive_fuse(parts, *units), rtol=1e-12, atol=1e-12)


def test_it_lies_between_the_least_and_the_mean():
    parts = np.random.default_rng(1).normal(size=(3, 200))
    found = fuse(parts, Units(np.zeros(3), np.ones(3)))
    assert (found >= parts.min(axis=0)).all()
    assert (found <= parts.mean(axis=0) + 1e-12).all()


def test_it_falls_with_every_part_however_far():
    """And goes on falling as far as numbers go: far rows keep their order."""
    falling = -np.geomspace(1e-3, 1e140, 400)
    units = Units(np.zeros(2), np.array([1.0, 0.1]))
    for order in (1, -1):
        scores = fuse(np.stack([falling, np.zeros(400)][::order]), units)
        assert (np.diff(scores) < 0).all()
    least = fuse(np.array([[-np.inf, -1e300], [0.0, 0.0]]), units)
    assert np.isfinite(least).all()
    assert (least < -300).all()


def test_what_is_no_number_stays_none():
    found = fuse(np.array([[np.nan, 0.0, 0.0], [0.0, np.nan, 0.0]]), Units(np.zeros(2), np.ones(2)))
    assert np.isnan(found).tolist() == [True, True, False]


# ----------------------------------------------------------------------------------------------------- units


def test_units_by_hand():
    """Of 100 scores the outermost five on each side are drawn in to the next."""
    scores = np.random.default_rng(0).permutation(np.arange(100.0))
    centers, spreads = units_of(np.stack([scores, np.full(100, 3.0)]))
    assert centers.tolist() == [49.5, 3.0]
    assert spreads[0] == pytest.approx(np.clip(np.arange(100), 5, 94).std())
    assert spreads[1] == 0


@pytest.mark.parametrize("n", [20, 100, 1_000])
def test_a_wild_score_does_not_decide_the_unit(n):
    scores = np.random.default_rng(n).normal(size=(1, n))
    before = units_of(scores).spreads[0]
    scores[0, 0] = -1e9
    assert units_of(scores).spreads[0] == pytest.approx(before, rel=0.5)


def test_where_nearly_all_are_alike_the_others_count():
    scores = np.zeros((1, 100))
    scores[0, :3] = -5.0
    assert units_of(scores).spreads[0] > 0


# ------------------------------------------------------------------------------------------------ left out


def test_near_left_out_has_a_naive_twin():
    rows = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 40.0]
    unit, held = near_unit(rows), np.arange(0, 60, 7)
    np.testing.assert_allclose(unit, np.sqrt(rows.std(axis=0) * np.ptp(rows, axis=0)))
    others = np.delete(rows, held, axis=0)
    own = np.sqrt(others.std(axis=0) * np.ptp(others, axis=0))
    expected = -cKDTree(others / own).query(rows[held] / own, 5)[0].mean(axis=1)
    np.testing.assert_allclose(near_left_out(rows[held], others, unit), expected, rtol=1e-5)


def test_a_row_left_out_does_not_stretch_the_unit_that_it_is_measured_in():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    rows[3, 1] = 1e6
    unit, held = near_unit(rows), np.array([3, 10])
    others = np.delete(rows, held, axis=0)
    wild, usual = near_left_out(rows[held], others, unit)
    own = near_unit(others)
    assert wild == pytest.approx(-1e6 / own[1], rel=1e-3)
    # The other row of the fold is measured as rows of other folds are.
    assert usual == pytest.approx(-cKDTree(others / unit).query(rows[10] / unit, 5)[0].mean(), rel=1e-4)


# ------------------------------------------------------------------------------------------------- detectors


@pytest.fixture(scope="module")
def fitted():
    rows = np.random.default_rng(3).normal(size=(150, 3)) * [1.0, 20.0, 0.1]
    return RankAD(landmarks=40, random_state=0).fit(rows), rows


def test_the_score_is_the_soft_minimum_of_the_parts(fitted):
    detector, _ = fitted
    scorer = detector.scorer_
    new = np.random.default_rng(4).normal(size=(40, 3)) * [2.0, 40.0, 0.2]
    parts = np.stack([scorer.kernel.score(new), scorer.near.score(new), scorer.mixture.score(new)])
    np.testing.assert_array_equal(scorer.parts(new), parts)
    np.testing.assert_allclose(detector.score_samples(new), naive_fuse(parts, *scorer.units), rtol=1e-12)


def test_far_rows_keep_their_order(fitted):
    detector, _ = fitted
    scores = detector.score_samples(np.geomspace(1e3, 1e130, 300)[:, None] * [0.6, -0.8, 0.0])
    assert (np.diff(scores) < 0).all()


def test_threads_and_pickles_change_nothing(fitted):
    detector, _ = fitted
    rows = np.random.default_rng(5).normal(size=(30_000, 3)) * [1.0, 20.0, 0.1]
    expected = detector.scorer_.score(rows)
    again = pickle.loads(pickle.dumps(detector.scorer_))
    np.testing.assert_array_equal(again.score(rows, n_jobs=4), expected)
    np.testing.assert_array_equal(again.score(rows[7:8]), expected[7:8])


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ("near", "mixture")),
        ({"near_field": False}, ("mixture",)),
        ({"n_components": 0}, ("near",)),
        ({"near_field": False, "n_components": 0}, ()),
        ({"calibration": "in-sample"}, ()),
        ({"calibration": "split"}, ("near", "mixture")),
    ],
)
def test_which_parts_there_are(quick_rankad, nominal, given, names):
    scorer = quick_rankad(**given).fit(nominal).scorer_
    assert tuple(name for name in ("near", "mixture") if getattr(scorer, name) is not None) == names
    assert scorer.n_parts == 1 + len(names)
    assert (scorer.units is None) == (not names)


def test_alone_the_kernels_score_is_the_score(quick_rankad, nominal):
    detector = quick_rankad(near_field=False, n_components=0).fit(nominal)
    np.testing.assert_array_equal(detector.score_samples(nominal), detector.scorer_.kernel.score(nominal))
    assert FusedScorer(detector.scorer_.kernel).n_parts == 1


@pytest.mark.parametrize("rows", [np.ones((20, 3)), np.repeat(np.eye(3), 20, axis=0)], ids=["one", "three"])
@pytest.mark.filterwarnings("ignore:.*different rows come more than once")
def test_parts_that_tell_no_rows_apart_are_dropped(quick_rankad, rows):
    scorer = quick_rankad().fit(rows).scorer_
    assert scorer.near is None
    assert np.isfinite(scorer.score(rows)).all()


def test_calibration_scores_are_those_of_parts_left_out(quick_rankad, monkeypatch, nominal):
    """Of each part, made without the row's fold, in the units of the whole."""
    seen = {}
    monkeypatch.setattr(
        fitting, "units_of", lambda parts: seen.setdefault("parts", parts) is None or units_of(parts)
    )
    detector = quick_rankad().fit(nominal)
    left_out = np.array(naive_fuse(seen["parts"], *detector.scorer_.units))
    own = detector.score_samples(nominal)
    # What is nearly the same counts as a tie.
    expected = np.where(left_out - own <= 0.05, np.minimum(left_out, own), left_out) - 1e-6
    np.testing.assert_allclose(detector.calibration_.scores, np.sort(expected), rtol=0, atol=1e-9)
    # Rows seem farther to parts that had not seen them.
    by_all = detector.scorer_.parts(nominal)
    assert (seen["parts"][1] < by_all[1]).all()
    assert seen["parts"][2].mean() < by_all[2].mean()


def test_a_broken_relation_is_an_alarm():
    """Twenty columns, of which four obey a relation with noise 1; one of these is moved by 8."""
    rng = np.random.default_rng(0)

    def draw(n):
        rows = rng.normal(size=(n, 20)) * 3
        rows[:, 3] = rows[:, :3].sum(axis=1) + rng.normal(size=n)
        return rows

    detector = RankAD(random_state=0).fit(draw(1_000))
    broken = draw(200)
    broken[:, 3] += 8.0 * rng.choice([-1, 1], size=200)
    assert np.mean(detector.p_values(broken) <= 0.01) >= 0.9


def test_rows_of_three_scales_are_no_plateau_of_alarms():
    """To no part do four rows in five differ: left out they score a little more than the final score says."""
    rates = []
    for seed in range(3):
        rng = np.random.default_rng([seed, 400])
        scales = [rng.choice([1e-5, 1.0, 1e5], p=[0.8, 0.15, 0.05], size=(n, 1)) for n in (400, 2_000)]
        training, fresh = (rng.normal(size=(len(scale), 3)) * scale for scale in scales)
        rates.append(np.mean(RankAD().fit(training).p_values(fresh) <= 0.2))
    assert max(rates) < 0.3


def test_a_row_left_out_is_not_likelier_by_far_than_by_the_final_mixture(quick_rankad, monkeypatch):
    """Folds that hold the only huge value of a column have another unit there, by which all is likelier."""
    seen = {}
    monkeypatch.setattr(
        fitting, "units_of", lambda parts: seen.setdefault("parts", parts) is None or units_of(parts)
    )
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 4))
    rows[:8] += 1e6 * np.eye(8, 4)
    mixture = quick_rankad(near_field=False).fit(rows).scorer_.mixture
    of_final, left_out = mixture.score(rows), seen["parts"][-1]
    # In some folds scores left out are above those of the final mixture by far; not so here.
    assert (left_out <= of_final + 1).all()
    assert (left_out < of_final).any()
