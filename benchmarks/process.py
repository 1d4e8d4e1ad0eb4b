"""Every measurement runs in a fresh process: same environment, same number of cores, nothing left over.

``python -m benchmarks.process`` is that process: a job comes in as JSON, its result goes out as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["available_cores", "child_environment", "run_job"]

_ROOT = Path(__file__).resolve().parents[1]
_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def available_cores() -> list[int]:
    """Return the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def child_environment(threads: int) -> dict[str, str]:
    """Return the environment of a process with the given number of threads."""
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **dict.fromkeys(_LIMITS, str(threads)),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONHASHSEED": "0",
    }


def run_job(
    target: str, arguments: Mapping[str, Any], threads: int, stop: float | None = None
) -> dict[str, Any]:
    """Call a function in a fresh process and return its result.

    Parameters
    ----------
    target : str
        Module and function, such as "benchmarks.fits:fit_one"; it returns a dict of plain values.
    arguments : mapping
        Of plain values.
    threads : int
        Cores that the process may use, and threads that libraries may.
    stop : float, optional
        Seconds after which the process is ended.

    Returns
    -------
    dict
        The result; {"missing": why} where there is none.
    """
    job = json.dumps({"target": target, "arguments": dict(arguments), "threads": threads}, default=str)
    command = [sys.executable, "-m", "benchmarks.process"]
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command, input=job, capture_output=True, text=True, timeout=stop, env=child_environment(threads)
        )
    except subprocess.TimeoutExpired:
        return {"missing": f"stopped after {time.monotonic() - begin:.0f} s"}
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return {"missing": f"failed: {said[-1]}"}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    """Do the job on standard input; nothing but its result goes to standard output."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    job = json.load(sys.stdin)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, available_cores()[: job["threads"]])
    warnings.simplefilter("ignore")
    module, function = job["target"].split(":")
    result = getattr(import_module(module), function)(**job["arguments"])
    with output:
        json.dump(result, output, allow_nan=False)


if __name__ == "__main__":
    main()
