"""Workbooks, arrays of JSON objects and other encodings that are damaged, odd or there to harm."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable, Mapping
from functools import cache, partial

__all__ = ["arrays", "encodings", "whole", "workbooks"]

# The name of a file, what is in it, and options of the command.
_Bad = tuple[str, bytes | Callable[[], bytes], tuple[str, ...]]
# What a few kilobytes become.
BOMB = 1 << 29
_SHEET, _BOOK, _TEXTS = "xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/sharedStrings.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"


def whole() -> dict[str, bytes]:
    """Return good files of these formats, by name; bytes of them are changed."""
    from malformed_cases import frame

    rows = frame(25, 2)
    text = json.dumps(rows.to_dicts(), indent=1)
    return {
        "t.xlsx": _good_book(),
        "t.json": text.encode(),
        "t16.csv": rows.write_csv().encode("utf-16"),
        "t16.json": text.encode("utf-16"),
    }


# ------------------------------------------------------------------------------------------------ workbooks


@cache
def _good_book() -> bytes:
    from malformed_cases import frame

    out = io.BytesIO()
    frame(25, 2).write_excel(out, worksheet="May")
    return out.getvalue()


def _parts() -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(_good_book())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _packed(changes: Mapping[str, bytes | None]) -> bytes:
    """Return the good workbook with parts replaced, added or (None) left out."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (_parts() | dict(changes)).items():
            if data is not None:
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _replaced(part: str, old: bytes, new: bytes) -> bytes:
    data = _parts()[part]
    if old not in data:
        raise ValueError(f"{part} has no {old!r}")
    return _packed({part: data.replace(old, new, 1)})


def _sheet(rows: bytes) -> bytes:
    """Return the good workbook with other rows in its sheet."""
    before, _, rest = _parts()[_SHEET].partition(b"<sheetData>")
    _, _, after = rest.partition(b"</sheetData>")
    return _packed({_SHEET: before + b"<sheetData>" + rows + b"</sheetData>" + after})


