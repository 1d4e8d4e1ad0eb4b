"""Fixtures that several test files use."""

import os
from pathlib import Path

import numpy as np
import pytest

from rankad import KLPE, EpsilonLPE, RankAD

# The cheapest RankAD that still goes through every stage but selection: there is one trial.
QUICK = {"landmarks": 20, "scaling": "standard", "bandwidth": "D_K", "C": 0.1, "random_state": 0}


def _quick_rankad(**params):
    return RankAD(**{**QUICK, **params})


@pytest.fixture
def quick_rankad():
    """Build a RankAD that fits in a tenth of a second; parameters as given."""
    return _quick_rankad


@pytest.fixture(params=["RankAD", "KLPE", "EpsilonLPE"])
def build(request):
    """Build each detector in turn, in a form that fits fast; parameters as given."""
    return {"RankAD": _quick_rankad, "KLPE": KLPE, "EpsilonLPE": EpsilonLPE}[request.param]


@pytest.fixture
def nominal():
    """Sixty rows of three independent normal columns."""
    return np.random.default_rng(7).normal(size=(60, 3))


@pytest.fixture(scope="session")
def data_folder():
    """The folder of the benchmark data sets, from RANKAD_DATA."""
    named = os.environ.get("RANKAD_DATA")
    if not named:
        pytest.skip("RANKAD_DATA is not set: it names the folder of the benchmark data sets")
    if not Path(named).is_dir():
        pytest.skip(f"RANKAD_DATA={named} is not a folder")
    return Path(named)
