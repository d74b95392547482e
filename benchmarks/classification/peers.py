"""What private logistic regression is compared with.

Every peer is given rows of norm at most 1, scaled by the same public bounds, and is tuned in its
favour: the best of a few settings is reported, chosen by the true excess log-loss.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from fastmix.accounting import calibrate_gaussian

#: Steps and step lengths of gradient descent; ridges in units of the least; C of diffprivlib.
STEPS = ((30, 4.0), (100, 4.0), (100, 16.0), (300, 32.0))
RIDGES = (1.0, 30.0)
INVERSE_RIDGES = (1.0, 100.0)


def gradient_descent(
    A: Any, y: Any, epsilon: float, delta: float, seed: int
) -> Iterator[tuple[str, Any]]:
    """Full-batch noisy gradient descent; the analytic Gaussian mechanism over all steps."""
    sign = 2.0 * y - 1.0
    for steps, length in STEPS:
        sigma = calibrate_gaussian(epsilon, delta, steps)
        rng = np.random.default_rng(seed)
        theta = total = np.zeros(A.shape[1])
        for step in range(steps):
            gradient = A.T @ (-sign * expit(-sign * (A @ theta)))
            gradient = gradient + sigma * rng.standard_normal(len(theta))
            theta = theta - length / len(y) * gradient
            if step >= steps // 2:
                total = total + theta
        yield f"{steps} steps of {length:g}", total / (steps - steps // 2)


def published_objective(
    A: Any, y: Any, epsilon: float, delta: float, seed: int
) -> Iterator[tuple[str, Any]]:
    """Objective perturbation with Gaussian noise (Kifer, Smith and Thakurta, 2012, Algorithm 1)."""
    sign = 2.0 * y - 1.0
    least = 2.0 * 0.25 / epsilon  # twice the largest curvature over epsilon
    scale = math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon
    for times in RIDGES:
        b = scale * np.random.default_rng(seed).standard_normal(A.shape[1])
        ridge = times * least

        def objective(theta: Any, b: Any = b, ridge: float = ridge) -> tuple[float, Any]:
            margin = sign * (A @ theta)
            value = np.logaddexp(0.0, -margin).sum() + ridge / 2.0 * theta @ theta + b @ theta
            slope = A.T @ (-sign * expit(-margin)) + ridge * theta + b
            return value / len(y), slope / len(y)

        start = np.zeros(A.shape[1])
        yield f"ridge {ridge:g}", minimize(objective, start, jac=True, method="L-BFGS-B").x


#: Runs in the environment of diffprivlib: C, epsilon and seeds from a file, coefficients back.
_SCRIPT = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
asked = json.load(open(sys.argv[1]))
data = np.load(asked["data"])
found = []
for epsilon, C, seed in asked["fits"]:
    model = LogisticRegression(
        epsilon=epsilon, data_norm=1.0, C=C, fit_intercept=False, max_iter=300, random_state=seed
    ).fit(data["A"], data["y"])
    found.append([epsilon, C, seed, model.coef_[0].tolist()])
json.dump(found, open(asked["out"], "w"))
"""


def diffprivlib(
    python: Path, A: Any, y: Any, epsilons: tuple[float, ...], seeds: range
) -> dict[tuple[float, int], list[tuple[str, Any]]]:
    """Fit diffprivlib's LogisticRegression in its own environment, pure epsilon."""
    with tempfile.TemporaryDirectory() as folder:
        data, asked, out = (Path(folder) / name for name in ("d.npz", "a.json", "o.json"))
        np.savez(data, A=A, y=y)
        fits = [(e, C, seed) for e in epsilons for C in INVERSE_RIDGES for seed in seeds]
        asked.write_text(json.dumps({"data": str(data), "fits": fits, "out": str(out)}))
        subprocess.run([str(python), "-c", _SCRIPT, str(asked)], check=True)
        found: dict[tuple[float, int], list[tuple[str, Any]]] = {}
        for epsilon, C, seed, theta in json.loads(out.read_text()):
            found.setdefault((epsilon, seed), []).append((f"C {C:g}", np.array(theta)))
    return found


Peer = Callable[[Any, Any, float, float, int], Iterator[tuple[str, Any]]]
PEERS: dict[str, Peer] = {
    "DP gradient descent": gradient_descent,
    "objective, as published": published_objective,
}
