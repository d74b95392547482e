"""Neighbouring data sets that are as hard to hide from each other as the relation allows."""

import numpy as np

from fastmix._types import FloatArray
from fastmix.audit.case import Data, Pair
from fastmix.sketches import SketchDraw


def lone_row(n: int = 4, d: int = 1) -> Pair:
    """Return one record at the norm bound among n - 1 of zeros, in the last of d columns."""
    X = np.zeros((n, d))
    X[0, -1] = 1.0
    return _without("one row at the norm bound, zeros elsewhere", X, 0)


def weakest_direction(n: int, weak: int) -> Pair:
    """Return n rows along one axis and ``weak`` along another, one of which is removed."""
    X = np.zeros((n + weak, 2))
    X[weak:, 0] = 1.0
    X[:weak, 1] = 1.0
    return _without(f"a row along the weakest direction, which {weak} rows share", X, 0)


def one_direction(n: int) -> Pair:
    """Return n equal rows of one column, one of which is removed."""
    return _without(f"one of {n} equal rows at the norm bound", np.ones((n, 1)), 0)


def coherent_row(draw: SketchDraw) -> Pair:
    """Return the lone row that moves m-hat most: the column that another one resembles most."""
    P = _overlaps(draw)
    i = int(P.max(axis=1).argmax())
    X = np.zeros((draw.n, 1))
    X[i] = 1.0
    return _without("the row that moves m-hat most, zeros elsewhere", X, i)


def aligned_rows(draw: SketchDraw) -> Pair:
    """Return rows that all lean towards one: the sketched eigenvalue moves by 1 + 2 m-hat."""
    U = draw.to_dense()
    P = _overlaps(draw)
    i = int(P.sum(axis=1).argmax())
    signs = np.where(U.T @ U[:, i] < 0.0, -1.0, 1.0)
    return _without("the row that maximises m-hat, the rest aligned with it", signs[:, None], i)


def _overlaps(draw: SketchDraw) -> FloatArray:
    U = draw.to_dense()
    P = np.abs(U.T @ U)
    np.fill_diagonal(P, 0.0)
    return P


def _without(description: str, X: FloatArray, i: int) -> Pair:
    """Return the pair in which record i is present with target 1, the others having 0."""
    y = np.zeros(len(X))
    y[i] = 1.0
    absent = X.copy()
    absent[i] = 0.0
    return Pair(description, Data(X, y), Data(absent, np.zeros(len(X))))
