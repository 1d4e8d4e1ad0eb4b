import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from rankad.stages.pairloss import PairLoss

HINGE = oracles.SquaredHinge()
# Relative to the magnitude of what is added up, not of what is left of it.
TOLERANCE = 1e-9


def _magnitudes(scores, levels, far_weight):
    """Return the size of the terms in the loss and in one component of the gradient."""
    terms = [scores[i] - scores[j] for i, j in oracles.pairs(levels)]
    far = [far_weight * abs(HINGE.slope(t)) for t in scores]
    slopes = sum(abs(HINGE.slope(t)) for t in terms) + sum(far)
    loss = sum(HINGE.value(t) for t in terms) + far_weight * sum(HINGE.value(t) for t in scores)
    return loss + 1.0, slopes / len(scores) + 1.0


def _check(scores, levels, far_weight=0.0, tolerance=TOLERANCE):
    at = PairLoss(levels, far_weight=far_weight).at(scores)
    loss, gradient, hessian = oracles.pair_loss(scores, levels, HINGE, far_weight)
    of_loss, of_gradient = _magnitudes(scores, levels, far_weight)
    assert abs(at.value - loss) <= tolerance * of_loss
    np.testing.assert_allclose(at.gradient, gradient, rtol=0, atol=tolerance * of_gradient)
    vectors = np.random.default_rng(0).normal(size=(len(scores), 3))
    expected = hessian @ vectors
    of_hessian = np.abs(hessian).sum() / len(scores) + 1.0
    np.testing.assert_allclose(
        at.hessian_product(vectors), expected, rtol=0, atol=tolerance * of_hessian * np.abs(vectors).max()
    )
    return at, hessian


def _levels(kind, n, rng):
    return {
        "two": rng.integers(1, 3, size=n),
        "three": rng.integers(1, 4, size=n),
        "as many as rows": rng.permutation(n),
        "one": np.full(n, 4),
        "with gaps, negative": rng.choice([-50, 0, 7, 1_000], size=n),
    }[kind]


KINDS = ("two", "three", "as many as rows", "one", "with gaps, negative")


# ------------------------------------------------------------------------------------ against all the pairs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("far_weight", [0.0, 12.5])
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_random_scores(kind, far_weight, spread):
    rng = np.random.default_rng(1)
    _check(spread * rng.normal(size=30), _levels(kind, 30, rng), far_weight)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("far_weight", [0.0, 3.0])
def test_tied_scores_at_the_margin(kind, far_weight):
    # Multiples of 1/4 have exact differences: rounding does not decide which pairs are at the margin.
    rng = np.random.default_rng(2)
    scores, levels = rng.integers(-6, 7, size=40) / 4, _levels(kind, 40, rng)
    if kind != "one":
        assert 1.0 in {scores[i] - scores[j] for i, j in oracles.pairs(levels)}
    _, hessian = _check(scores, levels, far_weight)
    assert hessian.any() == (kind != "one" or far_weight > 0)


@pytest.mark.parametrize("offset", [-1e3, 1e3, 1e6])
def test_large_offsets(offset):
    rng = np.random.default_rng(3)
    levels = rng.integers(1, 6, size=30)
    scores = rng.normal(size=30) + offset
    # 1e6 has ten digits left after the point; the loss is of the order of one.
    _check(scores, levels, tolerance=TOLERANCE if abs(offset) < 1e6 else 1e-6)


def test_a_constant_added_to_all_scores_changes_nothing_without_far_field():
    rng = np.random.default_rng(4)
    scores, levels = rng.integers(-6, 7, size=40) / 4, rng.integers(1, 5, size=40)
    loss = PairLoss(levels)
    here, there = loss.at(scores), loss.at(scores + 1e3)
    assert here.value > 100
    np.testing.assert_allclose(there.value, here.value, rtol=1e-12)
    np.testing.assert_allclose(there.gradient, here.gradient, atol=1e-9)
    v = rng.normal(size=40)
    np.testing.assert_allclose(there.hessian_product(v), here.hessian_product(v), rtol=1e-12, atol=1e-9)


def test_constant_scores():
    levels = np.array([1, 2, 2, 3, 3, 3])
    at, _ = _check(np.zeros(6), levels, 2.0)
    # Every pair and every row falls short by the whole margin.
    expected = 11 + 2 * 6
    np.testing.assert_allclose(at.value, expected, rtol=1e-12)


