"""Outputs that are inputs, devices, FIFOs, links, folders; inputs that are FIFOs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.faults.bench import Bench, Case
from benchmarks.faults.disks import device
from benchmarks.faults.judge import FINE, changes, faults_of, snapshot
from benchmarks.faults.process import Outcome
from benchmarks.faults.whole import is_whole

__all__ = ["cases"]

KIND = "outputs and inputs"
_MODEL = ["--model", "table.rankad"]
# What each command takes before the name of its output.
COMMANDS = {
    "score": ["score", "new.csv", *_MODEL, "--out"],
    "report": ["report", "new.csv", *_MODEL, "--out"],
    "calibrate": ["calibrate", "new.csv", *_MODEL, "--out"],
    "fit": ["fit", "new.csv", "--id", "id", "--model"],
    "find": ["find", "new.csv", "--id", "id", "--out"],
    "find --model": ["find", "new.csv", "--id", "id", "--model"],
}
SUFFIXES = {
    "score": ".csv",
    "report": ".html",
    "calibrate": ".rankad",
    "fit": ".rankad",
    "find": ".csv",
    "find --model": ".rankad",
}
_ROWS = 25


def cases() -> list[Case]:
    """Return all cases."""
    found = []

    def add(name: str, check: Callable[..., list[str]], /, **given: object) -> None:
        found.append(Case(KIND, name, partial(check, **given)))

    for command in COMMANDS:
        for way, (_, over_model) in WAYS.items():
            # A model may be calibrated in place; the others read none.
            if not (over_model and command in ("calibrate", "fit", "find", "find --model")):
                add(f"{command} over {way}", _over_input, command=command, way=way)
        add(f"{command} to a device like /dev/null", _to_device, command=command)
        add(f"{command} to a FIFO that is read", _to_fifo, command=command)
        add(f"{command} to a link to a file", _to_link, command=command, dangling=False)
        add(f"{command} to a link to nothing", _to_link, command=command, dangling=True)
        add(f"{command} to a link to itself", _to_loop, command=command)
        add(f"{command} to a folder", _to_folder, command=command)
        add(f"{command} to a name of 300 characters", _to_name, command=command, name="x" * 300)
        add(f"{command} into a folder that is not there", _to_name, command=command, name="none/x")
        add(f"{command} into a file", _to_name, command=command, name="new.csv/x")
        add(f"{command} of a FIFO", _from_fifo, command=command)
    add("score of a FIFO, --fdr", _from_fifo, command="score", more=("--fdr", "0.1"))
    add("score of a FIFO, --resume", _from_fifo, command="score", more=("--resume",))
    add("score with a FIFO for a model", _odd_model, make=lambda path: os.mkfifo(path))
    add("score with a folder for a model", _odd_model, make=lambda path: path.mkdir())
    add("score with a device for a model", _odd_model, make=lambda path: device(path, 1, 5))
    return found


def _given(bench: Bench, folder: Path) -> None:
    bench.copy("new.csv", folder)
    bench.copy("table.rankad", folder)


def _inside(bench: Bench, folder: Path, command: str, out: str, *more: str) -> Outcome:
    # Whatever may hang or replace a device runs in the worker too, which is replaced if it does.
    return bench.inside([*COMMANDS[command], out, "--jobs", "1", "--quiet", *more], folder)


def _symbolic(target: str, folder: Path) -> str:
    name = f"link{Path(target).suffix}"
    (folder / name).symlink_to(target)
    return name


def _hard(target: str, folder: Path) -> str:
    name = f"link{Path(target).suffix}"
    os.link(folder / target, folder / name)
    return name


# How an input is named as the output, and whether it is the model.
WAYS: dict[str, tuple[Callable[[Path], str], bool]] = {
    "its table": (lambda folder: "new.csv", False),
    "its table by another path": (lambda folder: f"../{folder.name}/./new.csv", False),
    "its table by a link": (partial(_symbolic, "new.csv"), False),
    "its table by a hard link": (partial(_hard, "new.csv"), False),
    "its model": (lambda folder: "table.rankad", True),
    "its model by a link": (partial(_symbolic, "table.rankad"), True),
}


def _over_input(bench: Bench, folder: Path, *, command: str, way: str) -> list[str]:
    _given(bench, folder)
    out = WAYS[way][0](folder)
    before = snapshot(folder)
    # The format cannot be told from a model's name.
    done = _inside(bench, folder, command, out)
    faults = faults_of(done, named=[Path(out).name], statuses=(1, 2))
    return faults + changes(before, snapshot(folder))


def _to_device(bench: Bench, folder: Path, *, command: str) -> list[str]:
    """Rows may go there; a page or a model is refused, or goes there too. It must stay a device."""
    _given(bench, folder)
    out = f"null{SUFFIXES[command]}"
    device(folder / out, 1, 3)
    before = snapshot(folder)
    done = _inside(bench, folder, command, out)
    return faults_of(done, named=[out]) + changes(before, snapshot(folder))


@contextmanager
def _reading(path: Path) -> Iterator[list[bytes]]:
    """Read a FIFO to its end, meanwhile."""
    found: list[bytes] = []
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    over = threading.Event()

    def read() -> None:
        while True:
            # Asked before it is read: what is written until then is read too.
            last = over.is_set()
            try:
                piece = os.read(handle, 1 << 16)
            except BlockingIOError:
                piece = b""
            if piece:
                found.append(piece)
            elif last:
                return
            else:
                over.wait(0.01)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
        os.close(handle)


def _to_fifo(bench: Bench, folder: Path, *, command: str) -> list[str]:
    _given(bench, folder)
    out = f"pipe{SUFFIXES[command]}"
    os.mkfifo(folder / out)
    before = snapshot(folder)
    with _reading(folder / out) as found:
        done = _inside(bench, folder, command, out)
    faults = faults_of(done, named=[out]) + changes(before, snapshot(folder))
    if command in ("score", "find") and not faults and b"".join(found).count(b"\n") != _ROWS + 1:
        faults.append("rows were lost in the FIFO")
    return faults


def _to_link(bench: Bench, folder: Path, *, command: str, dangling: bool) -> list[str]:
    """The file that the link points to is written, and the link stays."""
    _given(bench, folder)
    (folder / "there").mkdir()
    out, target = f"link{SUFFIXES[command]}", f"there/target{SUFFIXES[command]}"
    if not dangling:
        (folder / target).write_text("what was there before")
    (folder / out).symlink_to(target)
    before = snapshot(folder)
    done = _inside(bench, folder, command, out)
    faults = faults_of(done, named=[out], statuses=FINE) + changes(before, snapshot(folder), {target})
    if not faults and not is_whole(folder / target, _ROWS):
        faults.append("the file that the link points to is not whole")
    return faults


def _to_loop(bench: Bench, folder: Path, *, command: str) -> list[str]:
    _given(bench, folder)
    out = f"loop{SUFFIXES[command]}"
    (folder / out).symlink_to(out)
    before = snapshot(folder)
    done = _inside(bench, folder, command, out)
    # Replacing it loses nothing.
    free = {out} if done.status in FINE else set()
    return faults_of(done, named=[out]) + changes(before, snapshot(folder), free)


def _to_folder(bench: Bench, folder: Path, *, command: str) -> list[str]:
    _given(bench, folder)
    out = f"folder{SUFFIXES[command]}"
    (folder / out).mkdir()
    (folder / out / "kept").write_text("what was there before")
    before = snapshot(folder)
    done = _inside(bench, folder, command, out)
    return faults_of(done, named=[out], statuses=(1, 2)) + changes(before, snapshot(folder))


def _to_name(bench: Bench, folder: Path, *, command: str, name: str) -> list[str]:
    _given(bench, folder)
    before = snapshot(folder)
    done = _inside(bench, folder, command, name + SUFFIXES[command])
    named = [name, str(Path(name).parent)]
    return faults_of(done, named=named, statuses=(1, 2)) + changes(before, snapshot(folder))


def _from_fifo(bench: Bench, folder: Path, *, command: str, more: tuple[str, ...] = ()) -> list[str]:
    """A FIFO is read once, or refused where it would be read twice."""
    _given(bench, folder)
    os.mkfifo(folder / "pipe.csv")
    before, out = snapshot(folder), f"out{SUFFIXES[command]}"
    data = (bench.good / "new.csv").read_bytes()
    # Opened for both, it never blocks here; the command sees its end when this is closed.
    handle = os.open(folder / "pipe.csv", os.O_RDWR | os.O_NONBLOCK)
    os.write(handle, data)
    closing = threading.Timer(2.0, os.close, [handle])
    closing.start()
    arguments = ["pipe.csv" if part == "new.csv" else part for part in COMMANDS[command]]
    done = bench.inside([*arguments, out, "--jobs", "1", "--quiet", *more], folder)
    closing.join()
    faults = faults_of(done, named=["pipe.csv"])
    if done.hung:
        return faults
    if done.status in FINE and not is_whole(folder / out, _ROWS):
        faults.append("the output is not whole")
    return faults + changes(before, snapshot(folder), {out} if done.status in FINE else ())


def _odd_model(bench: Bench, folder: Path, *, make: Callable[[Path], object]) -> list[str]:
    bench.copy("new.csv", folder)
    make(folder / "odd.rankad")
    before = snapshot(folder)
    given = ["score", "new.csv", "--model", "odd.rankad", "--out", "out.csv", "--jobs", "1", "--quiet"]
    done = bench.inside(given, folder)
    return faults_of(done, named=["odd.rankad"], statuses=(1, 2)) + changes(before, snapshot(folder))
