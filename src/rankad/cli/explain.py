"""``rankad explain``: why rows are abnormal."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankad.cli.options import (
    Alpha,
    AsJson,
    Delimiter,
    DiscoveryRate,
    Encoding,
    Format,
    Jobs,
    Model,
    Sheet,
    Table,
    Verbose,
    check_rates,
)

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from rankad.detectors.table import TableDetector
    from rankad.explanations.explainer import Change, Explanation
    from rankad.io.reader import TableReader
    from rankad.scoring.batches import Explained, Rows
    from rankad.tables.judging import TableVerdict

__all__ = ["as_dict", "explain", "print_explained"]

_WIDE = 100
# Rows of one id that are explained.
_MOST_OF_ONE_NAME = 10


def explain(
    table: Table,
    model: Model,
    row: Annotated[
        list[str] | None,
        typer.Option(
            "--row",
            "-r",
            metavar="ROW",
            help="A row to explain, by its number (the first is 1) or by what an id column has. Repeatable.",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", "-n", min=1, metavar="N", help="How many of the most abnormal rows.")
    ] = 10,
    alpha: Alpha = None,
    fdr: DiscoveryRate = None,
    jobs: Jobs = None,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Say why rows are abnormal.

    Which columns make them so, what is usual there, and what would make them normal. Takes the most abnormal
    rows of the table, or those named with --row.
    """
    from rankad.cli.screen import metered, print_verdict, screen
    from rankad.cli.words import as_json as written
    from rankad.io.files import open_table
    from rankad.scoring.batches import check_explains, discovery_level, explained, of_table
    from rankad.scoring.loading import load_for

    check_rates(table, alpha, fdr)
    _check_rows(row)
    how = {"format": format, "delimiter": delimiter, "encoding": encoding, "sheet": sheet}
    with metered() as meter, open_table(table, **how) as reader:  # type: ignore[arg-type]
        with of_table(reader.name):
            detector = load_for(model, reader.columns, jobs)
        check_explains(detector, model)
        detector.alpha = rate = detector.alpha if alpha is None else alpha
        level = rate
        if fdr is not None:
            with open_table(table, **how) as first:  # type: ignore[arg-type]
                level = discovery_level(first, detector, fdr, meter.reading)
        chosen: Rows | None
        verdict: TableVerdict | None = None
        if row:
            chosen = _named(reader, detector, row)
        else:
            chosen, verdict = _most_abnormal(reader, detector, meter, top)
    # A row that is no alarm by its discovery rate is explained by what it would take at the model's rate.
    found = explained(detector, chosen, level or rate) if chosen is not None else []
    if as_json:
        typer.echo(written([as_dict(each, level) for each in found]))
        return
    out = screen()
    if verdict is not None:
        print_verdict(out, verdict)
    if not found:
        out.print("The table has no rows.")
    for each in found:
        print_explained(out, each, level, fdr)


def _check_rows(wanted: list[str] | None) -> None:
    for name in wanted or ():
        if _number(name) == 0 or not name.strip():
            raise typer.BadParameter(f"{name!r} is no row; the first row is 1", param_hint="--row")


def _number(name: str) -> int | None:
    """Return the number of a row, None where it is named otherwise."""
    return int(name) if name.isascii() and name.isdigit() else None


def _most_abnormal(
    reader: TableReader, detector: TableDetector, meter: Any, top: int
) -> tuple[Rows | None, TableVerdict]:
    """Return the most abnormal rows, and the verdict on all of them."""
    from rankad.scoring.batches import MostAbnormal, scan
    from rankad.tables.judging import Watch

    most, watch = MostAbnormal(top), Watch(detector, detector.alpha)
    for batch in scan(reader, detector, "Looking", meter.reading):
        most.add(batch)
        watch.add(batch.frame, batch.first, batch.p_values)
    return most.rows, watch.verdict()


def _named(reader: TableReader, detector: TableDetector, wanted: list[str]) -> Rows:
    """Return the rows that are wanted, by number or by id, in that order."""
    import numpy as np
    import polars as pl

    from rankad.scoring.batches import Rows, of_table

    names = list(dict.fromkeys(wanted))
    ids = [name for name in detector.encoder_.ids if name in reader.columns]
    numbers = {name: number for name in names if (number := _number(name)) is not None}
    # Where in the table the rows of each name are.
    places: dict[str, list[int]] = {name: [] for name in names}
    more: Counter[str] = Counter()
    parts = []
    for frame in reader:
        here = _here(frame, reader.rows_before, ids, names, numbers, places, more)
        if here:
            picked = frame[here]
            with of_table(reader.name):
                scores = np.asarray(detector.score_samples(picked))
            at = np.array(here) + 1 + reader.rows_before
            parts.append(Rows(picked, at, scores, detector.calibration_.p_values(scores)))
        if not ids and all(places.values()):
            break
    for name in names:
        if not places[name]:
            raise ValueError(_absent(name, reader, ids, detector))
        if more[name]:
            warnings.warn(
                f"--row {name}: {more[name]:,} more rows have this id; the first {len(places[name])} are "
                f"explained.",
                stacklevel=2,
            )
    joined = Rows(
        pl.concat([part.frame for part in parts], how="vertical_relaxed"),
        *(np.concatenate([part[at] for part in parts]) for at in (1, 2, 3)),
    )
    position = {int(number): at for at, number in enumerate(joined.numbers)}
    in_order = dict.fromkeys(number for name in names for number in places[name])
    return joined.where(np.array([position[number] for number in in_order]))


