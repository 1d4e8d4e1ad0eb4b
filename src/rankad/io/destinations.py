"""Where an output goes: a pipe, a file put in place at the end, or one that a later run goes on with."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from rankad._base.files import UnfinishedFile, is_stream, naming, put_in_place, take_permissions
from rankad.io.errors import TableError

__all__ = ["Destination", "PartFile", "Pipe", "Resumable"]

_JOURNAL_VERSION = 1


class Destination:
    """Bytes go to `file`; `finish` or `abandon` ends it."""

    name: str
    file: IO[bytes]
    size: int = 0
    position: Any = None
    state: Any = None
    columns: list[str] | None = None

    def commit(self, position: Any, state: Any, columns: list[str]) -> None:
        """Record how far the run has come, where that can be done."""

    def finish(self) -> None:
        """Make the output final."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Undo what can be undone."""
        raise NotImplementedError


class Pipe(Destination):
    """Standard output, or a device; there is nothing to undo."""

    def __init__(self, path: str) -> None:
        self.name = "standard output" if path == "-" else path
        # Never renamed over: /dev/null must stay what it is.
        self.file = _standard_output() if path == "-" else _opened(Path(path), "wb")
        self._closes = path != "-"

    def commit(self, position: Any, state: Any, columns: list[str]) -> None:
        """Let the reader at the other end have the rows."""
        with naming(self.name):
            self.file.flush()

    def finish(self) -> None:
        """Flush."""
        with naming(self.name):
            self.file.flush()
            if self._closes:
                self.file.close()

    def abandon(self) -> None:
        """Close a device; what is still in its buffer may have no room there."""
        if self._closes:
            with suppress(OSError):
                self.file.close()


