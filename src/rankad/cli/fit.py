"""``rankad fit``: a table of normal rows to a model file."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankad._base.progress import told_to
from rankad._base.wording import cell, count, counted
from rankad.cli import options as opt
from rankad.cli.console import console, facts_table, metered, plain_table
from rankad.cli.messages import percent, promise, size, to_json

if TYPE_CHECKING:
    from rankad.detectors.table import TableDetector
    from rankad.modelfile import ModelCard
    from rankad.tables.encoded_columns import Column
    from rankad.tables.stored import Note


_MOST_COLUMNS = 20


def fit(
    table: str = opt.TABLE,
    model: Path = opt.option(..., "--model -m FILE", "Where to save the model."),
    alpha: float = opt.option(
        0.05,
        "--alpha -a RATE",
        "False-alarm rate; another can be chosen at any time later.",
        callback=opt.checked_rate,
    ),
    *,
    learning: opt.Learning,
    trim: str = opt.option(
        "0", "--trim SHARE", "Share of the rows that may be anomalies and is left out; auto if it is unknown."
    ),
    without_rows: bool = opt.option(
        False, "--without-rows", "Keep no rows in the file: no explanations, no near field."
    ),
    jobs: int | None = opt.JOBS,
    cluster: opt.Cluster,
    reading: opt.Reading,
    as_json: bool = opt.AS_JSON,
    quiet: bool = opt.QUIET,
) -> None:
    """Learn from a table of normal rows.

    Every column is used as what it looks like: numbers, categories, times, true or false, with or without
    missing values. Where that is a guess, a note names the column and the option that settles it. No labels
    are needed, and nothing has to be tuned.
    """
    from rankad import RankAD
    from rankad.cli.engines import columns_of, fit_by_engine
    from rankad.cli.whole_table import read_whole
    from rankad.modelfile import read_card
    from rankad.scoring.batches import of_table
    from rankad.scoring.loading import threads

    cluster.check()
    opt.check_file(model, "--model", [table])
    share = opt.checked_share(trim)
    started = time.monotonic()
    with metered(quiet) as meter:
        whole = read_whole(table, reading, meter) if cluster.engine is None else columns_of(table)
        name, n_rows = whole.name, whole.frame.height
        # A near field is made of rows.
        near = not without_rows
        inner = RankAD(alpha, near_field=near, trim=share, random_state=learning.seed, n_jobs=threads(jobs))
        detector = whole.detector(inner, learning)
        meter.begin("Learning")
        with told_to(meter.step), of_table(name):
            if cluster.engine is not None:
                detector, n_rows = fit_by_engine(detector, table, cluster)
            else:
                learned = detector._learn(whole.rows)
                # Text takes far more memory than the numbers that were read from it.
                del whole
                detector._fit_learned(learned)
                del learned
        # The model file does not record how many threads fitted it.
        detector.detector_.n_jobs = None
        meter.begin("Saving")
        # Again: the file may have appeared in the meantime.
        opt.check_file(model, "--model", [table])
        detector.save(model, rows=not without_rows)
    card, spent = read_card(model), time.monotonic() - started
    if as_json:
        _print_json(table, model, n_rows, detector, card, spent)
    elif not quiet:
        _print_text(name, model, n_rows, detector, card, spent)
        console().print(
            f"Next: rankad score NEW_TABLE --model {shlex.quote(str(model))}{opt.repeated(vars(reading))}",
            soft_wrap=True,
        )


def _print_json(
    table: str, model: Path, n_rows: int, detector: TableDetector, card: ModelCard, spent: float
) -> None:
    answer: dict[str, Any] = {
        "table": table,
        "model": str(model),
        "rows": n_rows,
        "columns": list(card.columns),
        "encoding": list(card.encoding),
        "understood": list(detector.encoder_.notes),
        "alpha": card.alpha,
        "promise": detector.false_alarm_bound(),
        "selected": {"scaling": card.scaling, "bandwidth": card.bandwidth, "C": card.C},
        "sha256": card.sha256,
        "seconds": round(spent, 3),
    }
    typer.echo(to_json(answer))


def _print_text(
    name: str, model: Path, n_rows: int, detector: TableDetector, card: ModelCard, spent: float
) -> None:
    from rankad._loops.cache import n_compiled

    out = console()
    out.print(f"Learned from {counted(n_rows, 'row')} of {name} in {spent:.1f} s.", soft_wrap=True)
    if n_compiled():
        out.print("Part of that went into compiling loops, once on this machine.")
    out.print()
    columns = plain_table("column", "used as", "how sure")
    encoder = detector.encoder_
    notes = {note.name: note for note in encoder.notes}
    for row in _listed(encoder.columns, {name: note.sure for name, note in notes.items()}):
        columns.add_row(*row)
    unused = dict.fromkeys(encoder.ids, "a name of rows, not used")
    for column in encoder.dropped:
        unused[column] = "free text, not used" if column in notes else "dropped"
    for column, why in unused.items():
        columns.add_row(cell(column), why, notes[column].sure if column in notes else "as asked for")
    out.print(columns, "")
    n_doubts = sum(bool(note.doubt) for note in encoder.notes)
    if n_doubts:
        which = "One column" if n_doubts == 1 else f"{count(n_doubts)} columns"
        out.print(
            f"{which} may not be what {'it looks' if n_doubts == 1 else 'they look'} like: see the notes, "
            f"which name the option that settles it. To confirm: {_confirming(encoder.notes)}\n",
            soft_wrap=True,
        )
    facts = []
    if card.n_trimmed:
        what = "kept from training" if card.parameters["trim"] == "auto" else "left out"
        facts.append((what, f"{counted(card.n_trimmed, 'row')} that lie farthest from the others (--trim)"))
    if card.selection is not None and card.bandwidth is not None:
        kernel = f"{card.scaling or 'no further'} scaling, kernel width {card.bandwidth:.3g}"
        facts.append(("selected", f"{kernel}; best of {count(len(card.selection.C))} settings tried"))
    facts.append((f"at {percent(card.alpha)}", promise(detector.false_alarm_bound()) + "."))
    out.print(facts_table(facts), "")
    out.print(f"Saved {model} ({size(card.n_bytes)}).")


def _confirming(notes: Sequence[Note]) -> str:
    """Return the options that confirm the kind of every doubtful column."""
    by_kind: dict[str, list[str]] = {}
    for note in notes:
        if note.doubt:
            by_kind.setdefault("drop" if note.kind == "text" else note.kind, []).append(cell(note.name))
    return " ".join(f"--{kind} {shlex.quote(','.join(names))}" for kind, names in by_kind.items())


def _listed(columns: Sequence[Column], sure: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return name, use and confidence of each column; of many columns, similar ones together."""
    if len(columns) <= _MOST_COLUMNS:
        return [(cell(column.name), described(column), sure.get(column.name, "")) for column in columns]
    alike: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        alike.setdefault((described(column), sure.get(column.name, "")), []).append(cell(column.name))
    return [
        (_first(names, 3, f" ... {names[-1]}"), f"{used_as} ({len(names)})", how_sure)
        for (used_as, how_sure), names in alike.items()
    ]