def test_one_level_without_far_field_has_no_loss():
    at = PairLoss([3, 3, 3, 3]).at([0.0, -5.0, 5.0, 0.25])
    assert at.value == 0.0
    assert not at.gradient.any()
    assert not at.hessian_product(np.ones((4, 2))).any()


def test_one_row():
    at, _ = _check(np.array([0.25]), [1], 4.0)
    assert at.value > 0


def test_scores_in_order_and_beyond_the_margin_have_no_loss():
    levels = np.random.default_rng(5).permutation(20)
    at = PairLoss(levels, far_weight=7.0).at(2.0 * levels + 2.0)
    np.testing.assert_allclose(at.value, 0.0, atol=1e-9)
    np.testing.assert_allclose(at.gradient, 0.0, atol=1e-9)
    assert not at.hessian_product(np.ones(20)).any()


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(-10, 10), st.integers(0, 4)),
        min_size=1,
        max_size=9,
    ),
    far_weight=st.sampled_from([0.0, 0.5, 3.0]),
)
def test_any_small_table_of_quarters(rows, far_weight):
    scores = np.array([quarter / 4 for quarter, _ in rows])
    _check(scores, np.array([level for _, level in rows]), far_weight)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    rows=st.lists(
        st.tuples(st.floats(-5, 5, allow_subnormal=False), st.integers(0, 4)), min_size=1, max_size=9
    ),
    far_weight=st.sampled_from([0.0, 1.5]),
)
def test_loss_and_gradient_of_any_small_table(rows, far_weight):
    # No Hessian here: where rounding decides whether a pair is at the margin, both answers are right.
    scores, levels = np.array([score for score, _ in rows]), np.array([level for _, level in rows])
    at = PairLoss(levels, far_weight=far_weight).at(scores)
    loss, gradient, _ = oracles.pair_loss(scores, levels, HINGE, far_weight)
    of_loss, of_gradient = _magnitudes(scores, levels, far_weight)
    assert abs(at.value - loss) <= TOLERANCE * of_loss
    np.testing.assert_allclose(at.gradient, gradient, rtol=0, atol=TOLERANCE * of_gradient)


# --------------------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("far_weight", [0.0, 5.0])
def test_gradient_and_hessian_are_the_finite_differences(far_weight):
    rng = np.random.default_rng(6)
    levels = rng.integers(1, 4, size=15)
    # Multiples of 1/4 plus 1/16 times the level's sign: every difference stays 1/16 away from the margin.
    scores = rng.integers(-4, 5, size=15) / 4 + np.array([0, 1, 2, 3])[levels] / 16
    step = 1e-4
    for t in [*(scores[i] - scores[j] for i, j in oracles.pairs(levels)), *scores]:
        assert abs(t - 1.0) > 2 * step
    loss = PairLoss(levels, far_weight=far_weight)
    at = loss.at(scores)
    for row in range(15):
        move = step * np.eye(15)[row]
        up, down = loss.at(scores + move), loss.at(scores - move)
        # Piecewise quadratic: central differences are exact but for rounding.
        np.testing.assert_allclose((up.value - down.value) / (2 * step), at.gradient[row], atol=1e-7)
        np.testing.assert_allclose(
            (up.gradient - down.gradient) / (2 * step), at.hessian_product(np.eye(15)[row]), atol=1e-7
        )


def test_hessian_product_takes_vectors_and_matrices():
    rng = np.random.default_rng(7)
    at = PairLoss(rng.integers(1, 4, size=20), far_weight=1.0).at(rng.normal(size=20))
    matrix = rng.normal(size=(20, 4))
    product = at.hessian_product(matrix)
    assert product.shape == (20, 4)
    for column in range(4):
        one = at.hessian_product(matrix[:, column])
        assert one.shape == (20,)
        np.testing.assert_array_equal(one, product[:, column])
    np.testing.assert_array_equal(at.hessian_product(np.asfortranarray(matrix)), product)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("far_weight", [0.0, 12.5])
