"""Where commands write: text on standard output, progress on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rankad._base.wording import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table
    from rich.text import Text

    from rankad.io.reader import TableReader
    from rankad.scoring.batches import Explained
    from rankad.tables.judging import TableVerdict

__all__ = ["Meter", "metered", "plain_table", "print_verdict", "rows_table", "screen"]


def screen(*, stderr: bool = False) -> Console:
    """Return a console: no colours where it is no terminal, no characters that a terminal would obey."""
    from rich.console import Console

    class Screen(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str("\n".join(map(printable, text.split("\n"))), **options)

    return Screen(stderr=stderr, highlight=False, markup=False, emoji=False)


def print_verdict(out: Console, verdict: TableVerdict, *, partly: bool = False) -> None:
    """Say what is wrong with a table as a whole, if anything is."""
    from rankad.cli.words import verdict_lines

    lines = verdict_lines(verdict)
    if not lines:
        return
    out.print(lines[0], style="bold red" if verdict.overall.is_off else "bold yellow")
    for line in lines[1:]:
        out.print(line)
    if partly and verdict.columns:
        out.print("Columns were compared by the rows of this run alone, not by those scored before it.")
    out.print()


def plain_table(*headers: str, right: tuple[str, ...] = ()) -> Table:
    """Return a table without lines, indented by two; numbers in the columns named by `right`."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 0, 0, 2), header_style="bold")
    for header in headers:
        table.add_column(header, justify="right" if header in right else "left", overflow="fold")
    return table


def rows_table(found: Sequence[Explained], level: float) -> Table:
    """Show rows in a line each: what stands out, and whether they are alarms."""
    from rankad._base.wording import cell, count
    from rankad.explanations.sentences import gist

    named = any(row.name is not None for row in found)
    table = plain_table(
        "row", *(["name"] if named else []), "p-value", "", "what stands out", right=("row", "p-value")
    )
    for row in found:
        name = [cell(row.name) if row.name else ""] if named else []
        alarm = "alarm" if row.p_value <= level else ""
        table.add_row(
            count(row.number), *name, cell(row.p_value, 2), alarm, gist(row.explanation, row.strange)
        )
    return table


class Meter:
    """Stages of work, each with its share done, its rate and the time left.

    Parameters
    ----------
    progress : rich Progress or None
        None shows nothing.
    """

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._label = ""
        self._begun = 0.0
        self._rows = 0

    def reading(self, reader: TableReader, label: str) -> None:
        """Show how far a table has been read; the first call of a label begins the stage."""
        if self._begin(label, reader.total, reader.rows):
            return
        assert self._progress is not None
        assert self._task is not None
        spent = time.monotonic() - self._begun
        rate = f"{(reader.rows - self._rows) / spent:,.0f} rows/s" if spent > 0.5 else ""
        told = f"{reader.rows:,} rows  {rate}"
        self._progress.update(self._task, completed=reader.done, told=told)

    def step(self, label: str, done: int, total: int) -> None:
        """Show how many steps are done."""
        self._begin(label.capitalize(), total, 0)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, told=f"{done} of {total}")

    def begin(self, label: str) -> None:
        """Show that something goes on of which nobody knows how long it takes."""
        self._begin(label, None, 0)

    def _begin(self, label: str, total: int | None, rows: int) -> bool:
        """Begin a stage unless it is going on; tell whether there is nothing to update yet."""
        if self._progress is None:
            return True
        if label == self._label:
            return False
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._label, self._begun, self._rows = label, time.monotonic(), rows
        self._task = self._progress.add_task(label, total=total, told="")
        return True


@contextmanager
def metered(quiet: bool = False) -> Iterator[Meter]:
    """Show progress while the block runs, where standard error is a terminal; it leaves nothing behind."""
    if quiet or not sys.stderr.isatty():
        yield Meter(None)
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        console=screen(stderr=True),
        transient=True,
    ) as progress:
        yield Meter(progress)
