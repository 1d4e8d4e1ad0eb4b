"""
What four detectors take for normal
===================================

Normal rows often lie in places of different density. Here a dense crescent of
readings stands beside a wide, thin cloud. Four detectors learn from the same
rows, and each picture shows in shades how normal it finds each place.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.svm import OneClassSVM

from rankad import KLPE, RankAD


def draw(n, rng):
    """Return n normal rows, three in four of them from a crescent."""
    angle = rng.uniform(0.1 * np.pi, 1.1 * np.pi, size=n)
    crescent = 2 * np.c_[np.cos(angle), np.sin(angle)] + rng.normal(
        0, 0.12, size=(n, 2)
    )
    cloud = rng.normal((2.6, -1.8), (1.1, 0.8), size=(n, 2))
    return np.where(rng.random((n, 1)) < 0.75, crescent, cloud)


rng = np.random.default_rng(0)
normal, fresh = draw(600, rng), draw(5000, rng)

# %%
# All four have ``score_samples``, where higher is more normal, and
# ``predict``. All four are asked for 5 % false alarms, as far as they can be.
# This is what they raise on fresh normal rows. (After one fit on 600 rows, the
# rate of the first two may be off by a point or two; a certificate says how
# far.)

detectors = {
    "RankAD": RankAD(alpha=0.05),
    "Distance to neighbours (KLPE)": KLPE(alpha=0.05),
    "IsolationForest": IsolationForest(contamination=0.05, random_state=0),
    "OneClassSVM": OneClassSVM(nu=0.05),
}
for name, detector in detectors.items():
    detector.fit(normal)
    print(f"{name:30s} {np.mean(detector.predict(fresh) == -1):.1%}")

# %%
# To compare shapes, each orange line is drawn where 5 % of the fresh rows are
# outside. The area inside, as far as the picture goes, is what anomalies can
# hide in. The first two follow both the crescent and the cloud; where rows are
# few, their lines are ragged. The forest cuts along the axes, so that the
# inside of the crescent counts as normal. The support vector machine has one
# width for both densities.

xs, ys = np.linspace(-3.4, 6.4, 150), np.linspace(-4.8, 3.4, 150)
grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(
    2, 2, figsize=(7, 6.2), sharex=True, sharey=True, layout="constrained"
)
for ax, (name, detector) in zip(axes.flat, detectors.items(), strict=True):
    scores, of_fresh = (
        detector.score_samples(grid).reshape(150, 150),
        np.sort(detector.score_samples(fresh)),
    )
    line = np.quantile(of_fresh, 0.05)
    # Shades by the order of scores, since each detector has units of its own.
    shades = np.searchsorted(of_fresh, scores) / len(fresh)
    ax.contourf(
        xs,
        ys,
        shades,
        levels=[0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1],
        cmap="Blues",
        vmin=0,
    )
    ax.contour(
        xs,
        ys,
        scores,
        levels=[line],
        colors="#d55e00",
        linewidths=1.5,
        linestyles="solid",
    )
    ax.scatter(*normal.T, s=3, color="black", alpha=0.35, linewidth=0)
    area = np.mean(scores >= line) * np.ptp(xs) * np.ptp(ys)
    ax.set_title(f"{name}\narea inside the line: {area:.1f}", fontsize=9)
    ax.set(xticks=[], yticks=[])
figure.suptitle(
    "The same rows, four ideas of normal "
    "(orange: 5 % of fresh normal rows are outside)",
    fontsize=10,
)
plt.show()
