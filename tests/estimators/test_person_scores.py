"""Scores of fits for persons and with weights: each person counts once, each row by its weight."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from fastmix import (
    BudgetAccountant,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
)
from fastmix.data.arrow import file_chunks


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


def truth(model, X, y, weights):
    """Return scores without privacy, each row with its weight."""
    error, apart = y - model.predict(X), y - np.average(y, weights=weights)
    squares = np.average(error**2, weights=weights)
    return {
        "mse": squares,
        "mae": np.average(np.abs(error), weights=weights),
        "r2": 1.0 - squares / np.average(apart**2, weights=weights),
    }


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_held_out_persons(hidden, weighted):
    """Intervals fail with a probability of 1e-6 each."""
    X, mean, ids, weights, rng = panel(3)
    y = np.clip(mean + 0.2 * rng.standard_t(4, len(mean)), -1.0, 1.0)
    held, sample = ids % 2 == 0, rng.uniform(0.0, 2.0, len(ids))
    known = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "epsilon": 2.0, "delta": 1e-6}
    model = PrivateLinearRegression(public_rows=not hidden, **known)
    model.fit(X[~held], y[~held], groups=ids[~held], max_rows_per_group=4)
    asked = {"groups": ids[held], "epsilon": 2.0, "delta": 1e-6}
    if weighted:
        asked |= {"sample_weight": sample[held], "max_weight": 2.0}
        weights = weights * sample
    found = model.evaluate(X[held], y[held], **asked)
    assert found.spent.epsilon <= 2.0
    assert found.spent.delta <= 1e-6
    assert found.population.rows_per_person == 4  # that of the fit
    assert abs(found.n - 4000) <= (1000 if hidden else 0)
    for name, value in truth(model, X[held], y[held], weights[held]).items():
        low, high = found.interval(name, 1.0 - 1e-6)
        assert low <= value <= high, name
        # Wider than with a public number, whose noise counts too.
        if hidden or weighted:
            bare = found.scores[name]._replace(counts=())
            assert bare.interval()[1] - bare.interval()[0] < np.diff(found.interval(name))


def test_files_and_dask_have_the_scores_of_arrays(tmp_path):
    da, pd = pytest.importorskip("dask.array"), pytest.importorskip("pandas")
    X, mean, ids, _, rng = panel(1)
    y = np.clip(mean + 0.2 * rng.normal(size=len(mean)), -1.0, 1.0)
    known = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PrivateLinearRegression(**known).fit(X, y, groups=ids, max_rows_per_group=4)
        asked = {"epsilon": 1.0, "random_state": 0}
        memory = model.evaluate(X, y, groups=ids, **asked)
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, who=ids)
        frame.sample(frac=1.0, random_state=0).to_parquet(
            tmp_path / "t.parquet", row_group_size=3000
        )
        table = file_chunks(tmp_path / "t.parquet", "y", ["a", "b", "c"], None, "who", None)
        others = [
            model.evaluate(table, **asked),
            model.evaluate(
                da.from_array(X, chunks=(5000, 3)),
                da.from_array(y, chunks=5000),
                groups=da.from_array(ids, chunks=5000),
                **asked,
            ),
        ]
    for other in others:
        assert other.n == memory.n == 8000
        for name, score in memory.scores.items():
            assert other[name] == pytest.approx(score.value, rel=1e-9)


def test_refusals_charge_nothing():
    X, mean, ids, *_ = panel(1)
    budget = BudgetAccountant(9.0, 1e-3)
    known = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6}
    model = PrivateLinearRegression(**known).fit(X, mean, groups=ids, max_rows_per_group=4)
    asked = {"epsilon": 1.0, "accountant": budget}
    for given, message in [
        ({}, "groups must be given: this model protects persons"),
        ({"groups": ids[1:]}, "groups must have"),
        ({"groups": ids, "max_rows_per_group": 0}, "max_rows_per_group must be at least 1"),
        ({"groups": ids, "max_weight": 2.0}, "max_weight must be 1 without sample_weight"),
        ({"groups": ids, "sample_weight": -ids - 1.0}, "sample_weight must hold"),
        ({"groups": ids, "metrics": "auc"}, "metrics must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.evaluate(X, mean, **given, **asked)
    rows = PrivateLinearRegression(**known).fit(X, mean)
    with pytest.raises(ValueError, match="max_rows_per_group must be given with groups"):
        rows.evaluate(X, mean, groups=ids, **asked)
    assert len(budget) == 0
    rows.evaluate(X, mean, groups=ids, max_rows_per_group=2, **asked)
    assert budget.charges[0].rows_per_person == 2
