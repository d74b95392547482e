"""Data sets: the paper's synthetic ones, and real ones that always load."""

from fastmix.datasets.flights import load_nycflights13
from fastmix.datasets.synthetic import make_correlated, make_sphere

__all__ = ["load_nycflights13", "make_correlated", "make_sphere"]
