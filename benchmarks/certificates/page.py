"""The page of `benchmarks.certificates`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.certificates.drift import WINDOWS
from rankad.experiments.cells import write_atomically

__all__ = ["write"]


def write(path: Path, results: Mapping[str, Any]) -> None:
    """Write the page."""
    checks = [
        *results["certificates"],
        *results["tied"],
        *results["counts"],
        *results["drift"],
        *results["detectors"],
    ]
    means = [*results["means"], *results["online"]]
    every = [*checks, *means, *results["shifted"], *results["true_volumes"]]
    broken = [one for one in every if not one["holds"]]
    lines = [
        "# Certificates: how often each promise fails",
        "",
        "Written by `make certificates`. Fresh data with known truth: a promise that may fail with",
        f"probability delta is tried {results['repetitions']:,} times, and failures are compared with the",
        f"binomial law. Of {len(every)} checks, {len(broken)} say that a promise does not hold",
        f"(at 1 in 100,000 each). The study took {results['seconds'] / 60:.0f} minutes of processor time.",
        "",
        "## Certificates of a calibration that had no part in training",
        "",
        "Scores are uniform, so that the realised false-alarm rate is the threshold itself.",
        "",
        *_checks(results["certificates"]),
        "",
        "Scores that have few values, so that an alarm rate is a sum of their shares. Where values repeat,",
        "ranges are wider than they have to be, and may fail less often:",
        "",
        *_checks(results["tied"]),
        "",
        "One fitted `RankAD` per law, calibrated again and again with 200 fresh rows. The realised rate is",
        "itself counted on 100,000 rows; two standard errors of that are granted, and the ranges that hold",
        "together are compared at three alphas, so that fewer failures are to be expected:",
        "",
        *_checks(results["detectors"]),
        "",
        "## Cross-fitted detectors: an approximation",
        "",
        "By default `RankAD` scores its normal rows by models fitted without them. No theorem covers the",
        "spread of the rate then: each such row is counted for a third of an independent one. How often the",
        "95 % bound was exceeded, with 300 rows, and how often `DriftMonitor` raised an alarm of the kind",
        "that 1 in 100 streams may ever raise (1,000 rows without drift):",
        "",
        *_by_law(results["cross_fit"]),
        "",
        "## Many rows",
        "",
        "With 500 calibration rows no p-value is below 1/501, so that with few or no anomalies these rules",
        "hardly ever fail: the rows with 100 anomalies are the sharp check of the rates. The bounds on false",
        "alarms are more cautious than they have to be here; a test compares them with closed testing.",
        "",
        *_means(means),
        "",
        *([] if results["online"] else ["(`online-fdr` was not installed: streams were left out.)", ""]),
        *_checks(results["counts"]),
        "",
        "## Another mix of situations",
        "",
        "Share of false alarms at alpha = 0.1 where normal rows have moved, with `weighted_p_values`:",
        "",
        *_means(results["shifted"]),
        "",
        "## Drift",
        "",
        *_checks(results["drift"]),
        "",
        "Rows until a drift alarm (median, and how many streams had one before 1,000 rows were over) after a",
        "shift of the scores by so many standard deviations between row 400 and 500. Beside it windows that",
        "are compared with the calibration rows by Kolmogorov and Smirnov every ten rows. Their threshold is",
        "the one at which as many of the streams without drift raise an alarm as by the monitor (one where",
        "the monitor has none), found on these very streams. The monitor knows no such streams: its rates",
        "hold for any law, and that of `ever` for any length.",
        "",
        *_delays(results["delays"]),
        "",
        "## Volumes",
        "",
        "Volumes of level sets of a standard Gaussian, relative to the closed form. First the sets of the",
        "true score (`LevelSet.of_score`), which checks the Monte Carlo and its error bar alone, over",
        f"{results['true_volumes'][0]['seeds']} seeds each. It holds if all volumes are within 5 %, and no",
        "more than 1 in 20 of them, but for chance, are off by 1.96 of their own standard errors:",
        "",
        *_table(
            (
                "columns",
                "alpha",
                "volume, mean",
                "spread",
                "standard error told",
                "most off",
                "outside its error bar",
                "holds",
            ),
            (
                (
                    str(one["d"]),
                    f"{one['alpha']:g}",
                    f"{one['ratio']:.4f}",
                    f"{one['spread']:.4f}",
                    f"{one['error']:.4f}",
                    f"{one['worst']:.1%}",
                    f"{one['outside']} of {one['seeds']}",
                    _yes(one),
                )
                for one in results["true_volumes"]
            ),
        ),
        "",
        "Then the sets that `RankAD` learned (means over three samples; the Monte Carlo's standard error is",
        "about 0.01). They differ from the true sets for two reasons. The set at alpha does not hold a share",
        "of 1 - alpha exactly, because the threshold comes from a finite sample (`certificate` says how far",
        "it may be off), and in many columns a little more mass is a lot more volume. `same mass` counts",
        "that out: it compares with the true set that holds as much. What is left is the shape, which is",
        "learned from finite rows, and so is the symmetric difference to that true set.",
        "",
        *_learned(results["learned"]),
        "",
        "The default score has two parts beside that of the kernel, the distance to the nearest rows and a",
        "mixture of Gaussians, which are there for anomalies. In many columns they make sets larger, in few",
        "smaller. The kernel part alone, `RankAD(near_field=False, n_components=0)`:",
        "",
        *_learned(results["kernel_alone"]),
        "",
        "The same of other scores: their volume relative to that of the true set that holds the same mass,",
        "learned from 2,000 rows (to about 0.02):",
        "",
        *_peers(results["peers"]),
        "",
        "The symmetric difference of the sets of `RankAD`, learned from 5,000 rows, to the true minimum",
        "volume sets on the paper's mixture, relative to the true volume (means over three samples; other",
        "methods and sizes: figure 2 in [reproduction.md](reproduction.md)):",
        "",
        *_table(
            ("alpha", "difference"),
            ((f"{one['alpha']:g}", f"{one['difference']:.3f}") for one in results["differences"]),
        ),
    ]
    write_atomically(path, "\n".join(lines) + "\n")


def _checks(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    return _table(
        ("promise", "setting", "failures", "allowed", "holds"),
        (
            (
                one["promise"],
                one["setting"],
                f"{one['failures']} of {one['repetitions']}",
                f"{one['allowed']:.1%}",
                _yes(one),
            )
            for one in checks
        ),
    )


def _means(means: Sequence[Mapping[str, Any]]) -> list[str]:
    return _table(
        ("", "setting", "mean", "standard error", "at most", "holds"),
        (
            (
                one["promise"],
                one["setting"],
                f"{one['mean']:.4f}",
                f"{one['error']:.4f}",
                f"{one['allowed']:g}",
                _yes(one),
            )
            for one in means
        ),
    )


def _learned(found: Sequence[Mapping[str, Any]]) -> list[str]:
    return _table(
        ("columns", "rows", "alpha", "volume", "mass held", "volume, same mass", "symmetric difference"),
        (
            (
                str(one["d"]),
                f"{one['n']:,}",
                f"{one['alpha']:g}",
                f"{one['ratio']:.3f}",
                f"{one['mass']:.3f}",
                f"{one['ratio at mass']:.3f}",
                f"{one['difference']:.3f}",
            )
            for one in found
        ),
    )


def _by_law(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line for each law, one column for each promise."""
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in checks:
        rows[one["setting"]][one["promise"]] = f"{one['failures']} of {one['repetitions']}"
        totals[one["promise"]][0] += one["failures"]
        totals[one["promise"]][1] += one["repetitions"]
    names = list(totals)
    body = [(law, *(found[name] for name in names)) for law, found in rows.items()]
    total = ("all", *(f"{n} of {of}" for n, of in totals.values()))
    return _table(("", *names), [*body, total])


def _delays(delays: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line for each kind of alarm and each calibration, one column for each way to notice a drift."""
    rows: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for one in delays:
        by = one["by"].split()[-1]
        key = (str(one["n"]), f"{one['shift']:g}", f"{by}, {one['rate']:.1%}")
        median = "none" if one["median"] is None else f"{one['median']:.0f}"
        rows[key].append(f"{median} ({one['noticed']:.0%})")
    head = (
        "calibration rows",
        "shift",
        "kind, alarms without drift",
        "`DriftMonitor`",
        *(f"windows of {size}" for size in WINDOWS),
    )
    return _table(head, ((*key, *values) for key, values in rows.items()))


def _peers(found: Sequence[Mapping[str, Any]]) -> list[str]:
    rows: dict[str, list[str]] = defaultdict(list)
    settings = [f"{one['d']} columns, {one['alpha']:g}" for one in found]
    for one in found:
        rows[one["score"]].append(f"{one['ratio']:.2f}")
    return _table(("score", *dict.fromkeys(settings)), ((name, *values) for name, values in rows.items()))


def _yes(one: Mapping[str, Any]) -> str:
    return "yes" if one["holds"] else "**no**"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
