"""A Dask cluster for a command."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any


@contextmanager
def cluster_client(scheduler: str) -> Iterator[Any]:
    """Give a client of the Dask cluster at an address, or of a new cluster on this machine."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise ImportError('--engine dask needs: pip install "fastmix[dask]".') from None
    # With certificates of its own, so that nobody else on this machine can use the cluster.
    local = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "security": True}
    with (
        nullcontext(scheduler) if scheduler else distributed.LocalCluster(**local) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
