"""``python -m benchmarks.faults.worker``: commands come in as JSON lines, outcomes go out as JSON lines.

Commands run inside this process, as `rankad` would run them, so that five hundred files take a minute. Only
the fit is cheaper than the command's: files are the subject here.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.faults.process import peak_of, status_bytes

__all__ = ["main", "quick_fits"]

QUICK = {
    "landmarks": 20,
    "scaling": "standard",
    "bandwidth": "D_K",
    "C": 0.1,
    "calibration": "split",
}


def quick_fits() -> None:
    """Make the command's fits one trial without folds."""
    import rankad
    from rankad import RankAD

    rankad.RankAD = lambda alpha=0.05, **given: RankAD(alpha, **{**QUICK, **given})  # type: ignore


def main() -> None:
    """Do jobs until there are no more."""
    jobs = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    os.dup2(2, 1)
    command = _command()
    print("ready", file=answers, flush=True)
    for line in jobs:
        job = json.loads(line)
        print(json.dumps(_outcome(command, job)), file=answers, flush=True)


def _command() -> Callable[[list[str]], None]:
    """Return the command, built once: it is the same each time, and takes longer than most cases."""
    import typer.main

    import rankad.cli

    rankad.cli._app = cache(rankad.cli._app)  # type: ignore[assignment]
    typer.main.get_command = cache(typer.main.get_command)  # type: ignore[assignment]
    quick_fits()
    return rankad.cli.main


def _outcome(command: Callable[[list[str]], None], job: Mapping[str, Any]) -> dict[str, Any]:
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        os.chdir(job["cwd"])
        before = _reset_peak()
        try:
            status = _status(command, job)
        finally:
            peak = max(0, _peak() - before)
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            os.close(kept[0])
            os.close(kept[1])
        texts = {}
        for name, file in (("out", out), ("err", err)):
            file.seek(0)
            texts[name] = file.read(1 << 20).decode(errors="replace")
    return {"status": status, **texts, "peak": peak, "hung": False}


def _status(command: Callable[[list[str]], None], job: Mapping[str, Any]) -> int:
    try:
        if "code" in job:
            exec(job["code"], {})
        else:
            command(job["arguments"])
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _reset_peak() -> int:
    """Forget the peak of memory so far, where the system can; return the memory in use."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return status_bytes("self", "VmRSS:")
    return _peak()


def _peak() -> int:
    return status_bytes("self", "VmHWM:") or peak_of(resource.getrusage(resource.RUSAGE_SELF))


if __name__ == "__main__":
    main()
