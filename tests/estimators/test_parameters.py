"""Every parameter has an effect, or is refused: for every estimator and variant."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from sklearn.base import clone

import fastmix
from fastmix import BudgetAccountant, PrivateLinearRegression

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6, "random_state": 0}
SIZED = {"gaussian_size": 50, "sketch_size": 64}
MODELS = {
    "AdaSSP": fastmix.AdaSSP(),
    "AdaSSP inference": fastmix.AdaSSP(inference=True),
    "DPGradientDescent": fastmix.DPGradientDescent(),
    "FastIHM": fastmix.FastIHM(),
    "FastIHM sized": fastmix.FastIHM(**SIZED),
    "FastIHM shared": fastmix.FastIHM(variant="shared"),
    "FastIHM paper": fastmix.FastIHM(variant="paper"),
    "FastIHM paper sized": fastmix.FastIHM(variant="paper", **SIZED),
    "IHM": fastmix.IHM(),
    "IHM sized": fastmix.IHM(gaussian_size=50),
    "IHM paper": fastmix.IHM(variant="paper"),
    "IHM paper sized": fastmix.IHM(variant="paper", gaussian_size=50),
    "IHS": fastmix.IHS(),
    "IHS sized": fastmix.IHS(sketch_size=20),
    "IHS gaussian": fastmix.IHS(sketch="gaussian"),
    "LinearMixing": fastmix.LinearMixing(),
    "LinearMixing sized": fastmix.LinearMixing(gaussian_size=50),
    "LinearMixing fast": fastmix.LinearMixing(fast=True),
    "LinearMixing fast sized": fastmix.LinearMixing(fast=True, **SIZED),
    **{
        f"Private {method}": PrivateLinearRegression(method=method)
        for method in ("auto", "adassp", "linear_mixing")
    },
}
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
    "shrinkage": [True],
    "inference": [True, False],
    "engine": ["literal"],
    "noise": ["exact"],
    "random_state": [1],
    "verbose": [True],
    "variant": ["paper", "tuned"],
    "calibration": ["closed_form", "published", "joint", "numerical"],
    "sketch": ["dct", "gaussian", "srht"],
    "fast": [True, False],
    "learning_rate": [0.1],
    "method": ["dp_gd", "adassp"],
}
#: Has tests of its own.
ELSEWHERE = {"accountant"}


def problem():
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (80, 3)), rng.uniform(-1, 1, 80)


def planned(model):
    """Return the plan of a fit, which takes no time."""
    model._check_parameters()
    plan = model._make_plan(80, 3)
    return repr((plan.spent, plan.parameters))


def seen(model, capsys):
    """Return what a fit shows: plan, scaling, released numbers, attributes and output."""
    X, y = problem()
    model = clone(model)
    if model.noise == "exact":
        model.set_params(random_state=None)
    budget = BudgetAccountant(float("inf"), 1e-2)
    capsys.readouterr()
    model.set_params(accountant=budget).fit(X, y)
    certificate = model.privacy_
    derived = {k: v for k, v in certificate.parameters.items() if k not in model.get_params()}
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
LONG = {"IHM", "IHM sized", "FastIHM sized", "Private auto"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in MODELS],
)
def test_every_parameter_has_an_effect_or_is_refused(name, capsys):
    model = MODELS[name].set_params(**BOUNDS)
    plain = seen(model, capsys)
    assert plain == seen(model, capsys), "the comparison would see effects of nothing"
    plan = planned(model)
    names = {field.name for field in fields(model)}
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
        assert changed or errors, parameter
        assert all(error.split(" must ")[0] in names for error in errors)


IGNORED = [
    (fastmix.AdaSSP(residual_clip=0.5), "residual_clip"),
    (fastmix.AdaSSP(n_steps=3), "n_steps"),
    (fastmix.LinearMixing(residual_clip=0.5), "residual_clip"),
    (fastmix.LinearMixing(sketch_size=32), "sketch_size"),
    (fastmix.FastIHM(calibration="closed_form"), "calibration"),
    (fastmix.FastIHM(failure_probability=0.1, **SIZED), "failure_probability"),
    (fastmix.IHM(sketch_size=32), "sketch_size"),
    (fastmix.DPGradientDescent(shrinkage=True), "shrinkage"),
    (fastmix.DPGradientDescent(engine="literal"), "engine"),
    (fastmix.IHS(residual_clip=1.0), "residual_clip"),
    (fastmix.IHS(noise="exact"), "noise"),
    (PrivateLinearRegression(method="adassp", residual_clip=0.5), "residual_clip"),
    (PrivateLinearRegression(method="linear_mixing", n_steps=3), "n_steps"),
    (PrivateLinearRegression(sketch_size=32), "sketch_size"),  # 'ihm', for three columns
]


@pytest.mark.parametrize(("model", "name"), IGNORED)
def test_what_is_ignored_is_refused_before_a_charge(model, name):
    budget = BudgetAccountant(float("inf"), 1e-3)
    model = clone(model).set_params(bounds_X=(-1, 1), bounds_y=(-1, 1), accountant=budget)
    value = model.get_params()[name]
    with pytest.raises(ValueError, match=rf"^{name} must be .*ignores it; got {name}={value!r}\.$"):
        model.fit(*problem())
    assert len(budget.charges) == 0
    model.set_params(**{name: type(model)().get_params()[name]}).fit(*problem())
    assert len(budget.charges) == 1


@pytest.mark.parametrize("name", [name for name in MODELS if "IHS" not in name])
def test_a_certificate_states_clipped_residuals_where_they_are_clipped(name, monkeypatch):
    """Watched where residuals are clipped: in gradients and in counts of residuals."""
    clips = []
    for base in (fastmix.data.array.ArrayRows,):
        for method in ("gradient", "residual_counts"):
            plain = getattr(base, method)

            def watched(self, theta, clip, *rest, plain=plain):
                clips.append(clip)
                return plain(self, theta, clip, *rest)

            monkeypatch.setattr(base, method, watched)
    model = clone(MODELS[name]).set_params(bounds_X=(-1, 1), bounds_y=(-3, 1), delta=1e-6)
    stated = model.fit(*problem()).privacy_.data.get("residuals_clipped_at")
    assert (stated is not None) == bool(clips)
    assert stated is None or stated == 2.0
    inf = clone(model).set_params(epsilon=float("inf")).fit(*problem())
    assert "residuals_clipped_at" not in inf.privacy_.data
