"""What ``rankad serve --demo`` serves: example models and tables, and somebody who sends rows."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from rankad.cli.example import make_example, write_table

# Rows that a pump sends now and then, most of the time normal ones.
_ROWS_SENT, _SECONDS_BETWEEN, _FAULTY_EVERY = 60, 4.0, 8


class Bundle(NamedTuple):
    """Files to serve."""

    models: list[Path]
    tables: list[Path]
    history: Path


@contextmanager
def example_folder(host: str, port: int) -> Iterator[Bundle]:
    """Write example tables, fit models, and send rows to the service; everything is gone afterwards."""
    import polars as pl

    from rankad import TableDetector
    from rankad.tables.frames import Untyped

    stop = threading.Event()
    with tempfile.TemporaryDirectory(prefix="rankad-demo-") as name:
        folder, example = Path(name), make_example()
        write_table(folder / "pump_new.csv", example.new)
        write_table(folder / "pump_normal.csv", example.normal)
        normal, new = geyser(600, 0), geyser(300, 1, odd=8)
        new.write_csv(folder / "geyser_new.csv")
        normal.write_csv(folder / "geyser_normal.csv")
        typer.echo("Learning from readings of a pump and from eruptions of a geyser ...", err=True)
        table = pl.read_csv(folder / "pump_normal.csv", infer_schema=False)
        TableDetector(ids=["reading"], alpha=0.01).fit(Untyped(table)).save(folder / "pump.rankad")
        TableDetector(alpha=0.02).fit(normal).save(folder / "geyser.rankad")
        if port:
            send = (stop, f"http://{'127.0.0.1' if host == 'localhost' else host}:{port}")
            threading.Thread(target=_send_rows, args=send, daemon=True).start()
        tables = ["pump_new.csv", "geyser_new.csv", "pump_normal.csv", "geyser_normal.csv"]
        try:
            yield Bundle(
                [folder / "pump.rankad", folder / "geyser.rankad"],
                [folder / each for each in tables],
                folder / "history.sqlite",
            )
        finally:
            stop.set()


def geyser(n: int, seed: int, odd: int = 0) -> Any:
    """Simulate eruptions of a geyser: short ones after short waits, long ones after long waits, and odd ones.

    >>> geyser(3, 0).columns
    ['lasted_min', 'waited_min']
    """
    import polars as pl

    rng = np.random.default_rng(seed)
    long = rng.random(n) < 0.64
    lasted = np.where(long, rng.normal(4.3, 0.4, n), rng.normal(2.0, 0.27, n))
    waited = np.where(long, 80 + 6 * (lasted - 4.3), 54 + 8 * (lasted - 2.0)) + rng.normal(0, 4.8, n)
    at = rng.choice(n, odd, replace=False)
    # Usual by themselves, but long after a short wait, or the other way round.
    waited[at] = 134 - waited[at] + rng.normal(0, 3, odd)
    return pl.DataFrame({"lasted_min": lasted.round(2), "waited_min": waited.round(1)})


def _send_rows(stop: threading.Event, address: str) -> None:
    """Send readings until the service stops."""
    from rankad.client import Client

    seed = 0
    while not stop.wait(_SECONDS_BETWEEN):
        seed += 1
        example = make_example(_ROWS_SENT, _ROWS_SENT, seed)
        rows = example.new if seed % _FAULTY_EVERY == 0 else example.normal
        try:
            with Client(address, "pump") as client:
                client.p_values(rows)
        except Exception:
            # Not up yet, or behind keys or TLS: the demo does without.
            continue
