"""What was scored: each request and each alarm, in a database, stored before the request is answered."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rankad.service.databases import Transaction, open_database

# "row" is a word of SQL.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    id {identity}, time DOUBLE PRECISION NOT NULL, model TEXT NOT NULL, sha256 TEXT NOT NULL,
    request TEXT NOT NULL, n_rows BIGINT NOT NULL, n_alarms BIGINT NOT NULL,
    alpha DOUBLE PRECISION NOT NULL, fdr DOUBLE PRECISION
);
CREATE INDEX IF NOT EXISTS batches_by_model ON batches (model, time);
CREATE TABLE IF NOT EXISTS alarms (
    batch BIGINT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    "row" BIGINT NOT NULL, p_value DOUBLE PRECISION NOT NULL, score DOUBLE PRECISION NOT NULL
);
CREATE INDEX IF NOT EXISTS alarms_by_batch ON alarms (batch);
CREATE TABLE IF NOT EXISTS rates (
    model TEXT NOT NULL, sha256 TEXT NOT NULL, minute BIGINT NOT NULL, kind TEXT NOT NULL,
    rate DOUBLE PRECISION NOT NULL, n_requests BIGINT NOT NULL, n_rows BIGINT NOT NULL,
    n_alarms BIGINT NOT NULL, expected DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (model, minute, sha256, kind, rate)
);
CREATE TABLE IF NOT EXISTS monitors (
    model TEXT NOT NULL, sha256 TEXT NOT NULL, time DOUBLE PRECISION NOT NULL, n_rows BIGINT NOT NULL,
    state TEXT NOT NULL, PRIMARY KEY (model, sha256)
);
CREATE TABLE IF NOT EXISTS drifts (
    model TEXT NOT NULL, sha256 TEXT NOT NULL, time DOUBLE PRECISION NOT NULL,
    "row" BIGINT NOT NULL, since BIGINT NOT NULL, kind TEXT NOT NULL
);
"""
# Sums by minute: the rate of a month is not counted from a hundred million requests.
_ADD_RATES = """
INSERT INTO rates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (model, minute, sha256, kind, rate) DO UPDATE SET
    n_requests = rates.n_requests + excluded.n_requests, n_rows = rates.n_rows + excluded.n_rows,
    n_alarms = rates.n_alarms + excluded.n_alarms, expected = rates.expected + excluded.expected
"""
_DAY = 86_400.0
_PRUNE_SECONDS = 3_600.0


class Scored(NamedTuple):
    """A request that was answered, and its alarms as (row, p-value, score).

    With a false discovery rate `fdr`, alpha is the largest p-value of an alarm.
    """

    model: str
    sha256: str
    request: str
    n_rows: int
    alpha: float
    alarms: Sequence[tuple[int, float, float]]
    fdr: float | None = None


class DriftState(NamedTuple):
    """A drift monitor as it was stored: when, after how many rows, and as JSON."""

    time: float
    n_rows: int
    state: str


