"""Tables from files and into files, batch by batch."""

try:
    import polars  # noqa: F401
except ImportError as error:
    raise ImportError(
        "rankad needs polars for tables, and it is not installed; install it with "
        "pip install 'rankad[tables]'."
    ) from error
