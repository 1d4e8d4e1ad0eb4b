"""A private folder for what users upload and what is made of it, dropped after a while."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any, Literal

from rankad.service.errors import RequestError

Kind = Literal["table", "fit", "answers"]
_ID = re.compile(r"[A-Za-z0-9_-]{22}")
# A folder with this file stays.
_KEPT = "kept"


class Workspace:
    """Things in folders of their own, under names that cannot be guessed.

    All state is in files, so that several processes of one service can share it.

    Parameters
    ----------
    folder : path, optional
        By default a new one, which only the owner may enter. It is removed by `close` in the process that
        made it, or when that process ends; processes forked from it share the folder.
    keep_seconds : float
        What nobody has used for so long is deleted.
    most_bytes : int
        Size of everything together.
    """

    def __init__(self, folder: Path | None, keep_seconds: float, most_bytes: int) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="rankad-page-")) if folder is None else folder
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid()) if folder is None else None
        self._keep, self._most_bytes = keep_seconds, most_bytes

    def make(self, kind: Kind, name: str | None = None) -> Path:
        """Return a new folder; a given name is that of something made the same way before."""
        self._check_room()
        path = self.path / kind / (name or secrets.token_urlsafe(16))
        path.mkdir(mode=0o700, parents=True, exist_ok=name is not None)
        return path

    def find(self, kind: Kind, name: Any) -> Path:
        """Return the folder of something, which counts as used now, or raise if it is gone."""
        path = self.path / kind / str(name)
        # Nothing but such names ever becomes a part of a path.
        if not isinstance(name, str) or not _ID.fullmatch(name) or not path.is_dir():
            minutes = self._keep / 60
            raise RequestError(
                404,
                "gone",
                f"there is no such {kind} here; what nobody uses for {minutes:g} minutes is deleted. Upload "
                f"the table again.",
            )
        os.utime(path)
        return path

    def has(self, kind: Kind, name: str) -> bool:
        """Tell whether something is complete and there."""
        return (self.path / kind / name / "about.json").exists()

    def keep(self, path: Path) -> None:
        """Never drop this."""
        (path / _KEPT).touch()

    def sweep(self) -> None:
        """Drop what nobody has used for a while."""
        oldest = time.time() - self._keep
        for path in self.path.glob("*/*"):
            try:
                if path.stat().st_mtime < oldest and not (path / _KEPT).exists():
                    shutil.rmtree(path, ignore_errors=True)
            except OSError:
                # Another process dropped it.
                continue

    def close(self) -> None:
        """Drop everything, in the process that made the folder."""
        if self._remove is not None:
            self._remove()

    def _check_room(self) -> None:
        held = sum(_size(path) for path in self.path.glob("*/*/*"))
        if held > self._most_bytes:
            raise RequestError(
                503, "full", "the page holds as many tables as it may; try again when some have been dropped"
            )


def name_of(*parts: str) -> str:
    """Return the name of what is made of these, always the same."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return digest[:22]


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote."""
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write an object, complete or not at all."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    part.write_text(json.dumps(value), "utf-8")
    os.replace(part, path)


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
