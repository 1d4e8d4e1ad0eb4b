"""What the page says first: how many alarms there are, and whether chance alone would raise as many."""

from __future__ import annotations

from typing import NamedTuple

from rankad._base.wording import count, percent, plain, shown
from rankad.alarms.verdict import Verdict, judge
from rankad.report.contents import ReportData
from rankad.report.verdicts import Pen, spoken
from rankad.tables.judging import TableVerdict

__all__ = ["Headline", "about", "headline"]

_PAGE = Pen(shown, percent)


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
        about(overall.expected),
        f"{count(span.low)} to {count(span.high)}",
        overall.kind,
        said.off,
        said.title,
        _text(overall, data),
        points,
    )


def _text(overall: Verdict, data: ReportData) -> str:
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
        f"all {count(overall.n_rows)} rows were normal, there would be about {about(overall.expected)} "
        f"alarms"
    )
    if overall.kind == "unknown":
        return f"{begin}, and more if a model was calibrated on the rows it was trained on, as this one was."
    span = overall.usual
    begin += f", and 19 times in 20 between {count(span.low)} and {count(span.high)}. There {_are(n_alarms)}"
    if overall.kind == "more":
        return f"{begin}, about {about(n_alarms - overall.expected)} more than that."
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
    little = "" if span.low <= n_alarms <= span.high else ", which is unusual, but chance explains it"
    return f"{begin}{little}. Some rows may be abnormal all the same; the most abnormal come first below."


def about(value: float) -> str:
    """Write an expected number: rounded, with decimals where it is small."""
    return count(round(value)) if value >= 10 else plain(value, 2)


def _are(n: int) -> str:
    return "is one" if n == 1 else "are none" if n == 0 else f"are {count(n)}"
