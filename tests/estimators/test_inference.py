"""Confidence intervals: their coverage, their account, and that they use released values only."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import fastmix
from fastmix.accounting import GaussianEvent
from fastmix.certificate.verify import verify_certificate
from fastmix.datasets import make_correlated, make_sphere

IHM, ADASSP = fastmix.IHM(delta=1e-6), fastmix.AdaSSP(delta=1e-6)
FAST_IHM = fastmix.FastIHM(delta=1e-6)


def coverage(model, X, repetitions, seed=1, level=0.95):
    """Share of coefficients of a known model that the intervals cover, nothing clipped."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(X.shape[1])
    theta *= 0.5 / np.abs(X @ theta).max()
    hits = []
    for _ in range(repetitions):
        y = X @ theta + 0.1 * rng.standard_normal(len(X))
        assert np.abs(y).max() < 1.0
        fit = clone(model).set_params(
            data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False, inference=True, random_state=rng
        )
        low, high = fit.fit(X, y).conf_int(level).T
        hits.append((low <= theta) & (theta <= high))
    return float(np.mean(hits))


@pytest.mark.parametrize(
    ("model", "make", "n", "options"),
    [
        (IHM, make_sphere, 2**13, {}),
        (IHM, make_correlated, 2**14, {"correlation": 0.5}),
        (ADASSP, make_sphere, 2**13, {}),
        # On half as many rows its ridge is at work, and the first order is not enough: 91%.
        (ADASSP, make_correlated, 2**14, {"correlation": 0.5}),
    ],
    ids=[
        "IHM sphere",
        "IHM correlated",
        "AdaSSP sphere",
        "AdaSSP correlated",
    ],
)
def test_coverage(model, make, n, options):
    """Nominal 95% covers 92 to 98%.

    Seeded. With other seeds: at a true coverage of 95.5% and 8 coefficients that are all but
    independent, 60 fits leave the range with probability below 1e-2.
    """
    X, _ = make(n, 8, random_state=0, **options)
    assert 0.92 <= coverage(model, X, 60) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "epsilon", "high"),
    [
        (IHM, 0.5, 1.0),  # the steps have not converged on the correlated rows
        (IHM, 1.0, 0.98),
        (IHM, 3.0, 0.98),
        (ADASSP, 0.5, 0.98),
        (ADASSP, 1.0, 0.98),
        (ADASSP, 3.0, 0.98),
        (FAST_IHM, 1.0, 1.0),  # nor here
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else f"{value:g}",
)
def test_coverage_at_length(model, epsilon, high):
    """False alarm below 1e-6: the standard deviation of the mean is about 0.4%."""
    for make, options in ((make_sphere, {}), (make_correlated, {"correlation": 0.5})):
        X, _ = make(2**14, 8, random_state=0, **options)
        assert 0.92 <= coverage(clone(model).set_params(epsilon=epsilon), X, 400) <= high


def test_badly_conditioned_data_widen_the_intervals():
    """Where the steps do not converge the intervals say so instead of being wrong."""
    X, _ = make_correlated(2**12, 8, random_state=0)
    assert coverage(IHM, X, 40) >= 0.91
    assert (
        coverage(fastmix.FastIHM(delta=1e-6), make_sphere(2**12, 8, random_state=0)[0], 16) > 0.85
    )


