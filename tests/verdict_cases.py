"""Tables with one fault planted in a known column, for the tests of the verdict."""

from collections.abc import Callable
from inspect import signature
from typing import NamedTuple

import numpy as np
import polars as pl

from rankad import RankAD, TableDetector
from rankad.tables.judging import Watch

QUICK = {"landmarks": 20, "scaling": "standard", "bandwidth": "D_K", "C": 0.1, "random_state": 0}
N_NORMAL, N_NEW = 600, 400


def machine(n, rng, first=0):
    """Readings of a machine: columns that depend on one another, categories, gaps, a constant, nothing."""
    mode = rng.choice(["steady", "eco", "boost"], size=n, p=[0.6, 0.25, 0.15])
    speed = np.select([mode == "eco", mode == "boost"], [1100.0, 1800.0], 1450.0) + rng.normal(0, 40, n)
    flow = speed / 1450 * 42 * rng.normal(1, 0.03, n)
    power = flow * rng.normal(0.16, 0.005, n)
    missing = rng.random(n) < 0.03
    return pl.DataFrame(
        {
            "mode": mode,
            "site": rng.choice(["north", "south", "west"], size=n, p=[0.5, 0.3, 0.2]),
            "open": rng.random(n) < 0.8,
            "speed": np.round(speed),
            "flow": flow,
            "power": power,
            "heat": 31 + 2.1 * power + rng.normal(0, 1.2, n),
            "shake": np.where(missing, np.nan, np.exp(rng.normal(0.1, 0.2, n))),
            "humidity": rng.normal(55, 8, n),
            "firmware": np.full(n, 3.0),
            "comment": pl.Series([None] * n, dtype=pl.String),
        }
    ).with_columns(pl.col("shake").fill_nan(None))


def probes(n, rng, first=0):
    """Three probes of one temperature, and something else."""
    heat = rng.normal(60, 10, n)
    columns = {name: heat + rng.normal(0, 1, n) for name in ("left", "middle", "right")}
    return pl.DataFrame({**columns, "weight": rng.normal(size=n)})


def logged(n, rng, first=0):
    """The same with the time of each reading."""
    minutes = pl.Series("started", rng.integers(0, 400 * 1440, n))
    return machine(n, rng).with_columns(started=pl.datetime(2024, 1, 1) + pl.duration(minutes=minutes))


def counted(column):
    """The same with a column that goes on from row to row, of which `column(position)` makes the values."""

    def make(n, rng, first=0):
        return machine(n, rng).with_columns(pl.Series("number", column(np.arange(first, first + n))))

    return make


class Case(NamedTuple):
    """What is done to new rows, and which columns may be named first."""

    make: Callable
    spoil: Callable
    columns: tuple[str, ...]
    how: tuple[str, ...]


def change(**expressions):
    """Return what replaces columns by functions of what they were, and a generator."""

    def spoil(frame, rng):
        return frame.with_columns(
            [pl.Series(name, make(frame[name], rng)) for name, make in expressions.items()]
        )

    return spoil


def swap(first, second):
    def spoil(frame, rng):
        return frame.rename({first: second, second: first})

    return spoil


def nothing(frame, rng):
    return frame


def blanked(share):
    return lambda column, rng: column.set(pl.Series(rng.random(len(column)) < share), None)


