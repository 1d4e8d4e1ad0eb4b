"""The paper's eight data sets: seven files, checked by SHA-256, and Mulcross, which is generated.

A file comes from the folder given, else from the folder that ``RANKAD_DATA`` names, else by download from
the ADBench repository into the cache folder. A file missing from a folder that was named is an error, never
a download.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from rankad._base.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from rich.progress import Progress

# The environment variable RANKAD_DATA_URL names another place that serves the same files.
URL = "https://raw.githubusercontent.com/Minqi824/ADBench/main/adbench/datasets/Classical/"

# Rocke and Woodruff's parameters in the setting of the isolation forest paper.
_CONTAMINATION = 0.1
_DISTANCE = 2.0
_CLUSTERS = 2
_COLUMNS = 4
_LEAST_SPREAD = 0.01


class DatasetError(RuntimeError):
    """A data set is not available; the message says which file, what was expected and where to put it."""


class DatasetSpec(NamedTuple):
    """One data set: its file, if it is not generated, and what the paper's table 2 says of it."""

    name: str
    title: str
    file: str | None
    sha256: str | None
    paper_rows: int
    paper_columns: int
    paper_anomalies: str


class Dataset(NamedTuple):
    """Rows of shape (n, d) and their labels: 1 for an anomaly, 0 for a nominal row."""

    name: str
    X: Floats
    y: Ints


class Split(NamedTuple):
    """Nominal rows to train on, and rows to test on, with which of them are nominal."""

    train: Floats
    test: Floats
    nominal: Bools


_SHA256 = {
    "2_annthyroid.npz": "e738f7c58a8740d2c4aac4c71ff49ce5e1d1aa16f44178135fc9c09df05fad1b",
    "10_cover.npz": "945a097c3542ae81a551bf1c06dcad78a755d94f84fcaf1d60687e42d1a656df",
    "16_http.npz": "9d98710091551587f4740cfc851a6b064fff6319a337c2dc77ee6da4bcc2e02c",
    "23_mammography.npz": "a0308ac9712d78321073b1c2dc98dc37665c0f35c1cc33019416fe8f8d7de7ea",
    "30_satellite.npz": "1f048f5686f1b8c16a227fdfa3c81a62cd9a92715714a6b24c69b1c5ad96b46e",
    "32_shuttle.npz": "26900b0f6be45d9ddb7a402c9b2f956ceda42d23a8ca4cf4406b8bc1352823d1",
    "34_smtp.npz": "d2569fc9bc12115419e3f5b37d19921e10e6c26e5ad1e61064cfb0fbc402dfdd",
}
_TABLE_2: tuple[tuple[str, str, str | None, int, int, str], ...] = (
    ("annthyroid", "Annthyroid", "2_annthyroid.npz", 6_832, 6, "classes 1, 2"),
    ("cover", "Forest Cover", "10_cover.npz", 286_048, 10, "class 4 vs. class 2"),
    ("http", "HTTP", "16_http.npz", 567_497, 3, "attack"),
    ("mammography", "Mammography", "23_mammography.npz", 11_183, 6, "class 1"),
    ("mulcross", "Mulcross", None, 262_144, 4, "2 clusters"),
    ("satellite", "Satellite", "30_satellite.npz", 6_435, 36, "3 smallest classes"),
    ("shuttle", "Shuttle", "32_shuttle.npz", 49_097, 9, "classes 2, 3, 5, 6, 7"),
    ("smtp", "SMTP", "34_smtp.npz", 95_156, 3, "attack"),
)
SPECS: dict[str, DatasetSpec] = {
    name: DatasetSpec(name, title, file, None if file is None else _SHA256[file], rows, columns, anomalies)
    for name, title, file, rows, columns, anomalies in _TABLE_2
}


