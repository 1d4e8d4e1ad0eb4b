"""A model file that is there whole or not at all, whatever happens while it is written."""

from __future__ import annotations

import os
from collections.abc import Callable

from rankad._base.files import UnfinishedFile, naming

__all__ = ["write_whole"]


def write_whole(
    path: str | os.PathLike[str], contents: Callable[[], bytes], check: Callable[[str], object]
) -> None:
    """Write a file under another name in the same folder, and rename it when it is safe on the disk.

    Parameters
    ----------
    path : str or path
    contents : callable
        Returns what to write; it is not kept while the file is checked.
    check : callable
        Gets the name of the file as it is written, before it is renamed; where it raises, nothing changes.
    """
    unfinished = UnfinishedFile(path)
    try:
        with naming(path):
            unfinished.file.write(contents())
            unfinished.sync()
        check(str(unfinished.path))
        unfinished.finish()
    except BaseException:
        unfinished.abandon()
        raise
