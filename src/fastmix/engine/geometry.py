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

from fastmix._types import FloatArray
from fastmix.engine.level_counts import LevelCounts, positive, recounted
from fastmix.schema.categories import Categories

#: Rows that are added to every level, as a share of all rows. No level is stretched by more than
#: they allow, and effects of levels with fewer rows are pulled towards the mean of their category.
#: Chosen on Black Friday, King County and Rossmann.
PSEUDO_ROWS = 0.01
#: The weight of a block of k coordinates in a release of second moments is k to this power. Then
#: the correlations of small blocks are seen, too, which large blocks would drown.
BLOCK_POWER = -0.25
#: What is added to the second moments of rows and pseudo-rows before rows are made round by them.
LEAST_ROUND = 0.02
#: The mean square of hidden correlations is raised by this many standard errors of its estimate.
RAISED = 2.0
#: An eigenvalue is moved up by what is expected of one that is not negative, for noise of this
#: share of its standard deviation. Chosen on Black Friday, King County and Rossmann.
POSITIVE = 0.75


class Geometry(NamedTuple):
    """Coordinates ``z = K'x`` in blocks, all from released values.

    ``expected`` is the mean of ``z z'``, or of it times the curvature of a row, if the blocks were
    independent; ``shares`` are the shares of rows of the levels of each category, that without a
    column first, and ``codes`` the coordinates of these levels in the block of their category.
    """

    transform: FloatArray
    blocks: tuple[slice, ...]
    expected: FloatArray
    shares: tuple[FloatArray, ...]
    codes: tuple[FloatArray, ...]

    @property
    def categories(self) -> tuple[slice, ...]:
        """The blocks of categories; numbers come first, the constant last."""
        return self.blocks[-1 - len(self.codes) : -1]

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
    at, coded = len(numbers), tuple(map(level_codes, shares))
    if numbers:
        mean = moments[:at, at] / moments[at, at]  # in units of the constant
        covariance = moments[:at, :at] - np.outer(mean, mean) * moments[at, at]
        values, vectors = np.linalg.eigh(covariance)
        K[numbers, :at] = vectors / np.sqrt(np.maximum(values, 1e-12))
        K[-1, :at] = -(mean @ K[numbers, :at])
        expected[:at, :at] = np.eye(at)
        blocks.append(slice(0, at))
    for columns, p, codes in zip(categories.columns, shares, coded, strict=True):
        end = at + len(columns)
        K[np.ix_(columns, range(at, end))] = (codes[1:] - codes[0]) / categories.unit
        K[-1, at:end] = codes[0] / constant
        expected[at:end, at:end] = (codes * p[:, None]).T @ codes
        blocks.append(slice(at, end))
        at = end
    K[-1, -1] = 1.0 / constant
    expected[-1, -1] = 1.0
    blocks.append(slice(d - 1, d))
    return Geometry(K, tuple(blocks), expected, shares, coded)


def level_codes(p: FloatArray) -> FloatArray:
    """Return the coordinates of each level: with mean 0, and a covariance of about I."""
    q = p + PSEUDO_ROWS
    values, vectors = np.linalg.eigh(np.diag(q) - np.outer(q, q) / q.sum())
    codes = vectors[:, 1:] / np.sqrt(values[1:])  # the first is the mean, which is no contrast
    return np.asarray(codes - p @ codes)


