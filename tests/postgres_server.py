"""A PostgreSQL server of the tests' own, on a Unix socket in a temporary folder."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def _program(name):
    found = shutil.which(name)
    # Debian keeps them out of the path.
    return found or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)


def _user():
    """Return who runs the server: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def skip_without_postgres():
    """Skip a test where there is no PostgreSQL; with CI set, that is a failure."""
    if _program("initdb") and _program("pg_ctl"):
        return
    reason = "PostgreSQL is not installed (make postgres)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


class PostgresServer:
    """A server that is started at once and stopped by `close`."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="rankad-pg-"))
        self.user, self._databases = _user(), 0
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self._run("initdb", "-D", self.folder / "data", "-U", "tester", "-A", "trust", "-N")
        self.start()

    def _run(self, program, *arguments):
        # From a folder that the other user can enter, and without pipes, which the server would inherit.
        subprocess.run(
            [_program(program), *map(str, arguments)],
            check=True,
            user=self.user,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def start(self):
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off -c shared_buffers=1MB"
        log = self.folder / "log"
        self._run("pg_ctl", "start", "-w", "-D", self.folder / "data", "-o", options, "-l", log)

    def stop(self):
        """Stop at once, without a word to those who are connected."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", self.folder / "data")

    def new_database(self):
        """Return the URL of an empty database."""
        import psycopg

        self._databases += 1
        name = f"rankad{self._databases}"
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self._url(name)

    def _url(self, database):
        return f"postgresql://tester@/{database}?host={self.folder}"

    def close(self):
        self.stop()
        shutil.rmtree(self.folder)
