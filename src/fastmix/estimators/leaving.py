"""Models that leave: plain scikit-learn estimators with released coefficients."""

from typing import Any

import numpy as np


def plain_estimator(model: Any) -> Any:
    """Return a fitted model as an estimator of scikit-learn, which other tools can read.

    The estimator is fitted to one made-up row per class, or to two rows; then released
    coefficients replace those of this fit.
    """
    from sklearn.linear_model import LinearRegression, LogisticRegression  # half a second
    from sklearn.multiclass import OneVsRestClassifier

    intercept = bool(model.fit_intercept)
    labels = getattr(model, "classes_", np.zeros(2))
    rows = np.arange(float(len(labels)))[:, np.newaxis] * np.ones(model.n_features_in_)
    if not hasattr(model, "classes_"):
        made: Any = LinearRegression(fit_intercept=intercept).fit(rows, labels)
        parts = [(made, model.coef_, np.array(model.intercept_)[()])]
    elif len(labels) == 2:
        made = LogisticRegression(fit_intercept=intercept).fit(rows, labels)
        parts = [(made, model.coef_, np.array(model.intercept_))]
    else:
        made = OneVsRestClassifier(LogisticRegression(fit_intercept=intercept)).fit(rows, labels)
        slopes = np.asarray(model.coef_)[:, np.newaxis], np.asarray(model.intercept_)[:, np.newaxis]
        parts = [*zip(made.estimators_, *slopes, strict=True)]
    for one, coef, constant in parts:
        one.coef_, one.intercept_ = np.array(coef), constant
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        for one in {id(each): each for each in (made, *(part[0] for part in parts))}.values():
            one.feature_names_in_ = np.asarray(names, dtype=object)
    return made
