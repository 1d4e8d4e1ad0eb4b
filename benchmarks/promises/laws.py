"""Laws of nominal rows: well-behaved ones, and ones made up to break a promise about false alarms."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Floats

__all__ = ["LAWS", "Law"]

Draw = Callable[[int, np.random.Generator], Floats]


class Law(NamedTuple):
    """A law of nominal rows.

    Attributes
    ----------
    name : str
    draw : callable
        ``draw(n, rng)`` returns n independent rows.
    spoil : callable, optional
        ``spoil(rows, rng)`` returns training rows with something wrong with them. Fresh rows stay as drawn.
    n_anomalies : int
        How many of the training rows are not of the law, and score below all that are.
    least : int
        With fewer training rows than this, fitting is refused.
    used : float
        The share of training rows that are no copies.
    """

    name: str
    draw: Draw
    spoil: Callable[[Floats, np.random.Generator], Floats] | None = None
    n_anomalies: int = 0
    least: int = 0
    used: float = 1.0

    def training(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n training rows, before anything is done to them."""
        rows = self.draw(n, rng)
        return rows if self.spoil is None else self.spoil(rows, rng)


def _gaussian(d: int) -> Draw:
    return lambda n, rng: rng.normal(size=(n, d))


def _sometimes(draw: Draw, other: Draw, share: float) -> Draw:
    """Rows of one law, or with some probability of another."""

    def mixed(n: int, rng: np.random.Generator) -> Floats:
        return np.where(rng.random((n, 1)) < share, other(n, rng), draw(n, rng))

    return mixed


def _beside(*draws: Draw) -> Draw:
    """Columns of several laws, independent of one another."""
    return lambda n, rng: np.hstack([draw(n, rng) for draw in draws])


def _rare(value: float, share: float, d: int = 1) -> Draw:
    return lambda n, rng: value * (rng.random((n, d)) < share)


def _integers(high: int, d: int) -> Draw:
    return lambda n, rng: rng.integers(0, high, (n, d)).astype(float)


def _one_hot(columns: int, values: int) -> Draw:
    def draw(n: int, rng: np.random.Generator) -> Floats:
        return np.hstack([np.eye(values)[rng.integers(0, values, n)] for _ in range(columns)])

    return draw


def _one_hot_skewed(values: int) -> Draw:
    """One category whose k-th value has a probability of about 1/k, and a Gaussian column."""
    weights = 1 / np.arange(1, values + 1)

    def draw(n: int, rng: np.random.Generator) -> Floats:
        picked = rng.choice(values, n, p=weights / weights.sum())
        return np.hstack([np.eye(values)[picked], rng.normal(size=(n, 1))])

    return draw


def _clusters(centers: int, d: int, width: float) -> Draw:
    places = np.random.default_rng(7).normal(scale=10, size=(centers, d))
    return lambda n, rng: places[rng.integers(0, centers, n)] + rng.normal(scale=width, size=(n, d))


def _two_densities(d: int) -> Draw:
    def draw(n: int, rng: np.random.Generator) -> Floats:
        tight = rng.random((n, 1)) < 0.5
        return np.where(tight, rng.normal(scale=0.01, size=(n, d)), 5 + rng.normal(size=(n, d)))

    return draw


def _plane(d: int, noise: float) -> Draw:
    mix = np.random.default_rng(3).normal(size=(2, d))
    return lambda n, rng: rng.normal(size=(n, 2)) @ mix + noise * rng.normal(size=(n, d))


def _scales(d: int, low: float, high: float) -> Draw:
    return lambda n, rng: rng.normal(size=(n, d)) * np.geomspace(low, high, d)


def _ring(n: int, rng: np.random.Generator) -> Floats:
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = 1 + 0.01 * rng.normal(size=n)
    return np.column_stack([np.cos(angle) * radius, np.sin(angle) * radius])


def _cantor(n: int, rng: np.random.Generator) -> Floats:
    """A law without a density and without atoms: digits 0 and 2 to the base of three."""
    return 2 * rng.integers(0, 2, (n, 2, 30)) @ (1 / 3.0 ** np.arange(1, 31))


def _levels_of_scale(n: int, rng: np.random.Generator) -> Floats:
    """Gaussian rows whose spread is itself random, over twelve decades."""
    return rng.normal(size=(n, 2)) * 10 ** rng.uniform(-6, 6, (n, 1))


def _spike_at_the_quartile(n: int, rng: np.random.Generator) -> Floats:
    """Three quarters zero: whether a sample's interquartile range is zero is a toss-up."""
    return np.hstack([rng.lognormal(size=(n, 1)) * (rng.random((n, 1)) < 0.25), rng.normal(size=(n, 2))])


def _rounded(digits: int, d: int) -> Draw:
    return lambda n, rng: np.round(rng.normal(size=(n, d)), digits)


def _counts(d: int) -> Draw:
    return lambda n, rng: rng.poisson(1.0, (n, d)).astype(float)


