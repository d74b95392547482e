"""The order of a fit: what is checked, when the budget is charged, what an error may say."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import fastmix
from fastmix import IHM, IHS, AdaSSP, BudgetAccountant, BudgetError, FastIHM, PrivacyLeakWarning
from fastmix.errors import InvalidValueError
from fastmix.estimators.models import PrivateRegressor
from fastmix.paper import IterativeHessianMixing
from fastmix.releases import GRADIENT
from fastmix.show.progress import progress

PRIVATE = [
    fastmix.AdaSSP(),
    fastmix.DPGradientDescent(n_steps=5),
    fastmix.FastIHM(),
    fastmix.FastIHM(sketch="dct"),
    fastmix.IHM(),
    fastmix.LinearMixing(delta=1e-6),
    fastmix.LinearMixing(fast=True, delta=1e-6),
    fastmix.PrivateLinearRegression(),
]
BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}


def problem(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


def watched(estimator, monkeypatch):
    """Let the method record the rows that it is given; return the record."""
    seen = []
    cls = type(estimator._resolve())
    solve = cls.solve

    def spy(self, rows, plan, clip, draws):
        blocks = list(rows.blocks())
        seen.append(
            (
                np.concatenate([A for A, _ in blocks]),
                np.concatenate([target for _, target in blocks]),
                rows.bound,
                clip,
            )
        )
        return solve(self, rows, plan, clip, draws)

    monkeypatch.setattr(cls, "solve", spy)
    return seen


def hard_inputs():
    rng = np.random.default_rng(1)
    X, y = problem()
    yield "asymmetric", X, y, {"bounds_X": ([-1, -0.2, 0], [0.1, 3, 2]), "bounds_y": (-0.1, 2)}
    for value in (1e6, 1e300):
        Z = X.copy()
        Z[7] = value
        yield f"outlier {value:g}", Z, y, BOUNDS
        yield f"outlier {value:g}, norm", Z, y, {"data_norm": 1.0, "bounds_y": (-1, 1)}
    Z = X.copy()
    Z[:, 1] = 0.5
    yield "constant", Z, y, {"bounds_X": ([-1, 0.5, -1], [1, 0.5, 1]), "bounds_y": (-1, 1)}
    yield "duplicates", np.repeat(X[:, :1], 3, axis=1), y, BOUNDS
    yield "d = 1", X[:, :1], y, BOUNDS
    yield "n = 1", X[:1], y[:1], BOUNDS
    yield "n = 2", X[:2], y[:2], BOUNDS
    yield "n < d", rng.uniform(-1, 1, (5, 12)), y[:5], BOUNDS
    yield "y out of bounds", X, 1e6 * y, BOUNDS
    yield "y of 1e300", X, 1e300 * y, BOUNDS
    yield "constant y", X, y, {"bounds_X": (-1, 1), "bounds_y": (2, 2)}
    yield "float32", X.astype(np.float32), y.astype(np.float32), BOUNDS
    yield "integers", np.rint(9 * X).astype(int), np.rint(9 * y).astype(int), BOUNDS
    yield "booleans", X > 0, y > 0, {"bounds_X": (0, 1), "bounds_y": (0, 1)}


HARD = {name: (X, y, bounds) for name, X, y, bounds in hard_inputs()}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", HARD)
def test_the_guarantee_holds_and_the_fit_is_finite(name, fit_intercept, monkeypatch):
    X, y, bounds = HARD[name]
    for model in PRIVATE:
        with monkeypatch.context() as patch:
            estimator = clone(model).set_params(
                **bounds, fit_intercept=fit_intercept, random_state=3
            )
            seen = watched(estimator, patch)
            estimator.fit(X, y)
        ((A, target, bound, clip),) = seen
        assert bound == pytest.approx(1.0, abs=1e-15)
        assert np.linalg.norm(A, axis=1).max() <= 1.0
        assert np.abs(target).max() <= 1.0
        assert clip == 1.0
        assert np.isfinite(estimator.coef_).all()
        assert np.isfinite(estimator.intercept_)
        assert np.isfinite(estimator.predict(X)).all()
        assert estimator.coef_.shape == (X.shape[1],)
        assert estimator.privacy_.epsilon <= 1.0
        # Removing any one record moves the statistics by no more than is paid for.
        assert np.linalg.norm(A.T @ A - A[1:].T @ A[1:]) <= 1.0 + 1e-12
        assert np.linalg.norm(A.T @ target - A[1:].T @ target[1:]) <= 1.0 + 1e-12


@pytest.mark.parametrize("cls", [IHM, FastIHM, fastmix.DPGradientDescent])
@pytest.mark.parametrize(("clip", "expected"), [(None, 1.0), (0.5, 0.25), (2.0, 1.0), (6.0, 3.0)])
def test_residual_clip_is_in_the_units_of_the_target(cls, clip, expected, monkeypatch):
    X, y = problem()
    options = {"bounds_X": (-1, 1), "bounds_y": (10, 14), "n_steps": 3, "random_state": 0}
    if cls is not fastmix.DPGradientDescent:
        options["variant"] = "paper"
    model = cls(residual_clip=clip, **options)
    seen = watched(model, monkeypatch)
    model.fit(X, y)
    assert seen[0][3] == pytest.approx(expected, rel=1e-15)
    plain = cls(**options).fit(X, y)
    # Noise follows the clip, so the account does not change.
    assert model.gradient_noise_ == pytest.approx(expected * plain.gradient_noise_, rel=1e-14)
    assert model.privacy_.epsilon == plain.privacy_.epsilon
    # What was paid for is what was drawn: noise over sensitivity is that of the event.
    last = [event for event in model.privacy_.events if event.kind == "gaussian"][-1]
    assert last.sigma / last.sensitivity == pytest.approx(model.gradient_noise_ / expected)


def test_a_record_contributes_at_most_the_clip_to_a_gradient():
    """Sensitivity of what the noise is added to, on exactly these inputs."""
    from fastmix.data import ArrayRows
    from fastmix.data.scaling import public_scaling

    rng = np.random.default_rng(5)
    for X, y, bounds in HARD.values():
        if X.dtype.kind != "f":
            continue
        arguments = {"bounds_X": None, "data_norm": None, **bounds}
        scaling = public_scaling(X, y, **arguments, fit_intercept=True)
        whole = ArrayRows(X, scaling.row_map, y, scaling.target_map)
        if whole.n == 1:
            continue
        rest = ArrayRows(X[1:], scaling.row_map, y[1:], scaling.target_map)
        for clip in (1e-3, 0.7, 1.0, 5.0):
            theta = 1e3 * rng.normal(size=whole.d)
            gap = np.linalg.norm(whole.gradient(theta, clip) - rest.gradient(theta, clip))
            assert gap <= clip * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("missing", "count"),
    [(("bounds_X",), 1), (("bounds_y",), 1), (("bounds_X", "bounds_y"), 1), ((), 0)],
)
def test_missing_bounds_warn_and_void_the_certificate(missing, count):
    X, y = problem()
    given = {name: value for name, value in BOUNDS.items() if name not in missing}
    for model in PRIVATE:
        estimator = clone(model).set_params(**given)
        if count:
            with pytest.warns(PrivacyLeakWarning, match="NOT private") as caught:
                estimator.fit(X, y)
            assert sum(w.category is PrivacyLeakWarning for w in caught) == count
        else:
            estimator.fit(X, y)  # warnings are errors here
        assert estimator.privacy_.private == (not missing)
        assert set(estimator.privacy_.data["taken_from_data"]) == set(missing)
        for name in missing:
            assert any(name in leak for leak in estimator.privacy_.leaks)
            assert getattr(estimator, name) is None
        expected = (X.min(axis=0), X.max(axis=0)) if "bounds_X" in missing else ([-1] * 3, [1] * 3)
        np.testing.assert_array_equal(estimator.bounds_X_, expected)
        assert estimator.bounds_y_ == ((y.min(), y.max()) if "bounds_y" in missing else (-1, 1))


def test_data_norm_needs_no_bounds_of_the_features():
    X, y = problem()
    for model in PRIVATE:
        estimator = clone(model).set_params(data_norm=2.0, bounds_y=(-1, 1)).fit(X, y)
        assert estimator.bounds_X_ is None
        assert estimator.privacy_.private


def test_the_warning_is_shown_at_every_fit():
    """Under Python's own filters, where a repeated warning would be hidden."""
    program = """
        import numpy as np, fastmix
        X, y = np.linspace(-1, 1, 60).reshape(20, 3), np.linspace(-1, 1, 20)
        for _ in range(3):
            fastmix.IHM().fit(X, y)
        for _ in range(2):
            fastmix.PrivateLinearRegression(bounds_X=(-1, 1)).fit(X, y)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("PrivacyLeakWarning: ") == 5
    assert done.stdout == ""


def test_fit_never_rewrites_a_parameter():
    X, y = problem()
    for model in PRIVATE:
        estimator = clone(model)
        before = dict(estimator.get_params())
        with pytest.warns(PrivacyLeakWarning):
            estimator.fit(X, y)
        after = estimator.get_params()
        assert after.keys() == before.keys()
        assert all(after[name] is before[name] for name in before)


BAD = [
    ("epsilon", 0, ValueError, "be greater than 0"),
    ("epsilon", -1.0, ValueError, "be greater than 0"),
    ("epsilon", "1", TypeError, "be a real number"),
    ("epsilon", None, TypeError, "be a real number"),
    ("epsilon", True, TypeError, "be a real number"),
    ("epsilon", float("nan"), ValueError, "not be NaN"),
    ("epsilon", 1e300, ValueError, "be at most 1e+06"),
    ("epsilon", 1e-300, ValueError, "be at least 1e-06"),
    ("delta", 0.0, ValueError, "lie strictly between 0 and 1"),
    ("delta", 1.0, ValueError, "lie strictly between 0 and 1"),
    ("delta", "small", TypeError, "be a real number"),
    ("failure_probability", 1.5, ValueError, "lie strictly between 0 and 1"),
    ("failure_probability", 0.0, ValueError, "lie strictly between 0 and 1"),
    ("data_norm", 0.0, ValueError, "be at least 1e-100"),
    ("data_norm", float("inf"), ValueError, "be finite"),
    ("data_norm", "1", TypeError, "be a real number"),
    ("residual_clip", 0.0, ValueError, "be greater than 0"),
    ("residual_clip", -1, ValueError, "be greater than 0"),
    ("n_steps", 0, ValueError, "be at least 1"),
    ("n_steps", 10**6, ValueError, "be at most 1000"),
    ("n_steps", 2.5, TypeError, "be an integer"),
    ("n_steps", True, TypeError, "be an integer"),
    ("gaussian_size", 0, ValueError, "be at least 1"),
    ("gaussian_size", 3.0, TypeError, "be an integer"),
    ("sketch_size", -4, ValueError, "be at least 1"),
    ("literal", "auto", TypeError, "be a bool"),
    ("shrinkage", 1, TypeError, "be a bool"),
    ("bounds_X", (2, 1), ValueError, "have no lower bound above its upper bound"),
    ("bounds_X", 3, TypeError, "be a pair"),
    ("bounds_y", (2, 1), ValueError, "have no lower bound above its upper bound"),
    ("bounds_y", 7, TypeError, "be a pair"),
]
BAD_OF = [
    (AdaSSP, "calibration", "exact", "be one of 'joint', 'published'"),
    (FastIHM, "sketch", "gaussian", "be one of 'auto', 'dct', 'kerdock', 'sparse', 'srht'"),
    (FastIHM, "variant", "mine", "be one of 'tuned', 'paper'"),
    (IHM, "variant", "mine", "be one of 'tuned', 'paper'"),
    (IHS, "sketch", "dct", "be one of 'srht', 'gaussian'"),
    (fastmix.DPGradientDescent, "learning_rate", 0.0, "be greater than 0"),
]


@pytest.mark.parametrize(("name", "value", "error", "condition"), BAD)
def test_bad_parameters_are_refused_before_anything_is_spent(name, value, error, condition):
    X, y = problem()
    budget = BudgetAccountant(10.0, 1e-3)
    models = [fastmix.PrivateLinearRegression(), fastmix.FastIHM()]
    for estimator in (model for model in models if name in model.get_params()):
        estimator.set_params(**{**BOUNDS, "accountant": budget, name: value})
        with pytest.raises(error) as caught:
            estimator.fit(X, y)
        message = str(caught.value)
        assert message.startswith(f"{name} must {condition}")
        assert f"; got {name}=" in message
        assert message.endswith(".")
        assert len(budget) == 0
        assert not hasattr(estimator, "coef_")


@pytest.mark.parametrize(("cls", "name", "value", "condition"), BAD_OF)
def test_bad_options_of_a_method_are_refused(cls, name, value, condition):
    X, y = problem()
    budget = BudgetAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match=f"(name|method|{name}) must {condition}"):
        cls(**BOUNDS, accountant=budget, **{name: value}).fit(X, y)
    assert len(budget) == 0


def test_an_accountant_must_be_one():
    X, y = problem()
    with pytest.raises(TypeError, match=r"accountant must be a BudgetAccountant or None; got acc"):
        IHM(**BOUNDS, accountant=1.0).fit(X, y)


def texts():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    table = {"a": ["sEcret", "b", "c"], "b": [1.0, 2.0, 3.0]}
    yield "list", [["sEcret", 1.0], ["b", 2.0], ["c", 3.0]]
    yield "numpy", np.array([["sEcret", "1"], ["b", "2"], ["c", "3"]])
    yield "bytes", np.array([[b"sEcret", b"1"], [b"b", b"2"], [b"c", b"3"]])
    yield "objects", np.array([["sEcret", 1.0], ["b", 2.0], ["c", 3.0]], dtype=object)
    yield "pandas", pd.DataFrame(table)
    yield "pandas objects", pd.DataFrame(table).astype(object)
    yield "pandas categories", pd.DataFrame(table).astype({"a": "category"})
    yield "pandas on arrow", pd.DataFrame(table).astype({"a": pd.ArrowDtype(pa.string())})
    yield "polars", pl.DataFrame(table)
    yield "arrow", pa.table(table)


@pytest.mark.parametrize(("kind", "X"), list(texts()), ids=[kind for kind, _ in texts()])
def test_text_in_the_data_is_not_quoted(kind, X):
    budget = BudgetAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match="real number") as caught:
        IHM(**BOUNDS, delta=1e-4, accountant=budget).fit(X, [0.0, 0.5, 1.0])
    assert "sEcret" not in str(caught.value)
    assert caught.value.__context__ is None
    assert len(budget) == 0
    if kind in ("pandas", "pandas on arrow", "polars", "arrow"):  # the type of the column tells
        assert str(caught.value).endswith("in every column; got X['a' (text)].")


def test_text_in_an_object_target_is_not_quoted():
    with pytest.raises(InvalidValueError) as caught:
        IHM(**BOUNDS).fit(np.ones((2, 2)), np.array(["sEcret", 2.0], dtype=object))
    assert str(caught.value) == InvalidValueError.MESSAGE


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_missing_values_are_refused_without_showing_values(value):
    X, y = problem()
    budget = BudgetAccountant(10.0, 1e-3)
    Z, z = X.copy(), y.copy()
    Z[17, 2], z[11] = value, value
    for data in ((Z, y), (X, z)):
        with pytest.raises(InvalidValueError) as caught:
            IHM(**BOUNDS, accountant=budget).fit(*data)
        assert str(caught.value) == InvalidValueError.MESSAGE
    assert len(budget) == 0


def test_releases_that_differ_from_the_plan_are_an_error(monkeypatch):
    X, y = problem()
    solve = IterativeHessianMixing.solve

    def generous(self, rows, plan, clip, draws):
        solution = solve(self, rows, plan, clip, draws)
        # One gradient more, at a noise level of the plan, of which nothing is said.
        sigma = plan.sigma
        again = draws.noise.release(GRADIENT, rows, theta=solution.theta, clip=clip, sigma=sigma)
        return replace(solution, theta=solution.theta + 1e-9 * again)

    monkeypatch.setattr(IterativeHessianMixing, "solve", generous)
    model = IHM(**BOUNDS, variant="paper")
    with pytest.raises(RuntimeError, match="differ from the plan"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


def test_the_base_class_fits_nothing():
    X, y = problem()
    budget = BudgetAccountant(10.0, 1e-3)
    with pytest.raises(AttributeError, match="_method"):
        PrivateRegressor(**BOUNDS, accountant=budget).fit(X, y)
    assert len(budget) == 0


def test_predict_needs_a_fit():
    for model in PRIVATE:
        with pytest.raises(NotFittedError):
            clone(model).predict(np.zeros((2, 3)))


def test_delta_defaults_to_one_over_n_squared():
    X, y = problem()
    for model in PRIVATE:
        estimator = clone(model).set_params(**BOUNDS, delta=None)
        if isinstance(estimator, fastmix.LinearMixing):
            continue
        estimator.fit(X, y)
        assert estimator.privacy_.delta == pytest.approx(1.0 / 60**2, rel=1e-12)
        assert estimator.delta is None
    assert IHM(**BOUNDS).fit(X[:1], y[:1]).privacy_.delta == pytest.approx(0.25)


def test_what_a_fit_stores(monkeypatch):
    X, y = problem()
    expected = {
        "coef_", "intercept_", "n_features_in_", "n_steps_", "gamma_", "eta_", "gradient_noise_",
        "bounds_X_", "bounds_y_", "privacy_",
    }  # fmt: skip
    for model in PRIVATE:
        estimator = clone(model).set_params(**BOUNDS, inference=False).fit(X, y)
        stored = set(vars(estimator)) - set(estimator.get_params())
        assert stored - {"_population", "chosen_"} == expected
        assert estimator.n_steps_ in (getattr(estimator, "n_steps", None), 1, 4, 32, 100)
        assert type(estimator.intercept_) is float
        assert estimator.coef_.dtype == np.float64


def test_progress_prints_the_same_for_all_data(capsys):
    printed = []
    for seed in (0, 1):
        X, y = problem(seed=seed)
        for cls in (FastIHM, IHM):
            with progress(cls.__name__, lines=True):
                cls(**BOUNDS).fit(X, y)
        captured = capsys.readouterr()
        assert captured.out == ""
        printed.append(captured.err)
    assert printed[0] == printed[1]
    assert "[IHM] step 33 of 33" in printed[0]
    IHM(**BOUNDS).fit(X, y)
    assert capsys.readouterr() == ("", "")


def test_a_budget_error_is_a_value_error_that_names_both_sides():
    X, y = problem()
    with pytest.raises(BudgetError, match=r"budget \(epsilon=0\.5, .* this fit \(epsilon="):
        IHM(**BOUNDS, delta=1e-6, accountant=BudgetAccountant(0.5, 1e-6)).fit(X, y)
    assert issubclass(BudgetError, ValueError)
