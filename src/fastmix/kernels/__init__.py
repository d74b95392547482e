"""Numerical kernels: compiled when built, readable NumPy otherwise.

``NATIVE`` tells whether compiled kernels were found. Each process compares them with NumPy before
the first use and does without those that differ; ``kernels_used`` tells the outcome, and ``python
-m fastmix.kernels`` prints it. Setting the environment variable ``FASTMIX_NO_NATIVE`` before the
import chooses NumPy, ``FASTMIX_ISA`` the instruction set. Both kinds of kernels give the same
errors and the same results, bit for bit for the transform and up to rounding for the passes.
"""

from fastmix.kernels._backend import one_blas_thread, one_thread
from fastmix.kernels._trust import NATIVE, kernels_used
from fastmix.kernels.fwht import fwht

__all__ = ["NATIVE", "fwht", "kernels_used", "one_blas_thread", "one_thread"]
