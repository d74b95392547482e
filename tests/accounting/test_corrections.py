"""The counterexamples behind docs/corrections.md, one section each, and the repairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

from fastmix.accounting import (
    rdp_fast_mix,
    rdp_fast_mix_unbounded,
    rdp_to_epsilon,
)
from fastmix.engine import Target
from fastmix.paper.fast_ihm import _thirds
from tests.accounting.paper import (
    closed_form_epsilon,
    closed_form_epsilon_unbounded,
    closed_form_gamma,
    rdp_fast_mix_simple,
)


def released(sketch, X):
    """Return Z'Z, m-hat and lambda_min of Z = sketch X."""
    Z = sketch @ X
    residual = Z.T @ sketch - X.T
    gram = Z.T @ Z
    return gram, np.linalg.norm(residual, axis=0).max(), np.linalg.eigvalsh(gram)[0]


def without_row(X, row=0):
    less = X.copy()
    less[row] = 0.0
    return less


def exact_delta(rows, ratio, epsilon):
    """Exact delta of ``rows`` draws of N(0, 1) against N(0, ratio), ratio < 1."""
    cut = 2.0 * (epsilon - 0.5 * rows * math.log(ratio)) / (1.0 / ratio - 1.0)
    return chi2.sf(cut, rows) - math.exp(epsilon) * chi2.sf(cut / ratio, rows)


# --- 1. Lemma 1 and Theorem 1 need unit columns --------------------------------------------------

SHORT_SKETCH = 0.5 * np.ones((1, 4))
ONES = np.ones((4, 1))


def test_lemma_1_fails_for_columns_of_norm_one_half(oracle):
    noise, alpha = 6.0, 2.0
    gram, m, smallest = released(SHORT_SKETCH, ONES)
    assert m == 0.0
    assert smallest == pytest.approx(4.0)
    gamma = smallest + noise  # C^2 = 1
    neighbour, _, _ = released(SHORT_SKETCH, without_row(ONES))
    divergence = oracle.gaussian_divergence(alpha, gram + noise, neighbour + noise)
    assert divergence == pytest.approx(0.02302, abs=5e-6)
    assert rdp_fast_mix(alpha, gamma, 1.0) == pytest.approx(0.00621, abs=5e-6)
    assert rdp_fast_mix(alpha, gamma) == pytest.approx(0.00972, abs=5e-6)
    assert rdp_fast_mix_simple(alpha, gamma) == 0.015625
    assert divergence > rdp_fast_mix_simple(alpha, gamma) > rdp_fast_mix(alpha, gamma)


def unit_column_form(sketch, X):
    """Return the repaired pair: S diag(1/norms) and diag(norms) X, with the same product."""
    norms = np.linalg.norm(sketch, axis=0)
    return sketch / norms, norms[:, None] * X


def test_the_repair_holds_on_the_counterexample(oracle):
    noise, alpha = 6.0, 2.0
    sketch, X = unit_column_form(SHORT_SKETCH, ONES)
    gram, m, smallest = released(sketch, X)
    np.testing.assert_allclose(gram, released(SHORT_SKETCH, ONES)[0])
    assert m == pytest.approx(1.5)
    gamma = (smallest + noise) / (1.0 + 2.0 * m)
    neighbour, _, _ = released(sketch, without_row(X))
    divergence = oracle.gaussian_divergence(alpha, gram + noise, neighbour + noise)
    assert divergence == pytest.approx(0.02302, abs=5e-6)
    assert divergence <= rdp_fast_mix(alpha, gamma, 1.0 + 2.0 * m)
    assert divergence <= rdp_fast_mix(alpha, gamma)


