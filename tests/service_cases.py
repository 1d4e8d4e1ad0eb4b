"""What the tests of the service share: small models, tables, and services in processes of their own."""

import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import threading

import httpx2 as httpx
import numpy as np
import polars as pl
import starlette.testclient

from rankad import RankAD, TableDetector

# Without keys, the service answers to names of this machine alone.
TestClient = functools.partial(starlette.testclient.TestClient, base_url="http://127.0.0.1")
STRANGE = [{"flow": 99.0, "mode": "eco"}]


def quick(alpha=0.05):
    return RankAD(alpha, bandwidth="D_K", C=0.1, landmarks=40, near_field=False, n_components=0)


def table_of(n, seed):
    rng = np.random.default_rng(seed)
    mode = rng.choice(["eco", "full"], size=n)
    return pl.DataFrame({"flow": rng.normal(5, 1, size=n) + (mode == "full"), "mode": mode})


def make_models(folder):
    """Save a model of a table, pump, and one of an array, plain."""
    TableDetector(quick()).fit(table_of(300, 0)).save(folder / "pump.rankad")
    quick().fit(np.random.default_rng(0).normal(size=(200, 2))).save(folder / "plain.rankad")
    return folder


class Running:
    """``rankad serve`` in a process of its own, on a free port; wait for it with `url`."""

    def __init__(self, *arguments, **environment):
        command = [sys.executable, "-c", "from rankad.cli import main; main()", "serve", *map(str, arguments)]
        # A group of its own, so that all its processes can be killed.
        self.process = subprocess.Popen(
            [*command, "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | environment,
        )
        self.log, self._said = [], threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            with self._said:
                self.log.append(line)
                self._said.notify_all()

    def wait_for(self, pattern, times=1, seconds=60):
        """Wait until so many lines of the log match, and return the last match."""

        def found():
            return [match for line in self.log if (match := re.search(pattern, line))]

        with self._said:
            assert self._said.wait_for(lambda: len(found()) >= times, seconds), "".join(self.log)
            return found()[times - 1]

    @property
    def url(self):
        url = self.wait_for(r"running on (https?://\S+)")[1]
        self.wait_for("Application startup complete")
        return url

    def score(self, request_id, rows=STRANGE):
        return httpx.post(f"{self.url}/models/pump/score", json=rows, headers={"x-request-id": request_id})

    def stop(self, number=signal.SIGTERM):
        """Send a signal to the first process, wait for it, and return its exit status."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def kill_all(self):
        """Kill every process at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        self.process.stderr.close()
