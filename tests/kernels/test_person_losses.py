"""The loss for persons: its formulas, its condition, and what it refuses."""

import numpy as np
import pytest
from scipy.integrate import quad

from fastmix.kernels.losses import LinearHuber, Loss, least_person_ridge

CASES = [(1.0, 3.0, 0.6, 1.0), (0.2, 40.0, 0.5, 3.0), (5.0, 2.0, 2.0, 1.5), (1.0, 2.0, 0.5, 1.0)]


@pytest.mark.parametrize("case", CASES)
def test_the_condition_holds_with_equality_outside(case):
    loss = LinearHuber(*case)
    lipschitz, ridge, eps_c, longest = case
    u = np.linspace(-9.0, 9.0, 2001) * lipschitz
    for length in (0.1, 1.0, longest, 3.0 * longest):
        lengths = np.full(len(u), length)
        slope, curvature = loss.slope(u, lengths), loss.curvature(u, lengths)
        counts = min(length, longest)
        weight = counts / length
        # Of the row that counts, shortened if it is longer.
        allowed = ridge / counts**2 * eps_c * (1.0 - np.abs(slope) / weight * counts / lipschitz)
        assert (curvature / weight**2 <= allowed * (1.0 + 1e-9) + 1e-12).all()
        # The gradient of any row is at most L, and the curvature term at most what is charged.
        assert (np.abs(slope) * length <= lipschitz * (1.0 + 1e-12)).all()
        outside = loss.leaves(u, lengths) & (curvature > 1e-6)
        np.testing.assert_allclose(
            (curvature / weight**2)[outside & (curvature < weight**2)],
            allowed[outside & (curvature < weight**2)],
            rtol=1e-6,
        )


@pytest.mark.parametrize("case", CASES)
def test_curvature_is_the_derivative(case):
    loss = LinearHuber(*case)
    for length in (0.3, 2.0):
        for u in (0.7 * loss.zone, 1.5, 4.0):
            lengths = np.array([length])
            area, _ = quad(
                lambda t, lengths=lengths: loss.curvature(np.array([t]), lengths)[0],
                0.0,
                u,
                limit=200,
            )
            assert loss.slope(np.array([u]), lengths)[0] == pytest.approx(area, rel=1e-6)


def test_squares_inside_and_lengths_of_one():
    loss = LinearHuber(1.0, 4.0, 0.5)
    assert loss.zone == 0.5
    u = np.array([-0.5, 0.0, 0.3])
    assert list(loss.slope(u)) == list(u)
    assert list(loss.curvature(u)) == [1.0, 1.0, 1.0]
    assert not loss.leaves(u).any()
    ones = np.ones(5)
    far = np.array([-3.0, -0.6, 0.2, 0.7, 9.0])
    np.testing.assert_array_equal(loss.slope(far), loss.slope(far, ones))
    protocol: Loss = loss
    assert protocol.is_calibrated(4.0, 0.5)
    assert not protocol.is_calibrated(3.9, 0.5)
    assert not protocol.is_calibrated(4.0, 0.4)


def test_refusals():
    assert least_person_ridge(0.5) == 2.0
    with pytest.raises(ValueError, match="ridge must be at least 2"):
        LinearHuber(1.0, 1.9, 0.5)
    with pytest.raises(ValueError, match="ridge must be at least 18"):
        LinearHuber(1.0, 2.0, 0.5, 3.0)
