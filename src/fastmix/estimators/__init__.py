"""Estimators with the interface of scikit-learn."""

from fastmix.certificate import PrivacyCertificate
from fastmix.estimators.base import PrivateRegressor, estimator
from fastmix.estimators.compare import Comparison, compare
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
from fastmix.estimators.scores import PrivateScores

__all__ = [
    "IHM",
    "IHS",
    "AdaSSP",
    "AdaptiveRegression",
    "Comparison",
    "DPGradientDescent",
    "FastIHM",
    "LinearMixing",
    "ObjectivePerturbation",
    "PrivacyCertificate",
    "PrivateLinearRegression",
    "PrivateRegressor",
    "PrivateScores",
    "compare",
    "estimator",
]
