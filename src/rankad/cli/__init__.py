"""The command ``rankad``: one module for each subcommand, thin shells over the package."""

import errno
import io
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import Any

from rankad._base.wording import printable
from rankad.cli.interruption import Interruption
from rankad.cli.room import check_room, with_room_for_frames

# Exit statuses; the last is that of a closed pipe.
_FAILED, _MISUSED, _INTERRUPTED, _TERMINATED, _UNREAD = 1, 2, 130, 143, 141
# The longest error; names of files and columns may have any length.
_LONGEST = 900
_OUTPUT = "standard output"
# The allocator of polars (jemalloc) gives memory back after a second; by default it keeps some for good.
_ALLOCATOR, _GIVE_BACK = "_RJEM_MALLOC_CONF", "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0"
# Commands that need another extra than `cli`.
_EXTRAS = {"reproduce": "experiments", "serve": "serve"}
# Options that need no memory.
_ABOUT = {"--help", "-h", "--version"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit.

    The status is 0 for success, 3 for alarms with ``--fail-on-alarm``, 1 for an error, 2 for wrong usage, 130
    for SIGINT and 143 for SIGTERM. An error is one line on standard error; ``--verbose`` adds the traceback.
    By default `arguments` are those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    interruption = Interruption()
    if arguments is None:
        # SIGTERM, like an interrupt, must leave no temporary files.
        interruption.listen()
        # Before polars is imported.
        os.environ.setdefault(_ALLOCATOR, _GIVE_BACK)
    _replace_closed_standard_files()
    status: Any
    try:
        try:
            if not _ABOUT.intersection(given):
                check_room()
            with _short_warnings():
                status = with_room_for_frames(
                    lambda: _app()(args=given, prog_name="rankad", standalone_mode=False)
                )
            sys.stdout.flush()
        finally:
            interruption.stop()
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except (BrokenPipeError, SystemExit) as ended:
        # Typer turns both into SystemExit, with a status of its own.
        if isinstance(ended, SystemExit) and interruption.signals:
            status = _INTERRUPTED
        elif isinstance(ended, SystemExit) and not isinstance(ended.__context__, BrokenPipeError):
            raise
        else:
            _discard_output()
            status = _UNREAD
    except Exception as error:
        # An interrupted import may end in any error.
        status = _INTERRUPTED if interruption.signals else _report(_of_output(error), given)
    # Typer may also return the status of an interruption silently.
    if status == _INTERRUPTED:
        _say(f"{'terminated' if interruption.terminated else 'interrupted'}; {_left(given)}")
        status = _TERMINATED if interruption.terminated else _INTERRUPTED
        if arguments is None:
            _leave(status)
    sys.exit(status if isinstance(status, int) else 0)


def _app() -> Any:
    """Build the Typer application, late, so that a missing extra is reported like any error."""
    from rankad.cli.app import build

    return build()


def _report(error: Exception, given: list[str]) -> int:
    """Print the error in one line, and return the exit status."""
    if type(error).__name__ == "Abort":
        return _INTERRUPTED
    # Usage errors of Typer, whose own copy of click has no public class.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        if getattr(error, "possibilities", None):
            # Typer's include some that look nothing like it.
            error.possibilities = get_close_matches(error.option_name, error.possibilities, cutoff=0.75)  # type: ignore[attr-defined]
        text = _with_value(str(format_message()) or "nothing to do", error)
        end = "" if text.endswith(("?", ".")) else "."
        # Errors of a command's options have its context.
        command = str(getattr(getattr(error, "ctx", None), "info_name", None) or "")
        # An option without its value has none.
        if not command and given and not given[0].startswith("-"):
            command = given[0]
        which = f"rankad {command}" if command in given else "rankad"
        _say(f"{text}{end} See {which} --help")
        return _MISUSED
    verbose = "--verbose" in given
    if verbose:
        traceback.print_exception(error)
    text = _message(error)
    if isinstance(error, ModuleNotFoundError):
        extra = next((_EXTRAS[word] for word in given if word in _EXTRAS), "cli")
        text += f"; run pip install 'rankad[{extra}]'"
    # Users can fix these without a traceback.
    expected = isinstance(error, (ValueError, OSError, MemoryError)) or verbose
    _say(text + ("" if expected else " (--verbose shows the traceback)"))
    return _FAILED


def _with_value(text: str, error: Exception) -> str:
    """Add what came to an error of Typer, which pydantic words without it."""
    errors = getattr(error.__cause__, "errors", None)
    if errors is None:
        return text
    said = text.replace("Input should be", "it must be").partition(", unable to parse")[0]
    return f"{said}, got {str(errors()[0]['input'])!r}"


def _of_output(error: Exception) -> Exception:
    """Name standard output in an error without a file name: all other writers name their file."""
    if isinstance(error, OSError) and error.errno is not None:
        if error.filename is None:
            error = OSError(error.errno, error.strerror, _OUTPUT)
        if error.filename == _OUTPUT:
            _discard_output()
    return error


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "; free some space, or write elsewhere" if full else ""
        return f"{os.fsdecode(error.filename)}: {error.strerror}{remedy}"
    if isinstance(error, MemoryError):
        return f"out of memory ({error or 'no details'}); give fewer rows or columns"
    return str(error) or type(error).__name__


def _left(given: list[str]) -> str:
    """Return what an interruption leaves behind."""
    if "reproduce" in given or "--resume" in given:
        return "finished parts are kept, and the same command continues from there"
    return "no file was changed"


def _say(text: str) -> None:
    line = printable(" ".join(part.strip() for part in text.splitlines()).strip())
    if len(line) > _LONGEST:
        # Keep the problem, at the beginning, and the remedy, at the end.
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    sys.stderr.write(f"rankad: {line}\n")


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Print warnings as one line each, without their place in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _say(f"note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def _leave(status: int) -> None:
    """Exit at once if other threads still run: they could crash while Python shuts down."""
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(status)


class _ClosedOutput(io.TextIOBase):
    """Standard output that is closed: writing to it is a clear error."""

    def write(self, text: str) -> int:
        raise OSError(
            errno.EBADF, "it is closed; redirect it to a file or a pipe, or use --out FILE", _OUTPUT
        )


def _replace_closed_standard_files() -> None:
    """Open closed standard files on the null device, so that no other file gets their number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Takes the lowest free number.
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _discard_output() -> None:
    """Discard what is still buffered, so that Python does not fail on it when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
