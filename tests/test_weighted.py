"""P-values under covariate shift: equal weights, by definition, and on rows that have shifted."""

import numpy as np
import pytest

from rankad.certificates.weighted import shift_weights, weighted_p_values
from rankad.stages.calibration import Calibration


def test_equal_weights_make_the_ordinary_p_values():
    rng = np.random.default_rng(0)
    calibration, scores = rng.integers(0, 9, 40), rng.integers(0, 9, 30)
    ordinary = Calibration.from_scores(calibration, "split").p_values(scores)
    np.testing.assert_allclose(
        weighted_p_values(scores, np.full(30, 2), calibration, np.full(40, 2)), ordinary
    )


def test_they_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    known, weights, scores, own = (rng.random(size) for size in (20, 20, 5, 5))
    expected = [
        (weights[known <= s].sum() + w) / (weights.sum() + w) for s, w in zip(scores, own, strict=True)
    ]
    np.testing.assert_allclose(weighted_p_values(scores, own, known, weights), expected)


@pytest.mark.parametrize("estimated", [False, True])
def test_false_alarms_are_kept_where_rows_have_shifted(estimated):
    # The score is the distance to where rows were: after a shift of one, ordinary p-values are too small.
    rng, alpha, shift, plain, weighted = np.random.default_rng(2), 0.1, 1.0, [], []
    for _ in range(100):
        calibration, fresh = rng.normal(size=(200, 1)), rng.normal(shift, 1, size=(20, 1))
        if estimated:
            recent = rng.normal(shift, 1, size=(300, 1))
            known, own, _ = shift_weights(calibration, recent, fresh)
        else:
            # The ratio of the two Gaussian densities.
            known, own = (np.exp(shift * x[:, 0] - shift**2 / 2) for x in (calibration, fresh))
        scores = [-np.abs(rows[:, 0]) for rows in (fresh, calibration)]
        weighted.append((weighted_p_values(scores[0], own, scores[1], known) <= alpha).mean())
        plain.append((Calibration.from_scores(scores[1], "split").p_values(scores[0]) <= alpha).mean())
    error = np.std(weighted) / np.sqrt(100)
    assert np.mean(plain) > 2 * alpha
    assert np.mean(weighted) < alpha + 3 * error + (0.02 if estimated else 0.0)


def test_weights_that_cannot_be_are_refused():
    with pytest.raises(
        ValueError, match=r"one weight for each score.* scores of shape \(1,\), weights of \(2,\)"
    ):
        weighted_p_values([1.0], [1.0, 2.0], [1.0], [1.0])
    with pytest.raises(ValueError, match=r"^weights must be finite numbers of at least 0, got -1"):
        weighted_p_values([1.0], [-1.0], [1.0], [1.0])
    with pytest.raises(
        ValueError, match=r"^calibration_weights must be finite numbers of at least 0, got nan"
    ):
        weighted_p_values([1.0], [1.0], [1.0], [np.nan])
    with pytest.raises(ValueError, match=r"the same columns, got shapes \(5, 3\), \(5, 2\) and \(1, 3\)"):
        shift_weights(np.ones((5, 3)), np.ones((5, 2)), np.ones((1, 3)))
    assert weighted_p_values([1.0], [0.0], [2.0], [0.0]) == 1.0


def test_only_the_ratios_of_weights_count():
    # Weights of 1e308 have no sum.
    scores, known = [0.2, 0.6, 0.9], [0.5, 0.7, 0.8]
    expected = weighted_p_values(scores, [1, 2, 1], known, [1, 1, 2])
    for factor in (1e-300, 0.5e308):
        found = weighted_p_values(
            scores, np.multiply([1, 2, 1], factor), known, np.multiply([1, 1, 2], factor)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert weighted_p_values([0.2], [0.0], known, [0.0, 0.0, 0.0]) == 1
