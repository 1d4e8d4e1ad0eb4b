"""The data sets: every ``.npz`` file of a folder, with rows X and labels y (1 for an anomaly)."""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankad.experiments.datasets import Dataset, DatasetError

__all__ = ["LEAST_NOMINAL", "SetFile", "data_folder", "find_sets", "load_set", "set_name"]

# Half of them train, and a row's 20 nearest neighbours are looked for among these.
LEAST_NOMINAL = 50


class SetFile(NamedTuple):
    """One data set, as a file.

    Attributes
    ----------
    name : str
    path : Path
    digest : str
        Of the file's content.
    n_rows, n_columns, n_anomalies : int
    """

    name: str
    path: Path
    digest: str
    n_rows: int
    n_columns: int
    n_anomalies: int


def set_name(path: Path) -> str:
    """Return what a data set is called: the file's name without its ending and its number.

    Examples
    --------
    >>> set_name(Path("10_cover.npz")), set_name(Path("31_satimage-2.npz")), set_name(Path("rows.npz"))
    ('cover', 'satimage-2', 'rows')
    """
    return re.sub(r"^\d+_(?=.)", "", path.stem)


def data_folder(given: Path | None) -> Path:
    """Return the folder of the data sets: the one given, else the one that ``RANKAD_DATA`` names."""
    named = os.environ.get("RANKAD_DATA")
    if given is None and not named:
        raise DatasetError(
            "no folder of data sets: name one with --data DIR or in RANKAD_DATA. A data set is a .npz file "
            "with the arrays X (rows by columns) and y (1 for an anomaly, 0 for a nominal row), such as "
            "those of ADBench's folder Classical"
        )
    folder = (Path(named or "") if given is None else given).expanduser()
    which = "RANKAD_DATA" if given is None else "--data"
    if not folder.is_dir():
        raise DatasetError(
            f"{which} names {folder}, which is not a folder; name the folder of the .npz files"
        )
    return folder


def find_sets(folder: Path) -> list[SetFile]:
    """Read and check every data set of a folder; ordered by name."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise DatasetError(
            f"{folder} holds no .npz file; put the data sets there, or name another folder with --data or in "
            "RANKAD_DATA"
        )
    found: dict[str, SetFile] = {}
    for path in paths:
        name, content = set_name(path), path.read_bytes()
        if name in found:
            raise DatasetError(
                f"{path} and {found[name].path} are both called {name!r} without their numbers; rename one"
            )
        X, y = _arrays(path, content)
        found[name] = SetFile(name, path, _digest(content), len(X), X.shape[1], int(y.sum()))
    return sorted(found.values(), key=lambda one: one.name.lower())


@lru_cache(maxsize=2)
def load_set(path: Path, digest: str) -> Dataset:
    """Load a data set once; its digest shows whether it is the one that was found."""
    content = Path(path).read_bytes()
    if _digest(content) != digest:
        raise DatasetError(f"{path} has changed since the run began; start it again")
    return Dataset(set_name(Path(path)), *_arrays(path, content))


def _arrays(path: Path, content: bytes) -> tuple[Any, Any]:
    """Return X and y, or raise an error that says what is wrong with the file."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            held = {name: arrays[name] for name in ("X", "y") if name in arrays.files}
            others = sorted(arrays.files)
    except (
        ValueError,
        OSError,
        EOFError,
        AttributeError,
        TypeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise DatasetError(
            f"{path} cannot be read as a .npz file of plain arrays ({error}); write it with "
            "numpy.savez(file, X=rows, y=labels), or move it out of the folder"
        ) from error
    if len(held) < 2:
        raise DatasetError(
            f"{path} lacks {' and '.join(name for name in ('X', 'y') if name not in held)}: it must hold the "
            f"arrays X (rows by columns) and y (1 for an anomaly, 0 for a nominal row), and holds "
            f"{', '.join(others) or 'nothing'}"
        )
    wrong = _what_is_wrong(held)
    if wrong is not None:
        raise DatasetError(f"{path}: {wrong}; mend the file, or move it out of the folder")
    return held["X"].astype(np.float64), held["y"].astype(np.int64)


def _what_is_wrong(held: Mapping[str, Any]) -> str | None:
    X, y = held["X"], held["y"]
    for name, array in held.items():
        if array.dtype.kind not in "biuf":
            return f"{name} must hold numbers, and is of type {array.dtype}"
        if not np.isfinite(array).all():
            return f"{name} holds {int((~np.isfinite(array)).sum()):,} values that are not finite"
    if X.ndim != 2 or X.shape[1] == 0:
        return f"X must be a table, rows by columns, and has the shape {X.shape}"
    if y.shape != X.shape[:1]:
        return f"y must hold one label for each of the {len(X):,} rows of X, and has the shape {y.shape}"
    if not np.isin(y, (0, 1)).all():
        return "y must hold 1 for an anomaly and 0 for a nominal row, and holds other values"
    nominal, anomalies = int((y == 0).sum()), int((y == 1).sum())
    if anomalies == 0:
        return "there is no anomaly (y = 1) to be detected"
    if nominal < LEAST_NOMINAL:
        return f"there are {nominal} nominal rows (y = 0), and {LEAST_NOMINAL} are the least that will do"
    return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
