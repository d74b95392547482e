"""How many threads the kernels take."""

from fastmix.kernels import one_thread
from fastmix.kernels._backend import threads


def test_the_environment_sets_the_default(monkeypatch):
    monkeypatch.setenv("FASTMIX_NUM_THREADS", "3")
    assert threads(None) == 3
    assert threads(2) == 2
    with one_thread():
        assert threads(None) == 1
    assert threads(None) == 3