def _zeros_mostly(n: int, rng: np.random.Generator) -> Floats:
    return np.where(rng.random((n, 1)) < 0.99, 0.0, rng.normal(size=(n, 3)))


def _clusters_of_all_sizes(centers: int, d: int) -> Draw:
    """Clusters of which the k-th has a probability of about 1/k and a width of its own."""
    places = np.random.default_rng(11).normal(scale=5, size=(centers, d))
    widths = np.geomspace(1e-3, 1, centers)[:, None]
    weights = 1 / np.arange(1, centers + 1)

    def draw(n: int, rng: np.random.Generator) -> Floats:
        picked = rng.choice(centers, n, p=weights / weights.sum())
        return places[picked] + widths[picked] * rng.normal(size=(n, d))

    return draw


def _calendar(n: int, rng: np.random.Generator) -> Floats:
    """Hour, weekday and day of the month, as integers, beside an amount with two decimals."""
    hour = np.clip(np.round(rng.normal(13, 4, n)), 0, 23)
    amount = np.round(rng.lognormal(3, 1, n), 2)
    return np.column_stack([hour, rng.integers(0, 7, n), rng.integers(1, 32, n), amount])


def _linked(n: int, rng: np.random.Generator) -> Floats:
    """A column, its square, its sign, and itself with the last digits changed."""
    x = rng.normal(size=n)
    return np.column_stack([x, x**2, np.sign(x), x * (1 + 1e-9 * rng.normal(size=n))])


def _staircase(n: int, rng: np.random.Generator) -> Floats:
    """Values on a grid of 50 steps with a thousandth of a step of noise, and a count over nine decades."""
    steps = rng.integers(0, 50, (n, 2)) + 1e-3 * rng.normal(size=(n, 2))
    return np.column_stack([steps, np.floor(10 ** rng.uniform(0, 9, n))])


def _switching(n: int, rng: np.random.Generator) -> Floats:
    """Two machines: one with four columns at work, the other with all but one at rest."""
    at_rest = rng.random((n, 1)) < 0.4
    rows = rng.normal(size=(n, 4)) @ np.triu(np.ones((4, 4)))
    return np.where(at_rest & (np.arange(4) > 0), 0.0, rows)


def _huge_cell(value: float) -> Callable[[Floats, np.random.Generator], Floats]:
    def spoil(rows: Floats, rng: np.random.Generator) -> Floats:
        spoiled = rows.copy()
        spoiled[rng.integers(len(rows)), 0] = value
        return spoiled

    return spoil


def _repeated(share: float, times: int = 2, noise: float = 0.0) -> Callable[..., Floats]:
    """Training rows of which a share comes several times, in random order; still as many in all."""

    def spoil(rows: Floats, rng: np.random.Generator) -> Floats:
        n = len(rows)
        n_distinct = round(n / (1 + share * (times - 1)))
        again = np.arange(n - n_distinct) // (times - 1)
        repeated = np.vstack([rows[:n_distinct], rows[again % n_distinct]])
        repeated *= 1 + noise * rng.normal(size=repeated.shape)
        return rng.permutation(repeated)

    return spoil


