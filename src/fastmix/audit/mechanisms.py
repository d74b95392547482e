"""Cases of the scalar, gradient and statistics releases."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fastmix import mechanisms
from fastmix._types import FloatArray
from fastmix.accounting import PrivacyEvent, RdpAccountant
from fastmix.audit import pairs
from fastmix.audit.case import Case, Claim, Data, Pair, one_by_one
from fastmix.audit.likelihood import gaussian_vector, one_sided
from fastmix.data import ArrayRows, RowMap
from fastmix.mechanisms import Noise, bounds, make_noise
from fastmix.mechanisms.residuals import RESIDUAL_EDGES
from fastmix.sketches import SRHT, SketchDraw

#: Delta of the claims, unless a caller asks for another one.
DELTA = 1e-2


def accounted(delta: float, *events: PrivacyEvent) -> Claim:
    """Return what the library's account says about these events."""
    return Claim(RdpAccountant(events).get_epsilon(delta), delta)


def bounded_rows(data: Data) -> ArrayRows:
    """Return careless records as mechanisms see them: brought to norm 1 and to [-1, 1]."""
    X, y = data.stretched()
    return ArrayRows(X, RowMap(1.0), y)


def release_case(
    name: str,
    claim: Claim,
    pair: Pair,
    prepare: Callable[[ArrayRows], Callable[[Noise], Any]],
    log_likelihood: Callable[[FloatArray, Data], FloatArray],
    trials: int = 100_000,
    quick: int = 4_000,
) -> Case:
    """Return the case of a mechanism: what it does with rows and noise, and its law."""

    def drawer(data: Data) -> Callable[[np.random.Generator], Any]:
        release = prepare(bounded_rows(data))
        return lambda rng: release(make_noise("float", rng))

    return Case(name, claim, pair, one_by_one(drawer), pair.ratio(log_likelihood), trials, quick)


def distortion(draw: SketchDraw, data: Data) -> float:
    """Return m-hat of one column, from the dense sketch."""
    U = draw.to_dense()
    return float(np.abs(U.T @ (U @ data.X[:, 0]) - data.X[:, 0]).max())


def sketched_eigenvalue(draw: SketchDraw, data: Data) -> float:
    """Return the smallest eigenvalue of one sketched column, from the dense sketch."""
    Z = draw.to_dense() @ data.X[:, 0]
    return float(Z @ Z)


def _laplace_m(name: str, delta: float = 0.0) -> Case:
    """Return the release of m: one row moves m-hat by the whole coherence."""
    draw, tau, omega = SRHT(8, 16).sample(0), 12.0, 1.0
    scale = omega * draw.coherence

    def prepare(rows: ArrayRows) -> Callable[[Noise], list[float]]:
        _, m_hat = rows.sketch(draw)
        level: dict[str, Any] = {"tau": tau, "omega": omega, "c_x": 1.0, "law": "laplace"}
        release = partial(bounds.release_distortion, m_hat, draw.coherence, **level)
        return lambda noise: [release(noise=noise)]

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        return one_sided(values[:, 0], distortion(draw, data) + scale * tau, scale, "laplace")

    claim = _pure(tau, omega, delta)
    return release_case(name, claim, pairs.coherent_row(draw), prepare, log_likelihood)


def _laplace_lambda(name: str, delta: float = 0.0) -> Case:
    """Return the release of lambda at a given m: all rows lean towards one."""
    draw, tau, omega = SRHT(32, 64).sample(0), 2.0, 1.0
    pair = pairs.aligned_rows(draw)
    m = distortion(draw, pair.present)
    scale = omega * (1.0 + 2.0 * m)

    def prepare(rows: ArrayRows) -> Callable[[Noise], list[float]]:
        Z, _ = rows.sketch(draw)
        lambda_hat = float(Z[:, 0] @ Z[:, 0])
        level: dict[str, Any] = {"tau": tau, "omega": omega, "c_x": 1.0, "law": "laplace"}
        release = partial(bounds.release_sketched_eigenvalue, lambda_hat, m, **level)
        return lambda noise: [release(noise=noise)]

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        centre = sketched_eigenvalue(draw, data) - scale * tau
        return one_sided(values[:, 0], centre, scale, "laplace")

    return release_case(name, _pure(tau, omega, delta), pair, prepare, log_likelihood)


