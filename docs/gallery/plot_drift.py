"""
Notice that normal has drifted, and which columns did
=====================================================

A single alarm says that a row is odd. A drift alarm says that the source has
changed: rows are odd more often, or a little odder, than they should be. Here
the bearing of a pump wears slowly. Most single readings are still unremarkable
when the monitor speaks up.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from rankad import ColumnsDisplay, DriftDisplay, DriftMonitor, TableDetector
from rankad.cli.example import make_example

readings = pl.DataFrame(make_example(n_normal=3500).normal)
normal, stream = readings[:2000], readings[2000:]

# %%
# From the 600th reading of the stream on, the bearing gets warmer and the
# vibration stronger, a little more with each reading.

began = 600
wear = np.clip((np.arange(len(stream)) - began) / 600, 0, None)
stream = stream.with_columns(
    bearing_c=(stream["bearing_c"] + 4 * pl.Series(wear)).round(1),
    vibration_mms=(
        stream["vibration_mms"] * (1 + 0.35 * pl.Series(wear))
    ).round(2),
)

# %%
# The detector learns from readings of a pump that ran well. The monitor takes
# its p-values as they come. If nothing drifts, the probability that it *ever*
# raises a drift alarm of the kind "ever" is at most ``delta``, and those of
# the kind "run" are at least ``run_length`` rows apart on average. (For a
# detector with its default, cross-fitted calibration both are approximations.)

detector = TableDetector(ids=["reading"], alpha=0.01).fit(normal)
monitor = DriftMonitor.for_detector(detector, delta=0.01, run_length=10_000)
p_values = detector.p_values(stream)
for alarm in monitor.update(p_values):
    since = p_values[alarm.since - 1 : alarm.row]
    print(
        f"drift alarm '{alarm.by}' at row {alarm.row}: "
        f"it began at about row {alarm.since},"
    )
    print(
        f"  and since then {np.sum(since <= 0.01)} of {len(since)} rows "
        "were alarms at 1 %"
    )

# %%
# The upper picture shows the evidence, on a logarithmic scale, where 1 is a
# drift alarm. In the lower one are the columns that make later rows abnormal:
# the two that wear.

figure, (above, below) = plt.subplots(
    2, 1, figsize=(7, 6), height_ratios=[3, 2], layout="constrained"
)
DriftDisplay.from_p_values(
    DriftMonitor.for_detector(detector), p_values, ax=above
)
above.axvline(began, color="black", linewidth=1, linestyle=":")
above.annotate(
    "wear begins",
    (began, 1.04),
    xytext=(-4, 0),
    textcoords="offset points",
    ha="right",
    fontsize=8,
)
ColumnsDisplay.from_estimator(detector, stream[-400:], ax=below)
below.set_title("Why the last 400 rows raise alarms", fontsize=10)
plt.show()
