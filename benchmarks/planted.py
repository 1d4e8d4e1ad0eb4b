"""``python -m benchmarks.planted``: whether explanations name the columns in which anomalies were planted.

Nominal rows of every data set get one or two columns shifted by 6 to 10 standard deviations. A row counts
where exactly the shifted columns are the first reasons: of those that are alarms, and of all. Time is that of
the processor.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankad import RankAD
from rankad._base.arrays import Floats, Ints

_MOST_ROWS, _TESTED = 2_000, 200


class Planted(NamedTuple):
    """Rows with shifted columns, and which."""

    rows: Floats
    columns: Ints


def plant(rows: Floats, deviations: Floats, n_columns: int, seed: int) -> Planted:
    """Shift columns drawn at random among those that vary."""
    rng = np.random.default_rng(seed)
    varied, shifted = np.flatnonzero(deviations > 0), rows.copy()
    columns = np.array([rng.choice(varied, n_columns, replace=False) for _ in rows])
    shifts = rng.choice([-1, 1], columns.shape) * rng.uniform(6, 10, columns.shape)
    shifted[np.arange(len(rows))[:, None], columns] += shifts * deviations[columns]
    return Planted(shifted, columns)


def main() -> None:
    """Print a line for each data set and number of columns."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("RANKAD_DATA"), help="folder of .npz files"
    )
    folder = parser.parse_args().data
    if folder is None:
        parser.error("name the folder of the data sets by --data or RANKAD_DATA.")
    titles = ("rows", "columns", "shifted", "alarms", "named", "of all", "s/1000")
    print(f"{'set':16}", *(f"{title:>7}" for title in titles))
    for path in sorted(Path(folder).glob("*.npz")):
        stored = np.load(path)
        nominal = stored["X"][stored["y"] == 0].astype(np.float64)
        nominal = nominal[np.random.default_rng(0).permutation(len(nominal))]
        tested = min(_TESTED, len(nominal) // 3)
        n = min(_MOST_ROWS, len(nominal) - tested)
        detector = RankAD(random_state=0).fit(nominal[:n])
        for n_columns in (1, 2):
            rows, columns = plant(nominal[n : n + tested], nominal[:n].std(axis=0), n_columns, 1)
            begin = time.process_time()
            found = detector.explain(rows)
            taken = time.process_time() - begin
            alarms = np.array([e.p_value <= detector.alpha for e in found])
            named = np.array(
                [
                    {reason.column for reason in e.reasons[:n_columns]} == set(of)
                    for e, of in zip(found, columns.tolist(), strict=True)
                ]
            )
            print(
                f"{path.stem:16} {n:7} {rows.shape[1]:7} {n_columns:7} {alarms.mean():7.1%} "
                f"{named[alarms].mean():7.1%} {named.mean():7.1%} {1000 * taken / len(rows):7.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
