"""Densities that laws of releases are made of, and what is known of the data beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from fastmix._types import FloatArray
from fastmix.audit.case import Data
from fastmix.audit.transcript import Release
from fastmix.sketches import SketchDraw

#: Log-likelihoods of the parts of a release, one per fit.
Parts = dict[str, FloatArray]

#: Keeps the likelihood of a covariance without noise, part of the rare event, a number.
_TINY = 1e-9


@dataclass
class Known:
    """What the releases before say about a data set: a mean that was taken off, what is sketched.

    ``grams`` holds the Gram matrices that Gaussian sketches are drawn from, in turn.
    ``released`` are numbers that a fit used as the number of records.
    """

    data: Data
    means: list[FloatArray] | None = None
    grams: Sequence[FloatArray] = ()
    released: FloatArray | None = None

    @property
    def n(self) -> Any:
        """The number of records: public, or what was released in its place, one per fit."""
        return self.data.n if self.released is None else self.released

    def rows(self, releases: Sequence[Release]) -> list[FloatArray]:
        """Return the rows that are sketched: with the target, or centred, or as they are."""
        if releases[0].with_target:
            return [np.column_stack((self.data.X, self.data.y))]
        if self.means is not None:
            return [self.data.centred(mean) for mean in self.means]
        return [self.data.X]


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


def stacked(releases: Sequence[Release], name: str) -> FloatArray:
    """Return an argument of each release."""
    return np.array([release.arguments[name] for release in releases])


def outs(releases: Sequence[Release]) -> FloatArray:
    """Return what each release gave."""
    return np.array([release.out for release in releases])


class Seen(NamedTuple):
    """What a drawn sketch makes of rows, from its dense matrix; ``length`` is of its columns."""

    length: float
    coherence: float
    m_hat: float
    lambda_hat: float
    gram: FloatArray


def seen_by(draw: SketchDraw, A: FloatArray) -> Seen:
    """Return what a drawn sketch makes of the rows of A."""
    S = draw.to_dense()
    lengths = np.linalg.norm(S, axis=0)
    U = S / np.where(lengths > 0.0, lengths, 1.0)
    overlaps = U.T @ U - np.eye(S.shape[1])
    distorted = overlaps @ (lengths[:, None] * A)
    gram = (S @ A).T @ (S @ A)
    return Seen(
        float(lengths.max()),
        float(np.abs(overlaps - np.diag(np.diag(overlaps))).max()),
        float(np.linalg.norm(distorted, axis=1).max()),
        float(max(0.0, np.linalg.eigvalsh(gram)[0])),
        gram,
    )
