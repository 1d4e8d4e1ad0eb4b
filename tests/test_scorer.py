import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import oracles
import rankad.scorers.kernel
from rankad import RankAD
from rankad.scorers.farfield import ColumnRanges
from rankad.scorers.kernel import FAR_REACH, KernelScorer
from rankad.stages.kernels import KernelMap

both_precisions = pytest.mark.parametrize("single", [False, True], ids=["double", "single"])


def _digits(single):
    """What two ways to compute one score may differ by, far distances included."""
    return {"rtol": 1e-6, "atol": 1e-5} if single else {"rtol": 1e-12, "atol": 1e-14}


# ------------------------------------------------------------------------------------------------ the scorer


def _scorer(*, s=6, d=3, far_field=True, seed=7, single=False):
    rng = np.random.default_rng(seed)
    landmarks, coefficients = rng.normal(size=(s, d)), rng.normal(size=s)
    return KernelScorer(landmarks, coefficients, np.exp(0.5 * rng.normal(size=d)), far_field, single=single)


def _rows(n=60, d=3, seed=8):
    """Rows among the landmarks and rows far from them."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.exp(rng.uniform(-2, 6, size=(n, 1)))


@both_precisions
@pytest.mark.parametrize("far_field", [True, False])
@pytest.mark.parametrize("d", [1, 3])
def test_scorer_equals_the_naive_sum(far_field, d, single):
    scorer, rows = _scorer(d=d, far_field=far_field, single=single), _rows(d=d)
    reach = FAR_REACH if far_field else math.inf
    expected = [
        oracles.kernel_score(row, scorer.landmarks, scorer.coefficients, scorer.widths, reach) for row in rows
    ]
    # Both regions are met.
    assert (min(expected) < -10) == far_field
    assert sum(0.01 < abs(score) < 3 for score in expected) > 10
    np.testing.assert_allclose(scorer.score(rows), expected, **_digits(single))


@both_precisions
def test_scorer_equals_the_kernel_where_all_widths_are_sigma(single):
    rng = np.random.default_rng(9)
    rows, landmarks, a = rng.normal(size=(30, 2)), rng.normal(size=(5, 2)), rng.normal(size=5)
    scorer = KernelScorer(landmarks, a, np.full(2, 0.7), far_field=False, single=single)
    expected = oracles.rbf_matrix(rows, landmarks, 0.7) @ a
    np.testing.assert_allclose(scorer.score(rows), expected, rtol=1e-10, atol=1e-5 if single else 1e-14)


@both_precisions
def test_a_score_is_the_sum_of_its_kernel_part_and_its_far_part(single):
    """Cross-fitting adds the far part of a scorer in other units."""
    scorer, rows = _scorer(single=single), _rows()
    kernel_part = replace(scorer, far_field=False).score(rows)
    far_part = replace(scorer, coefficients=np.zeros_like(scorer.coefficients)).score(rows)
    assert kernel_part.any()
    assert far_part.any()
    np.testing.assert_array_equal(kernel_part + far_part, scorer.score(rows))


@both_precisions
@pytest.mark.parametrize("d", [1, 2, 3, 10, 36])
@pytest.mark.parametrize("s", [1, 2, 3, 5, 7, 16, 17, 50, 200, 500])
def test_a_lone_row_scores_as_it_does_in_a_batch_to_the_last_bit(s, d, single):
    # Numbers of landmarks that do and do not fill the processor's vectors.
    scorer = _scorer(s=s, d=d, single=single)
    rows = _rows(n=300, d=d)
    batch = scorer.score(rows)
    alone = [scorer.score(rows[row : row + 1])[0] for row in range(len(rows))]
    np.testing.assert_array_equal(batch, alone)
    np.testing.assert_array_equal(scorer.score(rows[::-1]), batch[::-1])
    np.testing.assert_array_equal(scorer.score(np.asfortranarray(rows)), batch)


@both_precisions
def test_rows_score_alike_at_every_place_of_a_batch_of_every_size(single):
    # Rows are taken through the landmarks in fours.
    scorer, rows = _scorer(s=19, single=single), _rows(n=11)
    alone = np.array([scorer.score(row[None])[0] for row in rows])
    for shift in range(len(rows)):
        for n in range(len(rows) + 1):
            shifted, expected = (np.roll(array, shift, axis=0)[:n] for array in (rows, alone))
            np.testing.assert_array_equal(scorer.score(shifted), expected)


@both_precisions
def test_how_rows_lie_in_memory_does_not_show(single):
    scorer = _scorer(s=19, d=5, single=single)
    rows = np.asarray(_rows(n=30, d=5), dtype=np.float32)
    expected = scorer.score(rows.astype(np.float64))
    wide, frozen = np.repeat(np.repeat(rows, 3, axis=0), 2, axis=1), rows.astype(np.float64)
    frozen.flags.writeable = False
    for same in (rows, np.asfortranarray(rows), wide[::3, ::2], wide.astype(np.float64)[::3, ::2], frozen):
        np.testing.assert_array_equal(scorer.score(same), expected)
    whole = np.round(rows).astype(int)
    np.testing.assert_array_equal(scorer.score(whole), scorer.score(whole.astype(float)))


@both_precisions
@pytest.mark.parametrize("far_field", [True, False])
def test_no_rows_have_no_scores(single, far_field):
    scorer = _scorer(far_field=far_field, single=single)
    scores = scorer.score(np.empty((0, 3)))
    assert scores.shape == (0,)
    assert scores.dtype == np.float64


@both_precisions
def test_scores_are_float64(single):
    assert _scorer(single=single).score(_rows().astype(np.float32)).dtype == np.float64


def test_float64_is_the_default():
    assert not KernelScorer(np.zeros((1, 1)), np.ones(1), np.ones(1)).single


@both_precisions
def test_blocks_of_every_size_give_the_same_bits(single, monkeypatch):
    scorer, rows = _scorer(s=5, d=2, single=single), _rows(n=60, d=2)
    rows[[3, 30, 31, 59]] = [[np.nan, 0.0], [1e200, 0.0], [0.0, -np.inf], [0.0, 1e30]]
    whole = scorer.score(rows)
    for few, block in ((1, 2), (1, 14), (5, 6), (7, 60), (59, 1)):
        monkeypatch.setattr(rankad.scorers.kernel, "_FEW", few)
        monkeypatch.setattr(rankad.scorers.kernel, "_BLOCK", block)
        for n in (0, 1, 2, 5, 6, 7, 8, 13, 59, 60):
            for n_jobs in (1, 2, 3, 7):
                np.testing.assert_array_equal(scorer.score(rows[:n], n_jobs=n_jobs), whole[:n])


@both_precisions
def test_block_boundaries_and_threads_do_not_show(single):
    scorer = _scorer(s=5, d=2, single=single)
    rows = _rows(n=9_001, d=2)  # a block for each of up to three threads
    batch = scorer.score(rows)
    assert batch.shape == (9_001,)
    for n_jobs in (1, 2, 3):
        np.testing.assert_array_equal(scorer.score(rows, n_jobs=n_jobs), batch)
    for row in (0, 4_095, 4_096, 8_191, 8_192, 9_000):
        assert scorer.score(rows[row : row + 1])[0] == batch[row]
    # The same rows, cut elsewhere.
    np.testing.assert_array_equal(scorer.score(rows[17:]), batch[17:])
    np.testing.assert_array_equal(scorer.score(rows[:4_096]), batch[:4_096])


@both_precisions
def test_one_scorer_serves_several_threads_at_once(single):
    rows = _rows(n=4_000)
    expected = _scorer(s=50, single=single).score(rows)
    for _ in range(5):
        scorer = _scorer(s=50, single=single)  # whichever thread comes first lays it out
        with ThreadPoolExecutor(8) as threads:
            for scores in threads.map(scorer.score, [rows] * 16):
                np.testing.assert_array_equal(scores, expected)


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
    """Return ``u sum_l |a_l| (b R_l + 0.4 d + s / w + 16)``, by no more than what `rounding` says it is."""
    u, w, b = (2.0**-24, 16, 1.8) if scorer.single else (2.0**-53, 8, 3.6)
    s, d = scorer.landmarks.shape
    median = np.array([sorted(column)[s // 2] for column in scorer.landmarks.T])
    total = 0.0
    for landmark, a in zip(scorer.landmarks, scorer.coefficients, strict=True):
        R = math.sqrt(sum(gap**2 for gap in (landmark - median) / scorer.widths))
        total += abs(a) * (b * R + 0.4 * d + s / w + 16)
    return u * total


def _rows_for(scorer, rng):
    """Rows around landmarks, where the kernel is steepest and elsewhere, on landmarks, and far from all."""
    s, d = scorer.landmarks.shape
    ray = rng.normal(size=(60, d))
    ray *= scorer.widths / np.linalg.norm(ray, axis=1, keepdims=True)
    near = scorer.landmarks[rng.integers(s, size=60)] + rng.uniform(0, 2, size=(60, 1)) * ray
    far = scorer.landmarks[rng.integers(s, size=20)] + rng.uniform(3, 30, size=(20, 1)) * ray[:20]
    return np.vstack([near, far, rng.normal(size=(20, d)), scorer.landmarks[:5]])


@both_precisions
@pytest.mark.parametrize("width", [0.001, 0.02, 0.5, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("s", [1, 7, 17, 50, 500])
@pytest.mark.parametrize("d", [1, 3, 10, 36])
def test_rounding_stays_below_what_is_promised(d, s, width, single):
    rng = np.random.default_rng([d, s])
    landmarks = rng.normal(size=(s, d))
    widths = width * math.sqrt(d) * np.exp(0.3 * rng.normal(size=d))
    scorer = KernelScorer(landmarks, rng.normal(size=s), widths, far_field=False, single=single)
    rows = _rows_for(scorer, rng)
    exact = _exact_sum(rows, scorer)
    assert np.abs(exact).max() > 1e-3
    promised = _promised_error(scorer)
    assert scorer.rounding == pytest.approx(promised, rel=1e-12)
    assert np.abs(scorer.score(rows) - exact).max() <= promised


@both_precisions
@pytest.mark.parametrize("far", [0.0, 1e2, 1e4])
@pytest.mark.parametrize("common", [0.0, 1e5])
def test_rounding_is_as_promised_for_landmarks_in_two_heaps(far, common, single):
    """The second heap is far from the median landmark; its coordinates are large, and rounded as such."""
    rng = np.random.default_rng(22)
    landmarks = rng.normal(size=(41, 3)) + common
    landmarks[21:] += far
    scorer = KernelScorer(landmarks, rng.normal(size=41), np.ones(3), far_field=False, single=single)
    rows = _rows_for(scorer, rng)
    error = np.abs(scorer.score(rows) - _exact_sum(rows, scorer)).max()
    assert scorer.rounding == pytest.approx(_promised_error(scorer), rel=1e-9)
    assert error <= scorer.rounding
    # What is promised is due to the distance, and so is what happens.
    assert error > 2.0 ** (-24 if single else -53) * max(1.0, far) / 10


@both_precisions
def test_rounding_comes_near_what_is_promised(single):
    """Over many scorers, the worst error is a good part of the promise, and no more than it."""
    rng = np.random.default_rng(23)
    shares = []
    for _ in range(100):
        s, d = rng.choice([1, 2, 3, 7]), rng.choice([1, 2, 5])
        widths = 10.0 ** rng.uniform(-3, 1) * np.exp(0.3 * rng.normal(size=d))
        scorer = KernelScorer(rng.normal(size=(s, d)), np.ones(s), widths, far_field=False, single=single)
        rows = _rows_for(scorer, rng)
        shares.append(np.abs(scorer.score(rows) - _exact_sum(rows, scorer)).max() / scorer.rounding)
    assert 0.2 < max(shares) <= 1
    # Nowhere is it out of all proportion.
    assert min(shares) > 0.005


def test_rounding_is_in_proportion_to_coefficients_and_counts_those_of_zero_for_nothing():
    scorer = _scorer(s=20, single=True)
    assert replace(scorer, coefficients=-8 * scorer.coefficients).rounding == pytest.approx(
        8 * scorer.rounding, rel=1e-12
    )
    assert replace(scorer, coefficients=np.zeros(20)).rounding == 0.0
    # Half a float64's digits and a few: the two promises differ by 2^29, less what they say about R and s.
    double = replace(scorer, single=False)
    assert 2.0**27 < scorer.rounding / double.rounding < 2.0**29


def test_one_kernel_value_is_exact_to_thirteen_digits():
    scorer = KernelScorer(np.zeros((1, 1)), np.ones(1), np.ones(1), far_field=False)
    rows = np.linspace(-6.78, 6.78, 20_001)[:, None]
    error = np.abs(scorer.score(rows) / _exact_sum(rows, scorer) - 1).astype(float)
    assert error.max() < 1e-13
    assert error[np.abs(rows[:, 0]) < 1].max() < 3e-15
    assert scorer.score(np.zeros((1, 1)))[0] == 1.0


def test_one_kernel_value_in_float32_is_exact_to_five_digits():
    scorer = KernelScorer(np.zeros((1, 1)), np.ones(1), np.ones(1), far_field=False, single=True)
    rows = np.linspace(-8.3, 8.3, 20_001)[:, None]
    error = np.abs(scorer.score(rows) / _exact_sum(rows, scorer) - 1).astype(float)
    # Of a squared distance of 69, half a unit in the last of 24 digits is 4e-6; rounding comes a few times.
    assert error.max() < 2e-5
    assert error[np.abs(rows[:, 0]) < 1].max() < 3e-7
    assert scorer.score(np.zeros((1, 1)))[0] == 1.0


@both_precisions
def test_kernel_values_below_all_sums_are_zero_and_those_above_are_not(single):
    """Powers of two are computed down to the hundredth; a lone landmark shows where that is."""
    scorer = KernelScorer(np.zeros((1, 2)), np.ones(1), np.ones(2), far_field=False, single=single)
    least = math.sqrt(100 * math.log(2))
    scores = scorer.score(np.array([[least - 1e-4, 0.0], [0.0, least + 1e-4], [1e3, 1e3], [1e-30, 0.0]]))
    np.testing.assert_allclose(scores[0], math.exp(-((least - 1e-4) ** 2)), rtol=1e-4 if single else 1e-12)
    np.testing.assert_array_equal(scores[1:], [0.0, 0.0, 1.0])


def _cancelling(sigma, s, d):
    """A scorer of large coefficients, of either sign, and the rows it was made for."""
    rng = np.random.default_rng(20)
    rows = rng.normal(size=(300, d))
    landmarks = rng.normal(size=(s, d))
    features = KernelMap(rows, landmarks).features(sigma)
    weights = rng.normal(size=features.rows.shape[1])
    return KernelScorer(landmarks, features.coefficients(weights), np.full(d, sigma), far_field=False), rows


@pytest.mark.parametrize(("sigma", "s", "d"), [(3.0, 50, 2), (10.0, 200, 3), (30.0, 500, 10)])
def test_large_coefficients_cancel_to_eight_digits(sigma, s, d):
    scorer, rows = _cancelling(sigma, s, d)
    exact = _exact_sum(rows, scorer)
    assert np.abs(scorer.coefficients).sum() > 1e4 * np.abs(exact).max()
    error = np.abs(scorer.score(rows) - exact).max()
    assert error <= _promised_error(scorer)
    assert error < 1e-8
    # Float32 has not so many digits, but keeps its promise, too.
    single = replace(scorer, single=True)
    error = np.abs(single.score(rows) - exact).max()
    assert 1e-5 < error <= _promised_error(single)


@both_precisions
def test_a_common_offset_changes_no_bit(single):
    rng = np.random.default_rng(21)
    # Multiples of 1/1024: the offset is added without rounding.
    rows, landmarks = (np.round(1024 * rng.normal(size=(n, 3))) / 1024 for n in (200, 30))
    a, widths = rng.normal(size=30), np.array([0.3, 1.0, 4.0])
    offset = np.array([2.0**40, -(2.0**35), 2.0**20])
    np.testing.assert_array_equal(
        KernelScorer(landmarks + offset, a, widths, single=single).score(rows + offset),
        KernelScorer(landmarks, a, widths, single=single).score(rows),
    )


@both_precisions
def test_distances_that_overflow_are_as_far_as_can_be(single):
    landmarks, a = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([2.0, -1.0])
    rows = np.array([[1e300, 0.0], [0.0, -1e160], [1e200, 1e200], [0.0, 0.0]])
    for widths in (np.ones(2), np.full(2, 1e-100), np.array([1e-200, 1.0])):
        scorer = KernelScorer(landmarks, a, widths, single=single)
        plain, far = replace(scorer, far_field=False).score(rows), scorer.score(rows)
        np.testing.assert_array_equal(plain[:3], np.zeros(3))
        assert far[0] == far[2] == -1e300
        assert far[1] < -1e150
        assert far[3] == pytest.approx(2 - math.exp(-2) if widths[0] == 1 else 2.0)
        # Where float32 cannot say how far apart landmarks are, it promises nothing about g.
        assert plain[3] == far[3] or (single and scorer.rounding > 1e50)


@both_precisions
def test_more_bandwidths_from_the_median_landmark_than_there_are_numbers_is_far(single):
    landmarks = np.array([[-1e140], [0.0], [1e140]])
    scorer = KernelScorer(landmarks, np.ones(3), np.array([1e-200]), single=single)
    scores = scorer.score(np.array([[0.0], [1e-199], [1.0], [5e139], [1e140], [-1e140]]))
    assert scores[0] == 1.0
    # Ten bandwidths from the nearest landmark, which the others, who knows where, make three times as many.
    np.testing.assert_allclose(scores[1], 4.0 - 3 * 10.0, **_digits(single))
    assert (scores[2:] == -1e300).all()
    # Nothing can be promised there.
    assert scorer.rounding == math.inf


# --------------------------------------------------------------------------------- what the scorer remembers


@both_precisions
def test_copies_and_pickles_score_alike_and_are_no_bigger_for_having_scored(single):
    scorer, rows = _scorer(s=50, d=3, single=single), _rows()
    before = len(pickle.dumps(scorer))
    scores = scorer.score(rows)
    assert len(pickle.dumps(scorer)) == before
    for again in (pickle.loads(pickle.dumps(scorer)), copy.copy(scorer), copy.deepcopy(scorer)):
        np.testing.assert_array_equal(again.score(rows), scores)
        assert again.far_field == scorer.far_field
        assert again.single == single
        assert again.rounding == scorer.rounding
        np.testing.assert_array_equal(again.coefficients, scorer.coefficients)


@both_precisions
def test_scoring_leaves_rows_and_scorer_as_they_were(single):
    scorer, rows = _scorer(s=9, single=single), _rows()
    rows[5] = [1e200, 0.0, 0.0]
    held = [array.copy() for array in (rows, scorer.landmarks, scorer.coefficients, scorer.widths)]
    scorer.score(rows)
    scorer.quickest()
    for array, was in zip((rows, scorer.landmarks, scorer.coefficients, scorer.widths), held, strict=True):
        np.testing.assert_array_equal(array, was)


# -------------------------------------------------------------------------------------------- the far field


def _along(scorer, distances):
    """Rows at the given distances from a lone landmark, in bandwidths, along a slanting ray."""
    ray = np.array([0.6, 0.8]) * scorer.widths
    return scorer.landmarks[0] + np.asarray(distances)[:, None] * ray


def _lone(coefficient, single):
    landmarks, widths = np.array([[1.0, -2.0]]), np.array([0.5, 3.0])
    return KernelScorer(landmarks, np.array([coefficient]), widths, single=single)


@both_precisions
@pytest.mark.parametrize("coefficient", [1.0, -1.0, 50.0])
def test_far_field_is_continuous_at_the_reach(coefficient, single):
    scorer, step = _lone(coefficient, single), 1e-6 if single else 1e-9
    around = scorer.score(_along(scorer, FAR_REACH + step * np.array([-1.0, 0.0, 1.0])))
    assert np.ptp(around) < 10 * step
    np.testing.assert_allclose(around, coefficient * math.exp(-(FAR_REACH**2)), atol=2 * step)


@both_precisions
@pytest.mark.parametrize("coefficient", [1.0, -1.0, 50.0])
def test_score_falls_strictly_with_the_distance_beyond_the_reach(coefficient, single):
    scorer = _lone(coefficient, single)
    distances = np.concatenate([np.linspace(FAR_REACH, 8, 400), np.geomspace(8.1, 1e12, 400)])
    scores = scorer.score(_along(scorer, distances))
    assert (np.diff(scores) < 0).all()
    # One bandwidth of distance is one unit of score.
    far = distances > 6
    np.testing.assert_allclose(scores[far], FAR_REACH - distances[far], rtol=1e-6 if single else 1e-12)
    # A width of the other column counts as much as one of this.
    sideways = scorer.landmarks + np.array([[10 * 0.5, 0.0], [0.0, 10 * 3.0]])
    np.testing.assert_allclose(scorer.score(sideways), [-6.0, -6.0], rtol=1e-6 if single else 1e-12)


@both_precisions
def test_how_far_is_far_is_the_mean_distance_to_the_three_nearest_landmarks(single):
    landmarks = np.array([[0.0], [1.0], [4.0], [100.0], [101.0]])
    scorer = KernelScorer(landmarks, np.ones(5), np.array([1.0]), single=single)
    # From 20: to 4, 1 and 0. From 60: to 100, 101 and 4. From 110: to 101, 100, and 4, which is far.
    rows = np.array([[20.0], [60.0], [110.0]])
    distances = np.array([(16 + 19 + 20) / 3, (40 + 41 + 56) / 3, 3 * 9.0])
    np.testing.assert_allclose(scorer.score(rows), FAR_REACH - distances, rtol=1e-6)


def test_distances_of_which_some_overflow_float32_are_left_to_float64():
    landmarks = np.array([[0.0], [-1e19], [-1e19]])
    double = KernelScorer(landmarks, np.ones(3), np.ones(1))
    rows = np.array([[1.2e19], [1.4e19], [1.6e19]])
    expected = -(rows[:, 0] + 2 * (rows[:, 0] + 1e19)) / 3
    np.testing.assert_allclose(double.score(rows), expected, rtol=1e-12)
    np.testing.assert_allclose(replace(double, single=True).score(rows), expected, rtol=1e-6)


@both_precisions
def test_a_row_near_one_landmark_is_near_however_far_the_others_are(single):
    scorer = KernelScorer(np.array([[0.0], [1e4], [-1e4]]), np.ones(3), np.array([1.0]), single=single)
    # Three times the distance to the nearest: up to four thirds of a bandwidth there is nothing to subtract.
    rows = np.array([[0.0], [1.0], [1.3], [2.0]])
    expected = np.exp(-(rows[:, 0] ** 2)) - np.maximum(0, 3 * rows[:, 0] - FAR_REACH)
    np.testing.assert_allclose(scorer.score(rows), expected, rtol=1e-5)


@both_precisions
def test_with_fewer_landmarks_than_three_the_mean_is_of_those_there_are(single):
    scorer = KernelScorer(np.array([[0.0], [100.0]]), np.array([1.0, 1.0]), np.array([1.0]), single=single)
    scores = scorer.score(np.array([[50.0], [90.0], [110.0], [160.0]]))
    np.testing.assert_allclose(scores, FAR_REACH - np.array([50.0, 2 * 10.0, 2 * 10.0, 110.0]), rtol=1e-6)


@both_precisions
@pytest.mark.parametrize("unweighted", [[1], [0, 1], [0, 1, 2]])
def test_landmarks_without_a_coefficient_count_for_far_distances(unweighted, single):
    scorer = _scorer(s=3, single=single)
    spread = replace(scorer, landmarks=scorer.landmarks * [[1.0], [30.0], [90.0]])
    spread.coefficients[unweighted] = 0.0
    rows = np.vstack([_rows(), spread.landmarks + 0.3, spread.landmarks + 20.0])
    expected = [
        oracles.kernel_score(row, spread.landmarks, spread.coefficients, spread.widths, FAR_REACH)
        for row in rows
    ]
    np.testing.assert_allclose(spread.score(rows), expected, **_digits(single))


@both_precisions
def test_a_landmark_without_a_coefficient_by_hand(single):
    scorer = KernelScorer(np.array([[0.0], [100.0]]), np.array([1.0, 0.0]), np.array([1.0]), single=single)
    scores = scorer.score(np.array([[0.0], [50.0], [90.0], [99.0], [160.0]]))
    np.testing.assert_allclose(scores, [1.0, -46.0, 4.0 - 2 * 10, 0.0, 4.0 - (60 + 160) / 2])


@both_precisions
@pytest.mark.parametrize("n_unweighted", [1, 8, 15, 16, 17, 40])
def test_far_rows_find_the_nearest_landmark_among_many_without_a_coefficient(n_unweighted, single):
    rng = np.random.default_rng(n_unweighted)
    landmarks, a = 100 * rng.normal(size=(60, 2)), rng.normal(size=60)
    a[rng.permutation(60)[:n_unweighted]] = 0.0
    scorer = KernelScorer(landmarks, a, np.array([1.0, 2.0]), single=single)
    # Of the rows taken together, one, some or all are far from every landmark with a coefficient.
    rows = np.vstack([landmarks + rng.normal(size=(60, 2)), 120 * rng.normal(size=(60, 2))])
    rows = rng.permutation(rows)
    expected = [oracles.kernel_score(row, landmarks, a, scorer.widths, FAR_REACH) for row in rows]
    np.testing.assert_allclose(scorer.score(rows), expected, rtol=1e-6, atol=1e-4 if single else 1e-12)
    alone = [scorer.score(row[None])[0] for row in rows]
    np.testing.assert_array_equal(scorer.score(rows), alone)


@both_precisions
def test_where_no_landmark_has_a_coefficient_there_are_far_distances_alone(single):
    scorer = replace(_scorer(s=20, single=single), coefficients=np.zeros(20))
    rows = np.vstack([_rows(), scorer.landmarks])
    expected = [
        oracles.kernel_score(row, scorer.landmarks, scorer.coefficients, scorer.widths, FAR_REACH)
        for row in rows
    ]
    np.testing.assert_allclose(scorer.score(rows), expected, **_digits(single))
    np.testing.assert_array_equal(scorer.score(scorer.landmarks), np.zeros(20))
    np.testing.assert_array_equal(replace(scorer, far_field=False).score(rows), np.zeros(len(rows)))
    assert np.isnan(scorer.score(np.array([[0.0, np.nan, 0.0]]))).all()


@both_precisions
def test_without_far_field_far_rows_score_zero(single):
    scorer = KernelScorer(
        np.array([[0.0]]), np.array([-3.0]), np.array([1.0]), far_field=False, single=single
    )
    scores = scorer.score(np.array([[0.0], [4.5], [1e3], [1e200]]))
    assert scores[0] == -3.0
    np.testing.assert_allclose(scores[1], -3 * math.exp(-(4.5**2)), rtol=1e-5 if single else 1e-12)
    assert scores[2] == scores[3] == 0.0


@both_precisions
def test_within_the_reach_the_far_field_changes_nothing(single):
    rows = np.random.default_rng(10).normal(size=(200, 3))
    with_far, without = _scorer(single=single), _scorer(far_field=False, single=single)
    distances = oracles.neighbors(with_far.landmarks / with_far.widths, 3, rows / with_far.widths)[0]
    near = np.minimum(distances.mean(axis=1), 3 * distances[:, 0]) < FAR_REACH
    assert near.sum() > 100
    np.testing.assert_array_equal(with_far.score(rows)[near], without.score(rows)[near])


def test_beyond_the_reach_the_kernel_is_below_what_is_said():
    assert math.exp(-(FAR_REACH**2)) < 2e-7


@both_precisions
def test_far_rows_keep_their_order_beyond_what_float32_can_tell(single):
    scorer = _lone(1.0, single)
    distances = np.geomspace(10, 1e150, 2_000)
    rows = _along(scorer, distances)
    scores = scorer.score(rows)
    assert (np.diff(scores) < 0).all()
    np.testing.assert_allclose(scores, FAR_REACH - distances, rtol=1e-6 if single else 1e-12)
    # In any order, and whichever rows are beside them.
    mixed = np.random.default_rng(11).permutation(len(rows))
    np.testing.assert_array_equal(scorer.score(rows[mixed]), scores[mixed])


@pytest.mark.parametrize("unweighted", [0, 5, 20])
def test_distances_that_overflow_in_float32_are_those_of_float64(unweighted):
    double = _scorer(s=20)
    double.coefficients[:unweighted] = 0.0
    double = replace(double, limits=(np.full(3, -9.0), np.full(3, 9.0), np.array([0.5, 1.0, np.inf])))
    rng = np.random.default_rng(12)
    rows = rng.normal(size=(200, 3)) * 10.0 ** rng.uniform(0, 307, size=(200, 1))
    beyond = np.abs(rows).max(axis=1) > 1e22
    assert 20 < beyond.sum() < 195
    in_float64 = double.score(rows)
    scores = replace(double, single=True).score(rows)
    np.testing.assert_array_equal(scores[beyond], in_float64[beyond])
    np.testing.assert_allclose(scores, in_float64, rtol=1e-6)
    assert np.isfinite(scores).all()


# ---------------------------------------------------------------------------------------- NaN and infinity


@both_precisions
@pytest.mark.parametrize("far_field", [True, False])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_scores_nan_and_its_neighbours_what_they_do(bad, far_field, single):
    scorer = _scorer(s=19, far_field=far_field, single=single)
    limited = replace(scorer, limits=(np.full(3, -2.0), np.full(3, 2.0), np.ones(3)))
    rows = _rows(n=9)
    for model in (scorer, limited):
        clean = model.score(rows)
        for row in range(len(rows)):
            for column in range(3):
                spoilt = rows.copy()
                spoilt[row, column] = bad
                expected = clean.copy()
                expected[row] = np.nan
                np.testing.assert_array_equal(model.score(spoilt), expected)


@both_precisions
def test_rows_may_be_bad_in_several_columns_and_far_in_others(single):
    scorer = _scorer(s=19, single=single)
    bad = [[np.nan] * 3, [np.inf] * 3, [np.inf, -np.inf, 0], [np.inf, 1e300, np.nan], [-1e300, np.nan, 1e25]]
    assert np.isnan(scorer.score(np.array(bad))).all()


@both_precisions
@pytest.mark.parametrize("unweighted", [0, 7, 19])
def test_bad_and_overflowing_rows_in_one_batch(unweighted, single):
    scorer = _scorer(s=19, single=single)
    scorer.coefficients[:unweighted] = 0.0
    bad, overflowing = [[np.nan, 0, 0], [0, 0, np.inf]], [[1e30, 0, 0], [0, 1e200, 0], [0, 0, -1.7e308]]
    kinds = np.array([*bad, *overflowing, [0.1, 0.2, 0.3], [30.0, 0, 0]])
    alone = np.array([scorer.score(row[None])[0] for row in kinds])
    np.testing.assert_array_equal(np.isnan(alone), [True] * 2 + [False] * 5)
    assert alone[2] == replace(scorer, single=False).score(kinds[2:3])[0] < -1e29
    assert alone[3] == alone[4] == -1e300
    drawn = np.random.default_rng(13).integers(len(kinds), size=500)
    np.testing.assert_array_equal(scorer.score(kinds[drawn]), alone[drawn])


# ------------------------------------------------------------------------------------------------ the limits


@both_precisions
@pytest.mark.parametrize("far_field", [True, False])
def test_excess_over_limits_is_subtracted_exactly(far_field, single):
    rng = np.random.default_rng(14)
    plain = _scorer(s=19, far_field=far_field, single=single)
    nominal = rng.normal(size=(50, 3)) * [1.0, 10.0, 0.0]  # the last column does not vary: no limit there
    low, high, unit = limits = ColumnRanges.of(nominal).limits
    rows = np.vstack([_rows(n=200), [[low[0], high[1], 0.0]], [[1e18, 0.0, 0.0]], [[0.0, -1e18, 9.0]]])
    assert not np.isfinite(limits[2][2])
    beyond = np.maximum(low - rows, rows - high)[:, :2] / unit[:2]
    excess = np.maximum(beyond.max(axis=1), 0.0)
    assert 20 < np.count_nonzero(excess) < 180
    scores = replace(plain, limits=limits).score(rows)
    np.testing.assert_array_equal(scores, plain.score(rows) - excess)
    np.testing.assert_array_equal(scores[excess == 0], plain.score(rows)[excess == 0])


@both_precisions
def test_excess_stops_where_squares_would_overflow(single):
    limits = (np.full(3, -1.0), np.full(3, 1.0), np.array([1.0, 1e-300, 1.0]))
    scorer = replace(_scorer(far_field=False, single=single), limits=limits)
    rows = np.array([[1e200, 0.0, 0.0], [0.0, 1e10, 0.0], [0.0, 0.0, -1.7e308], [1e9, 0.0, 0.0]])
    scores = scorer.score(rows)
    np.testing.assert_array_equal(scores[:3], [-1e140, -1e140, -1e140])
    np.testing.assert_allclose(scores[3], 1 - 1e9, rtol=1e-15)


# ------------------------------------------------------------------------------ the quickest that will do


def test_the_quickest_is_float32_where_coefficients_are_small():
    for d, s in ((1, 30), (3, 100), (10, 300)):
        rng = np.random.default_rng([d, s])
        scorer = KernelScorer(rng.normal(size=(s, d)), np.abs(rng.normal(size=s)), np.full(d, math.sqrt(d)))
        quickest = scorer.quickest()
        assert quickest.single
        rows = rng.normal(size=(500, d))
        assert np.abs(quickest.score(rows) - scorer.score(rows)).max() <= quickest.rounding
        # As many rows as can be told apart at all are in the same order.
        assert np.abs(quickest.score(rows) - scorer.score(rows)).max() < 1e-4 * scorer.score(rows).std()


@pytest.mark.parametrize(("sigma", "s", "d"), [(10.0, 200, 3), (30.0, 500, 10)])
def test_the_quickest_is_float64_where_large_coefficients_cancel(sigma, s, d):
    scorer, _ = _cancelling(sigma, s, d)
    assert not scorer.quickest().single
    # Of the two it is told apart by the coefficients, and by nothing else.
    tame = replace(scorer, coefficients=np.sign(scorer.coefficients), widths=np.full(d, math.sqrt(d)))
    assert tame.quickest().single


def test_the_quickest_follows_from_the_promise_and_the_spread_of_the_landmarks_scores():
    rng = np.random.default_rng(15)
    found = []
    for width in np.geomspace(1e-6, 1e6, 60):
        scorer = KernelScorer(rng.normal(size=(30, 2)), rng.normal(size=30), np.full(2, width))
        own = _exact_sum(scorer.landmarks, scorer).astype(float)
        single = replace(scorer, single=True)
        found.append(scorer.quickest().single)
        assert found[-1] == (_promised_error(single) <= 0.01 * own.std())
    # Narrow bandwidths put landmarks too far apart for float32, wide ones make all scores the same.
    assert found == sorted(found[:30]) + sorted(found[30:], reverse=True)
    assert {found[0], found[30], found[-1]} == {False, True}


@both_precisions
def test_the_quickest_changes_the_precision_and_nothing_else(single):
    limits = (np.full(3, -9.0), np.full(3, 9.0), np.ones(3))
    for scorer in (_scorer(s=30, single=single), replace(_cancelling(10.0, 200, 3)[0], single=single)):
        for far_field in (True, False):
            for given in (None, limits):
                model = replace(scorer, far_field=far_field, limits=given)
                quickest = model.quickest()
                assert quickest.landmarks is model.landmarks
                assert quickest.coefficients is model.coefficients
                assert quickest.widths is model.widths
                assert quickest.limits is given
                assert quickest.far_field == far_field
                assert model.single == single
                # It depends on what is computed, and not on how it would have been.
                assert quickest.single == replace(model, single=not single).quickest().single
                assert quickest.single == replace(model, far_field=True, limits=None).quickest().single


def test_one_landmark_and_landmarks_of_equal_scores_are_left_to_float64():
    """There is no spread to measure a promise by."""
    assert not _scorer(s=1).quickest().single
    assert not KernelScorer(np.zeros((5, 2)), np.ones(5), np.ones(2)).quickest().single


@pytest.fixture(scope="module")
def fitted():
    rows = np.random.default_rng(16).normal(size=(60, 2))
    return RankAD(near_field=False, n_components=0, random_state=0, n_jobs=1).fit(rows)


def test_a_detector_of_normal_rows_scores_in_float32(fitted):
    scorer = fitted.scorer_.kernel
    assert scorer.single
    assert scorer.far_field
    assert scorer.limits is not None
    double = replace(scorer, single=False)
    rows = np.random.default_rng(17).normal(size=(2_000, 2))
    scores = fitted.score_samples(rows)
    np.testing.assert_array_equal(scores, scorer.score(rows))
    # Up to the reach the difference is rounding; beyond it, that of a distance of some bandwidths, too.
    near = replace(scorer, far_field=False).score(rows) == scores
    assert near.mean() > 0.9
    error = np.abs(scores - double.score(rows))
    assert 0 < error[near].max() <= _promised_error(scorer)
    assert error.max() <= _promised_error(scorer) + 1e-5
    # Which is nothing to p-values: a few rows pass one nominal score at most.
    p_values = fitted.calibration_.p_values(double.score(rows))
    moved = np.abs(fitted.p_values(rows) - p_values)
    assert (moved > 0).mean() < 0.01
    assert moved.max() <= 1.5 / (fitted.calibration_.scores.size + 1)


def test_a_fitted_detector_keeps_float32_and_every_bit_through_a_pickle(fitted):
    rows = np.vstack([np.random.default_rng(18).normal(size=(50, 2)), [[1e3, 0.0], [1e100, 1.0]]])
    again = pickle.loads(pickle.dumps(fitted))
    assert again.scorer_.kernel.single
    np.testing.assert_array_equal(again.score_samples(rows), fitted.score_samples(rows))


def test_a_detector_far_from_everything_orders_rows(fitted):
    scores = fitted.score_samples(np.geomspace(20, 1e130, 500)[:, None] * [0.6, -0.8])
    assert (np.diff(scores) < 0).all()


@pytest.mark.parametrize(
    ("bandwidth", "C", "single"),
    [(0.3, 1.0, True), (1.0, 0.01, True), (30.0, 1.0, False), (30.0, 100.0, False)],
)
def test_published_detectors_keep_the_promise_at_any_bandwidth(bandwidth, C, single):
    rows = np.random.default_rng(19).normal(size=(100, 2))
    published = RankAD.as_published(bandwidth=bandwidth, C=C, random_state=0, n_jobs=1)
    # In-sample, it stays in float64; held against rows of its own, it need not.
    assert not published.fit(rows).scorer_.kernel.single
    scorer = published.set_params(calibration="split").fit(rows).scorer_.kernel
    assert scorer.single == single
    assert np.abs(scorer.score(rows) - _exact_sum(rows, scorer)).max() <= _promised_error(scorer)
    # Whichever it is, scores are good to a hundredth of what tells them apart.
    assert _promised_error(scorer) <= 0.01 * _exact_sum(scorer.landmarks, scorer).std()


# ------------------------------------------------------------------ what float32 has no numbers or digits for


def _small_model(more=(), of_more=(), factor=1.0, far_field=True):
    rng = np.random.default_rng(0)
    landmarks, a = rng.normal(size=(20, 2)), rng.normal(size=20)
    if len(more):
        landmarks, a = np.vstack([landmarks, more]), np.r_[a, of_more]
    return KernelScorer(landmarks, factor * a, np.full(2, 0.5), far_field)


@pytest.mark.parametrize(("share", "single"), [(0.9, True), (1.1, False)])
def test_how_far_away_a_landmark_may_be_for_float32(share, single):
    """Rounding of its distance, times three as it may count so often, against a hundredth of a score."""
    near = _small_model()
    own = [oracles.kernel_score(z, near.landmarks, near.coefficients, near.widths) for z in near.landmarks]
    farthest = 0.01 * np.std([*own, 0.0]) / (3 * 2.0**-22)
    scorer = _small_model([[share * farthest * near.widths[0], 0.0]], [0.0])
    assert scorer.quickest().single == single


def test_an_unweighted_landmark_far_away_is_left_to_float64():
    scorer = _small_model([[1e9, 0.0]], [0.0])
    assert not scorer.quickest().single
    assert scorer.quickest().score(np.array([[1e9 + 17, 0.2]]))[0] == pytest.approx(4 - 3 * 34, abs=0.1)
    # Without a far field nobody asks how far away it is.
    assert replace(scorer, far_field=False).quickest().single


@pytest.mark.parametrize(("factor", "single"), [(1e39, False), (1.0, True), (1e-46, False), (0.0, False)])
def test_coefficients_that_float32_does_not_have_are_left_to_float64(factor, single):
    scorer = _small_model(factor=factor)
    assert scorer.quickest().single == single
    rows = _rows(d=2)
    np.testing.assert_allclose(scorer.quickest().score(rows), scorer.score(rows), rtol=1e-3, atol=1e-3)


def test_rounding_is_a_number_where_an_unweighted_landmark_is_infinitely_far():
    landmarks = np.array([[-1e140], [0.0], [1e140]])
    scorer = KernelScorer(landmarks, np.array([0.0, 1.0, 0.0]), np.array([1e-200]))
    assert 0 < scorer.rounding < 1e-13
    assert not scorer.quickest().single
