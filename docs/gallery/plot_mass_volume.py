"""
Compare detectors without labels
================================

Which detector is best, when there is no labelled anomaly? Take the smallest
set that each needs to hold a given share of normal rows. A detector that knows
where normal rows are needs less room, and leaves less room for anomalies to
hide in. That is the mass-volume curve: the lower, the better.

The rows are readings of a pump, those that ``rankad demo`` writes.
"""

import matplotlib.pyplot as plt
import polars as pl
from sklearn.ensemble import IsolationForest
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from rankad import KLPE, MassVolumeDisplay, RankAD
from rankad.cli.example import make_example

readings = pl.DataFrame(make_example(n_normal=2000).normal)
columns = ["speed_rpm", "flow_m3h", "pressure_bar", "power_kw", "bearing_c"]
rows = StandardScaler().fit_transform(readings[columns].to_numpy())
normal, held_out = rows[:1000], rows[1000:]

# %%
# Fit on one half. The curves are drawn with the other half: a detector that
# only remembers the rows it has seen would look too good on these.

detectors = {
    "RankAD": RankAD(),
    "KLPE": KLPE(),
    "OneClassSVM": OneClassSVM(nu=0.1),
    "IsolationForest": IsolationForest(random_state=0),
}
for detector in detectors.values():
    detector.fit(normal)

# %%
# The columns depend on one another: speed sets flow and pressure, and these
# set power. So normal rows fill little of the space, and who sees that needs
# far less room. Volumes come from a Monte Carlo with the same points for every
# detector; the bands are two of its standard errors.

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
display = MassVolumeDisplay.from_estimators(
    detectors, held_out, n_points=20_000, ax=ax
)
ax.set_title("Room that each detector needs for a share of held-out readings")
for name, curve in display.curves.items():
    print(f"{name:16s} area under the curve {curve.area():7.2f}")
plt.show()
