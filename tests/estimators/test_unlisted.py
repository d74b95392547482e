"""Values outside a public list predict within the range of the levels that it names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fastmix import PrivateLinearRegression, PrivateLogisticRegression

pytestmark = pytest.mark.filterwarnings("ignore")


def table(seed, unlisted=0.0):
    """Return a generated table, its bounds and an epsilon; some wards are not in the list."""
    rng = np.random.default_rng(seed)
    n, levels = int(rng.choice([500, 2_000, 8_000])), int(rng.choice([3, 8, 30]))
    names = [f"L{level}" for level in range(levels)]
    shares = 1.0 / np.arange(1, levels + 1) ** rng.uniform(0.0, 1.5)
    ward = rng.choice(levels, n, p=shares / shares.sum())
    hours, sex = rng.uniform(0.0, 1.0, n), rng.choice(2, n)
    y = rng.normal(0.0, 2.0, levels)[ward] + 2.0 * hours + sex + rng.normal(0.0, 1.0, n)
    told = np.array(names, dtype=object)[ward]
    rare = rng.uniform(size=n) < unlisted
    told[rare], y[rare] = "nowhere", y[rare] + 9.0
    frame = pd.DataFrame({"ward": told, "hours": hours, "sex": np.array(["f", "m"])[sex]})
    bounds = {"ward": names, "hours": (0, 1), "sex": ["f", "m"]}
    return frame, y, bounds, float(rng.choice([0.3, 1.0, 3.0, 10.0]))


def predictions(model, bounds, column, value):
    """Return predictions for a value, and for all levels of its list, at several hours."""
    found = []
    for each in (value, *bounds[column]):
        rows = pd.DataFrame({"ward": bounds["ward"][0], "hours": np.linspace(0, 1, 5), "sex": "m"})
        rows[column] = pd.Series([each] * 5, dtype=object)
        found.append(model.decision_function(rows) if hasattr(model, "classes_") else None)
        if found[-1] is None:
            found[-1] = model.predict(rows, clip=False)
    return np.array(found)


@pytest.mark.parametrize("value", ["nowhere", "l0", None])
@pytest.mark.parametrize("seed", range(8))
def test_unknown_misspelt_and_missing_levels(seed, value):
    frame, y, bounds, epsilon = table(seed)
    terms = {"hours*ward": True} if seed % 2 else {}
    given = {"bounds": {**bounds, **terms}, "epsilon": epsilon, "random_state": seed}
    given["inference"] = seed % 4 > 1
    if seed % 3:
        model = PrivateLinearRegression(bounds_y=(-10, 15), **given).fit(frame, y)
    else:
        model = PrivateLogisticRegression(classes=[0, 1], **given).fit(frame, (y > 1).astype(int))
    for column in ("ward", "sex"):
        asked, *known = predictions(model, bounds, column, value)
        assert (asked >= np.min(known, axis=0) - 1e-9).all()
        assert (asked <= np.max(known, axis=0) + 1e-9).all()


def test_of_several_classes_each_has_the_range():
    frame, y, bounds, _ = table(0)
    labels = np.digitize(y, [0.0, 2.0])
    model = PrivateLogisticRegression(bounds=bounds, classes=[0, 1, 2], random_state=0)
    model.fit(frame, labels)
    asked, *known = predictions(model, bounds, "ward", "nowhere")
    assert (asked >= np.min(known, axis=0) - 1e-9).all()
    assert (asked <= np.max(known, axis=0) + 1e-9).all()


def test_values_outside_the_list_that_many_rows_have_keep_their_effect():
    frame, y, bounds, _ = table(3, unlisted=0.2)
    model = PrivateLinearRegression(bounds=bounds, bounds_y=(-10, 25), epsilon=10.0, random_state=0)
    model.fit(frame, y)
    asked, *known = predictions(model, bounds, "ward", "nowhere")
    assert (asked > np.max(known, axis=0) + 1.0).all()
