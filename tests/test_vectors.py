import math

import numpy as np
import pytest
from numba import types
from scipy.optimize import linprog

from rankad._loops.kernel import UNIT
from rankad._loops.vectors import POLYNOMIAL, in_groups, lanes

# Degree, and how far off it may be.
KINDS = [(types.float32, np.float32, 5, 1e-7), (types.float64, np.float64, 10, 4e-16)]

# Not everywhere are there more digits than in a float64.
extended = pytest.mark.skipif(np.finfo(np.longdouble).eps > 2e-19, reason="no extended precision here")


def _errors(terms, number):
    """Return ``p(f) / 2^f - 1`` on a grid of f, of the terms as the compiler rounds them."""
    f = np.linspace(np.longdouble(-0.5), np.longdouble(0.5), 20_001)
    p = np.zeros_like(f)
    for term in reversed(terms):
        p = p * f + np.longdouble(number(term))
    return f, p / np.exp2(f) - 1


@extended
@pytest.mark.parametrize(("kind", "number", "degree", "within"), KINDS)
def test_the_polynomial_is_the_power_of_two_to_within_what_is_said(kind, number, degree, within):
    terms = POLYNOMIAL[kind]
    assert len(terms) == degree + 1
    f, errors = _errors(terms, number)
    assert np.abs(errors).max() < within
    # Exactly one at zero: a row on a landmark has a kernel value of one.
    assert terms[0] == 1.0
    assert errors[f == 0] == [0.0]


@extended
@pytest.mark.parametrize(("kind", "number", "degree", "within"), KINDS)
def test_no_polynomial_of_that_degree_is_much_better(kind, number, degree, within):
    """A linear program finds what to add to this one for the least error there can be."""
    f, errors = (array[::20] for array in _errors(POLYNOMIAL[kind], number))
    worst = float(np.abs(errors).max())
    f, errors = f.astype(float), (errors / worst).astype(float)
    # In place of the powers from f on, f times Chebyshev's polynomials: the same, and well conditioned.
    basis = f[:, None] * np.polynomial.chebyshev.chebvander(2 * f, degree - 1) / np.exp2(f)[:, None]
    bound = np.ones((len(f), 1))
    least = linprog(
        np.append(np.zeros(degree), 1.0),
        A_ub=np.block([[basis, -bound], [-basis, -bound]]),
        b_ub=np.concatenate([-errors, errors]),
        bounds=[(None, None)] * degree + [(0, None)],
    )
    assert least.success
    # In proportion to the error of this one.
    assert least.fun > 1 / 5
    # No more than rounding does anyway: half a unit in the last digit, once or a few times.
    assert worst < (2 if number is np.float32 else 3) * np.finfo(number).eps / 2


@pytest.mark.parametrize(("number", "expected"), [(np.float32, 16), (np.float64, 8)])
def test_lanes_are_the_numbers_of_sixty_four_bytes(number, expected):
    assert lanes(number) == lanes(np.dtype(number)) == lanes(np.dtype(number).name) == expected


def test_the_unit_makes_a_power_of_two_of_an_exponential():
    for t in (0.0, 0.3, 1.0, 7.0):
        assert 2.0 ** -((t / UNIT) ** 2) == pytest.approx(math.exp(-(t**2)), rel=1e-14)


@pytest.mark.parametrize("number", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 10])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100])
def test_points_in_groups_are_all_there_column_by_column_and_aligned(n, d, number):
    points = np.random.default_rng([n, d]).normal(size=(n, d))
    groups, width = in_groups(points, number), lanes(number)
    # Taken two at a time.
    assert groups.shape == (2 * -(-n // (2 * width)), d, width)
    assert groups.dtype == number
    assert groups.flags.c_contiguous
    if n:
        assert groups.ctypes.data % 64 == 0
    for place in range(groups.shape[0] * width):
        expected = points[place].astype(number) if place < n else np.full(d, np.inf)
        np.testing.assert_array_equal(groups[place // width, :, place % width], expected)
