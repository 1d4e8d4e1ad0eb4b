"""
A table as people keep it
=========================

Words, dates, missing cells and numbers with separators: ``TableDetector``
takes a table as it is, and says in words what it made of every column.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from rankad import TableDetector


def payments(n, rng):
    """Return n payments, as an export would write them: all cells are text."""
    channel = rng.choice(["shop", "web", "phone"], size=n, p=[0.6, 0.3, 0.1])
    usual = np.select([channel == "shop", channel == "web"], [30, 90], 400)
    minutes = rng.normal(14 * 60, 150, size=n).clip(7 * 60, 22 * 60).astype(int)
    return pl.DataFrame(
        {
            "payment": [f"P{number:06d}" for number in range(n)],
            "time": [
                f"2025-03-{rng.integers(10, 31)} {at // 60:02d}:{at % 60:02d}"
                for at in minutes
            ],
            "channel": channel,
            "country": rng.choice(
                ["DE", "AT", "CH"], size=n, p=[0.7, 0.2, 0.1]
            ),
            "amount": [
                f"{amount:,.2f}"
                for amount in usual * rng.lognormal(0, 0.4, size=n)
            ],
            "age": [
                None if rng.random() < 0.1 else f"{age:.0f}"
                for age in rng.normal(45, 12, n).clip(18, 90)
            ],
        }
    )


# %%
# Numbers that are stored as text could be categories, as zip codes are.
# Without ``numbers`` a warning would name the columns in doubt and what
# settles them.

detector = TableDetector(ids=["payment"], numbers=["amount", "age"], alpha=0.01)
detector.fit(payments(1500, np.random.default_rng(0)))
print(*detector.encoder_.describe(), sep="\n")

# %%
# Eight new payments. A missing age is nothing special, since ages were missing
# before. A missing amount is, and so is a channel that no normal row has.

new = pl.DataFrame(
    {
        "time": [
            f"2025-03-12 {at}"
            for at in (
                "13:05",
                "15:40",
                "11:20",
                "12:00",
                "02:15",
                "14:10",
                "10:30",
                "16:45",
            )
        ],
        "channel": [
            "shop",
            "web",
            "phone",
            "shop",
            "web",
            "web",
            "fax",
            "shop",
        ],
        "country": ["DE", "DE", "AT", "DE", "DE", "CH", "DE", "AT"],
        "amount": [
            "28.10",
            "74.00",
            "512.30",
            "402.00",
            "81.20",
            "3,900.00",
            "35.00",
            None,
        ],
        "age": ["51", None, "38", "44", "36", "47", "58", "29"],
    }
)
for cell in detector.strange_cells(new):
    print(f"row {cell.row}: {cell.column} is strange: {cell.what}")

explanations = detector.explain(new)
print(explanations)

# %%
# Nothing is odd about an amount of 402 or about a purchase in a shop; the two
# do not go together. The same as a picture: a cell is orange if the row would
# be no alarm with a usual value there, which stands below.

columns = new.columns
figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
blamed = np.zeros((len(new), len(columns)))
for line, row in enumerate(explanations):
    for reason in row.reasons:
        at = columns.index(reason.column)
        text = new[line, at] or "(missing)"
        if row.is_alarm and reason.p_value > row.alpha:
            blamed[line, at] = 1
            usual = (
                f"{reason.typical:.0f}"
                if isinstance(reason.typical, float)
                else str(reason.typical)
            )
            ax.annotate(
                f"usually {usual}",
                (at, line + 0.25),
                ha="center",
                va="center",
                fontsize=7,
            )
        ax.annotate(
            text, (at, line - 0.1), ha="center", va="center", fontsize=8
        )
ax.imshow(
    np.ma.masked_equal(blamed, 0), cmap="Oranges", vmin=0, vmax=2, aspect="auto"
)
ax.set_xticks(range(len(columns)), columns)
labels = [
    f"{'alarm' if row.is_alarm else 'normal'}, p = {row.p_value:.2g}"
    for row in explanations
]
ax.set_yticks(range(len(new)), labels, fontsize=9)
ax.hlines(
    np.arange(len(new) - 1) + 0.5,
    -0.5,
    len(columns) - 0.5,
    color="0.8",
    linewidth=0.8,
)
ax.tick_params(
    length=0, top=True, labeltop=True, bottom=False, labelbottom=False
)
ax.spines[:].set_visible(False)
plt.show()
