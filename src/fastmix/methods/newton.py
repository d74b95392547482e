"""The iteration that IHM, FastIHM and IHS share, and what is expected of it."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle

import numpy as np
from scipy.linalg import solve_triangular

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.mechanisms import MixRelease, PrivateGram, noisy_gradient
from fastmix.methods.inference import NewtonTrace
from fastmix.methods.levels import Level, step_lengths
from fastmix.methods.plan import Draws, Forecast, Solution


def mixed_newton(
    rows: Rows,
    release: MixRelease,
    level: Level,
    *,
    k: int,
    clip: float,
    shrinkage: bool,
    draws: Draws,
    mean: FloatArray | None = None,
) -> Solution:
    """Run the steps on released sketches; return coefficients and the trace.

    With a ``mean`` the sketches are of the centred features, and the Hessian gets the mean back.

    Notes
    -----
    Paper: Algorithm 2, lines 3-8.
    Deviation: docs/proofs/joint_account.md for the tuned variants, and centring.md for the mean.
    """
    hessians: Sequence[PrivateGram] = release.sketches
    # With shrinkage the noise of the sketch is the ridge that the steps go to, and stays in.
    if level.correction and release.eta and not shrinkage:
        shift = -level.correction * k * release.eta**2
        hessians = [hessian.shifted(shift) for hessian in hessians]
    if mean is not None:
        hessians = [hessian.bordered(mean, k * rows.n) for hessian in hessians]
    spread = k * max(map(_inverse_trace, hessians)) / rows.n if level.damped else 0.0
    scales = tuple(k * length for length in step_lengths(level, spread))
    ridge = release.eta**2 if shrinkage else 0.0
    theta = newton_steps(
        cycle(hessians),
        lambda t, theta: noisy_gradient(
            rows, theta, clip=clip, sigma=level.sigmas[t], noise=draws.noise
        ),
        scales=scales,
        d=rows.d,
        ridge=ridge,
        progress=draws.progress,
    )
    trace = NewtonTrace(
        sketches=release.sketches,
        hessians=tuple(hessians),
        rows=k,
        eta=release.eta,
        scales=scales,
        sigmas=tuple(sigma * clip for sigma in level.sigmas),
        ridge=ridge,
        floor=float(np.min(release.lambda_tilde)),
        border=None if mean is None else math.sqrt(rows.n) * mean,
    )
    return Solution(
        theta,
        gamma=level.gamma,
        eta=release.eta,
        gradient_noise=level.sigmas[-1] * clip,
        trace=trace,
    )


def _inverse_trace(hessian: PrivateGram) -> float:
    """Return the trace of the inverse; of the pseudoinverse if the matrix is singular."""
    matrix = hessian.matrix()
    try:
        root = np.linalg.cholesky(matrix)
        return float(np.sum(solve_triangular(root, np.eye(len(root)), lower=True) ** 2))
    except np.linalg.LinAlgError:
        return float(np.trace(np.linalg.pinv(matrix, hermitian=True)))


def newton_steps(
    hessians: Iterable[PrivateGram],
    gradient: Callable[[int, FloatArray], FloatArray],
    *,
    scales: Sequence[float],
    d: int,
    ridge: float = 0.0,
    progress: Callable[[int, int], None],
) -> FloatArray:
    r"""Run :math:`\theta \gets \theta + s_t H_t^{-1} (g(\theta) - \rho \theta)` from zero.

    Notes
    -----
    Paper: Algorithm 2, lines 3-8; the ridge is eta squared there and 0 in the experiments.
    """
    theta = np.zeros(d)
    for t, (scale, hessian) in enumerate(zip(scales, hessians, strict=False)):
        progress(t + 1, len(scales))
        g = gradient(t, theta)
        theta = theta + scale * hessian.solve(g - ridge * theta)
    return theta


def follow_steps(
    level: Level, eta_squared: float, n: int, values: FloatArray, theta_squared: FloatArray
) -> Forecast:
    """Follow the steps in each eigenvector: contraction and noise of every step.

    The released Hessian is taken at its mean, and no residual is clipped.
    """
    hessian = values + (1.0 - level.correction) * eta_squared
    noise, left = np.zeros_like(values), np.ones_like(values)
    lengths = step_lengths(level, float(np.sum(1.0 / hessian)) / n)
    for length, sigma in zip(lengths, level.sigmas, strict=True):
        contraction = 1.0 - length * values / hessian
        noise = contraction**2 * noise + (sigma * length / hessian) ** 2
        left *= contraction
    return Forecast(
        eta=math.sqrt(eta_squared),
        gradient_noise=level.sigmas[-1],
        noise_risk=float(values @ noise) / n,
        bias_risk=float(values @ (left**2 * theta_squared)) / n,
    )
