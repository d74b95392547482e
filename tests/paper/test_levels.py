"""The joint account of the tuned variants, recomputed by an independent program."""

import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import rdp as oracle
from scipy import stats

from fastmix.accounting import (
    ChoiceEvent,
    ComposedEvent,
    GaussianEvent,
    RdpAccountant,
    SketchEvent,
    TailEvent,
    rdp_fast_mix,
    rdp_fast_mix_sharp,
    rdp_gauss_mix,
)
from fastmix.engine import Target
from fastmix.paper import fast_ihm, ihm
from fastmix.paper.levels import Level, choose, step_noise, tuned_levels
from fastmix.releases import GRADIENT

ORDERS = [*np.geomspace(1.02, 20.0, 400), *np.geomspace(20.0, 4000.0, 400)]
GRID = [
    (epsilon, delta, k, steps)
    for epsilon in (0.05, 1.0, 10.0)
    for delta in (1e-12, 1e-5)
    for k, steps in ((24, 1), (400, 16), (12_000, 20))
]
#: Every fourth in each run, the others in the slow one.
MOSTLY_SLOW = [
    pytest.param(*each, marks=[pytest.mark.slow] if at % 4 else []) for at, each in enumerate(GRID)
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


def tuned_ihm(k, steps, target):
    """Return what IHM plans to release."""
    share = ihm._SPECTRAL_SHARE
    return tuned_levels(target, "gauss_mix", k, steps, bounds=1, bounds_share=share)


def tuned_fast_ihm(k, steps, target, *, centred):
    """Return what FastIHM plans to release."""
    shares = {"bounds_share": fast_ihm._SPECTRAL_SHARE}
    shares["mean_share"] = fast_ihm._MEAN_SHARE if centred else 0.0
    return tuned_levels(target, "fast_mix_sharp", k, steps, bounds=2, **shares)


def charged(plan, tail, bound, k, spectral):
    options = [
        ComposedEvent([SketchEvent(bound, each.gamma, k), *GRADIENT.events(each.sigmas)])
        for each in plan.levels
    ]
    return RdpAccountant([spectral, TailEvent(tail), ChoiceEvent(options)])


@pytest.mark.parametrize(("epsilon", "delta", "k", "steps"), MOSTLY_SLOW)
def test_ihm_meets_its_target_by_a_quadrature_of_its_own(epsilon, delta, k, steps):
    """Adaptive quadrature over the chi-square and a plain sum over the normal loss."""
    plan = tuned_ihm(k, steps, Target(epsilon, delta))
    tail = float(stats.norm.sf(plan.tau))
    ours = charged(plan, tail, "gauss_mix", k, GaussianEvent(plan.omega))
    assert epsilon * (1.0 - 1e-6) <= ours.get_epsilon(delta) <= epsilon
    assert plan.spent.epsilon == ours.get_epsilon(delta)
    for option in (plan.levels[0], plan.levels[-1]):
        squares = math.fsum(sigma**-2 for sigma in (plan.omega, *option.sigmas))
        spent = sketch_delta(option.gamma, k, math.sqrt(squares), epsilon)
        assert 0.8 * delta <= spent + tail <= delta * (1.0 + 1e-4)


def sketch_delta(gamma, k, mu, epsilon, *, fast=False):
    """Delta of a Gaussian sketch with Gaussian releases, in the worse direction.

    For a fast one it is that of both at once: losses above 0 of one, and below 0 of the other.
    """
    s, law = 1.0 / gamma, stats.chi2(k)
    shift = k / 2.0 * math.log1p(-s)
    slopes = {1.0: s / (2.0 * (1.0 - s)), -1.0: s / 2.0}
    u = np.linspace(-10.0, 10.0, 4001)
    x = np.where(u < 0.0, law.ppf(stats.norm.cdf(u)), law.isf(stats.norm.sf(u)))

    def profile(left):
        first, second = stats.norm.logsf(left / mu - mu / 2), stats.norm.logsf(left / mu + mu / 2)
        return np.exp(first) - np.exp(left + second)

    deltas = []
    for sign, slope in slopes.items():
        loss = sign * (shift + slope * x)
        if fast:
            loss = sign * np.maximum(sign * loss, 0.0)
        deltas.append(np.trapezoid(profile(epsilon - loss) * stats.norm.pdf(u), u))
    return sum(deltas) - profile(epsilon) if fast else max(deltas)


@pytest.mark.parametrize(("epsilon", "delta", "k", "steps"), MOSTLY_SLOW)
def test_fast_ihm_meets_its_target_by_another_account(epsilon, delta, k, steps):
    plan = tuned_fast_ihm(k, steps, Target(epsilon, delta), centred=False)
    tail = 2.0 * float(stats.norm.sf(plan.tau))
    bounds = oracle.RdpAccountant(ORDERS)
    bounds.compose(dp_accounting.GaussianDpEvent(plan.omega), 2)
    curves = [
        [gaussian_curve(a, each.sigmas) + k * sketch_curve(a, each.gamma) for a in ORDERS]
        for each in (plan.levels[0], plan.levels[-1])
    ]
    worst = np.max(curves, axis=0) + bounds._rdp
    spent, _ = oracle.compute_epsilon(ORDERS, worst, delta - tail)
    assert epsilon * 0.98 <= spent <= epsilon * 1.2  # Rényi curves alone are some per cent above
    for option in (plan.levels[0], plan.levels[-1]):
        squares = math.fsum(sigma**-2 for sigma in (plan.omega, plan.omega, *option.sigmas))
        exact = sketch_delta(option.gamma, k, math.sqrt(squares), epsilon, fast=True)
        assert 0.8 * delta <= exact + tail <= delta * (1.0 + 1e-4)
    event = GaussianEvent(plan.omega, count=2)
    ours = charged(plan, tail, "fast_mix_sharp", k, event).get_epsilon(delta)
    assert epsilon * (1.0 - 1e-6) <= ours <= epsilon
    assert plan.spent.epsilon == ours


@pytest.mark.parametrize(("epsilon", "delta", "k", "steps"), GRID[::4])
def test_the_mean_is_charged_with_the_rest(epsilon, delta, k, steps):
    plan = tuned_fast_ihm(k, steps, Target(epsilon, delta), centred=True)
    tail = 2.0 * float(stats.norm.sf(plan.tau))
    first = ComposedEvent([GaussianEvent(plan.mean_sigma), GaussianEvent(plan.omega, count=2)])
    ours = charged(plan, tail, "fast_mix_sharp", k, first).get_epsilon(delta)
    assert epsilon * (1.0 - 1e-6) <= ours <= epsilon
    assert plan.spent.epsilon == ours
    without = charged(plan, tail, "fast_mix_sharp", k, GaussianEvent(plan.omega, count=2))
    assert without.get_epsilon(delta) < epsilon * (1.0 - 1e-6)


def test_the_level_is_chosen_by_what_the_data_reach():
    """The first conditioned level whose gamma is at most twice the bound plus its shift."""
    levels = tuple(
        Level(gamma, (1.0,), conditioned=conditioned)
        for gamma, conditioned in ((40.0, True), (20.0, True), (10.0, True), (12.0, False))
    )
    for reached, shift, expected in (
        (20.0, 0.0, 0),
        (19.9, 0.0, 1),
        (19.9, 0.5, 0),
        (5.0, 0.0, 2),
        (4.9, 0.0, 3),
        (1e-9, 100.0, 0),
        (0.0, 100.0, 3),  # a bound of 0 says nothing
    ):
        assert choose(levels, reached, shift) is levels[expected]


def test_options_trade_the_sketch_for_the_gradients():
    plan = tuned_ihm(768, 16, Target(1.0, 1e-10))
    gammas = [option.gamma for option in plan.levels]
    assert gammas[:3] == sorted(gammas[:3], reverse=True)
    last = [option.sigmas[-1] for option in plan.levels if option.conditioned]
    assert last == sorted(last)
    assert [option.conditioned for option in plan.levels] == [True, True, True, False]


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
