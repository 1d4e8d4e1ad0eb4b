"""What is said first: how many alarms there are, and whether chance alone would raise as many."""

from __future__ import annotations

from typing import NamedTuple

from rankad._base.wording import count, percent, plain, shown
from rankad.alarms.verdict import Verdict, judge
from rankad.report.contents import ReportData
from rankad.report.verdicts import Pen, spoken
from rankad.tables.judging import TableVerdict

__all__ = ["Headline", "headline"]

_PAGE = Pen(shown, percent)


class Headline(NamedTuple):
    """The head of the page.

    Attributes
    ----------
    n_alarms, n_rows, share, expected, usual : str
        Figures as they are written.
    verdict : str
        The kind of verdict: see `rankad.alarms.verdict.Verdict`.
    off : bool
        Whether chance does not explain the table.
    title, text : str
        That in words.
    points : tuple of str
        What else there is to say of the table: how p-values are spread, and which columns have moved.
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
    """Compare the alarms with what nominal rows would raise."""
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
        _text(overall, data),
        points,
    )


def _text(overall: Verdict, data: ReportData) -> str:
    """Say what the number of alarms is held against, and what follows."""
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
        return (
            f"{begin}, and more where a model was calibrated on the rows it was trained on, as this one was."
        )
    span = overall.usual
    begin += f", and 19 times in 20 between {count(span.low)} and {count(span.high)}. There {_are(n_alarms)}"
    if overall.kind == "more":
        more = n_alarms - overall.expected
        return f"{begin}, about {_about(more)} more than that."
    if overall.kind == "some":
        strict = overall.strict_alpha
        assert strict is not None
        n_sure = data.p_values.n_alarms(strict)
        most = data.model.chance.span(overall.n_rows, strict).high
        return (
            f"{begin}, no more than that. But {count(n_sure)} would be {_alarms(n_sure)} even at "
            f"{percent(strict)}, where {count(most)} {'is' if most == 1 else 'are'} usual at most: the most "
            f"abnormal rows, first below, are worth a look."
        )
    if overall.kind == "fewer":
        return (
            f"{begin}. Rows that vary less than normal ones do that, and so do the very rows that the model "
            f"was fitted on."
        )
    if overall.is_off:
        return f"{begin}."
    little = "" if span.low <= n_alarms <= span.high else ", which is unusual, but chance explains it"
    return f"{begin}{little}. Some rows may be abnormal all the same; the most abnormal come first below."


def _about(value: float) -> str:
    return count(round(value)) if value >= 10 else plain(value, 2)


def _alarms(n: int) -> str:
    return "an alarm" if n == 1 else "alarms"


def _are(n: int) -> str:
    return "is one" if n == 1 else "are none" if n == 0 else f"are {count(n)}"
