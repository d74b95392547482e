"""The fast Walsh-Hadamard transform."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from fastmix._types import Floats
from fastmix._validation import check_integer, type_error, value_error
from fastmix.kernels import reference
from fastmix.kernels._backend import is_regular, threads
from fastmix.kernels._trust import kernel


def fwht(
    x: npt.ArrayLike,
    *,
    axis: int = 0,
    norm: Literal["ortho"] | None = "ortho",
    out: Floats | None = None,
) -> Floats:
    """Walsh-Hadamard transform along one axis, in natural (Hadamard) order.

    ``x`` is an array of float64 or float32, of any layout, whose length along ``axis`` is a power
    of two. The norm "ortho" divides by the square root of the length, so that the transform is its
    own inverse. The result goes to ``out``, an array like ``x``, either ``x`` itself or apart from
    it, or to a new array in the memory order of ``x``. It does not depend on the layout, the number
    of threads, the processor, or whether the compiled kernel is used: every path takes the levels
    in the same order.
    """
    a = np.asarray(x)
    axis = _check(a, axis, norm)
    scale = 1.0 if norm is None else 1.0 / float(np.sqrt(a.shape[axis]))
    if out is None:
        out = np.empty_like(a, subok=False)
    else:
        _check_out(out, a)

    source, target = _columns(a, axis), _columns(out, axis)
    if a.shape[axis] == 1:
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


def _check(x: Floats, axis: int, norm: str | None) -> int:
    """Check ``x``, ``axis`` and ``norm``; return the axis counted from 0."""
    if x.dtype not in (np.float64, np.float32):
        raise type_error("x", "have dtype float64 or float32", x)
    if x.ndim not in (1, 2):
        raise value_error("x", "be one- or two-dimensional", x)
    if x.size == 0:
        raise value_error("x", "not be empty", x)
    axis = check_integer("axis", axis, at_least=-x.ndim, at_most=x.ndim - 1) % x.ndim
    if x.shape[axis] & (x.shape[axis] - 1):
        raise value_error("x", f"have a power of two as its length along axis {axis}", x)
    if norm is not None and norm != "ortho":
        error = value_error if isinstance(norm, str) else type_error
        raise error("norm", "be 'ortho' or None", norm)
    return axis


def _check_out(out: Floats, x: Floats) -> None:
    if not isinstance(out, np.ndarray):
        raise type_error("out", "be an array or None", type(out))
    if out.dtype != x.dtype:
        raise type_error("out", f"have the dtype of x, {x.dtype}", out)
    if out.shape != x.shape:
        raise value_error("out", f"have the shape of x, {x.shape}", out)
    if not out.flags.writeable:
        raise value_error("out", "be writeable", out)
    # Sufficient for distinct elements, and true of every slice of an ordinary array.
    end = out.itemsize
    for step, length in sorted((abs(s), k) for s, k in zip(out.strides, out.shape, strict=True)):
        if length > 1 and step < end:
            raise value_error("out", "not overlap itself", out)
        end += step * (length - 1)
    places = {(a.__array_interface__["data"][0], a.strides) for a in (x, out)}
    if len(places) > 1 and np.shares_memory(x, out):
        raise value_error("out", "be x itself or not overlap x", out)


def _columns(a: Floats, axis: int) -> Floats:
    """View ``a`` as a matrix whose columns are to be transformed."""
    if a.ndim == 1:
        return a[:, np.newaxis]
    return a.T if axis == 1 else a
