"""Explanations as people read them: lines of text, a piece of HTML, columns of a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.util import find_spec
from numbers import Real
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from rankad._base.checks import is_count
from rankad._base.wording import difference, percent, probability, shown
from rankad.explanations.sentences import MOST_REASONS, usually, weighing

if TYPE_CHECKING:
    from rankad.explanations.explainer import Change, Explanation, Reason

_LIBRARIES = ("polars", "pandas")
# So many explanations are printed in full, and of so many there is a line each.
_IN_FULL, _IN_LINES = 3, 20
_HEADINGS = ("column", "value", "usually", "p-value if usual")
_LINE_HEADINGS = ("row", "p-value", "", "first reason", "value", "usually")


class Explanations(list["Explanation"]):
    """The explanations of some rows: a list of `Explanation` that prints, as text and in notebooks.

    `library` is what `to_frame` makes by default: "polars", "pandas", or None for what is installed.
    """

    def __init__(self, explanations: Iterable[Explanation] = (), *, library: str | None = None) -> None:
        super().__init__(explanations)
        self._library = library

    def to_frame(self, *, top: int | None = None, library: str | None = None) -> Any:
        """Return a data frame: a line for each row and each of its columns, in the order of the reasons.

        Parameters
        ----------
        top : int, optional
            How many reasons of each row; all by default. With 1, there is one line for each row.
        library : {"polars", "pandas"}, optional
            By default pandas where rows came as a pandas frame, else polars.

        Returns
        -------
        polars or pandas DataFrame
            With the columns row (its position, from 0), name (if rows have names), p_value, alarm, column,
            value, typical, low, high, p_value_if_typical, gain (see `Reason`) and place (of the reason, from
            1). Values are numbers where all of them are, else text.

        Examples
        --------
        >>> import numpy as np
        >>> from rankad import RankAD
        >>> rng = np.random.default_rng(0)
        >>> detector = RankAD().fit(rng.normal(size=(300, 3)))
        >>> why = detector.explain([[0.1, 7.0, 0.2], [0.0, 0.1, 0.3]])
        >>> why.to_frame(top=1).select("row", "alarm", "column", "value").rows()
        [(0, True, 1, 7.0), (1, False, 1, 0.1)]
        """
        if top is not None and (not is_count(top) or top < 1):
            raise ValueError(f"top must be an integer >= 1 or None, got {top!r}.")
        chosen = library or self._library or next(filter(find_spec, _LIBRARIES), None)
        if chosen not in _LIBRARIES:
            raise (
                ImportError("to_frame needs polars or pandas: pip install 'rankad[tables]'.")
                if chosen is None
                else ValueError(f"library must be 'polars', 'pandas' or None, got {chosen!r}.")
            )
        return _frame(chosen, _as_columns(self, top))

    @overload
    def __getitem__(self, at: SupportsIndex) -> Explanation: ...
    @overload
    def __getitem__(self, at: slice) -> Explanations: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Explanation | Explanations:
        if isinstance(at, slice):
            return Explanations(super().__getitem__(at), library=self._library)
        return super().__getitem__(at)

    def __repr__(self) -> str:
        if not self:
            return "No rows to explain."
        if len(self) <= _IN_FULL:
            return "\n\n".join(map(as_text, self))
        left = len(self) - _IN_LINES
        more = [f"  ... and {left:,} more rows; to_frame() has them all."] if left > 0 else []
        return "\n".join([*_aligned([_LINE_HEADINGS, *map(_line, self[:_IN_LINES])]), *more])

    def _repr_html_(self) -> str:
        if not self:
            return "<p>No rows to explain.</p>"
        if len(self) <= _IN_FULL:
            return "".join(map(as_html, self))
        left = len(self) - _IN_LINES
        more = f"<p>... and {left:,} more rows; <code>to_frame()</code> has them all.</p>" if left > 0 else ""
        return _html_table(_LINE_HEADINGS, map(_line, self[:_IN_LINES])) + more


def library_of(X: Any) -> str | None:
    """Return "pandas" or "polars" where rows came as such a frame, else None."""
    library = type(X).__module__.partition(".")[0]
    return library if library in _LIBRARIES else None


def labels_of(X: Any) -> list[str] | None:
    """Return what the index of a pandas frame calls its rows, or of a row; None if it only counts them."""
    if library_of(X) != "pandas":
        return None
    if not hasattr(X, "columns"):
        return None if X.name is None else [str(X.name)]
    labels = [str(label) for label in X.index]
    return None if labels == [str(at) for at in range(len(labels))] else labels


def _frame(library: str, columns: dict[str, list[Any]]) -> Any:
    if library == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    import polars

    return polars.DataFrame(columns, strict=False)


def as_text(explanation: Explanation) -> str:
    """Write one explanation, a line for each reason that weighs."""
    reasons, notes = _told(explanation)
    table = _aligned([_HEADINGS, *map(_cells, reasons)])
    strange = [f"  {oddity}." for oddity in explanation.strange]
    return "\n".join([_headline(explanation), *strange, *table, *(f"  {note}" for note in notes)])


def as_html(explanation: Explanation) -> str:
    """Write one explanation as HTML that a notebook shows; all text of the table is escaped."""
    reasons, notes = _told(explanation)
    headline = f"<p><strong>{escape(_headline(explanation))}</strong></p>"
    table = _html_table(_HEADINGS, map(_cells, reasons))
    strange = "".join(f"<p>{escape(oddity)}.</p>" for oddity in explanation.strange)
    return headline + strange + table + "".join(f"<p>{escape(note)}</p>" for note in notes)


def _as_columns(explanations: Sequence[Explanation], top: int | None) -> dict[str, list[Any]]:
    """Return the columns of a frame: a line for each row and each of its `top` first reasons."""
    lines = [(row, place, why) for row in explanations for place, why in enumerate(row.reasons[:top], 1)]
    return {
        "row": [row.row for row, _, _ in lines],
        **({"name": [row.name for row, _, _ in lines]} if any(row.name for row in explanations) else {}),
        "p_value": [row.p_value for row, _, _ in lines],
        "alarm": [row.is_alarm for row, _, _ in lines],
        "column": [reason.column for _, _, reason in lines],
        **{
            name: _of_one_kind([getattr(reason, name) for _, _, reason in lines])
            for name in ("value", "typical", "low", "high")
        },
        "p_value_if_typical": [reason.p_value for _, _, reason in lines],
        "gain": [reason.gain for _, _, reason in lines],
        "place": [place for _, place, _ in lines],
    }


def _of_one_kind(cells: list[Any]) -> list[Any]:
    """Return numbers where all cells are, else their text; what is missing is None."""
    if all(cell is None or (isinstance(cell, Real) and not isinstance(cell, bool)) for cell in cells):
        return [None if cell is None else float(cell) for cell in cells]
    return [None if cell is None else str(cell) for cell in cells]


def _told(explanation: Explanation) -> tuple[list[Any], list[str]]:
    """Return the reasons worth a line, and notes on the other columns and on a change that helps."""
    reasons = weighing(explanation)
    more, notes = len(explanation.reasons) - len(reasons), []
    if more:
        notes.append(f"{more} more column{'' if more == 1 else 's'} weigh{'s' if more == 1 else ''} less.")
    if explanation.change is not None:
        notes.append(_change(explanation.change, explanation.alpha))
    return reasons, notes


def _headline(explanation: Explanation) -> str:
    alpha, alarm = explanation.alpha, ""
    if alpha is not None:
        alarm = f", {'an alarm' if explanation.is_alarm else 'no alarm'} at {percent(alpha)}"
    row = "A row" if explanation.row is None else f"Row {explanation.row:,}"
    name = f" ({_cell(explanation.name)})" if explanation.name else ""
    return f"{row}{name}: p-value {probability(explanation.p_value, alpha)}{alarm}".replace("\xa0", " ")


def _cells(reason: Reason) -> tuple[str, ...]:
    return _name(reason.column), _cell(reason.value), usually(reason, _cell), probability(reason.p_value)


def _line(row: Explanation) -> tuple[str, ...]:
    number = "" if row.row is None else f"{row.row:,}"
    number += f" ({_cell(row.name)})" if row.name else ""
    first = _cells(row.reasons[0])[:3] if row.reasons else ("", "", "")
    return number, probability(row.p_value, row.alpha), "alarm" if row.is_alarm else "", *first


def _name(column: Any) -> str:
    return f"column {column}" if isinstance(column, int) else _cell(str(column))


def _cell(value: Any, digits: int = 4) -> str:
    """Write a cell in one line that a terminal can be given."""
    text = shown(value, digits)
    if isinstance(value, Real):
        # The minus sign of keyboards, so that numbers can be copied.
        text = text.replace("\N{MINUS SIGN}", "-")
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _change(change: Change, alpha: float | None) -> str:
    moves = []
    for move in change.moves[:MOST_REASONS]:
        before, after = (text.replace("\N{MINUS SIGN}", "-") for text in difference(move.before, move.after))
        moves.append(f"{_name(move.column)}: {_cell(before)} -> {_cell(after)}")
    left = len(change.moves) - len(moves)
    more = f", and {left} more column{'' if left == 1 else 's'} changed" if left else ""
    return f"Would be normal with {', '.join(moves)}{more} (p-value {probability(change.p_value, alpha)})."


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return lines whose cells stand below one another."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def _html_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        inside = "".join(
            f'<{tag} style="text-align: left; padding-right: 1em">{escape(cell)}</{tag}>' for cell in cells
        )
        return f"<tr>{inside}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', headings)}</thead><tbody>{body}</tbody></table>"
