"""The pictures: fit time and memory against rows, speed against AUC, landmarks, roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from benchmarks.peers import METHODS, RANKAD
from benchmarks.settings import Bench
from benchmarks.text import threads_name
from rankad.experiments.pictures import COLOURS, new_figure, save

__all__ = ["draw_all"]

# RankAD's first, then the peers'.
_COLOURS = dict(
    zip(
        METHODS,
        (COLOURS[3], COLOURS[0], "#56b4e9", COLOURS[1], COLOURS[2], COLOURS[4], "#555555"),
        strict=True,
    )
)
_MARKERS = dict(zip(METHODS, "osD^vPX", strict=True))


def draw_all(results: Mapping[str, Any], bench: Bench) -> list[Path]:
    """Draw what there is to draw, and return the files."""
    threads = bench.threads[0]
    fits = [r for r in results["fits"] if r["threads"] == threads and "missing" not in r]
    scoring = [r for r in results["scoring"] if r["threads"] == threads and "missing" not in r]
    landmarks = [r for r in results["landmarks"] if "missing" not in r]
    roofline = [r for r in results["roofline"] if "missing" not in r]
    name = threads_name(threads)
    out = bench.out
    return [
        _against_n(
            out / "fit-time.png", fits, f"Fit time on cover, {name}", "fit_seconds", 1, "seconds to fit"
        ),
        _against_n(
            out / "peak-memory.png",
            fits,
            f"Peak memory of a fit on cover, above the data, {name}",
            "peak_bytes",
            1e-6,
            "MB above the data",
        ),
        _speed_and_auc(out / "speed-auc.png", scoring, landmarks, name, bench),
        _landmarks(out / "landmarks.png", landmarks, name, bench),
        _roofline(out / "roofline.png", roofline),
    ]


def _against_n(
    path: Path, records: Sequence[dict[str, Any]], title: str, what: str, unit: float, label: str
) -> Path:
    figure = new_figure(title, (10.4, 4.8))
    axes = figure.add_subplot()
    for method in METHODS:
        here = [(r["n"], max(r[what] * unit, 1e-3)) for r in records if r["method"] == method]
        if here:
            ours = method == RANKAD
            axes.plot(
                *zip(*here, strict=True),
                label=method,
                color=_COLOURS[method],
                marker=_MARKERS[method],
                markersize=7 if ours else 5,
                linewidth=2.6 if ours else 1.3,
                zorder=3 if ours else 2,
            )
    axes.set(xscale="log", yscale="log", xlabel="training rows", ylabel=label)
    _mark(axes, sorted({r["n"] for r in records}))
    _plain(axes.yaxis)
    axes.grid(alpha=0.25)
    figure.legend(loc="outside right center", frameon=False)
    return save(figure, path)


def _speed_and_auc(
    path: Path,
    scoring: Sequence[dict[str, Any]],
    landmarks: Sequence[dict[str, Any]],
    threads: str,
    bench: Bench,
) -> Path:
    rows = f"{bench.sizes.base:,} training rows of cover, {threads}"
    figure = new_figure(f"Rows scored per second, and AUC: {rows}", (8.2, 4.8))
    axes = figure.add_subplot()
    if landmarks:
        _landmark_curve(axes, landmarks, "RankAD, by number of landmarks")
    for record in scoring:
        method = record["method"]
        axes.plot(
            record["rows_per_second"],
            record["auc"],
            linestyle="",
            color=_COLOURS[method],
            marker=_MARKERS[method],
            markersize=11 if method == RANKAD else 8,
            label=method,
            zorder=4,
        )
    axes.set(xscale="log", xlabel="rows scored per second", ylabel="AUC")
    _plain(axes.xaxis)
    axes.grid(alpha=0.25)
    figure.legend(loc="outside right center", frameon=False)
    return save(figure, path)


def _landmark_curve(axes: Axes, records: Sequence[dict[str, Any]], label: str) -> None:
    speed, quality = [r["rows_per_second"] for r in records], [r["auc"] for r in records]
    axes.plot(speed, quality, "-", color=_COLOURS[RANKAD], linewidth=1.2, alpha=0.6, label=label)
    axes.plot(speed, quality, ".", color=_COLOURS[RANKAD], alpha=0.6)
    for record in (records[0], records[-1]):
        text, at = f"{record['landmarks']:,}", (record["rows_per_second"], record["auc"])
        axes.annotate(text, at, xytext=(0, 7), textcoords="offset points", fontsize=7.5, ha="center")


def _landmarks(path: Path, records: Sequence[dict[str, Any]], threads: str, bench: Bench) -> Path:
    sizes = bench.sizes
    title = f"Landmarks for speed: RankAD on {sizes.base:,} rows of cover, {threads}"
    figure = new_figure(title, (11.5, 3.9))
    parts = (
        ("rows_per_second", "million rows scored per second", 1e-6),
        ("auc", "AUC", 1.0),
        ("fit_seconds", "seconds to fit", 1.0),
    )
    for at, (what, label, unit) in enumerate(parts, start=1):
        axes = figure.add_subplot(1, 3, at)
        errors = [r["auc_standard_error"] or 0.0 for r in records] if what == "auc" else None
        axes.errorbar(
            [r["landmarks"] for r in records],
            [r[what] * unit for r in records],
            yerr=errors,
            color=_COLOURS[RANKAD],
            marker="o",
            linewidth=2,
            capsize=3,
        )
        axes.set(xscale="log", xlabel="landmarks", ylabel=label)
        if what != "auc":
            axes.set_ylim(bottom=0)
        _mark(axes, [r["landmarks"] for r in records])
        axes.grid(alpha=0.25)
    return save(figure, path)


def _roofline(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    figure = new_figure("The scoring kernel beside its ceiling, one core", (11.5, 4.4))
    columns = sorted({r["d"] for r in records})
    top = 1.15 * max((r["ceiling"] for r in records), default=1e9) / 1e9
    for at, d in enumerate(columns, start=1):
        axes = figure.add_subplot(1, len(columns), at)
        here = [r for r in records if r["d"] == d]
        s = [r["s"] for r in here]
        # What NumPy does for a pair is counted like the kernel's work: the same sums in other words.
        numpy = [r["flops"] / r["beside_numpy"] / 1e9 for r in here]
        axes.plot(s, [r["ceiling"] / 1e9 for r in here], "--", color="#333333", label="ceiling of the core")
        axes.plot(
            s,
            [r["ceiling_product"] / 1e9 for r in here],
            ":",
            color="#777777",
            label="NumPy's matrix product",
        )
        axes.plot(
            s,
            [r["flops"] / 1e9 for r in here],
            "-o",
            color=_COLOURS[RANKAD],
            linewidth=2.4,
            label="RankAD's kernel",
        )
        axes.plot(s, numpy, "-s", color=COLOURS[0], label="blocked NumPy, same work")
        axes.set(xscale="log", ylim=(0, top), xlabel="landmarks s", ylabel="Gflop/s" if at == 1 else "")
        axes.set_title(f"d = {d}")
        _mark(axes, s)
        axes.grid(alpha=0.25)
    if records:
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return save(figure, path)


def _mark(axes: Axes, values: Sequence[int]) -> None:
    """Put ticks where the measurements are."""
    axes.set_xticks(values)
    axes.xaxis.set_minor_locator(NullLocator())
    _plain(axes.xaxis)
    axes.tick_params(axis="x", labelsize=8.5)


def _plain(axis: Axis) -> None:
    """Write 20,000 rather than 2 x 10^4."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
