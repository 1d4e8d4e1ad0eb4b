"""False alarms on fresh rows of tables with every kind of column: what was asked for, and what was obtained.

``python -m benchmarks.columns`` fits a `TableDetector` on nominal rows of each table and counts alarms among
fresh ones of the same law, many times over. Of 20,000 fresh rows the share of alarms has a binomial error,
and of n nominal rows that calibrate the rate itself varies from sample to sample (a Beta law); the band is
where the mean over repetitions lies with 99 % probability if the promise is true.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import norm

from rankad import RankAD, TableDetector
from rankad.tables import ColumnWarning, Untyped

ALPHAS = (0.1, 0.05, 0.01)
# A row left out counts for a third of an independent one: see `rankad.stages.calibration`.
WORTH = 1 / 3


class Law(NamedTuple):
    """A law of nominal rows: n rows of it, by a generator of random numbers."""

    name: str
    draw: Callable[[int, np.random.Generator], dict[str, object]]


def _numbers(n: int, rng: np.random.Generator) -> dict[str, object]:
    x = rng.normal(size=n)
    return {"x": x, "y": 0.8 * x + 0.6 * rng.normal(size=n), "amount": np.exp(rng.normal(3.0, 1.0, size=n))}


def text_law(n_words: int, power: float) -> Callable[[int, np.random.Generator], dict[str, object]]:
    """Return a law with a column of so many words, of which the r-th is as frequent as r to the -power."""
    weights = np.arange(1, n_words + 1) ** -power
    weights /= weights.sum()
    words = np.array([f"w{at}" for at in range(n_words)])

    def draw(n: int, rng: np.random.Generator) -> dict[str, object]:
        return _numbers(n, rng) | {"word": words[rng.choice(n_words, p=weights, size=n)]}

    return draw


def _dates(n: int, rng: np.random.Generator) -> dict[str, object]:
    # More by day than by night, more in the week than at its end, over a year and a half.
    minutes = rng.integers(0, 548 * 1440, size=4 * n + 100)
    hour, day = minutes % 1440 / 60, minutes // 1440 % 7
    kept = minutes[
        rng.random(minutes.size) < np.where((hour > 6) & (hour < 22), 0.9, 0.2) * np.where(day < 5, 1, 0.4)
    ]
    begin = datetime(2023, 1, 2)
    times = [begin + timedelta(minutes=int(minute)) for minute in kept[:n]]
    return _numbers(n, rng) | {"at": [f"{time:%d.%m.%Y %H:%M}" for time in times]}


def _codes(n: int, rng: np.random.Generator) -> dict[str, object]:
    status = rng.choice([200, 301, 404, 500, 503], p=[0.9, 0.05, 0.03, 0.015, 0.005], size=n)
    return _numbers(n, rng) | {"status": status, "grade": rng.integers(1, 7, size=n)}


def _missing(n: int, rng: np.random.Generator) -> dict[str, object]:
    cells = _numbers(n, rng)
    for name, share in (("x", 0.1), ("y", 0.003), ("amount", 0.5)):
        cells[name] = np.where(rng.random(n) < share, np.nan, np.asarray(cells[name], dtype=float))
    return cells


def _odd(n: int, rng: np.random.Generator) -> dict[str, object]:
    speed = [f"{value:.2f}".replace(".", ",") for value in rng.normal(70, 5, size=n)]
    cells = [
        word if rng.random() < 0.002 else text
        for word, text in zip(rng.choice(["ERR", "off"], size=n), speed, strict=True)
    ]
    return _numbers(n, rng) | {
        "speed": cells,
        "load": [f"{value:.1f}%" for value in 100 * rng.beta(4, 2, size=n)],
    }


def _all(n: int, rng: np.random.Generator) -> dict[str, object]:
    found: dict[str, object] = {}
    for draw in (_dates, _codes, _missing, _odd):
        found |= draw(n, rng)
    for n_words in (10, 100, 1_000, 10_000):
        found[f"word_{n_words}"] = text_law(n_words, 1.0)(n, rng)["word"]
    return found


LAWS = (
    Law("numbers", _numbers),
    *(Law(f"text of {v:,} words, even", text_law(v, 0.0)) for v in (10, 100, 1_000, 4_000, 10_000)),
    *(Law(f"text of {v:,} words, few frequent", text_law(v, 1.0)) for v in (10, 100, 1_000, 10_000)),
    Law("dates", _dates),
    Law("codes", _codes),
    Law("missing cells", _missing),
    Law("odd cells, commas, per cent", _odd),
    Law("all together", _all),
)


def as_text(cells: dict[str, object]) -> pl.DataFrame:
    """Return a table as CSV would have it: text throughout."""
    frame = pl.DataFrame({name: pl.Series(name, values) for name, values in cells.items()})
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None)).cast(pl.String)


def rates(law: Law, n: int, n_fresh: int, seed: int, n_jobs: int) -> list[float]:
    """Return the shares of fresh rows that are alarms, at each of `ALPHAS`."""
    rng = np.random.default_rng([seed, n])
    nominal, fresh = as_text(law.draw(n, rng)), as_text(law.draw(n_fresh, rng))
    detector = TableDetector(RankAD(random_state=0, n_jobs=n_jobs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        detector.fit(Untyped(nominal))
    p_values = detector.p_values(fresh)
    return [float((p_values <= alpha).mean()) for alpha in ALPHAS]


def band(alpha: float, n: int, n_fresh: int, repetitions: int) -> tuple[float, float]:
    """Return where the mean of rates lies with 99 % probability if each row alarms with probability alpha."""
    variance = alpha * (1 - alpha) * (1 / n_fresh + 1 / (WORTH * n)) / repetitions
    width = norm.ppf(0.995) * math.sqrt(variance)
    # p-values are multiples of 1 / (n + 1).
    return math.floor(alpha * (n + 1)) / (n + 1) - width, alpha + width


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 5_000])
    parser.add_argument("--fresh", type=int, default=20_000)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--laws", default="", help="only laws whose name has this in it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a JSON file for all rates")
    asked = parser.parse_args()
    results = []
    print(f"{'law':34} {'rows':>6} " + " ".join(f"{f'{alpha:.0%} (99 % band)':>22}" for alpha in ALPHAS))
    for law in (law for law in LAWS if asked.laws in law.name):
        for n in asked.rows:
            found = np.array(
                [rates(law, n, asked.fresh, seed, asked.jobs) for seed in range(asked.repetitions)]
            )
            cells = []
            for alpha, mean in zip(ALPHAS, found.mean(axis=0).tolist(), strict=True):
                low, high = band(alpha, n, asked.fresh, asked.repetitions)
                mark = " " if low <= mean <= high else "*"
                cells.append(f"{mean:7.2%}{mark}({low:.2%}-{high:.2%})")
            print(f"{law.name:34} {n:6,} " + " ".join(f"{cell:>22}" for cell in cells), flush=True)
            results.append({"law": law.name, "rows": n, "rates": found.tolist()})
    if asked.out:
        asked.out.write_text(
            json.dumps({"alphas": ALPHAS, "fresh": asked.fresh, "results": results}, indent=1)
        )


if __name__ == "__main__":
    main()
