"""Sums of residuals that scores are made of, each with Gaussian noise."""

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_choice, check_real, value_error
from fastmix.accounting import GaussianEvent
from fastmix.data import Rows
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import (
    absolute_sensitivity,
    contrast_sensitivity,
    score_sensitivity,
)

#: What is summed: squares less those of a baseline, squares, or sizes of residuals.
SUMS = ("difference", "squares", "sizes")


def score_event(sigma: float) -> GaussianEvent:
    """Return the event of `noisy_score_sum`."""
    return GaussianEvent(sigma)


def noisy_score_sum(
    rows: Rows,
    theta: FloatArray,
    *,
    kind: str,
    level: float,
    sigma: float,
    noise: Noise,
    base: FloatArray | None = None,
    base_level: float = 1.0,
    weight: float = 0.0,
) -> float:
    r"""Release a sum over residuals r of ``theta``, and u of ``base``, clipped at public levels.

    "difference" is :math:`\sum \min(r^2, C^2) - w \min(u^2, D^2)`, "squares" the same without its
    second part, and "sizes" :math:`\sum \min(|r|, C)`; C is ``level``, D ``base_level``. All
    arguments but the rows are public or already released; ``sigma`` is in units of the sensitivity.

    Paper: beyond it; docs/proofs/scores.md.
    Sensitive inputs: rows.
    """
    check_choice("kind", kind, SUMS)
    level, sigma = check_real("level", level, above=0.0), check_real("sigma", sigma, above=0.0)
    base_level = check_real("base_level", base_level, above=0.0)
    weight = check_real("weight", weight if kind == "difference" else 0.0, at_least=0.0)
    base = np.zeros(rows.d) if base is None else base
    for name, each in (("theta", theta), ("base", base)):
        if each.shape != (rows.d,) or not np.abs(each).max() <= 1e100:
            raise value_error(name, f"be at most 1e100 and have shape {(rows.d,)}", each)
    sums_hat = rows.score_sums(theta, base, level=level, base_level=base_level, weight=weight)
    if kind == "sizes":
        sensitivity = absolute_sensitivity(level)
    else:
        sensitivity = score_sensitivity(level, base_level, weight)
    sum_hat = sums_hat[SUMS.index(kind)][None]
    return float(noise.gaussian(sum_hat, sensitivity=sensitivity, ratio=sigma)[0])


def noisy_contrasts(
    rows: Rows, thetas: FloatArray, *, level: float, sigma: float, noise: Noise
) -> FloatArray:
    r"""Release :math:`\sum_i \min(r_{ik}^2, C^2)` for several models k, less their mean.

    The columns of ``thetas``, and the ``level`` C, are public or already released; ``sigma`` is in
    units of the sensitivity. The event is that of `noisy_score_sum`.

    Paper: beyond it; docs/proofs/scores.md.
    Sensitive inputs: rows.
    """
    level, sigma = check_real("level", level, above=0.0), check_real("sigma", sigma, above=0.0)
    fits = thetas.ndim == 2 and thetas.shape[0] == rows.d and thetas.shape[1] > 1
    if not fits or not np.abs(thetas).max() <= 1e100:
        raise value_error("thetas", f"be at most 1e100 and have {rows.d} rows", thetas)
    sums_hat = rows.contrasts(thetas, level)
    sensitivity = contrast_sensitivity(level, thetas.shape[1])
    return noise.gaussian(sums_hat, sensitivity=sensitivity, ratio=sigma)
