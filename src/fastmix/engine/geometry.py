r"""Coordinates for a table with categories, and what noise lets one know of its curvature.

A category is a group of columns of which a row has at most one. With :math:`p_l` the share of rows
of level l, its columns have the covariance :math:`\operatorname{diag}(p) - pp^\top`, which follows
from counts of the levels; numbers have a covariance from second moments of their own, which are
few. In the coordinates :math:`z = K^\top x` of `geometry` each of these blocks is the identity.
Only the correlations between blocks are left to know. Noise hides most of them, and
`curvature_estimate` keeps those that stand out (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from fastmix._types import FloatArray
from fastmix.schema.categories import Categories

#: Rows that are added to every level, as a share of all rows. No level is stretched by more than
#: they allow, and effects of levels with fewer rows are pulled towards the mean of their category.
#: Chosen on Black Friday, King County and Rossmann.
PSEUDO_ROWS = 0.01
#: The weight of a block of k coordinates in a release of second moments is k to this power. Then
#: the correlations of small blocks are seen, too, which large blocks would drown.
BLOCK_POWER = -0.25
#: An eigenvalue is moved up by what is expected of one that is not negative, for noise of this
#: share of its standard deviation. Chosen on Black Friday, King County and Rossmann.
POSITIVE = 0.75
#: Correlations that do not stand out are allowed for: by their estimate and this many standard
#: deviations of it, up to this share of the variance.
ALLOWED, MOST_ALLOWED = 1.0, 0.5


class Geometry(NamedTuple):
    """Coordinates ``z = K'x`` in blocks, all from released values.

    ``expected`` is the mean of ``z z'``, or of it times the curvature of a row, if the blocks were
    independent; ``shares`` are the shares
    of rows of the levels of each category, that without a column first.
    """

    transform: FloatArray
    blocks: tuple[slice, ...]
    expected: FloatArray
    shares: tuple[FloatArray, ...]

    @property
    def weights(self) -> FloatArray:
        """The weight of each coordinate in a release of second moments (`BLOCK_POWER`)."""
        sizes = np.array([block.stop - block.start for block in self.blocks])
        return np.repeat(sizes**BLOCK_POWER, sizes)


def geometry(
    categories: Categories,
    shares: tuple[FloatArray, ...],
    moments: FloatArray,
    constant: float,
    d: int,
) -> Geometry:
    """Return coordinates for the shares of levels and the moments of numbers.

    ``moments`` are the mean second moments of the numbers and, last, of the constant.
    """
    numbers = categories.numbers(d)
    K, expected, blocks = np.zeros((d, d)), np.zeros((d, d)), []
    at = len(numbers)
    if numbers:
        mean = moments[:at, at] / moments[at, at]  # in units of the constant
        covariance = moments[:at, :at] - np.outer(mean, mean) * moments[at, at]
        values, vectors = np.linalg.eigh(covariance)
        K[numbers, :at] = vectors / np.sqrt(np.maximum(values, 1e-12))
        K[-1, :at] = -(mean @ K[numbers, :at])
        expected[:at, :at] = np.eye(at)
        blocks.append(slice(0, at))
    for columns, p in zip(categories.columns, shares, strict=True):
        end = at + len(columns)
        codes = level_codes(p)
        K[np.ix_(columns, range(at, end))] = (codes[1:] - codes[0]) / categories.unit
        K[-1, at:end] = codes[0] / constant
        expected[at:end, at:end] = (codes * p[:, None]).T @ codes
        blocks.append(slice(at, end))
        at = end
    K[-1, -1] = 1.0 / constant
    expected[-1, -1] = 1.0
    blocks.append(slice(d - 1, d))
    return Geometry(K, tuple(blocks), expected, shares)


def level_codes(p: FloatArray) -> FloatArray:
    """Return the coordinates of each level: with mean 0, and a covariance of about I."""
    q = p + PSEUDO_ROWS
    values, vectors = np.linalg.eigh(np.diag(q) - np.outer(q, q) / q.sum())
    codes = vectors[:, 1:] / np.sqrt(values[1:])  # the first is the mean, which is no contrast
    return np.asarray(codes - p @ codes)


class Curvature(NamedTuple):
    """An estimate of the curvature in blocks: eigenvalues, which are positive, and vectors.

    ``share`` is the mean curvature of a row, ``allowance`` the factor by which the standard error
    of each coordinate grows for correlations that noise hides, and ``hidden`` the mean square of
    such a correlation for every two coordinates.
    """

    values: FloatArray
    vectors: FloatArray
    share: float
    allowance: FloatArray
    hidden: FloatArray

    def of(self, values: FloatArray) -> FloatArray:
        """Return the matrix with the same vectors and other eigenvalues."""
        return np.asarray((self.vectors * values) @ self.vectors.T)


def curvature_estimate(
    released: FloatArray, scale: float, n: int, coordinates: Geometry
) -> Curvature:
    r"""Estimate :math:`\sum_i f''_i z_i z_i^\top` from its noisy weighted form.

    ``released`` is it in coordinates times `Geometry.weights`, with noise of ``scale`` on the
    diagonal and of :math:`1/\sqrt2` of that off it. Inside a block it is what counts of levels and
    moments of numbers tell, moved towards what is released by the share that noise does not
    explain. Between two blocks the singular values are shrunk by the optimal rule for noise of a
    known level (Gavish and Donoho, 2017).
    """
    weights, blocks = coordinates.weights, coordinates.blocks
    expected = n * coordinates.expected * np.outer(weights, weights)
    share = max(float(np.trace(released)), scale) / float(np.trace(expected))
    matrix, hidden = np.zeros_like(released), np.zeros_like(released)
    tau, whole = scale / math.sqrt(2.0), share * n * float(coordinates.expected[-1, -1])
    for number, block in enumerate(blocks):
        matrix[block, block] = shrunk_towards(
            released[block, block], share * expected[block, block], scale
        )
        for other in blocks[number + 1 :]:
            known = share * expected[block, other]
            part = released[block, other] - known
            kept = _shrunk_values(part, tau)
            matrix[block, other], matrix[other, block] = known + kept, (known + kept).T
            unseen = float(np.sum(part**2) - np.sum(kept**2)) - tau**2 * part.size
            unseen = max(unseen, 0.0) + ALLOWED * tau**2 * math.sqrt(2.0 * part.size)
            unseen /= (whole * weights[block.start] * weights[other.start]) ** 2
            hidden[block, other] = unseen / part.size
            hidden[other, block] = unseen / part.size
    values, vectors = np.linalg.eigh(matrix / np.outer(weights, weights))
    error = POSITIVE * scale * np.sum((vectors / weights[:, None]) ** 2, axis=0)
    allowance = 1.0 / np.sqrt(1.0 - np.minimum(hidden.sum(axis=1), MOST_ALLOWED))
    return Curvature(_positive(values, error), vectors, share, allowance, hidden)


def shrunk_towards(released: FloatArray, expected: FloatArray, scale: float) -> FloatArray:
    """Move what is expected towards what is released by the share that noise does not explain."""
    rest, size = released - expected, len(released)
    noise = scale**2 * size * (size + 1) / 2.0
    return expected + max(0.0, 1.0 - noise / max(float(np.sum(rest**2)), 1e-300)) * rest


def _shrunk_values(matrix: FloatArray, tau: float) -> FloatArray:
    r"""Shrink singular values y, in units of noise times root of the longer side, optimally.

    That is to :math:`\sqrt{(y^2 - \beta - 1)^2 - 4\beta}/y` above :math:`1 + \sqrt\beta`, where
    :math:`\beta` is the shorter side over the longer one, and to 0 below.
    """
    U, values, V = np.linalg.svd(matrix, full_matrices=False)
    short, long = sorted(matrix.shape)
    beta, unit = short / long, tau * math.sqrt(long)
    y = np.maximum(values / unit, 1.0 + math.sqrt(beta))
    shrunk = np.sqrt(np.maximum((y**2 - beta - 1.0) ** 2 - 4.0 * beta, 0.0)) / y
    return np.asarray((U * (unit * shrunk)) @ V)


def _positive(values: FloatArray, error: FloatArray) -> FloatArray:
    """Return what is expected of values that are not negative, given noisy ones."""
    z = np.clip(values / error, -8.0, 40.0)
    hazard = np.exp(-0.5 * z**2 - 0.5 * math.log(2.0 * math.pi) - log_ndtr(z))
    return np.asarray(np.maximum(z, values / error) * error + error * hazard)
