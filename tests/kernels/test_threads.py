"""How many threads the kernels take."""

from threadpoolctl import threadpool_info

from fastmix.kernels import one_blas_thread, one_thread
from fastmix.kernels._backend import threads


def test_the_environment_sets_the_default(monkeypatch):
    monkeypatch.setenv("FASTMIX_NUM_THREADS", "3")
    assert threads() == 3
    with one_thread():
        assert threads() == 1
    assert threads() == 3


def test_blas_has_its_threads_back_after_the_last_has_left():
    """Two that overlap, and leave in the order in which they came."""
    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"} == {1}
    second.__exit__(None, None, None)
    after = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert after == before
