"""Bounds by column name together with persons, families, scores, comparisons and saved models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fastmix
from fastmix import (
    BudgetAccountant,
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
    compare,
)
from fastmix.accounting import noted
from fastmix.certificate.documents import read_document
from fastmix.certificate.verify import verify_certificate
from fastmix.data import ArrayChunk, Chunks
from fastmix.engine import Family
from fastmix.files.loading import verify_pair
from fastmix.schema import PublicBounds

pytestmark = pytest.mark.filterwarnings("ignore")

N = 2000
FEATURES = {"age": (0, 120), "city": ["Ulm", "Bonn"]}
BOUNDS = {"target": {"income": (0, 100)}, "features": FEATURES}
LABELS = {"target": {"rich": (0, 1)}, "features": FEATURES}
FOUND = {"epsilon": 0.5, "delta": 1e-6, "coverage": 0.99, "certificate": "sha256:" + "0" * 64}
COMMON = {"epsilon": 3.0, "delta": 1e-6, "random_state": 0}


@pytest.fixture
def as_array(monkeypatch):
    """Fit tables as their encoded arrays, without the coordinates that categories give."""
    monkeypatch.setattr(Family, "tables", False)


def frame():
    rng = np.random.default_rng(0)
    age, city = rng.uniform(0, 120, N), rng.choice(["Ulm", "Bonn", "Rom"], N)
    age[::10] = np.nan
    income = 0.5 * np.nan_to_num(age, nan=60.0) + rng.normal(0, 3, N)
    person = np.arange(N) // 4
    rich = (income > 30).astype(int)
    return pd.DataFrame(
        {"person": person, "age": age, "city": city, "income": income, "rich": rich}
    )


class Persons(PrivateLinearRegression):
    """Fits of which at most four rows of a person count."""

    def fit(self, *data, **given):
        return super().fit(*data, **given, max_rows_per_group=4)

    def fit_parquet(self, *data, **given):
        return super().fit_parquet(*data, **given, max_rows_per_group=4)


def persons(**parameters):
    return Persons(**{**COMMON, **parameters})


def public(**tables):
    return PublicBounds.from_dict(
        {
            "target": {"income": [0, 100]},
            "features": {"age": [0, 120], "city": ["Ulm", "Bonn"]},
            **tables,
        }
    )


def encoded(table):
    """Return the columns that the bounds give, by hand."""
    age = np.clip(table["age"].fillna(60.0), 0, 120)
    return np.column_stack([age, table["city"] == "Bonn", table["city"] == "Rom"]).astype(float)


@pytest.mark.parametrize("kind", [pd.Series.to_numpy, pd.Series.tolist, lambda ids: ids])
def test_persons_of_a_table_are_those_of_its_arrays(kind):
    table = frame()
    made = persons(bounds=BOUNDS).fit(table, groups=kind(table["person"]))
    expected = persons(
        bounds_X=public().feature_bounds(), data_norm=public().data_norm, bounds_y=(0, 100)
    )
    expected._categories = public().categories()
    expected.fit(encoded(table), table["income"], table["person"].to_numpy())
    np.testing.assert_allclose(made.coef_, expected.coef_, rtol=1e-9)
    assert made.privacy_.spent == expected.privacy_.spent
    assert made.privacy_.data["n_persons"] == N // 4


def test_ids_of_dropped_rows_are_dropped(tmp_path):
    table = frame()
    table.loc[table["person"] == 7, "age"] = np.nan
    table.to_parquet(tmp_path / "t.parquet")
    left = table[table["age"].notna()]
    dropping = {**BOUNDS, "missing": {"rule": "drop"}}
    for ids in (table["person"], table["person"].tolist()):
        facts = persons(bounds=dropping).fit(table, groups=ids).privacy_.data
        assert facts["n_samples"] == len(left)
        assert facts["n_persons"] == left["person"].nunique() < N // 4
    from_file = persons(bounds=dropping).fit_parquet(tmp_path / "t.parquet", groups="person")
    assert from_file.privacy_.data["n_persons"] == facts["n_persons"]
    with pytest.raises(ValueError, match="groups must have 2000 entries"):
        persons(bounds=dropping).fit(table, groups=table["person"][1:])


def test_patterns_do_not_take_ids(tmp_path):
    table = frame()[["person", "age", "income"]]
    table.to_parquet(tmp_path / "t.parquet")
    bounds = {"target": {"income": (0, 100)}, "features": {"*": (0, 120)}}
    made = persons(bounds=bounds).fit(table, groups=table["person"])
    assert list(made.feature_names_in_) == ["age"]
    made = persons(bounds=bounds).fit_parquet(tmp_path / "t.parquet", groups="person")
    assert list(made.feature_names_in_) == ["age"]


def test_found_bounds_protect_persons_if_the_fit_does(tmp_path):
    table = frame()
    table.to_parquet(tmp_path / "t.parquet")
    budget = BudgetAccountant(10.0, 1e-3)
    model = persons(bounds={**BOUNDS, "found": FOUND}, accountant=budget)
    with pytest.raises(ValueError, match="must protect persons"):
        model.fit(table, groups=table["person"])
    with pytest.raises(ValueError, match="must protect persons"):
        model.fit_parquet(tmp_path / "t.parquet", groups="person")
    assert len(budget) == 0
    found = {**FOUND, "rows_per_person": 4}
    made = persons(bounds={**BOUNDS, "found": found}).fit(table, groups=table["person"])
    assert made.privacy_.data["encoding"]["found"] == found


def test_the_ledger_tells_of_persons_beside_a_label():
    table, budget = frame(), BudgetAccountant(10.0, 1e-3)
    with noted(label="first"):
        persons(bounds=BOUNDS, accountant=budget, random_state=None).fit(
            table, groups=table["person"]
        )
    assert budget.charges[0].label == "first, per person of up to 4 rows"
    assert budget.charges[0].notes == (("target", "income"),)


def test_a_cap_needs_ids_and_ids_a_cap():
    table = frame()
    with pytest.raises(ValueError, match="max_rows_per_group must be None without groups"):
        persons(bounds=BOUNDS).fit(table)
    with pytest.raises(ValueError, match="max_rows_per_group must be given with groups"):
        PrivateLinearRegression(bounds=BOUNDS).fit(table, groups=table["person"])


@pytest.mark.parametrize("kind", [PrivateQuantileRegressor, PrivateHuberRegressor])
def test_families_by_bounds_are_saved_and_loaded(tmp_path, kind, as_array):
    table = frame()
    model = kind(bounds=BOUNDS, **COMMON).fit(table)
    values = {"bounds_X": public().feature_bounds(), "data_norm": public().data_norm}
    expected = kind(bounds_y=(0, 100), **values, **COMMON).fit(encoded(table), table["income"])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    check_saved(tmp_path, model, table)


def test_labels_by_bounds_are_saved_and_loaded(tmp_path, as_array):
    table = frame()
    table.to_parquet(tmp_path / "t.parquet")
    model = PrivateLogisticRegression(bounds=LABELS, **COMMON).fit(table)
    assert model.classes is None
    assert model.privacy_.leaks == ("the noise was seeded by the caller",)
    values = {"bounds_X": public().feature_bounds(), "data_norm": public().data_norm}
    expected = PrivateLogisticRegression(classes=[0, 1], **values, **COMMON)
    expected.fit(encoded(table), table["rich"])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(table), expected.predict(encoded(table)))
    flat = PrivateLogisticRegression(bounds=FEATURES, classes=[0, 1], **COMMON)
    np.testing.assert_array_equal(flat.fit(table, table["rich"]).coef_, model.coef_)
    assert flat.classes == [0, 1]
    files = PrivateLogisticRegression(bounds=LABELS, **COMMON).fit_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(files.classes_, [0, 1])
    loaded = check_saved(tmp_path, model, table)
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))


def check_saved(folder, model, table):
    model.save(folder / "m")
    certificate, text = ((folder / "m" / f"{n}.json").read_text() for n in ("certificate", "model"))
    assert verify_certificate(certificate).complaints == ()
    assert verify_pair(read_document(certificate), text) == []
    loaded = fastmix.load(folder / "m")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    return loaded


def in_words(table):
    """Return labels of three kinds, one of which is not in the list, and missing ones."""
    words = pd.Series(np.select([table["income"] < 20, table["income"] < 40], ["low", "mid"], "up"))
    words[::50], words[1::50] = "none", None
    return words


def test_labels_of_arrays_are_saved(tmp_path):
    table = frame()
    X, given = encoded(table), {"bounds_X": (0, 120), **COMMON}
    three = np.digitize(table["income"], [20, 40])
    for name, classes, y in (
        ("signs", [-1, 1], 2 * table["rich"] - 1),
        ("two", ["no", "yes"], np.where(table["rich"], "yes", "no")),
        ("three", [0, 1, 2], three),
        ("words", ["low", "mid", "up"], in_words(table).to_numpy()),
    ):
        (tmp_path / name).mkdir()
        model = PrivateLogisticRegression(classes=classes, **given).fit(X, y)
        loaded = check_saved(tmp_path / name, model, X)
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(loaded.coef_, model.coef_)
        np.testing.assert_array_equal(loaded.intercept_, model.intercept_)
        lines = [each.name for each in loaded.summary().lines]
        assert len(lines) == model.coef_.size + model.intercept_.size
        assert len(set(lines)) == len(lines)


@pytest.mark.parametrize("missing", ["impute", "drop"])
@pytest.mark.parametrize("kind", ["words", "numbers"])
def test_labels_by_bounds_are_those_of_arrays(tmp_path, kind, missing, as_array):
    table = frame()
    if kind == "words":
        table["kind"], labels = in_words(table), ["up", "low", "mid"]
        y = table["kind"].to_numpy()
    else:
        table["kind"], labels = np.digitize(table["income"], [20, 40]) + 1.0, [1, 2, 3]
        table.loc[::50, "kind"], table.loc[1::50, "kind"] = 7.0, np.nan
        y = table["kind"].fillna(0).to_numpy()
    table.to_parquet(tmp_path / "t.parquet", row_group_size=300)
    bounds = {"target": {"kind": {"labels": labels}}, "features": FEATURES}
    bounds["missing"] = {"rule": missing}
    X, kept = encoded(table), slice(None)
    if missing == "drop":
        kept = (table["kind"].notna() & table["age"].notna()).to_numpy()
    given = {"bounds_X": public().feature_bounds(), "data_norm": public().data_norm}
    want = PrivateLogisticRegression(classes=labels, **given, **COMMON).fit(X[kept], y[kept])
    model = PrivateLogisticRegression(bounds=bounds, **COMMON).fit(table)
    apart = PrivateLogisticRegression(bounds=bounds, **COMMON).fit(table, table["kind"])
    files = PrivateLogisticRegression(bounds=bounds, **COMMON).fit_parquet(tmp_path / "t.parquet")
    for each, near in ((model, 1e-9), (apart, 1e-9), (files, 1e-6)):
        np.testing.assert_array_equal(each.classes_, sorted(labels))
        assert each.classes is None
        np.testing.assert_allclose(each.coef_, want.coef_, rtol=near, atol=1e-9)
        assert each.privacy_.data["classes"] == sorted(labels)
        assert verify_certificate(each.privacy_.to_json()).complaints == ()
    check_saved(tmp_path, model, table)
    found = model.evaluate(table, epsilon=3.0, metrics="accuracy")
    assert found["accuracy"] > 0.6


def test_two_labels_in_words_by_bounds(tmp_path):
    table = frame()
    want = PrivateLogisticRegression(bounds=LABELS, **COMMON).fit(table)
    words = {"target": {"rich": ["yes", "no"]}, "features": FEATURES}
    table["rich"] = np.where(table["rich"], "yes", "no")
    model = PrivateLogisticRegression(bounds=words, **COMMON).fit(table)
    np.testing.assert_allclose(model.coef_, want.coef_)
    assert list(model.classes_) == ["no", "yes"]
    assert set(model.predict(table)) == {"no", "yes"}
    loaded = check_saved(tmp_path, model, table)
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    with pytest.raises(ValueError, match="Labels need a logistic regression"):
        PrivateLinearRegression(bounds=words).fit(table)
    with pytest.raises(ValueError, match="y must have one entry per row of X"):
        PrivateLogisticRegression(bounds=words).fit(table, ["yes", "no"])


def test_classes_that_do_not_go_with_bounds():
    table = frame()
    with pytest.raises(ValueError, match="classes must be None where bounds name the target"):
        PrivateLogisticRegression(bounds=LABELS, classes=[0, 1]).fit(table)
    with pytest.raises(TypeError, match="classes must be a list of labels"):
        PrivateLogisticRegression(bounds=FEATURES, classes="ab").fit(table, table["rich"])
    with pytest.raises(ValueError, match="Pass classes, or bounds="):
        PrivateLogisticRegression(bounds=FEATURES).fit(table, table["rich"])


def test_persons_of_a_table_with_labels():
    table = frame()
    model = PrivateLogisticRegression(bounds=LABELS)
    model.fit(table, groups=table["person"], max_rows_per_group=4)
    assert model.privacy_.data["n_persons"] == table["person"].nunique()


def test_scores_of_a_table():
    table, budget = frame(), BudgetAccountant(10.0, 1e-3)
    model = PrivateLinearRegression(bounds=BOUNDS, score_share=0.1, **COMMON).fit(table)
    found = model.evaluate(table, epsilon=2.0, random_state=0)
    same = model.evaluate(table[["city", "age"]], table["income"], epsilon=2.0, random_state=0)
    assert found.scores == same.scores
    assert found.n == N
    true = np.mean((table["income"].clip(0, 100) - model.predict(table)) ** 2)
    assert abs(found["mse"] - true) < 6.0 * found.scores["mse"].std + 0.2 * true
    model.random_state = None
    model.fit(table).evaluate(table, epsilon=2.0, accountant=budget)
    assert [charge.label for charge in budget.charges] == ["scores of PrivateLinearRegression"]
    assert "R-squared" in str(model.summary())
    classifier = PrivateLogisticRegression(bounds=LABELS, **COMMON).fit(table)
    with pytest.raises(ValueError, match="metrics must be"):
        classifier.evaluate(table, metrics="r2", epsilon=1.0, accountant=budget)
    assert len(budget) == 1
    assert 0.0 <= classifier.evaluate(table, metrics="auc", epsilon=1.0)["auc"] <= 1.0


def test_what_does_not_take_bounds():
    table = frame()
    model = PrivateLinearRegression(bounds=BOUNDS)
    with pytest.raises(ValueError, match="bounds must be None in a comparison"):
        compare([["age"], ["income"]], table[["age", "income"]], table["income"], model=model)
    chunks = Chunks([ArrayChunk("X", encoded(table), table["income"].to_numpy())], 3)
    with pytest.raises(ValueError, match="Pass bounds_X and classes"):
        PrivateLogisticRegression(bounds=LABELS).fit_chunks(chunks)
    lazy = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=2)
    with pytest.raises(TypeError, match="be a pandas, Polars or Arrow table"):
        model.fit(lazy)


def test_files_with_another_target_or_fewer_features(tmp_path):
    path = tmp_path / "t.parquet"
    frame().to_parquet(path)
    model = PrivateLinearRegression(bounds=BOUNDS, **COMMON)
    with pytest.raises(ValueError, match="target must be that of the bounds, 'income'"):
        model.fit_parquet(path, "rich")
    assert list(model.fit_parquet(path, "income", ["age"]).feature_names_in_) == ["age"]
