"""The Gram matrix of a fast sketch of the rows, with symmetric Gaussian noise."""

import numpy as np

from fastmix._validation import check_real, value_error
from fastmix.accounting import PrivacyEvent
from fastmix.data import Rows
from fastmix.releases.bounds import SKETCHED_GRAM, Source, bounded_distortion, drawn_sketch
from fastmix.releases.moments import GramRelease
from fastmix.releases.noise import Noise
from fastmix.releases.release import spectral_events
from fastmix.sketches import Sketch, SketchDraw


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
