"""Whatever can be refused is refused before the charge: a charge without a fit is lost budget."""

import math

import numpy as np
import pandas as pd
import pytest

from fastmix import (
    IHM,
    IHS,
    AdaSSP,
    BudgetAccountant,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    ObjectivePerturbation,
    PrivateBounds,
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
    compare,
)
from fastmix.engine import table_fit
from fastmix.estimators.models import EngineModel, fixing

KINDS = (
    *(PrivateLinearRegression, ObjectivePerturbation, PrivateHuberRegressor),
    *(fixing(PrivateQuantileRegressor, smoothing=1e-12), PrivateQuantileRegressor),
    *(PrivateLogisticRegression, IHM, FastIHM, AdaSSP, IHS, LinearMixing, DPGradientDescent),
)
UNIT = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}
# Warnings of NumPy are errors for some users, and must not come after the charge.
pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning",
    "error::RuntimeWarning",
    "ignore::fastmix.errors.LowAccuracyWarning",
    "ignore::fastmix.errors.WeakPrivacyWarning",
    "ignore::fastmix.errors.ReproducibleNoiseWarning",
)


def records(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


def hostile(kind, rng):
    """Return a model with public parameters at their limits, and data for it."""

    def one(*options):
        return options[rng.integers(len(options))]

    def size():
        return float(10.0 ** one(0, 0, 0, *rng.integers(-300, 301, 3)))

    X, y = records(int(one(1, 2, 3, 8, 50, 300)), int(one(1, 2, 3, 8, 13)), int(rng.integers(99)))
    given = {
        "epsilon": float(10 ** rng.uniform(-3, 2)),
        "delta": one(0.5, 0.1, 1e-3, 1e-6, 1e-12, 1e-100),
        "fit_intercept": bool(one(True, False)),
        "inference": bool(one(True, False)),
    }
    if one(True, False):
        given["data_norm"] = size()
    else:
        unit = size()
        X, given["bounds_X"] = unit * X, (-unit, unit)
    if kind is PrivateLogisticRegression:
        y, given["classes"] = np.where(y > 0, 1, 0), (0, 1)
    else:
        unit = size()
        y, given["bounds_y"] = unit * y, one((-unit, unit), (0.0, unit))
    known = kind().get_params()
    if "residual_clip" in known:
        given["residual_clip"] = one(None, 1e-3, size(), float(10.0 ** rng.integers(-12, 13)))
    fit = {}
    if not issubclass(kind, EngineModel):
        return kind(**given), X, y, fit
    given["public_rows"] = bool(one(True, True, False))
    given["score_share"] = one(0.0, 0.0, 0.1)
    if one(True, False, False, False):
        fit |= {"max_rows_per_group": 3, "groups": np.arange(len(y)) // 2}
    if one(True, False, False, False):
        fit |= {"max_weight": 2.0, "sample_weight": np.linspace(0, 2, len(y))}
    return kind(**given), X, y, fit


def fits(model, X, y, budget, **given):
    """Whether a model is fitted; a refusal must not be charged."""
    before = len(budget)
    try:
        model.set_params(accountant=budget).fit(X, y, **given)
    except (ValueError, ArithmeticError, RuntimeWarning):
        if len(budget) > before:
            raise
        return False
    assert np.isfinite(model.coef_).all()
    assert not np.isnan(getattr(model, "coef_noise_std_", 0.0)).any()
    assert len(budget) == before + (1 if model.public_rows else 2)
    return True


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "models", [60, pytest.param(300, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_nothing_fails_after_the_charge(kind, models):
    rng = np.random.default_rng(models)
    fitted = 0
    while fitted < models // 10:
        budget = BudgetAccountant(math.inf, 1e-3)
        for _ in range(models // 10):
            model, X, y, given = hostile(kind, rng)
            fitted += fits(model, X, y, budget, **given)


TABLE_KINDS = (
    *(PrivateLinearRegression, PrivateHuberRegressor),
    *(PrivateLogisticRegression, PrivateQuantileRegressor),
)


def hostile_table(kind, rng):
    """Return a model of a table with categories, the table, and ids and weights for the fit."""

    def one(*options):
        return options[rng.integers(len(options))]

    n, shape = int(one(1, 2, 3, 5, 10, 25, 50, 200, 1000)), one("random", "one", "far", "constant")
    features, frame = {}, {}
    for j in range(one(0, 0, 1, 2, 4)):
        low, high = one((0.0, 1.0), (-1e6, 1e6), (5.0, 5.0000001), (-1e-9, 1e-9), (0.0, 1e99))
        at = rng.choice([0.0, 1.0, -7.0, 1e10], n) if shape == "far" else rng.uniform(0, 1, n)
        at = np.full(n, 0.5) if shape == "constant" else at
        features[f"x{j}"], frame[f"x{j}"] = (low, high), low + (high - low) * at
    for j in range(one(1, 1, 2, 3)):
        levels = [f"v{k}" for k in range(one(1, 2, 3, 5, 20))]
        features[f"c{j}"] = levels
        frame[f"c{j}"] = [levels[0]] * n if shape == "one" else rng.choice(levels, n)
    y = np.full(n, 0.3) if shape == "constant" else rng.uniform(0, 1, n)
    given = {
        "epsilon": one(0.01, 0.5, 3.0, 50.0, 1e4, 1e6),
        "delta": one(0.5, 1e-3, 1e-6, 1e-12),
        "inference": one(True, False) and kind is not PrivateQuantileRegressor,
        "public_rows": one(True, True, False),
    }
    if kind is PrivateLogisticRegression:
        target, frame["y"] = ["a", "b"], np.where(y > one(0.5, 2.0), "b", "a")
    else:
        low, high = target = one((0.0, 1.0), (-1e9, 1e9), (0.0, 1e-9), (0.0, 1e99))
        frame["y"] = low + (high - low) * one(y, y, np.where(y > 0.5, 9.0, -9.0))
    if "residual_clip" in kind().get_params():
        given["residual_clip"] = one(None, None, 1e-9, 1e3)
    given["bounds"], fit = {"target": {"y": target}, "features": features}, {}
    if one(True, False, False):
        fit["max_rows_per_group"] = one(1, 2, 5, 100)
        fit["groups"] = one(rng.integers(0, max(1, n // 2), n), np.zeros(n, dtype=int))
    if one(True, False, False):
        weights = np.linspace(0, 3, n), np.zeros(n), np.full(n, 1e-300), np.full(n, 1e300)
        fit["max_weight"], fit["sample_weight"] = 2.0, one(*weights)
    given["score_share"] = one(0.0, 0.0, 0.1)
    return kind(**given), pd.DataFrame(frame), fit


@pytest.mark.parametrize("kind", TABLE_KINDS)
@pytest.mark.parametrize(
    "forced",
    [(), ("MOST_COLUMNS",), ("MOST_COLUMNS", "MOST_WITH_STEPS", "MOST_NOISE")],
    ids=["as planned", "always by levels", "always with steps"],
)
@pytest.mark.parametrize(
    "models", [15, pytest.param(400, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_no_table_fails_after_the_charge(kind, forced, models, monkeypatch):
    """A fit of a table checks itself that its releases are those of its plan."""
    for name in forced:
        monkeypatch.setattr(table_fit, name, math.inf)
    rng = np.random.default_rng(models)
    fitted = 0
    for _ in range(models):
        budget = BudgetAccountant(math.inf, 0.9999)
        model, frame, given = hostile_table(kind, rng)
        fitted += fits(model, frame, None, budget, **given)
    assert fitted > models // 3


def test_separated_labels_leave_intervals_without_curvature():
    """Log-odds so far out that their curvature is 0 made a division by zero, after the charge."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(0, 1, 200), "c": rng.choice(["u", "v", "w"], 200)})
    frame["y"] = np.where(frame.c == "u", "b", "a")
    features = {"x": (0.0, 1.0), "c": ["u", "v", "w"]}
    bounds = {"target": {"y": ["a", "b"]}, "features": features}
    given = {"epsilon": 1e6, "delta": 0.5, "bounds": bounds, "inference": True}
    for seed in range(10):
        model = PrivateLogisticRegression(random_state=seed, **given).fit(frame)
        assert np.isfinite(model.coef_).all()
        assert not np.isnan(model.coef_std_).any()


@pytest.mark.parametrize("seed", [0, 38])
def test_rows_without_weight_leave_a_ridge_that_decides_all(seed):
    """A singular matrix of the intervals was an error, after the charge."""
    X, y = records(20_000, 3)
    X[:, 1:] = np.eye(3)[np.digitize(X[:, 1], [-0.3, 0.3])][:, 1:]
    given = {"bounds_X": (-1.0, 1.0), "classes": [0, 1, 2], "random_state": seed}
    model = PrivateLogisticRegression(epsilon=0.3, delta=1e-300, inference=True, **given)
    nothing = {"sample_weight": np.zeros(20_000), "max_weight": 2.0}
    model.fit(X, np.digitize(y, [-0.3, 0.3]), categories=[[1, 2]], **nothing)
    assert np.isfinite(model.coef_).all()
    assert not model.coef_identified_.any()


@pytest.mark.parametrize("persons", [False, True])
def test_steps_of_rows_that_count_in_full_at_any_length(persons):
    """A loss for very long rows needs a larger ridge than steps had, which raised in the fit."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(["u", "v"], 3000), "y": 0.5})
    bounds = {"target": {"y": (0.0, 1.0)}, "features": {"c": ["u", "v"]}}
    ids = {"groups": np.arange(3000) // 2, "max_rows_per_group": 3} if persons else {}
    for epsilon in (0.1, 1.0):
        model = PrivateHuberRegressor(
            epsilon=epsilon, delta=1e-3, bounds=bounds, residual_clip=1e6, random_state=0
        )
        assert np.isfinite(model.fit(frame, **ids).coef_).all()


@pytest.mark.parametrize("kind", [k for k in TABLE_KINDS if k is not PrivateQuantileRegressor])
@pytest.mark.parametrize("norm", [1e-100, 1e-40, 1e-29, 1e-13, 1e-12, 1e-6, 1e99])
def test_dummies_with_a_public_norm_of_any_size(kind, norm):
    """Tiny norms made coordinates so long that the minimiser was refused after the charge."""
    X, y = records(3000, 3)
    X[:, 1:] = np.eye(3)[np.digitize(y, [-0.3, 0.3])][:, 1:]
    ends = {"bounds_y": (-1.0, 1.0)}
    if kind is PrivateLogisticRegression:
        y, ends = (y > 0.5).astype(int), {"classes": [0, 1]}
    fitted, budget = 0, BudgetAccountant(math.inf, 0.9)
    for inference in (False, True):
        given = {"epsilon": 3.0, "delta": 1e-3, "inference": inference, **ends}
        model = kind(bounds_X=(-1.0, 1.0), data_norm=norm, **given)
        fitted += fits(model, X, y, budget, categories=[[1, 2]])
    assert fitted == (2 if norm >= 1e-12 else 0)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("kind", [PrivateHuberRegressor, ObjectivePerturbation])
def test_ridges_meet_the_condition_of_the_loss(kind, d):
    """A ridge of exactly what the loss needs was one rounding below it, for every third size."""
    for n in range(2, 40):
        X, y = records(n, d)
        kind(residual_clip=1e-3, **UNIT).fit(X, y)
    for epsilon, delta in [(0.01, 0.1), (0.001, 0.5), (30.0, 0.5), (100.0, 1e-6)]:
        for clip in (1e-12, 1e-6, 1e-3, 1.0):
            kind(epsilon=epsilon, delta=delta, residual_clip=clip, **UNIT).fit(X, y)


@pytest.mark.parametrize("kind", [IHM, FastIHM, AdaSSP, PrivateLinearRegression])
@pytest.mark.parametrize("norm", [1e-100, 1e-50, 1e50, 1e99])
def test_intervals_with_a_public_norm_of_any_size(kind, norm):
    X, y = records(2000, 3)
    model = kind(data_norm=norm, bounds_y=(-1, 1), delta=1e-6, inference=True).fit(X, y)
    assert (model.coef_std_ > 0).all()
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("kind", [IHM, FastIHM])
def test_intervals_of_what_cannot_be_told_are_endless(kind):
    """Rounding can leave a covariance without sense: no warning of NumPy, no NaN."""
    X, y = records(9000, 2)
    given = {"epsilon": 50.0, "delta": 1e-12, "fit_intercept": False, "inference": True}
    for _ in range(5):
        model = kind(data_norm=1e90, bounds_y=(0.0, 1e-9), **given).fit(1e93 * X, y)
        unknown = ~model.coef_identified_
        assert not np.isnan(model.coef_noise_std_).any()
        assert np.isinf(model.coef_std_[unknown]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_how_numpy_treats_underflow_ends_no_fit(kind):
    """With np.seterr(all="raise") an underflow in the solver lost the charge."""
    rng, fitted = np.random.default_rng(7), 0
    with np.errstate(all="raise"):
        for _ in range(12):
            model, X, y, given = hostile(kind, rng)
            fitted += fits(model, X, y, BudgetAccountant(math.inf, 1e-3), **given)
    assert fitted > 0


def test_nor_scores_comparisons_and_bounds():
    X, y = records(2000, 3)
    budget = BudgetAccountant(math.inf, 1e-3)
    with np.errstate(all="raise"):
        model = PrivateLinearRegression(delta=1e-6, accountant=budget, **UNIT)
        model.fit(X, y).evaluate(1e-60 * X, y, epsilon=1.0, delta=1e-6)
        compare([[0], [0, 1]], 1e-60 * X, y, model=model)
        PrivateBounds(epsilon=1.0, delta=1e-6, accountant=budget).fit(1e-60 * X, y)
    assert len(budget) == 4


@pytest.mark.parametrize("kind", [IHM, FastIHM, PrivateLinearRegression, PrivateHuberRegressor])
def test_variances_may_be_infinite_in_the_units_of_the_features(kind):
    """Their overflow was a warning after the charge."""
    X, y = records(30, 2)
    given = {"data_norm": 1e-100, "bounds_y": (-1e100, 1e100), "delta": 0.5, "inference": True}
    for epsilon in (1e-3, 1.0, 100.0):
        model = kind(epsilon=epsilon, **given).fit(X, y)
        assert not np.isnan(model.coef_std_).any()
        assert not np.isnan(model.coef_bias_bound_).any()


def test_a_share_for_scores_leaves_noise_that_can_be_drawn():
    X, y = records(10, 1)
    for share in (1e-9, 0.00099):
        with pytest.raises(ValueError, match=r"score_share must be 0 or at least 0\.001"):
            PrivateLinearRegression(score_share=share, **UNIT).fit(X, y)
    hard = {"epsilon": 1e-6, "delta": 1e-100, "score_share": 1e-3}
    for kind in (PrivateLinearRegression, PrivateHuberRegressor, PrivateQuantileRegressor):
        for more in ({}, {"public_rows": False}):
            kind(**hard, **more, **UNIT).fit(X, y)
