"""The Typer application: every command, and what they share."""

from __future__ import annotations

from typing import Annotated

import typer

from rankad.cli.calibrate import calibrate
from rankad.cli.demo import demo
from rankad.cli.explain import explain
from rankad.cli.find import find
from rankad.cli.fit import fit
from rankad.cli.inspect import inspect
from rankad.cli.options import as_command
from rankad.cli.report import report
from rankad.cli.reproduce import reproduce
from rankad.cli.score import score
from rankad.cli.serve import serve
from rankad.cli.watch import watch


def build() -> typer.Typer:
    """Return the application. The modules of commands import nothing heavy before a command runs."""
    app = typer.Typer(
        add_completion=True,
        no_args_is_help=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_rankad)
    for command in (demo, find, fit, score, explain, report, inspect, calibrate, watch, serve, reproduce):
        app.command()(as_command(command))
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from rankad import __version__

        typer.echo(f"rankad {__version__}")
        raise typer.Exit


def _rankad(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Anomaly detection with a false-alarm rate you choose.

    Learn from a table of normal rows, then give every new row a p-value: how unusual it is. Rows with a
    p-value of at most alpha are alarms, and about that share of normal rows are false ones.

    To see it work: rankad demo
    """
