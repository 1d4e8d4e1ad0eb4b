"""Disks that are full, files that may not grow, and standard streams that are closed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.faults.bench import Bench, Case, Skipped
from benchmarks.faults.judge import changes, faults_of, snapshot
from benchmarks.faults.process import COMMAND, Outcome
from benchmarks.faults.whole import is_whole

__all__ = ["cases", "device"]

KIND = "full disks"
STREAMS = ("standard output", "stdout")
TMPFS_BYTES = 24 << 10
_ROWS = 3_000

# Commands that write a file, and the file.
WRITERS = {
    "score to CSV": ("out.csv", ["score", "long.csv", "--model", "table.rankad", "--out"]),
    "score to TSV": ("out.tsv", ["score", "long.csv", "--model", "table.rankad", "--out"]),
    "score to gzip": ("out.csv.gz", ["score", "long.csv", "--model", "table.rankad", "--out"]),
    "score to zstd": ("out.csv.zst", ["score", "long.csv", "--model", "table.rankad", "--out"]),
    "score to Parquet": ("out.parquet", ["score", "long.csv", "--model", "table.rankad", "--out"]),
    "score to Arrow": ("out.arrow", ["score", "long.csv", "--model", "table.rankad", "--out"]),
    "score --resume": ("out.csv", ["score", "long.csv", "--model", "table.rankad", "--resume", "--out"]),
    "score --sort": ("out.csv", ["score", "long.csv", "--model", "table.rankad", "--sort", "--out"]),
    "report": ("out.html", ["report", "long.csv", "--model", "table.rankad", "--out"]),
    "fit": ("out.rankad", ["fit", "many.csv", "--id", "id", "--model"]),
    "calibrate": ("out.rankad", ["calibrate", "long.csv", "--model", "table.rankad", "--out"]),
}
# Commands that print.
PRINTERS = {
    "score": ["score", "long.csv", "--model", "table.rankad"],
    "score --json": ["score", "long.csv", "--model", "table.rankad", "--json"],
    "explain": ["explain", "new.csv", "--model", "table.rankad"],
    "explain --json": ["explain", "new.csv", "--model", "table.rankad", "--json"],
    "inspect": ["inspect", "table.rankad"],
    "inspect --json": ["inspect", "table.rankad", "--json"],
    "calibrate": ["calibrate", "new.csv", "--model", "table.rankad", "--out", "out.rankad"],
    "report": ["report", "new.csv", "--model", "table.rankad", "--out", "out.html"],
    "help": ["--help"],
}
_GIVEN = ("long.csv", "new.csv", "many.csv", "table.rankad")


def cases() -> list[Case]:
    """Return all cases."""
    found = []

    def add(name: str, check: object) -> None:
        found.append(Case(KIND, name, check))  # type: ignore[arg-type]

    for name in WRITERS:
        if name != "score --resume":
            add(f"{name} to a device that is full", partial(_to_full_device, writer=name))
        add(f"{name} on a small tmpfs", partial(_on_tmpfs, writer=name))
        add(f"{name} with files of at most 3 kB", partial(_limited, writer=name, n_bytes=3_000))
    for name in ("score to CSV", "report", "fit", "calibrate"):
        add(f"{name} with files of no bytes", partial(_limited, writer=name, n_bytes=0))
    for name in PRINTERS:
        add(f"{name} prints to /dev/full", partial(_prints_to_full, printer=name))
        add(f"{name} with standard output closed", partial(_closed, printer=name, streams="1"))
    for name in ("score", "inspect"):
        add(f"{name} with standard input closed", partial(_closed, printer=name, streams="0"))
        add(f"{name} with standard error closed", partial(_closed, printer=name, streams="2"))
        add(f"{name} with all streams closed", partial(_closed, printer=name, streams="012"))
    add("score to a file with all streams closed", partial(_closed_to_file, streams="012"))
    add("score to a file with standard output closed", partial(_closed_to_file, streams="1"))
    add("score of standard input that is closed", _closed_input)
    for name in ("score to CSV", "report", "fit"):
        for megabytes in (400, 1_300):
            add(f"{name} in {megabytes} MB of addresses", partial(_cramped, writer=name, megabytes=megabytes))
    return found


def _given(bench: Bench, folder: Path) -> None:
    for name in _GIVEN:
        bench.copy(name, folder)


def device(path: Path, major: int, minor: int) -> None:
    """Make a device of our own: the system's must not be replaced by a command that goes wrong."""
    import stat

    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        with open(path, "wb"):
            pass
    except OSError as error:
        raise Skipped(f"devices cannot be made here: {error.strerror}") from error


def _to_full_device(bench: Bench, folder: Path, *, writer: str) -> list[str]:
    _given(bench, folder)
    out, arguments = WRITERS[writer]
    device(folder / out, 1, 7)
    before = snapshot(folder)
    done = bench.process([*arguments, out, "--jobs", "1", "--quiet"], folder)
    faults = faults_of(done, named=[out], statuses=(1, 2))
    return faults + changes(before, snapshot(folder))


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    place = folder / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Skipped("there is no mount here") from error
    if done.returncode:
        raise Skipped(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], capture_output=True, check=False)


