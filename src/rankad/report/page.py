"""The contents of a report as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from scipy.special import betaincinv

from rankad._base.wording import count, counted, isolated, percent, plain, probability, ratio, shown
from rankad.alarms.verdict import Verdict, judge
from rankad.report.alarms import alarm_card, in_words
from rankad.report.charts import (
    Obtained,
    category_bars,
    column_histogram,
    p_value_histogram,
    promise_band,
    timeline_bars,
)
from rankad.report.contents import ModelFacts, ReportData
from rankad.report.verdicts import Pen, spoken
from rankad.report.views import CategoryView, NumericView
from rankad.stages.calibration import FalseAlarmBound, n_attainable
from rankad.tables.judging import TableVerdict

# Nobody looks at more charts, and they make the page slow.
_MOST_COLUMNS = 48
_OPEN_AT_FIRST = 3
# With fewer bars there is nothing to see.
_FEWEST_BARS = 4
# Rates that are drawn beside those that alarms are counted at.
_DOTS = (0.2, 0.5)
_PAGE = Pen(shown, percent)


def render(data: ReportData) -> str:
    """Return the page as HTML, with its style, script and charts inside.

    All text that came with the data is escaped, and a content security policy lets only the page's own script
    run.
    """
    ordered = sorted(data.alarms, key=lambda alarm: (alarm.score, alarm.row))
    cards = [alarm_card(alarm, data.alpha) for alarm in ordered]
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {f.__name__: f for f in (counted, count, percent, probability, shown, isolated)}
    return environment.from_string(_file("page.html.j2")).render(
        data=data,
        model=data.model,
        headline=headline(data),
        levels=_levels(data),
        p_value_chart=p_value_histogram(data.p_values, data.n_alarms, data.model.n_calibration),
        timeline=_timeline(data),
        cards=cards,
        n_unshown=max(data.n_alarms - len(cards), 0),
        n_open=_OPEN_AT_FIRST,
        columns=_columns(data, cards),
        n_columns_left_out=max(len(data.columns) - _MOST_COLUMNS, 0),
        promise=promised(data.model.bound),
        promise_chart=_promise_chart(data),
        theorem=in_words(data.model.bound.theorem),
        expected_false=plain(round((data.fdr or 0.0) * data.n_alarms, 1), 3),
        trials=_trials(data.model),
        style=Markup(_file("style.css")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )


def _file(name: str) -> str:
    return files("rankad.report").joinpath(name).read_text("utf-8")


class Headline(NamedTuple):
    """The head of the page, its figures as they are written.

    `verdict` is the kind of verdict (see `rankad.alarms.verdict.Verdict`), `off` whether chance does not
    explain the table; title and text say so in words, and `points` which columns have moved and how.
    """

    n_alarms: str
    n_rows: str
    share: str
    expected: str
    usual: str
    verdict: str
    off: bool
    title: str
    text: str
    points: tuple[str, ...]


def headline(data: ReportData) -> Headline:
    """Compare the alarms with what normal rows would raise."""
    verdict = data.verdict
    if verdict is None:
        overall = judge(data.p_values, data.model.chance, data.alpha)
        verdict = TableVerdict(overall, (), True, 0, 0, 0)
    overall, said = verdict.overall, spoken(verdict, _PAGE)
    points = said.text if data.verdict is not None else ()
    n_alarms, n_rows = data.n_alarms, data.p_values.n_rows
    span = overall.usual
    return Headline(
        count(n_alarms),
        count(n_rows),
        percent(n_alarms / n_rows, 2) if n_rows else "–",
        _about(overall.expected),
        f"{count(span.low)} to {count(span.high)}",
        overall.kind,
        said.off,
        said.title,
        _comparison(overall, data),
        points,
    )


def _comparison(overall: Verdict, data: ReportData) -> str:
    """Say what the number of alarms is compared with, and what follows."""
    n, alpha, n_alarms = data.model.n_calibration, percent(overall.alpha), overall.n_alarms
    if overall.kind == "empty":
        return "The table has no rows."
    if overall.kind == "silent":
        return (
            f"P-values come from {count(n)} normal rows, so that the smallest there can be is 1 in "
            f"{count(n + 1)}. Choose a larger false-alarm rate, or fit on more normal rows."
        )
    begin = (
        f"A false-alarm rate of {alpha} means that normal rows raise an alarm, too, {alpha} of the time: if "
        f"all {count(overall.n_rows)} rows were normal, there would be about {_about(overall.expected)} "
        f"alarms"
    )
    if overall.kind == "unknown":
        return f"{begin}, and more if a model was calibrated on the rows it was trained on, as this one was."
    span = overall.usual
    begin += f", and 19 times in 20 between {count(span.low)} and {count(span.high)}. There {_are(n_alarms)}"
    if overall.kind == "more":
        return f"{begin}, about {_about(n_alarms - overall.expected)} more than that."
    if overall.kind == "some":
        strict = overall.strict_alpha
        assert strict is not None
        n_sure = data.p_values.n_alarms(strict)
        alarms = "an alarm" if n_sure == 1 else "alarms"
        most = data.model.chance.span(overall.n_rows, strict).high
        return (
            f"{begin}, no more than that. But {count(n_sure)} would be {alarms} even at "
            f"{percent(strict)}, where {count(most)} {'is' if most == 1 else 'are'} usual at most: the most "
            f"abnormal rows, first below, are worth a look."
        )
    if overall.kind == "fewer":
        also = "and so do the very rows that the model was fitted on"
        return f"{begin}. Rows that vary less than normal ones do that, {also}."
    if overall.is_off:
        return f"{begin}."
    little = "" if span.low <= n_alarms <= span.high else ": unusual, but not enough to rule out chance"
    return f"{begin}{little}. Some rows may be abnormal all the same; the most abnormal come first below."


def _about(value: float) -> str:
    """Write an expected number: rounded, with decimals where it is small."""
    return count(round(value)) if value >= 10 else plain(value, 2)


def _are(n: int) -> str:
    return "is one" if n == 1 else "are none" if n == 0 else f"are {count(n)}"


def _levels(data: ReportData) -> list[dict[str, Any]]:
    """Return the lines of the table of alarms by false-alarm rate."""
    n_rows, lines = data.p_values.n_rows, []
    for alpha, n_alarms in zip(data.p_values.levels, data.p_values.at_levels, strict=True):
        span = data.model.chance.span(n_rows, alpha)
        lines.append(
            {
                "alpha": percent(alpha),
                "n_alarms": count(n_alarms),
                "expected": _about(alpha * n_rows),
                "usual": f"{count(span.low)} to {count(span.high)}",
                "ratio": ratio(n_alarms, alpha * n_rows),
                "chosen": alpha == data.alarm_level,
                "possible": n_attainable(data.model.n_calibration, alpha) > 0,
            }
        )
    return lines


def _timeline(data: ReportData) -> dict[str, Any] | None:
    """Return the chart of alarms along the table or along time; None if there are too few bars."""
    line = data.timeline
    if line is None or len(line.spans()) < _FEWEST_BARS:
        return None
    numbers = ((line.n_without, "without a time"), (line.n_outside, "at times far from the others"))
    notes = " and ".join(f"{counted(n, 'row')} {where}" for n, where in numbers if n)
    return {
        "chart": timeline_bars(line, data.alpha if data.fdr is None else None),
        "column": None if line.column is None else isolated(line.column),
        "unit": line.unit,
        "note": f"Not drawn: {notes}." if notes else "",
    }


def _columns(data: ReportData, cards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Draw the columns, those that are most often the first reason of an alarm first."""
    first = Counter(card["first"] for card in cards)
    panels = []
    for view in sorted(data.columns, key=lambda view: -first[isolated(view.name)])[:_MOST_COLUMNS]:
        name, numeric = isolated(view.name), isinstance(view, NumericView)
        chart = column_histogram(view) if isinstance(view, NumericView) else category_bars(view)
        note = _column_note(view, first[name], len(cards))
        panels.append({"name": name, "chart": chart, "note": note, "numeric": numeric})
    return panels


