"""Score a table into another, in one pass (two for a false discovery rate) and in constant memory."""

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
from rankad.io.errors import TableError
from rankad.io.output import TableWriter, open_output
from rankad.io.reader import Position, ReadAhead, TableReader
from rankad.io.suffixes import format_of
from rankad.io.table_files import (
    BeginningDigest,
    as_numbers,
    check_unpacked,
    file_identity,
    held_bytes,
    open_table,
)
from rankad.modelfile import read_card
from rankad.scoring import batches
from rankad.scoring.batches import AnswerColumns, Batch, ExplainedRow, Progress, scan, show_nothing
from rankad.scoring.loading import load_for
from rankad.tables.judging import TableVerdict, Watch

_N_SHOWN = 10


@dataclass(frozen=True)
class ScorePlan:
    """The arguments of `score_file`."""

    table: str
    model: Path
    out: str | None
    reading: dict[str, Any]
    alpha: float | None = None
    fdr: float | None = None
    alarms_only: bool = False
    sort: bool = False
    resume: bool = False
    reasons: bool = False
    prefix: str = ""
    neutralize_formulas: bool = False

    @property
    def to_stdout(self) -> bool:
        """Whether the rows go to standard output."""
        return self.out == "-"

    def open(self, start: Any = None) -> TableReader:
        """Open the table."""
        return open_table(self.table, start=start, **self.reading)

    def ahead(self, reader: TableReader) -> TableReader:
        """Let the reader of a file read ahead."""
        return reader if self.table == "-" else ReadAhead(reader)


@dataclass
class ScoredFile:
    """The outcome of `score_file`.

    Attributes
    ----------
    plan : ScorePlan
    alpha : float
        The false-alarm rate.
    level : float
        Rows with a p-value of at most this are alarms: alpha, unless there is a false discovery rate.
    n_rows, n_alarms, n_strange : int
        A strange row has a cell such as no normal row has.
    most : list of ExplainedRow
        The most abnormal rows, if no rows were written.
    verdict : TableVerdict
        On the table as a whole.
    partly : bool
        Whether columns were compared on a part of the rows only, since the run was resumed.
    """

    plan: ScorePlan
    alpha: float
    level: float
    watch: Watch = field(repr=False)
    n_rows: int = 0
    n_alarms: int = 0
    n_strange: int = 0
    most: list[ExplainedRow] = field(default_factory=list)
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
        """Return the counts, for a run that resumes this one."""
        counts = {name: getattr(self, name) for name in ("n_rows", "n_alarms", "n_strange")}
        summary = self.watch.summary
        return counts | {"at_levels": list(summary.at_levels), "bins": list(summary.bins)}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue with the counts of an interrupted run."""
        at_levels, bins = (tuple(state.pop(name)) for name in ("at_levels", "bins"))
        self.watch.summary = replace(self.watch.summary, at_levels=at_levels, bins=bins)
        vars(self).update(state)
        self.partly = True


def score_file(
    table: str | os.PathLike[str],
    model: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    n_jobs: int | None = None,
    progress: Progress = show_nothing,
    notify: Callable[[str], None] | None = None,
    **options: Any,
) -> ScoredFile:
    """Score a table of any size in constant memory, as ``rankad score`` does.

    Parameters
    ----------
    table : str or path
        CSV, TSV, JSON, Parquet, Arrow, NumPy or Excel; - is standard input.
    model : str or path
        A model file of `rankad fit` or of a detector's `save`.
    out : str or path, optional
        Where the rows go, with p_value, score and alarm added; - is standard output. By default no rows are
        written, and the ten most abnormal rows are explained.
    n_jobs : int, optional
        Threads; by default as many as there are cores.
    progress : callable
        Called with the reader of the table and a label before each batch.
    notify : callable, optional
        Called with a sentence when an interrupted run is resumed.
    **options
        Which rows are alarms: `alpha`, by default the model's, or `fdr`, a false discovery rate. What is
        written: `alarms_only`, `sort` (most abnormal first), `reasons` (why a row is an alarm), `prefix` of
        the new columns, `neutralize_formulas`; `resume` continues an interrupted run. How the table is read:
        `format`, `delimiter`, `encoding`, `sheet`.

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
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(
            f"model must be the path of a model file, got {type(model).__name__}; save the detector first."
        )
    reading = {name: options.pop(name, None) for name in ("format", "delimiter", "encoding", "sheet")}
    to = None if out is None else os.fspath(out)
    plan = ScorePlan(os.fspath(table), Path(model), to, reading, **options)
    with ExitStack() as stack:
        reader = stack.enter_context(plan.open())
        batches.warn_of_unused(reader)
        with batches.of_table(reader.name):
            columns = AnswerColumns.beside(reader.columns, plan.prefix, reasons=plan.reasons)
            detector = load_for(plan.model, reader.columns, n_jobs)
        level = batches.set_rate(detector, plan.alpha, plan.fdr, plan.open, progress)
        scored = ScoredFile(plan, detector.alpha, level, Watch(detector, detector.alpha))
        if plan.reasons:
            batches.check_explains(detector, plan.model)
        if plan.fdr is None:
            # The detector warns if no row can be an alarm.
            names = detector.feature_names_in_.tolist()
            detector.predict(dict.fromkeys(names, pl.Series([], dtype=pl.Float64)))
        if plan.out is None:
            most = batches.MostAbnormal(_N_SHOWN)
            for batch in scan(stack.enter_context(plan.ahead(reader)), detector, progress=progress):
                scored.add(batch)
                most.add(batch)
            if most.rows is not None:
                scored.most = batches.explained(detector, most.rows, level or detector.alpha)
            return scored
        writer = stack.enter_context(_writer(plan, reader, scored))
        # Recorded in the journal, to detect changes of the part that was read.
        digest = BeginningDigest(plan.table) if plan.resume and _by_offset(reader) else None
        if writer.position is not None:
            scored.resume(_checked_state(plan, writer, digest))
            reader = stack.enter_context(plan.open(writer.position))
            if notify is not None:
                notify(f"Resuming after {count(reader.rows)} rows.")
        _write(scored, reader, detector, writer, columns, progress, digest)
    return scored


