"""Shifted private bounds: their noise, their one-sidedness, their events.

Frequencies are compared at 5.5 binomial standard errors (4e-8 each) and distributions by
Kolmogorov-Smirnov tests at 1e-6: the false-alarm rate of this file, over its seeds, is below 1e-4.
"""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
from scipy import stats

from fastmix.accounting import (
    GaussianEvent,
    LaplaceEvent,
    RdpAccountant,
    TailEvent,
    rdp_fast_mix_sharp,
    rdp_fast_mix_unbounded,
)
from fastmix.data import ArrayRows, RowMap
from fastmix.releases import Noise, gauss_bounds
from fastmix.releases import bounds as sb
from fastmix.sketches import SRHT

#: Draws for tests of distributions, and for those of frequencies.
N, FEW = 20_000, 5_000
ERRORS = 5.5
P_VALUE = 1e-6
NOISE = {"laplace": stats.laplace, "gaussian": stats.norm}


def source_of(bound, m_hat=0.0, lambda_hat=0.0):
    """Return sketched rows with this distortion and this smallest eigenvalue."""
    rows = ArrayRows(np.zeros((1, 1)), RowMap(1.0))
    return sb.Source(rows, bound, np.array([[lambda_hat]]), m_hat)


def distortion(
    m_hat=3.0, coherence=0.4, *, tau, omega=0.5, c_x=2.0, law="laplace", seed=0, draws=N
):
    noise = Noise(np.random.default_rng(seed))
    given = {"coherence": coherence, "sigma": omega, "tau": tau, "law": law}
    source = source_of(c_x, m_hat=m_hat)
    return np.array([noise.release(sb.DISTORTION, source, **given) for _ in range(draws)])


def eigenvalue(lambda_hat=90.0, m=1.5, *, tau, omega=0.5, c_x=2.0, law="laplace", seed=0, draws=N):
    noise = Noise(np.random.default_rng(seed))
    given = {"m": m, "sigma": omega, "tau": tau, "law": law}
    source = source_of(c_x, lambda_hat=lambda_hat)
    return np.array([noise.release(sb.SKETCHED_EIGENVALUE, source, **given) for _ in range(draws)])


def assert_frequency(hits, probability):
    error = math.sqrt(probability * (1.0 - probability) / len(hits))
    assert abs(hits.mean() - probability) <= ERRORS * error


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("tau", [0.0, 0.3, 0.8, 2.0])
def test_bounds_fail_as_often_as_the_event_says(law, tau):
    """P(m~ < m^) and P(lambda~ > lambda^) are the tail of one noise variable above tau."""
    one = float(NOISE[law].sf(tau))
    assert_frequency(distortion(tau=tau, law=law, draws=FEW) < 3.0, one)
    assert_frequency(eigenvalue(tau=tau, law=law, draws=FEW) > 90.0, one)
    if 2 * one < 1.0:
        event = sb.spectral_events(law, tau=tau, omega=0.5, count=2)
        assert sum(e.tail for e in event) == pytest.approx(2 * one, rel=1e-12)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_noise_is_in_units_of_the_sensitivity(law):
    exact = NOISE[law]
    scale = 0.5 * (2.0 * 0.4)
    noise = 1.2 - (distortion(m_hat=40.0, tau=1.2, law=law) - 40.0) / scale
    assert stats.kstest(noise, exact.cdf).pvalue > P_VALUE
    scale = 0.5 * 2.0 * (2.0 + 2.0 * 1.5)
    noise = 1.2 - (90.0 - eigenvalue(tau=1.2, law=law)) / scale
    assert stats.kstest(noise, exact.cdf).pvalue > P_VALUE
    # The test is sharp enough to see a sensitivity that is 10% too small.
    assert stats.kstest(1.1 * noise, exact.cdf).pvalue < P_VALUE


def test_noise_of_the_gaussian_eigenvalue():
    """500 rows of norm 2 along each axis: lambda^ is 2000, its sensitivity 4."""
    noise, X = Noise(np.random.default_rng(1)), 2.0 * np.tile(np.eye(2), (500, 1))
    draws = np.array(
        [gauss_bounds(X, tau=1.0, omega=3.0, c_x=2.0, rng=noise).lambda_tilde[0] for _ in range(N)]
    )
    z = 1.0 - (2000.0 - draws) / (3.0 * 2.0**2)
    assert stats.kstest(z, stats.norm.cdf).pvalue > P_VALUE
    assert stats.kstest(1.1 * z, stats.norm.cdf).pvalue < P_VALUE
    assert_frequency(draws > 2000.0, float(stats.norm.sf(1.0)))


