"""Example tables: readings of a pump, normal ones and new ones with a few planted anomalies."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankad._base.files import naming

_MODES, _SPEEDS = ("steady", "eco", "boost"), {"steady": 1450.0, "eco": 1100.0, "boost": 1800.0}

Row = dict[str, Any]


class Planted(NamedTuple):
    """A planted anomaly; the first row is 1."""

    row: int
    what: str


class Example(NamedTuple):
    """Normal rows, new rows, and the anomalies among these."""

    normal: list[Row]
    new: list[Row]
    planted: list[Planted]


def make_example(n_normal: int = 2_000, n_new: int = 500, seed: int = 0) -> Example:
    """Simulate a pump: speed sets flow and pressure, both set power, and power warms the bearing.

    Some anomalies are out of range; others, as power that does not fit flow and pressure, show in no single
    column.
    """
    rng = np.random.default_rng(seed)
    normal = [_reading(rng, f"R{at:05d}") for at in range(1, n_normal + 1)]
    new = [_reading(rng, f"R{at:05d}") for at in range(n_normal + 1, n_normal + n_new + 1)]
    planted = []
    places = np.sort(rng.choice(n_new, size=len(_FAULTS), replace=False)).tolist()
    for at, number in zip(places, rng.permutation(len(_FAULTS)).tolist(), strict=True):
        fault = list(_FAULTS)[number]
        new[at] = _faulty(rng, new[at]["reading"], fault)
        planted.append(Planted(at + 1, fault))
    return Example(normal, new, planted)


def _reading(rng: np.random.Generator, name: str, mode: str | None = None) -> Row:
    mode = mode or str(rng.choice(_MODES, p=(0.6, 0.25, 0.15)))
    speed = rng.normal(_SPEEDS[mode], 40.0)
    opened = bool(rng.random() < 0.9)
    flow = speed / 1450 * (42.0 if opened else 18.0) * rng.normal(1.0, 0.03)
    pressure = (speed / 1450) ** 2 * (6.5 if opened else 8.2) * rng.normal(1.0, 0.02)
    power = flow * pressure / 36 / 0.7 * rng.normal(1.0, 0.03)
    bearing = 31.0 + 2.1 * power + rng.normal(0.0, 1.2)
    vibration = 1.1 * (speed / 1450) ** 1.5 * np.exp(rng.normal(0.0, 0.12))
    missing = rng.random() < 0.02
    return {
        "reading": name,
        "mode": mode,
        "valve_open": "true" if opened else "false",
        "speed_rpm": round(float(speed)),
        "flow_m3h": round(float(flow), 2),
        "pressure_bar": round(float(pressure), 2),
        "power_kw": round(float(power), 2),
        "bearing_c": round(float(bearing), 1),
        "vibration_mms": None if missing else round(float(vibration), 2),
    }


def _worn(row: Row) -> Row:
    power = 2.2 * row["power_kw"]
    return {"power_kw": round(power, 2), "bearing_c": round(31.0 + 2.1 * power, 1)}


# Each fault with the cells that it changes.
_FAULTS: dict[str, Callable[[Row], Row]] = {
    "worn impeller: power too high for its flow and pressure, though usual by itself": _worn,
    "blocked pipe: flow too low for its speed, though usual by itself": lambda row: {
        "flow_m3h": round(0.75 * row["flow_m3h"], 2)
    },
    "valve said to be closed, but water flows as if it were open": lambda row: {"valve_open": "false"},
    "vibration far out of range": lambda row: {"vibration_mms": 9.4},
    "bearing too hot for the load": lambda row: {"bearing_c": round(row["bearing_c"] + 21, 1)},
    "a mode never seen before": lambda row: {"mode": "bypass"},
    "the pressure sensor sends nothing": lambda row: {"pressure_bar": None},
}


def _faulty(rng: np.random.Generator, name: str, fault: str) -> Row:
    change = _FAULTS[fault]
    mode = "eco" if change is _worn else "steady"
    row = _reading(rng, name, mode)
    while row["valve_open"] == "false" or row["vibration_mms"] is None:
        row = _reading(rng, name, mode)
    return row | change(row)


def as_csv(rows: Sequence[Row]) -> str:
    """Return rows as CSV; a missing value is empty."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV."""
    with naming(path):
        path.write_text(as_csv(rows), encoding="utf-8", newline="")
