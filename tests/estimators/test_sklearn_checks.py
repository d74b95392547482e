"""scikit-learn's own checks, all but those of sample weights, for every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import fastmix

ESTIMATORS = [
    fastmix.AdaSSP(),
    fastmix.AdaSSP(variant="paper", calibration="published"),
    fastmix.DPGradientDescent(),
    fastmix.FastIHM(),
    fastmix.FastIHM(variant="paper", sketch="dct", calibration="closed_form"),
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


#: They fit with sample weights and without their public bound, which a private fit refuses; nor
#: does it refuse weights that are all zero, because that would tell.
WEIGHTED = {
    *("check_sample_weights_pandas_series", "check_sample_weights_not_an_array"),
    *("check_sample_weights_list", "check_sample_weights_shape"),
    *("check_all_zero_sample_weights_error", "check_sample_weights_not_overwritten"),
    *("check_sample_weight_equivalence_on_dense_data", "check_sample_weights_invariance"),
    "check_classifiers_one_label_sample_weights",
}


def refused(estimator):
    return dict.fromkeys(WEIGHTED, "max_weight must be given with sample_weight")


# The checks give no public bounds, so each fit warns, as it must.
@pytest.mark.filterwarnings("ignore::fastmix.errors.PrivacyLeakWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=refused)
def test_scikit_learn_check(estimator, check):
    check(estimator)
