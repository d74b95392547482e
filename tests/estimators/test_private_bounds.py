"""Bounds found privately: what they hold, what they cost, and what they do with odd columns."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import fastmix
from fastmix import BudgetAccountant, BudgetError, PrivateBounds, PrivateLinearRegression


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    n = 20_000
    X = np.column_stack(
        [
            rng.uniform(20, 70, n),
            rng.standard_normal(n),
            rng.lognormal(8.0, 1.5, n),  # heavy tails
            rng.integers(0, 2, n),
            np.full(n, 3.25),
            np.full(n, np.nan),
            np.zeros(n),
        ]
    )
    return X, 1000.0 + 10.0 * X[:, 0] + rng.normal(0, 20, n)


def test_bounds_hold_most_rows_and_odd_columns_are_handled(data):
    X, y = data
    found = PrivateBounds(epsilon=0.1, delta=1e-10, random_state=0).fit(X, y)
    low, high = found.bounds_X_
    inside = (np.clip(X, low, high) == X).mean(axis=0)
    assert (inside[:5] > [0.97, 0.97, 0.95, 0.97, 0.97]).all()  # the third has heavy tails
    assert (1.0 - inside[:5] <= found.outside_[:5]).all()
    assert high[0] <= 256
    assert low[0] >= 0
    assert (low[3], high[3]) == (0.0, 1.0)
    assert low[4] <= 3.25 <= high[4]
    assert (low[5], high[5], found.outside_[5]) == (0.0, 0.0, 1.0)  # nothing to find
    assert low[6] <= 0.0 <= high[6]
    assert high[6] < 1e-5
    below, above = found.bounds_y_
    assert below <= np.quantile(y, 0.01)
    assert above >= np.quantile(y, 0.99)


def test_a_fit_takes_them(data):
    X, y = data
    X = np.nan_to_num(X)
    found = PrivateBounds(epsilon=0.5, random_state=0).fit(X, y)
    model = PrivateLinearRegression(
        epsilon=3.0, bounds_X=found.bounds_X_, bounds_y=found.bounds_y_, random_state=0
    ).fit(X, y)
    assert model.score(np.clip(X, *found.bounds_X_), y) > 0.9


def test_all_missing_and_no_target():
    found = PrivateBounds(random_state=0).fit(np.full((500, 2), np.nan))
    assert found.bounds_y_ is None
    assert (found.bounds_X_[1] == 0.0).all()


def test_the_ledger_is_charged_as_stated(data):
    X, y = data
    budget = BudgetAccountant(1.0, 1e-6)
    found = PrivateBounds(epsilon=0.2, delta=1e-8, accountant=budget).fit(X, y)
    (charge,) = budget.charges
    assert charge.label == "PrivateBounds"
    assert charge.spent == found.privacy_.spent
    assert found.privacy_.private
    assert 0.199 < found.privacy_.epsilon <= 0.2
    with pytest.raises(BudgetError):
        PrivateBounds(epsilon=3.0, accountant=budget).fit(X, y)
    with budget, pytest.raises(BudgetError):
        PrivateBounds(epsilon=3.0).fit(X, y)


def test_names_and_limits(data):
    X, y = data
    frame = pd.DataFrame(X[:, :2], columns=["age", "z"])
    found = PrivateBounds(epsilon=1.0, limits={"age": (0, 50)}, random_state=0).fit(frame, y)
    assert list(found.feature_names_in_) == ["age", "z"]
    assert found.bounds_X_[1][0] == 50.0
    with pytest.raises(ValueError, match="limits must be for columns"):
        PrivateBounds(limits={"ages": (0, 50)}).fit(frame, y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must"),
        ({"delta": 1.0}, "delta must"),
        ({"coverage": 1.0}, "coverage must"),
        ({"coverage": 0.2}, "coverage must"),
        ({"grid": (4.0, 2.0)}, "grid must"),
        ({"grid": (-4.0, 2.0)}, "grid must"),
        ({"limits": {0: (2.0, 2.0)}}, "limits must"),
        ({"accountant": 3}, "accountant must"),
    ],
)
def test_refusals_charge_nothing(wrong, message, data):
    X, y = data
    budget = BudgetAccountant(10.0, 1e-6)
    with budget, pytest.raises((TypeError, ValueError), match=message):
        PrivateBounds(**wrong).fit(X, y)
    assert len(budget) == 0


def test_bad_values_are_refused_without_a_charge(data):
    X, y = data
    X = X.copy()
    X[3, 0] = np.inf
    budget = BudgetAccountant(10.0, 1e-6)
    with budget, pytest.raises(ValueError, match="finite"):
        PrivateBounds().fit(X, y)
    assert len(budget) == 0


def test_neighbours_differ_as_charged():
    """Counts of a column with and without a record, read through the whole estimator."""
    rng = np.random.default_rng(1)
    X = rng.uniform(1.1, 1.9, (400, 1))
    with_record = np.vstack([X, [[3.0]]])
    outcomes = []
    for rows in (X, with_record):
        found = [
            PrivateBounds(epsilon=1.0, delta=0.01, random_state=seed).fit(rows).bounds_X_[1][0]
            for seed in range(300)
        ]
        outcomes.append(np.mean(np.array(found) > 2.0))
    # Far from telling the two apart: (1, 0.01)-DP allows a factor e.
    assert abs(outcomes[0] - outcomes[1]) < 0.1


# --- persons -------------------------------------------------------------------------------------


def test_bounds_that_protect_persons(data):
    X, y = data
    ids = np.arange(len(y)) // 5
    budget = BudgetAccountant(3.0, 1e-3)
    finder = PrivateBounds(epsilon=1.0, max_rows_per_group=3, accountant=budget)
    found = finder.fit(X, y, groups=ids)
    facts = found.privacy_.data
    assert (facts["n_persons"], facts["max_rows_per_person"]) == (4000, 3)
    assert "per person of up to 3 rows" in budget.charges[0].label
    assert found.privacy_.delta == 1.0 / 4000**2
    below, above = found.bounds_y_
    assert below <= np.quantile(y, 0.02)
    assert above >= np.quantile(y, 0.98)


def test_a_person_changes_counts_by_the_weight_of_one_record():
    from fastmix.data.persons import hash_ids, person_weights
    from fastmix.engine.ranges import LARGEST, SMALLEST, octave_edges
    from fastmix.releases.columns import COLUMN_COUNTS, Columns
    from tests.releases.test_ranges import Recorder

    rng = np.random.default_rng(0)
    ids = rng.integers(0, 20, 300)
    columns = [rng.standard_cauchy(300) for _ in range(3)]
    edges = [octave_edges(None, (SMALLEST, LARGEST))] * 3
    key = bytes(32)
    weights = person_weights([hash_ids(ids, key)], 4, key).weights
    noise = Recorder()
    given = {"edges": edges, "threshold": None, "sigma": 1.0}
    noise.release(COLUMN_COUNTS, Columns(columns, weights=weights), **given)
    whole = noise.values
    for person in range(20):
        rest = ids != person
        own = person_weights([hash_ids(ids[rest], key)], 4, key).weights
        kept = Columns([c[rest] for c in columns], weights=own)
        noise.release(COLUMN_COUNTS, kept, **given)
        assert np.linalg.norm(whole - noise.values) <= noise.sensitivity * (1.0 + 1e-12)


def test_levels_of_a_person_with_many_rows_stay_hidden():
    from fastmix.releases.columns import level_threshold

    one = level_threshold(sigma=10.0, columns=1, categories=1, tail=1e-8)
    many = level_threshold(sigma=10.0, columns=1, categories=1, tail=1e-8, rows_per_person=100)
    assert many > one
    assert many == level_threshold(sigma=10.0, columns=1, categories=1, tail=1e-10)


def test_groups_and_their_cap_go_together(data):
    X, y = data
    for finder, groups in [
        (PrivateBounds(), np.arange(len(y))),
        (PrivateBounds(max_rows_per_group=3), None),
        (PrivateBounds(max_rows_per_group=0), np.arange(len(y))),
    ]:
        with pytest.raises(ValueError, match="max_rows_per_group"):
            finder.fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="groups must have"):
        PrivateBounds(max_rows_per_group=3).fit(X, y, groups=[1, 2])


def test_a_certificate_says_that_bounds_were_found_privately():
    rng = np.random.default_rng(0)
    X, ids = rng.uniform(-1, 1, (6_000, 2)), np.repeat(np.arange(3_000), 2)
    y = X @ [1.0, -0.5] + 0.1 * rng.standard_normal(6_000)
    found = PrivateBounds(epsilon=1.0).fit(X, y)
    given = {"bounds_X": found.bounds_X_, "bounds_y": found.bounds_y_, "random_state": 0}
    model = clone(fastmix.PrivateLinearRegression(epsilon=1.0, **given)).fit(X, y)
    said = model.privacy_.data["bounds_found"]
    assert said["epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert "found privately" in " ".join(fastmix.certificate.explain(model.privacy_))
    certificate = model.privacy_.to_json()
    assert fastmix.certificate.verify_certificate(certificate).complaints == ()
    assert pickle.loads(pickle.dumps(found.bounds_X_)).release == found.bounds_X_.release
    with pytest.raises(ValueError, match="must protect persons"):
        fastmix.PrivateLinearRegression(**given).fit(X, y, groups=ids, max_rows_per_group=2)
    with pytest.raises(ValueError, match="public_rows must be True"):
        fastmix.PrivateLinearRegression(**given, delta=1e-6, public_rows=False).fit(X, y)
    of_persons = PrivateBounds(epsilon=1.0, max_rows_per_group=2, random_state=0)
    given["bounds_X"] = of_persons.fit(X, y, groups=ids).bounds_X_
    given["bounds_y"] = of_persons.bounds_y_
    fastmix.PrivateLinearRegression(**given).fit(X, y, groups=ids, max_rows_per_group=2)
