"""Tables and model files that are damaged, odd or something else, each made from a seed."""

import gzip
import io
import json
import struct
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import zstandard

from modelfile_cases import with_header

MODES = ("steady", "eco", "boost")
HUGE = 2 << 20


class Bad(NamedTuple):
    """A file to be: its name tells the format that it claims to have."""

    name: str
    data: bytes


def frame(n, seed):
    """A mixed table: an id, numbers, some of them missing, a category and a boolean."""
    rng = np.random.default_rng(seed)
    load = rng.normal(size=n)
    return pl.DataFrame(
        {
            "id": [f"R{at}" for at in range(n)],
            "load": load.round(3),
            "heat": [None if rng.random() < 0.1 else round(2 * x + rng.normal(), 3) for x in load.tolist()],
            "mode": rng.choice(MODES, size=n),
            "on": rng.random(n) < 0.5,
        }
    )


def numbers(n, seed):
    """Rows of three columns for the model that was fitted on an array."""
    return np.random.default_rng(seed).normal(size=(n, 3))


# --------------------------------------------------------------------------------------------- whole tables


def _bytes_of(write):
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def _arrow_stream(table, out):
    with pa.ipc.new_stream(out, table.to_arrow().schema) as stream:
        stream.write_table(table.to_arrow(), max_chunksize=10)


def in_every_format(table, array):
    """The bytes of a table in every format, by the name of a file; of an array in those for arrays."""
    csv, lines = table.write_csv().encode(), table.write_ndjson().encode()
    return {
        "t.csv": csv,
        "t.tsv": table.write_csv(separator="\t").encode(),
        "t.csv.gz": gzip.compress(csv, mtime=0),
        "t.csv.zst": zstandard.compress(csv),
        "t.jsonl": lines,
        "t.jsonl.gz": gzip.compress(lines, mtime=0),
        "t.parquet": _bytes_of(lambda out: table.write_parquet(out, row_group_size=10)),
        "t.arrow": _bytes_of(lambda out: table.write_ipc(out)),
        "z.arrow": _bytes_of(lambda out: table.write_ipc(out, compression="zstd")),
        "s.arrow": _bytes_of(lambda out: _arrow_stream(table, out)),
        "t.npy": _bytes_of(lambda out: np.save(out, array)),
        "f.npy": _bytes_of(lambda out: np.save(out, np.asfortranarray(array))),
        "t.npz": _bytes_of(lambda out: np.savez_compressed(out, X=array)),
    }


def whole_tables(n=25, seed=1):
    """The same rows as whole files of every format."""
    found = in_every_format(frame(n, seed), numbers(n, seed))
    return {name: Bad(name, data) for name, data in found.items()}


# ------------------------------------------------------------------------------------------------ mutations


_FOURS = (b"\xff" * 4, b"\0\0\0\x7f", b"\0" * 4)


def _one_of(choices, rng):
    # NumPy would make arrays of them, and those forget NUL at the end.
    return choices[rng.integers(0, len(choices))]


def mutated(data, rng):
    """Flip, set, delete, insert, double or cut off bytes in some places."""
    found = bytearray(data)
    # Headers and footers are where the structure is.
    ends = rng.random() < 0.5
    for _ in range(rng.integers(1, 5)):
        n = len(found)
        place = int(rng.integers(0, n))
        if ends and n > 64:
            place = int(rng.integers(0, 64)) * (1 if rng.random() < 0.5 else -1) % n
        match rng.integers(0, 7):
            case 0:
                found[place] ^= 1 << int(rng.integers(0, 8))
            case 1:
                found[place] = int(rng.choice([0, 1, 10, 13, 34, 44, 127, 128, 255]))
            case 2:
                del found[place : place + int(rng.integers(1, 20))]
            case 3:
                found[place:place] = rng.bytes(int(rng.integers(1, 9)))
            case 4:
                found[place : place + 4] = _one_of(_FOURS, rng)
            case 5:
                piece = found[place : place + int(rng.integers(1, 200))]
                found[place:place] = piece
            case _:
                del found[place:]
        if not found:
            break
    return bytes(found)


_QUOTED = ("", " ", '"', '""', '"""', '"a,b"', '"a\nb"')
_NUMBERS = ("NaN", "inf", "-inf", "1e309", "-1e308", "1e-320", "0x10", "1,5", "1_000", "١٢", "9" * 400)
_WORDS = ("true", "TRUE", "NULL", "other", "é\u0301\U0001f600", "=1+1", "<script>", "[red]x[/red]", "{{x}}")
_CONTROLS = ("\x1b[31m", "\u202e", "\0", "\ufeff", "\r", "\v\f\x85\u2028", "x" * 5000)
_MILD = _QUOTED + _NUMBERS + _WORDS
_CELLS = _MILD + _CONTROLS