LAWS = (
    # ------------------------------------------------------------------ well-behaved
    Law("Gaussian, 1 column", _gaussian(1)),
    Law("Gaussian, 5 columns", _gaussian(5)),
    Law("Gaussian, 50 columns", _gaussian(50)),
    Law("uniform, 2 columns", lambda n, rng: rng.uniform(size=(n, 2))),
    Law("Student t of 3, 4 columns", lambda n, rng: rng.standard_t(3, (n, 4))),
    Law("scales from 1e-8 to 1e8", _scales(5, 1e-8, 1e8)),
    Law("ring", _ring),
    Law("plane in 10 columns", _plane(10, 0.01)),
    Law("30 tiny clusters", _clusters(30, 3, 1e-3)),
    Law("dense and sparse cluster", _two_densities(3)),
    Law("a constant column", _beside(_gaussian(2), lambda n, rng: np.full((n, 1), 7.0))),
    # ------------------------------------------------------------------ heavy tails, many scales
    Law("Cauchy, 1 column", lambda n, rng: rng.standard_cauchy((n, 1))),
    Law("Cauchy, 5 columns", lambda n, rng: rng.standard_cauchy((n, 5))),
    Law("Cauchy, 20 columns", lambda n, rng: rng.standard_cauchy((n, 20))),
    Law("lognormal of 3", lambda n, rng: rng.lognormal(0, 3, (n, 3))),
    Law("Pareto of 0.3", lambda n, rng: rng.pareto(0.3, (n, 2))),
    Law("spread over twelve decades", _levels_of_scale),
    Law("reciprocals of Gaussians", lambda n, rng: 1 / rng.normal(size=(n, 3))),
    # ------------------------------------------------------------------ rare and huge
    Law("3 Gaussian, one rarely 1e6", _beside(_gaussian(3), _rare(1e6, 0.02))),
    Law("3 Gaussian, one rarely 1e6 (0.5 %)", _beside(_gaussian(3), _rare(1e6, 0.005))),
    Law("30 columns, each rarely 1e6", _rare(1e6, 0.002, 30)),
    Law(
        "30 Gaussian, each rarely moved by 1e6",
        lambda n, rng: _gaussian(30)(n, rng) + _rare(1e6, 0.002, 30)(n, rng),
    ),
    Law(
        "idle sensor",
        _sometimes(
            lambda n, rng: 1e-6 * rng.normal(size=(n, 2)), lambda n, rng: rng.lognormal(size=(n, 2)), 0.03
        ),
    ),
    Law(
        "idle sensor, 12 % awake",
        _sometimes(
            lambda n, rng: 1e-6 * rng.normal(size=(n, 2)), lambda n, rng: rng.lognormal(size=(n, 2)), 0.12
        ),
    ),
    Law(
        "volume, 5 % not zero",
        _beside(_gaussian(2), lambda n, rng: 10 ** rng.uniform(0, 6, (n, 1)) * (rng.random((n, 1)) < 0.05)),
    ),
    Law("99 % zeros", _zeros_mostly),
    Law("zero-inflated at the quartile", _spike_at_the_quartile),
    # ------------------------------------------------------------------ discrete
    Law("6 bits", _integers(2, 6)),
    Law("12 bits", _integers(2, 12)),
    Law("6 rare bits", lambda n, rng: (rng.random((n, 6)) < 0.1).astype(float)),
    Law("digits, 2 columns", _integers(10, 2)),
    Law("digits, 4 columns", _integers(10, 4)),
    Law("counts, 3 columns", _counts(3)),
    Law("one-hot, 3 x 12", _one_hot(3, 12)),
    Law("one-hot, 2 x 5", _one_hot(2, 5)),
    Law("one-hot of 40, skewed, beside a Gaussian", _one_hot_skewed(40)),
    Law("geometric integers", lambda n, rng: rng.geometric(0.05, (n, 2)).astype(float)),
    Law("rounded to one decimal, 2 columns", _rounded(1, 2)),
    Law("rounded to one decimal, 5 columns", _rounded(1, 5)),
    Law("Cantor dust", _cantor),
    Law(
        "one of 3,000 rows",
        lambda n, rng: np.random.default_rng(5).normal(size=(3_000, 4))[rng.integers(0, 3_000, n)],
    ),
    # ------------------------------------------------------------------ made up when the calibration was done
    Law("clusters of all sizes and widths", _clusters_of_all_sizes(40, 4)),
    Law("30 clusters of some width", _clusters(30, 3, 0.3)),
    Law("calendar and amount", _calendar),
    Law("linked columns", _linked),
    Law("staircase and count", _staircase),
    Law("machine at rest or at work", _switching),
    Law("Gaussian, 200 columns", _gaussian(200)),
    Law("sparse bits, 300 columns", lambda n, rng: (rng.random((n, 300)) < 0.01).astype(float)),
    Law(
        "sparse bits beside Gaussians",
        _beside(_gaussian(2), lambda n, rng: (rng.random((n, 60)) < 0.01).astype(float)),
    ),
    Law("rows of three scales", lambda n, rng: rng.normal(size=(n, 3)) * rng.choice([1, 1e3, 1e6], (n, 1))),
    Law(
        "a constant that rarely changes",
        _beside(_gaussian(2), lambda n, rng: 101_325 + rng.normal(size=(n, 1)) * (rng.random((n, 1)) < 0.01)),
    ),
    Law("log-uniform over 20 decades", lambda n, rng: 10 ** rng.uniform(-10, 10, (n, 2))),
    # ------------------------------------------------------------------ spoiled training rows
    Law("Gaussian, one cell 1e6", _gaussian(3), _huge_cell(1e6), 1),
    Law("Gaussian, one cell 1e9", _gaussian(3), _huge_cell(1e9), 1),
    Law("Gaussian, 1 column, one cell 1e9", _gaussian(1), _huge_cell(1e9), 1),
    Law("Gaussian, one cell 1e100", _gaussian(3), _huge_cell(1e100), 1),
    Law("every row twice", _gaussian(3), _repeated(1.0), used=1 / 2),
    Law("every row three times", _gaussian(3), _repeated(1.0, 3), least=24, used=1 / 3),
    Law("30 % of rows twice", _gaussian(3), _repeated(0.3), used=1 / 1.3),
    Law("every row twice, last digits differ", _gaussian(3), _repeated(1.0, 2, 1e-9), used=1 / 2),
    Law("every row twice, 1 column", lambda n, rng: rng.lognormal(size=(n, 1)), _repeated(1.0), used=1 / 2),
    Law("bits mostly set, 60 columns", lambda n, rng: (rng.random((n, 60)) < 0.99).astype(float)),
)