def _pure(tau: float, omega: float, delta: float) -> Claim:
    noise, _ = bounds.spectral_events("laplace", tau=tau, omega=omega, count=1)
    return Claim(noise.pure_epsilon, delta)


def _gaussian_steps(
    name: str, thetas: tuple[float, ...], trials: int, delta: float = DELTA
) -> Case:
    """Return noisy gradients at given points: residuals beyond the clip, at each of them."""
    sigma = 2.0 * math.sqrt(len(thetas))

    def prepare(rows: ArrayRows) -> Callable[[Noise], FloatArray]:
        points = [np.array([theta]) for theta in thetas]
        step = partial(mechanisms.noisy_gradient, rows, clip=1.0, sigma=sigma)
        return lambda noise: np.concatenate([step(theta, noise=noise) for theta in points])

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        residuals = np.clip(data.y[:, None] - data.X * np.array(thetas), -1.0, 1.0)
        return gaussian_vector(values, (data.X * residuals).sum(axis=0), sigma)

    claim = accounted(delta, *mechanisms.gradient_events([sigma] * len(thetas)))
    return release_case(name, claim, pairs.lone_row(), prepare, log_likelihood, trials)


def _gaussian_statistics(name: str, delta: float = DELTA) -> Case:
    """Return the sufficient statistics: one record moves all three of them by 1."""
    sigma = 2.0 * math.sqrt(3.0)

    def prepare(rows: ArrayRows) -> Callable[[Noise], list[float]]:
        def release(noise: Noise) -> list[float]:
            out = mechanisms.noisy_statistics(rows, sigma=sigma, noise=noise)
            return [out.gram[0, 0], out.moment[0], out.eigenvalue]

        return release

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        x = data.X[:, 0]
        return gaussian_vector(values, np.array([x @ x, x @ data.y, x @ x]), sigma)

    claim = accounted(delta, mechanisms.statistics_event(sigma=sigma))
    return release_case(name, claim, pairs.lone_row(), prepare, log_likelihood)


def _gaussian_mean(name: str, delta: float = DELTA) -> Case:
    """Return the mean: one record moves the sum by 1; a mean so small is never shortened."""
    sigma = 2.0

    def prepare(rows: ArrayRows) -> Callable[[Noise], FloatArray]:
        return lambda noise: mechanisms.noisy_mean(rows, sigma=sigma, noise=noise)

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        return gaussian_vector(len(data.X) * values, data.X.sum(axis=0), sigma)

    claim = accounted(delta, mechanisms.mean_event(sigma=sigma))
    return release_case(name, claim, pairs.lone_row(64), prepare, log_likelihood)


def _gaussian_residual_counts(name: str, delta: float = DELTA) -> Case:
    """Return the counts of residuals: one record, beyond the clip, is in the last bin."""
    sigma, theta = 2.0, -4.0

    def prepare(rows: ArrayRows) -> Callable[[Noise], FloatArray]:
        release = partial(mechanisms.noisy_residual_counts, rows, np.array([theta]), clip=1.0)
        return lambda noise: release(sigma=sigma, noise=noise)

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        sizes = np.minimum(np.abs(data.y - theta * data.X[:, 0]), 1.0)
        counts = [
            ((low < sizes) & (sizes <= high)).sum()
            for low, high in itertools.pairwise(RESIDUAL_EDGES)
        ]
        return gaussian_vector(values, np.array(counts), sigma)

    claim = accounted(delta, mechanisms.residual_event(sigma))
    return release_case(name, claim, pairs.lone_row(), prepare, log_likelihood, quick=2_000)


_CASES: dict[str, Callable[..., Case]] = {
    "Laplace release of m": _laplace_m,
    "Laplace release of lambda": _laplace_lambda,
    "Gaussian step": partial(_gaussian_steps, thetas=(-4.0,), trials=200_000),
    "Gaussian steps, two": partial(_gaussian_steps, thetas=(-4.0, 4.0), trials=100_000),
    "Gaussian statistics": _gaussian_statistics,
    "Gaussian mean": _gaussian_mean,
    "Gaussian counts of residuals": _gaussian_residual_counts,
}

#: Cases by name, as functions of delta that build them.
MECHANISMS: dict[str, Callable[..., Case]] = {
    name: partial(build, name) for name, build in _CASES.items()
}
