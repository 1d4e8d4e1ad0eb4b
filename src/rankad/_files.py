"""What all that write files to be there whole, or not at all, have in common."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

__all__ = ["put_in_place", "take_permissions"]


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
