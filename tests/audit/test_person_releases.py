"""Every release of fits and scores of persons, with weights and hidden numbers: what it shows.

Given what was released before, a Gaussian release of two neighbours is two normal laws whose
distance is the change of its statistic, and a Laplace release likewise; so their divergence is
known exactly. Tables are made so that the first person changes a statistic by all that its
sensitivity allows. Minimisers of one coefficient have their divergence by integration of their
density.
"""

from __future__ import annotations

import itertools
import math
import warnings
from functools import partial
from unittest import mock

import numpy as np
import pytest
from scipy.optimize import brentq

from fastmix.accounting import GaussianEvent, RdpAccountant
from fastmix.audit import audit
from fastmix.audit.case import Data, Pair
from fastmix.audit.releases import bounded_rows, release_case
from fastmix.audit.transcript import IncompleteTranscriptError
from fastmix.data import ArrayRows, RowMap, curvatures, persons
from fastmix.engine import fit as engine_fit
from fastmix.estimators import _input
from fastmix.releases import MINIMISER, SIZE, Noise
from fastmix.releases.objective import _seen
from fastmix.releases.release import Gaussian, Joint, Laplace, folded
from tests.audit.mutants import weaker
from tests.audit.person_cases import (
    MODELS,
    MOST_ROWS,
    MOST_WEIGHT,
    UNITS,
    counting,
    model_of,
    one_by_one,
    panel,
    released,
    twice,
    undivided,
    unlimited,
)
from tests.audit.test_person_intervals import without
from tests.transcripts import recording, replaying

#: Delta at which epsilons are compared.
DELTA = 1e-3
#: Tables: how many rows, how far other persons spread, and whether the first is far from them.
TABLES = [
    {"n": n, "spread": spread, "far": far}
    for n, spread, far in itertools.product((60, 150), (0.01, 0.3), (True, False))
]
#: One more, with a seed at which a row alone is near the released quantile.
NEAR, NEAR_SEED = {"n": 60, "spread": 0.3, "far": False}, 6


def statistics(release, rows, rest):
    """Return the parts of a release and their statistics, as vectors."""
    parts = release.parts if isinstance(release, Joint) else (release,)
    found = release.statistic(rows, **rest)
    found = found if isinstance(release, Joint) else (found,)
    pairs = zip(parts, found, strict=True)
    return parts, [folded(v) if getattr(p, "symmetric", False) else np.ravel(v) for p, v in pairs]


def less_of(rows, person):
    """Return rows, or views of them, without a person; their number is one less."""
    if isinstance(rows, tuple):
        return tuple(less_of(each, person) for each in rows)
    less = without(rows, person)
    less.n = rows.n - 1
    return less


def watch(run):
    """Return the largest share of its sensitivity that the first person changes each release by.

    With it comes the noise of the release. The first person has the row that is farthest out.
    """
    largest, real = {}, Noise._value

    def value(self, release, rows, public, given):
        if isinstance(release, (Gaussian, Joint, Laplace)):
            first = rows[0] if isinstance(rows, tuple) else rows
            codes = None if first.persons is None else first.persons.codes
            row = int(np.abs(np.asarray(first._block.A)[:, :3]).min(axis=1).argmax())
            person = row if codes is None else int(codes[row])
            rest = {name: each for name, each in given.items() if name != "sigma"}
            parts, whole = statistics(release, rows, rest)
            _, less = statistics(release, less_of(rows, person), rest)
            sigmas = np.broadcast_to(given["sigma"], len(parts))
            for part, a, b, sigma in zip(parts, whole, less, sigmas, strict=True):
                share = float(np.linalg.norm(a - b)) / part.sensitivity(public, **rest)
                largest[part.name] = max(largest.get(part.name, (0.0, 1.0)), (share, float(sigma)))
        else:
            assert release is MINIMISER
        return real(self, release, rows, public, given)

    with mock.patch.object(Noise, "_value", value):
        run()
    return largest


def epsilon_of(event):
    """Return the exact epsilon of a Gaussian release at `DELTA`."""
    return RdpAccountant([event]).get_epsilon(DELTA)


