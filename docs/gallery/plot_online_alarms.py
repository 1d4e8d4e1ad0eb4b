"""
Alarms of a stream, few of them false
=====================================

Rows come in batches, for ever, and each decision is final. At a fixed alpha,
false alarms keep coming at the same pace whether or not anything is wrong.
``OnlineAlarms`` instead keeps the expected share of false ones among all
alarms so far at q or below. It needs the extra ``online``: ``pip install
'rankad[online]'``.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankad import OnlineAlarms, RankAD

rng = np.random.default_rng(1)
detector = (
    RankAD(alpha=0.01)
    .fit(rng.normal(size=(1000, 3)))
    .calibrate(rng.normal(size=(100_000, 3)))
)

# %%
# Sixty batches of 200 rows. Most are normal throughout. In every sixth batch,
# one row in ten is an anomaly.

batches, truths = [], []
for number in range(60):
    is_anomaly = (rng.random(200) < 0.1) & (number % 6 == 5)
    batches.append(rng.normal(size=(200, 3)) + 4.5 * is_anomaly[:, None])
    truths.append(is_anomaly)

online = OnlineAlarms(
    0.1, n_calibration=detector.calibration_.scores.size, method="batch"
)
alarms = {"alpha = 1 %": [], "online, q = 10 %": []}
for batch in batches:
    p_values = detector.p_values(batch)
    alarms["alpha = 1 %"].append(p_values <= 0.01)
    alarms["online, q = 10 %"].append(online.update(p_values))

is_anomaly = np.concatenate(truths)
for name, each in alarms.items():
    raised = np.concatenate(each)
    print(
        f"{name:18s} {raised.sum():4d} alarms, "
        f"{np.sum(raised & ~is_anomaly):3d} of them false, "
        f"{np.sum(raised & is_anomaly)} of {is_anomaly.sum()} anomalies caught"
    )

# %%
# Alarms so far, the false ones shaded. The bound is on the mean over many
# streams. It is kept with calibration rows that had no part in training. Give
# it very many: no p-value is below 1 / (their number + 1), and in quiet times
# the rule asks for smaller and smaller ones, until no row can raise an alarm.

figure, axes = plt.subplots(
    1, 2, figsize=(7, 3.8), sharey=True, layout="constrained"
)
at = np.arange(1, len(is_anomaly) + 1) / 200
for ax, (name, each) in zip(axes, alarms.items(), strict=True):
    raised = np.concatenate(each)
    ax.plot(at, np.cumsum(raised), color="#0072b2", label="alarms")
    ax.fill_between(
        at,
        np.cumsum(raised & ~is_anomaly),
        color="#d55e00",
        alpha=0.6,
        linewidth=0,
        label="false ones",
    )
    ax.plot(
        at,
        np.cumsum(is_anomaly),
        color="black",
        linewidth=1,
        linestyle=":",
        label="anomalies",
    )
    ax.set(title=name, xlabel="batches seen")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("rows so far")
axes[0].legend(loc="upper left", frameon=False)
plt.show()
