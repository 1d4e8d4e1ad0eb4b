"""Loops compiled by numba, cached on disk where possible; damaged cache files are compiled again."""

from __future__ import annotations

import hashlib
import os
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.compiler_lock import global_compiler_lock

from rankad._base.threads import held_over_forks

held_over_forks(global_compiler_lock)

_DIGEST = 32


def compiled(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Compile a function without Python objects and without the GIL; `options` are those of `numba.njit`."""
    if function is None:
        return lambda given: compiled(given, **options)
    dispatcher = numba.njit(nogil=True, **options)(function)
    try:
        dispatcher._cache = _Cache(function)
    except RuntimeError:
        # Neither the package's folder nor the user's can be written to.
        dispatcher._cache = _NoCache()
    return dispatcher


class _Cache(FunctionCache):
    """numba's cache, but unreadable files are compiled again and a failed write is only a warning."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CheckedFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), _loops_stamp()),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn_once(f"{self.cache_path}: {error.strerror}")


@cache
def _loops_stamp() -> str:
    """Return a digest of this package's files: loops call others, and numba checks a loop's own file only."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _CheckedFile(IndexDataCacheFile):
    """numba's files with a digest in front: damaged machine code would crash the process."""

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, overloads = _read(self._index_path)
        except (OSError, ValueError):
            return {}
        is_current = (version, stamp) == (self._version, self._source_stamp)
        return dict(overloads) if is_current else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return _read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(hashlib.sha256(data).digest() + data)


def _read(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file:
        digest, data = file.read(_DIGEST), file.read()
    if hashlib.sha256(data).digest() != digest:
        raise ValueError(f"{os.fspath(path)} is damaged.")
    return pickle.loads(data)


class _NoCache(NullCache):
    """No cache: every process compiles."""

    def save_overload(self, sig: Any, data: Any) -> None:
        _warn_once("neither the package's folder nor the home folder can be written to")


_warned = False


def _warn_once(why: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"Compiled in memory: {why}, so that every new process compiles again. To compile only once, set "
            f"the environment variable NUMBA_CACHE_DIR to a folder that can be written to.",
            UserWarning,
            stacklevel=2,
        )
