"""What users hand to `fit` and do with a fit: containers, pipelines, copies, seeds."""

from __future__ import annotations

import multiprocessing
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.validation import has_fit_parameter

import fastmix
from fastmix import IHM, IHS, AdaSSP, DPGradientDescent, FastIHM, LinearMixing
from fastmix import PrivateLinearRegression as Private

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}
ALL = [AdaSSP, DPGradientDescent, FastIHM, IHM, IHS, LinearMixing, Private]
NOISY = [cls for cls in ALL if cls is not IHS]
NAMES = ["one", "two", "three"]


def problem(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


def strided(X):
    wide = np.zeros((2 * len(X), 3 * X.shape[1]))
    wide[::2, ::3] = X
    return wide[::2, ::3]


def read_only(X):
    copy = X.copy()
    copy.setflags(write=False)
    return copy


def on_disk(X, path):
    array = np.memmap(path / "X.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    array[:] = X
    array.flush()
    return np.memmap(path / "X.bin", dtype=X.dtype, mode="r", shape=X.shape)


CONTAINERS = {
    "lists": lambda X, path: X.tolist(),
    "C order": lambda X, path: np.ascontiguousarray(X),
    "Fortran order": lambda X, path: np.asfortranarray(X),
    "strided": lambda X, path: strided(X),
    "reversed": lambda X, path: X[::-1][::-1],
    "read-only": lambda X, path: read_only(X),
    "memmap": on_disk,
    "pandas": lambda X, path: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X, path: pl.DataFrame(X, schema=NAMES),
    "arrow": lambda X, path: pa.table(dict(zip(NAMES, X.T, strict=True))),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_gives_the_same_fit(kind, tmp_path):
    X, y = problem()
    data = CONTAINERS[kind](X, tmp_path)
    for cls in (FastIHM, AdaSSP):
        plain = cls(random_state=0, **BOUNDS).fit(X, y)
        model = cls(random_state=0, **BOUNDS).fit(data, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10)
        assert model.n_features_in_ == 3
        if kind in ("pandas", "polars", "arrow"):
            assert list(model.feature_names_in_) == NAMES
        else:
            assert not hasattr(model, "feature_names_in_")
        np.testing.assert_allclose(model.predict(data), plain.predict(X), rtol=1e-8)


@pytest.mark.parametrize("wrap", [list, pd.Series, pl.Series, pa.array, lambda y: y.reshape(-1)])
def test_every_kind_of_target(wrap):
    X, y = problem()
    plain = AdaSSP(random_state=0, **BOUNDS).fit(X, y)
    model = AdaSSP(random_state=0, **BOUNDS).fit(X, wrap(y))
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_a_column_target_is_taken_with_scikit_learns_warning():
    X, y = problem()
    plain = AdaSSP(random_state=0, **BOUNDS).fit(X, y)
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = AdaSSP(random_state=0, **BOUNDS).fit(X, y[:, None])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    with pytest.raises(ValueError, match="1d array"):
        AdaSSP(**BOUNDS).fit(X, np.column_stack([y, y]))


def test_data_are_never_written_to():
    X, y = problem()
    before = X.copy(), y.copy()
    for cls in ALL:
        cls(bounds_X=(-0.5, 0.5), bounds_y=(-0.5, 0.5)).fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_float32_is_as_good_as_its_values():
    X, y = problem()
    X32, y32 = X.astype(np.float32), y.astype(np.float32)
    for cls in ALL:
        low = cls(random_state=0, delta=1e-6, **BOUNDS).fit(X32, y32)
        high = cls(random_state=0, delta=1e-6, **BOUNDS).fit(
            X32.astype(np.float64), y32.astype(np.float64)
        )
        np.testing.assert_array_equal(low.coef_, high.coef_)
        assert low.coef_.dtype == np.float64


def test_names_are_checked_at_prediction():
    X, y = problem()
    frame = pd.DataFrame(X, columns=NAMES)
    model = AdaSSP(**BOUNDS).fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["two", "one", "three"]])
    with pytest.raises(ValueError, match="3 features"):
        AdaSSP(**BOUNDS).fit(X, y).predict(X[:, :2])


def test_pipelines_and_set_output():
    X, y = problem()
    frame = pd.DataFrame(X, columns=NAMES)
    pipeline = make_pipeline(Normalizer(), IHM(bounds_X=(-3, 3), bounds_y=(-1, 1)))
    pipeline.set_output(transform="pandas").fit(frame, y)
    assert list(pipeline[-1].feature_names_in_) == NAMES
    assert pipeline.predict(frame).shape == (60,)
    assert pipeline.set_params(ihm__epsilon=2.0)[-1].epsilon == 2.0


@pytest.mark.parametrize("cls", ALL)
def test_fit_offers_weights_and_groups_only_where_the_method_supports_them(cls):
    X, y = problem()
    method = cls._method
    for name, supported in (("sample_weight", method.weights), ("groups", method.persons)):
        assert has_fit_parameter(cls(), name) == supported
        if not supported:
            with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
                cls(**BOUNDS).fit(X, y, **{name: np.ones(60)})


def test_metadata_routing_requests_nothing_for_fit():
    # Known, and passed only when asked for.
    names = ("categories", "groups", "max_rows_per_group", "max_weight", "sample_weight")
    request = fastmix.PrivateLinearRegression().get_metadata_routing()
    assert request.fit.requests == dict.fromkeys(names)
    assert IHM().get_metadata_routing().fit.requests == {}
    assert set(request.score.requests) <= {"sample_weight"}
    with sklearn.config_context(enable_metadata_routing=True):
        X, y = problem()
        pipeline = make_pipeline(Normalizer(), IHM(bounds_X=(-3, 3), bounds_y=(-1, 1)))
        pipeline.fit(X, y)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            make_pipeline(Private(**BOUNDS)).fit(X, y, sample_weight=np.ones(60))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("cls", ALL)
def test_an_infinite_epsilon_is_least_squares(cls, fit_intercept):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 4)) * [1.0, 30.0, 0.01, 5.0] + [0.0, 100.0, 1.0, -5.0]
    y = X @ [1.0, 0.1, 20.0, -2.0] + 3.0 + rng.normal(size=80)
    plain = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    norm = np.linalg.norm(X, axis=1).max()
    for bounds in (
        {},
        {"bounds_X": (-500, 700), "bounds_y": (-200, 200)},
        {"bounds_X": (X.min(0), X.max(0)), "bounds_y": (y.min(), y.max())},
        {"data_norm": 2 * norm, "bounds_y": (-200, 200)},
    ):
        model = cls(epsilon=float("inf"), fit_intercept=fit_intercept, **bounds).fit(X, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8, atol=1e-10)
        assert model.intercept_ == pytest.approx(plain.intercept_, rel=1e-8, abs=1e-8)
        inside = np.clip(plain.predict(X), *model.bounds_y_)
        np.testing.assert_allclose(model.predict(X), inside, rtol=1e-8, atol=1e-8)
        assert model.privacy_.epsilon == float("inf")
        assert not model.privacy_.private


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_an_infinite_epsilon_splits_duplicates_as_scikit_learn_does(fit_intercept):
    rng = np.random.default_rng(2)
    column = rng.uniform(-1, 1, (50, 2))
    X = np.column_stack([column, column[:, 0], 0.5 * column[:, 1], np.full(50, 0.25)])
    y = column @ [1.0, -2.0] + 0.3 + 0.1 * rng.normal(size=50)
    plain = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    bounds = {"bounds_X": (-1, 1), "bounds_y": (-5, 5)}
    for arguments in (bounds, {**bounds, "bounds_X": None, "data_norm": 4.0}):
        model = IHM(epsilon=float("inf"), fit_intercept=fit_intercept, **arguments).fit(X, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(model.predict(X), plain.predict(X), rtol=1e-8, atol=1e-10)


def test_an_infinite_epsilon_still_clips():
    X, y = problem()
    X[0] = 1e6
    clipped = LinearRegression().fit(np.clip(X, -1, 1), np.clip(y, -0.5, 0.5))
    model = IHM(epsilon=float("inf"), bounds_X=(-1, 1), bounds_y=(-0.5, 0.5)).fit(X, y)
    np.testing.assert_allclose(model.coef_, clipped.coef_, rtol=1e-8)


@pytest.mark.parametrize("cls", ALL)
def test_predictions_are_linear_in_the_users_units(cls):
    X, y = problem()
    model = cls(random_state=0, delta=1e-6, **BOUNDS).fit(X, y)
    line = X @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X, clip=False), line, rtol=1e-12)
    with pytest.raises(NotFittedError):
        cls().predict(X)