class History:
    """The history of a service.

    What was added survives the death of the process.

    Parameters
    ----------
    target : path or str
        An SQLite database, made if it is not there, or the URL of a PostgreSQL database.
    keep_days : float
        What is older is deleted, when the service starts and once an hour.
    """

    def __init__(self, target: Path | str, keep_days: float = 90.0) -> None:
        self._database, self._keep = open_database(target, _SCHEMA), keep_days * _DAY
        self._pruned = 0.0
        self.add([])

    def add(self, requests: Sequence[Scored]) -> None:
        """Store requests in one transaction; they are stored when this returns."""
        now = time.time()
        with self._database.writing() as run:
            if now - self._pruned > _PRUNE_SECONDS:
                self._prune(run, now)
            if not requests:
                return
            ids = run.new_ids(len(requests))
            run.insert(
                "INSERT INTO batches (id, time, model, sha256, request, n_rows, n_alarms, alpha, fdr) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (at, now, *each[:4], len(each.alarms), each.alpha, each.fdr)
                    for at, each in zip(ids, requests, strict=True)
                ],
            )
            alarms = [(at, *alarm) for at, each in zip(ids, requests, strict=True) for alarm in each.alarms]
            if alarms:
                run.insert('INSERT INTO alarms (batch, "row", p_value, score) VALUES (?, ?, ?, ?)', alarms)
            run.insert(_ADD_RATES, _rates(requests, int(now // 60)))

    def _prune(self, run: Transaction, now: float) -> None:
        before = now - self._keep
        for table in ("batches", "monitors", "drifts"):
            run.change(f"DELETE FROM {table} WHERE time < ?", (before,))
        run.change("DELETE FROM rates WHERE minute < ?", (int(before // 60),))
        self._pruned = now

    def summary(self, model: str, since: float = 0.0) -> dict[str, Any]:
        """Return what was promised of a model's requests, and what came: rows, alarms, expected alarms.

        Those of the minute of the time `since`, and after it.
        """
        with self._database.reading() as run:
            ((n, rows, alarms, expected),) = run.fetch(
                "SELECT SUM(n_requests), SUM(n_rows), SUM(n_alarms), SUM(expected) FROM rates "
                "WHERE model = ? AND minute >= ?",
                (model, int(since // 60)),
            )
        return {
            "requests": int(n or 0),
            "rows": int(rows or 0),
            "alarms": int(alarms or 0),
            "alarms_if_all_rows_were_normal": float(expected or 0),
            "alarm_rate": int(alarms) / int(rows) if rows else None,
            "rate_asked_for": float(expected) / int(rows) if rows else None,
        }

    def by_rate(self, model: str, sha256: str, most: int = 10) -> list[tuple[float, int, int]]:
        """Return (alpha, rows, alarms) of one model file for each alpha asked for, the commonest first."""
        with self._database.reading() as run:
            rows = run.fetch(
                "SELECT rate, SUM(n_rows), SUM(n_alarms) FROM rates "
                "WHERE model = ? AND sha256 = ? AND kind = 'alpha' "
                "GROUP BY rate ORDER BY SUM(n_rows) DESC, rate LIMIT ?",
                (model, sha256, most),
            )
        return [(float(alpha), int(n_rows), int(n_alarms)) for alpha, n_rows, n_alarms in rows]

    def over_time(self, model: str, most: int = 100) -> list[dict[str, Any]]:
        """Return rows, alarms and expected alarms since the first request, in at most so many stretches.

        Stretches are whole minutes and of the same length; those without requests are left out.
        """
        now = int(time.time() // 60)
        with self._database.reading() as run:
            ((first,),) = run.fetch("SELECT MIN(minute) FROM rates WHERE model = ?", (model,))
            if first is None:
                return []
            width = -(-(now - first + 1) // most)
            rows = run.fetch(
                "SELECT (minute - ?) / ? AS stretch, SUM(n_rows), SUM(n_alarms), SUM(expected) "
                "FROM rates WHERE model = ? GROUP BY stretch ORDER BY stretch",
                (first, width, model),
            )
        return [
            {
                "begin": 60 * (first + int(at) * width),
                "end": 60 * (first + (int(at) + 1) * width),
                "rows": int(n_rows),
                "alarms": int(alarms),
                "alarms_if_all_rows_were_normal": float(expected),
            }
            for at, n_rows, alarms, expected in rows
        ]

    def latest(self, model: str, most: int) -> list[dict[str, Any]]:
        """Return the latest alarms of a model, the newest first."""
        with self._database.reading() as run:
            rows = run.fetch(
                'SELECT time, request, "row", p_value, score FROM alarms JOIN batches ON batch = id '
                'WHERE model = ? ORDER BY id DESC, "row" LIMIT ?',
                (model, most),
            )
        return [dict(zip(("time", "request", "row", "p_value", "score"), row, strict=True)) for row in rows]

    def monitor(self, model: str, sha256: str) -> DriftState | None:
        """Return the stored drift monitor of a model file."""
        with self._database.reading() as run:
            found = run.fetch(
                "SELECT time, n_rows, state FROM monitors WHERE model = ? AND sha256 = ?", (model, sha256)
            )
        return DriftState(*found[0]) if found else None

    def set_monitor(
        self,
        model: str,
        sha256: str,
        before: int | None,
        after: tuple[int, str],
        raised: Sequence[tuple[int, int, str]],
    ) -> bool:
        """Store a drift monitor and the drift alarms it raised, unless another process was faster.

        Parameters
        ----------
        model, sha256 : str
        before : int or None
            The rows that it had seen when it was read; None if there was none.
        after : (int, str)
            Rows and state now.
        raised : sequence of (row, since, kind)

        Returns
        -------
        bool
            False if the stored monitor has changed meanwhile, and nothing was stored.
        """
        now = time.time()
        with self._database.writing() as run:
            if before is None:
                changed = run.change(
                    "INSERT INTO monitors (model, sha256, time, n_rows, state) VALUES (?, ?, ?, ?, ?) "
                    "ON CONFLICT DO NOTHING",
                    (model, sha256, now, *after),
                )
            else:
                changed = run.change(
                    "UPDATE monitors SET time = ?, n_rows = ?, state = ? "
                    "WHERE model = ? AND sha256 = ? AND n_rows = ?",
                    (now, *after, model, sha256, before),
                )
            if changed and raised:
                run.insert(
                    'INSERT INTO drifts (model, sha256, time, "row", since, kind) VALUES (?, ?, ?, ?, ?, ?)',
                    [(model, sha256, now, *each) for each in raised],
                )
        return bool(changed)

    def drifts(self, model: str, sha256: str) -> list[dict[str, Any]]:
        """Return the drift alarms of a model file, the newest first."""
        with self._database.reading() as run:
            rows = run.fetch(
                'SELECT time, "row", since, kind FROM drifts WHERE model = ? AND sha256 = ? '
                'ORDER BY time DESC, "row" DESC LIMIT 100',
                (model, sha256),
            )
        return [dict(zip(("time", "row", "since", "kind"), row, strict=True)) for row in rows]

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def _rates(requests: Sequence[Scored], minute: int) -> list[tuple[Any, ...]]:
    """Return the sums of requests as rows of the table rates, in one order for all processes."""
    sums: dict[tuple[Any, ...], list[float]] = {}
    for each in requests:
        kind, rate = ("alpha", each.alpha) if each.fdr is None else ("fdr", each.fdr)
        total = sums.setdefault((each.model, each.sha256, minute, kind, rate), [0, 0, 0, 0.0])
        for at, more in enumerate((1, each.n_rows, len(each.alarms), each.n_rows * each.alpha)):
            total[at] += more
    return [(*key, *sums[key]) for key in sorted(sums)]