def open_beside(out: str, table_format: str, delimiter: str | None, **options: Any) -> TableWriter:
    """Open an output in the format of its name, of a pipe in that of the table; CSV keeps its delimiter."""
    format = format_of(out)
    if out == "-" or is_stream(out):
        format = table_format if table_format in ("tsv", "jsonl") else "csv"
    kept = delimiter if format == table_format == "csv" else None
    return open_output(out, format=format, delimiter=kept, **options)


def for_output(
    frame: pl.DataFrame, writer: TableWriter, typed: bool, detector: TableDetector, rows_before: int = 0
) -> pl.DataFrame:
    """Return rows as they are written: text stays as it is from CSV to CSV, elsewhere numbers are numbers."""
    if typed or writer.delimiter is not None:
        return frame
    return as_numbers(frame, batches.numbers_of(detector), rows_before=rows_before)


def _by_offset(reader: TableReader) -> bool:
    """Return whether the reader's position is an offset in the file: not if compressed, nor in Parquet."""
    return reader.format in ("csv", "tsv", "jsonl") and not reader.compressed


def _checked_state(plan: ScorePlan, writer: TableWriter, digest: BeginningDigest | None) -> dict[str, Any]:
    """Return the state of the interrupted run, or raise if the part of the file that it read was changed."""
    state, offset = dict(writer.state), writer.position.get("offset", 0)
    sha256 = state.pop("sha256", None)
    if digest is not None and digest.up_to(offset) != sha256:
        raise TableError(
            f"{plan.table} was changed since {plan.out}.part was started: its first {offset:,} bytes are not "
            f"those that were read. To start over, remove {plan.out}.part and {plan.out}.part.json."
        )
    return state


def _writer(plan: ScorePlan, reader: TableReader, scored: ScoredFile) -> TableWriter:
    assert plan.out is not None
    fingerprint = None
    if plan.resume:
        fingerprint = {
            "table": file_identity(plan.table, whole=not _by_offset(reader)),
            "model": read_card(plan.model).sha256,
            "alpha": scored.alpha if plan.fdr is None else None,
            "fdr": plan.fdr,
            # By a false discovery rate it depends on all rows, also those not yet written.
            "largest p-value of alarms": None if plan.fdr is None else scored.level,
            "alarms only": plan.alarms_only,
            "reasons": plan.reasons,
            "prefix": plan.prefix,
            "neutralize formulas": plan.neutralize_formulas,
        } | plan.reading
    return open_beside(
        plan.out,
        reader.format,
        reader.delimiter,
        inputs=[plan.model] if plan.table == "-" else [plan.table, plan.model],
        resume=plan.resume,
        fingerprint=fingerprint,
        neutralize_formulas=plan.neutralize_formulas,
    )


def _write(
    scored: ScoredFile,
    reader: TableReader,
    detector: TableDetector,
    writer: TableWriter,
    columns: AnswerColumns,
    progress: Progress,
    digest: BeginningDigest | None,
) -> None:
    plan = scored.plan
    # Copy the lines of CSV to CSV, unless rows are chosen or reordered, or cells may need quotes.
    copies = reader.delimiter is not None and reader.delimiter == writer.delimiter
    copies = copies and not (plan.alarms_only or plan.sort or plan.reasons or plan.neutralize_formulas)
    kept: list[pl.DataFrame] = []
    n_bytes, wrote = 0, writer.position is not None
    if copies:
        reader.numbers = batches.numbers_of(detector)

    def put(frame: pl.DataFrame, lines: bytes | None, position: Position, state: dict[str, Any]) -> None:
        if lines is None:
            writer.write(frame)
        else:
            writer.write_beside(lines, reader.columns, frame)
        if digest is not None:
            state["sha256"] = digest.up_to(position["offset"])
        writer.commit(position, state)

    # A batch is written while the next is scored, and at most one waits. Not to a pipe: an interruption must
    # not wait for its reader.
    with plan.ahead(reader) as ahead, ThreadPoolExecutor(1) as thread:
        written: Future[None] | None = None
        for batch in scan(ahead, detector, progress=progress):
            alarms = scored.add(batch)
            frame = columns.of(detector, batch, alarms, scored.n_alarms, scored.level)
            lines = batch.lines if copies else None
            if lines is None:
                rows = for_output(batch.frame, writer, reader.typed, detector, batch.first)
                frame = rows.hstack(frame)
            if plan.alarms_only:
                frame = frame.filter(pl.Series(alarms))
            if plan.sort:
                kept.append(frame)
                n_bytes += held_bytes(frame)
                check_unpacked(plan.table, n_bytes)
                continue
            wrote = True
            if plan.to_stdout:
                put(frame, lines, ahead.position, scored.state())
                continue
            if written is not None:
                written.result()
            written = thread.submit(put, frame, lines, ahead.position, scored.state())
        if written is not None:
            written.result()
    if kept:
        rows = pl.concat(kept, how="vertical_relaxed")
        writer.write(rows.sort(columns.p_value, columns.score, maintain_order=True))
    elif not wrote:
        writer.write(columns.empty(reader.columns))