def _column_note(view: NumericView | CategoryView, n_first: int, n_cards: int) -> str:
    notes = []
    if n_first:
        notes.append(f"first reason of {count(n_first)} of the {counted(n_cards, 'alarm')} shown")
    if isinstance(view, NumericView):
        missing = view.counts.scored[-1]
        if missing:
            n_alarms = view.counts.alarms[-1]
            notes.append(f"missing in {counted(missing, 'row')}, {_among(missing, n_alarms)}")
        ends = (("below", view.counts.scored[0]), ("above", view.counts.scored[-2]))
        beyond = " and ".join(f"{count(n)} {where}" for where, n in ends if n)
        if beyond:
            notes.append(f"rows beyond the axis, in bars of their own: {beyond}")
    return "; ".join(notes)


def _among(n: int, n_alarms: int) -> str:
    """Say how many of some rows are alarms."""
    if n == 1:
        return "an alarm" if n_alarms else "no alarm"
    return (
        f"{'none' if n_alarms == 0 else count(n_alarms)} of them {'an alarm' if n_alarms == 1 else 'alarms'}"
    )


def _promise_chart(data: ReportData) -> Markup | None:
    """Draw the rates promised and those obtained; None where there is nothing to draw."""
    known, n = data.model.promised, data.p_values.n_rows
    if len(known) < 2 or not n:
        return None
    obtained = []
    for alpha, n_alarms in sorted(set(data.p_values.cumulative)):
        if known[0].alpha <= alpha <= known[-1].alpha and (alpha in data.p_values.levels or alpha in _DOTS):
            # Clopper and Pearson.
            low = float(betaincinv(n_alarms, n - n_alarms + 1, 0.025)) if n_alarms else 0.0
            high = float(betaincinv(n_alarms + 1, n - n_alarms, 0.975)) if n_alarms < n else 1.0
            obtained.append(Obtained(alpha, n_alarms / n, low, high))
    return promise_band(known, obtained)


def promised(bound: FalseAlarmBound) -> str:
    """Say what is promised at one rate."""
    if bound.bound <= 0:
        return "No row can raise an alarm at this rate: too few normal rows to compare with."
    if bound.bound >= 1:
        return "Nothing can be promised about the false-alarm rate at this setting."
    return (
        f"With probability {percent(1 - bound.delta)} over the normal rows it was fitted on, at most "
        f"{percent(bound.bound)} of fresh normal rows raise an alarm; {percent(bound.alpha)} was asked for. "
        + ("A theorem covers this model as fitted." if bound.exact else "This is an approximation.")
    )


def _trials(model: ModelFacts) -> list[dict[str, Any]]:
    """List what was tried, the least loss first."""
    table = model.selection
    if table is None:
        return []
    return [
        {
            "scaling": plain(table.scalings[at] or "none"),
            "bandwidth": plain(float(table.bandwidths[at]), 3),
            "C": plain(float(table.C[at]), 3),
            "losses": [plain(float(loss), 3) for loss in table.losses[at]],
            "relative": f"{table.relative_losses[at]:.3f}",
            "error": f"{table.standard_errors[at]:.3f}",
            "used": at == table.best,
        }
        for at in sorted(range(len(table.C)), key=lambda at: float(table.relative_losses[at]))
    ]
