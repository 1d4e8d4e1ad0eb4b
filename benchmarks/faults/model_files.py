"""Model files that are damaged, or forged: digests agree, contents are hostile."""

from __future__ import annotations

import hashlib
import json
import pickle
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.faults.bench import Bench, Case
from benchmarks.faults.judge import FINE, changes, faults_of, snapshot

__all__ = ["cases"]

KIND = "model files"
BASES = ("table", "array", "near")
Random = np.random.Generator
# Gets the bytes of a good model and random numbers; returns those of a bad one.
Change = Callable[[bytes, Random], bytes]


class _Family(NamedTuple):
    """Files that are spoiled in one way: so many of each base model, one seed each."""

    name: str
    change: Change
    each: int
    forged: bool


def cases() -> list[Case]:
    """Return all cases; the same ones every time."""
    families = [
        _Family("one bit flipped in the header", partial(_flipped, header=True), 14, False),
        _Family("one bit flipped in an array", partial(_flipped, header=False), 14, False),
        _Family("bytes changed in several places", _mutated, 12, False),
        _Family("cut short", _cut, 14, False),
        _Family("longer than it was", lambda data, rng: data + rng.bytes(int(rng.integers(1, 99))), 2, False),
        _Family("two blocks swapped", _swapped, 8, False),
        _Family("a block overwritten", _overwritten, 8, False),
        _Family("two arrays swapped", _arrays_swapped, 6, False),
        _Family("forged header", _forged_header, 32, True),
        _Family("forged array", _forged_array, 32, True),
    ]
    found = []
    for number, (family, change, each, forged) in enumerate(families):
        for base in BASES:
            for seed in range(each):
                make = partial(_made, base, change, (number, BASES.index(base), seed))
                found.append(_case(f"{family}, {base} {seed}", base, make, forged=forged))
    for name, other in _others().items():
        found.append(_case(name, "array", lambda bench, other=other: other, forged=False))
    for base in BASES:
        for name, edit in _edits().items():
            make = partial(_edited, base, edit)
            found.append(_case(f"forged: {name}, {base}", base, make, forged=True))
    for name, outer in _outer_headers().items():
        found.append(_case(name, "array", partial(_with_outer, outer), forged=True))
    return found


def _case(name: str, base: str, make: Callable[[Bench], bytes], *, forged: bool) -> Case:
    return Case(KIND, name, partial(_check, base=base, make=make, forged=forged))


def _check(
    bench: Bench, folder: Path, *, base: str, make: Callable[[Bench], bytes], forged: bool
) -> list[str]:
    """Look at the file and score with it; with a forged one that loads, run the other commands too."""
    path = folder / "bad.rankad"
    data = make(bench)
    path.write_bytes(data)
    table = bench.copy("new.csv" if base == "table" else "rows.npy", folder)
    (folder / "out.csv").write_text("what was there before\n")
    before, faults = snapshot(folder), []
    jobs = ["--model", path.name, "--jobs", "1"]
    commands = [["inspect", path.name], ["score", table.name, *jobs, "--out", "out.csv", "--quiet"]]
    for command in commands:
        done = bench.inside(command, folder)
        found = faults_of(done, named=[path.name, table.name], n_bytes=len(data))
        out = {"score": "out.csv", "calibrate": "new.rankad", "report": "page.html"}.get(command[0], "")
        fine = done.status in FINE
        if not done.hung:
            found += changes(before, snapshot(folder), {out} if fine else ())
        if fine and command[0] == "score" and not forged:
            found += _answers_changed(bench, folder, base)
        faults += [f"{command[0]}: {fault}" for fault in found]
        if fine and forged and command[0] == "score":
            # What gets through must still answer.
            commands.append(["explain", table.name, *jobs])
            commands.append(["calibrate", table.name, *jobs, "--out", "new.rankad", "--quiet"])
            commands.append(["report", table.name, *jobs, "--out", "page.html", "--quiet"])
        for name in ("new.rankad", "page.html"):
            (folder / name).unlink(missing_ok=True)
        (folder / "out.csv").write_text("what was there before\n")
    return faults


