"""What all that write files to be there whole, or not at all, have in common."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["naming", "put_in_place", "take_permissions"]


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