def test_bounds_are_not_negative():
    for found in (
        distortion(m_hat=0.0, tau=0.0, draws=FEW),
        eigenvalue(lambda_hat=0.0, tau=1.0, draws=FEW),
    ):
        assert (found == 0.0).any()
        assert (found >= 0.0).all()


def test_two_neighbouring_values_have_a_bounded_density_ratio():
    """Histograms of m~ for m^ and m^ + sensitivity differ by at most exp(1/omega) in every cell."""
    omega, sensitivity = 0.8, 0.4 * 2.0
    near = distortion(m_hat=9.0, tau=0.0, omega=omega, seed=1)
    far = distortion(m_hat=9.0 + sensitivity, tau=0.0, omega=omega, seed=2)
    edges = np.quantile(near, np.linspace(0.0, 1.0, 21))
    p, q = (np.histogram(values, edges)[0] for values in (near, far))
    slack = np.exp(ERRORS * np.sqrt(1.0 / p + 1.0 / q))
    limit = math.exp(1.0 / omega)
    assert (p <= limit * q * slack).all()
    assert (q <= limit * p * slack).all()
    assert max((p / q).max(), (q / p).max()) > 0.8 * limit


def test_no_coherence_no_release_of_rounding_errors():
    """With coherence 0 the distortion is 0 for all data: what is left of it must not come out."""
    level, draw = {"tau": 5.0, "omega": 1.0, "law": "laplace"}, SRHT(8, 8).sample(0)
    assert draw.coherence < 1e-12
    released, charged = set(), []
    for m_hat in (0.0, 1e-16, 3.3e-16):
        noise = Noise(np.random.default_rng(0))
        source = source_of(1.0, m_hat=m_hat)
        released.add(sb.bounded_distortion(source, draw, noise=noise, **level))
        charged.append(noise.drawn)
    assert released == {0.0}
    assert charged == [sb.spectral_events("laplace", tau=5.0, omega=1.0, count=1)] * 3


@pytest.mark.parametrize(("law", "kind"), [("laplace", LaplaceEvent), ("gaussian", GaussianEvent)])
def test_events(law, kind):
    noise, tail = sb.spectral_events(law, tau=9.0, omega=4.0, count=6)
    assert isinstance(noise, kind)
    assert noise.count == 6
    assert noise.sensitivity == 1.0
    assert (noise.scale if law == "laplace" else noise.sigma) == 4.0
    assert isinstance(tail, TailEvent)
    assert tail.probability == pytest.approx(6 * NOISE[law].sf(9.0), rel=1e-9)
    if law == "laplace":
        assert RdpAccountant([noise, tail]).get_epsilon(0.5) <= 6 / 4.0


def test_a_tail_of_one_is_refused():
    with pytest.raises(ValueError, match="probability"):
        sb.spectral_events("laplace", tau=-1.0, omega=1.0, count=2)


def test_no_more_is_needed_than_by_the_analysis_without_distortion():
    """At kappa the curve that needs no m equals the sharper one at gamma; beyond, m is ignored."""
    orders = np.linspace(1.01, 20.0, 50)
    for gamma in (1.5, 30.0, 800.0):
        kappa = sb.needed_eigenvalue(gamma, 1e9, 1.0, "fast_mix_sharp")
        assert 2.0 / math.sqrt(kappa) - 1.0 / kappa == pytest.approx(1.0 / gamma, rel=1e-12)
        ours, other = rdp_fast_mix_sharp(orders, gamma), rdp_fast_mix_unbounded(orders, kappa)
        assert ours == pytest.approx(other, rel=1e-8)
        assert sb.needed_eigenvalue(gamma, 0.1, 2.0, "fast_mix_sharp") == gamma * 2.0 * 2.2
        assert sb.needed_eigenvalue(gamma, 1e9, 2.0, "fast_mix_sharp") == pytest.approx(4.0 * kappa)
        assert sb.needed_eigenvalue(gamma, 1e9, 1.0, "fast_mix") == gamma * (1.0 + 2e9)


@pytest.mark.parametrize("literal", [False, True])
def test_what_is_to_be_sketched_is_not_shown_copied_or_sent(literal):
    spectrum = gauss_bounds(
        np.eye(3), tau=3.0, omega=1.0, literal=literal, rng=Noise(np.random.default_rng(0))
    )
    assert "array" not in repr(spectrum) + repr(spectrum.sources)
    for copied in (copy.deepcopy, pickle.dumps, dataclasses.asdict):
        with pytest.raises(TypeError, match="stay where the data are"):
            copied(spectrum)
    with pytest.raises(TypeError, match="stay where the data are"):
        pickle.dumps(spectrum.sources)
