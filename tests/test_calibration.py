import math

import numpy as np
import pytest
from scipy import stats

import oracles
from rankad.stages.calibration import Calibration, beta_bound, covering_bound

KINDS = ("split", "cross-fit", "leave-one-out", "in-sample")


def _calibration(scores, kind="split"):
    return Calibration.from_scores(scores, kind)


# -------------------------------------------------------------------------------------------------- p-values


def test_p_values_by_hand():
    calibration = _calibration([4.0, 1.0, 2.0, 2.0])
    np.testing.assert_array_equal(calibration.scores, [1.0, 2.0, 2.0, 4.0])
    # Below all, on one, between, on a tie, on the highest, above all.
    p_values = calibration.p_values([0.0, 1.0, 1.5, 2.0, 4.0, 9.0])
    np.testing.assert_array_equal(p_values, [1 / 5, 2 / 5, 2 / 5, 4 / 5, 1.0, 1.0])


@pytest.mark.parametrize("n", [1, 2, 19, 50])
def test_p_values_equal_the_naive_ones(n):
    rng = np.random.default_rng(n)
    nominal = rng.integers(0, 12, size=n).astype(float)
    scores = np.concatenate([rng.integers(-2, 14, size=60), rng.normal(6, 5, size=60), [-np.inf, np.inf]])
    p_values = _calibration(nominal).p_values(scores)
    np.testing.assert_array_equal(p_values, [oracles.p_value(nominal, score) for score in scores])
    assert p_values.min() == 1 / (n + 1)
    assert p_values.max() == 1.0


def _searched(nominal, scores):
    """P-values by numpy's search; NaN has none."""
    scores = np.asarray(scores, dtype=float)
    p_values = (1 + np.searchsorted(np.sort(nominal), scores, side="right")) / (len(nominal) + 1)
    return np.where(np.isnan(scores), np.nan, p_values)


@pytest.mark.parametrize("n", [*range(1, 41), 63, 64, 65, 100, 2_000])
def test_p_values_equal_those_of_a_search_to_the_last_bit(n):
    rng = np.random.default_rng(n)
    drawn = rng.normal(size=n)
    constant, tied = np.full(n, 0.25), np.round(drawn, 1)
    endless = np.where(rng.random(n) < 0.3, np.copysign(np.inf, drawn), drawn)
    for nominal in (drawn, tied, constant, endless, np.round(drawn) * 0.0):
        around = np.concatenate([nominal, np.nextafter(nominal, -np.inf), np.nextafter(nominal, np.inf)])
        extreme = [-np.inf, np.inf, -1.7e308, 1.7e308, 0.0, -0.0, np.nan]
        scores = rng.permutation(np.concatenate([around, rng.normal(size=50), extreme]))
        np.testing.assert_array_equal(_calibration(nominal).p_values(scores), _searched(nominal, scores))


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_a_p_value_depends_on_its_own_score_alone(n):
    # Scores are looked up several at a time.
    rng = np.random.default_rng(n)
    calibration, scores = _calibration(rng.normal(size=n)), rng.normal(size=37)
    scores[[4, 20, 21]] = np.nan
    alone = np.array([calibration.p_values(score) for score in scores])
    for begin in range(len(scores)):
        for end in range(begin, len(scores) + 1):
            np.testing.assert_array_equal(calibration.p_values(scores[begin:end]), alone[begin:end])


def test_no_score_no_p_value():
    calibration = _calibration([1.0, 2.0, 2.0, 4.0])
    for place in range(17):
        scores = np.full(17, 2.0)
        scores[place] = np.nan
        expected = np.full(17, 4 / 5)
        expected[place] = np.nan
        np.testing.assert_array_equal(calibration.p_values(scores), expected)
    assert np.isnan(calibration.p_values(np.nan))


