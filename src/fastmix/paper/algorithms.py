"""Algorithms 1, 2 and 3 as the paper prints them, one function each, with its line numbers.

The estimators draw the same releases from equal distributions, faster; here every line is there.
Three readings differ from the page: rows longer than the public bound are shortened to it, always;
columns of the sketch are brought to norm 1, so Lambda-hat is 1 and C_X the bound on the rows after
that, ``Z.bound`` (docs/corrections.md, 1); and what Algorithm 3 hands to Algorithm 2, the sketched
data, never leaves the library.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_integer, check_matrix, check_real, type_error
from fastmix.accounting import PrivacyEvent, RdpAccountant
from fastmix.data import ArrayRows, RowMap, Rows
from fastmix.errors import InvalidValueError, WeakPrivacyWarning, caller_level
from fastmix.random import RandomState, public_generator
from fastmix.releases import (
    GRADIENT,
    SKETCHED_EIGENVALUE,
    SKETCHES,
    Noise,
    spectral_events,
    symmetric_solve,
)
from fastmix.releases.bounds import Source, bounded_distortion, drawn_sketch, noise_level
from fastmix.releases.noise import RandomNoise, as_noise
from fastmix.sketches import SRHT, Sketch, SketchDraw

#: Bounds that fail more often than this make a guarantee that nobody should rely on.
_RARE = 0.01


@dataclass(frozen=True)
class Mixed:
    """A private sketch with its noise level, and the account of all that was released."""

    sketch: FloatArray  #: ``S_G Z + eta xi``, of shape (k1, d).
    eta: float
    events: tuple[PrivacyEvent, ...]

    def epsilon(self, delta: float) -> float:
        """Return an epsilon for which the release is (epsilon, delta)-DP; inf if there is none."""
        return RdpAccountant(self.events).get_epsilon(delta)


@dataclass(frozen=True)
class Regressed:
    """Private coefficients with the noise level of each step, and the account."""

    theta: FloatArray
    etas: tuple[float, ...]
    events: tuple[PrivacyEvent, ...]

    def epsilon(self, delta: float) -> float:
        """Return an epsilon for which the release is (epsilon, delta)-DP; inf if there is none."""
        return RdpAccountant(self.events).get_epsilon(delta)


def algorithm_1(
    X: npt.ArrayLike,
    *,
    k1: int,
    gamma: float,
    tau: float,
    omega: float,
    sketch: Sketch | SketchDraw,
    c_x: float = 1.0,
    rng: RandomNoise = None,
) -> Mixed:
    r"""FastMix: release :math:`S_G S_f X + \tilde\eta \xi`.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Data; rows longer than the public ``c_x`` are shortened to it.
    k1 : int
        Rows of the Gaussian sketch.
    gamma, tau, omega : float
        Level, shift and Laplace scale; `calibrate_fast_mix` gives all three for a target.
    sketch : Sketch or SketchDraw
        The public sketch :math:`S_f`, or a distribution to draw it from.
    c_x : float, default 1.0
        Public bound on the norm of a row, as in Algorithm 3.
    rng : None, int, RandomState, Generator or Noise
        ``None`` draws cryptographic noise; a seed voids the guarantee.

    Returns
    -------
    Mixed
        The sketch, :math:`\tilde\eta`, and ``epsilon(delta)``.

    Notes
    -----
    Paper: Algorithm 1; Theorem 1 is its account.
    Sensitive inputs: X.
    """
    rows, noise = _checked(X, None, c_x, rng, k1=k1)
    _check_noise(gamma, tau, omega, 1)
    _check_sketch(sketch)
    law: dict[str, Any] = {"tau": tau, "law": "laplace"}
    draw = drawn_sketch(sketch, _public(noise, rng), noise)
    Z = Source.sketched(rows, draw, literal=True)  # line 1: Z and m-hat; the draw has Delta-hat
    m = bounded_distortion(Z, draw, omega=omega, noise=noise, **law)  # 2
    lam = noise.release(SKETCHED_EIGENVALUE, Z, m=m, sigma=omega, **law)  # 3
    eta = noise_level(gamma * Z.bound * (Z.bound + 2.0 * m) - lam)  # 4
    return Mixed(_gaussian_sketch(Z, k1, gamma, eta, noise), eta, tuple(noise.drawn))  # 5


def algorithm_2(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    gamma: float,
    tau: float,
    sigma: float,
    omega: float,
    k1: int,
    k2: int | None = None,
    steps: int = 4,
    clip: float = 1.0,
    sketch: Sketch | None = None,
    shrinkage: bool = True,
    eta_per_step: bool = False,
    step_length: float = 1.0,
    rng: RandomNoise = None,
) -> Regressed:
    r"""FastIHM: private least squares with a fresh FastMix sketch as the Hessian of each step.

    Parameters
    ----------
    X, y : array_like of shape (n, d) and (n,)
        Data; rows are shortened to norm 1.
    gamma, tau, sigma, omega : float
        Noise parameters of the paper; ``sigma`` is the standard deviation in every coordinate of a
        gradient. `calibrate_fast_ihm` gives all four.
    k1, k2 : int
        Rows of the Gaussian sketch, at least d, and of the SRHT.
    steps : int, default 4
        T.
    clip : float, default 1.0
        Residuals are clipped to [-clip, clip].
    sketch : Sketch, optional
        Another distribution of :math:`S_f` instead of ``SRHT(k2, n)``.
    shrinkage : bool, default True
        Keep the term :math:`-\eta^2 \theta` of line 6; the paper's experiments leave it out.
    eta_per_step : bool, default False
        Use each step's own :math:`\tilde\eta_t` as the authors' code does, not the largest. The
        account is the same: every step alone reaches the level gamma (docs/questions.md).
    step_length : float, default 1.0
        Factor of each step, as `debiased_step` returns; it is public, so it costs nothing.
    rng : None, int, RandomState, Generator or Noise
        ``None`` draws cryptographic noise; a seed voids the guarantee.

    Returns
    -------
    Regressed
        Coefficients, noise levels, and ``epsilon(delta)``.

    Notes
    -----
    Paper: Algorithm 2; Appendix E is its account.
    Sensitive inputs: X, y.
    """
    rows, noise = _checked(X, y, 1.0, rng, k1=k1, steps=steps)
    check_integer("k1", k1, at_least=rows.d)  # line 7 inverts
    for name, value in (("clip", clip), ("sigma", sigma), ("step_length", step_length)):
        check_real(name, value, above=0.0)
    if sketch is None:
        sketch = SRHT(check_integer("k2", k2, at_least=1), rows.n)
    _check_noise(gamma, tau, omega, steps)
    _check_sketch(sketch)
    theta = np.zeros(rows.d)  # line 1
    etas, sketched = algorithm_3(  # 2
        rows, gamma=gamma, tau=tau, omega=omega, sketch=sketch, steps=steps, noise=noise,
        public=_public(noise, rng),
    )  # fmt: skip
    if not eta_per_step:
        etas = (max(etas),) * steps
    for eta, Z in zip(etas, sketched, strict=True):  # 3
        X_hat = _gaussian_sketch(Z, k1, gamma, eta, noise)  # 4-5
        given = {"theta": theta, "clip": clip, "sigma": sigma / clip}
        g = noise.release(GRADIENT, rows, **given) - shrinkage * eta**2 * theta  # 6
        theta = theta + step_length * symmetric_solve(X_hat.T @ X_hat / k1, g)  # 7
    return Regressed(theta, etas, tuple(noise.drawn))  # 9


def algorithm_3(
    rows: Rows,
    *,
    gamma: float,
    tau: float,
    omega: float,
    sketch: Sketch | SketchDraw,
    steps: int,
    noise: Noise,
    public: np.random.Generator,
) -> tuple[tuple[float, ...], tuple[Source, ...]]:
    r"""MultipleFastMixing: the noise level :math:`\tilde\eta_t` and the sketched data of each step.

    The paper's :math:`\eta` (lines 1 and 9) is the largest of the levels. The sketched data are
    sensitive: Algorithm 2 mixes them before anything is released.

    Parameters
    ----------
    rows : Rows
        Data whose map has the bound :math:`C_X`, such as ``ArrayRows(X, RowMap(c_x))`` of
        `fastmix.data`.
    gamma, tau, omega : float
        Level, shift and Laplace scale.
    sketch : Sketch or SketchDraw
        A distribution that every step draws from, or one sketch for all steps.
    steps : int
        T.
    noise : Noise
        Noise that keeps the account, such as ``fastmix.releases.make_noise()``.
    public : Generator
        Generator of the public sketches.

    Returns
    -------
    etas : tuple of float
        The levels, private.
    sketched : tuple of Source
        The sketched data, sensitive.

    Notes
    -----
    Paper: Algorithm 3.
    Sensitive inputs: rows.
    """
    law: dict[str, Any] = {"tau": tau, "law": "laplace"}
    etas, sketched = [], []
    for _ in range(steps):  # line 2
        draw = drawn_sketch(sketch, public, noise)  # 3
        Z = Source.sketched(rows, draw, literal=True)  # 4-5: Z and m-hat; the draw has Delta-hat
        m = bounded_distortion(Z, draw, omega=omega, noise=noise, **law)  # 6
        lam = noise.release(SKETCHED_EIGENVALUE, Z, m=m, sigma=omega, **law)  # 7
        etas.append(noise_level(gamma * Z.bound * (Z.bound + 2.0 * m) - lam))  # 8
        sketched.append(Z)
    return tuple(etas), tuple(sketched)  # 11


def debiased_step(k: int, d: int) -> float:
    r"""Return the factor of a step that makes a Gaussian sketch of k rows contract fastest.

    With W the Gram matrix of k standard normal rows over k, a step leaves the error
    :math:`I - s W^{-1}`. Its mean square is least at :math:`s = E W^{-1} / E W^{-2} =
    (k-d)(k-d-3) / (k(k-1))`; below 4 rows more than columns the second moment is infinite.

    Paper: the open question of Section 4.1 (debiasing of the sketched Hessian).
    """
    check_integer("k", k, at_least=d + 4)
    return (k - d) * (k - d - 3) / (k * (k - 1))


def _gaussian_sketch(Z: Source, k1: int, gamma: float, eta: float, noise: Noise) -> FloatArray:
    """Release ``S_G Z + eta xi``, formed as written (Algorithm 1, line 5; Algorithm 2, line 5)."""
    given = {"curve": "fast_mix", "sources": 1, "count": 1, "form": "rows"}
    (X_hat,) = noise.release(SKETCHES, (Z,), k=k1, gamma=gamma, eta=eta, **given)
    return np.asarray(X_hat)


def _checked(
    X: npt.ArrayLike, y: npt.ArrayLike | None, c_x: float, rng: RandomNoise, **sizes: int
) -> tuple[Rows, Noise]:
    """Return rows of norm at most ``c_x``, and noise."""
    for name, value in sizes.items():
        check_integer(name, value, at_least=1)
    X = check_matrix("X", X)
    if y is not None:
        y = check_matrix("y", np.reshape(y, (-1, 1)))[:, 0].astype(np.float64)
        if not np.isfinite(y).all():
            raise InvalidValueError
    return ArrayRows(X, RowMap(check_real("c_x", c_x, above=0.0)), y), as_noise(rng)


def _public(noise: Noise, rng: RandomNoise) -> np.random.Generator:
    """Return the generator of public sketches; a caller who gives a seed seeds it, too."""
    seeded: RandomState = noise.rng if rng is not None and not isinstance(rng, Noise) else None
    return public_generator(seeded)


def _check_sketch(sketch: Any) -> None:
    if not isinstance(sketch, (Sketch, SketchDraw)):
        raise type_error("sketch", "be a sketch such as SRHT(k2, n), or a draw of one", sketch)


def _check_noise(gamma: float, tau: float, omega: float, steps: int) -> None:
    """Check level and bounds, and warn if the bounds fail too often to protect."""
    check_real("gamma", gamma, above=5.0 / 4.0)
    check_real("tau", tau, at_least=0.0)
    check_real("omega", omega, above=0.0)
    events = spectral_events("laplace", tau=tau, omega=omega, count=1)
    tail = 2 * steps * sum(event.tail for event in events)
    if tail > _RARE:
        needed = "Theorem 1 needs tau >= log(3 / (2 delta)); calibrate_fast_mix"
        if steps > 1:
            needed = "Appendix E needs tau >= log(3 T / delta); calibrate_fast_ihm"
        smaller = "smaller " if tail < 1.0 else ""
        warnings.warn(
            f"tau={tau:g} is too small: a private bound fails with probability up to "
            f"{min(1.0, tail):.2g}, so epsilon is infinite at every {smaller}delta. {needed} "
            "chooses tau, omega and gamma.",
            WeakPrivacyWarning,
            stacklevel=caller_level(),
        )
