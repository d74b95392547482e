"""Estimators with the interface of scikit-learn."""

from fastmix.certificate import PrivacyCertificate
from fastmix.estimators.base import PrivateRegressor, estimator
from fastmix.estimators.encoder import PublicEncoder
from fastmix.estimators.regression import (
    IHM,
    IHS,
    AdaptiveRegression,
    AdaSSP,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    ObjectivePerturbation,
    PrivateLinearRegression,
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
    "PrivateLinearRegression",
    "PrivateRegressor",
    "PublicEncoder",
    "estimator",
]
