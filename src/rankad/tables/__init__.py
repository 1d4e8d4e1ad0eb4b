"""Tables of numbers, categories, times and missing values as rows of numbers."""

from rankad.columns.inferred import ColumnWarning
from rankad.tables.encoding import Encoded, TableEncoder
from rankad.tables.frames import Untyped
from rankad.tables.strange_cells import StrangeCell

__all__ = ["ColumnWarning", "Encoded", "StrangeCell", "TableEncoder", "Untyped"]
