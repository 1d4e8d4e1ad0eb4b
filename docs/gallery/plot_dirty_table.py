"""
One table that nobody vouches for
=================================

There is one table, and nobody knows which of its rows are anomalies, or how
many there are. ``fit_p_values`` judges every row by models that have not seen
it, and puts the rows in order. Where to cut is decided afterwards, and at any
alpha no more than that share of the rows are alarms.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import IsolationForest

from rankad import RankAD

# %%
# Normal rows lie on a ring and in a small, dense cluster beside it. One row in
# thirty or so is an anomaly, anywhere.

rng = np.random.default_rng(3)
angle, n, n_bad = rng.uniform(0, 2 * np.pi, size=800), 1000, 30
ring = 4 * np.c_[np.cos(angle), np.sin(angle)] + rng.normal(
    0, 0.3, size=(800, 2)
)
cluster = rng.normal((7, 0), 0.25, size=(n - 800, 2))
table = np.vstack(
    [ring, cluster, rng.uniform((-6, -6), (9, 6), size=(n_bad, 2))]
)
is_anomaly = np.arange(len(table)) >= n

p_values = RankAD().fit_p_values(table)
for alpha in (0.01, 0.02, 0.03, 0.05):
    alarms = p_values <= alpha
    print(
        f"alpha {alpha:.0%}: {alarms.sum():2d} alarms, "
        f"{np.sum(alarms & is_anomaly):2d} of them anomalies"
    )

# %%
# An isolation forest asks for the share of anomalies beforehand, or takes a
# threshold of its own, which knows no rate.

forest = IsolationForest(random_state=0).fit(table)
flagged = forest.predict(table) == -1
print(
    f"IsolationForest: {flagged.sum()} alarms, "
    f"{np.sum(flagged & is_anomaly)} of them anomalies"
)

# %%
# On the left the rows at the first places. On the right, how many anomalies
# are found when rows are looked at in order. Nobody finds all of them: a few
# lie among normal rows. What is not promised is how many alarms are anomalies;
# in a table without any, the same number of rows would be alarms.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(7, 3.7), width_ratios=[5, 4], layout="constrained"
)
left.scatter(*table.T, s=4, color="#bbbbbb", linewidth=0)
steps = [
    (0.05, "#f0e442", "5 %"),
    (0.03, "#e69f00", "3 %"),
    (0.01, "#d55e00", "1 %"),
]
for alpha, colour, label in steps:
    left.scatter(
        *table[p_values <= alpha].T,
        s=22,
        color=colour,
        edgecolor="black",
        linewidth=0.4,
        label=f"alarm at {label}",
    )
left.set(title="First places of RankAD", aspect="equal", xticks=[], yticks=[])
left.legend(
    loc="upper center",
    bbox_to_anchor=(0.5, 0),
    ncols=3,
    fontsize=7,
    frameon=False,
    columnspacing=1,
)
looked = np.arange(1, 101)
for name, scores, colour in (
    ("RankAD", p_values, "#0072b2"),
    ("IsolationForest", forest.score_samples(table), "#999999"),
):
    found = np.cumsum(is_anomaly[np.argsort(scores, kind="stable")])[:100]
    right.plot(looked, found, color=colour, label=name)
right.plot(
    looked,
    np.minimum(looked, n_bad),
    color="black",
    linewidth=1,
    linestyle=":",
    label="the best there could be",
)
right.set(
    xlabel="rows looked at",
    ylabel="anomalies found",
    title="Found so far",
    ylim=(0, None),
)
right.legend(loc="lower right", fontsize=8, frameon=False)
plt.show()
