"""Divergences of whole linear fits with persons and weights, beside their certificates.

A fit is a chain of releases, and each knows its density given those before. So the privacy loss of
a transcript is exact; only its mean over transcripts is estimated, with a stated error. Fits have
intervals, so that curvatures and squares of gradients are among the releases.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fastmix import PrivateLinearRegression
from fastmix.audit.case import Data, Pair
from fastmix.audit.estimators import estimator_case
from fastmix.data import persons

#: Fits on each data set, and standard errors of a mean beyond which a test fails: a false alarm
#: has the probability 3e-7 for each mean.
FITS, SURE = 150, 5.0
EPSILON, DELTA = 3.0, 0.05


def pair(unit):
    """Return tables of 40 records with and without the first: a person of 4 rows, or a weight."""
    groups = np.concatenate((np.zeros(4), np.arange(1.0, 40.0)))
    signs = np.where(np.arange(len(groups)) % 2, 1.0, -1.0)
    there = groups > 0.0
    X, y = np.ones((len(groups), 1)), np.where(there, signs, 1.0)
    if unit == "weights":
        groups, given = None, {"weights": np.where(there, 0.25, [1.0, *[0.0] * (len(y) - 1)])}
    else:
        given = {"groups": groups}
    less = {k: v * there if k == "weights" else v for k, v in given.items()}
    return Pair(unit, Data(X, y, **given), Data(X * there[:, None], y * there, **less))


@cache
def losses(unit):
    """Return the certified epsilon, and losses on both data sets, each in its own direction."""
    model = PrivateLinearRegression(
        epsilon=EPSILON,
        delta=DELTA,
        fit_intercept=False,
        inference=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = estimator_case(model, pair=pair(unit))
        rng = np.random.default_rng(1)
        drawn = [case.score(case.draw(data, FITS, rng)) for data in case.pair[1:]]
    return case.claim, drawn[0], -drawn[1]


def delta_at(found, epsilon):
    """Return the estimated divergence at epsilon and the error of the estimate."""
    values = np.maximum(-np.expm1(np.minimum(epsilon - found, 0.0)), 0.0)
    return values.mean(), values.std() / np.sqrt(len(values))


@pytest.mark.parametrize("unit", ["persons", "weights"])
def test_no_fit_exceeds_its_certificate(unit):
    claim, *both = losses(unit)
    for found in both:
        assert np.isfinite(found).all()
        mean, error = delta_at(found, claim.epsilon)
        assert mean <= claim.delta + SURE * error
        # Densities that do not belong to the law of the fits would not add up to one.
        other = np.exp(-found)
        assert abs(other.mean() - 1.0) <= SURE * other.std() / np.sqrt(len(other))


def test_a_fit_reaches_half_of_its_epsilon():
    """So a factor of 2 that was missing in a sensitivity would show."""
    claim, *both = losses("persons")
    deltas = [delta_at(found, claim.epsilon / 2.0)[0] for found in both]
    assert max(deltas) > claim.delta


def test_a_person_counted_by_rows_exceeds_the_certificate(monkeypatch):
    real = persons.person_weights

    def undivided(*given):
        found = real(*given)
        return replace(found, weights=np.where(found.weights > 0.0, 1.0, 0.0))

    monkeypatch.setattr(persons, "person_weights", undivided)
    claim, *both = losses.__wrapped__("persons")
    excess = [
        (mean - claim.delta) / error for mean, error in (delta_at(f, claim.epsilon) for f in both)
    ]
    assert max(excess) > SURE
