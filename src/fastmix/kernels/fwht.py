"""The fast Walsh-Hadamard transform."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from fastmix._types import Floats
from fastmix._validation import type_error, value_error
from fastmix.kernels import reference
from fastmix.kernels._backend import is_regular, threads
from fastmix.kernels._trust import kernel


def fwht(
    x: npt.ArrayLike, *, norm: Literal["ortho"] | None = "ortho", out: Floats | None = None
) -> Floats:
    """Walsh-Hadamard transform of columns, in natural (Hadamard) order.

    ``x`` is an array of float64 or float32, of any layout, with a power of two as its number of
    rows. The norm "ortho" divides by the square root of that number, so that the transform is its
    own inverse. The result goes to ``out``, which is ``x`` itself or does not overlap it, or to a
    new array in the memory order of ``x``. It does not depend on the layout, the number of threads,
    the processor, or whether the compiled kernel is used: every path takes the levels in the same
    order.
    """
    a = np.asarray(x)
    if a.dtype not in (np.float64, np.float32):
        raise type_error("x", "have dtype float64 or float32", a)
    if a.ndim not in (1, 2) or a.size == 0 or len(a) & (len(a) - 1):
        raise value_error("x", "have one or two axes, and a power of two as its length", a)
    out = np.empty_like(a, subok=False) if out is None else out
    if (out.dtype, out.shape) != (a.dtype, a.shape):
        raise value_error("out", "have the dtype and the shape of x", out)
    scale = 1.0 if norm is None else 1.0 / float(np.sqrt(len(a)))
    source, target = (each[:, np.newaxis] if each.ndim == 1 else each for each in (a, out))
    if len(a) == 1:
        np.copyto(target, source)
    elif (compiled := kernel("fwht")) is None:
        reference.fwht(source, target, scale)
    else:
        # The compiled kernel counts steps in elements; odd views go through a copy.
        work = target if is_regular(target) else np.empty_like(target, subok=False)
        compiled(source if is_regular(source) else source.copy(), work, scale, threads())
        if work is not target:
            np.copyto(target, work)
    return out