class Curvature(NamedTuple):
    """An estimate of the curvature in blocks: eigenvalues, which are positive, and vectors.

    ``error`` is the mean square of the error of every entry, and ``hidden`` the part of it that the
    estimate does not have: counts that are not known, and correlations that do not stand out.
    """

    values: FloatArray
    vectors: FloatArray
    error: FloatArray
    hidden: FloatArray

    def of(self, values: FloatArray) -> FloatArray:
        """Return the matrix with the same vectors and other eigenvalues."""
        return np.asarray((self.vectors * values) @ self.vectors.T)

    def metric(self, flat: Geometry, n: int) -> FloatArray:
        """Return the mean second moments of rows and pseudo-rows, which make blocks the identity.

        No eigenvalue is less than `LEAST_ROUND`.
        """
        # The constant coordinate is 1 in each row, so its entry is what a row counts.
        bend, d = float(flat.expected[-1, -1]), len(flat.expected)
        rows = self.of(self.values) / n - flat.expected
        return np.asarray(rows / bend + (1.0 + LEAST_ROUND) * np.eye(d))

    def unsure(self, blocks: tuple[slice, ...]) -> float:
        """Return the squared error of the rows of the matrix between blocks, over squared sizes."""
        sizes = np.sum(self.vectors**2 * self.values, axis=1)
        between = np.ones_like(self.error)
        for block in blocks:
            between[block, block] = 0.0
        between[-1] = between[:, -1] = 0.0  # the constant
        whole = float(sizes @ between @ sizes)
        return len(sizes) * float(np.sum(between * self.error)) / max(whole, 1e-300)

    def times(self, share: float) -> Curvature:
        """Return it times a number."""
        square = share**2
        return Curvature(
            share * self.values, self.vectors, square * self.error, square * self.hidden
        )


def curvature_estimate(
    released: FloatArray,
    scale: float,
    n: int,
    coordinates: Geometry,
    counts: LevelCounts,
    share: float | None = None,
    longest: float = math.inf,
) -> tuple[Curvature, LevelCounts]:
    r"""Estimate :math:`\sum_i f''_i z_i z_i^\top` from its noisy weighted form.

    ``released`` is it in coordinates times `Geometry.weights`, with noise of ``scale`` on the
    diagonal and of :math:`1/\sqrt2` of that off it. The block of a category follows from the rows
    of its levels, which the release tells as well as ``counts``; the result has both together.
    The block of numbers is what their moments tell, moved towards what is released by the share
    that noise does not explain. Between two blocks the singular values are shrunk by the optimal
    rule for noise of a known level (Gavish and Donoho, 2017). ``share`` is the mean curvature of a
    row in units of the expected one, if it is known better than from the release. Rows whose
    weighted coordinates have a squared length of more than ``longest`` were shortened to it.
    """
    weights, blocks = coordinates.weights, coordinates.blocks
    both, whole = np.outer(weights, weights), None if share is None else float(n)
    if share is None:
        total = n * float(np.sum(np.diag(coordinates.expected) * weights**2))
        share = max(float(np.trace(released)), scale) / total
    bend = share * float(coordinates.expected[-1, -1])
    counts = recounted(released / bend, scale / bend, coordinates, counts, whole, longest)
    known, error = _from_counts(n, share, coordinates, counts)
    matrix, error = known * both, error * both**2
    unknown = error.copy()
    tau, sizes = scale / math.sqrt(2.0), np.diag(coordinates.expected) * share * n * weights**2
    counted, hidden = {each.start for each in coordinates.categories}, []
    for number, block in enumerate(blocks):
        if block.start not in counted:
            own = matrix[block, block]
            kept = _kept(released[block, block], own, scale)
            matrix[block, block] = own + kept * (released[block, block] - own)
            noise = kept * tau**2 * len(own) * (len(own) + 1)
            error[block, block] = noise * _parts(sizes[block], sizes[block])
        for other in blocks[number + 1 :]:
            if block.start in counted and other.stop == len(sizes):
                continue  # counts tell the means of coordinates
            part = released[block, other] - matrix[block, other]
            shrunk, told = _shrunk_values(part, tau)
            matrix[block, other] += shrunk
            matrix[other, block] = matrix[block, other].T
            noise = tau**2 * told * (sum(part.shape) - 1)
            error[block, other] = noise * _parts(sizes[block], sizes[other])
            error[other, block] = error[block, other].T
            unseen = float(np.sum(part**2) - np.sum(shrunk**2)) - tau**2 * part.size
            most = float(np.sum(sizes[block]) * np.sum(sizes[other]))
            hidden.append((unseen, most, 2.0 * tau**4 * part.size))
    squared = _hidden(*np.array(hidden).T) if hidden else 0.0
    for block in blocks[:-1]:
        beside = np.ones(len(sizes), dtype=bool)
        beside[block] = beside[-1] = False
        unknown[block, beside] = squared * np.outer(sizes[block], sizes[beside])
        error[block, beside] += unknown[block, beside]
    values, vectors = np.linalg.eigh(matrix / both)
    spread = POSITIVE * scale * np.sum((vectors / weights[:, None]) ** 2, axis=0)
    errors = error / both**2, unknown / both**2
    return Curvature(positive(values, spread), vectors, *errors), counts


