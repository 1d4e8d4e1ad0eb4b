"""A table scored into another, in one pass (two for a false discovery rate) and in constant memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rankad._base.arrays import LARGEST, Bools
from rankad._base.files import is_stream
from rankad._base.wording import count
from rankad.detectors.table import TableDetector
from rankad.io.ahead import ReadAhead
from rankad.io.files import (
    BeginningDigest,
    TableError,
    TableReader,
    TableWriter,
    as_numbers,
    check_unpacked,
    file_identity,
    held_bytes,
    open_output,
    open_table,
)
from rankad.io.reader import Position
from rankad.io.suffixes import format_of
from rankad.modelfile import read_card
from rankad.scoring.answers import AnswerColumns, reasons_of
from rankad.scoring.batches import (
    Batch,
    Explained,
    MostAbnormal,
    Progress,
    check_explains,
    discovery_level,
    explained,
    of_table,
    scan,
    show_nothing,
    warn_of_unused,
)
from rankad.scoring.loading import load_for
from rankad.tables.encoded_columns import NumberColumn
from rankad.tables.judging import TableVerdict, Watch

__all__ = ["ScorePlan", "ScoredFile", "carry_out", "numbers_of", "out_format", "score_file", "stays_text"]

_N_SHOWN = 10
_DELIMITED = ("csv", "tsv")


@dataclass(frozen=True)
class ScorePlan:
    """What to score, by what, and what to do with it.

    Attributes
    ----------
    table : str
        A path, or - for standard input.
    model : Path
    out : str or None
        A path, - for standard output, None for no rows.
    alpha, fdr : float or None
        The rate of false alarms, by default the model's; or that of false discoveries.
    alarms_only, sort, resume : bool
    reasons : bool
        Whether there is a column that says why alarms are some.
    prefix : str
        Of the new columns' names.
    neutralize_formulas : bool
        Whether text that a spreadsheet would take for a formula gets a single quote before it.
    format, delimiter, encoding, sheet : str or None
        Of the table.
    """

    table: str
    model: Path
    out: str | None
    alpha: float | None = None
    fdr: float | None = None
    alarms_only: bool = False
    sort: bool = False
    resume: bool = False
    reasons: bool = False
    prefix: str = ""
    neutralize_formulas: bool = False
    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    sheet: str | None = None

    @property
    def to_stdout(self) -> bool:
        """Whether the rows go to standard output."""
        return self.out == "-"

    def open(self, start: Any = None) -> TableReader:
        """Open the table."""
        return open_table(
            self.table,
            format=self.format,
            delimiter=self.delimiter,
            encoding=self.encoding,
            sheet=self.sheet,
            start=start,
        )

    def ahead(self, reader: TableReader) -> TableReader:
        """Let a reader of a file read ahead."""
        return reader if self.table == "-" else ReadAhead(reader)


@dataclass
class ScoredFile:
    """What came of it.

    Attributes
    ----------
    alpha : float
        The rate of false alarms asked for; it says nothing where there is a rate of false discoveries.
    level : float
        Rows with a p-value of at most this are alarms.
    watch : Watch
        What is seen of the table on the way.
    n_rows, n_alarms, n_strange : int
        Strange rows have a cell such as no normal row has.
    most : list of Explained
        The most abnormal rows, where rows went nowhere else.
    verdict : TableVerdict
        On the table as a whole, when all of it has been scored.
    partly : bool
        Whether columns were compared by the rows of a part of the table: a run that went on does not know the
        others any more.
    """

    alpha: float
    level: float
    watch: Watch
    n_rows: int = 0
    n_alarms: int = 0
    n_strange: int = 0
    most: list[Explained] = field(default_factory=list)
    partly: bool = False

    def add(self, batch: Batch) -> Bools:
        """Count more rows, and return which of them are alarms."""
        alarms: Bools = batch.p_values <= self.level
        self.n_rows += len(batch.scores)
        self.n_alarms += int(np.count_nonzero(alarms))
        self.n_strange += int(np.count_nonzero(batch.scores <= -LARGEST))
        self.watch.add(batch.frame, batch.first, batch.p_values)
        return alarms

    @cached_property
    def verdict(self) -> TableVerdict:
        """The verdict on the table."""
        return self.watch.verdict()

    def state(self) -> dict[str, Any]:
        """Return the counts, for a run that goes on."""
        summary = self.watch.summary
        return {
            "n_rows": self.n_rows,
            "n_alarms": self.n_alarms,
            "n_strange": self.n_strange,
            "at_levels": list(summary.at_levels),
            "bins": list(summary.bins),
        }

    def go_on(self, state: dict[str, Any]) -> None:
        """Take up the counts of a run that was interrupted."""
        counts = dict(state)
        at_levels, bins = (tuple(counts.pop(name)) for name in ("at_levels", "bins"))
        self.watch.summary = replace(self.watch.summary, at_levels=at_levels, bins=bins)
        vars(self).update(counts)
        self.partly = True


def score_file(
    table: str | os.PathLike[str],
    model: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    n_jobs: int | None = None,
    progress: Progress = show_nothing,
    **options: Any,
) -> ScoredFile:
    """Score a table of any size in constant memory, as ``rankad score`` does.

    Parameters
    ----------
    table : str or path
        CSV, TSV, JSON, Parquet, Arrow, NumPy or Excel; - is standard input.
    model : str or path
        What `rankad fit` or a detector's `save` has written.
    out : str or path, optional
        Where the rows go, with p_value, score and alarm beside them; - is standard output. By default they go
        nowhere, and the ten most abnormal rows are explained.
    n_jobs : int, optional
        Threads; by default as many as there are cores.
    progress : callable
        Called with the reader of the table and a label before each batch.
    **options
        The other attributes of `ScorePlan`: alpha, fdr, alarms_only, sort, resume, reasons, prefix,
        neutralize_formulas, format, delimiter, encoding, sheet.

    Returns
    -------
    ScoredFile

    Examples
    --------
    >>> import numpy as np, polars as pl, tempfile, pathlib
    >>> from rankad import TableDetector
    >>> folder, rng = pathlib.Path(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> normal = pl.DataFrame({"flow": rng.normal(5, 1, 200), "mode": rng.choice(["eco", "full"], 200)})
    >>> TableDetector(alpha=0.05).fit(normal).save(folder / "pump.rankad")
    >>> pl.DataFrame({"flow": [5.1, 60.0], "mode": ["eco", "eco"]}).write_csv(folder / "new.csv")
    >>> scored = score_file(folder / "new.csv", folder / "pump.rankad", folder / "scored.csv")
    >>> scored.n_rows, scored.n_alarms
    (2, 1)
    """
    plan = ScorePlan(os.fspath(table), Path(model), None if out is None else os.fspath(out), **options)
    return carry_out(plan, n_jobs, progress=progress)


def carry_out(
    plan: ScorePlan,
    n_jobs: int | None = None,
    *,
    progress: Progress = show_nothing,
    tell: Callable[[str], None] | None = None,
) -> ScoredFile:
    """Score a table as planned.

    Parameters
    ----------
    plan : ScorePlan
    n_jobs : int or None
        Threads.
    progress : callable
        As `score_file` takes it.
    tell : callable
        Gets a sentence when an interrupted run is resumed.
    """
    with ExitStack() as stack:
        reader = stack.enter_context(plan.open())
        warn_of_unused(reader)
        with of_table(reader.name):
            columns = AnswerColumns.beside(reader.columns, plan.prefix, reasons=plan.reasons)
            detector = load_for(plan.model, reader.columns, n_jobs)
        detector.alpha = alpha = detector.alpha if plan.alpha is None else plan.alpha
        level = alpha if plan.fdr is None else _discovery_level(plan, plan.fdr, detector, progress)
        outcome = ScoredFile(alpha, level, Watch(detector, alpha))
        if plan.reasons:
            check_explains(detector, plan.model)
        if plan.fdr is None:
            _warn_if_silent(detector)
        if plan.out is None:
            most = MostAbnormal(_N_SHOWN)
            ahead = stack.enter_context(plan.ahead(reader))
            for batch in scan(ahead, detector, progress=progress):
                outcome.add(batch)
                most.add(batch)
            outcome.most = explained(detector, most.rows, level or alpha) if most.rows is not None else []
            return outcome
        writer = stack.enter_context(_writer(plan, reader, outcome))
        before = _ReadBefore(plan, reader)
        if writer.position is not None:
            state = before.checked(writer.position, writer.state)
            reader = stack.enter_context(plan.open(writer.position))
            outcome.go_on(state)
            if tell is not None:
                tell(f"Resuming after {count(reader.rows)} rows.")
        _write(plan, reader, detector, writer, columns, outcome, progress, before)
    return outcome


def _discovery_level(plan: ScorePlan, q: float, detector: TableDetector, progress: Progress) -> float:
    with plan.open() as reader:
        reader.numbers = numbers_of(detector)
        with plan.ahead(reader) as ahead:
            return discovery_level(ahead, detector, q, progress)


def _warn_if_silent(detector: TableDetector) -> None:
    """Let the detector say that no row can be an alarm, if so."""
    detector.predict(dict.fromkeys(detector.feature_names_in_.tolist(), pl.Series([], dtype=pl.Float64)))


def out_format(out: str, of_table: str) -> str | None:
    """Return the format by the name of the file; where there is no name, that of the table."""
    if out == "-" or is_stream(out):
        return of_table if of_table in ("tsv", "jsonl") else "csv"
    return format_of(out)


class _ReadBefore:
    """What a resumed run has read before: its digest stands in the journal, beside the counts.

    Of a compressed file offsets say nothing, and Parquet is not read from its beginning to its end: of these
    the whole file is in the fingerprint.
    """

    def __init__(self, plan: ScorePlan, reader: TableReader) -> None:
        self._plan = plan
        self._digest = BeginningDigest(plan.table) if plan.resume and _by_offset(reader) else None

    def noted(self, position: Position, state: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a run with the digest of what has been read."""
        if self._digest is None:
            return state
        return state | {"sha256": self._digest.up_to(position["offset"])}

    def checked(self, position: Position, noted: dict[str, Any]) -> dict[str, Any]:
        """Return the state alone, or raise if the file was changed where it has been read."""
        state = dict(noted)
        sha256 = state.pop("sha256", None)
        if self._digest is not None and self._digest.up_to(position["offset"]) != sha256:
            raise TableError(
                f"{self._plan.table} was changed since {self._plan.out}.part was started: its first "
                f"{position['offset']:,} bytes are not those that were read. To start over, remove "
                f"{self._plan.out}.part and {self._plan.out}.part.json."
            )
        return state


def _by_offset(reader: TableReader) -> bool:
    return reader.format in ("csv", "tsv", "jsonl") and not reader.compressed


def _writer(plan: ScorePlan, reader: TableReader, outcome: ScoredFile) -> TableWriter:
    assert plan.out is not None
    format = out_format(plan.out, reader.format)
    # What was separated by semicolons stays so.
    delimiter = reader.delimiter if format == reader.format == "csv" else None
    fingerprint = None
    if plan.resume:
        fingerprint = {
            "table": file_identity(plan.table, whole=not _by_offset(reader)),
            "model": read_card(plan.model).sha256,
            "alpha": outcome.alpha if plan.fdr is None else None,
            "fdr": plan.fdr,
            # With a false discovery rate it comes from all rows, those that are yet to be written too.
            "largest p-value of alarms": None if plan.fdr is None else outcome.level,
            "alarms only": plan.alarms_only,
            "reasons": plan.reasons,
            "prefix": plan.prefix,
            "neutralize formulas": plan.neutralize_formulas,
            "format": plan.format,
            "delimiter": plan.delimiter,
            "encoding": plan.encoding,
            "sheet": plan.sheet,
        }
    return open_output(
        plan.out,
        format=format,
        delimiter=delimiter,
        inputs=[plan.model] if plan.table == "-" else [plan.table, plan.model],
        resume=plan.resume,
        fingerprint=fingerprint,
        neutralize_formulas=plan.neutralize_formulas,
    )


def stays_text(format: str, written: str | None) -> bool:
    """Tell whether text of a table goes to another as it is; elsewhere numbers should be numbers."""
    return format not in _DELIMITED or written in _DELIMITED


def numbers_of(detector: TableDetector) -> list[str]:
    """Return the columns whose text can be read as numbers."""
    columns = detector.encoder_.columns
    # What 1.234 is, only the column knows where numbers have thousands separators.
    plain = [column for column in columns if isinstance(column, NumberColumn) and column.plainly_written]
    return [column.name for column in plain]


def _copies(plan: ScorePlan, reader: TableReader, writer: TableWriter) -> bool:
    """Tell whether rows can be written as the lines that they were read as."""
    same = reader.delimiter is not None and reader.delimiter == writer.delimiter
    # Reasons may have to be quoted.
    return same and not (plan.alarms_only or plan.sort or plan.reasons or plan.neutralize_formulas)


def _write(
    plan: ScorePlan,
    reader: TableReader,
    detector: TableDetector,
    writer: TableWriter,
    columns: AnswerColumns,
    outcome: ScoredFile,
    progress: Progress,
    before: _ReadBefore,
) -> None:
    copies, numbers = _copies(plan, reader, writer), numbers_of(detector)
    as_text = stays_text(reader.format, out_format(plan.out or "-", reader.format))
    kept: list[pl.DataFrame] = []
    held = 0
    wrote = writer.position is not None
    if copies:
        reader.numbers = numbers

    def put(scored: pl.DataFrame, lines: bytes | None, position: Position, state: dict[str, Any]) -> None:
        if lines is None:
            writer.write(scored)
        else:
            writer.write_beside(lines, reader.columns, scored)
        writer.commit(position, before.noted(position, state))

    # A batch is written to a file while the next is scored; never more than one waits. A pipe may be stuck,
    # and an interruption must not wait for that.
    with plan.ahead(reader) as ahead, ThreadPoolExecutor(1) as thread:
        written: Future[None] | None = None
        for batch in scan(ahead, detector, progress=progress):
            alarms = outcome.add(batch)
            reasons = (
                reasons_of(detector, batch, alarms, outcome.n_alarms, outcome.level) if plan.reasons else ()
            )
            scored, lines = columns.of(batch, alarms, reasons), batch.lines if copies else None
            if lines is None:
                frame = batch.frame if as_text else as_numbers(batch.frame, numbers, rows_before=batch.first)
                scored = frame.hstack(scored)
            if plan.alarms_only:
                scored = scored.filter(pl.Series(alarms))
            if plan.sort:
                kept.append(scored)
                held += held_bytes(scored)
                check_unpacked(plan.table, held)
                continue
            wrote = True
            if plan.to_stdout:
                put(scored, lines, ahead.position, outcome.state())
                continue
            if written is not None:
                written.result()
            written = thread.submit(put, scored, lines, ahead.position, outcome.state())
        if written is not None:
            written.result()
    if kept:
        writer.write(
            pl.concat(kept, how="vertical_relaxed").sort(columns.p_value, columns.score, maintain_order=True)
        )
    elif not wrote:
        writer.write(columns.empty(reader.columns))
