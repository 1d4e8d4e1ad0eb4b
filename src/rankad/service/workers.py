"""Several processes that answer at one address, forked after the models are loaded.

Forked processes share the memory of all that is there when they are forked, the models and the libraries, as
long as nobody writes to it. Forking is safe here because nothing has used polars yet, whose threads would be
left behind (`rankad.io.forks`); the history and the event loop are opened in each process. The supervisor
of uvicorn starts processes again that die or hang, and replaces them one by one at SIGHUP.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from uvicorn import Config
from uvicorn.supervisors import multiprocess

if TYPE_CHECKING:
    from rankad.service.models import ModelStore

# Reading a large body holds Python's lock; a process that says nothing for longer than this hangs.
_HANGS_SECONDS = 60
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def metrics_of_all() -> Iterator[None]:
    """Have processes count into files of one folder; to be entered before prometheus_client is imported."""
    folder = tempfile.mkdtemp(prefix="rankad-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    try:
        yield
    finally:
        del os.environ["PROMETHEUS_MULTIPROC_DIR"]
        shutil.rmtree(folder, ignore_errors=True)


def run_workers(app: Any, models: ModelStore, workers: int, **options: Any) -> None:
    """Serve an application from several processes until a signal ends them.

    Parameters
    ----------
    app : ASGI application
        With its models loaded.
    models : ModelStore
        Of the application; looked through again before processes are replaced.
    workers : int
    **options
        Of uvicorn.
    """
    if sys.platform != "linux":
        raise ValueError(
            "several workers need Linux; elsewhere start one service for each port, behind a proxy."
        )
    config = Config(app, workers=workers, timeout_worker_healthcheck=_HANGS_SECONDS, **options)
    listening = config.bind_socket()
    # The supervisor makes its processes through this name.
    multiprocess.Process = _Forked  # type: ignore[misc]
    # What is there now is not looked through for garbage, which would write to it.
    gc.collect()
    gc.freeze()
    _Supervisor(config, [listening], models).run()


class _Supervisor(multiprocess.Multiprocess):
    def __init__(self, config: Config, sockets: list[socket.socket], models: ModelStore) -> None:
        super().__init__(config, sockets)
        self._models = models

    def handle_hup(self) -> None:
        # So that new processes share the new models too.
        self._models.refresh(again=True)
        gc.freeze()
        super().handle_hup()


class _Forked(multiprocess.Process):
    """A process of uvicorn's supervisor that is forked, not started from scratch."""

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=self._run, args=(os.getpid(), sockets))  # type: ignore[assignment]

    def start(self) -> None:
        with warnings.catch_warnings():
            # Threads of allocators, which know of forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            super().start()

    def _run(self, parent: int, sockets: list[socket.socket]) -> None:
        # A supervisor that is killed must not leave processes behind that hold the address.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            return
        self.config.configure_logging()
        self.target(sockets)
