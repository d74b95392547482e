"""Gram matrices of fast sketches of the rows, with symmetric Gaussian noise."""

import math

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.accounting import PrivacyEvent
from fastmix.data import Rows
from fastmix.releases.bounds import SKETCHED_GRAM, Source, bounded_distortion, drawn_sketch
from fastmix.releases.checks import anything, positive
from fastmix.releases.moments import GramRelease
from fastmix.releases.noise import Noise
from fastmix.releases.release import Gaussian, Public, spectral_events
from fastmix.releases.sensitivity import shortened_gram_sensitivity
from fastmix.sketches import Sketch, SketchDraw, SparseSketch
from fastmix.sketches.sparse import SparseDraw


def _shortened_gram(rows: Rows, draw: SparseDraw, longest: float) -> FloatArray:
    r"""Return :math:`\sum_r \pi(z_r) \pi(z_r)^\top` for rows z of a sketch, shortened by pi."""
    Z = rows.apply(draw)
    lengths = np.sqrt(np.einsum("ij,ij->i", Z, Z))
    Z *= np.minimum(1.0, longest / np.maximum(lengths, 1e-300))[:, None]
    return np.asarray(Z.T @ Z)


def _scale(public: Public, draw: SparseDraw, longest: float) -> float:
    return shortened_gram_sensitivity(longest, draw.k2, draw.entries, public.bound)


#: The Gram matrix of a sparse sketch whose rows are shortened to ``longest``; ``draw`` is public.
SPARSE_GRAM = Gaussian(
    name="gram of a sparse sketch",
    statement="the Gram matrix of a sparse sketch of the features, its rows shortened",
    proof="docs/proofs/sparse.md, Section 2",
    statistic=_shortened_gram,
    sensitivity=_scale,
    given={"draw": anything, "longest": positive},
    symmetric=True,
    finish=lambda value, public, sigma, **at: GramRelease(value, sigma * _scale(public, **at)),
)


def sparse_gram(
    rows: Rows, *, sketch: SparseSketch, sigma: float, noise: Noise, public: np.random.Generator
) -> GramRelease:
    r"""Release the Gram matrix of a sparse sketch, `SPARSE_GRAM`, which ``public`` draws.

    Its rows are shortened to :math:`C \sqrt{n/k_2}`: their root mean square is no more than that,
    for rows of norm C.

    Paper: beyond it (docs/proofs/sparse.md).
    Sensitive inputs: rows.
    """
    draw = drawn_sketch(sketch, public, noise)
    longest = rows.bound * math.sqrt(max(1.0, rows.n / draw.k2))
    given = {"draw": draw, "longest": longest, "sigma": sigma}
    released: GramRelease = noise.release(SPARSE_GRAM, rows, **given)
    return released


def sketched_gram_events(*, sigma: float, tau: float, omega: float) -> list[PrivacyEvent]:
    """Return the events of `sketched_gram`, before any data is seen."""
    bound = spectral_events("gaussian", tau=tau, omega=omega, count=1)
    return [*bound, SKETCHED_GRAM.event(sigma)]


def sketched_gram(
    rows: Rows,
    *,
    sketch: Sketch | SketchDraw,
    sigma: float,
    tau: float,
    omega: float,
    noise: Noise,
    public: np.random.Generator,
) -> GramRelease:
    r"""Release a bound on the distortion of a fast sketch, and the Gram matrix of sketched rows.

    The bound is `DISTORTION`, and the matrix `SKETCHED_GRAM`. ``sketch`` is S, or a distribution,
    from which ``public`` draws it.

    Paper: beyond it (docs/proofs/symmetric_noise.md, Section 2); the bound is that of Algorithm 1.
    Sensitive inputs: rows.
    """
    check_real("sigma", sigma, above=0.0)
    check_real("omega", omega, above=0.0)
    check_real("tau", tau, at_least=0.0)
    if sketch.n != rows.n:
        raise value_error("sketch", f"be for n={rows.n} rows", sketch.n)
    draw = drawn_sketch(sketch, public, noise)
    source = Source.sketched(rows, draw)
    m = bounded_distortion(source, draw, tau=tau, omega=omega, law="gaussian", noise=noise)
    released: GramRelease = noise.release(SKETCHED_GRAM, source, m=m, sigma=sigma)
    return released
