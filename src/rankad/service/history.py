"""What was scored: each request and each alarm, in SQLite, stored before the request is answered."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rankad._base.files import check_output, is_stream

__all__ = ["History", "Scored"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, model TEXT NOT NULL, sha256 TEXT NOT NULL,
    request TEXT NOT NULL,
    n_rows INTEGER NOT NULL, n_alarms INTEGER NOT NULL, alpha REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS batches_by_model ON batches (model, time);
CREATE TABLE IF NOT EXISTS alarms (
    batch INTEGER NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    row INTEGER NOT NULL, p_value REAL NOT NULL, score REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS alarms_by_batch ON alarms (batch);
"""
_TABLES = {"batches", "alarms"}
_COLUMNS = ["id", "time", "model", "sha256", "request", "n_rows", "n_alarms", "alpha"]
_DAY = 86_400.0


class Scored(NamedTuple):
    """A request that was answered, and its alarms as (row, p-value, score)."""

    model: str
    sha256: str
    request: str
    n_rows: int
    alpha: float
    alarms: Sequence[tuple[int, float, float]]


class History:
    """The history of a service.

    The write-ahead log makes a commit cheap, and one that returned survives the death of the process.

    Parameters
    ----------
    path : path
        The database; made if it is not there.
    keep_days : float
        What is older is deleted, when the service starts and once an hour.
    """

    def __init__(self, path: Path, keep_days: float = 90.0) -> None:
        self.path, self._keep = path, keep_days * _DAY
        self._lock = threading.Lock()
        self._open()
        self._prune()

    def _open(self) -> None:
        check_output(self.path)
        if is_stream(self.path):
            raise ValueError(f"{self.path} is a device or a pipe; the history is kept in a file.")
        try:
            self._connect()
        except sqlite3.DatabaseError as error:
            self._database.close()
            if isinstance(error, sqlite3.OperationalError):
                raise OSError(f"{self.path}: the history cannot be opened: {error}.") from error
            raise ValueError(f"{self.path} is no SQLite database ({error}); name another file.") from error

    def _connect(self) -> None:
        self._database = sqlite3.connect(
            self.path, timeout=2.0, check_same_thread=False, isolation_level=None
        )
        # Before anything is written: a database of somebody else's stays as it is.
        tables = self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        columns = self._database.execute("SELECT name FROM pragma_table_info('batches')").fetchall()
        if tables and ({name for (name,) in tables} != _TABLES or [name for (name,) in columns] != _COLUMNS):
            raise ValueError(f"{self.path} is a database that rankad serve did not make; name another file.")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute("PRAGMA foreign_keys = ON")
        self._database.executescript(_SCHEMA)
        self._file = os.stat(self.path).st_ino
        self._pruned = 0.0

    def add(self, scored: Scored) -> None:
        """Store a request; it is on the disk when this returns."""
        now = time.time()
        with self._lock:
            # A file that was removed or replaced would still take what nobody can read.
            if not self.path.exists() or os.stat(self.path).st_ino != self._file:
                self._database.close()
                self._open()
            if now - self._pruned > 3_600:
                self._prune()
            run = self._database.execute
            run("BEGIN IMMEDIATE")
            try:
                row = run(
                    "INSERT INTO batches (time, model, sha256, request, n_rows, n_alarms, alpha) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (now, *scored[:4], len(scored.alarms), scored.alpha),
                )
                self._database.executemany(
                    "INSERT INTO alarms VALUES (?, ?, ?, ?)",
                    [(row.lastrowid, *alarm) for alarm in scored.alarms],
                )
                run("COMMIT")
            except BaseException:
                run("ROLLBACK")
                raise

    def summary(self, model: str, since: float = 0.0) -> dict[str, Any]:
        """Return what was promised of a model's requests, and what came: rows, alarms, expected alarms."""
        with self._lock:
            n, rows, alarms, expected = self._database.execute(
                "SELECT COUNT(*), TOTAL(n_rows), TOTAL(n_alarms), TOTAL(n_rows * alpha) FROM batches "
                "WHERE model = ? AND time >= ?",
                (model, since),
            ).fetchone()
        return {
            "requests": n,
            "rows": int(rows),
            "alarms": int(alarms),
            "alarms_if_all_rows_were_normal": expected,
            "alarm_rate": alarms / rows if rows else None,
            "rate_asked_for": expected / rows if rows else None,
        }

    def latest(self, model: str, most: int) -> list[dict[str, Any]]:
        """Return the latest alarms of a model, the newest first."""
        with self._lock:
            rows = self._database.execute(
                "SELECT time, request, row, p_value, score FROM alarms JOIN batches ON batch = id "
                "WHERE model = ? ORDER BY id DESC, row LIMIT ?",
                (model, most),
            ).fetchall()
        return [dict(zip(("time", "request", "row", "p_value", "score"), row, strict=True)) for row in rows]

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    def _prune(self) -> None:
        self._pruned = time.time()
        self._database.execute("DELETE FROM batches WHERE time < ?", (self._pruned - self._keep,))
