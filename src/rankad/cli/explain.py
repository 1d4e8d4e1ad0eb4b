"""``rankad explain``: why rows are abnormal."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankad._base.wording import as_typed, cell, count, difference, probability
from rankad.cli import options as opt
from rankad.cli.console import console, metered, plain_table, print_verdict
from rankad.cli.messages import percent, to_json
from rankad.explanations.sentences import MOST_REASONS, oddity, usually, weighing

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from rankad.detectors.table import TableDetector
    from rankad.explanations.explainer import Change, Explanation
    from rankad.io.reader import TableReader
    from rankad.scoring.batches import ExplainedRow, Rows
    from rankad.tables.judging import TableVerdict


_WIDE = 100
# Rows with the same id that are explained.
_MOST_PER_ID = 10


def explain(
    table: str = opt.TABLE,
    model: Path = opt.MODEL,
    row: list[str] | None = opt.option(
        None, "--row -r ROW", "A row to explain, by its number (the first is 1) or by its id. Repeatable."
    ),
    top: int = opt.option(10, "--top -n N", "How many of the most abnormal rows.", min=1),
    *,
    rates: opt.Rates,
    jobs: int | None = opt.JOBS,
    reading: opt.Reading,
    as_json: bool = opt.AS_JSON,
) -> None:
    """Say why rows are abnormal.

    Which columns make them so, what is usual there, and what would make them normal. Takes the most abnormal
    rows of the table, or those named with --row.
    """
    from rankad.scoring.batches import check_explains, explained, of_table
    from rankad.scoring.loading import load_for

    rates.check(table)
    for name in row or ():
        if _number(name) == 0 or not name.strip():
            raise opt.refuse("--row", f"{name!r} is not a row; the first row is 1")
    with metered() as meter, reading.open(table) as reader:
        with of_table(reader.name):
            detector = load_for(model, reader.columns, jobs)
        check_explains(detector, model)
        level = rates.set_on(detector, table, reading, meter.reading)
        chosen: Rows | None
        verdict: TableVerdict | None = None
        if row:
            chosen = _named(reader, detector, row)
        else:
            chosen, verdict = _most_abnormal(reader, detector, meter, top)
    # Without alarms at this false discovery rate, changes aim at the model's own rate.
    explanations = explained(detector, chosen, level or detector.alpha) if chosen is not None else []
    if as_json:
        typer.echo(to_json([as_dict(each, level) for each in explanations]))
        return
    out = console()
    if verdict is not None:
        print_verdict(out, verdict)
    if not explanations:
        out.print("The table has no rows.")
    for each in explanations:
        print_explained(out, each, level, rates.fdr)


def _number(name: str) -> int | None:
    """Return the number of a row, None if it is an id."""
    return int(name) if name.isascii() and name.isdigit() else None


def _most_abnormal(
    reader: TableReader, detector: TableDetector, meter: Any, top: int
) -> tuple[Rows | None, TableVerdict]:
    """Return the most abnormal rows, and the verdict on all rows."""
    from rankad.scoring.batches import MostAbnormal, scan
    from rankad.tables.judging import Watch

    most, watch = MostAbnormal(top), Watch(detector, detector.alpha)
    for batch in scan(reader, detector, "Looking", meter.reading):
        most.add(batch)
        watch.add(batch.frame, batch.first, batch.p_values)
    return most.rows, watch.verdict()


def _named(reader: TableReader, detector: TableDetector, wanted: list[str]) -> Rows:
    """Return the rows with these numbers or ids, in this order."""
    import numpy as np

    from rankad.scoring.batches import Rows, of_table

    ids = [name for name in detector.encoder_.ids if name in reader.columns]
    # The numbers of the rows with each name, and how many more there are.
    places: dict[str, list[int]] = {name: [] for name in wanted}
    more: Counter[str] = Counter()
    parts = []
    for frame in reader:
        here = set()
        for name, number in _matches(frame, reader.rows_before, ids, list(places)):
            if number not in places[name]:
                if len(places[name]) >= _MOST_PER_ID and number != _number(name):
                    more[name] += 1
                    continue
                places[name].append(number)
            here.add(number)
        if here:
            numbers = np.array(sorted(here))
            picked = frame[numbers - 1 - reader.rows_before]
            with of_table(reader.name):
                scores = np.asarray(detector.score_samples(picked))
            parts.append(Rows(picked, numbers, scores, detector.calibration_.p_values(scores)))
        if not ids and all(places.values()):
            break
    for name, numbers_of_name in places.items():
        if not numbers_of_name:
            raise ValueError(_absent(name, reader, ids, detector))
        if more[name]:
            warnings.warn(
                f"--row {name}: {more[name]:,} more rows have this id; only the first {len(numbers_of_name)} "
                f"are explained.",
                stacklevel=2,
            )
    joined = Rows.joined(parts)
    position = {int(number): at for at, number in enumerate(joined.numbers)}
    in_order = dict.fromkeys(number for numbers_of_name in places.values() for number in numbers_of_name)
    return joined.where(np.array([position[number] for number in in_order]))


def _matches(frame: pl.DataFrame, before: int, ids: list[str], names: list[str]) -> Iterator[tuple[str, int]]:
    """Yield each name with the number of a row of the batch that it denotes."""
    import polars as pl

    for name in names:
        if (number := _number(name)) is not None and before < number <= before + frame.height:
            yield name, number
    for column in ids:
        cells = frame[column].cast(pl.String, strict=False)
        for at in cells.is_in(names).arg_true().to_list():
            yield str(cells[at]), before + at + 1


def _absent(name: str, reader: TableReader, ids: list[str], detector: TableDetector) -> str:
    number, which = _number(name), " or ".join(map(repr, ids))
    if number is not None:
        nor = f", and no {name} in column {which}" if ids else ""
        return f"there is no row {number:,}; {reader.name} has {reader.rows:,} (the first is 1){nor}."
    if ids:
        return f"there is no row {name!r}: {reader.name} has no such cell in column {which}."
    why = "the model has no id column (rankad fit --id COLUMN names one)"
    if known := detector.encoder_.ids:
        why = f"{reader.name} lacks the id column {known[0]!r}"
    return f"--row {name} is not a row number, and {why}."


def as_dict(each: ExplainedRow, alpha: float) -> dict[str, Any]:
    """Return a row with its reasons, as printed in JSON."""
    from rankad.report.alarms import in_words

    explanation = each.explanation
    assert explanation is not None
    names = list(each.values)
    return {
        "row": each.number,
        "name": each.name,
        "p_value": each.p_value,
        "score": each.score,
        "alarm": each.p_value <= alpha,
        "alpha": alpha,
        "strange": [
            {"column": cell.column, "value": cell.value, "what": in_words(cell.what)} for cell in each.strange
        ],
        "reasons": explanation.reasons,
        "change": (change := explanation.change) and {"p_value": change.p_value, "moves": change.moves},
        "nearest": [
            {
                "row": near.row + 1,
                "distance": near.distance,
                "values": dict(zip(names, near.values, strict=True)),
            }
            for near in explanation.nearest
        ],
    }


def print_explained(out: Console, each: ExplainedRow, alpha: float, fdr: float | None = None) -> None:
    """Print a row with its reasons."""
    from rich.padding import Padding

    explanation = each.explanation
    assert explanation is not None
    name = f" ({cell(each.name)})" if each.name else ""
    asked = percent(alpha) if fdr is None else f"a false discovery rate of {percent(fdr)}"
    alarm = "an alarm" if each.p_value <= alpha else "no alarm"
    title = f"Row {count(each.number)}{name}: p-value {cell(each.p_value, 2)}, {alarm} at {asked}"
    out.print(title, style="bold")
    for odd in each.strange:
        out.print(f"  {oddity(odd)}.")
    _print_reasons(out, each, explanation)
    if (change := explanation.change) is not None:
        p_value = probability(change.p_value, alpha)
        out.print(Padding(f"Would be normal with {_moves(change)} (p-value {p_value})", (0, 0, 0, 2)))
    out.print()


def _moves(change: Change) -> str:
    """Write a change; of a long one, the most important columns."""
    shown = []
    for move in change.moves[:MOST_REASONS]:
        before, after = difference(move.before, move.after)
        shown.append(f"{cell(move.column)} {as_typed(move.before, before)} -> {as_typed(move.after, after)}")
    more = len(change.moves) - len(shown)
    return ", ".join(shown) + (f", and {more} more columns changed" if more else "")


def _print_reasons(out: Console, each: ExplainedRow, explanation: Explanation) -> None:
    """Print the columns that matter, with the values of the nearest normal rows."""
    places = {name: at for at, name in enumerate(each.values)}
    nearest = explanation.nearest[: 3 if out.width >= _WIDE else 2]
    near = [f"normal\nrow {count(one.row + 1)}" for one in nearest]
    table = plain_table(
        "column", "value", "usually", "p-value\nif usual", *near, right=("value", "p-value\nif usual", *near)
    )
    shown = weighing(explanation)
    for reason in shown:
        at = places.get(str(reason.column))
        values = [cell(one.values[at]) if at is not None else "" for one in nearest]
        table.add_row(
            cell(reason.column), cell(reason.value), usually(reason), cell(reason.p_value, 2), *values
        )
    out.print(table)
    more = len(explanation.reasons) - len(shown)
    if more:
        columns = "column weighs" if more == 1 else "columns weigh"
        out.print(f"  {more} more {columns} less.", style="dim")
