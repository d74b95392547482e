"""fastmix: differentially private linear regression by fast sketching."""

from importlib.metadata import version as _version

from fastmix.accounting import (
    BudgetAccountant,
    calibrate_fast_ihm,
    calibrate_fast_mix,
    calibrate_gauss_mix,
    calibrate_ihm,
)
from fastmix.errors import (
    BudgetError,
    CalibrationError,
    LowAccuracyWarning,
    PrivacyLeakWarning,
    ReproducibleNoiseWarning,
    WeakPrivacyWarning,
)
from fastmix.estimators import (
    IHM,
    IHS,
    AdaSSP,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    PrivacyCertificate,
    PrivateLinearRegression,
)
from fastmix.planning import plan
from fastmix.sketches import SRHT, GaussianSketch, KerdockSketch, SubsampledDCT

__version__ = _version("fastmix")

__all__ = [
    "IHM",
    "IHS",
    "SRHT",
    "AdaSSP",
    "BudgetAccountant",
    "BudgetError",
    "CalibrationError",
    "DPGradientDescent",
    "FastIHM",
    "GaussianSketch",
    "KerdockSketch",
    "LinearMixing",
    "LowAccuracyWarning",
    "PrivacyCertificate",
    "PrivacyLeakWarning",
    "PrivateLinearRegression",
    "ReproducibleNoiseWarning",
    "SubsampledDCT",
    "WeakPrivacyWarning",
    "__version__",
    "calibrate_fast_ihm",
    "calibrate_fast_mix",
    "calibrate_gauss_mix",
    "calibrate_ihm",
    "plan",
]
