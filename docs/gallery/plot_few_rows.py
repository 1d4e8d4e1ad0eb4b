"""
What can thirty rows support?
=============================

With n normal rows to compare with, no p-value is below 1 / (n + 1). A smaller
alpha never raises an alarm, and rankad says so instead of staying silent for
ever.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from rankad import RankAD, rows_needed

rng = np.random.default_rng(0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    RankAD(alpha=0.01).fit(rng.normal(size=(30, 2)))
for warning in caught:
    print(warning.message)

# %%
# An alpha that is possible is not yet one that is met: the threshold comes
# from the few rows there are, and the realised rate may be well above or
# below. Here one detector is calibrated a hundred times at alpha = 10 %, each
# time with other rows. ``rows_needed`` says how many calibration rows keep the
# rate at or below alpha plus a tolerance, 19 times in 20.

detector, fresh = (
    RankAD(alpha=0.1).fit(rng.normal(size=(500, 2))),
    rng.normal(size=(20_000, 2)),
)
scores = detector.score_samples(fresh)
rates = {}
for n in (30, 100, 300, 1000):
    thresholds = [
        detector.calibrate(rng.normal(size=(n, 2))).offset_ for _ in range(100)
    ]
    rates[n] = [np.mean(scores < threshold) for threshold in thresholds]
    low, high = np.quantile(rates[n], [0.05, 0.95])
    print(
        f"{n:4d} rows: mean rate {np.mean(rates[n]):5.1%}, "
        f"nine in ten between {low:5.1%} and {high:5.1%}"
    )
print(f"rows needed for 10 % and at most 12 %: {rows_needed(0.1, 0.05, 0.02)}")

# %%
# On the left the realised rates. On the right how small an alpha can be asked
# for, and how small a rate can be promised with 95 % confidence, which takes
# about three times as many rows.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(7, 3.8), layout="constrained"
)
for at, found in enumerate(rates.values()):
    left.scatter(
        at + rng.uniform(-0.25, 0.25, size=len(found)),
        found,
        s=8,
        color="#0072b2",
        alpha=0.5,
        linewidth=0,
    )
left.axhline(0.1, color="#d55e00", linewidth=1, label="asked for")
left.set_xticks(range(len(rates)), [f"{n:,}" for n in rates])
left.set(
    xlabel="calibration rows",
    ylabel="realised false-alarm rate",
    title="A hundred calibrations each",
)
left.yaxis.set_major_formatter("{x:.0%}")
left.legend(frameon=False)
n = np.geomspace(10, 10_000, 50).astype(int)
right.plot(n, 1 / (n + 1), color="#0072b2", label="smallest alpha with alarms")
right.plot(
    n,
    1 - 0.05 ** (1 / n),
    color="#d55e00",
    label="smallest rate that\ncan be promised",
)
right.axvline(30, color="black", linewidth=1, linestyle=":")
right.annotate(
    "30 rows", (30, 2e-4), xytext=(3, 0), textcoords="offset points", fontsize=8
)
right.set(
    xscale="log",
    yscale="log",
    xlabel="calibration rows",
    title="What rows support",
)
right.legend(loc="upper right", fontsize=8, frameon=False)
plt.show()
