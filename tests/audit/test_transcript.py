"""Transcripts: what they hold, that they are complete, and what a replay says of them."""

import pickle
import re
import warnings
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import fastmix
from fastmix import IHM, AdaSSP, DPGradientDescent, FastIHM, LinearMixing, releases
from fastmix.audit import audit, estimator_case
from fastmix.audit import case as pairs
from fastmix.audit.transcript import IncompleteTranscriptError, judging, numbers, ratios
from fastmix.data import ArrayRows, RowMap, Rows
from fastmix.paper import AdaptiveStatistics
from fastmix.releases import GRADIENT, Noise, Release, make_noise
from fastmix.releases.bounds import Source
from tests.transcripts import names, recording, replaying

BOUNDS = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0), "epsilon": 3.0, "delta": 0.05}
PLAIN = {**BOUNDS, "fit_intercept": False}

rng = np.random.default_rng(0)
X = rng.normal(size=(16, 2)) / 4.0
Y = rng.uniform(-1.0, 1.0, 16)


def fit(model, X=X, y=Y, seed=1):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.set_params(random_state=seed).fit(X, y)


MODELS = [
    (AdaSSP(**PLAIN, inference=True), ["moments", "residual counts"]),
    (AdaSSP(**PLAIN, variant="paper"), ["statistics"]),
    (DPGradientDescent(**PLAIN, n_steps=3), ["gradient"] * 3),
    (IHM(**PLAIN, n_steps=2), [*["second moments"] * 5, "gradient counts", "slopes", "slopes"]),
    (
        IHM(**PLAIN, n_steps=2, variant="paper"),
        ["eigenvalue", "sketches", "gradient", "gradient"],
    ),
    (LinearMixing(**PLAIN), ["eigenvalue", "sketches"]),
    (
        FastIHM(**BOUNDS, bounds_X=(-1, 1), n_steps=1, sketch_size=8),
        ["mean", "gram of a sparse sketch", "target mean", "gradient counts", "slopes"],
    ),
    (
        FastIHM(**BOUNDS, bounds_X=(-1, 1), n_steps=1, sketch_size=8, sketch="kerdock"),
        [
            *("mean", "distortion", "gram of a fast sketch"),
            *("target mean", "gradient counts", "slopes"),
        ],
    ),
    (
        FastIHM(**BOUNDS, bounds_X=(-1, 1), n_steps=1, sketch_size=16, variant="paper"),
        ["sketched eigenvalue", "sketches", "gradient"],
    ),
]


@pytest.mark.parametrize(("model", "released"), MODELS, ids=lambda m: type(m).__name__)
def test_every_release_of_a_fit_is_recorded_with_its_events(model, released):
    with recording() as transcript:
        fit(model)
    assert names(transcript) == released
    for entry in transcript:
        assert bool(entry.events) == (entry.release is not None)
        # Everything on record is public or released: no rows, and no noise.
        for value in (*entry.given.values(), entry.value):
            assert not isinstance(value, (Rows, Noise, Source))


@pytest.mark.parametrize(("model", "released"), MODELS, ids=lambda m: type(m).__name__)
def test_listening_changes_no_fit_and_a_model_keeps_no_transcript(model, released):
    before = fit(model).coef_
    listening = judging(Noise)[0](np.random.default_rng(1))
    with mock.patch.object(type(model), "_make_noise", return_value=listening):
        during = fit(model, seed=listening.rng).coef_
    assert np.array_equal(before, during)
    assert list(listening.likelihoods) == list(dict.fromkeys(released))
    # Nothing that a fitted model refers to, however deep, belongs to a transcript.
    model.set_params(random_state=None)
    assert b"fastmix.estimators" in pickle.dumps(model)
    assert b"transcript" not in pickle.dumps(model)
    assert b"fastmix.releases" not in pickle.dumps(model)


