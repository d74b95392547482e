"""Private one-sided bounds on the distortion and on the smallest eigenvalue.

Noise is shifted by ``tau`` so that each bound errs on its safe side except with a small
probability, which the event of the release carries as a tail.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from fastmix._types import FloatArray
from fastmix._validation import (
    check_choice,
    check_integer,
    check_matrix,
    check_real,
    type_error,
    value_error,
)
from fastmix.accounting import ComposedEvent, GaussianEvent, LaplaceEvent, PrivacyEvent, TailEvent
from fastmix.data import ArrayRows, RowMap, Rows
from fastmix.mechanisms.noise import Noise, RandomNoise, as_noise
from fastmix.mechanisms.sensitivity import (
    distortion_sensitivity,
    eigenvalue_sensitivity,
    sketched_eigenvalue_sensitivity,
)
from fastmix.random import RandomState, public_generator
from fastmix.sketches import Sketch, SketchDraw

#: Columns that are not orthogonal have a coherence of at least about 1/n (Welch); anything below
#: this is the rounding error of a sketch with orthogonal columns.
_ORTHOGONAL = 1e-12


class Source:
    """What a Gaussian sketch is drawn of: sensitive, never released itself, shown or copied.

    ``blocks`` gives its rows, for a sketch that is formed as written. As a dataclass it could be
    copied by `dataclasses.asdict`.
    """

    def __init__(
        self, bound: float, gram_hat: FloatArray, blocks: Callable[[], Iterable[FloatArray]] | None
    ) -> None:
        self.bound, self.gram_hat, self.blocks = bound, gram_hat, blocks

    def __reduce__(self) -> Any:
        raise TypeError("Spectrum must stay where the data are: it holds what is to be sketched.")


@dataclass(frozen=True)
class Spectrum:
    """Private bounds on what is to be sketched, a pair for each; what is shown is released."""

    m_tilde: tuple[float, ...]  #: Upper bounds of the distortion.
    lambda_tilde: tuple[float, ...]  #: Lower bounds of the smallest eigenvalue.
    curve: str  #: The curve that the rows of a sketch are charged by.
    event: ComposedEvent  #: The releases so far.
    sources: tuple[Source, ...] = field(repr=False)  #: Sensitive.

    @property
    def level(self) -> float:
        """The gamma that the bounds reach without noise in every sketch."""
        return min(lam / (c * (c + 2.0 * m)) for c, m, lam in self._released())

    def eta(self, gamma: float) -> float:
        """Return the noise that lifts all of them to a gamma (Algorithm 1, line 4)."""
        needed = [
            needed_eigenvalue(gamma, m, c, self.curve) - lam for c, m, lam in self._released()
        ]
        return max(map(noise_level, needed))

    def _released(self) -> Iterable[tuple[float, float, float]]:
        bounds = [source.bound for source in self.sources]
        return zip(bounds, self.m_tilde, self.lambda_tilde, strict=True)


def gauss_bounds(
    X: Rows | npt.ArrayLike,
    *,
    tau: float,
    omega: float,
    c_x: float = 1.0,
    literal: bool = False,
    rng: RandomNoise = None,
) -> Spectrum:
    r"""Release :math:`\tilde\lambda = \max\{0, \hat\lambda - \omega C^2 (\tau - z)\}`, z normal.

    Parameters are those of `fast_bounds`; a ``literal`` sketch will be formed from the rows.

    Paper: the private eigenvalue of GaussMix (Lev et al., 2025) and IHM (Lev et al., 2026).
    Sensitive inputs: X.
    """
    rows, omega, noise = _checked(X, c_x, tau, omega, rng)
    gram_hat = rows.gram()
    lambda_tilde = noise.bound(
        _smallest_eigenvalue(gram_hat),
        above=False,
        sensitivity=eigenvalue_sensitivity(rows.bound),
        ratio=omega,
        tau=tau,
        law="gaussian",
    )
    blocks = (lambda: (A for A, _ in rows.blocks())) if literal else None
    source = Source(rows.bound, gram_hat, blocks)
    event = ComposedEvent(spectral_events("gaussian", tau=tau, omega=omega, count=1))
    return Spectrum((0.0,), (lambda_tilde,), "gauss_mix", event, (source,))


def fast_bounds(
    X: Rows | npt.ArrayLike,
    *,
    tau: float,
    omega: float,
    sketch: Sketch | SketchDraw,
    count: int = 1,
    c_x: float = 1.0,
    law: str = "laplace",
    sharp: bool = False,
    literal: bool = False,
    rng: RandomNoise = None,
    sketch_rng: RandomState = None,
) -> Spectrum:
    """Release bounds on distortion and smallest eigenvalue of the data under fast sketches.

    Parameters
    ----------
    X : array_like of shape (n, d) or Rows
        Data; rows longer than the public ``c_x`` are shortened to it, always.
    tau, omega : float
        Shift, and noise of each release in units of its sensitivity.
    sketch : Sketch or SketchDraw
        A distribution, from which fast sketches are drawn, or one fixed draw: public.
    count : int, default 1
        Number of fast sketches, each with its pair of bounds.
    c_x : float, default 1.0
        Public bound on the norm of a row.
    law : {"laplace", "gaussian"}
        Law of the noise; the second is the remark after Theorem 1.
    sharp, literal : bool, default False
        Charge the rows by the sharper curve of docs/proofs/sharp_lemma.md, not by the paper's; form
        sketches as written, from the sketched data.
    rng, sketch_rng : None, int, RandomState, Generator or Noise
        Source of the noise, where a seed voids the guarantee, and of the fast sketches: by default
        cryptographic noise and a fast generator, or ``rng`` for both if that is a seed.

    Returns
    -------
    Spectrum
        The bounds, and what `mix` sketches.

    Notes
    -----
    Paper: Algorithm 1, lines 1-3; Algorithm 3.
    Deviation: sketches are brought to unit columns first (docs/corrections.md).
    Sensitive inputs: X.
    """
    check_choice("law", law, ("laplace", "gaussian"))
    count = check_integer("count", count, at_least=1)
    rows, omega, noise = _checked(X, c_x, tau, omega, rng)
    if not isinstance(sketch, (Sketch, SketchDraw)):
        raise type_error("sketch", "be a Sketch or a SketchDraw", sketch)
    if sketch.n != rows.n:
        raise value_error("sketch", f"be for n={rows.n} rows", sketch.n)
    # Fast sketches are public: unless the caller seeds everything they never see secret noise.
    seeded = rng is not None and not isinstance(rng, Noise) and sketch_rng is None
    public = public_generator(noise.rng if seeded else sketch_rng)
    m_tilde, lambda_tilde, sources = [], [], []
    for _ in range(count):
        draw = sketch if isinstance(sketch, SketchDraw) else sketch.sample(public)
        Z, m_hat = rows.sketch(draw)
        # With unit columns S~ = S diag(1/|u_i|) the rows of X~ = diag(|u_i|) X are this long.
        bound = rows.bound * draw.largest_norm
        gram_hat = Z.T @ Z
        level = {"tau": tau, "omega": omega, "c_x": bound}
        m = release_distortion(m_hat, draw.coherence, **level, law=law, noise=noise)
        lambda_hat = _smallest_eigenvalue(gram_hat)
        lam = release_sketched_eigenvalue(lambda_hat, m, **level, law=law, noise=noise)
        m_tilde.append(m)
        lambda_tilde.append(lam)
        sources.append(Source(bound, gram_hat, partial(iter, (Z,)) if literal else None))
    event = ComposedEvent(spectral_events(law, tau=tau, omega=omega, count=2 * count))
    curve = "fast_mix_sharp" if sharp else "fast_mix"
    return Spectrum(tuple(m_tilde), tuple(lambda_tilde), curve, event, tuple(sources))


def _checked(
    X: Rows | npt.ArrayLike, c_x: float, tau: float, omega: float, rng: RandomNoise
) -> tuple[Rows, float, Noise]:
    """Return rows, which bring their own bound or get ``c_x``, omega, and noise."""
    check_real("tau", tau, at_least=0.0)
    omega = check_real("omega", omega, above=0.0)
    if not isinstance(X, Rows):
        X = ArrayRows(check_matrix("X", X), RowMap(check_real("c_x", c_x, above=0.0)))
    return X, omega, as_noise(rng)


def _smallest_eigenvalue(gram_hat: FloatArray) -> float:
    return max(0.0, float(np.linalg.eigvalsh(gram_hat)[0]))


def noise_level(square: float) -> float:
    r"""Return :math:`\eta = \sqrt{\max\{0, \eta^2\}}`, refusing a level that is no number."""
    if not math.isfinite(square):
        raise ValueError("eta must be finite; gamma, omega or tau is too large.")
    return math.sqrt(max(0.0, square))


def needed_eigenvalue(gamma: float, m_tilde: float, c_x: float, curve: str) -> float:
    r"""Return the :math:`\lambda_{\min} + \eta^2` at which a FastMix sketch is at level gamma.

    It is :math:`\gamma C(C + 2\tilde m)` (Algorithm 1, line 4), and for the sharper curve no more
    than the :math:`\kappa` with :math:`2/\sqrt\kappa - 1/\kappa = 1/\gamma`, at which the analysis
    of Appendix C.2, which needs no distortion at all, gives the same curve.
    """
    bounded = gamma * c_x * (c_x + 2.0 * m_tilde)
    if curve != "fast_mix_sharp":
        return bounded
    unbounded = (gamma * (1.0 + math.sqrt(1.0 - 1.0 / gamma))) ** 2
    return min(bounded, unbounded * c_x**2)


def release_distortion(
    m_hat: float, coherence: float, *, tau: float, omega: float, c_x: float, law: str, noise: Noise
) -> float:
    r"""Release :math:`\tilde m = \max\{0, \hat m + \omega \hat\Delta (\tau - z)\}`.

    Paper: Algorithm 1, line 2; Algorithm 3, line 6.
    Deviation: at coherence 0 the distortion is 0 for all data, and 0 is released instead of the
    rounding error in m_hat.
    Sensitive inputs: m_hat.
    """
    if coherence < _ORTHOGONAL:
        noise.skip(ratio=omega, law=law)
        return 0.0
    sensitivity = distortion_sensitivity(coherence, c_x)
    return noise.bound(m_hat, above=True, sensitivity=sensitivity, ratio=omega, tau=tau, law=law)


def release_sketched_eigenvalue(
    lambda_hat: float,
    m_tilde: float,
    *,
    tau: float,
    omega: float,
    c_x: float,
    law: str,
    noise: Noise,
) -> float:
    r"""Release :math:`\tilde\lambda = \max\{0, \hat\lambda - \omega C(C + 2\tilde m)(\tau - z)\}`.

    Paper: Algorithm 1, line 3; Algorithm 3, line 7.
    Deviation: Lambda = 1, because columns have been brought to unit length.
    Sensitive inputs: lambda_hat.
    """
    sensitivity = sketched_eigenvalue_sensitivity(m_tilde, c_x)
    return noise.bound(
        lambda_hat, above=False, sensitivity=sensitivity, ratio=omega, tau=tau, law=law
    )


def spectral_events(law: str, *, tau: float, omega: float, count: int) -> list[PrivacyEvent]:
    """Return the events of ``count`` shifted releases at noise ``omega`` times sensitivity.

    Paper: Appendix C.4, the tails of z and the cost 1/omega of each release.
    """
    if check_choice("law", law, ("laplace", "gaussian")) == "laplace":
        tail = 0.5 * math.exp(-tau) if tau >= 0.0 else 1.0 - 0.5 * math.exp(tau)
        return [LaplaceEvent(scale=omega, count=count), TailEvent(count * tail)]
    return [GaussianEvent(sigma=omega, count=count), TailEvent(count * float(ndtr(-tau)))]
