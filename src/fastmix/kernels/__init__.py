"""Numerical kernels: compiled when built, readable NumPy otherwise.

``NATIVE`` tells which. Setting the environment variable ``FASTMIX_NO_NATIVE`` before the import
chooses NumPy; both give the same errors and, bit for bit, the same results.
"""

from fastmix.kernels._backend import NATIVE
from fastmix.kernels.fwht import fwht

__all__ = ["NATIVE", "fwht"]
