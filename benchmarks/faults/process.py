"""One command in a process of its own, or many in one worker process; limited in time and memory."""

from __future__ import annotations

import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple

from benchmarks.process import child_environment

__all__ = ["COMMAND", "SECONDS", "Outcome", "Worker", "environment", "peak_of", "run", "status_bytes", "stop"]

SECONDS = 20.0
# Of addresses, so that a runaway ends before the machine does.
_ADDRESS_SPACE = 12 << 30
_STARTING_SECONDS = 120.0
COMMAND = (sys.executable, "-c", "from rankad.cli import main; main()")


class Outcome(NamedTuple):
    """How a command ended.

    Attributes
    ----------
    status : int
        The exit status; minus the number of the signal that ended it.
    out, err : str
    seconds : float
    peak : int
        Bytes of memory at its peak: of a process all of them, in a worker those above what it had before.
    hung : bool
        It was stopped because it took too long.
    """

    status: int
    out: str
    err: str
    seconds: float
    peak: int
    hung: bool = False


def environment(threads: int = 1) -> dict[str, str]:
    """Return the environment of a case: few threads, and the package that runs the battery."""
    import rankad

    found = {**child_environment(threads), "POLARS_MAX_THREADS": str(threads)}
    package = str(Path(rankad.__file__).resolve().parents[1])
    return {**found, "PYTHONPATH": os.pathsep.join([package, found["PYTHONPATH"]])}


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started; it leads a session of its own."""
    # Not by Popen's own methods, which reap a process that is over, and with it the record of its memory.
    for kill in (os.killpg, os.kill):
        try:
            kill(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    seconds: float = SECONDS,
    stdin: bytes | None = None,
    stdout: str | os.PathLike[str] | None = None,
    threads: int = 1,
    meanwhile: Callable[[subprocess.Popen[bytes]], object] | None = None,
) -> Outcome:
    """Run a command to its end, or stop it.

    Parameters
    ----------
    command : sequence of str
    cwd : Path, optional
    seconds : float
        It is stopped after so many.
    stdin : bytes, optional
        What it reads on standard input; nothing if not given.
    stdout : path, optional
        Where its output goes, as "/dev/full".
    threads : int
        Threads that libraries may use.
    meanwhile : callable
        Called with the process once it has started: to send it a signal, for example. Seconds count from when
        it returns.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin or b"")
        given.seek(0)
        begun = time.monotonic()
        with nullcontext(out) if stdout is None else open(stdout, "wb", buffering=0) as target:
            process = subprocess.Popen(
                [os.fspath(part) for part in command],
                stdin=given,
                stdout=target,
                stderr=err,
                cwd=cwd,
                env=environment(threads),
                start_new_session=True,
            )
        _limit(process)
        try:
            if meanwhile is not None:
                meanwhile(process)
            over, peak = _ended(process, time.monotonic() + seconds)
        finally:
            stop(process)
        status, most = _reaped(process)
        # Until it runs the command, a child counts the memory of the process that started it.
        peak = most if most > peak_of(resource.getrusage(resource.RUSAGE_SELF)) else peak
        return Outcome(status, _text(out), _text(err), time.monotonic() - begun, peak, not over)


def peak_of(usage: resource.struct_rusage) -> int:
    """Return a process's peak of memory in bytes; macOS counts bytes, others KiB."""
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _limit(process: subprocess.Popen[bytes]) -> None:
    if hasattr(resource, "prlimit"):
        try:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
            # A crash is counted here; nobody reads its core.
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        except (ProcessLookupError, PermissionError):
            return


def _ended(process: subprocess.Popen[bytes], end: float) -> tuple[bool, int]:
    """Wait until a process is over, and leave it to be reaped; return whether it is, and its peak so far."""
    peak = 0
    while True:
        over = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        peak = max(peak, status_bytes(process.pid, "VmHWM:"))
        if over is not None:
            return True, peak
        if time.monotonic() > end:
            return False, peak
        time.sleep(0.01)


def status_bytes(process: int | str, field: str) -> int:
    """Return a number of bytes that Linux tells of a process; 0 where it does not."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0)


def _reaped(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, peak_of(usage)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


class Worker:
    """A process that runs many commands one after another, watched from here.

    One that hangs or crashes is replaced by a new one, and so is one that has done `lifetime` commands.
    """

    def __init__(self, seconds: float = SECONDS, lifetime: int = 100) -> None:
        self._seconds, self._lifetime = seconds, lifetime
        self._process: subprocess.Popen[bytes] | None = None
        self._done = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, arguments: Sequence[str | os.PathLike[str]], cwd: Path) -> Outcome:
        """Run `rankad` with these arguments in a folder."""
        return self._ask({"arguments": [os.fspath(one) for one in arguments], "cwd": str(cwd)})

    def call(self, code: str, cwd: Path, seconds: float | None = None) -> Outcome:
        """Run Python code; for tests of this class."""
        return self._ask({"code": code, "cwd": str(cwd)}, seconds)

    def _ask(self, job: Mapping[str, object], seconds: float | None = None) -> Outcome:
        if self._process is not None and self._done >= self._lifetime:
            self.close()
        process = self._process or self._started()
        self._done += 1
        assert process.stdin is not None
        begun = time.monotonic()
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
        answer = self._answer(seconds or self._seconds)
        spent = time.monotonic() - begun
        if answer:
            return Outcome(seconds=spent, **json.loads(answer))
        hung = answer is None
        stop(process)
        status, _ = _reaped(process)
        said = _text(self._err)
        self._forget()
        return Outcome(status, "", said, spent, 0, hung)

    def _started(self) -> subprocess.Popen[bytes]:
        # What the interpreter itself says when it dies.
        self._err = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "benchmarks.faults.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._err,
            env=environment(),
            start_new_session=True,
        )
        self._done = 0
        _limit(self._process)
        if self._answer(_STARTING_SECONDS) != b"ready\n":
            said = _text(self._err)
            self.close()
            raise RuntimeError(f"the worker did not start: {said}")
        return self._process

    def _answer(self, seconds: float) -> bytes | None:
        """Return a line, nothing if the worker is gone, None if it took too long."""
        process, end, line = self._process, time.monotonic() + seconds, b""
        assert process is not None
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, end - time.monotonic())):
                    return None
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    return b""
                line += piece
        return line

    def _forget(self) -> None:
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout, self._err):
                try:
                    if pipe is not None:
                        pipe.close()
                except OSError:
                    continue
        self._process = None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            stop(self._process)
            self._process.wait()
        self._forget()
