"""Tables of numbers, categories, times and missing values as rows of numbers."""

from rankad.columns.kinds import ColumnWarning
from rankad.tables.encoded_columns import Strange
from rankad.tables.encoding import Encoded, TableEncoder
from rankad.tables.frames import Untyped

__all__ = ["ColumnWarning", "Encoded", "Strange", "TableEncoder", "Untyped"]
