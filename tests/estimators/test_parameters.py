"""Every parameter has an effect, or is refused: for every estimator and variant."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from sklearn.base import clone

import fastmix
from fastmix import BudgetAccountant, PrivateLinearRegression
from fastmix.estimators.models import PrivateRegressor

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6, "random_state": 0}
SIZED = {"gaussian_size": 50, "sketch_size": 64}
CLASSES = [
    fastmix.AdaSSP,
    fastmix.DPGradientDescent,
    fastmix.FastIHM,
    fastmix.IHM,
    fastmix.IHS,
    fastmix.LinearMixing,
]
MODELS = {
    "AdaSSP": fastmix.AdaSSP(),
    "AdaSSP inference": fastmix.AdaSSP(inference=True),
    "DPGradientDescent": fastmix.DPGradientDescent(),
    "FastIHM": fastmix.FastIHM(),
    "FastIHM paper": fastmix.FastIHM(variant="paper"),
    "FastIHM paper sized": fastmix.FastIHM(variant="paper", **SIZED),
    "IHM": fastmix.IHM(),
    "IHM paper": fastmix.IHM(variant="paper"),
    "IHM paper sized": fastmix.IHM(variant="paper", gaussian_size=50),
    "IHS": fastmix.IHS(),
    "IHS sized": fastmix.IHS(sketch_size=20),
    "IHS gaussian": fastmix.IHS(sketch="gaussian"),
    "LinearMixing": fastmix.LinearMixing(),
    "ObjectivePerturbation": fastmix.ObjectivePerturbation(),
    "PrivateLinearRegression": fastmix.PrivateLinearRegression(),
    "LinearMixing sized": fastmix.LinearMixing(gaussian_size=50),
    "LinearMixing fast": fastmix.LinearMixing(fast=True),
    "LinearMixing fast sized": fastmix.LinearMixing(fast=True, **SIZED),
}
COMMON = {field.name for field in fields(PrivateRegressor)}
#: Other values of each parameter; one of them must have an effect, or all must be refused.
OTHERS = {
    "epsilon": [2.0, float("inf")],
    "delta": [1e-5],
    "bounds_X": [(-2, 2)],
    "bounds_y": [(-2, 2)],
    "data_norm": [0.5],
    "fit_intercept": [False],
    "n_steps": [2],
    "gaussian_size": [60],
    "sketch_size": [128, 64],
    "failure_probability": [1e-12],
    "residual_clip": [0.3],
    "ridge": [7.0],
    "solver": ["sketch"],
    "shrinkage": [True],
    "inference": [True, False],
    "literal": [True],
    "random_state": [1],
    "score_share": [0.1],
    "variant": ["paper", "tuned"],
    "calibration": ["published", "joint"],
    "sketch": ["dct", "gaussian", "srht"],
    "fast": [True, False],
    "learning_rate": [0.1],
}
WITHOUT_INTERVALS = ("DP", "IHS", "Lin", "Objective")
#: What these refuse, because of the kind of method.
REFUSED = {
    *((name, "inference") for name in MODELS if name.startswith(WITHOUT_INTERVALS)),
    ("ObjectivePerturbation", "score_share"),
    ("FastIHM paper sized", "variant"),
    ("IHM paper sized", "variant"),
    ("LinearMixing fast sized", "fast"),
}
#: Have tests of their own: budgets, tables (test_frames.py) and sizes.
ELSEWHERE = {"accountant", "bounds", "public_rows"}


def problem():
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (80, 3)), rng.uniform(-1, 1, 80)


def planned(model):
    """Return the plan of a fit, which takes no time."""
    model._check_parameters()
    _, plan = model._planned(80, 3)
    return repr((plan.spent, plan.settings))


def seen(model, capsys):
    """Return what a fit shows: plan, scaling, released numbers, attributes and output."""
    X, y = problem()
    model = clone(model)
    budget = BudgetAccountant(float("inf"), 1e-2)
    capsys.readouterr()
    model.set_params(accountant=budget).fit(X, y)
    certificate = model.privacy_
    # What a certificate repeats of the parameters is no effect of theirs.
    asked = model.get_params().keys() | {field.name for field in fields(model._resolve())}
    derived = {key: v for key, v in certificate.parameters.items() if key not in asked}
    return repr(
        (
            certificate.spent,
            certificate.data,
            certificate.noise,
            derived,
            model.coef_.tolist(),
            sorted(set(vars(model)) - set(model.get_params())),
            capsys.readouterr().err,
        )
    )


#: Their calibration takes seconds.
LONG = {"IHM", "IHM sized", "FastIHM sized", "PrivateLinearRegression"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in MODELS],
)
def test_every_parameter_has_an_effect_or_is_refused(name, capsys):
    model = clone(MODELS[name]).set_params(**BOUNDS)
    plain = seen(model, capsys)
    assert plain == seen(model, capsys), "the comparison would see effects of nothing"
    plan = planned(model)
    names = {field.name for field in fields(model)}
    assert names - ELSEWHERE <= OTHERS.keys(), "a parameter without a test"
    ignored = model._resolve().ignored()
    for parameter in names - ELSEWHERE:
        if name == "IHS sized" and parameter == "delta":
            continue  # IHS has no guarantee, whatever epsilon and delta say
        changed, errors = False, []
        for value in OTHERS[parameter]:
            if value == getattr(model, parameter):
                continue
            try:
                other = clone(model).set_params(**{parameter: value})
                changed |= planned(other) != plan or seen(other, capsys) != plain
            except ValueError as error:
                errors.append(str(error))
        assert all(error.split(" must ")[0] in names for error in errors)
        if parameter in ignored:
            assert not changed, parameter
            assert any("ignores it" in error for error in errors), parameter
        elif (name, parameter) not in REFUSED:
            assert changed, (parameter, errors)
        else:
            assert errors, parameter


@pytest.mark.parametrize("cls", CLASSES)
def test_parameters_are_the_common_ones_and_those_of_the_method(cls):
    """An estimator is its method with scikit-learn's side: the same fields, the same defaults."""
    own = {field.name: field.default for field in fields(cls) if field.name not in COMMON}
    of_method = {field.name: field.default for field in fields(cls._method)}
    assert own == of_method
    assert list(own) == list(of_method)
    assert set(cls().get_params()) == COMMON | own.keys()
    for name, default in cls().get_params().items():
        if name in COMMON:
            assert default == getattr(PrivateRegressor, name), name


