"""Results to a page and a file."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults.bench import Result
from benchmarks.faults.judge import ALLOWANCE
from benchmarks.faults.process import SECONDS
from rankad.experiments.cells import versions, write_atomically

__all__ = ["LEAST", "merged", "read", "reproduction", "summary", "too_few", "write"]

# How many cases of each kind there must be at least.
LEAST = {
    "model files": 500,
    "tables": 200,
    "kills": 100,
    "signals": 50,
    "forks and threads": 20,
    "full disks": 30,
    "outputs and inputs": 30,
}
_LONGEST = 300


def reproduction(result: Result) -> str:
    """Return the line that runs a case again."""
    return f"python -m benchmarks.faults --case {shlex.quote(f'{result.kind}: {result.name}')}"


def too_few(results: Sequence[Result]) -> list[str]:
    """Return which kinds have too few cases that were run."""
    run = Counter(result.kind for result in results if not result.skipped)
    return [
        f"{kind}: {run[kind]} cases of at least {least}" for kind, least in LEAST.items() if run[kind] < least
    ]


def summary(results: Sequence[Result]) -> str:
    """Return the counts, one line for each kind."""
    lines = []
    for kind, counts in _counts(results).items():
        skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
        lines.append(f"{kind}: {counts['passed']} of {counts['run']} passed{skipped}")
    total = Counter[str]()
    for counts in _counts(results).values():
        total.update(counts)
    lines.append(f"in all: {total['passed']} of {total['run']} passed")
    return "\n".join(lines)


def _counts(results: Sequence[Result]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for result in results:
        counts = found.setdefault(result.kind, Counter())
        counts["skipped" if result.skipped else "run"] += 1
        counts["passed"] += not result.skipped and not result.faults
    return found


def write(folder: Path, results: Sequence[Result]) -> None:
    """Write faults.md and faults.json."""
    records = [{**result._asdict(), "reproduction": reproduction(result)} for result in results]
    content = {"versions": versions(), "results": records}
    write_atomically(folder / "faults.json", json.dumps(content, indent=1) + "\n")
    write_atomically(folder / "faults.md", _page(results))


def read(folder: Path) -> list[Result]:
    """Return the results of an earlier run; none if there was none."""
    path = folder / "faults.json"
    if not path.exists():
        return []
    records = json.loads(path.read_text(encoding="utf-8"))["results"]
    return [Result(**{field: record[field] for field in Result._fields}) for record in records]


def merged(earlier: Sequence[Result], now: Sequence[Result]) -> list[Result]:
    """Return earlier results with those of cases that ran again in their places, and new ones at the end."""
    found = {(result.kind, result.name): result for result in earlier}
    found.update({(result.kind, result.name): result for result in now})
    return list(found.values())


def _page(results: Sequence[Result]) -> str:
    spent = sum(result.seconds for result in results)
    told = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "# Faults",
        "",
        "What happens when files are bad, runs are killed and disks are full. `make faults` writes this "
        f"page; the cases took {spent / 60:.0f} minutes, one after another ({told}).",
        "",
        "A case passes only if",
        "",
        "- nothing crashes: no death by a signal, no Python traceback, no Rust panic on standard error, "
        "no error that nobody foresaw;",
        f"- it ends within {SECONDS:g} s;",
        "- no file is lost or changed that must not be, and nothing is left behind;",
        f"- memory stays below twice the input plus {ALLOWANCE >> 20} MiB, beyond what the same command "
        "takes for a tiny good input;",
        "- an error is one line that starts with `rankad: ` and names the file.",
        "",
        "| kind | cases | passed | failed | skipped |",
        "|---|---:|---:|---:|---:|",
    ]
    for kind, counts in _counts(results).items():
        failed = counts["run"] - counts["passed"]
        lines.append(f"| {kind} | {counts['run']} | {counts['passed']} | {failed} | {counts['skipped']} |")
    lines += ["", *_skipped(results), *_failures(results)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _skipped(results: Sequence[Result]) -> list[str]:
    reasons = Counter(result.skipped for result in results if result.skipped)
    return [f"Skipped, {n} cases: {reason}." for reason, n in reasons.items()] + [""] * bool(reasons)


def _failures(results: Sequence[Result]) -> list[str]:
    """Return what failed, equal faults together; each case is a line to run it again."""
    grouped: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        for fault in dict.fromkeys(result.faults):
            grouped.setdefault(result.kind, {}).setdefault(_alike(fault), []).append(result)
    if not grouped:
        return ["Nothing failed."]
    lines = ["## What failed", "", "A line runs the case again and prints what the command said."]
    for kind, faults in grouped.items():
        lines += ["", f"### {kind}"]
        for fault, found in sorted(faults.items(), key=lambda item: -len(item[1])):
            lines += ["", f"**{fault}** ({_cases(len(found))}). {_example(fault, found[0])}", "", "```"]
            lines += [reproduction(result) for result in found] + ["```"]
    return lines


def _alike(fault: str) -> str:
    """Return a fault without the numbers that differ from case to case."""
    return "too much memory" if "MiB of memory" in fault else fault


def _cases(n: int) -> str:
    return "1 case" if n == 1 else f"{n} cases"


def _example(fault: str, result: Result) -> str:
    """Return what was said, for example: by the command that the fault names, if it names one."""
    command = fault.partition(": ")[0]
    said = [line for line in result.said if line.startswith(f"rankad {command} ")] or result.said
    if not said:
        return ""
    text = said[-1].replace("`", "'").replace("|", "/")
    return f"For example `{text if len(text) < _LONGEST else text[:_LONGEST] + '...'}`"
