"""Dummies of a matrix: declared or made by an encoder, enforced on each row, fitted as a table."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import fastmix
from fastmix import PrivateLinearRegression, PrivateLogisticRegression, PublicEncoder
from fastmix.certificate.verify import verify_certificate
from fastmix.data import ArrayChunk, Chunks
from fastmix.data.maps import one_hot
from fastmix.errors import InvalidValueError, PrivacyLeakWarning

pytestmark = pytest.mark.filterwarnings("ignore::fastmix.errors.ReproducibleNoiseWarning")

N = 4_000
RNG = np.random.default_rng(0)
WARDS, SEXES = ["a", "b", "c", "other"], ["f", "m", "other"]
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(0.0, 100.0, N),
        "ward": RNG.choice(WARDS[:3], N, p=[0.3, 0.5, 0.2]),
        "sex": RNG.choice(SEXES[:2], N),
    }
)
NOISE = RNG.normal(0.0, 1.0, N)
Y = (5.0 + 3.0 * (FRAME["ward"] == "c") + 0.04 * FRAME["age"]).to_numpy() + NOISE
BOUNDS = {"age": (0, 100), "ward": WARDS[:3], "sex": SEXES[:2]}
GIVEN = {"epsilon": 2.0, "delta": 1e-6, "bounds_y": (0, 20), "inference": True, "random_state": 1}


def dummies(full):
    """Return the dummies of the table by name, and which columns belong together."""
    columns, together = {"age": FRAME["age"].to_numpy()}, []
    for name, levels in (("ward", WARDS), ("sex", SEXES)):
        kept = levels if full else levels[1:]
        columns |= {f"{name}_{level}": (FRAME[name] == level).astype(float) for level in kept}
        together.append([f"{name}_{level}" for level in kept])
    made = pd.DataFrame(columns)
    ends = {name: (0, 100) if name == "age" else (0, 1) for name in made}
    return made, together, PrivateLinearRegression(bounds_X=ends, **GIVEN)


@pytest.fixture(scope="module")
def table():
    """The fit of the same table by a bounds file."""
    return PrivateLinearRegression(bounds=BOUNDS, **GIVEN).fit(FRAME, Y)


@pytest.fixture(scope="module")
def full():
    X, together, model = dummies(full=True)
    return model.fit(X, Y, categories=together), X


def test_a_rule_on_each_row_makes_dummies():
    rows = np.array(
        [
            [7.0, 0.0, 1.0, 0.0],
            [-7.0, 0.4, 0.49, 0.3],
            [0.0, 2.0, 3.0, 2.5],
            [0.0, 1.0, 1.0, 1.0],
            [0.0, 1e308, -1e308, 1e300],
            [0.0, -5.0, 0.5, -1e308],
            [0.0, -1.0, -2.0, -3.0],
        ]
    )
    made = one_hot(rows, [(1, 2, 3)])
    assert made[:, 1:].tolist() == [
        *([0, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]),
    ]
    np.testing.assert_array_equal(made[:, 0], rows[:, 0])
    assert rows[2, 1] == 2.0  # the user's array is not written to
    for value in (math.nan, math.inf):
        rows[0, 1] = value
        with pytest.raises(InvalidValueError):
            one_hot(rows, [(1, 2, 3)])


def test_a_matrix_has_the_fit_of_its_table(table):
    X, together, model = dummies(full=False)
    model.fit(X, Y, categories=together)
    np.testing.assert_allclose(model.coef_, table.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.coef_std_, table.coef_std_, rtol=1e-9)
    # Two categories and a number, not six columns.
    assert model.privacy_.data["row_norm"] == pytest.approx(math.sqrt(3.0))
    places = [[list(X).index(name) for name in names] for names in together]
    twin = PrivateLinearRegression(bounds_X=(0, 100), **GIVEN)
    twin.fit(X.to_numpy(), Y, categories=places)
    np.testing.assert_array_equal(twin.coef_, model.coef_)
    assert model.account(N, 6, categories=places).events == model.privacy_.spent.events
    assert verify_certificate(model.privacy_.to_json()).complaints == ()


def test_no_level_needs_to_be_dropped(full, table):
    model, X = full
    lines, others = ({each.name: each for each in m.summary().lines} for m in (model, table))
    assert model.summary().references == table.summary().references == {"ward": "b", "sex": "f"}
    assert [*lines] == ["age", "ward_a", "ward_c", "sex_m", "intercept"]
    for name, line in lines.items():
        other = others[name.replace("_", "=")]
        # The noise is another one: six standard errors of each, so 1e-8 of false alarms.
        assert abs(line.coef - other.coef) < 6.0 * (line.std_err + other.std_err)
        assert line.std_err < 2.0 * other.std_err
    assert not model.coef_identified_[1:].any()  # alone, beside an intercept
    unknown = X.head(1) * 0.0
    means = [model.predict(unknown.assign(**{name: 1.0}))[0] for name in ("ward_a", "ward_c")]
    assert min(means) <= model.predict(unknown)[0] <= max(means)
    assert [*model.level_counts_["ward"]] == ["none", "a", "b", "c", "other"]


def test_a_model_with_dummies_is_saved_and_scored(full, tmp_path):
    model, X = full
    model.save(tmp_path)
    again = fastmix.load(tmp_path)
    assert str(again.summary()) == str(model.summary())
    assert verify_certificate((tmp_path / "certificate.json").read_text()).complaints == ()
    # Scores see what a fit sees: twice a dummy is a dummy.
    odd = X * np.array([1.0, *[2.0] * 7])
    seeds = {"epsilon": 1.0, "random_state": 2}
    assert again.evaluate(odd, Y, **seeds)["r2"] == again.evaluate(X, Y, **seeds)["r2"]


@pytest.mark.parametrize("kind", ["chunks", "parquet", "memmap", "dask"])
def test_files_and_clusters_have_the_same_fit(kind, table, tmp_path):
    X, together, model = dummies(full=False)
    places = [[1, 2, 3], [4, 5]]
    if kind == "chunks":
        array = X.to_numpy()
        parts = [
            ArrayChunk(str(at), array[at : at + 900], Y[at : at + 900]) for at in range(0, N, 900)
        ]
        model = PrivateLinearRegression(bounds_X=(0, 100), **GIVEN)
        model.fit_chunks(Chunks(parts, 6), categories=places)
    elif kind == "parquet":
        file = tmp_path / "table.parquet"
        pa.parquet.write_table(pa.Table.from_pandas(X.assign(y=Y)), file, row_group_size=900)
        model.fit_parquet(file, categories=together)
    elif kind == "memmap":
        mapped = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape)
        mapped[:] = X
        model = PrivateLinearRegression(bounds_X=(0, 100), **GIVEN)
        model.fit(mapped, Y, categories=places)
    else:
        dask = pytest.importorskip("dask.array")
        model = PrivateLinearRegression(bounds_X=(0, 100), **GIVEN)
        array = dask.from_array(X.to_numpy(), chunks=(1000, 6))
        model.fit(array, dask.from_array(Y, chunks=1000), categories=places)
    np.testing.assert_allclose(model.coef_, table.coef_, rtol=1e-6)


def encoder(**given):
    lists = {"categories": [WARDS[:3], SEXES[:2]], "sparse_output": False} | given
    return ColumnTransformer(
        [("numbers", "passthrough", ["age"]), ("levels", OneHotEncoder(**lists), ["ward", "sex"])]
    )


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (encoder(), ((1, 2, 3), (4, 5))),
        (encoder(drop="first"), ((1, 2), (3,))),
        (encoder(drop="if_binary", handle_unknown="ignore"), ((1, 2, 3), (4,))),
        (PublicEncoder(BOUNDS), ((1, 2, 3), (4, 5))),
        (PublicEncoder(BOUNDS, drop_first=False), ((1, 2, 3, 4), (5, 6, 7))),
        (make_pipeline(encoder(), "passthrough"), ((1, 2, 3), (4, 5))),
        (make_pipeline(encoder(), FunctionTransformer()), ()),  # may be anything
    ],
)
def test_public_encoders_in_front_are_recognised(step, found):
    model = PrivateLinearRegression(bounds_X=(0, 100), **GIVEN)
    pipeline = make_pipeline(step, model).fit(FRAME.head(500), Y[:500])
    assert pipeline[-1]._dummies == found


def test_categories_from_the_data_are_warned_of_and_not_recognised():
    model = PrivateLinearRegression(bounds_X=(0, 100), **GIVEN)
    with pytest.warns(PrivacyLeakWarning, match="OneHotEncoder"):
        made = make_pipeline(encoder(categories="auto"), model).fit(FRAME.head(500), Y[:500])
    assert made[-1]._dummies == ()


def test_what_is_between_a_pipeline_and_a_model_hides_the_encoder():
    search = GridSearchCV(
        PrivateLinearRegression(bounds_X=(0, 100), **GIVEN), {"epsilon": [1.0]}, cv=2
    )
    made = make_pipeline(encoder(), search).fit(FRAME.head(500), Y[:500])
    assert made[-1].best_estimator_._dummies == ()


def test_the_table_fit_of_a_pipeline(table):
    made = PublicEncoder(BOUNDS).fit(FRAME)
    model = PrivateLinearRegression(bounds_X=made.bounds_X_, data_norm=made.data_norm_, **GIVEN)
    pipeline = make_pipeline(made, model).fit(FRAME, Y)
    np.testing.assert_array_equal(pipeline[-1].coef_, table.coef_)


def test_a_second_fit_forgets_the_dummies():
    X, together, model = dummies(full=False)
    model.set_params(inference=False).fit(X, Y, categories=together)
    assert "dummies" in model.privacy_.data
    model.fit(X, Y)
    assert "dummies" not in model.privacy_.data
    assert not hasattr(model, "_level_counts")


def test_classifiers_have_dummies():
    X, together, model = dummies(full=True)
    given = {name: value for name, value in GIVEN.items() if name != "bounds_y"}
    given |= {"bounds_X": model.bounds_X, "classes": [0, 1]}
    made = PrivateLogisticRegression(**given).fit(X, (Y > 7.0).astype(int), categories=together)
    assert made.summary().references["ward"] == "b"


@pytest.mark.parametrize(
    ("given", "parameters", "complaint"),
    [
        ([["ward_b"], ["ward_b"]], {}, "have each column once"),
        ([[]], {}, "a column in each list"),
        ([["ward_z"]], {}, "name columns of X"),
        ([[6]], {}, "from 0 to 5"),
        ([[True]], {}, "name columns of X"),
        (["ward_b"], {}, "a list of columns per category"),
        (3, {}, "a list with a list"),
        ([[1]], {"bounds_X": None, "data_norm": 3.0}, "bounds_X must be given with categories"),
        ([[1]], {"data_norm": 1e-13}, "data_norm must be at least 1e-12 with categories"),
        ([[1]], {"bounds": BOUNDS}, "categories must be None when bounds are given"),
    ],
)
def test_what_is_refused(given, parameters, complaint):
    X, _, model = dummies(full=False)
    with pytest.raises((TypeError, ValueError), match=complaint):
        model.set_params(**parameters).fit(X, Y, categories=given)


def test_a_score_that_leaves_nothing_to_the_coefficients_is_refused_by_name():
    X, budget = np.zeros((300, 3)), fastmix.BudgetAccountant(math.inf, 0.5)
    X[:, 0] = 1.0
    model = PrivateLinearRegression(
        epsilon=0.1, delta=1e-6, bounds_X=(0, 1), bounds_y=(-1, 1), score_share=0.5
    ).set_params(accountant=budget)
    with pytest.raises(ValueError, match="score_share must leave a part of the budget"):
        model.fit(X, np.zeros(300), categories=[[0, 1]], sample_weight=np.ones(300))
    assert len(budget) == 0
