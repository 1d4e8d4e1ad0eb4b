"""``rankad explain``: why rows are abnormal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankad.cli.options import Alpha, AsJson, Delimiter, Encoding, Format, Jobs, Model, Sheet, Table, Verbose

if TYPE_CHECKING:
    from rich.console import Console

    from rankad.cli.scan import Explained, Rows
    from rankad.explanations import Change, Explanation
    from rankad.tables import TableDetector
    from rankad.tables.reader import TableReader

__all__ = ["explain"]

_WIDE = 100


def explain(
    table: Table,
    model: Model,
    row: Annotated[
        list[int] | None,
        typer.Option("--row", "-r", min=1, metavar="N", help="A row to explain, the first is 1. Repeatable."),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", "-n", min=1, metavar="N", help="How many of the most abnormal rows.")
    ] = 10,
    alpha: Alpha = None,
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
    from rankad.cli.model import load_for
    from rankad.cli.scan import explained, of_table
    from rankad.cli.screen import metered, screen
    from rankad.cli.words import as_json as written
    from rankad.tables.files import open_table

    with (
        metered() as meter,
        open_table(table, format=format, delimiter=delimiter, encoding=encoding, sheet=sheet) as reader,
    ):
        with of_table(reader.name):
            detector = load_for(model, reader.columns, jobs)
        if not hasattr(detector.detector_, "scorer_"):
            raise ValueError(
                f"{model} holds a {type(detector.detector_).__name__}, which gives no reasons; models "
                f"made by rankad fit do, and so does RankAD."
            )
        if not hasattr(detector.detector_, "nominal_rows_"):
            raise ValueError(
                f"{model} was saved without the rows that explanations take; fit it again, without "
                f"--without-rows."
            )
        level = detector.alpha if alpha is None else alpha
        chosen = _chosen(reader, detector, meter, row, top)
    found = explained(detector, chosen, level) if chosen is not None else []
    if as_json:
        typer.echo(written([_as_dict(each, level) for each in found]))
        return
    out = screen()
    if not found:
        out.print("The table has no rows.")
    for each in found:
        _print(out, each, level)


def _chosen(
    reader: TableReader, detector: TableDetector, meter: Any, wanted: list[int] | None, top: int
) -> Rows | None:
    """Return the rows to explain: those wanted, in that order, or the most abnormal."""
    import numpy as np
    import polars as pl

    from rankad.cli.scan import MostAbnormal, Rows, of_table, scan

    if not wanted:
        most = MostAbnormal(top)
        for batch in scan(reader, detector, meter, "Looking"):
            most.add(batch)
        return most.rows
    left, parts = set(wanted), []
    for frame in reader:
        here = np.array(sorted(n for n in left if n - 1 < reader.rows)) - 1 - reader.rows_before
        left -= {int(at) + 1 + reader.rows_before for at in here}
        if len(here):
            picked = frame[here.tolist()]
            with of_table(reader.name):
                scores = np.asarray(detector.score_samples(picked))
            parts.append(
                Rows(picked, here + 1 + reader.rows_before, scores, detector.calibration_.p_values(scores))
            )
        if not left:
            break
    if left:
        raise ValueError(
            f"there is no row {min(left):,}; {reader.name} has {reader.rows:,} (the first is 1)."
        )
    joined = Rows(
        pl.concat([part.frame for part in parts], how="vertical_relaxed"),
        *(np.concatenate([part[at] for part in parts]) for at in (1, 2, 3)),
    )
    places = {int(number): at for at, number in enumerate(joined.numbers)}
    return joined.where(np.array([places[number] for number in dict.fromkeys(wanted)]))


def _as_dict(each: Explained, alpha: float) -> dict[str, Any]:
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
        "strange": [{"column": cell.column, "value": cell.value, "what": cell.what} for cell in each.strange],
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


def _print(out: Console, each: Explained, alpha: float) -> None:
    from rich.padding import Padding

    from rankad.cli.words import cell, count, oddity, percent
    from rankad.report.wording import probability

    found = each.explanation
    assert found is not None
    name = f" ({cell(each.name)})" if each.name else ""
    alarm = "an alarm" if each.p_value <= alpha else "no alarm"
    out.print(
        f"Row {count(each.number)}{name}: p-value {cell(each.p_value, 2)}, {alarm} at {percent(alpha)}",
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
    from rankad.cli.words import cell
    from rankad.report.reasons import MOST_REASONS

    shown = []
    for move in change.moves[:MOST_REASONS]:
        before, after = _apart(move.before, move.after)
        shown.append(f"{cell(move.column)} {before} -> {after}")
    more = len(change.moves) - len(shown)
    return ", ".join(shown) + (f", and {more} more columns changed" if more else "")


def _print_reasons(out: Console, each: Explained, found: Explanation) -> None:
    """Show the columns that matter, and what the nearest normal rows have there."""
    from rankad.cli.screen import plain_table
    from rankad.cli.words import cell, count, usually
    from rankad.report.reasons import weighing

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
    from rankad.cli.words import as_typed
    from rankad.report.wording import difference

    first, second = difference(before, after)
    return as_typed(before, first), as_typed(after, second)
