"""Convert text in other encodings to UTF-8, piece by piece."""

from __future__ import annotations

import codecs
from typing import NoReturn

from rankad.io.errors import TableError

# The longer first: the byte order mark of UTF-32 begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_UTF8 = ("utf-8", "utf-8-sig")
# Codecs of Python for names and literals.
_NOT_TEXT = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape")


class Recoder:
    """Text in an encoding to UTF-8; bytes that are invalid in it are an error with their line."""

    def __init__(self, encoding: str, name: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._encoding, self._name, self._line = encoding, name, 1

    def feed(self, data: bytes) -> bytes:
        """Return the next characters in UTF-8; empty `data` is the end."""
        try:
            text = self._decoder.decode(data, final=not data).encode()
        except UnicodeEncodeError as error:
            self._raise(error.object[: error.start].count("\n"), "half of a surrogate pair, not a character")
        except UnicodeDecodeError as error:
            readable = error.object[: error.start].decode(self._encoding, "replace")
            what = f"byte 0x{error.object[error.start]:02x} is not {self._encoding} text"
            if not data:
                what = f"the file is cut off: it ends in the middle of a character of {self._encoding}"
            self._raise(readable.count("\n"), what)
        self._line += text.count(b"\n")
        return text

    def _raise(self, lines: int, what: str) -> NoReturn:
        raise TableError(
            f"{self._name}, line {self._line + lines}: {what}. Give the file's encoding (--encoding), or "
            f"correct the line."
        ) from None


def checked_encoding(encoding: str) -> str | None:
    """Return Python's name of an encoding, None for UTF-8, or raise if it does not exist.

    >>> checked_encoding("Latin-1"), checked_encoding("UTF8")
    ('iso8859-1', None)
    """
    try:
        codec = codecs.lookup(encoding)
        is_text = getattr(codec, "_is_text_encoding", True)
    except (LookupError, ValueError, TypeError):
        is_text = False
    if not is_text or codec.name.replace("_", "-") in _NOT_TEXT:
        raise TableError(
            f"encoding must be a text encoding such as utf-8, latin-1, cp1252 or utf-16; got "
            f"{encoding!r:.100}."
        )
    return None if codec.name in _UTF8 else codec.name


def encoding_by_mark(head: bytes) -> str | None:
    """Return the encoding by the byte order mark of a file, None for UTF-8 or no mark."""
    return next((encoding for mark, encoding in _MARKS.items() if head.startswith(mark)), None)


def not_utf8(byte: int, where: str = "") -> str:
    """Say that a byte is not UTF-8, and suggest an encoding; it is never guessed, which could be wrong.

    >>> not_utf8(0xE9)
    "byte 0xe9 is not UTF-8 text; give --encoding latin-1 if it stands for 'é'"
    >>> not_utf8(0x80, " in the header")
    "byte 0x80 in the header is not UTF-8 text; give --encoding cp1252 if it stands for '€'"
    """
    encoding = "cp1252" if byte in range(0x80, 0xA0) else "latin-1"
    letter = bytes([byte]).decode(encoding, "replace")
    stands = f" if it stands for {letter!r}" if letter.isprintable() and letter != "\ufffd" else ""
    return f"byte 0x{byte:02x}{where} is not UTF-8 text; give --encoding {encoding}{stands}"
