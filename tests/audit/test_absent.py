"""Absent records are zeros behind every public map, in estimators with an intercept too."""

import numpy as np
import pytest

from fastmix import FastIHM
from fastmix.audit import estimator_case
from fastmix.audit.fits import PresentRows
from fastmix.data import ArrayRows, RowMap
from fastmix.paper import FastIterativeHessianMixing
from fastmix.sketches import SRHT


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    side = np.ones(2)
    row_map = RowMap(1.0, -side, side, 0.1 * side, side, constant=0.7, divisor=np.hypot(1.0, 0.7))
    return ArrayRows(rng.uniform(-2.0, 2.0, (5, 2)), row_map, rng.uniform(-1.0, 1.0, 5))


def stacked(rows):
    A, y = (np.concatenate(parts) for parts in zip(*rows.blocks(), strict=True))
    return A, y


def test_absent_rows_are_zeros_behind_every_map(rows):
    present = np.array([True, False, True, True, False])
    seen = PresentRows(rows, present)
    mean = np.array([0.2, -0.1, 0.5])
    for each, all_ in ((seen, rows), (seen.centred(mean), rows.centred(mean))):
        A, y = stacked(each)
        whole, targets = stacked(all_)
        assert not A[~present].any()
        assert not y[~present].any()
        assert pytest.approx(whole[present]) == A[present]
        assert np.array_equal(y[present], targets[present])
        assert np.linalg.norm(whole[~present], axis=1).min() > 0.0
        assert (each.n, each.d, each.bound, each.constant) == (5, A.shape[1], 1.0, all_.constant)
        draw = SRHT(4, 5).sample(0)
        Z, m_hat = each.sketch(draw)
        assert pytest.approx(draw.to_dense() @ A) == Z
        assert pytest.approx(Z) == each.apply(draw)
        assert m_hat == pytest.approx(draw.sketch_and_distortion(A)[1])
        assert each.total() == pytest.approx(A.sum(axis=0))
        assert each.gram() == pytest.approx(A.T @ A)


def test_an_estimator_with_an_intercept_sees_one_record_or_none(monkeypatch):
    seen, solve = [], FastIterativeHessianMixing.solve

    def watched(self, rows, *plan):
        seen.append(rows.gram())
        return solve(self, rows, *plan)

    monkeypatch.setattr(FastIterativeHessianMixing, "solve", watched)
    model = FastIHM(epsilon=2.0, delta=1e-5, sketch_size=16, n_steps=2)
    case = estimator_case(model)
    seen.clear()
    for data in (case.pair.present, case.pair.absent):
        # The ratio, its parts (mean, eigenvalue, sketch, gradients), coefficients and eta. A sketch
        # of as many rows as the data distorts nothing, and no bound on that is released.
        assert case.draw(data, 1, np.random.default_rng(0)).shape == (1, 1 + 4 + 3)
    # A fit on one data set, and a replay on the other.
    for present, absent in ((seen[0], seen[1]), (seen[3], seen[2])):
        assert present == pytest.approx(np.full((2, 2), 0.5))
        assert not absent.any()
