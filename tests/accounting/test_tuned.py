"""The joint account of the tuned variants, recomputed by an independent program."""

import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import rdp as oracle
from scipy import stats

from fastmix.accounting import (
    RdpAccountant,
    calibrate_tuned_fast_ihm,
    calibrate_tuned_ihm,
    rdp_fast_mix,
    rdp_fast_mix_sharp,
    rdp_gauss_mix,
    step_noise,
)
from fastmix.mechanisms import fast_mix_event, gauss_mix_event, gradient_events

ORDERS = [*np.geomspace(1.02, 20.0, 400), *np.geomspace(20.0, 4000.0, 400)]
GRID = [
    (epsilon, delta, k, steps)
    for epsilon in (0.05, 1.0, 10.0)
    for delta in (1e-12, 1e-5)
    for k, steps in ((12, 1), (400, 12), (12_000, 20))
]


def sketch_curve(alpha, gamma):
    """Proposition 2 of the paper at 30 digits."""
    with mpmath.workdps(30):
        a, g = mpmath.mpf(alpha), mpmath.mpf(gamma)
        if a >= g:
            return math.inf
        value = a * mpmath.log(1 - 1 / g) - mpmath.log(1 - a / g)
        return float(value / (2 * (a - 1)))


def gaussian_curve(alpha, sigmas):
    return sum(alpha / (2.0 * sigma**2) for sigma in sigmas)


@pytest.mark.parametrize(("epsilon", "delta", "k", "steps"), GRID)
def test_ihm_meets_its_target_by_another_account(epsilon, delta, k, steps):
    noise = calibrate_tuned_ihm(epsilon, delta, k, steps)
    tail = float(stats.norm.sf(noise.tau))
    curve = [
        gaussian_curve(a, [noise.spectral, *noise.sigmas]) + k * sketch_curve(a, noise.gamma)
        for a in ORDERS
    ]
    spent, _ = oracle.compute_epsilon(ORDERS, curve, delta - tail)
    assert epsilon * 0.999 <= spent <= epsilon * 1.001
    event = gauss_mix_event(k=k, gamma=noise.gamma, tau=noise.tau, lambda_sigma=noise.spectral)
    ours = RdpAccountant([event, *gradient_events(noise.sigmas)]).get_epsilon(delta)
    assert epsilon * (1.0 - 1e-6) <= ours <= epsilon


@pytest.mark.parametrize(("epsilon", "delta", "k", "steps"), GRID)
def test_fast_ihm_meets_its_target_by_another_account(epsilon, delta, k, steps):
    noise = calibrate_tuned_fast_ihm(epsilon, delta, k, steps)
    tail = math.exp(-noise.tau)
    laplace = oracle.RdpAccountant(ORDERS)
    laplace.compose(dp_accounting.LaplaceDpEvent(noise.spectral), 2)
    curve = [
        gaussian_curve(a, noise.sigmas) + k * sketch_curve(a, noise.gamma) + extra
        for a, extra in zip(ORDERS, laplace._rdp, strict=True)
    ]
    inside, _ = oracle.compute_epsilon(ORDERS, curve, delta - tail)
    rest = [gaussian_curve(a, noise.sigmas) + k * sketch_curve(a, noise.gamma) for a in ORDERS]
    outside = 2.0 / noise.spectral + oracle.compute_epsilon(ORDERS, rest, delta - tail)[0]
    assert epsilon * 0.999 <= min(inside, outside) <= epsilon * 1.001
    event = fast_mix_event(
        k1=k, gamma=noise.gamma, tau=noise.tau, omega=noise.spectral, curve="fast_mix_sharp"
    )
    ours = RdpAccountant([event, *gradient_events(noise.sigmas)]).get_epsilon(delta)
    assert epsilon * (1.0 - 1e-6) <= ours <= epsilon


def test_schedule_adds_up_and_favours_the_last_step():
    sigmas = step_noise(3.0, 7, 0.6)
    assert math.fsum(s**-2 for s in sigmas) == pytest.approx(3.0, rel=1e-12)
    ratios = [(sigmas[t] / sigmas[t + 1]) ** 2 for t in range(6)]
    assert ratios == pytest.approx([1.0 / 0.6] * 6)
    assert step_noise(3.0, 4, 1.0) == pytest.approx([math.sqrt(4.0 / 3.0)] * 4)


def test_the_sharp_curve_is_below_the_paper_s():
    alpha = np.geomspace(1.0001, 100.0, 50)
    for gamma in (1.3, 5.0, 80.0):
        for row_bound_sq in (1.0, 1.5, 20.0):
            paper = rdp_fast_mix(alpha, gamma, row_bound_sq)
            assert (rdp_fast_mix_sharp(alpha, gamma) <= paper * (1.0 + 1e-9)).all()
    assert (rdp_fast_mix_sharp(alpha, 80.0) == rdp_gauss_mix(alpha, 80.0)).all()
    assert rdp_fast_mix_sharp(1.05, 1.2) < rdp_fast_mix(1.05, 1.2) == math.inf
