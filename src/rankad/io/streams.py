"""Bytes of a file or of standard input, decompressed."""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Callable
from typing import IO, Any, TypeAlias, cast

from rankad.io.errors import TableError, blamed_on, imported

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# A kilobyte of zstd decompresses to at most 32 MiB, so memory stays bounded.
_ZSTD_BYTES = 1024
_SKIP_BYTES = 1 << 20
_PIECE_BYTES = 1 << 18

# Converts bytes piece by piece; an empty piece is the end.
Filter: TypeAlias = Callable[[bytes], bytes]


class ByteStream:
    """Bytes from a path or, for ``-``, from standard input; the first bytes tell the compression.

    `name` is for messages, `size` that of the file on the disk or None, and `compressed` tells whether the
    bytes differ from those on the disk: decompressed, or converted by a filter.
    """

    def __init__(self, path: str) -> None:
        self._raw: io.BufferedReader
        if path == "-":
            self.name = "standard input"
            buffer = getattr(sys.stdin, "buffer", None)
            if buffer is None:
                raise TableError("standard input is closed; send a table through a pipe, or give a file.")
            self._raw = cast(io.BufferedReader, buffer)
            self.size = None
        else:
            self.name = path
            try:
                self._raw = open(path, "rb")  # noqa: SIM115
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or str(error)
                raise TableError(f"Cannot open {path!r}: {why}.") from error
            regular = os.path.isfile(path)
            self.size = os.fstat(self._raw.fileno()).st_size if regular else None
        with blamed_on(self.name):
            head = self._raw.peek(8)[:8]
        self.compressed = head.startswith((_GZIP, _ZSTD))
        self._data: IO[bytes] = self._raw
        if head.startswith(_GZIP):
            self._data = cast(IO[bytes], gzip.GzipFile(fileobj=self._raw))
        elif head.startswith(_ZSTD):
            self._data = io.BufferedReader(_Filtered(b"", self._raw, _Zstd(self.name).feed, _ZSTD_BYTES))
        self._offset, self._done, self._pushed = 0, 0, b""

    @property
    def done(self) -> int:
        """How far the file on the disk has been read, in bytes."""
        if self.size is None:
            return self._offset
        if not self._raw.closed:
            self._done = min(self._raw.tell(), self.size)
        return self._done

    def peek(self, n: int) -> bytes:
        """Return the next `n` bytes, or all there are, without consuming them."""
        if len(self._pushed) < n:
            self._pushed += self._read(n - len(self._pushed))
        return self._pushed[:n]

    def through(self, filter: Filter) -> None:
        """Convert all bytes from here on by a filter."""
        first, self._pushed = self._pushed, b""
        self._data = io.BufferedReader(_Filtered(first, self._data, filter))
        self.compressed = True

    def read(self, n: int) -> bytes:
        """Return the next `n` bytes; fewer only at the end."""
        data, self._pushed = self._pushed[:n], self._pushed[n:]
        if len(data) < n:
            data += self._read(n - len(data))
        self._offset += len(data)
        return data

    def _read(self, n: int) -> bytes:
        with blamed_on(f"{self.name} cannot be read (is it damaged or cut off?)"):
            return self._data.read(n)

    def skip_to(self, offset: int) -> None:
        """Skip to `offset`, in bytes after decompression, or to the end if that is earlier."""
        if not self.compressed and self.size is not None:
            self._offset = self._raw.seek(min(offset, self.size))
            self._pushed = b""
        while self._offset < offset and self.read(min(_SKIP_BYTES, offset - self._offset)):
            pass

    def close(self) -> None:
        """Close the file; standard input stays open."""
        _ = self.done
        if self._data is not self._raw:
            self._data.close()
        if self._raw is not getattr(sys.stdin, "buffer", None):
            self._raw.close()


class _Filtered(io.RawIOBase):
    """The output of a filter, given `first` and then `data`."""

    def __init__(self, first: bytes, data: IO[bytes], filter: Filter, n_bytes: int = _PIECE_BYTES) -> None:
        self._first, self._data, self._filter, self._n_bytes = first, data, filter, n_bytes
        self._ready, self._ended = memoryview(b""), False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            data, self._first = self._first or self._data.read(self._n_bytes), b""
            self._ended = not data
            self._ready = memoryview(self._filter(data))
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def close(self) -> None:
        if not self.closed and self._data is not getattr(sys.stdin, "buffer", None):
            self._data.close()
        super().close()


class _Zstd:
    """Frames of zstd to bytes. The reader of the package itself takes a truncated file for a complete one."""

    def __init__(self, name: str) -> None:
        needed = f"{name} is compressed by zstd; pip install zstandard, or decompress it with `zstd -d`."
        self._new = imported("zstandard", needed).ZstdDecompressor().decompressobj
        self._frame, self._in_frame = self._new(), False

    def feed(self, data: bytes) -> bytes:
        """Return the decompressed bytes."""
        if not data and self._in_frame:
            raise EOFError("the last zstd frame is not complete")
        pieces = []
        while data:
            pieces.append(self._frame.decompress(data))
            data, self._in_frame = b"", True
            if self._frame.eof:
                data = self._frame.unused_data
                self._frame, self._in_frame = self._new(), False
        return b"".join(pieces)