@pytest.mark.parametrize("cls", [*CLASSES, PrivateLinearRegression])
def test_what_a_method_does_not_have_is_no_parameter(cls):
    names = {field.name for field in fields(cls)}
    others = OTHERS.keys() - names
    assert others
    for name in others:
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            cls(**{name: OTHERS[name][0]})
        with pytest.raises(ValueError, match=f"Invalid parameter '{name}'"):
            cls().set_params(**{name: OTHERS[name][0]})


IGNORED = [
    (fastmix.LinearMixing(sketch_size=32), "sketch_size"),
    (fastmix.LinearMixing(failure_probability=0.1, gaussian_size=50), "failure_probability"),
    (fastmix.AdaSSP(calibration="published"), "calibration"),
    (fastmix.FastIHM(literal=True), "literal"),
    (fastmix.IHM(gaussian_size=50), "gaussian_size"),
    (fastmix.IHM(shrinkage=True), "shrinkage"),
    (fastmix.IHM(residual_clip=0.5), "residual_clip"),
    (fastmix.FastIHM(failure_probability=0.1), "failure_probability"),
    (fastmix.IHS(failure_probability=0.1, sketch_size=20), "failure_probability"),
]


@pytest.mark.parametrize(("model", "name"), IGNORED)
def test_what_is_ignored_is_refused_before_a_charge(model, name):
    budget = BudgetAccountant(float("inf"), 1e-3)
    model = clone(model).set_params(bounds_X=(-1, 1), bounds_y=(-1, 1), accountant=budget)
    message = rf"^{name} must be .*ignores it; got {name}={model.get_params()[name]!r}\.$"
    with pytest.raises(ValueError, match=message):
        model.fit(*problem())
    assert len(budget.charges) == 0
    model.set_params(**{name: type(model)().get_params()[name]}).fit(*problem())
    assert len(budget.charges) == 1


@pytest.mark.parametrize("name", [name for name in MODELS if "IHS" not in name])
def test_a_certificate_states_clipped_residuals_where_they_are_clipped(name, monkeypatch):
    """Watched where residuals are clipped: in gradients and in counts of residuals."""
    clips = []
    for base in (fastmix.data.array.ArrayRows,):
        for method in ("gradient", "residual_counts", "slopes"):
            plain = getattr(base, method)

            def watched(self, theta, clip, *rest, plain=plain, **options):
                clips.append(clip)
                return plain(self, theta, clip, *rest, **options)

            monkeypatch.setattr(base, method, watched)
    model = clone(MODELS[name]).set_params(bounds_X=(-1, 1), bounds_y=(-3, 1), delta=1e-6)
    data = model.fit(*problem()).privacy_.data
    stated = data.get("residuals_clipped_at")
    if "chosen" in data:  # at a level that it states
        assert stated is None
        assert data["chosen"]["gradient_clip"] > 0.0
        assert clips
    else:
        assert (stated is not None) == bool(clips)
    assert stated is None or stated == 2.0
    inf = clone(model).set_params(epsilon=float("inf")).fit(*problem())
    assert "residuals_clipped_at" not in inf.privacy_.data
