"""Split a byte stream into blocks of whole records."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import polars as pl

from rankad.io.errors import TableError
from rankad.io.streams import ByteStream

_UTF8_MARK = b"\xef\xbb\xbf"
# Each row takes memory of its own, however short its line is: blocks of more lines than this are cut.
_MOST_LINES, _PIECE_LINES = 1 << 18, 1 << 17


class RecordBlocks:
    """Blocks of at most `batch_bytes`, and 262,144 lines, that end where a record ends.

    A record of more bytes is an error; one of more lines makes a block longer.

    With `quoted`, a newline within double quotes belongs to a cell, as in CSV. `offset` is where the next
    block begins, in bytes after decompression; `line` counts the lines before it, and is advanced by the
    caller.
    """

    def __init__(self, stream: ByteStream, batch_bytes: int, *, quoted: bool) -> None:
        self.stream, self.offset, self.line = stream, 0, 0
        self.batch_bytes, self._quoted, self._rest = batch_bytes, quoted, b""
        self._pieces: list[bytes] = []
        if stream.peek(3) == _UTF8_MARK:
            self.offset = len(stream.read(3))

    def first_record(self) -> bytes:
        """Return the next record with its newline."""
        self._fill()
        end = first_record_end(self._rest) if self._quoted else self._rest.find(b"\n") + 1
        if not end and len(self._rest) == self.batch_bytes:
            self._raise_too_long()
        record = self._rest[: end or None]
        self._rest = self._rest[len(record) :]
        self.offset += len(record)
        self.line += record.count(b"\n")
        return record

    def skip_blank_lines(self) -> None:
        """Go to the first record that is not blank."""
        while True:
            self._fill()
            text = self._rest.lstrip()
            blank = (
                len(self._rest) if not text else self._rest.rfind(b"\n", 0, len(self._rest) - len(text)) + 1
            )
            # Stop at a record, or at the end of the file.
            if not blank or (not text and len(self._rest) < self.batch_bytes):
                return
            self.offset += blank
            self.line += self._rest.count(b"\n", 0, blank)
            self._rest = self._rest[blank:]
            if text:
                return

    def next_block(self) -> bytes:
        """Return the next whole records; empty at the end."""
        if not self._pieces:
            self._pieces = self._cut(self._whole_records())
        block = self._pieces.pop(0)
        self.check_nul(block)
        self.offset += len(block)
        return block

    def _whole_records(self) -> bytes:
        self._fill()
        data = self._rest
        if len(data) < self.batch_bytes:
            end = len(data)
            if self._quoted and data.count(b'"') % 2:
                line = self.line + 1 + data.count(b"\n", 0, end_of_records(data))
                raise TableError(
                    f"{self.stream.name}, line {line}: a quote is opened here or below and never closed. "
                    f"Close it, or double it if it belongs to the cell."
                )
        else:
            end = end_of_records(data) if self._quoted else data.rfind(b"\n") + 1
            if not end:
                self._raise_too_long()
        self._rest = data[end:]
        return data[:end]

    def _cut(self, block: bytes) -> list[bytes]:
        """Cut a block of too many lines into several, where records end."""
        if block.count(b"\n") <= _MOST_LINES:
            return [block]
        newlines = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        pieces, begin = [], 0
        for end in [*(newlines[_PIECE_LINES - 1 :: _PIECE_LINES] + 1).tolist(), len(block)]:
            if end > begin and not (self._quoted and block.count(b'"', begin, end) % 2):
                pieces.append(block[begin:end])
                begin = end
        return pieces

    def check_nul(self, block: bytes) -> None:
        """Raise for a NUL byte in a block that begins after `line` lines."""
        if b"\0" in block:
            line = self.line + 1 + block.count(b"\n", 0, block.index(b"\0"))
            raise TableError(
                f"{self.stream.name}, line {line}: a NUL byte, so this is not UTF-8 text. Give the format "
                f"(--format) if it is another, or the encoding (--encoding utf-16-le, for instance)."
            )

    def go_to(self, offset: int, line: int) -> None:
        """Begin the next block at `offset`, after `line` lines."""
        before = b"\n"
        if self.offset < offset <= self.offset + len(self._rest):
            before = self._rest[offset - self.offset - 1 :][:1]
            self._rest = self._rest[offset - self.offset :]
        elif offset > self.offset:
            self.stream.skip_to(offset - 1)
            before, self._rest = self.stream.read(1), b""
        if offset < self.offset or not before or (before != b"\n" and (self._rest or self.stream.peek(1))):
            raise TableError(
                f"{self.stream.name} has no row that begins at byte {offset:,}: it is not the file that the "
                f"run was started with. Start over."
            )
        self.offset, self.line = offset, line

    def _fill(self) -> None:
        missing = self.batch_bytes - len(self._rest)
        if missing > 0:
            self._rest += self.stream.read(missing)

    def _raise_too_long(self) -> NoReturn:
        hint = " Is a quote never closed?" if self._quoted else ""
        raise TableError(
            f"{self.stream.name}, line {self.line + 1}: a row longer than {self.batch_bytes:,} bytes "
            f"(batch_bytes).{hint}"
        )


def lines_of(block: bytes) -> pl.Series:
    """Return each line without its end as one cell; no line may have a NUL."""
    schema = {"": pl.String()}
    return pl.read_csv(block, has_header=False, separator="\0", quote_char=None, schema=schema).to_series()


def end_of_records(data: bytes) -> int:
    r"""Return where the last record ends: after the last newline with an even number of quotes before it.

    >>> end_of_records(b'1,"a"\n2,"b\n')
    6
    """
    end = data.rfind(b"\n") + 1
    odd = data.count(b'"', 0, end) % 2
    while end and odd:
        before = data.rfind(b"\n", 0, end - 1) + 1
        odd ^= data.count(b'"', before, end) % 2
        end = before
    return end


def first_record_end(data: bytes) -> int:
    r"""Return where the first record ends, 0 if it is incomplete.

    >>> first_record_end(b'a,"b\nc"\n1,2\n')
    8
    """
    end, begin, odd = 0, 0, 0
    while True:
        end = data.find(b"\n", begin) + 1
        if not end:
            return 0
        odd ^= data.count(b'"', begin, end) % 2
        if not odd:
            return end
        begin = end
