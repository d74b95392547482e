"""Log-likelihoods of releases under the laws that the paper gives them.

They are written from the page and not from the code that is audited, up to terms that both data
sets share. A score is a difference of two of them; by the lemma of Neyman and Pearson no other
score separates two data sets better.
"""

from typing import Any

import numpy as np
from scipy.stats import norm

from fastmix._types import FloatArray

#: Keeps the likelihood of a covariance without noise, part of the rare event, a number.
_TINY = 1e-9


def gaussian_vector(values: FloatArray, mean: Any, sigma: Any) -> FloatArray:
    """Return the log-likelihood of vectors ``mean + sigma N(0, I)``, one per row."""
    return np.asarray(-0.5 * (((values - mean) / sigma) ** 2).sum(axis=1))


def one_sided(values: FloatArray, location: Any, scale: Any, noise: str) -> FloatArray:
    """Return the log-likelihood of ``max(0, location + scale z)`` (Algorithm 1, lines 2 and 3)."""
    z, at_zero = (values - location) / scale, -location / scale
    if noise == "laplace":
        # In logarithms throughout: a release of a broken mechanism can be far out.
        density = -np.abs(z) - np.log(2.0)
        rest = np.log1p(-0.5 * np.exp(-np.abs(at_zero)))
        atom = np.where(at_zero < 0.0, at_zero - np.log(2.0), rest)
    else:
        density, atom = norm.logpdf(z), norm.logcdf(at_zero)
    return np.asarray(np.where(values > 0.0, density - np.log(scale), atom))


def sketch_gram(grams: FloatArray, rows: int, gram: FloatArray, eta: Any) -> FloatArray:
    """Return the log-likelihood of Gram matrices of rows N(0, gram + eta^2 I), one per release."""
    values, vectors = np.linalg.eigh(gram)
    variances = np.maximum(values, 0.0) + np.asarray(eta)[..., None] ** 2 + _TINY
    energies = np.einsum("...ji,...jk,...ki->...i", vectors, grams, vectors)
    return np.asarray(-0.5 * (rows * np.log(variances) + energies / variances).sum(axis=-1))
