"""
From ranks to p-values, stage by stage
======================================

The method of Root, Saligrama and Qian in one picture. Every normal row gets a
rank from its nearest neighbours: the sparser its place, the lower. A kernel
RankSVM learns a smooth score that orders rows like these ranks. Comparing a new
row's score with those of normal rows that were held out gives its p-value.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr

from rankad import RankAD

rng = np.random.default_rng(0)
thin, dense = (
    rng.normal((-1.5, 0), (1.6, 1.2), size=(600, 2)),
    rng.normal((3, 1.2), (0.45, 0.7), size=(1000, 2)),
)
normal = np.vstack([thin, dense])

# %%
# The default detector lets two more parts vote; here is RankSVM alone, with a
# kernel twice as wide as by default. It is told only which of two rows ranks
# higher, not by how much.

detector = RankAD(near_field=False, n_components=0, bandwidth="2 D_K").fit(
    normal
)
rows, ranks = normal[detector.training_rows_], detector.ranks_
scores = detector.score_samples(rows)
print(f"each rank is from {detector.n_neighbors_} neighbours")
print(f"rank correlation with scores: {spearmanr(ranks, scores).statistic:.3f}")

# %%
# What the score is good for: it is smooth where ranks of single rows jump, and
# it is a sum over a fixed number of landmarks, so that new rows are scored
# fast, however many normal rows there were.

print(f"{len(rows)} rows, {len(detector.landmarks_)} landmarks")

xs, ys = np.linspace(-7, 6.5, 160), np.linspace(-5, 5, 140)
grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
score_map = detector.score_samples(grid).reshape(140, 160)
p_map = detector.p_values(grid).reshape(140, 160)

figure, axes = plt.subplots(2, 2, figsize=(7, 6.2), layout="constrained")
(first, second), (third, fourth) = axes
points = first.scatter(*rows.T, c=ranks, s=8, cmap="viridis")
first.set_title("1. Ranks from neighbours")
figure.colorbar(points, ax=first, label="rank")
second.scatter(ranks, scores, s=5, color="#0072b2", alpha=0.5, linewidth=0)
second.set(
    xlabel="rank", ylabel="score", title="2. The score orders rows like ranks"
)
filled = third.contourf(
    xs,
    ys,
    score_map,
    levels=np.linspace(scores.min() - 1, scores.max(), 20),
    extend="min",
)
third.set_title("3. The learned score")
figure.colorbar(filled, ax=third, label="score", format="{x:.1f}")
levels = [0, 0.01, 0.05, 0.2, 0.5, 1]
blues = ["#ffffff", "#deebf7", "#9ecae1", "#4292c6", "#08519c"]
shaded = fourth.contourf(xs, ys, p_map, levels=levels, colors=blues)
fourth.set_title("4. P-values of new rows")
figure.colorbar(
    shaded, ax=fourth, label="p-value", spacing="uniform", format="{x:g}"
)
for ax in (first, third, fourth):
    ax.set(xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]), xticks=[], yticks=[])
plt.show()