def mutated_text(data, rng):
    """Change lines and cells of a CSV file so that much of it stays one."""
    lines = data.decode().split("\n")
    for _ in range(rng.integers(1, 4)):
        # The header more often than any other line.
        at = 0 if rng.random() < 0.3 else int(rng.integers(0, len(lines)))
        cells = lines[at].split(",")
        place = int(rng.integers(0, len(cells)))
        match rng.integers(0, 9):
            case 0 | 1 | 2:
                cells[place] = _one_of(_CELLS, rng)
            case 3:
                cells.insert(place, _one_of(_CELLS, rng))
            case 4:
                del cells[place]
            case 5:
                lines.insert(at, lines[at])
            case 6:
                lines.insert(at, _one_of(_CELLS, rng))
            case 7:
                cells = cells[::-1]
            case _:
                # The whole column, the header excepted.
                for line in range(1, len(lines)):
                    row = lines[line].split(",")
                    if place < len(row):
                        row[place] = _one_of(_MILD, rng)
                        lines[line] = ",".join(row)
                continue
        lines[at] = ",".join(cells)
    end = str(rng.choice(["\n", "\n", "\n", "\r\n", "\r"]))
    return end.join(lines).encode(str(rng.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig"])))


_SCALARS = (None, True, -1, 1e308, 2**63, -(2**64), 10**400, 0.5, "", "text", "1.5", "inf")
_VALUES = (*_SCALARS, [], [1, "a"], {}, {"a": {"b": [None]}}, "\0", "\ud800", "x" * 5000)
_LINES = ("[1]", "NaN", "{", "{}", "null", '{"load": NaN}', "[" * 9000, "1 2", "}{", "")


def mutated_json(data, rng):
    """Change values, keys and lines of JSON lines."""
    lines = data.decode().split("\n")
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, len(lines) - 1))
        row = _object(lines[at])
        if row is None:
            continue
        key = str(rng.choice(sorted(row))) if row else "a"
        match rng.integers(0, 7):
            case 0 | 1:
                row[key] = _one_of(_VALUES, rng)
            case 2:
                row.pop(key, None)
            case 3:
                row[_one_of(("", "new", "\0", "p_value"), rng)] = row.pop(key, 1)
            case 4:
                lines[at] = _one_of(_LINES, rng)
                continue
            case 5:
                value, found = _one_of(_VALUES, rng), map(_object, lines)
                lines = [
                    line if each is None else json.dumps(each | {key: value})
                    for line, each in zip(lines, found, strict=True)
                ]
                continue
            case _:
                lines[at] = lines[at] + ("," if rng.random() < 0.5 else lines[at])
                continue
        lines[at] = json.dumps(row)
    return "\n".join(lines).encode()


def _object(line):
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def misnamed(whole, rng):
    """Return a whole file under a name of another format."""
    first, second = rng.choice(sorted(whole), size=2, replace=False).tolist()
    return Bad(f"as_{second}", whole[first].data)


# ------------------------------------------------------------------------------------- tables made by hand


