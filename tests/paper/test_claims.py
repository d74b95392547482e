"""Claims 1 and 2, the algebra behind Lemma 1: seeded search, and exact where it can be."""

import mpmath
import numpy as np


def objective(alpha, x, y):
    """The logarithm of Claim 1 with x = c^2 - a b and y = a + 2c, where both arguments are > 0."""
    return alpha * np.log(1 + x + y) - np.log(1 + alpha * y + alpha**2 * x)


def test_claim_1_the_supremum_is_at_the_lower_end():
    rng, asked = np.random.default_rng(0), 0
    for _ in range(400):
        alpha, m = 1.0 + rng.exponential(2.0), rng.uniform(0.0, 0.9)
        ell = rng.uniform(0.0, 0.3)
        if 1 - alpha * m - alpha**2 * ell <= 1e-6:
            continue
        top = objective(alpha, -ell, -m)
        x = -ell * rng.uniform(size=2000)
        y = rng.uniform(-m, m, size=2000)
        assert (objective(alpha, x, y) <= top + 1e-12).all()
        asked += 1
    assert asked > 50


def test_claim_1_needs_the_range_of_y():
    """Beyond +m the other end is larger: the assumption |M| <= m is used."""
    assert objective(2.0, -0.01, 5.0) > objective(2.0, -0.01, -0.2)


def test_claim_2_by_its_second_derivative():
    """g is convex on [0, 4/5): its second derivative is the printed fraction, without a root."""

    def g(z):
        return mpmath.log(1 - z - z**2 / 4) - mpmath.log(1 - 5 * z / 4)

    with mpmath.workdps(30):
        for z in mpmath.linspace(0, 0.79, 40):
            bottom = (4 - 5 * z) ** 2 * (4 - 4 * z - z**2) ** 2
            printed = (16 + 32 * z - 112 * z**2 + 80 * z**3 - 25 * z**4) / bottom
            assert mpmath.almosteq(mpmath.diff(g, z, 2), printed, 1e-9)
    roots = np.roots([-25, 80, -112, 32, 16])
    real = roots[np.abs(roots.imag) < 1e-9].real
    assert np.allclose(np.sort(real), [-0.247, 0.814], atol=1e-3)


def test_claim_2_itself():
    x = np.geomspace(1.26, 1e4, 60)[:, None]
    alpha = 1.0 + (0.8 * x - 1.0) * np.linspace(1e-3, 1 - 1e-3, 60)
    left = alpha * np.log(1 - 1 / x - 1 / (4 * x**2)) - np.log(
        1 - alpha / x - alpha**2 / (4 * x**2)
    )
    right = alpha * np.log(1 - 5 / (4 * x)) - np.log(1 - 5 * alpha / (4 * x))
    assert (left <= right + 1e-12).all()
