"""Cases of the mechanisms by themselves, scored by the laws of their releases."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from fastmix import mechanisms
from fastmix._types import FloatArray
from fastmix.accounting import PrivacyEvent, RdpAccountant
from fastmix.audit import pairs
from fastmix.audit.case import Case, Claim, Data, Pair, one_by_one
from fastmix.audit.laws import Records, scored, seen_by
from fastmix.audit.likelihood import one_sided
from fastmix.audit.transcript import Release, released
from fastmix.data import ArrayRows, AugmentedRows, RowMap, Rows
from fastmix.mechanisms import Noise, Spectrum, bounds, make_noise
from fastmix.random import public_generator
from fastmix.sketches import SRHT, KerdockSketch, Sketch, SketchDraw

#: Delta of the claims, unless a caller asks for another one.
DELTA = 1e-2

#: Share of delta that the shifts of all spectral releases of a case may cost.
_TAIL = 0.05

#: Releases that are held in memory at a time.
_BATCH = 5_000

#: A sketch of half the rows.
_HALF = SRHT(64, 128)

#: Makes some transcripts of a mechanism on given rows.
Transcripts = Callable[[Rows, int, np.random.Generator], Sequence[Sequence[Release]]]


def bounded_rows(data: Data) -> ArrayRows:
    """Return careless records as mechanisms see them: brought to norm 1 and to [-1, 1]."""
    X, y = data.stretched()
    return ArrayRows(X, RowMap(1.0), y)


def _accounted(delta: float, *events: PrivacyEvent) -> Claim:
    """Return what the library's account says about these events."""
    return Claim(RdpAccountant(events).get_epsilon(delta), delta)


def _case(
    name: str, claim: Claim, pair: Pair, transcripts: Transcripts, trials: int, quick: int
) -> Case:
    """Return a case whose releases are scored, first column, and shown in numbers."""
    records = Records(*pair.present), Records(*pair.absent)

    def draw(data: Data, trials: int, rng: np.random.Generator) -> FloatArray:
        rows, found = bounded_rows(data), []
        for done in range(0, trials, _BATCH):
            drawn = transcripts(rows, min(_BATCH, trials - done), rng)
            found.append(scored(drawn, *records, [_numbers(each) for each in drawn]))
        return np.concatenate(found)

    return Case(name, claim, pair, draw, lambda values: values[:, 0], trials, quick)


def _singly(release: Callable[[Rows, Noise], Sequence[Release]]) -> Transcripts:
    """Return transcripts that are made one by one, each with noise of its own."""
    return lambda rows, count, rng: [release(rows, make_noise("float", rng)) for _ in range(count)]


def _cut(release: Release, sketches: int) -> list[Release]:
    """Return a release of many sketches as releases of a few each."""
    many = release.out.sketches
    parts = (many[at : at + sketches] for at in range(0, len(many), sketches))
    return [replace(release, out=replace(release.out, sketches=part)) for part in parts]


def _numbers(transcript: Sequence[Release]) -> FloatArray:
    """Return what was released as one vector; sketches come with the bounds before them."""
    shown = ("eta", "m_tilde", "lambda_tilde", "sketches", "gram", "moment", "eigenvalue")
    parts: list[Any] = []
    for out in (each.out for each in transcript if not isinstance(each.out, Spectrum)):
        fields = [getattr(out, name) for name in shown if hasattr(out, name)]
        parts += fields or [out]
    return np.concatenate([np.ravel(part) for part in parts])


def _fixed_noise() -> Noise:
    """Return noise for a release of which only the event is read."""
    return make_noise("float", public_generator(0))


def _laplace(
    name: str,
    sketch: Sketch,
    worst: Callable[[SketchDraw], Pair],
    *,
    of: str,
    tau: float,
    delta: float = 0.0,
) -> Case:
    """Return one bound: a row moves m-hat by the coherence, and lambda-hat by 1 + 2 m."""
    draw = sketch.sample(0)
    pair, coherence = worst(draw), draw.coherence
    m = seen_by(draw, pair.present.X).m_hat
    scale = coherence if of == "m" else 1.0 + 2.0 * m
    level: dict[str, Any] = {"tau": tau, "omega": 1.0, "c_x": 1.0, "law": "laplace"}

    def prepare(data: Data) -> Callable[[np.random.Generator], list[float]]:
        Z, m_hat = bounded_rows(data).sketch(draw)
        release = (
            partial(bounds.release_distortion, m_hat, coherence)
            if of == "m"
            else partial(bounds.release_sketched_eigenvalue, float(Z[:, 0] @ Z[:, 0]), m)
        )
        return lambda rng: [release(**level, noise=make_noise("float", rng))]

    def score(values: FloatArray) -> FloatArray:
        seen = (seen_by(draw, data.X) for data in (pair.present, pair.absent))
        shift = scale * tau
        centres = [s.m_hat + shift if of == "m" else s.lambda_hat - shift for s in seen]
        present, absent = (one_sided(values[:, 0], c, scale, "laplace") for c in centres)
        return present - absent

    noise, _ = bounds.spectral_events("laplace", tau=tau, omega=1.0, count=1)
    claim = Claim(noise.pure_epsilon, delta)
    return Case(name, claim, pair, one_by_one(prepare), score, 100_000, 4_000)


