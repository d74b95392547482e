"""Audits of single releases, for tests: the mechanisms that estimators are made of.

`fastmix audit` tests the claims of certificates; these cases test the parts, one by one, on the
neighbours that are hardest to hide from each.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from fastmix._types import FloatArray
from fastmix.audit.case import Case, Claim, Pair, lone_row, one_direction, without
from fastmix.audit.estimators import ESTIMATORS
from fastmix.audit.releases import DELTA, Draw, bounded_rows, release_case
from fastmix.data import AugmentedRows, Rows
from fastmix.random import public_generator
from fastmix.releases import (
    DISTORTION,
    GRADIENT,
    GRAM,
    MEAN,
    MOMENTS,
    RESIDUAL_COUNTS,
    SIGNED_COUNTS,
    SKETCHED_EIGENVALUE,
    STATISTICS,
    Gaussian,
    Joint,
    Noise,
    fast_bounds,
    gauss_bounds,
    mix,
    sketched_gram,
    sparse_gram,
)
from fastmix.releases.bounds import Source
from fastmix.sketches import SRHT, KerdockSketch, Sketch, SketchDraw, SparseSketch

#: Share of delta that the shifts of all spectral releases of a case may cost.
_TAIL = 0.05


def weakest_direction(n: int, weak: int) -> Pair:
    """Return n rows along one axis and ``weak`` along another, one of which is removed."""
    X = np.zeros((n + weak, 2))
    X[weak:, 0] = 1.0
    X[:weak, 1] = 1.0
    return without(f"a row along the weakest direction, which {weak} rows share", X, 0)


def coherent_row(draw: SketchDraw) -> Pair:
    """Return the lone row that moves m-hat most: the column that another one resembles most."""
    P = _overlaps(draw)
    i = int(P.max(axis=1).argmax())
    X = np.zeros((draw.n, 1))
    X[i] = 1.0
    return without("the row that moves m-hat most, zeros elsewhere", X, i)


def aligned_rows(draw: SketchDraw) -> Pair:
    """Return rows that all lean towards one: the sketched eigenvalue moves by 1 + 2 m-hat."""
    U = draw.to_dense()
    P = _overlaps(draw)
    i = int(P.sum(axis=1).argmax())
    signs = np.where(U.T @ U[:, i] < 0.0, -1.0, 1.0)
    return without("the row that maximises m-hat, the rest aligned with it", signs[:, None], i)


def shortened_row(draw: SketchDraw) -> Pair:
    """Return rows that fill one row of a sketch to its longest, less one that is removed."""
    S = draw.to_dense()
    longest = int(math.sqrt(draw.n / draw.k2))
    chosen = np.flatnonzero(S[0])[:longest]
    X = np.zeros((draw.n, 1))
    X[chosen, 0] = S[0, chosen]
    return without("a row of a row of the sketch that is as long as it may be", X, int(chosen[0]))


def _overlaps(draw: SketchDraw) -> FloatArray:
    U = draw.to_dense()
    P = np.abs(U.T @ U)
    np.fill_diagonal(P, 0.0)
    return P


def _laplace(
    release: Any,
    tau: float,
    sketch: Sketch,
    worst: Callable[[SketchDraw], Pair],
    *,
    delta: float = 0.0,
    **rest: Any,
) -> Case:
    """Return one bound: a row moves m-hat by the coherence, and lambda-hat by 1 + 2 m."""
    draw = sketch.sample(0)
    pair = worst(draw)
    known = {"coherence": draw.coherence}
    if release is SKETCHED_EIGENVALUE:
        known = {"m": Source.sketched(bounded_rows(pair.present), draw).m_hat}
    return release_case(
        lambda source, noise: noise.release(
            release, source, sigma=1.0, tau=tau, law="laplace", **known
        ),
        lambda rows, noise: Source.sketched(rows, draw),
        pair=pair,
        claim=Claim(1.0, delta),
        **rest,
    )


def _gaussian(release: Gaussian | Joint, *given: dict[str, Any], **rest: Any) -> Case:
    """Return Gaussian releases, one for each of the given values."""

    def drawn(rows: Rows, noise: Noise) -> None:
        for each in given:
            noise.release(release, rows, **each)

    return release_case(drawn, **rest)


def _gradients(*thetas: float, sigma: float, **rest: Any) -> Case:
    """Return gradients at points where the residual of the record is far beyond the clip."""
    at: list[dict[str, Any]] = [
        {"theta": np.array([theta]), "clip": 1.0, "sigma": sigma} for theta in thetas
    ]
    return _gaussian(GRADIENT, *at, **rest)


def _gauss_mix(
    levels: dict[str, Any],
    *,
    delta: float = DELTA,
    shared: bool = False,
    with_target: bool = False,
    **rest: Any,
) -> Case:
    """Return GaussMix: the released eigenvalue, or one for all trials, and the sketch."""
    tau, omega = levels.get("tau", -float(ndtri(_TAIL * delta))), levels["omega"]
    sized = {"k": levels["k"], "gamma": levels["gamma"], "form": "gram"}

    def bounds(rows: Rows, noise: Noise) -> Any:
        rows = AugmentedRows(rows) if with_target else rows
        return gauss_bounds(rows, tau=tau, omega=omega, rng=noise)

    return _mixed(bounds, sized, shared=shared, delta=delta, **rest)


def _fast_mix(
    spectral: dict[str, Any],
    mixed: dict[str, Any],
    sketch: Sketch | None = None,
    worst: Callable[[SketchDraw], Pair] = aligned_rows,
    *,
    delta: float = DELTA,
    **rest: Any,
) -> Case:
    """Return FastMix: all spectral bounds and all sketches, of a fixed draw and its worst pair."""
    draw = (sketch or SRHT(64, 128)).sample(0)
    tau = math.log(spectral.get("count", 1) / (_TAIL * delta))
    spectral = {"tau": tau, "law": "laplace", "sketch": draw, **spectral}
    sizes = {"trials": 40_000, "quick": 1_000, **rest}
    return _mixed(
        lambda rows, noise: fast_bounds(rows, rng=noise, **spectral),
        {**mixed, "form": "gram"},
        pair=worst(draw),
        delta=delta,
        **sizes,
    )


def _mixed(bounds: Draw, sized: dict[str, Any], *, shared: bool = False, **rest: Any) -> Case:
    """Return bounds and sketches; with ``shared``, sketches whose bounds all trials share."""
    if shared:
        return release_case(
            lambda spectrum, noise: mix(spectrum, rng=noise, **sized), bounds, **rest
        )
    return release_case(lambda rows, noise: mix(bounds(rows, noise), rng=noise, **sized), **rest)


def _sketched_gram(*, delta: float = DELTA, **rest: Any) -> Case:
    """Return the Gram matrix of a fast sketch, of a fixed draw and its worst pair."""
    draw = SRHT(64, 128).sample(0)
    levels: dict[str, Any] = {"tau": -float(ndtri(_TAIL * delta)), "omega": 1.5, "sigma": 3.0}
    levels |= {"sketch": draw, "public": public_generator(0)}
    return release_case(
        lambda rows, noise: sketched_gram(rows, noise=noise, **levels),
        pair=aligned_rows(draw),
        delta=delta,
        **rest,
    )


def _sparse_gram(**rest: Any) -> Case:
    """Return the Gram matrix of a sparse sketch; shortened rows move by all that they may."""
    draw = SparseSketch(4, 64, entries=1).sample(0)
    levels: dict[str, Any] = {"sigma": 3.0, "sketch": draw, "public": public_generator(0)}
    return release_case(
        lambda rows, noise: sparse_gram(rows, noise=noise, **levels),
        pair=shortened_row(draw),
        **rest,
    )


#: Noise of several releases that together cost what one does at noise 2.
_TWO, _THREE = 2.0 * math.sqrt(2.0), 2.0 * math.sqrt(3.0)

#: A point at which the residual of the record is far beyond the clip, and beyond the last bin.
_FAR: dict[str, Any] = {"theta": np.array([-4.0]), "sigma": 2.0}
_BINS: FloatArray = np.array([0.0, 1.0, 2.0])

#: Bounds with so much noise that they cost little, and so much shift that they say nothing; the
#: fast sketch distorts nothing, being as large as the data.
_GAUSS_SKETCHES = partial(
    _gauss_mix,
    {"k": 100_000, "gamma": 447.0, "tau": 40.0, "omega": 10.0},
    shared=True,
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
    "Laplace release of m": partial(_laplace, DISTORTION, 12.0, SRHT(8, 16), coherent_row),
    "Laplace release of lambda": partial(
        _laplace, SKETCHED_EIGENVALUE, 2.0, SRHT(32, 64), aligned_rows
    ),
    "Gaussian step": partial(_gradients, -4.0, sigma=2.0, trials=200_000),
    "Gaussian steps, two": partial(_gradients, -4.0, 4.0, sigma=_TWO),
    # One record moves all three statistics by 1.
    "Gaussian statistics": partial(_gaussian, STATISTICS, {"sigma": _THREE}),
    "Gram matrix": partial(_gaussian, GRAM, {"sigma": 2.0}),
    "Gram matrix of a fast sketch": partial(_sketched_gram, trials=20_000),
    "Gram matrix of a sparse sketch": partial(_sparse_gram, trials=20_000),
    # One record moves both moments by 1.
    "Gaussian moments": partial(_gaussian, MOMENTS, {"sigma": _TWO}),
    # One record moves the sum by 1; a mean so small is never shortened.
    "Gaussian mean": partial(_gaussian, MEAN, {"sigma": 2.0}, pair=lone_row(64)),
    "Gaussian counts of residuals": partial(
        _gaussian, RESIDUAL_COUNTS, {**_FAR, "clip": 1.0}, quick=2_000
    ),
    "Gaussian counts of signed residuals": partial(
        _gaussian, SIGNED_COUNTS, {**_FAR, "edges": _BINS}, quick=2_000
    ),
    "GaussMix": partial(
        _gauss_mix,
        {"k": 1_280_000, "gamma": 1600.0, "omega": 2.0},
        pair=weakest_direction(26, 24),
        quick=2_000,
    ),
    "GaussMix, lone row": partial(
        _gauss_mix, {"k": 4, "gamma": 20.0, "omega": 10.0}, trials=40_000, quick=2_000
    ),
    "GaussMix, sketch alone": _GAUSS_SKETCHES,
    "GaussMix of (X, y)": partial(_GAUSS_SKETCHES, with_target=True),
    "FastMix": partial(_fast_mix, {"omega": 4.0}, {"k": 800, "gamma": 40.0}),
    "FastMix, lone row": partial(
        _fast_mix, {"omega": 4.0}, {"k": 4, "gamma": 12.0}, worst=coherent_row
    ),
    # A sketch as large as the data distorts nothing: m is 0 and the bounds are tight.
    "FastMix, full-size sketch": partial(
        _fast_mix,
        {"omega": 5.0, "sharp": True},
        {"k": 20_000, "gamma": 200.0},
        sketch=SRHT(128, 128),
        worst=lambda draw: one_direction(draw.n),
    ),
    # Every two columns of different blocks lean towards each other as much as any two.
    "FastMix, Kerdock sketch": partial(
        _fast_mix,
        {"omega": 1.0, "sharp": True},
        {"k": 4, "gamma": 12.0},
        sketch=KerdockSketch(64, 1024),
    ),
    "FastMix, sketch alone": partial(
        _FAST_SKETCHES, {"k": 100_000, "gamma": 447.0}, shared=True, trials=200_000, quick=4_000
    ),
    "MultipleFastMix, 3 steps": partial(
        _fast_mix, {"omega": 12.0, "count": 3}, {"k": 300, "gamma": 40.0}, trials=20_000
    ),
    "MultipleFastMix, 10 steps, shared": partial(
        _FAST_SKETCHES,
        {"k": 10_000, "gamma": 224.0, "count": 10},
        shared=True,
        trials=20_000,
        quick=400,
    ),
}

#: Cases by name, as functions of delta that build them.
RELEASES: dict[str, Callable[..., Case]] = {
    name: partial(build, name=name) for name, build in _CASES.items()
}

#: Those of releases and those of estimators.
CASES = {**RELEASES, **ESTIMATORS}
