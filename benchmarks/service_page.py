"""The page of `benchmarks.service`: tables, and what was asked for beside what was measured."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["page"]

_BATCH = 10_000
_FLAT = 1.05


def page(found: Mapping[str, Any], *, load: float, command: str) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    found : mapping
        What each part measured.
    load : float
        Mean number of processes that wanted a core when the run began.
    command : str
        That it was made by.
    """
    parts = [
        "# The service's speed",
        f"{_processor()}, {platform.system()}, Python {platform.python_version()}. Client and server are "
        f"processes on this machine. {load:.1f} processes wanted a core when the run began: rates and waits "
        f"are only those of the service where that is near 0; processor time hardly depends on it.",
    ]
    for name, section in _SECTIONS.items():
        if name in found:
            parts += section(found[name])
    parts += ["## Bars", _bars(found), f"Made by `{command}`."]
    return "\n\n".join(parts)


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return f"{names[0]}, {len(names)} cores"
    except (OSError, IndexError):
        return platform.machine()


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _timed(run: Mapping[str, float], digits: int = 1) -> list[str]:
    waits = [f"{run[name]:.{digits}f} ms" if name in run else "" for name in ("p50_ms", "p99_ms")]
    return [*waits, f"{run['busy_us']:,.0f} µs"]


def _single(found: Mapping[str, Any]) -> list[str]:
    names = {
        "nothing": "an endpoint of the same framework that does nothing",
        "array": "10 numbers in a list",
        "table": "9 numbers and a word, by name",
        "array, no history": "10 numbers, without a history",
        "table, no history": "9 numbers and a word, without a history",
    }
    rows = [[names[name], f"{run['rate']:,.0f}", *_timed(run)] for name, run in found.items()]
    return [
        "## Single rows",
        "32 connections, each sends a row when the last one was answered; one worker.",
        _table(["request", "requests/s", "median", "p99", "processor time a request"], rows),
    ]


def _batches(found: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, runs in found.items():
        served, inside = runs["served"], runs["in process"]
        rows += [
            [name, where, f"{_BATCH * run['rate']:,.0f}", f"{run['busy_us'] / 1e3:.1f} ms"]
            for where, run in (("served", served), ("in process", inside))
        ]
        rows.append(
            [
                name,
                "served of in process",
                f"{served['rate'] / inside['rate']:.0%}",
                f"{inside['busy_us'] / served['busy_us']:.0%}",
            ]
        )
    return [
        "## Batches of 10,000 rows in Arrow",
        "One connection, one worker, with the history; in process is `rankad.score_batch` on the same table.",
        _table(["model", "where", "rows/s", "processor time a batch"], rows),
    ]


def _memory(found: Mapping[str, Any]) -> list[str]:
    every = max(1, len(found["seen"]) // 10)
    seen = ", ".join(f"{each:.0f}" for each in found["seen"][::every])
    return [
        "## Memory",
        f"{found['minutes']:g} minutes at {found['rate']:,.0f} single rows/s (80 % of the rate above), "
        f"and each second a batch of 10,000 rows. Answered: {found['answered']:,.0f} requests/s, p99 "
        f"{found['p99_ms']:.0f} ms. Resident memory in MiB at ten equally distant times: {seen}.",
    ]


def _peer(found: Mapping[str, Any]) -> list[str]:
    rows = [
        [what, name, f"{run['rate']:,.1f}", *_timed(run)]
        for what, runs in found.items()
        for name, run in runs.items()
    ]
    return [
        "## Beside MLServer",
        "The same rows in the same protocol (JSON tensors), one process each. MLServer answers with "
        "`IsolationForest.predict`, rankad with p-values, scores and alarms, and stores them.",
        _table(["request", "server", "requests/s", "median", "p99", "processor time a request"], rows),
    ]


_SECTIONS = {"single": _single, "batches": _batches, "memory": _memory, "peer": _peer}


def _bars(found: Mapping[str, Any]) -> str:
    rows: list[list[str]] = []

    def bar(asked: str, measured: str, met: bool) -> None:
        rows.append([asked, measured, "met" if met else "**missed**"])

    if "single" in found:
        nothing = found["single"]["nothing"]["rate"]
        for name in ("array", "table"):
            run = found["single"][name]
            bar(
                f"single rows, {name}: 2,000/s with p99 of 50 ms at most, or within 1.5 times of nothing",
                f"{run['rate']:,.0f}/s, p99 {run['p99_ms']:.0f} ms; {nothing / run['rate']:.1f} times",
                (run["rate"] >= 2_000 and run["p99_ms"] <= 50) or nothing / run["rate"] <= 1.5,
            )
    for name, runs in found.get("batches", {}).items():
        share = runs["served"]["rate"] / runs["in process"]["rate"]
        bar(f"batches of the {name} model: 30 % of the in-process rate", f"{share:.0%}", share >= 0.3)
    if "memory" in found:
        run = found["memory"]
        growth = run["last_third"] / run["second_third"]
        bar(
            "10 minutes at 80 % load, memory of the last third at most 5 % above that of the second",
            f"{run['minutes']:g} minutes, {growth - 1:+.1%}",
            growth <= _FLAT and run["minutes"] >= 10,
        )
    for what, runs in found.get("peer", {}).items():
        ours, theirs = (run["rate"] for run in runs.values())
        bar(f"ahead of MLServer, {what}", f"{ours / theirs:.1f} times", ours > theirs)
    return _table(["asked", "measured", ""], rows)
