"""Private logistic regression: labels, classes, probabilities, and what an error may say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fastmix
from fastmix import BudgetAccountant, PrivacyLeakWarning, PrivateLogisticRegression
from fastmix.certificate import verify_certificate
from fastmix.errors import InvalidValueError
from fastmix.estimators.models import fixing

BOUNDS = {"bounds_X": (-1, 1)}
THETA = np.array([3.0, -2.0, 1.0])


def problem(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, (X @ THETA + 0.5 + rng.logistic(size=n) > 0).astype(int)


def test_coefficients_are_those_of_the_logistic_model():
    X, y = problem(100_000)
    model = PrivateLogisticRegression(epsilon=1.0, classes=[0, 1], **BOUNDS).fit(X, y)
    plain = LogisticRegression(C=np.inf).fit(X, y)
    assert model.coef_.shape == plain.coef_.shape == (1, 3)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.1)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=0.05)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=0.02)
    assert abs(model.score(X, y) - plain.score(X, y)) < 0.003


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_privacy_it_is_scikit_learns(fit_intercept):
    X, y = problem()
    model = PrivateLogisticRegression(
        epsilon=math.inf, classes=[0, 1], fit_intercept=fit_intercept, **BOUNDS
    )
    model.fit(X, y)
    plain = LogisticRegression(C=np.inf, tol=1e-10, fit_intercept=fit_intercept, max_iter=1000)
    plain.fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-4)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("labels", [("no", "yes"), (-1.5, 4.0), (False, True), (3, 7)])
def test_the_kind_of_labels_changes_nothing(labels):
    X, y = problem()
    want = PrivateLogisticRegression(classes=[0, 1], random_state=0, **BOUNDS).fit(X, y)
    given = np.array(labels)[y]
    for target in (given, given.astype(object), given.tolist()):
        model = PrivateLogisticRegression(classes=labels, random_state=0, **BOUNDS).fit(X, target)
        np.testing.assert_array_equal(model.coef_, want.coef_)
        np.testing.assert_array_equal(model.classes_, np.array(labels))
        assert set(model.predict(X)) == set(labels)


@pytest.mark.parametrize("classes", [[2**53, 2**53 + 1], [0, 0.0], ["a", "a"], [True, 1]])
def test_labels_that_compare_as_equal_are_refused(classes):
    X, y = problem()
    with pytest.raises(ValueError, match="classes must have no label twice"):
        PrivateLogisticRegression(classes=classes, **BOUNDS).fit(X, y)


def test_the_order_of_the_list_does_not_matter():
    X, y = problem()
    fits = [
        PrivateLogisticRegression(classes=classes, random_state=0, **BOUNDS).fit(X, y)
        for classes in ([0, 1], [1, 0])
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_probabilities_and_scores_fit_together():
    X, y = problem()
    model = PrivateLogisticRegression(classes=[0, 1], epsilon=3.0, **BOUNDS).fit(X, y)
    scores, likely = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(likely.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(likely[:, 1] / likely[:, 0]), scores, atol=1e-9)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), likely)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))


def three(n=20_000, seed=0):
    X, _ = problem(n, seed)
    t = X @ THETA
    return X, np.where(t > 1.0, "high", np.where(t < -1.0, "low", "middle"))


def test_several_classes_are_one_account():
    X, y = three()
    budget = BudgetAccountant(epsilon=2.0, delta=1e-6)
    model = PrivateLogisticRegression(
        epsilon=2.0, delta=1e-6, classes=["low", "middle", "high"], accountant=budget, **BOUNDS
    )
    model.fit(X, y)
    assert model.coef_.shape == (3, 3)
    assert model.intercept_.shape == (3,)
    assert list(model.classes_) == ["high", "low", "middle"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.8
    assert 1.8 < model.privacy_.epsilon <= 2.0
    assert len(budget) == 1
    assert verify_certificate(model.privacy_.to_json()).verified
    assert model.account(len(y), 3) == model.privacy_.spent


def test_a_label_outside_the_list_counts_as_absent():
    """No error and no other number of rows tells of it: the fit is that without its label."""
    X, y = problem()
    model = fixing(PrivateLogisticRegression, rounds=0)(
        classes=["a", "b"], random_state=0, **BOUNDS
    )
    labels = np.array(["a", "b"])[y].astype(object)
    want = model.fit(X, labels).coef_
    for other in ("c", None, 1.5, "b "):
        labels[0] = other
        assert model.fit(X, labels).privacy_.data["n_samples"] == len(y)
        assert 0.0 < np.abs(model.coef_ - want).max() < 0.5
    targets = []
    for row in (X[0], np.zeros(3)):
        Z = X.copy()
        Z[0] = row
        targets.append(model.fit(Z, labels).coef_)
    np.testing.assert_allclose(targets[0], targets[1], atol=1e-6)  # up to the noise on it


def test_classes_from_the_data_leak():
    X, y = problem()
    model = PrivateLogisticRegression(**BOUNDS)
    with pytest.warns(PrivacyLeakWarning, match="classes"):
        model.fit(X, y)
    assert model.classes is None
    assert model.privacy_.leaks == ("classes was taken from the data",)
    assert not model.privacy_.private
    assert verify_certificate(model.privacy_.to_json()).verified
    with pytest.raises(fastmix.BudgetError), pytest.warns(PrivacyLeakWarning):
        PrivateLogisticRegression(**BOUNDS, accountant=BudgetAccountant(1.0, 1e-6)).fit(X, y)


def test_class_weights():
    """They are public, count relative to the largest, and move the intercept."""
    X, y = problem(20_000)
    common = {"classes": [0, 1], "epsilon": 10.0, **BOUNDS}
    plain = PrivateLogisticRegression(**common).fit(X, y)
    heavy = PrivateLogisticRegression(**common, class_weight={1: 4.0}).fit(X, y)
    want = LogisticRegression(C=np.inf, class_weight={0: 1.0, 1: 4.0}).fit(X, y)
    np.testing.assert_allclose(heavy.coef_, want.coef_, atol=0.3)
    assert heavy.intercept_[0] - plain.intercept_[0] == pytest.approx(math.log(4.0), abs=0.3)
    assert heavy.privacy_.data["class_weight"] == [0.25, 1.0]
    assert verify_certificate(heavy.privacy_.to_json()).verified
    same = PrivateLogisticRegression(**common, class_weight={0: 2, 1: 8}, random_state=0).fit(X, y)
    other = PrivateLogisticRegression(**common, class_weight={1: 4}, random_state=0).fit(X, y)
    np.testing.assert_array_equal(same.coef_, other.coef_)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"classes": ["a"]}, ValueError),
        ({"classes": "ab"}, TypeError),
        ({"classes": [0, 0]}, ValueError),
        ({"classes": [0, "a"]}, ValueError),
        ({"classes": [0.0, math.nan]}, ValueError),
        ({"classes": [0, 1], "class_weight": "balanced"}, TypeError),
        ({"classes": [0, 1], "class_weight": {2: 1.0}}, ValueError),
        ({"classes": [0, 1], "class_weight": {1: 0.0}}, ValueError),
        ({"classes": [0, 1], "epsilon": 0.0}, ValueError),
    ],
)
def test_bad_parameters_are_refused(parameters, error):
    X, y = problem(50)
    with pytest.raises(error):
        PrivateLogisticRegression(**{**BOUNDS, **parameters}).fit(X, y)


def test_bad_values_have_one_message():
    X, y = problem(50)
    messages = set()
    for value in (math.nan, math.inf):
        target = y.astype(float)
        target[3] = value
        with pytest.raises(InvalidValueError) as caught:
            PrivateLogisticRegression(classes=[0, 1], **BOUNDS).fit(X, target)
        messages.add(str(caught.value))
    assert len(messages) == 1
    with pytest.raises(ValueError, match="text"):
        PrivateLogisticRegression(classes=["a", "b"], **BOUNDS).fit(X, y)


def test_files_give_the_same(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = problem(3000)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    frame.to_parquet(tmp_path / "part.parquet")
    common = {"classes": [0, 1], "random_state": 0, "class_weight": {0: 0.5}, **BOUNDS}
    memory = PrivateLogisticRegression(**common).fit(X, y)
    file = PrivateLogisticRegression(**common).fit_parquet(tmp_path / "part.parquet")
    np.testing.assert_allclose(file.coef_, memory.coef_, rtol=1e-6)
    assert verify_certificate(file.privacy_.to_json()).verified
    with pytest.raises(ValueError, match="classes"):
        PrivateLogisticRegression(**BOUNDS).fit_parquet(tmp_path / "part.parquet")
    with pytest.raises(ValueError, match="numbers for data not in memory"):
        PrivateLogisticRegression(classes=["a", "b"], **BOUNDS).fit_parquet(
            tmp_path / "part.parquet"
        )


def test_several_classes_from_files_and_dask(tmp_path):
    da, pd = pytest.importorskip("dask.array"), pytest.importorskip("pandas")
    X, y = problem(3000)
    y = y + 2 * (X[:, 1] > 0.3)
    y[:7] = 9  # no class: absent, wherever the data are
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, who=np.arange(3000) // 2)
    frame.to_parquet(tmp_path / "part.parquet", row_group_size=800)
    weights = {0: 0.5, 3: 0.8}
    common = {"classes": [0, 1, 2, 3], "class_weight": weights, "random_state": 0, **BOUNDS}
    memory = PrivateLogisticRegression(epsilon=5.0, **common).fit(X, y)
    names = ["a", "b", "c"]
    file = PrivateLogisticRegression(epsilon=5.0, **common).fit_parquet(
        tmp_path / "part.parquet", features=names
    )
    lazy = PrivateLogisticRegression(epsilon=5.0, **common).fit(
        da.from_array(X, chunks=(700, 3)), da.from_array(y.astype(float), chunks=700)
    )
    for model in (file, lazy):
        assert model.coef_.shape == (4, 3)
        np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(model.intercept_, memory.intercept_, rtol=1e-6, atol=1e-9)
        assert verify_certificate(model.privacy_.to_json()).verified
        assert model.privacy_.data["bounds_y"] == memory.privacy_.data["bounds_y"]
    common["inference"] = True
    memory = PrivateLogisticRegression(epsilon=5.0, **common).fit(
        X, y, groups=frame["who"], max_rows_per_group=2
    )
    file = PrivateLogisticRegression(epsilon=5.0, **common).fit_parquet(
        tmp_path / "part.parquet", features=names, groups="who", max_rows_per_group=2
    )
    assert file.privacy_.data["n_persons"] == 1500
    for name in ("coef_", "coef_std_", "intercept_std_"):
        np.testing.assert_allclose(getattr(file, name), getattr(memory, name), rtol=1e-5)


def test_labels_outside_the_list_count_the_same_in_memory_and_in_chunks(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = problem(3000)
    labels = y.astype(float)
    labels[:300:3], labels[1:300:3], labels[2:300:3] = 0.7, 5.0, -3.0
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=labels).to_parquet(tmp_path / "t.parquet")
    common = {"classes": [0, 1], "random_state": 0, **BOUNDS}
    memory = PrivateLogisticRegression(**common).fit(X, labels)
    file = PrivateLogisticRegression(**common).fit_parquet(tmp_path / "t.parquet")
    np.testing.assert_allclose(file.coef_, memory.coef_, rtol=1e-6)
    one = X[300:], labels[300:]
    assert np.abs(memory.coef_ - PrivateLogisticRegression(**common).fit(*one).coef_).max() < 0.5


def test_dask_gives_the_same():
    da = pytest.importorskip("dask.array")
    X, y = problem(3000)
    common = {"classes": [0, 1], "random_state": 0, **BOUNDS}
    memory = PrivateLogisticRegression(**common).fit(X, y)
    rows, labels = da.from_array(X, chunks=(700, 3)), da.from_array(y.astype(float), chunks=700)
    lazy = PrivateLogisticRegression(**common).fit(rows, labels)
    np.testing.assert_allclose(lazy.coef_, memory.coef_, rtol=1e-6)
    np.testing.assert_allclose(lazy.predict_proba(rows), memory.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("rounds", [None, 0, 3])
@pytest.mark.parametrize("kind", ["zeros", "separable", "one class", "huge", "few rows", "wide"])
def test_hard_data(kind, rounds, epsilon):
    """Fits end, with finite coefficients and the budget that was asked for."""
    X, y = problem(300)
    if kind == "zeros":
        X = np.zeros_like(X)
    elif kind == "separable":
        y = (X[:, 0] > 0).astype(int)
    elif kind == "one class":
        y = np.ones_like(y)
    elif kind == "huge":
        X = X * 1e300
    elif kind == "few rows":
        X, y = X[:2], y[:2]
    elif kind == "wide":
        X = np.random.default_rng(1).choice([-1.0, 1.0], (300, 140))
    model = fixing(PrivateLogisticRegression, rounds=rounds)(
        epsilon=epsilon, classes=[0, 1], **BOUNDS
    )
    model.fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.privacy_.epsilon <= epsilon
    assert verify_certificate(model.privacy_.to_json()).verified
