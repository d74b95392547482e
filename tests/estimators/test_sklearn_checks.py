"""scikit-learn's own checks, for every estimator."""

from typing import ClassVar

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

import fastmix


class TwoRounds(fastmix.PrivateLinearRegression):
    """The default method with second moments, which the few rows of a check would not get."""

    _fixed: ClassVar = {"rounds": 2}


class LogisticTwoRounds(fastmix.PrivateLogisticRegression):
    """Logistic regression with second moments."""

    _fixed: ClassVar = {"rounds": 2}


ESTIMATORS = [
    fastmix.AdaSSP(),
    fastmix.AdaSSP(variant="paper", calibration="published"),
    fastmix.DPGradientDescent(),
    fastmix.FastIHM(),
    fastmix.FastIHM(variant="paper", sketch="dct"),
    fastmix.IHM(),
    fastmix.IHS(),
    fastmix.IHS(sketch="gaussian"),
    fastmix.LinearMixing(),
    fastmix.LinearMixing(fast=True),
    fastmix.ObjectivePerturbation(),
    fastmix.PrivateLinearRegression(),
    TwoRounds(),
    fastmix.PrivateLogisticRegression(),
    LogisticTwoRounds(),
    fastmix.PrivateHuberRegressor(),
    fastmix.PrivateQuantileRegressor(quantile=0.3),
]


#: Checks that no estimator with sample weights passes, and why.
WEIGHTED = {
    "check_all_zero_sample_weights_error": "an error would reveal the sum of the weights",
    "check_sample_weight_equivalence_on_dense_data": "weights are clipped, and noise is random",
}


def expected(estimator):
    if not has_fit_parameter(estimator, "sample_weight"):
        return {}
    return WEIGHTED


# The checks give no public bounds, so each fit warns, as it must.
@pytest.mark.filterwarnings("ignore::fastmix.errors.PrivacyLeakWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_scikit_learn_check(estimator, check):
    check(estimator)
