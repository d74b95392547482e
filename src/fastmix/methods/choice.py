"""Which method a fit uses: asked for by name, or chosen from public sizes."""

from __future__ import annotations

from fastmix.methods.adassp import AdaptiveStatistics
from fastmix.methods.fast_ihm import FastIterativeHessianMixing
from fastmix.methods.gradient_descent import GradientDescent
from fastmix.methods.ihm import IterativeHessianMixing
from fastmix.methods.ihs import IterativeHessianSketch
from fastmix.methods.linear_mixing import SketchAndSolve
from fastmix.methods.plan import Method

__all__ = ["METHODS", "choose_method"]

_KNOWN: tuple[type[Method], ...] = (
    AdaptiveStatistics,
    FastIterativeHessianMixing,
    GradientDescent,
    IterativeHessianMixing,
    IterativeHessianSketch,
    SketchAndSolve,
)

#: The methods by their names.
METHODS: dict[str, type[Method]] = {method.name: method for method in _KNOWN}

#: From this many columns on a fast sketch is clearly cheaper than one Gram matrix.
_WIDE = 500


def choose_method(d: int) -> tuple[str, str]:
    """Return the method for d columns, the intercept included, and why."""
    if d < _WIDE:
        return "ihm", (
            f"ihm: with {d} columns (counting the intercept) one Gram matrix is cheap, and on "
            "most data ihm adds the least error."
        )
    return "fast_ihm", (
        f"fast_ihm: with {d} columns, {_WIDE} or more, a Gram matrix of all rows is the "
        "larger part of a fit, and a fast sketch replaces it."
    )
