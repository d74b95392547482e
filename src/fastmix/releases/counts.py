"""Counts of records, of residuals and of gradients by size; sums of weights."""

import numpy as np

from fastmix._types import FloatArray
from fastmix.data import Measure, Rows
from fastmix.kernels.sigmoids import Logistic
from fastmix.releases.checks import (
    anything,
    coefficients,
    edges_above_zero,
    edges_from_zero,
    positive,
    probability,
    transform,
)
from fastmix.releases.release import Gaussian, Laplace
from fastmix.releases.rounding import counted, summed
from fastmix.releases.sensitivity import (
    count_sensitivity,
    level_sensitivity,
    size_sensitivity,
    unlisted_sensitivity,
    weight_sensitivity,
)
from fastmix.schema.categories import Categories

#: Edges of the bins in units of the clipping level: half octaves from 2^-20 to 1. Smaller
#: residuals are not counted, so that an absent record, whose residual is 0, counts nowhere.
RESIDUAL_EDGES: FloatArray = 2.0 ** (np.arange(-40, 1) / 2.0)

#: The number of records, or of persons, where it is not public; at least 1.
SIZE = Laplace(
    name="number of rows",
    statement="the number of records",
    proof="docs/proofs/rows.md",
    statistic=lambda rows: float(rows.n),
    sensitivity=lambda public: size_sensitivity(),
    finish=lambda value, public, sigma: max(1, round(value)),
)

#: The sum of the weights of all records, moved into [1, n]; n is public.
TOTAL_WEIGHT = Gaussian(
    name="total weight",
    statement="the sum of the sample weights",
    proof="docs/proofs/people.md, Section 6",
    statistic=lambda rows: np.array([rows.total_weight()]),
    sensitivity=counted(lambda public: weight_sensitivity()),
    finish=lambda value, public, sigma: float(np.clip(value[0], 1.0, public.n)),
)


def _lacking(rows: Rows, share: float) -> float:
    """Return by how much the weight of listed labels falls short of a share of the whole weight."""
    listed_hat = rows.signed_counts(np.zeros(rows.d), np.array([0.0, 1.0])).sum()
    return float(share * rows.total_weight() - listed_hat)


#: How many listed labels are missing from a ``share`` of all records; at least 0.
UNLISTED = Laplace(
    name="unlisted labels",
    statement="by how much records with a listed label fall short of a share of all records",
    proof="docs/proofs/rows.md, Section 5",
    statistic=_lacking,
    # Of two sums, and their difference.
    sensitivity=summed(lambda public, **given: unlisted_sensitivity(), sums=2.0),
    given={"share": probability},
)


def _levels(rows: Rows, categories: Categories) -> FloatArray:
    """Return how many rows each level of each category has, that without a column first."""
    totals_hat = rows.total()
    whole = totals_hat[-1] / rows.constant
    counts_hat = []
    for columns in categories.columns:
        own = totals_hat[list(columns)] / categories.unit
        counts_hat += [whole - own.sum(), *own]
    return np.array(counts_hat)


#: How many rows each level of each category has, as ``categories`` list them.
LEVEL_COUNTS = Gaussian(
    name="level counts",
    statement="how many rows each level of each category has",
    proof="docs/proofs/tables.md, Section 2",
    statistic=_levels,
    sensitivity=summed(
        lambda public, categories: level_sensitivity(len(categories.columns)), sums=3.0
    ),
    given={"categories": anything},
)

#: How many residuals :math:`|\mathrm{clip}_C(y - X\theta)|` fall into each bin of `RESIDUAL_EDGES`
#: times C, the ``clip``.
RESIDUAL_COUNTS = Gaussian(
    name="residual counts",
    statement="the sizes of residuals, counted in bins",
    proof="docs/proofs/confidence.md",
    statistic=lambda rows, theta, clip: rows.residual_counts(theta, clip, RESIDUAL_EDGES),
    sensitivity=counted(lambda public, **given: count_sensitivity()),
    given={"theta": coefficients, "clip": positive},
)

#: How many residuals :math:`y - x^\top\theta` below 0, and above it, are in each bin.
#:
#: Bins are those of sizes between rising ``edges`` from 0 on; sizes beyond the last one count in
#: the last bin, and a residual of 0, as an absent record has, in none.
SIGNED_COUNTS = Gaussian(
    name="signed counts",
    statement="the sizes of residuals on each side of 0, counted in bins",
    proof="docs/proofs/adaptive.md, Section 4",
    statistic=lambda rows, theta, edges: rows.signed_counts(theta, edges),
    sensitivity=counted(lambda public, **given: count_sensitivity()),
    given={"theta": coefficients, "edges": edges_from_zero},
)


def _gradient_counts(
    rows: Rows,
    theta: FloatArray,
    transform: FloatArray,
    least: float,
    longest: float,
    edges: FloatArray,
    loss: Logistic | None,
) -> FloatArray:
    r"""Return how many gradients :math:`|y - x^\top\theta|\,\rho` fall into each bin.

    With the logistic loss they are those of it, without its limit: 0 for a target of 0.
    :math:`\rho` is the length of :math:`T^\top x`, at least ``least``; a row that is longer than
    ``longest`` counts as if it, and its target, were shortened. Gradients beyond the last edge
    count in the last bin.
    """
    measured = rows.measured(Measure.of(transform, least, rows.bound))
    return measured.slope_counts(theta, longest, edges, None if loss is None else loss.free)


#: How many gradients at released coefficients fall into each bin.
GRADIENT_COUNTS = Gaussian(
    name="gradient counts",
    statement="the lengths of gradients, counted in bins",
    proof="docs/proofs/adaptive.md, Section 3",
    statistic=_gradient_counts,
    sensitivity=counted(lambda public, **given: count_sensitivity()),
    given={
        "theta": coefficients,
        "transform": transform,
        "least": positive,
        "longest": positive,
        "edges": edges_above_zero,
        "loss": anything,
    },
)
