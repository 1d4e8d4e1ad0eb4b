"""What the columns of a table hold: numbers, categories, times, ids."""

# Tables need polars: without it, this says what to install.
import rankad.io  # noqa: F401
