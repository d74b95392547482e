"""Cases of the mixing mechanisms: spectral bounds and sketches together."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from fastmix import mechanisms
from fastmix.audit import pairs
from fastmix.audit.case import Case, Data, FloatArray, Pair, one_by_one
from fastmix.audit.likelihood import one_sided, sketch_gram
from fastmix.audit.mechanisms import (
    DELTA,
    accounted,
    bounded_rows,
    distortion,
    sketched_eigenvalue,
)
from fastmix.data import AugmentedRows, Rows
from fastmix.mechanisms.noise import make_noise
from fastmix.random import public_generator
from fastmix.sketches import SRHT, KerdockSketch, Sketch, SketchDraw

__all__ = ["LONG", "MIXING", "fast_mix", "fast_mix_sketches", "gauss_mix", "gauss_mix_sketches"]

#: Share of delta that the shifts of all spectral releases of a case may cost.
_TAIL = 0.05


def gauss_mix(
    name: str,
    pair: Pair,
    *,
    k: int,
    gamma: float,
    omega: float,
    trials: int,
    delta: float = DELTA,
) -> Case:
    """Return GaussMix: the released eigenvalue and the sketch, with their joint likelihood."""
    tau = -float(ndtri(_TAIL * delta))
    levels: dict[str, Any] = {"k": k, "gamma": gamma, "tau": tau, "omega": omega}

    def prepare(data: Data) -> Callable[[np.random.Generator], list[float]]:
        rows = bounded_rows(data)

        def release(rng: np.random.Generator) -> list[float]:
            out = mechanisms.gauss_mix(rows, **levels, form="gram", rng=rng)
            return [*out.lambda_tilde, out.eta, *out.sketch.matrix().ravel()]

        return release

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        gram = data.X.T @ data.X
        centre = np.linalg.eigvalsh(gram)[0] - omega * tau
        grams = values[:, 2:].reshape(-1, *gram.shape)
        eigenvalue = one_sided(values[:, 0], centre, omega, "gaussian")
        return eigenvalue + sketch_gram(grams, k, gram, values[:, 1])

    return Case(
        name=name,
        claim=accounted(delta, mechanisms.gauss_mix_event(**levels)),
        pair=pair,
        draw=one_by_one(prepare),
        score=pair.ratio(log_likelihood),
        trials=trials,
        quick=2_000,
    )


def gauss_mix_sketches(name: str, *, with_target: bool = False, delta: float = DELTA) -> Case:
    """Return GaussMix with an eigenvalue that says nothing, so that one call draws many sketches.

    The eigenvalue has so much noise that it costs little, and so much shift that its bound is 0.
    """
    levels: dict[str, Any] = {"k": 100_000, "gamma": 447.0, "tau": 40.0, "omega": 10.0}
    pair = pairs.lone_row()

    def draw(data: Data, trials: int, rng: np.random.Generator) -> FloatArray:
        rows: Rows = bounded_rows(data)
        rows = AugmentedRows(rows) if with_target else rows

        def call(count: int) -> FloatArray:
            out = mechanisms.gauss_mix(rows, **levels, n_steps=count, form="gram", rng=rng)
            return np.array([[out.eta, *each.matrix().ravel()] for each in out.sketches])

        return np.concatenate([call(count) for count in _calls(trials)])

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        A = np.column_stack(data) if with_target else data.X
        grams = values[:, 1:].reshape(-1, A.shape[1], A.shape[1])
        return sketch_gram(grams, levels["k"], A.T @ A, values[:, 0])

    return Case(
        name=name,
        claim=accounted(delta, mechanisms.gauss_mix_event(**levels)),
        pair=pair,
        draw=draw,
        score=pair.ratio(log_likelihood),
        trials=200_000,
        quick=5_000,
    )


def fast_mix(
    name: str,
    draw: SketchDraw,
    pair: Pair,
    *,
    k1: int,
    gamma: float,
    omega: float,
    n_steps: int = 1,
    shared: bool = False,
    sharp: bool = False,
    trials: int = 40_000,
    delta: float = DELTA,
) -> Case:
    """Return FastMix in one or several steps: all spectral bounds and all sketches."""
    pairs_of_bounds = 1 if shared else n_steps
    tau = math.log(pairs_of_bounds / (_TAIL * delta))
    bounds: dict[str, Any] = {"omega": omega, "tau": tau, "count": pairs_of_bounds}

    def mixed(rows: Rows, rng: np.random.Generator) -> mechanisms.MixRelease:
        noise = make_noise("float", rng)
        spectrum = mechanisms.fast_bounds(rows, **bounds, sketch=draw, sharp=sharp, rng=noise)
        return mechanisms.mix(spectrum, k=k1, gamma=gamma, count=n_steps, form="gram", rng=noise)

    def prepare(data: Data) -> Callable[[np.random.Generator], list[float]]:
        rows = bounded_rows(data)

        def release(rng: np.random.Generator) -> list[float]:
            out = mixed(rows, rng)
            grams = (float(each.matrix()[0, 0]) for each in out.sketches)
            return [out.eta, *out.m_tilde, *out.lambda_tilde, *grams]

        return release

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        ends = np.cumsum([1, pairs_of_bounds, pairs_of_bounds])
        eta, m, lam, grams = np.split(values, ends, axis=1)
        lambda_hat = sketched_eigenvalue(draw, data)
        scales = omega * (1.0 + 2.0 * m)
        spectral = one_sided(lam, lambda_hat - scales * tau, scales, "laplace")
        if draw.coherence > 0.0:
            scale = omega * draw.coherence
            centre = distortion(draw, data) + scale * tau
            spectral = spectral + one_sided(m, centre, scale, "laplace")
        # Rows of all steps are independent with one covariance: together they are one sketch.
        joint = grams.sum(axis=1).reshape(-1, 1, 1)
        gram = np.array([[lambda_hat]])
        rows = sketch_gram(joint, k1 * n_steps, gram, eta[:, 0])
        return np.asarray(spectral.sum(axis=1) + rows)

    return Case(
        name=name,
        claim=accounted(delta, mixed(bounded_rows(pair.present), public_generator(0)).event),
        pair=pair,
        draw=one_by_one(prepare),
        score=pair.ratio(log_likelihood),
        trials=trials,
        quick=1_000,
    )


def fast_mix_sketches(name: str, *, steps: int, delta: float = DELTA) -> Case:
    """Return FastMix with bounds that say nothing, so that one call draws many sketches.

    The sketch is as large as the data and distorts nothing; a release has ``steps`` sketches.
    """
    gamma = 447.0 if steps == 1 else 224.0
    k1 = 100_000 // steps
    pair = pairs.lone_row()
    sketch = SRHT(4, 4).sample(0)

    def mixed(rows: Rows, count: int, rng: np.random.Generator) -> mechanisms.MixRelease:
        noise = make_noise("float", rng)
        spectrum = mechanisms.fast_bounds(
            rows, tau=40.0, omega=1e6, sketch=sketch, sharp=True, rng=noise
        )
        return mechanisms.mix(spectrum, k=k1, gamma=gamma, count=count, form="gram", rng=noise)

    def draw(data: Data, trials: int, rng: np.random.Generator) -> FloatArray:
        rows = bounded_rows(data)

        def call(count: int) -> FloatArray:
            out = mixed(rows, steps * count, rng)
            grams = np.array([each.matrix()[0, 0] for each in out.sketches])
            return np.column_stack((np.full(count, out.eta), grams.reshape(count, steps)))

        return np.concatenate([call(count) for count in _calls(trials)])

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        joint = values[:, 1:].sum(axis=1).reshape(-1, 1, 1)
        return sketch_gram(joint, k1 * steps, data.X.T @ data.X, values[:, 0])

    return Case(
        name=name,
        claim=accounted(delta, mixed(bounded_rows(pair.present), steps, public_generator(0)).event),
        pair=pair,
        draw=draw,
        score=pair.ratio(log_likelihood),
        trials=200_000 // steps,
        quick=4_000 // steps,
    )


def _calls(trials: int, most: int = 5_000) -> list[int]:
    """Return how many releases each call draws, few enough to hold in memory."""
    return [min(most, trials - done) for done in range(0, trials, most)]


def _fixed(name: str, sketch: Sketch, worst: Callable[[SketchDraw], Pair], **levels: Any) -> Case:
    """Return FastMix with a fixed draw of the fast sketch and the pair that is worst for it."""
    draw = sketch.sample(0)
    return fast_mix(name, draw, worst(draw), **levels)


def _equal_rows(draw: SketchDraw) -> Pair:
    return pairs.one_direction(draw.n)


#: Levels of each case, and what builds it from them.
_CASES: dict[str, tuple[Callable[..., Case], dict[str, Any]]] = {
    "GaussMix": (
        gauss_mix,
        {
            "pair": pairs.weakest_direction(26, 24),
            "k": 1_280_000,
            "gamma": 1600.0,
            "omega": 2.0,
            "trials": 100_000,
        },
    ),
    "GaussMix, lone row": (
        gauss_mix,
        {
            "pair": pairs.lone_row(),
            "k": 4,
            "gamma": 20.0,
            "omega": 10.0,
            "trials": 40_000,
        },
    ),
    "GaussMix, sketch alone": (gauss_mix_sketches, {}),
    "GaussMix of (X, y)": (gauss_mix_sketches, {"with_target": True}),
    "FastMix": (
        partial(_fixed, sketch=SRHT(64, 128), worst=pairs.aligned_rows),
        {"k1": 800, "gamma": 40.0, "omega": 4.0},
    ),
    "FastMix, lone row": (
        partial(_fixed, sketch=SRHT(64, 128), worst=pairs.coherent_row),
        {"k1": 4, "gamma": 12.0, "omega": 4.0},
    ),
    # A sketch as large as the data distorts nothing: m is 0 and the bounds are tight.
    "FastMix, full-size sketch": (
        partial(_fixed, sketch=SRHT(128, 128), worst=_equal_rows),
        {"k1": 20_000, "gamma": 200.0, "omega": 5.0, "sharp": True},
    ),
    # Every two columns of different blocks lean towards each other as much as any two.
    "FastMix, Kerdock sketch": (
        partial(_fixed, sketch=KerdockSketch(64, 1024), worst=pairs.aligned_rows),
        {"k1": 4, "gamma": 12.0, "omega": 1.0, "sharp": True},
    ),
    "FastMix, sketch alone": (fast_mix_sketches, {"steps": 1}),
    "MultipleFastMix, 3 steps": (
        partial(_fixed, sketch=SRHT(64, 128), worst=pairs.aligned_rows),
        {"k1": 300, "gamma": 40.0, "omega": 12.0, "n_steps": 3, "trials": 20_000},
    ),
    "MultipleFastMix, 10 steps, shared": (fast_mix_sketches, {"steps": 10}),
}

#: Cases that few releases cannot test: their noise covers more than this pair shows.
LONG = frozenset({"GaussMix, lone row", "FastMix", "FastMix, lone row", "MultipleFastMix, 3 steps"})

#: Cases by name, as functions of delta that build them.
MIXING: dict[str, Callable[..., Case]] = {
    name: partial(build, name, **levels) for name, (build, levels) in _CASES.items()
}
