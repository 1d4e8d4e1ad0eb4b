"""RankAD's false alarms: asked for, obtained, and what chance alone makes of a calibration that is exact.

With n calibration scores and m fresh nominal rows exchangeable with them, the number of p-values at most
alpha is beta-binomial with m trials and parameters r and n + 1 - r, where r of the p-values there are,
1/(n + 1), 2/(n + 1) and so on, are at most alpha.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import betabinom

from benchmarks.quality.methods import RANKAD
from benchmarks.quality.settings import ALPHAS
from rankad._base.arrays import Floats
from rankad.experiments.measures import MISS
from rankad.experiments.pictures import percent
from rankad.experiments.results import Table, mean

__all__ = ["AlarmCell", "Summary", "alarm_cells", "band", "expected_error", "summary", "table"]


class AlarmCell(NamedTuple):
    """The false alarms of one fitted detector at one rate.

    Attributes
    ----------
    set : str
    seed : int
    alpha : float
        The rate asked for.
    alarms : int
        Of m nominal test rows.
    r, n, m : int
        Of the beta-binomial law.
    """

    set: str
    seed: int
    alpha: float
    alarms: int
    r: int
    n: int
    m: int

    @property
    def rate(self) -> float:
        """The rate obtained."""
        return self.alarms / self.m

    @property
    def band(self) -> tuple[float, float]:
        """The rates between which it stays, but for one chance in a hundred."""
        low, high = band(self.r, self.n, self.m)
        return low / self.m, high / self.m

    @property
    def outside(self) -> bool:
        """Whether it is outside its band."""
        low, high = band(self.r, self.n, self.m)
        return not low <= self.alarms <= high

    @property
    def error(self) -> float:
        """The relative error, absolute."""
        return abs(self.rate / self.alpha - 1)


def alarm_cells(
    records: Iterable[Mapping[str, Any]], share: float = 0.0, method: str = RANKAD
) -> list[AlarmCell]:
    """Return the false alarms of RankAD's records, or of those of another of `methods.OURS`."""
    return [
        AlarmCell(record["set"], record["seed"], **found)
        for record in records
        if record["method"] == method and record["share"] == share
        for found in record["false_alarms"]
    ]


@lru_cache(maxsize=256)
def _law(r: int, n: int, m: int) -> Floats:
    """Return the probabilities of 0 to m alarms."""
    if r == 0:
        return np.repeat([1.0, 0.0], [1, m])
    return np.asarray(betabinom.pmf(np.arange(m + 1), m, r, n + 1 - r))


def band(r: int, n: int, m: int) -> tuple[int, int]:
    """Return the least and the most alarms expected, but for one chance in a hundred.

    Examples
    --------
    >>> band(100, 2_000, 10_000), band(0, 50, 100)
    ((372, 646), (0, 0))
    """
    reached = np.cumsum(_law(r, n, m))
    low, high = np.searchsorted(reached, [MISS / 2, 1 - MISS / 2])
    return int(low), int(min(high, m))


def expected_error(alpha: float, r: int, n: int, m: int) -> float:
    """Return the mean of ``|alarms / (m alpha) - 1|`` where nothing but chance keeps it from zero.

    Examples
    --------
    >>> round(expected_error(0.5, 1, 1, 1), 3), round(expected_error(0.01, 20, 2_000, 20_000), 3)
    (1.0, 0.185)
    """
    errors = np.abs(np.arange(m + 1) / (m * alpha) - 1)
    return float(errors @ _law(r, n, m))


class Summary(NamedTuple):
    """All cells of one rate.

    Attributes
    ----------
    alpha : float
        The rate asked for.
    obtained : float
        The mean rate obtained.
    exact : float
        The mean of r / (n + 1), what an exact calibration of the same sizes gives in expectation.
    bias : float
        The relative error of the mean.
    error, sampling_error : float
        The mean of the cells' absolute relative errors, and its expectation for an exact calibration.
    outside, n_cells : int
    """

    alpha: float
    obtained: float
    exact: float
    bias: float
    error: float
    sampling_error: float
    outside: int
    n_cells: int


def summary(cells: Sequence[AlarmCell], alpha: float) -> Summary:
    """Summarize the cells of one rate."""
    here = [cell for cell in cells if cell.alpha == alpha]
    obtained = mean([cell.rate for cell in here])
    return Summary(
        alpha,
        obtained,
        mean([cell.r / (cell.n + 1) for cell in here]),
        obtained / alpha - 1,
        mean([cell.error for cell in here]),
        mean([expected_error(alpha, cell.r, cell.n, cell.m) for cell in here]),
        sum(cell.outside for cell in here),
        len(here),
    )


def table(cells: Sequence[AlarmCell]) -> Table:
    """Show what was obtained, set by set and on the whole."""
    rows = []
    for name in dict.fromkeys(cell.set for cell in cells):
        here = [cell for cell in cells if cell.set == name]
        rates = [[cell for cell in here if cell.alpha == alpha] for alpha in ALPHAS]
        rows.append(
            [
                name,
                f"{here[0].n:,}",
                f"{here[0].m:,}",
                *(_percent(mean([cell.rate for cell in at])) for at in rates),
                f"{sum(cell.outside for cell in here)} of {len(here)}",
            ]
        )
    sums = [summary(cells, alpha) for alpha in ALPHAS]
    outside, count = sum(one.outside for one in sums), sum(one.n_cells for one in sums)
    rows += [
        ["**mean**", "", "", *(f"**{_percent(one.obtained)}**" for one in sums), f"{outside} of {count}"],
        _line("mean of an exact calibration", [_percent(one.exact) for one in sums]),
        _line("relative error of the mean", [f"{100 * one.bias:+.1f} %" for one in sums]),
        _line("mean relative error of a cell, absolute", [f"{100 * one.error:.1f} %" for one in sums]),
        _line("the same from sampling alone", [f"{100 * one.sampling_error:.1f} %" for one in sums]),
    ]
    notes = [
        "RankAD's false alarms: the share of nominal test rows with p-value at most the rate asked for; "
        f"means over {len({cell.seed for cell in cells})} splits, of which the first are those of the "
        "comparison. A cell is one set, split and rate.",
        "Outside: cells outside the 99 % band of the beta-binomial law of an exactly valid calibration with "
        "as many calibration scores and test rows. One in a hundred is to be expected.",
        "From sampling alone: the expectation of the absolute relative error under the same law.",
    ]
    asked = [f"asked {percent(alpha)}" for alpha in ALPHAS]
    columns = ["set", "calibration scores", "nominal test rows", *asked, "outside"]
    return Table("false-alarms", "False alarms, asked for and obtained", columns, rows, notes)


def _line(name: str, texts: Sequence[str]) -> list[str]:
    return [name, "", "", *texts, ""]


def _percent(rate: float) -> str:
    return f"{100 * rate:.2f} %"
