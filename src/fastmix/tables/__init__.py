"""Tables in files: read by public bounds, encoded from public categories, written back."""

from fastmix.tables.bounds_file import read_bounds
from fastmix.tables.columns import Columns
from fastmix.tables.delimited import TextFormat
from fastmix.tables.encode import encode, table_bytes, table_chunks
from fastmix.tables.features import Category, Labels, Number, Term
from fastmix.tables.read import read_columns, table_fields, write_predictions
from fastmix.tables.schema import PublicBounds
from fastmix.tables.template import bounds_template

__all__ = [
    "Category",
    "Columns",
    "Labels",
    "Number",
    "PublicBounds",
    "Term",
    "TextFormat",
    "bounds_template",
    "encode",
    "read_bounds",
    "read_columns",
    "table_bytes",
    "table_chunks",
    "table_fields",
    "write_predictions",
]
