"""
Alarms at every rate, fitted once
=================================

Most detectors ask for a threshold, or for the share of anomalies, before they
fit. rankad gives every row a p-value: how unusual it is among normal rows. Any
false-alarm rate can be read off afterwards.

The normal rows are benign tumours from the breast cancer data of scikit-learn.
Malignant ones take no part in fitting.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from rankad import PValueDisplay, RankAD

rows, is_benign = load_breast_cancer(return_X_y=True, as_frame=True)
benign = rows[is_benign == 1].sample(frac=1, random_state=0)
malignant = rows[is_benign == 0]
normal, fresh = benign[:200], benign[200:]

# %%
# Fit once, on normal rows alone. Then ask for as many rates as you like:
# nothing is fitted again.

detector = RankAD().fit(normal)

for alpha in (0.01, 0.02, 0.05, 0.1, 0.2):
    detector.alpha = alpha
    false_alarms = np.mean(detector.predict(fresh) == -1)
    caught = np.mean(detector.predict(malignant) == -1)
    print(
        f"alpha {alpha:4.0%}: false alarms {false_alarms:5.1%}, "
        f"malignant caught {caught:5.1%}"
    )

# %%
# The same for all rates at once. The line is the share of rows that are
# alarms. If all rows are normal, it stays in the band nineteen times in twenty
# at each rate. Fresh benign tumours do, and malignant ones are far above it:
# they are not like the rows that the detector was fitted on.

figure, axes = plt.subplots(
    1, 2, figsize=(7, 3.8), sharey=True, layout="constrained"
)
tables = {"benign, not seen before": fresh, "malignant": malignant}
for ax, (name, table) in zip(axes, tables.items(), strict=True):
    PValueDisplay.from_estimator(
        detector, table, alpha=0.05, name="these rows", ax=ax
    )
    ax.set_title(f"{name} ({len(table)} rows)", fontsize=10)
axes[0].legend(loc="upper left", fontsize=7, frameon=False)
axes[1].legend().remove()
axes[1].set_ylabel("")
figure.suptitle("One fit, every false-alarm rate")
plt.show()
