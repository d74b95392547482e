"""Laws of what a fit uses as the number of records, and the loss for persons.

As in `fastmix.audit.laws` the formulas are written from the proof pages.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import norm

from fastmix._types import FloatArray
from fastmix.audit.densities import Known, Parts, outs, stacked
from fastmix.audit.transcript import Release


def total_weight(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of the sum of weights, which lies between 1 and the number of records."""
    values, sigma = outs(releases), stacked(releases, "sigma")
    total, most = known.data.counts.sum(), known.n
    inside = norm.logpdf(values, total, sigma)
    ends = np.where(values <= 1.0, norm.logcdf(1.0, total, sigma), norm.logsf(most, total, sigma))
    known.released = np.maximum(1.0, np.round(values))
    return {"weights": np.where((values > 1.0) & (values < most), inside, ends)}


def size(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of a number of records with Laplace noise, at least 1."""
    values, scale = outs(releases), stacked(releases, "scale")
    n = known.data.n
    known.released = values.astype(float)
    # Rounded: what lies below 1.5 is 1.
    below = np.where(n > 1.5, (1.5 - n) / scale - np.log(2.0), 0.0)
    return {"number of rows": np.where(values > 1, -np.abs(values - n) / scale, below)}


def person_law(
    loss: Any, ridge: float, eps_c: float, fitted: FloatArray, y: FloatArray, lengths: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return slopes and curvatures of the loss for persons (docs/proofs/people.md, Section 4)."""
    longest = loss.longest if (lengths != 1.0).any() else 1.0
    weights = np.minimum(1.0, longest / lengths)
    lengths = np.minimum(lengths, longest)
    residuals = weights * (y - fitted)
    most, rate = loss.lipschitz / lengths, ridge / lengths**2 * eps_c
    beyond = np.maximum(np.abs(residuals) - most * (1.0 - 1.0 / rate), 0.0)
    curvatures = np.exp(-rate * beyond / most)
    slopes = np.where(beyond > 0.0, most * (1.0 - curvatures / rate), np.abs(residuals))
    return weights * np.copysign(slopes, residuals), weights**2 * curvatures