def test_p_values_are_of_the_shape_of_scores():
    nominal = np.array([1.0, 2.0, 2.0, 4.0])
    calibration, grid = _calibration(nominal), np.arange(24.0).reshape(2, 3, 4) / 5
    for scores in (
        2.0,
        3,
        np.float32(1.5),
        np.array(2.0),
        [],
        [1, 2, 3],
        np.empty((0, 3)),
        grid,
        np.asfortranarray(grid),
        grid[:, ::2, ::-1],
        grid.T,
        grid.astype(np.float32),
        np.arange(-2, 6),
    ):
        p_values = calibration.p_values(scores)
        assert isinstance(p_values, np.ndarray)
        assert p_values.dtype == np.float64
        assert p_values.shape == np.shape(scores)
        np.testing.assert_array_equal(p_values, _searched(nominal, scores))


def test_p_values_are_new_and_scores_left_alone():
    calibration, scores = _calibration([1.0, 2.0]), np.array([3.0, 0.0, 1.5])
    calibration.p_values(scores)[:] = 7.0
    np.testing.assert_array_equal(scores, [3.0, 0.0, 1.5])
    np.testing.assert_array_equal(calibration.scores, [1.0, 2.0])
    # Nor need they be writeable.
    scores.flags.writeable = False
    calibration.scores.flags.writeable = False
    np.testing.assert_array_equal(calibration.p_values(scores), [1.0, 1 / 3, 2 / 3])


def test_higher_scores_have_no_lower_p_values():
    rng = np.random.default_rng(0)
    scores = np.sort(rng.normal(size=200))
    assert (np.diff(_calibration(rng.normal(size=80)).p_values(scores)) >= 0).all()


@pytest.mark.parametrize("distinct", [3, 1_000_000])
def test_p_values_of_fresh_nominal_rows_are_valid(distinct):
    """P(p <= alpha) <= alpha over calibration sets and fresh rows, ties or not; equal to it without ties."""
    rng = np.random.default_rng(1)
    n, draws = 19, 20_000
    p_values = np.array(
        [
            _calibration(values[:n]).p_values(values[n:])[0]
            for values in rng.integers(0, distinct, size=(draws, n + 1))
        ]
    )
    for alpha in (0.05, 0.1, 0.25, 0.5):
        share, tolerance = (p_values <= alpha).mean(), 4 * math.sqrt(alpha * (1 - alpha) / draws)
        assert share <= alpha + tolerance
        if distinct > 3:
            assert share >= alpha - tolerance


# ------------------------------------------------------------------------------------------------ thresholds


def _levels(n, rng):
    """Levels on, just below and just above every possible p-value, and some between."""
    exact = np.arange(1, n + 2) / (n + 1)
    products = np.arange(1, n + 2) * (1 / (n + 1))  # how a user may well compute them
    return np.concatenate(
        [exact, products, np.nextafter(exact, 0), np.nextafter(exact, 2), rng.random(5), [0.01, 0.05, 0.1]]
    )


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 9, 10, 19, 48, 99])
def test_scores_below_the_threshold_are_those_with_a_p_value_up_to_alpha(n):
    rng = np.random.default_rng(n)
    for distinct in (2, 5, 1_000):
        nominal = rng.integers(0, distinct, size=n).astype(float)
        calibration = _calibration(nominal)
        scores = np.concatenate([nominal, nominal - 0.5, nominal + 0.5, [-np.inf, -1.0, distinct]])
        p_values = calibration.p_values(scores)
        for alpha in _levels(n, rng):
            np.testing.assert_array_equal(scores < calibration.threshold(alpha), p_values <= alpha)


@pytest.mark.parametrize("n", [1, 4, 9, 48, 99, 999])
def test_number_of_p_values_up_to_alpha(n):
    calibration = _calibration(np.arange(n))
    possible = np.arange(1, n + 2) / (n + 1)
    for alpha in _levels(n, np.random.default_rng(n)):
        assert calibration.n_below(alpha) == (possible <= alpha).sum()


