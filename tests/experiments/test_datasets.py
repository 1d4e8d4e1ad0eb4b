import gc
import hashlib
import io
import re
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pooch
import pytest
from scipy.linalg import sqrtm
from scipy.stats import chi2

from rankad.experiments.datasets import (
    SPECS,
    URL,
    Dataset,
    DatasetError,
    load_dataset,
    make_mulcross,
    split_nominal,
)

FILE = "34_smtp.npz"

# Rows, columns and anomalies of the ADBench files.
COUNTS = {
    "annthyroid": (7_200, 6, 534),
    "cover": (286_048, 10, 2_747),
    "http": (567_498, 3, 2_211),
    "mammography": (11_183, 6, 260),
    "satellite": (6_435, 36, 2_036),
    "shuttle": (49_097, 9, 3_511),
    "smtp": (95_156, 3, 30),
}


# ------------------------------------------------------------------------------------------------- the table


def test_eight_sets_in_the_order_of_the_paper():
    assert list(SPECS) == [
        "annthyroid",
        "cover",
        "http",
        "mammography",
        "mulcross",
        "satellite",
        "shuttle",
        "smtp",
    ]
    for name, spec in SPECS.items():
        assert spec.name == name
        assert (spec.file is None) == (spec.sha256 is None) == (name == "mulcross")
    sums = [spec.sha256 for spec in SPECS.values() if spec.sha256]
    assert len(set(sums)) == 7
    assert all(len(sum_) == 64 and set(sum_) <= set("0123456789abcdef") for sum_ in sums)
    assert [spec.paper_rows for spec in SPECS.values()] == [
        6832,
        286048,
        567497,
        11183,
        262144,
        6435,
        49097,
        95156,
    ]
    assert [spec.paper_columns for spec in SPECS.values()] == [6, 10, 3, 6, 4, 36, 9, 3]


def test_unknown_name():
    with pytest.raises(
        ValueError, match=r"name='kdd' is not a data set of the paper; choose one of annthyroid, "
    ):
        load_dataset("kdd")


@pytest.mark.parametrize("name", COUNTS)
def test_real_files(data_folder, name):
    dataset = load_dataset(name, data_folder)
    rows, columns, anomalies = COUNTS[name]
    assert dataset.name == name
    assert dataset.X.shape == (rows, columns)
    assert dataset.X.dtype == np.float64
    assert np.isfinite(dataset.X).all()
    assert dataset.y.dtype == np.int64
    assert set(dataset.y) == {0, 1}
    assert dataset.y.sum() == anomalies
    # The paper's version of the set, give or take what its table rounds or leaves out.
    assert columns == SPECS[name].paper_columns
    assert abs(rows / SPECS[name].paper_rows - 1) < 0.06


# ---------------------------------------------------------------------------------- a small file in its place


