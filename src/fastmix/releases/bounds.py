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

from fastmix._types import FloatArray
from fastmix._validation import (
    check_choice,
    check_integer,
    check_matrix,
    check_real,
    type_error,
    value_error,
)
from fastmix.accounting import ComposedEvent
from fastmix.data import ArrayRows, RowMap, Rows
from fastmix.random import RandomState, public_generator
from fastmix.releases.checks import not_negative
from fastmix.releases.moments import GramRelease
from fastmix.releases.noise import Noise, RandomNoise, as_noise
from fastmix.releases.release import Bound, Gaussian, spectral_events
from fastmix.releases.sensitivity import (
    distortion_sensitivity,
    eigenvalue_sensitivity,
    sketched_eigenvalue_sensitivity,
    sketched_gram_sensitivity,
)
from fastmix.sketches import Sketch, SketchDraw

#: Columns that are not orthogonal have a coherence of at least about 1/n (Welch); anything below
#: this is the rounding error of a sketch with orthogonal columns.
_ORTHOGONAL = 1e-12


class Source:
    """What a Gaussian sketch is drawn of: sensitive, never released itself, shown or copied.

    ``blocks`` gives its rows, for a sketch that is formed as written. As a dataclass it could be
    copied by `dataclasses.asdict`.
    """

    constant = 0.0
    most = additions = 0  # rounding of sketches has no room

    def __init__(
        self,
        rows: Rows,
        bound: float,
        gram_hat: FloatArray,
        m_hat: float = 0.0,
        blocks: Callable[[], Iterable[FloatArray]] | None = None,
    ) -> None:
        self.n, self.d, self.bound = rows.n, rows.d, bound
        self.gram_hat, self.m_hat, self.blocks = gram_hat, m_hat, blocks

    @classmethod
    def sketched(cls, rows: Rows, draw: SketchDraw, *, literal: bool = False) -> "Source":
        """Return the sketched rows. With unit columns they are so long: docs/corrections.md."""
        Z, m_hat = rows.sketch(draw)
        blocks = partial(iter, (Z,)) if literal else None
        return cls(rows, rows.bound * draw.largest_norm, Z.T @ Z, m_hat, blocks)

    def __reduce__(self) -> Any:
        raise TypeError("Spectrum must stay where the data are: it holds what is to be sketched.")


def _smallest_eigenvalue(source: Source, **given: Any) -> float:
    return max(0.0, float(np.linalg.eigvalsh(source.gram_hat)[0]))


#: :math:`\tilde\lambda = \max\{0, \hat\lambda - \omega C^2 (\tau - z)\}`, a lower bound.
#: Paper: the private eigenvalue of GaussMix (Lev et al., 2025) and IHM (Lev et al., 2026).
EIGENVALUE = Bound(
    name="eigenvalue",
    statement="a lower bound on the smallest eigenvalue of the Gram matrix",
    proof="Weyl's inequality, as in the proof of Lemma 5",
    statistic=_smallest_eigenvalue,
    sensitivity=lambda public: eigenvalue_sensitivity(public.bound),
    above=False,
)

#: :math:`\tilde m = \max\{0, \hat m + \omega \hat\Delta (\tau - z)\}`, an upper bound.
#: Paper: Algorithm 1, line 2; Algorithm 3, line 6.
DISTORTION = Bound(
    name="distortion",
    statement="an upper bound on how much a fast sketch distorts the rows",
    proof="Lemma 4",
    statistic=lambda source, coherence: source.m_hat,
    sensitivity=lambda public, coherence: distortion_sensitivity(coherence, public.bound),
    given={"coherence": not_negative},
    above=True,
)