def _first(names: Sequence[str], n: int, rest: str | None = None) -> str:
    """Join the first n names, and say how many more there are, or `rest`."""
    if len(names) <= n:
        return ", ".join(names)
    return ", ".join(names[:n]) + (f" and {len(names) - n} more" if rest is None else rest)


def described(column: Column) -> str:
    """Say in a few words what a column is used as."""
    from rankad.tables.encoded_columns import CategoryColumn, NumberColumn, TimeColumn

    if isinstance(column, NumberColumn):
        kind = f"always {cell(column.median)}" if column.constant else "number"
        if column.values:
            kind = f"number, one of {_first([cell(value) for value in column.values], 5)}"
        elif column.wall:
            kind = f"number, {'above zero' if column.wall == 'positive' else 'zero or above'}"
        if written := column.format.describe():
            kind += f", {written}"
        if column.odd_words:
            kind += f"; {', '.join(map(cell, column.odd_words[:3]))} taken as missing"
        return f"{kind}, or missing" if column.missing else kind
    if isinstance(column, TimeColumn):
        names = {"hour": "hour of the day", "weekday": "weekday", "month": "season"}
        parts = ", ".join(names[part] for part in column.parts)
        kind = f"time: {parts}" if parts else "time, nothing learned from it (too short a span)"
        return f"{kind}, or missing" if column.missing else kind
    if isinstance(column, CategoryColumn):
        kind = f"category: {_first([cell(word) for word in column.categories if word is not None], 5)}"
        if column.n_other:
            kind += f"; {column.n_other} rare {'one' if column.n_other == 1 else 'ones'} taken together"
        missing = ", or missing" if None in column.categories else ""
        return ("true or false" if column.boolean else kind) + missing
    return "always missing; any value will be an alarm"
