"""Certificates: against closed forms, against scipy, and how often they fail on fresh calibrations."""

import numpy as np
import pytest
from scipy import stats

from rankad import KLPE
from rankad.certificates.certificate import Certificate
from rankad.certificates.laws import (
    _stay_below,
    beta_upper,
    conditional_p_values,
    rows_needed,
    simultaneous_upper,
)
from rankad.stages.calibration import Calibration, beta_bound, n_attainable

METHODS = ("exact", "simes", "dkw")


def calibration_of(n, kind="split"):
    return Calibration.from_scores(np.arange(float(n)), kind)


def no_more_than(failures, repetitions, delta):
    """Whether this many failures are no evidence, at one in ten thousand, of a rate above delta."""
    return stats.binom.sf(failures - 1, repetitions, delta) > 1e-4


@pytest.mark.parametrize("n", [1, 2, 7, 60, 700])
def test_the_probability_of_a_band_is_that_of_kolmogorov_and_smirnov(n):
    ranks, width = np.arange(1, n + 1), 1.2 / np.sqrt(n)
    band = np.minimum((ranks - 1) / n + width, 1.0)
    assert _stay_below(n, ranks, band) == pytest.approx(stats.ksone.cdf(min(width, 1), n), abs=1e-9)


@pytest.mark.parametrize("n", [1, 9, 250, 1200])
@pytest.mark.parametrize("method", METHODS)
def test_simultaneous_bounds_hold_together(n, method):
    delta, repetitions = 0.1, 3_000
    uniforms = np.sort(np.random.default_rng(n).random((repetitions, n)), axis=1)
    failures = int((uniforms > simultaneous_upper(n, delta, method)).any(axis=1).sum())
    assert no_more_than(failures, repetitions, delta)
    if method == "exact":
        # And are not wider than needed: the band fails about as often as it may.
        assert failures > 0.8 * delta * repetitions


def test_simultaneous_bounds_ascend_and_are_wider_than_those_of_one_rank():
    for method in METHODS:
        bounds = simultaneous_upper(500, 0.05, method)
        assert (np.diff(bounds) >= 0).all()
        assert (bounds <= 1).all()
    exact = simultaneous_upper(500, 0.05)
    assert (exact >= beta_upper(np.arange(1, 501), 500, 0.05)).all()
    # At small rates it is far narrower than the band of constant width.
    assert exact[4] < 0.5 * simultaneous_upper(500, 0.05, "dkw")[4]


def test_the_simes_band_is_the_formula_of_bates_et_al():
    n, delta, k = 8, 0.1, 4
    falling = [np.prod(np.arange(i - k + 1, i + 1.0)) if i >= k else 0.0 for i in range(n, 0, -1)]
    expected = [1 - (delta * value / falling[0]) ** (1 / k) for value in falling]
    np.testing.assert_allclose(simultaneous_upper(n, delta, "simes"), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("alpha", "delta", "tolerance"),
    [(0.05, 0.05, 0.02), (0.013, 0.1, 0.01), (0.2, 0.01, 0.3), (0.3, 0.1, 0.01), (0.05, 0.3, 0.002)],
)
def test_rows_needed_is_where_the_bound_starts_to_hold_for_good(alpha, delta, tolerance):
    needed = rows_needed(alpha, delta, tolerance)
    several = np.arange(1, 4 * needed)
    ranks = np.array([n_attainable(int(n), alpha) for n in several])
    holds = (ranks >= 1) & (stats.beta.ppf(1 - delta, ranks, several + 1 - ranks) <= alpha + tolerance)
    assert needed == several[np.flatnonzero(~holds)[-1]] + 1


def test_rows_that_are_left_out_count_for_less():
    assert rows_needed(0.05, 0.05, 0.02, "cross-fit") > 2 * rows_needed(0.05, 0.05, 0.02)
    with pytest.raises(ValueError, match="calibration must be 'split'"):
        rows_needed(0.05, 0.05, 0.02, "in-sample")


