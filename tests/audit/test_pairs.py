"""The neighbours are as bad as they are said to be."""

import numpy as np
import pytest

from fastmix.audit.case import lone_row
from fastmix.audit.releases import bounded_rows
from fastmix.releases.sensitivity import distortion_sensitivity, sketched_eigenvalue_sensitivity
from fastmix.sketches import SRHT
from tests.audit import release_cases as pairs


def seen_by(draw, X):
    """Return the distortion and the smallest eigenvalue, from the dense matrix of a sketch."""
    S = draw.to_dense()
    distorted = (S.T @ S - np.diag(np.einsum("ij,ij->j", S, S))) @ X
    m_hat = np.linalg.norm(distorted, axis=1).max()
    return m_hat, max(0.0, np.linalg.eigvalsh((S @ X).T @ (S @ X))[0])


DRAWS = [SRHT(k2, n).sample(seed) for seed, (k2, n) in enumerate([(8, 16), (64, 128), (5, 13)])]


@pytest.mark.parametrize("draw", DRAWS, ids=lambda d: f"{d.k2}x{d.n}")
def test_coherent_row_attains_the_sensitivity_of_m(draw):
    pair = pairs.coherent_row(draw)
    present, absent = (seen_by(draw, data.X)[0] for data in (pair.present, pair.absent))
    difference = present - absent
    assert difference == pytest.approx(distortion_sensitivity(draw.coherence))


@pytest.mark.parametrize("draw", DRAWS, ids=lambda d: f"{d.k2}x{d.n}")
def test_aligned_rows_attain_the_sensitivity_of_lambda(draw):
    pair = pairs.aligned_rows(draw)
    values = [seen_by(draw, data.X)[1] for data in (pair.present, pair.absent)]
    m = seen_by(draw, pair.present.X)[0]
    assert values[0] - values[1] == pytest.approx(sketched_eigenvalue_sensitivity(m))


def test_weakest_direction_moves_the_smallest_eigenvalue_by_one():
    pair = pairs.weakest_direction(9, 4)
    values = [np.linalg.eigvalsh(d.X.T @ d.X)[0] for d in (pair.present, pair.absent)]
    assert values == pytest.approx([4.0, 3.0])


def test_careless_records_are_brought_back_into_their_bounds():
    data = lone_row(4, 2).present
    (rows, targets), *_ = bounded_rows(data).blocks()
    assert np.linalg.norm(data.stretched()[0], axis=1).max() == 3.0
    assert rows == pytest.approx(data.X, abs=1e-12)
    assert targets == pytest.approx(data.y)
