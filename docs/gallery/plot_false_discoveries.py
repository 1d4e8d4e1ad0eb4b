"""
A bounded share of false alarms in a batch
==========================================

At a fixed alpha, a batch of normal rows raises alarms too, and where anomalies
are rare most alarms may be false. If what matters is the share of false ones
*among the alarms*, the false discovery rate, let the rule of Benjamini and
Hochberg choose the threshold.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import false_discovery_control

from rankad import FalseAlarmCounter, RankAD, storey

# %%
# These rules need calibration rows that had no part in training, and enough of
# them: no p-value is below 1 / (number of calibration rows + 1).

rng = np.random.default_rng(0)
detector = (
    RankAD()
    .fit(rng.normal(size=(1000, 3)))
    .calibrate(rng.normal(size=(20_000, 3)))
)


def draw(n_anomalies, rng):
    """Return p-values of 1,000 rows, and which of them are anomalies."""
    rows, is_anomaly = rng.normal(size=(1000, 3)), np.arange(1000) < n_anomalies
    rows[is_anomaly] += rng.choice(
        [-1, 1], size=(n_anomalies, 3)
    ) * rng.uniform(1, 4, size=(n_anomalies, 1))
    return detector.p_values(rows), is_anomaly


# %%
# One batch has few anomalies, the other many. Storey's rule estimates the
# share of normal rows, and finds more where they are not nearly all.

batches = {
    "10 anomalies in 1,000 rows": draw(10, rng),
    "300 anomalies in 1,000 rows": draw(300, rng),
}
q = 0.1
for name, (p_values, is_anomaly) in batches.items():
    rules = {
        "alpha = 1 %": p_values <= 0.01,
        "Benjamini-Hochberg": false_discovery_control(p_values) <= q,
        "Storey": storey(
            p_values, q, n_calibration=detector.calibration_.scores.size
        ),
    }
    counter = FalseAlarmCounter(p_values, delta=0.05)
    print(name)
    for rule, alarms in rules.items():
        false, most = (
            np.sum(alarms & ~is_anomaly),
            counter.bound(alarms).most_false,
        )
        print(
            f"  {rule:20s}{alarms.sum():4d} alarms, "
            f"{false:3d} of them false; at most {most:3d}"
        )

# %%
# The rules keep the *mean* share of false alarms over many batches at q or
# below, which is 10 % here. The last figure holds with 95 % confidence for
# this batch, and for any rows that you pick, however you pick them.
#
# The picture shows how the rule of Benjamini and Hochberg works: p-values in
# ascending order, and a line that rises with the rank. All rows up to the last
# one below the line are alarms.

figure, axes = plt.subplots(
    1, 2, figsize=(7, 4.2), sharey=True, layout="constrained"
)
for ax, (name, (p_values, is_anomaly)) in zip(
    axes, batches.items(), strict=True
):
    order = np.argsort(p_values, kind="stable")
    ranks = np.arange(1, len(order) + 1)
    for chosen, colour, label in (
        (~is_anomaly, "#9ec5e8", "normal row"),
        (is_anomaly, "#d55e00", "anomaly"),
    ):
        here = chosen[order]
        ax.scatter(
            ranks[here], p_values[order][here], s=12, color=colour, label=label
        )
    ax.plot(
        ranks,
        q * ranks / len(order),
        color="black",
        linewidth=1,
        label="q × rank / rows",
    )
    ax.axhline(
        0.01, color="black", linewidth=1, linestyle=":", label="alpha = 1 %"
    )
    n_alarms = np.sum(false_discovery_control(p_values) <= q)
    ax.axvspan(0.8, n_alarms, color="#d55e00", alpha=0.1, linewidth=0)
    ax.annotate(f"{n_alarms} alarms", (1, 0.5), color="#d55e00")
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(0.8, 1100),
        xlabel="rank of the p-value",
    )
    ax.set_title(name, fontsize=10)
axes[0].set_ylabel("p-value")
axes[0].legend(loc="lower right", fontsize=8, frameon=False)
plt.show()
