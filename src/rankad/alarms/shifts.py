"""Which columns of a table are not as they are among nominal rows, and in what way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import kolmogorov
from scipy.stats import hypergeom

from rankad._base.arrays import Bools, Floats

# Fewer values than these tell nothing of how a column is.
_FEWEST = 10
# A factor nearer to one than this is no other unit.
_LEAST_FACTOR = 1.5
# So many of the values of a column that goes on must be beyond the nominal ones, and follow one another.
_MOSTLY = 0.95
# Factors and offsets of the one kind of unit that has offsets: Celsius, Fahrenheit, Kelvin.
_TEMPERATURES = ((1.8, 32.0), (1 / 1.8, -32 / 1.8), (1.0, 273.15), (1.0, -273.15))

NumberKind: TypeAlias = Literal["constant", "goes on", "scaled", "moved", "spread", "other"]


class Shift(NamedTuple):
    """How far a column is from what it is among nominal rows.

    `distance`, from 0 to 1, is the largest difference of two distribution functions: of the column's numbers,
    of its indicators, or of the share of strange cells. `p_value` is the probability of such a distance,
    among all columns, if rows are nominal.
    """

    distance: float
    p_value: float
    n_strange: int


class NumberShift(NamedTuple):
    """In what way numbers differ from nominal ones.

    `kind` is one of: "constant"; "goes on" beyond the nominal ones, as ids, counters and clocks do; "scaled",
    that is in another unit, times a factor and, of temperatures, plus an offset; "moved" by an offset alone;
    "spread", about as large, but wider or narrower; "other". Of "scaled" and "moved" numbers,
    ``value = factor * nominal value + offset``; of "spread" ones there is a factor alone.
    """

    kind: NumberKind
    median: float
    nominal_median: float
    factor: float = 1.0
    offset: float = 0.0


def compare_columns(
    nominal: Floats,
    rows: Floats,
    groups: Sequence[Sequence[int]],
    strange: Bools,
    n_alone: int = 0,
    n_fitted: int | None = None,
    trimmed: float = 0.0,
    more: Mapping[int, float] | None = None,
) -> list[Shift]:
    """Compare each column of a table with nominal rows by the statistic of Kolmogorov and Smirnov.

    `rows` are a sample of the table, encoded like the nominal rows; `groups` are the encoded columns of each
    column of the table. `strange` cells, of shape (m, n_groups), are compared by their share alone: with
    `n_alone` of `n_fitted` nominal rows that have a cell which would have been strange to the others.
    `trimmed` is the share of nominal rows left out as far from the others: so much of every distance is
    theirs. `more` says how much more often new rows may have an indicator. P-values are multiplied by the
    number of comparisons (Bonferroni).

    >>> rng = np.random.default_rng(0)
    >>> nominal, rows = rng.normal(size=(500, 2)), rng.normal(size=(300, 2)) + [0.0, 1.0]
    >>> for shift in compare_columns(nominal, rows, [[0], [1]], np.zeros((300, 2), dtype=bool)):
    ...     print(round(shift.distance, 2), shift.p_value < 0.001)
    0.13 False
    0.42 True
    """
    n_fitted = len(nominal) if n_fitted is None else n_fitted
    n_comparisons = nominal.shape[1] + len(groups)
    shifts = []
    for at, columns in enumerate(groups):
        odd = strange[:, at]
        n_strange = int(np.count_nonzero(odd))
        distance, p_value = _share_difference(n_strange, len(rows), n_alone, n_fitted)
        usual = rows[~odd]
        for column in columns:
            gap = largest_difference(nominal[:, column], usual[:, column])
            if more and column in more and len(usual) and usual[:, column].mean() > nominal[:, column].mean():
                gap -= more[column]
            gap = max(gap - trimmed, 0.0)
            # Typical values stand for strange cells, so that there is nothing to compare them by.
            n_both = len(nominal) * len(usual) / (len(nominal) + len(usual)) if len(usual) else 0.0
            p_value = min(p_value, float(kolmogorov(math.sqrt(n_both) * gap)))
            distance = max(distance, gap * len(usual) / max(len(rows), 1))
        shifts.append(Shift(distance, min(1.0, p_value * n_comparisons), n_strange))
    return shifts


def largest_difference(first: Floats, second: Floats) -> float:
    """Return the largest difference of the distribution functions of two samples; 0 where one is empty.

    >>> largest_difference(np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 3.5, 4.0, 5.0]))
    0.5
    """
    if not first.size or not second.size:
        return 0.0
    both = np.concatenate([first, second])
    below = [np.searchsorted(np.sort(part), both, side="right") / part.size for part in (first, second)]
    return float(np.abs(below[0] - below[1]).max())


def is_like(values: Floats, nominal: Floats) -> bool:
    """Tell whether values may well be nominal ones: the difference is small, or chance explains it."""
    if min(values.size, nominal.size) < _FEWEST:
        return False
    n_both = values.size * nominal.size / (values.size + nominal.size)
    # One in a hundred would be farther by chance.
    return largest_difference(values, nominal) <= max(0.06, 1.63 / math.sqrt(n_both))


def describe_numbers(values: Floats, nominal: Floats) -> NumberShift:
    """Say in what way numbers, in the order of their rows, differ from nominal ones; none is missing.

    >>> nominal = np.random.default_rng(0).normal(20.0, 3.0, size=400)
    >>> new = np.random.default_rng(1).normal(20.0, 3.0, size=300)
    >>> shift = describe_numbers(1000 * new, nominal)
    >>> shift.kind, round(shift.factor / 1000, 1), shift.offset
    ('scaled', 1.0, 0.0)
    """
    median, usual = float(np.median(values)), float(np.median(nominal))
    plain = NumberShift("other", median, usual)
    if values.size < _FEWEST:
        return plain
    if (values == values[0]).all() and not (nominal == nominal[0]).all():
        return plain._replace(kind="constant")
    if _goes_on(values, nominal):
        return plain._replace(kind="goes on")
    # Sums and quotients of huge numbers may overflow, and say nothing then.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _affine(values, nominal, plain)


def _affine(values: Floats, nominal: Floats, plain: NumberShift) -> NumberShift:
    median, usual = plain.median, plain.nominal_median
    ratio = median / usual if usual else math.nan
    if _is_factor(ratio) and is_like(values / ratio, nominal):
        return plain._replace(kind="scaled", factor=ratio)
    widths = [float(np.subtract(*np.quantile(part, [0.75, 0.25]))) for part in (values, nominal)]
    factor = widths[0] / widths[1] if widths[1] else math.nan
    for of_unit, offset in _TEMPERATURES:
        if is_like((values - offset) / of_unit, nominal):
            return plain._replace(kind="scaled", factor=of_unit, offset=offset)
    if not math.isfinite(factor) or factor <= 0:
        return plain
    if is_like(values - median + usual, nominal):
        return plain._replace(kind="moved", offset=median - usual)
    offset = median - factor * usual
    if _is_factor(factor) and is_like((values - offset) / factor, nominal):
        if abs(offset) <= 0.1 * widths[0]:
            return plain._replace(kind="scaled", factor=factor)
        if abs(median - usual) <= 0.5 * max(widths):
            return plain._replace(kind="spread", factor=factor)
    return plain


def _is_factor(factor: float) -> bool:
    """Tell whether a factor is one of another unit, or of another sign."""
    far = math.isfinite(factor) and factor != 0
    return far and (factor < 0 or abs(math.log(factor)) >= math.log(_LEAST_FACTOR))


def _goes_on(values: Floats, nominal: Floats) -> bool:
    """Tell whether values differ from one another, and go on where nominal ones end."""
    beyond = np.count_nonzero(values > nominal.max()), np.count_nonzero(values < nominal.min())
    if max(beyond) < _MOSTLY * values.size:
        return False
    steps = np.diff(values)
    follows = max(np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)) >= _MOSTLY * steps.size
    # Names of rows in any order: whole numbers that hardly ever come twice, neither here nor there.
    unique = all(
        np.unique(part).size >= _MOSTLY * part.size and bool((part == np.floor(part)).all())
        for part in (values, nominal)
    )
    return bool(follows or unique)


def _share_difference(n_strange: int, n: int, n_alone: int, n_fitted: int) -> tuple[float, float]:
    """Return how much more often cells are strange than among nominal rows, and the chance of that."""
    if not n_strange:
        return 0.0, 1.0
    more = max(n_strange / n - n_alone / n_fitted, 0.0)
    return more, float(hypergeom.sf(n_strange - 1, n + n_fitted, n_strange + n_alone, n))
