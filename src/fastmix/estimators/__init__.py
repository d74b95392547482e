"""Estimators with the interface of scikit-learn."""

from fastmix.certificate import PrivacyCertificate
from fastmix.estimators._documentation import estimator, estimator_of
from fastmix.estimators.classification import PrivateLogisticRegression
from fastmix.estimators.comparison import Comparison, compare
from fastmix.estimators.encoder import PublicEncoder
from fastmix.estimators.evaluation import PrivateScores
from fastmix.estimators.models import EngineModel, EngineRegressor, PrivateModel, PrivateRegressor
from fastmix.estimators.private_bounds import PrivateBounds
from fastmix.estimators.regression import (
    IHM,
    IHS,
    AdaSSP,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    ObjectivePerturbation,
    PrivateLinearRegression,
)
from fastmix.estimators.robust import PrivateHuberRegressor, PrivateQuantileRegressor

#: The estimators by the loss that they fit.
FAMILIES: dict[str, type[EngineModel]] = {
    "linear": PrivateLinearRegression,
    "logistic": PrivateLogisticRegression,
    "quantile": PrivateQuantileRegressor,
    "huber": PrivateHuberRegressor,
}

__all__ = [
    "FAMILIES",
    "IHM",
    "IHS",
    "AdaSSP",
    "Comparison",
    "DPGradientDescent",
    "EngineModel",
    "EngineRegressor",
    "FastIHM",
    "LinearMixing",
    "ObjectivePerturbation",
    "PrivacyCertificate",
    "PrivateBounds",
    "PrivateHuberRegressor",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateModel",
    "PrivateQuantileRegressor",
    "PrivateRegressor",
    "PrivateScores",
    "PublicEncoder",
    "compare",
    "estimator",
    "estimator_of",
]
