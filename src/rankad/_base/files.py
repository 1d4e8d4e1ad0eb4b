"""Atomic file replacement: an output appears complete or not at all, and never in place of an input."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

# A name that no other program uses.
_TEMPORARY = ".rankad-{name}-{host}-{process}-{random}.tmp"


def check_output(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Raise where a file must not be written: over an input, in a missing folder, over a folder or a socket.

    An input may be a folder; all in it is read. The file that standard input comes from is an input, and one
    that standard output or standard error goes to is not replaced either. Devices and pipes pass; write to
    them, and never replace them (`is_stream`).

    >>> check_output("/dev/null", inputs=["/dev/zero"])
    >>> check_output("/", inputs=[])
    Traceback (most recent call last):
        ...
    IsADirectoryError: / is a folder; name a file in it.
    """
    name = os.fspath(path)
    if any(is_read(name, given) for given in inputs) or _is_open(name, [0]):
        raise FileExistsError(f"{name} is also read from; write to another file.")
    if _is_open(name, [1, 2]):
        raise FileExistsError(f"{name} is also what this command prints to; write to another file.")
    target = Path(os.path.realpath(name))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {target.parent} to write {target.name} in; make it first."
        )
    if target.is_dir():
        raise IsADirectoryError(f"{name} is a folder; name a file in it.")
    if target.exists() and not target.is_file() and not is_stream(target):
        raise FileExistsError(f"{name} is not a file, device or pipe; name another.")


def is_read(path: str | os.PathLike[str], given: str | os.PathLike[str]) -> bool:
    """Return whether a file, there or not, is an input or in a folder that is one; no device or pipe is.

    Examples
    --------
    >>> is_read("rows/new.csv", "./rows/new.csv"), is_read("new.csv", "rows")
    (True, False)
    """
    if is_stream(path):
        return False
    target, source = os.path.realpath(path), os.path.realpath(given)
    if target == source or (os.path.isdir(source) and target.startswith(os.path.join(source, ""))):
        return True
    try:
        wanted = os.stat(path)
        if os.path.samestat(wanted, os.stat(given)):
            return True
        # Other names of a file that has but one are links, which were followed.
        if wanted.st_nlink < 2:
            return False
    except OSError:
        return False
    for folder, _, names in os.walk(source):
        for name in names:
            with suppress(OSError):
                if os.path.samestat(wanted, os.stat(os.path.join(folder, name))):
                    return True
    return False


def check_printing(inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Raise if standard output goes to the end of a file that is read."""
    for given in inputs:
        if _is_open(given, [1]):
            raise FileExistsError(f"{os.fspath(given)} is also read from; send the output to another file.")


def _is_open(path: str | os.PathLike[str], numbers: Iterable[int]) -> bool:
    """Return whether one of the process's own files is this one, and there is something in it to be lost."""
    try:
        wanted = os.stat(path)
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(wanted.st_mode) or not wanted.st_size:
        return False
    for number in numbers:
        # It may be closed.
        with suppress(OSError):
            if os.path.samestat(wanted, os.fstat(number)):
                return True
    return False


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a device or a pipe, which is written to and never replaced.

    >>> is_stream("/dev/null"), is_stream("/no/such/file")
    (True, False)
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISFIFO(mode)


class AtomicFile:
    """A temporary file beside its target, which it replaces when complete. See `replacing` for everyday use.

    A temporary file left by a killed run is removed by the next run that writes the same target.

    An existing file keeps its permissions; through a symbolic link, the file it points to is replaced. The
    target must not be one of the `inputs`, neither now nor when it is replaced. `name` is the target as
    given, `path` the temporary file, and `file` the same, open for writing.
    """

    def __init__(self, target: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
        self.name, self._inputs = os.fspath(target), list(inputs)
        self._check()
        self.target = Path(os.path.realpath(target))
        _remove_left_over(self.target)
        self.path = self.target.parent / _temporary(self.target, str(os.getpid()), secrets.token_hex(4))
        try:
            # Never a file that exists already.
            self.file: IO[bytes] = open(self.path, "xb")  # noqa: SIM115
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.name) from error

    def _check(self) -> None:
        check_output(self.name, self._inputs)
        if is_stream(self.name):
            raise FileExistsError(f"{self.name} is a device or a pipe; name a file.")

    def sync(self) -> None:
        """Flush the file to the disk and close it."""
        with naming(self.name):
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()

    def finish(self) -> None:
        """Replace the target."""
        if not self.file.closed:
            self.sync()
        # Another program may have put something there in the meantime.
        self._check()
        with naming(self.name):
            put_in_place(self.path, self.target)

    def discard(self) -> None:
        """Remove the temporary file; the target stays as it was."""
        with suppress(OSError):
            self.file.close()
        self.path.unlink(missing_ok=True)


@contextmanager
def replacing(
    target: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()
) -> Iterator[AtomicFile]:
    """Write to an `AtomicFile`; it replaces the target if the block ends without an error.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "out.txt")
    >>> with replacing(path) as out:
    ...     _ = out.file.write(b"complete")
    >>> path.read_text()
    'complete'
    """
    out = AtomicFile(target, inputs)
    try:
        with naming(target):
            yield out
        out.finish()
    except BaseException:
        out.discard()
        raise


def _temporary(target: Path, process: str, random: str) -> str:
    # A digest, since the name may be as long as the system allows already.
    name = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    host = re.sub(r"[^A-Za-z0-9]+", "_", socket.gethostname())[:64]
    return _TEMPORARY.format(name=name, host=host, process=process, random=random)


def _remove_left_over(target: Path) -> None:
    """Remove temporary files of this target whose process on this machine no longer runs."""
    # Only POSIX has a harmless way to ask whether a process runs.
    if os.name != "posix":
        return
    pattern = re.compile(_temporary(target, "([0-9]+)", "[0-9a-f]+").replace(".", "[.]"))
    with suppress(OSError):
        for name in os.listdir(target.parent):
            match = pattern.fullmatch(name)
            if match and not _is_running(int(match[1])):
                (target.parent / name).unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add this file name to an OSError without one, as raised by writing, syncing and closing."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        # Python picks the subclass by the errno: BrokenPipeError, for instance.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def put_in_place(path: Path, target: Path) -> None:
    """Rename a file over another in the same folder, with its permissions, and make the new name durable."""
    with suppress(OSError):
        os.chmod(path, stat.S_IMODE(target.stat().st_mode))
    os.replace(path, target)
    # Where folders cannot be synced, the file itself is safe.
    with suppress(OSError):
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
