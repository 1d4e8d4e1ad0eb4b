"""SQLite and PostgreSQL behind one interface: transactions of plain SQL with ``?`` for values."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from rankad._base.files import check_output, is_stream

# So long one that starts waits for another that does, in seconds.
_WAIT_SECONDS = 10.0


class Transaction(Protocol):
    """What may be done within a transaction."""

    def fetch(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""

    def change(self, query: str, values: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it changed."""

    def insert(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""

    def new_ids(self, n: int) -> list[int]:
        """Return ascending ids for new rows of the table batches, larger than those there are."""


class Database(Protocol):
    """A database with the tables of a history."""

    def writing(self) -> contextlib.AbstractContextManager[Transaction]:
        """Return a transaction that is committed at its end, and rolled back if an error leaves it."""

    def reading(self) -> contextlib.AbstractContextManager[Transaction]:
        """Return a transaction that sees one state and waits for no writer."""

    def close(self) -> None:
        """Close the connections."""


def open_database(target: Path | str, schema: str) -> Database:
    """Open the database at a path or URL, and make the tables of a schema that are not there.

    In the schema ``{identity}`` stands for the type of a primary key that is counted up.
    """
    if str(target).startswith(("postgresql://", "postgres://")):
        return Postgres(str(target), schema)
    if "://" in str(target):
        scheme = str(target).partition("://")[0]
        raise ValueError(
            f"history must be a file or postgresql://..., got {scheme}://...; other databases are not known."
        )
    return Sqlite(Path(target), schema)


class Sqlite:
    """A file. The write-ahead log makes a commit cheap, and lets others read and write meanwhile.

    Parameters
    ----------
    path : path
    schema : str
    """

    def __init__(self, path: Path, schema: str) -> None:
        self.path, self._schema = path, schema.format(identity="INTEGER PRIMARY KEY")
        # One connection writes and one reads, so that a reader does not wait for a locked database.
        self._connections: dict[str, tuple[int, sqlite3.Connection]] = {}
        self._locks = {"write": threading.Lock(), "read": threading.Lock()}
        check_output(path)
        if is_stream(path):
            raise ValueError(f"{path} is a device or a pipe; the history is kept in a file.")
        with self._locks["write"]:
            self._connection("write")

    def _connection(self, purpose: str) -> sqlite3.Connection:
        """Return a connection; a new one where the file was removed or replaced, which nobody could read."""
        known = self._connections.get(purpose)
        with contextlib.suppress(FileNotFoundError):
            if known is not None and os.stat(self.path).st_ino == known[0]:
                return known[1]
        if known is not None:
            known[1].close()
        made = sqlite3.connect(
            self.path, timeout=_WAIT_SECONDS, check_same_thread=False, isolation_level=None
        )
        try:
            self._prepare(made)
        except BaseException as error:
            made.close()
            if isinstance(error, sqlite3.OperationalError):
                raise OSError(f"{self.path}: the history cannot be opened: {error}.") from error
            if isinstance(error, sqlite3.DatabaseError):
                raise ValueError(
                    f"{self.path} is no SQLite database ({error}); name another file."
                ) from error
            raise
        self._connections[purpose] = os.stat(self.path).st_ino, made
        return made

    def _prepare(self, made: sqlite3.Connection) -> None:
        # Before anything is written: a database of somebody else's stays as it is.
        with contextlib.closing(sqlite3.connect(":memory:")) as pattern:
            pattern.executescript(self._schema)
            known = _columns(pattern)
        found = _columns(made)
        if any(known.get(table) != columns for table, columns in found.items()):
            raise ValueError(f"{self.path} is a database that rankad serve did not make; name another file.")
        # Two that start at the same time wait for one another; later, none waits for long.
        _log_ahead(made)
        made.execute("PRAGMA synchronous = NORMAL")
        made.execute("PRAGMA foreign_keys = ON")
        made.executescript(self._schema)
        made.execute("PRAGMA busy_timeout = 2000")

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Return a transaction that is committed at its end."""
        with self._transaction("write", "BEGIN IMMEDIATE") as transaction:
            yield transaction

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Return a transaction that sees one state."""
        with self._transaction("read", "BEGIN") as transaction:
            yield transaction

    @contextlib.contextmanager
    def _transaction(self, purpose: str, begin: str) -> Iterator[Transaction]:
        with self._locks[purpose]:
            connection = self._connection(purpose)
            connection.execute(begin)
            try:
                yield _SqliteTransaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                # Where the disk is full, SQLite has rolled back by itself.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connections."""
        for purpose, lock in self._locks.items():
            with lock:
                if purpose in self._connections:
                    self._connections.pop(purpose)[1].close()


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; SQLite itself does not always wait where another does so too."""
    give_up = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
        time.sleep(0.01)


def _columns(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the columns of each table."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    query = "SELECT name FROM pragma_table_info(?)"
    return {table: {name for (name,) in connection.execute(query, (table,))} for (table,) in tables}


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def fetch(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()

    def change(self, query: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(query, values).rowcount

    def insert(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(query, rows)

    def new_ids(self, n: int) -> list[int]:
        # Nobody else writes before this transaction ends.
        (last,) = self._connection.execute("SELECT COALESCE(MAX(id), 0) FROM batches").fetchone()
        return list(range(last + 1, last + 1 + n))


class Postgres:
    """A PostgreSQL server.

    Parameters
    ----------
    url : str
        ``postgresql://user@host/database``; what it leaves out, as the password, comes from the environment
        and from the password file as in psql.
    schema : str
    """

    def __init__(self, url: str, schema: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise ValueError(
                f"a history in PostgreSQL needs the extra postgres ({error}): "
                f"pip install 'rankad[serve,postgres]'"
            ) from error
        self._psycopg, self._url = psycopg, url
        self._connections: dict[str, Any] = {}
        self._locks = {"write": threading.Lock(), "read": threading.Lock()}
        try:
            self._make(schema.format(identity="BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"))
        except psycopg.Error as error:
            self.close()
            raise OSError(f"the history cannot be opened: {str(error).strip()}") from error

    def _make(self, schema: str) -> None:
        with self.writing() as transaction:
            # Two that make the tables at the same time would hinder one another.
            transaction.change("SELECT pg_advisory_xact_lock(7263642)")
            for statement in schema.split(";"):
                if statement.strip():
                    transaction.change(statement)

    def _connection(self, purpose: str) -> Any:
        known = self._connections.get(purpose)
        if known is not None and not known.closed:
            return known
        made = self._psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=5,
            application_name="rankad",
            # A lock that somebody holds, and a server that went away, are told in time.
            options="-c lock_timeout=2000 -c statement_timeout=30000",
            keepalives_idle=10,
            tcp_user_timeout=10_000,
        )
        self._connections[purpose] = made
        return made

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Return a transaction that is committed at its end."""
        with self._transaction("write", "BEGIN") as transaction:
            yield transaction

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Return a transaction that sees one state."""
        with self._transaction("read", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as transaction:
            yield transaction

    @contextlib.contextmanager
    def _transaction(self, purpose: str, begin: str) -> Iterator[Transaction]:
        with self._locks[purpose]:
            try:
                connection = self._connection(purpose)
                connection.execute(begin)
            except self._psycopg.OperationalError:
                # The server was restarted since the last transaction; nothing has been sent yet.
                if purpose not in self._connections:
                    raise
                self._drop(purpose)
                connection = self._connection(purpose)
                connection.execute(begin)
            try:
                yield _PostgresTransaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                # A connection that cannot even roll back is opened again next time.
                try:
                    connection.execute("ROLLBACK")
                except self._psycopg.Error:
                    self._drop(purpose)
                raise

    def _drop(self, purpose: str) -> None:
        with contextlib.suppress(self._psycopg.Error):
            self._connections.pop(purpose).close()

    def close(self) -> None:
        """Close the connections."""
        for purpose, lock in self._locks.items():
            with lock:
                if purpose in self._connections:
                    self._drop(purpose)


class _PostgresTransaction:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def fetch(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(query.replace("?", "%s"), values).fetchall())

    def change(self, query: str, values: Sequence[Any] = ()) -> int:
        return int(self._connection.execute(query.replace("?", "%s"), values).rowcount)

    def insert(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(query.replace("?", "%s"), rows)

    def new_ids(self, n: int) -> list[int]:
        query = "SELECT nextval(pg_get_serial_sequence('batches', 'id')) FROM generate_series(1, %s)"
        return sorted(row[0] for row in self._connection.execute(query, (n,)).fetchall())
