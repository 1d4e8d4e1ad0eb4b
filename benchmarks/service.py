"""``python -m benchmarks.service``: how fast `rankad serve` answers, beside what it could and beside others.

    python -m benchmarks.service                       # some four minutes, printed
    python -m benchmarks.service --minutes 10 --peer-python PATH --out results/service    # `make service`

The first watches memory at 80 % load for one minute, the second for ten and adds MLServer, which the other
Python has; interrupted, it goes on with the parts that are missing. Client and servers are processes on this
machine; the compared ones take turns.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import rankad
from benchmarks import service_page, service_peer
from rankad import RankAD, TableDetector

JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
N_TRAINING, N_COLUMNS, N_BATCH = 2_000, 10, 10_000
NAMES = [f"x{at}" for at in range(N_COLUMNS)]


def do_nothing() -> Any:
    """Return an application of the same framework that reads a request and answers an empty object."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def answer(request: Any) -> Response:
        await request.body()
        return Response(b"{}", media_type=JSON)

    return Starlette(routes=[Route("/score", answer, methods=["POST"])])


def rows_of(n: int, seed: int) -> np.ndarray:
    """Draw rows of two clusters with correlated columns."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(0).normal(size=(N_COLUMNS, N_COLUMNS)) / 3 + np.eye(N_COLUMNS)
    return rng.normal(size=(n, N_COLUMNS)) @ mixing + 4 * rng.integers(0, 2, size=(n, 1))


def table_of(rows: np.ndarray, seed: int) -> dict[str, Any]:
    """Return rows as a table whose last column is a category."""
    words = np.random.default_rng(seed).choice(["eco", "full", "off"], size=len(rows))
    return {**dict(zip(NAMES[:-1], rows.T, strict=False)), "mode": words}


def save_models(folder: Path) -> None:
    """Fit and save an array's model and a table's."""
    rows = rows_of(N_TRAINING, 1)
    RankAD(0.01).fit(rows).save(folder / "array.rankad")
    TableDetector(RankAD(0.01)).fit(table_of(rows, 1)).save(folder / "table.rankad")


def child_environment() -> dict[str, str]:
    """Return an environment in which a process imports what this one does."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@contextmanager
def serving(*command: str, ready: str, folder: Path, port: int = 0) -> Iterator[tuple[int, int]]:
    """Start a server, and yield its process id and port once its log says that it is ready."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if command[0] == sys.executable:
        environment = child_environment()
    process = subprocess.Popen(
        command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment
    )
    assert process.stdout is not None
    said, up = list[str](), False
    try:
        for line in process.stdout:
            said.append(line)
            if not port and (found := re.search(r"running on https?://\S*?:(\d+)", line)):
                port = int(found[1])
            up = up or ready in line
            if port and up:
                break
        else:
            raise RuntimeError(f"{command[0]} ended: {''.join(said[-20:])}")
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(60)


def rankad_serving(folder: Path, *options: str) -> Any:
    """Serve both models."""
    command = [sys.executable, "-c", "from rankad.cli import main; main()", "serve"]
    models = [str(folder / "array.rankad"), str(folder / "table.rankad")]
    return serving(
        *command, *models, "--port", "0", *options, ready="Application startup complete", folder=folder
    )


def nothing_serving(folder: Path) -> Any:
    """Serve the application that does nothing."""
    command = [sys.executable, "-m", "uvicorn", "benchmarks.service:do_nothing", "--factory", "--port", "0"]
    return serving(*command, "--no-access-log", ready="Application startup complete", folder=folder)


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def send(
    server: tuple[int, int],
    path: str,
    bodies: Sequence[bytes],
    *,
    kind: str = JSON,
    connections: int = 32,
    seconds: float = 5.0,
    rate: float | None = None,
) -> dict[str, Any]:
    """Have a client send requests from a process of its own, and return what it saw."""
    pid, port = server
    job = {
        "host": "127.0.0.1",
        "port": port,
        "path": path,
        "kind": kind,
        "accept": kind,
        "bodies": [base64.b64encode(body).decode() for body in bodies],
        "connections": connections,
        "seconds": seconds,
        "rate": rate,
    }
    before = processor_seconds(pid)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.service_client"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=True,
        env=child_environment(),
    )
    found: dict[str, Any] = json.loads(done.stdout)
    if set(found["statuses"]) != {"200"}:
        raise RuntimeError(f"{path}: not all requests were answered: {found['statuses']}")
    return found | {"busy_us": 1e6 * (processor_seconds(pid) - before) / found["statuses"]["200"]}


def single_rows(n: int = 200) -> dict[str, list[bytes]]:
    """Return requests of one row each, of the array's model and of the table's."""
    rows = rows_of(n, 2)
    table = table_of(rows, 2)
    cells = [{name: plain(table[name][at]) for name in table} for at in range(n)]
    return {
        "array": [json.dumps([row]).encode() for row in rows.tolist()],
        "table": [json.dumps([row]).encode() for row in cells],
    }


def plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's."""
    return value.item() if hasattr(value, "item") else value


