"""Every bar: what is asked, what this run measured, met or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.peers import FOREST, KNN, ONE_CLASS_SVM, RANKAD
from benchmarks.settings import Bench
from benchmarks.text import amount
from rankad.experiments.results import Table

__all__ = ["Bar", "judge", "table"]

_GIB = 2.0**30


class Bar(NamedTuple):
    """One bar.

    Attributes
    ----------
    what : str
    limit : float
    at_least : bool
        Whether the limit is the least allowed; else the most.
    measured : float or None
        None where there is no measurement.
    unit : str
    digits : int
        Of the figures shown.

    Examples
    --------
    >>> bar = Bar("a ratio", 4.0, True, 4.2, "x")
    >>> bar.met, bar.asked, bar.found
    (True, '>= 4.00x', '4.20x')
    """

    what: str
    limit: float
    at_least: bool
    measured: float | None
    unit: str = ""
    digits: int = 2

    @property
    def met(self) -> bool:
        """Whether it is met; a bar without a measurement is not."""
        if self.measured is None:
            return False
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    @property
    def asked(self) -> str:
        """The limit, as people read it."""
        return f"{'>=' if self.at_least else '<='} {self._text(self.limit)}"

    @property
    def found(self) -> str:
        """The measurement, as people read it."""
        return "not measured" if self.measured is None else self._text(self.measured)

    def _text(self, value: float) -> str:
        return f"{round(value, self.digits) + 0.0:.{self.digits}f}{self.unit}"


def judge(results: Mapping[str, Any], bench: Bench) -> list[Bar]:
    """Judge every bar on this run's own figures.

    Parameters
    ----------
    results : mapping
        The records of all parts: "fits", "published", "scoring", "roofline", "stream", "start".
    bench : Bench
    """
    sizes, threads = bench.sizes, bench.threads[0]

    def scored(method: str, what: str) -> float | None:
        return _find(results["scoring"], what, method=method, threads=threads)

    def fitted(method: str, n: int, what: str) -> float | None:
        return _find(results["fits"], what, method=method, n=n, threads=threads)

    def faster(peer: str) -> float | None:
        return _ratio(scored(RANKAD, "rows_per_second"), scored(peer, "rows_per_second"))

    kernel = {"d": 10, "s": 200}
    many, million, base = amount(sizes.many), amount(sizes.million), amount(sizes.base)
    start = results["start"]
    first = start.get("first score", {})
    memory = fitted(RANKAD, sizes.million, "peak_bytes")
    grown = results["stream"].get("growth_bytes")
    single = _ratio(scored(RANKAD, "median"), scored(ONE_CLASS_SVM, "median"))
    return [
        Bar("Scoring: rows/s beside OneClassSVM's", 10, True, faster(ONE_CLASS_SVM), "x"),
        Bar("Scoring: rows/s beside IsolationForest's", 5, True, faster(FOREST), "x"),
        Bar("Scoring: rows/s beside PyOD KNN's", 25, True, faster(KNN), "x"),
        Bar(
            f"AUC less PyOD KNN's, {base} rows",
            -0.005,
            True,
            _difference(scored(RANKAD, "auc"), scored(KNN, "auc")),
            digits=4,
        ),
        Bar("One row, p-value included: median time beside OneClassSVM's", 0.2, False, single, "x"),
        Bar(
            "Kernel, d = 10, s = 200: beside blocked NumPy, one core",
            4,
            True,
            _find(results["roofline"], "beside_numpy", **kernel),
            "x",
        ),
        Bar(
            "Kernel, d = 10, s = 200: two cores beside one",
            1.7,
            True,
            _find(results["roofline"], "scaling", **kernel),
            "x",
        ),
        Bar(f"Fit: default, {base} rows", 3, False, fitted(RANKAD, sizes.base, "fit_seconds"), " s"),
        Bar(
            f"Fit: as_published(), whole grid, {amount(sizes.published)} rows",
            90,
            False,
            results["published"].get("fit_seconds"),
            " s",
            1,
        ),
        Bar(
            f"Fit: {many} rows, time beside PyOD KNN's",
            0.5,
            False,
            _ratio(fitted(RANKAD, sizes.many, "fit_seconds"), fitted(KNN, sizes.many, "fit_seconds")),
            "x",
        ),
        Bar(
            f"AUC less PyOD KNN's, {many} rows",
            -0.01,
            True,
            _difference(fitted(RANKAD, sizes.many, "auc"), fitted(KNN, sizes.many, "auc")),
            digits=4,
        ),
        Bar(
            f"Fit: {million} rows, time beside that of {amount(sizes.hundred)}",
            10,
            False,
            _ratio(
                fitted(RANKAD, sizes.million, "fit_seconds"), fitted(RANKAD, sizes.hundred, "fit_seconds")
            ),
            "x",
        ),
        Bar(
            f"Fit: {million} rows, peak memory above the data",
            2,
            False,
            None if memory is None else memory / _GIB,
            " GiB",
        ),
        Bar(
            f"Stream of {sizes.stream_bytes / 1e9:g} GB: memory of the last quarter above the first",
            20,
            False,
            None if grown is None else grown / 1e6,
            " MB",
            1,
        ),
        Bar(
            "import rankad, above import sklearn.svm",
            0.3,
            False,
            _difference(_part(start, "import rankad"), _part(start, "import sklearn.svm")),
            " s",
        ),
        Bar(
            "Second process: loading the model and its first score_samples",
            0.5,
            False,
            None if "first" not in first else first["load"] + first["first"],
            " s",
        ),
    ]


def _find(records: Sequence[Mapping[str, Any]], what: str, **key: Any) -> float | None:
    """Return a figure of the record with that key; None where it is missing."""
    for record in records:
        if all(record[name] == value for name, value in key.items()):
            return record.get(what)
    return None


def _part(start: Mapping[str, Any], program: str) -> float | None:
    return start[program]["import"] if program in start else None


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a / b


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def table(bars: Sequence[Bar], bench: Bench) -> Table:
    """Show all bars."""
    rows = [[bar.what, bar.asked, bar.found, "met" if bar.met else "**not met**"] for bar in bars]
    met = sum(bar.met for bar in bars)
    notes = [
        f"{met} of {len(bars)} met. Figures of this run alone, two threads, but where one core is named."
    ]
    if bench.quick:
        notes.insert(0, "**Quick look (--quick)**: with fewer rows than the bars are about; see the rows.")
    return Table("bars", "Bars", ["bar", "asked", "measured", ""], rows, notes)
