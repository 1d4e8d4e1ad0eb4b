"""``rankad demo``: example tables, and the commands run on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankad.cli.options import Verbose

if TYPE_CHECKING:
    from rankad.cli.example import Example

__all__ = ["demo"]

# What the commands make of the tables.
_MADE = ("pump.rankad", "scored.csv", "report.html")


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", file_okay=False, help="Where the files go.")
    ] = Path("rankad-demo"),
    verbose: Verbose = False,
) -> None:
    """Try all of it on example tables.

    Writes readings of a pump, then learns from the normal ones and finds what is wrong with the new ones.
    Every command is printed before it runs, so that you can run it yourself.
    """
    from rankad.cli.app import build
    from rankad.cli.example import as_csv, make_example, write_table
    from rankad.cli.screen import screen

    example = make_example()
    out.mkdir(parents=True, exist_ok=True)
    tables = {"normal.csv": example.normal, "new.csv": example.new}
    _check_folder(out, {name: as_csv(rows) for name, rows in tables.items()})
    for name, rows in tables.items():
        write_table(out / name, rows)
    screen().print(
        f"{out / 'normal.csv'} has {len(example.normal):,} readings of a pump that ran well; "
        f"{out / 'new.csv'} has {len(example.new):,} new ones, into which {len(example.planted)} anomalies "
        f"were planted."
    )
    model = f"--model={out / 'pump.rankad'}"
    app = build()
    for command in (
        ["fit", f"{out / 'normal.csv'}", model, "--id=reading", "--alpha=0.01"],
        ["score", f"{out / 'new.csv'}", model, f"--out={out / 'scored.csv'}"],
        ["explain", f"{out / 'new.csv'}", model, "--top=3"],
        ["report", f"{out / 'new.csv'}", model, f"--out={out / 'report.html'}"],
    ):
        console = screen()
        console.print()
        # Of options only: a folder may have an equals sign in its name.
        typed = [part.replace("=", " ", 1) if part.startswith("--") else part for part in command]
        console.print("$ rankad " + " ".join(typed), style="bold cyan", soft_wrap=True)
        app(args=command, prog_name="rankad", standalone_mode=False)
    _print_caught(out, example)


def _check_folder(out: Path, tables: dict[str, str]) -> None:
    """Refuse a folder that has files of these names which the demo did not write."""
    for name, text in tables.items():
        path = out / name
        # Of a pipe, nothing can be read until somebody writes to it.
        if path.exists() and (not path.is_file() or path.read_bytes() != text.encode()):
            raise FileExistsError(f"{path} was there before and is not the demo's; name another folder.")
    made = [name for name in _MADE if (out / name).exists()]
    if made and not all((out / name).exists() for name in tables):
        raise FileExistsError(f"{out / made[0]} was there before and is not the demo's; name another folder.")


def _print_caught(out: Path, example: Example) -> None:
    """Say which of the planted anomalies are alarms."""
    import polars as pl

    from rankad.cli.screen import plain_table, screen

    console = screen()
    alarms = pl.read_csv(out / "scored.csv")["alarm"]
    caught = [bool(alarms[planted.row - 1]) for planted in example.planted]
    console.print(f"\nOf the {len(caught)} anomalies planted, {sum(caught)} are alarms:\n")
    table = plain_table("row", "planted", "", right=("row",))
    for planted, found in zip(example.planted, caught, strict=True):
        table.add_row(str(planted.row), planted.what, "alarm" if found else "missed")
    console.print(table)