def test_the_range_of_one_alpha_is_that_of_the_beta_law():
    certificate = Certificate(calibration_of(999), 0.1)
    low, high = stats.beta.ppf([0.05, 0.95], 20, 980)
    assert certificate.range(0.02) == pytest.approx((0.02, low, high))
    assert certificate.upper(0.02) == pytest.approx(beta_bound(calibration_of(999), 0.02, 0.1).bound)
    assert certificate.smallest_alpha == pytest.approx(0.001)
    assert certificate.smallest_rate == pytest.approx(1 - 0.1 ** (1 / 999))
    assert certificate.range(0.0005) == (0.0005, 0.0, 0.0)


def test_alpha_for_a_rate_is_the_largest_that_keeps_to_it():
    certificate = Certificate(calibration_of(1_500), 0.05)
    alpha = certificate.alpha_for(0.02)
    assert certificate.upper(alpha) <= 0.02 < certificate.upper(alpha + 1 / 1501)
    with pytest.raises(
        ValueError, match=r"rate must be at least 0\.002, the smallest that 1500 .*Calibrate with more rows"
    ):
        certificate.alpha_for(0.001)


@pytest.mark.parametrize("contamination", [0.0, 0.03])
def test_ranges_cover_the_realised_rate(contamination):
    # Scores are uniform, so that the realised rate is the threshold. Anomalies score at the worst place.
    rng, n, delta, repetitions = np.random.default_rng(0), 200, 0.1, 400
    n_bad, alphas = round(contamination * n), (0.01, 0.05, 0.2, 0.5, 0.9)
    for place in (2.0, -1.0):
        missed, missed_any = dict.fromkeys(alphas, 0), 0
        for _ in range(repetitions):
            scores = np.r_[rng.random(n - n_bad), np.full(n_bad, place) + 1e-3 * rng.random(n_bad)]
            certificate = Certificate(Calibration.from_scores(scores, "split"), delta).contaminated(
                contamination
            )
            rates = {alpha: np.clip(certificate.calibration.threshold(alpha), 0, 1) for alpha in alphas}
            for alpha, rate in rates.items():
                found = certificate.range(alpha)
                missed[alpha] += not found.low <= rate <= found.high
            ranges = [certificate.simultaneous(alpha) for alpha in alphas]
            missed_any += any(not one.low <= rates[one.alpha] <= one.high for one in ranges)
        assert all(no_more_than(count, repetitions, delta) for count in missed.values())
        assert no_more_than(missed_any, repetitions, delta)


@pytest.mark.parametrize("n", [6, 20, 80])
@pytest.mark.parametrize(
    "shares", [[0.05, 0.95], [0.03, 0.3, 0.67], [1 / 6] * 6], ids=["two", "three", "six"]
)
def test_ranges_cover_where_scores_tie(n, shares):
    # A value that has come up once is an atom all the same: the rate at it is that of the values below.
    rng, delta, repetitions = np.random.default_rng(1), 0.1, 400
    below, alphas = np.r_[0.0, np.cumsum(shares)], (0.05, 0.15, 0.3, 0.6)
    missed, missed_any = dict.fromkeys(alphas, 0), 0
    for _ in range(repetitions):
        scores = rng.choice(len(shares), n, p=shares)
        certificate = Certificate(Calibration.from_scores(scores, "split"), delta)
        rates = {}
        for alpha in alphas:
            threshold = certificate.calibration.threshold(alpha)
            rates[alpha] = below[int(threshold)] if np.isfinite(threshold) else 0.0
            found = certificate.range(alpha)
            missed[alpha] += not found.low <= rates[alpha] <= found.high
        ranges = [certificate.simultaneous(alpha) for alpha in alphas]
        missed_any += any(not one.low <= rates[one.alpha] <= one.high for one in ranges)
    assert all(no_more_than(count, repetitions, delta) for count in missed.values())
    assert no_more_than(missed_any, repetitions, delta)