epoch = 1_700_000_000
CASES = {
    "a counter goes on": Case(counted(lambda at: at + 1), nothing, ("number",), ("goes on",)),
    "an id in any order": Case(
        counted(lambda at: at * 7 + 10_000),
        lambda frame, rng: frame.with_columns(pl.Series("number", rng.permutation(frame["number"]))),
        ("number",),
        ("goes on",),
    ),
    "seconds since 1970": Case(
        counted(lambda at: epoch + 60 * at + at % 7), nothing, ("number",), ("goes on",)
    ),
    "milliseconds since 1970": Case(
        counted(lambda at: 1000 * epoch + 1013 * at), nothing, ("number",), ("goes on",)
    ),
    "thousand times": Case(machine, change(humidity=lambda c, rng: c * 1000), ("humidity",), ("scaled",)),
    "inches": Case(machine, change(flow=lambda c, rng: c / 25.4), ("flow",), ("scaled",)),
    "Fahrenheit": Case(machine, change(heat=lambda c, rng: 1.8 * c + 32), ("heat",), ("scaled",)),
    "another sign": Case(machine, change(humidity=lambda c, rng: -c), ("humidity",), ("scaled",)),
    "moved far": Case(machine, change(shake=lambda c, rng: c + 5), ("shake",), ("moved",)),
    "moved a little": Case(machine, change(humidity=lambda c, rng: c + 10), ("humidity",), ("moved",)),
    "moved within its range": Case(machine, change(heat=lambda c, rng: c + 8), ("heat",), ("moved",)),
    "stuck at a usual value": Case(
        machine, change(humidity=lambda c, rng: np.full(len(c), 55.0)), ("humidity",), ("constant",)
    ),
    "stuck at zero": Case(machine, change(heat=lambda c, rng: np.zeros(len(c))), ("heat",), ("constant",)),
    "renamed throughout": Case(
        machine, change(site=lambda c, rng: c.str.to_uppercase()), ("site",), ("strange",)
    ),
    "one category renamed": Case(
        machine, change(mode=lambda c, rng: c.str.replace("eco", "economy")), ("mode",), ("strange",)
    ),
    "other shares of categories": Case(
        machine,
        change(site=lambda c, rng: rng.choice(["north", "south", "west"], size=len(c), p=[0.1, 0.1, 0.8])),
        ("site",),
        ("category",),
    ),
    "true for false": Case(machine, change(open=lambda c, rng: ~c), ("open",), ("category",)),
    "numbers swapped": Case(machine, swap("flow", "heat"), ("flow", "heat"), ("swapped",)),
    "categories swapped": Case(machine, swap("mode", "site"), ("mode", "site"), ("swapped",)),
    "missing more often": Case(machine, change(shake=blanked(0.5)), ("shake",), ("missing",)),
    "missing at last": Case(machine, change(humidity=blanked(0.3)), ("humidity",), ("strange",)),
    "noisier": Case(
        machine, change(humidity=lambda c, rng: 55 + 5 * (c - 55)), ("humidity",), ("spread", "scaled")
    ),
    "shuffled": Case(probes, change(middle=lambda c, rng: rng.permutation(c)), ("middle",), ("together",)),
    "a constant changed": Case(
        machine, change(firmware=lambda c, rng: c + 1), ("firmware",), ("strange",)
    ),
    "an empty column filled": Case(
        machine, change(comment=lambda c, rng: np.full(len(c), "ok")), ("comment",), ("strange",)
    ),
    "without the time of day": Case(
        logged, change(started=lambda c, rng: c.dt.truncate("1d")), ("started",), ("midnight",)
    ),
    "saturated": Case(
        machine, change(humidity=lambda c, rng: c.clip(upper_bound=52.0)), ("humidity",), ("other",)
    ),
}  # fmt: skip


def fitted(make, rng, n=N_NORMAL, alpha=0.05, **given):
    """A detector fitted on nominal rows; columns that count rows are learned from as well."""
    frame = make(n, rng)
    told = {}
    if "numbers" in signature(TableDetector).parameters:
        told["numbers"] = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    return TableDetector(RankAD(alpha, **{**QUICK, **given}), **told).fit(frame)


def judged(detector, frame, alpha=None, batch=None):
    """The verdict on a table, read in batches."""
    watch = Watch(detector, detector.alpha if alpha is None else alpha)
    size = batch or max(frame.height, 1)
    for begin in range(0, frame.height, size):
        part = frame[begin : begin + size]
        watch.add(part, begin, detector.calibration_.p_values(detector.score_samples(part)))
    return watch.verdict()
