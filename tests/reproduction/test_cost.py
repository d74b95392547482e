"""The fitted cost model recovers what it was made from."""

import pytest

from fastmix.planning import COSTED, CostModel, Problem
from reproduction.cost import Measurement, fit_cost_model

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
