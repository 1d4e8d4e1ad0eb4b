"""Counts of p-values against numpy's, and the law of alarms by chance against its exact law and draws."""

import bisect
import math

import numpy as np
import pytest
from scipy.stats import betabinom, hypergeom

from rankad.alarms.chance import Chance, PValueSummary
from rankad.stages.calibration import Calibration, n_attainable


def test_a_summary_counts_as_numpy_does_however_the_batches_are_cut():
    rng = np.random.default_rng(1)
    p_values = np.concatenate([rng.integers(1, 1001, size=3000) / 1000, np.arange(1, 21) / 20, [1e-9]])
    summary = PValueSummary.of(np.array_split(p_values, 7), 0.02)
    assert summary == PValueSummary.for_levels(0.02).add(p_values)
    assert summary.n_rows == len(p_values)
    assert summary.levels == (0.1, 0.05, 0.02, 0.01, 0.001)
    for alpha in summary.levels:
        assert summary.n_alarms(alpha) == (p_values <= alpha).sum()
    # Every bin holds its upper edge, so that sums of bins are counts of alarms.
    for at in range(1, 21):
        assert sum(summary.bins[:at]) == (p_values <= at / 20).sum()


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.0001, math.nan, math.inf])
def test_what_is_no_p_value_is_refused(bad):
    with pytest.raises(ValueError, match="p_values must be above 0 and at most 1"):
        PValueSummary.for_levels().add([0.5, bad])


def test_a_level_must_be_one_that_was_counted():
    with pytest.raises(ValueError, match=r"alpha must be a level that was counted.*for_levels\(0.02\)"):
        PValueSummary.for_levels().n_alarms(0.02)
    with pytest.raises(ValueError, match=r"alpha must be a number strictly between 0 and 1, got 1\.5"):
        PValueSummary.for_levels(1.5)


@pytest.mark.parametrize("n", [1, 9, 19, 20, 99, 999, 1999, 12345])
def test_attainable_p_values_are_those_of_the_calibration(n):
    calibration = Calibration.from_scores(np.arange(n), "split")
    possible = np.unique(calibration.p_values(np.arange(-1, n)))
    for alpha in (0.1, 0.05, 0.01, 0.001, 0.3, 0.999, 1 / (n + 1), 2 / (n + 1)):
        assert n_attainable(n, alpha) == calibration.n_below(alpha) == np.sum(possible <= alpha)


def _chance_by_drawing(n_rows, n, r):
    """Quantiles of the number of rows below the r-th of n, from the places of n balls in a row of all."""
    # At most k rows lie below the r-th nominal score if r of the first k + r scores are nominal.
    return tuple(
        bisect.bisect_left(range(n_rows + 1), share, key=lambda k: hypergeom.sf(r - 1, n_rows + n, n, k + r))
        for share in (0.025, 0.975)
    )


@pytest.mark.parametrize(("n_rows", "n", "alpha"), [(40, 99, 0.1), (500, 200, 0.05), (3000, 999, 0.01)])
def test_chance_alarms_have_the_quantiles_of_their_law(n_rows, n, alpha):
    assert Chance(n).span(n_rows, alpha) == _chance_by_drawing(n_rows, n, n_attainable(n, alpha))


@pytest.mark.parametrize(("n", "alpha"), [(300, 0.1), (1999, 0.001), (999, 0.05)])
def test_chance_alarms_of_many_rows_are_as_good_as_exact(n, alpha):
    n_rows = 30_000
    exact = _chance_by_drawing(n_rows, n, n_attainable(n, alpha))
    np.testing.assert_allclose(Chance(n).span(n_rows, alpha), exact, rtol=0.002, atol=1)


def test_chance_alarms_cover_those_of_nominal_rows():
    rng = np.random.default_rng(2)
    n, n_rows, alpha, n_runs = 199, 300, 0.05, 2000
    span = Chance(n).span(n_rows, alpha)
    inside = 0
    for _ in range(n_runs):
        p_values = Calibration.from_scores(rng.normal(size=n), "split").p_values(rng.normal(size=n_rows))
        inside += span.low <= (p_values <= alpha).sum() <= span.high
    # At least 95 %, within four standard deviations; discreteness adds at most the two end points.
    assert 0.95 - 4 * math.sqrt(0.05 * 0.95 / n_runs) <= inside / n_runs <= 0.98


def test_no_alarm_by_chance_where_none_can_be():
    assert Chance(99).span(1000, 0.001) == (0, 0)
    assert Chance(999).span(0, 0.05) == (0, 0)


def test_the_tails_are_those_of_the_span():
    chance = Chance(999)
    for n_rows in (400, 30_000):
        span = chance.span(n_rows, 0.05)
        assert chance.probability_of_more(span.high + 1, n_rows, 0.05) <= 0.0251
        assert chance.probability_of_more(span.high, n_rows, 0.05) >= 0.0249
        assert chance.probability_of_fewer(span.low - 1, n_rows, 0.05) <= 0.0251
        assert chance.probability_of_fewer(span.low, n_rows, 0.05) >= 0.0249
    assert chance.probability_of_more(0, 400, 0.05) == chance.probability_of_fewer(400, 400, 0.05) == 1


def test_a_row_left_out_counts_for_a_third():
    calibration = Calibration.from_scores(np.arange(899), "cross-fit")
    assert Chance.of(calibration).span(500, 0.05) == tuple(
        betabinom.ppf([0.025, 0.975], 500, 45 / 3, (900 - 45) / 3).astype(int)
    )


def test_rows_that_were_trimmed_may_all_be_alarms():
    # The 50th of 999 is at worst the 70th of 1,019.
    plain, trimmed = Chance(999), Chance(999, n_trimmed=20)
    assert trimmed.span(500, 0.05).low == plain.span(500, 0.05).low
    assert trimmed.span(500, 0.05).high == int(betabinom.ppf(0.975, 500, 70, 950))


def test_where_scores_tie_fewer_alarms_are_expected_and_left_out_more_may_come():
    # A heap of 40 scores around the 50th: 30 below it, 70 below its end.
    scores = np.sort(np.concatenate([np.arange(30) - 100.0, np.zeros(40), 1.0 + np.arange(929)]))
    split = Chance.of(Calibration(scores, "split"))
    assert split.shares(0.05) == (30 / 1000, 50 / 1000)
    left_out = Chance.of(Calibration(scores, "cross-fit"))
    assert left_out.shares(0.05) == (30 / 1000, 70 / 1000)
    # All scores equal: no row can be an alarm, and none is not too few.
    equal = Chance.of(Calibration(np.zeros(999), "split"))
    assert equal.probability_of_fewer(0, 100_000, 0.05) == 1


def test_of_an_in_sample_calibration_nothing_is_known():
    chance = Chance.of(Calibration(np.arange(999.0), "in-sample"))
    assert chance.span(100, 0.05) == (0, 100)
    assert chance.probability_of_more(100, 100, 0.05) == chance.probability_of_fewer(0, 100, 0.05) == 1
