"""Cases of the scalar, gradient and statistics releases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fastmix import mechanisms
from fastmix.accounting import PrivacyEvent, RdpAccountant
from fastmix.audit import pairs
from fastmix.audit.case import Case, Claim, Data, FloatArray, one_by_one
from fastmix.audit.likelihood import gaussian_vector, one_sided
from fastmix.data import ArrayRows, RowMap
from fastmix.mechanisms import bounds
from fastmix.mechanisms.noise import make_noise
from fastmix.mechanisms.residuals import RESIDUAL_EDGES
from fastmix.sketches import SRHT, SketchDraw

__all__ = [
    "DELTA",
    "MECHANISMS",
    "accounted",
    "bounded_rows",
    "distortion",
    "gaussian_mean",
    "gaussian_residual_counts",
    "gaussian_statistics",
    "gaussian_steps",
    "laplace_lambda",
    "laplace_m",
    "sketched_eigenvalue",
]

#: Delta of the claims, unless a caller asks for another one.
DELTA = 1e-2


def accounted(delta: float, *events: PrivacyEvent) -> Claim:
    """Return what the library's account says about these events."""
    return Claim(RdpAccountant(events).get_epsilon(delta), delta)


def bounded_rows(data: Data) -> ArrayRows:
    """Return careless records as mechanisms see them: brought to norm 1 and to [-1, 1]."""
    X, y = data.stretched()
    return ArrayRows(X, RowMap(1.0), y)


def distortion(draw: SketchDraw, data: Data) -> float:
    """Return m-hat of one column, from the dense sketch."""
    U = draw.to_dense()
    return float(np.abs(U.T @ (U @ data.X[:, 0]) - data.X[:, 0]).max())


def sketched_eigenvalue(draw: SketchDraw, data: Data) -> float:
    """Return the smallest eigenvalue of one sketched column, from the dense sketch."""
    Z = draw.to_dense() @ data.X[:, 0]
    return float(Z @ Z)


def laplace_m(delta: float = 0.0) -> Case:
    """Return the release of m: one row moves m-hat by the whole coherence."""
    draw, tau, omega = SRHT(8, 16).sample(0), 12.0, 1.0
    pair, scale = pairs.coherent_row(draw), omega * draw.coherence

    def prepare(data: Data) -> Callable[[np.random.Generator], list[float]]:
        _, m_hat = bounded_rows(data).sketch(draw)
        noise: dict[str, Any] = {"tau": tau, "omega": omega, "c_x": 1.0, "law": "laplace"}
        release = partial(bounds.release_distortion, m_hat, draw.coherence, **noise)
        return lambda rng: [release(noise=make_noise("float", rng))]

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        return one_sided(values[:, 0], distortion(draw, data) + scale * tau, scale, "laplace")

    return Case(
        name="Laplace release of m",
        claim=_pure(tau, omega, delta),
        pair=pair,
        draw=one_by_one(prepare),
        score=pair.ratio(log_likelihood),
        trials=100_000,
        quick=4_000,
    )


def laplace_lambda(delta: float = 0.0) -> Case:
    """Return the release of lambda at a given m: all rows lean towards one."""
    draw, tau, omega = SRHT(32, 64).sample(0), 2.0, 1.0
    pair = pairs.aligned_rows(draw)
    m = distortion(draw, pair.present)
    scale = omega * (1.0 + 2.0 * m)

    def prepare(data: Data) -> Callable[[np.random.Generator], list[float]]:
        Z, _ = bounded_rows(data).sketch(draw)
        lambda_hat = float(Z[:, 0] @ Z[:, 0])
        noise: dict[str, Any] = {"tau": tau, "omega": omega, "c_x": 1.0, "law": "laplace"}
        release = partial(bounds.release_sketched_eigenvalue, lambda_hat, m, **noise)
        return lambda rng: [release(noise=make_noise("float", rng))]

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        centre = sketched_eigenvalue(draw, data) - scale * tau
        return one_sided(values[:, 0], centre, scale, "laplace")

    return Case(
        name="Laplace release of lambda",
        claim=_pure(tau, omega, delta),
        pair=pair,
        draw=one_by_one(prepare),
        score=pair.ratio(log_likelihood),
        trials=100_000,
        quick=4_000,
    )


def _pure(tau: float, omega: float, delta: float) -> Claim:
    noise, _ = bounds.spectral_events("laplace", tau=tau, omega=omega, count=1)
    return Claim(noise.pure_epsilon, delta)


