"""Cells: the units of work of a long experiment, each saved once it is finished; and the settings of a run.

An experiment that is interrupted, in whatever way, and started again repeats no finished cell and loses none.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, cpu_count, delayed

from rankad._base.files import replacing
from rankad._base.progress import Progress

# Modules of this package that every result may depend on; the tables and figures number their own cells.
_SHARED_MODULES = ("baselines.py", "datasets.py", "synthetic.py")


class Cell(NamedTuple):
    """One unit of work.

    The key is all that the result depends on, as plain values, with a version to increase when the work
    changes. The work takes no arguments and returns a dict of plain values. It may be sent to another
    process, so it should hold names rather than arrays.
    """

    key: dict[str, Any]
    work: Callable[[], dict[str, Any]]


class CellStore:
    """Results of finished cells in a folder, one file each.

    The stamp is part of every key; by default, the versions of rankad and of what it computes with, and a
    digest of rankad's source, so that results of different code are never mixed.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = CellStore(folder.name)
    >>> store.get({"experiment": "sum", "n": 3}) is None
    True
    >>> store.put({"experiment": "sum", "n": 3}, {"sum": 6})
    {'sum': 6}
    >>> store.get({"n": 3, "experiment": "sum"})
    {'sum': 6}
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path | str, stamp: Mapping[str, Any] | None = None) -> None:
        self.folder = Path(folder)
        self.stamp = plain({**versions(), "source": _source_digest()} if stamp is None else stamp)

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the result of a finished cell; None where there is none, or its file is damaged."""
        whole = self._whole(key)
        try:
            stored = json.loads(self._path(whole).read_text("utf-8"))
            result: dict[str, Any] = stored["result"]
            intact = stored["key"] == whole and stored["sha256"] == _digest(result)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return result if intact and isinstance(result, dict) else None

    def put(self, key: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
        """Save the result of a cell, whole or not at all, and return it as `get` will."""
        whole = self._whole(key)
        kept: dict[str, Any] = plain(result)
        text = json.dumps({"key": whole, "result": kept, "sha256": _digest(kept)}, indent=1)
        write_atomically(self._path(whole), text + "\n")
        return kept

    def _whole(self, key: Mapping[str, Any]) -> dict[str, Any]:
        whole: dict[str, Any] = plain({"cell": key, "stamp": self.stamp})
        return whole

    def _path(self, whole: dict[str, Any]) -> Path:
        experiment = str(whole["cell"].get("experiment", "cell"))
        readable = "".join(c if c.isalnum() or c in "-_" else "-" for c in experiment)
        return self.folder / f"{readable}-{_digest(whole)[:24]}.json"


def run_cells(
    cells: Sequence[Cell], store: CellStore, n_jobs: int = 1, label: str = "cells"
) -> list[dict[str, Any]]:
    """Do the work of those cells that are not finished yet, and return all results in order.

    Each is saved as soon as it is finished, and returned as read back from the store, so that a resumed run
    returns the same as an uninterrupted one. No two cells may have the same key.
    """
    keys = [_digest(plain(cell.key)) for cell in cells]
    for i, key in enumerate(keys):
        if key in keys[:i]:
            raise ValueError(f"Two cells have the same key, {cells[i].key!r}; name what makes them differ.")
    results = [store.get(cell.key) for cell in cells]
    missing = [i for i, result in enumerate(results) if result is None]
    finished = len(cells) - len(missing)
    if finished:
        print(f"rankad {label}: {finished} of {len(cells)} finished before", file=sys.stderr, flush=True)
    progress = Progress(label, len(cells), True, finished)
    try:
        for i, result in _finish(cells, missing, store, n_jobs):
            results[i] = result
            progress.advance()
    finally:
        progress.finish()
    return [result for result in results if result is not None]


def _finish(
    cells: Sequence[Cell], missing: list[int], store: CellStore, n_jobs: int
) -> Iterable[tuple[int, dict[str, Any]]]:
    """Yield the results of missing cells as they are finished."""
    if n_jobs == 1 or len(missing) < 2:
        return (_work_and_save(i, cells[i], store) for i in missing)
    tasks = (delayed(_work_and_save)(i, cells[i], store) for i in missing)
    done: Iterable[tuple[int, dict[str, Any]]] = Parallel(
        n_jobs=n_jobs, batch_size=1, return_as="generator_unordered"
    )(tasks)
    return done


def _work_and_save(i: int, cell: Cell, store: CellStore) -> tuple[int, dict[str, Any]]:
    """Do the work of one cell; saved where it was done, so that nothing is lost on the way back."""
    return i, store.put(cell.key, cell.work())


class Settings(NamedTuple):
    """The choices that all tables and figures share: those of the command ``rankad reproduce``.

    Finished cells are kept in the sub-folder ``cells`` of `out`. If `data` is None, data sets come from the
    folder that ``RANKAD_DATA`` names, else by download. If `n_jobs` is None, there are as many processes as
    cores, but one where times are taken.

    Examples
    --------
    >>> settings = Settings(seed=3)
    >>> settings.run_seed(0), settings.run_seed(1)
    (1576890651, 457190280)
    """

    out: Path = Path("results")
    data: Path | None = None
    seed: int = 0
    quick: bool = False
    n_jobs: int | None = None

    @property
    def n_runs(self) -> int:
        """How often everything is repeated: five times as in the paper, or once."""
        return 1 if self.quick else 5

    @property
    def raw(self) -> dict[str, Any]:
        """What the JSON file of every experiment says of these choices."""
        return {"seed": self.seed, "quick": self.quick, "runs": self.n_runs}

    def run_seed(self, run: int) -> int:
        """Return the seed of one run; no two runs of two seeds share theirs but by chance."""
        return int(np.random.SeedSequence([self.seed, run]).generate_state(1)[0])

    def run_seeds(self, n_runs: int) -> list[int]:
        """Return the seeds of the first runs."""
        return [self.run_seed(run) for run in range(n_runs)]

    def run(self, cells: Sequence[Cell], label: str, n_jobs: int | None = None) -> list[dict[str, Any]]:
        """Do the cells that are not finished yet, and return the key and the result of all, joined.

        Processes: those given, else `n_jobs`, else all cores.
        """
        workers = n_jobs or self.n_jobs or cpu_count()
        results = run_cells(cells, CellStore(self.out / "cells"), workers, label)
        return [{**cell.key, **result} for cell, result in zip(cells, results, strict=True)]


def versions() -> dict[str, str]:
    """Return the versions of rankad, Python and the libraries it computes with."""
    libraries = ("rankad", "numpy", "scipy", "scikit-learn", "numba")
    return {**{name: version(name) for name in libraries}, "python": platform.python_version()}


def plain(value: Any) -> Any:
    """Return a value as it reads back from JSON: NumPy numbers and arrays as Python's, tuples as lists."""
    return json.loads(json.dumps(value, default=_from_numpy))


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file and its folders; an existing file stays until the new one is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as out:
        out.file.write(content.encode("utf-8") if isinstance(content, str) else content)


def _from_numpy(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(
        f"A cell holds plain values (numbers, text, lists, dicts, NumPy arrays); got {type(value).__name__} "
        f"{value!r}. Convert it first."
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8")).hexdigest()


@cache
def _source_digest() -> str:
    """Digest the source that results depend on, whatever the experiment."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        core = name.parts[0] not in ("cli", "experiments")
        if core or (name.parts[0] == "experiments" and name.name in _SHARED_MODULES):
            digest.update(name.as_posix().encode("utf-8") + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
