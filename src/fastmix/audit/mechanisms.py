"""Cases of the mechanisms by themselves, scored by the laws of their releases."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from fastmix import mechanisms
from fastmix._types import FloatArray
from fastmix.accounting import PrivacyEvent, RdpAccountant
from fastmix.audit import case
from fastmix.audit.case import Case, Claim, Data, Pair, lone_row, one_by_one
from fastmix.audit.densities import one_sided, seen_by
from fastmix.audit.laws import scored
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
#: Mechanisms by name that are called in turn, with their arguments.
Calls = Sequence[tuple[str, dict[str, Any]]]


def bounded_rows(data: Data) -> ArrayRows:
    """Return careless records as mechanisms see them: brought to norm 1 and to [-1, 1]."""
    X, y = data.stretched()
    return ArrayRows(X, RowMap(1.0), y)


def _case(
    calls: Calls,
    events: Iterable[PrivacyEvent] | None = None,
    *,
    name: str,
    pair: Pair | None = None,
    with_target: bool = False,
    steps: int = 0,
    trials: int = 100_000,
    quick: int = 4_000,
    delta: float = DELTA,
) -> Case:
    """Return the case of mechanisms that are called in turn, with their joint likelihood.

    Its claim is the account of ``events``, or else of what the last call says that it charges.
    With ``steps`` that call draws the sketches of many releases, so many for each.
    """
    pair = pair or lone_row()

    def transcripts(data: Data, count: int, rng: np.random.Generator) -> list[list[Release]]:
        rows: Rows = bounded_rows(data)
        rows = AugmentedRows(rows) if with_target else rows
        if not steps:
            return [_transcript(calls, rows, make_noise("float", rng)) for _ in range(count)]
        *before, (last, given) = calls
        size = "n_steps" if last == "gauss_mix" else "count"
        many = [*before, (last, {**given, size: steps * count})]
        *first, whole = _transcript(many, rows, make_noise("float", rng))
        drawn = whole.out.sketches
        cut = [drawn[at : at + steps] for at in range(0, len(drawn), steps)]
        return [[*first, replace(whole, out=replace(whole.out, sketches=part))] for part in cut]

    def draw(data: Data, trials: int, rng: np.random.Generator) -> FloatArray:
        found = []
        for done in range(0, trials, _BATCH):
            drawn = transcripts(data, min(_BATCH, trials - done), rng)
            shown = [_numbers(each) for each in drawn]
            found.append(scored(drawn, pair.present, pair.absent, shown))
        return np.concatenate(found)

    if events is None:
        ((*_, last),) = transcripts(pair.present, 1, public_generator(0))
        events = (last.out.event,)
    claim = Claim(RdpAccountant(events).get_epsilon(delta), delta)
    return Case(name, claim, pair, draw, lambda values: values[:, 0], trials, quick)


def _transcript(calls: Calls, rows: Rows, noise: Noise) -> list[Release]:
    """Call mechanisms in turn: `mix` takes the bounds before it, the others take the rows."""
    transcript: list[Release] = []
    for name, given in calls:
        of = transcript[-1].out if name == "mix" else rows
        transcript.append(released(name, of, noise, **given))
    return transcript


def _numbers(transcript: Sequence[Release]) -> FloatArray:
    """Return what was released as one vector; sketches come with the bounds before them."""
    shown = ("eta", "m_tilde", "lambda_tilde", "sketches", "gram", "moment", "eigenvalue")
    parts: list[Any] = []
    for out in (each.out for each in transcript if not isinstance(each.out, Spectrum)):
        fields = [getattr(out, name) for name in shown if hasattr(out, name)]
        parts += fields or [out]
    return np.concatenate([np.ravel(part) for part in parts])


def _laplace(
    of: str,
    tau: float,
    sketch: Sketch,
    worst: Callable[[SketchDraw], Pair],
    *,
    name: str,
    delta: float = 0.0,
) -> Case:
    """Return one bound: a row moves m-hat by the coherence, and lambda-hat by 1 + 2 m."""
    draw = sketch.sample(0)
    pair = worst(draw)
    seen = [seen_by(draw, data.X) for data in (pair.present, pair.absent)]
    m = seen[0].m_hat
    scale = draw.coherence if of == "m" else 1.0 + 2.0 * m
    shift = scale * tau
    centres = [each.m_hat + shift if of == "m" else each.lambda_hat - shift for each in seen]
    level: dict[str, Any] = {"tau": tau, "omega": 1.0, "c_x": 1.0, "law": "laplace"}

    def prepare(data: Data) -> Callable[[np.random.Generator], list[float]]:
        Z, m_hat = bounded_rows(data).sketch(draw)
        release = (
            partial(bounds.release_distortion, m_hat, draw.coherence)
            if of == "m"
            else partial(bounds.release_sketched_eigenvalue, float(Z[:, 0] @ Z[:, 0]), m)
        )
        return lambda rng: [release(**level, noise=make_noise("float", rng))]

    def score(values: FloatArray) -> FloatArray:
        present, absent = (one_sided(values[:, 0], each, scale, "laplace") for each in centres)
        return present - absent

    noise, _ = bounds.spectral_events("laplace", tau=tau, omega=1.0, count=1)
    claim = Claim(noise.pure_epsilon, delta)
    return Case(name, claim, pair, one_by_one(prepare), score, 100_000, 4_000)


def _gradients(*thetas: float, sigma: float, **rest: Any) -> Case:
    """Return gradients at points where the residual of the record is far beyond the clip."""
    calls = [
        ("noisy_gradient", {"theta": np.array([theta]), "clip": 1.0, "sigma": sigma})
        for theta in thetas
    ]
    return _case(calls, mechanisms.gradient_events([sigma] * len(thetas)), **rest)


def _gaussian(mechanism: str, event: str, sigma: float, given: Any = None, **rest: Any) -> Case:
    """Return one other Gaussian release, charged by the event of this name."""
    calls = [(mechanism, {**(given or {}), "sigma": sigma})]
    return _case(calls, getattr(mechanisms, event)(sigma=sigma), **rest)


def _gauss_mix(levels: dict[str, Any], *, delta: float = DELTA, **rest: Any) -> Case:
    """Return GaussMix: the released eigenvalue and the sketch."""
    levels = {"tau": -float(ndtri(_TAIL * delta)), **levels}
    calls = [("gauss_mix", {**levels, "form": "gram"})]
    return _case(calls, mechanisms.gauss_mix_event(**levels), delta=delta, **rest)


def _sketched_gram(*, delta: float = DELTA, **rest: Any) -> Case:
    """Return the Gram matrix of a fast sketch, of a fixed draw and its worst pair."""
    draw = SRHT(64, 128).sample(0)
    levels = {"tau": -float(ndtri(_TAIL * delta)), "omega": 1.5, "sigma": 3.0}
    calls = [("noisy_sketched_gram", {"sketch": draw, "public": public_generator(0), **levels})]
    events = mechanisms.sketched_gram_events(**levels)
    return _case(calls, events, pair=case.aligned_rows(draw), delta=delta, **rest)


def _fast_mix(
    spectral: dict[str, Any],
    mixed: dict[str, Any],
    sketch: Sketch | None = None,
    worst: Callable[[SketchDraw], Pair] = case.aligned_rows,
    *,
    delta: float = DELTA,
    **rest: Any,
) -> Case:
    """Return FastMix: all spectral bounds and all sketches, of a fixed draw and its worst pair."""
    draw = (sketch or SRHT(64, 128)).sample(0)
    tau = math.log(spectral.get("count", 1) / (_TAIL * delta))
    spectral = {"tau": tau, "law": "laplace", "sketch": draw, **spectral}
    calls = [("fast_bounds", spectral), ("mix", {**mixed, "form": "gram"})]
    sizes = {"trials": 40_000, "quick": 1_000, **rest}
    return _case(calls, pair=worst(draw), delta=delta, **sizes)


#: Noise of several releases that together cost what one does at noise 2.
_TWO, _THREE = 2.0 * math.sqrt(2.0), 2.0 * math.sqrt(3.0)

#: A point at which the residual of the record is far beyond the clip.
_FAR: dict[str, Any] = {"theta": np.array([-4.0]), "clip": 1.0}

_BINS: dict[str, Any] = {"theta": np.array([-4.0]), "edges": np.array([0.0, 1.0, 2.0])}

#: Bounds with so much noise that they cost little, and so much shift that they say nothing; the
#: fast sketch distorts nothing, being as large as the data.
_GAUSS_SKETCHES = partial(
    _gauss_mix,
    {"k": 100_000, "gamma": 447.0, "tau": 40.0, "omega": 10.0},
    steps=1,
    trials=200_000,
    quick=5_000,
)
_FAST_SKETCHES = partial(
    _fast_mix,
    {"tau": 40.0, "omega": 1e6, "sharp": True},
    sketch=SRHT(4, 4),
    worst=lambda _: lone_row(),
)

_CASES: dict[str, Callable[..., Case]] = {
    "Laplace release of m": partial(_laplace, "m", 12.0, SRHT(8, 16), case.coherent_row),
    "Laplace release of lambda": partial(_laplace, "lambda", 2.0, SRHT(32, 64), case.aligned_rows),
    "Gaussian step": partial(_gradients, -4.0, sigma=2.0, trials=200_000),
    "Gaussian steps, two": partial(_gradients, -4.0, 4.0, sigma=_TWO),
    # One record moves all three statistics by 1.
    "Gaussian statistics": partial(_gaussian, "noisy_statistics", "statistics_event", _THREE),
    "Gram matrix": partial(_gaussian, "noisy_gram", "gram_event", 2.0),
    "Gram matrix of a fast sketch": partial(_sketched_gram, trials=20_000),
    # One record moves both moments by 1.
    "Gaussian moments": partial(_gaussian, "noisy_moments", "moments_event", _TWO),
    # One record moves the sum by 1; a mean so small is never shortened.
    "Gaussian mean": partial(_gaussian, "noisy_mean", "mean_event", 2.0, pair=lone_row(64)),
    "Gaussian counts of residuals": partial(
        _gaussian, "noisy_residual_counts", "residual_event", 2.0, _FAR, quick=2_000
    ),
    "Gaussian counts of signed residuals": partial(
        _gaussian, "noisy_signed_counts", "residual_event", 2.0, _BINS, quick=2_000
    ),
    "GaussMix": partial(
        _gauss_mix,
        {"k": 1_280_000, "gamma": 1600.0, "omega": 2.0},
        pair=case.weakest_direction(26, 24),
        quick=2_000,
    ),
    "GaussMix, lone row": partial(
        _gauss_mix, {"k": 4, "gamma": 20.0, "omega": 10.0}, trials=40_000, quick=2_000
    ),
    "GaussMix, sketch alone": _GAUSS_SKETCHES,
    "GaussMix of (X, y)": partial(_GAUSS_SKETCHES, with_target=True),
    "FastMix": partial(_fast_mix, {"omega": 4.0}, {"k": 800, "gamma": 40.0}),
    "FastMix, lone row": partial(
        _fast_mix, {"omega": 4.0}, {"k": 4, "gamma": 12.0}, worst=case.coherent_row
    ),
    # A sketch as large as the data distorts nothing: m is 0 and the bounds are tight.
    "FastMix, full-size sketch": partial(
        _fast_mix,
        {"omega": 5.0, "sharp": True},
        {"k": 20_000, "gamma": 200.0},
        sketch=SRHT(128, 128),
        worst=lambda draw: case.one_direction(draw.n),
    ),
    # Every two columns of different blocks lean towards each other as much as any two.
    "FastMix, Kerdock sketch": partial(
        _fast_mix,
        {"omega": 1.0, "sharp": True},
        {"k": 4, "gamma": 12.0},
        sketch=KerdockSketch(64, 1024),
    ),
    "FastMix, sketch alone": partial(
        _FAST_SKETCHES, {"k": 100_000, "gamma": 447.0}, steps=1, trials=200_000, quick=4_000
    ),
    "MultipleFastMix, 3 steps": partial(
        _fast_mix, {"omega": 12.0, "count": 3}, {"k": 300, "gamma": 40.0}, trials=20_000
    ),
    "MultipleFastMix, 10 steps, shared": partial(
        _FAST_SKETCHES, {"k": 10_000, "gamma": 224.0}, steps=10, trials=20_000, quick=400
    ),
}

#: Cases by name, as functions of delta that build them.
MECHANISMS: dict[str, Callable[..., Case]] = {
    name: partial(build, name=name) for name, build in _CASES.items()
}

#: Cases that few releases cannot test: their noise covers more than this pair shows.
LONG = frozenset({"GaussMix, lone row", "FastMix", "FastMix, lone row", "MultipleFastMix, 3 steps"})
