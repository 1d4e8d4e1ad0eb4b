"""``python -m benchmarks.certificates``: how often each promise fails, on fresh data with known truth."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.certificates import drift, many, page, rates, shifts, volumes
from rankad.experiments.cells import plain, write_atomically

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certificates", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--fits", type=int, default=50, help="fits of cross-fitted detectors on each law")
    given = parser.parse_args(arguments)

    begin = time.process_time()
    given.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"repetitions": given.repetitions, "fits": given.fits}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        results["certificates"] = rates.split_certificates(given.repetitions)
        results["tied"] = rates.tied_certificates(given.repetitions)
        results["shifted"] = shifts.shifted(given.repetitions)
        print("certificates", round(time.process_time() - begin), flush=True)
        results["means"], results["counts"] = many.discoveries(given.repetitions)
        results["online"] = many.online(given.repetitions)
        print("discoveries", round(time.process_time() - begin), flush=True)
        results["drift"], results["delays"] = drift.drift(given.repetitions)
        print("drift", round(time.process_time() - begin), flush=True)
        results["true_volumes"], results["learned"] = volumes.of_the_true_score(), volumes.learned()
        results["kernel_alone"] = volumes.learned((2_000, 20_000), near_field=False, n_components=0)
        results["peers"], results["differences"] = volumes.peers(), volumes.symmetric_differences()
        print("volumes", round(time.process_time() - begin), flush=True)
        results["detectors"] = rates.detector_certificates(given.repetitions)
        results["detectors"] += rates.updated_certificates(given.repetitions)
        print("detectors", round(time.process_time() - begin), flush=True)
        results["cross_fit"] = rates.cross_fitted(given.fits) if given.fits else []
    results["seconds"] = time.process_time() - begin
    stored = {
        key: [{**one._asdict(), "holds": one.holds} if hasattr(one, "holds") else one for one in value]
        if isinstance(value, list)
        else value
        for key, value in results.items()
    }
    write_atomically(given.out / "certificates.json", json.dumps(plain(stored), indent=1) + "\n")
    page.write(given.out / "certificates.md", stored)


if __name__ == "__main__":
    main()