def _answers_changed(bench: Bench, folder: Path, base: str) -> list[str]:
    """Say whether a damaged file that loads answers differently from the good one."""
    found = (folder / "out.csv").read_bytes()
    table = "new.csv" if base == "table" else "rows.npy"
    good = ["score", bench.good / table, "--model", bench.good / f"{base}.rankad", "--out", "good.csv"]
    bench.worker.run([*good, "--quiet", "--jobs", "1"], folder)
    expected = (folder / "good.csv").read_bytes()
    (folder / "good.csv").unlink()
    return [] if found == expected else ["a damaged model was loaded and answers differently"]


def _made(base: str, change: Change, seed: tuple[int, ...], bench: Bench) -> bytes:
    return change(_good(bench, base), np.random.default_rng(seed))


def _good(bench: Bench, base: str) -> bytes:
    return (bench.good / f"{base}.rankad").read_bytes()


# --------------------------------------------------------------------------------------------------- damage


def _flipped(data: bytes, rng: Random, *, header: bool) -> bytes:
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    place = int(rng.integers(0, begin) if header else rng.integers(begin, len(data)))
    found = bytearray(data)
    found[place] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _mutated(data: bytes, rng: Random) -> bytes:
    from malformed_cases import mutated

    found: bytes = mutated(data, rng)
    return found


def _cut(data: bytes, rng: Random) -> bytes:
    # Also in the first bytes, which say how long the header is.
    most = len(data) if rng.random() < 0.7 else 64
    return data[: int(rng.integers(0, most))]


