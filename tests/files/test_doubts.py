"""Wrong bounds are noticed from released values alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fastmix
from fastmix.files.doubts import doubts


def table(n=20_000):
    rng = np.random.default_rng(0)
    age, city = rng.uniform(18, 90, n), rng.choice(["Ulm", "Bonn"], n)
    income = 20_000 + 300 * age + rng.normal(0, 2_000, n)
    return pd.DataFrame({"age": age, "city": city, "income": income})


def fitted(target):
    bounds = {"target": target, "features": {"age": [0, 120], "city": ["Ulm", "Bonn"]}}
    return fastmix.PrivateLinearRegression(bounds=bounds, epsilon=1.0, delta=1e-7).fit(table())


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([0, 100_000], ""),
        ([0, 60_000], ""),
        ([0, 1], "upper"),
        ([100_000, 200_000], "lower"),
        ([0, 1e8], "lower"),
    ],
)
def test_bounds_of_the_target_on_another_scale(ends, said):
    found = doubts(fitted({"income": ends}))
    assert said in found
    assert bool(found) == bool(said)
