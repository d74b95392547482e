"""Losses for rows of any length, and the lengths themselves."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest

from fastmix.kernels import mapped, measured, reference
from fastmix.kernels.losses import CalibratedHuber, least_ridge
from fastmix.kernels.mapped import Mapped, Targets

mp = mpmath.mp.clone()
mp.dps = 60

#: L, the ridge in units of the least, eps_c, longest.
CASES = [
    (1.0, 1.0 + 1e-12, 1.0, 1.0),
    (2.0, 1.0 + 1e-12, 0.6, 5.0),
    (0.03, 1.5, 3.0, 0.2),
    (7.0, 1.5, 0.05, 12.0),
    (1.0, 40.0, 10.0, 3.0),
    (0.5, 1e6, 0.3, 2.0),
]
#: Lengths in units of ``longest``: below, at and above.
SHARES = [1e-3, 0.1, 0.5, 0.999, 1.0, 1.001, 2.0, 50.0]


def made(case):
    lipschitz, more, eps_c, longest = case
    ridge = more * least_ridge(eps_c) * max(1.0, longest) ** 2
    return CalibratedHuber(lipschitz, ridge, eps_c, longest)


def exact_parts(loss, rho):
    """Return the slope and the curvature as the proof has them, in 60 digits, and the zone."""
    L, ridge, eps_c, longest = map(
        mp.mpf, (loss.lipschitz, loss.ridge, loss.eps_c, min(loss.longest, rho))
    )
    w = longest / mp.mpf(rho)
    bound, own = L / longest, ridge / longest**2
    zone = bound * (1 - mp.log(1 + 1 / own) / eps_c)

    def slope(u):
        u = w * abs(u)
        if u <= zone:
            return w * u
        gone = mp.exp(-eps_c * own * (u - zone) / bound) / (1 + own)
        return w * bound * (1 + mp.log(1 - gone) / eps_c)

    def curvature(u):
        u = w * abs(u)
        if u <= zone:
            return w**2
        gone = mp.exp(-eps_c * own * (u - zone) / bound) / (1 + own)
        return w**2 * own * gone / (1 - gone)

    return slope, curvature, zone / w


def grid(loss, rho, count=400):
    """Return residuals around both ends of the zone, and far away."""
    length = min(rho, loss.longest)
    unit = loss.lipschitz / length * rho / length  # where the slope is at its bound
    zone = max(float(loss._zone(length)), 0.0) * rho / length
    near = zone * (1.0 + np.array([-1e-3, -1e-9, 0.0, 1e-9, 1e-3]))
    return np.concatenate([np.linspace(0.0, 4.0, count) * unit, near, unit * np.geomspace(4, 1e6)])


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("case", CASES)
def test_against_the_formula_in_sixty_digits(case, share):
    loss = made(case)
    rho = share * loss.longest
    slope, curvature, _ = exact_parts(loss, rho)
    u = grid(loss, rho, 60)
    at = np.full_like(u, rho)
    bound = loss.lipschitz / rho
    computed = loss.slope(u, at)
    exact = np.array([float(slope(mp.mpf(float(v)))) for v in u])
    # What docs/proofs/objective.md allows for: 16 units of rounding of the slope's bound.
    assert np.abs(computed - exact).max() <= 16.0 * 2.0**-53 * bound
    exact = np.array([float(curvature(mp.mpf(float(v)))) for v in u])
    inside = np.abs(u / u[-1] - exact_parts(loss, rho)[2] / u[-1]) > 1e-12  # not on the jump of f''
    np.testing.assert_allclose(
        loss.curvature(u, at)[inside], exact[inside], rtol=1e-9, atol=1e-12 * exact.max()
    )


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("case", CASES)
def test_the_condition_of_theorem_four(case, share):
    """(C'): f'' <= ridge/rho^2 (exp(eps_c (1 - |f'| rho/L)) - 1), for the values as computed."""
    loss = made(case)
    rho = share * loss.longest
    u = grid(loss, rho, 800)
    at = np.full_like(u, rho)
    slope, curvature = loss.slope(u, at), loss.curvature(u, at)
    assert (np.abs(slope) <= loss.lipschitz / rho * (1.0 + 4e-16)).all()
    for s, c in zip(slope, curvature, strict=True):
        L, r = mp.mpf(loss.lipschitz), mp.mpf(rho)
        room = mp.expm1(mp.mpf(loss.eps_c) * (1 - abs(mp.mpf(float(s))) * r / L))
        room *= mp.mpf(loss.ridge) / r**2
        top = mp.mpf(loss.ridge) / r**2 * mp.expm1(loss.eps_c)
        # Next to |f'| = L/rho both sides are rounding noise in the slope.
        assert mp.mpf(float(c)) <= room * (1 + mp.mpf("1e-9")) + top * mp.mpf("1e-13")


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("case", CASES)
def test_the_condition_holds_for_the_formula_exactly(case, share):
    """The same in 60 digits, where nothing but the formula decides."""
    loss = made(case)
    rho = share * loss.longest
    slope, curvature, zone = exact_parts(loss, rho)
    assert zone >= 0
    for v in grid(loss, rho, 100):
        s, c = slope(mp.mpf(float(v))), curvature(mp.mpf(float(v)))
        room = mp.expm1(mp.mpf(loss.eps_c) * (1 - s * mp.mpf(rho) / mp.mpf(loss.lipschitz)))
        top = mp.mpf(loss.ridge) / mp.mpf(rho) ** 2
        assert c <= top * (room * (1 + mp.mpf("1e-40")) + mp.mpf("1e-50"))


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("case", CASES)
def test_slope_is_that_of_a_convex_function(case, share):
    """Odd, growing, continuous at the ends of the zone, and the integral of the curvature."""
    loss = made(case)
    rho = share * loss.longest
    zone = float(exact_parts(loss, rho)[2])
    bound, reach = loss.lipschitz / rho, float(grid(loss, rho).max()) / 1e5
    # Beyond the zone the curvature may fall on any scale.
    beyond = zone + reach * np.concatenate([[0.0], np.geomspace(1e-12, 1.0, 600)])
    right = np.concatenate([np.linspace(0.0, zone, 50), beyond])
    u = np.unique(np.concatenate([-right, right]))
    at = np.full_like(u, rho)
    slope = loss.slope(u, at)
    np.testing.assert_array_equal(loss.slope(-u, at), -slope)
    assert (np.diff(slope) >= -4e-16 * bound).all()
    # f'' <= 1, so a slope without jumps grows by no more than the residual does.
    assert (np.diff(slope) <= np.diff(u) + 8e-16 * bound).all()
    x, w = np.polynomial.legendre.leggauss(12)
    middle, half = (u[1:] + u[:-1]) / 2.0, np.diff(u) / 2.0
    nodes = middle[:, None] + half[:, None] * x
    areas = (loss.curvature(nodes, np.full_like(nodes, rho)) @ w) * half
    np.testing.assert_allclose(np.diff(slope), areas, rtol=1e-6, atol=1e-13 * bound)


@pytest.mark.parametrize("case", CASES)
def test_no_lengths_mean_length_one(case):
    loss = made(case)
    if loss.longest < 1.0:
        loss = made((*case[:3], 1.0))
    u = np.concatenate([-grid(loss, 1.0), grid(loss, 1.0)])
    ones = np.ones_like(u)
    np.testing.assert_array_equal(loss.slope(u), loss.slope(u, ones))
    np.testing.assert_array_equal(loss.curvature(u), loss.curvature(u, ones))
    np.testing.assert_array_equal(loss.leaves(u), loss.leaves(u, ones))


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("case", CASES)
def test_leaves_tells_where_the_loss_is_no_square(case, share):
    loss = made(case)
    rho = share * loss.longest
    u = grid(loss, rho)
    at = np.full_like(u, rho)
    stays = ~loss.leaves(u, at)
    np.testing.assert_array_equal(loss.slope(u, at)[stays], u[stays])
    np.testing.assert_array_equal(loss.curvature(u, at)[stays], 1.0)


@pytest.mark.parametrize("longest", [1.0, 3.0, 100.0])
def test_a_ridge_that_is_too_small_for_the_longest_row_is_refused(longest):
    least = least_ridge(1.0) * longest**2
    CalibratedHuber(1.0, least * (1.0 + 1e-12), 1.0, longest)
    with pytest.raises(ValueError, match="ridge must be at least"):
        CalibratedHuber(1.0, least * (1.0 - 1e-9), 1.0, longest)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_a_longest_row_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="longest"):
        CalibratedHuber(1.0, 10.0, 1.0, wrong)


# --- passes --------------------------------------------------------------------------------------


def problem(seed, n=300, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1).max()
    rho = np.exp(rng.normal(size=n))
    return Mapped(X), Targets(rng.uniform(-1, 1, n)), rng.normal(size=d), rng.normal(size=d), rho


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernels", [reference, mapped], ids=["reference", "mapped"])
def test_passes_are_direct_sums(case, kernels):
    A, targets, theta, v, rho = problem(0)
    loss = made(case)
    X, y = A.X, targets.y
    residual = y - X @ theta
    slope = [float(loss.slope(residual[i : i + 1], rho[i : i + 1])[0]) for i in range(len(y))]
    curvature = loss.curvature(y - X @ theta, rho)
    if kernels is reference:
        total, square, outside = reference.slopes(A, targets, theta, loss, True, rho)
        product = reference.curved(A, targets, theta, loss, v, lengths=rho)
    else:
        total, square, outside = mapped.slopes(A, targets, theta, loss, excess=True, lengths=rho)
        product = mapped.curved(A, targets, theta, loss, v, lengths=rho)
    size = np.abs(X).T @ np.abs(slope)
    np.testing.assert_allclose(total.sum(axis=0), X.T @ slope, rtol=0, atol=1e-14 * size.max())
    np.testing.assert_allclose(square, X.T @ ((1.0 - curvature)[:, None] * X), atol=1e-10)
    np.testing.assert_allclose(product, X.T @ (curvature * (X @ v)), atol=1e-10)
    assert outside == loss.leaves(y - X @ theta, rho).sum()


def test_error_of_sums_with_lengths_is_the_stated_one():
    """`summation_error`, relative to the sum of the absolute terms, is what rounding is charged.

    Equal terms whose last bits are just below half a unit of the sum: half of them round down.
    """
    n = 1 << 18
    unit = float(np.finfo(np.longdouble).eps) * 2.0**16  # of a sum between 2^16 and 2^17
    y = np.full(n, 0.5 + 0.5 * unit - 2.0**-53)
    loss = CalibratedHuber(10.0, 1e3, 5.0)
    # Two columns: one alone would be added up in pairs.
    total, _, _ = mapped.slopes(
        Mapped(np.ones((n, 2))), Targets(y), np.zeros(2), loss, lengths=np.ones(n)
    )
    exact = Fraction(float(y[0])) * n
    error = abs(Fraction(float(total[0, 0])) + Fraction(float(total[1, 0])) - exact)
    assert float(error / exact) <= mapped.summation_error(loss)


# --- lengths -------------------------------------------------------------------------------------


def exact_lengths(X, T):
    """Return the squared lengths of T'x as fractions."""
    T = [[Fraction(float(t)) for t in row] for row in T]
    squares = []
    for x in X:
        x = [Fraction(float(v)) for v in x]
        entries = [sum(x[i] * T[i][j] for i in range(len(x))) for j in range(len(T[0]))]
        squares.append(sum(e * e for e in entries))
    return squares


