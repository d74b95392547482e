"""The Gram matrix of the rows, or of a fast sketch of them, with symmetric Gaussian noise."""

from typing import NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.accounting import GaussianEvent, PrivacyEvent
from fastmix.data import Rows
from fastmix.mechanisms.bounds import release_distortion, spectral_events
from fastmix.mechanisms.first_stage import noisy_symmetric
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import gram_sensitivity, sketched_gram_sensitivity
from fastmix.sketches import Sketch, SketchDraw


class GramRelease(NamedTuple):
    """A noisy Gram matrix, and the standard deviation of the noise on its diagonal."""

    gram: FloatArray
    scale: float
    m_tilde: float = 0.0  #: Upper bound of the distortion of a fast sketch.


def gram_event(*, sigma: float) -> GaussianEvent:
    """Return the event of `noisy_gram`, before any data is seen."""
    return GaussianEvent(sigma)


def noisy_gram(rows: Rows, *, sigma: float, noise: Noise) -> GramRelease:
    r"""Release :math:`X^\top X + \sigma N` for symmetric noise N.

    N has variance 1 on the diagonal and 1/2 off it; ``sigma`` is the noise in units of the
    sensitivity.

    Paper: beyond it (docs/proofs/symmetric_noise.md).
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    sensitivity = gram_sensitivity(rows.bound)
    gram_hat = rows.gram()
    gram = noisy_symmetric(gram_hat, sensitivity=sensitivity, ratio=sigma, noise=noise)
    return GramRelease(gram, sigma * sensitivity)


def sketched_gram_events(*, sigma: float, tau: float, omega: float) -> list[PrivacyEvent]:
    """Return the events of `noisy_sketched_gram`, before any data is seen."""
    return [*spectral_events("gaussian", tau=tau, omega=omega, count=1), GaussianEvent(sigma)]


def noisy_sketched_gram(
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

    The bound is :math:`\tilde m = \max\{0, \hat m + \omega \hat\Delta (\tau - z)\}`; the matrix is
    :math:`X^\top S^\top S X + \sigma C(C + 2\tilde m) N` for the noise N of `noisy_gram`.
    ``sketch`` is S, or a distribution, from which ``public`` draws it.

    Paper: beyond it (docs/proofs/symmetric_noise.md, Section 2); the bound is that of Algorithm 1.
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    omega = check_real("omega", omega, above=0.0)
    check_real("tau", tau, at_least=0.0)
    if sketch.n != rows.n:
        raise value_error("sketch", f"be for n={rows.n} rows", sketch.n)
    draw = sketch if isinstance(sketch, SketchDraw) else sketch.sample(public)
    Z, m_hat = rows.sketch(draw)
    # With unit columns rows are this long: docs/corrections.md.
    bound = rows.bound * draw.largest_norm
    gram_hat = Z.T @ Z
    level = {"tau": tau, "omega": omega, "c_x": bound}
    m = release_distortion(m_hat, draw.coherence, **level, law="gaussian", noise=noise)
    sensitivity = sketched_gram_sensitivity(m, bound)
    gram = noisy_symmetric(gram_hat, sensitivity=sensitivity, ratio=sigma, noise=noise)
    return GramRelease(gram, sigma * sensitivity, m)