@pytest.fixture
def small(monkeypatch):
    """A small set under the name of smtp: its rows, its labels and the bytes of its file."""
    X = np.random.default_rng(0).integers(0, 100, size=(3_000, 3)).astype(np.int16)
    y = (np.arange(3_000) % 10 == 0).astype(np.int64)
    buffer = io.BytesIO()
    np.savez(buffer, X=X, y=y)
    content = buffer.getvalue()
    changed = SPECS["smtp"]._replace(sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(SPECS, "smtp", changed)
    monkeypatch.delenv("RANKAD_DATA", raising=False)
    return Dataset("smtp", X, y), content


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A cache folder that is not there yet, instead of the user's."""
    folder = tmp_path / "cache"

    def os_cache(project):
        assert project == "rankad"
        return folder

    monkeypatch.setattr(pooch, "os_cache", os_cache)
    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.requests.append(self.path)
        super().do_GET()


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server of the files in ``server.folder``, which notes the paths asked for."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    server.folder = folder
    server.requests = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("RANKAD_DATA_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("RANKAD_DATA", raising=False)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
    # A connection left open warns, and so fails, here and not in a later test.
    gc.collect()


def _assert_same(found, expected):
    assert found.name == expected.name
    np.testing.assert_array_equal(found.X, expected.X)
    np.testing.assert_array_equal(found.y, expected.y)
    assert found.X.dtype == np.float64


# --------------------------------------------------------------------------------------- folders of the user


def test_file_in_the_folder_given(small, cache, server, tmp_path, monkeypatch):
    dataset, content = small
    (tmp_path / FILE).write_bytes(content)
    _assert_same(load_dataset("smtp", tmp_path), dataset)
    monkeypatch.setenv("RANKAD_DATA", str(tmp_path))
    _assert_same(load_dataset("smtp"), dataset)
    assert not server.requests
    assert not cache.exists()


def test_folder_given_comes_before_the_one_in_the_environment(small, tmp_path, monkeypatch):
    dataset, content = small
    (tmp_path / FILE).write_bytes(content)
    monkeypatch.setenv("RANKAD_DATA", str(tmp_path / "nowhere"))
    _assert_same(load_dataset("smtp", tmp_path), dataset)


@pytest.mark.parametrize("folder_exists", [True, False])
def test_file_missing_from_a_folder_is_not_downloaded(
    small, cache, server, tmp_path, monkeypatch, folder_exists
):
    (server.folder / FILE).write_bytes(small[1])
    folder = tmp_path / "mine"
    if folder_exists:
        folder.mkdir()
    sha256 = SPECS["smtp"].sha256
    remedy = f"{folder}. Put the ADBench file (SHA-256 {sha256}) at {folder / FILE}, or name no folder"
    text = re.escape(f"{FILE} is not in the data folder given, {remedy}")
    with pytest.raises(DatasetError, match=text):
        load_dataset("smtp", folder)
    monkeypatch.setenv("RANKAD_DATA", str(folder))
    text = re.escape(f"{FILE} is not in the data folder that RANKAD_DATA names, {remedy}")
    with pytest.raises(DatasetError, match=text):
        load_dataset("smtp")
    assert not server.requests


def test_file_in_a_folder_with_another_checksum(small, tmp_path, monkeypatch):
    content = small[1] + b"x"
    found, expected = hashlib.sha256(content).hexdigest(), SPECS["smtp"].sha256
    (tmp_path / FILE).write_bytes(content)
    text = re.escape(
        f"{tmp_path / FILE} is not the file expected: its SHA-256 is {found}, not {expected}. Replace it"
    )
    with pytest.raises(DatasetError, match=text):
        load_dataset("smtp", tmp_path)
    monkeypatch.setenv("RANKAD_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=text):
        load_dataset("smtp")


# ------------------------------------------------------------------------------------------------- downloads


def test_files_come_from_adbench():
    assert URL == "https://raw.githubusercontent.com/Minqi824/ADBench/main/adbench/datasets/Classical/"


def test_download_into_the_cache(small, cache, server, capfd, monkeypatch):
    # Else rich would colour the bar.
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    dataset, content = small
    (server.folder / FILE).write_bytes(content)
    _assert_same(load_dataset("smtp"), dataset)
    assert server.requests == [f"/{FILE}"]
    assert [path.name for path in cache.iterdir()] == [FILE]
    assert (cache / FILE).read_bytes() == content
    shown = capfd.readouterr()
    assert shown.out == ""
    # The bar in its last state: the name, and all of the bytes.
    assert FILE in shown.err
    size = f"{len(content) / 1000:.1f}"
    assert f"{size}/{size} kB" in shown.err


def test_second_load_needs_no_server(small, cache, server, capfd):
    dataset, content = small
    (server.folder / FILE).write_bytes(content)
    load_dataset("smtp")
    (server.folder / FILE).unlink()
    capfd.readouterr()
    _assert_same(load_dataset("smtp"), dataset)
    assert len(server.requests) == 1
    assert capfd.readouterr().err == ""


def test_damaged_file_in_the_cache_is_downloaded_again(small, cache, server):
    dataset, content = small
    (server.folder / FILE).write_bytes(content)
    cache.mkdir()
    (cache / FILE).write_bytes(content[:-100])
    _assert_same(load_dataset("smtp"), dataset)
    assert (cache / FILE).read_bytes() == content


def test_download_of_a_real_file(data_folder, cache, server):
    (server.folder / FILE).write_bytes((data_folder / FILE).read_bytes())
    _assert_same(load_dataset("smtp"), load_dataset("smtp", data_folder))


def _assert_says_where_to_put_it(text, cache):
    assert f"Put the ADBench file (SHA-256 {SPECS['smtp'].sha256}) into a folder" in text
    assert "--data or RANKAD_DATA" in text
    assert str(cache / FILE) in text


def test_download_with_another_checksum(small, cache, server):
    (server.folder / FILE).write_bytes(small[1] + b"x")
    with pytest.raises(
        DatasetError, match=rf"127\.0\.0\.1:\d+/{FILE} did not send the file expected"
    ) as caught:
        load_dataset("smtp")
    text = str(caught.value)
    assert hashlib.sha256(small[1] + b"x").hexdigest() in text
    _assert_says_where_to_put_it(text, cache)
    # Neither the file nor a part of it is left.
    assert list(cache.iterdir()) == []


def test_download_of_a_file_that_is_not_there(small, cache, server):
    with pytest.raises(DatasetError, match=rf"{FILE} could not be downloaded from http://.*: 404 ") as caught:
        load_dataset("smtp")
    _assert_says_where_to_put_it(str(caught.value), cache)
    assert list(cache.iterdir()) == []


def test_download_without_a_server(small, cache, server, monkeypatch):
    # A port that was free a moment ago, and that nothing listens on.
    gone = ThreadingHTTPServer(("127.0.0.1", 0), _Quiet)
    port = gone.server_port
    gone.server_close()
    monkeypatch.setenv("RANKAD_DATA_URL", f"http://127.0.0.1:{port}/files/")
    with pytest.raises(
        DatasetError,
        match=rf"{FILE} could not be downloaded from http://127.0.0.1:{port}/files/{FILE}: .*refused",
    ) as caught:
        load_dataset("smtp")
    _assert_says_where_to_put_it(str(caught.value), cache)


def test_connection_that_breaks_half_way(small, cache, server, monkeypatch):
    content = small[1]

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:1_000])

    monkeypatch.setattr(_Quiet, "do_GET", do_GET)
    with pytest.raises(DatasetError) as caught:
        load_dataset("smtp")
    _assert_says_where_to_put_it(str(caught.value), cache)
    assert list(cache.iterdir()) == []


def test_address_that_is_none(small, cache, monkeypatch):
    monkeypatch.setenv("RANKAD_DATA_URL", "nonsense")
    with pytest.raises(DatasetError, match=rf"{FILE} could not be downloaded from nonsense/{FILE}: "):
        load_dataset("smtp")


@pytest.mark.parametrize("package", ["pooch", "rich.progress"])
def test_download_without_the_extra(small, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ImportError, match=rf"downloading {FILE} needs the package {package}: run pip install 'rankad\[exp"
    ):
        load_dataset("smtp")


def test_folder_needs_no_extra(small, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    (tmp_path / FILE).write_bytes(small[1])
    _assert_same(load_dataset("smtp", tmp_path), small[0])


# -------------------------------------------------------------------------------------------------- Mulcross


@pytest.fixture(scope="module")
def mulcross():
    return load_dataset("mulcross")


def test_mulcross_has_the_size_of_the_paper(mulcross):
    spec = SPECS["mulcross"]
    assert mulcross.X.shape == (spec.paper_rows, spec.paper_columns)
    assert mulcross.y.sum() == 26_214
    assert set(mulcross.y) == {0, 1}


def test_mulcross_is_white_and_shuffled(mulcross):
    np.testing.assert_allclose(mulcross.X.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(np.cov(mulcross.X.T, ddof=0), np.eye(4), atol=1e-10)
    # A tenth of anomalies in every quarter, within 4.5 standard deviations of a binomial.
    for quarter in np.array_split(mulcross.y, 4):
        assert abs(quarter.mean() - 0.1) < 4.5 * np.sqrt(0.1 * 0.9 / quarter.size)


def test_mulcross_has_two_tight_clusters_in_directions_of_ones(mulcross):
    nominal, anomalous = mulcross.X[mulcross.y == 0], mulcross.X[mulcross.y == 1]
    # The nominal rows were standard normal, so their covariance is the square of the whitening. Undo it.
    back = np.linalg.inv(sqrtm(np.cov(nominal.T)).real)
    rows = (anomalous - nominal.mean(axis=0)) @ back
    distance = 2 * np.sqrt(chi2.ppf(0.999, 4) / 4)
    signs, cluster, counts = np.unique(np.sign(rows), axis=0, return_inverse=True, return_counts=True)
    assert len(signs) == 2
    assert (np.abs(signs) == 1).all()
    np.testing.assert_array_equal(counts, [13_107, 13_107])
    for number in range(2):
        members = rows[cluster.ravel() == number]
        np.testing.assert_allclose(members.mean(axis=0), distance * signs[number], atol=0.06)
        np.testing.assert_allclose(np.cov(members.T), 0.01 * np.eye(4), atol=0.0007)
    # The nominal rows: normal kurtosis in every column, undone likewise.
    plain = (nominal - nominal.mean(axis=0)) @ back
    np.testing.assert_allclose((plain**4).mean(axis=0), 3.0, atol=4.5 * np.sqrt(96 / len(plain)))


def test_mulcross_comes_from_its_seed(mulcross):
    again = make_mulcross()
    np.testing.assert_array_equal(again.X, mulcross.X)
    np.testing.assert_array_equal(again.y, mulcross.y)
    first, other = make_mulcross(500, seed=0), make_mulcross(500, seed=1)
    assert first.X.shape == other.X.shape == (500, 4)
    assert (first.X != other.X).any()


@pytest.mark.parametrize("seed", range(30))
def test_mulcross_clusters_never_share_a_direction(seed):
    dataset = make_mulcross(2_000, seed)
    anomalous = dataset.X[dataset.y == 1]
    # Seen from one anomaly, half of them are near and half are far.
    far = np.linalg.norm(anomalous - anomalous[0], axis=1)
    assert (far > far.max() / 2).sum() == 100
    assert (far < far.max() / 3).sum() == 100


def test_mulcross_of_too_few_rows():
    with pytest.raises(ValueError, match="n=99 is too few rows for Mulcross; ask for 100 or more"):
        make_mulcross(99)
    assert make_mulcross(100).y.sum() == 10


# -------------------------------------------------------------------------------------------------- the split


def _numbered(n, n_anomalies):
    """Rows that hold their own number; the anomalies are spread among them."""
    y = np.zeros(n, dtype=np.int64)
    y[np.random.default_rng(0).choice(n, n_anomalies, replace=False)] = 1
    return Dataset("numbered", np.arange(n, dtype=np.float64)[:, None], y)


def test_split_trains_on_nominal_rows_and_tests_on_all_others():
    dataset = _numbered(500, 40)
    split = split_nominal(dataset, np.random.default_rng(1), n_train=100)
    assert split.train.shape == (100, 1)
    assert split.test.shape == (400, 1)
    train, test = split.train[:, 0].astype(int), split.test[:, 0].astype(int)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(500))
    assert (dataset.y[train] == 0).all()
    assert split.nominal.dtype == np.bool_
    np.testing.assert_array_equal(split.nominal, dataset.y[test] == 0)


def test_split_tests_on_no_more_nominal_rows_than_allowed():
    dataset = _numbered(500, 40)
    split = split_nominal(dataset, np.random.default_rng(2), n_train=100, max_nominal_test=50)
    assert split.nominal.sum() == 50
    assert (~split.nominal).sum() == 40
    rows = np.concatenate([split.train, split.test])[:, 0]
    assert len(set(rows)) == rows.size == 190
    # They are a random choice, not the first ones.
    assert (split.test[:50, 0] > 250).any()
    assert (split.test[:50, 0] < 250).any()


def test_split_has_the_sizes_of_the_paper_by_default(mulcross):
    split = split_nominal(mulcross, np.random.default_rng(3))
    assert len(split.train) == 2_000
    assert split.nominal.sum() == 80_000
    assert (~split.nominal).sum() == 26_214


def test_split_comes_from_the_generator():
    dataset = _numbered(200, 20)
    first = split_nominal(dataset, np.random.default_rng(4), n_train=50)
    again = split_nominal(dataset, np.random.default_rng(4), n_train=50)
    other = split_nominal(dataset, np.random.default_rng(5), n_train=50)
    np.testing.assert_array_equal(first.train, again.train)
    np.testing.assert_array_equal(first.test, again.test)
    assert (first.train != other.train).any()


@pytest.mark.parametrize("n_train", [0, -1, 180, 2_000])
def test_split_that_leaves_nothing(n_train):
    with pytest.raises(
        ValueError, match=f"n_train={n_train} leaves .* has 180 nominal rows; choose from 1 to 179"
    ):
        split_nominal(_numbered(200, 20), np.random.default_rng(0), n_train=n_train)
