import numpy as np
import pytest
from scipy import stats
from sklearn.preprocessing import StandardScaler

from rankad.stages.scaling import alike_in_spread, fit_scaling


def _rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(101, 4)) * [1.0, 1e-6, 1e6, 3.0] + [0.0, 5.0, -1e7, 100.0]


def test_standard_scaling_is_scikit_learns():
    rows = _rows()
    scaling = fit_scaling(rows, "standard")
    peer = StandardScaler().fit(rows)
    fresh = rows[::-1] * 1.5 + 1
    np.testing.assert_allclose(scaling.apply(fresh), peer.transform(fresh), rtol=1e-12)
    scaled = scaling.apply(rows)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-8)


def test_standard_scaling_by_hand():
    rows = np.array([[1.0, 10.0], [3.0, 10.0], [1.0, 40.0], [3.0, 40.0]])
    scaling = fit_scaling(rows, "standard")
    np.testing.assert_array_equal(scaling.center, [2.0, 25.0])
    np.testing.assert_array_equal(scaling.scale, [1.0, 15.0])
    np.testing.assert_array_equal(scaling.apply(np.array([[4.0, 25.0]])), [[2.0, 0.0]])


def test_robust_scaling_is_median_and_interquartile_range():
    rows = _rows()
    scaling = fit_scaling(rows, "robust")
    np.testing.assert_allclose(scaling.center, np.median(rows, axis=0), rtol=1e-14)
    unit = stats.norm.ppf(0.75) - stats.norm.ppf(0.25)
    np.testing.assert_allclose(scaling.scale, stats.iqr(rows, axis=0) / unit, rtol=1e-12)


def test_robust_scaling_by_hand():
    # 0 to 8 and a wild one: median 4.5, quartiles 2.25 and 6.75.
    rows = np.append(np.arange(9.0), 1e9)[:, None]
    scaling = fit_scaling(rows, "robust")
    np.testing.assert_allclose(scaling.center, [4.5], rtol=1e-15)
    np.testing.assert_allclose(scaling.scale * 1.3489795003921634, [4.5], rtol=1e-15)


def test_robust_scaling_of_normal_columns_is_about_the_standard_one():
    rows = np.random.default_rng(1).normal(3.0, 2.0, size=(20_000, 1))
    np.testing.assert_allclose(fit_scaling(rows, "robust").scale, [2.0], rtol=0.03)
    np.testing.assert_allclose(fit_scaling(rows, "standard").scale, [2.0], rtol=0.03)


@pytest.mark.parametrize("method", ["standard", "robust"])
@pytest.mark.parametrize("value", [0.0, 7.0, 0.1, -1e9])
def test_a_constant_column_is_scaled_as_if_one_row_had_differed(method, value):
    # 0.1 summed a thousand times is not a thousand times 0.1.
    rows = np.column_stack([np.full(1_000, value), np.arange(1_000.0)])
    scaling = fit_scaling(rows, method)
    change = abs(value) or 1.0
    np.testing.assert_allclose(scaling.center[0], value, rtol=1e-12)
    np.testing.assert_allclose(scaling.scale[0], change / np.sqrt(1_000), rtol=1e-12)
    one_differs = rows.copy()
    one_differs[0, 0] += change
    np.testing.assert_allclose(fit_scaling(one_differs, "standard").scale[0], scaling.scale[0], rtol=1e-3)
    np.testing.assert_array_equal(fit_scaling(rows[:10], method, 1_000).scale[0], scaling.scale[0])


def test_robust_scaling_falls_back_to_the_standard_deviation_where_most_values_are_equal():
    rows = np.zeros((100, 2))
    rows[:10, 0] = 5.0
    rows[:, 1] = np.arange(100)
    scaling = fit_scaling(rows, "robust")
    assert scaling.center[0] == 0.0
    np.testing.assert_allclose(scaling.scale[0], 5 * np.sqrt(0.1 * 0.9), rtol=1e-12)
    np.testing.assert_allclose(scaling.scale[1], stats.iqr(rows[:, 1]) / 1.3489795003921634, rtol=1e-12)


