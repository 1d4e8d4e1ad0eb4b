"""``rankad demo``: example tables, and the commands run on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankad.cli.console import console, plain_table
from rankad.cli.options import option

if TYPE_CHECKING:
    from rankad.cli.example import Example


# The outputs of the commands.
_OUTPUTS = ("pump.rankad", "scored.csv", "report.html")


def demo(
    out: Path = option(Path("rankad-demo"), "--out -o FOLDER", "Where the files go.", file_okay=False),
) -> None:
    """Try all of it on example tables.

    Writes readings of a pump, then learns from the normal ones and finds what is wrong with the new ones.
    Every command is printed before it runs, so that you can run it yourself.
    """
    from rankad.cli.app import build
    from rankad.cli.example import as_csv, make_example, write_table

    example = make_example()
    out.mkdir(parents=True, exist_ok=True)
    tables = {"normal.csv": example.normal, "new.csv": example.new}
    _check_folder(out, {name: as_csv(rows) for name, rows in tables.items()})
    for name, rows in tables.items():
        write_table(out / name, rows)
    out_console = console()
    out_console.print(
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
        out_console.print()
        # Only in options: a folder name may contain an equals sign.
        typed = [part.replace("=", " ", 1) if part.startswith("--") else part for part in command]
        out_console.print("$ rankad " + " ".join(typed), style="bold cyan", soft_wrap=True)
        app(args=command, prog_name="rankad", standalone_mode=False)
    _print_caught(out, example)
    out_console.print("\nTo move the rate and watch the alarms change: rankad serve --demo")


def _check_folder(out: Path, tables: dict[str, str]) -> None:
    """Refuse a folder with files of these names that the demo did not write."""
    for name, text in tables.items():
        path = out / name
        # Reading a pipe would wait for a writer.
        if path.exists() and (not path.is_file() or path.read_bytes() != text.encode()):
            raise FileExistsError(f"{path} exists and is not from the demo; name another folder.")
    made = [name for name in _OUTPUTS if (out / name).exists()]
    if made and not all((out / name).exists() for name in tables):
        raise FileExistsError(f"{out / made[0]} exists and is not from the demo; name another folder.")


def _print_caught(out: Path, example: Example) -> None:
    """Print which of the planted anomalies are alarms."""
    import polars as pl

    out_console = console()
    alarms = pl.read_csv(out / "scored.csv")["alarm"]
    caught = [bool(alarms[planted.row - 1]) for planted in example.planted]
    out_console.print(f"\nOf the {len(caught)} anomalies planted, {sum(caught)} are alarms:\n")
    table = plain_table("row", "planted", "", right=("row",))
    for planted, is_alarm in zip(example.planted, caught, strict=True):
        table.add_row(str(planted.row), planted.what, "alarm" if is_alarm else "missed")
    out_console.print(table)
