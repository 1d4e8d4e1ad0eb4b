import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import oracles
from rankad.kernels import (
    FAR_REACH,
    TOLERANCE,
    KernelMap,
    KernelScorer,
    _spread_out,
    choose_landmarks,
    rbf_kernel,
    score_many,
)

# A kernel value this small may count as zero.
NEGLIGIBLE_VALUE = 1.1e-20

# ----------------------------------------------------------------------------------------------- the kernel


def test_kernel_is_the_papers_without_a_factor_two():
    # Distance 5, sigma 5: exp(-25 / 25).
    value = rbf_kernel(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), 5.0)
    np.testing.assert_allclose(value, [[math.exp(-1)]], rtol=1e-15)
    np.testing.assert_allclose(rbf_kernel(np.array([[1.0]]), np.array([[0.0]]), 0.5), [[math.exp(-4)]])


def test_kernel_equals_the_naive_one():
    rng = np.random.default_rng(0)
    rows, landmarks = rng.normal(size=(20, 3)), rng.normal(size=(7, 3))
    for sigma in (0.1, 1.0, 30.0):
        kernel = rbf_kernel(rows, landmarks, sigma)
        assert kernel.shape == (20, 7)
        np.testing.assert_allclose(
            kernel, oracles.rbf_matrix(rows, landmarks, sigma), rtol=1e-12, atol=NEGLIGIBLE_VALUE
        )


def test_kernel_of_a_row_with_itself_is_exactly_one():
    rows = np.random.default_rng(1).normal(size=(30, 4)) + 1e6
    assert (np.diag(rbf_kernel(rows, rows, 0.3)) == 1.0).all()


def test_only_negligible_values_are_taken_for_zero():
    rows = np.linspace(0, 8, 1_001)[:, None]
    kernel = rbf_kernel(rows, np.zeros((1, 1)), 1.0)[:, 0]
    exact = np.exp(-(rows[:, 0] ** 2))
    assert (kernel[exact > NEGLIGIBLE_VALUE] > 0).all()
    np.testing.assert_allclose(kernel, exact, rtol=1e-12, atol=NEGLIGIBLE_VALUE)
    scorer = KernelScorer(np.zeros((1, 1)), np.ones(1), np.ones(1), far_field=False)
    np.testing.assert_allclose(scorer.score(rows), exact, rtol=1e-12, atol=NEGLIGIBLE_VALUE)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_sigma_out_of_range_is_named(sigma):
    rows = np.zeros((2, 1))
    with pytest.raises(ValueError, match=rf"sigma must be finite and > 0, got {sigma!r}\."):
        rbf_kernel(rows, rows, sigma)
    with pytest.raises(ValueError, match=rf"sigma must be finite and > 0, got {sigma!r}\."):
        KernelMap(rows, rows[:1]).features(sigma)


@pytest.mark.parametrize(("sigma", "elsewhere"), [(1e-200, 0.0), (1e200, 1.0)])
def test_any_finite_positive_sigma_will_do(sigma, elsewhere):
    rows = np.array([[0.0], [1.0]])
    np.testing.assert_array_equal(rbf_kernel(rows, rows, sigma), [[1.0, elsewhere], [elsewhere, 1.0]])


# ---------------------------------------------------------------------------------------------- the features


@pytest.mark.parametrize("sigma", [0.2, 1.0, 5.0])
def test_features_of_all_rows_give_back_the_kernel(sigma):
    rows = np.random.default_rng(2).normal(size=(40, 2))
    Z = KernelMap(rows, rows).features(sigma).rows
    # What is left of K is positive semi-definite, so that no entry is above the largest on its diagonal.
    difference = oracles.rbf_matrix(rows, rows, sigma) - Z @ Z.T
    assert np.linalg.eigvalsh(difference).min() >= -1e-12
    assert np.abs(difference).max() <= TOLERANCE


def test_tolerance_is_small():
    assert 0 < TOLERANCE <= 1e-8


def test_landmarks_that_say_nothing_new_are_left_out():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(60, 2))
    features = KernelMap(rows, np.vstack([rows, rows[:20]])).features(0.05)
    # Twenty landmarks come twice; one of each pair will do.
    assert features.rows.shape == (60, 60)
    coefficients = features.coefficients(rng.normal(size=60))
    assert coefficients.shape == (80,)
    assert np.count_nonzero(coefficients) == 60
    # So wide a kernel is all but a polynomial, of which few terms are seen.
    assert KernelMap(rows, rows).features(100.0).rows.shape[1] < 20