def gaussian_steps(name: str, thetas: tuple[float, ...], trials: int, delta: float = DELTA) -> Case:
    """Return noisy gradients at given points: residuals beyond the clip, at each of them."""
    pair, sigma = pairs.lone_row(), 2.0 * math.sqrt(len(thetas))

    def prepare(data: Data) -> Callable[[np.random.Generator], FloatArray]:
        points = [np.array([theta]) for theta in thetas]
        step = partial(mechanisms.noisy_gradient, bounded_rows(data), clip=1.0, sigma=sigma)
        return lambda rng: np.concatenate(
            [step(theta, noise=make_noise("float", rng)) for theta in points]
        )

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        residuals = np.clip(data.y[:, None] - data.X * np.array(thetas), -1.0, 1.0)
        return gaussian_vector(values, (data.X * residuals).sum(axis=0), sigma)

    return Case(
        name=name,
        claim=accounted(delta, *mechanisms.gradient_events([sigma] * len(thetas))),
        pair=pair,
        draw=one_by_one(prepare),
        score=pair.ratio(log_likelihood),
        trials=trials,
        quick=4_000,
    )


def gaussian_statistics(delta: float = DELTA) -> Case:
    """Return the sufficient statistics: one record moves all three of them by 1."""
    pair, sigma = pairs.lone_row(), 2.0 * math.sqrt(3.0)

    def prepare(data: Data) -> Callable[[np.random.Generator], list[float]]:
        rows = bounded_rows(data)

        def release(rng: np.random.Generator) -> list[float]:
            out = mechanisms.noisy_statistics(rows, sigma=sigma, noise=make_noise("float", rng))
            return [out.gram[0, 0], out.moment[0], out.eigenvalue]

        return release

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        x = data.X[:, 0]
        return gaussian_vector(values, np.array([x @ x, x @ data.y, x @ x]), sigma)

    return Case(
        name="Gaussian statistics",
        claim=accounted(delta, mechanisms.statistics_event(sigma=sigma)),
        pair=pair,
        draw=one_by_one(prepare),
        score=pair.ratio(log_likelihood),
        trials=100_000,
        quick=4_000,
    )


def gaussian_mean(delta: float = DELTA) -> Case:
    """Return the mean: one record moves the sum by 1; a mean so small is never shortened."""
    pair, sigma = pairs.lone_row(64), 2.0

    def prepare(data: Data) -> Callable[[np.random.Generator], FloatArray]:
        release = partial(mechanisms.noisy_mean, bounded_rows(data), sigma=sigma)
        return lambda rng: release(noise=make_noise("float", rng))

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        return gaussian_vector(len(data.X) * values, data.X.sum(axis=0), sigma)

    return Case(
        name="Gaussian mean",
        claim=accounted(delta, mechanisms.mean_event(sigma=sigma)),
        pair=pair,
        draw=one_by_one(prepare),
        score=pair.ratio(log_likelihood),
        trials=100_000,
        quick=4_000,
    )


def gaussian_residual_counts(delta: float = DELTA) -> Case:
    """Return the counts of residuals: one record, beyond the clip, is in the last bin."""
    pair, sigma, theta = pairs.lone_row(), 2.0, -4.0

    def prepare(data: Data) -> Callable[[np.random.Generator], FloatArray]:
        point = np.array([theta])
        release = partial(
            mechanisms.noisy_residual_counts, bounded_rows(data), point, clip=1.0, sigma=sigma
        )
        return lambda rng: release(noise=make_noise("float", rng))

    def log_likelihood(values: FloatArray, data: Data) -> FloatArray:
        sizes = np.minimum(np.abs(data.y - theta * data.X[:, 0]), 1.0)
        counts = [
            ((low < sizes) & (sizes <= high)).sum()
            for low, high in itertools.pairwise(RESIDUAL_EDGES)
        ]
        return gaussian_vector(values, np.array(counts), sigma)

    return Case(
        name="Gaussian counts of residuals",
        claim=accounted(delta, mechanisms.residual_event(sigma)),
        pair=pair,
        draw=one_by_one(prepare),
        score=pair.ratio(log_likelihood),
        trials=100_000,
        quick=2_000,
    )


#: Cases by name, as functions of delta that build them.
MECHANISMS: dict[str, Callable[..., Case]] = {
    "Laplace release of m": laplace_m,
    "Laplace release of lambda": laplace_lambda,
    "Gaussian step": partial(gaussian_steps, "Gaussian step", (-4.0,), 200_000),
    "Gaussian steps, two": partial(gaussian_steps, "Gaussian steps, two", (-4.0, 4.0), 100_000),
    "Gaussian statistics": gaussian_statistics,
    "Gaussian mean": gaussian_mean,
    "Gaussian counts of residuals": gaussian_residual_counts,
}
