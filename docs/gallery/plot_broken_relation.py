"""
When columns no longer fit together
===================================

Some faults show in no single column. The power that a pump takes follows from
its flow and pressure. When the power meter reads 15 % too low, every value is
still a usual one at some speed, but it does not fit the flow and pressure of
its own row.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.ensemble import IsolationForest

from rankad import RankAD
from rankad.cli.example import make_example

columns = [
    "speed_rpm",
    "flow_m3h",
    "pressure_bar",
    "power_kw",
    "bearing_c",
    "vibration_mms",
]
readings = (
    pl.DataFrame(make_example(n_normal=2500).normal)[columns]
    .drop_nulls()
    .to_numpy()
)
normal, fresh = readings[:1500], readings[1500:]

faulty, fresh = fresh[::5].copy(), np.delete(fresh, np.s_[::5], axis=0)
faulty[:, 3] *= 0.85

# %%
# The default score is made of three parts that vote. One of them is a mixture
# of Gaussians, whose covariances know which columns go together. The isolation
# forest looks at one column at a time. So that the three can be compared, each
# gets the threshold below which 5 % of the fresh normal rows score.

detectors = {
    "RankAD": RankAD(),
    "RankAD without its mixture": RankAD(n_components=0),
    "IsolationForest": IsolationForest(random_state=0),
}
caught = {}
for name, detector in detectors.items():
    line = np.quantile(detector.fit(normal).score_samples(fresh), 0.05)
    caught[name] = np.mean(detector.score_samples(faulty) < line)
    print(f"{name:28s} catches {caught[name]:3.0%} of the faulty rows")

# %%
# On the left, the values of the faulty meter lie in the range of normal ones.
# On the right, beside what power depends on, the two separate, and the detector
# that knows the relation tells them apart.

figure = plt.figure(figsize=(7, 5.2), layout="constrained")
panels = figure.subplot_mosaic(
    [["column", "relation"], ["caught", "caught"]], height_ratios=[3, 1.3]
)
for rows, colour, label in (
    (fresh, "#0072b2", "normal"),
    (faulty, "#d55e00", "faulty meter"),
):
    panels["column"].hist(
        rows[:, 3],
        bins=40,
        range=(0, 25),
        density=True,
        histtype="step",
        color=colour,
        label=label,
        linewidth=1.5,
    )
    panels["relation"].scatter(
        rows[:, 1] * rows[:, 2],
        rows[:, 3],
        s=8,
        color=colour,
        alpha=0.7,
        linewidth=0,
    )
panels["column"].legend(frameon=False)
panels["column"].set(xlabel="power (kW)", yticks=[], title="The column alone")
panels["relation"].set(
    xlabel="flow × pressure",
    ylabel="power (kW)",
    title="Beside what it depends on",
)
panels["caught"].barh(
    range(3), list(caught.values()), color=["#0072b2", "#9ec5e8", "#bbbbbb"]
)
for at, (name, share) in enumerate(caught.items()):
    # Beside the bar, or inside where there is no room.
    style = {"ha": "right", "color": "white"} if share > 0.6 else {"ha": "left"}
    panels["caught"].annotate(
        f" {name}: {share:.0%} ", (share, at), va="center", **style
    )
panels["caught"].invert_yaxis()
panels["caught"].set(
    xlim=(0, 1),
    yticks=[],
    xlabel="share of faulty rows caught at 5 % false alarms",
)
panels["caught"].xaxis.set_major_formatter("{x:.0%}")
plt.show()