@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_features_are_nystroms(sigma):
    rng = np.random.default_rng(3)
    rows, landmarks = rng.normal(size=(50, 2)), 2 * rng.normal(size=(8, 2))
    features = KernelMap(rows, landmarks).features(sigma)
    assert features.rows.shape == (50, 8)
    between, among = (
        oracles.rbf_matrix(rows, landmarks, sigma),
        oracles.rbf_matrix(landmarks, landmarks, sigma),
    )
    expected = between @ np.linalg.solve(among, between.T)
    np.testing.assert_allclose(features.rows @ features.rows.T, expected, atol=1e-6)
    assert np.abs(expected - oracles.rbf_matrix(rows, rows, sigma)).max() > 0.1  # no longer K itself
    chosen = among[np.ix_(features.chosen, features.chosen)]
    np.testing.assert_allclose(features.factor @ features.factor.T, chosen, atol=1e-12)
    np.testing.assert_array_equal(features.factor, np.tril(features.factor))


@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_coefficients_reproduce_the_features_scores(sigma):
    rng = np.random.default_rng(4)
    rows, landmarks = rng.normal(size=(50, 3)), rng.normal(size=(9, 3))
    features = KernelMap(rows, landmarks).features(sigma)
    w = rng.normal(size=9)
    a = features.coefficients(w)
    np.testing.assert_allclose(oracles.rbf_matrix(rows, landmarks, sigma) @ a, features.rows @ w, atol=1e-9)
    # |w| is the norm of g in the RKHS, but for the jitter.
    norm = a @ oracles.rbf_matrix(landmarks, landmarks, sigma) @ a
    np.testing.assert_allclose(norm, w @ w, rtol=1e-5)


def test_features_of_one_map_at_many_bandwidths():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(20, 2))
    one = KernelMap(rows, rows[:5])
    first = one.features(1.0).rows
    one.features(0.1)
    np.testing.assert_array_equal(one.features(1.0).rows, first)


@pytest.mark.parametrize("sigma", [1e-3, 1e3])
def test_features_where_landmarks_almost_coincide_or_do_not_see_each_other(sigma):
    rows = np.random.default_rng(6).normal(size=(60, 2))
    rows[1] = rows[0] + 1e-12
    features = KernelMap(rows, rows).features(sigma)
    assert np.isfinite(features.rows).all()
    np.testing.assert_allclose(
        features.rows @ features.rows.T, oracles.rbf_matrix(rows, rows, sigma), atol=1e-6
    )


# ------------------------------------------------------------------------------------------------ the scorer


def _scorer(*, s=6, d=3, far_field=True, seed=7):
    rng = np.random.default_rng(seed)
    return KernelScorer(
        rng.normal(size=(s, d)), rng.normal(size=s), np.exp(0.5 * rng.normal(size=d)), far_field
    )


