"""Public knowledge of a table: columns, kinds, bounds and categories, and its file."""

from fastmix.schema.bounds import PublicBounds
from fastmix.schema.bounds_file import read_bounds
from fastmix.schema.features import Category, Labels, Number, Term

__all__ = ["Category", "Labels", "Number", "PublicBounds", "Term", "read_bounds"]