class PartFile(Destination):
    """A temporary file beside the target that takes its place at the end."""

    def __init__(self, path: str, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
        self.name = path
        try:
            self._unfinished = UnfinishedFile(path, inputs)
        except OSError as error:
            raise TableError(f"Cannot write {path!r}: {error.strerror or error}.") from error
        self.file = self._unfinished.file

    def finish(self) -> None:
        """Put the file in its place, once it is on the disk."""
        with naming(self.name):
            self._unfinished.finish()

    def abandon(self) -> None:
        """Remove the file."""
        self._unfinished.abandon()


class Resumable(Destination):
    """``NAME.part`` and a journal, ``NAME.part.json``, that says how many of its bytes count.

    A run that was killed leaves both. The next one cuts the file to what the journal vouches for and goes on.
    A file of that name without a journal is somebody else's, as of a browser that downloads, and is left
    alone: the journal comes before the first byte.
    """

    def __init__(self, path: str, fingerprint: Any) -> None:
        self.name = path
        self.target = Path(os.path.realpath(path))
        self.path = self.target.with_name(f"{self.target.name}.part")
        self._journal = self.target.with_name(f"{self.target.name}.part.json")
        # What JSON makes of it is what it will be compared with.
        self._fingerprint = json.loads(json.dumps(fingerprint))
        self._begun = True
        _check_no_stream(self.path)
        is_new = not self.path.exists()
        self.file = _opened(self.path, "wb" if is_new else "rb+")
        try:
            _lock(self.file, self.path)
            self._take_up(self._recorded())
        except BaseException:
            self.file.close()
            if is_new:
                self.path.unlink(missing_ok=True)
            raise

    def _recorded(self) -> dict[str, Any]:
        """Return what the journal says, nothing if there is none."""
        _check_no_stream(self._journal)
        try:
            text = self._journal.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise TableError(f"Cannot open {str(self._journal)!r}: {error.strerror}.") from error
        try:
            record = json.loads(text)
            if (
                record["version"] != _JOURNAL_VERSION
                or type(record["bytes"]) is not int
                or record["bytes"] < 0
            ):
                raise ValueError("not a journal of this version")
            return {key: record[key] for key in ("bytes", "position", "state", "fingerprint", "columns")}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise TableError(f"{self._journal} cannot be read. {self._remedy}") from error

    def _take_up(self, record: dict[str, Any]) -> None:
        there = self.file.seek(0, os.SEEK_END)
        if there and not record:
            raise TableError(
                f"{self.path} is there already, without a journal of rankad: it is not what an earlier run "
                f"left. Remove or rename it, or write to another file."
            )
        if record and not record["bytes"]:
            # Nothing was written yet, by whatever run.
            record = {}
        if record and there == 0 and record["bytes"]:
            # A journal that outlived its file: the run before was put in place, and then interrupted.
            record = {}
        if record:
            if record["fingerprint"] != self._fingerprint:
                raise TableError(
                    f"{self.path} was started with different inputs"
                    f"{self._difference(record['fingerprint'])}. {self._remedy}"
                )
            if record["bytes"] > there:
                raise TableError(
                    f"{self.path} has {there:,} bytes of the {record['bytes']:,} that were written. "
                    f"{self._remedy}"
                )
            self.position, self.state = record["position"], record["state"]
            self.columns = record["columns"] or None
        self.size = record.get("bytes", 0)
        self._begun = bool(record)
        if not record:
            self._note(0, None, None, [])
        self.file.truncate(self.size)
        self.file.seek(self.size)

    def _difference(self, before: Any) -> str:
        now = self._fingerprint
        if not (isinstance(before, dict) and isinstance(now, dict)):
            return ""
        keys = [key for key in now | before if key not in now or key not in before or now[key] != before[key]]
        return f" ({', '.join(keys)} changed)"

    @property
    def _remedy(self) -> str:
        return f"To start over, remove {self.path} and {self._journal}."

    def commit(self, position: Any, state: Any, columns: list[str]) -> None:
        """Bring the rows to the disk, then the journal that vouches for them."""
        with naming(self.name):
            self.file.flush()
            os.fsync(self.file.fileno())
            written = self.file.tell()
        self._note(written, position, state, columns)
        self._begun = True

    def _note(self, written: int, position: Any, state: Any, columns: list[str]) -> None:
        """Write the journal."""
        record = {
            "version": _JOURNAL_VERSION,
            "bytes": written,
            "position": position,
            "state": state,
            "fingerprint": self._fingerprint,
            "columns": columns,
        }
        with naming(self._journal):
            fresh = UnfinishedFile(self._journal)
            try:
                fresh.file.write(json.dumps(record).encode())
                fresh.finish()
            except BaseException:
                fresh.abandon()
                raise

    def finish(self) -> None:
        """Put the file in its place; the journal has served."""
        with naming(self.name):
            self.file.flush()
            os.fsync(self.file.fileno())
        take_permissions(self.path, self.target)
        put_in_place(self.path, self.target)
        self._journal.unlink(missing_ok=True)
        self.file.close()

    def abandon(self) -> None:
        """Keep what was committed; what was not is cut off when the run goes on."""
        with suppress(OSError):
            self.file.close()
        if not self._begun:
            self.path.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)


def _standard_output() -> IO[bytes]:
    found: IO[bytes] | None = getattr(sys.stdout, "buffer", None)
    if found is None:
        raise TableError(
            "standard output is closed; send it to a file or a pipe, or name a file to write to."
        )
    return found


def _opened(path: Path, mode: str) -> IO[bytes]:
    try:
        return open(path, mode)
    except OSError as error:
        raise TableError(f"Cannot write {str(path)!r}: {error.strerror or error}.") from error


def _check_no_stream(path: Path) -> None:
    """Refuse a device or a pipe where a run is to be gone on with: to open one may wait for ever."""
    if is_stream(path):
        raise TableError(f"{path} is a device or a pipe; remove it, or write to another file.")


def _lock(file: IO[bytes], path: Path) -> None:
    """Refuse to write beside another run."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise TableError(f"{path} is being written by another run; wait for it, or stop it.") from error