def reached(name, unit, tables=TABLES):
    """Return the largest shares of all tables."""
    found = {}
    # The first person is at both ends.
    for seed, given in [
        *(((i + 1) // 2, each) for i, each in enumerate(tables)),
        (NEAR_SEED, NEAR),
    ]:
        table = panel(seed, MODELS[name][1], alone=not UNITS[unit][0], **given)
        for key, each in watch(partial(released, name, unit, table, seed)).items():
            found[key] = max(found.get(key, each), each)
    return found


#: Models of several minimisers, which take long: one unit of theirs runs by default.
SEVERAL = ("two quantiles", "three classes")
CASES = [
    pytest.param(name, unit, marks=[pytest.mark.slow] * (name in SEVERAL and unit != [*UNITS][-1]))
    for name, unit in itertools.product(MODELS, UNITS)
]


@pytest.mark.parametrize(("name", "unit"), CASES)
def test_every_release_shows_half_of_its_epsilon_and_no_more_than_it_says(name, unit):
    found = reached(name, unit, TABLES[: 4 if name in SEVERAL else None])
    _, weighted, hidden = UNITS[unit]
    assert {"second moments", "curvature", "squares of gradients"} <= set(found)
    assert weighted == ("total weight" in found)
    assert hidden == ("number of rows" in found)
    for key, (share, sigma) in found.items():
        assert share <= 1.0, key
        shown = epsilon_of(GaussianEvent(sigma / share))
        assert shown >= 0.5 * epsilon_of(GaussianEvent(sigma)), (key, share)


#: Flaws, where they sit, and units in which they must show.
MUTANTS = {
    "a person counts once for each row": (persons, "person_weights", undivided, "persons"),
    "a bound of weights that is off by 2": (_input, "row_weights", twice, "weights"),
    "the gradient of a person is not clipped as a whole": (
        *(curvatures, "_terms", one_by_one),
        "persons, hidden",
    ),
    "gradients that are not limited": (curvatures, "_terms", unlimited, "persons, weights"),
}


@pytest.mark.parametrize("flaw", MUTANTS)
@pytest.mark.parametrize("name", MODELS)
def test_mutants_are_caught(name, flaw):
    where, function, mutant, unit = MUTANTS[flaw]
    with mock.patch.object(where, function, mutant(getattr(where, function))):
        found = reached(name, unit, TABLES[:2])
    assert max(share for share, _ in found.values()) > 1.5


@pytest.mark.parametrize(("name", "unit"), [each for each in CASES if "hidden" in each.values[1]])
def test_hidden_fits_depend_on_their_table_by_their_releases_alone(name, unit):
    """A table of another size with the same releases gives the same model, scores included."""
    tables = panel(1, MODELS[name][1]), panel(2, MODELS[name][1], n=33)
    with recording() as transcript:
        told = released(name, unit, tables[0])
    with replaying(transcript):
        again = released(name, unit, tables[1])
    for key in ("intercept_", "coef_std_", "intercept_std_"):
        np.testing.assert_array_equal(getattr(told, key), getattr(again, key))
    assert told.privacy_.data == again.privacy_.data


@pytest.mark.parametrize("name", ["linear", "two classes"])
def test_a_hidden_number_that_is_used_without_noise_is_noticed(name):
    """The number is released, and the fit goes on with the true one."""

    def bare(rows, scale, noise):
        noise.release(SIZE, engine_fit.one_view(rows), sigma=scale)
        return rows

    with mock.patch.object(engine_fit, "with_size", bare), pytest.raises(IncompleteTranscriptError):
        test_hidden_fits_depend_on_their_table_by_their_releases_alone(name, "persons, hidden")


def rows_of(data):
    """Return records, of which those of a person are one."""
    if data.groups is None:
        return bounded_rows(data)
    own = persons.person_weights([persons.hash_ids(data.groups, b"key")], MOST_ROWS, b"key")
    return ArrayRows(data.X, RowMap(1.0), data.y, persons=own)


@pytest.mark.parametrize("grouped", [True, False])
def test_a_hidden_number_without_noise_is_caught(grouped):
    """The number of persons, or of rows, with and without one; it shows half of its epsilon."""
    ids = np.repeat(np.arange(40.0), 2) if grouped else np.arange(40.0)
    X, groups = np.ones((len(ids), 1)), ids if grouped else None
    fewer = None if groups is None else groups[ids > 0.0]
    pair = Pair("one less", Data(X, X[:, 0], groups), Data(X[ids > 0.0], X[ids > 0.0, 0], fewer))
    for kind in (Noise, weaker(SIZE, share=1e-6)):
        case = release_case(
            lambda rows, noise: noise.release(SIZE, rows, sigma=0.5),
            name="number of records",
            pair=pair,
            rows_of=rows_of,
            kind=kind,
        )
        found = audit(case, trials=600, rng=1)
        assert found.passed == (kind is Noise)
        assert found.lower > 0.5 * found.epsilon


def minimiser_of(name, unit):
    """Return rows of one coefficient with and without the first record, and what was given."""
    grouped = UNITS[unit][0]
    _, classes, _ = MODELS[name]
    ids = np.concatenate((np.zeros(4), np.arange(1.0, 40.0)))[0 if grouped else 3 :]
    y = np.where(ids > 0.0, np.where(np.arange(len(ids)) % 2, 1.0, -1.0), 1.0)
    y = (y > 0.0).astype(float) if classes else y
    taken, real = [], Noise._value

    def value(self, release, rows, public, given):
        if release is MINIMISER:
            taken.append((rows, public, given))
        return real(self, release, rows, public, given)

    weights = np.where(ids > 0.0, MOST_WEIGHT, 4.0 * MOST_WEIGHT)
    model = model_of(name, unit, epsilon=3.0, delta=0.05, fit_intercept=False, inference=False)
    model.set_params(**({"score_share": 0.0} if "score_share" in model.get_params() else {}))
    with mock.patch.object(Noise, "_value", value), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The row of the first is longer than the others: its slope is limited by its length.
        model.fit(np.where(ids > 0.0, 0.2, -1.0)[:, None], y, **counting(unit, ids, weights))
    rows, public, given = taken[0]
    return rows, less_of(rows, 0 if not grouped else int(rows.persons.codes[0])), public, given


def profile(rows, less, public, given, points=601):
    """Return log-densities of the minimiser with and without the first record, and the weights.

    The density is that of the noise b, as a function of the minimiser.
    """
    loss, ridge, scale = given["loss"], given["ridge"], given["loss"].lipschitz / given["mu"]

    def b_of(each, value):
        return float(_seen(each, given).slopes(np.array([value]), loss)[0].sum() - ridge * value)

    ends = []
    for each, sign in itertools.product((rows, less), (-1.0, 1.0)):
        far = (each.most + 12.0) * max(loss.lipschitz, 1.0, scale) / ridge
        ends.append(brentq(lambda v, each=each, s=sign: b_of(each, v) - 9.0 * s * scale, -far, far))
    grid = np.linspace(min(ends), max(ends), points)
    unit = math.log(scale * math.sqrt(2.0 * math.pi))
    logs = [
        np.array([MINIMISER.density(np.array([v]), each, public, given) for v in grid]) - unit
        for each in (rows, less)
    ]
    return np.array(logs), np.full(points, grid[1] - grid[0])


@pytest.mark.parametrize("unit", ["persons", "weights", "persons, weights"])
@pytest.mark.parametrize("name", ["linear", "Huber", "quantile", "two classes"])
def test_minimisers_show_half_of_their_epsilon_and_no_more_than_is_certified(name, unit):
    rows, less, public, given = minimiser_of(name, unit)
    logs, widths = profile(rows, less, public, given)
    np.testing.assert_allclose(np.exp(logs) @ widths, 1.0, rtol=1e-3)
    event, _ = MINIMISER.charged(given)
    account = RdpAccountant([event])

    def delta_at(epsilon):
        both = (np.maximum(np.exp(a) - np.exp(epsilon + b), 0.0) for a, b in (logs, logs[::-1]))
        return max(float(each @ widths) for each in both)

    claim = account.get_epsilon(DELTA)
    for epsilon in (0.25 * claim, 0.5 * claim, claim):
        assert delta_at(epsilon) <= account.get_delta(epsilon) + 1e-4
    assert delta_at(0.5 * claim) > DELTA