def _gaussian(
    name: str,
    calls: Sequence[tuple[str, dict[str, Any]]],
    events: Callable[[], Sequence[PrivacyEvent]],
    pair: Pair | None = None,
    trials: int = 100_000,
    quick: int = 4_000,
    delta: float = DELTA,
) -> Case:
    """Return mechanisms that are called one after the other, and what they charge together."""

    def release(rows: Rows, noise: Noise) -> list[Release]:
        return [released(mechanism, rows, **given, noise=noise) for mechanism, given in calls]

    claim = _accounted(delta, *events())
    return _case(name, claim, pair or pairs.lone_row(), _singly(release), trials, quick)


def _gauss_mix(
    name: str, pair: Pair, *, k: int, gamma: float, omega: float, trials: int, delta: float = DELTA
) -> Case:
    """Return GaussMix: the released eigenvalue and the sketch, with their joint likelihood."""
    tau = -float(ndtri(_TAIL * delta))
    levels: dict[str, Any] = {"k": k, "gamma": gamma, "tau": tau, "omega": omega}

    def release(rows: Rows, noise: Noise) -> list[Release]:
        return [released("gauss_mix", rows, **levels, form="gram", rng=noise)]

    claim = _accounted(delta, mechanisms.gauss_mix_event(**levels))
    return _case(name, claim, pair, _singly(release), trials, 2_000)


def _gauss_mix_sketches(name: str, *, with_target: bool = False, delta: float = DELTA) -> Case:
    """Return GaussMix with an eigenvalue that says nothing, so that one call draws many sketches.

    The eigenvalue has so much noise that it costs little, and so much shift that its bound is 0.
    """
    levels: dict[str, Any] = {"k": 100_000, "gamma": 447.0, "tau": 40.0, "omega": 10.0}

    def transcripts(rows: Rows, count: int, rng: np.random.Generator) -> list[list[Release]]:
        rows = AugmentedRows(rows) if with_target else rows
        whole = released("gauss_mix", rows, **levels, n_steps=count, form="gram", rng=rng)
        return [[each] for each in _cut(whole, 1)]

    claim = _accounted(delta, mechanisms.gauss_mix_event(**levels))
    return _case(name, claim, pairs.lone_row(), transcripts, 200_000, 5_000)


def _fast_mix(
    name: str,
    sketch: Sketch = _HALF,
    worst: Callable[[SketchDraw], Pair] = pairs.aligned_rows,
    *,
    k1: int,
    gamma: float,
    omega: float,
    n_steps: int = 1,
    sharp: bool = False,
    trials: int = 40_000,
    delta: float = DELTA,
) -> Case:
    """Return FastMix: all spectral bounds and all sketches, of a fixed draw and its worst pair."""
    draw = sketch.sample(0)
    pair = worst(draw)
    levels: dict[str, Any] = {
        "tau": math.log(n_steps / (_TAIL * delta)),
        "omega": omega,
        "count": n_steps,
        "sketch": draw,
        "law": "laplace",
        "sharp": sharp,
    }

    def release(rows: Rows, noise: Noise) -> list[Release]:
        first = released("fast_bounds", rows, **levels, rng=noise)
        return [first, released("mix", first.out, k=k1, gamma=gamma, form="gram", rng=noise)]

    claim = _accounted(delta, release(bounded_rows(pair.present), _fixed_noise())[1].out.event)
    return _case(name, claim, pair, _singly(release), trials, 1_000)


