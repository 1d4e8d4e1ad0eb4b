"""Tables that are malformed, odd or something else than their name says."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.faults import newer_tables
from benchmarks.faults.bench import Bench, Case
from benchmarks.faults.judge import FINE, changes, faults_of, snapshot

__all__ = ["cases"]

KIND = "tables"
COMMANDS = ("score", "fit", "explain", "report", "calibrate")
# Seeds for each format, for cells of CSV and values of JSON lines, and for files under another's name.
EACH, CELLS, VALUES, MISNAMED = 8, 40, 20, 20
# What a few kilobytes of a compressed file become.
BOMB = 1 << 29
_HEAD, _ROW = b"id,load,heat,mode,on\n", b"R1,0.5,1.0,eco,true\n"


class _Table(NamedTuple):
    """A table's file: its name says the format that it claims to have."""

    name: str
    data: bytes | Callable[[], bytes]
    options: tuple[str, ...] = ()


def cases() -> list[Case]:
    """Return all cases; the same ones every time. Each runs one of the commands, odd tables run two."""
    from malformed_cases import misnamed, mutated, mutated_json, mutated_text, odd_tables, whole_tables

    whole = whole_tables()
    found = []

    def add(name: str, make: Callable[[], Any], *commands: str) -> None:
        check = partial(_check, make=make, commands=commands)
        found.append(Case(KIND, f"{name} ({', '.join(commands)})", check))

    for at, (name, bad) in enumerate({**odd_tables(), **_more()}.items()):
        add(name, lambda bad=bad: bad, "score", COMMANDS[1 + at % 4])
    # To score so many rows takes as long as it takes; a fit would have to hold them all.
    for name, bad in _packed().items():
        add(name, lambda bad=bad: bad, "fit")
    for at, name in enumerate(whole):
        for seed in range(EACH):
            make = partial(_changed, name, mutated, (seed, *name.encode()))
            add(f"{name}, bytes changed {seed}", make, COMMANDS[(at + seed) % 5])
    for at, name in enumerate(newer_tables.whole()):
        for seed in range(EACH):
            make = partial(_newer_changed, name, mutated, (seed, *name.encode()))
            add(f"{name}, bytes changed {seed}", make, COMMANDS[(at + seed) % 5])
    for seed in range(CELLS):
        add(
            f"CSV, cells changed {seed}",
            partial(_changed, "t.csv", mutated_text, (seed, 6)),
            COMMANDS[seed % 5],
        )
    for seed in range(VALUES):
        make = partial(_changed, "t.jsonl", mutated_json, (seed, 7))
        add(f"JSON lines, values changed {seed}", make, COMMANDS[seed % 5])
    for seed in range(MISNAMED):
        make = partial(_misnamed, misnamed, seed)
        add(f"another format's name {seed}", make, COMMANDS[seed % 5])
    return found


def _changed(name: str, change: Callable[[bytes, Any], bytes], seed: tuple[int, ...]) -> _Table:
    from malformed_cases import whole_tables

    return _Table(name, change(whole_tables()[name].data, np.random.default_rng(seed)))


def _newer_changed(name: str, change: Callable[[bytes, Any], bytes], seed: tuple[int, ...]) -> _Table:
    return _Table(name, change(newer_tables.whole()[name], np.random.default_rng(seed)))


def _misnamed(make: Callable[..., Any], seed: int) -> Any:
    from malformed_cases import whole_tables

    return make(whole_tables(), np.random.default_rng([seed, 8]))


def _check(bench: Bench, folder: Path, *, make: Callable[[], Any], commands: tuple[str, ...]) -> list[str]:
    bad = make()
    if callable(bad.data):
        bad = bad._replace(data=bad.data())
    (folder / bad.name).write_bytes(bad.data)
    of_numbers = "np" in Path(bad.name).suffix
    bench.copy("array.rankad" if of_numbers else "table.rankad", folder, "model.rankad")
    faults = []
    for command in commands:
        faults += [f"{command}: {fault}" for fault in _run(bench, folder, bad, command, of_numbers)]
    return faults


