"""The format and the compression of a table by its file name."""

from __future__ import annotations

from pathlib import PurePath

SUFFIXES = {
    "csv": ".csv",
    "tsv": ".tsv .tab",
    "jsonl": ".jsonl .ndjson",
    "json": ".json",
    "parquet": ".parquet .pq",
    "arrow": ".arrow .arrows .feather .ipc",
    "npy": ".npy",
    "npz": ".npz",
    "excel": ".xlsx .xlsm .xls",
}
_FORMATS = {suffix: format for format, suffixes in SUFFIXES.items() for suffix in suffixes.split()}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def format_of(path: str) -> str | None:
    """Return the format of the suffix, None if it is not known.

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
