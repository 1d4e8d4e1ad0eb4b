"""A byte stream cut into blocks of whole records."""

from __future__ import annotations

from typing import NoReturn

from rankad.io.errors import TableError
from rankad.io.streams import ByteStream

__all__ = ["RecordBlocks", "end_of_records", "first_record_end"]

_UTF8_MARK = b"\xef\xbb\xbf"


class RecordBlocks:
    """Blocks of about `batch_bytes` that end where a record ends.

    Parameters
    ----------
    stream : ByteStream
    batch_bytes : int
        The largest block, and so the longest record.
    quoted : bool
        Whether a newline within double quotes belongs to a cell, as in CSV.

    Attributes
    ----------
    offset : int
        Where the next block begins, in bytes after decompression.
    line : int
        Lines before the next block; the caller adds those of the blocks it has read.
    """

    def __init__(self, stream: ByteStream, batch_bytes: int, *, quoted: bool) -> None:
        self.stream = stream
        self.offset = 0
        self.line = 0
        self._batch_bytes = batch_bytes
        self._quoted = quoted
        self._rest = b""
        if stream.peek(3) == _UTF8_MARK:
            self.offset = len(stream.read(3))

    def first_record(self) -> bytes:
        """Return the first record, its newline included."""
        self._fill()
        end = first_record_end(self._rest) if self._quoted else self._rest.find(b"\n") + 1
        if not end and len(self._rest) == self._batch_bytes:
            self._raise_too_long()
        record = self._rest[: end or None]
        self._rest = self._rest[len(record) :]
        self.offset += len(record)
        self.line += record.count(b"\n")
        return record

    def skip_blank_lines(self) -> None:
        """Go to the first record that is more than blanks."""
        while True:
            self._fill()
            text = self._rest.lstrip()
            blank = (
                len(self._rest) if not text else self._rest.rfind(b"\n", 0, len(self._rest) - len(text)) + 1
            )
            # At the end of the file, and else at a record.
            if not blank or (not text and len(self._rest) < self._batch_bytes):
                return
            self.offset += blank
            self.line += self._rest.count(b"\n", 0, blank)
            self._rest = self._rest[blank:]
            if text:
                return

    def next_block(self) -> bytes:
        """Return the next whole records, nothing at the end."""
        self._fill()
        data = self._rest
        if len(data) < self._batch_bytes:
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
        block, self._rest = data[:end], data[end:]
        if b"\0" in block:
            line = self.line + 1 + block.count(b"\n", 0, block.index(b"\0"))
            raise TableError(
                f"{self.stream.name}, line {line}: a NUL byte. This is no UTF-8 text: give the format "
                f"(--format) if it is another, or the encoding (--encoding utf-16-le, for instance)."
            )
        self.offset += len(block)
        return block

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
                f"{self.stream.name} has no row that begins at byte {offset:,}: it is not the file that was "
                f"begun with. Start over."
            )
        self.offset, self.line = offset, line

    def _fill(self) -> None:
        missing = self._batch_bytes - len(self._rest)
        if missing > 0:
            self._rest += self.stream.read(missing)

    def _raise_too_long(self) -> NoReturn:
        hint = " Is a quote never closed?" if self._quoted else ""
        raise TableError(
            f"{self.stream.name}, line {self.line + 1}: a row longer than {self._batch_bytes:,} bytes "
            f"(batch_bytes).{hint}"
        )


def end_of_records(data: bytes) -> int:
    r"""Return where the last record ends: after the last newline outside quotes, 0 if there is none.

    A newline is outside if the quotes before it are even in number.

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
    r"""Return where the first record ends, 0 if it does not.

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