def batches() -> dict[str, pa.Table]:
    """Return 10,000 rows for each model."""
    rows = rows_of(N_BATCH, 3)
    return {
        "array": pa.table(dict(zip(NAMES, rows.T, strict=True))),
        "table": pa.table({name: pa.array(cells) for name, cells in table_of(rows, 3).items()}),
    }


def as_arrow(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def in_process(folder: Path, name: str, table: pa.Table, seconds: float) -> dict[str, float]:
    """Time `rankad.score_batch` in this process, on one thread of its own."""
    detector: Any = rankad.load(folder / f"{name}.rankad")
    getattr(detector, "detector_", detector).n_jobs = 1
    rankad.score_batch(detector, table)
    n, begin, busy = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        rankad.score_batch(detector, table)
        n += 1
    rate = n / (time.perf_counter() - begin)
    return {"rate": rate, "busy_us": 1e6 * (time.process_time() - busy) / n}


def measure_single(folder: Path, rounds: int, seconds: float) -> dict[str, Any]:
    """Time single rows beside an endpoint that does nothing, by turns."""
    rows, found = single_rows(), dict[str, list[Any]]()
    with ExitStack() as stack:
        nothing = stack.enter_context(nothing_serving(folder))
        kept = stack.enter_context(rankad_serving(folder, "--history", str(folder / "single.sqlite")))
        bare = stack.enter_context(rankad_serving(folder, "--history", "none"))
        places = {
            "nothing": (nothing, "/score", rows["table"]),
            "array": (kept, "/models/array/score", rows["array"]),
            "table": (kept, "/models/table/score", rows["table"]),
            "array, no history": (bare, "/models/array/score", rows["array"]),
            "table, no history": (bare, "/models/table/score", rows["table"]),
        }
        for _ in range(rounds):
            for name, (server, path, bodies) in places.items():
                found.setdefault(name, []).append(send(server, path, bodies, seconds=seconds))
    return {name: typical(each) for name, each in found.items()}


def typical(runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the medians of several runs."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0] if name != "statuses"}


def measure_batches(folder: Path, rounds: int, seconds: float) -> dict[str, Any]:
    """Time batches of 10,000 rows in Arrow beside the same rows in process, by turns."""
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    with rankad_serving(folder, "--history", str(folder / "batches.sqlite")) as server:
        for _ in range(rounds):
            for name, table in batches().items():
                runs = found.setdefault(name, {"served": [], "in process": []})
                runs["in process"].append(in_process(folder, name, table, seconds))
                runs["served"].append(
                    send(
                        *(server, f"/models/{name}/score", [as_arrow(table)]),
                        kind=ARROW,
                        connections=1,
                        seconds=seconds,
                    )
                )
    return {name: {kind: typical(each) for kind, each in runs.items()} for name, runs in found.items()}


def resident(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0


def measure_memory(folder: Path, minutes: float, rate: float) -> dict[str, Any]:
    """Watch the memory of a service that gets single rows at a rate, and a batch each second."""
    bodies, batch = single_rows()["table"], as_arrow(batches()["table"])
    seen: list[float] = []
    with rankad_serving(folder, "--history", str(folder / "memory.sqlite")) as (pid, port):
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(1.0):
                send_batch(port, batch)
                seen.append(resident(pid))

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            run = send((pid, port), "/models/table/score", bodies, seconds=60 * minutes, rate=rate)
        finally:
            stop.set()
            watching.join()
    third = max(1, len(seen) // 3)
    return {
        "minutes": minutes,
        "rate": rate,
        "answered": run["rate"],
        "p99_ms": run["p99_ms"],
        "second_third": statistics.mean(seen[third : 2 * third] or seen),
        "last_third": statistics.mean(seen[-third:]),
        "seen": seen,
    }


def send_batch(port: int, body: bytes) -> None:
    """Send one batch."""
    import urllib.request

    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/models/table/score",
        data=body,
        headers={"content-type": ARROW, "accept": ARROW},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        response.read()


def measure_peer(folder: Path, python: str, rounds: int, seconds: float) -> dict[str, Any]:
    """Time MLServer and this service on the same requests, by turns."""
    peer, port = service_peer.prepare(folder, python, rows_of(N_TRAINING, 1))
    found = service_peer.measure(
        lambda: rankad_serving(folder, "--history", str(folder / "peer.sqlite")),
        lambda: serving(
            *service_peer.command_of(python, peer), ready="startup complete", folder=peer, port=port
        ),
        partial(send, seconds=seconds),
        rows_of(N_BATCH, 3),
        rounds,
    )
    return {what: {name: typical(runs) for name, runs in each.items()} for what, each in found.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts that are asked for, print the page, and write it after each of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--rounds", type=int, default=3, help="turns of each comparison")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each turn")
    parser.add_argument("--minutes", type=float, default=1.0, help="of the memory's watch")
    parser.add_argument("--peer-python", help="a Python whose environment has mlserver and mlserver-sklearn")
    parser.add_argument(
        "--out", type=Path, help="folder of results and the page; a run that was interrupted goes on there"
    )
    asked = parser.parse_args(arguments)
    parts = [part for part in PARTS if part in asked.parts and (part != "peer" or asked.peer_python)]
    if "memory" in parts and "single" not in parts:
        # Its rate is a share of that of single rows.
        parts.insert(0, "single")
    kept = Kept(asked.out, {"rounds": asked.rounds, "seconds": asked.seconds, "minutes": asked.minutes})
    found = kept.found(parts)
    load, failed = os.getloadavg()[0], list[str]()
    with tempfile.TemporaryDirectory() as name:
        save_models(Path(name))
        for part in parts:
            if part in found:
                continue
            print(f"measuring: {part}", file=sys.stderr, flush=True)
            try:
                found[part] = PARTS[part](Path(name), asked, found)
            except Exception as error:
                failed.append(f"{part}: {error}")
                continue
            kept.add(part, found[part])
            kept.write_page(_page(found, load, asked))
    print(_page(found, load, asked))
    if failed:
        raise SystemExit("\n".join(failed))


def _page(found: Mapping[str, Any], load: float, asked: argparse.Namespace) -> str:
    command = f"python -m benchmarks.service --rounds {asked.rounds} --seconds {asked.seconds:g}"
    command += f" --minutes {asked.minutes:g}" + (" --peer-python PYTHON" if "peer" in found else "")
    return service_page.page(
        {part: found[part] for part in PARTS if part in found}, load=load, command=command
    )


class Kept:
    """The results of the parts that were measured, in a folder; nothing is kept without one.

    Parameters
    ----------
    folder : path or None
    settings : mapping
        Results of other settings are measured again.
    """

    def __init__(self, folder: Path | None, settings: Mapping[str, Any]) -> None:
        self._folder, self._settings = folder, dict(settings)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def found(self, parts: Sequence[str]) -> dict[str, Any]:
        """Return what an interrupted run measured; after one that was completed, nothing."""
        if self._folder is None:
            return {}
        found = {}
        for part in parts:
            path = self._folder / f"{part}.json"
            if path.exists():
                told = json.loads(path.read_text())
                if told["settings"] == self._settings:
                    found[part] = told["found"]
        return {} if len(found) == len(parts) else found

    def add(self, part: str, found: Any) -> None:
        """Keep the results of a part."""
        if self._folder is not None:
            path = self._folder / f"{part}.json"
            path.with_suffix(".part").write_text(json.dumps({"settings": self._settings, "found": found}))
            path.with_suffix(".part").replace(path)

    def write_page(self, text: str) -> None:
        """Write the page of what there is so far."""
        if self._folder is not None:
            (self._folder / "service.md").write_text(text + "\n")


PARTS: dict[str, Callable[[Path, argparse.Namespace, Mapping[str, Any]], Any]] = {
    "single": lambda folder, asked, found: measure_single(folder, asked.rounds, asked.seconds),
    "batches": lambda folder, asked, found: measure_batches(folder, asked.rounds, asked.seconds),
    "peer": lambda folder, asked, found: measure_peer(folder, asked.peer_python, asked.rounds, asked.seconds),
    "memory": lambda folder, asked, found: measure_memory(
        folder, asked.minutes, 0.8 * found["single"]["table"]["rate"]
    ),
}


if __name__ == "__main__":
    main()
