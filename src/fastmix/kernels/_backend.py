"""How many threads kernels use, and which arrays the compiled ones take."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any

import numpy.typing as npt
from threadpoolctl import ThreadpoolController

_alone: ContextVar[bool] = ContextVar("fastmix_one_thread", default=False)

_lock, _users = Lock(), 0
_limit: Any = None


def threads() -> int:
    """Return how many threads a kernel uses: ``FASTMIX_NUM_THREADS``, or all processors."""
    if _alone.get():
        return 1
    if os.environ.get("FASTMIX_NUM_THREADS"):
        return max(1, int(os.environ["FASTMIX_NUM_THREADS"]))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Let kernels use one thread here, where others run their own kernels beside."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread, where matrices are small: others would only wait for each other.

    That holds for the whole process. Whoever comes first sets it, and who leaves last undoes it.
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def is_regular(a: npt.NDArray[Any]) -> bool:
    """Tell whether the steps of an array are whole elements, as the compiled kernels count."""
    return a.flags.aligned and all(s % a.itemsize == 0 for s in a.strides)