def _here(
    frame: pl.DataFrame,
    before: int,
    ids: list[str],
    names: list[str],
    numbers: dict[str, int],
    places: dict[str, list[int]],
    more: Counter[str],
) -> list[int]:
    """Return the rows of a batch that are wanted, and note them under their names, or count them."""
    import polars as pl

    here: dict[int, None] = {}
    for name, number in numbers.items():
        if before < number <= before + frame.height:
            places[name].append(number)
            here[number - 1 - before] = None
    for column in ids:
        cells = frame[column].cast(pl.String, strict=False)
        for at in cells.is_in(names).arg_true().to_list():
            found = places[str(cells[at])]
            if len(found) >= _MOST_OF_ONE_NAME:
                more[str(cells[at])] += before + at + 1 not in found
                continue
            if before + at + 1 not in found:
                found.append(before + at + 1)
            here[at] = None
    return sorted(here)


def _absent(name: str, reader: TableReader, ids: list[str], detector: TableDetector) -> str:
    number, which = _number(name), " or ".join(map(repr, ids))
    if number is not None:
        nor = f", and no {name} in column {which}" if ids else ""
        return f"there is no row {number:,}; {reader.name} has {reader.rows:,} (the first is 1){nor}."
    if ids:
        return f"there is no row {name!r}: {reader.name} has no such cell in column {which}."
    known = detector.encoder_.ids
    why = (
        f"lacks the id column {known[0]!r}"
        if known
        else "has no id column (rankad fit --id COLUMN names one)"
    )
    return f"--row {name} is no row number, and {reader.name if known else 'the model'} {why}."


def as_dict(each: Explained, alpha: float) -> dict[str, Any]:
    """Return a row with its reasons, as it is printed as JSON."""
    from rankad.report.alarms import in_words

    found = each.explanation
    assert found is not None
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
        "reasons": [reason._asdict() for reason in found.reasons],
        "change": found.change
        and {"p_value": found.change.p_value, "moves": [move._asdict() for move in found.change.moves]},
        "nearest": [
            {
                "row": near.row + 1,
                "distance": near.distance,
                "values": dict(zip(names, near.values, strict=True)),
            }
            for near in found.nearest
        ],
    }


def print_explained(out: Console, each: Explained, alpha: float, fdr: float | None = None) -> None:
    """Show a row with its reasons."""
    from rich.padding import Padding

    from rankad._base.wording import cell, count, probability
    from rankad.cli.words import percent
    from rankad.explanations.sentences import oddity

    found = each.explanation
    assert found is not None
    name = f" ({cell(each.name)})" if each.name else ""
    asked = percent(alpha) if fdr is None else f"a false discovery rate of {percent(fdr)}"
    alarm = "an alarm" if each.p_value <= alpha else "no alarm"
    out.print(
        f"Row {count(each.number)}{name}: p-value {cell(each.p_value, 2)}, {alarm} at {asked}",
        style="bold",
    )
    for odd in each.strange:
        out.print(f"  {oddity(odd)}.")
    _print_reasons(out, each, found)
    if found.change is not None:
        p_value = probability(found.change.p_value, alpha)
        out.print(Padding(f"Would be normal with {_moves(found.change)} (p-value {p_value})", (0, 0, 0, 2)))
    out.print()


def _moves(change: Change) -> str:
    """Write a change; of a long one, the columns that matter most."""
    from rankad._base.wording import cell
    from rankad.explanations.worth_showing import MOST_REASONS

    shown = []
    for move in change.moves[:MOST_REASONS]:
        before, after = _apart(move.before, move.after)
        shown.append(f"{cell(move.column)} {before} -> {after}")
    more = len(change.moves) - len(shown)
    return ", ".join(shown) + (f", and {more} more columns changed" if more else "")


def _print_reasons(out: Console, each: Explained, found: Explanation) -> None:
    """Show the columns that matter, and what the nearest normal rows have there."""
    from rankad._base.wording import cell, count
    from rankad.cli.screen import plain_table
    from rankad.explanations.sentences import usually
    from rankad.explanations.worth_showing import weighing

    places = {name: at for at, name in enumerate(each.values)}
    nearest = found.nearest[: 3 if out.width >= _WIDE else 2]
    near = [f"normal\nrow {count(one.row + 1)}" for one in nearest]
    table = plain_table(
        "column", "value", "usually", "p-value\nif usual", *near, right=("value", "p-value\nif usual", *near)
    )
    shown = weighing(found)
    for reason in shown:
        at = places.get(str(reason.column))
        values = [cell(one.values[at]) if at is not None else "" for one in nearest]
        table.add_row(
            cell(reason.column), cell(reason.value), usually(reason), cell(reason.p_value, 2), *values
        )
    out.print(table)
    more = len(found.reasons) - len(shown)
    if more:
        out.print(
            f"  {more} more column{'' if more == 1 else 's'} weigh{'s' if more == 1 else ''} less.",
            style="dim",
        )


def _apart(before: Any, after: Any) -> tuple[str, str]:
    """Write two values with as many digits as it takes to tell them apart."""
    from rankad._base.wording import as_typed, difference

    first, second = difference(before, after)
    return as_typed(before, first), as_typed(after, second)
