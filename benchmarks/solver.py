"""The two solvers of objective perturbation side by side, and the cost model that chooses.

    python benchmarks/solver.py [--largest 2048]

Each shape is fitted with the Gram matrix and with the sketch as preconditioner, in turn. The
constants that `fastmix.engine.objective` chooses by are fitted to the times, by least squares on
relative errors: seconds per n d^2, per n d, and per d^3. What they predict is printed beside what
was measured.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy.optimize import nnls

from fastmix import ObjectivePerturbation
from fastmix.datasets import make_sphere

SHAPES = [
    *((2**16, d) for d in (32, 64, 128, 256, 512, 1024)),
    *((2**14, d) for d in (256, 512, 1024, 2048)),
    (2**17, 512),
    (2**17, 2048),
]


def measure(n: int, d: int) -> dict[str, float]:
    X, y = make_sphere(n, d, random_state=0)
    models = {
        solver: ObjectivePerturbation(
            data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False, solver=solver
        )
        for solver in ("gram", "sketch")
    }
    least = dict.fromkeys(models, np.inf)
    for _ in range(3):
        for solver, model in models.items():
            start = time.perf_counter()
            model.fit(X, y)
            least[solver] = min(least[solver], time.perf_counter() - start)
    return least


def work(n: int, d: int) -> dict[str, list[float]]:
    return {"gram": [n * d**2, 4 * n * d, 0.0, d**3], "sketch": [0.0, 0.0, n * d, d**3]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=2048, help="most columns")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    shapes = [shape for shape in SHAPES if shape[1] <= options.largest]
    found = []
    for n, d in shapes:
        times = measure(n, d)
        found.append(times)
        ratio = times["gram"] / times["sketch"]
        print(f"{n:>7} x {d:<5} gram {times['gram']:7.3f} s  sketch {times['sketch']:7.3f} s  "
              f"{ratio:5.2f}", flush=True)  # fmt: skip
    rows = [
        (work(*shape)[solver], seconds)
        for shape, times in zip(shapes, found, strict=True)
        for solver, seconds in times.items()
    ]
    A, b = np.array([row for row, _ in rows]), np.array([seconds for _, seconds in rows])
    scale = A.max(axis=0)
    fitted = nnls(A / scale / b[:, None], np.ones(len(b)))[0] / scale
    product, entry, sketched, cube = fitted
    print(f"seconds per n d^2: {product:.3g}; in units of it, per n d with the Gram matrix "
          f"{4 * entry / product:.0f}, with the sketch {sketched / product:.0f}, per d^3 "
          f"{cube / product:.1f}")  # fmt: skip
    for (n, d), times in zip(shapes, found, strict=True):
        guess = {solver: float(np.dot(fitted, w)) for solver, w in work(n, d).items()}
        print(f"{n:>7} x {d:<5} predicted ratio {guess['gram'] / guess['sketch']:5.2f}  measured "
              f"{times['gram'] / times['sketch']:5.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
