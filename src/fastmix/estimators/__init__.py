"""Estimators with the interface of scikit-learn."""

from fastmix.estimators.adassp import AdaSSP
from fastmix.estimators.certificate import PrivacyCertificate
from fastmix.estimators.dp_gd import DPGradientDescent
from fastmix.estimators.fast_ihm import FastIHM
from fastmix.estimators.ihm import IHM
from fastmix.estimators.ihs import IHS
from fastmix.estimators.linear_mixing import LinearMixing
from fastmix.estimators.private import PrivateLinearRegression

__all__ = [
    "IHM",
    "IHS",
    "AdaSSP",
    "DPGradientDescent",
    "FastIHM",
    "LinearMixing",
    "PrivacyCertificate",
    "PrivateLinearRegression",
]
