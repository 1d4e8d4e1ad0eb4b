"""Level sets: volumes against closed forms, honest errors, and the sets of fitted detectors."""

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chi2, kstest, norm
from sklearn.ensemble import IsolationForest

from rankad import KLPE, RankAD
from rankad.level_sets.curves import mass_volume_curve
from rankad.level_sets.level_set import LevelSet


class Gaussian:
    """A detector whose level sets are the true ones of a standard Gaussian."""

    class calibration_:
        scores = np.zeros(10**6)

    def __init__(self, d):
        self.calibration_ = self.calibration_()
        self.calibration_.threshold = lambda alpha: -chi2.ppf(1 - alpha, d)

    def score_samples(self, X):
        return -(np.asarray(X) ** 2).sum(axis=1)


def log_volume(d, alpha):
    return d / 2 * np.log(np.pi * chi2.ppf(1 - alpha, d)) - gammaln(d / 2 + 1)


def gaussian_set(d, alpha, n=1_000):
    return LevelSet(Gaussian(d), alpha, np.random.default_rng(d).normal(size=(n, d)))


@pytest.fixture(scope="module")
def detector():
    return KLPE(random_state=0).fit(np.random.default_rng(0).normal(size=(800, 2)))


@pytest.mark.parametrize("d", [1, 2, 5, 10])
@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_the_volume_of_a_gaussian_is_that_of_a_ball(d, alpha):
    found = gaussian_set(d, alpha).volume(random_state=1)
    assert found.relative_error <= 0.025
    assert abs(np.expm1(found.log_volume - log_volume(d, alpha))) < 0.05
    assert found.volume == pytest.approx(np.exp(found.log_volume))
    assert found.error == pytest.approx(found.volume * found.relative_error)


@pytest.mark.parametrize("d", [2, 10])
def test_the_error_bar_is_honest(d):
    level, truth = gaussian_set(d, 0.1), np.exp(log_volume(d, 0.1))
    found = [level.volume(n_points=2_000, random_state=seed) for seed in range(60)]
    z = np.array([(one.volume - truth) / one.error for one in found])
    # The mean square of 60 standard normal variables.
    assert 30 < (z**2).sum() < 105


@pytest.mark.parametrize("d", [2, 5])
def test_a_learned_set_is_hardly_larger_than_the_smallest_that_holds_as_much(d):
    rng = np.random.default_rng(d)
    detector = RankAD(random_state=0).fit(rng.normal(size=(20_000, d)))
    level = detector.level_set(0.1)
    mass = level.contains(rng.normal(size=(50_000, d))).mean()
    assert mass == pytest.approx(0.9, abs=0.02)
    ratio = np.exp(level.volume().log_volume - log_volume(d, 1 - mass))
    # No set is smaller; to three standard errors, and that of the mass.
    assert 0.95 < ratio < 1.08


@pytest.mark.parametrize(
    ("center", "scale"),
    [
        (0.0, [1e-6, 1.0, 1e3, 1e6]),
        (1.7e9, [1.0, 1.0, 1.0, 1.0]),
        ([0.0, 1.7e9, 0.0, 1e-3], [1e-200, 1.0, 1e200, 1e-6]),
    ],
    ids=["units", "seconds since 1970", "far apart"],
)
def test_units_and_origins_of_columns_change_nothing_but_the_unit_of_the_volume(center, scale):
    class Moved(Gaussian):
        def score_samples(self, X):
            return super().score_samples((X - center) / scale)

    rows = np.random.default_rng(0).normal(size=(1_000, 4)) * scale + center
    level = LevelSet(Moved(4), 0.1, rows)
    found = level.volume(random_state=1)
    assert abs(np.expm1(found.log_volume - log_volume(4, 0.1) - np.log(scale).sum())) < 0.05
    assert level.contains(level.sample(100)).all()


def test_a_column_with_one_value_has_no_volume_that_can_be_told(detector):
    rows = np.c_[np.random.default_rng(0).normal(size=(300, 2)), np.full(300, 0.1)]
    with pytest.raises(ValueError, match="could not be estimated"):
        KLPE().fit(rows).level_set(0.1).volume()


def test_a_volume_that_cannot_be_found_is_refused():
    class Sliver(Gaussian):
        def score_samples(self, X):
            return np.where(np.abs(X[:, 0] - 8.0) < 1e-6, 0.0, -np.inf)

    level = LevelSet(Sliver(2), 0.1, np.random.default_rng(0).normal(size=(200, 2)))
    with pytest.raises(ValueError, match="could not be estimated to a relative error"):
        level.volume()


