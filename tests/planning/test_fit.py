"""Plans: the choice of auto, and forecasts against fits."""

import numpy as np
import pytest

import fastmix
from fastmix import IHM, AdaSSP, FastIHM, PrivateLinearRegression
from fastmix.datasets import make_correlated, make_sphere

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}
ESTIMATORS = {"ihm": IHM, "fast_ihm": FastIHM, "adassp": AdaSSP}


def test_the_choice_is_that_of_auto():
    rng = np.random.default_rng(0)
    for d in (3, 499):
        X, y = rng.uniform(-1, 1, (600, d)), rng.uniform(-1, 1, 600)
        model = PrivateLinearRegression(
            bounds_X=(-1, 1), bounds_y=(-1, 1), n_steps=1, random_state=0
        )
        assert fastmix.plan(600, d).method == model.fit(X, y).method_
    assert fastmix.plan(10_000, 498).method == "ihm"
    assert fastmix.plan(10_000, 499).method == "fast_ihm"
    assert fastmix.plan(10_000, 499, fit_intercept=False).method == "ihm"
    assert fastmix.plan(1000, 3, method="adassp").chosen.method == "adassp"


@pytest.mark.parametrize("make", [make_sphere, make_correlated])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_forecasts_are_of_the_right_size(make, epsilon):
    """Within a factor 3 of the mean of 4 fits, on flat and on steep spectra."""
    n, d = 2**15, 8
    X, y = make(n, d, random_state=0)
    gram = X.T @ X
    best = np.linalg.solve(gram, X.T @ y)
    planned = fastmix.plan(
        n,
        d,
        epsilon,
        fit_intercept=False,
        eigenvalues=np.linalg.eigvalsh(gram),
        theta_norm=float(np.linalg.norm(best)),
    )
    for each in planned.methods:
        risks = []
        for seed in range(4):
            model = ESTIMATORS[each.method](epsilon=epsilon, random_state=seed, **PAPER).fit(X, y)
            gap = model.coef_ - best
            risks.append(gap @ gram @ gap / n)
        assert 1 / 3 < each.forecast.excess_risk / np.mean(risks) < 3, each.method


def test_a_plan_reads_well():
    planned = fastmix.plan(2**17, 90, epsilon=1.0)
    text = str(planned)
    assert "131,072 rows, 90 features, epsilon 1" in text
    assert planned.reason in text
    assert text.splitlines()[4].startswith("ihm")
    assert planned._repr_html_().count("<tr>") == 4
    assert planned.delta == 2.0**-34
    for row in planned.table():
        assert row["seconds"] > 0.0
        assert row["memory_mib"] > 0.0
        assert row["excess_risk"] > 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0, "d": 2}, "n must be"),
        ({"n": 10, "d": 2, "epsilon": 0.0}, "epsilon must be"),
        ({"n": 10, "d": 2, "epsilon": np.inf}, "epsilon must be finite"),
        ({"n": 10, "d": 2, "method": "magic"}, "method must be"),
        ({"n": 10, "d": 2, "eigenvalues": [1.0, 2.0]}, "eigenvalues must be 3"),
        ({"n": 10, "d": 1, "eigenvalues": [1.0, -2.0]}, "eigenvalues must be 2"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        fastmix.plan(**options)
