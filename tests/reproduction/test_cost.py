"""The fitted cost model recovers what it was made from, and says where methods cross."""

import pytest

from fastmix.planning import COSTED, CostModel, Problem
from reproduction.cost import Measurement, crossover, fit_cost_model

PROBLEMS = [
    Problem(n, d, k2) for n in (2**10, 2**14, 2**18) for d in (4, 32, 256) for k2 in (2**8, 2**12)
]


def test_coefficients_are_recovered_from_exact_times():
    true = CostModel(call=1e-2, entry=4e-10, product=3e-11, butterfly=2e-10, cubic=5e-10)
    fitted = fit_cost_model(
        Measurement(method, problem, true.predict(method, problem))
        for method in COSTED
        for problem in PROBLEMS
    )
    for method in COSTED:
        for problem in PROBLEMS:
            expected = true.predict(method, problem)
            assert fitted.predict(method, problem) == pytest.approx(expected, rel=1e-6)


def test_crossover_is_where_the_predictions_cross():
    model = CostModel()
    d = crossover(model, 2**18, k2_per_column=16.0)
    assert d is not None

    def gain(width):
        problem = Problem(2**18, width, 16 * width)
        return model.predict("ihm", problem) - model.predict("fast_ihm", problem)

    assert gain(d) > 0.0 >= gain(round(d / 2))


def test_only_dear_gram_matrices_make_a_crossover():
    """A sparse sketch saves multiply-adds of the Gram matrix, and transforms nothing."""
    assert crossover(CostModel(product=0.0), 2**14) is None
    assert crossover(CostModel(butterfly=1.0), 2**14) == crossover(CostModel(), 2**14)
