"""Every Rényi curve against its display at 50 digits, against determinants and its range."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad

from fastmix.accounting import (
    rdp_fast_mix,
    rdp_fast_mix_unbounded,
    rdp_gauss_mix,
    rdp_gaussian,
    rdp_laplace,
)
from fastmix.sketches import SparseSketch
from tests.accounting.paper import rdp_fast_mix_simple

GAMMAS = [1.1, 1.2072, 1.3, 2.0, 3.125, 3.2, 10.0, 57.3, 1e3, 1e6, 1e10]
#: Fractions of the admissible range of alpha - 1.
FRACTIONS = [1e-3, 0.01, 0.2, 0.5, 0.9, 0.999999]
C_SQUARED = [1.0, 1.0 + 1e-9, 1.5, 3.0, 40.0, 1e6]


def below(limit):
    """Largest float below a number given at any precision."""
    value = float(limit)
    return value if value < limit else math.nextafter(value, -math.inf)


def not_below(limit):
    """Smallest float at or above a number given at any precision."""
    value = float(limit)
    return value if value >= limit else math.nextafter(value, math.inf)


# --- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", GAMMAS)
def test_gauss_mix_is_proposition_2(oracle, gamma):
    for alpha in 1.0 + np.array(FRACTIONS) * (gamma - 1.0):
        wanted = float(oracle.gauss_mix(alpha, gamma))
        assert rdp_gauss_mix(alpha, gamma) == pytest.approx(wanted, rel=1e-9), alpha


@pytest.mark.parametrize("gamma", [g for g in GAMMAS if g > 1.2072])
def test_fast_mix_is_appendix_c1(oracle, gamma):
    for c_sq in (None, *C_SQUARED):
        largest = float(gamma / oracle.fast_mix_limit(c_sq))
        for alpha in 1.0 + np.array(FRACTIONS) * (largest - 1.0):
            wanted = float(oracle.fast_mix(alpha, gamma, c_sq))
            found = rdp_fast_mix(alpha, gamma, c_sq)
            assert found == pytest.approx(wanted, rel=1e-9), (alpha, c_sq)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_unbounded_is_appendix_c2(oracle, gamma):
    # For gamma near 1 the range of alpha is tiny and the value badly conditioned in alpha.
    rel = 1e-7 if gamma < 1.2 else 1e-9
    for alpha in 1.0 + np.array(FRACTIONS) * (gamma / (2.0 * math.sqrt(gamma) - 1.0) - 1.0):
        wanted = float(oracle.fast_mix_unbounded(alpha, gamma))
        assert rdp_fast_mix_unbounded(alpha, gamma) == pytest.approx(wanted, rel=rel), alpha


@pytest.mark.parametrize("gamma", [3.126, 5.0, 100.0, 1e5])
def test_simple_is_lemma_1(gamma):
    alpha = np.linspace(1.0, 8.0 * gamma / 25.0, 7)[1:-1]
    np.testing.assert_allclose(
        rdp_fast_mix_simple(alpha, gamma), 25.0 * alpha / (32.0 * gamma**2), rtol=1e-15
    )


@pytest.mark.parametrize("alpha", [1.0001, 1.5, 2.0, 17.0, 1e4])
@pytest.mark.parametrize("sigma", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("sensitivity", [0.0, 0.3, 2.0])
def test_gaussian_is_lemma_7(alpha, sigma, sensitivity):
    assert rdp_gaussian(alpha, sigma, sensitivity) == pytest.approx(
        alpha * sensitivity**2 / (2.0 * sigma**2), rel=1e-15
    )


def test_gaussian_equals_numerical_integration():
    alpha, sigma, shift = 3.0, 0.8, 0.7

    def integrand(x):
        return math.exp(
            (-alpha * (x - shift) ** 2 + (alpha - 1.0) * x**2) / (2.0 * sigma**2)
        ) / math.sqrt(2.0 * math.pi * sigma**2)

    moment, _ = quad(integrand, -20.0, 20.0, epsabs=1e-13, points=[0.0, shift, alpha * shift])
    assert rdp_gaussian(alpha, sigma, shift) == pytest.approx(
        math.log(moment) / (alpha - 1.0), rel=1e-10
    )


@pytest.mark.parametrize("alpha", [1.001, 1.5, 2.0, 8.0, 60.0])
@pytest.mark.parametrize("t", [0.05, 0.7, 3.0])
def test_laplace_equals_numerical_integration(alpha, t):
    """Integrate p^alpha q^(1-alpha) for unit Laplace densities at distance t."""

    def integrand(x):
        return 0.5 * math.exp(-alpha * abs(x) + (alpha - 1.0) * abs(x - t))

    pieces = [(-80.0, 0.0), (0.0, t), (t, 80.0)]
    moment = math.fsum(quad(integrand, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in pieces)
    scale = 2.5
    assert rdp_laplace(alpha, scale, t * scale) == pytest.approx(
        math.log(moment) / (alpha - 1.0), rel=1e-8
    )


@pytest.mark.parametrize("t", [1e-12, 1e-6, 1e-3, 9e-3, 1.1e-2, 0.5, 2.0, 30.0, 800.0])
@pytest.mark.parametrize("alpha", [1.0 + 1e-9, 1.01, 1.5, 2.0, 10.0, 1e3, 1e7])
def test_laplace_at_50_digits_and_below_pure(oracle, t, alpha):
    mp = oracle.mp
    a, x = mp.mpf(alpha), mp.mpf(t)
    inside = a / (2 * a - 1) * mp.exp((a - 1) * x) + (a - 1) / (2 * a - 1) * mp.exp(-a * x)
    got = rdp_laplace(alpha, 1.0, t)
    assert got == pytest.approx(float(mp.log(inside) / (a - 1)), rel=1e-9)
    assert got <= t
    assert rdp_laplace(math.inf, 1.0, t) == t


@pytest.mark.parametrize("shift", [2.0**-52, 1e-14, 1e-12, 1e-9, 1e-7])
@pytest.mark.parametrize("gamma", [2.0, 3.0, 10.0, 1e3, 1e10])
def test_curves_do_not_vanish_next_to_order_one(oracle, gamma, shift):
    """The limit is a Kullback-Leibler divergence; rounding it to 0 would be epsilon 0."""
    alpha = 1.0 + shift
    for curve, expected in (
        (rdp_gauss_mix, oracle.gauss_mix(alpha, gamma)),
        (rdp_fast_mix, oracle.fast_mix(alpha, gamma)),
        (lambda a, g: rdp_fast_mix(a, g, 3.0), oracle.fast_mix(alpha, gamma, 3.0)),
    ):
        got = curve(alpha, gamma)
        assert float(expected) * (1.0 - 1e-9) <= got <= float(expected) * (1.0 + 1e-4)


@pytest.mark.parametrize("gamma", [1e150, 1e200, 1e300])
def test_huge_gamma_is_next_to_no_loss(gamma):
    for curve in (rdp_gauss_mix, rdp_fast_mix, rdp_fast_mix_simple, rdp_fast_mix_unbounded):
        assert 0.0 <= curve(2.0, gamma) < 1e-100


def test_order_infinity_without_sensitivity():
    assert rdp_gaussian(math.inf, 1.0, 0.0) == math.inf


# --- ranges: inf exactly outside ----------------------------------------------------------------

CURVES = {
    "gauss_mix": lambda a: rdp_gauss_mix(a, 10.0),
    "fast_mix": lambda a: rdp_fast_mix(a, 10.0),
    "fast_mix C^2=3": lambda a: rdp_fast_mix(a, 10.0, 3.0),
    "simple": lambda a: rdp_fast_mix_simple(a, 10.0),
    "unbounded": lambda a: rdp_fast_mix_unbounded(a, 10.0),
    "gaussian": lambda a: rdp_gaussian(a, 2.0),
    "laplace": lambda a: rdp_laplace(a, 2.0),
}


@pytest.mark.parametrize("name", CURVES)
def test_orders_that_are_no_renyi_orders_give_inf(name):
    for alpha in (1.0, 0.999, 0.0, -3.0, -math.inf, math.nan):
        assert CURVES[name](alpha) == math.inf
    if name != "laplace":
        assert CURVES[name](math.inf) == math.inf


@pytest.mark.parametrize("gamma", [1.5, 2.0, 10.0, 1234.5])
def test_gauss_mix_range(gamma):
    assert rdp_gauss_mix(math.nextafter(gamma, 0.0), gamma) < math.inf
    assert rdp_gauss_mix(gamma, gamma) == math.inf
    assert rdp_gauss_mix(2.0 * gamma, gamma) == math.inf


@pytest.mark.parametrize("gamma", [1.5, 2.0, 10.0, 1234.5])
@pytest.mark.parametrize("c_sq", [None, *C_SQUARED])
def test_fast_mix_range(oracle, gamma, c_sq):
    limit = gamma / oracle.fast_mix_limit(c_sq)
    assert rdp_fast_mix(below(limit * (1 - oracle.mp.mpf("1e-14"))), gamma, c_sq) < math.inf
    assert rdp_fast_mix(not_below(limit * (1 + oracle.mp.mpf("1e-14"))), gamma, c_sq) == math.inf
    assert rdp_fast_mix(2.0 * gamma, gamma, c_sq) == math.inf


@pytest.mark.parametrize("gamma", [1.5, 4.0, 9.0, 1234.5])
def test_unbounded_range(oracle, gamma):
    mp = oracle.mp
    limit = mp.mpf(gamma) / (2 * mp.sqrt(gamma) - 1)
    assert rdp_fast_mix_unbounded(below(limit * (1 - mp.mpf("1e-14"))), gamma) < math.inf
    assert rdp_fast_mix_unbounded(not_below(limit * (1 + mp.mpf("1e-14"))), gamma) == math.inf


def test_simple_range():
    assert rdp_fast_mix_simple(3.1999, 10.0) < math.inf
    assert rdp_fast_mix_simple(3.2, 10.0) == math.inf
    assert rdp_fast_mix_simple(1.00001, 25.0 / 8.0) == math.inf
    assert rdp_fast_mix_simple(1.00001, 3.1251) < math.inf


@pytest.mark.parametrize("gamma", [1.0, 0.999, 0.5, 0.0, -7.0])
def test_gamma_at_and_below_the_limit_gives_inf(gamma):
    alpha = np.array([1.0 + 1e-12, 1.001, 1.5, 10.0])
    for curve in (rdp_gauss_mix, rdp_fast_mix, rdp_fast_mix_simple, rdp_fast_mix_unbounded):
        assert np.isposinf(curve(alpha, gamma)).all()
    assert np.isposinf(rdp_fast_mix(alpha, gamma, 2.0)).all()


def test_gamma_between_one_and_gamma_bar_gives_inf(oracle):
    gamma = below(oracle.fast_mix_limit())
    assert gamma > 1.2
    assert rdp_fast_mix(1.0 + 1e-6, gamma) == math.inf
    assert rdp_fast_mix(1.0 + 1e-6, gamma, 1.0) < math.inf  # C^2 = 1 needs gamma > 1 only


def test_infinite_gamma_is_no_loss():
    alpha = np.array([1.5, 2.0, 100.0])
    for curve in (rdp_gauss_mix, rdp_fast_mix, rdp_fast_mix_simple, rdp_fast_mix_unbounded):
        np.testing.assert_array_equal(curve(alpha, math.inf), 0.0)
    np.testing.assert_array_equal(rdp_gaussian(alpha, math.inf), 0.0)


# --- relations ----------------------------------------------------------------------------------


@given(
    log_gamma=st.floats(math.log(3.13), math.log(1e6)),
    fraction=st.floats(1e-3, 0.999),
    c_sq=st.floats(1.0, 1e3),
)
def test_ordering_of_the_three_bounds(log_gamma, fraction, c_sq):
    gamma = math.exp(log_gamma)
    alpha = 1.0 + fraction * (8.0 * gamma / 25.0 - 1.0)
    assume(alpha > 1.0 + 1e-6)
    phi, phi_bar = rdp_fast_mix(alpha, gamma, c_sq), rdp_fast_mix(alpha, gamma)
    assert 0.0 < rdp_gauss_mix(alpha, gamma) <= phi * (1.0 + 1e-9)
    assert phi <= phi_bar * (1.0 + 1e-9)
    assert phi_bar <= rdp_fast_mix_simple(alpha, gamma)


@given(
    log_gamma=st.floats(math.log(1.21), math.log(1e6)),
    fraction=st.floats(1e-3, 0.999),
    more=st.floats(1.001, 10.0),
)
def test_curves_fall_in_gamma_and_rise_in_alpha(log_gamma, fraction, more):
    gamma = math.exp(log_gamma)
    alpha = 1.0 + fraction * (gamma / 1.2072 - 1.0)
    assume(alpha > 1.0 + 1e-6)
    for curve in (rdp_gauss_mix, rdp_fast_mix):
        assert curve(alpha, gamma * more) <= curve(alpha, gamma)
        assert curve(alpha, gamma) <= curve(1.0 + (alpha - 1.0) * more, gamma) * (1.0 + 1e-9)


@pytest.mark.parametrize("gamma", [1.3, 5.0, 1e4])
def test_fast_mix_with_c_squared_one_is_gauss_mix(gamma):
    alpha = np.linspace(1.0, 1.2 * gamma, 50)
    np.testing.assert_array_equal(rdp_fast_mix(alpha, gamma, 1.0), rdp_gauss_mix(alpha, gamma))


def test_fast_mix_for_large_c_squared_tends_to_phi_bar():
    assert rdp_fast_mix(3.0, 10.0, 1e12) == pytest.approx(rdp_fast_mix(3.0, 10.0), rel=1e-10)


@pytest.mark.parametrize("name", CURVES)
def test_vectorised_and_scalar_agree(name):
    alpha = np.array([[0.5, 1.0, 1.2], [2.0, 3.1, math.nan]])
    together = CURVES[name](alpha)
    assert isinstance(together, np.ndarray)
    assert together.shape == alpha.shape
    one_by_one = [CURVES[name](a) for a in alpha.ravel().tolist()]
    assert all(type(value) is float for value in one_by_one)
    np.testing.assert_array_equal(together.ravel(), one_by_one)
    np.testing.assert_array_equal(CURVES[name]([2, 3]), CURVES[name](np.array([2.0, 3.0])))
    assert CURVES[name]([]).shape == (0,)


# --- against the divergence itself --------------------------------------------------------------


def unit_columns(rng, rows, columns):
    style = rng.integers(4)
    if style == 0:
        sketch = rng.normal(size=(rows, columns))
    elif style == 1:
        sketch = rng.choice([-1.0, 1.0], size=(rows, columns))
    elif style == 2:  # nearly parallel columns: large coherence
        sketch = rng.normal(size=(rows, 1)) + 0.1 * rng.normal(size=(rows, columns))
    else:  # nearly orthonormal columns
        sketch = np.eye(rows, columns) + 0.1 * rng.normal(size=(rows, columns))
    return sketch / np.linalg.norm(sketch, axis=0)


def sparse_columns(rng, rows, columns):
    entries = int(rng.choice([1, 4]))
    return SparseSketch(entries * rows, columns, entries).sample(rng).to_dense()


def small_pairs(seed, count, drawn=unit_columns):
    """Yield (Gram of X, Gram of X', m-hat of X) for random small neighbours, both ways round."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, d = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        sketch = drawn(rng, int(rng.integers(1, n + 2)), n)
        X = rng.normal(size=(n, d))
        if rng.random() < 0.5:
            X = X[:1] + 0.1 * X
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        if rng.random() < 0.3:
            X *= rng.uniform(size=(n, 1))
        less = X.copy()
        less[rng.integers(n)] = 0.0
        for first, second in ((X, less), (less, X)):
            m = np.linalg.norm(first.T @ (sketch.T @ sketch) - first.T, axis=0).max()
            yield (sketch @ first).T @ (sketch @ first), (sketch @ second).T @ (sketch @ second), m


@pytest.mark.parametrize(("drawn", "count"), [(unit_columns, 1500), (sparse_columns, 10_000)])
def test_fast_mix_bounds_hold_for_small_neighbours_both_ways(drawn, count, oracle):
    """phi, phi-bar and phi-hat bound the divergence, with m and lambda_min of the first one."""
    rng = np.random.default_rng(5)
    checked = 0
    for first, second, m in small_pairs(seed=4, count=count, drawn=drawn):
        c_sq, level = 1.0 + 2.0 * m, np.linalg.eigvalsh(first)[0]
        noise = 10.0 ** rng.uniform(-2.0, 1.5)
        eye = noise * np.eye(len(first))
        gamma = (level + noise) / c_sq
        limit = gamma / float(oracle.fast_mix_limit(c_sq))
        if limit > 1.01:
            alpha = 1.0 + (limit - 1.0) * rng.uniform(0.05, 0.95)
            divergence = oracle.gaussian_divergence(alpha, first + eye, second + eye)
            tolerance = 1e-9 + 1e-13 / (alpha - 1.0)
            assert divergence <= rdp_fast_mix(alpha, gamma, c_sq) + tolerance
            assert divergence <= rdp_fast_mix(alpha, gamma) + tolerance
            checked += 1
        kappa = level + noise
        if kappa > 1.01:
            alpha = 1.0 + (kappa / (2.0 * math.sqrt(kappa) - 1.0) - 1.0) * rng.uniform(0.05, 0.95)
            divergence = oracle.gaussian_divergence(alpha, first + eye, second + eye)
            tolerance = 1e-9 + 1e-13 / (alpha - 1.0)
            assert divergence <= rdp_fast_mix_unbounded(alpha, kappa) + tolerance
            checked += 1
    assert checked > count


def test_gauss_mix_is_attained(oracle):
    """Orthonormal columns, a record along the weakest direction: Proposition 2 is exact."""
    first = np.diag([4.0, 9.0])
    second = first - np.diag([1.0, 0.0])
    for alpha in (1.5, 2.0, 3.5):
        assert oracle.gaussian_divergence(alpha, first, second) == pytest.approx(
            rdp_gauss_mix(alpha, 4.0), rel=1e-12
        )


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: rdp_gauss_mix(2.0, math.nan),
            ValueError,
            "gamma must not be NaN; got gamma=nan.",
        ),
        (
            lambda: rdp_fast_mix(2.0, "a"),
            TypeError,
            "gamma must be a real number; got gamma='a'.",
        ),
        (
            lambda: rdp_fast_mix(2.0, 9.0, 0.5),
            ValueError,
            "row_bound_sq must be at least 1; got row_bound_sq=0.5.",
        ),
        (
            lambda: rdp_gaussian(2.0, 0.0),
            ValueError,
            "sigma must be greater than 0; got sigma=0.0.",
        ),
        (
            lambda: rdp_gaussian(2.0, 1.0, -1.0),
            ValueError,
            "sensitivity must be at least 0; got sensitivity=-1.0.",
        ),
        (
            lambda: rdp_laplace(2.0, -1.0),
            ValueError,
            "scale must be greater than 0; got scale=-1.0.",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


@given(
    alpha=st.fractions(min_value=1, max_value=50),
    h=st.fractions(min_value=0, max_value=1),
    c=st.fractions(min_value=-1, max_value=1),
    r=st.fractions(min_value=0, max_value=1),
)
def test_the_identities_of_appendix_c2(alpha, h, c, r):
    """The algebra of docs/proofs/unbounded.md, in exact arithmetic."""
    q, p = h, h * h * r * r - c * c

    def w(t):
        return t * (2 * c - q * q) + t * t * p

    assert alpha * (1 - w(1)) - (1 - w(alpha)) == (alpha - 1) * (1 + alpha * p)
    p = q * q - c * c  # r = 1
    assert 1 - w(1) == (1 - c) ** 2
    assert 1 - w(alpha) == (1 - alpha * c) ** 2 - alpha * (alpha - 1) * q * q
    slope = (1 - alpha * c) * (1 - c) - (1 - alpha * c) ** 2 + alpha * (alpha - 1) * h * h
    assert slope == (alpha - 1) * (c + alpha * (h * h - c * c))
    ends = (1 - alpha * h * h) * (1 - h * h) - (1 + alpha * h * h) ** 2 + 4 * (alpha * h) ** 2
    assert ends == h * h * (alpha - 1) * (4 * alpha + 1 - alpha * h * h)


@given(
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
    st.floats(0.0, 0.999),
    st.booleans(),
)
def test_rank_two_pairs_are_below_appendix_c2(d, k, seed, share, added):
    """The divergence of a pair as the proof has it, by determinants, for both directions."""
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((k, 5))
    S /= np.linalg.norm(S, axis=0)
    X = rng.standard_normal((5, d)) * 10.0 ** rng.uniform(-1, 1)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    other = X.copy()
    other[0] = 0.0
    if added:
        X, other = other, X
    Z, other_Z = S @ X, S @ other
    gamma = 1.001 + 10.0 ** rng.uniform(-2, 2)
    shift = gamma - np.linalg.eigvalsh(Z.T @ Z)[0]  # sigma^2: gamma is exact
    assume(shift >= 0.0)
    A, B = (M.T @ M + shift * np.eye(d) for M in (Z, other_Z))
    alpha = 1.0 + share * (gamma / (2.0 * math.sqrt(gamma) - 1.0) - 1.0)
    assume(alpha > 1.0 + 1e-6)
    logs = [np.linalg.slogdet(M)[1] for M in (A, B, alpha * B + (1.0 - alpha) * A)]
    exact = ((1.0 - alpha) * logs[0] + alpha * logs[1] - logs[2]) / (2.0 * (alpha - 1.0))
    assert exact <= rdp_fast_mix_unbounded(alpha, gamma) * (1.0 + 1e-6) + 1e-7
