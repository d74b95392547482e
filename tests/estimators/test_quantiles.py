"""Several quantiles in one fit: one account, no crossing, files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fastmix
from fastmix import BudgetAccountant, PrivateQuantileRegressor
from fastmix.certificate import verify_certificate
from tests.transcripts import names, recording

LEVELS = [0.1, 0.5, 0.9]
BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-3, 3)}


def problem(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X @ [0.5, -0.3, 0.1] + 0.4 * rng.normal(size=n) * (1.0 + 0.8 * X[:, 0])


def fitted(X, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {"random_state": None if "accountant" in given else 0, **given}
        return PrivateQuantileRegressor(quantile=LEVELS, **BOUNDS, **given).fit(X, y)


@pytest.mark.parametrize("inference", [False, True])
def test_one_look_one_account(inference):
    """The noise is not seeded: shares are off by 5 standard deviations with probability 1e-6."""
    X, y = problem()
    budget = BudgetAccountant(epsilon=1.0, delta=1e-6)
    with recording() as transcript:
        model = fitted(X, y, delta=1e-6, inference=inference, accountant=budget)
    drawn = names(transcript)
    assert drawn.count("minimiser") == 3
    assert drawn.count("curvatures") == (3 if inference else 0)
    assert 2 <= drawn.count("second moments") <= 5
    assert len(budget) == 1
    assert 0.99 < model.privacy_.epsilon <= 1.0
    assert verify_certificate(model.privacy_.to_json()).verified
    assert model.coef_.shape == (3, 3)
    assert model.intercept_.shape == model.smoothing_.shape == (3,)
    shares = np.mean(y[:, None] <= model.predict(X), axis=0)
    np.testing.assert_allclose(shares, LEVELS, atol=0.03)
    assert hasattr(model, "coef_std_") == inference
    if inference:
        assert model.coef_covariance_.shape == (3, 4, 4)
        assert model.conf_int(intercept=True).shape == (3, 4, 2)


def test_predictions_never_cross():
    X, y = problem(5_000)
    model, wide = fitted(X, y, epsilon=3.0), 5.0 * X
    plain = wide @ model.coef_.T + model.intercept_
    assert (np.diff(plain, axis=1) < 0.0).any()  # the lines cross outside the bounds
    for clip in (True, False):
        assert (np.diff(model.predict(wide, clip=clip), axis=1) >= 0.0).all()
    np.testing.assert_allclose(model.predict(wide, clip=False), np.sort(plain, axis=1))


def test_files_keep_all_quantiles(tmp_path):
    X, y = problem(5_000)
    model = fitted(X, y, epsilon=3.0, inference=True)
    model.save(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = fastmix.load(tmp_path / "model")
    assert again.quantile == LEVELS
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for name in ("coef_std_", "intercept_std_", "coef_covariance_", "smoothing_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert str(again.summary()) == str(model.summary())
    frame = model.summary().to_frame()
    assert [*frame.index[:2], frame.index[-1]] == ["10%: x0", "10%: x1", "90%: intercept"]


@pytest.mark.parametrize("wrong", [[0.5], [0.5, 0.1], [0.1, 0.1], [0.1, 1.5], [], "half"])
def test_lists_rise_between_0_and_1(wrong):
    X, y = problem(100)
    with pytest.raises((ValueError, TypeError), match="quantile must"):
        PrivateQuantileRegressor(quantile=wrong, **BOUNDS).fit(X, y)


def test_what_several_quantiles_do_not_have_is_refused_before_the_charge():
    X, y = problem(500)
    budget = BudgetAccountant(epsilon=10.0, delta=1e-3)
    with pytest.raises(ValueError, match="score_share must be 0 for several quantiles"):
        fitted(X, y, score_share=0.1, accountant=budget)
    assert len(budget) == 0
    model = fitted(X, y, epsilon=3.0, accountant=budget)
    with pytest.raises(ValueError, match="supports one quantile"):
        model.evaluate(X, y, epsilon=1.0)
    assert len(budget) == 1


def test_without_privacy_there_are_several_too():
    X, y = problem(2_000)
    model = fitted(X, y, epsilon=float("inf"))
    shares = np.mean(y[:, None] <= model.predict(X), axis=0)
    np.testing.assert_allclose(shares, LEVELS, atol=0.01)
