"""Effects of a table with categories: references, standard errors, pooled levels, saved models."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import fastmix
from fastmix.estimators.contrasts import contrast_errors, contrasts, table_parts
from fastmix.files.loading import read_model
from fastmix.schema import PublicBounds

FEATURES = {"age": [0, 100], "ward": ["a", "b", "c", "rare"], "sex": ["f", "m"]}
BOUNDS = {"target": {"y": [0, 20]}, "features": FEATURES}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 20_000
    ward = rng.choice(["a", "b", "c", "rare"], n, p=[0.2, 0.5, 0.2998, 0.0002])
    age, sex = rng.uniform(0, 100, n), rng.choice(["f", "m"], n)
    y = 5.0 + 3.0 * (ward == "c") - 2.0 * (ward == "a") + 0.04 * age + rng.normal(0, 1, n)
    return pd.DataFrame({"age": age, "ward": ward, "sex": sex, "y": y})


@pytest.fixture(scope="module")
def model(table):
    made = fastmix.PrivateLinearRegression(
        bounds=BOUNDS, inference=True, epsilon=2.0, delta=1e-6, random_state=0
    )
    return made.fit(table)


def test_contrasts_are_with_the_most_frequent_level():
    """By hand, with a term whose slope is that of the reference, too."""
    bounds = PublicBounds.from_dict({**BOUNDS, "features": {**FEATURES, "age*ward": True}})
    columns = [*bounds.columns(), "intercept"]
    counts = [np.array([200.0, 500.0, 300.0, 5.0, 0.0]), np.array([400.0, 600.0, 0.0])]
    made = contrasts(table_parts(bounds), counts, [np.full(5, 10.0), np.full(3, 10.0)])
    assert made.references == {"ward": "b", "sex": "m"}
    assert made.pooled == ("ward=rare", "ward=rare*age")
    assert not any("other" in name for name in made.names)
    rows = {
        name: {columns[j]: row[j] for j in np.flatnonzero(row)}
        for name, row in zip(made.names, made.matrix, strict=True)
    }
    assert rows == {
        "age": {"age": 1.0, "ward=b*age": 1.0},
        "ward=a": {"ward=b": -1.0},
        "ward=c": {"ward=c": 1.0, "ward=b": -1.0},
        "sex=f": {"sex=m": -1.0},
        "ward=a*age": {"ward=b*age": -1.0},
        "ward=c*age": {"ward=c*age": 1.0, "ward=b*age": -1.0},
        "intercept": {"intercept": 1.0, "ward=b": 1.0, "sex=m": 1.0},
    }
    assert made.widths == (100.0, 1.0, 1.0, 1.0, 100.0, 100.0)


def test_a_term_without_its_product_of_numbers_keeps_the_first_level():
    features = {**FEATURES, "height": [1, 2], "age*height*ward": True}
    bounds = PublicBounds.from_dict({**BOUNDS, "features": features})
    counts = [np.array([200.0, 500.0, 300.0, 5.0, 0.0]), np.array([400.0, 600.0, 0.0])]
    made = contrasts(table_parts(bounds), counts, [np.full(5, 10.0), np.full(3, 10.0)])
    row = made.matrix[made.names.index("ward=b*age*height")]
    assert np.flatnonzero(row).tolist() == [bounds.columns().index("ward=b*age*height")]


@pytest.mark.parametrize(("count", "shown"), [(49.0, False), (51.0, True)])
def test_other_is_an_effect_only_if_rows_have_it(count, shown):
    bounds = PublicBounds.from_dict(BOUNDS)
    counts = [np.array([200.0, 500.0, 300.0, 21.0, count]), np.array([400.0, 600.0, 0.0])]
    made = contrasts(table_parts(bounds), counts, [np.full(5, 10.0), np.full(3, 10.0)])
    assert ("ward=other" in made.names) == shown
    assert made.pooled == ()


def test_counts_must_be_those_of_the_levels():
    with pytest.raises(ValueError, match="counts"):
        contrasts(
            table_parts(PublicBounds.from_dict(BOUNDS)), [np.ones(5), np.ones(2)], [np.ones(5)] * 2
        )


def test_effects_cover_the_truth(model):
    made = model.summary(0.9999)
    lines = {line.name: line for line in made.lines}
    truth = {"age": 0.04, "ward=a": -2.0, "ward=c": 3.0}
    for name, value in truth.items():
        assert lines[name].low < value < lines[name].high, name
    assert made.references["ward"] == "b"
    assert made.pooled == ("ward=rare",)
    assert "ward=other" not in lines
    assert lines["age"].over_range == pytest.approx(100.0 * lines["age"].coef)
    assert made.shown[0].name == "age"
    assert made.shown[-1].name == "intercept"


def test_standard_errors_are_those_of_differences(model):
    made = contrasts(table_parts(model.schema_), model._level_counts, model._count_errors)
    std, noise = contrast_errors(model, made)
    C, B = model.coef_covariance_, model._coef_bias
    b, c = (model.schema_.columns().index(f"ward={level}") for level in "bc")
    total, bias = (M[c, c] + M[b, b] - 2.0 * M[b, c] for M in (C, B))
    at = made.names.index("ward=c")
    assert std[at] == pytest.approx(np.sqrt(total + bias))
    assert 0.0 < noise[at] < std[at]


def test_what_the_ridge_hides_is_not_identified(model):
    made = contrasts(table_parts(model.schema_), model._level_counts, model._count_errors)
    kept = model._coef_bias
    try:
        model._coef_bias = kept.copy()
        age = model.schema_.columns().index("age")
        model._coef_bias[age, age] = 0.26 * model.coef_covariance_[age, age]
        assert np.isinf(contrast_errors(model, made)[0][made.names.index("age")])
        said = str(model.summary())
        assert "1 of 4 effects is hidden by noise, though the model uses them: age." in said
        assert not any(line.startswith("age ") for line in said.split("\n"))
    finally:
        model._coef_bias = kept


def test_counts_of_levels(model, table):
    counts = model.level_counts_
    assert list(counts) == ["ward", "sex"]
    assert list(counts["ward"]) == ["a", "b", "c", "rare", "other"]
    assert counts["ward"]["b"] == pytest.approx((table.ward == "b").sum(), abs=200)
    plain = fastmix.PrivateLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), delta=1e-6)
    plain.fit(table[["age"]].to_numpy() / 100, table.y / 20)
    assert not hasattr(plain, "level_counts_")


def test_a_saved_model_says_the_same(model, tmp_path):
    model.save(tmp_path / "m")
    saved = fastmix.load(tmp_path / "m")
    ours, theirs = model.summary(), saved.summary()
    assert theirs.lines == ours.lines
    assert (theirs.notes, theirs.facts) == (ours.notes, ours.facts)
    assert (theirs.references, theirs.pooled) == (ours.references, ours.pooled)
    document = json.loads((tmp_path / "m" / "model.json").read_text())
    for name in ("coef_covariance_", "_coef_noise", "_level_counts"):
        damaged = {**document["fitted"], name: document["fitted"][name][:-1]}
        with pytest.raises(fastmix.errors.DataError, match="JSON document of format"):
            read_model(json.dumps({**document, "fitted": damaged}))


def test_without_intervals_effects_have_no_errors(table):
    model = fastmix.PrivateLinearRegression(
        bounds=BOUNDS, epsilon=2.0, delta=1e-6, inference=False
    ).fit(table)
    made = model.summary()
    assert made.references["ward"] == "b"
    assert not made.has_errors
    assert "budget" not in str(made)


def test_a_fit_of_an_array_forgets_the_categories_of_a_table(table):
    """Columns of an array are no levels, and counts of them would have no bound."""
    made = {"epsilon": 2.0, "delta": 1e-6}
    model = fastmix.PrivateLinearRegression(bounds=BOUNDS, **made).fit(table)
    X = np.random.default_rng(1).uniform(-1, 1, (5000, 8))
    model.set_params(bounds=None, bounds_X=(-1, 1), bounds_y=(-1, 1)).fit(X, X[:, 0])
    fresh = fastmix.PrivateLinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), **made)
    assert model.privacy_.spent.events == fresh.fit(X, X[:, 0]).privacy_.spent.events
    assert not hasattr(model, "level_counts_")