def _on_tmpfs(bench: Bench, folder: Path, *, writer: str) -> list[str]:
    _given(bench, folder)
    out, arguments = WRITERS[writer]
    with _small_disk(folder) as place:
        (place / out).write_text("what was there before")
        before = snapshot(folder)
        done = bench.process([*arguments, f"small/{out}", "--jobs", "1", "--quiet"], folder)
        return _kept(done, before, folder, out, resumed="--resume" in arguments)


def _limited(bench: Bench, folder: Path, *, writer: str, n_bytes: int) -> list[str]:
    _given(bench, folder)
    out, arguments = WRITERS[writer]
    (folder / out).write_text("what was there before")
    before = snapshot(folder)
    code = (
        f"{_CATCH}import resource\n"
        "from rankad.cli import main\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({n_bytes}, {n_bytes}))\n"
        "main()\n"
    )
    command = (sys.executable, "-c", code)
    done = bench.process([*arguments, out, "--jobs", "1", "--quiet"], folder, command=command)
    return _kept(done, before, folder, out, resumed="--resume" in arguments)


# Standard error is a file here, which the limit would hold for: the command writes to a pipe, and a process
# without a limit passes it on. That one is waited for, lest it be stopped before the last word.
_CATCH = """
import os
r, w = os.pipe()
child = os.fork()
if child:
    import shutil
    os.close(w)
    with os.fdopen(r, "rb") as said, os.fdopen(2, "wb") as err:
        shutil.copyfileobj(said, err)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(status if status >= 0 else 128 - status)
os.close(r)
os.dup2(w, 2)
os.close(w)
"""


def _kept(done: Outcome, before: dict[str, str], folder: Path, out: str, *, resumed: bool) -> list[str]:
    faults = faults_of(done, named=[out], statuses=(1,))
    found = changes(before, snapshot(folder))
    # With --resume what was written so far is kept on purpose.
    return faults + [
        fault for fault in found if not (resumed and fault.startswith("left ") and ".part" in fault)
    ]


def _cramped(bench: Bench, folder: Path, *, writer: str, megabytes: int) -> list[str]:
    _given(bench, folder)
    out, arguments = WRITERS[writer]
    (folder / out).write_text("what was there before")
    before = snapshot(folder)
    command = ("sh", "-c", f'ulimit -v {megabytes}000; exec "$@"', "sh", *COMMAND)
    done = bench.process([*arguments, out, "--jobs", "1", "--quiet"], folder, command=command)
    # It is not a file that is wrong, but the limit, which must be told.
    faults = faults_of(done, named=["ulimit -v"], statuses=(1,))
    return faults + changes(before, snapshot(folder))


def _prints_to_full(bench: Bench, folder: Path, *, printer: str) -> list[str]:
    _given(bench, folder)
    before = snapshot(folder)
    if not os.path.exists("/dev/full"):
        raise Skipped("there is no /dev/full here")
    done = bench.process([*PRINTERS[printer], *_jobs(printer)], folder, stdout="/dev/full")
    faults = faults_of(done, named=STREAMS, statuses=(1,))
    return faults + changes(before, snapshot(folder), {"out.rankad", "out.html"})


def _jobs(printer: str) -> list[str]:
    return [] if printer.startswith(("inspect", "help")) else ["--jobs", "1"]


def _with_closed(streams: str) -> Sequence[str]:
    closing = " ".join(f"{stream}>&-" if stream != "0" else "0<&-" for stream in streams)
    return ("sh", "-c", f'exec "$@" {closing}', "sh", *COMMAND)


def _closed(bench: Bench, folder: Path, *, printer: str, streams: str) -> list[str]:
    _given(bench, folder)
    before = snapshot(folder)
    done = bench.process([*PRINTERS[printer], *_jobs(printer)], folder, command=_with_closed(streams))
    # There may be nowhere to say it.
    if "2" in streams and done.status in (0, 1):
        done = done._replace(status=0)
    faults = faults_of(done, named=STREAMS)
    return faults + changes(before, snapshot(folder), {"out.rankad", "out.html"})


def _closed_to_file(bench: Bench, folder: Path, *, streams: str) -> list[str]:
    """Files must not take the places of streams: what is meant for the screen would go there."""
    _given(bench, folder)
    before = snapshot(folder)
    arguments = ["score", "long.csv", "--model", "table.rankad", "--out", "out.csv", "--jobs", "1"]
    done = bench.process(arguments, folder, command=_with_closed(streams))
    # There may be nowhere to say that standard output is closed, which is an error.
    silent = "2" in streams and done.status in (0, 1)
    faults = faults_of(done._replace(status=0) if silent else done)
    if done.status == 0 and not is_whole(folder / "out.csv", _ROWS):
        faults.append("out.csv is not whole")
    return faults + changes(before, snapshot(folder), {"out.csv"})


def _closed_input(bench: Bench, folder: Path) -> list[str]:
    _given(bench, folder)
    before = snapshot(folder)
    arguments = ["score", "-", "--model", "table.rankad", "--out", "out.csv", "--jobs", "1"]
    done = bench.process(arguments, folder, command=_with_closed("0"))
    return faults_of(done, named=["standard input", "stdin"], statuses=(1, 2)) + changes(
        before, snapshot(folder)
    )
