"""One thread of BLAS for all tests of the engine."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def one_core():
    """More threads of BLAS than cores are slower than one."""
    with threadpool_limits(1):
        yield
