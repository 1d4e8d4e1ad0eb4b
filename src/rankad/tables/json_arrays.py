"""An array of JSON objects to JSON lines, piece by piece: memory stays small whatever its size."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from rankad._arrays import Ints
from rankad.tables.errors import TableError
from rankad.tables.json_lines import JsonLinesReader

__all__ = ["ArrayLines", "JsonArrayReader"]

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_QUOTE, _COMMA, _NEWLINE, _RETURN, _SPACE = (ord(character) for character in '",\n\r ')
_BLANKS = (_NEWLINE, _RETURN, _SPACE, ord("\t"))
_OPEN, _CLOSE = (ord("["), ord("{")), (ord("]"), ord("}"))


class ArrayLines:
    r"""The objects of an array, one a line, byte by byte where they were.

    A comma between two elements becomes a newline, a newline outside text a blank. What stands between is not
    looked at: who reads the lines does that.

    Parameters
    ----------
    name : str
        Of the file.

    Examples
    --------
    >>> lines = ArrayLines("table")
    >>> lines.feed(b'[{"a": 1,\n "b": "x,y"}, {"a"') + lines.feed(b": 2}]\n") + lines.feed(b"")
    b' {"a": 1,  "b": "x,y"}\n {"a": 2}  '
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._depth, self._in_text, self._ended = 0, False, False
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Return the next bytes of lines; nothing stands for the end."""
        if not data:
            if not self._ended:
                raise TableError(f"{self._name} is cut off: its JSON array is never closed.")
            return b""
        data = self._rest + data
        # A backslash at the end belongs to what follows.
        self._rest = b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        data = data[: len(data) - len(self._rest)]
        return self._lines(data) if data else b""

    def _lines(self, data: bytes) -> bytes:
        text = np.frombuffer(_ESCAPE.sub(b"  ", data) if b"\\" in data else data, np.uint8)
        quotes = text == _QUOTE
        # A quote that opens counts itself; one that closes does not, and is neither here nor there.
        inside = (np.cumsum(quotes) + self._in_text) % 2 == 1
        outside = ~inside & ~quotes
        opens, closes = outside & np.isin(text, _OPEN), outside & np.isin(text, _CLOSE)
        depth = self._depth + np.cumsum(opens.astype(np.int64) - closes)
        self._check_end(text, np.flatnonzero(closes & (depth == 0)))
        out = np.frombuffer(data, np.uint8).copy()
        out[outside & ((text == _NEWLINE) | (text == _RETURN))] = _SPACE
        out[outside & (text == _COMMA) & (depth == 1)] = _NEWLINE
        # The brackets of the array itself.
        out[(opens & (depth == 1)) | (closes & (depth == 0))] = _SPACE
        self._in_text, self._depth = bool(inside[-1]), int(depth[-1])
        return out.tobytes()

    def _check_end(self, text: NDArray[np.uint8], ends: Ints) -> None:
        """Raise for anything but blanks behind the array."""
        behind = text[ends[0] + 1 :] if ends.size and not self._ended else text if self._ended else text[:0]
        self._ended = self._ended or bool(ends.size)
        if not np.isin(behind, _BLANKS).all():
            raise TableError(
                f"{self._name}: there is more behind the end of the JSON array. Put all objects into one "
                f"array, or write one object a line."
            )


class JsonArrayReader(JsonLinesReader):
    """Rows of the JSON objects of one array; see `JsonLinesReader`. Rows are told by their number."""

    place = "row"
    empty = "holds an empty JSON array; there are no rows, and no names of columns"
