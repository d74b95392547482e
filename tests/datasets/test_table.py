"""Tables are sampled without replacement and scaled as the paper says."""

import numpy as np
import pytest

from fastmix.datasets import Table


@pytest.fixture
def table():
    X = np.arange(12.0).reshape(6, 2)
    return Table(
        X, np.arange(6.0) - 3.0, ("a", "b"), "y", (np.zeros(2), np.ones(2)), (-3.0, 3.0), "made up"
    )


def test_subsample_takes_rows_once_with_their_targets(table):
    part = table.subsample(4, random_state=0)
    assert part.X.shape == (4, 2)
    assert len({tuple(row) for row in part.X}) == 4
    np.testing.assert_array_equal(part.X[:, 0] / 2.0 - 3.0, part.y)
    assert part.provenance == "made up; 4 of 6 rows, chosen at random"
    np.testing.assert_array_equal(part.X, table.subsample(4, random_state=0).X)
    with pytest.raises(ValueError, match="n must be at most 6"):
        table.subsample(7)


def test_in_unit_ball(table):
    X, y = table.in_unit_ball()
    assert np.linalg.norm(X, axis=1).max() == pytest.approx(1.0)
    assert np.abs(y).max() == 1.0
    np.testing.assert_allclose(X * np.hypot(10.0, 11.0), table.X)