def test_the_repair_holds_and_the_printed_lemma_does_not_at_random(oracle):
    rng = np.random.default_rng(20)
    printed_fails = checked = 0
    for _ in range(800):
        n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        short = rng.normal(size=(int(rng.integers(1, n + 1)), n))
        short *= rng.uniform(0.2, 1.0, size=n) / np.linalg.norm(short, axis=0)
        X = rng.normal(size=(1, d)) + 0.3 * rng.normal(size=(n, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        sketch, scaled = unit_column_form(short, X)
        less, scaled_less = without_row(X), without_row(scaled)
        for first, second, first_scaled in ((X, less, scaled), (less, X, scaled_less)):
            gram, m_printed, smallest = released(short, first)
            neighbour, _, _ = released(short, second)
            _, m, _ = released(sketch, first_scaled)
            noise = rng.uniform(2.0, 20.0) * (1.0 + 2.0 * m)
            eye = noise * np.eye(d)
            gamma = (smallest + noise) / (1.0 + 2.0 * m)
            gamma_printed = (smallest + noise) / (1.0 + 2.0 * m_printed)
            alpha = 1.0 + rng.uniform(0.1, 0.9) * (gamma / 1.2072 - 1.0)
            divergence = oracle.gaussian_divergence(alpha, gram + eye, neighbour + eye)
            assert divergence <= rdp_fast_mix(alpha, gamma, 1.0 + 2.0 * m) + 1e-10
            printed_fails += divergence > rdp_fast_mix(alpha, gamma_printed) * (1.0 + 1e-6)
            checked += 1
    assert checked == 1600
    assert printed_fails > 0


def test_sensitivities_after_the_repair():
    """m-hat moves by at most the coherence, lambda_min by at most 1 + 2 m-hat of either side."""
    rng = np.random.default_rng(21)
    for _ in range(1500):
        n, d = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        short = rng.normal(size=(int(rng.integers(1, n + 2)), n))
        short *= rng.uniform(0.2, 1.0, size=n) / np.linalg.norm(short, axis=0)
        X = rng.normal(size=(n, d))
        sketch, X = unit_column_form(short, X / np.linalg.norm(X, axis=1, keepdims=True))
        _, m, smallest = released(sketch, X)
        _, m_less, smallest_less = released(sketch, without_row(X, int(rng.integers(n))))
        coherence = np.abs(sketch.T @ sketch - np.eye(n)).max()
        assert abs(m - m_less) <= coherence + 1e-12
        assert abs(smallest - smallest_less) <= 1.0 + 2.0 * min(m, m_less) + 1e-12


# --- 2. gamma of Appendix E ----------------------------------------------------------------------


def test_printed_gamma_2_spends_three_times_its_share(oracle):
    epsilon, delta, rows = 1.0, 1e-6, 40
    _, gamma_2, takes_first = oracle.printed_gamma(epsilon, delta, rows)
    assert not takes_first
    assert float(gamma_2) == pytest.approx(56.6, abs=0.05)
    assert oracle.theorem_1_sketch(gamma_2, rows, delta / 3.0) == pytest.approx(1.05, abs=0.005)
    assert oracle.sketch_epsilon(rows, float(gamma_2), delta / 3.0) == pytest.approx(
        0.62, abs=0.005
    )


def test_our_gamma_2_spends_its_share(oracle):
    epsilon, delta, rows = 1.0, 1e-6, 40
    gamma = closed_form_gamma(epsilon / 3.0, delta / 3.0, rows)
    spent = oracle.theorem_1_sketch(gamma, rows, delta / 3.0)
    assert spent == pytest.approx(epsilon / 3.0, rel=1e-9)
    explicit = 3.0 * (2.0 * rows + 25.0 * math.log(3.0 / delta)) / (8.0 * epsilon) + 25.0 / 8.0
    assert gamma <= explicit <= 1.01 * gamma
    assert oracle.theorem_1_sketch(explicit, rows, delta / 3.0) == pytest.approx(0.332, abs=5e-4)
    level = _thirds(10, 4, Target(epsilon, delta), delta / 10.0)
    assert oracle.sketch_epsilon(40, level.gamma, delta / 3.0) <= epsilon / 3.0
    assert level.gamma <= gamma  # the closed form is loose


def test_printed_rule_can_choose_a_gamma_without_any_guarantee(oracle):
    """The square in its condition also holds far below 25/8, where Lemma 1 says nothing."""
    epsilon, delta, rows = 50.0, 0.1, 6
    gamma_1, _, takes_first = oracle.printed_gamma(epsilon, delta, rows)
    assert takes_first
    assert float(gamma_1) == pytest.approx(0.8215, abs=5e-5)
    assert math.isinf(rdp_fast_mix(1.001, float(gamma_1)))
    assert math.isinf(closed_form_epsilon(float(gamma_1), rows, delta / 3.0))
    ours = closed_form_gamma(epsilon / 3.0, delta / 3.0, rows)
    assert ours == pytest.approx(3.7783, abs=5e-5)
    assert oracle.theorem_1_sketch(ours, rows, delta / 3.0) <= epsilon / 3.0 * (1.0 + 1e-12)


# --- 3. closed forms of Appendix D.3 -------------------------------------------------------------


@pytest.mark.parametrize("n", [8, 20, 50])
def test_appendix_d3_needs_gamma_f_and_not_the_level_itself(n):
    """S_f = (1 ... 1), x_i = 1: level n^2, C^2 = 2n - 1, exact delta known."""
    rows, delta, level, c_sq = 100, 1e-6, float(n) ** 2, 2.0 * n - 1.0
    _, m, smallest = released(np.ones((1, n)), np.ones((n, 1)))
    assert smallest == pytest.approx(level)
    assert 1.0 + 2.0 * m == pytest.approx(c_sq)
    ratio = (n - 1.0) ** 2 / level
    printed = closed_form_epsilon(level, rows, delta)  # the display with lambda_min + sigma^2
    meant = closed_form_epsilon(level / c_sq, rows, delta)
    assert exact_delta(rows, ratio, printed) > 0.1
    assert 0.0 <= exact_delta(rows, ratio, meant) <= delta
    if n == 20:
        assert printed == pytest.approx(0.1713, abs=5e-5)
        assert exact_delta(rows, ratio, printed) == pytest.approx(0.2271, abs=5e-5)
        assert meant == pytest.approx(8.4915, abs=5e-5)


def test_appendix_d3_has_a_range():
    """The second case is negative below 25 (unbounded) and below 25/8 (finite C^2)."""
    level, rows, log_term = 20.0, 10, math.log(1e6)
    root = math.sqrt(level)
    assert log_term > (root / 5.0 - 1.0) ** 2 * 2.0 * rows / level
    printed = 2.0 * rows / (5.0 * root) + 5.0 * log_term / (root - 5.0)
    assert printed == pytest.approx(-129.97, abs=0.005)
    assert closed_form_epsilon_unbounded(level, rows, 1e-6) == math.inf
    assert rdp_to_epsilon(lambda a: rows * rdp_fast_mix_unbounded(a, level), 1e-6) > 14.0


# --- 4. phi-hat is attained; its range -----------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 11])
def test_phi_hat_is_attained_over_its_whole_range(oracle, n):
    """S_f = (1 ... 1), x_i = 1, no noise: N(0, n^2) against N(0, (n-1)^2)."""
    gram, _, _ = released(np.ones((1, n)), np.ones((n, 1)))
    neighbour, _, _ = released(np.ones((1, n)), without_row(np.ones((n, 1))))
    level = float(n) ** 2
    limit = level / (2.0 * n - 1.0)
    assert limit > n / 2.0  # the range in Appendix D.2 is the smaller one
    for alpha in np.linspace(1.0, limit, 9)[1:-1]:
        assert rdp_fast_mix_unbounded(alpha, level) == pytest.approx(
            oracle.gaussian_divergence(alpha, gram, neighbour), rel=1e-9
        )
    beyond = limit * (1.0 + 1e-9)
    assert rdp_fast_mix_unbounded(beyond, level) == math.inf
    assert oracle.gaussian_divergence(beyond, gram, neighbour) == math.inf


def test_appendix_c2_optimum_is_at_minus_the_root():
    """Over |c| <= q the bound of Appendix C.2 is largest at c = -q ("by similar arguments")."""
    rng = np.random.default_rng(22)
    q = rng.uniform(0.01, 0.99, size=4000)
    alpha = 1.0 + rng.uniform(0.01, 0.99, size=4000) * (1.0 / (2.0 * q - q**2) - 1.0)

    def objective(c):
        inside = (1.0 + alpha * c) ** 2 - alpha * (alpha - 1.0) * q**2
        return 2.0 * alpha * np.log1p(c) - np.log(inside)

    for fraction in (-0.9, -0.5, 0.0, 0.5, 1.0):
        assert (objective(fraction * q) <= objective(-q) + 1e-12).all()


# --- 5. sensitivity of m-hat ---------------------------------------------------------------------


def test_sensitivity_lemma_as_printed_keeps_the_removed_row():
    """Printed with x_i for both data sets it fails for S_f = I, where the bound is 0."""
    X = np.eye(3)
    less = without_row(X)
    printed = np.linalg.norm(less.T - X.T, axis=0).max()
    meant = np.linalg.norm(less.T - less.T, axis=0).max()
    assert printed == 1.0
    assert meant == 0.0


# --- 6. the rare event is counted once -----------------------------------------------------------


def random_two_stage(rng, epsilon_1, bad, outcomes=6):
    """First laws p, q within e^epsilon_1 of each other off ``bad``; second laws per outcome.

    On ``bad`` the two second laws are disjoint: the worst that a failed guarantee can do.
    """
    q = rng.dirichlet(np.ones(outcomes))
    tilt = rng.choice([-1.0, 1.0], size=outcomes) * epsilon_1 / 2.0
    p = q * np.exp(tilt)
    p /= p.sum()
    second_q = rng.dirichlet(np.ones(outcomes), size=outcomes)
    second_p = second_q * np.exp(rng.normal(scale=0.3, size=(outcomes, outcomes)))
    second_p /= second_p.sum(axis=1, keepdims=True)
    for y in bad:
        second_p[y] = 0.0
        second_p[y, 0] = 1.0
        second_q[y, 0] = 0.0
        second_q[y] /= second_q[y].sum()
    return p, q, second_p, second_q


def renyi(alpha, p, q):
    return np.log((q * (p / q) ** alpha).sum(axis=-1)) / (alpha - 1.0)


def test_rare_event_is_counted_once():
    """delta = P(not B) + delta_2 for pure + converted, and for everything in one curve."""
    rng = np.random.default_rng(23)
    orders = np.array([1.2, 2.0, 5.0, 20.0, 200.0])
    tight = 0.0
    for _ in range(400):
        epsilon_1 = rng.uniform(0.05, 1.0)
        bad = rng.choice(6, size=int(rng.integers(0, 3)), replace=False)
        good = np.setdiff1d(np.arange(6), bad)
        p, q, second_p, second_q = random_two_stage(rng, epsilon_1, bad)
        pure = np.abs(np.log(p / q)).max()
        tail = p[bad].sum()
        second = np.array([renyi(a, second_p[good], second_q[good]).max() for a in orders])
        first = np.array([renyi(a, p, q) for a in orders])
        joint_p, joint_q = p[:, None] * second_p, q[:, None] * second_q
        delta_2 = 10.0 ** rng.uniform(-4.0, -0.3)
        for epsilon in (
            pure + rdp_to_epsilon(second, delta_2, orders=orders),
            rdp_to_epsilon(first + second, delta_2, orders=orders),
        ):
            exact = np.maximum(joint_p - math.exp(epsilon) * joint_q, 0.0).sum()
            assert exact <= tail + delta_2 + 1e-12
            tight = max(tight, exact / (tail + delta_2))
    assert tight > 0.9


def test_good_event_belongs_to_the_first_argument():
    """With the bad event judged by the second law the statement is false."""
    p, q = np.array([0.6, 0.4]), np.array([0.9, 0.1])
    second_p, second_q = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    joint_p, joint_q = p[:, None] * second_p, q[:, None] * second_q
    exact = np.maximum(joint_p - 4.0 * joint_q, 0.0).sum()  # e^epsilon = 4 covers p/q
    assert exact == pytest.approx(0.4)
    assert exact <= p[1] + 1e-12
    assert exact > q[1]
