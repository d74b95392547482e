"""scikit-learn's own checks, all of them, for every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import fastmix

ESTIMATORS = [
    fastmix.AdaSSP(),
    fastmix.AdaSSP(variant="paper", calibration="published"),
    fastmix.DPGradientDescent(),
    fastmix.FastIHM(),
    fastmix.FastIHM(variant="shared", sketch="dct", calibration="closed_form"),
    fastmix.IHM(),
    fastmix.IHS(),
    fastmix.IHS(sketch="gaussian"),
    fastmix.LinearMixing(),
    fastmix.LinearMixing(fast=True),
    fastmix.ObjectivePerturbation(),
    fastmix.AdaptiveRegression(),
    fastmix.AdaptiveRegression(rounds=2),
    fastmix.ObjectivePerturbation(solver="sketch"),
    fastmix.PrivateLinearRegression(),
    fastmix.PrivateLogisticRegression(),
    fastmix.PrivateLogisticRegression(rounds=2),
    fastmix.PrivateHuberRegressor(),
    fastmix.PrivateQuantileRegressor(quantile=0.3),
]


# The checks give no public bounds, so each fit warns, as it must.
@pytest.mark.filterwarnings("ignore::fastmix.errors.PrivacyLeakWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
