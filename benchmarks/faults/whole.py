"""Whether an output is whole: a scored table with all its rows, a page to its end, a model that loads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

__all__ = ["is_whole"]


def is_whole(path: Path, n_rows: int) -> bool:
    """Return whether a file is a whole output of a command that read so many rows."""
    if not path.is_file():
        return False
    if path.suffix == ".rankad":
        return _loads(path)
    if path.suffix == ".html":
        return path.read_bytes().rstrip().endswith(b"</html>")
    try:
        return _n_rows(path) == n_rows
    except (OSError, ValueError):
        return False


def _loads(path: Path) -> bool:
    from rankad import ModelFileError, load

    try:
        load(path)
    except ModelFileError:
        return False
    return True


def _n_rows(path: Path) -> int:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        rows: int = pq.ParquetFile(path).read().num_rows
        return rows
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    lines = data.splitlines()
    if ".jsonl" in path.name:
        return sum("p_value" in json.loads(line) for line in lines)
    if not data.endswith(b"\n") or any(line.count(b",") != lines[0].count(b",") for line in lines):
        raise ValueError("cut off")
    return len(lines) - 1
