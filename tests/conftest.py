"""Fixtures that several test files use."""

import os
import shutil
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import modelfile_cases
from postgres_server import PostgresServer, skip_without_postgres
from rankad import KLPE, EpsilonLPE, RankAD
from rankad.fitting import sizes

# The cheapest RankAD that still goes through every stage but selection: there is one trial.
QUICK = {"landmarks": 20, "scaling": "standard", "bandwidth": "D_K", "C": 0.1, "random_state": 0}


# RankSVM by itself.
ALONE = {"near_field": False, "n_components": 0}


def _quick_rankad(**params):
    return RankAD(**{**QUICK, **params})


@pytest.fixture
def few_folds(monkeypatch):
    """Cross-fit in five folds, not in forty: for tests that do not ask how well that calibrates."""
    monkeypatch.setattr(sizes, "CALIBRATION_FOLDS", 5)


@pytest.fixture
def quick_rankad(few_folds):
    """Build a RankAD that fits in a twentieth of a second; parameters as given."""
    return _quick_rankad


@pytest.fixture(params=["RankAD", "KLPE", "EpsilonLPE"])
def build(request, few_folds):
    """Build each detector in turn, in a form that fits fast; parameters as given."""
    return {"RankAD": _quick_rankad, "KLPE": KLPE, "EpsilonLPE": EpsilonLPE}[request.param]


def _nominal():
    return np.random.default_rng(7).normal(size=(60, 3))


@pytest.fixture
def nominal():
    """Sixty rows of three independent normal columns."""
    return _nominal()


@cache
def _fitted(build, **params):
    return build(**params).fit(_nominal())


@pytest.fixture
def fit_nominal(build):
    """Return ``build(**params).fit(nominal)``, fitted only once; every call gets a copy of its own."""
    return lambda **params: deepcopy(_fitted(build, **params))


@pytest.fixture
def count_scans(monkeypatch):
    """Return what makes a module count the queries of its scans, in a list that it returns."""

    def counted(module):
        real, numbers = module.scan, []

        def counting(groups, n, asked, which, k, own):
            numbers.append(len(which))
            return real(groups, n, asked, which, k, own)

        monkeypatch.setattr(module, "scan", counting)
        return numbers

    return counted


@pytest.fixture(scope="session")
def saved_detector():
    """The detector that the tests of model files save: every stage is in it. Not to be changed."""
    return modelfile_cases.fitted()


@pytest.fixture(scope="session")
def model_bytes(saved_detector, tmp_path_factory):
    """The bytes of its model file."""
    path = tmp_path_factory.mktemp("models") / "whole.rankad"
    saved_detector.save(path)
    return path.read_bytes()


@pytest.fixture(scope="session")
def near_bytes(tmp_path_factory):
    """The bytes of the model file of a detector with a near field."""
    path = tmp_path_factory.mktemp("models") / "near.rankad"
    modelfile_cases.fitted_with_near_field().save(path)
    return path.read_bytes()


@pytest.fixture(scope="session")
def klpe_bytes(tmp_path_factory):
    """The bytes of the model file of a KLPE."""
    path = tmp_path_factory.mktemp("models") / "klpe.rankad"
    KLPE(n_neighbors=4).fit(modelfile_cases.nominal()).save(path)
    return path.read_bytes()


@pytest.fixture(scope="session")
def epsilon_bytes(tmp_path_factory):
    """The bytes of the model file of an EpsilonLPE."""
    path = tmp_path_factory.mktemp("models") / "epsilon.rankad"
    EpsilonLPE(calibration="split").fit(modelfile_cases.nominal()).save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def browser():
    """Chromium, the real one."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        hint = "no chromium to show pages in; on Debian: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(hint)
        pytest.skip(hint)
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, headless=True, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server."""
    skip_without_postgres()
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def data_folder():
    """The folder of the benchmark data sets, from RANKAD_DATA."""
    named = os.environ.get("RANKAD_DATA")
    if not named:
        pytest.skip("RANKAD_DATA is not set: it names the folder of the benchmark data sets")
    if not Path(named).is_dir():
        pytest.skip(f"RANKAD_DATA={named} is not a folder")
    return Path(named)
