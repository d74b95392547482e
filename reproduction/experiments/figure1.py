"""Figure 1: noise against epsilon, for known eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from scipy.optimize import brentq

from fastmix.accounting import (
    rdp_fast_mix,
    rdp_fast_mix_sharp,
    rdp_fast_mix_unbounded,
    rdp_gauss_mix,
    rdp_to_epsilon,
)
from reproduction.experiments.methods import base_size
from reproduction.experiments.runner import run_trials
from reproduction.experiments.workspace import Workspace

__all__ = ["CURVES", "noise_level", "noise_upadhyay", "run_figure1"]

#: Curves of the figure; the last one is fastmix's own lemma.
CURVES = {
    "upadhyay": "Upadhyay 2014",
    "fast_mix_unbounded": "FastMix, C² → ∞",
    "fast_mix": "FastMix, C² = 2",
    "gauss_mix": "GaussMix",
    "fast_mix_sharp": "C² = 2, sharper lemma (fastmix)",
}

_ROW_BOUND_SQ = 2.0
COLUMNS = ("n", "curve", "epsilon", "d", "k", "delta", "lambda_min", "sigma")


class Point(NamedTuple):
    """One point of the figure."""

    n: int
    curve: str
    epsilon: float
    d: int


def noise_upadhyay(epsilon: float, delta: float, k: int, lambda_min: float) -> float:
    r"""Return the noise that the earlier fast sketch of k rows of Upadhyay (2014) asks for.

    It is the least :math:`\sigma \ge 0` with :math:`\sqrt{\lambda_{\min}+\sigma^2} \ge
    16\sqrt{k\log(2/\delta)}\,\log(16k/\delta)/\epsilon`.

    Paper: Figure 1; Upadhyay (2014), Theorem 16. The constants 16, 2 and 16 are those of the
    figure.
    """
    if not (epsilon > 0.0 and 0.0 < delta < 1.0 and k >= 1):
        raise ValueError(f"target must be private; got {epsilon=}, {delta=}, {k=}.")
    if not lambda_min >= 0.0:
        raise ValueError(f"lambda_min must be at least 0; got {lambda_min=}.")
    level = 16.0 * math.sqrt(k * math.log(2.0 / delta)) * math.log(16.0 * k / delta) / epsilon
    return math.sqrt(max(0.0, level**2 - lambda_min))


def noise_level(curve: str, epsilon: float, delta: float, k: int, lambda_min: float) -> float:
    r"""Return the least :math:`\sigma` at which a sketch of k rows is (epsilon, delta)-DP.

    Parameters
    ----------
    curve : str
        A key of `CURVES`.
    epsilon, delta : float
        Target.
    k : int
        Rows of the Gaussian sketch.
    lambda_min : float
        Smallest eigenvalue of :math:`X^\top X`; that of the fast sketch is 5/6 of it.

    Returns
    -------
    float
        :math:`\sigma`, on the private side; 0 if the eigenvalue is enough.

    Notes
    -----
    Paper: Figure 1, with the exact characterisations of Appendix C.
    """
    sketched = 5.0 / 6.0 * lambda_min
    if curve == "upadhyay":
        return noise_upadhyay(epsilon, delta, k, sketched)
    rates: dict[str, tuple[Callable[[Any, float], Any], float, float]] = {
        "gauss_mix": (rdp_gauss_mix, 1.0, lambda_min),
        "fast_mix": (lambda a, g: rdp_fast_mix(a, g, _ROW_BOUND_SQ), _ROW_BOUND_SQ, sketched),
        "fast_mix_sharp": (rdp_fast_mix_sharp, _ROW_BOUND_SQ, sketched),
        "fast_mix_unbounded": (rdp_fast_mix_unbounded, 1.0, sketched),
    }
    rdp, row_bound_sq, available = rates[curve]

    def excess(log_gamma: float) -> float:
        gamma = math.exp(log_gamma)
        return min(rdp_to_epsilon(lambda alpha: k * rdp(alpha, gamma), delta), 1e9) - epsilon

    low = high = math.log(1.01)
    while excess(high) > 0.0:
        low, high = high, high + 1.0
    # The root is moved up by more than its tolerance: the answer is on the private side.
    gamma = math.exp(high if low == high else brentq(excess, low, high, xtol=1e-10) + 1e-9)
    return math.sqrt(max(0.0, row_bound_sq * gamma - available))


def _run(point: Point) -> dict[str, Any]:
    delta = 1.0 / point.n**2
    k = math.ceil(6.0 * base_size(point.n, point.d, 1))
    lambda_min = point.n / (8.0 * point.d)
    sigma = noise_level(point.curve, point.epsilon, delta, k, lambda_min)
    return {**point._asdict(), "k": k, "delta": delta, "lambda_min": lambda_min, "sigma": sigma}


def run_figure1(work: Workspace) -> None:
    """Compute the points of Figure 1.

    Parameters
    ----------
    work : Workspace
        What the run shares.
    """
    chosen = work.config.figure1
    points = [
        Point(n, curve, float(epsilon), chosen["d"])
        for n in chosen["n"]
        for curve in CURVES
        for epsilon in chosen["epsilons"]
    ]
    table = work.results.table("figure1", COLUMNS, 3)
    run_trials(points, _run, table, run=work.results.run, jobs=1, title="figure 1")