#: :math:`\tilde\lambda = \max\{0, \hat\lambda - \omega C(C + 2\tilde m)(\tau - z)\}`.
#: Paper: Algorithm 1, line 3; Algorithm 3, line 7.
#: Deviation: Lambda = 1, because columns have been brought to unit length.
SKETCHED_EIGENVALUE = Bound(
    name="sketched eigenvalue",
    statement="a lower bound on the smallest eigenvalue of the Gram matrix of a fast sketch",
    proof="Lemma 5",
    statistic=_smallest_eigenvalue,
    sensitivity=lambda public, m: sketched_eigenvalue_sensitivity(m, public.bound),
    given={"m": not_negative},
    above=False,
)

#: :math:`X^\top S^\top S X` for a fast sketch S whose distortion is at most ``m``.
SKETCHED_GRAM = Gaussian(
    name="gram of a fast sketch",
    statement="the Gram matrix of a fast sketch of the features",
    proof="docs/proofs/symmetric_noise.md, Section 2",
    statistic=lambda source, m: source.gram_hat,
    sensitivity=lambda public, m: sketched_gram_sensitivity(m, public.bound),
    given={"m": not_negative},
    symmetric=True,
    finish=lambda value, public, sigma, m: GramRelease(
        value, sigma * sketched_gram_sensitivity(m, public.bound), m
    ),
)


def bounded_distortion(
    source: Source, draw: SketchDraw, *, tau: float, omega: float, law: str, noise: Noise
) -> float:
    """Release a bound on the distortion of a drawn sketch.

    At coherence 0 the distortion is 0 for all data, and 0 is released instead of rounding errors.
    Sensitive inputs: source.
    """
    given: dict[str, Any] = {"tau": tau, "sigma": omega, "law": law}
    if draw.coherence < _ORTHOGONAL:
        noise.skip(DISTORTION, **given)
        return 0.0
    return float(noise.release(DISTORTION, source, coherence=draw.coherence, **given))


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
    r"""Release a lower bound on the smallest eigenvalue of the data, `EIGENVALUE`.

    Parameters are those of `fast_bounds`; a ``literal`` sketch will be formed from the rows.

    Sensitive inputs: X.
    """
    rows, omega, noise = _checked(X, c_x, tau, omega, rng)
    blocks = (lambda: (A for A, _ in rows.blocks())) if literal else None
    source = Source(rows, rows.bound, rows.gram(), blocks=blocks)
    lambda_tilde = noise.release(EIGENVALUE, source, sigma=omega, tau=tau, law="gaussian")
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
    level: dict[str, Any] = {"tau": tau, "law": law}
    m_tilde, lambda_tilde, sources = [], [], []
    for _ in range(count):
        draw = drawn_sketch(sketch, public, noise)
        source = Source.sketched(rows, draw, literal=literal)
        m = bounded_distortion(source, draw, omega=omega, noise=noise, **level)
        m_tilde.append(m)
        lambda_tilde.append(noise.release(SKETCHED_EIGENVALUE, source, m=m, sigma=omega, **level))
        sources.append(source)
    event = ComposedEvent(spectral_events(law, tau=tau, omega=omega, count=2 * count))
    curve = "fast_mix_sharp" if sharp else "fast_mix"
    return Spectrum(tuple(m_tilde), tuple(lambda_tilde), curve, event, tuple(sources))


def drawn_sketch(
    sketch: Sketch | SketchDraw, public: np.random.Generator, noise: Noise
) -> SketchDraw:
    """Return a drawn sketch as it is, or a public draw from a distribution, on record."""
    if isinstance(sketch, SketchDraw):
        return sketch
    draw: SketchDraw = noise.public(lambda: sketch.sample(public))
    return draw


def _checked(
    X: Rows | npt.ArrayLike, c_x: float, tau: float, omega: float, rng: RandomNoise
) -> tuple[Rows, float, Noise]:
    """Return rows, which bring their own bound or get ``c_x``, omega, and noise."""
    check_real("tau", tau, at_least=0.0)
    omega = check_real("omega", omega, above=0.0)
    if not isinstance(X, Rows):
        X = ArrayRows(check_matrix("X", X), RowMap(check_real("c_x", c_x, above=0.0)))
    return X, omega, as_noise(rng)


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
