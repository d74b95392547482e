"""Matrices of these tests are small: more threads only wait for each other."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def one_core():
    """Use one core."""
    with threadpool_limits(1):
        yield
