"""The process in which the page fits: a folder with a plan in, a model file out, progress meanwhile.

python -m rankad.service.page.fit_process FOLDER SECONDS
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rankad._base.progress import told_to
from rankad._base.wording import isolated
from rankad.columns.inferred import ColumnWarning
from rankad.detectors.rank import RankAD
from rankad.detectors.table import TableDetector
from rankad.scoring.loading import threads
from rankad.service.page.tables import open_stored
from rankad.service.page.understanding import Corrections
from rankad.service.page.wording import without_options
from rankad.service.page.workspace import read_json, write_json

_WRITE_SECONDS = 0.15
_LOOK_SECONDS = 0.1
_MOST_NOTES = 10
_LABELS = {"selection": "choosing settings", "calibration": "holding out rows"}


class _Status:
    """Tells the service how far the fit is, through a file."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / "about.json", threading.Lock()
        self._about = read_json(self._path)
        self._written = 0.0

    def step(self, label: str, done: int, total: int) -> None:
        """Count a step; called from any thread."""
        self.say(label=_LABELS.get(label, label), done=done, total=total)

    def say(self, *, now: bool = False, **what: Any) -> None:
        """Change what is told, and write it down now and then."""
        with self._lock:
            self._about |= what
            if now or time.monotonic() - self._written > _WRITE_SECONDS:
                self._written = time.monotonic()
                write_json(self._path, self._about)


def fit(folder: Path) -> None:
    """Fit as planned, and say what became of it."""
    status, plan = _Status(folder), read_json(folder / "plan.json")
    threading.Thread(target=_watch, args=(folder, status), daemon=True).start()
    try:
        notes = _fit(folder, plan, status)
    except (ValueError, TypeError) as error:
        status.say(now=True, state="failed", message=without_options(str(error))[:2000], ended=time.time())
    except MemoryError:
        status.say(now=True, state="failed", message="out of memory; give fewer rows", ended=time.time())
    except Exception as error:
        text = f"the fit failed: {type(error).__name__}: {error}"
        status.say(now=True, state="failed", message=text[:2000], ended=time.time())
        raise
    else:
        status.say(now=True, state="done", notes=notes, ended=time.time())


def _fit(folder: Path, plan: dict[str, Any], status: _Status) -> list[str]:
    table = open_stored(Path(plan["table"]))
    corrections = msgspec.convert(plan["corrections"], Corrections)
    status.say(now=True, name=isolated(table.name), table=table.path.name, rows=table.frame.height)
    status.say(now=True, mixed=plan["mixed"], label="learning")
    inner = RankAD(trim="auto" if plan["mixed"] else 0.0, n_jobs=threads(None))
    detector = TableDetector(inner, **corrections.options()._asdict())
    with warnings.catch_warnings(record=True) as caught, told_to(status.step):
        warnings.simplefilter("always")
        if plan["mixed"]:
            p_values = detector.fit_p_values(table.rows)
            np.save(folder / "p_values.npy", p_values)
        else:
            detector.fit(table.rows)
    status.say(now=True, label="saving", done=0, total=0)
    # The model file does not record how many threads fitted it.
    detector.detector_.n_jobs = None
    detector.save(folder / "model.rankad")
    # What is said of columns is shown beside them.
    other = (each for each in caught if issubclass(each.category, UserWarning))
    texts = dict.fromkeys(str(each.message) for each in other if not issubclass(each.category, ColumnWarning))
    return list(texts)[:_MOST_NOTES]


def _watch(folder: Path, status: _Status) -> None:
    """End this process when it is told to, or when nobody waits for it any more."""
    gone = threading.Event()
    threading.Thread(target=_wait_for_end, args=(gone,), daemon=True).start()
    while not (folder / "cancel").exists() and not gone.wait(_LOOK_SECONDS):
        # Also a sign of life.
        status.say()
    if (folder / "cancel").exists():
        status.say(now=True, state="cancelled", message="cancelled", ended=time.time())
    os._exit(3)


def _wait_for_end(gone: threading.Event) -> None:
    sys.stdin.buffer.read()
    gone.set()


def main() -> None:
    """Fit in the folder that the command line names, within so many seconds."""
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    threading.Timer(seconds, os._exit, args=(4,)).start()
    if hasattr(os, "nice"):
        # Requests come first.
        os.nice(5)
    fit(folder)
    os._exit(0)


if __name__ == "__main__":
    main()