def _rows(n=60, d=3, seed=8):
    """Rows among the landmarks and rows far from them."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.exp(rng.uniform(-2, 6, size=(n, 1)))


@pytest.mark.parametrize("far_field", [True, False])
@pytest.mark.parametrize("d", [1, 3])
def test_scorer_equals_the_naive_sum(far_field, d):
    scorer, rows = _scorer(d=d, far_field=far_field), _rows(d=d)
    reach = FAR_REACH if far_field else math.inf
    expected = [
        oracles.kernel_score(row, scorer.landmarks, scorer.coefficients, scorer.widths, reach) for row in rows
    ]
    # Both regions are met.
    assert (min(expected) < -10) == far_field
    assert sum(0.01 < abs(score) < 3 for score in expected) > 10
    np.testing.assert_allclose(scorer.score(rows), expected, rtol=1e-12, atol=1e-14)


def test_scorer_equals_the_kernel_where_all_widths_are_sigma():
    rng = np.random.default_rng(9)
    rows, landmarks, a = rng.normal(size=(30, 2)), rng.normal(size=(5, 2)), rng.normal(size=5)
    scorer = KernelScorer(landmarks, a, np.full(2, 0.7), far_field=False)
    np.testing.assert_allclose(
        scorer.score(rows), rbf_kernel(rows, landmarks, 0.7) @ a, rtol=1e-10, atol=1e-14
    )


def test_far_widths_are_the_unit_of_far_distances_and_of_nothing_else():
    scorer, rows = _scorer(), _rows()
    far_widths = np.array([0.5, 2.0, 7.0])
    expected = [
        oracles.kernel_score(row, scorer.landmarks, scorer.coefficients, scorer.widths, FAR_REACH, far_widths)
        for row in rows
    ]
    scores = scorer.score(rows, far_widths=far_widths)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-14)
    assert (scores != scorer.score(rows)).any()
    np.testing.assert_array_equal(scorer.score(rows, far_widths=scorer.widths), scorer.score(rows))
    plain = _scorer(far_field=False)
    np.testing.assert_array_equal(plain.score(rows, far_widths=far_widths), plain.score(rows))


@pytest.mark.parametrize("d", [1, 2, 3, 10, 36])
@pytest.mark.parametrize("s", [1, 2, 3, 5, 7, 17, 50, 200, 500])
def test_a_lone_row_scores_as_it_does_in_a_batch_to_the_last_bit(s, d):
    # Numbers of landmarks that do and do not fill the processor's vectors.
    scorer = _scorer(s=s, d=d)
    rows = _rows(n=300, d=d)
    batch = scorer.score(rows)
    alone = [scorer.score(rows[row : row + 1])[0] for row in range(len(rows))]
    np.testing.assert_array_equal(batch, alone)
    np.testing.assert_array_equal(scorer.score(rows[::-1]), batch[::-1])
    np.testing.assert_array_equal(scorer.score(np.asfortranarray(rows)), batch)


def test_block_boundaries_and_threads_do_not_show():
    scorer = _scorer(s=5, d=2)
    rows = _rows(n=9_001, d=2)  # three blocks, the last one short
    batch = scorer.score(rows)
    assert batch.shape == (9_001,)
    for n_jobs in (1, 2, 3):
        np.testing.assert_array_equal(scorer.score(rows, n_jobs=n_jobs), batch)
    for row in (0, 4_095, 4_096, 8_191, 8_192, 9_000):
        assert scorer.score(rows[row : row + 1])[0] == batch[row]
    # The same rows, cut elsewhere.
    np.testing.assert_array_equal(scorer.score(rows[17:]), batch[17:])
    np.testing.assert_array_equal(scorer.score(rows[:4_096]), batch[:4_096])


# ------------------------------------------------------------------------------------- the scorer's rounding


def _exact_sum(rows, scorer):
    """Compute g in extended precision, where the machine has it, by no more than its definition."""
    rows, landmarks, a, widths = (
        np.asarray(array, dtype=np.longdouble)
        for array in (rows, scorer.landmarks, scorer.coefficients, scorer.widths)
    )
    gaps = (rows[:, None] - landmarks) / widths
    return (np.exp(-(gaps**2).sum(axis=2)) * a).sum(axis=1)


def _promised_error(scorer):
    s, d = scorer.landmarks.shape
    from_center = (scorer.landmarks - np.sort(scorer.landmarks, axis=0)[s // 2]) / scorer.widths
    R = np.linalg.norm(from_center, axis=1).max()
    return (2 * R + d + s + 6) * np.finfo(float).eps * np.abs(scorer.coefficients).sum()


@pytest.mark.parametrize("width", [0.02, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("s", [1, 7, 50, 500])
@pytest.mark.parametrize("d", [1, 3, 10, 36])
def test_rounding_stays_below_what_is_promised(d, s, width):
    rng = np.random.default_rng([d, s])
    landmarks = rng.normal(size=(s, d))
    widths = width * math.sqrt(d) * np.exp(0.3 * rng.normal(size=d))
    scorer = KernelScorer(landmarks, rng.normal(size=s), widths, far_field=False)
    near = landmarks[rng.integers(s, size=40)] + 0.5 * widths / math.sqrt(d) * rng.normal(size=(40, d))
    rows = np.vstack([near, rng.normal(size=(40, d)), landmarks[:5]])
    exact = _exact_sum(rows, scorer)
    assert np.abs(exact).max() > 1e-3
    assert np.abs(scorer.score(rows) - exact).max() <= _promised_error(scorer)


def test_one_kernel_value_is_exact_to_thirteen_digits():
    scorer = KernelScorer(np.zeros((1, 1)), np.ones(1), np.ones(1), far_field=False)
    rows = np.linspace(-6.78, 6.78, 20_001)[:, None]
    error = np.abs(scorer.score(rows) / _exact_sum(rows, scorer) - 1).astype(float)
    assert error.max() < 1e-13
    assert error[np.abs(rows[:, 0]) < 1].max() < 3e-15
    assert scorer.score(np.zeros((1, 1)))[0] == 1.0


@pytest.mark.parametrize(("sigma", "s", "d"), [(3.0, 50, 2), (10.0, 200, 3), (30.0, 500, 10)])
def test_large_coefficients_cancel_to_eight_digits(sigma, s, d):
    rng = np.random.default_rng(20)
    rows = rng.normal(size=(300, d))
    landmarks = rng.normal(size=(s, d))
    features = KernelMap(rows, landmarks).features(sigma)
    weights = rng.normal(size=features.rows.shape[1])
    scorer = KernelScorer(landmarks, features.coefficients(weights), np.full(d, sigma), far_field=False)
    exact = _exact_sum(rows, scorer)
    assert np.abs(scorer.coefficients).sum() > 1e4 * np.abs(exact).max()
    error = np.abs(scorer.score(rows) - exact).max()
    assert error <= _promised_error(scorer)
    assert error < 1e-8


def test_a_common_offset_changes_no_bit():
    rng = np.random.default_rng(21)
    # Multiples of 1/1024: the offset is added without rounding.
    rows, landmarks = (np.round(1024 * rng.normal(size=(n, 3))) / 1024 for n in (200, 30))
    a, widths = rng.normal(size=30), np.array([0.3, 1.0, 4.0])
    offset = np.array([2.0**40, -(2.0**35), 2.0**20])
    np.testing.assert_array_equal(
        KernelScorer(landmarks + offset, a, widths).score(rows + offset),
        KernelScorer(landmarks, a, widths).score(rows),
    )


def test_distances_that_overflow_are_as_far_as_can_be():
    landmarks, a = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([2.0, -1.0])
    rows = np.array([[1e300, 0.0], [0.0, -1e160], [1e200, 1e200], [0.0, 0.0]])
    for widths in (np.ones(2), np.full(2, 1e-100), np.array([1e-200, 1.0])):
        plain = KernelScorer(landmarks, a, widths, far_field=False).score(rows)
        np.testing.assert_array_equal(plain[:3], np.zeros(3))
        far = KernelScorer(landmarks, a, widths).score(rows)
        assert far[0] == far[2] == -1e300
        assert far[1] < -1e150
        assert plain[3] == far[3] == pytest.approx(2 - math.exp(-2) if widths[0] == 1 else 2.0)


def test_more_bandwidths_from_the_median_landmark_than_there_are_numbers_is_far():
    scorer = KernelScorer(np.array([[-1e140], [0.0], [1e140]]), np.ones(3), np.array([1e-200]))
    scores = scorer.score(np.array([[0.0], [1e-199], [1.0], [5e139], [1e140], [-1e140]]))
    assert scores[0] == 1.0
    np.testing.assert_allclose(scores[1], -6.0, rtol=1e-12)
    assert (scores[2:] == -1e300).all()


# --------------------------------------------------------------------------------- what the scorer remembers


def test_copies_and_pickles_score_alike_and_are_no_bigger_for_having_scored():
    scorer, rows = _scorer(s=50, d=3), _rows()
    before = len(pickle.dumps(scorer))
    scores = scorer.score(rows)
    assert len(pickle.dumps(scorer)) == before
    for again in (pickle.loads(pickle.dumps(scorer)), copy.copy(scorer), copy.deepcopy(scorer)):
        np.testing.assert_array_equal(again.score(rows), scores)
        assert again.far_field == scorer.far_field
        np.testing.assert_array_equal(again.coefficients, scorer.coefficients)


def test_scoring_leaves_rows_and_scorer_as_they_were():
    scorer, rows = _scorer(s=9), _rows()
    held = [array.copy() for array in (rows, scorer.landmarks, scorer.coefficients, scorer.widths)]
    scorer.score(rows, far_widths=np.ones(3))
    for array, was in zip((rows, scorer.landmarks, scorer.coefficients, scorer.widths), held, strict=True):
        np.testing.assert_array_equal(array, was)


# ------------------------------------------------------------------------------------ many scorers at once

# Of the widths: the same one after another and apart, narrower and wider than the first.
MULTIPLES = (1.0, 1.0, 0.25, 3.0, 1.0, 3.0, 30.0)


def _scorers(multiples=MULTIPLES, *, s=21, d=3, far_field=True, seed=22):
    """Scorers of the same landmarks; each has coefficients of its own, a third of them zero."""
    rng = np.random.default_rng(seed)
    landmarks, widths = rng.normal(size=(s, d)), math.sqrt(d) * np.exp(0.5 * rng.normal(size=d))
    coefficients = rng.normal(size=(len(multiples), s)) * (rng.random((len(multiples), s)) < 2 / 3)
    return [
        KernelScorer(landmarks, a, multiple * widths, far_field)
        for a, multiple in zip(coefficients, multiples, strict=True)
    ]


@pytest.mark.parametrize("far_field", [True, False])
@pytest.mark.parametrize(("s", "d"), [(1, 1), (3, 2), (8, 3), (21, 1), (21, 10), (250, 4)])
def test_many_scorers_score_as_each_does_alone(s, d, far_field):
    scorers, rows = _scorers(s=s, d=d, far_field=far_field), _rows(n=200, d=d)
    scorers.insert(3, replace(scorers[2], coefficients=np.zeros(s)))
    alone = np.array([scorer.score(rows) for scorer in scorers])
    # Both regions are met.
    assert (alone.min() < -20) == far_field
    assert (np.abs(alone) > 0.01).sum() > 100
    for order in (slice(None), slice(None, None, -1)):
        np.testing.assert_allclose(score_many(scorers[order], rows), alone[order], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("far_field", [True, False])
def test_many_scorers_equal_the_naive_sum(far_field):
    scorers, rows = _scorers(far_field=far_field), _rows()
    reach = FAR_REACH if far_field else math.inf
    expected = [
        [oracles.kernel_score(row, it.landmarks, it.coefficients, it.widths, reach) for row in rows]
        for it in scorers
    ]
    np.testing.assert_allclose(score_many(scorers, rows), expected, rtol=1e-12, atol=1e-13)


def test_many_scorers_by_hand():
    # A landmark without a coefficient, here another one for each scorer, still counts for far distances.
    landmarks, rows = np.array([[0.0], [100.0]]), np.array([[0.0], [2.0], [50.0], [90.0], [100.0], [112.0]])
    scorers = [
        KernelScorer(landmarks, np.array([1.0, 0.0]), np.array([1.0])),
        KernelScorer(landmarks, np.array([0.0, -3.0]), np.array([2.0])),
    ]
    expected = [[1.0, math.exp(-4), -46.0, -6.0, 0.0, -8.0], [0.0, 0.0, -21.0, -1.0, -3.0, -2.0]]
    np.testing.assert_allclose(score_many(scorers, rows), expected, rtol=1e-10, atol=1e-9)


def test_many_scorers_of_many_rows_and_of_none():
    scorers = _scorers((1.0, 0.5), s=5, d=2)
    rows = _rows(n=9_001, d=2)  # three blocks, the last one short
    batch = score_many(scorers, rows)
    np.testing.assert_allclose(batch, [scorer.score(rows) for scorer in scorers], rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(score_many(scorers, rows[17:]), batch[:, 17:])
    np.testing.assert_array_equal(score_many(scorers, np.asfortranarray(rows)), batch)
    for row in (0, 4_095, 4_096, 9_000):
        np.testing.assert_array_equal(score_many(scorers, rows[row : row + 1])[:, 0], batch[:, row])
    np.testing.assert_array_equal(score_many(scorers[:1], rows), batch[:1])
    assert score_many(scorers, rows[:0]).shape == (2, 0)


def test_scorers_that_do_not_share_distances_are_refused():
    first, second = _scorers((1.0, 2.0))
    rows = _rows()
    shared = r"scorers must share their landmarks and far_field\."
    with pytest.raises(ValueError, match=shared):
        score_many([first, replace(second, landmarks=second.landmarks + 1.0)], rows)
    with pytest.raises(ValueError, match=shared):
        score_many([first, replace(second, far_field=False)], rows)
    for factors in ([1.0, 1.0, 2.0], [2.0, 1.0, 1.0], [1.0, 1.01, 1.0]):
        with pytest.raises(ValueError, match=r"widths of scorers must be multiples of one another\."):
            score_many([first, replace(second, widths=second.widths * factors)], rows)


# -------------------------------------------------------------------------------------------- the far field


def _along(scorer, distances):
    """Rows at the given distances from a lone landmark, in bandwidths, along a slanting ray."""
    ray = np.array([0.6, 0.8]) * scorer.widths
    return scorer.landmarks[0] + np.asarray(distances)[:, None] * ray


@pytest.mark.parametrize("coefficient", [1.0, -1.0, 50.0])
def test_far_field_is_continuous_at_the_reach(coefficient):
    scorer = KernelScorer(np.array([[1.0, -2.0]]), np.array([coefficient]), np.array([0.5, 3.0]))
    around = scorer.score(_along(scorer, FAR_REACH + np.array([-1e-9, 0.0, 1e-9])))
    assert np.ptp(around) < 1e-8
    np.testing.assert_allclose(around, coefficient * math.exp(-(FAR_REACH**2)), atol=2e-9)


@pytest.mark.parametrize("coefficient", [1.0, -1.0, 50.0])
def test_score_falls_strictly_with_the_distance_beyond_the_reach(coefficient):
    scorer = KernelScorer(np.array([[1.0, -2.0]]), np.array([coefficient]), np.array([0.5, 3.0]))
    distances = np.concatenate([np.linspace(FAR_REACH, 8, 400), np.geomspace(8.1, 1e12, 400)])
    scores = scorer.score(_along(scorer, distances))
    assert (np.diff(scores) < 0).all()
    # One bandwidth of distance is one unit of score.
    far = distances > 6
    np.testing.assert_allclose(scores[far], FAR_REACH - distances[far], rtol=1e-12)
    # A width of the other column counts as much as one of this.
    sideways = scorer.landmarks + np.array([[10 * 0.5, 0.0], [0.0, 10 * 3.0]])
    np.testing.assert_allclose(scorer.score(sideways), [-6.0, -6.0], rtol=1e-12)


def test_the_nearest_landmark_decides_how_far_is_far():
    scorer = KernelScorer(np.array([[0.0], [100.0]]), np.array([1.0, 1.0]), np.array([1.0]))
    np.testing.assert_allclose(scorer.score(np.array([[50.0], [90.0], [110.0]])), [-46.0, -6.0, -6.0])


@pytest.mark.parametrize("silent", [[1], [0, 1], [0, 1, 2]])
def test_landmarks_without_a_coefficient_count_for_far_distances(silent):
    scorer = _scorer(s=3)
    spread = replace(scorer, landmarks=scorer.landmarks * [[1.0], [30.0], [90.0]])
    spread.coefficients[silent] = 0.0
    rows = np.vstack([_rows(), spread.landmarks + 0.3, spread.landmarks + 20.0])
    for far_widths in (None, np.array([0.5, 2.0, 7.0])):
        expected = [
            oracles.kernel_score(
                row, spread.landmarks, spread.coefficients, spread.widths, FAR_REACH, far_widths
            )
            for row in rows
        ]
        np.testing.assert_allclose(
            spread.score(rows, far_widths=far_widths), expected, rtol=1e-12, atol=1e-14
        )
    np.testing.assert_array_equal(spread.score(rows, far_widths=spread.widths), spread.score(rows))


def test_a_landmark_without_a_coefficient_by_hand():
    scorer = KernelScorer(np.array([[0.0], [100.0]]), np.array([1.0, 0.0]), np.array([1.0]))
    np.testing.assert_allclose(
        scorer.score(np.array([[0.0], [50.0], [90.0], [97.0], [110.0]])), [1.0, -46.0, -6.0, 0.0, -6.0]
    )


def test_without_far_field_far_rows_score_zero():
    scorer = KernelScorer(np.array([[0.0]]), np.array([-3.0]), np.array([1.0]), far_field=False)
    scores = scorer.score(np.array([[0.0], [4.5], [1e3], [1e200]]))
    assert scores[0] == -3.0
    np.testing.assert_allclose(scores[1], -3 * math.exp(-(4.5**2)), rtol=1e-12)
    assert scores[2] == scores[3] == 0.0


def test_within_the_reach_the_far_field_changes_nothing():
    rows = np.random.default_rng(10).normal(size=(200, 3))
    with_far, without = _scorer(), _scorer(far_field=False)
    near = oracles.neighbors(with_far.landmarks / with_far.widths, 1, rows / with_far.widths)[0][:, 0] < 4
    assert near.sum() > 100
    np.testing.assert_array_equal(with_far.score(rows)[near], without.score(rows)[near])


def test_beyond_the_reach_the_kernel_is_below_what_is_said():
    assert math.exp(-(FAR_REACH**2)) < 2e-7


# ---------------------------------------------------------------------------------------------- the landmarks


def test_kmeans_landmarks_are_the_centres_of_clusters():
    rng = np.random.default_rng(11)
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])
    rows = (centres[:, None] + rng.normal(size=(4, 30, 2))).reshape(-1, 2)
    found = choose_landmarks(rows, 4, "kmeans", seed=0)
    means = rows.reshape(4, 30, 2).mean(axis=1)
    np.testing.assert_allclose(found[np.lexsort(found.T)], means[np.lexsort(means.T)], atol=1e-9)


def test_kmeans_covers_the_rows_better_than_random_rows_do():
    rows = np.random.default_rng(12).normal(size=(500, 2))
    costs = {
        method: (oracles.neighbors(choose_landmarks(rows, 20, method, seed=0), 1, rows)[0] ** 2).sum()
        for method in ("kmeans", "random")
    }
    assert costs["kmeans"] < 0.8 * costs["random"]


def test_random_landmarks_are_distinct_rows():
    rows = np.random.default_rng(13).integers(0, 6, size=(200, 2)).astype(float)
    found = choose_landmarks(rows, 20, "random", seed=0)
    assert found.shape == (20, 2)
    assert len({tuple(row) for row in found}) == 20
    assert {tuple(row) for row in found} <= {tuple(row) for row in rows}


def test_every_distinct_row_is_as_likely_to_be_drawn():
    rows = np.repeat(np.arange(10.0), [91, 1, 1, 1, 1, 1, 1, 1, 1, 1])[:, None]
    drawn = np.concatenate([choose_landmarks(rows, 3, "random", seed=seed) for seed in range(1_000)])
    shares = np.bincount(drawn[:, 0].astype(int), minlength=10) / 1_000
    assert np.abs(shares - 0.3).max() < 4.5 * math.sqrt(0.3 * 0.7 / 1_000)


@pytest.mark.parametrize("method", ["kmeans", "random"])
@pytest.mark.parametrize("asked", [4, 5, 100])
def test_where_distinct_rows_are_few_they_are_the_landmarks(method, asked):
    distinct = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [3.0, 3.0]])
    rows = np.random.default_rng(14).permutation(np.repeat(distinct, 10, axis=0))
    found = choose_landmarks(rows, asked, method, seed=0)
    assert sorted(map(tuple, found)) == sorted(map(tuple, distinct))


@pytest.mark.parametrize("method", ["kmeans", "random"])
def test_landmarks_of_mostly_duplicated_rows(method):
    rng = np.random.default_rng(15)
    rows = np.vstack([np.zeros((180, 2)), rng.normal(size=(20, 2))])
    found = choose_landmarks(rows, 15, method, seed=0)
    assert found.shape == (15, 2)
    assert len(np.unique(found, axis=0)) == 15


@pytest.mark.parametrize("method", ["kmeans", "random"])
def test_landmarks_depend_on_the_seed_alone(method):
    rows = np.random.default_rng(16).normal(size=(100, 2))
    first = choose_landmarks(rows, 10, method, seed=3)
    np.random.seed(0)  # noqa: NPY002  the global state must not matter
    np.testing.assert_array_equal(choose_landmarks(rows, 10, method, seed=3), first)
    assert (choose_landmarks(rows, 10, method, seed=4) != first).any()


def test_wrong_landmarks_are_named():
    rows = np.zeros((3, 1))
    with pytest.raises(ValueError, match=r"n_landmarks must be >= 1, got 0\."):
        choose_landmarks(rows, 0, seed=0)
    with pytest.raises(ValueError, match=r"method must be 'kmeans' or 'random', got 'all'\."):
        choose_landmarks(rows, 2, "all", seed=0)


# --------------------------------------------------------------------------------------- the start of k-means


def _naive_spread(rows, draws):
    """k-means++ with one trial a centre, by its definition."""
    chosen = [int(draws[0] * len(rows))]
    for draw in draws[1:]:
        weights = [min(math.dist(row, rows[other]) ** 2 for other in chosen) for row in rows]
        chosen.append(int(np.searchsorted(np.cumsum(weights), draw * sum(weights), side="right")))
    return chosen


@pytest.mark.parametrize("d", [1, 2, 5])
def test_starts_equal_the_naive_twins(d):
    rng = np.random.default_rng(23)
    rows = rng.normal(size=(40, d))
    for _ in range(20):
        draws = rng.random(12)
        np.testing.assert_array_equal(_spread_out(rows, draws), _naive_spread(rows, draws))


def test_first_start_is_any_row_alike():
    rows = np.random.default_rng(24).normal(size=(50, 2)) ** 3
    for row in range(50):
        for within in (0.01, 0.5, 0.99):
            assert _spread_out(rows, np.array([(row + within) / 50]))[0] == row
    assert _spread_out(rows, np.array([0.0]))[0] == 0
    assert _spread_out(rows, np.array([np.nextafter(1.0, 0.0)]))[0] == 49


def test_later_starts_are_drawn_by_their_squared_distance():
    points = np.array([0.0, 0.0, 1.0, 3.0, 7.0])
    rng, times = np.random.default_rng(25), 20_000
    drawn = np.array([_spread_out(points[:, None], draws) for draws in rng.random((times, 3))])
    seen = {}
    for triple in map(tuple, drawn):
        seen[triple] = seen.get(triple, 0) + 1
    shares, variances = [], []
    for i in range(5):
        to_first = (points - points[i]) ** 2
        for j in range(5):
            to_both = np.minimum(to_first, (points - points[j]) ** 2)
            for k in range(5):
                p = to_first[j] / to_first.sum() * to_both[k] / to_both.sum() / 5
                shares.append(seen.pop((i, j, k), 0) / times - p)
                variances.append(p * (1 - p) / times)
    assert not seen
    # 4.5 standard deviations of a binomial share; of the 60 triples 18 name both zeros and never come.
    assert np.count_nonzero(variances) == 42
    assert (np.abs(shares) <= 4.5 * np.sqrt(variances) + 1e-12).all()


@pytest.mark.parametrize("n_draws", [1, 10, 34, 35])
def test_starts_are_distinct_points_among_duplicates(n_draws):
    # 36 points, each once to many times.
    rng = np.random.default_rng(26)
    grid = np.array([[i, j] for i in range(6) for j in range(6)], dtype=float)
    rows = rng.permutation(np.vstack([grid, grid[rng.integers(9, size=400)]]))
    for draws in rng.random((50, n_draws)):
        chosen = _spread_out(rows, draws)
        assert len(np.unique(rows[chosen], axis=0)) == n_draws
        np.testing.assert_array_equal(_spread_out(rows, draws), chosen)


@pytest.mark.parametrize("draw", [0.0, np.nextafter(1.0, 0.0)])
def test_the_least_and_the_largest_draw_do_not_choose_what_is_chosen(draw):
    # The first row, or the last, is chosen first; draws that point at it must go to the next. With draws next
    # to one it is left to rounding whether the weights of all rows add up to what was drawn.
    for seed in range(50):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(np.repeat(rng.normal(size=12), 5))[:, None]
        chosen = _spread_out(rows, np.full(11, draw))
        assert chosen[0] == (0 if draw == 0.0 else 59)
        assert len(np.unique(rows[chosen])) == 11


@pytest.mark.parametrize("scale", [2.0**-500, 2.0**-300, 2.0**332])
def test_landmarks_keep_their_places_at_any_scale(scale):
    # From 3e-151 to 9e99, and a power of two, so that nothing rounds differently.
    rng = np.random.default_rng(28)
    rows, draws = rng.normal(size=(80, 2)), rng.random(20)
    np.testing.assert_array_equal(_spread_out(scale * rows, draws), _spread_out(rows, draws))
    found = choose_landmarks(scale * rows, 20, seed=0)
    assert len(np.unique(found, axis=0)) == 20
    np.testing.assert_allclose(found / scale, choose_landmarks(rows, 20, seed=0), rtol=1e-9)


@pytest.mark.parametrize("far", [1e-100, 1e100])
def test_landmarks_of_rows_at_two_scales(far):
    # Squares of both scales do not fit into one sum.
    rng = np.random.default_rng(29)
    rows = np.concatenate([rng.normal(size=30), far * rng.normal(size=30)])[:, None]
    for seed in range(5):
        found = choose_landmarks(rows, 12, seed=seed)
        assert found.shape == (12, 1)
        assert np.isfinite(found).all()
        chosen = _spread_out(rows, np.random.default_rng(seed).random(12))
        assert len(np.unique(rows[chosen])) == 12


def test_every_cluster_far_from_the_others_has_a_landmark_whatever_the_seed():
    rng = np.random.default_rng(30)
    centres = 1_000.0 * np.array([[i, j] for i in range(3) for j in range(3)])
    # Clusters of very different size: rows drawn alike would fall into the large ones.
    sizes = np.array([200, 100, 50, 20, 10, 5, 5, 5, 5])
    rows = np.repeat(centres, sizes, axis=0) + rng.normal(size=(sizes.sum(), 2))
    for seed in range(20):
        found = choose_landmarks(rows, 9, seed=seed)
        assert oracles.neighbors(found, 1, centres)[0].max() < 5


@pytest.mark.parametrize("seed", range(5))
def test_one_landmark_less_than_there_are_distinct_rows(seed):
    rows = np.vstack([np.zeros((300, 2)), np.random.default_rng(31).normal(size=(20, 2))])
    found = choose_landmarks(rows, 20, seed=seed)
    assert found.shape == (20, 2)
    assert len(np.unique(found, axis=0)) == 20


def test_rows_whose_squared_distances_vanish_are_landmarks_all_the_same():
    """Distinct rows at 1e-170 have no squared distances; nothing may be read out of bounds."""
    rows = np.random.default_rng(0).normal(size=(50, 2)) * 1e-170
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        assert choose_landmarks(rows, 10, seed=0).shape == (10, 2)


def test_scorers_with_limits_or_nearly_multiple_widths_are_refused():
    landmarks, a, ones = np.eye(2), np.ones(2), np.ones(2)
    plain = KernelScorer(landmarks, a, ones)
    with pytest.raises(ValueError, match="must have no limits"):
        score_many([plain, KernelScorer(landmarks, a, ones, True, (ones, ones, ones))], landmarks)
    for widths in ([2.0, 2.00001], [1e-9, 5e-9]):
        with pytest.raises(ValueError, match="multiples of one another"):
            score_many([plain, KernelScorer(landmarks, a, np.array(widths))], landmarks)