def load_dataset(name: str, data_dir: Path | None = None) -> Dataset:
    """Load one of the eight sets, a key of `SPECS`.

    A file that is missing from the folder, has another checksum, or could not be downloaded is a
    `DatasetError`.
    """
    if name not in SPECS:
        raise ValueError(f"name={name!r} is not a data set of the paper; choose one of {', '.join(SPECS)}")
    spec = SPECS[name]
    if spec.file is None or spec.sha256 is None:
        return make_mulcross()
    if data_dir is not None:
        content = _from_folder(spec.file, spec.sha256, Path(data_dir), "the data folder given")
    elif named := os.environ.get("RANKAD_DATA"):
        content = _from_folder(spec.file, spec.sha256, Path(named), "the data folder that RANKAD_DATA names")
    else:
        content = _from_cache(spec.file, spec.sha256)
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return Dataset(name, arrays["X"].astype(np.float64), arrays["y"].astype(np.int64))


@lru_cache(maxsize=8)
def load(name: str, data: Path | None) -> Dataset:
    """Load a data set once."""
    return load_dataset(name, data)


def make_mulcross(n: int = 262_144, seed: int = 0) -> Dataset:
    """Generate Mulcross (Rocke and Woodruff 1996) in the setting of the isolation forest paper.

    Nine rows in ten are standard normal in four columns. The others are two dense clusters, each
    N(D sqrt(chi2_{p;0.001} / p) u, lambda I) with a direction u of +-1s; no two clusters share one. The whole
    is whitened, with the symmetric root, and shuffled. There are at least 100 rows, so that every cluster has
    a few.

    Examples
    --------
    >>> dataset = make_mulcross(1_000)
    >>> dataset.X.shape, int(dataset.y.sum())
    ((1000, 4), 100)
    """
    if n < 100:
        raise ValueError(f"n={n} is too few rows for Mulcross; ask for 100 or more")
    rng = np.random.default_rng(seed)
    a, p = _CONTAMINATION, _COLUMNS
    spread = max((1 - a) * (a * p - (1 - a)) / (a * ((1 - a) * p - a)), _LEAST_SPREAD)
    distance = _DISTANCE * np.sqrt(chi2.isf(0.001, p) / p)
    # The bits of a number are a direction; numbers without repetition are directions without.
    numbers = rng.choice(2**p, size=_CLUSTERS, replace=False)
    directions = 2.0 * ((numbers[:, None] >> np.arange(p)) & 1) - 1.0

    y = np.zeros(n, dtype=np.int64)
    y[: round(a * n)] = 1
    anomalous = y == 1
    rows = rng.standard_normal((n, p))
    cluster = np.arange(anomalous.sum()) % _CLUSTERS
    rows[anomalous] = distance * directions[cluster] + np.sqrt(spread) * rows[anomalous]

    rows -= rows.mean(axis=0)
    values, vectors = np.linalg.eigh(rows.T @ rows / n)
    rows = rows @ (vectors / np.sqrt(values)) @ vectors.T
    order = rng.permutation(n)
    return Dataset("mulcross", rows[order], y[order])


def split_nominal(
    dataset: Dataset,
    rng: np.random.Generator,
    n_train: int = 2_000,
    max_nominal_test: int = 80_000,
    max_anomalous_test: int | None = None,
) -> Split:
    """Draw nominal rows to train on; test on the other nominal rows and on the anomalies, at most as given.

    Examples
    --------
    >>> rows = np.arange(5.0)[:, None]
    >>> labels = np.array([0, 0, 1, 0, 0])
    >>> split = split_nominal(Dataset("five", rows, labels), np.random.default_rng(0), n_train=3)
    >>> len(split.train), split.nominal.tolist(), split.test[1].tolist()
    (3, [True, False], [2.0])
    """
    order = rng.permutation(np.flatnonzero(dataset.y == 0))
    if not 0 < n_train < order.size:
        raise ValueError(
            f"n_train={n_train} leaves nothing to train or test on: {dataset.name} has {order.size} nominal "
            f"rows; choose from 1 to {order.size - 1}"
        )
    anomalous = np.flatnonzero(dataset.y == 1)
    if max_anomalous_test is not None and anomalous.size > max_anomalous_test:
        anomalous = np.sort(rng.choice(anomalous, size=max_anomalous_test, replace=False))
    nominal = order[n_train : n_train + max_nominal_test]
    return Split(
        dataset.X[order[:n_train]],
        dataset.X[np.concatenate([nominal, anomalous])],
        np.repeat([True, False], [nominal.size, anomalous.size]),
    )


