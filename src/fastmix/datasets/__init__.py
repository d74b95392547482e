"""Data sets: the paper's synthetic ones, its real ones, and a real one that always loads."""

from fastmix.datasets.airline import load_airline, load_flights_2001
from fastmix.datasets.beijing import load_beijing
from fastmix.datasets.black_friday import load_black_friday
from fastmix.datasets.flights import load_nycflights13
from fastmix.datasets.rossman import load_rossman
from fastmix.datasets.synthetic import make_correlated, make_sphere
from fastmix.datasets.table import Table
from fastmix.datasets.year_msd import load_year_msd

__all__ = [
    "Table",
    "load_airline",
    "load_beijing",
    "load_black_friday",
    "load_flights_2001",
    "load_nycflights13",
    "load_rossman",
    "load_year_msd",
    "make_correlated",
    "make_sphere",
]
