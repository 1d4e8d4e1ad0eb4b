"""
A few bad rows among those you learn from
=========================================

Training rows are rarely spotless. If some anomalies lie together, a detector
may take their place for normal. Tell it how many there may be, and it leaves
out the rows that lie farthest from the others.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankad import LevelSetDisplay, RankAD

rng = np.random.default_rng(0)
normal = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=600)
bad = rng.normal((2.6, -2.6), 0.15, size=(18, 2))
rows = np.vstack([normal, bad])

# %%
# ``trim=0.03`` says that up to 3 % of the rows may be anomalies. If all of
# them were normal after all, more false alarms would be raised; the bound
# counts that in. ``trim="auto"`` is for an unknown share: suspects do not
# train, but calibrate, so that anomalies like those in the table are alarms
# only where alpha is above their share. With the default calibration all three
# bounds are approximations.

detectors = {
    "trim=0, the default": RankAD(alpha=0.05),
    "trim=0.03": RankAD(alpha=0.05, trim=0.03),
    "trim='auto'": RankAD(alpha=0.05, trim="auto"),
}
more_bad = rng.normal((2.6, -2.6), 0.15, size=(1000, 2))
fresh = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=10_000)
for name, detector in detectors.items():
    detector.fit(rows)
    false, caught = (
        np.mean(detector.predict(each) == -1) for each in (fresh, more_bad)
    )
    bound = detector.false_alarm_bound().bound
    print(
        f"{name:22s} caught {caught:4.0%}, false alarms {false:.1%}, "
        f"bound {bound:.1%}"
    )

# %%
# The set of rows that raise no alarm at 5 %. Without trimming it has an island
# where the bad rows are.

figure, axes = plt.subplots(
    1, 3, figsize=(7, 2.9), sharex=True, sharey=True, layout="constrained"
)
for ax, (name, detector) in zip(axes, detectors.items(), strict=True):
    LevelSetDisplay.from_estimator(detector, alphas=[0.05], ax=ax)
    ax.scatter(*normal.T, s=3, color="black", alpha=0.4, linewidth=0)
    ax.scatter(*bad.T, s=8, color="#d55e00", linewidth=0)
    ax.annotate(
        "bad rows",
        (2.6, -3.4),
        ha="center",
        va="top",
        fontsize=8,
        color="#d55e00",
    )
    ax.set(
        title=name,
        xlabel="",
        ylabel="",
        xlim=(-4.5, 4.5),
        ylim=(-4.5, 4.5),
        aspect="equal",
    )
    ax.legend().remove()
axes[0].annotate(
    "no alarm", (-1.2, 1.2), ha="center", fontsize=8, color="#0072b2"
)
plt.show()
