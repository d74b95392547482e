"""Divergences of whole fits of persons, weights and hidden numbers, beside their certificates.

A fit is a chain of releases, and each knows its density given those before. So the privacy loss of
a transcript is exact; only its mean over transcripts is estimated, with a stated error. Fits have
intervals, so that curvatures and squares of gradients are among the releases. Where the number of
records is hidden it is the first release, and one of the two tables has a record less; these fits
have the default settings, with an intercept.
"""

from __future__ import annotations

import itertools
import warnings
from functools import partial
from unittest import mock

import numpy as np
import pytest

from fastmix import (
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
)
from fastmix.audit.case import Data, Pair
from fastmix.audit.estimators import estimator_case
from fastmix.data import persons
from fastmix.estimators import _input
from tests.audit.person_cases import UNITS, twice, undivided

#: Fits on each data set, and standard errors of a mean beyond which a test fails: a false alarm
#: has the probability 3e-7 for each mean. A mean that must be large is so by two of them.
FITS, SURE, CLEAR = 200, 5.0, 2.0
#: The largest ratio of densities that counts in a check of them.
CAP = 2.0
EPSILON, DELTA = 3.0, 0.05
KINDS = {
    "linear": PrivateLinearRegression,
    "Huber": PrivateHuberRegressor,
    "quantile": partial(PrivateQuantileRegressor, quantile=0.5),
    "two classes": partial(PrivateLogisticRegression, classes=(-3.0, 3.0)),
}
FEW = ("persons", "weights", "hidden", "persons, hidden")
CASES = [
    pytest.param(name, unit, marks=[pytest.mark.slow] * (name != "linear" or unit not in FEW))
    for name, unit in itertools.product(KINDS, UNITS)
    if name == "linear" or UNITS[unit][2]
]


def pair(name, unit):
    """Return tables with and without the first record: a person of 4 rows, or the heaviest row.

    All others have short rows and small targets that cancel, so the gradient of the first is as
    long as it may be. There are many more records than the noise of a hidden number.
    """
    grouped, weighted, hidden = UNITS[unit]
    ids = np.concatenate((np.zeros(4 if grouped else 1), np.arange(1.0, 400.0)))
    others = ids > 0.0
    X = np.where(others, 0.2, 1.0)[:, None]
    size = 1.0 if name == "two classes" else 0.1
    y = np.where(others, np.resize([size, -size], len(ids)), 1.0)
    weights = np.where(others, 0.25, 1.0) if weighted else None
    there = Data(X, y, ids if grouped else None, weights)
    if hidden:
        return Pair(unit, there, Data(*(None if each is None else each[others] for each in there)))
    less = None if weights is None else weights * others
    absent = there._replace(X=X * others[:, None], y=y * others, weights=less)
    return Pair(unit, there, absent)


def losses(name, unit):
    """Return the certified epsilon, and losses on both data sets, each in its own direction."""
    hidden = UNITS[unit][2]
    given = {"fit_intercept": hidden, "inference": True, "public_rows": not hidden}
    model = KINDS[name](epsilon=EPSILON, delta=DELTA, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = estimator_case(model, pair=pair(name, unit))
        rng = np.random.default_rng(1)
        drawn = [case.score(case.draw(data, FITS, rng)) for data in case.pair[1:]]
    return case.claim, (drawn[0], -drawn[1])


def delta_at(found, epsilon):
    """Return the estimated divergence at epsilon and the error of the estimate."""
    values = np.maximum(-np.expm1(np.minimum(epsilon - found, 0.0)), 0.0)
    return values.mean(), values.std() / np.sqrt(len(values))


def difference(own, other):
    """Return how far two estimates of one number are apart, in standard errors.

    The number is the integral of min(q, c p) for the densities p, q of the fits that the losses are
    of. Densities that do not belong to the law of the fits would give two numbers. Both estimates
    are means of bounded values, so that their errors are known.
    """
    first = np.minimum(np.exp(-own), CAP)
    second = np.minimum(CAP * np.exp(-other), 1.0)
    error = np.hypot(first.std(), second.std()) / np.sqrt(FITS)
    return (first.mean() - second.mean()) / error


@pytest.mark.parametrize(("name", "unit"), CASES)
def test_a_fit_reaches_half_of_its_epsilon_and_no_more_than_is_certified(name, unit):
    """So a factor of 2 that was missing in a sensitivity would show."""
    claim, both = losses(name, unit)
    for found in both:
        assert np.isfinite(found).all()
        mean, error = delta_at(found, claim.epsilon)
        assert mean <= claim.delta + SURE * error
    for own, other in (both, both[::-1]):
        assert abs(difference(own, other)) <= SURE
    halves = [delta_at(found, claim.epsilon / 2.0) for found in both]
    assert max(mean - CLEAR * error for mean, error in halves) > claim.delta


@pytest.mark.parametrize(
    ("unit", "where", "function", "flaw"),
    [
        ("persons", persons, "person_weights", undivided),
        ("persons, hidden", persons, "person_weights", undivided),
        ("weights, hidden", _input, "row_weights", twice),
    ],
)
def test_a_record_that_counts_too_much_exceeds_the_certificate(unit, where, function, flaw):
    with mock.patch.object(where, function, flaw(getattr(where, function))):
        claim, both = losses("linear", unit)
    excess = [
        (mean - claim.delta) / error
        for mean, error in (delta_at(found, claim.epsilon) for found in both)
    ]
    assert max(excess) > SURE