MEASURED = {
    "reference": reference.row_lengths,
    "double": measured.row_lengths,
    "single": partial(measured.row_lengths, single=True),
}


def hostile(kind, rng, n, d):
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1)[:, None] * (1.0 + 1e-12)
    T = rng.normal(size=(d, d))
    if kind == "ill-conditioned":
        U, V = np.linalg.qr(T)[0], np.linalg.qr(rng.normal(size=(d, d)))[0]
        T = U @ np.diag(np.geomspace(1e-12, 1e12, d)) @ V
    elif kind == "cancelling":  # rows in the kernel of T', up to rounding
        T = np.outer(np.ones(d), rng.normal(size=d)) * 1e8 + 1e-8 * T
        X -= X.mean(axis=1)[:, None]
    elif kind == "subnormal entries":
        X[:, 1:] = rng.integers(-5, 6, size=(n, d - 1)) * 5e-324
    elif kind == "subnormal transform":
        T[1:] = rng.integers(-5, 6, size=(d - 1, d)) * 5e-324
    elif kind == "large":
        T *= 1e100
    elif kind == "mixed rows":
        X *= 10.0 ** rng.uniform(-12, 0, (n, 1))
    return X, T


@pytest.mark.parametrize("d", [2, 5, 12])
@pytest.mark.parametrize(
    "kind",
    [
        "random",
        "ill-conditioned",
        "cancelling",
        "subnormal entries",
        "subnormal transform",
        "large",
        "mixed rows",
    ],
)
@pytest.mark.parametrize(("name", "error"), [("reference", 0), ("double", 0), ("single", 1e-4)])
def test_lengths_are_upper_bounds_in_exact_arithmetic(kind, d, name, error):
    rng = np.random.default_rng(d)
    X, T = hostile(kind, rng, 40, d)
    for least in (1e-30, 1.0):
        rho = MEASURED[name](Mapped(X), T, least)
        assert (rho >= least).all()
        for length, square in zip(rho, exact_lengths(X, T), strict=True):
            assert Fraction(float(length)) ** 2 >= square
            # Not much longer either: rounding of the rows is all that is added.
            slack = (1e-12 + error) * math.sqrt(d) * np.linalg.norm(T) + least
            assert length <= math.sqrt(float(square)) + slack + error


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("triangular", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (37, 3), (1000, 7), (600, 40), (130, 150), (70, 600)])
def test_lengths_with_targets_and_maps(n, d, triangular, single):
    """Compiled lengths are those of the rows joined by their targets, through every map."""
    rng = np.random.default_rng(n + d)
    X, y = rng.uniform(-1.5, 1.5, (n, d)), rng.uniform(-1, 1, n)
    T = rng.normal(size=(d + 2, d + 2))
    T = np.triu(T) if triangular else T
    ends = -np.ones(d), np.ones(d)
    for order, dtype in (("C", np.float64), ("F", np.float64), ("C", np.float32)):
        A = Mapped(
            np.asarray(X, dtype=dtype, order=order),
            *ends,
            rng.uniform(-0.1, 0.1, d),
            rng.uniform(0.5, 1.0, d),
            rng.uniform(0.1, 1.0, n),
            0.3,
        )
        targets = Targets(y, -0.9, 0.9, 0.1, 0.8)
        rows = np.column_stack((np.asarray(A), np.asarray(targets)))
        exact = np.linalg.norm(rows @ T, axis=1)
        norm = np.linalg.norm(rows, axis=1).max()
        for bound in (None, norm):
            rho = measured.row_lengths(A, T, 0.1, targets=targets, norm=bound, single=single)
            error = 2.0 * measured.length_error(T, single=single) * norm + 1e-15
            assert (rho >= exact * (1.0 - 1e-13)).all()
            assert (rho <= np.maximum(exact, 0.1) + error).all()
        plain = measured.row_lengths(A, T[:-1, :-1], 0.1)
        expected = reference.row_lengths(A, T[:-1, :-1], 0.1)
        np.testing.assert_allclose(plain, expected, rtol=1e-11)


