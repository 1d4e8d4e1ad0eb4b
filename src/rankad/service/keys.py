"""API keys: random, shown once, kept as digests."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Literal, NamedTuple

from rankad._base.files import check_output, is_stream

Role = Literal["read", "admin"]
_PREFIX = "rankad_"


class Key(NamedTuple):
    """A key as it is stored: who has it, what it may do, and the digest of the secret."""

    name: str
    role: Role
    digest: str


class KeyFile:
    """A file with a line for each key: name, role and SHA-256 of the secret.

    The secrets are 256 random bits, so that a plain digest cannot be searched. A key whose line is taken
    out is refused once `refresh` has read the file again.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        check_output(path)
        if is_stream(path):
            raise ValueError(f"{path} is a device or a pipe; keys are kept in a file.")
        if not path.exists():
            raise ValueError(
                f"there is no file of keys {path}; make it with rankad serve --new-key NAME --keys {path}."
            )
        self._stamp, self.keys = _read(path)

    def refresh(self) -> str | None:
        """Read the file again if it has changed; the old keys stay where it cannot be read.

        Returns
        -------
        str or None
            What is wrong with the file, told once; "" if it was read; None if nothing has changed.
        """
        try:
            stamp = _stamp_of(self.path)
            if stamp == self._stamp:
                return None
            self._stamp = stamp
            self._stamp, self.keys = _read(self.path)
        except OSError as error:
            if self._stamp is None:
                return None
            self._stamp = None
            return str(error)
        except ValueError as error:
            return str(error)
        return ""

    @classmethod
    def add(cls, path: Path, name: str, role: Role) -> str:
        """Make a key, add it to the file, and return the secret, which is nowhere else."""
        if not name or not name.isprintable() or " " in name:
            raise ValueError(f"the name of a key must be one word, got {name!r}.")
        if path.exists():
            # Nothing is appended to what is no file of keys, such as a model.
            cls(path)
        secret = _PREFIX + secrets.token_urlsafe(32)
        # Only the owner may read it, from the first byte on.
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
            file.write(f"{name} {role} {_digest(secret)}\n")
        return secret

    def find(self, secret: str) -> Key | None:
        """Return the key of a secret; the time it takes says nothing about the stored digests."""
        digest, match = _digest(secret), None
        for key in self.keys:
            if hmac.compare_digest(key.digest, digest):
                match = key
        return match


def _stamp_of(path: Path) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> tuple[tuple[int, int, int] | None, list[Key]]:
    # The stamp comes first: a file that changes meanwhile is read once more.
    stamp = _stamp_of(path)
    lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    return stamp, [_parse(path, line) for line in lines if line.strip()]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _parse(path: Path, line: str) -> Key:
    parts = line.split()
    if len(parts) != 3 or parts[1] not in ("read", "admin") or len(parts[2]) != 64:
        raise ValueError(f"{path} holds a line that is not a key; lines are made by rankad serve --new-key.")
    return Key(parts[0], "admin" if parts[1] == "admin" else "read", parts[2])
