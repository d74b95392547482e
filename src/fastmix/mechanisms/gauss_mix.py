"""The Gaussian mixing mechanism: a dense Gaussian sketch with calibrated noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_choice, check_integer, check_real
from fastmix.accounting import ComposedEvent, PrivacyEvent, SketchEvent
from fastmix.mechanisms import sampling
from fastmix.mechanisms._input import as_rows
from fastmix.mechanisms.gram import PrivateGram
from fastmix.mechanisms.spectral_bounds import (
    Level,
    check_shift,
    later_level,
    noise_level,
    release_eigenvalue,
    spectral_events,
)
from fastmix.random import RandomState, check_noise, secret_generator
from fastmix.rows import Rows

__all__ = ["GaussMixRelease", "gauss_mix", "gauss_mix_event"]


@dataclass(frozen=True)
class GaussMixRelease:
    """What the Gaussian mixing mechanism gives out; every field is private.

    ``sketches`` holds one a step: an array of k x d rows, or the `PrivateGram` of such rows;
    ``level`` is the gamma that ``lambda_tilde`` reaches without noise.
    """

    sketches: tuple[Any, ...]
    eta: float
    lambda_tilde: float
    level: float
    event: PrivacyEvent

    @property
    def sketch(self) -> Any:
        """The sketch of the first step."""
        return self.sketches[0]


def gauss_mix_event(
    *, k: int, gamma: float, tau: float, lambda_sigma: float, n_steps: int = 1
) -> ComposedEvent:
    """Return the event of `gauss_mix`, before any data is seen."""
    return ComposedEvent(
        [
            *spectral_events("gaussian", tau=tau, omega=lambda_sigma, count=1),
            SketchEvent("gauss_mix", gamma, k * n_steps),
        ]
    )


def gauss_mix(
    X: Rows | npt.ArrayLike,
    *,
    k: int,
    gamma: Level,
    tau: float,
    lambda_sigma: float,
    n_steps: int = 1,
    c_x: float = 1.0,
    form: str = "rows",
    engine: str = "cholesky",
    noise: str = "float",
    rng: RandomState = None,
) -> GaussMixRelease:
    r"""Release Gaussian sketches :math:`S_t X + \eta \xi_t` of the rows of X.

    Parameters
    ----------
    X : array_like of shape (n, d) or Rows
        Data; rows longer than ``c_x`` are shortened to it, always.
    k : int
        Rows of each sketch.
    gamma : float or callable
        Level that :math:`(\lambda_{\min}(X^\top X) + \eta^2)/C^2` must reach; above 1. A function
        gets the level that the private eigenvalue reaches without noise, which is released.
    tau : float
        Shift of the private eigenvalue.
    lambda_sigma : float
        Noise of the private eigenvalue, in units of its sensitivity.
    n_steps : int, default 1
        Number of independent sketches, with one eigenvalue and one eta for all.
    c_x : float, default 1.0
        Public bound on the norm of a row.
    form : {"rows", "gram"}
        Give out k x d sketches, or their Gram matrices only.
    engine : {"cholesky", "literal"}
        Draw from the covariance of the sketch, or form S_t and xi_t as written.
    noise : {"float", "exact"}
        Of the spectral releases: floating point, or discrete on a grid. The sketch itself is
        always floating point.
    rng : None, int, RandomState or Generator
        ``None`` draws cryptographic noise; anything else voids the guarantee.

    Returns
    -------
    GaussMixRelease
        Sketches, ``eta``, ``lambda_tilde`` and the privacy event.

    Notes
    -----
    Paper: Proposition 2, with the private eigenvalue of Lev et al. (2025).
    Deviation: none in distribution.
    Sensitive inputs: X.
    """
    k = check_integer("k", k, at_least=1)
    gamma = later_level(gamma, above=1.0)
    tau = check_shift(tau)
    lambda_sigma = check_real("lambda_sigma", lambda_sigma, above=0.0)
    n_steps = check_integer("n_steps", n_steps, at_least=1)
    check_choice("form", form, ("rows", "gram"))
    check_choice("engine", engine, ("cholesky", "literal"))
    check_noise(noise, rng)
    rows = as_rows(X, c_x)
    generator = secret_generator(rng)

    gram_hat = rows.gram()
    lambda_hat = max(0.0, float(np.linalg.eigvalsh(gram_hat)[0]))
    lambda_tilde = release_eigenvalue(
        lambda_hat, tau=tau, sigma=lambda_sigma, c_x=rows.bound, rng=generator, noise=noise
    )
    level = lambda_tilde / rows.bound**2
    gamma = check_real("gamma", gamma(level), above=1.0)
    event = gauss_mix_event(k=k, gamma=gamma, tau=tau, lambda_sigma=lambda_sigma, n_steps=n_steps)
    eta = noise_level(gamma * rows.bound**2 - lambda_tilde)
    if engine == "literal":
        sketches = [_literal(rows, k, eta, form, generator) for _ in range(n_steps)]
    else:
        draw: Any = sampling.gaussian_gram if form == "gram" else sampling.gaussian_rows
        root = sampling.covariance_root(gram_hat, eta)
        sketches = [draw(root, k, generator) for _ in range(n_steps)]
    return GaussMixRelease(tuple(sketches), eta, lambda_tilde, level, event)


def _literal(rows: Rows, k: int, eta: float, form: str, rng: np.random.Generator) -> Any:
    """Form ``S X + eta xi`` with S drawn block by block."""
    sketch = eta * rng.standard_normal((k, rows.d))
    for A, _ in rows.blocks():
        sketch += rng.standard_normal((k, len(A))) @ A
    return PrivateGram((sketch,)) if form == "gram" else sketch
