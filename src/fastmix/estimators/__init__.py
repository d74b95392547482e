"""Estimators with the interface of scikit-learn."""

from fastmix.certificate import PrivacyCertificate
from fastmix.estimators.base import PrivateModel, PrivateRegressor, estimator
from fastmix.estimators.bounds import PrivateBounds
from fastmix.estimators.classification import PrivateLogisticRegression
from fastmix.estimators.regression import (
    IHM,
    IHS,
    AdaptiveRegression,
    AdaSSP,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    ObjectivePerturbation,
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateQuantileRegressor,
)

__all__ = [
    "IHM",
    "IHS",
    "AdaSSP",
    "AdaptiveRegression",
    "DPGradientDescent",
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
    "estimator",
]
