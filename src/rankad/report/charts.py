"""Small charts as inline SVG.

Places along a chart are in per cent of its width and heights in pixels, so that a chart fits any width while
its text keeps its size. Colours are classes of the style sheet, which has a light and a dark scheme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from rankad._base.wording import count, counted, difference, isolated, percent, plain, shown
from rankad.alarms.chance import PValueSummary
from rankad.certificates.certificate import RateRange
from rankad.report.timeline import Span, Timeline, written
from rankad.report.views import CategoryView, NumericView
from rankad.stages.calibration import n_attainable

# Charts with a scale of shares leave this much room for it at the left, in per cent.
_LEFT = 10.0
_KINDS = ("nominal", "scored", "alarm")


def p_value_histogram(summary: PValueSummary, n_alarms: int, n_calibration: int) -> Markup:
    """Draw the p-values of all rows, alarms in colour, against the even share of normal rows."""
    n_bins, n_rows = len(summary.bins), max(summary.n_rows, 1)
    attainable = [n_attainable(n_calibration, at / n_bins) for at in range(n_bins + 1)]
    chances = [(b - a) / (n_calibration + 1) for a, b in pairwise(attainable)]
    top = _round_up(max([*(n / n_rows for n in summary.bins), *chances]))
    high, base, wide = 190.0, 208.0, (100 - _LEFT) / n_bins

    def y(share: float) -> float:
        return base - share / top * high

    parts = _rules(top, y)
    alarms_left = n_alarms
    for at, n in enumerate(summary.bins):
        # Alarms are the smallest p-values, so the first bins hold them.
        alarming = min(n, alarms_left)
        alarms_left -= alarming
        x, split, end = _LEFT + at * wide, y(alarming / n_rows), y(n / n_rows)
        bars = _bar(x, split, wide, base - split, "alarm"), _bar(x, end, wide, split - end, "scored")
        parts.append(_group(_bin_words(at, n_bins, n, alarming), *bars))
    # Where few normal rows calibrate, p-values are coarse and even bins do not hold the same number of them.
    spans = [(_LEFT + at * wide, wide) for at in range(n_bins)]
    parts += _steps(spans, [y(chance) for chance in chances], "even", range(1, n_bins))
    ticks = zip((0.0, 0.25, 0.5, 0.75, 1.0), ("start", *["middle"] * 3, "end"), strict=True)
    parts += [_text(_LEFT + at * (100 - _LEFT), base + 17, f"{at:g}", anchor) for at, anchor in ticks]
    label = f"Histogram of {count(summary.n_rows)} p-values in {n_bins} bins against the uniform law"
    return _svg(parts, base + 22, label, "histogram")


def column_histogram(view: NumericView) -> Markup:
    """Draw shares of normal rows as bars, of rows scored as a line, and alarms as bars that hang down."""
    kinds = (view.counts.nominal, view.counts.scored, view.counts.alarms)
    # Missing values are described below the chart; values beyond the edges have bars of their own.
    nominal, scored, alarms = (counts[:-1] for counts in kinds)
    beyond, gap = 4.0, 1.5
    wide = (100 - 2 * (beyond + gap)) / (len(nominal) - 2)
    inside = [(beyond + gap + at * wide, wide) for at in range(len(nominal) - 2)]
    spans = [(0.0, beyond), *inside, (100 - beyond, beyond)]
    # Shares are of all rows of a kind, missing ones included.
    shares = [[n / max(sum(counts), 1) for n in counts[:-1]] for counts in kinds[:2]]
    top = max(*shares[0], *shares[1]) or 1.0
    high, base, low = 84.0, 90.0, 34.0
    most = max(alarms) or 1
    parts = []
    for at, (x, width) in enumerate(spans):
        up, down = shares[0][at] / top * high, alarms[at] / most * low
        # A count that is not zero must be visible.
        up, down = max(up, 1.0 * (nominal[at] > 0)), max(down, 2.0 * (alarms[at] > 0))
        bars = _bar(x, base - up, width, up, "nominal"), _bar(x, base + 2, width, down, "alarm")
        parts.append(_group(_span_words(view, at), _rect(x, 0, width, base + low, "hit"), *bars))
    if sum(scored):
        levels = [base - share / top * high for share in shares[1]]
        parts += _steps(spans, levels, "traced", range(2, len(spans) - 1))
    parts.append(_line(0, base + 1, 100, base + 1, "axis"))
    bottom = base + low + 16
    # A bin that stands for an integer is named by it; else its edges are.
    inset, shift = (wide / 2, 0.5) if view.whole else (0.0, 0.0)
    first, last = view.edges[0] + shift, view.edges[-1] - shift
    begin, end = beyond + gap + inset, 100 - beyond - gap - inset
    anchors = ("middle", "middle") if view.whole else ("start", "end")
    parts.append(_text(begin, bottom, _tick(first, last - first), anchors[0]))
    if last > first:
        parts.append(_text(end, bottom, _tick(last, last - first), anchors[1]))
    if not view.whole:
        parts.append(_text(50, bottom, _tick(first / 2 + last / 2, last - first), "middle"))
    label = f"{counted(sum(alarms), 'alarm')} among {counted(sum(scored), 'row')} scored, by value"
    return _svg(parts, bottom + 5, f"{isolated(view.name)}: {label}", "histogram")


def category_bars(view: CategoryView) -> Markup:
    """Draw for each label the shares of normal rows, of rows scored and of alarms."""
    kinds = (view.counts.nominal, view.counts.scored, view.counts.alarms)
    totals = [max(sum(counts), 1) for counts in kinds]
    rows = [
        (label, at >= len(view.labels), [counts[at] for counts in kinds])
        for at, label in enumerate(view.all_labels)
        if any(counts[at] for counts in kinds)
    ]
    top = max([n / total for _, _, row in rows for n, total in zip(row, totals, strict=True)], default=1.0)
    parts, step = [], 44.0
    for at, (label, summed, row) in enumerate(rows):
        y = at * step
        words = f"{shown(label)}: " + ", ".join(
            f"{count(n)} {what} ({percent(n / total, 2)})"
            for n, total, what in zip(row, totals, ("normal", "scored", "alarms"), strict=True)
        )
        name = _text(0, y + 13, isolated(_cut(plain(label), 34)), "start", "special" if summed else "")
        bars = [name, _text(100, y + 13, f"{count(row[2])} of {count(row[1])}", "end")]
        for place, (kind, n, total) in enumerate(zip(_KINDS, row, totals, strict=True)):
            width = max(n / total / top * 100, 0.6 * (n > 0))
            bars.append(_rect(0, y + 18 + place * 7, width, 6, kind))
        parts.append(_group(words, _rect(0, y, 100, step, "hit"), *bars))
    return _svg(parts, max(len(rows), 1) * step, f"{isolated(view.name)}: counts of each value", "bars")


def timeline_bars(line: Timeline, alpha: float | None) -> Markup:
    """Draw the share of alarms among neighbouring rows, against the rate asked for."""
    spans = line.spans()
    shares = [span.n_alarms / span.n_rows if span.n_rows else 0.0 for span in spans]
    top = _round_up(max([*shares, 2 * (alpha or 0.0), 0.02]))
    high, base, wide = 110.0, 126.0, (100 - _LEFT) / max(len(spans), 1)
    parts = _rules(top, lambda share: base - share / top * high)
    for at, (span, share) in enumerate(zip(spans, shares, strict=True)):
        x, up = _LEFT + at * wide, max(share / top * high, 2.0 * (span.n_alarms > 0))
        behind = _rect(x, base - high, wide, high, "hit" if span.n_rows else "gap")
        parts.append(_group(_when_words(line, span), behind, _bar(x, base - up, wide, up, "alarm")))
    if alpha is not None:
        level = base - alpha / top * high
        parts.append(_line(_LEFT, level, 100, level, "even"))
    if spans:
        parts.append(_text(_LEFT, base + 17, _place(line, spans[0].begin), "start"))
        parts.append(_text(100, base + 17, _place(line, spans[-1].end), "end"))
    return _svg(parts, base + 22, f"Share of alarms, a bar for each {line.unit}", "histogram")


def _place(line: Timeline, at: int) -> str:
    return count(at) if line.column is None else written(at, line.unit)


def _when_words(line: Timeline, span: Span) -> str:
    where = f"{'rows ' * (line.column is None)}{_place(line, span.begin)} to {_place(line, span.end)}"
    return f"{where}: {counted(span.n_alarms, 'alarm')} among {counted(span.n_rows, 'row')}"


def promise_band(promised: Sequence[RateRange], obtained: Sequence[Obtained]) -> Markup:
    """Draw which rates are promised, as a band, and which were obtained, as dots with their intervals.

    Both scales are logarithmic.
    """
    rates = [each.alpha for each in promised]
    floor, high, base = rates[0] / 10, 190.0, 200.0

    def x(rate: float) -> float:
        return _LEFT + math.log(rate / rates[0]) / math.log(rates[-1] / rates[0]) * (100 - _LEFT)

    def y(share: float) -> float:
        return base - math.log(max(share, floor) / floor) / math.log(1 / floor) * high

    decades = [10.0**at for at in range(-6, 1)]
    parts = []
    for share in (each for each in decades if each >= floor * 0.999):
        parts.append(_line(_LEFT, y(share), 100, y(share), "rule"))
        parts.append(_text(_LEFT - 1.2, y(share) + 4, percent(share), "end"))
    for at, (each, following) in enumerate(pairwise(promised)):
        # A hair wider than the step, so that no seam is seen.
        more = 0.08 if at < len(promised) - 2 else 0.0
        wide = x(following.alpha) - x(each.alpha) + more
        top, bottom = y(each.high), y(each.low)
        words = f"{percent(each.alpha)} asked for: {percent(each.low)} to {percent(each.high)} promised"
        parts.append(_group(words, _rect(x(each.alpha), top, wide, bottom - top, "nominal")))
    parts.append(_line(x(rates[0]), y(rates[0]), x(rates[-1]), y(rates[-1]), "even"))
    for alpha, share, low, up in obtained:
        words = f"{percent(alpha)} asked for: {percent(share)} obtained, {percent(low)} to {percent(up)}"
        interval = _line(x(alpha), y(low), x(alpha), y(up), "whisker")
        dot = {"cx": f"{x(alpha):.2f}%", "cy": f"{y(share):.1f}", "r": 4.5, "class": "alarm"}
        parts.append(_group(words, interval, _element("circle", dot)))
    for rate in [rates[0], *(each for each in decades if 1.5 * rates[0] < each < 0.3), rates[-1]]:
        anchor = "start" if rate == rates[0] else "end" if rate == rates[-1] else "middle"
        parts.append(_text(x(rate), base + 17, percent(rate), anchor))
    return _svg(parts, base + 22, "Shares of alarms promised and obtained, by the rate asked for", "promised")


class Obtained(NamedTuple):
    """The share of alarms among the rows scored, and the interval it allows."""

    alpha: float
    share: float
    low: float
    high: float


def gain_bar(share: float, words: str) -> Markup:
    """Draw how much one column weighs among the reasons of an alarm, from 0 to 1."""
    width = 100 * min(max(share, 0.0), 1.0)
    return _svg([_rect(0, 0, 100, 8, "track"), _rect(0, 0, width, 8, "alarm")], 8, words, "gain")


def value_strip(value: Any, typical: Any, low: Any, high: Any) -> Markup | None:
    """Draw a value beside what is usual; None if they are not all numbers, or all equal."""
    numbers = [_as_float(each) for each in (value, typical, low, high)]
    if any(each is None for each in numbers):
        return None
    at, usual, least, most = (float(each) for each in numbers if each is not None)
    scale = max(map(abs, (at, usual, least, most)))
    if scale == 0:
        return None
    # In units of the largest, nothing overflows.
    at, usual, least, most = (each / scale for each in (at, usual, least, most))
    width = most - least
    # A value far out is drawn at the border as an arrow, so that the usual range does not shrink to nothing.
    reach = 7 * width if width > 0 else 2 * abs(at - usual)
    begin, end = max(min(at, least), least - reach), min(max(at, most), most + reach)
    if not end > begin:
        return None
    pad = 0.08 * (end - begin)
    begin, end = begin - pad, end + pad

    def x(place: float) -> float:
        return min(max((place - begin) / (end - begin), 0.0), 1.0) * 100

    parts = [
        _line(0, 9, 100, 9, "axis"),
        _rect(x(least), 4, max(x(most) - x(least), 0.8), 10, "nominal"),
        _line(x(usual), 2, x(usual), 16, "typical"),
    ]
    if begin < at < end:
        parts.append(_element("circle", {"cx": f"{x(at):.2f}%", "cy": 9, "r": 4.5, "class": "alarm"}))
    else:
        parts.append(_text(x(at), 14, "◀" if at < usual else "▶", "start" if at < usual else "end", "arrow"))
    words = f"{plain(value)}, where {plain(low)} to {plain(high)} is usual"
    return _svg(parts, 18, words, "strip")


# ----------------------------------------------------------------------------------------------------- pieces


def _rules(top: float, y: Callable[[float], float]) -> list[Markup]:
    """Draw the scale of shares: three lines across, each with its share at the left."""
    parts = []
    for share in (0.0, top / 2, top):
        parts.append(_line(_LEFT, y(share), 100, y(share), "rule"))
        parts.append(_text(_LEFT - 1.2, y(share) + 4, percent(share), "end"))
    return parts


def _steps(
    spans: Sequence[tuple[float, float]], levels: Sequence[float], kind: str, joined: Collection[int]
) -> list[Markup]:
    """Draw a level line in each span, and the steps from one to the next where they are joined."""
    parts = []
    for at, ((x, width), level) in enumerate(zip(spans, levels, strict=True)):
        parts.append(_line(x, level, x + width, level, kind))
        if at in joined and level != levels[at - 1]:
            parts.append(_line(x, levels[at - 1], x, level, kind))
    return parts


def _bin_words(at: int, n_bins: int, n: int, alarming: int) -> str:
    alarms = f", {counted(alarming, 'alarm')} among them" if alarming else ""
    return f"p-value above {at / n_bins:g}, up to {(at + 1) / n_bins:g}: {counted(n, 'row')}{alarms}"


def _span_words(view: NumericView, at: int) -> str:
    counts = view.counts
    if at == 0:
        where = f"below {plain(view.edges[0])}"
    elif at == len(view.edges):
        where = f"above {plain(view.edges[-1])}"
    elif view.whole:
        where = plain(view.edges[at] - 0.5)
    else:
        where = " to ".join(difference(view.edges[at - 1], view.edges[at]))
    return (
        f"{where}: {count(counts.nominal[at])} normal, {count(counts.scored[at])} scored, "
        f"{counted(counts.alarms[at], 'alarm')}"
    )


def _as_float(value: Any) -> float | None:
    if isinstance(value, (str, bool)) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _round_up(share: float) -> float:
    """Return a round share that is at least as large."""
    return next((each for each in (0.02, 0.04, 0.06, 0.1, 0.2, 0.4, 0.6, 0.8) if each >= share), 1.0)


def _tick(place: float, span: float) -> str:
    """Write a place on an axis, to a hundredth or so of what the axis spans."""
    return plain(round(place, 2 - math.floor(math.log10(span))) if span > 0 else place, 15)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _group(words: str, *parts: Markup) -> Markup:
    """Put parts together under the words that are shown when the mouse is over them."""
    return _element("g", children=[_element("title", children=[words]), *parts])


def _svg(parts: Sequence[Markup], height: float, label: str, kind: str) -> Markup:
    attributes = {"class": f"chart {kind}", "width": "100%", "height": f"{height:g}", "role": "img"}
    return _element("svg", {**attributes, "aria-label": label}, parts)


def _rect(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    place = {"x": f"{x:.2f}%", "y": f"{y:.1f}", "width": f"{width:.2f}%", "height": f"{height:.1f}"}
    return _element("rect", {**place, "class": kind})


def _bar(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Draw a bar with a little space beside it; nothing if it has no height."""
    return _rect(x + 0.08 * width, y, 0.84 * width, height, kind) if height > 0 else Markup("")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    ends = {"x1": f"{x1:.2f}%", "y1": f"{y1:.1f}", "x2": f"{x2:.2f}%", "y2": f"{y2:.1f}"}
    return _element("line", {**ends, "class": kind})


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> Markup:
    place = {"x": f"{x:.2f}%", "y": f"{y:.1f}", "text-anchor": anchor}
    return _element("text", {**place, "class": kind} if kind else place, [text])


def _element(tag: str, attributes: dict[str, Any] | None = None, children: Sequence[Any] = ()) -> Markup:
    """Write one element. Everything that is not markup already is escaped."""
    written = Markup("").join(
        Markup(' {}="{}"').format(Markup(name), value) for name, value in (attributes or {}).items()
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup("<{tag}{written}>{inside}</{tag}>").format(tag=Markup(tag), written=written, inside=inside)
