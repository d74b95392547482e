"""The data sets have the statistics that the paper prints for them."""

import os

import numpy as np
import pytest

from reproduction.experiments import load_config
from reproduction.experiments.problems import load_problem
from reproduction.report.published import within

#: Read before the tests hide it from the loaders.
DATA = os.environ.get("FASTMIX_DATA")

pytestmark = pytest.mark.slow  # the paper's sizes


@pytest.mark.parametrize("name", ["sphere", "rossman", "black_friday"])
def test_statistics_are_the_paper_s(name):
    (chosen,) = [s for s in load_config().figure2 if s.set == name]
    try:
        problem = load_problem(chosen, 2026, data_dir=DATA)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    n, d = problem.X.shape
    eigenvalues = np.linalg.eigvalsh(problem.gram)
    found = {
        "n": n,
        "d": d,
        "lambda_min": eigenvalues[0],
        "lambda_max": eigenvalues[-1],
        "ols_mse": np.mean((problem.y - problem.X @ problem.optimum) ** 2),
        "mean_y2": np.mean(problem.y**2),
    }
    for statistic, value in found.items():
        assert within(name, statistic, value), (statistic, value)