@pytest.mark.parametrize("alpha", [0.2499, 1e-9, 0.0, -0.3, -0.5, -1.0])
def test_no_alarm_at_a_level_below_the_smallest_p_value(alpha):
    calibration = _calibration([1.0, 2.0, 3.0])
    assert calibration.n_below(alpha) == 0
    assert calibration.threshold(alpha) == -math.inf


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_everything_is_an_alarm_at_level_one(alpha):
    calibration = _calibration([1.0, 2.0, 3.0])
    assert calibration.n_below(alpha) == 4
    assert calibration.threshold(alpha) == math.inf


def test_thresholds_by_hand():
    calibration = _calibration([10.0, 20.0, 30.0, 40.0])
    assert [calibration.threshold(alpha) for alpha in (0.2, 0.39, 0.4, 0.6, 0.8, 0.99)] == [
        10.0,
        10.0,
        20.0,
        30.0,
        40.0,
        40.0,
    ]


def test_no_scores_is_an_error():
    with pytest.raises(ValueError, match=r"scores must hold at least one nominal score\."):
        Calibration.from_scores([], "split")


def test_scores_are_copied():
    scores = np.array([2.0, 1.0])
    calibration = _calibration(scores)
    np.testing.assert_array_equal(scores, [2.0, 1.0])
    scores[:] = 0
    np.testing.assert_array_equal(calibration.scores, [1.0, 2.0])


# ------------------------------------------------------------------------------------------------- Beta bound


@pytest.mark.parametrize(("n", "alpha", "r"), [(99, 0.05, 5), (99, 0.1, 10), (500, 0.01, 5), (19, 0.5, 10)])
@pytest.mark.parametrize("delta", [0.01, 0.05, 0.5])
def test_beta_bound_is_the_quantile_of_an_order_statistic(n, alpha, r, delta):
    promise = beta_bound(_calibration(np.arange(n)), alpha, delta)
    assert promise.bound == pytest.approx(stats.beta(r, n + 1 - r).ppf(1 - delta), rel=1e-9)
    # The same by the binomial law: U_(r) <= u when at least r of n uniform numbers are.
    assert stats.binom(n, promise.bound).cdf(r - 1) == pytest.approx(delta, rel=1e-6)
    assert (promise.alpha, promise.delta) == (alpha, delta)


def test_beta_bound_by_hand():
    # The smallest of 19: P(U_(1) > u) = (1 - u)^19.
    promise = beta_bound(_calibration(np.arange(19)), 0.05, 0.1)
    assert promise.bound == pytest.approx(1 - 0.1 ** (1 / 19), rel=1e-12)


def test_beta_bound_at_the_ends():
    calibration = _calibration(np.arange(9))
    assert beta_bound(calibration, 0.05, 0.1).bound == 0.0  # no alarm is possible
    assert beta_bound(calibration, 1.0, 0.1).bound == 1.0


def test_beta_bound_tightens_with_n_and_loosens_with_confidence():
    bounds = [beta_bound(_calibration(np.arange(n)), 0.05, 0.05).bound for n in (99, 999, 9_999)]
    assert bounds[0] > bounds[1] > bounds[2] > 0.05
    bounds = [beta_bound(_calibration(np.arange(99)), 0.05, delta).bound for delta in (0.5, 0.1, 0.001)]
    assert bounds[0] < bounds[1] < bounds[2]


@pytest.mark.parametrize(("n", "alpha", "delta"), [(99, 0.1, 0.1), (199, 0.02, 0.05), (39, 0.3, 0.2)])
def test_beta_bound_is_kept_as_promised_and_no_more_than_that(n, alpha, delta):
    rng = np.random.default_rng(2)
    draws = 4_000
    calibrations = [_calibration(scores) for scores in rng.random((draws, n))]
    bound = beta_bound(calibrations[0], alpha, delta).bound
    # A fresh uniform score is below t with probability t.
    realised = np.array([calibration.threshold(alpha) for calibration in calibrations])
    broken, tolerance = (realised > bound).mean(), 4 * math.sqrt(delta * (1 - delta) / draws)
    assert delta - tolerance <= broken <= delta + tolerance


