"""How the page behaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PageSettings:
    """Settings of the page.

    Attributes
    ----------
    shown : bool
        Whether there is a page at all.
    tables : tuple of path
        Tables that the page offers beside those that users upload.
    folder : path, optional
        Where uploads and fitted models are kept meanwhile; several processes of one service share it. By
        default a new folder that nobody else may read, removed at the end.
    keep_seconds : float
        What nobody has used for so long is deleted.
    most_bytes : int
        Size of all that is kept.
    fit_seconds : float
        How long a fit may take.
    most_columns : int
        Columns of an uploaded table.
    """

    shown: bool = True
    tables: tuple[Path, ...] = ()
    folder: Path | None = None
    keep_seconds: float = 1_800.0
    most_bytes: int = 2**30
    fit_seconds: float = 900.0
    most_columns: int = 2_000
