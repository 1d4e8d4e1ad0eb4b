"""
Why is this row an alarm, and what would help?
==============================================

An alarm that nobody understands is ignored. ``explain`` names the columns that
make a row abnormal, what normal rows near it have instead, and a smallest
change that would make it normal.
"""

import matplotlib.pyplot as plt
import polars as pl

from rankad import TableDetector
from rankad.cli.example import make_example

example = make_example()
detector = TableDetector(ids=["reading"], alpha=0.01).fit(
    pl.DataFrame(example.normal)
)
for planted in example.planted:
    print(f"row {planted.row - 1}: {planted.what}")

# %%
# One of the planted anomalies is a worn impeller. Its power would be usual at
# full speed, but is too high for the flow and pressure of this reading, and it
# warms the bearing.

new = pl.DataFrame(example.new)
worn = next(each.row - 1 for each in example.planted if "impeller" in each.what)
explanation = detector.explain(new[worn])[0]
print(explanation)

# %%
# The same as a picture. On the left, each column beside what the ten normal
# rows nearest in all other columns have there: the bar is where eight of them
# lie. On the right, the p-value as the change is made, column by column: with
# all of it, the row is no alarm.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(7, 3.6), width_ratios=[1, 1], layout="constrained"
)
numbers = [reason for reason in explanation.reasons if reason.low is not None][
    ::-1
]
for at, reason in enumerate(numbers):
    spread = reason.high - reason.low
    left.barh(at, 1, left=-0.5, height=0.5, color="#9ec5e8")
    left.plot(
        (reason.value - (reason.low + reason.high) / 2) / spread,
        at,
        "o",
        color="#d55e00",
    )
left.set_yticks(
    range(len(numbers)),
    [f"{each.column} = {each.value:g}" for each in numbers],
    fontsize=8,
)
left.set(
    xlabel="distance from normal rows near by,\nin widths of their range",
    title="What the row has",
)

changed, steps = new[worn], [("as it is", explanation.p_value)]
for move in explanation.change.moves:
    changed = changed.with_columns(pl.lit(move.after).alias(move.column))
    steps.append(
        (
            f"+ {move.column}\n{move.before:g} → {move.after:g}",
            detector.p_values(changed)[0],
        )
    )
labels, p_values = zip(*steps, strict=True)
colours = ["#0072b2" if p > explanation.alpha else "#d55e00" for p in p_values]
right.bar(range(len(steps)), p_values, color=colours, width=0.6)
right.axhline(explanation.alpha, color="black", linewidth=1, linestyle="--")
right.annotate(
    "alarm below alpha",
    (-0.4, explanation.alpha),
    xytext=(0, 3),
    textcoords="offset points",
    fontsize=8,
)
right.set_xticks(range(len(steps)), labels, fontsize=7)
right.set(ylabel="p-value", title="What would help")
right.margins(y=0.15)
plt.show()
