"""Rows judged by a detector that is fitted on them: nobody vouches for any.

A first look is coarse and sees all rows (`rankad.fitting.trimming.suspicion`); it keeps suspects from
training. Then each row is scored by models that had not seen it, and its p-value is its place among all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from rankad._base.arrays import Floats, Ints
from rankad.stages.calibration import Calibration


class OwnScores(NamedTuple):
    """The scores of rows by models that had not seen them, and which rows calibrate."""

    scores: Floats
    calibrating_rows: Ints


def own_p_values(scores: Floats) -> Floats:
    """Return the p-value of each row among all rows of the table: the share of them that score no higher.

    At most a share alpha of all rows have ``p <= alpha``, however the scores were made.

    >>> own_p_values(np.array([0.3, 0.1, 0.9, 0.3]))
    array([0.75, 0.25, 1.  , 0.75])
    """
    return np.asarray(rankdata(scores, method="max") / len(scores))


def with_suspects(
    calibration: Calibration,
    which: Ints,
    scores: Floats,
    suspects: Ints,
    share: float,
    rng: np.random.Generator,
) -> tuple[Calibration, Ints]:
    """Let suspects calibrate in the proportion that they have among all rows, in the place of others.

    They did not train, so their scores are as fresh as those of rows left out. Without them, normal rows as
    far out as they are would all be alarms. `which` says which row each calibration score is of; both are
    returned with as many scores as before.

    >>> nominal, suspects = Calibration.from_scores(np.arange(8.0), "cross-fit"), np.array([3, 9])
    >>> rng = np.random.default_rng(0)
    >>> made, _ = with_suspects(nominal, np.arange(8), np.array([-2.0, -1.0]), suspects, 0.2, rng)
    >>> made.scores.size, int((made.scores < 0).sum())
    (8, 2)
    """
    size = calibration.scores.size
    n_in = min(round(size * share), len(scores))
    out, chosen = rng.choice(size, n_in, replace=False), rng.choice(len(scores), n_in, replace=False)
    joined = calibration.scores.copy()
    joined[out] = scores[chosen]
    which = which.copy()
    which[out] = suspects[chosen]
    return Calibration.from_scores(joined, calibration.kind), which[np.argsort(joined, kind="stable")]
