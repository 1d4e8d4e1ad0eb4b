import pickle

import numpy as np
import pytest
from scipy.stats import kstest, multivariate_normal
from sklearn.metrics import roc_auc_score

from rankad.experiments.synthetic import (
    DEVIATIONS,
    PRINTED,
    TOY,
    UNIFORM_BOX,
    Mixture,
    grid,
    symmetric_difference,
)

MIXTURES = pytest.mark.parametrize("mixture", [PRINTED, DEVIATIONS, TOY], ids=lambda mixture: mixture.name)

# One Gaussian in two columns, of which everything is known: P(f(X) <= f(x)) = f(x) / max f.
ELLIPSE = Mixture("ellipse", (1.0,), ((3.0, -2.0),), ((4.0, 0.25),))
ELLIPSE_MAX = 1 / (2 * np.pi * np.sqrt(4.0 * 0.25))


# --------------------------------------------------------------------------------- the densities of the paper


def test_two_readings_of_the_printed_covariances():
    assert PRINTED.weights == DEVIATIONS.weights == (0.2, 0.8)
    assert PRINTED.means == DEVIATIONS.means == ((5.0, 0.0), (-5.0, 0.0))
    assert PRINTED.variances == ((1.0, 9.0), (9.0, 1.0))
    np.testing.assert_array_equal(np.sqrt(DEVIATIONS.variances), PRINTED.variances)


def test_toy_example_of_figure_1():
    assert TOY.weights == (0.5, 0.5)
    assert TOY.means == ((4.0, 1.0), (4.0, -1.0))
    assert TOY.variances == ((0.5, 0.5), (0.5, 0.5))


@MIXTURES
def test_density_is_that_of_scipy(mixture):
    rows = np.random.default_rng(0).uniform(-12, 12, size=(500, 2))
    expected = sum(
        weight * multivariate_normal(mean, np.diag(variance)).pdf(rows)
        for weight, mean, variance in zip(mixture.weights, mixture.means, mixture.variances, strict=True)
    )
    np.testing.assert_allclose(mixture.density(rows), expected, rtol=1e-12)


def test_density_in_three_columns():
    mixture = Mixture(
        "solid", (0.3, 0.7), ((0.0, 1.0, 2.0), (1.0, 1.0, 1.0)), ((1.0, 2.0, 3.0), (0.5, 1.0, 2.0))
    )
    rows = np.random.default_rng(1).normal(size=(50, 3))
    expected = 0.3 * multivariate_normal([0, 1, 2], np.diag([1, 2, 3])).pdf(rows)
    expected += 0.7 * multivariate_normal([1, 1, 1], np.diag([0.5, 1, 2])).pdf(rows)
    np.testing.assert_allclose(mixture.density(rows), expected, rtol=1e-12)
    assert mixture.sample(7, np.random.default_rng(0)).shape == (7, 3)


@MIXTURES
def test_sample_has_the_moments_of_the_mixture(mixture):
    n = 50_000
    rows = mixture.sample(n, np.random.default_rng(2))
    weights, means, variances = map(np.array, (mixture.weights, mixture.means, mixture.variances))
    mean = weights @ means
    second = weights @ (variances + means**2)
    variance = second - mean**2
    assert rows.shape == (n, 2)
    # Within 4.5 standard errors; that of the second moment from the rows themselves.
    assert (np.abs(rows.mean(axis=0) - mean) < 4.5 * np.sqrt(variance / n)).all()
    assert (np.abs((rows**2).mean(axis=0) - second) < 4.5 * (rows**2).std(axis=0) / np.sqrt(n)).all()


def test_components_come_in_random_order():
    right = PRINTED.sample(2_000, np.random.default_rng(3))[:, 0] > 2.5
    # 0.2 of the component on the right, and next to nothing of the other one.
    assert abs(right.mean() - 0.2) < 4.5 * np.sqrt(0.2 * 0.8 / 2_000) + 0.01
    assert abs(right[:1_000].mean() - right[1_000:].mean()) < 4.5 * np.sqrt(2 * 0.2 * 0.8 / 1_000)


def test_sample_comes_from_the_generator():
    first = PRINTED.sample(10, np.random.default_rng(4))
    np.testing.assert_array_equal(PRINTED.sample(10, np.random.default_rng(4)), first)
    assert (PRINTED.sample(10, np.random.default_rng(5)) != first).all()


# --------------------------------------------------------------------------------------- p-values and levels


def test_p_values_and_levels_of_one_gaussian_are_known():
    rows = ELLIPSE.sample(1_000, np.random.default_rng(6))
    expected = ELLIPSE.density(rows) / ELLIPSE_MAX
    # 4.5 standard errors of a share of 10^6 draws.
    np.testing.assert_allclose(ELLIPSE.p_values(rows), expected, atol=4.5 * 0.5 / 1_000)
    for alpha in (0.05, 0.1, 0.25, 0.5, 0.75):
        error = 4.5 * np.sqrt(alpha * (1 - alpha)) / 1_000
        assert ELLIPSE.level(alpha) / ELLIPSE_MAX == pytest.approx(alpha, abs=error)


@MIXTURES
def test_p_values_of_fresh_rows_are_uniform(mixture):
    p_values = mixture.p_values(mixture.sample(20_000, np.random.default_rng(7)))
    assert kstest(p_values, "uniform").pvalue > 1e-4


@MIXTURES
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.25, 0.5, 0.75])
def test_mass_below_the_level(mixture, alpha):
    n = 50_000
    rows = mixture.sample(n, np.random.default_rng(8))
    below = mixture.density(rows) < mixture.level(alpha)
    # The level itself comes from 10^6 draws.
    assert abs(below.mean() - alpha) < 4.5 * np.sqrt(alpha * (1 - alpha) * (1 / n + 1e-6))
    # Both come from the same draws, so they tell the same story but for a draw.
    different = below != (mixture.p_values(rows) <= alpha)
    assert different.sum() <= 1


