"""``rankad serve``: models behind an address."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["serve"]


def serve(
    models: Annotated[
        list[Path] | None,
        typer.Argument(metavar="MODEL...", help="Model files; each is served under its name without suffix."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; another than loopback needs --keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    keys: Annotated[Path | None, typer.Option(metavar="FILE", help="File of API keys.")] = None,
    new_key: Annotated[
        str | None,
        typer.Option(
            "--new-key", metavar="NAME", help="Add a key to the file of --keys, print it once, and stop."
        ),
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="With --new-key: may also reload models.")] = False,
    history: Annotated[
        str,
        typer.Option(metavar="FILE", help="SQLite database of what was scored; none keeps nothing."),
    ] = "rankad-history.sqlite",
    keep_days: Annotated[float, typer.Option(min=0, help="How long the history is kept.")] = 90.0,
    most_megabytes: Annotated[int, typer.Option(min=1, help="Largest body of a request.")] = 64,
    most_rows: Annotated[int, typer.Option(min=1, help="Most rows of a request.")] = 1_000_000,
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PEM file; with --tls-key.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="PEM file.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every request.")] = False,
) -> None:
    """Serve models over HTTP: rows in, p-values out, for every alpha without refitting.

    GET /openapi.json describes the interface. A model whose file changes is loaded again meanwhile.
    """
    if new_key is not None:
        _add_key(keys, new_key, admin=admin)
        return
    if not models:
        raise typer.BadParameter("name at least one model file", param_hint="MODEL")
    try:
        import uvicorn

        from rankad.service.app import make_app
        from rankad.service.settings import Settings
    except ImportError as error:
        raise typer.BadParameter(
            f"rankad serve needs the extra serve ({error}): pip install 'rankad[serve]'", param_hint="serve"
        ) from error
    settings = Settings(
        tuple(models),
        host,
        port,
        keys,
        None if history == "none" else Path(history),
        keep_days,
        most_bytes=most_megabytes * 2**20,
        most_rows=most_rows,
    )
    scheme = "https" if tls_certificate else "http"
    typer.echo(f"Serving {', '.join(path.stem for path in models)} at {scheme}://{host}:{port}", err=True)
    uvicorn.run(
        make_app(settings),
        host=host,
        port=port,
        log_level="debug" if verbose else "info",
        access_log=verbose,
        server_header=False,
        timeout_graceful_shutdown=30,
        ssl_certfile=tls_certificate,
        ssl_keyfile=tls_key,
    )


def _add_key(keys: Path | None, name: str, *, admin: bool) -> None:
    from rankad.service.keys import KeyFile

    if keys is None:
        raise typer.BadParameter("say which file the key goes to: --keys FILE", param_hint="--new-key")
    secret = KeyFile.add(keys, name, "admin" if admin else "read")
    typer.echo(f"Key for {name}, shown this once; send it as Authorization: Bearer KEY", err=True)
    typer.echo(secret)
