"""NumPy arrays in files to frames."""

from __future__ import annotations

import math
import zipfile
from typing import IO, Any, cast

import numpy as np
import polars as pl

from rankad.io.errors import TableError, blamed_on
from rankad.io.reader import Start, TableReader
from rankad.io.streams import ByteStream

_CHOSEN = "X"
_ALLOWED = "biufUM"
_PIECE_BYTES = 1 << 20
# As many as a model may have.
_MOST_COLUMNS = 1_000_000


class NumpyReader(TableReader):
    """Rows of an array in a .npy file, or of the only array, or the one called X, in a .npz file.

    Columns are called x0, x1, and so on, unless the array is structured. Arrays in Fortran order are read as
    a whole.
    """

    unit = "rows"
    total: int

    def __init__(self, stream: ByteStream, batch_bytes: int, start: Start, format: str) -> None:
        self.format = format
        super().__init__(stream, batch_bytes, start)
        self._archive: zipfile.ZipFile | None = None
        self._bytes: ByteStream | IO[bytes] = stream
        try:
            self._begin(batch_bytes)
        except BaseException:
            self._close_archive()
            raise

    def _begin(self, batch_bytes: int) -> None:
        stream = self._stream
        with blamed_on(f"{self.name} cannot be read as a NumPy array (is it damaged or cut off?)"):
            self._bytes, size = self._member() if self.format == "npz" else (stream, stream.size)
            shape, by_column, self._kind = self._header()
        self._width = self._checked_width(shape)
        if size is not None and math.prod(shape) * self._kind.itemsize > size:
            raise TableError(
                f"{self.name} is cut off: an array of shape {shape} does not fit into {size:,} bytes."
            )
        self.columns = list(self._kind.names or (f"x{i}" for i in range(self._width)))
        self.total = shape[0]
        self._batch_rows = max(1, batch_bytes // max(1, self._width * self._kind.itemsize))
        self._whole: np.ndarray[Any, Any] | None = None
        if by_column and len(shape) > 1:
            self._whole = self._read(math.prod(shape)).reshape(shape[::-1]).T
        while (missing := self._first_row() - self.rows) > 0:
            self.rows += len(self._rows(min(self._batch_rows, missing)))

    def _member(self) -> tuple[IO[bytes], int]:
        if self._stream.size is None:
            raise TableError(".npz cannot be read from standard input; give a path, or send .npy.")
        self._archive = zipfile.ZipFile(self.name)
        names = [name.removesuffix(".npy") for name in self._archive.namelist() if name.endswith(".npy")]
        if len(names) != 1 and _CHOSEN not in names:
            raise TableError(
                f"{self.name} must hold one array, or one called {_CHOSEN!r}, but has "
                f"{', '.join(names[:10]) or 'none'}. Save the rows alone, as in np.save."
            )
        chosen = names[0] if len(names) == 1 else _CHOSEN
        self.unused = [name for name in names if name != chosen]
        member = f"{chosen}.npy"
        return self._archive.open(member), self._archive.getinfo(member).file_size

    def _header(self) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        """Return the shape, whether the order is Fortran's, and the type of the values."""
        file = cast(IO[bytes], self._bytes)
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(file)
        if version == (2, 0):
            return np.lib.format.read_array_header_2_0(file)
        raise TableError(
            f"{self.name} is in version {version[0]}.{version[1]} of the format, which is not supported; "
            f"save it with np.save."
        )

    def _checked_width(self, shape: tuple[int, ...]) -> int:
        kinds = [field[0] for field in self._kind.fields.values()] if self._kind.fields else [self._kind]
        wrong = [kind for kind in kinds if kind.kind not in _ALLOWED or kind.shape or not kind.itemsize]
        if wrong:
            raise TableError(f"{self.name} holds {wrong[0]}; rankad reads numbers, booleans, text and dates.")
        dimensions = (1,) if self._kind.names else (1, 2)
        if len(shape) not in dimensions or min(shape) < 0 or not math.prod(shape[1:]):
            raise TableError(f"{self.name} must have rows and columns, got an array of shape {shape}.")
        width = shape[1] if len(shape) > 1 else 1
        if width > _MOST_COLUMNS:
            # Column names take memory too, and the file has no bytes for them.
            raise TableError(
                f"{self.name} declares {width:,} columns; rankad reads at most {_MOST_COLUMNS:,}."
            )
        return width

    def _next_batch(self) -> pl.DataFrame | None:
        rows = self._rows(min(self._batch_rows, self.total - self.rows))
        if not len(rows):
            return None
        with blamed_on(f"{self.name} cannot be read as a table"):
            if self._kind.names:
                return pl.DataFrame({name: _plain(rows[name].ravel()) for name in self.columns})
            rows = _plain(rows.reshape(len(rows), self._width).T)
            # For many columns, a dict would take twice as long.
            return pl.DataFrame(list(map(pl.Series, self.columns, rows)))

    def _rows(self, n: int) -> np.ndarray[Any, Any]:
        if self._whole is not None:
            return self._whole[self.rows : self.rows + n]
        return self._read(n * self._width).reshape(n, self._width)

    def _read(self, n_values: int) -> np.ndarray[Any, Any]:
        with blamed_on(f"{self.name} cannot be read (is it damaged or cut off?)"):
            # In pieces: one read of a whole archive member would hold it twice.
            data, missing = bytearray(), n_values * self._kind.itemsize
            while missing and (piece := self._bytes.read(min(_PIECE_BYTES, missing))):
                data += piece
                missing -= len(piece)
        if len(data) < n_values * self._kind.itemsize:
            raise TableError(f"{self.name} is cut off: it ends before its last row, {self.total:,}.")
        return np.frombuffer(data, self._kind)

    def close(self) -> None:
        """Close the file."""
        self._close_archive()
        self._stream.close()

    def _close_archive(self) -> None:
        # The file stays open as long as one of its members is.
        if self._bytes is not self._stream:
            self._bytes.close()
        if self._archive is not None:
            self._archive.close()


def _plain(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the values in the nearest type that polars knows, in native byte order."""
    kind = values.dtype.newbyteorder("=")
    if kind.kind == "f" and kind.itemsize not in (4, 8):
        kind = np.dtype(np.float32 if kind.itemsize < 4 else np.float64)
    if kind.kind == "M":
        kind = np.dtype("datetime64[us]")
    return np.ascontiguousarray(values, dtype=kind)
