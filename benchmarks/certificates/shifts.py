"""False alarms where the mix of situations has changed, with weighted p-values."""

from __future__ import annotations

import numpy as np

from benchmarks.certificates.checks import Mean
from rankad import shift_weights, weighted_p_values

__all__ = ["shifted"]

SHIFTS = (0.5, 1.0)


def shifted(repetitions: int, n: int = 300, m: int = 20, alpha: float = 0.1) -> list[Mean]:
    """Rows of a Gaussian whose mean has moved; the score is the distance to where it was.

    Weights are known, then estimated from rows of now; beside them p-values without weights.
    """
    means = []
    for shift in SHIFTS:
        rng = np.random.default_rng([13, round(10 * shift)])
        shares: dict[str, list[float]] = {"known": [], "estimated": [], "none": []}
        for _ in range(repetitions):
            known, recent, new = (
                rng.normal(place, 1, size=(size, 1)) for place, size in ((0, n), (shift, n), (shift, m))
            )
            scores = [-np.abs(rows[:, 0]) for rows in (new, known)]
            true = [np.exp(shift * rows[:, 0] - shift**2 / 2) for rows in (new, known)]
            estimated = shift_weights(known, recent, new)
            for name, own, theirs in (
                ("known", *true),
                ("estimated", estimated.new, estimated.calibration),
                ("none", np.ones(m), np.ones(n)),
            ):
                p_values = weighted_p_values(scores[0], own, scores[1], theirs)
                shares[name].append(float((p_values <= alpha).mean()))
        setting = (
            f"{n} calibration rows, mean moved by {shift:g}; {np.mean(shares['estimated']):.3f} with weights "
            f"estimated, {np.mean(shares['none']):.3f} without weights"
        )
        mean, error = float(np.mean(shares["known"])), float(np.std(shares["known"]) / np.sqrt(repetitions))
        means.append(Mean("false alarms, known weights", setting, mean, error, alpha))
    return means