def _fast_mix_sketches(name: str, *, steps: int, delta: float = DELTA) -> Case:
    """Return FastMix with bounds that say nothing, so that one call draws many sketches.

    The sketch is as large as the data and distorts nothing; a release has ``steps`` sketches.
    """
    pair = pairs.lone_row()
    mixed: dict[str, Any] = {"k": 100_000 // steps, "gamma": 447.0 if steps == 1 else 224.0}
    levels: dict[str, Any] = {"tau": 40.0, "omega": 1e6, "law": "laplace", "sharp": True}
    levels["sketch"] = SRHT(4, 4).sample(0)

    def both(rows: Rows, count: int, noise: Noise) -> tuple[Release, Release]:
        first = released("fast_bounds", rows, **levels, rng=noise)
        many = steps * count
        return first, released("mix", first.out, **mixed, count=many, form="gram", rng=noise)

    def transcripts(rows: Rows, count: int, rng: np.random.Generator) -> list[list[Release]]:
        first, whole = both(rows, count, make_noise("float", rng))
        return [[first, each] for each in _cut(whole, steps)]

    claim = _accounted(delta, both(bounded_rows(pair.present), 1, _fixed_noise())[1].out.event)
    return _case(name, claim, pair, transcripts, 200_000 // steps, 4_000 // steps)


#: Noise of several releases that together cost what one does at noise 2.
_TWO, _THREE = 2.0 * math.sqrt(2.0), 2.0 * math.sqrt(3.0)

#: A point at which the residual of the record is far beyond the clip.
_FAR: dict[str, Any] = {"theta": np.array([-4.0]), "clip": 1.0}

_CASES: dict[str, Callable[..., Case]] = {
    "Laplace release of m": partial(
        _laplace, sketch=SRHT(8, 16), worst=pairs.coherent_row, of="m", tau=12.0
    ),
    "Laplace release of lambda": partial(
        _laplace, sketch=SRHT(32, 64), worst=pairs.aligned_rows, of="lambda", tau=2.0
    ),
    "Gaussian step": partial(
        _gaussian,
        calls=[("noisy_gradient", {**_FAR, "sigma": 2.0})],
        events=lambda: mechanisms.gradient_events([2.0]),
        trials=200_000,
    ),
    "Gaussian steps, two": partial(
        _gaussian,
        calls=[
            ("noisy_gradient", {**_FAR, "sigma": _TWO, "theta": theta})
            for theta in (np.array([-4.0]), np.array([4.0]))
        ],
        events=lambda: mechanisms.gradient_events([_TWO] * 2),
    ),
    # One record moves all three statistics by 1.
    "Gaussian statistics": partial(
        _gaussian,
        calls=[("noisy_statistics", {"sigma": _THREE})],
        events=lambda: [mechanisms.statistics_event(sigma=_THREE)],
    ),
    # One record moves the sum by 1; a mean so small is never shortened.
    "Gaussian mean": partial(
        _gaussian,
        calls=[("noisy_mean", {"sigma": 2.0})],
        events=lambda: [mechanisms.mean_event(sigma=2.0)],
        pair=pairs.lone_row(64),
    ),
    "Gaussian counts of residuals": partial(
        _gaussian,
        calls=[("noisy_residual_counts", {**_FAR, "sigma": 2.0})],
        events=lambda: [mechanisms.residual_event(2.0)],
        quick=2_000,
    ),
    "GaussMix": partial(
        _gauss_mix,
        pair=pairs.weakest_direction(26, 24),
        k=1_280_000,
        gamma=1600.0,
        omega=2.0,
        trials=100_000,
    ),
    "GaussMix, lone row": partial(
        _gauss_mix, pair=pairs.lone_row(), k=4, gamma=20.0, omega=10.0, trials=40_000
    ),
    "GaussMix, sketch alone": _gauss_mix_sketches,
    "GaussMix of (X, y)": partial(_gauss_mix_sketches, with_target=True),
    "FastMix": partial(_fast_mix, k1=800, gamma=40.0, omega=4.0),
    "FastMix, lone row": partial(_fast_mix, worst=pairs.coherent_row, k1=4, gamma=12.0, omega=4.0),
    # A sketch as large as the data distorts nothing: m is 0 and the bounds are tight.
    "FastMix, full-size sketch": partial(
        _fast_mix,
        sketch=SRHT(128, 128),
        worst=lambda draw: pairs.one_direction(draw.n),
        k1=20_000,
        gamma=200.0,
        omega=5.0,
        sharp=True,
    ),
    # Every two columns of different blocks lean towards each other as much as any two.
    "FastMix, Kerdock sketch": partial(
        _fast_mix, sketch=KerdockSketch(64, 1024), k1=4, gamma=12.0, omega=1.0, sharp=True
    ),
    "FastMix, sketch alone": partial(_fast_mix_sketches, steps=1),
    "MultipleFastMix, 3 steps": partial(
        _fast_mix, k1=300, gamma=40.0, omega=12.0, n_steps=3, trials=20_000
    ),
    "MultipleFastMix, 10 steps, shared": partial(_fast_mix_sketches, steps=10),
}

#: Cases by name, as functions of delta that build them.
MECHANISMS: dict[str, Callable[..., Case]] = {
    name: partial(build, name) for name, build in _CASES.items()
}

#: Cases that few releases cannot test: their noise covers more than this pair shows.
LONG = frozenset({"GaussMix, lone row", "FastMix", "FastMix, lone row", "MultipleFastMix, 3 steps"})