def test_units_do_not_matter():
    """The same noise on rescaled data with rescaled bounds gives the rescaled model."""
    X, y = problem()
    stretch, shift = np.array([2.0, 1e3, 1e-2]), np.array([5.0, -7.0, 0.0])
    for cls in NOISY:
        options = {"random_state": 0, "delta": 1e-6}
        plain = cls(**BOUNDS, **options).fit(X, y)
        moved = cls(
            bounds_X=(shift - stretch, shift + stretch), bounds_y=(40.0, 60.0), **options
        ).fit(shift + stretch * X, 50.0 + 10.0 * y)
        np.testing.assert_allclose(moved.coef_, 10.0 * plain.coef_ / stretch, rtol=1e-6)
        np.testing.assert_allclose(
            moved.predict(shift + stretch * X), 50.0 + 10.0 * plain.predict(X), rtol=1e-6
        )


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    "seed", [3, np.int64(3), lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)]
)
def test_a_seed_makes_a_fit_reproducible(cls, seed):
    X, y = problem()

    def fit():
        state = seed() if callable(seed) else seed
        return cls(random_state=state, delta=1e-6, **BOUNDS).fit(X, y).coef_

    np.testing.assert_array_equal(fit(), fit())


def draw(model, X, y):
    return clone(model).fit(X, y).coef_


