"""A learned score, where the likelihood ratio of a release has no closed form."""

from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, QuantileTransformer, StandardScaler

from fastmix._types import FloatArray

_EXAMPLES = 10_000


def learned_score(present: FloatArray, absent: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Fit a classifier that tells releases of two data sets apart; its log-odds are the score.

    It is a logistic regression on products of features, each brought to a normal shape by its
    ranks, because released coefficients can have heavy tails. Its examples must not be scored
    afterwards.
    """
    # Some thousand examples are enough for so small a model.
    present, absent = present[:_EXAMPLES], absent[:_EXAMPLES]
    releases = np.concatenate((present, absent))
    labels = np.repeat((1, 0), (len(present), len(absent)))
    model = make_pipeline(
        QuantileTransformer(
            n_quantiles=min(1000, len(releases)), output_distribution="normal", subsample=None
        ),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        LogisticRegression(max_iter=1000),
    ).fit(releases, labels)
    return lambda values: np.asarray(model.decision_function(values))
