"""``rankad reproduce``: the paper's tables and figures again."""

from __future__ import annotations

from pathlib import Path

import typer

from rankad.cli.options import option


def reproduce(
    what: str = typer.Argument(
        metavar="WHAT", help="table-1, table-2, table-3, figure-1, figure-2, findings or all."
    ),
    quick: bool = option(False, "--quick", "A cheap look: one run, fewer rows."),
    seed: int = option(0, "--seed", "The seed of every run is derived from it.", min=0),
    data: Path | None = option(
        None,
        "--data",
        "The folder of the data sets. [default: RANKAD_DATA, else download]",
        exists=True,
        file_okay=False,
    ),
    out: Path = option(Path("results"), "--out", "The folder of the results.", file_okay=False),
    jobs: int | None = option(
        None, "--jobs", "Processes; more affect timings. [default: all cores, one for table-3]", min=1
    ),
) -> None:
    """Reproduce the paper's tables and figures.

    One of them, the findings about the paper's text, or all. Finished parts are kept in the folder of the
    results: after an interruption, the same command continues from there.
    """
    from rankad.experiments.cells import Settings
    from rankad.experiments.reproduce import names
    from rankad.experiments.reproduce import reproduce as run

    try:
        names(what)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="WHAT") from error
    settings = Settings(out=out, data=data, seed=seed, quick=quick, n_jobs=jobs)
    run(what, settings, lambda name: typer.echo(f"{name}: {out / name}.md"))