def odd_tables():
    """Tables with one thing wrong, or odd, by name of what it is."""
    table = frame(25, 2)
    csv = table.write_csv()
    head, *rows = csv.rstrip("\n").split("\n")
    texts = {
        "empty": b"",
        "one newline": b"\n",
        "blank lines": b"\r\n\n  \n",
        "only a mark": b"\xef\xbb\xbf",
        "mark and header": b"\xef\xbb\xbf" + head.encode(),
        "header only": head.encode(),
        "header and newline": head.encode() + b"\n\n",
        "no header": "\n".join(rows).encode(),
        "mark": b"\xef\xbb\xbf" + csv.encode(),
        "utf-16": csv.encode("utf-16"),
        "utf-16-le": csv.encode("utf-16-le"),
        "utf-32": csv.encode("utf-32"),
        "latin-1 cell": csv.replace("steady", "stätig").encode("latin-1"),
        "latin-1 header": csv.replace("mode", "möde").encode("latin-1"),
        "shift-jis": csv.replace("steady", "表示").encode("shift-jis"),
        "only quotes": b'"' * 1001,
        "even quotes": b'"' * 1000,
        "quotes and newlines": b'"\n' * 500,
        "only commas": b"," * 500,
        "only NUL": b"\0" * 4096,
        "NUL in a cell": csv.replace("R3,", "R\0,").encode(),
        "NUL in the header": csv.replace("heat", "he\0at").encode(),
        "twice the same name": csv.replace("heat", "load").encode(),
        "no name": csv.replace("heat", "", 1).encode(),
        "a column less": table.drop("heat").write_csv().encode(),
        "no column that is wanted": table.select(pl.all().name.suffix("_")).write_csv().encode(),
        "a column more": table.with_columns(extra=pl.lit("x")).write_csv().encode(),
        "a column called score": table.with_columns(score=pl.lit(1)).write_csv().encode(),
        "columns in another order": table.select(table.columns[::-1]).write_csv().encode(),
        "id missing": table.drop("id").write_csv().encode(),
        "short row": "\n".join([head, *rows[:5], "R5,1", *rows[6:]]).encode(),
        "long row": "\n".join([head, *rows[:5], rows[5] + ",1,2,3", *rows[6:]]).encode(),
        "rows of all lengths": "\n".join([head, *("," * at for at in range(9))]).encode(),
        "mixed line ends": "\r\n".join([head, *rows[:9]]).encode() + b"\n" + "\r".join(rows[9:]).encode(),
        "old line ends": "\r".join([head, *rows]).encode(),
        "open quote": "\n".join([head, *rows[:5], '"' + rows[5], *rows[6:]]).encode(),
        "open quote at the end": (csv + '"').encode(),
        "quote in the header": csv.replace("heat", 'he"at', 1).encode(),
        "newline in the header": csv.replace("heat", '"he\nat"', 1).encode(),
        "text among numbers": csv.replace(rows[7].split(",")[1], "much").encode(),
        "numbers for categories": csv.replace("steady", "1").replace("eco", "2").encode(),
        "all missing": "\n".join([head, *[",,,,"] * 9]).encode(),
        "all infinite": "\n".join([head, *["a,inf,-inf,eco,true"] * 9]).encode(),
        "largest numbers": "\n".join([head, *["a,1e308,-1e308,eco,true"] * 9]).encode(),
        "huge category": csv.replace("R4", "R4").replace("eco", "e" * HUGE, 1).encode(),
        "huge number": csv.replace(rows[3].split(",")[1], "9" * HUGE, 1).encode(),
        "huge text for a number": csv.replace(rows[3].split(",")[1], "z" * HUGE, 1).encode(),
        "huge id": csv.replace("R4", "R" * HUGE, 1).encode(),
        "huge name": csv.replace("heat", "h" * HUGE, 1).encode(),
        "huge short row": "\n".join([head, *rows[:5], "s" * HUGE, *rows[6:]]).encode(),
        "huge quoted newlines": csv.replace("R4", '"' + "\n" * HUGE + '"', 1).encode(),
        "many columns": (",".join(f"c{at}" for at in range(5_000)) + "\n" + "1," * 4_999 + "1\n").encode(),
        "longer than a batch": (csv + "R" * (9 << 20)).encode(),
        "control characters": csv.replace("eco", "\x1b[31m\x07\x08\x7f").encode(),
        "a page": b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n",
        "a program": b"\x7fELF\x02\x01\x01\0" + bytes(range(256)) * 4,
        "gzip of nothing": gzip.compress(b"", mtime=0),
        "gzip twice": gzip.compress(gzip.compress(csv.encode(), mtime=0), mtime=0),
        "gzip cut off": gzip.compress(csv.encode(), mtime=0)[:60],
        "gzip magic": b"\x1f\x8b",
        "zstd cut off": zstandard.compress(csv.encode())[:60],
        "zstd magic": b"\x28\xb5\x2f\xfd",
        "gzip of spaces": gzip.compress(b"a,b\n" + b" " * (9 << 20), mtime=0),
    }
    found = {what: Bad("odd.csv", data) for what, data in texts.items()}
    lines = table.write_ndjson()
    values = {
        "json, empty": b"",
        "json, one array": json.dumps(table.to_dicts()).encode(),
        "json, numbers": b"1\n2\n3\n",
        "json, deep": b"[" * 200_000,
        "json, deep in a cell": b'{"load": ' + b"[" * 50_000 + b"]" * 50_000 + b"}\n",
        "json, huge": lines.replace("eco", "e" * HUGE, 1).encode(),
        "json, huge key": lines.replace("heat", "h" * HUGE, 1).encode(),
        "json, objects": lines.replace('"mode":"', '"mode":{"a":"').replace('","on"', '"},"on"').encode(),
        "json, other keys later": (lines + '{"other": 1}\n').encode(),
        "json, same key twice": lines.replace('"heat"', '"load"').encode(),
        "json, lone surrogate": lines.replace("eco", "\\ud800").encode(),
        "json, utf-16": lines.encode("utf-16"),
    }
    found |= {what: Bad("odd.jsonl", data) for what, data in values.items()}
    return found | _odd_binaries(table)


