"""Detectors side by side over many sets: means, ranks, and which differences are more than chance.

Friedman's test asks whether ranks differ at all, and Nemenyi's which mean ranks do: those farther apart than
the critical difference ``q sqrt(k (k + 1) / (6 N))`` of k detectors on N sets (Demsar 2006, Journal of
Machine Learning Research 7).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, rankdata, studentized_range

from benchmarks.quality.methods import COMPARED
from rankad._base.arrays import Floats
from rankad.experiments.results import Table, mean

__all__ = [
    "Comparison",
    "compare",
    "critical_difference",
    "friedman",
    "groups",
    "notes",
    "table",
]

# Figures closer than this are the same: means of several seeds differ in their last bits.
_DIGITS = 10


class Comparison(NamedTuple):
    """One figure of every detector on every set, the mean over seeds; higher is better.

    Attributes
    ----------
    sets, methods : tuple of str
        Methods by their mean over the sets, best first.
    values : ndarray of shape (n_sets, n_methods)

    Examples
    --------
    >>> values = np.array([[0.9, 0.8, 0.7], [0.6, 0.8, 0.6]])
    >>> comparison = Comparison(("one", "two"), ("a", "b", "c"), values)
    >>> comparison.ranks.tolist(), comparison.mean_ranks["a"], round(comparison.means["b"], 3)
    ([[1.0, 2.0, 3.0], [2.5, 1.0, 2.5]], 1.75, 0.8)
    """

    sets: tuple[str, ...]
    methods: tuple[str, ...]
    values: Floats

    @property
    def ranks(self) -> Floats:
        """The detectors' ranks on every set: 1 is the best, and equal ones share theirs."""
        return np.asarray(rankdata(-self.values.round(_DIGITS), axis=1))

    @property
    def means(self) -> dict[str, float]:
        """The detectors' means over the sets."""
        return {method: mean(column) for method, column in zip(self.methods, self.values.T, strict=True)}

    @property
    def mean_ranks(self) -> dict[str, float]:
        """The detectors' mean ranks over the sets."""
        return {method: mean(column) for method, column in zip(self.methods, self.ranks.T, strict=True)}

    def of(self, method: str) -> Floats:
        """Return one detector's figures, set by set."""
        return np.asarray(self.values[:, self.methods.index(method)])


def compare(
    records: Iterable[Mapping[str, Any]], what: str, share: float = 0.0, methods: Iterable[str] = COMPARED
) -> Comparison:
    """Average a figure of these detectors' records over seeds, where training had that share of anomalies."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        if record["share"] == share:
            found.setdefault(record["set"], {}).setdefault(record["method"], []).append(record[what])
    sets = sorted(found, key=str.lower)
    there = [method for method in methods if any(method in found[name] for name in sets)]
    values = np.array([[mean(found[name][method]) for method in there] for name in sets])
    order = np.argsort(-values.mean(axis=0), kind="stable")
    return Comparison(tuple(sets), tuple(there[at] for at in order), values[:, order])


@cache
def critical_difference(n_methods: int, n_sets: int, level: float = 0.05) -> float:
    """Return Nemenyi's critical difference of mean ranks.

    Examples
    --------
    >>> round(critical_difference(5, 30), 3)
    1.114
    """
    q = float(studentized_range.ppf(1 - level, n_methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(n_methods * (n_methods + 1) / (6 * n_sets))


def friedman(ranks: Floats) -> float:
    """Return the p-value of Friedman's test that all detectors rank alike, corrected for ties."""
    n_sets, k = ranks.shape
    spread = ((ranks - (k + 1) / 2) ** 2).sum()
    if spread == 0:
        return 1.0
    between = ((ranks.sum(axis=0) - n_sets * (k + 1) / 2) ** 2).sum()
    return float(chi2.sf((k - 1) * between / spread, k - 1))


def groups(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return the largest runs of detectors whose mean ranks are no farther apart than the difference.

    Parameters
    ----------
    mean_ranks : sequence of float
        Ascending.
    difference : float

    Returns
    -------
    list of (first, last)
        Positions in `mean_ranks`; a run of a single one is not listed.

    Examples
    --------
    >>> groups([1.0, 2.0, 2.5, 4.0], 1.5)
    [(0, 2), (2, 3)]
    """
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(mean_ranks):
        last = max(at for at, other in enumerate(mean_ranks) if other - rank <= difference)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def table(comparison: Comparison, name: str, title: str, notes: Sequence[str] = ()) -> Table:
    """Show a comparison: a row a set, the best in bold, then means and mean ranks."""
    rows = [
        [one, *_bold(values, max)] for one, values in zip(comparison.sets, comparison.values, strict=True)
    ]
    rows.append(["**mean**", *_bold(list(comparison.means.values()), max)])
    rows.append(["**mean rank**", *_bold(list(comparison.mean_ranks.values()), min, 2)])
    return Table(name, title, ["set", *comparison.methods], rows, notes)


def notes(comparison: Comparison, records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what a reader must know of the table of AUC."""
    k, n = len(comparison.methods), len(comparison.sets)
    said = [
        "Detectors by their mean, best first. Ranks are those of the means over seeds, 1 the best.",
        f"Friedman's test that all rank alike: p = {friedman(comparison.ranks):.1g}. Mean ranks farther "
        f"apart than {critical_difference(k, n):.2f} differ at 5 % (Nemenyi's critical difference, {k} "
        f"detectors, {n} set{'s' * (n > 1)}).",
    ]
    odd = Counter(
        f"{record['method']} on {record['set']}"
        for record in records
        if record["share"] == 0 and record["not_finite"] and record["method"] in comparison.methods
    )
    if odd:
        several = ", ".join(f"{name} ({times} seed{'s' * (times > 1)})" for name, times in odd.items())
        said.append(
            f"Scores that are not finite: {several}. Infinities keep their order, and what is not a number "
            "counts as the most anomalous; where all are infinite, AUC is one half."
        )
    return said


def _bold(values: Sequence[float] | Floats, best: Any, digits: int = 3) -> list[str]:
    """Write figures, those that read like the best in bold."""
    texts = [f"{value:.{digits}f}" for value in values]
    return [f"**{text}**" if float(text) == best(map(float, texts)) else text for text in texts]
