"""Bytes of a file or of standard input, decompressed on the way."""

from __future__ import annotations

import gzip
import io
import os
import sys
from typing import IO, Any, cast

from rankad.io.errors import TableError, blamed_on
from rankad.io.text_encodings import Filter

__all__ = ["ByteStream"]

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# A kilobyte of zstd can hold no more than 32 MiB, so that no file can blow up the memory.
_ZSTD_BYTES = 1024
_SKIP_BYTES = 1 << 20
_PIECE_BYTES = 1 << 18


class ByteStream:
    """Bytes from a path or, for ``-``, from standard input.

    Compression is told from the first bytes, not from the name.

    Parameters
    ----------
    path : str
        The file, or ``-``.

    Attributes
    ----------
    name : str
        For messages.
    size : int or None
        Size of the file as it lies on the disk.
    compressed : bool
        Whether bytes are others than those on the disk: decompressed, or by a filter.
    """

    def __init__(self, path: str) -> None:
        self._raw: io.BufferedReader
        if path == "-":
            self.name = "standard input"
            # Nothing where it is closed.
            bytes_ = getattr(sys.stdin, "buffer", None)
            if bytes_ is None:
                raise TableError("standard input is closed; send a table through a pipe, or give a file.")
            self._raw = cast(io.BufferedReader, bytes_)
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
            self._data = io.BufferedReader(_ZstdBytes(self._raw, self.name))
        self._offset = 0
        self._done = 0
        self._pushed = b""

    @property
    def done(self) -> int:
        """How far the file has been read, in bytes as they lie on the disk."""
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
        """Let all bytes that come go through a filter first."""
        first, self._pushed = self._pushed, b""
        self._data = io.BufferedReader(_Filtered(first, self._data, filter, self.name))
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
        """Go forward to `offset`, counted in bytes after decompression, or to the end if that is before."""
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
    """Bytes as a filter has them."""

    def __init__(self, first: bytes, data: IO[bytes], filter: Filter, name: str) -> None:
        self._first, self._data, self._filter, self._name = first, data, filter, name
        self._ready, self._ended = memoryview(b""), False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            with blamed_on(f"{self._name} cannot be read (is it damaged or cut off?)"):
                data = self._first or self._data.read(_PIECE_BYTES)
            self._first = b""
            self._ended = not data
            self._ready = memoryview(self._filter.feed(data))
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def close(self) -> None:
        if not self.closed and self._data is not getattr(sys.stdin, "buffer", None):
            self._data.close()
        super().close()


class _ZstdBytes(io.RawIOBase):
    """Frames of zstd to bytes. The package's own reader takes a file cut off for one at its end."""

    def __init__(self, raw: IO[bytes], name: str) -> None:
        try:
            import zstandard
        except ImportError as error:
            raise TableError(
                f"{name} is compressed by zstd; pip install zstandard, or decompress it with `zstd -d`."
            ) from error
        self._raw = raw
        self._new: Any = zstandard.ZstdDecompressor().decompressobj
        self._frame = self._new()
        self._begun = False
        self._ready = memoryview(b"")
        self._unused = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._unused or self._raw.read(_ZSTD_BYTES)
            self._unused = b""
            if not data:
                if self._begun:
                    raise EOFError("the last zstd frame is not complete")
                return 0
            self._begun = True
            self._ready = memoryview(self._frame.decompress(data))
            if self._frame.eof:
                self._unused = self._frame.unused_data
                self._frame, self._begun = self._new(), False
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n
