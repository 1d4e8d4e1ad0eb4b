"""``rankad reproduce``: the paper's tables and figures again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankad.cli.options import Verbose

__all__ = ["reproduce"]


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT", help="table-1, table-2, table-3, figure-1, figure-2, findings or all."
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="A cheap look: one run, fewer rows.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="From which every run's seed is derived.")] = 0,
    data: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="The folder of the data sets. [default: RANKAD_DATA, else downloaded]",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder of the results.")] = Path("results"),
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes; several lengthen the times taken. [default: all cores, but one for table-3]",
        ),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Reproduce the paper's tables and figures.

    One of them, the findings about the paper's text, or all. Finished parts are kept in the folder of the
    results: interrupted and called again, the command goes on from there.
    """
    from rankad.experiments.reproduce import names
    from rankad.experiments.reproduce import reproduce as run
    from rankad.experiments.settings import Settings

    try:
        names(what)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="WHAT") from error
    settings = Settings(out=out, data=data, seed=seed, quick=quick, n_jobs=jobs)
    run(what, settings, lambda name: typer.echo(f"{name}: {out / name}.md"))
