"""Text and tables on the console, and progress on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rankad._base.wording import cell, count, printable
from rankad.cli.messages import verdict_lines
from rankad.explanations.sentences import gist

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table
    from rich.text import Text

    from rankad.io.reader import TableReader
    from rankad.scoring.batches import ExplainedRow
    from rankad.tables.judging import TableVerdict


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints no control characters, and colours on a terminal only."""
    from rich.console import Console

    class SafeConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str("\n".join(map(printable, text.split("\n"))), **options)

    return SafeConsole(stderr=stderr, highlight=False, markup=False, emoji=False)


def print_verdict(out: Console, verdict: TableVerdict, *, partly: bool = False) -> None:
    """Say what is wrong with a table as a whole, if anything is."""
    lines = verdict_lines(verdict)
    if not lines:
        return
    out.print(lines[0], style="bold red" if verdict.overall.is_off else "bold yellow")
    for line in lines[1:]:
        out.print(line)
    if partly and verdict.columns:
        out.print("Columns were compared on the rows of this run only, not on those scored before it.")
    out.print()


def plain_table(*headers: str, right: tuple[str, ...] = ()) -> Table:
    """Return a table without lines, indented by two; columns in `right` are right-aligned."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 0, 0, 2), header_style="bold")
    for header in headers:
        table.add_column(header, justify="right" if header in right else "left", overflow="fold")
    return table


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names and facts, without headers."""
    table = plain_table("", "")
    table.show_header = False
    for name, fact in facts:
        table.add_row(name, fact)
    return table


def rows_table(explained: Sequence[ExplainedRow], level: float) -> Table:
    """Show each row in one line: what stands out, and whether it is an alarm."""
    named = any(row.name is not None for row in explained)
    table = plain_table(
        "row", *(["name"] if named else []), "p-value", "", "what stands out", right=("row", "p-value")
    )
    for row in explained:
        name = [cell(row.name) if row.name else ""] if named else []
        alarm = "alarm" if row.p_value <= level else ""
        table.add_row(
            count(row.number), *name, cell(row.p_value, 2), alarm, gist(row.explanation, row.strange)
        )
    return table


class Meter:
    """The progress of stages: the share done, the rate and the time left; silent without `progress`."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._label, self._started, self._rows = "", 0.0, 0

    def reading(self, reader: TableReader, label: str) -> None:
        """Show how far a table has been read; a new label starts a new stage."""
        if self._start(label, reader.total, reader.rows):
            return
        spent = time.monotonic() - self._started
        rate = f"{(reader.rows - self._rows) / spent:,.0f} rows/s" if spent > 0.5 else ""
        self._update(reader.done, f"{reader.rows:,} rows  {rate}")

    def step(self, label: str, done: int, total: int) -> None:
        """Show how many steps are done."""
        self._start(label.capitalize(), total, 0)
        self._update(done, f"{done} of {total}")

    def _update(self, done: int, note: str) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, note=note)

    def begin(self, label: str) -> None:
        """Show a stage of unknown length."""
        self._start(label, None, 0)

    def _start(self, label: str, total: int | None, rows: int) -> bool:
        """Start a stage unless it is running; return whether there is nothing to update yet."""
        if self._progress is None:
            return True
        if label == self._label:
            return False
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._label, self._started, self._rows = label, time.monotonic(), rows
        self._task = self._progress.add_task(label, total=total, note="")
        return True


@contextmanager
def metered(quiet: bool = False) -> Iterator[Meter]:
    """Show progress while the block runs, if standard error is a terminal, and clear it at the end."""
    if quiet or not sys.stderr.isatty():
        yield Meter(None)
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        console=console(stderr=True),
        transient=True,
    ) as progress:
        yield Meter(progress)