@pytest.mark.parametrize(("model", "_"), MODELS, ids=lambda m: type(m).__name__)
def test_other_data_with_the_same_releases_give_the_same_model(model, _):
    """So a model holds nothing of its data but its releases."""
    with recording() as transcript:
        first = fit(model).coef_
    with replaying(transcript):
        second = fit(model, -X, Y[::-1], seed=2).coef_
    assert np.array_equal(first, second)
    assert not np.array_equal(first, fit(model, -X, Y[::-1], seed=2).coef_)


def test_a_fit_that_asks_for_other_releases_is_noticed():
    model = DPGradientDescent(**PLAIN, n_steps=2)
    with recording() as transcript:
        fit(model)
    for wrong in (transcript[:1], [*transcript, transcript[0]], transcript[::-1]):
        with pytest.raises(IncompleteTranscriptError), replaying(wrong):
            fit(model)


def test_likelihoods_are_those_of_a_replay():
    """What noise hears of its own releases is what a replay on the same data says of them."""
    rows = ArrayRows(X, RowMap(row_norm=1.0), Y)
    listening, replay = (kind(np.random.default_rng(0)) for kind in judging(Noise))
    for theta in (np.zeros(2), np.ones(2)):
        listening.release(GRADIENT, rows, theta=theta, clip=1.0, sigma=2.0)
    replay.follow(listening.transcript, strict=True)
    for theta in (np.zeros(2), np.ones(2)):
        replay.release(GRADIENT, rows, theta=theta, clip=1.0, sigma=2.0)
    replay.finished()
    assert replay.likelihoods == listening.likelihoods
    assert replay.drawn == listening.drawn
    values = [entry.value for entry in listening.transcript]
    one, other = ratios([listening.likelihoods], [{"gradient": 0.0}], -1.0)[0]
    assert one == other == -listening.likelihoods["gradient"]
    assert np.array_equal(numbers(listening.transcript), np.concatenate(values))


def test_what_leaves_outside_the_transcript_refutes_a_claim(monkeypatch):
    """One part in a billion of a sum over the records in the coefficients: no score shows it."""
    solve = AdaptiveStatistics.solve

    def leaky(self, rows, *plan):
        solution = solve(self, rows, *plan)
        solution.theta[:] += 1e-9 * rows.total()
        return solution

    case = estimator_case(AdaSSP(**PLAIN), pair=pairs.lone_row(4))
    assert audit(case, trials=80, rng=0).sealed
    monkeypatch.setattr(AdaptiveStatistics, "solve", leaky)
    found = audit(estimator_case(AdaSSP(**PLAIN), pair=pairs.lone_row(4)), trials=80, rng=0)
    assert found.lower <= found.epsilon
    assert not found.sealed
    assert not found.passed


def test_every_release_has_words_a_proof_and_a_law():
    values = [each for each in vars(releases).values() if isinstance(each, Release)]
    assert len(values) > 30
    for each in values:
        assert each.statement
        assert each.proof.split(",")[0].split(";")[0]
        assert type(each).density is not Release.density
    assert len({each.name for each in values}) == len(values)


def test_proof_pages_of_releases_exist():
    root = Path(fastmix.__file__).parents[2]
    for each in (each for each in vars(releases).values() if isinstance(each, Release)):
        for page in re.findall(r"docs/proofs/\w+\.md", each.proof):
            assert (root / page).exists(), page


def test_every_private_estimator_is_audited():
    from fastmix.audit.estimators import ESTIMATORS, LONG

    names = {name for name in fastmix.__all__ if hasattr(getattr(fastmix, name), "fit")}
    names -= {"IHS", "PublicEncoder"}  # neither adds noise
    assert names <= set(ESTIMATORS) - LONG
    assert any("standard errors" in name for name in set(ESTIMATORS) - LONG)


def test_a_method_of_ones_own_is_recorded_wherever_it_is_defined():
    """The noise keeps the transcript: no module is looked for."""
    own = replace(GRADIENT, name="my gradient")
    rows, noise = ArrayRows(X, RowMap(row_norm=1.0), Y), make_noise()
    noise.release(own, rows, theta=np.zeros(2), clip=1.0, sigma=1.0)
    assert names(noise.transcript) == ["my gradient"]
    assert noise.drawn == [own.event(1.0)]