def test_p_values_order_rows_as_the_density_does():
    rows = np.array([[5.0, 0.0], [-5.0, 0.0], [0.0, 0.0], [0.0, 17.0]])
    assert (np.argsort(PRINTED.p_values(rows)) == np.argsort(PRINTED.density(rows))).all()
    assert PRINTED.p_values(rows)[3] == 0.0


def test_draws_are_made_once_and_are_not_carried_along(monkeypatch):
    level = PRINTED.level(0.3)
    monkeypatch.setattr(Mixture, "sample", None)
    again = pickle.loads(pickle.dumps(PRINTED))
    assert again == PRINTED
    assert again.level(0.3) == level
    assert len(pickle.dumps(PRINTED)) < 1_000


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 5, float("nan")])
def test_level_of_no_share(alpha):
    with pytest.raises(ValueError, match=f"alpha={alpha} must lie strictly between 0 and 1; choose"):
        PRINTED.level(alpha)


# ------------------------------------------------------------------------------------------- the Bayes figure


@pytest.mark.parametrize(("mixture", "expected"), [(PRINTED, 0.976), (DEVIATIONS, 0.938)])
def test_bayes_auc_against_the_uniform_box(mixture, expected):
    # The area under the curve is the mean over the box of 1 - p, here by quadrature.
    low, high = UNIFORM_BOX
    centres = low + (high - low) * (np.arange(300) + 0.5) / 300
    box = np.column_stack([axis.ravel() for axis in np.meshgrid(centres, centres)])
    auc = float(1 - mixture.p_values(box).mean())
    assert auc == pytest.approx(expected, abs=0.001)
    # And by drawing both kinds of rows, as the table does; Hanley and McNeil's standard error is below this.
    n = 20_000
    rng = np.random.default_rng(9)
    rows = np.concatenate([mixture.sample(n, rng), rng.uniform(low, high, size=(n, 2))])
    drawn = roc_auc_score(np.repeat([1, 0], n), mixture.density(rows))
    assert drawn == pytest.approx(auc, abs=4.5 * np.sqrt(auc * (1 - auc) / n))


# --------------------------------------------------------------------------------------------------- volumes


@MIXTURES
def test_grid_tiles_a_box_that_holds_the_mass(mixture):
    cells = grid(mixture)
    assert cells.x.shape == cells.y.shape == (400,)
    assert cells.rows.shape == (160_000, 2)
    dx, dy = np.diff(cells.x), np.diff(cells.y)
    np.testing.assert_allclose(dx, dx[0], rtol=1e-9)
    np.testing.assert_allclose(dy, dy[0], rtol=1e-9)
    assert cells.cell_area == pytest.approx(dx[0] * dy[0], rel=1e-9)
    assert mixture.density(cells.rows).sum() * cells.cell_area == pytest.approx(1.0, abs=1e-4)


def test_grid_runs_along_x_first():
    cells = grid(PRINTED, n=3)
    # x from -20 to 10, y from -15 to 15, in cells of 10 by 10.
    np.testing.assert_allclose(cells.x, [-15, -5, 5])
    np.testing.assert_allclose(cells.y, [-10, 0, 10], atol=1e-12)
    assert cells.cell_area == pytest.approx(100.0)
    np.testing.assert_array_equal(cells.rows[:, 0].reshape(3, 3), np.tile(cells.x, (3, 1)))
    np.testing.assert_array_equal(cells.rows[:, 1].reshape(3, 3), np.tile(cells.y[:, None], (1, 3)))


@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_volume_of_the_true_set_of_one_gaussian(alpha):
    cells = grid(ELLIPSE)
    inside = ELLIPSE.density(cells.rows) >= ELLIPSE.level(alpha)
    # An ellipse of radius sqrt(-2 log alpha) in units of the standard deviations.
    expected = np.pi * 2.0 * 0.5 * -2 * np.log(alpha)
    assert inside.sum() * cells.cell_area == pytest.approx(expected, rel=0.01)


def test_symmetric_difference_by_hand():
    true = np.array([True, True, True, True, False, False])
    assert symmetric_difference(true, true) == 0.0
    assert symmetric_difference(true, np.zeros(6, dtype=bool)) == 1.0
    assert symmetric_difference(true, ~true) == 1.5
    # One of four missing and one too many.
    assert symmetric_difference(true, np.array([True, True, True, False, True, False])) == 0.5
    # Relative to the true set, not to the one found.
    assert symmetric_difference(~true, np.ones(6, dtype=bool)) == 2.0
    assert symmetric_difference(true.reshape(2, 3), ~true.reshape(2, 3)) == 1.5


def test_symmetric_difference_of_discs():
    # Radii in the ratio 1 to 1.2: the ring between them is 0.44 of the inner disc.
    cells = grid(ELLIPSE)
    radius = np.sqrt(((cells.rows - [3.0, -2.0]) ** 2 / [4.0, 0.25]).sum(axis=1))
    assert symmetric_difference(radius <= 2.0, radius <= 2.4) == pytest.approx(0.44, abs=0.01)


def test_symmetric_difference_refuses_sets_it_cannot_compare():
    with pytest.raises(
        ValueError, match=r"found_inside has the shape \(1,\).*evaluate both sets on the same"
    ):
        symmetric_difference(np.array([True, False]), np.array([True]))
    with pytest.raises(ValueError, match=r"true_inside has no cell.*refine the grid"):
        symmetric_difference(np.array([False, False]), np.array([True, False]))
