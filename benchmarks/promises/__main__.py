"""``python -m benchmarks.promises``: false alarms asked for and obtained, on laws made up to break them."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.promises import cells, page, verdicts
from rankad.experiments.cells import CellStore, plain, write_atomically

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the battery; one that was interrupted goes on where it was."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.promises", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/promises"), help="folder of the results")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--detector", choices=tuple(cells.DETECTORS), action="append", help="these alone")
    given = parser.parse_args(arguments)
    begin = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / "cells"
    kept.mkdir(exist_ok=True)
    write_atomically(kept / ".gitignore", "*\n")
    records = cells.run(CellStore(kept), given.jobs, given.detector or tuple(cells.DETECTORS))
    judged, discoveries = verdicts.judge(records), verdicts.judge_discoveries(records)
    content = plain({"records": records, "verdicts": [one._asdict() for one in judged]})
    write_atomically(given.out / "promises.json", json.dumps(content, allow_nan=False) + "\n")
    page.write(given.out, judged, discoveries, time.monotonic() - begin)
    print(page.summary(judged, discoveries))


if __name__ == "__main__":
    main()
