"""Transformers in front of a private model: those that learned from the data are named."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectFromModel, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from fastmix import (
    AdaSSP,
    BudgetAccountant,
    PrivateBounds,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PublicEncoder,
)
from fastmix.errors import PrivacyLeakWarning

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 1.0, (60, 3)).round(1)
Y = RNG.uniform(0.0, 1.0, 60)
KNOTS = np.array([[0.0] * 3, [0.5] * 3, [1.0] * 3])
LEVELS = [np.arange(11) / 10.0] * 3


def model():
    return AdaSSP(delta=1e-6, bounds_X=(-5, 5), bounds_y=(0, 1))


def warned(estimator, *args):
    """Return what a fit says about its pipeline, once per fit."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        estimator.fit(*(args or (X, Y)))
    return [str(each.message) for each in found if "The pipeline fitted" in str(each.message)]


class Doubled(TransformerMixin, BaseEstimator):
    """A transformer of a user that learns nothing."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return 2.0 * X


class Centred(Doubled):
    """A transformer of a user that learns the means."""

    def fit(self, X, y=None):
        self.means_ = X.mean(axis=0)
        return self


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        MinMaxScaler(),
        RobustScaler(),
        PowerTransformer(),
        QuantileTransformer(n_quantiles=10),
        KBinsDiscretizer(n_bins=3, encode="ordinal", quantile_method="linear"),
        SimpleImputer(),
        SimpleImputer(
            strategy="constant", fill_value=0.0, keep_empty_features=True, add_indicator=True
        ),
        SimpleImputer(strategy="constant", fill_value=0.0),  # leaves out empty columns
        OneHotEncoder(sparse_output=False),
        OneHotEncoder(categories=LEVELS, min_frequency=5, sparse_output=False),
        OrdinalEncoder(),
        PCA(2),
        VarianceThreshold(),
        SplineTransformer(),
        RBFSampler(gamma="scale"),
        Centred(),
    ],
    ids=lambda step: type(step).__name__,
)
def test_what_learns_from_the_data_is_named(step):
    (said,) = warned(
        Pipeline([("before", FunctionTransformer()), ("it", step), ("model", model())])
    )
    assert f"'it' ({type(step).__name__})" in said
    assert "FunctionTransformer" not in said
    assert "before AdaSSP" in said
    assert "PublicEncoder" in said


def test_found_bounds_name_it_too():
    (said,) = warned(make_pipeline(StandardScaler(), PrivateBounds(delta=1e-6)))
    assert "'standardscaler' (StandardScaler) to the data before PrivateBounds" in said


@pytest.mark.parametrize(
    "step",
    [
        None,
        "passthrough",
        FunctionTransformer(np.sqrt),
        Normalizer(),
        PolynomialFeatures(2),
        SplineTransformer(knots=KNOTS),
        OneHotEncoder(categories=LEVELS, drop="first", sparse_output=False),
        OrdinalEncoder(categories=LEVELS),
        SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
        RBFSampler(gamma=0.5),
        GaussianRandomProjection(n_components=2),
        FrozenEstimator(StandardScaler().fit(np.eye(3))),
        Doubled(),
    ],
    ids=lambda step: type(step).__name__,
)
def test_public_transformers_are_not(step):
    assert warned(Pipeline([("it", step), ("model", model())])) == []
    both = ColumnTransformer([("it", step or "drop", [0, 1, 2]), ("other", Doubled(), [0])])
    assert warned(make_pipeline(both, model())) == []


def test_the_public_encoder_is_the_way_to_do_the_same():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    encoder = PublicEncoder(bounds=dict.fromkeys("abc", (0, 1)))
    assert warned(make_pipeline(encoder, model()), table, Y) == []


def test_inside_of_others():
    columns = ColumnTransformer(
        [("scaled", StandardScaler(), [0]), ("kept", "passthrough", [1, 2])]
    )
    (said,) = warned(make_pipeline(columns, model()))
    assert "'scaled' (StandardScaler)" in said
    nested = make_pipeline(make_pipeline(Doubled(), MinMaxScaler()), model())
    (said,) = warned(make_pipeline(PCA(2), nested))
    assert "(MinMaxScaler), 'pca' (PCA)" in said
    (said,) = warned(make_pipeline(FeatureUnion([("a", PCA(1)), ("b", Doubled())]), model()))
    assert "'a' (PCA)" in said
    (said,) = warned(TransformedTargetRegressor(model(), transformer=StandardScaler()))
    assert "'transformer' (StandardScaler)" in said
    assert warned(TransformedTargetRegressor(model(), func=np.sqrt, inverse_func=np.square)) == []


def test_under_a_search_and_with_a_cache(tmp_path):
    search = GridSearchCV(model(), {"epsilon": [1.0]}, cv=2)
    assert len(warned(make_pipeline(StandardScaler(), search))) == 3
    pipeline = make_pipeline(StandardScaler(), model(), memory=str(tmp_path))
    for _ in range(2):  # the second time, the scaler comes from the cache
        assert "(StandardScaler)" in warned(pipeline)[0]


def test_steps_behind_the_model_are_not_in_front_of_it():
    chosen = SelectFromModel(model(), max_features=2, threshold=-np.inf)
    assert warned(make_pipeline(chosen, StandardScaler(), PolynomialFeatures())) == []


@pytest.mark.parametrize("classes", [[0, 1], None])
def test_classifiers_warn_too(classes):
    """Also where classes are taken from the data, which has a warning of its own."""
    private = PrivateLogisticRegression(delta=1e-6, bounds_X=(-3, 3), classes=classes)
    assert len(warned(make_pipeline(StandardScaler(), private), X, (Y > 0.5).astype(int))) == 1


def test_no_pipeline_no_warning():
    scaler = StandardScaler().fit(X)
    assert warned(model(), scaler.transform(X), Y) == []


def test_the_warning_comes_before_the_charge():
    budget = BudgetAccountant(3.0, 1e-5)
    private = PrivateLinearRegression(
        delta=1e-6, bounds_X=(-3, 3), bounds_y=(0, 1), accountant=budget
    )
    with pytest.raises(PrivacyLeakWarning, match="StandardScaler"):
        make_pipeline(StandardScaler(), private).fit(X, Y)  # warnings are errors here
    assert len(budget) == 0
