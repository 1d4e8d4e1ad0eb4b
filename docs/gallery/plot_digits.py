"""
The oddest handwritten digits
=============================

There is one table, and nobody vouches for its rows: digits that people wrote
by hand, eight by eight pixels each. ``fit_p_values`` judges every row by
models that have not seen it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from rankad import RankAD

digits = load_digits()
pixels = digits.data

# %%
# Each digit is judged among those that are meant to be the same: how odd is
# this 7 among all sevens? The p-value is the place of the row among them, the
# least normal first. No labels of odd digits are needed, and no guess of how
# many there are.

p_values = np.empty(len(pixels))
for digit in range(10):
    same = digits.target == digit
    p_values[same] = RankAD().fit_p_values(pixels[same])
print(f"{np.sum(p_values <= 0.02)} of {len(pixels)} digits are alarms at 2 %")

# %%
# Beside the most usual ones of each kind are the oddest. A p-value from a
# single table says that a row is among the oddest, not that it is wrong:
# whether these are slips of the pen is for you to judge.

figure = plt.figure(figsize=(7, 6.2))
panels = figure.subfigures(1, 2)
for panel, name, colours in zip(
    panels, ("most usual", "oddest"), ("Greys", "Oranges"), strict=True
):
    axes = panel.subplots(10, 6, gridspec_kw={"wspace": 0.1, "hspace": 0.1})
    panel.subplots_adjust(left=0.06, right=0.94, bottom=0.02, top=0.93)
    panel.suptitle(name)
    for digit, line in enumerate(axes):
        same = np.flatnonzero(digits.target == digit)
        order = same[np.argsort(p_values[same], kind="stable")]
        for ax, row in zip(
            line, order[:6] if name == "oddest" else order[:-7:-1], strict=True
        ):
            ax.imshow(digits.images[row], cmap=colours, aspect="auto")
            ax.axis("off")
plt.show()