def _run(bench: Bench, folder: Path, bad: Any, command: str, of_numbers: bool) -> list[str]:
    out = {"score": "out.csv", "fit": "out.rankad", "report": "out.html", "calibrate": "out.rankad"}.get(
        command
    )
    given = [command, bad.name, "--jobs", "1", *getattr(bad, "options", ())]
    if command == "fit":
        given += ["--model", "out.rankad", "--quiet", *([] if of_numbers else ["--id", "id"])]
    else:
        given += ["--model", "model.rankad", *(["--out", out, "--quiet"] if out else [])]
    if out:
        (folder / out).write_bytes(b"what was there before")
    before = snapshot(folder)
    done = bench.inside(given, folder)
    named = [bad.name, "model.rankad", out or bad.name, *(["encoding"] if "--encoding" in given else [])]
    faults = faults_of(done, named=named, n_bytes=len(bad.data))
    if not done.hung:
        free = {out} if out and done.status in FINE else set()
        faults += changes(before, snapshot(folder), free)
    if (folder / "ran").exists():
        faults.append("code in the file was run")
    for left in folder.glob("out.*"):
        left.unlink()
    return faults


# -------------------------------------------------------------------------------------- more, made by hand


class _Runs:
    """Unpickling it would run code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("ran", "w"))


@cache
def _more() -> dict[str, _Table]:
    newer = {**newer_tables.workbooks(), **newer_tables.arrays(), **newer_tables.encodings()}
    return {
        **_texts(),
        **_archives(),
        **_parquet(),
        **_arrow(),
        **{name: _Table(*bad) for name, bad in newer.items()},
    }


def _texts() -> dict[str, _Table]:
    head, row = _HEAD, _ROW
    texts = {
        "half a gigabyte of NULs in gzip": ("t.csv.gz", partial(_bomb, b"\0")),
        "half a gigabyte of spaces in gzip": ("t.csv.gz", partial(_bomb, b" ", head)),
        "half a gigabyte of newlines in gzip": ("t.csv.gz", partial(_bomb, b"\n", head)),
        "half a gigabyte of brackets in gzip": ("t.jsonl.gz", partial(_bomb, b"[")),
        "half a gigabyte of quotes in gzip": ("t.csv.gz", partial(_bomb, b'"', head)),
        "gzip with bytes behind its end": ("t.csv.gz", gzip.compress(head + row * 30) + b"more"),
        "gzip of two members": ("t.csv.gz", gzip.compress(head) + gzip.compress(row * 30)),
        "100,000 columns": (
            "t.csv",
            b",".join(b"c%d" % at for at in range(100_000)) + b"\n" + b"1," * 99_999,
        ),
        "names of control characters": ("t.csv", head.replace(b"heat", b"he\x1b[2Jat") + row * 30),
        "300,000 short lines": ("t.csv", head + b"1\n" * 300_000),
        "a million rows of empty cells": ("t.csv", head + b",,,,\n" * 1_000_000),
        "a million rows of one digit": ("t.csv", head + b",1,,,\n" * 1_000_000),
        "a folder of JSON in a cell": (
            "t.jsonl",
            b'{"load": ' + b'{"a": ' * 20_000 + b"1" + b"}" * 20_000 + b"}",
        ),
        "numbers of 100,000 digits": ("t.jsonl", b'{"id": "a", "load": ' + b"9" * 100_000 + b"}\n"),
        "an exponent of a thousand digits": ("t.csv", head + b"R1,1e" + b"9" * 1_000 + b",1,eco,true\n"),
        "tabs in a CSV file's name": ("t.tsv", head + row * 30),
        "UTF-7": ("t.csv", "id,löad,heat,mode,on\n".encode("utf-7") + row * 30),
        "right-to-left marks in names": ("t.csv", "id,\u202eload,heat,mode,on\n".encode() + row * 30),
        "an unfinished UTF-8 character at the end": ("t.csv", head + row * 30 + b"R2,1,1,eco\xf0\x9f"),
        "overlong UTF-8": ("t.csv", head + row * 30 + b"R2,1,1,\xc0\xaf,true\n"),
        "surrogates in UTF-8": ("t.csv", head + row * 30 + b"R2,1,1,\xed\xa0\x80,true\n"),
        "zstd of an unknown size": ("t.csv.zst", b"\x28\xb5\x2f\xfd\x00\xff" + bytes(50)),
        "zstd that claims 2^60 bytes": (
            "t.csv.zst",
            b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 2**60) + bytes(50),
        ),
    }
    return {name: _Table(*table) for name, table in texts.items()}


def _bomb(byte: bytes, head: bytes = b"") -> bytes:
    """Return very little that becomes very much."""
    out = io.BytesIO()
    with gzip.GzipFile("", "wb", 1, out, mtime=0) as file:
        file.write(head)
        piece = byte * max(1, (1 << 20) // len(byte))
        for _ in range(BOMB // len(piece)):
            file.write(piece)
    return out.getvalue()


def _zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file, file.open("X.npy", "w") as member:
        member.write(_npy("'<f8'", (BOMB >> 5, 4), b""))
        for _ in range(BOMB >> 20):
            member.write(bytes(1 << 20))
    return out.getvalue()


def _huge_cell() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({"id": ["a"], "load": ["x" * (BOMB >> 1)]}), out, compression="zstd")
    return out.getvalue()


def _packed() -> dict[str, _Table]:
    """Return good rows, so many that they take a thousand times the memory of their file."""
    return {
        "half a gigabyte of rows in gzip": _Table("t.csv.gz", partial(_bomb, _ROW, _HEAD)),
        "half a gigabyte of rows in zstd": _Table("t.jsonl.zst", _zstd_bomb),
        "parquet: a text of 3 MB in 50,000 rows": _Table("t.parquet", partial(_long_texts, "parquet")),
        "arrow: a text of 3 MB in 50,000 rows": _Table("t.arrow", partial(_long_texts, "arrow")),
        "arrow: a run of 2^31 rows": _Table("t.arrow", _long_run),
    }


def _zstd_bomb() -> bytes:
    import zstandard

    line = b'{"id": "a", "load": 0.5, "heat": 1.0, "mode": "eco", "on": true}\n' * 16_000
    return zstandard.ZstdCompressor().compress(line * (BOMB // len(line)))


def _long_texts(format: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n, out = 50_000, io.BytesIO()
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["x" * (3 << 20)]))
    table = pa.table({"id": np.arange(n), "load": np.arange(n) / n, "mode": text})
    if format == "parquet":
        pq.write_table(table, out, store_schema=False)
    else:
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue()


def _long_run() -> bytes:
    import pyarrow as pa

    out = io.BytesIO()
    table = pa.table({"load": pa.RunEndEncodedArray.from_arrays(pa.array([2**31 - 1]), pa.array([1.0]))})
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def _npy(descr: str, shape: tuple[int, ...], body: bytes = bytes(72), order: bool = False) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + body


def _zip(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name), data, compression)
    return out.getvalue()


def _archives() -> dict[str, _Table]:
    good = io.BytesIO()
    np.save(good, np.random.default_rng(0).normal(size=(25, 3)))
    header = b"\x93NUMPY\x01\0" + struct.pack("<H", 65_000)
    evil = _npy("'|O'", (1,), pickle.dumps(_Runs()))
    whole = _zip({"X.npy": good.getvalue()})
    arrays = {
        "a pickle that would run code": ("t.npy", evil),
        "a pickle that would run code, zipped": ("t.npz", _zip({"X.npy": evil})),
        "a bare pickle that would run code": ("t.npy", pickle.dumps(_Runs())),
        "code for a header": ("t.npy", _npy("__import__('os').system('touch ran')", (3, 3))),
        "a header that is cut": ("t.npy", header + b"{'descr'"),
        "a header of brackets": ("t.npy", header + b"(" * 65_000),
        "a shape of 2^62 rows": ("t.npy", _npy("'<f8'", (2**62, 3))),
        "a shape that overflows": ("t.npy", _npy("'<f8'", (2**40, 2**40))),
        "a negative shape": ("t.npy", _npy("'<f8'", (-1, 3))),
        "an array of a million columns": ("t.npy", _npy("'<f8'", (1, 10**6), bytes(8 * 10**6))),
        "items of 2^30 bytes": ("t.npy", _npy("'|V1073741824'", (1,))),
        "items of no bytes": ("t.npy", _npy("'|S0'", (10**9, 3), b"")),
        "version 9 of the format": ("t.npy", b"\x93NUMPY\x09\0" + bytes(80)),
        "half a gigabyte of zeros in a zip file": ("t.npz", _zip_bomb),
        "a name outside of the folder": ("t.npz", _zip({"../../X.npy": good.getvalue()})),
        "a name from the root": ("t.npz", _zip({"/tmp/X.npy": good.getvalue()})),
        "a zip file without members": ("t.npz", _zip({})),
        "a zip file of a text": ("t.npz", _zip({"X.txt": b"hello"})),
        "a zip file with a wrong checksum": ("t.npz", whole.replace(whole[60:64], b"abcd")),
        "a zip file cut in the middle": ("t.npz", whole[: len(whole) // 2]),
        "a zip file whose directory is gone": ("t.npz", whole[:-30]),
        "a zip file of 5,000 members": ("t.npz", _zip({f"a{at}.npy": b"" for at in range(5_000)})),
        "a zip file that is encrypted": ("t.npz", _encrypted(whole)),
        "two members of one name": ("t.npz", whole[:-1] + whole),
    }
    return {f"numpy: {name}": _Table(*table) for name, table in arrays.items()}


def _encrypted(data: bytes) -> bytes:
    """Set the flag that says so, at both places."""
    found = bytearray(data)
    found[6] |= 1
    found[found.index(b"PK\x01\x02") + 8] |= 1
    return bytes(found)


def _columns(n: int = 25) -> dict[str, Any]:
    import pyarrow as pa

    from malformed_cases import frame

    table = frame(n, 2).to_arrow()
    return {name: pa.array(table[name].to_pylist()) for name in table.column_names}


def _odd_columns() -> dict[str, dict[str, Any]]:
    """Return columns of types that few expect, by name."""
    from decimal import Decimal

    import pyarrow as pa

    n, good = 25, _columns()
    some = [Decimal(at) for at in range(n)]
    load = {
        "decimals of 256 bits": pa.array(some, pa.decimal256(50, 2)),
        "decimals of 128 bits": pa.array(some, pa.decimal128(38, 10)),
        "decimals with a negative scale": pa.array([Decimal(1000)] * n, pa.decimal128(10, -2)),
        "half floats": pa.array(np.ones(n, np.float16)),
        "unsigned integers at their limit": pa.array([2**64 - 1] * n, pa.uint64()),
        "dates in nanoseconds": pa.array([0] * n, pa.timestamp("ns")),
        "dates far away": pa.array([2**62] * n, pa.timestamp("s")),
        "dates in an unknown zone": pa.array([0] * n, pa.timestamp("us", "Mars/Olympus")),
        "durations at their limit": pa.array([2**63 - 1] * n, pa.duration("s")),
        "maps": pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        "lists of lists": pa.array([[[1.0]]] * n),
        "lists of a fixed size": pa.array([[1.0, 2.0]] * n, pa.list_(pa.float64(), 2)),
        "structs in structs": pa.array([{"a": {"b": 1}}] * n),
        "empty structs": pa.array([{}] * n, pa.struct([])),
        "bytes of a fixed size": pa.array([b"abcd"] * n, pa.binary(4)),
        "large texts": pa.array(["1.5"] * n, pa.large_string()),
        "text that is no UTF-8": pa.array([b"\xff\xfe"] * n).view(pa.string()),
        "nulls of no type": pa.nulls(n),
        "a dictionary of numbers": pa.array([1.5] * n).dictionary_encode(),
        "a dictionary of texts": pa.array(["a", "b"] * 12 + ["a"]).dictionary_encode(),
        "NaN and infinity": pa.array([float("nan"), float("inf")] * 12 + [0.0]),
        "times of day": pa.array([0] * n, pa.time64("ns")),
    }
    found = {name: {**good, "load": column} for name, column in load.items()}
    found["runs of equal values"] = {**good, "load": pa.RunEndEncodedArray.from_arrays([n], [1.0])}
    found["a union"] = {
        **good,
        "load": pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [pa.array([1.0] * n)]),
    }
    found["months"] = {**good, "load": pa.array([(1, 2, 3)] * n, pa.month_day_nano_interval())}
    found["texts that are views"] = {**good, "mode": pa.array(["eco"] * n, pa.string_view())}
    deep = pa.array([1.0] * n)
    for _ in range(60):
        deep = pa.StructArray.from_arrays([deep], ["a"])
    found["60 structs deep"] = {**good, "load": deep}
    return found


def _parquet() -> dict[str, _Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = {}
    for name, columns in _odd_columns().items():
        out = io.BytesIO()
        try:
            pq.write_table(pa.table(columns), out)
        except (pa.ArrowException, NotImplementedError, OSError):
            # Types that Parquet does not have.
            continue
        found[f"parquet: {name}"] = _Table("t.parquet", out.getvalue())
    out = io.BytesIO()
    pq.write_table(pa.table(_columns()), out)
    data = out.getvalue()
    old = io.BytesIO()
    stamps = {**_columns(), "load": pa.array([0] * 25, pa.timestamp("ns"))}
    pq.write_table(pa.table(stamps), old, use_deprecated_int96_timestamps=True)
    twice = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1.0] * 25)] * 2, ["load", "load"]), twice)
    many = io.BytesIO()
    pq.write_table(pa.table({f"c{at}": [1.0] for at in range(3_000)}), many)
    files: dict[str, bytes | Callable[[], bytes]] = {
        "dates of 96 bits": old.getvalue(),
        "the same name twice": twice.getvalue(),
        "3,000 columns": many.getvalue(),
        "a cell of 256 MB in a few bytes": _huge_cell,
        "encrypted, by its magic": b"PARE" + data[4:-4] + b"PARE",
        "a footer of 2^31 bytes": data[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1",
        "a footer of no bytes": data[:-8] + struct.pack("<I", 0) + b"PAR1",
        "magic only": b"PAR1PAR1",
        "magic twice, nothing between": b"PAR1" + bytes(8) + b"PAR1",
        "two files in a row": data + data,
        "a footer of another file": data[:-400] + many.getvalue()[-400:],
        "pages overwritten": data[:4] + b"\xff" * 300 + data[304:],
    }
    return found | {f"parquet: {name}": _Table("t.parquet", data) for name, data in files.items()}


def _arrow() -> dict[str, _Table]:
    import pyarrow as pa

    found = {}
    for at, (name, columns) in enumerate(_odd_columns().items()):
        out = io.BytesIO()
        table = pa.table(columns)
        # Files and streams in turn.
        opened = pa.ipc.new_file if at % 2 else pa.ipc.new_stream
        try:
            with opened(out, table.schema) as writer:
                writer.write_table(table)
        except (pa.ArrowException, NotImplementedError):
            continue
        found[f"arrow: {name}"] = _Table("t.arrow", out.getvalue())
    out = io.BytesIO()
    table = pa.table(_columns())
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    stream = out.getvalue()
    files = {
        "a message of 2^31 bytes": b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1) + stream[8:],
        "a message of -1 bytes": b"\xff\xff\xff\xff" + struct.pack("<i", -1) + stream[8:],
        "the end of a stream only": b"\xff\xff\xff\xff\0\0\0\0",
        "two streams in a row": stream + stream,
        "magic only": b"ARROW1\0\0",
        "a schema without batches": stream[: len(stream) // 4],
    }
    return found | {f"arrow: {name}": _Table("t.arrow", data) for name, data in files.items()}