def _from_counts(
    n: int, share: float, coordinates: Geometry, counts: LevelCounts
) -> tuple[FloatArray, FloatArray]:
    """Return the curvature of independent blocks for these counts, and squared errors of it."""
    d, bend = len(coordinates.expected), share * float(coordinates.expected[-1, -1])
    means, error = np.zeros(d), np.zeros((d, d))
    means[-1] = n
    for block, A, rows in zip(coordinates.categories, coordinates.codes, counts.rows, strict=True):
        means[block] = A.T @ rows
    known = bend * np.outer(means, means) / n
    for block in coordinates.blocks[:-1]:
        known[block, block] = share * n * coordinates.expected[block, block]
    for block, A, *own in zip(coordinates.categories, coordinates.codes, *counts, strict=True):
        variances = (bend * own[1]) ** 2
        known[block, block] = bend * (A.T * own[0]) @ A
        error[block, block] = (A.T**2 * variances) @ A**2
        error[block, -1] = error[-1, block] = A.T**2 @ variances
    return known, error


def _hidden(unseen: FloatArray, whole: FloatArray, variance: FloatArray) -> float:
    """Return the mean square of correlations that do not stand out, from 0 to 1.

    Each pair of blocks shows the energy ``unseen``, with noise of a variance, which is a multiple
    ``whole`` of that mean square: least squares with these variances.
    """
    information = float(np.sum(whole**2 / variance))
    found = float(np.sum(whole * unseen / variance)) / max(information, 1e-300)
    return min(max(found, 0.0) + RAISED / math.sqrt(max(information, 1e-300)), 1.0)


def _parts(first: FloatArray, second: FloatArray) -> FloatArray:
    """Divide 1 among the entries of a block in proportion to the curvatures of both sides.

    An entry is at most the root of the product of its two curvatures: where a level has no rows,
    there is nothing to be wrong about.
    """
    parts = [each / max(float(each.sum()), 1e-300) for each in (first, second)]
    return np.asarray(np.outer(*parts))


def _kept(released: FloatArray, expected: FloatArray, scale: float) -> float:
    """Return the share of the difference of two matrices that noise does not explain."""
    size = len(released)
    noise = scale**2 * size * (size + 1) / 2.0
    return max(0.0, 1.0 - noise / max(float(np.sum((released - expected) ** 2)), 1e-300))


def shrunk_towards(released: FloatArray, expected: FloatArray, scale: float) -> FloatArray:
    """Move what is expected towards what is released by the share that noise does not explain."""
    return expected + _kept(released, expected, scale) * (released - expected)


def _shrunk_values(matrix: FloatArray, tau: float) -> tuple[FloatArray, float]:
    r"""Shrink singular values y, in units of noise times root of the longer side, optimally.

    That is to :math:`\eta = \sqrt{(y^2 - \beta - 1)^2 - 4\beta}/y` above :math:`1 + \sqrt\beta`,
    where :math:`\beta` is the shorter side over the longer one, and to 0 below. Return also the
    sum of :math:`\eta/x`, how well each direction is known: x is the value without noise,
    :math:`y^2 = (x^2 + 1)(x^2 + \beta)/x^2`.
    """
    U, values, V = np.linalg.svd(matrix, full_matrices=False)
    short, long = sorted(matrix.shape)
    beta, unit = short / long, tau * math.sqrt(long)
    y = np.maximum(values / unit, 1.0 + math.sqrt(beta))
    middle = y**2 - beta - 1.0
    root = np.sqrt(np.maximum(middle**2 - 4.0 * beta, 0.0))
    shrunk, x = root / y, np.sqrt(0.5 * (middle + root))
    return np.asarray((U * (unit * shrunk)) @ V), float(np.sum(shrunk / x))
