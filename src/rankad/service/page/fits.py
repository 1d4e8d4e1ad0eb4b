"""Fits that the page asked for: one at a time, each in a process of its own, which can be stopped."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from rankad.modelfile import load, read_card
from rankad.service.errors import RequestError
from rankad.service.models import ServedModel
from rankad.service.page.tables import Table, open_stored
from rankad.service.page.understanding import Corrections
from rankad.service.page.workspace import Workspace, read_json, write_json

# A process that has sent nothing for so long has ended, and so has the one that started it.
_SILENT_SECONDS = 60.0
# A fit whose progress nobody has asked for so long is cancelled, so that others can fit: its tab was closed.
# A browser lets a tab in the background ask once a minute.
_FORGOTTEN_SECONDS = 180.0
_ENDED = ("done", "failed", "cancelled")
_MOST_LOADED = 4
# Touched when somebody asks how far a fit is, of whichever process of the service.
_ASKED = "asked"


class FitRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What to learn from: normal rows, or, if `mixed`, rows that may include anomalies."""

    table: str
    mixed: bool = False
    corrections: Corrections = msgspec.field(default_factory=Corrections)


class _Running(NamedTuple):
    folder: Path
    process: subprocess.Popen[bytes]
    started: float


class Fits:
    """Starts, watches and stops fits.

    Parameters
    ----------
    workspace : Workspace
    fit_seconds : float
        How long one may take.
    """

    def __init__(self, workspace: Workspace, fit_seconds: float) -> None:
        self._workspace, self._seconds = workspace, fit_seconds
        self._turn = workspace.path / "fitting"
        self._running: _Running | None = None
        # Requests come on several threads.
        self._lock = threading.RLock()
        self._loaded: dict[str, ServedModel] = {}

    def start(self, request: FitRequest) -> dict[str, Any]:
        """Begin a fit, or raise if there is one already."""
        table = open_stored(self._workspace.find("table", request.table))
        request.corrections.check(table)
        with self._lock:
            return self._start(table, request)

    def _start(self, table: Table, request: FitRequest) -> dict[str, Any]:
        self.sweep()
        folder = self._workspace.make("fit")
        try:
            self._take_turn(folder.name)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        try:
            self._begin(folder, table, request)
        except BaseException:
            # As where the disk is full: the turn is given back, or nobody could fit for a while.
            self._turn.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return self.state(folder.name)

    def _begin(self, folder: Path, table: Table, request: FitRequest) -> None:
        plan = {
            "table": str(table.path),
            "mixed": request.mixed,
            "corrections": msgspec.to_builtins(request.corrections),
        }
        write_json(folder / "plan.json", plan)
        write_json(folder / "about.json", {"state": "running", "label": "starting", "started": time.time()})
        # It ends when this end of the pipe is closed, also by the death of this process.
        process = subprocess.Popen(
            [sys.executable, "-m", "rankad.service.page.fit_process", str(folder), str(self._seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        self._running = _Running(folder, process, time.monotonic())

    def state(self, name: str) -> dict[str, Any]:
        """Return how far a fit is."""
        folder = self._workspace.find("fit", name)
        (folder / _ASKED).touch()
        self.sweep()
        about = read_json(folder / "about.json")
        about["seconds"] = round((about.get("ended") or time.time()) - about.pop("started"), 1)
        about.pop("ended", None)
        if about["state"] == "done":
            about["model"] = self.model(name).describe() | {"name": about["name"]}
        return {"id": name, **about}

    def cancel(self, name: str) -> None:
        """Stop a fit, whichever process of the service began it."""
        folder = self._workspace.find("fit", name)
        (folder / "cancel").touch()
        self.sweep()

    def model(self, name: str) -> ServedModel:
        """Return a model that was fitted."""
        folder = self._workspace.find("fit", name)
        if name not in self._loaded:
            path = folder / "model.rankad"
            if read_json(folder / "about.json")["state"] != "done":
                raise RequestError(409, "not_fitted", "this model is not fitted")
            detector: Any = load(path)
            detector.detector_.n_jobs = 1
            while len(self._loaded) >= _MOST_LOADED:
                self._loaded.pop(next(iter(self._loaded)))
            self._loaded[name] = ServedModel(name, path, detector, read_card(path), (0, 0, 0))
        return self._loaded[name]

    def sweep(self) -> None:
        """Notice a fit that has ended, or must end."""
        with self._lock:
            self._sweep()

    def _sweep(self) -> None:
        running = self._running
        if running is None:
            return
        late = time.monotonic() - running.started > self._seconds + 5.0
        if running.process.poll() is None and _silence(running.folder / _ASKED) > _FORGOTTEN_SECONDS:
            (running.folder / "cancel").touch()
        if (late or (running.folder / "cancel").exists()) and running.process.poll() is None:
            running.process.kill()
            running.process.wait()
        if running.process.poll() is None:
            if read_json(running.folder / "about.json")["state"] not in _ENDED:
                return
            # It has said its last and is about to exit.
            running.process.wait()
        self._running = None
        if running.process.stdin is not None:
            with suppress(OSError):
                running.process.stdin.close()
        self._note_end(running.folder)
        with suppress(OSError):
            if self._turn.read_text() == running.folder.name:
                self._turn.unlink()

    def close(self) -> None:
        """Stop what runs."""
        if self._running is not None:
            self._running.process.kill()
            self._running.process.wait()
            self.sweep()

    def _take_turn(self, name: str) -> None:
        """Let no other process of this service begin a fit meanwhile."""
        for _ in range(2):
            try:
                self._write_turn(name)
                return
            except FileExistsError:
                if not self._is_stale():
                    raise RequestError(
                        503, "fitting", "another table is being fitted; try again when it is done"
                    ) from None
                self._turn.unlink(missing_ok=True)

    def _write_turn(self, name: str) -> None:
        with open(self._turn, "x") as file:
            try:
                file.write(name)
                file.flush()
            except OSError:
                # A file without a name would be in the way of everybody.
                self._turn.unlink(missing_ok=True)
                raise

    def _is_stale(self) -> bool:
        try:
            path = self._workspace.path / "fit" / self._turn.read_text() / "about.json"
            return time.time() - path.stat().st_mtime > _SILENT_SECONDS
        except OSError:
            return time.time() - self._workspace.path.stat().st_mtime > _SILENT_SECONDS

    def _note_end(self, folder: Path) -> None:
        """Say what became of a process that could not say so itself."""
        with suppress(OSError, ValueError):
            about: dict[str, Any] = read_json(folder / "about.json")
            if about["state"] in _ENDED:
                return
            if (folder / "cancel").exists():
                state: Literal["cancelled", "failed"] = "cancelled"
                why = "cancelled"
            else:
                state, why = (
                    "failed",
                    (
                        "the fit ended without a result; it may have run out of memory or of time "
                        f"({self._seconds:g} s)"
                    ),
                )
            write_json(folder / "about.json", about | {"state": state, "message": why, "ended": time.time()})


def _silence(path: Path) -> float:
    """Return how long ago a file was touched; 0 if it is not there."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
