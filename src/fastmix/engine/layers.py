r"""Scores from sums in layers, with limits that hold whatever the tails (docs/proofs/scores.md).

Terms :math:`s_i` between 0 and a public top are summed in layers: that between edges :math:`b'`
and :math:`b` has :math:`\sum_i \min(s_i, b) - \min(s_i, b')`. All layers together are the sum
without clipping. The layers up to b are a lower bound of it, with less noise. So the upper limit is
that of all layers, the lower limit is the best of the bounds, and the value shrinks each layer by
what noise explains.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from fastmix._types import FloatArray

#: Layers, each so many times as high as those below.
LAYERS, RATIO = 7, 4.0
#: Of the probability that R^2 leaves a limit: that the mean of the target leaves its own; that the
#: limit from all squares of the target fails, and that from a lower bound of them.
MEAN_SHARE, WHOLE_SHARE, PART_SHARE = 0.05, 0.8, 0.15


class Limits(NamedTuple):
    """Limits of a number: so many standard errors below ``low``, and above ``high``."""

    low: float
    low_std: float
    high: float
    high_std: float

    def times(self, factor: float) -> "Limits":
        """Return the limits in other units."""
        return Limits(*(factor * each for each in self))

    def lowest(self, tail: float) -> float:
        """Return the lower limit, one of several that hold together; sums are not negative."""
        return max(self.low - normal(tail / LAYERS) * self.low_std, 0.0)

    def highest(self, tail: float) -> float:
        """Return the upper limit."""
        return max(self.high + normal(tail) * self.high_std, self.lowest(tail))


class Count(NamedTuple):
    """A released number of records, or sum of their weights, and the scales of its noise."""

    n: float
    laplace: float
    normal: float

    def off(self, tail: float) -> float:
        """Return a bound on the relative error of the number, exceeded with this probability.

        Half of the probability goes to each kind of noise; 1.5 covers rounding and the number 1
        that stands for smaller ones (docs/proofs/scores.md).
        """
        half = 0.5 * tail
        reach = 1.5 - self.laplace * math.log(half) + self.normal * normal(0.5 * half)
        return reach / self.n


class Layered(NamedTuple):
    """A mean of terms, its standard error, where it is cut off, if it is, and its limits."""

    value: float
    std: float
    cut: float | None
    limits: Limits


def normal(tail: float) -> float:
    """Return the normal quantile that is exceeded with this probability."""
    return -float(ndtri(tail))


def layer_edges(top: float) -> FloatArray:
    """Return the upper edges of layers of terms up to a public top."""
    return np.asarray(top * RATIO ** -np.arange(LAYERS - 1.0, -1.0, -1.0))


def layered_mean(sums: FloatArray, stds: FloatArray, edges: FloatArray, n: int) -> Layered:
    """Return the mean of n terms from noisy sums in layers, and the standard errors of these."""
    below, errors = np.cumsum(sums), np.sqrt(np.cumsum(stds**2))
    best = int(np.argmax(below - normal(0.025 / LAYERS) * errors))
    made = below[best], errors[best], below[-1], errors[-1]
    limits = Limits(*(float(each) / n for each in made))
    # A layer is no fuller than the one below it, and noise explains some of it.
    kept = sums * (1.0 - (stds / np.maximum(sums, stds)) ** 2)
    heights = np.diff(edges, prepend=0.0)
    full = np.minimum.accumulate(kept / heights)
    value = min(max(float(full @ heights) / n, limits.lowest(0.025)), limits.highest(0.025))
    last = int(np.count_nonzero(full))  # layers from the bottom
    std = float(np.linalg.norm(stds[: max(last, 1)])) / n
    return Layered(
        value, std, None if last == len(sums) else float(edges[max(last - 1, 0)]), limits
    )


def explained(
    residual: Limits, whole: Limits, mean: Limits, level: float, off: float = 0.0
) -> tuple[float, float]:
    r"""Return limits of R^2, from those of squared residuals A and squares of the target, B + m^2.

    m is between the limits of ``mean``. A ratio :math:`\rho` is too large where
    :math:`A - \rho B` is below 0 by more than its noise (Fieller); so it is with a lower bound of B
    in place of B. It is too small where :math:`A - \rho B` with a lower bound of A in place of A is
    above 0 by more than its noise. ``off`` bounds the relative error of the number of records.
    """
    if not off < 1.0:
        return -math.inf, 1.0
    tail = 0.5 * (1.0 - level)
    apart = normal(0.5 * MEAN_SHARE * tail) * mean.high_std + off
    most = (mean.high + apart) ** 2 / (1.0 - off)
    least = max(mean.low - apart, 0.0) ** 2 / (1.0 + off)
    all_of, part_of = normal(WHOLE_SHARE * tail), normal(PART_SHARE * tail / LAYERS)
    error = residual.high_std
    high = min(
        _ratio(residual.high, error, whole.high - most, whole.high_std, all_of),
        _ratio(residual.high, error, whole.low - most, whole.low_std, part_of),
    )
    z = normal((1.0 - MEAN_SHARE) * tail / LAYERS)
    low = _ratio(residual.low, residual.low_std, whole.high - least, whole.high_std, -z)
    return 1.0 - high, 1.0 - max(low, 0.0)


def _ratio(part: float, part_std: float, whole: float, whole_std: float, z: float) -> float:
    r"""Return the :math:`\rho` with :math:`\rho B - A = z` standard errors; inf if none has."""
    a, b = (z * part_std) ** 2, whole**2 - (z * whole_std) ** 2
    if b <= 0.0 or whole <= 0.0:
        return math.inf if z > 0.0 else 0.0
    # (rho B - A)^2 = z^2 (s_A^2 + rho^2 s_B^2); the root on the side of z.
    inside = (part * whole) ** 2 - b * (part**2 - a)
    root = math.copysign(math.sqrt(max(inside, 0.0)), z)
    return (part * whole + root) / b