def test_no_scaling_changes_nothing():
    rows = _rows()
    scaled = fit_scaling(rows, None).apply(rows)
    np.testing.assert_array_equal(scaled, rows)


@pytest.mark.parametrize("method", ["standard", "robust", None])
def test_fitting_and_applying_leave_the_rows_alone(method):
    rows = _rows()
    before = rows.copy()
    fit_scaling(rows, method).apply(rows)[:] = 0.0
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("method", ["standard", "robust"])
def test_scaling_does_not_depend_on_the_unit(method):
    rows = _rows()
    np.testing.assert_allclose(
        fit_scaling(rows * 2**20, method).apply(rows * 2**20),
        fit_scaling(rows, method).apply(rows),
        rtol=1e-7,
    )


@pytest.mark.parametrize("method", ["Standard", "minmax", ""])
def test_unknown_scaling_is_named(method):
    with pytest.raises(ValueError, match=rf"scaling must be 'standard', 'robust' or None, got '{method}'\."):
        fit_scaling(_rows(), method)


@pytest.mark.parametrize("method", ["standard", "robust"])
@pytest.mark.parametrize(
    "column",
    [[1e200, 2e200, 3e200, 4e200], [1.7e308, 1.7e308, 1.7e308, 0.0], [1.7e308, -1.7e308, 1.7e308, -1.7e308]],
    ids=["1e200 and more", "sum overflows", "range overflows"],
)
def test_values_too_large_to_scale_are_named(method, column):
    rows = np.column_stack([np.arange(4.0), column])
    with pytest.raises(
        ValueError, match=r"Column 1 holds values too large to scale \(up to .*\): their squares"
    ):
        fit_scaling(rows, method)


@pytest.mark.parametrize("method", ["standard", "robust"])
@pytest.mark.parametrize(
    "column",
    [[0.0, 0.0, 0.0, 1e200], [1e200, -1e200, 1e200, -1e200], [1e155, -1e155, 1.0, 2.0]],
    ids=["one huge value", "plus and minus", "barely too large"],
)
def test_a_column_whose_squares_overflow_is_scaled_or_refused_but_not_passed_as_it_is(method, column):
    rows = np.column_stack([np.arange(4.0), column])
    try:
        scaled = fit_scaling(rows, method).apply(rows)
    except ValueError:
        return
    assert np.abs(scaled[:, 1]).max() < 100


# ------------------------------------------------------------------------------------ columns alike in spread


def test_columns_are_alike_up_to_a_factor_of_four():
    rows = np.array([[-1.0, -1.0], [1.0, 1.0]])
    assert alike_in_spread(rows)
    for factor in (4.0, 0.25):
        assert alike_in_spread(rows * [1.0, factor])
    for factor in (4.001, 0.2499, 1e200):
        assert not alike_in_spread(rows * [1.0, factor])


def test_neither_unit_nor_offset_makes_columns_alike():
    rows = np.random.default_rng(9).normal(size=(50, 3)) * [1.0, 2.0, 3.0]
    for unit in (1e-150, 1.0, 1e100):
        assert alike_in_spread(unit * rows)
        assert not alike_in_spread(unit * rows * [1.0, 1.0, 3.0])
    assert alike_in_spread(rows + np.array([0.0, 1e6, -1e6]))


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9])
def test_columns_that_do_not_vary_have_no_say(value):
    # The mean of so many times 0.1 is not 0.1: its standard deviation is rounding.
    rows = np.random.default_rng(10).normal(size=(5_000, 2))
    constant = np.full((5_000, 1), value)
    assert value != 0.1 or constant.std() > 0
    assert alike_in_spread(np.hstack([rows, constant]))
    assert not alike_in_spread(np.hstack([rows * [1.0, 100.0], constant]))
    assert alike_in_spread(constant)


def test_a_column_that_varies_little_beside_its_mean_has_a_say():
    # Time in nanoseconds, within a few milliseconds.
    rows = np.random.default_rng(11).normal(size=(2_000, 2)) * [1.0, 1e6] + [0.0, 1.7e18]
    assert not alike_in_spread(rows)
