"""The private iteration is stable for every number of steps and every accepted sketch."""

import numpy as np
import pytest

from fastmix import IHM, FastIHM
from fastmix.datasets import make_correlated, make_sphere
from fastmix.errors import LowAccuracyWarning
from fastmix.paper.newton import least_rows

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}
MAKE = {"correlated": make_correlated, "sphere": make_sphere}


def worst(make, cls, seeds=2, **options):
    """Return the largest excess risk of some fits over that of predicting 0."""
    X, y = MAKE[make](2**13, 6, random_state=1)
    gram = X.T @ X
    best = np.linalg.solve(gram, X.T @ y)
    gaps = [
        cls(random_state=seed, **options, **PAPER).fit(X, y).coef_ - best for seed in range(seeds)
    ]
    return max(gap @ gram @ gap for gap in gaps) / (best @ gram @ best)


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("cls", [IHM, FastIHM])
@pytest.mark.parametrize("n_steps", [1, 2, 16, 48, 128])
def test_no_number_of_steps_diverges(make, cls, n_steps):
    assert worst(make, cls, n_steps=n_steps) < 3.0


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("cls", [IHM, FastIHM])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("n_steps", [1, 2, 16, 64, 500])
def test_no_number_of_steps_diverges_at_any_epsilon(make, cls, epsilon, n_steps):
    assert worst(make, cls, epsilon=epsilon, n_steps=n_steps) < 3.0


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize(
    "options",
    [
        {"sketch": "srht", "sketch_size": least_rows(6)},
        {"sketch": "srht", "sketch_size": 6},
        {"sketch": "dct", "sketch_size": 2},
        {"sketch_size": 1024},
    ],
    ids=str,
)
def test_no_accepted_sketch_diverges(make, options):
    assert worst(make, FastIHM, seeds=8, **options) < 3.0


@pytest.mark.parametrize("cls", [IHM, FastIHM])
def test_small_sketches_of_the_paper_s_variant_warn(cls):
    X, y = make_sphere(64, 6, random_state=0)
    with pytest.warns(LowAccuracyWarning, match="gaussian_size=52 is below 53 for 6 columns"):
        cls(variant="paper", gaussian_size=52, random_state=0, **PAPER).fit(X, y)


def test_the_least_rows():
    assert [least_rows(d) for d in (1, 14, 100, 1000)] == [29, 81, 400, 4000]
