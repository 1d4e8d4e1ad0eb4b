"""What all that write files have in common: whole or not at all, and never over what must not be lost."""

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

__all__ = ["UnfinishedFile", "check_output", "is_stream", "naming", "put_in_place", "take_permissions"]

# So that nobody else's files are mistaken for ours: .rankad-NAME-HOST-PROCESS-RANDOM.tmp
_UNFINISHED = ".rankad-{name}-{host}-{process}-{random}.tmp"


def check_output(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Raise where a file must not be written.

    It must not be one of those that are read, by whatever name; its folder must be there; and it must not be
    a folder or a socket. Devices and pipes are for the caller to write to, not to replace (`is_stream`).

    Parameters
    ----------
    path : str or path
    inputs : iterable of str or path
        Those that are not there, like - for standard input, are no files to lose.

    Examples
    --------
    >>> check_output("/dev/null", inputs=["/dev/zero"])
    >>> check_output("/", inputs=[])
    Traceback (most recent call last):
        ...
    IsADirectoryError: / is a folder; name a file in it.
    """
    name = os.fspath(path)
    if any(_same(name, given) for given in inputs):
        raise FileExistsError(f"{name} is also read from; write to another file.")
    target = Path(os.path.realpath(name))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {target.parent} to write {target.name} in; make it first."
        )
    if target.is_dir():
        raise IsADirectoryError(f"{name} is a folder; name a file in it.")
    if target.exists() and not target.is_file() and not is_stream(target):
        raise FileExistsError(f"{name} is no file, device or pipe; name another.")


def _same(first: str, second: str | os.PathLike[str]) -> bool:
    try:
        return os.path.samefile(first, second) and not is_stream(first)
    except OSError:
        return False


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a device or a pipe: to be written to, and never to be renamed over.

    Examples
    --------
    >>> is_stream("/dev/null"), is_stream("/no/such/file")
    (True, False)
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISFIFO(mode)


class UnfinishedFile:
    """A file under another name beside its target, which takes the target's place when it is whole.

    One that a run left which was killed is removed by the next run that writes the same target.

    Parameters
    ----------
    target : str or path
        An existing file keeps its permissions; of a symbolic link, the file that it points to is replaced.
    inputs : iterable of str or path
        Files that are read, which the target must not be: neither now nor when it is put in its place.

    Attributes
    ----------
    target, path : Path
        Where it will be, and where it is.
    file : binary file
    """

    def __init__(self, target: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
        self._inputs = list(inputs)
        self._check(target)
        self.target = Path(os.path.realpath(target))
        _remove_left_over(self.target)
        self.path = self.target.parent / _unfinished(self.target, str(os.getpid()), secrets.token_hex(4))
        # Beside `open`, this refuses a file that is there already.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self.file: IO[bytes] = os.fdopen(os.open(self.path, flags, 0o666), "wb")

    def _check(self, target: str | os.PathLike[str]) -> None:
        check_output(target, self._inputs)
        if is_stream(target):
            # Renaming would put a file in its place: for /dev/null, say, the end of many programs.
            raise FileExistsError(f"{os.fspath(target)} is a device or a pipe; name a file.")

    def sync(self) -> None:
        """Bring all that was written to the disk, with the permissions of the file that is replaced."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        take_permissions(self.path, self.target)

    def finish(self) -> None:
        """Put the file in its place."""
        if not self.file.closed:
            self.sync()
        # Much may have come to be there since it was begun.
        self._check(self.target)
        put_in_place(self.path, self.target)

    def abandon(self) -> None:
        """Remove it."""
        with suppress(OSError):
            self.file.close()
        self.path.unlink(missing_ok=True)


def _unfinished(target: Path, process: str, random: str) -> str:
    # A digest, because a name may be as long as names can be already.
    name = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    host = re.sub(r"[^A-Za-z0-9]+", "_", socket.gethostname())[:64]
    return _UNFINISHED.format(name=name, host=host, process=process, random=random)


def _remove_left_over(target: Path) -> None:
    """Remove what runs on this machine left that were killed while they wrote this very file."""
    # Elsewhere there is no harmless way to ask whether a process lives.
    if os.name != "posix":
        return
    pattern = re.compile(_unfinished(target, "([0-9]+)", "[0-9a-f]+").replace(".", "[.]"))
    with suppress(OSError):
        for name in os.listdir(target.parent):
            found = pattern.fullmatch(name)
            if found and not _lives(int(found[1])):
                (target.parent / name).unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Give an OSError that names no file the name of this one: writing, syncing and closing name none."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        # Python makes the class of the errno of it, BrokenPipeError for instance.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def take_permissions(path: Path, target: Path) -> None:
    """Give a file the permissions of the one that it is to replace, if there is one."""
    with suppress(OSError):
        os.chmod(path, stat.S_IMODE(target.stat().st_mode))


def put_in_place(path: Path, target: Path) -> None:
    """Rename a file over another in the same folder, and make the new name as durable as the file.

    Where folders cannot be synced the system sees to it: the file itself is safe, and has its name.
    """
    os.replace(path, target)
    with suppress(OSError):
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
