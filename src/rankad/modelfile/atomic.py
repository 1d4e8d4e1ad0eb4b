"""A file that is there whole or not at all, whatever happens while it is written."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rankad._files import naming, put_in_place, take_permissions

__all__ = ["write_whole"]

# So that nobody else's files are mistaken for ours: .rankad-NAME-HOST-PROCESS-RANDOM.tmp
_UNFINISHED = ".rankad-{name}-{host}-{process}-{random}.tmp"


def write_whole(path: str | os.PathLike[str], data: bytes, check: Callable[[str], object]) -> None:
    """Write a file under another name in the same folder, and rename it when it is safe on the disk.

    Parameters
    ----------
    path : str or path
        An existing file keeps its permissions; of a symbolic link, the file that it points to is replaced.
    data : bytes
    check : callable
        Gets the name of the file as it is written, before it is renamed; where it raises, nothing changes.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {target.parent} to save {target.name} in; make it first."
        )
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file in it to save to.")
    if target.exists() and not target.is_file():
        # Renaming would put a file in place of it, and for /dev/null that would be the end of many programs.
        raise FileExistsError(f"{target} is a device or a pipe; name a file to save to.")
    _remove_left_over(target)
    unfinished = target.parent / _unfinished(target, str(os.getpid()), secrets.token_hex(4))
    # Beside `open`, this refuses a file that is there already.
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with naming(path), os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        take_permissions(unfinished, target)
        check(str(unfinished))
        put_in_place(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


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
