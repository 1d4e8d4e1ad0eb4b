"""How a service behaves."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from rankad.service.page.settings import PageSettings


@dataclass(frozen=True)
class Settings:
    """Settings of a service.

    Attributes
    ----------
    models : tuple of path
        The model files.
    host : str
        The address to listen on. Another one than this machine's own needs keys.
    port : int
    keys : path, optional
        The file of API keys; without one, every request is answered.
    history : path or str, optional
        The SQLite database of what was scored, or the URL of a PostgreSQL database; without one, nothing is
        kept.
    keep_days : float
        How long the history is kept.
    most_bytes, most_rows : int
        Limits of one request.
    most_at_once : int
        Requests that are worked on at the same time; others are asked to come again.
    most_bytes_at_once : int
        Size of the bodies of all these together; those beyond it are asked to come again.
    workers : int
        Processes that answer; `most_at_once` and `most_bytes_at_once` are of each.
    read_seconds, score_seconds : float
        How long a client may take to send a request, and how long scoring may take.
    page : PageSettings
        How the page behaves.
    """

    models: tuple[Path, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    keys: Path | None = None
    history: Path | str | None = None
    keep_days: float = 90.0
    most_bytes: int = 64 * 2**20
    most_rows: int = 1_000_000
    most_at_once: int = 256
    most_bytes_at_once: int = 2**30
    workers: int = 1
    read_seconds: float = 30.0
    score_seconds: float = 60.0
    page: PageSettings = field(default_factory=PageSettings)

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("models must name at least one model file.")
        if self.keys is None and not is_loopback(self.host):
            raise ValueError(
                f"host {self.host} can be reached from other machines, so keys are needed: make one with "
                f"rankad serve --new-key NAME --keys FILE, and give --keys FILE."
            )


def is_loopback(host: str) -> bool:
    """Tell a name or address of this machine that no other one can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
