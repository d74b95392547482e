r"""Intervals of a table's minimiser, for losses that keep it as the estimate.

In the coordinates of `geometry`, with the first fit as origin, the minimiser is
:math:`\hat\phi = (I - P)\phi^* + V(e - b)` to first order, with :math:`V = (J + \lambda W)^{-1}`
and :math:`P = \lambda VW`: J is the curvature, W the mean second moments by which rows were made
round, e the sampling of records and b the noise (docs/proofs/tables.md, Section 7).
"""

from __future__ import annotations

import math

import numpy as np

from fastmix._types import FloatArray
from fastmix.engine.first_stage import rounded
from fastmix.engine.geometry import Curvature, Geometry
from fastmix.engine.inference import Intervals
from fastmix.engine.table_inference import OUTPUT, RAISED, Released, through
from fastmix.schema.categories import Categories

#: The 97.5% quantile of the normal distribution.
REACH = 1.96
#: The mean square of errors of log-odds, rows weighted by curvature, from which on first-order
#: errors say nothing. Chosen on King County and Black Friday.
BENDING = 0.25
#: A variance of a coordinate, over those of all errors, that stands for an unknown one.
UNKNOWN = 2.0**40
#: The least entry of a matrix of shares that is no rounding error.
LEAST = 2.0**-40


def inferred(
    released: Released, coordinates: Geometry, J: Curvature, m: float, unequal: FloatArray
) -> tuple[FloatArray, Intervals]:
    r"""Return the minimiser, and how far off it may be.

    Taking an estimate of the pull off would move the curvature of the loss, too, and noise would
    grow with each step, so the pull counts as bias. Gradients are sampled with the covariance
    :math:`mJ` and what ``unequal`` variances add.
    """
    K, metric = coordinates.transform, released.metric
    phi = np.asarray(np.linalg.solve(K, released.theta - released.first), np.float64)
    curved, ridge = J.of(J.values), released.ridge * metric
    V = np.asarray(np.linalg.inv(curved + ridge), np.float64)
    noise = released.noise**2 * (V @ metric @ V)
    spread = V @ (m * curved + unequal) @ V + noise
    output = (OUTPUT * released.noise / released.n) ** 2 * np.linalg.inv(metric)
    most = UNKNOWN * float(np.trace(spread + output))
    bias = _pulled(phi, V @ ridge, spread, coordinates, most)
    wrong = through(V, J.error @ np.diag(bias)) + output
    spread, noise, bias = (K @ each @ K.T for each in (spread + wrong, noise + wrong, bias))
    return released.theta, Intervals(spread, noise, 1.0, False, bias)


def _pulled(
    phi: FloatArray, P: FloatArray, spread: FloatArray, coordinates: Geometry, most: float
) -> FloatArray:
    r"""Return the second moment of what the ridge pulls off, :math:`P\phi^*`, given the minimiser.

    We assume that the coordinates of a block are draws of one variance around the first fit.
    Coordinates of which a share l is left, with errors of variance v, have the mean square
    :math:`l^2\tau^2 + v`: least squares by the variances of their squares if they are nothing but
    errors, raised by one standard error. Where the ridge leaves nothing, it is ``most``.
    """
    left, sizes = np.eye(len(phi)) - P, np.empty(len(phi))
    left[np.abs(left) < LEAST] = 0.0
    told = np.diag(left) ** 2 / np.diag(spread)
    for block in coordinates.blocks:
        beyond = told[block] @ (phi[block] ** 2 / np.diag(spread)[block] - 1.0)
        whole = max(float(told[block] @ told[block]), 1e-300)
        known = max(float(beyond) / whole, 0.0) + RAISED * math.sqrt(2.0 / whole)
        sizes[block] = min(known, most)
    gain = np.linalg.lstsq(left @ (left * sizes).T + spread, left * sizes)[0].T
    mean, covariance = gain @ phi, np.diag(sizes) - gain @ (left * sizes)
    return np.asarray(P @ (np.outer(mean, mean) + covariance) @ P.T)


def lowered(
    J: Curvature, model: Curvature, squares: float, error: float, metric: FloatArray
) -> Curvature:
    """Return J lowered by the share that squares of gradients fall short of those of a model.

    ``squares`` is their sum, in coordinates in which ``metric`` is the identity. What ``error``,
    its standard deviation, explains of the difference does not count.
    """
    T = rounded(metric)
    whole = float(np.trace(T.T @ model.of(model.values) @ T))
    if squares >= whole:
        return J
    kept = max(0.0, 1.0 - (error / (whole - squares)) ** 2)
    return J.times(1.0 - kept * (1.0 - squares / whole))


def doubted(
    intervals: Intervals,
    released: Released,
    coordinates: Geometry,
    J: Curvature,
    categories: Categories,
) -> Intervals:
    r"""Return intervals of log-odds without those that first-order errors are wrong about.

    Where the log-odds of a level's rows move away from 0, the sum i of their curvatures falls
    exponentially, and their gradient changes by i at most. If its sampling, its noise and the pull
    of the ridge together may be more, an infinite effect is as likely. Nothing is identified if the
    errors of all log-odds are large against 1 (`BENDING`).
    """
    assert intervals.bias is not None
    whole, bias = intervals.covariance + intervals.bias, intervals.bias.copy()
    K, curved, metric = coordinates.transform, J.of(J.values), released.metric
    inverse = np.linalg.inv(K)
    if float(np.sum(curved * (inverse @ whole @ inverse.T))) > BENDING * float(curved[-1, -1]):
        return intervals._replace(bias=bias + whole)
    pull = released.ridge * (metric @ (inverse @ (released.theta - released.first)))
    for columns in categories.columns:
        # Sums over the rows of each level, in the coordinates of the table; that without a column
        # has what the others leave.
        levels = np.zeros((1 + len(columns), len(K)))
        levels[range(1, 1 + len(columns)), list(columns)] = 1.0 / categories.unit
        levels[0] -= levels.sum(axis=0)
        levels[0, -1] = K[-1, -1]
        sums = levels @ inverse.T
        told = np.sum((sums @ curved) * sums, axis=1)
        unsure = np.sqrt(np.sum((sums**2 @ J.error) * sums**2, axis=1))
        noise = np.sum((sums @ metric) * sums, axis=1) * released.noise**2
        endless = REACH * np.sqrt(told + noise) + np.abs(sums @ pull) >= told - unsure
        # A variance that leaves no contrast with such a level identified.
        added = np.where(endless, np.trace(whole), 0.0)
        bias[np.ix_(columns, columns)] += np.diag(added[1:]) + added[0]
    return intervals._replace(bias=bias)
