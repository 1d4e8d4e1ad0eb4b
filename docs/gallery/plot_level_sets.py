"""
The set that a detector calls normal
====================================

At each alpha there is a region whose rows raise no alarm: the detector's
estimate of the smallest region that holds a share of 1 - alpha of all normal
rows. The regions of one detector are nested, so that a row that is an alarm at
a small alpha is one at every larger alpha.

The rows are wines of scikit-learn, described by two measurements.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from rankad import LevelSetDisplay, RankAD

bunch = load_wine(as_frame=True)
wines, growers = bunch.data[["flavanoids", "color_intensity"]], bunch.target
detector = RankAD().fit(wines)

# %%
# A level set is an object: it tells which rows it contains, and how large it
# is.

for alpha in (0.05, 0.2, 0.5):
    normal = detector.level_set(alpha)
    volume = normal.volume()
    print(
        f"alpha {alpha:4.0%}: area {volume.volume:5.2f} "
        f"(standard error {volume.error:.2f})"
    )

print(
    "the set at 50 % is a part of that at 5 %:",
    detector.level_set(0.5).is_within(detector.level_set(0.05)),
)

# %%
# Drawn one inside the other. The wines come from three growers, the colours of
# the points. Nobody told the detector, yet the sets of larger alphas fall
# apart into pieces about their wines.

figure, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
colours = np.array(["#d55e00", "#009e73", "#f0e442"])[growers]
LevelSetDisplay.from_estimator(
    detector,
    wines,
    alphas=[0.02, 0.05, 0.2, 0.5, 0.75],
    ax=ax,
    c=colours,
    s=16,
    alpha=1,
    edgecolor="black",
    linewidth=0.4,
)
ax.set(
    xlabel="flavanoids",
    ylabel="colour intensity",
    title="Nested sets of normal wines",
)
plt.show()
