"""
Promised against realised
=========================

A detector is asked for 1 % false alarms. How many will it really raise on all
the normal rows to come? Not exactly 1 %, since the threshold comes from a
finite sample. The certificate says within which limits, with which confidence.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankad import CertificateDisplay, RankAD, rows_needed


def draw(n, rng):
    """Return n normal rows: three columns with long tails that depend."""
    rows = rng.standard_t(4, size=(n, 3))
    rows[:, 2] = rows[:, 0] * rows[:, 1] + 0.2 * rows[:, 2]
    return rows


# %%
# Calibrate with rows that took no part in fitting, and how the realised
# rate is distributed is known, whatever distribution the rows have.

rng = np.random.default_rng(0)
detector = RankAD().fit(draw(1000, rng)).calibrate(draw(500, rng))
certificate = detector.certificate(delta=0.05)
print(certificate)

# %%
# The questions that come up before a detector goes to work:

print(f"alpha for a rate of at most 2 %: {certificate.alpha_for(0.02):.4f}")
print(f"rows for 1 %, and at most 1.5 %: {rows_needed(0.01, 0.05, 0.005):,}")

# %%
# Now the check that life rarely allows: 100,000 fresh normal rows. The dark
# band holds at one alpha that was chosen beforehand, the light one at all of
# them together. If the whole experiment were repeated, the line of realised
# rates would leave the light band at most one time in twenty; at any one alpha,
# it would be outside the dark band that often. More calibration rows make the
# bands narrower.

fresh = draw(100_000, rng)
few = RankAD().fit(draw(1000, rng)).calibrate(draw(100, rng))
figure, axes = plt.subplots(
    1, 2, figsize=(7, 3.9), sharey=True, layout="constrained"
)
for ax, each in zip(axes, (few, detector), strict=True):
    CertificateDisplay.from_estimator(each, fresh, ax=ax)
    ax.set_title(f"{each.calibration_.scores.size} calibration rows")
    ax.legend(loc="upper left", fontsize=7, frameon=False)
    ax.set(xlim=(0.002, 0.5), ylim=(1e-4, 1))
axes[1].set_ylabel("")
plt.show()
