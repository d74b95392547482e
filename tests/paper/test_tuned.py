"""The tuned variants: account, stability, and far less error than the paper's."""

import numpy as np
import pytest

from fastmix import IHM, AdaSSP, FastIHM
from fastmix.datasets import make_correlated, make_sphere
from fastmix.paper.levels import step_size

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}


def excess(model, X, y):
    gram = X.T @ X
    gap = model.fit(X, y).coef_ - np.linalg.solve(gram, X.T @ y)
    return gap @ gram @ gap / len(y)


def mean_excess(make, data, **options):
    return np.mean([excess(make(random_state=s, **PAPER, **options), *data) for s in range(3)])


@pytest.fixture(scope="module")
def sphere():
    return make_sphere(n=2**15, d=8, random_state=0)


@pytest.fixture(scope="module")
def correlated():
    return make_correlated(n=2**15, d=8, random_state=0)


@pytest.mark.parametrize("cls", [IHM, FastIHM])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.filterwarnings("ignore::fastmix.errors.WeakPrivacyWarning")
def test_the_whole_budget_is_spent_and_no_more(cls, epsilon, sphere):
    model = cls(epsilon=epsilon, random_state=0, **PAPER).fit(*sphere)
    assert model.variant == "tuned"
    assert 0.999999 * epsilon <= model.privacy_.epsilon <= epsilon
    assert model.privacy_.delta == 1.0 / 2**30
    assert len(model.privacy_.parts) == 1
    assert model.n_steps_ == 16


@pytest.mark.parametrize("epsilon", [1.0, pytest.param(3.0, marks=pytest.mark.slow), 10.0])
def test_less_error_than_the_paper_s_variant(epsilon, sphere, correlated):
    for data in (sphere, correlated):
        for cls, options in ((IHM, {}), (FastIHM, {"sketch_size": 2**13})):
            paper = mean_excess(cls, data, epsilon=epsilon, variant="paper", **options)
            assert mean_excess(cls, data, epsilon=epsilon, **options) < 0.8 * paper


def test_on_a_par_with_adassp_where_that_is_best(sphere):
    for epsilon in (0.3, 1.0, 3.0, 10.0):
        best = mean_excess(AdaSSP, sphere, epsilon=epsilon)
        assert mean_excess(IHM, sphere, epsilon=epsilon) < 2.0 * best


@pytest.mark.parametrize("cls", [IHM, FastIHM])
@pytest.mark.parametrize("epsilon", [0.1, pytest.param(1.0, marks=pytest.mark.slow), 10.0])
def test_no_fit_of_many_diverges(cls, epsilon):
    """No excess risk beyond that of predicting 0, which is the least anyone should get."""
    X, y = make_correlated(n=2**13, d=8, random_state=1)
    gram = X.T @ X
    best = np.linalg.solve(gram, X.T @ y)
    useless = best @ gram @ best / len(y)
    risks = [excess(cls(epsilon=epsilon, random_state=s, **PAPER), X, y) for s in range(40)]
    assert max(risks) < 3.0 * useless
    assert np.isfinite(risks).all()


def test_steps_are_stable_for_every_size():
    """The step times the top of the spectrum stays below 2, so no direction can grow."""
    for r in np.linspace(0.001, 0.9, 50):
        top = (1.0 - np.sqrt(r)) ** -2
        assert step_size(r) > 0.0
        assert step_size(r) * top < 2.0
        assert step_size(r, r) * top**2 < 2.0
    assert step_size(1e-12) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("method", [IHM, FastIHM])
def test_shrinkage_shrinks(method):
    """The sketch's noise is the ridge then: it must not be taken out of the Hessian."""
    X, y = make_correlated(2**16, 8, random_state=0)
    free, shrunk = (
        method(
            epsilon=1.0,
            variant="joint",
            shrinkage=keep,
            data_norm=1.0,
            bounds_y=(-1, 1),
            fit_intercept=False,
            random_state=0,
        ).fit(X, y)
        for keep in (False, True)
    )
    assert shrunk.eta_ > 0.0
    assert np.linalg.norm(shrunk.coef_) < np.linalg.norm(free.coef_)
