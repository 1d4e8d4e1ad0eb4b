"""Anomaly detection with a false-alarm rate you choose."""

from importlib.metadata import version

from rankad.calibration import Calibration, FalseAlarmBound
from rankad.detectors import KLPE, EpsilonLPE, RankAD

__version__ = version("rankad")

__all__ = ["KLPE", "Calibration", "EpsilonLPE", "FalseAlarmBound", "RankAD", "__version__"]
