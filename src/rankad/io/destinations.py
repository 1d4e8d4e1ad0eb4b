"""Where an output goes: a pipe, a file replaced at the end, or one that a later run can resume."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from rankad._base.files import AtomicFile, is_stream, naming, put_in_place, replacing
from rankad.io.errors import TableError

_JOURNAL_VERSION = 1


class Destination:
    """Bytes go to `file`; `finish` or `discard` ends it. A resumed one has a position, state and columns."""

    name: str
    file: IO[bytes]
    size: int = 0
    position: Any = None
    state: Any = None
    columns: list[str] | None = None

    def commit(self, position: Any, state: Any, columns: list[str]) -> None:
        """Record how far the run has come, where the destination can be resumed."""

    def finish(self) -> None:
        """Make the output final."""
        raise NotImplementedError

    def discard(self) -> None:
        """Undo what can be undone."""
        raise NotImplementedError


class NewFile(AtomicFile, Destination):
    """A file that is complete or does not appear."""


class Pipe(Destination):
    """Standard output, or a device."""

    def __init__(self, path: str) -> None:
        self.name, self._closes = ("standard output", False) if path == "-" else (path, True)
        file = getattr(sys.stdout, "buffer", None) if path == "-" else open(path, "wb")  # noqa: SIM115
        if file is None:
            raise TableError("standard output is closed; redirect it to a file or a pipe, or name a file.")
        self.file = file

    def commit(self, position: Any, state: Any, columns: list[str]) -> None:
        """Flush, so that the reader at the other end gets the rows."""
        with naming(self.name):
            self.file.flush()

    def finish(self) -> None:
        """Flush, and close a device."""
        with naming(self.name):
            self.file.flush()
            if self._closes:
                self.file.close()

    def discard(self) -> None:
        """Close a device, even if there is no room for the buffered rest."""
        if self._closes:
            with suppress(OSError):
                self.file.close()


class ResumableFile(Destination):
    """``NAME.part`` and a journal, ``NAME.part.json``, that records how many of its bytes are complete.

    A killed run leaves both; the next one truncates the file to the recorded size and continues. The journal
    is written before the first byte, so a part file without one (a browser's download) is left alone.
    """

    def __init__(self, path: str, fingerprint: Any) -> None:
        self.name = path
        self.target = Path(os.path.realpath(path))
        self.path = self.target.with_name(f"{self.target.name}.part")
        self._journal = self.target.with_name(f"{self.target.name}.part.json")
        self._remedy = f"To start over, remove {self.path} and {self._journal}."
        # Compared with one that was read from JSON.
        self._fingerprint = json.loads(json.dumps(fingerprint))
        self._committed = True
        for one in (self.path, self._journal):
            # Opening a pipe could wait forever.
            if is_stream(one):
                raise TableError(f"{one} is a device or a pipe; remove it, or write to another file.")
        is_new = not self.path.exists()
        self.file = open(self.path, "wb" if is_new else "rb+")  # noqa: SIM115
        try:
            lock(self.file, f"{self.path} is being written by another run; wait for it, or stop it.")
            self._resume(self._read_journal())
        except BaseException:
            self.file.close()
            if is_new:
                self.path.unlink(missing_ok=True)
            raise

    def _read_journal(self) -> dict[str, Any]:
        """Return the journal's record, empty if there is none."""
        try:
            text = self._journal.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise TableError(f"Cannot open {str(self._journal)!r}: {error.strerror}.") from error
        try:
            record = json.loads(text)
            size = record["bytes"]
            if record["version"] != _JOURNAL_VERSION or type(size) is not int or size < 0:
                raise ValueError("not a journal of this version")
            return {key: record[key] for key in ("bytes", "position", "state", "fingerprint", "columns")}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise TableError(f"{self._journal} cannot be read. {self._remedy}") from error

    def _resume(self, record: dict[str, Any]) -> None:
        size = self.file.seek(0, os.SEEK_END)
        if size and not record:
            raise TableError(
                f"{self.path} exists already, without a journal of rankad: an earlier run did not leave it. "
                f"Remove or rename it, or write to another file."
            )
        # Nothing was written yet, or a run was interrupted between renaming its file and removing its
        # journal.
        if record and (not record["bytes"] or not size):
            record = {}
        if record:
            if record["fingerprint"] != self._fingerprint:
                changed = self._difference(record["fingerprint"])
                raise TableError(f"{self.path} was started with different inputs{changed}. {self._remedy}")
            if record["bytes"] > size:
                raise TableError(
                    f"{self.path} has {size:,} bytes of the {record['bytes']:,} that were written. "
                    f"{self._remedy}"
                )
            self.position, self.state = record["position"], record["state"]
            self.columns = record["columns"] or None
        self.size = record.get("bytes", 0)
        self._committed = bool(record)
        if not record:
            self._write_journal(0, None, None, [])
        self.file.truncate(self.size)
        self.file.seek(self.size)

    def _difference(self, before: Any) -> str:
        now = self._fingerprint
        if not (isinstance(before, dict) and isinstance(now, dict)):
            return ""
        keys = [key for key in now | before if key not in now or key not in before or now[key] != before[key]]
        return f" ({', '.join(keys)} changed)"

    def commit(self, position: Any, state: Any, columns: list[str]) -> None:
        """Sync the rows, then the journal that records them."""
        with naming(self.name):
            self.file.flush()
            os.fsync(self.file.fileno())
            written = self.file.tell()
        self._write_journal(written, position, state, columns)
        self._committed = True

    def _write_journal(self, written: int, position: Any, state: Any, columns: list[str]) -> None:
        record = {
            "version": _JOURNAL_VERSION,
            "bytes": written,
            "position": position,
            "state": state,
            "fingerprint": self._fingerprint,
            "columns": columns,
        }
        with replacing(self._journal) as journal:
            journal.file.write(json.dumps(record).encode())

    def finish(self) -> None:
        """Replace the target, and remove the journal."""
        with naming(self.name):
            self.file.flush()
            os.fsync(self.file.fileno())
        put_in_place(self.path, self.target)
        self._journal.unlink(missing_ok=True)
        self.file.close()

    def discard(self) -> None:
        """Keep what was committed; a resumed run truncates the rest."""
        with suppress(OSError):
            self.file.close()
        if not self._committed:
            self.path.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)


def lock(file: IO[bytes], otherwise: str) -> None:
    """Keep other runs from a file until it is closed, or raise an error that says `otherwise`."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise TableError(otherwise) from error
