"""Private quantile and robust regression."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from fastmix import PrivateHuberRegressor, PrivateQuantileRegressor
from fastmix.certificate import verify_certificate
from fastmix.estimators.models import fixing
from tests.transcripts import names, recording

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-5, 5)}
THETA = np.array([1.0, -0.5, 0.2, 0.0, 0.3])


def problem(law="normal", n=50_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 5))
    noise = {
        "normal": rng.normal(size=n),
        "skewed": rng.exponential(size=n) - 1.0,
        "growing": rng.normal(size=n) * (1.2 + X[:, 0]),
    }[law]
    return X, X @ THETA + 0.5 * noise


@pytest.mark.parametrize("law", ["normal", "skewed", "growing"])
@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_the_share_below_is_the_quantile(quantile, law):
    """Within 1% of nominal with 50,000 rows at epsilon 1."""
    X, y = problem(law)
    model = PrivateQuantileRegressor(epsilon=1.0, quantile=quantile, random_state=0, **BOUNDS)
    model.fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(quantile, abs=0.01)
    assert 0.0 < model.smoothing_ < 0.1
    assert model.smoothing_ == pytest.approx(5.0 * model.chosen_["smoothing"])
    assert model.privacy_.epsilon <= 1.0
    assert verify_certificate(model.privacy_.to_json()).verified


@pytest.mark.parametrize("quantile", [0.1, 0.5])
def test_the_share_below_with_more_columns(quantile):
    """Ridge and smoothing moved it by up to 2.6% of the rows; counts of residuals move it back."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (50_000, 20))
    y = X @ rng.normal(size=20) * 0.25 + 0.5 * (rng.exponential(size=len(X)) - 1.0)
    model = PrivateQuantileRegressor(epsilon=1.0, quantile=quantile, random_state=0, **BOUNDS)
    with recording() as transcript:
        model.fit(X, y)
    assert names(transcript)[-2:] == ["minimiser", "signed counts"]
    assert np.mean(y <= model.predict(X)) == pytest.approx(quantile, abs=0.006)
    assert model.privacy_.epsilon <= 1.0
    assert verify_certificate(model.privacy_.to_json()).verified


@pytest.mark.parametrize(("n", "given"), [(2_000, {}), (50_000, {"fit_intercept": False})])
def test_counts_only_where_public_sizes_say_so(n, given):
    X, y = problem(n=n)
    with recording() as transcript:
        model = PrivateQuantileRegressor(random_state=0, **given, **BOUNDS).fit(X, y)
    assert "signed counts" not in names(transcript)
    assert model.chosen_["shift"] == 0.0


def test_smoothing_may_be_public():
    X, y = problem()
    model = fixing(PrivateQuantileRegressor, smoothing=0.4)(**BOUNDS).fit(X, y)
    assert model.smoothing_ == pytest.approx(0.4)
    # Privacy may ask for more.
    few = fixing(PrivateQuantileRegressor, smoothing=1e-6)(epsilon=0.3, **BOUNDS)
    few.fit(X[:2000], y[:2000])
    assert few.smoothing_ > 1e-6


@pytest.mark.parametrize("clip", [None, 0.2])
def test_outliers_do_little(clip):
    X, y = problem(n=20_000)
    y = X @ THETA + 0.2 * (y - X @ THETA)
    y[:2000] = 4.5
    model = PrivateHuberRegressor(epsilon=3.0, residual_clip=clip, **BOUNDS).fit(X, y)
    squares = np.linalg.lstsq(np.c_[X, np.ones(len(X))], y, rcond=None)[0]
    assert np.abs(model.coef_ - THETA).max() < np.abs(squares[:5] - THETA).max()
    assert abs(model.intercept_) < 0.6 * abs(squares[-1])
    assert verify_certificate(model.privacy_.to_json()).verified
    if clip is not None:
        assert model.chosen_["residual_clip"] == pytest.approx(clip / 5.0)


def test_without_privacy():
    X, y = problem("skewed", n=5000)
    model = PrivateQuantileRegressor(epsilon=math.inf, quantile=0.8, **BOUNDS).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(0.8, abs=0.002)
    robust = PrivateHuberRegressor(epsilon=math.inf, **BOUNDS).fit(X, y)
    np.testing.assert_allclose(robust.coef_, THETA, atol=0.1)


@pytest.mark.parametrize("wrong", [{"quantile": 0.0}, {"quantile": 1.0}])
def test_bad_parameters_are_refused(wrong):
    X, y = problem(n=50)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PrivateQuantileRegressor(**wrong, **BOUNDS).fit(X, y)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("rounds", [None, 0, 3])
@pytest.mark.parametrize("kind", ["zeros", "constant", "huge", "few rows", "wide"])
@pytest.mark.parametrize("cls", [PrivateHuberRegressor, PrivateQuantileRegressor])
def test_hard_data(cls, kind, rounds, epsilon):
    """Fits end, with finite coefficients and the budget that was asked for."""
    X, y = problem(n=300)
    if kind == "zeros":
        X, y = np.zeros_like(X), np.zeros_like(y)
    elif kind == "constant":
        y = np.full_like(y, 5.0)
    elif kind == "huge":
        X, y = X * 1e300, y * 1e300
    elif kind == "few rows":
        X, y = X[:2], y[:2]
    elif kind == "wide":
        X = np.random.default_rng(1).choice([-1.0, 1.0], (300, 140))
    model = fixing(cls, rounds=rounds)(epsilon=epsilon, **BOUNDS).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.privacy_.epsilon <= epsilon


@pytest.mark.parametrize("law", ["normal", "growing"])
def test_intervals_of_a_robust_fit_cover(law):
    """Of 30 fits with 6 coefficients each; benchmarks/inference.py has hundreds."""
    hits, wide = [], []
    for seed in range(30):
        X, y = problem(law, n=4_000, seed=seed)
        model = PrivateHuberRegressor(epsilon=3.0, inference=True, random_state=seed, **BOUNDS)
        ends = model.fit(X, y).conf_int(intercept=True)
        truth = np.append(THETA, 0.0)
        hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        wide.append(ends[:, 1] - ends[:, 0])
    assert 0.88 < np.mean(hits) <= 1.0
    assert np.median(wide) < 0.15
    assert not hasattr(model, "residual_std_")
    assert model.privacy_.epsilon <= 3.0
    assert verify_certificate(model.privacy_.to_json()).verified
    assert "std err" in str(model.summary())


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_a_fit_without_privacy_of_tied_targets_and_collinear_columns(quantile):
    """Rounded targets and complete sets of indicators: the loss has corners and flat valleys."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 6, size=(4000, 5))
    X = np.concatenate([(kinds == k).astype(float) for k in range(6)], axis=1)
    y = np.clip(np.round(5.0 + kinds[:, 0] + rng.gamma(2.0, 1.0, 4000)), 0.0, 20.0)
    model = PrivateQuantileRegressor(
        quantile=quantile, epsilon=math.inf, bounds_X=(0.0, 1.0), bounds_y=(0.0, 20.0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left = y - model.fit(X, y).predict(X)
    # Of tied rows either side counts.
    assert np.mean(left < -0.05) <= quantile <= np.mean(left < 0.05)
