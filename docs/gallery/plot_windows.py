"""
Windows of a time series as rows
================================

A detector takes rows. Cut a signal into windows, and each window is a row:
what is normal is then the shape of a whole stretch, not of a single value.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankad import RankAD

LENGTH = 40


def beats(n, rng):
    """Return n heart beats, made up of two waves, a spike and noise."""
    t = np.linspace(0, 1, LENGTH, endpoint=False)
    height, shift = (
        rng.normal(1, 0.06, size=(n, 1)),
        rng.normal(0, 0.008, size=(n, 1)),
    )
    waves = ((0.2, 0.25, 0.05), (1.2, 0.45, 0.02), (0.35, 0.7, 0.07))
    beat = sum(
        size * np.exp(-(((t - shift - at) / width) ** 2) / 2)
        for size, at, width in waves
    )
    return height * beat + rng.normal(0, 0.04, size=(n, LENGTH))


# %%
# Learn from a stretch that is known to be normal. Then comes a new stretch
# with three odd beats: one without its spike, one with its last wave upside
# down, and one that comes too late.

rng = np.random.default_rng(0)
detector = RankAD(alpha=0.01).fit(beats(1000, rng))
new = beats(40, rng)
odd = {"no spike": 8, "wave upside down": 20, "too late": 31}
new[8, 14:22] = new[8, 10:14].mean()
new[20, 22:36] *= -0.5
new[31] = np.roll(new[31], 4)
p_values = detector.p_values(new)
print("odd beats:    ", list(odd.values()))
print("alarms at 1 %:", np.flatnonzero(p_values <= 0.01).tolist())

# %%
# A warning. The promise of a rate is for rows that are independent. Windows
# that overlap are not: one odd sample lies in many of them, and alarms come in
# runs. Here are windows cut at every sample, of one stretch that is normal
# throughout: false alarms stick together. Cut windows that do not overlap, or
# count a run as one alarm.

signal = beats(60, rng).ravel()
overlapping = np.lib.stride_tricks.sliding_window_view(signal, LENGTH)
sliding = RankAD(alpha=0.01).fit(
    np.lib.stride_tricks.sliding_window_view(beats(60, rng).ravel(), LENGTH)
)
alarms = sliding.predict(overlapping) == -1
n_runs = np.sum(np.diff(alarms.astype(int), prepend=0) == 1)
print(
    f"{len(overlapping)} overlapping windows, "
    f"{alarms.sum()} false alarms in {n_runs} runs"
)

# %%
# The new stretch, with the windows that are alarms.

figure, axes = plt.subplots(
    4, 1, figsize=(7, 5.4), sharey=True, layout="constrained"
)
for line, ax in enumerate(axes):
    for beat in range(10 * line, 10 * line + 10):
        at = np.arange(LENGTH) + LENGTH * (beat % 10)
        is_alarm = p_values[beat] <= detector.alpha
        ax.plot(
            at,
            new[beat],
            color="#d55e00" if is_alarm else "#0072b2",
            linewidth=1.2,
        )
        if is_alarm:
            ax.axvspan(
                at[0], at[-1] + 1, color="#d55e00", alpha=0.12, linewidth=0
            )
            said = next(
                (name for name, which in odd.items() if which == beat),
                "false alarm",
            )
            ax.annotate(
                f"beat {beat}\n{said}",
                (at[0] + 1, 2.1),
                fontsize=7,
                color="#d55e00",
                va="top",
            )
    ax.set(xticks=[], yticks=[], xlim=(0, 10 * LENGTH), ylim=(-0.3, 2.2))
    ax.spines[["top", "right", "bottom"]].set_visible(False)
axes[0].set_title("Forty beats; orange windows are alarms at 1 %")
axes[-1].set_xlabel("time")
plt.show()
