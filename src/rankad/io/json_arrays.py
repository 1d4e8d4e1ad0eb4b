"""Convert an array of JSON objects to JSON lines, piece by piece."""

from __future__ import annotations

import re

import numpy as np

from rankad._base.arrays import Ints
from rankad.io.errors import TableError
from rankad.io.json_lines import JsonLinesReader

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
# The role of each byte value in an array; most have none.
_QUOTE, _COMMA, _LINE_END, _OPEN, _CLOSE = range(1, 6)
_KINDS = np.zeros(256, np.uint8)
for _kind, _bytes in ((_QUOTE, b'"'), (_COMMA, b","), (_LINE_END, b"\r\n"), (_OPEN, b"[{"), (_CLOSE, b"]}")):
    _KINDS[list(_bytes)] = _kind


class ArrayLines:
    r"""A filter that puts each element of an array on its own line, at the same offsets.

    A comma between two elements becomes a newline, and a newline outside text a blank. The elements
    themselves are not checked.

    >>> lines = ArrayLines("table")
    >>> lines.feed(b'[{"a": 1,\n "b": "x,y"}, {"a"') + lines.feed(b": 2}]\n") + lines.feed(b"")
    b' {"a": 1,  "b": "x,y"}\n {"a": 2}  '
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._depth, self._in_text, self._ended = 0, False, False
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Return the next bytes of lines; empty `data` is the end."""
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
        kinds = _KINDS[np.frombuffer(_ESCAPE.sub(b"  ", data) if b"\\" in data else data, np.uint8)]
        at = np.flatnonzero(kinds)
        kind = kinds[at]
        quotes = kind == _QUOTE
        # The quotes themselves are neither inside nor outside.
        inside = (np.cumsum(quotes) + self._in_text) % 2 == 1
        outside = ~inside & ~quotes
        opens, closes = outside & (kind == _OPEN), outside & (kind == _CLOSE)
        depth = self._depth + np.cumsum(opens.astype(np.int64) - closes)
        # The brackets of the array itself.
        first, last = opens & (depth == 1), closes & (depth == 0)
        self._check_end(data, at[last])
        out = np.frombuffer(data, np.uint8).copy()
        out[at[outside & (kind == _LINE_END) | first | last]] = ord(" ")
        out[at[outside & (kind == _COMMA) & (depth == 1)]] = ord("\n")
        if at.size:
            self._in_text, self._depth = bool(inside[-1]), int(depth[-1])
        return out.tobytes()

    def _check_end(self, data: bytes, ends: Ints) -> None:
        """Raise for anything but blanks after the array."""
        behind = data if self._ended else data[ends[0] + 1 :] if ends.size else b""
        self._ended = self._ended or bool(ends.size)
        if behind.strip():
            raise TableError(
                f"{self._name}: there is text after the end of the JSON array. Put all objects into one "
                f"array, or write one object per line."
            )


class JsonArrayReader(JsonLinesReader):
    """Rows of the JSON objects of one array; see `JsonLinesReader`."""

    place = "row"
    empty = "holds an empty JSON array: no rows and no column names"