def _odd_binaries(table):
    typed = {
        "no rows": table.head(0),
        "text for numbers": table.with_columns(pl.col("load").cast(pl.String) + "x"),
        "dates for numbers": table.with_columns(load=pl.lit("2024-01-01").str.to_date()),
        "lists": table.with_columns(load=pl.concat_list("load", "heat")),
        "structs": table.with_columns(mode=pl.struct("load", "heat")),
        "bytes": table.with_columns(mode=pl.lit(b"\xff\0")),
        "nulls": table.with_columns(load=pl.lit(None), mode=pl.lit(None)),
        "infinity": table.with_columns(load=pl.lit(float("inf"))),
        "decimals": table.with_columns(pl.col("load").cast(pl.Decimal(20, 3))),
        "times": table.with_columns(mode=pl.lit("12:00:00").str.to_time()),
        "numbers for booleans": table.with_columns(pl.col("on").cast(pl.Int8) * 3),
        "categories": table.with_columns(pl.col("mode").cast(pl.Categorical)),
        "durations": table.with_columns(load=pl.duration(days=10**8)),
    }
    found = {}
    for what, odd in typed.items():
        found[f"parquet, {what}"] = Bad("odd.parquet", _bytes_of(odd.write_parquet))
        found[f"arrow, {what}"] = Bad("odd.arrow", _bytes_of(odd.write_ipc))
    arrays = {
        "objects": np.array([[{}]], dtype=object),
        "complex": np.ones((3, 3), complex),
        "cube": np.ones((2, 2, 2)),
        "scalar": np.array(1.0),
        "flat": np.ones(9),
        "no rows": np.ones((0, 3)),
        "no columns": np.ones((3, 0)),
        "more columns": np.ones((3, 4)),
        "text": np.array([["a", "b", "c"]]),
        "NaN": np.full((3, 3), np.nan),
        "infinity": np.full((3, 3), -np.inf),
        "halves": np.ones((3, 3), np.float16),
        "dates": np.zeros((3, 3), "datetime64[s]"),
        "fields": np.zeros(3, [("a", float), ("b", "S2"), ("c", int)]),
        "big-endian": np.ones((3, 3), ">f4"),
    }
    for what, array in arrays.items():
        found[f"numpy, {what}"] = Bad("odd.npy", _bytes_of(lambda out, array=array: np.save(out, array)))
    promises = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3), }"
    header = b"\x93NUMPY\x01\0" + struct.pack("<H", len(promises) + 1) + promises + b"\n"
    found["numpy, promises without end"] = Bad("odd.npy", header + bytes(48))
    found["numpy, two arrays"] = Bad(
        "odd.npz", _bytes_of(lambda out: np.savez(out, a=np.eye(3), b=np.eye(3)))
    )
    return found


# ---------------------------------------------------------------------------------------------- model files


def forged(data, rng):
    """Change a value somewhere in the header of a model file, and sign it again."""
    return with_header(data, lambda header: _change_values(header, rng))


def _change_values(header, rng):
    for _ in range(rng.integers(1, 3)):
        holder, key = _somewhere(header, rng)
        old = holder[key]
        choices = [None, True, 0, -1, 2**70, 1e308, "", "x", [], {}, "x" * 5000, old, old]
        new = _one_of(choices, rng)
        if new is old and isinstance(old, (int, float)):
            new = old * (1 + rng.normal()) if isinstance(old, float) else old + int(rng.integers(-3, 4))
        elif new is old and isinstance(old, list):
            new = old[::-1] if rng.random() < 0.5 else old[:-1]
        elif new is old and isinstance(old, str):
            new = old[::-1]
        holder[key] = new


def _somewhere(tree, rng):
    """Return a list or object in the tree, and a key of it."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else range(len(tree))
        key = keys[rng.integers(0, len(keys))]
        inside = tree[key]
        if not isinstance(inside, (dict, list)) or not inside or rng.random() < 0.15:
            return tree, key
        tree = inside


def bad_model(data, rng):
    """Damage, forge or replace a model file."""
    match rng.integers(0, 5):
        case 0 | 1:
            return mutated(data, rng)
        case 2 | 3:
            return forged(data, rng)
        case _:
            tables = whole_tables()
            return tables[str(rng.choice(sorted(tables)))].data
