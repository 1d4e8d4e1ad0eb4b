"""What is said first: how many alarms there are, and whether chance alone would raise as many."""

from __future__ import annotations

from typing import NamedTuple

from rankad.calibration import n_attainable
from rankad.report.contents import ReportData
from rankad.report.volumes import chance_alarms
from rankad.report.wording import count, percent, plain

__all__ = ["Headline", "headline"]


class Headline(NamedTuple):
    """The head of the page.

    Attributes
    ----------
    n_alarms, n_rows, share, expected, usual : str
        Figures as they are written.
    verdict : {"more", "some", "usual", "fewer", "silent", "empty"}
        More alarms than chance explains; no more, but more at a stricter rate; as many as usual, fewer; none
        possible; no rows.
    title, text : str
        That in words.
    """

    n_alarms: str
    n_rows: str
    share: str
    expected: str
    usual: str
    verdict: str
    title: str
    text: str


def headline(data: ReportData) -> Headline:
    """Compare the alarms with what nominal rows would raise."""
    n_rows, n_alarms = data.p_values.n_rows, data.p_values.n_alarms(data.alpha)
    alpha, n = percent(data.alpha), data.model.n_calibration
    mean, span = data.alpha * n_rows, chance_alarms(n_rows, n, data.alpha)
    expected = count(round(mean)) if mean >= 10 else plain(mean, 2)
    usual = f"{count(span.low)} to {count(span.high)}"
    chance = (
        f"A false-alarm rate of {alpha} means that nominal rows raise an alarm, too, {alpha} of the time: if "
        f"all {count(n_rows)} rows were nominal, there would be about {expected} alarms, and 19 times in 20 "
        f"between {count(span.low)} and {count(span.high)}. "
    )
    if n_rows == 0:
        verdict, title, text = "empty", "No rows were scored", "The table has no rows."
    elif n_attainable(n, data.alpha) == 0:
        verdict, title = "silent", f"No row can raise an alarm at {alpha}"
        text = (
            f"P-values come from {count(n)} nominal rows, so that the smallest there can be is 1 in "
            f"{count(n + 1)}. Choose a larger false-alarm rate, or fit on more nominal rows."
        )
    elif n_alarms > span.high:
        verdict, title = "more", "More alarms than chance explains"
        more = n_alarms - mean
        text = chance + (
            f"There are {count(n_alarms)}, about {count(round(more)) if more >= 10 else plain(more, 2)} more "
            f"than that. Among the alarms, those with the smallest p-values are the surest."
        )
    elif (strictest := _level_of_surplus(data)) is not None:
        n_sure, sure = data.p_values.n_alarms(strictest), chance_alarms(n_rows, n, strictest)
        verdict, title = "some", "Some rows stand out"
        text = chance + (
            f"There {_are(n_alarms)}, no more than that. But {count(n_sure)} would be {_alarms(n_sure)} even "
            f"at {percent(strictest)}, where chance explains no more than {count(sure.high)}: the most "
            f"abnormal rows, first below, are worth a look."
        )
    elif n_alarms < span.low:
        verdict, title = "fewer", "Fewer alarms than nominal rows raise"
        text = chance + (
            f"There {_are(n_alarms)}. Rows that vary less than nominal ones do that, and so do the very rows "
            f"that the model was fitted on."
        )
    else:
        verdict, title = "usual", "About as many alarms as nominal rows raise"
        text = chance + (
            f"There {_are(n_alarms)}: taken together, these rows look like nominal ones. Some may be "
            f"abnormal all the same; the most abnormal come first below."
        )
    share = percent(n_alarms / n_rows, 2) if n_rows else "–"
    return Headline(count(n_alarms), count(n_rows), share, expected, usual, verdict, title, text)


def _level_of_surplus(data: ReportData) -> float | None:
    """Return the strictest rate, stricter than alpha, at which there are more alarms than chance explains."""
    n_rows, n = data.p_values.n_rows, data.model.n_calibration
    for level in reversed(data.p_values.levels):
        possible = level < data.alpha and n_attainable(n, level) > 0
        if possible and data.p_values.n_alarms(level) > chance_alarms(n_rows, n, level).high:
            return level
    return None


def _alarms(n: int) -> str:
    return "an alarm" if n == 1 else "alarms"


def _are(n: int) -> str:
    return "is one" if n == 1 else "are none" if n == 0 else f"are {count(n)}"