def test_contamination_widens_the_range():
    clean = Certificate(calibration_of(999), 0.05)
    bad = clean.contaminated(0.02)
    assert bad.n == 979
    assert bad.range(0.01).low == 0
    assert bad.range(0.1).low < clean.range(0.1).low < clean.range(0.1).high < bad.range(0.1).high
    assert bad.range(0.1).high < clean.range(0.1).high * 1.03
    assert "20 of the calibration rows may be anomalies" in bad.basis
    with pytest.raises(ValueError, match="share must be"):
        clean.contaminated(0.7)


@pytest.mark.parametrize("method", METHODS)
def test_conditional_p_values_are_valid_given_the_calibration(method):
    rng, n, delta, repetitions = np.random.default_rng(2), 150, 0.1, 1_000
    every = np.arange(1, n + 2) / (n + 1)
    adjusted = conditional_p_values(every, n, delta, method)
    assert (np.diff(adjusted) >= 0).all()
    failures = 0
    for _ in range(repetitions):
        thresholds = np.sort(rng.random(n))
        # P(p <= every[r - 1]) is the r-th threshold; validity compares it with the adjusted value.
        failures += bool((thresholds > adjusted[:n] + 1e-12).any())
    assert no_more_than(failures, repetitions, delta)
    np.testing.assert_allclose(Certificate(calibration_of(n), delta).p_values(every, method), adjusted)


def test_conditional_p_values_of_left_out_rows_are_larger():
    # Up to one half; bounds beyond rank 200 are on a coarser grid.
    every = np.arange(1, 151) / 301
    assert (conditional_p_values(every, 300, worth=1 / 3) >= conditional_p_values(every, 300) - 1e-12).all()


def test_a_detector_has_a_certificate(quick_rankad):
    rows = np.random.default_rng(0).normal(size=(600, 2))
    split = quick_rankad(calibration="split").fit(rows[:400])
    found = split.certificate(0.1)
    assert found.exact
    assert found.upper(0.05) == pytest.approx(split.false_alarm_bound(0.05, 0.1).bound)
    assert "one alpha alone" in str(found)
    left_out = KLPE().fit(rows)
    assert not left_out.certificate().exact
    assert "approximate" in str(left_out.certificate())
    assert left_out.calibrate(rows[:50]).certificate(contamination=0.1).n == 45


def test_trimmed_rows_count_as_in_the_bound(quick_rankad):
    rows = np.random.default_rng(0).normal(size=(300, 2))
    detector = quick_rankad(trim=0.05).fit(rows)
    assert detector.certificate(0.1).upper(0.05) == pytest.approx(detector.false_alarm_bound(0.05, 0.1).bound)


def test_a_wrong_share_of_anomalies_is_named_as_it_was_given():
    detector = KLPE().fit(np.random.default_rng(0).normal(size=(60, 2)))
    with pytest.raises(ValueError, match=r"contamination must be a number from 0 to below 0\.5, got 0\.7"):
        detector.certificate(contamination=0.7)


def test_an_in_sample_calibration_has_no_certificate(quick_rankad):
    detector = quick_rankad(calibration="in-sample").fit(np.random.default_rng(0).normal(size=(60, 2)))
    with pytest.raises(ValueError, match="in-sample calibration has no certificate"):
        detector.certificate()


@pytest.mark.parametrize("n", [0, -3, 2.5])
def test_conditional_p_values_need_calibration_rows(n):
    with pytest.raises(ValueError, match=f"n must be the number of calibration rows, .* got {n}; it is"):
        conditional_p_values([0.5], n)


@pytest.mark.parametrize("wrong", [-0.1, 2.0, np.nan])
def test_only_p_values_are_made_conditional(wrong):
    certificate = KLPE().fit(np.random.default_rng(0).normal(size=(100, 2))).certificate()
    for make in (certificate.p_values, lambda p: conditional_p_values(p, 100)):
        with pytest.raises(ValueError, match=f"p_values must be numbers from 0 to 1, got {wrong:g}"):
            make([0.5, wrong])