def test_intercept_and_units():
    """Intervals follow the user's units, and the intercept has one too."""
    rng = np.random.default_rng(0)
    X = rng.uniform(10, 30, (4000, 2))
    y = 500 + 7 * X[:, 0] - 4 * X[:, 1] + rng.normal(0, 10, 4000)
    bounds = {"bounds_X": (10, 30), "bounds_y": (300, 800), "epsilon": 2.0, "delta": 1e-6}
    fit = fastmix.PrivateLinearRegression(**bounds, inference=True, random_state=0).fit(X, y)
    other = fastmix.PrivateLinearRegression(
        **bounds | {"bounds_X": (0.1, 0.3)}, inference=True, random_state=0
    ).fit(X / 100, y)
    np.testing.assert_allclose(other.coef_std_, 100 * fit.coef_std_, rtol=1e-6)
    np.testing.assert_allclose(other.intercept_std_, fit.intercept_std_, rtol=1e-6)
    assert fit.residual_std_ == pytest.approx(10.0, rel=0.3)
    assert (fit.coef_noise_std_ < fit.coef_std_).all()
    intervals = fit.conf_int(0.999, intercept=True)
    assert intervals.shape == (3, 2)
    assert (intervals[:, 0] < [7, -4, 500]).all()
    assert (intervals[:, 1] > [7, -4, 500]).all()
    np.testing.assert_allclose(intervals[:2].mean(axis=1), fit.coef_)
    narrow, wide = (np.ptp(fit.conf_int(level), axis=1) for level in (0.5, 0.95))
    np.testing.assert_allclose(wide / narrow, 1.959964 / 0.6744898, rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        IHM,
        ADASSP,
        fastmix.FastIHM(delta=1e-6),
        fastmix.IHM(delta=1e-6, variant="paper"),
        fastmix.FastIHM(delta=1e-6, variant="paper"),
    ],
    ids=["IHM", "AdaSSP", "FastIHM", "IHM paper", "FastIHM paper"],
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_release_is_paid_for(model, epsilon):
    X, y = make_sphere(500, 3, random_state=0)
    given = {"epsilon": epsilon, "data_norm": 1.0, "bounds_y": (-1, 1)}
    fit = clone(model).set_params(**given, inference=True).fit(X, y)
    certificate = fit.privacy_
    assert 0.9 * epsilon < certificate.epsilon <= epsilon
    assert certificate.delta <= 1e-6 * (1 + 1e-12)
    counts, curvatures = ("residual_sigma",), ("curvature_sigma", "square_sigma")
    stated = counts if counts[0] in certificate.parameters else curvatures
    for name in stated:
        count = 2 if name == "curvature_sigma" else 1
        assert GaussianEvent(certificate.parameters[name], 1.0, count) in certificate.events
    plain = clone(model).set_params(**given).fit(X, y).privacy_
    assert len(certificate.events) == len(plain.events) + len(stated)
    assert verify_certificate(certificate.to_json()).verified


def test_what_has_no_intervals():
    X, y = make_sphere(200, 3, random_state=0)
    given = {"data_norm": 1.0, "bounds_y": (-1, 1)}
    fit = fastmix.IHM(**given).fit(X, y)
    assert not hasattr(fit, "coef_std_")
    with pytest.raises(ValueError, match="inference must be True"):
        fit.conf_int()
    for model in (
        fastmix.DPGradientDescent(),
        fastmix.LinearMixing(),
        fastmix.ObjectivePerturbation(),
    ):
        with pytest.raises(ValueError, match="inference must be False"):
            clone(model).set_params(**given, inference=True).fit(X, y)
    with pytest.raises(ValueError, match="inference must be False"):
        fastmix.DPGradientDescent(**given, inference=True).fit(X, y)
    fit.set_params(inference=True).fit(X, y)
    with pytest.raises(ValueError, match="level must lie"):
        fit.conf_int(1.0)
    assert hasattr(fit, "coef_std_")
    fit.set_params(inference=False).fit(X, y)
    assert not hasattr(fit, "coef_std_")


def test_nothing_is_identified_where_noise_exceeds_the_curvature():
    """Few rows and many columns: all curvatures look alike, because noise made them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 40))
    y = X[:, 0] + 0.1 * rng.standard_normal(300)
    for seed in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fastmix.PrivateLinearRegression(
                epsilon=0.5, bounds_X=(-1, 1), bounds_y=(-2, 2), inference=True, random_state=seed
            ).fit(X, y)
        assert not model.coef_identified_.any()
        assert np.isinf(model.coef_std_).all()