def test_beta_bound_is_kept_when_scores_tie():
    rng = np.random.default_rng(3)
    draws, delta = 2_000, 0.1
    calibrations = [_calibration(np.floor(20 * scores)) for scores in rng.random((draws, 99))]
    bound = beta_bound(calibrations[0], 0.1, delta).bound
    # A fresh score of 0 to 19 is below t with probability t / 20.
    realised = np.array([calibration.threshold(0.1) for calibration in calibrations]) / 20
    assert realised.max() > 0
    assert (realised > bound).mean() <= delta + 4 * math.sqrt(delta * (1 - delta) / draws)


@pytest.mark.parametrize("kind", KINDS)
def test_beta_bound_is_exact_for_rows_kept_out_of_training_alone(kind):
    promise = beta_bound(_calibration(np.arange(99), kind), 0.05, 0.05)
    assert promise.exact == (kind == "split")
    assert ("approximation" in promise.theorem) == (kind != "split")
    assert "Beta" in promise.theorem


# --------------------------------------------------------------------------------------------- covering bound


def _two_heaps(n=10**6, low=60_000, at=1.9):
    """Scores of n rows, 6 % of them at the bottom and the others at the top: room for a margin."""
    return _calibration(np.repeat([-at, at], [low, n - low]), "in-sample")


def test_covering_bound_by_hand():
    n, delta = 10**6, 0.05
    promise = covering_bound(_two_heaps(), 0.05, delta, 1.9)
    # |g| = 1.9: A = 2, the first doubling. The threshold is -1.9. With gamma = 2 no score lies beyond
    # -1.9 + 2 gamma; with gamma = 1 the top heap does, m - 1 = 60,000, A / gamma = 2, 4 A / gamma + 2 = 10.
    k = math.ceil(36 * 4 * math.log2(2 * 10 * (2 * n) + 1))
    assert k == 3_637
    share = delta / (1 * 2 * 12)  # 1 / (j (j + 1)) for the j-th doubling, twelve gammas
    expected = 60_000 / n + 2 / n * (k + 1 + math.log2(n / share))
    assert promise.bound == pytest.approx(expected, rel=1e-12)
    assert 0.067 < promise.bound < 0.068
    assert "gamma = 1, k = 3637" in promise.theorem
    assert "vacuous" not in promise.theorem
    assert promise.exact
    assert (promise.alpha, promise.delta) == (0.05, delta)


def test_covering_bound_takes_the_best_gamma():
    """Against a loop over the grid, with m counted score by score."""
    n, alpha, delta, norm = 200_000, 0.02, 0.1, 11.0
    rng = np.random.default_rng(4)
    scores = np.where(rng.random(n) < 0.1, rng.uniform(-11, -4, size=n), rng.uniform(4, 11, size=n))
    calibration = _calibration(scores, "in-sample")
    threshold, radius, doublings = calibration.threshold(alpha), 16.0, 4
    bounds = []
    for gamma in (radius / 2**halving for halving in range(12)):
        beyond = sum(scores < threshold + 2 * gamma)
        if beyond == n:
            continue  # no g^(m) is that high
        cover = 36 * (radius / gamma) ** 2 * math.log2(2 * math.ceil(4 * radius / gamma + 2) * 2 * n + 1)
        share = delta / (doublings * (doublings + 1) * 12)
        bounds.append(beyond / n + 2 / n * (math.ceil(cover) + 1 + math.log2(n / share)))
    assert 0.1 < min(bounds) < 0.9
    assert sum(bound < 1 for bound in bounds) > 1  # a choice was made
    assert covering_bound(calibration, alpha, delta, norm).bound == pytest.approx(min(bounds), rel=1e-12)


