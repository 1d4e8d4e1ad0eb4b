"""The command ``rankad``: thin shells over the package, one module for each command."""

import errno
import io
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rankad._base.wording import printable
from rankad.cli.interruption import Interruption
from rankad.cli.room import check_room

__all__ = ["main"]

_FAILED, _MISUSED, _INTERRUPTED, _TERMINATED = 1, 2, 130, 143
# As of any tool in a pipe whose reader wants no more.
_UNREAD = 141
# Of a line of error; names of files and columns may be of any length.
_LONGEST = 900
_OUTPUT = "standard output"
# What needs no room.
_ABOUT = {"--help", "-h", "--version"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit.

    The status is 0 if all went well, 3 if there were alarms and ``--fail-on-alarm`` was given, 1 if something
    failed, 2 if it was called wrongly, 130 if it was interrupted, 143 if it was told to end. An error
    is one line on standard error; ``--verbose`` adds the trace.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process if not given.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    interruption = Interruption()
    if arguments is None:
        # A run that is told to end does as one that is interrupted: it leaves no temporary files.
        interruption.listen()
    _occupy_standard_files()
    status: Any
    try:
        try:
            if not _ABOUT.intersection(given):
                check_room()
            with _short_warnings():
                status = _app()(args=given, prog_name="rankad", standalone_mode=False)
            sys.stdout.flush()
        finally:
            interruption.stop()
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except (BrokenPipeError, SystemExit) as ended:
        # Typer makes an exit of it, with a status that says nothing.
        if isinstance(ended, SystemExit) and interruption.told:
            status = _INTERRUPTED
        elif isinstance(ended, SystemExit) and not isinstance(ended.__context__, BrokenPipeError):
            raise
        else:
            _forget_output()
            status = _UNREAD
    except Exception as error:
        # An import that is interrupted may end in any error.
        status = _INTERRUPTED if interruption.told else _report(_of_output(error), given)
    # Typer may also turn an interruption into its status without a word.
    if status == _INTERRUPTED:
        _say(f"{'told to end' if interruption.terminated else 'interrupted'}; {_left(given)}")
        status = _TERMINATED if interruption.terminated else _INTERRUPTED
        if arguments is None:
            _leave(status)
    sys.exit(status if isinstance(status, int) else 0)


def _app() -> Any:
    """Build the Typer application; here, so that a missing extra is an error like any other."""
    from rankad.cli.app import build

    return build()


def _report(error: Exception, given: list[str]) -> int:
    """Say in one line what is wrong, and return the exit status."""
    if type(error).__name__ == "Abort":
        return _INTERRUPTED
    # Typer's errors of use; its own copy of click leaves no public class to name.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        text = str(format_message()) or "nothing to do"
        end = "" if text.endswith(("?", ".")) else "."
        # Errors of one command's options come with its context.
        command = str(getattr(getattr(error, "ctx", None), "info_name", None) or "")
        which = f"rankad {command}" if command in given else "rankad"
        _say(f"{text}{end} See {which} --help")
        return _MISUSED
    verbose = "--verbose" in given
    if verbose:
        traceback.print_exception(error)
    text = _in_words(error)
    if isinstance(error, ModuleNotFoundError):
        text += f"; run pip install 'rankad[{'experiments' if 'reproduce' in given else 'cli'}]'"
    # What users can mend needs no trace.
    expected = isinstance(error, (ValueError, OSError, MemoryError)) or verbose
    _say(text + ("" if expected else " (--verbose shows the trace)"))
    return _FAILED


def _of_output(error: Exception) -> Exception:
    """Name standard output in an error of writing to it; all that write files name them."""
    if isinstance(error, OSError) and error.errno is not None:
        if error.filename is None:
            error = OSError(error.errno, error.strerror, _OUTPUT)
        if error.filename == _OUTPUT:
            _forget_output()
    return error


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "; free some space, or write elsewhere" if full else ""
        return f"{os.fsdecode(error.filename)}: {error.strerror}{remedy}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory ({error or 'no more could be had'}); give fewer rows or columns"
    return str(error) or type(error).__name__


def _left(given: list[str]) -> str:
    """Say what an interruption leaves behind."""
    if "reproduce" in given or "--resume" in given:
        return "what is finished is kept, the same command goes on from there"
    return "no file was changed"


def _say(text: str) -> None:
    line = printable(" ".join(part.strip() for part in text.splitlines()).strip())
    if len(line) > _LONGEST:
        # What is wrong stands at the beginning, what to do about it at the end.
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    sys.stderr.write(f"rankad: {line}\n")


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Write the package's warnings as one line each, without the place in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _say(f"note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def _leave(status: int) -> None:
    """Exit at once where other threads are still computing: Python would be taken down under them."""
    if threading.active_count() > 1:
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()
        os._exit(status)


class _ClosedOutput(io.TextIOBase):
    """What stands for standard output where there is none: writing to it is an error in plain words."""

    def write(self, text: str) -> int:
        raise OSError(
            errno.EBADF, "it is closed; send it to a file or a pipe, or write to --out FILE", _OUTPUT
        )


def _occupy_standard_files() -> None:
    """Stand in for standard files that are closed, lest a file that is opened later take their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free.
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _forget_output() -> None:
    """Send what is still in the buffer nowhere, lest Python complain of it when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
