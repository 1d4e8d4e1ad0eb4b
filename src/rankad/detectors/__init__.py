"""The detectors: the only place where the stages are strung together."""

# What is compiled they import when they fit or score: numba takes longer to import than all of rankad.
from rankad.detectors.lpe import KLPE, EpsilonLPE
from rankad.detectors.rank import RankAD

__all__ = ["KLPE", "EpsilonLPE", "RankAD"]
