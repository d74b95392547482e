"""Scores of fits for persons and with weights: each person counts once, each row by its weight."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from fastmix import PrivateLinearRegression, PrivateLogisticRegression, PrivateQuantileRegressor


def panel(seed):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(8_000), rng.integers(1, 5, 8_000))
    X = rng.uniform(-1.0, 1.0, (len(ids), 3))
    weights = (1.0 / np.bincount(ids))[ids]
    return X, X @ [0.5, -0.3, 0.1], ids, weights, rng


@pytest.mark.parametrize("kind", ["persons", "weights"])
def test_r2_and_errors(kind):
    covered = {"r2": 0, "mse": 0, "mae": 0}
    for seed in range(10):
        X, mean, ids, weights, rng = panel(seed)
        y = np.clip(mean + 0.2 * rng.standard_t(4, len(mean)), -1.0, 1.0)
        known = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "epsilon": 2.0, "score_share": 0.2}
        if kind == "persons":
            model = PrivateLinearRegression(random_state=seed, **known)
            model.fit(X, y, groups=ids, max_rows_per_group=4)
        else:
            model = PrivateLinearRegression(random_state=seed, **known)
            model.fit(X, y, sample_weight=weights)
        error = y - model.predict(X)
        apart = y - np.average(y, weights=weights)
        true = {
            "mse": np.average(error**2, weights=weights),
            "mae": np.average(np.abs(error), weights=weights),
            "r2": 1.0 - np.sum(weights * error**2) / np.sum(weights * apart**2),
        }
        for name in model.scores_.scores:
            low, high = model.scores_.interval(name)
            covered[name] += low <= true[name] <= high
    scored = [name for name, hits in covered.items() if hits]
    assert "r2" in scored
    assert all(covered[name] >= 8 for name in scored)


def test_scores_of_a_classifier():
    covered = dict.fromkeys(("auc", "log_loss", "accuracy"), 0)
    for seed in range(6):
        X, mean, ids, weights, rng = panel(seed)
        y = np.where(4.0 * mean + rng.logistic(size=len(mean)) > 0.0, 1, 0)
        known = {"bounds_X": (-1, 1), "epsilon": 2.0, "score_share": 0.2, "classes": [0, 1]}
        model = PrivateLogisticRegression(random_state=seed, **known)
        model.fit(X, y, groups=ids, max_rows_per_group=4)
        p = model.predict_proba(X)[:, 1]
        true = {
            "auc": roc_auc_score(y, p, sample_weight=weights),
            "log_loss": log_loss(y, p, sample_weight=weights),
            "accuracy": np.average((p > 0.5) == y, weights=weights),
        }
        for name in covered:
            if name in model.scores_.scores:
                low, high = model.scores_.interval(name)
                covered[name] += low <= true[name] <= high
            else:
                covered[name] += 1
    assert all(hits >= 5 for hits in covered.values()), covered


def test_share_below_a_quantile():
    X, mean, ids, weights, rng = panel(0)
    y = np.clip(mean + 0.2 * rng.normal(size=len(mean)), -1.0, 1.0)
    known = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "epsilon": 2.0, "score_share": 0.2}
    model = PrivateQuantileRegressor(random_state=0, **known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, groups=ids, max_rows_per_group=4)
    below = np.average(y <= model.predict(X), weights=weights)
    low, high = model.scores_.interval("below")
    assert low - 0.01 <= below <= high + 0.01
