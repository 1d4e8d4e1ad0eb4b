"""The name of a file to the format of its table."""

from __future__ import annotations

from pathlib import PurePath

__all__ = ["compression_of", "format_of"]

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xls": "excel",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def format_of(path: str) -> str | None:
    """Return the format that the suffix stands for, None if it stands for none.

    >>> format_of("rows.csv.gz"), format_of("rows.txt")
    ('csv', None)
    """
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return _FORMATS.get(suffixes[-1]) if suffixes else None


def compression_of(path: str) -> str | None:
    """Return "gzip", "zstd" or None.

    >>> compression_of("rows.csv.gz")
    'gzip'
    """
    return _COMPRESSIONS.get(PurePath(path).suffix.lower())
