"""``python -m benchmarks.faults``: bad files, kills, signals, forks and full disks; what fails is listed."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults import disks, forks, kills, model_files, outputs, page, signals, tables
from benchmarks.faults.bench import Bench, Case, Result, run_cases

__all__ = ["KINDS", "main"]

KINDS = {module.KIND: module.cases for module in (model_files, tables, kills, signals, forks, disks, outputs)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the battery, or a part of it; return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument(
        "--out", type=Path, help="folder for faults.md and faults.json; none are written if not given"
    )
    parser.add_argument("--jobs", type=int, default=1, help="cases that run at once")
    parser.add_argument("--kind", choices=tuple(KINDS), action="append", help="these kinds alone; repeatable")
    parser.add_argument("--case", action="append", help="these cases alone, as 'kind: name'; repeatable")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th case of a kind")
    given = parser.parse_args(arguments)
    part = bool(given.kind or given.case or given.every > 1)
    # A part of the battery updates a page; the whole replaces it.
    earlier = page.read(given.out) if part and given.out is not None else []
    results: list[Result] = []
    # Beside the system's own temporary files, on a real disk where there is one.
    with tempfile.TemporaryDirectory(prefix="rankad-faults-") as folder:
        bench = Bench(Path(folder), given.jobs)
        try:
            for kind, found in _chosen(given.kind, given.case, given.every).items():
                results += run_cases(found, bench, f"faults, {kind}")
                if given.out is not None:
                    # After every kind, so that a run that is interrupted has something to show.
                    given.out.mkdir(parents=True, exist_ok=True)
                    page.write(given.out, page.merged(earlier, results))
        finally:
            bench.close()
    if given.case:
        _tell(results)
    print(page.summary(results))
    short = [] if part else page.too_few(results)
    for line in short:
        print(f"too few, {line}")
    return int(bool(short) or any(result.faults for result in results))


def _chosen(kinds: list[str] | None, names: list[str] | None, every: int) -> dict[str, list[Case]]:
    if names:
        kinds = [kind for kind in KINDS if any(name.startswith(f"{kind}: ") for name in names)]
    found = {}
    for kind in kinds or KINDS:
        cases = KINDS[kind]()
        found[kind] = [case for case in cases if case.label in names] if names else cases[::every]
    missing = set(names or ()) - {case.label for cases in found.values() for case in cases}
    if missing:
        sys.exit(f"there is no case {sorted(missing)[0]!r}")
    return found


def _tell(results: Sequence[Result]) -> None:
    for result in results:
        print(f"{result.kind}: {result.name}: {'; '.join(result.faults) or result.skipped or 'passed'}")
        for line in result.said:
            print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
