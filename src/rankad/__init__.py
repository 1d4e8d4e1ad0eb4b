"""Anomaly detection with a false-alarm rate you choose."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rankad._base.garbage import no_collection as _no_collection

if TYPE_CHECKING:
    from rankad.certificates.certificate import Certificate
    from rankad.certificates.discoveries import FalseAlarmCounter, storey
    from rankad.certificates.laws import conditional_p_values, rows_needed
    from rankad.certificates.weighted import shift_weights, weighted_p_values
    from rankad.client import AsyncClient, Client, ServiceError
    from rankad.detectors import KLPE, EpsilonLPE, RankAD
    from rankad.detectors.table import TableDetector
    from rankad.displays import ColumnsDisplay, PValueDisplay
    from rankad.displays_sets import CertificateDisplay, DriftDisplay, LevelSetDisplay, MassVolumeDisplay
    from rankad.level_sets.curves import mass_volume_curve
    from rankad.level_sets.level_set import LevelSet
    from rankad.modelfile import ModelFileError, load
    from rankad.monitoring.drift import DriftMonitor
    from rankad.monitoring.online import OnlineAlarms
    from rankad.scoring.batch import score_batch
    from rankad.scoring.score_file import score_file
    from rankad.stages.calibration import Calibration, FalseAlarmBound

__version__ = version("rankad")

__all__ = [
    "KLPE",
    "AsyncClient",
    "Calibration",
    "Certificate",
    "CertificateDisplay",
    "Client",
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
    "ServiceError",
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

_HOMES = {
    "AsyncClient": "rankad.client",
    "Client": "rankad.client",
    "KLPE": "rankad.detectors",
    "Calibration": "rankad.stages.calibration",
    "Certificate": "rankad.certificates.certificate",
    "CertificateDisplay": "rankad.displays_sets",
    "ColumnsDisplay": "rankad.displays",
    "DriftDisplay": "rankad.displays_sets",
    "DriftMonitor": "rankad.monitoring.drift",
    "EpsilonLPE": "rankad.detectors",
    "FalseAlarmBound": "rankad.stages.calibration",
    "FalseAlarmCounter": "rankad.certificates.discoveries",
    "LevelSet": "rankad.level_sets.level_set",
    "LevelSetDisplay": "rankad.displays_sets",
    "MassVolumeDisplay": "rankad.displays_sets",
    "ModelFileError": "rankad.modelfile",
    "OnlineAlarms": "rankad.monitoring.online",
    "PValueDisplay": "rankad.displays",
    "RankAD": "rankad.detectors",
    "ServiceError": "rankad.client",
    "TableDetector": "rankad.detectors.table",
    "conditional_p_values": "rankad.certificates.laws",
    "load": "rankad.modelfile",
    "mass_volume_curve": "rankad.level_sets.curves",
    "rows_needed": "rankad.certificates.laws",
    "score_batch": "rankad.scoring.batch",
    "score_file": "rankad.scoring.score_file",
    "shift_weights": "rankad.certificates.weighted",
    "storey": "rankad.certificates.discoveries",
    "weighted_p_values": "rankad.certificates.weighted",
}


def __getattr__(name: str) -> Any:
    # When they are asked for: tables need polars, which is an extra, and scikit-learn takes seconds to
    # import, which the command's --help and completion need not wait for.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        with _no_collection():
            value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in ("polars", "pyarrow"):
            raise
        raise ImportError(
            f"rankad.{name} needs {error.name}, which is not installed: pip install 'rankad[tables]'."
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
