"""What the package exports, what importing it brings along, and what it ships."""

import doctest
import importlib.metadata
import importlib.resources
import inspect
import re
import subprocess
import sys

import pytest

import rankad

PUBLIC = [
    "KLPE",
    "AsyncClient",
    "Client",
    "ServiceError",
    "Calibration",
    "Certificate",
    "CertificateDisplay",
    "ColumnsDisplay",
    "DriftDisplay",
    "DriftMonitor",
    "EpsilonLPE",
    "FalseAlarmBound",
    "FalseAlarmCounter",
    "LevelSet",
    "LevelSetDisplay",
    "MassVolumeDisplay",
    "ModelFileError",
    "OnlineAlarms",
    "PValueDisplay",
    "RankAD",
    "TableDetector",
    "__version__",
    "conditional_p_values",
    "load",
    "mass_volume_curve",
    "rows_needed",
    "score_batch",
    "score_file",
    "shift_weights",
    "storey",
    "weighted_p_values",
]


def test_the_public_names_are_these():
    assert sorted(rankad.__all__) == sorted(PUBLIC)
    assert len(set(rankad.__all__)) == len(rankad.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name):
    assert hasattr(rankad, name)


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.startswith("_")])
def test_every_public_class_has_documentation_of_its_own(name):
    documented = getattr(rankad, name).__doc__
    assert documented
    assert "Parameters" in documented or "Attributes" in documented


def examples_of(documented):
    """Return the code of the examples in a docstring."""
    return "\n".join(example.source for example in doctest.DocTestParser().get_examples(documented or ""))


def methods_of(cls):
    """Yield the public methods and properties of a class that rankad wrote, with their docstrings."""
    for name in (name for name in dir(cls) if not name.startswith("_")):
        raw = inspect.getattr_static(cls, name)
        written = getattr(raw, "__func__", None) or getattr(raw, "fget", None) or getattr(raw, "func", raw)
        if inspect.isfunction(written) and written.__module__.startswith("rankad.") and written.__doc__:
            yield name, written.__doc__


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.startswith("_")])
def test_every_public_name_has_an_example(name):
    """Doctest runs them; one of a method may stand in the docstring of its class or of another method."""
    public = getattr(rankad, name)
    assert examples_of(public.__doc__)
    if inspect.isclass(public):
        documented = dict(methods_of(public))
        texts = [cls.__doc__ for cls in public.__mro__ if cls.__module__.startswith("rankad.")]
        code = "\n".join(map(examples_of, [*texts, *documented.values()]))
        assert set(documented) <= set(re.findall(r"\.(\w+)", code))


def test_the_version_is_that_of_the_distribution():
    assert rankad.__version__ == importlib.metadata.version("rankad")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_rankad_brings_no_plotting_and_no_data_frames():
    # scikit-learn imports pandas by itself where there is one; rankad must add nothing to what it brings.
    heavy = "{'matplotlib', 'pandas', 'polars'} & set(sys.modules)"
    code = (
        f"import sys, numba, joblib, threadpoolctl, scipy.spatial, sklearn.cluster; before = {heavy}; "
        f"import rankad; print(sorted({heavy} - before), sorted(before - {{'pandas'}}))"
    )
    assert run(code).strip() == "[] []"


def test_detectors_are_imported_without_numba():
    # Nor do they bring more of SciPy and scikit-learn than scikit-learn's own detectors do.
    heavy = "{name for name in sys.modules if name.startswith(('llvmlite', 'numba', 'scipy', 'sklearn'))}"
    code = f"""
import sys, sklearn.svm
before = {heavy}
from rankad import KLPE, EpsilonLPE, RankAD
print(sorted({heavy} - before))
for detector in (KLPE, EpsilonLPE, RankAD):
    repr(detector())
print(sorted({{"llvmlite", "numba"}} & set(sys.modules)))
"""
    assert run(code).splitlines() == ["[]", "[]"]


def test_rankad_works_where_neither_plotting_nor_data_frames_are_installed():
    code = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("matplotlib", "pandas", "polars"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import rankad
print(rankad.KLPE(0.1).fit([[float(i)] for i in range(20)]).predict([[9.0], [99.0]]))
"""
    assert run(code).strip() == "[ 1 -1]"


def test_tables_say_what_to_install_where_there_is_no_polars():
    code = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "polars":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import rankad
detector = rankad.KLPE(0.1).fit([[float(i)] for i in range(20)])
for asked in (lambda: rankad.TableDetector, lambda: detector.verdict([[1.0]])):
    try:
        asked()
    except ImportError as error:
        print(error)
"""
    assert run(code).count("pip install 'rankad[tables]'") == 2


def test_the_types_are_shipped():
    assert importlib.resources.files("rankad").joinpath("py.typed").is_file()
