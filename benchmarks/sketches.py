"""Times of sketches beside the Gram matrix, and of FastIHM beside IHM, side by side.

    python benchmarks/sketches.py [--rounds 3] [--shapes 65536x1024 131072x512]

All numbers are processor time of one thread: other load on the machine does not count, although it
takes its share of memory and caches. The methods of a round follow each other, and a table shows
the median over rounds, in seconds or as a ratio within the same round. The last table fits a linear
model to other draws of the kinds of data its constants were chosen on, and shows the excess risk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

for name in ("FASTMIX_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402

from fastmix import IHM, FastIHM  # noqa: E402
from fastmix.datasets import make_correlated, make_sphere  # noqa: E402
from fastmix.kernels._trust import kernels_used, processor  # noqa: E402
from fastmix.kernels.mapped import Mapped, gram  # noqa: E402
from fastmix.sketches import KerdockSketch, SparseSketch  # noqa: E402

SHAPES = ["131072x128", "131072x256", "131072x512", "65536x1024"]
MODEL: dict[str, Any] = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}


def medians(rounds: int, actions: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Return the times of all rounds of each action, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            start = time.thread_time()
            action()
            times[name].append(time.thread_time() - start)
    return times


def sketches(n: int, d: int, rounds: int) -> None:
    X, _ = make_sphere(n, d, random_state=0)
    A, k2 = Mapped(X, factors=np.full(n, 0.5)), 1 << (8 * d - 1).bit_length()
    one, four = SparseSketch(k2, n, 1).sample(0), SparseSketch(k2, n, 4).sample(0)
    kerdock = KerdockSketch(k2, n).sample(0)
    times = medians(rounds, {
        "read": X.sum,
        "copy": X.copy,
        "Gram matrix": lambda: gram(A),
        "sparse, 1 entry": lambda: one.apply(A),
        "and distortion": lambda: one.sketch_and_distortion(A),
        "sparse, 4 entries": lambda: four.apply(A),
        "and distortion ": lambda: four.sketch_and_distortion(A),
        "Kerdock": lambda: kerdock.apply(A),
        "and distortion  ": lambda: kerdock.sketch_and_distortion(A),
    })  # fmt: skip
    print(f"{n} x {d}, k2 = {k2}: " + ", ".join(
        f"{name.strip()} {statistics.median(own):.3f}" for name, own in times.items()
    ), flush=True)  # fmt: skip


def fits(n: int, d: int, rounds: int) -> None:
    X, y = make_sphere(n, d, random_state=0)
    models = {
        "IHM": IHM(**MODEL),
        "FastIHM": FastIHM(**MODEL),
        "FastIHM, Kerdock": FastIHM(sketch="kerdock", **MODEL),
        "FastIHM, 32 steps": FastIHM(n_steps=32, **MODEL),
    }
    times = medians(rounds, {name: lambda m=m: m.fit(X, y) for name, m in models.items()})
    for name, own in times.items():
        ratios = sorted(a / b for a, b in zip(times["IHM"], own, strict=True))
        print(f"{n} x {d} {name}: {statistics.median(own):.2f} s, IHM's time over it "
              f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
              flush=True)  # fmt: skip


def risks(rounds: int) -> None:
    for make in (make_sphere, make_correlated):
        for n, d, epsilon in ((2**15, 300, 1.0), (2**15, 300, 8.0), (2**16, 512, 3.0)):
            X, y = make(n, d, random_state=1)
            best = X @ np.linalg.lstsq(X.T @ X, X.T @ y, rcond=None)[0]
            found = {}
            for sketch in ("sparse", "kerdock"):
                # The Kerdock sketch has the steps and the rows it had as a default.
                own = {"n_steps": 32} if sketch == "kerdock" else {}
                size = 1 << (n // 8).bit_length() - 1 if sketch == "kerdock" else None
                model = FastIHM(epsilon=epsilon, sketch=sketch, sketch_size=size, **MODEL, **own)
                found[sketch] = [
                    float(np.mean((model.fit(X, y).predict(X) - best) ** 2) / np.var(best))
                    for _ in range(rounds)
                ]
            means = {name: statistics.mean(own) for name, own in found.items()}
            print(f"{make.__name__} {n} x {d}, epsilon {epsilon}: excess risk over variance "
                  f"{means['sparse']:.4f}, Kerdock {means['kerdock']:.4f}, ratio "
                  f"{means['sparse'] / means['kerdock']:.2f} ({rounds} fits each)",
                  flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", nargs="*", default=SHAPES, help="rows x columns")
    parser.add_argument("--only", choices=["sketches", "fits", "risks"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    used = kernels_used()
    print(f"{processor()}, {used.get('compiler')}, {used.get('instruction_set')}, one thread")
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes]
    for name, measure in (("sketches", sketches), ("fits", fits)):
        if options.only in (None, name):
            for n, d in shapes:
                measure(n, d, options.rounds)
    if options.only in (None, "risks"):
        risks(options.rounds)


if __name__ == "__main__":
    main()
