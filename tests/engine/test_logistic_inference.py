"""Intervals of logistic fits: coverage, width, odds ratios, and released values only."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastmix import PrivateLinearRegression, PrivateLogisticRegression
from fastmix.accounting import GaussianEvent
from fastmix.certificate.verify import verify_certificate
from fastmix.engine import adaptive_inference as module
from tests.transcripts import recording, replaying

COMMON = {"classes": [0, 1], "bounds_X": (-1, 1), "delta": 1e-6, "inference": True}
THETA = np.array([2.0, -1.0, 0.0, 0.5, -0.5])


def problem(n=10_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, len(THETA)))
    return X, (X @ THETA + 0.3 + rng.logistic(size=n) > 0).astype(int)


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_coverage_and_width(epsilon):
    """Nominal 95% covers 91 to 99%, and standard errors are those of the errors.

    Seeded; 6 coefficients of 40 fits.
    """
    errors, stds = [], []
    for seed in range(40):
        X, y = problem(seed=seed)
        model = PrivateLogisticRegression(epsilon=epsilon, random_state=seed, **COMMON).fit(X, y)
        errors.append(np.append(model.coef_ - THETA, model.intercept_ - 0.3))
        stds.append(np.append(model.coef_std_, model.intercept_std_))
    errors, stds = np.array(errors), np.array(stds)
    assert np.isfinite(stds).all()
    assert 0.91 <= np.mean(np.abs(errors) <= 1.96 * stds) <= 0.99
    assert 0.85 <= np.sqrt(np.mean(stds**2) / np.mean(errors**2)) <= 1.3


@pytest.mark.filterwarnings("ignore::fastmix.WeakPrivacyWarning")
def test_at_a_large_epsilon_errors_are_those_of_the_likelihood():
    X, y = problem(20_000)
    model = PrivateLogisticRegression(epsilon=20.0, random_state=1, **COMMON).fit(X, y)
    p = model.predict_proba(X)[:, 1]
    D = np.column_stack([X, np.ones(len(X))])
    exact = np.sqrt(np.diag(np.linalg.inv((D * (p * (1 - p))[:, None]).T @ D)))
    np.testing.assert_allclose(model.coef_std_[0], exact[:-1], rtol=0.2)
    assert model.intercept_std_ == pytest.approx(exact[-1], rel=0.2)
    assert (model.coef_noise_std_ < model.coef_std_).all()
    assert model.coef_std_.shape == model.coef_.shape
    assert not hasattr(model, "residual_std_")
    assert not hasattr(model, "residual_std_identified_")


def test_the_share_of_the_budget():
    """Curvature and squares take 15% of mu^2, beside what a fit without intervals releases."""
    X, y = problem()
    model = PrivateLogisticRegression(epsilon=1.0, random_state=0, **COMMON).fit(X, y)
    assert verify_certificate(model.privacy_.to_json()).verified
    sigmas = [module.CURVATURE_SHARE, module.SQUARES_SHARE]
    assert sum(sigmas) <= 0.2
    plain = PrivateLogisticRegression(
        **{**COMMON, "inference": False}, epsilon=1.0, random_state=0
    ).fit(X, y)
    gaussian = [e for e in model.privacy_.events if isinstance(e, GaussianEvent)]
    fewer = [e for e in plain.privacy_.events if isinstance(e, GaussianEvent)]
    assert len(gaussian) == len(fewer) + 2
    assert not hasattr(plain, "coef_std_")


def test_intervals_are_functions_of_what_was_released():
    X, y = problem(3000)
    model = PrivateLogisticRegression(epsilon=1.0, random_state=0, **COMMON)
    with recording() as transcript:
        model.fit(X, y)
    other, labels = problem(3000, seed=9)
    again = PrivateLogisticRegression(epsilon=1.0, random_state=1, **COMMON)
    with replaying(transcript):
        again.fit(other, labels)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    np.testing.assert_array_equal(model.coef_std_, again.coef_std_)
    np.testing.assert_array_equal(model.coef_identified_, again.coef_identified_)


def test_the_summary_has_odds_ratios():
    X, y = problem()
    model = PrivateLogisticRegression(epsilon=3.0, random_state=0, **COMMON).fit(X, y)
    found = model.summary()
    assert "Private logistic regression" in str(found)
    assert "odds ratio" in str(found)
    line, told = found.lines[0], found.to_dict()["coefficients"][0]
    assert told["odds_ratio"] == pytest.approx(math.exp(line.coef))
    assert told["odds_low"] == pytest.approx(math.exp(line.low))
    frame = found.to_frame()
    assert frame["odds ratio"].iloc[0] == told["odds_ratio"]
    assert frame["OR 0.975]"].iloc[0] == told["odds_high"]
    assert "odds ratio" in found.html_table()
    low, high = model.conf_int()[0]
    assert (low, high) == pytest.approx((line.low, line.high))
    plain = model.set_params(inference=False).fit(X, y).summary()
    assert plain.header == ["coef", "over range", "odds ratio"]
    assert plain.to_dict()["coefficients"][0]["odds_ratio"] > 0.0


def test_several_classes_have_intervals_of_each_against_the_rest():
    """The truth is the logistic regression of each class in the population.

    Of 90 intervals 4.5 miss on average, and independent ones more than 18 with probability 1e-7.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200_000, 2))
    slopes = np.array([[1.5, -1.0], [-0.5, 1.0], [0.0, 0.0]])
    y = (X @ slopes.T + rng.gumbel(size=(len(X), 3))).argmax(axis=1)
    known = {"classes": [0, 1, 2], "bounds_X": (-1.0, 1.0), "delta": 1e-6}
    exact = PrivateLogisticRegression(epsilon=math.inf, **known).fit(X, y)
    truth = np.column_stack((exact.coef_, exact.intercept_))
    missed = 0
    for seed in range(10):
        own = rng.choice(len(X), 20_000)
        model = PrivateLogisticRegression(epsilon=3.0, inference=True, random_state=seed, **known)
        ends = model.fit(X[own], y[own]).conf_int(intercept=True)
        assert ends.shape == (3, 3, 2)
        assert np.isfinite(ends).all()
        missed += int(np.sum((truth < ends[..., 0]) | (truth > ends[..., 1])))
    assert missed <= 18
    made = model.summary()
    assert [line.name for line in made.shown[2::3]] == [f"{k}: intercept" for k in range(3)]
    assert "odds ratio" in made.header


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_two_equal_columns_are_not_identified(epsilon):
    X, y = problem(20_000)
    X[:, 2] = X[:, 0]
    model = PrivateLogisticRegression(epsilon=epsilon, random_state=0, **COMMON).fit(X, y)
    assert model.coef_identified_.tolist() == [[False, True, False, True, True]]
    assert np.isinf(model.coef_std_[0, [0, 2]]).all()
    assert np.abs(model.coef_).max() < 100.0  # whatever noise does in that direction
    assert model.coef_[0, [0, 2]].sum() == pytest.approx(2.0, abs=0.3)
    assert "hidden by noise" in str(model.summary())


def test_nor_are_they_in_a_linear_fit():
    X, y = problem(20_000)
    X[:, 2] = X[:, 0]
    given = {name: COMMON[name] for name in ("bounds_X", "delta", "inference")}
    model = PrivateLinearRegression(epsilon=3.0, bounds_y=(0, 1), random_state=0, **given).fit(X, y)
    assert model.coef_identified_.tolist() == [False, True, False, True, True]
    assert np.abs(model.coef_).max() < 10.0  # noise in that direction
