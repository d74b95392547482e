"""Numerical kernels: compiled when built, readable NumPy otherwise.

``NATIVE`` tells which. Setting the environment variable ``FASTMIX_NO_NATIVE`` before the import
chooses NumPy; both give the same errors and the same results, bit for bit for the transform and
up to rounding for the passes.
"""

from fastmix.kernels._backend import NATIVE, one_blas_thread, one_thread
from fastmix.kernels.fwht import fwht

__all__ = ["NATIVE", "fwht", "one_blas_thread", "one_thread"]
