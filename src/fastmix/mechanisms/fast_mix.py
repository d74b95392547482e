"""The fast mixing mechanism: a fast sketch, then a small Gaussian sketch and calibrated noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_choice, check_integer, check_real, type_error, value_error
from fastmix.accounting import ComposedEvent, PrivacyEvent, SketchEvent
from fastmix.mechanisms import sampling
from fastmix.mechanisms._input import as_rows
from fastmix.mechanisms.gram import PrivateGram
from fastmix.mechanisms.spectral_bounds import (
    Level,
    check_shift,
    later_level,
    needed_eigenvalue,
    noise_level,
    release_distortion,
    release_sketched_eigenvalue,
    spectral_events,
)
from fastmix.random import RandomState, check_noise, public_generator, secret_generator
from fastmix.rows import Rows
from fastmix.sketches import Sketch, SketchDraw

__all__ = [
    "FastMixRelease",
    "MultipleFastMixRelease",
    "fast_mix",
    "fast_mix_event",
    "multiple_fast_mix",
]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FastMixRelease:
    """What Algorithm 1 gives out; every field is private."""

    sketch: FloatArray
    eta: float
    m_tilde: float
    lambda_tilde: float
    event: PrivacyEvent


@dataclass(frozen=True)
class MultipleFastMixRelease:
    """What Algorithm 3 with line 5 of Algorithm 2 gives out; every field is private.

    ``sketches`` holds one a step: an array of k1 x d rows, or the `PrivateGram` of such rows;
    ``level`` is the gamma that the released bounds reach without noise in every step.
    """

    sketches: tuple[Any, ...]
    eta: float
    m_tilde: tuple[float, ...]
    lambda_tilde: tuple[float, ...]
    level: float
    event: PrivacyEvent


def fast_mix_event(
    *,
    k1: int,
    gamma: float,
    tau: float,
    omega: float,
    n_steps: int = 1,
    shared: bool = False,
    release: str = "laplace",
    curve: str = "fast_mix",
) -> ComposedEvent:
    """Return the event of `multiple_fast_mix`, before any data is seen."""
    releases = 2 if shared else 2 * n_steps
    return ComposedEvent(
        [
            *spectral_events(release, tau=tau, omega=omega, count=releases),
            SketchEvent(curve, gamma, k1 * n_steps),
        ]
    )


def fast_mix(
    X: Rows | npt.ArrayLike,
    *,
    k1: int,
    gamma: float,
    tau: float,
    omega: float,
    sketch: Sketch | SketchDraw,
    c_x: float = 1.0,
    release: str = "laplace",
    engine: str = "cholesky",
    noise: str = "float",
    rng: RandomState = None,
) -> FastMixRelease:
    r"""Release :math:`S_G S_f X + \tilde\eta \xi` (Algorithm 1).

    Parameters
    ----------
    X : array_like of shape (n, d) or Rows
        Data; rows longer than ``c_x`` are shortened to it, always.
    k1 : int
        Rows of the Gaussian sketch.
    gamma : float
        Level that :math:`(\lambda_{\min} + \eta^2)/C^2` must reach; above 5/4.
    tau : float
        Shift that makes the noisy bounds one-sided with high probability.
    omega : float
        Noise of the two spectral releases, in units of their sensitivities.
    sketch : Sketch or SketchDraw
        The fast sketch S_f, or a distribution to draw it from. Its randomness is public.
    c_x : float, default 1.0
        Public bound on the norm of a row.
    release : {"laplace", "gaussian"}
        Noise of the two spectral releases.
    engine : {"cholesky", "literal"}
        Draw from the covariance of the sketch, or form S_G and xi as written.
    noise : {"float", "exact"}
        Of the spectral releases: floating point, or discrete on a grid. The sketch itself is
        always floating point.
    rng : None, int, RandomState or Generator
        ``None`` draws cryptographic noise; anything else voids the guarantee.

    Returns
    -------
    FastMixRelease
        ``sketch``, ``eta``, ``m_tilde``, ``lambda_tilde`` and the privacy event.

    Notes
    -----
    Paper: Algorithm 1, with the scaling by C_X of Algorithm 3.
    Deviation: sketches are brought to unit columns first (docs/corrections.md).
    Sensitive inputs: X.
    """
    many = multiple_fast_mix(
        X,
        k1=k1,
        gamma=gamma,
        tau=tau,
        omega=omega,
        sketch=sketch,
        n_steps=1,
        c_x=c_x,
        release=release,
        engine=engine,
        noise=noise,
        rng=rng,
    )
    return FastMixRelease(
        many.sketches[0], many.eta, many.m_tilde[0], many.lambda_tilde[0], many.event
    )


def multiple_fast_mix(
    X: Rows | npt.ArrayLike,
    *,
    k1: int,
    gamma: Level,
    tau: float,
    omega: float,
    sketch: Sketch | SketchDraw,
    n_steps: int,
    shared: bool = False,
    c_x: float = 1.0,
    release: str = "laplace",
    form: str = "rows",
    engine: str = "cholesky",
    curve: str = "fast_mix",
    noise: str = "float",
    rng: RandomState = None,
    sketch_rng: RandomState = None,
) -> MultipleFastMixRelease:
    r"""Release :math:`S_{G,t} S_{f,t} X + \eta \xi_t` for T steps with one :math:`\eta`.

    Parameters
    ----------
    X : array_like of shape (n, d) or Rows
        Data; rows longer than ``c_x`` are shortened to it, always.
    k1 : int
        Rows of the Gaussian sketch of one step.
    gamma : float or callable
        Level that :math:`(\lambda_{\min} + \eta^2)/C^2` must reach in every step; above 5/4, or 1
        for the sharper curve. A function gets the level that is reached without noise, by the
        released bounds.
    tau : float
        Shift that makes the noisy bounds one-sided with high probability.
    omega : float
        Noise of the spectral releases, in units of their sensitivities.
    sketch : Sketch or SketchDraw
        A distribution, from which each step draws its own fast sketch, or one fixed draw.
    n_steps : int
        Number of steps T.
    shared : bool, default False
        Use one fast sketch, and one pair of spectral releases, for all steps.
    c_x : float, default 1.0
        Public bound on the norm of a row.
    release : {"laplace", "gaussian"}
        Noise of the spectral releases.
    form : {"rows", "gram"}
        Give out k1 x d sketches, or their Gram matrices only.
    engine : {"cholesky", "literal"}
        Draw from the covariance of the sketch, or form S_G and xi as written.
    curve : {"fast_mix", "fast_mix_sharp"}
        Curve that the rows are charged by: the paper's, or the sharper one beyond it.
    noise : {"float", "exact"}
        Of the spectral releases: floating point, or discrete on a grid. The sketch itself is
        always floating point.
    rng : None, int, RandomState or Generator
        ``None`` draws cryptographic noise; anything else voids the guarantee.
    sketch_rng : None, int, RandomState or Generator
        Source of the fast sketch, which is public; by default a fast generator, or ``rng`` if
        that is given.

    Returns
    -------
    MultipleFastMixRelease
        ``sketches``, ``eta``, ``m_tilde``, ``lambda_tilde`` and the privacy event.

    Notes
    -----
    Paper: Algorithm 3 followed by line 5 of Algorithm 2. The sketched data of Algorithm 3 are
    not private and are never given out without their Gaussian sketch and noise.
    Deviation: sketches are brought to unit columns first (docs/corrections.md); ``shared`` is
    beyond the paper (docs/proofs/shared_sketch.md).
    Sensitive inputs: X.
    """
    k1 = check_integer("k1", k1, at_least=1)
    check_choice("curve", curve, ("fast_mix", "fast_mix_sharp"))
    least = 5.0 / 4.0 if curve == "fast_mix" else 1.0
    gamma = later_level(gamma, above=least)
    tau = check_shift(tau)
    omega = check_real("omega", omega, above=0.0)
    n_steps = check_integer("n_steps", n_steps, at_least=1)
    check_choice("release", release, ("laplace", "gaussian"))
    check_choice("form", form, ("rows", "gram"))
    check_choice("engine", engine, ("cholesky", "literal"))
    check_noise(noise, rng)
    rows = as_rows(X, c_x)
    if not isinstance(sketch, (Sketch, SketchDraw)):
        raise type_error("sketch", "be a Sketch or a SketchDraw", sketch)
    if sketch.n != rows.n:
        raise value_error("sketch", f"be for n={rows.n} rows", sketch.n)
    generator = secret_generator(rng)
    # The fast sketch is public: unless the caller seeds everything it never sees the secret stream.
    seeded = generator if sketch_rng is None and rng is not None else sketch_rng
    public = public_generator(seeded)

    bounds, m_tilde, lambda_tilde, sketched = [], [], [], []
    for _ in range(1 if shared else n_steps):
        draw = sketch if isinstance(sketch, SketchDraw) else sketch.sample(public)
        Z, m_hat = rows.sketch(draw)
        # With unit columns S~ = S diag(1/|u_i|) the rows of X~ = diag(|u_i|) X are this long.
        bound = rows.bound * draw.largest_norm
        gram_hat = Z.T @ Z
        lambda_hat = max(0.0, float(np.linalg.eigvalsh(gram_hat)[0]))
        common: dict[str, Any] = {
            "tau": tau,
            "omega": omega,
            "c_x": bound,
            "release": release,
            "rng": generator,
            "noise": noise,
        }
        m = release_distortion(m_hat, draw.coherence, **common)
        lam = release_sketched_eigenvalue(lambda_hat, m, **common)
        bounds.append(bound)
        m_tilde.append(m)
        lambda_tilde.append(lam)
        sketched.append(Z if engine == "literal" else gram_hat)

    released = list(zip(bounds, m_tilde, lambda_tilde, strict=True))
    level = min(lam / (bound * (bound + 2.0 * m)) for bound, m, lam in released)
    gamma = check_real("gamma", gamma(level), above=least)
    eta = max(
        noise_level(needed_eigenvalue(gamma, m, bound, curve) - lam) for bound, m, lam in released
    )
    event = fast_mix_event(
        k1=k1,
        gamma=gamma,
        tau=tau,
        omega=omega,
        n_steps=n_steps,
        shared=shared,
        release=release,
        curve=curve,
    )
    mixers = [_mixer(each, k1, eta, form, engine, generator) for each in sketched]
    sketches = tuple(mixers[0 if shared else t]() for t in range(n_steps))
    return MultipleFastMixRelease(sketches, eta, tuple(m_tilde), tuple(lambda_tilde), level, event)


def _mixer(
    sketched: FloatArray, k1: int, eta: float, form: str, engine: str, rng: np.random.Generator
) -> Callable[[], Any]:
    """Return what draws a Gaussian sketch of S_f X (literal) or from its Gram matrix."""
    if engine == "literal":
        wrap = (lambda rows: PrivateGram((rows,))) if form == "gram" else (lambda rows: rows)
        return lambda: wrap(sampling.literal_rows(sketched, k1, eta, rng))
    root = sampling.covariance_root(sketched, eta)
    draw: Any = sampling.gaussian_gram if form == "gram" else sampling.gaussian_rows
    return lambda: draw(root, k1, rng)
