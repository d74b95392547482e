"""Cases of the mixing mechanisms: spectral bounds and sketches together."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from fastmix import mechanisms
from fastmix._types import FloatArray
from fastmix.audit import pairs
from fastmix.audit.case import Case, Data, Pair
from fastmix.audit.likelihood import one_sided, sketch_gram
from fastmix.audit.mechanisms import (
    DELTA,
    accounted,
    bounded_rows,
    distortion,
    release_case,
    sketched_eigenvalue,
)
from fastmix.data import AugmentedRows, Rows
from fastmix.mechanisms import Noise, make_noise
from fastmix.random import public_generator
from fastmix.sketches import SRHT, KerdockSketch, Sketch, SketchDraw

#: Share of delta that the shifts of all spectral releases of a case may cost.
_TAIL = 0.05

#: A sketch of half the rows.
_HALF = SRHT(64, 128)


def _gauss_mix(
    name: str, pair: Pair, *, k: int, gamma: float, omega: float, trials: int, delta: float = DELTA
) -> Case:
    """Return GaussMix: the released eigenvalue and the sketch, with their joint likelihood."""
    tau = -float(ndtri(_TAIL * delta))
    levels: dict[str, Any] = {"k": k, "gamma": gamma, "tau": tau, "omega": omega}

    def prepare(rows: Rows) -> Callable[[Noise], list[float]]:
        def release(noise: Noise) -> list[float]:
            out = mechanisms.gauss_mix(rows, **levels, form="gram", rng=noise)
            return [*out.lambda_tilde, out.eta, *out.sketch.matrix().ravel()]

        return release

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        gram = data.X.T @ data.X
        centre = np.linalg.eigvalsh(gram)[0] - omega * tau
        grams = values[:, 2:].reshape(-1, *gram.shape)
        eigenvalue = one_sided(values[:, 0], centre, omega, "gaussian")
        return eigenvalue + sketch_gram(grams, k, gram, values[:, 1])

    claim = accounted(delta, mechanisms.gauss_mix_event(**levels))
    return release_case(name, claim, pair, prepare, log_likelihood, trials, quick=2_000)


def _gauss_mix_sketches(name: str, *, with_target: bool = False, delta: float = DELTA) -> Case:
    """Return GaussMix with an eigenvalue that says nothing, so that one call draws many sketches.

    The eigenvalue has so much noise that it costs little, and so much shift that its bound is 0.
    """
    levels: dict[str, Any] = {"k": 100_000, "gamma": 447.0, "tau": 40.0, "omega": 10.0}
    pair = pairs.lone_row()

    def call(rows: Rows, count: int, rng: np.random.Generator) -> FloatArray:
        rows = AugmentedRows(rows) if with_target else rows
        out = mechanisms.gauss_mix(rows, **levels, n_steps=count, form="gram", rng=rng)
        return np.array([[out.eta, *each.matrix().ravel()] for each in out.sketches])

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        A = np.column_stack(data) if with_target else data.X
        grams = values[:, 1:].reshape(-1, A.shape[1], A.shape[1])
        return sketch_gram(grams, levels["k"], A.T @ A, values[:, 0])

    claim = accounted(delta, mechanisms.gauss_mix_event(**levels))
    return Case(name, claim, pair, _in_calls(call), pair.ratio(log_likelihood), 200_000, 5_000)


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
    tau = math.log(n_steps / (_TAIL * delta))

    def mixed(rows: Rows, noise: Noise) -> mechanisms.MixRelease:
        spectrum = mechanisms.fast_bounds(
            rows, omega=omega, tau=tau, count=n_steps, sketch=draw, sharp=sharp, rng=noise
        )
        return mechanisms.mix(spectrum, k=k1, gamma=gamma, form="gram", rng=noise)

    def prepare(rows: Rows) -> Callable[[Noise], list[float]]:
        def release(noise: Noise) -> list[float]:
            out = mixed(rows, noise)
            grams = (float(each.matrix()[0, 0]) for each in out.sketches)
            return [out.eta, *out.m_tilde, *out.lambda_tilde, *grams]

        return release

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        eta, m, lam, grams = np.split(values, np.cumsum([1, n_steps, n_steps]), axis=1)
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

    claim = accounted(delta, mixed(bounded_rows(pair.present), _fixed_noise()).event)
    return release_case(name, claim, pair, prepare, log_likelihood, trials, quick=1_000)


def _fast_mix_sketches(name: str, *, steps: int, delta: float = DELTA) -> Case:
    """Return FastMix with bounds that say nothing, so that one call draws many sketches.

    The sketch is as large as the data and distorts nothing; a release has ``steps`` sketches.
    """
    gamma = 447.0 if steps == 1 else 224.0
    k1 = 100_000 // steps
    pair = pairs.lone_row()
    sketch = SRHT(4, 4).sample(0)

    def mixed(rows: Rows, count: int, noise: Noise) -> mechanisms.MixRelease:
        spectrum = mechanisms.fast_bounds(
            rows, tau=40.0, omega=1e6, sketch=sketch, sharp=True, rng=noise
        )
        return mechanisms.mix(spectrum, k=k1, gamma=gamma, count=count, form="gram", rng=noise)

    def call(rows: Rows, count: int, rng: np.random.Generator) -> FloatArray:
        out = mixed(rows, steps * count, make_noise("float", rng))
        grams = np.array([each.matrix()[0, 0] for each in out.sketches])
        return np.column_stack((np.full(count, out.eta), grams.reshape(count, steps)))

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        joint = values[:, 1:].sum(axis=1).reshape(-1, 1, 1)
        return sketch_gram(joint, k1 * steps, data.X.T @ data.X, values[:, 0])

    claim = accounted(delta, mixed(bounded_rows(pair.present), steps, _fixed_noise()).event)
    draw, score = _in_calls(call), pair.ratio(log_likelihood)
    return Case(name, claim, pair, draw, score, 200_000 // steps, 4_000 // steps)


def _in_calls(call: Callable[[Rows, int, np.random.Generator], FloatArray]) -> Any:
    """Return the ``draw`` of a case of which one call draws many releases."""

    def draw(data: Data, trials: int, rng: np.random.Generator) -> FloatArray:
        rows = bounded_rows(data)
        counts = [min(5_000, trials - done) for done in range(0, trials, 5_000)]
        return np.concatenate([call(rows, count, rng) for count in counts])

    return draw


def _fixed_noise() -> Noise:
    """Return noise for a release of which only the event is read."""
    return make_noise("float", public_generator(0))


_CASES: dict[str, Callable[..., Case]] = {
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
MIXING: dict[str, Callable[..., Case]] = {
    name: partial(build, name) for name, build in _CASES.items()
}

#: Cases that few releases cannot test: their noise covers more than this pair shows.
LONG = frozenset({"GaussMix, lone row", "FastMix", "FastMix, lone row", "MultipleFastMix, 3 steps"})
