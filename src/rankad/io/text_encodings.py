"""Text in other encodings to UTF-8, piece by piece."""

from __future__ import annotations

import codecs
from typing import NoReturn, Protocol

from rankad.io.errors import TableError

__all__ = ["Filter", "Recoded", "checked_encoding", "likely_encoding", "marked_encoding"]

# The longer first: the mark of UTF-32 begins as that of UTF-16 does.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_UTF8 = ("utf-8", "utf-8-sig")
# Python's, for names and literals.
_NO_TEXT = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape")


class Filter(Protocol):
    """Bytes to other bytes, piece by piece."""

    def feed(self, data: bytes) -> bytes:
        """Return what can be said of the next bytes; nothing stands for the end of them."""


class Recoded:
    """Text in any encoding to UTF-8; what is no text in it is an error with its line.

    Parameters
    ----------
    encoding : str
        Of `checked_encoding`.
    name : str
        Of the file.
    """

    def __init__(self, encoding: str, name: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._encoding, self._name, self._line = encoding, name, 1

    def feed(self, data: bytes) -> bytes:
        """Return the next characters in UTF-8."""
        try:
            text = self._decoder.decode(data, final=not data).encode()
        except UnicodeEncodeError as error:
            self._raise(error.object[: error.start].count("\n"), "half of a surrogate pair, not a character")
        except UnicodeDecodeError as error:
            readable = error.object[: error.start].decode(self._encoding, "replace")
            what = f"byte 0x{error.object[error.start]:02x} is no {self._encoding} text"
            if not data:
                what = f"the file ends in the middle of a character of {self._encoding}; it is cut off"
            self._raise(readable.count("\n"), what)
        self._line += text.count(b"\n")
        return text

    def _raise(self, lines: int, what: str) -> NoReturn:
        raise TableError(
            f"{self._name}, line {self._line + lines}: {what}. Give the encoding that it has "
            f"(--encoding), or correct the line."
        ) from None


def checked_encoding(encoding: str) -> str | None:
    """Return Python's name of an encoding, None for UTF-8, or raise for one that there is not.

    >>> checked_encoding("Latin-1"), checked_encoding("UTF8")
    ('iso8859-1', None)
    """
    try:
        found = codecs.lookup(encoding)
        is_text = getattr(found, "_is_text_encoding", True)
    except (LookupError, ValueError, TypeError):
        is_text = False
    if not is_text or found.name.replace("_", "-") in _NO_TEXT:
        raise TableError(
            f"encoding must be that of a text, such as utf-8, latin-1, cp1252 or utf-16; got "
            f"{encoding!r:.100}."
        )
    return None if found.name in _UTF8 else found.name


def marked_encoding(head: bytes) -> str | None:
    """Return the encoding that the first bytes of a file are the mark of, None for UTF-8 or none."""
    return next((encoding for mark, encoding in _MARKS.items() if head.startswith(mark)), None)


def likely_encoding(byte: int) -> str:
    """Say what a byte that is not UTF-8 stands for in an encoding that is often met.

    Nothing is read so unless it is asked for: in these encodings every byte is some letter, so that a text in
    another would be read without an error, and wrongly.

    >>> likely_encoding(0xE9)
    "give --encoding latin-1 if it stands for 'é'"
    >>> likely_encoding(0x80)
    "give --encoding cp1252 if it stands for '€'"
    """
    encoding = "cp1252" if byte in range(0x80, 0xA0) else "latin-1"
    letter = bytes([byte]).decode(encoding, "replace")
    stands = f" if it stands for {letter!r}" if letter.isprintable() and letter != "\ufffd" else ""
    return f"give --encoding {encoding}{stands}"
