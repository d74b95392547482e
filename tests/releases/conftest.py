"""Dense sketches and adversarial data, shared by the tests of the releases."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from fastmix.sketches import SRHT, KerdockSketch, SketchDraw, SubsampledDCT


@dataclass(frozen=True, eq=False)
class DenseDraw(SketchDraw):
    """Any matrix as a sketch; it overrides nothing that it could compute faster."""

    matrix: np.ndarray

    def __post_init__(self):
        self._hold("matrix", np.float64, (self.k2, self.n))

    def _forward(self, tile):
        return self.matrix @ tile.astype(np.float64)

    def _backward(self, tile):
        return self.matrix.T @ tile.astype(np.float64)


def dense(matrix):
    matrix = np.asarray(matrix, dtype=np.float64)
    return DenseDraw(*matrix.shape, matrix)


def unit_columns(draw):
    """Return S~ with unit (or zero) columns and the norms of the columns of S."""
    S = draw.to_dense()
    norms = np.linalg.norm(S, axis=0)
    norms[norms < 1e-12] = 0.0
    return S * np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0), norms


def clipped(X, c=1.0):
    X = np.asarray(X, dtype=np.float64)
    return X * np.minimum(1.0, c / np.maximum(np.linalg.norm(X, axis=1), 1e-300))[:, None]


def _random(n, d, P, rng):
    return clipped(rng.standard_normal((n, d)) * rng.uniform(0.1, 3.0))


def _one_direction(n, d, P, rng):
    return np.outer(rng.choice([-1.0, 1.0], n), clipped(rng.standard_normal((1, d)) * 9)[0])


def _all_equal(n, d, P, rng):
    return np.tile(clipped(rng.standard_normal((1, d)) * 9), (n, 1))


def _single_row(n, d, P, rng):
    X = np.zeros((n, d))
    X[rng.integers(n)] = clipped(rng.standard_normal((1, d)) * 9)[0]
    return X


def _duplicated(n, d, P, rng):
    return clipped(rng.standard_normal((2, d)) * 9)[rng.integers(0, 2, n)]


def _weakest(n, d, P, rng):
    """All rows along the first axis but one, which alone carries the last."""
    X = np.zeros((n, d))
    X[:, 0] = rng.choice([-1.0, 1.0], n)
    i = rng.integers(n)
    X[i] = 0.0
    X[i, -1] = 1.0
    return X


def _most_distorted(n, d, P, rng):
    """Rows of equal direction whose signs add up in one row of (S~'S~ - I) X~."""
    i = int(np.abs(P).sum(axis=1).argmax())
    signs = np.where(P[i] < 0, -1.0, 1.0)
    signs[i] = rng.choice([-1.0, 1.0])
    return np.outer(signs, clipped(rng.standard_normal((1, d)) * 9)[0])


def _rank_deficient(n, d, P, rng):
    basis = rng.standard_normal((max(1, d - 1), d))
    return clipped(rng.standard_normal((n, len(basis))) @ basis)


def _tiny_but_one(n, d, P, rng):
    X = 1e-6 * rng.standard_normal((n, d))
    X[rng.integers(n)] = clipped(rng.standard_normal((1, d)) * 9)[0]
    return X


FAMILIES = [
    _random,
    _one_direction,
    _all_equal,
    _single_row,
    _duplicated,
    _weakest,
    _most_distorted,
    _rank_deficient,
    _tiny_but_one,
]


def _draws():
    """Every fast sketch, at sizes that include 1, powers of two and others, and ugly matrices."""
    rng = np.random.default_rng(20240501)
    yield from (
        SRHT(k2, n).sample(seed)
        for seed, (k2, n) in enumerate(
            [(1, 1), (1, 2), (2, 2), (1, 4), (2, 5), (3, 6), (8, 8), (5, 13), (16, 16), (7, 16)]
        )
    )
    yield from (
        SubsampledDCT(k2, n).sample(seed)
        for seed, (k2, n) in enumerate([(1, 1), (1, 3), (2, 5), (3, 8), (7, 7), (4, 13)])
    )
    yield from (
        KerdockSketch(k2, n).sample(seed)
        for seed, (k2, n) in enumerate([(1, 1), (2, 4), (4, 3), (4, 8), (8, 13)])
    )
    yield dense(np.full((1, 4), 0.5))
    yield dense(rng.standard_normal((3, 9)) * np.geomspace(1e-3, 30.0, 9))
    yield dense(np.hstack([np.eye(3), 2.0 * np.eye(3), np.zeros((3, 1))]))
    yield dense(np.outer([3.0, 4.0], np.linspace(-1.0, 1.0, 6)))


@pytest.fixture(scope="session")
def tools():
    return SimpleNamespace(
        dense=dense,
        unit_columns=unit_columns,
        clipped=clipped,
        families=FAMILIES,
        draws=list(_draws()),
    )