def _swapped(data: bytes, rng: Random) -> bytes:
    size = int(2 ** rng.integers(3, 12))
    first, second = sorted(int(place) for place in rng.choice(len(data) // size, 2, replace=False) * size)
    found = bytearray(data)
    found[first : first + size], found[second : second + size] = (
        data[second : second + size],
        data[first : first + size],
    )
    return bytes(found)


def _overwritten(data: bytes, rng: Random) -> bytes:
    size, place = int(2 ** rng.integers(2, 13)), int(rng.integers(0, len(data)))
    filler = (b"\0", b"\xff", b"{", b"[")[rng.integers(4)]
    return data[:place] + filler * min(size, len(data) - place) + data[place + size :]


def _arrays_swapped(data: bytes, rng: Random) -> bytes:
    """Swap the places of two arrays in the outer header."""
    from modelfile_cases import put_together, taken_apart

    outer, body = taken_apart(data)
    first, second = rng.choice([name for name in outer if name != "__metadata__"], 2, replace=False).tolist()
    outer[first], outer[second] = outer[second], outer[first]
    found: bytes = put_together(outer, body)
    return found


def _others() -> dict[str, bytes]:
    """Return files that are something else."""
    rng = np.random.default_rng(1)
    return {
        "zero bytes": b"",
        "seven NULs": bytes(7),
        "eight NULs": bytes(8),
        "a CSV file": b"x,y\n1,2\n" * 50,
        "a pickle": pickle.dumps({"a": [1, 2]}),
        "a zip file's first bytes": b"PK\x03\x04",
        "all ones": b"\xff" * 500,
        "all NULs": bytes(1 << 20),
        "a gzip file's first bytes": b"\x1f\x8b\x08" + bytes(100),
        "random bytes": rng.bytes(5_000),
        "random bytes behind a short header": struct.pack("<Q", 20) + rng.bytes(5_000),
        "an empty safetensors file": struct.pack("<Q", 2) + b"{}",
        "a page": b"<!DOCTYPE html>\n" * 20,
    }


# -------------------------------------------------------------------------------------------------- forgery


# Beside what the tests write in place of a value.
STRANGE: tuple[Any, ...] = (2**31, 5e-324, "\x1b[31m\n\u202e", "../../etc/passwd", [0] * 1_000)


def _forged_header(data: bytes, rng: Random) -> bytes:
    import modelfile_cases

    strange = modelfile_cases.STRANGE + STRANGE

    def edit(header: dict[str, Any]) -> None:
        for _ in range(int(rng.integers(1, 3))):
            modelfile_cases.change_somewhere(header, rng, strange)

    found: bytes = modelfile_cases.with_header(data, edit)
    return found


def _forged_array(data: bytes, rng: Random) -> bytes:
    from modelfile_cases import taken_apart

    names = sorted(name for name in taken_apart(data)[0] if name != "__metadata__")
    return _with_array(data, names[int(rng.integers(len(names)))], partial(_array_changed, rng=rng))


def _array_changed(array: Any, rng: Random) -> Any:
    strange = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 5e-324, 2.0**62]
    flat = array.reshape(-1)
    match rng.integers(7):
        case 0:
            return array[: len(array) // 2]
        case 1:
            return np.concatenate([array, array])
        case 2:
            return array[..., None]
        case 3:
            return array.astype(np.int64 if array.dtype == np.float64 else np.float64)
        case 4:
            return array.T.copy() if array.ndim > 1 else flat[::-1].copy()
        case 5:
            return None
    if flat.size:
        with np.errstate(invalid="ignore"):
            flat[rng.integers(flat.size)] = np.array(strange[rng.integers(len(strange))]).astype(array.dtype)
    return array


def _with_array(data: bytes, name: str, change: Callable[[Any], Any]) -> bytes:
    """Change an array and write all digests anew; None takes it out."""
    from modelfile_cases import signed, taken_apart

    outer, body = taken_apart(data)
    header, arrays = json.loads(outer.pop("__metadata__")["rankad"]), {}
    for key, told in outer.items():
        begin, end = told["data_offsets"]
        kind = {"F64": "<f8", "I64": "<i8"}[told["dtype"]]
        arrays[key] = np.frombuffer(body[begin:end], kind).reshape(told["shape"]).copy()
    arrays[name] = change(arrays[name])
    outer, body, header["arrays"] = {}, b"", {}
    for key, array in arrays.items():
        if array is None:
            continue
        raw, kind = array.tobytes(), {"float64": "F64", "int64": "I64"}[array.dtype.name]
        outer[key] = {"dtype": kind, "shape": array.shape, "data_offsets": [len(body), len(body) + len(raw)]}
        digest = hashlib.sha256(raw).hexdigest()
        header["arrays"][key] = {"dtype": array.dtype.name, "shape": array.shape, "sha256": digest}
        body += raw
    found: bytes = signed(outer, body, json.dumps(header))
    return found


Edit = Callable[[dict[str, Any]], Any]


def _edits() -> dict[str, Edit]:
    """Return hostile edits of the header, by name."""
    set_to: list[tuple[tuple[str, ...], Any]] = [
        (("schema",), 0),
        (("schema",), 2),
        (("schema",), 10**18),
        (("kind",), "Pickle"),
        (("kind",), "os.system"),
        (("kind",), None),
        (("parameters", "alpha"), 2.0),
        (("parameters", "alpha"), 5e-324),
        (("parameters", "n_levels"), 10**15),
        (("parameters", "landmarks"), 10**15),
        (("parameters", "landmarks"), {"a": 1}),
        (("parameters", "random_state"), 2**63 - 1),
        (("parameters", "n_jobs"), 10**9),
        (("parameters", "n_jobs"), -(10**9)),
        (("parameters", "code"), "__import__('os').system('touch ran')"),
        (("fitted", "n_rows"), 2**62),
        (("fitted", "n_rows"), 0),
        (("fitted", "n_columns"), 2**62),
        (("fitted", "n_columns"), 0),
        (("fitted", "bandwidth"), 5e-324),
        (("fitted", "bandwidth"), 1e300),
        (("fitted", "norm"), 1e300),
        (("fitted", "feature_names"), ["a"]),
        (("fitted", "feature_names"), ["x" * 1_000_000] * 3),
        (("fitted", "training_sha256"), "g" * 64),
        (("origin", "saved"), "9999-12-31T23:59:59.999999+00:00"),
        (("origin", "saved"), "9999-12-31T23:59:59-23:59"),
        (("origin", "saved"), "0001-01-01T00:00:00+23:59"),
        (("origin", "saved"), "0001-01-01T00:00:00+00:00"),
        (("origin", "saved"), "2020-02-30T00:00:00+00:00"),
        (("origin", "saved"), "2020-01-01T00:00:00+99:00"),
        (("origin", "saved"), ""),
        (("origin", "versions"), {"x" * 10_000: "y" * 10_000}),
        (("origin", "versions"), {"\x1b[2J": "\x1b]0;owned\x07"}),
        (("notes",), ["\x1b[2J"]),
        (("origin", "versions"), {f"p{at}": "1" for at in range(10_000)}),
        (("notes",), ["x" * 1_000_000]),
        (("notes",), ["\x1b[2J\n\n<script>alert(1)</script>"] * 1_000),
        (("table",), None),
        (("table",), []),
        (("table", "columns"), []),
        (("table", "columns"), [{}]),
        (("table", "columns"), [None] * 1_000),
        (("table", "ids"), ["\0", "\x1b[31m", "x" * 100_000]),
        (("table", "n_rows"), -1),
        (("arrays",), {}),
    ]
    found: dict[str, Edit] = {}
    for where, value in set_to:
        shown = json.dumps(value)
        found[f"{'.'.join(where)} = {shown if len(shown) < 50 else shown[:47] + '...'}"] = partial(
            _set, where=where, value=value
        )
    found["a list for a header"] = lambda header: [header]
    found["a text for a header"] = lambda header: "header"
    found["no header at all"] = lambda header: {}
    found["a thousand more fields"] = lambda header: header.update({f"f{at}": at for at in range(1_000)})
    return found


def _set(header: dict[str, Any], where: tuple[str, ...], value: Any) -> None:
    for key in where[:-1]:
        if not isinstance(header.get(key), dict):
            header[key] = {}
        header = header[key]
    header[where[-1]] = value


def _edited(base: str, edit: Edit, bench: Bench) -> bytes:
    from modelfile_cases import with_header

    found: bytes = with_header(_good(bench, base), edit)
    return found


def _outer_headers() -> dict[str, Callable[[dict[str, Any], bytes], bytes]]:
    """Return safetensors headers gone wild, by name."""
    from modelfile_cases import put_together, signed

    def ranks(**fields: Any) -> Callable[[dict[str, Any], bytes], bytes]:
        return lambda outer, body: put_together({**outer, "ranks": {**outer["ranks"], **fields}}, body)

    def length(size: int) -> Callable[[dict[str, Any], bytes], bytes]:
        return lambda outer, body: struct.pack("<Q", size) + put_together(outer, body)[8:]

    def header(text: str) -> Callable[[dict[str, Any], bytes], bytes]:
        return lambda outer, body: signed(outer, body, text)

    return {
        "outer header of 2^63 bytes": length(2**63),
        "outer header of 90 MB": length(90_000_000),
        "outer header of 2^64 - 1 bytes": length(2**64 - 1),
        "outer header: 8 TB of ranks": ranks(shape=[2**40], data_offsets=[0, 2**43]),
        "outer header: shape whose size overflows": ranks(shape=[2**32, 2**32]),
        "outer header: a negative shape": ranks(shape=[-1]),
        "outer header: offsets backwards": ranks(data_offsets=[8, 0]),
        "outer header: BF16": ranks(dtype="BF16"),
        "outer header: integers for floats": ranks(dtype="I64"),
        "outer header: arrays that overlap": lambda outer, body: put_together(
            {**outer, "ranks": outer["levels"]}, body
        ),
        "outer header: an array of 0 x 2^60": lambda outer, body: put_together(
            {**outer, "x": {"dtype": "F64", "shape": [0, 2**60], "data_offsets": [0, 0]}}, body
        ),
        "outer header: metadata of numbers": lambda outer, body: put_together(
            {**outer, "__metadata__": {"rankad": 7}}, body
        ),
        "outer header: no metadata": lambda outer, body: put_together(
            {key: value for key, value in outer.items() if key != "__metadata__"}, body
        ),
        "header of 100,000 brackets": header("[" * 100_000),
        "header of 10,000 digits": header("9" * 10_000),
        "header with infinity": header('{"schema": 1e999}'),
        "header that is empty": header(""),
        "header of 20 MB of spaces": header(" " * 20_000_000),
        "header of 20 MB of text": header('{"schema": "' + "x" * 20_000_000 + '"}'),
        "header of a million keys": header(json.dumps({f"k{at}": at for at in range(1_000_000)})),
        "header with the same key twice": header('{"schema": 1, "schema": 2}'),
        "header with a lone surrogate": header('{"schema": 1, "kind": "\\ud800"}'),
    }


def _with_outer(change: Callable[[dict[str, Any], bytes], bytes], bench: Bench) -> bytes:
    from modelfile_cases import taken_apart

    return change(*taken_apart(_good(bench, "array")))
