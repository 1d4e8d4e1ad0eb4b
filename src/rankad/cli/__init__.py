"""The command ``rankad``."""

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

__all__ = ["main"]

_FAILED, _MISUSED, _INTERRUPTED = 1, 2, 130
_EXTRA = "pip install 'rankad[experiments]'"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 if all went well, 2 if it was called wrongly, 1 if something else failed.

    An error is one line on standard error; ``--verbose`` adds the trace.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process if not given.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    verbose = "--verbose" in given
    try:
        status = _app()(args=given, prog_name="rankad", standalone_mode=False)
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except Exception as error:
        status = _report(error, verbose)
    # Typer may also turn an interruption into its status without a word.
    if status == _INTERRUPTED:
        _say("interrupted; what is finished is kept, the same command goes on from there")
    sys.exit(status if isinstance(status, int) else 0)


def _report(error: Exception, verbose: bool) -> int:
    """Say in one line what is wrong, and return the exit status."""
    if type(error).__name__ == "Abort":
        return _INTERRUPTED
    # Typer's errors of use; its own copy of click leaves no public class to name.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        text = str(format_message()) or "nothing to do"
        _say(f"{text.rstrip('.')}. See rankad --help")
        return _MISUSED
    if verbose:
        traceback.print_exception(error)
    missing = f"; run {_EXTRA}" if isinstance(error, ModuleNotFoundError) else ""
    _say((str(error) or type(error).__name__) + missing + ("" if verbose else " (--verbose shows the trace)"))
    return _FAILED


def _say(text: str) -> None:
    sys.stderr.write(f"rankad: {' '.join(text.split())}\n")


def _app() -> Any:
    """Build the Typer application; here, so that a missing extra is an error like any other."""
    import typer

    app = typer.Typer(
        add_completion=False, no_args_is_help=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )

    @app.callback()
    def rankad() -> None:
        """Anomaly detection with a false-alarm rate you choose."""

    @app.command("reproduce")
    def _reproduce(
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
        out: Annotated[Path, typer.Option(file_okay=False, help="The folder of the results.")] = Path(
            "results"
        ),
        jobs: Annotated[
            int | None,
            typer.Option(
                min=1,
                help="Processes; several lengthen the times taken. [default: all cores, but one for table-3]",
            ),
        ] = None,
        verbose: Annotated[bool, typer.Option("--verbose", help="Show the trace of an error.")] = False,
    ) -> None:
        """Reproduce a table or figure of the paper, the findings about its text, or all of them.

        Finished parts are kept in the folder of the results: interrupted and called again, the command goes
        on from there.
        """
        from rankad.experiments.reproduce import names, reproduce
        from rankad.experiments.settings import Settings

        try:
            names(what)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="WHAT") from error
        settings = Settings(out=out, data=data, seed=seed, quick=quick, n_jobs=jobs)
        reproduce(what, settings, lambda name: typer.echo(f"{name}: {out / name}.md"))

    return app
