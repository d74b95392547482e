"""fastmix: differentially private linear regression by fast sketching."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from fastmix.accounting import BudgetAccountant
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
        Comparison,
        DPGradientDescent,
        FastIHM,
        LinearMixing,
        ObjectivePerturbation,
        PrivacyCertificate,
        PrivateBounds,
        PrivateHuberRegressor,
        PrivateLinearRegression,
        PrivateLogisticRegression,
        PrivateQuantileRegressor,
        PrivateScores,
        PublicEncoder,
        compare,
    )
    from fastmix.files.loading import load
    from fastmix.paper import calibrate_fast_mix, calibrate_gauss_mix
    from fastmix.planning import plan
    from fastmix.sketches import SRHT, KerdockSketch, SparseSketch, SubsampledDCT

    __version__: str

__all__ = [
    "IHM",
    "IHS",
    "SRHT",
    "AdaSSP",
    "BudgetAccountant",
    "BudgetError",
    "CalibrationError",
    "Comparison",
    "DPGradientDescent",
    "FastIHM",
    "KerdockSketch",
    "LinearMixing",
    "LowAccuracyWarning",
    "ObjectivePerturbation",
    "PrivacyCertificate",
    "PrivacyLeakWarning",
    "PrivateBounds",
    "PrivateHuberRegressor",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateQuantileRegressor",
    "PrivateScores",
    "PublicEncoder",
    "ReproducibleNoiseWarning",
    "SparseSketch",
    "SubsampledDCT",
    "WeakPrivacyWarning",
    "__version__",
    "calibrate_fast_mix",
    "calibrate_gauss_mix",
    "compare",
    "load",
    "plan",
]

#: Packages that hold the names above, in the order in which they are searched.
_HOMES = ("errors", "accounting", "sketches", "paper", "estimators", "planning", "files.loading")


def __getattr__(name: str) -> _Any:
    """Import what is asked for, and no more.

    The packages behind these names take a second to load.  The command must be running before
    they do, so that an interrupt in this second is one line and not a traceback.
    """
    if name == "__version__":
        from importlib.metadata import version

        return globals().setdefault(name, version("fastmix"))
    for home in _HOMES if name in __all__ else ():
        module = _import_module(f"fastmix.{home}")
        if name in module.__all__:
            return globals().setdefault(name, getattr(module, name))
    if not name.startswith("_"):
        try:
            return _import_module(f"fastmix.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"fastmix.{name}":
                raise
    raise AttributeError(f"module 'fastmix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
