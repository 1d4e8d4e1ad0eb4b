"""A page that was made: to be looked at in a notebook, or saved."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from rankad._base.files import replacing

__all__ = ["Report"]

# A page in a notebook, in pixels.
_HEIGHT = 900


class Report:
    """An HTML page about a scored table. In a notebook it shows itself.

    Attributes
    ----------
    html : str
        The page: one file that needs nothing else.
    n_rows, n_alarms : int
    alpha : float
        The false-alarm rate asked for.
    """

    def __init__(self, html: str, n_rows: int, n_alarms: int, alpha: float) -> None:
        self.html, self.n_rows, self.n_alarms, self.alpha = html, n_rows, n_alarms, alpha

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path
            Such as "report.html". A file of that name is replaced by a whole one or not at all.
        """
        where = Path(path)
        if where.suffix.lower() not in ("", ".html", ".htm"):
            raise ValueError(
                f"a report is an HTML page, and {where.name} promises something else; name it "
                f"{where.with_suffix('.html').name}. A browser prints it to PDF."
            )
        with replacing(where) as out:
            out.file.write(self.html.encode("utf-8", errors="replace"))

    def __repr__(self) -> str:
        rows, alarms = (
            f"{n:,} {word}{'' if n == 1 else 's'}"
            for n, word in ((self.n_rows, "row"), (self.n_alarms, "alarm"))
        )
        return f"<Report: {rows}, {alarms} at alpha={self.alpha:g}; save('report.html') writes the page>"

    def _repr_html_(self) -> str:
        # In a frame of its own: the page's style is not that of the notebook.
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" '
            f'style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
        )