def _swollen(part: str, filler: bytes, before: bytes, after: bytes) -> bytes:
    """Return a workbook of which one part becomes half a gigabyte."""
    out, piece = io.BytesIO(), filler * ((1 << 20) // len(filler))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in _parts().items():
            if name != part:
                archive.writestr(name, data)
        with archive.open(part, "w") as file:
            file.write(before)
            for _ in range(BOMB // len(piece)):
                file.write(piece)
            file.write(after)
    return out.getvalue()


def _swollen_sheet(filler: bytes) -> bytes:
    before, _, rest = _parts()[_SHEET].partition(b"</sheetData>")
    return _swollen(_SHEET, filler, before, b"</sheetData>" + rest)


def _swollen_texts(filler: bytes) -> bytes:
    before, _, rest = _parts()[_TEXTS].partition(b"</sst>")
    return _swollen(_TEXTS, filler, before, b"</sst>" + rest)


def _far(reference: bytes) -> bytes:
    """Return a workbook with one more cell, far from the others."""
    row = reference.lstrip(bytes(range(65, 91)))
    return _far_as(b'<row r="%s"><c r="%s"><v>1</v></c></row>' % (row, reference))


def _far_as(rows: bytes) -> bytes:
    return _replaced(_SHEET, b"</sheetData>", rows + b"</sheetData>")


def _many_sheets(n: int) -> bytes:
    parts = _parts()
    sheets = b"".join(
        b'<sheet name="s%d" sheetId="%d" r:id="rId%d"/>' % (at, at, 1000 + at) for at in range(1, n)
    )
    kind = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
    found = b"".join(
        b'<Relationship Id="rId%d" Type="%s" Target="worksheets/sheet1.xml"/>' % (1000 + at, kind)
        for at in range(1, n)
    )
    return _packed(
        {
            _BOOK: parts[_BOOK].replace(b"</sheets>", sheets + b"</sheets>"),
            _RELATIONS: parts[_RELATIONS].replace(b"</Relationships>", found + b"</Relationships>"),
        }
    )


def _laughs() -> bytes:
    entities = b"".join(
        b'<!ENTITY l%d "%s">' % (at, b"&l%d;" % (at - 1) * 10) if at else b'<!ENTITY l0 "lol">'
        for at in range(12)
    )
    texts = _parts()[_TEXTS]
    head, _, rest = texts.partition(b"?>")
    rest = rest.replace(b"<t>", b"<t>&l11;", 1)
    return _packed({_TEXTS: head + b"?><!DOCTYPE sst [" + entities + b"]>" + rest})


def _method(data: bytes, method: int) -> bytes:
    """Set the way the first member is compressed, at both places."""
    found = bytearray(data)
    struct.pack_into("<H", found, 8, method)
    struct.pack_into("<H", found, found.index(b"PK\x01\x02") + 10, method)
    return bytes(found)


def _flagged(data: bytes, flag: int) -> bytes:
    found = bytearray(data)
    found[6] |= flag
    found[found.index(b"PK\x01\x02") + 8] |= flag
    return bytes(found)


def _other_sizes(data: bytes, size: int) -> bytes:
    """Let the directory say another size of every member."""
    found, at = bytearray(data), 0
    while (at := found.find(b"PK\x01\x02", at)) >= 0:
        struct.pack_into("<I", found, at + 24, size)
        at += 46
    return bytes(found)


def _gzip_of_an_archive() -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile("", "wb", 1, out, mtime=0) as file:
        file.write(b"PK\x03\x04")
        for _ in range(BOMB >> 20):
            file.write(bytes(1 << 20))
    return out.getvalue()


def workbooks() -> dict[str, _Bad]:
    """Return workbooks, by what is wrong with them."""
    good = _good_book()
    files: dict[str, bytes | Callable[[], bytes]] = {
        "cut in the middle": good[: len(good) // 2],
        "cut in its directory": good[:-60],
        "without the last byte": good[:-1],
        "the end of an archive only": good[-22:],
        "with bytes before its beginning": b"more" + good,
        "with bytes behind its end": good + b"more" * 100,
        "a wrong checksum": good.replace(good[60:64], b"abcd", 1),
        "encrypted, it says": _flagged(good, 1),
        "compressed in an unknown way": _method(good, 99),
        "sizes of 4 GB": _other_sizes(good, 2**32 - 1),
        "sizes of no bytes": _other_sizes(good, 0),
        "half a gigabyte of NULs for a sheet": partial(_swollen, _SHEET, b"\0", b"", b""),
        "half a gigabyte of blanks in a sheet": partial(_swollen_sheet, b" "),
        "half a gigabyte of empty rows": partial(_swollen_sheet, b"<row/>"),
        "half a gigabyte of cells": partial(_swollen_sheet, b"<row><c><v>1</v></c></row>"),
        "half a gigabyte of texts": partial(_swollen_texts, b"<si><t>a</t></si>"),
        "half a gigabyte in one text": partial(_swollen_texts, b"a"),
        "half a gigabyte in gzip": _gzip_of_an_archive,
        "in gzip": gzip.compress(good, mtime=0),
        "a cell in the farthest corner": partial(_far, b"XFD1048576"),
        "a cell a million rows away": partial(_far, b"BH1000000"),
        "a cell in the last column": partial(_far, b"XFD2000"),
        "a cell in row 2^32": partial(_far, b"A4294967297"),
        "a cell in row 0": partial(_far, b"A0"),
        "a cell in column ZZZZZZZZ": partial(_far, b"ZZZZZZZZ9"),
        "a reference behind another attribute": partial(
            _far_as, b"""<row r="2000"><c x=" r='A1' &gt;>" r='XFD2000'><v>1</v></c></row>"""
        ),
        "a reference behind a prefix": partial(
            _far_as, b'<x:row r="1000000"><x:c r="BH1000000"><v>1</v></x:c></x:row>'
        ),
        "rows in reverse order": partial(
            _far_as, b'<row r="900"><c r="A900"/></row><row r="40"><c r="A40"><v>1</v></c></row>'
        ),
        "a reference without a row": partial(_replaced, _SHEET, b'r="B3"', b'r="B"'),
        "a text that is not there": partial(
            _replaced, _SHEET, b'<c r="A2"', b'<c r="A2" t="s"><v>99999999</v></c><c r="A2"'
        ),
        "numbers that are none": partial(_replaced, _SHEET, b"<v>", b"<v>1e999x"),
        "a format that is not there": partial(_replaced, _SHEET, b'<c r="B2"', b'<c r="B2" s="4294967295"'),
        "a sheet cut off": _packed({_SHEET: _parts()[_SHEET][:2000]}),
        "a sheet of nested tags": _packed({_SHEET: b"<a>" * 300_000}),
        "no sheet in the archive": _packed({_SHEET: None}),
        "no relations": _packed({_RELATIONS: None}),
        "a list of sheets that is no XML": _packed({_BOOK: b"\xff\xfe<<<>>>&"}),
        "a list of no sheets": _packed({_BOOK: b"<workbook><sheets></sheets></workbook>"}),
        "a sheet outside of the archive": partial(
            _replaced, _RELATIONS, b"worksheets/sheet1.xml", b"../../../../etc/passwd"
        ),
        "a file of the system for a text": partial(
            _replaced, _TEXTS, b"<sst", b'<!DOCTYPE sst [<!ENTITY x SYSTEM "file:///etc/passwd">]><sst'
        ),
        "entities of entities": _laughs,
        "3,000 sheets": partial(_many_sheets, 3_000),
        "a name of control characters": partial(_replaced, _BOOK, b"May", b"M&#27;[2Ja&#10;y"),
        "a binary workbook": _packed({"xl/worksheets/sheet1.bin": b"\x81\x01\x00" * 50}),
        "16,384 columns": partial(_sheet, _row(16_384, 1) + _row(16_384, 2)),
        "a sheet of names only": partial(_sheet, b'<row r="1"><c r="A1" t="str"><v>load</v></c></row>'),
        "an empty sheet": partial(_sheet, b""),
        "dates beyond the calendar": _dates,
    }
    found: dict[str, _Bad] = {name: ("t.xlsx", data, ()) for name, data in files.items()}
    found["a sheet that is not there"] = ("t.xlsx", good, ("--sheet", "June\x1b[2J"))
    found["a sheet of a CSV file"] = ("t.csv", b"id,load\na,1\n", ("--sheet", "May"))
    found["an encoding"] = ("t.xlsx", good, ("--encoding", "latin-1"))
    found["locked by a password"] = ("t.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4096), ())
    found["a page called .xls"] = ("t.xls", b"<html><table><tr><td>1</td></tr></table></html>", ())
    return {f"workbook: {name}": bad for name, bad in found.items()}


def _row(n: int, at: int) -> bytes:
    """Return a row of a sheet: of texts if it is the first, else of numbers."""
    kind = b' t="str"' if at == 1 else b""
    word = b"c" if at == 1 else b""
    return b'<row r="%d">%s</row>' % (
        at,
        b"".join(b"<c%s><v>%s%d</v></c>" % (kind, word, number) for number in range(n)),
    )


def _dates() -> bytes:
    """Return the good workbook with all numbers dates, some of them of no calendar."""
    import polars as pl

    from malformed_cases import frame

    rows = frame(25, 2).with_columns(load=pl.lit("2024-01-01").str.to_date())
    out = io.BytesIO()
    rows.write_excel(out, worksheet="May")
    with zipfile.ZipFile(io.BytesIO(out.getvalue())) as archive:
        sheet = archive.read(_SHEET)
        styles = archive.read("xl/styles.xml")
    for number in (b"1e300", b"-700000", b"2958466"):
        sheet = sheet.replace(b"<v>45292</v>", b"<v>%s</v>" % number, 1)
    return _packed({_SHEET: sheet, "xl/styles.xml": styles})


# ---------------------------------------------------------------------------------- arrays of JSON objects


def _gzip_of(head: bytes, filler: bytes) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile("", "wb", 1, out, mtime=0) as file:
        file.write(head)
        piece = filler * ((1 << 20) // len(filler))
        for _ in range(BOMB // len(piece)):
            file.write(piece)
    return out.getvalue()


def _new_keys(n: int, before: bytes, between: bytes, after: bytes) -> bytes:
    return before + between.join(b'{"k%d": 1}' % at for at in range(n)) + after


def arrays() -> dict[str, _Bad]:
    """Return arrays of JSON objects, by what is wrong with them."""
    from malformed_cases import frame

    rows = frame(25, 2).to_dicts()
    good = json.dumps(rows)
    files: dict[str, bytes | Callable[[], bytes]] = {
        "cut in a text": good[: good.rindex("R20") + 2].encode(),
        "cut between objects": good[: good.rindex("}, {") + 2].encode(),
        "cut after a backslash": b'[{"id": "a\\',
        "a bracket only": b"[",
        "closed before it is opened": b"[]]]]{[[",
        "closed by the other bracket": good[:-1].encode() + b"}",
        "commas only": b"[,,,,]",
        "a comma too many": good[:-1].encode() + b",]",
        "a comma too few": good.replace("}, {", "} {", 1).encode(),
        "arrays in an array": json.dumps([[row] for row in rows]).encode(),
        "the array in an array": json.dumps([rows]).encode(),
        "empty objects": b"[" + b"{}, " * 30 + b"{}]",
        "nulls": b"[" + b"null, " * 30 + b"null]",
        "numbers and objects": b"[1, " + good[1:].encode(),
        "a comment": good.replace("}, {", "}, /* no, { */ {", 1).encode(),
        "100,000 brackets": b"[" * 100_000,
        "100,000 brackets, closed": b"[" * 100_000 + b"]" * 100_000,
        "100,000 objects in a cell": b'[{"load": ' + b'{"a": ' * 100_000 + b"1" + b"}" * 100_000 + b"}]",
        "a key twice": good.replace('"heat"', '"load"').encode(),
        "a key twice by an escape": good.replace('"heat"', '"\\u006coad"').encode(),
        "a key twice in one row beside a huge integer": good.replace('"heat"', '"load"', 1)
        .replace("true", "9" * 400, 1)
        .encode(),
        "a number of 100,000 digits": good.replace('"load": ', '"load": ' + "9" * 100_000, 1).encode(),
        "an exponent of a thousand digits": good.replace('"load": ', '"load": 1e' + "9" * 1_000, 1).encode(),
        "NaN and infinity": good.replace("true", "NaN", 1).replace("false", "-Infinity", 1).encode(),
        "half of a surrogate pair": good.replace("eco", "\\udc00").encode(),
        "half of a surrogate pair for a key": good.replace("heat", "he\\ud800at").encode(),
        "NUL in a key": good.replace("heat", "he\\u0000at").encode(),
        "raw newlines in a text": good.replace("eco", "e\nco").encode(),
        "an object longer than a batch": b'[{"id": "' + b"x" * (9 << 20) + b'"}]',
        "half a gigabyte of blanks": partial(_gzip_of, b"[", b" "),
        "half a gigabyte of newlines": partial(_gzip_of, b"[", b"\n"),
        "half a gigabyte of brackets": partial(_gzip_of, b"[", b"["),
        "half a gigabyte of commas": partial(_gzip_of, b"[", b","),
        "half a gigabyte of empty objects": partial(_gzip_of, b"[", b"{},"),
        "half a gigabyte of a text": partial(_gzip_of, b'[{"id": "', b"x"),
        "half a gigabyte of backslashes": partial(_gzip_of, b'[{"id": "', b"\\"),
        "20,000 objects, each with a key of its own": partial(_new_keys, 20_000, b"[", b",", b"]"),
        "two arrays": good.encode() * 2,
        "an array and lines": (good + "\n" + good[1:-1]).encode(),
        "in UTF-16": good.encode("utf-16"),
        "in UTF-32, cut": good.encode("utf-32")[:-2],
    }
    found: dict[str, _Bad] = {
        f"array: {name}": ("t.json.gz" if name.startswith("half a g") else "t.json", data, ())
        for name, data in files.items()
    }
    lines = partial(_new_keys, 20_000, b"", b"\n", b"\n")
    found["JSON lines: 20,000, each with a key of its own"] = ("t.jsonl", lines, ())
    return found


# --------------------------------------------------------------------------------------- other encodings


def encodings() -> dict[str, _Bad]:
    """Return texts in other encodings, by what is wrong with them."""
    from malformed_cases import frame

    csv = frame(25, 2).write_csv()
    wide = csv.replace("eco", "\U0001f600").encode("utf-16")
    files: dict[str, tuple[bytes | Callable[[], bytes], str | None]] = {
        "UTF-16 of an odd number of bytes": (csv.encode("utf-16")[:-1], None),
        "UTF-16 cut in a surrogate pair": (wide[: wide.rindex(b"\x3d\xd8") + 2], None),
        "UTF-16 with half of a surrogate pair": (
            csv.replace("eco", "\ud800").encode("utf-16", "surrogatepass"),
            None,
        ),
        "UTF-16 with the other mark": (b"\xfe\xff" + csv.encode("utf-16-le"), None),
        "UTF-16 with two marks": (b"\xff\xfe" + csv.encode("utf-16"), None),
        "the mark of UTF-16 only": (b"\xff\xfe", None),
        "the mark of UTF-16 on UTF-8": (b"\xff\xfe" + csv.encode(), None),
        "the mark of UTF-8 on UTF-16": (b"\xef\xbb\xbf" + csv.encode("utf-16-le"), None),
        "the mark of UTF-32 on UTF-16": (b"\xff\xfe\0\0" + csv.encode("utf-16-le"), None),
        "UTF-32 beyond all characters": (csv.encode("utf-32") + b"\xff\xff\xff\x7f", None),
        "half a gigabyte of UTF-16": (partial(_gzip_of, b"\xff\xfe", "x".encode("utf-16-le")), None),
        "half a gigabyte of lines of UTF-16": (
            partial(_gzip_of, b"\xff\xfei\0,\0j\0\n\0", "\n".encode("utf-16-le")),
            None,
        ),
        "UTF-16 as latin-1": (csv.encode("utf-16"), "latin-1"),
        "UTF-16 as UTF-8": (csv.encode("utf-16"), "utf-8"),
        "UTF-8 as UTF-16": (csv.encode(), "utf-16"),
        "UTF-8 as UTF-32": (csv.encode(), "utf-32"),
        "UTF-8 as ASCII": (csv.replace("eco", "éco").encode(), "ascii"),
        "UTF-8 as EBCDIC": (csv.encode(), "cp037"),
        "EBCDIC": (csv.encode("cp037"), "cp037"),
        "UTF-7 that ends in the middle": (b"id,load\na,+2D", "utf-7"),
        "an open escape of ISO 2022": (csv.encode() + b"\x1b$B", "iso2022_jp"),
        "bytes that cp1252 does not have": (csv.replace("eco", "e\x81co").encode("latin-1"), "cp1252"),
        "an encoding of bytes": (csv.encode(), "hex"),
        "an encoding that unpacks": (csv.encode(), "zlib"),
        "an encoding for names": (csv.encode(), "idna"),
        "an encoding of escapes": (csv.encode(), "unicode_escape"),
        "an encoding that is a path": (csv.encode(), "../../etc/passwd"),
        "an encoding that is a module": (csv.encode(), "os"),
        "an encoding of 10,000 letters": (csv.encode(), "x" * 10_000),
        "an encoding with a control character": (csv.encode(), "\x1b[2J"),
        "an encoding of nothing": (csv.encode(), ""),
    }
    found: dict[str, _Bad] = {
        f"encoding: {name}": (
            "t.csv.gz" if name.startswith("half a g") else "t.csv",
            data,
            () if encoding is None else ("--encoding", encoding),
        )
        for name, (data, encoding) in files.items()
    }
    out = io.BytesIO()
    frame(25, 2).write_parquet(out)
    found["encoding: of Parquet"] = ("t.parquet", out.getvalue(), ("--encoding", "utf-16"))
    return found
