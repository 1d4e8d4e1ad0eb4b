"""The verdict on p-values: right on made-up ones, and wrong on nominal ones no more often than it says."""

import numpy as np
import pytest
from scipy.stats import binom, kstwobign

from rankad.alarms.chance import Chance, PValueSummary
from rankad.alarms.verdict import COLUMN_LEVEL, LEVEL, judge
from rankad.stages.calibration import Calibration


def judged(p_values, chance, alpha=0.05):
    return judge(PValueSummary.of([p_values], alpha), chance, alpha)


def spread(n_alarms, n_rows=1000, alpha=0.05):
    """P-values of which so many are alarms, and the others are evenly spread."""
    return np.append(np.full(n_alarms, 0.8 * alpha), np.linspace(alpha + 0.001, 1, n_rows - n_alarms))


@pytest.mark.parametrize(
    ("n_alarms", "kind"), [(300, "more"), (90, "more"), (60, "usual"), (40, "usual"), (10, "fewer")]
)
def test_alarms_are_held_against_chance(n_alarms, kind):
    verdict = judged(spread(n_alarms), Chance(999))
    assert (verdict.kind, verdict.n_alarms, verdict.n_rows, verdict.expected) == (kind, n_alarms, 1000, 50)
    assert verdict.is_off == (kind != "usual")


def test_a_calibration_of_few_rows_allows_for_more_alarms():
    # 90 alarms of 1,000 are too many beside 999 nominal rows, and not beside 99, nor beside 999 left out.
    assert judged(spread(90), Chance(99)).kind == "usual"
    assert judged(spread(90), Chance(999, worth=1 / 3)).kind == "usual"


def test_a_stricter_rate_shows_what_alpha_hides():
    p_values = np.append(np.full(40, 0.0009), np.linspace(0.051, 1, 960))
    verdict = judged(p_values, Chance(9_999))
    assert (verdict.kind, verdict.strict_alpha) == ("some", 0.001)


def test_the_shape_of_p_values_is_the_two_sample_test_of_kolmogorov():
    rng = np.random.default_rng(0)
    for power, shape in ((1.0, None), (1.25, "low"), (0.75, "high")):
        p_values = rng.random(1000) ** power
        assert judged(p_values, Chance(1999)).shape == shape
    # On the very edge: all p-values in a bin are moved into the next by a share d.
    critical = kstwobign.isf(0.2 * LEVEL) * np.sqrt(1 / 10_000 + 1 / 10_000)
    for factor, shape in ((0.97, None), (1.03, "high")):
        n_moved = round(10_000 * critical * factor)
        p_values = np.linspace(1e-4, 1, 10_000)
        p_values[5_000 - n_moved : 5_000] = 0.501
        assert judged(p_values, Chance(10_000)).shape == shape


def test_nothing_is_said_where_nothing_can_be_known():
    assert judged([], Chance(99)).kind == "empty"
    assert judged([0.5], Chance(9)).kind == "silent"
    unknown = judged(np.full(100, 0.01), Chance(99, worth=0.0))
    assert (unknown.kind, unknown.shape, unknown.is_off) == ("unknown", None, False)


@pytest.mark.parametrize(("n", "m"), [(199, 50), (199, 20_001), (1_999, 400)])
@pytest.mark.parametrize("ties", [False, True])
def test_nominal_tables_are_said_to_be_off_no_more_often_than_stated(n, m, ties):
    rng, n_runs, n_off = np.random.default_rng([n, m, ties]), 300, 0
    for _ in range(n_runs):
        scores = rng.normal(size=n + m)
        if ties:
            scores = np.round(scores, 1)
        calibration = Calibration.from_scores(scores[:n], "split")
        n_off += judged(calibration.p_values(scores[n:]), Chance.of(calibration)).is_off
    stated = LEVEL - COLUMN_LEVEL
    assert n_off <= binom.ppf(0.999, n_runs, stated)
