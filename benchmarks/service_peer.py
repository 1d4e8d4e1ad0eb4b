"""MLServer with scikit-learn's IsolationForest, sent what `rankad serve` is sent by the same client.

MLServer is in an environment of its own, which is named by its Python; nothing of it is imported here.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

_FIT = """
import sys, joblib, numpy
from sklearn.ensemble import IsolationForest
joblib.dump(IsolationForest(random_state=0).fit(numpy.load(sys.argv[1])), sys.argv[2])
"""


def free_ports(n: int) -> list[int]:
    """Return ports that nobody listens on just now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def prepare(folder: Path, python: str, rows: np.ndarray) -> tuple[Path, int]:
    """Fit the forest, write MLServer's settings, and return their folder and the port."""
    peer = folder / "mlserver"
    peer.mkdir()
    np.save(peer / "rows.npy", rows)
    subprocess.run([python, "-c", _FIT, peer / "rows.npy", peer / "model.joblib"], check=True)
    http, grpc, metrics = free_ports(3)
    # One process, as rankad serve has one.
    settings = {
        "host": "127.0.0.1",
        "http_port": http,
        "grpc_port": grpc,
        "metrics_port": metrics,
        "parallel_workers": 0,
        "debug": False,
    }
    model = {
        "name": "forest",
        "implementation": "mlserver_sklearn.SKLearnModel",
        "parameters": {"uri": "./model.joblib"},
    }
    (peer / "settings.json").write_text(json.dumps(settings))
    (peer / "model-settings.json").write_text(json.dumps(model))
    return peer, http


def tensor(name: str, rows: np.ndarray) -> bytes:
    """Return an inference request of the Open Inference Protocol."""
    data = {"name": name, "shape": list(rows.shape), "datatype": "FP64", "data": rows.ravel().tolist()}
    return json.dumps({"inputs": [data]}).encode()


def command_of(python: str, peer: Path) -> list[str]:
    """Return the command that starts MLServer."""
    return [python, "-m", "mlserver.cli.main", "start", str(peer)]


def requests_of(name: str, rows: np.ndarray, n_single: int = 200) -> dict[str, list[bytes]]:
    """Return requests of one row each, and one of all rows."""
    return {
        "one row": [tensor(name, row[None]) for row in rows[:n_single]],
        "10,000 rows": [tensor(name, rows)],
    }


def measure(
    serving: Callable[[], AbstractContextManager[Any]],
    peer_serving: Callable[[], AbstractContextManager[Any]],
    send: Callable[..., dict[str, Any]],
    rows: np.ndarray,
    rounds: int,
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Send both servers the same rows in the same protocol, by turns."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    with serving() as ours, peer_serving() as theirs:
        places = {
            "rankad serve": (ours, "/v2/models/array/infer", requests_of("rows", rows)),
            "MLServer, IsolationForest": (theirs, "/v2/models/forest/infer", requests_of("predict", rows)),
        }
        for _ in range(rounds):
            for name, (server, path, requests) in places.items():
                for what, bodies in requests.items():
                    run = send(server, path, bodies, connections=32 if what == "one row" else 1)
                    found.setdefault(what, {}).setdefault(name, []).append(run)
    return found