def draw(dataset: Dataset, seed: int, size: Mapping[str, Any]) -> Split:
    """Split a set for one run; `size` has the items n_train, max_nominal and max_anomalous."""
    most = size["n_train"], size["max_nominal"], size["max_anomalous"]
    return split_nominal(dataset, np.random.default_rng(seed), *most)


# ------------------------------------------------------------------------------------------------- the files


def _from_folder(file: str, sha256: str, folder: Path, which: str) -> bytes:
    """Return the content of a file in a folder that the user named."""
    path = folder.expanduser() / file
    if not path.is_file():
        raise DatasetError(
            f"{file} is not in {which}, {folder}. Put the ADBench file (SHA-256 {sha256}) at {path}, or name "
            "no folder (no --data, RANKAD_DATA unset) to have it downloaded"
        )
    content = path.read_bytes()
    actual = hashlib.sha256(content).hexdigest()
    if actual != sha256:
        raise DatasetError(
            f"{path} is not the file expected: its SHA-256 is {actual}, not {sha256}. Replace it by the "
            "ADBench file, or name no folder (no --data, RANKAD_DATA unset) to have it downloaded"
        )
    return content


def _from_cache(file: str, sha256: str) -> bytes:
    """Return the content of a file in the cache folder, downloaded if it is not there yet or is damaged."""
    try:
        import pooch
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError as error:
        raise ImportError(
            f"downloading {file} needs the package {error.name}: run pip install 'rankad[experiments]', or "
            "put the file into a folder and name the folder in RANKAD_DATA"
        ) from error

    url = (os.environ.get("RANKAD_DATA_URL") or URL).rstrip("/") + "/" + file
    cache = Path(pooch.os_cache("rankad"))
    remedy = (
        f"Put the ADBench file (SHA-256 {sha256}) into a folder and name the folder with --data or "
        f"RANKAD_DATA, or put it at {cache / file}"
    )
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = _Bar(Progress(*columns, console=Console(stderr=True)), file)
    try:
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 16)
        return Path(pooch.retrieve(url, f"sha256:{sha256}", file, cache, downloader=downloader)).read_bytes()
    except OSError as error:
        # requests' exceptions, too. One that carries a response, such as 404, holds its connection open.
        if (response := getattr(error, "response", None)) is not None:
            response.close()
        raise DatasetError(f"{file} could not be downloaded from {url}: {error}. {remedy}") from error
    except ValueError as error:
        raise DatasetError(f"{url} did not send the file expected: {error} {remedy}") from error
    finally:
        bar.close()


class _Bar:
    """The progress bar that pooch expects, drawn by rich."""

    def __init__(self, progress: Progress, label: str) -> None:
        self._progress = progress
        self._task = progress.add_task(label, total=None)
        self._done = 0
        # Set by pooch; 0 if the server does not say how many bytes there are.
        self.total = 0

    def update(self, size: int) -> None:
        """Count bytes; pooch counts the last piece as a full one."""
        # Nothing is drawn before the first byte: most of the time the file is in the cache.
        self._progress.start()
        self._done = min(self._done + size, self.total or self._done + size)
        self._progress.update(self._task, total=self.total or None, completed=self._done)

    def reset(self) -> None:
        """Start again from zero."""
        self._done = 0

    def close(self) -> None:
        """End the bar, if it was drawn."""
        if self._progress.live.is_started:
            self._progress.stop()
