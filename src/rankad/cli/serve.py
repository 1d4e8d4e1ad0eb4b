"""``rankad serve``: models behind an address."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import typer

from rankad.cli import options as opt


def serve(
    models: list[Path] | None = typer.Argument(
        None, metavar="MODEL...", help="Model files; each is served under its name without suffix."
    ),
    host: str = opt.option(
        "127.0.0.1", "--host ADDRESS", "Address to listen on; another than loopback needs --keys."
    ),
    port: int = opt.option(8000, "--port N", "Port; 0 takes a free one.", min=0, max=65535),
    keys: Path | None = opt.option(None, "--keys FILE", "File of API keys."),
    new_key: str | None = opt.option(
        None, "--new-key NAME", "Add a key to the file of --keys, print it once, and stop."
    ),
    admin: bool = opt.option(False, "--admin", "With --new-key: may also reload models."),
    history: str = opt.option(
        "rankad-history.sqlite",
        "--history FILE",
        "Where to keep what was scored: an SQLite database, or postgresql://...; none keeps nothing.",
    ),
    keep_days: float = opt.option(90.0, "--keep-days DAYS", "How long the history is kept.", min=0),
    most_megabytes: int = opt.option(64, "--most-megabytes N", "Largest body of a request.", min=1),
    most_rows: int = opt.option(1_000_000, "--most-rows N", "Most rows of a request.", min=1),
    tls_certificate: Path | None = opt.option(None, "--tls-certificate FILE", "PEM file; with --tls-key."),
    tls_key: Path | None = opt.option(None, "--tls-key FILE", "PEM file."),
    workers: int = opt.option(
        1, "--workers N", "Processes that answer; they share the memory of the models.", min=1, max=64
    ),
    log_requests: bool = opt.option(False, "--log-requests", "Log every request."),
    log_json: bool = opt.option(False, "--log-json", "Log lines of JSON."),
    table: list[Path] | None = opt.option(
        None, "--table FILE", "Table that the page offers, beside those that are uploaded; may be repeated."
    ),
    page: bool = opt.option(True, "--page/--no-page", "Whether there is a page at /."),
    demo: bool = opt.option(False, "--demo", "Serve example models and tables, and send rows to them."),
) -> None:
    """Serve models over HTTP: rows in, p-values out, for every alpha without refitting.

    At / there is a page for people. GET /openapi.json describes the interface for programs. A model whose
    file changes is loaded again meanwhile.
    """
    if demo:
        _serve_demo(dict(locals()))
        return
    if new_key is not None:
        _add_key(keys, new_key, admin=admin)
        return
    if admin:
        raise opt.refuse("--admin", "it goes with --new-key NAME")
    if not models:
        raise opt.refuse("MODEL", "name at least one model file, or give --demo")
    if (tls_certificate is None) != (tls_key is None):
        raise opt.refuse("--tls-key", "--tls-key and --tls-certificate go together; give both files")
    if history != "none" and "://" not in history:
        opt.check_file(history, "--history", [*models, *([] if keys is None else [keys])])
    try:
        import uvicorn

        from rankad.service.page.settings import PageSettings
        from rankad.service.settings import Settings
        from rankad.service.workers import metrics_of_all, run_workers
    except ImportError as error:
        raise _extra_missing(error) from error
    settings = Settings(
        tuple(models),
        host,
        port,
        keys,
        _history(history),
        keep_days,
        most_bytes=most_megabytes * 2**20,
        most_rows=most_rows,
        workers=workers,
        page=PageSettings(shown=page, tables=tuple(table or ())),
    )
    with metrics_of_all() if workers > 1 else contextlib.nullcontext():
        try:
            from rankad.service.app import make_app
            from rankad.service.logs import log_config
            from rankad.service.protocol import PatientProtocol
        except ImportError as error:
            raise _extra_missing(error) from error
        options: dict[str, Any] = {
            "host": host,
            "port": port,
            "log_config": log_config(as_json=log_json, requests=log_requests),
            "access_log": False,
            "server_header": False,
            "http": PatientProtocol,
            "ws": "none",
            "timeout_graceful_shutdown": 30,
            "ssl_certfile": tls_certificate,
            "ssl_keyfile": tls_key,
        }
        app = make_app(settings)
        names = ", ".join(path.stem for path in models)
        typer.echo(f"Serving {names} at http{'s' if tls_key else ''}://{host}:{port}", err=True)
        if workers > 1:
            run_workers(app, app.state.service.models, workers, **options)
        else:
            uvicorn.run(app, **options)


def _extra_missing(error: ImportError) -> typer.BadParameter:
    return typer.BadParameter(
        f"rankad serve needs the extra serve ({error}): pip install 'rankad[serve]'", param_hint="serve"
    )


def _history(target: str) -> Path | str | None:
    if target == "none":
        return None
    return target if "://" in target else Path(target)


def _serve_demo(given: dict[str, Any]) -> None:
    """Serve the example instead of what was given."""
    from rankad.cli.serving_demo import example_folder

    if given["models"] or given["table"]:
        raise opt.refuse("--demo", "it brings its own models and tables; leave out others")
    if given.get("workers", 1) > 1:
        # Processes cannot be forked after models were fitted on tables.
        raise opt.refuse("--workers", "--demo runs in one process")
    with example_folder(given["host"], given["port"]) as example:
        own = {"models": example.models, "table": example.tables, "history": str(example.history)}
        serve(**given | own | {"demo": False})


def _add_key(keys: Path | None, name: str, *, admin: bool) -> None:
    from rankad.service.keys import KeyFile

    if keys is None:
        raise opt.refuse("--new-key", "say which file the key goes to: --keys FILE")
    secret = KeyFile.add(keys, name, "admin" if admin else "read")
    typer.echo(f"Key for {name}, shown this once; send it as Authorization: Bearer KEY", err=True)
    typer.echo(secret)
