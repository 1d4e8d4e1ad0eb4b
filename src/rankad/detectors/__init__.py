"""The detectors: the only place where the stages are strung together."""

from rankad.detectors.lpe import KLPE, EpsilonLPE
from rankad.detectors.rank import RankAD

__all__ = ["KLPE", "EpsilonLPE", "RankAD"]
