"""Mixed tables: numbers, categories and missing values, read from files and scored as they are."""

try:
    import polars  # noqa: F401
except ImportError as error:
    raise ImportError(
        "rankad.tables needs polars, which is not installed; install it with pip install 'rankad[tables]'."
    ) from error

from rankad.tables.columns import Strange
from rankad.tables.detector import TableDetector
from rankad.tables.encoding import Encoded, TableEncoder
from rankad.tables.frames import Untyped
from rankad.tables.kinds import ColumnWarning

__all__ = ["ColumnWarning", "Encoded", "Strange", "TableDetector", "TableEncoder", "Untyped"]