def test_hessian_product_in_single_precision(kind, far_weight):
    rng = np.random.default_rng(11)
    levels, scores = _levels(kind, 30, rng), rng.integers(-6, 7, size=30) / 4
    at = PairLoss(levels, far_weight=far_weight).at(scores)
    single = rng.normal(size=(30, 3)).astype(np.float32)
    product = at.hessian_product(single)
    assert product.dtype == np.float32
    hessian = oracles.pair_loss(scores, levels, HINGE, far_weight)[2]
    double = single.astype(np.float64)
    size = (np.abs(hessian) @ np.abs(double)).max()
    assert hessian.any() == (kind != "one" or far_weight > 0)
    np.testing.assert_allclose(product, hessian @ double, rtol=0, atol=1e-5 * size)
    in_double = at.hessian_product(double)
    assert in_double.dtype == np.float64
    np.testing.assert_allclose(product, in_double, rtol=0, atol=1e-5 * size)
    assert single.dtype == np.float32


def test_hessian_product_of_many_rows_in_single_precision():
    rng = np.random.default_rng(12)
    at = PairLoss(rng.integers(1, 6, size=2_000), far_weight=400.0).at(rng.normal(size=2_000))
    double = rng.normal(size=(2_000, 4))
    single = double.astype(np.float32)
    exact, product = at.hessian_product(double), at.hessian_product(single)
    assert product.dtype == np.float32
    assert 0 < np.linalg.norm(product - exact) <= 1e-5 * np.linalg.norm(exact)
    # One vector, and another layout, are the same numbers.
    np.testing.assert_array_equal(at.hessian_product(np.asfortranarray(single)), product)
    one = at.hessian_product(single[:, 2])
    assert one.dtype == np.float32
    assert one.shape == (2_000,)
    np.testing.assert_array_equal(one, product[:, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_hessian_product_in_double_precision_is_exact_in_whole_numbers(kind):
    # Curvature 2 and whole vectors of up to 31 bits: sums fit into 53 bits, and not into the 24 of single.
    rng = np.random.default_rng(13)
    levels, scores = _levels(kind, 40, rng), rng.integers(-6, 7, size=40) / 4
    vectors = rng.integers(-(2**30), 2**30, size=(40, 3)).astype(np.float64)
    hessian = oracles.pair_loss(scores, levels, HINGE, 3.0)[2]
    product = PairLoss(levels, far_weight=3.0).at(scores).hessian_product(vectors)
    assert product.dtype == np.float64
    np.testing.assert_array_equal(product, hessian @ vectors)


def test_evaluating_does_not_touch_the_scores_and_keeps_earlier_points():
    loss = PairLoss([1, 2, 3])
    scores = np.array([0.5, 0.0, 0.25])
    first = loss.at(scores)
    product = first.hessian_product(np.array([1.0, 2.0, 3.0]))
    loss.at(scores + np.array([5.0, 0.0, -5.0]))
    np.testing.assert_array_equal(scores, [0.5, 0.0, 0.25])
    np.testing.assert_array_equal(first.hessian_product(np.array([1.0, 2.0, 3.0])), product)


# ----------------------------------------------------------------------------------------- pairs and errors


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_counted_and_the_point_at_infinity_with_them(kind):
    levels = _levels(kind, 30, np.random.default_rng(10))
    pairs = len(oracles.pairs(levels))
    assert PairLoss(levels).n_pairs == pairs
    assert PairLoss(levels, far_weight=2.5).n_pairs == pairs + 2.5 * 30


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"levels must be a non-empty vector, got shape \(0,\)\."):
        PairLoss([])
    with pytest.raises(ValueError, match=r"levels must be a non-empty vector, got shape \(1, 2\)\."):
        PairLoss([[1, 2]])
    for far_weight in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=rf"far_weight must be finite and >= 0, got {far_weight!r}\."):
            PairLoss([1, 2], far_weight=far_weight)
    with pytest.raises(ValueError, match=r"scores must have shape \(2,\), got \(3,\)\."):
        PairLoss([1, 2]).at([0.0, 1.0, 2.0])


def test_whole_numbers_are_multiplied_as_numbers():
    at = PairLoss([1, 2, 3, 2], far_weight=0.3).at(np.zeros(4))
    whole = np.array([1, 2, 3, 4])
    np.testing.assert_array_equal(at.hessian_product(whole), at.hessian_product(whole.astype(float)))
    assert at.hessian_product(whole)[0] == pytest.approx(-11.4)