def test_covering_bound_shares_delta_over_the_kernels_that_were_tried():
    n = 10**6
    one, many = (covering_bound(_two_heaps(), 0.05, 0.05, 1.9, n_kernels) for n_kernels in (1, 64))
    assert many.bound - one.bound == pytest.approx(2 / n * math.log2(64), rel=1e-6)
    assert one.exact
    assert many.exact


def test_covering_bound_with_a_kernel_from_the_rows_is_no_theorem():
    promise = covering_bound(_two_heaps(), 0.05, 0.05, 1.9, None)
    assert not promise.exact
    assert "does not cover" in promise.theorem


def test_covering_bound_grows_with_the_norm_up_to_one():
    bounds = [
        covering_bound(_two_heaps(), 0.05, 0.05, norm).bound for norm in (1.9, 2.1, 3.0, 6.0, 9.0, 40.0, 1e6)
    ]
    assert (np.diff(bounds) >= 0).all()
    assert bounds[0] < bounds[1] < bounds[3] < 1.0
    assert bounds[-1] == 1.0
    # Below a radius of two nothing changes any more; zero is a norm, too.
    assert {covering_bound(_two_heaps(), 0.05, 0.05, norm).bound for norm in (0.0, 1e-9, 1.0, 2.0)} == {
        bounds[0]
    }


@pytest.mark.parametrize("n", [10, 2_000])
def test_covering_bound_says_when_it_promises_nothing(n):
    scores = np.random.default_rng(5).normal(size=n)
    promise = covering_bound(_calibration(scores, "in-sample"), 0.2, 0.05, 5.0)
    assert promise.bound == 1.0
    assert "vacuous" in promise.theorem
    assert "promises nothing" in promise.theorem


def test_covering_bound_where_no_alarm_is_possible():
    promise = covering_bound(_calibration(np.arange(9.0), "in-sample"), 0.05, 0.05, 5.0)
    assert promise.bound == 0.0
    # A rate of zero is a promise, and a strong one.
    assert "promises nothing" not in promise.theorem


def test_covering_bound_where_everything_is_an_alarm():
    assert covering_bound(_two_heaps(), 1.0, 0.05, 1.9).bound == 1.0


# ----------------------------------------------------------------------------- ties


def test_smoothed_p_values_are_uniform_where_scores_tie():
    """Scores of four values: over fresh scores and variates, the mean rate is alpha itself."""
    rng = np.random.default_rng(3)
    rates = []
    for _ in range(400):
        calibration = Calibration.from_scores(rng.integers(0, 4, 49), "split")
        p = calibration.smoothed(rng.integers(0, 4, 200), rng.random(200))
        rates.append([(p <= alpha).mean() for alpha in (0.02, 0.1, 0.3)])
    errors = np.std(rates, axis=0) / np.sqrt(len(rates))
    assert np.all(np.abs(np.mean(rates, axis=0) - (0.02, 0.1, 0.3)) < 4 * errors)


def test_smoothed_p_values_lie_between_those_with_ties_above_and_below():
    scores = np.array([0.1, 0.2, 0.2, 0.2, 0.7])
    calibration = Calibration.from_scores(scores, "split")
    np.testing.assert_allclose(calibration.smoothed([0.2, 0.2], [1.0, 0.0]), [5 / 6, 1 / 6])
    np.testing.assert_allclose(calibration.smoothed([0.2], [1.0]), calibration.p_values([0.2]))


@pytest.mark.parametrize("kind", ["cross-fit", "leave-one-out"])
def test_no_bound_is_claimed_where_scores_left_out_tie(kind):
    tied = Calibration.from_scores(np.repeat(np.arange(50.0), 2), kind)
    bound = beta_bound(tied, 0.1, 0.05)
    assert (bound.bound, bound.exact) == (1.0, False)
    assert "not known: 50 of 100 scores" in bound.theorem
    fresh = Calibration.from_scores(np.repeat(np.arange(50.0), 2), "split")
    assert beta_bound(fresh, 0.1, 0.05).exact, "an independent calibration needs no distinct scores"
