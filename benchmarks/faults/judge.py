"""What counts as a fault: crashes, hangs, lost files, memory, errors that are not one line with a name."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from benchmarks.faults.process import SECONDS, Outcome

__all__ = ["ALLOWANCE", "FINE", "changes", "faults_of", "snapshot"]

ALLOWANCE = 300 << 20
FINE = (0, 3)
FAILED = (1, 2)
_MARKS = {
    "Traceback (most recent call last)": "a Python traceback",
    "panicked at": "a Rust panic on standard error",
    "Fatal Python error": "a fatal error of the interpreter",
    "Exception ignored": "an exception that Python ignored, on standard error",
    "(--verbose shows the traceback)": "an error that nobody foresaw",
    "\x1b": "a control character on the screen",
}
LONGEST_ERROR = 1_000


def faults_of(
    outcome: Outcome,
    *,
    named: Iterable[str] = (),
    statuses: Collection[int] = (*FINE, *FAILED),
    baseline: int = 0,
    n_bytes: int = 0,
    seconds: float = SECONDS,
) -> list[str]:
    """Return what is wrong with how a command ended; nothing, if all is well.

    Parameters
    ----------
    outcome : Outcome
    named : iterable of str
        An error must name one of these files. Nothing asks for no name.
    statuses : collection of int
        Exit statuses that may be.
    baseline : int
        Peak of memory of the same command on a tiny good input, in bytes.
    n_bytes : int
        Size of the input.
    seconds : float
        What it was allowed.
    """
    if outcome.hung:
        return [f"no answer in {seconds:g} s"]
    if outcome.status < 0:
        return [f"died of {signal.Signals(-outcome.status).name}"]
    said = outcome.out + outcome.err
    faults = [fault for mark, fault in _MARKS.items() if mark in said]
    if outcome.status not in statuses:
        allowed = ", ".join(map(str, sorted(statuses)))
        faults.append(f"exit status {outcome.status}, allowed are {allowed}")
    if outcome.status in FAILED and not faults:
        faults += _faults_of_error(outcome.err, list(named))
    above = outcome.peak - baseline
    if above > 2 * n_bytes + ALLOWANCE:
        faults.append(f"{above >> 20} MiB of memory for {n_bytes / 1e6:.1f} MB of input")
    return faults


def _faults_of_error(text: str, named: list[str]) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("rankad: note: ")]
    if not lines:
        return ["failed without a word"]
    if len(lines) > 1:
        return [f"an error of {len(lines)} lines"]
    faults = []
    if not lines[0].startswith("rankad: "):
        faults.append("an error that does not begin with 'rankad: '")
    if len(lines[0]) > LONGEST_ERROR:
        faults.append(f"an error of {len(lines[0]):,} characters")
    if named and not any(name in lines[0] for name in named):
        faults.append("an error that names no file")
    return faults


def snapshot(folder: Path) -> dict[str, str]:
    """Return what is in a folder: names, kinds, and digests of the contents of files."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            found[str(path.relative_to(folder))] = _told(path)
    return found


def _told(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link to {os.readlink(path)}"
    if stat.S_ISREG(mode):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return f"no file ({stat.filemode(mode)})"


def changes(before: Mapping[str, str], after: Mapping[str, str], free: Collection[str] = ()) -> list[str]:
    """Return as faults what changed, but for the names that are free to."""
    faults = []
    for name in sorted(before.keys() | after.keys()):
        if name in free or before.get(name) == after.get(name):
            continue
        if name not in after:
            faults.append(f"lost {name}")
        elif name not in before:
            faults.append(f"left {_without_random(name)}")
        else:
            faults.append(f"changed {name}")
    return faults


def _without_random(name: str) -> str:
    """Return a name whose random parts are stars, so that equal faults read alike."""
    parts = name.replace("-", ".").split(".")
    for part in parts:
        if len(part) >= 4 and part.isalnum() and any(c.isdigit() for c in part):
            name = name.replace(part, "*")
    return name
