"""Made-up rows, nominal and not, each case about one thing that a detector can be blind to."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from sklearn.datasets import make_moons

from rankad._base.arrays import Floats, Ints

__all__ = ["CASES", "Case", "breaks"]


class Case(NamedTuple):
    """One case.

    Attributes
    ----------
    name : str
    what : str
        Of what rows are made, and what makes others anomalies.
    nominal, anomalous : callable
        A generator and a number of rows to as many rows.
    """

    name: str
    what: str
    nominal: Callable[[Generator, int], Floats]
    anomalous: Callable[[Generator, int], Floats]


def _axes(n_rows: int, n_columns: int) -> Floats:
    """Return orthogonal rows of length one, always the same."""
    square = np.random.default_rng(7).normal(size=(n_columns, n_columns))
    return np.asarray(np.linalg.qr(square)[0][:n_rows])


def _directions(rng: Generator, n: int, d: int) -> Floats:
    """Draw rows of length one."""
    rows = rng.normal(size=(n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _signs(rng: Generator, n: int) -> Floats:
    return rng.choice([-1.0, 1.0], size=n)


# -------------------------------------------------------------------------------------- planes and relations


def _plane(rng: Generator, n: int) -> Floats:
    return np.asarray(rng.normal(size=(n, 5)) @ _axes(5, 10) + rng.normal(0, 0.1, size=(n, 10)))


def _off_plane(rng: Generator, n: int) -> Floats:
    return np.asarray(_plane(rng, n) + 0.7 * _directions(rng, n, 5) @ _axes(10, 10)[5:])


def _correlated(rng: Generator, n: int) -> Floats:
    rows = rng.normal(size=(n, 6))
    rows[:, 1] = 0.95 * rows[:, 0] + np.sqrt(1 - 0.95**2) * rows[:, 1]
    return rows


def _decorrelated(rng: Generator, n: int) -> Floats:
    return rng.normal(size=(n, 6))


def _power(rng: Generator, n: int) -> Floats:
    """Draw volts, amperes and watts, with three columns of no matter."""
    volts, amperes = rng.normal(230, 10, size=n), rng.uniform(1, 16, size=n)
    watts = volts * amperes * rng.normal(1, 0.02, size=n)
    return np.column_stack([volts, amperes, watts, rng.normal(20, 5, size=(n, 3))])


def _wrong_power(rng: Generator, n: int) -> Floats:
    rows = _power(rng, n)
    rows[:, 2] *= 1 + 0.25 * _signs(rng, n)
    return rows


def _factors(rng: Generator, n: int) -> Floats:
    return np.asarray(rng.normal(size=(n, 5)) @ _LOADINGS + rng.normal(0, 0.5, size=(n, 100)))


def _broken_factors(rng: Generator, n: int) -> Floats:
    """Draw rows of which ten columns follow factors of their own."""
    rows, others = _factors(rng, n), _factors(rng, n)
    for row, other in zip(rows, others, strict=True):
        columns = rng.permutation(100)[:10]
        row[columns] = other[columns]
    return rows


_LOADINGS = np.random.default_rng(8).normal(size=(5, 100))

# ------------------------------------------------------------------------------------------------- densities


def _two_densities(d: int, dense: float, away: float) -> Callable[[Generator, int], Floats]:
    def draw(rng: Generator, n: int) -> Floats:
        rows = rng.normal(size=(n, d))
        rows[: n // 2] *= dense
        rows[n // 2 :, 0] += away
        return rows

    return draw


def _about_the_dense(d: int, low: float, high: float) -> Callable[[Generator, int], Floats]:
    return lambda rng, n: _directions(rng, n, d) * rng.uniform(low, high, size=(n, 1))


def _tight(rng: Generator, n: int) -> Floats:
    rows = rng.normal(0, 0.01, size=(n, 3))
    wide = rng.random(n) < 0.03
    rows[wide] = rng.normal(size=(int(wide.sum()), 3))
    return rows


def _rare_mode(rng: Generator, n: int) -> Floats:
    rows = rng.normal(size=(n, 4))
    rows[rng.random(n) < 0.02] += 20.0
    return rows


def _ring(rng: Generator, n: int) -> Floats:
    return _directions(rng, n, 2) * rng.normal(1, 0.05, size=(n, 1))


def _moons(rng: Generator, n: int) -> Floats:
    return np.asarray(make_moons(n, noise=0.1, random_state=int(rng.integers(2**31)))[0])


def _between_moons(rng: Generator, n: int) -> Floats:
    """Draw rows uniform in a box, but for those at a moon."""
    angles = np.linspace(0, np.pi, 200)
    upper = np.column_stack([np.cos(angles), np.sin(angles)])
    curve = np.concatenate([upper, [1.0, 0.5] - upper])
    box = rng.uniform([-1.5, -1.0], [2.5, 1.5], size=(20 * n, 2))
    gaps = np.linalg.norm(box[:, None] - curve, axis=2).min(axis=1)
    return np.asarray(box[gaps > 0.3][:n])


def _helix(rng: Generator, n: int) -> Floats:
    turn = rng.uniform(0, 6 * np.pi, size=n)
    return np.asarray(
        np.column_stack([np.cos(turn), np.sin(turn), turn / 6]) + rng.normal(0, 0.12, size=(n, 3))
    )


def _between_turns(rng: Generator, n: int) -> Floats:
    rows = _helix(rng, n)
    rows[:, 2] += np.pi / 6
    return rows


def _noisier(rng: Generator, n: int) -> Floats:
    """Draw a curve whose noise grows from 0.05 to 1."""
    x = rng.uniform(0, 10, size=n)
    return np.column_stack([x, 3 * np.sin(x) + (0.05 + 0.095 * x) * rng.normal(size=n)])


def _off_where_quiet(rng: Generator, n: int) -> Floats:
    x = rng.uniform(0, 4, size=n)
    return np.column_stack([x, 3 * np.sin(x) + 6 * (0.05 + 0.095 * x) * _signs(rng, n)])


# ------------------------------------------------------------------------------------- columns of many kinds


def _rare_huge(rng: Generator, n: int) -> Floats:
    rare = rng.random(n) < 0.01
    return np.column_stack([rng.normal(size=(n, 3)), np.where(rare, 1e6 * rng.lognormal(size=n), 0.0)])


def _shifted_beside_huge(rng: Generator, n: int) -> Floats:
    return np.asarray(_rare_huge(rng, n) + np.column_stack([5 * _directions(rng, n, 3), np.zeros(n)]))


def _heavy(rng: Generator, n: int) -> Floats:
    return rng.standard_t(2, size=(n, 5))


def _all_off(rng: Generator, n: int) -> Floats:
    """Draw rows of which every column is off a little, and none much."""
    return rng.uniform(2, 4, size=(n, 5)) * _signs(rng, 5 * n).reshape(n, 5)


def _counts(rng: Generator, n: int) -> Floats:
    busy = rng.lognormal(0, 0.5, size=(n, 1))
    return np.asarray(rng.poisson(busy * [0.3, 1.0, 3.0, 8.0, 15.0, 30.0]), dtype=np.float64)


def _other_counts(rng: Generator, n: int) -> Floats:
    """Draw counts whose third and fifth do not go with the others."""
    rows, others = _counts(rng, n), _counts(rng, n)
    rows[:, [2, 4]] = 3 * others[:, [2, 4]]
    return rows


def _load(rng: Generator, n: int) -> Floats:
    hour, weekend = rng.uniform(0, 24, size=n), (rng.random(n) < 2 / 7).astype(np.float64)
    day = np.exp(-(((hour - 13) / 4) ** 2))
    load = 20 + 60 * day * (1 - 0.6 * weekend) + rng.normal(0, 3, size=n)
    angle = 2 * np.pi * hour / 24
    return np.column_stack([np.sin(angle), np.cos(angle), weekend, load, 5 + 0.2 * load + rng.normal(size=n)])


def _load_of_another_hour(rng: Generator, n: int) -> Floats:
    rows = _load(rng, n)
    # Less by day, and more by night.
    away = 15.0 * np.where(rows[:, 3] > 50, -1.0, 1.0)
    rows[:, 3] += away
    rows[:, 4] += 0.2 * away
    return rows


def _amounts(rng: Generator, n: int) -> Floats:
    return rng.lognormal([0.0, 3.0, 6.0, 2.0], [0.5, 1.0, 0.5, 1.0], size=(n, 4))


def _sixfold(rng: Generator, n: int) -> Floats:
    rows = _amounts(rng, n)
    rows[np.arange(n), 2 * rng.integers(2, size=n)] *= 6.0
    return rows


def _categories(rng: Generator, n: int) -> Floats:
    """Draw two categories as columns of 0 and 1, and two numbers.

    The first category decides the second, but for one row in fifty.
    """
    first = rng.choice(5, size=n, p=[0.4, 0.3, 0.2, 0.07, 0.03])
    return _encoded(rng, first, np.where(rng.random(n) < 0.02, rng.integers(4, size=n), first % 4))


def _rare_pairs(rng: Generator, n: int) -> Floats:
    first = rng.integers(5, size=n)
    return _encoded(rng, first, (first % 4 + rng.integers(1, 4, size=n)) % 4)


def _encoded(rng: Generator, first: Ints, second: Ints) -> Floats:
    numbers = rng.normal(size=(len(first), 2))
    return np.column_stack([np.eye(5)[first], np.eye(4)[second], numbers])


def _many_idle(rng: Generator, n: int) -> Floats:
    return rng.normal(size=(n, 30))


def _few_of_many(rng: Generator, n: int) -> Floats:
    rows = rng.normal(size=(n, 30))
    rows[:, :3] += 3 * _signs(rng, 3 * n).reshape(n, 3)
    return rows


CASES = (
    Case("off a plane, 10-d", "5-d plane, noise 0.1; moved off it by 0.7", _plane, _off_plane),
    Case(
        "denser and sparser clusters, 2-d",
        "deviations 0.05 and 1; 6 to 10 deviations from the middle of the denser one",
        _two_densities(2, 0.05, 5.0),
        _about_the_dense(2, 0.3, 0.5),
    ),
    Case(
        "denser and sparser clusters, 10-d",
        "deviations 0.2 and 1; twice as far from the middle of the denser one as its own rows",
        _two_densities(10, 0.2, 6.0),
        _about_the_dense(10, 1.1, 1.6),
    ),
    Case(
        "a tight cluster with 97 % of rows",
        "3-d, deviation 0.01, beside 3 % of deviation 1; 5 to 30 small deviations off",
        _tight,
        _about_the_dense(3, 0.05, 0.3),
    ),
    Case("two columns decorrelated", "correlation 0.95 among six columns; none", _correlated, _decorrelated),
    Case(
        "beside a rare huge column",
        "three Gaussian columns and one that is zero but for 1 %; moved by 5 in the three",
        _rare_huge,
        _shifted_beside_huge,
    ),
    Case(
        "ring",
        "radius 1, noise 0.05; inside, at 0.5 to 0.88",
        _ring,
        lambda rng, n: _directions(rng, n, 2) * rng.uniform(0.5, 0.88, size=(n, 1)),
    ),
    Case("two moons", "noise 0.1; off both by 0.3 or more", _moons, _between_moons),
    Case("helix", "three turns, noise 0.12; between two turns", _helix, _between_turns),
    Case(
        "noise that grows",
        "along a curve; 6 local deviations off where it is quiet",
        _noisier,
        _off_where_quiet,
    ),
    Case("heavy tails", "five columns, Student's t with 2 degrees; all of them 2 to 4 off", _heavy, _all_off),
    Case(
        "counts",
        "six Poisson counts that are busy together; two are not, and threefold",
        _counts,
        _other_counts,
    ),
    Case(
        "hour and load",
        "load by hour of the day and weekend; as at another hour",
        _load,
        _load_of_another_hour,
    ),
    Case("amounts", "four log-normal columns; one of two is sixfold", _amounts, _sixfold),
    Case(
        "pairs of categories",
        "nine columns of 0 and 1, two numbers; pairs that hardly any row has",
        _categories,
        _rare_pairs,
    ),
    Case("volts, amperes, watts", "a product, noise 2 %; watts off by 25 %", _power, _wrong_power),
    Case(
        "a rare mode",
        "2 % of rows far away in all four columns; half-way there",
        _rare_mode,
        lambda rng, n: rng.normal(10, 1, size=(n, 4)),
    ),
    Case("three columns of thirty", "Gaussian; three moved by 3", _many_idle, _few_of_many),
    Case(
        "five factors in 100 columns",
        "noise 0.5; ten columns of another row",
        _factors,
        _broken_factors,
    ),
)


def breaks(rng: Generator, n: int, spread: float, moved: float = 0.0) -> Floats:
    """Draw 20 columns of which four obey ``x4 = x1 + x2 + x3`` with noise 1; the others are noise.

    Parameters
    ----------
    rng : Generator
    n : int
    spread : float
        The standard deviation of x1, x2 and x3.
    moved : float
        By which one of the four is moved, up or down.
    """
    rows = rng.normal(size=(n, 20))
    rows[:, :3] *= spread
    rows[:, 3] += rows[:, :3].sum(axis=1)
    rows[np.arange(n), rng.integers(4, size=n)] += moved * _signs(rng, n)
    return rows
