"""Anomaly detection with a false-alarm rate you choose."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rankad._base.garbage import no_collection as _no_collection

if TYPE_CHECKING:
    from rankad.detectors import KLPE, EpsilonLPE, RankAD
    from rankad.detectors.table import TableDetector
    from rankad.displays import ColumnsDisplay, PValueDisplay
    from rankad.modelfile import ModelFileError, load
    from rankad.scoring.batch import score_batch
    from rankad.scoring.score_file import score_file
    from rankad.stages.calibration import Calibration, FalseAlarmBound

__version__ = version("rankad")

__all__ = [
    "KLPE",
    "Calibration",
    "ColumnsDisplay",
    "EpsilonLPE",
    "FalseAlarmBound",
    "ModelFileError",
    "PValueDisplay",
    "RankAD",
    "TableDetector",
    "__version__",
    "load",
    "score_batch",
    "score_file",
]

_HOMES = {
    "KLPE": "rankad.detectors",
    "Calibration": "rankad.stages.calibration",
    "ColumnsDisplay": "rankad.displays",
    "EpsilonLPE": "rankad.detectors",
    "FalseAlarmBound": "rankad.stages.calibration",
    "ModelFileError": "rankad.modelfile",
    "PValueDisplay": "rankad.displays",
    "RankAD": "rankad.detectors",
    "TableDetector": "rankad.detectors.table",
    "load": "rankad.modelfile",
    "score_batch": "rankad.scoring.batch",
    "score_file": "rankad.scoring.score_file",
}


def __getattr__(name: str) -> Any:
    # When they are asked for: tables need polars, which is an extra, and scikit-learn takes seconds to
    # import, which the command's --help and completion need not wait for.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _no_collection():
        found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