@pytest.mark.parametrize("single", [False, True])
def test_the_length_of_a_record_does_not_depend_on_where_it_lies(single):
    """Files, clusters and arrays cut their rows in different ways."""
    rng = np.random.default_rng(4)
    X, T = rng.normal(size=(1001, 23)), rng.normal(size=(23, 23))
    whole = measured.row_lengths(Mapped(X), T, 0.1, single=single)
    for cut in (1, 5, 8, 16, 500):
        part = measured.row_lengths(Mapped(X[cut:]), T, 0.1, single=single)
        np.testing.assert_allclose(part, whole[cut:], rtol=1e-13)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (100, 3), (5000, 11), (300, 90), (200, 140)])
def test_second_moments_and_counts_are_those_of_numpy(n, d, monkeypatch):
    rng = np.random.default_rng(n * d)
    X, y, theta = rng.normal(size=(n, d)) / d, rng.uniform(-1, 1, n), rng.normal(size=d)
    T, lengths = rng.normal(size=(d + 1, d + 1)), rng.uniform(0.1, 3.0, n)
    edges = np.geomspace(1e-2, 2.0, 17)
    for A in (Mapped(X), Mapped(np.asfortranarray(X)), Mapped(X, factors=rng.random(n))):
        moments = measured.second_moments(A, Targets(y), T, 0.9)
        expected = reference.second_moments(A, Targets(y), T, 0.9)
        np.testing.assert_allclose(moments, expected, atol=1e-12 * n)
        arguments = A, Targets(y), theta, lengths, 1.5, edges
        counts = measured.slope_counts(*arguments)
        np.testing.assert_array_equal(counts, reference.slope_counts(*arguments))
        with monkeypatch.context() as patch:
            patch.setenv("FASTMIX_NUM_THREADS", "1")
            np.testing.assert_array_equal(counts, measured.slope_counts(*arguments))
    lost = X.copy()
    lost[n // 2, 0] = np.nan
    assert np.isnan(measured.slope_counts(Mapped(lost), *arguments[1:])).all()
    assert np.isnan(measured.second_moments(Mapped(lost), Targets(y), T, 0.9)).any()


def test_the_length_of_a_record_depends_on_it_alone():
    """Theorem 4 asks for a function of the record: other records' losses must not change."""
    rng = np.random.default_rng(3)
    X, T = hostile("mixed rows", rng, 40, 5)
    present = reference.row_lengths(Mapped(X), 1e6 * T, 1e-3)
    longest = int(np.argmax(np.linalg.norm(X, axis=1)))
    X[longest] = 0.0  # the neighbour
    absent = reference.row_lengths(Mapped(X), 1e6 * T, 1e-3)
    others = np.arange(len(X)) != longest
    np.testing.assert_array_equal(present[others], absent[others])