def test_the_set_holds_the_rows_that_are_no_alarms(detector):
    rows = 2 * np.random.default_rng(1).normal(size=(300, 2))
    for alpha in (0.01, 0.2, 0.7):
        np.testing.assert_array_equal(
            detector.level_set(alpha).contains(rows), detector.p_values(rows) > alpha
        )
    assert detector.level_set().alpha == detector.alpha


def test_sets_are_nested(detector):
    sets = [detector.level_set(alpha) for alpha in (0.02, 0.1, 0.5)]
    volumes = [one.volume(n_points=4_000).volume for one in sets]
    assert volumes == sorted(volumes, reverse=True)
    assert sets[2].is_within(sets[1])
    assert not sets[0].is_within(sets[1])
    with pytest.raises(ValueError, match="same detector"):
        sets[0].is_within(gaussian_set(2, 0.1))
    with pytest.raises(ValueError, match="same detector, got KLPE"):
        sets[0].is_within(KLPE())


def test_the_set_of_a_detector_is_about_the_true_one(detector):
    found = detector.level_set(0.1).volume(max_error=0.02)
    assert found.volume == pytest.approx(np.exp(log_volume(2, 0.1)), rel=0.2)


def test_the_boundary_runs_where_the_score_is_the_threshold(detector):
    level = detector.level_set(0.1)
    curves = level.boundary(120)
    longest = max(curves, key=len)
    np.testing.assert_allclose(longest[0], longest[-1])
    np.testing.assert_allclose(detector.score_samples(longest), level.threshold, atol=0.05)
    # The area within, by the shoelace formula, is the volume.
    x, y = longest.T
    area = abs(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2
    assert area == pytest.approx(level.volume(max_error=0.02).volume, rel=0.1)


def test_points_are_spread_evenly_over_the_set():
    points = gaussian_set(2, 0.1).sample(3_000, random_state=0)
    radius = np.sqrt((points**2).sum(axis=1) / chi2.ppf(0.9, 2))
    assert radius.max() <= 1
    # The square of the radius of a point in a disc is uniform.
    assert np.mean(radius**2) == pytest.approx(0.5, abs=0.02)
    assert gaussian_set(5, 0.1).project((0, 3), n=50).shape == (50, 2)


@pytest.mark.parametrize("d", [10, 20])
def test_points_are_spread_evenly_in_many_columns(d):
    points = gaussian_set(d, 0.1).sample(4_000, random_state=0)
    # The radius to the power of d is uniform.
    share = ((points**2).sum(axis=1) / chi2.ppf(0.9, d)) ** (d / 2)
    assert kstest(share, "uniform").pvalue > 1e-3
    with pytest.raises(ValueError, match="spread evenly over the set were found among 1,000,000"):
        gaussian_set(20, 0.1, n=30).sample(10**6)


def test_a_set_that_is_the_whole_space_has_no_volume(detector):
    level = detector.level_set(1e-5)
    assert not level.is_bounded
    assert level.contains([[1e3, 1e3]]).all()
    with pytest.raises(ValueError, match="the set is the whole space and has no volume"):
        level.volume()


def test_boundaries_are_for_two_columns():
    with pytest.raises(ValueError, match="two columns"):
        gaussian_set(3, 0.1).boundary()


@pytest.mark.parametrize("columns", [(0, 3), (-1, 0), (0, 1, 2), (0, 0.5), "ab"])
def test_a_projection_is_on_two_columns_that_there_are(columns):
    with pytest.raises(ValueError, match=r"columns must be two positions from 0 to 2, .*; got"):
        gaussian_set(3, 0.1).project(columns)


@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_a_sample_has_at_least_one_point(n):
    with pytest.raises(ValueError, match=f"n must be an integer >= 1, got {n}"):
        gaussian_set(2, 0.1).sample(n)


def test_the_mass_volume_curve_of_a_gaussian_is_known():
    rows = np.random.default_rng(0).normal(size=(20_000, 1))
    curve = mass_volume_curve(lambda x: -np.abs(x[:, 0]), rows, masses=[0.5, 0.9, 0.95], n_points=20_000)
    truth = 2 * norm.ppf(0.5 + curve.mass / 2)
    assert (np.abs(curve.volume - truth) < 4 * curve.error + 0.04).all()
    assert curve.excess_mass(np.array([0.0]))[0] == pytest.approx(0.95)
    levels = np.array([0.05, 0.2])
    assert (np.diff(curve.excess_mass(levels)) < 0).all()


def test_the_better_score_has_the_lower_curve(detector):
    rows = np.random.default_rng(5).normal(size=(1_000, 2)) * [1, 1]
    ours = mass_volume_curve(detector, rows, n_points=4_000)
    worse = mass_volume_curve(lambda x: -np.abs(x[:, 0] - 1) - 0.2 * np.abs(x[:, 1]), rows, n_points=4_000)
    assert ours.area() < worse.area()
    with pytest.raises(ValueError, match="masses must be shares"):
        mass_volume_curve(detector, rows, masses=[1.0])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_sets_and_curves_of_tables_with_names_are_those_of_arrays(library):
    """scikit-learn warns of rows without names, and a warning is a failure here."""
    frames = pytest.importorskip(library)
    rows = np.random.default_rng(0).normal(size=(200, 2))
    table = frames.DataFrame({"first": rows[:, 0], "second": rows[:, 1]})
    plain, named = KLPE().fit(rows), KLPE().fit(table)
    assert named.level_set(0.1).volume() == plain.level_set(0.1).volume()
    assert np.array_equal(named.level_set(0.1).sample(5), plain.level_set(0.1).sample(5))
    assert np.array_equal(named.level_set(0.1).grid(20)[2], plain.level_set(0.1).grid(20)[2])
    of_table, of_array = mass_volume_curve(named, table), mass_volume_curve(plain, rows)
    assert np.array_equal(of_table.volume, of_array.volume)


def test_sets_of_a_known_score_are_made_by_the_public_method():
    def score(x):
        return -(x**2).sum(axis=1)

    rows = np.random.default_rng(0).normal(size=(20_000, 5))
    level = LevelSet.of_score(score, rows, threshold=-chi2.ppf(0.9, 5))
    assert level.alpha == pytest.approx(0.1, abs=0.01)
    assert abs(np.expm1(level.volume().log_volume - log_volume(5, 0.1))) < 0.05
    wider = LevelSet.of_score(score, rows, 0.05)
    # The rows tell the threshold: an exact split calibration.
    assert wider.threshold == np.sort(score(rows))[int(0.05 * 20_001) - 1]
    assert level.is_within(wider)
    assert not wider.is_within(level)
    with pytest.raises(ValueError, match="same detector"):
        level.is_within(LevelSet.of_score(lambda x: score(x), rows))


def test_sets_of_other_detectors_have_volumes_too():
    rng = np.random.default_rng(0)
    forest = IsolationForest(random_state=0).fit(rng.normal(size=(300, 2)))
    level = LevelSet.of_score(forest, rng.normal(size=(300, 2)), 0.1)
    x = np.stack(np.meshgrid(*[np.linspace(-6, 6, 400)] * 2), axis=-1).reshape(-1, 2)
    area = (forest.score_samples(x) >= level.threshold).mean() * 144
    assert level.volume(max_error=0.02).volume == pytest.approx(area, rel=0.05)
    assert "IsolationForest at alpha=0.1" in repr(level)


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (np.zeros(5), {}, "at least two rows of numbers, got shape"),
        (np.zeros((9, 2)), {"threshold": np.inf}, "threshold must be None or a finite number, got inf"),
        (np.zeros((9, 3)), {}, "one number for each row"),
        (np.full((9, 2), np.nan), {}, "rows must hold finite numbers"),
        (np.zeros((9, 2)), {"alpha": 1.0}, "alpha must be a number strictly between 0 and 1"),
    ],
)
def test_what_is_no_score_or_level_is_refused(rows, options, said):
    with pytest.raises(ValueError, match=said):
        LevelSet.of_score(lambda x: x[:, 0] if x.shape[1] == 2 else x, rows, **options)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.full((9, 2), np.inf), "X must hold finite numbers"),
        (np.zeros((9, 3)), r"one number for each row.*of 9 rows it returned shape \(9, 3\)\."),
        (np.ones((9, 2)), r"returned shape \(9,\), with NaN"),
    ],
)
def test_a_curve_of_what_is_no_score_is_refused(rows, said):
    def score(x):
        return x if x.shape[1] == 3 else np.where(x[:, 0] == 1, np.nan, 0.0)

    with pytest.raises(ValueError, match=said):
        mass_volume_curve(score, rows)