def coefficients(arguments):
    return draw(*arguments)


@pytest.mark.parametrize("cls", NOISY)
def test_noise_is_never_repeated(cls):
    X, y = problem()
    model = cls(**BOUNDS)
    fits = [model.fit(X, y).coef_.copy(), model.fit(X, y).coef_.copy()]
    fits += [clone(model).fit(X, y).coef_, pickle.loads(pickle.dumps(model)).fit(X, y).coef_]
    assert len({fit.tobytes() for fit in fits}) == 4


def test_workers_do_not_repeat_noise():
    X, y = problem()
    model = AdaSSP(**BOUNDS)
    model.fit(X, y)
    fits = Parallel(n_jobs=2, backend="loky")(delayed(draw)(model, X, y) for _ in range(6))
    fits += Parallel(n_jobs=2, backend="threading")(delayed(draw)(model, X, y) for _ in range(6))
    assert len({fit.tobytes() for fit in fits}) == 12


@pytest.mark.real_keys
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forks_do_not_repeat_noise():
    X, y = problem()
    model = AdaSSP(**BOUNDS)
    model.fit(X, y)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        fits = pool.map(coefficients, [(model, X, y)] * 6, chunksize=1)
    fits.append(draw(model, X, y))
    assert len({fit.tobytes() for fit in fits}) == 7


def test_a_fitted_model_survives_pickling():
    X, y = problem()
    for cls in ALL:
        model = cls(delta=1e-6, **BOUNDS).fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.privacy_.to_json() == model.privacy_.to_json()


def test_parameters_are_keyword_only_with_the_documented_defaults():
    expected = {
        "epsilon": 1.0, "delta": None, "bounds_X": None, "bounds_y": None, "data_norm": None,
        "fit_intercept": True, "accountant": None,
        "random_state": None,
    }  # fmt: skip
    of_methods = {
        "n_steps": None, "gaussian_size": None, "sketch_size": None, "failure_probability": None,
        "residual_clip": None, "shrinkage": False, "literal": False,
    }  # fmt: skip
    for cls in ALL:
        with pytest.raises(TypeError):
            cls(1.0)
        parameters = cls().get_params()
        assert expected.keys() <= parameters.keys()
        assert parameters["inference"] is (cls is fastmix.PrivateLinearRegression)
        for name, value in parameters.items():
            default = {**expected, **of_methods}.get(name, value)
            assert value is default or value == default
            documented = re.search(rf"^ *{name} : (.*), default=(.*)$", cls.__doc__, re.MULTILINE)
            assert documented, (cls, name)
            assert documented[2].strip('"') == str(value), (cls, name)
    assert all(hasattr(fastmix, cls.__name__) for cls in ALL)
