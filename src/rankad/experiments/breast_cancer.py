"""The main job on real rows: fit on benign tumours, keep the false-alarm rate, catch malignant ones.

Run as ``python -m rankad.experiments.breast_cancer``. The rows are the breast cancer data that come with
scikit-learn. No label takes part in fitting; the labels only show afterwards how it went.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binomtest
from sklearn.datasets import load_breast_cancer

from rankad import RankAD
from rankad._base.arrays import Floats
from rankad.experiments.pictures import save

ALPHAS = (0.01, 0.02, 0.05, 0.10, 0.20)
_BLUE, _RED = "#1f5f99", "#c0392b"


class Outcome(NamedTuple):
    """What one alpha led to, on rows that took no part in fitting."""

    alpha: float
    false_alarms: int
    n_nominal: int
    low: float
    high: float
    caught: float

    @property
    def rate(self) -> float:
        """The false-alarm rate obtained."""
        return self.false_alarms / self.n_nominal


def outcomes(nominal: Floats, anomalous: Floats, alphas: Sequence[float] = ALPHAS) -> list[Outcome]:
    """Compare p-values of held-out nominal and of anomalous rows with each alpha.

    The interval is Clopper and Pearson's, 95 %, for the false-alarm rate.
    """
    rows = []
    for alpha in alphas:
        alarms, caught = int((nominal <= alpha).sum()), float((anomalous <= alpha).mean())
        interval = binomtest(alarms, nominal.size).proportion_ci(0.95, method="exact")
        rows.append(Outcome(alpha, alarms, nominal.size, interval.low, interval.high, caught))
    return rows


def draw(nominal: Floats, anomalous: Floats, path: Path) -> None:
    """Draw false alarms obtained against asked for, and the p-values of both kinds of rows."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    alphas = np.linspace(0.005, 0.5, 100)
    table = outcomes(nominal, anomalous, list(alphas))
    low, high = [row.low for row in table], [row.high for row in table]
    band = "95 % confidence interval"
    left.fill_between(alphas, low, high, color="#9ec5e8", alpha=0.5, linewidth=0, label=band)
    left.plot(alphas, [row.rate for row in table], color=_BLUE, label="held-out benign")
    left.plot([0, 0.5], [0, 0.5], color="0.4", linestyle="--", linewidth=1, label="as asked")
    left.plot(alphas, [row.caught for row in table], color=_RED, label="malignant caught")
    left.set(
        xlabel="false-alarm rate asked for (alpha)",
        ylabel="share of rows with p <= alpha",
        title="You choose the false-alarm rate",
        xlim=(0, 0.5),
        ylim=(0, 1.01),
    )
    left.legend(loc="upper right", bbox_to_anchor=(1.0, 0.88), frameon=False)

    for values, colour, name in ((nominal, _BLUE, "held-out benign"), (anomalous, _RED, "malignant")):
        weights, label = np.full(values.size, 1 / values.size), f"{name} ({values.size} rows)"
        right.hist(values, np.linspace(0, 1, 21), weights=weights, color=colour, alpha=0.6, label=label)
    right.axhline(1 / 20, color="0.4", linestyle="--", linewidth=1, label="uniform")
    right.set(xlabel="p-value", ylabel="share of rows", title="p-values of rows never seen", xlim=(0, 1))
    right.legend(loc="upper right", frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, print the table, write the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m rankad.experiments.breast_cancer", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--out", type=Path, default=Path("demo.png"), help="where to write the picture")
    out: Path = parser.parse_args(arguments).out
    if not out.parent.is_dir():
        parser.error(f"--out {out}: there is no folder {out.parent}; create it first, or name another")

    X, y = load_breast_cancer(return_X_y=True)
    benign, malignant = X[y == 1], X[y == 0]
    order = np.random.default_rng(0).permutation(len(benign))
    half = len(benign) // 2
    train, held_out = benign[order[:half]], benign[order[half:]]
    print(f"Breast cancer data, {X.shape[1]} columns. Fitting RankAD on {half} benign rows ...", flush=True)
    detector = RankAD(random_state=0, verbose=True).fit(train)
    nominal, anomalous = detector.p_values(held_out), detector.p_values(malignant)

    print(f"\nOn {len(held_out)} benign rows held out and {len(malignant)} malignant rows:\n")
    print("  alarms asked for   false alarms obtained   95 % interval    malignant caught")
    for row in outcomes(nominal, anomalous):
        print(
            f"  {row.alpha:16.0%}   {row.rate:14.1%} ({row.false_alarms:2d})"
            f"     {row.low:5.1%} to {row.high:5.1%}   {row.caught:16.1%}"
        )
    promise = detector.false_alarm_bound(0.05, 0.05)
    print(
        f"\nAt alpha = 5 %, the realised rate stays below {promise.bound:.1%} with 95 % probability "
        f"({'exact' if promise.exact else 'approximate'})."
    )
    draw(nominal, anomalous, out)
    print(f"Picture: {out}")
    print("To move alpha yourself, on a page with bundled tables: rankad serve --demo")


if __name__ == "__main__":
    main()
