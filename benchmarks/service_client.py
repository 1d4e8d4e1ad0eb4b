"""The client of `benchmarks.service`, a process of its own: a job as JSON comes in, what it saw goes out.

It writes requests that are made before the clock starts, and reads of an answer its status and its length, so
that little of the time is its own.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Send requests over some connections, when the last was answered or at a rate, and time the answers."""
    requests = [_request(job, base64.b64decode(body)) for body in job["bodies"]]
    with suppress(ImportError):
        import uvloop

        return uvloop.run(_run(job, requests))
    return asyncio.run(_run(job, requests))


def _request(job: dict[str, Any], body: bytes) -> bytes:
    head = (
        f"POST {job['path']} HTTP/1.1\r\nhost: {job['host']}:{job['port']}\r\n"
        f"content-type: {job['kind']}\r\naccept: {job['accept']}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _run(job: dict[str, Any], requests: list[bytes]) -> dict[str, Any]:
    n = job["connections"]
    seen: list[tuple[float, float]] = []
    statuses: Counter[str] = Counter()
    begin = time.perf_counter()
    end = begin + job["seconds"]
    supplies = [itertools.cycle(requests[at:] + requests[:at]) for at in range(n)]
    await asyncio.gather(
        *(_client(job, supply, at, begin, end, seen, statuses) for at, supply in enumerate(supplies))
    )
    took = time.perf_counter() - begin
    # The first tenth is the server getting warm.
    waits = np.array([wait for at, wait in seen if at - begin > job["seconds"] / 10]) * 1e3
    counted = took - job["seconds"] / 10
    return {
        "rate": waits.size / counted,
        "p50_ms": float(np.quantile(waits, 0.5)) if waits.size else None,
        "p99_ms": float(np.quantile(waits, 0.99)) if waits.size else None,
        "statuses": dict(statuses),
    }


async def _client(
    job: dict[str, Any],
    supply: Iterator[bytes],
    number: int,
    begin: float,
    end: float,
    seen: list[tuple[float, float]],
    statuses: Counter[str],
) -> None:
    reader, writer = await asyncio.open_connection(job["host"], job["port"], limit=2**24)
    # At a rate, the wait counts from when the request was due: a slow answer does not hide those behind it.
    every = job["connections"] / job["rate"] if job["rate"] else 0.0
    due = begin + number * every / job["connections"]
    while (due if every else time.perf_counter()) < end:
        sent = due if every else time.perf_counter()
        if every and sent > time.perf_counter():
            await asyncio.sleep(sent - time.perf_counter())
        due += every
        writer.write(next(supply))
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if length is None:
            raise ValueError(f"an answer without a length: {head[:200]!r}")
        await reader.readexactly(int(length[1]))
        seen.append((sent, time.perf_counter() - sent))
        statuses[head[9:12].decode()] += 1
    writer.close()


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin)), sys.stdout)
